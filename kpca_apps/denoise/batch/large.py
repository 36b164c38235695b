"""A page of more pixels than fit into memory: denoised in squares, row of squares by row.

The noise is measured in a few squares spread over the page, and is one for all. Each is denoised
with what is around it, which is cut off again, and so without seams.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.batch.pages import as_stored, colours_of
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.noise.choose import GOLDEN, MEASURED_PAGES
from kpca_apps.denoise.options import STACK_NOISES
from kpca_apps.denoise.progress import part
from kpca_apps.denoise.regions import window_around
from kpca_apps.errors import ConfigError, InputError
from kpca_apps.images.bands import Bands, rows_of_band
from kpca_apps.images.pyramids import smaller_copy, times_smaller
from kpca_apps.images.types import ImageFile, Page
from kpca_apps.system.spools import spilled

SQUARE = 1024  # pixels a side of those that are measured
COLUMNS = 2048  # of the pieces that a band is denoised in


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
    known, info = denoise.knowing(_squares(image, number))
    within = [one for one, _ in image.within[number]] if image.within else []
    beside = [image.pages[one] for one, whole in image.copies.items() if whole == number]
    copies = tuple(
        spilled(one.shape, one.dtype, label=image.label, folder=folder)
        for one in (*within, *beside)
    )
    rows = rows_of_band(image.block_rows[number])
    each = _bands(image, number, known if info.established else None, rows)
    filled = _filling(each, copies, (*within, *beside), page)
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


def _squares(image: ImageFile, number: int) -> NDArray[Any]:
    """Return squares spread over a page (n, h, w) or (n, h, w, 3)."""
    assert image.rows is not None
    page, squares = image.pages[number], []
    height, width = min(SQUARE, page.height), min(SQUARE, page.width)
    for place in range(MEASURED_PAGES):
        top = round((page.height - height) * (place + 0.5) / MEASURED_PAGES)
        left = round((page.width - width) * (place * GOLDEN % 1))
        rows = colours_of(image.rows(number, top, top + height))
        squares.append(rows[:, left : left + width])
    return np.stack(squares)


def _bands(image: ImageFile, number: int, known: Any, rows: int) -> Iterator[NDArray[Any]]:
    """Yield bands of a page, as they are stored; without what is known, as they are."""
    assert image.rows is not None
    page = image.pages[number]
    size, n_bands = (page.height, page.width), -(-page.height // rows)
    for n, top in enumerate(range(0, page.height, rows)):
        bottom = min(page.height, top + rows)
        if known is None:
            yield image.rows(number, top, bottom)
            continue
        ((first, last), _), ((above, below), _) = window_around(((top, bottom), (0, 1)), size)
        given = image.rows(number, first, last)
        band = given[above:below].copy()
        for left in range(0, page.width, COLUMNS):
            right = min(page.width, left + COLUMNS)
            (_, (before, behind)), (_, inside) = window_around(((top, bottom), (left, right)), size)
            with part(n, n_bands):
                cleaned = known.clean(np.ascontiguousarray(colours_of(given[:, before:behind])))
            found = as_stored(cleaned.at(known.options.strength), page.dtype)
            target = band[:, left:right]
            colours = target if page.channels < 2 else target[..., : page.channels - page.alpha]
            colours[...] = found[above:below, slice(*inside)].reshape(colours.shape)
        yield band


def _filling(
    bands: Iterator[NDArray[Any]],
    copies: tuple[NDArray[Any], ...],
    sizes: tuple[Page, ...],
    page: Page,
) -> Iterator[NDArray[Any]]:
    """Yield bands, and fill smaller copies by what was taken."""
    waiting: list[NDArray[Any]] = []
    done = 0  # rows of the page that all copies have
    unit = int(np.lcm.reduce([times_smaller(one, page) for one in sizes])) if sizes else 1
    taken = 0
    for band in bands:
        yield band
        taken += len(band)
        if not sizes:
            continue
        waiting.append(band)
        ready = page.height if taken == page.height else taken // unit * unit
        rows = np.concatenate(waiting)
        for copy, one in zip(copies, sizes, strict=True):
            times = times_smaller(one, page)
            first, last = done // times, min(one.height, -(-ready // times))
            if last > first:
                piece = Page(last - first, one.width, one.channels, one.dtype)
                copy[first:last] = smaller_copy(rows[: ready - done], piece, times)
        waiting, done = [rows[ready - done :]], ready
