"""Arrays in temporary files, with only the accessed parts in memory."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kpca_apps.errors import InputError
from kpca_apps.system.arrays import FloatArray
from kpca_apps.system.files.spools import allocate, spilled, spool_folder, unusable
from kpca_apps.system.memory import drop_pages


class WindowedArray:
    """An array, at first of zeros, in an unnamed file that is removed with it (see `spilled`)."""

    def __init__(
        self, shape: tuple[int, ...], dtype: DTypeLike, *, label: str, folder: Path
    ) -> None:
        self.shape = shape
        values: Any = spilled(shape, dtype, label=label, folder=folder)
        self._values, self._map = values, values.base

    def __getitem__(self, window: Any) -> NDArray[Any]:
        """Return a copy of a part of the array."""
        # Release the mapped pages, as they would count as memory of this process.
        part = np.array(self._values[window])
        drop_pages(self._map)
        return part

    def __setitem__(self, window: Any, values: NDArray[Any]) -> None:
        """Write a part of the array."""
        self._values[window] = values
        drop_pages(self._map)


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

    def __getitem__(self, window: Any) -> FloatArray:
        """Return a copy of a part of the array."""
        try:
            # Map the file only for this access, as mapped pages count as memory of the process.
            return np.array(np.memmap(self._path, np.float64, "r", shape=self.shape)[window])
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
