"""Rank the rows of a table by score, in memory that grows only with the rows of equal scores.

Blocks of rows are sorted one by one. The sorted blocks are then merged a range of scores at a time:
ranges are cut so that each holds about as many rows as a few blocks.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.novelty.columns.parts import blocks_of, release_pages, row_values
from kpca_apps.system.arrays import FloatArray, IntArray

_BLOCK = 1 << 16  # rows sorted at once; fits in a cache
_EVERY = 1 << 10  # every 1,024th score of a sorted block is a candidate for the end of a range
_RANGE = 1 << 20  # approximate number of rows in a range; equal scores are in one range


def novelty_ranks(scores: FloatArray, raw: FloatArray) -> IntArray:
    """Return the rank of every row (n,) by score, 1 = most novel; no score is NaN.

    Scores that tie after the shift to a common threshold are ordered by their `raw` scores, other
    ties by position.
    """
    n, blocks = len(scores), [*blocks_of(len(scores), _BLOCK)]
    keys = (scores,) if raw is scores else (raw, scores)  # sorted by the last key first
    ordered = [row_values(n, np.float64) for _ in keys]
    order, ranks = row_values(n, np.int32), row_values(n, np.int64)
    if not n:
        return ranks
    for block in blocks:
        falling = [-key[block] for key in keys]
        own = _order_of_block(falling)
        order[block] = own
        for values, key in zip(ordered, falling, strict=True):
            values[block] = key[own]
        release_pages(*keys, *ordered, order)
    ends = [ordered[-1][block] for block in blocks]
    cuts = np.sort(np.concatenate([of[_EVERY - 1 :: _EVERY] for of in ends]))
    cuts = np.unique(cuts[_RANGE // _EVERY :: _RANGE // _EVERY])
    stops = np.array([[*of.searchsorted(cuts, "right"), len(of)] for of in ends])
    starts = np.array([block.start for block in blocks])
    merged, first = ordered[-1].view(np.int64), 1  # ranks replace the scores that are merged
    for low, high in zip(np.pad(stops, ((0, 0), (1, 0))).T, stops.T, strict=False):
        spans = [slice(*span) for span in zip(starts + low, starts + high, strict=True)]
        runs = [np.concatenate([key[span] for span in spans]) for key in ordered]
        places = np.empty(len(runs[0]), dtype=np.int64)
        # A stable `argsort` merges sorted runs fast. Only several keys need the slower `lexsort`.
        merged_order = np.lexsort(runs) if len(keys) > 1 else runs[0].argsort(kind="stable")
        places[merged_order] = np.arange(first, first + len(places))
        for span, own in zip(spans, np.split(places, np.cumsum(high - low)[:-1]), strict=True):
            merged[span] = own
        first += len(places)
        release_pages(*ordered)
    for block in blocks:
        ranks[block][order[block]] = merged[block]
        release_pages(ranks, order, *ordered)
    return ranks


def _order_of_block(keys: list[FloatArray]) -> IntArray:
    """Sort by the last key, then by those before it, then by position, as `lexsort` would."""
    order = keys[-1].argsort()  # nearly twice as fast as a stable sort
    values = keys[-1][order]
    is_same = values[1:] == values[:-1]
    if is_same.any():
        tied = np.append(is_same, False) | np.append(False, is_same)
        rows, group = order[tied], np.cumsum(~np.append(False, is_same))[tied]
        order[tied] = rows[np.lexsort((rows, *(key[rows] for key in keys[:-1]), group))]
    return order
