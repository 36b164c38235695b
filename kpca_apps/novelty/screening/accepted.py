"""Rows that somebody judged fine, named by a table of their own: which rows of a table they are.

Each row of that table accepts the rows that equal it in all columns both have: numbers as numbers,
dates as dates, other cells as text. A cell ``*`` and a column it lacks accept anything, so that a
few columns make a pattern; an empty cell accepts a missing value. A row that is changed later in a
column that is compared is another row, and no longer accepted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np
import polars as pl

from kpca_apps.errors import InputError
from kpca_apps.names import one_line, suggest
from kpca_apps.novelty.columns.execution import Execution
from kpca_apps.novelty.columns.parts import AnyTable, column_names, each_part
from kpca_apps.novelty.columns.plan import ColumnSpec, listed
from kpca_apps.novelty.result import AcceptedRows
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, DateFormat, NumberFormat, ValueFormat
from kpca_apps.tables.write import ANY, as_written

# Codes of cells; what an accepted row says has one from 1 on, unless no cell can say it.
_NEVER, _ANY, _OTHER, _MISSING = -3, -2, -1, 0
# Numbers are equal to so many parts of them: files of spreadsheets keep 15 digits.
CLOSE = 1e-14
# A table of which more is accepted has no usual rows left to judge the others by.
MOST = 0.5
MAX_PLACES = 5
# Columns of our own in a list of flagged rows or a scored table.
OURS = frozenset(
    "rank row line reason_column seen expected share hint rarity p_value novelty_score flagged "
    "accepted".split()
)


@dataclass(frozen=True)
class _Cells:
    """What the accepted rows say in one column of a table."""

    name: str  # in the table
    format: ValueFormat | None  # how its cells are read; None for text
    in_lower: bool  # whether case says nothing
    is_single: bool  # whether the table holds numbers of 32 bits
    values: FloatArray  # (v,), increasing
    texts: pl.Series  # (t,)

    @property
    def n_codes(self) -> int:
        """Codes that cells may have, 0 for a missing one among them."""
        return 1 + len(self.values) + len(self.texts)

    def codes(self, column: Column) -> IntArray:
        """Return the code of what each cell says (n,), -1 where no accepted row says it."""
        if self.format is None:
            levels = column.levels.lower() if self.in_lower else column.levels
            return levels.each(self._of_texts(levels.texts), _MISSING)
        readings = column.read(self.format)
        codes = self._of_values(readings.values)
        codes[readings.missing] = _MISSING
        rest = np.flatnonzero(readings.unreadable)
        if rest.size:
            codes[rest] = self._of_texts(column.take(rest).texts)
        return codes

    def _of_values(self, values: FloatArray) -> IntArray:
        codes = np.full(len(values), _OTHER, dtype=np.int64)
        if len(self.values):
            values = _rounded(values, self.is_single)
            above = np.searchsorted(self.values, values).clip(max=len(self.values) - 1)
            for place in (above, (above - 1).clip(min=0)):
                known = self.values[place]
                equal = np.abs(values - known) <= CLOSE * np.abs(known)
                codes[equal] = 1 + place[equal]
        return codes

    def _of_texts(self, texts: pl.Series) -> IntArray:
        if not len(self.texts):
            return np.full(len(texts), _OTHER, dtype=np.int64)
        codes = range(1 + len(self.values), self.n_codes)
        found = texts.replace_strict(self.texts, pl.Series(codes), default=_OTHER)
        return found.cast(pl.Int64).to_numpy().copy()


class Match(NamedTuple):
    """Rows of a table, or of a part of it, that are accepted."""

    is_accepted: BoolArray  # (n,)
    counts: IntArray  # (k,), rows that each accepted row stands for


@dataclass(frozen=True)
class _Patterns:
    """All accepted rows, as codes of what they say in the columns of a table."""

    cells: tuple[_Cells, ...]
    codes: IntArray  # (k, columns)

    def match(self, table: Table) -> Match:
        """Find them in a table, or in a part of it."""
        is_accepted = np.zeros(table.frame.height, dtype=bool)
        counts = np.zeros(len(self.codes), dtype=np.int64)
        said = {
            str(place): cells.codes(table.column(cells.name))
            for place, cells in enumerate(self.cells)
        }
        rows = pl.DataFrame(said).with_row_index("row")
        # Those that say something in the same columns are sought together.
        kinds, kind = np.unique(self.codes != _ANY, axis=0, return_inverse=True)
        for number, says in enumerate(kinds):
            entries, names = np.flatnonzero(kind.reshape(-1) == number), list(compress(said, says))
            wanted = pl.DataFrame(dict(zip(said, self.codes[entries].T, strict=True)))[names]
            found = rows.join(wanted.unique(), on=names, how="semi")
            is_accepted[found["row"].to_numpy()] = True
            n_alike = found.group_by(names).len()
            alike = wanted.join(n_alike, on=names, how="left", maintain_order="left")
            counts[entries] = alike["len"].fill_null(0).to_numpy()
        return Match(is_accepted, counts)


@dataclass(frozen=True)
class FoundRows:
    """Which rows of a table are accepted, and what is to be said of it."""

    is_accepted: BoolArray  # (n,)
    name: str  # of the file that accepts them
    notes: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Rows that are accepted."""
        return int(self.is_accepted.sum())

    def described(self, learned: str) -> AcceptedRows:
        """Say how many they are, and what the model `learned` of them."""
        n = self.n_rows
        statement = f"{self.name} accepts none of the rows."
        if n:
            rows = "1 row is accepted" if n == 1 else f"{n:,} rows are accepted"
            if n == 1:
                learned = learned.replace("they are", "it is").replace("them", "it")
            statement = f"{rows} in {self.name} and not listed{learned}."
        return AcceptedRows(self.name, n, statement)


