"""The rows that a fit looks at, wherever they are, and work on them in blocks cut at fixed places.

A fit looks at rows in three ways only: at a sample of them that is held in memory, at one number a
row that a function makes of it, and at sums over rows. Whoever can do these three can be fitted,
however many rows there are.

Blocks are cut at fixed row numbers and their results put together in one order; inside, every
linear algebra library is held to one thread, and the workers are ours. So results do not depend on
the number of workers, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from numpy.typing import NDArray

from kpca_apps.engine.seeding import seeded_generator
from kpca_apps.system.arrays import IntArray, Mask, Matrix
from kpca_apps.system.blas import one_blas_thread
from kpca_apps.system.memory import ROWS_IN_MEMORY

Partial = TypeVar("Partial")

BLOCK = 384
"""Rows a block: a multiple of 64 and of 24, so that no matrix product treats the last rows of a
block by other code, with other roundings, than the first; and few enough for kernel values of a
thousand points to stay near the core. In float32 that does not help everywhere: OpenBLAS on
processors with AVX2 alone rounds the first and the second six of every twelve rows differently."""

MAPPED, SUMMED = 1536, 4096
"""Rows a task of `RowSource.map` and `RowSource.sum`. Sums over parts of a table are those over the
whole to rounding, and to the last bit for any number of workers."""

SAMPLE_ROWS = ROWS_IN_MEMORY
"""Rows held in memory; a table of at most so many is its own sample."""


class Addable(Protocol):
    """What sums are made of."""

    def __add__(self, other: Self, /) -> Self: ...


Sums = TypeVar("Sums", bound=Addable)
Sums_co = TypeVar("Sums_co", bound=Addable, covariant=True)


class RowFunction(Protocol):
    """One number a row. A frozen dataclass whose fields are all it knows: it can be sent."""

    @property
    def purpose(self) -> str:
        """What is done to rows, to be shown while it lasts."""
        ...

    def prepare(self) -> Callable[[Matrix, Mask], Matrix]:
        """Do all work that does not depend on rows once, where the rows are.

        What comes back maps rows ``(b, d)`` and whether each is in use ``(b,)`` to numbers
        ``(b,)``, from several threads at once. What a row gets depends on no other row.
        """
        ...


class RowSums(Protocol[Sums_co]):
    """Sums over rows. A frozen dataclass whose fields are all it knows: it can be sent."""

    def prepare(self) -> Callable[[Matrix], Sums_co]:
        """Return what maps rows ``(b, d)``, b >= 0, to their sums."""
        ...


class SampleRows(Protocol):
    """Rows held in memory: an array, or what makes rows of one when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Matrix: ...


class RowSource(Protocol):
    """All rows of a table, as a fit looks at them."""

    @property
    def n_rows(self) -> int:
        """Number n of rows."""
        ...

    @property
    def sample(self) -> SampleRows:
        """Rows held in memory, shape (s, d), in the order of the table."""
        ...

    @property
    def sample_index(self) -> IntArray:
        """Their positions in the table, shape (s,), increasing."""
        ...

    def map(self, function: RowFunction, in_use: Mask | None = None) -> Matrix:
        """Return one number a row, shape (n,); without a mask (n,) no row is in use."""
        ...

    def sum(self, function: RowSums[Sums], in_use: Mask | None = None) -> Sums:
        """Return the sums over the training subset, given by a mask (n,); over all without one."""
        ...


class ArrayRows:
    """The rows of a matrix (n, d) in memory; the result does not depend on the number of threads.

    `sample_index` are increasing positions of the rows that stand for all (see `sample_positions`).
    """

    def __init__(
        self, X: Matrix, sample_index: IntArray | None = None, *, n_jobs: int | None = None
    ) -> None:
        X = np.asarray(X, dtype=np.float64)
        self._X, self._n_jobs, self.n_rows = X, n_jobs, len(X)
        self.sample_index = np.arange(len(X)) if sample_index is None else sample_index
        self.sample = X if len(self.sample_index) == len(X) else X[self.sample_index]

    def map(self, function: RowFunction, in_use: Mask | None = None) -> Matrix:
        """Return one number a row, shape (n,), whatever the other rows and the threads."""
        if not self.n_rows:
            return np.empty(0)
        used = np.zeros(self.n_rows, dtype=bool) if in_use is None else in_use
        with one_blas_thread():
            return map_row_blocks(
                function.prepare(), self._X, used, block=MAPPED, padded=False, n_jobs=self._n_jobs
            )

    def sum(self, function: RowSums[Sums], in_use: Mask | None = None) -> Sums:
        """Return the sums over the training subset."""
        with one_blas_thread():
            return sum_row_blocks(function.prepare(), self._X, in_use, n_jobs=self._n_jobs)


