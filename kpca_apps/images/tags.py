"""TIFF directories: tags read and written with their raw values.

A TIFF file is a chain of directories, one per page; EXIF metadata are a directory, too. tifffile
would convert values, does not write EXIF, and loops on overlapping tags.

TIFF Revision 6.0 (Adobe, 1992), section 2; BigTIFF (2007); Exif 2.32 (CIPA, 2019), section 4.6.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Literal, NamedTuple

from kpca_apps.images.large import Content
from kpca_apps.names import one_line

DESCRIPTION, MAKE, MODEL, ORIENTATION, EXIF, ISO = 270, 271, 272, 274, 34665, 34855
DNG_VERSION = 50706
# Tags that describe the picture in any file: description, maker, model, software, date, artist,
# copyright.
DESCRIBING = frozenset({DESCRIPTION, MAKE, MODEL, 305, 306, 315, 33432})
# Tags whose value is the offset of another directory: EXIF, GPS, interoperability.
_POINTERS = frozenset({EXIF, 34853, 40965})
_INTEGERS = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 13: "I", 16: "Q", 17: "q", 18: "Q"}
_SIZES = {kind: struct.calcsize(code) for kind, code in _INTEGERS.items()}
_SIZES |= {2: 1, 5: 8, 7: 1, 10: 8, 11: 4, 12: 8}
_MAX_TAGS, _MAX_PAGES, _MAX_INTEGERS = 4096, 100_000, 1 << 22
# Maximum number of bytes of tags: per byte of the file, and in total.
_MAX_OVERLAP, _MAX_TAG_BYTES = 4, 1 << 29


class TiffError(ValueError):
    """Invalid TIFF structure; the message gives the reason in a few words."""


class Layout(NamedTuple):
    """First bytes and byte order of a file; struct codes of an offset, a count and a tag."""

    start: bytes
    order: Literal["<", ">"]
    place: str
    number: str
    entry: str

    def header(self, first: int) -> bytes:
        """Return the header of a file whose first directory is at offset `first`."""
        return self.start + struct.pack(self.place, first)


LAYOUTS = (
    Layout(b"II*\0", "<", "<I", "<H", "<HHI4s"),
    Layout(b"MM\0*", ">", ">I", ">H", ">HHI4s"),
    Layout(b"II+\0\x08\0\0\0", "<", "<Q", "<Q", "<HHQ8s"),
    Layout(b"MM\0+\0\x08\0\0", ">", ">Q", ">Q", ">HHQ8s"),
)


@dataclass(frozen=True)
class Tag:
    """One field of a directory: TIFF data type, count, and raw bytes."""

    kind: int
    count: int
    data: bytes


@dataclass(frozen=True)
class Directory:
    """The tags of a page or of EXIF metadata, and the directories they point to."""

    layout: Layout
    tags: Mapping[int, Tag]
    children: Mapping[int, Directory] = field(default_factory=dict)
    repeated: tuple[tuple[int, Tag], ...] = ()  # other tags with a number that is already in `tags`

    def integers(self, tag: int, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return a tag's integers, or the default if it is missing, empty or not integer."""
        values = self.tags.get(tag)
        if values is None or not values.count or values.kind not in _INTEGERS:
            return default
        code = f"{self.layout.order}{min(values.count, _MAX_INTEGERS)}{_INTEGERS[values.kind]}"
        return struct.unpack_from(code, values.data)

    def integer(self, tag: int, default: int) -> int:
        """Return the first integer of `integers`."""
        return self.integers(tag, (default,))[0]

    def with_integers(self, kind: int, values: Mapping[int, list[int]]) -> Directory:
        """Return the directory with integer tags of the TIFF type `kind` added."""
        code = self.layout.order + "{}" + _INTEGERS[kind]
        tags = {
            number: Tag(kind, len(numbers), struct.pack(code.format(len(numbers)), *numbers))
            for number, numbers in values.items()
        }
        return replace(self, tags={**self.tags, **tags})


def read_directories(data: Content) -> Iterator[Directory]:
    """Yield the directories of a TIFF file or EXIF block; raise TiffError if damaged."""
    head = data[:8]
    layout = next((layout for layout in LAYOUTS if head.startswith(layout.start)), None)
    if layout is None:
        raise TiffError("no TIFF header")
    allowance = [min(_MAX_OVERLAP * len(data), _MAX_TAG_BYTES)]
    first = len(layout.start)
    place = _read_number(data, first, layout.place)
    visited: set[int] = set()
    while place:
        if place in visited or len(visited) >= _MAX_PAGES:
            raise TiffError("its pages run in a circle")
        visited.add(place)
        directory, place = _read_directory(data, place, layout, 2, allowance)
        yield directory


