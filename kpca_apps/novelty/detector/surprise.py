"""One score of a row from what kernel PCA and its cells say: how improbable it is, all told.

Kernel PCA of an additive kernel predicts each column from all others; how far off a cell is becomes
the share of cells that are as far off. The cells of a row are summed up by three numbers: their
mean surprise, the oddest cell, and their scatter about what was predicted.

k(x, y) = sum over columns j of k_j(x_j, y_j). A number contributes the Hermite polynomials z,
z^2 and z^3 - 3z of its scaled value (bends and thresholds between columns become linear in them),
and an indicator for each value that many rows share, such as the 0 of a column of rain; a category
contributes its indicators. Kernel PCA of such a kernel is linear in these features, which are few.

Three scores become p-values among the rows learned from: the reconstruction error of kernel PCA
(k), the mean surprise of the cells (g) and their scatter (l). Their weighted harmonic mean (Wilson
2019) is small where any of them is, and needs no independence. A row with one absurd cell is odd
however ordinary its others are: its oddest cell counts once it is rarer than that of one row in
150, and then by a power. The score is

    s = log(h + (1/(150 p_c))^c) + .01 log h    with h = e/p_k + a/p_g + b/p_l + o/p_c

with p_c by an exponential tail, so that s grows without bound. The hundredth keeps rows apart that
have one absurd cell in common.

References
----------
D. J. Wilson, The harmonic mean p-value for combining dependent tests, PNAS 116, 2019, equation 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated

import numpy as np
from msgspec import Meta
from scipy import sparse

from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.engine.subspace import SQUARABLE
from kpca_apps.novelty.detector.large_groups import LargeGroups, of_each_group
from kpca_apps.novelty.detector.views import IQR_OF_NORMAL, ColumnRoles, ordinary_rows
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE, eight_digits, mean_and_sd, varies
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.blas import one_blas_thread
from kpca_apps.system.memory import available_bytes

DEGREE = 3  # polynomials of a number
# Of a wide table, which has more columns of numbers than these, and whose polynomials would be more
# than this share of its rows, a number contributes its scaled value alone: regressions on more
# features than rows tell chance from law no more. Few columns of few rows gain from them.
MANY_COLUMNS, MOST_FEATURES = 100, 0.5
# A value that this share of the rows holds is a state of its own, not a place on a scale.
FREQUENT = 0.25
# Fewer other values than these give no scale.
FEWEST = 20
# Polynomials see values clipped to the bulk of their column, a little widened: the cube of one
# absurd value would drown all else. `FeatureRows.value` keeps what clipping takes off.
BULK, MARGIN = (0.005, 0.995), 0.1
LARGEST_FLOAT = np.finfo(np.float64).max

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

# Shares of the values nearer to the median on one side; beyond the last, a Pareto tail through it
# and the value that three in a hundred exceed.
SHARES = np.linspace(0.0, 0.9, 10)
HEIGHTS = -np.log1p(-np.concatenate([SHARES[:0:-1], SHARES]))
FAR = 0.97
# Added to distances (in standard deviations of a column) before ratios are taken of them.
FLOOR = 0.05
# Pareto exponent of columns that end sharply: twice as far, 2^16 times as rare.
LARGEST_EXPONENT = 16.0
# Values a curve is held by: each of the most extreme, and others evenly.
EXTREME_KNOTS, KNOTS = 64, 512
# The quantiles an exponential tail goes through, and how far it must lie above what was counted to
# count: half a logarithm, so that ordinary tails stay as counted.
UPPER, ALLOWED = (0.75, 0.95), 0.5
# Two quantiles are not taken for nearer than this: where all rows score alike, rounding would say
# much.
LEAST_REACH = 1e-3
# Shares are counted among fewer rows than e^50.
LARGEST_SURPRISE = 50.0
STEEPEST = LARGEST_SURPRISE / LEAST_REACH

# Shares of the rows, those that kernel PCA finds densest: for the regressions, and for what is
# taken as the usual scatter.
LEARNED, USUAL = 0.95, 0.75
# Part of a prediction that is the plain share of a level: no level is impossible.
PRIOR = 0.05
SMALLEST_PROBABILITY = 1e-9
# Least scatter of a column, in standard deviations.
LEAST_SCATTER = 0.02

# e, a, b, o and c. Among rows that may be anything an absurd cell is more often what is sought than
# beside a clean reference, which says how far its columns reach; there, too, a row beyond all of
# the reference is told from another by the error and the oddest cell alone.
CONTAMINATED, CLEAN = (1.0, 0.2, 0.2, 0.0, 3.0), (1.0, 0.05, 0.05, 0.0, 0.3)
# Of a wide table distances between rows are all alike, and one odd cell is lost in any sum over its
# columns: there a row is as odd as its cells are, given the others.
WIDE = (0.05, 0.05, 0.2, 1.0, 3.0)
LARGEST_WEIGHT = 100.0
LARGEST = 1e7
"""A score that none reaches: cells' surprises grow as logarithms, and tails have a steepest."""

