"""TIFF directories: tags with their values as they stand in a file, read and written.

A TIFF file is a chain of them, one a page; EXIF metadata is one too, wherever it is kept. Read
here and not by tifffile, which turns values into Python's (a private tag cannot be written again
as it was), writes no EXIF, and reads tags that lie over one another without end.

References
----------
TIFF Revision 6.0 (Adobe, 1992), section 2; BigTIFF (2007); Exif 2.32 (CIPA, 2019), section 4.6.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

__all__ = [
    "ORIENTATION",
    "Directory",
    "Layout",
    "Tag",
    "TiffError",
    "exif_orientation",
    "pack_tags",
    "read_directories",
    "write_exif",
]

ORIENTATION = 274
# Tags whose value is the place of another directory: EXIF, GPS, interoperability.
_POINTERS = frozenset({34665, 34853, 40965})

_INTEGERS = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 13: "I", 16: "Q", 17: "q", 18: "Q"}
_SIZES = {kind: struct.calcsize(code) for kind, code in _INTEGERS.items()}
_SIZES |= {2: 1, 5: 8, 7: 1, 10: 8, 11: 4, 12: 8}
_MAX_TAGS = 4096
_MAX_PAGES = 100_000
# Bytes of tags read for each byte of the file; in a sound file they do not overlap.
_MAX_OVERLAP = 4


class TiffError(ValueError):
    """The bytes are not a sound TIFF structure; the message says why, in a few words."""


@dataclass(frozen=True)
class Tag:
    """One field of a directory: TIFF's number for its type, how many, and their bytes."""

    kind: int
    count: int
    data: bytes


class Layout(NamedTuple):
    """Byte order of a TIFF file, and whether places are 64 bits wide (BigTIFF)."""

    order: Literal["<", ">"]
    big: bool = False

    @property
    def place(self) -> str:
        """Code of a place in the file."""
        return self.order + ("Q" if self.big else "I")

    @property
    def number(self) -> str:
        """Code of the number of tags in a directory."""
        return self.order + ("Q" if self.big else "H")

    @property
    def entry(self) -> str:
        """Code of a directory's entry: tag, type, count, and the value or its place."""
        return self.order + ("HHQ8s" if self.big else "HHI4s")

    def header(self, first: int) -> bytes:
        """Return the first bytes of a file whose first directory stands at `first`."""
        mark = b"II" if self.order == "<" else b"MM"
        if self.big:
            return mark + struct.pack(self.order + "HHHQ", 43, 8, 0, first)
        return mark + struct.pack(self.order + "HI", 42, first)

    def numbers(self, kind: int, *values: int) -> Tag:
        """Make a tag of integers."""
        data = struct.pack(f"{self.order}{len(values)}{_INTEGERS[kind]}", *values)
        return Tag(kind, len(values), data)

    def places(self, *values: int) -> Tag:
        """Make a tag of places in the file."""
        return self.numbers(16 if self.big else 4, *values)


