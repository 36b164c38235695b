"""The detector's Tikhonov filter and truncation equal plain formulas."""

import numpy as np
import pytest

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.nystroem import LandmarkBasis
from kpca_apps.novelty.detector.estimator import KernelPCANovelty


def soft(kernel, X, **options):
    return KernelPCANovelty(contaminated=False, kernel=kernel, random_state=0, **options).fit(X)


def hard(kernel, X, components):
    """Return a fit and the half of the rows it was trained on."""
    fit = soft(kernel, X, method="hoffmann", components=components)
    return fit, X[np.isnan(fit.novelty_p_values_)]


def test_soft_score_is_residual_plus_regularised_mahalanobis():
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(200, 2)), rng.normal(size=(50, 2)) * 2
    fit = soft(RBF(0.5), X, ridge=0.05, n_landmarks=30)
    features = LandmarkBasis.from_cholesky(RBF(0.5), X[fit.detector_.landmarks]).features()
    z, train = features(new), features(X)
    y = z - train.mean(axis=0)
    A = np.cov(train.T, bias=True) + fit.detector_.ridge * np.eye(train.shape[1])
    mahalanobis = np.einsum("ij,ji->i", y, np.linalg.solve(A, y.T))
    expected = 1.0 - (z * z).sum(axis=1) + fit.detector_.ridge * mahalanobis
    np.testing.assert_allclose(-fit.score_samples(new), expected, rtol=1e-10)


def test_an_isolated_row_is_not_masked_by_a_soft_cut():
    """With truncation, the row would get a component of its own."""
    X = np.vstack([np.random.default_rng(0).normal(size=(300, 2)), [[9.0, 9.0]]])
    for ridge in (1e-3, 1e-2, 1e-1):
        fit = soft(RBF(0.5), X, ridge=ridge, n_landmarks=301)
        assert fit.novelty_scores_.argmax() == 300
    fits = (
        KernelPCANovelty(
            contaminated=False, method="hoffmann", components=40, random_state=seed
        ).fit(X)
        for seed in range(20)
    )
    fit = next(fit for fit in fits if np.isnan(fit.novelty_p_values_[300]))
    assert (fit.novelty_scores_ > fit.novelty_scores_[300]).mean() > 0.5


@pytest.mark.parametrize("components", [19, 20, 30])
def test_components_that_span_every_row_are_refused(components):
    X = np.random.default_rng(8).normal(size=(40, 2))
    message = f"components= {components} is too much for 20 training rows"
    with pytest.raises(ValueError, match=message):
        hard(RBF(5.0), X, components)


def test_many_rows_of_a_hard_cut_go_through_landmarks():
    X = np.random.default_rng(8).normal(size=(11_000, 2))
    fit, used = hard(RBF(0.1), X, 3)
    assert len(used) == 5500 and len(fit.detector_.landmarks) == len(fit.subspace_.points) <= 1000
    np.testing.assert_array_equal(fit.subspace_.points, X[fit.detector_.landmarks])
    exact, _ = hard(RBF(0.1), X[:4000], 3)
    assert np.corrcoef(fit.score_samples(X), exact.score_samples(X))[0, 1] > 0.99


def test_a_tiny_bandwidth_is_stated():
    X = np.random.default_rng(8).normal(size=(100, 2))
    assert "resemble no landmark" in soft(RBF(1e6), X, n_landmarks=50).warnings_[0]


def test_the_detector_gives_the_warnings_of_kernel_pca():
    X = np.random.default_rng(3).normal(size=(200, 4))
    fit = soft(RBF(0.3), X, method="hoffmann", components=50, n_landmarks=20)
    assert any("20 landmarks span no more directions" in text for text in fit.warnings_)
