"""Component regression, and components of a neighbourhood."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression

from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.papers.methods.means_and_neighbours import neighbourhood_components
from kpca_apps.papers.methods.on_components import regress_on_components
from tests.engine.examples import exact
from tests.papers.comparing import clouds


def parabola(n=60):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, size=n)
    return x[:, None], x + x**2 + rng.normal(scale=0.1, size=n)


class TestComponentRegression:
    def test_all_components_are_the_least_squares_parabola(self):
        """The course's y ~ x + x^2."""
        X, y = parabola()
        model = regress_on_components(exact(Polynomial(2, 1.0, 1.0), X), X, y)
        place = np.linspace(-2.0, 2.0, 9)
        expected = np.polyval(np.polyfit(X[:, 0], y, 2), place)
        assert_allclose(model.predict(place[:, None]), expected, rtol=1e-8, atol=1e-9)

    def test_few_components_are_ordinary_regression_on_them(self):
        X = clouds()
        y = np.sin(X[:, 0]) + X[:, 1]
        subspace = exact(RBF(0.2), X, 5)
        T = subspace.project(X)
        reference = LinearRegression().fit(T, y)
        model = regress_on_components(subspace, X, y)
        assert_allclose(model[-1].coef_, reference.coef_, rtol=1e-9)
        new = clouds(10, seed=1)
        assert_allclose(model.predict(new), reference.predict(subspace.project(new)), rtol=1e-9)


class TestNeighbourhood:
    def test_on_a_circle_the_component_is_the_tangent(self):
        angles = np.linspace(0.0, 2.0 * np.pi, 200, endpoint=False)
        X = np.column_stack([np.cos(angles), np.sin(angles)])
        for number in (0, 37, 120):
            near = neighbourhood_components(Linear(), X, X[number], 11, n_components=1)
            direction = near.points.T @ near.weights[:, 0]
            assert_allclose(np.abs(direction @ X[number]), 0.0, atol=1e-9)

    def test_of_all_rows_is_kernel_pca(self):
        X = clouds(40)
        near = neighbourhood_components(RBF(0.3), X, X[0], 40)
        assert_allclose(near.variances, exact(RBF(0.3), X).variances, rtol=1e-12)

    def test_takes_the_nearest(self):
        X = np.arange(10.0)[:, None]
        near = neighbourhood_components(Linear(), X, np.array([6.2]), 3)
        assert_array_equal(near.points[:, 0], [5.0, 6.0, 7.0])
