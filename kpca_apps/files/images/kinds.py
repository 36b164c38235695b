"""What a file is, told by its first bytes; and what to do with kinds that are not read."""

from __future__ import annotations

import re
from pathlib import PurePath

__all__ = ["HEAD", "IMAGE_SUFFIXES", "SUFFIXES_OF", "image_kind", "is_image", "refusal"]

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
}
_NETPBM = re.compile(rb"P[1-6Ff]\s+[#0-9]")
# Two bytes, as a text may begin with them too, and a document: no images without the suffix of one.
_DOUBTFUL = frozenset({None, "bmp", "jxl", "netpbm", "pam", "pdf"})

_NAMES = {
    "raw": ("a camera's RAW file", "develop it to a 16-bit TIFF first, without its denoising"),
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
    ".gif .heic .heif .avif .psd .exr .dcm .fits .fit .fts .npy .pam".split()
).union(*SUFFIXES_OF.values())


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


def refusal(kind: str | None) -> str:
    """Say that a kind of file is not read, and what to do: the end of a sentence with its name."""
    if kind in _NAMES:
        what, advice = _NAMES[kind]
        return f"is {what}, which is not read; {advice}."
    return "is not an image that can be read; give PNG, TIFF or JPEG files."
