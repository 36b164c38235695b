"""Arrays in temporary files, with only the accessed parts in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kpca_apps.errors import InputError
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.files.spools import allocate, spilled, spool_folder, unusable
from kpca_apps.system.memory import ROWS_IN_MEMORY, drop_pages

ROWS_A_BLOCK = 1 << 18
SCATTERED = 64  # number of places accessed at once; each may map half a megabyte of its file


class SharedArray:
    """Floats, zero at first, in a file shared by the processes of this machine.

    The file is removed with the object, or when the process ends.
    """

    def __init__(self, shape: tuple[int, ...], label: str) -> None:
        self.shape, self._held = shape, spool_folder(folder=False)
        self._path = self._held.path
        with self._path.open("r+b") as file:
            allocate(file, self._path.parent, shape, float, label)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the owner's handle, whose deletion would remove the file."""
        return {name: value for name, value in self.__dict__.items() if name != "_held"}

    def __getitem__(self, rows: slice | IntArray) -> FloatArray:
        """Read a slice of the rows, or rows in the requested order."""
        # Read the file instead of mapping it: a single row would map 64 KiB, which count as memory.
        if not isinstance(rows, slice):
            found = (self[row : row + 1] for row in np.asarray(rows).tolist())
            return np.concatenate([self[:0], *found])
        start, stop, _ = rows.indices(self.shape[0])
        n, width = max(stop - start, 0), math.prod(self.shape[1:])
        try:
            values = np.fromfile(self._path, float, n * width, offset=8 * start * width)
            return values.reshape(n, *self.shape[1:])
        except (OSError, ValueError):
            raise InputError(
                "the encoded rows are no longer there; leave temporary files alone while a table "
                "is worked on, and run again.",
                self._path,
            ) from None

    def __setitem__(self, rows: slice, values: FloatArray) -> None:
        """Write rows to the file; writing through a memory map would take ten times as long."""
        try:
            with self._path.open("r+b") as file:
                file.seek(rows.start * 8 * math.prod(self.shape[1:]))
                file.write(np.ascontiguousarray(values).data)
        except OSError as error:
            raise unusable(error) from None


def row_values(n_rows: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return a writable array of zeros; above 100,000 rows it is mapped from a temporary file."""
    return np.zeros(n_rows, dtype) if n_rows <= ROWS_IN_MEMORY else spilled(n_rows, dtype)


def blocks_of(*arrays: NDArray[Any], size: int = ROWS_A_BLOCK) -> Iterator[slice]:
    """Yield slices that cover the first array; after each, release the pages of all arrays."""
    n = len(arrays[0])
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
        release_pages(*arrays)


def release_pages(*arrays: NDArray[Any] | None) -> None:
    """Release the memory pages of arrays mapped from files; reading loads them again."""
    for array in arrays:
        # Copies have the same class, but no file.
        if (mapped := getattr(array, "_mmap", None)) is not None:
            drop_pages(mapped)


def values_at(values: NDArray[Any], positions: IntArray) -> NDArray[Any]:
    """Return the values at some positions, in the requested order."""
    found = np.empty(len(positions), dtype=values.dtype)
    for block in blocks_of(positions, values, size=SCATTERED):
        found[block] = values[positions[block]]
    return found


def rows_where(values: NDArray[Any], holds: Callable[[NDArray[Any]], BoolArray]) -> IntArray:
    """Return the increasing positions of the values for which a condition holds."""
    found = (block.start + np.flatnonzero(holds(values[block])) for block in blocks_of(values))
    return np.concatenate([np.arange(0), *found])
