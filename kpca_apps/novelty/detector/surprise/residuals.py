"""Each column predicted from all others: kernel PCA of an additive kernel, by ridge regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from scipy import sparse

from kpca_apps.engine.subspace import SQUARABLE
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.blas import one_blas_thread
from kpca_apps.system.memory import available_bytes

RIDGE = 0.02  # rho: share of a standardised feature's variance
# The degrees of freedom of a regression, sum of s / (s + rho), are no more than this share of the
# rows: nearer to all of them, each row is explained by itself, whatever it holds. Of a wide table,
# components that count less than that are left out: many, and none of much use.
MOST_FREEDOM, LEAST_FILTER = 0.25, 0.3
# Leave-one-out divides by one minus the leverage, which rounding must not bring to 0.
MOST_LEVERAGE = 0.95
HALVINGS = 60
# A feature that hardly varies must not be blown up: one row in a million with an indicator.
SMALLEST_DEVIATION = 1e-6
# Matrices of the features of one group that are in memory at once, to predict them together.
SQUARES_HELD = 4
# Rows at once, multiples as `engine.rows` explains: few for new rows, which come few at a time.
BLOCK, LEARNED_BLOCK = 192, 768
ALL = slice(None)


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
    def _place(self) -> IntArray:
        """Which of the groups that have features each feature is of, (p,)."""
        place: IntArray = np.unique(self.group, return_inverse=True)[1]
        return place

    @cached_property
    def _members(self) -> sparse.csr_array:
        """One row a group that has features, 1 where a feature is its own: sums over groups."""
        place, p = self._place, len(self.group)
        shape = (place.max(initial=-1) + 1, p)
        return sparse.csr_array((np.ones(p), (place, np.arange(p))), shape=shape)

    @cached_property
    def _left_out(self) -> sparse.csr_array:
        """(I - U_B'U_B)^-1 of every group B, on the diagonal of one sparse matrix."""
        starts, p = np.flatnonzero(np.diff(self.group, prepend=-1)), len(self.group)
        sizes = np.diff(starts, append=p)
        rows, columns, values = [], [], []
        for size in np.unique(sizes):
            # Groups of one size together: most are of numbers, with as many features each.
            members = starts[sizes == size, None] + np.arange(size)
            U = self.factor[:, members].transpose(1, 0, 2)
            values.append(np.linalg.inv(np.eye(size) - U.transpose(0, 2, 1) @ U).ravel())
            rows.append(np.repeat(members, size))
            columns.append(np.repeat(members, size, axis=0).ravel())
        places = [np.concatenate([np.empty(0, int), *of]) for of in (rows, columns)]
        return sparse.csr_array((np.concatenate([[], *values]), tuple(places)), shape=(p, p))

    @cached_property
    def _direct(self) -> FloatArray | None:
        """What z is multiplied by to give residuals, (p, p); None where its factors are fewer."""
        m, p = self.factor.shape
        if 2 * m <= p:
            return None
        direct: FloatArray = self._left_out @ (np.eye(p) - self.factor.T @ self.factor)
        return direct * (self.deviation[:, None] / self.deviation)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again where it is needed."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def predictor(self, wanted: IntArray) -> Callable[[FloatArray], FloatArray]:
        """Return the map from lines of features (p, n) of new rows to residuals of some (w, n)."""
        mean, left_out = self.mean[:, None], self._left_out[wanted]
        deviation, factor = self.deviation[:, None], self.factor
        with one_blas_thread():
            direct = None if self._direct is None else self._direct[wanted]

        def of_block(lines: FloatArray) -> FloatArray:
            z = lines - mean
            if direct is not None:
                found: FloatArray = direct @ z
                return found
            z /= deviation
            z -= factor.T @ (factor @ z)
            residual: FloatArray = left_out @ z
            residual *= deviation[wanted]
            return residual

        return lambda lines: _by_blocks(of_block, lines, block=BLOCK)

    def __call__(
        self,
        features: FloatArray,
        learned: BoolArray | None = None,
        wanted: IntArray | slice = ALL,
    ) -> FloatArray:
        """Residuals (n, w) of rows (n, p); of those `learned` from (n,) as if each was left out.

        Without `learned` rows are new, and each depends on itself alone. Of all features, unless
        some are `wanted` (w,).
        """
        lines = features.T
        if learned is None:
            return self.predictor(np.arange(len(lines))[wanted])(lines).T
        mean, deviation = self.mean[:, None], self.deviation[:, None]

        def of_block(lines: FloatArray, learned: FloatArray) -> FloatArray:
            z = lines - mean
            z /= deviation
            y = z - self.factor.T @ (self.factor @ z)
            residual: FloatArray = self._left_out @ y
            # Ridge regression's closed form e_i / (1 - h_i), for each group by itself: the
            # leverage of a row in the regression on the others is its Mahalanobis square without
            # the group's share, z'Pz - (Pz)_B' (P_BB)^-1 (Pz)_B, plus 1 for the mean, over n.
            z *= y
            squares = z.sum(axis=0)
            y *= residual
            kept = squares - self._members @ y
            kept /= self.ridge
            kept += 1.0
            kept *= learned / self.n
            kept = 1.0 - np.minimum(kept, MOST_LEVERAGE, out=kept)
            left: FloatArray = residual[wanted] * deviation[wanted]
            left /= kept[self._place[wanted]]
            return left

        return _by_blocks(of_block, lines, learned.astype(np.float64), block=LEARNED_BLOCK).T


def _by_blocks(function: Callable[..., FloatArray], *arrays: FloatArray, block: int) -> FloatArray:
    """Apply a function to so many columns of arrays (..., n) at a time, the last one repeated."""
    n = arrays[0].shape[-1]
    found = []
    with one_blas_thread():
        for start in range(0, max(n, 1), block):
            parts = [array[..., start : start + block] for array in arrays]
            missing = block - parts[0].shape[-1]
            if missing:
                last = [(0, missing)]
                parts = [
                    np.pad(part, [(0, 0)] * (part.ndim - 1) + last, "edge" if n else "constant")
                    for part in parts
                ]
            found.append(function(*parts)[:, : n - start])
    return found[0] if len(found) == 1 else np.concatenate(found, axis=1)


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
