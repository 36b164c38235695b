"""Halve the scale of an image, and take its low frequencies from there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

Planes = NDArray[np.float32]

BLUR = 1.0  # deviation of G in pixels of the half scale: finer detail is aliased there
HALF_SHARE = np.float32(0.5)


def halve(planes: Planes) -> Planes:
    """Return means of 2 x 2 pixels, without an odd last row or column; white noise stays white."""
    height, width = (side // 2 * 2 for side in planes.shape[-2:])
    rows = planes[..., 0:height:2, :width] + planes[..., 1:height:2, :width]
    means: Planes = np.float32(0.25) * (rows[..., 0::2] + rows[..., 1::2])
    return means


def average_low_frequencies(fine: Planes, coarse: Planes) -> None:
    """Move the low frequencies of an estimate, in place, halfway to those at half the scale."""
    near, quarter = np.float32(0.75), np.float32(0.25)
    for plane, better in zip(fine, coarse, strict=True):
        change = gaussian_filter(better - halve(plane), BLUR)
        # Enlarge linearly; outside, use the nearest value inside.
        for length in plane.shape:
            # Make twice as many rows, each a quarter of the way from one old row to another.
            padded = np.pad(change, ((1, 2), (0, 0)), mode="edge")
            rows = np.empty((2 * len(change) + 2, change.shape[1]), np.float32)
            rows[0::2] = near * padded[1:-1] + quarter * padded[:-2]
            rows[1::2] = near * padded[1:-1] + quarter * padded[2:]
            change = rows[:length].T
        plane += HALF_SHARE * change
