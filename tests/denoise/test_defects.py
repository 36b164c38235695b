"""Isolated pixels, dead lines and padding, on drawn pictures with known truth."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter, rotate

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.defects import lone_pixels, remove_defects
from kpca_apps.denoise.denoiser import denoise_with_info
from kpca_apps.denoise.masks import padding_in
from kpca_apps.denoise.options import Options

_rng = np.random.default_rng(3)
SHAPE = 160, 192
# Blobs of several sizes, and steps between areas.
SMOOTH = gaussian_filter(_rng.standard_normal(SHAPE), 6) * 400 + 2000
CLEAN = SMOOTH + 300.0 * (gaussian_filter(_rng.standard_normal(SHAPE), 12) > 0)
NOISY = CLEAN + _rng.normal(0, 40, SHAPE)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(4)


def psnr(found: NDArray[np.floating], clean: NDArray[np.floating] = CLEAN) -> float:
    error = np.mean(np.square(found - clean))
    return float(10 * np.log10(np.ptp(clean) ** 2 / error))


SOUND = psnr(denoise_with_info(NOISY.astype("u2"), quality="fast")[0])


@pytest.mark.parametrize("share", [0.001, 0.004, 0.01])
def test_isolated_pixels_are_removed_at_any_density(rng: np.random.Generator, share: float) -> None:
    hot = rng.random(SHAPE) < share
    image = np.where(hot, NOISY + rng.uniform(1500, 40000, SHAPE), NOISY).astype("u2")
    found, info = denoise_with_info(image, quality="fast")
    assert abs(info.defects.points - hot.sum()) <= 0.1 * hot.sum() + 1
    assert psnr(found) > SOUND - 0.8
    assert not info.impulses


@pytest.mark.parametrize("size", [22, 26, 32])
def test_ends_of_letters_are_kept(rng: np.random.Generator, size: int) -> None:
    # Lead letters on an X-ray picture: far brighter than anything else.
    drawn = Image.new("L", (256, 256), 0)
    ImageDraw.Draw(drawn).text((20, 20), "R 7 AP", fill=255, font_size=size)
    body = gaussian_filter(rng.standard_normal((256, 256)), 6)
    noisy = 1400 + 400 * body / body.std() + rng.normal(0, 22, body.shape)
    assert lone_pixels(np.where(np.asarray(drawn) > 100, 16000, noisy).astype("f4")).sum() == 0


def test_stars_are_kept(rng: np.random.Generator) -> None:
    sky = np.full(SHAPE, 100.0)
    for row, column in rng.uniform(4, 150, (60, 2)):
        far = np.hypot(*(np.indices(SHAPE) - np.reshape([row, column], (2, 1, 1))))
        sky += rng.uniform(200, 20000) * np.exp(-(far**2) / (2 * 0.6**2))
    assert lone_pixels(rng.poisson(sky).astype("f4"), 1.0).sum() == 0


def test_dead_columns_and_rows_are_filled() -> None:
    image = NOISY.astype("u2")
    image[:, 40], image[:, 97], image[71] = 0, 65535, 30000
    found, info = denoise_with_info(image, quality="fast")
    assert info.defects[:3] == (0, 2, 1)
    assert psnr(found) > SOUND - 0.8


def test_a_dead_column_is_found_in_a_dark_picture() -> None:
    image = (NOISY - CLEAN.min() + 130).clip(1).astype("u2")
    image[:, 97] = 0
    _, info = denoise_with_info(image, quality="fast")
    assert info.defects.columns == 1


@pytest.mark.parametrize("strength", [20, 60, 150])
def test_stripes_are_removed(rng: np.random.Generator, strength: float) -> None:
    for stripes in (rng.normal(0, strength, (SHAPE[0], 1)), rng.normal(0, strength, SHAPE[1])):
        striped = NOISY + stripes
        found, info = denoise_with_info(striped.astype("u2"), quality="fast")
        assert sum(info.defects[3:]) >= len(stripes) - 2 and sum(info.defects[:3]) == 0
        assert psnr(found) > psnr(striped) + 8


@pytest.mark.parametrize("pattern", ["scan lines", "weave", "text", "bars"])
def test_a_regular_picture_has_no_stripes(rng: np.random.Generator, pattern: str) -> None:
    row, column = np.indices(SHAPE)
    page = Image.new("L", SHAPE[::-1], 250)
    for line in range(12):
        ImageDraw.Draw(page).text((4, 3 + 13 * line), "def denoise(image): return x", fill=30)
    patterns = {
        "scan lines": CLEAN * (0.8 + 0.2 * np.cos(2.1 * row)),
        "weave": 2000 + 100 * np.sin(1.2 * row) + 100 * np.sin(1.2 * column),
        "text": 8.0 * np.asarray(page),
        "bars": 2000 + 3000.0 * np.repeat(rng.random(96) > 0.5, 2) + 0 * CLEAN,
    }
    for noise in (0.0, NOISY - CLEAN):
        _, info = denoise_with_info((patterns[pattern] + noise).astype("u2"), quality="draft")
        assert not info.defects


@pytest.mark.parametrize("thickness", [2, 3, 4, 6])
def test_layers_of_a_picture_are_no_stripes(rng: np.random.Generator, thickness: int) -> None:
    layers = rng.normal(0, 10, 400)[np.arange(400) // thickness]
    layered = 128 + layers[:, np.newaxis] + rng.normal(0, 6, (400, 256))
    for image in (layered, layered.T):
        assert not remove_defects(image[np.newaxis].astype(np.float32))


def test_stripes_of_a_region_are_counted_in_the_region(rng: np.random.Generator) -> None:
    striped = NOISY + rng.normal(0, 60, (SHAPE[0], 1))
    _, info = denoise_with_info(striped, quality="draft", region=(0, 0, 120, 100))
    assert info.defects == (0, 0, 0, 0, 100)


def test_a_dead_row_that_crosses_a_dead_column_is_found(rng: np.random.Generator) -> None:
    crossed = (NOISY + rng.normal(0, 12, SHAPE))[np.newaxis].astype(np.float32)
    crossed[0, 100], crossed[0, :, 60] = 8000.0, 0.0
    assert remove_defects(crossed)[:3] == (0, 1, 1)


def test_drawn_lines_and_bars_are_kept(rng: np.random.Generator) -> None:
    drawn = NOISY.copy()
    drawn[10:150, 30] = drawn[20, :180] = 8000.0  # axes of a plot
    bars = 2000 + 3000 * np.repeat(rng.random(96) > 0.5, 2)[np.newaxis] + NOISY - CLEAN
    for image in (drawn, bars, bars[:, :160].T):
        found, info = denoise_with_info(image.astype("u2"), quality="fast")
        assert not info.defects
        assert np.std(found - image) < 60


def test_letters_and_dither_are_not_impulses(rng: np.random.Generator) -> None:
    page = Image.new("L", (320, 200), 250)
    for line in range(14):
        text = f"{line:02d} def denoise(image, sigma=None): return x"
        ImageDraw.Draw(page).text((8, 6 + 13 * line), text, fill=30)
    letters = np.array(page)
    order = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) / 16 + 1 / 32
    grey = (CLEAN - CLEAN.min()) / np.ptp(CLEAN)
    dither = np.where(grey > np.tile(order, (40, 48)), 255, 0).astype("u1")
    noisy = np.clip(letters + rng.normal(0, 12, letters.shape), 0, 255).astype("u1")
    for image in (letters, dither, noisy):
        _, info = denoise_with_info(image, quality="fast")
        assert not info.impulses and not info.defects


@pytest.mark.parametrize("value", [0.0, -2000.0, np.nan])
@pytest.mark.parametrize("kind", ["f4", "i2"])
def test_padding_is_neither_used_nor_changed(value: float, kind: str) -> None:
    if kind == "i2" and np.isnan(value):
        pytest.skip("no integer is NaN")
    outside = rotate(np.ones(SHAPE), 9, order=0, reshape=False) < 0.5
    image = np.where(outside, value, NOISY - 2000).astype(kind)
    found, info = denoise_with_info(image, quality="fast")
    np.testing.assert_array_equal(found[outside], image[outside])
    assert info.empty == pytest.approx(outside.mean(), abs=0.001)
    other = np.where(outside, image[~outside].max() + 500, image).astype(kind)
    again, _ = denoise_with_info(other, quality="fast")
    np.testing.assert_array_equal(again[~outside], found[~outside])


def test_clipped_noise_is_not_padding(rng: np.random.Generator) -> None:
    dark = np.clip(gaussian_filter(rng.standard_normal(SHAPE), 12) * 600 + 5, 0, 255)
    noisy = np.clip(dark + rng.normal(0, 8, SHAPE), 0, 255).round()
    assert (noisy == 0).mean() > 0.2 and not padding_in(noisy[np.newaxis, np.newaxis]).any()


def test_a_pixel_between_two_areas_borders_both(rng: np.random.Generator) -> None:
    page = rng.integers(1, 250, (40, 60))
    page[:, :10] = page[:, 11:21] = 0
    page[[3, 17, 31], 10] = 0  # 3 of 40 neighbours of the first area, 3 of 80 of the second
    found = padding_in(page[np.newaxis, np.newaxis])[0]
    assert found[:, 11:21].all() and found.sum() == 400
    # Two strips of zeros (columns 0-9 and 11-20) are one area, as column 10 joins them from row 30
    # down. The area has 90 neighbours: 30 pixels in column 10 and 60 in column 21. Four of the 90
    # are 0, which is fewer than the limit of 5 %. If column 10 were counted once for each strip,
    # 8 of 120 neighbours would be 0, which is more than 5 %.
    page = rng.integers(1, 250, (60, 80))
    page[:, :10] = page[:, 11:21] = page[30:, 10] = 0
    page[[4, 10, 16, 22], 10] = 0
    assert padding_in(page[np.newaxis, np.newaxis]).sum() == 60 * 20 + 30


def test_a_page_without_data_does_not_affect_others(tmp_path: Path) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    cube = np.stack([NOISY, np.full(SHAPE, np.nan), NOISY[::-1]]).astype("f4")
    (tmp_path / "in").mkdir()
    fits.PrimaryHDU(cube).writeto(tmp_path / "in" / "a.fits")
    denoise = GroupDenoiser(Options(quality="fast"))
    (image,) = run_batch([tmp_path / "in"], tmp_path / "out", {}, denoise=denoise).images
    assert image.status == "ok" and any("33 % of its pixels are no data" in n for n in image.notes)
    found = fits.getdata(tmp_path / "out" / image.output)
    assert np.isnan(found[1]).all() and psnr(found[0]) > psnr(NOISY) + 5


@pytest.mark.parametrize("peak", [1, 3, 10])
def test_integer_and_float_counts_are_denoised_alike(
    rng: np.random.Generator, peak: int, tmp_path: Path
) -> None:
    light = (CLEAN - CLEAN.min()) / np.ptp(CLEAN) * peak + 0.05
    counts = rng.poisson(light)
    results = [denoise_with_info(counts.astype(kind), quality="fast") for kind in ("u2", "f4")]
    assert [info.laws[0].gain for _, info in results] == pytest.approx([1.0, 1.0])
    np.testing.assert_allclose(results[0][0], results[1][0], atol=0.01 * peak)
    assert psnr(results[0][0], light) > psnr(counts, light) + 8
    # A file of integers keeps the mean brightness, too.
    (tmp_path / "in").mkdir()
    Image.fromarray(counts.astype("u1")).save(tmp_path / "in" / "a.png")
    denoise = GroupDenoiser(Options(quality="fast"))
    (image,) = run_batch([tmp_path / "in"], tmp_path / "out", {}, denoise=denoise).images
    found = np.asarray(Image.open(tmp_path / "out" / image.output)).astype(float)
    assert found.mean() == pytest.approx(light.mean(), rel=0.05)
    assert gaussian_filter(found - light, 8).std() < 0.05 * peak
