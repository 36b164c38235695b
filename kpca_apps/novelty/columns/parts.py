"""Rows of a table in memory or in parts: passes, samples, selections and groups.

A worker reads the parts that it processes. Boundaries of parts and the order of results are fixed,
so results do not depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import tee
from typing import Any, TypeVar

import numpy as np
import polars as pl
from joblib import hash as joblib_hash

from kpca_apps import __version__
from kpca_apps.engine.rows import SAMPLE_ROWS, sample_positions
from kpca_apps.errors import ConfigError
from kpca_apps.names import listed
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.system.files.windowed import row_values
from kpca_apps.system.finished import FinishedParts, FinishedPass
from kpca_apps.system.memory import give_back
from kpca_apps.system.workers import Kept, Workers
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import PartedTable, Table, TablePart, parted

Result = TypeVar("Result")
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@contextmanager
def _silent(what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
    yield lambda n_rows: None


@dataclass(frozen=True)
class Execution:
    """The workers that process tables in parts, with progress and a cache of results.

    Parameters
    ----------
    workers : Workers
        By default threads of this process.
    progress : callable
        ``progress(what, n_rows)`` returns a context manager for a pass over a table. The manager
        yields a function that takes the number of rows processed since the last call.
    finished : FinishedParts, optional
        Cache of results of parts on disk, with which an interrupted run resumes (for Dask).

    Examples
    --------
    >>> from kpca_apps import Execution, Workers, screen_table
    >>> table = {"height": [10.0 + i % 7 for i in range(40)]}
    >>> with Workers("threads", n_workers=2) as workers:
    ...     results = [screen_table(table, execution=Execution(workers)) for _ in range(2)]
    >>> len(results)
    2
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
        cached_by: tuple[PartedTable, type[Result], object] | None = None,
    ) -> Iterator[Result]:
        """Yield ``function(task, *shared)`` for each task in order, with progress.

        Parameters
        ----------
        what : str
            Name of the pass, for `progress`.
        function : callable
            Function of a task; picklable for processes and Dask.
        tasks : iterable
            Each processes one ``part`` of a table of ``n_rows``.
        n_rows : int
            Number of rows of all tasks.
        *shared, kept
            See `Workers.map_partitions`.
        cached_by : tuple, optional
            The table, the type of the results, and picklable values on which the results depend.
            With these, results are looked up in the cache and added to it.

        Yields
        ------
        object
            Results in the order of the tasks.
        """
        finished = None if cached_by is None else self._finished_pass(*cached_by)
        taken, done = tee(tasks)
        found = set[int]()  # first rows of the parts that the cache holds

        def known(task: Any) -> Result | None:
            assert finished is not None
            result = finished.get(task.part.start, task.part.stop)
            if result is not None:
                found.add(task.part.start)
            return result

        results = self.workers.map_partitions(
            function,
            taken,
            *shared,
            kept=kept,
            known=known if finished else None,
            carried=lambda task: replace(task, part=task.part.carried()),
        )
        with self.progress(what, n_rows) as advance:
            for result, task in zip(results, done, strict=True):
                if finished is not None and task.part.start not in found:
                    finished.put(task.part.start, task.part.stop, result)
                yield result
                advance(task.n_rows)
        give_back()

    def _finished_pass(
        self, table: PartedTable, kind: type[Result], depends_on: object
    ) -> FinishedPass[Result] | None:
        """Return the cache of a pass; None without a cache, and for passes over selected rows."""
        if self.finished is None or table.parts[0].whole is not None:
            return None
        versions = __version__, np.__version__, pl.__version__
        key = f"{joblib_hash((versions, depends_on))} {table.source.fingerprint}"
        return FinishedPass(self.finished, key, kind)


AnyTable = Table | PartedTable
# The texts that the rows of a group share in the columns `by`; None for a missing cell.
GroupKey = tuple[str | None, ...]
Groups = tuple[list[GroupKey], IntArray]  # groups, and the index (n,) of each row's group
NO_GROUPS: Groups = ([], np.empty(0, dtype=np.int64))
MOST_KEYS = 100_000  # maximum number of groups; a column of identifiers would make more


@dataclass(frozen=True)
class Sample:
    """Rows of a table in memory: all rows, or a random sample."""

    table: Table  # the drawn rows, in the order of the whole table
    index: IntArray  # (s,), positions of these rows, increasing
    whole: AnyTable  # all rows; in parts if more than 100,000

    @classmethod
    def of(cls, table: Table) -> Sample:
        """Return a sample with all rows of a table."""
        return cls(table, np.arange(table.n_rows), table)


