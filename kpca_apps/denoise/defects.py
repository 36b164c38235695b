"""Find and fill sensor defects: lone pixels and dead lines.

A hot pixel, or a firefly of a renderer, differs from all its neighbours, while optics spread a star
over several pixels. The difference is compared with other variation in the neighbourhood, which
excludes letters, dither and grain. A dead line differs from both neighbours over its whole length,
as drawn lines almost never do.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.ndimage import median_filter, uniform_filter

from kpca_apps.denoise.estimate.info import Defects
from kpca_apps.denoise.noise.impulse import fill_from_neighbours, median_of_nine

Plane = NDArray[np.float32]
Flags = NDArray[np.bool_]

# Parts of a 5 x 5 window: the four pixels next to the centre, and the outermost pixels.
_DISTANCE = np.abs(np.arange(5) - 2)
_BESIDE = np.add.outer(_DISTANCE, _DISTANCE) == 1
_RING = np.maximum.outer(_DISTANCE, _DISTANCE) == 2
# A lone pixel differs from its surroundings by over FAR times the variation in a window of width
# WINDOW. The median of its four neighbours differs from the surroundings by less than the share
# SHARED of that difference. On two million pixels of nine photographs: at most 66 false finds with
# noise of 3 (of 255), 25 with noise of 10. None of 1,200 stars at least 1.2 pixels wide is found.
FAR, WINDOW, SHARED = 8.0, 33, 0.125
ROUNDS = 8  # maximum number of rounds, as filling lone pixels reveals others
# Minimum difference of a dead line from its neighbours, relative to that of other lines. With noise
# of 5 of 255, lines of 17 pictures of scikit-image reached 26.
DEAD = 30.0
WHOLE = 0.02  # share of a dead line's pixels that may differ by less than the limit
ENOUGH = 512  # maximum number of pixels per line that are read to find possibly dead lines
SHORTEST = 64  # minimum side in pixels of a plane in which dead lines are sought
# Number of rows processed at a time, to save memory, and number of rows above and below that affect
# them.
STRIP, BEYOND = 128, WINDOW // 2 + 2


def without_defects(planes: Plane, step: float = 0.0) -> tuple[Plane, Defects]:
    """Fill and count the defects of planes (c, h, w); `step` is the spacing of integer values."""
    corrected, found = planes.copy(), list[Defects]()
    for plane in corrected:
        columns, rows = dead_rows(plane.T, step), dead_rows(plane, step)
        plane[...] = fill_from_neighbours(plane, columns | rows[:, np.newaxis])
        lone = lone_pixels(plane, step)
        plane[...] = fill_from_neighbours(plane, lone)
        found.append(Defects(*(int(np.count_nonzero(one)) for one in (lone, columns, rows))))
    return corrected, Defects(*map(max, zip(*found, strict=True)))


def lone_pixels(plane: Plane, step: float = 0.0) -> Flags:
    """Return which pixels differ more from their surroundings than detail or noise explains."""
    lone, is_new = np.zeros(plane.shape, bool), np.ones(plane.shape, bool)
    for _ in range(ROUNDS):
        corrected, last, is_new = fill_from_neighbours(plane, lone), is_new, np.zeros_like(lone)
        for start in range(0, len(plane), STRIP):
            above = min(start, BEYOND)
            seen = slice(start - above, start + STRIP + BEYOND)
            # Rows whose surroundings did not change in the last round have no new lone pixels.
            if last[max(0, start - 2 * BEYOND) : start + STRIP + 2 * BEYOND].any():
                found = _lone_in(corrected[seen], lone[seen], step)
                is_new[start : start + STRIP] = found[above : above + STRIP]
        if not is_new.any():
            break
        lone |= is_new
    return lone


def _lone_in(corrected: Plane, lone: Flags, step: float) -> Flags:
    details = corrected - median_of_nine(corrected)
    kept = np.float32(1)  # share of pixels that are not lone
    if lone.any():
        kept = np.maximum(uniform_filter((~lone).astype(np.float32), WINDOW), 1.0 / WINDOW**2)
    squares = uniform_filter(np.where(lone, 0, details**2), WINDOW)
    least = FAR * np.maximum(np.sqrt(np.maximum(squares, 0.0) / kept), step)
    places = np.nonzero((np.abs(details) > least / 2) & ~lone)
    windows = sliding_window_view(np.pad(corrected, 2, mode="reflect"), (5, 5))[places]
    around, beside = np.median(windows[:, _RING], axis=1), windows[:, _BESIDE]
    off = np.abs(corrected[places] - around)
    is_alone = np.abs(np.median(beside, axis=1) - around) < SHARED * off
    found = np.zeros(corrected.shape, bool)
    found[places] = is_new = (off > least[places]) & is_alone
    # The end of a line is no lone pixel. So drop a found pixel if a neighbour that was not
    # found differs from `around` by more than half as much as the found pixel does.
    others = ~sliding_window_view(np.pad(found, 2), (5, 5))[places][:, _BESIDE]
    as_far = np.abs(beside - around[:, np.newaxis]) > off[:, np.newaxis] / 2
    found[places] = is_new & ~(others & as_far).any(axis=1)
    return found


def dead_rows(plane: Plane, step: float = 0.0) -> Flags:
    """Return which rows differ from their neighbours over their whole length."""
    dead = np.zeros(len(plane), bool)
    if min(plane.shape) < SHORTEST:
        return dead
    strips = np.array_split(np.arange(len(plane)), len(plane) // STRIP + 1)
    some = plane[:, :: -(-plane.shape[1] // ENOUGH)]
    usual = np.concatenate([np.abs(np.median(_off(some, rows), axis=1)) for rows in strips])
    least = DEAD * np.maximum(median_filter(usual, WINDOW) + np.median(usual), step)
    # The median of a dead row is off, too: only such rows need the slower quantiles.
    for row in np.flatnonzero(usual > least).tolist():
        low, high = np.quantile(_off(plane, np.array([row])), (WHOLE, 1 - WHOLE))
        dead[row] = max(low, -high) > least[row]
    # If many rows differ, they belong to the picture: edges of letters, or a halftone screen.
    return np.asarray(dead & (np.count_nonzero(dead) * WINDOW <= len(dead)))


def _off(plane: Plane, rows: NDArray[np.intp]) -> Plane:
    """Return by how much successive rows differ from the median of two rows on either side."""
    reflected = np.pad(np.arange(len(plane)), 2, mode="reflect")
    seen = plane[reflected[rows[0] : rows[-1] + 5]]
    a, b, own, c, d = (seen[k : k + len(rows)] for k in range(5))
    inner = np.maximum(np.minimum(a, b), np.minimum(c, d))
    outer = np.minimum(np.maximum(a, b), np.maximum(c, d))
    return np.ascontiguousarray(own - (inner + outer) / 2)
