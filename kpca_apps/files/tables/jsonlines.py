"""JSON lines -> typed Arrow columns, with the line each record stands on.

What type a column has is known with its last value, so a file is gone through twice: once for the
keys and the types of their values, once for the rows. Of a small file the values are kept.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from kpca_apps.errors import InputError
from kpca_apps.files import limits
from kpca_apps.files.limits import MOST_EMPTY_CELLS, long_row, require_columns
from kpca_apps.files.names import one_line, unique_names

__all__ = ["JsonLines", "looks_like_json_lines"]

_OBJECT = re.compile(rb'\s*\{\s*["}]')
_INT64 = range(-(2**63), 2**63)
# Rows and cells of a piece.
_PIECE_ROWS, _PIECE_CELLS = 1 << 13, 1 << 16

# Values of each key, and the line of each row.
_Piece = tuple[dict[str, list[Any]], list[int]]


def looks_like_json_lines(text: bytes) -> bool:
    """Whether text starts as a JSON object does."""
    return _OBJECT.match(text) is not None


class JsonLines:
    """One JSON object a line: a row, whose keys name the columns in the order they first appear.

    A column of numbers or booleans is typed so; any other holds strings, with nested or mixed
    values as JSON text. A missing key and ``null`` are null.

    `chunks` returns the text in UTF-8, and is called once, or twice if it has more rows than
    `keep_rows`.
    """

    def __init__(self, chunks: Callable[[], Iterable[bytes]], label: str, keep_rows: float) -> None:
        self.names: list[str] = []
        self.notes: list[str] = []
        self._chunks, self._label, self._keep_rows = chunks, label, keep_rows

    def pieces(self) -> Iterator[pa.Table]:
        """Yield the rows, the line of each in the last column."""
        kinds: dict[str, set[type]] = {}
        kept: list[_Piece] = []
        n_rows = 0
        for columns, lines in self._read():
            n_rows += len(lines)
            kept = [*kept, (columns, lines)] if n_rows <= self._keep_rows else []
            for key, values in columns.items():
                kinds.setdefault(key, set()).update(map(_kind, values))
        if not kinds:
            what = "no line holds a key and a value" if n_rows else "the file is empty"
            raise InputError(f"{self._label}: {what}; there is nothing to screen.")
        names, notes = unique_names(kinds)
        self.names += names
        self.notes += notes
        types = {key: _column_type(of_key - {type(None)}) for key, of_key in kinds.items()}
        for columns, lines in kept if n_rows <= self._keep_rows else self._read():
            arrays = [
                _array(columns[key], kind) if key in columns else pa.nulls(len(lines), kind)
                for key, kind in types.items()
            ]
            lines_array = pa.array(lines, pa.int64())
            yield pa.Table.from_arrays([*arrays, lines_array], names=[*self.names, "line"])

    def _read(self) -> Iterator[_Piece]:
        """Yield the values of some rows after the others."""
        columns: dict[str, list[Any]] = {}
        lines: list[int] = []
        keys: set[str] = set()
        n_rows = n_values = 0
        for number, line in self._lines():
            record = _parse(line, number, self._label)
            for key, value in record.items():
                column = columns.setdefault(key, [])
                column.extend([None] * (len(lines) - len(column)))
                column.append(value)
            keys.update(record)
            require_columns(self._label, len(keys), number)
            lines.append(number)
            n_rows, n_values = n_rows + 1, n_values + len(record)
            if n_rows * len(keys) - n_values > MOST_EMPTY_CELLS:
                raise InputError(
                    f"{self._label}: line {number}: {n_rows:,} rows of {len(keys):,} different "
                    f"keys leave more than {MOST_EMPTY_CELLS:,} cells without a value; write what "
                    "differs from row to row as a value, not as a key, or split the file."
                )
            if len(lines) == _PIECE_ROWS or len(lines) * len(columns) >= _PIECE_CELLS:
                yield _padded(columns, len(lines)), lines
                columns, lines = {}, []
        if lines:
            yield _padded(columns, len(lines)), lines

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines that are not blank, with their numbers."""
        held, number = b"", 0
        for chunk in chain(self._chunks(), [b""]):
            held += chunk
            stop = held.rfind(b"\n") + 1 if chunk else len(held)
            for raw in io.BytesIO(held[:stop]):
                number += 1
                if len(raw) > limits.LONGEST_ROW:
                    raise long_row(self._label, number)
                line = raw.decode("utf-8").removesuffix("\n")
                if line.strip():
                    yield number, line
            held = held[stop:]
            if len(held) > limits.LONGEST_ROW:
                raise long_row(self._label, number + 1)


def _padded(columns: dict[str, list[Any]], n_rows: int) -> dict[str, list[Any]]:
    """Fill in what is missing below the last value of each column."""
    for column in columns.values():
        column.extend([None] * (n_rows - len(column)))
    return columns


def _parse(line: str, number: int, label: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=_distinct)
        if r"\ud" in line.lower():
            json.dumps(record, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise InputError(f"{label}: line {number} is nested too deeply; flatten it.") from None
    except UnicodeEncodeError:
        raise InputError(f"{label}: line {number} holds half a surrogate pair; fix it.") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{label}: line {number}, column {error.colno}: not JSON ({error.msg}); write one "
            "object a line."
        ) from None
    except ValueError as error:
        raise InputError(f"{label}: line {number}: {one_line(str(error))}; fix it.") from None
    if not isinstance(record, dict):
        raise InputError(f"{label}: line {number} is not a JSON object; write one object a line.")
    return record


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return record


def _kind(value: Any) -> type:
    """Type of a value; integers that 64 bits do not hold are floats."""
    return float if type(value) is int and value not in _INT64 else type(value)


def _column_type(kinds: set[type]) -> pa.DataType:
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds and kinds <= {int, float} else pa.string()


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.float64():
        values = [_as_float(value) for value in values]
    elif kind == pa.string():
        values = [_as_text(value) for value in values]
    return pa.array(values, kind, from_pandas=False)


def _as_float(value: float | None) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return float("inf") if value is not None and value > 0 else float("-inf")


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
