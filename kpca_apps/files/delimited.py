"""Delimited text -> columns of strings, with the line each row starts on.

Regular files (no quotes, or quotes exactly where they belong) are measured with array code and
cut by polars. Anything else goes through the standard library's reader, row by row, which is
slower and knows what to do with a stray quote.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.limits import require_memory
from kpca_apps.files.names import one_line, unique_names
from kpca_apps.files.sniffing import (
    DELIMITER_NAMES,
    ONE_COLUMN,
    header_is_missing,
    is_number,
    sniff_delimiter,
)

__all__ = ["CutText", "read_delimited"]

_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
_IS_SPACE = np.isin(np.arange(256), list(b" \t\n\r\v\f"))
# Bytes held at the same time: by array code and polars for a row (positions of its ends, counts),
# a cut and a cell; by the standard library's reader for a row and a cell, which are Python objects.
_ROW_BYTES, _CUT_BYTES, _CELL_BYTES = 64, 24, 40
_ROW_OBJECT, _CELL_OBJECT = 200, 80
_SEPARATOR_LINE = re.compile(rb'"?sep=([^\s"]|\t)"?\r?(?=\n)')

IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]


@dataclass(frozen=True)
class CutText:
    """A text table cut into cells.

    Attributes
    ----------
    frame : DataFrame
        String columns, cells exactly as in the file.
    lines : (n,) int array
        1-based line each row starts on.
    delimiter : str or None
        What cut the cells; ``None`` for a table of one column.
    notes : tuple of str
        Sentences that state what was guessed.
    """

    frame: pl.DataFrame
    lines: IntArray
    delimiter: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Rows:
    """Cells of the first row, the rest as a frame, and the line every row starts on."""

    first: list[str]
    body: pl.DataFrame
    lines: IntArray


def read_delimited(text: bytes, label: str, delimiter: str | None = None) -> CutText:
    r"""Cut a text table into columns of strings.

    Parameters
    ----------
    text : bytes
        The table in UTF-8.
    label : str
        The file's name for messages.
    delimiter : str, optional
        One character; sniffed by default. A space means runs of spaces.

    Returns
    -------
    CutText
        The cells, and how they were cut.

    Raises
    ------
    InputError
        If rows differ in their number of cells, a quote stays open, or there is no row of data.

    Examples
    --------
    >>> cut = read_delimited(b"name;size\n\nada;1,5\n", "people.csv")
    >>> cut.frame.columns, cut.frame.row(0), cut.lines.tolist()
    (['name', 'size'], ('ada', '1,5'), [3])
    """
    text, stated = _normalise_lines(text)
    sniffed = delimiter is None and stated is None
    cutter = delimiter or stated or sniff_delimiter(text)
    if delimiter is not None:
        _refuse_useless(text, delimiter, label)
    if cutter == " ":
        text = _collapse_spaces(text)
    rows = _cut(text, cutter, label)
    names, frame, lines, notes = _name_columns(rows, label)
    if frame.height == 0:
        raise InputError(
            f"{label}: line {rows.lines[0]} is a header without rows; there is nothing to screen."
        )
    if sniffed and cutter not in (",", ONE_COLUMN):
        notes = [f"Cells are cut at the {DELIMITER_NAMES[cutter]} (found by itself).", *notes]
    frame.columns = names
    return CutText(frame, lines, None if cutter == ONE_COLUMN else cutter, tuple(notes))


def _normalise_lines(text: bytes) -> tuple[bytes, str | None]:
    """Old Macintosh line ends to newlines; Excel's ``sep=;`` line to an empty one."""
    if b"\n" not in text:
        text = text.replace(b"\r", b"\n")
    match = _SEPARATOR_LINE.match(text)
    return (text[match.end() :], match[1].decode("utf-8")) if match else (text, None)


def _collapse_spaces(text: bytes) -> bytes:
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", re.sub(rb" {2,}", b" ", text))


def _refuse_useless(text: bytes, delimiter: str, label: str) -> None:
    """Refuse a given delimiter that never occurs where another would cut the rows."""
    found = ONE_COLUMN if delimiter.encode("utf-8") in text else sniff_delimiter(text)
    if found != ONE_COLUMN:
        name = DELIMITER_NAMES.get(delimiter, f'delimiter "{one_line(delimiter)}"')
        raise InputError(
            f"{label}: the {name} given as --delimiter does not occur in the file; its rows look "
            f"cut at the {DELIMITER_NAMES[found]}: leave the option out."
        )


def _name_columns(rows: _Rows, label: str) -> tuple[list[str], pl.DataFrame, IntArray, list[str]]:
    """Take the first row for names, or for data where it holds nothing but numbers."""
    width = len(rows.first)
    if header_is_missing(rows.first):
        names = [f"column_{number}" for number in range(1, width + 1)]
        schema = {f"column_{i}": pl.String for i in range(1, width + 1)}
        first = pl.DataFrame([rows.first], schema=schema, orient="row")
        frame = pl.concat([first, rows.body]) if rows.body.height else first
        note = f"Line {rows.lines[0]} holds numbers only: the columns are named column_1, ..."
        return names, frame, rows.lines, [note]
    if not any(name.strip() for name in rows.first):
        raise InputError(
            f"{label}: line {rows.lines[0]} should name the columns and is blank; add a header."
        )
    names, notes = unique_names(rows.first)
    numbers = [name for name in rows.first if is_number(name)]
    if 2 * len(numbers) >= width:
        notes.append(
            f'The names on line {rows.lines[0]} look like values ("{one_line(numbers[0])}"): if '
            "they are data, add a header line."
        )
    return names, rows.body, rows.lines[1:], notes


