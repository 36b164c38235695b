"""Planes larger than memory: tile by tile, from the coarsest scale to the finest.

What the passes make of a pixel depends on those around alone, so that tiles with a margin give the
pixels of `denoise_planes`, to the last bit. The smaller scales and their estimates lie in files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.options import Options, Window
from kpca_apps.denoise.passes.one_pass import Source
from kpca_apps.denoise.passes.plan import Plan, plan_for
from kpca_apps.denoise.passes.planes import (
    STRIP_SAMPLES,
    Planes,
    denoise_strip,
    excess_of,
    levels_of,
    plan_has_half,
    with_what_blurs,
)
from kpca_apps.denoise.passes.scales import average_low_frequencies, halve
from kpca_apps.denoise.progress import part
from kpca_apps.system.blas import one_blas_thread

ROWS = 768  # of a tile

Tile = tuple[Window, Planes | None]  # where it lies, and its planes (c, rows, columns), if any


class Room(Source, Protocol):
    """Planes that can be filled, too."""

    def __setitem__(self, window: Any, values: Planes) -> None:
        """Fill a window."""


def denoise_tiles(
    planes: Source,
    sigmas: NDArray[np.floating],
    options: Options,
    room: Callable[[tuple[int, ...]], Room],
    is_empty: Callable[[Window], bool] = lambda window: False,
) -> Iterator[Tile]:
    """Yield tiles of what `denoise_planes` makes of planes, row of tiles by row.

    `room` makes planes of a shape. A tile that `is_empty` comes without planes.
    """
    levels, untouched = levels_of(sigmas, options, planes.shape[0])
    scales: list[tuple[Source, Planes, Plan, Room | None]] = []
    excess = excess_of(planes, levels, options) if levels.any() else 1.0
    estimate: Room | None = None  # of the finest scale none is kept
    while levels.any():
        plan = plan_for(float(levels[0]), options, excess)
        scales.append((planes, levels, plan, estimate))
        if not plan_has_half(plan, planes.shape):
            break
        planes, levels = _halved(planes, room), np.float32(0.5) * levels
        estimate = room(planes.shape)  # now, for later the work before it would be lost
    if not scales:
        for window in windows(planes.shape):
            yield window, _part(planes, window)
        return
    counts = [sum(1 for _ in windows(planes.shape)) for planes, *_ in scales]
    done, coarser, finest = 0, None, scales[0][0]
    while scales:
        planes, levels, plan, estimate = scales.pop()
        for window in windows(planes.shape):
            (top, bottom), (left, right) = window
            times = 1 << len(scales)
            if is_empty(((times * top, times * bottom), (times * left, times * right))):
                if estimate is None:
                    done += 1
                    yield window, None
                    continue
                found = _part(planes, window)
            else:
                with part(done, sum(counts)):
                    found = _tile(planes, levels**2, plan, window, coarser, options.n_jobs)
            done += 1
            if estimate is None:
                found[untouched] = _part(finest, window)[untouched]
                yield window, found
            else:
                estimate[_places(window)] = found[:, np.newaxis]
        coarser = estimate


def windows(shape: tuple[int, ...], rows: int | None = None) -> Iterator[Window]:
    """Yield windows of tiles of planes, from left to right and from top to bottom.

    >>> list(windows((1, 1, 1000, 100)))
    [((0, 768), (0, 100)), ((768, 1000), (0, 100))]
    """
    channels, _, height, width = shape
    rows, columns = rows or ROWS, STRIP_SAMPLES // (ROWS * channels)
    for top in range(0, height, rows):
        for left in range(0, width, columns):
            yield (top, min(top + rows, height)), (left, min(left + columns, width))


def _places(window: Window) -> tuple[slice, ...]:
    return (slice(None), slice(None), *(slice(*side) for side in window))


def _part(planes: Source, window: Window) -> Planes:
    """Return a copy of a part of planes of one page."""
    return np.array(planes[_places(window)][:, 0])


def _halved(planes: Source, room: Callable[[tuple[int, ...]], Room]) -> Room:
    """Return planes at half the scale."""
    channels, _, height, width = planes.shape
    half = room((channels, 1, height // 2, width // 2))
    for window in windows(half.shape, ROWS // 2):  # of which each takes twice as many
        (top, bottom), (left, right) = window
        half[_places(window)] = halve(planes[:, :, 2 * top : 2 * bottom, 2 * left : 2 * right])
    return half


@one_blas_thread()
def _tile(
    planes: Source,
    variances: Planes,
    plan: Plan,
    window: Window,
    coarser: Source | None,
    n_jobs: int | None,
) -> Planes:
    """Denoise a tile, whose low frequencies are averaged with those of a coarser estimate."""
    if coarser is None:
        return denoise_strip(planes, variances, plan, window, [], n_jobs)[0][:, 0]
    (rows, tall), (columns, wide) = map(with_what_blurs, window, planes.shape[2:])
    around, halves = (tall, wide), (rows, columns)
    found = denoise_strip(planes, variances, plan, around, [], n_jobs)[0][:, 0]
    average_low_frequencies(found, coarser[_places(halves)][:, 0])
    inside = (
        slice(begin - first, end - first)
        for (begin, end), (first, _) in zip(window, around, strict=True)
    )
    return np.array(found[:, *inside])