def sample_positions(
    n_rows: int, random_state: int | np.random.RandomState | None = None
) -> IntArray:
    """Return the positions of the rows to hold in memory, increasing: at most 100,000."""
    if n_rows <= SAMPLE_ROWS:
        return np.arange(n_rows)
    # A stream beside the one that a fit draws its landmarks from.
    (rng,) = seeded_generator(random_state).spawn(1)
    return np.sort(rng.choice(n_rows, SAMPLE_ROWS, replace=False))


def map_row_blocks(
    function: Callable[..., NDArray[Any]],
    *arrays: NDArray[Any],
    block: int = BLOCK,
    padded: bool = True,
    n_jobs: int | None = None,
) -> NDArray[Any]:
    """Return what a function that treats rows one by one makes of all rows, ``(n, ...)``.

    It maps a block of rows of each array to as many results. Blocks hold the same number of rows
    whatever was asked for, the last one ``padded``: so what a row gets does not depend on the other
    rows of its batch, to the last bit (of float64: see `BLOCK`); without, the function sees to that
    itself. ``n_jobs`` is in
    joblib's convention (None: one thread unless a joblib context says otherwise).
    """
    n = len(arrays[0])

    def of_block(start: int) -> NDArray[Any]:
        parts = [array[start : start + block] for array in arrays]
        missing = block - len(parts[0]) if padded else 0
        if missing:
            # The last row is repeated where there are too few.
            last = [
                part[-1:] if len(part) else np.zeros((1, *part.shape[1:]), part.dtype)
                for part in parts
            ]
            parts = [
                np.concatenate([part, np.repeat(row, missing, axis=0)])
                for part, row in zip(parts, last, strict=True)
            ]
        return function(*map(np.ascontiguousarray, parts))

    with one_blas_thread():
        first = of_block(0)
        if n <= block:
            return first[:n]
        result = np.empty((n, *first.shape[1:]), dtype=first.dtype)
        result[:block] = first

        def work(start: int) -> None:
            result[start : start + block] = of_block(start)[: n - start]

        for _ in in_order(work, range(block, n, block), n_jobs):
            pass
    return result


def sum_row_blocks(
    function: Callable[[Matrix], Sums],
    X: Matrix,
    in_use: Mask | None = None,
    *,
    block: int = SUMMED,
    n_jobs: int | None = None,
) -> Sums:
    """Add up what a function makes of the training subset of each block of X (n, d), n >= 1.

    Always in the order of the blocks: the same bits for any number of workers.
    """

    def of_block(start: int) -> Sums:
        part = slice(start, start + block)
        return function(X[part] if in_use is None else X[part][in_use[part]])

    with one_blas_thread():
        sums = in_order(of_block, range(0, len(X), block), n_jobs)
        total: Sums = next(sums)
        for of_next in sums:
            total = total + of_next
    return total


def in_order(
    function: Callable[[int], Partial], starts: Iterable[int], n_jobs: int | None = None
) -> Iterator[Partial]:
    """Yield what a function makes of each start, in their order, on so many threads."""
    # Of threads: of processes joblib warns where there can be none, as in one of multiprocessing.
    with parallel_config(backend="threading"):
        is_one = effective_n_jobs(n_jobs) == 1
    if is_one:
        # A thread's worth of work needs no scheduling, which costs as much as a small block.
        yield from map(function, starts)
    else:
        # What numpy says of overflows is a setting of each thread: theirs is that of the caller.
        told, call = np.geterr(), np.geterrcall()

        def as_here(start: int) -> Partial:
            with np.errstate(call=call, **told):  # type: ignore[arg-type]
                return function(start)

        parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
        yield from parallel(delayed(as_here)(start) for start in starts)
