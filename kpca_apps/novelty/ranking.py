"""Rows in order of novelty, with a rule for scores that agree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["novelty_order"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SIGNIFICANT_DIGITS = 8


def novelty_order(scores: FloatArray, distances: Callable[[IntArray], FloatArray]) -> IntArray:
    """Row positions from most to least novel.

    Rows very far from everything score alike to eight digits, because a bounded kernel is zero
    for all of them; such rows are ordered by their distance to the rows of the model, and rows
    that agree in that too by their place in the table.

    Parameters
    ----------
    scores : (n,) array
        Novelty scores, higher = more novel.
    distances : callable
        ``distances(rows (r,)) -> (r,)``: distance to the nearest row of the model, asked only for
        rows whose score is shared.

    Returns
    -------
    (n,) int array
        A permutation.

    Examples
    --------
    >>> import numpy as np
    >>> far = np.array([0.0, 10.0, 2.0, 20.0])
    >>> novelty_order(np.array([0.1, 1.0, 0.5, 1.0]), lambda rows: far[rows])
    array([3, 1, 2, 0])
    """
    magnitude = np.floor(np.log10(np.maximum(np.abs(scores), np.finfo(float).tiny)))
    unit = 10.0 ** (magnitude - SIGNIFICANT_DIGITS + 1)
    rounded = np.round(scores / unit) * unit
    _, group, count = np.unique(rounded, return_inverse=True, return_counts=True)
    shared = np.flatnonzero(count[group] > 1)
    distance = np.zeros(len(scores))
    if shared.size:
        distance[shared] = distances(shared)
    order: IntArray = np.lexsort((np.arange(len(scores)), -distance, -group))
    return order
