"""Tails of distributions: -log of the share of values at least as far out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.engine.subspace import SQUARABLE
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

# Knots are quantiles of the values on each side of the median. Beyond the last knot, a Pareto tail
# goes through the knot and the value that 3 % of the side exceed.
SHARES = np.linspace(0.0, 0.9, 10)
HEIGHTS = -np.log1p(-np.concatenate([SHARES[:0:-1], SHARES]))
FAR = 0.97
FLOOR = 0.05  # added to the last knot's distance from the median, the unit of tail distances
# Maximum Pareto exponent, for columns that end sharply: twice as far out is 2^16 times as rare.
LARGEST_EXPONENT = 16.0
# Few values cannot distinguish a sharp end from a long tail, and a value far out stretches the tail
# by which it is judged. The shape (1 / exponent) is therefore shrunk to 1/5, with the weight of ten
# values beyond the last knot, as Vehtari, Simpson, Gelman, Yao & Gabry (2024) shrink the shape of a
# Pareto tail. The exact quantiles of normal, exponential and log-normal (sigma .5) distributions
# give shapes of .16 to .21; residuals of normal columns give .22.
PRIOR_SHAPE, PRIOR_WEIGHT = 0.2, 10.0
EXTREME_KNOTS, KNOTS = 64, 512  # number of knots at the highest scores; number of all knots
# The exponential tail is fitted through the quantiles UPPER. -log(share) is the larger of two
# numbers: the one from counting rows, and the one from this tail minus ALLOWED.
UPPER, ALLOWED = (0.75, 0.95), 0.5
# Minimum distance between the two quantiles: if all rows score alike, only rounding separates them.
LEAST_REACH = 1e-3
# Maximum surprise (-log of a share), as shares are counted among fewer than e^50 rows.
LARGEST_SURPRISE = 50.0
STEEPEST = LARGEST_SURPRISE / LEAST_REACH


@dataclass(frozen=True, eq=False)
class TwoTails:
    """-log of the share of values at least as far out as a given one, on its side of the median."""

    # Increasing quantiles: the median, and the nine deciles of the values on each side of it.
    knots: Annotated[FloatArray, "v 19", SQUARABLE]
    # Exponents of the Pareto tails below and above the median.
    exponents: Annotated[FloatArray, "v 2", Meta(ge=0, le=LARGEST_EXPONENT)]
    of_logs: bool  # whether values are logs of distances, with exponential tails

    def validate(self) -> None:
        """Raise for quantiles out of order."""
        if (np.diff(self.knots) < 0).any():
            raise ValueError("quantiles out of order")

    @classmethod
    def fit(
        cls, values: FloatArray, seen: BoolArray, *, of_logs: bool, alike: IntArray | None = None
    ) -> TwoTails:
        """Learn from the `seen` cells of columns (v, n); a column may have no such cell.

        Columns that are `alike` have one distribution, learned from all their cells.
        """
        if alike is not None and len(alike):
            found = cls.fit(values, seen, of_logs=of_logs)
            cells, those = values[alike].reshape(1, -1), seen[alike].reshape(1, -1)
            together = cls.fit(cells, those, of_logs=of_logs)
            found.knots[alike], found.exponents[alike] = together.knots, together.exponents
            return found
        n_seen = seen.sum(axis=1, keepdims=True)
        ordered = np.sort(np.where(seen, values, np.where(n_seen > 0, np.inf, 0.0)), axis=1)
        sides = np.concatenate([[-FAR], -SHARES[:0:-1], SHARES, [FAR]])
        # Linear interpolation between order statistics, as in np.quantile.
        last_place = np.maximum(n_seen - 1, 0)
        place = (0.5 + 0.5 * sides) * last_place
        below = np.floor(place).astype(np.int64)
        lower = np.take_along_axis(ordered, below, axis=1)
        upper = np.take_along_axis(ordered, np.minimum(below + 1, last_place), axis=1)
        quantiles = lower + (place - below) * (upper - lower)
        knots, ends = quantiles[:, 1:-1], quantiles[:, [0, -1]]
        centre, outermost = knots[:, [len(SHARES) - 1]], knots[:, [0, -1]]
        step = np.abs(ends - outermost) / (np.abs(outermost - centre) + FLOOR)
        shape = step if of_logs else np.log1p(step)
        shape /= np.log((1.0 - SHARES[-1]) / (1.0 - FAR))
        n_beyond = 0.5 * (1.0 - SHARES[-1]) * n_seen
        shape = (n_beyond * shape + PRIOR_WEIGHT * PRIOR_SHAPE) / (n_beyond + PRIOR_WEIGHT)
        exponents = 1.0 / np.maximum(shape, 1.0 / LARGEST_EXPONENT)
        return cls(knots.copy(), exponents * (n_seen > 0), of_logs)

    def __call__(self, values: FloatArray) -> FloatArray:
        """For each value (v, n), return -log of the share beyond it on its side of the median."""
        middle, n = len(SHARES) - 1, values.shape[1]
        # A value equal to several knots counts as the knot nearest to the median.
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
        # All indices are valid: "clip" skips their check, which saves a third of the time.
        surprise = values - anchor.take(place, mode="clip")
        surprise *= slope.take(place, mode="clip")
        surprise += height.take(place, mode="clip")
        distance = np.abs(values.take(outside) - self.knots[:, [0, -1]][column, side])
        steps = distance / (reach + FLOOR)[column, side]
        if not self.of_logs:
            steps = np.log1p(steps)
        surprise.put(outside, HEIGHTS[0] + self.exponents[column, side] * steps)
        return surprise

    @cached_property
    def _lines(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return anchors, slopes and heights of the lines between knots, (v, 21) each.

        The lines reach from below the first knot to beyond the last, the median in the middle. Also
        return the distance from the median to the outermost knots below and above, (v, 2).
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
    """Minus the logarithm of the share of rows that score at least as high.

    The share is counted up to the highest score and falls exponentially beyond. Where a tail
    through two quantiles gives a lower share, it replaces the count: a score far out is rarer than
    one in n.
    """

    # `knots` are increasing scores, `surprise` is -log of the share of rows at or above each knot.
    knots: Annotated[FloatArray, "k", SQUARABLE]
    surprise: Annotated[FloatArray, "k", Meta(ge=0, le=LARGEST_SURPRISE)]
    # The exponential tail: surprise = slope (score - zero).
    zero: Annotated[float, SQUARABLE]
    slope: Annotated[float, Meta(ge=0, le=STEEPEST)]

    def validate(self) -> None:
        """Raise if there are no knots, or if knots or surprises are out of order."""
        if not self.knots.size or (np.diff(self.knots) <= 0).any():
            raise ValueError("knots out of order")
        if (np.diff(self.surprise) < 0).any():
            raise ValueError("surprises out of order")

    @classmethod
    def fit(
        cls, scores: FloatArray, *, ends: bool = False, shares: tuple[float, float] = UPPER
    ) -> UpperTail:
        """Learn from scores (n,). With `ends`, no new score counts as rarer than the highest one.

        Without `ends`, an exponential tail through the quantiles at two `shares` follows.
        """
        values, first = np.unique(np.sort(scores), return_index=True)
        surprise = -np.log1p(-first / len(scores))
        if len(values) > KNOTS:
            evenly = np.linspace(0, len(values) - EXTREME_KNOTS, KNOTS - EXTREME_KNOTS, dtype=int)
            kept = np.r_[evenly[:-1], len(values) - EXTREME_KNOTS : len(values)]
            values, surprise = values[kept], surprise[kept]
        zero, slope = (0.0, 0.0) if ends else exponential_tail(scores, shares)
        return cls(values, surprise, zero, slope)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return -log of the share of rows that score at least as high as each score (r,)."""
        counted: FloatArray = np.interp(scores, self.knots, self.surprise)
        if self.slope == 0.0:
            return counted
        counted += self.slope * np.maximum(scores - self.knots[-1], 0.0)
        return np.maximum(counted, self.steepness(scores) - ALLOWED)

    def steepness(self, scores: FloatArray) -> FloatArray:
        """Return -log of the share beyond each score (r,), by the exponential tail alone."""
        return self.slope * (scores - self.zero)


def exponential_tail(scores: FloatArray, shares: tuple[float, float]) -> tuple[float, float]:
    """Fit an exponential tail through two quantiles of scores (n,); return `zero` and `slope`.

    Minus the logarithm of the share of rows beyond a score is slope (score - zero).
    """
    low, high = np.quantile(scores, shares)
    first, last = -np.log1p(-np.array(shares))
    slope = (last - first) / max(high - low, LEAST_REACH)
    return float(low - first / slope), float(slope)
