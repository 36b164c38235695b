"""Sort or rank the rows of a table by score, in memory that grows only with rows of equal scores.

Blocks of rows are sorted one by one. The sorted blocks are then merged a range of scores at a time:
ranges are cut so that each holds about as many rows as a few blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.system.files.windowed import blocks, row_values

_BLOCK = 1 << 16  # rows sorted at once; fits in a cache
_EVERY = 1 << 10  # every 1,024th score of a sorted block is a candidate for the end of a range
_RANGE = 1 << 20  # approximate number of rows in a range; equal scores are in one range


def novelty_ranks(scores: FloatArray, raw: FloatArray) -> IntArray:
    """Return the rank of every row (n,) by score, 1 = most novel; no score is NaN.

    Scores that tie after the shift to a common threshold are ordered by their `raw` scores, other
    ties by position.
    """
    n = len(scores)
    keys = (scores,) if raw is scores else (raw, scores)  # sorted by the last key first
    ordered = [row_values(n, np.float64) for _ in keys]
    order, ranks = row_values(n, np.int32), row_values(n, np.int64)
    for block in blocks(n, _BLOCK):
        falling = [-key[block] for key in keys]
        own = _order_of_block(falling)
        order[block] = own
        for values, key in zip(ordered, falling, strict=True):
            values[block] = key[own]
    merged, first = ordered[-1].view(np.int64), 1  # ranks replace the scores that are merged
    for spans in _ranges(ordered[-1]):
        runs = [_gathered(key, spans) for key in ordered]
        places = np.empty(len(runs[0]), dtype=np.int64)
        # A stable `argsort` merges sorted runs fast. Only several keys need the slower `lexsort`.
        merged_order = np.lexsort(runs) if len(keys) > 1 else runs[0].argsort(kind="stable")
        places[merged_order] = np.arange(first, first + len(places))
        first += len(places)
        pieces = np.split(places, np.diff(spans).cumsum()[:-1])
        for (start, stop), own in zip(spans.tolist(), pieces, strict=True):
            merged[start:stop] = own
    for block in blocks(n, _BLOCK):
        ranks[np.int64(block.start) + order[block]] = merged[block]
    return ranks


def sorted_values(values: NDArray[Any]) -> NDArray[Any]:
    """Sort the values of rows (n,); for very many rows, the result is memory-mapped."""
    ordered, merged = (row_values(len(values), values.dtype) for _ in range(2))
    for block in blocks(len(values), _BLOCK):
        ordered[block] = np.sort(values[block])
    first = 0
    for spans in _ranges(ordered):
        run = np.sort(_gathered(ordered, spans))
        merged[first : first + len(run)] = run
        first += len(run)
    return merged


def _gathered(values: NDArray[Any], spans: IntArray) -> NDArray[Any]:
    """Return the values of some spans in one array."""
    return np.concatenate([values[start:stop] for start, stop in spans.tolist()])


def _ranges(ordered: NDArray[Any]) -> Iterator[IntArray]:
    """Yield, for one range of values after the other, its spans (b, 2) in the sorted blocks."""
    if not len(ordered):
        return
    drawn = [ordered[of][_EVERY - 1 :: _EVERY].copy() for of in blocks(len(ordered), _BLOCK)]
    cuts = np.unique(np.sort(np.concatenate(drawn))[_RANGE // _EVERY :: _RANGE // _EVERY])
    stops = np.array(
        [
            [*ordered[of].searchsorted(cuts, "right"), of.stop - of.start]
            for of in blocks(len(ordered), _BLOCK)
        ]
    )
    starts = np.arange(0, len(ordered), _BLOCK)
    for low, high in zip(np.pad(stops, ((0, 0), (1, 0))).T, stops.T, strict=False):
        yield np.column_stack([starts + low, starts + high])


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
