"""The feature map of an additive kernel: features of a row from its numbers and categories.

k(x, y) = sum over columns j of k_j(x_j, y_j). A number contributes the Hermite polynomials z, z^2
and z^3 - 3z of its scaled value (which make bends and thresholds between columns linear). It also
contributes an indicator for each value that many rows share, such as 0 in a column of rain; a
category contributes its indicators. Kernel PCA of such a kernel is linear in these few features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.engine.subspace import SQUARABLE
from kpca_apps.novelty.detector.views import IQR_OF_NORMAL, ColumnRoles, ordinary_rows, quantiles_of
from kpca_apps.novelty.magnitudes import mean_and_sd, varies
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray, Uncached

DEGREE = 3  # highest degree of the polynomials of a number
# A table is wide if it has more than MANY_COLUMNS columns of numbers, and more polynomials than
# MOST_FEATURES times its rows. There, numbers have degree 1 only: regressions on more features than
# rows fit chance. A table of few columns gains from polynomials even if its rows are few.
MANY_COLUMNS, MOST_FEATURES = 100, 0.5
# A value found in at least this share of the rows is frequent, and gets an indicator.
FREQUENT = 0.25
FEWEST = 20  # at least this many values, other than frequent ones, are needed to estimate a scale
# Polynomials use values clipped to the bulk of their column, slightly widened. Without clipping,
# the cube of one absurd value would outweigh all other values. `FeatureRows.value` is not clipped.
BULK, MARGIN = (0.005, 0.995), 0.1
LARGEST_FLOAT = np.finfo(np.float64).max


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Features of n rows for an additive kernel."""

    lines: FloatArray  # (p, n), one line for each feature
    value: FloatArray  # (v, n), scaled numbers, not clipped; 0 for frequent values
    free: BoolArray  # (v, n), whether a number is not among its column's frequent values
    all_free: bool  # whether `free` is true everywhere

    @property
    def features(self) -> FloatArray:
        """The features (n, p), one line for each row."""
        return self.lines.T


@dataclass(frozen=True, eq=False)
class AdditiveFeatures(Uncached):
    """A map from rows to the features of an additive kernel, with scales learned from a table.

    Features are ordered by group; the polynomials of a number are adjacent, and so are indicators
    that exclude each other.
    """

    number: Annotated[IntArray, "v", Meta(ge=0)]  # indices of numeric columns of the encoded table
    # Feature index of each numeric column's first polynomial; its other polynomials follow.
    polynomial: Annotated[IntArray, "v", Meta(ge=0)]
    # Six lines: median and spread (IQR / 1.349) of a column without its frequent values; limits to
    # which t = asinh((value - median) / spread) is clipped; mean and deviation of clipped t.
    scale: Annotated[FloatArray, "6 v 1"]
    moments: Annotated[FloatArray, "2 g v 1", SQUARABLE]  # means and deviations of g polynomials
    indicator: Annotated[IntArray, "a", Meta(ge=0)]  # indices among the features
    source: Annotated[IntArray, "a", Meta(ge=0)]  # column of the encoded table, for each indicator
    # Value that each indicator stands for; NaN if that column is itself an indicator.
    equals: Annotated[FloatArray, "a", "NaN too"]
    # Index of each indicator's set: the levels of a category, or the frequent values of a number.
    state: Annotated[IntArray, "a", Meta(ge=0)]
    group: Annotated[IntArray, "p", Meta(ge=0)]  # column group of each feature, not decreasing

    def validate(self) -> None:
        """Raise for parameters that cannot come from a fit, or that would give NaN scores."""
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
        numbers: list[tuple[int, int]] = []  # matrix column, feature index of its first polynomial
        scales: list[list[float]] = []
        moments: list[FloatArray] = []
        # For each indicator: index among the features, matrix column, value, index of its set.
        indicators: list[tuple[int, int, float, int]] = []
        n_states = 0
        columns_with_scale = np.flatnonzero(is_number)
        # One line for each column: sorting lines is faster than sorting columns.
        ordered = np.sort(np.ascontiguousarray(X.T[columns_with_scale]), axis=1)
        cut = {
            j: _frequent_and_free(line)
            for j, line in zip(columns_with_scale.tolist(), ordered, strict=True)
        }
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
        """Whether the table had too many columns of numbers to use their polynomials."""
        return self.degree < DEGREE

    @property
    def degree(self) -> int:
        """Highest degree of the polynomials of a numeric column."""
        return len(self.moments[0])

    def __call__(self, X: FloatArray) -> FeatureRows:
        """Return the features of rows (n, d); those of one row do not depend on the other rows."""
        # `lines` has a row for each feature: filling one column for each would be far slower.
        lines, n_numbers = np.empty((len(self.group), len(X))), len(self.number)
        if len(self.indicator):
            cells, equals = X.T[self.source], self.equals[:, None]
            lines[self.indicator] = np.where(np.isnan(equals), cells, cells == equals)
        if not n_numbers:
            return FeatureRows(lines, lines[:0], np.ones((0, len(X)), dtype=bool), True)
        free = np.ones((n_numbers, len(X)), dtype=bool)
        for k, of_number in self._frequent:
            free[of_number] &= lines[self.indicator[k]] == 0.0
        median, spread, low, high, mean, deviation = self.scale
        value = np.ascontiguousarray(X.T[self.number])
        with np.errstate(over="ignore"):
            value -= median
            value /= spread
        # Where the division overflowed, the largest float replaces infinity.
        np.clip(value, -LARGEST_FLOAT, LARGEST_FLOAT, out=value)
        np.arcsinh(value, out=value)
        z = np.clip(value, low, high)
        for scaled in (value, z):
            scaled -= mean
            scaled /= deviation
        if self._frequent:
            value[~free] = 0.0
        centre, size = self.moments
        for degree, basis in enumerate(_polynomials(z, self.degree)):
            basis -= centre[degree]
            basis /= size[degree]
            if self._frequent:
                basis *= free
            lines[self.polynomial + degree] = basis
        return FeatureRows(lines, value, free, not self._frequent)

    def log_slope(self, value: FloatArray) -> FloatArray:
        """Return log dx/dz of numbers (v, n), given by their scaled values z."""
        _, spread, _, _, mean, deviation = self.scale
        t = value * deviation + mean
        # log cosh t, since x = median + spread sinh t
        slope: FloatArray = np.logaddexp(t, -t) - np.log(2.0) + np.log(spread * deviation)
        return slope

    @cached_property
    def _frequent(self) -> list[tuple[int, BoolArray]]:
        """Pairs: index of a frequent value's indicator, mask (v,) of the value's numeric column."""
        of_numbers = np.flatnonzero(np.isin(self.source, self.number)).tolist()
        return [(k, self.number == self.source[k]) for k in of_numbers]


