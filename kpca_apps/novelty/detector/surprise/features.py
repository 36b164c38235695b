"""The explicit feature map of an additive kernel: what each column contributes on its own.

k(x, y) = sum over columns j of k_j(x_j, y_j). A number contributes the Hermite polynomials z,
z^2 and z^3 - 3z of its scaled value (bends and thresholds between columns become linear in them),
and an indicator for each value that many rows share, such as the 0 of a column of rain; a category
contributes its indicators. Kernel PCA of such a kernel is linear in these features, which are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.engine.subspace import SQUARABLE
from kpca_apps.novelty.detector.column_scales import IQR_OF_NORMAL, ordinary_rows
from kpca_apps.novelty.magnitudes import mean_and_sd, varies

__all__ = ["DEGREE", "AdditiveFeatures", "FeatureRows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

DEGREE = 3
"""Polynomials of a number."""
# A value that this share of the rows holds is a state of its own, not a place on a scale.
FREQUENT = 0.25
# Fewer other values than these give no scale.
FEWEST = 20
# Polynomials see values clipped to the bulk of their column, a little widened: the cube of one
# absurd value would drown all else. `FeatureRows.value` keeps what clipping takes off.
BULK, MARGIN = (0.005, 0.995), 0.1
LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Rows as an additive kernel sees them.

    Attributes
    ----------
    features : (n, p) array
    value : (v, n) array
        The numbers on their scale, not clipped; 0 where frequent.
    free : (v, n) bool array
        Where a number is none of its column's frequent values.
    """

    features: FloatArray
    value: FloatArray
    free: BoolArray


@dataclass(frozen=True, eq=False)
class AdditiveFeatures:
    """Scales learned from the columns of a table.

    Features lie group by group; the polynomials of a number are neighbours, and so are indicators
    that exclude each other.

    Attributes
    ----------
    number : (v,) int array
        Matrix columns that have a scale.
    polynomial : (v,) int array
        Position of z of each number among the features; its other polynomials follow.
    scale : (6, v, 1) array
        Median and IQR / 1.349 of the free values, t = asinh((x - median) / spread); the bulk of t,
        from and to; mean and deviation of t clipped to it, z = (t - mean) / deviation.
    moments : (2, 3, v, 1) array
        Means and deviations of the polynomials.
    indicator : (a,) int array
        Position of each indicator among the features.
    source : (a,) int array
        The matrix column it comes from.
    equals : (a,) array
        The value it stands for; NaN where the column is an indicator itself.
    state : (a,) int array
        What it is a state of, 0, 1, 2 ...: a column of categories, or a number's frequent values.
    group : (p,) int array
        The group each feature belongs to, not decreasing.
    """

    number: Annotated[IntArray, "v", Meta(ge=0)]
    polynomial: Annotated[IntArray, "v", Meta(ge=0)]
    scale: Annotated[FloatArray, "6 v 1"]
    moments: Annotated[FloatArray, "2 3 v 1", SQUARABLE]
    indicator: Annotated[IntArray, "a", Meta(ge=0)]
    source: Annotated[IntArray, "a", Meta(ge=0)]
    equals: Annotated[FloatArray, "a", "NaN too"]
    state: Annotated[IntArray, "a", Meta(ge=0)]
    group: Annotated[IntArray, "p", Meta(ge=0)]

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
        given, varying = np.zeros(X.shape[1], dtype=bool), varies(X)
        given[as_is] = True
        number: list[int] = []
        polynomial: list[int] = []
        scales: list[list[float]] = []
        moments: list[FloatArray] = []
        indicator: list[int] = []
        source: list[int] = []
        equals: list[float] = []
        state: list[int] = []
        group: list[int] = []
        n_states = 0

        def add_state(g: int, columns: Sequence[int], values: Sequence[float]) -> None:
            nonlocal n_states
            indicator.extend(range(len(group), len(group) + len(values)))
            source.extend(columns)
            equals.extend(values)
            state.extend([n_states] * len(values))
            group.extend([g] * len(values))
            n_states += len(values) > 0

        for g, members in enumerate(groups):
            for j in members[varying[members] & ~given[members]].tolist():
                frequent, free = _states_of(np.sort(X[:, j]))
                if len(free):
                    scale, of_polynomials = _scale_of(free)
                    number.append(j)
                    polynomial.append(len(group))
                    scales.append(scale)
                    moments.append(of_polynomials)
                    group.extend([g] * DEGREE)
                add_state(g, [j] * len(frequent), frequent)
            levels = members[given[members]].tolist()
            add_state(g, levels, [np.nan] * len(levels))
        return cls(
            number=np.array(number, dtype=np.int64),
            polynomial=np.array(polynomial, dtype=np.int64),
            scale=np.array(scales).reshape(-1, 6).T[..., None].copy(),
            moments=np.array(moments).reshape(-1, 2, DEGREE).transpose(1, 2, 0)[..., None].copy(),
            indicator=np.array(indicator, dtype=np.int64),
            source=np.array(source, dtype=np.int64),
            equals=np.array(equals, dtype=np.float64),
            state=np.array(state, dtype=np.int64),
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
        for number, value in self._frequent:
            free[number] &= numbers[number] != value
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
        if self._frequent:
            basis *= free
            value[~free] = 0.0
        for degree in range(DEGREE):
            lines[self.polynomial + degree] = basis[degree]
        return FeatureRows(np.ascontiguousarray(lines.T), value, free)

    @cached_property
    def _frequent(self) -> list[tuple[int, float]]:
        """Frequent values of numbers that have a scale, each with the place of its number."""
        place = {int(column): i for i, column in enumerate(self.number)}
        values = zip(self.source.tolist(), self.equals.tolist(), strict=True)
        return [(place[column], value) for column, value in values if column in place]


def _states_of(ordered: FloatArray) -> tuple[list[float], FloatArray]:
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