@dataclass(frozen=True)
class PartTask:
    """A part of a table for a worker, with flags of its rows, such as accepted rows."""

    part: TablePart
    marked: BoolArray | None = None  # (n,)

    @property
    def n_rows(self) -> int:
        """Number of rows of the part."""
        return self.part.stop - self.part.start

    def __str__(self) -> str:
        return str(self.part)


def in_parts(table: AnyTable) -> AnyTable:
    """Split a table in memory into parts if it has more than 100,000 rows."""
    if isinstance(table, Table) and table.n_rows > SAMPLE_ROWS:
        return parted(table)
    return table


def each_part(
    table: AnyTable, what: str, function: Callable[[Table], Result], execution: Execution
) -> Iterator[Result]:
    """Yield the result of a function for a table in memory, or for each part in order."""
    if isinstance(table, Table):
        yield function(table)
    else:
        tasks = map(PartTask, table.parts)
        yield from execution.over(what, _of_part, tasks, table.n_rows, function)


def _of_part(task: PartTask, function: Callable[[Table], Result]) -> Result:
    return function(task.part.read())


def some_rows(table: AnyTable, positions: IntArray) -> AnyTable:
    """Return a table of the rows at increasing positions; the parts are read later."""
    if isinstance(table, Table):
        return table.take(positions)
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
    rows = part.read().take(places)
    return rows.frame, rows.lines


def take_rows(
    table: AnyTable, positions: IntArray, execution: Execution, what: str = "Fetching rows"
) -> Table:
    """Return the rows at positions, in the given order; workers read the rows from the parts."""
    if isinstance(table, Table):
        return table.take(positions)
    inside, back = np.unique(positions, return_inverse=True)
    pieces = list(each_part(some_rows(table, inside), what, _itself, execution))
    pieces = pieces or [table.parts[0].read().take(inside)]  # no rows: return the columns alone
    return joined_rows(pieces, back, table.source)


def joined_rows(pieces: Sequence[Table], order: IntArray, source: SourceInfo) -> Table:
    """Concatenate the pieces of a table (at least one) and reorder the rows."""
    lines = None
    if pieces[0].lines is not None:
        lines = np.concatenate([piece.lines for piece in pieces if piece.lines is not None])[order]
    frame = pl.concat([piece.frame for piece in pieces])[order]
    return Table(frame, lines, replace(source, n_rows=len(order)))


def _itself(table: Table) -> Table:
    return table


def draw_sample(
    table: AnyTable, seed: int, execution: Execution, among: IntArray | None = None
) -> Sample:
    """Draw the rows from which columns, scalings and landmarks are learned.

    A table of up to 100,000 rows is its own sample. Only rows `among` these positions are drawn.
    """
    if among is not None:
        few = len(among) <= SAMPLE_ROWS
        table = take_rows(table, among, execution) if few else some_rows(table, among)
    table = in_parts(table)
    if isinstance(table, Table):
        return Sample.of(table)
    index = sample_positions(table.n_rows, seed)
    drawn = take_rows(table, index, execution, "Drawing rows")
    return Sample(replace(drawn, source=table.source), index, table)


def find_groups(table: AnyTable, by: Sequence[str], execution: Execution) -> Groups:
    """Find the groups of equal text in the columns `by`, and the index of each row's group.

    Without columns there are no groups. ConfigError if a column of `by` is an identifier.
    """
    if not by:
        return NO_GROUPS
    found: dict[GroupKey, int] = {}
    parts = each_part(table, "Finding groups", partial(_groups, by=by), execution)
    codes, start = row_values(table.n_rows, np.int64), 0
    for keys, places in parts:
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
    """Return the groups of a part, and the index of each row's group."""
    levels = [table.column[name].levels for name in by]
    codes = np.column_stack([of.codes for of in levels])
    found, places = np.unique(codes, axis=0, return_inverse=True)
    texts = [[*of.texts.to_list(), None] for of in levels]  # code -1 (missing) selects None
    keys = [tuple(of[code] for of, code in zip(texts, row, strict=True)) for row in found.tolist()]
    return keys, np.asarray(places, dtype=np.int64).reshape(-1)


def group_text(key: GroupKey) -> str:
    """Write the values that the rows of a group share."""
    return ", ".join("(missing)" if text is None else text for text in key)


def part_tasks(
    table: PartedTable, marked: BoolArray | None = None, *, bare: bool = False
) -> Iterator[PartTask]:
    """Yield a task for each part, with its section of a mask of rows (n,); if `bare`, unread."""
    for part in table.parts:
        here = None if marked is None else np.asarray(marked[part.start : part.stop])
        yield PartTask(part.bare() if bare else part, here)
