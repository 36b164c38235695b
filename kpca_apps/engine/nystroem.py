"""Nystrom kernel PCA: rows in the span of a few landmarks.

Rows become vectors z(x) = B' k_Z(x) in an orthonormal basis of the landmarks' span, with BB' the
inverse of the landmarks' Gram matrix. Inner products are those of the low-rank approximation

    k(x, y) ~ z(x).z(y) = k_Z(x)' K_ZZ^-1 k_Z(y).

A fit needs only the number of rows, the sum of z and the sum of z z', which can be added over
blocks, files and machines.

References
----------
.. [1] Williams and Seeger (2001), Using the Nystrom method to speed up kernel machines, NIPS 13.
.. [2] Hoffmann (2007), Kernel PCA for novelty detection, Pattern Recognition 40, 863-874.
.. [3] Aguilera and Antonanzas (2019), On kernel principal component analysis, section VII:
   "approximate approaches".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import blas, cholesky, eigh, lapack

from kpca_apps.engine.kernels import Kernel, KernelRows
from kpca_apps.engine.linalg.gram import gram_matrix, overflow, require_finite
from kpca_apps.engine.linalg.triangular import times_upper
from kpca_apps.engine.precision import smallest_eigenvalue
from kpca_apps.engine.rows import BLOCK, ArrayRows, RowSource, SampleRows, sum_row_blocks
from kpca_apps.engine.subspace import KernelSubspace, Resolved, component_signs
from kpca_apps.system.arrays import Mask, Matrix
from kpca_apps.system.blas import one_blas_thread

SHIFT_ROWS = 128  # number of landmarks whose mean is the shift


@dataclass(frozen=True, eq=False)
class LandmarkBasis:
    """An orthonormal basis of the landmarks' span: z(x) = B' k_Z(x)."""

    kernel: Kernel  # positive semi-definite
    points: Matrix  # the landmarks Z (m, d)
    transform: Matrix  # B (m, p), with B'K_mm B = I up to the jitter
    jitter: float = 0.0  # number added to the diagonal of K_mm
    triangular: bool = False  # whether B is upper triangular

    @classmethod
    def from_eigen(cls, kernel: Kernel, points: Matrix) -> LandmarkBasis:
        """Return B = U S^(-1/2) from K_mm = U S U', without eigenvalues below 1e-10 of the largest.

        Raises ValueError if there are no points or the kernel is indefinite.
        """
        # A threshold of 1e-6 would add 6e-4 to the reconstruction error.
        kernel.require_psd("The Nystrom method", "use method='exact'")
        if not len(points):
            raise ValueError("There are no landmarks: no row has length in feature space.")
        with one_blas_thread():
            values, vectors = eigh(gram_matrix(kernel, points), check_finite=False)
            keep = values > 1e-10 * max(values[-1], 0.0)
            transform = vectors[:, keep][:, ::-1] / np.sqrt(values[keep][::-1])
        return cls(kernel, points, np.ascontiguousarray(transform))

    @classmethod
    def from_cholesky(cls, kernel: Kernel, points: Matrix) -> LandmarkBasis:
        """Return B = L^-T from K_mm + jitter I = L L', so that z(x) = L^-1 k_m(x).

        The jitter starts at 1e-7 sqrt(m) times the mean k(z, z) and grows tenfold until the
        factorisation succeeds.
        """
        kernel.require_psd("The Nystrom method", "use method='exact'")
        with one_blas_thread():
            gram = gram_matrix(kernel, points)
            size = float(np.trace(gram)) / len(gram)
            jitter = 1e-7 * np.sqrt(len(gram)) * (size if size > 0.0 else 1.0)
            lower = None
            while lower is None:
                try:
                    lower = cholesky(
                        gram + jitter * np.eye(len(gram)), lower=True, check_finite=False
                    )
                except np.linalg.LinAlgError:
                    jitter *= 10.0
            inverse, _ = lapack.dtrtri(lower, lower=1)
        return cls(kernel, points, np.ascontiguousarray(inverse.T), float(jitter), triangular=True)

    def combine(self, columns: Matrix, *, transposed: bool = False) -> Matrix:
        """Return B C, or B' C, for C of shape ``(p, c)`` or ``(m, c)``."""
        if not self.triangular:
            return (self.transform.T if transposed else self.transform) @ columns
        # BLAS reads column-major and sees B' in the memory of B.
        product: Matrix = blas.dtrmm(
            1.0, self.transform.T, columns, lower=1, trans_a=0 if transposed else 1
        )
        return product

    def features(self, precision: Resolved = "float64") -> KernelRows:
        """Return the map from rows ``(b, d)`` to z, shape ``(b, p)``."""
        kernel_rows, product = self.kernel.against(self.points, precision), self.product(precision)
        return lambda rows: product(kernel_rows(rows))

    def product(self, precision: Resolved) -> Callable[[Matrix], Matrix]:
        """Return the map from kernel values ``(b, m)``, which it may overwrite, to z ``(b, p)``."""
        if self.triangular:
            return times_upper(self.transform, precision)
        transform = self.transform.astype(precision, copy=False)
        return lambda k: k @ transform

    @property
    def own_residuals(self) -> Matrix:
        """Residuals k(x, x) - |z|^2 of the landmarks ``(m,)``, caused by the jitter."""
        # With K = L L' - jI, z = L^-1 K e_i and k(x, x) - |z|^2 = j (1 - j |L^-1 e_i|^2).
        return np.asarray(self.jitter * (1.0 - self.jitter * (self.transform**2).sum(axis=1)))

    def residuals(self, precision: Resolved = "float64") -> Callable[[Matrix], Matrix]:
        """Return a map of rows ``(b, d)`` to squared distances ``(b,)`` from the basis's span."""
        features = self.features(precision)

        def residuals(rows: Matrix) -> Matrix:
            z = features(rows)
            return np.asarray(self.kernel.diagonal(rows) - np.einsum("ij,ij->i", z, z))

        return residuals


