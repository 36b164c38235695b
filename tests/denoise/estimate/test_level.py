"""The estimated noise level is compared with the noise added to pictures and constant images."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, maximum_filter, minimum_filter, rotate
from skimage import data

from kpca_apps.denoise.denoiser import denoise_with_info, measure_noise
from kpca_apps.denoise.estimate.level import estimate_noise
from kpca_apps.denoise.estimate.patches import areas_of_one_value
from tests.quick import quick

TEXTURED = ("brick", "grass", "gravel")


def noise(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("sigma", quick([5, 15, 25, 50], 5, 25))
@pytest.mark.parametrize("picture", ["camera", "coins", "moon"])
def test_finds_the_noise_put_into_a_photograph(picture: str, sigma: float) -> None:
    clean = getattr(data, picture)()[:256, :256].astype(float)
    estimate = estimate_noise(clean + sigma * noise(clean.shape))
    assert sigma * 0.98 < estimate.sigma < sigma * 1.03 + 0.7


@pytest.mark.parametrize("size", [64, 128, 256])
def test_pure_noise_is_estimated_within_a_few_percent_whatever_the_size(size: int) -> None:
    estimates = [estimate_noise(20 * noise((size, size), seed)).sigma for seed in range(4)]
    assert 0.97 < np.mean(estimates) / 20 < 1.01


@pytest.mark.parametrize("shape", [(16, 16), (1, 400), (400, 1)])
def test_small_images_have_an_estimate_too(shape: tuple[int, int]) -> None:
    assert estimate_noise(20 * noise(shape)).sigma == pytest.approx(20, rel=0.25)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (9, 9), (64, 64)])
def test_a_constant_image_has_no_noise(shape: tuple[int, int]) -> None:
    estimate = estimate_noise(np.full(shape, 7.0))
    assert estimate.sigma == 0


def test_estimate_is_in_the_units_of_the_image() -> None:
    plane = np.clip(128 + 10 * noise((96, 96)), 0, 255)
    full = estimate_noise(plane)
    unit = estimate_noise(plane / 255, data_range=1.0)
    assert unit.sigma == pytest.approx(full.sigma / 255, rel=1e-4) and unit.clipped == full.clipped


def test_clipping_at_white_does_not_hide_the_noise() -> None:
    clean = np.tile(np.linspace(0, 500, 200), (200, 1))
    noisy = np.clip(clean + 10 * noise(clean.shape), 0, 255)
    assert estimate_noise(noisy).sigma == pytest.approx(10, rel=0.1)


def test_noise_of_blurred_pixels_is_not_called_white() -> None:
    clean = data.camera()[:256, :256].astype(float)
    shared = gaussian_filter(noise(clean.shape), 0.7)
    estimate = estimate_noise(clean + 10 * shared / shared.std())
    assert not estimate.established


def test_each_channel_has_its_own_level() -> None:
    clean = data.astronaut()[:128, :128].astype(float)
    noisy = clean + noise(clean.shape) * [5.0, 10.0, 20.0]
    info = measure_noise(noisy, data_range=255, channel_axis=-1)
    assert info.channel_sigma == pytest.approx((5, 10, 20), rel=0.15) and info.estimated


def crop(picture: str, size: int) -> np.ndarray:
    return getattr(data, picture)()[200 : 200 + size, 100 : 100 + size].astype(float)


@pytest.mark.parametrize("picture", TEXTURED)
@pytest.mark.parametrize("size", [48, 96])
def test_clean_texture_is_unchanged_and_reported(picture: str, size: int) -> None:
    clean = crop(picture, size)
    denoised, info = denoise_with_info(clean, noise="auto", data_range=255, quality="fast")
    np.testing.assert_array_equal(denoised, clean)
    assert not info.established and info.estimated and info.sigma_range is not None
    assert info.sigma_range[0] <= info.sigma <= info.sigma_range[1]
    assert not measure_noise(clean, data_range=255).established


@pytest.mark.parametrize("picture", TEXTURED)
def test_denoising_a_noisy_texture_never_makes_it_worse(picture: str) -> None:
    clean = crop(picture, 96)
    for sigma in (5, 15):
        noisy = clean + sigma * noise(clean.shape, sigma)
        out = denoise_with_info(noisy, noise="auto", data_range=255, quality="fast")[0]
        assert np.mean((out - clean) ** 2) < 10**0.03 * np.mean((noisy - clean) ** 2)


@pytest.mark.release
def test_the_interval_has_its_nominal_coverage_for_pure_noise() -> None:
    inside = 0
    for seed in range(40):
        estimate = estimate_noise(12 * noise((48, 64), seed))
        assert estimate.sigma_range is not None
        inside += estimate.sigma_range[0] <= 12 <= estimate.sigma_range[1]
        assert estimate.established
    assert inside >= 32


def letterbox(value: float) -> np.ndarray:
    noisy = data.camera()[:192, :192] + 10 * noise((192, 192))
    noisy[:16] = value
    return noisy


def masked() -> np.ndarray:
    """The plane of scikit-image's test_estimate_sigma_masked_image."""
    plane = np.zeros((128, 128))
    plane[32:-32, 32:-32] = 100 + 10 * noise((64, 64))
    return plane


