"""Cells that do not go with the others of their row, by what other rows hold beside each other.

Each column says how improbable a cell of another is (`counts.py`); of numbers that do not recur it
says what they usually are (`panels.py`). The geometric mean of the probabilities, weighted by how
much each says in general, is that of the cell: one wrong cell beside right ones does not make them
odd. A value that occurs nowhere else says nothing, and counts as much, as all of a row may be new.

A value written like the one expected is a misspelling (`writing.py`): how few other values of the
column are written as much like it is further evidence, and misspellings are taken out before all
is counted once more, so that they are found however many there are.

Cells are named where most rows like theirs agree on another value, at a false discovery rate
(Benjamini and Hochberg 1995) that is learned with the counts. A rare value counts for nothing there
unless it is misspelt: what is new to a group is rare as a rule, right or wrong. The wrong cells are
among the rows learned from and make cells like them probable: the rate that is kept is an upper
bound. Of cells that contradict each other, the one that contradicts most is named and what it says
of the others is taken back. A column that is odd in most rows of a level of another is so by rule,
and not named there. A missing cell is named where nearly all rows like its own have one value.

References
----------
Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, JRSS B 57, 1995. V. Vovk, R. Wang,
Combining p-values via averaging, Biometrika 107, 2020 (geometric means).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnPlan
from kpca_apps.novelty.detector.threshold import discovery_limit
from kpca_apps.novelty.evidence import Evidence
from kpca_apps.novelty.magnitudes import eight_digits
from kpca_apps.novelty.relations.conditional.alike import RowsAlike, contradicted
from kpca_apps.novelty.relations.conditional.counts import (
    Cells,
    LevelColumn,
    Relation,
    Said,
    find_relations,
)
from kpca_apps.novelty.relations.conditional.expected import FEW, FEW_SHARE
from kpca_apps.novelty.relations.conditional.flags import Flags
from kpca_apps.novelty.relations.conditional.new_levels import find_new_levels
from kpca_apps.novelty.relations.conditional.numbers import NumberRelations
from kpca_apps.novelty.relations.conditional.pairs import Paired
from kpca_apps.novelty.relations.conditional.writing import (
    ALIKE,
    RARE_CELLS,
    TIMES_RARER,
    Writing,
)
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table

UNRELATED = ("label", "excluded", "constant", "empty", "duplicate")
# A column of which a larger share of the cells differ hardly repeats: nothing can be counted.
MOST_DISTINCT = 0.9
FALSE_DISCOVERIES = 0.2  # at most, of the cells named in a column
# Cells above this probability are not looked at.
LEAST_ODD = 0.25
# Columns that agree against a cell, where exceptions of one alone are there by right.
SEVERAL = 2
# So many times more is said against a cell than against any that could be named: it is not
# believed. It is named where its probability is less than the second.
SUSPECT, CLEARLY_WRONG = 1.5, 1e-3
# Rows of a level, and half of all, in which a column is odd by rule.
LEAST_BY_RULE = 3
# Where the probability left for values other than one is less, another is wrong, whatever the rate
# of false discoveries; and a gap is known.
SURE, SURE_OF_GAP, MOST_MISSING = 0.01, 0.05, 0.1
# Contradictions that differ by less, in nats, are equal: then the less probable cell is named, if
# it is so by a factor of e.
TIE = 1e-3
# Probability that any cell of a right row is as improbable, above which none is named. Of a gap it
# says how rare gaps are, not whether the value is known.
LEVEL = 0.1
MOST_AT_ONCE = 2_000_000  # numbers: rows times pairs of columns
SMALLEST = 1e-12  # probability


@dataclass(frozen=True, eq=False)
class JudgedCells:
    """What the cells of n rows are, given the others of the row.

    Surprise is -log of the probability that the oddest cell of a row is as odd by chance; 0 where
    nothing is said.
    """

    surprise: FloatArray  # (n,)
    cells: tuple[Evidence, ...]  # against levels, in the order of the rows
    numbers: tuple[Evidence, ...]  # and against numbers


# Columns that are odd by rule in rows that have one level of another: both places, and the code.
Exceptions = tuple[
    tuple[Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=0)]], ...
]


@dataclass(frozen=True, eq=False)
class LevelRelations:
    """What the columns of a table say of each other's cells."""

    columns: tuple[LevelColumn, ...]
    relations: tuple[Relation, ...]
    exceptions: Exceptions
    limits: Annotated[FloatArray, "c", Meta(le=0)]  # log probability of each column's named cells
    numbers: NumberRelations
    flags: Flags  # columns of few values, given each other

    def validate(self) -> None:
        """Refuse relations of other columns."""
        n_columns = len(self.columns)
        places = [place for of in self.relations for place in (of.given, of.target)]
        places += [place for b, a, _ in self.exceptions for place in (b, a)]
        places += [of.given for of in self.numbers.predictors if not isinstance(of, Paired)]
        places += [place for of in self.flags.counts for place in (of.target, *of.given)]
        if len(self.limits) != n_columns or any(place >= n_columns for place in places):
            raise ValueError("relations of columns that are not there")
        for of in self.relations:
            n_codes = self.columns[of.target].n_codes
            if of.n_codes != n_codes or of.pairs[-1] >= self.columns[of.given].missing * n_codes:
                raise ValueError("relations of other levels")

    @property
    def n_looked(self) -> int:
        """Columns whose cells are judged."""
        by_levels = {of.target for of in self.relations}
        return len(by_levels | {of.target for of in self.flags.counts})

    @classmethod
    def learn(cls, table: Table, plan: ColumnPlan) -> LevelRelations:
        """Learn from the rows of a table, or some drawn from it."""
        columns = []
        for spec in plan.specs:
            if spec.role not in UNRELATED:
                column = LevelColumn.of(table.column(spec.name), spec)
                n_cells = int(column.counts[:-1].sum())
                if np.count_nonzero(column.counts) > 1 and (
                    column.missing <= MOST_DISTINCT * n_cells
                ):
                    columns.append(column)
        rows = _Rows.learned_from(columns, table)
        spelt = rows.without_misspelt()
        if sum(column.missing for column in spelt) < sum(column.missing for column in columns):
            rows = _Rows.learned_from(spelt, table)
        rows = rows.excepting(rows.found_exceptions())
        if loose := rows.loose_numbers():
            relations = tuple(of for of in rows.learned.relations if of.target not in loose)
            learned = replace(rows.learned, relations=relations)
            rows = _Rows.of(learned, rows.cells, rows.own).excepting(learned.exceptions)
        # Numbers that recur are judged as levels.
        recurring = {columns[of.target].name for of in rows.learned.relations}
        of_numbers = NumberRelations.learn(
            table, plan.used, recurring, rows.learned.columns, rows.cells
        )
        return replace(
            rows.learned,
            limits=rows.limits(rows.odd.log_p),
            numbers=of_numbers,
            flags=Flags.learn(rows.learned.columns, [of.codes for of in rows.cells]),
        )

    def judge(
        self,
        table: Table,
        *,
        own: BoolArray | None = None,
        notations: Mapping[str, Notation] = MappingProxyType({}),
    ) -> JudgedCells:
        """Judge the cells of rows; those it was learned from (`own`, (n,)) as if left out.

        What it says of a row depends on no other row. Columns that the table lacks say nothing.
        Numbers are written by the `notations` of their columns.
        """
        known = {place for place, of in enumerate(self.columns) if of.name in table.columns}
        cells = [column.cells(table) for column in self.columns]
        asked = replace(
            self,
            relations=tuple(one for one in self.relations if known >= {one.given, one.target}),
        )
        own = np.zeros(table.frame.height, dtype=bool) if own is None else own
        return _Rows.of(asked, cells, own).excepting(self.exceptions).judged(table, notations)


