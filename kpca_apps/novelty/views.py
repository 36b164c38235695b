"""Four views of the same columns, side by side in one matrix, for a mean of kernels over views.

No single scaling suits every column: standardising lets a rare level dominate, ranks hide how far
an extreme value lies, ranges are set by one row. The detector therefore looks at each column in
four ways and averages the kernels, which is a kernel again (the cone property: Scholkopf, Smola &
Muller 1996, appendix B.7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from kpca_apps.engine.bandwidth import median_squared_distance
from kpca_apps.engine.kernel_algebra import OnColumns
from kpca_apps.engine.kernels import Kernel, MultiscaleRBF

__all__ = ["ColumnViews", "RawColumns", "ordinary_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Interquartile range of a standard normal variable.
IQR_OF_NORMAL = 1.349
# Order statistics kept a column to rank new values among.
MAX_RANK_KNOTS = 20_000
# Bandwidths exp(-3 D) and exp(-9 D), with D in units of the view's median squared distance.
GAMMA, POWERS = 3.0, (1, 3)
# A value this many robust standard deviations from the median is gross.
GROSS = 100.0


@dataclass(frozen=True)
class ColumnViews:
    """Scalings learned from training rows that turn columns into four views of them.

    Each view holds the varying columns, scaled in one way, and behind them the `as_is` columns.
    Every view is divided by the square root of the median squared distance between training rows,
    so that the same bandwidths serve all. Columns made of one source, such as a date's day and
    hour, weigh together as much as one column.

    Attributes
    ----------
    varying : (d,) int array
        Columns to be scaled; constant ones are left out.
    as_is : (a,) int array
        Columns appended to every view unscaled.
    mean, sd, median, spread, minimum, maximum : (d,) array
        Of the varying columns; spread is IQR / 1.349, or sd where the IQR is degenerate.
    asinh_mean, asinh_sd : (d,) array
        Of asinh((x - median) / spread).
    weight : (d,) array
        1 / sqrt(k) for each of k varying columns of one source.
    order_statistics : (k, d) array
        Sorted training values, evenly thinned to at most 20,000, to rank new values among.
    block_factors : (v,) array
        Brings the scaled block of each view to mean variance 1 where columns are appended to it.
    widths : (v,) array
        Square root of each view's median squared distance.
    """

    varying: IntArray
    as_is: IntArray
    mean: FloatArray
    sd: FloatArray
    median: FloatArray
    spread: FloatArray
    minimum: FloatArray
    maximum: FloatArray
    asinh_mean: FloatArray
    asinh_sd: FloatArray
    weight: FloatArray
    order_statistics: FloatArray
    block_factors: FloatArray
    widths: FloatArray

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        rows: IntArray,
        as_is: IntArray,
        rng: np.random.Generator,
        groups: Sequence[IntArray] = (),
    ) -> ColumnViews:
        """Learn the scalings from some rows of a table.

        Parameters
        ----------
        X : (n, columns) array
            The table.
        rows : (r,) int array
            Rows to learn from. A column that is constant among them but not in the table is
            scaled by the whole table.
        as_is : (a,) int array
            Columns to be taken as they come.
        rng : Generator
            Draws the rows whose median distance sets the widths.
        groups : sequence of int arrays
            Columns made of one source.

        Raises
        ------
        ValueError
            If no column varies.
        """
        scaled = np.setdiff1d(np.arange(X.shape[1]), as_is)
        varying = scaled[_varies(X[:, scaled])]
        if not varying.size and not np.any(np.ptp(X[:, as_is], axis=0) > 0):
            raise ValueError(f"All {X.shape[1]} columns are constant: there is nothing to learn.")
        used = X[rows]
        weight = np.ones(len(varying))
        for group in groups:
            of_group = np.isin(varying, group)
            weight[of_group] = 1.0 / np.sqrt(max(of_group.sum(), 1))
        n_views = 4 if varying.size else 1
        views = cls(
            varying=varying,
            as_is=as_is,
            weight=weight,
            block_factors=np.ones(n_views),
            widths=np.ones(n_views),
            **_column_scales(used[:, varying], X[:, varying]),
        )
        if as_is.size and varying.size:
            blocks = views._scaled(used[:, varying])
            variances = [(weight * block).var(axis=0).mean() for block in blocks]
            views = replace(views, block_factors=1.0 / np.sqrt(variances))
        squared = [median_squared_distance(view, rng) for view in views._views(used)]
        return replace(views, widths=np.sqrt(squared))

    @property
    def kernel(self) -> Kernel:
        """Mean over views of (u + u^3) / 2 with u = exp(-3 D_v), on the matrix of `transform`."""
        size = len(self.varying) + len(self.as_is)
        base = MultiscaleRBF(gamma=GAMMA, powers=POWERS)
        n_views = len(self.widths)
        if n_views == 1:
            return base
        kernel: Kernel = OnColumns(base, 0, size)
        for v in range(1, n_views):
            kernel = kernel + OnColumns(base, v * size, (v + 1) * size)
        return (1.0 / n_views) * kernel

    def transform(self, X: FloatArray) -> FloatArray:
        """Return all views of the rows side by side, shape (n, v (d + a))."""
        return np.hstack(
            [view / width for view, width in zip(self._views(X), self.widths, strict=True)]
        )

    def standardised(self, X: FloatArray) -> FloatArray:
        """Return all columns in their places: standardised, as they come, or 0 if constant."""
        out = np.zeros_like(X)
        out[:, self.varying] = self.weight * (X[:, self.varying] - self.mean) / self.sd
        out[:, self.as_is] = X[:, self.as_is]
        return out

    def _views(self, X: FloatArray) -> Iterator[FloatArray]:
        appended = X[:, self.as_is]
        for view, factor in zip(self._scaled(X[:, self.varying]), self.block_factors, strict=False):
            yield np.hstack([factor * self.weight * view, appended])

    def _scaled(self, columns: FloatArray) -> Iterator[FloatArray]:
        yield (columns - self.mean) / self.sd
        yield (np.arcsinh((columns - self.median) / self.spread) - self.asinh_mean) / self.asinh_sd
        yield (columns - self.mean) / (self.maximum - self.minimum)
        yield self._normal_scores(columns)

    def _normal_scores(self, columns: FloatArray) -> FloatArray:
        """Return normal scores of ranks among training rows, extended linearly beyond their range.

        A flat end instead of a line would make every value beyond the range look alike.
        """
        inside = np.clip(columns, self.minimum, self.maximum)
        n = len(self.order_statistics)
        ranks = np.empty_like(columns)
        for j in range(columns.shape[1]):
            below = np.searchsorted(self.order_statistics[:, j], inside[:, j], side="left")
            up_to = np.searchsorted(self.order_statistics[:, j], inside[:, j], side="right")
            ranks[:, j] = (below + up_to) / 2.0
        scores: FloatArray = ndtri((ranks + 0.5) / (n + 1.0)) + (columns - inside) / self.sd
        return scores


def ordinary_rows(X: FloatArray) -> IntArray:
    """Rows without a gross value; all rows where that would leave less than half of them.

    One value of 10^6 among values of 1 flattens the scale of its column for every other row; a
    first look at a table that may hold outliers does without such rows.
    """
    spread = _robust_sd(X)
    # Half the values may be the same: then the spread says nothing of the others.
    far = np.abs(X - np.median(X, axis=0)) > GROSS * np.where(spread > 0, spread, np.inf)
    ordinary = np.flatnonzero(~far.any(axis=1))
    return ordinary if 2 * len(ordinary) >= len(X) else np.arange(len(X))


def _robust_sd(columns: FloatArray) -> FloatArray:
    spread: FloatArray = np.subtract(*np.percentile(columns, [75, 25], axis=0)) / IQR_OF_NORMAL
    return spread


def _varies(columns: FloatArray) -> NDArray[np.bool_]:
    """Whether columns vary by more than rounding, which depends on the size of their mean."""
    varies: NDArray[np.bool_] = columns.std(axis=0) > 1e-12 * np.abs(columns.mean(axis=0))
    return varies


def _column_scales(used: FloatArray, everyone: FloatArray) -> dict[str, FloatArray]:
    """Return what the views need of each column, from the rows in use where it varies there."""
    size = min(len(used), MAX_RANK_KNOTS)
    scales = _scales(used, size)
    constant = ~_varies(used)
    if constant.any():
        of_everyone = _scales(everyone[:, constant], size)
        for name, values in scales.items():
            values[..., constant] = of_everyone[name]
    return scales


def _scales(columns: FloatArray, n_order_statistics: int) -> dict[str, FloatArray]:
    mean, sd = columns.mean(axis=0), columns.std(axis=0)
    median, spread = np.median(columns, axis=0), _robust_sd(columns)
    spread = np.where(spread < 1e-3 * sd, sd, spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A column without spread gives NaN here; `_column_scales` replaces all of it.
        bent = np.arcsinh((columns - median) / spread)
    kept = np.linspace(0, len(columns) - 1, n_order_statistics).round().astype(np.int64)
    return {
        "mean": mean,
        "sd": sd,
        "median": median,
        "spread": spread,
        "minimum": columns.min(axis=0),
        "maximum": columns.max(axis=0),
        "asinh_mean": bent.mean(axis=0),
        "asinh_sd": bent.std(axis=0),
        "order_statistics": np.sort(columns, axis=0)[kept],
    }


@dataclass(frozen=True)
class RawColumns:
    """One view, the columns as they come, for a kernel of the user's own.

    Attributes
    ----------
    kernel : Kernel
        The user's kernel.
    mean, sd : (d,) array
        For distances between rows when reasons are sought; sd is 1 where a column is constant.
    """

    kernel: Kernel
    mean: FloatArray
    sd: FloatArray

    @classmethod
    def fit(cls, X: FloatArray, kernel: Kernel) -> RawColumns:
        """Note mean and spread of the columns of `X`.

        Raises
        ------
        ValueError
            If no column varies.
        """
        if not _varies(X).any():
            raise ValueError(f"All {X.shape[1]} columns are constant: there is nothing to learn.")
        sd = X.std(axis=0)
        return cls(kernel, X.mean(axis=0), np.where(sd > 0, sd, 1.0))

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the rows themselves."""
        return X

    def standardised(self, X: FloatArray) -> FloatArray:
        """Return standardised columns."""
        out: FloatArray = (X - self.mean) / self.sd
        return out
