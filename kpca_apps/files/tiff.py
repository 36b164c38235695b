"""TIFF files of 8 and 16 bits and floats, page by page, with their tags.

Read and written here: tags come through as they stand, whoever invented them.

References
----------
TIFF Revision 6.0 (Adobe, 1992); Adobe PageMaker 6.0 Technical Notes (1995) on extra samples.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.images_limits import check_size
from kpca_apps.files.images_types import ImageFile, Metadata, Page
from kpca_apps.files.limits import require_memory
from kpca_apps.files.tiff_packing import (
    OLD_ZIP,
    PLAIN,
    RATIOS,
    UNPREDICTED,
    ZIP,
    undo_predictor,
    unpack,
)
from kpca_apps.files.tiff_tags import (
    ORIENTATION,
    Directory,
    Layout,
    TiffError,
    read_directories,
    write_exif,
)

__all__ = ["Structure", "read_tiff"]

WIDTH, HEIGHT, BITS, PACKING, MEANING = 256, 257, 258, 259, 262
FILL_ORDER, STRIPS, SAMPLES, STRIP_ROWS, STRIP_BYTES, PLANAR = 266, 273, 277, 278, 279, 284
PREDICTOR, TILE_WIDTH, TILE_HEIGHT, TILES, TILE_BYTES = 317, 322, 323, 324, 325
EXTRA, FORMAT, ICC, DNG_VERSION, DESCRIPTION = 338, 339, 34675, 50706, 270
SUB_IMAGES, DEPTH = 330, 32997
_RAW_MEANINGS = frozenset({32803, 34892})
_MEANINGS = {3: "a palette of colours", 4: "a mask", 5: "CMYK inks", 6: "YCbCr", 8: "CIELab"}
# Tags that belong in an EXIF block made from a TIFF page: what the picture shows, and how.
_DESCRIBING = frozenset({270, 271, 272, ORIENTATION, 282, 283, 296, 305, 306, 315, 33432})
_TYPES = {(1, 8): "u1", (1, 16): "u2", (3, 32): "f4", (3, 64): "f8"}


@dataclass(frozen=True)
class Structure:
    """How the pixels of a page lie in the file.

    Attributes
    ----------
    page : Page
    dtype : numpy.dtype
        In the file's byte order.
    packing, predictor : int
    planar : bool
        Whether channels lie one after the other.
    block : tuple of int
        Height and width of a strip or tile.
    places, sizes : tuple of int
        Where the blocks stand, and their packed bytes.
    tiled : bool
    negative : bool
        Whether 0 is white.
    """

    page: Page
    dtype: np.dtype[Any]
    packing: int
    predictor: int
    planar: bool
    block: tuple[int, int]
    places: tuple[int, ...]
    sizes: tuple[int, ...]
    tiled: bool
    negative: bool

    @property
    def decoded(self) -> int:
        """Bytes of the pixels, decoded."""
        page = self.page
        return page.height * page.width * page.channels * page.dtype.itemsize


def read_tiff(data: bytes, label: str) -> ImageFile:
    """Read a TIFF file, or a BigTIFF one.

    Parameters
    ----------
    data : bytes
        The whole file. Uncompressed, LZW, Deflate, PackBits or LZMA; strips or tiles.
    label : str
        For messages.

    Returns
    -------
    ImageFile
        Pages are decoded when asked for. Integers that count from white come out from black.

    Raises
    ------
    InputError
        If the file is damaged, cut short or too large, a camera's RAW file, or has pixels other
        than grey or RGB (with or without alpha) of type uint8, uint16, float32 or float64.
    """
    try:
        directories = tuple(read_directories(data))
        if not directories:
            raise TiffError("it has no pages")
    except TiffError as damage:
        raise InputError(f"{label}: {damage}; it is damaged, fetch the file again.") from None
    _refuse_foreign(directories, label)
    several = len(directories) > 1
    structures = tuple(
        _structure(directory, len(data), f"{label}, page {number}" if several else label)
        for number, directory in enumerate(directories, 1)
    )
    _check_all(structures, len(data), label)

    def decode(number: int) -> NDArray[Any]:
        where = f"{label}, page {number + 1}" if several else label
        return _decode(data, structures[number], where)

    return ImageFile(
        label=label,
        format="tiff",
        pages=tuple(structure.page for structure in structures),
        metadata=_metadata(directories[0]),
        decode=decode,
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


def _check_all(structures: tuple[Structure, ...], n_bytes: int, label: str) -> None:
    """Refuse pages that only together hold more than the file can, as they share their pixels."""
    if sum(one.decoded / RATIOS[one.packing] for one in structures) > n_bytes + 4096:
        raise InputError(
            f"{label}: its {len(structures)} pages promise more pixels than its {n_bytes} bytes "
            "can hold; it is damaged, fetch the file again."
        )
    require_memory(label, max(one.decoded for one in structures))


def _structure(directory: Directory, n_bytes: int, label: str) -> Structure:
    """Check what a page says of its pixels."""
    height, width = directory.integer(HEIGHT, 0), directory.integer(WIDTH, 0)
    page, planar = _page(directory, height, width, label)
    packing = directory.integer(PACKING, PLAIN)
    predictor = 1 if packing in UNPREDICTED else directory.integer(PREDICTOR, 1)
    if packing not in RATIOS or directory.integer(FILL_ORDER, 1) != 1:
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
    check_size(label, height, width, pixel_bytes, min(sum(sizes), n_bytes), RATIOS[packing])
    _check_blocks(label, page, planar, block, places, sizes, n_bytes, tiled)
    dtype = page.dtype.newbyteorder(directory.layout.order)
    negative = directory.integer(MEANING, 1) == 0 and page.dtype.kind == "u"
    return Structure(page, dtype, packing, predictor, planar, block, places, sizes, tiled, negative)


def _page(directory: Directory, height: int, width: int, label: str) -> tuple[Page, bool]:
    """Return size and type of a page, and whether its channels lie one after the other."""
    samples = directory.integer(SAMPLES, 1)
    bits = set(directory.integers(BITS, (1,)))
    formats = set(directory.integers(FORMAT, (1,)))
    kind, depth = min(formats), max(bits)
    meaning = directory.integer(MEANING, 1)
    if meaning in _MEANINGS or meaning not in (0, 1, 2):
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
    colours = 3 if meaning == 2 else 1
    declared = directory.integers(EXTRA)
    has_alpha = samples == colours + 1 and (declared[:1] in ((1,), (2,)) or colours == 3)
    if samples != colours and not has_alpha:
        raise InputError(
            f"{label}: holds {samples} channels where {'RGB' if colours == 3 else 'grey'} has "
            f"{colours}, and not as transparency; save each channel as a page or file of its own."
        )
    page = Page(height, width, samples, np.dtype(code))
    return page, samples > 1 and directory.integer(PLANAR, 1) == 2


def _check_blocks(
    label: str,
    page: Page,
    planar: bool,
    block: tuple[int, int],
    places: tuple[int, ...],
    sizes: tuple[int, ...],
    n_bytes: int,
    tiled: bool,
) -> None:
    tall, wide = block
    if tall < 1 or wide < 1 or tall * wide > 4 * page.height * page.width + (1 << 20):
        raise InputError(f"{label}: its strips or tiles are damaged; fetch the file again.")
    down, across = -(-page.height // tall), -(-page.width // wide)
    expected = down * across * (page.channels if planar else 1)
    if len(places) < expected or len(sizes) < expected:
        raise InputError(f"{label}: its strips or tiles are damaged; fetch the file again.")
    if any(
        place + size > n_bytes
        for place, size in zip(places[:expected], sizes[:expected], strict=True)
    ):
        raise InputError(f"{label}: its pixels are cut short; fetch the file again.")


def _decode(data: bytes, structure: Structure, label: str) -> NDArray[Any]:
    page, (tall, wide) = structure.page, structure.block
    samples = 1 if structure.planar else page.channels
    whole = np.empty((page.height, page.width, page.channels), page.dtype)
    blocks = zip(structure.places, structure.sizes, strict=False)
    for channel in range(page.channels // samples):
        channels = slice(channel, channel + 1) if structure.planar else slice(None)
        for top in range(0, page.height, tall):
            # The last strip is cut; tiles are whole and padded.
            n_rows = tall if structure.tiled else min(tall, page.height - top)
            for left in range(0, page.width, wide):
                place, size = next(blocks)
                row_bytes = wide * samples * page.dtype.itemsize
                try:
                    raw = unpack(data[place : place + size], structure.packing, n_rows * row_bytes)
                except TiffError as damage:
                    raise InputError(f"{label}: {damage}; fetch the file again.") from None
                rows = np.frombuffer(raw, np.uint8).reshape(n_rows, row_bytes)
                values = undo_predictor(rows, structure.predictor, structure.dtype, samples)
                target = whole[top : top + tall, left : left + wide, channels]
                target[...] = values[: target.shape[0], : target.shape[1]]
    if structure.negative:
        invert(whole[..., :1])
    return whole[..., 0] if page.channels == 1 else whole


def invert(values: NDArray[Any]) -> None:
    """Turn integers that count from white into such that count from black, or back, in place."""
    np.subtract(np.iinfo(values.dtype).max, values, out=values)


def _metadata(directory: Directory) -> Metadata:
    profile = directory.tags.get(ICC)
    orientation = directory.integer(ORIENTATION, 1)
    tags = {number: tag for number, tag in directory.tags.items() if number in _DESCRIBING}
    exif = None
    if (tags or directory.children) and not directory.layout.big:
        exif = write_exif(Directory(Layout(directory.layout.order), tags, directory.children))
    return Metadata(
        exif=exif,
        icc=(profile.data or None) if profile else None,
        orientation=orientation if 1 <= orientation <= 8 else 1,
    )


def _notes(
    directories: tuple[Directory, ...], structures: tuple[Structure, ...]
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
