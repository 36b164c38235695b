"""Recompute the smaller copies (pyramids) of an image that slide viewers use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.images.types import Page

ROWS = 32  # rows of a smaller copy that are computed at once


def times_smaller(page: Page, whole: Page) -> int:
    """Return the integer factor by which a page is smaller than another; 0 if it is no copy.

    >>> whole = Page(1000, 801, 3, np.dtype("u1"))
    >>> times_smaller(Page(250, 200, 3, np.dtype("u1")), whole)
    4
    """
    if (page.channels, page.dtype) != (whole.channels, whole.dtype):
        return 0
    times = round(whole.width / page.width)
    sides = ((whole.height, page.height), (whole.width, page.width))
    # Accept sides that are rounded down or up.
    fits = all(abs(times * own - side) < times for side, own in sides)
    return times if fits and times >= 2 else 0


def smaller_copy(pixels: NDArray[Any], page: Page, times: int) -> NDArray[Any]:
    """Return the means of blocks of ``times`` x ``times`` pixels; edges are repeated.

    >>> smaller_copy(np.array([[1.0, 3.0], [5.0, 7.0]]), Page(1, 1, 1, np.dtype("f8")), 2)
    array([[4.]])
    """
    copy = np.empty((page.height, page.width, *pixels.shape[2:]), pixels.dtype)
    columns = np.minimum(np.arange(times * page.width), pixels.shape[1] - 1)
    for top in range(0, page.height, ROWS):
        some = copy[top : top + ROWS]
        rows = np.arange(times * top, times * (top + len(some)))
        part = pixels[np.minimum(rows, len(pixels) - 1)][:, columns]
        shape = (len(some), times, page.width, times, *pixels.shape[2:])
        means = part.reshape(shape).mean(axis=(1, 3), dtype=np.float64)
        some[...] = means if pixels.dtype.kind == "f" else np.rint(means)
    return copy
