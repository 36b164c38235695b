"""What all other columns leave unexplained of a column: soft kernel PCA, each column left out.

Symbols: z standardised features of a row, C = V diag(s) V' their covariance over n rows, rho the
ridge, P = (C + rho I)^-1. With the factor U = diag(sqrt(s / (s + rho))) V' the part of z that soft
kernel PCA does not reconstruct is y = z - U'U z = rho P z. For the features B of one column,
predicted from all others by ridge regression, the residual is (P_BB)^-1 (P z)_B
= (I - U_B'U_B)^-1 y_B (the block form of the inverse of a matrix; for a single feature, Cook 1977).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from scipy import sparse

from kpca_apps.blas import one_blas_thread
from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.engine.subspace import SQUARABLE
from kpca_apps.memory import available_bytes
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE

__all__ = ["ColumnResiduals"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Share of a standardised feature's variance.
RIDGE = 0.02
# Leave-one-out divides by one minus the leverage, which rounding must not bring to 0.
MOST_LEVERAGE = 0.95
# A feature that hardly varies must not be blown up: one row in a million with an indicator.
SMALLEST_DEVIATION = 1e-6
# Matrices of the features of one group that are in memory at once, to predict them together.
SQUARES_HELD = 4
# Rows at once, multiples as `engine.blocks` explains: few for new rows, which come few at a time.
BLOCK, LEARNED_BLOCK = 192, 1_536


@dataclass(frozen=True, eq=False)
class ColumnResiduals:
    """Ridge regressions of each group of features on all others.

    Attributes
    ----------
    n : int
        Rows learned from.
    mean, deviation : (p,) array
        Of the features.
    factor : (m, p) array
        U.
    group : (p,) int array
        Features of one number here are predicted together; not decreasing.
    """

    n: Annotated[int, Meta(ge=2)]
    mean: Annotated[FloatArray, "p", SQUARABLE]
    deviation: Annotated[FloatArray, "p", Meta(ge=SMALLEST_DEVIATION, le=LARGEST_TO_SQUARE)]
    factor: Annotated[FloatArray, "m p", Meta(ge=-1.0 - 1e-6, le=1.0 + 1e-6)]
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
    def fit(cls, features: FloatArray, group: IntArray) -> ColumnResiduals:
        """Learn from the features (n, p) of rows."""
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
        filter_factors = s[kept] / (s[kept] + RIDGE)
        return cls(n, mean, deviation, np.sqrt(filter_factors)[:, None] * V[kept], group)

    @cached_property
    def _places(self) -> IntArray:
        """For each feature, which of the groups that have features is its own."""
        places: IntArray = np.unique(self.group, return_inverse=True)[1]
        return places

    @cached_property
    def _members(self) -> sparse.csr_array:
        """One row a group, 1 where a feature is its own: sums over groups."""
        p, n_groups = len(self.group), len(np.unique(self.group))
        places = (self._places, np.arange(p))
        return sparse.csr_array((np.ones(p), places), shape=(n_groups, p))

    @cached_property
    def _left_out(self) -> sparse.csr_array:
        """(I - U_B'U_B)^-1 of every group B, on the diagonal of one sparse matrix."""
        starts = np.flatnonzero(np.diff(self.group, prepend=-1))
        blocks = np.split(self.factor, starts[1:], axis=1)
        inverses = [np.linalg.inv(np.eye(U.shape[1]) - U.T @ U) for U in blocks]
        return sparse.csr_array(sparse.block_diag(inverses))

    def of_new_rows(self, features: FloatArray) -> FloatArray:
        """Residuals (n, p) of rows that were not learned from; each depends on itself alone."""
        return map_row_blocks(
            lambda rows: self._parts(rows)[2] * self.deviation, features, block=BLOCK
        )

    def of_rows(self, features: FloatArray, learned: BoolArray) -> FloatArray:
        """Residuals (n, p) of rows; of those learned from (n,) as if each had been left out.

        Ridge regression's closed form e_i / (1 - h_i), for each group of features by itself: the
        leverage of a row in the regression on the others is its Mahalanobis square without the
        group's share, z'Pz - (Pz)_B' (P_BB)^-1 (Pz)_B, plus 1 for the mean, over n.
        """

        def left_out(rows: FloatArray) -> FloatArray:
            z, y, residual = self._parts(rows[:, :-1])
            squares = np.einsum("ij,ij->i", z, y)
            own = self._members @ (y * residual).T
            leverage = ((squares - own) / RIDGE + 1.0) / self.n
            kept = 1.0 - np.minimum(rows[:, -1] * leverage, MOST_LEVERAGE)
            left: FloatArray = residual * self.deviation / kept[self._places].T
            return left

        return map_row_blocks(left_out, np.column_stack([features, learned]), block=LEARNED_BLOCK)

    def _parts(self, features: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Standardised rows z, what is not reconstructed of them y, and their residuals."""
        z = features - self.mean
        z /= self.deviation
        y = z - (z @ self.factor.T) @ self.factor
        return z, y, (self._left_out @ y.T).T
