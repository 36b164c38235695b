"""A table in memory, and a table in parts that are read where the work on them is done.

Where a table is cut depends on its number of columns alone, so that whoever works on the parts, and
however many, the same rows are worked on together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from kpca_apps.errors import InputError, KpcaError
from kpca_apps.files.limits import require_memory
from kpca_apps.files.names import one_line
from kpca_apps.files.tables.values import Column
from kpca_apps.memory import ROWS_IN_MEMORY
from kpca_apps.temporary import TemporaryPath

__all__ = [
    "IN_MEMORY_ROWS",
    "FrameRows",
    "PartRows",
    "PartedTable",
    "SourceInfo",
    "Table",
    "TablePart",
    "part_size",
    "parted",
    "parted_table",
]

IN_MEMORY_ROWS = ROWS_IN_MEMORY
"""Tables of more rows are read in parts."""

_LEAST_ROWS, _MOST_ROWS = 1 << 12, 1 << 16
_CELLS = 1 << 21
# What a part takes in memory while it is not read.
_PART_BYTES = 1000

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class SourceInfo:
    """Where a table came from, and how it was read.

    Attributes
    ----------
    name : str
        File name without its folder, or ``"standard input"``.
    format : str
        ``"csv"``, ``"parquet"``, ``"jsonl"``, ``"excel"``, or ``"frame"`` for a polars frame.
    sha256 : str
        Hash of the bytes as they lay on disk, 64 hex digits.
    n_bytes : int
        Their number.
    n_rows, n_columns : int
        Size of the table.
    encoding, delimiter : str or None
        How a text file was decoded and cut; ``None`` for binary formats.
    notes : tuple of str
        Whole sentences a reader should know ("Read as cp1252: ...").
    """

    name: str
    format: str
    sha256: str
    n_bytes: int
    n_rows: int
    n_columns: int
    encoding: str | None = None
    delimiter: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table as read.

    Attributes
    ----------
    frame : DataFrame
        Delimited text: string columns, cells exactly as in the file (an empty cell is ``""``).
        JSON lines: numbers and booleans typed, the rest strings, absent values null. Parquet and
        Excel: typed as stored.
    lines : (n,) int array or None
        1-based line of the file where each row starts; ``None`` for binary formats.
    source : SourceInfo
        Where it came from, and how it was read.
    """

    frame: pl.DataFrame
    lines: IntArray | None
    source: SourceInfo

    def column(self, name: str) -> Column:
        """Return the cells of a column, which are read once however many ask."""
        return self._columns.setdefault(name, Column(self.frame[name]))

    @cached_property
    def _columns(self) -> dict[str, Column]:
        return {}


class PartRows(Protocol):
    """How the rows of one part are read; small, and can be sent to another process."""

    def read(self) -> tuple[pl.DataFrame, IntArray | None]:
        """Return the rows, and their lines where the file has lines."""
        ...


@dataclass(frozen=True)
class TablePart:
    """Rows `start` to ``stop - 1`` of a table, counted from 0, not read yet; part `number` of it.

    `source` is that of the whole table, `rows` how they are read.
    """

    number: int
    start: int
    stop: int
    source: SourceInfo
    rows: PartRows = field(repr=False)

    def __str__(self) -> str:
        return f"rows {self.start + 1:,} to {self.stop:,} of {one_line(self.source.name)}"

    def read(self) -> Table:
        """Read the rows, as reading the whole table would give them; an error names them."""
        try:
            frame, lines = self.rows.read()
        except KpcaError as error:
            raise type(error)(f"Rows {self.start + 1:,} to {self.stop:,}: {error}") from error
        if frame.height != self.stop - self.start:
            raise InputError(
                f"{one_line(self.source.name)}: rows {self.start + 1:,} to {self.stop:,} are no "
                "longer there; run again once the file is complete."
            )
        return Table(frame, lines, self.source)


@dataclass(frozen=True)
class PartedTable:
    """A table of any number of rows, read in parts.

    Attributes
    ----------
    source : SourceInfo
        Where it came from, and how it is read.
    columns : tuple of str
        Names of its columns.
    parts : tuple of TablePart
        Its rows in their order; each part but the last of the same length.
    copy : TemporaryPath or None
        The temporary file the parts are read from, which is removed with this table.
    """

    source: SourceInfo
    columns: tuple[str, ...]
    parts: tuple[TablePart, ...]
    copy: TemporaryPath | None = field(default=None, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    def rows(self, positions: ArrayLike) -> Table:
        """Read the rows at some places, counted from 0, in the order asked for.

        Only the parts that hold them are read; the source is that of the whole table.
        """
        wanted = np.asarray(positions, dtype=np.int64)
        if wanted.size and not (0 <= wanted.min() and wanted.max() < self.n_rows):
            raise IndexError(f"rows 0 to {self.n_rows - 1} can be asked for")
        order = np.argsort(wanted, kind="stable")
        inside = wanted[order]
        cuts = np.searchsorted(inside, [part.start for part in self.parts] + [self.n_rows])
        pieces = [
            _taken(part.read(), inside[cuts[k] : cuts[k + 1]] - part.start)
            for k, part in enumerate(self.parts)
            if cuts[k] < cuts[k + 1]
        ] or [_taken(self.parts[0].read(), inside)]
        back = np.argsort(order, kind="stable")
        lines = None
        if pieces[0].lines is not None:
            lines = np.concatenate([piece.lines for piece in pieces if piece.lines is not None])
            lines = lines[back]
        return Table(pl.concat([piece.frame for piece in pieces])[back], lines, self.source)


@dataclass(frozen=True)
class FrameRows:
    """Rows that are in memory already, and are sent to who works on them."""

    frame: pl.DataFrame
    lines: IntArray | None

    def read(self) -> tuple[pl.DataFrame, IntArray | None]:
        """Return the rows, and their lines where the file has lines."""
        return self.frame, self.lines


def part_size(n_columns: int) -> int:
    """Rows of a part: a power of two, of about two million cells."""
    rows = 1 << (max(_CELLS // n_columns, 1).bit_length() - 1)
    return min(max(rows, _LEAST_ROWS), _MOST_ROWS)


def parted_table(
    source: SourceInfo,
    columns: Sequence[str],
    rows: Iterable[PartRows],
    size: int,
    copy: TemporaryPath | None = None,
) -> PartedTable:
    """Put a table together from how each part of `size` rows is read."""
    require_memory(source.name, source.n_rows // size * _PART_BYTES, copies=1)
    parts = tuple(
        TablePart(number, number * size, min((number + 1) * size, source.n_rows), source, of_part)
        for number, of_part in enumerate(rows)
    )
    return PartedTable(source, tuple(columns), parts, copy)


def parted(table: Table, *, part_rows: int | None = None) -> PartedTable:
    """Cut a table in memory into parts of `part_rows` rows, `part_size` by default."""
    size = part_rows or part_size(table.frame.width)
    cuts = [slice(start, start + size) for start in range(0, table.frame.height, size)]
    rows = [
        FrameRows(table.frame[cut], None if table.lines is None else table.lines[cut])
        for cut in cuts
    ]
    return parted_table(table.source, table.frame.columns, rows, size)


def _taken(table: Table, positions: IntArray) -> Table:
    lines = None if table.lines is None else table.lines[positions]
    return Table(table.frame[positions], lines, table.source)
