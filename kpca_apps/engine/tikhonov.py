"""A Tikhonov filter in the landmarks' span, by Cholesky factors: errors of rows without components.

A `KernelSubspace` with a soft cut gives the same errors, from eigenvectors. These cost ten times as
much as the factors here, and only projections need them.

What a row would score had the fit never seen it has a closed form, as a row of the mean and the
covariance and as a landmark. Symbols as in `TikhonovFilter`; in the coordinates t = U'y of a
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

    def errors(
        self, precision: Resolved = "float64"
    ) -> Callable[[Matrix, Matrix, BoolArray], Matrix]:
        """Return the map from z ``(b, p)`` and k(x, x) ``(b,)`` to errors, prepared once.

        The errors of rows that were fitted, marked ``(b,)``, are those of a fit without each.
        """
        of_z, rho, n = self.mahalanobis(precision), self.rho, self.n

        def errors(z: Matrix, lengths: Matrix, fitted: BoolArray) -> Matrix:
            residual = np.maximum(lengths - np.einsum("ij,ij->i", z, z), 0.0)
            mahalanobis = of_z(z)
            left_out = leave_row_out(residual, mahalanobis, rho, n)
            found = np.where(fitted, left_out, residual + rho * mahalanobis)
            return np.maximum(found, 0.0, out=found)

        return errors


def leave_row_out(residual: Matrix, mahalanobis: Matrix, rho: float, n: int) -> Matrix:
    """Scores of the training subset (r,), each row left out of mean and covariance, from r and M.

    With a_i = M_i / n and the total ridge n rho held fixed, Sherman & Morrison's formula gives
    s_i = r_i + n rho (n/(n-1))^2 a_i / (1 - n a_i / (n-1)), exactly.
    """
    a = mahalanobis / n
    c = n / (n - 1.0)
    scores: Matrix = residual + n * rho * c * c * a / (1.0 - c * a)
    return scores


def leave_landmark_out(
    subspace: KernelSubspace, rho: float, X: Matrix, landmarks: IntArray
) -> tuple[Matrix, Matrix]:
    """Residual and Mahalanobis square of rows (r, d), each with one landmark (r,) removed."""
    roots = 1.0 / np.sqrt(subspace.variances + rho)  # A^-1/2, which is diagonal
    t, error = subspace.project_and_error(X)
    residual = np.maximum(error - rho * (np.square(t) @ roots**2), 0.0)
    # W = B U, with all components kept, serves for B: B B' = K_mm^-1.
    rows = subspace.weights[landmarks]
    along = np.einsum("ij,ij->i", rows, t + subspace.offset)
    return without_direction(rows, along, residual, rows * roots, t * roots)


def without_direction(
    rows: Matrix, along: Matrix, residual: Matrix, whitened_rows: Matrix, whitened: Matrix
) -> tuple[Matrix, Matrix]:
    """Residual and Mahalanobis square of rows (r, .), each with one landmark removed.

    Of each: the row of B of its landmark, the product of that with z, r, and L^-1 times that row
    and times y. What a row holds along v, the unit direction that only the landmark provides, moves
    from the span to the residual, r + (v'z)^2, and A^-1 is restricted to the rest, M -
    (v'A^-1 y)^2 / (v'A^-1 v). For the landmark's own row the first is 1 / (K_mm^-1)_ii, the part of
    it that no other landmark explains.
    """
    # v is along row i of B, for B B' = K_mm^-1: it is orthogonal to the coordinates of every other
    # landmark, since B (B'K) = K^-1 K.
    lost = np.einsum("ij,ij->i", whitened_rows, whitened) ** 2
    lost /= np.einsum("ij,ij->i", whitened_rows, whitened_rows)
    mahalanobis = np.einsum("ij,ij->i", whitened, whitened) - lost
    moved: Matrix = along * along / np.einsum("ij,ij->i", rows, rows)
    return residual + moved, np.maximum(mahalanobis, 0.0)
