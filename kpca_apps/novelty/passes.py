"""What the detector makes of each row and sums over rows: values that can be sent to the rows.

Each holds all it knows as fields. Rows are encoded columns; their views are made block by block,
where the rows are, and never for a whole table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.blocks import map_row_blocks
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.novelty.leave_one_out import leave_row_out

__all__ = ["FeatureSums", "KernelDensity", "MomentSums", "NoveltyScores", "RowViews"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


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
    """

    views: RowViews
    points: FloatArray
    weights: FloatArray

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the density of rows; those in use are treated like the others."""
        kernel_rows = self.views.kernel.against(self.points)

        def density(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            features = self.views.transform(rows)
            return map_row_blocks(lambda block: kernel_rows(block) @ self.weights, features)

        return density


@dataclass(frozen=True)
class MomentSums:
    """Sums over rows, which add up.

    Attributes
    ----------
    covariance : CovarianceSums
        Of their feature vectors z.
    norm : float
        Of k(x, x).
    """

    covariance: CovarianceSums
    norm: float

    def __add__(self, other: MomentSums) -> MomentSums:
        return MomentSums(self.covariance + other.covariance, self.norm + other.norm)

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
    """Sums over rows of k(x, x), z and z z'.

    Attributes
    ----------
    views : RowViews
    basis : LandmarkBasis
        Of the coordinates z.
    """

    views: RowViews
    basis: LandmarkBasis

    def prepare(self) -> Callable[[FloatArray], MomentSums]:
        """Return the sums over rows."""
        features, kernel = self.basis.features(), self.basis.kernel
        shift = features(self.basis.points).mean(axis=0)

        def sums(rows: FloatArray) -> MomentSums:
            inputs = self.views.transform(rows)
            covariance = CovarianceSums.of_features(features(inputs), shift)
            return MomentSums(covariance, float(kernel.diagonal(inputs).sum()))

        return sums


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

    views: RowViews
    subspace: KernelSubspace
    rho: float | None = None

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Return the novelty of rows, of which some are in use."""
        subspace, rho = self.subspace, self.rho

        def plain(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            return subspace.reconstruction_error(self.views.transform(rows))

        def left_out(rows: FloatArray, in_use: BoolArray) -> FloatArray:
            assert rho is not None
            t, error = subspace.project_and_error(self.views.transform(rows))
            mahalanobis = (t * t) @ (1.0 / (subspace.variances + rho))
            residual = np.maximum(error - rho * mahalanobis, 0.0)
            alone = leave_row_out(residual, mahalanobis, rho, subspace.n)
            return np.where(in_use, alone, error)

        return plain if rho is None else left_out
