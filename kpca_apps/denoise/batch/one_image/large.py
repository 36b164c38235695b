"""A page of more pixels than fit into memory: denoised in tiles, row of tiles by row.

The noise is measured in a few squares spread over the page, and is one for all. Where the noise is
made white pixel by pixel, as white noise and that of counted light are, tiles come out as in the
page at once, to the last bit (`kpca_apps.denoise.passes.tiles`), but near what is no data. Noise
that a blur has neighbours share is whitened by a filter that reaches over the whole page, and light
below black is measured in all of it: then each piece is denoised as an image of its own, with what
is around it, which is cut off again. Pieces begin at fixed places, whatever the tiles of a file
are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.batch.denoisers import Denoiser, GroupDenoiser
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.law import Light
from kpca_apps.denoise.image import SCALE, Axes, Picture, as_stored, colours_of, value_range
from kpca_apps.denoise.masks import Mask, numbers_in
from kpca_apps.denoise.noise import gaussian, poisson
from kpca_apps.denoise.noise.choose import GOLDEN, MEASURED_PAGES
from kpca_apps.denoise.noise.clipping import Ends, ends_of, ends_of_all
from kpca_apps.denoise.noise.model import Planes, VarianceStabilisation
from kpca_apps.denoise.options import Options, Window
from kpca_apps.denoise.passes.tiles import denoise_tiles
from kpca_apps.denoise.progress import part
from kpca_apps.denoise.regions import AROUND, window_around
from kpca_apps.errors import InputError
from kpca_apps.images.bands import Bands, rows_of_band
from kpca_apps.images.pyramids import smaller_copy, times_smaller
from kpca_apps.images.tiff import TILE_HEIGHT
from kpca_apps.images.types import ImageFile, Page
from kpca_apps.system.files.windowed import WindowedArray

SQUARE = 1024  # pixels a side of those that are measured
MOST_PLACES = 128  # where squares are sought if the first are nowhere data
ROWS, COLUMNS = 840, 2520  # between pieces that are denoised as images of their own
BLOCK = 64  # pixels a side of those of which it is known whether they have data
LOOKED_AT = 4 * BLOCK  # rows at once, where all of them are looked through


def denoised_in_bands(
    image: ImageFile, number: int, denoise: Denoiser, folder: Path
) -> tuple[Bands, DenoiseInfo]:
    """Return a large page denoised, to be taken band by band, and what is known of its noise.

    Smaller copies, first those within the page and then pages, lie in files of the folder.
    """
    page = image.pages[number]
    if image.window is None:
        raise InputError(
            f"{image.label}: has {page.width} x {page.height} pixels, which are read in bands of "
            "TIFF and OME-Zarr alone, and not of CMYK; cut it into smaller images."
        )
    groups = denoise.of_large_page()
    large = _LargePage(image, number, bool(page.alpha) and _is_clear(image, number))
    known, info = groups.knowing(*_squares(large))
    # Smaller copies, and how many rows make whole tiles of them.
    own = image.within[number] if image.within else ()
    within = [(one, tags.integer(TILE_HEIGHT, 1)) for one, tags in own]
    beside = [
        (image.pages[one], image.blocks[one][0])
        for one, whole in image.copies.items()
        if whole == number
    ]
    sizes = [one for one, _ in (*within, *beside)]
    room = partial(WindowedArray, label=image.label, folder=folder)
    waiting = [room(one.shape, dtype=one.dtype) for one in sizes]
    copies = tuple(
        Bands(one.shape, one.dtype, rows_of_band(tall), _rows_of(held, rows_of_band(tall)))
        for held, (one, tall) in zip(waiting, (*within, *beside), strict=True)
    )
    rows = rows_of_band(image.blocks[number][0])
    strips = _strips(large, known if info.established else None, groups.data_range, folder)
    filled = _filling(_bands(strips, rows), waiting, sizes, page)
    return Bands(page.shape, page.dtype, rows, filled, copies), info


def _is_clear(image: ImageFile, number: int) -> bool:
    """Whether all of a page is transparent, so that its alpha says nothing of what is data."""
    large = _LargePage(image, number, True)
    return not any(rows[..., -1].any() for rows in large.all_rows())


class _LargePage:
    """A large page, of which windows are had, as they are stored."""

    def __init__(self, image: ImageFile, number: int, is_clear: bool) -> None:
        assert image.window is not None
        self.label, self.page = image.label, image.pages[number]
        self._read = partial(image.window, number)
        self._is_clear = is_clear
        # Wide blocks are decoded once for all the windows that lie side by side in them.
        self._keeps = image.blocks[number][1] > COLUMNS
        self._kept = 0, np.empty((0, self.page.width))
        self._lock = Lock()

    def window(self, window: Window) -> NDArray[Any]:
        """Return rows and columns of the page, not to be written into."""
        (top, bottom), columns = window[0], slice(*window[1])
        with self._lock:  # threads ask, and what is kept is one for all of them
            if not self._keeps:
                return self._read(slice(top, bottom), columns)
            first, kept = self._kept
            if not first <= top <= bottom <= first + len(kept):
                self._kept = 0, kept[:0].copy()  # not two of them in memory
                del kept
                self._kept = first, kept = top, self._read(slice(top, bottom), slice(None))
            return kept[top - first : bottom - first, columns]

    def rows(self, top: int, bottom: int) -> NDArray[Any]:
        """Return whole rows of the page."""
        return self.window(((top, bottom), (0, self.page.width)))

    def all_rows(self) -> Iterator[NDArray[Any]]:
        """Yield all rows of the page, some at a time."""
        for top in range(0, self.page.height, LOOKED_AT):
            yield self.rows(top, min(top + LOOKED_AT, self.page.height))

    def fill(self, strip: NDArray[Any], top: int) -> None:
        """Fill a strip with rows of the page, from one on, some at a time."""
        for first in range(0, len(strip), LOOKED_AT):
            some = strip[first : first + LOOKED_AT]
            some[...] = self.rows(top + first, top + first + len(some))

    def data_of(self, pixels: NDArray[Any]) -> Mask | None:
        """Return where a piece of the page has data; None for everywhere."""
        seen = pixels[..., -1] != 0 if self.page.alpha and not self._is_clear else None
        colours = colours_of(pixels)
        return numbers_in(colours, seen, colours.ndim == 3)


def _squares(large: _LargePage) -> tuple[NDArray[Any], Mask | None]:
    """Return squares spread over a page, (n, h, w) or (n, h, w, 3), and where they have data."""
    page = large.page
    height, width = min(SQUARE, page.height), min(SQUARE, page.width)
    for places in (MEASURED_PAGES, MOST_PLACES):
        squares, masks = [], []
        for place in range(places):
            top = round((page.height - height) * (place + 0.5) / places)
            left = round((page.width - width) * (place * GOLDEN % 1))
            square = large.window(((top, top + height), (left, left + width)))
            data = large.data_of(square)
            if data is None or data.any():
                squares.append(colours_of(square).copy())
                masks.append(np.ones((height, width), bool) if data is None else data)
            if len(squares) == MEASURED_PAGES:
                break
        if squares:
            data = np.stack(masks)
            return np.stack(squares), None if data.all() else data
    raise InputError(
        f"{large.label}: no data were found in {MOST_PLACES} squares of it, all transparent or not "
        "a number; cut out what has data"
    )


def _strips(
    large: _LargePage, known: GroupDenoiser | None, data_range: float | None, folder: Path
) -> Iterator[NDArray[Any]]:
    """Yield rows of a page denoised, as they are stored; without what is known, as they are."""
    if known is None:
        yield from large.all_rows()
        return
    statistics = _page_statistics(large, data_range)
    transforms = _channel_transforms(known, statistics)
    if transforms is not None and not transforms.each:
        yield from large.all_rows()
    elif transforms is None:
        yield from _pieces(large, known)
    else:
        yield from _tiles(large, known.options, statistics, transforms, folder)


@dataclass(frozen=True)
class _PageStatistics:
    """What a page holds, looked through from top to bottom."""

    ends: tuple[Ends, ...]  # of the values of each channel that are data, as they are stored
    is_grey: bool  # whether three channels hold the same
    blocks: Mask  # which blocks have data
    span: float  # as of the page at once: the range of values, and the one that is black
    lowest: float

    def scaled_ends(self) -> list[Ends]:
        """Return the ends on the scale of planes, as `Picture.plane` has it."""
        return [
            one._replace(low=self._scaled(one.low), high=self._scaled(one.high))
            for one in self.ends
        ]

    def _scaled(self, value: Any) -> np.float32:
        return np.float32((value - np.float64(self.lowest)) * (SCALE / self.span))


def _page_statistics(large: _LargePage, data_range: float | None) -> _PageStatistics:
    page = large.page
    parts: list[list[Ends]] = [[] for _ in range(page.channels - page.alpha)]
    blocks, is_grey = [], len(parts) == 3
    for pixels in large.all_rows():
        data, colours = large.data_of(pixels), np.atleast_3d(colours_of(pixels))
        is_grey = is_grey and bool((colours == colours[..., :1]).all())
        for found, channel in zip(parts, np.moveaxis(colours, -1, 0), strict=True):
            values = channel if data is None else channel[data]
            if values.size:
                found.append(ends_of(values))
        data = np.ones(pixels.shape[:2], bool) if data is None else data
        whole = np.pad(data, [(0, -side % BLOCK) for side in data.shape])
        blocks.append(whole.reshape(-1, BLOCK, whole.shape[1] // BLOCK, BLOCK).any(axis=(1, 3)))
    ends = tuple(map(ends_of_all, parts))
    values = np.array([(one.low, one.high) for one in ends])
    if not np.isfinite(values).all():
        raise InputError(
            f"{large.label}: holds infinite values; replace them first, by NaN where they are no "
            "data"
        )
    return _PageStatistics(ends, is_grey, np.concatenate(blocks), *value_range(values, data_range))


class _ChannelTransforms(NamedTuple):
    """By which transforms channels become planes of white noise, pixel by pixel."""

    n_channels: int  # of which planes are made: 1 where three hold the same
    # Of those that have noise, together or one by one.
    each: list[tuple[slice, VarianceStabilisation]]


def _channel_transforms(
    known: GroupDenoiser, statistics: _PageStatistics
) -> _ChannelTransforms | None:
    """Return the transforms of channels; None where the noise takes more than single pixels."""
    ends, unit = statistics.scaled_ends(), SCALE / statistics.span
    known_levels = known.sigma if isinstance(known.sigma, tuple) else ()
    if known.options.noise != "poisson" and not known.laws:
        levels = tuple(float(level) * unit for level in known_levels)
        n = 1 if statistics.is_grey and len(set(levels)) == 1 else len(ends)
        return _ChannelTransforms(n, [(slice(0, n), gaussian.stabilisation(ends[:n], levels[:n]))])
    if known.laws:
        laws = (law.in_units(1 / unit, -statistics.lowest * unit) for law in known.laws)
        lights = tuple(law.light for law in laws)
    elif statistics.lowest == 0 and min(one.low for one in ends) >= 0:
        lights = tuple(Light((float(level) * unit) ** 2 / SCALE, 0.0) for level in known_levels)
    else:
        return None
    if max(light.blur for light in lights) > 0:
        return None
    n = 1 if statistics.is_grey and len(set(lights)) == 1 else len(ends)
    noisy = poisson.noisy_by_light(ends[:n], lights[:n])
    alone = [slice(number, number + 1) for number in np.flatnonzero(noisy).tolist()]
    own = [slice(0, n)] if noisy.all() else alone
    return _ChannelTransforms(
        n, [(one, poisson.stabilisation(ends[one], lights[one])) for one in own]
    )


@dataclass(frozen=True)
class _WhitePlanes:
    """Planes of white noise that are made of a page, window by window."""

    picture: Callable[[NDArray[Any]], Picture]
    read: Callable[[Window], NDArray[Any]]
    shape: tuple[int, ...]
    channels: slice
    transform: VarianceStabilisation

    def __getitem__(self, window: tuple[slice, ...]) -> Planes:
        """Return some of the planes (c, 1, rows, columns) of a window."""
        rows, columns = (
            side.indices(size)[:2] for side, size in zip(window[2:], self.shape[2:], strict=True)
        )
        planes = self.picture(self.read((rows, columns))).continued()[self.channels]
        return self.transform.forward(planes)[window[0], np.newaxis]


def _tiles(
    large: _LargePage,
    options: Options,
    statistics: _PageStatistics,
    transforms: _ChannelTransforms,
    folder: Path,
) -> Iterator[NDArray[Any]]:
    """Yield rows of tiles of a page, denoised as in the page at once, in the same array each."""
    page = large.page

    def picture(pixels: NDArray[Any]) -> Picture:
        data = large.data_of(pixels)
        colours = np.moveaxis(np.atleast_3d(colours_of(pixels)), -1, 0)[: transforms.n_channels]
        given, span, lowest = None if data is None else colours, statistics.span, statistics.lowest
        return Picture(colours, None, Axes(None, None), 1, span, lowest, SCALE / span, data, given)

    def is_empty(window: Window) -> bool:
        rows, columns = (slice(begin // BLOCK, -(-end // BLOCK)) for begin, end in window)
        return not statistics.blocks[rows, columns].any()

    room = partial(WindowedArray, dtype=np.float32, label=large.label, folder=folder)
    found = []
    for own, transform in transforms.each:
        shape = own.stop - own.start, 1, page.height, page.width
        planes = _WhitePlanes(picture, large.window, shape, own, transform)
        found.append(denoise_tiles(planes, transform.levels, options, room, is_empty))

    def stored(pixels: NDArray[Any], tiles: tuple[Planes, ...]) -> NDArray[Any]:
        given = picture(pixels)
        cleaned = given.planes()
        for (own, transform), tile in zip(transforms.each, tiles, strict=True):
            cleaned[own] = transform.inverse(tile)
        values = given.restored(cleaned, options.strength)[:, 0]
        return np.moveaxis(as_stored(values, page.dtype), 0, -1)

    for made in zip(*found, strict=True):
        (top, bottom), (left, right) = made[0][0]
        if top == left == 0:
            buffer = np.empty((bottom, *page.shape[1:]), page.dtype)
        if left == 0:
            strip = buffer[: bottom - top]
            large.fill(strip, top)
        tiles = tuple(tile for _, tile in made if tile is not None)
        if tiles:
            pixels = strip[:, left:right]
            colours = pixels.reshape(*pixels.shape[:2], -1)[..., : len(statistics.ends)]
            colours[...] = stored(pixels, tiles)
        if right == page.width:
            yield strip


def _cuts(length: int, step: int) -> list[tuple[int, int]]:
    """Return begin and end of pieces along a side: with what is around, all begin at multiples.

    >>> _cuts(2000, 840)
    [(0, 936), (936, 1776), (1776, 2000)]
    """
    begins = [0, *range(step + AROUND, length, step)]
    return list(zip(begins, [*begins[1:], length], strict=True))


def _pieces(large: _LargePage, known: GroupDenoiser) -> Iterator[NDArray[Any]]:
    """Yield rows of pieces of a page, each denoised as an image of its own, in the same array."""
    page = large.page
    size, rows = (page.height, page.width), _cuts(page.height, ROWS)
    buffer = np.empty((max(np.ptp(side) for side in rows), *page.shape[1:]), page.dtype)
    for n, (top, bottom) in enumerate(rows):
        ((first, last), _), ((above, below), _) = window_around(((top, bottom), (0, 1)), size)
        strip = buffer[: bottom - top]
        large.fill(strip, top)
        for left, right in _cuts(page.width, COLUMNS):
            (_, (before, behind)), (_, inside) = window_around(((top, bottom), (left, right)), size)
            piece = large.window(((first, last), (before, behind)))
            data = large.data_of(piece)
            if data is not None and not data.any():
                continue
            with part(n, len(rows)):
                cleaned = known.clean(np.ascontiguousarray(colours_of(piece)), mask=data)
            found = as_stored(cleaned.at(known.options.strength), page.dtype)
            target = strip[:, left:right]
            colours = target if page.channels < 2 else target[..., : page.channels - page.alpha]
            colours[...] = found[above:below, slice(*inside)].reshape(colours.shape)
        yield strip


def _bands(strips: Iterator[NDArray[Any]], rows: int) -> Iterator[NDArray[Any]]:
    """Yield bands of so many rows, the last of what is left, of strips of any number of rows.

    What is in a band may change when the next is asked for.
    """
    waiting: list[NDArray[Any]] = []  # rows too few for a band
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


def _rows_of(held: WindowedArray, rows: int) -> Iterator[NDArray[Any]]:
    for top in range(0, held.shape[0], rows):
        yield held[top : top + rows]


def _filling(
    bands: Iterator[NDArray[Any]], copies: Sequence[Any], sizes: Sequence[Page], page: Page
) -> Iterator[NDArray[Any]]:
    """Yield bands, and fill smaller copies by what was taken."""
    taken, done = 0, [0] * len(copies)  # rows of the page, and of each copy
    left: list[NDArray[Any] | None] = [None] * len(copies)  # rows too few for one of a copy
    for band in bands:
        yield band
        taken += len(band)
        for k, (copy, one) in enumerate(zip(copies, sizes, strict=True)):
            times, first, before = times_smaller(one, page), done[k], left[k]
            last = one.height if taken == page.height else min(one.height, taken // times)
            rows = band if before is None or not len(before) else np.concatenate([before, band])
            if last > first:
                piece = Page(last - first, one.width, one.channels, one.dtype)
                copy[first:last] = smaller_copy(rows, piece, times)
            done[k], left[k] = last, rows[(last - first) * times :].copy()
