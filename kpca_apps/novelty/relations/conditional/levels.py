"""Cells that the other cells of their row contradict, by counts of pairs of levels.

Each other column gives a cell a probability (`counts.py`). The geometric mean of these
probabilities is weighted by how well each column predicts in general, so one wrong cell does not
make the others odd. Unseen values count as missing, as all values of a row may be new.

A cell spelt like the expected value is a misspelling (`writing.py`): its probability is multiplied
by the share of values at least as close to the expected one. Misspellings are then not counted.

A cell is wrong if most similar rows agree on another value, at a false discovery rate learned with
the counts (Benjamini and Hochberg 1995). The rate is an upper bound, as training rows may hold
wrong cells. Rarity counts for misspellings only, because new values are rare whether right or
wrong. If cells contradict each other, the one with most contradictions is wrong, and its own
evidence is discarded. Cells that are odd in most rows with a level of another column are no errors.

The probability that the next cell of a column has a new level is the share of cells whose level
occurs once (Good 1953); a new level spelt like a known one is a misspelling.

References
----------
Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, JRSS B 57, 1995. V. Vovk, R. Wang,
Combining p-values via averaging, Biometrika 107, 2020 (geometric means). I. J. Good, The population
frequencies of species and the estimation of population parameters, Biometrika 40, 1953.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from kpca_apps.names import quoted_cell
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnPlan
from kpca_apps.novelty.detector.threshold import discovery_limit
from kpca_apps.novelty.evidence import MAX_EVIDENCE, Evidence
from kpca_apps.novelty.magnitudes import eight_digits
from kpca_apps.novelty.relations.conditional.counts import (
    Judgement,
    LevelCells,
    LevelColumn,
    Relation,
    RowsAlike,
    contradicted,
    find_relations,
)
from kpca_apps.novelty.relations.conditional.expected import FEW, FEW_SHARE
from kpca_apps.novelty.relations.conditional.flags import Flags
from kpca_apps.novelty.relations.conditional.numbers import NumberRelations
from kpca_apps.novelty.relations.conditional.pairs import Paired
from kpca_apps.novelty.relations.conditional.writing import ALIKE, RARE_CELLS, TIMES_RARER, Writing
from kpca_apps.novelty.result import NEW
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table

UNRELATED = ("label", "excluded", "constant", "empty", "duplicate")
MOST_DISTINCT = 0.9  # maximum share of distinct values; with more, too few values repeat
FALSE_DISCOVERIES = 0.2  # maximum rate of false discoveries among the wrong cells found in a column
LEAST_ODD = 0.25  # probability above which cells are not examined
# A cell contradicts the other cells of its row by a sum of -log p. The cell with the largest sum is
# wrong even if no other value is expected in it: if this sum exceeds SUSPECT times that of every
# odd cell of the row, and if some column gives it at most the probability CLEARLY_WRONG.
SUSPECT, CLEARLY_WRONG = 1.5, 1e-3
# Odd cells are accepted if most rows of a level, and at least this many, have them in one column.
LEAST_BY_RULE = 3
# A filled cell that differs from the expected value is odd if all values but the expected one have,
# together, at most the probability SURE. For a missing cell, this limit is SURE_OF_GAP, or 0 if
# more than the share MOST_MISSING of its column is missing.
SURE, SURE_OF_GAP, MOST_MISSING = 0.01, 0.05, 0.1
# Two cells of a row tie if their contradictions (sums of -log p) differ by at most this, and their
# own probabilities by at most a factor e.
TIE = 1e-3
ODD_LEVEL = 0.01  # new levels are odd in a column where their probability is below this
LEVEL = 0.1  # maximum p-value of a filled cell called wrong
MOST_AT_ONCE = 2_000_000  # maximum product of rows and pairs of columns judged at once
SMALLEST = 1e-12  # smaller probabilities are raised to this before taking logarithms


@dataclass(frozen=True, eq=False)
class JudgedCells:
    """Surprise of n rows (-log p-value of the oddest cell), and evidence against cells by row."""

    surprise: FloatArray  # (n,)
    cells: tuple[Evidence, ...]  # evidence against levels
    numbers: tuple[Evidence, ...]  # evidence against numbers


# (column, other, code): cells of the column are odd in most rows with that level of `other`.
Exceptions = tuple[
    tuple[Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=0)]], ...
]


@dataclass(frozen=True, eq=False)
class LevelRelations:
    """How the columns of a table predict each other's cells."""

    columns: tuple[LevelColumn, ...]
    relations: tuple[Relation, ...]
    exceptions: Exceptions
    limits: Annotated[FloatArray, "c", Meta(le=0)]  # log p up to which cells are called wrong
    numbers: NumberRelations
    flags: Flags

    def validate(self) -> None:
        """Refuse relations between columns that do not exist."""
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
        """Number of columns whose cells are judged."""
        by_levels = {of.target for of in self.relations}
        return len(by_levels | {of.target for of in self.flags.counts})

    @classmethod
    def learn(cls, table: Table, plan: ColumnPlan) -> LevelRelations:
        """Learn from the rows of a table."""
        columns = []
        for spec in plan.specs:
            if spec.role not in UNRELATED:
                column = LevelColumn.of(table.column[spec.name], spec)
                most = MOST_DISTINCT * int(column.counts[:-1].sum())
                if np.count_nonzero(column.counts) > 1 and column.missing <= most:
                    columns.append(column)
        rows = _Rows.learned_from(columns, table)
        spelt = rows.without_misspelt()
        if sum(column.missing for column in spelt) < sum(column.missing for column in columns):
            rows = _Rows.learned_from(spelt, table)
        rows = rows.excepting(rows.find_exceptions())
        if loose := rows.loose_numbers():
            kept = [of for of in rows.relations if of.target not in loose]
            exceptions = rows.exceptions
            rows = _Rows.of(rows.columns, kept, rows.cells, rows.own).excepting(exceptions)
        # Numbers that recur are judged as levels, not as numbers.
        recurring = {columns[of.target].name for of in rows.relations}
        return cls(
            tuple(rows.columns),
            tuple(rows.relations),
            rows.exceptions,
            rows.limits(rows.odd.log_p),
            NumberRelations.learn(table, plan.used, recurring, rows.columns, rows.cells),
            Flags.learn(rows.columns, [of.codes for of in rows.cells]),
        )

    def judge(
        self,
        table: Table,
        *,
        own: BoolArray | None = None,
        notations: Mapping[str, Notation] = MappingProxyType({}),
    ) -> JudgedCells:
        """Judge each row; a training row (marked in `own`, (n,)) as if training had left it out.

        Ignore columns that the table lacks; write expected numbers in the `notations` of columns.
        """
        own = np.zeros(table.n_rows, dtype=bool) if own is None else own
        known = {place for place, of in enumerate(self.columns) if of.name in table.columns}
        usable = tuple(of for of in self.relations if known >= {of.given, of.target})
        if len(usable) < len(self.relations):
            return replace(self, relations=usable).judge(table, own=own, notations=notations)
        columns, cells = self.columns, [column.cells(table) for column in self.columns]
        rows = _Rows.of(columns, self.relations, cells, own).excepting(self.exceptions)
        of_flags, flags = self.flags.judge(columns, cells, own)
        found = [*rows.wrong(self.limits)]
        named = {(of.row, of.column) for of in found}
        place = {of.name: number for number, of in enumerate(columns)}
        at = np.array([of.row for of in flags], dtype=np.int64)
        # Add the evidence in `flags`, except evidence against cells that are known exceptions or
        # already called wrong, and evidence that rests on a cell already called wrong.
        found += (
            of
            for of, is_exception in zip(flags, rows.are_exceptions(at), strict=True)
            if not is_exception[place[of.column]]
            and named.isdisjoint((of.row, name) for name in (of.column, *of.given))
        )
        named = {(of.row, of.column) for of in found}
        of_numbers, numbers = self.numbers.judge(table, [*place], cells, own, named, notations)
        of_new, new = find_new_levels(columns, cells, own)
        n_looked = float(np.log(max(self.n_looked, 1)))  # Bonferroni correction for the columns
        found = [
            of._replace(log_p=min(of.log_p + n_looked, 0.0))
            for of in found
            # A question mark ("Roman?") is a doubt, not an error.
            if of.seen.removesuffix("?").rstrip() != of.expected
            and (of.log_p + n_looked <= np.log(LEVEL) or not of.seen)
        ]
        kinds = (
            self.relations, self.numbers.predictors, self.flags.counts,
            [of for of in columns if of.spec.has_levels],
        )  # fmt: skip
        of_levels = _surprise(rows.log_p.min(axis=1, initial=0.0), self.n_looked)
        smallest = -np.max([of_levels, of_numbers, of_flags, of_new], axis=0)
        # Round, so that equal rows tie in any batch.
        surprise = eight_digits(_surprise(smallest, sum(map(bool, kinds))))
        found = sorted([*found, *new], key=lambda of: of.row)
        return JudgedCells(surprise, tuple(found), numbers)


