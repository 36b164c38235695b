"""What a number usually is where a level recurs: a country's income, a machine's temperature.

Of n rows of a level, without the row itself, a number is expected at their mean. Numbers are taken
by the inverse hyperbolic sine of their distance from the median, in units of the distance that half
of them have: neither sizes of several powers of ten nor one absurd value move a mean far. One
number of a level that lies so far off as few would by chance is left out of its mean: a fault does
not make the right rows beside it odd. A number is judged by how many times farther from the mean of
its level's other rows it is than they are (`expected`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl
from msgspec import Meta

from kpca_apps.names import quoted, quoted_cell
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.detector.surprise.tails import UPPER, exponential_tail
from kpca_apps.novelty.relations.conditional.counts import Cells, LevelColumn
from kpca_apps.novelty.relations.conditional.expected import Ratios, values_of
from kpca_apps.novelty.relations.counting import may_lie_near
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

# A level says something of a number where half of them lie so much nearer to the mean of its other
# rows, with one row at the mean of all, than to the median, in most rows of the table.
NEARER, IN_MOST, SHRUNK_BY = 0.5, 0.5, 1.0
# So many neighbouring values of a measure, merged, say as much as each of them alone: numbers lie
# at most 1.06 times as far from what is expected in 30 tables of correlated measures, 2.6 times and
# more in 20 panels whose entities have numbers.
MERGED, AS_NEAR = 3, 1.5
SMALLEST = 1e-100  # numbers are at most 1e100: ratios stay in range
# Other rows that a level must have for a number to be judged, and rows of the usual spread that are
# added to that of these: a few that agree, by chance or by rounding, do not show that they keep
# closer together than most. A spread that is never below the usual one finds a fifth fewer faults.
LEAST_OTHERS, SPREAD_BY = 2, 3.0
BY_CHANCE = 0.2  # rows as far off as an outlier that chance leaves in a column, at most
NO_OUTLIER = 1e3  # where a level has none: beyond the inverse hyperbolic sine of any number


class _Means(NamedTuple):
    """The means of a number, scaled, in the rows of each level, shrunk towards that of all rows."""

    sums: FloatArray  # (k,)
    counts: IntArray  # (k,), rows of each level
    mean: float  # of all rows

    @classmethod
    def of(
        cls, z: FloatArray, codes: IntArray, kept: BoolArray, n_levels: int, mean: float
    ) -> _Means:
        """Sum up numbers (n,) by level; those missing, and those not `kept`, are left out."""
        known = (codes < n_levels) & ~np.isnan(z) & kept
        counts = np.bincount(codes[known], minlength=n_levels)
        sums = np.bincount(codes[known], z[known], n_levels).astype(np.float64)
        return cls(sums, counts, mean)

    def distances(self, z: FloatArray, codes: IntArray, own: BoolArray) -> FloatArray:
        """Distance of each number from the one expected, (n,); NaN if no other row has its level.

        Rows that were summed up (`own`, (n,)) are left out, each for itself.
        """
        known = (codes < len(self.counts)) & ~np.isnan(z)
        at = np.where(known, codes, 0)
        left_out = np.where(own & known, z, 0.0)
        n_rows = np.where(known, self.counts[at] - own, 0)
        expected = self.sums[at] - left_out + SHRUNK_BY * self.mean
        expected /= n_rows + SHRUNK_BY
        return np.where(n_rows > 0, np.abs(z - expected), np.nan)


@dataclass(frozen=True, eq=False)
class UsualNumber:
    """The mean of a number in the rows of each level of another column."""

    spec: ColumnSpec  # of the number
    given: Annotated[int, Meta(ge=0)]  # place of the column of levels
    middle: Annotated[float, Meta(ge=-1e100, le=1e100)]  # median,
    width: Annotated[float, Meta(gt=0, le=1e100)]  # and median distance to it
    sums: Annotated[FloatArray, "k", Meta(ge=-1e15, le=1e15)]  # of the rows of each level
    counts: Annotated[IntArray, "k", Meta(ge=0, le=2**53)]
    squares: Annotated[FloatArray, "k", Meta(ge=0, le=1e18)]  # sums of squares of each level
    outliers: Annotated[FloatArray, "k", Meta(ge=-NO_OUTLIER, le=NO_OUTLIER)]  # left out of sums

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the column that is judged and those it is judged by."""
        return self.spec.name, columns[self.given]

    def ratios(self, table: Table, cells: Sequence[Cells], own: BoolArray) -> Ratios:
        """How many times farther each number is from the mean of the others of its level than they.

        Rows that it was learned from (`own`, (n,)) are left out, each for itself.
        """
        z, codes = _scaled(table, self.spec, self.middle, self.width), cells[self.given].codes
        known = (codes < len(self.counts)) & ~np.isnan(z)
        at = np.where(known, codes, 0)
        own = own & known & (z != self.outliers[at])
        left_out = np.where(own, z, 0.0)
        n_rows = np.where(known, self.counts[at] - own, 0)
        n = np.maximum(n_rows, 1)
        mean = (self.sums[at] - left_out) / n
        sums = np.maximum(self.squares[at] - left_out**2 - n * mean**2, 0.0)
        spread = np.sqrt((sums + SPREAD_BY * self._usual_variance) / (n - 1 + SPREAD_BY))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(z - mean) / (spread * np.sqrt(1.0 + 1.0 / n))
        ratio = np.where((n_rows >= LEAST_OTHERS) & (spread > 0), ratio, np.nan)
        return Ratios(ratio, self.middle + self.width * np.sinh(mean), n_rows)

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

    @property
    def _usual_variance(self) -> float:
        """Variance within the levels of which half of the rows have a smaller one."""
        n = self.counts
        variance = np.maximum(
            self.squares / np.maximum(n, 1) - (self.sums / np.maximum(n, 1)) ** 2, 0.0
        )
        recurs = n > LEAST_OTHERS
        if not recurs.any():
            return 0.0
        order = np.argsort(variance[recurs], kind="stable")
        rows = np.cumsum(n[recurs][order])
        return float(variance[recurs][order][np.searchsorted(rows, rows[-1] / 2)])


