"""TIFF strips and tiles of any compression are read completely or rejected."""

import io
import struct
import time
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from kpca_apps.errors import InputError
from kpca_apps.images.tiff import read_tiff
from tests.hostile.images import encoded, saved, texture, tiff

LOSSLESS = {"compression": "webp", "compressionargs": {"lossless": True}}
PACKED = {
    "zstd": (texture(40, 50), {"compression": "zstd"}),
    "lzma": (texture(40, 50), {"compression": "lzma"}),
    "png": (texture(40, 50, 3), {"compression": "png", "photometric": "rgb"}),
    "jpeg 2000": (texture(40, 50).astype(np.uint16), {"compression": "jpeg2000"}),
    "jpeg xl": (texture(40, 50), {"compression": "jpegxl", "compressionargs": {"lossless": True}}),
    "webp": (texture(40, 50, 3), {**LOSSLESS, "photometric": "rgb"}),
    "webp, alpha": (texture(40, 50, 4), {**LOSSLESS, "photometric": "rgb"}),
    "predicted": (texture(40, 50).astype(np.float32), {"compression": "zlib", "predictor": 3}),
    "doubles": (texture(40, 50) / 7, {"compression": "lzw", "predictor": 3, "byteorder": ">"}),
}


@pytest.mark.parametrize("tile", [None, (16, 32)])
@pytest.mark.parametrize("what", PACKED)
def test_compressions_of_imagecodecs_are_lossless(what: str, tile: tuple[int, int] | None) -> None:
    pixels, options = PACKED[what]
    rows = {} if tile else {"rowsperstrip": 16}
    image = read_tiff(tiff(pixels, tile=tile, **rows, **options))
    np.testing.assert_array_equal(image.page(0), pixels)
    np.testing.assert_array_equal(tifffile.imread(io.BytesIO(encoded(image))), pixels)


@pytest.mark.parametrize("options", [{"tile": (16, 16)}, {"rowsperstrip": 16}])
@pytest.mark.parametrize("meaning", ["rgb", "ycbcr"])
def test_jpeg_in_tiff_is_read_like_tifffile(options: dict[str, object], meaning: str) -> None:
    smooth = np.add.outer(np.arange(40), np.arange(50))[..., np.newaxis] * [1, 2, 0.5]
    packed = {"compression": "jpeg", "photometric": "rgb"}
    if meaning == "ycbcr":
        packed = {"compression": "jpeg", "photometric": "rgb", "compressionargs": {"level": 90}}
    content = tiff(smooth.astype(np.uint8), **packed, **options)
    expected = tifffile.imread(io.BytesIO(content))
    np.testing.assert_array_equal(read_tiff(content).page(0), expected)
    end = content.rindex(b"\xff\xd9")
    with pytest.raises(InputError):
        read_tiff(content[: end - 20] + b"\xff\xd9" + bytes(20) + content[end + 2 :]).page(0)


def test_an_embedded_image_larger_than_its_tile_is_not_decoded() -> None:
    large, small = (
        tiff(texture(side, side), compression="png", tile=(side, side), metadata=None)
        for side in (64, 16)
    )
    with tifffile.TiffFile(io.BytesIO(large)) as file:
        png = large[file.pages[0].dataoffsets[0] :]
    with tifffile.TiffFile(io.BytesIO(small)) as file:
        start = file.pages[0].dataoffsets[0]
        count = file.pages[0].tags[325].valueoffset
    lie = bytearray(small[:start] + png)
    lie[count : count + 4] = len(png).to_bytes(4, "little")
    with pytest.raises(InputError, match="a block of 64 x 64 pixels"):
        read_tiff(bytes(lie)).page(0)


def test_strips_without_bytes_are_refused_and_not_filled() -> None:
    for packing in (None, "zlib", "lzw", "zstd", "packbits", "lzma"):
        content = bytearray(tiff(texture(40, 50), compression=packing, rowsperstrip=8))
        with tifffile.TiffFile(io.BytesIO(bytes(content))) as file:
            place = file.pages[0].tags[279].valueoffset
        content[place : place + 4] = bytes(4)
        with pytest.raises(InputError):
            read_tiff(bytes(content)).page(0)


def test_tiles_of_negative_size_are_rejected() -> None:
    content = bytearray(tiff(texture(40, 50), tile=(16, 16)))
    with tifffile.TiffFile(io.BytesIO(content)) as file:
        places = [(number, file.pages[0].tags[number].offset) for number in (322, 323)]
    for number, at in places:  # two negative signed sizes give a plausible tile count
        content[at : at + 12] = struct.pack("<HHIi", number, 9, 1, -16)
    with pytest.raises(InputError, match="strips or tiles are damaged"):
        read_tiff(bytes(content))


def test_an_endless_chain_of_pages_is_ignored() -> None:
    content = tiff(texture(40, 50), extratags=[(330, 4, 100_000, [0] * 100_000, True)])
    began = time.process_time()
    image = read_tiff(content)
    assert time.process_time() - began < 0.5
    assert (image.within, image.page(0).shape) == (((),), (40, 50))


