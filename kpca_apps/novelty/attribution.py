"""Which columns made a row odd, and what was expected instead.

A column's part is the drop of the score when its value is replaced by the one its neighbours
suggest: the median (for a category the most frequent level) over the 10 rows nearest in the OTHER
columns. Gradients point to the column that is cheapest to move, z-scores to the widest; neither
finds a value that is only odd in its company.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ColumnDrop", "NeighbourRows", "attribute"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ScoreFunction = Callable[[FloatArray, IntArray], FloatArray]

N_NEIGHBOURS = 10
CANDIDATES_A_BATCH = 4096
# Of more groups only those that lie farthest from what is expected are tried on a row: replacing
# a value by nearly itself lowers no score.
MAX_GROUPS_TRIED = 64


@dataclass(frozen=True)
class ColumnDrop:
    """One column's (or group of columns') part in the score of a row.

    Attributes
    ----------
    group : int
        Position of the group; of the column where no groups were given.
    share : float
        Its drop of the score over the sum of all drops, in (0, 1].
    seen, expected : (k,) array
        Values in the row, and those its neighbours suggest, for the columns of the group.
    """

    group: int
    share: float
    seen: FloatArray
    expected: FloatArray


@dataclass(frozen=True)
class NeighbourRows:
    """Rows of the reference that expected values are taken from.

    Attributes
    ----------
    rows : (s, d) array
        Their columns as they come.
    standardised : (s, d) array
        The same, scaled for distances.
    as_is : (a,) int array
        Indicator columns: a group made of these alone holds one category.
    index : (s,) int array
        Positions of these rows among the training rows.
    """

    rows: FloatArray
    standardised: FloatArray
    as_is: IntArray
    index: IntArray

    def expected(
        self, standardised: FloatArray, groups: Sequence[IntArray], own: int
    ) -> list[tuple[FloatArray, float]]:
        """Return for each group of one row (d,) the expected values and how far off the row is.

        `own` is the row's position among the training rows, or -1.
        """
        nearest = self._nearest(standardised, groups, own)
        sizes = [len(group) for group in groups]
        members, ends = np.concatenate(groups), np.cumsum(sizes)
        near, columns = nearest[np.repeat(np.arange(len(groups)), sizes)], members[:, None]
        middle = np.median(self.rows[near, columns], axis=1)
        off = np.abs(np.median(self.standardised[near, columns], axis=1) - standardised[members])
        values = np.split(middle, ends[:-1])
        for g, group in enumerate(groups):
            if len(group) > 1 and np.isin(group, self.as_is).all():
                values[g] = _most_frequent(self.rows[nearest[g]][:, group])
        distances = [float(part.sum()) for part in np.split(off, ends[:-1])]
        return list(zip(values, distances, strict=True))

    def _nearest(self, standardised: FloatArray, groups: Sequence[IntArray], own: int) -> IntArray:
        """Rows nearest to one row in all columns but those of each group, shape (groups, k)."""
        if len(groups) == 1:
            return np.arange(len(self.rows))[None]
        squares = (self.standardised - standardised) ** 2
        parts = np.stack([squares[:, group].sum(axis=1) for group in groups])
        # Sums over the other groups, forwards and backwards: subtracting a huge part from the
        # total would leave nothing of the small ones.
        others = np.zeros_like(parts)
        others[1:] += np.cumsum(parts[:-1], axis=0)
        others[:-1] += np.cumsum(parts[:0:-1], axis=0)[::-1]
        others[:, self.index == own] = np.inf
        k = min(N_NEIGHBOURS, len(self.rows) - 1)
        return np.argpartition(others, k - 1, axis=1)[:, :k]


def _most_frequent(indicators: FloatArray) -> FloatArray:
    """Return the row of indicators (k,) of the level that most rows (r, k) are of."""
    level = np.argmax(indicators.sum(axis=0))
    only = np.zeros(indicators.shape[1])
    only[level] = indicators[:, level].max()
    return only


def attribute(
    X: FloatArray,
    standardised: FloatArray,
    scores: FloatArray,
    score: ScoreFunction,
    neighbours: NeighbourRows,
    groups: Sequence[IntArray],
    own: IntArray,
) -> list[tuple[ColumnDrop, ...]]:
    """Explain rows by the drops of their scores.

    Parameters
    ----------
    X, standardised : (r, d) array
        The rows as they come, and scaled for distances.
    scores : (r,) array
        Their scores.
    score : callable
        ``score(candidates (c, d), row (c,))``: scores of changed copies of rows of X; `row` says
        of which.
    neighbours : NeighbourRows
        Where expected values come from.
    groups : sequence of int arrays
        Columns replaced together.
    own : (r,) int array
        Position of each row among the training rows, -1 for a new one.

    Returns
    -------
    list of tuples of ColumnDrop
        One tuple a row, largest share first; empty where no single column lowers the score.
    """
    explained: list[tuple[ColumnDrop, ...]] = []
    n_tried = min(len(groups), MAX_GROUPS_TRIED)
    for rows in _row_batches(len(X), n_tried):
        candidates = np.repeat(X[rows], n_tried, axis=0)
        tried = np.empty((len(rows), n_tried), dtype=np.int64)
        for position, i in enumerate(rows):
            expected = neighbours.expected(standardised[i], groups, int(own[i]))
            far = np.argsort([-distance for _, distance in expected], kind="stable")
            tried[position] = np.sort(far[:n_tried])
            for place, g in enumerate(tried[position]):
                candidates[position * n_tried + place, groups[g]] = expected[g][0]
        changed = score(candidates, np.repeat(rows, n_tried)).reshape(len(rows), n_tried)
        drops = np.maximum(scores[rows, None] - changed, 0.0)
        changed_rows = candidates.reshape(len(rows), n_tried, -1)
        explained += [
            _shares(X[i], drop, replaced, [(g, groups[g]) for g in picked])
            for i, drop, replaced, picked in zip(rows, drops, changed_rows, tried, strict=True)
        ]
    return explained


def _row_batches(n_rows: int, n_groups: int) -> Iterator[IntArray]:
    size = max(1, CANDIDATES_A_BATCH // n_groups)
    for start in range(0, n_rows, size):
        yield np.arange(start, min(start + size, n_rows))


def _shares(
    row: FloatArray,
    drops: FloatArray,
    replaced: FloatArray,
    tried: Sequence[tuple[int, IntArray]],
) -> tuple[ColumnDrop, ...]:
    """Turn the drops of one row into shares; copy j of `replaced` holds what group j became."""
    total = drops.sum()
    if total <= 0.0:
        return ()
    order = np.argsort(-drops, kind="stable")
    return tuple(
        ColumnDrop(int(tried[j][0]), float(drops[j] / total), row[columns], replaced[j, columns])
        for j in order
        if drops[j] > 0.0
        for columns in (tried[j][1],)
    )
