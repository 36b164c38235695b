"""ND2 files of Nikon microscopes, through nd2 (extra "lab"); written as OME-TIFF."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError, require_library
from kpca_apps.images.laboratory.in_place import READ_TYPES
from kpca_apps.images.laboratory.ome import (
    Series,
    check_pages,
    make_image,
    page_times,
    physical_sizes,
)
from kpca_apps.images.large import Content, openable
from kpca_apps.images.tiff import write_tiff
from kpca_apps.images.types import Format, ImageFile, Page, check_size, damage_refused

_LOOPS = frozenset("TZP")  # axes of frames: time, slice, stage position
_MOST_TIMED = 10_000  # maximum number of frames whose times are read


def read_nd2(data: Content) -> ImageFile:
    """Read an ND2 file: each stage position is a series of pages, each channel a page."""
    require_library("nd2", "lab", "ND2 files")
    with damage_refused(), _opened(data) as file:
        sizes = {str(axis): int(side) for axis, side in file.sizes.items()}
        dtype, channels = np.dtype(file.dtype).newbyteorder("="), sizes.get("S", 1)
        size = sizes["Y"], sizes["X"]
        loops = {axis: side for axis, side in sizes.items() if axis not in "CYXS"}
        known = _describe(file, sizes.get("C", 1))
        times = _read_times(file, math.prod(loops.values()))
    if not loops.keys() <= _LOOPS or channels not in (1, 3):
        raise InputError(
            f"has axes {', '.join(sizes)}, of which some are no times, slices, positions "
            "or channels; export it as OME-TIFF first."
        )
    if f"{dtype.kind}{dtype.itemsize}" not in READ_TYPES:
        raise InputError(f"holds values of type {dtype}; export it as OME-TIFF first.")
    check_size(size, 0, 0, 1)
    page = Page(*size, channels, dtype)
    n_channels, n_positions = sizes.get("C", 1), loops.get("P", 1)
    n_frames = math.prod(loops.values())
    n_pages = n_frames * n_channels if min(sizes.values()) > 0 else 0
    check_pages(n_pages, n_pages * page.n_bytes, len(data))
    along = {axis: side for axis, side in loops.items() if axis != "P"}
    # Frames are in file order, grouped by position; each frame holds all channels.
    order = np.arange(n_frames).reshape(tuple(loops.values()))
    if "P" in loops:
        order = np.moveaxis(order, list(loops).index("P"), 0)
    frames = order.ravel()
    axes, counts = "".join(along) + "C", (*along.values(), n_channels)
    series = []
    for part in np.split(frames, n_positions):
        moments = [times[frame] for frame in part for _ in range(n_channels)] if times else []
        series.append(Series(axes, counts, page, {**known, **page_times(moments, "ms")}))

    def read(number: int) -> NDArray[Any]:
        frame, channel = divmod(number, n_channels)
        with damage_refused(), _opened(data) as file:
            pixels = np.asarray(file.read_frame(int(frames[frame])))
            if pixels.dtype != page.dtype:
                raise ValueError("its pixels do not fit its header")
            # Copy pixels, as the file may be memory-mapped.
            return np.array(pixels.reshape(n_channels, *page.shape)[channel], order="C")

    notes = ("Its experiment, its events and its regions of interest are not kept.",)
    return make_image("nd2", series, read, notes=notes)


def _opened(data: Content) -> Any:
    from nd2 import ND2File

    return ND2File(openable(data))


def _describe(file: Any, n_channels: int) -> dict[str, Any]:
    """Return pixel sizes, channel names and frame interval, as far as stated."""
    known: dict[str, Any] = {}
    # nd2 raises for channels without a dye, although the pixels are readable.
    with suppress(Exception):
        voxel = file.voxel_size()
        known |= physical_sizes({"X": voxel.x, "Y": voxel.y, "Z": voxel.z}, "µm")
        names = [
            channel.channel.name for channel in (file.metadata.channels or ()) if channel.channel
        ]
        if len(names) == n_channels:
            known["Channel"] = {"Name": names}
    for loop in file.experiment:
        period = getattr(loop.parameters, "periodMs", 0) or 0
        if period > 0:
            known |= {"TimeIncrement": float(period), "TimeIncrementUnit": "ms"}
    return known


def _read_times(file: Any, n_frames: int) -> list[float]:
    """Return the time of each frame in milliseconds; empty unless stated for all frames."""
    if n_frames > _MOST_TIMED:
        return []
    with suppress(Exception):
        stamps = [file.frame_metadata(number).channels[0].time for number in range(n_frames)]
        return [float(time.relativeTimeMs) for time in stamps]
    return []


FORMAT = Format(rb"\xda\xce\xbe\x0a", (".nd2",), read_nd2, write_tiff, written_as="tiff")
