"""Means and deviations of transformed noise match exact sums or random samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import poisson

from kpca_apps.denoise.colour import from_opponent, noise_in_opponent, to_opponent
from kpca_apps.denoise.noise.poisson import anscombe, inverse_anscombe
from kpca_apps.denoise.noise.speckle import (
    lift_specks,
    log_of_speckle,
    speckle_from_log,
    speckle_log_moments,
)


@pytest.mark.parametrize("mean", [0.5, 1.0, 2.0, 5.0, 20.0, 200.0])
def test_inverse_takes_the_mean_of_the_transform_to_the_mean_count(mean: float) -> None:
    counts = np.arange(0, 1000)
    expected = np.sum(poisson.pmf(counts, mean) * anscombe(counts))
    assert inverse_anscombe(np.array(expected)) == pytest.approx(mean, abs=0.03)


@pytest.mark.parametrize("mean", [5.0, 20.0, 200.0])
def test_transformed_counts_have_deviation_one(mean: float) -> None:
    counts = np.arange(0, 1000)
    weights = poisson.pmf(counts, mean)
    centre = np.sum(weights * anscombe(counts))
    assert np.sum(weights * (anscombe(counts) - centre) ** 2) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0])
def test_moments_of_the_logarithm_are_those_of_gamma_samples(sigma: float) -> None:
    looks = 1 / sigma**2
    samples = np.random.default_rng(0).gamma(looks, 1 / looks, 200_000)
    mean, deviation = speckle_log_moments(sigma)
    assert np.log(samples).mean() == pytest.approx(mean, abs=0.01)
    assert np.log(samples).std() == pytest.approx(deviation, rel=0.02)


@pytest.mark.parametrize("dark", [0.0, 10.0])
@pytest.mark.parametrize("level", [-60.0, 0.0, 5.0, 40.0, 400.0])
def test_the_generalised_logarithm_has_constant_noise_and_inverts_the_mean(
    level: float, dark: float
) -> None:
    rng, sigma = np.random.default_rng(2), 0.2
    if not dark and level <= 0:
        return
    values = level * rng.gamma(1 / sigma**2, sigma**2, 100_000)
    values = values + rng.normal(0, dark * sigma, values.shape)
    logs = log_of_speckle(values, dark)
    assert np.isfinite(log_of_speckle(np.array([0.0, -1.0, 3.0]), dark)).all()
    assert logs.std() == pytest.approx(sigma, rel=0.06)
    back = speckle_from_log(np.array(logs.mean()), sigma, dark)
    assert back == pytest.approx(level, rel=0.01, abs=0.02 * dark)


@pytest.mark.parametrize("row", [0, 2, 4])
@pytest.mark.parametrize("column", [0, 3, 5])
def test_a_dark_speck_is_corrected_anywhere_and_a_dark_line_is_not(row: int, column: int) -> None:
    logs = np.zeros((5, 6))
    logs[row, column] = -7.0
    np.testing.assert_array_equal(lift_specks(logs, 0.25), logs.clip(-1.5 * 0.25))
    logs[row] = -7.0
    np.testing.assert_array_equal(lift_specks(logs, 0.25), logs)


@given(arrays(np.float32, (3, 4, 5), elements=st.floats(-1e3, 1e3, width=32)))
def test_opponent_planes_are_a_rotation(rgb: np.ndarray) -> None:
    planes = to_opponent(rgb)
    np.testing.assert_allclose(from_opponent(planes), rgb, atol=1e-3)
    np.testing.assert_allclose(np.sum(planes**2), np.sum(rgb**2), rtol=1e-4, atol=1e-3)


def test_noise_in_opponent_planes_is_that_of_samples() -> None:
    sigma = np.array([3.0, 5.0, 9.0])
    samples = np.random.default_rng(0).standard_normal((3, 300, 300)) * sigma[:, None, None]
    planes = to_opponent(samples.astype(np.float32))
    np.testing.assert_allclose(planes.std(axis=(1, 2)), noise_in_opponent(sigma), rtol=0.02)
