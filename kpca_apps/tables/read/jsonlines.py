"""JSON, an object a line or a list of them -> typed Arrow columns, with each record's line.

What type a column has is known with its last value, so a file is gone through twice: once to check
it and for the types of its values, once for the rows. Of a small file the records are kept.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, Literal

import pyarrow as pa

from kpca_apps.errors import InputError
from kpca_apps.names import one_line, unique_names
from kpca_apps.system import limits
from kpca_apps.system.limits import COPIES, MOST_EMPTY_CELLS, long_row, require_columns
from kpca_apps.tables.read.bad_lines import BadLines

__all__ = ["JSON_LIST", "JSON_OBJECT", "json_lines", "json_pieces"]

JSON_OBJECT = re.compile(rb'\s*\{\s*["}]')
JSON_LIST = re.compile(rb"\s*\[\s*[{\]]")
_NO_TEXT = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as they are decoded
_INT64 = range(-(2**63), 2**63)
# Rows, cells and bytes of a piece; a few rows at least, as each column has its price.
_PIECE_ROWS, _PIECE_CELLS, _PIECE_BYTES, _LEAST_ROWS = 1 << 13, 1 << 16, 1 << 22, 1 << 6
# A line with more brackets may be nested nearly as deeply as Python goes; levels to spare there.
_MANY_LEVELS, _SPARE_LEVELS = 100, 20


def json_pieces(
    records_of: Callable[[Collection[str]], Iterator[tuple[list[str], list[int]]]],
    label: str,
    keep_rows: float,
    names: list[str],
    notes: list[str],
    *,
    unit: Literal["line", "record"] = "line",
    leave_out: bool = False,
) -> Iterator[pa.Table]:
    """Yield JSON objects as rows; the last column is their lines, if these are what numbers them.

    Keys name the columns in the order they first appear; `names` and `notes` are filled in. A
    column of numbers or booleans is typed so; any other holds strings, with nested or mixed values
    as JSON text. A missing key and ``null`` are null. `records_of` is told the keys so far, and
    yields texts of objects and their numbers; it is called once, or twice if there are more than
    `keep_rows`, or than fit into memory. With `leave_out`, what is no object is left out and listed
    in the notes.
    """
    bad, bad_lines = BadLines(label), set()
    kinds: dict[str, set[type]] = {}
    kept: list[tuple[list[dict[str, Any]], list[int]]] = []
    n_rows = n_values = n_bytes = width = 0
    is_kept, most_bytes = True, limits.available_memory() // COPIES
    for lines, numbers in records_of(kinds):
        records, kept_numbers = [], []
        for line, number in zip(lines, numbers, strict=True):
            try:
                record = _checked(line, f"{unit} {number}", label)
            except InputError as error:
                if not leave_out:
                    raise
                cause = str(error).removeprefix(f"{label}: {unit} {number}").split(";")[0]
                bad.leave_out(number, cause.lstrip(",: "))
                bad_lines.add(number)
                continue
            kept_numbers.append(number)
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
        n_bytes += sum(map(len, lines))
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
    types = {}
    for key, of_key in kinds.items():
        types[key] = pa.string()
        if (of_key := of_key - {type(None)}) and of_key <= {int, float}:
            types[key] = pa.int64() if of_key == {int} else pa.float64()
        elif of_key == {bool}:
            types[key] = pa.bool_()
    found_again = kept if is_kept else _again(records_of(kinds), label, bad_lines)
    for records, numbers in found_again:
        present = set().union(*records)
        arrays = [
            _array([record.get(key) for record in records], kind)
            if key in present
            else pa.nulls(len(records), kind)
            for key, kind in types.items()
        ]
        lines_too = ["line"] if unit == "line" else []
        arrays += [pa.array(numbers, pa.int64())] * len(lines_too)
        yield pa.Table.from_arrays(arrays, names=[*names, *lines_too])


def _again(
    records: Iterator[tuple[list[str], list[int]]], label: str, bad: Collection[int]
) -> Iterator[tuple[list[dict[str, Any]], list[int]]]:
    """Yield records that were checked one by one, so are valid as one array too; not `bad` ones."""
    for lines, numbers in records:
        good = [place for place, number in enumerate(numbers) if number not in bad]
        try:
            found = json.loads(f"[{','.join(lines[place] for place in good)}]")
        except json.JSONDecodeError:
            raise InputError(
                f"{label}: the file was changed while it was being read; run again once it is "
                "complete."
            ) from None
        yield found, [numbers[place] for place in good]


def json_lines(
    chunks: Iterable[bytes], label: str, keys: Collection[str]
) -> Iterator[tuple[list[str], list[int]]]:
    """Yield lines that are not blank, and their numbers: fewer together the more keys there are."""
    held, number, n_bytes = b"", 0, 0
    lines: list[str]
    numbers: list[int]
    lines, numbers = [], []
    for chunk in chain(chunks, [b""]):
        held += chunk
        stop = held.rfind(b"\n") + 1 if chunk else len(held)
        for raw in io.BytesIO(held[:stop]):
            number += 1
            if len(raw) > limits.LONGEST_ROW:
                raise long_row(label, number)
            # Bytes that are no text are told of with their record.
            line = raw.decode("utf-8", "surrogateescape").removesuffix("\n")
            if line.strip():
                lines.append(line)
                numbers.append(number)
                n_bytes += len(raw)
                n_rows = min(_PIECE_ROWS, max(_PIECE_CELLS // (len(keys) or 1), _LEAST_ROWS))
                if len(lines) >= n_rows or n_bytes >= _PIECE_BYTES:
                    yield lines, numbers
                    lines, numbers, n_bytes = [], [], 0
        held = held[stop:]
        if len(held) > limits.LONGEST_ROW:
            raise long_row(label, number + 1)
    if lines:
        yield lines, numbers


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return record


# Made once: `json.loads` would make one for every line.
_decode = json.JSONDecoder(object_pairs_hook=_distinct).decode


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


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.float64():
        values = [value if type(value) is float else _as_float(value) for value in values]
    elif kind == pa.string():
        values = [
            value
            if value is None or isinstance(value, str)
            else json.dumps(value, ensure_ascii=False)
            for value in values
        ]
    return pa.array(values, kind, from_pandas=False)


def _as_float(value: int | None) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return float("inf") if value is not None and value > 0 else float("-inf")
