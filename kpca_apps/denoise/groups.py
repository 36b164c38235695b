"""From an image to the patches of a group and back: gathering, centring, spreading; compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.compiled import compiled

__all__ = ["centre", "clear", "gather", "spread", "transpose"]

Plane = NDArray[np.float32]
Matrix = NDArray[np.float32]
Vector = NDArray[np.float32]
Places = NDArray[np.int32]


@compiled
def gather(plane: Plane, group: Places, k: int, shape: tuple[int, int], patches: Matrix) -> None:
    """Copy the k patches of a group into the rows of a matrix."""
    height, width = shape
    for g in range(k):
        y, x = group[g, 0], group[g, 1]
        to = patches[g]
        for i in range(height):
            row = plane[y + i]
            for j in range(width):
                to[i * width + j] = row[x + j]


@compiled
def centre(patches: Matrix, k: int, mean: Vector) -> None:
    """Subtract the mean of the first k rows in place, and keep it."""
    n = mean.shape[0]
    for j in range(n):
        mean[j] = np.float32(0)
    for g in range(k):
        row = patches[g]
        for j in range(n):
            mean[j] += row[j]
    share = np.float32(1) / np.float32(k)
    for j in range(n):
        mean[j] *= share
    for g in range(k):
        row = patches[g]
        for j in range(n):
            row[j] -= mean[j]


@compiled
def transpose(a: Matrix, rows: int, columns: int, out: Matrix) -> None:
    """Write the transpose of the first rows and columns of a."""
    for j in range(columns):
        to = out[j]
        for i in range(rows):
            to[i] = a[i, j]


@compiled
def clear(a: Matrix, rows: int) -> None:
    """Set the first rows to zero."""
    for i in range(rows):
        row = a[i]
        for j in range(row.shape[0]):
            row[j] = np.float32(0)


@compiled
def spread(
    estimates: Matrix,
    mean: Vector,
    weight: Vector,
    leverage: Vector,
    group: Places,
    k: int,
    window: Matrix,
    top: int,
    sums: NDArray[np.float32],
) -> None:
    """Add the estimates of a group to what is known of the pixels under it.

    Parameters
    ----------
    estimates : (>= k, >= n) float32 array
        Estimated patches, without their mean.
    mean : (>= n,) float32 array
        The mean patch.
    weight, leverage : (>= k,) float32 arrays
        Weight of each patch; variance of its estimate over the variance of the noise.
    group : (>= k, 2) int array
        Upper left corners of the patches.
    k : int
        Patches in the group.
    window : (p, p') float32 array
        Weight of each pixel of a patch.
    top : int
        Image row of row 0 of the sums.
    sums : (3, rows, w) float32 array
        Weighted estimates, weights and weighted leverages; added to.
    """
    height, width = window.shape
    for g in range(k):
        y, x = group[g, 0] - top, group[g, 1]
        w, dw = weight[g], weight[g] * leverage[g]
        for i in range(height):
            row = window[i]
            at = i * width
            values = estimates[g, at : at + width]
            means = mean[at : at + width]
            total = sums[0, y + i, x : x + width]
            weights = sums[1, y + i, x : x + width]
            leverages = sums[2, y + i, x : x + width]
            for j in range(width):
                total[j] += w * row[j] * (values[j] + means[j])
                weights[j] += w * row[j]
                leverages[j] += dw * row[j]
