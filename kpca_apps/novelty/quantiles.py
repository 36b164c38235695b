"""A sketch of many values that tells their quantiles, and how wrong it can be.

Values are held in levels; one at level l stands for 2^l of them. A level that is full is sorted,
every second value of it goes up a level, and the others go. Each such step moves the rank of any
value by at most the weight 2^l of what was thinned: the sum of these is the error, known and not
only likely. Nothing is drawn, so that the same values in the same parts give the same sketch.

References
----------
Munro & Paterson, Selection and sorting with limited storage, Theoretical Computer Science 12, 1980,
section 4; Manku, Rajagopalan & Lindsay, Approximate medians in one pass, SIGMOD 1998, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["QuantileSketch"]

FloatArray = NDArray[np.float64]

LEVEL = 4_096
"""Values a level holds. The error is about log2(n / LEVEL) / LEVEL of n values, 0.3 % of 10^7."""


@dataclass(frozen=True)
class QuantileSketch:
    """Quantiles of n values within a known error; sketches of parts add up.

    Attributes
    ----------
    n : int
        Values sketched.
    levels : tuple of arrays
        Sorted values that stand for 1, 2, 4, ... each.
    error : int
        By how much the sketch may be wrong in the rank of any value, at most.
    parity : int
        Which of two values the next step keeps, 0 or 1, so that errors tend to cancel.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.arange(100_000.0)
    >>> sketch = QuantileSketch.of(values[:60_000]) + QuantileSketch.of(values[60_000:])
    >>> low, high = sketch.bracket(50_000)
    >>> low < 50_000.0 <= high, high - low < 4 * sketch.error
    (True, True)
    """

    n: int
    levels: tuple[FloatArray, ...]
    error: int = 0
    parity: int = 0

    @classmethod
    def of(cls, values: FloatArray) -> QuantileSketch:
        """Sketch values, of any number and in any order; none of them NaN."""
        return _thinned(cls(len(values), (np.sort(values),)))

    def __add__(self, other: QuantileSketch) -> QuantileSketch:
        """Sketch of the values of both."""
        n_levels = max(len(self.levels), len(other.levels))
        levels = tuple(
            np.sort(np.concatenate([*self.levels[k : k + 1], *other.levels[k : k + 1]]))
            for k in range(n_levels)
        )
        joined = QuantileSketch(
            self.n + other.n, levels, self.error + other.error, self.parity ^ other.parity
        )
        return _thinned(joined)

    def bracket(self, place: int) -> tuple[float, float]:
        """Bounds of the value at a place in increasing order, 0 = the smallest.

        Returns
        -------
        low, high : float
            The value is above `low` and at most `high`, for certain; infinite at the ends.
        """
        values, at_most = self._cumulated()
        below = np.flatnonzero(at_most + self.error <= place)
        above = np.flatnonzero(at_most - self.error > place)
        low = float(values[below[-1]]) if below.size else -np.inf
        high = float(values[above[0]]) if above.size else np.inf
        return low, high

    def quantile(self, share: float) -> float:
        """Value that about a share (0..1) of all values do not exceed."""
        values, at_most = self._cumulated()
        place = int(np.searchsorted(at_most, share * self.n))
        return float(values[min(place, len(values) - 1)])

    def _cumulated(self) -> tuple[FloatArray, NDArray[np.int64]]:
        """Return the distinct values held, and how many values each stands above or for."""
        values = np.concatenate(self.levels)
        weights = np.repeat(1 << np.arange(len(self.levels)), [len(v) for v in self.levels])
        order = np.argsort(values, kind="stable")
        values, counts = values[order], np.cumsum(weights[order])
        last = np.ones(len(values), dtype=np.bool_)
        last[:-1] = values[1:] != values[:-1]
        return values[last], counts[last]


def _thinned(sketch: QuantileSketch) -> QuantileSketch:
    """Send every second value of a full level up, until none is full."""
    levels, error, parity = list(sketch.levels), sketch.error, sketch.parity
    k = 0
    while k < len(levels):
        while len(levels[k]) > LEVEL:
            if k + 1 == len(levels):
                levels.append(np.empty(0))
            # An odd value too many stays behind, so that weights add up to n.
            paired = len(levels[k]) // 2 * 2
            up = np.sort(np.concatenate([levels[k + 1], levels[k][parity:paired:2]]))
            levels[k], levels[k + 1] = levels[k][paired:], up
            error += 1 << k
            parity ^= 1
        k += 1
    return QuantileSketch(sketch.n, tuple(levels), error, parity)
