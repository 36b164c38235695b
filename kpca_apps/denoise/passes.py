"""One band of reference patches: projection and Wiener kernel PCA on groups, compiled.

Both passes treat a band of rows of the reference grid and return what its groups say of the
pixels around it: weighted sums, weights, and weighted leverages (variance of an estimate over
variance of the noise). Groups are found in one guide and shared by all channels.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kpca_apps.denoise.algebra import (
    add_product,
    cholesky,
    gram_of_columns,
    leading_eigenvectors,
    padded_size,
    solve_lower,
)
from kpca_apps.denoise.matching import LANES, RADIUS, find_group

__all__ = ["project_band", "wiener_band"]

PRECISE_ENOUGH = {"reassoc", "contract", "nsz"}
EDGE_FACTOR = np.float32(0.95)
WIENER_FACTOR = np.float32(0.85)


@njit(cache=True, nogil=True)
def _gather(plane, group, k, height, width, patches):  # type: ignore[no-untyped-def]
    """Copy the patches of a group into rows; return nothing, padding stays zero."""
    for g in range(k):
        y, x = group[g, 0], group[g, 1]
        to = patches[g]
        for i in range(height):
            row = plane[y + i]
            for j in range(width):
                to[i * width + j] = row[x + j]


@njit(cache=True, nogil=True, fastmath=PRECISE_ENOUGH)
def _centre(patches, k, mean):  # type: ignore[no-untyped-def]
    """Subtract the mean patch in place."""
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


@njit(cache=True, nogil=True)
def _transpose(a, rows, columns, out):  # type: ignore[no-untyped-def]
    for j in range(columns):
        to = out[j]
        for i in range(rows):
            to[i] = a[i, j]


@njit(cache=True, nogil=True)
def _clear(a, rows):  # type: ignore[no-untyped-def]
    for i in range(rows):
        row = a[i]
        for j in range(row.shape[0]):
            row[j] = np.float32(0)


@njit(cache=True, nogil=True, fastmath=PRECISE_ENOUGH)
def _spread(  # type: ignore[no-untyped-def]
    estimate, mean, weight, leverage, group, k, window, first, sums
):
    """Add the estimates of a group to the sums of a band whose row 0 is image row `first`."""
    height, width = window.shape
    for g in range(k):
        y, x = group[g, 0] - first, group[g, 1]
        w, dw = weight[g], weight[g] * leverage[g]
        for i in range(height):
            row = window[i]
            at = i * width
            values = estimate[g, at : at + width]
            means = mean[at : at + width]
            total = sums[0, y + i, x : x + width]
            weights = sums[1, y + i, x : x + width]
            leverages = sums[2, y + i, x : x + width]
            for j in range(width):
                total[j] += w * row[j] * (values[j] + means[j])
                weights[j] += w * row[j]
                leverages[j] += dw * row[j]


@njit(cache=True, nogil=True)
def _project(z, k, n, edge, space):  # type: ignore[no-untyped-def]
    """Replace the rows of z by their projections on the components above an edge; return q.

    The smaller of z'z and zz' is diagonalised.
    """
    zt, gram, vectors, values, work, scores = space
    _transpose(z, k, n, zt)
    small = min(k, n)
    width = padded_size(small)
    g, v, s = gram[:width, :width], vectors[:, :width], work[:, :width]
    if n <= k:
        gram_of_columns(z, zt, g, k, n)
    else:
        gram_of_columns(zt, z, g, n, k)
    q = leading_eigenvectors(g, small, edge, v, values, s)
    if n <= k:
        for i in range(k):
            for c in range(q):
                scores[i, c] = np.float32(0)
        _scores(z, v, k, n, q, scores)
        _clear(z, k)
        add_product(scores, v, z, k, q)
    else:
        _clear(scores, q)
        add_product(v, z, scores, q, k)
        _clear(z, k)
        _transpose(v, q, k, zt)
        add_product(zt, scores, z, k, q)
    return q


@njit(cache=True, nogil=True, fastmath=PRECISE_ENOUGH)
def _scores(z, v, k, n, q, scores):  # type: ignore[no-untyped-def]
    for i in range(k):
        row = z[i]
        for c in range(q):
            axis = v[c]
            dot = np.float32(0)
            for j in range(n):
                dot += row[j] * axis[j]
            scores[i, c] = dot


@njit(cache=True, nogil=True)
def project_band(  # type: ignore[no-untyped-def]
    guide, planes, variance, tie, window, k, rows, columns, first_row, top, height
):
    """Project each group on its components above the Marchenko-Pastur edge.

    Parameters
    ----------
    guide : (h, RADIUS + w + LANES) float32 array
        Image the patches are matched in, from `pad_guide`.
    planes : (c, h, w) float32 array
        What is projected.
    variance : (c, h - p + 1, w - p' + 1) float32 array
        Noise variance of the planes, mean over the patch at each position.
    tie : (h - p + 1, w - p' + 1) float32 array
        Squared distance below which a candidate is the same patch as the reference there.
    window : (p, p') float32 array
        Weight of each pixel of a patch.
    k : int
        Patches a group.
    rows, columns : int arrays
        Upper left corners of the references of the band.
    first_row : int
        Row of the whole image that is row 0 of the planes.
    top, height : int
        Rows of the planes the band can reach.

    Returns
    -------
    (c, 3, height, w) float32 array
        Sums of weighted estimates, weights and weighted leverages.
    """
    p, across = window.shape
    n = p * across
    channels = planes.shape[0]
    wide, deep = padded_size(n), padded_size(k)
    most = max(wide, deep)
    sums = np.zeros((channels, 3, height, planes.shape[2]), np.float32)
    z, mean = np.zeros((k, wide), np.float32), np.zeros(wide, np.float32)
    least = padded_size(min(k, n))
    space = (
        np.zeros((most, most), np.float32),
        np.zeros((least, least), np.float32),
        np.zeros((least, least), np.float32),
        np.zeros(least, np.float32),
        np.zeros((7, least), np.float32),
        np.zeros((most, wide), np.float32),
    )
    weight, leverage = np.zeros(k, np.float32), np.zeros(k, np.float32)
    group = np.zeros((k, 2), np.int32)
    distances = np.zeros((2 * RADIUS + 1) * LANES, np.float32)
    scratch = np.zeros_like(distances)
    places = np.zeros((distances.shape[0], 2), np.int32)
    for y in rows:
        for x in columns:
            found = find_group(
                guide, y, x, p, across, first_row, k, tie[y, x], group, distances, places, scratch
            )
            spread = (np.sqrt(np.float32(found)) + np.sqrt(np.float32(n))) ** 2
            for c in range(channels):
                level = np.float32(0)
                for g in range(found):
                    level += variance[c, group[g, 0], group[g, 1]]
                level /= np.float32(found)
                _gather(planes[c], group, found, p, across, z)
                _centre(z, found, mean)
                q = _project(z, found, n, EDGE_FACTOR * level * np.float32(spread), space)
                for g in range(found):
                    weight[g] = np.float32(1) / np.float32(1 + q)
                    leverage[g] = np.float32(1 + q) / np.float32(found)
                _spread(z, mean, weight, leverage, group, found, window, top, sums[c])
    return sums


@njit(cache=True, nogil=True)
def wiener_band(  # type: ignore[no-untyped-def]
    guide, pilot, planes, variance, tie, window, k, rows, columns, first_row, top, height
):
    """Smooth each group with the Wiener operator of kernel PCA on the pilot's patches.

    Linear kernel: Theta = X (X'X + .85 N s2 I)^-1 X' with X the centred patches of the pilot,
    by a Cholesky factor U'U of the matrix in brackets and B = inv(U') X': Theta = B'B.

    Parameters
    ----------
    pilot : (c, h, w) float32 array
        A first estimate of the planes.
    variance : (c,) float32 array
        Noise variance of each plane.
    guide, planes, tie, window, k, rows, columns, first_row, top, height
        As in `project_band`.

    Returns
    -------
    (c, 3, height, w) float32 array
        As `project_band`.
    """
    p, across = window.shape
    n = p * across
    channels = planes.shape[0]
    wide, deep = padded_size(n), padded_size(k)
    sums = np.zeros((channels, 3, height, planes.shape[2]), np.float32)
    z, mean = np.zeros((k, wide), np.float32), np.zeros(wide, np.float32)
    x_rows, b = np.zeros((k, wide), np.float32), np.zeros((n, deep), np.float32)
    bt, bz = np.zeros((k, wide), np.float32), np.zeros((n, wide), np.float32)
    gram = np.zeros((wide, wide), np.float32)
    weight, leverage = np.zeros(k, np.float32), np.zeros(k, np.float32)
    group = np.zeros((k, 2), np.int32)
    distances = np.zeros((2 * RADIUS + 1) * LANES, np.float32)
    scratch = np.zeros_like(distances)
    places = np.zeros((distances.shape[0], 2), np.int32)
    for y in rows:
        for x in columns:
            found = find_group(
                guide, y, x, p, across, first_row, k, tie[y, x], group, distances, places, scratch
            )
            for c in range(channels):
                _gather(pilot[c], group, found, p, across, x_rows)
                _centre(x_rows, found, mean)
                _transpose(x_rows, found, n, b)
                gram_of_columns(x_rows, b, gram, found, n)
                _add_ridge(gram, n, WIENER_FACTOR * np.float32(n) * variance[c])
                cholesky(gram, n)
                solve_lower(gram, b, n)
                _gather(planes[c], group, found, p, across, z)
                _centre(z, found, mean)
                _clear(bz, n)
                add_product(b, z, bz, n, found)
                _transpose(b, n, found, bt)
                _clear(z, found)
                add_product(bt, bz, z, found, n)
                _leverages(b, n, found, weight, leverage)
                _spread(z, mean, weight, leverage, group, found, window, top, sums[c])
    return sums


@njit(cache=True, nogil=True)
def _add_ridge(gram, n, ridge):  # type: ignore[no-untyped-def]
    """Add a ridge to the diagonal, at least what float32 needs to stay positive definite."""
    trace = np.float32(0)
    for i in range(n):
        trace += gram[i, i]
    ridge = max(ridge, np.float32(2e-6) * trace, np.float32(1e-12))
    for i in range(n):
        gram[i, i] += ridge


@njit(cache=True, nogil=True, fastmath=PRECISE_ENOUGH)
def _leverages(b, n, k, weight, leverage):  # type: ignore[no-untyped-def]
    """Diagonal of B'B + 1/k, and its inverse as the weight of a patch."""
    for g in range(k):
        leverage[g] = np.float32(1) / np.float32(k)
    for i in range(n):
        row = b[i]
        for g in range(k):
            leverage[g] += row[g] * row[g]
    for g in range(k):
        weight[g] = np.float32(1) / leverage[g]
