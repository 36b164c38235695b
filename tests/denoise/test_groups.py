"""Projection and Wiener operator of one group against plain formulas in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from kpca_apps.denoise.algebra import padded_size
from kpca_apps.denoise.groups import centre, gather, spread
from kpca_apps.denoise.projection import project_rows, projection_space
from kpca_apps.denoise.wiener import RBF_WIDTH, linear_smooth, rbf_smooth, smoothing_space

Matrix = NDArray[np.float32]

SIZES = [(48, 36), (48, 49), (30, 64), (1, 9), (2, 2)]


def padded(a: NDArray[np.floating]) -> Matrix:
    wide = np.zeros((len(a), padded_size(a.shape[1])), np.float32)
    wide[:, : a.shape[1]] = a
    return wide


def group_of(k: int, n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Clean patches of two strong components, and the noise on them, centred."""
    rng = np.random.default_rng(seed)
    clean = 60 * rng.normal(size=(k, 2)) @ rng.normal(size=(2, n))
    noise = 10 * rng.normal(size=(k, n))
    return clean - clean.mean(0), noise - noise.mean(0)


@pytest.mark.parametrize(("k", "n"), [(48, 36), (48, 49), (30, 64)])
def test_projection_keeps_what_is_above_the_edge(k: int, n: int) -> None:
    clean, noise = group_of(k, n)
    z = padded(clean + noise)
    q, shown = project_rows(z, k, n, np.float32(115), np.float32(1), projection_space(k, n))
    assert q == 2
    pca = PCA(2).fit(clean + noise)
    expected = pca.inverse_transform(pca.transform(clean + noise))
    np.testing.assert_allclose(z[:, :n], expected, atol=1e-2)
    assert 80 < shown < 120


@pytest.mark.parametrize(("k", "n"), SIZES)
def test_noise_alone_leaves_nothing(k: int, n: int) -> None:
    z = padded(group_of(k, n)[1])
    q, _ = project_rows(z, k, n, np.float32(200), np.float32(1), projection_space(k, n))
    assert q == 0
    assert not z.any()


def test_a_group_noisier_than_said_raises_its_edge() -> None:
    """Said variance 70, true 100: noise passes the edge unless it may follow the group."""
    k, n = 48, 36
    kept = []
    for most in (1.0, 1.5):
        z = padded(sum(group_of(k, n)))
        kept.append(
            project_rows(z, k, n, np.float32(70), np.float32(most), projection_space(k, n))[0]
        )
    assert kept[0] > kept[1] == 2


def smoothed(name: str, k: int, n: int, ridge: float) -> tuple[Matrix, Matrix]:
    clean, noise = group_of(k, n)
    z, leverage = padded(clean + noise), np.zeros(k, np.float32)
    smooth = {"linear": linear_smooth, "rbf": rbf_smooth}[name]
    smooth(padded(clean), z, k, n, np.float32(ridge), leverage, smoothing_space(k, n))
    return z[:, :n], leverage


def random_patches(k: int, n: int) -> NDArray[np.float64]:
    return np.random.default_rng(5).normal(size=(k, n))


def kernel_of(name: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
    if name == "linear":
        return x @ x.T
    d = ((x[:, None] - x[None]) ** 2).sum(2)
    c = RBF_WIDTH * d.mean()
    return 0.5 * c * np.exp(-d / c)


def theta(kernel: NDArray[np.floating], ridge: float) -> NDArray[np.floating]:
    k = len(kernel)
    h = np.eye(k) - 1 / k
    kernel = h @ kernel @ h
    return np.linalg.solve(kernel + ridge * np.eye(k), kernel).T


@pytest.mark.parametrize(("k", "n"), SIZES)
def test_linear_wiener_operator(k: int, n: int) -> None:
    clean, noise = group_of(k, n)
    expected = theta(clean @ clean.T, 3000.0)
    z, leverage = smoothed("linear", k, n, 3000.0)
    np.testing.assert_allclose(z, expected @ (clean + noise), atol=0.05)
    np.testing.assert_allclose(leverage, np.diag(expected), atol=1e-3)


@pytest.mark.parametrize(("k", "n"), [(48, 36), (30, 64), (2, 2)])
def test_rbf_wiener_operator(k: int, n: int) -> None:
    clean, noise = group_of(k, n)
    expected = theta(kernel_of("rbf", clean), 3000.0)
    z, leverage = smoothed("rbf", k, n, 3000.0)
    np.testing.assert_allclose(z, expected @ (clean + noise), atol=0.5)
    np.testing.assert_allclose(leverage, np.diag(expected), atol=5e-3)


def test_tiny_ridge_stays_finite() -> None:
    z, leverage = smoothed("linear", 90, 64, 1e-6)
    assert np.isfinite(z).all()
    assert np.isfinite(leverage).all()


@pytest.mark.parametrize("name", ["linear", "rbf"])
@pytest.mark.parametrize("size", [1e3, 1e5, 1e7])
def test_one_patch_unlike_all_others_stays_alone(name: str, size: float) -> None:
    """A hot pixel: hardly smoothed, and nothing of it in the other patches, in single precision."""
    k, n, ridge = 90, 64, 3000.0
    x = 3 * random_patches(k, n)
    x[7, 5] += size
    x -= x.mean(0)
    z, leverage = padded(x), np.zeros(k, np.float32)
    smooth = {"linear": linear_smooth, "rbf": rbf_smooth}[name]
    smooth(padded(x), z, k, n, np.float32(ridge), leverage, smoothing_space(k, n))
    expected = theta(kernel_of(name, x), ridge)
    assert leverage[7] == pytest.approx(expected[7, 7], abs=0.01)
    assert leverage.min() >= 0
    np.testing.assert_allclose(z[:, :n], expected @ x, atol=3 + 3e-3 * size)


def test_gathering_and_spreading_are_inverse() -> None:
    image = np.random.default_rng(1).normal(size=(12, 13)).astype(np.float32)
    group = np.array([[y, x] for y in range(0, 10, 3) for x in (0, 3, 6, 9, 10)], np.int32)
    k, shape = len(group), (3, 3)
    patches, mean = np.zeros((k, 16), np.float32), np.zeros(16, np.float32)
    gather(image, group, k, shape, patches)
    np.testing.assert_array_equal(patches[6, :9], image[3:6, 3:6].ravel())
    centre(patches, k, mean)
    np.testing.assert_allclose(patches.mean(0), 0, atol=1e-6)
    sums = np.zeros((3, 12, 13), np.float32)
    weight = np.linspace(1, 2, k).astype(np.float32)
    leverage = np.full(k, 0.25, np.float32)
    window = np.outer([1, 2, 1], [1, 3, 1]).astype(np.float32)
    spread(patches, mean, weight, leverage, group, k, window, 0, sums)
    np.testing.assert_allclose(sums[0] / sums[1], image, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sums[2] / sums[1], 0.25, rtol=1e-5)
