"""WebP, JPEG 2000, JPEG XL, BMP and Netpbm, written back as they were read, without loss."""

from __future__ import annotations

import io
import re
import struct
from typing import IO, Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kpca_apps.errors import InputError
from kpca_apps.files.images.limits import check_promise, damage_refused
from kpca_apps.files.images.sizes import boxes, stated_size
from kpca_apps.files.images.types import ImageFile, Metadata, Page

__all__ = ["OTHER_KINDS", "read_other", "write_other"]

# Bytes of pixels that a byte of the file can become, where the kind has a bound.
_RATIOS = {"bmp": 400, "netpbm": 8}
_PILLOW = {"bmp": "BMP", "netpbm": "PPM", "webp": "WEBP"}
_CODESTREAM = b"\xff\x4f"
# Boxes that stay true of the denoised pixels.
_KEPT = frozenset({b"uuid", b"xml ", b"Exif", b"brob"})
OTHER_KINDS = frozenset({*_PILLOW, "jp2", "jxl"})
_TYPES = frozenset({"uint8", "uint16", "float32"})


def read_other(kind: str, data: bytes, label: str) -> ImageFile:
    """Read an image of one of `OTHER_KINDS`, whose type is known only once it is decoded."""
    if kind == "webp" and data[12:16] == b"VP8X" and data[20] & 2:
        raise InputError(f"{label}: is an animated WebP image; save its frames as PNG first.")
    with damage_refused(label):
        height, width = stated_size(kind, data)
    packed = len(data) if kind in _RATIOS else None
    check_promise(label, height, width, 8, packed, _RATIOS.get(kind, 1))
    with damage_refused(label):
        read = _read_by_pillow if kind in _PILLOW else _read_by_imagecodecs
        pixels, metadata, notes, carried = read(kind, data, label)
    if pixels.ndim not in (2, 3) or pixels.shape[2:] > (4,) or str(pixels.dtype) not in _TYPES:
        raise InputError(
            f"{label}: holds {pixels.dtype} values of shape {pixels.shape}; save it as 8-bit or "
            "16-bit grey or RGB, in a TIFF if it has several pages."
        )
    return ImageFile(
        label=label,
        format=kind,
        pages=(Page.of(pixels),),
        metadata=metadata,
        decode=lambda number: pixels,
        notes=notes,
        carried=carried,
    )


def write_other(file: IO[bytes], pixels: NDArray[Any], like: ImageFile) -> None:
    """Write an image without loss as the kind it came from, with its metadata."""
    pixels, metadata = np.ascontiguousarray(pixels), like.metadata
    if like.format == "webp":
        given = {"exif": metadata.exif, "icc_profile": metadata.icc, **_texts(like)}
        known = {name: value for name, value in given.items() if value}
        picture = Image.fromarray(pixels)
        picture.save(file, "WEBP", lossless=True, exact=True, method=4, **known)
    elif like.format in _PILLOW:
        density = {"dpi": metadata.density} if metadata.density else {}
        Image.fromarray(pixels).save(file, _PILLOW[like.format], **density)
    elif like.format == "jp2":
        kind = "j2k" if (_CODESTREAM, b"") in like.carried else "jp2"
        file.write(imagecodecs.jpeg2k_encode(pixels, level=0, reversible=True, codecformat=kind))
    else:
        file.write(
            imagecodecs.jpegxl_encode(pixels, lossless=True, usecontainer=True, numthreads=1)
        )
    for name, content in like.carried:
        if name in _KEPT:
            file.write(struct.pack(">I4s", 8 + len(content), name) + content)


_Read = tuple[NDArray[Any], Metadata, tuple[str, ...], tuple[tuple[bytes, bytes], ...]]


def _texts(like: ImageFile) -> dict[str, bytes]:
    return {name.decode(): content for name, content in like.carried}


def _read_by_pillow(kind: str, data: bytes, label: str) -> _Read:
    notes: list[str] = []
    with Image.open(io.BytesIO(data), formats=(_PILLOW[kind],)) as picture:
        info, mode = picture.info, picture.mode
        if kind == "netpbm":
            header = re.sub(rb"#[^\n]*", b"", data[:1000]).split()
            if mode != "F" and (header[3:4] not in ([b"255"], [b"65535"]) or mode == "1"):
                raise InputError(f"{label}: is a Netpbm image of few levels; save it as PNG first.")
            if mode == "RGB" and header[3] == b"65535":
                raise InputError(
                    f"{label}: is a Netpbm image of 16-bit colour, of which Pillow keeps 8; "
                    "convert it to PNG or TIFF first."
                )
        if mode == "1" or (kind == "bmp" and mode == "RGBA"):
            what = "1 bit a pixel" if mode == "1" else "transparency"
            raise InputError(f"{label}: is a BMP image with {what}; convert it to PNG first.")
        if mode == "P":
            notes.append("Its palette of colours is written as RGB: they do not fit it any more.")
        pixels = np.array(picture.convert("RGB") if mode == "P" else picture)
    if pixels.dtype == np.int32:
        pixels = pixels.astype(np.uint16)
    exif = info.get("exif", b"").removeprefix(b"Exif\0\0")
    metadata = Metadata.of(
        exif, info.get("icc_profile"), info.get("dpi") if kind == "bmp" else None
    )
    carried = ((b"xmp", info["xmp"]),) if kind == "webp" and "xmp" in info else ()
    return pixels, metadata, tuple(notes), carried


def _read_by_imagecodecs(kind: str, data: bytes, label: str) -> _Read:
    is_bare = data.startswith((_CODESTREAM, b"\xff\x0a"))
    found = () if is_bare else tuple(boxes(data))
    carried = tuple(box for box in found if box[0] in _KEPT)
    exif = next((content[4:] for name, content in carried if name == b"Exif"), None)
    if kind == "jp2":
        pixels = imagecodecs.jpeg2k_decode(data)
        has_profile = any(name == b"jp2h" and b"colr\2" in content for name, content in found)
        notes = ("Its colour profile is not kept.",) if has_profile else ()
        carried = ((_CODESTREAM, b""),) if is_bare else carried
    else:
        pixels = imagecodecs.jpegxl_decode(data, numthreads=1)
        notes = ("It is written without loss; a colour profile is not kept.",)
    return np.asarray(pixels), Metadata.of(exif, None), notes, carried
