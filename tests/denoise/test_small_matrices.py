"""The compiled linear algebra against LAPACK in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from kpca_apps.denoise._small_matrices import (
    add_product,
    gram_of_columns,
    leading_eigenvectors,
    padded_size,
)

Matrix = NDArray[np.float32]

SHAPES = [(1, 1), (2, 3), (5, 9), (48, 36), (64, 49), (90, 64)]


def padded(a: NDArray[np.floating]) -> Matrix:
    """Copy a with its rows widened to whole registers by zeros."""
    wide = np.zeros((len(a), padded_size(a.shape[1])), np.float32)
    wide[:, : a.shape[1]] = a
    return wide


def square(a: NDArray[np.floating]) -> Matrix:
    """Copy a square matrix into a padded square one."""
    n = padded_size(len(a))
    wide = np.zeros((n, n), np.float32)
    wide[: len(a), : len(a)] = a
    return wide


def random(rows: int, columns: int) -> NDArray[np.float64]:
    return np.random.default_rng(rows * 1000 + columns).normal(size=(rows, columns))


@pytest.mark.parametrize(("k", "n"), SHAPES)
def test_gram_is_the_matrix_product(k: int, n: int) -> None:
    a = random(k, n)
    gram = square(np.ones((n, n)))
    gram_of_columns(padded(a), padded(a.T), gram, k, n)
    np.testing.assert_allclose(gram[:n, :n], a.T @ a, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("k", "n"), SHAPES)
def test_products_are_added(k: int, n: int) -> None:
    a, b = random(k, n), random(n, k)
    out = padded(np.ones((k, k)))
    add_product(padded(a), padded(b), out, k, n)
    np.testing.assert_allclose(out[:, :k], 1 + a @ b, rtol=1e-4, atol=1e-4)


def eigenpairs(a: NDArray[np.floating], edge: float) -> tuple[NDArray[np.floating], Matrix]:
    n = len(a)
    vectors, values = np.zeros((n, padded_size(n)), np.float32), np.zeros(n, np.float32)
    q = leading_eigenvectors(square(a), n, np.float32(edge), vectors, values)
    return values[:q], vectors[:q, :n]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 36, 49, 64])
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_eigenpairs_above_an_edge(n: int, share: float) -> None:
    a = random(n, n)
    a = 1e4 * (a @ a.T + np.eye(n))
    every, basis = np.linalg.eigh(a)
    wanted = round(share * n)
    edge = (
        0.0
        if wanted == n
        else 0.5 * (every[n - wanted - 1] + (every[n - wanted :].tolist() or [2 * every[-1]])[0])
    )
    values, vectors = eigenpairs(a, edge)
    assert len(values) == wanted
    np.testing.assert_allclose(values, every[::-1][:wanted], rtol=2e-3)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(wanted), atol=1e-4)
    kept = basis[:, n - wanted :]
    np.testing.assert_allclose(vectors.T @ vectors, kept @ kept.T, atol=5e-3)


def test_repeated_eigenvalues_still_span_their_space() -> None:
    basis = np.linalg.qr(random(40, 40))[0]
    a = (basis * np.repeat([100.0, 50.0, 1.0], [4, 3, 33])) @ basis.T
    values, vectors = eigenpairs(a, 10.0)
    np.testing.assert_allclose(values, np.repeat([100.0, 50.0], [4, 3]), rtol=1e-4)
    np.testing.assert_allclose(vectors.T @ vectors, basis[:, :7] @ basis[:, :7].T, atol=1e-3)


def test_a_zero_and_a_diagonal_matrix() -> None:
    assert len(eigenpairs(np.zeros((9, 9)), 0.5)[0]) == 0
    values, vectors = eigenpairs(np.diag(np.arange(9.0)), 5.5)
    np.testing.assert_allclose(values, [8, 7, 6], rtol=1e-5)
    np.testing.assert_allclose(np.abs(vectors), np.eye(9)[[8, 7, 6]], atol=1e-5)
