"""AVIF and HEIC: the boxes of HEIF files, their pixels and metadata.

AVIF of 8, 10 and 12 bits is written losslessly by imagecodecs, as Pillow truncates 10 and 12 bits
to 8; Pillow reads the metadata. HEIC, read by pillow-heif (extra "heic"), is written as TIFF.
ISO/IEC 23008-12:2022 (items, properties), ISO/IEC 14496-12:2022 (boxes).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kpca_apps.errors import InputError, require_library
from kpca_apps.images.photographs.lossless import boxes
from kpca_apps.images.tiff import write_tiff
from kpca_apps.images.types import Format, ImageFile, Metadata, Page, check_size, damage_refused
from kpca_apps.system.limits import require_memory

_FULL = 4  # bytes of version and flags
_PLACED = b"\x44\0"  # code for offsets and lengths stored in four bytes each
# Number of left quarter turns, and axis of a mirror, by EXIF orientation.
_TURNS = {2: (0, 1), 3: (2, None), 4: (0, 0), 5: (1, 0), 6: (3, None), 7: (3, 0), 8: (1, None)}
_ESSENTIAL = 0x80
_RATIO = 1 << 24  # maximum ratio of unpacked to packed bytes: one byte may encode large areas
_DEPTH, _COLOURS, _XMP = b"depth", b"colours", b"xmp"
_MODES = {"L": (1, "u1"), "RGB": (3, "u1"), "RGBA": (4, "u1")}
_MODES |= {f"{mode};16": (channels, "u2") for mode, (channels, _) in _MODES.items()}


@dataclass(frozen=True)
class Properties:
    """Properties of the pictures of a file."""

    size: tuple[int, int]  # the largest height and width
    depth: int  # bits of an AVIF channel
    colours: tuple[int, int] | None  # primaries and transfer, as coded in ITU-T H.273


def properties(data: bytes) -> Properties:
    """Return the properties of a file's pictures from its first bytes."""
    height = width = 0
    depth, colours = 8, None
    for name, content in _properties(data):
        if name == b"ispe":
            wide, high = struct.unpack_from(">II", content, _FULL)
            height, width = max(height, high), max(width, wide)
        elif name == b"av1C":
            flags = content[2]
            depth = max(depth, 12 if flags & 0x20 else 10 if flags & 0x40 else 8)
        elif name == b"colr" and content[:4] == b"nclx":
            colours = struct.unpack_from(">HH", content, 4)
    if not height:
        raise ValueError("it says no size")
    return Properties((height, width), depth, colours)


def stated_size(data: bytes) -> tuple[int, int]:
    """Return height and width of the largest picture."""
    return properties(data).size


