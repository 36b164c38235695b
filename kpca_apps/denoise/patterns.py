"""Colour patterns of sensors, and mosaics split into planes of one colour each.

A Bayer pattern repeats every 2 x 2 pixels. An X-Trans pattern repeats every 6 x 6 pixels, but its 3
x 3 cells all have green at the same five places and, if aligned, two red and two blue pixels. Each
pixel of a cell becomes a plane.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError

Place = tuple[int, int]  # row and column
Plane = NDArray[np.float32]

BAYER = ("RGGB", "BGGR", "GRBG", "GBRG")


def checked_pattern(pattern: str) -> str:
    """Return a Bayer (2 x 2) or X-Trans (6 x 6) pattern; raise ConfigError for others."""
    if pattern in BAYER or (len(pattern) == 36 and phases_of(pattern) and _greens(pattern)):
        return pattern
    raise ConfigError(
        f"pattern is {pattern!r}; give one of {', '.join(BAYER)}, or the 36 letters of X-Trans"
    )


def phases_of(pattern: str) -> list[Place]:
    """Return the positions (row, column) in a pattern's cell at which a mosaic may start.

    >>> phases_of("RGGB")
    [(0, 0), (1, 1), (0, 1), (1, 0)]
    """
    if pattern in BAYER:
        return [(0, 0), (1, 1), (0, 1), (1, 0)]
    return [
        (down, across)
        for down, across in np.ndindex(3, 3)
        if all(_is_balanced(pattern, y - down, x - across) for y in (0, 3) for x in (0, 3))
    ]


def _is_balanced(pattern: str, top: int, left: int) -> bool:
    """Return whether an X-Trans cell has five green, two red and two blue pixels."""
    cell = [colour_at(pattern, top + y, left + x) for y, x in np.ndindex(3, 3)]
    return [cell.count(letter) for letter in "RGB"] == [2, 5, 2]


def period_of(pattern: str) -> int:
    """Return the period of a pattern in pixels."""
    return isqrt(len(pattern))


def cell_of(pattern: str) -> int:
    """Return the side of a pattern's cell in pixels."""
    return 2 if len(pattern) == 4 else 3


def colour_at(pattern: str, row: int, column: int) -> str:
    """Return the colour of a pixel.

    >>> colour_at("RGGB", 2, 3)
    'G'
    """
    n = period_of(pattern)
    return pattern[n * (row % n) + column % n]


def places_of(pattern: str, corner: Place = (0, 0)) -> list[Place]:
    """Return the positions of pixels in the cell at a corner: red, then green, then blue.

    >>> places_of("GRBG")
    [(0, 1), (0, 0), (1, 1), (1, 0)]
    """
    down, across = corner
    cell = cell_of(pattern)
    found = [(y, x) for y in range(cell) for x in range(cell)]
    return sorted(found, key=lambda p: "RGB".index(colour_at(pattern, down + p[0], across + p[1])))


def split(mosaic: Plane, pattern: str, phase: Place) -> Plane:
    """Return the planes of a mosaic (h, w) that starts `phase` pixels inside its first cell."""
    n, cell = period_of(pattern), cell_of(pattern)
    rows, columns = (
        _continued(side, before, n) for side, before in zip(mosaic.shape, phase, strict=True)
    )
    whole = mosaic[np.ix_(rows, columns)]
    planes = np.empty((cell * cell, len(rows) // cell, len(columns) // cell), np.float32)
    for plane, target, source in _paired(planes, whole, pattern, phase):
        planes[plane][target] = whole[source]
    return planes


def merged(planes: Plane, shape: tuple[int, int], pattern: str, phase: Place) -> Plane:
    """Return the mosaic (h, w) of the planes from `split`."""
    cell, (down, across), (height, width) = cell_of(pattern), phase, shape
    whole = np.empty((cell * planes.shape[1], cell * planes.shape[2]), np.float32)
    for plane, target, source in _paired(planes, whole, pattern, phase):
        whole[source] = planes[plane][target]
    return whole[down : down + height, across : across + width]


def _continued(side: int, before: int, period: int) -> NDArray[np.intp]:
    """Return indices along a side extended to whole cells; added pixels keep the colour pattern."""
    behind = -(side + before) % period
    places = np.arange(-before, side + behind)
    if period == 2:  # mirrored
        places = np.abs(places)
        return np.asarray(np.where(places < side, places, 2 * side - 2 - places))
    places = np.where(places < 0, places + period, places)
    return np.asarray(np.where(places < side, places, places - period))


def _paired(
    planes: Plane, whole: Plane, pattern: str, phase: Place
) -> list[tuple[int, tuple[slice, slice], tuple[slice, slice]]]:
    """Return (plane number, slices of the plane, slices of `whole` with the same pixels)."""
    n, cell = period_of(pattern), cell_of(pattern)
    m = n // cell
    pairs = []
    for i, j in np.ndindex(m, m):
        corner = cell * i - phase[0], cell * j - phase[1]
        for plane, (y, x) in enumerate(places_of(pattern, corner)):
            pairs.append((plane, np.s_[i::m, j::m], np.s_[cell * i + y :: n, cell * j + x :: n]))
    return pairs


def measuring_planes(mosaic: Plane, pattern: str) -> tuple[Plane, tuple[Plane, Plane], Plane]:
    """Return evenly spaced views of a mosaic: red, two adjacent planes of green, and blue."""
    n, cell = period_of(pattern), cell_of(pattern)
    height, width = (side // n * n for side in mosaic.shape)
    letters = {(y, x): colour_at(pattern, y, x) for y in range(n) for x in range(n)}
    red, blue = (
        mosaic[y:height:n, x:width:n]
        for y, x in (next(p for p in letters if letters[p] == one) for one in "RB")
    )
    green, other = (mosaic[y:height:cell, x:width:cell] for y, x in _greens(pattern)[0])
    return red, (green, other), blue


def _greens(pattern: str) -> list[tuple[Place, Place]]:
    """Return the pairs of diagonally adjacent positions that are green in every cell."""
    n, cell = period_of(pattern), cell_of(pattern)
    always = [
        (y, x)
        for y, x in np.ndindex(cell, cell)
        if all(
            colour_at(pattern, y + down, x + across) == "G"
            for down in range(0, n, cell)
            for across in range(0, n, cell)
        )
    ]
    return [
        (p, q)
        for p in always
        for q in always
        if p < q and abs(p[0] - q[0]) == abs(p[1] - q[1]) == 1
    ]
