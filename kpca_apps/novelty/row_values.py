"""Arrays with one number per row, in memory or mapped from a temporary file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kpca_apps.system.files.spools import spilled
from kpca_apps.system.memory import ROWS_IN_MEMORY, drop_pages

_ROWS_A_BLOCK = 1 << 18


def row_values(n_rows: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return a writable array of zeros; above 100,000 rows it is mapped from a temporary file."""
    if n_rows <= ROWS_IN_MEMORY:
        return np.zeros(n_rows, dtype=dtype)
    return spilled(n_rows, dtype)


def blocks_of(n: int, size: int = _ROWS_A_BLOCK) -> Iterator[slice]:
    """Yield slices of `size` positions that cover an array."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def release_pages(*arrays: NDArray[Any] | None) -> None:
    """Release the memory pages of arrays mapped from files; reading loads them again."""
    for array in arrays:
        # Copies have the same class, but no file.
        if (mapped := getattr(array, "_mmap", None)) is not None:
            drop_pages(mapped)
