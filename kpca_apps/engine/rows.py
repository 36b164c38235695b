"""Access to the rows of a fit, and computations on blocks of rows.

A fit needs only a sample held in memory, functions that give one number per row, and sums over
rows. So any source that supports these can be fitted, with any number of rows.

Blocks have fixed boundaries, results are combined in a fixed order, and BLAS uses one thread inside
a block. So results do not depend on the number of workers, to the last bit.
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

# Number of rows per block, a multiple of 64 and of 24, so that float64 matrix products round all
# rows of a block alike.
BLOCK = 384
MAPPED, SUMMED = 1536, 4096  # numbers of rows per task of `RowSource.map` and `RowSource.sum`
MOST_MAPPED = 400_000  # cells of a task of `map`, for the cache: tried on 20 to 1,000 columns
# Fewer rows are rounded as in a block if they are a multiple of STEP, and if each of their products
# has more than SMALL multiplications, or that of a block has not: OpenBLAS rounds these otherwise.
STEP, SMALL = 48, 1_000_000
SAMPLE_ROWS = ROWS_IN_MEMORY  # number of rows held in memory


class Addable(Protocol):
    """Type of values that can be added."""

    def __add__(self, other: Self, /) -> Self: ...


Sums = TypeVar("Sums", bound=Addable)
Sums_co = TypeVar("Sums_co", bound=Addable, covariant=True)


class RowFunction(Protocol):
    """A picklable function from rows to one number per row."""

    @property
    def purpose(self) -> str:
        """What the function computes, for progress messages."""
        ...

    def prepare(self) -> Callable[[Matrix, Mask], Matrix]:
        """Return a thread-safe map from rows to numbers.

        The map takes rows ``(b, d)`` and their mask of use ``(b,)``, and returns numbers ``(b,)``.
        A row's number does not depend on other rows.
        """
        ...


class RowSums(Protocol[Sums_co]):
    """A picklable function from rows to sums over them."""

    def prepare(self) -> Callable[[Matrix], Sums_co]:
        """Return the function that maps rows ``(b, d)`` to sums of some values over the rows."""
        ...


class SampleRows(Protocol):
    """Rows that can be indexed: an array, or an object that computes requested rows."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Matrix: ...


class RowSource(Protocol):
    """Access to all rows of a table."""

    @property
    def n_rows(self) -> int:
        """Number of rows, n."""
        ...

    @property
    def sample(self) -> SampleRows:
        """Rows held in memory, shape (s, d), in the order of the table."""
        ...

    @property
    def sample_index(self) -> IntArray:
        """Row numbers of the sample in the table, shape (s,), increasing."""
        ...

    def map(self, function: RowFunction, in_use: Mask | None = None) -> Matrix:
        """Return one number per row, (n,); `in_use` (n,) marks fitted rows."""
        ...

    def sum(self, function: RowSums[Sums], in_use: Mask | None = None) -> Sums:
        """Return the sums over the rows of a mask (n,), by default over all rows."""
        ...


