"""JPEG files: grey, colour and inks of 8 bits, with their metadata.

libjpeg fills what is missing with grey and no more than warns of it. Pillow and imagecodecs pass
over its warnings; simplejpeg refuses an image with one, and decodes in half of Pillow's time.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO, Any

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from kpca_apps.errors import InputError
from kpca_apps.images.inks import ink_of, joined_inks, split_inks
from kpca_apps.images.photographs.lossless import stated_size
from kpca_apps.images.types import Format, ImageFile, Metadata, Page, check_size, damage_refused

QUALITY = 95
# Channels, and the decoder's word.
_COLOURS = {"L": (1, "GRAY"), "RGB": (3, "RGB"), "CMYK": (4, "CMYK")}
_JFIF, _APP1, _APP2, _PHOTOSHOP, _COMMENT = b"\xe0\xe1\xe2\xed\xfe"
# Each block of 8 x 8 pixels takes at least one bit of the file.
PIXELS_PER_BYTE = 8 * 64
# The decoder goes over the whole image for each scan; progressive files have about ten.
_MAX_SCANS = 100
_SCAN_END = re.compile(rb"\xff(?=[^\0\xd0-\xd7\xff])")
_OWN_HEADER = 20  # bytes of the first marker and the JFIF header, as libjpeg writes them
_SCAN_ENDS = re.compile(rb"\xff+(?=[\xc4\xd0-\xd7\xd9\xda\xdd])")


def read_jpeg(data: bytes, label: str) -> ImageFile:
    """Read a JPEG file of 8-bit grey, RGB or CMYK; of several pictures in one file the first."""
    with damage_refused(label):
        # Not Image.open, which would look for the other pictures of the file.
        picture = JpegImageFile(io.BytesIO(data))
        if not picture.tile or picture.fp is None:
            raise InputError(f"{label}: is cut short before its pixels; fetch the file again.")
        scan = picture.fp.tell()
    if picture.mode not in _COLOURS:
        raise InputError(
            f"{label}: holds pixels of mode {picture.mode}, not grey or RGB; convert it to RGB "
            "first."
        )
    channels, colours = _COLOURS[picture.mode]
    page = Page(picture.height, picture.width, channels, np.dtype(np.uint8))
    ratio = PIXELS_PER_BYTE * channels
    # Of a progressive file the first scan holds a part of each block, and libjpeg allocates all.
    end = _SCAN_END.search(data, scan)
    packed = (end.start() if end else len(data)) - scan
    check_size(label, (page.height, page.width), channels, packed, ratio)
    if data.count(b"\xff\xda", scan) >= _MAX_SCANS:
        raise InputError(
            f"{label}: is packed in more than {_MAX_SCANS} scans, which no camera does; save it "
            "anew as JPEG or PNG."
        )
    # Pillow calls the markers APP0 to APP15 and COM.
    segments = [
        (_COMMENT if name == "COM" else _JFIF + int(name.removeprefix("APP")), content)
        for name, content in picture.applist
    ]
    is_one_of_several = any(content.startswith(b"MPF\0") for _, content in segments)
    info = picture.info
    # The JFIF header counts in inches or centimetres.
    scale = {1: 1.0, 2: 2.54}.get(info.get("jfif_unit", 0), 0.0)
    across, down = (scale * number for number in info.get("jfif_density", (0, 0)))

    def decoded(number: int) -> NDArray[np.uint8]:
        with damage_refused(label):
            pixels = decode_whole(data, colours)
            if pixels.shape != page.shape:
                raise ValueError("its pixels do not fit its header")
        return pixels

    image = ImageFile(
        label=label,
        format="jpeg",
        pages=(page,),
        metadata=Metadata.of(
            info.get("exif"), info.get("icc_profile"), (across, down) if across and down else None
        ),
        page=decoded,
        notes=(
            *("Of the pictures in the file, the first is denoised and kept.",) * is_one_of_several,
            *("It is progressive, and written as a baseline JPEG.",) * ("progressive" in info),
        ),
        carried=tuple(_carried(segments)),
    )
    # As Adobe stores inks, and Pillow reads them: what they leave of white.
    return split_inks(image) if channels == 4 else image


def write_jpeg(file: IO[bytes], pages: Iterable[NDArray[Any]], like: ImageFile) -> None:
    """Write an image of 8 bits as JPEG at quality 95 with full chroma, with further segments."""
    (pixels,), carried = joined_inks(pages, like), like.carried
    buffer = io.BytesIO()
    extra = b"".join(
        b"\xff" + code + struct.pack(">H", len(content) + 2) + content for code, content in carried
    )
    stored, mode = (ink_of(pixels), "CMYK") if like.inks else (pixels, None)
    picture = Image.fromarray(np.ascontiguousarray(stored))
    if mode:
        picture = Image.frombuffer(mode, picture.size, picture.tobytes(), "raw", mode, 0, 1)
    # Tables fitted to the image would save 3 %, but Pillow then fails on much noise in colour.
    picture.save(buffer, "JPEG", quality=QUALITY, subsampling=0, extra=extra)
    encoded = buffer.getvalue()
    # Either header says how dense the pixels are; one of our own would say otherwise.
    if not like.inks and any(
        code[0] == _JFIF or content.startswith(b"Exif\0\0") for code, content in carried
    ):
        encoded = encoded[:2] + encoded[_OWN_HEADER:]
    file.write(encoded)


def decode_whole(data: bytes, colours: str) -> NDArray[np.uint8]:
    """Decode a JPEG as "GRAY", "RGB" or "CMYK"; ValueError if it is not whole."""
    # Renamed, for libjpeg warns of a profile in disorder, and that costs no pixel.
    data = data.replace(b"ICC_PROFILE\0", b"ICC_profile\0")
    try:
        pixels = simplejpeg.decode_jpeg(data, colours, strict=True)
    except ValueError as error:
        if "subsampling" not in str(error):
            raise
        # Colour coarser than in any common file. Of a whole image, more bits change no pixel.
        picture = JpegImageFile(io.BytesIO(data))
        scan = 0 if picture.fp is None else picture.fp.tell()
        longer = data[:scan] + _SCAN_ENDS.sub(b"\x5a" * 64 + b"\xff", data[scan:])
        plain = np.array(picture)
        if not np.array_equal(np.array(JpegImageFile(io.BytesIO(longer))), plain):
            raise ValueError("a scan ends too early") from None
        return ink_of(plain) if colours == "CMYK" else plain
    return np.asarray(pixels[..., 0] if colours == "GRAY" else pixels)


def _carried(segments: Iterable[tuple[int, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Yield what stays true of segments once the denoised image is written, by their markers."""
    for code, content in segments:
        if code == _JFIF and content.startswith(b"JFIF\0") and len(content) >= 14:
            yield bytes([code]), content[:12] + b"\0\0"  # without a thumbnail
        is_profile = code == _APP2 and content.startswith(b"ICC_PROFILE\0")
        if content and (is_profile or code in (_APP1, _PHOTOSHOP, _COMMENT)):
            yield bytes([code]), content


FORMAT = Format(
    mark=rb"\xff\xd8\xff",
    suffixes=(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"),
    read=read_jpeg,
    write=write_jpeg,
    size=partial(stated_size, "jpeg"),
)