def find_accepted(
    accept: Table,
    table: AnyTable,
    specs: Sequence[ColumnSpec],
    execution: Execution | None = None,
    *,
    most: float = 1.0,
    hidden: Collection[str] = (),
) -> FoundRows:
    """Find the rows of a table that the rows of another one accept.

    `specs` say how columns are read. A `hidden` column that is empty in the accepted rows says
    nothing: that is how scored tables leave it out. InputError if an accepted row says nothing, or
    if more than the share `most` of the table is accepted, or all of it.
    """
    name = one_line(accept.source.name, 60)
    where = one_line(table.source.name, 60)
    columns, ignored = _shared_columns(accept, column_names(table))
    columns = {
        other: own
        for other, own in columns.items()
        if other not in hidden or accept.column(own).texts.null_count() < accept.frame.height
    }
    if not columns:
        raise InputError(
            f"{name}: none of its columns is one of {where}; accepted rows are named by cells of "
            f"its columns.{suggest(ignored[0], column_names(table)) if ignored else ''}"
        )
    head = table if isinstance(table, Table) else table.parts[0].read()
    by_name = {spec.name: spec for spec in specs}
    cells, codes = zip(
        *(
            _coded(accept.column(own), head.column(other), by_name.get(other))
            for other, own in columns.items()
        ),
        strict=True,
    )
    patterns = _Patterns(cells, np.column_stack(codes))
    silent = np.flatnonzero((patterns.codes == _ANY).all(axis=1))
    if silent.size:
        raise InputError(
            f"{name}, {_place(accept, silent[0])}: accepts every row; name a value in at least one "
            f"column of {where}."
        )
    counts = np.zeros(accept.frame.height, dtype=np.int64)
    marked = []
    work = execution or Execution()
    for part in each_part(table, "Looking for accepted rows", patterns.match, work):
        marked.append(part.is_accepted)
        counts += part.counts
    is_accepted = np.concatenate(marked)
    n_accepted, n_rows = int(is_accepted.sum()), len(is_accepted)
    if n_accepted > most * n_rows or n_accepted == n_rows:
        raise InputError(
            f"{name}: accepts {n_accepted:,} of the {n_rows:,} rows of {where}, "
            f"{counts.max():,} of them by {_place(accept, int(counts.argmax()))}: too many to "
            "judge the others by; say more about the rows that are fine."
        )
    return FoundRows(is_accepted, name, tuple(_notes(accept, where, counts, ignored, table)))


