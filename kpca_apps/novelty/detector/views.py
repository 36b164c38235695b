"""Four views of the same columns, side by side in one matrix, for a mean of kernels over views.

No single scaling suits every column: standardising lets a rare level dominate, ranks hide how far
an extreme value lies, ranges are set by one row. The detector therefore looks at each column in
four ways and averages the kernels, which is a kernel again (the cone property: Scholkopf, Smola &
Muller 1996, appendix B.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.engine.blocks import BLOCK
from kpca_apps.engine.kernels import Kernel, MultiscaleRBF
from kpca_apps.engine.kernels.bandwidth import median_squared_distance
from kpca_apps.engine.kernels.base import OnColumns
from kpca_apps.engine.landmarks import uniform_landmarks
from kpca_apps.novelty.detector.column_scales import ColumnScales
from kpca_apps.novelty.magnitudes import mean_and_sd, varies

__all__ = ["ColumnViews", "RawColumns"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Bandwidths exp(-3 D) and exp(-9 D), with D in units of the view's median squared distance.
GAMMA, POWERS = 3.0, (1, 3)
# Rows whose median squared distance sets the width of a view.
WIDTH_ROWS = 500
# Rows, evenly drawn, whose variance the scaled block is brought to.
VARIANCE_ROWS = 10_000


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
    scales : ColumnScales
        Of the varying columns.
    weight : (d,) array
        1 / sqrt(k) for each of k varying columns of one source.
    block_factors : (v,) array
        Brings the scaled block of each view to mean variance 1 where columns are appended to it.
    widths : (v,) array
        Square root of each view's median squared distance.
    """

    varying: Annotated[IntArray, "d", Meta(ge=0)]
    as_is: Annotated[IntArray, "a", Meta(ge=0)]
    scales: ColumnScales
    weight: Annotated[FloatArray, "d"]
    block_factors: Annotated[FloatArray, "v"]
    widths: Annotated[FloatArray, "v"]

    def validate(self) -> None:
        """Refuse scales of other columns, and those that leave a row without a number."""
        scales = self.scales
        if len(scales.mean) != len(self.varying):
            raise ValueError(f"scales of {len(scales.mean)} columns")
        with np.errstate(all="ignore"):
            spreads = np.stack([scales.sd, scales.asinh_sd, scales.maximum - scales.minimum])
            factors = self._factors[:3] / spreads[: len(self._factors)]
            if not (np.isfinite(factors).all() and np.isfinite(1.0 / self.widths).all()):
                raise ValueError("scales too small to divide by")

    @property
    def _factors(self) -> FloatArray:
        """What the scaled columns of each view are multiplied by, shape (v, d)."""
        return (self.block_factors / self.widths)[:, None] * self.weight

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
        varying = scaled[varies(X[:, scaled])]
        if not varying.size and not varies(X[:, as_is]).any():
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
            scales=ColumnScales.fit(used[:, varying], X[:, varying]),
        )
        if as_is.size and varying.size:
            some = used[:: 1 + (len(used) - 1) // VARIANCE_ROWS]
            blocks = np.split(views.transform(some), n_views, axis=1)
            variances = np.array([block[:, : len(varying)].var(axis=0).mean() for block in blocks])
            # Numbers that are the same in all these rows keep the scale of the whole table.
            variances[variances == 0] = 1.0
            views = replace(views, block_factors=1.0 / np.sqrt(variances))
        seen = views.transform(used[uniform_landmarks(len(used), WIDTH_ROWS, rng)])
        squared = [median_squared_distance(view, rng) for view in np.split(seen, n_views, axis=1)]
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
        d, n_views = len(self.varying), len(self.widths)
        factors = self._factors
        views = np.empty((len(X), n_views, d + len(self.as_is)))
        for start in range(0, len(X), BLOCK):
            rows, out = X[start : start + BLOCK], views[start : start + BLOCK]
            out[:, :, d:] = rows[:, None, self.as_is] / self.widths[:, None]
            if d:
                self.scales.scaled(rows[:, self.varying], factors, out[:, :, :d])
        return views.reshape(len(X), n_views * views.shape[2])

    def standardised(self, X: FloatArray) -> FloatArray:
        """Return all columns in their places: standardised, as they come, or 0 if constant."""
        out = np.zeros_like(X)
        out[:, self.varying] = (
            self.weight * (X[:, self.varying] - self.scales.mean) / self.scales.sd
        )
        out[:, self.as_is] = X[:, self.as_is]
        return out


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
    mean: Annotated[FloatArray, "d"]
    sd: Annotated[FloatArray, "d", Meta(gt=0)]

    @classmethod
    def fit(cls, X: FloatArray, kernel: Kernel) -> RawColumns:
        """Note mean and spread of the columns of `X`.

        Raises
        ------
        ValueError
            If no column varies.
        """
        if not varies(X).any():
            raise ValueError(f"All {X.shape[1]} columns are constant: there is nothing to learn.")
        mean, sd = mean_and_sd(X)
        return cls(kernel, mean, np.where(varies(X), sd, 1.0))

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the rows themselves."""
        return X

    def standardised(self, X: FloatArray) -> FloatArray:
        """Return standardised columns."""
        out: FloatArray = (X - self.mean) / self.sd
        return out
