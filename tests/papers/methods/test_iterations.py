"""The power method, Sanger's rule, and random features, which only come near."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.papers.methods.fewer_rows import random_feature_pca
from kpca_apps.papers.methods.iterations import hebbian_components, power_components, power_pairs
from tests.engine.examples import exact
from tests.papers.comparing import clouds, largest_angle


def test_pairs_are_those_of_lapack():
    A = np.random.default_rng(0).normal(size=(12, 12))
    K = A @ A.T
    found = power_pairs(K, 4, np.random.default_rng(1), tolerance=1e-9)
    values, vectors = np.linalg.eigh(K)
    assert_allclose(found.values, values[::-1][:4], rtol=1e-12)
    cosines = np.einsum("ij,ij->j", found.vectors, vectors[:, ::-1][:, :4])
    assert_allclose(np.abs(cosines), 1.0, rtol=1e-12)
    assert (found.products > 1).all()


def test_components_are_the_exact_ones():
    X = clouds()
    found = power_components(RBF(0.3), X, 2, np.random.default_rng(0))
    direct = exact(RBF(0.3), X, 2)
    assert_allclose(found.variances, direct.variances, rtol=1e-9)
    assert_allclose(np.abs(found.project(X)), np.abs(direct.project(X)), rtol=0, atol=1e-5)
    assert_allclose(
        found.reconstruction_error(X), direct.reconstruction_error(X), rtol=0, atol=1e-5
    )


def test_nearly_equal_neighbours_do_not_settle():
    K = np.diag([1.0, 1.0 - 1e-5, 0.5])
    with pytest.raises(ValueError, match="Eigenpair 1 has not settled"):
        power_pairs(K, 1, np.random.default_rng(0), max_iter=1000)


def test_equal_neighbours_are_told_apart_by_deflation():
    found = power_pairs(np.diag([1.0, 1.0, 0.5]), 2, np.random.default_rng(0))
    assert_allclose(found.values, 1.0, rtol=1e-9)
    assert abs(found.vectors[:, 0] @ found.vectors[:, 1]) < 1e-5


def test_random_features_approach_kernel_pca():
    X = clouds()
    true = exact(RBF(0.3), X, 2)
    errors = []
    for m in (30, 3000):
        pipeline = random_feature_pca(0.3, m, 2, 0).fit(X)
        variances = pipeline[-1].explained_variance_ * (len(X) - 1) / len(X)
        errors.append(np.abs(variances / true.variances - 1.0).max())
    assert errors[1] < 0.05 < errors[0]
    projections = pipeline.transform(X)
    cosines = np.abs(np.einsum("ij,ij->j", projections, true.project(X)))
    cosines /= np.linalg.norm(projections, axis=0) * np.linalg.norm(true.project(X), axis=0)
    assert_allclose(cosines, 1.0, atol=0.01)


def test_sangers_rule_finds_the_components():
    X = clouds(60)
    found = hebbian_components(RBF(0.3), X, 2, np.random.default_rng(0), passes=200)
    true = exact(RBF(0.3), X, 2)
    assert_allclose(found.variances, true.variances, rtol=1e-3)
    assert largest_angle(found, true) < 0.03


def test_with_the_linear_kernel_it_is_the_hebbian_network():
    """Sanger's rule in the weights themselves, row by row, from the same start."""
    X = clouds(25)
    centred = X - X.mean(axis=0)
    rng = np.random.default_rng(3)
    gram = centred @ centred.T
    A = rng.normal(size=(2, 25))
    W = A @ centred / np.sqrt(np.einsum("ai,ij,aj->a", A, gram, A))[:, None]
    rate = 0.1 * 25 / np.trace(gram)
    for turn in range(3):
        eta = rate / (1.0 + turn / 10.0)
        for t in rng.permutation(25):
            y = W @ centred[t]
            W = W + eta * (np.outer(y, centred[t]) - np.tril(np.outer(y, y)) @ W)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    found = hebbian_components(Linear(), X, 2, np.random.default_rng(3), passes=3)
    assert_allclose(np.abs(found.project(X)), np.abs(centred @ W.T), rtol=0, atol=1e-10)
