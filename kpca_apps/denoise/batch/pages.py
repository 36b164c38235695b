"""The pixels of an image file, page by page: without alpha, denoised, as they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.progress import part
from kpca_apps.errors import InputError
from kpca_apps.images.stacks import page_groups
from kpca_apps.images.tags import camera_and_iso
from kpca_apps.images.types import Groups, ImageFile
from kpca_apps.system.spools import spilled

Denoised = tuple[NDArray[Any], DenoiseInfo]


def colours_of(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return an image without its alpha channel."""
    if pixels.ndim == 3 and pixels.shape[2] == 2:
        return pixels[..., 0]
    if pixels.ndim == 3 and pixels.shape[2] == 4:
        return pixels[..., :3]
    return pixels


def grey_of(pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Return the mean of the colours of an image."""
    grey = pixels.astype(np.float32)
    return grey.mean(axis=2) if grey.ndim == 3 else grey


def as_stored(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return values in the type of a file: of integers rounded, and within its range."""
    if dtype.kind not in "ui":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(np.rint(values), limits.min, limits.max), dtype)


def kind_of(image: ImageFile) -> str:
    """Return what distinguishes images whose noise may differ: camera and ISO, or the size."""
    page = image.pages[0]
    channels = page.shape[2] if len(page.shape) == 3 else 1
    where = " x ".join(map(str, page.shape[1::-1]))
    return f"{camera_and_iso(image.metadata.exif) or where}, {channels} x {page.dtype}"


def denoised_pages(
    image: ImageFile, source: Path, denoise: Any, folder: Path, infos: list[DenoiseInfo]
) -> Iterator[NDArray[Any]]:
    """Yield each page denoised, in the type it was stored in; alpha stays as it is.

    What was found out about each is added to `infos`; pages that have to wait for their turn do so
    in a temporary file in the folder.
    """
    if image.mosaic is not None:
        if not hasattr(denoise, "clean_mosaic"):
            raise InputError(
                "a raw file is denoised by kernel PCA on groups of patches alone, without a model; "
                "develop it to a 16-bit TIFF first"
            )
        cleaned = denoise.clean_mosaic(image.mosaic())
        infos.append(cleaned.info)
        yield cleaned.at(denoise.options.strength)
        return
    together = getattr(denoise, "stack", False) and len(image.pages) > 1 and not image.inks
    found = _together(image, source, denoise, folder) if together else _singly(image, denoise)
    for number, (page, (denoised, info)) in enumerate(zip(image.pages, found, strict=True)):
        stored = as_stored(denoised, page.dtype)
        if page.alpha:
            alpha = image.page(number)[..., -1:]
            stored = np.concatenate([stored.reshape(*stored.shape[:2], -1), alpha], axis=2)
        infos.append(info)
        yield stored


def _singly(image: ImageFile, denoise: Any) -> Iterator[Denoised]:
    """Yield each page denoised on its own."""
    for number in range(len(image.pages)):
        with part(number, len(image.pages)), _no_system_error():
            colours = colours_of(image.page(number))
            denoised = denoise(colours, channel_axis=-1 if colours.ndim == 3 else None)
        yield denoised


def _together(image: ImageFile, source: Path, denoise: Any, folder: Path) -> Iterator[Denoised]:
    """Yield each page denoised with the others of its stack, in their order in the file."""
    n_pages = len(image.pages)
    for number, page in enumerate(image.pages, 1):
        if page != image.pages[0]:
            raise InputError(
                f"{image.label}: page {number} is of another size or type than page 1, so that its "
                "pages are no stack; leave out --stack."
            )
    groups = _groups(image, source)
    if groups == ():
        raise InputError(
            f"{image.label}: its metadata describe other pages than the {n_pages} it has, "
            "so that it is not clear which are a stack; write it anew, or leave out --stack."
        )
    groups = groups or (tuple(range(n_pages)),)
    found = _by_stack(image, groups, denoise)
    if tuple(chain(*groups)) == tuple(range(n_pages)):
        yield from (denoised for _, denoised in found)
        return
    # Pages of stacks that lie between those of others.
    kept: dict[int, DenoiseInfo] = {}
    pixels: Any = None
    for number, (page_pixels, info) in found:
        if pixels is None:
            shape = (n_pages, *page_pixels.shape)
            pixels = spilled(shape, page_pixels.dtype, label=image.label, folder=folder)
        pixels[number], kept[number] = page_pixels, info
    yield from ((np.array(pixels[number]), kept[number]) for number in range(n_pages))


def _groups(image: ImageFile, source: Path) -> Groups | None:
    """Return the pages of each stack; None where nothing is said."""
    is_tiff = image.format == "tiff"
    return page_groups(source, len(image.pages)) if is_tiff else image.groups


def _by_stack(
    image: ImageFile, groups: tuple[tuple[int, ...], ...], denoise: Any
) -> Iterator[tuple[int, Denoised]]:
    """Yield the number of each page and the page denoised, stack after stack."""
    for place, group in enumerate(groups):
        stream = denoise.stacked(lambda number: colours_of(image.page(number)), group)
        for number in group:
            with part(place, len(groups)), _no_system_error():
                denoised = next(stream)
            yield number, denoised


@contextmanager
def _no_system_error() -> Iterator[None]:
    """Turn the system's errors while a page is denoised into others than those of writing it."""
    try:
        yield
    except OSError as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def stack_note(image: ImageFile, source: Path, denoise: Any) -> tuple[str, ...]:
    """Say so where pages that are one volume or film were denoised each on its own."""
    if getattr(denoise, "stack", True) or len(image.pages) == 1:
        return ()
    groups = _groups(image, source)
    if groups is None:
        return ("If its pages are one volume or film, --stack denoises them together.",)
    if len(groups) in (0, len(image.pages)):
        return ()
    return ("Its pages are a volume or film, by its metadata: --stack denoises them together.",)
