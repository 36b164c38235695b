"""The rows of a table read in parts, each where the work on it is done, and encoded once.

Whoever works on the parts, and however many: parts are cut at fixed rows, and their results are
put together in one order. The encoded rows lie in one temporary file, or with the workers who made
them: a later pass reads neither text nor Parquet again, but blocks of floats.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import tee
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from kpca_apps.engine.rows import (
    SAMPLE_ROWS,
    ArrayRows,
    RowFunction,
    RowSums,
    Sums,
    sample_positions,
)
from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import one_line
from kpca_apps.novelty.checks.faults import CellFaults
from kpca_apps.novelty.checks.odd_cells import CellRule
from kpca_apps.novelty.columns.encoding import TableEncoder
from kpca_apps.novelty.columns.plan import listed
from kpca_apps.novelty.columns.rows import (
    AnyTable,
    GroupKey,
    RowQuery,
    TableRows,
    hash_rows,
    row_groups,
    rows_of,
)
from kpca_apps.novelty.row_values import row_values
from kpca_apps.system.output import require_disk, spool_folder, unusable
from kpca_apps.system.workers import Kept, Workers, tree_reduce
from kpca_apps.tables.table import (
    PartedTable,
    Rows,
    Table,
    TablePart,
    collect,
    parted,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
HashArray = NDArray[np.uint64]
Result = TypeVar("Result")
# Groups of rows that are distinguished; an identifier has more.
MOST_KEYS = 100_000
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@contextmanager
def _silent(what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
    """Show no progress."""
    yield lambda n_rows: None


@dataclass(frozen=True)
class Execution:
    """Who works on a table that is read in parts, and how progress is shown.

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
        tasks: Iterable[Any],
        n_rows: int,
        *shared: object,
        kept: Kept | None = None,
    ) -> Iterator[Result]:
        """Yield ``function(task, *shared)`` of each task, in order, showing how far it is.

        A task is about the rows of one part, `n_rows` in all; `kept`: see `Workers.map_partitions`.
        """
        taken, done = tee(tasks)
        results = self.workers.map_partitions(function, taken, *shared, kept=kept)
        with self.progress(what, n_rows) as advance:
            for result, task in zip(results, done, strict=True):
                yield result
                advance(task.n_rows)


@dataclass(frozen=True)
class _Task:
    """A part of a table and what is to be done with its rows."""

    part: TablePart
    in_use: BoolArray | None = None  # (n,), which of its rows the model is fitted on
    places: IntArray = field(default_factory=lambda: np.empty(0, np.int64))  # of rows wanted of it

    @property
    def n_rows(self) -> int:
        """Rows of the part."""
        return self.part.stop - self.part.start

    def __str__(self) -> str:
        return str(self.part)


