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

from kpca_apps.engine.rows import (
    SAMPLE_ROWS,
    Addable,
    ArrayRows,
    RowFunction,
    RowSums,
    sample_positions,
)
from kpca_apps.files.tables.table import PartedTable, Table, TablePart, parted
from kpca_apps.novelty.row_values import row_values
from kpca_apps.novelty.table.cell_faults import CellFaults
from kpca_apps.novelty.table.cell_rules import CellRules
from kpca_apps.novelty.table.encoded_rows import EncodedFile
from kpca_apps.novelty.table.encoding import Noted, TableEncoder
from kpca_apps.novelty.table.table_rows import (
    AnyTable,
    RowQuery,
    TableRows,
    WholeTableRows,
    rows_of,
)
from kpca_apps.parallel.workers import Kept, Workers, tree_reduce

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
        kept: Kept | None = None,
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
        kept : Kept, optional
            See `Workers.map_partitions`.
        """
        sizes: list[int] = []

        def noted() -> Iterator[Task]:
            for task in tasks:
                sizes.append(task.n_rows)
                yield task

        results = self.workers.map_partitions(function, noted(), *shared, kept=kept)
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
    positions : (k,) int array
        Which of its rows are wanted.
    """

    part: TablePart
    in_use: BoolArray | None = None
    positions: IntArray | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the part."""
        return self.part.stop - self.part.start

    @property
    def places(self) -> IntArray:
        """Places of the wanted rows in the part."""
        return np.empty(0, np.int64) if self.positions is None else self.positions - self.part.start

    def __str__(self) -> str:
        return str(self.part)


@dataclass(frozen=True)
class _EncodedPart:
    """The rows of a part where they were encoded, and what was noted."""

    matrix: FloatArray
    noted: Noted

    def rows(self, start: int, stop: int) -> FloatArray:
        """Return the rows, which are those of the part."""
        return self.matrix


class _Rows(Protocol):
    """Where encoded rows are read."""

    def rows(self, start: int, stop: int) -> FloatArray: ...


def _encode_part(part: TablePart, encoder: TableEncoder, rules: CellRules) -> _EncodedPart:
    table = part.read()
    return _EncodedPart(encoder.matrix(table), encoder.note(table, rules, part.start))


def _write_part(task: _Task, file: EncodedFile, encoder: TableEncoder, rules: CellRules) -> Noted:
    encoded = _encode_part(task.part, encoder, rules)
    file.write(task.part.start, encoded.matrix)
    return encoded.noted


def _noted_of(task: _Task, encoded: _EncodedPart) -> Noted:
    return encoded.noted


def _map_part(task: _Task, rows: _Rows, function: RowFunction) -> FloatArray:
    return ArrayRows(rows.rows(task.part.start, task.part.stop)).map(function, task.in_use)


def _sum_part(task: _Task, rows: _Rows, function: RowSums[Sums]) -> Sums:
    return ArrayRows(rows.rows(task.part.start, task.part.stop)).sum(function, task.in_use)


def _pick_part(task: _Task, rows: _Rows) -> FloatArray:
    if not len(task.places):
        return np.empty((0, 0))
    return rows.rows(task.part.start, task.part.stop)[task.places]


def _find_part(task: _Task, query: RowQuery) -> IntArray:
    return task.part.start + query.positions(task.part.read())


def _take_part(task: _Task) -> Table:
    return rows_of(task.part.read(), task.places)


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
    found = sample or draw_sample(table, seed, execution)
    return PartedRows(encoder, table, found, execution, drawn=sample is not None)


def in_parts(table: AnyTable) -> AnyTable:
    """Cut a table in memory into parts if it has more than 100,000 rows."""
    if isinstance(table, Table) and table.frame.height > SAMPLE_ROWS:
        return parted(table)
    return table


class PartedRows(TableRows):
    """The rows of a table that is read in parts, and encoded once.

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
        super().__init__(
            encoder, table.source, table.columns, sample.table, sample.index, drawn=drawn
        )
        self._table, self._execution = table, execution
        first = table.parts[0]
        self.size_of_parts = first.stop - first.start

    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number a row, shape (n,), mapped from a temporary file."""
        values: FloatArray = row_values(self.n_rows, np.float64)
        start = 0
        for part in self._pass(function.purpose, _map_part, self._tasks(in_use), function):
            values[start : start + len(part)] = part
            start += len(part)
        return values

    def sum(self, function: RowSums[Sums], in_use: BoolArray | None = None) -> Sums:
        """Return the sums over the rows in use."""
        found = self._pass("Learning from rows", _sum_part, self._tasks(in_use), function)
        total: Sums = tree_reduce(add, found)
        return total

    def take(self, positions: IntArray) -> Table:
        """Return some rows as they stand in the table, in the order asked for."""
        return _take(self._table, positions, self._execution, "Fetching rows")

    def encoded(self, positions: IntArray) -> FloatArray:
        """Return some rows encoded, shape (k, d), in the order asked for."""
        inside, back = np.unique(positions, return_inverse=True)
        tasks = _tasks_of(self._table, inside)
        pieces = [piece for piece in self._pass("Fetching rows", _pick_part, tasks) if len(piece)]
        return np.concatenate(pieces)[back] if pieces else self.sample[:0]

    def find(self, query: RowQuery) -> IntArray:
        """Return the positions of the rows that are meant."""
        tasks = map(_Task, self._table.parts)
        found = self._execution.over("Looking for rows", _find_part, tasks, self.n_rows, query)
        return np.concatenate(list(found))

    @property
    def noted(self) -> Noted:
        """What all cells of all rows hold."""
        return self._encoded[1]

    def _tasks(self, in_use: BoolArray | None = None) -> Iterator[_Task]:
        for part in self._table.parts:
            here = None if in_use is None else np.asarray(in_use[part.start : part.stop])
            yield _Task(part, here)

    def _pass(
        self, what: str, function: Callable[..., Result], tasks: Iterable[_Task], *shared: object
    ) -> Iterator[Result]:
        """Go over the encoded rows of all parts, which are encoded here if they are not yet."""
        kept, _ = self._encoded
        if isinstance(kept, Kept):
            return self._execution.over(what, function, tasks, self.n_rows, *shared, kept=kept)
        return self._execution.over(what, function, tasks, self.n_rows, kept, *shared)

    @cached_property
    def _encoded(self) -> tuple[EncodedFile | Kept, Noted]:
        """Encode all rows, once: into a file, or where Dask's workers keep them."""
        work, of_cells = self._execution, (self.encoder, self.rules)
        where: EncodedFile | Kept
        if work.workers.executor == "dask":
            where = work.workers.keep(_encode_part, self._table.parts, *of_cells)
            found = work.over("Reading rows", _noted_of, self._tasks(), self.n_rows, kept=where)
        else:
            where = EncodedFile(self.n_rows, self.encoder.width)
            tasks = self._tasks()
            found = work.over("Reading rows", _write_part, tasks, self.n_rows, where, *of_cells)
        faults: CellFaults | None = None
        hashes, start = row_values(self.n_rows, np.uint64), 0
        for part in found:
            faults = part.faults if faults is None else faults + part.faults
            hashes[start : start + len(part.hashes)] = part.hashes
            start += len(part.hashes)
        assert faults is not None
        return where, Noted(faults, hashes)


def _tasks_of(table: PartedTable, inside: IntArray) -> Iterator[_Task]:
    """Yield a task for each part, with those of increasing positions that lie in it."""
    cuts = np.searchsorted(inside, [part.start for part in table.parts] + [table.n_rows])
    for part, start, stop in zip(table.parts, cuts, cuts[1:], strict=False):
        yield _Task(part, positions=inside[start:stop])


def _take(table: PartedTable, positions: IntArray, execution: Execution, what: str) -> Table:
    """Read some rows, by whoever reads the parts, in the order asked for."""
    inside, back = np.unique(positions, return_inverse=True)
    tasks = [task for task in _tasks_of(table, inside) if len(task.places)]
    n_rows = sum(task.n_rows for task in tasks)
    pieces = list(execution.over(what, _take_part, tasks, n_rows))
    lines = None
    if pieces[0].lines is not None:
        lines = np.concatenate([piece.lines for piece in pieces if piece.lines is not None])[back]
    frame = pl.concat([piece.frame for piece in pieces])[back]
    return Table(frame, lines, replace(table.source, n_rows=len(positions)))
