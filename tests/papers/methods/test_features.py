import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.svm import SVC

from kpca_apps.engine.kernels import RBF, Linear, Polynomial, Scaled
from kpca_apps.papers.kernels import monomials
from kpca_apps.papers.measuring import components
from kpca_apps.papers.methods.features import (
    batch_kernel_kmeans,
    class_means,
    component_discriminant,
    component_moments,
    component_svm,
    feature_distances,
    kernel_neighbour_labels,
    neighbourhood_components,
    online_kernel_kmeans,
    projection_pursuit,
    regress_on_components,
    two_layer_machine,
)
from tests.engine.examples import ORACLES, exact
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
        """Eq. (3.3) as printed adds b, where eq. (3.1) subtracts b."""
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

    def test_a_polynomial_kernel_changes_the_rule(self):
        """(x.y)^2 equates mirror images, so -x gets the class of the rows near x."""
        X = np.array([[3.0, 0.1], [2.9, 0.0], [0.0, 3.0], [0.1, 2.8]])
        new = np.array([[-3.0, 0.0]])
        assert kernel_neighbour_labels(Polynomial(2), X, [1, 1, 0, 0], new, n_neighbours=2) == [1]
        assert feature_distances(Polynomial(2), -X, X).diagonal().max() < 1e-6


class TestDiscriminant:
    def test_is_the_kernel_fisher_discriminant(self):
        """For two classes, alpha = N^-1 (M1 - M2) over kernel columns (Mika et al. 1999)."""
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
            component_svm(exact(k, X, 6), X, y, C=10.0).predict(X)
            for k in (kernel, Scaled(1e4, kernel))
        ]
        assert_array_equal(*labels)
        assert (labels[0] == y).mean() > 0.9


class TestTwoLayers:
    def test_two_kernels_make_one_of_their_composition(self):
        """Inner products of projections on all components are the centred Gram matrix."""
        X, y = two_rings(60)
        model = two_layer_machine(exact(RBF(0.5), X), X, y, Polynomial(2))
        H = np.eye(60) - 1.0 / 60
        gram = (H @ RBF(0.5)(X) @ H) ** 2
        reference = SVC(kernel="precomputed").fit(gram, y)
        assert_array_equal(model.predict(X), reference.predict(gram))


KERNELS = {"linear": Linear(), "rbf_gamma0.5": RBF(0.5), "poly_hom_d2": Polynomial(2)}


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_one_online_pass_is_that_of_the_oracle(name):
    X, _ = tiny_rows()
    oracle = misc_oracle()[f"kkmeans_{name}"]
    found = online_kernel_kmeans(KERNELS[name], X, 2)
    assert_array_equal(found.labels, oracle["labels_online"])
    assert_allclose(found.gamma, oracle["gamma"], rtol=1e-13, atol=1e-15)
    assert_allclose(found.squared_distances(X), oracle["dist2_train"], rtol=1e-12, atol=1e-13)


def test_on_all_components_k_means_is_kernel_k_means():
    X, kernel = clouds(), RBF(0.5)
    T = components(kernel, X).project(X)
    starts = np.random.default_rng(0).permutation(len(X))[:3]
    found = batch_kernel_kmeans(kernel, X, kernel(X, X[starts]).argmax(axis=1))
    reference = KMeans(3, init=T[starts], n_init=1, tol=0.0, max_iter=300).fit(T)
    assert_array_equal(found.labels, reference.labels_)
    inertia = found.squared_distances(X).min(axis=1).sum()
    assert inertia == pytest.approx(reference.inertia_, rel=1e-8)


def test_a_cluster_that_loses_its_rows_keeps_its_mean():
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    found = batch_kernel_kmeans(Linear(), X, np.array([0, 1, 2, 2]))
    assert found.gamma.shape == (3, 4)
    assert_allclose(found.gamma.sum(axis=1), 1.0)
    # Of two equal means, the second loses all its rows but stays where it started.
    found = batch_kernel_kmeans(Linear(), X[[0, 0, 2, 3]], np.array([0, 1, 2, 2]))
    assert_array_equal(found.labels, [0, 0, 2, 2])
    assert_allclose(found.gamma[1], [0.0, 1.0, 0.0, 0.0])


def parabola(n=60):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, size=n)
    return x[:, None], x + x**2 + rng.normal(scale=0.1, size=n)


class TestComponentRegression:
    def test_all_components_are_the_least_squares_parabola(self):
        """Regression on all components of (x.y + 1)^2 is least squares with 1, x and x^2."""
        X, y = parabola()
        model = regress_on_components(exact(Polynomial(2, 1.0, 1.0), X), X, y)
        place = np.linspace(-2.0, 2.0, 9)
        expected = np.polyval(np.polyfit(X[:, 0], y, 2), place)
        assert_allclose(model.predict(place[:, None]), expected, rtol=1e-8, atol=1e-9)


class TestNeighbourhood:
    def test_on_a_circle_the_component_is_the_tangent(self):
        angles = np.linspace(0.0, 2.0 * np.pi, 200, endpoint=False)
        X = np.column_stack([np.cos(angles), np.sin(angles)])
        for number in (0, 37, 120):
            near = neighbourhood_components(Linear(), X, X[number], 11, n_components=1)
            direction = near.points.T @ near.weights[:, 0]
            assert_allclose(np.abs(direction @ X[number]), 0.0, atol=1e-9)

    def test_takes_the_nearest(self):
        X = np.arange(10.0)[:, None]
        near = neighbourhood_components(Linear(), X, np.array([6.2]), 3)
        assert_array_equal(near.points[:, 0], [5.0, 6.0, 7.0])


def test_third_moments_are_those_of_the_oracle():
    X, _ = tiny_rows()
    with np.load(ORACLES / "tiny_kpca_mp50.npz") as oracle:
        reference = oracle["poly_hom_d2|centred|Ptr"]
    T = exact(Polynomial(2), X).project(X)
    signs = np.sign(np.einsum("ij,ij->j", T, reference))
    expected = misc_oracle()["moments3_poly_hom_d2"]
    assert_allclose(component_moments(T * signs, 3), expected, rtol=1e-9, atol=1e-11)


def test_the_first_direction_found_is_an_extremum_of_kurtosis():
    """At an extremum, E[(w.z)^3 z] has no part tangential to the unit sphere."""
    X = clouds()
    subspace = exact(RBF(0.3), X, 3)
    found = projection_pursuit(subspace, X, 0)
    whitened = subspace.project(X) / np.sqrt(subspace.variances)
    directions = whitened.T @ found / len(X)
    assert_allclose(directions.T @ directions, np.eye(3), atol=1e-6)
    gradients = whitened.T @ found**3 / len(X)
    along = np.einsum("ij,ij->j", gradients, directions)
    tangential = np.linalg.norm(gradients - along * directions, axis=0)
    assert tangential.min() < 0.02
    assert tangential.max() > 0.1  # the later directions are extremal only given the earlier ones
