"""Pages that are one volume, or one film, denoised together.

As in `kpca_apps.denoise.passes`, with patches that span two pages, in groups that are sought in the
pages around, too, where the search follows what moves. Three passes: truncation X of Y, a Tikhonov
filter B of Y learned on X, and truncation in small patches of what is between the two and Y. Long
stacks are worked on a block of pages at a time, with pages around it that are cut off again.

References
----------
M. Maggioni, V. Katkovnik, K. Egiazarian, A. Foi (2013), "Nonlocal transform-domain filter for
volumetric data denoising and reconstruction", IEEE Trans. Image Processing 22 (BM4D: cubes).
K. Dabov, A. Foi, K. Egiazarian (2007), "Video denoising by sparse 3D transform-domain
collaborative filtering", EUSIPCO (V-BM3D: the search that follows).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kpca_apps.denoise._compiled import LANES, RADIUS
from kpca_apps.denoise._compiled_pages import PAGES, denoise_page_band
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes import (
    ADDED_BACK,
    FAINTEST,
    NEGLIGIBLE,
    SMOOTH_IN_PILOT,
    denoise_planes,
    patch_grid,
    patch_means,
)
from kpca_apps.denoise.progress import LISTENER
from kpca_apps.system.blas import one_blas_thread

Pages = NDArray[np.float32]

DEEP = 2  # pages a patch spans
BLOCK_SAMPLES = 6_000_000  # of a block of pages, those around it not counted: 500 MB
AROUND = 4  # pages on either side of a block that are worked on with it
FEWEST_PAGES = 4  # of a block
SMOOTH = np.float32(0.2)  # weight of the Tikhonov filter in the result
BAND_ROWS = 16  # rows of references worked on at once


@dataclass(frozen=True)
class StackPass:
    """How one pass groups patches; see `kpca_apps.denoise.passes.PassSettings`."""

    size: int
    group: int
    stride: int
    soft: bool = False


# Chosen at noise of 10, 25 and 50 on films cut from photographs of BSDS500/train and on volumes of
# random blobs and cells. Four pages gain up to .8 dB where nothing moves, .15 on the volumes, and
# lose .3 to .5 in films that move by some pixels a page; one page loses 1 to 2 dB.
PASSES = (StackPass(6, 48, 5), StackPass(7, 100, 5, soft=True), StackPass(5, 40, 3))
TIE = 1.1  # candidates nearer than so many times what noise explains are drawn at random


def page_blocks(count: int, samples: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield first and end of each block of pages, and of those worked on with it.

    A page has so many `samples`.

    >>> list(page_blocks(20, 1_000_000))
    [(0, 6, 0, 10), (6, 12, 2, 16), (12, 18, 8, 20), (18, 20, 14, 20)]
    """
    size = max(FEWEST_PAGES, BLOCK_SAMPLES // samples)
    size = count if count <= size + 2 * AROUND else size
    for first in range(0, count, size):
        end = min(first + size, count)
        yield first, end, max(0, first - AROUND), min(count, end + AROUND)


@one_blas_thread()
def denoise_pages(noisy: Pages, sigmas: NDArray[np.floating], options: Options) -> Pages:
    """Remove white Gaussian noise from planes (c, pages, h, w), matched in the first of them.

    As `kpca_apps.denoise.passes.denoise_planes` does it from single images.
    """
    factors = np.array([options.luma] + [options.chroma] * (len(noisy) - 1))
    levels = np.asarray(sigmas, np.float64) * factors
    levels[levels < NEGLIGIBLE] = 0.0
    cleaned = noisy.copy()
    if not levels.any():
        return cleaned
    known = np.maximum(levels, FAINTEST * levels.max()).astype(np.float32)
    blocks = list(page_blocks(noisy.shape[1], noisy[:, 0].size))
    for number, (first, end, begin, stop) in enumerate(blocks):
        block = np.ascontiguousarray(noisy[:, begin:stop])
        found = _denoise_block(block, known, options.n_jobs, (number, len(blocks)))
        cleaned[:, first:end] = found[:, first - begin : end - begin]
    cleaned[levels == 0] = noisy[levels == 0]
    return cleaned


def _denoise_block(
    noisy: Pages, sigmas: NDArray[np.float32], n_jobs: int | None, work: tuple[int, int]
) -> Pages:
    """Run the passes over a block of pages, the number of which of how many is `work`."""
    s2, one = np.square(sigmas)[:, None, None, None], np.float32(1)
    pilot, leverage, t = noisy, np.ones_like(noisy), one
    smooth, left_over, share = noisy, leverage, np.float32(0)
    for number, settings in enumerate(PASSES):
        done = ((work[0] * len(PASSES) + number), work[1] * len(PASSES))
        if settings.soft:
            smooth, left_over = _run_pass(
                noisy, pilot[0], s2, settings, done, pilot=pilot, n_jobs=n_jobs
            )
            share = SMOOTH_IN_PILOT
            continue
        mixed = share * smooth + (one - share) * pilot
        leverage = share * left_over + (one - share) * leverage
        added = mixed + t * (noisy - mixed)
        variance = s2 * (t * t + (one - t * t) * leverage)
        pilot, leverage = _run_pass(
            added, mixed[0], variance, settings, done, left=s2[0] * leverage[0], n_jobs=n_jobs
        )
        t = ADDED_BACK
    return np.asarray(SMOOTH * smooth + (one - SMOOTH) * pilot)


def _run_pass(
    planes: Pages,
    guide: Pages,
    variance: Pages,
    settings: StackPass,
    work: tuple[int, int],
    *,
    pilot: Pages | None = None,
    left: Pages | None = None,
    n_jobs: int | None = None,
) -> tuple[Pages, Pages]:
    """Run one pass over a block; as `kpca_apps.denoise.passes.run_pass` does over an image."""
    count, height, width = planes.shape[1:]
    shape = deep, tall, wide = (
        min(DEEP, count),
        min(settings.size, height),
        min(settings.size, width),
    )
    window = np.broadcast_to(np.outer(np.kaiser(tall, 2.0), np.kaiser(wide, 2.0)), shape)
    tie = np.zeros((1, 1, 1), np.float32)
    if left is not None:
        variance = _means(variance, shape)
        tie = _means(left, shape) * np.float32(TIE * 2 * window.size)
    columns, grid = (
        patch_grid(width, wide, settings.stride),
        patch_grid(height, tall, settings.stride),
    )
    bands = []
    for page in patch_grid(count, deep, max(1, deep - 1)):
        first, end = max(0, page - PAGES), min(count, page + PAGES + deep)
        for start in range(0, len(grid), BAND_ROWS):
            rows = grid[start : start + BAND_ROWS]
            top, bottom = max(0, rows[0] - RADIUS), min(height, rows[-1] + tall + RADIUS)
            bands.append((page, rows, (int(first), int(top), int(end - first), int(bottom - top))))
    padded = np.pad(guide, ((0, 0), (0, 0), (RADIUS, LANES)))
    points = planes if pilot is None else pilot
    parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
    parts = parallel(
        delayed(denoise_page_band)(
            padded, points, planes, variance, tie, window.astype(np.float32), settings.group,
            pilot is not None, page, rows, columns, reached,
        )
        for page, rows, reached in bands
    )  # fmt: skip
    sums = np.zeros((len(planes), 3, count, height, width), np.float32)
    listener = LISTENER.get()
    for number, ((_, _, (first, top, pages, high)), part) in enumerate(
        zip(bands, parts, strict=True), 1
    ):
        sums[:, :, first : first + pages, top : top + high] += part
        if listener is not None:
            listener((work[0] + number / len(bands)) / work[1])
    totals, weights, leverages = sums[:, 0], sums[:, 1], sums[:, 2]
    # Pixels no patch covers stay as they are.
    bare = weights == 0
    weights[bare] = np.float32(1)
    totals /= weights
    leverages /= weights
    totals[bare] = planes[bare]
    leverages[bare] = np.float32(1)
    return totals, leverages


def _means(maps: Pages, shape: tuple[int, int, int]) -> Pages:
    """Return the means of maps (..., pages, h, w) over the patch at each position."""
    deep = shape[0]
    means = patch_means(maps, shape[1:])
    pages = means.shape[-3] - deep + 1
    total = sum(means[..., i : i + pages, :, :] for i in range(deep))
    return np.asarray(total / np.float32(deep), np.float32)


def denoise_planes_or_pages(
    planes: Pages, deviations: NDArray[np.float64], options: Options
) -> Pages:
    """Denoise the planes of one image, or of a stack, whose pages lie one below the other."""
    if options.pages == 1:
        return denoise_planes(planes, deviations, options)
    channels, rows, width = planes.shape
    stack = planes.reshape(channels, options.pages, rows // options.pages, width)
    return denoise_pages(stack, deviations, options).reshape(planes.shape)
