import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from skimage.data import camera

from kpca_apps import denoise_kpca, denoise_with_info, measure_noise
from kpca_apps.denoise.noise.clipping import before_clipping, clipped_moments, find_clipping


def dark_scene(size: int = 160) -> np.ndarray:
    light = gaussian_filter(np.random.default_rng(0).standard_normal((size, size)), 10)
    light = np.clip((light - np.quantile(light, 0.4)) / np.ptp(light) * 2, 0, 1)
    return np.asarray(255 * light)


@pytest.mark.parametrize("ends", [(0.0, 255.0), (0.0, 1e4), (-1e4, 255.0)])
def test_moments_are_those_of_clipped_samples(ends: tuple[float, float]) -> None:
    brightness = np.array([0.0, 20, 128, 240, 255])
    samples = brightness[:, None] + 40 * np.random.default_rng(1).standard_normal((5, 400_000))
    samples = np.clip(samples, *ends)
    mean, deviation = clipped_moments(brightness, 40.0, ends)
    np.testing.assert_allclose(mean, samples.mean(axis=1), atol=0.3)
    np.testing.assert_allclose(deviation, samples.std(axis=1), rtol=0.01)


def test_the_transform_stabilises_the_variance_and_inverts_the_mean() -> None:
    rng = np.random.default_rng(2)
    steps = np.repeat([0.0, 30, 80, 150, 255], 200_000)
    noisy = np.clip(steps + 30 * rng.standard_normal(steps.shape), 0, 255).astype(np.float32)
    clipping = find_clipping(noisy, 30.0)
    assert clipping is not None
    even = clipping[0](noisy).reshape(5, -1).astype(np.float64)
    # At levels 0 and 255, clipping has reduced the standard deviation from 30 to about 18.
    # Stabilised values have a standard deviation of about 30 at all levels.
    np.testing.assert_allclose(even.std(axis=1), 30, rtol=0.22)
    back = clipping[1](even.mean(axis=1).astype(np.float32))
    np.testing.assert_allclose(back, [0, 30, 80, 150, 255], atol=1.0)


def test_a_bright_star_does_not_change_the_transform_of_the_dark() -> None:
    dark = 10 + 30 * np.random.default_rng(3).standard_normal(10_000)
    dark = np.clip(dark, 0, None).astype(np.float32)
    found = [find_clipping(np.append(dark, np.float32(star)), 30.0) for star in (1e3, 1e8)]
    few, many = ([look_up(dark) for look_up in one or ()] for one in found)
    np.testing.assert_allclose(few, many, atol=0.01)
    assert np.ptp(few) > 100


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_removed_noise_gives_the_brightness_before_clipping(mirrored: bool) -> None:
    steps = np.repeat(np.float32([0, 10, 30, 80, 150]), 100_000)
    deviation = 20 + steps / 10
    noise = np.random.default_rng(5).standard_normal(steps.shape)
    given = np.clip(steps + deviation * noise, 0, 255).astype(np.float32)
    mean = clipped_moments(steps, deviation, (0.0, 1e4))[0].astype(np.float32)
    if mirrored:
        given, mean, steps = 255 - given, 255 - mean, 255 - steps
    np.testing.assert_allclose(before_clipping(given, mean), steps, atol=0.5)


def test_unclipped_values_are_not_corrected() -> None:
    mean = dark_scene().astype(np.float32)
    given = mean + np.float32(10) * np.random.default_rng(6).standard_normal(mean.shape)
    np.testing.assert_array_equal(before_clipping(given.astype(np.float32), mean), mean)


def test_clipped_blacks_are_restored_beside_flat_areas() -> None:
    clean = np.repeat([2.0, 100.0, 200.0, 200.0], 10_000).reshape(200, 200)
    noise = 5 * np.random.default_rng(9).standard_normal(clean.shape)
    given = np.clip(clean + noise, 0, 255).astype(np.float32)
    mean = np.where(clean == 2, given[clean == 2].mean(), clean).astype(np.float32)
    np.testing.assert_allclose(before_clipping(given, mean), clean, atol=0.3)


