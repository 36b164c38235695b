"""The rows of a table as the detector sees them, and as they stand in the table: in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.rows import ArrayRows, RowFunction, RowSums, Sums
from kpca_apps.files.tables.table import PartedTable, SourceInfo, Table
from kpca_apps.novelty.result import ColumnProfile, OddCell
from kpca_apps.novelty.table.cell_rules import CellRules
from kpca_apps.novelty.table.encoding import Noted, TableEncoder
from kpca_apps.novelty.table.profiles import profile_columns

__all__ = ["AnyTable", "RowQuery", "TableRows", "WholeTableRows", "column_names", "rows_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

AnyTable = Table | PartedTable


@dataclass(frozen=True)
class RowQuery:
    """Rows named by a text or by a line.

    Attributes
    ----------
    column, text : str
        A column, and what it says in these rows but for space around it.
    line : int, optional
        The line of the file they start on, instead.
    """

    column: str = ""
    text: str = ""
    line: int | None = None

    def positions(self, table: Table) -> IntArray:
        """Return their positions in a table, or in a part of it."""
        if self.line is not None:
            return np.flatnonzero(np.empty(0) if table.lines is None else table.lines == self.line)
        column = table.column(self.column)
        texts = [column.text(row).strip() for row in range(len(column))]
        return np.flatnonzero(np.array(texts) == self.text)


class TableRows(ABC):
    """All rows of a table, encoded, wherever they are: a `RowSource` that knows the cells.

    Parameters
    ----------
    encoder : TableEncoder
        Makes numbers of the cells.
    source : SourceInfo
        Where the table came from.
    columns : tuple of str
        Names of its columns.
    sample_table : Table
        The rows of the sample as they stand in the table.
    sample_index : (s,) int array
        Their positions in the table, increasing.
    drawn : bool
        Whether the encoder was fitted on a sample of this very table.

    Attributes
    ----------
    n_rows : int
        Rows of the table.
    size_of_parts : int or None
        Rows read at a time; ``None`` for a table in memory.
    """

    size_of_parts: int | None = None

    def __init__(
        self,
        encoder: TableEncoder,
        source: SourceInfo,
        columns: Sequence[str],
        sample_table: Table,
        sample_index: IntArray,
        *,
        drawn: bool = False,
    ) -> None:
        encoder.check_names(columns, source.name)
        self.encoder, self.source, self.columns = encoder, source, tuple(columns)
        self.sample_table, self.sample_index = sample_table, sample_index
        self.n_rows, self._drawn = source.n_rows, drawn

    @cached_property
    def sample(self) -> FloatArray:
        """Rows of the sample, encoded, shape (s, d)."""
        return self.encoder.matrix(self.sample_table)

    @abstractmethod
    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number a row, shape (n,); of very many rows, mapped from a temporary file."""

    @abstractmethod
    def sum(self, function: RowSums[Sums], in_use: BoolArray | None = None) -> Sums:
        """Return the sums over the rows in use."""

    @abstractmethod
    def take(self, positions: IntArray) -> Table:
        """Return some rows as they stand in the table, in the order asked for."""

    @abstractmethod
    def encoded(self, positions: IntArray) -> FloatArray:
        """Return some rows encoded, shape (k, d), in the order asked for."""

    @abstractmethod
    def find(self, query: RowQuery) -> IntArray:
        """Return the positions of the rows that are meant."""

    @property
    @abstractmethod
    def noted(self) -> Noted:
        """What all cells of all rows hold."""

    @cached_property
    def rules(self) -> CellRules:
        """What the columns allow, learned from the sample."""
        return CellRules.fit(self.sample_table, self.encoder.plan, self.n_rows)

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of the used cells of each row, as they are written, shape (n,)."""
        return self.noted.hashes

    def warnings(self) -> tuple[str, ...]:
        """Say what had to be done to the cells of all rows."""
        return self.encoder.say_faults(
            self.noted.faults,
            self.columns,
            self.source.name,
            in_lines=self.sample_table.lines is not None,
            drawn=self._drawn,
        )

    def profiles(self) -> tuple[ColumnProfile, ...]:
        """Say what each column became; missing cells of all rows, values of the sample."""
        faults, plan = self.noted.faults, self.encoder.plan
        used = dict(zip((spec.name for spec in plan.used), faults.used, strict=True))
        unused = iter(faults.unused_missing)
        return tuple(
            replace(
                profile,
                n_missing=found.n_missing + found.n_unreadable
                if (found := used.get(profile.name))
                else next(unused),
            )
            for profile in profile_columns(self.sample_table, plan)
        )

    def odd_cells(self) -> tuple[tuple[OddCell, ...], int]:
        """Return the cells of all rows that are odd by themselves: the clearest, and how many."""
        in_lines = self.sample_table.lines is not None
        return self.encoder.odd_cells(self.noted.faults, self.rules, in_lines=in_lines)


class WholeTableRows(TableRows):
    """The rows of a table in memory.

    Parameters
    ----------
    encoder : TableEncoder
        Makes numbers of its cells.
    table : Table
        The table.
    n_jobs : int, optional
        Threads.

    Raises
    ------
    InputError
        If a used column is missing, or most of its cells cannot be read.
    """

    def __init__(self, encoder: TableEncoder, table: Table, *, n_jobs: int | None = None) -> None:
        everyone = np.arange(table.frame.height)
        super().__init__(encoder, table.source, table.frame.columns, table, everyone)
        self.n_rows, self._n_jobs = table.frame.height, n_jobs
        # A table that cannot be read is refused before it is scored.
        self.warnings()

    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number a row, shape (n,)."""
        return ArrayRows(self.sample, n_jobs=self._n_jobs).map(function, in_use)

    def sum(self, function: RowSums[Sums], in_use: BoolArray | None = None) -> Sums:
        """Return the sums over the rows in use."""
        return ArrayRows(self.sample, n_jobs=self._n_jobs).sum(function, in_use)

    def take(self, positions: IntArray) -> Table:
        """Return some rows as they stand in the table, in the order asked for."""
        return rows_of(self.sample_table, positions)

    def encoded(self, positions: IntArray) -> FloatArray:
        """Return some rows encoded, shape (k, d), in the order asked for."""
        return self.sample[positions]

    def find(self, query: RowQuery) -> IntArray:
        """Return the positions of the rows that are meant."""
        return query.positions(self.sample_table)

    @cached_property
    def noted(self) -> Noted:
        """What all cells of all rows hold."""
        return self.encoder.note(self.sample_table, self.rules)


def rows_of(table: Table, positions: IntArray) -> Table:
    """Cut some rows out of a table in memory."""
    return Table(
        frame=table.frame[positions],
        lines=None if table.lines is None else table.lines[positions],
        source=replace(table.source, n_rows=len(positions)),
    )


def column_names(table: AnyTable) -> tuple[str, ...]:
    """Names of the columns of a table."""
    return tuple(table.frame.columns) if isinstance(table, Table) else table.columns
