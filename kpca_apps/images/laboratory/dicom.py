"""DICOM images in physical units, through pydicom (extra "lab"); written as OME-TIFF.

The pixel size is kept; patient, date and place are not. DICOM PS3.3 (2024), C.7.6.3 (pixels) and
C.11.1 (modality).
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError, require_library
from kpca_apps.images.laboratory.in_place import Scaling
from kpca_apps.images.laboratory.ome import MOST_PAGES, Series, make_image, physical_sizes
from kpca_apps.images.large import Content, openable
from kpca_apps.images.tiff import write_tiff
from kpca_apps.images.types import Format, ImageFile, Page, check_size, damage_refused
from kpca_apps.names import one_line

_INTEGERS = {8: "1", 16: "2", 32: "4"}
_PIXELS = 0x7FE00010
_FLOATS = {0x7FE00008: "f4", 0x7FE00009: "f8"}  # FloatPixelData, DoubleFloatPixelData
_GREY = frozenset({"MONOCHROME1", "MONOCHROME2"})
_COLOUR = frozenset({"RGB", "YBR_FULL", "YBR_FULL_422", "YBR_RCT", "YBR_ICT"})
_GROUPS = ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence")


def read_dicom(data: Content) -> ImageFile:
    """Read the frames of a DICOM file as pages; MONOCHROME1 is inverted."""
    require_library("pydicom", "lab", "DICOM images")
    import pydicom
    from pydicom.pixels import get_decoder

    with damage_refused():
        with pydicom.config.disable_value_validation():
            if _is_deflated(data):  # pydicom would decompress the whole file at once
                raise InputError(
                    "is packed as a whole (a deflated transfer syntax); save it in "
                    "another transfer syntax first."
                )
            dataset, float_type = _read_header(data)
        syntax = dataset.file_meta.TransferSyntaxUID
        size = int(dataset.get("Rows", 0)), int(dataset.get("Columns", 0))
        frames = int(dataset.get("NumberOfFrames", 1) or 1)
        samples, bits = int(dataset.get("SamplesPerPixel", 1)), int(dataset.get("BitsAllocated", 0))
        signed = int(dataset.get("PixelRepresentation", 0))
        meaning = str(dataset.get("PhotometricInterpretation", ""))
    fault = ""
    if not size[0] and not size[1]:
        fault = "holds no image"
    elif "TotalPixelMatrixColumns" in dataset and frames > 1:
        fault = "is a slide in tiles; export the regions that matter as TIFF first"
    elif meaning not in (_GREY if samples == 1 else _COLOUR):
        kind = one_line(meaning, 20) or "unknown"
        fault = f"holds colours of kind {kind}; export it as RGB or grey first"
    elif bits not in _INTEGERS and not float_type:
        fault = f"holds values of {bits} bits; export it in 8 or 16 bits first"
    if fault:
        raise InputError(f"{fault}.")
    check_size(size, 0, 0, 1)
    if not 1 <= frames <= MOST_PAGES or samples not in (1, 3):
        raise InputError("its header is damaged; fetch the file again.")
    with damage_refused():
        n_bytes = size[0] * size[1] * samples * bits // 8
        if not syntax.is_compressed and frames * n_bytes > len(data) + 4096:
            raise ValueError(f"{frames} frames in {len(data)} bytes")
        decoder = get_decoder(syntax)
        if not decoder.is_available:
            needed = " or ".join(decoder.missing_dependencies) or "none"
            raise ConfigError(
                f"is packed as {syntax.name}, which needs one of: {needed}; install it, "
                "or save the image without compression first."
            )
        stored = np.dtype(float_type or f"{'i' if signed else 'u'}{_INTEGERS[bits]}")
        scalings = _scalings(dataset, frames, grey=samples == 1)
        # In MONOCHROME1, the largest value that the stored bits can hold is black.
        is_inverted = meaning == "MONOCHROME1" and not float_type
        used = min(int(dataset.get("BitsStored", 8 * stored.itemsize)), 8 * stored.itemsize)
        top = np.array((1 << used) - 1 if stored.kind == "u" else -1, stored)
        dtype, values = _rescaling(stored, scalings, dataset)
        page = Page(*size, samples, dtype)
        series = _series(dataset, frames, page)

    def frame(number: int) -> NDArray[Any]:
        from pydicom.pixels import pixel_array

        with damage_refused():
            pixels = np.asarray(pixel_array(openable(data), index=number))
            if pixels.dtype.itemsize > stored.itemsize or pixels.shape != page.shape:
                raise ValueError("its pixels do not fit its header")
            pixels = pixels.astype(stored, copy=False)
            return values(top - pixels if is_inverted else pixels, number)

    notes = ["Written without what the file says of a patient; what its pixels show stays."]
    if is_inverted:
        notes.append("It counts from white, and is written counting from black.")
    return make_image("dicom", [series], frame, notes=tuple(notes))


def _read_header(data: Content) -> tuple[Any, str]:
    """Return the header, and the pixel type if the pixels are floats."""
    from pydicom.filereader import read_partial

    tags: list[int] = []

    def at_pixels(tag: int, *_: Any) -> bool:
        tags.extend([tag] if tag in (_PIXELS, *_FLOATS) else [])
        return bool(tags)

    with _opened(data) as file:
        dataset = read_partial(file, stop_when=at_pixels)
    return dataset, _FLOATS.get(tags[0], "") if tags else ""


def _opened(data: Content) -> BinaryIO:
    return io.BytesIO(data) if isinstance(data, bytes) else data.path.open("rb")


def _is_deflated(data: Content) -> bool:
    """Return whether everything after the file's first group is compressed."""
    from pydicom.filereader import read_dataset

    with _opened(data) as file:
        file.seek(132)
        first = read_dataset(
            file,
            is_implicit_VR=False,
            is_little_endian=True,
            stop_when=lambda tag, *_: tag >> 16 != 2,
        )
        list(first)  # otherwise pydicom retries unreadable elements with another syntax
        return bool(first.get("TransferSyntaxUID", "") == "1.2.840.10008.1.2.1.99")


