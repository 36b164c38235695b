"""Write TIFF files page by page, with the tags of the file they were made from."""

from __future__ import annotations

import struct
import zlib
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.images_types import Metadata
from kpca_apps.files.tiff import (
    BITS,
    DESCRIPTION,
    DNG_VERSION,
    EXTRA,
    FORMAT,
    HEIGHT,
    ICC,
    MEANING,
    PACKING,
    PLANAR,
    PREDICTOR,
    SAMPLES,
    STRIP_BYTES,
    STRIP_ROWS,
    STRIPS,
    WIDTH,
    invert,
)
from kpca_apps.files.tiff_packing import PLAIN, ZIP, apply_predictor
from kpca_apps.files.tiff_tags import (
    Directory,
    Layout,
    Tag,
    TiffError,
    pack_tags,
    read_directories,
)

__all__ = ["TiffWriter", "directory_of_metadata"]

_STRIP = 1 << 18
_LIMIT = (1 << 32) - (1 << 20)
# Tags of how pixels were stored, which are set anew, and of pictures that are not written: fill
# order, halftones, fax options, palettes, tiles, sub-images, JPEG and YCbCr tables.
_DENSITY, _DENSITY_UNIT, _INCH = frozenset({282, 283}), 296, 2
_DROPPED = frozenset(
    {255, 266, 288, 289, 292, 293, 301, 320, 321, 322, 323, 324, 325, 330, 347}
    | {512, 513, 514, 515, 517, 518, 519, 520, 521, 529, 530, 531, 532}
    | {BITS, FORMAT, HEIGHT, PACKING, PLANAR, PREDICTOR, SAMPLES, WIDTH}
    | {STRIPS, STRIP_BYTES, STRIP_ROWS}
)


