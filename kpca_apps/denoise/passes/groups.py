"""Find groups of similar patches, denoise each, and add up the estimates, in compiled code.

A group is the nearest neighbours of a reference patch. Patches whose squared distance is below what
noise alone explains are ties, broken at random: the nearest of them would share the reference's
noise, and their mean would keep that noise. A hash of coordinates draws the patches, so that every
run and every tiling gives the same groups.

Planes have an axis of pages, of length 1 for a single image. Patches span some pages, and groups
are also sought in the pages around, where the search follows motion.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.groups.compiled import linear_smooth, truncate_rows
from kpca_apps.engine.linalg.small_matrices import NONE, Matrix, Scalar, Vector, padded_size
from kpca_apps.system.compiling import compiled, inlined
from kpca_apps.system.registers import each, fill, load, store, total, where_above

Places = NDArray[np.int32]  # (k, 3), page, row and column of the corner of each patch
Pages = NDArray[np.float32]  # (pages, h, w)
# Corners (groups * k, 3) of patches, with room for k in each group; number of patches per group.
Groups = tuple[Places, NDArray[np.int64]]
Shape = tuple[int, int, int]  # pages, height and width of a patch


class Room(NamedTuple):
    """Arrays that a search for patches reuses."""

    rows: Matrix  # distances of candidate patches: each matrix row belongs to one row of a page
    distances: Vector  # `rows` as a flat array
    bits: NDArray[np.int32]  # the bits of `distances`, as integers
    begins: Places  # for each row of `rows`: page, row on that page, and first column
    near: NDArray[np.int32]  # indices of the smallest of `distances`
    few: Vector  # distances at `near`
    one: Vector  # one number: the threshold of a bisection among distances
    one_bits: NDArray[np.int32]  # the bits of `one`


RADIUS = 18  # maximum number of rows and columns between a patch and its reference
LANES = 40  # number of columns compared at once: 2 RADIUS + 1, rounded up to registers
# Up to PAGES pages on either side are searched one after the other, each page within NEAR pixels of
# the most similar patch that was found on the previous page.
NEAR, PAGES = 5, 3

# The largest finite distance, and its bits; NaN distances count as this distance.
LARGEST, FINITE_BITS = np.finfo(np.float32).max, 0x7F7FFFFF


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
    """Write squared distances of the reference to patches in two rows of page `other`.

    Each row has LANES distances, from RADIUS columns before x on.
    """
    # Use registers of 32 and 8 lanes, as numbers of lanes must be powers of two.
    most, rest = fill(np.float32(0), 32), fill(np.float32(0))
    most_below, rest_below = most, rest
    page, own_y, own_x = reference
    for p in range(shape[0]):
        for i in range(shape[1]):
            first, second = rows[0] + i, rows[1] + i
            for j in range(shape[2]):
                place, left = (page + p, own_y + i, own_x + RADIUS + j), x + j
                own, own_rest = each(padded, place, 32), each(padded, place)
                d = load(padded, (other + p, first, left), 32) - own
                most += d * d
                e = load(padded, (other + p, first, left + 32)) - own_rest
                rest += e * e
                d = load(padded, (other + p, second, left), 32) - own
                most_below += d * d
                e = load(padded, (other + p, second, left + 32)) - own_rest
                rest_below += e * e
    store(out, (at, 0), most)
    store(out, (at, 32), rest)
    store(out, (at + 1, 0), most_below)
    store(out, (at + 1, 32), rest_below)


@inlined
def _mixed(a: int, b: int, c: int) -> np.uint32:
    """Hash three integers into 32 bits."""
    z = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b)
    z ^= z >> np.uint64(31)
    z = z * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(c)
    z ^= z >> np.uint64(29)
    z *= np.uint64(0x94D049BB133111EB)
    return np.uint32(z >> np.uint64(32))


@inlined
def _draw_ties(row: Vector, seed: np.uint32, x: int, valid: tuple[int, int], tie: Scalar) -> None:
    """Replace distances below `tie` by pseudorandom numbers from tie / 2 to tie.

    Each number follows from `seed` and its column; the first column is x. Distances become infinite
    outside `valid`, and finite inside.
    """
    tie = np.float32(tie)
    for t in range(LANES):
        # Use products of 32 bits, which fit into vector lanes.
        z = np.uint32(seed + np.uint32(np.uint32(x + t) * np.uint32(0x9E3779B1)))
        z = np.uint32((z ^ (z >> np.uint32(16))) * np.uint32(0x7FEB352D))
        z = np.uint32((z ^ (z >> np.uint32(15))) * np.uint32(0x846CA68B))
        z = np.uint32(z >> np.uint32(8))
        drawn = tie * (np.float32(0.5) + np.float32(0.5 * 2.0**-24) * np.float32(np.int32(z)))
        d = row[t]
        d = d if d < LARGEST else LARGEST
        d = drawn if d < tie else d
        row[t] = d if valid[0] <= x + t <= valid[1] else np.float32(np.inf)


@inlined
def _count_up_to(distances: Vector, n: int, level: Scalar) -> int:
    """Count how many of the first n numbers are at most `level`; n is a multiple of 8."""
    most, one = fill(np.float32(level)), fill(np.float32(1))
    count = fill(np.float32(0))
    for t in range(0, n, 8):
        count = where_above(load(distances, (t,)), most, count, count + one)
    return int(total(count))


@compiled
def _nearest(room: Room, n: int, k: int) -> int:
    """Write the indices of the k smallest of n distances to `room.near`; return their number.

    Of equal distances the first are taken; n is a multiple of 8.
    """
    # Non-negative floats, and -1, are ordered like their bits read as integers. So bisect bits,
    # first among all distances until few candidates remain, then among these candidates.
    as_float, as_bits, values, near = room.one, room.one_bits, room.distances, room.near
    low, high, count, size, few = NONE, np.int64(FINITE_BITS), n, n, NONE
    for enough in (2 * k + 16, 0):
        while count > enough and low < high:
            as_bits[0] = (low + high) // 2
            here = _count_up_to(values, size, as_float[0])
            if here >= k:
                high, count = np.int64(as_bits[0]), here
            else:
                low = np.int64(as_bits[0]) + 1
        if enough:
            for t in range(n):
                near[few] = t
                few += room.bits[t] <= high
            values, size = room.few, (few + 7) // 8 * 8
            for t in range(size):
                values[t] = room.distances[near[t]] if t < few else np.float32(np.inf)
    as_bits[0] = high
    last, equal = as_float[0], k
    for t in range(few):
        equal -= values[t] < last
    found: int = NONE
    for t in range(few):
        same = values[t] == last
        if values[t] < last or (same and equal > 0):
            near[found] = near[t]
            found += 1
            equal -= same
    return found


@inlined
def _find_group(
    padded: Pages,
    reference: tuple[int, int, int],
    shape: Shape,
    origin: tuple[int, int],
    tie: Scalar,
    group: Places,
    room: Room,
) -> int:
    """Write the corners of the patches nearest to one reference; return how many there are."""
    page, y, x = reference
    distances, begins = room.rows, room.begins
    lowest, rightmost = padded.shape[1] - shape[1], padded.shape[2] - RADIUS - LANES - shape[2]
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
                # Seed the draw with the difference of page numbers, not with the numbers
                # themselves, so that results do not depend on the page at which a piece begins.
                seed = _mixed(
                    origin[0] + y,
                    origin[1] + x,
                    (other - page + PAGES) * 2**32 + origin[0] + other_y,
                )
                valid = origin[1] + left, origin[1] + right
                _draw_ties(distances[r], seed, origin[1] + edge, valid, tie)
            if way == 0:
                distances[y - first, RADIUS] = np.float32(-1)
    found = _nearest(room, n * LANES, min(len(group), candidates))
    for g in range(found):
        r, t = room.near[g] // LANES, room.near[g] % LANES
        group[g, 0], group[g, 1], group[g, 2] = begins[r, 0], begins[r, 1], begins[r, 2] + t
    return found


@compiled
def fill_groups(
    padded: Pages,
    page: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    shape: Shape,
    origin: tuple[int, int],
    tie: Pages,
    groups: Groups,
    room: Room,
) -> None:
    """Write the patches nearest to each reference of a page, as `find_groups` returns them."""
    places, counts = groups
    k = len(places) // len(counts)
    for at in range(len(counts)):
        y, x = rows[at // len(columns)], columns[at % len(columns)]
        group, near = places[at * k : (at + 1) * k], tie[page, y, x]
        counts[at] = _find_group(padded, (page, y, x), shape, origin, near, group, room)


def find_groups(
    padded: Pages,
    references: tuple[int, NDArray[np.int64], NDArray[np.int64]],
    shape: Shape,
    origin: tuple[int, int],
    k: int,
    tie: Pages,
) -> Groups:
    """Return the corners of the k patches nearest to each reference of a page.

    `references` are a page, and rows and columns of corners in a guide with RADIUS columns of zeros
    before it and LANES behind. Each reference is in its own group, whose patches are in reading
    order; an image may hold fewer than k. Squared distances below `tie` (pages, h, w) at the
    reference are drawn at random from the upper half of that range, by coordinates in the whole
    image, where the guide begins at `origin`.
    """
    n = len(references[1]) * len(references[2])
    groups = np.empty((n * k, 3), np.int32), np.empty(n, np.int64)
    fill_groups(padded, *references, shape, origin, tie, groups, _room(len(padded)))
    return groups


def _room(n_pages: int) -> Room:
    most = 2 * RADIUS + 1
    if n_pages > 1:
        most += 2 * PAGES * (2 * NEAR + 1)
    # Add a row, as two rows are compared at once.
    rows, one = np.empty((most + 1, LANES), np.float32), np.empty(1, np.float32)
    distances = rows.ravel()
    return Room(
        rows, distances, distances.view(np.int32), np.empty((most, 3), np.int32),
        np.empty(rows.size + 1, np.int32), np.empty(rows.size, np.float32),
        one, one.view(np.int32),
    )  # fmt: skip


@compiled
def gather_centred(
    pages: Pages, group: Places, shape: Shape, patches: Matrix, mean: Vector
) -> None:
    """Write the mean of the patches of a group, and the patches without their mean.

    The number of rows of `patches` is a multiple of four, plus one; it has `padded_size` columns.
    Unused rows and columns become 0.
    """
    deep, height, width = shape
    k, n, wide = len(group), deep * height * width, patches.shape[1]
    zero, size = fill(np.float32(0)), len(patches) * wide
    for g in range(k):
        y, x, at = group[g, 1], group[g, 2], g * wide
        # Copying a register also writes pixels right of the patch, which the next row overwrites.
        inside = x + 8 <= pages.shape[2]
        for p in range(deep):
            page = group[g, 0] + p
            for i in range(y, y + height):
                if inside:
                    store(patches, (NONE, at), load(pages, (page, i, x)))
                else:
                    for j in range(width):
                        patches[g, at - g * wide + j] = pages[page, i, x + j]
                at += width
        for at in range(g * wide + n, (g + 1) * wide, 8):
            store(patches, (NONE, at), zero)
    for at in range(k * wide, size, 8):
        store(patches, (NONE, at), zero)
    share = fill(np.float32(1) / np.float32(k))
    for j in range(0, wide, 8):
        sums = zero
        for g in range(k):
            sums += load(patches, (g, j))
        sums *= share
        store(mean, (j,), sums)
        for g in range(k):
            store(patches, (g, j), load(patches, (g, j)) - sums)


@compiled
def spread(
    estimates: Matrix,
    weight: Vector,
    leverage: Vector,
    group: Places,
    window: Pages,
    width: int,
    start: tuple[int, int],
    sums: NDArray[np.float32],
) -> None:
    """Add the estimates of a group to the sums of the pixels that the group covers.

    `sums` holds weighted estimates, weights and weighted leverages, from a page and row `start` on,
    in eight more columns than the page. Pixels have the weight of their patch times that of the
    `window`, whose rows are padded with zeros to a register. The leverage of a patch is the
    variance of its estimate over that of the noise.
    """
    deep, height = window.shape[:2]
    zero = fill(np.float32(0))
    for g in range(len(group)):
        x, at = group[g, 2], g * estimates.shape[1]
        w, dw = fill(weight[g]), fill(weight[g] * leverage[g])
        for p in range(deep):
            page = group[g, 0] + p - start[0]
            for i in range(height):
                y, row = group[g, 1] + i - start[1], load(window, (p, i, 0))
                values = where_above(row, zero, load(estimates, (NONE, at)), zero)
                store(sums, (0, page, y, x), load(sums, (0, page, y, x)) + w * row * values)
                store(sums, (1, page, y, x), load(sums, (1, page, y, x)) + w * row)
                store(sums, (2, page, y, x), load(sums, (2, page, y, x)) + dw * row)
                at += width


@compiled
def truncate_groups(
    planes: NDArray[np.float32],
    variance: NDArray[np.float32],
    found: Groups,
    window: Pages,
    width: int,
    bandwidth: float,
    most: Scalar,
    start: tuple[int, int],
    sums: NDArray[np.float32],
    ratios: Vector,
) -> None:
    """Denoise groups of all planes by dropping components, and add up the estimates.

    `variance` (c, pages, h, w) is the mean noise variance over the patch at each position. `window`
    (pages, h, 8) holds the weights of a patch's pixels, with zeros from its width on. `bandwidth`
    is c / (2 N v), as in `kpca_apps.engine.groups.operator`; truncation adapts to a group's noise
    up to `most` times the variance. `sums` holds the sums of `spread` for each plane, from the page
    and row `start` on. `ratios` receives the residual variance of each group in the first plane
    over the given variance: about 1 for noise alone of the given variance, larger with detail.
    """
    places, counts = found
    shape = window.shape[0], window.shape[1], width
    n, room = shape[0] * shape[1] * shape[2], len(places) // len(counts)
    z = np.empty(((room + 3) // 4 * 4 + 1, padded_size(n)), planes.dtype)
    mean = np.empty(padded_size(n), planes.dtype)
    weight, leverage = np.empty(room, planes.dtype), np.empty(room, planes.dtype)
    for at in range(len(counts)):
        k = counts[at]
        group, share = places[at * room : at * room + k], np.float32(1) / np.float32(k)
        for c in range(len(planes)):
            gather_centred(planes[c], group, shape, z, mean)
            level = np.float32(0)
            for g in range(k):
                level += share * variance[c, group[g, 0], group[g, 1], group[g, 2]]
            estimates, q, residual = truncate_rows(z, mean, k, n, level, most, bandwidth)
            if c == 0:
                ratios[at] = residual / level
            for g in range(k):
                weight[g] = np.float32(1) / np.float32(1 + q)
                leverage[g] = np.float32(1 + q) * share
            spread(estimates, weight, leverage, group, window, width, start, sums[c])


@compiled
def smooth_groups(
    planes: NDArray[np.float32],
    points: NDArray[np.float32],
    variance: NDArray[np.float32],
    found: Groups,
    window: Pages,
    width: int,
    start: tuple[int, int],
    sums: NDArray[np.float32],
) -> None:
    """Denoise groups by the Tikhonov filter learned on `points`, and add up the estimates.

    `variance` (c,) is the noise variance; the other arguments are those of `truncate_groups`.
    """
    places, counts = found
    shape = window.shape[0], window.shape[1], width
    n, room = shape[0] * shape[1] * shape[2], len(places) // len(counts)
    size = (room + 3) // 4 * 4 + 1, padded_size(n)
    x, z = np.empty(size, planes.dtype), np.empty(size, planes.dtype)
    mean = np.empty(size[1], planes.dtype)
    weight = np.empty(room, planes.dtype)
    for at in range(len(counts)):
        k = counts[at]
        group = places[at * room : at * room + k]
        for c in range(len(planes)):
            for is_noisy in (False, True):
                # Gather the noisy patches last, since `mean` is then their mean.
                pages, patches = (planes[c], z) if is_noisy else (points[c], x)
                gather_centred(pages, group, shape, patches, mean)
            estimates, leverage = linear_smooth(x, z, mean, k, n, variance[c])
            for g in range(k):
                weight[g] = np.float32(1) / leverage[g]
            spread(estimates, weight, leverage, group, window, width, start, sums[c])
