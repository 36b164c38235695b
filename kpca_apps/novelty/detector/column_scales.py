"""Four scalings of numeric columns, learned from rows.

Each is right for some columns and wrong for others: see `views`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from scipy.special import ndtri

from kpca_apps.novelty.magnitudes import mean_and_sd, varies

__all__ = ["IQR_OF_NORMAL", "ColumnScales", "NormalScores", "ordinary_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

IQR_OF_NORMAL = 1.349
"""Interquartile range of a standard normal variable."""
# Order statistics kept a column to rank new values among.
MAX_RANK_KNOTS = 20_000
# A value this many robust standard deviations from the median is gross.
GROSS = 100.0

# Cells that the range of a column is cut into, for each of its distinct values.
CELLS_A_VALUE = 2
# Part of a cell by which guesses of equal values may differ.
ROUNDING = 0.01
# Where values crowd into few cells a search of the whole column takes fewer steps.
MOST_STEPS = 32


@dataclass(frozen=True, eq=False)
class ColumnScales:
    """What the scalings need of columns."""

    mean: Annotated[FloatArray, "d"]
    sd: Annotated[FloatArray, "d"]
    median: Annotated[FloatArray, "d"]
    spread: Annotated[FloatArray, "d", Meta(gt=0)]  # IQR / 1.349, sd where that is degenerate
    minimum: Annotated[FloatArray, "d"]
    maximum: Annotated[FloatArray, "d"]
    asinh_mean: Annotated[FloatArray, "d"]  # of asinh((x - median) / spread)
    asinh_sd: Annotated[FloatArray, "d"]
    # Sorted training values, evenly thinned to at most 20,000, to rank new values among.
    order_statistics: Annotated[FloatArray, "k d"]

    @classmethod
    def fit(cls, used: FloatArray, everyone: FloatArray) -> Self:
        """Learn from the rows in use (r, d); where a column is constant there, from all (n, d)."""
        size = min(len(used), MAX_RANK_KNOTS)
        scales = _scales(used, size)
        constant = ~varies(used)
        if constant.any():
            of_everyone = _scales(everyone[:, constant], size)
            for name, values in scales.items():
                values[..., constant] = of_everyone[name]
        return cls(**scales)

    def scaled(self, columns: FloatArray, factors: FloatArray, out: FloatArray) -> None:
        """Scale columns (n, d) in four ways, times factors (4, d), into an array (n, 4, d).

        Standardised; asinh((x - median) / spread), standardised; divided by the range; normal
        scores of ranks. A value too far out to be scaled becomes infinite: kernels take it so.
        """
        # A line a column: arithmetic on short lines takes several times as long.
        lines = np.ascontiguousarray(columns.T)
        scaled = np.empty((4, *lines.shape))
        with np.errstate(over="ignore"):
            bent, centred = self._bent(lines), lines - self.mean[:, None]
            of_range = factors[2] / (self.maximum - self.minimum)
            np.multiply(centred, (factors[0] / self.sd)[:, None], out=scaled[0])
            np.multiply(centred, of_range[:, None], out=scaled[2])
            # Ranks are extended linearly beyond those of the training rows: a flat end would make
            # every value beyond their range look alike.
            inside = np.clip(lines, self.minimum[:, None], self.maximum[:, None])
            scores = self._table(inside, bent)
            if not (inside == lines).all():
                scores += (lines - inside) / self.sd[:, None]
            np.multiply(scores, factors[3][:, None], out=scaled[3])
            bent -= self.asinh_mean[:, None]
            np.multiply(bent, (factors[1] / self.asinh_sd)[:, None], out=scaled[1])
        out[...] = scaled.transpose(2, 0, 1)

    def _bent(self, lines: FloatArray) -> FloatArray:
        bent: FloatArray = lines - self.median[:, None]
        bent /= self.spread[:, None]
        return np.arcsinh(bent, out=bent)

    @cached_property
    def _table(self) -> NormalScores:
        """Normal scores of the columns: tabulated once, where rows are scaled."""
        return NormalScores.fit(self.order_statistics, self._bent(self.order_statistics.T).T)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again where it is needed."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def ordinary_rows(X: FloatArray) -> IntArray:
    """Rows without a gross value; all rows where that would leave less than half of them.

    One value of 10^6 among values of 1 flattens the scale of its column for every other row; a
    first look at a table that may hold outliers does without such rows.
    """
    median, spread = _middle(_sorted(X))
    # Half the values may be the same: then the spread says nothing of the others.
    far = np.abs(X - median) > GROSS * np.where(spread > 0, spread, np.inf)
    ordinary = np.flatnonzero(~far.any(axis=1))
    return ordinary if 2 * len(ordinary) >= len(X) else np.arange(len(X))


def _sorted(columns: FloatArray) -> FloatArray:
    """Return the values of each column in order; memory in order, too, is what makes it quick."""
    by_column = np.array(columns.T, order="C")
    by_column.sort(axis=1)
    return by_column.T


def _middle(ordered: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return median and robust standard deviation, IQR / 1.349, of columns of sorted values."""
    low, median, high = (_quantile(ordered, share) for share in (0.25, 0.5, 0.75))
    return median, (high - low) / IQR_OF_NORMAL


def _quantile(ordered: FloatArray, share: float) -> FloatArray:
    place, part = divmod(share * (len(ordered) - 1), 1.0)
    below, above = ordered[int(place)], ordered[min(int(place) + 1, len(ordered) - 1)]
    value: FloatArray = below + part * (above - below)
    return value


def _scales(columns: FloatArray, n_order_statistics: int) -> dict[str, FloatArray]:
    mean, sd = mean_and_sd(columns)
    ordered = _sorted(columns)
    median, spread = _middle(ordered)
    spread = np.where(spread < 1e-3 * sd, sd, spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A column without spread gives NaN here; `ColumnScales.fit` replaces all of it.
        bent = np.arcsinh((columns - median) / spread)
    kept = np.linspace(0, len(columns) - 1, n_order_statistics).round().astype(np.int64)
    return {
        "mean": mean,
        "sd": sd,
        "median": median,
        "spread": spread,
        "minimum": ordered[0],
        "maximum": ordered[-1],
        "asinh_mean": bent.mean(axis=0),
        "asinh_sd": bent.std(axis=0),
        "order_statistics": ordered[kept],
    }


@dataclass(frozen=True, eq=False)
class NormalScores:
    """Normal scores of ranks among training values, found without a search of the whole table.

    The score of x is ndtri((midrank + 1/2) / (n + 1)) with the midrank of x among n training values
    of its column (van der Waerden's scores; a new value ranks between its neighbours).

    A smooth increasing function of the values, any, serves as guess: its range is cut into equal
    cells, and each knows the first training value that may lie in it. What is found is exact.
    """

    values: FloatArray  # (p,), column after column: distinct values, increasing, and infinity
    scores: FloatArray  # (2 p,), of what lies just below a value, and of the value itself, in turn
    starts: IntArray  # (d + 1,), where columns start in `values`
    # (c,), column after column and cell after cell: place in `values` of the first in the cell.
    first: NDArray[np.int32]
    cell_starts: IntArray  # (d + 1,), where columns start in `first`
    low: FloatArray  # (d,), guess of the smallest value
    rate: FloatArray  # (d,), cells per unit of the guess
    crowded: IntArray  # (e,), columns whose cells hold too many values

    @classmethod
    def fit(cls, ordered: FloatArray, guesses: FloatArray) -> Self:
        """Tabulate the scores of training values (n, d), increasing in each column, and guesses."""
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
