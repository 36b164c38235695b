"""The rows of a table as the detector sees them, and as they stand in the table: in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kpca_apps.files.tables.table import PartedTable, SourceInfo, Table
from kpca_apps.files.values import cell_text
from kpca_apps.novelty.cell_rules import CellRules
from kpca_apps.novelty.encoding import TableEncoder
from kpca_apps.novelty.result import ColumnProfile, OddCell
from kpca_apps.novelty.row_source import ArrayRows, RowSource

__all__ = ["AnyTable", "RowQuery", "TableRows", "WholeTableRows", "column_names", "rows_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
        cells = table.frame[self.column]
        texts = [cell_text(cells, row).strip() for row in range(len(cells))]
        return np.flatnonzero(np.array(texts) == self.text)


class TableRows(RowSource, Protocol):
    """All rows of a table, encoded, wherever they are."""

    @property
    def source(self) -> SourceInfo:
        """Where the table came from."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""
        ...

    @property
    def encoder(self) -> TableEncoder:
        """What made numbers of its cells."""
        ...

    @property
    def sample_table(self) -> Table:
        """The rows of the sample as they stand in the table."""
        ...

    @property
    def size_of_parts(self) -> int | None:
        """Rows read at a time; ``None`` for a table in memory."""
        ...

    def take(self, positions: IntArray) -> tuple[Table, FloatArray]:
        """Return some rows as they stand in the table, and encoded, in the order asked for."""
        ...

    def find(self, query: RowQuery) -> IntArray:
        """Return the positions of the rows that are meant."""
        ...

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of the used cells of each row, as they are written, shape (n,)."""
        ...

    def warnings(self) -> tuple[str, ...]:
        """Say what had to be done to the cells of all rows."""
        ...

    def profiles(self) -> tuple[ColumnProfile, ...]:
        """Say what each column became and how its values lie."""
        ...

    def odd_cells(self) -> tuple[tuple[OddCell, ...], int]:
        """Return the cells of all rows that are odd by themselves: the clearest, and how many."""
        ...


class WholeTableRows(ArrayRows):
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

    size_of_parts = None

    def __init__(self, encoder: TableEncoder, table: Table, *, n_jobs: int | None = None) -> None:
        encoded = encoder.encode(table)
        super().__init__(encoded.matrix, n_jobs=n_jobs)
        self.encoder, self.sample_table = encoder, table
        self.source, self.columns = table.source, tuple(table.frame.columns)
        self._warnings = encoded.warnings

    def take(self, positions: IntArray) -> tuple[Table, FloatArray]:
        """Return some rows as they stand in the table, and encoded, in the order asked for."""
        return rows_of(self.sample_table, positions), self.sample[positions]

    def find(self, query: RowQuery) -> IntArray:
        """Return the positions of the rows that are meant."""
        return query.positions(self.sample_table)

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of the used cells of each row, as they are written, shape (n,)."""
        return self.encoder.hashes(self.sample_table)

    def warnings(self) -> tuple[str, ...]:
        """Say what had to be done to the cells."""
        return self._warnings

    def profiles(self) -> tuple[ColumnProfile, ...]:
        """Say what each column became and how its values lie."""
        return self.encoder.profiles(self.sample_table)

    def odd_cells(self) -> tuple[tuple[OddCell, ...], int]:
        """Return the cells that are odd by themselves: the clearest, and how many."""
        table = self.sample_table
        rules = CellRules.fit(table, self.encoder.plan, self.n_rows)
        faults = self.encoder.faults(table, rules=rules)
        return self.encoder.odd_cells(faults, rules, in_lines=table.lines is not None)


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