class _Odd(NamedTuple):
    """Cells that may be wrong, before blame is laid."""

    row: IntArray
    target: IntArray
    log_p: FloatArray  # with how they are written
    likeness: FloatArray  # log share of other values written as much like the one expected
    expects: BoolArray  # whether rows like its own agree on another value
    recurs: BoolArray  # whether it is written like that, but too often to be a slip


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows whose cells are judged."""

    learned: LevelRelations
    cells: Sequence[Cells]  # of each column
    own: BoolArray  # (n,), whether the relations were learned from the row
    log_p: FloatArray  # (n, columns), of each cell given the others
    log_other: FloatArray  # (n, columns), of another value than what the others expect,
    log_right: FloatArray  # (n, columns), and of one that is right
    strongest: IntArray  # (n, columns), place of the relation that says most against it; or -1
    n_against: IntArray  # (n, columns), columns whose rows agree on another value,
    n_for: IntArray  # (n, columns), and on its own

    @classmethod
    def learned_from(cls, columns: Sequence[LevelColumn], table: Table) -> _Rows:
        """Count the levels of a table beside each other; each of its rows is judged left out."""
        cells = [column.cells(table) for column in columns]
        relations = tuple(find_relations(columns, [of.codes for of in cells]))
        limits = np.zeros(len(columns))
        learned = LevelRelations(
            tuple(columns),
            relations,
            (),
            limits,
            NumberRelations.learn(table, (), (), (), ()),
            Flags.learn((), ()),
        )
        return cls.of(learned, cells, np.ones(table.frame.height, dtype=bool))

    @classmethod
    def of(cls, learned: LevelRelations, cells: Sequence[Cells], own: BoolArray) -> _Rows:
        """Ask all relations what they say of rows."""
        shape = len(learned.columns), len(own)
        codes = [of.codes for of in cells]
        log_p, log_other, log_right, weight, deciding, most = (np.zeros(shape) for _ in range(6))
        strongest = np.full(shape, -1)
        n_against, n_for = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for place, relation in enumerate(learned.relations):
            b, said = relation.target, relation.ask(learned.columns, codes, own)
            against = -relation.gain * said.log_p
            log_p[b] -= against
            log_other[b] += relation.gain * said.log_other
            log_right[b] += relation.gain * said.log_right
            weight[b] += relation.gain * said.has_given
            deciding[b] += relation.gain * said.decides
            is_own = said.expected == codes[b]
            n_against[b] += said.agrees & ~is_own
            n_for[b] += said.agrees & is_own
            stronger = against > most[b]
            strongest[b, stronger], most[b, stronger] = place, against[stronger]
        np.divide(log_p, weight, out=log_p, where=weight > 0)
        for of_cells in (log_other, log_right):
            np.divide(of_cells, deciding, out=of_cells, where=deciding > 0)
        return cls(
            learned, cells, own, log_p.T, log_other.T, log_right.T, strongest.T,
            n_against.T, n_for.T,
        )  # fmt: skip

    def excepting(self, exceptions: Exceptions) -> _Rows:
        """Take back what is said of cells that are odd by rule."""
        learned = replace(self.learned, exceptions=exceptions)
        every = np.arange(len(self.own))
        log_p = np.where(self._by_rule(exceptions, every), 0.0, self.log_p)
        return replace(self, learned=learned, log_p=log_p)

    def judged(self, table: Table, notations: Mapping[str, Notation]) -> JudgedCells:
        """Say what the rows of the table are as wholes, and name the clear cells."""
        learned, columns = self.learned, self.learned.columns
        of_levels = _of_smallest(self.log_p.min(axis=1, initial=0.0), learned.n_looked)
        of_flags, flags = learned.flags.judge(columns, self.cells, self.own)
        cells = [*self._wrong()]
        named = {(one.row, one.column) for one in cells}
        # Of a cell that is named, and those that contradict it, no other may be.
        cells += (
            one
            for one in self._free(flags)
            if named.isdisjoint((one.row, name) for name in (one.column, *one.given))
        )
        named, names = {(one.row, one.column) for one in cells}, [of.name for of in columns]
        of_numbers, numbers = learned.numbers.judge(
            table, names, self.cells, self.own, named, notations
        )
        of_new, new = find_new_levels(columns, self.cells, self.own)
        # Of so many columns; somebody was in doubt who wrote "Roman?".
        looks = float(np.log(max(learned.n_looked, 1)))
        cells = [
            one._replace(log_p=min(one.log_p + looks, 0.0))
            for one in cells
            if one.seen.removesuffix("?").rstrip() != one.expected
            and (one.log_p + looks <= np.log(LEVEL) or not one.seen)
        ]
        cells = sorted([*cells, *new], key=lambda one: one.row)
        # All may speak of the same cells: of the p-values the smallest one is taken.
        said = (
            learned.relations, learned.numbers.predictors, learned.flags.counts,
            [of for of in columns if of.spec.has_levels],
        )  # fmt: skip
        smallest = -np.max([of_levels, of_numbers, of_flags, of_new], axis=0)
        # Rows alike must tie in whatever batch they are judged.
        surprise = eight_digits(_of_smallest(smallest, sum(map(bool, said))))
        return JudgedCells(surprise, tuple(cells), numbers)

    def _free(self, found: Sequence[Evidence]) -> Iterator[Evidence]:
        """Leave out cells that are odd by rule."""
        place = {of.name: number for number, of in enumerate(self.learned.columns)}
        rows = np.array([one.row for one in found], dtype=np.int64)
        by_rule = self._by_rule(self.learned.exceptions, rows)
        for one, is_by_rule in zip(found, by_rule, strict=True):
            if not is_by_rule[place[one.column]]:
                yield one

    @cached_property
    def odd(self) -> _Odd:
        """Cells that may be wrong."""
        row, target = np.nonzero(self.log_p < np.log(LEAST_ODD))
        likeness, (expects, recurs) = np.zeros(len(row)), np.zeros((2, len(row)), dtype=bool)
        for b in np.unique(target):
            at = np.flatnonzero(target == b)
            expected = np.full(len(at), -1)
            strongest = self.strongest[row[at], b]
            by_right = np.zeros(len(at), dtype=bool)
            for place in np.unique(strongest):
                of = strongest == place
                relation = self.learned.relations[place]
                said = self._ask(relation, row[at[of]])
                expected[of], expects[at[of]] = said.expected, said.agrees
                by_right[of] = relation.has_exceptions
            likeness[at] = self._likeness(int(b), row[at], expected)
            n_cells = np.append(self.learned.columns[b].counts, 1)
            most = np.maximum(RARE_CELLS, n_cells[expected] / TIMES_RARER)
            recurs[at] = (likeness[at] < 0) & (n_cells[self.cells[b].codes[row[at]]] > most)
            # An exception is wrong where there are none by right, or several columns say so.
            n_against, n_for = self.n_against[row[at], b], self.n_for[row[at], b]
            is_wrong = (~by_right | (n_against >= SEVERAL)) & (n_for <= np.maximum(n_against, 1))
            is_missing = self.cells[b].codes[row[at]] == self.learned.columns[b].missing
            expects[at] &= is_wrong | (likeness[at] < 0) | is_missing
        log_p = np.where(
            likeness < 0, self.log_p[row, target] + likeness, self.log_right[row, target]
        )
        return _Odd(row, target, log_p, likeness, expects, recurs)

    @cached_property
    def sure(self) -> FloatArray:
        """Log probability left for other values below which each cell is surely wrong."""
        sure = []
        for of, column in zip(self.cells, self.learned.columns, strict=True):
            # A column that lacks many values lacks any.
            is_full = column.counts[-1] <= MOST_MISSING * column.counts.sum()
            of_gaps = np.log(SURE_OF_GAP) if is_full else -np.inf
            sure.append(np.where(of.codes == column.missing, of_gaps, np.log(SURE)))
        return np.array(sure).reshape(len(self.cells), len(self.own)).T

    def without_misspelt(self) -> list[LevelColumn]:
        """Return the columns without the levels that are others misspelt in most of their rows."""
        row, target, _, likeness, _, recurs = self.odd
        columns = []
        for b, column in enumerate(self.learned.columns):
            at = row[(target == b) & (likeness < np.log(ALIKE)) & ~recurs]
            codes, n_cells = np.unique(self.cells[b].codes[at], return_counts=True)
            columns.append(column.without(codes[2 * n_cells > column.counts[codes]]))
        return columns

    def limits(self, log_p: FloatArray) -> FloatArray:
        """Log probability in each column below which few of the odd cells are there by chance."""
        odd = [log_p[self.odd.target == b] for b in range(len(self.cells))]
        return np.array([discovery_limit(of, len(self.own), FALSE_DISCOVERIES) for of in odd])

    def loose_numbers(self) -> set[int]:
        """Find the columns of numbers or dates that more than a few rows clearly contradict.

        Interviews end on the day they begin, but for some. No two of these need be alike, so that
        one alone does not show that it is wrong.
        """
        _, target, log_p, likeness, expects, _ = self.odd
        is_clear = (log_p <= self.limits(log_p)[target]) & expects & (likeness == 0)
        n_clear = np.bincount(target[is_clear], minlength=len(self.cells))
        numbers = (of.spec.format is not None for of in self.learned.columns)
        many = n_clear > max(FEW, FEW_SHARE * len(self.own))
        return {place for place, is_number in enumerate(numbers) if is_number and many[place]}

    def found_exceptions(self) -> Exceptions:
        """Find the levels of columns in most rows of which another column is clearly odd."""
        row, target, _, likeness, *_ = self.odd
        log_p = self.log_p[row, target] + likeness
        is_clear = log_p <= self.limits(log_p)[target]
        is_clear |= self.log_other[row, target] <= self.sure[row, target]
        found = []
        for b in np.unique(target[is_clear]):
            rows = row[is_clear & (target == b)]
            for a, (column, cells) in enumerate(zip(self.learned.columns, self.cells, strict=True)):
                k = column.missing
                n_odd = np.bincount(cells.codes[rows], minlength=k)[:k]
                by_rule = (n_odd >= LEAST_BY_RULE) & (2 * n_odd > column.counts[:k])
                found += [(int(b), a, int(code)) for code in np.flatnonzero(by_rule & (a != b))]
        return tuple(found)

    def _ask(self, relation: Relation, rows: IntArray) -> Said:
        codes = [of.codes[rows] for of in self.cells]
        return relation.ask(self.learned.columns, codes, self.own[rows])

    def _by_rule(self, exceptions: Exceptions, rows: IntArray) -> BoolArray:
        """Whether columns are odd by rule in some rows, (r, columns)."""
        by_rule = np.zeros((len(rows), len(self.cells)), dtype=bool)
        for b, a, code in exceptions:
            by_rule[:, b] |= self.cells[a].codes[rows] == code
        return by_rule

    def _likeness(self, target: int, rows: IntArray, expected: IntArray) -> FloatArray:
        """Log share of a column's values written as much like each expected as a row's, (r,)."""
        column, cells = self.learned.columns[target], self.cells[target]
        likeness, seen = np.zeros(len(rows)), cells.levels.codes[rows]
        is_other = (seen >= 0) & (cells.codes[rows] != expected)
        at = np.flatnonzero(is_other & (expected >= 0) & (expected < column.missing))
        if len(at):
            writing = Writing(column.texts, column.counts[:-1])
            pairs, first, place = np.unique(
                np.column_stack([seen[at], expected[at]]),
                axis=0, return_index=True, return_inverse=True,
            )  # fmt: skip
            n_cells = np.append(column.counts, 1)[cells.codes[rows[at[first]]]]
            found = [
                writing.likeness(str(cells.levels.texts[int(code)]), int(n), int(of))
                for (code, of), n in zip(pairs, n_cells, strict=True)
            ]
            likeness[at] = np.array(found)[place.ravel()]
        return likeness

    def _wrong(self) -> Iterator[Evidence]:
        """Name the cells that are wrong, by the cells they contradict."""
        row, target, log_p, likeness, expects, recurs = self.odd
        expects = expects & ~recurs
        clear = log_p <= self.learned.limits[target]
        clear |= self.log_other[row, target] <= self.sure[row, target]
        clear &= expects
        alike = np.full(self.log_p.shape, np.inf)  # no other cell is named
        alike[row[expects], target[expects]] = likeness[expects]
        rows = np.unique(row[clear])
        step = max(MOST_AT_ONCE // len(self.cells) ** 2, 1) if len(rows) else 1
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            yield from self._blamed(part, alike[part])

    def _blamed(self, rows: IntArray, likeness: FloatArray) -> Iterator[Evidence]:
        """Name the cells of most contradictions, one of a row at a time.

        What a named cell says of the others is taken back, and what they say of it is settled. Of
        two that contradict each other alike either may be the wrong one.
        """
        said = [(of, self._ask(of, rows)) for of in self.learned.relations]
        n, p = likeness.shape
        passed_over = self._by_rule(self.learned.exceptions, rows)
        named = np.zeros((n, p), dtype=bool)
        active = np.arange(n)
        while len(active):
            free = named[active]
            shape = len(active), p
            log_p, log_other, log_right, weight, deciding = (np.zeros(shape) for _ in range(5))
            against = np.zeros((len(active), p, p))
            for relation, of in said:
                a, b = relation.given, relation.target
                speaks = ~free[:, a]
                against_b = np.where(speaks, -of.log_p[active], 0.0)
                log_p[:, b] -= relation.gain * against_b
                log_other[:, b] += relation.gain * np.where(speaks, of.log_other[active], 0.0)
                log_right[:, b] += relation.gain * np.where(speaks, of.log_right[active], 0.0)
                weight[:, b] += relation.gain * (speaks & of.has_given[active])
                deciding[:, b] += relation.gain * (speaks & of.decides[active])
                either = np.maximum(against[:, a, b], against_b)
                against[:, a, b] = against[:, b, a] = either
            np.divide(log_p, weight, out=log_p, where=weight > 0)
            for of_cells in (log_other, log_right):
                np.divide(of_cells, deciding, out=of_cells, where=deciding > 0)
            log_p = np.where(likeness[active] < 0, log_p + likeness[active], log_right)
            is_odd = (log_p <= self.learned.limits) | (log_other <= self.sure[rows[active]])
            is_odd &= (weight > 0) & ~free & ~passed_over[active] & np.isfinite(likeness[active])
            blame = (against * ~free[:, None, :]).sum(axis=2) * ~free
            every, suspect = np.arange(len(active)), blame.argmax(axis=1)
            most = blame[every, suspect]
            blame = np.where(is_odd, blame - TIE * log_p, -1.0)
            worst = blame.argmax(axis=1)
            largest = blame[every, worst]
            # What contradicts several others is itself wrong, though nothing is expected there.
            is_suspect = (largest >= 0) & (most > SUSPECT * largest) & ~is_odd[every, suspect]
            blame[every, worst] = -1.0
            second = blame.argmax(axis=1)
            is_tied = (largest - blame[every, second] <= TIE) & ~is_suspect
            # Where others contradict it as much, any of them may be wrong: none is named.
            is_either = is_tied & (2 * against[every, worst, second] > largest)
            goes_on = (largest >= 0) & (~is_tied | is_either)
            worst = np.where(is_suspect, suspect, worst)
            second = np.where(is_either, second, worst)
            for i in np.flatnonzero(goes_on):
                place, b = int(active[i]), int(worst[i])
                speaking = [
                    (of, on) for of, on in said
                    if of.target == b and not free[i, of.given]
                ]  # fmt: skip
                log_least = min((float(on.log_p[place]) for _, on in speaking), default=0.0)
                if is_suspect[i] and log_least > np.log(CLEARLY_WRONG):
                    continue  # what it says of the others is not believed, and nothing said of it
                of_cell = float(log_least if is_suspect[i] else log_p[i, b])
                cell = self._cell(rows[place], place, speaking, of_cell)
                if is_either[i]:
                    others = (self.learned.columns[second[i]].name,)
                    cell = cell._replace(suggestion="", others=others)
                yield cell
            for of_row in (worst, second):
                named[active[goes_on], of_row[goes_on]] = True
            active = active[goes_on]

    def _cell(
        self, row: np.integer, place: int, said: Sequence[tuple[Relation, Said]], log_p: float
    ) -> Evidence:
        """Describe a cell, and what the relation says that speaks most against it."""
        relation, of = min(said, key=lambda one: one[0].gain * one[1].log_p[place])
        column, given, r = self.learned.columns[relation.target], relation.given, int(row)
        n_rows, n_agreeing = int(of.n_rows[place]), int(of.n_expected[place])
        alike = RowsAlike(
            shared=((self.learned.columns[given].name, self.cells[given].text(r)),),
            n_agreeing=n_agreeing,
            n_rows=n_rows,
        )
        expected = column.text(int(of.expected[place])) if 2 * n_agreeing > n_rows else ""
        seen = self.cells[relation.target].text(r)
        return contradicted(r, column.name, seen, expected, float(log_p), alike)


def _of_smallest(log_p: FloatArray, n_tried: int) -> FloatArray:
    """-log of the probability that the smallest of so many p-values is as small (Sidak)."""
    if not n_tried:
        return np.zeros(len(log_p))
    log_p = np.maximum(log_p, np.log(SMALLEST))
    with np.errstate(divide="ignore"):  # of p-values of 1
        log_none = n_tried * np.log1p(-np.exp(log_p))
    surprise: FloatArray = np.maximum(-np.log(-np.expm1(log_none)), 0.0)
    return surprise