# Of what is left of the rest of a row beside one absurd cell: enough to order rows by.
APART = 0.01
# How much rarer than its oddest cell itself, in logarithms, a row may count as among rows that all
# lack odd cells, such as those on a circle.
MORE = 2.0
# -log of one row in 150, and the quantiles of the rows' oddest cells that the tail goes through.
RARE, OF_CELLS = 5.0, (0.75, 0.95)


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
    moments: Annotated[FloatArray, "2 g v 1", SQUARABLE]  # means, deviations of g polynomials
    indicator: Annotated[IntArray, "a", Meta(ge=0)]  # position of each among the features
    source: Annotated[IntArray, "a", Meta(ge=0)]  # the matrix column it comes from
    # The value it stands for; NaN where the column is an indicator itself.
    equals: Annotated[FloatArray, "a", "NaN too"]
    # What it is a state of, 0, 1, 2 ...: a column of categories, or a number's frequent values.
    state: Annotated[IntArray, "a", Meta(ge=0)]
    group: Annotated[IntArray, "p", Meta(ge=0)]  # of each feature, not decreasing

    def validate(self) -> None:
        """Refuse what no table leads to, and what would leave some rows without a score."""
        degrees = [self.polynomial + degree for degree in range(self.degree)]
        places = np.sort(np.concatenate([*degrees, self.indicator]))
        sound = (
            self.degree in (1, DEGREE)
            and np.array_equal(places, np.arange(len(self.group)))
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
    def fit(cls, X: FloatArray, columns: ColumnRoles) -> AdditiveFeatures:
        """Learn the scales from rows (n, d)."""
        is_number, as_is = varies(X), columns.as_is
        is_number[as_is] = False
        group: list[int] = []
        numbers: list[tuple[int, int]] = []  # column, place of z
        scales: list[list[float]] = []
        moments: list[FloatArray] = []
        indicators: list[tuple[int, int, float, int]] = []  # place, column, value, state
        n_states = 0
        cut = {j: _frequent_and_free(np.sort(X[:, j])) for j in np.flatnonzero(is_number).tolist()}
        n_scaled = sum(len(free) > 0 for _, free in cut.values())
        is_wide = n_scaled > MANY_COLUMNS and DEGREE * n_scaled > MOST_FEATURES * len(X)
        degree = 1 if is_wide else DEGREE
        for g, members in enumerate(columns.groups):
            for j in members[is_number[members]].tolist():
                frequent, free = cut[j]
                if len(free):
                    scale, of_polynomials = _scale_of(free)
                    numbers.append((j, len(group)))
                    scales.append(scale)
                    moments.append(of_polynomials[:, :degree])
                    group += [g] * degree
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
            moments=np.array(moments).reshape(-1, 2, degree).transpose(1, 2, 0)[..., None].copy(),
            indicator=indicator.astype(np.int64),
            source=source.astype(np.int64),
            equals=equals,
            state=state.astype(np.int64),
            group=np.array(group, dtype=np.int64),
        )

    @property
    def is_wide(self) -> bool:
        """Whether the table had too many columns of numbers for their polynomials."""
        return self.degree < DEGREE

    @property
    def degree(self) -> int:
        """Polynomials of a number."""
        return len(self.moments[0])

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
        t = np.arcsinh(np.clip(ratio, -LARGEST_FLOAT, LARGEST_FLOAT))
        basis = _polynomials((np.clip(t, low, high) - mean) / deviation)[: self.degree]
        centre, size = self.moments
        basis -= centre
        basis /= size
        value = (t - mean) / deviation
        if len(frequent):
            basis *= free
            value[~free] = 0.0
        for degree in range(self.degree):
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