def _shared_columns(accept: Table, names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return columns of a table and what they are called in the other one, and the rest of it.

    A column of the name of one of ours has been written with an ending.
    """
    columns = accept.frame.columns
    given = dict(zip(as_written(pl.Series(columns, dtype=pl.String)), columns, strict=True))
    shared = {}
    for name in names:
        endings = ("_input_input", "_input") if name in OURS else ()
        written = [name + ending for ending in endings if name + ending not in names]
        own = next((one for one in [*written, name] if one in given), None)
        if own is not None:
            shared[name] = given[own]
    used = set(shared.values())
    ignored = [one for one in columns if one not in used and one not in OURS]
    return shared, ignored


def _coded(own: Column, other: Column, spec: ColumnSpec | None) -> tuple[_Cells, IntArray]:
    """Return what accepted rows say in a column, and the code of what each says.

    `other` holds cells of the table, and tells how they are stored.
    """
    format = None if spec is None else spec.format
    kind = other.cells.dtype
    if format is None and kind.is_numeric():
        format = NumberFormat()
    elif format is None and kind in (pl.Date, pl.Datetime):
        format = DateFormat(has_time=kind == pl.Datetime)
    is_any = (own.texts == ANY).fill_null(False).to_numpy()
    if own.cells.dtype == pl.String:
        own = Column(as_written(own.cells))
    said = own.take(np.flatnonzero(~is_any))
    in_lower, is_single = spec is not None and spec.is_truth, kind == pl.Float32
    values, texts = np.empty(0), said.levels.lower().texts if in_lower else said.levels.texts
    if format is not None:
        readings = said.read(format)
        values = np.unique(_rounded(readings.values[~np.isnan(readings.values)], is_single))
        far = np.diff(values, prepend=-np.inf) > CLOSE * np.abs(values)
        values = values[far]
        texts = said.texts.filter(pl.Series(readings.unreadable)).unique(maintain_order=True)
    cells = _Cells(other.name, format, in_lower, is_single, values, texts)
    codes = cells.codes(own)
    codes[codes == _OTHER] = _NEVER
    return cells, np.where(is_any, _ANY, codes)


def _rounded(values: FloatArray, is_single: bool) -> FloatArray:
    """Return numbers as the table can hold them."""
    if not is_single:
        return values
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def _place(accept: Table, row: int | np.int64) -> str:
    return f"row {row + 1}" if accept.lines is None else f"line {accept.lines[row]}"


def _notes(
    accept: Table, where: str, counts: IntArray, ignored: Sequence[str], table: AnyTable
) -> list[str]:
    """Say which accepted rows are none of the table, and which columns say nothing of it."""
    name, notes = one_line(accept.source.name, 60), []
    idle = np.flatnonzero(counts == 0)
    if idle.size:
        places = [_place(accept, row) for row in idle[:MAX_PLACES]]
        more = f" and {len(idle) - MAX_PLACES:,} more" if len(idle) > MAX_PLACES else ""
        rows = "1 row is" if len(idle) == 1 else f"{len(idle):,} rows are"
        notes.append(
            f"{name}: {rows} none of {where} ({', '.join(places)}{more}); an accepted row whose "
            "cells have changed is another one, and listed again."
        )
    if ignored:
        noun, say = ("column", "says") if len(ignored) == 1 else ("columns", "say")
        hints = (suggest(one, column_names(table)) for one in ignored)
        notes.append(
            f"{name}: {noun} {listed(ignored)} {say} nothing, for {where} has no such column."
            f"{next(filter(None, hints), '')}"
        )
    return notes
