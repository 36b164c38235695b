"""Raw files of cameras: the sensor's mosaic, and the picture that LibRaw develops from it.

LibRaw (rawpy, extra "raw") reads the pixels. Metadata to keep, and a noise profile if the maker
provides one, come from TIFF tags (Adobe, Digital Negative Specification 1.7, 2023: NoiseProfile).
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import ImageCms

from kpca_apps.errors import InputError, require_library
from kpca_apps.images.dng import negative_tags
from kpca_apps.images.large import Content, openable
from kpca_apps.images.tags import (
    DESCRIBING,
    DNG_VERSION,
    EXIF,
    MAKE,
    Directory,
    directories_at,
    first_directory,
    read_directories,
    write_exif,
)
from kpca_apps.images.tiff import DOUBLE, SUB_IMAGES, write_tiff
from kpca_apps.images.types import (
    DEFLATE_RATIO,
    Format,
    ImageFile,
    Metadata,
    Mosaic,
    Negative,
    Page,
    check_size,
    damage_refused,
)

if TYPE_CHECKING:
    import rawpy


_STDERR = threading.Lock()
NOISE_PROFILE = 51041
# EXIF tags that hold only for the raw file: maker notes, colour space, size.
_DROPPED = frozenset({37500, 40961, 40962, 40963})
# The largest value is the white level if at least _PIXELS pixels have it and it exceeds _SATURATED
# times the stated white level.
_SATURATED, _PIXELS = 0.75, 10
_XTRANS_SIDE = 512  # LibRaw develops no smaller X-Trans image


def _read_raw(data: Content) -> ImageFile:
    """Read a raw file with a Bayer or X-Trans mosaic.

    The page is the picture that LibRaw develops: upright, 16-bit sRGB, with the camera's white
    balance and without brightening.
    """
    require_library("rawpy", "raw", "raw files of cameras")
    with _opened(data) as raw:
        sizes = raw.sizes
        refusal = _explain_refusal(raw, is_plain=_is_plain_tiff(data))
        # LibRaw sets missing white-balance factors to 0, that of green to 1.
        balanced = raw.camera_whitebalance[0] > 0 and raw.camera_whitebalance[2] > 0
    if refusal:
        raise InputError(f"{refusal}.")
    size = (sizes.height, sizes.width)
    height, width = size[::-1] if sizes.flip & 4 else size
    exif = None if (described := _described(data)) is None else write_exif(described)
    notes = ["Denoised as the sensor saw it, then developed by LibRaw: sRGB, upright, as exposed."]
    if not balanced:
        notes.append("It holds no white balance: that of daylight was taken.")
    if exif is None:
        notes.append("Date, camera and other metadata are not kept of this kind of raw file.")
    return ImageFile(
        format="raw",
        pages=(Page(height, width, 3, np.dtype("u2")),),
        metadata=Metadata(exif=exif, icc=_srgb()),
        page=lambda _: _read_mosaic(data).developed(None),
        notes=tuple(notes),
        mosaic=partial(_read_mosaic, data),
    )


@contextmanager
def _opened(data: Content) -> Iterator[rawpy.RawPy]:
    """Open a raw file with LibRaw and unpack its pixels; raise InputError for damage."""
    import rawpy

    with damage_refused():
        try:
            with _without_stderr():
                raw = rawpy.imread(openable(data))
            with raw:
                promised = raw.sizes.raw_height, raw.sizes.raw_width
                check_size(promised, 2, len(data), DEFLATE_RATIO)
                with _without_stderr():
                    raw.unpack()
                yield raw
        except rawpy.LibRawFileUnsupportedError:
            version = ".".join(map(str, rawpy.libraw_version))
            raise InputError(
                f"is not a raw file that LibRaw {version} reads; convert it to DNG or "
                "develop it to a 16-bit TIFF first."
            ) from None
        except rawpy.LibRawError as error:
            reason = error.args[0] if error.args else type(error).__name__
            raise ValueError(reason.decode() if isinstance(reason, bytes) else reason) from None


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Suppress LibRaw's output on the stderr descriptor, which bypasses Python's streams."""
    # All threads share the descriptor, so only one thread at a time may replace it.
    with _STDERR:
        saved = os.dup(2)
        try:
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def _is_plain_tiff(data: Content) -> bool:
    """Return whether a file is an ordinary TIFF, which LibRaw may read as a mosaic."""
    if data[:4] not in (b"II*\0", b"MM\0*"):
        return False
    with suppress(Exception):
        return not any({DNG_VERSION, MAKE} & one.tags.keys() for one in _directories(data))
    return False


