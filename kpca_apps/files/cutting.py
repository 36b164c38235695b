"""Rows of delimited text -> cells, with the line each row starts on.

Regular text (no quotes, or quotes exactly where they belong) is measured with array code and cut
by polars. Anything else goes through the standard library's reader, row by row, which is slower
and knows what to do with a stray quote.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.limits import require_columns, require_memory
from kpca_apps.files.names import one_line
from kpca_apps.files.sniffing import DELIMITER_NAMES, ONE_COLUMN

__all__ = [
    "CutRows",
    "MeasuredRows",
    "cut_message",
    "cut_rows",
    "is_measurable",
    "measure_rows",
    "no_rows",
    "refuse_ragged",
]

_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
_IS_SPACE = np.isin(np.arange(256), list(b" \t\n\r\v\f"))
# Bytes held at the same time: by array code and polars for a row (positions of its ends, counts)
# and a cell; by the standard library's reader for a row and a cell, which are Python objects.
_ROW_BYTES, _CELL_BYTES = 64, 64
_ROW_OBJECT, _CELL_OBJECT = 200, 80
# Bytes of text whose cuts are counted at once.
_BLOCK = 1 << 20

IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]


@dataclass(frozen=True)
class CutRows:
    """Rows that are not blank, cut into cells.

    Attributes
    ----------
    frame : DataFrame
        String columns ``column_1``, ``column_2``, ..., cells exactly as in the text.
    lines : (n,) int array
        1-based line each row starts on.
    """

    frame: pl.DataFrame
    lines: IntArray


@dataclass(frozen=True)
class MeasuredRows:
    """Where the rows of regular text lie, blank ones too.

    Attributes
    ----------
    starts, ends : (n,) int array
        Bytes of each row, without the newline that ends it.
    cells : (n,) int array
        Number of its cells.
    keep : (n,) bool array
        Rows that are not blank.
    lines : (k,) int array
        1-based line each of the k rows that are not blank starts on.
    """

    starts: IntArray
    ends: IntArray
    cells: IntArray
    keep: NDArray[np.bool_]
    lines: IntArray


def cut_rows(text: bytes, delimiter: str, label: str, *, first_line: int = 1) -> CutRows:
    r"""Cut text into the cells of its rows; blank rows are left out.

    Parameters
    ----------
    text : bytes
        Whole rows in UTF-8.
    delimiter : str
        What cuts the cells.
    label : str
        The file's name for messages.
    first_line : int
        Line of the file the text begins on.

    Returns
    -------
    CutRows
        The cells and lines, all rows alike: none is taken for a header.

    Raises
    ------
    InputError
        If rows differ in their number of cells or have too many, a quote stays open, or all rows
        are blank.
    MemoryLimitError
        If the cells would not fit into memory.

    Examples
    --------
    >>> cut = cut_rows(b"ada;1\n\nbob;2\n", ";", "people.csv")
    >>> cut.frame.rows(), cut.lines.tolist()
    ([('ada', '1'), ('bob', '2')], [1, 3])
    """
    rows = _cut_regular(text, delimiter, label, first_line) if is_measurable(delimiter) else None
    return rows or _cut_exactly(text, delimiter, label, first_line)


def is_measurable(delimiter: str) -> bool:
    """Whether cells cut here can be measured: by one byte, and more than one in a row."""
    return len(delimiter.encode("utf-8")) == 1 and delimiter != ONE_COLUMN


def measure_rows(text: bytes, delimiter: str) -> MeasuredRows | None:
    r"""Find the rows of regular text.

    Parameters
    ----------
    text : bytes
        Whole rows in UTF-8.
    delimiter : str
        One character of one byte.

    Returns
    -------
    MeasuredRows or None
        ``None`` where quotes are not regular.

    Examples
    --------
    >>> measured = measure_rows(b'a,b\n\n"x\ny",2\n', ",")
    >>> measured.starts[measured.keep].tolist(), measured.lines.tolist()
    ([0, 5], [1, 3])
    """
    data = np.frombuffer(text, dtype=np.uint8)
    newlines = np.flatnonzero(data == _NEWLINE)
    is_cut = data == ord(delimiter)
    breaks = newlines
    if b'"' in text:
        inside = _inside_quotes(data, ord(delimiter))
        if inside is None:
            return None
        breaks = newlines[~inside[newlines]]
        is_cut &= ~inside
    starts = np.concatenate(([0], breaks + 1))
    ends = np.concatenate((breaks, [data.size]))
    cells = _counts(is_cut, starts) + 1
    keep = _not_blank(data, starts, cells)
    lines = np.searchsorted(newlines, starts[keep]) + 1
    return MeasuredRows(starts, ends, cells, keep, lines)


def refuse_ragged(
    cells: IntArray, lines: IntArray, delimiter: str, label: str, *, width: int, first_line: int
) -> None:
    """Refuse rows of too many cells, or not as many as the first row of the file has.

    Parameters
    ----------
    cells, lines : (n,) int array
        Of each row.
    delimiter : str
        What cuts the cells.
    label : str
        The file's name for messages.
    width, first_line : int
        Cells and line of the first row.

    Raises
    ------
    InputError
        Naming the line of the first such row.
    """
    require_columns(label, width, first_line)
    odd = np.flatnonzero(cells != width)
    if odd.size:
        row = odd[0]
        raise _ragged(int(cells[row]), int(lines[row]), delimiter, label, width, first_line)


def _ragged(
    n_cells: int, line: int, delimiter: str, label: str, width: int, first_line: int
) -> InputError:
    noun = "cell" if n_cells == 1 else "cells"
    return InputError(
        f"{label}: line {line} has {n_cells} {noun} where line {first_line} has {width}; put cells "
        f"that contain a {DELIMITER_NAMES.get(delimiter, one_line(delimiter))} in quotes, or "
        "repair the row."
    )


def no_rows(label: str) -> InputError:
    """Return the error for text in which every row is blank."""
    return InputError(f"{label}: the file holds nothing but blank cells; it needs rows.")


def cut_message(error: str, label: str, line: int) -> str:
    """Say what the standard library's reader could not read, and what to do.

    Examples
    --------
    >>> cut_message("unexpected end of data", "t.csv", 3)
    't.csv: the row on line 3 opens a quote that is never closed; close it.'
    """
    if "field larger than" in error:
        return (
            f"{label}: the row on line {line} has a cell of more than {csv.field_size_limit():,} "
            "characters; shorten it, or look for a quote that is never closed."
        )
    if "expected after" in error:
        return (
            f"{label}: the row on line {line} has text after a closing quote; "
            'double a quote inside a quoted cell ("").'
        )
    if "new-line character" in error:
        return f"{label}: the row on line {line} holds a carriage return; put its cell in quotes."
    return f"{label}: the row on line {line} opens a quote that is never closed; close it."


def _cut_regular(text: bytes, delimiter: str, label: str, first_line: int) -> CutRows | None:
    """Cut with array code and polars; ``None`` where quotes are not regular."""
    first = text[: text.find(b"\n") + 1]
    if b'"' not in first:
        require_columns(label, first.count(delimiter.encode("utf-8")) + 1, first_line)
    # Positions of the rows, before they are found; then cells, before they are cut.
    require_memory(label, (text.count(b"\n") + 1) * _ROW_BYTES, copies=1)
    rows = measure_rows(text, delimiter)
    if rows is None:
        return None
    if not rows.keep.any():
        raise no_rows(label)
    lines, cells = rows.lines + (first_line - 1), rows.cells[rows.keep]
    width = int(cells[0])
    refuse_ragged(cells, lines, delimiter, label, width=width, first_line=int(lines[0]))
    require_memory(label, lines.size * (_ROW_BYTES + width * _CELL_BYTES), copies=1)
    frame = _polars_cut(_kept_bytes(text, rows), delimiter, width)
    if frame is None or frame.shape != (lines.size, width):
        return None
    return CutRows(frame, lines.astype(np.int64))


def _inside_quotes(data: ByteArray, delimiter: int) -> NDArray[np.bool_] | None:
    """Mask of quoted bytes; ``None`` unless every quote opens, closes or doubles a cell's.

    Quotes alternate between opening and closing when a doubled quote counts as both, so a
    running parity finds the inside; it can be trusted if all stand where RFC 4180 has them.
    """
    is_quote = data == _QUOTE
    quotes = np.flatnonzero(is_quote)
    if quotes.size % 2:
        return None
    opening, closing = quotes[0::2], quotes[1::2]
    edge = np.array([_NEWLINE], dtype=np.uint8)
    padded = np.concatenate((edge, data, edge, edge))
    before, after, second = padded[opening], padded[closing + 2], padded[closing + 3]
    ends_row = (after == _NEWLINE) | ((after == _RETURN) & (second == _NEWLINE))
    opens = (before == delimiter) | (before == _NEWLINE) | (before == _QUOTE)
    closes = (after == delimiter) | (after == _QUOTE) | ends_row
    if not (opens.all() and closes.all()):
        return None
    return (np.cumsum(is_quote, dtype=np.uint8) & 1).astype(np.bool_)


def _counts(mask: NDArray[np.bool_], starts: IntArray) -> IntArray:
    """Count what is set from each start to the next, in blocks: a list of all places is large."""
    before = np.zeros(starts.size, dtype=np.int64)
    total = 0
    # One past the end: the last row may start behind the last byte.
    for begin in range(0, mask.size + 1, _BLOCK):
        places = np.flatnonzero(mask[begin : begin + _BLOCK])
        first, last = np.searchsorted(starts, (begin, begin + _BLOCK))
        before[first:last] = total + np.searchsorted(places, starts[first:last] - begin)
        total += places.size
    return np.diff(before, append=total)


def _not_blank(data: ByteArray, starts: IntArray, cells: IntArray) -> NDArray[np.bool_]:
    """Tell rows with more than one cell or a visible character."""
    several: NDArray[np.bool_] = cells > 1
    # The last row may start behind the last byte, where there is nothing to see.
    begun = starts[starts < data.size]
    if several[: begun.size].all():
        return several
    visible = np.zeros(starts.size, dtype=np.bool_)
    visible[: begun.size] = np.logical_or.reduceat(~_IS_SPACE[data], begun)
    return visible | several


def _kept_bytes(text: bytes, rows: MeasuredRows) -> bytes:
    """Bytes of the rows that are not blank, without the carriage returns that end them."""
    data = np.frombuffer(text, dtype=np.uint8)
    last = rows.ends[rows.ends > rows.starts] - 1
    returns = last[data[last] == _RETURN]
    if not returns.size and np.all(rows.keep | (rows.starts == data.size)):
        return text
    mask = np.repeat(rows.keep, np.diff(rows.starts, append=data.size))
    mask[returns] = False
    return data[mask].tobytes()


def _polars_cut(body: bytes, delimiter: str, width: int) -> pl.DataFrame | None:
    """Cut measured rows; ``None`` where polars sees them differently, which no file should show."""
    names = [f"column_{number}" for number in range(1, width + 1)]
    try:
        frame = pl.read_csv(
            body,
            has_header=False,
            separator=delimiter,
            quote_char='"' if b'"' in body else None,
            schema=dict.fromkeys(names, pl.String),
        )
    except pl.exceptions.PolarsError:
        return None
    return frame.fill_null("")


def _cut_exactly(text: bytes, delimiter: str, label: str, first_line: int) -> CutRows:
    """Cut row by row with the standard library's reader."""
    rows: list[list[str]] = []
    lines: list[int] = []
    for line, row in _read_rows(text, delimiter, label, first_line):
        if not rows:
            require_columns(label, len(row), line)
            _require_objects(text, delimiter, label)
        elif len(row) != len(rows[0]):
            raise _ragged(len(row), line, delimiter, label, len(rows[0]), lines[0])
        rows.append(row)
        lines.append(line)
    if not rows:
        raise no_rows(label)
    names = [f"column_{number}" for number in range(1, len(rows[0]) + 1)]
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    frame = pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))
    return CutRows(frame, np.array(lines, dtype=np.int64))


def _read_rows(
    text: bytes, delimiter: str, label: str, first_line: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the line it starts on."""
    decoded = (line.decode("utf-8") for line in io.BytesIO(text))
    reader = csv.reader(decoded, delimiter=delimiter, strict=True)
    line = first_line
    try:
        for row in reader:
            if row and not (len(row) == 1 and row[0].isspace()):
                yield line, row
            line = reader.line_num + first_line
    except csv.Error as error:
        raise InputError(cut_message(str(error), label, line)) from None


def _require_objects(text: bytes, delimiter: str, label: str) -> None:
    """Refuse cells by the million in a small file: each is an object of its own."""
    n_rows = text.count(b"\n") + 1
    n_cells = n_rows + text.count(delimiter.encode("utf-8"))
    # Texts of one character are shared, so only longer cells take more than a pointer.
    n_objects = min(n_cells, len(text))
    n_bytes = n_rows * _ROW_OBJECT + n_cells * 16 + n_objects * _CELL_OBJECT
    require_memory(label, n_bytes, copies=1)
