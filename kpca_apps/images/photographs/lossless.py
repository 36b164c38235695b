"""WebP, JPEG 2000, JPEG XL, BMP and Netpbm, read and written back without loss.

Also reads the size that an image states, before any decoder runs.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO, Any, NamedTuple

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kpca_apps.errors import InputError
from kpca_apps.images.types import (
    Format,
    ImageFile,
    Metadata,
    Page,
    Parts,
    check_size,
    damage_refused,
)
from kpca_apps.system.limits import require_memory

# Maximum ratio of unpacked to packed bytes, for formats that pack a constant image to few bytes.
UNBOUNDED = 1 << 30
_RATIOS = {"bmp": 400, "netpbm": 8}
_NAMES = {"bmp": "BMP", "netpbm": "PPM", "webp": "WEBP"}
# Formats whose headers Pillow reads; not used for WebP, as Pillow would allocate all its pixels.
_HEADER_NAMES = {**_NAMES, "jp2": "JPEG2000", "jpeg": "JPEG", "png": "PNG"}
_BITS = b"bits"  # key in `carried` of the number of bits per sample
_JP2_STREAM, _JXL_STREAM = b"\xff\x4f", b"\xff\x0a"
_CARRIED = frozenset({b"uuid", b"xml ", b"Exif", b"brob"})  # boxes that stay valid after denoising
_TYPES = frozenset({"uint8", "uint16", "float32"})
# JPEG XL headers: number of bits of a side, by a 2-bit code; width : height, by a 3-bit code.
_JXL_BITS = (9, 13, 18, 30)
_JXL_RATIOS = {1: (1, 1), 2: (12, 10), 3: (4, 3), 4: (3, 2), 5: (16, 9), 6: (5, 4), 7: (2, 1)}


def read_lossless(kind: str, data: bytes) -> ImageFile:
    """Read an image of a kind in `FORMATS`; it is decoded at once."""
    if kind == "webp" and data[12:16] == b"VP8X" and len(data) > 20 and data[20] & 2:
        raise InputError("is an animated WebP image; save its frames as PNG first.")
    with damage_refused():
        if kind == "jxl" and _jxl_header(data).has_frames:
            raise InputError("is a JPEG XL image of several pictures; save each as PNG first.")
        size = stated_size(kind, data)
        check_size(size, 8, len(data), _RATIOS.get(kind, UNBOUNDED))
        require_memory(4 * size[0] * size[1])
        read = _read_by_pillow if kind in _NAMES else _read_by_imagecodecs
        pixels, metadata, notes, carried = read(kind, data)
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    page = Page(pixels.shape[0], pixels.shape[1], channels, pixels.dtype)
    if pixels.ndim not in (2, 3) or channels > 4 or str(pixels.dtype) not in _TYPES:
        raise InputError(
            f"holds {pixels.dtype} values of shape {pixels.shape}; save it as 8-bit or "
            "16-bit grey or RGB, in a TIFF if it has several pages."
        )
    return ImageFile(kind, (page,), lambda number: pixels, metadata, notes, carried)


_Read = tuple[NDArray[Any], Metadata, tuple[str, ...], Parts]


def _read_by_pillow(kind: str, data: bytes) -> _Read:
    with Image.open(io.BytesIO(data), formats=(_NAMES[kind],)) as picture:
        info, mode, refused = picture.info, picture.mode, ""
        levels = re.sub(rb"#[^\n]*", b"", data[:1000]).split()[3:4] if kind == "netpbm" else []
        if mode == "1":
            refused = "1 bit a pixel, which leaves no grey; scan or save it as 8-bit grey"
        elif kind == "bmp" and mode == "RGBA":
            refused = "transparency; convert it to PNG or TIFF first"
        elif kind == "netpbm" and mode != "F" and levels not in ([b"255"], [b"65535"]):
            refused = "few levels; convert it to PNG or TIFF first"
        elif mode == "RGB" and levels == [b"65535"]:
            refused = "16-bit colours, of which Pillow keeps 8; convert it to PNG or TIFF first"
        if refused:
            raise InputError(f"has {refused}.")
        pixels = np.array(picture.convert("RGB") if mode == "P" else picture)
    notes = []
    if mode == "P":
        notes.append("Its palette of colours is written as RGB: denoised colours do not fit it.")
    if kind == "webp" and b"VP8 " in (data[12:16], data[30:34]):
        notes.append("It is written without loss, and takes more space.")
    metadata = Metadata.of(
        info.get("exif"), info.get("icc_profile"), info.get("dpi") if kind == "bmp" else None
    )
    pixels = pixels.astype(np.uint16) if pixels.dtype == np.int32 else pixels
    return pixels, metadata, tuple(notes), ((b"xmp", info["xmp"]),) if "xmp" in info else ()


def _read_by_imagecodecs(kind: str, data: bytes) -> _Read:
    is_bare = data.startswith((_JP2_STREAM, _JXL_STREAM))
    all_boxes = () if is_bare else tuple(boxes(data))
    carried = tuple(box for box in all_boxes if box[0] in _CARRIED)
    exif = next((content[4:] for name, content in carried if name == b"Exif"), None)
    notes: tuple[str, ...] = ()
    if kind == "jxl":
        bits = _jxl_header(data).bits
        pixels = imagecodecs.jpegxl_decode(data, numthreads=1)
        notes = ("It is written without loss; a colour profile is not kept.",)
    else:
        pixels = imagecodecs.jpeg2k_decode(data)
        stream = data if is_bare else dict(all_boxes)[b"jp2c"]
        # Largest bit depth of a component: ITU-T T.800 (2019), A.5.1.
        (count,) = struct.unpack_from(">H", stream, 40)
        bits = max(1 + (depth & 0x7F) for depth in stream[42 : 42 + 3 * count : 3])
        if any(name == b"jp2h" and b"colr\2" in content for name, content in all_boxes):
            notes = ("Its colour profile is not kept.",)
        if is_bare:
            carried = ((_JP2_STREAM, b""),)
    carried = (*carried, (_BITS, bytes([bits])))
    return np.asarray(pixels), Metadata.of(exif, None), notes, carried


def _write_lossless(file: IO[bytes], pages: Iterable[NDArray[Any]], like: ImageFile) -> None:
    kind, metadata, carried = like.format, like.metadata, dict(like.carried)
    (page,) = pages
    pixels = np.ascontiguousarray(page)
    if kind in ("jxl", "jp2"):
        bits = min(carried[_BITS][0], 8 * pixels.itemsize)
        if pixels.dtype.kind == "u":
            pixels = np.minimum(pixels, np.array((1 << bits) - 1, pixels.dtype))
        options: dict[str, Any] = {"bitspersample": bits}
    if kind == "jxl":
        options |= {"lossless": True, "usecontainer": True, "numthreads": 1}
        file.write(imagecodecs.jpegxl_encode(pixels, **options))
    elif kind == "jp2":
        options |= {"codecformat": "j2k" if _JP2_STREAM in carried else "jp2"}
        file.write(imagecodecs.jpeg2k_encode(pixels, level=0, reversible=True, **options))
    else:
        options = {
            "exif": metadata.exif,
            "icc_profile": metadata.icc,
            "xmp": carried.get(b"xmp"),
            "dpi": metadata.density,
        }
        options = {name: value for name, value in options.items() if value}
        if kind == "webp":
            options |= {"lossless": True, "exact": True, "method": 4}
        Image.fromarray(pixels).save(file, _NAMES[kind], **options)
    for name, content in like.carried:
        if name in _CARRIED:
            file.write(struct.pack(">I4s", 8 + len(content), name) + content)


def boxes(data: bytes, *, whole: bool = True) -> Iterator[tuple[bytes, bytes]]:
    """Yield type and content of the outermost boxes of a JPEG 2000 or JPEG XL file.

    Unless `data` is the ``whole`` file, the last box may be incomplete.
    """
    place = 0
    while place + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, place)
        start = place + 8
        if size == 1:
            size = struct.unpack_from(">Q", data, start)[0]
            start += 8
        end = place + size if size else len(data)
        if not start <= end or (whole and end > len(data)):
            raise ValueError("a box lies beyond the end of the file")
        yield kind, data[start:end]
        place = end


def stated_size(kind: str, data: bytes) -> tuple[int, int]:
    """Return the stated height and width; damaged headers raise the library's exception."""
    if kind == "jxl":
        height, width, has_frames, _ = _jxl_header(data)
        if has_frames:
            raise ValueError("an animation")
    elif kind != "webp":
        with Image.open(io.BytesIO(data), formats=(_HEADER_NAMES[kind],)) as picture:
            height, width = picture.height, picture.width
    elif data[12:16] == b"VP8X":
        width, height = (1 + int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
    elif data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    else:
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", data, 26))
    return height, width


class _JxlHeader(NamedTuple):
    height: int
    width: int
    has_frames: bool  # whether there may be several pictures
    bits: int  # number of bits per sample


def _jxl_header(data: bytes) -> _JxlHeader:
    """Return the header of a JPEG XL image: ISO/IEC 18181-1 (2024), annex D."""
    stream = data
    if not data.startswith(_JXL_STREAM):
        found = (box for box in boxes(data, whole=False) if box[0] in (b"jxlc", b"jxlp"))
        name, content = next(found, (b"", b""))
        stream = content[4:] if name == b"jxlp" else content
        if not stream:
            raise ValueError("it has no pixels")
    bits = int.from_bytes(stream[2:34], "little")

    def take(n_bits: int) -> int:
        nonlocal bits
        value, bits = bits & ((1 << n_bits) - 1), bits >> n_bits
        return value

    def size() -> tuple[int, int]:
        small = take(1)

        def side() -> int:
            return 8 * (1 + take(5)) if small else 1 + take(_JXL_BITS[take(2)])

        height = side()
        ratio = _JXL_RATIOS.get(take(3))
        return height, height * ratio[0] // ratio[1] if ratio else side()

    height, width = size()
    has_frames, bits_of_sample = False, 8
    if not take(1):  # a set bit means that all fields have their defaults
        # Skip orientation and intrinsic size.
        if take(1):
            take(3)
            if take(1):
                size()
            # A preview or an animation; the header does not give the number of frames.
            has_frames = bool(take(1) or take(1))
        is_float = take(1)
        selector = take(2)
        bits_of_sample = ((32, 16, 24, 0) if is_float else (8, 10, 12, 0))[selector]
        bits_of_sample = bits_of_sample or 1 + take(6)
    return _JxlHeader(height, width, has_frames, bits_of_sample)


_MARKS = {
    "webp": (rb"RIFF.{4}WEBP", ".webp"),
    "jp2": (rb".{4}jP  \r\n\x87\n|\xff\x4f\xff\x51", ".jp2 .j2k .jpf .jpx .j2c .jpc"),
    "jxl": (rb"\xff\x0a|.{4}JXL \r\n\x87\n", ".jxl"),
    "bmp": (rb"BM", ".bmp .dib"),
    "netpbm": (rb"P[1-6Ff]\s+[#0-9]", ".pnm .ppm .pgm .pbm .pfm"),
}
FORMATS = {
    kind: Format(
        mark=mark,
        suffixes=tuple(suffixes.split()),
        read=partial(read_lossless, kind),
        write=_write_lossless,
        size=partial(stated_size, kind),
    )
    for kind, (mark, suffixes) in _MARKS.items()
}
