"""TIFF directories: tags with their values as they stand in a file, read and written.

A TIFF file is a chain of them, one a page; EXIF metadata is one too, wherever it is kept.

References
----------
TIFF Revision 6.0 (Adobe, 1992), section 2; BigTIFF (2007); Exif 2.32 (CIPA, 2019), section 4.6.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "EXIF_POINTERS",
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
EXIF_POINTERS = frozenset({34665, 34853, 40965})

_CODES = {1: "B", 2: "B", 3: "H", 4: "I", 6: "b", 7: "B", 8: "h", 9: "i", 11: "f", 12: "d"}
_CODES |= {13: "I", 16: "Q", 17: "q", 18: "Q"}
_INTEGERS = frozenset(_CODES) - {2, 7, 11, 12}
_RATIONALS = {5: "I", 10: "i"}
_SIZES = {kind: struct.calcsize(code) for kind, code in _CODES.items()}
_SIZES |= {kind: 2 * struct.calcsize(code) for kind, code in _RATIONALS.items()}
_MAX_TAGS = 4096
_MAX_PAGES = 100_000
_MAX_VALUE = 1 << 28
# Bytes of tags read for each byte of the file; in a sound file they do not overlap.
_MAX_OVERLAP = 4


class TiffError(ValueError):
    """The bytes are not a sound TIFF structure; the message says why, in a few words."""


@dataclass(frozen=True)
class Tag:
    """One field of a directory.

    Attributes
    ----------
    kind : int
        TIFF's number for the type of the values: 3 is a 16-bit and 4 a 32-bit unsigned integer.
    count : int
        Number of values.
    data : bytes
        The values, in the byte order of the file.
    """

    kind: int
    count: int
    data: bytes


@dataclass(frozen=True)
class Layout:
    """Byte order and widths of a TIFF file.

    Attributes
    ----------
    order : str
        ``"<"`` (little end first) or ``">"``.
    big : bool
        Whether places are 64 bits wide (BigTIFF).
    """

    order: Literal["<", ">"]
    big: bool = False

    @property
    def place(self) -> str:
        """Code of a place in the file."""
        return self.order + ("Q" if self.big else "I")

    @property
    def place_kind(self) -> int:
        """TIFF's number for the type of a place."""
        return 16 if self.big else 4

    @property
    def place_size(self) -> int:
        """Bytes of a place."""
        return 8 if self.big else 4

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

    def numbers(self, kind: int, *values: float) -> Tag:
        """Make a tag of numbers."""
        return Tag(
            kind, len(values), struct.pack(f"{self.order}{len(values)}{_CODES[kind]}", *values)
        )


