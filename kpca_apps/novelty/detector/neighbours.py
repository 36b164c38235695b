"""Reference rows from which expected values come, and the search for those near a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta
from scipy.spatial.distance import cdist

from kpca_apps.system.arrays import FloatArray, IntArray

N_NEIGHBOURS = 10
# A row is typical up to this quantile of the scores, and of the distances to the nearest rows;
# number of evenly spaced rows from which each quantile is estimated.
TYPICAL, TYPICAL_ROWS = 0.9, 250
SOME_ROWS = 100  # number of rows from which the usual distance to the nearest rows is estimated
MUCH_FARTHER = 2.0  # a row is a stray if its nearest rows are this many times farther than usual
# Number of squared distances, from rows to levels of categories, in memory at once.
SQUARES_HELD = 2**20
FEW_ROWS = 1_000  # up to this many reference rows, importing numba takes longer than numpy needs
# Codes in a set of column groups to ignore. NONE: padding. AGREEING: find the rows that agree in
# most groups (each group adds at most MOST_APART to a squared distance). NO_SET: find no rows.
NONE, AGREEING, NO_SET = -1, -2, -3
MOST_APART = 1.0  # one squared standard deviation
LARGEST_SQUARE = 1e200  # cap for squared differences: differences of infinite sums would be NaN


@dataclass(frozen=True)
class NeighbourRows:
    """Reference rows from which expected values come."""

    rows: Annotated[FloatArray, "s d"]  # unscaled columns
    standardised: Annotated[FloatArray, "s d"]  # the same rows, scaled for distances
    # Indicator columns; a group of several columns, all indicators, is a category.
    as_is: Annotated[IntArray, "a", Meta(ge=0)]
    index: Annotated[IntArray, "s"]  # positions of these rows among the training rows

    @cached_property
    def typical_distance(self) -> float:
        """The .9 quantile, over these rows, of the mean squared distance to the nearest rows."""
        some = np.arange(0, len(self.rows), 1 + (len(self.rows) - 1) // TYPICAL_ROWS)
        return float(np.quantile(_nearest_to(self.standardised, some)[1], TYPICAL) ** 2)


def rows_without_strays(standardised: FloatArray, scores: FloatArray, n_novel: int) -> IntArray:
    """Return positions of all rows but the `n_novel` that score highest; keep rare kinds of row.

    A high-scoring row is kept, as of a rare kind, if most of its 10 nearest rows also score high
    and are not much farther away than usual. Only such rows show what is usual for their kind.
    """
    novel = np.zeros(len(scores), dtype=bool)
    novel[np.argsort(-scores, kind="stable")[:n_novel]] = True
    places, others = np.flatnonzero(novel), np.flatnonzero(~novel)
    nearest, radius = _nearest_to(standardised, places)
    some = others[:: 1 + (len(others) - 1) // SOME_ROWS]
    usual = np.quantile(_nearest_to(standardised, some)[1], TYPICAL)
    novel[places] = (novel[nearest].mean(axis=1) <= 0.5) | (radius > MUCH_FARTHER * usual)
    return np.flatnonzero(~novel)


def _nearest_to(standardised: FloatArray, places: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the k rows nearest to each of p `places`, (p, k), and their RMS distance (p,)."""
    squares = cdist(standardised[places], standardised, "sqeuclidean")
    squares[np.arange(len(places)), places] = np.inf
    nearest = nearest_rows(squares)
    return nearest, np.sqrt(np.take_along_axis(squares, nearest, axis=1).mean(axis=1))


def nearest_rows(distances: FloatArray) -> IntArray:
    """Return the indices of the k = min(10, s - 1) smallest distances in each array row (e, s).

    Indices increase. Among equally near rows, the first are chosen.
    """
    k = min(N_NEIGHBOURS, distances.shape[1] - 1)
    tenth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    nearer, as_near = distances < tenth, distances == tenth
    as_near &= np.cumsum(as_near, axis=1) <= k - nearer.sum(axis=1, keepdims=True)
    return np.nonzero(nearer | as_near)[1].reshape(-1, k)


class Nearest(NamedTuple):
    """Rows nearest to each of r rows, with each of e sets of column groups left out."""

    nearest: IntArray  # (r, e, k)
    radius: FloatArray  # (r, e), mean squared distance of these rows from the row


@dataclass(frozen=True)
class Expected:
    """Expected values for m pairs of a row and a column group, in one array."""

    groups: IntArray  # (m,)
    values: FloatArray  # unscaled expected values, group after group
    ends: IntArray  # (m,), where the values of each group end
    distances: FloatArray  # (m,), distance of the row from its expected values in the group

    def of(self, place: int) -> FloatArray:
        """Return the unscaled values of one group."""
        return self.values[self.ends[place - 1] if place else 0 : self.ends[place]]

    def joined(self, others: Expected) -> Expected:
        """Append other expected values to these."""
        ends = self.ends[-1] if len(self.ends) else 0
        return Expected(
            np.concatenate([self.groups, others.groups]),
            np.concatenate([self.values, others.values]),
            np.concatenate([self.ends, ends + others.ends]),
            np.concatenate([self.distances, others.distances]),
        )


