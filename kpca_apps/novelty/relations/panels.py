"""What a number usually is where a level recurs: a country's income, a machine's temperature.

Of n rows of a level, without the row itself, a number is expected at their mean, shrunk towards
that of the column by a few rows, as a level that recurs seldom says little. Numbers are taken by
the inverse hyperbolic sine of their distance from the median, in units of the distance that half of
them have: neither sizes of several powers of ten nor one absurd value move a mean far. How far a
number is from what is expected becomes the share of those that are as far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.detector.surprise.tails import UpperTail
from kpca_apps.novelty.relations.counting import may_lie_near
from kpca_apps.novelty.relations.counts import Cells, LevelColumn
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table

# Rows of the column that are added to those of a level: the best is taken. Most levels say nothing
# of a number, which the first of these shows: so much farther off than what is sought.
SHRUNK_BY, HOPELESS = (1.0, 0.25, 4.0), 1.5
# A level says something of a number where half of them lie so much nearer to what is expected than
# to the median, in most rows of the table.
NEARER, IN_MOST = 0.5, 0.5
SMALLEST = 1e-100  # numbers are at most 1e100: ratios stay in range
FINITE = Meta(ge=-1e9, le=1e9)


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

    def surprise(self, table: Table, cells: Cells, own: BoolArray) -> FloatArray:
        """-log of the share of numbers as far from what is expected, of each row.

        Rows that it was learned from (`own`, (n,)) are left out, each for itself.
        """
        z = _scaled(table, self.spec, self.middle, self.width)
        distance = _distances(
            z, cells.codes, own, self.sums, self.counts, self.mean, self.shrunk_by
        )
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
            known = (of.codes < column.missing) & ~np.isnan(z)
            counts = np.bincount(of.codes[known], minlength=column.missing)
            sums = np.bincount(of.codes[known], z[known], column.missing).astype(np.float64)
            for shrunk_by in SHRUNK_BY:
                distance = _distances(z, of.codes, own, sums, counts, mean, shrunk_by)
                half = float(np.nanmedian(distance))
                if half < best:
                    best, found = half, (place, shrunk_by, sums, counts, distance)
                elif half > HOPELESS * best:
                    break
        if found is not None:
            place, shrunk_by, sums, counts, distance = found
            tail = UpperTail.fit(distance[~np.isnan(distance)])
            yield UsualNumber(spec, place, middle, width, mean, shrunk_by, sums, counts, tail)


def _scaled(table: Table, spec: ColumnSpec, middle: float, width: float) -> FloatArray:
    """Numbers of a column about their median, (n,); NaN where missing."""
    values = table.column(spec.name).read(spec.format).values
    scaled: FloatArray = np.arcsinh((values - middle) / width)
    return scaled


def _distances(
    z: FloatArray,
    codes: IntArray,
    own: BoolArray,
    sums: FloatArray,
    counts: IntArray,
    mean: float,
    shrunk_by: float,
) -> FloatArray:
    """Distance of each number from what is expected, (n,); NaN where no other row has its level."""
    known = (codes < len(counts)) & ~np.isnan(z)
    at = np.where(known, codes, 0)
    left_out = np.where(own & known, z, 0.0)
    n_rows = np.where(known, counts[at] - own, 0)
    expected = (sums[at] - left_out + shrunk_by * mean) / (n_rows + shrunk_by)
    return np.where(n_rows > 0, np.abs(z - expected), np.nan)
