"""Camera raw files are compared with rawpy's development and with the values written."""

import importlib.util
import io
import os
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from PIL import Image, ImageCms
from skimage.data import astronaut

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.images.files import read_image
from kpca_apps.images.raw import _described, _without_stderr
from kpca_apps.images.tags import write_exif
from kpca_apps.images.types import Mosaic
from tests.hostile.images import write_image
from tests.images.dng import CFA, GREY, LINEAR, NEUTRAL, XTRANS, mosaic_of, write_dng

rawpy = pytest.importorskip("rawpy", reason='rawpy is not installed: pip install "kpca-apps[raw]"')


@pytest.fixture(scope="module")
def sensor() -> NDArray[np.float64]:
    """Simulate the sensor image of a photograph, from 0 to 1 (the sensor's white level)."""
    light = (astronaut()[:120, 100:260] / 255.0) ** 2.2 * NEUTRAL
    return mosaic_of(light)


def counts(
    sensor: NDArray[np.float64], black: float = 256, white: float = 4095
) -> NDArray[np.uint16]:
    return np.clip(np.rint(black + (white - black) * sensor), 0, white).astype(np.uint16)


def mosaic_in(path: Path) -> Mosaic:
    image = read_image(path)
    assert image.mosaic is not None
    return image.mosaic()


@pytest.mark.parametrize("pattern", ["RGGB", "BGGR", "GRBG", "GBRG"])
def test_light_pattern_and_white_are_those_written(
    tmp_path: Path, sensor: NDArray[np.float64], pattern: str
) -> None:
    mosaic = mosaic_in(write_dng(tmp_path / "a.dng", counts(sensor), pattern=pattern))
    assert mosaic.pattern == pattern
    np.testing.assert_allclose(mosaic.light, 65535 * sensor, atol=65535 * 0.51 / 3839)
    assert mosaic.white == pytest.approx(65535) and mosaic.noise is None


def test_each_pixel_of_a_quad_has_its_own_black_level(
    tmp_path: Path, sensor: NDArray[np.float64]
) -> None:
    black = np.tile([[250, 260], [270, 280]], (60, 80))
    path = write_dng(tmp_path / "a.dng", counts(sensor, black), black=(250, 260, 270, 280))
    expected = 65535 * sensor * (4095 - black) / (4095 - 280)
    np.testing.assert_allclose(mosaic_in(path).light, expected, atol=65535 * 0.51 / 3815)


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_the_picture_is_what_rawpy_develops_upright(
    tmp_path: Path, sensor: NDArray[np.float64], orientation: int
) -> None:
    path = write_dng(tmp_path / "a.dng", counts(sensor), orientation=orientation)
    with rawpy.imread(str(path)) as raw:
        expected = raw.postprocess(
            use_camera_wb=True,
            output_bps=16,
            no_auto_bright=True,
            adjust_maximum_thr=0,
            gamma=(2.4, 12.92),
        )
    image = read_image(path)
    page = image.page(0)
    assert page.shape == image.pages[0].shape == expected.shape
    assert page.dtype == image.pages[0].dtype == np.uint16
    # LibRaw interpolates in one of two directions, and rounding may change the direction.
    assert np.median(np.abs(page.astype(float) - expected)) < 65535 / 2000
    assert np.mean(np.abs(page.astype(float) - expected)) < 65535 / 400
    assert image.metadata.orientation == 1


def test_metadata_of_a_fujifilm_file_are_read_from_its_jpeg() -> None:
    """A Fujifilm file stores raw data outside a TIFF, behind a header that Fujifilm defines."""
    exif = Image.Exif()
    exif[271], exif[306] = "FUJIFILM", "2026:01:02 03:04:05"
    jpeg = io.BytesIO()
    Image.new("RGB", (8, 8)).save(jpeg, "JPEG", exif=exif)
    head = b"FUJIFILMCCD-RAW ".ljust(84, b"0") + struct.pack(">II", 160, len(jpeg.getvalue()))
    kept = Image.Exif()
    directory = _described(head.ljust(160, b"\0") + jpeg.getvalue())
    assert directory is not None
    kept.load(write_exif(directory))
    assert dict(kept) == {271: "FUJIFILM", 306: "2026:01:02 03:04:05"}
    for cut in (90, 170):
        assert _described((head.ljust(160, b"\0") + jpeg.getvalue())[:cut]) is None


