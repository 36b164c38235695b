"""The encoded rows of a table that is read in parts: in one temporary file, or with who made them.

A later pass reads neither text nor Parquet again, but blocks of floats. They are read and not
mapped: pages of a map count as memory of the process.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.names import one_line
from kpca_apps.files.output import require_disk, spool_folder, unusable

__all__ = ["EncodedFile"]

FloatArray = NDArray[np.float64]


class EncodedFile:
    """Rows of floats in a temporary file, removed when nothing refers to this or the program ends.

    Who has read a part writes its rows, threads and processes alike; what a killed run leaves is
    removed by the next one.

    Parameters
    ----------
    n_rows, n_columns : int
        How many there are; the file takes all its space at once.

    Raises
    ------
    InputError
        If the disk has no room for it.

    Examples
    --------
    >>> file = EncodedFile(3, 2)
    >>> file.write(1, np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> file.rows(1, 3)
    array([[1., 2.],
           [3., 4.]])
    """

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self._row_bytes, self._n_columns = 8 * n_columns, n_columns
        self._spool = spool_folder()
        self._path = self._spool.path / "rows"
        require_disk(self._spool.path, n_rows * self._row_bytes, f"A table of {n_rows:,} rows")
        try:
            with self._path.open("xb") as file:
                # Without space of its own, a full disk would end the run half way.
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, n_rows * self._row_bytes)
        except OSError as error:
            raise unusable(error) from None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the removal to the process that made the file."""
        return {name: value for name, value in self.__dict__.items() if name != "_spool"}

    def write(self, start: int, rows: FloatArray) -> None:
        """Write rows (k, d) to their place, from 0."""
        try:
            with self._path.open("r+b") as file:
                file.seek(start * self._row_bytes)
                file.write(np.ascontiguousarray(rows).data)
        except OSError as error:
            raise unusable(error) from None

    def rows(self, start: int, stop: int) -> FloatArray:
        """Read the rows from `start` to `stop` - 1, shape (k, d)."""
        count, offset = (stop - start) * self._n_columns, start * self._row_bytes
        try:
            read = np.fromfile(self._path, dtype=np.float64, count=count, offset=offset)
        except OSError:
            read = np.empty(0)
        if len(read) < count:
            raise InputError(
                f"{one_line(str(self._path), 200)}: the encoded rows are no longer there; leave "
                "temporary files alone while a table is worked on, and run again."
            )
        return read.reshape(stop - start, self._n_columns)
