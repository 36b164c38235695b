"""What `kpca_apps.denoise.group` says of one group, for all groups of a band of an image; compiled.

A group is the nearest neighbours of a reference patch, with random ties: two patches whose squared
distance is below what the noise alone explains are the same patch as far as anyone can tell.
Taking the nearest of them anyway picks the neighbours that share the reference's noise, and their
mean keeps it. Such candidates are drawn by a hash of their coordinates instead: fair, and the same
on every run, whatever the tiling.

For a kernel of infinite width the two cuts need no kernel matrix: projections on the leading
principal components (`project_rows`), and the Wiener filter learned on a pilot (`linear_smooth`),
Theta = X (X'X + rho I)^-1 X', which is the second stage of NL-Ridge (Herbreteau & Kervrann 2022)
with centring. For the hard cut at a finite width there is `rbf_rows`, which comes to
`project_rows` as the width grows; the soft cut is not better for one (measured on text at sigma
25: 26.76 dB, and 26.90 with an infinite width).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise._small_matrices import (
    Matrix,
    Scalar,
    Vector,
    add_product,
    compiled,
    gram_of_columns,
    leading_eigenvectors,
    padded_size,
)
from kpca_apps.denoise.group import EDGE_FACTOR, RIDGE_FACTOR, ROUNDS, STEPS, TOLERANCE
from kpca_apps.engine.preimage.fixed_point import VANISHING

__all__ = [
    "LANES",
    "RADIUS",
    "denoise_band",
    "find_group",
    "gather_centred",
    "linear_smooth",
    "project_rows",
    "rbf_rows",
    "spread",
    "survey_band",
]

Places = NDArray[np.int32]

RADIUS = 18
"""Patches are looked for within this many pixels of the reference, both ways."""

LANES = 40
"""Columns of candidates compared at once: 2 RADIUS + 1, rounded up to whole vector registers."""

EDGE, RIDGE = np.float32(EDGE_FACTOR), np.float32(RIDGE_FACTOR)


@compiled
def _row_distances(
    padded: Matrix, y: int, x: int, other_y: int, height: int, width: int, out: Vector
) -> None:
    """Squared distances of the patch at (y, x) to LANES patches starting at (other_y, x - R)."""
    for t in range(LANES):
        out[t] = np.float32(0)
    for i in range(height):
        mine = padded[y + i]
        theirs = padded[other_y + i]
        j = 0
        while j + 1 < width:
            a = mine[x + RADIUS + j]
            b = mine[x + RADIUS + j + 1]
            left = theirs[x + j : x + j + LANES]
            right = theirs[x + j + 1 : x + j + 1 + LANES]
            for t in range(LANES):
                p = left[t] - a
                q = right[t] - b
                out[t] += p * p + q * q
            j += 2
        if j < width:
            a = mine[x + RADIUS + j]
            left = theirs[x + j : x + j + LANES]
            for t in range(LANES):
                p = left[t] - a
                out[t] += p * p


@compiled
def _uniform(reference: np.uint64, candidate: np.uint64) -> np.float32:
    """Hash two 64-bit keys into [0, 1)."""
    z = reference * np.uint64(0x9E3779B97F4A7C15) + candidate * np.uint64(0xC2B2AE3D27D4EB4F)
    z ^= z >> np.uint64(31)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(29)
    return np.float32(z >> np.uint64(40)) * np.float32(2.0**-24)


@compiled
def _key(y: int, x: int) -> np.uint64:
    """Coordinates as one number."""
    return (np.uint64(y) << np.uint64(32)) | np.uint64(x)


@compiled
def _kth_smallest(values: Vector, k: int) -> np.float32:
    """Return the k-th smallest (from 1) of values, which are reordered."""
    low, high, wanted = 0, len(values) - 1, k - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return np.float32(values[wanted])


@compiled
def find_group(
    padded: Matrix,
    y: int,
    x: int,
    shape: tuple[int, int],
    origin: tuple[int, int],
    k: int,
    tie: Scalar,
    group: Places,
) -> int:
    """Write the corners of the k patches nearest to a reference; return how many there are.

    The reference, at (y, x) of a guide with RADIUS columns of zeros before it and LANES behind, is
    among them, in reading order; an image may hold fewer. Squared distances below `tie` are drawn
    at random from its upper half, by coordinates in the whole image, where the guide begins at
    `origin`.
    """
    most = (2 * RADIUS + 1) * LANES
    distances, places = np.empty(most, np.float32), np.empty((most, 2), np.int32)
    row = np.empty(LANES, np.float32)
    height, width = shape
    top, bottom = max(0, y - RADIUS), min(padded.shape[0] - height, y + RADIUS)
    left, right = max(0, x - RADIUS), min(padded.shape[1] - RADIUS - LANES - width, x + RADIUS)
    reference = _key(origin[0] + y, origin[1] + x)
    n = 0
    for other_y in range(top, bottom + 1):
        _row_distances(padded, y, x, other_y, height, width, row)
        for other_x in range(left, right + 1):
            d = row[other_x - x + RADIUS]
            if np.isnan(d):  # An order of distances there must be, or too many would be found.
                d = np.float32(np.inf)
            if d < tie:
                u = _uniform(reference, _key(origin[0] + other_y, origin[1] + other_x))
                d = tie * (np.float32(0.5) + np.float32(0.5) * u)
            if other_y == y and other_x == x:
                d = np.float32(-1)
            distances[n] = d
            places[n, 0] = other_y
            places[n, 1] = other_x
            n += 1
    k = min(k, n)
    last = _kth_smallest(distances[:n].copy(), k)
    nearer = 0
    for t in range(n):
        nearer += distances[t] < last
    level = k - nearer
    found = 0
    for t in range(n):
        equal = distances[t] == last
        if distances[t] < last or (equal and level > 0):
            group[found, 0] = places[t, 0]
            group[found, 1] = places[t, 1]
            found += 1
            level -= equal
    return found


@compiled
def gather_centred(
    plane: Matrix, group: Places, k: int, shape: tuple[int, int], patches: Matrix, mean: Vector
) -> None:
    """Copy the k patches of a group into the rows of a matrix, less their mean, which is kept."""
    height, width = shape
    n = height * width
    for j in range(n):
        mean[j] = np.float32(0)
    for g in range(k):
        y, x = group[g, 0], group[g, 1]
        to = patches[g]
        for i in range(height):
            row = plane[y + i]
            for j in range(width):
                to[i * width + j] = row[x + j]
        for j in range(n):
            mean[j] += to[j]
    share = np.float32(1) / np.float32(k)
    for j in range(n):
        mean[j] *= share
    for g in range(k):
        to = patches[g]
        for j in range(n):
            to[j] -= mean[j]


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
    """Add the estimates of a group, less their mean, to what is known of the pixels under it.

    `sums` holds weighted estimates, weights and weighted leverages, from image row `top` on; each
    patch has its weight, and each pixel of a patch that of the window. The leverage of a patch is
    the variance of its estimate over that of the noise.
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


