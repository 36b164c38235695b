"""The rows of a table as finite numbers, encoded once, and what their cells hold.

A table in memory is one matrix. The numbers of a table in parts lie in one temporary file, or with
the Dask workers who made them: a later pass reads neither text nor Parquet again, but floats.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.rows import ArrayRows, RowFunction, RowSums, Sums
from kpca_apps.errors import InputError
from kpca_apps.names import one_line, suggest
from kpca_apps.novelty.checks.faults import CellFaults
from kpca_apps.novelty.checks.odd_cells import CellRule, cell_rules
from kpca_apps.novelty.columns.encoding import TableEncoder
from kpca_apps.novelty.columns.execution import Execution
from kpca_apps.novelty.columns.parts import (
    AnyTable,
    PartTask,
    Sample,
    column_names,
    draw_sample,
    row_count,
    take_rows,
)
from kpca_apps.novelty.columns.plan import UNKNOWN, listed, quoted
from kpca_apps.novelty.row_values import row_values
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.spools import require_disk, spool_folder, unusable
from kpca_apps.system.workers import Kept, Workers, tree_reduce
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import PartedTable, Table

HashArray = NDArray[np.uint64]
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Encoded:
    """All rows of a table, encoded: a `RowSource`."""

    table: AnyTable
    encoder: TableEncoder
    sample_table: Table  # the rows held in memory, all or drawn, as they stand
    sample_index: IntArray  # (s,), their positions, increasing
    sample: FloatArray  # (s, d), they encoded
    stored: EncodedFile | Kept | None  # all rows of a table in parts, encoded
    rules: tuple[CellRule, ...]  # what the used columns allow, learned from the sample
    faults: CellFaults  # of all rows; none where nothing was looked for
    hashes: HashArray  # (n,), of the used cells of each row, as they are written
    warnings: tuple[str, ...]  # what was done to cells that are no values
    execution: Execution  # of passes over the parts
    n_jobs: int | None  # threads that work on a table in memory
    is_accepted: BoolArray | None  # (n,), rows that are fine whatever they hold; None: none

    @property
    def source(self) -> SourceInfo:
        """Where the table came from."""
        return self.table.source

    @property
    def n_rows(self) -> int:
        """Number n of rows."""
        return row_count(self.table)

    @property
    def size_of_parts(self) -> int | None:
        """Rows read at a time; None for a table in memory."""
        return None if isinstance(self.table, Table) else self.table.parts[0].stop

    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number a row, shape (n,); of very many rows, mapped from a temporary file."""
        if self.stored is None:
            return ArrayRows(self.sample, n_jobs=self.n_jobs).map(function, in_use)
        parts = self._over_parts(function.purpose, _map_part, in_use, function)
        return _joined(parts, row_values(self.n_rows, np.float64))

    def sum(self, function: RowSums[Sums], in_use: BoolArray | None = None) -> Sums:
        """Return the sums over the training subset."""
        if self.stored is None:
            return ArrayRows(self.sample, n_jobs=self.n_jobs).sum(function, in_use)
        found = self._over_parts("Learning from rows", _sum_part, in_use, function)
        total: Sums = tree_reduce(add, found)
        return total

    def take(self, positions: IntArray) -> Table:
        """Return some rows as they stand in the table, in the order asked for."""
        return take_rows(self.table, positions, self.execution)

    def encoded(self, positions: IntArray) -> FloatArray:
        """Return some rows encoded, shape (k, d), in the order asked for."""
        if self.stored is None:
            return self.sample[positions]
        return self.encoder.matrix(self.take(positions))

    def over(
        self,
        what: str,
        function: Callable[..., Result],
        tasks: Sequence[Any],
        n_rows: int,
        *shared: object,
    ) -> Iterator[Result]:
        """Yield ``function(task, *shared)`` of each task, in order; see `Execution.over`."""
        if self.stored is not None:
            yield from self.execution.over(what, function, tasks, n_rows, *shared)
            return
        with Workers(n_workers=self.n_jobs) as workers:
            yield from workers.map_partitions(function, tasks, *shared)

    def _over_parts(
        self, what: str, function: Callable[..., Result], marked: BoolArray | None, *shared: object
    ) -> Iterator[Result]:
        """Go over the encoded rows of all parts, some of them marked."""
        assert isinstance(self.table, PartedTable)
        tasks, stored = _tasks(self.table, marked), self.stored
        if isinstance(stored, Kept):
            return self.execution.over(what, function, tasks, self.n_rows, *shared, kept=stored)
        return self.execution.over(what, function, tasks, self.n_rows, stored, *shared)


