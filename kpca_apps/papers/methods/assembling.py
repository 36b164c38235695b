"""From coefficients over points to the one fitted form, for methods that end in coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.gram import centre_in_place, gram_matrix
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.subspace import KernelSubspace, component_signs

__all__ = ["assembled", "both_grams"]

Matrix = NDArray[np.float64]


def both_grams(kernel: Kernel, X: Matrix) -> tuple[Matrix, Matrix]:
    """Return the Gram matrix of rows, and the centred one."""
    gram = gram_matrix(kernel, X)
    centred = gram.copy()
    centre_in_place(centred)
    return gram, centred


def assembled(
    kernel: Kernel,
    points: Matrix,
    gram: Matrix,
    coefficients: Matrix,
    mean_weights: Matrix,
    variances: Matrix,
    n: int,
) -> KernelSubspace:
    """Return the subspace of V_a = sum_j A_ja (phi(x_j) - mean).

    Parameters
    ----------
    kernel : Kernel
    points : ndarray of shape (p, d)
    gram : ndarray of shape (p, p)
        Kernel values between the points, not centred.
    coefficients : ndarray of shape (p, q)
        A, such that each V_a has unit length.
    mean_weights : ndarray of shape (p,)
        Coefficients of the mean; they sum to 1.
    variances : ndarray of shape (q,)
    n : int
        Rows the subspace stands for.
    """
    weights = coefficients - np.outer(mean_weights, coefficients.sum(axis=0))
    weights *= component_signs(weights)
    mean_rows = gram @ mean_weights
    return KernelSubspace(
        kernel=kernel,
        points=points,
        weights=weights,
        offset=mean_rows @ weights,
        mean_weights=mean_weights,
        mean_norm=float(mean_weights @ mean_rows),
        variances=variances,
        n=n,
        gain=np.ones(len(variances)),
    )
