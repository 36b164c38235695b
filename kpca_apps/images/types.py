"""Image files in memory, the interface of file formats, and limits on stated sizes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.images.tags import ORIENTATION, Directory, first_directory
from kpca_apps.names import reason_of
from kpca_apps.system.quiet import warnings_ignored

Parts = tuple[tuple[bytes, bytes], ...]  # type and content of each part
Groups = tuple[tuple[int, ...], ...]  # page numbers of each stack
MAX_PIXELS = 178_000_000
MAX_IN_BANDS = 20_000_000_000  # maximum number of pixels of a page read in bands
DEFLATE_RATIO = 1100  # Deflate packs at most 1032 bytes into a byte
# Maximum number of bytes before or after an image, and of packed bytes per pixel.
FRONT, _MOST_PER_PIXEL = 1 << 25, 32
# libpng's warnings are harmless, and Pillow's failures are reported elsewhere. Without a handler,
# both would be printed.
for _library in ("imagecodecs", "PIL"):
    logging.getLogger(_library).addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Page:
    """Size and pixel type of a page."""

    height: int
    width: int
    channels: int  # 1 to 4: grey or RGB, with alpha last if any
    dtype: np.dtype[Any]  # u1, u2, or (TIFF and laboratory formats) u4, i1, i2, i4, f2, f4, f8

    @property
    def alpha(self) -> bool:
        """Whether the last channel is transparency."""
        return self.channels in (2, 4)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the pixel array: (h, w) or (h, w, channels)."""
        return (self.height, self.width, self.channels)[: 2 + (self.channels > 1)]

    @property
    def is_large(self) -> bool:
        """Whether the page is read and written in bands of rows."""
        return self.height * self.width > MAX_PIXELS

    @property
    def pixel_bytes(self) -> int:
        """Number of bytes of a pixel."""
        return self.channels * self.dtype.itemsize

    @property
    def n_bytes(self) -> int:
        """Number of bytes of the decoded pixels."""
        return self.height * self.width * self.pixel_bytes


@dataclass(frozen=True)
class Metadata:
    """Metadata that every format can hold; pixels stay in stored orientation."""

    exif: bytes | None = None  # EXIF block, starting with its TIFF header
    icc: bytes | None = None
    orientation: int = 1  # EXIF orientation for viewing: 1 (as stored) to 8
    density: tuple[float, float] | None = None  # pixels per inch, if stated outside the EXIF block

    @classmethod
    def of(
        cls,
        exif: bytes | None,
        icc: bytes | None,
        density: tuple[float, float] | None = None,
        orientation: int | None = None,
    ) -> Metadata:
        """Return metadata; the orientation is by default that of the EXIF block."""
        exif = (exif or b"").removeprefix(b"Exif\0\0") or None
        if orientation is None and (directory := first_directory(exif)):
            orientation = directory.integer(ORIENTATION, 1)
        stated = orientation or 1
        return cls(exif, icc or None, stated if 1 <= stated <= 8 else 1, density)


@dataclass(frozen=True)
class Negative:
    """Conversion of `Mosaic.light` to 16-bit counts, and the DNG tags."""

    black: NDArray[np.float32]  # (n, n), black level of each pattern pixel, in 16-bit counts
    scale: np.float32  # value of `Mosaic.light` per sensor count
    finer: int  # 16-bit counts per sensor count
    white: int  # 16-bit count at which pixels saturate
    tags: Directory = field(repr=False)  # DNG tags except those of levels and pixels

    def counts(self, light: NDArray[np.float32]) -> NDArray[np.uint16]:
        """Convert `light` to 16-bit counts (h, w)."""
        n, counts = len(self.black), np.empty(light.shape, np.uint16)
        for y, x in np.ndindex(n, n):
            own = self.black[y, x] + self.finer * (light[y::n, x::n] / self.scale)
            counts[y::n, x::n] = np.clip(np.rint(own), 0, 65535)
        return counts


@dataclass(frozen=True)
class Mosaic:
    """Values of a camera's sensor, one colour per pixel, from 0 at black to 65535 at white."""

    light: NDArray[np.float32]  # (h, w), in stored orientation
    pattern: str  # colours of the first pixels, row by row: 2 x 2, or 6 x 6 for X-Trans
    white: float  # value of `light` at saturation
    # (3, 2), a and b of the noise variance a x + b in red, green and blue, if the file states it.
    noise: NDArray[np.float64] | None
    # Develops an upright picture from (h, w) values in the units of `light`; None means `light`.
    developed: Callable[[NDArray[np.float32] | None], NDArray[np.uint16]]
    negative: Negative  # data for writing a DNG


