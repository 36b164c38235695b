"""Cuts on the side of the patches, against the same cuts on the side of the pixels in numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from kpca_apps.denoise.passes.compiled import linear_smooth, project_rows
from kpca_apps.denoise.passes.few_patches import transposed
from kpca_apps.denoise.passes.small_matrices import gram_of, padded_size

SHAPES = [(2, 9), (20, 25), (33, 64)]


def centred(k: int, n: int, seed: int) -> NDArray[np.float32]:
    """Patches, less their mean, as `gather_centred` returns them: rows and columns of zeros."""
    rng = np.random.default_rng(seed)
    patches = rng.normal(0, 100, (k, 1)) * rng.normal(0, 1, (1, n)) + rng.normal(0, 10, (k, n))
    wide = np.zeros((-(-k // 4) * 4 + 1, padded_size(n)), np.float32)
    wide[:k, :n] = patches - patches.mean(axis=0)
    return wide


@pytest.mark.parametrize(("k", "n"), SHAPES)
def test_the_gram_matrix_is_that_of_the_patches(k: int, n: int) -> None:
    z = centred(k, n, 0)
    gram = np.full((-(-k // 4) * 4, padded_size(k)), np.nan, np.float32)
    gram_of(transposed(z, k, n), n, gram)
    np.testing.assert_allclose(gram[:k, :k], z[:k] @ z[:k].T, rtol=1e-4, atol=1)
    assert not gram[:, k:].any()


@pytest.mark.parametrize(("k", "n"), SHAPES)
def test_both_sides_give_the_same_estimates(k: int, n: int) -> None:
    x, z, mean = centred(k, n, 0), centred(k, n, 1), np.float32(5)
    means, wanted = np.full(z.shape[1], mean), np.s_[:k, :n]
    pilot, noisy = x[wanted].astype(float), z[wanted].astype(float)
    ridge = 0.85 * n * 100.0
    theta = pilot @ np.linalg.solve(pilot.T @ pilot + ridge * np.eye(n), pilot.T)
    estimates, leverage = linear_smooth(x, z, means, k, n, np.float32(ridge))
    np.testing.assert_allclose(estimates[wanted], theta @ noisy + mean, rtol=1e-3, atol=0.02)
    np.testing.assert_allclose(leverage, np.diag(theta), atol=1e-4)
    values, vectors = np.linalg.eigh(noisy.T @ noisy)
    kept = vectors[:, values > 0.95 * 100.0 * (np.sqrt(k) + np.sqrt(n)) ** 2]
    estimates, q, _ = project_rows(z, means, k, n, np.float32(100), np.float32(1))
    assert q == kept.shape[1]
    expected = noisy @ kept @ kept.T + mean
    np.testing.assert_allclose(estimates[wanted], expected, rtol=1e-3, atol=0.02)
