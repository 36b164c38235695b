"""Leave-one-out scores in closed form: what a row would score had the model never seen it.

Symbols: z feature coordinates in the span of the landmarks, zbar and C their mean and covariance
over the n rows in use, A = C + rho I, y = z - zbar, M = y'A^-1 y, r the part of phi outside the
span. The soft reconstruction error of a row is r + rho M. With C = U diag(lambda) U', everything
here is written in the coordinates t = U'y of a `KernelSubspace`, where A is diagonal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["RIDGES", "landmark_directions", "leave_landmark_out", "leave_row_out"]

FloatArray = NDArray[np.float64]

RIDGES = (1e-12, 1e12)
"""Least and largest ridge, as a share of the variance: below, it is lost in rounding; above, the
variance is lost beside it."""


def leave_row_out(residual: FloatArray, mahalanobis: FloatArray, rho: float, n: int) -> FloatArray:
    """Scores of rows in use, each left out of mean and covariance.

    With a_i = M_i / n and the total ridge n rho held fixed, Sherman & Morrison's formula gives
    s_i = r_i + n rho (n/(n-1))^2 a_i / (1 - n a_i / (n-1)), exactly.

    Parameters
    ----------
    residual, mahalanobis : (r,) array
        r_i and M_i of the rows.
    rho : float
        Ridge of the soft cut.
    n : int
        Rows in use, at least 2.

    Returns
    -------
    (r,) array
        Leave-one-out scores.
    """
    a = mahalanobis / n
    c = n / (n - 1.0)
    scores: FloatArray = residual + n * rho * c * c * a / (1.0 - c * a)
    return scores


def landmark_directions(weights: FloatArray) -> FloatArray:
    """Return the unit direction of the span that only landmark i provides, one row a landmark.

    `weights` is W = B U of shape (m, m) with all m components kept and B B' = K_mm^-1. Row i of W
    is orthogonal to the coordinates of every other landmark, since W (U'B'K) = K^-1 K.

    Returns
    -------
    (m, m) array
        Row i is v_i in the coordinates t.
    """
    directions: FloatArray = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    return directions


def leave_landmark_out(
    residual: FloatArray,
    t: FloatArray,
    directions: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Residual and Mahalanobis square of rows once a landmark is taken out of the span.

    What a row holds along v moves from the span to the residual, r + (v'z)^2, and A^-1 is
    restricted to the rest, M - (v'A^-1 y)^2 / (v'A^-1 v). For the landmark's own row the first is
    1 / (K_mm^-1)_ii, the part of it that no other landmark explains.

    Parameters
    ----------
    residual : (r,) array
        r of each row.
    t : (r, m) array
        Its coordinates U'(z - zbar).
    directions : (r, m) array
        v of the landmark to leave out for that row.
    mean : (m,) array
        U'zbar.
    precision : (m,) array
        Diagonal of A^-1 in these coordinates, 1 / (lambda + rho).

    Returns
    -------
    residual, mahalanobis : (r,) array
        Both without the landmark.
    """
    along = np.einsum("ij,ij->i", directions, t + mean)
    scaled = directions * precision
    full = np.einsum("ij,j,ij->i", t, precision, t)
    lost = np.einsum("ij,ij->i", scaled, t) ** 2 / np.einsum("ij,ij->i", scaled, directions)
    return residual + along * along, np.maximum(full - lost, 0.0)
