"""One score of a row from what kernel PCA and its cells say: how improbable it is, all told.

Kernel PCA of an additive kernel predicts each column from all others (`additive`); how far off a
cell is becomes the share of cells that are as far off. The cells of a row are summed up by three
numbers: their mean surprise, the oddest cell, and their scatter about what was predicted.

Three scores become p-values among the rows learned from: the reconstruction error of kernel PCA
(k), the mean surprise of the cells (g) and their scatter (l). Their weighted harmonic mean (Wilson
2019) is small where any of them is, and needs no independence. A row with one absurd cell is odd
however ordinary its others are: its oddest cell counts once it is rarer than that of one row in
150, and then by a power. The score is

    s = log(h + (1/(150 p_c))^c) + .01 log h    with h = 1/p_k + a/p_g + b/p_l

with p_c by an exponential tail, so that s grows without bound. The hundredth keeps rows apart that
have one absurd cell in common.

References
----------
D. J. Wilson, The harmonic mean p-value for combining dependent tests, PNAS 116, 2019, equation 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.engine.subspace import SQUARABLE
from kpca_apps.novelty.detector.surprise.additive import (
    AdditiveFeatures,
    ColumnResiduals,
    FeatureRows,
)
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE, eight_digits

__all__ = ["LARGEST", "CombinedScore", "usual_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Shares of the values nearer to the median on one side; beyond the last, a Pareto tail through it
# and the value that three in a hundred exceed.
SHARES = np.linspace(0.0, 0.9, 10)
HEIGHTS = -np.log1p(-np.concatenate([SHARES[:0:-1], SHARES]))
FAR = 0.97
# Added to distances (in standard deviations of a column) before ratios are taken of them.
FLOOR = 0.05
# Pareto exponent of columns that end sharply: twice as far, 2^16 times as rare.
LARGEST_EXPONENT = 16.0
# Values a curve is held by: each of the most extreme, and others evenly.
EXTREME_KNOTS, KNOTS = 64, 512
# The quantiles an exponential tail goes through, and how far it must lie above what was counted to
# count: half a logarithm, so that ordinary tails stay as counted.
UPPER, ALLOWED = (0.75, 0.95), 0.5
# Two quantiles are not taken for nearer than this: where all rows score alike, rounding would say
# much.
LEAST_REACH = 1e-3
# Shares are counted among fewer rows than e^50.
LARGEST_SURPRISE = 50.0
STEEPEST = LARGEST_SURPRISE / LEAST_REACH

# Shares of the rows, those that kernel PCA finds densest: for the regressions, and for what is
# taken as the usual scatter.
LEARNED, USUAL = 0.95, 0.75
# Part of a prediction that is the plain share of a level: no level is impossible.
PRIOR = 0.05
SMALLEST_PROBABILITY = 1e-9
# Least scatter of a column, in standard deviations.
LEAST_SCATTER = 0.02

# a, b and c. Among rows that may be anything an absurd cell is more often what is sought than
# beside a clean reference, which says how far its columns reach; there, too, a row beyond all of
# the reference is told from another by the error and the oddest cell alone.
CONTAMINATED, CLEAN = (0.2, 0.2, 3.0), (0.05, 0.05, 0.3)
LARGEST_WEIGHT = 100.0
LARGEST = 1e7
"""A score that none reaches: cells' surprises grow as logarithms, and tails have a steepest."""

# Of what is left of the rest of a row beside one absurd cell: enough to order rows by.
APART = 0.01
# How much rarer than its oddest cell itself, in logarithms, a row may count as among rows that all
# lack odd cells, such as those on a circle.
MORE = 2.0
# -log of one row in 150, and the quantiles of the rows' oddest cells that the tail goes through.
RARE, OF_CELLS = 5.0, (0.75, 0.95)


