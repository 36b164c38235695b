"""CZI files of Zeiss microscopes, whose tiles are put together; written as OME-TIFF.

Pyramids of smaller copies are left out. Read here and not by czifile, whose calls differ between
the versions for Python 3.11 and later ones; the structure is that of libCZI (Zeiss), which is open.
"""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.images.laboratory.ome import (
    Series,
    groups_of,
    ome_directories,
    page_times,
    physical_sizes,
)
from kpca_apps.images.large import Content
from kpca_apps.images.tiff import write_tiff
from kpca_apps.images.types import (
    DEFLATE_RATIO,
    Format,
    ImageFile,
    Page,
    check_size,
    damage_refused,
)

_METRE = 1e6  # micrometres
_ALONG = "TCZ"  # axes of pages, the last fastest
_PLAIN, _LZW, _JPEG_XR, _ZSTD, _ZSTD_SPLIT = 0, 2, 4, 5, 6
_PACKINGS = frozenset({_PLAIN, _LZW, _JPEG_XR, _ZSTD, _ZSTD_SPLIT})
# Types of pixels: of a channel, and channels, of which blue comes first.
_TYPES = {0: ("u1", 1), 1: ("u2", 1), 2: ("f4", 1), 3: ("u1", 3), 4: ("u2", 3), 8: ("f4", 3)}
_TYPES |= {9: ("u1", 4), 12: ("i4", 1)}
_MOST_TILES = 1_000_000
# A segment begins with its name and two sizes; where directory, metadata and attachments stand is
# in the first, and how long the parts of a tile are in each of theirs.
_SEGMENT, _PLACES, _PARTS = (
    struct.Struct("<16sqq"),
    struct.Struct("<52xqq4xq"),
    struct.Struct("<iiq"),
)
_ENTRY, _SIDE = struct.Struct("<2siq4xiB5xi"), struct.Struct("<4sii4xi")
_ATTACHED, _ATTACHED_BYTES = struct.Struct("<12xq20x8s"), 128
_MOST_ATTACHED, _ATTACHMENT_HEAD = 10_000, 256
_DIRECTORY_HEAD, _METADATA_HEAD, _LEAST_ENTRY = 128, 256, 240


@dataclass(frozen=True)
class _Side:
    """Where a tile begins along an axis, how far it reaches, and in how many pixels."""

    start: int
    size: int
    stored: int


@dataclass(frozen=True)
class _Entry:
    """What the directory says of a tile, a piece of a page."""

    kind: int  # of pixels
    place: int
    packing: int
    is_smaller: bool  # whether it belongs to a smaller copy
    sides: Mapping[str, _Side]

    @property
    def n_pixels(self) -> int:
        return self.sides["X"].size * self.sides["Y"].size


@dataclass(frozen=True)
class _Scene:
    """Pages of one size, each put together of tiles."""

    page: Page
    left: int
    top: int
    starts: Mapping[str, int]
    sizes: tuple[int, ...]  # of the axes of pages
    tiles: Mapping[tuple[int, ...], list[_Entry]]  # by the place of a page along these axes


