"""Run a pass over a piece of an image or stack: denoise groups, and average their estimates.

Bands of references are processed in any order but summed in image order, and a piece uses the same
references, bands and random draws as the whole image. So results are the same, bit for bit, for all
pieces and numbers of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kpca_apps.denoise.options import Window
from kpca_apps.denoise.passes.groups import (
    LANES,
    PAGES,
    RADIUS,
    find_groups,
    smooth_groups,
    truncate_groups,
)
from kpca_apps.denoise.passes.plan import Pass
from kpca_apps.denoise.progress import LISTENER
from kpca_apps.system.registers import WIDTH

Planes = NDArray[np.float32]
Rows = NDArray[np.int64]

MARGINS = ((0, 0), (0, 0), (RADIUS, LANES))  # zeros before and after pages, rows, columns


@dataclass(frozen=True)
class Piece:
    """Position of planes in an image."""

    window: Window  # part of the image that the planes cover
    whole: tuple[int, int]  # height and width of the image
    wanted: Window  # part of the image for which the estimate must be right

    def within(self, corners: Rows, axis: int, size: int) -> Rows:
        """Return the corners, relative to the piece, of reference patches needed for `wanted`."""
        (begin, end), (low, high) = self.window[axis], self.wanted[axis]
        inside = (corners >= begin) & (corners + size <= end)
        inside &= (corners + size + RADIUS > low) & (corners - RADIUS < high)
        return corners[inside] - begin


def run_pass(
    planes: Planes,
    guide: Planes,
    variance: Planes,
    settings: Pass,
    piece: Piece,
    *,
    pilot: Planes | None = None,
    guide_variance: Planes | None = None,
) -> tuple[Planes, Planes]:
    """Run one pass over a piece of an image; return the estimate and its leverage.

    `planes` (c, pages, h, w) are denoised in groups matched in `guide` (pages, h, w). `variance` is
    their noise variance (c, pages, h, w), and `guide_variance` (pages, h, w) that of the guide. A
    Tikhonov filter is used if there is a `pilot` (c, pages, h, w), a first estimate of the planes;
    `variance` is then one value a plane, (c, 1, 1, 1). The leverage is the variance of the
    estimate over that of the noise.
    """
    count, height = planes.shape[1:3]
    shape = deep, tall, wide = settings.shape((count, *piece.whole))
    window = patch_window(shape)
    tie = np.zeros((count, height, planes.shape[3]), np.float32)
    if guide_variance is not None:
        variance = patch_means(variance, shape)
        tie = patch_means(guide_variance, shape) * np.float32(settings.tie * 2 * deep * tall * wide)
    columns = piece.within(patch_grid(piece.whole[1], wide, settings.stride), 1, wide)
    # List bands (a few rows of reference patches), with the pages and rows that their groups reach.
    grid, bands = patch_grid(piece.whole[0], tall, settings.stride), []
    for page in patch_grid(count, deep, max(1, deep - 1)).tolist():
        first, end = max(0, page - PAGES), min(count, page + PAGES + deep)
        for start in range(0, len(grid), settings.band):
            rows = piece.within(grid[start : start + settings.band], 0, tall)
            if len(rows):
                top = max(0, int(rows[0]) - RADIUS)
                bottom = min(height, int(rows[-1]) + tall + RADIUS)
                bands.append((page, rows, (first, top, end - first, bottom - top)))
    padded = np.pad(guide, MARGINS)
    origin = piece.window[0][0], piece.window[1][0]

    # Truncate an image's two colour planes together. A mosaic's planes would lose .06 dB by that.
    alone = 1 if planes.shape[:2] == (3, 1) else len(planes)

    def denoise_band(page: int, rows: Rows, reached: tuple[int, int, int, int]) -> Planes:
        """Return a band's sums of estimates, weights and leverages, (3, c, pages, rows, w + 8)."""
        found = find_groups(padded, (page, rows, columns), shape, origin, settings.group, tie)
        first, top, *size = reached[0], reached[1], *reached[2:], planes.shape[3] + WIDTH
        sums = np.zeros((len(planes), 3, *size), np.float32)
        if pilot is not None:
            level = variance[:, 0, 0, 0]
            smooth_groups(planes, pilot, level, found, window, wide, (first, top), sums)
            return sums.swapaxes(0, 1)
        excess, ratios = np.float32(settings.excess), np.empty(len(found[1]), np.float32)
        last = wide, settings.bandwidth, excess, (first, top)
        truncate_groups(planes[:alone], variance, found, window, *last, sums[:alone], ratios)
        if alone < len(planes):
            colours, known = (maps[np.newaxis, 1:, 0] for maps in (planes, variance))
            both = np.zeros((1, 3, len(planes) - 1, *size[1:]), np.float32)
            wider = np.repeat(window, len(planes) - 1, axis=0)
            truncate_groups(colours, known, found, wider, *last, both, ratios)
            sums[1:, :, 0] = both[0].swapaxes(0, 1)
        return sums.swapaxes(0, 1)

    totals, weights, leverages = (np.zeros(planes.shape, np.float32) for _ in range(3))
    parallel = Parallel(n_jobs=settings.n_jobs, require="sharedmem", return_as="generator")
    parts = parallel(delayed(denoise_band)(*band) for band in bands)
    listener = LISTENER.get()
    for number, ((_, _, reached), part) in enumerate(zip(bands, parts, strict=True), 1):
        first, top, pages, high = reached
        for sums, its_own in zip((totals, weights, leverages), part, strict=True):
            sums[:, first : first + pages, top : top + high] += its_own[..., :-WIDTH]
        if listener is not None:
            listener(number / len(bands))
    # Pixels that no patch covers stay unchanged.
    bare = weights == 0
    weights[bare] = np.float32(1)
    totals /= weights
    leverages /= weights
    totals[bare] = planes[bare]
    leverages[bare] = np.float32(1)
    return totals, leverages


