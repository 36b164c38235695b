"""The rows of a table, in memory or in parts: some of them, groups of them, all encoded once.

Each part is read where the work on it is done. Parts are cut at fixed rows, and what is made of
them is put together in one order: it does not depend on who works, and how many.

A table in memory is one matrix. The numbers of a table in parts lie in one temporary file, or with
the Dask workers who made them: a later pass reads neither text nor Parquet again, but floats.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from itertools import tee
from operator import add, itemgetter
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import polars as pl
from joblib import hash as joblib_hash
from numpy.typing import NDArray

from kpca_apps import __version__
from kpca_apps.engine.rows import (
    SAMPLE_ROWS,
    ArrayRows,
    RowFunction,
    RowSums,
    Sums,
    sample_positions,
)
from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import listed, one_line, quoted, suggest
from kpca_apps.novelty.checks.odd_cells import NONE_ODD, CellFaults, CellRule, cell_rules
from kpca_apps.novelty.columns.encoding import TableEncoder
from kpca_apps.novelty.columns.plan import UNKNOWN
from kpca_apps.novelty.evidence import NO_EVIDENCE
from kpca_apps.novelty.result import RowMark
from kpca_apps.novelty.row_values import let_go, row_values
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.files.spools import require_disk, spool_folder, unusable
from kpca_apps.system.finished import FinishedParts, FinishedPass
from kpca_apps.system.memory import give_back
from kpca_apps.system.workers import Kept, Workers, tree_reduce
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import PartedTable, Table, TablePart, parted, require_formats

Result = TypeVar("Result")
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
    finished : FinishedParts, optional
        Where results of parts are kept, which a run that was killed finds again; for Dask.
    """

    workers: Workers = field(default_factory=Workers)
    progress: Progress = _silent
    finished: FinishedParts | None = None

    def over(
        self,
        what: str,
        function: Callable[..., Result],
        tasks: Iterable[Any],
        n_rows: int,
        *shared: object,
        kept: Kept | None = None,
        finished: FinishedPass[Result] | None = None,
    ) -> Iterator[Result]:
        """Yield ``function(task, *shared)`` of each task, in order, showing how far it is.

        A task is about the rows of one part, `n_rows` in all; `kept`: see `Workers.map_partitions`.
        Parts that are `finished` are not worked on again.
        """
        taken, done = tee(tasks)
        found = set[int]()  # parts that were done before

        def known(task: Any) -> Result | None:
            assert finished is not None
            result = finished.get(task.part.start, task.part.stop)
            if result is not None:
                found.add(task.part.start)
            return result

        results = self.workers.map_partitions(
            function, taken, *shared, kept=kept, known=known if finished else None, carried=_carried
        )
        with self.progress(what, n_rows) as advance:
            for result, task in zip(results, done, strict=True):
                if finished is not None and task.part.start not in found:
                    finished.put(task.part.start, task.part.stop, result)
                yield result
                advance(task.n_rows)
        give_back()

    def finished_pass(
        self,
        table: PartedTable,
        pack: Callable[[Result], Mapping[str, Any]],
        unpack: Callable[[Mapping[str, Any]], Result],
        *depends_on: object,
    ) -> FinishedPass[Result] | None:
        """Return what is kept of a pass over a table, by all that its results depend on.

        Of rows chosen from the parts of a table nothing is.
        """
        if self.finished is None or table.parts[0].whole is not None:
            return None
        versions = __version__, np.__version__, pl.__version__
        key = f"{joblib_hash((versions, *depends_on))} {table.source.fingerprint}"
        return FinishedPass(self.finished, key, pack, unpack)


def _carried(task: Any) -> Any:
    """Return a task with the rows of its part."""
    return replace(task, part=task.part.carried())


