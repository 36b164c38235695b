"""How the scores of a table lie, in a few hundred numbers: what a report draws and says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ScoreDistribution"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
    def of(cls, scores: FloatArray, n_flagged: int) -> ScoreDistribution:
        """Summarise the rows of a table.

        Parameters
        ----------
        scores : (n,) array
            Of all rows, n >= 1, in memory or mapped from a file.
        n_flagged : int
            How many are flagged.

        Returns
        -------
        ScoreDistribution

        Examples
        --------
        >>> found = ScoreDistribution.of(np.array([0.1, 0.9, 0.2, 0.3]), 1)
        >>> found.scores, found.n_above, found.flagged_scores
        (array([0.9, 0.3, 0.2, 0.1]), array([0, 1, 2, 3]), array([0.9]))
        """
        n, ordered = len(scores), np.sort(scores)
        steps = np.geomspace(1, n, MAX_STEPS).round().astype(np.int64)
        # Where half and twice as many rows would be flagged is asked for by name.
        asked = [place + 1 for place in (n_flagged // 2, 2 * n_flagged) if place < n]
        places = np.unique(np.concatenate([steps, np.array(asked, dtype=np.int64)]))
        ticks = np.linspace(1, max(n_flagged, 1), min(n_flagged, MAX_TICKS)).round()
        kept = ordered[n - places]
        edges, logarithmic = _edges(ordered)
        inside = np.clip(ordered, edges[0], edges[-1])
        return cls(
            n_rows=n,
            n_flagged=n_flagged,
            edges=edges,
            counts=np.histogram(inside, edges)[0],
            logarithmic=logarithmic,
            flagged_scores=np.sort(ordered[n - ticks.astype(np.int64)]),
            ranks=places,
            scores=kept,
            n_above=n - np.searchsorted(ordered, kept, side="right"),
        )


def _edges(ordered: FloatArray) -> tuple[FloatArray, bool]:
    """Edges of the bins for increasing scores, and whether they are spaced by a factor."""
    low, high = float(ordered[0]), float(ordered[-1])
    if high - low <= 1e-12 * max(abs(high), 1e-300):  # all alike: a heap still needs a width
        room = 0.5 * abs(high) or 0.5
        return np.linspace(low - room, high + room, BINS + 1), False
    if low > 0 and high > WIDE * np.median(ordered):
        return np.geomspace(low, high, BINS + 1), True
    return np.linspace(low, high, BINS + 1), False