@dataclass(frozen=True)
class ImageFile:
    """An image file with checked headers and pixels decoded on request."""

    format: str  # kind by content, a key of `kpca_apps.images.kinds.FORMATS`
    pages: tuple[Page, ...]
    # Decodes a page by number, from 0, in stored orientation; raises InputError for damage.
    page: Callable[[int], NDArray[Any]] = field(repr=False, compare=False)
    metadata: Metadata = Metadata()  # metadata of the first page
    notes: tuple[str, ...] = ()  # sentences on differences between input and output
    carried: Parts = field(default=(), repr=False)  # chunks, segments or boxes to write again
    directories: tuple[Directory, ...] = field(default=(), repr=False)  # tags of TIFF pages
    # `within`: size and tags of the smaller copies nested in each page. `copies`: for each page
    # that is a smaller copy, the page it copies.
    within: tuple[tuple[tuple[Page, Directory], ...], ...] = field(default=(), repr=False)
    copies: Mapping[int, int] = field(default_factory=dict, repr=False)
    label: str = ""  # the user's name for the file, safe in a one-line message
    sha256: str = ""
    mosaic: Callable[[], Mosaic] | None = field(default=None, repr=False, compare=False)  # if raw
    # Decodes rows and columns of a page; `blocks` has (h, w) of each page's blocks.
    window: Callable[[int, slice, slice], NDArray[Any]] | None = field(
        default=None, repr=False, compare=False
    )
    blocks: tuple[tuple[int, int], ...] = ()
    groups: Groups | None = None  # page numbers of each volume or film, if the format states them
    inks: bool = False  # whether each CMYK page is split into two pages; see `inks.py`
    # Writes a copy of the file with new pages, for formats that are written only as such copies.
    rewrite: Callable[[Any, Iterable[NDArray[Any]]], None] | None = field(
        default=None, repr=False, compare=False
    )


class Format(NamedTuple):
    """A supported kind of file: how to detect, read and write it."""

    mark: bytes  # regular expression for the first bytes
    suffixes: tuple[str, ...]  # the first suffix is used for results
    # Takes the bytes of a file, or a folder; errors name the page at most, `read_image` the file.
    read: Callable[[Any], ImageFile]
    # Takes an open file or an existing folder, pages one at a time, and the source of the metadata.
    write: Callable[[Any, Iterable[NDArray[Any]], ImageFile], None]
    # Returns height and width from the start of a large file; None for formats that state the
    # offsets of their parts.
    size: Callable[[bytes], tuple[int, int]] | None = None
    written_as: str = ""  # kind of the output, if other than the input's
    is_folder: bool = False


def rewrite(file: Any, pages: Iterable[NDArray[Any]], like: ImageFile) -> None:
    """Write pages into a copy of their source file."""
    assert like.rewrite is not None
    like.rewrite(file, pages)


def check_size(
    size: tuple[int, int], pixel_bytes: float, packed: float, ratio: int, most: int = MAX_PIXELS
) -> None:
    """Raise InputError if a (height, width) is above the limit or does not match `packed` bytes.

    One packed byte yields at most `ratio` bytes of pixels; a pixel has `pixel_bytes`.
    """
    height, width = size
    promise = f"its header promises {width} x {height} pixels"
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


def check_piece(page: Page) -> None:
    """Raise InputError if a page is too large to be decoded as a whole."""
    if page.is_large:
        raise InputError(
            f"has {page.width} x {page.height} pixels, too many to be looked at in one "
            "piece; cut it into smaller images."
        )


@contextmanager
def damage_refused() -> Iterator[None]:
    """Turn any exception of a library on a damaged file into a one-line InputError."""
    try:
        with warnings_ignored():
            yield
    except (InputError, MemoryError):
        raise
    except (OverflowError, TypeError):  # raised for values in a header; the messages do not help
        raise InputError("its header is damaged; fetch the file again.") from None
    except Exception as error:
        raise InputError(
            f"its pixels are damaged or cut short ({reason_of(error)}); fetch the file again."
        ) from None
