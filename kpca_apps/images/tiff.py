"""TIFF files of 8- to 32-bit integers and floats, read and written page by page with tags.

tifffile maps compression schemes to codecs. imagecodecs decodes each strip or tile, and detects
missing data, which tifffile's reader would fill in.

TIFF Revision 6.0 (Adobe, 1992); Adobe PageMaker 6.0 Technical Notes (1995) on extra samples.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from math import gcd
from typing import IO, Any, NamedTuple

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from tifffile import TIFF

from kpca_apps.errors import InputError, about
from kpca_apps.images.inks import invert_light, join_inks, split_inks
from kpca_apps.images.large import Bands, Content
from kpca_apps.images.photographs.jpeg import PIXELS_PER_BYTE, decode_whole
from kpca_apps.images.photographs.lossless import UNBOUNDED, stated_size
from kpca_apps.images.pyramids import smaller_copy, times_smaller
from kpca_apps.images.tags import (
    DESCRIBING,
    DESCRIPTION,
    DNG_VERSION,
    LAYOUTS,
    ORIENTATION,
    Directory,
    Tag,
    TiffError,
    directories_at,
    first_directory,
    pack_tags,
    read_directories,
    write_exif,
)
from kpca_apps.images.types import (
    DEFLATE_RATIO,
    MAX_IN_BANDS,
    Format,
    ImageFile,
    Metadata,
    Page,
    check_piece,
    check_size,
    damage_refused,
)

WIDTH, HEIGHT, BITS, PACKING, MEANING = 256, 257, 258, 259, 262
FILL_ORDER, STRIPS, SAMPLES, STRIP_ROWS, STRIP_BYTES, PLANAR = 266, 273, 277, 278, 279, 284
PREDICTOR, TILE_WIDTH, TILE_HEIGHT, TILES, TILE_BYTES = 317, 322, 323, 324, 325
EXTRA, SAMPLE_FORMAT, ICC = 338, 339, 34675
SUB_IMAGES, JPEG_TABLES, DEPTH = 330, 347, 32997
X_DENSITY, Y_DENSITY, DENSITY_UNIT, INCH = 282, 283, 296, 2
SHORT, LONG, RATIO, BYTES, DOUBLE, LONG8 = 3, 4, 5, 7, 12, 16
PLAIN, JPEG, ZIP, OLD_ZIP, PACKBITS, INKS, YCBCR = 1, 7, 8, 32946, 32773, 5, 6
# Largest ratio of unpacked to packed bytes of each compression scheme.
_RATIOS = {PLAIN: 1, PACKBITS: 64, ZIP: DEFLATE_RATIO, OLD_ZIP: DEFLATE_RATIO, 5: 2800}
_RATIOS |= {34925: 16_000, 34926: 50_000, 50000: 50_000, 50013: DEFLATE_RATIO}
# Schemes whose strips or tiles are images of another format.
_IMAGES = {JPEG: "jpeg", 34712: "jp2", 33003: "jp2", 33005: "jp2", 34933: "png"}
_IMAGES |= {34927: "webp", 50001: "webp", 50002: "jxl"}
_RATIOS |= dict.fromkeys(_IMAGES, UNBOUNDED) | {JPEG: 3 * PIXELS_PER_BYTE}
# Lossless schemes that are kept when a file is written; other schemes become Deflate.
_KEPT_SCHEMES = frozenset({PLAIN, ZIP, 5, PACKBITS, 34925, 50000})
# Schemes for which a predictor is ignored, as in libtiff.
_UNPREDICTED = frozenset({PLAIN, PACKBITS, *_IMAGES})
_RAW_MEANINGS = frozenset({32803, 34892})
_MEANINGS = {3: "a palette of few colours", 4: "a mask", 6: "YCbCr", 8: "CIELab"}
PALETTE, COLOUR_MAP = 3, 320
# Tags of a TIFF page to put into an EXIF block: what the picture shows, and how to view it.
_VIEWING = DESCRIBING | {ORIENTATION, X_DENSITY, Y_DENSITY, DENSITY_UNIT}
_TYPES = {(1, 8): "u1", (1, 16): "u2", (1, 32): "u4", (2, 8): "i1", (2, 16): "i2", (2, 32): "i4"}
_TYPES |= {(3, 16): "f2", (3, 32): "f4", (3, 64): "f8"}
_FORMATS = {"u": 1, "i": 2, "f": 3}  # SampleFormat by dtype kind
_COLOURS = {1: "grey", 3: "RGB", 4: "CMYK"}
_SLACK = 512  # padding bytes that some writers add to a strip
_STRIP = 1 << 18
_LIMIT = (1 << 32) - (1 << 20)
# Tags that are rewritten or dropped: storage of pixels, halftones, fax options, palettes, tables.
_DROPPED = frozenset({255, FILL_ORDER, 288, 289, 292, 293, 301, 320, 321, SUB_IMAGES, JPEG_TABLES})
_DROPPED |= {512, 513, 514, 515, 517, 518, 519, 520, 521, 529, 530, 531, 532}
_DROPPED |= {TILE_WIDTH, TILE_HEIGHT, TILES, TILE_BYTES, STRIPS, STRIP_BYTES, STRIP_ROWS}
_DROPPED |= {BITS, SAMPLE_FORMAT, HEIGHT, PACKING, PLANAR, PREDICTOR, SAMPLES, WIDTH}


class _Structure(NamedTuple):
    """Location of a page's pixels in the file; blocks are strips or tiles."""

    page: Page
    tags: Directory
    packing: int
    samples: int  # number of channels in a block
    block: tuple[int, int]
    places: tuple[int, ...]
    sizes: tuple[int, ...]


