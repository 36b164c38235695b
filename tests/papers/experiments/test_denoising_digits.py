"""Digits cleaned by linear and kernel PCA, where ``KPCA_PAPERS`` names their folder."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments import denoising_digits as digits
from kpca_apps.papers.measuring import components, smoothed_digits

# Mean squared distances by another implementation: noisy digits, and 64 linear components.
KNOWN = {"Gaussian": (63.74, 27.0), "Speckle": (187.66, 77.8)}


def test_noise_and_linear_pca_of_the_digits_are_as_far_off_as_elsewhere(papers_folder):
    train, clean = digits.digits(PaperData(papers_folder))
    assert (train.shape, clean.shape) == ((3000, 256), (500, 256))
    linear, rng = components(Linear(), train, 64), np.random.default_rng(1)
    pca = PCA(64).fit(train)
    for kind, known in KNOWN.items():
        noisy = digits.spoil(kind, clean, rng)
        cleaned = digits._project(linear, noisy)
        assert_allclose(cleaned, pca.inverse_transform(pca.transform(noisy)), atol=1e-8)
        found = digits._distance(noisy, clean), digits._distance(cleaned, clean)
        assert found == pytest.approx(known, rel=0.05)


def test_smoothed_digits_have_the_variance_by_which_the_paper_sets_its_width(papers_folder):
    raw, _ = digits.digits(PaperData(papers_folder))
    claim = digits._width(raw, smoothed_digits(raw))
    assert claim.verdict == "reproduced with a condition"
    assert digits._width(raw, raw).verdict == "not reproduced"


def test_cleaned_digits_are_fixed_points(papers_folder):
    """At z the weighted mean of the training digits, weights g_i k(z, x_i), is z itself."""
    train, clean = (rows[::25] for rows in digits.digits(PaperData(papers_folder)))
    gamma = 2.0 / 256.0
    subspace = components(RBF(gamma), train, 16)
    noisy = digits.spoil("Gaussian", clean, np.random.default_rng(0))
    cleaned = digits._clean(subspace, noisy)
    weights = subspace.project(noisy) @ subspace.weights.T + 1.0 / len(train)
    distances = ((cleaned[:, None] - train) ** 2).sum(axis=2)
    terms = weights * np.exp(-gamma * distances)
    again = terms @ train / terms.sum(axis=1)[:, None]
    assert_allclose(again, cleaned, atol=1e-4)