@pytest.mark.parametrize("grey", [0.02, 0.1, 0.5, 0.9])
def test_a_grey_surface_is_developed_to_its_value_in_srgb(tmp_path: Path, grey: float) -> None:
    light = mosaic_of(np.full((64, 64, 3), grey) * NEUTRAL)
    mosaic = mosaic_in(write_dng(tmp_path / "a.dng", counts(light)))
    expected = 65535 * (1.055 * grey ** (1 / 2.4) - 0.055)
    picture = mosaic.developed((65535 * light).astype(np.float32))
    np.testing.assert_allclose(picture, expected, atol=65535 / 800)


def test_a_mosaic_is_developed_in_finer_steps_than_the_file_has(tmp_path: Path) -> None:
    ramp = np.tile(np.linspace(0.001, 0.004, 160), (120, 1))
    mosaic = mosaic_in(write_dng(tmp_path / "a.dng", counts(ramp), neutral=(1, 1, 1)))
    stepped = mosaic.developed(None)[60, 8:-8, 1].astype(float)
    smooth = mosaic.developed((65535 * ramp).astype(np.float32))[60, 8:-8, 1].astype(float)
    assert len(np.unique(stepped)) < 30 < 60 < len(np.unique(smooth))
    assert np.abs(smooth - stepped).mean() < 65535 / 500


def test_the_picture_is_written_with_profile_and_metadata(
    tmp_path: Path, sensor: NDArray[np.float64]
) -> None:
    image = read_image(write_dng(tmp_path / "a.dng", counts(sensor), orientation=6))
    for format, suffix in (("same", "tif"), ("png", "png")):
        target = tmp_path / f"a.{suffix}"
        write_image(target, image.page(0), image, format=format)
        again = read_image(target)
        np.testing.assert_array_equal(again.page(0), image.page(0))
        assert again.metadata.orientation == 1
        with Image.open(target) as written:
            assert written.getexif()[271] == "Maker"
            assert written.getexif()[306] == "2026:01:02 03:04:05"
            profile = ImageCms.ImageCmsProfile(io.BytesIO(written.info["icc_profile"]))
            assert "sRGB" in ImageCms.getProfileDescription(profile)
    assert (
        read_image(tmp_path / "a.tif").metadata.icc == read_image(tmp_path / "a.dng").metadata.icc
    )


@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_a_noise_profile_is_read_in_units_of_the_mosaic(
    tmp_path: Path, sensor: NDArray[np.float64], byteorder: str
) -> None:
    profile = (1e-3, 1e-6, 2e-3, 2e-6, 3e-3, 3e-6)
    path = write_dng(tmp_path / "a.dng", counts(sensor), noise=profile, byteorder=byteorder)
    noise = mosaic_in(path).noise
    assert noise is not None
    expected = np.reshape(profile, (3, 2)) * [65535, 65535**2]
    np.testing.assert_allclose(noise, expected, rtol=1e-5)
    single = mosaic_in(write_dng(tmp_path / "b.dng", counts(sensor), noise=profile[:2])).noise
    np.testing.assert_allclose(single, np.tile(expected[0], (3, 1)), rtol=1e-5)


@pytest.mark.parametrize("profile", [(0.0, 0.0), (-1e-3, 1e-6), (float("nan"), 1e-6), (0.4, 0.4)])
def test_an_impossible_noise_profile_is_ignored(
    tmp_path: Path, sensor: NDArray[np.float64], profile: tuple[float, float]
) -> None:
    assert mosaic_in(write_dng(tmp_path / "a.dng", counts(sensor), noise=profile)).noise is None


def test_a_sensor_saturating_below_the_stated_white_is_detected(
    tmp_path: Path, sensor: NDArray[np.float64]
) -> None:
    values = np.minimum(counts(2.5 * sensor), 3600)
    mosaic = mosaic_in(write_dng(tmp_path / "a.dng", values))
    np.testing.assert_array_equal(mosaic.light >= mosaic.white, values == 3600)
    # Clipped highlights are white rather than tinted by white balance.
    burnt = np.array([[1, 1], [1, 1]]) * 3600
    flat = write_dng(tmp_path / "b.dng", np.tile(burnt, (40, 40)).astype(np.uint16))
    assert read_image(flat).page(0).min() > 65000


def test_other_sensors_and_pictures_are_refused_in_one_line(
    tmp_path: Path, sensor: NDArray[np.float64]
) -> None:
    colours = np.repeat(counts(sensor)[..., np.newaxis], 3, axis=2)
    made = {
        "too small to develop": write_dng(tmp_path / "t.dng", counts(sensor), pattern=XTRANS),
        "linear DNG, sRAW, sNEF": write_dng(
            tmp_path / "l.dng", colours, meaning=LINEAR, black=(0,) * 3
        ),
        "not a raw file that LibRaw": write_dng(tmp_path / "m.dng", counts(sensor), meaning=GREY),
    }
    for what, path in made.items():
        with pytest.raises(InputError, match=what) as refused:
            read_image(path)
        assert path.name in str(refused.value) and "\n" not in str(refused.value)


