"""Kernels of mapped inputs, and iterated ones."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF, Linear, Polynomial, ScaledInputs, Sigmoid
from kpca_apps.papers.kernels.composed import Iterated, MappedInputs
from tests.engine.examples import ORACLES, exact, normal_rows

A = np.random.default_rng(5).normal(size=(6, 4))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_is_the_power_of_the_mapped_product(degree):
    X, Z = normal_rows(8), normal_rows(5, seed=1)
    expected = np.array([[np.dot(A @ x, A @ z) ** degree for z in Z] for x in X])
    assert_allclose(MappedInputs(Polynomial(degree), A)(X, Z), expected, rtol=1e-11, atol=1e-11)


def test_a_diagonal_matrix_scales_the_inputs():
    scale = (2.0, 0.5, 0.0, 1.0)
    mapped = MappedInputs(RBF(0.3), np.diag(np.sqrt(scale)))
    X = normal_rows(9)
    assert_allclose(mapped(X), ScaledInputs(RBF(0.3), scale)(X), rtol=1e-12)


@pytest.mark.parametrize(
    "matrix", [(), ((),), ((1.0,), (1.0, 2.0)), ((np.nan,),), (1, 2), None, 3, np.ones(3)]
)
def test_refuses_what_is_no_matrix(matrix):
    with pytest.raises(ValueError, match="matrix"):
        MappedInputs(Linear(), matrix)


def test_refuses_rows_of_another_length():
    with pytest.raises(ValueError, match="4 columns, but the rows have 3"):
        MappedInputs(Linear(), A)(normal_rows(3, d=3))
    with pytest.raises(ValueError):
        MappedInputs("rbf", A)


def test_huge_products_are_no_warning_of_their_own():
    assert np.isinf(MappedInputs(RBF(1.0), [[1e300, 0.0]]).map_rows(np.full((1, 2), 1e10))).all()


def test_over_an_even_grid_it_is_the_integral_of_the_oracle():
    """The mean over a grid times its length is the trapezoid rule; the integrand dies out."""
    oracle = json.loads((ORACLES / "misc_exact.json").read_text(encoding="utf-8"))[
        "iterated_rbf_1d"
    ]
    grid = np.linspace(-12.0, 14.0, 400, endpoint=False)[:, None]
    x = np.array(oracle["x"])[:, None]
    kernel = 26.0 * Iterated(RBF(oracle["g"]), grid)
    assert_allclose(kernel(x), oracle["K2"], rtol=1e-12)


def test_is_the_mean_over_the_points():
    X, Z, points = normal_rows(6), normal_rows(4, seed=1), normal_rows(5, seed=2)
    kernel = Sigmoid(0.2, 0.3)
    expected = sum(kernel(X, p[None]) @ kernel(p[None], Z) for p in points) / 5
    assert_allclose(Iterated(kernel, points)(X, Z), expected, rtol=1e-12)


def test_an_indefinite_kernel_gets_distances():
    X = normal_rows(40)
    kernel = Iterated(Sigmoid(0.2, -0.5), X)
    subspace = exact(kernel, X, n_components=3)
    error = subspace.reconstruction_error(X, clip=False)
    K = kernel(X)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    # The rows fitted on leave, on average, what the other components carry.
    left = np.linalg.eigvalsh(centred / len(X))[:-3].sum()
    assert error.mean() == pytest.approx(left, rel=1e-9)
    assert error.min() > -1e-12 * np.trace(K)
    with pytest.raises(ValueError, match="indefinite"):
        exact(Sigmoid(0.2, -0.5), X).reconstruction_error(X)


@pytest.mark.parametrize(
    "points", [(), ((),), ((1.0,), (1.0, 2.0)), ((np.inf,),), (1, 2), None, np.ones(3)]
)
def test_refuses_what_are_no_points(points):
    with pytest.raises(ValueError, match="points"):
        Iterated(Linear(), points)
    with pytest.raises(ValueError):
        Iterated("rbf", ((1.0,),))
