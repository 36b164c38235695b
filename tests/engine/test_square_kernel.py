from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF, Polynomial
from kpca_apps.engine.square_kernel import is_square, square_expansion

from .test_exact import ORACLES


def test_a_component_has_the_points_of_the_oracle():
    with np.load(ORACLES / "tiny_kpca_mp50.npz") as tiny:
        X = tiny["X"]
    exact = json.loads((ORACLES / "misc_exact.json").read_text(encoding="utf-8"))
    oracle = exact["reduced_set_exact_poly2"]
    fitted = fit_exact(Polynomial(2), X, rng=np.random.default_rng(0), n_components=1)
    assert_allclose(fitted.weights[:, 0], oracle["alpha_centred_comp1"], rtol=1e-12)
    points, beta = square_expansion(X, fitted.weights[:, 0])
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


def test_rows_in_a_plane_need_two_points_a_component():
    X = np.random.default_rng(0).normal(size=(30, 2)) @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    assert len(square_expansion(X, np.ones(30))[0]) == 2


@pytest.mark.parametrize("kernel", [RBF(1.0), Polynomial(3), Polynomial(2, 1.0, 1.0)])
def test_other_kernels_are_not_square(kernel):
    assert not is_square(kernel)