@dataclass(frozen=True, eq=False)
class TwoTails:
    """Minus logarithms of tail shares of the values of columns, each side by itself."""

    # Quantiles, increasing: the median in the middle, and each tenth of both sides.
    knots: Annotated[FloatArray, "v 19", SQUARABLE]
    # Of the Pareto tails below and above.
    exponents: Annotated[FloatArray, "v 2", Meta(ge=0, le=LARGEST_EXPONENT)]

    def validate(self) -> None:
        """Refuse quantiles out of order."""
        if (np.diff(self.knots) < 0).any():
            raise ValueError("quantiles out of order")

    @classmethod
    def fit(cls, values: FloatArray, seen: BoolArray) -> TwoTails:
        """Learn from those cells of columns (v, n) that are `seen`; a column may have none."""
        n_seen = seen.sum(axis=1, keepdims=True)
        ordered = np.sort(np.where(seen, values, np.where(n_seen > 0, np.inf, 0.0)), axis=1)
        sides = np.concatenate([[-FAR], -SHARES[:0:-1], SHARES, [FAR]])
        # Linear interpolation between order statistics, as numpy's quantile does.
        last_place = np.maximum(n_seen - 1, 0)
        place = (0.5 + 0.5 * sides) * last_place
        below = np.floor(place).astype(np.int64)
        lower = np.take_along_axis(ordered, below, axis=1)
        upper = np.take_along_axis(ordered, np.minimum(below + 1, last_place), axis=1)
        quantiles = lower + (place - below) * (upper - lower)
        knots, ends = quantiles[:, 1:-1], quantiles[:, [0, -1]]
        centre, outermost = knots[:, [len(SHARES) - 1]], knots[:, [0, -1]]
        step = np.log((np.abs(ends - centre) + FLOOR) / (np.abs(outermost - centre) + FLOOR))
        rarer = np.log((1.0 - SHARES[-1]) / (1.0 - FAR))
        exponents = np.minimum(rarer / np.maximum(step, 1e-9), LARGEST_EXPONENT)
        return cls(knots.copy(), exponents * (n_seen > 0))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Minus the logarithm of the share of a side that lies at least as far out, (v, n)."""
        middle, n = len(SHARES) - 1, values.shape[1]
        # Each side is read towards the median: of a value that is several knots, the nearest.
        passed, beyond = np.zeros(values.shape, dtype=np.int8), np.empty(values.shape, dtype=bool)
        for j in range(middle + 1):
            np.greater_equal(values, self.knots[:, j, None], out=beyond)
            passed += beyond.view(np.int8)
        for j in range(middle, 2 * middle + 1):
            np.greater(values, self.knots[:, j, None], out=beyond)
            passed += beyond.view(np.int8)
        last = 2 * middle + 2
        outside = np.flatnonzero((passed == 0) | (passed == last))
        side, column = (passed.take(outside) > 0).astype(np.int64), outside // n
        place = passed + np.arange(len(values))[:, None] * (last + 1)
        anchor, slope, height, reach = self._lines
        surprise = values - anchor.take(place)
        surprise *= slope.take(place)
        surprise += height.take(place)
        distance = np.abs(values.take(outside) - self.knots[:, [0, -1]][column, side])
        steps = np.log1p(distance / (reach + FLOOR)[column, side])
        surprise.put(outside, HEIGHTS[0] + self.exponents[column, side] * steps)
        return surprise

    @cached_property
    def _lines(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Where lines between knots are anchored, their slopes and heights there, (v, 21) each.

        From below the first knot to beyond the last, with the median itself in the middle. Last the
        distance from the median to the outermost knots below and above, (v, 2).
        """
        middle = len(SHARES) - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = np.diff(HEIGHTS) / np.diff(self.knots)
        none = np.zeros((len(self.knots), 1))
        slope = np.hstack([none, slopes[:, :middle], none, slopes[:, middle:], none])
        ends = [0, *range(middle), middle, *range(middle + 1, 2 * middle + 1), 2 * middle]
        heights = np.broadcast_to(HEIGHTS[ends], slope.shape)
        reach = np.abs(self.knots[:, [0, -1]] - self.knots[:, [middle]])
        return self.knots[:, ends], slope, np.ascontiguousarray(heights), reach


