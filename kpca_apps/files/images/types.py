"""An image file as it is read: its pages, and all that must come through with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.files.images.tags import Directory, exif_orientation

__all__ = ["ImageFile", "Metadata", "Page"]

Parts = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class Page:
    """Size and type of an image: 1 to 4 channels (grey or RGB, alpha last), u1, u2, f4 or f8."""

    height: int
    width: int
    channels: int
    dtype: np.dtype[Any]

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
    """What any format can say: EXIF from its TIFF header on, and the colour profile.

    Pixels are never turned: `orientation` is how to view them, 1 (as they are) to 8. `density` is
    pixels an inch, across and down, where that is said outside the EXIF block.
    """

    exif: bytes | None = None
    icc: bytes | None = None
    orientation: int = 1
    density: tuple[float, float] | None = None

    @classmethod
    def of(
        cls, exif: bytes | None, icc: bytes | None, density: tuple[float, float] | None = None
    ) -> Metadata:
        """Make metadata whose orientation is the one in the EXIF block."""
        return cls(exif or None, icc or None, exif_orientation(exif), density)


@dataclass(frozen=True)
class ImageFile:
    """An image file, checked as far as its headers go.

    `label` is the file as the user named it, fit for a one-line message; `format` its kind by
    content, one of `kinds.SUFFIXES_OF`; `metadata` that of the first page. `page` decodes a page,
    from its number (from 0) to its pixels in stored order, or refuses those that are damaged or
    cut short. `notes` are sentences on what comes out other than it went in, `carried` the type
    and content of PNG chunks, JPEG segments or boxes to write again, `directories` the tags of
    each TIFF page, and `sha256` is the hash of the file's bytes.
    """

    label: str
    format: str
    pages: tuple[Page, ...]
    metadata: Metadata
    page: Callable[[int], NDArray[Any]] = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()
    carried: Parts = field(default=(), repr=False)
    directories: tuple[Directory, ...] = field(default=(), repr=False)
    sha256: str = ""
