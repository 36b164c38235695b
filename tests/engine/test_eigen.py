from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kpca_apps.engine.eigen import block_krylov, choose_solver, leading_eigenpairs
from kpca_apps.engine.gram import centre_in_place, gram_matrix, gram_product
from kpca_apps.engine.kernels import RBF, Linear, Sigmoid

from .kernels import normal_rows


def pairs(K, q, **options):
    return leading_eigenpairs(K.copy(), q, np.random.default_rng(0), **options)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("q", [1, 10, 40])
def test_krylov_equals_lapack(center, q):
    K = gram_matrix(RBF(0.02), normal_rows(600))
    values, vectors = pairs(K, q, center=center, solver="krylov")
    expected, reference = pairs(K, q, center=center, solver="lapack")
    assert_allclose(values, expected, rtol=0, atol=1e-8 * expected[0])
    # Vectors of eigenvalues that lie apart agree up to sign.
    assert_allclose(np.abs(vectors[:, 0] @ reference[:, 0]), 1.0, rtol=1e-8)
    product = gram_product(K, center=center)
    residual = np.linalg.norm(product(vectors) - vectors * values, axis=0)
    assert residual.max() <= 1e-7 * values[0]
    assert_allclose(vectors.T @ vectors, np.eye(q), rtol=0, atol=1e-10)


def test_krylov_did_the_work():
    K = gram_matrix(RBF(0.02), normal_rows(600))
    found = block_krylov(gram_product(K, center=True), 600, 5, np.random.default_rng(0))
    assert found is not None


def test_a_good_start_saves_products_and_changes_no_eigenvalue():
    K = gram_matrix(RBF(0.02), normal_rows(600))
    product, widths = gram_product(K, center=True), []

    def counted(V):
        widths.append(V.shape[1])
        return product(V)

    def found(start):
        widths.clear()
        values, _ = block_krylov(counted, 600, 5, np.random.default_rng(0), start=start)
        return values, len(widths)

    random = np.random.default_rng(0).standard_normal((600, 16))
    (values, few), (expected, more) = found(product(random)), found(random)
    assert few < more
    assert_allclose(values, expected, rtol=1e-8)


def test_krylov_finds_more_equal_eigenvalues_than_its_block_is_wide():
    diagonal = np.repeat([5.0, 3.0, 1.0], [20, 20, 360])
    values, vectors = pairs(np.diag(diagonal), 30, center=False, solver="krylov")
    assert_allclose(values, diagonal[:30], rtol=1e-10)
    assert_allclose(vectors.T @ vectors, np.eye(30), atol=1e-10)


def test_krylov_on_a_matrix_of_low_rank_finds_the_rank():
    K = gram_matrix(Linear(), normal_rows(400, d=3))
    values, _ = pairs(K, 10, solver="krylov")
    centre_in_place(K)
    assert_allclose(values, np.linalg.eigvalsh(K)[::-1][:3], rtol=1e-10)


def test_krylov_orders_an_indefinite_matrix_by_modulus():
    X = normal_rows(500, d=2)
    K = gram_matrix(Sigmoid(0.5, -1.0), X)
    options = {"by_modulus": True, "center": False}
    values, _ = pairs(K, 6, solver="krylov", **options)
    expected = np.linalg.eigvalsh(K)
    expected = expected[np.argsort(-np.abs(expected))][:6]
    assert (expected < 0).any()
    assert_allclose(values, expected, rtol=0, atol=1e-8 * abs(expected[0]))


def test_an_iteration_that_does_not_converge_says_so_and_lapack_takes_over():
    K = np.diag(np.linspace(1.0, 1.001, 100))
    product = gram_product(K, center=False)
    assert block_krylov(product, 100, 10, np.random.default_rng(0)) is None
    values, _ = pairs(K, 10, center=False, solver="krylov")
    assert_allclose(values, np.diag(K)[::-1][:10], rtol=1e-12)


def test_rounding_is_no_component():
    values, vectors = pairs(np.ones((50, 50)), 50)
    assert values.size == 0 and vectors.shape == (50, 0)
    values, vectors = pairs(np.ones((50, 50)), 50, center=False)
    assert_allclose(values, [50.0])


def test_no_component_needs_no_solver():
    values, vectors = pairs(np.eye(3), 0)
    assert values.shape == (0,) and vectors.shape == (3, 0)


def test_the_same_seed_gives_the_same_bits():
    K = gram_matrix(RBF(0.02), normal_rows(400))
    assert_array_equal(pairs(K, 5, solver="krylov")[1], pairs(K, 5, solver="krylov")[1])


@pytest.mark.parametrize(
    ("n", "q", "solver", "expected"),
    [
        (1500, 5, "auto", "lapack"),
        (1501, 5, "auto", "krylov"),
        (2000, 250, "auto", "lapack"),
        (100, 5, "krylov", "krylov"),
        (9000, 5, "lapack", "lapack"),
    ],
)
def test_choice_of_solver(n, q, solver, expected):
    assert choose_solver(n, q, solver) == expected


@given(n=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_implicit_centring_is_explicit_centring(n, seed):
    rng = np.random.default_rng(seed)
    K, V = rng.normal(size=(n, n)), rng.normal(size=(n, 3))
    K = K + K.T
    H = np.eye(n) - 1.0 / n
    assert_allclose(gram_product(K, center=True)(V), H @ K @ H @ V, rtol=0, atol=1e-12)
    centred = K.copy()
    centre_in_place(centred)
    assert_allclose(centred, H @ K @ H, rtol=0, atol=1e-13)
