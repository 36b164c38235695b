"""Pages with more pixels than fit into memory, as bands of rows from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 256  # minimum number of rows of a band


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
