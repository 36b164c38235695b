"""JPEG files: grey and colour of 8 bits, read and written by Pillow, with their metadata.

References
----------
ITU-T T.81 (1992), annex B; Exif 2.32 (CIPA, 2019), section 4.7; ICC.1:2022, annex B.4.
"""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kpca_apps.errors import InputError
from kpca_apps.files.images_limits import check_promise
from kpca_apps.files.images_types import ImageFile, Metadata, Page

__all__ = ["QUALITY", "read_jpeg", "write_jpeg"]

Segments = tuple[tuple[bytes, bytes], ...]

QUALITY = 95
_SCAN = 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
_JFIF, _EXIF_SEGMENT, _ICC_SEGMENT = 0xE0, 0xE1, 0xE2
_PHOTOSHOP, _ADOBE, _COMMENT = 0xED, 0xEE, 0xFE
_EXIF = b"Exif\0\0"
_ICC = b"ICC_PROFILE\0"
# Frames: baseline, extended and progressive are read; 0xC4, 0xC8 and 0xCC are no frames.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_READ_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
# Each block of 8 x 8 pixels takes at least one bit of the file.
_PIXELS_PER_BYTE = 8 * 64
# The decoder goes over the whole image for each scan; progressive files have about ten.
_MAX_SCANS = 100
# Tables the decoder needs: Huffman, quantisation, restart interval.
_TABLES = frozenset({0xC4, 0xDB, 0xDD})


def read_jpeg(data: bytes, label: str) -> ImageFile:
    """Read a JPEG file.

    Parameters
    ----------
    data : bytes
        The whole file. Of several pictures in one file, as some telephones write them, the first.
    label : str
        For messages.

    Returns
    -------
    ImageFile

    Raises
    ------
    InputError
        If the file is damaged, cut short or too large, or has other than 8-bit grey or RGB.
    """
    try:
        segments, scan = _segments(data)
        page = _page(segments)
    except _Damage as damage:
        raise InputError(f"{label}: {damage}.") from None
    check_promise(
        label,
        page.height,
        page.width,
        page.channels,
        len(data) - scan,
        ratio=_PIXELS_PER_BYTE * page.channels,
    )
    if data.count(bytes([0xFF, _SCAN]), scan) > _MAX_SCANS:
        raise InputError(
            f"{label}: is packed in more than {_MAX_SCANS} scans, which no camera does; save it "
            "anew as JPEG or PNG."
        )
    notes: tuple[str, ...] = ()
    if any(code == bytes([_ICC_SEGMENT]) and c.startswith(b"MPF\0") for code, c in segments):
        notes = ("Of the pictures in the file, the first is denoised and kept.",)
    return ImageFile(
        label=label,
        format="jpeg",
        pages=(page,),
        metadata=Metadata.of(_exif(segments), _profile(segments), _density(segments)),
        decode=lambda number: _decode(segments, data[scan:], page, label),
        notes=notes,
        carried=tuple(_without_thumbnail(s) for s in segments if _is_carried(*s)),
    )


def write_jpeg(file: IO[bytes], pixels: NDArray[np.uint8], carried: Segments) -> None:
    """Write an image as JPEG at quality 95 with full chroma.

    Parameters
    ----------
    file : binary file
    pixels : ndarray of shape (h, w) or (h, w, 3), uint8
    carried : tuple of (bytes, bytes)
        Segments to put before the pixels: their marker's second byte and their content.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> write_jpeg(file, np.full((8, 9), 77, np.uint8), ())
    >>> image = read_jpeg(file.getvalue(), "a.jpg")
    >>> image.pages[0].shape, int(image.pixels[3, 4])
    ((8, 9), 77)
    """
    buffer = io.BytesIO()
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    # Tables fitted to the image would save 3 %, but Pillow then fails on much noise in colour.
    picture.save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    own, scan = _segments(buffer.getvalue())
    # Either header says how dense the pixels are; one of our own would say otherwise.
    has_header = any(
        code == bytes([_JFIF]) or content.startswith(_EXIF) for code, content in carried
    )
    if has_header:
        own = tuple(segment for segment in own if segment[0] != bytes([_JFIF]))
    n_first = 0 if has_header else 1
    file.write(b"\xff\xd8")
    for code, content in (*own[:n_first], *carried, *own[n_first:]):
        file.write(b"\xff" + code + struct.pack(">H", len(content) + 2) + content)
    file.write(buffer.getvalue()[scan:])


class _Damage(ValueError):
    """Why a JPEG file cannot be read, as the rest of a sentence without its full stop."""