def _cut(text: bytes, delimiter: str, label: str) -> _Rows:
    rows = None
    if len(delimiter.encode("utf-8")) == 1 and delimiter != ONE_COLUMN:
        rows = _cut_regular(text, delimiter, label)
    return rows or _cut_exactly(text, delimiter, label)


def _cut_regular(text: bytes, delimiter: str, label: str) -> _Rows | None:
    """Cut with array code and polars; ``None`` where quotes are not regular."""
    _require_memory(text, delimiter, label)
    data = np.frombuffer(text, dtype=np.uint8)
    newlines = np.flatnonzero(data == _NEWLINE)
    cuts = np.flatnonzero(data == ord(delimiter))
    breaks = newlines
    if _QUOTE in data:
        inside = _inside_quotes(data, ord(delimiter))
        if inside is None:
            return None
        breaks, cuts = newlines[~inside[newlines]], cuts[~inside[cuts]]
    starts = np.concatenate(([0], breaks + 1))
    ends = np.concatenate((breaks, [data.size]))
    cells = np.diff(np.searchsorted(cuts, starts), append=cuts.size) + 1
    keep = _not_blank(data, starts, cells)
    if not keep.any():
        raise InputError(_nothing_but_blanks(label))
    lines = np.searchsorted(newlines, starts[keep]) + 1
    _refuse_ragged(cells[keep], lines, delimiter, label)
    head = int(np.argmax(keep))
    first = _first_row(text[starts[head] : ends[head]], delimiter, label, int(lines[0]))
    keep[head] = False
    body = _polars_cut(_kept_bytes(data, starts, ends, keep), delimiter, len(first))
    if body is None or body.shape != (lines.size - 1, len(first)):
        return None
    return _Rows(first, body, lines.astype(np.int64))


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


def _require_memory(text: bytes, delimiter: str, label: str, *, exactly: bool = False) -> None:
    """Refuse cells by the million in a small file: commas or newlines and nothing between them."""
    n_rows = text.count(b"\n") + 1
    n_cuts = text.count(delimiter.encode("utf-8"))
    n_cells = n_rows + n_cuts
    if exactly:
        # Texts of one character are shared, so only longer cells are objects of their own.
        n_bytes = n_rows * _ROW_OBJECT + n_cells * 16 + min(n_cells, len(text)) * _CELL_OBJECT
    else:
        n_bytes = n_rows * _ROW_BYTES + n_cuts * _CUT_BYTES + n_cells * _CELL_BYTES
    require_memory(label, n_bytes, copies=1)


def _not_blank(data: ByteArray, starts: IntArray, cells: IntArray) -> NDArray[np.bool_]:
    """Tell rows with more than one cell or a visible character."""
    # The last row may start behind the last byte, where there is nothing to see.
    begun = starts[starts < data.size]
    visible = np.zeros(starts.size, dtype=np.bool_)
    visible[: begun.size] = np.logical_or.reduceat(~_IS_SPACE[data], begun)
    return visible | (cells > 1)


def _first_row(row: bytes, delimiter: str, label: str, line: int) -> list[str]:
    try:
        return next(csv.reader([row.decode("utf-8")], delimiter=delimiter))
    except csv.Error as error:
        raise InputError(_cut_message(str(error), label, line)) from None


def _kept_bytes(
    data: ByteArray, starts: IntArray, ends: IntArray, keep: NDArray[np.bool_]
) -> bytes:
    """Bytes of the kept rows, without the carriage returns that end them."""
    mask = np.repeat(keep, np.diff(starts, append=data.size))
    last = ends[ends > starts] - 1
    mask[last[data[last] == _RETURN]] = False
    return data[mask].tobytes()


def _polars_cut(body: bytes, delimiter: str, width: int) -> pl.DataFrame | None:
    """Cut measured rows; ``None`` where polars sees them differently, which no file should show."""
    names = [f"column_{number}" for number in range(1, width + 1)]
    if not body:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
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


def _refuse_ragged(cells: IntArray, lines: IntArray, delimiter: str, label: str) -> None:
    odd = np.flatnonzero(cells != cells[0])
    if odd.size:
        row = odd[0]
        noun = "cell" if cells[row] == 1 else "cells"
        raise InputError(
            f"{label}: line {lines[row]} has {cells[row]} {noun} where line {lines[0]} has "
            f"{cells[0]}; put cells that contain a "
            f"{DELIMITER_NAMES.get(delimiter, one_line(delimiter))} in quotes, or repair the row."
        )


def _cut_exactly(text: bytes, delimiter: str, label: str) -> _Rows:
    """Cut row by row with the standard library's reader."""
    _require_memory(text, delimiter, label, exactly=True)
    file = io.StringIO(text.decode("utf-8"), newline="\n")
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    line = 1
    try:
        for row in reader:
            if row and not (len(row) == 1 and row[0].isspace()):
                rows.append(row)
                lines.append(line)
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(_cut_message(str(error), label, line)) from None
    if not rows:
        raise InputError(_nothing_but_blanks(label))
    starts = np.array(lines, dtype=np.int64)
    _refuse_ragged(np.array([len(row) for row in rows]), starts, delimiter, label)
    schema = {f"column_{number}": pl.String for number in range(1, len(rows[0]) + 1)}
    columns = list(zip(*rows[1:], strict=True)) or [()] * len(schema)
    body = pl.DataFrame(dict(zip(schema, columns, strict=True)), schema=schema)
    return _Rows(rows[0], body, starts)


def _nothing_but_blanks(label: str) -> str:
    return f"{label}: the file holds nothing but blank cells; it needs rows."


def _cut_message(error: str, label: str, line: int) -> str:
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
