"""What a cell goes with: the distribution of its value given each other column of its row.

Rows are counted by the level of one column (a ZIP code), or of two, and of another (a city). With
n_gv rows of both, n_g of the first, and q the column's own distribution, the probability of a value
given the other is

    P(v | g) = (n_gv + m q(v)) / (n_g + m)

shrunk towards q by m rows, the row itself left out. That is the conditional mean embedding with
delta kernels and ridge m (Song et al. 2009). m is the one of highest likelihood of the left-out
rows; where that is no better than q's, the columns say nothing of each other.

What counts against a cell is the probability of a value at most as likely: of one that no other
row of the group has, m / (n_g + m) times the share of cells whose value is at most as frequent in
the whole column. The geometric mean over the columns that say something of it, weighted by how
much they say in general, is that of the cell, so that one wrong cell beside right ones does not
make them odd. A value written like the one expected is a misspelling: how few other levels are
written as much alike is further evidence, however many misspellings there are.

Cells are named at a false discovery rate (Benjamini and Hochberg 1995), learned with the counts.
Of cells that contradict each other the one that contradicts most is named, and what it said
of the others is taken back.

References
----------
L. Song, J. Huang, A. Smola, K. Fukumizu, Hilbert space embeddings of conditional distributions,
ICML 2009. Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, JRSS B 57, 1995.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec
from kpca_apps.novelty.relations.writing import Writing
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, Levels

UNRELATED = ("label", "excluded", "constant", "empty", "duplicate", "id")
# A column whose cells differ in more rows than this hardly repeats: nothing can be counted.
MOST_DISTINCT = 0.9
# Rows by which a distribution may be shrunk towards the column's own.
SHRINKAGE = 2.0 ** np.arange(-5, 10, 2)
# Of each value that a group has, what is left for new ones.
DISCOUNTS = 0.0, 0.25, 0.5, 0.75
# Least that a column has to say of another: of the nats that the other's cells take, and in all.
LEAST_SHARE, LEAST_NATS = 0.1, 20.0
# Columns and pairs of columns that speak of a cell, and columns of which pairs are tried.
MOST_GIVEN, PAIRED = 6, 5
# A pair of columns has to leave so much less to say than either alone.
PAIR_LEAVES = 0.75
# Share of wrong ones among the cells named.
FALSE_DISCOVERIES = 0.2
# Log of the share of levels written as alike below which a level is another misspelt.
LIKE = np.log(0.1)
# A missing cell is named where any other value than the one expected is less probable, and so many
# rows agree.
OTHER, LEAST_AGREEING = 0.05, 3
# Of evidence in nats: less than a tie broken by probability.
TIE = 1e-3
ROWS_AT_ONCE = 1_000
# Rows of a level, and most of them, in which a column is odd by rule.
LEAST_BY_RULE = 3
# Cells above this probability are not looked at.
LEAST_ODD = 0.25
SMALLEST = 1e-12
# Of values in a Pitman-Yor process of discount 1/2, those that occur once to those that occur twice.
ONCE_TO_TWICE = 4.0
# Of a new value, as if so many rows had it.
NEW = 0.5


@dataclass(frozen=True)
class Evidence:
    """What the rows say that share a value with that of a cell."""

    columns: tuple[str, ...]  # in which they share it: one, or two
    values: tuple[str, ...]
    n_agreeing: int  # that have the value expected
    n_rows: int  # that share it, that of the cell among them


@dataclass(frozen=True)
class JudgedCell:
    """A cell that does not go with the others of its row."""

    row: int  # from 0
    column: str
    seen: str  # stripped; empty where missing
    expected: str  # most frequent in the rows of the evidence; empty where that is open
    clearness: float  # in decimal digits
    is_misspelt: bool  # whether it is written like the value expected
    evidence: Evidence


@dataclass(frozen=True, eq=False)
class JudgedCells:
    """What the cells of n rows are, given the others of the row."""

    # -log of the probability of a cell as odd as the oddest of the row, given the others of the
    # row, and of one in its own column as rare as the rarest; 0 where nothing is said.
    surprise: FloatArray  # (n,)
    rarity: FloatArray  # (n,)
    cells: tuple[JudgedCell, ...]  # the clear ones, in the order of the rows


class _Cells(NamedTuple):
    """The cells of a column."""

    codes: IntArray  # (n,), place of each among the levels that were learned
    levels: Levels  # those of the table itself

    def text(self, row: int) -> str:
        """Return what stands in a cell, empty where it is missing."""
        code = int(self.levels.codes[row])
        return str(self.levels.texts[code]) if code >= 0 else ""


@dataclass(frozen=True, eq=False)
class LevelColumn:
    """The levels of a column, and how often each occurs."""

    name: str
    is_truth: bool  # words for true and false, in lower case
    texts: tuple[str, ...]
    # Of each level, and of missing cells.
    counts: Annotated[IntArray, "k", Meta(ge=0, le=2**53)]

    def validate(self) -> None:
        """Refuse counts of other levels."""
        if len(self.counts) != len(self.texts) + 1 or len({*self.texts}) != len(self.texts):
            raise ValueError(f"{len(self.counts)} counts of {len(self.texts)} levels")

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec) -> LevelColumn:
        """Count the levels of a column."""
        levels = spec.levels(column)
        counts = np.bincount(np.where(levels.codes < 0, len(levels.texts), levels.codes),
                             minlength=len(levels.texts) + 1)
        return cls(column.name, spec.is_truth, tuple(levels.texts), counts)

    def without(self, dropped: IntArray) -> LevelColumn:
        """Return the column without the levels of some codes, as if never seen."""
        kept = np.delete(np.arange(len(self.counts)), dropped)
        texts = tuple(self.texts[place] for place in kept[:-1])
        return replace(self, texts=texts, counts=self.counts[kept])

    @property
    def missing(self) -> int:
        """Code of missing cells; that of values never seen is the next."""
        return len(self.texts)

    def cells(self, table: Table) -> _Cells:
        """Find the cells of a table among the levels."""
        column = table.column(self.name)
        levels = column.levels.lower() if self.is_truth else column.levels
        places = self._places
        known = np.array([places.get(text, self.missing + 1) for text in levels.texts], np.int64)
        return _Cells(levels.each(known, self.missing), levels)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {text: place for place, text in enumerate(self.texts)}

    @cached_property
    def rarity(self) -> FloatArray:
        """Share of the cells whose value is at most as frequent as each, (k + 2,)."""
        values, place, times = np.unique(self.counts, return_inverse=True, return_counts=True)
        cells = np.cumsum(values * times)
        once = cells[values <= 1].max(initial=0)
        shares: FloatArray = (np.append(cells[place], once) + 1.0) / (cells[-1] + 1.0)
        return shares

    def text(self, code: int) -> str:
        """Return the level of a code, empty for missing cells."""
        return self.texts[code] if code < self.missing else ""


@dataclass(frozen=True, eq=False)
class Relation:
    """How many rows have each level of a column beside each of another, or of two others."""

    given: tuple[Annotated[int, Meta(ge=0)], ...]  # places of one column, or two
    target: Annotated[int, Meta(ge=0)]
    shrinkage: Annotated[float, Meta(gt=0, le=1e6)]  # m
    discount: Annotated[float, Meta(ge=0, lt=1)]  # d
    gain: Annotated[float, Meta(ge=0, le=1e3)]  # in nats a row, over the column's own distribution
    groups: Annotated[IntArray, "g", Meta(ge=0)]  # keys of the levels given, increasing
    # Place of the group times the codes of the target, plus the code; increasing.
    pairs: Annotated[IntArray, "p", Meta(ge=0)]
    counts: Annotated[IntArray, "p", Meta(ge=1, le=2**53)]
    n_codes: Annotated[int, Meta(ge=1)]  # of the target

    def validate(self) -> None:
        """Refuse what no table leads to."""
        sound = (
            len(self.given) in (1, 2)
            and len({*self.given, self.target}) == len(self.given) + 1
            and (np.diff(self.groups) > 0).all()
            and (np.diff(self.pairs) > 0).all()
            and np.array_equal(np.unique(self.pairs // self.n_codes), np.arange(len(self.groups)))
        )
        if not sound:
            raise ValueError("its counts are not those of two columns")

    @cached_property
    def isolated(self) -> float:
        """Probability that the only row of a value in its group has it by right.

        As many values as occur twice would occur by right in one row up to `ONCE_TO_TWICE` times.
        """
        group, code = self.pairs // self.n_codes, self.pairs % self.n_codes
        others = (self.sums.n_rows[group] > 2) & (code != self.sums.first[group])
        once, twice = (np.count_nonzero(others & (self.counts == n)) for n in (1, 2))
        return float(min(ONCE_TO_TWICE * (twice + 0.5) / (once + 0.5), 1.0))

    @cached_property
    def sums(self) -> _GroupSums:
        """What the groups hold."""
        return _GroupSums.of(self.pairs // self.n_codes, self.pairs % self.n_codes, self.counts)


class Prior(NamedTuple):
    """How a distribution is shrunk."""

    shrinkage: float  # m
    discount: float  # d


class _GroupSums(NamedTuple):
    """The values of each group of rows, from counts that are sorted by group."""

    n_rows: IntArray  # (g,)
    n_kinds: IntArray  # (g,), different values
    first: IntArray  # (g,), code of the most frequent value
    n_first: IntArray
    second: IntArray  # of the next, -1 where there is none
    n_second: IntArray
    rarer: IntArray  # (p,), rows of values of the group that are rarer than each
    as_rare: IntArray  # (p,), or as rare

    @classmethod
    def of(cls, group: IntArray, code: IntArray, counts: IntArray) -> _GroupSums:
        order = np.lexsort((-code, counts, group))
        of_group, ordered = group[order], counts[order]
        n_groups = int(of_group[-1]) + 1 if len(order) else 0
        n_rows = np.bincount(group, counts, n_groups).astype(np.int64)
        last = np.cumsum(np.bincount(group, minlength=n_groups)) - 1
        before = last - 1
        has_second = before >= np.r_[0, last[:-1] + 1]
        # Rows of the group up to each value; of equal counts, those before the first and of all.
        total = np.cumsum(ordered)
        starts_count = np.r_[True, (np.diff(of_group) != 0) | (np.diff(ordered) != 0)]
        run = np.cumsum(starts_count) - 1
        ends = np.r_[np.flatnonzero(starts_count)[1:], len(order)] - 1
        earlier = np.cumsum(n_rows) - n_rows
        rarer, as_rare = np.empty_like(counts), np.empty_like(counts)
        start = np.flatnonzero(starts_count)
        rarer[order] = (total - ordered)[start][run] - earlier[of_group]
        as_rare[order] = total[ends][run] - earlier[of_group]
        return cls(
            n_rows,
            np.bincount(group, minlength=n_groups),
            code[order][last],
            ordered[last],
            np.where(has_second, code[order][before], -1),
            np.where(has_second, ordered[before], 0),
            rarer,
            as_rare,
        )


class _Said(NamedTuple):
    """What a relation says of n rows."""

    speaks: BoolArray  # whether there is a value given
    log_p: FloatArray  # log probability of a value at most as likely; 0 where it does not speak
    expected: IntArray  # most frequent in the other rows of the group
    n_expected: IntArray  # rows of the group that have it
    n_rows: IntArray  # of the group, without this one


@dataclass(frozen=True, eq=False)
class Exceptions:
    """Rows in which a column is odd by rule: most rows are that have one level of another."""

    target: Annotated[IntArray, "e", Meta(ge=0)]  # places of columns
    given: Annotated[IntArray, "e", Meta(ge=0)]
    code: Annotated[IntArray, "e", Meta(ge=0)]  # of the level given


@dataclass(frozen=True, eq=False)
class LevelRelations:
    """What the columns of a table say of each other's cells."""

    columns: tuple[LevelColumn, ...]
    relations: tuple[Relation, ...]
    exceptions: Exceptions
    limits: Annotated[FloatArray, "c", Meta(le=0)]  # of each column: cells of less log probability are named

    def validate(self) -> None:
        """Refuse relations of other columns."""
        for relation in self.relations:
            if max(*relation.given, relation.target) >= len(self.columns):
                raise ValueError("a relation of columns that are not there")
            if relation.n_codes != len(self.columns[relation.target].counts):
                raise ValueError("a relation of other levels")
        excepted = self.exceptions
        if (np.maximum(excepted.target, excepted.given) >= len(self.columns)).any():
            raise ValueError("exceptions in columns that are not there")

    @classmethod
    def learn(cls, table: Table, plan: ColumnPlan) -> LevelRelations:
        """Learn from the rows of a table, or some drawn from it."""
        columns = []
        for spec in plan.specs:
            if spec.role not in UNRELATED:
                column = LevelColumn.of(table.column(spec.name), spec)
                n_cells = column.counts.sum() - column.counts[-1]
                is_kept = 1 < np.count_nonzero(column.counts)
                if is_kept and len(column.texts) <= MOST_DISTINCT * n_cells:
                    columns.append(column)
        rows = cls._of(columns, table)
        rows = cls._of(rows.without_misspelt(), table)
        rows = rows.excepting(rows.exceptions())
        return replace(rows.learned, limits=rows.limits())

    @classmethod
    def _of(cls, columns: Sequence[LevelColumn], table: Table) -> _Rows:
        """Count the levels of columns beside each other, and judge the rows, each left out."""
        cells = [column.cells(table) for column in columns]
        relations = tuple(_find_relations(columns, [of.codes for of in cells]))
        none = np.zeros(0, dtype=np.int64)
        learned = cls(tuple(columns), relations, Exceptions(none, none, none), np.zeros(len(columns)))
        return _Rows.of(learned, cells, np.ones(table.frame.height, dtype=bool))

    def judge(self, table: Table, *, own: BoolArray | None = None) -> JudgedCells:
        """Judge the cells of rows; those it was learned from (`own`, (n,)) as if left out."""
        cells = [column.cells(table) for column in self.columns]
        own = np.zeros(table.frame.height, dtype=bool) if own is None else own
        rows = _Rows.of(self, cells, own)
        return JudgedCells(rows.surprise(), rows.rarity(), rows.named())