def first_directory(data: Content | None) -> Directory | None:
    """Return the first directory of a TIFF file or EXIF block; None if it is invalid."""
    try:
        return next(read_directories(data or b""), None)
    except TiffError:
        return None


def directories_at(data: Content, directory: Directory, tag: int) -> list[Directory]:
    """Return the directories at the offsets in a tag; raise TiffError if any is invalid."""
    allowance = [min(_MAX_OVERLAP * len(data), _MAX_TAG_BYTES)]
    places = directory.integers(tag)
    if len(places) > _MAX_TAGS:
        raise TiffError(f"{len(places):,} pictures inside of a page")
    return [_read_directory(data, at, directory.layout, 0, allowance)[0] for at in places]


def _read_directory(
    data: Content, place: int, layout: Layout, depth: int, allowance: list[int]
) -> tuple[Directory, int]:
    """Return a directory and the offset of the next; reduce `allowance` by the bytes read."""
    n_tags = _read_number(data, place, layout.number)
    if n_tags > _MAX_TAGS:
        raise TiffError(f"a directory of {n_tags} tags")
    start = place + struct.calcsize(layout.number)
    end = start + struct.calcsize(layout.entry) * n_tags
    tags: dict[int, Tag] = {}
    children: dict[int, Directory] = {}
    repeated: list[tuple[int, Tag]] = []
    entries = _read_range(data, start, end, "directory", allowance)
    for number, kind, count, value in struct.iter_unpack(layout.entry, entries):
        if kind not in _SIZES:
            continue
        size = count * _SIZES[kind]
        if size > len(value):
            at = struct.unpack(layout.place, value)[0]
            value = _read_range(data, at, at + size, "tag", allowance)
        tag = Tag(kind, count, value[:size])
        if number == DESCRIPTION and number in tags:
            repeated.append((number, tag))  # some writers add metadata in a second description
        elif number not in _POINTERS:
            tags[number] = tag
        elif depth:
            at = Directory(layout, {number: tag}).integer(number, 0)
            children[number] = _read_directory(data, at, layout, depth - 1, allowance)[0]
    return Directory(layout, tags, children, tuple(repeated)), _read_number(data, end, layout.place)


def _read_number(data: Content, place: int, code: str) -> int:
    raw = _read_range(data, place, place + struct.calcsize(code), "directory", [64])
    return int(struct.unpack(code, raw)[0])


def _read_range(data: Content, start: int, end: int, what: str, allowance: list[int]) -> bytes:
    """Return a range of bytes; raise TiffError if more are read than a valid file can have."""
    if start < 0 or end > len(data):
        raise TiffError(f"a {what} lies beyond the end of the file")
    allowance[0] -= end - start
    if allowance[0] < 0:
        raise TiffError("its tags lie one over the other, or hold more than 512 MB")
    return data[start:end]


def pack_tags(directory: Directory, place: int) -> tuple[bytes, int]:
    """Return the bytes of a directory with values and children, and the directory's own offset.

    The bytes belong at the even offset `place` of a file. The directory has no successor.
    """
    layout, block, entries = directory.layout, bytearray(), bytearray()
    leading: dict[int, list[int]] = {}
    for number, child in directory.children.items():
        child_block, child_start = pack_tags(child, place + len(block))
        block += child_block
        leading[number] = [child_start]
    tags = directory.with_integers(16 if layout.place[1] == "Q" else 4, leading).tags
    size = struct.calcsize(layout.place)
    entered = sorted([*tags.items(), *directory.repeated], key=itemgetter(0))
    for number, tag in entered:
        value = tag.data
        if len(value) > size:
            value = struct.pack(layout.place, place + len(block))
            block += tag.data + bytes(len(tag.data) % 2)
        entries += struct.pack(layout.entry, number, tag.kind, tag.count, value.ljust(size, b"\0"))
    start = place + len(block)
    block += struct.pack(layout.number, len(entered)) + entries + bytes(size)
    return bytes(block) + bytes(len(block) % 2), start


def camera_and_iso(exif: bytes | None) -> str:
    """Return the camera and its ISO from an EXIF block; empty unless both are stated."""
    directory = first_directory(exif)
    if directory is None:
        return ""
    own = directory.children.get(EXIF)
    iso = own.integer(ISO, 0) if own else 0
    names = [directory.tags[tag].data for tag in (MAKE, MODEL) if tag in directory.tags]
    camera = " ".join(name.decode("latin-1").strip("\0 ") for name in names)
    return f"{one_line(camera, 80)} at ISO {iso}" if camera and iso else ""


def write_exif(directory: Directory) -> bytes:
    """Return a directory (not BigTIFF) as an EXIF block, as in JPEG and PNG files."""
    block, start = pack_tags(directory, len(directory.layout.header(0)))
    return directory.layout.header(start) + block
