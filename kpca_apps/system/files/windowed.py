"""Arrays in temporary files, of which no more is in memory than what is read or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kpca_apps.system.files.spools import spilled
from kpca_apps.system.memory import drop_pages


class WindowedArray:
    """An array of zeros in a file without a name, which is gone with it; see `spilled`."""

    def __init__(
        self, shape: tuple[int, ...], dtype: DTypeLike, *, label: str, folder: Path
    ) -> None:
        self.shape = shape
        values: Any = spilled(shape, dtype, label=label, folder=folder)
        self._values, self._map = values, values.base

    def __getitem__(self, window: Any) -> NDArray[Any]:
        """Return a copy of a part."""
        # Pages are dropped, else all that was ever touched would count as memory of this process.
        part = np.array(self._values[window])
        drop_pages(self._map)
        return part

    def __setitem__(self, window: Any, values: NDArray[Any]) -> None:
        """Fill a part."""
        self._values[window] = values
        drop_pages(self._map)