class _Odd(NamedTuple):
    """Cells that are odd given the others, before it is known whose fault it is."""

    row: IntArray
    target: IntArray
    log_p: FloatArray  # with how the value is written
    likeness: FloatArray  # log of how few levels are written as much like the one expected


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows whose cells are judged."""

    learned: LevelRelations
    cells: Sequence[_Cells]  # of each column
    own: BoolArray  # whether the relations were learned from the row

    log_p: FloatArray  # (n, targets)
    strongest: IntArray  # (n, targets), place of the relation that says most against the cell

    @classmethod
    def of(cls, learned: LevelRelations, cells: Sequence[_Cells], own: BoolArray) -> _Rows:
        n, p = len(own), len(learned.columns)
        log_p, weight = np.zeros((p, n)), np.zeros((p, n))
        strongest, most = np.full((p, n), -1), np.zeros((p, n))
        for place, relation in enumerate(learned.relations):
            said = _ask(learned, relation, [of.codes for of in cells], own)
            b = relation.target
            log_p[b] += relation.gain * said.log_p
            weight[b] += relation.gain * said.speaks
            against = -relation.gain * said.log_p
            stronger = against > most[b]
            strongest[b, stronger], most[b, stronger] = place, against[stronger]
        np.divide(log_p, weight, out=log_p, where=weight > 0)
        of = learned.exceptions
        for b, a, code in zip(of.target, of.given, of.code, strict=True):
            log_p[b, cells[a].codes == code] = 0.0
        return cls(learned, cells, own, log_p.T, strongest.T)

    @property
    def n_targets(self) -> int:
        """Columns that are judged."""
        return len({relation.target for relation in self.learned.relations})

    def surprise(self) -> FloatArray:
        """Of each row, that of its oddest cell given the others."""
        return _of_smallest(self.log_p.min(axis=1, initial=0.0), self.n_targets)

    def rarity(self) -> FloatArray:
        """Of each row, that of its rarest cell."""
        smallest = np.zeros(len(self.own))
        for column, cells in zip(self.learned.columns, self.cells, strict=True):
            smallest = np.minimum(smallest, np.log(column.rarity[cells.codes]))
        return _of_smallest(smallest, len(self.cells))

    @cached_property
    def odd(self) -> _Odd:
        """Cells that may be named."""
        row, target = np.nonzero(self.log_p < np.log(LEAST_ODD))
        log_p = self.log_p[row, target]
        likeness = np.zeros(len(row))
        for b in np.unique(target):
            of_column = np.flatnonzero(target == b)
            expected = self._expected(row[of_column], b)
            likeness[of_column] = _likeness(
                self.learned.columns[b], self.cells[b], row[of_column], expected
            )
        return _Odd(row, target, log_p + likeness, likeness)

    def without_misspelt(self) -> list[LevelColumn]:
        """Return the columns without the levels that are others misspelt, by the rows they are in.

        Counted as values, they would make misspellings likely.
        """
        row, target, _, likeness = self.odd
        columns = []
        for b, column in enumerate(self.learned.columns):
            at = row[(target == b) & (likeness < LIKE)]
            codes, n_cells = np.unique(self.cells[b].codes[at], return_counts=True)
            columns.append(column.without(codes[2 * n_cells > column.counts[codes]]))
        return columns

    def exceptions(self) -> Exceptions:
        """Find the levels of columns beside which another column is odd in most rows."""
        row, target, log_p, _ = self.odd
        is_clear = log_p <= self.limits()[target]
        found = []
        for b in np.unique(target[is_clear]):
            rows = row[is_clear & (target == b)]
            for a, (column, cells) in enumerate(zip(self.learned.columns, self.cells, strict=True)):
                n_codes = column.missing
                n_odd = np.bincount(cells.codes[rows], minlength=n_codes)[:n_codes]
                by_rule = (n_odd >= LEAST_BY_RULE) & (2 * n_odd > column.counts[:n_codes])
                found += [(b, a, code) for code in np.flatnonzero(by_rule & (a != b))]
        return Exceptions(*np.array(found, dtype=np.int64).reshape(-1, 3).T.copy())

    def excepting(self, exceptions: Exceptions) -> _Rows:
        """Judge the same rows with exceptions."""
        learned = replace(self.learned, exceptions=exceptions)
        return _Rows.of(learned, self.cells, self.own)

    def limits(self) -> FloatArray:
        """Log probability, in each column, below which few cells are there by chance."""
        row, target, log_p, _ = self.odd
        limits = np.full(len(self.cells), np.log(FALSE_DISCOVERIES / max(len(self.own), 1)))
        for b in np.unique(target):
            ordered = np.sort(log_p[target == b])
            allowed = limits[b] + np.log(np.arange(1, len(ordered) + 1))
            below = np.flatnonzero(ordered <= allowed)
            if len(below):
                limits[b] = allowed[below[-1]]
        return limits

    def named(self) -> tuple[JudgedCell, ...]:
        """The clear cells, in the order of the rows."""
        row, target, log_p, likeness = self.odd
        clear = log_p <= self.learned.limits[target]
        like = dict(zip(zip(row[clear].tolist(), target[clear].tolist(), strict=True),
                        likeness[clear].tolist(), strict=True))
        rows = np.unique(row[clear])
        found = [
            cell
            for start in range(0, len(rows), ROWS_AT_ONCE)
            for cell in self._blamed(rows[start : start + ROWS_AT_ONCE], like)
        ]
        named = {(cell.row, cell.column) for cell in found}
        found += [cell for cell in self._gaps() if (cell.row, cell.column) not in named]
        return tuple(sorted(found, key=lambda cell: cell.row))

    def _blamed(
        self, rows: IntArray, like: dict[tuple[int, int], float]
    ) -> Iterator[JudgedCell]:
        """Name the wrong cells of rows, one a row at a time, and take back what each says.

        Each contradiction is one of two cells; the cell of most of them is named.
        """
        n, p = len(rows), len(self.learned.columns)
        relations, limits = self.learned.relations, self.learned.limits
        codes, own = [of.codes[rows] for of in self.cells], self.own[rows]
        said = [_ask(self.learned, relation, codes, own) for relation in relations]
        free = self._excepted(rows)
        alike = np.zeros((n, p))
        for (row, b), log_share in like.items():
            place = np.searchsorted(rows, row)
            if place < n and rows[place] == row:
                alike[place, b] = log_share
        removed = np.zeros((n, p), dtype=bool)
        active = np.arange(n)
        while len(active):
            sums, weight = np.zeros((len(active), p)), np.zeros((len(active), p))
            against = np.zeros((len(active), p, p))
            for relation, of in zip(relations, said, strict=True):
                b, given = relation.target, list(relation.given)
                speaks = of.speaks[active] & ~removed[active][:, given].any(axis=1)
                lost = np.where(speaks, of.log_p[active], 0.0)
                sums[:, b] += relation.gain * lost
                weight[:, b] += relation.gain * speaks
                for a in given:
                    both = np.maximum(against[:, a, b], -lost)
                    against[:, a, b] = against[:, b, a] = both
            log_p = np.divide(sums, weight, out=np.zeros_like(sums), where=weight > 0)
            log_p += alike[active]
            is_odd = (log_p <= limits) & ~removed[active] & ~free[active]
            blame = (against * ~removed[active][:, None, :]).sum(axis=2)
            # Of two that contradict each other alone, the less probable.
            blame = np.where(is_odd, blame - TIE * log_p, -1.0)
            at, worst = np.arange(len(active)), blame.argmax(axis=1)
            largest = blame[at, worst]
            blame[at, worst] = -1.0
            goes_on = (largest > 0) & (largest - blame.max(axis=1, initial=-1.0) > TIE)
            for i in np.flatnonzero(goes_on):
                r, b = int(active[i]), int(worst[i])
                yield self._cell(int(rows[r]), r, b, said, removed[r], float(log_p[i, b]),
                                 bool(alike[r, b] < 0))
            removed[active[goes_on], worst[goes_on]] = True
            active = active[goes_on]

    def _excepted(self, rows: IntArray) -> BoolArray:
        """Whether a column is odd by rule in rows, (r, columns)."""
        free = np.zeros((len(rows), len(self.cells)), dtype=bool)
        of = self.learned.exceptions
        for b, a, code in zip(of.target, of.given, of.code, strict=True):
            free[:, b] |= self.cells[a].codes[rows] == code
        return free

    def _gaps(self) -> Iterator[JudgedCell]:
        """Name the missing cells whose value nearly all rows have that share another with theirs."""
        relations = self.learned.relations
        for b, column in enumerate(self.learned.columns):
            rows = np.flatnonzero(
                (self.cells[b].codes == column.missing) & (self.log_p[:, b] < 0)
            )
            of_column = [relation for relation in relations if relation.target == b]
            if not len(rows) or not of_column:
                continue
            codes, own = [of.codes[rows] for of in self.cells], self.own[rows]
            said = [_ask(self.learned, relation, codes, own) for relation in of_column]
            sums, weight = np.zeros(len(rows)), np.zeros(len(rows))
            for relation, of in zip(of_column, said, strict=True):
                share = (of.n_rows - of.n_expected + relation.shrinkage) / (
                    of.n_rows + relation.shrinkage
                )
                agree = (of.n_expected >= LEAST_AGREEING) & (of.expected < column.missing)
                sums += relation.gain * np.where(agree, np.log(share), 0.0)
                weight += relation.gain * (of.n_rows > 0)
            log_p = np.divide(sums, weight, out=sums, where=weight > 0)
            nothing = np.zeros(len(self.learned.columns), dtype=bool)
            for r in np.flatnonzero(log_p <= np.log(OTHER)):
                yield self._cell(int(rows[r]), int(r), b, said, nothing, float(log_p[r]), False,
                                 of_column)

    def _expected(self, row: IntArray, target: int) -> IntArray:
        """Code of the value that the strongest relation expects in cells of a column."""
        expected = np.full(len(row), -1)
        strongest = self.strongest[row, target]
        for place in np.unique(strongest[strongest >= 0]):
            at = strongest == place
            codes = [of.codes[row[at]] for of in self.cells]
            relation = self.learned.relations[place]
            expected[at] = _ask(self.learned, relation, codes, self.own[row[at]]).expected
        return expected

    def _cell(
        self,
        row: int,
        place: int,
        target: int,
        said: Sequence[_Said],
        removed: BoolArray,
        log_p: float,
        is_misspelt: bool,
        relations: Sequence[Relation] | None = None,
    ) -> JudgedCell:
        """Put a cell into words, with what the relation says that speaks most against it."""
        columns = self.learned.columns
        relation, of = min(
            (
                (relation, of)
                for relation, of in zip(relations or self.learned.relations, said, strict=True)
                if relation.target == target and not removed[list(relation.given)].any()
            ),
            key=lambda pair: pair[0].gain * pair[1].log_p[place],
        )
        expected = int(of.expected[place])
        n_rows, n_agreeing = int(of.n_rows[place]), int(of.n_expected[place])
        return JudgedCell(
            row=row,
            column=columns[target].name,
            seen=self.cells[target].text(row),
            expected=columns[target].text(expected) if 2 * n_agreeing > n_rows else "",
            clearness=-log_p / np.log(10.0),
            is_misspelt=is_misspelt,
            evidence=Evidence(
                columns=tuple(columns[a].name for a in relation.given),
                values=tuple(self.cells[a].text(row) for a in relation.given),
                n_agreeing=n_agreeing,
                n_rows=n_rows + 1,
            ),
        )


def _of_smallest(log_p: FloatArray, n_tried: int) -> FloatArray:
    """-log of the probability that the smallest of so many p-values is that small (Sidak)."""
    with np.errstate(divide="ignore"):
        at_least = np.log1p(-np.exp(np.maximum(log_p, np.log(SMALLEST))))
        none_smaller = max(n_tried, 1) * at_least
    surprise: FloatArray = np.maximum(-np.log(-np.expm1(none_smaller)), 0.0)
    return surprise


def _find_relations(
    columns: Sequence[LevelColumn], codes: Sequence[IntArray]
) -> Iterator[Relation]:
    """Find which columns, and pairs of columns, say something of each."""
    n = len(codes[0]) if codes else 0
    own = [_own_log_q(column) for column in columns]
    found: list[list[tuple[float, Prior, tuple[int, ...]]]] = [[] for _ in columns]
    for a, b in combinations(range(len(columns)), 2):
        n_a, n_b = len(columns[a].counts), len(columns[b].counts)
        first, second, counts = _joint(codes[a], codes[b], n_a, n_b)
        for (g, given), (t, value) in (((a, first), (b, second)), ((b, second), (a, first))):
            gain, prior = _gain(columns[g].missing, given, value, counts, own[t], n)
            if _says_something(gain, own[t], columns[t], n):
                found[t].append((gain, prior, (g,)))
    for t, column in enumerate(columns):
        found[t].sort(reverse=True)
        whole = float((own[t] * column.counts).sum()) / -n
        best = found[t][0][0] if found[t] else 0.0
        if whole - best > LEAST_SHARE * whole:
            pairs = combinations([given[0] for _, _, given in found[t][:PAIRED]], 2)
            for a, b in pairs:
                group = _pair_keys(columns, codes, (a, b))
                keys, place = np.unique(group, return_inverse=True)
                of_target = np.where(group >= 0, codes[t], len(column.counts))
                joint = _joint(place, of_target, len(keys), len(column.counts))
                gain, prior = _gain(len(keys), *joint, own[t], n)
                alone = max(of for of, _, one in found[t] if one in ((a,), (b,)))
                if whole - gain < PAIR_LEAVES * (whole - alone):
                    found[t].append((gain, prior, (a, b)))
            found[t].sort(reverse=True)
        for gain, prior, of in found[t][:MOST_GIVEN]:
            yield _relation(columns, codes, of, t, prior, gain)


def _says_something(gain: float, log_q: FloatArray, column: LevelColumn, n: int) -> bool:
    whole = float((log_q * column.counts).sum()) / -n
    return gain > LEAST_SHARE * whole and gain * n > LEAST_NATS


def _own_log_q(column: LevelColumn) -> FloatArray:
    """Log of a column's own distribution at each of its values, one cell of it left out."""
    k = len(column.counts)
    n = column.counts.sum()
    log_q: FloatArray = np.log((np.maximum(column.counts - 1, 0) + NEW) / (n - 1 + NEW * (k + 1)))
    return log_q


