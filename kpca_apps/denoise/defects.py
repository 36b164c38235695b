"""Find and remove sensor defects: lone pixels, dead lines, and stripes.

A hot pixel, or a firefly of a renderer, differs from all its neighbours, while optics spread a star
over several pixels. The difference is compared with other variation in the neighbourhood, which
excludes letters, dither and grain. A dead line differs from both neighbours over its whole length,
as drawn lines almost never do. Stripes are offsets of all rows or of all columns: an offset shifts
every pixel of its line alike, so any part of the line shows it, in light and dark areas.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.ndimage import median_filter, uniform_filter

from kpca_apps.denoise.estimate.info import Defects
from kpca_apps.denoise.estimate.level import diagonal_deviation
from kpca_apps.denoise.noise.camera import share_in_lines
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
# Offsets are measured from lines at these distances in turn, in quarters of each line, at two
# quantiles of its pixels.
APART, QUARTERS, QUANTILES = (1, 2, 4, 8), 4, (0.25, 0.75)
# Offsets are stripes if they are AGREED times as large as the difference between any two of these
# measurements of one line; if they are at most STRONGEST times the noise; and if at most the share
# REPEATED of their energy is in spectral lines. On 37 photographs and scans, with white noise, JPEG
# and at half the size, the ratio for AGREED reached 1.0. Spectral lines have at most .11 of the
# energy of stripes, and at least .6 of that of ruled lines, line screens and weaves. Stripes, but
# not layers of a picture, have an `_outstanding` above ALONE: it is .44 to .54 for independent
# offsets, at most .09 for layers of 2 to 6 rows, and at most .26 for waves of 4 to 10 rows.
AGREED, STRONGEST, REPEATED, ALONE = 1.5, 5.0, 0.3, 0.35
# Number of rows processed at a time, to save memory, and number of rows above and below that affect
# them.
STRIP, BEYOND = 128, WINDOW // 2 + 2


def remove_defects(planes: Plane, step: float = 0.0, *, striped: bool = True) -> Defects:
    """Remove and count the defects of planes (c, h, w) in place.

    `step` is the spacing of integer values. Stripes are sought if the planes may be `striped`.
    """
    found = list[Defects]()
    for plane in planes:
        columns, rows = dead_rows(plane.T, step), dead_rows(plane, step)
        plane[...] = fill_from_neighbours(plane, columns | rows[:, np.newaxis])
        sides = (plane.T, plane) if striped else ()
        stripes = [row_offsets(side) for side in sides]
        for side, offsets in zip(sides, stripes, strict=True):
            side -= offsets[:, np.newaxis]
        lone = lone_pixels(plane, step)
        plane[...] = fill_from_neighbours(plane, lone)
        kinds = (lone, columns, rows, *stripes)
        found.append(Defects(*(int(np.count_nonzero(one)) for one in kinds)))
    return Defects(*map(max, zip(*found, strict=True)))


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
    places = np.divmod(np.flatnonzero((np.abs(details) > least / 2) & ~lone), lone.shape[1])
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
    some = _some_of(plane)
    usual = np.concatenate([np.abs(_medians(_off(some, rows))) for rows in strips])
    least = DEAD * np.maximum(median_filter(usual, WINDOW) + np.median(usual), step)
    # The median of a dead row is off, too: only such rows need the slower quantiles. A row of one
    # value, apart from dead columns that cross it, has no noise, so that its neighbours' noise does
    # not count against it.
    for row in np.flatnonzero(usual > least).tolist():
        low, high = np.quantile(_off(plane, np.array([row])), (WHOLE, 1 - WHOLE))
        has_one_value = np.ptp(np.quantile(plane[row], (WHOLE, 1 - WHOLE))) == 0
        dead[row] = has_one_value or max(low, -high) > least[row]
    # If many rows differ, they belong to the picture: edges of letters, or a halftone screen.
    return np.asarray(dead & (np.count_nonzero(dead) * WINDOW <= len(dead)))


def row_offsets(plane: Plane) -> Plane:
    """Return the offset of each row (h,) if the rows have stripes, else zeros."""
    offsets = np.zeros(len(plane), np.float32)
    some, rows = _some_of(plane), np.arange(len(plane))
    if min(plane.shape) < SHORTEST or _outstanding(some) <= ALONE:
        return offsets
    for apart in APART:
        off = _off(some - offsets[:, np.newaxis], rows, apart)
        quarters = np.array_split(off, QUARTERS, axis=1)
        seen = np.concatenate([np.quantile(one, QUANTILES, axis=1) for one in quarters])
        seen -= np.median(seen, axis=1, keepdims=True)
        own = seen.mean(axis=0)
        size = float(np.median(np.abs(own)))
        unlike = float(np.median(np.abs(seen - own), axis=1).max())
        if size <= AGREED * unlike or own.std() > STRONGEST * diagonal_deviation(some):
            break
        if share_in_lines(own[:, np.newaxis]) > REPEATED:
            break
        offsets += own.astype(np.float32)
    return offsets


def _outstanding(plane: Plane) -> float:
    """Return how far rows are above or below both neighbours, over how far they are from one."""
    steps = _medians(np.diff(plane, axis=0))
    above, below = np.minimum(steps[:-1], -steps[1:]), np.minimum(-steps[:-1], steps[1:])
    return float(np.maximum(above, below).clip(0).mean() / max(np.abs(steps).mean(), 1e-30))


def _medians(rows: Plane) -> Plane:
    """Return the median of each row, by sorting: ten times as fast as `np.median`."""
    ordered, middle = np.sort(rows, axis=1), rows.shape[1] // 2
    return np.asarray((ordered[:, middle] + ordered[:, ~middle]) / 2, np.float32)


def _some_of(plane: Plane) -> Plane:
    return plane[:, :: -(-plane.shape[1] // ENOUGH)]


def _off(plane: Plane, rows: NDArray[np.intp], apart: int = 1) -> Plane:
    """Return by how much successive rows differ from the median of two rows on either side."""
    reflected = np.pad(np.arange(len(plane)), 2 * apart, mode="reflect")
    seen = plane[reflected[rows[0] : rows[-1] + 4 * apart + 1]]
    a, b, own, c, d = (seen[k * apart : k * apart + len(rows)] for k in range(5))
    inner = np.maximum(np.minimum(a, b), np.minimum(c, d))
    outer = np.minimum(np.maximum(a, b), np.maximum(c, d))
    return np.ascontiguousarray(own - (inner + outer) / 2)
