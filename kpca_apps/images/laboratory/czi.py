"""CZI files of Zeiss microscopes, whose tiles are put together; written as OME-TIFF.

Pyramids of smaller copies are left out. By czifile, of the extra "lab", which finds the tiles; they
are unpacked here, for it does not know Zstandard.
"""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.images.laboratory.ome import Series, groups_of, ome_directories, physical_sizes
from kpca_apps.images.large import Content
from kpca_apps.images.tiff import write_tiff
from kpca_apps.images.types import (
    DEFLATE_RATIO,
    Format,
    ImageFile,
    Metadata,
    Page,
    check_size,
    damage_refused,
    require_library,
)

_METRE = 1e6  # micrometres
_ALONG = "TCZ"  # axes of pages, the last fastest
_PLAIN, _LZW, _JPEG_XR, _ZSTD, _ZSTD_SPLIT = 0, 2, 4, 5, 6
_PACKINGS = frozenset({_PLAIN, _LZW, _JPEG_XR, _ZSTD, _ZSTD_SPLIT})
_TYPES = {"<u1": ("u1", 1), "<u2": ("u2", 1), "<f4": ("f4", 1), "<3u1": ("u1", 3)}
_TYPES |= {"<3u2": ("u2", 3), "<3f4": ("f4", 3), "<4u1": ("u1", 4), "<i4": ("i4", 1)}
_MOST_TILES = 1_000_000


@dataclass(frozen=True)
class _Tile:
    """A piece of a page, where it lies in the file and on the page."""

    place: int
    packing: int
    left: int
    top: int
    height: int
    width: int


@dataclass(frozen=True)
class _Scene:
    """Pages of one size, each put together of tiles."""

    page: Page
    left: int
    top: int
    starts: Mapping[str, int]
    sizes: tuple[int, ...]  # of the axes of pages
    tiles: Mapping[tuple[int, ...], list[_Tile]]  # by the place of a page along these axes


