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
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kpca_apps.system.arrays import FloatArray, IntArray

GroupSet = tuple[int, ...]

N_NEIGHBOURS = 10
EVERY = 8  # row, and nearest of so many, that bound how far the nearest of all may be
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
# Rows whose squared length in a group is less are compared in float32 first. What rounding to it
# moves numbers by, relatively, and more than it moves a sum of squares by.
FAR_SQUARE, NARROW, ROUNDED = 1e24, 2.0**-23, 1e-5
EVERYONE = slice(None)


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


def nearest_rows(distances: FloatArray, n_all: int | None = None) -> IntArray:
    """Return the ten nearest rows by some distances (e, s), in no order; of fewer, all but one.

    Of rows that are equally near the first are taken. The rows may be some of `n_all`, among which
    the nearest of all are.
    """
    n_lines, n_rows = distances.shape
    k = min(N_NEIGHBOURS, (n_rows if n_all is None else n_all) - 1)
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
        self._room = threading.local()
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

    def squares(self, row: FloatArray, of: IntArray | slice = EVERYONE) -> FloatArray:
        """Squared distance of a row (d,) to neighbours in each group, shape (groups, s)."""
        lines = self._lines if isinstance(of, slice) else self._lines[:, of]
        squared = lines - row[self._single_columns, None]
        squared *= squared
        np.minimum(squared, self._largest, out=squared)
        if not self._wide:
            return np.minimum(squared, LARGEST_SQUARE, out=squared)
        squares = np.empty((len(self.columns), lines.shape[1]))
        squares[self._single] = squared
        for g, (distinct, which) in self._wide.items():
            squared = (distinct - row[self.columns[g]]) ** 2
            squares[g] = np.minimum(squared, self._largest).sum(axis=1)[which[of]]
        return np.minimum(squares, LARGEST_SQUARE, out=squares)

    def shortlist(
        self, row: FloatArray, own: IntArray, asked: FloatArray, most: float = np.inf
    ) -> IntArray | slice:
        """Return neighbours among which the ten nearest to a row (d,) are, by any of some sums.

        What is `asked` (e, groups) has 1 where a sum counts a group and 0 elsewhere; no group
        counts more than `most` in it. Sums in float32 tell the few that may be among the nearest
        from the many that are not; all are returned where they cannot.
        """
        lengths = self._lengths(row)
        if len(self.neighbours.rows) <= 2 * EVERY * N_NEIGHBOURS or not lengths.max() < FAR_SQUARE:
            return EVERYONE
        lines, distinct = self._narrow
        parts, sums = self._memory(len(asked))
        squared = parts if not distinct else np.empty_like(lines)
        np.subtract(lines, row[self._single_columns, None].astype(np.float32), out=squared)
        # The squares of absurd numbers are beyond float32, and infinity times 0 is no number.
        with np.errstate(over="ignore"):
            np.multiply(squared, squared, out=squared)
        np.minimum(squared, np.float32(min(self._largest, FAR_SQUARE)), out=squared)
        if distinct:
            parts[self._single] = squared
        for g, of_levels in distinct.items():
            difference = (of_levels - row[self.columns[g]]) ** 2
            in_group = np.minimum(difference, self._largest).sum(axis=1).astype(np.float32)
            parts[g] = in_group[self._wide[g][1]]
        if most < np.inf:
            np.minimum(parts, np.float32(most), out=parts)
        np.matmul(asked.astype(np.float32), parts, out=sums)
        sums[:, own] = np.inf
        # The tenth of the nearest of each few is no nearer than the tenth of all.
        few = sums[:, : sums.shape[1] // EVERY * EVERY].reshape(len(sums), EVERY, -1).min(axis=1)
        bound = np.partition(few, N_NEIGHBOURS - 1, axis=1)[:, N_NEIGHBOURS - 1]
        # Rounding moves a distance by no more than this; twice, for the bound is rounded, too.
        reach = np.sqrt(asked @ lengths) + np.sqrt(asked @ self._largest_lengths)
        limit = np.sqrt(bound) * (1.0 + ROUNDED) + 2.0 * NARROW * reach
        limit = np.nextafter((limit * limit).astype(np.float32), np.float32(np.inf))
        return np.flatnonzero((sums <= limit[:, None]).any(axis=0))

    def _memory(self, n_sums: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Memory used again from row to row, by each thread its own: to get it takes longest."""
        shape, n_rows = len(self.columns), len(self.neighbours.rows)
        held = getattr(self._room, "held", None)
        if held is None or len(held) < shape + n_sums:
            held = self._room.held = np.empty((shape + n_sums, n_rows), dtype=np.float32)
        return held[:shape], held[shape : shape + n_sums]

    @cached_property
    def _narrow(self) -> tuple[NDArray[np.float32], dict[int, FloatArray]]:
        """Neighbours in float32, a line a single column, and the distinct rows of other groups."""
        return self._lines.astype(np.float32), {g: own for g, (own, _) in self._wide.items()}

    @cached_property
    def _members(self) -> FloatArray:
        """1 where a column is of a group, (d, groups)."""
        members = np.zeros((self.neighbours.rows.shape[1], len(self.columns)))
        for g, columns in enumerate(self.columns):
            members[columns, g] = 1.0
        return members

    def _lengths(self, row: FloatArray) -> FloatArray:
        """Squared length of a row in each group."""
        with np.errstate(over="ignore"):
            lengths: FloatArray = np.minimum(row * row, LARGEST_SQUARE) @ self._members
        return lengths

    @cached_property
    def _largest_lengths(self) -> FloatArray:
        return self._lengths(np.abs(self.neighbours.standardised).max(axis=0))


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
        n = len(self._groups.columns)
        asked = np.ones((len(groups) + 1, n))
        asked[np.arange(len(groups)), groups] = 0.0
        rows, squares = self._squares(asked)
        radius = float(self._nearest(squares.sum(axis=0)[None], rows)[1][0])
        if n == 1:
            return self.of_all(), radius
        parts = squares[groups]
        # Sums over the other groups, forwards and backwards: subtracting a huge part from the
        # total would leave nothing of the small ones.
        others = np.zeros_like(parts)
        if len(groups) < n:
            others[:] = np.delete(squares, groups, axis=0).sum(axis=0)
        others[1:] += np.add.accumulate(parts[:-1], axis=0)
        others[:-1] += np.add.accumulate(parts[:0:-1], axis=0)[::-1]
        return _Near(groups, *self._nearest(others, rows)), radius

    def of_sets(self, sets: Sequence[GroupSet]) -> _Near:
        """Rows nearest in all groups outside of each set, for the groups of the sets in turn."""
        asked = np.ones((len(sets), len(self._groups.columns)))
        for place, members in enumerate(sets):
            asked[place, list(members)] = 0.0
        rows, parts = self._squares(asked)
        # Not a matrix product: its sums are not added in one order everywhere.
        nearest, radius = self._nearest(np.einsum("eg,gu->eu", asked, parts), rows)
        of_set = np.repeat(np.arange(len(sets)), [len(members) for members in sets])
        return _Near([g for members in sets for g in members], nearest[of_set], radius[of_set])

    def of_most(self) -> _Near:
        """Rows that agree in most groups, for every group."""
        n = len(self._groups.columns)
        rows, parts = self._squares(np.ones((1, n)), MOST_APART)
        squares = np.minimum(parts, MOST_APART, out=parts)
        nearest, radius = self._nearest(squares.sum(axis=0)[None], rows)
        return _Near(range(n), np.repeat(nearest, n, axis=0), np.repeat(radius, n))

    def of_all(self) -> _Near:
        """All rows, for every group."""
        n, n_rows = len(self._groups.columns), len(self._groups.neighbours.rows)
        return _Near(range(n), np.tile(np.arange(n_rows), (n, 1)), np.zeros(n))

    def _squares(
        self, asked: FloatArray, most: float = np.inf
    ) -> tuple[IntArray | slice, FloatArray]:
        """Rows among which the nearest by what is asked are, and distances to them, (groups, u)."""
        rows = self._groups.shortlist(self._row, self._own, asked, most)
        return rows, self._groups.squares(self._row, rows)

    def _nearest(
        self, distances: FloatArray, rows: IntArray | slice
    ) -> tuple[IntArray, FloatArray]:
        """Nearest rows (e, k) by the distances (e, u) of some, and how far they are on average."""
        if isinstance(rows, slice):
            distances[:, self._own] = np.inf
        else:
            distances[:, (rows[:, None] == self._own).any(axis=1)] = np.inf
        nearest = nearest_rows(distances, len(self._groups.neighbours.rows))
        radius = distances[np.arange(len(distances))[:, None], nearest].mean(axis=1)
        return nearest if isinstance(rows, slice) else rows[nearest], radius


def _read(
    groups: GroupDistances, near: Mapping[int, _Near], rows: Mapping[int, FloatArray]
) -> dict[int, list[_Expected]]:
    """Return what groups of standardised rows (d,) should read: the middle of rows near to them."""
    if not near:
        return {}
    asked = np.array([g for one in near.values() for g in one.groups], dtype=np.int64)
    nearest = np.concatenate([one.nearest for one in near.values()])
    radii = np.concatenate([one.radius for one in near.values()]).tolist()
    of_row = np.repeat(np.arange(len(near)), [len(one.groups) for one in near.values()])
    all_sizes = np.array([len(columns) for columns in groups.columns])
    sizes = all_sizes[asked]
    starts = np.cumsum(sizes) - sizes
    within = np.arange(sizes.sum()) - np.repeat(starts, sizes)
    first = np.cumsum(all_sizes) - all_sizes
    columns = np.concatenate(groups.columns)[np.repeat(first[asked], sizes) + within]
    lines = np.repeat(nearest, sizes, axis=0)
    raw, scaled = groups.neighbours.rows, groups.neighbours.standardised
    middle = _medians(raw[lines, columns[:, None]])
    middle_scaled = _medians(scaled[lines, columns[:, None]])
    own = np.stack([rows[i] for i in near])[np.repeat(of_row, sizes), columns]
    distances = np.add.reduceat(np.abs(middle_scaled - own), starts).tolist()
    found, ends = [], (starts + sizes).tolist()
    for place, (g, start, end) in enumerate(
        zip(asked.tolist(), starts.tolist(), ends, strict=True)
    ):
        values, standardised = middle[start:end], middle_scaled[start:end]
        if groups.are_categories[g]:
            # The first row of the level that most of them are of.
            members = groups.columns[g]
            levels = raw[nearest[place]][:, members]
            like = nearest[place][levels[:, levels.sum(axis=0).argmax()].argmax()]
            values, standardised = raw[like, members], scaled[like, members]
        found.append(_Expected(values, standardised, distances[place], radii[place]))
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
            for i, most in self._of_most(around).items():
                distances = [-one.distance for one in most]
                asked[i] = np.sort(np.argsort(distances, kind="stable")[:n_tried]).tolist()
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
            for size in (1, 2, 3):
                of_size = [j for j, trial in enumerate(tried) if len(trial.groups) == size]
                if of_size:
                    j = min(of_size, key=lambda j: remaining[j])
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
        members = [self.groups[g] for trial in trials for g in trial.groups]
        values = [one.values for trial in trials for one in trial.expected]
        in_trial = [sum(len(self.groups[g]) for g in trial.groups) for trial in trials]
        copy = np.repeat(np.arange(len(trials)), in_trial)
        return (copy, np.concatenate(members)), np.concatenate(values)

    def _read(
        self, near: Mapping[int, _Near], rows: Mapping[int, FloatArray] | None = None
    ) -> dict[int, list[_Expected]]:
        """Return what rows, or changed copies of them, should read by the rows near to each."""
        return _read(self._by_group, near, rows or {i: self.standardised[i] for i in near})

    def _of_most(
        self,
        around: Mapping[int, _Surroundings],
        rows: Mapping[int, FloatArray] | None = None,
    ) -> dict[int, list[_Expected]]:
        """Return what rows should read by those that agree with them in most columns."""
        return self._read({i: one.of_most() for i, one in around.items()}, rows)

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
        for i, of_most in self._of_most(around).items():
            most, drop = np.array([one.distance for one in of_most]), drops[i]
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
        for i, most in self._of_most(around, rows).items():
            outside = sorted({*range(len(self.groups))} - {*the_sets[i].groups})
            far = sorted(outside, key=lambda g: -most[g].distance)[:MAX_BESIDE]
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
