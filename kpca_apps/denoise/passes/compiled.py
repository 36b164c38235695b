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
from kpca_apps.denoise.passes.few_patches import (
    gram_of_patches,
    projected_patches,
    smoothed_patches,
    system_of_patches,
)
from kpca_apps.denoise.passes.registers import each, fill, load, store, total, where_above
from kpca_apps.denoise.passes.small_matrices import (
    NO,
    NONE,
    ONE,
    Matrix,
    Scalar,
    Vector,
    eliminate,
    leading_eigenvectors,
    multiply,
    padded_size,
)
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

# The largest distance there is, and its bits: one that is not a number counts as that.
LARGEST, FINITE_BITS = np.finfo(np.float32).max, 0x7F7FFFFF

EDGE, RIDGE = np.float32(EDGE_FACTOR), np.float32(RIDGE_FACTOR)


@compiled
def _distances(
    padded: Pages,
    reference: tuple[int, int, int],
    shape: Shape,
    other: int,
    rows: tuple[int, int],
    x: int,
    out: Matrix,
    at: int,
) -> None:
    """Write squared distances of the reference to patches of page `other`, in two of its rows.

    There are LANES a row, from RADIUS columns before x on.
    """
    zero = fill(np.float32(0))
    a0, a1, a2, a3, a4 = zero, zero, zero, zero, zero
    b0, b1, b2, b3, b4 = zero, zero, zero, zero, zero
    page, own_y, own_x = reference
    for p in range(shape[0]):
        for i in range(shape[1]):
            first, second = rows[0] + i, rows[1] + i
            for j in range(shape[2]):
                own, left = each(padded, (page + p, own_y + i, own_x + RADIUS + j)), x + j
                d = load(padded, (other + p, first, left)) - own
                a0 += d * d
                d = load(padded, (other + p, first, left + 8)) - own
                a1 += d * d
                d = load(padded, (other + p, first, left + 16)) - own
                a2 += d * d
                d = load(padded, (other + p, first, left + 24)) - own
                a3 += d * d
                d = load(padded, (other + p, first, left + 32)) - own
                a4 += d * d
                d = load(padded, (other + p, second, left)) - own
                b0 += d * d
                d = load(padded, (other + p, second, left + 8)) - own
                b1 += d * d
                d = load(padded, (other + p, second, left + 16)) - own
                b2 += d * d
                d = load(padded, (other + p, second, left + 24)) - own
                b3 += d * d
                d = load(padded, (other + p, second, left + 32)) - own
                b4 += d * d
    store(out, (at, 0), a0)
    store(out, (at, 8), a1)
    store(out, (at, 16), a2)
    store(out, (at, 24), a3)
    store(out, (at, 32), a4)
    store(out, (at + 1, 0), b0)
    store(out, (at + 1, 8), b1)
    store(out, (at + 1, 16), b2)
    store(out, (at + 1, 24), b3)
    store(out, (at + 1, 32), b4)


@compiled
def _mixed(a: int, b: int, c: int) -> np.uint32:
    """Hash three whole numbers into one of 32 bits."""
    z = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b)
    z ^= z >> np.uint64(31)
    z = z * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(c)
    z ^= z >> np.uint64(29)
    z *= np.uint64(0x94D049BB133111EB)
    return np.uint32(z >> np.uint64(32))


@compiled
def _draw_ties(row: Vector, seed: np.uint32, x: int, valid: tuple[int, int], tie: Scalar) -> None:
    """Draw distances below `tie` at random from its upper half, by a seed and their columns.

    The first of the row is column x. Outside `valid` they become infinite, and inside finite: an
    order of distances there must be.
    """
    tie = np.float32(tie)
    for t in range(LANES):
        # Products of 32 bits, so that lanes of registers hold them.
        z = np.uint32(seed + np.uint32(np.uint32(x + t) * np.uint32(0x9E3779B1)))
        z = np.uint32((z ^ (z >> np.uint32(16))) * np.uint32(0x7FEB352D))
        z = np.uint32((z ^ (z >> np.uint32(15))) * np.uint32(0x846CA68B))
        z = np.uint32(z >> np.uint32(8))
        drawn = tie * (np.float32(0.5) + np.float32(0.5 * 2.0**-24) * np.float32(np.int32(z)))
        d = row[t]
        d = d if d < LARGEST else LARGEST
        d = drawn if d < tie else d
        row[t] = d if valid[0] <= x + t <= valid[1] else np.float32(np.inf)