@pytest.mark.parametrize("width", [0.6, 0.9])
def test_a_saturated_red_keeps_its_colour_in_correlated_noise(width: float) -> None:
    red = np.stack([60 + dark_scene() / 3, *2 * [np.full((160, 160), 3.0)]], axis=-1)
    noise = np.random.default_rng(7).standard_normal(red.shape)
    noise = gaussian_filter(noise, (width, width, 0))
    noisy = np.clip(np.round(red + 14 * noise / noise.std()), 0, 255).astype(np.uint8)
    cleaned = denoise_kpca(noisy, quality="fast", channel_axis=-1).astype(float)
    washed, left = ((image - red)[..., 1:].mean() for image in (noisy, cleaned))
    assert washed > 3.5
    assert abs(left) < washed / 3


def test_a_dark_grey_picture_stays_dark_in_correlated_noise() -> None:
    clean = 0.15 * dark_scene()
    noise = gaussian_filter(np.random.default_rng(8).standard_normal(clean.shape), 0.6)
    noisy = np.clip(np.round(clean + 12 * noise / noise.std()), 0, 255).astype(np.uint8)
    cleaned = denoise_kpca(noisy, quality="fast").astype(float)
    assert abs(np.mean(cleaned - clean)) < 0.2 * np.mean(noisy - clean)


def test_without_values_at_an_end_nothing_was_clipped() -> None:
    noisy = 100 + 10 * np.random.default_rng(3).standard_normal((64, 64))
    assert find_clipping(noisy.astype(np.float32), 10.0) is None


@pytest.mark.parametrize("level", [1e-9, 1e-160, 1e-300])
def test_noise_below_the_rounding_of_pixels_was_not_clipped(level: float) -> None:
    clipped = np.repeat(np.float32([0, 30, 255]), 100)
    assert find_clipping(clipped, 255 * level) is None
    image = np.tile(clipped, (16, 1)).reshape(-1, 60).astype(np.float64)
    np.testing.assert_allclose(denoise_kpca(image, sigma=255 * level, quality="draft"), image)


@pytest.mark.parametrize("known", [True, False])
def test_a_dark_picture_stays_dark_in_strong_noise(known: bool) -> None:
    clean = dark_scene()
    noise = 50 * np.random.default_rng(4).standard_normal(clean.shape)
    noisy = np.clip(np.round(clean + noise), 0, 255).astype(np.uint8)
    cleaned, info = denoise_with_info(noisy, sigma=50.0 if known else None, quality="fast")
    assert info.noise == "gaussian" and info.sigma == pytest.approx(50, rel=0.08)
    dark = clean < 5
    assert noisy[dark].mean() > 15
    assert abs(cleaned[dark].mean() - clean[dark].mean()) < 5
    # Compare with the same noise in an image of floats, which is not clipped.
    unclipped = denoise_kpca(clean + noise, sigma=50.0, data_range=255, quality="fast")
    errors = [np.mean(np.square(np.clip(x, 0, 255) - clean)) for x in (cleaned, unclipped)]
    assert errors[0] < (1.3 if known else 2.0) * errors[1]


def test_the_interval_contains_the_reported_level() -> None:
    noisy = np.clip(camera() + 20 * np.random.default_rng(0).standard_normal((512, 512)), 0, 255)
    info = measure_noise(noisy, data_range=255)
    assert info.sigma_range is not None and info.sigma_range[0] <= info.sigma <= info.sigma_range[1]


def test_noise_bent_by_a_tone_curve_gets_the_brightness_of_its_light_back() -> None:
    light = np.repeat([0.01, 0.05, 0.1, 0.3], 50_000)
    noise = np.random.default_rng(10).standard_normal(light.shape)
    clean = 255 * light ** (1 / 2.2)
    given = 255 * np.maximum(light + (0.03 + 0.1 * light) * noise, 0) ** (1 / 2.2)
    mean = given.reshape(4, -1).mean(axis=1).repeat(50_000)
    assert np.abs(mean - clean).max() > 3
    for bent in (given, mean + 5 * noise):
        truth = clean if bent is given else mean
        found = before_clipping(bent.astype(np.float32), mean.astype(np.float32), may_be_bent=True)
        np.testing.assert_allclose(found, truth, atol=0.5)