class _Odd(NamedTuple):
    """Candidates for wrong cells."""

    row: IntArray
    target: IntArray
    log_p: FloatArray  # of a misspelling: `_Rows.log_p` plus `likeness`; else `_Rows.log_right`
    # Log share of values spelt as similarly to the expected value as the cell; 0 if dissimilar.
    likeness: FloatArray
    expects: BoolArray  # whether similar rows agree on another value
    recurs: BoolArray  # whether a misspelling is too frequent for a typing error


@dataclass(frozen=True, eq=False)
class _Rows:
    columns: Sequence[LevelColumn]
    relations: Sequence[Relation]
    exceptions: Exceptions
    cells: Sequence[LevelCells]  # cells of each column
    own: BoolArray  # (n,), whether the row is a training row
    # The arrays below are (n, columns), a row for each row of the table.
    log_p: FloatArray  # log probability of each cell given the others
    log_other: FloatArray  # log probability of values other than the expected one
    log_right: FloatArray  # log probability of correct values other than the expected one
    strongest: IntArray  # index of the relation that contradicts the cell most, or -1

    @classmethod
    def learned_from(cls, columns: Sequence[LevelColumn], table: Table) -> _Rows:
        """Count which levels of a table occur together; judge each row by the other rows."""
        cells = [column.cells(table) for column in columns]
        relations = [*find_relations(columns, [of.codes for of in cells])]
        return cls.of(columns, relations, cells, np.ones(table.n_rows, dtype=bool))

    @classmethod
    def of(
        cls,
        columns: Sequence[LevelColumn],
        relations: Sequence[Relation],
        cells: Sequence[LevelCells],
        own: BoolArray,
    ) -> _Rows:
        """Judge the n rows of `cells` by all relations."""
        shape, codes = (len(columns), len(own)), [of.codes for of in cells]
        sums, most, strongest = np.zeros((5, *shape)), np.zeros(shape), np.full(shape, -1)
        for place, relation in enumerate(relations):
            b, of = relation.target, relation.judge(columns, codes, own)
            _add(sums, relation, of)
            against = -relation.gain * of.log_p
            stronger = against > most[b]
            strongest[b, stronger], most[b, stronger] = place, against[stronger]
        log_p, log_other, log_right, _ = _averages(sums)
        return cls(
            columns, relations, (), cells, own, log_p.T, log_other.T, log_right.T, strongest.T
        )

    def excepting(self, exceptions: Exceptions) -> _Rows:
        """Return the same rows, with probability 1 for the cells that are `exceptions`."""
        rows = replace(self, exceptions=exceptions)
        is_exception = rows.are_exceptions(np.arange(len(self.own)))
        return replace(rows, log_p=np.where(is_exception, 0.0, self.log_p))

    def are_exceptions(self, rows: IntArray) -> BoolArray:
        """Return which cells (r, columns) of some rows are known `exceptions`, and so never odd."""
        found = np.zeros((len(rows), len(self.cells)), dtype=bool)
        for b, a, code in self.exceptions:
            found[:, b] |= self.cells[a].codes[rows] == code
        return found

    @cached_property
    def odd(self) -> _Odd:
        row, target = np.nonzero(self.log_p < np.log(LEAST_ODD))
        likeness, (expects, recurs) = np.zeros(len(row)), np.zeros((2, len(row)), dtype=bool)
        for b in np.unique(target):
            at = np.flatnonzero(target == b)
            expected, rare = np.full(len(at), -1), np.zeros(len(at), dtype=bool)
            strongest, column = self.strongest[row[at], b], self.columns[b]
            for place in np.unique(strongest):
                of = strongest == place
                judged = self._judge(self.relations[place], row[at[of]])
                expected[of], expects[at[of]] = judged.expected, judged.agrees
                rare[of] = not self.relations[place].has_exceptions
            likeness[at] = self._likeness(int(b), row[at], expected)
            n_cells, codes = np.append(column.counts, 1), self.cells[b].codes[row[at]]
            most = np.maximum(RARE_CELLS, n_cells[expected] / TIMES_RARER)
            recurs[at] = (likeness[at] < 0) & (n_cells[codes] > most)
            expects[at] &= rare | (likeness[at] < 0) | (codes == column.missing)
        log_p = np.where(
            likeness < 0, self.log_p[row, target] + likeness, self.log_right[row, target]
        )
        return _Odd(row, target, log_p, likeness, expects, recurs)

    @cached_property
    def sure(self) -> FloatArray:
        """Limit of each cell (n, columns): the cell is odd if its `log_other` is at most this."""
        sure = np.full(self.log_p.shape, np.log(SURE))
        for line, of, column in zip(sure.T, self.cells, self.columns, strict=True):
            is_full = column.counts[-1] <= MOST_MISSING * column.counts.sum()
            line[of.codes == column.missing] = np.log(SURE_OF_GAP) if is_full else -np.inf
        return sure

    def without_misspelt(self) -> list[LevelColumn]:
        """Remove from each column the levels that are judged misspelt in most rows of the level."""
        row, target, _, likeness, _, recurs = self.odd
        columns = []
        for b, column in enumerate(self.columns):
            at = row[(target == b) & (likeness < np.log(ALIKE)) & ~recurs]
            codes, n_cells = np.unique(self.cells[b].codes[at], return_counts=True)
            columns.append(column.without(codes[2 * n_cells > column.counts[codes]]))
        return columns

    def limits(self, log_p: FloatArray) -> FloatArray:
        """Return, by column, the log probability up to which cells are called wrong."""
        odd = [log_p[self.odd.target == b] for b in range(len(self.cells))]
        return np.array([discovery_limit(of, len(self.own), FALSE_DISCOVERIES) for of in odd])

    def loose_numbers(self) -> set[int]:
        """Return the columns of numbers or dates in which more than a few cells are clearly odd.

        For example, most interviews end on the day they begin, but some correctly do not.
        """
        _, target, log_p, likeness, expects, _ = self.odd
        is_clear = (log_p <= self.limits(log_p)[target]) & expects & (likeness == 0)
        n_clear = np.bincount(target[is_clear], minlength=len(self.cells))
        many = n_clear > max(FEW, FEW_SHARE * len(self.own))
        return {b for b, of in enumerate(self.columns) if of.spec.format is not None and many[b]}

    def find_exceptions(self) -> Exceptions:
        """Find each level whose rows mostly have a clearly odd cell in one other column."""
        row, target, _, likeness, *_ = self.odd
        log_p = self.log_p[row, target] + likeness
        is_clear = log_p <= self.limits(log_p)[target]
        is_clear |= self.log_other[row, target] <= self.sure[row, target]
        found = []
        for b in np.unique(target[is_clear]):
            rows = row[is_clear & (target == b)]
            for a, (column, cells) in enumerate(zip(self.columns, self.cells, strict=True)):
                k = column.missing
                n_odd = np.bincount(cells.codes[rows], minlength=k)[:k]
                by_rule = (n_odd >= LEAST_BY_RULE) & (2 * n_odd > column.counts[:k])
                found += [(int(b), a, int(code)) for code in np.flatnonzero(by_rule & (a != b))]
        return tuple(found)

    def _judge(self, relation: Relation, rows: IntArray) -> Judgement:
        codes = [of.codes[rows] for of in self.cells]
        return relation.judge(self.columns, codes, self.own[rows])

    def _likeness(self, target: int, rows: IntArray, expected: IntArray) -> FloatArray:
        """Return the log share (r,) of values spelt as close to `expected` as each cell is."""
        column, cells = self.columns[target], self.cells[target]
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

    def wrong(self, limits: FloatArray) -> Iterator[Evidence]:
        """Yield evidence against wrong cells; `limits` are log probabilities by column."""
        row, target, log_p, likeness, expects, recurs = self.odd
        expects = expects & ~recurs
        clear = log_p <= limits[target]
        clear |= self.log_other[row, target] <= self.sure[row, target]
        clear &= expects
        alike = np.full(self.log_p.shape, np.inf)  # stays inf for cells that cannot be called wrong
        alike[row[expects], target[expects]] = likeness[expects]
        rows = np.unique(row[clear])
        step = max(MOST_AT_ONCE // len(self.cells) ** 2, 1) if len(rows) else 1
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            yield from self._blamed(part, alike[part], limits)

    def _blamed(
        self, rows: IntArray, likeness: FloatArray, limits: FloatArray
    ) -> Iterator[Evidence]:
        """Name the cell with most contradictions in each row, discard its evidence, and repeat.

        If two cells contradict each other equally, either may be wrong.
        """
        judged = [(of, self._judge(of, rows)) for of in self.relations]
        n, p = likeness.shape
        is_exception = self.are_exceptions(rows)
        named = np.zeros((n, p), dtype=bool)
        active = np.arange(n)
        while len(active):
            settled, every = named[active], np.arange(len(active))
            sums, against = np.zeros((5, p, len(active))), np.zeros((len(active), p, p))
            for relation, of in judged:
                a, b = relation.given, relation.target
                _add(sums, relation, of, active, ~settled[:, a])
                against_b = np.where(settled[:, a], 0.0, -of.log_p[active])
                either = np.maximum(against[:, a, b], against_b)
                against[:, a, b] = against[:, b, a] = either
            log_p, log_other, log_right, weight = (of.T for of in _averages(sums))
            log_p = np.where(likeness[active] < 0, log_p + likeness[active], log_right)
            is_odd = (log_p <= limits) | (log_other <= self.sure[rows[active]])
            is_odd &= (weight > 0) & ~settled & ~is_exception[active]
            is_odd &= np.isfinite(likeness[active])
            blame = (against * ~settled[:, None, :]).sum(axis=2) * ~settled
            suspect = blame.argmax(axis=1)
            most = blame[every, suspect]
            blame = np.where(is_odd, blame - TIE * log_p, -1.0)
            worst = blame.argmax(axis=1)
            largest = blame[every, worst]
            # A cell that contradicts several others is wrong even if no value is expected in it.
            is_suspect = (largest >= 0) & (most > SUSPECT * largest) & ~is_odd[every, suspect]
            blame[every, worst] = -1.0
            second = blame.argmax(axis=1)
            is_tied = (largest - blame[every, second] <= TIE) & ~is_suspect
            # If two cells tie without contradicting each other, neither is called wrong.
            is_either = is_tied & (2 * against[every, worst, second] > largest)
            goes_on = (largest >= 0) & (~is_tied | is_either)
            worst = np.where(is_suspect, suspect, worst)
            second = np.where(is_either, second, worst)
            for i in np.flatnonzero(goes_on):
                place, b = int(active[i]), int(worst[i])
                on_b = [pair for pair in judged if pair[0].target == b]
                on_b = [pair for pair in on_b if not settled[i, pair[0].given]]
                log_least = min((float(on.log_p[place]) for _, on in on_b), default=0.0)
                if is_suspect[i] and log_least > np.log(CLEARLY_WRONG):
                    continue
                of_cell = float(log_least if is_suspect[i] else log_p[i, b])
                cell = self._cell(rows[place], place, on_b, of_cell)
                if is_either[i]:
                    others = (self.columns[second[i]].name,)
                    cell = cell._replace(suggestion="", others=others)
                yield cell
            for of_row in (worst, second):
                named[active[goes_on], of_row[goes_on]] = True
            active = active[goes_on]

    def _cell(
        self,
        row: np.integer,
        place: int,
        judged: Iterable[tuple[Relation, Judgement]],
        log_p: float,
    ) -> Evidence:
        """Return evidence against a cell, by the relation that contradicts it most."""
        relation, of = min(judged, key=lambda pair: pair[0].gain * pair[1].log_p[place])
        column, given, r = self.columns[relation.target], relation.given, int(row)
        n_rows, n_agreeing = int(of.n_rows[place]), int(of.n_expected[place])
        shared = (self.columns[given].name, self.cells[given].text(r))
        expected = column.text(int(of.expected[place])) if 2 * n_agreeing > n_rows else ""
        seen = self.cells[relation.target].text(r)
        alike = RowsAlike((shared,), n_agreeing, n_rows)
        return contradicted(r, column.name, seen, expected, float(log_p), alike)


def _add(
    sums: FloatArray,
    relation: Relation,
    of: Judgement,
    rows: IntArray | slice = slice(None),
    counts: BoolArray | bool = True,
) -> None:
    """Add a relation's judgement of rows, times its gain, to `sums` (5, columns, n).

    The five sums are those of log_p, log_other and log_right, of the weights of log_p, and of the
    weights of log_other and log_right. Rows outside the mask `counts` add 0.
    """
    weight = np.multiply(relation.gain, counts, dtype=np.float64)
    parts = of.log_p, of.log_other, of.log_right, of.has_given, of.decides
    for total, part in zip(sums[:, relation.target], parts, strict=True):
        total += weight * part[rows].astype(np.float64, copy=False)


def _averages(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return means of log_p, log_other and log_right, and the weights of log_p, (columns, n)."""
    log_p, log_other, log_right, weight, deciding = sums
    for of, by in ((log_p, weight), (log_other, deciding), (log_right, deciding)):
        np.divide(of, by, out=of, where=by > 0)
    return log_p, log_other, log_right, weight


def _surprise(log_p: FloatArray, n_tried: int) -> FloatArray:
    """Return -log of the p-value of the smallest of `n_tried` p-values (Sidak correction)."""
    if not n_tried:
        return np.zeros(len(log_p))
    log_p = np.maximum(log_p, np.log(SMALLEST))
    with np.errstate(divide="ignore"):  # log(0) for p-values of 1
        log_none = n_tried * np.log1p(-np.exp(log_p))
    surprise: FloatArray = np.maximum(-np.log(-np.expm1(log_none)), 0.0)
    return surprise


def find_new_levels(
    columns: Sequence[LevelColumn], cells: Sequence[LevelCells], own: BoolArray
) -> tuple[FloatArray, tuple[Evidence, ...]]:
    """Return -log of the probability of each row's least likely new level, (n,), and evidence.

    A level of a training row (`own`, (n,)) is new if no other row has it.
    """
    pairs = [pair for pair in zip(columns, cells, strict=True) if pair[0].spec.has_levels]
    least, found = np.zeros(len(own)), list[Evidence]()
    for column, of in pairs:
        log_p = np.minimum(column.log_p_new(of.codes, own) + np.log(len(pairs)), 0.0)
        least = np.minimum(least, log_p)
        rows = np.flatnonzero((log_p < np.log(ODD_LEVEL)) & ~own)[:MAX_EVIDENCE]
        if not len(rows):
            continue
        texts, counts = column.texts, column.counts[:-1]
        writing, codes = Writing(texts, counts), of.levels.codes[rows]
        n_once, n_cells = np.count_nonzero(counts == 1), int(counts.sum())
        once = f", {n_once:,} of which have a value of their own," if n_once else ""
        for code in np.unique(codes):
            alike = rows[codes == code]
            place = writing.nearest(seen := of.text(alike[0]))
            meant = texts[place] if place >= 0 else ""
            says = f"None of the {n_cells:,} cells learned from{once} reads so."
            if meant:
                says += f" {quoted_cell(meant)} is written like it."
            p = float(log_p[alike[0]])
            one = Evidence(0, column.name, NEW, p, seen, meant, meant, n_cells, says)
            found += (one._replace(row=row) for row in alike.tolist())
    return -least, tuple(found)
