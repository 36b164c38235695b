"""HEIC photographs of telephones, by pillow-heif (the extra "heic"); written as TIFF."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError, about, require_library
from kpca_apps.images.photographs.heif import stated_size
from kpca_apps.images.tiff import write_tiff
from kpca_apps.images.types import Format, ImageFile, Metadata, Page, check_size, damage_refused
from kpca_apps.system.limits import require_memory

_MODES = {"L": (1, "u1"), "RGB": (3, "u1"), "RGBA": (4, "u1")}
_MODES |= {f"{mode};16": (channels, "u2") for mode, (channels, _) in _MODES.items()}
# One byte may become a block of 64 x 64 pixels and more.
_RATIO = 1 << 24


def read_heic(data: bytes, label: str) -> ImageFile:
    """Read the main picture of a HEIC file, upright; 10 and 12 bits come out as 16."""
    require_library("pillow_heif", "heic", "HEIC images", label)
    if data[8:12] in (b"hevc", b"hevx"):
        raise InputError(f"{label}: is a film of HEIC images; save its frames as PNG first.")
    with damage_refused(label):
        check_size(label, stated_size(data), 3, len(data), _RATIO)
    file, mode, size = _opened(data, label)
    if mode not in _MODES:
        raise InputError(f"{label}: holds pixels of mode {mode}; save it as PNG or TIFF first.")
    channels, dtype = _MODES[mode]
    page = Page(*size, channels, np.dtype(dtype))
    check_size(label, size, channels, len(data), _RATIO)
    with about(label):
        require_memory(page.n_bytes, copies=4)
    notes = ["It is written as TIFF, upright; it loses nothing more."]
    if len(file) > 1:
        notes.append("Of the pictures in the file, the main one is denoised and kept.")

    def decoded(number: int) -> NDArray[Any]:
        with damage_refused(label):
            fresh, _, _ = _opened(data, label)
            pixels = np.array(fresh)
            if pixels.shape != page.shape or pixels.dtype != page.dtype:
                raise ValueError("its pixels do not fit its header")
        return pixels

    info = file.info
    return ImageFile(
        label=label,
        format="heic",
        pages=(page,),
        metadata=Metadata.of(info.get("exif"), info.get("icc_profile")),
        page=decoded,
        notes=tuple(notes),
    )


def _opened(data: bytes, label: str) -> tuple[Any, str, tuple[int, int]]:
    """Return the file as pillow-heif opens it, with mode, height and width; nothing is decoded."""
    import pillow_heif

    with damage_refused(label):
        file = pillow_heif.open_heif(
            io.BytesIO(data), convert_hdr_to_8bit=False, hdr_to_16bit=True, remove_stride=True
        )
        return file, str(file.mode), (int(file.size[1]), int(file.size[0]))


FORMAT = Format(
    mark=rb".{4}ftyp(hei[cxms]|hev[cx]|mif1)",
    suffixes=(".heic", ".heif"),
    read=read_heic,
    write=write_tiff,
    size=stated_size,
    written_as="tiff",
)
