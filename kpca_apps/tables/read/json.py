"""Read JSON as typed Arrow columns, from an object per line or a list of objects.

The last value of a column may change the column's type. So a file is read twice: first to check the
file and find the types, then to read the rows. The records of a small file are cached.
"""

from __future__ import annotations

import io
import json
import re
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, Literal

import pyarrow as pa

from kpca_apps.errors import InputError
from kpca_apps.names import listed, one_line, unique_names
from kpca_apps.system import limits
from kpca_apps.system.limits import COPIES, MOST_EMPTY_CELLS, long_row, require_columns
from kpca_apps.tables.input_file import CHANGED, Chunks
from kpca_apps.tables.read.reader import Reader, table_of
from kpca_apps.tables.read.text import BadLines, Text
from kpca_apps.tables.table import NESTED, PartedTable, Rows, Table

_LINES = (".jsonl", ".ndjson")
# How a JSON file begins. A bracket alone may also begin delimited text.
_BEGINNING = re.compile(rb'\s*(\{\s*["}]|\[\s*[{\]])')
_NO_TEXT = re.compile("[\udc80-\udcff]")  # characters that stand for bytes that are not UTF-8
_INT64 = range(-(2**63), 2**63)
# Maximum number of rows, cells, bytes of a batch; minimum number of rows (small batches are slow).
_PIECE_ROWS, _PIECE_CELLS, _PIECE_BYTES, _LEAST_ROWS = 1 << 13, 1 << 16, 1 << 22, 1 << 6
# A record with more than _MANY_LEVELS brackets must stay below the recursion limit even if it is
# nested _SPARE_LEVELS deeper.
_MANY_LEVELS, _SPARE_LEVELS = 100, 20
_SPACE = re.compile(r"[ \t\r\n]*")
_MOST_SHOWN = 100  # maximum number of characters of the keys in a message
_ADVICE = 'write one list of objects (pandas: to_json(orient="records"))'
_scan = json.JSONDecoder().raw_decode


class JsonLines:
    """JSON with an object on each line."""

    unit = "line"

    def __init__(self, chunks: Callable[[], Iterable[bytes]]) -> None:
        self._chunks = chunks
        self.notes: list[str] = []

    def records(self) -> Iterator[tuple[int, str]]:
        """Yield the number and text of each line that is not blank."""
        file, most = io.BufferedReader(Chunks(self._chunks()), 1 << 16), limits.LONGEST_ROW + 1
        for number, raw in enumerate(iter(lambda: file.readline(most), b""), 1):
            if len(raw) == most:
                raise long_row(number)
            # Bytes that are not UTF-8 raise an error later, when the record is checked.
            line = raw.decode("utf-8", "surrogateescape").removesuffix("\n")
            if line.strip():
                yield number, line


class JsonDocument:
    """The records of a JSON document, whose text is in memory.

    A record's number is that of its first line or, if some records share a line, its position
    (`unit`). A document that contains no list of objects is a single record (`is_record`).
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        held = bytearray()
        for chunk in chunks:
            held += chunk
            limits.require_memory(len(held))
        try:
            self._text = held.decode("utf-8")
        except UnicodeDecodeError as error:
            line = held.count(b"\n", 0, error.start) + 1
            raise InputError(f"line {line} is not UTF-8 text; save the file as UTF-8.") from None
        del held
        self._found = array("q")  # start and end of each record, known after the first pass
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
        """Yield the number and text of each record."""
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
        if self.is_record:
            yield self._start, _scan(self._text, self._start)[1]
            return
        for _, start, end in self._members(self._start):
            yield start, end
        if self._start == self._top:
            self._require_end()

    def _members(self, place: int) -> Iterator[tuple[str, int, int]]:
        """Yield the key, start and end of each value in an object or list; then set `_end`."""
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
        """Return the end of a value, without decoding a list of objects as a whole."""
        if not self._is_list_of_objects(place):
            return _scan(self._text, place)[1]
        deque(self._members(place), maxlen=0)
        return self._end

    def _is_list_of_objects(self, place: int) -> bool:
        text = self._text
        return text[place] == "[" and text[self._after_space(place + 1)] == "{"

    def _list_of_object(self) -> int:
        """Return the start of an object's only list of objects, or else of the object itself."""
        starts: dict[str, int] = {}
        for key, start, _ in self._members(self._top):
            if key in starts:
                line = self._text.count("\n", 0, start) + 1
                raise InputError(f"line {line}: a key occurs twice in one object; remove one.")
            starts[key] = start
        self._require_end()
        found = [key for key, start in starts.items() if self._is_list_of_objects(start)]
        others = [key for key in starts if key not in found]
        if "type" in others and _scan(self._text, starts["type"])[0] == "FeatureCollection":
            raise InputError(
                "this is GeoJSON; write the properties of its features as a table "
                '(geopandas: frame.drop(columns="geometry").to_csv("table.csv")).'
            )
        if len(found) == 1:
            left_out = f"; left out: {_quoted(others)}" if others else ""
            self.notes.append(f'Read the list under the key "{one_line(found[0])}"{left_out}.')
            return starts[found[0]]
        if found:
            raise InputError(
                "this is one JSON object with lists of objects under several keys "
                f"({_quoted(found)}); {_ADVICE}."
            )
        if others and all(self._text[starts[key]] in "[{" for key in others):
            raise InputError(f"this is one JSON object without a list of objects; {_ADVICE}.")
        return self._top

    def _after_space(self, place: int) -> int:
        return _SPACE.match(self._text, place).end()  # type: ignore[union-attr]  # it may be empty

    def _require_end(self) -> None:
        place = self._after_space(self._end)
        if place < len(self._text):
            line = self._text.count("\n", 0, place) + 1
            raise InputError(
                f"line {line} has text after the end of the JSON; {_ADVICE}, or one object a line."
            )

    @contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except RecursionError:
            raise InputError("is nested too deeply; flatten it.") from None
        except IndexError:
            raise InputError("the JSON is cut short; fetch the file again.") from None
        except json.JSONDecodeError as error:
            raise InputError(
                f"line {error.lineno}, column {error.colno}: not JSON ({error.msg}); correct it "
                "there, or fetch the file again."
            ) from None
        except ValueError as error:
            raise InputError(f"{one_line(str(error))}; fix it.") from None


