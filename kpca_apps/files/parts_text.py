"""Delimited text in parts: one pass finds the rows, each part is cut where it is worked on."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files import limits
from kpca_apps.files.cutting import (
    cut_message,
    cut_rows,
    is_measurable,
    measure_rows,
    no_rows,
    refuse_ragged,
)
from kpca_apps.files.delimited import Cutter, Header, collapse_spaces, no_data, read_header
from kpca_apps.files.known import KnownFile
from kpca_apps.files.parts import part_size

__all__ = ["TextIndex", "TextRows", "index_text"]

# Text without the end of a row is held for so long before rows are looked for one by one.
_WAIT = 1 << 23

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class TextRows:
    """Rows of one part of a text in UTF-8.

    Attributes
    ----------
    file : KnownFile
        The text.
    start, stop : int
        Bytes of the rows.
    first_line : int
        1-based line of the file they begin on.
    delimiter : str
        What cuts their cells.
    names : tuple of str
        Of the columns.
    """

    file: KnownFile
    start: int
    stop: int
    first_line: int
    delimiter: str
    names: tuple[str, ...]

    def read(self) -> tuple[pl.DataFrame, IntArray]:
        """Return the rows as strings, and the lines they start on."""
        text = self.file.read(self.start, self.stop)
        if self.delimiter == " ":
            text = collapse_spaces(text)
        rows = cut_rows(text, self.delimiter, self.file.label, first_line=self.first_line)
        if rows.frame.width != len(self.names):
            raise InputError(f"{self.file.label}: was changed while it was being read; run again.")
        rows.frame.columns = list(self.names)
        return rows.frame, rows.lines


@dataclass(frozen=True)
class TextIndex:
    """Where the rows of a text lie.

    Attributes
    ----------
    header : Header
        Names of the columns.
    n_rows : int
        Rows of data.
    part_rows : int
        Rows of a part.
    starts, lines : list of int
        Byte and line at which each part begins.
    stop : int
        Byte at which the text ends.
    """

    header: Header
    n_rows: int
    part_rows: int
    starts: list[int]
    lines: list[int]
    stop: int

    def parts(self, file: KnownFile, delimiter: str) -> Iterator[TextRows]:
        """Yield how each part is read."""
        stops = [*self.starts[1:], self.stop]
        for start, stop, line in zip(self.starts, stops, self.lines, strict=True):
            yield TextRows(file, start, stop, line, delimiter, self.header.names)


def index_text(
    chunks: Iterable[bytes],
    cutter: Cutter,
    label: str,
    *,
    first_byte: int = 0,
    part_rows: int | None = None,
) -> TextIndex:
    r"""Find the rows of a text in one pass, and refuse what cannot be cut before any work.

    Parameters
    ----------
    chunks : iterable of bytes
        The text in UTF-8, from `first_byte` on.
    cutter : Cutter
        What cuts its cells.
    label : str
        The file's name for messages.
    first_byte : int
        Where the text begins in its file: behind the mark and the line ``sep=;``.
    part_rows : int, optional
        Rows of a part, `part_size` by default.

    Returns
    -------
    TextIndex
        Where the parts begin.

    Raises
    ------
    InputError
        If rows differ in their number of cells, a quote stays open, or there is no row of data.

    Examples
    --------
    >>> index = index_text([b"a;b\n1;2\n3", b";4\n\n5;6"], Cutter(";", 0, ()), "t.csv", part_rows=2)
    >>> index.n_rows, index.starts, index.lines, index.stop
    (3, [4, 13], [2, 5], 16)
    """
    scan = _Scan(cutter.delimiter, label, first_byte, part_rows)
    held = b""
    for chunk in chunks:
        held = held + chunk if held else chunk
        held = held[scan.take(held) :]
    scan.take(held, final=True)
    return scan.finished()


class _Scan:
    """What is known of the rows while the text goes by."""

    def __init__(self, delimiter: str, label: str, first_byte: int, part_rows: int | None) -> None:
        self.delimiter, self.label, self.part_rows = delimiter, label, part_rows
        self.byte, self.line = first_byte, 1
        self.header: Header | None = None
        self.width = self.n_rows = 0
        self.starts: list[int] = []
        self.lines: list[int] = []

    def take(self, held: bytes, *, final: bool = False) -> int:
        """Take in the whole rows at the beginning of `held`; return how many bytes they are."""
        whole = len(held) if final else _last_row_end(held)
        measured = self._measured(held[:whole]) if whole else None
        if measured is None and (whole or len(held) > _WAIT):
            whole, measured = self._read(held, final=final)
        if measured is None or not whole:
            if len(held) > limits.LONGEST_ROW:
                raise limits.long_row(self.label, self.line)
            return 0
        self._add(held[:whole], *measured)
        self.byte += whole
        self.line += held.count(b"\n", 0, whole)
        return whole

    def finished(self) -> TextIndex:
        if self.header is None:
            raise no_rows(self.label)
        if not self.n_rows:
            raise no_data(self.header, self.label)
        size = self.part_rows or part_size(self.width)
        return TextIndex(self.header, self.n_rows, size, self.starts, self.lines, self.byte)

    def _measured(self, text: bytes) -> tuple[IntArray, IntArray, IntArray] | None:
        """Start, line and number of cells of each row of regular text."""
        if not is_measurable(self.delimiter):
            return None
        even = collapse_spaces(text) if self.delimiter == " " else text
        rows = measure_rows(even, self.delimiter)
        if rows is None:
            return None
        starts = rows.starts[rows.keep]
        if even is not text:
            newlines = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n"))
            starts = np.concatenate(([0], newlines + 1))[rows.lines - 1]
        return starts, rows.lines, rows.cells[rows.keep]

    def _read(self, text: bytes, *, final: bool) -> tuple[int, tuple[IntArray, IntArray, IntArray]]:
        """Find rows with the standard library's reader: bytes read; start, line, cells of each."""
        end = len(text) if final else text.rfind(b"\n") + 1
        even = collapse_spaces if self.delimiter == " " else bytes
        read = [0, 0]

        def lines() -> Iterator[str]:
            for raw in io.BytesIO(text[:end]):
                read[0] += len(raw)
                read[1] += 1
                yield even(raw).decode("utf-8")

        found = array("q")
        start, line = 0, 1
        try:
            for row in csv.reader(lines(), delimiter=self.delimiter, strict=True):
                if row and not (len(row) == 1 and row[0].isspace()):
                    found.extend((start, line, len(row)))
                start, line = read[0], read[1] + 1
        except csv.Error as error:
            if final or "unexpected end" not in str(error):
                raise InputError(
                    cut_message(str(error), self.label, self.line + line - 1)
                ) from None
        table = np.frombuffer(found, dtype=np.int64).reshape(-1, 3)
        return start, (table[:, 0], table[:, 1], table[:, 2])

    def _add(self, text: bytes, starts: IntArray, lines: IntArray, cells: IntArray) -> None:
        lines = lines + (self.line - 1)
        if not starts.size:
            return
        first = 0
        if self.header is None:
            limits.require_columns(self.label, int(cells[0]), int(lines[0]))
            stop = int(starts[1]) if starts.size > 1 else len(text)
            self.header = self._read_header(text[int(starts[0]) : stop], int(lines[0]))
            first = 0 if self.header.is_data else 1
        refuse_ragged(
            cells, lines, self.delimiter, self.label,
            width=self.width, first_line=self.header.line,
        )  # fmt: skip
        size = self.part_rows or part_size(self.width)
        begins = slice(first + -self.n_rows % size, None, size)
        self.starts.extend((starts[begins] + self.byte).tolist())
        self.lines.extend(lines[begins].tolist())
        self.n_rows += starts.size - first

    def _read_header(self, text: bytes, line: int) -> Header:
        even = collapse_spaces(text) if self.delimiter == " " else text
        rows = cut_rows(even, self.delimiter, self.label, first_line=line)
        self.width = rows.frame.width
        return read_header(rows, self.label)


def _last_row_end(text: bytes) -> int:
    """Bytes up to the last newline that stands outside quotes, if quotes are regular."""
    end = text.rfind(b"\n")
    if text.count(b'"', 0, end + 1) % 2 == 0:
        return end + 1
    data = np.frombuffer(text, dtype=np.uint8)
    inside = np.cumsum(data == ord('"'), dtype=np.uint8) & 1
    outside = np.flatnonzero((data == ord("\n")) & (inside == 0))
    return int(outside[-1]) + 1 if outside.size else 0
