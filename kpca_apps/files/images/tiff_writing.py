"""Write TIFF files page by page, with the tags of the file they were made from."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import IO, Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.images.tags import (
    Directory,
    Layout,
    Tag,
    TiffError,
    pack_tags,
    read_directories,
)
from kpca_apps.files.images.tiff import (
    BITS,
    DESCRIPTION,
    DNG_VERSION,
    EXTRA,
    FORMAT,
    HEIGHT,
    ICC,
    MEANING,
    PACKING,
    PLAIN,
    PLANAR,
    PREDICTOR,
    SAMPLES,
    STRIP_BYTES,
    STRIP_ROWS,
    STRIPS,
    WIDTH,
    YCBCR,
    ZIP,
    invert,
)
from kpca_apps.files.images.types import Metadata

__all__ = ["directory_of_metadata", "write_tiff"]

_STRIP = 1 << 18
_LIMIT = (1 << 32) - (1 << 20)
# Tags of how pixels were stored, which are set anew, and of pictures that are not written: fill
# order, halftones, fax options, palettes, tiles, sub-images, JPEG and YCbCr tables.
_DENSITY, _DENSITY_UNIT, _INCH = frozenset({282, 283}), 296, 2
_DROPPED = frozenset(
    {255, 266, 288, 289, 292, 293, 301, 320, 321, 322, 323, 324, 325, 330, 347}
    | {512, 513, 514, 515, 517, 518, 519, 520, 521, 529, 530, 531, 532}
    | {BITS, FORMAT, HEIGHT, PACKING, PLANAR, PREDICTOR, SAMPLES, WIDTH}
    | {STRIPS, STRIP_BYTES, STRIP_ROWS}
)


def write_tiff(
    file: IO[bytes], pages: Iterable[tuple[NDArray[Any], Directory]], layout: Layout, label: str
) -> None:
    """Write pages one after the other, so that no more than one need be in memory.

    Each comes with the tags to carry over, of one layout. Integers count from black, whatever the
    tags say. Pages that were not compressed stay so; others are packed with Deflate.

    Examples
    --------
    >>> import io
    >>> from kpca_apps.files.images.tiff import read_tiff
    >>> file, layout = io.BytesIO(), Layout(">")
    >>> pages = (np.full((4, 5), value, np.float32) for value in (0.5, -2.0))
    >>> write_tiff(file, ((page, Directory(layout, {})) for page in pages), layout, "a.tif")
    >>> image = read_tiff(file.getvalue(), "a.tif")
    >>> len(image.pages), float(image.page(1)[3, 4])
    (2, -2.0)
    """
    file.write(layout.header(0))
    # Where the place of the next directory is to be written.
    link = file.tell() - struct.calcsize(layout.place)
    for pixels, like in pages:
        tags = {number: tag for number, tag in like.tags.items() if number not in _DROPPED}
        directory = Directory(
            layout, tags | _write_pixels(file, pixels, like, label), like.children
        )
        block, start = pack_tags(directory, _append(file, b"", layout, label))
        _append(file, block, layout, label)
        file.seek(link)
        file.write(struct.pack(layout.place, start))
        n_tags = len(directory.tags) + len(directory.children)
        link = start + struct.calcsize(layout.number) + n_tags * struct.calcsize(layout.entry)


def _write_pixels(
    file: IO[bytes], pixels: NDArray[Any], like: Directory, label: str
) -> dict[int, Tag]:
    """Write the strips of a page and return the tags that say how they lie."""
    layout, number = like.layout, like.layout.numbers
    values = pixels.reshape(*pixels.shape[:2], -1)
    height, width, channels = values.shape
    is_float = values.dtype.kind == "f"
    if like.integer(MEANING, 1) == 0 and not is_float:
        values = values.copy()
        invert(values[..., :1])
    plain = like.integer(PACKING, PLAIN) == PLAIN
    planar = channels > 1 and like.integer(PLANAR, 1) == 2
    rows = max(1, _STRIP // max(1, values[0].nbytes))
    places, sizes = [], []
    for plane in np.split(values, channels, axis=2) if planar else [values]:
        for top in range(0, height, rows):
            strip = np.ascontiguousarray(plane[top : top + rows])
            if not plain and not is_float:
                strip = imagecodecs.delta_encode(strip, axis=1)
            raw = strip.astype(strip.dtype.newbyteorder(layout.order)).tobytes()
            packed = raw if plain else bytes(imagecodecs.deflate_encode(raw, level=6))
            places.append(_append(file, packed, layout, label))
            sizes.append(len(packed))
    tags = {
        WIDTH: number(4, width),
        HEIGHT: number(4, height),
        BITS: number(3, *[8 * values.dtype.itemsize] * channels),
        PACKING: number(3, PLAIN if plain else ZIP),
        SAMPLES: number(3, channels),
        STRIP_ROWS: number(4, rows),
        STRIPS: layout.places(*places),
        STRIP_BYTES: layout.places(*sizes),
        FORMAT: number(3, *[3 if is_float else 1] * channels),
        PLANAR: number(3, 2 if planar else 1),
    }
    if not plain and not is_float:
        tags[PREDICTOR] = number(3, 2)
    if like.integer(MEANING, YCBCR) == YCBCR:
        tags[MEANING] = number(3, 2 if channels >= 3 else 1)
    if channels in (2, 4) and EXTRA not in like.tags:
        tags[EXTRA] = number(3, 2)
    return tags


def _append(file: IO[bytes], block: bytes, layout: Layout, label: str) -> int:
    """Write a block at the end, at an even place, and return the place."""
    place = file.seek(0, 2)
    if place % 2:
        place += file.write(b"\0")
    if not layout.big and place + len(block) > _LIMIT:
        raise InputError(
            f"{label}: its pages take more than the 4 GB of a TIFF file; split it, or save it as "
            "BigTIFF."
        )
    file.write(block)
    return place


def directory_of_metadata(metadata: Metadata) -> Directory:
    """Return the tags that hold metadata which came from another format, for compressed pages.

    They are in the byte order of the EXIF block, if there is one that is sound.
    """
    found = Directory(Layout("<"), {})
    try:
        found = next(read_directories(metadata.exif or b""), found)
    except TiffError:
        pass
    tags = {number: tag for number, tag in found.tags.items() if number not in _DROPPED}
    tags[PACKING] = found.layout.numbers(3, ZIP)
    # Of pixels that were another file's, or that would make this file a RAW file or a stack.
    for number in (MEANING, EXTRA, DNG_VERSION):
        tags.pop(number, None)
    if DESCRIPTION in tags and tags[DESCRIPTION].data.startswith(b"ImageJ"):
        del tags[DESCRIPTION]
    if metadata.icc is not None:
        tags[ICC] = Tag(7, len(metadata.icc), metadata.icc)
    if metadata.density is not None and not _DENSITY & tags.keys():
        for number, value in zip(sorted(_DENSITY), metadata.density, strict=True):
            ratio = struct.pack(f"{found.layout.order}II", min(round(100 * value), 2**32 - 1), 100)
            tags[number] = Tag(5, 1, ratio)
        tags[_DENSITY_UNIT] = found.layout.numbers(3, _INCH)
    return Directory(found.layout, tags, found.children)
