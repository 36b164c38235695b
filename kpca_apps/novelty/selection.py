"""Exact order statistics of arrays of any length, also of those that lie in a file.

A sketch brackets the value sought; one more pass collects what lies in the bracket. Memory is that
of a block and of the bracket, whatever the length.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kpca_apps.novelty.quantiles import QuantileSketch

__all__ = [
    "ROWS_A_BLOCK",
    "blocks_of",
    "eight_digits",
    "largest",
    "median",
    "order_statistic",
    "sketch",
    "tally",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

ROWS_A_BLOCK = 1 << 18
"""Values looked at together."""


def blocks_of(n: int) -> Iterator[slice]:
    """Cut the positions of an array into blocks, always at the same places.

    Examples
    --------
    >>> [(block.start, block.stop) for block in blocks_of(300_000)]
    [(0, 262144), (262144, 300000)]
    """
    for start in range(0, n, ROWS_A_BLOCK):
        yield slice(start, min(start + ROWS_A_BLOCK, n))


def sketch(values: FloatArray) -> QuantileSketch:
    """Sketch the quantiles of an array (n,), n >= 1, block by block."""
    found = QuantileSketch(0, ())
    for block in blocks_of(len(values)):
        found = found + QuantileSketch.of(values[block])
    return found


def order_statistic(values: FloatArray, place: int) -> float:
    """Value at a place in increasing order.

    Parameters
    ----------
    values : (n,) array
        In memory or mapped from a file; no NaN.
    place : int
        0 = the smallest, n - 1 = the largest.

    Returns
    -------
    float
        Exactly what sorting would give.

    Examples
    --------
    >>> order_statistic(np.array([3.0, 1.0, 2.0]), 1)
    2.0
    """
    if len(values) <= ROWS_A_BLOCK:
        return float(np.partition(values, place)[place])
    low, high = sketch(values).bracket(place)
    n_below = sum(int((values[block] <= low).sum()) for block in blocks_of(len(values)))
    found, counts = tally(values, above=low, up_to=high)
    return float(found[np.searchsorted(n_below + np.cumsum(counts), place, side="right")])


def tally(
    values: FloatArray, *, above: float = -np.inf, up_to: float = np.inf
) -> tuple[FloatArray, IntArray]:
    """Count how often each value occurs: equal ones by the million take no room.

    Parameters
    ----------
    values : (n,) array
        In memory or mapped from a file; finite.
    above, up_to : float
        Only values above the one and at most the other are looked at.

    Returns
    -------
    found : (k,) array
        The values, increasing.
    counts : (k,) int array

    Examples
    --------
    >>> tally(np.array([2.0, 1.0, 2.0, 9.0]), up_to=5.0)
    (array([1., 2.]), array([1, 2]))
    """
    found, counts = np.empty(0), np.empty(0, dtype=np.int64)
    for block in blocks_of(len(values)):
        part = values[block]
        inside, times = np.unique(part[(part > above) & (part <= up_to)], return_counts=True)
        found, where = np.unique(np.concatenate([found, inside]), return_inverse=True)
        counts = np.bincount(where, np.concatenate([counts, times]), len(found)).astype(np.int64)
    return found, counts


def median(values: FloatArray) -> float:
    """Median of an array (n,), n >= 1, in memory or mapped from a file.

    Examples
    --------
    >>> median(np.array([4.0, 1.0, 2.0, 9.0]))
    3.0
    """
    n = len(values)
    upper = order_statistic(values, n // 2)
    return upper if n % 2 else 0.5 * (order_statistic(values, n // 2 - 1) + upper)


def eight_digits(scores: FloatArray) -> FloatArray:
    """Round scores to 27 bits, about eight digits: what differs by rounding becomes the same.

    Powers of two are exact: the order never changes, as it might by rounding to decimals.

    Examples
    --------
    >>> rounded = eight_digits(np.array([1.0, 1.0 - 1e-12, 1.0 - 1e-6]))
    >>> rounded[0] == rounded[1], rounded[1] == rounded[2]
    (np.True_, np.False_)
    """
    mantissa, exponent = np.frexp(scores)
    rounded: FloatArray = np.ldexp(np.round(np.ldexp(mantissa, 27)), exponent - 27)
    return rounded


def largest(values: FloatArray, count: int) -> BoolArray:
    """Mark the largest values of an array; of equal ones, the first.

    Parameters
    ----------
    values : (n,) array
        In memory or mapped from a file; no NaN.
    count : int
        How many to mark, in [1, n].

    Returns
    -------
    (n,) bool array
        `count` of them true.

    Examples
    --------
    >>> largest(np.array([1.0, 5.0, 5.0, 5.0, 9.0]), 3)
    array([False,  True,  True, False,  True])
    """
    least = order_statistic(values, len(values) - count)
    marked = np.empty(len(values), dtype=np.bool_)
    n_equal = count
    for block in blocks_of(len(values)):
        marked[block] = values[block] > least
        n_equal -= int(marked[block].sum())
    for block in blocks_of(len(values)):
        equal = np.flatnonzero(values[block] == least)[:n_equal]
        marked[block.start + equal] = True
        n_equal -= len(equal)
        if not n_equal:
            break
    return marked
