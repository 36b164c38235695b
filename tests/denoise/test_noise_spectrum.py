"""The spectrum of noise against filters whose spectrum is known."""

import numpy as np
import pytest
from scipy.ndimage import convolve1d
from skimage import data

from kpca_apps.denoise.noise import COLOUR_GROWTH, noise_spectrum

CLEAN = data.camera()[:256, :256].astype(np.float32)


def white(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(CLEAN.shape).astype(np.float32)


@pytest.mark.parametrize("sigma", [10, 30])
def test_white_noise_in_a_photograph_is_about_even(sigma: float) -> None:
    spectrum = noise_spectrum(CLEAN + sigma * white())
    assert np.sqrt(np.mean(spectrum**2)) == pytest.approx(sigma, rel=0.15)
    assert spectrum[4:, 4:].std() < 0.1 * spectrum[4:, 4:].mean()


def test_noise_of_two_rows_together_has_the_spectrum_of_their_sum() -> None:
    smooth = convolve1d(10 * white(1), [0.5, 0.5], axis=0)
    spectrum = noise_spectrum(100 + smooth)
    expected = 10 * np.cos(np.pi * np.arange(8) / 16)
    np.testing.assert_allclose(spectrum[2:7, 1:].mean(axis=1), expected[2:7], rtol=0.15)
    assert spectrum[:4, 0].mean() > 1.5 * spectrum[7, 0]


def test_texture_of_low_frequency_is_not_taken_for_noise() -> None:
    x = np.arange(256) / 2.5
    texture = (40 * np.sin(np.add.outer(x, 0.7 * x))).astype(np.float32)
    spectrum = noise_spectrum(128 + texture + 3 * white(2))
    assert spectrum.max() < 10
    assert noise_spectrum(128 + texture + 3 * white(2), COLOUR_GROWTH).max() > 15


def test_texture_of_middle_frequency_is_not_taken_for_noise() -> None:
    x = np.arange(256) * np.pi / 2
    texture = (12 * np.sin(np.add.outer(x, 0.3 * x))).astype(np.float32)
    spectrum = noise_spectrum(128 + texture + 3 * white(4))
    assert spectrum[:5, :5].mean() < 8
    assert noise_spectrum(128 + texture + 3 * white(4), ()).max() > 20


def test_too_small_to_tell_is_even_and_constant_is_nothing() -> None:
    small = noise_spectrum(20 * white(3)[:12, :12])
    assert np.ptp(small) == 0
    assert small[0, 0] == pytest.approx(20, rel=0.3)
    assert noise_spectrum(np.full((64, 64), 9, np.float32)).max() < 1e-3
