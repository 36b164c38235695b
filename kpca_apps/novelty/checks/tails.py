"""How far the upper tail of some values reaches: a generalised Pareto one (Pickands 1975).

It is that of the largest tenth of the values: exponential at the lightest, so that a column with a
bound is given room beyond it. The largest tenth of these in turn count only as values beyond a
point, whatever their size: what may be wrong does not say what is ordinary. Of all tails that the
rest makes nearly as likely as the best one, the heaviest is believed, so that prices and rain are
given the room that their own values ask for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kpca_apps.system.arrays import FloatArray

# A tenth of the values, but never more than half of those above the median: below that it is no
# tail. Of small tables as many as 60, if there are: fewer leave the tail's weight wide open.
TAIL_SHARE, USUAL_TAIL, MAX_TAIL = 0.1, 60, 1_000
MIN_TAIL, MIN_STEPS = 15, 5
# Of the tail itself, the share of the largest whose size is not looked at.
CENSORED_SHARE, MIN_CENSORED = 0.1, 3
# Twice the drop of the log-likelihood is chi-squared: 2 leaves out what 95 % would.
LIKELIHOOD_DROP = 2.0
SHAPES = np.concatenate([[1e-6], np.linspace(0.05, 2.0, 40)])
# Scales in units of the median exceedance, which lies between .5 and 1 for these shapes; the
# bounds leave room for samples.
SCALES = np.geomspace(0.2, 8.0, 40)
BINS = 64
# A value beyond the tail is expected this often in tables like this one.
MAX_EXPECTED = 0.01
# And it is isolated: half as far again from the ordinary as the farthest that does not.
GAP = 1.5


@dataclass(frozen=True)
class Tail:
    """The upper tail of some values."""

    start: float  # where it begins
    unit: float  # median of what its values exceed that by
    n_expected: float  # values beyond `start` in the whole table
    shapes: FloatArray  # (g,), of the generalised Pareto tails that the values allow
    scales: FloatArray  # (g,), theirs
    ordinary: float = np.nan  # the farthest value that belongs to the tail
    limit: float = np.inf  # values beyond do not

    @classmethod
    def fit(cls, values: FloatArray, times: float = 1.0) -> Tail | None:
        """Fit the upper tail of finite values (n,), ``None`` where they or their steps are too few.

        The whole table has so many `times` as many values.
        """
        ordered = np.sort(values)
        n = len(ordered)
        median = ordered[n // 2] if n else 0.0
        n_upper = n - int(np.searchsorted(ordered, median, side="right"))
        count = int(min(max(TAIL_SHARE * n, USUAL_TAIL), n_upper / 2, MAX_TAIL))
        if count < MIN_TAIL:
            return None
        start = float(ordered[n - count - 1])
        above = ordered[ordered > start]
        # A tail of a few steps, each many times, says nothing of where the next would be.
        if len(above) < MIN_TAIL or len(np.unique(above)) < MIN_STEPS:
            return None
        excess = above - start
        unit = float(np.median(excess))
        if not np.isfinite(excess[-1]) or unit <= 0:
            return None
        tail = cls(start, unit, len(above) * times, *_likely(excess / unit))
        # Where the heaviest of the tails has this few values left: its survival is inverted.
        rarest = np.power(tail.n_expected / MAX_EXPECTED, tail.shapes)
        expected_none = start + unit * float(np.max(tail.scales / tail.shapes * (rarest - 1.0)))
        ordinary, limit = start, expected_none
        for value in above.tolist():
            if value > limit:
                break
            ordinary, limit = value, max(expected_none, start + GAP * (value - start))
        return replace(tail, ordinary=ordinary, limit=limit)

    def expected(self, values: FloatArray) -> FloatArray:
        """Return how many values as far out such a table would have at most, shape (n,)."""
        excess = np.maximum((values - self.start) / self.unit, 0.0)[:, None]
        survival = (1.0 + self.shapes * excess / self.scales) ** (-1.0 / self.shapes)
        expected: FloatArray = self.n_expected * survival.max(axis=1)
        return expected


def _likely(excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Shapes and scales, (g,) each, of the tails that increasing exceedances allow."""
    n_censored = max(MIN_CENSORED, int(CENSORED_SHARE * len(excess)))
    seen, point = excess[:-n_censored], excess[-n_censored - 1]
    bins = np.array_split(seen, min(BINS, len(seen)))
    middle = np.array([part.mean() for part in bins])
    weight = np.array([len(part) for part in bins], dtype=np.float64)
    shape, scale = np.meshgrid(SHAPES, SCALES, indexing="ij")
    shape, scale = shape.ravel(), scale.ravel()
    logs = np.log1p(shape[:, None] * middle / scale[:, None]) @ weight
    likelihood = -len(seen) * np.log(scale) - (1 + 1 / shape) * logs
    likelihood -= n_censored / shape * np.log1p(shape * point / scale)
    allowed = likelihood >= likelihood.max() - LIKELIHOOD_DROP
    return shape[allowed], scale[allowed]
