"""Landmarks as centres of clusters: points between the rows, each for about as many of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kpca_apps.engine.blocks import map_row_blocks
from kpca_apps.engine.products import squared_lengths

__all__ = ["cluster_centres"]

Matrix = NDArray[np.float64]


def cluster_centres(
    X: Matrix,
    m: int,
    rng: np.random.Generator,
    *,
    rounds: int = 10,
    n_jobs: int | None = None,
) -> Matrix:
    """Return the centres of ``m`` clusters after a few rounds of Lloyd's algorithm.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    m : int in [1, n]
    rng : numpy.random.Generator
        Draws the rows to start from.
    rounds : int
        The first few do most of the work.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    ndarray of shape (m, d)

    References
    ----------
    .. [1] Zhang, Tsang and Kwok (2008), Improved Nystrom low-rank approximation and error
       analysis, ICML 2008, 1232-1239.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> np.sort(cluster_centres(X, 2, np.random.default_rng(1)), axis=0)
    array([[0.5],
           [9.5]])
    """
    centres: Matrix = X[np.sort(rng.choice(len(X), size=m, replace=False))]
    middle: Matrix = X.mean(axis=0)
    # A power of two brings all to about 1: no bit is lost, and the largest square is a float32.
    reach = np.maximum(X.max(axis=0) - middle, middle - X.min(axis=0)).max(initial=0.0)
    unit = float(np.ldexp(1.0, -int(np.frexp(reach)[1])))
    for _ in range(rounds):
        nearest = _nearest(centres, X, middle, unit, n_jobs)
        counts = np.bincount(nearest, minlength=m)
        # A product with zeros and ones adds the rows of each centre up where they lie.
        belongs = csr_array((np.ones(len(X)), (nearest, np.arange(len(X)))), shape=(m, len(X)))
        # A centre that has lost its last row stays where it is.
        found = counts > 0
        centres[found] = (belongs @ X)[found] / counts[found, None]
    return centres


def _nearest(
    centres: Matrix, X: Matrix, middle: Matrix, unit: float, n_jobs: int | None
) -> NDArray[Any]:
    """Return the number of the nearest centre of each row; distances are taken about a point."""
    moved = (centres - middle) * unit
    columns = np.ascontiguousarray(moved.T, dtype=np.float32)
    half = (0.5 * squared_lengths(moved)).astype(np.float32)

    def nearest(rows: Matrix) -> NDArray[Any]:
        gaps = ((rows - middle) * unit).astype(np.float32) @ columns
        gaps -= half
        found: NDArray[Any] = gaps.argmax(axis=1)
        return found

    return map_row_blocks(nearest, X, n_jobs=n_jobs)
