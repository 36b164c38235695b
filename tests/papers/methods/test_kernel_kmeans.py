from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.papers.measuring import components
from kpca_apps.papers.methods.means_and_neighbours import batch_kernel_kmeans, online_kernel_kmeans
from tests.papers.comparing import clouds, misc_oracle, tiny_rows

KERNELS = {"linear": Linear(), "rbf_gamma0.5": RBF(0.5), "poly_hom_d2": Polynomial(2)}


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_one_online_pass_is_that_of_the_oracle(name):
    X, _ = tiny_rows()
    oracle = misc_oracle()[f"kkmeans_{name}"]
    found = online_kernel_kmeans(KERNELS[name], X, 2)
    assert_array_equal(found.labels, oracle["labels_online"])
    assert_allclose(found.gamma, oracle["gamma"], rtol=1e-13, atol=1e-15)
    assert_allclose(found.squared_distances(X), oracle["dist2_train"], rtol=1e-12, atol=1e-13)


def test_means_are_those_of_their_rows():
    """After a pass the update rule has made plain averages: that is what counts are for."""
    X = clouds()
    found = online_kernel_kmeans(Linear(), X, 3)
    for mean, number in zip(found.gamma @ X, range(3), strict=True):
        assert_allclose(mean, X[found.labels == number].mean(axis=0), rtol=1e-10)


def test_with_the_linear_kernel_batches_are_lloyds_algorithm():
    X = clouds()
    start = online_kernel_kmeans(Linear(), X, 3)
    found = batch_kernel_kmeans(Linear(), X, start.labels)
    means = np.stack([X[start.labels == v].mean(axis=0) for v in range(3)])
    reference = KMeans(3, init=means, n_init=1, tol=0.0, max_iter=300).fit(X)
    assert_array_equal(found.labels, reference.labels_)
    assert_allclose(found.gamma @ X, reference.cluster_centers_, rtol=1e-10)
    new = clouds(20, seed=1)
    assert_array_equal(found.predict(new), reference.predict(new))


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
    # Both means at one place: the second one has nothing left, and stays there.
    found = batch_kernel_kmeans(Linear(), X[[0, 0, 2, 3]], np.array([0, 1, 2, 2]))
    assert_array_equal(found.labels, [0, 0, 2, 2])
    assert_allclose(found.gamma[1], [0.0, 1.0, 0.0, 0.0])