@compiled
def project_rows(z: Matrix, k: int, n: int, variance: Scalar, most: Scalar) -> tuple[int, Scalar]:
    """Replace k centred patches of n pixels by their projections on the components above the edge.

    The edge follows the residual variance up to `most` times the variance given. Returned: how many
    components were kept, and the residual variance per degree of freedom.
    """
    small = min(k, n)
    width, wide = padded_size(small), z.shape[1]
    across, gram = np.zeros((n, padded_size(k)), np.float32), np.zeros((width, width), np.float32)
    transpose(z, k, n, across)
    if n <= k:
        gram_of_columns(z, across, gram, k, n)
    else:
        gram_of_columns(across, z, gram, n, k)
    trace = np.float32(0)
    for i in range(small):
        trace += gram[i, i]
    per_variance = EDGE * (np.sqrt(np.float32(k)) + np.sqrt(np.float32(n))) ** 2
    above = 0
    vectors, values = np.zeros((small, width), np.float32), np.zeros(small, np.float32)
    if trace > per_variance * variance:
        above = leading_eigenvectors(gram, small, per_variance * variance, vectors, values)
    q, shown = _components(values, above, trace, k, n, variance, most, per_variance)
    if n <= k:
        # Coordinates of the patches on the components, which are vectors of pixels.
        scores = np.zeros((k, q), np.float32)
        for i in range(k):
            row = z[i]
            for c in range(q):
                axis = vectors[c]
                dot = np.float32(0)
                for j in range(n):
                    dot += row[j] * axis[j]
                scores[i, c] = dot
        clear(z, k)
        add_product(scores, vectors, z, k, q)
    else:
        axes, weights = np.zeros((q, wide), np.float32), np.zeros((k, q), np.float32)
        add_product(vectors, z, axes, q, k)
        transpose(vectors, q, k, weights)
        clear(z, k)
        add_product(weights, axes, z, k, q)
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
def linear_smooth(x: Matrix, z: Matrix, k: int, n: int, ridge: Scalar, leverage: Vector) -> None:
    """Replace the noisy patches z by Theta z, learned on the centred patches x of the pilot.

    `leverage` receives the diagonal of Theta.
    """
    width = padded_size(n)
    across, gram = np.zeros((n, padded_size(k)), np.float32), np.zeros((width, width), np.float32)
    transpose(x, k, n, across)
    gram_of_columns(x, across, gram, k, n)
    trace = np.float32(0)
    for i in range(n):
        trace += gram[i, i]
    # At least what float32 needs.
    added = max(ridge, np.float32(2e-6) * trace, np.float32(1e-12))
    for i in range(n):
        gram[i, i] += added
    weights = np.linalg.solve(gram[:n, :n].copy(), x[:k, :n].copy().T).T
    for i in range(k):
        own = np.float32(0)
        for j in range(n):
            own += weights[i, j] * x[i, j]
        leverage[i] = max(own, np.float32(0))
    learned = np.zeros((n, width), np.float32)
    add_product(across, z, learned, n, k)
    clear(z, k)
    add_product(weights, learned, z, k, n)


