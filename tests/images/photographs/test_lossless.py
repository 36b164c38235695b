"""WebP, JPEG 2000, JPEG XL, BMP and Netpbm come back as they went in, or are refused."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from PIL import Image

from kpca_apps.errors import InputError
from kpca_apps.images.files import encode_image, read_image
from kpca_apps.images.photographs.lossless import read_lossless, stated_size
from tests.hostile.images import saved, texture

GREY, COLOUR, ALPHA = texture(20, 30), texture(20, 30, 3), texture(20, 30, 4)
DEEP = texture(20, 30, 3).astype(np.uint16) * 257
WHOLE = {
    "webp": (saved(COLOUR, "WEBP", lossless=True), COLOUR),
    "webp, alpha": (saved(ALPHA, "WEBP", lossless=True, exact=True), ALPHA),
    "jp2": (saved(COLOUR, "JPEG2000"), COLOUR),
    "jp2, 16": (imagecodecs.jpeg2k_encode(DEEP, level=0, reversible=True), DEEP),
    "jxl": (imagecodecs.jpegxl_encode(COLOUR, lossless=True), COLOUR),
    "jxl, 16": (imagecodecs.jpegxl_encode(DEEP, lossless=True, usecontainer=True), DEEP),
    "bmp": (saved(GREY, "BMP"), GREY),
    "bmp, RGB": (saved(COLOUR, "BMP", dpi=(300, 300)), COLOUR),
    "netpbm": (saved(COLOUR, "PPM"), COLOUR),
    "netpbm, 16": (saved(DEEP[..., 0], "PPM"), DEEP[..., 0]),
    "netpbm, float": (saved(GREY.astype(np.float32), "PPM"), GREY.astype(np.float32)),
}


@pytest.mark.parametrize("what", WHOLE)
def test_it_is_written_as_it_was_read(what: str, tmp_path: Path) -> None:
    content, pixels = WHOLE[what]
    path, file = tmp_path / "a", io.BytesIO()
    path.write_bytes(content)
    image = read_image(path)
    assert image.format == what.partition(",")[0]
    np.testing.assert_array_equal(image.page(0), pixels)
    assert image.pages[0].dtype == pixels.dtype
    encode_image(file, image.page(0), image)
    path.write_bytes(file.getvalue())
    again = read_image(path)
    assert again.format == image.format
    np.testing.assert_array_equal(again.page(0), pixels)
    assert again.metadata == image.metadata
    if what in ("jp2, 16", "jxl", "jxl, 16"):  # which Pillow makes 8 bits of, or does not read
        return
    with Image.open(path) as other:
        np.testing.assert_array_equal(np.asarray(other), pixels)


@pytest.mark.parametrize("what", WHOLE)
def test_cut_short_it_is_refused(what: str) -> None:
    content, pixels = WHOLE[what]
    for place in np.linspace(0, len(content) - 1, 25).astype(int):
        try:
            image = read_lossless(what.partition(",")[0], content[:place], "a")
        except InputError as error:
            assert str(error).isprintable()
        else:
            np.testing.assert_array_equal(image.page(0), pixels)


@pytest.mark.parametrize("what", [what for what in WHOLE if not what.startswith(("bmp", "net"))])
def test_the_size_is_known_before_it_is_decoded(what: str) -> None:
    for height, width in ((20, 30), (8, 8), (64, 48), (300, 17), (1, 700)):
        pixels = texture(height, width, 3)
        made = {
            "webp": saved(pixels, "WEBP", lossless="alpha" in what),
            "jp2": imagecodecs.jpeg2k_encode(pixels),
            "jxl": imagecodecs.jpegxl_encode(pixels, usecontainer="16" in what),
        }
        kind = what.partition(",")[0]
        assert stated_size(kind, made[kind]) == (height, width)


def test_bombs_are_refused_by_what_they_state() -> None:
    bmp = bytearray(WHOLE["bmp"][0])
    bmp[18:26] = struct.pack("<ii", 13_000, 13_000)
    with pytest.raises(InputError, match="can hold"):
        read_lossless("bmp", bytes(bmp), "a")
    wide = b"RIFF\0\0\0\0WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + b"\xff" * 6
    with pytest.raises(InputError, match="16777216 x 16777216"):
        read_lossless("webp", wide, "a")
    # Not small, 30 bits of height, as wide as high.
    bits = 0 | 3 << 1 | (40_000 - 1) << 3 | 1 << 33
    with pytest.raises(InputError, match="40000 x 40000"):
        read_lossless("jxl", b"\xff\x0a" + bits.to_bytes(14, "little"), "a")
    # A few bytes of LERC hold any number of values a pixel, in one block or several.
    for deep in (
        imagecodecs.lerc_encode(np.zeros((20, 30, 900), np.uint8)),
        5 * imagecodecs.lerc_encode(np.zeros((20, 30), np.uint8)),
    ):
        assert len(deep) < 400
        with pytest.raises(ValueError, match="values a pixel"):
            stated_size("lerc", deep)


def test_metadata_of_webp_and_boxes_is_kept() -> None:
    exif = Image.Exif()
    exif[274] = 6
    given = {"exif": exif, "icc_profile": b"a profile", "xmp": b"<x:xmpmeta/>"}
    first = read_lossless("webp", saved(COLOUR, "WEBP", lossless=True, **given), "a")
    file = io.BytesIO()
    encode_image(file, first.page(0), first)
    with Image.open(io.BytesIO(file.getvalue())) as seen:
        assert (seen.info["icc_profile"], seen.info["xmp"]) == (b"a profile", b"<x:xmpmeta/>")
        assert seen.getexif()[274] == 6
    assert first.metadata.orientation == 6
    box = struct.pack(">I4s", 24, b"uuid") + bytes(range(16))
    first = read_lossless("jp2", WHOLE["jp2"][0] + box, "a")
    file = io.BytesIO()
    encode_image(file, first.page(0), first)
    assert file.getvalue().endswith(box)


def test_animations_and_what_cannot_be_written_back_are_refused() -> None:
    frames = [Image.fromarray(texture(8, 8, 3)), Image.fromarray(255 - texture(8, 8, 3))]
    file = io.BytesIO()
    frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:])
    for kind, content, words in (
        ("webp", file.getvalue(), "animated WebP"),
        ("jxl", imagecodecs.jpegxl_encode(np.stack([COLOUR, COLOUR])), "several pictures"),
        ("bmp", saved(GREY > 99, "BMP"), "1 bit"),
        ("netpbm", b"P6 1 1 65535 " + bytes(6), "16-bit colours"),
    ):
        with pytest.raises(InputError, match=words):
            read_lossless(kind, content, "a")
