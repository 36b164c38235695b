"""Work on many rows in blocks cut at fixed places.

A block holds the same number of rows whatever was asked for: the last one is padded. So what a
row gets does not depend on the other rows of its batch, nor on the number of workers, to the last
bit. Inside, every linear algebra library is held to one thread; the workers are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from kpca_apps.blas import one_blas_thread

__all__ = ["BLOCK", "in_order", "map_row_blocks", "reduce_row_blocks"]

Matrix = NDArray[np.float64]
Partial = TypeVar("Partial")

BLOCK = 384
"""Rows a block: a multiple of 64 and of 24, so that no matrix product treats the last rows of a
block by other code, with other roundings, than the first; and few enough for kernel values of a
thousand points to stay near the core."""


def map_row_blocks(
    function: Callable[[Matrix], Matrix],
    X: Matrix,
    *,
    block: int = BLOCK,
    n_jobs: int | None = None,
) -> Matrix:
    """Return what a function that treats rows one by one makes of all rows, ``(n, ...)``.

    ``function`` maps a block ``(block, d)``, the last one padded, to as many results; ``n_jobs`` is
    in joblib's convention (None: one thread unless a joblib context says otherwise).
    """
    starts = range(0, len(X), block)
    with one_blas_thread():
        first = function(_padded(X, 0, block))
        if len(X) <= block:
            return first[: len(X)]
        result = np.empty((len(X), *first.shape[1:]), dtype=first.dtype)
        result[:block] = first

        def work(start: int) -> None:
            rows = min(block, len(X) - start)
            result[start : start + rows] = function(_padded(X, start, block))[:rows]

        for _ in in_order(work, starts[1:], n_jobs):
            pass
    return result


def reduce_row_blocks(
    function: Callable[[Matrix], Partial],
    X: Matrix,
    combine: Callable[[Partial, Partial], Partial],
    *,
    block: int = 4096,
    n_jobs: int | None = None,
) -> Partial:
    """Combine what a function makes of each block of at most ``block`` rows, n >= 1.

    Always in the order of the blocks: the same bits for any number of workers.
    """
    with one_blas_thread():
        starts = range(0, len(X), block)
        partials = in_order(lambda start: function(X[start : start + block]), starts, n_jobs)
        total: Partial = next(partials)
        for partial in partials:
            total = combine(total, partial)
    return total


def in_order(
    function: Callable[[int], Partial], starts: Iterable[int], n_jobs: int | None = None
) -> Iterator[Partial]:
    """Yield what a function makes of each start, in their order, on so many threads."""
    if effective_n_jobs(n_jobs) == 1:
        # A thread's worth of work needs no scheduling, which costs as much as a small block.
        yield from map(function, starts)
    else:
        parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
        yield from parallel(delayed(function)(start) for start in starts)


def _padded(X: Matrix, start: int, block: int) -> Matrix:
    """Return ``block`` rows from ``start`` on, the last row repeated where there are too few."""
    rows = X[start : start + block]
    missing = block - len(rows)
    if missing == 0:
        return np.ascontiguousarray(rows)
    last = rows[-1:] if len(rows) else np.zeros((1, X.shape[1]))
    return np.concatenate([rows, np.repeat(last, missing, axis=0)])
