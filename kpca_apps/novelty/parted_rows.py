"""The rows of a table read in parts, each where the work on it is done.

Whoever works on the parts, and however many: parts are cut at fixed rows, and their results are
put together in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import add
from typing import Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.engine.partitions import Workers, tree_reduce
from kpca_apps.files.tables.table import PartedTable, Table, TablePart, parted
from kpca_apps.novelty.cell_faults import CellFaults
from kpca_apps.novelty.cell_rules import CellRules
from kpca_apps.novelty.encoding import TableEncoder
from kpca_apps.novelty.result import ColumnProfile, OddCell
from kpca_apps.novelty.row_source import (
    SAMPLE_ROWS,
    Addable,
    RowFunction,
    RowSums,
    map_rows,
    sample_positions,
    sum_rows,
)
from kpca_apps.novelty.row_values import row_values
from kpca_apps.novelty.table_rows import AnyTable, RowQuery, TableRows, WholeTableRows, rows_of

__all__ = ["Execution", "PartedRows", "Sample", "draw_sample", "in_parts", "table_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Sums = TypeVar("Sums", bound=Addable)
Result = TypeVar("Result")
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


class PartTask(Protocol):
    """Something to be done with the rows of one part."""

    @property
    def n_rows(self) -> int:
        """Rows of the part."""
        ...


Task = TypeVar("Task", bound=PartTask)


@contextmanager
def _silent(what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
    """Tell nobody how far a pass over a table is."""
    yield lambda n_rows: None


@dataclass(frozen=True)
class Execution:
    """Who works on a table that is read in parts, and who is told how far it is.

    Attributes
    ----------
    workers : Workers
        Threads of this process by default.
    progress : callable
        ``progress(what, n_rows)`` is entered for a pass and gives a function that takes the
        number of rows done since it was last called.
    """

    workers: Workers = field(default_factory=Workers)
    progress: Progress = _silent

    def over(
        self,
        what: str,
        function: Callable[..., Result],
        tasks: Iterable[Task],
        n_rows: int,
        *shared: object,
    ) -> Iterator[Result]:
        """Yield what a function makes of each task, in order, telling how far it is.

        Parameters
        ----------
        what : str
            What the pass is for.
        function : callable
            ``function(task, *shared)``, where the rows are.
        tasks : iterable
            Each about the rows of one part.
        n_rows : int
            Rows of all of them.
        *shared
            The same for every task.
        """
        sizes: list[int] = []

        def noted() -> Iterator[Task]:
            for task in tasks:
                sizes.append(task.n_rows)
                yield task

        results = self.workers.map_partitions(function, noted(), *shared)
        with self.progress(what, n_rows) as advance:
            for number, result in enumerate(results):
                yield result
                advance(sizes[number])


@dataclass(frozen=True)
class _Task:
    """A part of a table and what is to be done with its rows.

    Attributes
    ----------
    part : TablePart
        The part.
    in_use : (n,) bool array or None
        Which of its rows the model is fitted on.
    positions : (k,) int array or None
        Which of its rows are wanted, where not all are.
    rules : CellRules or None
        What its columns allow, where its odd cells are to be found and its rows hashed.
    """

    part: TablePart
    in_use: BoolArray | None = None
    positions: IntArray | None = None
    rules: CellRules | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the part."""
        return self.part.stop - self.part.start

    def __str__(self) -> str:
        return str(self.part)


@dataclass(frozen=True)
class _Counts:
    """What the first pass over a part notes beside its result.

    Attributes
    ----------
    faults : CellFaults
        Of its cells.
    hashes : (n,) array
        Of its rows, to find equal ones.
    """

    faults: CellFaults
    hashes: NDArray[np.uint64]


def _count(task: _Task, table: Table, encoder: TableEncoder) -> _Counts | None:
    if task.rules is None:
        return None
    return _Counts(encoder.faults(table, task.part.start, task.rules), encoder.hashes(table))


def _map_part(
    task: _Task, encoder: TableEncoder, function: RowFunction
) -> tuple[FloatArray, _Counts | None]:
    table = task.part.read()
    values = map_rows(function, encoder.matrix(table), task.in_use)
    return values, _count(task, table, encoder)


def _sum_part(
    task: _Task, encoder: TableEncoder, function: RowSums[Sums]
) -> tuple[Sums, _Counts | None]:
    table = task.part.read()
    sums = sum_rows(function, encoder.matrix(table), task.in_use)
    return sums, _count(task, table, encoder)


