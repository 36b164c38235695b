"""PNG files of 8 and 16 bits a channel: pixels by libpng, chunks of metadata carried over.

By imagecodecs and not by Pillow, which cuts 16-bit colour to 8 bits without a word.

References
----------
W3C, Portable Network Graphics, third edition (2025).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.images.limits import check_promise, damage_refused
from kpca_apps.files.images.types import ImageFile, Metadata, Page

__all__ = ["carry_metadata", "read_png", "write_png"]

Chunks = tuple[tuple[bytes, bytes], ...]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER_END = 33  # bytes of the signature and the first chunk
_GREY, _RGB, _PALETTE = 0, 2, 3
# Colour type: channels as stored, bit depths allowed.
_COLOURS = {
    _GREY: (1, (1, 2, 4, 8, 16)),
    _RGB: (3, (8, 16)),
    _PALETTE: (1, (1, 2, 4, 8)),
    4: (2, (8, 16)),
    6: (4, (8, 16)),
}
_INCH = 0.0254  # metres
# Chunks that stay true of the denoised pixels, and those that do only for the same colour type.
_KEPT = frozenset(b"cHRM cICP cLLI gAMA iCCP iTXt mDCV pHYs sRGB tEXt tIME zTXt eXIf".split())
_KEPT_IF_SAME = frozenset((b"bKGD", b"sBIT"))
_MAX_PROFILE = 1 << 24


class _Header(NamedTuple):
    width: int
    height: int
    depth: int
    colour: int
    packing: int
    filtering: int
    lacing: int

    @property
    def stored(self) -> int:
        return _COLOURS[self.colour][0]


def read_png(data: bytes, label: str) -> ImageFile:
    """Read a PNG file; images of 1 bit and animations are refused.

    Palettes come out as RGB, grey of 2 and 4 bits as 8 bits, a transparent colour as an alpha
    channel; each is noted.
    """
    chunks = tuple(_chunks(data, label))
    header, held = _header(chunks, label), dict(reversed(chunks))
    packed = sum(len(content) for name, content in chunks if name == b"IDAT")
    key = held.get(b"tRNS", b"")
    if header.colour == _PALETTE:
        colours, transparent = 3, b"tRNS" in held
    else:
        colours, transparent = header.stored, len(key) == {_GREY: 2, _RGB: 6}.get(header.colour)
    dtype = np.dtype(np.uint16 if header.depth == 16 else np.uint8)
    page = Page(header.height, header.width, colours + transparent, dtype)
    check_promise(label, page.height, page.width, page.channels * dtype.itemsize, packed)
    pixels = tuple(chunk for chunk in chunks if chunk[0] == b"IDAT")
    notes = []
    if header.colour == _PALETTE:
        notes.append("Its palette of colours is written as RGB: denoised colours do not fit it.")
    elif header.depth < 8:
        notes.append(f"Its {header.depth}-bit grey is written as 8-bit grey.")
    if transparent:
        notes.append("Its transparent colour is written as an alpha channel.")
    same = not notes

    def decode(number: int) -> NDArray[Any]:
        if header.colour == _PALETTE:
            indices = _decoded(header._replace(colour=_GREY), pixels, label)
            indices //= np.uint8(255 // (2**header.depth - 1))
            return _through_palette(indices, held[b"PLTE"], held.get(b"tRNS"), label)
        return _decoded(header, ((b"tRNS", key), *pixels) if transparent else pixels, label)

    return ImageFile(
        label=label,
        format="png",
        pages=(page,),
        metadata=Metadata.of(
            held.get(b"eXIf"), _profile(held.get(b"iCCP")), _density(held.get(b"pHYs"))
        ),
        decode=decode,
        notes=tuple(notes),
        carried=tuple(c for c in chunks if c[0] in _KEPT or (same and c[0] in _KEPT_IF_SAME)),
    )


def write_png(file: IO[bytes], pixels: NDArray[Any], carried: Chunks) -> None:
    """Write an image of 8 or 16 bits and 1 to 4 channels as PNG, with further chunks.

    Examples
    --------
    >>> import io
    >>> pixels = np.array([[[0, 1, 65535], [256, 40000, 3]]], np.uint16)
    >>> file = io.BytesIO()
    >>> write_png(file, pixels, ())
    >>> bool((read_png(file.getvalue(), "a.png").pixels == pixels).all())
    True
    """
    encoded = imagecodecs.png_encode(
        np.ascontiguousarray(pixels), level=6, filter=imagecodecs.PNG.FILTER.ALL
    )
    file.write(encoded[:_HEADER_END])
    file.write(b"".join(_as_chunk(*chunk) for chunk in carried))
    file.write(encoded[_HEADER_END:])


def carry_metadata(metadata: Metadata) -> Chunks:
    """Return the chunks that hold metadata which came from another format."""
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


def _chunks(data: bytes, label: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the chunks whose checksum is right; refuse a file that is cut or damaged in others."""
    place, name = len(SIGNATURE), b""
    while name != b"IEND":
        length, name = struct.unpack_from(">I4s", data.ljust(place + 12), place)
        end = place + 12 + length
        if end > len(data):
            raise InputError(f"{label}: is cut short; fetch the file again.")
        content = data[place + 8 : end - 4]
        if zlib.crc32(content, zlib.crc32(name)) == int.from_bytes(data[end - 4 : end], "big"):
            yield name, content
        elif not name[0] & 32:
            shown = name.decode("latin-1") if name.isalpha() else "unnamed"
            raise InputError(f"{label}: its {shown} chunk is damaged; fetch the file again.")
        place = end