AnyTable = Table | PartedTable
# What the rows of a group say in the columns they are grouped by; None where a cell is missing.
GroupKey = tuple[str | None, ...]
Groups = tuple[list[GroupKey], IntArray]  # and the place (n,) of each row among them
NO_GROUPS: Groups = ([], np.empty(0, dtype=np.int64))
# Groups of rows that are distinguished; an identifier has more.
MOST_KEYS = 100_000


@dataclass(frozen=True)
class Sample:
    """Rows of a table that are held in memory: all, or drawn."""

    table: Table  # they as they stand, in the order of the table
    index: IntArray  # (s,), their positions, increasing
    whole: AnyTable  # all rows; in parts if there are more than 100,000


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
    return joined_rows(pieces, back, table.source)


def joined_rows(pieces: Sequence[Table], order: IntArray, source: SourceInfo) -> Table:
    """Put rows, in pieces of at least one, of a table together, and in another order."""
    lines = None
    if pieces[0].lines is not None:
        lines = np.concatenate([piece.lines for piece in pieces if piece.lines is not None])[order]
    frame = pl.concat([piece.frame for piece in pieces])[order]
    return Table(frame, lines, replace(source, n_rows=len(order)))


def _itself(table: Table) -> Table:
    return table


def draw_sample(table: AnyTable, seed: int, execution: Execution) -> Sample:
    """Draw the rows that columns, scalings and landmarks are learned from.

    A table in memory is its own sample, unless it has more than 100,000 rows.
    """
    table = in_parts(table)
    if isinstance(table, Table):
        return Sample(table, np.arange(table.frame.height), table)
    index = sample_positions(table.n_rows, seed)
    drawn = take_rows(table, index, execution, "Drawing rows")
    return Sample(replace(drawn, source=table.source), index, table)


def find_groups(table: AnyTable, by: Sequence[str], execution: Execution) -> Groups:
    """Find the groups of equal text in some columns, and the place among them of each row.

    None by no columns. ConfigError where there are as many as identifiers have.
    """
    if not by:
        return NO_GROUPS
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


def group_text(key: GroupKey) -> str:
    """Write what the rows of a group say."""
    return ", ".join("(missing)" if text is None else text for text in key)


def _groups(table: Table, by: Sequence[str]) -> tuple[list[GroupKey], IntArray]:
    """Return the groups of a part, and the place among them of each of its rows."""
    levels = [table.column(name).levels for name in by]
    codes = np.column_stack([of.codes for of in levels])
    found, places = np.unique(codes, axis=0, return_inverse=True)
    texts = [[*of.texts.to_list(), None] for of in levels]  # code -1 is a missing cell
    keys = [tuple(of[code] for of, code in zip(texts, row, strict=True)) for row in found.tolist()]
    return keys, np.asarray(places, dtype=np.int64).reshape(-1)


HashArray = NDArray[np.uint64]