class EncodedFile:
    """Rows of floats in a temporary file, removed when nothing refers to this or the program ends.

    The file takes all its space at once: InputError if there is no room.
    """

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self._row_bytes, self._n_columns = 8 * n_columns, n_columns
        self._spool = spool_folder()
        self._path = self._spool.path / "rows"
        require_disk(self._spool.path, n_rows * self._row_bytes, f"A table of {n_rows:,} rows")
        try:
            with self._path.open("xb") as file:
                # Without space of its own, a full disk would end the run half way.
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, n_rows * self._row_bytes)
        except OSError as error:
            raise unusable(error) from None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the removal to the process that made the file."""
        return {name: value for name, value in self.__dict__.items() if name != "_spool"}

    def write(self, start: int, rows: FloatArray) -> None:
        """Write rows (k, d) to their place, from 0."""
        try:
            with self._path.open("r+b") as file:
                file.seek(start * self._row_bytes)
                file.write(np.ascontiguousarray(rows).data)
        except OSError as error:
            raise unusable(error) from None

    def rows(self, start: int, stop: int) -> FloatArray:
        """Read the rows from `start` to `stop` - 1, shape (k, d)."""
        count, offset = (stop - start) * self._n_columns, start * self._row_bytes
        # Read and not mapped: pages of a map count as memory of the process.
        try:
            read = np.fromfile(self._path, dtype=np.float64, count=count, offset=offset)
        except OSError:
            read = np.empty(0)
        if len(read) < count:
            raise InputError(
                f"{one_line(str(self._path), 200)}: the encoded rows are no longer there; leave "
                "temporary files alone while a table is worked on, and run again."
            )
        return read.reshape(stop - start, self._n_columns)


class _EncodedPart(NamedTuple):
    """The rows of a part, and what their cells hold."""

    matrix: FloatArray  # (n, d); kept by a worker of Dask, or empty once it is in a file
    faults: CellFaults
    hashes: HashArray  # (n,), of the rows

    def rows(self, start: int, stop: int) -> FloatArray:
        """Return the rows, which are those of the part: as `EncodedFile` does."""
        return self.matrix


def _encode_part(
    part: TablePart, encoder: TableEncoder, rules: tuple[CellRule, ...], accepted: IntArray
) -> _EncodedPart:
    table = part.read()
    is_accepted = np.isin(np.arange(part.start, part.stop), accepted)
    faults = CellFaults.of(table, encoder.plan, rules, part.start, is_accepted)
    return _EncodedPart(encoder.matrix(table), faults, hash_rows(table, encoder))


def _write_part(
    task: _Task,
    file: EncodedFile,
    encoder: TableEncoder,
    rules: tuple[CellRule, ...],
    accepted: IntArray,
) -> _EncodedPart:
    encoded = _encode_part(task.part, encoder, rules, accepted)
    file.write(task.part.start, encoded.matrix)
    return _without_rows(task, encoded)


def _without_rows(task: _Task, encoded: _EncodedPart) -> _EncodedPart:
    return encoded._replace(matrix=np.empty((0, 0)))


def _map_part(
    task: _Task, encoded: EncodedFile | _EncodedPart, function: RowFunction
) -> FloatArray:
    return ArrayRows(encoded.rows(task.part.start, task.part.stop)).map(function, task.in_use)


def _sum_part(task: _Task, encoded: EncodedFile | _EncodedPart, function: RowSums[Sums]) -> Sums:
    return ArrayRows(encoded.rows(task.part.start, task.part.stop)).sum(function, task.in_use)


def _pick_part(task: _Task, encoded: EncodedFile | _EncodedPart) -> FloatArray:
    if not len(task.places):
        return np.empty((0, 0))
    return encoded.rows(task.part.start, task.part.stop)[task.places]


def _find_part(task: _Task, query: RowQuery) -> IntArray:
    return task.part.start + query.positions(task.part.read())


def _work_part(task: _Task, function: Callable[[Table], Result]) -> Result:
    return function(task.part.read())


def _groups_part(task: _Task, by: tuple[str, ...]) -> tuple[list[GroupKey], IntArray]:
    return row_groups(task.part.read(), by)


def _take_part(task: _Task) -> Table:
    return rows_of(task.part.read(), task.places)


@dataclass(frozen=True)
class Sample:
    """Rows of a table that are held in memory: all, or drawn."""

    table: Table  # they as they stand, in the order of the table
    index: IntArray  # (s,), their positions, increasing


def draw_sample(table: AnyTable, seed: int, execution: Execution) -> Sample:
    """Draw the rows that columns, scalings and landmarks are learned from.

    A table in memory is its own sample.
    """
    if isinstance(table, Table):
        return Sample(table, np.arange(table.frame.height))
    index = sample_positions(table.n_rows, seed)
    drawn = take_rows(table, index, execution, "Drawing rows")
    return Sample(replace(drawn, source=table.source), index)


def table_rows(
    encoder: TableEncoder,
    table: AnyTable,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    execution: Execution | None = None,
    sample: Sample | None = None,
    is_accepted: BoolArray | None = None,
) -> TableRows:
    """Look at the rows of a table through an encoder, which was fitted on the `sample` if given.

    Rows that are accepted (n,) are fine whatever they hold. InputError if a column it uses is
    missing, or, in memory, if most of its cells cannot be read.
    """
    if isinstance(table, Table):
        rows = TableRows(encoder, table, n_jobs=n_jobs, is_accepted=is_accepted)
        rows.warnings()  # a table that cannot be read is refused before it is scored
        return rows
    execution = execution or Execution()
    found = sample or draw_sample(table, seed, execution)
    drawn = sample is not None
    return PartedRows(encoder, table, found, execution, drawn=drawn, is_accepted=is_accepted)


def in_parts(table: AnyTable) -> AnyTable:
    """Cut a table in memory into parts if it has more than 100,000 rows."""
    if isinstance(table, Table) and table.frame.height > SAMPLE_ROWS:
        return parted(table)
    return table


def each_part(
    table: AnyTable,
    what: str,
    function: Callable[[Table], Result],
    execution: Execution | None = None,
) -> Iterator[Result]:
    """Yield what a function makes of a table in memory, or of each part of one, in order."""
    if isinstance(table, Table):
        yield function(table)
        return
    tasks = map(_Task, table.parts)
    yield from (execution or Execution()).over(what, _work_part, tasks, table.n_rows, function)


class PartedRows(TableRows):
    """The rows of a table that is read in parts, and encoded once."""

    def __init__(
        self,
        encoder: TableEncoder,
        table: PartedTable,
        sample: Sample,
        execution: Execution,
        *,
        drawn: bool,
        is_accepted: BoolArray | None = None,
    ) -> None:
        super().__init__(encoder, sample.table, is_accepted=is_accepted)
        self.n_rows, self.sample_index, self._drawn = table.n_rows, sample.index, drawn
        self._table, self._execution = table, execution
        self.size_of_parts = table.parts[0].stop - table.parts[0].start

    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number a row, shape (n,), mapped from a temporary file."""
        values: FloatArray = row_values(self.n_rows, np.float64)
        start = 0
        for part in self._pass(function.purpose, _map_part, self._tasks(in_use), function):
            values[start : start + len(part)] = part
            start += len(part)
        return values

    def sum(self, function: RowSums[Sums], in_use: BoolArray | None = None) -> Sums:
        """Return the sums over the training subset."""
        found = self._pass("Learning from rows", _sum_part, self._tasks(in_use), function)
        total: Sums = tree_reduce(add, found)
        return total

    def take(self, positions: IntArray) -> Table:
        """Return some rows as they stand in the table, in the order asked for."""
        return take_rows(self._table, positions, self._execution)

    def encoded(self, positions: IntArray) -> FloatArray:
        """Return some rows encoded, shape (k, d), in the order asked for."""
        tasks, back = _tasks_of(self._table, positions)
        pieces = [piece for piece in self._pass("Fetching rows", _pick_part, tasks) if len(piece)]
        return np.concatenate(pieces)[back] if pieces else self.sample[:0]

    def find(self, query: RowQuery) -> IntArray:
        """Return the positions of the rows that are meant."""
        tasks = map(_Task, self._table.parts)
        found = self._execution.over("Looking for rows", _find_part, tasks, self.n_rows, query)
        return np.concatenate(list(found))

    def groups(self, by: Sequence[str]) -> tuple[list[GroupKey], IntArray]:
        """Return the groups by some columns, and the place among them of each row, shape (n,)."""
        return table_groups(self._table, by, self._execution)

    def seen_by(self, encoder: TableEncoder, positions: IntArray) -> TableRows:
        """Look at some of the rows, positions increasing, through another encoder."""
        table, work = table_subset(self._table, positions, self._execution), self._execution
        if isinstance(table, Table):
            return TableRows(encoder, table, n_jobs=self._n_jobs)
        return PartedRows(encoder, table, draw_sample(table, 0, work), work, drawn=False)

    def over(
        self,
        what: str,
        function: Callable[..., Result],
        tasks: Sequence[Any],
        n_rows: int,
        *shared: object,
    ) -> Iterator[Result]:
        """Yield ``function(task, *shared)`` of each task, in order; see `Execution.over`."""
        return self._execution.over(what, function, tasks, n_rows, *shared)

    @cached_property
    def faults(self) -> CellFaults:
        """What is wrong with the cells of all rows."""
        return self._encoded[1]

    @cached_property
    def hashes(self) -> HashArray:
        """A hash of the used cells of each row."""
        return self._encoded[2]

    def _tasks(self, in_use: BoolArray | None = None) -> Iterator[_Task]:
        for part in self._table.parts:
            here = None if in_use is None else np.asarray(in_use[part.start : part.stop])
            yield _Task(part, here)

    def _pass(
        self, what: str, function: Callable[..., Result], tasks: Iterable[_Task], *shared: object
    ) -> Iterator[Result]:
        """Go over the encoded rows of all parts, which are encoded here if they are not yet."""
        kept = self._encoded[0]
        if isinstance(kept, Kept):
            return self._execution.over(what, function, tasks, self.n_rows, *shared, kept=kept)
        return self._execution.over(what, function, tasks, self.n_rows, kept, *shared)

    @cached_property
    def _encoded(self) -> tuple[EncodedFile | Kept, CellFaults, HashArray]:
        """Encode all rows, once: into a file, or where Dask's workers keep them."""
        accepted = np.flatnonzero(() if self.is_accepted is None else self.is_accepted)
        work, shared = self._execution, (self.encoder, self.rules, accepted)
        where: EncodedFile | Kept
        if work.workers.executor == "dask":
            where = work.workers.keep(_encode_part, self._table.parts, *shared)
            parts = work.over("Reading rows", _without_rows, self._tasks(), self.n_rows, kept=where)
        else:
            where = EncodedFile(self.n_rows, sum(coder.width for coder in self.encoder.coders))
            tasks = self._tasks()
            parts = work.over("Reading rows", _write_part, tasks, self.n_rows, where, *shared)
        faults: CellFaults | None = None
        hashes, start = row_values(self.n_rows, np.uint64), 0
        for part in parts:
            faults = part.faults if faults is None else faults + part.faults
            hashes[start : start + len(part.hashes)] = part.hashes
            start += len(part.hashes)
        assert faults is not None
        return where, faults, hashes