@dataclass(frozen=True, eq=False)
class TwoTails:
    """Minus logarithms of tail shares of the values of columns, each side by itself."""

    # Quantiles, increasing: the median in the middle, and each tenth of both sides.
    knots: Annotated[FloatArray, "v 19", SQUARABLE]
    # Of the Pareto tails below and above.
    exponents: Annotated[FloatArray, "v 2", Meta(ge=0, le=LARGEST_EXPONENT)]

    def validate(self) -> None:
        """Refuse quantiles out of order."""
        if (np.diff(self.knots) < 0).any():
            raise ValueError("quantiles out of order")

    @classmethod
    def fit(cls, values: FloatArray, seen: BoolArray) -> TwoTails:
        """Learn from those cells of columns (v, n) that are `seen`; a column may have none."""
        n_seen = seen.sum(axis=1, keepdims=True)
        ordered = np.sort(np.where(seen, values, np.where(n_seen > 0, np.inf, 0.0)), axis=1)
        sides = np.concatenate([[-FAR], -SHARES[:0:-1], SHARES, [FAR]])
        # Linear interpolation between order statistics, as numpy's quantile does.
        last_place = np.maximum(n_seen - 1, 0)
        place = (0.5 + 0.5 * sides) * last_place
        below = np.floor(place).astype(np.int64)
        lower = np.take_along_axis(ordered, below, axis=1)
        upper = np.take_along_axis(ordered, np.minimum(below + 1, last_place), axis=1)
        quantiles = lower + (place - below) * (upper - lower)
        knots, ends = quantiles[:, 1:-1], quantiles[:, [0, -1]]
        centre, outermost = knots[:, [len(SHARES) - 1]], knots[:, [0, -1]]
        step = np.log((np.abs(ends - centre) + FLOOR) / (np.abs(outermost - centre) + FLOOR))
        rarer = np.log((1.0 - SHARES[-1]) / (1.0 - FAR))
        exponents = np.minimum(rarer / np.maximum(step, 1e-9), LARGEST_EXPONENT)
        return cls(knots.copy(), exponents * (n_seen > 0))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Minus the logarithm of the share of a side that lies at least as far out, (v, n)."""
        middle, n = len(SHARES) - 1, values.shape[1]
        # Each side is read towards the median: of a value that is several knots, the nearest.
        passed, beyond = np.zeros(values.shape, dtype=np.int8), np.empty(values.shape, dtype=bool)
        for j in range(middle + 1):
            np.greater_equal(values, self.knots[:, j, None], out=beyond)
            passed += beyond.view(np.int8)
        for j in range(middle, 2 * middle + 1):
            np.greater(values, self.knots[:, j, None], out=beyond)
            passed += beyond.view(np.int8)
        last = 2 * middle + 2
        outside = np.flatnonzero((passed == 0) | (passed == last))
        side, column = (passed.take(outside) > 0).astype(np.int64), outside // n
        place = passed + np.arange(len(values))[:, None] * (last + 1)
        anchor, slope, height, reach = self._lines
        surprise = values - anchor.take(place)
        surprise *= slope.take(place)
        surprise += height.take(place)
        distance = np.abs(values.take(outside) - self.knots[:, [0, -1]][column, side])
        steps = np.log1p(distance / (reach + FLOOR)[column, side])
        surprise.put(outside, HEIGHTS[0] + self.exponents[column, side] * steps)
        return surprise

    @cached_property
    def _lines(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Where lines between knots are anchored, their slopes and heights there, (v, 21) each.

        From below the first knot to beyond the last, with the median itself in the middle. Last the
        distance from the median to the outermost knots below and above, (v, 2).
        """
        middle = len(SHARES) - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = np.diff(HEIGHTS) / np.diff(self.knots)
        none = np.zeros((len(self.knots), 1))
        slope = np.hstack([none, slopes[:, :middle], none, slopes[:, middle:], none])
        ends = [0, *range(middle), middle, *range(middle + 1, 2 * middle + 1), 2 * middle]
        heights = np.broadcast_to(HEIGHTS[ends], slope.shape)
        reach = np.abs(self.knots[:, [0, -1]] - self.knots[:, [middle]])
        return self.knots[:, ends], slope, np.ascontiguousarray(heights), reach


