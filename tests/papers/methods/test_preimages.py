"""Components as points of a family."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.papers.methods.preimages import parametrised_set
from tests.engine.examples import exact, normal_rows


def direction(angle):
    return np.hstack([np.cos(angle), np.sin(angle)])


def test_of_the_linear_kernel_it_finds_the_principal_axis():
    X = normal_rows(60, 2) @ [[2.0, 1.0], [0.0, 0.7]]
    found = parametrised_set(exact(Linear(), X, 1), direction, np.array([[0.0]]))
    axis = PCA(1).fit(X).components_[0]
    assert abs(found.points[0] @ axis) == pytest.approx(1.0, abs=1e-9)
    assert_allclose(found.rho, 0.0, atol=1e-9)


def test_two_directions_make_any_component_of_the_square_kernel():
    """A component of (x.y)^2 in the plane is a symmetric matrix: sum of two dyads, rho = 0."""
    X = normal_rows(50, 2)
    subspace = exact(Polynomial(2), X, 1, center=False)
    found = parametrised_set(subspace, direction, np.array([[0.2], [1.5]]))
    assert_allclose(found.rho, 0.0, atol=1e-7)
    matrix = np.einsum("j,ja,jb->ab", subspace.weights[:, 0], X, X)
    rebuilt = np.einsum("j,ja,jb->ab", found.coefficients[:, 0], found.points, found.points)
    assert_allclose(rebuilt, matrix, atol=1e-3)


def test_distances_are_those_of_the_definition():
    """rho = |V|^2 + |V~|^2 - 2 <V, V~> (eq. 27), and the points are no worse than the start."""
    subspace = exact(RBF(0.4), normal_rows(40, 2), 2)
    start = np.array([[0.3, 0.1], [-0.5, 0.8], [0.9, -0.4]])
    found = parametrised_set(subspace, lambda points: points, start)
    for part in (found, parametrised_set(subspace, lambda points: points, start, max_iter=0)):
        cross = part.coefficients.T @ subspace.kernel(part.points, subspace.points)
        own = part.coefficients.T @ subspace.kernel(part.points) @ part.coefficients
        rho = 1.0 + np.diag(own) - 2.0 * np.diag(cross @ subspace.weights)
        assert_allclose(part.rho, rho, atol=1e-7)
    assert found.rho.sum() < part.rho.sum()
