"""JSON lines -> typed columns, with the line each record stands on."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import InputError, MemoryLimitError
from kpca_apps.files.limits import (
    COPIES,
    MOST_EMPTY_CELLS,
    available_memory,
    require_columns,
    require_table,
)
from kpca_apps.files.names import one_line, unique_names

__all__ = ["looks_like_json_lines", "read_json_lines"]

_OBJECT = re.compile(rb'\s*\{\s*["}]')
_POINTER_BYTES = 8
_INT64 = range(-(2**63), 2**63)


def looks_like_json_lines(text: bytes) -> bool:
    r"""Whether text starts as a JSON object does.

    Examples
    --------
    >>> looks_like_json_lines(b'\n{"x": 1}\n'), looks_like_json_lines(b"x,y\n1,2\n")
    (True, False)
    """
    return _OBJECT.match(text) is not None


def read_json_lines(
    text: bytes, label: str
) -> tuple[pl.DataFrame, NDArray[np.int64], tuple[str, ...]]:
    r"""Read one JSON object a line into columns, in the order keys first appear.

    A column of numbers or booleans is typed so; any other holds strings, with nested or mixed
    values as JSON text. A missing key and ``null`` are null.

    Parameters
    ----------
    text : bytes
        The file in UTF-8.
    label : str
        Its name for messages.

    Returns
    -------
    frame : DataFrame
        The columns.
    lines : (n,) int array
        1-based line of each record.
    notes : tuple of str
        Sentences on names that had to be changed.

    Raises
    ------
    InputError
        If a line is not one JSON object, repeats a key, there are too many different keys or
        cells without a value, or no line holds a key.
    MemoryLimitError
        If the table would not fit into memory.

    Examples
    --------
    >>> frame, lines, _ = read_json_lines(b'{"x": 1}\n\n{"x": 2.5, "y": "a"}\n', "t.jsonl")
    >>> frame.rows(), lines.tolist()
    ([(1.0, None), (2.5, 'a')], [1, 3])
    """
    # Values from the first row that has the key to the last so far.
    columns: dict[str, list[Any]] = {}
    starts: dict[str, int] = {}
    lines: list[int] = []
    most_cells, n_values = available_memory() // (COPIES * _POINTER_BYTES), 0
    for number, raw in enumerate(io.BytesIO(text), 1):
        line = raw.decode("utf-8").removesuffix("\n")
        if not line.strip():
            continue
        for key, value in _parse(line, number, label).items():
            start = starts.setdefault(key, len(lines))
            column = columns.setdefault(key, [])
            n_values += 1
            # Of the whole table: each key gets a cell in every row, before and after its own too.
            n_cells = (len(lines) + 1) * len(columns)
            if n_cells > most_cells:
                raise MemoryLimitError(
                    f"{label}: line {number}: {len(columns)} different keys make the table larger "
                    "than memory; use fewer keys, or split the file."
                )
            column.extend([None] * (len(lines) - start - len(column)))
            column.append(value)
        require_columns(label, len(columns), number)
        lines.append(number)
        _require_values(label, number, len(lines), len(columns), n_values)
    if not columns:
        raise InputError(f"{label}: no line holds a key and a value; there is nothing to screen.")
    require_table(label, len(lines), len(columns))
    names, notes = unique_names(columns)
    series = []
    for name, (key, column) in zip(names, columns.items(), strict=True):
        before = [None] * starts[key]
        after = [None] * (len(lines) - starts[key] - len(column))
        series.append(_typed(name, [*before, *column, *after]))
    return pl.DataFrame(series), np.array(lines, dtype=np.int64), tuple(notes)


def _require_values(label: str, line: int, n_rows: int, n_keys: int, n_values: int) -> None:
    """Refuse rows whose keys hardly ever are the same."""
    if n_rows * n_keys - n_values > MOST_EMPTY_CELLS:
        raise InputError(
            f"{label}: line {line}: {n_rows:,} rows of {n_keys:,} different keys leave more than "
            f"{MOST_EMPTY_CELLS:,} cells without a value; write what differs from row to row as a "
            "value, not as a key, or split the file."
        )


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


def _typed(name: str, values: Sequence[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds == {int} and all(value is None or value in _INT64 for value in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if kinds and kinds <= {int, float}:
        return pl.Series(name, [_as_float(value) for value in values], dtype=pl.Float64)
    return pl.Series(name, [_as_text(value) for value in values], dtype=pl.String)


def _as_float(value: float | None) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return float("inf") if value is not None and value > 0 else float("-inf")


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
