"""The rows of a table as the detector sees them, and as they stand in the table: in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.engine.rows import ArrayRows, RowFunction, RowSums, Sums
from kpca_apps.errors import InputError
from kpca_apps.names import suggest
from kpca_apps.novelty.checks.faults import CellFaults
from kpca_apps.novelty.checks.odd_cells import CellRule, cell_rules, odd_cells
from kpca_apps.novelty.columns.encoding import TableEncoder, ValueCoder
from kpca_apps.novelty.columns.identifiers import is_named_as_identifier
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import UNKNOWN, ColumnSpec, listed, quoted
from kpca_apps.novelty.result import CategoryProfile, ColumnProfile, NumericProfile, OddCell
from kpca_apps.system.workers import Workers
from kpca_apps.tables.table import PartedTable, Table
from kpca_apps.tables.values import Column, DateFormat

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
HashArray = NDArray[np.uint64]
Result = TypeVar("Result")

AnyTable = Table | PartedTable
# What the rows of a group say in the columns they are grouped by; None where a cell is missing.
GroupKey = tuple[str | None, ...]
SHOWN_LEVELS = 12  # of a category, in the small figures of the report


NAMED_BY, TELLS_APART = "Rows are named by", "tells rows of one id apart"


@dataclass(frozen=True)
class RowQuery:
    """Rows named by what a column says in them, but for space around it, or by their line."""

    column: str = ""
    text: str = ""
    line: int | None = None  # of the file, where they start

    def positions(self, table: Table) -> IntArray:
        """Return their positions in a table, or in a part of it."""
        if self.line is not None:
            return np.flatnonzero(np.empty(0) if table.lines is None else table.lines == self.line)
        column = table.column(self.column)
        texts = [column.text(row).strip() for row in range(len(column))]
        return np.flatnonzero(np.array(texts) == self.text)


class TableRows:
    """All rows of a table in memory, encoded: a `RowSource`; for one in parts see `PartedRows`."""

    size_of_parts: int | None = None  # rows read at a time
    _drawn = False  # whether the encoder was fitted on rows drawn from this very table

    def __init__(
        self,
        encoder: TableEncoder,
        table: Table,
        *,
        n_jobs: int | None = None,
        is_accepted: BoolArray | None = None,
    ) -> None:
        for spec in encoder.plan.used:
            if spec.name not in table.frame.columns:
                raise InputError(
                    f"{table.source.name}: column {quoted(spec.name)} is missing, which the model "
                    "uses; add it, or fit a model without it."
                    f"{suggest(spec.name, table.frame.columns)}"
                )
        self.encoder, self.source, self.sample_table = encoder, table.source, table
        self.n_rows, self._n_jobs = table.frame.height, n_jobs
        self.is_accepted = is_accepted  # (n,), rows that are fine whatever they hold; None: none
        self.sample_index = np.arange(self.n_rows)  # (s,), positions of the sample, increasing

    @cached_property
    def sample(self) -> FloatArray:
        """Rows of the sample, encoded, shape (s, d)."""
        return self.encoder.matrix(self.sample_table)

    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number a row, shape (n,); of very many rows, mapped from a temporary file."""
        return ArrayRows(self.sample, n_jobs=self._n_jobs).map(function, in_use)

    def sum(self, function: RowSums[Sums], in_use: BoolArray | None = None) -> Sums:
        """Return the sums over the training subset."""
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

    def groups(self, by: Sequence[str]) -> tuple[list[GroupKey], IntArray]:
        """Return the groups by some columns, and the place among them of each row, shape (n,)."""
        return row_groups(self.sample_table, by)

    def seen_by(self, encoder: TableEncoder, positions: IntArray) -> TableRows:
        """Look at some of the rows, positions increasing, through another encoder."""
        return TableRows(encoder, rows_of(self.sample_table, positions), n_jobs=self._n_jobs)

    def over(
        self,
        what: str,
        function: Callable[..., Result],
        tasks: Sequence[Any],
        n_rows: int,
        *shared: object,
    ) -> Iterator[Result]:
        """Yield ``function(task, *shared)`` of each task, in order; see `Execution.over`."""
        with Workers(n_workers=self._n_jobs) as workers:
            yield from workers.map_partitions(function, tasks, *shared)

    @cached_property
    def faults(self) -> CellFaults:
        """What is wrong with the cells of all rows."""
        return CellFaults.of(
            self.sample_table, self.encoder.plan, self.rules, is_accepted=self.is_accepted
        )

    @cached_property
    def hashes(self) -> HashArray:
        """A hash of the used cells of each row, as they are written, shape (n,)."""
        return hash_rows(self.sample_table, self.encoder)

    @cached_property
    def rules(self) -> tuple[CellRule, ...]:
        """What the used columns allow, learned from the sample."""
        return cell_rules(self.sample_table, self.encoder.plan, self.n_rows)

    def warnings(self) -> tuple[str, ...]:
        """Say what was done to the cells of all rows; InputError if most of a column are faulty."""
        table, plan = self.sample_table, self.encoder.plan
        known = {spec.name for spec in plan.specs if spec.why != UNKNOWN}
        extra = [name for name in table.frame.columns if name not in known]
        noun = "Column" if len(extra) == 1 else "Columns"
        unused = [f"{noun} not in the reference, left unused: {listed(extra)}."] if extra else []
        in_lines = table.lines is not None and table.source.file_column is None
        found = self.faults.sentences(plan, self.source.name, in_lines=in_lines, drawn=self._drawn)
        return (*unused, *found)

    def profiles(self) -> tuple[ColumnProfile, ...]:
        """Say what each column became; missing cells of all rows, values of the sample."""
        table, plan = self.sample_table, self.encoder.plan
        specs = {spec.name: spec for spec in plan.specs}
        return tuple(
            _column_profile(
                table.column(name),
                specs.get(name) or ColumnSpec(name, "excluded", UNKNOWN),
                n_missing,
            )
            for name, n_missing in zip(table.frame.columns, self.faults.n_missing, strict=True)
        )

    def odd_cells(self) -> tuple[tuple[OddCell, ...], int]:
        """Return the cells that are odd by themselves, the clearest first, and how many.

        Those of accepted rows are not.
        """
        coders = self.encoder.coders
        notations = [c.notation if isinstance(c, ValueCoder) else Notation() for c in coders]
        columns = zip(self.encoder.plan.used, self.rules, notations, self.faults.odd, strict=True)
        in_lines = self.sample_table.lines is not None
        return odd_cells(tuple(columns), n_rows=self.n_rows, in_lines=in_lines)


