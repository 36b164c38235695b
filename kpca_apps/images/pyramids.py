"""Smaller copies of an image, as viewers of whole slides want them: made anew of the larger one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.images.types import Page

ROWS = 32  # of a copy, made at once


def times_smaller(page: Page, whole: Page) -> int:
    """Return how many pixels of another page one of a smaller copy stands for; 0 if it is none.

    >>> whole = Page(1000, 801, 3, np.dtype("u1"))
    >>> times_smaller(Page(250, 200, 3, np.dtype("u1")), whole)
    4
    """
    if (page.channels, page.dtype) != (whole.channels, whole.dtype):
        return 0
    times = round(whole.width / page.width)
    sides = ((whole.height, page.height), (whole.width, page.width))
    # Rounded down or up.
    fits = all(abs(times * own - side) < times for side, own in sides)
    return times if fits and times >= 2 else 0


def smaller_copy(pixels: NDArray[Any], page: Page, times: int) -> NDArray[Any]:
    """Return the means of so many pixels each way, for a page; beyond the edge, edges go on.

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
