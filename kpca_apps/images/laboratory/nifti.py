"""NIfTI files of medical scanners, optionally gzipped: volumes and series of volumes.

Headers, read by nibabel (extra "lab"), affine matrices and extensions are kept byte for byte. Cox
et al. (2004), "A (sort of) new image data format standard: NIfTI-1", HBM.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError, require_library
from kpca_apps.images.laboratory.in_place import Scaling, find_planes, write_in_place
from kpca_apps.images.laboratory.ome import Series, make_image, physical_sizes
from kpca_apps.images.large import Content, openable
from kpca_apps.images.types import DEFLATE_RATIO, FRONT, Format, ImageFile, damage_refused, rewrite
from kpca_apps.system.limits import require_memory

GZIP = b"\x1f\x8b"
MARK = rb".{344}n[+i]1\0|.{4}n[+i]2\0\r\n\x1a\n"
_HEADERS = 544  # number of bytes of the longer header and of the extension flag
_LABELS = 1002  # intent code of an image whose values are region labels
_UNITS = {1: "m", 2: "mm", 3: "µm"}
_SECONDS = {8: "s", 16: "ms", 24: "µs"}
_LEVEL = 6  # compression level of gzip
_COLOURS = {128: 3, 2304: 4}  # number of 8-bit channels by data type code


def read_nifti(data: Content) -> ImageFile:
    """Read a single-file NIfTI-1 or NIfTI-2 image; integers with a slope are rescaled."""
    require_library("nibabel", "lab", "NIfTI files")
    packed = data[:2] == GZIP
    head = unpacked_head(data[:_HEADERS], _HEADERS)
    with damage_refused():
        header, shape, place = _header(head)
        channels = _COLOURS.get(int(header["datatype"]), 1)
        stored = np.dtype("u1") if channels > 1 else header.get_data_dtype()
        slope, offset = header.get_slope_inter()
        intent = int(header["intent_code"])
        axes = dict(zip("XYZT", (float(size) for size in header.get_zooms()), strict=False))
        unit, time_unit = int(header["xyzt_units"]) & 7, int(header["xyzt_units"]) & 56
    fault = ""
    if bytes(header["magic"])[1:2] == b"i":
        fault = "keeps its pixels in another file (.img); save both as one .nii file first"
    elif intent == _LABELS:
        fault = "holds labels of regions, not brightness, which denoising would mix"
    elif len(shape) < 2:
        fault = "holds no image of two dimensions"
    if fault:
        raise InputError(f"{fault}.")
    content = _unpack(data, place, shape, stored.itemsize * channels) if packed else data
    scaling = Scaling(1.0 if slope is None else slope, offset or 0.0)
    # The first index varies fastest: columns, rows, slices, times.
    planes = find_planes(content, place, shape[::-1], stored, channels=channels, scaling=scaling)
    attributes = physical_sizes({a: axes.get(a, 0.0) for a in "XYZ"}, _UNITS.get(unit, "pixel"))
    if axes.get("T", 0.0) > 0 and time_unit in _SECONDS:
        attributes |= {"TimeIncrement": axes["T"], "TimeIncrementUnit": _SECONDS[time_unit]}
    n_slices, rest = (shape[2] if len(shape) > 2 else 1), math.prod(shape[3:])
    page_axes, sizes = ("T", (rest,)) if n_slices == 1 else ("TZ", (rest, n_slices))
    series = [Series(page_axes, sizes, planes[0].page, attributes)]

    def write(file: Any, pages: Iterable[NDArray[Any]]) -> None:
        if not packed:
            write_in_place(file, pages, content, planes)
            return
        # Write no name and no time, so that equal pixels give equal bytes.
        with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as inner:
            write_in_place(inner, pages, content, planes)

    return make_image("nifti", series, lambda number: planes[number].read(content), rewrite=write)


def unpacked_head(head: bytes, n_bytes: int) -> bytes:
    """Return at most `n_bytes` gunzipped bytes of `head`; `head` itself if it is not gzipped."""
    if not head.startswith(GZIP):
        return head
    try:
        return zlib.decompressobj(31).decompress(head, n_bytes)
    except zlib.error:
        return b""


def _header(head: bytes) -> tuple[Any, tuple[int, ...], int]:
    """Return the header, the shape, and the offset of the pixels."""
    from nibabel.nifti1 import Nifti1Header
    from nibabel.nifti2 import Nifti2Header

    kind: Any = Nifti2Header if head[4:6] in (b"n+", b"ni") else Nifti1Header
    header = kind(head[: kind.template_dtype.itemsize], check=False)
    shape = tuple(int(side) for side in header.get_data_shape())
    place = int(header["vox_offset"])
    if place < kind.template_dtype.itemsize:
        raise ValueError("pixels that begin in its header")
    return header, shape, place


def _unpack(data: Content, place: int, shape: tuple[int, ...], pixel_bytes: int) -> bytes:
    """Return the gunzipped content, at most slightly more than the header promises."""
    promised = place + pixel_bytes * math.prod(max(1, side) for side in shape)
    if promised > DEFLATE_RATIO * len(data) + 4096:
        raise InputError(
            f"its header promises more pixels than its {len(data)} bytes can hold; it is "
            "damaged or cut short, fetch the file again."
        )
    require_memory(promised, copies=2)
    with damage_refused():
        with gzip.open(openable(data)) as file:
            content = file.read(promised + FRONT)
            if file.read(1):
                raise ValueError("more than its header promises")
    return content


FORMAT = Format(MARK, (".nii",), read_nifti, rewrite)
