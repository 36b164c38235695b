"""The compiled linear algebra equals LAPACK in double precision."""

import numpy as np
import pytest
from numpy.typing import NDArray

from kpca_apps.engine.linalg.small_matrices import (
    eliminate,
    leading_eigenvectors,
    multiply,
    padded_size,
)

Matrix = NDArray[np.float32]


def random(rows: int, columns: int) -> NDArray[np.float64]:
    return np.random.default_rng(rows * 1000 + columns).normal(size=(rows, columns))


def eigenpairs(a: NDArray[np.floating], edge: float) -> tuple[NDArray[np.floating], Matrix]:
    n = len(a)
    wide = np.zeros((n, padded_size(n)), np.float32)
    wide[:, :n] = a
    values, vectors = leading_eigenvectors(wide, n, np.float32(edge))
    assert not vectors[:, n:].any()
    return values, vectors[: len(values), :n]


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


@pytest.mark.parametrize("shape", [(1, 1), (36, 40), (49, 90), (64, 60)])
def test_products_and_elimination(shape: tuple[int, int]) -> None:
    """[S | B] becomes [U | V] with S = U'U and V = U'^-1 B, so that V'V = B' S^-1 B."""
    n, k = shape
    high, wide, across = -(-n // 4) * 4, padded_size(n), padded_size(k)
    x = np.zeros((k, wide), np.float32)
    x[:, :n] = random(k, n)
    a = np.full((high, wide + across), np.nan, np.float32)
    multiply(x, (0, wide, 1), x, k, a, (0, high), (0, wide), False)
    np.testing.assert_allclose(a[:n, :n], x[:, :n].T @ x[:, :n], atol=1e-4)
    a[np.arange(high), np.arange(high)] += 2
    a[:, wide:] = 0
    a[:n, wide : wide + k] = x[:, :n].T
    s = x.T.astype(float) @ x + 2 * np.eye(wide)
    eliminate(a, high, np.float32(2))
    upper = np.triu(a[:n, :n]).astype(float)
    np.testing.assert_allclose(upper.T @ upper, s[:n, :n], atol=1e-3)
    theta = np.zeros((-(-k // 4) * 4, across), np.float32)
    steps = wide, wide + across, 1
    multiply(a, steps, a[:, wide:].copy(), n, theta, (0, len(theta)), (0, across), False)
    np.testing.assert_allclose(theta[:k, :k], x @ np.linalg.solve(s, x.T), atol=1e-4)
