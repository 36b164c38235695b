"""The noise level against noise put in, on pictures and without them."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from skimage import data

from kpca_apps.denoise.denoiser import measure_noise
from kpca_apps.denoise.noise import estimate_noise


def noise(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("sigma", [5, 15, 25, 50])
@pytest.mark.parametrize("picture", ["camera", "coins", "moon"])
def test_finds_the_noise_put_into_a_photograph(picture: str, sigma: float) -> None:
    clean = getattr(data, picture)()[:256, :256].astype(float)
    estimate = estimate_noise(clean + sigma * noise(clean.shape))
    assert sigma * 0.98 < estimate.sigma < sigma * 1.03 + 0.7
    assert not estimate.correlated


@pytest.mark.parametrize("size", [64, 128, 256])
def test_pure_noise_is_estimated_within_a_few_percent_whatever_the_size(size: int) -> None:
    estimates = [estimate_noise(20 * noise((size, size), seed)).sigma for seed in range(4)]
    assert 0.99 < np.mean(estimates) / 20 < 1.05


@pytest.mark.parametrize("shape", [(16, 16), (1, 400), (400, 1)])
def test_small_images_have_an_estimate_too(shape: tuple[int, int]) -> None:
    assert estimate_noise(20 * noise(shape)).sigma == pytest.approx(20, rel=0.25)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (9, 9), (64, 64)])
def test_a_constant_image_has_no_noise(shape: tuple[int, int]) -> None:
    estimate = estimate_noise(np.full(shape, 7.0))
    assert estimate.sigma == 0
    assert not estimate.correlated


def test_estimate_is_in_the_units_of_the_image() -> None:
    plane = np.clip(128 + 10 * noise((96, 96)), 0, 255)
    full = estimate_noise(plane)
    unit = estimate_noise(plane / 255, data_range=1.0)
    assert unit.sigma == pytest.approx(full.sigma / 255, rel=1e-4)
    assert unit.patches == full.patches


def test_clipping_at_white_does_not_hide_the_noise() -> None:
    clean = np.tile(np.linspace(0, 500, 200), (200, 1))
    noisy = np.clip(clean + 10 * noise(clean.shape), 0, 255)
    assert estimate_noise(noisy).sigma == pytest.approx(10, rel=0.1)


def test_noise_shared_by_neighbours_is_called_correlated() -> None:
    clean = data.camera()[:256, :256].astype(float)
    shared = gaussian_filter(noise(clean.shape), 0.7)
    estimate = estimate_noise(clean + 10 * shared / shared.std())
    assert estimate.correlated
    assert estimate.whiteness < 0.4


def test_each_channel_has_its_own_level() -> None:
    clean = data.astronaut()[:128, :128].astype(float)
    noisy = clean + noise(clean.shape) * [5.0, 10.0, 20.0]
    info = measure_noise(noisy, data_range=255, channel_axis=-1)
    assert info.channel_sigma == pytest.approx((5, 10, 20), rel=0.15)
    assert info.estimated
