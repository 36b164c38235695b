"""Which clean image belongs to which input."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from kpca_apps.denoise.naming import Planned
from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.images.front_door import read_image
from kpca_apps.files.images.kinds import IMAGE_SUFFIXES
from kpca_apps.files.images.types import ImageFile
from kpca_apps.files.names import one_line

__all__ = ["find_references", "read_reference"]


def find_references(
    planned: tuple[Planned, ...], reference: str | Path | None
) -> tuple[dict[str, Path], tuple[str, ...]]:
    """Find the clean image of each input that has one.

    Parameters
    ----------
    planned : tuple of Planned
    reference : str or Path, optional
        A folder, where the name of an input, or that with another suffix, is looked for; or one
        image for a single input.

    Returns
    -------
    references : dict of str to Path
        By the name of the input.
    notes : tuple of str
        On inputs that have none.

    Raises
    ------
    ConfigError
        If one image is given for several inputs, or a clean image is the noisy one itself.
    InputError
        If there is no such folder, or no clean image in it.
    """
    if reference is None:
        return {}, ()
    base = Path(reference)
    label = one_line(str(base), 200)
    found: dict[str, Path] = {}
    if base.is_file():
        if len(planned) > 1:
            raise ConfigError(f"{label}: is one image for {len(planned)} inputs; name a folder.")
        found = {planned[0].name: base}
        _refuse_the_same(planned, found, label)
        return found, ()
    if not base.is_dir():
        raise InputError(f"{label}: no such folder of clean images.")
    for image in planned:
        exact = base / image.name
        same_stem = sorted(
            path
            for path in exact.parent.glob(f"{_escaped(PurePosixPath(image.name).stem)}.*")
            if path.suffix.lower() in IMAGE_SUFFIXES
        )
        if exact.is_file():
            found[image.name] = exact
        elif same_stem:
            found[image.name] = same_stem[0]
    if not found:
        raise InputError(
            f"{label}: holds no image named like an input, such as "
            f'"{one_line(planned[0].name)}"; give clean images the names of the noisy ones.'
        )
    missing = len(planned) - len(found)
    _refuse_the_same(planned, found, label)
    if not missing:
        return found, ()
    what = "1 image has" if missing == 1 else f"{missing} images have"
    return found, (f"{what} no clean image to compare with.",)


def _refuse_the_same(planned: tuple[Planned, ...], found: Mapping[str, Path], label: str) -> None:
    """Refuse to compare an image with itself: its figures would say nothing."""
    for image in planned:
        clean = found.get(image.name)
        if clean is not None and os.path.realpath(clean) == os.path.realpath(image.source):
            raise ConfigError(
                f"{label}: {one_line(image.name)} is the noisy image itself; name the folder of "
                "the clean ones by --reference."
            )


def _escaped(stem: str) -> str:
    """Return a stem as a pattern that matches nothing else."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in stem)


def read_reference(path: Path | None, name: str, image: ImageFile) -> ImageFile | None:
    """Open the clean image of one input and see that it fits.

    Parameters
    ----------
    path : Path or None
    name : str
        Of the input.
    image : ImageFile
        The input.

    Returns
    -------
    ImageFile or None
        None if there is no clean image.

    Raises
    ------
    InputError
        If it cannot be read, or differs in size, channels, pages or type.
    """
    if path is None:
        return None
    label = f"{name}: its reference {path.name}"
    try:
        clean = read_image(path, label=label)
    except InputError as error:
        raise InputError(str(error)) from None
    for number, (one, other) in enumerate(zip(image.pages, clean.pages, strict=False), 1):
        if _without_alpha(one.shape) != _without_alpha(other.shape):
            where = f" (page {number})" if len(image.pages) > 1 else ""
            raise InputError(
                f"{label} has shape {_shown(other.shape)} and the image{where} "
                f"{_shown(one.shape)}; give a reference of the same size and channels."
            )
    if len(image.pages) != len(clean.pages):
        raise InputError(
            f"{label} has {len(clean.pages)} pages and the image {len(image.pages)}; give a "
            "reference with the same pages."
        )
    if image.pages[0].dtype != clean.pages[0].dtype:
        raise InputError(
            f"{label} holds {clean.pages[0].dtype} and the image {image.pages[0].dtype}; give a "
            "reference of the same type."
        )
    return clean


def _without_alpha(shape: tuple[int, ...]) -> tuple[int, ...]:
    channels = shape[2] if len(shape) == 3 else 1
    return (*shape[:2], 3 if channels >= 3 else 1)


def _shown(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
