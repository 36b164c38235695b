"""PNG's five row filters, undone and chosen.

References
----------
W3C, Portable Network Graphics, third edition (2025), section 9.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.compiling import machine_code

__all__ = ["filter_rows", "unfilter_rows"]

_BAND = 128


@machine_code()
def unfilter_rows(rows: NDArray[np.uint8], step: int) -> int:
    """Undo the filters of an image's rows in place.

    Parameters
    ----------
    rows : ndarray of shape (h, 1 + b), uint8
        The filter's number, then the bytes of the row.
    step : int
        Bytes of a pixel, at least 1.

    Returns
    -------
    int
        The first row whose filter does not exist, or -1.
    """
    zero = np.int64(0)
    n_rows, n_bytes = rows.shape
    for y in range(n_rows):
        kind = rows[y, 0]
        if kind > 4:
            return y
        for x in range(1, n_bytes):
            left = np.int64(rows[y, x - step]) if x > step else zero
            above = np.int64(rows[y - 1, x]) if y > 0 else zero
            corner = np.int64(rows[y - 1, x - step]) if y > 0 and x > step else zero
            guess = zero
            if kind == 1:
                guess = left
            elif kind == 2:
                guess = above
            elif kind == 3:
                guess = (left + above) // 2
            elif kind == 4:
                to_left = abs(above - corner)
                to_above = abs(left - corner)
                to_corner = abs(left + above - 2 * corner)
                if to_left <= to_above and to_left <= to_corner:
                    guess = left
                elif to_above <= to_corner:
                    guess = above
                else:
                    guess = corner
            rows[y, x] = (rows[y, x] + guess) & 255
    return -1


def filter_rows(rows: NDArray[np.uint8], step: int) -> NDArray[np.uint8]:
    """Filter each row by the filter that leaves the smallest sum of absolute differences.

    Parameters
    ----------
    rows : ndarray of shape (h, b), uint8
        The bytes of the rows.
    step : int
        Bytes of a pixel, at least 1.

    Returns
    -------
    ndarray of shape (h, 1 + b), uint8

    Examples
    --------
    >>> rows = np.arange(12, dtype=np.uint8).reshape(2, 6)
    >>> filtered = filter_rows(rows, 1)
    >>> filtered[1].tolist()
    [1, 6, 1, 1, 1, 1, 1]
    >>> unfilter_rows(filtered, 1), bool((filtered[:, 1:] == rows).all())
    (-1, True)
    """
    n_rows, n_bytes = rows.shape
    out = np.empty((n_rows, 1 + n_bytes), np.uint8)
    for top in range(0, n_rows, _BAND):
        band = rows[top : top + _BAND]
        before = rows[top - 1] if top else np.zeros(n_bytes, np.uint8)
        above = np.concatenate([before[np.newaxis], band[:-1]])
        _filter_band(band, above, step, out[top : top + _BAND])
    return out


def _filter_band(
    band: NDArray[np.uint8], above: NDArray[np.uint8], step: int, out: NDArray[np.uint8]
) -> None:
    """Filter rows, given the rows above them."""
    left, corner = _shifted(band, step), _shifted(above, step)
    a, b, c = (values.astype(np.int16) for values in (left, above, corner))
    to_left, to_above, to_corner = abs(b - c), abs(a - c), abs(a + b - 2 * c)
    nearest = np.where(to_above <= to_corner, above, corner)
    paeth = np.where((to_left <= to_above) & (to_left <= to_corner), left, nearest)
    guesses = (np.zeros_like(band), left, above, ((a + b) >> 1).astype(np.uint8), paeth)
    best = np.full(len(band), np.iinfo(np.int64).max)
    for kind, guess in enumerate(guesses):
        difference = band - guess
        cost = np.abs(difference.view(np.int8).astype(np.int16)).sum(axis=1, dtype=np.int64)
        better = cost < best
        best[better] = cost[better]
        out[better, 0] = kind
        out[better, 1:] = difference[better]


def _shifted(rows: NDArray[np.uint8], step: int) -> NDArray[np.uint8]:
    shifted = np.zeros_like(rows)
    shifted[:, step:] = rows[:, :-step]
    return shifted
