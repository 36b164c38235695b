"""How surprising the cells of a row are, by themselves and given the row's other cells.

Kernel PCA of an additive kernel, with a block for each column (`kpca_apps.engine.blocks`), predicts
each column from all others. A cell's surprise is -log of the share of cells that are at least as
far from their predictions. Three numbers summarise the cells of a row: their mean surprise, the
oddest cell, and their scatter about the predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.engine.blocks import BlockPCA
from kpca_apps.engine.precision import evenly_drawn
from kpca_apps.engine.rows import map_row_blocks
from kpca_apps.novelty.detector.large_groups import of_each_group
from kpca_apps.novelty.detector.surprise.curve import LEAST_SCATTER, CommonCurve, log_density
from kpca_apps.novelty.detector.surprise.features import MANY_COLUMNS, AdditiveFeatures, FeatureRows
from kpca_apps.novelty.detector.surprise.tails import TwoTails, UpperTail
from kpca_apps.novelty.detector.views import ColumnRoles
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray, Uncached

# Regressions learn from the share LEARNED of rows with the lowest kernel PCA scores; the size of
# usual residuals is measured on the share USUAL with the lowest scores.
LEARNED, USUAL = 0.95, 0.75
# Weight of a level's overall share in its predicted probability, so that no level is impossible.
PRIOR = 0.05
SMALLEST_PROBABILITY = 1e-9
# A curve is compared with regressions on up to 2,000 rows: on fewer if these have more than 400,000
# cells, but not fewer than 500.
COMPARED, MOST_COMPARED = (500, 2_000), 400_000


@dataclass(frozen=True, eq=False)
class RowSurprise:
    """Summaries of the surprises of n rows' cells: -log of the share of cells at least as odd."""

    mean: FloatArray  # mean over columns of each column's largest surprise
    oddest: FloatArray  # log of the mean over cells of exp(surprise): dominated by the oddest cell
    scatter: FloatArray  # mean of log(1 + (residual / usual residual)^2) over numeric columns
    # (c, n), exp(largest surprise) of each column, divided by the sum of all columns. None unless
    # requested.
    parts: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class CellModel(Uncached):
    """Surprises of cells, by themselves and given the other cells of the row."""

    map: AdditiveFeatures
    columns: BlockPCA
    curve: CommonCurve  # predictor of the columns that follow a common curve
    given_others: TwoTails  # tails of the residuals of numbers
    alone: TwoTails  # tails of the numbers themselves
    # Of each indicator: value if set, and share of rows in which it is set.
    height: Annotated[FloatArray, "a 1", Meta(gt=0, le=LARGEST_TO_SQUARE)]
    share: Annotated[FloatArray, "a 1", Meta(gt=0, le=2)]
    # Tails of improbabilities: one for each category or numeric column with frequent values.
    states: tuple[UpperTail, ...]
    # Median and median absolute deviation of each numeric column's residuals in the usual rows.
    usual: Annotated[FloatArray, "2 v 1", "NaN too"]

    def validate(self) -> None:
        """Raise for parts that do not come from one fit."""
        v, a, state = len(self.map.number), len(self.map.indicator), self.map.state
        sound = (
            len(self.given_others.knots) == len(self.alone.knots) == self.usual.shape[1] == v
            and len(self.height) == len(self.share) == a
            and len(self.states) == (state.max() + 1 if a else 0)
            and np.array_equal(self.columns.block, self.map.group)
            and np.isfinite(self.usual[0]).all()
            # A numeric column with no cells in usual rows passes: its median distance is infinite.
            and (self.usual[1] > 0).all()
            and (self.curve.place < v).all()
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
        with_parts: bool = False,
    ) -> tuple[CellModel, RowSurprise]:
        """Learn from rows (n, d) and their kernel PCA scores (n,); also return their surprises.

        Each row's surprises come from regressions without the row. Rows known to be `normal` (n,)
        are used whatever their scores. `place` (n,) is the large group of each row.
        """
        lowest = partial(usual_rows, scores, place, contaminated=contaminated)
        learned, usual = lowest() | normal, lowest(share=USUAL) | normal
        features = AdditiveFeatures.fit(X, columns)
        rows = features(X)
        # If there are more features (levels included) than rows, regressions explain any row.
        n_features, n_learned = len(features.group), int(np.count_nonzero(learned))
        is_crowded = len(columns.groups) > MANY_COLUMNS and n_features > n_learned
        is_wide = features.is_wide or is_crowded
        used = rows.features
        if not learned.all():
            used = rows.lines.take(np.flatnonzero(learned), axis=1).T
        fitted = BlockPCA.fit(used, features.group)
        flags = rows.lines[features.indicator]
        height = flags.max(axis=1, initial=0.0)[:, None]
        height[height <= 0] = 1.0
        share = ((flags[:, learned] > 0).sum(axis=1) + 0.5) / (n_learned + 1)
        share = share[:, None]
        left = fitted.errors(rows.lines, learned, _wanted(features)).residual
        errors, improbability = _cells_off(features, height, share, rows, left)
        curve = _common_curve(features, X, rows, errors)
        curve.replace(errors, X.T[features.number], fitted=True)
        model = cls(
            map=features,
            columns=fitted.without_small() if is_wide else fitted,
            curve=curve,
            given_others=TwoTails.fit(errors, rows.free, of_logs=False, alike=curve.place),
            # Values are asinh of distances from the median, so nearly logarithms.
            alone=TwoTails.fit(rows.value, rows.free, of_logs=True),
            height=height,
            share=share,
            states=tuple(UpperTail.fit(state, ends=True) for state in improbability),
            usual=_medians(errors, rows.free & usual),
        )
        return model, model._summary(rows, errors, improbability, with_parts=with_parts)

    def __call__(self, X: FloatArray, *, with_parts: bool = False) -> RowSurprise:
        """Return the surprises of new rows (r, d); each row is judged by itself."""
        rows = self.map(X)
        left = self.columns.errors(rows.lines, wanted=_wanted(self.map)).residual
        errors, improbability = _cells_off(self.map, self.height, self.share, rows, left)
        self.curve.replace(errors, X.T[self.map.number])
        return self._summary(rows, errors, improbability, with_parts=with_parts)

    def parts(self, X: FloatArray) -> FloatArray:
        """Return the part (c, r) of each column in the oddness of new rows (r, d)."""

        def of_block(rows: FloatArray) -> FloatArray:
            found = self(rows, with_parts=True).parts
            assert found is not None
            return found.T

        return map_row_blocks(of_block, X).T

    @cached_property
    def n_columns(self) -> int:
        """Number c of columns whose cells can be odd."""
        return len(self._by_group[0][0]) if len(self.given_others.knots) or self.states else 0

    def _summary(
        self, rows: FeatureRows, errors: FloatArray, improbability: FloatArray, *, with_parts: bool
    ) -> RowSurprise:
        """Summarise n rows by the errors of numbers (v, n) and the improbabilities of levels."""
        v, n = errors.shape
        if not (v or self.states):
            return RowSurprise(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((0, n)))
        # Surprises of each number given the other columns, of each number alone, of each level.
        cells = np.empty((2 * v + len(self.states), n))
        cells[:v] = self.given_others(errors)
        cells[v : 2 * v] = self.alone(rows.value)
        for place, tail in enumerate(self.states):
            cells[2 * v + place] = tail(improbability[place])
        middle, distance = self.usual
        scatter = errors - middle
        scatter /= distance
        scatter *= scatter
        np.log1p(scatter, out=scatter)
        if not rows.all_free:
            cells[:v] *= rows.free
            cells[v : 2 * v] *= rows.free
            scatter *= rows.free
        first, *others = self._by_group
        largest = cells[first[1]]
        for groups, members in others:
            largest[groups] = np.maximum(largest[groups], cells[members])
        parts = None
        if with_parts:
            parts = np.exp(largest - largest.max(axis=0))
            parts /= sums_of_lines(parts)
        top = cells.max(axis=0)
        cells -= top
        odds = np.exp(cells, out=cells)
        return RowSurprise(
            mean=sums_of_lines(largest) / len(largest),
            oddest=top + np.log(sums_of_lines(odds) / len(cells)),
            scatter=sums_of_lines(scatter) / max(len(scatter), 1),
            parts=parts,
        )

    @cached_property
    def _by_group(self) -> list[tuple[IntArray, IntArray]]:
        """Which groups have a first surprise, a second, and so on; and where each of these is.

        A number has two surprises (`given_others`, `alone`), a set of indicators has one.
        """
        numbers = self.map.group[self.map.polynomial]
        starts = np.flatnonzero(np.diff(self.map.state, prepend=-1))
        groups = np.r_[numbers, numbers, self.map.group[self.map.indicator[starts]]]
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        sizes = np.diff(np.r_[starts, len(order)])
        deep = [np.flatnonzero(sizes > place) for place in range(sizes.max())]
        return [(having, order[starts[having] + place]) for place, having in enumerate(deep)]


