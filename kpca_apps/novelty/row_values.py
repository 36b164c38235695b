"""Arrays of one number a row: in memory for tables that are, else in a temporary file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kpca_apps.system.files.spools import spilled
from kpca_apps.system.memory import ROWS_IN_MEMORY, drop_pages

_ROWS_A_BLOCK = 1 << 18


def row_values(n_rows: int, dtype: DTypeLike) -> NDArray[Any]:
    """Make an array of zeros, one a row, to be written to.

    Above 100,000 rows it is mapped from a file that is removed with it.
    """
    if n_rows <= ROWS_IN_MEMORY:
        return np.zeros(n_rows, dtype=dtype)
    return spilled(n_rows, dtype)


def blocks_of(n: int) -> Iterator[slice]:
    """Cut the positions of an array into blocks of 2^18, always at the same places."""
    for start in range(0, n, _ROWS_A_BLOCK):
        yield slice(start, min(start + _ROWS_A_BLOCK, n))


def let_go(*arrays: NDArray[Any] | None) -> None:
    """Let go of the memory that arrays mapped from files take: what is read again comes back."""
    for array in arrays:
        # Copies are of the same class, but of no file.
        if (mapped := getattr(array, "_mmap", None)) is not None:
            drop_pages(mapped)
