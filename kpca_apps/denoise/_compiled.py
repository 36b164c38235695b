"""What `kpca_apps.denoise.group` says of one group, for all groups of a band of an image; compiled.

A group is the nearest neighbours of a reference patch, with random ties: two patches whose squared
distance is below what the noise alone explains are the same patch as far as anyone can tell.
Taking the nearest of them anyway picks the neighbours that share the reference's noise, and their
mean keeps it. Such candidates are drawn by a hash of their coordinates instead: fair, and the same
on every run, whatever the tiling.

For a kernel of infinite width the two cuts need no kernel matrix: projections on the leading
principal components (`project_rows`), and the Wiener filter learned on a pilot (`linear_smooth`),
Theta = X (X'X + rho I)^-1 X', which is the second stage of NL-Ridge (Herbreteau & Kervrann 2022)
with centring. For truncation at a finite width there is `rbf_rows`, which comes to
`project_rows` as the width grows; the Tikhonov filter is not better for one (measured on text at
sigma 25: 26.76 dB, and 26.90 with an infinite width).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise._small_matrices import Matrix, Scalar, Vector, leading_eigenvectors
from kpca_apps.denoise.group import EDGE_FACTOR, RIDGE_FACTOR, ROUNDS, STEPS, TOLERANCE
from kpca_apps.engine.preimage.fixed_point import VANISHING
from kpca_apps.system.compiling import compiled

Places = NDArray[np.int32]

RADIUS = 18  # patches are looked for within so many pixels of the reference, both ways
LANES = 40  # columns of candidates compared at once: 2 RADIUS + 1, in whole vector registers

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
def find_group(
    padded: Matrix,
    y: int,
    x: int,
    shape: tuple[int, int],
    origin: tuple[int, int],
    k: int,
    tie: Scalar,
) -> Places:
    """Return the corners of the k patches nearest to a reference, in reading order: (k, 2).

    The reference, at (y, x) of a guide with RADIUS columns of zeros before it and LANES behind, is
    among them; an image may hold fewer. Squared distances below `tie` are drawn at random from its
    upper half, by coordinates in the whole image, where the guide begins at `origin`.
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
    last = np.partition(distances[:n], k - 1)[k - 1]
    nearer = 0
    for t in range(n):
        nearer += distances[t] < last
    level = k - nearer
    group = np.empty((k, 2), np.int32)
    found = 0
    for t in range(n):
        equal = distances[t] == last
        if distances[t] < last or (equal and level > 0):
            group[found, 0] = places[t, 0]
            group[found, 1] = places[t, 1]
            found += 1
            level -= equal
    return group


@compiled
def gather_centred(plane: Matrix, group: Places, shape: tuple[int, int]) -> tuple[Matrix, Vector]:
    """Return the patches of a group (k, n), less their mean, and the mean."""
    height, width = shape
    k, n = len(group), height * width
    patches, mean = np.empty((k, n), np.float32), np.zeros(n, np.float32)
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
    return patches, mean


