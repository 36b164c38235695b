"""Landmarks as centres of clusters: points between the rows, each for about as many of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    middle: Matrix = X.mean(axis=0)
    rows = X - middle
    centres: Matrix = rows[np.sort(rng.choice(len(X), size=m, replace=False))]
    for _ in range(rounds):
        nearest = _nearest(centres, rows, n_jobs)
        order = np.argsort(nearest, kind="stable")
        found, first, counts = np.unique(nearest[order], return_index=True, return_counts=True)
        # A centre that has lost its last row stays where it is.
        centres[found] = np.add.reduceat(rows[order], first, axis=0) / counts[:, None]
    centres += middle
    return centres


def _nearest(centres: Matrix, rows: Matrix, n_jobs: int | None) -> NDArray[Any]:
    """Return the number of the nearest centre of each row."""
    columns = np.ascontiguousarray(centres.T, dtype=np.float32)
    half = (0.5 * squared_lengths(centres)).astype(np.float32)

    def nearest(block: Matrix) -> NDArray[Any]:
        gaps = block.astype(np.float32) @ columns
        gaps -= half
        found: NDArray[Any] = gaps.argmax(axis=1)
        return found

    return map_row_blocks(nearest, rows, n_jobs=n_jobs)