def _properties(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    meta = next((box for name, box in boxes(data, whole=False) if name == b"meta"), b"")
    for name, content in boxes(meta[_FULL:], whole=False):
        if name == b"iprp":
            for inner, container in boxes(content, whole=False):
                if inner == b"ipco":
                    yield from boxes(container, whole=False)


def with_metadata(
    data: bytes,
    *,
    icc: bytes | None = None,
    exif: bytes | None = None,
    xmp: bytes | None = None,
    orientation: int = 1,
) -> bytes:
    """Insert metadata of the picture into an AVIF file that libavif wrote; return the file."""
    outer = list(boxes(data))
    meta = dict(outer)[b"meta"]
    inner = dict(boxes(meta[_FULL:]))
    primary = int.from_bytes(inner[b"pitm"][_FULL:], "big")
    items = _places(inner[b"iloc"])
    added = []
    if exif:
        added.append((b"Exif", b"", bytes(4) + exif))  # four bytes: the TIFF header's offset, 0
    if xmp:
        added.append((b"mime", b"application/rdf+xml\0", xmp))
    first = max(items) + 1
    entries, links = inner[b"iinf"], inner.get(b"iref", bytes(_FULL))
    for number, (kind, more, _) in enumerate(added, first):
        entries += _box(b"infe", struct.pack(">IHH4s", 2 << 24, number, 0, kind) + b"\0" + more)
        links += _box(b"cdsc", struct.pack(">HHH", number, 1, primary))
    n_entries = int.from_bytes(entries[4:6], "big") + len(added)
    inner[b"iinf"] = entries[:4] + n_entries.to_bytes(2, "big") + entries[6:]
    if added:
        inner[b"iref"] = links
    inner[b"iprp"] = _with_properties(inner[b"iprp"], primary, icc, orientation)
    # Measure how far the new boxes shift the content.
    empty = {number: [(0, 0)] for number in range(first, first + len(added))}
    inner[b"iloc"] = _written_places({**items, **empty})
    grown = len(_written_meta(meta, inner)) - len(meta)
    new_places = {item: [(at + grown, n) for at, n in places] for item, places in items.items()}
    end = len(data) + grown + 8  # new items follow in a box at the end of the file
    for number, (*_, content) in enumerate(added, first):
        new_places[number] = [(end, len(content))]
        end += len(content)
    inner[b"iloc"] = _written_places(new_places)
    new_meta = _written_meta(meta, inner)
    whole = b"".join(_box(name, new_meta if name == b"meta" else box) for name, box in outer)
    return whole + (_box(b"mdat", b"".join(content for *_, content in added)) if added else b"")


def _places(iloc: bytes) -> dict[int, list[tuple[int, int]]]:
    """Return offset and length of each item's extents; read only the layout that libavif writes."""
    if iloc[:6] != bytes(_FULL) + _PLACED:
        raise ValueError("places that are written in a rare way")
    items: dict[int, list[tuple[int, int]]] = {}
    at = 8
    for _ in range(int.from_bytes(iloc[6:8], "big")):
        item, n_pieces = struct.unpack_from(">H2xH", iloc, at)
        end = at + 6 + 8 * n_pieces
        items[item] = [*struct.iter_unpack(">II", iloc[at + 6 : end])]
        at = end
    return items


def _written_places(items: dict[int, list[tuple[int, int]]]) -> bytes:
    content = bytes(_FULL) + _PLACED + struct.pack(">H", len(items))
    for item, places in items.items():
        content += struct.pack(">HHH", item, 0, len(places))
        content += b"".join(struct.pack(">II", *place) for place in places)
    return content


def _written_meta(meta: bytes, inner: dict[bytes, bytes]) -> bytes:
    return meta[:_FULL] + b"".join(_box(name, content) for name, content in inner.items())


def _with_properties(iprp: bytes, primary: int, icc: bytes | None, orientation: int) -> bytes:
    """Return the properties with a colour profile and orientation added to the main item."""
    boxes_by_name = dict(boxes(iprp))
    turns, mirror = _TURNS.get(orientation, (0, None))
    new = []
    if icc:
        new.append((_box(b"colr", b"prof" + icc), 0))
    if turns:
        new.append((_box(b"irot", bytes([turns])), _ESSENTIAL))
    if mirror is not None:
        new.append((_box(b"imir", bytes([mirror])), _ESSENTIAL))
    n_held = sum(1 for _ in boxes(boxes_by_name[b"ipco"]))
    links, at = boxes_by_name[b"ipma"], 8
    if links[0] or links[3] & 1 or n_held + len(new) > 127:
        raise ValueError("properties that are linked in a rare way")
    linked = links[:at]
    for _ in range(int.from_bytes(links[4:8], "big")):
        item, count = struct.unpack_from(">HB", links, at)
        own = links[at + 3 : at + 3 + count]
        at += 3 + count
        if item == primary:
            own += bytes(n_held + 1 + n | essential for n, (_, essential) in enumerate(new))
        linked += struct.pack(">HB", item, len(own)) + own
    content = boxes_by_name[b"ipco"] + b"".join(box for box, _ in new)
    return _box(b"ipco", content) + _box(b"ipma", linked)


def _box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def read_avif(data: bytes) -> ImageFile:
    """Read an AVIF image; values fill the lowest 8, 10 or 12 bits."""
    if data[8:12] == b"avis":
        raise InputError("is an animated AVIF image; save its frames as PNG first.")
    with damage_refused():
        stated = properties(data)
        check_size(stated.size, 3, len(data), _RATIO)
        require_memory(8 * stated.size[0] * stated.size[1], copies=2)
        with Image.open(io.BytesIO(data), formats=("AVIF",)) as picture:
            info, has_frames = dict(picture.info), getattr(picture, "n_frames", 1) > 1
        if has_frames:
            raise InputError("is an animated AVIF image; save its frames as PNG first.")
        pixels = np.asarray(imagecodecs.avif_decode(data, numthreads=1))
        if pixels.dtype != (np.uint8 if stated.depth == 8 else np.uint16):
            raise ValueError(f"pixels of another type than of {stated.depth} bits")
    if pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (2,), (3,), (4,)):
        raise InputError(f"holds pixels of shape {pixels.shape}; save it as PNG first.")
    height, width, channels = (*pixels.shape, 1)[:3]
    page = Page(height, width, channels, pixels.dtype)
    carried = [(_DEPTH, bytes([stated.depth]))]
    if stated.colours:
        carried.append((_COLOURS, bytes(min(255, code) for code in stated.colours)))
    if info.get("xmp"):
        carried.append((_XMP, info["xmp"]))
    return ImageFile(
        format="avif",
        pages=(page,),
        metadata=Metadata.of(info.get("exif"), info.get("icc_profile")),
        page=lambda number: pixels,
        notes=("It is written without loss, and takes more space.",),
        carried=tuple(carried),
    )


