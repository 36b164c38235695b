"""Split CMYK images into two pages that are denoised like pictures, and join them again.

One page has the coloured inks, as red, green and blue; the other has the black ink.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.images.types import ImageFile

NOTE = "Its inks are denoised as two pages, the coloured ones and black; its profile is kept."


def split_inks(image: ImageFile) -> ImageFile:
    """Split each page into two: coloured inks and black."""
    cache: dict[int, NDArray[Any]] = {}

    def page(number: int) -> NDArray[Any]:
        whole, is_black = divmod(number, 2)
        if whole not in cache:
            cache.clear()
            cache[whole] = image.page(whole)
        return np.ascontiguousarray(cache[whole][..., 3] if is_black else cache[whole][..., :3])

    parts = [replace(single, channels=n) for single in image.pages for n in (3, 1)]
    notes = (*image.notes, NOTE)
    copies = {
        2 * n + part: 2 * whole + part for n, whole in image.copies.items() for part in (0, 1)
    }
    return replace(
        image, pages=tuple(parts), page=page, notes=notes, inks=True, copies=copies, window=None
    )


def join_inks(pages: Iterable[Any], like: ImageFile) -> Iterator[Any]:
    """Yield CMYK pages from pairs of split pages; pages of other images unchanged."""
    source = iter(pages)
    if not like.inks:
        yield from source
        return
    for colours in source:
        yield np.dstack([colours, next(source)])


def invert_light(light: NDArray[Any]) -> NDArray[Any]:
    """Convert amounts of ink to brightness, or the reverse."""
    return np.asarray(np.subtract(np.iinfo(light.dtype).max, light))