def read_tiff(data: Content) -> ImageFile:
    """Read a TIFF file of grey, RGB or CMYK pages; integers are inverted if 0 is white."""
    try:
        directories = tuple(read_directories(data))
        if not directories:
            raise TiffError("it has no pages")
    except TiffError as damage:
        raise InputError(f"{damage}; it is damaged, fetch the file again.") from None
    _refuse_foreign(directories)
    n_pages = len(directories)
    # Errors name the page, if there are several.
    labels = [f"page {number}" for number in range(1, n_pages + 1)] if n_pages > 1 else [""]
    structures = []
    for directory, label in zip(directories, labels, strict=True):
        with about(label):
            structures.append(_structure(directory, len(data)))
    # Pages may claim the same bytes, so check the sum of their sizes, too.
    if sum(part.page.n_bytes / _RATIOS[part.packing] for part in structures) > len(data) + 4096:
        raise InputError(
            f"its {n_pages} pages promise more pixels than its {len(data)} bytes can "
            "hold; it is damaged, fetch the file again."
        )
    notes = []
    inks = {part.integer(MEANING, 1) == INKS for part in directories}
    if len(inks) > 1:
        raise InputError("has pages of CMYK and others; save each kind in a file.")
    if inks == {False} and any(
        part.integer(SAMPLES, 1) == 4 and not part.integer(EXTRA, 0) for part in directories
    ):
        notes.append("The fourth channel is taken as transparency and left as it is.")
    pages = tuple(
        replace(part.page, channels=3) if _palette(part.tags) is not None else part.page
        for part in structures
    )
    if any(_palette(directory) is not None for directory in directories):
        notes.append("Its palette of colours is written as RGB: denoised colours do not fit it.")
    nested = tuple(
        _copies_within(data, directory, page)
        for directory, page in zip(directories, pages, strict=True)
    )
    if any(
        len(nested_copies) < len(directory.integers(SUB_IMAGES))
        for directory, nested_copies in zip(directories, nested, strict=True)
    ):
        notes.append("Further images inside its pages, but for smaller copies, are not kept.")
    copies = {
        number: 0
        for number in range(1, n_pages)
        if all(TILES in directories[part].tags for part in (0, number))
        and times_smaller(pages[number], pages[0])
    }
    if copies or any(nested):
        notes.append("Its smaller copies are recomputed.")
    if any(structure.packing not in (*_KEPT_SCHEMES, OLD_ZIP) for structure in structures):
        notes.append("Its compression is written as Deflate, which loses nothing.")

    def window(number: int, rows: slice, columns: slice) -> NDArray[Any]:
        with about(labels[number]):
            return _decoded(data, structures[number], rows, columns)

    image = ImageFile(
        format="tiff",
        pages=pages,
        metadata=_metadata(directories[0]),
        page=partial(window, rows=slice(None), columns=slice(None)),
        notes=tuple(notes),
        directories=directories,
        within=nested,
        copies=copies,
        window=window,
        blocks=tuple(part.block for part in structures),
    )
    return split_inks(image) if inks == {True} else image


