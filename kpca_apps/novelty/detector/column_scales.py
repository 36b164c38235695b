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

from kpca_apps.novelty.detector.normal_scores import NormalScores
from kpca_apps.novelty.magnitudes import mean_and_sd, varies

__all__ = ["IQR_OF_NORMAL", "ColumnScales", "ordinary_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

IQR_OF_NORMAL = 1.349
"""Interquartile range of a standard normal variable."""
# Order statistics kept a column to rank new values among.
MAX_RANK_KNOTS = 20_000
# A value this many robust standard deviations from the median is gross.
GROSS = 100.0


@dataclass(frozen=True, eq=False)
class ColumnScales:
    """What the scalings need of columns.

    Attributes
    ----------
    mean, sd, median, spread, minimum, maximum : (d,) array
        Of the columns; spread is IQR / 1.349, or sd where the IQR is degenerate.
    asinh_mean, asinh_sd : (d,) array
        Of asinh((x - median) / spread).
    order_statistics : (k, d) array
        Sorted training values, evenly thinned to at most 20,000, to rank new values among.
    """

    mean: Annotated[FloatArray, "d"]
    sd: Annotated[FloatArray, "d"]
    median: Annotated[FloatArray, "d"]
    spread: Annotated[FloatArray, "d", Meta(gt=0)]
    minimum: Annotated[FloatArray, "d"]
    maximum: Annotated[FloatArray, "d"]
    asinh_mean: Annotated[FloatArray, "d"]
    asinh_sd: Annotated[FloatArray, "d"]
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
