"""Directions of the kernel (x.y)^2 through few points, without loss.

(x.y)^2 is an inner product of symmetric matrices, phi(x) = xx'. What is expanded over points is
such a matrix, and its eigenvectors are points of input space:

    V = sum_i alpha_i phi(x_i),  S = sum_i alpha_i x_i x_i' = sum_j beta_j u_j u_j',
    V~ = sum_j beta_j phi(u_j),  rho = |V - V~|^2 = 0,

with at most as many u_j as there are columns, however many rows there are.

References
----------
.. [1] Scholkopf, Smola and Muller (1996), Nonlinear component analysis as a kernel eigenvalue
   problem, MPI technical report 44, section 4.4, eq. 25-27.
.. [2] Burges (1996), Simplified support vector decision rules, ICML 1996, 71-77.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.blocks import one_blas_thread
from kpca_apps.engine.eigen import significant
from kpca_apps.engine.kernels import Kernel, Polynomial
from kpca_apps.engine.precision import smallest_eigenvalue

__all__ = ["is_square", "square_expansion"]

Matrix = NDArray[np.float64]


def is_square(kernel: Kernel) -> bool:
    """Return whether a kernel is (x.y)^2, but for a factor.

    Examples
    --------
    >>> is_square(Polynomial(2, 0.5)), is_square(Polynomial(2, 0.5, 1.0))
    (True, False)
    """
    return isinstance(kernel, Polynomial) and kernel.degree == 2 and kernel.coef0 == 0.0


def square_expansion(points: Matrix, alpha: Matrix) -> tuple[Matrix, Matrix]:
    """Return u_j and beta_j with sum_j beta_j (u_j.y)^2 = sum_i alpha_i (x_i.y)^2 for every y.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        x_i.
    alpha : ndarray of shape (n,)

    Returns
    -------
    directions : ndarray of shape (m, d)
        u_j, orthonormal; m <= d of them, those whose beta is not rounding.
    beta : ndarray of shape (m,)
        By decreasing modulus.

    Examples
    --------
    >>> points = np.array([[1.0, 1.0], [1.0, -1.0], [0.0, 2.0]])
    >>> directions, beta = square_expansion(points, np.array([1.0, 1.0, 1.0]))
    >>> np.abs(directions), beta.round(6)
    (array([[0., 1.],
           [1., 0.]]), array([6., 2.]))
    """
    with one_blas_thread():
        beta, columns = np.linalg.eigh((points.T * alpha) @ points)
    order = np.argsort(-np.abs(beta), kind="stable")
    beta, directions = beta[order], columns.T[order]
    size = np.abs(beta)
    smallest = smallest_eigenvalue(float(size[0]), float(size.sum()), len(beta), "float64")
    keep = significant(beta, smallest, by_modulus=True)
    return directions[keep], beta[keep]
