"""Fill missing numbers with their conditional mean given the other columns of the row.

The model is a Gaussian with robust moments: z-scores clipped at 4, and the covariance of observed
pairs shrunk towards the identity. With fewer rows than columns, missing values start at the mean,
and the precision is a multiple of the identity minus a matrix of low rank. A filled value depends
on its row and the fitted moments only, not on the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.errors import MemoryLimitError
from kpca_apps.novelty.magnitudes import units, varies
from kpca_apps.system.arrays import FloatArray
from kpca_apps.system.blas import one_blas_thread
from kpca_apps.system.memory import available_bytes

_CLIP = 4.0  # z-scores are clipped to -4..4, which limits how far outliers move filled values
# To find a column's range, 0.5 % of its values are left out at each end: at least one value, but
# none in a column of fewer than 20 values.
_CUT, _FEWEST_TO_CUT = 200, 20
_EXTREME = 10.0
_SHRINK = 0.05
_SWEEPS = 2
# Rank of a low-rank precision; maximum number of columns for a full matrix (2 MB).
_MOST_RANKS, _MOST_IN_FULL = 128, 512
_FLOOR = 1e-3  # minimum eigenvalue: a covariance matrix of pairwise observed rows may be indefinite
_MATRICES = 4  # number of matrices of the precision's size that are in memory at once
_BLOCK = 4_000_000  # number of numbers in a block of linear systems (32 MB)


@dataclass(frozen=True)
class LowRankPrecision:
    """Inverse of the shrunk covariance of many columns: ``I / rest - factor' factor``.

    `rest` is the mean variance outside the leading directions.
    """

    rest: Annotated[float, Meta(ge=_SHRINK, le=1)]
    # One row per leading direction.
    factor: Annotated[FloatArray, "r d", Meta(gt=-(_SHRINK**-0.5), lt=_SHRINK**-0.5)]

    @one_blas_thread()
    def validate(self) -> None:
        """Raise ValueError if the precision is not positive definite."""
        if not 0 < len(self.factor) < self.factor.shape[1]:
            raise ValueError(f"a factor of {len(self.factor)} rows")
        np.linalg.cholesky(np.eye(len(self.factor)) / self.rest - self.factor @ self.factor.T)

    def missing(self, filled: FloatArray, where: NDArray[np.intp]) -> FloatArray:
        """Return the conditional means (k, m) of the m missing cells in each of k rows.

        Columns `where` (k, m) are missing, and hold 0 in the z-scores `filled` (k, d). With v =
        `rest`, and columns M of the factor for missing cells and O for others,
        ``(I / v - M' M) z_m = M' O z_o``. Equivalently, ``z_m = v M' (I - v M M')^-1 O z_o``. The
        smaller of the two systems is solved.
        """
        of_missing = self.factor.T[where]
        along = np.einsum("rj,nj->nr", self.factor, filled)[:, :, None]
        transposed = of_missing.transpose(0, 2, 1)
        if where.shape[1] < len(self.factor):
            system = np.eye(where.shape[1]) / self.rest - of_missing @ transposed
            return np.linalg.solve(system, of_missing @ along)[:, :, 0]
        system = np.eye(len(self.factor)) - self.rest * (transposed @ of_missing)
        return self.rest * (of_missing @ np.linalg.solve(system, along))[:, :, 0]


@dataclass(frozen=True)
class ConditionalMeanImputer:
    """Fill missing numbers with their conditional mean given the observed ones.

    R. J. A. Little and D. B. Rubin, *Statistical Analysis with Missing Data*, 3rd ed. (2019),
    section 11.2: regression on the observed variables.
    """

    mean: Annotated[FloatArray, "d"]  # mean of the observed values, with extreme ones clipped
    scale: Annotated[FloatArray, "d", Meta(gt=0)]  # standard deviation of the clipped values, or 1
    # Inverse of the shrunk covariance of the clipped z-scores.
    precision: Annotated[FloatArray, "d d"] | LowRankPrecision

    @one_blas_thread()
    def validate(self) -> None:
        """Raise ValueError if the precision is not symmetric and positive definite."""
        if isinstance(self.precision, LowRankPrecision):
            if self.precision.factor.shape[1] != len(self.mean):
                raise ValueError(f"no factor of {len(self.mean)} columns")
            return
        if not np.allclose(self.precision, self.precision.T):
            raise ValueError("a precision that is not symmetric")
        np.linalg.cholesky(self.precision)  # LinAlgError is a ValueError

    @classmethod
    @one_blas_thread()
    def fit(cls, x: FloatArray) -> ConditionalMeanImputer:
        """Fit the moments to x (n, d), NaN for missing; a column without values gets mean 0."""
        n_rows, n_columns = x.shape
        n_bytes = _MATRICES * 8 * n_columns * min(n_rows, n_columns)
        if n_bytes > available_bytes():
            raise MemoryLimitError(
                f"{n_columns:,} columns of values need about {n_bytes / 2**30:.1f} GB of memory "
                f"and {available_bytes() / 2**30:.1f} GB are available; leave columns out."
            )
        varying, unit = varies(x), units(x)
        x = x / unit
        seen = ~np.isnan(x)
        kept = _without_extreme(x)
        count = np.maximum(seen.sum(axis=0), 1)
        mean = np.where(seen, kept, 0.0).sum(axis=0) / count
        scale = np.sqrt((np.where(seen, kept - mean, 0.0) ** 2).sum(axis=0) / count)
        scale[~varying] = 1.0
        z = np.clip((x - mean) / scale, -_CLIP, _CLIP)
        mean, scale = mean * unit, np.where(varying, scale * unit, 1.0)
        zeros = np.where(seen, z, 0.0)
        precision: FloatArray | LowRankPrecision
        if n_rows < n_columns or n_columns > _MOST_IN_FULL or seen.all():
            precision = _precision_of_rows(zeros)
        else:
            pairs = seen.astype(np.float64)
            precision = _precision((zeros.T @ zeros) / np.maximum(pairs.T @ pairs, 1.0))
        for _ in range(0 if seen.all() else _SWEEPS):
            precision = _precision_of_rows(_conditional_means(z, precision))
        return cls(mean, scale, precision)

    @one_blas_thread()
    def fill(self, x: FloatArray) -> FloatArray:
        """Fill the missing values (NaN) of x (n, d)."""
        z = np.clip((x - self.mean) / self.scale, -_CLIP, _CLIP)
        z = _conditional_means(z, self.precision)
        return np.where(np.isnan(x), self.mean + self.scale * z, x)


def _without_extreme(x: FloatArray) -> FloatArray:
    """Clip values (n, d) that lie far outside the range of about 99 % of their column."""
    ordered, n_seen = np.sort(x, axis=0), (~np.isnan(x)).sum(axis=0)
    cut = np.where(n_seen >= _FEWEST_TO_CUT, np.maximum(n_seen // _CUT, 1), 0)
    low = np.take_along_axis(ordered, cut[None], axis=0)
    high = np.take_along_axis(ordered, np.maximum(n_seen - 1 - cut, 0)[None], axis=0)
    margin = _EXTREME * (high - low)
    extreme = (margin > 0) & ((x < low - margin) | (x > high + margin))
    return np.where(extreme, np.clip(x, low, high), x)


def _precision_of_rows(z: FloatArray) -> FloatArray | LowRankPrecision:
    n, d = z.shape
    if n >= d and d <= _MOST_IN_FULL:
        return _precision(z.T @ z / n)
    if n < d:
        _, singular, vectors = np.linalg.svd(z, full_matrices=False)
        variances = (1 - _SHRINK) * singular**2 / n + _SHRINK
    else:
        squares, right = np.linalg.eigh(z.T @ z)
        variances = (1 - _SHRINK) * np.maximum(squares[::-1], 0.0) / n + _SHRINK
        vectors = right.T[::-1]
    # Outside the _MOST_RANKS leading directions, `rest` (the mean variance) replaces all variances.
    others = variances[_MOST_RANKS:]
    n_others = d - min(len(variances), _MOST_RANKS)
    rest = _SHRINK + float((others - _SHRINK).sum()) / n_others
    leading = variances[:_MOST_RANKS]
    gains = np.maximum(1 / rest - 1 / leading, 0.0)
    return LowRankPrecision(rest, np.sqrt(gains)[:, None] * vectors[:_MOST_RANKS])


def _precision(covariance: FloatArray) -> FloatArray:
    shrunk = (1 - _SHRINK) * covariance + _SHRINK * np.eye(len(covariance))
    values, vectors = np.linalg.eigh(shrunk)
    inverse: FloatArray = (vectors / np.maximum(values, _FLOOR)) @ vectors.T
    return inverse


def _conditional_means(z: FloatArray, precision: FloatArray | LowRankPrecision) -> FloatArray:
    """Fill NaN in z-scores by P_mm z_m = -P_mo z_o, for m missing and o observed cells of a row.

    Rows with equally many gaps form a batch of linear systems. `einsum` sums each row separately;
    a matrix product would make its rounding depend on the other rows.
    """
    gaps = np.isnan(z)
    filled = np.where(gaps, 0.0, z)
    n_gaps = gaps.sum(axis=1)
    for m in np.unique(n_gaps[n_gaps > 0]):
        rows_of_m = np.flatnonzero(n_gaps == m)
        # For each row, an m by m system or m columns of the factor are in memory.
        width = len(precision.factor) if isinstance(precision, LowRankPrecision) else m
        size = max(1, _BLOCK // int(m * width))
        for start in range(0, rows_of_m.size, size):
            rows = rows_of_m[start : start + size]
            where = np.nonzero(gaps[rows])[1].reshape(rows.size, m)
            if isinstance(precision, LowRankPrecision):
                filled[rows[:, None], where] = precision.missing(filled[rows], where)
                continue
            system = precision[where[:, :, None], where[:, None, :]]
            pull = -np.einsum("ij,nj->ni", precision, filled[rows])
            right = np.take_along_axis(pull, where, axis=1)[:, :, None]
            filled[rows[:, None], where] = np.linalg.solve(system, right)[:, :, 0]
    return filled
