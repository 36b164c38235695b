"""Estimated noise laws match simulated detectors; none is found in pictures without a law."""

import numpy as np
import pytest
from scipy.fft import dctn
from scipy.ndimage import gaussian_filter
from skimage import data

from kpca_apps import denoise_with_info
from kpca_apps.denoise.denoiser import measure_noise
from kpca_apps.denoise.estimate.law import blurred_spectrum, measure_laws
from kpca_apps.denoise.result import NoiseLaw


def scene(size: int = 192, seed: int = 0) -> np.ndarray:
    """A smooth scene with a few edges, in 0..1."""
    light = gaussian_filter(np.random.default_rng(seed).standard_normal((size, size)), 12)
    light = (light - light.min()) / np.ptp(light)
    light[40:90, 60:120] *= 0.3
    return np.asarray(light)


def seen(gain: float, read: float, offset: float, peak: float, seed: int = 1) -> np.ndarray:
    """Simulated detector counts: Poisson noise at a photon level, gain, read noise and offset."""
    rng = np.random.default_rng(seed)
    light = rng.poisson(peak * scene())
    return np.asarray(gain * light + offset + read * rng.standard_normal(light.shape))


def law_of(image: np.ndarray, step: float = 0.0) -> NoiseLaw:
    (law,), _ = measure_laws(image[np.newaxis], step)
    assert law is not None
    return law


@pytest.mark.parametrize(
    ("gain", "read", "offset", "peak"),
    [(2.0, 0.0, 0.0, 100), (0.5, 3.0, 100.0, 400), (20, 9, 0, 60)],
)
def test_the_law_of_a_detector_is_estimated(
    gain: float, read: float, offset: float, peak: float
) -> None:
    law = law_of(seen(gain, read, offset, peak))
    assert law.established and law.rises and law.blur <= 0.3
    brightness = offset + gain * peak * np.array([0.2, 0.5, 0.8])
    truth = gain * (brightness - offset) + read**2
    np.testing.assert_allclose([*map(law.variance, brightness)], truth, rtol=0.12)


@pytest.mark.parametrize("blur", [0.5, 0.7])
def test_a_blur_is_estimated_with_the_remaining_noise(
    blur: float,
) -> None:
    clean = 20 + 200 * scene()
    noise = np.random.default_rng(2).standard_normal(clean.shape) * np.sqrt(4 * clean)
    point = np.zeros((25, 25))
    point[12, 12] = 1
    left = np.square(gaussian_filter(point, blur)).sum()
    law = law_of(clean + gaussian_filter(noise, blur))
    assert law.established and law.rises and law.blur == pytest.approx(blur, abs=0.1)
    brightness = np.array([60.0, 120, 180])
    np.testing.assert_allclose([*map(law.variance, brightness)], left * 4 * brightness, rtol=0.25)


def test_white_noise_does_not_rise_with_brightness() -> None:
    law = law_of(200 * scene() + 5 * np.random.default_rng(2).standard_normal((192, 192)))
    assert law.established and not law.rises and law.blur <= 0.3
    np.testing.assert_allclose(np.sqrt([law.variance(20), law.variance(180)]), 5, rtol=0.1)


@pytest.mark.parametrize("name", ["brick", "grass", "gravel", "moon", "coins", "camera", "page"])
def test_texture_has_no_law(name: str) -> None:
    assert not law_of(getattr(data, name)(), 1.0).established


@pytest.mark.parametrize("kind", ["patchy", "along rows"])
def test_even_texture_with_the_spectrum_of_blurred_noise_has_no_law(kind: str) -> None:
    grain, strength, noise = np.random.default_rng(0).standard_normal((3, 256, 256))
    texture = gaussian_filter(grain, 0.5)
    if kind == "patchy":
        strength = gaussian_filter(strength, 3)
        texture *= np.exp(0.23 * strength / strength.std())
    else:
        texture = gaussian_filter(grain, (0.35, 0.65))
    light = 120 + 40 * np.sin(np.arange(256) / 40)[:, np.newaxis]
    assert not law_of(light + 12 * texture / texture.std() + 3 * noise).established


