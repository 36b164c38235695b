"""Height and width an image of some kind states, read before a decoder is let near it."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

from PIL import Image

__all__ = ["UNBOUNDED", "boxes", "stated_size"]

# Bytes that one byte can become where a kind has no bound: an image of one colour takes a few.
UNBOUNDED = 1 << 20
# Pillow reads no more of these than the header; of WebP it allocates the picture at once.
_BY_PILLOW = {
    "bmp": "BMP",
    "jp2": "JPEG2000",
    "jpeg": "JPEG",
    "netpbm": "PPM",
    "png": "PNG",
}
# JPEG XL: bits of a number by the selector before it, and width by height.
_JXL_BITS = (9, 13, 18, 30)
_JXL_RATIOS = {1: (1, 1), 2: (12, 10), 3: (4, 3), 4: (3, 2), 5: (16, 9), 6: (5, 4), 7: (2, 1)}


def stated_size(kind: str, data: bytes) -> tuple[int, int]:
    """Return height and width; what a damaged header makes a library raise comes through."""
    if kind == "webp":
        return _webp_size(data)
    if kind == "jxl":
        return _jxl_size(data)
    if kind == "lerc":
        height, width = struct.unpack_from("<ii", data, 14)
        return height, width
    with Image.open(io.BytesIO(data), formats=(_BY_PILLOW[kind],)) as picture:
        return picture.height, picture.width


def boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the outermost boxes of a JPEG 2000 or JPEG XL file: their type and content."""
    place = 0
    while place + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, place)
        start = place + 8
        if size == 1:
            size = struct.unpack_from(">Q", data, start)[0]
            start += 8
        end = place + size if size else len(data)
        if not start <= end <= len(data):
            raise ValueError("a box lies beyond the end of the file")
        yield kind, data[start:end]
        place = end


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[27:30], "little"), 1 + int.from_bytes(data[24:27], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits >> 14 & 0x3FFF), 1 + (bits & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return height & 0x3FFF, width & 0x3FFF


def _jxl_size(data: bytes) -> tuple[int, int]:
    stream = data
    if not data.startswith(b"\xff\x0a"):
        inside = dict(reversed(list(boxes(data))))  # the first of a kind
        stream = inside.get(b"jxlc") or inside[b"jxlp"][4:]
    bits = int.from_bytes(stream[2:16], "little")

    def take(n_bits: int) -> int:
        nonlocal bits
        value, bits = bits & ((1 << n_bits) - 1), bits >> n_bits
        return value

    small = take(1)

    def side() -> int:
        return 8 * (1 + take(5)) if small else 1 + take(_JXL_BITS[take(2)])

    height = side()
    ratio = _JXL_RATIOS.get(take(3))
    return height, height * ratio[0] // ratio[1] if ratio else side()
