from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF, Polynomial
from kpca_apps.papers.methods.on_components import component_moments, projection_pursuit
from tests.engine.examples import ORACLES, exact
from tests.papers.comparing import clouds, misc_oracle, tiny_rows


def test_third_moments_are_those_of_the_oracle():
    X, _ = tiny_rows()
    with np.load(ORACLES / "tiny_kpca_mp50.npz") as oracle:
        reference = oracle["poly_hom_d2|centred|Ptr"]
    T = exact(Polynomial(2), X).project(X)
    signs = np.sign(np.einsum("ij,ij->j", T, reference))
    expected = misc_oracle()["moments3_poly_hom_d2"]
    assert_allclose(component_moments(T * signs, 3), expected, rtol=1e-9, atol=1e-11)


def test_fourth_moments_by_brute_force():
    T = np.random.default_rng(0).normal(size=(9, 2))
    expected = sum(np.multiply.outer(np.outer(t, t), np.outer(t, t)) for t in T) / 9
    assert_allclose(component_moments(T, 4), expected, rtol=1e-12)


def test_the_first_direction_found_is_an_extremum_of_kurtosis():
    """There the gradient E[(w.z)^3 z] has no part along the sphere; the values follow from w."""
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
    assert tangential.max() > 0.1  # the others are extreme only beside those before them
