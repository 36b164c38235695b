"""The compiled linear algebra against LAPACK in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from kpca_apps.denoise.passes.small_matrices import leading_eigenvectors

Matrix = NDArray[np.float32]


def random(rows: int, columns: int) -> NDArray[np.float64]:
    return np.random.default_rng(rows * 1000 + columns).normal(size=(rows, columns))


def eigenpairs(a: NDArray[np.floating], edge: float) -> tuple[NDArray[np.floating], Matrix]:
    return leading_eigenvectors(a.astype(np.float32), np.float32(edge))


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
