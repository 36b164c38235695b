"""One JSON document -> the text of its records: a list of objects, or one under a key.

Its records may lie on one line, as pandas writes them: lines name them only where they differ.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Literal

from kpca_apps.errors import InputError
from kpca_apps.names import one_line
from kpca_apps.system import limits

__all__ = ["JsonDocument", "is_document"]

_SPACE = re.compile(r"[ \t\r\n]*")
_MOST_SHOWN = 100  # characters of keys in a message
_ADVICE = 'write one list of objects (pandas: to_json(orient="records"))'
_scan = json.JSONDecoder().raw_decode


def is_document(chunks: Iterable[bytes]) -> bool:
    """Whether a text that begins with an object is one document, or else an object a line.

    It is where the object goes on beyond its first line, or nothing follows that.
    """
    text = b""
    for chunk in chunks:
        text = (text + chunk).lstrip()
        line, _, rest = text.partition(b"\n")
        if rest.strip():
            break
        if len(text) > limits.LONGEST_ROW:
            return True
    else:
        return True
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        return error.pos >= len(error.doc.rstrip())
    except (ValueError, RecursionError):
        pass
    return False


class JsonDocument:
    """The records of one document, which is held in memory as text.

    Parameters
    ----------
    chunks : iterable of bytes
        The text in UTF-8.
    label : str
        Names the file in errors.

    Attributes
    ----------
    is_record : bool
        Whether the document is one object without a list, which is its only record.
    unit : {"line", "record"}
        What numbers the records: the lines they start on, or, where they share one, their order.
    notes : list of str
        What a reader should know.

    Examples
    --------
    >>> document = JsonDocument([b'{"n": 2, "data": [{"a": 1}, {"a": 2}]}'], "sizes.json")
    >>> document.unit, document.notes
    ('record', ['Read the list under the key "data"; left out: "n".'])
    >>> list(document.records())
    [(1, '{"a": 1}'), (2, '{"a": 2}')]
    """

    def __init__(self, chunks: Iterable[bytes], label: str) -> None:
        held = bytearray()
        for chunk in chunks:
            held += chunk
            limits.require_memory(label, len(held))
        try:
            self._text, self.label = held.decode("utf-8"), label
        except UnicodeDecodeError as error:
            line = held.count(b"\n", 0, error.start) + 1
            raise InputError(
                f"{label}: line {line} is not UTF-8 text; save the file as UTF-8."
            ) from None
        del held
        self._found = array("q")  # where each record begins and ends, once all were gone through
        self.notes: list[str] = []
        with self._refused():
            self._top = self._start = self._after_space(0)
            if self._text[self._top] == "{":
                self._start = self._list_of_object()
            self.is_record = self._text[self._start] == "{"
            starts = [start for start, _ in islice(self._spans(), 2)]
        is_spread = len(starts) < 2 or "\n" in self._text[starts[0] : starts[1]]
        self.unit: Literal["line", "record"] = "line" if is_spread else "record"

    def records(self) -> Iterator[tuple[int, str]]:
        """Yield the numbers and texts of the records."""
        text, counted, number, is_line = (
            self._text,
            0,
            int(self.unit == "line"),
            self.unit == "line",
        )
        known = iter(self._found)
        found = array("q")
        with self._refused():
            for start, end in zip(known, known, strict=True) if self._found else self._spans():
                found.extend((start, end))
                number += text.count("\n", counted, start) if is_line else 1
                counted = start
                yield number, text[start:end]
        self._found = found

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Yield where each record begins and ends."""
        if self.is_record:
            yield self._start, self._scanned(self._start)[1]
            return
        end = yield from self._items(self._start)
        if self._start == self._top:
            self._require_end(end)

    def _items(self, place: int) -> Generator[tuple[int, int], None, int]:
        """Yield where each value of a list begins and ends, and return where the list ends."""
        place = self._after_space(place + 1)
        if self._text[place] == "]":
            return place + 1
        while True:
            end = self._scanned(place)[1]
            yield place, end
            place = self._after_space(end)
            if self._text[place] == "]":
                return place + 1
            if self._text[place] != ",":
                raise json.JSONDecodeError("Expecting ',' or ']'", self._text, place)
            place = self._after_space(place + 1)

    def _list_of_object(self) -> int:
        """Return where the one list of objects in an object is, or the object if it is a record."""
        text, place = self._text, self._after_space(self._top + 1)
        found: dict[str, int] = {}
        others: dict[str, Any] = {}
        while text[place] != "}":
            key, place = self._scanned(place)
            place = self._after_space(place)
            if not isinstance(key, str) or text[place] != ":":
                raise json.JSONDecodeError("Expecting a key and ':'", text, place)
            if key in found or key in others:
                line = text.count("\n", 0, place) + 1
                raise InputError(
                    f"{self.label}: line {line}: a key stands twice in one object; fix it."
                )
            place = self._after_space(place + 1)
            if text[place] == "[" and text[self._after_space(place + 1)] == "{":
                found[key] = place
                place = _exhausted(self._items(place))
            else:
                others[key], place = self._scanned(place)
            place = self._after_space(place)
            if text[place] == ",":
                place = self._after_space(place + 1)
                if text[place] == "}":
                    raise json.JSONDecodeError("Expecting a key", text, place)
            elif text[place] != "}":
                raise json.JSONDecodeError("Expecting ',' or '}'", text, place)
        self._require_end(place + 1)
        if others.get("type") == "FeatureCollection":
            raise InputError(
                f"{self.label}: this is GeoJSON; write the properties of its features as a table "
                '(geopandas: frame.drop(columns="geometry").to_csv("table.csv")).'
            )
        if len(found) == 1:
            ((key, start),) = found.items()
            left_out = f"; left out: {_quoted(others)}" if others else ""
            self.notes.append(f'Read the list under the key "{one_line(key)}"{left_out}.')
            return start
        if found:
            raise InputError(
                f"{self.label}: this is one JSON object with lists of objects under several keys "
                f"({_quoted(found)}); {_ADVICE}."
            )
        if others and all(isinstance(value, dict | list) for value in others.values()):
            raise InputError(
                f"{self.label}: this is one JSON object without a list of objects; {_ADVICE}."
            )
        return self._top

    def _scanned(self, place: int) -> tuple[Any, int]:
        return _scan(self._text, place)

    def _after_space(self, place: int) -> int:
        return _SPACE.match(self._text, place).end()  # type: ignore[union-attr]  # it may be empty

    def _require_end(self, place: int) -> None:
        """Refuse what follows the document."""
        place = self._after_space(place)
        if place < len(self._text):
            line = self._text.count("\n", 0, place) + 1
            raise InputError(
                f"{self.label}: line {line} goes on after the end of the JSON; {_ADVICE}, or one "
                "object a line."
            )

    @contextmanager
    def _refused(self) -> Iterator[None]:
        """Turn what is wrong with the document into one line."""
        try:
            yield
        except InputError:
            raise
        except RecursionError:
            raise InputError(f"{self.label}: is nested too deeply; flatten it.") from None
        except IndexError:
            raise InputError(f"{self.label}: the JSON has no end; fetch the file again.") from None
        except json.JSONDecodeError as error:
            raise InputError(
                f"{self.label}: line {error.lineno}, column {error.colno}: not JSON "
                f"({error.msg}); mend it there, or fetch the file again."
            ) from None
        except ValueError as error:
            raise InputError(f"{self.label}: {one_line(str(error))}; fix it.") from None


def _exhausted(items: Generator[tuple[int, int], None, int]) -> int:
    """Return what a generator returns."""
    while True:
        try:
            next(items)
        except StopIteration as stop:
            return int(stop.value)


def _quoted(names: Iterable[str]) -> str:
    return one_line(", ".join(f'"{one_line(name, 40)}"' for name in names), _MOST_SHOWN)