def _copies_within(
    data: Content, directory: Directory, page: Page
) -> tuple[tuple[Page, Directory], ...]:
    """Return page and tags of the smaller copies nested in a page."""
    copies = []
    if _palette(directory) is not None:
        return ()
    try:
        for own in directories_at(data, directory, SUB_IMAGES):
            copy = _page(own)
            tall, wide = own.integer(TILE_HEIGHT, 0), own.integer(TILE_WIDTH, 0)
            is_sound = TILES not in own.tags or _is_block(tall, wide, copy)
            if is_sound and min(copy.height, copy.width) > 0 and times_smaller(copy, page):
                copies.append((copy, own))
    except (InputError, TiffError):
        return ()
    return tuple(copies)


def _refuse_foreign(directories: tuple[Directory, ...]) -> None:
    """Raise InputError for TIFF-like files: raw files, volumes, and stacks in one directory."""
    slices = max(directory.integer(DEPTH, 1) for directory in directories)
    fault = ""
    if any(
        DNG_VERSION in directory.tags or directory.integer(MEANING, 1) in _RAW_MEANINGS
        for directory in directories
    ):
        fault = (
            "is a camera's raw file under the name of a TIFF; give it the suffix .dng, or that of "
            "the camera's files"
        )
    elif slices > 1:
        fault = (
            f"holds a volume of {slices} slices in one page; save it with a page for each slice "
            "first"
        )
    elif len(directories) == 1 and _is_of_imagej(directories[0].tags):
        described = directories[0].tags[DESCRIPTION].data
        images = re.search(rb"^images=(\d+)", described, re.MULTILINE)
        if images and int(images[1][:9]) > 1:
            fault = (
                "is an ImageJ stack that keeps its pages outside the TIFF structure; save it with "
                "a page for each image first"
            )
    if fault:
        raise InputError(f"{fault}.")


