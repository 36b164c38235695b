"""Opponent colours: one plane of luminance and two of colour, by a rotation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["OPPONENT", "from_opponent", "noise_in_opponent", "to_opponent"]

# Rows: luminance, red against blue, green against both. Orthonormal, so that white noise of one
# deviation in red, green and blue is white noise of the same deviation in each of the three.
OPPONENT = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
OPPONENT /= np.linalg.norm(OPPONENT, axis=1, keepdims=True)


def to_opponent(rgb: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return luminance and two colour differences.

    Parameters
    ----------
    rgb : ndarray of shape (3, h, w)
        Red, green and blue planes.

    Returns
    -------
    ndarray of shape (3, h, w)
        Luminance is the sum of the three planes over the root of 3.

    Examples
    --------
    >>> grey = np.full((3, 1, 1), 2.0, np.float32)
    >>> [f"{value:.3f}" for value in to_opponent(grey).ravel()]
    ['3.464', '0.000', '0.000']
    """
    return _mixed(OPPONENT, rgb)


def from_opponent(planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the red, green and blue of which `to_opponent` made the planes.

    Parameters
    ----------
    planes : ndarray of shape (3, h, w)

    Returns
    -------
    ndarray of shape (3, h, w)
    """
    return _mixed(OPPONENT.T, planes)


def noise_in_opponent(sigma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the deviations of independent noise in the opponent planes.

    Parameters
    ----------
    sigma : ndarray of shape (3,)
        Deviation of the noise in red, green and blue.

    Returns
    -------
    ndarray of shape (3,)
        All alike where red, green and blue are.

    Examples
    --------
    >>> noise_in_opponent(np.array([3.0, 3.0, 3.0])).round(6).tolist()
    [3.0, 3.0, 3.0]
    """
    return np.asarray(np.sqrt(OPPONENT**2 @ np.square(sigma)))


def _mixed(matrix: NDArray[np.float64], planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return sums of planes with the weights in each row, added in one order for all pixels."""
    mixed = np.empty_like(planes)
    for out, row in zip(mixed, matrix.astype(np.float32), strict=True):
        np.multiply(planes[0], row[0], out=out)
        out += row[1] * planes[1]
        out += row[2] * planes[2]
    return mixed