def read_czi(data: Content, label: str) -> ImageFile:
    """Read a CZI file: a series of pages for each of its scenes, at full resolution."""
    with damage_refused(label):
        places = _segment(data, 0, b"ZISRAWFILE", _PLACES.size)
        directory, metadata, attachments = _PLACES.unpack_from(places)
        scenes = _scenes(_entries(data, directory), label)
        said = _said(_xml(data, metadata))
        times = _times(data, attachments)
    n_pages = sum(math.prod(scene.sizes) for scene in scenes)
    tiles = [(one, scene) for scene in scenes for own in scene.tiles.values() for one in own]
    packed = any(tile.packing for tile, _ in tiles)
    n_bytes = max(
        sum(math.prod(scene.sizes) * scene.page.n_bytes for scene in scenes),
        # The directory may lead to one piece of the file many times.
        sum(tile.n_pixels * scene.page.pixel_bytes for tile, scene in tiles),
    )
    # Where tiles are few, most of a page is empty, though seldom of all pages.
    if n_pages > _MOST_TILES or n_bytes > (DEFLATE_RATIO if packed else 64) * len(data):
        raise InputError(
            f"{label}: its {n_pages} pages promise more pixels than its {len(data)} bytes can "
            "hold; it is damaged, fetch the file again."
        )
    series = [
        Series(
            _ALONG,
            scene.sizes,
            scene.page,
            {**_of_channels(said, scene), **_of_pages(times, scene)},
        )
        for scene in scenes
    ]
    first = [0]
    for scene in scenes:
        first.append(first[-1] + math.prod(scene.sizes))

    def page(number: int) -> NDArray[Any]:
        which = next(n for n, start in enumerate(first[1:]) if number < start)
        scene = scenes[which]
        key = tuple(map(int, np.unravel_index(number - first[which], scene.sizes)))
        whole = np.zeros(
            (scene.page.height, scene.page.width, scene.page.channels), scene.page.dtype
        )
        with damage_refused(label):
            for tile in scene.tiles.get(key, ()):
                x, y = tile.sides["X"], tile.sides["Y"]
                top, left = y.start - scene.top, x.start - scene.left
                whole[top : top + y.size, left : left + x.size] = _pixels(data, tile, scene.page)
        return whole[..., 0] if scene.page.channels == 1 else whole

    notes = ["Its smaller copies, its experiment and its events are not kept."]
    if any(len(tiles) > 1 for scene in scenes for tiles in scene.tiles.values()):
        notes.append("Its tiles are put together as they lie, the later above the earlier.")
    return ImageFile(
        label=label,
        format="czi",
        pages=tuple(one.page for one in series for _ in range(one.n_pages)),
        page=page,
        notes=tuple(notes),
        directories=ome_directories(series),
        groups=groups_of(series) if n_pages > len(series) else None,
    )


def _segment(data: Content, place: int, name: bytes, n_bytes: int) -> bytes:
    """Return the first bytes of a segment after its head."""
    head = data[place : place + _SEGMENT.size]
    if place < 0 or not head.startswith(name):
        raise ValueError(f"no segment {name.decode()} where it should be")
    begin = place + _SEGMENT.size
    return data[begin : begin + n_bytes]


def _entries(data: Content, place: int) -> Iterator[_Entry]:
    """Yield what the directory says of each tile."""
    count = int.from_bytes(_segment(data, place, b"ZISRAWDIRECTORY", 4), "little")
    least = _ENTRY.size + 2 * _SIDE.size
    begin = place + _SEGMENT.size + _DIRECTORY_HEAD
    if count > _MOST_TILES or begin + count * least > len(data):
        raise ValueError(f"{count:,} tiles")
    # An entry has a few sides, and none is longer than this.
    listed, at = data[begin : begin + count * (_ENTRY.size + 30 * _SIDE.size)], 0
    for _ in range(count):
        schema, kind, place, packing, pyramid, n_sides = _ENTRY.unpack_from(listed, at)
        if schema != b"DV" or not 2 <= n_sides <= 30:
            raise ValueError("an entry of its directory is of another kind")
        sides = {}
        at += _ENTRY.size
        for _ in range(n_sides):
            axis, start, size, stored = _SIDE.unpack_from(listed, at)
            sides[axis.rstrip(b"\0").decode("latin-1")] = _Side(start, size, stored or size)
            at += _SIDE.size
        yield _Entry(kind, place, packing, bool(pyramid), sides)


def _xml(data: Content, place: int) -> bytes:
    """Return the metadata, if they are there."""
    if not place:
        return b""
    size = int.from_bytes(_segment(data, place, b"ZISRAWMETADATA", 4), "little")
    begin = place + _SEGMENT.size + _METADATA_HEAD
    return data[begin : begin + size]