def write_avif(file: IO[bytes], pages: Iterable[NDArray[Any]], like: ImageFile) -> None:
    """Write an image losslessly at its original bit depth, with its metadata."""
    (pixels,), carried, metadata = pages, dict(like.carried), like.metadata
    (depth,) = carried[_DEPTH]
    options: dict[str, Any] = {}
    if _COLOURS in carried:
        options["primaries"], options["transfer"] = carried[_COLOURS]
    encoded = imagecodecs.avif_encode(
        np.minimum(np.ascontiguousarray(pixels), np.array((1 << depth) - 1, pixels.dtype)),
        level=100,
        bitspersample=depth,
        numthreads=1,
        **options,
    )
    more = {"icc": metadata.icc, "exif": metadata.exif, "xmp": carried.get(_XMP)}
    file.write(with_metadata(bytes(encoded), **more, orientation=metadata.orientation))


def read_heic(data: bytes) -> ImageFile:
    """Read the main picture of a HEIC file, upright; 10 and 12 bits become 16."""
    require_library("pillow_heif", "heic", "HEIC images")
    if data[8:12] in (b"hevc", b"hevx"):
        raise InputError("is a film of HEIC images; save its frames as PNG first.")
    with damage_refused():
        check_size(stated_size(data), 3, len(data), _RATIO)
    file, mode, size = _heic_opened(data)
    if mode not in _MODES:
        raise InputError(f"holds pixels of mode {mode}; save it as PNG or TIFF first.")
    channels, dtype = _MODES[mode]
    page = Page(*size, channels, np.dtype(dtype))
    check_size(size, channels, len(data), _RATIO)
    require_memory(page.n_bytes, copies=4)
    notes = ["It is written as TIFF, upright; it loses nothing more."]
    if len(file) > 1:
        notes.append("Of the pictures in the file, the main one is denoised and kept.")

    def decoded(number: int) -> NDArray[Any]:
        with damage_refused():
            fresh, _, _ = _heic_opened(data)
            pixels = np.array(fresh)
            if pixels.shape != page.shape or pixels.dtype != page.dtype:
                raise ValueError("its pixels do not fit its header")
        return pixels

    info = file.info
    return ImageFile(
        format="heic",
        pages=(page,),
        metadata=Metadata.of(info.get("exif"), info.get("icc_profile")),
        page=decoded,
        notes=tuple(notes),
    )


def _heic_opened(data: bytes) -> tuple[Any, str, tuple[int, int]]:
    """Return the file opened by pillow-heif with mode, height and width, without decoding."""
    import pillow_heif

    with damage_refused():
        file = pillow_heif.open_heif(
            io.BytesIO(data), convert_hdr_to_8bit=False, hdr_to_16bit=True, remove_stride=True
        )
        return file, str(file.mode), (int(file.size[1]), int(file.size[0]))


FORMATS = {
    "avif": Format(rb".{4}ftypavi[fs]", (".avif",), read_avif, write_avif, size=stated_size),
    "heic": Format(
        mark=rb".{4}ftyp(hei[cxms]|hev[cx]|mif1)",
        suffixes=(".heic", ".heif"),
        read=read_heic,
        write=write_tiff,
        size=stated_size,
        written_as="tiff",
    ),
}
