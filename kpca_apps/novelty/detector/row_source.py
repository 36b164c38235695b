"""Where the detector's rows come from: a matrix in memory, or whatever yields blocks of rows.

A fit looks at rows in three ways only: at a sample of them that is held in memory, at one number a
row that a function makes of it, and at sums over rows. Whoever can do these three can be fitted,
however many rows there are. Blocks are cut at fixed row numbers, so that results do not depend on
the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from kpca_apps.blas import one_blas_thread
from kpca_apps.engine.blocks import in_order
from kpca_apps.engine.seeding import seeded_generator
from kpca_apps.memory import ROWS_IN_MEMORY

__all__ = [
    "SAMPLE_ROWS",
    "ArrayRows",
    "RowFunction",
    "RowSource",
    "RowSums",
    "map_rows",
    "sample_positions",
    "sum_rows",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

SAMPLE_ROWS = ROWS_IN_MEMORY
"""Rows held in memory; a table of at most so many is its own sample."""

ROWS_MAPPED = 768
ROWS_SUMMED = 4_096
"""Rows a block; parts of a table must begin at multiples of the latter for equal sums."""


class Addable(Protocol):
    """What sums are made of."""

    def __add__(self, other: Self, /) -> Self: ...


Sums = TypeVar("Sums", bound=Addable)
Sums_co = TypeVar("Sums_co", bound=Addable, covariant=True)


class RowFunction(Protocol):
    """One number a row. A frozen dataclass whose fields are all it knows: it can be sent."""

    purpose: ClassVar[str]
    """What is done to rows, to be shown while it lasts."""

    def prepare(self) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Do all work that does not depend on rows once, where the rows are.

        Returns
        -------
        callable
            Maps rows ``(b, d)`` and whether each is in use ``(b,)`` to numbers ``(b,)``. What a
            row gets depends on no other row. May be called from several threads at once.
        """
        ...


class RowSums(Protocol[Sums_co]):
    """Sums over rows. A frozen dataclass whose fields are all it knows: it can be sent."""

    def prepare(self) -> Callable[[FloatArray], Sums_co]:
        """Return what maps rows ``(b, d)``, b >= 0, to their sums."""
        ...


class RowSource(Protocol):
    """All rows of a table, as the detector looks at them."""

    @property
    def n_rows(self) -> int:
        """Number n of rows."""
        ...

    @property
    def sample(self) -> FloatArray:
        """Rows held in memory, shape (s, d), in the order of the table."""
        ...

    @property
    def sample_index(self) -> IntArray:
        """Their positions in the table, shape (s,), increasing."""
        ...

    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number a row, shape (n,); without a mask (n,) no row is in use."""
        ...

    def sum(self, function: RowSums[Sums], in_use: BoolArray | None = None) -> Sums:
        """Return the sums over the rows in use, given by a mask (n,); over all without one."""
        ...


class ArrayRows:
    """The rows of a matrix in memory.

    Parameters
    ----------
    X : (n, d) array
        The rows, n >= 1.
    random_state : int, RandomState or None, default=None
        Seeds the sample, if there are more than 100,000 rows.
    n_jobs : int or None, default=None
        Threads. The result does not depend on their number.

    Attributes
    ----------
    n_rows, sample, sample_index
        As in `RowSource`.
    """

    def __init__(
        self,
        X: FloatArray,
        random_state: int | np.random.RandomState | None = None,
        *,
        n_jobs: int | None = None,
    ) -> None:
        self._X, self._n_jobs = X, n_jobs
        self.n_rows = len(X)
        self.sample_index = sample_positions(len(X), random_state)
        self.sample = X if len(X) <= SAMPLE_ROWS else X[self.sample_index]

    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number a row, shape (n,)."""
        return map_rows(function, self._X, in_use, n_jobs=self._n_jobs)

    def sum(self, function: RowSums[Sums], in_use: BoolArray | None = None) -> Sums:
        """Return the sums over the rows in use."""
        return sum_rows(function, self._X, in_use, n_jobs=self._n_jobs)


def sample_positions(
    n_rows: int, random_state: int | np.random.RandomState | None = None
) -> IntArray:
    """Return the positions of the rows to hold in memory, increasing: at most 100,000.

    Examples
    --------
    >>> sample_positions(3, 0)
    array([0, 1, 2])
    >>> len(np.unique(sample_positions(10**6, 0)))
    100000
    """
    if n_rows <= SAMPLE_ROWS:
        return np.arange(n_rows)
    # A stream beside the one that the fit draws its landmarks from.
    (rng,) = seeded_generator(random_state).spawn(1)
    return np.sort(rng.choice(n_rows, SAMPLE_ROWS, replace=False))


def map_rows(
    function: RowFunction,
    X: FloatArray,
    in_use: BoolArray | None = None,
    *,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return what a function makes of each row of a matrix.

    Parameters
    ----------
    function : RowFunction
        What to make.
    X : (n, d) array
        Rows.
    in_use : (n,) bool array, optional
        Which rows the model is fitted on; none by default.
    n_jobs : int or None
        Threads.

    Returns
    -------
    (n,) array
        One number a row, to the bit the same whatever the other rows and the number of threads.
    """
    used = np.zeros(len(X), dtype=bool) if in_use is None else in_use
    values = np.empty(len(X))
    with one_blas_thread():
        number = function.prepare()

        def work(start: int) -> None:
            part = slice(start, start + ROWS_MAPPED)
            values[part] = number(X[part], used[part])

        for _ in in_order(work, range(0, len(X), ROWS_MAPPED), n_jobs):
            pass
    return values


def sum_rows(
    function: RowSums[Sums],
    X: FloatArray,
    in_use: BoolArray | None = None,
    *,
    n_jobs: int | None = None,
) -> Sums:
    """Return sums over the rows in use of a matrix (n, d), n >= 1; parameters as in `map_rows`."""
    with one_blas_thread():
        sums = function.prepare()

        def work(start: int) -> Sums:
            part = slice(start, start + ROWS_SUMMED)
            return sums(X[part] if in_use is None else X[part][in_use[part]])

        blocks = in_order(work, range(0, len(X), ROWS_SUMMED), n_jobs)
        total = next(blocks)
        for block in blocks:
            total += block
    return total
