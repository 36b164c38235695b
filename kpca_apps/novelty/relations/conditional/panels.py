"""The usual number of a level: a country's income, a machine's temperature.

A number is expected at the median of the other rows of its level. It is judged by its distance from
that median over the median distance in the level. Numbers are on an asinh scale around the column's
median, in units of the median distance from it: sizes over powers of ten become comparable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl
from msgspec import Meta

from kpca_apps.names import quoted, quoted_cell
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.relations.conditional.counts import LevelCells, LevelColumn
from kpca_apps.novelty.relations.conditional.expected import LEAST_SUPPORT, Ratios, values_of
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

# Levels predict numbers if the median distance of numbers from level medians is below NEARER times
# that from the median of the column, and if the share IN_MOST of rows has other rows in its level.
NEARER, IN_MOST = 0.5, 0.5
# To save time, medians are computed only if half of the numbers lie near the mean of the other rows
# of their level: within HOPELESS times the median distance to be beaten. The mean of the column is
# averaged in as if it were SHRUNK_BY rows. ROUNDING: relative rounding error of such distances.
SHRUNK_BY, HOPELESS, ROUNDING = 1.0, 1.5, 1e-6
# A column holds measurements, not numbered entities, if distances from expected numbers grow by at
# most the factor AS_NEAR when MERGED neighbouring values are treated as one level. This factor was
# at most 1.06 in 30 tables of correlated measurements, and at least 2.6 in 20 panels of entities.
MERGED, AS_NEAR = 3, 1.5
SMALLEST = 1e-100  # minimum `UsualNumber.width`; ratios of numbers up to 1e100 then stay finite
# At least LEAST_OTHERS other rows of its level predict a number. Because a few rows may agree by
# chance, a level's usual distance is averaged with that of all levels, weighted as USUAL_BY rows.
LEAST_OTHERS, USUAL_BY = 2, 3.0


@dataclass(frozen=True, eq=False)
class Medians:
    """Medians of numbers in k levels; any one row can be left out of the median of its level."""

    counts: Annotated[IntArray, "k", Meta(ge=0, le=2**53)]  # number of rows of each level
    # Lower median of a level without one row: `high` if that row is at most `low`, else `low`.
    low: Annotated[FloatArray, "k", Meta(ge=-1e3, le=1e3)]
    high: Annotated[FloatArray, "k", Meta(ge=-1e3, le=1e3)]

    @classmethod
    def of(cls, z: FloatArray, codes: IntArray, n_levels: int) -> Medians:
        """Learn from numbers (n,), NaN left out, and the code (n,) of each row's level."""
        known = np.flatnonzero((codes < n_levels) & ~np.isnan(z))
        order = known[np.lexsort((z[known], codes[known]))]
        counts = np.bincount(codes[known], minlength=n_levels)
        at = np.cumsum(counts) - counts + np.maximum(counts - 2, 0) // 2
        ordered = np.append(z[order], 0.0)
        last = np.minimum(at + (counts > 1), len(order))
        return cls(counts, ordered[np.minimum(at, len(order))], ordered[last])

    def expected(
        self, z: FloatArray, codes: IntArray, own: BoolArray
    ) -> tuple[FloatArray, IntArray]:
        """Return, for each row, the lower median of its level's other rows, and their number, (n,).

        Only training rows (`own`, (n,)) are left out of their level.
        """
        known = (codes < len(self.counts)) & ~np.isnan(z)
        at, own = np.where(known, codes, 0), own & known
        is_high = np.where(own, z <= self.low[at], self.counts[at] % 2 == 1)
        return np.where(is_high, self.high[at], self.low[at]), np.where(
            known, self.counts[at] - own, 0
        )

    def distances(self, z: FloatArray, codes: IntArray) -> FloatArray:
        """Return distances (n,) of numbers `z` from the median of other rows of their level."""
        expected, n_rows = self.expected(z, codes, np.ones(len(z), dtype=bool))
        return np.where(n_rows > 0, np.abs(z - expected), np.nan)