def read_czi(data: Content, label: str) -> ImageFile:
    """Read a CZI file: a series of pages for each of its scenes, at full resolution."""
    require_library(label, "czifile", "lab", "CZI files")
    with damage_refused(label), _opened(data) as file:
        entries = file.subblock_directory
        if len(entries) > _MOST_TILES:
            raise ValueError(f"{len(entries):,} tiles")
        scenes = _scenes(entries, label)
        xml = file.metadata() or ""
        said = _said(xml)
    n_pages = sum(math.prod(scene.sizes) for scene in scenes)
    n_bytes = sum(math.prod(scene.sizes) * scene.page.n_bytes for scene in scenes)
    packed = any(
        tile.packing for scene in scenes for tiles in scene.tiles.values() for tile in tiles
    )
    # Where tiles are few, most of a page is empty, though seldom of all pages.
    if n_pages > _MOST_TILES or n_bytes > (DEFLATE_RATIO if packed else 64) * len(data):
        raise InputError(
            f"{label}: its {n_pages} pages promise more pixels than its {len(data)} bytes can "
            "hold; it is damaged, fetch the file again."
        )
    series = [
        Series(_ALONG, scene.sizes, scene.page, _of_channels(said, scene)) for scene in scenes
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
        with damage_refused(label), _opened(data) as file:
            for tile in scene.tiles.get(key, ()):
                top, left = tile.top - scene.top, tile.left - scene.left
                whole[top : top + tile.height, left : left + tile.width] = _pixels(
                    file, tile, scene.page
                )
        return whole[..., 0] if scene.page.channels == 1 else whole

    notes = ["Its smaller copies, its experiment and its events are not kept."]
    if any(len(tiles) > 1 for scene in scenes for tiles in scene.tiles.values()):
        notes.append("Its tiles are put together as they lie, the later above the earlier.")
    return ImageFile(
        label=label,
        format="czi",
        pages=tuple(one.page for one in series for _ in range(one.n_pages)),
        metadata=Metadata(),
        page=page,
        notes=tuple(notes),
        directories=ome_directories(series),
        groups=groups_of(series) if n_pages > len(series) else None,
    )


@contextmanager
def _opened(data: Content) -> Iterator[Any]:
    from czifile import CziFile

    source = io.BytesIO(data) if isinstance(data, bytes) else str(data.path)
    with CziFile(source, multifile=False) as file:
        yield file


def _scenes(entries: Any, label: str) -> list[_Scene]:
    """Sort the tiles of full resolution by scene and page."""
    found: dict[tuple[Any, ...], list[tuple[dict[str, Any], Any]]] = defaultdict(list)
    for entry in entries:
        sides = {one.dimension: one for one in entry.dimension_entries}
        if entry.pyramid_type or any(sides[a].size != sides[a].stored_size for a in "YX"):
            continue
        others = tuple((a, one.start) for a, one in sorted(sides.items()) if a not in "TCZYXM")
        found[others].append((sides, entry))
    if not found:
        raise InputError(f"{label}: holds no image.")
    return [_scene(pieces, label) for _, pieces in sorted(found.items())]


def _scene(pieces: list[tuple[dict[str, Any], Any]], label: str) -> _Scene:
    types = {entry.dtype for _, entry in pieces}
    if len(types) > 1 or not types <= _TYPES.keys():
        raise InputError(
            f"{label}: holds channels of several types, or of complex numbers; export it as "
            "OME-TIFF first."
        )
    dtype, channels = _TYPES[types.pop()]
    for packing in {int(entry.compression) for _, entry in pieces} - _PACKINGS:
        raise InputError(
            f"{label}: its compression (CZI scheme {packing}) is not read; save it without first."
        )
    left, top = (min(sides[axis].start for sides, _ in pieces) for axis in "XY")
    right, bottom = (max(sides[a].start + sides[a].size for sides, _ in pieces) for a in "XY")
    if any(sides[axis].size < 1 for sides, _ in pieces for axis in "XY"):
        raise InputError(f"{label}: a tile without pixels; it is damaged, fetch the file again.")
    check_size(label, (bottom - top, right - left), 0, 0, 1)
    starts, sizes = {}, []
    for axis in _ALONG:
        places = [sides[axis].start for sides, _ in pieces if axis in sides] or [0]
        starts[axis] = min(places)
        sizes.append(max(places) - min(places) + 1)
    tiles: dict[tuple[int, ...], list[_Tile]] = defaultdict(list)
    later = sorted(pieces, key=lambda one: one[0]["M"].start if "M" in one[0] else 0)
    for sides, entry in later:
        key = tuple(sides[a].start - starts[a] if a in sides else 0 for a in _ALONG)
        x, y = sides["X"], sides["Y"]
        place, packing = int(entry.file_position), int(entry.compression)
        tiles[key].append(_Tile(place, packing, x.start, y.start, y.size, x.size))
    page = Page(bottom - top, right - left, channels, np.dtype(dtype))
    return _Scene(page, left, top, starts, tuple(sizes), tiles)


def _pixels(file: Any, tile: _Tile, page: Page) -> NDArray[Any]:
    """Unpack a tile."""
    from czifile import Segment

    segment = Segment(file._fh, tile.place).data()
    size = tile.height * tile.width * page.channels * page.dtype.itemsize
    raw = segment.data(raw=True)
    if tile.packing == _JPEG_XR:
        values = np.asarray(imagecodecs.jpegxr_decode(raw))
    else:
        if tile.packing == _LZW:
            raw = imagecodecs.lzw_decode(raw, out=size)
        elif tile.packing == _ZSTD:
            raw = imagecodecs.zstd_decode(raw, out=size)
        elif tile.packing == _ZSTD_SPLIT:
            raw = _unsplit(raw, size)
        values = np.frombuffer(raw, page.dtype.newbyteorder("<"))
    shape = (tile.height, tile.width, page.channels)
    if values.size != math.prod(shape) or values.dtype.itemsize != page.dtype.itemsize:
        raise ValueError("a tile of another size than its header says")
    values = values.reshape(shape)
    if tile.packing == _JPEG_XR or page.channels == 1:
        return values
    # Blue comes first.
    return values[..., [2, 1, 0, 3][: page.channels]]


def _unsplit(raw: bytes, size: int) -> bytes:
    """Unpack Zstandard after a small header, which says whether low and high bytes lie apart."""
    length = raw[0]
    is_split = length > 1 and raw[1] == 1 and bool(raw[2] & 1)
    unpacked = bytes(imagecodecs.zstd_decode(raw[length:], out=size))
    if not is_split:
        return unpacked
    return np.frombuffer(unpacked, np.uint8).reshape(2, -1).T.tobytes()


def _said(xml: str) -> dict[str, Any]:
    """Return sizes of a pixel, names of channels, time between frames and date, where told."""
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError:
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


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


FORMAT = Format(rb"ZISRAWFILE", (".czi",), read_czi, write_tiff, size=None, written_as="tiff")
