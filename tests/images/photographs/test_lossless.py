"""WebP, JPEG 2000, JPEG XL, BMP and Netpbm are kept losslessly or rejected."""

import io
import struct
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from PIL import Image

from kpca_apps.errors import InputError
from kpca_apps.images.files import read_image
from kpca_apps.images.photographs.lossless import _jxl_header, read_lossless, stated_size
from tests.hostile.images import encoded, saved, texture

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
def test_a_file_is_written_as_it_was_read(what: str, tmp_path: Path) -> None:
    content, pixels = WHOLE[what]
    path = tmp_path / "a"
    path.write_bytes(content)
    image = read_image(path)
    assert image.format == what.partition(",")[0]
    np.testing.assert_array_equal(image.page(0), pixels)
    assert image.pages[0].dtype == pixels.dtype
    path.write_bytes(encoded(image))
    again = read_image(path)
    assert again.format == image.format
    np.testing.assert_array_equal(again.page(0), pixels)
    assert again.metadata == image.metadata
    if what in ("jp2, 16", "jxl", "jxl, 16"):  # Pillow reduces these to 8 bits or cannot read them
        return
    with Image.open(path) as other:
        np.testing.assert_array_equal(np.asarray(other), pixels)


@pytest.mark.parametrize("bits", [10, 12, 14])
@pytest.mark.parametrize("kind", ["jxl", "jp2", "j2k"])
def test_bits_of_a_sample_are_kept(kind: str, bits: int, tmp_path: Path) -> None:
    pixels = texture(20, 30).astype(np.uint16) << (bits - 8)

    def made(values: np.ndarray) -> bytes:
        if kind == "jxl":
            return bytes(imagecodecs.jpegxl_encode(values, lossless=True, bitspersample=bits))
        options = {"codecformat": kind, "bitspersample": bits}
        return bytes(imagecodecs.jpeg2k_encode(values, level=0, reversible=True, **options))

    path = tmp_path / "a"
    path.write_bytes(made(pixels))
    image = read_image(path)
    brighter = image.page(0) + np.uint16(3 << (bits - 8))  # some exceed the bit depth
    found = encoded(image, brighter)
    # Readers scale by the bit depth in the header, so it must equal the depth that the encoder
    # writes.
    expected = made(np.minimum(brighter, (1 << bits) - 1))
    decode = imagecodecs.jpegxl_decode if kind == "jxl" else imagecodecs.jpeg2k_decode
    np.testing.assert_array_equal(decode(found), decode(expected))
    if kind == "jxl":
        expected = imagecodecs.jpegxl_encode(
            decode(expected), lossless=True, bitspersample=bits, usecontainer=True, numthreads=1
        )
    assert found == expected


@pytest.mark.parametrize("what", WHOLE)
def test_a_truncated_file_is_rejected(what: str) -> None:
    content, pixels = WHOLE[what]
    for place in np.linspace(0, len(content) - 1, 25).astype(int):
        try:
            image = read_lossless(what.partition(",")[0], content[:place])
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


@pytest.mark.parametrize(("selector", "bits"), [(0, 32), (1, 16), (2, 24), (3, 20)])
def test_any_bits_of_floats_in_jpeg_xl_are_read(selector: int, bits: int) -> None:
    # Fields from the lowest bit: 64 x 64 pixels, not all default, no extra fields, float samples,
    # selector of the bit depth, bits - 1, and what follows.
    header = 1 | (8 - 1) << 1 | 1 << 6 | 0 << 9 | 0 << 10 | 1 << 11 | selector << 12
    header |= (bits - 1 | 1 << 6) << 14
    found = _jxl_header(b"\xff\x0a" + header.to_bytes(14, "little"))
    assert found == (64, 64, False, bits)


def test_bombs_are_refused_by_what_they_state() -> None:
    bmp = bytearray(WHOLE["bmp"][0])
    bmp[18:26] = struct.pack("<ii", 13_000, 13_000)
    with pytest.raises(InputError, match="can hold"):
        read_lossless("bmp", bytes(bmp))
    wide = b"RIFF\0\0\0\0WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + b"\xff" * 6
    with pytest.raises(InputError, match="16777216 x 16777216"):
        read_lossless("webp", wide)
    # JPEG XL's size header: not small, 30-bit height, square.
    bits = 0 | 3 << 1 | (40_000 - 1) << 3 | 1 << 33
    with pytest.raises(InputError, match="40000 x 40000"):
        read_lossless("jxl", b"\xff\x0a" + bits.to_bytes(14, "little"))


def test_metadata_of_webp_and_boxes_is_kept() -> None:
    exif = Image.Exif()
    exif[274] = 6
    given = {"exif": exif, "icc_profile": b"a profile", "xmp": b"<x:xmpmeta/>"}
    first = read_lossless("webp", saved(COLOUR, "WEBP", lossless=True, **given))
    with Image.open(io.BytesIO(encoded(first))) as seen:
        assert (seen.info["icc_profile"], seen.info["xmp"]) == (b"a profile", b"<x:xmpmeta/>")
        assert seen.getexif()[274] == 6
    assert first.metadata.orientation == 6
    box = struct.pack(">I4s", 24, b"uuid") + bytes(range(16))
    first = read_lossless("jp2", WHOLE["jp2"][0] + box)
    assert encoded(first).endswith(box)


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
            read_lossless(kind, content)