@compiled
def spread(
    estimates: Matrix,
    mean: Vector,
    weight: Vector,
    leverage: Vector,
    group: Places,
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
    for g in range(len(group)):
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
def project_rows(z: Matrix, variance: Scalar, most: Scalar) -> tuple[Matrix, int, Scalar]:
    """Return the projections of centred patches (k, n) on the components above the edge.

    The edge follows the residual variance up to `most` times the variance given. Returned too: how
    many components were kept, and the residual variance per degree of freedom.
    """
    k, n = z.shape
    gram = np.dot(z.T, z) if n <= k else np.dot(z, z.T)
    trace = np.trace(gram)
    per_variance = EDGE * (np.sqrt(np.float32(k)) + np.sqrt(np.float32(n))) ** 2
    values, axes = leading_eigenvectors(gram, per_variance * variance)
    q, shown = _components(values, trace, (k, n), variance, most, per_variance)
    axes = axes[:q]
    if n <= k:
        return np.dot(np.dot(z, axes.T), axes), q, shown
    return np.dot(axes.T, np.dot(axes, z)), q, shown


@compiled
def _components(
    values: Vector,
    trace: Scalar,
    shape: tuple[int, int],
    variance: Scalar,
    most: Scalar,
    per_variance: Scalar,
) -> tuple[int, Scalar]:
    """Count the components above the edge of the noise that the group itself shows."""
    k, n = shape
    level, q, shown = np.float32(most * variance), len(values) + 1, np.float32(0)
    for _ in range(ROUNDS):
        before, q, kept = q, 0, np.float32(0)
        while q < len(values) and values[q] > per_variance * level:
            kept += values[q]
            q += 1
        if q == before:
            break
        freedom = np.float32(max(1, (k - 1 - q) * (n - q)))
        shown = np.float32(max(np.float32(trace) - kept, np.float32(0)) / freedom)
        level = min(max(shown, np.float32(variance)), np.float32(most * variance))
    return q, shown


@compiled
def linear_smooth(x: Matrix, z: Matrix, ridge: Scalar) -> tuple[Matrix, Vector]:
    """Return Theta z, Theta learned on the centred patches x of the pilot, and its diagonal."""
    k, n = x.shape
    gram = np.dot(x.T, x)
    # At least what float32 needs.
    added = max(ridge, np.float32(2e-6) * np.trace(gram), np.float32(1e-12))
    for i in range(n):
        gram[i, i] += added
    weights = np.linalg.solve(gram, x.T).T
    leverage = np.zeros(k, np.float32)
    for i in range(k):
        own = np.float32(0)
        for j in range(n):
            own += weights[i, j] * x[i, j]
        leverage[i] = max(own, np.float32(0))
    return np.dot(weights, np.dot(x.T, z)), leverage


@compiled
def rbf_rows(z: Matrix, variance: Scalar, most: Scalar, bandwidth: Scalar) -> tuple[Matrix, int]:
    """Return pre-images of the projections of centred patches: `project_rows` at finite width.

    In double precision: what a wide kernel says of near patches is in its last digits.
    """
    k, n = z.shape
    x = z.astype(np.float64)
    gram = np.dot(x, x.T)
    square = np.diag(gram).copy()
    c = max(bandwidth * 2.0 * square.sum() / k, 1e-12)
    # The centred kernel (c / 2) exp(-d^2 / c). Centring removes what all entries share, so c / 2
    # is left out from the start.
    mean = np.zeros(k)
    for i in range(k):
        for j in range(k):
            d = max(0.0, square[i] + square[j] - 2.0 * gram[i, j])
            gram[i, j] = 0.5 * c * np.expm1(-d / c)
            mean[i] += gram[i, j] / k
    total = mean.sum() / k
    for i in range(k):
        for j in range(k):
            gram[i, j] += total - mean[i] - mean[j]
    # What the kernel makes of noise, as in `kpca_apps.denoise.group`.
    t = 2.0 * n * variance / c
    slope = np.exp(-t)
    floor = -0.5 * c * (np.expm1(-t) + t * slope)
    per_variance = EDGE_FACTOR * (np.sqrt(k) + np.sqrt(n)) ** 2
    trace = (np.trace(gram) - (k - 1) * floor) / slope
    values, vectors = leading_eigenvectors(gram, slope * per_variance * variance + floor)
    values = (values - floor) / slope
    q, _ = _components(values, trace, (k, n), variance, most, per_variance)
    vectors = vectors[:q]
    expansion = np.dot(vectors.T, vectors) + 1.0 / k
    # Mika's fixed point, begun at the points themselves: a step is z_i = sum_j w_ij x_j, w_ij in
    # proportion to expansion_ij k(z_i, x_j).
    points, near = x, TOLERANCE**2 * 0.5 * c
    for _ in range(STEPS):
        weights = np.dot(points, x.T)
        for i in range(k):
            _weigh(weights[i], expansion[i], square, np.sum(points[i] * points[i]), c)
        following = np.dot(weights, x)
        farthest = 0.0
        for i in range(k):
            farthest = max(farthest, np.sum((following[i] - points[i]) ** 2))
        points = following
        if farthest <= near:
            break
    return points.astype(np.float32), q


@compiled
def _weigh(row: Vector, expansion: Vector, square: Vector, length: Scalar, c: Scalar) -> None:
    """Turn inner products of a point, of squared length given, with the others into weights."""
    k = len(row)
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
    `planes`, both (c, h, w) and the same for truncation. `variance` is that of the noise in the
    planes, its mean over the patch at each position, (c, h - p + 1, w - p' + 1), or (c, 1, 1) for
    the Tikhonov filter; `tie` the squared distance below which a candidate is the same patch as the
    reference there. `window` (p, p') weighs the pixels of a patch; a group has k. The truncation is
    of the `bandwidth` of `kpca_apps.denoise.group.denoise_group`, None for an infinite one, and its
    edge follows the group up to `most` times the variance. `rows` and `columns` are the references'
    corners, `origin` is where the planes begin in the whole image, `top` and `height` say which
    rows of them the band can reach. Weighted estimates, weights and weighted leverages are
    returned, (c, 3, height, w).
    """
    shape, n = window.shape, window.size
    sums = np.zeros((len(planes), 3, height, planes.shape[2]), np.float32)
    for y in rows:
        for x in columns:
            near = np.float32(0) if soft else tie[y, x]
            group = find_group(guide, y, x, shape, origin, k, near)
            share = np.float32(1) / np.float32(len(group))
            for c in range(len(planes)):
                z, mean = gather_centred(planes[c], group, shape)
                if soft:
                    learned, _ = gather_centred(points[c], group, shape)
                    ridge = RIDGE * np.float32(n) * variance[c, 0, 0]
                    estimates, leverage = linear_smooth(learned, z, ridge)
                    leverage += share
                    weight = np.float32(1) / leverage
                else:
                    level = np.float32(0)
                    for place in group:
                        level += share * variance[c, place[0], place[1]]
                    if bandwidth is not None:  # A branch that is not compiled where it is.
                        estimates, q = rbf_rows(z, level, most, bandwidth)
                    else:
                        estimates, q, _ = project_rows(z, level, most)
                    weight = np.full(len(group), np.float32(1) / np.float32(1 + q), np.float32)
                    leverage = np.full(len(group), np.float32(1 + q) * share, np.float32)
                spread(estimates, mean, weight, leverage, group, window, top, sums[c])
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
    ratios = np.zeros((len(rows), len(columns)), np.float32)
    for i in range(len(rows)):
        for j in range(len(columns)):
            group = find_group(guide, rows[i], columns[j], shape, (0, 0), k, tie)
            z, _ = gather_centred(plane, group, shape)
            _, _, shown = project_rows(z, variance, most)
            ratios[i, j] = shown / variance
    return ratios
