"""Denoise a page larger than memory in pieces, one row of pieces at a time.

The noise is measured once, in a few squares spread over the page, and stripes once, in rows and
columns spread over it. Each piece is denoised as a separate image with a margin that is cut off.
The positions of pieces do not depend on the file's tiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.batch.denoisers import Denoiser, GroupDenoiser
from kpca_apps.denoise.defects import ENOUGH, dead_rows, row_offsets
from kpca_apps.denoise.estimate.info import Defects, DenoiseInfo
from kpca_apps.denoise.image import as_stored, colours_of, value_range
from kpca_apps.denoise.masks import Mask, mirrored, numbers_in
from kpca_apps.denoise.noise.choose import GOLDEN, MEASURED_PAGES
from kpca_apps.denoise.noise.impulse import fill_from_neighbours
from kpca_apps.denoise.options import Window
from kpca_apps.denoise.progress import part
from kpca_apps.denoise.regions import AROUND, window_around
from kpca_apps.errors import InputError
from kpca_apps.images.large import Bands, rows_of_band
from kpca_apps.images.pyramids import smaller_copy, times_smaller
from kpca_apps.images.tiff import TILE_HEIGHT
from kpca_apps.images.types import ImageFile, Page
from kpca_apps.system.files.windowed import blocks, spilled

SQUARE = 1024  # side in pixels of the squares in which noise is measured
MOST_PLACES = 128  # maximum number of squares read if the first squares have no data
ROWS, COLUMNS = 840, 2520  # numbers of rows and columns of a piece
SCANNED_ROWS = 256  # number of rows read at a time when the whole page is scanned
MOST_READ = 1 << 24  # maximum number of pixels of the columns, or rows, in which stripes are sought


def denoised_in_bands(
    image: ImageFile, number: int, denoise: Denoiser, folder: Path
) -> tuple[Bands, DenoiseInfo]:
    """Return a large page as denoised bands, and its noise.

    Files in `folder` hold the smaller copies: first copies nested in the page, then other pages.
    """
    page = image.pages[number]
    if image.window is None:
        raise InputError(
            f"has {page.width} x {page.height} pixels, which can be read in bands "
            "only from TIFF (not CMYK) and OME-Zarr; cut it into smaller images."
        )
    groups = denoise.of_large_page()
    large = _LargePage(image, number)
    if page.dtype.kind == "f" and groups.data_range is None:
        # Sampled parts may miss the extremes of floats.
        groups = replace(groups, data_range=value_range(np.array(large.ends))[0])
    squares, data, stripes = _squares(large)
    known, info = replace(groups, stripes=stripes).knowing(squares, data)
    if info.established and any(info.channel_sigma):
        info = replace(info, defects=large.defects)
    # Smaller copies, each with the number of rows of its bands, by the height of its tiles.
    own = image.within[number] if image.within else ()
    within = [(one, rows_of_band(tags.integer(TILE_HEIGHT, 1))) for one, tags in own]
    others = [one for one, whole in image.copies.items() if whole == number]
    beside = [(image.pages[one], rows_of_band(image.blocks[one][0])) for one in others]
    sizes = [one for one, _ in (*within, *beside)]
    waiting = [spilled(one.shape, one.dtype, label=image.label, folder=folder) for one in sizes]
    copies = tuple(
        Bands(one.shape, one.dtype, n, map(held.__getitem__, blocks(len(held), n)))
        for held, (one, n) in zip(waiting, (*within, *beside), strict=True)
    )
    rows = rows_of_band(image.blocks[number][0])
    strips = _pieces(large, known) if info.established else large.all_rows()
    filled = _filling(_bands(strips, rows), waiting, sizes, page)
    return Bands(page.shape, page.dtype, rows, filled, copies), info


class _LargePage:
    """Windows of a large page, read in its stored type."""

    def __init__(self, image: ImageFile, number: int) -> None:
        assert image.window is not None
        self.page = image.pages[number]
        self._read = partial(image.window, number)
        # Alpha does not mark data if the page is fully transparent.
        self._has_mask = self.page.alpha and any(rows[..., -1].any() for rows in self.all_rows())
        # Seek stripes in every `wide`-th column and every `tall`-th row.
        sides = (self.page.width, self.page.height), (self.page.height, self.page.width)
        wide, tall = (-(-a // max(1, min(ENOUGH, MOST_READ // b))) for a, b in sides)
        columns, rows, self.ends = [], [], list[float]()
        for top, seen in enumerate(self.all_rows()):
            columns.append(seen[:, ::wide].copy())
            rows.append(seen[-top * SCANNED_ROWS % tall :: tall].swapaxes(0, 1).copy())
            some = colours_of(seen)[self.data_of(seen)]
            self.ends += [some.min(), some.max()] if some.size else []
        self._offsets = self._of(np.concatenate(columns)), self._of(np.concatenate(rows, axis=1))
        down, across = (int(np.count_nonzero(one, axis=1).max()) for one in self._offsets)
        self.defects = Defects(column_offsets=across, row_offsets=down)

    def _of(self, lines: NDArray[Any]) -> NDArray[np.float32]:
        """Return the offset of each line (c, n) of the page, of which some pixels are given."""
        data, offsets = self.data_of(lines), []
        for channel in np.moveaxis(np.atleast_3d(colours_of(lines)), 2, 0):
            filled = np.nan_to_num(mirrored(channel, data))
            plane = np.subtract(filled, filled.min(), dtype=np.float64).astype(np.float32)
            dead = np.repeat(dead_rows(plane, float(filled.dtype.kind in "ui")), plane.shape[1])
            offsets.append(row_offsets(fill_from_neighbours(plane, dead)))
        return np.stack(offsets)

    def stripes(self, window: Window) -> NDArray[np.float32]:
        """Return the sum of the offsets of row and column at each pixel of a window (c, h, w)."""
        rows, columns = (slice(*side) for side in window)
        return self._offsets[0][:, rows, np.newaxis] + self._offsets[1][:, np.newaxis, columns]

    def window(self, window: Window) -> NDArray[Any]:
        return self._read(*(slice(*side) for side in window))

    def all_rows(self) -> Iterator[NDArray[Any]]:
        """Yield all rows of the page, a few at a time."""
        for top in range(0, self.page.height, SCANNED_ROWS):
            yield self._read(slice(top, top + SCANNED_ROWS), slice(None))

    def data_of(self, pixels: NDArray[Any]) -> Mask:
        """Return where a piece of the page has data."""
        colours, seen = colours_of(pixels), pixels[..., -1] != 0 if self._has_mask else None
        data = numbers_in(colours, seen, colours.ndim == 3)
        if np.isinf(colours[data]).any():
            raise InputError(
                "holds infinite values; replace them first, with NaN where there are no data"
            )
        return data


def _squares(large: _LargePage) -> tuple[NDArray[Any], Mask, NDArray[np.float32]]:
    """Return squares spread over a page, (n, h, w) or (n, h, w, 3), their masks and stripes."""
    page = large.page
    height, width = min(SQUARE, page.height), min(SQUARE, page.width)
    for places in (MEASURED_PAGES, MOST_PLACES):
        found = []
        for place in range(places):
            top = round((page.height - height) * (place + 0.5) / places)
            left = round((page.width - width) * (place * GOLDEN % 1))
            window = (top, top + height), (left, left + width)
            square = large.window(window)
            data = large.data_of(square)
            if data.any():
                found.append((colours_of(square).copy(), data, large.stripes(window)))
            if len(found) == MEASURED_PAGES:
                break
        if found:
            squares, masks, stripes = zip(*found, strict=True)
            return np.stack(squares), np.stack(masks), np.concatenate(stripes, axis=1)
    raise InputError(
        f"no data were found in {MOST_PLACES} squares of it, which are transparent "
        "or not a number; cut out the part that has data"
    )


def _cuts(length: int, step: int) -> list[tuple[int, int]]:
    """Return (begin, end) of pieces of a side, which is cut at n * step + AROUND, n = 1, 2, ...

    >>> _cuts(2000, 840)
    [(0, 936), (936, 1776), (1776, 2000)]
    """
    begins = [0, *range(step + AROUND, length, step)]
    return list(zip(begins, [*begins[1:], length], strict=True))


def _pieces(large: _LargePage, known: GroupDenoiser) -> Iterator[NDArray[Any]]:
    """Denoise a page piece by piece, each as a separate image; yield each row of pieces."""
    page, rows = large.page, _cuts(large.page.height, ROWS)
    size = page.height, page.width
    for n, (top, bottom) in enumerate(rows):
        _, ((above, below), _) = window_around(((top, bottom), (0, 1)), size)
        strip = np.empty((bottom - top, *page.shape[1:]), page.dtype)
        for left, right in _cuts(page.width, COLUMNS):
            around, (_, inside) = window_around(((top, bottom), (left, right)), size)
            piece = large.window(around)
            target, data = strip[:, left:right], large.data_of(piece)
            target[...] = piece[above:below, slice(*inside)]
            if not data.any():
                continue
            with part(n, len(rows)):
                own = replace(known, stripes=large.stripes(around))
                cleaned = own.clean(np.ascontiguousarray(colours_of(piece)), mask=data)
            found = as_stored(cleaned.at(known.options.strength), page.dtype)
            colours = target if page.channels < 2 else target[..., : page.channels - page.alpha]
            colours[...] = found[above:below, slice(*inside)].reshape(colours.shape)
        yield strip


def _bands(strips: Iterator[NDArray[Any]], rows: int) -> Iterator[NDArray[Any]]:
    """Yield strips of any height as bands of `rows` rows; the last band may be smaller.

    The content of a band may change when the next band is requested.
    """
    waiting: list[NDArray[Any]] = []  # rows of an incomplete band
    for strip in strips:
        taken = 0
        while taken < len(strip):
            some = strip[taken : taken + rows - sum(map(len, waiting))]
            waiting.append(some)
            taken += len(some)
            if sum(map(len, waiting)) == rows:
                yield some if len(waiting) == 1 else np.concatenate(waiting)
                waiting.clear()
        waiting = [one.copy() for one in waiting]
    if waiting:
        yield np.concatenate(waiting)


def _filling(
    bands: Iterator[NDArray[Any]], copies: Sequence[Any], sizes: Sequence[Page], page: Page
) -> Iterator[NDArray[Any]]:
    """Yield bands, and fill the smaller copies from the bands yielded."""
    taken, done = 0, [0] * len(copies)  # numbers of rows done, of the page and of each copy
    rest: list[NDArray[Any] | None] = [None] * len(copies)  # rows of the page not yet copied
    for band in bands:
        yield band
        taken += len(band)
        for k, (copy, one) in enumerate(zip(copies, sizes, strict=True)):
            times, first, before = times_smaller(one, page), done[k], rest[k]
            last = one.height if taken == page.height else min(one.height, taken // times)
            rows = band if before is None or not len(before) else np.concatenate([before, band])
            if last > first:
                piece = Page(last - first, one.width, one.channels, one.dtype)
                copy[first:last] = smaller_copy(rows, piece, times)
            done[k], rest[k] = last, rows[(last - first) * times :].copy()
