"""Encode all rows of a table, and check all cells in the same pass.

A table in memory is one matrix. The numbers of a table in parts are in one temporary file, or with
the Dask workers that made them: later passes read floats instead of text or Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import add
from typing import Any, ClassVar, NamedTuple

import numpy as np

from kpca_apps.engine.rows import ArrayRows, RowFunction, RowSums, Sums
from kpca_apps.errors import InputError
from kpca_apps.names import listed, quoted, suggest
from kpca_apps.novelty.accepted import Accepted
from kpca_apps.novelty.checks.number_rules import KnownNumbers
from kpca_apps.novelty.checks.odd_cells import NONE_ODD, CellFaults, CellRule, cell_rules
from kpca_apps.novelty.columns.encoding import TableEncoder
from kpca_apps.novelty.columns.parts import (
    NO_GROUPS,
    AnyTable,
    Execution,
    Groups,
    PartTask,
    Sample,
    part_tasks,
    take_rows,
)
from kpca_apps.novelty.columns.plan import UNKNOWN, ColumnPlan
from kpca_apps.novelty.detector.detector import Detector
from kpca_apps.novelty.evidence import NO_EVIDENCE
from kpca_apps.novelty.relations.finding.keys import NAMING
from kpca_apps.novelty.relations.relations import JudgedRows, Relations
from kpca_apps.system.arrays import BoolArray, FloatArray, HashArray, IntArray
from kpca_apps.system.files.windowed import SharedArray, blocks, row_values
from kpca_apps.system.workers import Kept, tree_reduce
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import PartedTable, Table, require_formats


@dataclass(frozen=True)
class LearnedEncoder(TableEncoder):
    """An encoder that also knows which numbers its columns allow, and how they are related."""

    stored_as: ClassVar[str] = "TableEncoder"  # name of the class in model files

    allowed: tuple[KnownNumbers | None, ...]  # allowed values of each column of numbers
    relations: Relations  # relations between columns, by which rows are judged

    def validate(self) -> None:
        """Raise for parts that do not come from one fit."""
        super().validate()
        if len(self.allowed) != len(self.summaries):
            raise ValueError("what its columns allow is not of them")

    @classmethod
    def learn(
        cls, table: Table, plan: ColumnPlan, *, contaminated: bool, seed: int = 0
    ) -> LearnedEncoder:
        """Fit an encoder to a table, and learn which cells are usual."""
        of = TableEncoder.fit(table, plan, contaminated=contaminated)
        allowed = tuple(KnownNumbers.learn(table, spec) for spec in plan.used)
        relations = Relations.learn(table, plan, seed=seed)
        return cls(plan, of.coders, of.imputer, of.summaries, allowed, relations)

    def judge(self, table: Table, *, is_training: BoolArray | None = None) -> JudgedRows:
        """Judge rows by relations between cells; training rows are marked by a mask (n,)."""
        hidden = self.plan.hidden
        return self.relations.judge(table, own=is_training, hidden=hidden, naming=self.naming)

    @property
    def naming(self) -> list[str]:
        """Columns that identify rows."""
        return [spec.name for spec in self.plan.specs if spec.role in NAMING]


@dataclass(frozen=True, eq=False)
class Encoded:
    """All rows of a table, encoded: a `RowSource`."""

    table: AnyTable
    encoder: LearnedEncoder
    sample_table: Table  # the rows held in memory, as written: all, or a sample
    sample_index: IntArray  # (s,), indices of these rows, increasing
    sample: FloatArray  # (s, d), these rows, encoded
    training: IntArray  # indices of the encoder's training rows; empty if from another table
    stored: SharedArray | Kept | None  # all rows of a table in parts, encoded
    rules: tuple[CellRule, ...]  # rules for cells, also of identifiers, learned from the sample
    faults: CellFaults  # faults of all rows; empty if cells were not checked
    hashes: HashArray  # (n,), hash of the used cells of each row, as written
    surprise: FloatArray  # (n,), -log p of each row by relations between columns
    warnings: tuple[str, ...]  # how cells without a valid value were treated
    execution: Execution  # workers for passes over the parts
    n_jobs: int | None  # number of threads that work on a table in memory
    accepted: Accepted | None  # the user's judgements of rows; None without any
    groups: Groups  # groups in which rows are judged; index of each row's group

    @property
    def source(self) -> SourceInfo:
        """Where the table came from."""
        return self.table.source

    @property
    def n_rows(self) -> int:
        """Number n of rows."""
        return self.table.n_rows

    @property
    def are_training(self) -> bool:
        """Whether the rows are the model's training rows, whose scores are known."""
        return bool(len(self.training))

    @property
    def is_accepted(self) -> BoolArray | None:
        """Mask of the accepted rows (n,); None if there are none."""
        return None if self.accepted is None else self.accepted.is_accepted

    @property
    def is_wrong(self) -> BoolArray | None:
        """Mask of the rows known to be wrong (n,); None if there are no marks."""
        return None if self.accepted is None else self.accepted.is_wrong

    @property
    def n_judged(self) -> int:
        """Number of rows to judge: all rows but those that a reader judged fine or known before."""
        return self.n_rows - (0 if self.accepted is None else self.accepted.n_rows)

    @property
    def n_threads(self) -> int | None:
        """Number of threads for rows in memory, as joblib counts them."""
        workers = self.execution.workers
        if self.stored is None or workers.executor == "dask":
            return self.n_jobs
        return workers.width

    @property
    def size_of_parts(self) -> int | None:
        """Number of rows read at a time; None for a table in memory."""
        return None if isinstance(self.table, Table) else self.table.parts[0].stop

    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number for each row (n,); for very many rows, memory-mapped."""
        if self.stored is None:
            return ArrayRows(self.sample, n_jobs=self.n_jobs).map(function, in_use)
        values, start = row_values(self.n_rows, np.float64), 0
        for part in self._over_parts(function.purpose, "map", function, in_use=in_use):
            values[start : start + len(part)] = part
            start += len(part)
        return values

    def scores(self, detector: Detector) -> FloatArray:
        """Score all rows as if they were new, shape (n,)."""
        scores = self.map(detector.row_scores())
        if (combined := detector.combined) is not None:
            for block in blocks(len(scores)):
                scores[block] = combined.with_surprise(scores[block], self.surprise[block])
        return scores

    def sum(self, function: RowSums[Sums], in_use: BoolArray | None = None) -> Sums:
        """Sum a function over the rows `in_use`, by default all."""
        if self.stored is None:
            return ArrayRows(self.sample, n_jobs=self.n_jobs).sum(function, in_use)
        found = self._over_parts("Learning from rows", "sum", function, in_use=in_use)
        total: Sums = tree_reduce(add, found)
        return total

    def take(self, positions: IntArray) -> Table:
        """Return rows as written in the table, in the requested order."""
        return take_rows(self.table, positions, self.execution)

    def encoded(self, positions: IntArray) -> FloatArray:
        """Return encoded rows (k, d), in the requested order."""
        if self.stored is None:
            return self.sample[positions]
        if isinstance(self.stored, SharedArray):
            return self.stored[positions]
        return self.encoder.matrix(self.take(positions))

    def _over_parts(self, what: str, *how: Any, in_use: BoolArray | None) -> Iterator[Any]:
        """Yield what `_of_part` returns for each part; only maps are cached."""
        assert isinstance(self.table, PartedTable)
        table, stored, over = self.table, self.stored, self.execution.over
        tasks = part_tasks(table, in_use, bare=isinstance(stored, Kept))
        if not isinstance(stored, Kept):
            return over(what, _of_part, tasks, table.n_rows, stored, *how)
        is_map = how[0] == "map"
        cached_by = (table, FloatArray, (self.encoder, how[1], in_use)) if is_map else None
        return over(what, _of_part, tasks, table.n_rows, *how, kept=stored, cached_by=cached_by)


def encode(
    encoder: LearnedEncoder,
    held: Sample,
    execution: Execution | None = None,
    *,
    n_jobs: int | None = None,
    accepted: Accepted | None = None,
    checked: bool = True,
    training: IntArray | None = None,
) -> Encoded:
    """Encode all rows of a table; its sample stays in memory.

    If the encoder was fitted to this table, `training` are the positions of the rows it was fitted
    to. Accepted rows are never faulty. Unless `checked`, no cells are examined. Raises InputError
    if a column that the encoder uses is missing, or if most of its cells cannot be read.
    """
    table = held.whole
    source, names = table.source, table.columns
    for spec in encoder.plan.used:
        if spec.name not in names:
            raise InputError(
                f"{source.name}: column {quoted(spec.name)} is missing, which the model uses; "
                f"add it, or fit a model without it.{suggest(spec.name, names)}"
            )
    execution = execution or Execution()
    warnings: list[str] = []
    are_training = training is not None
    if not are_training:
        formats = {spec.name: spec.format for spec in encoder.plan.used}
        warnings += require_formats(held.table, formats, "the reference")
    drawn = are_training and isinstance(table, PartedTable)
    pairs = zip(encoder.plan.used, encoder.allowed, strict=True) if not are_training else ()
    of_reference = {spec.name: allowed for spec, allowed in pairs if allowed is not None}
    is_accepted = None if accepted is None else accepted.is_accepted
    rules: tuple[CellRule, ...] = ()
    if checked:
        others, n_others = held.table, table.n_rows
        # In the training table, the training rows define what is allowed; in other tables,
        # all rows but the accepted ones.
        if is_accepted is not None and not are_training and not is_accepted[held.index].all():
            others = others.take(np.flatnonzero(~is_accepted[held.index]))
            n_others -= int(is_accepted.sum())
        rules = cell_rules(others, encoder.plan, n_others, of_reference)
    stored: SharedArray | Kept | None = None
    training = np.arange(0) if training is None else training
    if isinstance(table, Table):
        faults, hashes, surprise = _looked_through(table, encoder, rules, 0, training, is_accepted)
    else:
        stored, faults, hashes, surprise = _encode_parts(
            table, encoder, rules, execution, training, is_accepted
        )
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
        training=training,
        stored=stored,
        rules=rules,
        faults=faults,
        hashes=hashes,
        surprise=surprise,
        warnings=tuple(warnings),
        execution=execution,
        n_jobs=n_jobs,
        accepted=accepted,
        groups=NO_GROUPS,
    )


def hash_rows(table: Table, encoder: LearnedEncoder) -> HashArray:
    """Hash the used cells of rows as written; equal rows have equal hashes in all parts.

    Two of n different rows share a hash with probability n^2 / 2^65: .03 for a billion.
    """
    names = [spec.name for spec in encoder.plan.used]
    return table.frame[names].hash_rows(seed=0).to_numpy()


def _looked_through(
    table: Table,
    encoder: LearnedEncoder,
    rules: tuple[CellRule, ...],
    first_row: int,
    training: IntArray,
    is_accepted: BoolArray | None,
) -> tuple[CellFaults, HashArray, FloatArray]:
    """Return the faults of a table or part, and the hash and surprise (-log p) of each row.

    The encoder's training rows, at positions `training`, are judged without their own cells.
    """
    is_training = np.zeros(table.frame.height, dtype=bool)
    is_training[training] = True
    judged = encoder.judge(table, is_training=is_training)
    if not rules:
        no_hashes = np.zeros(table.n_rows, dtype=np.uint64)
        return CellFaults((), (), NONE_ODD, 0, NO_EVIDENCE), no_hashes, judged.surprise
    faults = CellFaults.of(table, encoder.plan, rules, first_row, is_accepted, judged.evidence)
    return faults, hash_rows(table, encoder), judged.surprise


def _encode_parts(
    table: PartedTable,
    encoder: LearnedEncoder,
    rules: tuple[CellRule, ...],
    execution: Execution,
    training: IntArray,
    is_accepted: BoolArray | None,
) -> tuple[SharedArray | Kept, CellFaults, HashArray, FloatArray]:
    """Encode all rows into a file, or into the memory of Dask's workers."""
    n_rows, shared = table.n_rows, (encoder, rules)
    own = np.split(training, training.searchsorted([part.start for part in table.parts[1:]]))
    tasks = (
        _ReadTask(task.part, task.marked, training=rows - task.part.start)
        for task, rows in zip(part_tasks(table, is_accepted), own, strict=True)
    )
    stored: SharedArray | Kept
    if execution.workers.executor == "dask":
        stored = execution.workers.keep(_encode_part, tasks, *shared)
        cached_by = table, _EncodedPart, (encoder, rules, training, is_accepted)
        parts = execution.over(
            "Reading rows",
            _without_rows,
            part_tasks(table, bare=True),
            n_rows,
            kept=stored,
            cached_by=cached_by,
        )
    else:
        width = sum(coder.width for coder in encoder.coders)
        stored = SharedArray((n_rows, width), f"A table of {n_rows:,} rows")
        parts = execution.over("Reading rows", _write_part, tasks, n_rows, stored, *shared)
    faults: CellFaults | None = None
    hashes, surprise = row_values(n_rows, np.uint64), row_values(n_rows, np.float64)
    start = 0
    for part in parts:
        here = slice(start, start + len(part.surprise))
        hashes[here], surprise[here], start = part.hashes, part.surprise, here.stop
        faults = part.faults if faults is None else faults + part.faults
    assert faults is not None
    return stored, faults, hashes, surprise