@dataclass(frozen=True, eq=False)
class UsualNumber:
    """Medians of a numeric column, one for each level of another column."""

    spec: ColumnSpec  # column of the predicted numbers
    given: Annotated[int, Meta(ge=0)]  # index of the column of levels
    middle: Annotated[float, Meta(ge=-1e100, le=1e100)]  # median of the column
    width: Annotated[float, Meta(gt=0, le=1e100)]  # median distance from `middle`
    levels: Medians  # medians of the numbers by level
    distances: Medians  # in each level, the median distance of numbers from the level's median
    half: Annotated[float, Meta(gt=0, le=1e3)]  # median distance of all numbers from level medians

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the predicted column and of the predicting column."""
        return self.spec.name, columns[self.given]

    def ratios(self, table: Table, cells: Sequence[LevelCells], own: BoolArray) -> Ratios:
        """Return distances from level medians, as multiples of a typical distance in the level."""
        z, codes = _scaled(table, self.spec, self.middle, self.width), cells[self.given].codes
        expected, n_rows = self.levels.expected(z, codes, own)
        distance = np.abs(z - expected)
        of_level, n = self.distances.expected(np.where(n_rows > 0, distance, np.nan), codes, own)
        usual = (n * of_level + USUAL_BY * self.half) / (n + USUAL_BY)
        ratio = np.where(n_rows >= LEAST_OTHERS, distance / usual, np.nan)
        return Ratios(ratio, self.middle + self.width * np.sinh(expected), n_rows)

    def why(
        self, columns: Sequence[str], cells: Sequence[LevelCells], row: int, of: Ratios
    ) -> tuple[str, str]:
        """Return the text before the expected number, and the text after the number."""
        name, level = quoted(columns[self.given]), quoted_cell(cells[self.given].text(row))
        return (
            f"The {of.support[row]:,} other rows with {name} {level} lie ",
            f", this one {of.ratio[row]:,.0f} times as far from that as rows of one {name} "
            "usually do.",
        )


def find_usual(
    table: Table,
    numbers: Sequence[ColumnSpec],
    columns: Sequence[LevelColumn],
    cells: Sequence[LevelCells],
) -> Iterator[UsualNumber]:
    """Find for each column of numbers the column whose levels (distinct values) predict it best."""
    for spec in numbers:
        if spec.format is None:
            continue
        values = values_of(table, spec)
        seen = values[~np.isnan(values)]
        middle = float(np.median(seen)) if len(seen) else 0.0
        width = float(np.median(np.abs(seen - middle))) if len(seen) else 0.0
        if not SMALLEST < width:
            continue
        z = _scaled(table, spec, middle, width)
        best, found = NEARER * float(np.nanmedian(np.abs(z))), None
        for place, (column, of) in enumerate(zip(columns, cells, strict=True)):
            if column.name == spec.name or not _may_lie_near(
                z, of.codes, column.missing, HOPELESS * best
            ):
                continue
            medians = Medians.of(z, of.codes, column.missing)
            distance = medians.distances(z, of.codes)
            half = float(np.nanmedian(distance))
            if half < best and not _is_measure(column, of.codes, z, half):
                best, found = half, (place, medians, distance)
        if found is not None:
            place, medians, distance = found
            distances = Medians.of(distance, cells[place].codes, len(medians.counts))
            n = distances.counts
            # Values with few rows each, such as weights, form no groups.
            is_group = 2 * n[n > LEAST_SUPPORT].sum() > np.count_nonzero(~np.isnan(z))
            if best > 0 and is_group:
                yield UsualNumber(spec, place, middle, width, medians, distances, best)


def _may_lie_near(z: FloatArray, codes: IntArray, n_levels: int, near: float) -> bool:
    """Whether half of the numbers (n,) differ from the mean of their level by `near` or less."""
    known = (codes < n_levels) & ~np.isnan(z)
    seen, codes, mean = z[known], codes[known], z[~np.isnan(z)].mean()
    others = np.bincount(codes)[codes] - 1
    sums = np.bincount(codes, seen)[codes] - seen
    off = np.abs(seen - (sums + SHRUNK_BY * mean) / (others + SHRUNK_BY))[others > 0]
    n_far = np.count_nonzero(off > near * (1 + ROUNDING))
    return len(off) >= IN_MOST * len(z) and bool(2 * n_far <= len(off) + 1)


def _is_measure(column: LevelColumn, codes: IntArray, z: FloatArray, half: float) -> bool:
    """Whether a column is a measurement: merging neighbouring values worsens predictions little.

    `half` is the median distance of numbers from expected ones without merging.
    """
    if column.spec.format is None or column.spec.has_levels:
        return False
    values = Column(pl.Series(column.texts)).read(column.spec.format).values
    place = np.append(np.argsort(np.argsort(values)) // MERGED, [column.missing] * 2)
    merged = place[np.minimum(codes, column.missing)]
    near = np.nanmedian(Medians.of(z, merged, column.missing).distances(z, merged))
    return bool(near <= AS_NEAR * half)


def _scaled(table: Table, spec: ColumnSpec, middle: float, width: float) -> FloatArray:
    return np.arcsinh((values_of(table, spec) - middle) / width)