def _directories(data: Content) -> Iterator[Directory]:
    """Yield the directories of all pictures of a TIFF-like file, including nested pictures."""
    for top in read_directories(data):
        yield from (top, *directories_at(data, top, SUB_IMAGES))


def _explain_refusal(raw: rawpy.RawPy, *, is_plain: bool) -> str:
    """Return why a raw file cannot be read as a Bayer or X-Trans mosaic; empty if it can."""
    import rawpy

    advice = "develop it to a 16-bit TIFF and denoise that"
    if raw.raw_type != rawpy.RawType.Flat or raw.raw_image is None:
        return f"holds colours already computed (linear DNG, sRAW, sNEF), no mosaic; {advice}"
    pattern = raw.raw_pattern
    if is_plain:
        return "is a TIFF that no camera made, whatever its name; give it the suffix .tif"
    if raw.num_colors == 1 or pattern is None:
        return f"was made by a sensor without colours; {advice} with --noise poisson"
    colours, counts = raw.raw_colors_visible[: len(pattern), : len(pattern)].ravel(), [1, 2, 1]
    if pattern.shape == (6, 6):
        counts = [8, 20, 8]
        if min(raw.sizes.height, raw.sizes.width) < _XTRANS_SIDE:
            return f"is of X-Trans and below {_XTRANS_SIDE} pixels a side, too small to develop"
    elif pattern.shape != (2, 2):
        return f"has a sensor with another mosaic than Bayer's or X-Trans; {advice}"
    letters = [raw.color_desc.decode()[colour] for colour in colours]
    if raw.color_desc != b"RGBG" or [letters.count(letter) for letter in "RGB"] != counts:
        return f"has a sensor of other colours than red, green and blue; {advice}"
    if raw.sizes.pixel_aspect != 1:
        return f"has pixels that are not square; {advice}"
    return ""


