"""Find the columns that made a row odd, and their expected values.

A column's part is the drop of the score when its value is replaced by the expected one: the median
(of a category, the most frequent level) over the 10 rows nearest in OTHER columns. Gradients point
to the column that is cheapest to move, z-scores to the widest; neither finds a value that is odd
only in combination with the others.

If no single column explains the row, pairs and triples are replaced together, by the values of the
rows nearest in the columns outside the set. For example, if length, width and depth of a diamond
all read 0, replacing one of them leaves a row unlike any other, and its price would look wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from kpca_apps.novelty.detector.neighbours import (
    AGREEING,
    NO_SET,
    NONE,
    Expected,
    Nearest,
    Surroundings,
    runs,
)
from kpca_apps.system.arrays import FloatArray, IntArray

CANDIDATES_A_BATCH = 4096
# If there are more groups of columns, try only those farthest from their expected values: replacing
# a value by nearly the same value lowers no score.
MAX_GROUPS_TRIED = 64
# Try sets if replacing the best single column leaves more than this share of a row's oddness.
MAX_LEFT = 0.4
# A larger set must leave less than this share of what the best smaller set leaves: any further
# column lowers the score a little, but the smallest set that explains a row is reported.
LESS_LEFT = 1 / 2
# Number of columns that form sets, and maximum size of a set: 6 pairs and 4 triples.
MAX_SUSPECTS, MAX_SET = 4, 3


@dataclass(frozen=True)
class ColumnDrop:
    """The part that one column, or group of columns, has in the score of a row."""

    group: int  # index of the group; of the column if no groups were given
    # Fall of the score when this group gets its expected values, as a share of the falls of all
    # groups reported for the row; groups replaced `together` divide a fall evenly. 0 if no fall is
    # found: then only the group farthest from its expected values is reported.
    share: float
    seen: FloatArray  # (k,), values in the row for the columns of the group
    expected: FloatArray  # (k,), values expected from the row's neighbours
    # Groups whose values were replaced together, this group included; empty if only this one was.
    together: tuple[int, ...] = ()


@dataclass(frozen=True)
class Attribution:
    """Finds the columns that make rows odd: those whose replacement lowers the score most."""

    X: FloatArray  # (r, d), the unscaled rows
    standardised: FloatArray  # (r, d), the same rows scaled for distances
    # ``score(candidates (c, d), row (c,))``: scores of changed copies of rows of X, where `row` is
    # the position of each original.
    score: Callable[[FloatArray, IntArray], FloatArray]
    around: Surroundings  # finds the rows nearest to a row, and expected values
    own: IntArray  # (r,), position of each row among the training rows, -1 for a new one
    typical: float = 0.0  # score of a typical row: only the excess over it is explained
    least: float = 0.0  # minimum share of a reason, except for the first

    def explain(self) -> list[tuple[ColumnDrop, ...]]:
        """List each row's columns by drop of the score, largest first; column sets stay together.

        If no replacement lowers the score, the result is the one column that is farthest from its
        expected value; empty if none is off.
        """
        size = max(1, CANDIDATES_A_BATCH // self._n_tried)
        return [
            reasons
            for start in range(0, len(self.X), size)
            for reasons in self._part(start, start + size)._explain()
        ]

    def _part(self, start: int, end: int) -> Attribution:
        of = slice(start, end)

        def score(candidates: FloatArray, row: IntArray) -> FloatArray:
            return self.score(candidates, start + row)

        return replace(
            self, X=self.X[of], standardised=self.standardised[of], own=self.own[of], score=score
        )

    @property
    def _n_tried(self) -> int:
        return min(len(self.around.groups), MAX_GROUPS_TRIED)

    def _explain(self) -> Iterator[tuple[ColumnDrop, ...]]:
        r, a = len(self.X), self._n_tried
        every = np.arange(r)
        candidates, off = self._groups_to_try()
        expected, near = self._expect_alone(candidates)
        radius = near.radius[:, a]
        # Drop of each row's score if one group at a time is replaced by its expected value.
        entries = np.arange(r * a).reshape(r, a)
        trials = np.append(np.full(r, NONE), entries)[:, None]
        # Score the unchanged rows in the same pass: a second pass would be slow even for few rows.
        scores, after = np.split(
            self._scores(np.append(every, np.repeat(every, a)), trials, expected), [r]
        )
        drops = np.maximum(scores[:, None] - after.reshape(r, a), 0.0)
        excess = np.maximum(scores - self.typical, 0.0)
        left = self._remaining(excess, drops, near.radius[:, :a], radius)
        highest = drops.argmax(axis=1)
        unclear = np.flatnonzero(left[every, highest] > MAX_LEFT)
        if off is None:
            off_most = self._distances(self.standardised[unclear], near.nearest[unclear, a + 1])
        else:
            off_most = off[unclear]
        suspects = self._suspects(candidates[unclear], drops[unclear], off_most)
        sets, radii, of_sets = self._sets(unclear, suspects)
        is_set = sets[:, :, 0] >= 0
        sets[sets >= 0] += r * a
        expected = expected.joined(of_sets)
        drops_of_sets = np.zeros(is_set.shape)
        of_set = unclear[np.nonzero(is_set)[0]]
        after = self._scores(of_set, sets[is_set], expected)
        drops_of_sets[is_set] = np.maximum(scores[of_set] - after, 0.0)
        left_by_sets = self._remaining(excess[unclear], drops_of_sets, radii, radius[unclear])
        left_by_sets[~is_set] = np.inf
        place = _smallest(highest[unclear], left[unclear], left_by_sets)
        # Rows that another column group, a pair or a triple explains better than `highest` does.
        others = np.flatnonzero(place != highest[unclear])
        rows, place = unclear[others], place[others]
        is_alone = place < a
        best = np.full((len(rows), MAX_SET), NONE)
        best[is_alone, 0] = entries[rows[is_alone], place[is_alone]]
        best[~is_alone] = sets[others[~is_alone], place[~is_alone] - a]
        drops_of_best = np.hstack([drops[unclear], drops_of_sets])[others, place]
        place_of = {row: place for place, row in enumerate(rows.tolist())}
        order = np.argsort(-drops, axis=1, kind="stable")
        for i in range(r):
            tried: Sequence[IntArray] = list(entries[i, order[i], None])
            found = drops[i, order[i]]
            if i in place_of:
                j = place_of[i]
                tried, found = [best[j]], drops_of_best[j : j + 1]
            # Columns replaced together are ordered by the drop that each causes by itself.
            alone = dict(zip(candidates[i].tolist(), drops[i].tolist(), strict=True))
            reasons, total = list[ColumnDrop](), float(found.sum())
            for of_trial, drop in zip(tried, found.tolist(), strict=True):
                if drop > 0.0 and (not reasons or drop / total >= self.least):
                    places = [one for one in of_trial.tolist() if one >= 0]
                    reasons += self._reported(i, places, drop / total, alone, expected)
            yield tuple(reasons) or self._farthest(i, expected, excess[i] > 0.0)

    def _groups_to_try(self) -> tuple[IntArray, FloatArray | None]:
        """Choose the column groups that are later replaced in turn; return sorted indices (r, a).

        If there are very many, choose those farthest from the rows that agree in most groups, since
        each trial is slow; also return the distances (r, g) of all groups.
        """
        r, n, a = len(self.X), len(self.around.groups), self._n_tried
        if a == n:
            return np.tile(np.arange(n), (r, 1)), None
        near = self.around.near(self.standardised, self.own, np.full((r, 1, 1), AGREEING))
        off = self._distances(self.standardised, near.nearest[:, 0])
        return np.sort(np.argsort(-off, axis=1, kind="stable")[:, :a], axis=1), off

    def _distances(self, rows: FloatArray, agreeing: IntArray) -> FloatArray:
        """Return how far each row is from its `agreeing` rows in each column group, (r, g)."""
        r, n = len(rows), len(self.around.groups)
        of_row, groups = np.repeat(np.arange(r), n), np.tile(np.arange(n), r)
        distances = self.around.expected(rows, of_row, groups, agreeing[of_row]).distances
        return distances.reshape(r, n)

    def _expect_alone(self, candidates: IntArray) -> tuple[Expected, Nearest]:
        """Return the expected value of each column group, from rows near in all other groups.

        Also return the nearest rows: in all groups but one, for each group; in all groups; and
        those that agree in most groups.
        """
        r, a = candidates.shape
        sets = np.full((r, a + 2, 1), NONE)
        sets[:, :a, 0], sets[:, a + 1] = candidates, AGREEING
        near = self.around.near(self.standardised, self.own, sets)
        of_row, nearest = np.repeat(np.arange(r), a), near.nearest[:, :a].reshape(r * a, -1)
        if len(self.around.groups) == 1:
            nearest, near.radius[:, :a] = np.tile(self.around.everyone, (r, 1)), 0.0
        groups = candidates.reshape(-1)
        return self.around.expected(self.standardised, of_row, groups, nearest), near

    def _scores(self, row: IntArray, entries: IntArray, expected: Expected) -> FloatArray:
        """Score copies of rows in which some cells are replaced by their expected values.

        Copy i is a copy of row `row[i]`; `entries[i]` are the indices of its values in `expected`,
        padded with -1. The score is infinite if the expected values equal the cells.
        """
        scores = np.full(len(row), np.inf)
        copy, at = np.nonzero(entries >= 0)
        which = entries[copy, at]
        sizes = self.around.sizes[expected.groups[which]]
        before = self.X[row]
        candidates = before.copy()
        columns = self.around.columns_of(expected.groups[which])
        candidates[np.repeat(copy, sizes), columns] = expected.values[
            runs(expected.ends[which] - sizes, sizes)
        ]
        scored = np.flatnonzero((candidates != before).any(axis=1) | (entries[:, 0] < 0))
        if len(scored):
            scores[scored] = self.score(candidates[scored], row[scored])
        return scores

    def _remaining(
        self, excess: FloatArray, drops: FloatArray, radii: FloatArray, radius: FloatArray
    ) -> FloatArray:
        """Return the share (u, t) of each row's oddness that remains after each of t trials.

        A trial replaces column groups by expected values. Half of the oddness is the `excess` (u,)
        of the score over a typical one. Half is the excess of the distance to the nearest rows, as
        a score may drop although the row is like no other.
        Distances are `radii` (u, t) without a trial's groups, and `radius` (u,) with all groups.
        """
        typical, excess = self.around.neighbours.typical_distance, excess[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            of_score = np.maximum(1.0 - drops / excess, 0.0)
            beyond = radius[:, None] - typical
            of_distance = np.maximum((radii - typical) / beyond, 0.0)
        left = np.where(beyond > 0.0, (of_score + of_distance) / 2, of_score)
        return np.where(excess > 0.0, left, 0.0)

    def _suspects(self, candidates: IntArray, drops: FloatArray, off: FloatArray) -> IntArray:
        """Choose the four most suspect groups of each row, (u, 4), increasing, padded with -1.

        These are the one with the highest drop, and those farthest from the rows that agree in most
        groups; if these are too few, those with the next highest drops.
        """
        (u, a), n = candidates.shape, len(self.around.groups)
        rows, last = np.arange(u)[:, None], 2.0 * n
        by_drop = np.argsort(-drops, axis=1, kind="stable")
        priority = np.full((u, n), last)
        n_first = n + np.arange(a)
        priority[rows, np.take_along_axis(candidates, by_drop, axis=1)] = np.where(
            np.take_along_axis(drops, by_drop, axis=1) > 0.0, n_first, last
        )
        is_first = priority == n
        by_distance = np.argsort(-off, axis=1, kind="stable")
        places = np.where(np.take_along_axis(off, by_distance, axis=1) > 0.0, np.arange(n), last)
        far = np.empty((u, n))
        far[rows, by_distance] = places
        priority = np.where(is_first, -1.0, np.minimum(priority, far))
        found = np.argsort(priority, axis=1, kind="stable")[:, :MAX_SUSPECTS]
        found[np.take_along_axis(priority, found, axis=1) == last] = n
        found.sort(axis=1)
        suspects = np.full((u, MAX_SUSPECTS), NONE)
        suspects[:, : found.shape[1]] = np.where(found < n, found, NONE)
        return suspects

    def _sets(self, rows: IntArray, suspects: IntArray) -> tuple[IntArray, FloatArray, Expected]:
        """Find expected values for the pairs and triples of each row's suspect column groups.

        Return the positions of each set's expected values (u, e, 3), pairs first, padded with -1;
        how far the nearest rows are without the set, (u, e); and the expected values.
        """
        sizes = [size for size in (2, 3) if size < len(self.around.groups)]
        chosen = [one for size in sizes for one in combinations(range(MAX_SUSPECTS), size)]
        sets = np.full((len(rows), len(chosen), MAX_SET), NONE)
        for place, members in enumerate(chosen):
            sets[:, place, : len(members)] = suspects[:, members]
            # If a row has few suspects, the last are NONE; a pair or triple with NONE is no set.
            sets[sets[:, place, len(members) - 1] < 0, place] = NO_SET
        near = self.around.near(self.standardised[rows], self.own[rows], sets)
        row, e, at = np.nonzero(sets >= 0)
        places = np.full(sets.shape, NONE)
        places[row, e, at] = np.arange(len(row))
        groups, nearest = sets[row, e, at], near.nearest[row, e]
        of_sets = self.around.expected(self.standardised[rows], row, groups, nearest)
        return places, near.radius, of_sets

    def _reported(
        self,
        i: int,
        places: list[int],
        share: float,
        alone: Mapping[int, float],
        expected: Expected,
    ) -> list[ColumnDrop]:
        groups = expected.groups[places].tolist()
        together = tuple(groups) if len(groups) > 1 else ()
        pairs = sorted(
            zip(groups, places, strict=True),
            key=lambda pair: (-alone.get(pair[0], 0.0), -expected.distances[pair[1]]),
        )
        return [
            ColumnDrop(
                g,
                share / len(pairs),
                self.X[i, self.around.groups[g]],
                expected.of(place),
                together,
            )
            for g, place in pairs
        ]

    def _farthest(self, i: int, expected: Expected, is_odd: bool) -> tuple[ColumnDrop, ...]:
        """Report the column group farthest from its expected value (by near rows, or all rows)."""
        a = self._n_tried
        far = i * a + int(expected.distances[i * a : (i + 1) * a].argmax())
        if is_odd and expected.distances[far] <= 0.0:
            expected = self.around.expected_of_all(self.standardised[i])
            far = int(expected.distances.argmax())
        if expected.distances[far] <= 0.0:
            return ()
        return tuple(self._reported(i, [far], 0.0, {}, expected))


def _smallest(highest: IntArray, left: FloatArray, left_by_sets: FloatArray) -> IntArray:
    """Choose, for each of u rows, the fewest groups whose replacement leaves little oddness.

    A trial replaces one of n groups, of which `highest` (u,) lowers the score most, or one of six
    pairs, or one of four triples. Results are positions in this order.
    """
    rows, n, n_pairs = np.arange(len(left)), left.shape[1], comb(MAX_SUSPECTS, 2)
    smallest, remaining = highest.copy(), left[rows, highest]
    all_left = np.hstack([left, left_by_sets])
    for part in (slice(0, n), slice(n, n + n_pairs), slice(n + n_pairs, None)):
        if all_left[:, part].shape[1]:
            least = part.start + all_left[:, part].argmin(axis=1)
            smaller = all_left[rows, least] < LESS_LEFT * remaining
            smallest = np.where(smaller, least, smallest)
            remaining = all_left[rows, smallest]
    return smallest
