"""FITS images of telescopes, through astropy (extra "lab").

Headers and tables are copied byte for byte. FITS Working Group (2016), "Definition of the Flexible
Image Transport System", version 4.0.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from kpca_apps.errors import InputError, require_library
from kpca_apps.images.laboratory.in_place import Plane, Scaling, find_planes, write_in_place
from kpca_apps.images.laboratory.ome import MOST_PAGES, Series, make_image
from kpca_apps.images.large import Content, openable
from kpca_apps.images.types import Format, ImageFile, Metadata, damage_refused, rewrite
from kpca_apps.names import one_line

_CARD, _BLOCK = 80, 2880
_TYPES = {8: "u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}
# First words of the names of extensions that accompany a picture, such as VAR_POISSON.
_BESIDE = frozenset(
    "DQ MASK BPM BADPIX OBJMASK FLG FLAG FLAGS ERR ERROR UNCERT RMS VAR VARIANCE IVAR INVVAR WHT "
    "WEIGHT CON CTX SAMP TIME AREA".split()
)
_DROPPED = ("CHECKSUM", "DATASUM", "DATAMIN", "DATAMAX")  # cards that are wrong after denoising
_SPECTRAL = tuple("FREQ WAVE WAVN AWAV ENER VRAD VOPT ZOPT BETA VELO STOKES".split())
_UPSIDE_DOWN = 4  # EXIF orientation if the first row is at the bottom


def read_fits(data: Content) -> ImageFile:
    """Read the images of a FITS file as pages, rescaled; NaN and BLANK integers are missing."""
    require_library("astropy", "lab", "FITS files")
    from astropy.io import fits

    planes: list[Plane] = []
    series: list[Series] = []
    patches: list[tuple[int, bytes]] = []
    unchanged: list[str] = []
    packed, end = False, 0
    with damage_refused():
        where: Any = openable(data)
        # Read pixels as stored, neither rescaled nor decompressed.
        options = {"do_not_scale_image_data": True, "disable_image_compression": True}
        with fits.open(where, mode="readonly", **options) as file:
            for hdu in file:
                header, place = hdu.header, hdu.fileinfo()
                # Negative sizes would lead back to earlier headers, in an endless loop.
                if place["hdrLoc"] < end:
                    raise ValueError("images that lie over one another")
                end = place["datLoc"]
                packed |= bool(header.get("ZIMAGE", False))
                sides = [int(header[f"NAXIS{n}"]) for n in range(1, int(header["NAXIS"]) + 1)]
                if not isinstance(hdu, (fits.PrimaryHDU, fits.ImageHDU)) or len(sides) < 2:
                    continue
                name = one_line(str(header.get("EXTNAME", "")).strip().upper(), 20)
                if name.split("_")[0] in _BESIDE:
                    unchanged.append(name)
                    continue
                own_planes = _planes(data, header, sides[::-1], place["datLoc"])
                planes += own_planes
                end = own_planes[-1].place + own_planes[-1].n_bytes
                if len(planes) > MOST_PAGES:
                    raise InputError(f"has more than {MOST_PAGES:,} pages; split it.")
                series.append(_series(header, sides[::-1], own_planes[0]))
                patches += _false_cards(data, place["hdrLoc"], place["datLoc"])
    if not planes:
        how = "is packed (fpack); unpack it by funpack first" if packed else "holds no image"
        raise InputError(f"{how}.")
    notes = []
    if len(data) % _BLOCK:
        notes.append("It does not end as FITS files do, and may be cut short or damaged.")
    if patches:
        notes.append("Its checksums and extremes, those of the noisy pixels, are not kept.")
    if unchanged:
        notes.append(f"Kept as they are: its extensions {', '.join(dict.fromkeys(unchanged))}.")
    return make_image(
        "fits",
        series,
        lambda number: planes[number].read(data),
        orientation=_UPSIDE_DOWN,
        # Do not group the pages of a single cube: few headers state whether they are a stack.
        has_groups=len(series) > 1,
        metadata=Metadata(orientation=_UPSIDE_DOWN),
        notes=tuple(notes),
        rewrite=partial(write_in_place, content=data, planes=planes, patches=patches),
    )


def _planes(data: Content, header: Any, shape: list[int], place: int) -> list[Plane]:
    stored = np.dtype(_TYPES.get(int(header["BITPIX"]), "V1"))
    # Text means damage: adding 0.0 raises TypeError, whereas `float` would parse the text.
    slope, offset = header.get("BSCALE", 1) + 0.0, header.get("BZERO", 0) + 0.0
    if slope == 0 or not math.isfinite(slope) or not math.isfinite(offset):
        raise InputError("its BSCALE or BZERO is damaged; fetch the file again.")
    blank = header.get("BLANK") if stored.kind in "ui" else None
    if blank is not None:
        limits = np.iinfo(stored)
        # A BLANK outside the range of the type matches no pixel.
        blank = int(blank) if limits.min <= blank <= limits.max else None
    return find_planes(data, place, shape, stored, scaling=Scaling(slope, offset, blank))


def _series(header: Any, shape: list[int], first: Plane) -> Series:
    """Return an image as a series, with the axes of its pages."""
    free, axes, sizes = ["Z", "T", "C"], "", list[int]()
    long = [(number, side) for number, side in enumerate(shape[:-2]) if side > 1]
    if len(long) > len(free):
        return Series("Z", (math.prod(shape[:-2]),), first.page)
    for number, side in reversed(long):
        kind = str(header.get(f"CTYPE{len(shape) - number}", "")).upper()
        wanted = "C" if kind.startswith(_SPECTRAL) else "T" if kind.startswith("TIME") else "Z"
        axis = wanted if wanted in free else free[0]
        free.remove(axis)
        axes, sizes = axis + axes, [side, *sizes]
    return Series(axes, tuple(sizes), first.page)


def _false_cards(data: Content, begin: int, end: int) -> list[tuple[int, bytes]]:
    """Return blank cards to overwrite header cards that are wrong for denoised pixels."""
    cards = data[begin:end]
    return [
        (begin + at, b" " * _CARD)
        for at in range(0, len(cards), _CARD)
        if cards[at : at + 8].decode("latin-1").rstrip() in _DROPPED
    ]


FORMAT = Format(rb"SIMPLE  =", (".fits", ".fit", ".fts"), read_fits, rewrite)
