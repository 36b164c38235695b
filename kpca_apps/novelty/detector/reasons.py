"""Which columns made a row odd, and what was expected instead.

A column's part is the drop of the score when its value is replaced by the one its neighbours
suggest: the median (for a category the most frequent level) over the 10 rows nearest in the OTHER
columns. Gradients point to the column that is cheapest to move, z-scores to the widest; neither
finds a value that is only odd in its company.

Where no single column explains the row, pairs and triples are replaced together, by what the rows
nearest in the columns outside the set suggest. A stone whose length, width and depth all read 0 is
near to nothing in any two of them: one at a time, its price looks wrong instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta
from scipy.spatial.distance import cdist

from kpca_apps.system.arrays import FloatArray, IntArray

GroupSet = tuple[int, ...]

N_NEIGHBOURS = 10
EVERY = 8  # row that bounds how far the nearest of all may be
CANDIDATES_A_BATCH = 4096
# Of more groups only those that lie farthest from what is expected are tried on a row: replacing
# a value by nearly itself lowers no score.
MAX_GROUPS_TRIED = 64
# Scores and distances of rows are typical up to those that nine of ten rows stay below: a row that
# comes down to them is odd no more. Taken from so many rows, evenly drawn.
TYPICAL, TYPICAL_ROWS = 0.9, 250
# Enough to know how near rows of a table usually lie.
SOME_ROWS = 100
# A row lies so many times farther from its nearest rows than others do that it is no kind of rows.
MUCH_FARTHER = 2.0
# Sets are tried where the best single column leaves more than this part of what is not typical.
MAX_LEFT = 0.4
# A set of one column more must leave less than half of what the smaller one leaves: any further
# column lowers the score a little, and the smallest set that explains a row is the one to report.
LESS_LEFT = 1 / 2
# Columns that sets are made of: 6 pairs and 4 triples.
MAX_SUSPECTS = 4
# Columns tried beside a set that explains a row.
MAX_BESIDE = 8
# Where suspects are sought, a column counts no more than one standard deviation: the nearest rows
# are then those that agree in most columns, whatever the others read.
MOST_APART = 1.0
# Squared differences are summed under a factor of 0 or 1, which infinity does not survive.
LARGEST_SQUARE = 1e200


@dataclass(frozen=True)
class ColumnDrop:
    """One column's (or group of columns') part in the score of a row.

    Attributes
    ----------
    group : int
        Position of the group; of the column where no groups were given.
    share : float
        Its drop of the score over the sum of the drops of all that are reported of the row, 0..1;
        the drop of a set is divided evenly among its columns. 0 where no replacement lowers the
        score: the one column reported is then the farthest from what is expected.
    seen, expected : (k,) array
        Values in the row, and those its neighbours suggest, for the columns of the group.
    together : tuple of int
        All groups of the set that it was replaced with, itself among them; empty where it was
        replaced alone.
    """

    group: int
    share: float
    seen: FloatArray
    expected: FloatArray
    together: tuple[int, ...] = ()


@dataclass(frozen=True)
class NeighbourRows:
    """Rows of the reference that expected values are taken from."""

    rows: Annotated[FloatArray, "s d"]  # their columns as they come
    standardised: Annotated[FloatArray, "s d"]  # the same, scaled for distances
    # Indicator columns: a group made of these alone holds one category.
    as_is: Annotated[IntArray, "a", Meta(ge=0)]
    index: Annotated[IntArray, "s"]  # positions of these rows among the training rows

    @cached_property
    def typical_distance(self) -> float:
        """Mean squared distance to its nearest rows that nine of ten of these rows stay below."""
        some = np.arange(0, len(self.rows), 1 + (len(self.rows) - 1) // TYPICAL_ROWS)
        return float(np.quantile(_nearest_to(self.standardised, some)[1], TYPICAL) ** 2)


def rows_without_strays(standardised: FloatArray, scores: FloatArray, n_novel: int) -> IntArray:
    """Positions of all rows (n, d) but the `n_novel` of highest score, unless these are of a kind.

    A novel row stays if most of the 10 rows nearest to it are as novel, and not much farther than
    the nearest rows of others are: a kind of rows that is rare is not wrong, and only its own rows
    say what is usual in it.
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
    """Rows nearest to those at some places (p, k), and how far they are on average (p,)."""
    squares = cdist(standardised[places], standardised, "sqeuclidean")
    squares[np.arange(len(places)), places] = np.inf
    nearest = nearest_rows(squares)
    return nearest, np.sqrt(np.take_along_axis(squares, nearest, axis=1).mean(axis=1))