class TiffWriter:
    """Write pages one after the other, so that no more than one need be in memory.

    Parameters
    ----------
    file : binary file
        Open for writing, at its start, and able to seek.
    layout : Layout
        Byte order and widths; that of the tags the pages will be given.
    label : str
        For messages.

    Examples
    --------
    >>> import io
    >>> from kpca_apps.files.tiff import read_tiff
    >>> file, layout = io.BytesIO(), Layout(">")
    >>> writer = TiffWriter(file, layout, "a.tif")
    >>> for value in (0.5, -2.0):
    ...     writer.add(np.full((4, 5), value, np.float32), Directory(layout, {}))
    >>> image = read_tiff(file.getvalue(), "a.tif")
    >>> len(image.pages), float(image.page(1)[3, 4])
    (2, -2.0)
    """

    def __init__(self, file: IO[bytes], layout: Layout, label: str) -> None:
        self._file = file
        self._layout = layout
        self._label = label
        file.write(layout.header(0))
        # Where the place of the next directory is to be written.
        self._link = file.tell() - layout.place_size

    def add(self, pixels: NDArray[Any], like: Directory) -> None:
        """Write a page.

        Parameters
        ----------
        pixels : ndarray of shape (h, w) or (h, w, 2..4)
            uint8, uint16, float32 or float64. Integers count from black, as they are read,
            whatever the tags say.
        like : Directory
            The tags to carry over. Pages that were not compressed stay so; others are written
            with Deflate.

        Raises
        ------
        InputError
            If a file that is not BigTIFF would exceed 4 GB.
        """
        channels = 1 if pixels.ndim == 2 else pixels.shape[2]
        values = pixels.reshape(*pixels.shape[:2], channels)
        if like.integer(MEANING, 1) == 0 and values.dtype.kind == "u":
            values = values.copy()
            invert(values[..., :1])
        plain = like.integer(PACKING, PLAIN) == PLAIN
        predicted = not plain and values.dtype.kind == "u"
        planar = channels > 1 and like.integer(PLANAR, 1) == 2
        rows = max(1, _STRIP // max(1, values[0].nbytes))
        places, sizes = [], []
        for plane in np.split(values, channels, axis=2) if planar else [values]:
            for top in range(0, len(values), rows):
                packed = self._packed(plane[top : top + rows], plain, predicted)
                places.append(self._append(packed))
                sizes.append(len(packed))
        tags = {number: tag for number, tag in like.tags.items() if number not in _DROPPED}
        tags |= self._structure(values, plain, predicted, rows, places, sizes)
        tags[PLANAR] = self._layout.numbers(3, 2 if planar else 1)
        tags |= self._meaning(like, channels)
        self._append_directory(Directory(self._layout, tags, like.children))

    def _packed(self, values: NDArray[Any], plain: bool, predicted: bool) -> bytes:
        if predicted:
            values = apply_predictor(values)
        raw = values.astype(values.dtype.newbyteorder(self._layout.order)).tobytes()
        return raw if plain else zlib.compress(raw, 6)

    def _structure(
        self,
        values: NDArray[Any],
        plain: bool,
        predicted: bool,
        rows: int,
        places: list[int],
        sizes: list[int],
    ) -> dict[int, Tag]:
        height, width, channels = values.shape
        is_float = values.dtype.kind == "f"
        number, kind = self._layout.numbers, self._layout.place_kind
        tags = {
            WIDTH: number(4, width),
            HEIGHT: number(4, height),
            BITS: number(3, *[8 * values.dtype.itemsize] * channels),
            PACKING: number(3, PLAIN if plain else ZIP),
            SAMPLES: number(3, channels),
            STRIP_ROWS: number(4, rows),
            STRIPS: number(kind, *places),
            STRIP_BYTES: number(kind, *sizes),
            FORMAT: number(3, *[3 if is_float else 1] * channels),
        }
        if predicted:
            tags[PREDICTOR] = number(3, 2)
        return tags

    def _meaning(self, like: Directory, channels: int) -> dict[int, Tag]:
        """Return the tags of what channels mean, where the page had none."""
        tags = {}
        if MEANING not in like.tags:
            tags[MEANING] = self._layout.numbers(3, 2 if channels >= 3 else 1)
        if channels in (2, 4) and EXTRA not in like.tags:
            tags[EXTRA] = self._layout.numbers(3, 2)
        return tags

    def _append(self, block: bytes) -> int:
        """Write a block at the end, at an even place, and return the place."""
        file = self._file
        place = file.seek(0, 2)
        if place % 2:
            place += file.write(b"\0")
        if not self._layout.big and place + len(block) > _LIMIT:
            raise InputError(
                f"{self._label}: its pages take more than the 4 GB of a TIFF file; split it, or "
                "save it as BigTIFF."
            )
        file.write(block)
        return place

    def _append_directory(self, directory: Directory) -> None:
        place = self._append(b"")
        block, start = pack_tags(directory, place)
        self._append(block)
        self._file.seek(self._link)
        self._file.write(
            np.array(start, self._layout.order + f"u{self._layout.place_size}").tobytes()
        )
        number_size, entry_size = (8, 20) if self._layout.big else (2, 12)
        n_tags = len(directory.tags) + len(directory.children)
        self._link = start + number_size + n_tags * entry_size


def directory_of_metadata(metadata: Metadata) -> Directory:
    """Return the tags that hold metadata which came from another format.

    Parameters
    ----------
    metadata : Metadata

    Returns
    -------
    Directory
        Compressed; in the byte order of the EXIF block, if there is one that is sound.
    """
    found = Directory(Layout("<"), {})
    if metadata.exif is not None:
        try:
            found = next(read_directories(metadata.exif), found)
        except TiffError:
            pass
    tags = {number: tag for number, tag in found.tags.items() if number not in _DROPPED}
    tags[PACKING] = found.layout.numbers(3, ZIP)
    # Of pixels that were another file's, or that would make this file a RAW file or a stack.
    for number in (MEANING, EXTRA, DNG_VERSION):
        tags.pop(number, None)
    if DESCRIPTION in tags and tags[DESCRIPTION].data.startswith(b"ImageJ"):
        del tags[DESCRIPTION]
    if metadata.icc is not None:
        tags[ICC] = Tag(7, len(metadata.icc), metadata.icc)
    if metadata.density is not None and not _DENSITY & tags.keys():
        for number, value in zip(sorted(_DENSITY), metadata.density, strict=True):
            ratio = struct.pack(f"{found.layout.order}II", min(round(100 * value), 2**32 - 1), 100)
            tags[number] = Tag(5, 1, ratio)
        tags[_DENSITY_UNIT] = found.layout.numbers(3, _INCH)
    return Directory(found.layout, tags, found.children)