def usual_rows(
    scores: FloatArray, place: IntArray | None = None, *, contaminated: bool, share: float = LEARNED
) -> BoolArray:
    """Mark the `share` of rows (n,) with the lowest scores; all rows if they are clean.

    The share applies to each group, if `place` (n,) gives the group of each row.
    """
    if not contaminated:
        return np.ones(len(scores), dtype=bool)
    return of_each_group(place, scores, lambda of: of <= np.quantile(of, share))


def sums_of_lines(lines: FloatArray) -> FloatArray:
    """Sum k lines of n rows (k, n) to (n,); a row's sum has the same bits in any batch of rows."""
    # Numpy sums a single column in another order than columns side by side.
    sums: FloatArray = lines.sum(axis=0)
    return sums if lines.shape[1] > 1 else np.repeat(lines, 2, axis=1).sum(axis=0)[: len(sums)]


def _wanted(features: AdditiveFeatures) -> IntArray:
    """Return indices of the features to predict: each scaled number itself, and all indicators."""
    return np.concatenate([features.polynomial, features.indicator])


def _cells_off(
    features: AdditiveFeatures,
    height: FloatArray,
    share: FloatArray,
    rows: FeatureRows,
    left: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return errors of numbers, (v, n), and improbabilities of levels, (indicator sets, n).

    `left` (w, n) are residuals of the rows' `_wanted` features. Improbability is minus the log of
    the predicted probability of the row's level or frequent value.
    """
    v, indicator = len(features.number), features.indicator
    # The residuals are of clipped numbers: replace each clipped number by the actual one.
    errors = left[:v] - rows.lines[features.polynomial]
    errors += rows.value
    if not len(indicator):
        return errors, np.zeros((0, errors.shape[1]))
    flags = rows.lines[indicator]
    predicted = np.clip((flags - left[v:]) / height, 0.0, 1.0)
    predicted = (predicted + PRIOR * share) / (1.0 + PRIOR)
    starts = np.flatnonzero(np.diff(features.state, prepend=-1))
    of_set = np.maximum.reduceat(np.where(flags > 0, predicted, 0.0), starts)
    any_set = np.logical_or.reduceat(flags > 0, starts)
    # Where all indicators of a set are 0, the probability is 1 minus the sum of `predicted`. For a
    # numeric column with several frequent values it is 1, as the number's residual judges the cell.
    several = np.diff(np.r_[starts, len(indicator)]) > 1
    elsewhere = several & np.isin(features.source[starts], features.number)
    of_none = np.where(elsewhere[:, None], 1.0, 1.0 - np.add.reduceat(predicted, starts))
    probability = np.where(any_set, of_set, of_none)
    return errors, -np.log(np.maximum(probability, SMALLEST_PROBABILITY))


def _common_curve(
    features: AdditiveFeatures, X: FloatArray, rows: FeatureRows, errors: FloatArray
) -> CommonCurve:
    """Find the columns of X (n, d) where a curve beats the regressions that made `errors`."""
    some = evenly_drawn(len(X), int(np.clip(MOST_COMPARED // max(len(errors), 1), *COMPARED)))
    free = rows.free[:, some]
    density = log_density(errors[:, some], free, np.full((len(errors), 1), LEAST_SCATTER))
    density -= np.where(free, features.log_slope(rows.value[:, some]), 0.0)
    return CommonCurve.fit(X[some].T[features.number], free, density)


def _medians(errors: FloatArray, seen: BoolArray) -> FloatArray:
    """Return median and median absolute deviation (2, v, 1) of the `seen` errors in each column."""
    out = np.zeros((2, len(errors), 1))
    out[1] = np.inf
    for j in np.flatnonzero(seen.any(axis=1)):
        column = errors[j, seen[j]]
        middle = np.median(column)
        out[:, j, 0] = middle, np.median(np.abs(column - middle)) + LEAST_SCATTER
    return out
