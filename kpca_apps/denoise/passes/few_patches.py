"""Groups of fewer patches than a patch has pixels: the same cuts on the side of the patches.

The Gram matrix Z Z' of k patches has the eigenvalues above 0 of Z'Z, and the Tikhonov filter
X (X'X + rho I)^-1 X' is I - rho (X X' + rho I)^-1. With k below n, matrices of k rows take the
place of such of n: kernel PCA as it is written for any kernel.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.denoise.passes.registers import fill, load, store
from kpca_apps.denoise.passes.small_matrices import (
    NO,
    NONE,
    ONE,
    Matrix,
    Scalar,
    Vector,
    multiply,
    padded_size,
)
from kpca_apps.system.compiling import compiled, inlined


@inlined
def transposed(z: Matrix, k: int, n: int) -> Matrix:
    """Return the first k rows of z, of n numbers, as columns, widened by zeros."""
    columns = np.zeros((n, padded_size(k)), z.dtype)
    for g in range(k):
        for i in range(n):
            columns[i, g] = z[g, i]
    return columns


@compiled
def projected_patches(z: Matrix, mean: Vector, k: int, axes: Matrix, q: int) -> Matrix:
    """Return V'V z plus the mean, the first q axes being the rows of V.

    The axes are unit eigenvectors of the Gram matrix of the k patches, as `leading_eigenvectors`
    returns them.
    """
    flat, along, down, wide = axes.ravel(), ONE, axes.shape[1], z.shape[1]
    estimates: Matrix = np.empty(z.shape, z.dtype)
    # V z, and V' times that: at one place, for a product is compiled again at each.
    factor, product = z, np.empty((len(axes), wide), z.dtype)
    depth, rows = k, len(axes)
    for _ in range(2):
        multiply(flat, (NONE, along, down), factor, depth, product, (NONE, rows), (NONE, wide), NO)
        factor, product, depth, rows = product, estimates, q, (k + 3) // 4 * 4
        along, down = down, along
    for j in range(0, wide, 8):
        centre = load(mean, (j,))
        for g in range(k):
            store(estimates, (g, j), load(estimates, (g, j)) + centre)
    return estimates


@inlined
def add_right_sides(z: Matrix, k: int, system: Matrix) -> None:
    """Complete [X X' | 0 | 0] to [X X' | Z | I], of the first k rows of z, some times four."""
    across, wide = padded_size(k), z.shape[1]
    for g in range(len(system)):
        system[g, across + wide + g] = np.float32(1)
        for j in range(0, wide, 8):
            store(system, (g, across + j), load(z, (g, j)))


@compiled
def smoothed_patches(
    system: Matrix, z: Matrix, mean: Vector, k: int, rho: Scalar
) -> tuple[Matrix, Vector]:
    """Return Theta z plus the mean, and the diagonal of Theta = I - rho (X X' + rho I)^-1.

    The system is that of `add_right_sides`, rho added to its diagonal and eliminated. With
    U'U = X X' + rho I it holds U'^-1 Z and U'^-1.
    """
    across, wide, high = padded_size(k), z.shape[1], len(system)
    behind, width = across + wide, system.shape[1]
    solved = np.empty((high, behind), z.dtype)
    flat, columns = system.ravel(), (across, behind)
    multiply(flat, (behind, width, ONE), system, high, solved, (NONE, high), columns, NO)
    estimates, ridge = np.empty(z.shape, z.dtype), fill(np.float32(rho))
    for j in range(0, wide, 8):
        centre = load(mean, (j,))
        for g in range(k):
            left = load(z, (g, j)) - ridge * load(solved, (g, across + j))
            store(estimates, (g, j), left + centre)
    leverage, zero, one = np.empty(across, z.dtype), np.float32(0), fill(np.float32(1))
    for g in range(0, across, 8):
        sums = fill(zero)
        for i in range(high):
            column = load(system, (i, behind + g))
            sums += column * column
        store(leverage, (g,), one - ridge * sums)
    for g in range(k):
        leverage[g] = max(leverage[g], zero)
    return estimates, leverage[:k]
