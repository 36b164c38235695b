"""DNG files that we write, as LibRaw and tifffile read them."""

from pathlib import Path

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from skimage.data import astronaut

from kpca_apps.errors import InputError
from kpca_apps.images.dng import write_dng as write_negative
from kpca_apps.images.files import read_image
from tests.images.dng import NEUTRAL, XTRANS, mosaic_of, write_dng

rawpy = pytest.importorskip("rawpy", reason='rawpy is not installed: pip install "kpca-apps[raw]"')

# Tags copied as bytes: opcodes for a lens and a bad pixel, a colour profile, a film frame's time.
LENS, BAD_PIXEL, CURVE, TIME = 51022, 51008, 50940, 51043


@pytest.fixture(scope="module", params=["GBRG", XTRANS], ids=["Bayer", "X-Trans"])
def pattern(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def counts_of(pattern: str) -> NDArray[np.uint16]:
    # LibRaw develops X-Trans images only if they have at least 512 pixels a side.
    picture = astronaut()[:120, 100:262] if len(pattern) == 4 else np.tile(astronaut(), (2, 2, 1))
    light = (picture[:514, :640] / 255.0) ** 2.2 * NEUTRAL
    values = 256 + 3839 * mosaic_of(light, pattern)
    return np.clip(np.rint(values), 0, 4095).astype(np.uint16)


def rewritten(path: Path, factor: float = 1.0) -> Path:
    """Write the light of a raw file as a DNG, optionally darker."""
    image = read_image(path)
    assert image.mosaic is not None
    mosaic, target = image.mosaic(), path.with_name(f"{path.stem}_new.dng")
    with target.open("wb") as file:
        write_negative(file, np.float32(factor) * mosaic.light, mosaic, image)
    return target


@pytest.mark.parametrize("byteorder", ["<", ">"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_a_mosaic_is_read_again_with_the_same_light_and_tags(
    tmp_path: Path, pattern: str, byteorder: str, orientation: int
) -> None:
    path = write_dng(
        tmp_path / "a.dng",
        counts_of(pattern),
        pattern=pattern,
        orientation=orientation,
        byteorder=byteorder,
        noise=(1e-3, 1e-6),
        more=[
            (LENS, 7, 12, bytes(range(12)), True),
            (BAD_PIXEL, 7, 4, bytes(4), True),
            (CURVE, 11, 4, (0.0, 0.0, 1.0, 1.0), True),
            (TIME, 1, 8, bytes(range(1, 9)), True),
        ],
    )
    target = rewritten(path)
    with rawpy.imread(str(path)) as old, rawpy.imread(str(target)) as new:
        assert np.array_equal(old.raw_colors_visible, new.raw_colors_visible)
        assert old.sizes.flip == new.sizes.flip
        assert old.camera_whitebalance == new.camera_whitebalance
        np.testing.assert_array_equal(old.rgb_xyz_matrix, new.rgb_xyz_matrix)
        assert len(set(new.black_level_per_channel)) == 1
        share = [
            (item.raw_image_visible - float(item.black_level_per_channel[0]))
            / (item.white_level - item.black_level_per_channel[0])
            for item in (old, new)
        ]
        np.testing.assert_allclose(*share, atol=1e-6)
    mosaics = [read_image(item).mosaic for item in (path, target)]
    first, second = (item() for item in mosaics if item is not None)
    np.testing.assert_allclose(first.light, second.light, atol=0.51 * 65535 / 61424)
    # The original's noise profile does not apply to the result.
    assert first.noise is not None and second.noise is None
    with tifffile.TiffFile(target) as file:
        tags = file.pages[0].tags
        assert tags[LENS].value == bytes(range(12)) and tags[CURVE].value == (0.0, 0.0, 1.0, 1.0)
        assert tags[TIME].value == bytes(range(1, 9)) and BAD_PIXEL not in tags
        assert (tags["Make"].value, tags["DateTime"].value) == ("Maker", "2026:01:02 03:04:05")
        assert tags["Orientation"].value == orientation
        assert tags["NoiseReductionApplied"].value == (1_000_000, 1_000_000)


def test_noise_below_black_is_kept(tmp_path: Path) -> None:
    light = np.random.default_rng(0).normal(0.0, 20.0, (120, 160))
    counts = np.clip(np.rint(64 + light), 0, 4095).astype(np.uint16)
    path = write_dng(tmp_path / "a.dng", counts, black=(64,))
    with rawpy.imread(str(path)) as old, rawpy.imread(str(rewritten(path))) as new:
        finer = (new.white_level - new.black_level_per_channel[0]) / (4095 - 64)
        seen = (new.raw_image_visible - float(new.black_level_per_channel[0])) / finer
        np.testing.assert_allclose(seen, old.raw_image_visible - 64.0, atol=0.51 / finer)


def test_the_developed_picture_equals_that_of_the_mosaic_in_memory(
    tmp_path: Path, pattern: str
) -> None:
    path = write_dng(tmp_path / "a.dng", counts_of(pattern), pattern=pattern, orientation=8)
    image = read_image(path)
    assert image.mosaic is not None
    mosaic = image.mosaic()
    target = rewritten(path, factor=0.7)
    in_memory = mosaic.developed(np.float32(0.7) * mosaic.light)
    assert np.array_equal(read_image(target).page(0), in_memory)
    with rawpy.imread(str(target)) as raw:
        shown = raw.postprocess(
            use_camera_wb=True,
            output_bps=16,
            no_auto_bright=True,
            adjust_maximum_thr=0.0,
            gamma=(2.4, 12.92),
        )
    assert np.array_equal(shown, in_memory)


def test_a_dng_needs_the_colours_of_the_camera(tmp_path: Path) -> None:
    image = read_image(write_dng(tmp_path / "a.dng", counts_of("RGGB"), matrix=np.zeros((3, 3))))
    assert image.mosaic is not None
    mosaic = image.mosaic()
    with (tmp_path / "new.dng").open("wb") as file, pytest.raises(InputError, match="no DNG"):
        write_negative(file, mosaic.light, mosaic, image)
