"""How rare a value is among those seen, and beyond them: minus logarithms of tail shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.engine.subspace import SQUARABLE

__all__ = ["CountedTail", "ExponentialTail", "TwoTails", "UpperTail"]

FloatArray = NDArray[np.float64]
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


@dataclass(frozen=True, eq=False)
class TwoTails:
    """Distributions of columns, each side by itself.

    Attributes
    ----------
    knots : (v, 19) array
        Quantiles, increasing: the median in the middle, and each tenth of both sides.
    exponents : (v, 2) array
        Of the Pareto tails below and above.
    """

    knots: Annotated[FloatArray, "v 19", SQUARABLE]
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
        centre = knots[:, [len(SHARES) - 1]]
        step = np.log((np.abs(ends - centre) + FLOOR) / (_reach(knots) + FLOOR))
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
        anchor, slope, height = self._lines
        surprise = values - anchor.take(place)
        surprise *= slope.take(place)
        surprise += height.take(place)
        distance = np.abs(values.take(outside) - self.knots[:, [0, -1]][column, side])
        steps = np.log1p(distance / (_reach(self.knots) + FLOOR)[column, side])
        surprise.put(outside, HEIGHTS[0] + self.exponents[column, side] * steps)
        return surprise

    @cached_property
    def _lines(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Where lines between knots are anchored, their slopes and heights there, (v, 21) each.

        From below the first knot to beyond the last, with the median itself in the middle.
        """
        middle = len(SHARES) - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = np.diff(HEIGHTS) / np.diff(self.knots)
        none = np.zeros((len(self.knots), 1))
        slope = np.hstack([none, slopes[:, :middle], none, slopes[:, middle:], none])
        ends = [0, *range(middle), middle, *range(middle + 1, 2 * middle + 1), 2 * middle]
        heights = np.broadcast_to(HEIGHTS[ends], slope.shape)
        return self.knots[:, ends], slope, np.ascontiguousarray(heights)


def _reach(knots: FloatArray) -> FloatArray:
    """Distance from the median to the outermost knots below and above, (v, 2)."""
    distance: FloatArray = np.abs(knots[:, [0, -1]] - knots[:, [len(SHARES) - 1]])
    return distance


@dataclass(frozen=True, eq=False)
class ExponentialTail:
    """Minus the logarithm of an exponential tail through two quantiles of scores.

    Attributes
    ----------
    zero, slope : float
        It is slope (score - zero).
    """

    zero: Annotated[float, SQUARABLE]
    slope: Annotated[float, Meta(ge=0, le=LARGEST_SURPRISE / LEAST_REACH)]

    @classmethod
    def fit(cls, scores: FloatArray, shares: tuple[float, float]) -> ExponentialTail:
        """Put the tail through the quantiles at two shares of scores (n,)."""
        low, high = np.quantile(scores, shares)
        first, last = -np.log1p(-np.array(shares))
        slope = (last - first) / max(high - low, LEAST_REACH)
        return cls(float(low - first / slope), float(slope))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Surprise of scores (r,), below 0 where the tail has not begun."""
        surprise: FloatArray = self.slope * (scores - self.zero)
        return surprise


@dataclass(frozen=True, eq=False)
class CountedTail:
    """Minus the logarithm of the share of rows that score at least so high, as counted.

    Attributes
    ----------
    knots, surprise : (k,) array
        Scores, increasing, and the logarithms at them; between, linear.
    """

    knots: Annotated[FloatArray, "k", SQUARABLE]
    surprise: Annotated[FloatArray, "k", Meta(ge=0, le=LARGEST_SURPRISE)]

    def validate(self) -> None:
        """Refuse counts out of order, and none at all."""
        if not self.knots.size or (np.diff(self.knots) <= 0).any():
            raise ValueError("knots out of order")
        if (np.diff(self.surprise) < 0).any():
            raise ValueError("surprises out of order")

    @classmethod
    def fit(cls, scores: FloatArray) -> CountedTail:
        """Learn from scores (n,)."""
        values, first = np.unique(np.sort(scores), return_index=True)
        surprise = -np.log1p(-first / len(scores))
        if len(values) > KNOTS:
            evenly = np.linspace(0, len(values) - EXTREME_KNOTS, KNOTS - EXTREME_KNOTS, dtype=int)
            kept = np.r_[evenly[:-1], len(values) - EXTREME_KNOTS : len(values)]
            values, surprise = values[kept], surprise[kept]
        return cls(values, surprise)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Surprise of scores (r,)."""
        surprise: FloatArray = np.interp(scores, self.knots, self.surprise)
        return surprise


@dataclass(frozen=True, eq=False)
class UpperTail:
    """As counted, and beyond the last as steep as a tail; on that tail where it lies higher.

    A score far beyond all others is rarer than one among n.

    Attributes
    ----------
    counted : CountedTail
    beyond : ExponentialTail
    """

    counted: CountedTail
    beyond: ExponentialTail

    @classmethod
    def fit(cls, scores: FloatArray, *, ends: bool = False) -> UpperTail:
        """Learn from scores (n,); where the tail `ends`, nothing is rarer than the last of them."""
        beyond = ExponentialTail(0.0, 0.0) if ends else ExponentialTail.fit(scores, UPPER)
        return cls(CountedTail.fit(scores), beyond)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Surprise of scores (r,)."""
        farther = np.maximum(scores - self.counted.knots[-1], 0.0)
        counted = self.counted(scores) + self.beyond.slope * farther
        surprise: FloatArray = np.maximum(counted, self.beyond(scores) - ALLOWED)
        return surprise
