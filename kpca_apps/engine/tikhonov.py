"""A Tikhonov filter in the landmarks' span, by Cholesky factors: errors of rows without components.

A `KernelSubspace` with a soft cut gives the same errors, from eigenvectors. These cost ten times as
much as the factors here, and only projections need them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, eigh, lapack, qr

from kpca_apps.engine.kernels.base import squared_lengths
from kpca_apps.engine.linalg.triangular import times_upper
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis
from kpca_apps.engine.subspace import Resolved
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread


@dataclass(frozen=True, eq=False)
class TikhonovFilter:
    """The soft reconstruction error of a row, in parts, as r + rho M.

    ::

        z = B' k_Z(x),  y = z - zbar,  A = C + rho I = L L'
        r = k(x,x) - |z|^2    what lies outside the landmarks' span
        M = |L^-1 y|^2        a squared Mahalanobis distance

    with zbar and C the mean and covariance of z over n rows.
    """

    basis: LandmarkBasis  # B
    mean: Matrix  # zbar (p,)
    whitening: Matrix  # L^-T (p, p), upper triangular
    rho: float
    n: int

    @classmethod
    def of_sums(cls, basis: LandmarkBasis, sums: CovarianceSums, rho: float) -> TikhonovFilter:
        """Make it of sums over rows, and an absolute variance rho > 0."""
        with one_blas_thread():
            covariance = sums.covariance
            ridged = covariance.copy()
            ridged.flat[:: len(ridged) + 1] += rho
            try:
                lower = cholesky(ridged, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                # Rounding has left eigenvalues below -rho, which are none of a covariance.
                variances, vectors = eigh(covariance, check_finite=False)
                roots = np.sqrt(np.maximum(variances, 0.0) + rho)
                (upper,) = qr((vectors * roots).T, mode="r", check_finite=False)
                lower = upper.T
            inverse, _ = lapack.dtrtri(lower, lower=1)
        return cls(basis, sums.mean, np.ascontiguousarray(inverse.T), rho, sums.n)

    def whitened(self, precision: Resolved = "float64") -> Callable[[Matrix], Matrix]:
        """Return the map from rows v ``(b, p)`` to L^-1 v, which are written over."""
        return times_upper(self.whitening, precision)

    def mahalanobis(self, precision: Resolved = "float64") -> Callable[[Matrix], Matrix]:
        """Return the map from rows z ``(b, p)`` to M ``(b,)``, prepared once."""
        whitened, mean = self.whitened(precision), self.mean.astype(precision)

        def squares(z: Matrix) -> Matrix:
            y = whitened(z - mean)
            found: Matrix = squared_lengths(y).astype(np.float64, copy=False)
            return found

        return squares