class ArrayRows:
    """The rows of a matrix (n, d) in memory.

    `sample_index` holds increasing row numbers of the sample (see `sample_positions`).
    """

    def __init__(
        self, X: Matrix, sample_index: IntArray | None = None, *, n_jobs: int | None = None
    ) -> None:
        X = np.asarray(X, dtype=np.float64)
        self._X, self._n_jobs, self.n_rows = X, n_jobs, len(X)
        self.sample_index = np.arange(len(X)) if sample_index is None else sample_index
        self.sample = X if len(self.sample_index) == len(X) else X[self.sample_index]

    def map(self, function: RowFunction, in_use: Mask | None = None) -> Matrix:
        """Return one number per row, shape (n,)."""
        if not self.n_rows:
            return np.empty(0)
        used = np.zeros(self.n_rows, dtype=bool) if in_use is None else in_use
        block = BLOCK * max(min(MOST_MAPPED // max(self._X.shape[1], 1), MAPPED) // BLOCK, 1)
        with one_blas_thread():
            return map_row_blocks(
                function.prepare(), self._X, used, block=block, least=1, n_jobs=self._n_jobs
            )

    def sum(self, function: RowSums[Sums], in_use: Mask | None = None) -> Sums:
        """Return the sums over the rows of a mask, by default over all rows."""
        with one_blas_thread():
            return sum_row_blocks(function.prepare(), self._X, in_use, n_jobs=self._n_jobs)


def sample_positions(
    n_rows: int, random_state: int | np.random.RandomState | None = None
) -> IntArray:
    """Return increasing row numbers of the sample to hold in memory, at most 100,000."""
    if n_rows <= SAMPLE_ROWS:
        return np.arange(n_rows)
    # Use a random stream separate from that of the landmarks.
    (rng,) = seeded_generator(random_state).spawn(1)
    return np.sort(rng.choice(n_rows, SAMPLE_ROWS, replace=False))


def map_row_blocks(
    function: Callable[..., NDArray[Any]],
    *arrays: NDArray[Any],
    block: int = BLOCK,
    least: int | None = None,
    axis: int = 0,
    n_jobs: int | None = None,
) -> NDArray[Any]:
    """Apply a row-wise function to blocks of rows; return the results, ``(n, ...)``.

    The last block is padded to a multiple of ``least`` rows, by default to a whole block, so that a
    row's result does not depend on the other rows. ``axis`` of the arrays and of the results, 0 or
    -1, is that of the rows. ``n_jobs`` is as in joblib.
    """
    n = arrays[0].shape[axis]

    def rows(start: int, stop: int) -> Any:
        return (..., slice(start, stop)) if axis else slice(start, stop)

    def apply_block(start: int) -> NDArray[Any]:
        parts = [array[rows(start, start + block)] for array in arrays]
        step, n_rows = least or block, parts[0].shape[axis]
        if missing := min(-n_rows % step, block - n_rows) if n_rows else step:
            for place, part in enumerate(parts):
                widths = np.zeros((part.ndim, 2), int)
                widths[axis, 1] = missing
                parts[place] = np.pad(part, widths, "edge" if n else "constant")
        return function(*map(np.ascontiguousarray, parts))

    with one_blas_thread():
        first = apply_block(0)
        if n <= block:
            return np.asarray(first[rows(0, n)])
        shape = [*first.shape]
        shape[axis] = n
        result = np.empty(shape, dtype=first.dtype)
        result[rows(0, block)] = first

        def work(start: int) -> None:
            result[rows(start, start + block)] = apply_block(start)[rows(0, n - start)]

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
    """Sum a function over consecutive blocks of X (n, d), for the rows of a mask."""

    def sum_block(start: int) -> Sums:
        part = slice(start, start + block)
        return function(X[part] if in_use is None else X[part][in_use[part]])

    with one_blas_thread():
        sums = in_order(sum_block, range(0, len(X), block), n_jobs)
        total: Sums = next(sums)
        for block_sums in sums:
            total = total + block_sums
    return total


def in_order(
    function: Callable[[int], Partial], starts: Iterable[int], n_jobs: int | None = None
) -> Iterator[Partial]:
    """Yield a function's value for each start, in order, computed by ``n_jobs`` threads."""
    # Use threads: joblib warns about processes inside a multiprocessing process.
    with parallel_config(backend="threading"):
        is_one = effective_n_jobs(n_jobs) == 1
    if is_one:
        # With one thread, avoid joblib: scheduling a small block takes as long as computing it.
        yield from map(function, starts)
    else:
        # numpy handles overflow per thread: copy the caller's settings.
        handling, call = np.geterr(), np.geterrcall()

        def as_here(start: int) -> Partial:
            with np.errstate(call=call, **handling):  # type: ignore[arg-type]
                return function(start)

        parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
        yield from parallel(delayed(as_here)(start) for start in starts)
