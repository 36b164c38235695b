"""Rows in order of their scores, with a rule for those that are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kpca_apps.novelty.model import NoveltyModel
from kpca_apps.novelty.row_values import row_values
from kpca_apps.novelty.selection import (
    ROWS_A_BLOCK,
    blocks_of,
    order_statistic,
    sketch,
)
from kpca_apps.novelty.table_rows import TableRows

__all__ = ["novelty_order", "novelty_ranks", "rank_rows", "top_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Rows that are put in order together; a group of rows that score alike is never cut.
ROWS_A_BUCKET = 4 * ROWS_A_BLOCK
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
    oddest = order_statistic(scores, max(0, len(scores) - MAX_TIES))

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
    _, group, count = np.unique(scores, return_inverse=True, return_counts=True)
    shared = np.flatnonzero(count[group] > 1)
    distance = np.zeros(len(scores))
    if shared.size:
        distance[shared] = distances(shared)
    order: IntArray = np.lexsort((np.arange(len(scores)), -distance, -group))
    return order


def novelty_ranks(scores: FloatArray, distances: Callable[[IntArray], FloatArray]) -> IntArray:
    """Rank of every row of a table of any length, 1 = most novel: its place in `novelty_order`.

    Many rows are dealt by score into buckets, which are put in order one after the other.

    Parameters
    ----------
    scores : (n,) array
        Novelty scores, in memory or mapped from a file.
    distances : callable
        As for `novelty_order`.

    Returns
    -------
    (n,) int array

    Examples
    --------
    >>> import numpy as np
    >>> novelty_ranks(np.array([0.1, 1.0, 0.5]), np.zeros_like).tolist()
    [3, 1, 2]
    """
    n = len(scores)
    ranks = row_values(n, np.int64)
    n_ranked = 0
    for rows in _buckets(scores, n):

        def of_bucket(places: IntArray, rows: IntArray = rows) -> FloatArray:
            return distances(rows[places])

        order = novelty_order(np.asarray(scores[rows]), of_bucket)
        ranks[rows[order]] = np.arange(n_ranked + 1, n_ranked + len(rows) + 1)
        n_ranked += len(rows)
    return ranks


def top_rows(ranks: IntArray, count: int) -> IntArray:
    """Positions of the first rows of a list, in its order.

    Examples
    --------
    >>> import numpy as np
    >>> top_rows(np.array([2, 4, 1, 3]), 2)
    array([2, 0])
    """
    found = [block.start + np.flatnonzero(ranks[block] <= count) for block in blocks_of(len(ranks))]
    rows = np.concatenate(found)
    return np.asarray(rows[np.argsort(ranks[rows])], dtype=np.int64)


def _buckets(scores: FloatArray, n: int) -> Iterator[IntArray]:
    """Yield the rows of each range of scores, in the order of the table, highest range first."""
    n_buckets = -(-n // ROWS_A_BUCKET)
    if n_buckets <= 1:
        yield np.arange(n)
        return
    held = sketch(scores)
    shares = np.arange(1, n_buckets) / n_buckets
    cuts = np.unique([held.quantile(share) for share in shares])
    # Dealt in two passes: how many rows each bucket has, then which.
    sizes = np.zeros(len(cuts) + 1, dtype=np.int64)
    for block in blocks_of(n):
        bucket = np.searchsorted(cuts, scores[block], side="left")
        sizes += np.bincount(bucket, minlength=len(sizes))
    ends = np.cumsum(sizes)
    dealt, free = row_values(n, np.int64), ends - sizes
    for block in blocks_of(n):
        bucket = np.searchsorted(cuts, scores[block], side="left")
        order = np.argsort(bucket, kind="stable")
        counts = np.bincount(bucket, minlength=len(sizes))
        # Rows of one bucket follow each other in `order`: each goes to the next free place of its.
        within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        dealt[np.repeat(free, counts) + within] = block.start + order
        free += counts
    for start, end in zip((ends - sizes)[::-1], ends[::-1], strict=True):
        if end > start:
            yield np.asarray(dealt[start:end])
