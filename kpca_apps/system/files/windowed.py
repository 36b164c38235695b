"""Arrays in temporary files, with only the accessed parts in memory.

Pages of a mapped file count as memory of the process until they are released. `MappedArray` copies
what is read and releases its pages at once, so that its users need not.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from mmap import mmap
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kpca_apps.errors import InputError
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.files.spools import require_disk, spool_folder, temporary_folder, writable
from kpca_apps.system.memory import ROWS_IN_MEMORY, drop_pages

ROWS_A_BLOCK = 1 << 18


class SharedArray:
    """Floats, zero at first, in a file shared by the processes of this machine.

    The file is removed with the object, or when the process ends.
    """

    def __init__(self, shape: tuple[int, ...], label: str) -> None:
        self.shape, self._held = shape, spool_folder(folder=False)
        self._path = self._held.path
        with self._path.open("r+b") as file:
            _allocate(file, self._path.parent, shape, float, label)

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
        with writable(), self._path.open("r+b") as file:
            file.seek(rows.start * 8 * math.prod(self.shape[1:]))
            file.write(np.ascontiguousarray(values).data)


class MappedArray(np.memmap[Any, Any]):
    """An array in an unnamed temporary file.

    Reading items copies them to memory. The pages of the file are released after each access.
    Copies of the array are in memory, and behave like other arrays.
    """

    _mmap: mmap | None  # None in copies

    def __getitem__(self, key: Any) -> Any:
        """Copy items to memory, also those at an array of positions; ``[...]`` is the array."""
        if self._mmap is None or key is ...:
            return super().__getitem__(key)
        plain, is_array = np.asarray(self), isinstance(key, np.ndarray)
        if not (is_array and self.ndim == key.ndim == 1 and key.dtype.kind in "iu"):
            item = plain[key]
            if isinstance(item, np.ndarray) and item.base is not None:
                item = item.copy()
            drop_pages(self._mmap)
            return item
        # Read one block of the file after the other, as each position may map many pages.
        order, item = key.argsort(kind="stable"), np.empty(len(key), self.dtype)
        starts = np.arange(ROWS_A_BLOCK, len(self), ROWS_A_BLOCK)
        for places in np.split(order, key[order].searchsorted(starts)):
            item[places] = plain[key[places]]
            drop_pages(self._mmap)
        return item

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write items to the file."""
        np.asarray(self)[key] = value
        drop_pages(self._mmap)

    def __iter__(self) -> Iterator[Any]:
        """Read one item after the other, without the cost of releasing pages after each."""
        return iter(np.asarray(self))

    def __array_wrap__(self, array: Any, *_: Any, **__: Any) -> Any:
        """Return what functions compute as numbers and ordinary arrays."""
        return array if array is self else np.asarray(array)[()]


def spilled(
    shape: tuple[int, ...],
    dtype: DTypeLike = float,
    *,
    label: str = "",
    folder: Path | None = None,
) -> MappedArray:
    """Return an array of zeros in an unnamed temporary file; raise InputError if that fails.

    The space is allocated at once. The file cannot be opened by name, and is removed with the array
    or at the end of the process. ``label`` is the file's purpose, for messages.
    """
    folder, label = folder or temporary_folder(), label or f"A table of {shape[0]:,} rows"
    with writable(), tempfile.TemporaryFile(dir=folder) as file:
        _allocate(file, folder, shape, dtype, label)
        return MappedArray(file, dtype=dtype, mode="w+", shape=shape)


def _allocate(
    file: IO[bytes], folder: Path, shape: tuple[int, ...], dtype: DTypeLike, label: str
) -> None:
    """Allocate the space of an array in a file; a full disk would later kill the process."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    require_disk(folder, n_bytes, label)
    with writable():
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            file.truncate(n_bytes)


def row_values(n_rows: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return a writable array of zeros; above 100,000 rows it is mapped from a temporary file."""
    return np.zeros(n_rows, dtype) if n_rows <= ROWS_IN_MEMORY else spilled((n_rows,), dtype)


def blocks(n: int, size: int = ROWS_A_BLOCK) -> Iterator[slice]:
    """Yield slices that cover n rows in order."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def rows_where(values: NDArray[Any], holds: Callable[[NDArray[Any]], BoolArray]) -> IntArray:
    """Return the increasing positions of the values for which a condition holds."""
    found = (of.start + np.flatnonzero(holds(values[of])) for of in blocks(len(values)))
    return np.concatenate([np.arange(0), *found])
