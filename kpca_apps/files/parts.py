"""Tables of any size: parts cut at fixed rows, each read where the work on it is done.

Where a table is cut depends on its number of columns alone, so that whoever works on the parts, and
however many, the same rows are worked on together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from kpca_apps.errors import InputError, KpcaError
from kpca_apps.files.limits import require_memory
from kpca_apps.files.names import one_line
from kpca_apps.files.source import SourceInfo
from kpca_apps.files.tables import Table
from kpca_apps.memory import ROWS_IN_MEMORY
from kpca_apps.temporary import TemporaryPath

__all__ = ["IN_MEMORY_ROWS", "PartRows", "PartedTable", "TablePart", "part_size", "parted"]

IN_MEMORY_ROWS = ROWS_IN_MEMORY
"""Tables of more rows are read in parts."""

_LEAST_ROWS, _MOST_ROWS = 1 << 12, 1 << 16
_CELLS = 1 << 21
# What a part takes in memory while it is not read.
_PART_BYTES = 1000

IntArray = NDArray[np.int64]


class PartRows(Protocol):
    """How the rows of one part are read; small, and can be sent to another process."""

    def read(self) -> tuple[pl.DataFrame, IntArray | None]:
        """Return the rows, and their lines where the file has lines."""
        ...


@dataclass(frozen=True)
class TablePart:
    """Rows of a table, not read yet.

    Attributes
    ----------
    number : int
        Of the part, from 0.
    start, stop : int
        Its rows in the table, from 0: ``start`` to ``stop - 1``.
    source : SourceInfo
        Of the whole table.
    rows : PartRows
        How they are read.
    """

    number: int
    start: int
    stop: int
    source: SourceInfo
    rows: PartRows = field(repr=False)

    def __str__(self) -> str:
        return f"rows {self.start + 1:,} to {self.stop:,} of {one_line(self.source.name)}"

    def read(self) -> Table:
        """Read the rows.

        Returns
        -------
        Table
            As reading the whole table would give them; its source is that of the whole table.

        Raises
        ------
        KpcaError
            If they cannot be read, naming the rows and the file.
        """
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
    spools : tuple of TemporaryPath
        Temporary files the parts are read from, which are removed with this table.
    """

    source: SourceInfo
    columns: tuple[str, ...]
    parts: tuple[TablePart, ...]
    spools: tuple[TemporaryPath, ...] = field(default=(), repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    def rows(self, positions: ArrayLike) -> Table:
        """Read some rows; only the parts that hold them are read.

        Parameters
        ----------
        positions : (k,) array_like of int
            Their places in the table, from 0, in any order.

        Returns
        -------
        Table
            The rows in the order asked for; its source is that of the whole table.

        Raises
        ------
        IndexError
            If there is no such row.
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
    """Rows of a part: a power of two, of about two million cells.

    Examples
    --------
    >>> part_size(20), part_size(100), part_size(10_000)
    (65536, 16384, 4096)
    """
    rows = 1 << (max(_CELLS // n_columns, 1).bit_length() - 1)
    return min(max(rows, _LEAST_ROWS), _MOST_ROWS)


def part_bounds(n_rows: int, rows: int, label: str) -> list[tuple[int, int]]:
    """Cut rows at multiples of a number.

    Raises
    ------
    MemoryLimitError
        If there would be more parts than memory holds.

    Examples
    --------
    >>> part_bounds(5, 2, "t.csv")
    [(0, 2), (2, 4), (4, 5)]
    """
    require_memory(label, -(-n_rows // rows) * _PART_BYTES, copies=1)
    return [(start, min(start + rows, n_rows)) for start in range(0, n_rows, rows)]


def parted_table(
    source: SourceInfo,
    columns: Sequence[str],
    rows: Sequence[PartRows],
    size: int,
    spools: Sequence[TemporaryPath] = (),
) -> PartedTable:
    """Put a table together from how each part of it is read.

    Parameters
    ----------
    source : SourceInfo
        Of the table.
    columns : sequence of str
        Their names.
    rows : sequence of PartRows
        For each part.
    size : int
        Rows of each part but the last.
    spools : sequence of TemporaryPath
        The temporary files they are read from.
    """
    bounds = part_bounds(source.n_rows, size, source.name)
    parts = tuple(
        TablePart(number, start, stop, source, of_part)
        for number, ((start, stop), of_part) in enumerate(zip(bounds, rows, strict=True))
    )
    return PartedTable(source, tuple(columns), parts, tuple(spools))


def parted(table: Table, *, part_rows: int | None = None) -> PartedTable:
    """Cut a table in memory into parts.

    Parameters
    ----------
    table : Table
        The table.
    part_rows : int, optional
        Rows of a part, `part_size` by default.

    Returns
    -------
    PartedTable
        Its parts hold their rows.

    Examples
    --------
    >>> from kpca_apps.files.tables import table_from_frame
    >>> whole = table_from_frame(pl.DataFrame({"x": [1.0, 2.0, 3.0]}))
    >>> [part.read().frame.height for part in parted(whole, part_rows=2).parts]
    [2, 1]
    """
    size = part_rows or part_size(table.frame.width)
    rows = [
        FrameRows(table.frame[start:stop], None if table.lines is None else table.lines[start:stop])
        for start, stop in part_bounds(table.frame.height, size, table.source.name)
    ]
    return parted_table(table.source, table.frame.columns, rows, size)


def _taken(table: Table, positions: IntArray) -> Table:
    lines = None if table.lines is None else table.lines[positions]
    return Table(table.frame[positions], lines, table.source)
