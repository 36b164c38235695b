"""What kind of image a file is, by its first bytes; what is read of it, promised, and refused.

A promise of the header is checked before any pixel is read.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.images.tags import Directory, exif_orientation
from kpca_apps.names import one_line

__all__ = [
    "DEFLATE_RATIO",
    "FRONT",
    "HEAD",
    "IMAGE_SUFFIXES",
    "MAX_PIXELS",
    "RAW_SUFFIXES",
    "SUFFIXES_OF",
    "ImageFile",
    "Metadata",
    "Mosaic",
    "Page",
    "Parts",
    "check_size",
    "damage_refused",
    "image_kind",
    "is_image",
    "is_read",
    "refusal",
]

Parts = tuple[tuple[bytes, bytes], ...]  # type and content of each
MAX_PIXELS = 178_000_000
# Deflate packs at most 1032 bytes into one; a header that promises more lies.
DEFLATE_RATIO = 1100
# No image is followed, or preceded by metadata, of more bytes than these; none that is packed takes
# more for a pixel than four channels of float64.
FRONT, _MOST_PER_PIXEL = 1 << 25, 32
# What libpng only warns of is harmless; without a handler it would be printed.
logging.getLogger("imagecodecs").addHandler(logging.NullHandler())


HEAD = 132  # bytes at the beginning of a file that tell its kind
_HEIC = b"heic heix heim heis hevc hevx mif1 msf1".split()
# Kind: where its mark stands, and the marks; DICOM first, for what stands before it may look like
# a TIFF, and then RAW files, which many are.
_SIGNATURES: dict[str, tuple[tuple[int, tuple[bytes, ...]], ...]] = {
    "dicom": ((128, (b"DICM",)),),
    "png": ((0, (b"\x89PNG\r\n\x1a\n",)),),
    "jpeg": ((0, (b"\xff\xd8\xff",)),),
    "raw": (
        (0, (b"IIRO", b"IIRS", b"IIU\0", b"MMOR", b"FUJIFILMCCD-RAW", b"FOVb", b"\0MRM")),
        (4, (b"ftypcrx ",)),
        (6, (b"HEAPCCDR",)),
        (8, (b"CR\2\0",)),
    ),
    "tiff": ((0, (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),),
    "gif": ((0, (b"GIF87a", b"GIF89a")),),
    "webp": ((8, (b"WEBP",)),),
    "heic": ((4, tuple(b"ftyp" + brand for brand in _HEIC)),),
    "avif": ((4, (b"ftypavif", b"ftypavis")),),
    "jp2": ((4, (b"jP  \r\n\x87\n",)), (0, (b"\xff\x4f\xff\x51",))),
    "jxl": ((0, (b"\xff\x0a",)), (4, (b"JXL \r\n\x87\n",))),
    "bmp": ((0, (b"BM",)),),
    "psd": ((0, (b"8BPS",)),),
    "mng": ((0, (b"\x8aMNG\r\n\x1a\n",)),),
    "exr": ((0, (b"v/1\x01",)),),
    "fits": ((0, (b"SIMPLE  =",)),),
    "npy": ((0, (b"\x93NUMPY",)),),
    "pdf": ((0, (b"%PDF-",)),),
    "pam": ((0, (b"P7\n",)),),
    "czi": ((0, (b"ZISRAWFILE",)),),
    "nd2": ((0, (b"\xda\xce\xbe\x0a",)),),
}
_NETPBM = re.compile(rb"P[1-6Ff]\s+[#0-9]")
# Two bytes, as a text may begin with them too, and a document: no images without the suffix of one.
_DOUBTFUL = frozenset({None, "bmp", "jxl", "netpbm", "pam", "pdf"})

_NAMES = {
    "gif": ("a GIF", "animations and palettes of 256 colours are not denoised; save it as PNG"),
    "heic": ("a HEIC image", "convert it to 16-bit PNG or TIFF first"),
    "avif": ("an AVIF image", "convert it to 16-bit PNG or TIFF first"),
    "psd": ("a Photoshop document", "save it as TIFF or PNG without layers first"),
    "mng": ("an animation", "save its frames as PNG first"),
    "exr": ("an OpenEXR image", "convert it to a float32 TIFF first"),
    "fits": ("a FITS image", "convert it to a float32 TIFF first"),
    "dicom": ("a DICOM image", "convert it to a 16-bit TIFF or PNG first"),
    "npy": (
        "a NumPy array",
        "save it as a TIFF first, or hand the array to kpca_apps.denoise_kpca",
    ),
    "pam": ("a Netpbm image of any channels (PAM)", "convert it to PNG or TIFF first"),
    "pdf": ("a PDF document", "save its pages as PNG first"),
    "czi": ("a microscope's file of Zeiss (CZI)", "export it as OME-TIFF first"),
    "nd2": ("a microscope's file of Nikon (ND2)", "export it as OME-TIFF first"),
}

RAW_SUFFIXES = frozenset(
    ".3fr .arw .cr2 .cr3 .crw .dng .erf .iiq .kdc .mef .mos .mrw .nef .nrw .orf .pef .raf .raw "
    ".rw2 .rwl .sr2 .srf .srw .x3f".split()
)
# Of the kinds that are read; the first is what a result is called.
SUFFIXES_OF = {
    "png": (".png", ".apng"),
    "tiff": (".tif", ".tiff"),
    "jpeg": (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"),
    "webp": (".webp",),
    "jp2": (".jp2", ".j2k", ".jpf", ".jpx", ".j2c", ".jpc"),
    "jxl": (".jxl",),
    "bmp": (".bmp", ".dib"),
    "netpbm": (".pnm", ".ppm", ".pgm", ".pbm", ".pfm"),
}
IMAGE_SUFFIXES = RAW_SUFFIXES | frozenset(
    ".gif .heic .heif .avif .psd .exr .dcm .fits .fit .fts .npy .pam .tga .czi .nd2".split()
).union(*SUFFIXES_OF.values())


@dataclass(frozen=True)
class Page:
    """Size and type of an image."""

    height: int
    width: int
    channels: int  # 1 to 4: grey or RGB, alpha last
    dtype: np.dtype[Any]  # u1, u2 or, of TIFF alone, u4, i1, i2, i4, f2, f4 or f8

    @property
    def alpha(self) -> bool:
        """Whether the last channel is transparency."""
        return self.channels in (2, 4)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of pixels: (h, w) or (h, w, channels)."""
        return (self.height, self.width, self.channels)[: 2 + (self.channels > 1)]

    @property
    def n_bytes(self) -> int:
        """Bytes of the pixels, decoded."""
        return self.height * self.width * self.channels * self.dtype.itemsize


