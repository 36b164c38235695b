"""How surprising the cells of rows are, by themselves and given the other cells of the row.

Kernel PCA of an additive kernel predicts each column from all others (`residuals`); how far off a
cell is becomes the share of cells that are as far off (`tails`). A row is told by three numbers:
its mean over columns, its oddest cell, and how widely it is scattered about what was predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.novelty.detector.surprise.features import AdditiveFeatures, FeatureRows
from kpca_apps.novelty.detector.surprise.residuals import ColumnResiduals
from kpca_apps.novelty.detector.surprise.tails import CountedTail, TwoTails
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE

__all__ = ["CellModel", "RowSurprise", "usual_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Shares of the rows, those that kernel PCA finds densest: for the regressions, and for what is
# taken as the usual scatter.
LEARNED, USUAL = 0.95, 0.75
# Part of a prediction that is the plain share of a level: no level is impossible.
PRIOR = 0.05
SMALLEST_PROBABILITY = 1e-9
# Least scatter of a column, in standard deviations.
LEAST_SCATTER = 0.02


@dataclass(frozen=True, eq=False)
class RowSurprise:
    """What the cells of rows say.

    Attributes
    ----------
    mean : (n,) array
        Mean over columns of the surprise of their most surprising cell.
    oddest : (n,) array
        Logarithm of the mean over cells of one over their share: led by the oddest cell.
    scatter : (n,) array
        Mean over numbers of log(1 + (residual / usual residual)^2).
    """

    mean: FloatArray
    oddest: FloatArray
    scatter: FloatArray


@dataclass(frozen=True, eq=False)
class CellModel:
    """Surprises of cells, learned from rows.

    Attributes
    ----------
    map : AdditiveFeatures
    residuals : ColumnResiduals
    given_others, alone : TwoTails
        Of the numbers' residuals, and of the numbers.
    height, share : (a, 1) array
        Of each indicator: its value where set, and the share of rows in which it is.
    states : tuple of CountedTail
        How improbable the states of each column of categories, and the frequent values of each
        number, are.
    usual : (2, v, 1) array
        Median, and median distance to it, of each number's residuals in the usual rows.
    """

    map: AdditiveFeatures
    residuals: ColumnResiduals
    given_others: TwoTails
    alone: TwoTails
    height: Annotated[FloatArray, "a 1", Meta(gt=0, le=LARGEST_TO_SQUARE)]
    share: Annotated[FloatArray, "a 1", Meta(gt=0, le=2)]
    states: tuple[CountedTail, ...]
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
        groups: Sequence[IntArray],
        as_is: IntArray,
        *,
        contaminated: bool,
    ) -> tuple[CellModel, RowSurprise]:
        """Learn from rows (n, d) and their kernel PCA scores (n,); both, and what they say.

        The rows' own surprises come from regressions that have not seen them.
        """
        learned = usual_rows(scores, contaminated=contaminated)
        usual = usual_rows(scores, contaminated=contaminated, share=USUAL)
        features = AdditiveFeatures.fit(X, groups, as_is)
        rows = features(X)
        residuals = ColumnResiduals.fit(rows.features[learned], features.group)
        left = residuals.of_rows(rows.features, learned)
        errors = _unclipped(left, rows, features)
        flags = rows.features[:, features.indicator]
        height = flags.max(axis=0, initial=0.0)
        height[height <= 0] = 1.0
        share = ((flags[learned] > 0).sum(axis=0) + 0.5) / (np.count_nonzero(learned) + 1)
        model = cls(
            map=features,
            residuals=residuals,
            given_others=TwoTails.fit(errors, rows.free),
            alone=TwoTails.fit(rows.value, rows.free),
            height=height[:, None],
            share=share[:, None],
            states=(),
            usual=_medians(errors, rows.free & usual),
        )
        improbable = model._improbability(left, rows)
        model = replace(model, states=tuple(map(CountedTail.fit, improbable)))
        return model, model._summary(errors, improbable, rows)

    def __call__(self, X: FloatArray) -> RowSurprise:
        """Say of new rows (r, d) how surprising they are; each depends on itself alone."""
        rows = self.map(X)
        left = self.residuals.of_new_rows(rows.features)
        errors = _unclipped(left, rows, self.map)
        return self._summary(errors, self._improbability(left, rows), rows)

    def _summary(
        self, errors: FloatArray, improbable: FloatArray, rows: FeatureRows
    ) -> RowSurprise:
        """Say how surprising rows are by the errors of their numbers and by their states."""
        n, v = len(rows.features), len(self.map.number)
        # Of each number given the others, of each number alone, of each state.
        cells = np.concatenate(
            [
                self.given_others(errors) * rows.free,
                self.alone(rows.value) * rows.free,
                np.array(
                    [tail(u) for tail, u in zip(self.states, improbable, strict=True)]
                ).reshape(len(self.states), n),
            ]
        )
        if not len(cells):
            return RowSurprise(np.zeros(n), np.zeros(n), np.zeros(n))
        first, *others = self._by_group
        largest = cells[first[1]]
        for groups, members in others:
            largest[groups] = np.maximum(largest[groups], cells[members])
        mean = _sum(largest) / len(largest)
        top = cells.max(axis=0)
        oddest = top + np.log(_sum(np.exp(cells - top)) / len(cells))
        middle, distance = self.usual
        apart = np.log1p(((errors - middle) / distance) ** 2) * rows.free
        return RowSurprise(mean, oddest, _sum(apart) / max(v, 1))

    def _improbability(self, left: FloatArray, rows: FeatureRows) -> FloatArray:
        """Minus the logarithm of the predicted probability of each row's states, (states, n)."""
        indicator = self.map.indicator
        if not len(indicator):
            return np.zeros((0, len(left)))
        flags = np.ascontiguousarray(rows.features[:, indicator].T)
        predicted = np.clip((flags - left[:, indicator].T) / self.height, 0.0, 1.0)
        predicted = (predicted + PRIOR * self.share) / (1.0 + PRIOR)
        starts = self._states
        of_set = np.maximum.reduceat(np.where(flags > 0, predicted, 0.0), starts)
        any_set = np.logical_or.reduceat(flags > 0, starts)
        # A number that is none of several frequent values is judged on its scale, if it has one.
        several = np.diff(np.r_[starts, len(indicator)]) > 1
        elsewhere = several & np.isin(self.map.source[starts], self.map.number)
        of_none = np.where(elsewhere[:, None], 1.0, 1.0 - np.add.reduceat(predicted, starts))
        probability = np.where(any_set, of_set, of_none)
        improbable: FloatArray = -np.log(np.maximum(probability, SMALLEST_PROBABILITY))
        return improbable

    @cached_property
    def _states(self) -> IntArray:
        """The first indicator of each state."""
        return np.flatnonzero(np.diff(self.map.state, prepend=-1))

    @cached_property
    def _by_group(self) -> list[tuple[IntArray, IntArray]]:
        """The first cell of each group, the second of those that have two, and so on."""
        numbers = self.map.group[self.map.polynomial]
        groups = np.r_[numbers, numbers, self.map.group[self.map.indicator[self._states]]]
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        sizes = np.diff(np.r_[starts, len(order)])
        deep = [np.flatnonzero(sizes > place) for place in range(sizes.max())]
        return [(having, order[starts[having] + place]) for place, having in enumerate(deep)]


