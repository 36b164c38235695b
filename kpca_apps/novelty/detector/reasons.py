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

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta
from scipy.spatial.distance import cdist

from kpca_apps.novelty.detector.nearest import EVERY, middle_of, nearest_without, squares_from
from kpca_apps.system.arrays import FloatArray, IntArray

GroupSet = tuple[int, ...]

N_NEIGHBOURS = 10
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
    """Return the ten nearest rows by some distances (e, s), in no order; of fewer, all but one.

    Of rows that are equally near the first are taken.
    """
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
    tenth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    nearer, as_near = distances < tenth, distances == tenth
    as_near &= np.cumsum(as_near, axis=1) <= k - nearer.sum(axis=1, keepdims=True)
    return np.nonzero(nearer | as_near)[1].reshape(n_lines, k)


class GroupDistances:
    """Distances of a row to its neighbours in each group of columns.

    A column counts no more than `most` standard deviations.
    """

    def __init__(
        self, neighbours: NeighbourRows, groups: Sequence[IntArray], most: float = np.inf
    ) -> None:
        self.neighbours, self.columns, self._largest = neighbours, groups, most * most
        self._room = threading.local()
        as_is, rows = neighbours.as_is, neighbours.standardised
        self.sizes = np.array([len(columns) for columns in groups])
        self.are_categories = np.array([len(g) > 1 and np.isin(g, as_is).all() for g in groups])
        # Most are one column, whose squares are taken at once.
        self._single = np.flatnonzero(self.sizes == 1)
        self._single_columns = np.array(
            [columns[0] for columns in groups if len(columns) == 1], dtype=np.int64
        )
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
        """Squared distance of a row (d,) to neighbours in each group, shape (groups, s).

        In memory that each thread uses again from row to row: to get it takes longer.
        """
        squares: FloatArray | None = getattr(self._room, "squares", None)
        if squares is None:
            squares = self._room.squares = np.empty((len(self.columns), self._lines.shape[1]))
        own, largest = row[self._single_columns], min(self._largest, LARGEST_SQUARE)
        squares_from(self._lines, own, self._single, largest, squares)
        for g, (distinct, which) in self._wide.items():
            squared = (distinct - row[self.columns[g]]) ** 2
            of_levels = np.minimum(squared, self._largest).sum(axis=1)
            squares[g] = np.minimum(of_levels, LARGEST_SQUARE)[which]
        return squares


class _Near(NamedTuple):
    """Rows nearest to one row, which are asked what some groups of its columns should read."""

    groups: Sequence[int]
    nearest: IntArray  # (e, k), a line for each of the groups
    radius: FloatArray  # (e,), their mean squared distance


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
        self._own = np.flatnonzero(groups.neighbours.index == own)

    def of_each(self, groups: Sequence[int]) -> tuple[_Near, float]:
        """Rows nearest in all other groups, for each of some groups; the radius of the nearest.

        The radius is the mean squared distance of the nearest in all groups.
        """
        nearest, radius = self._without([(g,) for g in groups] + [()])
        if len(self._groups.columns) == 1:
            return self.of_all(), float(radius[-1])
        return _Near(groups, nearest[:-1], radius[:-1]), float(radius[-1])

    def of_sets(self, sets: Sequence[GroupSet]) -> _Near:
        """Rows nearest in all groups outside of each set, for the groups of the sets in turn."""
        nearest, radius = self._without(sets)
        of_set = np.repeat(np.arange(len(sets)), [len(members) for members in sets])
        return _Near([g for members in sets for g in members], nearest[of_set], radius[of_set])

    def of_most(self) -> _Near:
        """Rows that agree in most groups, for every group."""
        n = len(self._groups.columns)
        nearest, radius = self._without([()], MOST_APART)
        return _Near(range(n), np.repeat(nearest, n, axis=0), np.repeat(radius, n))

    def of_all(self) -> _Near:
        """All rows, for every group."""
        n, n_rows = len(self._groups.columns), len(self._groups.neighbours.rows)
        return _Near(range(n), np.tile(np.arange(n_rows), (n, 1)), np.zeros(n))

    def _without(
        self, sets: Sequence[GroupSet], most: float = LARGEST_SQUARE
    ) -> tuple[IntArray, FloatArray]:
        """Rows nearest in all groups but a set (e, k), and how far they are on average (e,).

        No group counts more than `most`.
        """
        asked = np.full((len(sets), max(map(len, sets))), -1, dtype=np.int64)
        for place, members in enumerate(sets):
            asked[place, : len(members)] = members
        k = min(N_NEIGHBOURS, len(self._groups.neighbours.rows) - 1)
        nearest, radius = np.zeros((len(sets), k), dtype=np.int64), np.empty(len(sets))
        squares = self._groups.squares(self._row)
        nearest_without(squares, most, asked, self._own, nearest, radius)
        return nearest, radius


