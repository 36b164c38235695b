"""Read delimited text as Arrow tables of strings, with the line on which each row starts.

Text is read in blocks of whole rows. If all quotes of a block follow RFC 4180, array code finds the
rows and pyarrow splits them. Otherwise the standard library's reader splits the block row by row:
it is slower, but accepts stray quotes and tells the line of an error.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.names import one_line, unique_names
from kpca_apps.system import limits
from kpca_apps.system.arrays import IntArray
from kpca_apps.system.limits import long_row, require_columns
from kpca_apps.tables.read.layout.body import Body, is_list_total
from kpca_apps.tables.read.layout.header import are_periods, first_row
from kpca_apps.tables.read.layout.lines import (
    DELIMITER_NAMES,
    DRAWN_LINE,
    ONE_COLUMN,
    Layout,
    sniff_delimiter,
)
from kpca_apps.tables.read.reader import Reader, table_of
from kpca_apps.tables.read.text import BadLines, Text
from kpca_apps.tables.source_info import DRAWN, TOTAL
from kpca_apps.tables.table import PartedTable, Rows, Table, line_column
from kpca_apps.tables.values import is_number_like

_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
_MARK = b"\xef\xbb\xbf"
_IS_VISIBLE = ~np.isin(np.arange(256), list(b" \t\n\r\v\f"))
_WAIT = 1 << 23  # if no row ends within this many bytes, rows are read one by one
_MOST_LINES = 100  # if bad lines are skipped, a row of more lines counts as an unclosed quote
_PIECE_CELLS = 1 << 18  # number of cells in each piece when rows are read one by one
_MOST_TITLE = 50  # maximum number of lines, of one cell each, that may be a title
_OPEN_QUOTE = "opens a quote that is never closed"

ByteArray = NDArray[np.uint8]


class _BadRow(Exception):
    """A line is skipped, for the reason given as message."""


class DelimitedText:
    """The rows of a delimited text; `names` are complete when the first piece is read."""

    def __init__(self, text: Text) -> None:
        layout = self._layout = Layout.of(text)
        self._text, self._delimiter = text, layout.delimiter
        self.delimiter = None if layout.delimiter == ONE_COLUMN else layout.delimiter
        self.names: list[str] = []
        self.notes = [*layout.notes]
        self.renamed: dict[str, str] = {}
        self._bad = BadLines() if text.options.bad_lines == "skip" else None
        self._start, self._line = layout.start, layout.line
        self._first_line = self._n_rows = 0
        self.body = Body(bad=self._bad) if text.options.layout != "off" else None
        if layout.head is not None and self.body is not None:
            self.body.begin(layout.head, layout.rows, layout.lines)

    def pieces(self) -> Iterator[pa.Table]:
        """Yield the rows as strings; the last column contains the line of each row."""
        return self._pieces() if self.body is None else self.body.rows(self._pieces())

    def _pieces(self) -> Iterator[pa.Table]:
        held, is_text, is_cut = b"", False, self._text.options.delimiter is None
        skip, cut = self._start, self._delimiter.encode("utf-8")
        for chunk in chain(self._text.chunks(), [b""]):
            is_last = not chunk
            is_text = is_text or not (is_last or chunk.isspace())
            held = held + chunk[skip:] if held else chunk[skip:]
            skip = max(skip - len(chunk), 0)
            is_cut = is_cut or cut in held
            # End at the last newline outside quotes, assuming that all quotes follow RFC 4180.
            stop = len(held) if is_last else held.rfind(b"\n") + 1
            if not is_last and b'"' in held and held.count(b'"', 0, stop) % 2:
                data = np.frombuffer(held, dtype=np.uint8)
                inside = np.cumsum(data == _QUOTE, dtype=np.uint8) & 1
                outside = np.flatnonzero((data == _NEWLINE) & (inside == 0))
                stop = int(outside[-1]) + 1 if outside.size else 0
            n_lines = held.count(b"\n", 0, stop)
            n_names, n_notes = len(self.names), len(self.notes)
            rows = self._regular_rows(held[:stop], n_lines) if stop else None
            if rows is not None:
                if rows.num_rows:
                    self._n_rows += rows.num_rows
                    yield rows
            elif stop or len(held) > _WAIT:
                # Drop the names and notes of this block's header, which is read again.
                del self.names[n_names:], self.notes[n_notes:]
                stop = yield from self._rows_one_by_one(held, is_last=is_last)
                n_lines = held.count(b"\n", 0, stop)
            if self._layout.is_drawn and self.body is not None:
                newlines = np.flatnonzero(np.frombuffer(held, np.uint8, stop) == _NEWLINE)
                starts = [one.start() for one in DRAWN_LINE.finditer(held, 0, stop)]
                drawn = self._line + np.searchsorted(newlines, starts)
                self.body.leave_out(DRAWN, drawn.tolist())
            self._line += n_lines
            if len(held) - stop > limits.LONGEST_ROW:
                raise long_row(self._line)
            held = held[stop:]
        if not is_text:
            raise InputError("the file is empty; it needs a header and rows.")
        if not self.names:
            raise InputError("the file holds nothing but blank cells; it needs rows.")
        if not is_cut and (found := sniff_delimiter(self._text.head[self._start :])) != ONE_COLUMN:
            given = f'delimiter "{one_line(self._delimiter)}"'
            raise InputError(
                f"the {DELIMITER_NAMES.get(self._delimiter, given)} given as --delimiter does not "
                "occur in the file; its cells seem to be separated by the "
                f"{DELIMITER_NAMES[found]}: leave the option out."
            )
        # Report bad lines first: the file may seem empty only because all its lines are bad.
        if self.body is not None and not self._n_rows:
            self.body.refuse_short()
        if self._bad is not None and (self.body is None or not self._n_rows):
            self.notes += self._bad.notes(self._n_rows)
        if not self._n_rows:
            raise InputError(
                f"line {self._first_line} is a header without rows; there is nothing to screen."
            )

    def _regular_rows(self, text: bytes, n_lines: int) -> pa.Table | None:
        """Split whole rows with pyarrow; return ``None`` if pyarrow might split them wrongly."""
        cut = self._delimiter.encode("utf-8")
        if len(cut) > 1 or (self._bad is not None and not _is_sound(text)):
            return None
        if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
            return None
        text = self._layout.tidy(text)
        if len(self.names) > 1 and b'"' not in text and len(text) <= limits.LONGEST_ROW:
            # Nearly always, each line is a row.
            n_rows = n_lines + (not text.endswith(b"\n"))
            rows = self._cut(text, np.arange(self._line, self._line + n_rows))
            if rows is not None:
                return rows
        if not text or (text.isspace() and cut not in text):
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
        # Keep rows that have several cells or a visible character.
        counts = _IS_VISIBLE.copy()
        counts[ord(cut)] = True
        keep = counts[data[starts]]
        if not keep.all():
            keep = np.logical_or.reduceat(counts[data], starts)
        lines = self._line + np.searchsorted(newlines, starts[keep])
        if not keep.all():
            data, lengths = data[np.repeat(keep, lengths)], lengths[keep]
        if lengths.max() > limits.LONGEST_ROW:
            raise long_row(int(lines[lengths.argmax()]))
        if not self.names:
            first, line = data[: lengths[0]].tobytes().decode("utf-8"), int(lines[0])
            one = csv.reader(io.StringIO(first, newline=""), delimiter=self._delimiter, strict=True)
            try:
                cells = next(one)
            except csv.Error:
                return None
            if not self._take_header(cells, line):
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
        """Split rows; return ``None`` unless pyarrow finds one row for each of the `lines`."""
        if not lines.size:
            return pa.table({})
        if bytes(text[: len(_MARK)]) == _MARK:
            # Pyarrow removes one byte-order mark, even if the mark belongs to a cell.
            text = _MARK + bytes(text)
        import pyarrow.csv as pc

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
        if table.num_rows != lines.size:
            return None
        return table.append_column("line", line_column(lines))

    def _rows_one_by_one(self, text: bytes, *, is_last: bool) -> Generator[pa.Table, None, int]:
        """Split rows with the standard library's reader; return the number of bytes consumed.

        If bad lines are skipped and a row has an unclosed quote, only its first line is skipped.
        """
        end = len(text) if is_last else text.rfind(b"\n") + 1
        raw = io.BytesIO(text[:end])
        rows: list[list[str]] = []
        lines: list[int] = []
        start, line, n_lines, is_open = 0, self._line, 0, False

        def lines_of_row() -> Iterator[str]:
            nonlocal n_lines
            while (self._bad is None or n_lines < _MOST_LINES) and (data := raw.readline()):
                n_lines += 1
                try:
                    yield self._readable(data)
                except _BadRow:
                    if n_lines == 1:
                        raise
                    # An earlier line opened a quotation that holds this line and may never end.
                    raise _BadRow(_OPEN_QUOTE) from None

        while not is_open and start < end:
            raw.seek(start)
            n_lines = 0
            try:
                for row in csv.reader(lines_of_row(), delimiter=self._delimiter, strict=True):
                    if self._is_row(row, text[start : raw.tell()], line):
                        rows.append(row)
                        lines.append(line)
                        if len(rows) * len(row) >= _PIECE_CELLS:
                            yield _table(self.names, rows, lines)
                            rows, lines = [], []
                    start, line, n_lines = raw.tell(), line + n_lines, 0
            except (_BadRow, csv.Error) as error:
                is_open = not is_last and "unexpected end" in str(error)
                is_open = is_open and (self._bad is None or n_lines < _MOST_LINES)
                if not is_open:
                    self._leave_out(line, error)
                    start, line = text.find(b"\n", start) + 1 or end, line + 1
        if rows:
            yield _table(self.names, rows, lines)
        return start

    def _readable(self, line: bytes) -> str:
        try:
            text = self._layout.tidy(line).decode("utf-8")
        except UnicodeDecodeError:
            raise _BadRow("is not UTF-8 text") from None
        if "\0" in text:
            raise _BadRow("holds a zero byte")
        return text

    def _is_row(self, row: list[str], text: bytes, line: int) -> bool:
        if self._bad is None and len(text) > limits.LONGEST_ROW:
            raise long_row(line)
        if len(row) < 2 and not self._layout.tidy(text).strip():
            return False
        if not self.names and not self._take_header(row, line):
            return False
        if len(row) != len(self.names):
            noun = "cell" if len(row) == 1 else "cells"
            what = f"has {len(row)} {noun} where line {self._first_line} has {len(self.names)}"
            fault = f"{what}; {self._advice_on_width(len(row), line)}"
            if self.body is not None:
                if self._layout.is_drawn and is_list_total(row):
                    self.body.leave_out(TOTAL, [line])
                    return False
                if self.body.accept_short(row, len(self.names), line, fault):
                    return True
            if self._bad is not None:
                raise _BadRow(what)
            raise InputError(f"line {line} {fault}")
        self._n_rows += 1
        return True

    def _leave_out(self, line: int, error: Exception) -> None:
        cause, advice = _cut_cause(str(error)) if isinstance(error, csv.Error) else (str(error), "")
        if self._bad is None:
            raise InputError(
                f"the row on line {line} {cause}; {advice}, or give --bad-lines skip."
            ) from None
        if not self.names:  # the header cannot be skipped
            raise InputError(
                f"line {line} should name the columns and {cause}; correct it, or skip the lines "
                "above the header with --skip-rows."
            ) from None
        self._bad.leave_out(line, cause)

    def _advice_on_width(self, n_cells: int, line: int) -> str:
        # A few rows of one cell above wider rows may be a title.
        is_title = self._n_rows < (_MOST_TITLE if len(self.names) == 1 else 1)
        rows = self._layout.rows
        if is_title and 2 * sum(len(row) == n_cells for row in rows) > len(rows):
            noun = "line" if line == 2 else "lines"
            return (
                f"if there is a title above a header on line {line}, leave its {line - 1} {noun} "
                f"out with --skip-rows {line - 1}, else repair the row."
            )
        name = DELIMITER_NAMES.get(self._delimiter, one_line(self._delimiter))
        return (
            f"put cells that contain a {name} in quotes, repair the row, or leave such lines out "
            "with --bad-lines skip."
        )

    def _take_header(self, cells: list[str], line: int) -> bool:
        """Take the column names from the first row; return whether the row is data, not names."""
        require_columns(len(cells), line)
        self._first_line = line
        self.renamed.clear()
        if not any(name.strip() for name in cells):
            raise InputError(
                f"line {line} should name the columns and is blank; add a header, or skip the "
                "lines above it with --skip-rows."
            )
        head = self._layout.head or first_row([cells])
        if head.names is None:
            self.names += [f"column_{number + 1}" for number in range(len(cells))]
            note = f"Line {line} holds numbers only: the columns are named column_1, ..."
            self.notes.append(note)
            return True
        names, notes, renamed = unique_names(head.names)
        self.names += names
        self.notes += notes
        self.renamed |= renamed
        values = list(filter(is_number_like, head.names))
        if 2 * len(values) >= len(cells) and not are_periods(values):
            self.notes.append(
                f'The names on line {line} look like values ("{one_line(values[0])}"): if '
                "they are data, add a header line."
            )
        return False


def _is_sound(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in text


def _table(names: list[str], rows: list[list[str]], lines: list[int]) -> pa.Table:
    arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return pa.Table.from_arrays([*arrays, pa.array(lines, pa.int64())], names=[*names, "line"])


def _inside_quotes(data: ByteArray, delimiter: int) -> NDArray[np.bool_] | None:
    """Return a mask of quoted bytes; ``None`` unless all quotes follow RFC 4180.

    A doubled quote counts as a closing and an opening quote. Then quotes open and close in turn,
    and the parity of their running count tells which bytes are quoted.
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


def _cut_cause(error: str) -> tuple[str, str]:
    if "field larger than" in error:
        size = csv.field_size_limit()
        advice = "shorten it, or look for a quote that is never closed"
        return f"has a cell of more than {size:,} characters", advice
    if "expected after" in error:
        return "has text after a closing quote", 'double a quote inside a quoted cell ("")'
    if "new-line character" in error:
        return "holds a carriage return", "put its cell in quotes"
    return _OPEN_QUOTE, "close it"


def _read(text: Text) -> Table | PartedTable:
    table = DelimitedText(text)
    rows = Rows(table.pieces(), table.names, table.notes, True, table.renamed)
    return table_of(text, rows, table.body, format="csv", delimiter=table.delimiter)


DELIMITED = Reader("text files", "delimiter encoding skip_rows bad_lines", _read)
