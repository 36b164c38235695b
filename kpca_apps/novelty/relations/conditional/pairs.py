"""A number predicted from another: a weight from a height, a part from its whole.

Of two columns that rise or fall together, one is predicted from the other by a line plus the median
residual in intervals (in logarithms if both are positive). A number is judged by its distance from
the prediction over the 0.9 quantile of distances in its interval, so one wrong row moves neither.
Beyond the outermost intervals the line is extrapolated, and larger distances are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.names import quoted
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.magnitudes import centred_ranks
from kpca_apps.novelty.relations.checking import half_a_day
from kpca_apps.novelty.relations.conditional.counts import LevelCells
from kpca_apps.novelty.relations.conditional.expected import Ratios, values_of
from kpca_apps.system.arrays import BoolArray, FloatArray
from kpca_apps.tables.table import Table

# Minimum rank correlation; number of rows to compute it from; maximum number of predictors.
TOGETHER, SAMPLE, MOST_GIVEN = 0.7, 2_000, 2
NEARER = 0.5  # maximum ratio of two median distances: from predictions and from the column's median
MOST_NUMBERS = 200  # with more columns, pairs would fill half the model file, so none are sought
INTERVALS, LEAST_ROWS = 40, 25  # maximum number of intervals, minimum number of rows in each
# The usual distance of an interval is the quantile USUAL of its distances. It is raised to at least
# LEAST_USUAL times the usual distance of all rows, and LEAST_OF_SPREAD times the column's spread.
LEAST_USUAL, LEAST_OF_SPREAD, USUAL = 0.5, 0.02, 0.9
FINITE = Meta(ge=-1e300, le=1e300)


@dataclass(frozen=True, eq=False)
class Paired:
    """How the numbers of a column are predicted from those of another."""

    spec: ColumnSpec  # column of the predicted number
    other: ColumnSpec  # column that predicts it
    by_logs: bool  # whether logarithms of both columns are compared
    slope: Annotated[float, FINITE]
    at: Annotated[FloatArray, "b", FINITE]  # medians of `other` in its intervals, increasing
    left: Annotated[FloatArray, "b", FINITE]  # median residuals in the intervals, in the same order
    usual: Annotated[FloatArray, "b", Meta(gt=0, le=1e300)]  # .9 quantile of errors, by interval
    bend: Annotated[float, Meta(ge=0, le=1e300)]  # range of `left` divided by range of `at`
    n_rows: Annotated[int, Meta(ge=1)]  # number of rows in each interval

    def validate(self) -> None:
        """Refuse intervals out of order."""
        if not len(self.at) or (np.diff(self.at) <= 0).any():
            raise ValueError("intervals out of order")

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the predicted column and of the predicting column."""
        return self.spec.name, self.other.name

    def ratios(self, table: Table, cells: Sequence[LevelCells], own: BoolArray) -> Ratios:
        """Return distances of numbers from predictions, divided by the usual distances."""
        y, x = (values_of(table, spec) for spec in (self.spec, self.other))
        v, u = (_scale(of, self.by_logs) for of in (y, x))
        expected = self.slope * u + np.interp(u, self.at, self.left)
        beyond = np.abs(u - np.clip(u, self.at[0], self.at[-1]))
        ratio = np.abs(v - expected) / (np.interp(u, self.at, self.usual) + self.bend * beyond)
        # Coefficients read from a model file may overflow.
        expected = np.clip(expected, *((-690.0, 690.0) if self.by_logs else (-1e300, 1e300)))
        expected = np.exp(expected) if self.by_logs else expected
        return Ratios(ratio, expected, np.full(len(y), self.n_rows))

    def why(
        self, columns: Sequence[str], cells: Sequence[LevelCells], row: int, of: Ratios
    ) -> tuple[str, str]:
        """Return the text before the expected number, and the text after the number."""
        return (
            f"Rows with a similar {quoted(self.other.name)} lie ",
            f", this one {of.ratio[row]:,.0f} times as far from that as nine of ten are.",
        )


def find_pairs(table: Table, numbers: Sequence[ColumnSpec]) -> Iterator[Paired]:
    """Find the columns of numbers that others predict."""
    # Numbers that rise or fall with the row number all correlate with each other.
    numbers = [spec for spec in numbers if spec.format is not None and not spec.runs_on]
    n = table.n_rows
    if not 2 <= len(numbers) <= MOST_NUMBERS or n < 2 * LEAST_ROWS:
        return
    values = np.stack([values_of(table, spec) for spec in numbers])
    together = np.abs(_rank_correlations(values[:, :: max(n // SAMPLE, 1)]))
    # If midnight lies between two times of day, the later time is the smaller number.
    is_time = [half_a_day(spec.format, of) > 0 for spec, of in zip(numbers, values, strict=True)]
    together[np.outer(is_time, is_time)] = 0.0
    for j, spec in enumerate(numbers):
        order = np.argsort(-together[j], kind="stable")[:MOST_GIVEN].tolist()
        for i in (i for i in order if together[j, i] >= TOGETHER):
            found = _fitted(spec, numbers[i], values[j], values[i])
            if found is not None:
                yield found


def _fitted(spec: ColumnSpec, other: ColumnSpec, y: FloatArray, x: FloatArray) -> Paired | None:
    """Fit a line and a correction; None if y is mostly predicted exactly, or too badly."""
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
    # Theil-Sen estimator on the medians of the intervals.
    slope = float(np.median((level[second] - level[first])[run > 0] / run[run > 0]))
    left = level - slope * at
    # Merge intervals with equal medians.
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
    return np.log(np.where(values > 0, values, np.nan)) if by_logs else values


def _rank_correlations(values: FloatArray) -> FloatArray:
    """Return Spearman's correlations (c, c) of columns (c, m); 0 if few rows are complete."""
    known = ~np.isnan(values)
    scores = np.zeros(values.shape)
    for line, seen, column in zip(scores, known, values, strict=True):
        if seen.any():
            line[seen] = centred_ranks(column[seen])
    squares = scores**2 @ known.T
    size = np.sqrt(squares * squares.T)
    together = np.divide(scores @ scores.T, size, out=np.zeros(size.shape), where=size > 0)
    together[known.astype(np.float64) @ known.T < 2 * LEAST_ROWS] = 0.0
    np.fill_diagonal(together, 0.0)
    return together
