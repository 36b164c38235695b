"""Leading eigenpairs of a Gram matrix: LAPACK where it is cheap, else block Krylov, checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr

from kpca_apps.engine.blocks import one_blas_thread
from kpca_apps.engine.gram import centre_in_place, gram_product

__all__ = ["Solver", "block_krylov", "choose_solver", "krylov_basis_limit", "leading_eigenpairs"]

Matrix = NDArray[np.float64]
Operator = Callable[[Matrix], Matrix]
Solver = Literal["auto", "lapack", "krylov"]

TOLERANCE = 1e-8
"""Residual of an accepted eigenpair, relative to the largest eigenvalue."""

SMALL = 1500
"""Up to this many rows LAPACK is as fast as anything."""


def choose_solver(n: int, q: int, solver: Solver = "auto") -> Literal["lapack", "krylov"]:
    """Return the solver that ``"auto"`` stands for.

    Examples
    --------
    >>> choose_solver(1000, 10), choose_solver(5000, 10), choose_solver(5000, 1000)
    ('lapack', 'krylov', 'lapack')
    """
    if solver != "auto":
        return solver
    return "lapack" if n <= SMALL or 8 * q >= n else "krylov"


def krylov_basis_limit(n: int) -> int:
    """Return the number of basis vectors after which LAPACK is the better choice."""
    return max(int(0.3 * n), 1)


def leading_eigenpairs(
    K: Matrix,
    q: int,
    rng: np.random.Generator,
    *,
    center: bool = True,
    by_modulus: bool = False,
    solver: Solver = "auto",
) -> tuple[Matrix, Matrix]:
    """Return the ``q`` leading eigenpairs of HKH (or of K), largest first.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric; its memory is used and its contents are lost.
    q : int in [0, n]
    rng : numpy.random.Generator
        Where the Krylov iteration starts.
    center : bool
    by_modulus : bool
        Order by the modulus of the eigenvalues: for indefinite kernels.
    solver : {"auto", "lapack", "krylov"}

    Returns
    -------
    values : ndarray of shape (r,)
        r <= q: eigenvalues of modulus below n eps times the largest are rounding, and left out.
    vectors : ndarray of shape (n, r)
        Of unit length.
    """
    n = len(K)
    if q == 0:
        return np.empty(0), np.empty((n, 0))
    with one_blas_thread():
        pairs = None
        if choose_solver(n, q, solver) == "krylov":
            product = gram_product(K, center=center)
            pairs = block_krylov(product, n, q, rng, by_modulus=by_modulus)
        # Where the iteration needs too long a basis, LAPACK has less to do than it has left.
        values, vectors = pairs or _lapack(K, q, center=center, by_modulus=by_modulus)
    size = np.abs(values)
    keep = size > n * np.finfo(np.float64).eps * size[0]
    if not by_modulus:
        keep &= values > 0.0
    return values[keep], vectors[:, keep]


def _lapack(K: Matrix, q: int, *, center: bool, by_modulus: bool) -> tuple[Matrix, Matrix]:
    n = len(K)
    if center:
        centre_in_place(K)
    first = 0 if by_modulus else n - q
    # The transpose of a symmetric matrix is itself, and in the order LAPACK can overwrite.
    values, vectors = eigh(
        K.T, subset_by_index=(first, n - 1), driver="evr", overwrite_a=True, check_finite=False
    )
    return _leading(values, vectors, q, by_modulus)


def block_krylov(
    product: Operator,
    n: int,
    q: int,
    rng: np.random.Generator,
    *,
    by_modulus: bool = False,
    tolerance: float = TOLERANCE,
) -> tuple[Matrix, Matrix] | None:
    """Return the leading eigenpairs of a symmetric operator, or None if the basis grew too long.

    A block Lanczos iteration that keeps its whole basis orthonormal (each block is
    orthogonalised twice) and reads eigenpairs off it by Rayleigh and Ritz. No pair is returned
    whose true residual |A v - theta v| exceeds ten times the tolerance.

    Parameters
    ----------
    product : callable
        Maps ``(n, b)`` to ``(n, b)``.
    n, q : int
        Order of the operator, number of eigenpairs.
    rng : numpy.random.Generator
    by_modulus : bool
    tolerance : float
        Of the estimated residuals, relative to the largest eigenvalue.

    References
    ----------
    .. [1] Golub and Underwood (1977), The block Lanczos method for computing eigenvalues.
    """
    b = 16 if q <= 32 else 32
    limit = krylov_basis_limit(n)
    basis = np.empty((n, limit), order="F")
    ritz = np.zeros((limit, limit))
    size, next_check, settled = 0, q, np.empty(0)
    current = _orthonormal(product(rng.standard_normal((n, b))), basis[:, :0])
    while size + b <= limit:
        new = slice(size, size + b)
        basis[:, new] = current
        size += b
        known = basis[:, :size]
        image = product(current)
        ritz[:size, new] = known.T @ image
        ritz[new, :size] = ritz[:size, new].T
        rest = image - known @ ritz[:size, new]
        rest -= known @ (known.T @ rest)
        rounding = n * np.finfo(np.float64).eps * np.abs(ritz[:size, :size]).max()
        invariant = float(np.abs(rest).max()) <= rounding
        if size >= next_check or (invariant and size >= q):
            pairs = _ritz_pairs(known, ritz[:size, :size], rest, q, by_modulus, tolerance)
            if pairs is not None and _residual(product, *pairs) <= 10.0 * tolerance:
                # An invariant basis may lack copies of eigenvalues repeated more often than a
                # block is wide: it is believed when a new start has changed nothing.
                if not invariant or _same(pairs[0], settled):
                    return pairs
                settled = pairs[0]
            next_check = size + max(b, size // 8)
        if invariant:
            rest = product(rng.standard_normal((n, b)))
        current = _orthonormal(rest, known)
    return None


def _orthonormal(block: Matrix, basis: Matrix) -> Matrix:
    """Return orthonormal columns orthogonal to ``basis``; twice is enough (Kahan, Parlett)."""
    for _ in range(2):
        block = block - basis @ (basis.T @ block)
        block = qr(block, mode="economic", check_finite=False)[0]
    return block


def _ritz_pairs(
    basis: Matrix, ritz: Matrix, rest: Matrix, q: int, by_modulus: bool, tolerance: float
) -> tuple[Matrix, Matrix] | None:
    """Return the q leading Ritz pairs if their estimated residuals are small, else None."""
    every_value, every_vector = eigh(ritz, check_finite=False)
    values, vectors = _leading(every_value, every_vector, q, by_modulus)
    b = rest.shape[1]
    triangle = qr(rest, mode="r", check_finite=False)[0][:b]
    residuals = np.linalg.norm(triangle @ vectors[-b:], axis=0)
    if residuals.max() > tolerance * abs(values[0]):
        return None
    return values, basis @ vectors


def _residual(product: Operator, values: Matrix, vectors: Matrix) -> float:
    """Return the largest true residual, relative to the largest eigenvalue."""
    residuals = np.linalg.norm(product(vectors) - vectors * values, axis=0)
    return float(residuals.max() / max(abs(values[0]), np.finfo(np.float64).tiny))


def _same(values: Matrix, others: Matrix) -> bool:
    return values.shape == others.shape and bool(np.allclose(values, others, rtol=1e-10))


def _leading(values: Matrix, vectors: Matrix, q: int, by_modulus: bool) -> tuple[Matrix, Matrix]:
    """Return the q leading of pairs in increasing order, largest first."""
    order = np.argsort(-np.abs(values) if by_modulus else -values, kind="stable")[:q]
    return values[order], vectors[:, order]
