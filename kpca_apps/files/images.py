"""Image files in and out: PNG, TIFF and JPEG, nothing lost on the way but what is stated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.images_kinds import HEAD, SUFFIXES_OF, image_kind, refusal
from kpca_apps.files.images_types import ImageFile
from kpca_apps.files.jpeg import read_jpeg, write_jpeg
from kpca_apps.files.limits import require_memory
from kpca_apps.files.names import one_line, suggest
from kpca_apps.files.output import atomic_write
from kpca_apps.files.png import carry_metadata, read_png, write_png
from kpca_apps.files.tiff import EXTRA, read_tiff
from kpca_apps.files.tiff_writing import TiffWriter, directory_of_metadata

__all__ = ["FORMATS", "SUFFIXES", "ImageFile", "encode_image", "read_image", "write_image"]

FORMATS = ("same", "png", "tiff")
SUFFIXES = {kind: suffixes[0] for kind, suffixes in SUFFIXES_OF.items()}
_READERS = {"png": read_png, "tiff": read_tiff, "jpeg": read_jpeg}


def read_image(path: str | Path, label: str | None = None) -> ImageFile:
    """Read an image file; its kind is told by its content, not by its suffix.

    Parameters
    ----------
    path : str or Path
        A PNG, TIFF or JPEG file.
    label : str, optional
        What to call it in messages. Default: its path.

    Returns
    -------
    ImageFile
        Checked as far as its headers go; pixels are decoded when asked for.

    Raises
    ------
    InputError
        If the file is missing, empty, damaged, too large, or of a kind that is not read; one line,
        with what to do about it.
    MemoryLimitError
        If it would not fit into memory.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "grey.png")
    ...     with path.open("wb") as file:
    ...         write_png(file, np.full((3, 5), 9, np.uint8), ())
    ...     image = read_image(path)
    >>> image.format, image.pages[0].shape, int(image.pixels[2, 4])
    ('png', (3, 5), 9)
    """
    path = Path(path)
    label = one_line(str(path) if label is None else label, 200)
    kind, data = _read_bytes(path, label)
    image = _READERS[kind](data, label)
    return replace(image, sha256=hashlib.sha256(data).hexdigest(), n_bytes=len(data))


def write_image(
    path: str | Path,
    pages: NDArray[Any] | Iterable[NDArray[Any]],
    like: ImageFile,
    *,
    format: str = "same",
) -> None:
    """Write pixels as a file like the one they came from, whole or not at all.

    Parameters
    ----------
    path : str or Path
        Replaced if it exists.
    pages, like, format
        As for `encode_image`.

    Raises
    ------
    InputError
        If the file cannot be written.
    ConfigError
        If the format cannot hold the pixels.
    """
    with atomic_write(path) as file:
        encode_image(file, pages, like, format=format)


def encode_image(
    file: IO[bytes],
    pages: NDArray[Any] | Iterable[NDArray[Any]],
    like: ImageFile,
    *,
    format: str = "same",
) -> None:
    """Write pixels in the format, and with the metadata, of the file they came from.

    EXIF, ICC profile and orientation tag are kept and pixels stay in stored order. JPEG is written
    at quality 95 with full chroma; PNG and TIFF lose nothing.

    Parameters
    ----------
    file : binary file
        Open for writing, at its start; for TIFF able to seek.
    pages : ndarray, or iterable of ndarray
        One array for each page of `like`, of its shape and dtype; read one at a time.
    like : ImageFile
    format : {"same", "png", "tiff"}
        Another format to write. PNG holds one page and no floats.

    Raises
    ------
    ConfigError
        If the format cannot hold the pixels.
    ValueError
        If pages are missing, or differ from those of `like` in shape or dtype.
    """
    target = target_format(like, format)
    given = [pages] if isinstance(pages, np.ndarray) else pages
    checked = (
        _checked(pixels, page.shape, page.dtype)
        for pixels, page in zip(given, like.pages, strict=True)
    )
    if target == "tiff":
        directories = like.directories or (directory_of_metadata(like.metadata),)
        writer = TiffWriter(file, directories[0].layout, like.label)
        for pixels, directory in zip(checked, directories, strict=True):
            writer.add(pixels, directory)
    elif target == "png":
        carried = like.carried if like.format == "png" else carry_metadata(like.metadata)
        for pixels in checked:
            write_png(file, pixels, carried)
    else:
        for pixels in checked:
            write_jpeg(file, pixels, like.carried)


def target_format(like: ImageFile, format: str) -> str:
    """Return the format that will be written, or refuse one that cannot hold the image.

    Parameters
    ----------
    like : ImageFile
    format : {"same", "png", "tiff"}

    Returns
    -------
    {"png", "tiff", "jpeg"}

    Raises
    ------
    ConfigError
        If the format is not on offer, or cannot hold the image.
    """
    if format not in FORMATS:
        raise ConfigError(
            f"format is {format!r}; give one of {', '.join(FORMATS)}.{suggest(format, FORMATS)}"
        )
    if format == "same":
        return like.format
    if format == "png" and (len(like.pages) > 1 or like.pages[0].dtype.kind == "f"):
        what = f"{len(like.pages)} pages" if len(like.pages) > 1 else "floats"
        raise ConfigError(f"{like.label}: has {what}, which PNG cannot hold; leave out --format.")
    if format == "png" and like.directories and _is_premultiplied(like):
        raise ConfigError(
            f"{like.label}: its colours are multiplied by their transparency, which PNG cannot "
            "hold; leave out --format."
        )
    return format


def _is_premultiplied(like: ImageFile) -> bool:
    return like.pages[0].alpha and like.directories[0].integer(EXTRA, 0) == 1


def _checked(pixels: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if pixels.shape != shape or pixels.dtype != dtype:
        raise ValueError(
            f"a page of shape {shape} and type {dtype} was given pixels of shape {pixels.shape} "
            f"and type {pixels.dtype}"
        )
    return pixels


def _read_bytes(path: Path, label: str) -> tuple[str, bytes]:
    """Return an image's kind and content; of a file of another kind only the head is read."""
    try:
        if path.is_dir():
            raise InputError(f"{label}: this is a folder; name a file in it.")
        if path.exists() and not path.is_file():
            raise InputError(f"{label}: this is no regular file; name an image file.")
        with path.open("rb") as file:
            head = file.read(HEAD)
            if not head:
                raise InputError(f"{label}: the file is empty; fetch it again.")
            kind = image_kind(head, path.name)
            if kind not in _READERS:
                raise InputError(f"{label}: {refusal(kind)}")
            require_memory(label, path.stat().st_size)
            return kind, head + file.read()
    except FileNotFoundError:
        raise InputError(f"{label}: no such file.") from None
    except PermissionError:
        raise InputError(f"{label}: no permission to read it; change its mode.") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = one_line(getattr(error, "strerror", None) or str(error))
        raise InputError(f"{label}: cannot be read ({reason}).") from None
