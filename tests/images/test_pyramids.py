"""Written TIFFs keep their tiles, and each lower resolution averages the written image."""

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.options import Options
from kpca_apps.images.files import read_image
from kpca_apps.images.tiff import read_tiff
from tests.hostile.images import write_image

PIXELS = np.random.default_rng(0).integers(0, 256, (131, 200, 3)).astype(np.uint8)


def halves(pixels: NDArray[Any], times: int) -> NDArray[np.uint8]:
    height, width = (side // times * times for side in pixels.shape[:2])
    cut = pixels[:height, :width].astype(float)
    blocks = cut.reshape(height // times, times, width // times, times, -1).mean(axis=(1, 3))
    return np.rint(blocks).astype(np.uint8)


def rewrite(path: Path, pages: list[NDArray[Any]]) -> Path:
    target = path.with_name("again.tif")
    write_image(target, pages, read_image(path))
    return target


@pytest.mark.parametrize("packing", [None, "zlib", "lzw", "zstd", "packbits", "lzma", "jpeg"])
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_tiles_keep_size_and_compression(tmp_path: Path, packing: str, byteorder: str) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(
        path, PIXELS, tile=(48, 64), compression=packing, byteorder=byteorder, photometric="rgb"
    )
    with tifffile.TiffFile(rewrite(path, [PIXELS])) as file, tifffile.TiffFile(path) as first:
        (page,) = file.pages
        assert (page.tilelength, page.tilewidth) == (48, 64)
        np.testing.assert_array_equal(page.asarray(), PIXELS)
        # JPEG would lose quality again, so lower resolutions are deflated.
        own = first.pages[0].compression if packing != "jpeg" else 8
        assert page.compression == own
    assert any("Deflate" in note for note in read_image(path).notes) == (packing == "jpeg")


def test_planes_of_floats_in_tiles_are_written_as_they_were(tmp_path: Path) -> None:
    planes = np.moveaxis(PIXELS, -1, 0).astype(np.float32) / 7
    path = tmp_path / "a.tif"
    tifffile.imwrite(
        path, planes, tile=(16, 32), compression="zlib", predictor=True,
        photometric="rgb", planarconfig="separate", bigtiff=True,
    )  # fmt: skip
    with tifffile.TiffFile(rewrite(path, [np.moveaxis(planes, 0, -1)])) as file:
        assert file.pages[0].tilewidth == 32 and file.is_bigtiff
        np.testing.assert_array_equal(file.asarray(), planes)


@pytest.mark.parametrize("bigtiff", [False, True])
def test_lower_resolutions_within_a_page_are_recomputed(tmp_path: Path, bigtiff: bool) -> None:
    path = tmp_path / "a.ome.tif"
    with tifffile.TiffWriter(path, bigtiff=bigtiff, ome=True) as file:
        tiles: dict[str, Any] = {"tile": (64, 64), "photometric": "rgb", "compression": "lzw"}
        file.write(PIXELS, subifds=2, metadata={"axes": "YXS"}, **tiles)
        for times in (2, 4):
            file.write(PIXELS[: 131 // times, : 200 // times], subfiletype=1, **tiles)
    assert read_image(path).notes == ("Its smaller copies are recomputed.",)
    inverted = 255 - PIXELS
    with tifffile.TiffFile(rewrite(path, [inverted])) as file:
        (series,) = file.series
        assert [level.shape for level in series.levels] == [
            (131, 200, 3),
            (65, 100, 3),
            (32, 50, 3),
        ]
        assert series.axes == "YXS"
        for level, times in zip(series.levels, (1, 2, 4), strict=True):
            np.testing.assert_array_equal(level.asarray(), halves(inverted, times))
            assert level.keyframe.tilewidth == 64 and level.keyframe.compression == 5


def test_pages_that_are_copies_of_the_first_follow_it(tmp_path: Path) -> None:
    """The label image of a slide is not a copy of the first page, so it is denoised by itself."""
    (tmp_path / "in").mkdir()
    clean = np.add.outer(np.arange(160), np.arange(240)) % 180
    noisy = clean + 12 * np.random.default_rng(0).normal(size=clean.shape)
    slide = np.clip(noisy, 0, 255).astype(np.uint8)
    with tifffile.TiffWriter(tmp_path / "in" / "slide.svs.tif") as file:
        for page in (slide, halves(slide, 2)[..., 0], halves(slide, 4)[..., 0]):
            file.write(page, tile=(64, 64), metadata=None)
        file.write(slide[:50, :50], metadata=None)
    denoiser = GroupDenoiser(Options(quality="draft"), sigma=12.0)
    (image,) = run_batch(
        [tmp_path / "in"], tmp_path / "out", denoiser.settings, denoise=denoiser
    ).images
    assert not image.reason and image.n_pages == 4
    with tifffile.TiffFile(tmp_path / "out" / "slide.svs.tif") as file:
        first, half, quarter, label = (page.asarray() for page in file.pages)
        assert [page.is_tiled for page in file.pages] == [True, True, True, False]
    assert np.std(first - clean) < 0.7 * np.std(slide - clean)
    for copy, times in ((half, 2), (quarter, 4)):
        np.testing.assert_allclose(copy, halves(first, times)[..., 0], atol=1)
    alone, _ = denoiser(slide[:50, :50], None)
    np.testing.assert_array_equal(label, np.rint(alone))


def test_damaged_offsets_of_lower_resolutions_cost_only_those() -> None:
    content = io.BytesIO()
    with tifffile.TiffWriter(content) as file:
        file.write(PIXELS, subifds=1, photometric="rgb", metadata=None)
        file.write(PIXELS[::2, ::2], subfiletype=1, photometric="rgb", metadata=None)
    data = bytearray(content.getvalue())
    with tifffile.TiffFile(io.BytesIO(bytes(data))) as opened:
        place = opened.pages[0].tags[330].valueoffset
    data[place : place + 4] = b"\xff" * 4
    image = read_tiff(bytes(data))
    assert image.within == ((),)
    np.testing.assert_array_equal(image.page(0), PIXELS)


@pytest.mark.parametrize("sides", [(20_000, 20_000), (0, 0), (16, 0)])
def test_lower_resolutions_in_oversized_tiles_are_dropped(sides: tuple[int, int]) -> None:
    content, tile = io.BytesIO(), (16, 16)
    with tifffile.TiffWriter(content) as file:
        file.write(PIXELS, subifds=1, photometric="rgb", tile=tile)
        file.write(PIXELS[::2, ::2], subfiletype=1, photometric="rgb", tile=tile)
    data = bytearray(content.getvalue())
    with tifffile.TiffFile(io.BytesIO(bytes(data))) as opened:
        tags = opened.pages[0].pages[0].tags
        for tag, side in zip((322, 323), sides, strict=True):
            found = tags[tag]
            struct.pack_into({3: "<H", 4: "<I"}[found.dtype], data, found.valueoffset, side)
    assert read_tiff(bytes(data)).within == ((),)