def _joint(
    a: IntArray, b: IntArray, n_a: int, n_b: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Which of so many values of two columns occur together, in order, and in how many rows."""
    known = (a < n_a) & (b < n_b)
    keys, counts = np.unique((a * n_b + b)[known], return_counts=True)
    return keys // n_b, keys % n_b, counts


def _gain(
    missing: int,
    given: IntArray,
    value: IntArray,
    counts: IntArray,
    log_q: FloatArray,
    n: int,
) -> tuple[float, Prior]:
    """How much rows given say of a value, in nats a row, and the shrinkage that says most.

    Of the likelihood of n rows, each left out; missing cells say nothing.
    """
    sizes = np.bincount(given, counts)
    speaks = (given != missing) & (sizes[given] > 1)
    given, value, counts = given[speaks], value[speaks], counts[speaks]
    rest, others = sizes[given] - 1, counts - 1
    q = np.exp(log_q[value])
    base = float(counts @ log_q[value])
    # Without the row its value is new to the group where no other row has it.
    kinds = np.bincount(given, minlength=len(sizes))[given] - (others == 0)

    def gain(m: float, d: float) -> tuple[float, Prior]:
        p = (np.maximum(others - d, 0.0) + (m + d * kinds) * q) / (rest + m)
        return (float(counts @ np.log(p)) - base) / n, Prior(m, d)

    _, best = max(gain(float(m), 0.0) for m in SHRINKAGE)
    return max(gain(best.shrinkage, float(d)) for d in DISCOUNTS)


def _pair_keys(
    columns: Sequence[LevelColumn], codes: Sequence[IntArray], given: tuple[int, ...]
) -> IntArray:
    """A number for the levels of each row in the columns given; -1 where one is missing or new."""
    key = np.zeros(len(codes[given[0]]), dtype=np.int64)
    known = np.ones(len(key), dtype=bool)
    for a in given:
        key = key * len(columns[a].counts) + codes[a]
        known &= codes[a] < columns[a].missing
    return np.where(known, key, -1)


def _relation(
    columns: Sequence[LevelColumn],
    codes: Sequence[IntArray],
    given: tuple[int, ...],
    target: int,
    prior: Prior,
    gain: float,
) -> Relation:
    """Count the rows of each level given and each of the target."""
    key = _pair_keys(columns, codes, given)
    n_codes = len(columns[target].counts)
    seen = (key >= 0) & (codes[target] < n_codes)
    groups, place = np.unique(key[seen], return_inverse=True)
    pairs, counts = np.unique(place * n_codes + codes[target][seen], return_counts=True)
    return Relation(given, target, prior.shrinkage, prior.discount, gain, groups, pairs, counts, n_codes)


def _ask(
    learned: LevelRelations, relation: Relation, codes: Sequence[IntArray], own: BoolArray
) -> _Said:
    """Ask a relation what it says of rows, those it was learned from left out."""
    sums, value = relation.sums, codes[relation.target]
    own = own & (value < relation.n_codes)  # a value not learned was not counted
    key = _pair_keys(learned.columns, codes, relation.given)
    group, known = _find(relation.groups, key)
    is_new = value >= relation.n_codes
    pair, is_pair = _find(relation.pairs, group * relation.n_codes + value)
    is_pair &= known & ~is_new
    n_rows = np.where(known, sums.n_rows[group] - own, 0)
    n_same = np.where(is_pair, relation.counts[pair] - own, 0)
    as_likely = np.where(own, sums.rarer[pair] + n_same, sums.as_rare[pair])
    as_likely = np.where(n_same > 0, as_likely, 0)
    m, rarity = relation.shrinkage, learned.columns[relation.target].rarity[value]
    n_kinds = sums.n_kinds[group] - (own & (n_same == 0))
    new = relation.shrinkage + relation.discount * n_kinds
    p = np.minimum((as_likely + new * rarity) / (n_rows + m), 1.0)
    p = np.where((n_same == 0) & (sums.n_first[group] > 1), p * relation.isolated, p)
    # Without this row the most frequent value may be another.
    is_first = known & (sums.first[group] == value)
    other = is_first & (sums.n_first[group] - own < sums.n_second[group])
    expected = np.where(other, sums.second[group], sums.first[group])
    n_expected = np.where(other, sums.n_second[group], sums.n_first[group] - (own & is_first))
    speaks = n_rows > 0
    return _Said(
        key >= 0,
        np.where(speaks, np.log(p), 0.0),
        np.where(speaks, expected, -1),
        np.where(speaks, n_expected, 0),
        n_rows,
    )


def _find(ordered: IntArray, wanted: IntArray) -> tuple[IntArray, BoolArray]:
    """Place of each number among those in order (0 where it is none), and whether it is there."""
    place = np.minimum(np.searchsorted(ordered, wanted), max(len(ordered) - 1, 0))
    found = ordered[place] == wanted
    return np.where(found, place, 0), found


def _likeness(
    column: LevelColumn, cells: _Cells, rows: IntArray, expected: IntArray
) -> FloatArray:
    """Log of how few levels are written as much like each expected as that in the row, (r,)."""
    likeness = np.zeros(len(rows))
    seen = cells.levels.codes[rows]
    is_other = cells.codes[rows] != expected
    at = np.flatnonzero((seen >= 0) & (expected >= 0) & (expected < column.missing) & is_other)
    if len(at):
        writing = Writing(column.texts, column.counts[:-1])
        pairs, place = np.unique(
            np.column_stack([seen[at], expected[at]]), axis=0, return_inverse=True
        )
        n_cells = np.append(column.counts, 1)[cells.codes[rows[at]]]
        n_cells = n_cells[np.unique(place.ravel(), return_index=True)[1]]
        found = [
            writing.likeness(str(cells.levels.texts[int(a)]), int(n), int(b))
            for (a, b), n in zip(pairs, n_cells, strict=True)
        ]
        likeness[at] = np.array(found)[place.ravel()]
    return likeness