def _segments(data: bytes) -> tuple[Segments, int]:
    """Return the segments before the pixels, and the place where the first scan begins."""
    found: list[tuple[bytes, bytes]] = []
    place = 2
    for code, start, end in _walk(data, place):
        if code == _SCAN:
            return tuple(found), start - 4
        found.append((bytes([code]), data[start:end]))
    raise _Damage("is cut short before its pixels; fetch the file again")


def _walk(data: bytes, place: int) -> Iterator[tuple[int, int, int]]:
    """Yield the code, start and end of each segment's content."""
    while place + 4 <= len(data):
        if data[place] != 0xFF:
            raise _Damage("its header is damaged; fetch the file again")
        code = data[place + 1]
        if code == 0xFF:
            place += 1
            continue
        if code in _ALONE:
            place += 2
            continue
        if code in (0x00, 0xD8, 0xD9):
            raise _Damage("its header is damaged; fetch the file again")
        length = struct.unpack_from(">H", data, place + 2)[0]
        end = place + 2 + length
        if length < 2 or end > len(data):
            raise _Damage("is cut short before its pixels; fetch the file again")
        yield code, place + 4, end
        place = end


def _page(segments: Segments) -> Page:
    frames = [(code[0], content) for code, content in segments if code[0] in _FRAMES]
    if len(frames) != 1 or len(frames[0][1]) < 6:
        raise _Damage("its header is damaged; fetch the file again")
    code, content = frames[0]
    depth, height, width, channels = struct.unpack_from(">BHHB", content)
    if depth != 8 or code not in _READ_FRAMES:
        raise _Damage("is a lossless or 12-bit JPEG, which is not read; convert it to PNG first")
    if channels not in (1, 3):
        what = "CMYK inks" if channels == 4 else f"{channels} channels"
        raise _Damage(f"holds {what}, not grey or RGB; convert it to RGB first")
    return Page(height, width, channels, np.dtype(np.uint8))


def _exif(segments: Segments) -> bytes | None:
    for code, content in segments:
        if code[0] == _EXIF_SEGMENT and content.startswith(_EXIF):
            return content[len(_EXIF) :]
    return None


def _profile(segments: Segments) -> bytes | None:
    """Return the colour profile, put together from its numbered parts."""
    head = len(_ICC) + 2
    parts = {
        content[len(_ICC)]: content[head:]
        for code, content in segments
        if code[0] == _ICC_SEGMENT and content.startswith(_ICC) and len(content) > head
    }
    return b"".join(parts[number] for number in sorted(parts)) or None


def _density(segments: Segments) -> tuple[float, float] | None:
    """Return pixels an inch as the JFIF header says them, in inches or centimetres."""
    for code, content in segments:
        if code[0] == _JFIF and content.startswith(b"JFIF\0") and len(content) >= 14:
            unit, across, down = struct.unpack_from(">BHH", content, 7)
            scale = {1: 1.0, 2: 2.54}.get(unit, 0.0)
            return (scale * across, scale * down) if scale * across * down else None
    return None


def _is_carried(code: bytes, content: bytes) -> bool:
    """Whether a segment stays true of the denoised image written anew."""
    if code[0] == _ICC_SEGMENT:
        return content.startswith(_ICC)
    if code[0] == _JFIF:
        return content.startswith(b"JFIF\0") and len(content) >= 14
    return code[0] in (_EXIF_SEGMENT, _PHOTOSHOP, _COMMENT)


def _without_thumbnail(segment: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return a JFIF header with its resolution alone, and other segments as they are."""
    code, content = segment
    return (code, content[:12] + b"\0\0") if code[0] == _JFIF else segment


def _decode(segments: Segments, scan: bytes, page: Page, label: str) -> NDArray[np.uint8]:
    """Let Pillow decode the pixels; it is shown nothing but what they need."""
    needed = _TABLES | _FRAMES | {_JFIF, _ADOBE}
    bare = b"\xff\xd8" + b"".join(
        b"\xff" + code + struct.pack(">H", len(content) + 2) + content
        for code, content in segments
        if code[0] in needed
    )
    try:
        with warnings.catch_warnings():
            # Its size has been checked, against a limit of our own.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(bare + scan), formats=("JPEG",))
        pixels: NDArray[Any] = np.array(picture)
    except (OSError, ValueError, SyntaxError, struct.error):
        raise InputError(
            f"{label}: its pixels are damaged or cut short; fetch the file again."
        ) from None
    if pixels.shape != page.shape or pixels.dtype != np.uint8:
        raise InputError(f"{label}: its pixels do not fit its header; fetch the file again.")
    return pixels