def _tasks_of(table: PartedTable, positions: IntArray) -> tuple[list[_Task], IntArray]:
    """Return a task for each part, with the places of some rows, and the order asked for."""
    inside, back = np.unique(positions, return_inverse=True)
    cuts = np.searchsorted(inside, [part.start for part in table.parts] + [table.n_rows])
    tasks = [
        _Task(part, places=inside[start:stop] - part.start)
        for part, start, stop in zip(table.parts, cuts, cuts[1:], strict=False)
    ]
    return tasks, back


def table_groups(
    table: AnyTable, by: Sequence[str], execution: Execution
) -> tuple[list[GroupKey], IntArray]:
    """Find the groups of equal text in some columns, and the place among them of each row.

    ConfigError where there are as many as identifiers have.
    """
    if isinstance(table, Table):
        return row_groups(table, by)
    found: dict[GroupKey, int] = {}
    codes, start, tasks = row_values(table.n_rows, np.int64), 0, map(_Task, table.parts)
    for keys, places in execution.over(
        "Finding groups", _groups_part, tasks, table.n_rows, tuple(by)
    ):
        numbers = np.array([found.setdefault(key, len(found)) for key in keys], dtype=np.int64)
        if len(found) > MOST_KEYS:
            raise ConfigError(
                f"--by {listed(by)} makes more than {MOST_KEYS:,} groups: name a column of few "
                "values, such as a kind, a site or a machine"
            )
        codes[start : start + len(places)] = numbers[places]
        start += len(places)
    return list(found), codes


