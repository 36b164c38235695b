"""Find the rows of a table that another table lists as accepted.

A listed row accepts all rows with the same cells in the columns that both tables have.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from kpca_apps.errors import InputError
from kpca_apps.names import listed, one_line, suggest
from kpca_apps.novelty.columns.parts import AnyTable, Execution, each_part
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.result import RowMark
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, DateFormat, NumberFormat, ValueFormat
from kpca_apps.tables.write import as_written

DIGITS = 12  # significant digits in which numbers must agree; spreadsheet files store 15 digits
# Largest share of rows that may be accepted: with more, too few are left to judge.
MOST = 0.5
MAX_NAMED = 5
# Columns that this package adds to lists of flagged rows and to scored tables.
OURS = frozenset(
    "rank row line reason_column seen expected share hint rarity p_value novelty_score flagged "
    "accepted".split()
)


@dataclass(frozen=True)
class Accepted:
    """Rows of a table that a reader judged to be fine, known to be odd, or wrong."""

    is_accepted: BoolArray  # (n,), rows judged fine or known to be odd
    name: str  # name of the list
    notes: tuple[str, ...]  # notes on listed rows that match no row
    is_known: BoolArray | None = None  # (n,), known to be odd, so not learned from; None if none
    is_wrong: BoolArray | None = None  # (n,), rows marked as wrong, which rank first
    marks: tuple[RowMark, ...] = ()  # marks of one list after another, each sorted by row

    @property
    def is_fine(self) -> BoolArray:
        """Mask (n,) of accepted rows that are learned from as normal rows."""
        return self.is_accepted if self.is_known is None else self.is_accepted & ~self.is_known

    def joined(self, other: Accepted) -> Accepted:
        """Combine two lists of judged rows; a row is wrong if either list says so."""
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
        """Number of accepted rows."""
        return int(self.is_accepted.sum())


class _Shared(NamedTuple):
    """How to compare a column that both tables have."""

    name: str  # name of the column in the table
    format: ValueFormat | None  # format of numbers or dates; None for text
    in_lower: bool  # whether case is ignored
    is_single: bool  # whether the table stores the column as 32-bit floats

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec | None) -> _Shared:
        """Choose the comparison by the column's `spec`, or by data type if there is none."""
        format, kind = None if spec is None else spec.format, column.cells.dtype
        if format is None and kind.is_numeric():
            format = NumberFormat()
        elif format is None and kind in (pl.Date, pl.Datetime):
            format = DateFormat(has_time=kind == pl.Datetime)
        is_truth = spec is not None and spec.is_truth
        return cls(column.name, format, is_truth, kind == pl.Float32)

    def read(self, column: Column, format: ValueFormat | None) -> pl.Series:
        """Return the value of each cell (n,): a number, or its text if no number is read."""
        texts = column.texts.str.to_lowercase() if self.in_lower else column.texts
        numbers = pl.repeat(None, len(column), dtype=pl.Float64, eager=True)
        if format is not None:
            readings = column.read(format)
            kind = pl.Float32 if self.is_single else pl.Float64
            numbers = pl.Series(readings.values).cast(kind).cast(pl.Float64).fill_nan(None)
            numbers = numbers.round_sig_figs(DIGITS)
            texts = pl.select(pl.when(pl.Series(readings.unreadable)).then(texts)).to_series()
        return pl.DataFrame({"number": numbers, "text": texts}).to_struct()


def _matched(
    table: Table, columns: Sequence[_Shared], wanted: pl.DataFrame
) -> tuple[BoolArray, IntArray]:
    """Mark the accepted rows (n,) of a table; count those that match each `wanted` row (k,)."""
    cells = [shared.read(table.column(shared.name), shared.format) for shared in columns]
    rows = pl.DataFrame(dict(zip(wanted.columns, cells, strict=True)))
    on, nulls_equal = wanted.columns, True
    found = rows.with_row_index("row").join(wanted.unique(), on, "semi", nulls_equal=nulls_equal)
    is_accepted = np.zeros(len(rows), dtype=bool)
    is_accepted[found["row"].to_numpy()] = True
    alike = found.group_by(on).len()
    counts = wanted.join(alike, on, "left", nulls_equal=nulls_equal, maintain_order="left")["len"]
    return is_accepted, counts.fill_null(0).to_numpy()