def _scalings(dataset: Any, frames: int, *, grey: bool) -> list[Scaling]:
    """Return the rescaling of stored values: one for all frames, or one per frame."""
    if not grey:
        return [Scaling()]
    groups: list[Any] = []
    shared = dataset.get("SharedFunctionalGroupsSequence")
    each = dataset.get("PerFrameFunctionalGroupsSequence")
    if each and len(each) == frames and "PixelValueTransformationSequence" in each[0]:
        groups = [group.PixelValueTransformationSequence[0] for group in each]
    elif shared and "PixelValueTransformationSequence" in shared[0]:
        groups = [shared[0].PixelValueTransformationSequence[0]]
    scalings = []
    for group in groups or [dataset]:
        slope, offset = float(group.get("RescaleSlope", 1)), float(group.get("RescaleIntercept", 0))
        if slope == 0 or not math.isfinite(slope) or not math.isfinite(offset):
            raise ValueError("its rescaling is damaged")
        scalings.append(Scaling(slope, offset))
    return scalings if len(set(scalings)) > 1 else scalings[:1]


def _rescaling(
    stored: np.dtype[Any], scalings: list[Scaling], dataset: Any
) -> tuple[np.dtype[Any], Callable[[NDArray[Any], int], NDArray[Any]]]:
    """Return the type of rescaled pixels, and the function that rescales a frame."""
    first = scalings[0]
    if scalings == [Scaling()]:
        return stored, lambda pixels, _: pixels
    is_shift = len(scalings) == 1 and first.slope == 1 and first.offset == int(first.offset)
    if is_shift and stored.kind != "f":
        # Use the smallest type that holds every value of the bits in use.
        offset, bits = int(first.offset), int(dataset.get("BitsStored", 8 * stored.itemsize))
        low = offset - (1 << (bits - 1) if stored.kind == "i" else 0)
        high = low + (1 << bits) - 1
        for kind in ("u1", "u2", "i2", "i4"):
            limits: np.iinfo[Any] = np.iinfo(kind)
            if limits.bits >= 8 * stored.itemsize and limits.min <= low and high <= limits.max:
                return limits.dtype, partial(_shifted, offset=offset, limits=limits)
    dtype = stored if stored.kind == "f" else np.dtype("f8" if stored.itemsize > 2 else "f4")

    def scaled(pixels: NDArray[Any], number: int) -> NDArray[Any]:
        return scalings[number if len(scalings) > 1 else 0].scaled(pixels, dtype)

    return dtype, scaled


def _shifted(pixels: NDArray[Any], _: int, *, offset: int, limits: np.iinfo[Any]) -> NDArray[Any]:
    """Add an offset; clip invalid sums, of values beyond the bits in use, to `limits`."""
    return np.clip(pixels.astype(np.int64) + offset, limits.min, limits.max).astype(limits.dtype)


def _series(dataset: Any, frames: int, page: Page) -> Series:
    """Return the frames as a series with pixel sizes, and time or slice steps."""
    measures = dataset
    for name in _GROUPS:
        groups = dataset.get(name)
        if groups and "PixelMeasuresSequence" in groups[0]:
            measures = groups[0].PixelMeasuresSequence[0]
            break
    spacing = measures.get("PixelSpacing") or dataset.get("ImagerPixelSpacing") or (0, 0)
    between = measures.get("SpacingBetweenSlices") or measures.get("SliceThickness") or 0
    sizes = {"X": float(spacing[1]), "Y": float(spacing[0])}
    time = float(dataset.get("FrameTime", 0) or 0)
    if frames == 1 or (between and not time):
        sizes["Z"] = float(between)
    known = physical_sizes(sizes, "mm")
    if time > 0:
        known |= {"TimeIncrement": time, "TimeIncrementUnit": "ms"}
    axes = "T" if time else "Z" if between else "C"
    return Series(axes, (frames,), page, known)


FORMAT = Format(rb".{128}DICM", (".dcm", ".dicom"), read_dicom, write_tiff, written_as="tiff")
