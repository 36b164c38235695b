"""Scores in closed form equal those of a refit without the row or the landmark."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.nystroem import (
    CovarianceSums,
    LandmarkBasis,
    subspace_from_sums,
)
from kpca_apps.engine.tikhonov import leave_landmark_out, leave_row_out
from kpca_apps.novelty.detector.estimator import KernelPCANovelty


def soft_score(z, norm, kept, total_ridge):
    """Return residual + ridge * Mahalanobis distance of `z`, with mean and scatter of `kept`."""
    center = kept.mean(axis=0)
    scatter = (kept - center).T @ (kept - center)
    y = z - center
    inverse = np.linalg.inv(scatter + total_ridge * np.eye(len(z)))
    return norm - z @ z + total_ridge * (y @ inverse @ y)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(5, 30), st.integers(1, 6), st.floats(1e-4, 10.0))
def test_leaving_a_row_out_equals_refitting(seed, n, p, rho):
    z = np.random.default_rng(seed).normal(size=(n, p))
    norm = (z * z).sum(axis=1) + 0.1
    center = z.mean(axis=0)
    covariance = (z - center).T @ (z - center) / n
    inverse = np.linalg.inv(covariance + rho * np.eye(p))
    mahalanobis = np.einsum("ij,jk,ik->i", z - center, inverse, z - center)
    closed = leave_row_out(np.full(n, 0.1), mahalanobis, rho, n)
    brute = [soft_score(z[i], norm[i], np.delete(z, i, axis=0), n * rho) for i in range(n)]
    np.testing.assert_allclose(closed, brute, rtol=1e-9)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(5).normal(size=(120, 3))


@pytest.fixture(scope="module")
def fit(rows):
    options = {"kernel": RBF(0.3), "ridge": 0.01, "n_landmarks": 40, "random_state": 0}
    return KernelPCANovelty(contaminated=False, **options).fit(rows)


def scores_refitted(rows, fit, i):
    """Return the score of row i from a model without it, and without its landmark, if any."""
    landmarks = fit.detector_.landmarks[fit.detector_.landmarks != i]
    z = LandmarkBasis.from_cholesky(RBF(0.3), rows[landmarks]).features()(rows)
    return soft_score(z[i], 1.0, np.delete(z, i, axis=0), len(rows) * fit.detector_.ridge)


def test_training_scores_equal_refitting_without_the_row(rows, fit):
    others = np.setdiff1d(np.arange(len(rows)), fit.detector_.landmarks)
    brute = [scores_refitted(rows, fit, i) for i in others]
    np.testing.assert_allclose(fit.novelty_scores_[others], brute, rtol=1e-9)


def test_landmarks_are_scored_without_their_landmark(rows, fit):
    brute = [scores_refitted(rows, fit, i) for i in fit.detector_.landmarks]
    # The fit and the refits use the same ridge; only the jitter of the Cholesky factor differs.
    np.testing.assert_allclose(
        fit.novelty_scores_[fit.detector_.landmarks], brute, rtol=0, atol=1e-6
    )


def test_a_landmark_in_the_span_would_score_too_low(rows, fit):
    plain = fit.subspace_.reconstruction_error(rows)
    assert np.all(plain[fit.detector_.landmarks] < fit.novelty_scores_[fit.detector_.landmarks])


def test_any_row_scored_without_a_landmark_equals_refitting(rows, fit):
    new = np.random.default_rng(9).normal(size=(8, 3))
    position = np.arange(8)
    residual, mahalanobis = leave_landmark_out(fit.subspace_, fit.detector_.ridge, new, position)
    scores = residual + fit.detector_.ridge * mahalanobis
    for x, p, score in zip(new, position, scores, strict=True):
        basis = LandmarkBasis.from_cholesky(
            RBF(0.3), np.delete(rows[fit.detector_.landmarks], p, axis=0)
        )
        sums = CovarianceSums.of_rows(basis, rows)
        refitted = subspace_from_sums(basis, sums, rho=fit.detector_.ridge)
        assert score == pytest.approx(refitted.reconstruction_error(x[None])[0], abs=1e-6)
