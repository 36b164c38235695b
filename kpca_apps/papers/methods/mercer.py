"""Is it a kernel? A check of symmetry and positive semi-definiteness on some rows."""

# k is an inner product in some feature space if and only if each of its Gram matrices is symmetric
# and positive semi-definite, k(x, y) = k(y, x) and sum_ij c_i k(x_i, x_j) c_j >= 0 for all n, x_1,
# ..., x_n and c; on a finite measure it is then a series with coefficients that are not negative
# (Mercer), whose terms are the coordinates of an image,
#     k(x, y) = sum_i lambda_i phi_i(x) phi_i(y),  phi(x) = (sqrt(lambda_i) phi_i(x))_i.
# No finite check proves that; one Gram matrix with a negative eigenvalue refutes it. Kernel PCA
# about the mean asks for less, a centred Gram matrix without negative eigenvalues: -|x - y|^2
# passes. Scholkopf, Smola and Muller (1996), eq. 55-60; Aguilera and Antonanzas (2019), eq. 1-2,
# where the set in definition 1 is meant to be not empty.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, eigvalsh

from kpca_apps.engine.kernels.base import as_number
from kpca_apps.engine.linalg.gram import centre_in_place
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread


@dataclass(frozen=True, eq=False)
class MercerCheck:
    """What a Gram matrix says about its kernel."""

    n: int
    asymmetry: float  # largest |K_ij - K_ji|, as a share of the largest |K_ij|
    eigenvalues: Matrix  # (n,), of the symmetric part of K, increasing
    centred_smallest: float  # smallest eigenvalue of the centred matrix
    witness: Matrix  # (n,), unit vector c with the least c'Kc: below 0, it refutes the kernel
    tolerance: float  # what counts as rounding, in the units of K
    precision: float  # of the numbers in K: 2.2e-16, or that of a coarser type

    @property
    def is_symmetric(self) -> bool:
        """Whether K_ij = K_ji up to rounding."""
        return self.asymmetry <= 50 * self.n * self.precision

    @property
    def is_psd(self) -> bool:
        """Whether K is symmetric and has no negative eigenvalue beyond rounding."""
        return self.is_symmetric and bool(self.eigenvalues[0] >= -self.tolerance)

    @property
    def is_conditionally_psd(self) -> bool:
        """Whether kernel PCA about the mean has distances: c'Kc >= 0 where c sums to 0."""
        return self.is_symmetric and self.centred_smallest >= -self.tolerance

    @property
    def negative_share(self) -> float:
        """Share of the negative eigenvalues in the sum of all moduli, in [0, 1]."""
        total = float(np.abs(self.eigenvalues).sum())
        return float(-self.eigenvalues[self.eigenvalues < 0.0].sum()) / total if total else 0.0

    def describe(self) -> str:
        """Return the verdict on one line."""
        if not self.is_symmetric:
            return f"not symmetric: K_ij and K_ji differ by {self.asymmetry:.2g} of the largest"
        if self.is_psd:
            return f"positive semi-definite on these {self.n} rows"
        kind = "conditionally positive semi-definite" if self.is_conditionally_psd else "indefinite"
        return f"{kind}: smallest eigenvalue {self.eigenvalues[0]:.4g} on these {self.n} rows"


def mercer_check(K: ArrayLike, *, tolerance: float | None = None) -> MercerCheck:
    """Check a Gram matrix (n, n) for symmetry and positive semi-definiteness.

    Negative eigenvalues down to minus the tolerance are rounding: n times the precision of K's own
    type times the largest eigenvalue by modulus if None.
    """
    matrix = _real_matrix(K)
    precision = float(np.finfo(matrix.dtype).eps)
    gram = matrix.astype(np.float64)
    if tolerance is not None:
        tolerance = as_number("tolerance", tolerance, at_least=0.0)
    largest = float(np.abs(gram).max())
    asymmetry = float(np.abs(gram - gram.T).max()) / largest if largest else 0.0
    gram = 0.5 * (gram + gram.T)
    with one_blas_thread():
        values = eigvalsh(gram, check_finite=False)
        _, witness = eigh(gram, check_finite=False, subset_by_index=(0, 0))
        centre_in_place(gram)
        centred = float(eigvalsh(gram, check_finite=False, subset_by_index=(0, 0))[0])
    if tolerance is None:
        tolerance = len(gram) * precision * float(np.abs(values).max())
    return MercerCheck(len(gram), asymmetry, values, centred, witness[:, 0], tolerance, precision)


def _real_matrix(K: ArrayLike) -> NDArray[np.floating]:
    """Return a square matrix of finite numbers, in its own type where that is a coarser one."""
    matrix = np.asarray(K)
    if np.iscomplexobj(matrix):
        raise ValueError("A Gram matrix holds real numbers; these are complex.")
    coarser = matrix.dtype in (np.float16, np.float32)
    gram: NDArray[np.floating] = matrix if coarser else matrix.astype(np.float64)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not gram.size:
        raise ValueError(f"A Gram matrix is square, n x n; got shape {gram.shape}.")
    if not np.isfinite(gram).all():
        raise ValueError("The Gram matrix holds values that are not finite numbers.")
    # No eigenvalue is larger than n entries, and a sum of moduli takes n of them.
    if float(np.abs(gram).max()) > float(np.finfo(np.float64).max) / (4.0 * gram.size):
        raise ValueError("The eigenvalues of the Gram matrix overflow: divide it by a number.")
    return gram