def usual_rows(scores: FloatArray, *, contaminated: bool, share: float = LEARNED) -> BoolArray:
    """Mark the rows (n,) of lowest score, so large a share of all; of clean rows, all."""
    marked: BoolArray = scores <= np.quantile(scores, share if contaminated else 1.0)
    return marked


def _unclipped(left: FloatArray, rows: FeatureRows, features: AdditiveFeatures) -> FloatArray:
    """Residuals of the numbers (v, n), with what clipping took off the numbers."""
    at = features.polynomial
    errors: FloatArray = (left[:, at] - rows.features[:, at]).T + rows.value
    return np.ascontiguousarray(errors)


def _sum(cells: FloatArray) -> FloatArray:
    """Sum of each row's cells (k, n), to the same bits in any batch."""
    # Numpy adds a single column in another order than columns side by side; of lines it does not.
    total: FloatArray = np.ascontiguousarray(cells.T).sum(axis=1)
    return total


def _medians(errors: FloatArray, seen: BoolArray) -> FloatArray:
    """Median and median distance to it of the cells that are `seen`, (2, v, 1)."""
    out = np.zeros((2, len(errors), 1))
    out[1] = np.inf
    for j in np.flatnonzero(seen.any(axis=1)):
        column = errors[j, seen[j]]
        middle = np.median(column)
        out[:, j, 0] = middle, np.median(np.abs(column - middle)) + LEAST_SCATTER
    return out
