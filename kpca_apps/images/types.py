"""An image file as it is read, a kind of such files, and what no file may promise or do.

A promise of the header is checked before any pixel is read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.images.tags import Directory, exif_orientation
from kpca_apps.names import reason_of
from kpca_apps.system.quiet import warnings_ignored

Parts = tuple[tuple[bytes, bytes], ...]  # type and content of each
Groups = tuple[tuple[int, ...], ...]  # the numbers of the pages of each stack
MAX_PIXELS = 178_000_000
# Pages above that are read and written in bands, by the kinds that can be; and no larger than this.
MAX_IN_BANDS = 20_000_000_000
# Deflate packs at most 1032 bytes into one; a header that promises more lies.
DEFLATE_RATIO = 1100
# No image is followed, or preceded by metadata, of more bytes than these; none that is packed takes
# more for a pixel than four channels of float64.
FRONT, _MOST_PER_PIXEL = 1 << 25, 32
# What libpng only warns of is harmless, and what Pillow cannot open is said by others; without a
# handler it would be printed.
for _library in ("imagecodecs", "PIL"):
    logging.getLogger(_library).addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Page:
    """Size and type of an image."""

    height: int
    width: int
    channels: int  # 1 to 4: grey or RGB, alpha last
    dtype: np.dtype[Any]  # u1, u2 or, of TIFF and laboratories' kinds, u4, i1, i2, i4, f2, f4 or f8

    @property
    def alpha(self) -> bool:
        """Whether the last channel is transparency."""
        return self.channels in (2, 4)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of pixels: (h, w) or (h, w, channels)."""
        return (self.height, self.width, self.channels)[: 2 + (self.channels > 1)]

    @property
    def is_large(self) -> bool:
        """Whether it is read and written in bands of rows."""
        return self.height * self.width > MAX_PIXELS

    @property
    def pixel_bytes(self) -> int:
        """Bytes of a pixel."""
        return self.channels * self.dtype.itemsize

    @property
    def n_bytes(self) -> int:
        """Bytes of the pixels, decoded."""
        return self.height * self.width * self.pixel_bytes


@dataclass(frozen=True)
class Metadata:
    """What any format can say. Pixels are never turned."""

    exif: bytes | None = None  # from its TIFF header on
    icc: bytes | None = None
    orientation: int = 1  # how to view the pixels: 1 (as they are) to 8
    density: tuple[float, float] | None = None  # pixels an inch, if said outside the EXIF block

    @classmethod
    def of(
        cls,
        exif: bytes | None,
        icc: bytes | None,
        density: tuple[float, float] | None = None,
        orientation: int | None = None,
    ) -> Metadata:
        """Make metadata whose orientation, unless given, is the one in the EXIF block."""
        exif = (exif or b"").removeprefix(b"Exif\0\0") or None
        found = exif_orientation(exif) if orientation is None else orientation
        return cls(exif, icc or None, found if 1 <= found <= 8 else 1, density)


@dataclass(frozen=True)
class Negative:
    """How light becomes counts of a sensor, finer ones than it had, and what a DNG says of them."""

    black: NDArray[np.float32]  # (n, n): of each pixel of the pattern, in the finer counts
    scale: np.float32  # light of one count of the sensor
    finer: int  # parts that such a count is divided into
    white: int  # count at which pixels saturate
    tags: Directory = field(repr=False)  # but those of levels and pixels

    def counts(self, light: NDArray[np.float32]) -> NDArray[np.uint16]:
        """Return the counts (h, w) of light."""
        n, counts = len(self.black), np.empty(light.shape, np.uint16)
        for y, x in np.ndindex(n, n):
            own = self.black[y, x] + self.finer * (light[y::n, x::n] / self.scale)
            counts[y::n, x::n] = np.clip(np.rint(own), 0, 65535)
        return counts


@dataclass(frozen=True)
class Mosaic:
    """What a camera's sensor saw, one colour a pixel, from 0 at black to 65535 at white."""

    light: NDArray[np.float32]  # (h, w), not turned
    pattern: str  # colours of the first pixels of each row: 2 x 2, or 6 x 6 of X-Trans
    white: float  # where pixels saturate: 65535, as rounded as they are
    # a and b of the noise's variance a x + b in red, green and blue (3, 2), if the file gives them.
    noise: NDArray[np.float64] | None
    # Makes a picture, upright, of a mosaic like this one, or of this one for None.
    developed: Callable[[NDArray[np.float32] | None], NDArray[np.uint16]]
    negative: Negative  # what becomes a DNG