def _quoted(names: Iterable[str]) -> str:
    return one_line(", ".join(f'"{one_line(name, 40)}"' for name in names), _MOST_SHOWN)


def json_rows(
    source: JsonLines | JsonDocument, keep_rows: float, *, leave_out: bool = False
) -> Rows:
    """Read JSON objects as rows, with line numbers if the source's `unit` is "line".

    Keys name the columns. A column has numbers, booleans or strings; nested and mixed values become
    JSON text. The source is read twice if it has more than `keep_rows` rows or does not fit into
    memory. With `leave_out`, records that are not objects are skipped and noted.
    """
    names: list[str] = []
    notes, renamed = [*source.notes], dict[str, str]()
    pieces = _pieces(source, keep_rows, leave_out, names, notes, renamed)
    return Rows(pieces, names, notes, source.unit == "line", renamed)


def _pieces(
    source: JsonLines | JsonDocument,
    keep_rows: float,
    leave_out: bool,
    names: list[str],
    notes: list[str],
    renamed: dict[str, str],
) -> Iterator[pa.Table]:
    unit, bad, left_out = source.unit, BadLines(), set()
    kinds = defaultdict[str, set[type]](set)
    kept: list[tuple[list[dict[str, Any]], list[int]]] = []
    n_rows = n_values = n_bytes = width = 0
    is_kept, most_bytes = True, limits.available_memory() // COPIES
    for numbers, texts in _batches(source.records(), kinds):
        records, kept_numbers = [], []
        for number, text in zip(numbers, texts, strict=True):
            try:
                record = _checked(text, f"{unit} {number}")
            except InputError as error:
                if not leave_out:
                    raise
                cause = str(error).removeprefix(f"{unit} {number}").split(";")[0]
                bad.leave_out(number, cause.lstrip(",: "))
                left_out.add(number)
                continue
            for key, value in record.items():
                kind = type(value)
                # Integers of more than 64 bits become text, to preserve all digits.
                kinds[key].add(str if kind is int and value not in _INT64 else kind)
            if len(kinds) > width:
                width = len(kinds)
                require_columns(width, number if unit == "line" else None)
            n_rows, n_values = n_rows + 1, n_values + len(record)
            if n_rows * width - n_values > MOST_EMPTY_CELLS:
                raise InputError(
                    f"{unit} {number}: {n_rows:,} rows of {width:,} different keys leave more "
                    f"than {MOST_EMPTY_CELLS:,} cells without a value; write what differs between "
                    "rows as values, not as keys, or split the file."
                )
            records.append(record)
            kept_numbers.append(number)
        n_bytes += sum(map(len, texts))
        is_kept = is_kept and n_rows <= keep_rows and n_bytes <= most_bytes
        if is_kept:
            kept.append((records, kept_numbers))
        else:
            kept.clear()
    notes += bad.notes(n_rows)
    if not kinds:
        what = "no line holds a key and a value" if n_rows else "the file is empty"
        raise InputError(f"{what}; there is nothing to screen.")
    found, changed, of_header = unique_names(kinds)
    names += found
    notes += changed
    nested = [found[k] for k, of_key in enumerate(kinds.values()) if of_key & {dict, list}]
    notes += [f"{NESTED}: {listed(nested)}."] * bool(nested)
    renamed |= of_header
    types = {key: _column_type(of_key - {type(None)}) for key, of_key in kinds.items()}
    for records, numbers in kept if is_kept else _again(source, kinds, left_out):
        present = set().union(*records)
        arrays = [
            _array([record.get(key) for record in records], kind)
            if key in present
            else pa.nulls(len(records), kind)
            for key, kind in types.items()
        ]
        of_lines = {"line": pa.array(numbers, pa.int64())} if unit == "line" else {}
        yield pa.Table.from_arrays([*arrays, *of_lines.values()], names=[*names, *of_lines])