def _read_mosaic(data: Content) -> Mosaic:
    with _opened(data) as raw:
        pattern: Any = raw.raw_pattern  # not None, as `_explain_refusal` has checked
        n = len(pattern)
        values, colours = raw.raw_image_visible.copy(), raw.raw_colors_visible[:n, :n]
        black = np.array(raw.black_level_per_channel)[colours]
        white, desc = int(raw.white_level), raw.color_desc.decode()
        flip, matrix = raw.sizes.flip, np.array(raw.rgb_xyz_matrix)
        balance = list(raw.camera_whitebalance)
    top, lowest = int(values.max()), int(black.min())
    span = white - lowest
    reached = top - lowest > _SATURATED * span
    if reached and top < white and np.count_nonzero(values == top) >= _PIXELS:
        white = top
    if white <= black.max():
        raise InputError("its white is not above its black; fetch the file again.")
    light, scale = values.astype(np.float32), np.float32(65535 / (white - black.max()))
    for y, x in np.ndindex(n, n):
        light[y::n, x::n] -= black[y, x]
    light *= scale
    profile = _noise_profile(data)
    whole = float(span * scale)
    # Use all 16 bits: after denoising, coarse steps between stored values would show in shadows.
    finer = max(1, 65535 // max(top, white))
    negative = Negative(
        black=(finer * black).astype(np.float32),
        scale=scale,
        finer=finer,
        white=finer * white,
        tags=negative_tags(data, _described(data), flip, matrix, balance),
    )
    return Mosaic(
        light=light,
        pattern="".join(desc[colour] for colour in colours.ravel()),
        # Compute white like the pixels, so that both agree to the last bit.
        white=float(np.float32(white - black.max()) * scale),
        noise=None if profile is None else profile * [whole, whole**2],
        developed=partial(_develop, data, negative),
        negative=negative,
    )


def _develop(
    data: Content, negative: Negative, light: NDArray[np.float32] | None
) -> NDArray[np.uint16]:
    """Return the picture developed from a mosaic, by default the file's own mosaic."""
    with _opened(data) as raw:
        black, finer, n = negative.black, negative.finer, len(negative.black)
        visible = raw.raw_image_visible
        counts = finer * visible if light is None else negative.counts(light)
        for y, x in np.ndindex(n, n):  # scale light, but not the black level that LibRaw subtracts
            own = counts[y::n, x::n] - black[y, x] * (finer - 1) / finer
            visible[y::n, x::n] = np.clip(np.rint(own), 0, 65535)
        picture = raw.postprocess(
            use_camera_wb=True,
            output_bps=16,
            no_auto_bright=True,
            # By default, LibRaw derives white from the brightest pixel.
            adjust_maximum_thr=0.0,
            user_sat=negative.white - int(black.min()),  # white level, relative to black
            gamma=(2.4, 12.92),  # gamma of sRGB
        )
    return np.asarray(picture)


def _noise_profile(data: Content) -> NDArray[np.float64] | None:
    """Return DNG's noise profile (3, 2): S and O of the variance S x + O, for red, green, blue."""
    if data[:4] not in (b"II*\0", b"MM\0*"):
        return None
    # If the tags are damaged, the noise can still be estimated.
    with suppress(Exception):
        for directory in _directories(data):
            tag = directory.tags.get(NOISE_PROFILE)
            if tag is None or tag.kind != DOUBLE or tag.count not in (2, 6):
                continue
            values = np.frombuffer(tag.data, f"{directory.layout.order}f8").astype(np.float64)
            profile = np.broadcast_to(values.reshape(-1, 2), (3, 2))
            if np.isfinite(profile).all() and (profile >= 0).all() and (profile.sum(1) > 0).all():
                # A gain of .1 would mean ten electrons at white. All sensors hold more.
                return profile if (profile < [0.1, 0.02]).all() else None
    return None


def _described(data: Content) -> Directory | None:
    """Return the metadata tags to keep of a TIFF-like raw file or a RAF file."""
    directory = first_directory(_exif_of_raf(data) or data)
    if directory is None:
        return None
    tags = {number: tag for number, tag in directory.tags.items() if number in DESCRIBING}
    children = dict(directory.children)
    if EXIF in children:
        exif = children[EXIF]
        exif_tags = {number: tag for number, tag in exif.tags.items() if number not in _DROPPED}
        children[EXIF] = Directory(exif.layout, exif_tags, exif.children)
    return Directory(directory.layout, tags, children)


def _exif_of_raf(data: Content) -> bytes | None:
    """Return the EXIF block of the preview JPEG in a Fujifilm file, from its TIFF header on."""
    if data[:15] != b"FUJIFILMCCD-RAW" or len(header := data[84:92]) < 8:
        return None
    (start,) = struct.unpack(">I", header[:4])
    # The EXIF block is in the first or second segment, each below 64 KB.
    jpeg = data[start : start + (1 << 17)]
    at = jpeg.find(b"Exif\0\0")
    return jpeg[at + 6 : at - 2 + int.from_bytes(jpeg[at - 2 : at], "big")] if at > 2 else None


def _srgb() -> bytes:
    """Return an sRGB profile with a fixed creation date."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    # Bytes 24 to 35 are the creation date: set it to the start of 2000.
    return profile[:24] + bytes([7, 208, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]) + profile[36:]


FORMAT = Format(
    mark=rb"IIRO|IIRS|IIU\0|MMOR|FUJIFILMCCD-RAW|FOVb|\0MRM|.{4}ftypcrx |.{6}HEAPCCDR|.{8}CR\x02\0",
    suffixes=tuple(
        ".3fr .arw .cr2 .cr3 .crw .dng .erf .iiq .kdc .mef .mos .mrw .nef .nrw .orf .pef .raf .raw "
        ".rw2 .rwl .sr2 .srf .srw .x3f".split()
    ),
    read=_read_raw,
    write=write_tiff,
    written_as="tiff",
)
