from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF
from kpca_apps.papers.methods.iterations import power_components, power_pairs

from ..comparing import clouds, exact


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
    with pytest.raises(ValueError, match="Eigenpair 1 has not settled after 1000 products"):
        power_pairs(K, 1, np.random.default_rng(0), max_iter=1000)


def test_equal_neighbours_are_told_apart_by_deflation():
    found = power_pairs(np.diag([1.0, 1.0, 0.5]), 2, np.random.default_rng(0))
    assert_allclose(found.values, 1.0, rtol=1e-9)
    assert abs(found.vectors[:, 0] @ found.vectors[:, 1]) < 1e-5
