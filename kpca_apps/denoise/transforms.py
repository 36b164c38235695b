"""Transforms that make Poisson and multiplicative noise nearly Gaussian, and the ways back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import rank_filter
from scipy.special import polygamma

__all__ = [
    "anscombe",
    "inverse_anscombe",
    "lift_specks",
    "log_of_speckle",
    "speckle_from_log",
    "speckle_log_moments",
]

# Mean of the Anscombe transform of a Poisson count of mean 0.
ANSCOMBE_OF_NOTHING = 2.0 * np.sqrt(0.375)
SPECK = 1.5  # deviations below the neighbours: above 1 no mean is off by a percent
AROUND = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
FAINTEST = 1e-3  # times the mean: keeps the logarithm of a dark pixel finite


def anscombe(counts: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the Anscombe transform of Poisson counts: noise of deviation about 1.

    Parameters
    ----------
    counts : ndarray
        Photon counts. Below 0, where a background was subtracted from some, the transform goes on
        as the straight line that touches it at 0.

    Returns
    -------
    ndarray of the same shape, float64

    References
    ----------
    F. J. Anscombe (1948), "The transformation of Poisson, binomial and negative-binomial data",
    Biometrika 35, eq. 1.2.

    Examples
    --------
    >>> anscombe(np.array([0.0, 3.625])).round(3).tolist()
    [1.225, 4.0]
    """
    values = np.asarray(counts, np.float64)
    roots = 2.0 * np.sqrt(np.maximum(values, 0.0) + 0.375)
    return np.asarray(roots + np.minimum(values, 0.0) / np.sqrt(0.375))


def inverse_anscombe(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the mean count whose Anscombe transform has the given mean.

    Squaring alone is biased: the mean of a root is not the root of the mean. This is the closed
    form of the exact unbiased inverse.

    Parameters
    ----------
    values : ndarray
        Denoised Anscombe values; below ``2 sqrt(3/8)``, the value of mean 0, the answer is on the
        line of `anscombe`.

    Returns
    -------
    ndarray of the same shape, float64

    References
    ----------
    M. Makitalo, A. Foi (2011), "A closed-form approximation of the exact unbiased inverse of the
    Anscombe variance-stabilizing transformation", IEEE Trans. Image Processing 20, eq. 10.

    Examples
    --------
    >>> inverse_anscombe(anscombe(np.array([-2.0, 100.0]))).round(2).tolist()
    [-2.0, 100.26]
    """
    given = np.asarray(values, np.float64)
    v = np.maximum(given, ANSCOMBE_OF_NOTHING)
    root = np.sqrt(1.5)
    counts = v**2 / 4 + root / (4 * v) - 11 / (8 * v**2) + 5 * root / (8 * v**3) - 0.125
    below = np.minimum(given - ANSCOMBE_OF_NOTHING, 0.0) * np.sqrt(0.375)
    return np.asarray(np.maximum(counts, 0.0) + below)


def log_of_speckle(intensity: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the natural logarithm, by which multiplicative noise becomes additive.

    Parameters
    ----------
    intensity : ndarray
        Values >= 0; those near 0 count as a small fraction of the mean.

    Returns
    -------
    ndarray of the same shape, float64

    Examples
    --------
    >>> log_of_speckle(np.array([1.0, np.e])).tolist()
    [0.0, 1.0]
    """
    values = np.asarray(intensity, np.float64)
    smallest = max(FAINTEST * float(np.mean(np.abs(values))), float(np.finfo(np.float32).tiny))
    return np.asarray(np.log(np.maximum(values, smallest)))


def lift_specks(logs: NDArray[np.floating], deviation: float) -> NDArray[np.floating]:
    """Raise single pixels whose logarithm is far below that of all but one of their neighbours.

    Where the noise's factor was near 0 its logarithm is many deviations off, and would pass for
    detail. A dark line stays: its pixels have two neighbours as dark.

    Parameters
    ----------
    logs : ndarray of shape (h, w)
    deviation : float
        Of the logarithm of the noise.

    Returns
    -------
    ndarray of the same shape

    Examples
    --------
    >>> logs = np.zeros((5, 5))
    >>> logs[2, 2], logs[:, 4], logs[4, 0] = -7.0, -7.0, -7.0
    >>> lift_specks(logs, 0.25)[[2, 4]].tolist()
    [[0.0, 0.0, -0.375, 0.0, -7.0], [-0.375, 0.0, 0.0, 0.0, -7.0]]
    """
    # At a border, pixels beyond it mirror those within: a repeated pixel would be its own
    # neighbour.
    others = rank_filter(logs, 1, footprint=AROUND, mode="mirror")
    return np.asarray(np.maximum(logs, others - SPECK * deviation))


def speckle_from_log(values: NDArray[np.floating], sigma: float) -> NDArray[np.float64]:
    """Return intensities from denoised logarithms, without the bias of the logarithm.

    Parameters
    ----------
    values : ndarray
        Means of the logarithm of ``intensity * noise``.
    sigma : float
        Relative deviation of the noise, whose mean is 1; see `speckle_log_moments`.

    Returns
    -------
    ndarray of the same shape, float64
    """
    return np.exp(np.asarray(values, np.float64) - speckle_log_moments(sigma)[0])


def speckle_log_moments(sigma: float) -> tuple[float, float]:
    """Return mean and deviation of the logarithm of multiplicative noise.

    The noise is taken to be gamma with mean 1 and deviation ``sigma``: the average of
    ``1 / sigma**2`` looks in radar or ultrasound intensity. For small deviations any noise has
    about these moments.

    Parameters
    ----------
    sigma : float
        Deviation relative to the intensity, > 0.

    Returns
    -------
    mean : float
        About ``-sigma**2 / 2``.
    deviation : float
        About ``sigma``.

    References
    ----------
    H. Xie, L. E. Pierce, F. T. Ulaby (2002), "Statistical properties of logarithmically
    transformed speckle", IEEE Trans. Geoscience and Remote Sensing 40, section II.

    Examples
    --------
    >>> mean, deviation = speckle_log_moments(0.1)
    >>> round(mean, 4), round(deviation, 4)
    (-0.005, 0.1003)
    """
    looks = 1.0 / sigma**2
    mean = float(polygamma(0, looks)) - float(np.log(looks))
    return mean, float(np.sqrt(polygamma(1, looks)))