def _batches(
    records: Iterable[tuple[int, str]], keys: Sized
) -> Iterator[tuple[list[int], list[str]]]:
    """Yield batches of records, as numbers and texts; the more keys, the smaller the batches."""
    numbers: list[int] = []
    texts: list[str] = []
    n_bytes = 0
    for number, text in records:
        numbers.append(number)
        texts.append(text)
        n_bytes += len(text)
        n_rows = min(_PIECE_ROWS, max(_PIECE_CELLS // (len(keys) or 1), _LEAST_ROWS))
        if len(texts) >= n_rows or n_bytes >= _PIECE_BYTES:
            yield numbers, texts
            numbers, texts, n_bytes = [], [], 0
    if texts:
        yield numbers, texts


def _again(
    source: JsonLines | JsonDocument, keys: Sized, left_out: set[int]
) -> Iterator[tuple[list[dict[str, Any]], list[int]]]:
    """Yield batches of checked records; the texts of a batch are parsed at once, as one array."""
    records = (record for record in source.records() if record[0] not in left_out)
    for numbers, texts in _batches(records, keys):
        try:
            yield json.loads(f"[{','.join(texts)}]"), numbers
        except json.JSONDecodeError:
            raise InputError(CHANGED) from None


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return record


# `json.loads` would create a new decoder for each line.
_decode = json.JSONDecoder(object_pairs_hook=_record).decode


def _checked(text: str, where: str) -> dict[str, Any]:
    if not text.isascii() and _NO_TEXT.search(text):
        raise InputError(f"{where} is not UTF-8 text; save the file as UTF-8.")
    try:
        record = _decode(text)
        if text.count("[") + text.count("{") > _MANY_LEVELS:
            # Leave some of the recursion limit for an array around the record, and for writing it.
            _decode(f"{'[' * _SPARE_LEVELS}{text}{']' * _SPARE_LEVELS}")
        if "\\u" in text and r"\ud" in text.lower():
            json.dumps(record, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise InputError(f"{where} is nested too deeply; flatten it.") from None
    except UnicodeEncodeError:
        raise InputError(f"{where} holds half a surrogate pair; fix it.") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where}, column {error.colno}: not JSON ({error.msg}); write one object a line."
        ) from None
    except ValueError as error:
        raise InputError(f"{where}: {one_line(str(error))}; fix it.") from None
    if not isinstance(record, dict):
        raise InputError(f"{where} is not a JSON object; write it as one.")
    return record


def _column_type(kinds: set[type]) -> pa.DataType:
    if kinds and kinds <= {int, float}:
        return pa.int64() if kinds == {int} else pa.float64()
    return pa.bool_() if kinds == {bool} else pa.string()


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.float64():
        values = [float(value) if type(value) is int else value for value in values]
    elif kind == pa.string():
        values = [
            json.dumps(value, ensure_ascii=False)
            if value is not None and type(value) is not str
            else value
            for value in values
        ]
    return pa.array(values, kind, from_pandas=False)


def _knows(text: Text) -> bool:
    suffix, head = text.file.suffix, text.head
    is_like = _BEGINNING.match(head) or (suffix == ".json" and head.lstrip().startswith(b"["))
    return suffix in _LINES or bool(is_like and text.options.delimiter is None)


def _is_document(lines: JsonLines) -> bool:
    """Whether a text that begins with an object is one JSON document, not an object per line."""
    records, is_alone = lines.records(), False
    try:
        _, first = next(records)
    except InputError:  # the first line is too long
        return True
    with suppress(InputError):
        is_alone = next(records, None) is None
    try:
        json.loads(first)
    except json.JSONDecodeError as error:
        return is_alone or error.pos >= len(error.doc.rstrip())
    except (ValueError, RecursionError):
        pass
    return is_alone


def _read(text: Text) -> Table | PartedTable:
    lines, is_list = JsonLines(text.chunks), False
    source: JsonLines | JsonDocument = lines
    if text.file.suffix not in _LINES and (
        text.head.lstrip().startswith(b"[") or _is_document(lines)
    ):
        source = JsonDocument(text.chunks())
        is_list = not source.is_record
    if is_list:
        text.options.refuse_others("encoding", "JSON")
    rows = json_rows(
        source, text.options.in_memory_rows, leave_out=text.options.bad_lines == "skip"
    )
    return table_of(text, rows, format="json" if is_list else "jsonl")


JSON = Reader("JSON", "encoding bad_lines", _read, _knows)
