"""What the detector makes of each row and sums over rows: values that can be sent to the rows.

Each holds all it knows as fields. Rows are encoded columns; their views are made block by block,
where the rows are, and never for a whole table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.blocks import map_row_blocks
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis
from kpca_apps.engine.subspace import KernelSubspace, Resolved
from kpca_apps.novelty.detector.leave_one_out import leave_row_out

__all__ = [
    "FeatureSums",
    "KernelDensity",
    "MeanRow",
    "MissedParts",
    "MomentSums",
    "NoveltyScores",
    "RowViews",
]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

BLOCK = 192
"""Rows compared with the landmarks at once: a multiple of 64 and of 24, as `blocks` explains."""


class RowViews(Protocol):
    """How encoded rows become what a kernel takes."""

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        ...

    def transform(self, X: FloatArray) -> FloatArray:
        """Return rows as the kernel takes them."""
        ...


@dataclass(frozen=True, eq=False)
class KernelDensity:
    """Kernel density of each row, weights' k_Z(x).

    Attributes
    ----------
    views : RowViews
    points : (m, d) array
        Z, as the kernel takes them.
    weights : (m,) array
    precision : {"float64", "float32"}
        Of kernel values and their products, here and below.
    """

    purpose: ClassVar[str] = "Finding the dense half"

    views: RowViews
    points: FloatArray
    weights: FloatArray
    precision: Resolved = "float64"

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the density of rows; those in use are treated like the others."""
        kernel_rows = self.views.kernel.against(self.points, self.precision)
        weights = self.weights.astype(self.precision)

        def density(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            return map_row_blocks(
                lambda block: kernel_rows(block) @ weights,
                self.views.transform(rows),
                block=BLOCK,
            )

        return density


@dataclass(frozen=True, eq=False)
class RowTotal:
    """Number of rows and sum of a vector a row, which add up."""

    n: int
    total: FloatArray

    def __add__(self, other: RowTotal) -> RowTotal:
        return RowTotal(self.n + other.n, self.total + other.total)

    @property
    def mean(self) -> FloatArray:
        """Mean vector, shape (m,)."""
        mean: FloatArray = self.total / self.n
        return mean


@dataclass(frozen=True, eq=False)
class MeanRow:
    """Sums of kernel values with points, for their mean over rows.

    Attributes
    ----------
    views : RowViews
    points : (m, d) array
        As the kernel takes them.
    """

    views: RowViews
    points: FloatArray

    def prepare(self) -> Callable[[FloatArray], RowTotal]:
        """Return the sums over rows."""
        kernel_rows = self.views.kernel.against(self.points)

        def totals(rows: FloatArray) -> RowTotal:
            inputs, total = self.views.transform(rows), np.zeros(len(self.points))
            for start in range(0, len(rows), BLOCK):
                values = kernel_rows(inputs[start : start + BLOCK])
                total += values.sum(axis=0)
            return RowTotal(len(rows), total)

        return totals


@dataclass(frozen=True, eq=False)
class MissedParts:
    """What the landmarks' span misses of each row, k(x, x) - |z|^2.

    Attributes
    ----------
    views : RowViews
    basis : LandmarkBasis
        Of the coordinates z.
    """

    purpose: ClassVar[str] = "Looking at what landmarks miss"

    views: RowViews
    basis: LandmarkBasis
    precision: Resolved = "float64"

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return what is missed of rows; those in use are treated like the others."""
        residuals = self.basis.residuals(self.precision)

        def missed(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            return map_row_blocks(residuals, self.views.transform(rows), block=BLOCK)

        return missed


@dataclass(frozen=True, eq=False)
class MomentSums:
    """Sums over rows, which add up.

    Attributes
    ----------
    covariance : CovarianceSums
        Of their feature vectors z, or of what these are linear in.
    norm : float
        Of k(x, x).
    """

    covariance: CovarianceSums
    norm: float

    def __add__(self, other: MomentSums) -> MomentSums:
        return MomentSums(self.covariance + other.covariance, self.norm + other.norm)

    def in_features(self, basis: LandmarkBasis, precision: Resolved) -> MomentSums:
        """Return the sums of z, once all rows are in."""
        return MomentSums(self.covariance.in_features(basis, precision), self.norm)

    @property
    def variance(self) -> float:
        """Total variance in feature space, mean k(x, x) - |zbar|^2."""
        mean = self.covariance.mean
        return self.typical_norm - float(mean @ mean)

    @property
    def typical_norm(self) -> float:
        """Mean of k(x, x)."""
        return self.norm / self.covariance.n

    @property
    def missed(self) -> float:
        """Sum over rows of what the landmarks' span misses of them, k(x, x) - |z|^2."""
        return self.norm - self.covariance.n * float(np.trace(self.covariance.second_moment))


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """Sums over rows of k(x, x), z and z z', complete after `MomentSums.in_features`.

    Attributes
    ----------
    views : RowViews
    basis : LandmarkBasis
        Of the coordinates z.
    shift : (p,) array
        What sums are taken about: made here, and sent along.
    """

    views: RowViews
    basis: LandmarkBasis
    precision: Resolved = "float64"
    shift: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        shift = CovarianceSums.shift_for(self.basis, self.precision)
        object.__setattr__(self, "shift", shift)

    def prepare(self) -> Callable[[FloatArray], MomentSums]:
        """Return the sums over rows."""
        kernel = self.basis.kernel
        sums = CovarianceSums.from_blocks(self.basis, self.shift, self.precision)

        def moments(rows: FloatArray) -> MomentSums:
            inputs = self.views.transform(rows)
            return MomentSums(sums(inputs), float(kernel.diagonal(inputs).sum()))

        return moments


@dataclass(frozen=True, eq=False)
class NoveltyScores:
    """Novelty of each row: its reconstruction error; that of rows in use as if left out.

    Attributes
    ----------
    views : RowViews
    subspace : KernelSubspace
    rho : float or None
        Absolute ridge of a soft cut; without it rows in use are scored like the others.
    """

    purpose: ClassVar[str] = "Scoring rows"

    views: RowViews
    subspace: KernelSubspace
    rho: float | None = None
    precision: Resolved = "float64"

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the novelty of rows, of which some are in use."""
        of_block = self._plain() if self.rho is None else self._both(self.rho)

        def scores(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            both = map_row_blocks(of_block, self.views.transform(rows), block=BLOCK)
            return np.maximum(np.where(in_use, both[:, -1], both[:, 0]), 0.0)

        return scores

    def _plain(self) -> Callable[[FloatArray], FloatArray]:
        errors = self.subspace.errors(self.precision)
        return lambda inputs: errors(inputs)[:, None]

    def _both(self, rho: float) -> Callable[[FloatArray], FloatArray]:
        """Return the map from rows to their error, and to what it is without them."""
        parts = self.subspace.error_parts(1.0 / (self.subspace.variances + rho), self.precision)

        def both(inputs: FloatArray) -> FloatArray:
            error, mahalanobis = parts(inputs)
            residual = np.maximum(error - rho * mahalanobis, 0.0)
            left_out = leave_row_out(residual, mahalanobis, rho, self.subspace.n)
            return np.column_stack([error, left_out])

        return both
