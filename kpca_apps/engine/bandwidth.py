"""Widths of kernels chosen without labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from kpca_apps.engine.landmarks import uniform_landmarks

__all__ = ["median_squared_distance"]


def median_squared_distance(
    X: NDArray[np.float64], rng: np.random.Generator, *, rows: int = 500
) -> float:
    """Return the median of the squared distances, other than 0, among some of the rows.

    One over it is the usual first choice of gamma: it does not depend on the units of the data.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    rng : numpy.random.Generator
        Draws the rows.
    rows : int
        At most this many rows are compared.

    Returns
    -------
    float
        In squared units of the data; 1 where all rows are the same, for then the kernel is
        constant whatever its width.

    Examples
    --------
    >>> X = np.array([[0.0], [0.0], [2.0]])
    >>> median_squared_distance(X, np.random.default_rng(0))
    4.0
    """
    squared = pdist(X[uniform_landmarks(len(X), rows, rng)], "sqeuclidean")
    # A denormal distance would make gamma infinite; it is as good as none.
    squared = squared[squared > np.finfo(np.float64).tiny]
    return float(np.median(squared)) if squared.size else 1.0
