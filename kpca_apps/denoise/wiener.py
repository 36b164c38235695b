"""Wiener kernel PCA on groups of patches, learned on a pilot estimate; compiled.

With X the centred patches of the pilot, Z those of the noisy image and K the centred kernel of
X, each component of K is shrunk by lambda / (lambda + rho): Theta = K inv(K + rho I), and the
estimate Theta Z + mean is the pre-image, one weighted sum of the patches. rho = .85 N sigma^2.

Linear kernel: X'X + rho I = U'U, B = inv(U') X', Theta = B'B. This is the second stage of
NL-Ridge (Herbreteau & Kervrann 2022) with centring. RBF kernel: (c / 2) exp(-d^2 / c), which is
the linear kernel as c grows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.algebra import (
    add_product,
    cholesky,
    gram_of_columns,
    padded_size,
    solve_lower,
)
from kpca_apps.denoise.compiled import Scalar, compiled
from kpca_apps.denoise.groups import centre, clear, gather, spread, transpose
from kpca_apps.denoise.matching import find_group, matching_space

__all__ = ["linear_smooth", "rbf_smooth", "smoothing_space", "wiener_band"]

Matrix = NDArray[np.float32]
Vector = NDArray[np.float32]
Space = tuple[Matrix, Matrix, Matrix, Matrix]

RIDGE_FACTOR = np.float32(0.85)

RBF_WIDTH = np.float32(4.0)
"""c over the mean squared distance between two patches of a group."""


@compiled
def smoothing_space(k: int, n: int) -> Space:
    """Work space of the two smoothers for up to k patches of n pixels."""
    wide, deep = padded_size(n), padded_size(k)
    most = max(wide, deep)
    return (
        np.zeros((most, most), np.float32),
        np.zeros((most, deep), np.float32),
        np.zeros((k, most), np.float32),
        np.zeros((most, wide), np.float32),
    )


@compiled
def _add_ridge(gram: Matrix, n: int, ridge: Scalar) -> Scalar:
    """Add a ridge to a diagonal, at least what float32 needs; return what was added."""
    trace = np.float32(0)
    for i in range(n):
        trace += gram[i, i]
    added = max(ridge, np.float32(2e-6) * trace, np.float32(1e-12))
    for i in range(n):
        gram[i, i] += added
    return added


@compiled
def _column_squares(b: Matrix, rows: int, columns: int, out: Vector) -> None:
    """Sum the squares of each column of b."""
    for g in range(columns):
        out[g] = np.float32(0)
    for i in range(rows):
        row = b[i]
        for g in range(columns):
            out[g] += row[g] * row[g]


@compiled
def _apply(b: Matrix, z: Matrix, rows: int, k: int, n: int, space: Space) -> None:
    """Replace the k rows of z by b'b z, b of the given number of rows."""
    bt, bz = space[2], space[3]
    clear(bz, rows)
    add_product(b, z, bz, rows, k)
    transpose(b, rows, k, bt)
    clear(z, k)
    add_product(bt, bz, z, k, rows)


@compiled
def linear_smooth(
    x: Matrix, z: Matrix, k: int, n: int, ridge: Scalar, leverage: Vector, space: Space
) -> None:
    """Smooth the rows of z by Theta of the linear kernel.

    Parameters
    ----------
    x : (>= k, padded n) float32 array
        Centred patches of the pilot.
    z : (>= k, padded n) float32 array
        Centred noisy patches; overwritten by Theta z.
    k, n : int
        Patches, pixels a patch.
    ridge : float
        rho.
    leverage : (>= k,) float32 array
        Receives the diagonal of Theta.
    space : tuple of arrays
        From `smoothing_space`.
    """
    width = padded_size(n)
    gram, b = space[0][:width, :width], space[1]
    transpose(x, k, n, b)
    gram_of_columns(x, b, gram, k, n)
    _add_ridge(gram, n, ridge)
    cholesky(gram, n)
    solve_lower(gram, b, n)
    _column_squares(b, n, k, leverage)
    _apply(b, z, n, k, n, space)