def encode(
    encoder: TableEncoder,
    table: AnyTable,
    execution: Execution | None = None,
    *,
    sample: Sample | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    is_accepted: BoolArray | None = None,
    checked: bool = True,
) -> Encoded:
    """Encode the rows of a table by an encoder, which was fitted on the `sample` if given.

    Rows that are accepted (n,) are fine whatever they hold. Unless cells are to be `checked`,
    nothing is said of them. InputError if a column that the encoder uses is missing, or if most of
    its cells cannot be read.
    """
    source, names = table.source, column_names(table)
    for spec in encoder.plan.used:
        if spec.name not in names:
            raise InputError(
                f"{source.name}: column {quoted(spec.name)} is missing, which the model uses; "
                f"add it, or fit a model without it.{suggest(spec.name, names)}"
            )
    execution = execution or Execution()
    drawn = sample is not None and isinstance(table, PartedTable)
    held = sample or draw_sample(table, seed, execution)
    rules = cell_rules(held.table, encoder.plan, row_count(table)) if checked else ()
    stored: EncodedFile | Kept | None = None
    if isinstance(table, Table):
        faults, hashes = _looked_through(table, encoder, rules, 0, is_accepted)
    else:
        stored, faults, hashes = _encode_parts(table, encoder, rules, execution, is_accepted)
    warnings: list[str] = []
    if checked:
        known = {spec.name for spec in encoder.plan.specs if spec.why != UNKNOWN}
        if extra := [name for name in names if name not in known]:
            noun = "Column" if len(extra) == 1 else "Columns"
            warnings.append(f"{noun} not in the reference, left unused: {listed(extra)}.")
        in_lines = held.table.lines is not None and source.file_column is None
        name = source.name
        warnings += faults.sentences(encoder.plan, name, in_lines=in_lines, drawn=drawn)
    return Encoded(
        table=table,
        encoder=encoder,
        sample_table=held.table,
        sample_index=held.index,
        sample=encoder.matrix(held.table),
        stored=stored,
        rules=rules,
        faults=faults,
        hashes=hashes,
        warnings=tuple(warnings),
        execution=execution,
        n_jobs=n_jobs,
        is_accepted=is_accepted,
    )


def hash_rows(table: Table, encoder: TableEncoder) -> HashArray:
    """Hash the used cells of rows as they stand: equal rows have equal hashes in every part.

    Of n different rows two share a hash with a probability of n^2 / 2^65: of a billion, .03.
    """
    names = [spec.name for spec in encoder.plan.used]
    return table.frame.select(names).hash_rows(seed=0).to_numpy()


def _looked_through(
    table: Table,
    encoder: TableEncoder,
    rules: tuple[CellRule, ...],
    first_row: int,
    is_accepted: BoolArray | None,
) -> tuple[CellFaults, HashArray]:
    """Return the faults of a table, or of a part of it, and the hashes of its rows."""
    if not rules:
        return CellFaults((), (), ()), np.empty(0, dtype=np.uint64)
    faults = CellFaults.of(table, encoder.plan, rules, first_row, is_accepted)
    return faults, hash_rows(table, encoder)


def _encode_parts(
    table: PartedTable,
    encoder: TableEncoder,
    rules: tuple[CellRule, ...],
    execution: Execution,
    is_accepted: BoolArray | None,
) -> tuple[EncodedFile | Kept, CellFaults, HashArray]:
    """Encode all rows into a file, or where Dask's workers keep them."""
    n_rows, tasks, shared = table.n_rows, _tasks(table, is_accepted), (encoder, rules)
    stored: EncodedFile | Kept
    if execution.workers.executor == "dask":
        stored = execution.workers.keep(_encode_part, tasks, *shared)
        parts = execution.over("Reading rows", _without_rows, _tasks(table), n_rows, kept=stored)
    else:
        stored = EncodedFile(n_rows, sum(coder.width for coder in encoder.coders))
        parts = execution.over("Reading rows", _write_part, tasks, n_rows, stored, *shared)
    found = list[CellFaults]()

    def hashes_of(part: _EncodedPart) -> HashArray:
        found[:] = [found[0] + part.faults if found else part.faults]
        return part.hashes

    hashes = _joined(map(hashes_of, parts), row_values(n_rows, np.uint64))
    return stored, found[0], hashes


def _joined(parts: Iterator[NDArray[Any]], into: NDArray[Any]) -> NDArray[Any]:
    """Write arrays one after the other into one."""
    start = 0
    for part in parts:
        into[start : start + len(part)] = part
        start += len(part)
    return into


def _tasks(table: PartedTable, marked: BoolArray | None = None) -> Iterator[PartTask]:
    for part in table.parts:
        here = None if marked is None else np.asarray(marked[part.start : part.stop])
        yield PartTask(part, here)


class _EncodedPart(NamedTuple):
    """The rows of a part, and what their cells hold."""

    matrix: FloatArray  # (n, d); kept by a worker of Dask, or empty once it is in a file
    faults: CellFaults
    hashes: HashArray  # (n,), of the rows

    def rows(self, start: int, stop: int) -> FloatArray:
        """Return the rows, which are those of the part: as `EncodedFile` does."""
        return self.matrix


def _encode_part(
    task: PartTask, encoder: TableEncoder, rules: tuple[CellRule, ...]
) -> _EncodedPart:
    table = task.part.read()
    found = _looked_through(table, encoder, rules, task.part.start, task.marked)
    return _EncodedPart(encoder.matrix(table), *found)


def _write_part(
    task: PartTask, file: EncodedFile, encoder: TableEncoder, rules: tuple[CellRule, ...]
) -> _EncodedPart:
    encoded = _encode_part(task, encoder, rules)
    file.write(task.part.start, encoded.matrix)
    return _without_rows(task, encoded)


def _without_rows(task: PartTask, encoded: _EncodedPart) -> _EncodedPart:
    return encoded._replace(matrix=np.empty((0, 0)))


def _map_part(
    task: PartTask, encoded: EncodedFile | _EncodedPart, function: RowFunction
) -> FloatArray:
    return ArrayRows(encoded.rows(task.part.start, task.part.stop)).map(function, task.marked)


def _sum_part(task: PartTask, encoded: EncodedFile | _EncodedPart, function: RowSums[Sums]) -> Sums:
    return ArrayRows(encoded.rows(task.part.start, task.part.stop)).sum(function, task.marked)


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