class _Middles(NamedTuple):
    """What groups of columns should read, one group of one row after the other."""

    values: FloatArray  # as they come
    standardised: FloatArray
    ends: IntArray  # (m,), of each group in both
    distances: FloatArray  # (m,), of the rows from them


def _middles(
    groups: GroupDistances, near: Mapping[int, _Near], rows: Mapping[int, FloatArray]
) -> _Middles:
    """Return what groups of standardised rows (d,) should read: the middle of rows near to them."""
    asked = np.array([g for one in near.values() for g in one.groups], dtype=np.int64)
    of_row = np.repeat(np.arange(len(near)), [len(one.groups) for one in near.values()])
    ends = np.cumsum(groups.sizes[asked])
    found = _Middles(np.empty(ends[-1]), np.empty(ends[-1]), ends, np.empty(len(asked)))
    middle_of(
        groups.neighbours.rows,
        groups.neighbours.standardised,
        np.stack([rows[i] for i in near]),
        np.concatenate(groups.columns),
        np.cumsum(groups.sizes),
        groups.are_categories,
        asked,
        of_row,
        np.concatenate([one.nearest for one in near.values()]),
        found.values,
        found.standardised,
        found.distances,
    )
    return found


def _read(
    groups: GroupDistances, near: Mapping[int, _Near], rows: Mapping[int, FloatArray]
) -> dict[int, list[_Expected]]:
    """Return what groups of rows should read, group by group."""
    if not near:
        return {}
    middles = _middles(groups, near, rows)
    radii = np.concatenate([one.radius for one in near.values()]).tolist()
    found, start = [], 0
    of_each = zip(middles.ends.tolist(), middles.distances.tolist(), radii, strict=True)
    for end, distance, radius in of_each:
        part = slice(start, end)
        start = end
        found.append(_Expected(middles.values[part], middles.standardised[part], distance, radius))
    read = iter(found)
    return {i: [next(read) for _ in one.groups] for i, one in near.items()}


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
        around = {i: _Surroundings(self._by_group, self.standardised[i], self.own[i]) for i in rows}
        asked = {i: list(range(len(self.groups))) for i in rows}
        if n_tried < len(self.groups):
            # To ask for each of very many takes long: those off by most from the rows that agree
            # in most columns.
            for i, most in self._off_most(around).items():
                asked[i] = np.sort(np.argsort(-most, kind="stable")[:n_tried]).tolist()
        near: dict[int, _Near] = {}
        radius: dict[int, float] = {}
        for i in rows:
            near[i], radius[i] = around[i].of_each(asked[i])
        alone = {
            i: [_Trial((g,), (one,)) for g, one in zip(asked[i], read, strict=True)]
            for i, read in self._read(near).items()
        }
        drops = self._drops(alone)
        left = {i: self._left(i, trials, drops[i], radius[i]) for i, trials in alone.items()}
        unclear = [i for i in rows if left[i][drops[i].argmax()] > MAX_LEFT]
        sets = self._sets({i: around[i] for i in unclear}, alone, drops)
        of_sets = self._drops(sets)
        best: dict[int, tuple[_Trial, float]] = {}
        for i, trials in sets.items():
            tried, found = [*alone[i], *trials], np.concatenate([drops[i], of_sets[i]])
            remaining = np.append(left[i], self._left(i, trials, of_sets[i], radius[i]))
            highest = smallest = int(drops[i].argmax())
            n_pairs = sum(len(trial.groups) == 2 for trial in trials)
            for of_size in np.split(np.arange(len(tried)), len(alone[i]) + np.array([0, n_pairs])):
                if len(of_size):
                    j = int(of_size[remaining[of_size].argmin()])
                    if remaining[j] < LESS_LEFT * remaining[smallest]:
                        smallest = j
            if smallest != highest:
                best[i] = tried[smallest], float(found[smallest])
        beside = self._beside({i: trial for i, (trial, _) in best.items()})
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
        made = [(i, trial) for i, of_row in trials.items() for trial in of_row]
        row, drops = np.array([i for i, _ in made], dtype=np.int64), np.zeros(len(made))
        if made:
            candidates = self.X[row]
            places, values = self._replacements([trial for _, trial in made])
            candidates[places] = values
            # A replacement by what is there already changes nothing.
            changed = np.flatnonzero((candidates != self.X[row]).any(axis=1))
            if len(changed):
                after = self.score(candidates[changed], row[changed])
                drops[changed] = np.maximum(self.scores[row[changed]] - after, 0.0)
        ends = np.cumsum([len(of_row) for of_row in trials.values()])
        return dict(zip(trials, np.split(drops, ends[:-1]), strict=True)) if len(ends) else {}

    def _replacements(
        self, trials: Sequence[_Trial]
    ) -> tuple[tuple[IntArray, IntArray], FloatArray]:
        """Where copies of rows are changed, one a trial, and the values that come there."""
        members = [g for trial in trials for g in trial.groups]
        values = [one.values for trial in trials for one in trial.expected]
        copy = np.repeat(np.arange(len(trials)), [len(trial.groups) for trial in trials])
        columns = np.concatenate([self.groups[g] for g in members])
        return (np.repeat(copy, self._by_group.sizes[members]), columns), np.concatenate(values)

    def _read(
        self, near: Mapping[int, _Near], rows: Mapping[int, FloatArray] | None = None
    ) -> dict[int, list[_Expected]]:
        """Return what rows, or changed copies of them, should read by the rows near to each."""
        return _read(self._by_group, near, rows or {i: self.standardised[i] for i in near})

    def _off_most(
        self,
        around: Mapping[int, _Surroundings],
        rows: Mapping[int, FloatArray] | None = None,
    ) -> dict[int, FloatArray]:
        """Say how far each group of rows is from those that agree with them in most columns."""
        near = {i: one.of_most() for i, one in around.items()}
        if not near:
            return {}
        rows = rows or {i: self.standardised[i] for i in near}
        distances = _middles(self._by_group, near, rows).distances
        return dict(zip(near, distances.reshape(len(near), -1), strict=True))

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

    def _sets(
        self,
        around: Mapping[int, _Surroundings],
        alone: Mapping[int, list[_Trial]],
        drops: Mapping[int, FloatArray],
    ) -> dict[int, list[_Trial]]:
        """Replace pairs and triples of the columns suspected most.

        These are the one whose drop is the highest, and those farthest from the rows that agree in
        most columns.
        """
        sets: dict[int, list[GroupSet]] = {}
        near: dict[int, _Near] = {}
        sizes = [size for size in (2, 3) if size < len(self.groups)]
        for i, most in self._off_most(around).items():
            drop = drops[i]
            order = np.argsort(-drop, kind="stable")
            by_drop = [alone[i][j].groups[0] for j in order[drop[order] > 0].tolist()]
            order = np.argsort(-most, kind="stable")
            by_distance: list[int] = order[most[order] > 0].tolist()
            suspected = dict.fromkeys([*by_drop[:1], *by_distance, *by_drop])
            suspects = sorted(list(suspected)[:MAX_SUSPECTS])
            # Neighbours are sought in what is left.
            sets[i] = [members for size in sizes for members in combinations(suspects, size)]
            if sets[i]:
                near[i] = around[i].of_sets(sets[i])
        read = {i: iter(of_row) for i, of_row in self._read(near).items()}
        return {
            i: [_Trial(one, tuple(next(read[i]) for _ in one)) for one in of_row]
            for i, of_row in sets.items()
        }

    def _beside(self, the_sets: Mapping[int, _Trial]) -> dict[int, list[_Trial]]:
        """Replace the columns farthest off once a set reads what was expected, beside the set."""
        rows: dict[int, FloatArray] = {}
        for i, the_set in the_sets.items():
            rows[i] = self.standardised[i].copy()
            for g, expected in zip(*the_set, strict=True):
                rows[i][self.groups[g]] = expected.standardised
        around = {i: _Surroundings(self._by_group, row, self.own[i]) for i, row in rows.items()}
        near: dict[int, _Near] = {}
        for i, most in self._off_most(around, rows).items():
            order: list[int] = np.argsort(-most, kind="stable").tolist()
            far = [g for g in order if g not in the_sets[i].groups][:MAX_BESIDE]
            if far:
                near[i] = around[i].of_sets([(g,) for g in far])
        read = self._read(near, rows)
        return {
            i: [
                _Trial((*the_set.groups, g), (*the_set.expected, of_column))
                for g, of_column in zip(near[i].groups, read[i], strict=True)
            ]
            if i in near
            else []
            for i, the_set in the_sets.items()
        }

    def _reasons(
        self, i: int, trial: _Trial, share: float, alone: Mapping[int, float]
    ) -> list[ColumnDrop]:
        """Report the columns of one trial, ordered by their drops `alone`."""
        if len(trial.groups) == 1:
            (g,), (one,) = trial
            return [ColumnDrop(g, share, self.X[i, self.groups[g]], one.values)]
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
            around = _Surroundings(self._by_group, self.standardised[i], self.own[i])
            middle = self._read({i: around.of_all()})[i]
            g = max(range(len(middle)), key=lambda g: middle[g].distance)
            far = _Trial((g,), (middle[g],))
        return tuple(self._reasons(i, far, 0.0, {})) if far.expected[0].distance > 0.0 else ()