def find_usual(
    table: Table,
    numbers: Sequence[ColumnSpec],
    columns: Sequence[LevelColumn],
    cells: Sequence[Cells],
) -> Iterator[UsualNumber]:
    """Find the numbers that lie about the means of a column's levels; of columns, the best."""
    own = np.ones(table.frame.height, dtype=bool)
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
        mean = float(np.nanmean(z))
        best, found = NEARER * float(np.nanmedian(np.abs(z))), None
        for place, (column, of) in enumerate(zip(columns, cells, strict=True)):
            least_rows = IN_MOST * len(z)
            if column.name == spec.name or not may_lie_near(
                z, of.codes, column.missing, mean, SHRUNK_BY, best, least_rows
            ):
                continue
            means = _Means.of(z, of.codes, own, column.missing, mean)
            distance = means.distances(z, of.codes, own)
            half = float(np.nanmedian(distance))
            if half < best and not _is_measure(column, of.codes, z, means, half):
                best, found = half, (place, means, distance)
        if found is not None:
            place, means, distance = found
            codes, n_levels = cells[place].codes, len(means.counts)
            far = _outliers(z, codes, distance, means)
            outliers, kept = np.full(n_levels, NO_OUTLIER), own.copy()
            outliers[codes[far]], kept[far] = z[far], False
            means = _Means.of(z, codes, kept, n_levels, mean)
            squares = _Means.of(z**2, codes, kept, n_levels, mean).sums
            yield UsualNumber(
                spec, place, middle, width, means.sums, means.counts, squares, outliers
            )


def _is_measure(
    column: LevelColumn, codes: IntArray, z: FloatArray, means: _Means, half: float
) -> bool:
    """Whether neighbouring values of a column say of numbers (n,) what one value says: no group.

    Half of the numbers lie so near to what they are expected to be where one value recurs.
    """
    if column.spec.format is None or column.spec.has_levels:
        return False
    values = Column(pl.Series(column.texts)).read(column.spec.format).values
    place = np.append(np.argsort(np.argsort(values)) // MERGED, [column.missing] * 2)
    merged = place[np.minimum(codes, column.missing)]
    own = np.ones(len(z), dtype=bool)
    of_merged = _Means.of(z, merged, own, column.missing, means.mean)
    near = np.nanmedian(of_merged.distances(z, merged, own))
    return bool(near <= AS_NEAR * half)


def _outliers(z: FloatArray, codes: IntArray, distance: FloatArray, means: _Means) -> IntArray:
    """Find the row of each level that hardly any would lie as far off as by chance.

    Not where another row of the level is farther off without it: then there are two such.
    """
    seen = np.flatnonzero(~np.isnan(distance))
    zero, slope = exponential_tail(distance[seen], UPPER)
    far = zero + np.log(len(seen) / BY_CHANCE) / slope  # hardly any would be by chance
    ordered = seen[np.lexsort((-distance[seen], codes[seen]))]
    worst = ordered[np.unique(codes[ordered], return_index=True)[1]]
    worst = worst[distance[worst] > far]
    kept, counts, sums = ~np.isnan(z), means.counts.copy(), means.sums.copy()
    kept[worst] = False
    counts[codes[worst]] -= 1
    sums[codes[worst]] -= z[worst]
    left = means._replace(counts=counts, sums=sums).distances(z, codes, kept)
    before, after = np.zeros((2, len(counts) + 1))
    kept &= codes < len(counts)
    np.maximum.at(before, codes[kept], np.nan_to_num(distance[kept]))
    np.maximum.at(after, codes[kept], np.nan_to_num(left[kept]))
    alone: IntArray = worst[after[codes[worst]] <= before[codes[worst]]]
    return alone


def _scaled(table: Table, spec: ColumnSpec, middle: float, width: float) -> FloatArray:
    """Numbers of a column about their median, (n,); NaN where missing."""
    return np.arcsinh((values_of(table, spec) - middle) / width)
