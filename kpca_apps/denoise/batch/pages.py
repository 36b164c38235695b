"""Denoise the pages of an image file in their stored type, without changing alpha."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kpca_apps.denoise.batch.denoisers import Denoiser, GroupDenoiser
from kpca_apps.denoise.batch.large import denoised_in_bands
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.level import diagonal_deviation, estimate_noise
from kpca_apps.denoise.image import as_stored, colours_of, loses_light
from kpca_apps.denoise.masks import Mask, as_mask, both, numbers_in
from kpca_apps.denoise.progress import part
from kpca_apps.errors import InputError, about
from kpca_apps.images.dng import write_dng
from kpca_apps.images.files import read_image
from kpca_apps.images.large import Bands
from kpca_apps.images.pyramids import smaller_copy, times_smaller
from kpca_apps.images.stacks import page_groups
from kpca_apps.images.tags import camera_and_iso
from kpca_apps.images.types import Groups, ImageFile
from kpca_apps.names import in_prose
from kpca_apps.system.files.windowed import spilled
from kpca_apps.system.quiet import warnings_ignored
from kpca_apps.system.stores.addresses import AnyPath
from kpca_apps.system.stores.buckets import here

MIDDLE = 1024  # number of pixels shown in each direction from the centre of a large page
TREATED = "Treated as defects"  # start of the note on defects
_MOST_NAMED = 5  # maximum number of pages that a note names
Denoised = tuple[Any, DenoiseInfo]  # pixels or bands of pixels, and noise


def data_of(pixels: NDArray[Any]) -> Mask | None:
    """Return which pixels have alpha above 0; None without alpha, or if all or none have."""
    if pixels.ndim == 2 or pixels.shape[2] not in (2, 4):
        return None
    opaque = pixels[..., -1] != 0
    return opaque if opaque.any() and not opaque.all() else None


def read_mask(path: AnyPath | None, image: ImageFile) -> tuple[Mask | None, ...]:
    """Return each page's mask, from a file with one mask or a mask per page; 0 marks no data."""
    if path is None:
        return (None,) * len(image.pages)
    with here(path) as local:
        # Ignore errors here, as `read_image` below reports them. Opening a named pipe would block.
        with suppress(Exception), warnings_ignored():
            if local.is_file():
                with Image.open(local) as opened:
                    sizes = {(page.width, page.height) for page in image.pages}
                    if opened.mode == "1" and sizes == {opened.size}:
                        return (np.asarray(opened),) * len(image.pages)
        return _masks_in(read_image(local, label=f"{image.label}: its mask {local.name}"), image)


def _masks_in(found: ImageFile, image: ImageFile) -> tuple[Mask | None, ...]:
    if len(found.pages) not in (1, len(image.pages)):
        raise InputError(
            f"has {len(found.pages)} pages and the image {len(image.pages)}; give a mask of one "
            "page, or as many.",
            found.label,
        )
    for number, page in enumerate(image.pages):
        own = found.pages[number % len(found.pages)]
        if (own.height, own.width) != (page.height, page.width):
            raise InputError(
                f"has {own.width} x {own.height} pixels and the image {page.width} x "
                f"{page.height}; give a mask of the same size.",
                found.label,
            )
    masks: list[Mask] = []
    for number in range(len(found.pages)):
        with about(found.label):
            colours = as_mask(colours_of(found.page(number)))
        masks.append(np.asarray(colours.any(axis=2)) if colours.ndim == 3 else colours)
    return tuple(masks) * (len(image.pages) if len(masks) == 1 else 1)


def without_holes(*images: NDArray[Any]) -> list[NDArray[Any]]:
    """Return images of one shape for display, black where any of them is NaN."""
    holes = np.zeros(images[0].shape, bool)
    for image in images:
        if image.dtype.kind == "f":
            holes |= np.isnan(image)
    if not holes.any():
        return [*images]
    lowest = images[0][~holes].min(initial=np.inf)
    black = lowest if np.isfinite(lowest) else images[0].dtype.type(0)
    return [np.where(holes, black.astype(image.dtype), image) for image in images]


