"""Files and pages larger than memory: random access to bytes, and bands of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError

ROWS = 256  # minimum number of rows of a band


@dataclass(frozen=True)
class LargeFile:
    """A file that can be sliced like bytes; raises InputError if the file has changed."""

    path: Path
    stat: os.stat_result

    def __len__(self) -> int:
        return self.stat.st_size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(len(self))
        with self.path.open("rb") as file:
            now = os.fstat(file.fileno())
            if (now.st_size, now.st_mtime_ns) != (self.stat.st_size, self.stat.st_mtime_ns):
                raise InputError("has changed while it was read; try again.")
            file.seek(start)
            return file.read(max(0, stop - start))


Content: TypeAlias = bytes | LargeFile


def openable(data: Content) -> BytesIO | str:
    """Return what a library's open function accepts: a buffer, or the path of a large file."""
    return BytesIO(data) if isinstance(data, bytes) else str(data.path)


@dataclass(frozen=True)
class Bands:
    """Pixels to write as bands of rows, which can be iterated once."""

    shape: tuple[int, ...]  # (h, w) or (h, w, channels)
    dtype: np.dtype[Any]
    rows: int  # number of rows of each band except the last
    each: Iterator[NDArray[Any]] = field(repr=False)
    # Smaller copies of the image; iterate them after its last band.
    copies: tuple[Bands, ...] = field(default=(), repr=False)


def rows_of_band(block: int) -> int:
    """Return the number of rows of a band that consists of whole blocks of ``block`` rows.

    >>> rows_of_band(256), rows_of_band(240)
    (256, 480)
    """
    return -(-ROWS // block) * block
