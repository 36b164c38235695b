"""What a number usually is where a level recurs: a country's income, a machine's temperature.

A number is expected at the median of its level's other rows: one fault does not make the right rows
beside it odd. Numbers are taken by the inverse hyperbolic sine of their distance from the median of
all, in units of the distance that half of them have, so that sizes of several powers of ten are
alike. A number is judged by its distance from what is expected, over the median one of its level.
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
from kpca_apps.novelty.relations.conditional.counts import Cells, LevelColumn
from kpca_apps.novelty.relations.conditional.expected import LEAST_SUPPORT, Ratios, values_of
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

# A level says something of a number where half of them lie so much nearer to the others of their
# level than to the median, in most rows of the table.
NEARER, IN_MOST = 0.5, 0.5
# Rows at the mean of all that the means of levels have more, which show at once that most say
# nothing; and how much farther off than medians these may be.
SHRUNK_BY, HOPELESS, ROUNDING = 1.0, 1.5, 1e-6
# So many neighbouring values of a measure, merged, say as much as each of them alone: numbers lie
# at most 1.06 times as far from what is expected in 30 tables of correlated measures, 2.6 times and
# more in 20 panels whose entities have numbers.
MERGED, AS_NEAR = 3, 1.5
SMALLEST = 1e-100  # numbers are at most 1e100: ratios stay in range
# Other rows that a level must have for a number to be judged, and rows of the usual distance that
# are added to its own: a few that agree, by chance or by rounding, do not show that they keep
# closer together than most.
LEAST_OTHERS, USUAL_BY = 2, 3.0


@dataclass(frozen=True, eq=False)
class Medians:
    """The middle numbers of the rows of each of k levels, with one row and without it."""

    counts: Annotated[IntArray, "k", Meta(ge=0, le=2**53)]  # rows
    # The two that may be the median without one row.
    low: Annotated[FloatArray, "k", Meta(ge=-1e3, le=1e3)]
    high: Annotated[FloatArray, "k", Meta(ge=-1e3, le=1e3)]

    @classmethod
    def of(cls, z: FloatArray, codes: IntArray, n_levels: int) -> Medians:
        """Find them among numbers (n,); those missing are left out."""
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
        """Median of the other rows of each row's level, and their number, (n,) each.

        Rows that are among them (`own`, (n,)) are left out; of an even number the lower one counts.
        """
        known = (codes < len(self.counts)) & ~np.isnan(z)
        at, own = np.where(known, codes, 0), own & known
        is_high = np.where(own, z <= self.low[at], self.counts[at] % 2 == 1)
        return np.where(is_high, self.high[at], self.low[at]), np.where(
            known, self.counts[at] - own, 0
        )

    def distances(self, z: FloatArray, codes: IntArray) -> FloatArray:
        """Distance of each number from the others of its level, (n,); NaN where there are none."""
        expected, n_rows = self.expected(z, codes, np.ones(len(z), dtype=bool))
        return np.where(n_rows > 0, np.abs(z - expected), np.nan)


@dataclass(frozen=True, eq=False)
class UsualNumber:
    """The median of a number in the rows of each level of another column."""

    spec: ColumnSpec  # of the number
    given: Annotated[int, Meta(ge=0)]  # place of the column of levels
    middle: Annotated[float, Meta(ge=-1e100, le=1e100)]  # median,
    width: Annotated[float, Meta(gt=0, le=1e100)]  # and median distance to it
    levels: Medians  # of the numbers of each level,
    distances: Medians  # and of their distances to that of the others
    half: Annotated[float, Meta(gt=0, le=1e3)]  # median of all these distances

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the column that is judged and those it is judged by."""
        return self.spec.name, columns[self.given]

    def ratios(self, table: Table, cells: Sequence[Cells], own: BoolArray) -> Ratios:
        """How many times farther each number is from the others of its level than they usually are.

        Rows that it was learned from (`own`, (n,)) are left out, each for itself.
        """
        z, codes = _scaled(table, self.spec, self.middle, self.width), cells[self.given].codes
        expected, n_rows = self.levels.expected(z, codes, own)
        distance = np.abs(z - expected)
        of_level, n = self.distances.expected(np.where(n_rows > 0, distance, np.nan), codes, own)
        usual = (n * of_level + USUAL_BY * self.half) / (n + USUAL_BY)
        ratio = np.where(n_rows >= LEAST_OTHERS, distance / usual, np.nan)
        return Ratios(ratio, self.middle + self.width * np.sinh(expected), n_rows)

    def why(
        self, columns: Sequence[str], cells: Sequence[Cells], row: int, of: Ratios
    ) -> tuple[str, str]:
        """Say why a number is odd, around what is expected."""
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
    cells: Sequence[Cells],
) -> Iterator[UsualNumber]:
    """Find the numbers that lie about the medians of a column's levels; of columns, the best."""
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
            # A weight that few rows share is no group, though some of its values recur.
            is_group = 2 * n[n > LEAST_SUPPORT].sum() > np.count_nonzero(~np.isnan(z))
            if best > 0 and is_group:
                yield UsualNumber(spec, place, middle, width, medians, distances, best)


def _may_lie_near(z: FloatArray, codes: IntArray, n_levels: int, near: float) -> bool:
    """Whether half of the numbers (n,) may lie so near to the mean of their level's other rows.

    Most say nothing of each other, which means show sooner than medians.
    """
    known = (codes < n_levels) & ~np.isnan(z)
    seen, codes, mean = z[known], codes[known], z[~np.isnan(z)].mean()
    others = np.bincount(codes)[codes] - 1
    sums = np.bincount(codes, seen)[codes] - seen
    off = np.abs(seen - (sums + SHRUNK_BY * mean) / (others + SHRUNK_BY))[others > 0]
    # Sums in another order differ by less.
    n_far = np.count_nonzero(off > near * (1 + ROUNDING))
    return len(off) >= IN_MOST * len(z) and bool(2 * n_far <= len(off) + 1)


def _is_measure(column: LevelColumn, codes: IntArray, z: FloatArray, half: float) -> bool:
    """Whether neighbouring values of a column say of numbers (n,) what one value says: no group.

    Half of the numbers lie so near to what they are expected to be where one value recurs.
    """
    if column.spec.format is None or column.spec.has_levels:
        return False
    values = Column(pl.Series(column.texts)).read(column.spec.format).values
    place = np.append(np.argsort(np.argsort(values)) // MERGED, [column.missing] * 2)
    merged = place[np.minimum(codes, column.missing)]
    near = np.nanmedian(Medians.of(z, merged, column.missing).distances(z, merged))
    return bool(near <= AS_NEAR * half)


def _scaled(table: Table, spec: ColumnSpec, middle: float, width: float) -> FloatArray:
    """Numbers of a column about their median, (n,); NaN where missing."""
    return np.arcsinh((values_of(table, spec) - middle) / width)
