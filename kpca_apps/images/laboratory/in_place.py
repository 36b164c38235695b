"""Read uncompressed pixels of a file, and write them into a copy of the file.

Headers, tables and extensions are kept byte for byte. At most one page is in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.images.laboratory.ome import MOST_PAGES
from kpca_apps.images.large import Content
from kpca_apps.images.types import Page, check_size

_PIECE = 1 << 22  # number of bytes copied at a time
_DIGITS = 1 << 22  # range of integers that float32 represents exactly, with a margin
READ_TYPES = frozenset("u1 u2 u4 i1 i2 i4 f2 f4 f8".split())


@dataclass(frozen=True)
class Scaling:
    """Meaning of stored integers: slope * stored + offset, with an optional missing value."""

    slope: float = 1.0
    offset: float = 0.0
    blank: int | None = None

    def dtype(self, stored: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type of the values: integers if exact, else floats with NaN for missing."""
        native = stored.newbyteorder("=")
        if native.kind == "f":
            return native
        if self.blank is None and self.slope == 1.0:
            if self.offset == 0:
                return native
            if native.kind == "i" and self.offset == -float(np.iinfo(native).min):
                return np.dtype(f"u{native.itemsize}")
            if native.kind == "u" and self.offset == -float(np.iinfo(native).max // 2 + 1):
                return np.dtype(f"i{native.itemsize}")
        steps = abs(self.offset / self.slope) + 2.0 ** (8 * native.itemsize)
        return np.dtype("f4" if steps < _DIGITS else "f8")

    def values(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Convert stored numbers to values."""
        dtype, native = self.dtype(stored.dtype), stored.astype(stored.dtype.newbyteorder("="))
        if dtype == native.dtype and native.dtype.kind != "f":
            return native
        if dtype.kind in "ui":
            return _other_sign(native)
        if native.dtype.kind == "f" and (self.slope, self.offset) == (1.0, 0.0):
            return native
        values = self.scaled(native, dtype)
        if self.blank is not None and native.dtype.kind in "ui":
            values[native == self.blank] = np.nan
        return np.asarray(values)

    def scaled(self, stored: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return slope * stored + offset; raise InputError if it overflows the type."""
        try:
            with np.errstate(over="raise", invalid="ignore"):
                return (stored * np.float64(self.slope) + self.offset).astype(dtype)
        except FloatingPointError:
            formula = f"its rescaling, {self.slope:g} times what is stored + {self.offset:g}"
            raise InputError(
                f"{formula}, is beyond what {dtype} holds; correct its header"
            ) from None

    def stored(self, values: NDArray[Any], stored: np.dtype[Any]) -> NDArray[Any]:
        """Return values as stored numbers, rounded and clipped to the range of the type."""
        if values.dtype == self.dtype(stored) and values.dtype.kind in "ui":
            same = values.dtype == stored.newbyteorder("=")
            return np.asarray((values if same else _other_sign(values)).astype(stored))
        if stored.kind == "f":
            if (self.slope, self.offset) == (1.0, 0.0):
                return values.astype(stored)
            return ((values - self.offset) / self.slope).astype(stored)
        limits = np.iinfo(stored)
        low, high = int(limits.min), int(limits.max)
        # A value must not become the number that means "missing".
        low, high = low + (self.blank == low), high - (self.blank == high)
        steps = np.rint((values.astype(np.float64) - self.offset) / self.slope)
        whole = np.clip(np.nan_to_num(steps, nan=0.0), low, high).astype(stored)
        if self.blank is not None:
            is_blank = np.isnan(values)
            whole[(whole == self.blank) & ~is_blank] += 1
            whole[is_blank] = self.blank
        return np.asarray(whole)


def _other_sign(values: NDArray[Any]) -> NDArray[Any]:
    """Convert n-bit integers between signed and unsigned by adding or subtracting 2^(n-1)."""
    kind = {"u": "i", "i": "u"}[values.dtype.kind]
    bits = values.view(f"u{values.itemsize}") ^ np.array(
        1 << (8 * values.itemsize - 1), f"u{values.itemsize}"
    )
    return np.asarray(bits.view(f"{kind}{values.itemsize}"))


@dataclass(frozen=True)
class Plane:
    """A page stored uncompressed at an offset of a file."""

    place: int
    page: Page
    stored: np.dtype[Any]  # type of a channel, with byte order
    scaling: Scaling = Scaling()

    @property
    def n_bytes(self) -> int:
        """Number of bytes of the page in the file."""
        return self.page.height * self.page.width * self.page.channels * self.stored.itemsize

    def read(self, content: Content) -> NDArray[Any]:
        """Read the stored numbers and scale them to values."""
        raw = content[self.place : self.place + self.n_bytes]
        return self.scaling.values(np.frombuffer(raw, self.stored).reshape(self.page.shape))


def find_planes(
    content: Content,
    place: int,
    shape: Sequence[int],
    stored: np.dtype[Any],
    *,
    channels: int = 1,
    scaling: Scaling | None = None,
) -> list[Plane]:
    """Return the pages of an array (..., rows, columns) in a file."""
    *counts, height, width = (int(side) for side in shape)
    scaling = scaling or Scaling()
    if f"{stored.kind}{stored.itemsize}" not in READ_TYPES:
        what = "complex numbers" if stored.kind == "c" else f"values of type {stored.name}"
        raise InputError(
            f"holds {what}; save it as integers of at most 32 bits or as floats first."
        )
    n_pages = math.prod(max(0, count) for count in counts)
    first = Page(height, width, channels, scaling.dtype(stored))
    n_bytes = height * width * channels * stored.itemsize
    check_size((height, width), 0, 0, 1)
    if place < 0 or n_pages < 1 or place + n_pages * n_bytes > len(content):
        raise InputError(
            f"its header promises {n_pages} x {height} x {width} pixels, more than its "
            f"{len(content)} bytes can hold; it is damaged or cut short, fetch the file again."
        )
    if n_pages > MOST_PAGES:
        raise InputError(f"has {n_pages:,} pages, above the limit of {MOST_PAGES:,}.")
    return [Plane(place + number * n_bytes, first, stored, scaling) for number in range(n_pages)]


def write_in_place(
    file: Any,
    pages: Iterable[NDArray[Any]],
    content: Content,
    planes: Sequence[Plane],
    patches: Sequence[tuple[int, bytes]] = (),
) -> None:
    """Write pages in place of the planes, and copy the rest of the content.

    Planes and patches are in the order of their offsets; a patch replaces bytes outside the planes.
    """
    position, remaining = 0, list(patches)
    for plane, pixels in zip(planes, pages, strict=True):
        position = _copy(file, content, position, plane.place, remaining)
        file.write(plane.scaling.stored(pixels, plane.stored).tobytes())
        position += plane.n_bytes
    _copy(file, content, position, len(content), remaining)


def _copy(
    file: Any, content: Content, begin: int, end: int, remaining: list[tuple[int, bytes]]
) -> int:
    """Copy bytes up to an offset, applying patches; return the offset."""
    while remaining and remaining[0][0] < begin:
        remaining.pop(0)  # ignore a patch inside the page that was just written
    while begin < end:
        if remaining and remaining[0][0] == begin:
            begin += int(file.write(remaining.pop(0)[1]))
            continue
        stop = min(end, begin + _PIECE, *(place for place, _ in remaining[:1]))
        begin += int(file.write(content[begin:stop]))
    return begin