@dataclass(frozen=True)
class Metadata:
    """What any format can say. Pixels are never turned."""

    exif: bytes | None = None  # from its TIFF header on
    icc: bytes | None = None
    orientation: int = 1  # how to view the pixels: 1 (as they are) to 8
    density: tuple[float, float] | None = None  # pixels an inch, if said outside the EXIF block

    @classmethod
    def of(
        cls, exif: bytes | None, icc: bytes | None, density: tuple[float, float] | None = None
    ) -> Metadata:
        """Make metadata whose orientation is the one in the EXIF block."""
        return cls(exif or None, icc or None, exif_orientation(exif), density)


@dataclass(frozen=True)
class Mosaic:
    """What a camera's sensor saw, one colour a pixel, from 0 at black to 65535 at white."""

    light: NDArray[np.float32]  # (h, w), not turned
    pattern: str  # colours of the first two pixels of the first row, then of the second
    white: float  # where pixels saturate: 65535, as rounded as they are
    # a and b of the noise's variance a x + b in red, green and blue (3, 2), if the file gives them.
    noise: NDArray[np.float64] | None
    # Makes a picture, upright, of a mosaic like this one, or of this one for None.
    developed: Callable[[NDArray[np.float32] | None], NDArray[np.uint16]]


@dataclass(frozen=True)
class ImageFile:
    """An image file, checked as far as its headers go."""

    label: str  # as the user named it, fit for a one-line message
    format: str  # by content, one of `SUFFIXES_OF`, or "raw"
    pages: tuple[Page, ...]
    metadata: Metadata  # of the first page
    # Decodes a page, by its number from 0, in stored order; refuses damage.
    page: Callable[[int], NDArray[Any]] = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()  # sentences on what comes out other than it went in
    carried: Parts = field(default=(), repr=False)  # chunks, segments or boxes to write again
    directories: tuple[Directory, ...] = field(default=(), repr=False)  # tags of TIFF pages
    sha256: str = ""  # of the file's bytes
    mosaic: Callable[[], Mosaic] | None = field(default=None, repr=False, compare=False)  # if raw


def check_size(
    label: str, size: tuple[int, int], pixel_bytes: float, packed: float, ratio: int
) -> None:
    """Refuse a (height, width) above the limit, or that `packed` bytes cannot hold or do not need.

    One of these can become at most `ratio` bytes of pixels, of which one has `pixel_bytes`.
    """
    height, width = size
    promise = f"{label}: its header promises {width} x {height} pixels"
    if height < 1 or width < 1:
        raise InputError(f"{promise}; it is damaged, make it again.")
    if height * width > MAX_PIXELS:
        raise InputError(
            f"{promise}, above the limit of {MAX_PIXELS // 1_000_000} megapixels; cut it into "
            "smaller images."
        )
    if height * width * pixel_bytes > ratio * packed + 4096:
        raise InputError(
            f"{promise}, more than its {packed} bytes can hold; it is damaged or cut short, fetch "
            "the file again."
        )
    if packed > FRONT + _MOST_PER_PIXEL * height * width:
        raise InputError(
            f"{promise}, which do not take its {packed:,} bytes; it is damaged, fetch the file "
            "again."
        )


@contextmanager
def damage_refused(label: str) -> Iterator[None]:
    """Turn what a library raises on a damaged file, whatever that is, into one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        reason = one_line(str(error) or type(error).__name__, 100)
        raise InputError(
            f"{label}: its pixels are damaged or cut short ({reason}); fetch the file again."
        ) from None


def image_kind(head: bytes, name: str = "") -> str | None:
    """Tell the kind of an image from the first `HEAD` bytes of its file; None if none is known.

    The name matters only where a camera's RAW file looks like a TIFF.
    """
    for kind, marks in _SIGNATURES.items():
        if any(head.startswith(found, place) for place, found in marks):
            is_raw = kind == "tiff" and PurePath(name).suffix.lower() in RAW_SUFFIXES
            if kind != "webp" or head.startswith(b"RIFF"):
                return "raw" if is_raw else kind
    return "netpbm" if _NETPBM.match(head) else None


def is_image(head: bytes, name: str) -> bool:
    """Tell whether a file claims to be an image, read or not, by its suffix or its first bytes."""
    return PurePath(name).suffix.lower() in IMAGE_SUFFIXES or image_kind(head) not in _DOUBTFUL


def is_read(kind: str | None) -> bool:
    """Tell whether files of a kind are read."""
    return kind == "raw" or kind in SUFFIXES_OF


def refusal(kind: str | None) -> str:
    """Say that a kind of file is not read, and what to do: the end of a sentence with its name."""
    if kind in _NAMES:
        what, advice = _NAMES[kind]
        return f"is {what}, which is not read; {advice}."
    return "is not an image that can be read; give PNG, TIFF or JPEG files."
