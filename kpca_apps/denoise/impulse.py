"""Impulse noise: single pixels replaced by an extreme or a random value."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

__all__ = ["detect_impulses", "fill_from_neighbours", "has_impulses"]

REACHES = (1, 2, 3, 5, 8)  # half widths of the windows tried, smallest first
FEWEST_GOOD = 3
CHUNK = 50_000
# An extreme pixel this far from its good neighbours (of 255) is an impulse, not a highlight.
STANDS_OUT = 12.0
# Share of impulses at the extremes above which no others are looked for.
SALT_AND_PEPPER = 0.005
CROWD, CROWDED = 5, 0.59  # width of a window, and the share of 15 of its 25 pixels
# Mean difference, of 255, from the 2 neighbours most alike beyond which a pixel is alone.
LONELY = 20.0
LONELY_IN_NOISE = 1.2  # the same in deviations of the Gaussian noise beside
# To say that there are impulses takes more: extreme pixels that differ by so much from those
# around, of 255 and of the deviation of the noise beside; pixels alone in being different; and a
# share of such pixels that neither edges nor highlights nor texture make.
FAR_EXTREME, FAR_ALONE, WITH_IMPULSES = (25.0, 5.0), (60.0, 6.0), 0.005


def detect_impulses(plane: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which pixels carry an impulse instead of the image.

    Pixels at the smallest or largest value of the plane are impulses unless most pixels around
    have that value too (a highlight, a shadow), or the median of the others is close to it. Where
    that finds hardly any, the impulses may have any value: those pixels differ from even the 2
    most similar of their 8 neighbours, which pixels of a thin line do not.

    Parameters
    ----------
    plane : ndarray of shape (h, w)
        On the scale 0..255.

    Returns
    -------
    ndarray of shape (h, w), bool

    References
    ----------
    R. Garnett, T. Huegerich, C. Chui, W. He (2005), "A universal noise removal algorithm with an
    impulse detector", IEEE Trans. Image Processing 14, eq. 3: rank-ordered absolute differences.

    Examples
    --------
    >>> plane = np.add.outer(np.arange(9.0), np.arange(9.0)).astype(np.float32)
    >>> plane[4, 4] = 255
    >>> np.argwhere(detect_impulses(plane)).tolist()
    [[4, 4]]
    """
    extreme = _extreme(plane)
    filled = fill_from_neighbours(plane, extreme)
    impulses = extreme & (np.abs(plane - filled) > STANDS_OUT)
    if np.count_nonzero(impulses) > SALT_AND_PEPPER * plane.size:
        return np.asarray(impulses)
    return np.asarray(impulses | _lonely(plane))


def has_impulses(plane: NDArray[np.float32]) -> bool:
    """Whether single pixels that stand out are too many, and stand out too far, for other noise.

    Parameters
    ----------
    plane : ndarray of shape (h, w)
        On the scale 0..255.

    Returns
    -------
    bool

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> plane = (100 + 10 * rng.standard_normal((64, 64))).astype(np.float32)
    >>> has_impulses(plane)
    False
    >>> plane[rng.random(plane.shape) < 0.05] = 255
    >>> has_impulses(plane)
    True
    """
    if min(plane.shape) < 3:
        return False
    extreme, alone = _extreme(plane), _alone(plane)
    # Where impulses are many, hardly a difference of pixels is without one.
    filled = fill_from_neighbours(plane, extreme | (alone > FAR_ALONE[0]))
    least, far = np.maximum(*np.multiply([FAR_EXTREME, FAR_ALONE], [1, _deviation(filled)]).T)
    # Pixels of a thin stroke or a highlight are extreme together.
    single = extreme & (np.abs(plane - filled) > least) & (alone > least)
    return bool(np.count_nonzero(single | (alone > far)) > WITH_IMPULSES * plane.size)


def _crowded(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return where most of the 5 x 5 pixels around are in the mask."""
    share = uniform_filter(mask.astype(np.float32), CROWD, mode="nearest")
    return np.asarray(share > CROWDED)


def _extreme(plane: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return the darkest and brightest pixels, but not where most around are so too."""
    lowest, highest = np.equal(plane, plane.min()), np.equal(plane, plane.max())
    return np.asarray((lowest & ~_crowded(lowest)) | (highest & ~_crowded(highest)))


def fill_from_neighbours(plane: NDArray[np.float32], bad: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the plane with bad pixels replaced by the median of the good ones around.

    Parameters
    ----------
    plane : ndarray of shape (h, w)
    bad : ndarray of shape (h, w), bool

    Returns
    -------
    ndarray of shape (h, w)
        The window grows from 3 x 3 until it holds 3 good pixels; a bad pixel without so many
        within 8 pixels keeps its value.
    """
    filled = plane.copy()
    rows, columns = np.nonzero(bad)
    for reach in REACHES:
        # Infinity marks what must not be counted and sorts to the end.
        usable = np.pad(np.where(bad, np.float32(np.inf), plane), reach, constant_values=np.inf)
        windows = sliding_window_view(usable, (2 * reach + 1, 2 * reach + 1))
        done = np.zeros(len(rows), dtype=bool)
        for start in range(0, len(rows), CHUNK):
            part = slice(start, start + CHUNK)
            median, good = _finite_median(windows[rows[part], columns[part]])
            done[part] = good >= FEWEST_GOOD
            here = done[part]
            filled[rows[part][here], columns[part][here]] = median[here]
        rows, columns = rows[~done], columns[~done]
    return filled


def _finite_median(
    windows: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return the median of the finite values of each window (n, s, s), and how many there are."""
    ordered = np.sort(windows.reshape(len(windows), windows.shape[1] * windows.shape[2]), axis=1)
    good = np.count_nonzero(np.isfinite(ordered), axis=1)
    last = np.maximum(good - 1, 0)
    each = np.arange(len(ordered))
    lower, upper = ordered[each, last // 2], ordered[each, (last + 1) // 2]
    return (lower + upper) / 2, good


def _lonely(plane: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return the pixels unlike even the most similar of their neighbours."""
    if min(plane.shape) < 3:
        return np.zeros(plane.shape, dtype=bool)
    return np.asarray(_alone(plane) > max(LONELY, LONELY_IN_NOISE * _deviation(plane)))


def _deviation(plane: NDArray[np.float32]) -> float:
    """Return the deviation of the Gaussian noise from the median of mixed differences."""
    return float(np.median(np.abs(np.diff(np.diff(plane, axis=0), axis=1)))) / (2 * 0.67449)


def _alone(plane: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean difference of each pixel to the two most alike of its neighbours."""
    height, width = plane.shape
    around = np.pad(plane, 1, mode="reflect")
    shifts = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    closest = second = np.full(plane.shape, np.inf, np.float32)
    for i, j in shifts:
        difference = np.abs(around[i : i + height, j : j + width] - plane)
        second = np.minimum(second, np.maximum(closest, difference))
        closest = np.minimum(closest, difference)
    return np.asarray((closest + second) / 2)
