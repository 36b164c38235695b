"""What `kpca_apps.denoise.group` says of one group, for all groups of a band of an image; compiled.

A group is the nearest neighbours of a reference patch, with random ties: two patches whose squared
distance is below what the noise alone explains are the same patch as far as anyone can tell.
Taking the nearest of them anyway picks the neighbours that share the reference's noise, and their
mean keeps it. Such candidates are drawn by a hash of their coordinates instead: fair, and the same
on every run, whatever the tiling.

Planes have an axis of pages, of which a single image has one. Patches span some of them, and a
group is sought in the pages around, too, where the search follows what moves.

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

from kpca_apps.denoise.group import EDGE_FACTOR, RIDGE_FACTOR, ROUNDS, STEPS, TOLERANCE
from kpca_apps.denoise.passes.small_matrices import Matrix, Scalar, Vector, leading_eigenvectors
from kpca_apps.engine.preimage.fixed_point import VANISHING
from kpca_apps.system.compiling import compiled

Places = NDArray[np.int32]  # (k, 3): page, row and column of the corner of each patch
Pages = NDArray[np.float32]  # (pages, h, w)
Shape = tuple[int, int, int]  # pages, height and width of a patch

RADIUS = 18  # patches are looked for within so many pixels of the reference, both ways
LANES = 40  # columns of candidates compared at once: 2 RADIUS + 1, in whole vector registers
# In the pages around patches are looked for so far from where the page before showed the one most
# like the reference, and in so many pages on either side.
NEAR, PAGES = 5, 3

EDGE, RIDGE = np.float32(EDGE_FACTOR), np.float32(RIDGE_FACTOR)


@compiled
def _row_distances(
    mine: Matrix, theirs: Matrix, y: int, x: int, other_y: int, other_x: int,
    height: int, width: int, out: Vector,
) -> None:  # fmt: skip
    """Squared distances of the patch at (y, x) to LANES patches starting at (other_y, other_x - R).

    Both pages have RADIUS columns of zeros before them.
    """
    for t in range(LANES):
        out[t] = np.float32(0)
    for i in range(height):
        own = mine[y + i]
        near = theirs[other_y + i]
        j = 0
        while j + 1 < width:
            a = own[x + RADIUS + j]
            b = own[x + RADIUS + j + 1]
            left = near[other_x + j : other_x + j + LANES]
            right = near[other_x + j + 1 : other_x + j + 1 + LANES]
            for t in range(LANES):
                p = left[t] - a
                q = right[t] - b
                out[t] += p * p + q * q
            j += 2
        if j < width:
            a = own[x + RADIUS + j]
            left = near[other_x + j : other_x + j + LANES]
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
    padded: Pages,
    reference: tuple[int, int, int],
    shape: Shape,
    origin: tuple[int, int],
    k: int,
    tie: Scalar,
) -> Places:
    """Return the corners of the k patches nearest to a reference, in reading order of each page.

    The reference, at (page, y, x) of a guide with RADIUS columns of zeros before it and LANES
    behind, is among them; an image may hold fewer. Squared distances below `tie` are drawn at
    random from its upper half, by coordinates in the whole image, where the guide begins at
    `origin`.
    """
    page, y, x = reference
    deep, height, width = shape
    lowest, rightmost = padded.shape[1] - height, padded.shape[2] - RADIUS - LANES - width
    side = 2 * NEAR + 1
    most = (2 * RADIUS + 1) ** 2 + 2 * PAGES * side * side
    distances, places = np.empty(most, np.float32), np.empty((most, 3), np.int32)
    row, total = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    own_key = _key(origin[0] + y, origin[1] + x)
    # Draws of a stack differ from page to page.
    first_page = PAGES if len(padded) > 1 else 0
    n = 0
    for way in (0, -1, 1):
        centre_y, centre_x = y, x
        reach = RADIUS if way == 0 else NEAR
        for step in range(1, 2 if way == 0 else PAGES + 1):
            other = page + way * step
            if other < 0 or other + deep > len(padded):
                break
            # By the distance of the pages, and so whatever page the piece begins at.
            along = np.uint64(other - page + first_page) << np.uint64(56)
            best, best_y, best_x = np.float32(np.inf), centre_y, centre_x
            left, right = max(0, centre_x - reach), min(rightmost, centre_x + reach)
            for other_y in range(max(0, centre_y - reach), min(lowest, centre_y + reach) + 1):
                _row_distances(
                    padded[page], padded[other], y, x, other_y, centre_x, height, width, total
                )
                for i in range(1, deep):
                    _row_distances(
                        padded[page + i], padded[other + i], y, x, other_y, centre_x,
                        height, width, row,
                    )  # fmt: skip
                    for t in range(LANES):
                        total[t] += row[t]
                for other_x in range(left, right + 1):
                    d = total[other_x - centre_x + RADIUS]
                    if np.isnan(d):  # An order of distances there must be, or too many are found.
                        d = np.float32(np.inf)
                    if d < best:
                        best, best_y, best_x = d, other_y, other_x
                    if d < tie:
                        key = along | _key(origin[0] + other_y, origin[1] + other_x)
                        d = tie * (np.float32(0.5) + np.float32(0.5) * _uniform(own_key, key))
                    if way == 0 and other_y == y and other_x == x:
                        d = np.float32(-1)
                    distances[n] = d
                    places[n, 0], places[n, 1], places[n, 2] = other, other_y, other_x
                    n += 1
            centre_y, centre_x = best_y, best_x
    k = min(k, n)
    last = np.partition(distances[:n], k - 1)[k - 1]
    level = k
    for t in range(n):
        level -= distances[t] < last
    group = np.empty((k, 3), np.int32)
    found = 0
    for t in range(n):
        equal = distances[t] == last
        if distances[t] < last or (equal and level > 0):
            group[found, 0] = places[t, 0]
            group[found, 1] = places[t, 1]
            group[found, 2] = places[t, 2]
            found += 1
            level -= equal
    return group


@compiled
def gather_centred(pages: Pages, group: Places, shape: Shape) -> tuple[Matrix, Vector]:
    """Return the patches of a group (k, n), less their mean, and the mean."""
    deep, height, width = shape
    k, n = len(group), deep * height * width
    patches, mean = np.empty((k, n), np.float32), np.zeros(n, np.float32)
    for g in range(k):
        y, x = group[g, 1], group[g, 2]
        to = patches[g]
        for p in range(deep):
            plane = pages[group[g, 0] + p]
            for i in range(height):
                row = plane[y + i]
                at = (p * height + i) * width
                for j in range(width):
                    to[at + j] = row[x + j]
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
    window: Pages,
    first: int,
    top: int,
    sums: NDArray[np.float32],
) -> None:
    """Add the estimates of a group, less their mean, to what is known of the pixels under it.

    `sums` holds weighted estimates, weights and weighted leverages, from page `first` and row `top`
    on; each patch has its weight, and each pixel of a patch that of the window. The leverage of a
    patch is the variance of its estimate over that of the noise.
    """
    deep, height, width = window.shape
    for g in range(len(group)):
        y, x = group[g, 1] - top, group[g, 2]
        w, dw = weight[g], weight[g] * leverage[g]
        for p in range(deep):
            page = group[g, 0] + p - first
            for i in range(height):
                row = window[p, i]
                at = (p * height + i) * width
                values = estimates[g, at : at + width]
                means = mean[at : at + width]
                total = sums[0, page, y + i, x : x + width]
                weights = sums[1, page, y + i, x : x + width]
                leverages = sums[2, page, y + i, x : x + width]
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
    q, residual = _components(values, trace, (k, n), variance, most, per_variance)
    axes = axes[:q]
    if n <= k:
        return np.dot(np.dot(z, axes.T), axes), q, residual
    return np.dot(axes.T, np.dot(axes, z)), q, residual


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
    level, q, residual = np.float32(most * variance), len(values) + 1, np.float32(0)
    for _ in range(ROUNDS):
        before, q, kept = q, 0, np.float32(0)
        while q < len(values) and values[q] > per_variance * level:
            kept += values[q]
            q += 1
        if q == before:
            break
        freedom = np.float32(max(1, (k - 1 - q) * (n - q)))
        residual = np.float32(max(np.float32(trace) - kept, np.float32(0)) / freedom)
        level = min(max(residual, np.float32(variance)), np.float32(most * variance))
    return q, residual


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
    guide: Pages,
    points: NDArray[np.float32],
    planes: NDArray[np.float32],
    variance: NDArray[np.float32],
    tie: Pages,
    window: Pages,
    k: int,
    soft: bool,
    bandwidth: float | None,
    most: Scalar,
    page: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    origin: tuple[int, int],
    reached: tuple[int, int, int, int],
) -> NDArray[np.float32]:
    """Denoise the groups of one band of references, which are shared by all planes.

    Patches are matched in `guide`, padded as in `find_group`, learned on `points` and denoised in
    `planes`, both (c, pages, h, w) and the same for truncation. `variance` is that of the noise in
    the planes, its mean over the patch at each position, pages one below the other, or (c, 1, 1)
    for the Tikhonov filter; `tie` (pages, h, w) the squared distance below which a candidate is
    the same patch as the reference there.
    `window` weighs the pixels of a patch; a group has k. The truncation is of the `bandwidth` of
    `kpca_apps.denoise.group.denoise_group`, None for an infinite one, and its edge follows the
    group up to `most` times the variance. `rows` and `columns` are the references' corners in the
    `page`, `origin` is where the planes begin in the whole image, `reached` says which page and row
    are the first that the band can reach, and how many. Weighted estimates, weights and weighted
    leverages are returned, (c, 3, pages, rows, w).
    """
    shape, n = window.shape, window.size
    first, top, count, height = reached
    sums = np.zeros((len(planes), 3, count, height, planes.shape[3]), np.float32)
    for y in rows:
        for x in columns:
            near = np.float32(0) if soft else tie[page, y, x]
            group = find_group(guide, (page, y, x), shape, origin, k, near)
            share = np.float32(1) / np.float32(len(group))
            corners = np.empty((len(group), 2), np.int32)
            for g in range(len(group)):
                corners[g, 0], corners[g, 1] = group[g, 0] * tie.shape[1] + group[g, 1], group[g, 2]
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
                    for place in corners:
                        level += share * variance[c, place[0], place[1]]
                    if bandwidth is not None:  # A branch that is not compiled where it is.
                        estimates, q = rbf_rows(z, level, most, bandwidth)
                    else:
                        estimates, q, _ = project_rows(z, level, most)
                    weight = np.full(len(group), np.float32(1) / np.float32(1 + q), np.float32)
                    leverage = np.full(len(group), np.float32(1 + q) * share, np.float32)
                spread(estimates, mean, weight, leverage, group, window, first, top, sums[c])
    return sums


@compiled
def survey_band(
    guide: Pages,
    plane: Pages,
    variance: Scalar,
    tie: Scalar,
    shape: Shape,
    k: int,
    most: Scalar,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Return the residual variance of groups over the variance given, (rows, columns).

    About 1 where there is nothing but noise and the variance is right; more with detail. The
    arguments are those of `denoise_band`, of one page.
    """
    ratios = np.zeros((len(rows), len(columns)), np.float32)
    for i in range(len(rows)):
        for j in range(len(columns)):
            group = find_group(guide, (0, rows[i], columns[j]), shape, (0, 0), k, tie)
            z, _ = gather_centred(plane, group, shape)
            _, _, residual = project_rows(z, variance, most)
            ratios[i, j] = residual / variance
    return ratios
