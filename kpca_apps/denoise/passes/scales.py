"""Halve the scale of an image, and estimate its low frequencies at the half scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

Planes = NDArray[np.float32]

BLUR = 1.0  # deviation of a Gaussian blur, in pixels at half scale, that removes aliased detail
HALF_SHARE = np.float32(0.5)


def halve(planes: Planes) -> Planes:
    """Return means of 2 x 2 pixels, without an odd last row or column; noise stays white."""
    height, width = (side // 2 * 2 for side in planes.shape[-2:])
    rows = planes[..., 0:height:2, :width] + planes[..., 1:height:2, :width]
    means: Planes = np.float32(0.25) * (rows[..., 0::2] + rows[..., 1::2])
    return means


def average_low_frequencies(fine: Planes, coarse: Planes) -> None:
    """Average an estimate's low frequencies, in place, with those estimated at half the scale."""
    near, quarter = np.float32(0.75), np.float32(0.25)
    for plane, better in zip(fine, coarse, strict=True):
        change = gaussian_filter(better - halve(plane), BLUR)
        # Enlarge linearly; outside the image, repeat the border.
        for length in plane.shape:
            # Turn each row into two: a quarter of the way to the row before, and to the row after.
            padded = np.pad(change, ((1, 2), (0, 0)), mode="edge")
            rows = np.empty((2 * len(change) + 2, change.shape[1]), np.float32)
            rows[0::2] = near * padded[1:-1] + quarter * padded[:-2]
            rows[1::2] = near * padded[1:-1] + quarter * padded[2:]
            change = rows[:length].T
        plane += HALF_SHARE * change
