"""AVIF files of 8, 10 and 12 bits: pixels by libavif, written without loss, with their metadata.

By imagecodecs, for Pillow cuts 10 and 12 bits to 8; Pillow reads the metadata.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import IO, Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kpca_apps.errors import InputError, about
from kpca_apps.images.photographs.heif import properties, stated_size, with_metadata
from kpca_apps.images.types import Format, ImageFile, Metadata, Page, check_size, damage_refused
from kpca_apps.system.limits import require_memory

# A byte may become whole blocks of 128 x 128 pixels of one colour.
_RATIO = 1 << 24
_DEPTH, _COLOURS, _XMP = b"depth", b"colours", b"xmp"


def read_avif(data: bytes, label: str) -> ImageFile:
    """Read an AVIF image; its values fill the lowest 8, 10 or 12 bits."""
    if data[8:12] == b"avis":
        raise InputError(f"{label}: is an animated AVIF image; save its frames as PNG first.")
    with damage_refused(label):
        told = properties(data)
        check_size(label, told.size, 3, len(data), _RATIO)
        with about(label):
            require_memory(8 * told.size[0] * told.size[1], copies=2)
        with Image.open(io.BytesIO(data), formats=("AVIF",)) as picture:
            info, several = dict(picture.info), getattr(picture, "n_frames", 1) > 1
        if several:
            raise InputError(f"{label}: is an animated AVIF image; save its frames as PNG first.")
        pixels = np.asarray(imagecodecs.avif_decode(data, numthreads=1))
        if pixels.dtype != (np.uint8 if told.depth == 8 else np.uint16):
            raise ValueError(f"pixels of another type than of {told.depth} bits")
    if pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (2,), (3,), (4,)):
        raise InputError(f"{label}: holds pixels of shape {pixels.shape}; save it as PNG first.")
    height, width, channels = (*pixels.shape, 1)[:3]
    page = Page(height, width, channels, pixels.dtype)
    carried = [(_DEPTH, bytes([told.depth]))]
    if told.colours:
        carried.append((_COLOURS, bytes(min(255, one) for one in told.colours)))
    if info.get("xmp"):
        carried.append((_XMP, info["xmp"]))
    return ImageFile(
        label=label,
        format="avif",
        pages=(page,),
        metadata=Metadata.of(info.get("exif"), info.get("icc_profile")),
        page=lambda number: pixels,
        notes=("It is written without loss, and takes more space.",),
        carried=tuple(carried),
    )


def write_avif(file: IO[bytes], pages: Iterable[NDArray[Any]], like: ImageFile) -> None:
    """Write an image without loss, in the bits a channel that it had, with its metadata."""
    (pixels,), carried, metadata = pages, dict(like.carried), like.metadata
    (depth,) = carried[_DEPTH]
    options: dict[str, Any] = {}
    if _COLOURS in carried:
        options["primaries"], options["transfer"] = carried[_COLOURS]
    encoded = imagecodecs.avif_encode(
        np.minimum(np.ascontiguousarray(pixels), np.array((1 << depth) - 1, pixels.dtype)),
        level=100,
        bitspersample=depth,
        numthreads=1,
        **options,
    )
    made = with_metadata(
        bytes(encoded),
        icc=metadata.icc,
        exif=metadata.exif,
        xmp=carried.get(_XMP),
        orientation=metadata.orientation,
    )
    file.write(made)


FORMAT = Format(rb".{4}ftypavi[fs]", (".avif",), read_avif, write_avif, size=stated_size)
