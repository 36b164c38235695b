"""Is it a kernel? A check of positive semi-definiteness on some rows."""

# k is an inner product in some feature space if and only if each of its Gram matrices is symmetric
# and positive semi-definite, k(x, y) = k(y, x) and sum_ij c_i k(x_i, x_j) c_j >= 0 for all n, x_1,
# ..., x_n and c; on a finite measure it is then a series with coefficients that are not negative
# (Mercer), whose terms are the coordinates of an image,
#     k(x, y) = sum_i lambda_i phi_i(x) phi_i(y),  phi(x) = (sqrt(lambda_i) phi_i(x))_i.
# No finite check proves that; one Gram matrix with a negative eigenvalue refutes it. Scholkopf,
# Smola and Muller (1996), eq. 55-60; Aguilera and Antonanzas (2019), eq. 1-2, where the set in
# definition 1 is meant to be not empty.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh

from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread


@dataclass(frozen=True, eq=False)
class MercerCheck:
    """What a Gram matrix says about its kernel."""

    eigenvalues: Matrix  # (n,), increasing

    @property
    def is_psd(self) -> bool:
        """Whether no eigenvalue is negative beyond rounding."""
        size = np.abs(self.eigenvalues).max()
        tolerance = len(self.eigenvalues) * np.finfo(np.float64).eps * size
        return bool(self.eigenvalues[0] >= -tolerance)

    @property
    def negative_share(self) -> float:
        """Share of the negative eigenvalues in the sum of all moduli, in [0, 1]."""
        size = np.abs(self.eigenvalues)
        return float(size[self.eigenvalues < 0.0].sum() / size.sum())

    def describe(self) -> str:
        """Return the verdict on one line."""
        rows = f"on these {len(self.eigenvalues)} rows"
        if self.is_psd:
            return f"positive semi-definite {rows}"
        return f"indefinite: smallest eigenvalue {self.eigenvalues[0]:.4g} {rows}"


def mercer_check(K: Matrix) -> MercerCheck:
    """Check a symmetric Gram matrix (n, n) for positive semi-definiteness."""
    with one_blas_thread():
        return MercerCheck(eigvalsh(K))