def _times(data: Content, place: int) -> tuple[float, ...]:
    """Return when each time was, in seconds, if an attachment says so."""
    if not place:
        return ()
    # An attachment that is damaged costs no pixel.
    with suppress(ValueError, struct.error):
        count = int.from_bytes(_segment(data, place, b"ZISRAWATTDIR", 4), "little")
        begin = place + _SEGMENT.size + _ATTACHMENT_HEAD
        listed = data[begin : begin + min(count, _MOST_ATTACHED) * _ATTACHED_BYTES]
        for at in range(0, len(listed) - _ATTACHED_BYTES + 1, _ATTACHED_BYTES):
            where, kind = _ATTACHED.unpack_from(listed, at)
            if kind.rstrip(b"\0") == b"CZTIMS":
                _segment(data, where, b"ZISRAWATTACH", 0)
                begin = where + _SEGMENT.size + _ATTACHMENT_HEAD
                number = min(struct.unpack("<4xi", data[begin : begin + 8])[0], _MOST_TILES)
                return struct.unpack(f"<{number}d", data[begin + 8 : begin + 8 + 8 * number])
    return ()


def _scenes(entries: Iterable[_Entry], label: str) -> list[_Scene]:
    """Sort the tiles of full resolution by scene and page."""
    found: dict[tuple[Any, ...], list[_Entry]] = defaultdict(list)
    for entry in entries:
        sides = entry.sides
        if entry.is_smaller or any(sides[a].size != sides[a].stored for a in "YX"):
            continue
        others = tuple((a, one.start) for a, one in sorted(sides.items()) if a not in "TCZYXM")
        found[others].append(entry)
    if not found:
        raise InputError(f"{label}: holds no image.")
    return [_scene(pieces, label) for _, pieces in sorted(found.items())]


def _scene(pieces: list[_Entry], label: str) -> _Scene:
    kinds = {entry.kind for entry in pieces}
    if len(kinds) > 1 or not kinds <= _TYPES.keys():
        raise InputError(
            f"{label}: holds channels of several types, or of complex numbers; export it as "
            "OME-TIFF first."
        )
    dtype, channels = _TYPES[kinds.pop()]
    for packing in {entry.packing for entry in pieces} - _PACKINGS:
        raise InputError(
            f"{label}: its compression (CZI scheme {packing}) is not read; save it without first."
        )
    if any(entry.sides[axis].size < 1 for entry in pieces for axis in "XY"):
        raise InputError(f"{label}: a tile without pixels; it is damaged, fetch the file again.")
    left, top = (min(entry.sides[axis].start for entry in pieces) for axis in "XY")
    right, bottom = (max(e.sides[a].start + e.sides[a].size for e in pieces) for a in "XY")
    check_size(label, (bottom - top, right - left), 0, 0, 1)
    starts, sizes = {}, []
    for axis in _ALONG:
        places = [entry.sides[axis].start for entry in pieces if axis in entry.sides] or [0]
        starts[axis] = min(places)
        sizes.append(max(places) - min(places) + 1)
    tiles: dict[tuple[int, ...], list[_Entry]] = defaultdict(list)
    nothing = _Side(0, 1, 1)
    for entry in sorted(pieces, key=lambda one: one.sides.get("M", nothing).start):
        sides = entry.sides
        key = tuple(sides[a].start - starts[a] if a in sides else 0 for a in _ALONG)
        tiles[key].append(entry)
    page = Page(bottom - top, right - left, channels, np.dtype(dtype))
    return _Scene(page, left, top, starts, tuple(sizes), tiles)


def _pixels(data: Content, tile: _Entry, page: Page) -> NDArray[Any]:
    """Unpack a tile."""
    size = tile.n_pixels * page.pixel_bytes
    parts = _segment(data, tile.place, b"ZISRAWSUBBLOCK", _PARTS.size)
    n_metadata, _, n_bytes = _PARTS.unpack(parts)
    entry = max(_LEAST_ENTRY, _ENTRY.size + len(tile.sides) * _SIDE.size)
    begin = tile.place + _SEGMENT.size + _PARTS.size + entry + n_metadata
    raw: bytes | bytearray = data[begin : begin + n_bytes]
    if n_metadata < 0 or len(raw) != n_bytes:
        raise ValueError("a tile is cut short")
    if tile.packing == _JPEG_XR:
        _check_jpeg_xr(raw, tile)
        values = np.asarray(imagecodecs.jpegxr_decode(raw))
    else:
        if tile.packing == _LZW:
            raw = imagecodecs.lzw_decode(raw, out=size)
        elif tile.packing == _ZSTD:
            raw = imagecodecs.zstd_decode(raw, out=size)
        elif tile.packing == _ZSTD_SPLIT:
            raw = _unsplit(bytes(raw), size)
        values = np.frombuffer(raw, page.dtype.newbyteorder("<"))
    shape = (tile.sides["Y"].size, tile.sides["X"].size, page.channels)
    if values.size != math.prod(shape) or values.dtype.itemsize != page.dtype.itemsize:
        raise ValueError("a tile of another size than its header says")
    values = values.reshape(shape)
    if tile.packing == _JPEG_XR or page.channels == 1:
        return values
    return values[..., [2, 1, 0, 3][: page.channels]]  # blue comes first


