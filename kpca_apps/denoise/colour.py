"""Luminance and two colour differences of red, green and blue."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# The rows give luminance, red minus blue, and red plus blue minus twice green. They are
# orthonormal, so white noise of equal deviation in all channels remains white and equal.
OPPONENT = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
OPPONENT /= np.linalg.norm(OPPONENT, axis=1, keepdims=True)
ROWS_AT_ONCE = 256


def to_opponent(rgb: NDArray[np.float32], *, in_place: bool = False) -> NDArray[np.float32]:
    """Return luminance, (r + g + b) / sqrt(3), and two colour differences; grey stays grey."""
    return rgb if len(rgb) == 1 else _mixed(OPPONENT, rgb, rgb if in_place else np.empty_like(rgb))


def from_opponent(planes: NDArray[np.float32], *, in_place: bool = False) -> NDArray[np.float32]:
    """Return red, green and blue from the planes of `to_opponent`."""
    if len(planes) == 1:
        return planes
    return _mixed(OPPONENT.T, planes, planes if in_place else np.empty_like(planes))


def noise_in_opponent(sigma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert deviations of independent noise in red, green and blue to the opponent planes."""
    return np.asarray(np.sqrt(OPPONENT**2 @ np.square(sigma)))


def noise_in_channels(sigma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert deviations of independent noise in the opponent planes to red, green and blue."""
    return np.asarray(np.sqrt(np.square(OPPONENT).T @ np.square(sigma)))


def extreme_pixels(planes: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which pixels (h, w) have a channel's extreme value, where noise may be clipped."""
    ends = planes.min(axis=(1, 2), keepdims=True), planes.max(axis=(1, 2), keepdims=True)
    return np.asarray(((planes == ends[0]) | (planes == ends[1])).any(axis=0))


def _mixed(
    matrix: NDArray[np.float64], planes: NDArray[np.float32], out: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Multiply planes by a matrix, with the same order of sums for all pixels."""
    weights = matrix.astype(np.float32)
    for top in range(0, planes.shape[1], ROWS_AT_ONCE):
        given = planes[:, top : top + ROWS_AT_ONCE]
        mixed = np.empty_like(given)
        for one, row in zip(mixed, weights, strict=True):
            np.multiply(given[0], row[0], out=one)
            one += row[1] * given[1]
            one += row[2] * given[2]
        out[:, top : top + ROWS_AT_ONCE] = mixed
    return out
