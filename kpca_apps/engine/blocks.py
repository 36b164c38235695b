"""Kernel PCA of a sum of kernels: one fit, whose errors are split by blocks of features.

The feature space of k = sum_b k_b is the direct sum of the blocks' feature spaces. Let z be a row's
features, standardised on the fitted rows, C = V diag(s) V' their covariance, rho the ridge and
P = (C + rho I)^-1. The Tikhonov filter keeps the share s / (s + rho) of each component. The errors
are

    the whole       E = rho z'P z                          reconstruction error (Hoffmann 2007).
    block b         r_b = (P_bb)^-1 (P z)_b                part of b the other blocks do not explain
                    E_b = rho (P z)_b' (P_bb)^-1 (P z)_b   decrease of E if b may take any value.
    expected b      z_b - r_b                              ridge regression of b on the others.

(block matrix inverse; for single features, Cook 1977). For a fitted row, the errors of a fit
without that row follow from Sherman & Morrison's formula. With the total ridge n rho and the
standardisation held fixed, a = z'P z / n, t = E_b / (n rho) and c = n / (n - 1),

    E  ->  n rho c^2 a / (1 - c a)
    r_b -> r_b / (1 - h_b)                                 h_b = 1/n + a - t, the leverage
    E_b -> n rho c t / ((1 - c a) (1 - h_b))

These are exact unless a leverage, h_b or c a, exceeds MOST_LEVERAGE, where it is clipped.

References
----------
Hoffmann (2007), Kernel PCA for novelty detection, Pattern Recognition 40, 863-874.
Cook (1977), Detection of influential observation in linear regression, Technometrics 19, 15-18.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta
from scipy import sparse

from kpca_apps.engine.nystroem import CovarianceSums
from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.engine.subspace import SQUARABLE
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray, Uncached
from kpca_apps.system.blas import one_blas_thread
from kpca_apps.system.memory import available_bytes

RIDGE = 0.02  # rho, as a share of a standardised feature's variance
# A component of variance s has the gain s / (s + rho). MOST_FREEDOM limits the sum of gains, the
# degrees of freedom, as a share of the rows. New rows use components with gains from LEAST_GAIN up.
MOST_FREEDOM, LEAST_GAIN = 0.25, 0.3
# Leave-one-out errors divide by 1 - leverage, so leverages are clipped below 1.
MOST_LEVERAGE = 0.95
HALVINGS = 60
# A feature with a smaller deviation counts as constant.
SMALLEST_DEVIATION = 1e-6
LARGEST_DEVIATION = 1e150  # its square is a finite float
# Number of matrices of the largest block's size that `_block_inverses` holds.
SQUARES_HELD = 4
# Numbers of new rows and of fitted rows computed at once.
BLOCK, FITTED_BLOCK = 192, 768
ALL = slice(None)


class BlockErrors(NamedTuple):
    """Reconstruction errors of n rows under Tikhonov-filtered kernel PCA."""

    residual: FloatArray  # (w, n): r_b, errors of predicting w requested features from other blocks

    whole: FloatArray  # (n,): E, error of all features
    blocks: FloatArray  # (b, n): E_b, how much E can fall if only features of block b change


@dataclass(frozen=True, eq=False)
class BlockPCA(Uncached):
    """Tikhonov-filtered kernel PCA of a sum of kernels, each given by explicit features."""

    # Let U be `factor` and z the standardised features of a row. The residual is y = z - U'U z, and
    # the part of block b that other blocks do not explain is (I - U_b'U_b)^-1 y_b, where U_b are
    # the columns and y_b the entries of block b.

    n: Annotated[int, Meta(ge=2)]  # number of fitted rows
    mean: Annotated[FloatArray, "p", SQUARABLE]
    deviation: Annotated[FloatArray, "p", Meta(ge=SMALLEST_DEVIATION, le=LARGEST_DEVIATION)]
    factor: Annotated[FloatArray, "m p", Meta(ge=-1.0 - 1e-6, le=1.0 + 1e-6)]  # U
    ridge: Annotated[float, Meta(ge=RIDGE, le=LARGEST_DEVIATION)]  # rho
    block: Annotated[IntArray, "p", Meta(ge=0)]  # block number of each feature, non-decreasing

    def validate(self) -> None:
        """Raise ValueError if the largest block's matrices would not fit into memory."""
        largest = int(np.unique(self.block, return_counts=True)[1].max(initial=0))
        needed = SQUARES_HELD * 8 * largest**2
        if needed > available_bytes():
            raise ValueError(f"{largest:,} features of one block need {needed / 1e9:.1f} GB")

    @classmethod
    def fit(cls, features: FloatArray, block: IntArray) -> BlockPCA:
        """Fit to features (n, p) of n rows; `block` (p,) is the block number of each feature."""
        n, p = features.shape
        if n >= p:
            return cls.of_sums(
                CovarianceSums.of_values(features.copy(), features.mean(axis=0)), block
            )
        mean, deviation = features.mean(axis=0), features.std(axis=0)
        deviation = np.maximum(deviation, SMALLEST_DEVIATION)
        with one_blas_thread():
            Z = (features - mean) / deviation
            s, W = np.linalg.eigh(Z @ Z.T / n)
            V = (W / np.sqrt(np.maximum(n * s, 1e-300))).T @ Z
        return cls._from_components(n, mean, deviation, s, V, block)

    @classmethod
    def of_sums(cls, sums: CovarianceSums, block: IntArray) -> BlockPCA:
        """Fit to sums of features over rows; `block` (p,) is the block number of each feature."""
        covariance = sums.covariance
        deviation = np.sqrt(np.maximum(np.diag(covariance), SMALLEST_DEVIATION**2))
        with one_blas_thread():
            s, V = np.linalg.eigh(covariance / np.outer(deviation, deviation))
        return cls._from_components(sums.n, sums.mean, deviation, s, V.T, block)

    @classmethod
    def _from_components(
        cls,
        n: int,
        mean: FloatArray,
        deviation: FloatArray,
        s: FloatArray,
        V: FloatArray,
        block: IntArray,
    ) -> BlockPCA:
        is_kept = s > 1e-9 * s.max(initial=0.0)
        ridge = least_ridge(s[is_kept], MOST_FREEDOM * n)
        gain = s[is_kept] / (s[is_kept] + ridge)
        return cls(n, mean, deviation, np.sqrt(gain)[:, None] * V[is_kept], ridge, block)

    def without_small(self) -> BlockPCA:
        """Drop components whose gain is below LEAST_GAIN."""
        return replace(self, factor=self.factor[np.square(self.factor).sum(axis=1) >= LEAST_GAIN])

    @cached_property
    def _block_position(self) -> IntArray:
        """Position of each feature's block among the non-empty blocks, (p,)."""
        return np.asarray(np.unique(self.block, return_inverse=True)[1])

    @cached_property
    def _block_indicator(self) -> sparse.csr_array:
        """Indicator matrix (blocks, p) whose product sums features over each block."""
        position, p = self._block_position, len(self.block)
        shape = (position.max(initial=-1) + 1, p)
        return sparse.csr_array((np.ones(p), (position, np.arange(p))), shape=shape)

    @cached_property
    def _block_inverses(self) -> sparse.csr_array:
        """Block-diagonal matrix with blocks (I - U_b'U_b)^-1."""
        starts, p = np.flatnonzero(np.diff(self.block, prepend=-1)), len(self.block)
        sizes = np.diff(starts, append=p)
        rows, columns, values = [], [], []
        for size in np.unique(sizes):
            members = starts[sizes == size, None] + np.arange(size)
            U = self.factor[:, members].transpose(1, 0, 2)
            values.append(np.linalg.inv(np.eye(size) - U.transpose(0, 2, 1) @ U).ravel())
            rows.append(np.repeat(members, size))
            columns.append(np.repeat(members, size, axis=0).ravel())
        places = [np.concatenate([np.empty(0, int), *of]) for of in (rows, columns)]
        return sparse.csr_array((np.concatenate([[], *values]), tuple(places)), shape=(p, p))

    @cached_property
    def _complement(self) -> FloatArray | None:
        """I - U'U, (p, p); None if applying U twice is cheaper."""
        m, p = self.factor.shape
        return np.eye(p) - self.factor.T @ self.factor if 2 * m > p else None

    def errors(
        self, features: FloatArray, fitted: BoolArray | None = None, wanted: IntArray | slice = ALL
    ) -> BlockErrors:
        """Return the errors of rows with features (p, n).

        Rows marked in `fitted` (n,) get the errors of a fit without that row. New rows do not
        affect each other, to the last bit. `wanted` (w,) selects the features whose residuals are
        returned; by default all.
        """
        mean, deviation = self.mean[:, None], self.deviation[:, None]
        n, rho, c = self.n, self.ridge, self.n / (self.n - 1.0)
        unit = deviation[wanted]
        position, n_wanted = self._block_position[wanted], len(unit)

        def compute(features: FloatArray, fitted: FloatArray | None = None) -> FloatArray:
            z = np.subtract(features, mean, order="C")
            z /= deviation
            direct = self._complement
            y = z - self.factor.T @ (self.factor @ z) if direct is None else direct @ z
            residual: FloatArray = self._block_inverses @ y
            z *= y
            y *= residual
            whole, blocks = z.sum(axis=0), self._block_indicator @ y
            output = np.empty((n_wanted + 1 + len(blocks), z.shape[1]))
            residual_out = output[:n_wanted]
            np.multiply(residual[wanted], unit, out=residual_out)
            if fitted is not None:
                a, t = whole / (n * rho), blocks / (n * rho)
                rest = 1.0 - np.minimum(1.0 / n + a - t, MOST_LEVERAGE)
                whole_rest = 1.0 - np.minimum(c * a, MOST_LEVERAGE)
                is_new = fitted == 0.0
                whole = np.where(is_new, whole, c * c * whole / whole_rest)
                blocks = np.where(is_new, blocks, c * blocks / (whole_rest * rest))
                residual_out /= np.where(is_new, 1.0, rest)[position]
            output[n_wanted], output[n_wanted + 1 :] = whole, blocks
            return output

        if fitted is None:
            output = map_row_blocks(compute, features, block=BLOCK, axis=-1)
        else:
            marks = fitted.astype(float)
            output = map_row_blocks(compute, features, marks, block=FITTED_BLOCK, axis=-1)
        return BlockErrors(output[:n_wanted], output[n_wanted], output[n_wanted + 1 :])


def least_ridge(s: FloatArray, most: float) -> float:
    """Return the least ridge at which eigenvalues (k,) have at most `most` degrees of freedom.

    log(ridge) is bisected below sum(s) / most, an upper bound as s / (s + ridge) < s / ridge.
    """
    if (s / (s + RIDGE)).sum() <= most:
        return RIDGE
    low, high = np.log(RIDGE), np.log(max(float(s.sum()) / most, 2 * RIDGE))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_enough = (s / (s + np.exp(middle))).sum() <= most
        low, high = (low, middle) if is_enough else (middle, high)
    return float(np.exp(high))