def table_subset(table: AnyTable, positions: IntArray, execution: Execution) -> AnyTable:
    """Return a table of some rows, positions increasing; of more than 100,000, one in parts."""
    if isinstance(table, Table) or len(positions) <= SAMPLE_ROWS:
        return take_rows(table, positions, execution)
    tasks, _ = _tasks_of(table, positions)
    tasks = [task for task in tasks if len(task.places)]
    n_rows, has_lines = sum(task.n_rows for task in tasks), tasks[0].part.read().lines is not None

    def pieces() -> Iterator[pa.Table]:
        for piece in execution.over("Fetching rows", _take_part, tasks, n_rows):
            rows = piece.frame.to_arrow()
            yield rows if piece.lines is None else rows.append_column("", pa.array(piece.lines))

    source, label = table.source, one_line(table.source.name, 200)
    rows = Rows(pieces(), list(table.columns), [], has_lines)
    return collect(rows, source, label, lambda: source.sha256, SAMPLE_ROWS, None)


def take_rows(
    table: AnyTable, positions: IntArray, execution: Execution, what: str = "Fetching rows"
) -> Table:
    """Return some rows as they stand in a table, read by whoever reads its parts, in that order."""
    if isinstance(table, Table):
        return rows_of(table, positions)
    tasks, back = _tasks_of(table, positions)
    # Of no rows the first part still tells the columns.
    tasks = [task for task in tasks if len(task.places)] or tasks[:1]
    n_rows = sum(task.n_rows for task in tasks)
    pieces = list(execution.over(what, _take_part, tasks, n_rows))
    lines = None
    if pieces[0].lines is not None:
        lines = np.concatenate([piece.lines for piece in pieces if piece.lines is not None])[back]
    frame = pl.concat([piece.frame for piece in pieces])[back]
    return Table(frame, lines, replace(table.source, n_rows=len(positions)))
