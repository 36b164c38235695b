"""PNG files: pixels by libpng, metadata chunks carried over.

imagecodecs decodes them, as Pillow silently truncates 16-bit colour to 8 bits. W3C, Portable
Network Graphics, third edition (2025).
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO, Any, NamedTuple

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.images.photographs.lossless import stated_size
from kpca_apps.images.types import (
    DEFLATE_RATIO,
    Format,
    ImageFile,
    Metadata,
    Page,
    Parts,
    check_size,
    damage_refused,
)

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER, _HEADER_END = ">IIBBBBB", 33
_GREY, _RGB, _PALETTE = 0, 2, 3
# Number of stored channels, and supported bit depths, by colour type.
_COLOURS = {_GREY: (1, (2, 4, 8, 16)), _RGB: (3, (8, 16)), _PALETTE: (1, (2, 4, 8))}
_COLOURS |= {4: (2, (8, 16)), 6: (4, (8, 16))}
_INCH = 0.0254  # metres
# Chunks that remain valid for denoised pixels, and chunks valid only for the same colour type.
_CARRIED = frozenset(b"cHRM cICP cLLI gAMA iCCP iTXt mDCV pHYs sRGB tEXt tIME zTXt eXIf".split())
_IF_SAME = frozenset((b"bKGD", b"sBIT"))
_MAX_PROFILE = 1 << 24


class _Header(NamedTuple):
    width: int
    height: int
    depth: int
    colour: int
    packing: int
    filtering: int
    lacing: int


def read_png(data: bytes) -> ImageFile:
    """Read a PNG file; 1-bit images and animations are refused."""
    chunks = tuple(_chunks(data))
    named = dict(reversed(chunks))
    header = _header(chunks[0], named)
    pixels = tuple(chunk for chunk in chunks if chunk[0] == b"IDAT")
    key = named.get(b"tRNS", b"")
    channels, is_palette = _COLOURS[header.colour][0], header.colour == _PALETTE
    # Like libpng, ignore a transparent colour of the wrong length.
    transparent = len(key) > 0 if is_palette else len(key) == {0: 2, 2: 6}.get(header.colour)
    n_channels = (3 if is_palette else channels) + transparent
    dtype = np.dtype(np.uint16 if header.depth == 16 else np.uint8)
    packed = sum(len(content) for _, content in pixels)
    size = header.height, header.width
    check_size(size, n_channels * dtype.itemsize, packed, DEFLATE_RATIO)
    notes = []
    if is_palette:
        notes.append("Its palette of colours is written as RGB: denoised colours do not fit it.")
    elif header.depth < 8:
        notes.append(f"Its {header.depth}-bit grey is written as 8-bit grey.")
    if transparent:
        notes.append("Its transparent colour is written as an alpha channel.")

    def page(number: int) -> NDArray[Any]:
        if not is_palette:
            return _decoded(header, (*[(b"tRNS", key)] * transparent, *pixels))
        # Look up palette entries here, as libpng renders missing entries as black.
        places = _decoded(header._replace(colour=_GREY), pixels)
        places //= np.uint8(255 // (2**header.depth - 1))
        colours = np.frombuffer(named[b"PLTE"], np.uint8).reshape(-1, 3)
        if int(places.max()) >= len(colours):
            raise InputError(
                "a pixel has a colour that is not in its palette; fetch the file again."
            )
        if transparent:
            alpha = key[: len(colours)].ljust(len(colours), b"\xff")
            colours = np.column_stack([colours, np.frombuffer(alpha, np.uint8)])
        return np.asarray(colours[places])

    density, unit = named.get(b"pHYs", b"").ljust(9, b"\0")[:8], named.get(b"pHYs", b"")[8:]
    across, down = (number * _INCH for number in struct.unpack(">II", density))
    return ImageFile(
        format="png",
        pages=(Page(*size, n_channels, dtype),),
        metadata=Metadata.of(
            named.get(b"eXIf"),
            _profile(named.get(b"iCCP", b"")),
            (across, down) if unit == b"\1" and across and down else None,
        ),
        page=page,
        notes=tuple(notes),
        carried=tuple(c for c in chunks if c[0] in _CARRIED or (not notes and c[0] in _IF_SAME)),
    )


def write_png(file: IO[bytes], pages: Iterable[NDArray[Any]], like: ImageFile) -> None:
    """Write an 8- or 16-bit image of 1 to 4 channels as PNG, with its metadata chunks."""
    (pixels,) = pages
    # imagecodecs (2026.3.6) reserves too little for narrow images, as each row has one more byte.
    reserved = pixels.nbytes + len(pixels) + pixels.nbytes // 100 + (1 << 12)
    # Level 4 takes .4 of the time of level 6; photographs become 1 to 2.5 % larger.
    encoded = imagecodecs.png_encode(
        np.ascontiguousarray(pixels), level=4, filter=imagecodecs.PNG.FILTER.ALL, out=reserved
    )
    carried = like.carried if like.format == "png" else _metadata_chunks(like.metadata)
    chunks = b"".join(_as_chunk(*chunk) for chunk in carried)
    file.write(encoded[:_HEADER_END] + chunks + encoded[_HEADER_END:])


def _metadata_chunks(metadata: Metadata) -> Parts:
    """Return chunks for metadata that came from another format."""
    chunks: list[tuple[bytes, bytes]] = []
    if metadata.icc is not None:
        chunks.append((b"iCCP", b"ICC profile\0\0" + zlib.compress(metadata.icc)))
    if metadata.exif is not None:
        chunks.append((b"eXIf", metadata.exif))
    if metadata.density is not None:
        across, down = (round(number / _INCH) for number in metadata.density)
        chunks.append((b"pHYs", struct.pack(">IIB", across, down, 1)))
    return tuple(chunks)


def _as_chunk(name: bytes, content: bytes) -> bytes:
    body = name + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the chunks with correct checksums; raise InputError for damage."""
    place, name = len(SIGNATURE), b""
    while name != b"IEND":
        length, name = struct.unpack(">I4s", data[place : place + 8].ljust(8))
        end = place + 12 + length
        if end > len(data):
            raise InputError("is cut short; fetch the file again.")
        content = data[place + 8 : end - 4]
        if zlib.crc32(content, zlib.crc32(name)) == int.from_bytes(data[end - 4 : end], "big"):
            yield name, content
        elif not name[0] & 32:
            shown = name.decode("latin-1") if name.isalpha() else "unnamed"
            raise InputError(f"its {shown} chunk is damaged; fetch the file again.")
        place = end


