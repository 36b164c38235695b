"""A page of more pixels than fit into memory: denoised in pieces, row of pieces by row.

The noise is measured in a few squares spread over the page, and is one for all. Each piece is
denoised as an image of its own, with what is around it, which is cut off again. Pieces begin at
fixed places, whatever the tiles of a file are, and so does the grid of references of each: the
result depends on the page alone. It is nearly that of the page at once, not to the last bit: on
four pictures with noise of 15, pieces of 420 x 420 differed from it by .5 on average and .7 at
their edges, and had .5 % more error.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.batch.one_image.pages import colours_of
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.image import as_stored
from kpca_apps.denoise.masks import Mask, numbers_in
from kpca_apps.denoise.noise.choose import GOLDEN, MEASURED_PAGES
from kpca_apps.denoise.options import STACK_NOISES
from kpca_apps.denoise.progress import part
from kpca_apps.denoise.regions import AROUND, window_around
from kpca_apps.errors import ConfigError, InputError
from kpca_apps.images.bands import Bands, rows_of_band
from kpca_apps.images.pyramids import smaller_copy, times_smaller
from kpca_apps.images.types import ImageFile, Page
from kpca_apps.system.spools import spilled

SQUARE = 1024  # pixels a side of those that are measured
MOST_PLACES = 128  # where squares are sought if the first are nowhere data
# Between pieces, with what is around them: multiples of the strides of all passes, so that the grid
# of a piece is that of the page, but for the ends.
ROWS, COLUMNS = 840, 2520


def denoised_in_bands(
    image: ImageFile, number: int, denoise: Any, folder: Path
) -> tuple[Bands, DenoiseInfo]:
    """Return a large page denoised, to be taken band by band, and what is known of its noise.

    Smaller copies, first those within the page and then pages, lie in files of the folder.
    """
    page = image.pages[number]
    if image.rows is None:
        raise InputError(
            f"{image.label}: has {page.width} x {page.height} pixels, which are read in bands of "
            "TIFF and OME-Zarr alone, and not of CMYK; cut it into smaller images."
        )
    _refuse(denoise)
    is_clear = bool(page.alpha) and _is_clear(image, number)
    known, info = denoise.knowing(*_squares(image, number, is_clear))
    within = [one for one, _ in image.within[number]] if image.within else []
    beside = [image.pages[one] for one, whole in image.copies.items() if whole == number]
    copies = tuple(
        spilled(one.shape, one.dtype, label=image.label, folder=folder)
        for one in (*within, *beside)
    )
    rows = rows_of_band(image.block_rows[number])
    strips = _strips(image, number, known if info.established else None, is_clear)
    filled = _filling(_bands(strips, rows), copies, (*within, *beside), page)
    return Bands(page.shape, page.dtype, rows, filled, copies), info


def _refuse(denoise: Any) -> None:
    """Refuse what needs a page as a whole."""
    if not hasattr(denoise, "knowing"):
        raise ConfigError("a page of this size is denoised without a model alone; cut it")
    if denoise.options.noise not in STACK_NOISES:
        raise ConfigError(
            f"noise is {denoise.options.noise!r}, but a page of this size is denoised for "
            f"{', '.join(STACK_NOISES)} noise alone; cut it"
        )
    for name in ("mask", "region"):
        if getattr(denoise, name) is not None:
            raise ConfigError(f"{name} cannot be used for a page of this size; cut it")


def _is_clear(image: ImageFile, number: int) -> bool:
    """Whether all of a page is transparent, so that its alpha says nothing of what is data."""
    assert image.rows is not None
    height = image.pages[number].height
    tops = range(0, height, ROWS)
    return not any(image.rows(number, top, min(height, top + ROWS))[..., -1].any() for top in tops)


def _data_of(pixels: NDArray[Any], page: Page, is_clear: bool) -> Mask | None:
    """Return where a piece of a page has data; None for everywhere."""
    seen = pixels[..., -1] != 0 if page.alpha and not is_clear else None
    colours = colours_of(pixels)
    return numbers_in(colours, seen, colours.ndim == 3)


def _squares(image: ImageFile, number: int, is_clear: bool) -> tuple[NDArray[Any], Mask | None]:
    """Return squares spread over a page, (n, h, w) or (n, h, w, 3), and where they have data."""
    assert image.rows is not None
    page = image.pages[number]
    height, width = min(SQUARE, page.height), min(SQUARE, page.width)
    for places in (MEASURED_PAGES, MOST_PLACES):
        squares, masks = [], []
        for place in range(places):
            top = round((page.height - height) * (place + 0.5) / places)
            left = round((page.width - width) * (place * GOLDEN % 1))
            square = image.rows(number, top, top + height)[:, left : left + width]
            data = _data_of(square, page, is_clear)
            if data is None or data.any():
                squares.append(colours_of(square).copy())
                masks.append(np.ones((height, width), bool) if data is None else data)
            if len(squares) == MEASURED_PAGES:
                break
        if squares:
            data = np.stack(masks)
            return np.stack(squares), None if data.all() else data
    raise InputError(
        f"{image.label}: no data were found in {MOST_PLACES} squares of page {number + 1}, all "
        "transparent or not a number; cut out what has data"
    )


def _cuts(length: int, step: int) -> list[tuple[int, int]]:
    """Return begin and end of pieces along a side: with what is around, all begin at multiples.

    >>> _cuts(2000, 840)
    [(0, 936), (936, 1776), (1776, 2000)]
    """
    begins = [0, *range(step + AROUND, length, step)]
    return list(zip(begins, [*begins[1:], length], strict=True))


def _strips(image: ImageFile, number: int, known: Any, is_clear: bool) -> Iterator[NDArray[Any]]:
    """Yield rows of pieces of a page, as they are stored; without what is known, as they are."""
    assert image.rows is not None
    page = image.pages[number]
    size, rows = (page.height, page.width), _cuts(page.height, ROWS)
    for n, (top, bottom) in enumerate(rows):
        if known is None:
            yield image.rows(number, top, bottom)
            continue
        ((first, last), _), ((above, below), _) = window_around(((top, bottom), (0, 1)), size)
        given = image.rows(number, first, last)
        strip = given[above:below].copy()
        for left, right in _cuts(page.width, COLUMNS):
            (_, (before, behind)), (_, inside) = window_around(((top, bottom), (left, right)), size)
            piece = given[:, before:behind]
            data = _data_of(piece, page, is_clear)
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
    """Yield bands of so many rows, the last of what is left, of strips of any number of rows."""
    waiting: list[NDArray[Any]] = []
    for strip in strips:
        waiting.append(strip)
        if sum(map(len, waiting)) < rows:
            continue
        joined = np.concatenate(waiting)
        end = len(joined) // rows * rows
        waiting = [joined[end:].copy()]
        for top in range(0, end, rows):
            yield joined[top : top + rows]
    if sum(map(len, waiting)):
        yield np.concatenate(waiting)


def _filling(
    bands: Iterator[NDArray[Any]],
    copies: tuple[NDArray[Any], ...],
    sizes: tuple[Page, ...],
    page: Page,
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
            rows = band if before is None else np.concatenate([before, band])
            if last > first:
                piece = Page(last - first, one.width, one.channels, one.dtype)
                copy[first:last] = smaller_copy(rows, piece, times)
            done[k], left[k] = last, rows[(last - first) * times :].copy()