@dataclass(frozen=True)
class ImageFile:
    """An image file, checked as far as its headers go."""

    label: str  # as the user named it, fit for a one-line message
    format: str  # by content, one of `kpca_apps.images.kinds.FORMATS`
    pages: tuple[Page, ...]
    # Decodes a page, by its number from 0, in stored order; refuses damage.
    page: Callable[[int], NDArray[Any]] = field(repr=False, compare=False)
    metadata: Metadata = Metadata()  # of the first page
    notes: tuple[str, ...] = ()  # sentences on what comes out other than it went in
    carried: Parts = field(default=(), repr=False)  # chunks, segments or boxes to write again
    directories: tuple[Directory, ...] = field(default=(), repr=False)  # tags of TIFF pages
    # Size and tags of smaller copies that stand within each page, and pages that are copies of
    # another, by number: both are made anew of what is written.
    within: tuple[tuple[tuple[Page, Directory], ...], ...] = field(default=(), repr=False)
    copies: Mapping[int, int] = field(default_factory=dict, repr=False)
    sha256: str = ""  # of the file's bytes
    mosaic: Callable[[], Mosaic] | None = field(default=None, repr=False, compare=False)  # if raw
    # Decodes rows and columns of a page, by its number, and the sides of the blocks it lies in.
    window: Callable[[int, slice, slice], NDArray[Any]] | None = field(
        default=None, repr=False, compare=False
    )
    blocks: tuple[tuple[int, int], ...] = ()
    # Pages that are one volume or film, where the kind says so itself.
    groups: Groups | None = None
    inks: bool = False  # whether pages are those of CMYK, two for each; see `inks.py`
    # Writes pages into a copy of all else that the file holds, for kinds that are written so.
    rewrite: Callable[[Any, Iterable[NDArray[Any]]], None] | None = field(
        default=None, repr=False, compare=False
    )


class Format(NamedTuple):
    """A kind of file that is read: how it is known, read, and written again."""

    mark: bytes  # a regular expression for the first bytes of such a file, and of no other
    suffixes: tuple[str, ...]  # the first is what a result is called
    # Of a file's bytes, or a folder, and its label.
    read: Callable[[Any, str], ImageFile]
    # To a file, or into a folder that is there; takes pages one at a time, and metadata from the
    # file that they came from.
    write: Callable[[Any, Iterable[NDArray[Any]], ImageFile], None]
    # Height and width by the beginning of a large file; None if that says what lies where, so that
    # the rest is never read.
    size: Callable[[bytes], tuple[int, int]] | None
    written_as: str = ""  # the kind of what becomes of it, if that is another
    is_folder: bool = False


def rewrite(file: Any, pages: Iterable[NDArray[Any]], like: ImageFile) -> None:
    """Write pages in the place of those of the file they came from, and all else as it was."""
    if like.rewrite is None:
        raise ValueError(f"an image of kind {like.format} cannot be written into a copy of itself")
    like.rewrite(file, pages)


def check_size(
    label: str,
    size: tuple[int, int],
    pixel_bytes: float,
    packed: float,
    ratio: int,
    most: int = MAX_PIXELS,
) -> None:
    """Refuse a (height, width) above the limit, or that `packed` bytes cannot hold or do not need.

    One of these can become at most `ratio` bytes of pixels, of which one has `pixel_bytes`.
    """
    height, width = size
    promise = f"{label}: its header promises {width} x {height} pixels"
    if height < 1 or width < 1:
        raise InputError(f"{promise}; it is damaged, make it again.")
    if height * width > most:
        raise InputError(
            f"{promise}, above the limit of {most // 1_000_000:,} megapixels; cut it into "
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


def check_piece(label: str, page: Page) -> None:
    """Refuse to decode a page as a whole that is read in bands alone."""
    if page.is_large:
        raise InputError(
            f"{label}: has {page.width} x {page.height} pixels, too many to be looked at in one "
            "piece; cut it into smaller images."
        )


@contextmanager
def damage_refused(label: str) -> Iterator[None]:
    """Turn what a library raises on a damaged file, whatever that is, into one line."""
    try:
        with warnings_ignored():
            yield
    except (InputError, MemoryError):
        raise
    except (OverflowError, TypeError):  # of what a header states, of which they say nothing
        raise InputError(f"{label}: its header is damaged; fetch the file again.") from None
    except Exception as error:
        raise InputError(
            f"{label}: its pixels are damaged or cut short ({reason_of(error)}); fetch the file "
            "again."
        ) from None