def _header(chunks: Chunks, label: str) -> _Header:
    """Check what the chunks say of the image before its size is."""
    name, content = chunks[0]
    names = {name for name, _ in chunks}
    header = _Header(*struct.unpack(">IIBBBBB", content.ljust(13)[:13]))
    allowed = _COLOURS.get(header.colour, (0, ()))[1]
    if name != b"IHDR" or len(content) != 13:
        damage = "it has no PNG header; fetch the file again"
    elif header.depth not in allowed or header.packing or header.filtering or header.lacing > 1:
        damage = "its PNG header is damaged; fetch the file again"
    elif b"acTL" in names:
        damage = "is an animated PNG, which is not read; save its frames as PNG first"
    elif header.depth == 1:
        damage = (
            "holds 1 bit a pixel, which leaves no grey to denoise; scan or save it as 8-bit grey"
        )
    elif b"IDAT" not in names or (header.colour == _PALETTE and b"PLTE" not in names):
        damage = "holds no pixels; fetch the file again"
    elif header.colour == _PALETTE and len(dict(reversed(chunks))[b"PLTE"]) % 3:
        damage = "its palette is damaged; fetch the file again"
    else:
        return header
    raise InputError(f"{label}: {damage}.")


def _decoded(header: _Header, chunks: Chunks, label: str) -> NDArray[Any]:
    """Let libpng decode the pixels; it is shown nothing but what they need."""
    first = (b"IHDR", struct.pack(">IIBBBBB", *header))
    needed = b"".join(_as_chunk(*chunk) for chunk in (first, *chunks, (b"IEND", b"")))
    with damage_refused(label):
        return np.asarray(imagecodecs.png_decode(SIGNATURE + needed))


def _through_palette(
    indices: NDArray[Any], palette: bytes, transparency: bytes | None, label: str
) -> NDArray[np.uint8]:
    """Look colours up; libpng would show those that are not in the palette as black."""
    colours = np.frombuffer(palette, np.uint8).reshape(-1, 3)
    if int(indices.max()) >= len(colours):
        raise InputError(
            f"{label}: a pixel has a colour that is not in its palette; fetch the file again."
        )
    if transparency is not None:
        alpha = np.frombuffer(transparency[: len(colours)].ljust(len(colours), b"\xff"), np.uint8)
        colours = np.column_stack([colours, alpha])
    return np.asarray(colours[indices])


def _profile(chunk: bytes | None) -> bytes | None:
    """Return the colour profile of an iCCP chunk, or None if it is damaged."""
    try:
        packed = (chunk or b"").partition(b"\0")[2][1:]
        return zlib.decompressobj().decompress(packed, _MAX_PROFILE) or None
    except zlib.error:
        return None


def _density(chunk: bytes | None) -> tuple[float, float] | None:
    """Return pixels an inch from a chunk that counts them by the metre."""
    if chunk is None or len(chunk) != 9:
        return None
    across, down, unit = struct.unpack(">IIB", chunk)
    return (across * _INCH, down * _INCH) if unit == 1 and across and down else None
