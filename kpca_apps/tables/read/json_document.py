"""One JSON document -> the text of its records: a list of objects, or one under a key.

Its records may lie on one line, as pandas writes them: lines name them only where they differ.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Literal

from kpca_apps.errors import InputError
from kpca_apps.names import one_line
from kpca_apps.system import limits

_SPACE = re.compile(r"[ \t\r\n]*")
_MOST_SHOWN = 100  # characters of keys in a message
_ADVICE = 'write one list of objects (pandas: to_json(orient="records"))'
_scan = json.JSONDecoder().raw_decode


class JsonDocument:
    """The records of one document, which is held in memory as text.

    They are numbered by the lines they start on, or, where they share one, by their order (`unit`).
    A document that is one object without a list is its only record (`is_record`).
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
        text, is_line = self._text, self.unit == "line"
        counted, number = 0, int(is_line)
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
            yield self._start, _scan(self._text, self._start)[1]
            return
        for _, start, end in self._members(self._start):
            yield start, end
        if self._start == self._top:
            self._require_end()

    def _members(self, place: int) -> Iterator[tuple[str, int, int]]:
        """Yield the key of each value of an object or list, and where it begins and ends.

        Where the whole has ended, that is kept in `_end`.
        """
        text, closing = self._text, "}" if self._text[place] == "{" else "]"
        place, key = self._after_space(place + 1), ""
        while text[place] != closing:
            if closing == "}":
                key, place = _scan(text, place)
                place = self._after_space(place)
                if not isinstance(key, str) or text[place] != ":":
                    raise json.JSONDecodeError("Expecting a key and ':'", text, place)
                place = self._after_space(place + 1)
            start, place = place, self._end_of(place)
            yield key, start, place
            place = self._after_space(place)
            if text[place] == ",":
                place = self._after_space(place + 1)
                if text[place] == closing:
                    what = "Expecting a key" if closing == "}" else "Expecting value"
                    raise json.JSONDecodeError(what, text, place)
            elif text[place] != closing:
                raise json.JSONDecodeError(f"Expecting ',' or '{closing}'", text, place)
        self._end = place + 1

    def _end_of(self, place: int) -> int:
        """Return where a value ends; a list of objects is not held in memory for it."""
        if not self._is_list_of_objects(place):
            return _scan(self._text, place)[1]
        deque(self._members(place), maxlen=0)
        return self._end

    def _is_list_of_objects(self, place: int) -> bool:
        text = self._text
        return text[place] == "[" and text[self._after_space(place + 1)] == "{"

    def _list_of_object(self) -> int:
        """Return where the one list of objects in an object is, or the object if it is a record."""
        starts: dict[str, int] = {}
        for key, start, _ in self._members(self._top):
            if key in starts:
                line = self._text.count("\n", 0, start) + 1
                raise InputError(
                    f"{self.label}: line {line}: a key stands twice in one object; fix it."
                )
            starts[key] = start
        self._require_end()
        found = [key for key, start in starts.items() if self._is_list_of_objects(start)]
        others = [key for key in starts if key not in found]
        if "type" in others and _scan(self._text, starts["type"])[0] == "FeatureCollection":
            raise InputError(
                f"{self.label}: this is GeoJSON; write the properties of its features as a table "
                '(geopandas: frame.drop(columns="geometry").to_csv("table.csv")).'
            )
        if len(found) == 1:
            left_out = f"; left out: {_quoted(others)}" if others else ""
            self.notes.append(f'Read the list under the key "{one_line(found[0])}"{left_out}.')
            return starts[found[0]]
        if found:
            raise InputError(
                f"{self.label}: this is one JSON object with lists of objects under several keys "
                f"({_quoted(found)}); {_ADVICE}."
            )
        if others and all(self._text[starts[key]] in "[{" for key in others):
            raise InputError(
                f"{self.label}: this is one JSON object without a list of objects; {_ADVICE}."
            )
        return self._top

    def _after_space(self, place: int) -> int:
        return _SPACE.match(self._text, place).end()  # type: ignore[union-attr]  # it may be empty

    def _require_end(self) -> None:
        """Refuse what follows the document."""
        place = self._after_space(self._end)
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


def _quoted(names: Iterable[str]) -> str:
    return one_line(", ".join(f'"{one_line(name, 40)}"' for name in names), _MOST_SHOWN)