def test_a_constant_picture_has_no_law_of_brightness() -> None:
    assert not law_of(np.random.default_rng(3).poisson(400.0, (128, 128))).rises


def test_rounding_is_not_noise_of_the_picture() -> None:
    rounded = np.round(8 * scene())
    cleaned, info = denoise_with_info(rounded.astype(np.uint8), quality="fast")
    assert not info.established
    np.testing.assert_array_equal(cleaned, rounded)


@pytest.mark.parametrize("blur", [0.3, 0.6, 0.85])
def test_the_spectrum_is_that_of_blurred_noise(blur: float) -> None:
    noise = gaussian_filter(np.random.default_rng(4).standard_normal((1600, 1600)), blur)
    blocks = noise.reshape(200, 8, 200, 8).swapaxes(1, 2)
    energy = np.square(dctn(blocks, axes=(2, 3), norm="ortho")).mean(axis=(0, 1))
    np.testing.assert_allclose(blurred_spectrum(blur), energy / noise.var(), rtol=0.1, atol=0.01)


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 1.0), (0.3, -0.7)])
def test_the_law_follows_the_units(scale: float, shift: float) -> None:
    image = seen(2.0, 1.0, 0.0, 80)
    law, other = law_of(image), law_of(image * scale + shift * scale * 100)
    # Patches are compared in single precision, which limits the agreement.
    np.testing.assert_allclose(other.gain, law.gain * scale, rtol=1e-2)
    back = law.in_units(1 / scale, shift * scale * 100)
    np.testing.assert_allclose(other.variance(scale * 80), back.variance(scale * 80), rtol=1e-2)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float64"])
def test_auto_removes_poisson_noise(dtype: str) -> None:
    offset, gain = (100.0, 4.0) if dtype == "uint16" else (0.0, 4.0)
    clean = offset + gain * 50 * scene()
    noisy = np.clip(np.round(seen(gain, 1.0, offset, 50)), 0, 32767).astype(dtype)
    cleaned, info = denoise_with_info(noisy, quality="fast")
    assert info.noise == "poisson" and info.established
    rms = [np.sqrt(np.mean(np.square(image - clean))) for image in (noisy.astype(float), cleaned)]
    assert rms[1] < 0.3 * rms[0]
    (law,) = info.laws
    middle = offset + gain * 25
    assert law.variance(middle) == pytest.approx(gain * (middle - offset) + 1, rel=0.15)


def test_auto_removes_correlated_noise() -> None:
    clean = 20 + 200 * scene()
    noise = np.random.default_rng(5).standard_normal(clean.shape) * np.sqrt(6 * clean)
    noisy = clean + gaussian_filter(noise, 0.7)
    errors = {}
    for kind in ("auto", "gaussian", "poisson", "camera"):
        cleaned = denoise_with_info(noisy, noise=kind, data_range=255, quality="fast")[0]
        errors[kind] = float(np.sqrt(np.mean(np.square(cleaned - clean))))
    assert errors["auto"] < 0.35 * np.std(noisy - clean)
    assert errors["auto"] <= 1.15 * min(errors.values())


def test_correlated_noise_is_not_poisson_noise_whatever_its_variance() -> None:
    light = 100 + 40 * scene()
    noise = gaussian_filter(np.random.default_rng(6).standard_normal(light.shape), 0.6)
    # Add fine detail, correlated between pixels, of deviation 14, like the noise of 196 counts.
    assert law_of(np.round(light + 14 * noise / noise.std()), 1.0).blur == 0.6
    counts = np.random.default_rng(7).poisson(light)
    assert (law_of(counts, 1.0).gain, law_of(counts, 1.0).blur) == (1.0, 0.0)


def test_a_given_level_has_no_law() -> None:
    assert denoise_with_info(seen(4.0, 1.0, 20.0, 50), sigma=5.0, quality="fast")[1].laws == ()
    assert measure_noise(np.zeros((8, 8), np.uint8)).laws == ()