@dataclass(frozen=True, kw_only=True)
class _ReadTask(PartTask):
    training: IntArray  # places of the encoder's training rows in the part; `marked` are accepted


class _EncodedPart(NamedTuple):
    matrix: FloatArray  # (n, d); held by a Dask worker, or empty after writing to a file
    faults: CellFaults
    hashes: HashArray  # (n,), hashes of the rows
    surprise: FloatArray  # (n,)


def _encode_part(
    task: _ReadTask, encoder: LearnedEncoder, rules: tuple[CellRule, ...]
) -> _EncodedPart:
    table, first_row = task.part.read(), task.part.start
    found = _looked_through(table, encoder, rules, first_row, task.training, task.marked)
    return _EncodedPart(encoder.matrix(table), *found)


def _write_part(
    task: _ReadTask, file: SharedArray, encoder: LearnedEncoder, rules: tuple[CellRule, ...]
) -> _EncodedPart:
    encoded = _encode_part(task, encoder, rules)
    file[task.part.start : task.part.stop] = encoded.matrix
    return _without_rows(task, encoded)


def _without_rows(task: PartTask, encoded: _EncodedPart) -> _EncodedPart:
    return encoded._replace(matrix=np.empty((0, 0)))


def _of_part(task: PartTask, encoded: SharedArray | _EncodedPart, how: str, function: Any) -> Any:
    """Map or sum a function over the rows of a part; `how` is a method of `ArrayRows`."""
    rows = slice(task.part.start, task.part.stop)
    matrix = encoded.matrix if isinstance(encoded, _EncodedPart) else encoded[rows]
    return getattr(ArrayRows(matrix), how)(function, task.marked)
