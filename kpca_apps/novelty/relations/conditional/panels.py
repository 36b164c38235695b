"""What a number usually is where a level recurs: a country's income, a machine's temperature.

Of n rows of a level, without the row itself, a number is expected at their mean, shrunk towards
that of the column by a few rows, as a level that recurs seldom says little. Numbers are taken by
the inverse hyperbolic sine of their distance from the median, in units of the distance that half of
them have: neither sizes of several powers of ten nor one absurd value move a mean far. How far a
number is from what is expected becomes the share of those that are as far. One number of a
level that lies so far off as few would by chance is left out of its mean: a fault does not make the
right rows beside it odd.

A number is named by how many times farther from the mean of its level's other rows it is than they
are. These ratios are taken to have a Pareto tail, through two of their quantiles: numbers that jump
by their nature have a heavy one, and among them none is named. Of those beyond it, few are named
that would be there by chance (Benjamini and Hochberg 1995).

References
----------
Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, JRSS B 57, 1995.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl
from msgspec import Meta

from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.detector.surprise.tails import STEEPEST, UpperTail, exponential_tail
from kpca_apps.novelty.relations.conditional.counts import Cells, LevelColumn
from kpca_apps.novelty.relations.counting import may_lie_near
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

# Rows of the column that are added to those of a level: the best is taken. Most levels say nothing
# of a number, which the first of these shows: so much farther off than what is sought.
SHRUNK_BY, HOPELESS = (1.0, 0.25, 4.0), 1.5
# A level says something of a number where half of them lie so much nearer to what is expected than
# to the median, in most rows of the table.
NEARER, IN_MOST = 0.5, 0.5
# So many neighbouring values of a measure, merged, say as much as each of them alone: numbers lie
# at most 1.06 times as far from what is expected in 30 tables of correlated measures, 2.6 times and
# more in 20 panels whose entities have numbers.
MERGED, AS_NEAR = 3, 1.5
SMALLEST = 1e-100  # numbers are at most 1e100: ratios stay in range
FINITE = Meta(ge=-1e9, le=1e9)
# Other rows that a level must have for a number to be named, and rows of the usual spread that are
# added to that of these: a few that agree, by chance or by rounding, do not show that they keep
# closer together than most. A spread that is never below the usual one finds a fifth fewer faults.
LEAST_OTHERS, SPREAD_BY = 5, 3.0
FAR_SHARES = (0.75, 0.95)  # quantiles of the ratios that their tail goes through
FALSE_DISCOVERIES = 0.2  # at most, of the numbers named in a column
SMALLEST_RATIO = 1e-6
NO_OUTLIER = 1e3  # where a level has none: beyond the inverse hyperbolic sine of any number


class OddNumber(NamedTuple):
    """A number that is far from what it usually is where a level of its row recurs."""

    row: int
    expected: float  # as the column reads numbers
    log_p: float
    times: float  # farther from it than rows of a level usually are: this one and all others
    n_rows: int  # these


class _Means(NamedTuple):
    """The means of a number, scaled, in the rows of each level, shrunk towards that of all rows."""

    sums: FloatArray  # (k,)
    counts: IntArray  # (k,), rows of each level
    mean: float  # of all rows
    shrunk_by: float  # rows at that mean that are added to each level

    @classmethod
    def of(
        cls, z: FloatArray, codes: IntArray, kept: BoolArray, n_levels: int, mean: float
    ) -> _Means:
        """Sum up numbers (n,) by level; those missing, and those not `kept`, are left out."""
        known = (codes < n_levels) & ~np.isnan(z) & kept
        counts = np.bincount(codes[known], minlength=n_levels)
        sums = np.bincount(codes[known], z[known], n_levels).astype(np.float64)
        return cls(sums, counts, mean, SHRUNK_BY[0])

    def distances(self, z: FloatArray, codes: IntArray, own: BoolArray) -> FloatArray:
        """Distance of each number from the one expected, (n,); NaN if no other row has its level.

        Rows that were summed up (`own`, (n,)) are left out, each for itself.
        """
        known = (codes < len(self.counts)) & ~np.isnan(z)
        at = np.where(known, codes, 0)
        left_out = np.where(own & known, z, 0.0)
        n_rows = np.where(known, self.counts[at] - own, 0)
        expected = self.sums[at] - left_out + self.shrunk_by * self.mean
        expected /= n_rows + self.shrunk_by
        return np.where(n_rows > 0, np.abs(z - expected), np.nan)


@dataclass(frozen=True, eq=False)
class UsualNumber:
    """The mean of a number in the rows of each level of another column."""

    spec: ColumnSpec  # of the number
    given: Annotated[int, Meta(ge=0)]  # place of the column of levels
    middle: Annotated[float, Meta(ge=-1e100, le=1e100)]  # median,
    width: Annotated[float, Meta(gt=0, le=1e100)]  # and median distance to it
    mean: Annotated[float, FINITE]  # of all rows
    shrunk_by: Annotated[float, Meta(gt=0, le=1e3)]
    sums: Annotated[FloatArray, "k", Meta(ge=-1e15, le=1e15)]  # of the rows of each level
    counts: Annotated[IntArray, "k", Meta(ge=0, le=2**53)]
    tail: UpperTail  # of distances from what is expected
    squares: Annotated[FloatArray, "k", Meta(ge=0, le=1e18)]  # sums of squares of each level
    outliers: Annotated[FloatArray, "k", Meta(ge=-NO_OUTLIER, le=NO_OUTLIER)]  # left out of sums
    spread: Annotated[float, Meta(ge=0, le=1e9)]  # usual one within a level; 0: none is named
    # Pareto tail of the ratios t, t^-slope e^(slope zero), and log of the share of those named.
    zero: Annotated[float, FINITE]
    slope: Annotated[float, Meta(ge=0, le=STEEPEST)]
    limit: Annotated[float, Meta(ge=-1e3, le=0)]

    def odd(self, table: Table, cells: Cells, own: BoolArray) -> Iterator[OddNumber]:
        """Find the numbers that are farther than few would be by chance."""
        if not self.spread:
            return
        z = _scaled(table, self.spec, self.middle, self.width)
        ratio, mean, n_rows = self._ratios(z, cells.codes, own)
        log_p = -self.slope * (np.log(np.maximum(ratio, SMALLEST_RATIO)) - self.zero)
        for row in np.flatnonzero(log_p <= self.limit).tolist():
            expected = self.middle + self.width * float(np.sinh(mean[row]))
            times, n = float(ratio[row]), int(n_rows[row])
            yield OddNumber(row, expected, float(log_p[row]), times, n)

    def with_limit(self, z: FloatArray, codes: IntArray) -> UsualNumber:
        """Learn which of its own numbers, scaled (n,), are to be named."""
        n, means = self.counts, self.sums / np.maximum(self.counts, 1)
        variance = np.maximum(self.squares / np.maximum(n, 1) - means**2, 0.0)
        recurs = n > LEAST_OTHERS
        # A weight that few rows share is no group, though some of its values recur.
        if 2 * n[recurs].sum() <= np.count_nonzero(~np.isnan(z)):
            return self
        order = np.argsort(variance[recurs], kind="stable")
        rows = np.cumsum(n[recurs][order])
        usual = variance[recurs][order][np.searchsorted(rows, rows[-1] / 2)]
        learned = replace(self, spread=float(np.sqrt(usual)))
        if not learned.spread:
            return self
        ratio, _, _ = learned._ratios(z, codes, np.ones(len(z), dtype=bool))
        logs = np.log(np.maximum(ratio[~np.isnan(ratio)], SMALLEST_RATIO))
        zero, slope = exponential_tail(logs, FAR_SHARES)
        ordered = np.sort(-slope * (logs - zero))
        allowed = np.log(FALSE_DISCOVERIES * np.arange(1, len(logs) + 1) / len(logs))
        below = np.flatnonzero(ordered <= allowed)
        limit = allowed[below[-1]] if len(below) else allowed[0]
        return replace(learned, zero=zero, slope=slope, limit=float(limit))

    def _ratios(
        self, z: FloatArray, codes: IntArray, own: BoolArray
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """How many times farther each number is from the mean of the others of its level than they.

        With these means and their rows, (n,) each; NaN where there are too few.
        """
        known = (codes < len(self.counts)) & ~np.isnan(z)
        at, own = np.where(known, codes, 0), self._in_sums(z, codes, own)
        left_out = np.where(own & known, z, 0.0)
        n_rows = np.where(known, self.counts[at] - own, 0)
        n = np.maximum(n_rows, 1)
        mean = (self.sums[at] - left_out) / n
        sums = np.maximum(self.squares[at] - left_out**2 - n * mean**2, 0.0)
        spread = np.sqrt((sums + SPREAD_BY * self.spread**2) / (n - 1 + SPREAD_BY))
        ratio = np.abs(z - mean) / (spread * np.sqrt(1.0 + 1.0 / n))
        return np.where(n_rows >= LEAST_OTHERS, ratio, np.nan), mean, n_rows

    def _in_sums(self, z: FloatArray, codes: IntArray, own: BoolArray) -> BoolArray:
        """Which rows are in the sums of their levels, (n,): those learned from but the outliers."""
        known = codes < len(self.outliers)
        is_outlier: BoolArray = known & (z == self.outliers[np.where(known, codes, 0)])
        return own & ~is_outlier

    def surprise(self, table: Table, cells: Cells, own: BoolArray) -> FloatArray:
        """-log of the share of numbers as far from what is expected, of each row.

        Rows that it was learned from (`own`, (n,)) are left out, each for itself.
        """
        z = _scaled(table, self.spec, self.middle, self.width)
        own = self._in_sums(z, cells.codes, own)
        means = _Means(self.sums, self.counts, self.mean, self.shrunk_by)
        distance = means.distances(z, cells.codes, own)
        seen = ~np.isnan(distance)
        surprise = np.zeros(len(distance))
        surprise[seen] = self.tail(distance[seen])
        return surprise


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
        values = table.column(spec.name).read(spec.format).values
        seen = values[~np.isnan(values)]
        middle = float(np.median(seen)) if len(seen) else 0.0
        width = float(np.median(np.abs(seen - middle))) if len(seen) else 0.0
        if not SMALLEST < width:
            continue
        z = _scaled(table, spec, middle, width)
        mean = float(np.nanmean(z))
        best, found = NEARER * float(np.nanmedian(np.abs(z))), None
        for place, (column, of) in enumerate(zip(columns, cells, strict=True)):
            if column.name == spec.name:
                continue
            near, least_rows = HOPELESS * best, IN_MOST * len(z)
            if not may_lie_near(z, of.codes, column.missing, mean, SHRUNK_BY[0], near, least_rows):
                continue
            means = _Means.of(z, of.codes, own, column.missing, mean)
            for shrunk_by in SHRUNK_BY:
                means = means._replace(shrunk_by=shrunk_by)
                distance = means.distances(z, of.codes, own)
                half = float(np.nanmedian(distance))
                if half < best and not _is_measure(column, of.codes, z, means, half):
                    best, found = half, (place, means, distance)
                elif half > HOPELESS * best:
                    break
        if found is not None:
            place, means, distance = found
            codes, n_levels = cells[place].codes, len(means.counts)
            far = _outliers(z, codes, distance, means)
            outliers, kept = np.full(n_levels, NO_OUTLIER), own.copy()
            outliers[codes[far]], kept[far] = z[far], False
            shrunk_by = means.shrunk_by
            means = _Means.of(z, codes, kept, n_levels, mean)._replace(shrunk_by=shrunk_by)
            distance = means.distances(z, codes, kept)
            tail = UpperTail.fit(distance[~np.isnan(distance)])
            squares = _Means.of(z**2, codes, kept, n_levels, mean).sums
            yield UsualNumber(
                spec, place, middle, width, mean, shrunk_by, means.sums, means.counts, tail,
                squares, outliers, spread=0.0, zero=0.0, slope=0.0, limit=0.0,
            ).with_limit(z, codes)  # fmt: skip


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
    of_merged = of_merged._replace(shrunk_by=means.shrunk_by)
    near = np.nanmedian(of_merged.distances(z, merged, own))
    return bool(near <= AS_NEAR * half)


def _outliers(z: FloatArray, codes: IntArray, distance: FloatArray, means: _Means) -> IntArray:
    """Find the row of each level that hardly any would lie as far off as by chance.

    Not where another row of the level is farther off without it: then there are two such.
    """
    seen = np.flatnonzero(~np.isnan(distance))
    zero, slope = exponential_tail(distance[seen], FAR_SHARES)
    far = zero + np.log(len(seen) / FALSE_DISCOVERIES) / slope  # hardly any would be by chance
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
    values = table.column(spec.name).read(spec.format).values
    return np.arcsinh((values - middle) / width)