@dataclass(frozen=True, eq=False)
class CovarianceSums:
    """Sums over rows x, with features z, that determine the mean and covariance of z."""

    n: int  # number of rows
    total: Matrix  # (p,), sum of z - shift
    scatter: Matrix  # (p, p), sum of (z - shift)(z - shift)'
    shift: Matrix  # (p,), near the mean of z
    norm: float  # sum of k(x, x)

    @classmethod
    def of_rows(
        cls,
        basis: LandmarkBasis,
        rows: RowSource | Matrix,
        *,
        precision: Resolved = "float64",
        n_jobs: int | None = None,
    ) -> CovarianceSums:
        """Return the sums over n >= 1 rows; raise ValueError if the kernel overflows."""
        source = ArrayRows(rows, n_jobs=n_jobs) if isinstance(rows, np.ndarray) else rows
        function = FeatureSums(basis, precision)
        with np.errstate(over="ignore", invalid="ignore"):
            sums: CovarianceSums = source.sum(function)
        sums.require_finite(basis.kernel)
        return sums if function.is_of_features else sums.in_features(basis)

    @classmethod
    def of_features(
        cls,
        basis: LandmarkBasis,
        z: Matrix,
        lengths: Matrix,
        in_use: Mask,
        *,
        n_jobs: int | None = None,
    ) -> CovarianceSums:
        """Return the sums over rows in use, from z ``(n, p)`` and k(x, x) of all rows."""
        shift = z[np.flatnonzero(in_use)[:SHIFT_ROWS]].mean(axis=0).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            # Masking copies each block, so the copy may be overwritten.
            sums = sum_row_blocks(
                lambda block: cls.of_values(block, shift), z, in_use, n_jobs=n_jobs
            )
        sums = replace(sums, norm=float(lengths[in_use].sum()))
        sums.require_finite(basis.kernel)
        return sums

    @classmethod
    def of_values(cls, values: Matrix, shift: Matrix) -> CovarianceSums:
        """Return the sums over rows ``(n, p)``, which are overwritten; ``norm`` is 0."""
        values -= shift.astype(values.dtype)
        # Here numpy calls syrk, so the result is exactly symmetric.
        scatter = (values.T @ values).astype(np.float64, copy=False)
        total = values.sum(axis=0, dtype=np.float64)
        return cls(len(values), total, scatter, shift, norm=0.0)

    def require_finite(self, kernel: Kernel) -> None:
        """Raise ValueError if the kernel overflowed on a row."""
        # `norm`, the sum of k(x, x), bounds all kernel values; a row with NaN makes `total` NaN.
        if not (np.isfinite(self.norm) and np.isfinite(self.total).all()):
            # Rows outside the sample have not been checked for NaN.
            raise overflow(kernel, is_checked=False)

    def in_features(self, basis: LandmarkBasis) -> CovarianceSums:
        """Return sums of z = B' k_Z from the sums of k_Z."""
        B = basis.transform
        with one_blas_thread():
            scatter = basis.combine(basis.combine(self.scatter, transposed=True).T, transposed=True)
            return CovarianceSums(self.n, self.total @ B, scatter, self.shift @ B, self.norm)

    def __add__(self, other: CovarianceSums) -> CovarianceSums:
        if not np.array_equal(self.shift, other.shift):
            raise ValueError("Sums about different shifts cannot be added.")
        return CovarianceSums(
            self.n + other.n,
            self.total + other.total,
            self.scatter + other.scatter,
            self.shift,
            self.norm + other.norm,
        )

    @property
    def mean(self) -> Matrix:
        """Mean of z, shape ``(p,)``."""
        return np.asarray(self.shift + self.total / self.n)

    @property
    def covariance(self) -> Matrix:
        """Covariance of z with divisor n, shape ``(p, p)``."""
        drift = self.total / self.n
        return self.scatter / self.n - np.outer(drift, drift)

    @property
    def second_moment(self) -> Matrix:
        """Mean of z z', shape ``(p, p)``."""
        return self.covariance + np.outer(self.mean, self.mean)

    @property
    def explained(self) -> float:
        """Sum over rows of |z|^2, the squared length of a row's part in the landmarks' span."""
        drift, mean = self.total / self.n, self.mean
        return float(np.trace(self.scatter)) + self.n * float(mean @ mean - drift @ drift)

    @property
    def missed(self) -> float:
        """Sum over rows of k(x, x) - |z|^2, the squared length of a row's part outside the span."""
        return self.norm - self.explained


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """Picklable function that sums rows' features z, or their kernel values with landmarks."""

    # Relative to each direction's variance, sums of z z' (features z) have smaller rounding errors
    # than sums of k k' (kernel values k). In float32, if the map from k to z is not triangular, k
    # k' is summed nevertheless, which takes half the time.

    basis: LandmarkBasis
    precision: Resolved = "float64"
    # Pickled with the object, as another machine could compute `shift` with other rounding errors.
    shift: Matrix = field(init=False)

    def __post_init__(self) -> None:
        with one_blas_thread():
            values = self._values()(self.basis.points[:SHIFT_ROWS])
            # Round to the precision of the values.
            shift = values.mean(axis=0, dtype=np.float64).astype(self._sum_precision)
        object.__setattr__(self, "shift", shift.astype(np.float64))

    @property
    def is_of_features(self) -> bool:
        """Whether features z are summed, instead of kernel values with the landmarks."""
        return self.precision == "float64" or self.basis.triangular

    @property
    def _sum_precision(self) -> Resolved:
        return self.precision if self.is_of_features else "float64"

    def _values(self) -> KernelRows:
        """Return the map from rows to the values to sum."""
        basis, precision = self.basis, self.precision
        if self.is_of_features:
            return basis.features(precision)
        return basis.kernel.against(basis.points, precision)

    def prepare(self) -> Callable[[Matrix], CovarianceSums]:
        """Return the map from rows ``(b, d)`` to sums of their features or kernel values."""
        values, kernel, shift = self._values(), self.basis.kernel, self.shift

        def sums(rows: Matrix) -> CovarianceSums:
            values_out = np.empty((len(rows), len(shift)), self._sum_precision)
            for start in range(0, len(rows), BLOCK):
                values_out[start : start + BLOCK] = values(rows[start : start + BLOCK])
            return replace(
                CovarianceSums.of_values(values_out, shift), norm=float(kernel.diagonal(rows).sum())
            )

        return sums


