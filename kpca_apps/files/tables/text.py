"""Delimited text -> Arrow tables of strings, with the line each row starts on.

Text comes in blocks of whole rows. Where quotes stand as RFC 4180 has them, array code finds the
rows and pyarrow cuts them. Any other block goes through the standard library's reader, row by row,
which is slower and knows what to do with a stray quote, or on which line to give up.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Generator, Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import ArrayLike, NDArray

from kpca_apps.errors import InputError
from kpca_apps.files import limits
from kpca_apps.files.limits import long_row, require_columns
from kpca_apps.files.names import one_line, unique_names
from kpca_apps.files.tables.sniffing import (
    DELIMITER_NAMES,
    ONE_COLUMN,
    header_is_missing,
    is_number,
    sniff_delimiter,
)

__all__ = ["HEAD_BYTES", "DelimitedText", "with_newlines"]

HEAD_BYTES = 1 << 20
"""Bytes at the head of a text that suffice to choose what cuts it."""

_SEPARATOR_LINE = re.compile(rb'"?sep=([^\s"]|\t)"?\r?(?=\n)')
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
_MARK = b"\xef\xbb\xbf"
_IS_VISIBLE = ~np.isin(np.arange(256), list(b" \t\n\r\v\f"))
# Text without the end of a row is held for so long before rows are looked for one by one.
_WAIT = 1 << 23
# Cells that are cut one by one and handed on together.
_PIECE_CELLS = 1 << 18

IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]


def with_newlines(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the head of a text and all of its chunks; lines of an old Macintosh end as others."""
    chunks, head = iter(chunks), b""
    # A newline that does not come within the longest row does not come.
    while len(head) < HEAD_BYTES or (b"\n" not in head and len(head) <= limits.LONGEST_ROW):
        if not (chunk := next(chunks, b"")):
            break
        head += chunk
    if b"\n" in head or b"\r" not in head:
        return head, chain([head], chunks)
    rest = (chunk.replace(b"\r", b"\n") for chunk in chunks)
    head = head.replace(b"\r", b"\n")
    return head, chain([head], rest)


