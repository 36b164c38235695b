"""A number given another that it goes with: a height and a weight, a part and its whole.

Of columns that rise or fall together, one is predicted from the other, by logarithms where both are
above 0: a line, and what the medians of some intervals of the other leave beside it. A number is
judged by its distance from that, over the distance within which nine of ten of its interval lie.
Medians and nine of ten: a wrong row says nothing of the others, and gaps in other columns do not
matter. Beyond the medians of the outermost intervals the line goes on, and a number may be as far
off as the line bends elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl
from msgspec import Meta

from kpca_apps.names import quoted
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.relations.checking import half_a_day
from kpca_apps.novelty.relations.conditional.counts import Cells
from kpca_apps.novelty.relations.conditional.expected import Ratios, values_of
from kpca_apps.system.arrays import BoolArray, FloatArray
from kpca_apps.tables.table import Table

# Least correlation of ranks, in a sample of the rows, and columns that predict another.
TOGETHER, SAMPLE, MOST_GIVEN = 0.7, 2_000, 2
# Half of the numbers lie so much nearer to what is expected than to the median.
NEARER = 0.5
# Of more columns all others say what one should be. Pairs of 1,500, of 1,000 rows each, took half
# of a model that was twice the size of its table.
MOST_NUMBERS = 200
INTERVALS, LEAST_ROWS = 40, 25  # intervals, and rows of each
# Least distance that is usual in an interval: of that of all rows, and of the median distance to
# the median, so that coarser rounding than most is nothing odd; and the share that is nearer.
LEAST_USUAL, LEAST_OF_SPREAD, USUAL = 0.5, 0.02, 0.9
FINITE = Meta(ge=-1e300, le=1e300)


@dataclass(frozen=True, eq=False)
class Paired:
    """How the numbers of a column follow from those of another."""

    spec: ColumnSpec  # of the number
    other: ColumnSpec
    by_logs: bool  # of both
    slope: Annotated[float, FINITE]
    # Median of the other in some intervals of it, increasing, with the median of what the slope
    # leaves there, and the distance from that within which nine of ten lie.
    at: Annotated[FloatArray, "b", FINITE]
    left: Annotated[FloatArray, "b", FINITE]
    usual: Annotated[FloatArray, "b", Meta(gt=0, le=1e300)]
    bend: Annotated[float, Meta(ge=0, le=1e300)]  # of the line, in all, over how long it is
    n_rows: Annotated[int, Meta(ge=1)]  # of each interval

    def validate(self) -> None:
        """Refuse intervals out of order."""
        if not len(self.at) or (np.diff(self.at) <= 0).any():
            raise ValueError("intervals out of order")

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the column that is judged and those it is judged by."""
        return self.spec.name, self.other.name

    def ratios(self, table: Table, cells: Sequence[Cells], own: BoolArray) -> Ratios:
        """How many times farther each number is from what the other says than numbers usually are.

        One row moves no median: `own` (n,) rows are judged as new ones.
        """
        y, x = (values_of(table, spec) for spec in (self.spec, self.other))
        v, u = (_scale(of, self.by_logs) for of in (y, x))
        expected = self.slope * u + np.interp(u, self.at, self.left)
        beyond = np.abs(u - np.clip(u, self.at[0], self.at[-1]))
        ratio = np.abs(v - expected) / (np.interp(u, self.at, self.usual) + self.bend * beyond)
        # A model file may hold what leads beyond the range of floats.
        expected = np.clip(expected, *((-690.0, 690.0) if self.by_logs else (-1e300, 1e300)))
        expected = np.exp(expected) if self.by_logs else expected
        return Ratios(ratio, expected, np.full(len(y), self.n_rows))

    def why(
        self, columns: Sequence[str], cells: Sequence[Cells], row: int, of: Ratios
    ) -> tuple[str, str]:
        """Say why a number is odd, around what is expected."""
        return (
            f"Rows with a similar {quoted(self.other.name)} lie ",
            f", this one {of.ratio[row]:,.0f} times as far from that as nine of ten are.",
        )


