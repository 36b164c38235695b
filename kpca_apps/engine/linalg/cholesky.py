"""Choose landmarks as the pivots of a partial Cholesky factorisation of the Gram matrix."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from kpca_apps.engine.kernels import Kernel
from kpca_apps.system.arrays import Index, Matrix
from kpca_apps.system.blas import one_blas_thread

BLOCK = 32  # number of pivots proposed per round
ROUNDING = 1e-10  # share of the initial trace below which the residual is rounding


def random_pivots(
    kernel: Kernel, X: Matrix, m: int, rng: np.random.Generator, *, tolerance: float = ROUNDING
) -> Index:
    """Draw at most ``m`` pivots, each with probability proportional to its residual.

    Return row numbers in the order drawn. Drawing stops early if the mean residual falls to
    ``tolerance`` times the mean k(x, x). Uses 8 n m bytes and O(n m^2) time.
    """
    # Pivots are proposed in blocks and accepted by rejection sampling. Chen, Epperly, Tropp and
    # Webber (2023), Randomly pivoted Cholesky, arXiv 2207.06503; Epperly, Tropp and Webber (2024),
    # Embrace rejection: kernel matrix approximation by accelerated randomly pivoted Cholesky, arXiv
    # 2410.03969, algorithm 2.1.
    factor = PartialCholesky(kernel, X, m)
    while len(factor.pivots) < m and factor.missed > tolerance * factor.trace:
        chances = factor.residual / factor.residual.sum()
        proposed = rng.choice(len(X), size=BLOCK, p=chances)
        accepted = _accept_proposals(factor, proposed, rng.random(BLOCK))
        factor.extend(accepted[: m - len(factor.pivots)])
    return np.array(factor.pivots, dtype=np.intp)


def greedy_pivots(kernel: Kernel, X: Matrix, m: int, *, tolerance: float = ROUNDING) -> Index:
    """Return at most ``m`` pivots, each the row with the largest residual."""
    # Franc and Hlavac (2003), Greedy algorithm for a training set reduction in the kernel methods,
    # CAIP 2003, 426-433.
    factor = PartialCholesky(kernel, X, m)
    while len(factor.pivots) < m and factor.missed > tolerance * factor.trace:
        factor.extend(np.array([int(factor.residual.argmax())]))
    return np.array(factor.pivots, dtype=np.intp)


class PartialCholesky:
    """Partial Cholesky factor F of a Gram matrix, K ~ F F', with a column per pivot."""

    def __init__(self, kernel: Kernel, X: Matrix, m: int) -> None:
        self.kernel, self.X, self.pivots = kernel, X, list[int]()
        # Store F transposed, so that products with its first columns need no copy.
        self.rows = np.empty((min(m, len(X)), len(X)))
        self.residual = kernel.diagonal(X).astype(np.float64)
        self.trace = float(self.residual.sum())

    @property
    def missed(self) -> float:
        """Sum of the diagonal of K - F F'."""
        return float(self.residual.sum())

    def residual_block(self, pivots: Index, rows: Index | slice) -> Matrix:
        """Return K - F F' for some pivots and rows, shape (pivots, rows)."""
        columns = self.rows[: len(self.pivots)]
        # Compute the transposed block, which is cheaper: there are fewer pivots than rows.
        part: Matrix = np.ascontiguousarray(self.kernel(self.X[rows], self.X[pivots]).T)
        part -= columns[:, pivots].T @ columns[:, rows]
        return part

    def extend(self, pivots: Index) -> None:
        """Add pivots that are linearly independent of each other."""
        with one_blas_thread():
            part = self.residual_block(pivots, slice(None))
            block = part[:, pivots]
            jitter = 1e-15 * np.trace(block) * np.eye(len(pivots))
            lower = cholesky(block + jitter, lower=True, check_finite=False)
            columns = solve_triangular(lower, part, lower=True, check_finite=False)
        size = len(self.pivots)
        self.rows[size : size + len(pivots)] = columns
        self.residual -= np.einsum("ij,ij->j", columns, columns)
        np.maximum(self.residual, 0.0, out=self.residual)
        self.residual[pivots] = 0.0
        self.pivots.extend(int(pivot) for pivot in pivots)


def _accept_proposals(factor: PartialCholesky, proposed: Index, uniform: Matrix) -> Index:
    """Return the proposed pivots that rejection sampling accepts."""
    residual_block = factor.residual_block(proposed, proposed)
    chances = factor.residual[proposed]
    accepted = []
    for number, pivot in enumerate(proposed):
        if uniform[number] * chances[number] < residual_block[number, number]:
            accepted.append(pivot)
            column = residual_block[number:, number] / np.sqrt(residual_block[number, number])
            residual_block[number:, number:] -= np.outer(column, column)
    return np.array(accepted, dtype=np.intp)
