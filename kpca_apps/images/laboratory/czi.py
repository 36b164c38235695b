"""Read CZI files of Zeiss microscopes by pylibCZIrw (extra "lab"); results are OME-TIFF files.

Smaller copies (pyramids) are not read.
"""

from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError, require_library
from kpca_apps.images.laboratory.ome import Series, check_pages, make_image, physical_sizes
from kpca_apps.images.large import Content
from kpca_apps.images.tiff import write_tiff
from kpca_apps.images.types import Format, ImageFile, Page, check_size, damage_refused
from kpca_apps.system.files.spools import spool

_METRE = 1e6  # in micrometres
_ALONG = "TCZ"  # axes of the pages; the last varies fastest
# Type and number of channels for each pixel type. Types named Bgr store blue first.
_TYPES = {"Gray8": ("u1", 1), "Gray16": ("u2", 1), "Gray32Float": ("f4", 1)}
_TYPES |= {"Bgr24": ("u1", 3), "Bgr48": ("u2", 3), "Bgr96Float": ("f4", 3)}


def read_czi(data: Content) -> ImageFile:
    """Read a CZI file at full resolution; each of its scenes is a series of pages."""
    require_library("pylibCZIrw", "lab", "CZI files")
    from pylibCZIrw import czi

    source = spool([data]) if isinstance(data, bytes) else data  # kept open while pages are read
    with damage_refused(), czi.open_czi(str(source.path)) as file:
        kinds, box = set(file.pixel_types.values()), dict(file.total_bounding_box_no_pyramid)
        places: dict[int | None, Any] = dict(file.scenes_bounding_rectangle_no_pyramid)
        places = places or {None: file.total_bounding_rectangle_no_pyramid}
        attributes = _read_attributes(file.raw_metadata)
    starts = {axis: box.get(axis, (0, 1))[0] for axis in _ALONG}
    counts = tuple(box[axis][1] - box[axis][0] if axis in box else 1 for axis in _ALONG)
    others = [
        axis for axis, (first, end) in box.items() if axis not in "TCZXYSM" and end > first + 1
    ]
    fault = ""
    if len(kinds) != 1 or not kinds <= _TYPES.keys():
        fault = "holds channels of several types, or of types that are not read"
    elif others:
        fault = f"has axes {', '.join(others)}, of which there are several places"
    if fault:
        raise InputError(f"{fault}; export it as OME-TIFF first.")
    dtype, channels = _TYPES[kinds.pop()]
    for place in places.values():
        check_size((place.h, place.w), 0, 0, 1)
    pages = [Page(place.h, place.w, channels, np.dtype(dtype)) for place in places.values()]
    n_pages = math.prod(counts) * len(pages)
    # Count pages as full: files of mostly empty pages, with few tiles, are rare.
    check_pages(n_pages, math.prod(counts) * sum(page.n_bytes for page in pages), len(data))
    names = attributes.get("Channel", {}).get("Name", [])
    if len(names) != counts[_ALONG.index("C")]:
        attributes.pop("Channel", None)
    series = [Series(_ALONG, counts, page, attributes) for page in pages]

    def page(number: int) -> NDArray[Any]:
        scene, rest = divmod(number, math.prod(counts))
        at = map(int, np.unravel_index(rest, counts))
        plane = {axis: starts[axis] + index for axis, index in zip(_ALONG, at, strict=True)}
        where, area = [*places.items()][scene]
        with damage_refused(), czi.open_czi(str(source.path)) as file:
            pixels = np.asarray(file.read(plane=plane, scene=where, roi=tuple(area)))
            if pixels.shape[:2] != (pages[scene].height, pages[scene].width):
                raise ValueError("its pixels do not fit its header")
            colours = pixels[..., ::-1] if channels == 3 else pixels[..., 0]
        return np.ascontiguousarray(colours, dtype)

    note = (
        "Its smaller copies, its experiment, its events and the times of its frames are not kept; "
        "its tiles are put together as they lie."
    )
    return make_image("czi", series, page, has_groups=n_pages > len(series), notes=(note,))


def _read_attributes(xml: str) -> dict[str, Any]:
    """Return pixel sizes, channel names, frame interval and date, as far as stated."""
    try:
        root = ElementTree.fromstring(xml)
    except (ElementTree.ParseError, ValueError):
        return {}
    sizes = {}
    for axis in "XYZ":
        value = root.findtext(f".//Scaling/Items/Distance[@Id='{axis}']/Value")
        sizes[axis] = _number(value) * _METRE
    attributes = physical_sizes(sizes, "µm")
    names = [
        channel.get("Name") or channel.get("Id") or ""
        for channel in root.findall(".//Information/Image/Dimensions/Channels/Channel")
    ]
    if names:
        attributes["Channel"] = {"Name": names}
    increment = _number(
        root.findtext(".//Information/Image/Dimensions/T/Positions/Interval/Increment")
    )
    if increment > 0:
        attributes |= {"TimeIncrement": increment, "TimeIncrementUnit": "s"}
    date = root.findtext(".//Information/Image/AcquisitionDateAndTime")
    if date:
        attributes["AcquisitionDate"] = date[:19]
    return attributes


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


FORMAT = Format(rb"ZISRAWFILE", (".czi",), read_czi, write_tiff, written_as="tiff")
