"""How the scores of a table lie, in a few hundred numbers: what a report draws and says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.novelty.selection import blocks_of, median

__all__ = ["ScoreDistribution"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

BINS = 60
MAX_TICKS = 200  # flagged rows whose score is kept
MAX_STEPS = 400  # places of the list whose score is kept
WIDE = 30.0  # a spread of scores that only a logarithmic axis shows


@dataclass(frozen=True)
class ScoreDistribution:
    """The scores of all rows, thinned for drawing; every number kept is exact.

    Attributes
    ----------
    n_rows, n_flagged : int
        Rows of the table; rows above the threshold.
    edges : (b + 1,) array
        Edges of the bins of a histogram, from the lowest to the highest score.
    counts : (b,) int array
        Rows a bin.
    logarithmic : bool
        Whether the bins widen from left to right by a constant factor.
    flagged_scores : (f,) array
        Scores of at most 200 flagged rows, evenly chosen along the list.
    ranks : (k,) int array
        Places of the list, 1 = most novel: all of a short one, else about 400, densest at its top.
    scores : (k,) array
        What the rows there score, falling.
    n_above : (k,) int array
        How many rows score higher than each.
    """

    n_rows: int
    n_flagged: int
    edges: FloatArray
    counts: IntArray
    logarithmic: bool
    flagged_scores: FloatArray
    ranks: IntArray
    scores: FloatArray
    n_above: IntArray

    @classmethod
    def of(cls, scores: FloatArray, ranks: IntArray, flagged: BoolArray) -> ScoreDistribution:
        """Summarise the rows of a table.

        Parameters
        ----------
        scores, ranks, flagged : (n,) array
            Of all rows, n >= 1, in memory or mapped from a file.

        Returns
        -------
        ScoreDistribution

        Examples
        --------
        >>> scores = np.array([0.1, 0.9, 0.2, 0.3])
        >>> ranks, flagged = np.array([4, 1, 3, 2]), np.array([False, True, False, False])
        >>> found = ScoreDistribution.of(scores, ranks, flagged)
        >>> found.scores, found.n_above, found.flagged_scores
        (array([0.9, 0.3, 0.2, 0.1]), array([0, 1, 2, 3]), array([0.9]))
        """
        n, n_flagged = len(scores), int(flagged.sum())
        steps = np.geomspace(1, n, MAX_STEPS).round().astype(np.int64)
        # Where half and twice as many rows would be flagged is asked for by name.
        asked = [place + 1 for place in (n_flagged // 2, 2 * n_flagged) if place < n]
        places = np.unique(np.concatenate([steps, np.array(asked, dtype=np.int64)]))
        ticks = np.linspace(1, max(n_flagged, 1), min(n_flagged, MAX_TICKS)).round()
        ticks = ticks.astype(np.int64)
        found = _scores_at(np.union1d(places, ticks), scores, ranks)
        kept = np.sort([found[place] for place in places.tolist()])[::-1]
        edges, logarithmic = _edges(scores)
        return cls(
            n_rows=n,
            n_flagged=n_flagged,
            edges=edges,
            counts=_histogram(scores, edges),
            logarithmic=logarithmic,
            flagged_scores=np.sort([found[place] for place in ticks.tolist()]),
            ranks=places,
            scores=kept,
            n_above=_n_above(kept, scores),
        )


def _scores_at(places: IntArray, scores: FloatArray, ranks: IntArray) -> dict[int, float]:
    """Scores of the rows that have these ranks."""
    found: dict[int, float] = {}
    for block in blocks_of(len(scores)):
        here = np.flatnonzero(np.isin(ranks[block], places))
        rows = block.start + here
        found |= dict(zip(ranks[rows].tolist(), scores[rows].tolist(), strict=True))
    return found


def _n_above(values: FloatArray, scores: FloatArray) -> IntArray:
    """Count for each of some falling values the scores above it."""
    rising = values[::-1]
    at_least = np.zeros(len(rising) + 1, dtype=np.int64)
    for block in blocks_of(len(scores)):
        # The score is above the first so many of the rising values.
        n_below = np.searchsorted(rising, scores[block], side="left")
        at_least += np.bincount(n_below, minlength=len(at_least))
    above = np.cumsum(at_least[::-1])[::-1]
    return np.asarray(above[1:][::-1], dtype=np.int64)


def _edges(scores: FloatArray) -> tuple[FloatArray, bool]:
    """Edges of the bins, and whether they are spaced by a factor."""
    low, high = float(scores.min()), float(scores.max())
    if high - low <= 1e-12 * max(abs(high), 1e-300):  # all alike: a heap still needs a width
        room = 0.5 * abs(high) or 0.5
        return np.linspace(low - room, high + room, BINS + 1), False
    if low > 0 and high > WIDE * median(scores):
        return np.geomspace(low, high, BINS + 1), True
    return np.linspace(low, high, BINS + 1), False


def _histogram(scores: FloatArray, edges: FloatArray) -> IntArray:
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for block in blocks_of(len(scores)):
        counts += np.histogram(np.clip(scores[block], edges[0], edges[-1]), edges)[0]
    return counts
