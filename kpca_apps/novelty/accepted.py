"""Rows of a table that somebody accepted, named by another table of such rows.

Each row of that table accepts the rows that equal it in all columns both have: numbers as
numbers, dates as dates, other cells as text; an empty cell equals a missing value. A row that is
changed later in a column that is compared is another row, and no longer accepted.
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

# Numbers are equal to so many digits: files of spreadsheets keep 15.
DIGITS = 12
# A table of which more is accepted has no usual rows left to judge the others by.
MOST = 0.5
MAX_NAMED = 5
# Columns of our own in a list of flagged rows or a scored table.
OURS = frozenset(
    "rank row line reason_column seen expected share hint rarity p_value novelty_score flagged "
    "accepted".split()
)


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


class _Shared(NamedTuple):
    """How a column that both tables have is compared."""

    name: str  # in the table
    format: ValueFormat | None  # how its cells are read; None for text
    in_lower: bool  # whether case says nothing
    is_single: bool  # whether the table holds numbers of 32 bits

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec | None) -> _Shared:
        """Look how a column of the table is stored, which its plan may take for nothing."""
        format, kind = None if spec is None else spec.format, column.cells.dtype
        if format is None and kind.is_numeric():
            format = NumberFormat()
        elif format is None and kind in (pl.Date, pl.Datetime):
            format = DateFormat(has_time=kind == pl.Datetime)
        is_truth = spec is not None and spec.is_truth
        return cls(column.name, format, is_truth, kind == pl.Float32)

    def read(self, column: Column, format: ValueFormat | None) -> pl.Series:
        """Return what each cell says (n,): a number or, where it is none, a text."""
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
    """Mark the accepted rows (n,) of a table, or of a part; count those of each wanted row (k,)."""
    said = {of.name: of.read(table.column(of.name), of.format) for of in columns}
    rows = pl.DataFrame(dict(zip(wanted.columns, said.values(), strict=True)))
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
    """Find the rows of a table that the rows of another one accept.

    `specs` say how columns are read. A `hidden` column that is empty in the accepted rows says
    nothing: that is how scored tables leave it out. InputError if more than the share `most` of the
    table is accepted, or all of it.
    """
    name, where = (one_line(one.source.name, 60) for one in (accept, table))
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
    said = dict[str, pl.Series]()
    for of, own in zip(compared, columns.values(), strict=True):
        # A spreadsheet saves dates and decimals as its locale does.
        format = None if of.format is None else own.written_as(of.format)[0]
        said[str(len(said))] = of.read(own, format)
    match = partial(_matched, columns=compared, wanted=pl.DataFrame(said))
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
    """Return the cells of accepted rows in each column of a table, and the other columns' names.

    They come without the apostrophes that were put before text. A column of the name of one of ours
    has been written with an ending.
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


def _notes(
    accept: Table, where: str, counts: IntArray, ignored: Sequence[str], table: AnyTable
) -> list[str]:
    """Say which accepted rows are none of the table, and which columns say nothing of it."""
    name, notes = one_line(accept.source.name, 60), []
    idle = np.flatnonzero(counts == 0)
    if idle.size:
        places = [accept.place_of(row) for row in idle[:MAX_NAMED].tolist()]
        more = f" and {len(idle) - MAX_NAMED:,} more" if len(idle) > MAX_NAMED else ""
        rows = "1 row is" if len(idle) == 1 else f"{len(idle):,} rows are"
        notes.append(
            f"{name}: {rows} none of {where} ({', '.join(places)}{more}); a row whose cells have "
            "changed is no longer accepted and is listed again."
        )
    if ignored:
        noun, say = ("column", "says") if len(ignored) == 1 else ("columns", "say")
        hints = (suggest(one, table.columns) for one in ignored)
        notes.append(
            f"{name}: {noun} {listed(ignored)} {say} nothing, for {where} has no such column."
            f"{next(filter(None, hints), '')}"
        )
    return notes