@compiled
def rbf_rows(z: Matrix, k: int, n: int, variance: Scalar, most: Scalar, bandwidth: Scalar) -> int:
    """Replace centred patches by pre-images of their projections: `project_rows` at finite width.

    In double precision: what a wide kernel says of near patches is in its last digits.
    """
    deep = padded_size(k)
    points = z[:k].astype(np.float64)
    across, gram = np.zeros((n, deep)), np.zeros((deep, deep))
    transpose(points, k, n, across)
    gram_of_columns(across, points, gram, n, k)
    square = np.zeros(k)
    for i in range(k):
        square[i] = gram[i, i]
    c = _centred_rbf(gram, square, k, bandwidth)
    expansion = np.zeros((k, deep))
    q = _truncated(gram, k, n, variance, most, c, expansion)
    for i in range(k):
        for j in range(k):
            expansion[i, j] += 1.0 / k
    z[:k] = _pre_images(points, across, square, expansion, k, n, c)
    return q


@compiled
def _centred_rbf(gram: Matrix, square: Vector, k: int, bandwidth: Scalar) -> float:
    """Turn inner products into the centred kernel (c / 2) exp(-d^2 / c), in place; return c.

    Centring takes out what all entries share, so c / 2 is left out from the start.
    """
    c = max(bandwidth * 2.0 * square.sum() / k, 1e-12)
    mean = np.zeros(k)
    for i in range(k):
        for j in range(k):
            d = max(0.0, square[i] + square[j] - 2.0 * gram[i, j])
            gram[i, j] = 0.5 * c * np.expm1(-d / c)
            mean[i] += gram[i, j] / k
    total = 0.0
    for i in range(k):
        total += mean[i] / k
    for i in range(k):
        for j in range(k):
            gram[i, j] += total - mean[i] - mean[j]
    return float(c)


@compiled
def _truncated(
    gram: Matrix, k: int, n: int, variance: Scalar, most: Scalar, c: Scalar, expansion: Matrix
) -> int:
    """Write V V', V the eigenvectors above the edge; return how many those are."""
    t = 2.0 * n * variance / c
    slope = np.exp(-t)
    floor = -0.5 * c * (np.expm1(-t) + t * slope)
    per_variance = EDGE_FACTOR * (np.sqrt(k) + np.sqrt(n)) ** 2
    trace = 0.0
    for i in range(k):
        trace += gram[i, i]
    trace = (trace - (k - 1) * floor) / slope
    width = expansion.shape[1]
    vectors, values = np.zeros((k, width)), np.zeros(k)
    edge = slope * per_variance * variance + floor
    above = leading_eigenvectors(gram, k, edge, vectors, values)
    for a in range(above):
        values[a] = (values[a] - floor) / slope
    q, _ = _components(values, above, trace, k, n, variance, most, per_variance)
    across = np.zeros((k, width))
    transpose(vectors, q, k, across)
    add_product(across, vectors, expansion, k, q)
    return q


@compiled
def _pre_images(
    x: Matrix, across: Matrix, square: Vector, expansion: Matrix, k: int, n: int, c: Scalar
) -> Matrix:
    """Return the pre-images by Mika's fixed point, begun at the points themselves.

    A step is z_i = sum_j w_ij x_j, w_ij in proportion to expansion_ij k(z_i, x_j).
    """
    z, following = x.copy(), np.zeros_like(x)
    weights = np.zeros_like(expansion)
    near = TOLERANCE**2 * 0.5 * c
    for _ in range(STEPS):
        clear(weights, k)
        add_product(z, across, weights, k, n)
        for i in range(k):
            _weigh(weights[i], expansion[i], square, np.sum(z[i] * z[i]), k, c)
        clear(following, k)
        add_product(weights, x, following, k, k)
        farthest = 0.0
        for i in range(k):
            moved = 0.0
            for j in range(n):
                step = following[i, j] - z[i, j]
                moved += step * step
                z[i, j] = following[i, j]
            farthest = max(farthest, moved)
        if farthest <= near:
            break
    return z


