"""Detect kinds of image files by their first bytes.

To support another kind, add a file with its `Format` in this folder, and an entry in `FORMATS`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import PurePath

from kpca_apps.errors import InputError
from kpca_apps.images import raw, tiff
from kpca_apps.images.laboratory import czi, dicom, fits, mrc, nifti, nikon, ome_zarr
from kpca_apps.images.photographs import heif, jpeg, lossless, png
from kpca_apps.images.types import Format
from kpca_apps.system.stores.addresses import AnyPath, StorePath
from kpca_apps.system.stores.buckets import place_of

HEAD = 512  # bytes at the start of a file that identify its kind
# DICOM and raw files come before TIFF, as they may look like TIFF.
FORMATS: dict[str, Format] = {
    "dicom": dicom.FORMAT,
    "png": png.FORMAT,
    "jpeg": jpeg.FORMAT,
    "raw": raw.FORMAT,
    "tiff": tiff.FORMAT,
    **lossless.FORMATS,
    **heif.FORMATS,
    "fits": fits.FORMAT,
    "mrc": mrc.FORMAT,
    "nifti": nifti.FORMAT,
    "czi": czi.FORMAT,
    "nd2": nikon.FORMAT,
    "zarr": ome_zarr.FORMAT,
}
_TO_FLOAT = "convert it to a float32 TIFF first"
_TO_PNG = "animations and palettes of 256 colours are not denoised; save it as PNG"
_TO_ARRAY = "save it as a TIFF first, or hand the array to kpca_apps.denoise_kpca"
# Kinds that are refused: pattern of the first bytes, description, and advice.
_REFUSED = {
    "gif": (rb"GIF8[79]a", "a GIF", _TO_PNG),
    "heif": (rb".{4}ftypmsf1", "a film of HEIC images", "save its frames as PNG first"),
    "psd": (rb"8BPS", "a Photoshop document", "save it as TIFF or PNG without layers first"),
    "mng": (rb"\x8aMNG\r\n\x1a\n", "an animation", "save its frames as PNG first"),
    "exr": (rb"v/1\x01", "an OpenEXR image", _TO_FLOAT),
    "npy": (rb"\x93NUMPY", "a NumPy array", _TO_ARRAY),
    "pdf": (rb"%PDF-", "a PDF document", "save its pages as PNG first"),
    "gzip": (nifti.GZIP, "packed by gzip", "unpack it first (gunzip)"),
    "pam": (rb"P7\n", "a Netpbm image of any channels (PAM)", "convert it to PNG or TIFF first"),
}
# The first bytes of these kinds do not prove an image: a table, packed or not, may begin so.
_DOUBTFUL = frozenset({None, "bmp", "gzip", "jxl", "netpbm", "pam", "pdf"})
IMAGE_SUFFIXES = frozenset(".gif .psd .exr .npy .pam .tga".split()).union(
    *(format.suffixes for format in FORMATS.values())
)


def head_of(source: AnyPath) -> bytes:
    """Return the first bytes of a file, local or in a store, or a marker for an OME-Zarr folder.

    Empty for pipes, other folders and unreadable files.
    """
    if isinstance(source, StorePath):
        place = place_of(source)
        with suppress(InputError):
            return place.head(HEAD)
        with suppress(InputError):
            if any(place.inside(name).kind() == "file" for name in ome_zarr.MARKS):
                return ome_zarr.HEAD
        return b""
    try:
        if source.is_dir():
            return ome_zarr.HEAD if ome_zarr.is_zarr(source) else b""
        if not source.is_file():
            return b""
        with source.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""


def image_kind(head: bytes, name: str = "") -> str | None:
    """Return the kind of an image from the first `HEAD` bytes of its file; None if unknown.

    The name only serves to distinguish a camera's raw file from a TIFF.
    """
    marks = {kind: format.mark for kind, format in FORMATS.items()}
    marks |= {kind: mark for kind, (mark, *_) in _REFUSED.items()}
    if head.startswith(nifti.GZIP):
        # Only NIfTI files are compressed as a whole.
        is_nifti = re.match(nifti.FORMAT.mark, nifti.unpacked_head(head, HEAD), re.DOTALL)
        return "nifti" if is_nifti else "gzip"
    kind = next((kind for kind, mark in marks.items() if re.match(mark, head, re.DOTALL)), None)
    is_raw = kind == "tiff" and PurePath(name).suffix.lower() in raw.FORMAT.suffixes
    return "raw" if is_raw else kind


def is_image(head: bytes, name: str) -> bool:
    """Return whether a file's suffix or first bytes mark an image, supported or not."""
    return PurePath(name).suffix.lower() in IMAGE_SUFFIXES or image_kind(head) not in _DOUBTFUL


def refusal(kind: str | None) -> str:
    """Return why a kind is not read, with advice; empty if it is read."""
    if kind in FORMATS:
        return ""
    if kind in _REFUSED:
        _, what, advice = _REFUSED[kind]
        return f"is {what}, which is not read; {advice}."
    return "is not an image that can be read; give PNG, TIFF or JPEG files."


def written_kind(kind: str | None, format: str) -> str | None:
    """Return the kind of the output for an input kind and the requested format."""
    if format != "same" or kind not in FORMATS:
        return kind if format == "same" else format
    return FORMATS[kind].written_as or kind
