from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF, Linear, Polynomial, ScaledInputs
from kpca_apps.papers.kernels.composed import MappedInputs
from tests.engine.examples import normal_rows

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


def test_a_rotation_changes_no_kernel_of_distance_or_product():
    turned, _ = np.linalg.qr(A[:4])
    X = normal_rows(9)
    for kernel in (RBF(0.3), Polynomial(3, 1.0, 1.0)):
        assert_allclose(MappedInputs(kernel, turned)(X), kernel(X), rtol=1e-10)


@pytest.mark.parametrize(
    "matrix", [(), ((),), ((1.0,), (1.0, 2.0)), ((np.nan,),), (1, 2), None, 3, np.ones(3)]
)
def test_refuses_what_is_no_matrix(matrix):
    with pytest.raises(ValueError, match="matrix"):
        MappedInputs(Linear(), matrix)


def test_refuses_rows_of_another_length():
    with pytest.raises(ValueError, match="4 columns, but the rows have 3"):
        MappedInputs(Linear(), A)(normal_rows(3, d=3))
    with pytest.raises(ValueError, match="must be a Kernel"):
        MappedInputs("rbf", A)


def test_huge_products_are_no_warning_of_their_own():
    assert np.isinf(MappedInputs(RBF(1.0), [[1e300, 0.0]]).map_rows(np.full((1, 2), 1e10))).all()
