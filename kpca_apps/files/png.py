"""PNG files of 8 and 16 bits a channel, read and written without loss.

Read here and not by Pillow, which cuts 16-bit colour to 8 bits without a word.

References
----------
W3C, Portable Network Graphics, third edition (2025).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.images_limits import check_promise
from kpca_apps.files.images_types import ImageFile, Metadata, Page
from kpca_apps.files.png_filters import filter_rows, unfilter_rows

__all__ = ["carry_metadata", "read_png", "write_png"]

Chunks = tuple[tuple[bytes, bytes], ...]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Colour type: channels as stored, bit depths allowed.
_COLOURS = {
    0: (1, (1, 2, 4, 8, 16)),
    2: (3, (8, 16)),
    3: (1, (1, 2, 4, 8)),
    4: (2, (8, 16)),
    6: (4, (8, 16)),
}
_GREY, _PALETTE = 0, 3
_COLOUR_OF_CHANNELS = {1: 0, 2: 4, 3: 2, 4: 6}
# First row, first column, row step, column step of the seven passes.
_ADAM7 = (
    (0, 0, 8, 8),
    (0, 4, 8, 8),
    (4, 0, 8, 4),
    (0, 2, 4, 4),
    (2, 0, 4, 2),
    (0, 1, 2, 2),
    (1, 0, 2, 1),
)
# Chunks that stay true of the denoised pixels, and those that do only for the same colour type.
_INCH = 0.0254  # metres
_KEPT = frozenset(b"cHRM cICP cLLI gAMA iCCP iTXt mDCV pHYs sRGB tEXt tIME zTXt eXIf".split())
_KEPT_IF_SAME = frozenset((b"bKGD", b"sBIT"))
_MAX_PROFILE = 1 << 24
_PART = 1 << 20


@dataclass(frozen=True)
class _Header:
    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool

    @property
    def stored(self) -> int:
        return _COLOURS[self.colour][0]

    @property
    def step(self) -> int:
        """Bytes of a pixel, for the filters."""
        return max(1, self.stored * self.depth // 8)

    def row_bytes(self, width: int) -> int:
        return (width * self.stored * self.depth + 7) // 8

    def passes(self) -> list[tuple[int, int, int, int]]:
        if not self.interlaced:
            return [(0, 0, 1, 1)]
        return [p for p in _ADAM7 if p[0] < self.height and p[1] < self.width]


def read_png(data: bytes, label: str) -> ImageFile:
    """Read a PNG file.

    Palettes come out as RGB, grey of 2 and 4 bits as 8 bits, a transparent colour as an alpha
    channel, interlaced rows in order; each is noted. Images of 1 bit and animations are refused.

    Parameters
    ----------
    data : bytes
        The whole file.
    label : str
        For messages.

    Returns
    -------
    ImageFile

    Raises
    ------
    InputError
        If the file is damaged, cut short, too large or of a kind that is refused.
    """
    try:
        chunks = tuple(_chunks(data))
        header = _header(chunks)
        held = dict(reversed(chunks))
        packed = sum(len(content) for name, content in chunks if name == b"IDAT")
        transparent = b"tRNS" in held
        page = _page(header, transparent)
        check_promise(label, page.height, page.width, page.channels * page.dtype.itemsize, packed)
        if header.colour == _PALETTE and len(held[b"PLTE"]) % 3:
            raise _Damage("its palette is damaged; fetch the file again")
    except _Damage as damage:
        raise InputError(f"{label}: {damage}.") from None
    same = page.channels == header.stored and header.depth >= 8 and header.colour != _PALETTE
    carried = tuple(c for c in chunks if c[0] in _KEPT or (same and c[0] in _KEPT_IF_SAME))
    return ImageFile(
        label=label,
        format="png",
        pages=(page,),
        metadata=Metadata.of(
            held.get(b"eXIf"), _profile(held.get(b"iCCP")), _density(held.get(b"pHYs"))
        ),
        decode=lambda number: _decode(header, chunks, held, label),
        notes=_notes(header, transparent),
        carried=carried,
    )


def write_png(file: IO[bytes], pixels: NDArray[Any], carried: Chunks) -> None:
    """Write an image as PNG.

    Parameters
    ----------
    file : binary file
    pixels : ndarray of shape (h, w) or (h, w, 2..4), uint8 or uint16
    carried : tuple of (bytes, bytes)
        Further chunks: their type and content, as from `carry_metadata` or ``ImageFile.carried``.

    Examples
    --------
    >>> import io
    >>> pixels = np.array([[[0, 1, 65535], [256, 40000, 3]]], np.uint16)
    >>> file = io.BytesIO()
    >>> write_png(file, pixels, ())
    >>> bool((read_png(file.getvalue(), "a.png").pixels == pixels).all())
    True
    """
    height, width = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    depth = 8 * pixels.dtype.itemsize
    colour = _COLOUR_OF_CHANNELS[channels]
    file.write(SIGNATURE)
    _write_chunk(file, b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    for name, content in carried:
        _write_chunk(file, name, content)
    stored = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">"))
    rows = stored.view(np.uint8).reshape(height, -1)
    packed = zlib.compress(filter_rows(rows, channels * depth // 8).tobytes(), 6)
    for start in range(0, len(packed), _PART):
        _write_chunk(file, b"IDAT", packed[start : start + _PART])
    _write_chunk(file, b"IEND", b"")


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


def _density(chunk: bytes | None) -> tuple[float, float] | None:
    """Return pixels an inch from a chunk that counts them by the metre."""
    if chunk is None or len(chunk) != 9:
        return None
    across, down, unit = struct.unpack(">IIB", chunk)
    return (across * _INCH, down * _INCH) if unit == 1 and across and down else None


def _write_chunk(file: IO[bytes], name: bytes, content: bytes) -> None:
    file.write(struct.pack(">I4s", len(content), name))
    file.write(content)
    file.write(struct.pack(">I", zlib.crc32(content, zlib.crc32(name))))


class _Damage(ValueError):
    """Why a PNG file cannot be read, as the rest of a sentence without its full stop."""


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(SIGNATURE)
    while True:
        if place + 12 > len(data):
            raise _Damage("is cut short; fetch the file again")
        length, name = struct.unpack_from(">I4s", data, place)
        end = place + 12 + length
        if end > len(data):
            raise _Damage("is cut short; fetch the file again")
        content = data[place + 8 : end - 4]
        intact = zlib.crc32(content, zlib.crc32(name)) == int.from_bytes(data[end - 4 : end], "big")
        is_critical = not name[0] & 32
        if is_critical and not intact:
            shown = name.decode("latin-1") if name.isalpha() else "unnamed"
            raise _Damage(f"its {shown} chunk is damaged; fetch the file again")
        if intact:
            yield name, content
        if name == b"IEND":
            return
        place = end


def _header(chunks: Chunks) -> _Header:
    name, content = chunks[0]
    if name != b"IHDR" or len(content) != 13:
        raise _Damage("it has no PNG header; fetch the file again")
    width, height, depth, colour, packing, filtering, lacing = struct.unpack(">IIBBBBB", content)
    if colour not in _COLOURS or depth not in _COLOURS[colour][1] or packing or filtering:
        raise _Damage("its PNG header is damaged; fetch the file again")
    if lacing > 1:
        raise _Damage("its PNG header is damaged; fetch the file again")
    names = {name for name, _ in chunks}
    if b"acTL" in names:
        raise _Damage("is an animated PNG, which is not read; save its frames as PNG first")
    if depth == 1:
        raise _Damage(
            "holds 1 bit a pixel, which leaves no grey to denoise; scan or save it as 8-bit grey"
        )
    if b"IDAT" not in names or (colour == _PALETTE and b"PLTE" not in names):
        raise _Damage("holds no pixels; fetch the file again")
    return _Header(width, height, depth, colour, lacing == 1)


def _page(header: _Header, transparent: bool) -> Page:
    colours = 3 if header.colour == _PALETTE else header.stored
    channels = colours + (transparent and colours in (1, 3))
    dtype = np.dtype(np.uint16 if header.depth == 16 else np.uint8)
    return Page(header.height, header.width, channels, dtype)


def _notes(header: _Header, transparent: bool) -> tuple[str, ...]:
    notes = []
    if header.colour == _PALETTE:
        notes.append("Its palette of colours is written as RGB: denoised colours do not fit it.")
    elif header.depth < 8:
        notes.append(f"Its {header.depth}-bit grey is written as 8-bit grey.")
    if transparent and header.stored in (1, 3):
        notes.append("Its transparent colour is written as an alpha channel.")
    return tuple(notes)


def _profile(chunk: bytes | None) -> bytes | None:
    """Return the colour profile of an iCCP chunk, or None if it is damaged."""
    if chunk is None:
        return None
    packed = chunk.partition(b"\0")[2][1:]
    try:
        profile = zlib.decompressobj().decompress(packed, _MAX_PROFILE)
    except zlib.error:
        return None
    return profile or None


def _decode(header: _Header, chunks: Chunks, held: dict[bytes, bytes], label: str) -> NDArray[Any]:
    packed = b"".join(content for name, content in chunks if name == b"IDAT")
    samples = _samples(header, packed, label)
    colours = held.get(b"tRNS")
    if header.colour == _PALETTE:
        return _through_palette(samples[..., 0], held[b"PLTE"], colours, label)
    if colours is not None and header.stored in (1, 3):
        return _with_alpha(samples, colours, header)
    if header.depth < 8:
        samples = samples * np.uint8(255 // (2**header.depth - 1))
    return samples[..., 0] if header.stored == 1 else samples


def _samples(header: _Header, packed: bytes, label: str) -> NDArray[Any]:
    """Unpack the rows of every pass into an array of shape (h, w, channels as stored)."""
    sizes = []
    for top, left, down, across in header.passes():
        n_rows = -(-(header.height - top) // down)
        n_columns = -(-(header.width - left) // across)
        sizes.append((n_rows, n_columns, 1 + header.row_bytes(n_columns)))
    expected = sum(n_rows * n_bytes for n_rows, _, n_bytes in sizes)
    try:
        raw = zlib.decompressobj().decompress(packed, expected)
    except zlib.error:
        raise InputError(f"{label}: its pixels are damaged; fetch the file again.") from None
    if len(raw) < expected:
        raise InputError(f"{label}: its pixels are cut short; fetch the file again.")
    dtype = np.dtype(np.uint16 if header.depth == 16 else np.uint8)
    whole = np.empty((header.height, header.width, header.stored), dtype)
    flat, place = np.frombuffer(bytearray(raw), np.uint8), 0
    for (top, left, down, across), (n_rows, n_columns, n_bytes) in zip(
        header.passes(), sizes, strict=True
    ):
        rows = flat[place : place + n_rows * n_bytes].reshape(n_rows, n_bytes)
        place += n_rows * n_bytes
        if unfilter_rows(rows, header.step) >= 0:
            raise InputError(f"{label}: its pixels are damaged; fetch the file again.")
        whole[top::down, left::across] = _values(rows[:, 1:], header, n_columns)
    return whole


def _values(rows: NDArray[np.uint8], header: _Header, width: int) -> NDArray[Any]:
    """Turn unfiltered bytes into values of shape (rows, width, channels as stored)."""
    shape = (len(rows), width, header.stored)
    if header.depth == 8:
        return rows.reshape(shape)
    if header.depth == 16:
        return np.ascontiguousarray(rows).view(">u2").reshape(shape)
    shifts = np.arange(8 - header.depth, -1, -header.depth, dtype=np.uint8)
    parts = (rows[:, :, np.newaxis] >> shifts) & np.uint8(2**header.depth - 1)
    return parts.reshape(len(rows), -1)[:, :width, np.newaxis]


def _through_palette(
    indices: NDArray[Any], palette: bytes, transparency: bytes | None, label: str
) -> NDArray[np.uint8]:
    colours = np.frombuffer(palette, np.uint8).reshape(-1, 3)
    if int(indices.max()) >= len(colours):
        raise InputError(
            f"{label}: a pixel has a colour that is not in its palette; fetch the file again."
        )
    if transparency is not None:
        alpha = np.full(len(colours), 255, np.uint8)
        given = np.frombuffer(transparency, np.uint8)[: len(colours)]
        alpha[: len(given)] = given
        colours = np.column_stack([colours, alpha])
    return np.asarray(colours[indices])


def _with_alpha(samples: NDArray[Any], chunk: bytes, header: _Header) -> NDArray[Any]:
    """Add an alpha channel that is 0 where the pixel has the transparent colour."""
    opaque = np.iinfo(samples.dtype).max
    key = np.frombuffer(chunk[: 2 * header.stored], ">u2")
    visible = (samples != key).any(axis=2) if len(key) == header.stored else True
    if header.depth < 8:
        samples = samples * np.uint8(255 // (2**header.depth - 1))
    alpha = np.where(visible, opaque, 0).astype(samples.dtype)
    return np.dstack([samples, np.broadcast_to(alpha, samples.shape[:2])])