def residual_ratios(planes: Planes, variance: float, settings: Pass) -> tuple[Planes, float]:
    """Return the ratio of residual to noise variance of each group, and the mean leverage.

    There is a group for each reference (rows, columns) of the first plane of `planes` (c, 1, h, w),
    denoised with the linear kernel.
    """
    shape = _, tall, wide = settings.shape(planes.shape)
    *_, height, width = planes.shape
    columns = patch_grid(width, wide, settings.stride)
    window, tie = patch_window(shape), np.float32(settings.tie * 2 * tall * wide)

    def seen_in_row(y: int) -> tuple[Planes, Planes]:
        top = max(0, y - RADIUS)
        strip = planes[:1, :, top : y + tall + RADIUS, :]
        level = np.full(strip.shape, variance, np.float32)
        found = find_groups(
            np.pad(strip[0], MARGINS), (0, np.array([y - top]), columns), shape, (top, 0),
            settings.group, level[0] * tie,
        )  # fmt: skip
        sums = np.zeros((1, 3, 1, strip.shape[2], width + WIDTH), np.float32)
        ratios = np.empty((1, len(columns)), np.float32)
        truncate_groups(
            strip, level, found, window, wide, np.inf, np.float32(settings.excess), (0, 0),
            sums, ratios[0],
        )  # fmt: skip
        _, weights, leverages = sums[0]
        return ratios, leverages[weights > 0] / weights[weights > 0]

    rows = patch_grid(height, tall, settings.stride).tolist()
    parallel = Parallel(n_jobs=settings.n_jobs, require="sharedmem")
    ratios, leverages = zip(*parallel(delayed(seen_in_row)(y) for y in rows), strict=True)
    return np.concatenate(ratios), float(np.mean(np.concatenate(leverages)))


def patch_window(shape: tuple[int, int, int]) -> Planes:
    """Return the weights of a patch's pixels, with rows padded by zeros to a register."""
    deep, tall, wide = shape
    window = np.zeros((deep, tall, WIDTH), np.float32)
    window[:, :, :wide] = np.outer(np.kaiser(tall, 2.0), np.kaiser(wide, 2.0))
    return window


def patch_grid(length: int, size: int, stride: int) -> Rows:
    """Return the corners of patches along one side, always including the last position.

    >>> patch_grid(10, 4, 4)
    array([0, 4, 6])
    """
    corners = np.arange(0, length - size + 1, stride)
    if corners[-1] != length - size:
        corners = np.append(corners, length - size)
    return corners


def patch_means(maps: Planes, shape: tuple[int, int, int]) -> Planes:
    """Return means of maps (..., pages, h, w) over the patch at each position, by direct sums.

    >>> patch_means(np.array([[[0, 2, 4]]], np.float32), (1, 1, 2))
    array([[[1., 3.]]], dtype=float32)
    """
    deep, tall, wide = shape
    pages, down, across = (
        side - length + 1 for side, length in zip(maps.shape[-3:], shape, strict=True)
    )
    columns = maps[..., :down, :].copy()
    for i in range(1, tall):
        columns += maps[..., i : i + down, :]
    means = columns[..., :across].copy()
    for j in range(1, wide):
        means += columns[..., j : j + across]
    means /= np.float32(tall * wide)
    if deep == 1:
        return means
    total = sum(means[..., i : i + pages, :, :] for i in range(deep))
    return np.asarray(total / np.float32(deep), np.float32)
