"""Nearest class means in feature space."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import NearestCentroid

from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.papers.methods.class_means import class_means

from ..comparing import clouds, misc_oracle, tiny_rows


def two_rings(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    radius = 1.0 + y + rng.normal(scale=0.1, size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def three_classes(n=150, seed=0):
    X = clouds(n, seed)
    return X, np.where(X[:, 1] > 1.0, 0, np.where(X[:, 0] > 0.0, 1, 2))


class TestClassMeans:
    @pytest.mark.parametrize(
        ("name", "kernel"),
        [("linear", Linear()), ("poly_hom_d2", Polynomial(2)), ("rbf_gamma0.5", RBF(0.5))],
    )
    def test_decisions_are_those_of_the_oracle(self, name, kernel):
        X, new = tiny_rows()
        oracle = misc_oracle()[f"ncm_{name}"]
        model = class_means(kernel, X, oracle["y"])
        values = model.decision(new)
        assert_allclose(values[:, 1] - values[:, 0], oracle["decision"], rtol=1e-12)
        assert 0.5 * (model.norms[0] - model.norms[1]) == pytest.approx(oracle["b"], rel=1e-12)

    def test_with_the_printed_sign_a_wide_class_loses_its_rows(self):
        """Eq. (3.3) as printed adds where eq. (3.1) subtracts: twice b lies between them."""
        rng = np.random.default_rng(0)
        y = np.arange(200) % 2
        X = rng.normal(size=(200, 2)) * np.where(y, 0.3, 2.0)[:, None] + 4.0 * y[:, None]
        model = class_means(RBF(0.5), X, y)
        values = model.decision(X)
        b = 0.5 * (model.norms[0] - model.norms[1])
        right = values[:, 1] - values[:, 0]
        assert ((right > 0.0) != y).mean() < 0.05
        assert (right - 2.0 * b)[y == 0].min() > 0.0

    def test_with_the_linear_kernel_it_is_the_nearest_centroid(self):
        X, y = three_classes()
        new, _ = three_classes(40, seed=1)
        expected = NearestCentroid().fit(X, y).predict(new)
        assert_array_equal(class_means(Linear(), X, y).predict(new), expected)

    def test_rings_are_told_apart_once_lengths_count(self):
        """Fig. 3.3 of the course notes: means that coincide, until the kernel parts them."""
        X, y = two_rings()
        errors = [(class_means(k, X, y).predict(X) != y).mean() for k in (Linear(), Polynomial(2))]
        assert errors[0] > 0.3
        assert errors[1] < 0.02
