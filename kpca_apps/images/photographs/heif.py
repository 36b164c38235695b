"""The boxes of HEIF files, AVIF and HEIC: what they say of a picture, and metadata put in.

ISO/IEC 23008-12:2022 (items, properties), ISO/IEC 14496-12:2022 (boxes).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from kpca_apps.images.photographs.lossless import boxes

_FULL = 4  # bytes of version and flags
# How a picture is turned and mirrored for viewing, by EXIF's number: quarter turns to the left, and
# the axis of a mirror.
_TURNS = {2: (0, 1), 3: (2, None), 4: (0, 0), 5: (1, 0), 6: (3, None), 7: (3, 0), 8: (1, None)}
_ESSENTIAL = 0x80


@dataclass(frozen=True)
class Properties:
    """What the boxes of properties say; of several pictures in a file, of all."""

    size: tuple[int, int]  # the largest height and width
    depth: int  # bits of a channel of AVIF, 8 where none is told
    colours: tuple[int, int] | None  # primaries and transfer, as ITU-T H.273 counts them


def properties(data: bytes) -> Properties:
    """Return what is said of the pictures in a file, from its beginning; ValueError if nothing."""
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
    """Return height and width of the largest picture of a file."""
    return properties(data).size


def _properties(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    meta = next((box for name, box in boxes(data, whole=False) if name == b"meta"), b"")
    for name, content in boxes(meta[_FULL:], whole=False):
        if name == b"iprp":
            for inner, kept in boxes(content, whole=False):
                if inner == b"ipco":
                    yield from boxes(kept, whole=False)


def with_metadata(
    data: bytes,
    *,
    icc: bytes | None = None,
    exif: bytes | None = None,
    xmp: bytes | None = None,
    orientation: int = 1,
) -> bytes:
    """Return an AVIF file of libavif's with metadata of its picture put in."""
    outer = list(boxes(data))
    meta = dict(outer)[b"meta"]
    inner = dict(boxes(meta[_FULL:]))
    primary = int.from_bytes(inner[b"pitm"][_FULL:], "big")
    items = _places(inner[b"iloc"])
    added = []
    if exif:
        added.append((b"Exif", b"", bytes(4) + exif))  # no bytes stand before its TIFF header
    if xmp:
        added.append((b"mime", b"application/rdf+xml\0", xmp))
    first = max(items) + 1
    entries, links = inner[b"iinf"], inner.get(b"iref", bytes(_FULL))
    for number, (kind, more, _) in enumerate(added, first):
        entry = struct.pack(">IHH4s", 2 << 24, number, 0, kind) + b"\0" + more
        entries += _box(b"infe", entry)
        links += _box(b"cdsc", struct.pack(">HHH", number, 1, primary))
    wide = entries[0] > 0  # a version in which their number takes four bytes
    n_entries = int.from_bytes(entries[4 : 8 if wide else 6], "big") + len(added)
    entries = (
        entries[:4] + n_entries.to_bytes(4 if wide else 2, "big") + entries[8 if wide else 6 :]
    )
    inner[b"iinf"] = entries
    if added:
        inner[b"iref"] = links
    inner[b"iprp"] = _with_properties(inner[b"iprp"], primary, icc, orientation)
    # How far content moves depends on how long all of this is, but not on what numbers it holds.
    empty = {number: [(0, 0)] for number in range(first, first + len(added))}
    inner[b"iloc"] = _written_places({**items, **empty})
    grown = len(_written_meta(meta, inner)) - len(meta)
    moved = {item: [(at + grown, n) for at, n in places] for item, places in items.items()}
    end = len(data) + grown + 8  # after all, in a box of its own
    for number, (*_, content) in enumerate(added, first):
        moved[number] = [(end, len(content))]
        end += len(content)
    inner[b"iloc"] = _written_places(moved)
    new_meta = _written_meta(meta, inner)
    whole = b"".join(_box(name, new_meta if name == b"meta" else box) for name, box in outer)
    return whole + (_box(b"mdat", b"".join(content for *_, content in added)) if added else b"")


def _places(iloc: bytes) -> dict[int, list[tuple[int, int]]]:
    """Return where the pieces of each item stand, and their lengths."""
    version, sizes = iloc[0], (iloc[4] >> 4, iloc[4] & 15, iloc[5] >> 4)
    at, n_items = 8, int.from_bytes(iloc[6:8], "big")
    if version > 1:
        raise ValueError(f"places of version {version}")
    items: dict[int, list[tuple[int, int]]] = {}

    def take(n_bytes: int) -> int:
        nonlocal at
        at += n_bytes
        return int.from_bytes(iloc[at - n_bytes : at], "big")

    for _ in range(n_items):
        item = take(2)
        if version == 1 and take(2) & 15:
            raise ValueError("an item that lies elsewhere")
        take(2)
        base, n_pieces = take(sizes[2]), take(2)
        items[item] = [(base + take(sizes[0]), take(sizes[1])) for _ in range(n_pieces)]
    return items


def _written_places(items: dict[int, list[tuple[int, int]]]) -> bytes:
    """Write where the pieces of each item stand."""
    content = bytes(_FULL) + b"\x44\0" + struct.pack(">H", len(items))
    for item, places in items.items():
        content += struct.pack(">HHH", item, 0, len(places))
        content += b"".join(struct.pack(">II", *place) for place in places)
    return content


def _written_meta(meta: bytes, inner: dict[bytes, bytes]) -> bytes:
    return meta[:_FULL] + b"".join(_box(name, content) for name, content in inner.items())


def _with_properties(iprp: bytes, primary: int, icc: bytes | None, orientation: int) -> bytes:
    """Add a colour profile, and how the picture is turned, to the properties of the main item."""
    held = dict(boxes(iprp))
    turns, mirror = _TURNS.get(orientation, (0, None))
    new = []
    if icc:
        new.append((_box(b"colr", b"prof" + icc), 0))
    if turns:
        new.append((_box(b"irot", bytes([turns])), _ESSENTIAL))
    if mirror is not None:
        new.append((_box(b"imir", bytes([mirror])), _ESSENTIAL))
    n_held = sum(1 for _ in boxes(held[b"ipco"]))
    links, at = held[b"ipma"], 8
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
    content = held[b"ipco"] + b"".join(box for box, _ in new)
    return _box(b"ipco", content) + _box(b"ipma", linked)


def _box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content
