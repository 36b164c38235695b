"""Each column predicted from all others: kernel PCA of an additive kernel, by ridge regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np
from msgspec import Meta
from scipy import sparse

from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.engine.subspace import SQUARABLE
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.blas import one_blas_thread
from kpca_apps.system.memory import available_bytes

RIDGE = 0.02  # rho: share of a standardised feature's variance
# Of a wide table, the degrees of freedom of a regression, sum of s / (s + rho), are no more than
# this share of the rows: nearer to all of them, each row is explained by itself, whatever it holds.
# Components that count less than that are left out: many, and none of much use.
MOST_FREEDOM, LEAST_FILTER = 0.25, 0.3
# Leave-one-out divides by one minus the leverage, which rounding must not bring to 0.
MOST_LEVERAGE = 0.95
HALVINGS = 60
# A feature that hardly varies must not be blown up: one row in a million with an indicator.
SMALLEST_DEVIATION = 1e-6
# Matrices of the features of one group that are in memory at once, to predict them together.
SQUARES_HELD = 4
# Rows at once, multiples as `engine.rows` explains: few for new rows, which come few at a time.
BLOCK, LEARNED_BLOCK = 192, 1_536


@dataclass(frozen=True, eq=False)
class ColumnResiduals:
    """Soft kernel PCA with each column left out: ridge regressions of each on all others."""

    # Symbols: z standardised features of a row, C = V diag(s) V' their covariance over n rows, rho
    # the ridge, P = (C + rho I)^-1. With the factor U = diag(sqrt(s / (s + rho))) V' the part of z
    # that soft kernel PCA does not reconstruct is y = z - U'U z = rho P z. For the features B of
    # one column, predicted from all others by ridge regression, the residual is (P_BB)^-1 (P z)_B =
    # (I - U_B'U_B)^-1 y_B (the block form of the inverse of a matrix; for a single feature, Cook
    # 1977).

    n: Annotated[int, Meta(ge=2)]  # rows learned from
    mean: Annotated[FloatArray, "p", SQUARABLE]  # of the features
    deviation: Annotated[FloatArray, "p", Meta(ge=SMALLEST_DEVIATION, le=LARGEST_TO_SQUARE)]
    factor: Annotated[FloatArray, "m p", Meta(ge=-1.0 - 1e-6, le=1.0 + 1e-6)]  # U
    ridge: Annotated[float, Meta(ge=RIDGE, le=LARGEST_TO_SQUARE)]  # rho
    # Features of one number here are predicted together; not decreasing.
    group: Annotated[IntArray, "p", Meta(ge=0)]

    def validate(self) -> None:
        """Refuse features predicted together that would need more memory than there is."""
        n_together = int(np.unique(self.group, return_counts=True)[1].max(initial=0))
        needed = SQUARES_HELD * 8 * n_together**2
        if needed > available_bytes():
            raise ValueError(
                f"{n_together:,} features of one group of columns need {needed / 1e9:.1f} GB"
            )

    @classmethod
    @one_blas_thread()
    def fit(cls, features: FloatArray, group: IntArray, *, is_wide: bool) -> ColumnResiduals:
        """Learn from the features (n, p) of rows, of a wide table or not."""
        n, p = features.shape
        mean = features.mean(axis=0)
        deviation = np.maximum(features.std(axis=0), SMALLEST_DEVIATION)
        Z = (features - mean) / deviation
        if n >= p:
            s, V = np.linalg.eigh(Z.T @ Z / n)
            V = V.T
        else:
            s, W = np.linalg.eigh(Z @ Z.T / n)
            V = (W / np.sqrt(np.maximum(n * s, 1e-300))).T @ Z
        kept = s > 1e-9 * s.max(initial=0.0)
        ridge = RIDGE
        if is_wide:
            ridge = _least_ridge(s[kept], MOST_FREEDOM * n)
        filter_factors = s[kept] / (s[kept] + ridge)
        return cls(n, mean, deviation, np.sqrt(filter_factors)[:, None] * V[kept], ridge, group)

    def without_small(self) -> ColumnResiduals:
        """Leave out components that hardly count, for new rows.

        Not for the rows learned from: their leverages are those of all components.
        """
        counts = np.square(self.factor).sum(axis=1) >= LEAST_FILTER
        return replace(self, factor=self.factor[counts])

    @cached_property
    def _members(self) -> sparse.csr_array:
        """One row a group that has features, 1 where a feature is its own: sums over groups."""
        place, p = np.unique(self.group, return_inverse=True)[1], len(self.group)
        shape = (place.max(initial=-1) + 1, p)
        return sparse.csr_array((np.ones(p), (place, np.arange(p))), shape=shape)

    @cached_property
    def _left_out(self) -> sparse.csr_array:
        """(I - U_B'U_B)^-1 of every group B, on the diagonal of one sparse matrix."""
        starts = np.flatnonzero(np.diff(self.group, prepend=-1))
        blocks = np.split(self.factor, starts[1:], axis=1)
        inverses = [np.linalg.inv(np.eye(U.shape[1]) - U.T @ U) for U in blocks]
        return sparse.csr_array(sparse.block_diag(inverses))

    def __call__(self, features: FloatArray, learned: BoolArray | None = None) -> FloatArray:
        """Residuals (n, p) of rows; of those `learned` from (n,) as if each had been left out.

        Without `learned` rows are new, and each depends on itself alone.
        """

        def of_block(rows: FloatArray) -> FloatArray:
            z = rows[:, : len(self.group)] - self.mean
            z /= self.deviation
            y = z - (z @ self.factor.T) @ self.factor
            residual: FloatArray = (self._left_out @ y.T).T
            if learned is None:
                return residual * self.deviation
            # Ridge regression's closed form e_i / (1 - h_i), for each group by itself: the
            # leverage of a row in the regression on the others is its Mahalanobis square without
            # the group's share, z'Pz - (Pz)_B' (P_BB)^-1 (Pz)_B, plus 1 for the mean, over n.
            squares = np.einsum("ij,ij->i", z, y)
            own = self._members @ (y * residual).T
            leverage = ((squares - own) / self.ridge + 1.0) / self.n
            kept = 1.0 - np.minimum(rows[:, -1] * leverage, MOST_LEVERAGE)
            left: FloatArray = residual * self.deviation / (self._members.T @ kept).T
            return left

        if learned is None:
            return map_row_blocks(of_block, features, block=BLOCK)
        return map_row_blocks(of_block, np.column_stack([features, learned]), block=LEARNED_BLOCK)


def _least_ridge(s: FloatArray, most: float) -> float:
    """Return the least ridge by which eigenvalues (k,) leave no more degrees of freedom than that.

    Halved in logarithms; beyond the last, sum s / ridge bounds the freedom.
    """
    if (s / (s + RIDGE)).sum() <= most:
        return RIDGE
    low, high = np.log(RIDGE), np.log(max(float(s.sum()) / most, 2 * RIDGE))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_enough = (s / (s + np.exp(middle))).sum() <= most
        low, high = (low, middle) if is_enough else (middle, high)
    return float(np.exp(high))
