from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF, Polynomial
from kpca_apps.papers.methods.square_kernel import exact_expansion, square_expansion

from ..comparing import exact, misc_oracle, tiny_rows


def test_a_component_has_the_points_of_the_oracle():
    X, _ = tiny_rows()
    oracle = misc_oracle()["reduced_set_exact_poly2"]
    component = exact(Polynomial(2), X, 1).weights[:, 0]
    assert_allclose(component, oracle["alpha_centred_comp1"], rtol=1e-12)
    points, beta = square_expansion(X, component)
    order = np.argsort(beta)
    assert_allclose(beta[order], oracle["beta"], rtol=1e-12)
    # A point and its mirror image are one to (x.y)^2.
    signs = np.sign(np.einsum("ij,ij->i", points[order], oracle["Z_rows"]))
    assert_allclose(signs[:, None] * points[order], oracle["Z_rows"], rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_nothing_is_lost_in_feature_space(d):
    """rho = |V|^2 + |V~|^2 - 2 <V, V~> (eq. 27), from kernel values alone."""
    rng = np.random.default_rng(d)
    X, alpha = rng.normal(size=(40, d)), rng.normal(size=40)
    points, beta = square_expansion(X, alpha)
    assert len(points) <= d
    K = Polynomial(2)
    length = alpha @ K(X) @ alpha
    rho = length + beta @ K(points) @ beta - 2.0 * alpha @ K(X, points) @ beta
    assert abs(rho) < 1e-12 * length


@pytest.mark.parametrize("center", [True, False])
def test_scores_stay_what_they_are(center):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(90, 4)), rng.normal(size=(20, 4))
    before = exact(Polynomial(2, 0.3), X, 3, center=center)
    after = exact_expansion(before)
    assert len(after.points) == 4 * (4 if center else 3)
    assert_allclose(after.project(new), before.project(new), rtol=0, atol=1e-12)
    errors = [s.reconstruction_error(new) for s in (after, before)]
    assert_allclose(errors[0], errors[1], rtol=1e-10)


def test_rows_in_a_plane_need_two_points_a_component():
    X = np.random.default_rng(0).normal(size=(30, 2)) @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    assert len(square_expansion(X, np.ones(30))[0]) == 2


@pytest.mark.parametrize("kernel", [RBF(1.0), Polynomial(3), Polynomial(2, 1.0, 1.0)])
def test_refuses_other_kernels(kernel):
    with pytest.raises(ValueError, match=r"Only \(x.y\)\^2 has an exact reduced set"):
        exact_expansion(exact(kernel, np.eye(4), 1))
