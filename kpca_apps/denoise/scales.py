"""Low frequencies from half the scale.

Means of 2 x 2 pixels hold half the noise, and a patch of theirs shows four times the area: low
frequencies are estimated better there. But the fine estimate errs otherwise, so the two are
averaged: E + (1/2) U G (C - H E), where E and C are the estimates at the scale of the image and
at half of it, H takes the means, G blurs and U enlarges.

References
----------
Facciolo, Pierazzo & Morel 2017, SIAM J. Imaging Sci. 10(3) (conservative scale recomposition).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

__all__ = ["average_low_frequencies", "enlarge", "halve"]

Planes = NDArray[np.float32]

BLUR = 1.0
"""Deviation of G in pixels of the half scale: what is finer there has been aliased."""

SHARE = np.float32(0.5)


def halve(planes: Planes) -> Planes:
    """Means of 2 x 2 pixels; white noise stays white, with half the deviation.

    Parameters
    ----------
    planes : (..., h, w) float32 array
        An odd last row or column is left out.

    Returns
    -------
    (..., h // 2, w // 2) float32 array
        The means.

    Examples
    --------
    >>> halve(np.array([[0, 2, 9], [4, 6, 9]], np.float32))
    array([[3.]], dtype=float32)
    """
    height, width = (side // 2 * 2 for side in planes.shape[-2:])
    rows = planes[..., 0:height:2, :width] + planes[..., 1:height:2, :width]
    means: Planes = np.float32(0.25) * (rows[..., 0::2] + rows[..., 1::2])
    return means


def enlarge(plane: Planes, shape: tuple[int, int]) -> Planes:
    """Interpolate a plane linearly to twice its size; what is outside is as the nearest inside.

    Parameters
    ----------
    plane : (h // 2, w // 2) float32 array
        At half the scale.
    shape : (int, int)
        (h, w).

    Returns
    -------
    (h, w) float32 array
        The plane at the scale it was halved from.

    Examples
    --------
    >>> enlarge(np.array([[0, 4]], np.float32), (1, 5))
    array([[0., 1., 3., 4., 4.]], dtype=float32)
    """
    for axis, length in enumerate(shape):
        plane = _doubled(plane.T if axis else plane, length)
        plane = plane.T if axis else plane
    return np.ascontiguousarray(plane)


def _doubled(plane: Planes, length: int) -> Planes:
    """Twice as many rows, each at a quarter of the way from one old row to the next."""
    padded = np.pad(plane, ((1, 2), (0, 0)), mode="edge")
    near, quarter = np.float32(0.75), np.float32(0.25)
    result = np.empty((2 * len(plane) + 2, plane.shape[1]), np.float32)
    result[0::2] = near * padded[1:-1] + quarter * padded[:-2]
    result[1::2] = near * padded[1:-1] + quarter * padded[2:]
    return result[:length]


def average_low_frequencies(fine: Planes, coarse: Planes) -> None:
    """Move the low frequencies of an estimate halfway to those of one at half the scale.

    Parameters
    ----------
    fine : (c, h, w) float32 array
        Changed in place.
    coarse : (c, h // 2, w // 2) float32 array
        Estimate of `halve` of the same planes.
    """
    for plane, better in zip(fine, coarse, strict=True):
        change = gaussian_filter(better - halve(plane), BLUR)
        plane += SHARE * enlarge(change, plane.shape)