def find_pairs(table: Table, numbers: Sequence[ColumnSpec]) -> Iterator[Paired]:
    """Find the columns of numbers that go with others, and how."""
    # What runs on with the rows goes with all that grows.
    numbers = [spec for spec in numbers if spec.format is not None and not spec.runs_on]
    n = table.frame.height
    if not 2 <= len(numbers) <= MOST_NUMBERS or n < 2 * LEAST_ROWS:
        return
    values = np.stack([values_of(table, spec) for spec in numbers])
    together = np.abs(_rank_correlations(values[:, :: max(n // SAMPLE, 1)]))
    # Of times of day the later one is less where midnight lies between.
    is_time = [half_a_day(spec.format, of) > 0 for spec, of in zip(numbers, values, strict=True)]
    together[np.outer(is_time, is_time)] = 0.0
    for j, spec in enumerate(numbers):
        order = np.argsort(-together[j], kind="stable")[:MOST_GIVEN].tolist()
        for i in (i for i in order if together[j, i] >= TOGETHER):
            found = _fitted(spec, numbers[i], values[j], values[i])
            if found is not None:
                yield found


def _fitted(spec: ColumnSpec, other: ColumnSpec, y: FloatArray, x: FloatArray) -> Paired | None:
    """Learn how one number follows from another; ``None`` where it does not, or mostly exactly."""
    known = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[known], y[known]
    few = 0.01 * len(x)
    by_logs = bool((x <= 0).sum() + (y <= 0).sum() <= few)
    if by_logs:
        above = (x > 0) & (y > 0)
        x, y = x[above], y[above]
    u, v = _scale(x, by_logs), _scale(y, by_logs)
    n_intervals = min(INTERVALS, len(u) // LEAST_ROWS)
    if n_intervals < 2:
        return None
    order = np.argsort(u, kind="stable")
    parts = np.array_split(order, n_intervals)
    at = np.array([np.median(u[part]) for part in parts])
    level = np.array([np.median(v[part]) for part in parts])
    first, second = np.triu_indices(n_intervals, 1)
    run = at[second] - at[first]
    if not (run > 0).any():
        return None
    # As Theil and Sen do, of intervals.
    slope = float(np.median((level[second] - level[first])[run > 0] / run[run > 0]))
    left = level - slope * at
    # Intervals of equal values are one.
    starts = np.flatnonzero(np.append(True, np.diff(at) > 0))
    at, left = at[starts], left[starts]
    off = np.abs(v - slope * u - np.interp(u, at, left))
    usual = np.array([np.quantile(off[part], USUAL) for part in parts])[starts]
    half, spread = float(np.median(off)), float(np.median(np.abs(v - np.median(v))))
    if not 0 < half < NEARER * spread:
        return None
    usual = np.maximum(usual, max(LEAST_USUAL * np.quantile(off, USUAL), LEAST_OF_SPREAD * spread))
    bend = float(np.ptp(left) / np.ptp(at)) if len(at) > 1 else abs(slope)
    return Paired(spec, other, by_logs, slope, at, left, usual, bend, len(parts[-1]))


def _scale(values: FloatArray, by_logs: bool) -> FloatArray:
    """Numbers as they are compared; NaN where they have no logarithm."""
    return np.log(np.where(values > 0, values, np.nan)) if by_logs else values


def _rank_correlations(values: FloatArray) -> FloatArray:
    """Correlations of the ranks of columns (c, m), each pair where both are known; 0 of few."""
    known = ~np.isnan(values)
    scores = np.zeros(values.shape)
    for line, seen, column in zip(scores, known, values, strict=True):
        if seen.any():
            ranks = pl.Series(column[seen]).rank().to_numpy()
            line[seen] = ranks - ranks.mean()
    squares = scores**2 @ known.T
    size = np.sqrt(squares * squares.T)
    together = np.divide(scores @ scores.T, size, out=np.zeros(size.shape), where=size > 0)
    together[known.astype(np.float64) @ known.T < 2 * LEAST_ROWS] = 0.0
    np.fill_diagonal(together, 0.0)
    return together
