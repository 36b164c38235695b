"""Rows in order of their scores, with a rule for those that are equal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kpca_apps.novelty.row_values import row_values
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.novelty.table.rows import TableRows

__all__ = ["novelty_order", "novelty_ranks", "rank_rows", "top_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Ties are broken by distance among this many of the oddest rows; below, duplicates abound.
MAX_TIES = 1_000
# Where more rows than this are equal to the oddest, their place in the table must do.
MAX_TOLD_APART = 100_000
ROWS_A_BATCH = 1_024


def rank_rows(model: NoveltyModel, rows: TableRows, scores: FloatArray, *, known: bool) -> IntArray:
    """Give every row its own rank, 1 = most novel.

    Parameters
    ----------
    model : NoveltyModel
        Tells apart rows that are too far out to score differently, as all are beyond the reach of
        a bounded kernel that the user gave.
    rows : TableRows
        The rows.
    scores : (n,) array
        Their scores.
    known : bool
        Whether they are the rows the model was fitted on.

    Returns
    -------
    (n,) int array
    """
    neighbours = model.detector.neighbours_
    place = max(0, len(scores) - MAX_TIES)
    oddest = np.partition(scores, place)[place]

    def distances(positions: IntArray) -> FloatArray:
        # To the rows of the model's core, not to its landmarks: training rows may be landmarks.
        found = np.zeros(len(positions))
        told_apart = np.flatnonzero(scores[positions] >= oddest)
        if not 0 < len(told_apart) <= MAX_TOLD_APART:
            return found
        matrix = rows.encoded(positions[told_apart])
        for start in range(0, len(told_apart), ROWS_A_BATCH):
            part = slice(start, start + ROWS_A_BATCH)
            standardised = model.detector.views_.standardised(matrix[part])
            squares = cdist(standardised, neighbours.standardised, "sqeuclidean")
            if known:
                squares[positions[told_apart[part]][:, None] == neighbours.index] = np.inf
            found[told_apart[part]] = squares.min(axis=1)
        return found

    return novelty_ranks(scores, distances)


def novelty_order(scores: FloatArray, distances: Callable[[IntArray], FloatArray]) -> IntArray:
    """Row positions from most to least novel.

    Rows of equal score are ordered by their distance to the rows of the model, and rows that agree
    in that too by their place in the table. No rank contradicts a score.

    Parameters
    ----------
    scores : (n,) array
        Novelty scores, higher = more novel; in memory or mapped from a file.
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
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    equal = ordered[1:] == ordered[:-1]
    (slots,) = np.nonzero(np.append(equal, False) | np.insert(equal, 0, False))
    if slots.size:
        rows = np.sort(order[slots])
        order[slots] = rows[np.lexsort((rows, -distances(rows), -scores[rows]))]
    return order


def novelty_ranks(scores: FloatArray, distances: Callable[[IntArray], FloatArray]) -> IntArray:
    """Rank of every row, 1 = most novel: its place in `novelty_order`.

    Examples
    --------
    >>> import numpy as np
    >>> novelty_ranks(np.array([0.1, 1.0, 0.5]), np.zeros_like).tolist()
    [3, 1, 2]
    """
    ranks = row_values(len(scores), np.int64)
    ranks[novelty_order(scores, distances)] = np.arange(1, len(scores) + 1)
    return ranks


def top_rows(ranks: IntArray, count: int) -> IntArray:
    """Positions of the first rows of a list, in its order.

    Examples
    --------
    >>> import numpy as np
    >>> top_rows(np.array([2, 4, 1, 3]), 2)
    array([2, 0])
    """
    (rows,) = np.nonzero(ranks <= count)
    return np.asarray(rows[np.argsort(ranks[rows])], dtype=np.int64)