@dataclass(frozen=True)
class Accepted:
    """Rows of a table that somebody judged: fine, or known to be as odd as they are, or wrong."""

    is_accepted: BoolArray  # (n,), fine or known
    name: str  # of the file that says so
    notes: tuple[str, ...]  # on rows of that file that are none of the table
    is_known: BoolArray | None = None  # (n,), not to be learned from; None where all are fine
    is_wrong: BoolArray | None = None  # (n,), to stay on top of the list
    marks: tuple[RowMark, ...] = ()  # by row

    @property
    def is_fine(self) -> BoolArray:
        """Rows (n,) that are learned from as normal ones."""
        return self.is_accepted if self.is_known is None else self.is_accepted & ~self.is_known

    def joined(self, other: Accepted) -> Accepted:
        """Return what both say; a row that one of them calls wrong is."""
        none = np.zeros(len(self.is_accepted), dtype=bool)
        wrong = (none if self.is_wrong is None else self.is_wrong) | (
            none if other.is_wrong is None else other.is_wrong
        )
        fine = self.is_fine | other.is_fine
        accepted = (self.is_accepted | other.is_accepted) & ~wrong
        return Accepted(
            accepted,
            f"{self.name} and {other.name}",
            (*self.notes, *other.notes),
            accepted & ~fine,
            wrong,
            (*self.marks, *other.marks),
        )

    @property
    def n_rows(self) -> int:
        """Rows that are accepted."""
        return int(self.is_accepted.sum())


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
    surprise: FloatArray  # (n,), of the rows by the relations between their columns, as -log p
    warnings: tuple[str, ...]  # what was done to cells that are no values
    execution: Execution  # of passes over the parts
    n_jobs: int | None  # threads that work on a table in memory
    accepted: Accepted | None  # rows that are fine whatever they hold
    groups: Groups  # that are judged among themselves, and the place among them of each row

    @property
    def source(self) -> SourceInfo:
        """Where the table came from."""
        return self.table.source

    @property
    def n_rows(self) -> int:
        """Number n of rows."""
        return row_count(self.table)

    @property
    def is_accepted(self) -> BoolArray | None:
        """Rows (n,) that are fine whatever they hold; None where none are."""
        return None if self.accepted is None else self.accepted.is_accepted

    @property
    def n_judged(self) -> int:
        """Rows that are not accepted."""
        return self.n_rows - (0 if self.accepted is None else self.accepted.n_rows)

    @property
    def n_threads(self) -> int | None:
        """Threads that work here, as joblib counts them, on rows that are in memory."""
        workers = self.execution.workers
        if self.stored is None or workers.executor == "dask":
            return self.n_jobs
        return workers.width

    @property
    def size_of_parts(self) -> int | None:
        """Rows read at a time; None for a table in memory."""
        return None if isinstance(self.table, Table) else self.table.parts[0].stop

    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number a row, shape (n,); of very many rows, mapped from a temporary file."""
        if self.stored is None:
            return ArrayRows(self.sample, n_jobs=self.n_jobs).map(function, in_use)
        finished = None
        if isinstance(self.stored, Kept) and isinstance(self.table, PartedTable):
            finished = self.execution.finished_pass(
                self.table,
                lambda numbers: {"numbers": numbers},
                itemgetter("numbers"),
                self.encoder,
                function,
                in_use,
            )
        parts = self._over_parts(function.purpose, _map_part, in_use, function, finished=finished)
        values, start = row_values(self.n_rows, np.float64), 0
        for part in parts:
            values[start : start + len(part)] = part
            start += len(part)
            let_go(values)
        return values

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
        if isinstance(self.stored, EncodedFile):
            return self.stored.take(positions)
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
        self,
        what: str,
        function: Callable[..., Result],
        marked: BoolArray | None,
        *shared: object,
        finished: FinishedPass[Result] | None = None,
    ) -> Iterator[Result]:
        """Go over the encoded rows of all parts, some of them marked."""
        assert isinstance(self.table, PartedTable)
        stored = self.stored
        if isinstance(stored, Kept):
            tasks, n_rows = _bare(self.table, marked), self.n_rows
            return self.execution.over(
                what, function, tasks, n_rows, *shared, kept=stored, finished=finished
            )
        tasks = _tasks(self.table, marked)
        return self.execution.over(what, function, tasks, self.n_rows, stored, *shared)


def encode(
    encoder: TableEncoder,
    table: AnyTable,
    execution: Execution | None = None,
    *,
    sample: Sample | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    accepted: Accepted | None = None,
    checked: bool = True,
    is_own: bool = False,
) -> Encoded:
    """Encode the rows of a table by an encoder, and hold a `sample`: that which the seed draws.

    Of its own table (`is_own`) the encoder was fitted on the sample.
    Rows that are accepted are fine whatever they hold. Unless cells are to be `checked`, nothing is
    said of them. InputError if a column that the encoder uses is missing, or if most of its cells
    cannot be read.
    """
    source, names = table.source, table.columns
    for spec in encoder.plan.used:
        if spec.name not in names:
            raise InputError(
                f"{source.name}: column {quoted(spec.name)} is missing, which the model uses; "
                f"add it, or fit a model without it.{suggest(spec.name, names)}"
            )
    execution = execution or Execution()
    held = sample or draw_sample(table, seed, execution)
    table = held.whole
    warnings: list[str] = []
    if not is_own:
        formats = {spec.name: spec.format for spec in encoder.plan.used}
        warnings += require_formats(held.table, formats, "the reference")
    drawn = is_own and isinstance(table, PartedTable)
    pairs = zip(encoder.plan.used, encoder.allowed, strict=True) if not is_own else ()
    of_reference = {spec.name: allowed for spec, allowed in pairs if allowed is not None}
    rules: tuple[CellRule, ...] = ()
    if checked:
        rules = cell_rules(held.table, encoder.plan, row_count(table), of_reference)
    stored: EncodedFile | Kept | None = None
    # Rows that the encoder has learned from are judged by what the others say.
    learned = np.zeros(row_count(table), dtype=bool)
    learned[held.index] = is_own
    is_accepted = None if accepted is None else accepted.is_accepted
    if isinstance(table, Table):
        faults, hashes, surprise = _looked_through(table, encoder, rules, 0, learned, is_accepted)
    else:
        stored, faults, hashes, surprise = _encode_parts(
            table, encoder, rules, execution, learned, is_accepted
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


def hash_rows(table: Table, encoder: TableEncoder) -> HashArray:
    """Hash the used cells of rows as they stand: equal rows have equal hashes in every part.

    Of n different rows two share a hash with a probability of n^2 / 2^65: of a billion, .03.
    """
    names = [spec.name for spec in encoder.plan.used]
    return table.frame[names].hash_rows(seed=0).to_numpy()


def mixed(values: HashArray) -> HashArray:
    """Spread bits evenly (the finaliser of splitmix64, Steele, Lea and Flood 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _looked_through(
    table: Table,
    encoder: TableEncoder,
    rules: tuple[CellRule, ...],
    first_row: int,
    learned: BoolArray,
    is_accepted: BoolArray | None,
) -> tuple[CellFaults, HashArray, FloatArray]:
    """Return the faults of a table, or of a part of it, and of its rows the hashes and surprise."""
    judged = encoder.judge(table, own=learned)
    if not rules:
        no_hashes = np.zeros(len(learned), dtype=np.uint64)
        return CellFaults((), (), NONE_ODD, 0, NO_EVIDENCE), no_hashes, judged.surprise
    faults = CellFaults.of(table, encoder.plan, rules, first_row, is_accepted, judged.evidence)
    return faults, hash_rows(table, encoder), judged.surprise


def _encode_parts(
    table: PartedTable,
    encoder: TableEncoder,
    rules: tuple[CellRule, ...],
    execution: Execution,
    learned: BoolArray,
    is_accepted: BoolArray | None,
) -> tuple[EncodedFile | Kept, CellFaults, HashArray, FloatArray]:
    """Encode all rows into a file, or where Dask's workers keep them."""
    n_rows, shared = table.n_rows, (encoder, rules)
    is_fine = np.zeros(n_rows, dtype=bool) if is_accepted is None else is_accepted
    tasks = _tasks(table, np.column_stack([learned, is_fine]))
    stored: EncodedFile | Kept
    if execution.workers.executor == "dask":
        stored = execution.workers.keep(_encode_part, tasks, *shared)
        finished = execution.finished_pass(
            table, _packed, _unpacked, encoder, rules, np.packbits(learned), np.packbits(is_fine)
        )
        parts = execution.over(
            "Reading rows", _without_rows, _bare(table), n_rows, kept=stored, finished=finished
        )
    else:
        stored = EncodedFile(n_rows, sum(coder.width for coder in encoder.coders))
        parts = execution.over("Reading rows", _write_part, tasks, n_rows, stored, *shared)
    faults: CellFaults | None = None
    hashes, surprise = row_values(n_rows, np.uint64), row_values(n_rows, np.float64)
    start = 0
    for part in parts:
        here = slice(start, start + len(part.surprise))
        hashes[here], surprise[here], start = part.hashes, part.surprise, here.stop
        let_go(hashes, surprise)
        faults = part.faults if faults is None else faults + part.faults
    assert faults is not None
    return stored, faults, hashes, surprise


def _tasks(table: PartedTable, marked: BoolArray | None = None) -> Iterator[PartTask]:
    for part in table.parts:
        here = None if marked is None else np.asarray(marked[part.start : part.stop])
        yield PartTask(part, here)


def _bare(table: PartedTable, marked: BoolArray | None = None) -> Iterator[PartTask]:
    """Yield tasks whose parts are not read, as their rows are kept encoded."""
    return (replace(task, part=task.part.bare()) for task in _tasks(table, marked))


class _EncodedPart(NamedTuple):
    """The rows of a part, and what their cells hold."""

    matrix: FloatArray  # (n, d); kept by a worker of Dask, or empty once it is in a file
    faults: CellFaults
    hashes: HashArray  # (n,), of the rows
    surprise: FloatArray  # (n,)

    def rows(self, start: int, stop: int) -> FloatArray:
        """Return the rows, which are those of the part: as `EncodedFile` does."""
        return self.matrix


def _encode_part(
    task: PartTask, encoder: TableEncoder, rules: tuple[CellRule, ...]
) -> _EncodedPart:
    table = task.part.read()
    assert task.marked is not None
    learned, is_accepted = task.marked.T
    found = _looked_through(table, encoder, rules, task.part.start, learned, is_accepted)
    return _EncodedPart(encoder.matrix(table), *found)


def _write_part(
    task: PartTask, file: EncodedFile, encoder: TableEncoder, rules: tuple[CellRule, ...]
) -> _EncodedPart:
    encoded = _encode_part(task, encoder, rules)
    file.write(task.part.start, encoded.matrix)
    return _without_rows(task, encoded)


def _without_rows(task: PartTask, encoded: _EncodedPart) -> _EncodedPart:
    return encoded._replace(matrix=np.empty((0, 0)))


def _packed(part: _EncodedPart) -> dict[str, Any]:
    """Return what is said of the rows of a part, without them, as arrays."""
    packed = msgspec.msgpack.encode(part.faults, enc_hook=_as_bytes)
    faults = np.frombuffer(packed, np.uint8)
    return {"faults": faults, "hashes": part.hashes, "surprise": part.surprise}


def _as_bytes(value: np.generic | pl.DataFrame) -> Any:
    if not isinstance(value, pl.DataFrame):
        return value.item()
    file = BytesIO()
    value.write_ipc(file)
    return file.getvalue()


def _from_bytes(of: type, value: Any) -> pl.DataFrame:
    return pl.read_ipc(value)


def _unpacked(arrays: Mapping[str, Any]) -> _EncodedPart:
    packed = arrays["faults"].tobytes()
    faults = msgspec.msgpack.decode(packed, type=CellFaults, dec_hook=_from_bytes)
    return _EncodedPart(np.empty((0, 0)), faults, arrays["hashes"], arrays["surprise"])


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
            raise self._lost()
        return read.reshape(stop - start, self._n_columns)

    def take(self, positions: IntArray) -> FloatArray:
        """Read the rows at some positions (k,), shape (k, d), in that order."""
        rows = np.empty((len(positions), self._n_columns))
        try:
            with self._path.open("rb") as file:
                for place in np.argsort(positions, kind="stable"):
                    file.seek(int(positions[place]) * self._row_bytes)
                    if file.readinto(rows[place].data) < self._row_bytes:
                        raise self._lost()
        except OSError:
            raise self._lost() from None
        return rows

    def _lost(self) -> InputError:
        return InputError(
            f"{one_line(str(self._path), 200)}: the encoded rows are no longer there; leave "
            "temporary files alone while a table is worked on, and run again."
        )
