"""Impulses (salt and pepper): find replaced pixels, and restore them from their neighbours.

References
----------
R. Garnett, T. Huegerich, C. Chui, W. He (2005), "A universal noise removal algorithm with an
impulse detector", IEEE Trans. Image Processing 14, eq. 3: rank-ordered absolute differences.
J. Smith (1996), "Implementing median filters in XC4000E FPGAs", XCell 23: the median of nine.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from kpca_apps.denoise.estimate.level import diagonal_deviation
from kpca_apps.denoise.noise.gaussian import denoise_gaussian, measure_white
from kpca_apps.denoise.noise.model import Inspected, Levels, Measured, Planes
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.progress import part

GUESSES = (30.0, 15.0, 8.0)  # noise levels assumed in turn to refine what replaces the impulses
REACHES = (1, 2, 3, 5, 8)  # half widths in pixels of the windows searched for good neighbours
FEWEST_GOOD = 3  # minimum number of good neighbours of which to take the median
CHUNK = 50_000
STANDS_OUT = 12.0  # extreme pixels that differ more (of 255) from good neighbours are impulses
SALT_AND_PEPPER = 0.005  # share of extreme impulses above which no other impulses are sought
CROWD, CROWDED = 5, 0.59  # window side; share of extreme pixels in a window that shows a highlight
LONELY = 20.0  # minimum difference (of 255) of an isolated pixel from its 2 most similar neighbours
LONELY_IN_NOISE = 1.2  # the same limit as a multiple of the Gaussian noise level
# Impulses differ from their neighbours by more than FAR_EXTREME (if extreme) or FAR_ALONE (if
# isolated). Each pair gives a difference (of 255) and a multiple of the noise level; the larger is
# the limit. Edges, highlights and texture have a smaller share of such pixels than WITH_IMPULSES.
FAR_EXTREME, FAR_ALONE, WITH_IMPULSES = (25.0, 5.0), (60.0, 6.0), 0.005
# Least ratio of an impulse to the variation in a window of side AROUND, if all impulses are dark or
# all are bright. A picture with a share of extreme pixels above BINARY has no impulses.
FAR_IN_TEXTURE, AROUND, BINARY = 4.0, 33, 0.9
# Impulses are sought in about this many pixels: in strips of so many rows, evenly spaced.
SEEN, STRIP = 1_000_000, 64


def measure(image: Inspected) -> Measured:
    """Return no level, as `denoise` measures the noise itself."""
    return Measured(None, (0.0,) * len(image.planes), black=image.black)


def denoise(planes: Planes, level: float | None, options: Options) -> tuple[Planes, Levels]:
    """Denoise planes in which impulses replaced some pixels."""
    bad = np.stack([detect_impulses(plane) for plane in planes])
    filled = np.stack([fill_from_neighbours(p, b) for p, b in zip(planes, bad, strict=True)])
    # Denoising restores bad pixels better than the median: denoise the image at decreasing noise
    # levels, and use only the bad pixels of the results. The last run removes the Gaussian noise.
    guesses = GUESSES if bad.any() else ()
    for number, guess in enumerate(guesses):
        with part(number, len(guesses) + 1):
            # Denoise all pixels: each pixel of one run affects its neighbours in the next.
            whole = replace(options, wanted=None)
            filled[bad] = denoise_gaussian(filled.copy(), (guess,) * len(planes), whole)[bad]
    levels = (level or 0.0,) * len(planes)
    if level is None:
        noise = measure_white(filled)
        levels = noise.channel_sigma
        if not noise.established:
            return filled, levels
    with part(len(guesses), len(guesses) + 1):
        return denoise_gaussian(filled, levels, options), levels


def detect_impulses(plane: Planes) -> NDArray[np.bool_]:
    """Mark the pixels that hold an impulse instead of the image."""
    # An extreme pixel is no impulse if most pixels around are extreme, too (a highlight, a shadow),
    # or if it is close to the median of its neighbours that are not extreme.
    extreme, alone = _stray(plane)
    filled = fill_from_neighbours(plane, extreme)
    impulses = extreme & (np.abs(plane - filled) > STANDS_OUT)
    # If almost no pixel is an extreme impulse, impulses may have any value. Unlike the pixels of a
    # thin line, an impulse differs even from its 2 most similar neighbours.
    if np.count_nonzero(impulses) <= SALT_AND_PEPPER * plane.size and min(plane.shape) >= 3:
        impulses |= alone > max(LONELY, LONELY_IN_NOISE * diagonal_deviation(plane))
    return np.asarray(impulses)


def has_impulses(plane: Planes) -> bool:
    """Whether so many single pixels stand out so far that the noise must be impulses."""
    if min(plane.shape) < 3:
        return False
    plane = plane[np.arange(len(plane)) // STRIP % (plane.size // SEEN + 1) == 0]
    extreme, alone = _stray(plane)
    # With many impulses, almost every difference of pixels contains an impulse: fill impulses
    # first.
    filled = fill_from_neighbours(plane, extreme | (alone > FAR_ALONE[0]))
    deviation = diagonal_deviation(filled)
    least, far = np.maximum(*np.multiply([FAR_EXTREME, FAR_ALONE], [1, deviation]).T)
    # Impulses are also isolated, unlike the extreme pixels of a thin stroke or a highlight.
    single = (extreme & (np.abs(plane - filled) > least) & (alone > least)) | (alone > far)
    # Find no impulses in a dithered picture, which consists of extreme pixels.
    ends = plane == plane.min(), plane == plane.max()
    enough = WITH_IMPULSES * plane.size
    if (ends[0] | ends[1]).mean() > BINARY or np.count_nonzero(single) <= enough:
        return False
    # If the pixels found are all black or all white, they may be dots of letters: test them again.
    if min(np.mean(single & end) for end in ends) < WITH_IMPULSES / 2:
        rest = fill_from_neighbours(plane, single)
        details = uniform_filter(np.square(rest - median_of_nine(rest)), AROUND)
        single &= np.abs(plane - rest) > FAR_IN_TEXTURE * np.sqrt(np.maximum(details, 0.0))
    return bool(np.count_nonzero(single) > enough)


def _stray(plane: Planes) -> tuple[NDArray[np.bool_], Planes]:
    """Return lone extreme pixels, and mean differences from the 2 most similar neighbours."""
    extreme = np.zeros(plane.shape, dtype=bool)
    for value in (plane.min(), plane.max()):
        equal = plane == value
        share = uniform_filter(equal.astype(np.float32), CROWD, mode="nearest")
        extreme |= equal & ~(share > CROWDED)
    height, width = plane.shape
    around = np.pad(plane, 1, mode="reflect")
    closest = second = np.full(plane.shape, np.inf, np.float32)
    for i, j in ((i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)):
        difference = np.abs(around[i : i + height, j : j + width] - plane)
        second = np.minimum(second, np.maximum(closest, difference))
        closest = np.minimum(closest, difference)
    return extreme, np.asarray((closest + second) / 2)


def median_of_nine(plane: Planes) -> Planes:
    """Return the median of each pixel and its 8 neighbours, with reflection at the edges.

    Sorting columns of three (Smith 1996) is 18 times as fast as SciPy's rank filter.
    """
    padded = np.pad(plane, 1, mode="symmetric")
    above, own, below = padded[:-2], padded[1:-1], padded[2:]
    low = np.minimum(np.minimum(above, own), below)
    high = np.maximum(np.maximum(above, own), below)
    columns = [slice(k, k + plane.shape[1]) for k in range(3)]
    middle = _median_of_three(above, own, below)
    largest_low = np.maximum.reduce([low[:, at] for at in columns])
    smallest_high = np.minimum.reduce([high[:, at] for at in columns])
    middle = _median_of_three(*(middle[:, at] for at in columns))
    return _median_of_three(largest_low, middle, smallest_high)


def _median_of_three(a: Planes, b: Planes, c: Planes) -> Planes:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def fill_from_neighbours(plane: Planes, bad: NDArray[np.bool_]) -> Planes:
    """Return the plane, copied if it has bad pixels, with their good neighbours' median in them."""
    rows, columns = np.divmod(np.flatnonzero(bad), plane.shape[1])  # np.nonzero is slow in planes
    filled = plane.copy() if len(rows) else plane
    for reach in REACHES:
        if not len(rows):
            break
        # Infinity marks pixels to ignore, and sorts to the end.
        usable = np.pad(plane, reach, constant_values=np.inf)
        usable[reach:-reach, reach:-reach][bad] = np.inf
        side = 2 * reach + 1
        windows = sliding_window_view(usable, (side, side))
        done = np.zeros(len(rows), dtype=bool)
        for start in range(0, len(rows), CHUNK):
            some = slice(start, start + CHUNK)
            ordered = np.sort(windows[rows[some], columns[some]].reshape(-1, side * side), axis=1)
            good = np.count_nonzero(np.isfinite(ordered), axis=1)
            each, last = np.arange(len(ordered)), np.maximum(good - 1, 0)
            median = (ordered[each, last // 2] + ordered[each, (last + 1) // 2]) / 2
            here = done[some] = good >= FEWEST_GOOD
            filled[rows[some][here], columns[some][here]] = median[here]
        rows, columns = rows[~done], columns[~done]
    return filled
