"""JPEG files: 8-bit grey, colour and CMYK, with their metadata.

For missing data libjpeg fills in grey and only warns, which Pillow and imagecodecs ignore.
simplejpeg raises, and decodes in half of Pillow's time.
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
from kpca_apps.images.inks import invert_light, join_inks, split_inks
from kpca_apps.images.photographs.lossless import stated_size
from kpca_apps.images.types import Format, ImageFile, Metadata, Page, check_size, damage_refused

QUALITY = 95
# Number of channels, and the decoder's name for the colours, by Pillow's mode.
_COLOURS = {"L": (1, "GRAY"), "RGB": (3, "RGB"), "CMYK": (4, "CMYK")}
_JFIF, _APP1, _APP2, _PHOTOSHOP, _COMMENT = b"\xe0\xe1\xe2\xed\xfe"
PIXELS_PER_BYTE = 8 * 64  # a block of 8 x 8 pixels takes at least one bit of the file
# The decoder processes the whole image for each scan; progressive files have about ten scans.
_MAX_SCANS = 100
_SCAN_END = re.compile(rb"\xff(?=[^\0\xd0-\xd7\xff])")
_OWN_HEADER = 20  # bytes of the first marker and libjpeg's JFIF header
_SCAN_ENDS = re.compile(rb"\xff+(?=[\xc4\xd0-\xd7\xd9\xda\xdd])")


def read_jpeg(data: bytes) -> ImageFile:
    """Read a JPEG file of 8-bit grey, RGB or CMYK; only the first of several pictures."""
    with damage_refused():
        # Image.open would look for other pictures in the file.
        picture = JpegImageFile(io.BytesIO(data))
        if not picture.tile or picture.fp is None:
            raise InputError("is cut short before its pixels; fetch the file again.")
        scan = picture.fp.tell()
    if picture.mode not in _COLOURS:
        raise InputError(
            f"holds pixels of mode {picture.mode}, not grey or RGB; convert it to RGB first."
        )
    channels, colours = _COLOURS[picture.mode]
    page = Page(picture.height, picture.width, channels, np.dtype(np.uint8))
    ratio = PIXELS_PER_BYTE * channels
    # Check the first scan: even in a progressive file, that scan covers all blocks.
    end = _SCAN_END.search(data, scan)
    packed = (end.start() if end else len(data)) - scan
    check_size((page.height, page.width), channels, packed, ratio)
    if data.count(b"\xff\xda", scan) >= _MAX_SCANS:
        raise InputError(
            f"is packed in more than {_MAX_SCANS} scans, which no camera does; save it "
            "again as JPEG or PNG."
        )
    # Pillow names the markers APP0 to APP15 and COM.
    segments = [
        (_COMMENT if name == "COM" else _JFIF + int(name.removeprefix("APP")), content)
        for name, content in picture.applist
    ]
    is_one_of_several = any(content.startswith(b"MPF\0") for _, content in segments)
    info = picture.info
    # JFIF densities are per inch or per centimetre.
    scale = {1: 1.0, 2: 2.54}.get(info.get("jfif_unit", 0), 0.0)
    across, down = (scale * number for number in info.get("jfif_density", (0, 0)))

    def decoded(number: int) -> NDArray[np.uint8]:
        with damage_refused():
            pixels = decode_whole(data, colours)
            if pixels.shape != page.shape:
                raise ValueError("its pixels do not fit its header")
        return pixels

    image = ImageFile(
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
    # Pillow returns inverted CMYK, as Adobe stores it.
    return split_inks(image) if channels == 4 else image


def write_jpeg(file: IO[bytes], pages: Iterable[NDArray[Any]], like: ImageFile) -> None:
    """Write an 8-bit JPEG at quality 95 with full chroma and the file segments `like.carried`."""
    (pixels,), carried = join_inks(pages, like), like.carried
    buffer = io.BytesIO()
    extra = b"".join(
        b"\xff" + code + struct.pack(">H", len(content) + 2) + content for code, content in carried
    )
    stored, mode = (invert_light(pixels), "CMYK") if like.inks else (pixels, None)
    picture = Image.fromarray(np.ascontiguousarray(stored))
    if mode:
        picture = Image.frombuffer(mode, picture.size, picture.tobytes(), "raw", mode, 0, 1)
    # Optimised tables would save 3 %, but Pillow then fails on strong colour noise.
    picture.save(buffer, "JPEG", quality=QUALITY, subsampling=0, extra=extra)
    encoded = buffer.getvalue()
    # The carried JFIF or EXIF header states the density, so drop libjpeg's own header.
    if not like.inks and any(
        code[0] == _JFIF or content.startswith(b"Exif\0\0") for code, content in carried
    ):
        encoded = encoded[:2] + encoded[_OWN_HEADER:]
    file.write(encoded)


def decode_whole(data: bytes, colours: str) -> NDArray[np.uint8]:
    """Return a JPEG decoded as "GRAY", "RGB" or "CMYK"; raise ValueError if it is incomplete."""
    # Hide colour profiles: libjpeg warns if their parts are out of order, which changes no pixel.
    data = data.replace(b"ICC_PROFILE\0", b"ICC_profile\0")
    try:
        pixels = simplejpeg.decode_jpeg(data, colours, strict=True)
    except ValueError as error:
        if "subsampling" not in str(error):
            raise
        # To find scans cut off, decode again with bits added to their ends: the pixels must agree.
        picture = JpegImageFile(io.BytesIO(data))
        scan = 0 if picture.fp is None else picture.fp.tell()
        longer = data[:scan] + _SCAN_ENDS.sub(b"\x5a" * 64 + b"\xff", data[scan:])
        plain = np.array(picture)
        if not np.array_equal(np.array(JpegImageFile(io.BytesIO(longer))), plain):
            raise ValueError("a scan ends too early") from None
        return invert_light(plain) if colours == "CMYK" else plain
    return np.asarray(pixels[..., 0] if colours == "GRAY" else pixels)


def _carried(segments: Iterable[tuple[int, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the segments that remain valid for a denoised image, with their markers."""
    for code, content in segments:
        if code == _JFIF and content.startswith(b"JFIF\0") and len(content) >= 14:
            yield bytes([code]), content[:12] + b"\0\0"  # the header without its thumbnail
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
