"""Arrays with a value for every row of a large table, held on disk and not in memory."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kpca_apps.files.spool import require_disk, temporary_folder, unusable

__all__ = ["spilled"]


def spilled(n: int, dtype: DTypeLike = np.float64) -> np.memmap[Any, Any]:
    """Make an array of zeros that lies in a temporary file.

    The file has no name that another program could open, takes the space it needs at once, and is
    gone with the array or with this process, however that ends.

    Parameters
    ----------
    n : int
        Number of values, at least one.
    dtype : dtype
        Of each.

    Returns
    -------
    (n,) memmap
        The array.

    Raises
    ------
    InputError
        If the disk has no room for it.

    Examples
    --------
    >>> scores = spilled(3)
    >>> scores[1] = 0.5
    >>> scores.tolist()
    [0.0, 0.5, 0.0]
    """
    folder = temporary_folder()
    n_bytes = n * np.dtype(dtype).itemsize
    require_disk(folder, n_bytes, f"A table of {n:,} rows")
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            # Without space of its own, writing to the array would end the process on a full disk.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            return np.memmap(file, dtype=dtype, mode="w+", shape=(n,))
    except OSError as error:
        raise unusable(error) from None