def grey_of(pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Return the mean of the colours of an image."""
    grey = pixels.astype(np.float32)
    return grey.mean(axis=2) if grey.ndim == 3 else grey


def shown_page(image: ImageFile, number: int) -> NDArray[Any]:
    """Return the colours of a page for display and comparison; the middle of a large page."""
    page = image.pages[number]
    if not page.is_large or image.window is None:
        return colours_of(image.page(number))
    top, left = (max(0, side // 2 - MIDDLE) for side in (page.height, page.width))
    rows, columns = slice(top, top + 2 * MIDDLE), slice(left, left + 2 * MIDDLE)
    return colours_of(image.window(number, rows, columns))


def kind_of(image: ImageFile) -> str:
    """Return the kind of an image, by which noise is pooled: camera and ISO, or the size."""
    page = image.pages[0]
    channels = page.shape[2] if len(page.shape) == 3 else 1
    where = " x ".join(map(str, page.shape[1::-1]))
    return f"{camera_and_iso(image.metadata.exif) or where}, {channels} x {page.dtype}"


def denoised_pages(
    image: ImageFile, source: Path, denoise: Denoiser, folder: Path, infos: list[DenoiseInfo]
) -> Iterator[Any]:
    """Yield denoised pages in their stored type, with alpha; append each page's info to `infos`."""
    if image.mosaic is not None:
        cleaned = denoise.clean_mosaic(image.mosaic())
        infos.append(cleaned.info)
        yield cleaned.at(denoise.strength)
        return
    found = _singly(image, denoise, folder)
    if isinstance(denoise, GroupDenoiser) and denoise.stack and len(image.pages) > 1:
        found = found if image.inks else _together(image, source, denoise, folder)
    for number, (page, (denoised, info)) in enumerate(zip(image.pages, found, strict=True)):
        # A result with the page's shape (including any alpha channel) and type is stored unchanged.
        if (denoised.shape, denoised.dtype) == (page.shape, page.dtype):
            infos.append(info)
            yield denoised
            continue
        if dithered := loses_light(denoised, page.dtype):
            info = replace(info, dithered=True)
        stored = as_stored(denoised, page.dtype, dithered=dithered)
        if page.alpha:
            alpha = image.page(number)[..., -1:]
            stored = np.concatenate([stored.reshape(*stored.shape[:2], -1), alpha], axis=2)
        infos.append(info)
        yield stored


def write_negative(
    file: IO[bytes], image: ImageFile, denoise: Denoiser, infos: list[DenoiseInfo]
) -> None:
    """Write the denoised mosaic of a raw file as a DNG, and append its noise to `infos`."""
    assert image.mosaic is not None
    mosaic = image.mosaic()
    cleaned = denoise.clean_mosaic(mosaic)
    infos.append(cleaned.info)
    write_dng(file, cleaned.light_at(denoise.strength), mosaic, image)


def _singly(image: ImageFile, denoise: Denoiser, folder: Path) -> Iterator[Denoised]:
    masks = read_mask(denoise.mask, image)
    wholes: dict[int, Denoised] = {}
    last = {image.copies[number]: number for number in sorted(image.copies)}
    made: dict[int, Bands] = {}  # smaller copies of large pages
    for number, page in enumerate(image.pages):
        if number in made:
            yield made.pop(number), wholes[image.copies[number]][1]
            continue
        if page.is_large:
            bands, info = denoised_in_bands(image, number, denoise, folder)
            beside = [one for one, whole in image.copies.items() if whole == number]
            made |= zip(beside, bands.copies[len(bands.copies) - len(beside) :], strict=True)
            wholes[number] = bands, info
            yield bands, info
            continue
        if number in image.copies:
            of = image.copies[number]
            times = times_smaller(page, image.pages[of])
            yield smaller_copy(wholes[of][0], page, times), wholes[of][1]
            if number == last[of]:
                del wholes[of]
            continue
        with part(number, len(image.pages)), _no_system_error():
            pixels = image.page(number)
            colours, data = colours_of(pixels), both(data_of(pixels), masks[number])
            axis = -1 if colours.ndim == 3 else None
            if len(image.pages) > 1 and not numbers_in(colours, data, axis is not None).any():
                # Treat a page without data as a page without noise.
                info = denoise(np.zeros(colours.shape, colours.dtype), axis)[1]
                denoised: Denoised = colours, replace(info, empty=1.0)
            else:
                denoised = denoise(colours, axis, data)
        if number in image.copies.values():
            wholes[number] = denoised
        yield denoised


def _together(
    image: ImageFile, source: Path, denoise: GroupDenoiser, folder: Path
) -> Iterator[Denoised]:
    """Yield the pages in file order, each denoised with the other pages of its stack."""
    n_pages = len(image.pages)
    for number, page in enumerate(image.pages, 1):
        if page != image.pages[0]:
            raise InputError(
                f"page {number} has another size or type than page 1, so its pages "
                "are not a stack; leave out --stack."
            )
    groups = _groups(image, source)
    if groups == ():
        raise InputError(
            f"its metadata do not match its {n_pages} pages, so it is not clear "
            "which are a stack; save it again, or leave out --stack."
        )
    groups = groups or (tuple(range(n_pages)),)
    found = _by_stack(image, groups, denoise)
    if tuple(chain(*groups)) == tuple(range(n_pages)):
        yield from (denoised for _, denoised in found)
        return
    # The pages of different stacks alternate in the file: denoise all, then yield in file order.
    infos: dict[int, DenoiseInfo] = {}
    pixels: Any = None
    for number, (page_pixels, info) in found:
        if pixels is None:
            shape = (n_pages, *page_pixels.shape)
            pixels = spilled(shape, page_pixels.dtype, label=image.label, folder=folder)
        pixels[number], infos[number] = page_pixels, info
    yield from ((pixels[number], infos[number]) for number in range(n_pages))


def _groups(image: ImageFile, source: Path) -> Groups | None:
    """Return the page numbers of each stack; None if the file does not state them."""
    return page_groups(source, len(image.pages)) if image.format == "tiff" else image.groups


def _by_stack(
    image: ImageFile, groups: tuple[tuple[int, ...], ...], denoise: GroupDenoiser
) -> Iterator[tuple[int, Denoised]]:
    """Yield the number of each page and the denoised page, stack after stack."""
    masks = read_mask(denoise.mask, image)

    def read(number: int) -> tuple[NDArray[Any], Mask | None]:
        pixels = image.page(number)
        return colours_of(pixels), both(data_of(pixels), masks[number])

    for place, group in enumerate(groups):
        stream = denoise.stacked(read, group)
        for number in group:
            with part(place, len(groups)), _no_system_error():
                denoised = next(stream)
            yield number, denoised


@contextmanager
def _no_system_error() -> Iterator[None]:
    """Turn system errors during denoising into RuntimeErrors, to tell them from write errors."""
    try:
        yield
    except OSError as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def stack_note(image: ImageFile, source: Path, denoise: Denoiser) -> tuple[str, ...]:
    """Return a note if pages of one volume or film were denoised separately."""
    if denoise.stack or not denoise.can_stack or len(image.pages) == 1:
        return ()
    groups = _groups(image, source)
    if groups is None:
        return ("If its pages are one volume or film, --stack denoises them together.",)
    if len(groups) in (0, len(image.pages)):
        return ()
    return ("By its metadata, its pages are a volume or film: --stack denoises them together.",)


def left_note(stored: ImageFile, infos: list[DenoiseInfo], denoise: Denoiser) -> tuple[str, ...]:
    """Return a note that names pages whose remaining noise exceeds the level of the stack."""
    if not denoise.stack or len(stored.pages) == 1 or stored.inks:
        return ()
    noisy = []
    for number, info in enumerate(infos):
        colours = without_holes(colours_of(stored.page(number)))[0].astype(np.float32)
        planes = [*np.moveaxis(np.atleast_3d(colours), 2, 0)]
        # Run the slow estimate below only if a quick one, which texture raises, exceeds `sigma`.
        if info.established and np.mean([*map(diagonal_deviation, planes)]) > info.sigma:
            left = [estimate_noise(plane, info.data_range) for plane in planes]
            stronger = np.mean([one.sigma for one in left]) > info.sigma
            noisy += [str(number + 1)] * bool(stronger and any(one.established for one in left))
    if not noisy:
        return ()
    if (n_more := len(noisy) - _MOST_NAMED) > 0:
        noisy[_MOST_NAMED:] = [f"{n_more} more"]
    return (
        f"Noise remains on page{'s' * (len(noisy) > 1)} {in_prose(noisy)}, where it is stronger "
        "than the level used for the stack: leave out --stack, or denoise such pages by "
        "themselves.",
    )


def empty_note(infos: Sequence[DenoiseInfo]) -> tuple[str, ...]:
    """Return a note on the share of pixels without data."""
    share = float(np.mean([info.empty for info in infos]))
    if not share:
        return ()
    return (
        f"{max(100 * share, 0.01):.2g} % of its pixels are no data (not a number, transparent, or "
        "padding: one value from the border on): they are neither used nor changed.",
    )


def defects_note(infos: Sequence[DenoiseInfo]) -> tuple[str, ...]:
    """Return a note on the pixels and lines treated as sensor defects."""
    kinds = "lone pixel", "dead column", "dead row", "column offset", "row offset"
    counts = [sum(numbers) for numbers in zip(*(info.defects for info in infos), strict=True)]
    found = [f"{n:,} {what}{'s' * (n > 1)}" for n, what in zip(counts, kinds, strict=True) if n]
    if not found:
        return ()
    return (f"{TREATED}: {in_prose(found)}; a mask that is 0 there keeps them.",)