def _structure(directory: Directory, n_bytes: int) -> _Structure:
    """Return the checked location of a page's pixels."""
    page, integer, integers = _page(directory), directory.integer, directory.integers
    height, width, packing = page.height, page.width, integer(PACKING, PLAIN)
    if packing not in _RATIOS:
        raise InputError(
            f"its compression (TIFF scheme {packing}) is not read; save it with LZW, "
            "Deflate or no compression."
        )
    predictor = integer(PREDICTOR, 1)
    if packing not in _UNPREDICTED and predictor not in (1, 2, 3)[: 2 + (page.dtype.kind == "f")]:
        raise InputError(f"its predictor {predictor} is not read; save it without one.")
    if TILES in directory.tags:
        tall, wide = integer(TILE_HEIGHT, 0), integer(TILE_WIDTH, 0)
        places, sizes = integers(TILES), integers(TILE_BYTES)
    else:
        tall, wide = min(integer(STRIP_ROWS, height), height), width
        places, sizes = integers(STRIPS), integers(STRIP_BYTES)
    packed = min(sum(sizes), n_bytes)
    check_size((height, width), page.pixel_bytes, packed, _RATIOS[packing], MAX_IN_BANDS)
    samples = 1 if integer(PLANAR, 1) == 2 else page.channels
    expected = 0
    if _is_block(tall, wide, page):
        expected = -(-height // tall) * -(-width // wide) * (page.channels // samples)
    places, sizes = places[:expected], sizes[:expected]
    is_whole = 0 < expected == len(places) == len(sizes)
    if not is_whole or min(min(places), min(sizes)) < 0:  # a signed type may hold negatives
        raise InputError("its strips or tiles are damaged; fetch the file again.")
    if any(place + size > n_bytes for place, size in zip(places, sizes, strict=True)):
        raise InputError("its pixels are cut short; fetch the file again.")
    return _Structure(page, directory, packing, samples, (tall, wide), places, sizes)


def _is_block(tall: int, wide: int, page: Page) -> bool:
    """Return whether strips or tiles of this size are plausible for the page."""
    # Signed tags may hold two negative sides, whose product is positive.
    return min(tall, wide) > 0 and tall * wide <= 4 * page.height * page.width + (1 << 20)


def _page(directory: Directory) -> Page:
    """Return size and type of a page; the size is not checked."""
    samples, meaning = directory.integer(SAMPLES, 1), directory.integer(MEANING, 1)
    bits, formats = (set(directory.integers(tag, (1,))) for tag in (BITS, SAMPLE_FORMAT))
    kind, depth = min(formats), max(bits)
    code = _TYPES.get((kind, depth)) if len(bits) == len(formats) == 1 else None
    is_jpeg_colour = meaning == YCBCR and directory.integer(PACKING, PLAIN) == JPEG
    is_palette = code == "u1" and _palette(directory) is not None
    colours = 1 if meaning in (0, 1) or is_palette else 4 if meaning == INKS else 3
    may_have_alpha = colours == 3 or (colours == 1 and directory.integer(EXTRA, 0) in (1, 2))
    fault = ""
    if meaning == INKS and (kind != 1 or directory.integer(PACKING, PLAIN) == JPEG):
        fault = "CMYK inks as floats, with signs or in JPEG; save it in 8 or 16 bits with LZW first"
    elif meaning not in (0, 1, 2, INKS) and not is_jpeg_colour and not is_palette:
        what = _MEANINGS.get(meaning, f"pixels of photometric kind {meaning}")
        fault = f"{what}, not grey or RGB; save it as grey or RGB first"
    elif bits == {1}:
        fault = "1 bit a pixel, which leaves no grey to denoise; scan or save it as 8-bit grey"
    elif code is None:
        what = {1: "unsigned", 2: "signed", 3: "float"}.get(kind, "unknown")
        fault = f"{what} values of {depth} bits; save it as 16-bit integers or float32 first"
    elif samples not in (colours, colours + may_have_alpha):
        fault = (
            f"{samples} channels where {_COLOURS[colours]} has {colours}, and not as transparency; "
            "save each channel as a page or file of its own"
        )
    if fault:
        raise InputError(f"holds {fault}.")
    size = directory.integer(HEIGHT, 0), directory.integer(WIDTH, 0)
    return Page(*size, samples, np.dtype(code))


def _palette(directory: Directory) -> NDArray[np.uint8] | None:
    """Return the 256 palette colours of a page; None if it has no palette."""
    values = directory.integers(COLOUR_MAP)
    if directory.integer(MEANING, 1) != PALETTE or len(values) != 3 * 256:
        return None
    colours = np.array(values, np.uint16).reshape(3, 256).T
    # Palette values should have 16 bits, but some writers store 8 bits.
    return np.asarray(colours >> 8 if colours.max() > 255 else colours, np.uint8)


def _decoded(data: Content, structure: _Structure, rows: slice, columns: slice) -> NDArray[Any]:
    """Return decoded rows and columns of a page; refuse to decode all of a large page."""
    if rows == columns == slice(None):
        check_piece(structure.page)
    page, samples, (tall, wide) = structure.page, structure.samples, structure.block
    (top, bottom, _), (left, right, _) = rows.indices(page.height), columns.indices(page.width)
    whole = np.empty((bottom - top, right - left, page.channels), page.dtype)
    down, across = -(-page.height // tall), -(-page.width // wide)
    places = [
        *product(range(top // tall, -(-bottom // tall)), range(left // wide, -(-right // wide)))
    ]
    decoded = _image_block if structure.packing in _IMAGES else _block
    for channel in range(0, page.channels, samples):
        for i, j in places:
            number = (channel // samples * down + i) * across + j
            place, size = structure.places[number], structure.sizes[number]
            # The last strip is shorter; tiles are padded.
            n_rows = tall if TILES in structure.tags.tags else min(tall, page.height - i * tall)
            first, last = max(top, i * tall), min(bottom, (i + 1) * tall)
            begin, end = max(left, j * wide), min(right, (j + 1) * wide)
            above, below = first - i * tall, last - i * tall
            if structure.packing == PLAIN:
                # A strip may be the whole file: read only the rows needed.
                row_bytes = wide * samples * page.dtype.itemsize
                place += above * row_bytes
                size = min(size - above * row_bytes, (below - above) * row_bytes)
                n_rows, above, below = below - above, 0, below - above
            with damage_refused():
                values = decoded(data[place : place + max(0, size)], structure, n_rows)
                values = values.reshape(-1, wide, samples)
            target = whole[first - top : last - top, begin - left : end - left]
            part = values[above:below, begin - j * wide : end - j * wide]
            target[..., channel : channel + samples] = part
    if structure.tags.integer(MEANING, 1) == 0 and page.dtype.kind == "u":
        whole[..., :1] = invert_light(whole[..., :1])
    if structure.tags.integer(MEANING, 1) == INKS:
        whole = invert_light(whole)
    colours = _palette(structure.tags)
    if colours is not None:
        return np.asarray(colours[whole[..., 0]])
    return whole[..., 0] if page.channels == 1 else whole


def _block(packed: bytes, structure: _Structure, n_rows: int) -> NDArray[Any]:
    dtype, (tall, wide) = structure.page.dtype, structure.block
    row, raw = wide * structure.samples, packed
    if structure.tags.integer(FILL_ORDER, 1) == 2:
        raw = bytes(imagecodecs.bitorder_decode(raw))
    if structure.packing != PLAIN:
        raw = TIFF.DECOMPRESSORS[structure.packing](raw, out=tall * row * dtype.itemsize + _SLACK)
    predictor = structure.tags.integer(PREDICTOR, 1)
    predictor = 1 if structure.packing in _UNPREDICTED else predictor
    # The float predictor's output has no byte order.
    stored = dtype if predictor == 3 else dtype.newbyteorder(structure.tags.layout.order)
    values = np.frombuffer(raw, stored, n_rows * row).astype(dtype).reshape(n_rows, wide, -1)
    if predictor == 3:
        return np.asarray(imagecodecs.floatpred_decode(values, axis=1))
    if predictor == 2:
        return imagecodecs.delta_decode(values.view(f"u{dtype.itemsize}"), axis=1).view(dtype)
    return values


def _image_block(packed: bytes, structure: _Structure, n_rows: int) -> NDArray[Any]:
    """Return the values of a strip or tile in another image format, after checking its size."""
    kind, samples, tags = _IMAGES[structure.packing], structure.samples, structure.tags.tags
    height, width = stated_size(kind, packed)
    if not n_rows <= height <= structure.block[0] or width != structure.block[1]:
        raise ValueError(f"a block of {width} x {height} pixels")
    if kind == "jpeg":
        if JPEG_TABLES in tags:
            packed = tags[JPEG_TABLES].data[:-2] + packed[2:]
        # Decode only to detect damage, as decode_whole ignores the colours in the tags.
        decode_whole(packed, "GRAY")
        stored = {YCBCR: "YCBCR", 2: "RGB"}.get(structure.tags.integer(MEANING, 1))
        values = imagecodecs.jpeg8_decode(
            packed, colorspace=stored, outcolorspace="RGB" if stored else None
        )
    elif kind == "webp":
        values = imagecodecs.webp_decode(packed, hasalpha=samples == 4)
    else:
        values = TIFF.DECOMPRESSORS[structure.packing](packed)
    if values.dtype != structure.page.dtype or values.size != height * width * samples:
        raise ValueError("a block of another type")
    return np.asarray(values)


def _metadata(directory: Directory) -> Metadata:
    profile = directory.tags.get(ICC)
    tags = {number: tag for number, tag in directory.tags.items() if number in _VIEWING}
    exif = None
    if (tags or directory.children) and directory.layout in LAYOUTS[:2]:  # no BigTIFF
        exif = write_exif(Directory(directory.layout, tags, directory.children))
    orientation = directory.integer(ORIENTATION, 1)
    return Metadata.of(exif, profile.data if profile else None, orientation=orientation)


def write_tiff(file: IO[bytes], pages: Iterable[NDArray[Any] | Bands], like: ImageFile) -> None:
    """Write pages one after the other, with at most one in memory.

    Each page gets the tags of its directory; all have one layout. In `pages`, integer 0 is black.
    Tiles remain tiles, and strips strips. Uncompressed and losslessly compressed pages keep their
    compression; others are compressed with Deflate.
    """
    directories = like.directories or (_metadata_directory(like.metadata),)
    layout = directories[0].layout
    file.write(layout.header(0))
    link = len(layout.start)  # position of the offset of the next directory
    if like.inks:
        directories = tuple(own.with_integers(SHORT, {MEANING: [INKS]}) for own in directories)
    copies = like.within or ((),) * len(directories)
    written: Iterable[Directory] = (
        _write_page(file, pixels, own, within)
        for pixels, own, within in zip(join_inks(pages, like), directories, copies, strict=True)
    )
    if len(directories) > 1 and _is_of_imagej(directories[0].tags):
        # Write all pixels first: ImageJ expects the pixels of a stack to be contiguous.
        written = [*written]
    for directory in written:
        start = _write_directory(file, directory)
        file.seek(link)
        file.write(struct.pack(layout.place, start))
        n_tags = len(directory.tags) + len(directory.children) + len(directory.repeated)
        link = start + struct.calcsize(layout.number) + n_tags * struct.calcsize(layout.entry)


def _is_of_imagej(tags: Mapping[int, Tag]) -> bool:
    return DESCRIPTION in tags and tags[DESCRIPTION].data.startswith(b"ImageJ")


def _write_page(
    file: IO[bytes],
    pixels: NDArray[Any] | Bands,
    like: Directory,
    within: tuple[tuple[Page, Directory], ...],
) -> Directory:
    """Write the pixels of a page and its nested copies; return its directory."""
    directory = _write_pixels(file, pixels, like)
    places: list[int] = []
    for page, tags in within:
        small: NDArray[Any] | Bands
        if isinstance(pixels, Bands):
            small = pixels.copies[len(places)]
        else:
            whole = replace(page, height=pixels.shape[0], width=pixels.shape[1])
            small = smaller_copy(pixels, page, times_smaller(page, whole))
        places.append(_write_directory(file, _write_pixels(file, small, tags)))
    if not places:
        return directory
    number = LONG if like.layout in LAYOUTS[:2] else LONG8
    return directory.with_integers(number, {SUB_IMAGES: places})


def _write_directory(file: IO[bytes], directory: Directory) -> int:
    """Write a directory without a successor and return its offset."""
    block, start = pack_tags(directory, _append(file, b"", directory))
    _append(file, block, directory)
    return start


def _write_pixels(file: IO[bytes], pixels: NDArray[Any] | Bands, like: Directory) -> Directory:
    (height, width), dtype = pixels.shape[:2], pixels.dtype
    channels = pixels.shape[2] if len(pixels.shape) == 3 else 1
    kind, meaning = dtype.kind, like.integer(MEANING, YCBCR)
    packing = like.integer(PACKING, PLAIN)
    packing = packing if packing in _KEPT_SCHEMES else ZIP
    planar = channels > 1 and like.integer(PLANAR, 1) == 2
    predicted = packing not in _UNPREDICTED and kind != "f"
    tiled = TILES in like.tags
    rows, wide = max(1, _STRIP // max(1, width * channels * dtype.itemsize)), width
    if tiled:
        rows, wide = like.integer(TILE_HEIGHT, rows), like.integer(TILE_WIDTH, wide)
    elif isinstance(pixels, Bands):
        rows = gcd(pixels.rows, 1 << (rows.bit_length() - 1))
    if planar and isinstance(pixels, Bands):
        raise InputError(
            "is too large to be written with a plane for each channel; save it with "
            "channels side by side first."
        )
    places, sizes = [], []
    for band in pixels.each if isinstance(pixels, Bands) else [pixels]:
        values = band.reshape(*band.shape[:2], -1)
        if meaning == 0 and kind == "u":
            values = values.copy()
            values[..., :1] = invert_light(values[..., :1])
        elif meaning == INKS:
            values = invert_light(values)
        for plane in np.split(values, channels, axis=2) if planar else [values]:
            for top, left in product(range(0, len(band), rows), range(0, width, wide)):
                block = np.ascontiguousarray(plane[top : top + rows, left : left + wide])
                if tiled:  # all tiles have one size: pad the last ones
                    beyond = (0, rows - block.shape[0]), (0, wide - block.shape[1]), (0, 0)
                    block = np.pad(block, beyond, mode="edge")
                if predicted:
                    block = imagecodecs.delta_encode(block.view(f"u{block.itemsize}"), axis=1)
                raw = block.astype(block.dtype.newbyteorder(like.layout.order)).tobytes()
                packed = _packed(raw, packing, wide * block.shape[2] * block.itemsize)
                places.append(_append(file, packed, like, even=packing != PLAIN))
                sizes.append(len(packed))
    shorts = {
        BITS: [8 * dtype.itemsize] * channels,
        PACKING: [packing],
        SAMPLES: [channels],
        SAMPLE_FORMAT: [_FORMATS[kind]] * channels,
        PLANAR: [2 if planar else 1],
        MEANING: [meaning if meaning not in (YCBCR, PALETTE) else 2 if channels >= 3 else 1],
    }
    if predicted:
        shorts[PREDICTOR] = [2]
    if channels in (2, 4) and meaning != INKS and EXTRA not in like.tags:
        shorts[EXTRA] = [2]
    tags = {number: tag for number, tag in like.tags.items() if number not in _DROPPED}
    directory = replace(like, tags=tags).with_integers(SHORT, shorts)
    longs, where = {WIDTH: [width], HEIGHT: [height], STRIP_ROWS: [rows]}, (STRIPS, STRIP_BYTES)
    if tiled:
        longs, where = {WIDTH: [width], HEIGHT: [height]}, (TILES, TILE_BYTES)
        longs |= {TILE_WIDTH: [wide], TILE_HEIGHT: [rows]}
    number = LONG if like.layout in LAYOUTS[:2] else LONG8
    return directory.with_integers(LONG, longs).with_integers(
        number, dict(zip(where, (places, sizes), strict=True))
    )


def _packed(raw: bytes, packing: int, row_bytes: int) -> bytes:
    if packing == PLAIN:
        return raw
    if packing == ZIP:
        return bytes(imagecodecs.deflate_encode(raw, level=6))
    if packing == PACKBITS:  # row by row
        rows = (raw[start : start + row_bytes] for start in range(0, len(raw), row_bytes))
        return b"".join(bytes(imagecodecs.packbits_encode(row)) for row in rows)
    return bytes(TIFF.COMPRESSORS[packing](raw))


def _append(file: IO[bytes], block: bytes, like: Directory, *, even: bool = True) -> int:
    """Append a block to the file, at an even offset if `even`, and return the offset."""
    place = file.seek(0, 2)
    if even and place % 2:
        place += file.write(b"\0")
    if like.layout in LAYOUTS[:2] and place + len(block) > _LIMIT:
        raise InputError(
            "its pages take more than the 4 GB of a TIFF file; split it, or save it as BigTIFF."
        )
    file.write(block)
    return place


def _metadata_directory(metadata: Metadata) -> Directory:
    """Return tags for metadata from another format, in the byte order of the EXIF block."""
    base = first_directory(metadata.exif) or Directory(LAYOUTS[0], {})
    tags = {number: tag for number, tag in base.tags.items() if number not in _DROPPED}
    # Drop tags of the other file's pixels, and tags that would mark this file as raw or a stack.
    for number in (MEANING, EXTRA, DNG_VERSION):
        tags.pop(number, None)
    if _is_of_imagej(tags):
        del tags[DESCRIPTION]
    if metadata.icc is not None:
        tags[ICC] = Tag(BYTES, len(metadata.icc), metadata.icc)
    shorts = {PACKING: [ZIP]}
    if metadata.density is not None and not tags.keys() & {X_DENSITY, Y_DENSITY}:
        for number, value in zip((X_DENSITY, Y_DENSITY), metadata.density, strict=True):
            ratio = struct.pack(f"{base.layout.order}II", min(round(100 * value), 2**32 - 1), 100)
            tags[number] = Tag(RATIO, 1, ratio)
        shorts[DENSITY_UNIT] = [INCH]
    return Directory(base.layout, tags, base.children).with_integers(SHORT, shorts)


FORMAT = Format(rb"II[*+]\0|MM\0[*+]", (".tif", ".tiff"), read_tiff, write_tiff)
