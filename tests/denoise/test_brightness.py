"""The law by which noise grows with brightness, against laws that are known."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from skimage import data

from kpca_apps import denoise_with_info
from kpca_apps.denoise.brightness import _UPPER, SPREAD, noise_law
from kpca_apps.denoise.noise import COSINES


def scene(size: int = 192, seed: int = 0) -> np.ndarray:
    """Smooth light with a few edges, from 0 to 1."""
    rng = np.random.default_rng(seed)
    light = gaussian_filter(rng.standard_normal((size, size)), 12)
    light = (light - light.min()) / np.ptp(light)
    light[40:90, 60:120] *= 0.3
    return np.asarray(light)


def seen(gain: float, read: float, offset: float, peak: float, seed: int = 1) -> np.ndarray:
    """Counts of a detector: Poisson light of so many photons, gain, readout noise and offset."""
    rng = np.random.default_rng(seed)
    light = rng.poisson(peak * scene())
    return np.asarray(gain * light + offset + read * rng.standard_normal(light.shape))


@pytest.mark.parametrize(
    ("gain", "read", "offset", "peak"),
    [(2.0, 0.0, 0.0, 100), (0.5, 3.0, 100.0, 400), (20, 9, 0, 60)],
)
def test_the_law_of_a_detector_is_found(
    gain: float, read: float, offset: float, peak: float
) -> None:
    law = noise_law(seen(gain, read, offset, peak))
    assert law is not None and law.rises
    brightness = offset + gain * peak * np.array([0.2, 0.5, 0.8])
    truth = gain * (brightness - offset) + read**2
    np.testing.assert_allclose(law.variance(brightness), truth, rtol=0.12)


def test_white_noise_is_as_strong_in_the_light() -> None:
    noisy = 200 * scene() + 5 * np.random.default_rng(2).standard_normal((192, 192))
    law = noise_law(noisy)
    assert law is not None and not law.rises
    assert law.deviation(noisy) == pytest.approx(5, rel=0.05)


@pytest.mark.parametrize("name", ["brick", "grass", "gravel", "moon", "coins"])
def test_texture_has_no_law(name: str) -> None:
    assert noise_law(getattr(data, name)()) is None


def test_an_even_picture_says_nothing_of_brightness() -> None:
    counts = np.random.default_rng(3).poisson(400.0, (128, 128))
    law = noise_law(counts)
    assert law is None or not law.rises


def test_energy_of_white_noise_spreads_as_chi_squared_does() -> None:
    patches = np.random.default_rng(4).standard_normal((20_000, 64))
    energy = np.square(patches @ COSINES)[:, _UPPER].mean(axis=1)
    assert energy.std() / energy.mean() == pytest.approx(SPREAD, rel=0.03)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float64"])
def test_auto_takes_out_the_noise_of_light(dtype: str) -> None:
    offset, gain = (100.0, 4.0) if dtype == "uint16" else (0.0, 4.0)
    clean = offset + gain * 50 * scene()
    noisy = np.clip(np.round(seen(gain, 1.0, offset, 50)), 0, 65535).astype(dtype)
    cleaned, info = denoise_with_info(noisy, quality="fast")
    assert info.noise == "poisson" and info.established
    rms = [np.sqrt(np.mean(np.square(image - clean))) for image in (noisy.astype(float), cleaned)]
    assert rms[1] < 0.3 * rms[0]


def test_pages_of_a_stack_share_the_law() -> None:
    pages = np.stack([seen(4.0, 1.0, 20.0, 50, seed) for seed in (5, 6, 7)])
    cleaned, info = denoise_with_info(pages, stack_axis=0, data_range=255, quality="fast")
    assert info.noise == "poisson"
    clean = 20 + 200 * scene()
    assert np.mean(np.square(cleaned - clean)) < 0.05 * np.mean(np.square(pages - clean))


@pytest.mark.parametrize(("offset", "has_constant"), [(0.0, False), (30.0, True)])
def test_a_constant_is_kept_where_it_is_plainly_there(offset: float, has_constant: bool) -> None:
    law = noise_law(seen(1.0, 0.0, offset, 100))
    assert law is not None
    assert (law.of_light_alone().constant != 0) == has_constant
