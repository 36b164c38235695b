"""Segmentation errors with and without repeated rows, if ``KPCA_PAPERS`` names the data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import PolynomialFeatures

from kpca_apps.engine.kernels import Polynomial
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments import segmentation
from kpca_apps.papers.measuring import components


def test_errors_on_new_test_rows_are_those_without_the_repeated_rows(papers_folder):
    """Expected errors are from an independent implementation; a misclassified row adds 0.0048."""
    small, small_names, large, large_names = PaperData(papers_folder).segmentation()
    known = {row.tobytes() for row in small}
    new = np.array([row.tobytes() not in known for row in large])
    split = segmentation._Split(large[new], large_names[new], small, small_names)
    for name, count, error in (("linear", None, 0.0429), ("Laplace", 50, 0.0381)):
        features = split.features(segmentation.KERNELS[name])
        assert split.error(features, count) == pytest.approx(error, abs=1e-4)


def test_the_last_components_of_the_polynomial_kernel_are_those_of_its_monomials(papers_folder):
    """The singular values of weighted scikit-learn monomials give the number of components."""
    small, small_names, large, large_names = PaperData(papers_folder).segmentation()
    for rows, names, count in ((large, large_names, 113), (small, small_names, 106)):
        split = segmentation._Split(rows, names, small, small_names)
        train, test = split.features(segmentation.KERNELS["polynomial"])
        powers = PolynomialFeatures(2, include_bias=False).fit(rows)
        # The weight is 1 for x^2, root 2 for x and for x y.
        weights = np.where(powers.powers_.max(axis=1) == 2, 1.0, np.sqrt(2.0))
        columns = powers.transform(rows) * weights
        columns -= columns.mean(axis=0)
        variances = np.linalg.svd(columns, compute_uv=False) ** 2 / len(rows)
        assert np.count_nonzero(variances > 1e-4) == train.shape[1] == count
        covariance = train.T @ train / len(train)
        assert_allclose(covariance, np.eye(count), atol=1e-6)
        known = components(Polynomial(2, 1.0, 1.0), rows, 20)
        for part, given in ((train, rows), (test, small)):
            leading = known.project(given) / np.sqrt(known.variances)
            signs = np.sign((train[:, :20] * known.project(rows)).sum(axis=0))
            assert_allclose(part[:, :20] * signs, leading, atol=1e-5)


def test_the_estimated_width_is_that_of_every_pair():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[1] = X[0]
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    pairs = [squared[i, j] for i in range(40) for j in range(i) if squared[i, j] > 0.0]
    low, high = np.quantile(pairs, [0.1, 0.9])
    assert segmentation.estimated_sigma(X) == pytest.approx((1.0 / low + 1.0 / high) / 2.0)