class DelimitedText:
    """A text table on its way in, from chunks of UTF-8 and its first `HEAD_BYTES`.

    `pieces` are its rows as strings, the line of each in the last column; `names` are known with
    the first of them, `notes` state what was guessed.
    """

    def __init__(
        self, head: bytes, chunks: Iterable[bytes], delimiter: str | None, label: str
    ) -> None:
        self.names: list[str] = []
        self.notes: list[str] = []
        match = _SEPARATOR_LINE.match(head)
        # The newline that ends Excel's line ``sep=;`` stays, as a blank line.
        self._skip = match.end() if match else 0
        stated = match[1].decode("utf-8") if match else None
        self._delimiter = delimiter or stated or sniff_delimiter(head)
        # None for a table of one column.
        self.delimiter = None if self._delimiter == ONE_COLUMN else self._delimiter
        if not (delimiter or stated) and self._delimiter not in (",", ONE_COLUMN):
            name = DELIMITER_NAMES[self._delimiter]
            self.notes.append(f"Cells are cut at the {name} (found by itself).")
        self._head, self._chunks, self._label = head, chunks, label
        self._is_given = delimiter is not None
        self._line, self._first_line, self._n_rows = 1, 0, 0

    def pieces(self) -> Iterator[pa.Table]:
        """Yield the rows."""
        held, is_text, is_cut = b"", False, not self._is_given
        skip = self._skip
        for chunk in chain(self._chunks, [b""]):
            is_last = not chunk
            is_text = is_text or not (is_last or chunk.isspace())
            held = held + chunk[skip:] if held else chunk[skip:]
            skip = max(skip - len(chunk), 0)
            is_cut = is_cut or self._delimiter.encode("utf-8") in held
            stop = len(held) if is_last else _last_row_end(held)
            n_lines = held.count(b"\n", 0, stop)
            rows = self._regular_rows(held[:stop], n_lines) if stop else None
            if rows is not None:
                yield from [rows] if rows.num_rows else []
            elif stop or len(held) > _WAIT:
                stop = yield from self._rows_one_by_one(held, is_last=is_last)
                n_lines = held.count(b"\n", 0, stop)
            self._line += n_lines
            if len(held) - stop > limits.LONGEST_ROW:
                raise long_row(self._label, self._line)
            held = held[stop:]
        if not is_text:
            raise InputError(f"{self._label}: the file is empty; it needs a header and rows.")
        if not self.names:
            raise InputError(
                f"{self._label}: the file holds nothing but blank cells; it needs rows."
            )
        if not is_cut:
            self._refuse_useless()
        if not self._n_rows:
            raise InputError(
                f"{self._label}: line {self._first_line} is a header without rows; there is "
                "nothing to screen."
            )

    def _regular_rows(self, text: bytes, n_lines: int) -> pa.Table | None:
        """Cut whole rows with pyarrow; ``None`` where it cannot be trusted."""
        cut = self._delimiter.encode("utf-8")
        if len(cut) > 1:
            return None
        if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
            return None
        text = collapse_spaces(text) if cut == b" " else text
        if len(self.names) > 1 and b'"' not in text and len(text) <= limits.LONGEST_ROW:
            # Nearly always there is a row on every line; a blank one is left out, or an error.
            n_rows = n_lines + (not text.endswith(b"\n"))
            rows = self._cut(text, np.arange(self._line, self._line + n_rows))
            return rows or self._measured_rows(text, cut)
        return self._measured_rows(text, cut)

    def _measured_rows(self, text: bytes, cut: bytes) -> pa.Table | None:
        """Cut whole rows once array code has found them, if quotes are regular."""
        if text.isspace() and cut not in text:
            return pa.table({})
        data = np.frombuffer(text, dtype=np.uint8)
        newlines = breaks = np.flatnonzero(data == _NEWLINE)
        if is_quoted := b'"' in text:
            inside = _inside_quotes(data, ord(cut))
            if inside is None:
                return None
            breaks = newlines[~inside[newlines]]
        starts = np.concatenate(([0], breaks[: np.searchsorted(breaks, data.size - 1)] + 1))
        lengths = np.diff(starts, append=data.size)
        keep = _not_blank(data, starts, cut)
        lines = self._line + np.searchsorted(newlines, starts[keep])
        if not keep.all():
            data, lengths = data[np.repeat(keep, lengths)], lengths[keep]
        if lengths.max() > limits.LONGEST_ROW:
            raise long_row(self._label, int(lines[lengths.argmax()]))
        if not self.names:
            first = data[: lengths[0]].tobytes()
            if not self._take_header(self._cells(first, int(lines[0])), int(lines[0])):
                data, lines = data[lengths[0] :], lines[1:]
        return self._cut(data, lines, quotes=is_quoted, newlines=breaks.size != newlines.size)

    def _cut(
        self,
        text: bytes | ByteArray,
        lines: IntArray,
        *,
        quotes: bool = False,
        newlines: bool = False,
    ) -> pa.Table | None:
        """Cut rows, one for each line; ``None`` where pyarrow finds others."""
        if not lines.size:
            return pa.table({})
        if bytes(text[: len(_MARK)]) == _MARK:
            # Pyarrow takes one off, also where a cell begins with it.
            text = _MARK + bytes(text)
        try:
            table = pc.read_csv(
                pa.py_buffer(text),
                pc.ReadOptions(
                    column_names=self.names, block_size=len(text) + 1, use_threads=False
                ),
                pc.ParseOptions(
                    delimiter=self._delimiter,
                    quote_char='"' if quotes else False,
                    newlines_in_values=newlines,
                ),
                pc.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.string()), check_utf8=False
                ),
            )
        except pa.ArrowInvalid:
            return None
        return self._piece(table, lines) if table.num_rows == lines.size else None

    def _rows_one_by_one(self, text: bytes, *, is_last: bool) -> Generator[pa.Table, None, int]:
        """Cut rows with the standard library's reader; return how many bytes they are."""
        end = len(text) if is_last else text.rfind(b"\n") + 1
        even = collapse_spaces if self._delimiter == " " else bytes
        read = (0, self._line)

        def physical_lines() -> Iterator[str]:
            nonlocal read
            for raw in io.BytesIO(text[:end]):
                read = (read[0] + len(raw), read[1] + 1)
                yield even(raw).decode("utf-8")

        rows: list[list[str]] = []
        lines: list[int] = []
        start, line = read
        try:
            for row in csv.reader(physical_lines(), delimiter=self._delimiter, strict=True):
                if read[0] - start > limits.LONGEST_ROW:
                    raise long_row(self._label, line)
                if (len(row) > 1 or not text[start : read[0]].isspace()) and (
                    self.names or self._take_header(row, line)
                ):
                    self._require_width(len(row), line)
                    rows.append(row)
                    lines.append(line)
                    if len(rows) * len(row) >= _PIECE_CELLS:
                        yield self._made(rows, lines)
                        rows, lines = [], []
                start, line = read
        except csv.Error as error:
            if is_last or "unexpected end" not in str(error):
                raise InputError(_cut_message(str(error), self._label, line)) from None
        if rows:
            yield self._made(rows, lines)
        return start

    def _made(self, rows: list[list[str]], lines: list[int]) -> pa.Table:
        arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
        return self._piece(pa.Table.from_arrays(arrays, names=self.names), lines)

    def _piece(self, table: pa.Table, lines: ArrayLike) -> pa.Table:
        self._n_rows += table.num_rows
        return table.append_column("line", pa.array(lines, pa.int64()))

    def _cells(self, text: bytes, line: int) -> list[str]:
        """Cut one row."""
        rows = csv.reader(
            io.StringIO(text.decode("utf-8"), newline=""), delimiter=self._delimiter, strict=True
        )
        try:
            return next(rows)
        except csv.Error as error:
            raise InputError(_cut_message(str(error), self._label, line)) from None

    def _require_width(self, n_cells: int, line: int) -> None:
        if n_cells != len(self.names):
            noun = "cell" if n_cells == 1 else "cells"
            name = DELIMITER_NAMES.get(self._delimiter, one_line(self._delimiter))
            raise InputError(
                f"{self._label}: line {line} has {n_cells} {noun} where line {self._first_line} "
                f"has {len(self.names)}; put cells that contain a {name} in quotes, or repair the "
                "row."
            )

    def _take_header(self, cells: list[str], line: int) -> bool:
        """Take the first row for names; return whether it is data, and the names are made up."""
        require_columns(self._label, len(cells), line)
        self._first_line = line
        if header_is_missing(cells):
            self.names += [f"column_{number + 1}" for number in range(len(cells))]
            note = f"Line {line} holds numbers only: the columns are named column_1, ..."
            self.notes.append(note)
            return True
        if not any(name.strip() for name in cells):
            raise InputError(
                f"{self._label}: line {line} should name the columns and is blank; add a header."
            )
        names, notes = unique_names(cells)
        self.names += names
        self.notes += notes
        numbers = [name for name in cells if is_number(name)]
        if 2 * len(numbers) >= len(cells):
            self.notes.append(
                f'The names on line {line} look like values ("{one_line(numbers[0])}"): if '
                "they are data, add a header line."
            )
        return False

    def _refuse_useless(self) -> None:
        """Refuse a given delimiter that never occurs where another would cut the rows."""
        found = sniff_delimiter(self._head[self._skip :])
        if found != ONE_COLUMN:
            given = f'delimiter "{one_line(self._delimiter)}"'
            raise InputError(
                f"{self._label}: the {DELIMITER_NAMES.get(self._delimiter, given)} given as "
                "--delimiter does not occur in the file; its rows look cut at the "
                f"{DELIMITER_NAMES[found]}: leave the option out."
            )


def collapse_spaces(text: bytes) -> bytes:
    """Make one space of each run of spaces, and none of those that begin or end a line."""
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", re.sub(rb" {2,}", b" ", text))


def _last_row_end(text: bytes) -> int:
    """Bytes up to the last newline that stands outside quotes, if quotes are regular."""
    end = text.rfind(b"\n")
    if b'"' not in text or text.count(b'"', 0, end + 1) % 2 == 0:
        return end + 1
    data = np.frombuffer(text, dtype=np.uint8)
    inside = np.cumsum(data == _QUOTE, dtype=np.uint8) & 1
    outside = np.flatnonzero((data == _NEWLINE) & (inside == 0))
    return int(outside[-1]) + 1 if outside.size else 0


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


def _not_blank(data: ByteArray, starts: IntArray, cut: bytes) -> NDArray[np.bool_]:
    """Tell rows with more than one cell or a visible character."""
    counts = _IS_VISIBLE.copy()
    counts[ord(cut)] = True
    begun: NDArray[np.bool_] = counts[data[starts]]
    return begun if begun.all() else np.logical_or.reduceat(counts[data], starts)


def _cut_message(error: str, label: str, line: int) -> str:
    """Say what the standard library's reader could not read, and what to do."""
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