def _count_part(task: _Task, encoder: TableEncoder) -> tuple[None, _Counts | None]:
    return None, _count(task, task.part.read(), encoder)


def _find_part(task: _Task, query: RowQuery) -> IntArray:
    return task.part.start + query.positions(task.part.read())


def _take_part(task: _Task) -> Table:
    positions = np.empty(0, dtype=np.int64) if task.positions is None else task.positions
    return rows_of(task.part.read(), positions - task.part.start)


@dataclass(frozen=True)
class Sample:
    """Rows of a table that are held in memory: all, or drawn.

    Attributes
    ----------
    table : Table
        They as they stand, in the order of the table.
    index : (s,) int array
        Their positions, increasing.
    """

    table: Table
    index: IntArray


def draw_sample(table: AnyTable, seed: int, execution: Execution) -> Sample:
    """Draw the rows that columns, scalings and landmarks are learned from.

    Parameters
    ----------
    table : Table or PartedTable
        A table in memory is its own sample.
    seed : int
        Of the draw.
    execution : Execution
        Who reads.
    """
    if isinstance(table, Table):
        return Sample(table, np.arange(table.frame.height))
    index = sample_positions(table.n_rows, seed)
    drawn = _take(table, index, execution, "Drawing rows")
    return Sample(replace(drawn, source=table.source), index)


def table_rows(
    encoder: TableEncoder,
    table: AnyTable,
    *,
    seed: int,
    n_jobs: int | None,
    execution: Execution,
    sample: Sample | None = None,
) -> TableRows:
    """Look at the rows of a table through an encoder.

    Parameters
    ----------
    encoder : TableEncoder
        Makes numbers of its cells.
    table : Table or PartedTable
        The table.
    seed : int
        Draws the sample of a table in parts.
    n_jobs : int or None
        Threads for a table in memory.
    execution : Execution
        Who works on a table in parts.
    sample : Sample, optional
        Of this very table, where the encoder was fitted on it.

    Raises
    ------
    InputError
        If a column the encoder uses is missing, or most of its cells cannot be read.
    """
    if isinstance(table, Table):
        return WholeTableRows(encoder, table, n_jobs=n_jobs)
    encoder.check_names(table.columns, table.source.name)
    found = sample or draw_sample(table, seed, execution)
    return PartedRows(encoder, table, found, execution, drawn=sample is not None)


def in_parts(table: AnyTable) -> AnyTable:
    """Cut a table in memory into parts if it has more than 100,000 rows."""
    if isinstance(table, Table) and table.frame.height > SAMPLE_ROWS:
        return parted(table)
    return table