@dataclass(frozen=True)
class Missed:
    """Estimate of how much of the rows' length in feature space is outside the landmarks' span."""

    n: int  # number of rows
    outside: float  # estimated number of non-zero rows that are not landmarks
    share: float  # mean share of these rows' squared length outside the span, in [0, 1]
    variance: float  # estimated largest variance of all rows in a direction outside the span

    @classmethod
    def of_rows(
        cls,
        basis: LandmarkBasis,
        X: SampleRows,
        *,
        rows: int = 1000,
        n_rows: int | None = None,
        with_variance: bool = True,
    ) -> Missed:
        """Estimate from at most ``rows`` rows of X how much of ``n_rows`` rows is outside the span.

        The variance, which needs a Gram matrix of the sample, is 0 unless ``with_variance``.
        """
        # The parts of sampled rows outside the span have the Gram matrix K - z z' (kernel values K,
        # features z). Its largest eigenvalue / sample size is the largest variance of these parts.
        n, drawn = n_rows or len(X), X[:: -(-len(X) // rows)]
        landmarks = {point.tobytes() for point in basis.points}
        is_no_landmark = [row.tobytes() not in landmarks for row in drawn]
        require_finite(basis.kernel, drawn)
        length = basis.kernel.diagonal(drawn)
        is_outside = (length > 0.0) & np.array(is_no_landmark)
        if not is_outside.any():
            return cls(n, 0.0, 0.0, 0.0)
        with one_blas_thread():
            z, largest = basis.features()(drawn[is_outside]), 0.0
            if with_variance:
                missed = gram_matrix(basis.kernel, drawn[is_outside]) - z @ z.T
                last = len(missed) - 1
                largest = eigh(missed, eigvals_only=True, subset_by_index=(last, last))[0]
        shares = 1.0 - np.einsum("ij,ij->i", z, z) / length[is_outside]
        return cls(
            n,
            n * float(is_outside.mean()),
            float(np.clip(shares, 0.0, 1.0).mean()),
            max(float(largest), 0.0) / len(drawn),
        )

    def __add__(self, other: Missed) -> Missed:
        n, outside = self.n + other.n, self.outside + other.outside
        shares = self.share * self.outside + other.share * other.outside
        return Missed(
            n,
            outside,
            shares / outside if outside else 0.0,
            (self.variance * self.n + other.variance * other.n) / n,
        )


def subspace_from_sums(
    basis: LandmarkBasis,
    sums: CovarianceSums,
    *,
    n_components: int | None = None,
    rho: float | None = None,
    center: bool = True,
    precision: Resolved = "float64",
) -> KernelSubspace:
    """Compute the principal subspace from sums over rows.

    By default all components are kept whose variance is correct to three digits. ``rho``, an
    absolute variance, keeps all components and applies a Tikhonov filter with gain
    variance / (variance + rho).
    """
    # With a Tikhonov filter the error is r(x) + rho (z - zbar)'A^-1(z - zbar), A = covariance + rho
    # I, and r the part outside the landmarks' span.
    with one_blas_thread():
        moment = sums.covariance if center else sums.second_moment
        variances, vectors = eigh(moment, check_finite=False)
        variances, vectors = variances[::-1], vectors[:, ::-1]
        length = sums.explained / sums.n  # the trace of the second moment
        largest = float(variances.max(initial=0.0))
        smallest = smallest_eigenvalue(largest, length, len(variances), precision)
        # With a Tikhonov filter, keep components without variance: they complete the span.
        q = len(variances) if rho is not None else int(np.count_nonzero(variances > smallest))
        if n_components is not None:
            q = min(q, n_components)
        weights = basis.combine(vectors[:, :q])
        signs = component_signs(weights)
        mean = sums.mean if center else np.zeros_like(sums.mean)
        subspace = KernelSubspace(
            kernel=basis.kernel,
            points=basis.points,
            weights=weights * signs,
            offset=(mean @ vectors[:, :q]) * signs,
            mean_weights=basis.transform @ mean,
            mean_norm=float(mean @ mean),
            variances=np.maximum(variances[:q], 0.0),
            n=sums.n,
            gain=np.ones(q),
        )
    return subspace if rho is None else subspace.with_soft_cut(rho)
