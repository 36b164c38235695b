"""Denoising one group of patches, in numpy or compiled, gives scikit-learn's results."""

import numpy as np
import pytest
from numpy.typing import NDArray

from kpca_apps.engine.groups.compiled import linear_smooth, truncate_rows
from kpca_apps.engine.groups.operator import RIDGE_FACTOR, WIDEST, count_components
from kpca_apps.engine.linalg.small_matrices import padded_size
from tests.engine.groups.reference import denoise_group

# Each test here compiles one function; tests/denoise/passes tests the functions together.
pytestmark = pytest.mark.release

Matrix = NDArray[np.float32]


def group_of(k: int, n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Clean patches with two strong components, and their noise, centred."""
    rng = np.random.default_rng(seed)
    clean = 60 * rng.normal(size=(k, 2)) @ rng.normal(size=(2, n))
    noise = 10 * rng.normal(size=(k, n))
    return clean - clean.mean(0), noise - noise.mean(0)


def widened(patches: NDArray[np.floating]) -> Matrix:
    """Pad patches (k, n) with zeros to the shape that `gather_centred` fills."""
    k, n = patches.shape
    wide = np.zeros((-(-k // 4) * 4 + 1, padded_size(n)), np.float32)
    wide[:k, :n] = patches
    return wide


def smoothed(
    x: NDArray[np.floating], y: NDArray[np.floating], ridge: float
) -> tuple[Matrix, Matrix]:
    (k, n), variance = x.shape, np.float32(ridge / (RIDGE_FACTOR * x.shape[1]))
    patches, mean = widened(y), widened(np.zeros((1, n)))[0]
    z, leverage = linear_smooth(widened(x), patches, mean, k, n, variance)
    return z[:k, :n], leverage


def truncated(
    z: NDArray[np.floating], variance: float, excess: float, bandwidth: float
) -> tuple[Matrix, int]:
    k, n = z.shape
    level, most, mean = np.float32(variance), np.float32(excess), widened(np.zeros((1, n)))[0]
    patches, q, _ = truncate_rows(widened(z), mean, k, n, level, most, bandwidth)
    return patches[:k, :n], q


def theta(x: NDArray[np.floating], ridge: float) -> NDArray[np.floating]:
    kernel = x @ x.T
    return np.linalg.solve(kernel + ridge * np.eye(len(x)), kernel).T


def test_tiny_ridge_stays_finite() -> None:
    clean, noise = group_of(90, 64)
    z, leverage = smoothed(clean, clean + noise, 1e-6)
    assert np.isfinite(z).all() and np.isfinite(leverage).all()


@pytest.mark.parametrize("size", [1e3, 1e5, 1e7])
def test_one_patch_unlike_all_others_stays_alone(size: float) -> None:
    """In single precision, a hot pixel's patch barely changes and barely affects other patches."""
    x = 3 * np.random.default_rng(5).normal(size=(90, 64))
    x[7, 5] += size
    x -= x.mean(0)
    z, leverage = smoothed(x, x, 3000.0)
    expected = theta(x, 3000.0)
    assert leverage[7] == pytest.approx(expected[7, 7] + 1 / 90, abs=0.01) and leverage.min() >= 0
    np.testing.assert_allclose(z, expected @ x, atol=3 + 3e-3 * size)
    projected, q = truncated(x, 9.0, 1.0, 4.0)
    assert q >= 1
    np.testing.assert_allclose(projected[7], x[7], atol=20 + 1e-3 * size)
    assert np.abs(np.delete(projected, 7, axis=0)).max() < 20 + 1e-3 * size + np.abs(x[0]).max()


SHAPES = [(48, 49), (28, 16), (40, 64), (33, 64)]
"""More patches than pixels, and fewer."""

ROUNDING = 1e-3
"""Grey levels. Single precision leaves eps = 6e-8 times a level of some 200 times the condition
of the Gram matrix with its ridge, here below 30: 4e-4, in whichever order a processor adds."""


def random_group(
    shape: tuple[int, int], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return patches of three components: with noise of deviation 10, and with less noise."""
    rng = np.random.default_rng(seed)
    (k, n), spread = shape, rng.choice([10.0, 20.0])
    clean = 100 + spread * rng.normal(size=(k, 3)) @ rng.normal(size=(3, n)) / np.sqrt(3)
    noisy, pilot = (clean + deviation * rng.normal(size=shape) for deviation in (10.0, 2.0))
    return noisy, pilot


def compiled_group(
    noisy: NDArray[np.float64], pilot: NDArray[np.float64] | None, bandwidth: float, excess: float
) -> tuple[Matrix, float]:
    """Return denoised patches and the component count or, with a pilot, the largest leverage."""
    n, mean = noisy.shape[1], noisy.mean(axis=0)
    if pilot is not None:
        ridge = RIDGE_FACTOR * n * 100.0
        z, leverage = smoothed(pilot - pilot.mean(0), noisy - mean, ridge)
        return z + mean, float(leverage.max())
    z, q = truncated(noisy - mean, 100.0, excess, bandwidth)
    return z + mean, q


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bandwidth", [2.0, 4.0, 8.0, np.inf])
@pytest.mark.parametrize("excess", [1.0, 1.25])
def test_the_compiled_hard_cut_is_the_operator(
    shape: tuple[int, int], bandwidth: float, excess: float
) -> None:
    for seed in range(5):
        noisy, _ = random_group(shape, seed)
        expected = denoise_group(noisy, 100.0, bandwidth=bandwidth, excess=excess)
        patches, q = compiled_group(noisy, None, bandwidth, excess)
        assert q == expected.n_components > 0
        np.testing.assert_allclose(patches, expected.patches, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_compiled_soft_cut_is_the_operator(shape: tuple[int, int]) -> None:
    for seed in range(5):
        noisy, pilot = random_group(shape, seed)
        expected = denoise_group(noisy, 100.0, pilot=pilot)
        patches, leverage = compiled_group(noisy, pilot, np.inf, 1.0)
        np.testing.assert_allclose(patches, expected.patches, rtol=0, atol=ROUNDING)
        assert leverage == pytest.approx(expected.leverage.max(), abs=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_kernel_much_wider_than_a_group_is_linear(shape: tuple[int, int]) -> None:
    """A bandwidth above the limit gives the linear result in numpy and in compiled code."""
    noisy, _ = random_group(shape, 1)
    limit = WIDEST * np.square(noisy - noisy.mean(axis=0)).sum(axis=1).mean() / (shape[1] * 100.0)
    for denoise in (
        lambda bandwidth: denoise_group(noisy, 100.0, bandwidth=bandwidth).patches,
        lambda bandwidth: compiled_group(noisy, None, bandwidth, 1.0)[0],
    ):
        linear = denoise(np.inf)
        np.testing.assert_array_equal(denoise(1.001 * limit), linear)
        assert np.abs(denoise(0.999 * limit) - linear).max() > 0.1


def test_noise_alone_leaves_no_component_of_a_narrow_kernel() -> None:
    """The threshold accounts for the kernel's effect on noise, or all components would remain."""
    for seed in range(5):
        noise = 10 * np.random.default_rng(seed).normal(size=(48, 49))
        for bandwidth in (1.0, 1.1, 1.2):
            assert denoise_group(noise, 115.0, bandwidth=bandwidth).n_components == 0


@pytest.mark.parametrize("spread", [0.0, 1e-3])
def test_patches_far_nearer_than_their_noise_become_their_mean(spread: float) -> None:
    patches = 1.0 + spread * np.random.default_rng(0).normal(size=(40, 1)) * np.ones(9)
    found = denoise_group(patches, 100.0, bandwidth=16)
    mean = np.broadcast_to(patches.mean(axis=0), patches.shape)
    near = 1e-6 + spread / 5  # tolerance: pre-images of feature-space means differ from means
    np.testing.assert_allclose(found.patches, mean, atol=near)
    compiled, q = compiled_group(patches, None, 16.0, 1.0)
    assert q == found.n_components == 0
    assert found.residual <= spread**2
    np.testing.assert_allclose(compiled, mean, atol=near)


def test_the_threshold_follows_the_noise_of_a_group() -> None:
    """Noise 15 % stronger than given stays below the threshold only if the threshold may adapt."""
    k, n = shape = 48, 49
    for seed in range(5):
        noise = np.sqrt(115) * np.random.default_rng(seed).normal(size=shape)
        values = np.linalg.svd(noise - noise.mean(axis=0), compute_uv=False) ** 2
        edge = 0.95 * (np.sqrt(k) + np.sqrt(n)) ** 2
        for excess in (1.0, 1.25):
            expected = int((values > edge * min(115.0, 100.0 * excess)).sum())
            q, residual = count_components(values, values.sum(), shape, 100.0, excess, edge)
            assert q == expected
            assert residual == pytest.approx(values[q:].sum() / ((k - 1 - q) * (n - q)), rel=1e-5)
