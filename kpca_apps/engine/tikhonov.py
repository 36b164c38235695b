"""Tikhonov filter in the landmarks' span, by Cholesky factors.

A `KernelSubspace` with a soft cut gives the same errors from eigenvectors, which cost ten times as
much as Cholesky factors and are needed only for projections.

Leave-one-out errors have a closed form: for a row left out of mean and covariance, and for a row
left out of the landmarks. Symbols are those of `TikhonovFilter`; in the coordinates t = U'y of a
`KernelSubspace`, with C = U diag(lambda) U', the matrix A is diagonal.

References
----------
Rudi, De Vito, Verri & Odone (2017), Regularized kernel algorithms for support estimation,
Frontiers in Applied Mathematics and Statistics 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, eigh, lapack, qr

from kpca_apps.engine.kernels.base import squared_lengths
from kpca_apps.engine.linalg.triangular import times_upper
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis
from kpca_apps.engine.subspace import KernelSubspace, Resolved
from kpca_apps.system.arrays import BoolArray, IntArray, Matrix
from kpca_apps.system.blas import one_blas_thread


@dataclass(frozen=True, eq=False)
class TikhonovFilter:
    """The reconstruction error of a row under a Tikhonov filter, split as r + rho M.

    ::

        z = B' k_Z(x),  y = z - zbar,  A = C + rho I = L L'
        r = k(x,x) - |z|^2    squared distance from the landmarks' span
        M = |L^-1 y|^2        a squared Mahalanobis distance

    with zbar and C the mean and covariance of z over n rows.
    """

    basis: LandmarkBasis  # B
    mean: Matrix  # zbar (p,)
    whitening: Matrix  # (p, p): inverse of L', with L L' = C + rho I; upper triangular
    rho: float
    n: int

    @classmethod
    def of_sums(cls, basis: LandmarkBasis, sums: CovarianceSums, rho: float) -> TikhonovFilter:
        """Return the filter from sums over rows and a ridge rho > 0, an absolute variance."""
        with one_blas_thread():
            covariance = sums.covariance
            ridged = covariance.copy()
            ridged.flat[:: len(ridged) + 1] += rho
            try:
                lower = cholesky(ridged, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                # Rounding made an eigenvalue less than -rho: clip negative eigenvalues to 0.
                variances, vectors = eigh(covariance, check_finite=False)
                roots = np.sqrt(np.maximum(variances, 0.0) + rho)
                (upper,) = qr((vectors * roots).T, mode="r", check_finite=False)
                lower = upper.T
            inverse, _ = lapack.dtrtri(lower, lower=1)
        return cls(basis, sums.mean, np.ascontiguousarray(inverse.T), rho, sums.n)

    def whitened(self, precision: Resolved = "float64") -> Callable[[Matrix], Matrix]:
        """Return the map from rows v ``(b, p)``, which are overwritten, to L^-1 v."""
        return times_upper(self.whitening, precision)

    def mahalanobis(self, precision: Resolved = "float64") -> Callable[[Matrix], Matrix]:
        """Return the map from rows z ``(b, p)`` to squared Mahalanobis distances M ``(b,)``."""
        whitened, mean = self.whitened(precision), self.mean.astype(precision)

        def squares(z: Matrix) -> Matrix:
            y = whitened(z - mean)
            return np.asarray(squared_lengths(y).astype(np.float64, copy=False))

        return squares

    def errors(
        self, precision: Resolved = "float64"
    ) -> Callable[[Matrix, Matrix, BoolArray], Matrix]:
        """Return the map (z, k(x, x), fitted) -> errors, leave-one-out errors for fitted rows."""
        of_z, rho, n = self.mahalanobis(precision), self.rho, self.n

        def errors(z: Matrix, lengths: Matrix, fitted: BoolArray) -> Matrix:
            residual = np.maximum(lengths - np.einsum("ij,ij->i", z, z), 0.0)
            mahalanobis = of_z(z)
            left_out = leave_row_out(residual, mahalanobis, rho, n)
            squares_out = np.where(fitted, left_out, residual + rho * mahalanobis)
            return np.maximum(squares_out, 0.0, out=squares_out)

        return errors


def leave_row_out(residual: Matrix, mahalanobis: Matrix, rho: float, n: int) -> Matrix:
    """Return leave-one-out errors (b,) of training rows.

    With a_i = M_i / n and the total ridge n rho fixed, Sherman & Morrison's formula gives exactly
    s_i = r_i + n rho (n/(n-1))^2 a_i / (1 - n a_i / (n-1)).
    """
    a = mahalanobis / n
    c = n / (n - 1.0)
    return np.asarray(residual + n * rho * c * c * a / (1.0 - c * a))


def leave_landmark_out(
    subspace: KernelSubspace, rho: float, X: Matrix, landmarks: IntArray
) -> tuple[Matrix, Matrix]:
    """Return r and M of the error r + rho M for b rows, each without its own landmark (b,)."""
    roots = 1.0 / np.sqrt(subspace.variances + rho)  # A^-1/2, which is diagonal
    t, error = subspace.project_and_error(X)
    residual = np.maximum(error - rho * (np.square(t) @ roots**2), 0.0)
    # If all components are kept, the weights W = B U can replace B, as W W' = B B' = K_mm^-1.
    rows = subspace.weights[landmarks]
    along = np.einsum("ij,ij->i", rows, t + subspace.offset)
    return without_direction(rows, along, residual, rows * roots, t * roots)


def without_direction(
    rows: Matrix, along: Matrix, residual: Matrix, whitened_rows: Matrix, whitened: Matrix
) -> tuple[Matrix, Matrix]:
    """Return r and M of the error r + rho M for b rows, each after one landmark is removed.

    The arguments, per row: the landmark's row of B; the product of that row with z; r; L^-1 times
    that row; and L^-1 y. The part of a row along v, the unit direction that only the landmark
    provides, moves from the span to the residual, r + (v'z)^2, and M falls by
    (v'A^-1 y)^2 / (v'A^-1 v).
    """
    # v is parallel to row i of B, for landmark i: since B B' = K_mm^-1, B (B'K_mm) is the identity,
    # so row i is orthogonal to the coordinates B'k_j of every other landmark j.
    lost = np.einsum("ij,ij->i", whitened_rows, whitened) ** 2
    lost /= np.einsum("ij,ij->i", whitened_rows, whitened_rows)
    mahalanobis = np.einsum("ij,ij->i", whitened, whitened) - lost
    moved: Matrix = along * along / np.einsum("ij,ij->i", rows, rows)
    return residual + moved, np.maximum(mahalanobis, 0.0)
