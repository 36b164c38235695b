"""An image file as it is read: its pages, and all that must come through with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.files.images.tags import Directory, exif_orientation

__all__ = ["ImageFile", "Metadata", "Page"]


@dataclass(frozen=True)
class Page:
    """Size and type of one image in a file, as stored, before any turn for viewing.

    Attributes
    ----------
    height, width : int
    channels : int
        1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
    dtype : numpy.dtype
        uint8, uint16, float32 or float64, in the machine's byte order.
    """

    height: int
    width: int
    channels: int
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, pixels: NDArray[Any]) -> Page:
        """Return size and type of an array of pixels."""
        channels = 1 if pixels.ndim == 2 else pixels.shape[2]
        return cls(pixels.shape[0], pixels.shape[1], channels, pixels.dtype)

    @property
    def alpha(self) -> bool:
        """Whether the last channel is transparency."""
        return self.channels in (2, 4)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of pixels: (h, w) or (h, w, channels)."""
        size = (self.height, self.width)
        return size if self.channels == 1 else (*size, self.channels)


@dataclass(frozen=True)
class Metadata:
    """What any format can say about an image beside its pixels.

    Attributes
    ----------
    exif, icc : bytes or None
        As JPEG and PNG keep them: EXIF from its TIFF header on, and the colour profile.
    orientation : int
        How the image is to be turned for viewing, 1 (not at all) to 8; pixels are never turned.
    density : (float, float) or None
        Pixels an inch, across and down, where that is said outside the EXIF block.
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

    Attributes
    ----------
    label : str
        The file as the user named it, fit for a one-line message.
    format : str
        Its kind by content, whatever the suffix: one of `kinds.SUFFIXES_OF`.
    pages : tuple of Page
        One, but for TIFF files of several pages.
    metadata : Metadata
        Of the first page.
    notes : tuple of str
        Whole sentences on what comes out other than it went in.
    decode : callable
        From a page's number to its pixels; use `page`.
    carried : tuple of (bytes, bytes)
        PNG chunks, JPEG segments or boxes to write again: their type and content.
    directories : tuple of Directory
        The tags of each TIFF page.
    sha256 : str
        Hash of the file's bytes.
    """

    label: str
    format: str
    pages: tuple[Page, ...]
    metadata: Metadata
    decode: Callable[[int], NDArray[Any]] = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()
    carried: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)
    directories: tuple[Directory, ...] = field(default=(), repr=False)
    sha256: str = ""

    def page(self, number: int) -> NDArray[Any]:
        """Decode one page, numbered from 0, in stored order; InputError if it is damaged."""
        return self.decode(number)

    @property
    def pixels(self) -> NDArray[Any]:
        """The first page, decoded at each use."""
        return self.page(0)