@compiled
def _weigh(
    row: Vector, expansion: Vector, square: Vector, length: Scalar, k: int, c: Scalar
) -> None:
    """Turn inner products with the k points into weights that add up to 1."""
    nearest = np.inf
    for j in range(k):
        row[j] = max(0.0, length + square[j] - 2.0 * row[j])
        nearest = min(nearest, row[j])
    total, size = 0.0, 0.0
    for j in range(k):
        row[j] = expansion[j] * np.exp((nearest - row[j]) / c)
        total += row[j]
        size += abs(row[j])
    # The sum vanishes between points of weights with both signs: the linear ones stay.
    vanished = not abs(total) > VANISHING * size
    for j in range(k):
        row[j] = expansion[j] if vanished else row[j] / total


@compiled
def denoise_band(
    guide: Matrix,
    points: NDArray[np.float32],
    planes: NDArray[np.float32],
    variance: NDArray[np.float32],
    tie: Matrix,
    window: Matrix,
    k: int,
    soft: bool,
    bandwidth: float | None,
    most: Scalar,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    origin: tuple[int, int],
    top: int,
    height: int,
) -> NDArray[np.float32]:
    """Denoise the groups of one band of references, which are shared by all planes.

    Patches are matched in `guide`, padded as in `find_group`, learned on `points` and denoised in
    `planes`, both (c, h, w) and the same for the hard cut. `variance` is that of the noise in the
    planes, its mean over the patch at each position, (c, h - p + 1, w - p' + 1), or (c, 1, 1) for
    the soft cut; `tie` the squared distance below which a candidate is the same patch as the
    reference there. `window` (p, p') weighs the pixels of a patch; a group has k. The hard cut is
    of the `bandwidth` of `kpca_apps.denoise.group.denoise_group`, None for an infinite one, and its
    edge follows the group up to `most` times the variance. `rows` and `columns` are the references'
    corners, `origin` is where the planes begin in the whole image, `top` and `height` say which
    rows of them the band can reach. Weighted estimates, weights and weighted leverages are
    returned, (c, 3, height, w).
    """
    shape, n = window.shape, window.size
    wide = padded_size(n)
    sums = np.zeros((len(planes), 3, height, planes.shape[2]), np.float32)
    x_rows, z = np.zeros((k, wide), np.float32), np.zeros((k, wide), np.float32)
    mean = np.zeros(wide, np.float32)
    weight, leverage = np.zeros(k, np.float32), np.zeros(k, np.float32)
    group = np.zeros((k, 2), np.int32)
    for y in rows:
        for x in columns:
            near = np.float32(0) if soft else tie[y, x]
            found = find_group(guide, y, x, shape, origin, k, near, group)
            share = np.float32(1) / np.float32(found)
            for c in range(len(planes)):
                level = np.float32(0)
                if soft:
                    level = variance[c, 0, 0]
                    gather_centred(points[c], group, found, shape, x_rows, mean)
                else:
                    for g in range(found):
                        level += share * variance[c, group[g, 0], group[g, 1]]
                gather_centred(planes[c], group, found, shape, z, mean)
                if soft:
                    linear_smooth(x_rows, z, found, n, RIDGE * np.float32(n) * level, leverage)
                    for g in range(found):
                        leverage[g] += share
                        weight[g] = np.float32(1) / leverage[g]
                else:
                    if bandwidth is not None:  # A branch that is not compiled where it is.
                        q = rbf_rows(z, found, n, level, most, bandwidth)
                    else:
                        q, _ = project_rows(z, found, n, level, most)
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
    """Return the residual variance of groups over the variance given, (rows, columns).

    About 1 where there is nothing but noise and the variance is right; more with detail. The
    arguments are those of `denoise_band`.
    """
    n = shape[0] * shape[1]
    ratios = np.zeros((len(rows), len(columns)), np.float32)
    z, mean = np.zeros((k, padded_size(n)), np.float32), np.zeros(padded_size(n), np.float32)
    group = np.zeros((k, 2), np.int32)
    for i in range(len(rows)):
        for j in range(len(columns)):
            found = find_group(guide, rows[i], columns[j], shape, (0, 0), k, tie, group)
            gather_centred(plane, group, found, shape, z, mean)
            _, shown = project_rows(z, found, n, variance, most)
            ratios[i, j] = shown / variance
    return ratios