@dataclass(frozen=True, eq=False)
class UpperTail:
    """Minus the logarithm of the share of rows that score at least so high.

    As counted, and beyond the last as steep as an exponential tail; on that tail where it lies
    higher: a score far beyond all others is rarer than one among n.
    """

    # Scores, increasing, and the logarithms counted at them; between, linear.
    knots: Annotated[FloatArray, "k", SQUARABLE]
    surprise: Annotated[FloatArray, "k", Meta(ge=0, le=LARGEST_SURPRISE)]
    # The exponential tail, slope (score - zero).
    zero: Annotated[float, SQUARABLE]
    slope: Annotated[float, Meta(ge=0, le=STEEPEST)]

    def validate(self) -> None:
        """Refuse counts out of order, and none at all."""
        if not self.knots.size or (np.diff(self.knots) <= 0).any():
            raise ValueError("knots out of order")
        if (np.diff(self.surprise) < 0).any():
            raise ValueError("surprises out of order")

    @classmethod
    def fit(cls, scores: FloatArray, *, ends: bool = False) -> UpperTail:
        """Learn from scores (n,); where the tail `ends`, nothing is rarer than the last of them."""
        values, first = np.unique(np.sort(scores), return_index=True)
        surprise = -np.log1p(-first / len(scores))
        if len(values) > KNOTS:
            evenly = np.linspace(0, len(values) - EXTREME_KNOTS, KNOTS - EXTREME_KNOTS, dtype=int)
            kept = np.r_[evenly[:-1], len(values) - EXTREME_KNOTS : len(values)]
            values, surprise = values[kept], surprise[kept]
        zero, slope = (0.0, 0.0) if ends else exponential_tail(scores, UPPER)
        return cls(values, surprise, zero, slope)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Surprise of scores (r,)."""
        counted: FloatArray = np.interp(scores, self.knots, self.surprise)
        if self.slope == 0.0:
            return counted
        counted += self.slope * np.maximum(scores - self.knots[-1], 0.0)
        surprise: FloatArray = np.maximum(counted, self.slope * (scores - self.zero) - ALLOWED)
        return surprise


def exponential_tail(scores: FloatArray, shares: tuple[float, float]) -> tuple[float, float]:
    """Where the tail through the quantiles at two shares of scores (n,) begins, and its slope.

    Minus the logarithm of the share of rows beyond a score is slope (score - zero).
    """
    low, high = np.quantile(scores, shares)
    first, last = -np.log1p(-np.array(shares))
    slope = (last - first) / max(high - low, LEAST_REACH)
    return float(low - first / slope), float(slope)


@dataclass(frozen=True, eq=False)
class RowSurprise:
    """What the cells of n rows say."""

    mean: FloatArray  # mean over columns of the surprise of their most surprising cell
    oddest: FloatArray  # log of the mean over cells of one over their share: led by the oddest cell
    scatter: FloatArray  # mean over numbers of log(1 + (residual / usual residual)^2)


@dataclass(frozen=True, eq=False)
class CellModel:
    """Surprises of cells, by themselves and given the other cells of the row."""

    map: AdditiveFeatures
    residuals: ColumnResiduals
    given_others: TwoTails  # of the numbers' residuals
    alone: TwoTails  # of the numbers
    # Of each indicator its value where set, and the share of rows in which it is.
    height: Annotated[FloatArray, "a 1", Meta(gt=0, le=LARGEST_TO_SQUARE)]
    share: Annotated[FloatArray, "a 1", Meta(gt=0, le=2)]
    # How improbable the states of each column of categories, and the frequent values of each
    # number, are.
    states: tuple[UpperTail, ...]
    # Median, and median distance to it, of each number's residuals in the usual rows.
    usual: Annotated[FloatArray, "2 v 1", "NaN too"]

    def validate(self) -> None:
        """Refuse parts that do not belong together."""
        v, a, state = len(self.map.number), len(self.map.indicator), self.map.state
        sound = (
            len(self.given_others.knots) == len(self.alone.knots) == self.usual.shape[1] == v
            and len(self.height) == len(self.share) == a
            and len(self.states) == (state.max() + 1 if a else 0)
            and np.array_equal(self.residuals.group, self.map.group)
            and np.isfinite(self.usual[0]).all()
            # A number of which no row is usual has an infinite distance.
            and (self.usual[1] > 0).all()
        )
        if not sound:
            raise ValueError("its parts do not fit together")

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        scores: FloatArray,
        columns: ColumnRoles,
        *,
        contaminated: bool,
        normal: BoolArray,
        place: IntArray | None = None,
    ) -> tuple[CellModel, RowSurprise]:
        """Learn from rows (n, d) and their kernel PCA scores (n,); also what the rows' cells say.

        The rows' own surprises come from regressions that have not seen them. Rows known to be
        `normal` (n,) are learned from whatever their scores are. `place` (n,) is the large group
        that each is of.
        """
        lowest = partial(usual_rows, scores, place, contaminated=contaminated)
        learned, usual = lowest() | normal, lowest(share=USUAL) | normal
        features = AdditiveFeatures.fit(X, columns)
        rows = features(X)
        # More features than rows, levels of many categories included, explain any row.
        n_features, n_learned = len(features.group), int(np.count_nonzero(learned))
        is_crowded = len(columns.groups) > MANY_COLUMNS and n_features > n_learned
        is_wide = features.is_wide or is_crowded
        residuals = ColumnResiduals.fit(rows.features[learned], features.group, is_wide=is_wide)
        flags = rows.features[:, features.indicator]
        height = flags.max(axis=0, initial=0.0)[:, None]
        height[height <= 0] = 1.0
        share = ((flags[learned] > 0).sum(axis=0) + 0.5) / (n_learned + 1)
        share = share[:, None]
        left = residuals(rows.features, learned)
        errors, improbability = _cells_off(features, height, share, rows, left)
        model = cls(
            map=features,
            residuals=residuals.without_small() if is_wide else residuals,
            given_others=TwoTails.fit(errors, rows.free),
            alone=TwoTails.fit(rows.value, rows.free),
            height=height,
            share=share,
            states=tuple(UpperTail.fit(state, ends=True) for state in improbability),
            usual=_medians(errors, rows.free & usual),
        )
        return model, model._summary(rows, errors, improbability)

    def __call__(self, X: FloatArray) -> RowSurprise:
        """Say of new rows (r, d) how surprising they are; each depends on itself alone."""
        rows = self.map(X)
        left = self.residuals(rows.features)
        return self._summary(rows, *_cells_off(self.map, self.height, self.share, rows, left))

    def _summary(
        self, rows: FeatureRows, errors: FloatArray, improbability: FloatArray
    ) -> RowSurprise:
        """Sum up n rows by the errors of their numbers (v, n) and how improbable their states are.

        Numpy adds a single column in another order than columns side by side, but not lines: sums
        over the cells of a row are taken of lines, to the same bits in any batch.
        """
        n, free = len(rows.features), rows.free
        states = [tail(of_state) for tail, of_state in zip(self.states, improbability, strict=True)]
        # Of each number given the others, of each number alone, of each state.
        cells = np.concatenate(
            [
                self.given_others(errors) * free,
                self.alone(rows.value) * free,
                np.reshape(states, (len(states), n)),
            ]
        )
        if not len(cells):
            return RowSurprise(np.zeros(n), np.zeros(n), np.zeros(n))
        first, *others = self._by_group
        largest = cells[first[1]]
        for groups, members in others:
            largest[groups] = np.maximum(largest[groups], cells[members])
        top = cells.max(axis=0)
        odds = np.exp(cells - top)
        middle, distance = self.usual
        scatter = np.log1p(((errors - middle) / distance) ** 2) * free
        return RowSurprise(
            mean=largest.T.copy().sum(axis=1) / len(largest),
            oddest=top + np.log(odds.T.copy().sum(axis=1) / len(cells)),
            scatter=scatter.T.copy().sum(axis=1) / max(len(scatter), 1),
        )

    @cached_property
    def _by_group(self) -> list[tuple[IntArray, IntArray]]:
        """The first cell of each group, the second of those that have two, and so on."""
        numbers = self.map.group[self.map.polynomial]
        starts = np.flatnonzero(np.diff(self.map.state, prepend=-1))
        groups = np.r_[numbers, numbers, self.map.group[self.map.indicator[starts]]]
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        sizes = np.diff(np.r_[starts, len(order)])
        deep = [np.flatnonzero(sizes > place) for place in range(sizes.max())]
        return [(having, order[starts[having] + place]) for place, having in enumerate(deep)]


def usual_rows(
    scores: FloatArray,
    place: IntArray | None = None,
    *,
    contaminated: bool,
    share: float = LEARNED,
) -> BoolArray:
    """Mark the rows (n,) of lowest score, so large a share of all; of clean rows, all.

    So large a share of each group, where `place` (n,) says which group each row is of.
    """
    if not contaminated:
        return np.ones(len(scores), dtype=bool)
    return of_each_group(place, scores, lambda of: of <= np.quantile(of, share))


def _cells_off(
    features: AdditiveFeatures,
    height: FloatArray,
    share: FloatArray,
    rows: FeatureRows,
    left: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """How far numbers (v, n) are from what is predicted, and how improbable states (states, n) are.

    By the residuals (n, p) `left` of rows; the latter as minus the logarithm of the predicted
    probability of the state that a row is in.
    """
    at, indicator = features.polynomial, features.indicator
    # With what clipping took off the numbers.
    errors = np.ascontiguousarray((left[:, at] - rows.features[:, at]).T + rows.value)
    if not len(indicator):
        return errors, np.zeros((0, len(left)))
    flags = np.ascontiguousarray(rows.features[:, indicator].T)
    predicted = np.clip((flags - left[:, indicator].T) / height, 0.0, 1.0)
    predicted = (predicted + PRIOR * share) / (1.0 + PRIOR)
    starts = np.flatnonzero(np.diff(features.state, prepend=-1))
    of_set = np.maximum.reduceat(np.where(flags > 0, predicted, 0.0), starts)
    any_set = np.logical_or.reduceat(flags > 0, starts)
    # A number that is none of several frequent values is judged on its scale, if it has one.
    several = np.diff(np.r_[starts, len(indicator)]) > 1
    elsewhere = several & np.isin(features.source[starts], features.number)
    of_none = np.where(elsewhere[:, None], 1.0, 1.0 - np.add.reduceat(predicted, starts))
    probability = np.where(any_set, of_set, of_none)
    return errors, -np.log(np.maximum(probability, SMALLEST_PROBABILITY))


def _medians(errors: FloatArray, seen: BoolArray) -> FloatArray:
    """Median and median distance to it of the cells that are `seen`, (2, v, 1)."""
    out = np.zeros((2, len(errors), 1))
    out[1] = np.inf
    for j in np.flatnonzero(seen.any(axis=1)):
        column = errors[j, seen[j]]
        middle = np.median(column)
        out[:, j, 0] = middle, np.median(np.abs(column - middle)) + LEAST_SCATTER
    return out


@dataclass(frozen=True, eq=False)
class CombinedScore:
    """The score of rows, learned from rows."""

    cells: CellModel
    large_groups: LargeGroups
    # Each of the rows of no large group, and of those of each.
    error: tuple[UpperTail, ...]  # of the kernel PCA errors of rows
    mean: tuple[UpperTail, ...]  # of the mean surprises
    scatter: tuple[UpperTail, ...]
    # Of their oddest cells: the exponential tail slope (oddest - zero).
    oddest_zero: Annotated[float, SQUARABLE]
    oddest_slope: Annotated[float, Meta(ge=0, le=STEEPEST)]
    weights: Annotated[FloatArray, "5", Meta(ge=0, le=LARGEST_WEIGHT)]  # e, a, b, o and c

    def validate(self) -> None:
        """Refuse large groups without their tails."""
        n_tails = {len(self.large_groups) + 1}
        if {len(self.error), len(self.mean), len(self.scatter)} != n_tails:
            raise ValueError("its tails are not those of its large groups")

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        errors: FloatArray,
        columns: ColumnRoles,
        *,
        contaminated: bool,
        normal: BoolArray,
        large_groups: LargeGroups | None = None,
    ) -> tuple[CombinedScore, FloatArray]:
        """Learn from rows (n, d) and their errors, and score these, each as if left out.

        Those known to be `normal` (n,) are learned from whatever their errors are.
        """
        large_groups = large_groups or LargeGroups()
        place = large_groups.places(X)
        cells, rows = CellModel.fit(
            X, errors, columns, contaminated=contaminated, normal=normal, place=place
        )
        zero, slope = exponential_tail(rows.oddest, OF_CELLS)
        weights = CONTAMINATED if contaminated else CLEAN
        if cells.map.is_wide:
            weights = WIDE

        def tails(scores: FloatArray, *, ends: bool = False) -> tuple[UpperTail, ...]:
            of_groups = (scores[place == group] for group in range(len(large_groups) + 1))
            # Of rows that were drawn, none may be of a group.
            return tuple(UpperTail.fit(of if len(of) else scores, ends=ends) for of in of_groups)

        model = cls(
            cells=cells,
            large_groups=large_groups,
            error=tails(eight_digits(errors)),
            mean=tails(rows.mean, ends=not contaminated),
            scatter=tails(rows.scatter, ends=not contaminated),
            oddest_zero=zero,
            oddest_slope=slope,
            weights=np.array(weights),
        )
        return model, model(X, errors, rows)

    def __call__(
        self, X: FloatArray, errors: FloatArray, rows: RowSurprise | None = None
    ) -> FloatArray:
        """Scores of rows (r, d) with their kernel PCA errors (r,), and what their cells say.

        Of new rows, which are all but those of the fit, the cells are asked here.
        """
        rows = self.cells(X) if rows is None else rows
        place = self.large_groups.places(X)

        def surprise(tails: tuple[UpperTail, ...], scores: FloatArray) -> FloatArray:
            found = tails[0](scores)
            for group, tail in enumerate(tails[1:], start=1):
                found[place == group] = tail(scores[place == group])
            return found

        e, a, b, o, c = self.weights
        surprises = [
            surprise(self.error, eight_digits(errors)) + np.log(e),
            surprise(self.mean, rows.mean) + np.log(a),
            surprise(self.scatter, rows.scatter) + np.log(b),
        ]
        oddest = self.oddest_slope * (rows.oddest - self.oddest_zero)
        if o:
            surprises.append(np.maximum(oddest, 0.0) + np.log(o))
        whole = np.logaddexp.reduce(surprises, axis=0)
        of_oddest = np.minimum(oddest, rows.oddest + MORE)
        scores: FloatArray = np.logaddexp(whole, c * (of_oddest - RARE)) + APART * whole
        return scores