@compiled
def _count_up_to(distances: Vector, n: int, level: Scalar) -> int:
    """Count the first n numbers, some times 8, that are not above a level."""
    most, zero, one = fill(np.float32(level)), fill(np.float32(0)), fill(np.float32(1))
    count = zero
    for t in range(0, n, 8):
        count = where_above(load(distances, (t,)), most, count, count + one)
    return int(total(count))


@compiled
def _nearest(distances: Vector, k: int) -> NDArray[np.int32]:
    """Return where the k smallest are, of equal ones the first; their number is some times 8."""
    n = len(distances)
    # Floats from 0 up, and -1, are in the order of their bits, which are halved until few are left.
    bits, as_bits = distances.view(np.int32), np.empty(1, np.int32)
    as_float = as_bits.view(np.float32)
    low, high, count = 0, FINITE_BITS, n
    while count > 2 * k + 16 and low < high:
        as_bits[0] = (low + high) // 2
        here = _count_up_to(distances, n, as_float[0])
        if here >= k:
            high, count = int(as_bits[0]), here
        else:
            low = int(as_bits[0]) + 1
    near, few = np.empty(n + 1, np.int32), 0
    for t in range(n):
        near[few] = t
        few += bits[t] <= high
    values = np.full((few + 7) // 8 * 8, np.float32(np.inf))
    for t in range(few):
        values[t] = distances[near[t]]
    while low < high:
        as_bits[0] = (low + high) // 2
        if _count_up_to(values, len(values), as_float[0]) >= k:
            high = int(as_bits[0])
        else:
            low = int(as_bits[0]) + 1
    as_bits[0] = high
    last, equal = as_float[0], k
    for t in range(few):
        equal -= values[t] < last
    found = 0
    for t in range(few):
        same = values[t] == last
        if values[t] < last or (same and equal > 0):
            near[found] = near[t]
            found += 1
            equal -= same
    return near[:found]


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
    lowest, rightmost = padded.shape[1] - shape[1], padded.shape[2] - RADIUS - LANES - shape[2]
    most = 2 * RADIUS + 1
    if len(padded) > 1:
        most += 2 * PAGES * (2 * NEAR + 1)
    # With a row to spare, for two are compared at once.
    distances, begins = np.empty((most + 1, LANES), np.float32), np.empty((most, 3), np.int32)
    n, candidates = NONE, NONE
    for way in (0, -1, 1):
        centre_y, centre_x = y, x
        reach = RADIUS if way == 0 else NEAR
        for step in range(1, 2 if way == 0 else PAGES + 1):
            other = page + way * step
            if other < 0 or other + shape[0] > len(padded):
                break
            first, last = max(0, centre_y - reach), min(lowest, centre_y + reach)
            left, right = max(0, centre_x - reach), min(rightmost, centre_x + reach)
            begin, edge = n, centre_x - RADIUS
            for other_y in range(first, last + 1, 2):
                both = other_y, min(other_y + 1, last)
                _distances(padded, reference, shape, other, both, centre_x, distances, n)
                n += 1 + both[1] - both[0]
            candidates += (n - begin) * (right - left + 1)
            best = np.float32(np.inf)
            for r in range(begin, n):
                other_y = first + r - begin
                begins[r, 0], begins[r, 1], begins[r, 2] = other, other_y, edge
                if len(padded) > 1:
                    for other_x in range(left, right + 1):
                        if distances[r, other_x - edge] < best:
                            best = distances[r, other_x - edge]
                            centre_y, centre_x = other_y, other_x
                # Draws of a stack differ from page to page: by the distance of the pages, and so
                # whatever page the piece begins at.
                seed = _mixed(
                    origin[0] + y,
                    origin[1] + x,
                    (other - page + PAGES) * 2**32 + origin[0] + other_y,
                )
                valid = origin[1] + left, origin[1] + right
                _draw_ties(distances[r], seed, origin[1] + edge, valid, tie)
            if way == 0:
                distances[y - first, RADIUS] = np.float32(-1)
    chosen = _nearest(distances[:n].ravel(), min(k, candidates))
    group = np.empty((len(chosen), 3), np.int32)
    for g in range(len(chosen)):
        r, t = divmod(chosen[g], LANES)
        group[g, 0], group[g, 1], group[g, 2] = begins[r, 0], begins[r, 1], begins[r, 2] + t
    return group


@compiled
def gather_centred(pages: Pages, group: Places, shape: Shape) -> tuple[Matrix, Vector]:
    """Return the patches of a group, less their mean, and the mean.

    They are the first k rows and n columns of a matrix of which the rest is zero, rows some times
    four and one more, columns of the padded size.
    """
    deep, height, width = shape
    k, n = len(group), deep * height * width
    wide = padded_size(n)
    patches, mean = np.empty(((k + 3) // 4 * 4 + 1, wide), np.float32), np.empty(wide, np.float32)
    flat, zero = patches.ravel(), fill(np.float32(0))
    for g in range(k):
        y, x, at = group[g, 1], group[g, 2], g * wide
        # A register takes what is right of the patch, too, which the next row overwrites.
        inside = x + 8 <= pages.shape[2]
        for p in range(deep):
            page = group[g, 0] + p
            for i in range(y, y + height):
                if inside:
                    store(flat, (at,), load(pages, (page, i, x)))
                else:
                    for j in range(width):
                        flat[at + j] = pages[page, i, x + j]
                at += width
        for at in range(g * wide + n, (g + 1) * wide, 8):
            store(flat, (at,), zero)
    for at in range(k * wide, len(flat), 8):
        store(flat, (at,), zero)
    share = fill(np.float32(1) / np.float32(k))
    for j in range(0, wide, 8):
        sums = zero
        for g in range(k):
            sums += load(patches, (g, j))
        sums *= share
        store(mean, (j,), sums)
        for g in range(k):
            store(patches, (g, j), load(patches, (g, j)) - sums)
    return patches, mean


@compiled
def spread(
    estimates: Matrix,
    weight: Vector,
    leverage: Vector,
    group: Places,
    window: Pages,
    width: int,
    first: int,
    top: int,
    sums: NDArray[np.float32],
) -> None:
    """Add the estimates of a group to what is known of the pixels under it.

    `sums` holds weighted estimates, weights and weighted leverages, from page `first` and row `top`
    on, with eight columns to spare; each patch has its weight, and each pixel of a patch that of
    the window, whose rows are widened from `width` to a register by zeros. The leverage of a patch
    is the variance of its estimate over that of the noise.
    """
    deep, height = window.shape[:2]
    flat, zero = estimates.ravel(), fill(np.float32(0))
    for g in range(len(group)):
        x, at = group[g, 2], g * estimates.shape[1]
        w, dw = fill(weight[g]), fill(weight[g] * leverage[g])
        for p in range(deep):
            page = group[g, 0] + p - first
            for i in range(height):
                y, row = group[g, 1] + i - top, load(window, (p, i, 0))
                values = where_above(row, zero, load(flat, (at,)), zero)
                store(sums, (0, page, y, x), load(sums, (0, page, y, x)) + w * row * values)
                store(sums, (1, page, y, x), load(sums, (1, page, y, x)) + w * row)
                store(sums, (2, page, y, x), load(sums, (2, page, y, x)) + dw * row)
                at += width


@compiled
def project_rows(
    z: Matrix, mean: Vector, k: int, n: int, variance: Scalar, most: Scalar
) -> tuple[Matrix, int, Scalar]:
    """Return the projections of patches on the components above the edge.

    The patches are centred, `z` and `mean` those of `gather_centred`. The edge follows the residual
    variance up to `most` times the variance given. Returned too: how many components were kept, and
    the residual variance per degree of freedom.
    """
    wide, size = z.shape[1], min(k, n)
    gram = np.empty(((size + 3) // 4 * 4, padded_size(size)), np.float32)
    if k < n:
        gram_of_patches(z, k, n, gram)
    else:
        multiply(z.ravel(), (NONE, wide, ONE), z, k, gram, (NONE, n), (NONE, wide), NO)
    trace = np.float32(0)
    for i in range(size):
        trace += gram[i, i]
    per_variance = EDGE * (np.sqrt(np.float32(k)) + np.sqrt(np.float32(n))) ** 2
    values, axes = leading_eigenvectors(gram, size, per_variance * variance)
    q, residual = _components(values, trace, (k, n), variance, most, per_variance)
    if k < n:
        return projected_patches(z, mean, k, axes, q), q, residual
    # Axes are rows of a matrix of some times four.
    for c in range(q, (q + 3) // 4 * 4):
        axes[c] = np.float32(0)
    estimates, zero = np.empty_like(z), fill(np.float32(0))
    for g in range(k):
        for j in range(0, wide, 8):
            store(estimates, (g, j), load(mean, (j,)))
        for c in range(0, q, 4):
            s0, s1, s2, s3 = zero, zero, zero, zero
            for j in range(0, wide, 8):
                values_here = load(z, (g, j))
                s0 += values_here * load(axes, (c, j))
                s1 += values_here * load(axes, (c + 1, j))
                s2 += values_here * load(axes, (c + 2, j))
                s3 += values_here * load(axes, (c + 3, j))
            s0, s1, s2, s3 = fill(total(s0)), fill(total(s1)), fill(total(s2)), fill(total(s3))
            for j in range(0, wide, 8):
                some = s0 * load(axes, (c, j)) + s1 * load(axes, (c + 1, j))
                rest = s2 * load(axes, (c + 2, j)) + s3 * load(axes, (c + 3, j))
                store(estimates, (g, j), load(estimates, (g, j)) + (some + rest))
    return estimates, q, residual


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
def linear_smooth(
    x: Matrix, z: Matrix, mean: Vector, k: int, n: int, ridge: Scalar
) -> tuple[Matrix, Vector]:
    """Return Theta z plus the mean, Theta learned on the patches x of the pilot, and its diagonal.

    The patches are centred, `x`, `z` and `mean` those of `gather_centred`. With U'U = X'X + rho I
    and W = U'^-1 X', Theta is W'W.
    """
    wide, size, across = x.shape[1], min(k, n), padded_size(k)
    if k < n:
        a = system_of_patches(x, z, k, n)
    else:
        a = np.zeros(((n + 3) // 4 * 4, wide + across), np.float32)
        multiply(x.ravel(), (NONE, wide, ONE), x, k, a, (NONE, len(a)), (NONE, wide), NO)
        for i in range(n):
            for g in range(k):
                a[i, wide + g] = x[g, i]
    trace, high = np.float32(0), len(a)
    for i in range(size):
        trace += a[i, i]
    # At least what float32 needs.
    added = max(np.float32(ridge), np.float32(2e-6) * trace, np.float32(1e-12))
    for i in range(high):
        a[i, i] += added
    eliminate(a, high, added)
    if k < n:
        return smoothed_patches(a, z, mean, k, added)
    whitened, flat = np.empty((high, wide), np.float32), a.ravel()
    multiply(flat, (wide, ONE, wide + across), z, k, whitened, (NONE, high), (NONE, wide), NO)
    estimates, rows = np.empty_like(z), (k + 3) // 4 * 4
    multiply(
        flat, (wide, wide + across, ONE), whitened, n, estimates, (NONE, rows), (NONE, wide), NO
    )
    for j in range(0, wide, 8):
        centre = load(mean, (j,))
        for g in range(k):
            store(estimates, (g, j), load(estimates, (g, j)) + centre)
    leverage = np.empty(across, np.float32)
    for g in range(0, across, 8):
        sums = fill(np.float32(0))
        for i in range(n):
            column = load(a, (i, wide + g))
            sums += column * column
        store(leverage, (g,), sums)
    return estimates, leverage[:k]


@compiled
def rbf_rows(
    z: Matrix, mean: Vector, k: int, n: int, variance: Scalar, most: Scalar, bandwidth: Scalar
) -> tuple[Matrix, int]:
    """Return pre-images of the projections of patches: `project_rows` at finite width.

    In double precision: what a wide kernel says of near patches is in its last digits.
    """
    x = z[:k, :n].astype(np.float64)
    gram = np.dot(x, x.T)
    square = np.diag(gram).copy()
    c = max(bandwidth * 2.0 * square.sum() / k, 1e-12)
    # The centred kernel (c / 2) exp(-d^2 / c). Centring removes what all entries share, so c / 2
    # is left out from the start.
    means = np.zeros(k)
    for i in range(k):
        for j in range(k):
            d = max(0.0, square[i] + square[j] - 2.0 * gram[i, j])
            gram[i, j] = 0.5 * c * np.expm1(-d / c)
            means[i] += gram[i, j] / k
    whole = means.sum() / k
    centred = np.zeros((k, padded_size(k)))
    for i in range(k):
        for j in range(k):
            centred[i, j] = gram[i, j] + whole - means[i] - means[j]
    # What the kernel makes of noise, as in `kpca_apps.denoise.group`.
    t = 2.0 * n * variance / c
    slope = np.exp(-t)
    floor = -0.5 * c * (np.expm1(-t) + t * slope)
    per_variance = EDGE_FACTOR * (np.sqrt(k) + np.sqrt(n)) ** 2
    trace = (np.trace(centred) - (k - 1) * floor) / slope
    values, axes = leading_eigenvectors(centred, k, slope * per_variance * variance + floor)
    values = (values - floor) / slope
    q, _ = _components(values, trace, (k, n), variance, most, per_variance)
    vectors = np.ascontiguousarray(axes[:q, :k])
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
    estimates = np.empty_like(z)
    for i in range(k):
        for j in range(n):
            estimates[i, j] = np.float32(points[i, j]) + mean[j]
    return estimates, q


@compiled
def _weigh(row: Vector, expansion: Vector, square: Vector, length: Scalar, c: Scalar) -> None:
    """Turn inner products of a point, of squared length given, with the others into weights."""
    k = len(row)
    nearest = np.inf
    for j in range(k):
        row[j] = max(0.0, length + square[j] - 2.0 * row[j])
        nearest = min(nearest, row[j])
    whole, size = 0.0, 0.0
    for j in range(k):
        row[j] = expansion[j] * np.exp((nearest - row[j]) / c)
        whole += row[j]
        size += abs(row[j])
    # The sum vanishes between points of weights with both signs: the linear ones stay.
    vanished = not abs(whole) > VANISHING * size
    for j in range(k):
        row[j] = expansion[j] if vanished else row[j] / whole


@compiled
def denoise_band(
    guide: Pages,
    points: NDArray[np.float32],
    planes: NDArray[np.float32],
    variance: NDArray[np.float32],
    tie: Pages,
    window: Pages,
    width: int,
    k: int,
    soft: bool,
    bandwidth: float | None,
    most: Scalar,
    page: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    origin: tuple[int, int],
    reached: tuple[int, int, int, int],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Denoise the groups of one band of references, which are shared by all planes.

    Patches are matched in `guide`, padded as in `find_group`, learned on `points` and denoised in
    `planes`, both (c, pages, h, w) and the same for truncation. `variance` is that of the noise in
    the planes, its mean over the patch at each position, (c, pages, h, w), or (c, 1, 1, 1) for the
    Tikhonov filter; `tie` (pages, h, w) the squared distance below which a candidate is the same
    patch as the reference there.
    `window` weighs the pixels of a patch, (pages, h, 8) with zeros from its width on; a group has
    k. The truncation is of the `bandwidth` of `kpca_apps.denoise.group.denoise_group`, None for an
    infinite one, and its edge follows the group up to `most` times the variance. `rows` and
    `columns` are the references' corners in the `page`, `origin` is where the planes begin in the
    whole image, `reached` says which page and row are the first that the band can reach, and how
    many. Weighted estimates, weights and weighted leverages are returned, (c, 3, pages, rows, w +
    8), the last columns to be left out; and of truncation (rows, columns) the residual variance of
    groups in the first plane over the variance given: about 1 where there is nothing but noise and
    the variance is right, more with detail.
    """
    shape = window.shape[0], window.shape[1], width
    n = shape[0] * shape[1] * shape[2]
    first, top, count, height = reached
    sums = np.zeros((len(planes), 3, count, height, planes.shape[3] + 8), np.float32)
    ratios = np.zeros((len(rows), len(columns)), np.float32)
    for i in range(len(rows)):
        for j in range(len(columns)):
            y, x = rows[i], columns[j]
            near = np.float32(0) if soft else tie[page, y, x]
            group = find_group(guide, (page, y, x), shape, origin, k, near)
            own = len(group)
            share = np.float32(1) / np.float32(own)
            for c in range(len(planes)):
                z, mean = gather_centred(planes[c], group, shape)
                if soft:
                    learned, _ = gather_centred(points[c], group, shape)
                    ridge = RIDGE * np.float32(n) * variance[c, 0, 0, 0]
                    estimates, leverage = linear_smooth(learned, z, mean, own, n, ridge)
                    leverage += share
                    weight = np.float32(1) / leverage
                else:
                    level = np.float32(0)
                    for place in group:
                        level += share * variance[c, place[0], place[1], place[2]]
                    if bandwidth is not None:  # A branch that is not compiled where it is.
                        estimates, q = rbf_rows(z, mean, own, n, level, most, bandwidth)
                    else:
                        estimates, q, residual = project_rows(z, mean, own, n, level, most)
                        if c == 0:
                            ratios[i, j] = residual / level
                    weight = np.full(own, np.float32(1) / np.float32(1 + q), np.float32)
                    leverage = np.full(own, np.float32(1 + q) * share, np.float32)
                spread(estimates, weight, leverage, group, window, width, first, top, sums[c])
    return sums, ratios
