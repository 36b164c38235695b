"""Bounds on rounding errors of a fit, derived from its formulas, for numerical tests.

All bounds follow from one for kernel values, |fl k(x, y) - k(x, y)| <= delta sqrt(k(x, x) k(y, y)).
"""

import numpy as np

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.kernels.base import FAR
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.system.arrays import Matrix

LARGEST_POWER = 5  # highest power of an exponential or inner product in `examples`


def of_kernel(kernel: Kernel, d: int, dtype: type = np.float64) -> float:
    """Return the relative error delta of a kernel on d columns."""
    # The inner product of rows x and y has a rounding error of at most (d + 4) eps |x| |y|.
    # Raising the product to a power multiplies the relative error by that power.
    eps = float(np.finfo(dtype).eps)
    of_product = LARGEST_POWER * (d + 4) * eps
    if kernel.gains_from_centring is not False and not kernel.falls_with_distance:
        if not any(part.falls_with_distance for part in kernel.parts):
            return of_product
    # Let h and k be half the squared lengths of two scaled rows, as in `view_exponents`. The
    # exponent of their kernel value is a sum of d + 2 products, with a rounding error of at most
    # (2 d + 7) eps (2 h + 2 k). If h and k both exceed FAR, the exponent is computed from
    # differences of the rows; if only one of them does, the kernel value falls faster than this
    # bound grows.
    return LARGEST_POWER * (2 * d + 7) * eps * 4.2 * FAR[np.dtype(dtype)] + of_product


def of_errors(subspace: KernelSubspace, X: Matrix, delta: float) -> Matrix:
    """Return bounds (n,) on the rounding errors of reconstruction errors."""
    # The error (see `KernelSubspace`) is a sum of kernel values and of their products with weights.
    # Kernel values and products of p terms are rounded, and components have length 1 and are
    # orthogonal only up to the residuals of the eigenvectors.
    kernel, T = subspace.kernel, np.abs(subspace.project(X))
    p, eps = len(subspace.points), float(np.finfo(np.float64).eps)
    diagonal = kernel.diagonal(subspace.points)
    sizes, own = np.sqrt(diagonal), np.sqrt(kernel.diagonal(X))
    length = own + (T @ np.abs(subspace.weights).T + np.abs(subspace.mean_weights)) @ sizes
    products = 2.0 * (delta + (p + 4) * eps) * length**2
    defect = of_gram(float(diagonal.sum()), p, delta)
    found: Matrix = products + defect * (T / np.sqrt(p * subspace.variances)).sum(axis=1) ** 2
    return found


def of_gram(trace: float, n: int, delta: float) -> float:
    """Return a bound on the 2-norm error of a centred Gram matrix and its eigenpairs."""
    # Rounding errors of at most delta sqrt(K_ii K_jj) in the entries of the Gram matrix K have a
    # Frobenius norm of at most delta trace(K); solvers are backward stable to n eps |K|.
    return (delta + 4 * n * float(np.finfo(np.float64).eps)) * trace


def widest_gap(values: Matrix) -> tuple[int, float]:
    """Return how many eigenvalues precede the widest gap (between them or to 0), and its width.

    Projections on that many components are as well determined as possible.
    """
    gaps = -np.diff(np.append(values, 0.0))
    q = int(np.argmax(gaps))
    return q + 1, float(gaps[q])


def of_projection(distance: Matrix, moved: float, gap: float) -> Matrix:
    """Return bounds on the change of errors if the Gram matrix changes by `moved` in the 2-norm.

    ``distance`` holds the rows' squared distances from the mean, the largest possible errors.
    """
    # Davis and Kahan: the projector changes by at most min(2 moved / gap, 1).
    turn = min(2.0 * moved / gap, 1.0) if gap > 0.0 else 1.0
    found: Matrix = 2.0 * turn * distance
    return found