@compiled
def rbf_smooth(
    x: Matrix, z: Matrix, k: int, n: int, ridge: Scalar, leverage: Vector, space: Space
) -> None:
    """Smooth the rows of z by Theta of the RBF kernel; parameters as for `linear_smooth`.

    Theta = I - rho inv(K + rho I), the inverse by a Cholesky factor.
    """
    width = padded_size(k)
    gram, b = space[0][:width, :width], space[1]
    transpose(x, k, n, b)
    gram_of_columns(b, x, gram, n, k)
    _rbf_of_products(gram, k)
    ridge = np.float32(_add_ridge(gram, k, ridge))
    cholesky(gram, k)
    clear(b, k)
    for g in range(k):
        b[g, g] = np.float32(1)
    solve_lower(gram, b, k)
    _column_squares(b, k, k, leverage)
    original = z.copy()
    _apply(b, z, k, k, n, space)
    for g in range(k):
        leverage[g] = max(np.float32(0), np.float32(1) - ridge * leverage[g])
        for j in range(n):
            z[g, j] = original[g, j] - ridge * z[g, j]


@compiled
def _rbf_of_products(gram: Matrix, k: int) -> None:
    """Turn inner products of centred patches into the centred RBF kernel, in place.

    Centring takes out what all entries share, so c / 2 is left out from the start: beside it the
    distances of similar patches would vanish in single precision where one patch is far off.
    """
    trace = np.float32(0)
    for i in range(k):
        trace += gram[i, i]
    c = max(RBF_WIDTH * np.float32(2) * trace / np.float32(k), np.float32(1e-12))
    square = np.zeros(k, np.float32)
    for i in range(k):
        square[i] = gram[i, i]
    mean = np.zeros(k, np.float32)
    for i in range(k):
        for j in range(k):
            d = max(np.float32(0), square[i] + square[j] - np.float32(2) * gram[i, j])
            gram[i, j] = np.float32(0.5) * c * np.expm1(-d / c)
            mean[i] += gram[i, j] / np.float32(k)
    total = np.float32(0)
    for i in range(k):
        total += mean[i] / np.float32(k)
    for i in range(k):
        for j in range(k):
            gram[i, j] += total - mean[i] - mean[j]


@compiled
def wiener_band(
    guide: Matrix,
    pilot: NDArray[np.float32],
    planes: NDArray[np.float32],
    variance: Vector,
    window: Matrix,
    k: int,
    rbf: bool,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    top: int,
    height: int,
) -> NDArray[np.float32]:
    """Smooth the groups of one band of references.

    Parameters
    ----------
    pilot : (c, h, w) float32 array
        First estimate of the planes.
    variance : (c,) float32 array
        Noise variance of each plane.
    rbf : bool
        The RBF kernel instead of the linear one.
    guide, planes, window, k, rows, columns, top, height
        As for `kpca_apps.denoise.projection.project_band`; the nearest patches make a group.

    Returns
    -------
    (c, 3, height, w) float32 array
        Weighted estimates, weights and weighted leverages.
    """
    shape = window.shape
    n = window.size
    wide = padded_size(n)
    sums = np.zeros((len(planes), 3, height, planes.shape[2]), np.float32)
    x_rows, z = np.zeros((k, wide), np.float32), np.zeros((k, wide), np.float32)
    mean = np.zeros(wide, np.float32)
    weight, leverage = np.zeros(k, np.float32), np.zeros(k, np.float32)
    group = np.zeros((k, 2), np.int32)
    nearby, space = matching_space(), smoothing_space(k, n)
    for y in rows:
        for x in columns:
            found = find_group(guide, y, x, shape, 0, k, np.float32(0), group, nearby)
            for c in range(len(planes)):
                gather(pilot[c], group, found, shape, x_rows)
                centre(x_rows, found, mean)
                gather(planes[c], group, found, shape, z)
                centre(z, found, mean)
                ridge = RIDGE_FACTOR * np.float32(n) * variance[c]
                if rbf:
                    rbf_smooth(x_rows, z, found, n, ridge, leverage, space)
                else:
                    linear_smooth(x_rows, z, found, n, ridge, leverage, space)
                for g in range(found):
                    leverage[g] += np.float32(1) / np.float32(found)
                    weight[g] = np.float32(1) / leverage[g]
                spread(z, mean, weight, leverage, group, found, window, top, sums[c])
    return sums
