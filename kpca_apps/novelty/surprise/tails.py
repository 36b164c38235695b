"""How rare a value is among those seen, and beyond them: minus logarithms of tail shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAST_REACH", "TwoTails", "UpperTail"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Shares of the values nearer to the median on one side; beyond the last, a Pareto tail through the
# value that a tenth of these exceed.
SHARES = np.linspace(0.0, 0.9, 10)
HEIGHTS = -np.log1p(-np.concatenate([SHARES[:0:-1], SHARES]))
FAR = 0.99
# Added to distances (in standard deviations of a column) before ratios are taken of them.
FLOOR = 0.05
# Pareto exponent of columns that end sharply: sixteen times as far, 16^16 times as rare.
LARGEST_EXPONENT = 16.0
# Values a curve is held by: each of the most extreme, and others evenly.
EXTREME_KNOTS, KNOTS = 64, 512
# A tail is not taken for steeper than one that ends within this: where all rows score alike, small
# differences would say much.
LEAST_REACH = 0.1


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

    knots: FloatArray
    exponents: FloatArray

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
        surprise = np.empty_like(values)
        parts = zip(values, self.knots, self.exponents, _reach(self.knots) + FLOOR, strict=True)
        for j, (x, knots, exponents, reach) in enumerate(parts):
            surprise[j] = np.interp(x, knots, HEIGHTS)
            for beyond, side in ((knots[0] - x, 0), (x - knots[-1], 1)):
                far = np.flatnonzero(beyond > 0)
                surprise[j, far] += exponents[side] * np.log1p(beyond[far] / reach[side])
        return surprise


def _reach(knots: FloatArray) -> FloatArray:
    """Distance from the median to the outermost knots below and above, (v, 2)."""
    distance: FloatArray = np.abs(knots[:, [0, -1]] - knots[:, [len(SHARES) - 1]])
    return distance


@dataclass(frozen=True, eq=False)
class UpperTail:
    """Minus the logarithm of the share of rows that score at least so high.

    Attributes
    ----------
    knots, surprise : (k,) array
        Scores, increasing, and the logarithms at them; between, linear.
    slope : float
        Beyond the last.
    """

    knots: FloatArray
    surprise: FloatArray
    slope: float

    @classmethod
    def fit(cls, scores: FloatArray, *, bounded: bool = False) -> UpperTail:
        """Learn from scores (n,); unless they are bounded, go on as over the last tenth of them."""
        ordered = np.sort(scores)
        values, first = np.unique(ordered, return_index=True)
        surprise = -np.log1p(-first / len(scores))
        if len(values) > KNOTS:
            evenly = np.linspace(0, len(values) - EXTREME_KNOTS, KNOTS - EXTREME_KNOTS, dtype=int)
            kept = np.r_[evenly[:-1], len(values) - EXTREME_KNOTS : len(values)]
            values, surprise = values[kept], surprise[kept]
        start = ordered[-1 - len(ordered) // 10]
        rise = surprise[-1] - np.interp(start, values, surprise)
        slope = 0.0 if bounded else rise / max(values[-1] - start, LEAST_REACH)
        return cls(values, surprise, float(slope))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Surprise of scores (r,)."""
        beyond = self.slope * np.maximum(scores - self.knots[-1], 0.0)
        surprise: FloatArray = np.interp(scores, self.knots, self.surprise) + beyond
        return surprise