def _check_jpeg_xr(raw: bytes | bytearray, tile: _Entry) -> None:
    """Refuse a tile that is larger than it should be, by its header: ITU-T T.832 (2019), 8.3."""
    (at,) = struct.unpack_from("<4xI", raw)
    (count,) = struct.unpack_from("<H", raw, at)
    entries = (struct.unpack_from("<HHII", raw, at + 2 + 12 * number) for number in range(count))
    places = [value for tag, _, _, value in entries if tag in (0xBCC0, 0xBCC2)]  # of alpha too
    for place in places:
        mark, flags = struct.unpack_from(">8s2xB", raw, place)
        sides = struct.unpack_from(">HH" if flags & 0x80 else ">II", raw, place + 12)
        if mark != b"WMPHOTO\0" or math.prod(side + 1 for side in sides) > tile.n_pixels:
            raise ValueError("a tile of another size than its header says")
    if not places:
        raise ValueError("a tile without pixels")


def _unsplit(raw: bytes, size: int) -> bytes:
    """Unpack Zstandard after a small header, which says whether low and high bytes lie apart."""
    length = raw[0]
    is_split = length > 1 and raw[1] == 1 and bool(raw[2] & 1)
    unpacked = bytes(imagecodecs.zstd_decode(raw[length:], out=size))
    if not is_split:
        return unpacked
    return np.frombuffer(unpacked, np.uint8).reshape(2, -1).T.tobytes()


def _said(xml: bytes) -> dict[str, Any]:
    """Return sizes of a pixel, names of channels, time between frames and date, where told."""
    try:
        root = ElementTree.fromstring(xml)
    except (ElementTree.ParseError, ValueError):
        return {}
    sizes = {}
    for axis in "XYZ":
        value = root.findtext(f".//Scaling/Items/Distance[@Id='{axis}']/Value")
        sizes[axis] = _number(value) * _METRE
    said = physical_sizes(sizes, "µm")
    names = [
        one.get("Name") or one.get("Id") or ""
        for one in root.findall(".//Information/Image/Dimensions/Channels/Channel")
    ]
    if names:
        said["Channel"] = {"Name": names}
    increment = _number(
        root.findtext(".//Information/Image/Dimensions/T/Positions/Interval/Increment")
    )
    if increment > 0:
        said |= {"TimeIncrement": increment, "TimeIncrementUnit": "s"}
    date = root.findtext(".//Information/Image/AcquisitionDateAndTime")
    if date:
        said["AcquisitionDate"] = date[:19]
    return said


def _of_channels(said: dict[str, Any], scene: _Scene) -> dict[str, Any]:
    """Keep the names of channels only where there are as many as channels."""
    count, first = scene.sizes[_ALONG.index("C")], scene.starts["C"]
    names = said.get("Channel", {}).get("Name", [])[first : first + count]
    others = {name: value for name, value in said.items() if name != "Channel"}
    return {**others, "Channel": {"Name": names}} if len(names) == count else others


def _of_pages(times: tuple[float, ...], scene: _Scene) -> dict[str, Any]:
    """Say when each page was taken, where that is known of all."""
    along = _ALONG.index("T")
    places = np.indices(scene.sizes)[along].ravel() + scene.starts["T"]
    if places.min() < 0 or places.max() >= len(times):
        return {}
    return page_times([times[place] for place in places], "s")


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


FORMAT = Format(rb"ZISRAWFILE", (".czi",), read_czi, write_tiff, size=None, written_as="tiff")
