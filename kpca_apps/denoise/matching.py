"""Groups of similar patches: the nearest neighbours of a reference, with random ties.

Two patches whose squared distance is below what the noise alone explains are the same patch as
far as anyone can tell. Taking the nearest of them anyway picks the neighbours that share the
reference's noise, and their mean keeps it. Such candidates are drawn by a hash of their
coordinates instead: fair, and the same on every run, whatever the tiling.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.compiled import Scalar, compiled

__all__ = ["LANES", "RADIUS", "find_group", "matching_space", "origin_of", "pad_guide"]

RADIUS = 18
"""Patches are looked for within this many pixels of the reference, both ways."""

LANES = 40
"""Columns of candidates compared at once: 2 RADIUS + 1, rounded up to whole vector registers."""

Plane = NDArray[np.float32]
Vector = NDArray[np.float32]
Places = NDArray[np.int32]


def origin_of(first_row: int, first_column: int) -> int:
    """Return the place in the whole image of a piece's first pixel, as one number."""
    return (first_row << 32) + first_column


def pad_guide(guide: Plane) -> Plane:
    """Widen an image so that every reference has ``LANES`` columns of candidates to read.

    Parameters
    ----------
    guide : (h, w) float32 array
        The image patches are compared in.

    Returns
    -------
    (h, RADIUS + w + LANES) float32 array
        Zeros on both sides; they are read but never chosen.
    """
    return np.pad(guide, ((0, 0), (RADIUS, LANES)))


@compiled
def _row_distances(
    padded: Plane, y: int, x: int, other_y: int, height: int, width: int, out: Vector
) -> None:
    """Squared distances of the patch at (y, x) to LANES patches starting at (other_y, x - R)."""
    for t in range(LANES):
        out[t] = np.float32(0)
    for i in range(height):
        mine = padded[y + i]
        theirs = padded[other_y + i]
        j = 0
        while j + 1 < width:
            a = mine[x + RADIUS + j]
            b = mine[x + RADIUS + j + 1]
            left = theirs[x + j : x + j + LANES]
            right = theirs[x + j + 1 : x + j + 1 + LANES]
            for t in range(LANES):
                p = left[t] - a
                q = right[t] - b
                out[t] += p * p + q * q
            j += 2
        if j < width:
            a = mine[x + RADIUS + j]
            left = theirs[x + j : x + j + LANES]
            for t in range(LANES):
                p = left[t] - a
                out[t] += p * p


@compiled
def _uniform(reference: np.uint64, candidate: np.uint64) -> np.float32:
    """Hash two 64-bit keys into [0, 1)."""
    z = reference * np.uint64(0x9E3779B97F4A7C15) + candidate * np.uint64(0xC2B2AE3D27D4EB4F)
    z ^= z >> np.uint64(31)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(29)
    return np.float32(z >> np.uint64(40)) * np.float32(2.0**-24)


@compiled
def _key(y: int, x: int) -> np.uint64:
    """Coordinates as one number."""
    return (np.uint64(y) << np.uint64(32)) | np.uint64(x)


@compiled
def _kth_smallest(values: Vector, n: int, k: int) -> np.float32:
    """Return the k-th smallest (from 1) of the first n values, which are reordered."""
    low, high, wanted = 0, n - 1, k - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return np.float32(values[wanted])


@compiled
def find_group(
    padded: Plane,
    y: int,
    x: int,
    shape: tuple[int, int],
    origin: int,
    k: int,
    tie: Scalar,
    group: Places,
    space: tuple[Vector, Vector, Places],
) -> int:
    """Write the positions of the k patches nearest to a reference; return how many there are.

    Parameters
    ----------
    padded : (h, RADIUS + w + LANES) float32 array
        The guide, from `pad_guide`.
    y, x : int
        Upper left corner of the reference in the guide.
    shape : (int, int)
        Height and width of a patch in pixels.
    origin : int
        From `origin_of`: hashes use the coordinates of the whole image.
    k : int
        Patches wanted; fewer are found in images that hold fewer.
    tie : float
        Squared distances below this are drawn at random from its upper half.
    group : (k, 2) int array
        Receives row and column of each patch, in reading order.
    space : tuple of arrays
        From `matching_space`.

    Returns
    -------
    int
        Patches found, the reference among them.
    """
    distances, scratch, places = space
    n = _candidates(padded, y, x, shape, origin, tie, distances, places, scratch[:LANES])
    k = min(k, n)
    for t in range(n):
        scratch[t] = distances[t]
    last = _kth_smallest(scratch, n, k)
    nearer = 0
    for t in range(n):
        nearer += distances[t] < last
    level = k - nearer
    found = 0
    for t in range(n):
        equal = distances[t] == last
        if distances[t] < last or (equal and level > 0):
            group[found, 0] = places[t, 0]
            group[found, 1] = places[t, 1]
            found += 1
            level -= equal
    return found


@compiled
def _candidates(
    padded: Plane,
    y: int,
    x: int,
    shape: tuple[int, int],
    origin: int,
    tie: Scalar,
    distances: Vector,
    places: Places,
    row: Vector,
) -> int:
    """List every patch in reach with its distance, ties drawn; return how many there are."""
    height, width = shape
    rows = padded.shape[0] - height
    columns = padded.shape[1] - RADIUS - LANES - width
    left, right = max(0, x - RADIUS), min(columns, x + RADIUS)
    reference = np.uint64(origin) + _key(y, x)
    n = 0
    for other_y in range(max(0, y - RADIUS), min(rows, y + RADIUS) + 1):
        _row_distances(padded, y, x, other_y, height, width, row)
        for other_x in range(left, right + 1):
            d = row[other_x - x + RADIUS]
            if np.isnan(d):  # An order of distances there must be, or too many would be found.
                d = np.float32(np.inf)
            if d < tie:
                u = _uniform(reference, np.uint64(origin) + _key(other_y, other_x))
                d = tie * (np.float32(0.5) + np.float32(0.5) * u)
            if other_y == y and other_x == x:
                d = np.float32(-1)
            distances[n] = d
            places[n, 0] = other_y
            places[n, 1] = other_x
            n += 1
    return n


@compiled
def matching_space() -> tuple[Vector, Vector, Places]:
    """Work space of `find_group`: distances twice, and places."""
    most = (2 * RADIUS + 1) * LANES
    return (
        np.zeros(most, np.float32),
        np.zeros(most, np.float32),
        np.zeros((most, 2), np.int32),
    )
