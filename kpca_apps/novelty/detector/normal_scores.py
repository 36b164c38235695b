"""Normal scores of ranks among training values, found without a search of the whole table.

The score of x is ndtri((midrank + 1/2) / (n + 1)) with the midrank of x among n training values
of its column (van der Waerden's scores; a new value ranks between its neighbours).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["NormalScores"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CELLS_A_VALUE = 2
# Part of a cell by which guesses of equal values may differ.
ROUNDING = 0.01
# Where values crowd into few cells a search of the whole column takes fewer steps.
MOST_STEPS = 32


@dataclass(frozen=True, eq=False)
class NormalScores:
    """Scores of the values of some columns, looked up from a guess of their place.

    A smooth increasing function of the values, any, serves as guess: its range is cut into equal
    cells, and each knows the first training value that may lie in it. What is found is exact.

    Attributes
    ----------
    values : (p,) array
        Column after column: distinct training values, increasing, and infinity.
    scores : (2 p,) array
        Of what lies just below a value, and of the value itself, in turn.
    starts : (d + 1,) int array
        Where columns start in `values`.
    first : (c,) int32 array
        Column after column and cell after cell: place in `values` of the first in the cell.
    cell_starts : (d + 1,) int array
        Where columns start in `first`.
    low, rate : (d,) array
        Guess of the smallest value, and cells per unit of the guess.
    crowded : (e,) int array
        Columns whose cells hold too many values.
    """

    values: FloatArray
    scores: FloatArray
    starts: IntArray
    first: NDArray[np.int32]
    cell_starts: IntArray
    low: FloatArray
    rate: FloatArray
    crowded: IntArray

    @classmethod
    def fit(cls, ordered: FloatArray, guesses: FloatArray) -> Self:
        """Tabulate the scores.

        Parameters
        ----------
        ordered : (n, d) array
            Training values, increasing in each column.
        guesses : (n, d) array
            What the guess makes of them.
        """
        n, d = ordered.shape
        by_rank = ndtri((np.arange(2 * n + 1) + 1.0) / (2.0 * (n + 1)))
        is_new = np.diff(ordered, axis=0, prepend=-np.inf) > 0
        starts = np.append(0, np.cumsum(is_new.sum(axis=0) + 1))
        n_cells = CELLS_A_VALUE * np.diff(starts)
        cell_starts = np.append(0, np.cumsum(n_cells))
        reach = guesses[-1] - guesses[0]
        low, rate = guesses[0], np.divide(n_cells, reach, out=np.zeros(d), where=reach > 0)
        values, scores = np.full(starts[-1], np.inf), np.empty((starts[-1], 2))
        first, crowded = np.empty(cell_starts[-1], dtype=np.int32), []
        for j in range(d):
            below = np.flatnonzero(is_new[:, j])
            place, up_to = slice(starts[j], starts[j + 1] - 1), np.append(below[1:], n)
            values[place] = ordered[below, j]
            scores[place] = np.column_stack([by_rank[2 * below], by_rank[below + up_to]])
            scores[starts[j + 1] - 1] = by_rank[-1]
            cells = _cells(guesses[below, j], low[j], rate[j], n_cells[j])
            counts = np.bincount(cells, minlength=n_cells[j])
            first[cell_starts[j] : cell_starts[j + 1]] = starts[j] + np.cumsum(counts) - counts
            if counts.max() > MOST_STEPS:
                crowded.append(j)
        return cls(
            values,
            scores.ravel(),
            starts,
            first,
            cell_starts,
            low,
            rate,
            np.array(crowded, dtype=np.int64),
        )

    def __call__(self, columns: FloatArray, guesses: FloatArray) -> FloatArray:
        """Return the scores of values (d, b), a line a column, given what the guess makes of them.

        Examples
        --------
        >>> ordered = np.array([[1.0], [2.0], [2.0], [4.0]])
        >>> values = np.array([[1.0, 2.0, 3.0]])
        >>> scores = NormalScores.fit(ordered, ordered)(values, values)
        >>> np.allclose(scores[0], ndtri([0.2, 0.5, 0.7]))
        True
        """
        low, rate, n_cells = self._by_line
        place = _cells(guesses, low, rate, n_cells, ROUNDING)
        place += self.cell_starts[:-1, None]
        place = self.first.take(place).astype(np.int64)
        for j in self.crowded:
            column = self.values[self.starts[j] : self.starts[j + 1]]
            place[j] = self.starts[j] + np.searchsorted(column, columns[j])
        places, x = place.reshape(-1), columns.reshape(-1)
        reached = self.values.take(places)
        behind = np.flatnonzero(reached < x)
        while behind.size:
            places[behind] += 1
            reached[behind] = further = self.values.take(places[behind])
            behind = behind[further < x[behind]]
        places *= 2
        places += reached == x
        found: FloatArray = self.scores.take(place)
        return found

    @cached_property
    def _by_line(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """What is said of each column, for arrays of a line a column."""
        return self.low[:, None], self.rate[:, None], np.diff(self.cell_starts)[:, None]


def _cells(
    guesses: FloatArray,
    low: FloatArray | float,
    rate: FloatArray | float,
    n_cells: IntArray | int,
    back: float = 0.0,
) -> IntArray:
    """Return the cell of each guess, moved back a little; beyond the ends, the first or last."""
    cells = guesses - low
    cells *= rate
    cells -= back
    np.clip(cells, 0.0, n_cells - 1, out=cells)
    return cells.astype(np.int64)
