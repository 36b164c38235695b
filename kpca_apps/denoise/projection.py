"""Projection of a group on the principal components that noise alone cannot explain; compiled.

Of k patches of N pixels with white noise of variance v, the largest eigenvalue that noise makes
lies at v (sqrt k + sqrt N)^2, the Marchenko-Pastur edge (1967). Components above it are kept
whole, the rest is dropped.

The edge is only as good as v. With v too low the noise of every group passes it, and most of the
gain is lost. So a group is asked as well: the variance it holds beyond the components kept,
per degree of freedom, is an estimate of v, and where it exceeds the v given, the edge follows it,
up to a limit. Fine detail also raises it; so the limit is what even the quietest groups of the
image show (`survey_band`), which is the v given where that is right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.algebra import add_product, gram_of_columns, padded_size
from kpca_apps.denoise.compiled import Scalar, compiled
from kpca_apps.denoise.groups import centre, clear, gather, spread, transpose
from kpca_apps.denoise.matching import find_group, matching_space
from kpca_apps.denoise.spectra import leading_eigenvectors

__all__ = ["project_band", "project_rows", "projection_space", "survey_band"]

Matrix = NDArray[np.float32]
Vector = NDArray[np.float32]
Space = tuple[Matrix, Matrix, Matrix, Vector, Matrix, Matrix]

EDGE_FACTOR = np.float32(0.95)
"""The edge lies a little lower than the formula: losing a component costs more than keeping one."""

ROUNDS = 5


@compiled
def projection_space(k: int, n: int) -> Space:
    """Work space of `project_rows` for up to k patches of n pixels."""
    wide, deep, least = padded_size(n), padded_size(k), padded_size(min(k, n))
    most = max(wide, deep)
    return (
        np.zeros((most, most), np.float32),
        np.zeros((least, least), np.float32),
        np.zeros((least, least), np.float32),
        np.zeros(least, np.float32),
        np.zeros((7, least), np.float32),
        np.zeros((most, wide), np.float32),
    )


@compiled
def project_rows(
    z: Matrix, k: int, n: int, variance: Scalar, most: Scalar, space: Space
) -> tuple[int, Scalar]:
    """Replace centred patches by their projections on the components above the edge.

    Parameters
    ----------
    z : (>= k, padded n) float32 array
        Centred patches in its first k rows; overwritten.
    k, n : int
        Patches and pixels a patch.
    variance : float
        Variance of the noise.
    most : float >= 1
        The edge follows the residual variance up to this many times the variance given.
    space : tuple of arrays
        From `projection_space`.

    Returns
    -------
    q : int
        Number of components kept.
    shown : float
        Residual variance per degree of freedom.
    """
    zt, gram, vectors, values, work, scores = space
    transpose(z, k, n, zt)
    small = min(k, n)
    width = padded_size(small)
    g, v, s = gram[:width, :width], vectors[:, :width], work[:, :width]
    if n <= k:
        gram_of_columns(z, zt, g, k, n)
    else:
        gram_of_columns(zt, z, g, n, k)
    trace = np.float32(0)
    for i in range(small):
        trace += g[i, i]
    per_variance = EDGE_FACTOR * (np.sqrt(np.float32(k)) + np.sqrt(np.float32(n))) ** 2
    above = 0
    if trace > per_variance * variance:
        above = leading_eigenvectors(g, small, per_variance * variance, v, values, s)
    q, shown = _components(values, above, trace, k, n, variance, most, per_variance)
    if n <= k:
        _scores(z, v, k, n, q, scores)
        clear(z, k)
        add_product(scores, v, z, k, q)
    else:
        clear(scores, q)
        add_product(v, z, scores, q, k)
        clear(z, k)
        transpose(v, q, k, zt)
        add_product(zt, scores, z, k, q)
    return q, shown


@compiled
def _components(
    values: Vector,
    above: int,
    trace: Scalar,
    k: int,
    n: int,
    variance: Scalar,
    most: Scalar,
    per_variance: Scalar,
) -> tuple[int, Scalar]:
    """Count the components above the edge of the noise that the group itself shows."""
    level, q, shown = np.float32(most * variance), above + 1, np.float32(0)
    for _ in range(ROUNDS):
        before, q, kept = q, 0, np.float32(0)
        while q < above and values[q] > per_variance * level:
            kept += values[q]
            q += 1
        if q == before:
            break
        freedom = np.float32(max(1, (k - 1 - q) * (n - q)))
        shown = np.float32(max(np.float32(trace) - kept, np.float32(0)) / freedom)
        level = min(max(shown, np.float32(variance)), np.float32(most * variance))
    return q, shown


@compiled
def _scores(z: Matrix, v: Matrix, k: int, n: int, q: int, scores: Matrix) -> None:
    """Coordinates of the patches on the first q components."""
    for i in range(k):
        row = z[i]
        for c in range(q):
            axis = v[c]
            dot = np.float32(0)
            for j in range(n):
                dot += row[j] * axis[j]
            scores[i, c] = dot


@compiled
def project_band(
    guide: Matrix,
    planes: NDArray[np.float32],
    variance: NDArray[np.float32],
    tie: Matrix,
    window: Matrix,
    k: int,
    most: Scalar,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    origin: int,
    top: int,
    height: int,
) -> NDArray[np.float32]:
    """Project the groups of one band of references.

    Parameters
    ----------
    guide : (h, RADIUS + w + LANES) float32 array
        Image the patches are matched in, from `pad_guide`; groups are shared by all planes.
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
    most : float
        As for `project_rows`.
    rows, columns : int arrays
        Upper left corners of the references of the band.
    origin : int
        From `kpca_apps.denoise.matching.origin_of`.
    top, height : int
        Rows of the planes the band can reach.

    Returns
    -------
    (c, 3, height, w) float32 array
        Weighted estimates, weights and weighted leverages.
    """
    shape = window.shape
    n = window.size
    sums = np.zeros((len(planes), 3, height, planes.shape[2]), np.float32)
    z, mean = np.zeros((k, padded_size(n)), np.float32), np.zeros(padded_size(n), np.float32)
    weight, leverage = np.zeros(k, np.float32), np.zeros(k, np.float32)
    group = np.zeros((k, 2), np.int32)
    nearby, space = matching_space(), projection_space(k, n)
    for y in rows:
        for x in columns:
            found = find_group(guide, y, x, shape, origin, k, tie[y, x], group, nearby)
            share = np.float32(1) / np.float32(found)
            for c in range(len(planes)):
                level = np.float32(0)
                for g in range(found):
                    level += share * variance[c, group[g, 0], group[g, 1]]
                gather(planes[c], group, found, shape, z)
                centre(z, found, mean)
                q, _ = project_rows(z, found, n, level, most, space)
                weight[:] = np.float32(1) / np.float32(1 + q)
                leverage[:] = np.float32(1 + q) * share
                spread(z, mean, weight, leverage, group, found, window, top, sums[c])
    return sums


@compiled
def survey_band(
    guide: Matrix,
    plane: Matrix,
    variance: Scalar,
    tie: Scalar,
    shape: tuple[int, int],
    k: int,
    most: Scalar,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Residual variance of groups over the variance given.

    Parameters
    ----------
    plane : (h, w) float32 array
        The noisy image.
    variance : float
        Variance of its noise as given.
    tie : float
        Squared distance below which candidates are drawn at random.
    shape : (int, int)
        Height and width of a patch.
    guide, k, most, rows, columns
        As for `project_band`.

    Returns
    -------
    (len(rows), len(columns)) float32 array
        About 1 where there is nothing but noise and the variance is right; more with detail.
    """
    n = shape[0] * shape[1]
    ratios = np.zeros((len(rows), len(columns)), np.float32)
    z, mean = np.zeros((k, padded_size(n)), np.float32), np.zeros(padded_size(n), np.float32)
    group = np.zeros((k, 2), np.int32)
    nearby, space = matching_space(), projection_space(k, n)
    for i in range(len(rows)):
        for j in range(len(columns)):
            found = find_group(guide, rows[i], columns[j], shape, 0, k, tie, group, nearby)
            gather(plane, group, found, shape, z)
            centre(z, found, mean)
            _, shown = project_rows(z, found, n, variance, most, space)
            ratios[i, j] = shown / variance
    return ratios