def hash_rows(table: Table, encoder: TableEncoder) -> HashArray:
    """Hash the used cells of rows as they stand: equal rows have equal hashes in every part.

    Of n different rows two share a hash with a probability of n^2 / 2^65: of a billion, .03.
    """
    names = [spec.name for spec in encoder.plan.used]
    return table.frame.select(names).hash_rows(seed=0).to_numpy()


def row_groups(table: Table, by: Sequence[str]) -> tuple[list[GroupKey], IntArray]:
    """Find the groups of equal text in some columns, and the place among them of each row."""
    levels = [table.column(name).levels for name in by]
    codes = np.column_stack([of.codes for of in levels])
    found, places = np.unique(codes, axis=0, return_inverse=True)
    texts = [[*of.texts.to_list(), None] for of in levels]  # code -1 is a missing cell
    keys = [tuple(of[code] for of, code in zip(texts, row, strict=True)) for row in found.tolist()]
    return keys, np.asarray(places, dtype=np.int64).reshape(-1)


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


def _column_profile(column: Column, spec: ColumnSpec, n_missing: int) -> ColumnProfile:
    """Say what a column became, how many of all its cells are missing, and how its values lie.

    The plan may come from another table: distinct values and distribution are this column's own.
    """
    distribution: NumericProfile | CategoryProfile | None = None
    if spec.format is not None:
        values = column.read(spec.format).ordered
        n_distinct = np.unique(values).size
        if spec.used and values.size:
            distribution = NumericProfile.of(values, isinstance(spec.format, DateFormat))
    else:
        levels = spec.levels(column)
        n_distinct = len(levels.texts)
        if spec.has_levels and n_distinct:
            names, counts = zip(*levels.most_frequent(SHOWN_LEVELS), strict=True)
            distribution = CategoryProfile(names, counts, int(levels.counts.sum()) - sum(counts))
    return ColumnProfile(
        name=spec.name,
        role=spec.role,
        used=spec.used,
        hidden=spec.hidden,
        why=spec.why,
        n_missing=n_missing,
        n_distinct=n_distinct,
        distribution=distribution,
    )


def naming_column(rows: TableRows, asked: str | None) -> str | None:
    """Find the column that names the rows: the one asked for, or one that can.

    That is an identifier, not hidden, that differs in every row of the sample and is no row number.
    """
    if asked is not None:
        return asked
    table, names = rows.sample_table, []
    for spec in rows.encoder.plan.specs:
        if spec.role != "identifier" or spec.hidden or spec.name not in table.frame.columns:
            continue
        texts = table.column(spec.name).texts
        if texts.null_count() or texts.n_unique() < texts.len():
            continue
        counted = texts.str.to_integer(strict=False)
        numbers = (pl.Series(rows.sample_index + first) for first in (0, 1))
        if all((counted != number).fill_null(True).any() for number in numbers):
            names.append(spec.name)
    return next(filter(is_named_as_identifier, names), names[0] if names else None)


def id_note(rows: TableRows, asked: str | None, found: str | None) -> str:
    """Say which column names the rows where none was asked for, or that ids repeat, or nothing."""
    if found is None:
        return ""
    drawn = "" if rows.size_of_parts is None else " drawn"
    if asked is None:
        return (
            f"{NAMED_BY} {quoted(found)}, which differs in every row{drawn}; --id names "
            "another column."
        )
    table = rows.sample_table
    n_rows, n_ids = table.frame.height, len(table.column(asked).levels.texts)
    if n_ids == n_rows:
        return ""
    place = "row number" if table.lines is None else "line"
    return (
        f"{quoted(asked)} names {n_ids:,} different rows of {n_rows:,}{drawn}: the {place} "
        f"{TELLS_APART}."
    )
