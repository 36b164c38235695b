"""The Gram matrix, built in blocks of rows and centred in place.

    K_ij = k(x_i, x_j) = <phi(x_i), phi(x_j)>,
    K~ = K - 1_n K - K 1_n + 1_n K 1_n = HKH,    (1_n)_ij = 1/n,  H = I - 1_n,

K~ is the Gram matrix of the centred feature vectors phi(x_i) - 1/n sum_j phi(x_j).

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, eq. 10, 23 and 44-49.
.. [2] Aguilera and Antonanzas (2019), On kernel principal component analysis, eq. 8-10.
.. [3] Course notes on kernel PCA, two sets: in Spanish, and in English with an algorithm in
   section 2.2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from kpca_apps.engine.kernels import Kernel, Recentred
from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.system.arrays import Matrix, Values
from kpca_apps.system.blas import one_blas_thread

# Up to FEW_ROWS rows, only the upper triangle is computed, in STRIPS strips of rows.
FEW_ROWS, STRIPS = 2_000, 8
LEAST_STRIP = 48


def gram_matrix(
    kernel: Kernel, X: Matrix, dtype: DTypeLike = np.float64, *, n_jobs: int | None = None
) -> Values:
    """Return K with K_ij = k(x_i, x_j); raise ValueError if values overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        if len(X) <= FEW_ROWS:
            gram = _by_strips(kernel, X, dtype)
        else:
            gram = map_row_blocks(kernel.against(X, dtype), X, n_jobs=n_jobs)
        finite = np.isfinite(gram.sum(axis=0)).all()
    if not finite:
        raise overflow(kernel)
    return gram


def _by_strips(kernel: Kernel, X: Matrix, dtype: DTypeLike) -> Values:
    n = len(X)
    gram, size = np.empty((n, n), dtype), max(-(-n // STRIPS), LEAST_STRIP)
    with one_blas_thread():
        for start in range(0, n, size):
            end = start + size
            strip = kernel.against(X[start:], dtype)(X[start:end])
            gram[start:end, start:] = strip
            gram[end:, start:end] = strip[:, size:].T
    return gram


def require_finite(kernel: Kernel, X: Matrix) -> None:
    """Raise ValueError if a positive semi-definite kernel overflows on X."""
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(kernel.diagonal(X)).all()
    if not finite:
        raise overflow(kernel)


def overflow(kernel: Kernel, *, is_checked: bool = True) -> ValueError:
    """Return the error for a kernel that overflows."""
    otherwise = "" if is_checked else ", and leave out rows with NaN"
    return ValueError(
        f"The kernel {kernel.describe()} overflows on these rows: scale the columns "
        f"first{otherwise}."
    )


def centre_in_place(K: Values) -> None:
    """Replace K by HKH, H = I - 11'/n, in place."""
    # K~_ij = K_ij - mean_l K_il - mean_l K_lj + mean K; Aguilera and Antonanzas (2019), eq. 9.
    means = K.mean(axis=0)
    K -= means
    K -= means[:, None]
    K += means.mean()


def about_mean(kernel: Kernel, X: Matrix) -> Kernel:
    """Return a kernel with the same centred Gram matrix and less rounding error."""
    # Inner products of rows far from 0 are large, and centring K cancels most of their digits. If
    # the kernel uses inner products or differences, the rows can be centred first instead.
    if not kernel.gains_from_centring:
        return kernel
    with np.errstate(over="ignore", invalid="ignore"):
        mean = X.mean(axis=0)
    return Recentred(kernel, tuple(mean)) if np.isfinite(mean).all() else kernel


def about_landmarks(kernel: Kernel, points: Matrix) -> Kernel:
    """Centre a kernel near the landmarks' mean, without reducing the landmarks' span."""
    # Centred on their mean m, the landmarks would span one direction less. The origin m - r m / |m|
    # keeps the span; r is the root mean squared distance from m.
    about = about_mean(kernel, points)
    if not isinstance(about, Recentred) or about is kernel:
        return kernel
    mean = np.array(about.origin)
    spread = np.hypot.reduce((points - mean).ravel()) / np.sqrt(len(points))
    distance = np.hypot.reduce(mean)
    if not 0.0 < spread < distance:
        return kernel
    return Recentred(kernel, tuple(mean - spread / distance * mean))


def about_origin(kernel: Kernel) -> Kernel:
    """Undo `about_mean` or `about_landmarks`: return the kernel of rows as they are."""
    return kernel.kernel if isinstance(kernel, Recentred) else kernel