def _frequent_and_free(ordered: FloatArray) -> tuple[list[float], FloatArray]:
    """Split a sorted column into frequent values and others; drop others if few or all equal."""
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    counts = np.diff(np.r_[starts, len(ordered)])
    if len(starts) <= 2:
        # For two values, one indicator is enough.
        return ordered[:1].tolist(), ordered[:0]
    often = counts >= FREQUENT * len(ordered)
    free = ordered[np.repeat(~often, counts)] if often.any() else ordered
    if len(free) < FEWEST or free[0] == free[-1]:
        free = free[:0]
    return ordered[starts[often]].tolist(), free


def _scale_of(ordered: FloatArray) -> tuple[list[float], FloatArray]:
    """Return the scale and moments of one column's sorted values, for `AdditiveFeatures`."""
    low, median, high = quantiles_of(ordered, (0.25, 0.5, 0.75)).tolist()
    spread = (high - low) / IQR_OF_NORMAL
    # The range bounds the standard deviation, which is therefore rarely computed.
    if not spread > 1e-3 * (0.5 * ordered[-1] - 0.5 * ordered[0]):
        ordinary = ordered[ordinary_rows(ordered[:, None])]
        sd = float(mean_and_sd(ordinary[:, None])[1][0])
        spread = spread if spread > 1e-3 * sd else sd
    t = np.arcsinh((ordered - median) / spread)
    first, last = quantiles_of(t, BULK).tolist()
    margin = MARGIN * (last - first)
    clipped = np.clip(t, first - margin, last + margin)
    mean, deviation = float(clipped.mean()), float(clipped.std()) or 1.0
    basis = np.stack(_polynomials((clipped - mean) / deviation))
    moments = np.stack([basis.mean(axis=1), np.maximum(basis.std(axis=1), 1e-9)])
    return [median, spread, first - margin, last + margin, mean, deviation], moments


def _polynomials(z: FloatArray, degree: int = DEGREE) -> list[FloatArray]:
    """Hermite polynomials of degree 1 to 3; centring removes the constant of the second."""
    if degree == 1:
        return [z]
    square = z * z
    cube = square * z
    cube -= 3.0 * z
    return [z, square, cube]