def test_damaged_files_are_refused_in_one_line(
    tmp_path: Path, sensor: NDArray[np.float64], capfd: pytest.CaptureFixture[str]
) -> None:
    whole = write_dng(tmp_path / "a.dng", counts(sensor)).read_bytes()
    damaged = {
        "cut.dng": whole[: len(whole) // 2],
        "head.dng": whole[:200],
        "junk.nef": b"II*\0" + bytes(range(256)),
        "junk.cr3": b"\0\0\0\x18ftypcrx " + bytes(300),
        "junk.raf": b"FUJIFILMCCD-RAW " + bytes(300),
        "junk.orf": b"IIRO" + bytes(300),
    }
    for name, data in damaged.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=name) as refused:
            read_image(tmp_path / name).page(0)
        assert "\n" not in str(refused.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.release
def test_flipped_bytes_cost_no_more_than_one_line(
    tmp_path: Path, sensor: NDArray[np.float64], capfd: pytest.CaptureFixture[str]
) -> None:
    whole = write_dng(tmp_path / "a.dng", counts(sensor), noise=(1e-3, 1e-6)).read_bytes()
    with tifffile.TiffFile(tmp_path / "a.dng") as file:
        start = file.pages[0].dataoffsets[0]
    # Damage bytes before and after the pixels: those of the tags.
    tags = [place for place in range(len(whole)) if not start <= place < start + 2 * sensor.size]
    rng = np.random.default_rng(0)
    for _ in range(60):
        data = bytearray(whole)
        for place in rng.choice(tags, 3):
            data[place] = rng.integers(256)
        (tmp_path / "flipped.dng").write_bytes(data)
        try:
            read_image(tmp_path / "flipped.dng").page(0)
        except InputError as refused:
            assert "flipped.dng" in str(refused) and "\n" not in str(refused)
    assert capfd.readouterr() == ("", "")


def test_too_many_stated_pixels_are_rejected_before_reading(
    tmp_path: Path, sensor: NDArray[np.float64]
) -> None:
    path = write_dng(tmp_path / "a.dng", counts(sensor))
    for sides in ((60_000, 60_000), (16_000, 10_000)):
        with tifffile.TiffFile(path, mode="r+b") as file:
            for name, side in zip(("ImageLength", "ImageWidth"), sides, strict=True):
                file.pages[0].tags[name].overwrite(side)
        with pytest.raises(InputError, match=r"a\.dng"):
            read_image(path)


def test_a_raw_file_under_the_name_of_a_tiff_is_named(
    tmp_path: Path, sensor: NDArray[np.float64]
) -> None:
    path = write_dng(tmp_path / "a.tif", counts(sensor), meaning=CFA)
    with pytest.raises(InputError, match=r"a\.tif: is a camera's raw file .* suffix \.dng"):
        read_image(path)


def test_a_finished_picture_under_the_name_of_a_raw_file_is_no_mosaic(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 65535, (64, 80), np.uint16)
    tifffile.imwrite(tmp_path / "a.nef", pixels, photometric="minisblack")
    with pytest.raises(InputError, match=r"a\.nef: "):
        read_image(tmp_path / "a.nef")


def test_a_missing_white_balance_is_reported(tmp_path: Path, sensor: NDArray[np.float64]) -> None:
    note = "It holds no white balance: that of daylight was taken."
    path = write_dng(tmp_path / "a.dng", counts(sensor), neutral=(0.0, 0.0, 0.0))
    assert note in read_image(path).notes
    assert note not in read_image(write_dng(tmp_path / "b.dng", counts(sensor))).notes


def test_without_rawpy_the_extra_is_named(
    tmp_path: Path, sensor: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_dng(tmp_path / "a.dng", counts(sensor))
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "rawpy" else found(name)
    )
    with pytest.raises(ConfigError, match=r'a\.dng: .* pip install "\.\[raw\]" in the checkout$'):
        read_image(path)


def test_two_threads_put_standard_error_back() -> None:
    before = os.fstat(2)
    entered, left = threading.Event(), threading.Event()

    def other() -> None:
        with _without_stderr():
            entered.set()
            left.wait()

    thread = threading.Thread(target=other)
    with _without_stderr():
        thread.start()
        # A second thread admitted now would save, and later restore, the null device.
        assert not entered.wait(0.1)
    left.set()
    thread.join()
    assert os.path.samestat(before, os.fstat(2))
