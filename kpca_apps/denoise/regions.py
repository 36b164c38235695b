"""Regions of an image to denoise, and the margins denoised with them."""

from __future__ import annotations

from typing import Any

from kpca_apps.denoise.options import Window
from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import shown
from kpca_apps.options import is_number

Region = tuple[int, int, int, int]  # column and row of the top left corner, width, height

# Width in pixels of the margin denoised with a region, so that patches at edges find similar
# patches. The width is the reach of two passes.
AROUND = 96


def checked_region(region: Any) -> Region:
    """Return a region as four integers, or raise an error.

    >>> checked_region([0, 8, 64, 64])
    (0, 8, 64, 64)
    """
    try:
        numbers = tuple(region)
    except TypeError:
        numbers = ()
    lowest = (0, 0, 1, 1)
    if len(numbers) != 4 or not all(
        is_number(one, low, whole=True) for one, low in zip(numbers, lowest, strict=True)
    ):
        raise ConfigError(
            f"region is {shown(region)}; give four whole numbers: column and row of its first "
            "pixel, from 0, width and height"
        )
    x, y, width, height = (int(one) for one in numbers)
    return x, y, width, height


def window_of(region: Any, size: tuple[int, int]) -> Window:
    """Return the rows and columns of a region inside an image of size (height, width).

    >>> window_of((2, 0, 3, 4), (8, 8))
    ((0, 4), (2, 5))
    """
    x, y, width, height = checked_region(region)
    if x + width > size[1] or y + height > size[0]:
        raise InputError(
            f"region {x},{y},{width},{height} reaches beyond the image of {size[1]} x {size[0]} "
            "pixels; give one inside"
        )
    return (y, y + height), (x, x + width)


def window_around(window: Window, size: tuple[int, int]) -> tuple[Window, Window]:
    """Return a window with its margin, and the position of the window in it.

    >>> window_around(((0, 4), (200, 210)), (100, 1000))
    (((0, 100), (104, 306)), ((0, 4), (96, 106)))
    """
    (top, bottom), (left, right) = window
    first, last = max(0, top - AROUND), min(size[0], bottom + AROUND)
    before, behind = max(0, left - AROUND), min(size[1], right + AROUND)
    inside = (top - first, bottom - first), (left - before, right - before)
    return ((first, last), (before, behind)), inside