def find_accepted(
    accept: Table,
    table: AnyTable,
    specs: Sequence[ColumnSpec],
    execution: Execution | None = None,
    *,
    most: float = 1.0,
    hidden: Collection[str] = (),
) -> Accepted:
    """Find the rows of a table that equal a row of the table `accept`.

    Columns are read by `specs`. A `hidden` column that is empty in `accept`, as in scored tables,
    is ignored. InputError if more than the share `most` of the table is accepted, or all of it.
    """
    name, where = one_line(accept.source.name, 60), one_line(table.source.name, 60)
    written, ignored = _written(accept, table.columns)
    columns = {
        other: own
        for other, own in written.items()
        if other not in hidden or own.texts.null_count() < accept.frame.height
    }
    if not columns:
        raise InputError(
            f"{name}: none of its columns is one of {where}; accepted rows are named by cells of "
            f"its columns.{suggest(ignored[0], table.columns) if ignored else ''}"
        )
    head = next(table.tables())
    by_name = {spec.name: spec for spec in specs}
    compared = [_Shared.of(head.column(name), by_name.get(name)) for name in columns]
    wanted = dict[str, pl.Series]()
    for shared, own in zip(compared, columns.values(), strict=True):
        # Spreadsheets may save dates and decimal numbers in the notation of their locale.
        format = None if shared.format is None else own.written_as(shared.format)[0]
        wanted[str(len(wanted))] = shared.read(own, format)
    match = partial(_matched, columns=compared, wanted=pl.DataFrame(wanted))
    counts = np.zeros(accept.frame.height, dtype=np.int64)
    marked = []
    work = execution or Execution()
    for is_accepted, of_part in each_part(table, "Looking for accepted rows", match, work):
        marked.append(is_accepted)
        counts += of_part
    is_accepted = np.concatenate(marked)
    n_accepted, n_rows = int(is_accepted.sum()), len(is_accepted)
    if n_accepted > most * n_rows or n_accepted == n_rows:
        raise InputError(
            f"{name}: accepts {n_accepted:,} of the {n_rows:,} rows of {where}, {counts.max():,} "
            f"of them by {accept.place_of(int(counts.argmax()))}: too few are left to judge; give "
            "more cells of the rows that are fine."
        )
    return Accepted(is_accepted, name, tuple(_notes(accept, where, counts, ignored, table)))


def _written(accept: Table, names: Sequence[str]) -> tuple[dict[str, Column], list[str]]:
    """Return columns of `accept` by their names in the table, and the columns the table lacks.

    Guarding apostrophes are removed. A column named like one of `OURS` has an ending ("_input").
    """
    columns = accept.frame.columns
    given = dict(zip(as_written(pl.Series(columns, dtype=pl.String)), columns, strict=True))
    shared, used = {}, set()
    for name in names:
        endings = ("_input_input", "_input") if name in OURS else ()
        written = [name + ending for ending in endings if name + ending not in names]
        own = next((one for one in [*written, name] if one in given), None)
        if own is not None:
            used.add(given[own])
            column = accept.column(given[own])
            is_text = column.cells.dtype == pl.String
            shared[name] = Column(as_written(column.cells)) if is_text else column
    return shared, [one for one in columns if one not in used and one not in OURS]


def unmatched(n: int, noun: str, where: str, places: Sequence[str]) -> str:
    """State that n rows match no row of a table, and where the first ones are."""
    more = f" and {n - len(places):,} more" if n > len(places) else ""
    rows = f"1 {noun} matches" if n == 1 else f"{n:,} {noun}s match"
    return f"{rows} no row of {where} ({', '.join(places)}{more})"


def _notes(
    accept: Table, where: str, counts: IntArray, ignored: Sequence[str], table: AnyTable
) -> list[str]:
    name, notes = one_line(accept.source.name, 60), []
    idle = np.flatnonzero(counts == 0)
    if idle.size:
        places = [accept.place_of(row) for row in idle[:MAX_NAMED].tolist()]
        rest = "a row whose cells have changed is no longer accepted and is listed again."
        notes.append(f"{name}: {unmatched(len(idle), 'row', where, places)}; {rest}")
    if ignored:
        hints = (suggest(one, table.columns) for one in ignored)
        notes.append(
            f"{name}: ignored, as {where} has no such column: {listed(ignored)}."
            f"{next(filter(None, hints), '')}"
        )
    return notes
