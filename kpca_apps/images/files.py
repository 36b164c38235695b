"""Read, check and write image files of any supported kind."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError, KpcaError, about, opening
from kpca_apps.images.kinds import FORMATS as KINDS
from kpca_apps.images.kinds import HEAD, head_of, image_kind, refusal, written_kind
from kpca_apps.images.large import ROWS, Bands, LargeFile
from kpca_apps.images.photographs.lossless import UNBOUNDED
from kpca_apps.images.tiff import EXTRA
from kpca_apps.images.types import (
    FRONT,
    MAX_PIXELS,
    Format,
    ImageFile,
    Mosaic,
    Page,
    check_size,
    damage_refused,
)
from kpca_apps.names import one_line, suggest
from kpca_apps.system.limits import require_memory
from kpca_apps.system.stores.addresses import AnyPath
from kpca_apps.system.stores.buckets import place_of

Pages = NDArray[Any] | Iterable[NDArray[Any] | Bands]
FORMATS = ("same", "png", "tiff")


def read_image(path: str | Path, label: str | None = None, name: str = "") -> ImageFile:
    """Return an image file whose pixels are still undecoded.

    The kind is detected from the content. The suffix (of ``name`` if the path is temporary)
    distinguishes a camera's raw file from a TIFF. Raises InputError with the label if the file
    cannot be read.
    """
    path = Path(path)
    label = one_line(str(path) if label is None else label, 200)
    with opening(label), _named(label):
        image = _read(path, name)
        require_memory(max(_bytes_in_memory(page) for page in image.pages))
    return replace(
        image,
        label=label,
        page=_named(label)(image.page),
        window=image.window and _named(label)(image.window),
        mosaic=image.mosaic and partial(_named_mosaic, label, image.mosaic),
    )


@contextmanager
def _named(label: str) -> Iterator[None]:
    """Name the file in errors that name no place, or only a page of the file."""
    try:
        yield
    except KpcaError as error:
        sentence, place = (*map(str, error.args), "")[:2]
        if not place or place.startswith("page "):
            error.args = (sentence, f"{label}, {place}" if place else label)
        raise


def _named_mosaic(label: str, read: Callable[[], Mosaic]) -> Mosaic:
    with _named(label):
        mosaic = read()
    return replace(mosaic, developed=_named(label)(mosaic.developed))


def _read(path: Path, name: str) -> ImageFile:
    """Return an image file without its name; errors name a page at most."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError("this is no regular file; name an image file.")
    if path.is_dir() and (kind := image_kind(head_of(path))) is not None:
        return replace(KINDS[kind].read(path), sha256=hash_folder(path))
    with path.open("rb") as file:
        # Read the head first: a file that is no image is refused without reading the rest.
        head = file.read(HEAD)
        if not head:
            raise InputError("the file is empty; fetch it again.")
        kind = image_kind(head, name or path.name)
        if kind not in KINDS:
            raise InputError(refusal(kind))
        file_stat = os.fstat(file.fileno())
        if file_stat.st_size > FRONT and KINDS[kind].size is None:
            image = KINDS[kind].read(LargeFile(path, file_stat))
            file.seek(0)
            sha256 = hashlib.file_digest(file, "sha256")
        else:
            if file_stat.st_size > FRONT:
                file.seek(0)
                _check_front(file.read(FRONT), KINDS[kind], file_stat.st_size)
            require_memory(file_stat.st_size)
            file.seek(0)
            data = file.read()
            image, sha256 = KINDS[kind].read(data), hashlib.sha256(data)
    return replace(image, sha256=sha256.hexdigest())


def _bytes_in_memory(page: Page) -> int:
    """Return the number of bytes in memory of a page, or of the bands of a large page."""
    return page.n_bytes // page.height * 10 * ROWS if page.is_large else page.n_bytes


def _check_front(front: bytes, kind: Format, n_bytes: int) -> None:
    """Raise InputError if a file is far larger than the image that its first bytes describe."""
    if kind.size is not None:
        with damage_refused():
            size = kind.size(front)
        check_size(size, 1, n_bytes, UNBOUNDED)


def check_object(path: AnyPath, label: str) -> None:
    """Raise InputError before downloading a stored object that `read_image` would refuse.

    `read_image` itself checks local files and small objects.
    """
    if isinstance(path, Path) or (n_bytes := (place := place_of(path)).n_bytes()) <= FRONT:
        return
    front = place.head(FRONT)
    kind = image_kind(front[:HEAD], place.name)
    if kind not in KINDS:
        raise InputError(refusal(kind), label)
    with about(label):
        _check_front(front, KINDS[kind], n_bytes)


def files_in(folder: Path) -> list[Path]:
    """Return all files below a folder except links."""
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def hash_folder(folder: Path) -> str:
    """Return a hash of the names and contents of all files below a folder except links."""
    total = hashlib.sha256()
    for path in sorted(files_in(folder)):
        with path.open("rb") as file:
            own = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{own} {path.relative_to(folder).as_posix()}\n".encode("utf-8", "replace"))
    return total.hexdigest()


def encode_image(
    file: IO[bytes] | Path, pages: Pages, like: ImageFile, *, format: str = "same"
) -> None:
    """Write pixels as an image file, with the metadata of their source.

    `file` is seekable and at its start, or an empty folder for kinds that are folders. Pages must
    have the shapes and types of those of `like` (else ValueError), in stored orientation. JPEG is
    written at quality 95 with full chroma, other kinds without loss. Raises ConfigError if a
    format other than "same" cannot hold the pixels.
    """
    checked = _check_pages([pages] if isinstance(pages, np.ndarray) else pages, like)
    written: Any = checked  # Any: some file kinds accept bands of rows, others only whole pages
    with about(like.label):
        KINDS[target_format(like, format)].write(file, written, like)


def check_format(format: str) -> None:
    """Raise ConfigError for an unknown output format."""
    if format not in FORMATS:
        raise ConfigError(
            f"format is {format!r}; give one of {', '.join(FORMATS)}.{suggest(format, FORMATS)}"
        )


def target_format(like: ImageFile, format: str) -> str:
    """Return the kind to write; raise ConfigError if it cannot hold the image."""
    check_format(format)
    premultiplied = like.directories and like.directories[0].integer(EXTRA, 0) == 1
    what = ""
    if any(page.is_large for page in like.pages):
        what = f"has more than {MAX_PIXELS // 1_000_000} megapixels"
    elif like.inks:
        what = "has the inks of print (CMYK)"
    elif len(like.pages) > 1:
        what = f"has {len(like.pages)} pages"
    elif like.pages[0].dtype not in (np.uint8, np.uint16):
        kind = like.pages[0].dtype
        what = "has floats" if kind.kind == "f" else f"has values of {kind}"
    elif premultiplied and like.pages[0].alpha:
        what = "has colours multiplied by their transparency"
    if format == "png" and what:
        raise ConfigError(f"{what}, which PNG cannot hold; leave out --format.", like.label)
    return written_kind(like.format, format) or ""


def _check_pages(
    pages: Iterable[NDArray[Any] | Bands], like: ImageFile
) -> Iterator[NDArray[Any] | Bands]:
    for pixels, page in zip(pages, like.pages, strict=True):
        if pixels.shape != page.shape or pixels.dtype != page.dtype:
            raise ValueError(
                f"a page of shape {page.shape} and type {page.dtype} was given pixels of shape "
                f"{pixels.shape} and type {pixels.dtype}"
            )
        yield pixels
