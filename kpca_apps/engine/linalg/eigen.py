"""Leading eigenpairs of a Gram matrix, by LAPACK or by block Krylov with checked residuals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.linalg import eigh, qr

from kpca_apps.engine.kernels.base import SINGLE
from kpca_apps.engine.linalg.gram import centre_in_place
from kpca_apps.engine.precision import smallest_eigenvalue
from kpca_apps.system.arrays import Mask, Matrix, Values

Operator = Callable[[Values], Values]
Solver = Literal["auto", "lapack", "krylov"]

# Largest residual of an eigenpair, relative to the largest eigenvalue.
TOLERANCE = {"float32": 1e-5, "float64": 1e-8}
OWN_TOLERANCE = 1e-2  # largest residual of an eigenpair, relative to its own eigenvalue
SMALL = 1500  # up to this number of rows, LAPACK is fastest
# Largest number of vectors to multiply, as a share of n, before LAPACK is faster.
MOST_PRODUCTS = 0.6
MOST_SOME = 0.4  # above this share of the eigenpairs, LAPACK computes all of them as fast
ROWS_A_BLOCK = 4096  # number of rows converted to float64 at a time


def choose_solver(n: int, q: int, solver: Solver = "auto") -> Literal["lapack", "krylov"]:
    """Return the solver that ``"auto"`` stands for."""
    if solver != "auto":
        return solver
    return "lapack" if n <= SMALL or 8 * q >= n else "krylov"


def lapack_vectors(n: int, q: int, *, by_modulus: bool) -> int:
    """Return the number of eigenvectors to request from LAPACK."""
    return n if by_modulus or q > MOST_SOME * n else q


def block_width(q: int) -> int:
    """Return the number of vectors to multiply at once for ``q`` eigenpairs."""
    return 16 if q <= 32 else 32


def krylov_basis_limit(n: int, q: int) -> int:
    """Return the number of basis vectors at which the iteration restarts."""
    return max(min(int(0.3 * n), 3 * q + 6 * block_width(q)), 1)


def significant(values: Matrix, smallest: float, *, by_modulus: bool) -> Mask:
    """Return which eigenvalues exceed ``smallest``, in modulus if ``by_modulus``."""
    # Unlike the test "eigenval > 0" of Aguilera and Antonanzas (2019), drop rounding errors.
    return np.asarray((np.abs(values) if by_modulus else values) > smallest)


def lapack_pairs(K: Values, q: int, *, center: bool, by_modulus: bool) -> tuple[Matrix, Matrix]:
    """Return the ``q`` leading eigenpairs of HKH (or of K) by LAPACK, overwriting K."""
    n = len(K)
    if center:
        centre_in_place(K)
    first = n - lapack_vectors(n, q, by_modulus=by_modulus)
    # The transpose equals K and has the memory order that LAPACK can overwrite.
    values, vectors = eigh(
        K.T, subset_by_index=(first, n - 1), driver="evr", overwrite_a=True, check_finite=False
    )
    values, vectors = _select_leading(values, vectors, q, by_modulus)
    return values.astype(np.float64, copy=False), vectors.astype(np.float64, copy=False)


def block_krylov(
    product: Operator,
    start: Values,
    q: int,
    rng: np.random.Generator,
    *,
    by_modulus: bool = False,
    trace: float = 0.0,
) -> tuple[Matrix, Matrix] | None:
    """Return the q leading eigenpairs ``(q,)``, ``(n, q)`` of a symmetric operator, as float64.

    ``product`` maps blocks ``(n, b)`` to the same shape and type; ``start`` is the first block.
    Returns None if LAPACK would finish earlier.
    """
    # A block Lanczos iteration with a fully orthonormal basis and Rayleigh-Ritz in float64. A basis
    # that grows too long is replaced by its leading Ritz vectors. Golub and Underwood (1977), The
    # block Lanczos method for computing eigenvalues; Wu and Simon (2000), Thick-restart Lanczos
    # method for large symmetric eigenvalue problems, SIAM Journal on Matrix Analysis and
    # Applications 22, 602-616.
    (n, b), dtype = start.shape, start.dtype
    limit = krylov_basis_limit(n, q)
    precision: Literal["float32", "float64"] = "float32" if dtype == SINGLE else "float64"
    tolerance = TOLERANCE[precision]

    def allowed(values: Matrix) -> Matrix:
        """Return the largest residual allowed for each eigenvalue."""
        size = np.abs(values)
        least = smallest_eigenvalue(float(size[0]), trace, n, precision)
        return np.asarray(np.minimum(tolerance * size[0], OWN_TOLERANCE * np.maximum(size, least)))

    basis, images = (np.empty((n, limit), dtype=dtype, order="F") for _ in range(2))
    ritz = np.zeros((limit, limit))
    size, next_check, multiplied = 0, q, 0
    doubtful, settled = False, np.empty(0)
    current = _orthonormalise(start, basis[:, :0])
    while size + b <= limit:
        new = slice(size, size + b)
        basis[:, new] = current
        size, multiplied = size + b, multiplied + b
        spanned = basis[:, :size]
        image = product(current)
        images[:, new] = image
        ritz[:size, new] = spanned.T @ image
        ritz[new, :size] = ritz[:size, new].T
        image -= spanned @ ritz[:size, new].astype(dtype)
        rest = image
        rounding = 10.0 * float(np.finfo(dtype).eps) * np.abs(ritz[:size, :size]).max()
        invariant = float(np.abs(rest).max()) <= rounding
        # An invariant basis may miss eigenvectors of an eigenvalue whose multiplicity exceeds the
        # block's width: accept the basis only if a new random start adds nothing.
        doubtful |= invariant
        full = size + b > limit
        if size >= q and (size >= next_check or invariant or full):
            values, vectors = eigh(ritz[:size, :size], check_finite=False)
            values, vectors = _select_leading(values, vectors, size, by_modulus)
            triangle = qr(rest, mode="r", check_finite=False)[0][:b]
            residuals = np.linalg.norm(triangle @ vectors[-b:, :q], axis=0)
            if (residuals <= allowed(values[:q])).all():
                pairs = _refine_pairs(spanned, images[:, :size], vectors[:, :q], by_modulus)
                believed = not doubtful or (invariant and _agree(pairs[0], settled, tolerance))
                if believed and (pairs[2] <= 10.0 * allowed(pairs[0])).all():
                    return pairs[:2]
                settled = pairs[0] if invariant else settled
            # Check seldom if a check (10 size^3 operations) costs over half of a product (2 n^2 b).
            seldom = 10 * size**3 > n * n * b
            next_check = size + (max(b, size // 8) if seldom else b)
            if full and multiplied < MOST_PRODUCTS * n:
                n_vectors = min(q + b, limit - 2 * b)
                size = _restart((spanned, images[:, :size]), ritz, values, vectors, n_vectors)
        if invariant:
            rest = rng.standard_normal((n, b)).astype(dtype, copy=False)
        if size + b <= limit:
            current = _orthonormalise(rest, basis[:, :size])
    return None


def _orthonormalise(block: Values, basis: Values) -> Values:
    """Return orthonormal columns that span ``block`` orthogonally to ``basis``."""
    # The caller usually orthogonalised `block` once. The first round here does so again, which is
    # enough (Kahan, Parlett), unless nearly dependent columns magnify rounding errors.
    for _ in range(2):
        block = block - basis @ (basis.T @ block)
        longest = float(np.linalg.norm(block, axis=0).max())
        block, triangle = qr(block, mode="economic", check_finite=False)
        if np.abs(np.diag(triangle)).min() > 0.1 * longest:
            break
    return np.ascontiguousarray(block)


def _restart(
    columns: tuple[Values, Values], ritz: Matrix, values: Matrix, vectors: Matrix, n_vectors: int
) -> int:
    """Reduce basis and images (matrix times basis) to leading Ritz vectors; return their number."""
    if n_vectors < 1:
        return int(columns[0].shape[1])
    for matrix in columns:
        turn = np.ascontiguousarray(vectors[:, :n_vectors], dtype=matrix.dtype)
        for rows in _row_blocks(len(matrix)):
            matrix[rows, :n_vectors] = matrix[rows] @ turn
    ritz[:] = 0.0
    ritz[range(n_vectors), range(n_vectors)] = values[:n_vectors]
    return n_vectors


def _refine_pairs(
    spanned: Values, images: Values, turn: Matrix, by_modulus: bool
) -> tuple[Matrix, Matrix, Matrix]:
    """Return the eigenpairs in the span of Ritz vectors V, as float64, and their true residuals."""
    # V and AV come from the basis and its products with A, so the residual |A v - theta v| is exact
    # even if the basis has lost orthogonality.
    n, q = len(spanned), turn.shape[1]
    narrow = turn.astype(spanned.dtype)
    V, W = spanned @ narrow, images @ narrow
    gram, image = np.zeros((q, q)), np.zeros((q, q))
    for rows in _row_blocks(n):
        v = V[rows].astype(np.float64)
        gram += v.T @ v
        image += v.T @ W[rows].astype(np.float64)
    values, mix = eigh(0.5 * (image + image.T), gram, check_finite=False)
    values, mix = _select_leading(values, mix, q, by_modulus)
    vectors, squares = np.empty((n, q)), np.zeros(q)
    for rows in _row_blocks(n):
        vectors[rows] = V[rows].astype(np.float64) @ mix
        gap = W[rows].astype(np.float64) @ mix - vectors[rows] * values
        squares += np.einsum("ij,ij->j", gap, gap)
    return values, vectors, np.sqrt(squares)


def _row_blocks(n: int) -> list[slice]:
    return [slice(start, start + ROWS_A_BLOCK) for start in range(0, n, ROWS_A_BLOCK)]


def _agree(values: Matrix, others: Matrix, tolerance: float) -> bool:
    if values.shape != others.shape:
        return False
    return bool(np.allclose(values, others, rtol=0.0, atol=0.01 * tolerance * abs(values[0])))


def _select_leading(
    values: Matrix, vectors: Matrix, q: int, by_modulus: bool
) -> tuple[Matrix, Matrix]:
    """Return the q leading pairs, largest first, from pairs in increasing order."""
    order = np.argsort(-np.abs(values) if by_modulus else -values, kind="stable")[:q]
    return values[order], vectors[:, order]