def test_noise_is_correlated_within_pages_only() -> None:
    rng = np.random.default_rng(6)
    clean = np.stack([20 + level * scene(128) for level in (60, 200, 60, 200)])
    noise = rng.standard_normal(clean.shape) * np.sqrt(4 * clean)
    pages = clean + np.stack([gaussian_filter(page, 0.7) for page in noise])
    cleaned, info = denoise_with_info(pages, stack_axis=0, data_range=255, quality="fast")
    assert info.noise == "poisson" and info.laws[0].blur >= 0.6
    errors = np.sqrt(np.mean(np.square(cleaned - clean), axis=2))
    # The first and last rows of a page contain nothing of the page above or below it.
    assert errors[:, [0, -1]].mean() < 2.5 * errors.mean()


def test_empty_channels_keep_their_position_without_noise() -> None:
    image = np.zeros((192, 192, 3))
    image[..., 1] = seen(4.0, 1.0, 20.0, 50)
    cleaned, info = denoise_with_info(image, channel_axis=-1, data_range=255, quality="fast")
    assert info.noise == "poisson" and len(info.laws) == 3
    assert [law.gain > 0 for law in info.laws] == [False, True, False]
    alone = denoise_with_info(image[..., 1], data_range=255, quality="fast")[0]
    # The results differ only where rounding decides whether a component exceeds the threshold.
    difference = np.abs(cleaned[..., 1] - alone)
    assert np.quantile(difference, 0.999) < 0.5 and difference.max() < 3
    assert not cleaned[..., ::2].any()


def test_poisson_noise_of_three_colours_is_removed() -> None:
    clean = np.stack([20 + peak * scene(seed=k) for k, peak in enumerate((200, 120, 60))], axis=-1)
    rng = np.random.default_rng(7)
    noisy = 20 + 4.0 * rng.poisson((clean - 20) / 4.0) + rng.standard_normal(clean.shape)
    cleaned, info = denoise_with_info(noisy, channel_axis=-1, data_range=255, quality="fast")
    assert info.noise == "poisson"
    assert np.std(cleaned - clean) < 0.3 * np.std(noisy - clean)


def test_salt_and_pepper_has_no_law() -> None:
    rng = np.random.default_rng(8)
    noisy = data.camera()[:256, :256] + 5 * rng.standard_normal((256, 256))
    hit = rng.random(noisy.shape) < 0.1
    noisy[hit] = 255 * rng.integers(0, 2, hit.sum())
    _, info = denoise_with_info(noisy.clip(0, 255).astype(np.uint8), strength=0)
    assert info.noise == "gaussian" and info.impulses


@pytest.mark.parametrize("sigma", [None, 12.0])
def test_grey_saved_as_three_colours_is_denoised_as_grey(sigma: float | None) -> None:
    grey = np.clip(np.round(seen(4.0, 1.0, 20.0, 50)), 0, 255).astype(np.uint8)
    colours = np.repeat(grey[..., np.newaxis], 3, axis=2)
    alone, info = denoise_with_info(grey, sigma=sigma, quality="fast")
    cleaned, same = denoise_with_info(colours, sigma=sigma, channel_axis=-1, quality="fast")
    np.testing.assert_array_equal(cleaned, np.repeat(alone[..., np.newaxis], 3, axis=2))
    assert (same.noise, same.channel_sigma) == (info.noise, 3 * info.channel_sigma)
    assert len(same.laws) == 3 * len(info.laws)


def test_the_interval_of_a_law_covers_the_scatter_of_its_points() -> None:
    # Draw the image of a depth camera. In `bent`, the variance rises with the fourth power of the
    # depth, whereas a law is linear.
    depth = np.full((256, 256), 3200.0) + np.linspace(0, 400, 256)[:, None]
    depth[80:220, 60:140], depth[45:135, 145:235] = 1500, 2100
    rng = np.random.default_rng(0)
    bent = law_of(depth + rng.standard_normal(depth.shape) * 1.2e-6 * depth**2)
    straight = law_of(depth + rng.standard_normal(depth.shape) * np.sqrt(depth))
    assert bent.interval[1] > 3 and bent.interval[0] < 1 / 3
    assert straight.interval[1] < 1.6