@dataclass(frozen=True, eq=False)
class UpperTail:
    """Minus the logarithm of the share of rows that score at least so high.

    As counted, and beyond the last as steep as an exponential tail; on that tail where it lies
    higher: a score far beyond all others is rarer than one among n.
    """

    # Scores, increasing, and the logarithms counted at them; between, linear.
    knots: Annotated[FloatArray, "k", SQUARABLE]
    surprise: Annotated[FloatArray, "k", Meta(ge=0, le=LARGEST_SURPRISE)]
    # The exponential tail, slope (score - zero).
    zero: Annotated[float, SQUARABLE]
    slope: Annotated[float, Meta(ge=0, le=STEEPEST)]

    def validate(self) -> None:
        """Refuse counts out of order, and none at all."""
        if not self.knots.size or (np.diff(self.knots) <= 0).any():
            raise ValueError("knots out of order")
        if (np.diff(self.surprise) < 0).any():
            raise ValueError("surprises out of order")

    @classmethod
    def fit(cls, scores: FloatArray, *, ends: bool = False) -> UpperTail:
        """Learn from scores (n,); where the tail `ends`, nothing is rarer than the last of them."""
        values, first = np.unique(np.sort(scores), return_index=True)
        surprise = -np.log1p(-first / len(scores))
        if len(values) > KNOTS:
            evenly = np.linspace(0, len(values) - EXTREME_KNOTS, KNOTS - EXTREME_KNOTS, dtype=int)
            kept = np.r_[evenly[:-1], len(values) - EXTREME_KNOTS : len(values)]
            values, surprise = values[kept], surprise[kept]
        zero, slope = (0.0, 0.0) if ends else exponential_tail(scores, UPPER)
        return cls(values, surprise, zero, slope)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Surprise of scores (r,)."""
        counted: FloatArray = np.interp(scores, self.knots, self.surprise)
        if self.slope == 0.0:
            return counted
        counted += self.slope * np.maximum(scores - self.knots[-1], 0.0)
        surprise: FloatArray = np.maximum(counted, self.slope * (scores - self.zero) - ALLOWED)
        return surprise


def exponential_tail(scores: FloatArray, shares: tuple[float, float]) -> tuple[float, float]:
    """Where the tail through the quantiles at two shares of scores (n,) begins, and its slope.

    Minus the logarithm of the share of rows beyond a score is slope (score - zero).
    """
    low, high = np.quantile(scores, shares)
    first, last = -np.log1p(-np.array(shares))
    slope = (last - first) / max(high - low, LEAST_REACH)
    return float(low - first / slope), float(slope)


@dataclass(frozen=True, eq=False)
class RowSurprise:
    """What the cells of n rows say."""

    mean: FloatArray  # mean over columns of the surprise of their most surprising cell
    oddest: FloatArray  # log of the mean over cells of one over their share: led by the oddest cell
    scatter: FloatArray  # mean over numbers of log(1 + (residual / usual residual)^2)


@dataclass(frozen=True, eq=False)
class CellModel:
    """Surprises of cells, by themselves and given the other cells of the row."""

    map: AdditiveFeatures
    residuals: ColumnResiduals
    given_others: TwoTails  # of the numbers' residuals
    alone: TwoTails  # of the numbers
    # Of each indicator its value where set, and the share of rows in which it is.
    height: Annotated[FloatArray, "a 1", Meta(gt=0, le=LARGEST_TO_SQUARE)]
    share: Annotated[FloatArray, "a 1", Meta(gt=0, le=2)]
    # How improbable the states of each column of categories, and the frequent values of each
    # number, are.
    states: tuple[UpperTail, ...]
    # Median, and median distance to it, of each number's residuals in the usual rows.
    usual: Annotated[FloatArray, "2 v 1", "NaN too"]

    def validate(self) -> None:
        """Refuse parts that do not belong together."""
        v, a, state = len(self.map.number), len(self.map.indicator), self.map.state
        sound = (
            len(self.given_others.knots) == len(self.alone.knots) == self.usual.shape[1] == v
            and len(self.height) == len(self.share) == a
            and len(self.states) == (state.max() + 1 if a else 0)
            and np.array_equal(self.residuals.group, self.map.group)
            and np.isfinite(self.usual[0]).all()
            # A number of which no row is usual has an infinite distance.
            and (self.usual[1] > 0).all()
        )
        if not sound:
            raise ValueError("its parts do not fit together")

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        scores: FloatArray,
        groups: Sequence[IntArray],
        as_is: IntArray,
        *,
        contaminated: bool,
    ) -> tuple[CellModel, RowSurprise]:
        """Learn from rows (n, d) and their kernel PCA scores (n,); also what the rows' cells say.

        The rows' own surprises come from regressions that have not seen them.
        """
        learned = usual_rows(scores, contaminated=contaminated)
        usual = usual_rows(scores, contaminated=contaminated, share=USUAL)
        features = AdditiveFeatures.fit(X, groups, as_is)
        rows = features(X)
        residuals = ColumnResiduals.fit(rows.features[learned], features.group)
        flags = rows.features[:, features.indicator]
        height = flags.max(axis=0, initial=0.0)[:, None]
        height[height <= 0] = 1.0
        share = ((flags[learned] > 0).sum(axis=0) + 0.5) / (np.count_nonzero(learned) + 1)
        share = share[:, None]
        left = residuals(rows.features, learned)
        errors, improbability = _cells_off(features, height, share, rows, left)
        model = cls(
            map=features,
            residuals=residuals,
            given_others=TwoTails.fit(errors, rows.free),
            alone=TwoTails.fit(rows.value, rows.free),
            height=height,
            share=share,
            states=tuple(UpperTail.fit(state, ends=True) for state in improbability),
            usual=_medians(errors, rows.free & usual),
        )
        return model, model._summary(rows, errors, improbability)

    def __call__(self, X: FloatArray) -> RowSurprise:
        """Say of new rows (r, d) how surprising they are; each depends on itself alone."""
        rows = self.map(X)
        left = self.residuals(rows.features)
        return self._summary(rows, *_cells_off(self.map, self.height, self.share, rows, left))

    def _summary(
        self, rows: FeatureRows, errors: FloatArray, improbability: FloatArray
    ) -> RowSurprise:
        """Sum up n rows by the errors of their numbers (v, n) and how improbable their states are.

        Numpy adds a single column in another order than columns side by side, but not lines: sums
        over the cells of a row are taken of lines, to the same bits in any batch.
        """
        n, free = len(rows.features), rows.free
        states = [tail(of_state) for tail, of_state in zip(self.states, improbability, strict=True)]
        # Of each number given the others, of each number alone, of each state.
        cells = np.concatenate(
            [
                self.given_others(errors) * free,
                self.alone(rows.value) * free,
                np.reshape(states, (len(states), n)),
            ]
        )
        if not len(cells):
            return RowSurprise(np.zeros(n), np.zeros(n), np.zeros(n))
        first, *others = self._by_group
        largest = cells[first[1]]
        for groups, members in others:
            largest[groups] = np.maximum(largest[groups], cells[members])
        top = cells.max(axis=0)
        odds = np.exp(cells - top)
        middle, distance = self.usual
        scatter = np.log1p(((errors - middle) / distance) ** 2) * free
        return RowSurprise(
            mean=largest.T.copy().sum(axis=1) / len(largest),
            oddest=top + np.log(odds.T.copy().sum(axis=1) / len(cells)),
            scatter=scatter.T.copy().sum(axis=1) / max(len(scatter), 1),
        )

    @cached_property
    def _by_group(self) -> list[tuple[IntArray, IntArray]]:
        """The first cell of each group, the second of those that have two, and so on."""
        numbers = self.map.group[self.map.polynomial]
        starts = np.flatnonzero(np.diff(self.map.state, prepend=-1))
        groups = np.r_[numbers, numbers, self.map.group[self.map.indicator[starts]]]
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        sizes = np.diff(np.r_[starts, len(order)])
        deep = [np.flatnonzero(sizes > place) for place in range(sizes.max())]
        return [(having, order[starts[having] + place]) for place, having in enumerate(deep)]


def usual_rows(scores: FloatArray, *, contaminated: bool, share: float = LEARNED) -> BoolArray:
    """Mark the rows (n,) of lowest score, so large a share of all; of clean rows, all."""
    marked: BoolArray = scores <= np.quantile(scores, share if contaminated else 1.0)
    return marked


def _cells_off(
    features: AdditiveFeatures,
    height: FloatArray,
    share: FloatArray,
    rows: FeatureRows,
    left: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """How far numbers (v, n) are from what is predicted, and how improbable states (states, n) are.

    By the residuals (n, p) `left` of rows; the latter as minus the logarithm of the predicted
    probability of the state that a row is in.
    """
    at, indicator = features.polynomial, features.indicator
    # With what clipping took off the numbers.
    errors = np.ascontiguousarray((left[:, at] - rows.features[:, at]).T + rows.value)
    if not len(indicator):
        return errors, np.zeros((0, len(left)))
    flags = np.ascontiguousarray(rows.features[:, indicator].T)
    predicted = np.clip((flags - left[:, indicator].T) / height, 0.0, 1.0)
    predicted = (predicted + PRIOR * share) / (1.0 + PRIOR)
    starts = np.flatnonzero(np.diff(features.state, prepend=-1))
    of_set = np.maximum.reduceat(np.where(flags > 0, predicted, 0.0), starts)
    any_set = np.logical_or.reduceat(flags > 0, starts)
    # A number that is none of several frequent values is judged on its scale, if it has one.
    several = np.diff(np.r_[starts, len(indicator)]) > 1
    elsewhere = several & np.isin(features.source[starts], features.number)
    of_none = np.where(elsewhere[:, None], 1.0, 1.0 - np.add.reduceat(predicted, starts))
    probability = np.where(any_set, of_set, of_none)
    return errors, -np.log(np.maximum(probability, SMALLEST_PROBABILITY))


def _medians(errors: FloatArray, seen: BoolArray) -> FloatArray:
    """Median and median distance to it of the cells that are `seen`, (2, v, 1)."""
    out = np.zeros((2, len(errors), 1))
    out[1] = np.inf
    for j in np.flatnonzero(seen.any(axis=1)):
        column = errors[j, seen[j]]
        middle = np.median(column)
        out[:, j, 0] = middle, np.median(np.abs(column - middle)) + LEAST_SCATTER
    return out


@dataclass(frozen=True, eq=False)
class CombinedScore:
    """The score of rows, learned from rows."""

    cells: CellModel
    error: UpperTail  # of the kernel PCA errors of rows
    mean: UpperTail  # of the mean surprises
    scatter: UpperTail
    # Of their oddest cells: the exponential tail slope (oddest - zero).
    oddest_zero: Annotated[float, SQUARABLE]
    oddest_slope: Annotated[float, Meta(ge=0, le=STEEPEST)]
    weights: Annotated[FloatArray, "3", Meta(gt=0, le=LARGEST_WEIGHT)]  # a, b and c

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        errors: FloatArray,
        groups: Sequence[IntArray],
        as_is: IntArray,
        *,
        contaminated: bool,
    ) -> tuple[CombinedScore, FloatArray]:
        """Learn from rows (n, d) and their errors, and score these, each as if left out."""
        cells, rows = CellModel.fit(X, errors, groups, as_is, contaminated=contaminated)
        zero, slope = exponential_tail(rows.oddest, OF_CELLS)
        model = cls(
            cells=cells,
            error=UpperTail.fit(eight_digits(errors)),
            mean=UpperTail.fit(rows.mean, ends=not contaminated),
            scatter=UpperTail.fit(rows.scatter, ends=not contaminated),
            oddest_zero=zero,
            oddest_slope=slope,
            weights=np.array(CONTAMINATED if contaminated else CLEAN),
        )
        return model, model(X, errors, rows)

    def __call__(
        self, X: FloatArray, errors: FloatArray, rows: RowSurprise | None = None
    ) -> FloatArray:
        """Scores of rows (r, d) with their kernel PCA errors (r,), and what their cells say.

        Of new rows, which are all but those of the fit, the cells are asked here.
        """
        rows = self.cells(X) if rows is None else rows
        a, b, c = self.weights
        surprises = [
            self.error(eight_digits(errors)),
            self.mean(rows.mean) + np.log(a),
            self.scatter(rows.scatter) + np.log(b),
        ]
        whole = np.logaddexp.reduce(surprises, axis=0)
        oddest = self.oddest_slope * (rows.oddest - self.oddest_zero)
        of_oddest = np.minimum(oddest, rows.oddest + MORE)
        scores: FloatArray = np.logaddexp(whole, c * (of_oddest - RARE)) + APART * whole
        return scores
