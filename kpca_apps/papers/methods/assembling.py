"""From coefficients over points to the one fitted form, for methods that end in coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.linalg.gram import centre_in_place, gram_matrix
from kpca_apps.engine.subspace import KernelSubspace, component_signs

__all__ = ["assembled", "both_grams", "check_count", "variance_floor"]

Matrix = NDArray[np.float64]


def both_grams(kernel: Kernel, X: Matrix) -> tuple[Matrix, Matrix]:
    """Return the Gram matrix of rows, and the centred one."""
    gram = gram_matrix(kernel, X)
    centred = gram.copy()
    centre_in_place(centred)
    return gram, centred


def variance_floor(gram: Matrix, centred: Matrix) -> float:
    """Return what rounding may leave of an eigenvalue of the centred Gram matrix.

    Raises
    ------
    ValueError
        If the rows have no variance beyond it: they are all one point of feature space.
    """
    floor = len(gram) * float(np.finfo(np.float64).eps) * float(np.abs(gram).max(initial=0.0))
    if float(np.trace(centred)) <= len(gram) * floor:
        raise ValueError("The rows have no variance in feature space: they have no components.")
    return floor


def check_count(name: str, value: int, most: int, *, least: int = 1) -> None:
    """Raise ValueError unless a number of rows or components lies in a range."""
    if not least <= value <= most:
        raise ValueError(f"{name} must be in [{least}, {most}] for these rows, got {value}.")


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
