"""Class means, neighbours, discriminants and support vector machines in feature space."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.svm import SVC

from kpca_apps.engine.kernels import RBF, Linear, Polynomial, Scaled
from kpca_apps.papers.methods.explicit_maps import monomials
from kpca_apps.papers.methods.means_and_neighbours import (
    class_means,
    feature_distances,
    kernel_neighbour_labels,
)
from kpca_apps.papers.methods.on_components import (
    component_discriminant,
    component_svm,
    two_layer_machine,
)
from tests.engine.examples import exact
from tests.papers.comparing import clouds, misc_oracle, tiny_rows


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


class TestNeighbours:
    def test_distances_are_those_of_the_monomials(self):
        X, new = tiny_rows()
        gaps = monomials(new, 2)[:, None] - monomials(X, 2)
        expected = np.sqrt((gaps**2).sum(axis=2))
        assert_allclose(feature_distances(Polynomial(2), new, X), expected, atol=1e-6)

    def test_a_gaussian_kernel_changes_nothing(self):
        X, y = three_classes()
        new, _ = three_classes(60, seed=1)
        plain = KNeighborsClassifier(5).fit(X, y).predict(new)
        assert_array_equal(kernel_neighbour_labels(RBF(0.3), X, y, new), plain)

    def test_a_polynomial_one_does(self):
        """(x.y)^2 does not tell a point from its mirror image: a class at both ends is one."""
        X = np.array([[3.0, 0.1], [2.9, 0.0], [0.0, 3.0], [0.1, 2.8]])
        new = np.array([[-3.0, 0.0]])
        assert kernel_neighbour_labels(Polynomial(2), X, [1, 1, 0, 0], new, n_neighbours=2) == [1]
        assert feature_distances(Polynomial(2), -X, X).diagonal().max() < 1e-6


class TestDiscriminant:
    def test_is_that_of_the_explicit_features(self):
        X, y = three_classes()
        subspace = exact(Polynomial(2, 1.0, 1.0), X)
        columns = np.column_stack([X, X**2, X[:, 0] * X[:, 1]])
        reference = LinearDiscriminantAnalysis().fit(columns, y)
        model = component_discriminant(subspace, X, y)
        assert_array_equal(model.predict(X), reference.predict(columns))
        found, expected = model.transform(X), reference.transform(columns)
        assert_allclose(np.abs(found), np.abs(expected), rtol=0, atol=1e-6)

    def test_is_the_kernel_fisher_discriminant(self):
        """Mika et al. 1999 for two classes: alpha = N^-1 (M1 - M2) over kernel columns."""
        X, y = two_rings(60)
        kernel = Polynomial(2, 1.0, 1.0)
        K = kernel(X)
        gap = K[:, y == 1].mean(axis=1) - K[:, y == 0].mean(axis=1)
        within = sum(
            (part := K[:, y == c] - K[:, y == c].mean(axis=1, keepdims=True)) @ part.T
            for c in (0, 1)
        )
        alpha = np.linalg.pinv(within, rcond=1e-12, hermitian=True) @ gap
        values = component_discriminant(exact(kernel, X), X, y).transform(X)[:, 0]
        assert abs(np.corrcoef(K @ alpha, values)[0, 1]) == pytest.approx(1.0, abs=1e-6)


class TestComponentMachine:
    @pytest.mark.parametrize("data", [two_rings, three_classes])
    def test_a_larger_kernel_changes_no_label(self, data):
        X, y = data()
        kernel = Polynomial(3, 1.0, 1.0)
        labels = [
            component_svm(exact(one, X, 6), X, y, C=10.0).predict(X)
            for one in (kernel, Scaled(1e4, kernel))
        ]
        assert_array_equal(*labels)
        assert (labels[0] == y).mean() > 0.9


class TestTwoLayers:
    def test_a_linear_first_layer_leaves_the_second_alone(self):
        """All linear components are a rotation, which a Gaussian kernel does not see."""
        X, y = two_rings()
        new, _ = two_rings(50, seed=1)
        model = two_layer_machine(exact(Linear(), X), X, y, RBF(0.5))
        reference = SVC(kernel="rbf", gamma=0.5).fit(X, y)
        assert_array_equal(model.predict(new), reference.predict(new))

    def test_two_kernels_make_one_of_their_composition(self):
        """All components keep inner products: K2 of them is K2 of the centred Gram matrix."""
        X, y = two_rings(60)
        model = two_layer_machine(exact(RBF(0.5), X), X, y, Polynomial(2))
        H = np.eye(60) - 1.0 / 60
        gram = (H @ RBF(0.5)(X) @ H) ** 2
        reference = SVC(kernel="precomputed").fit(gram, y)
        assert_array_equal(model.predict(X), reference.predict(gram))
