"""Write mosaics as digital negatives (DNG) with the raw file's levels, colours and metadata.

Adobe, Digital Negative Specification 1.7 (2023), chapters 4 and 6.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import IO

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.images.large import Content
from kpca_apps.images.tags import (
    DNG_VERSION,
    LAYOUTS,
    MAKE,
    MODEL,
    ORIENTATION,
    Directory,
    Tag,
    TiffError,
    directories_at,
    first_directory,
)
from kpca_apps.images.tiff import LONG, MEANING, RATIO, SHORT, SUB_IMAGES, write_tiff
from kpca_apps.images.types import ImageFile, Mosaic, Page

CFA = 32803  # photometric interpretation of mosaics
BYTE, ASCII, SIGNED_RATIO = 1, 2, 10  # TIFF data types
PATTERN_SIZE, PATTERN = 33421, 33422
OLDEST_READER, UNIQUE_MODEL, PLANE_COLOURS, LAYOUT = 50707, 50708, 50710, 50711
BLACK_SIZE, BLACK, WHITE, MATRIX, NEUTRAL, ILLUMINANT = 50713, 50714, 50717, 50721, 50728, 50778
NOISE_REDUCTION, DAYLIGHT = 50935, 21
# DNG tags that still hold for a denoised mosaic: camera colours, lens, exposure and film frame.
_OF_CAMERA = frozenset({
    UNIQUE_MODEL, 50709, *range(MATRIX, 50731), 50732, 50734, 50735, 50736, 50739, ILLUMINANT,
    50779, *range(50931, 50935), *range(50936, 50943), 50964, 50965, *range(50979, 50983), 51043,
    51044, 51058, 51081, 51105, 51107, 51108, 51109, 51110,
})  # fmt: skip
# Tags of the mosaic's directory that hold after denoising: crop, scale, lens corrections.
_OF_MOSAIC = frozenset({50718, 50719, 50720, 50733, 50737, 50738, 50780, 51009, 51022, 51125})
_MOST_OF_MATRIX = 1000.0  # larger entries, stored in millionths, do not fit into 32 bits
# TIFF orientation by LibRaw's `flip`.
_ORIENTATIONS = {0: 1, 3: 3, 5: 8, 6: 6}


def negative_tags(
    data: Content,
    describing: Directory | None,
    flip: int,
    xyz_to_camera: NDArray[np.floating],
    white_balance: Sequence[float],
) -> Directory:
    """Return the DNG tags for developing a mosaic, with the metadata of its file.

    A DNG keeps its own tags. For other files, LibRaw gives the matrix from XYZ to the camera's
    colours and the white balance (red, green, blue). `describing` is the metadata to keep.
    """
    base = describing or Directory(LAYOUTS[0], {})
    tags = {**base.tags, **_own_tags(data)}
    directory = Directory(base.layout, tags, base.children)
    if UNIQUE_MODEL not in tags:
        names = [tags[tag].data.strip(b"\0 ") for tag in (MAKE, MODEL) if tag in tags]
        model = (b" ".join(names) or b"unknown camera") + b"\0"
        tags[UNIQUE_MODEL] = Tag(ASCII, len(model), model)
    if MATRIX not in tags:
        is_known = (np.abs(xyz_to_camera) < _MOST_OF_MATRIX).all()
        matrix = xyz_to_camera[:3] if is_known else np.zeros((3, 3))
        tags[MATRIX] = _ratios(SIGNED_RATIO, matrix.ravel(), base)
        directory = directory.with_integers(SHORT, {ILLUMINANT: [DAYLIGHT]})
        tags = dict(directory.tags)
        if white_balance[0] > 0 and white_balance[2] > 0 and np.isfinite(white_balance[:3]).all():
            red, green, blue = (float(factor) or 1.0 for factor in white_balance[:3])
            neutral = np.array([green / red, 1.0, green / blue])
            tags[NEUTRAL] = _ratios(RATIO, neutral / neutral.max(), base)
    tags[NOISE_REDUCTION] = _ratios(RATIO, np.ones(1), base)
    # Version 1.4 defines all these tags; readers of 1.3 can ignore tags unknown to them.
    for number, version in ((DNG_VERSION, (1, 4, 0, 0)), (OLDEST_READER, (1, 3, 0, 0))):
        tags[number] = Tag(BYTE, 4, bytes(version))
    turned = _ORIENTATIONS.get(flip, 1)
    directory = Directory(directory.layout, tags, directory.children)
    return directory.with_integers(SHORT, {ORIENTATION: [turned], MEANING: [CFA]})


def _own_tags(data: Content) -> dict[int, Tag]:
    """Return the tags of a DNG that hold for a denoised mosaic; empty for other files."""
    first = first_directory(data)
    if first is None or DNG_VERSION not in first.tags:
        return {}
    try:
        below = directories_at(data, first, SUB_IMAGES)
    except TiffError:
        below = []
    own = {number: tag for number, tag in first.tags.items() if number in _OF_CAMERA}
    if MATRIX in own and (own[MATRIX].kind, own[MATRIX].count % 3) != (SIGNED_RATIO, 0):
        del own[MATRIX]
    for directory in (first, *below):
        if directory.integer(MEANING, 1) == CFA:
            own |= {number: tag for number, tag in directory.tags.items() if number in _OF_MOSAIC}
    return own


def _ratios(kind: int, values: NDArray[np.floating], like: Directory) -> Tag:
    whole = [part for value in values for part in (round(float(value) * 1_000_000), 1_000_000)]
    code = "i" if kind == SIGNED_RATIO else "I"
    return Tag(kind, len(values), struct.pack(f"{like.layout.order}{len(whole)}{code}", *whole))


def write_dng(file: IO[bytes], light: NDArray[np.float32], mosaic: Mosaic, like: ImageFile) -> None:
    """Write a mosaic (h, w) as a DNG with the tags of its source.

    LibRaw develops the result exactly like the mosaic. Raises InputError if the camera's colours
    are unknown.
    """
    negative, side = mosaic.negative, int(len(mosaic.pattern) ** 0.5)
    matrix = negative.tags.tags[MATRIX]
    if not any(np.frombuffer(matrix.data, "u4")[::2]):
        raise InputError(
            "the colours of its camera are not known, so that no DNG can be made of it; leave out "
            "--raw-out.",
            like.label,
        )
    shorts = {
        PATTERN_SIZE: [side, side],
        LAYOUT: [1],
        BLACK_SIZE: [side, side],
        BLACK: negative.black.ravel().astype(int).tolist(),
        WHITE: [negative.white],
    }
    letters = bytes("RGB".index(letter) for letter in mosaic.pattern)
    tags = {
        **negative.tags.tags,
        PATTERN: Tag(BYTE, len(letters), letters),
        PLANE_COLOURS: Tag(BYTE, 3, bytes(range(3))),
    }
    directory = Directory(negative.tags.layout, tags, negative.tags.children)
    directory = directory.with_integers(LONG, {254: [0]}).with_integers(SHORT, shorts)
    height, width = light.shape
    page = Page(height, width, 1, np.dtype("u2"))
    written = ImageFile("dng", (page,), like.page, label=like.label, directories=(directory,))
    write_tiff(file, [negative.counts(light)], written)