class Surroundings:
    """Search for the reference rows nearest to given rows, with any groups of columns left out.

    Each column adds at most `most` standard deviations to a distance.
    """

    def __init__(
        self, neighbours: NeighbourRows, groups: Sequence[IntArray], most: float = np.inf
    ) -> None:
        self.neighbours, self.groups = neighbours, groups
        self._largest = min(most * most, LARGEST_SQUARE)
        rows, as_is = neighbours.standardised, neighbours.as_is
        self.everyone = np.arange(len(rows))
        self.sizes = np.array([len(columns) for columns in groups])
        self._columns, self._ends = np.concatenate(groups), np.cumsum(self.sizes)
        self._are_categories = np.array([len(g) > 1 and np.isin(g, as_is).all() for g in groups])
        is_single = self.sizes == 1
        wide = [columns for columns in groups if len(columns) != 1]
        self._wide = [(columns, *_levels(rows[:, columns])) for columns in wide]
        # Groups of one column get 0, 1, ... (their lines in `_lines`), all other groups -1, -2, ...
        self._line_of = np.where(is_single, np.cumsum(is_single) - 1, -np.cumsum(~is_single))
        self._column_of = np.where(is_single, self._columns[self._ends - 1], -1)
        self._lines = np.ascontiguousarray(rows.T[self._column_of[is_single]])
        n_levels = [len(levels) for _, levels, _ in self._wide]
        starts = np.cumsum(n_levels) - n_levels
        self._level_of = np.array(
            [start + which for start, (_, _, which) in zip(starts, self._wide, strict=True)],
            dtype=np.int64,
        ).reshape(-1, len(rows))
        self._by_index = np.argsort(neighbours.index, kind="stable")

    def near(self, rows: FloatArray, own: IntArray, sets: IntArray) -> Nearest:
        """Return the rows nearest to rows (r, d), once for each set of column groups to ignore.

        `own` (r,) are the positions of the given rows among the training rows (-1 for new rows),
        since no row is near itself. `sets` (r, e, w) hold increasing numbers of groups, or start
        with NONE, AGREEING or NO_SET.
        """
        k = min(N_NEIGHBOURS, len(self.everyone) - 1)
        found = Nearest(np.zeros((*sets.shape[:2], k), dtype=np.int64), np.zeros(sets.shape[:2]))
        index, by_index = self.neighbours.index, self._by_index
        place = by_index[np.minimum(np.searchsorted(index, own, sorter=by_index), len(index) - 1)]
        place = np.where(index[place] == own, place, -1)
        n_levels = sum(len(levels) for _, levels, _ in self._wide)
        step = max(1, SQUARES_HELD // max(n_levels, 1))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            of_levels = self._of_levels(rows[part])
            if len(self.everyone) <= FEW_ROWS:
                for i, squares in enumerate(of_levels, start):
                    is_set = sets[i, :, 0] != NO_SET
                    distances = self._distances(rows[i], squares, sets[i, is_set])
                    if place[i] >= 0:
                        distances[:, place[i]] = np.inf
                    found.nearest[i, is_set] = nearest = nearest_rows(distances)
                    near = np.take_along_axis(distances, nearest, axis=1)
                    found.radius[i, is_set] = near.mean(axis=1)
                continue
            # Imported here: loading numba takes a quarter of a second.
            from kpca_apps.novelty.detector.nearest import nearest_without

            nearest_without(
                self._lines,
                self._line_of,
                self._column_of,
                self._level_of,
                of_levels,
                np.ascontiguousarray(rows[part]),
                place[part],
                np.ascontiguousarray(sets[part]),
                self._largest,
                found.nearest[part],
                found.radius[part],
            )
        return found

    def _distances(self, row: FloatArray, of_levels: FloatArray, sets: IntArray) -> FloatArray:
        """Return squared distances (e, s) from `row` to all s reference rows, for each of e sets.

        The column groups in a set are ignored. `_of_levels` returned `of_levels` (l,) for the row.
        """
        is_line = self._line_of >= 0
        parts = np.empty((len(is_line), len(self.everyone)))
        with np.errstate(over="ignore"):  # np.minimum caps infinite squares
            squares = np.square(self._lines - row[self._column_of[is_line], None])
        parts[is_line] = np.minimum(squares, self._largest)
        parts[~is_line] = of_levels[self._level_of]
        is_left_out = np.zeros((len(sets), len(parts)), dtype=bool)
        of_set, at = np.nonzero(sets >= 0)
        is_left_out[of_set, sets[of_set, at]] = True
        # `members` are the groups that occur in any set. Reused sums: `base` over all other groups,
        # `before[j]` over the first j members, `after[j]` over all groups but the first j members.
        is_member = is_left_out.any(axis=0)
        members, is_left_out = parts[is_member], is_left_out[:, is_member]
        base = parts[~is_member].sum(axis=0)
        before = np.cumsum([np.zeros_like(base), *members], axis=0)
        after = np.cumsum([base, *members[::-1]], axis=0)[::-1]
        distances = np.empty((len(sets), len(base)))
        for e, out in enumerate(is_left_out):
            places = np.flatnonzero(out)
            first, last = (places[0], places[-1]) if len(places) else (0, -1)
            between = members[first : last + 1][~out[first : last + 1]]
            distances[e] = before[first] + after[last + 1] + between.sum(axis=0)
        distances[sets[:, 0] == AGREEING] = np.minimum(parts, MOST_APART).sum(axis=0)
        return distances

    def _of_levels(self, rows: FloatArray) -> FloatArray:
        """Return squared distances (r, l) of rows to the distinct values of multi-column groups."""
        squares = [np.zeros((len(rows), 0))]
        for columns, levels, _ in self._wide:
            of_group = np.zeros((len(rows), len(levels)))
            for j, column in enumerate(columns.tolist()):
                with np.errstate(over="ignore"):  # np.minimum caps infinite squares
                    squared = (levels[:, j] - rows[:, column, None]) ** 2
                of_group += np.minimum(squared, self._largest)
            squares.append(np.minimum(of_group, LARGEST_SQUARE, out=of_group))
        return np.concatenate(squares, axis=1)

    def expected(
        self, rows: FloatArray, of_row: IntArray, groups: IntArray, nearest: IntArray
    ) -> Expected:
        """Return expected values for m pairs of a standardised row (`of_row`) and a group.

        Expected values are medians over the nearest rows (m, k); for the indicators of a category,
        the most frequent level.
        """
        ends = np.cumsum(self.sizes[groups])
        n_values = int(ends[-1]) if len(ends) else 0
        values, distances = np.empty(n_values), np.empty(len(ends))
        for group in np.unique(groups):
            at, columns = np.flatnonzero(groups == group), self.groups[group]
            cells = nearest[at][:, :, None], columns
            raw, scaled = self.neighbours.rows[cells], self.neighbours.standardised[cells]
            middle, off = _medians(raw), _medians(scaled) - rows[of_row[at]][:, columns]
            distances[at] = np.abs(off).sum(axis=1)
            if self._are_categories[group]:
                level = raw.sum(axis=1).argmax(axis=1)[:, None, None]
                like = np.take_along_axis(raw, level, axis=2).argmax(axis=1)[:, None]
                middle = np.take_along_axis(raw, like, axis=1)[:, 0]
            values[(ends[at] - len(columns))[:, None] + np.arange(len(columns))] = middle
        return Expected(groups, values, ends, distances)

    def expected_of_all(self, row: FloatArray) -> Expected:
        """Return the expected value of each group if all reference rows are neighbours of `row`."""
        n = len(self.groups)
        every = np.tile(self.everyone, (n, 1))
        return self.expected(row[None], np.zeros(n, dtype=np.int64), np.arange(n), every)

    def columns_of(self, groups: IntArray) -> IntArray:
        """Return the columns of groups (m,), concatenated."""
        return self._columns[runs(self._ends[groups] - self.sizes[groups], self.sizes[groups])]


def _medians(cells: FloatArray) -> FloatArray:
    """Return medians (m, w) over k cells (m, k, w): for small k, sorting beats np.median."""
    ordered, k = np.sort(cells, axis=1), cells.shape[1]
    return (ordered[:, (k - 1) // 2] + ordered[:, k // 2]) / 2.0


def runs(starts: IntArray, sizes: IntArray) -> IntArray:
    """Return concatenated runs of integers, each from its start and as long as its size.

    >>> runs(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(sizes)
    found: IntArray = np.repeat(starts - ends + sizes, sizes)
    found += np.arange(len(found))
    return found


def _levels(cells: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows of cells (s, w), and the index of each row among them.

    A category has one row for each level; other cells are returned as they are.
    """
    if not cells.shape[1]:
        return cells[:1], np.zeros(len(cells), dtype=np.int64)
    _, first, which = np.unique(cells.argmax(axis=1), return_index=True, return_inverse=True)
    alike = (cells[first][which] == cells).all()
    return (cells[first], which) if alike else (cells, np.arange(len(cells)))
