"""Work on the rows of a table, in memory or in parts: some rows, a sample, groups of rows.

Each part is read where the work on it is done. Parts are cut at fixed rows, and what is made of
them is put together in one order: it does not depend on who works, and how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import polars as pl

from kpca_apps.engine.rows import SAMPLE_ROWS, sample_positions
from kpca_apps.errors import ConfigError
from kpca_apps.novelty.columns.execution import Execution
from kpca_apps.novelty.columns.plan import listed
from kpca_apps.novelty.row_values import row_values
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.tables.table import PartedTable, Table, TablePart, parted

Result = TypeVar("Result")

AnyTable = Table | PartedTable
# What the rows of a group say in the columns they are grouped by; None where a cell is missing.
GroupKey = tuple[str | None, ...]
# Groups of rows that are distinguished; an identifier has more.
MOST_KEYS = 100_000


@dataclass(frozen=True)
class Sample:
    """Rows of a table that are held in memory: all, or drawn."""

    table: Table  # they as they stand, in the order of the table
    index: IntArray  # (s,), their positions, increasing


@dataclass(frozen=True)
class PartTask:
    """A part of a table, and which of its rows a pass is about."""

    part: TablePart
    marked: BoolArray | None = None  # (n,); None: whatever no mark means to the pass

    @property
    def n_rows(self) -> int:
        """Rows of the part."""
        return self.part.stop - self.part.start

    def __str__(self) -> str:
        return str(self.part)


def column_names(table: AnyTable) -> tuple[str, ...]:
    """Names of the columns of a table."""
    return tuple(table.frame.columns) if isinstance(table, Table) else table.columns


def row_count(table: AnyTable) -> int:
    """Rows of a table; those in memory may be drawn from more of its source."""
    return table.frame.height if isinstance(table, Table) else table.n_rows


def in_parts(table: AnyTable) -> AnyTable:
    """Cut a table in memory into parts if it has more than 100,000 rows."""
    if isinstance(table, Table) and table.frame.height > SAMPLE_ROWS:
        return parted(table)
    return table


def each_part(
    table: AnyTable, what: str, function: Callable[[Table], Result], execution: Execution
) -> Iterator[Result]:
    """Yield what a function makes of a table in memory, or of each part of one, in order."""
    if isinstance(table, Table):
        yield function(table)
    else:
        tasks = map(PartTask, table.parts)
        yield from execution.over(what, _of_part, tasks, table.n_rows, function)


def _of_part(task: PartTask, function: Callable[[Table], Result]) -> Result:
    return function(task.part.read())


def rows_of(table: Table, positions: IntArray) -> Table:
    """Cut some rows out of a table in memory."""
    return Table(
        frame=table.frame[positions],
        lines=None if table.lines is None else table.lines[positions],
        source=replace(table.source, n_rows=len(positions)),
    )


def some_rows(table: AnyTable, positions: IntArray) -> AnyTable:
    """Return a table of some rows, positions increasing, each part of it still to be read."""
    if isinstance(table, Table):
        return rows_of(table, positions)
    source = replace(table.source, n_rows=len(positions))
    cuts = np.searchsorted(positions, [part.start for part in table.parts] + [table.n_rows])
    parts: list[TablePart] = []
    for part, start, stop in zip(table.parts, cuts.tolist(), cuts[1:].tolist(), strict=False):
        if stop > start:
            load = partial(_rows_of_part, part, positions[start:stop] - part.start)
            whole = part.whole or part
            parts.append(TablePart(len(parts), start, stop, source, load, whole))
    return PartedTable(source, table.columns, tuple(parts), table.copy)


def _rows_of_part(part: TablePart, places: IntArray) -> tuple[pl.DataFrame, IntArray | None]:
    rows = rows_of(part.read(), places)
    return rows.frame, rows.lines


def take_rows(
    table: AnyTable, positions: IntArray, execution: Execution, what: str = "Fetching rows"
) -> Table:
    """Return some rows as they stand in a table, read by whoever reads its parts, in that order."""
    if isinstance(table, Table):
        return rows_of(table, positions)
    inside, back = np.unique(positions, return_inverse=True)
    pieces = list(each_part(some_rows(table, inside), what, _itself, execution))
    pieces = pieces or [rows_of(table.parts[0].read(), inside)]  # no rows, but columns
    lines = None
    if pieces[0].lines is not None:
        lines = np.concatenate([piece.lines for piece in pieces if piece.lines is not None])[back]
    frame = pl.concat([piece.frame for piece in pieces])[back]
    return Table(frame, lines, replace(table.source, n_rows=len(positions)))


def _itself(table: Table) -> Table:
    return table


def table_subset(table: AnyTable, positions: IntArray, execution: Execution) -> AnyTable:
    """Return a table of some rows, positions increasing; of more than 100,000, one in parts."""
    if len(positions) <= SAMPLE_ROWS:
        return take_rows(table, positions, execution)
    return some_rows(table, positions)


def draw_sample(table: AnyTable, seed: int, execution: Execution) -> Sample:
    """Draw the rows that columns, scalings and landmarks are learned from.

    A table in memory is its own sample.
    """
    if isinstance(table, Table):
        return Sample(table, np.arange(table.frame.height))
    index = sample_positions(table.n_rows, seed)
    drawn = take_rows(table, index, execution, "Drawing rows")
    return Sample(replace(drawn, source=table.source), index)


def find_groups(
    table: AnyTable, by: Sequence[str], execution: Execution
) -> tuple[list[GroupKey], IntArray]:
    """Find the groups of equal text in some columns, and the place among them of each row.

    ConfigError where there are as many as identifiers have.
    """
    found: dict[GroupKey, int] = {}
    codes, start = row_values(row_count(table), np.int64), 0
    for keys, places in each_part(table, "Finding groups", partial(_groups, by=by), execution):
        numbers = np.array([found.setdefault(key, len(found)) for key in keys], dtype=np.int64)
        if len(found) > MOST_KEYS:
            raise ConfigError(
                f"--by {listed(by)} makes more than {MOST_KEYS:,} groups: name a column of few "
                "values, such as a kind, a site or a machine"
            )
        codes[start : start + len(places)] = numbers[places]
        start += len(places)
    return list(found), codes


def _groups(table: Table, by: Sequence[str]) -> tuple[list[GroupKey], IntArray]:
    """Return the groups of a part, and the place among them of each of its rows."""
    levels = [table.column(name).levels for name in by]
    codes = np.column_stack([of.codes for of in levels])
    found, places = np.unique(codes, axis=0, return_inverse=True)
    texts = [[*of.texts.to_list(), None] for of in levels]  # code -1 is a missing cell
    keys = [tuple(of[code] for of, code in zip(texts, row, strict=True)) for row in found.tolist()]
    return keys, np.asarray(places, dtype=np.int64).reshape(-1)
