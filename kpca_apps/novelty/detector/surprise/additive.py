"""Kernel PCA of an additive kernel: what all other columns leave unexplained of a column.

k(x, y) = sum over columns j of k_j(x_j, y_j). A number contributes the Hermite polynomials z,
z^2 and z^3 - 3z of its scaled value (bends and thresholds between columns become linear in them),
and an indicator for each value that many rows share, such as the 0 of a column of rain; a category
contributes its indicators. Kernel PCA of such a kernel is linear in these features, which are few.

Symbols: z standardised features of a row, C = V diag(s) V' their covariance over n rows, rho the
ridge, P = (C + rho I)^-1. With the factor U = diag(sqrt(s / (s + rho))) V' the part of z that soft
kernel PCA does not reconstruct is y = z - U'U z = rho P z. For the features B of one column,
predicted from all others by ridge regression, the residual is (P_BB)^-1 (P z)_B
= (I - U_B'U_B)^-1 y_B (the block form of the inverse of a matrix; for a single feature, Cook 1977).
"""

from __future__ import annotations

from collections.abc import Sequence
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
from kpca_apps.novelty.detector.views import IQR_OF_NORMAL, ordinary_rows
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE, mean_and_sd, varies

__all__ = ["AdditiveFeatures", "ColumnResiduals", "FeatureRows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

DEGREE = 3  # polynomials of a number
# A value that this share of the rows holds is a state of its own, not a place on a scale.
FREQUENT = 0.25
# Fewer other values than these give no scale.
FEWEST = 20
# Polynomials see values clipped to the bulk of their column, a little widened: the cube of one
# absurd value would drown all else. `FeatureRows.value` keeps what clipping takes off.
BULK, MARGIN = (0.005, 0.995), 0.1
LARGEST = np.finfo(np.float64).max

RIDGE = 0.02  # rho: share of a standardised feature's variance
# Leave-one-out divides by one minus the leverage, which rounding must not bring to 0.
MOST_LEVERAGE = 0.95
# A feature that hardly varies must not be blown up: one row in a million with an indicator.
SMALLEST_DEVIATION = 1e-6
# Matrices of the features of one group that are in memory at once, to predict them together.
SQUARES_HELD = 4
# Rows at once, multiples as `engine.rows` explains: few for new rows, which come few at a time.
BLOCK, LEARNED_BLOCK = 192, 1_536


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Rows as an additive kernel sees them."""

    features: FloatArray  # (n, p)
    value: FloatArray  # (v, n), the numbers on their scale, not clipped; 0 where frequent
    free: BoolArray  # (v, n), where a number is none of its column's frequent values


@dataclass(frozen=True, eq=False)
class AdditiveFeatures:
    """The feature map of an additive kernel: scales learned from the columns of a table.

    Features lie group by group; the polynomials of a number are neighbours, and so are indicators
    that exclude each other.
    """

    number: Annotated[IntArray, "v", Meta(ge=0)]  # matrix columns that have a scale
    # Position of z of each number among the features; its other polynomials follow.
    polynomial: Annotated[IntArray, "v", Meta(ge=0)]
    # Median and IQR / 1.349 of the free values, t = asinh((x - median) / spread); the bulk of t,
    # from and to; mean and deviation of t clipped to it, z = (t - mean) / deviation.
    scale: Annotated[FloatArray, "6 v 1"]
    moments: Annotated[FloatArray, "2 3 v 1", SQUARABLE]  # means, deviations of the polynomials
    indicator: Annotated[IntArray, "a", Meta(ge=0)]  # position of each among the features
    source: Annotated[IntArray, "a", Meta(ge=0)]  # the matrix column it comes from
    # The value it stands for; NaN where the column is an indicator itself.
    equals: Annotated[FloatArray, "a", "NaN too"]
    # What it is a state of, 0, 1, 2 ...: a column of categories, or a number's frequent values.
    state: Annotated[IntArray, "a", Meta(ge=0)]
    group: Annotated[IntArray, "p", Meta(ge=0)]  # of each feature, not decreasing

    def validate(self) -> None:
        """Refuse what no table leads to, and what would leave some rows without a score."""
        degrees = [self.polynomial + degree for degree in range(DEGREE)]
        places = np.sort(np.concatenate([*degrees, self.indicator]))
        sound = (
            np.array_equal(places, np.arange(len(self.group)))
            and len(np.unique(self.number)) == len(self.number)
            and not np.isinf(self.equals).any()
            and np.isin(np.diff(self.state, prepend=-1), (0, 1)).all()
            and (np.diff(self.group) >= 0).all()
            and (self.scale[[1, 5]] > 0).all()
            and (self.scale[2] <= self.scale[3]).all()
            and (self.moments[1] > 0).all()
        )
        if not sound:
            raise ValueError("features of no table")

    @classmethod
    def fit(cls, X: FloatArray, groups: Sequence[IntArray], as_is: IntArray) -> AdditiveFeatures:
        """Learn the scales from rows (n, d); `groups` and `as_is` as in `KernelPCANovelty`."""
        is_number = varies(X)
        is_number[as_is] = False
        group: list[int] = []
        numbers: list[tuple[int, int]] = []  # column, place of z
        scales: list[list[float]] = []
        moments: list[FloatArray] = []
        indicators: list[tuple[int, int, float, int]] = []  # place, column, value, state
        n_states = 0
        for g, members in enumerate(groups):
            for j in members[is_number[members]].tolist():
                frequent, free = _frequent_and_free(np.sort(X[:, j]))
                if len(free):
                    scale, of_polynomials = _scale_of(free)
                    numbers.append((j, len(group)))
                    scales.append(scale)
                    moments.append(of_polynomials)
                    group += [g] * DEGREE
                for value in frequent:
                    indicators.append((len(group), j, value, n_states))
                    group.append(g)
                n_states += len(frequent) > 0
            levels = members[np.isin(members, as_is)].tolist()
            for j in levels:
                indicators.append((len(group), j, np.nan, n_states))
                group.append(g)
            n_states += len(levels) > 0
        number, polynomial = np.array(numbers, dtype=np.int64).reshape(-1, 2).T.copy()
        indicator, source, equals, state = np.array(indicators).reshape(-1, 4).T.copy()
        return cls(
            number=number,
            polynomial=polynomial,
            scale=np.array(scales).reshape(-1, 6).T[..., None].copy(),
            moments=np.array(moments).reshape(-1, 2, DEGREE).transpose(1, 2, 0)[..., None].copy(),
            indicator=indicator.astype(np.int64),
            source=source.astype(np.int64),
            equals=equals,
            state=state.astype(np.int64),
            group=np.array(group, dtype=np.int64),
        )

    def __call__(self, X: FloatArray) -> FeatureRows:
        """Return rows (n, d) as the kernel sees them; each depends on itself alone."""
        # A line a feature, to be turned at the end: to write columns takes several times as long.
        lines = np.zeros((len(self.group), len(X)))
        cells, equals = X[:, self.source].T, self.equals[:, None]
        lines[self.indicator] = np.where(np.isnan(equals), cells, cells == equals)
        numbers = np.ascontiguousarray(X[:, self.number].T)
        free = np.ones(numbers.shape, dtype=bool)
        frequent = np.flatnonzero(np.isin(self.source, self.number))
        for k in frequent:
            free[self.number == self.source[k]] &= lines[self.indicator[k]] == 0.0
        median, spread, low, high, mean, deviation = self.scale
        with np.errstate(over="ignore"):
            ratio = (numbers - median) / spread
        # Of numbers too far out to be divided, asinh of the largest float: 710.
        t = np.arcsinh(np.clip(ratio, -LARGEST, LARGEST))
        basis = _polynomials((np.clip(t, low, high) - mean) / deviation)
        centre, size = self.moments
        basis -= centre
        basis /= size
        value = (t - mean) / deviation
        if len(frequent):
            basis *= free
            value[~free] = 0.0
        for degree in range(DEGREE):
            lines[self.polynomial + degree] = basis[degree]
        return FeatureRows(np.ascontiguousarray(lines.T), value, free)


def _frequent_and_free(ordered: FloatArray) -> tuple[list[float], FloatArray]:
    """Frequent values of a sorted column (n,), and the others where they are enough for a scale."""
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    counts = np.diff(np.r_[starts, len(ordered)])
    if len(starts) <= 2:
        # Of two values, one indicator says all.
        return ordered[:1].tolist(), ordered[:0]
    often = counts >= FREQUENT * len(ordered)
    free = ordered[np.repeat(~often, counts)]
    if len(free) < FEWEST or free[0] == free[-1]:
        free = free[:0]
    return ordered[starts[often]].tolist(), free


def _scale_of(ordered: FloatArray) -> tuple[list[float], FloatArray]:
    """Scale of sorted values, and the moments (2, 3) of their polynomials."""
    low, median, high = _quantiles(ordered, (0.25, 0.5, 0.75))
    spread = (high - low) / IQR_OF_NORMAL
    # The range bounds the deviation, which is hardly ever needed.
    if not spread > 1e-3 * (0.5 * ordered[-1] - 0.5 * ordered[0]):
        ordinary = ordered[ordinary_rows(ordered[:, None])]
        sd = float(mean_and_sd(ordinary[:, None])[1][0])
        spread = spread if spread > 1e-3 * sd else sd
    t = np.arcsinh((ordered - median) / spread)
    first, last = _quantiles(t, BULK)
    margin = MARGIN * (last - first)
    clipped = np.clip(t, first - margin, last + margin)
    mean, deviation = float(clipped.mean()), float(clipped.std()) or 1.0
    basis = _polynomials((clipped - mean) / deviation)
    moments = np.stack([basis.mean(axis=1), np.maximum(basis.std(axis=1), 1e-9)])
    return [median, spread, first - margin, last + margin, mean, deviation], moments


def _quantiles(ordered: FloatArray, shares: Sequence[float]) -> list[float]:
    """Quantiles of sorted values, as numpy has them."""
    place = np.array(shares) * (len(ordered) - 1)
    found: list[float] = np.interp(place, np.arange(len(ordered)), ordered).tolist()
    return found


def _polynomials(z: FloatArray) -> FloatArray:
    """Hermite polynomials of degree 1 to 3, the constant of the second left to centring."""
    return np.stack([z, z * z, z * z * z - 3.0 * z])


@dataclass(frozen=True, eq=False)
class ColumnResiduals:
    """Soft kernel PCA with each column left out: ridge regressions of each on all others."""

    n: Annotated[int, Meta(ge=2)]  # rows learned from
    mean: Annotated[FloatArray, "p", SQUARABLE]  # of the features
    deviation: Annotated[FloatArray, "p", Meta(ge=SMALLEST_DEVIATION, le=LARGEST_TO_SQUARE)]
    factor: Annotated[FloatArray, "m p", Meta(ge=-1.0 - 1e-6, le=1.0 + 1e-6)]  # U
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
        filter_factors = s[kept] / (s[kept] + RIDGE)
        return cls(n, mean, deviation, np.sqrt(filter_factors)[:, None] * V[kept], group)

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
            leverage = ((squares - own) / RIDGE + 1.0) / self.n
            kept = 1.0 - np.minimum(rows[:, -1] * leverage, MOST_LEVERAGE)
            left: FloatArray = residual * self.deviation / (self._members.T @ kept).T
            return left

        if learned is None:
            return map_row_blocks(of_block, features, block=BLOCK)
        return map_row_blocks(of_block, np.column_stack([features, learned]), block=LEARNED_BLOCK)