@dataclass(frozen=True)
class Directory:
    """The tags of one page, or of EXIF metadata, and the directories some of them lead to."""

    layout: Layout
    tags: Mapping[int, Tag]
    children: Mapping[int, Directory] = field(default_factory=dict)

    def integers(self, tag: int, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return a tag's integers; the default where it is missing, empty or of another type."""
        found = self.tags.get(tag)
        if found is None or not found.count or found.kind not in _INTEGERS:
            return default
        code = f"{self.layout.order}{found.count}{_INTEGERS[found.kind]}"
        return struct.unpack(code, found.data)

    def integer(self, tag: int, default: int) -> int:
        """Return the first of a tag's integers; see `integers`."""
        return self.integers(tag, (default,))[0]


def read_directories(data: bytes) -> Iterator[Directory]:
    """Read the directories of a TIFF file, or of an EXIF block, one by one.

    TiffError if one lies outside the file, holds what no writer would write, or comes again.
    """
    layout, place = _read_header(data)
    seen: set[int] = set()
    allowance = [_MAX_OVERLAP * len(data)]
    while place:
        if place in seen or len(seen) >= _MAX_PAGES:
            raise TiffError("its pages run in a circle")
        seen.add(place)
        directory, place = _read_directory(data, place, layout, 2, allowance)
        yield directory


def _read_header(data: bytes) -> tuple[Layout, int]:
    order: Literal["<", ">"] = "<" if data[:2] == b"II" else ">"
    version = data[2:4] if order == ">" else data[3:1:-1]
    if version == b"\0*" and len(data) >= 8:
        return Layout(order), struct.unpack_from(order + "I", data, 4)[0]
    if version == b"\0+" and len(data) >= 16:
        return Layout(order, big=True), struct.unpack_from(order + "Q", data, 8)[0]
    raise TiffError("no TIFF header")


def _read_directory(
    data: bytes, place: int, layout: Layout, depth: int, allowance: list[int]
) -> tuple[Directory, int]:
    """Return the directory at a place, and the place of the next; the allowance is of bytes."""
    width = struct.calcsize(layout.entry)
    start = place + struct.calcsize(layout.number)
    n_tags = struct.unpack(layout.number, _cut(data, place, start, "directory"))[0]
    if n_tags > _MAX_TAGS:
        raise TiffError(f"a directory of {n_tags} tags")
    end = start + width * n_tags
    entries = struct.iter_unpack(layout.entry, _taken(data, start, end, "directory", allowance))
    tags: dict[int, Tag] = {}
    children: dict[int, Directory] = {}
    for number, kind, count, value in entries:
        size = count * _SIZES.get(kind, 0)
        if kind not in _SIZES:
            continue
        if size > len(value):
            at = struct.unpack(layout.place, value)[0]
            value = _taken(data, at, at + size, "tag", allowance)
        tag = Tag(kind, count, value[:size])
        if number not in _POINTERS:
            tags[number] = tag
        elif depth:
            alone = Directory(layout, {number: tag}).integer(number, 0)
            children[number] = _read_directory(data, alone, layout, depth - 1, allowance)[0]
    following = _cut(data, end, end + struct.calcsize(layout.place), "directory")
    return Directory(layout, tags, children), struct.unpack(layout.place, following)[0]


def _cut(data: bytes, start: int, end: int, what: str) -> bytes:
    if start < 0 or end > len(data):
        raise TiffError(f"a {what} lies beyond the end of the file")
    return data[start:end]


def _taken(data: bytes, start: int, end: int, what: str, allowance: list[int]) -> bytes:
    """Return bytes, as long as those read so far are no more than a sound file can have."""
    allowance[0] -= end - start
    if end <= len(data) and allowance[0] < 0:
        raise TiffError("its tags lie one over the other")
    return _cut(data, start, end, what)


def pack_tags(directory: Directory, place: int) -> tuple[bytes, int]:
    """Lay out a directory with its values and children, to stand at an even place in a file.

    Returns the bytes, and where in the file the directory itself begins; it leads nowhere yet.
    """
    layout = directory.layout
    block = bytearray()
    tags = dict(directory.tags)
    for number, child in directory.children.items():
        child_block, child_start = pack_tags(child, place + len(block))
        block += child_block
        tags[number] = layout.places(child_start)
    entries = bytearray()
    size = struct.calcsize(layout.place)
    for number, tag in sorted(tags.items()):
        value = tag.data
        if len(value) > size:
            value = struct.pack(layout.place, place + len(block))
            block += tag.data + bytes(len(tag.data) % 2)
        entries += struct.pack(layout.entry, number, tag.kind, tag.count, value.ljust(size, b"\0"))
    start = place + len(block)
    block += struct.pack(layout.number, len(tags)) + entries + bytes(size)
    return bytes(block) + bytes(len(block) % 2), start


def write_exif(directory: Directory) -> bytes:
    """Write a directory not of BigTIFF as an EXIF block, as JPEG and PNG keep it.

    Examples
    --------
    >>> layout = Layout("<")
    >>> exif_orientation(write_exif(Directory(layout, {ORIENTATION: layout.numbers(3, 6)})))
    6
    """
    block, start = pack_tags(directory, len(directory.layout.header(0)))
    return directory.layout.header(start) + block


def exif_orientation(exif: bytes | None) -> int:
    """Return how an image is to be turned for viewing: 1 (not at all) to 8, EXIF's numbers.

    Examples
    --------
    >>> exif_orientation(None), exif_orientation(b"damaged")
    (1, 1)
    """
    try:
        value = next(read_directories(exif or b"")).integer(ORIENTATION, 1)
    except (TiffError, StopIteration):
        return 1
    return value if 1 <= value <= 8 else 1