class PartedRows:
    """The rows of a table that is read in parts, once for every pass over them.

    Parameters
    ----------
    encoder : TableEncoder
        Makes numbers of the cells.
    table : PartedTable
        The table.
    sample : Sample
        Rows drawn from it.
    execution : Execution
        Who works on the parts.
    drawn : bool
        Whether the encoder was fitted on the sample.

    Attributes
    ----------
    n_rows, sample, sample_index, source, columns, encoder, sample_table, size_of_parts
        As in `TableRows`.
    """

    def __init__(
        self,
        encoder: TableEncoder,
        table: PartedTable,
        sample: Sample,
        execution: Execution,
        *,
        drawn: bool,
    ) -> None:
        self.encoder, self.sample_table, self.sample_index = encoder, sample.table, sample.index
        self.source, self.columns, self.n_rows = table.source, table.columns, table.n_rows
        self._table, self._execution, self._drawn = table, execution, drawn
        self._counts: tuple[CellFaults, NDArray[np.uint64]] | None = None
        first = table.parts[0]
        self.size_of_parts = first.stop - first.start

    @cached_property
    def sample(self) -> FloatArray:
        """Rows of the sample, encoded, shape (s, d)."""
        return self.encoder.matrix(self.sample_table)

    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number a row, shape (n,), mapped from a temporary file."""
        values: FloatArray = row_values(self.n_rows, np.float64)
        start = 0
        found = self._pass(function.purpose, _map_part, in_use, function)
        for part in self._counted(found):
            values[start : start + len(part)] = part
            start += len(part)
        return values

    def sum(self, function: RowSums[Sums], in_use: BoolArray | None = None) -> Sums:
        """Return the sums over the rows in use."""
        found = self._pass("Learning from rows", _sum_part, in_use, function)
        total: Sums = tree_reduce(add, self._counted(found))
        return total

    def take(self, positions: IntArray) -> tuple[Table, FloatArray]:
        """Return some rows as they stand in the table, and encoded, in the order asked for."""
        table = _take(self._table, positions, self._execution, "Fetching rows")
        return table, self.encoder.matrix(table)

    def find(self, query: RowQuery) -> IntArray:
        """Return the positions of the rows that are meant."""
        tasks = map(_Task, self._table.parts)
        found = self._execution.over("Looking for rows", _find_part, tasks, self.n_rows, query)
        return np.concatenate(list(found))

    def warnings(self) -> tuple[str, ...]:
        """Say what had to be done to the cells of all rows."""
        return self.encoder.say_faults(
            self._all_counts()[0],
            self.columns,
            self.source.name,
            in_lines=self.sample_table.lines is not None,
            drawn=self._drawn,
        )

    def profiles(self) -> tuple[ColumnProfile, ...]:
        """Say what each column became; missing cells of all rows, values of the sample."""
        faults, _ = self._all_counts()
        used = dict(zip((spec.name for spec in self.encoder.plan.used), faults.used, strict=True))
        unused = iter(faults.unused_missing)
        return tuple(
            replace(
                profile,
                n_missing=found.n_missing + found.n_unreadable
                if (found := used.get(profile.name))
                else next(unused),
            )
            for profile in self.encoder.profiles(self.sample_table)
        )

    def odd_cells(self) -> tuple[tuple[OddCell, ...], int]:
        """Return the cells of all rows that are odd by themselves: the clearest, and how many.

        What a column allows is learned from the sample.
        """
        in_lines = self.sample_table.lines is not None
        return self.encoder.odd_cells(self._all_counts()[0], self._rules, in_lines=in_lines)

    @cached_property
    def _rules(self) -> CellRules:
        return CellRules.fit(self.sample_table, self.encoder.plan, self.n_rows)

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of the used cells of each row, mapped from a temporary file."""
        return self._all_counts()[1]

    def _all_counts(self) -> tuple[CellFaults, NDArray[np.uint64]]:
        """Return what was noted in the first pass, which is made here if there was none."""
        if self._counts is None:
            tasks = (_Task(part, rules=self._rules) for part in self._table.parts)
            found = self._execution.over(
                "Reading rows", _count_part, tasks, self.n_rows, self.encoder
            )
            for _ in self._counted(found):
                pass
        assert self._counts is not None
        return self._counts

    def _pass(
        self,
        what: str,
        function: Callable[..., tuple[Result, _Counts | None]],
        in_use: BoolArray | None,
        of_rows: object,
    ) -> Iterator[tuple[Result, _Counts | None]]:
        """Go over all rows; cells are counted and rows hashed in the first pass."""
        tasks = (
            _Task(
                part,
                None if in_use is None else np.asarray(in_use[part.start : part.stop]),
                rules=self._rules if self._counts is None else None,
            )
            for part in self._table.parts
        )
        return self._execution.over(what, function, tasks, self.n_rows, self.encoder, of_rows)

    def _counted(self, found: Iterator[tuple[Result, _Counts | None]]) -> Iterator[Result]:
        """Yield results and keep what was noted on the way, once all parts are done."""
        faults: CellFaults | None = None
        hashes: NDArray[np.uint64] | None = None
        start = 0
        for result, counts in found:
            if counts is not None:
                faults = counts.faults if faults is None else faults + counts.faults
                hashes = row_values(self.n_rows, np.uint64) if hashes is None else hashes
                hashes[start : start + len(counts.hashes)] = counts.hashes
                start += len(counts.hashes)
            yield result
        if faults is not None and hashes is not None:
            self._counts = faults, hashes


def _take(table: PartedTable, positions: IntArray, execution: Execution, what: str) -> Table:
    """Read some rows, by whoever reads the parts, in the order asked for."""
    order = np.argsort(positions, kind="stable")
    inside = positions[order]
    cuts = np.searchsorted(inside, [part.start for part in table.parts] + [table.n_rows])
    tasks = [
        _Task(part, positions=inside[cuts[k] : cuts[k + 1]])
        for k, part in enumerate(table.parts)
        if cuts[k] < cuts[k + 1]
    ]
    n_rows = sum(task.n_rows for task in tasks)
    pieces = list(execution.over(what, _take_part, tasks, n_rows))
    back = np.argsort(order, kind="stable")
    lines = None
    if pieces[0].lines is not None:
        lines = np.concatenate([piece.lines for piece in pieces if piece.lines is not None])[back]
    frame = pl.concat([piece.frame for piece in pieces])[back]
    return Table(frame, lines, replace(table.source, n_rows=len(positions)))
