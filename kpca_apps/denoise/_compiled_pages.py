"""`kpca_apps.denoise._compiled` for patches that span pages, in groups found in pages around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise._compiled import (
    LANES,
    RADIUS,
    RIDGE,
    _key,
    _uniform,
    linear_smooth,
    project_rows,
)
from kpca_apps.denoise._small_matrices import Matrix, Scalar, Vector
from kpca_apps.system.compiling import compiled

Places = NDArray[np.int32]
Volume = NDArray[np.float32]

# In the own page patches are looked for as far away as in a single image; in those around, so far
# from where the page before showed the one most like the reference.
NEAR = 5
PAGES = 3  # looked at on either side


@compiled
def find_group_in_pages(
    padded: Volume,
    page: int,
    y: int,
    x: int,
    shape: tuple[int, int, int],
    k: int,
    tie: Scalar,
) -> Places:
    """Return the corners (k, 3) of the k patches nearest to a reference at (page, y, x).

    As `find_group` does in a single image: pages have RADIUS columns of zeros before them and LANES
    behind. In the pages around, one after the other, the search follows what moves.
    """
    deep, height, width = shape
    side = 2 * NEAR + 1
    most = (2 * RADIUS + 1) ** 2 + 2 * PAGES * side * side
    distances, places = np.empty(most, np.float32), np.empty((most, 3), np.int32)
    row, total = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    lowest, rightmost = padded.shape[1] - height, padded.shape[2] - RADIUS - LANES - width
    reference = _key(y, x)
    n = 0
    for way in (0, -1, 1):
        centre_y, centre_x = y, x
        for step in range(1 if way == 0 else PAGES):
            other = page + way * (step + 1)
            if other < 0 or other + deep > len(padded):
                break
            reach = RADIUS if way == 0 else NEAR
            best, best_y, best_x = np.float32(np.inf), centre_y, centre_x
            left, right = max(0, centre_x - reach), min(rightmost, centre_x + reach)
            for other_y in range(max(0, centre_y - reach), min(lowest, centre_y + reach) + 1):
                for t in range(LANES):
                    total[t] = np.float32(0)
                for i in range(deep):
                    _page_distances(
                        padded[page + i], padded[other + i], y, x, other_y, centre_x,
                        height, width, row,
                    )  # fmt: skip
                    for t in range(LANES):
                        total[t] += row[t]
                for other_x in range(left, right + 1):
                    d = total[other_x - centre_x + RADIUS]
                    if np.isnan(d):
                        d = np.float32(np.inf)
                    if d < best:
                        best, best_y, best_x = d, other_y, other_x
                    if d < tie:
                        # By the distance of the pages, and so whatever page the piece begins at.
                        along = np.uint64(other - page + PAGES) << np.uint64(56)
                        u = _uniform(reference, along | _key(other_y, other_x))
                        d = tie * (np.float32(0.5) + np.float32(0.5) * u)
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
            group[found] = places[t]
            found += 1
            level -= equal
    return group


@compiled
def _page_distances(
    mine: Matrix, theirs: Matrix, y: int, x: int, other_y: int, other_x: int,
    height: int, width: int, out: Vector,
) -> None:  # fmt: skip
    """Squared distances of the patch at (y, x) of a page to LANES patches of another."""
    for t in range(LANES):
        out[t] = np.float32(0)
    for i in range(height):
        a, b = mine[y + i], theirs[other_y + i]
        for j in range(width):
            value = a[x + RADIUS + j]
            near = b[other_x + j : other_x + j + LANES]
            for t in range(LANES):
                p = near[t] - value
                out[t] += p * p


@compiled
def gather_from_pages(
    pages: Volume, group: Places, shape: tuple[int, int, int]
) -> tuple[Matrix, Vector]:
    """Return the patches of a group (k, n), less their mean, and the mean."""
    deep, height, width = shape
    k, n = len(group), deep * height * width
    patches, mean = np.empty((k, n), np.float32), np.zeros(n, np.float32)
    for g in range(k):
        at = 0
        for p in range(deep):
            page = pages[group[g, 0] + p]
            for i in range(height):
                row = page[group[g, 1] + i]
                for j in range(width):
                    patches[g, at] = row[group[g, 2] + j]
                    at += 1
        mean += patches[g]
    mean /= np.float32(k)
    patches -= mean
    return patches, mean


@compiled
def spread_over_pages(
    estimates: Matrix, mean: Vector, weight: Vector, leverage: Vector, group: Places,
    window: Volume, first: int, top: int, sums: NDArray[np.float32],
) -> None:  # fmt: skip
    """Do what `spread` does, in pages of which `first` is the first, and from row `top` on."""
    deep, height, width = window.shape
    for g in range(len(group)):
        at, w = 0, weight[g]
        dw = w * leverage[g]
        for p in range(deep):
            page = group[g, 0] + p - first
            for i in range(height):
                y, x = group[g, 1] + i - top, group[g, 2]
                total, weights = sums[0, page, y, x : x + width], sums[1, page, y, x : x + width]
                leverages, row = sums[2, page, y, x : x + width], window[p, i]
                for j in range(width):
                    total[j] += w * row[j] * (estimates[g, at] + mean[at])
                    weights[j] += w * row[j]
                    leverages[j] += dw * row[j]
                    at += 1


@compiled
def denoise_page_band(
    guide: Volume,
    points: NDArray[np.float32],
    planes: NDArray[np.float32],
    variance: NDArray[np.float32],
    tie: Volume,
    window: Volume,
    k: int,
    soft: bool,
    page: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    reached: tuple[int, int, int, int],
) -> NDArray[np.float32]:
    """Do what `denoise_band` does, for references at some rows of a page.

    Arrays have pages as a further dimension before height and width. `reached` are the first page
    and row that the groups can reach, and how many: sums are returned, (c, 3, pages, rows, w).
    """
    first, top, count, height = reached
    shape, n = window.shape, window.size
    sums = np.zeros((len(planes), 3, count, height, planes.shape[3]), np.float32)
    for y in rows:
        for x in columns:
            near = np.float32(0) if soft else tie[page, y, x]
            group = find_group_in_pages(guide, page, y, x, shape, k, near)
            share = np.float32(1) / np.float32(len(group))
            for c in range(len(planes)):
                z, mean = gather_from_pages(planes[c], group, shape)
                if soft:
                    learned, _ = gather_from_pages(points[c], group, shape)
                    ridge = RIDGE * np.float32(n) * variance[c, 0, 0, 0]
                    estimates, leverage = linear_smooth(learned, z, ridge)
                    leverage += share
                    weight = np.float32(1) / leverage
                else:
                    level = np.float32(0)
                    for place in group:
                        level += share * variance[c, place[0], place[1], place[2]]
                    estimates, q, _ = project_rows(z, level, np.float32(1))
                    weight = np.full(len(group), np.float32(1) / np.float32(1 + q), np.float32)
                    leverage = np.full(len(group), np.float32(1 + q) * share, np.float32)
                spread_over_pages(
                    estimates, mean, weight, leverage, group, window, first, top, sums[c]
                )
    return sums
