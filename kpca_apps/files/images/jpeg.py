"""JPEG files: grey and colour of 8 bits, read and written by Pillow, with their metadata.

libjpeg fills what is missing with grey and says nothing; whether an image is whole is told by
libjxl, which must read each bit of it to pack it anew, and does so at 30 megapixels a second.
"""

from __future__ import annotations

import io
import re
import struct
from typing import IO

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from kpca_apps.errors import InputError
from kpca_apps.files.images.limits import check_size, damage_refused
from kpca_apps.files.images.types import ImageFile, Metadata, Page, Parts

__all__ = ["PIXELS_PER_BYTE", "read_jpeg", "require_whole", "write_jpeg"]

QUALITY = 95
_JFIF, _APP1, _APP2, _PHOTOSHOP, _ADOBE, _COMMENT = b"\xe0\xe1\xe2\xed\xee\xfe"
# Each block of 8 x 8 pixels takes at least one bit of the file.
PIXELS_PER_BYTE = 8 * 64
# The decoder goes over the whole image for each scan; progressive files have about ten.
_MAX_SCANS = 100
_OWN_HEADER = 20  # bytes of the first marker and the JFIF header, as libjpeg writes them
_SCAN_ENDS = re.compile(rb"\xff+(?=[\xc4\xd0-\xd7\xd9\xda\xdd])")
_RESTARTS = re.compile(rb"\xff\xdd\0\x04(..)", re.DOTALL)


def read_jpeg(data: bytes, label: str) -> ImageFile:
    """Read a JPEG file of 8-bit grey or RGB; of several pictures in one file the first."""
    with damage_refused(label):
        # Not Image.open, which would look for the other pictures of the file.
        picture = JpegImageFile(io.BytesIO(data))
        if not picture.tile or picture.fp is None:
            raise InputError(f"{label}: is cut short before its pixels; fetch the file again.")
        scan = picture.fp.tell()
    channels = {"L": 1, "RGB": 3}.get(picture.mode)
    if channels is None:
        what = "CMYK inks" if picture.mode == "CMYK" else f"pixels of mode {picture.mode}"
        raise InputError(f"{label}: holds {what}, not grey or RGB; convert it to RGB first.")
    page = Page(picture.height, picture.width, channels, np.dtype(np.uint8))
    ratio = PIXELS_PER_BYTE * channels
    check_size(label, (page.height, page.width), channels, len(data) - scan, ratio)
    if data.count(b"\xff\xda", scan) >= _MAX_SCANS:
        raise InputError(
            f"{label}: is packed in more than {_MAX_SCANS} scans, which no camera does; save it "
            "anew as JPEG or PNG."
        )
    segments = tuple((_code(name), content) for name, content in picture.applist)
    is_one_of_several = any(content.startswith(b"MPF\0") for _, content in segments)
    info = picture.info
    # The JFIF header counts in inches or centimetres.
    scale = {1: 1.0, 2: 2.54}.get(info.get("jfif_unit", 0), 0.0)
    across, down = (scale * number for number in info.get("jfif_density", (0, 0)))
    exif = info.get("exif", b"").removeprefix(b"Exif\0\0")
    return ImageFile(
        label=label,
        format="jpeg",
        pages=(page,),
        metadata=Metadata.of(
            exif, info.get("icc_profile"), (across, down) if across and down else None
        ),
        page=lambda number: _decoded(_bare(data, segments, label), page, label),
        notes=("Of the pictures in the file, the first is denoised and kept.",) * is_one_of_several,
        carried=tuple(segment for segment in map(_carried, segments) if segment[1]),
    )


def write_jpeg(file: IO[bytes], pixels: NDArray[np.uint8], carried: Parts) -> None:
    """Write an image of 8 bits as JPEG at quality 95 with full chroma, with further segments."""
    buffer, extra = io.BytesIO(), b"".join(_as_segment(*segment) for segment in carried)
    # Tables fitted to the image would save 3 %, but Pillow then fails on much noise in colour.
    Image.fromarray(np.ascontiguousarray(pixels)).save(
        buffer, "JPEG", quality=QUALITY, subsampling=0, extra=extra
    )
    encoded = buffer.getvalue()
    # Either header says how dense the pixels are; one of our own would say otherwise.
    if any(code[0] == _JFIF or content.startswith(b"Exif\0\0") for code, content in carried):
        encoded = encoded[:2] + encoded[_OWN_HEADER:]
    file.write(encoded)


def require_whole(bare: bytes, label: str) -> None:
    """Refuse a JPEG without metadata whose pixels are damaged or end too early."""
    try:
        imagecodecs.jpegxl_encode_jpeg(bare, numthreads=1)
    except imagecodecs.JpegxlError:
        raise InputError(
            f"{label}: its pixels are damaged or cut short; fetch the file again."
        ) from None


def _decoded(bare: bytes, page: Page, label: str) -> NDArray[np.uint8]:
    with damage_refused(label):
        picture = JpegImageFile(io.BytesIO(bare))
        # libjxl knows no coarser colour, and restarts of one length; it is asked first, for it
        # gives up early.
        is_known = max(max(layer[1:3]) for layer in picture.layer) <= 2
        is_known &= len(set(_RESTARTS.findall(bare))) <= 1
        if is_known:
            require_whole(bare, label)
        pixels = np.array(picture)
        if not is_known:
            # Of a whole image, bits added to each scan change no pixel.
            longer = JpegImageFile(io.BytesIO(_SCAN_ENDS.sub(b"\x5a" * 64 + b"\xff", bare)))
            if not np.array_equal(np.array(longer), pixels):
                raise ValueError("a scan ends too early")
    if pixels.shape != page.shape:
        raise InputError(f"{label}: its pixels do not fit its header; fetch the file again.")
    return pixels


def _bare(data: bytes, segments: Parts, label: str) -> bytes:
    """Return a file without its metadata, which may be damaged where its pixels are not."""
    parts, place = [], 0
    for code, content in segments:
        segment = _as_segment(code, content)
        start = data.find(segment, place)
        if start < 0:
            raise InputError(f"{label}: its header is cut short; fetch the file again.")
        end = start + len(segment)
        parts.append(data[place : end if code[0] in (_JFIF, _ADOBE) else start])
        place = end
    return b"".join([*parts, data[place:]])


def _code(name: str) -> bytes:
    """Return the second byte of the marker that Pillow calls APP0 to APP15 or COM."""
    return bytes([_COMMENT if name == "COM" else _JFIF + int(name.removeprefix("APP"))])


def _as_segment(code: bytes, content: bytes) -> bytes:
    return b"\xff" + code + struct.pack(">H", len(content) + 2) + content


def _carried(segment: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return what stays true of a segment once the denoised image is written anew, or nothing."""
    code, content = segment
    if code[0] == _JFIF and content.startswith(b"JFIF\0") and len(content) >= 14:
        return code, content[:12] + b"\0\0"  # without a thumbnail
    is_profile = code[0] == _APP2 and content.startswith(b"ICC_PROFILE\0")
    return segment if is_profile or code[0] in (_APP1, _PHOTOSHOP, _COMMENT) else (code, b"")