@dataclass(frozen=True)
class Directory:
    """The tags of one page, or of EXIF metadata.

    Attributes
    ----------
    layout : Layout
    tags : dict of int to Tag
        Without `EXIF_POINTERS`.
    children : dict of int to Directory
        What those pointers lead to.
    """

    layout: Layout
    tags: Mapping[int, Tag]
    children: Mapping[int, Directory] = field(default_factory=dict)

    def integers(self, tag: int, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return the values of a tag of integers.

        Parameters
        ----------
        tag : int
        default : tuple of int
            For a tag that is missing, empty, or of another type.

        Returns
        -------
        tuple of int
        """
        found = self._of_integers(tag)
        if found is None:
            return default
        return struct.unpack(f"{self.layout.order}{found.count}{_CODES[found.kind]}", found.data)

    def integer(self, tag: int, default: int) -> int:
        """Return the first value of a tag of integers; see `integers`."""
        found = self._of_integers(tag)
        if found is None:
            return default
        return int(struct.unpack_from(self.layout.order + _CODES[found.kind], found.data)[0])

    def _of_integers(self, tag: int) -> Tag | None:
        found = self.tags.get(tag)
        if found is None or not found.count or found.kind not in _INTEGERS:
            return None
        return found


class _Allowance:
    """How many bytes of tags may still be read: tags that overlap can be endless."""

    def __init__(self, n_bytes: int) -> None:
        self._left = _MAX_OVERLAP * n_bytes

    def take(self, n_bytes: int) -> None:
        self._left -= n_bytes
        if self._left < 0:
            raise TiffError("its tags lie one over the other")


def read_layout(data: bytes) -> tuple[Layout, int]:
    """Return the layout of a TIFF file and the place of its first directory."""
    if len(data) < 8 or data[:2] not in (b"II", b"MM"):
        raise TiffError("no TIFF header")
    order: Literal["<", ">"] = "<" if data[:2] == b"II" else ">"
    version = struct.unpack_from(order + "H", data, 2)[0]
    if version == 42:
        return Layout(order), struct.unpack_from(order + "I", data, 4)[0]
    if version == 43 and len(data) >= 16:
        return Layout(order, big=True), struct.unpack_from(order + "Q", data, 8)[0]
    raise TiffError("no TIFF header")


def read_directories(data: bytes) -> Iterator[Directory]:
    """Read the directories of a TIFF file one by one.

    Parameters
    ----------
    data : bytes
        The whole file, or the whole of an EXIF block.

    Yields
    ------
    Directory

    Raises
    ------
    TiffError
        If a directory lies outside the file, holds what no writer would write, or comes again.
    """
    layout, place = read_layout(data)
    seen: set[int] = set()
    allowance = _Allowance(len(data))
    while place:
        if place in seen or len(seen) >= _MAX_PAGES:
            raise TiffError("its pages run in a circle")
        seen.add(place)
        directory, place = _read_directory(data, place, layout, 2, allowance)
        yield directory


def _read_directory(
    data: bytes, place: int, layout: Layout, depth: int, allowance: _Allowance
) -> tuple[Directory, int]:
    width = struct.calcsize(layout.entry)
    if place >= len(data):
        raise TiffError("a directory lies beyond the end of the file")
    try:
        n_tags = struct.unpack_from(layout.number, data, place)[0]
        start = place + struct.calcsize(layout.number)
        if n_tags > _MAX_TAGS:
            raise TiffError(f"a directory of {n_tags} tags")
        allowance.take(width * n_tags)
        entries = [
            struct.unpack_from(layout.entry, data, start + width * at) for at in range(n_tags)
        ]
        following = struct.unpack_from(layout.place, data, start + width * n_tags)[0]
    except struct.error:
        raise TiffError("a directory lies beyond the end of the file") from None
    tags: dict[int, Tag] = {}
    children: dict[int, Directory] = {}
    for number, kind, count, value in entries:
        if kind not in _SIZES:
            continue
        tag = _read_tag(data, layout, kind, count, value, allowance)
        if number not in EXIF_POINTERS:
            tags[number] = tag
        elif depth:
            alone = Directory(layout, {number: tag}).integer(number, 0)
            children[number] = _read_directory(data, alone, layout, depth - 1, allowance)[0]
    return Directory(layout, tags, children), following


def _read_tag(
    data: bytes, layout: Layout, kind: int, count: int, value: bytes, allowance: _Allowance
) -> Tag:
    size = count * _SIZES[kind]
    if size > _MAX_VALUE:
        raise TiffError("a tag of absurd size")
    if size <= len(value):
        return Tag(kind, count, value[:size])
    place = struct.unpack(layout.place, value)[0]
    if place + size > len(data):
        raise TiffError("a tag lies beyond the end of the file")
    allowance.take(size)
    return Tag(kind, count, data[place : place + size])


def pack_tags(directory: Directory, place: int) -> tuple[bytes, int]:
    """Lay out a directory with its values and children, to stand at a place in a file.

    Parameters
    ----------
    directory : Directory
    place : int
        Where the bytes will stand; even.

    Returns
    -------
    block : bytes
        Values, children, then the directory, which leads nowhere yet.
    start : int
        Where in the file the directory itself begins.
    """
    layout = directory.layout
    block = bytearray()
    tags = dict(directory.tags)
    for number, child in directory.children.items():
        child_block, child_start = pack_tags(child, place + len(block))
        block += child_block
        tags[number] = layout.numbers(layout.place_kind, child_start)
    entries = bytearray()
    for number, tag in sorted(tags.items()):
        value = tag.data
        if len(value) > layout.place_size:
            value = struct.pack(layout.place, place + len(block))
            block += tag.data + bytes(len(tag.data) % 2)
        value = value.ljust(layout.place_size, b"\0")
        entries += struct.pack(layout.entry, number, tag.kind, tag.count, value)
    start = place + len(block)
    block += struct.pack(layout.number, len(tags)) + entries + bytes(layout.place_size)
    return bytes(block) + bytes(len(block) % 2), start


def write_exif(directory: Directory) -> bytes:
    """Write a directory as an EXIF block, the form in which JPEG and PNG keep it.

    Parameters
    ----------
    directory : Directory
        Not of a BigTIFF file.

    Returns
    -------
    bytes

    Examples
    --------
    >>> layout = Layout("<")
    >>> exif_orientation(write_exif(Directory(layout, {ORIENTATION: layout.numbers(3, 6)})))
    6
    """
    header = len(directory.layout.header(0))
    block, start = pack_tags(directory, header)
    return directory.layout.header(start) + block


def exif_orientation(exif: bytes | None) -> int:
    """Return how an image is to be turned for viewing: 1 (not at all) to 8, EXIF's numbers.

    Examples
    --------
    >>> exif_orientation(None), exif_orientation(b"damaged")
    (1, 1)
    """
    if exif is None:
        return 1
    try:
        value = next(read_directories(exif)).integer(ORIENTATION, 1)
    except (TiffError, StopIteration):
        return 1
    return value if 1 <= value <= 8 else 1