def _header(first: tuple[bytes, bytes], named: dict[bytes, bytes]) -> _Header:
    name, content = first
    header = _Header(*struct.unpack(_HEADER, content.ljust(13)[:13]))
    is_palette = header.colour == _PALETTE
    if name != b"IHDR" or len(content) != 13:
        damage = "it has no PNG header; fetch the file again"
    elif b"acTL" in named:
        damage = "is an animated PNG, which is not read; save its frames as PNG first"
    elif header.depth == 1:
        damage = "holds 1 bit a pixel, which leaves no grey; scan or save it as 8-bit grey"
    elif header.depth not in _COLOURS.get(header.colour, (0, ()))[1] or max(header[4:]) > 1:
        damage = "its PNG header is damaged; fetch the file again"
    elif b"IDAT" not in named or (is_palette and b"PLTE" not in named):
        damage = "holds no pixels; fetch the file again"
    elif is_palette and len(named[b"PLTE"]) % 3:
        damage = "its palette is damaged; fetch the file again"
    else:
        return header
    raise InputError(f"{damage}.")


def _decoded(header: _Header, chunks: Parts) -> NDArray[Any]:
    """Return the pixels decoded by libpng from the essential chunks alone."""
    first, last = (b"IHDR", struct.pack(_HEADER, *header)), (b"IEND", b"")
    needed = b"".join(_as_chunk(*chunk) for chunk in (first, *chunks, last))
    with damage_refused():
        return np.asarray(imagecodecs.png_decode(SIGNATURE + needed))


def _profile(chunk: bytes) -> bytes | None:
    """Return the colour profile of an iCCP chunk, or None if it is damaged."""
    try:
        return zlib.decompressobj().decompress(chunk.partition(b"\0")[2][1:], _MAX_PROFILE)
    except zlib.error:
        return None


FORMAT = Format(
    re.escape(SIGNATURE), (".png", ".apng"), read_png, write_png, partial(stated_size, "png")
)
