"""A page of more pixels than fit into memory, as bands of rows from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 256  # of a band, or as many more as make whole tiles


@dataclass(frozen=True)
class Bands:
    """Pixels to be written, in the order of their rows; they can be had once."""

    shape: tuple[int, ...]  # (h, w) or (h, w, channels)
    dtype: np.dtype[Any]
    rows: int  # of each band, but for the last
    each: Iterator[NDArray[Any]] = field(repr=False)
    # Smaller copies, to be had when the last band was taken.
    copies: tuple[Bands, ...] = field(default=(), repr=False)


def rows_of_band(block: int) -> int:
    """Return how many rows a band has that holds whole blocks of so many.

    >>> rows_of_band(256), rows_of_band(240)
    (256, 480)
    """
    return -(-ROWS // block) * block