def nearest_rows(distances: FloatArray) -> IntArray:
    """Return the ten nearest rows by some distances (e, s), in no order; of fewer, all but one."""
    n_lines, n_rows = distances.shape
    k = min(N_NEIGHBOURS, n_rows - 1)
    if n_rows > 2 * EVERY * N_NEIGHBOURS:
        # The tenth of every eighth row is no nearer than the tenth of all: few rows are as near.
        bound = np.partition(distances[:, ::EVERY], k - 1, axis=1)[:, k - 1 : k]
        places = np.flatnonzero(distances <= bound)
        if EVERY * len(places) <= distances.size:  # not, where many are equally near
            line, row = np.divmod(places, n_rows)
            order = np.lexsort((distances[line, row], line))
            starts = np.searchsorted(line, np.arange(n_lines))
            nearest: IntArray = row[order[starts[:, None] + np.arange(k)]]
            return nearest
    return np.argpartition(distances, k - 1, axis=1)[:, :k]


def _medians(lines: FloatArray) -> FloatArray:
    """Return the median of each of some short lines (e, k), which are sorted in place."""
    lines.sort(axis=1)
    k = lines.shape[1]
    middle: FloatArray = (lines[:, (k - 1) // 2] + lines[:, k // 2]) / 2
    return middle


class GroupDistances:
    """Distances of a row to its neighbours in each group of columns.

    A column counts no more than `most` standard deviations.
    """

    def __init__(
        self, neighbours: NeighbourRows, groups: Sequence[IntArray], most: float = np.inf
    ) -> None:
        self.neighbours, self.columns, self._largest = neighbours, groups, most * most
        as_is, rows = neighbours.as_is, neighbours.standardised
        self.are_categories = [len(g) > 1 and bool(np.isin(g, as_is).all()) for g in groups]
        # Most are one column, whose squares are taken at once.
        self._single = [g for g, columns in enumerate(groups) if len(columns) == 1]
        self._single_columns = np.array([groups[g][0] for g in self._single], dtype=np.int64)
        self._lines = np.ascontiguousarray(rows.T[self._single_columns])
        # Of a category one row of each level, and which is whose; other rows as they are.
        self._wide: dict[int, tuple[FloatArray, IntArray]] = {}
        for g, columns in enumerate(groups):
            if len(columns) > 1:
                own = rows[:, columns]
                _, first, which = np.unique(
                    own.argmax(axis=1), return_index=True, return_inverse=True
                )
                alike = (own[first][which] == own).all()
                self._wide[g] = (own[first], which) if alike else (own, np.arange(len(own)))

    def squares(self, row: FloatArray) -> FloatArray:
        """Squared distance of a row (d,) to each neighbour in each group, shape (groups, s)."""
        squares = np.empty((len(self.columns), len(self.neighbours.rows)))
        squared = self._lines - row[self._single_columns, None]
        squared *= squared
        squares[self._single] = np.minimum(squared, self._largest, out=squared)
        for g, (distinct, which) in self._wide.items():
            squared = (distinct - row[self.columns[g]]) ** 2
            squares[g] = np.minimum(squared, self._largest).sum(axis=1)[which]
        return np.minimum(squares, LARGEST_SQUARE, out=squares)


class _Expected(NamedTuple):
    """What a group of columns should read."""

    values: FloatArray  # as they come
    standardised: FloatArray
    distance: float  # of the row from them
    # Mean squared distance of the rows it is taken from, in the groups they were sought by.
    radius: float


class _Surroundings:
    """The rows around one row, by the columns they are compared in."""

    def __init__(self, groups: GroupDistances, row: FloatArray, own: int) -> None:
        self._groups, self._row = groups, row
        self._parts = groups.squares(row)
        self._own = np.flatnonzero(groups.neighbours.index == own)

    def radius(self) -> float:
        """Mean squared distance of the nearest rows in all groups."""
        return float(self._nearest(self._parts.sum(axis=0)[None])[1][0])

    def of_each(self, groups: Sequence[int]) -> list[_Expected]:
        """Ask the rows nearest in all other groups what each of some groups should read."""
        parts = self._parts[groups]
        if len(self._parts) == 1:
            return self.of_all()
        # Sums over the other groups, forwards and backwards: subtracting a huge part from the
        # total would leave nothing of the small ones. Line by line, cumsum being slow this way.
        others, behind = np.zeros_like(parts), np.zeros(parts.shape[1])
        if len(groups) < len(self._parts):
            behind = np.delete(self._parts, groups, axis=0).sum(axis=0)
            others[-1] = behind
        before = np.zeros(parts.shape[1])
        for g in range(1, len(parts)):
            before += parts[g - 1]
            others[g] += before
        for g in range(len(parts) - 2, -1, -1):
            behind += parts[g + 1]
            others[g] += behind
        return self._read(groups, *self._nearest(others))

    def of_sets(self, sets: Sequence[GroupSet]) -> list[tuple[_Expected, ...]]:
        """Ask the rows nearest in all groups outside a set what those of the set should read."""
        in_any = sorted({g for members in sets for g in members})
        rest = np.delete(self._parts, in_any, axis=0).sum(axis=0)
        outside = np.empty((len(sets), len(rest)))
        for place, members in enumerate(sets):
            others = [g for g in in_any if g not in members]
            np.add(rest, self._parts[others].sum(axis=0), out=outside[place])
        nearest, radius = self._nearest(outside)
        of_set = np.repeat(np.arange(len(sets)), [len(members) for members in sets])
        in_sets = [g for members in sets for g in members]
        read = iter(self._read(in_sets, nearest[of_set], radius[of_set]))
        return [tuple(next(read) for _ in members) for members in sets]

    def of_most(self) -> list[_Expected]:
        """Ask the rows that agree in most groups."""
        n, squares = len(self._parts), np.minimum(self._parts, MOST_APART)
        nearest, radius = self._nearest(squares.sum(axis=0)[None])
        return self._read(range(n), np.repeat(nearest, n, axis=0), np.repeat(radius, n))

    def of_all(self) -> list[_Expected]:
        """Ask all rows."""
        n, n_rows = self._parts.shape
        return self._read(range(n), np.tile(np.arange(n_rows), (n, 1)), np.zeros(n))

    def _nearest(self, distances: FloatArray) -> tuple[IntArray, FloatArray]:
        """Nearest rows (e, k) by some distances (e, s), and how far they are on average (e,)."""
        distances[:, self._own] = np.inf
        nearest = nearest_rows(distances)
        return nearest, np.take_along_axis(distances, nearest, axis=1).mean(axis=1)

    def _read(
        self, groups: Sequence[int], nearest: IntArray, radius: FloatArray
    ) -> list[_Expected]:
        """Middle of the `nearest` rows (e, k), `radius` (e,) away, one line a group (e,)."""
        members = [self._groups.columns[g] for g in groups]
        sizes = np.array([len(columns) for columns in members])
        columns, near = np.concatenate(members), np.repeat(nearest, sizes, axis=0)
        raw, scaled = self._groups.neighbours.rows, self._groups.neighbours.standardised
        middle = _medians(raw[near, columns[:, None]])
        middle_scaled = _medians(scaled[near, columns[:, None]])
        starts = np.cumsum(sizes) - sizes
        distances = np.add.reduceat(np.abs(middle_scaled - self._row[columns]), starts)
        found = []
        for place, g in enumerate(groups):
            part = slice(starts[place], starts[place] + sizes[place])
            values, standardised = middle[part], middle_scaled[part]
            if self._groups.are_categories[g]:
                # The first row of the level that most of them are of.
                levels = raw[nearest[place]][:, members[place]]
                like = nearest[place][levels[:, levels.sum(axis=0).argmax()].argmax()]
                values, standardised = raw[like, members[place]], scaled[like, members[place]]
            distance, from_rows = float(distances[place]), float(radius[place])
            found.append(_Expected(values, standardised, distance, from_rows))
        return found


class _Trial(NamedTuple):
    """A copy of a row in which some groups read what was expected of them."""

    groups: GroupSet
    expected: tuple[_Expected, ...]


@dataclass(frozen=True)
class Attribution:
    """Rows to explain by the drops of their scores, and how a changed copy would score."""

    X: FloatArray  # (r, d), the rows as they come
    standardised: FloatArray  # (r, d), scaled for distances
    scores: FloatArray  # (r,)
    # ``score(candidates (c, d), row (c,))``: scores of changed copies of rows of X; `row` says of
    # which.
    score: Callable[[FloatArray, IntArray], FloatArray]
    neighbours: NeighbourRows  # where expected values come from
    groups: Sequence[IntArray]  # columns replaced together
    own: IntArray  # (r,), position of each row among the training rows, -1 for a new one
    typical: float = 0.0  # score of a typical row: what lies above it wants to be explained

    def explain(self) -> list[tuple[ColumnDrop, ...]]:
        """Explain all rows, largest drop first; columns of one set follow each other.

        Where no replacement lowers the score, the one column that is farthest from what is
        expected; empty where none is off.
        """
        n_tried = min(len(self.groups), MAX_GROUPS_TRIED)
        size = max(1, CANDIDATES_A_BATCH // n_tried)
        starts = range(0, len(self.X), size)
        batches = (range(start, min(start + size, len(self.X))) for start in starts)
        return [reasons for rows in batches for reasons in self._explain(rows, n_tried)]

    @cached_property
    def _excess(self) -> FloatArray:
        """What of each score is above a typical one."""
        return np.maximum(self.scores - self.typical, 0.0)

    @cached_property
    def _by_group(self) -> GroupDistances:
        return GroupDistances(self.neighbours, self.groups)

    def _explain(self, rows: Sequence[int], n_tried: int) -> list[tuple[ColumnDrop, ...]]:
        """Explain a batch of rows."""
        alone: dict[int, list[_Trial]] = {}
        radius: dict[int, float] = {}
        for i in rows:
            around = _Surroundings(self._by_group, self.standardised[i], self.own[i])
            asked = list(range(len(self.groups)))
            if n_tried < len(asked):
                # To ask for each of very many takes long: those off by most from the rows that
                # agree in most columns.
                distances = [-one.distance for one in around.of_most()]
                asked = np.sort(np.argsort(distances, kind="stable")[:n_tried]).tolist()
            expected, radius[i] = around.of_each(asked), around.radius()
            alone[i] = [_Trial((g,), (one,)) for g, one in zip(asked, expected, strict=True)]
        drops = self._drops(alone)
        left = {i: self._left(i, trials, drops[i], radius[i]) for i, trials in alone.items()}
        unclear = [i for i in rows if left[i][drops[i].argmax()] > MAX_LEFT]
        sets = {i: self._sets(i, alone[i], drops[i]) for i in unclear}
        of_sets = self._drops(sets)
        best: dict[int, tuple[_Trial, float]] = {}
        for i, trials in sets.items():
            tried, found = [*alone[i], *trials], np.concatenate([drops[i], of_sets[i]])
            remaining = np.append(left[i], self._left(i, trials, of_sets[i], radius[i]))
            highest = smallest = int(drops[i].argmax())
            for size in (1, 2, 3):
                of_size = [j for j, trial in enumerate(tried) if len(trial.groups) == size]
                if of_size:
                    j = min(of_size, key=lambda j: remaining[j])
                    if remaining[j] < LESS_LEFT * remaining[smallest]:
                        smallest = j
            if smallest != highest:
                best[i] = tried[smallest], float(found[smallest])
        beside = {i: self._beside(i, trial) for i, (trial, _) in best.items()}
        of_beside = self._drops(beside)
        explained = []
        for i in rows:
            trials, found, ranked = alone[i], drops[i], -drops[i]
            if i in best:
                (first, drop), n = best[i], len(best[i][0].groups)
                trials = [first, *(_Trial(t.groups[n:], t.expected[n:]) for t in beside[i])]
                # What lowers the score of a row that is odd no more explains nothing.
                more = np.minimum(of_beside[i], self._excess[i]) - drop
                found = np.array([drop, *np.maximum(more, 0.0)])
                ranked = -found
                ranked[0] = -np.inf
            of_column = {t.groups[0]: d for t, d in zip(alone[i], drops[i].tolist(), strict=True)}
            total = found.sum()
            reasons: list[ColumnDrop] = []
            for j in np.argsort(ranked, kind="stable"):
                if found[j] > 0.0:
                    reasons += self._reasons(i, trials[j], float(found[j] / total), of_column)
            explained.append(tuple(reasons) or self._farthest(i, alone[i]))
        return explained

    def _drops(self, trials: Mapping[int, list[_Trial]]) -> dict[int, FloatArray]:
        """How far each trial of each row lowers the score, at least 0."""
        row = np.array([i for i, of_row in trials.items() for _ in of_row], dtype=np.int64)
        if not len(row):
            return {i: np.empty(0) for i in trials}
        candidates = self.X[row]
        made = (trial for of_row in trials.values() for trial in of_row)
        for candidate, trial in zip(candidates, made, strict=True):
            for g, expected in zip(*trial, strict=True):
                candidate[self.groups[g]] = expected.values
        drops = np.maximum(self.scores[row] - self.score(candidates, row), 0.0)
        return {i: drops[row == i] for i in trials}

    def _left(self, i: int, trials: list[_Trial], drops: FloatArray, radius: float) -> FloatArray:
        """Say how much of the oddness of a row each trial leaves: 0 nothing, 1 all of it.

        Half of that is judged by the score above a typical one, half by the distance to the
        nearest rows above a typical one: a score may drop although the row still is like no other.
        """
        typical = self.neighbours.typical_distance
        if self._excess[i] <= 0.0:
            return np.zeros(len(trials))
        of_score: FloatArray = np.maximum(1.0 - drops / self._excess[i], 0.0)
        if radius <= typical:
            return of_score
        rest = np.array([trial.expected[0].radius for trial in trials])
        of_distance = np.maximum((rest - typical) / (radius - typical), 0.0)
        left: FloatArray = (of_score + of_distance) / 2
        return left

    def _sets(self, i: int, alone: list[_Trial], drops: FloatArray) -> list[_Trial]:
        """Replace pairs and triples of the columns suspected most.

        These are the one whose drop is the highest, and those farthest from the rows that agree in
        most columns.
        """
        around = _Surroundings(self._by_group, self.standardised[i], self.own[i])
        most = [one.distance for one in around.of_most()]
        by_drop = [alone[j].groups[0] for j in np.argsort(-drops, kind="stable") if drops[j] > 0]
        by_distance = [int(g) for g in np.argsort(-np.array(most), kind="stable") if most[g] > 0]
        suspected = dict.fromkeys([*by_drop[:1], *by_distance, *by_drop])
        suspects = sorted(list(suspected)[:MAX_SUSPECTS])
        # Neighbours are sought in what is left.
        sizes = [size for size in (2, 3) if size < len(self.groups)]
        sets = [members for size in sizes for members in combinations(suspects, size)]
        expected = around.of_sets(sets) if sets else []
        return [_Trial(*replaced) for replaced in zip(sets, expected, strict=True)]

    def _beside(self, i: int, the_set: _Trial) -> list[_Trial]:
        """Replace the columns farthest off once a set reads what was expected, beside the set."""
        row = self.standardised[i].copy()
        for g, expected in zip(*the_set, strict=True):
            row[self.groups[g]] = expected.standardised
        around = _Surroundings(self._by_group, row, self.own[i])
        most = around.of_most()
        outside = sorted({*range(len(self.groups))} - {*the_set.groups})
        far = sorted(outside, key=lambda g: -most[g].distance)[:MAX_BESIDE]
        found = around.of_sets([(g,) for g in far]) if far else []
        return [
            _Trial((*the_set.groups, g), (*the_set.expected, *of_column))
            for g, of_column in zip(far, found, strict=True)
        ]

    def _reasons(
        self, i: int, trial: _Trial, share: float, alone: Mapping[int, float]
    ) -> list[ColumnDrop]:
        """Report the columns of one trial, ordered by their drops `alone`."""
        pairs = sorted(
            zip(*trial, strict=True),
            key=lambda pair: (-alone.get(pair[0], 0.0), -pair[1].distance),
        )
        together = trial.groups if len(pairs) > 1 else ()
        return [
            ColumnDrop(g, share / len(pairs), self.X[i, self.groups[g]], expected.values, together)
            for g, expected in pairs
        ]

    def _farthest(self, i: int, alone: list[_Trial]) -> tuple[ColumnDrop, ...]:
        """Report the column farthest from what its neighbours, or of an odd row all, suggest."""
        far = max(alone, key=lambda trial: trial.expected[0].distance)
        if far.expected[0].distance <= 0.0 < self._excess[i]:
            middle = _Surroundings(self._by_group, self.standardised[i], self.own[i]).of_all()
            g = max(range(len(middle)), key=lambda g: middle[g].distance)
            far = _Trial((g,), (middle[g],))
        return tuple(self._reasons(i, far, 0.0, {})) if far.expected[0].distance > 0.0 else ()