def turned() -> np.ndarray:
    clean = rotate(data.camera()[:192, :192].astype(float), 45, order=1)
    outside = rotate(np.ones((192, 192)), 45, order=1) < 1
    noisy = clean + 10 * noise(clean.shape)
    noisy[outside] = 0
    return noisy


def disc() -> np.ndarray:
    """A round mask in the middle of the picture, whose rim cuts many patches."""
    clean = data.camera()[160:384, 160:384].astype(float)
    rows, columns = np.mgrid[:224, :224] - 112
    return np.where(rows**2 + columns**2 < 100**2, clean + 10 * noise(clean.shape), clean.mean())


@pytest.mark.parametrize(
    "plane", [letterbox(16), letterbox(250), letterbox(97.5), masked(), turned(), disc()]
)
def test_constant_areas_of_any_value_do_not_hide_the_noise(plane: np.ndarray) -> None:
    estimate = estimate_noise(plane)
    assert estimate.sigma == pytest.approx(10, rel=0.1) and estimate.established


def test_white_noise_of_colours_gives_that_of_a_textured_luminance() -> None:
    texture = np.repeat(crop("gravel", 96)[..., np.newaxis], 3, axis=2)
    assert not measure_noise(texture, data_range=255, channel_axis=-1).established
    noisy = texture + 8 * noise(texture.shape)
    info = measure_noise(noisy, data_range=255, channel_axis=-1)
    assert info.established and info.sigma == pytest.approx(8, rel=0.1)


@pytest.mark.release
@pytest.mark.parametrize(("share", "value"), [(0.02, 255), (0.1, 255), (0.05, None), (0.3, None)])
def test_auto_detects_impulses(share: float, value: float | None) -> None:
    clean = data.camera()[:128, :128].astype(float)
    rng = np.random.default_rng(3)
    hit = rng.random(clean.shape) < share
    salt = rng.integers(0, 256, clean.shape) if value is None else value * rng.integers(0, 2)
    image = np.where(hit, salt, clean)
    for options in ({"noise": "auto"}, {}):
        assert denoise_with_info(image, data_range=255, strength=0, **options)[1].impulses
    assert measure_noise(image, data_range=255).impulses
    assert not denoise_with_info(image, noise="impulse", data_range=255, strength=0)[1].impulses


def test_thin_strokes_are_not_impulses() -> None:
    rows, columns = np.mgrid[:96, :96]
    strokes = np.where((rows % 12 == 3) | (columns % 17 == 5), 0.0, 255.0)
    assert not measure_noise(strokes, data_range=255).impulses


@pytest.mark.parametrize("sigma", [0, 10, 50])
@pytest.mark.parametrize("picture", quick(["camera", "gravel", "moon", "page"], "gravel", "page"))
def test_gaussian_noise_and_texture_are_not_impulses(picture: str, sigma: float) -> None:
    clean = getattr(data, picture)()[:160, :160].astype(float)
    noisy = np.clip(np.rint(clean + sigma * noise(clean.shape)), 0, 255).astype(np.uint8)
    assert not measure_noise(noisy).impulses


@pytest.mark.release
@pytest.mark.parametrize("sigma", [10.0, 20.0])
@pytest.mark.parametrize("dark", quick([0.0, 0.6], 0.6))
def test_clipped_channels_do_not_hide_the_noise_of_colours(sigma: float, dark: float) -> None:
    # A gradient below a dark blue area, where noise is clipped at black in red and green.
    shape, rng = (160, 160), np.random.default_rng(3)
    grey = np.tile(np.linspace(60, 200, shape[1]), (shape[0], 1))
    colours = np.stack([grey, grey * 0.8 + 10, grey * 0.6 + 40], axis=-1)
    colours[: int(dark * shape[0])] = [2.0, 0.0, 130.0]
    noisy = np.clip(np.rint(colours + sigma * rng.standard_normal(colours.shape)), 0, 255)
    info = measure_noise(noisy.astype(np.uint8), channel_axis=-1)
    assert info.established and info.sigma == pytest.approx(sigma, rel=0.1)


@pytest.mark.parametrize("seed", range(20))
def test_constant_areas_are_patches_with_equal_minimum_and_maximum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(8, 40, 2))
    pixels = rng.integers(0, 200, shape).astype(np.float32)
    for top, left in (rng.integers(0, shape), (0, 0), (shape[0] - 4, shape[1] - 5)):
        pixels[top : top + rng.integers(4, 12), left : left + rng.integers(4, 12)] = 7
    flat = maximum_filter(pixels, 8) == minimum_filter(pixels, 8)
    assert np.array_equal(areas_of_one_value(pixels), maximum_filter(flat, 8, origin=-1))
