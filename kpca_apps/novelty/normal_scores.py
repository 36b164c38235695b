"""Normal scores of ranks among training values, found without a search of the whole table.

The score of x is ndtri((midrank + 1/2) / (n + 1)) with the midrank of x among n training values
(van der Waerden's scores, with the ranks of new values between those of their neighbours).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["NormalScores", "scores_by_rank"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CELLS_A_VALUE = 4
# Where values crowd into few cells a search of the whole table takes fewer steps.
MOST_STEPS = 32


@dataclass(frozen=True, eq=False)
class NormalScores:
    """Scores of one column's values, looked up from a guess of their place.

    A smooth increasing function of the values, any, serves as guess: its range is cut into equal
    cells, and each knows the first training value that may lie in it. What is found is exact.

    Attributes
    ----------
    values : (p + 1,) array
        Distinct training values, increasing, and infinity.
    scores : (2 p + 1,) array
        Of what lies just below a value, and of the value itself, in turn; last, beyond them all.
    first : (c,) int array
        Place of the first value in a cell, or in the one before: a guess may be off by rounding.
        Empty where values crowd.
    low, rate : float
        Guess of the smallest value, and cells per unit of the guess.
    """

    values: FloatArray
    scores: FloatArray
    first: IntArray
    low: float
    rate: float

    @classmethod
    def fit(cls, ordered: FloatArray, guesses: FloatArray, by_rank: FloatArray) -> Self:
        """Tabulate the scores.

        Parameters
        ----------
        ordered : (n,) array
            Training values, increasing.
        guesses : (n,) array
            What the guess makes of them.
        by_rank : (2 n + 1,) array
            `scores_by_rank` of n.
        """
        starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > 0)
        ends = np.append(starts[1:], len(ordered))
        scores = np.append(
            np.column_stack([by_rank[2 * starts], by_rank[starts + ends]]), by_rank[-1]
        )
        values, guesses = np.append(ordered[starts], np.inf), guesses[starts]
        n_cells = CELLS_A_VALUE * len(starts)
        reach = guesses[-1] - guesses[0]
        rate = n_cells / reach if reach > 0 else 0.0
        cells = _cells(guesses, guesses[0], rate, n_cells)
        counts = np.bincount(cells, minlength=n_cells)
        first = np.append([0, 0], np.cumsum(counts)[:-2])
        if counts.max() > MOST_STEPS:
            first = first[:0]
        return cls(values, scores, first, float(guesses[0]), float(rate))

    def __call__(self, x: FloatArray, guesses: FloatArray) -> FloatArray:
        """Return the scores of values (b,), given what the guess makes of them.

        Examples
        --------
        >>> ordered = np.array([1.0, 2.0, 2.0, 4.0])
        >>> table = NormalScores.fit(ordered, ordered, scores_by_rank(4))
        >>> x = np.array([1.0, 2.0, 3.0])
        >>> np.allclose(table(x, x), ndtri([0.2, 0.5, 0.7]))
        True
        """
        place = self._places(x, guesses)
        found: FloatArray = self.scores.take(2 * place + (self.values.take(place) == x))
        return found

    def _places(self, x: FloatArray, guesses: FloatArray) -> IntArray:
        """Return how many training values, each counted once, are smaller."""
        if not self.first.size:
            return np.searchsorted(self.values, x)
        place = self.first.take(_cells(guesses, self.low, self.rate, len(self.first)))
        behind = np.flatnonzero(self.values.take(place) < x)
        while behind.size:
            place[behind] += 1
            behind = behind[self.values.take(place[behind]) < x[behind]]
        return place


def scores_by_rank(n: int) -> FloatArray:
    """Return normal scores of the midranks 0, 1/2, 1, ... n among n values, shape (2 n + 1,)."""
    scores: FloatArray = ndtri((np.arange(2 * n + 1) + 1.0) / (2.0 * (n + 1)))
    return scores


def _cells(guesses: FloatArray, low: float, rate: float, n_cells: int) -> IntArray:
    """Return the cell each guess falls into; beyond the ends, the first and the last."""
    return np.clip((guesses - low) * rate, 0, n_cells - 1).astype(np.int64)
