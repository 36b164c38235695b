"""How far the large values of a column reach, and from where on a value does not belong to them.

The largest tenth of the values is taken for a generalised Pareto tail (Pickands 1975): exponential
at the lightest, so that a column with a bound is given room beyond it. The largest tenth of these
in turn count only as values beyond a point, whatever their size: what may be wrong does not say
what is ordinary. Of all tails that the rest makes nearly as likely as the best one, the heaviest
is believed, so that prices and rain are given the room that their own values ask for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tail"]

FloatArray = NDArray[np.float64]

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
# And it stands apart: half as far again from the ordinary as the farthest that does not.
GAP = 1.5
NEAREST, FARTHEST = 1e-3, 1e60  # in units of the median exceedance
HALVINGS = 30


@dataclass(frozen=True)
class Tail:
    """The upper tail of some values.

    Attributes
    ----------
    start : float
        Where it begins.
    unit : float
        Median of what its values exceed that by.
    n_expected : float
        Values beyond `start` in the whole table.
    shapes, scales : (g,) array
        Parameters of the generalised Pareto tails that the values allow.
    ordinary, limit : float
        The farthest value that belongs to the tail; values beyond `limit` do not.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> prices = np.exp(rng.normal(size=2000))
    >>> tail = Tail.fit(np.append(prices, 2000.0))
    >>> bool(prices.max() < tail.limit < 2000.0)
    True
    """

    start: float
    unit: float
    n_expected: float
    shapes: FloatArray
    scales: FloatArray
    ordinary: float
    limit: float

    @classmethod
    def fit(cls, values: FloatArray, times: float = 1.0) -> Tail | None:
        """Fit the upper tail of finite values; for the lower one, turn their signs.

        Parameters
        ----------
        values : (n,) array
            In any order.
        times : float
            How many times as many values the whole table has, if these are drawn from it.

        Returns
        -------
        Tail or None
            ``None`` where the values have no tail to speak of: too few of them, or too few steps.
        """
        ordered = np.sort(values)
        start = _start(ordered)
        if start is None:
            return None
        above = ordered[ordered > start] - start
        unit = float(np.median(above))
        if not np.isfinite(above[-1]) or unit <= 0:
            return None
        shapes, scales = _likely(above / unit)
        tail = cls(start, unit, len(above) * times, shapes, scales, np.nan, np.inf)
        ordinary, limit = tail._cut(ordered[ordered > start])
        return cls(start, unit, tail.n_expected, shapes, scales, ordinary, limit)

    def expected(self, values: FloatArray) -> FloatArray:
        """Return how many values as far out such a table would have at most, shape (n,)."""
        excess = np.maximum((values - self.start) / self.unit, 0.0)[:, None]
        survival = (1.0 + self.shapes * excess / self.scales) ** (-1.0 / self.shapes)
        expected: FloatArray = self.n_expected * survival.max(axis=1)
        return expected

    def _cut(self, above: FloatArray) -> tuple[float, float]:
        """Return the farthest ordinary value, and where values that are none begin."""
        # Halved in logarithms: the answer may be any number of units away.
        near, far = np.log(NEAREST), np.log(FARTHEST)
        for _ in range(HALVINGS):
            middle = (near + far) / 2
            value = self.start + np.exp(middle) * self.unit
            beyond = self.expected(np.array([value]))[0] < MAX_EXPECTED
            near, far = (near, middle) if beyond else (middle, far)
        limit = self.start + float(np.exp(far)) * self.unit
        ordinary = self.start
        for value in above:
            if value > max(limit, self.start + GAP * (ordinary - self.start)):
                break
            ordinary = float(value)
        return ordinary, max(limit, self.start + GAP * (ordinary - self.start))


def _start(ordered: FloatArray) -> float | None:
    """Where the tail of increasing values begins."""
    n = len(ordered)
    median = ordered[n // 2] if n else 0.0
    n_upper = n - int(np.searchsorted(ordered, median, side="right"))
    count = int(min(max(TAIL_SHARE * n, USUAL_TAIL), n_upper / 2, MAX_TAIL))
    if count < MIN_TAIL:
        return None
    start = float(ordered[n - count - 1])
    above = ordered[ordered > start]
    # A tail of a few steps, each many times, says nothing of where the next would be.
    return start if len(above) >= MIN_TAIL and len(np.unique(above)) >= MIN_STEPS else None


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