def test_reversed_bit_order_is_corrected() -> None:
    content = saved(texture(9, 10), "TIFF", compression="tiff_lzw")
    image = read_tiff(content)
    turned = bytearray(content)
    packed = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)[:, ::-1])
    with tifffile.TiffFile(io.BytesIO(content)) as file:
        page = file.pages[0]
        start, count = page.dataoffsets[0], page.databytecounts[0]
        entry = next(tag for tag in page.tags if tag.code == 284).offset
    turned[start : start + count] = bytes(packed[byte] for byte in content[start : start + count])
    # Replace the tag PlanarConfiguration (284) by FillOrder (266) = 2, reversed bits.
    turned[entry : entry + 12] = b"\x0a\1\3\0\1\0\0\0\2\0\0\0"
    np.testing.assert_array_equal(read_tiff(bytes(turned)).page(0), image.page(0))


def test_two_descriptions_are_both_kept() -> None:
    pixels = texture(40, 50)
    # tifffile writes the array's shape into a separate description.
    content = tiff(pixels, description="Scan 7", metadata={"note": "by hand"}, tile=(16, 16))
    again = encoded(read_tiff(content))
    written = [
        [tag.value for tag in tifffile.TiffFile(io.BytesIO(data)).pages[0].tags if tag.code == 270]
        for data in (content, again)
    ]
    assert len(written[0]) == 2 and written[0] == written[1]


@pytest.mark.parametrize("planar", ["contig", "separate"])
@pytest.mark.parametrize("packing", [None, "zlib", "lzw"])
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4"])
def test_tiles_stay_tiles(dtype: str, packing: str | None, planar: str) -> None:
    shape = (3, 50, 70) if planar == "separate" else (50, 70, 3)
    pixels = texture(*shape).astype(dtype)
    options = {"photometric": "rgb", "planarconfig": planar, "compression": packing}
    image = read_tiff(tiff(pixels, tile=(32, 48), **options))
    again = encoded(image)
    with tifffile.TiffFile(io.BytesIO(again)) as written:
        page = written.pages[0]
        assert (page.is_tiled, page.tilelength, page.tilewidth) == (True, 32, 48)
        assert (page.planarconfig.name.lower(), len(page.dataoffsets)) == (
            planar,
            4 * (3 if planar == "separate" else 1),
        )
        np.testing.assert_array_equal(page.asarray(), pixels)
    np.testing.assert_array_equal(read_tiff(again).page(0), image.page(0))


@pytest.mark.parametrize("compression", ["raw", "tiff_lzw"])
def test_a_palette_is_looked_up(compression: str) -> None:
    picture = Image.fromarray(texture(40, 50, 3)).quantize(256)
    content = io.BytesIO()
    picture.save(content, "TIFF", compression=compression)
    image = read_tiff(content.getvalue())
    assert "palette" in image.notes[0]
    expected = np.array(picture.convert("RGB"))
    np.testing.assert_array_equal(image.page(0), expected)
    with Image.open(io.BytesIO(encoded(image))) as seen:
        assert seen.mode == "RGB"
        np.testing.assert_array_equal(np.array(seen), expected)


@pytest.mark.parametrize("options", [{"tile": (16, 32)}, {"rowsperstrip": 9}])
@pytest.mark.parametrize("planar", ["contig", "separate"])
def test_a_window_of_a_page_is_a_part_of_it(options: dict, planar: str) -> None:
    pixels, file = texture(50, 70, 3), io.BytesIO()
    given = pixels if planar == "contig" else np.moveaxis(pixels, -1, 0)
    tifffile.imwrite(file, given, photometric="rgb", planarconfig=planar, **options)
    image = read_tiff(file.getvalue())
    assert image.window is not None
    for rows, columns in ((slice(0, 50), slice(0, 70)), (slice(15, 33), slice(31, 65))):
        np.testing.assert_array_equal(image.window(0, rows, columns), pixels[rows, columns])


class _Watched(bytes):
    """A file's bytes, recording the largest single read."""

    most = 0

    def __getitem__(self, part: Any) -> Any:
        found: Any = super().__getitem__(part)
        if isinstance(part, slice):
            self.most = max(self.most, len(found))
        return found


@pytest.mark.parametrize("options", [{"rowsperstrip": 90}, {"tile": (96, 48)}])
def test_only_the_rows_of_an_uncompressed_strip_are_read(options: dict[str, object]) -> None:
    pixels = texture(90, 40, 3)
    data = _Watched(tiff(pixels, photometric="rgb", **options))
    image = read_tiff(data)
    assert image.window is not None
    data.most = 0
    np.testing.assert_array_equal(image.window(0, slice(50, 54), slice(5, 9)), pixels[50:54, 5:9])
    assert data.most <= 4 * 48 * 3
