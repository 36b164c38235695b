"""TIFF files of 8 and 16 bits and floats, read page by page with their tags.

Which codec a TIFF scheme or predictor means is tifffile's to say, and imagecodecs decodes each
strip or tile, checked to be whole: tifffile's own reader fills what is missing.

References
----------
TIFF Revision 6.0 (Adobe, 1992); Adobe PageMaker 6.0 Technical Notes (1995) on extra samples.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from tifffile import TIFF

from kpca_apps.errors import InputError
from kpca_apps.files.images.jpeg import PIXELS_PER_BYTE, require_whole
from kpca_apps.files.images.limits import DEFLATE_RATIO, check_size, damage_refused
from kpca_apps.files.images.sizes import UNBOUNDED, stated_size
from kpca_apps.files.images.tags import (
    ORIENTATION,
    Directory,
    TiffError,
    read_directories,
    write_exif,
)
from kpca_apps.files.images.types import ImageFile, Metadata, Page
from kpca_apps.files.limits import require_memory

__all__ = ["read_tiff"]

WIDTH, HEIGHT, BITS, PACKING, MEANING = 256, 257, 258, 259, 262
FILL_ORDER, STRIPS, SAMPLES, STRIP_ROWS, STRIP_BYTES, PLANAR = 266, 273, 277, 278, 279, 284
PREDICTOR, TILE_WIDTH, TILE_HEIGHT, TILES, TILE_BYTES = 317, 322, 323, 324, 325
EXTRA, FORMAT, ICC, DNG_VERSION, DESCRIPTION = 338, 339, 34675, 50706, 270
SUB_IMAGES, JPEG_TABLES, DEPTH = 330, 347, 32997
PLAIN, JPEG, ZIP, OLD_ZIP, PACKBITS = 1, 7, 8, 32946, 32773
YCBCR = 6
# Schemes for bytes, and how many bytes one packed byte can at most become.
_RATIOS = {PLAIN: 1, PACKBITS: 64, ZIP: DEFLATE_RATIO, OLD_ZIP: DEFLATE_RATIO, 5: 2800}
_RATIOS |= {34925: 16_000, 34926: 50_000, 50000: 50_000, 50013: DEFLATE_RATIO}
# Schemes whose strips or tiles are images of another kind: JPEG, JPEG 2000, LERC, PNG, WebP, JXL.
_IMAGES = {JPEG: "jpeg", 34712: "jp2", 33003: "jp2", 33005: "jp2", 34887: "lerc", 34933: "png"}
_IMAGES |= {34927: "webp", 50001: "webp", 50002: "jxl"}
_RATIOS |= dict.fromkeys(_IMAGES, UNBOUNDED) | {JPEG: 3 * PIXELS_PER_BYTE}
# With these a predictor is named in vain, as libtiff has it.
_UNPREDICTED = frozenset({PLAIN, PACKBITS, *_IMAGES})
_RAW_MEANINGS = frozenset({32803, 34892})
_MEANINGS = {3: "a palette of colours", 4: "a mask", 5: "CMYK inks", 6: "YCbCr", 8: "CIELab"}
# Tags that belong in an EXIF block made from a TIFF page: what the picture shows, and how.
_DESCRIBING = frozenset({DESCRIPTION, 271, 272, ORIENTATION, 282, 283, 296, 305, 306, 315, 33432})
_TYPES = {(1, 8): "u1", (1, 16): "u2", (3, 32): "f4", (3, 64): "f8"}
# Bytes that a strip may have too many, as some writers pad them.
_SLACK = 512


class _Structure(NamedTuple):
    """How the pixels of a page lie in the file: blocks are strips or tiles."""

    page: Page
    dtype: np.dtype[Any]  # in the file's byte order
    meaning: int
    packing: int
    predictor: int
    bits_turned: bool
    planar: bool
    tiled: bool
    block: tuple[int, int]
    places: tuple[int, ...]
    sizes: tuple[int, ...]
    tables: bytes

    @property
    def decoded(self) -> int:
        """Bytes of the pixels, decoded."""
        page = self.page
        return page.height * page.width * page.channels * page.dtype.itemsize


def read_tiff(data: bytes, label: str) -> ImageFile:
    """Read a TIFF or BigTIFF file of grey or RGB pages, with or without alpha.

    Strips or tiles, channels together or apart, packed in what imagecodecs reads. Integers that
    count from white come out counting from black.
    """
    try:
        directories = tuple(read_directories(data))
        if not directories:
            raise TiffError("it has no pages")
    except TiffError as damage:
        raise InputError(f"{label}: {damage}; it is damaged, fetch the file again.") from None
    _refuse_foreign(directories, label)
    labels = [label]
    if len(directories) > 1:
        labels = [f"{label}, page {number}" for number in range(1, len(directories) + 1)]
    structures = tuple(
        _structure(directory, len(data), where)
        for directory, where in zip(directories, labels, strict=True)
    )
    # Pages may share their pixels.
    if sum(one.decoded / _RATIOS[one.packing] for one in structures) > len(data) + 4096:
        raise InputError(
            f"{label}: its {len(structures)} pages promise more pixels than its {len(data)} bytes "
            "can hold; it is damaged, fetch the file again."
        )
    require_memory(label, max(one.decoded for one in structures))
    return ImageFile(
        label=label,
        format="tiff",
        pages=tuple(structure.page for structure in structures),
        metadata=_metadata(directories[0]),
        decode=lambda number: _decode(data, structures[number], labels[number]),
        notes=_notes(directories, structures),
        directories=directories,
    )


def _refuse_foreign(directories: tuple[Directory, ...], label: str) -> None:
    """Refuse what only looks like a TIFF image: RAW files, volumes, stacks of one directory."""
    for directory in directories:
        meaning = directory.integer(MEANING, 1)
        if DNG_VERSION in directory.tags or meaning in _RAW_MEANINGS:
            raise InputError(
                f"{label}: is a camera's RAW file, which is not read; develop it to a 16-bit TIFF "
                "first, without its denoising."
            )
        slices = directory.integer(DEPTH, 1)
        if slices > 1:
            raise InputError(
                f"{label}: holds a volume of {slices} slices in one page; save it with a page for "
                "each slice first."
            )
    described = directories[0].tags.get(DESCRIPTION)
    if described is not None and len(directories) == 1:
        images = re.search(rb"^images=(\d+)", described.data, re.MULTILINE)
        if images and int(images[1][:9]) > 1 and described.data.startswith(b"ImageJ"):
            raise InputError(
                f"{label}: is an ImageJ stack that keeps its pages outside the TIFF structure; "
                "save it with a page for each image first."
            )


def _structure(directory: Directory, n_bytes: int, label: str) -> _Structure:
    """Check what a page says of its pixels."""
    height, width = directory.integer(HEIGHT, 0), directory.integer(WIDTH, 0)
    meaning, packing = directory.integer(MEANING, 1), directory.integer(PACKING, PLAIN)
    page = _page(directory, height, width, label)
    predictor = 1 if packing in _UNPREDICTED else directory.integer(PREDICTOR, 1)
    if packing not in _RATIOS:
        raise InputError(
            f"{label}: its compression (TIFF scheme {packing}) is not read; save it with LZW, "
            "Deflate or no compression."
        )
    if predictor not in (1, 2, 3) or (predictor == 3) != (
        page.dtype.kind == "f" and predictor != 1
    ):
        raise InputError(f"{label}: its predictor {predictor} is not read; save it without one.")
    tiled = TILES in directory.tags
    if tiled:
        block = directory.integer(TILE_HEIGHT, 0), directory.integer(TILE_WIDTH, 0)
        places, sizes = directory.integers(TILES), directory.integers(TILE_BYTES)
    else:
        block = min(directory.integer(STRIP_ROWS, height), height), width
        places, sizes = directory.integers(STRIPS), directory.integers(STRIP_BYTES)
    pixel_bytes = page.channels * page.dtype.itemsize
    check_size(label, height, width, pixel_bytes, min(sum(sizes), n_bytes), _RATIOS[packing])
    planar = page.channels > 1 and directory.integer(PLANAR, 1) == 2
    tall, wide = block
    expected = 0
    if tall > 0 and wide > 0 and tall * wide <= 4 * height * width + (1 << 20):
        expected = -(-height // tall) * -(-width // wide) * (page.channels if planar else 1)
    places, sizes = places[:expected], sizes[:expected]
    if not expected or len(places) < expected or len(sizes) < expected:
        raise InputError(f"{label}: its strips or tiles are damaged; fetch the file again.")
    if any(place + size > n_bytes for place, size in zip(places, sizes, strict=True)):
        raise InputError(f"{label}: its pixels are cut short; fetch the file again.")
    return _Structure(
        page,
        page.dtype.newbyteorder(directory.layout.order),
        meaning,
        packing,
        predictor,
        directory.integer(FILL_ORDER, 1) == 2 and packing not in _IMAGES,
        planar,
        tiled,
        block,
        places,
        sizes,
        directory.tags[JPEG_TABLES].data if JPEG_TABLES in directory.tags else b"",
    )


def _page(directory: Directory, height: int, width: int, label: str) -> Page:
    """Return size and type of a page."""
    samples = directory.integer(SAMPLES, 1)
    bits = set(directory.integers(BITS, (1,)))
    formats = set(directory.integers(FORMAT, (1,)))
    kind, depth = min(formats), max(bits)
    meaning = directory.integer(MEANING, 1)
    is_jpeg_colour = meaning == YCBCR and directory.integer(PACKING, PLAIN) == JPEG
    if meaning not in (0, 1, 2) and not is_jpeg_colour:
        what = _MEANINGS.get(meaning, f"pixels of photometric kind {meaning}")
        raise InputError(f"{label}: holds {what}, not grey or RGB; save it as grey or RGB first.")
    if bits == {1}:
        raise InputError(
            f"{label}: holds 1 bit a pixel, which leaves no grey to denoise; scan or save it as "
            "8-bit grey."
        )
    code = _TYPES.get((kind, depth))
    if code is None or len(bits) > 1 or len(formats) > 1:
        what = {1: "unsigned", 2: "signed", 3: "float"}.get(kind, "unknown")
        raise InputError(
            f"{label}: holds {what} values of {depth} bits; save it as 8-bit, 16-bit or float32 "
            "first."
        )
    colours = 1 if meaning in (0, 1) else 3
    declared = directory.integers(EXTRA)
    has_alpha = samples == colours + 1 and (declared[:1] in ((1,), (2,)) or colours == 3)
    if samples != colours and not has_alpha:
        raise InputError(
            f"{label}: holds {samples} channels where {'RGB' if colours == 3 else 'grey'} has "
            f"{colours}, and not as transparency; save each channel as a page or file of its own."
        )
    return Page(height, width, samples, np.dtype(code))


def _decode(data: bytes, structure: _Structure, label: str) -> NDArray[Any]:
    page, (tall, wide) = structure.page, structure.block
    samples = 1 if structure.planar else page.channels
    whole = np.empty((page.height, page.width, page.channels), page.dtype)
    blocks = zip(structure.places, structure.sizes, strict=True)
    decode = _image_block if structure.packing in _IMAGES else _block
    for channel in range(page.channels // samples):
        channels = slice(channel, channel + 1) if structure.planar else slice(None)
        for top in range(0, page.height, tall):
            for left in range(0, page.width, wide):
                place, size = next(blocks)
                target = whole[top : top + tall, left : left + wide, channels]
                # The last strip is cut; tiles are whole and padded.
                n_rows = tall if structure.tiled else len(target)
                with damage_refused(label):
                    values = decode(data[place : place + size], structure, n_rows, samples, label)
                target[...] = values[: target.shape[0], : target.shape[1]]
    if structure.meaning == 0 and page.dtype.kind == "u":
        invert(whole[..., :1])
    return whole[..., 0] if page.channels == 1 else whole


def _block(
    packed: bytes, structure: _Structure, n_rows: int, samples: int, label: str
) -> NDArray[Any]:
    """Decode a strip or tile of packed bytes."""
    tall, wide = structure.block
    row_bytes = wide * samples * structure.dtype.itemsize
    if structure.bits_turned:
        packed = bytes(imagecodecs.bitorder_decode(packed))
    raw: bytes | bytearray = packed
    if structure.packing != PLAIN:
        raw = TIFF.DECOMPRESSORS[structure.packing](packed, out=tall * row_bytes + _SLACK)
    if len(raw) < n_rows * row_bytes:
        raise ValueError(f"{len(raw)} bytes of {n_rows * row_bytes}")
    # What the predictor of floats has summed up is in the machine's byte order.
    dtype = structure.page.dtype if structure.predictor == 3 else structure.dtype
    values = np.frombuffer(raw, dtype, n_rows * row_bytes // dtype.itemsize)
    values = values.reshape(n_rows, wide, samples).astype(structure.page.dtype)
    if structure.predictor == 2:
        numbers = values.view(f"u{dtype.itemsize}")
        values = imagecodecs.delta_decode(numbers, axis=1).view(structure.page.dtype)
    elif structure.predictor == 3:
        values = imagecodecs.floatpred_decode(values, axis=1)
    return values


def _image_block(
    packed: bytes, structure: _Structure, n_rows: int, samples: int, label: str
) -> NDArray[Any]:
    """Decode a strip or tile that is an image of another kind, of no more pixels than it may."""
    kind, wide = _IMAGES[structure.packing], structure.block[1]
    height, width = stated_size(kind, packed)
    if not n_rows <= height <= structure.block[0] or width != wide:
        raise ValueError(f"a block of {width} x {height} pixels where {wide} x {n_rows} belong")
    if kind == "jpeg":
        if structure.tables:
            packed = structure.tables[:-2] + packed[2:]
        require_whole(packed, label)
        stored = {YCBCR: "YCBCR", 2: "RGB"}.get(structure.meaning)
        values = imagecodecs.jpeg8_decode(
            packed, colorspace=stored, outcolorspace="RGB" if stored else None
        )
    elif kind == "webp":
        values = imagecodecs.webp_decode(packed, hasalpha=samples == 4)
    else:
        values = TIFF.DECOMPRESSORS[structure.packing](packed)
    if values.dtype != structure.page.dtype or values.size != height * width * samples:
        raise ValueError("a block of another type")
    return np.asarray(values.reshape(height, width, samples))


def invert(values: NDArray[Any]) -> None:
    """Turn integers that count from white into such that count from black, or back, in place."""
    np.subtract(np.iinfo(values.dtype).max, values, out=values)


def _metadata(directory: Directory) -> Metadata:
    profile = directory.tags.get(ICC)
    orientation = directory.integer(ORIENTATION, 1)
    tags = {number: tag for number, tag in directory.tags.items() if number in _DESCRIBING}
    exif = None
    if (tags or directory.children) and not directory.layout.big:
        exif = write_exif(Directory(directory.layout, tags, directory.children))
    return Metadata(
        exif=exif,
        icc=(profile.data or None) if profile else None,
        orientation=orientation if 1 <= orientation <= 8 else 1,
    )


def _notes(
    directories: tuple[Directory, ...], structures: tuple[_Structure, ...]
) -> tuple[str, ...]:
    notes = []
    if any(
        directory.integer(SAMPLES, 1) == 4 and directory.integer(EXTRA, 0) == 0
        for directory in directories
    ):
        notes.append("The fourth channel is taken as transparency and left as it is.")
    if any(SUB_IMAGES in directory.tags for directory in directories):
        notes.append("Further images inside its pages, such as smaller copies, are not kept.")
    if any(structure.packing not in (PLAIN, ZIP, OLD_ZIP) for structure in structures):
        notes.append("Its compression is written as Deflate, which loses nothing.")
    return tuple(notes)
