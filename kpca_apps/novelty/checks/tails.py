"""Estimate where the upper tail of a column ends: a generalised Pareto tail (Pickands 1975).

The tail is fitted to the largest tenth of the values. The largest tenth of these are censored: they
count as "beyond a point" whatever their size, because an error must not define what is ordinary.
Scales and shapes are averaged, weighted by their likelihood and, for shapes, by a prior over
columns. The lightest shape is exponential, so that bounded columns have room beyond their bound. A
value lies beyond the tail if fewer than 1 of 100 columns would have such a gap between it and the
ordinary values.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np

from kpca_apps.system.arrays import FloatArray

# The tail holds a tenth of all values, or 60 if that is more. It never holds more than 1,000 values
# or more than half of the values above the median (15 values, if half is fewer than 15).
TAIL_SHARE, USUAL_TAIL, FEW_UPPER, MAX_TAIL = 0.1, 60, 15, 1_000
MIN_TAIL, MIN_STEPS = 6, 5
# Share, minimum number and maximum share of the tail's values that are censored.
CENSORED_SHARE, MIN_CENSORED, MAX_CENSORED_SHARE = 0.1, 3, 1 / 3
# Mean and deviation of the normal prior of positive shapes. In a test, 60 columns of 30 to 2,000
# rows were drawn from each distribution. An ordinary value was called odd in at most 3 of the 60
# columns from an exponential, gamma, Weibull, log-normal (sigma 1 to 2), Student (2 to 5 degrees of
# freedom) or Pareto distribution (exponents 2 and 3), and in at most 5 with Pareto exponent 1.
PRIOR_SHAPE, PRIOR_SPREAD = 0.3, 0.2
SHAPES = np.concatenate([[1e-6], np.linspace(0.1, 2.0, 20)])
EXPONENTIAL = SHAPES[:1]  # if values have a Pareto tail, their logarithms have an exponential tail
# Scales in units of the median exceedance.
SCALES = np.geomspace(0.15, 8.0, 24)
BINS = 64
LEAST_WEIGHT = 1e-6
# A value is odd if fewer values than this are expected beyond it. As the three largest values are
# tested, .01 is divided by 3.
MAX_EXPECTED = 0.01 / 3
# An odd value lies at least this many times as far from the start of the tail as the last ordinary
# value.
GAP = 1.5
# The limit is sought at these distances from `ordinary`, in units of `ordinary - start`.
SEARCHED = np.geomspace(0.1, 1e9, 472)


@dataclass(frozen=True)
class Tail:
    """A fitted upper tail."""

    start: float  # lower end of the tail
    times: float  # ratio of the number of values in the whole table to the number fitted
    shapes: FloatArray  # (g,), shapes of the generalised Pareto tails
    scales: FloatArray  # (g,), scales of the tails
    weights: FloatArray  # (g,), weights of the tails, with sum 1
    ordinary: float  # largest ordinary value: no wide gap separates it from smaller ones
    limit: float = np.inf  # larger values are odd

    @classmethod
    def fit(
        cls,
        values: FloatArray,
        times: float = 1.0,
        shapes: FloatArray = SHAPES,
        least_gap: float = 0.0,
    ) -> Tail | None:
        """Fit the upper tail of finite values (n,); ``None`` if there are too few distinct ones.

        `times` is the number of values in the whole table over n; `least_gap` is the least
        width of a gap.
        """
        if (n := len(values)) <= MIN_TAIL:
            return None
        ordered = np.sort(values)
        n_upper = n - int(np.searchsorted(ordered, ordered[n // 2], side="right"))
        most = max(n_upper / 2, min(n_upper, FEW_UPPER))
        count = int(min(max(TAIL_SHARE * n, USUAL_TAIL), most, MAX_TAIL))
        start = float(ordered[n - count - 1])
        above = ordered[ordered > start]
        # A few values repeated many times do not show where other values would lie.
        if len(above) < MIN_TAIL or len(np.unique(above)) < MIN_STEPS:
            return None
        excess = above - start
        unit = float(np.median(excess))
        if not np.isfinite(excess[-1]) or unit <= 0:
            return None
        n_censored = max(MIN_CENSORED, int(CENSORED_SHARE * len(excess)))
        n_censored = min(n_censored, int(MAX_CENSORED_SHARE * len(excess)))
        shape, scale, weight = _weighted(excess / unit, n_censored, shapes)
        tail = cls(start, times, shape, scale * unit, weight, float(above[-n_censored - 1]))
        # Censored values are ordinary up to the first gap.
        for value in above[-n_censored:].tolist():
            if value > tail.ordinary and tail._gap(least_gap, np.array([value])) < np.inf:
                break
            tail = replace(tail, ordinary=value)
        gap = tail._gap(least_gap, tail.ordinary + (tail.ordinary - start) * SEARCHED)
        return replace(tail, limit=tail.ordinary + gap)

    def expected(self, values: FloatArray) -> FloatArray:
        """Return the expected number of values in the table beyond each value (n,)."""
        beyond = np.maximum(values - self.ordinary, 0.0)[:, None]
        scales = self.scales + self.shapes * (self.ordinary - self.start)
        survival = (1.0 + self.shapes * beyond / scales) ** (-1.0 / self.shapes)
        return self.times * (survival @ self.weights)

    def _gap(self, least: float, values: FloatArray) -> float:
        """Return the distance from `ordinary` to the first odd value in sorted `values`, or inf."""
        gaps = values - self.ordinary
        wide = values[gaps > max(least, (GAP - 1.0) * (self.ordinary - self.start))]
        first = bisect_left(
            wide, True, key=lambda value: self.expected(np.array([value]))[0] < MAX_EXPECTED
        )
        return float(wide[first] - self.ordinary) if first < len(wide) else np.inf


def _weighted(
    excess: FloatArray, n_censored: int, shapes: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return shapes, scales and posterior weights (g,) of the tails that fit sorted exceedances."""
    seen, point = excess[:-n_censored], excess[-n_censored - 1]
    edges = np.linspace(0, len(seen), min(BINS, len(seen)) + 1).astype(np.int64)
    weight = np.diff(edges).astype(np.float64)
    middle = np.add.reduceat(seen, edges[:-1]) / weight
    shape, scale = map(np.ravel, np.meshgrid(shapes, SCALES, indexing="ij"))
    logs = np.log1p(shape[:, None] * middle / scale[:, None]) @ weight
    likelihood = -len(seen) * np.log(scale) - (1 + 1 / shape) * logs
    likelihood -= n_censored / shape * np.log1p(shape * point / scale)
    likelihood -= 0.5 * ((shape - PRIOR_SHAPE) / PRIOR_SPREAD) ** 2
    weights = np.exp(likelihood - likelihood.max())
    counts = weights > LEAST_WEIGHT
    return shape[counts], scale[counts], weights[counts] / weights[counts].sum()
