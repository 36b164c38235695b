from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import Polynomial
from kpca_apps.papers.methods.explicit_maps import monomial_count, monomials, ordered_products
from tests.engine.examples import exact
from tests.papers.comparing import misc_oracle

X = np.random.default_rng(0).normal(size=(7, 3))


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_inner_products_are_the_kernel(degree):
    gram = Polynomial(degree)(X)
    for features in (ordered_products(X, degree), monomials(X, degree)):
        assert_allclose(features @ features.T, gram, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_there_are_as_many_as_counted(degree):
    assert ordered_products(X, degree).shape == (7, 3**degree)
    assert monomials(X, degree).shape == (7, monomial_count(3, degree))


def test_dimensions_are_those_of_the_oracle():
    counts = misc_oracle()["feature_dim"]
    assert monomial_count(256, 5) == counts["N=256,d=5"]
    assert monomial_count(2, 2) == counts["N=2,d=2"]


def test_coefficients_are_those_of_the_oracle():
    """At a row of ones a monomial is its coefficient; the names tell the powers."""
    oracle = misc_oracle()["poly_hom_d3_coeffs"]
    columns = list(combinations_with_replacement(range(3), 3))
    found = dict(zip(columns, monomials(np.ones((1, 3)), 3)[0], strict=True))
    places = {"x1^3": (0, 0, 0), "x1^2 x2": (0, 0, 1), "x1 x2 x3": (0, 1, 2)}
    assert set(places) == set(oracle)
    for name, place in places.items():
        squared = str(oracle[name]).removeprefix("sqrt(").removesuffix(")")
        assert found[place] ** 2 == pytest.approx(float(squared), rel=1e-14)


def test_a_square_times_another_factor_has_root_three():
    """The report's B.1 says root two; the kernel decides."""
    row = np.array([[1.0, 1.0, 0.0]])
    # x1^3, x1^2 x2, x1 x2^2, x2^3 of (1, 1, 0); every monomial with x3 is 0.
    found = monomials(row, 3)[0]
    assert_allclose(np.sort(found[found > 0.0]), [1.0, 1.0, np.sqrt(3.0), np.sqrt(3.0)])
    assert monomials(np.ones((1, 3)), 3).max() == pytest.approx(np.sqrt(6.0))


def test_kernel_pca_is_pca_of_the_monomials():
    features = monomials(X, 2)
    centred = features - features.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred / 7)[::-1][:6]
    assert_allclose(exact(Polynomial(2), X).variances, values, rtol=1e-10)
