"""JSON, an object a line or a document with a list of them -> typed Arrow columns, with lines.

What type a column has is known with its last value, so a file is gone through twice: once to check
it and for the types of its values, once for the rows. Of a small file the records are kept.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import suppress
from math import inf
from typing import Any

import pyarrow as pa

from kpca_apps.errors import InputError
from kpca_apps.names import one_line, unique_names
from kpca_apps.system import limits
from kpca_apps.system.limits import COPIES, MOST_EMPTY_CELLS, long_row, require_columns
from kpca_apps.tables.input_file import Chunks
from kpca_apps.tables.read.json_document import JsonDocument
from kpca_apps.tables.read.reader import Reader, table_of
from kpca_apps.tables.read.text import BadLines, Text
from kpca_apps.tables.table import PartedTable, Rows, Table

_LINES = (".jsonl", ".ndjson")
# A text of cells may begin with a bracket too.
_BEGINNING = re.compile(rb'\s*(\{\s*["}]|\[\s*[{\]])')
_NO_TEXT = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as they are decoded
_INT64 = range(-(2**63), 2**63)
# Rows, cells and bytes of a piece; a few rows at least, as each column has its price.
_PIECE_ROWS, _PIECE_CELLS, _PIECE_BYTES, _LEAST_ROWS = 1 << 13, 1 << 16, 1 << 22, 1 << 6
# A line with more brackets may be nested nearly as deeply as Python goes; levels to spare there.
_MANY_LEVELS, _SPARE_LEVELS = 100, 20


class JsonLines:
    """Records that are objects on a line each."""

    unit = "line"

    def __init__(self, chunks: Callable[[], Iterable[bytes]], label: str) -> None:
        self._chunks, self.label = chunks, label
        self.notes: list[str] = []

    def records(self) -> Iterator[tuple[int, str]]:
        """Yield the numbers of lines that are not blank, and their text."""
        file, most = io.BufferedReader(Chunks(self._chunks()), 1 << 16), limits.LONGEST_ROW + 1
        for number, raw in enumerate(iter(lambda: file.readline(most), b""), 1):
            if len(raw) == most:
                raise long_row(self.label, number)
            # Bytes that are no text are refused with their record.
            line = raw.decode("utf-8", "surrogateescape").removesuffix("\n")
            if line.strip():
                yield number, line


def json_rows(
    source: JsonLines | JsonDocument, keep_rows: float, *, leave_out: bool = False
) -> Rows:
    """Read JSON objects as rows, with their lines if these are what numbers them.

    Keys name the columns in the order they first appear. A column of numbers or booleans is typed
    so; any other holds strings, with nested or mixed values as JSON text. A missing key and
    ``null`` are null. The source is gone through once, or twice if it has more than `keep_rows`, or
    than fit into memory. With `leave_out`, what is no object is left out and listed in the notes.
    """
    names: list[str] = []
    notes = [*source.notes]
    pieces = _pieces(source, keep_rows, leave_out, names, notes)
    return Rows(pieces, names, notes, source.unit == "line")


def _pieces(
    source: JsonLines | JsonDocument,
    keep_rows: float,
    leave_out: bool,
    names: list[str],
    notes: list[str],
) -> Iterator[pa.Table]:
    label, unit, bad, left_out = source.label, source.unit, BadLines(source.label), set()
    kinds: dict[str, set[type]] = {}
    kept: list[tuple[list[dict[str, Any]], list[int]]] = []
    n_rows = n_values = n_bytes = width = 0
    is_kept, most_bytes = True, limits.available_memory() // COPIES
    for numbers, texts in _batches(source.records(), kinds):
        records, kept_numbers = [], []
        for number, text in zip(numbers, texts, strict=True):
            try:
                record = _checked(text, f"{unit} {number}", label)
            except InputError as error:
                if not leave_out:
                    raise
                cause = str(error).removeprefix(f"{label}: {unit} {number}").split(";")[0]
                bad.leave_out(number, cause.lstrip(",: "))
                left_out.add(number)
                continue
            for key, value in record.items():
                kind = type(value)
                # Integers that 64 bits do not hold are floats.
                kind = float if kind is int and value not in _INT64 else kind
                if key in kinds:
                    kinds[key].add(kind)
                else:
                    kinds[key] = {kind}
            if len(kinds) > width:
                width = len(kinds)
                require_columns(label, width, number if unit == "line" else None)
            n_rows, n_values = n_rows + 1, n_values + len(record)
            if n_rows * width - n_values > MOST_EMPTY_CELLS:
                raise InputError(
                    f"{label}: {unit} {number}: {n_rows:,} rows of {width:,} different keys leave "
                    f"more than {MOST_EMPTY_CELLS:,} cells without a value; write what differs "
                    "from row to row as a value, not as a key, or split the file."
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
        raise InputError(f"{label}: {what}; there is nothing to screen.")
    found, changed = unique_names(kinds)
    names += found
    notes += changed
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
    """Yield numbers and texts of records: fewer together the more keys there are."""
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
    """Yield records that were checked one by one, so are valid as one array too."""
    records = (record for record in source.records() if record[0] not in left_out)
    for numbers, texts in _batches(records, keys):
        try:
            yield json.loads(f"[{','.join(texts)}]"), numbers
        except json.JSONDecodeError:
            raise InputError(
                f"{source.label}: the file was changed while it was being read; run again once it "
                "is complete."
            ) from None


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return record


# Made once: `json.loads` would make one for every line.
_decode = json.JSONDecoder(object_pairs_hook=_record).decode


def _checked(text: str, where: str, label: str) -> dict[str, Any]:
    """Parse one object, or say what is wrong with it."""
    if not text.isascii() and _NO_TEXT.search(text):
        raise InputError(f"{label}: {where} is not UTF-8 text; save the file as UTF-8.")
    try:
        record = _decode(text)
        if text.count("[") + text.count("{") > _MANY_LEVELS:
            # It is read again inside an array, and written: neither may end at the stack's limit.
            _decode(f"{'[' * _SPARE_LEVELS}{text}{']' * _SPARE_LEVELS}")
        if "\\u" in text and r"\ud" in text.lower():
            json.dumps(record, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise InputError(f"{label}: {where} is nested too deeply; flatten it.") from None
    except UnicodeEncodeError:
        raise InputError(f"{label}: {where} holds half a surrogate pair; fix it.") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{label}: {where}, column {error.colno}: not JSON ({error.msg}); write one "
            "object a line."
        ) from None
    except ValueError as error:
        raise InputError(f"{label}: {where}: {one_line(str(error))}; fix it.") from None
    if not isinstance(record, dict):
        raise InputError(f"{label}: {where} is not a JSON object; write it as one.")
    return record


def _column_type(kinds: set[type]) -> pa.DataType:
    """Return the type of a column whose values, but for null, are of these kinds."""
    if kinds and kinds <= {int, float}:
        return pa.int64() if kinds == {int} else pa.float64()
    return pa.bool_() if kinds == {bool} else pa.string()


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.float64():
        values = [_as_float(value) if type(value) is int else value for value in values]
    elif kind == pa.string():
        values = [
            json.dumps(value, ensure_ascii=False)
            if value is not None and type(value) is not str
            else value
            for value in values
        ]
    return pa.array(values, kind, from_pandas=False)


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _knows(text: Text) -> bool:
    suffix, head = text.file.suffix, text.head
    is_like = _BEGINNING.match(head) or (suffix == ".json" and head.lstrip().startswith(b"["))
    return suffix in _LINES or bool(is_like and text.options.delimiter is None)


def _is_document(lines: JsonLines) -> bool:
    """Whether a text that begins with an object is one document, or else an object a line.

    It is where the object goes on beyond its first line, or nothing follows that.
    """
    records, is_alone = lines.records(), False
    try:
        _, first = next(records)
    except InputError:  # of a line without end
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
    lines, is_list = JsonLines(text.chunks, text.label), False
    source: JsonLines | JsonDocument = lines
    if text.file.suffix not in _LINES and (
        text.head.lstrip().startswith(b"[") or _is_document(lines)
    ):
        source = JsonDocument(text.chunks(), text.label)
        is_list = not source.is_record  # one object is a line of its own
    if is_list:
        text.options.refuse_others("encoding", "JSON", text.label)
    rows = json_rows(
        source, text.options.in_memory_rows, leave_out=text.options.bad_lines == "skip"
    )
    return table_of(text, rows, format="json" if is_list else "jsonl")


JSON = Reader("JSON", "encoding bad_lines", _read, knows=_knows)
