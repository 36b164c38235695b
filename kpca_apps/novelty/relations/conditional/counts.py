"""Levels of columns counted beside each other: how probable a value is given another of its row.

Rows are counted by the level of one column (a ZIP code) and of another (a city). With
n_gv rows of both, n_g of the first and t_g different values among these, and q the column's own
distribution, the probability of a value given the other is that of a Pitman-Yor process,

    P(v | g) = (max(n_gv - d, 0) + (m + d t_g) q(v)) / (n_g + m)

shrunk towards q, the row itself left out. With d = 0 that is the conditional mean embedding with
delta kernels and ridge m (Song et al. 2009); d leaves more for new values where a group has many.
Both are those of highest likelihood of the left-out rows; where that is no better than q's, the
columns say nothing of each other.

What counts against a cell is the probability of a value at most as likely: of one that no other
row of the group has, (m + d t_g) / (n_g + m) times the share of cells whose value is at most as
frequent in the whole column. Of values that only one row of their group has, some are right: such
a process has at most about four of them for each that two rows have (at d = 1/2). Where there are
many more, the others are wrong, and one is as improbable as that ratio says.

References
----------
L. Song, J. Huang, A. Smola, K. Fukumizu, Hilbert space embeddings of conditional distributions,
ICML 2009. Y. W. Teh, A hierarchical Bayesian language model based on Pitman-Yor processes, ACL
2006, equation 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl
from msgspec import Meta

from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, Levels

# m and d that are tried.
SHRINKAGE = (2.0**-5, 2.0**-3, 0.5, 2.0, 8.0, 32.0, 128.0, 512.0)
DISCOUNTS = (0.0, 0.25, 0.5, 0.75)
# Least that a column has to say of another: of the nats that the other's cells take, and in all.
LEAST_SHARE, LEAST_NATS = 0.1, 20.0
MOST_GIVEN = 6  # columns that speak of a cell
# Pairs of columns that are tried: beyond 316 columns those that lie near each other. All pairs of
# 250 columns of 3,000 rows take 5 of 17 CPU seconds of a screening.
MOST_TRIED = 50_000
# Values of one row in their group for each of two rows, where they are there by right.
ONCE_TO_TWICE = 4.0
# Share of those of one row that may be there by right where they are taken for wrong.
MOST_BY_RIGHT = 0.1
# Share of the rows like its own that agree on another value than that of a cell.
AGREEING = 0.75
# A value is expected where so many rows agree, and less is left for others.
LEAST_AGREEING, UNDECIDED = 5, 0.1
# What says that a value is missing speaks neither for nor against others.
NOT_KNOWN = ("unknown", "not known", "unk", "nk", "not stated", "not available", "tbd")
# Of a new value, as if so many rows had it.
NEW = 0.5
# Up to so many possible pairs of values for each row, all are counted; beyond, those that occur.
DENSE = 8
LARGEST_COUNT = 2**53


class Cells(NamedTuple):
    """The cells of a column."""

    codes: IntArray  # (n,), as `LevelColumn` numbers its values
    levels: Levels  # those of the table itself

    def text(self, row: int) -> str:
        """Return what stands in a cell, empty where it is missing."""
        code = int(self.levels.codes[row])
        return str(self.levels.texts[code]) if code >= 0 else ""


@dataclass(frozen=True, eq=False)
class LevelColumn:
    """The levels of a column, and how often each occurs.

    A cell's code is the place of its level; the next is that of missing cells, and the one after
    of values that were never seen.
    """

    name: str
    spec: ColumnSpec
    texts: tuple[str, ...]  # of numbers and dates the commonest spelling of each value
    counts: Annotated[IntArray, "k", Meta(ge=0, le=LARGEST_COUNT)]  # of each level, and of missing

    def validate(self) -> None:
        """Refuse counts of other levels."""
        if len(self.counts) != len(self.texts) + 1 or len({*self.texts}) != len(self.texts):
            raise ValueError(f"{len(self.counts)} counts of {len(self.texts)} levels")
        if (self.counts[:-1] < 1).any():
            raise ValueError("a level that no row has")

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec) -> LevelColumn:
        """Count the levels of a column."""
        levels = spec.levels(column)
        is_known = ~levels.texts.str.to_lowercase().is_in([*NOT_KNOWN]).to_numpy()
        texts, counts = levels.texts.filter(is_known), levels.counts[is_known]
        n_missing = len(column) - int(counts.sum())
        if spec.format is not None and len(texts):
            # Equal numbers are one level, however written: the commonest spelling stands for it.
            values = levels.read(spec.format).values[is_known]
            every = np.arange(len(texts))
            is_text = np.isnan(values)
            group = len(texts) + every
            group[~is_text] = np.unique(values[~is_text], return_inverse=True)[1]
            order = np.lexsort((every, -counts, group))
            starts = np.unique(group[order], return_index=True)[1]
            in_table = np.argsort(np.minimum.reduceat(order, starts))
            counts = np.add.reduceat(counts[order], starts)[in_table]
            texts = texts[order[starts][in_table]]
        counts = np.append(counts, n_missing).astype(np.int64)
        return cls(column.name, spec, tuple(texts.to_list()), counts)

    def without(self, codes: IntArray) -> LevelColumn:
        """Return the column without some levels, as if they had never been seen."""
        if not len(codes):
            return self
        kept = np.delete(np.arange(len(self.counts)), codes)
        texts = tuple(self.texts[place] for place in kept[:-1])
        return replace(self, texts=texts, counts=self.counts[kept])

    @property
    def missing(self) -> int:
        """Code of missing cells."""
        return len(self.texts)

    @property
    def n_codes(self) -> int:
        """Codes of what was seen: levels and missing cells."""
        return len(self.counts)

    def cells(self, table: Table) -> Cells:
        """Find the cells of a table among the levels; all are missing where it lacks the column."""
        if self.name not in table.columns:
            n_rows, none = table.frame.height, pl.Series([], dtype=pl.String)
            codes = np.full(n_rows, self.missing, dtype=np.int64)
            return Cells(codes, Levels(none, np.full(n_rows, -1, dtype=np.int32)))
        levels = table.column(self.name).levels
        texts = levels.texts.str.to_lowercase() if self.spec.is_truth else levels.texts
        words, numbers, places = self._known
        unknown = dict.fromkeys(NOT_KNOWN, self.missing)
        new = (unknown.get(text.lower(), self.n_codes) for text in texts)
        of_texts = (words.get(text, code) for text, code in zip(texts, new, strict=True))
        codes = np.fromiter(of_texts, np.int64, len(texts))
        if self.spec.format is not None:
            values = levels.read(self.spec.format).values
            at = np.searchsorted(numbers, values, side="right") - 1
            known = np.append(numbers, np.nan)[at] == values
            codes[known] = places[at[known]]
        return Cells(levels.each(codes, self.missing), levels)

    def text(self, code: int) -> str:
        """Return the level of a code, empty for missing cells."""
        return self.texts[code] if code < self.missing else ""

    @cached_property
    def _known(self) -> tuple[dict[str, int], FloatArray, IntArray]:
        """Places of levels that are texts; and levels that are numbers, in order, with theirs."""
        if self.spec.format is None:
            none = np.empty(0, dtype=np.int64)
            return {text: place for place, text in enumerate(self.texts)}, np.empty(0), none
        values = Column(pl.Series(self.texts, dtype=pl.String)).read(self.spec.format).values
        order = np.argsort(values, kind="stable")
        n_numbers = int(np.count_nonzero(~np.isnan(values)))
        words = {self.texts[place]: place for place in order[n_numbers:].tolist()}
        return words, values[order[:n_numbers]], order[:n_numbers]

    @cached_property
    def _by_count(self) -> tuple[IntArray, IntArray]:
        ordered = np.sort(self.counts)
        return ordered, np.append(0, np.cumsum(ordered))  # how many cells those before each have

    def rarity(self, codes: IntArray, own: BoolArray) -> FloatArray:
        """Share of the cells whose value is at most as frequent as each, (n,).

        Cells that were not counted (`own`, (n,)) count here, each for itself.
        """
        ordered, n_cells = self._by_count
        times = np.append(self.counts, 0)[codes] + ~own
        at_most = n_cells[np.searchsorted(ordered, np.maximum(times, 1), side="right")] + ~own
        shares: FloatArray = (at_most + 1.0) / (n_cells[-1] + ~own + 1.0)
        return shares

    def log_p_new(self, codes: IntArray, own: BoolArray) -> FloatArray:
        """Log probability that a cell has a value that is new, (n,); 0 where it has none.

        That is the share of the cells whose value occurs once. To a row that was counted (`own`,
        (n,)) a value is new that no other row has.
        """
        own, cells = own & (codes < self.missing), self.counts[:-1]
        is_new = (np.append(self.counts, 0)[codes] == own) & (codes != self.missing)
        p_new = (np.count_nonzero(cells == 1) - own + 1.0) / (cells.sum() - own + 1.0)
        return np.log(np.where(is_new, p_new, 1.0))

    @cached_property
    def log_q(self) -> FloatArray:
        """Log probability of each seen value without one cell of it, (codes,)."""
        n_cells = int(self.counts.sum()) - 1
        shares = (np.maximum(self.counts - 1, 0) + NEW) / (n_cells + NEW * (self.n_codes + 1))
        return np.log(shares)

    @cached_property
    def nats(self) -> float:
        """What a cell takes by the column's own distribution, in nats."""
        return -float(self.counts @ self.log_q) / max(int(self.counts.sum()), 1)


class _Groups(NamedTuple):
    """What each group of rows holds, from counts of pairs that are sorted by group."""

    n_rows: IntArray  # (g,)
    n_kinds: IntArray  # (g,), different values
    first: IntArray  # (g,), code of the most frequent value; of equals, the first code
    n_first: IntArray
    second: IntArray  # (g,), of the next; -1 where there is none
    n_second: IntArray
    rarer: IntArray  # (p,), rows of the group of values that are rarer than each,
    as_rare: IntArray  # (p,), or at most as frequent

    @classmethod
    def of(cls, group: IntArray, code: IntArray, counts: IntArray) -> _Groups:
        order = np.lexsort((-code, counts, group))
        of_group, ordered = group[order], counts[order]
        n_kinds = np.bincount(group)
        n_rows = np.bincount(group, counts).astype(np.int64)
        last = np.cumsum(n_kinds) - 1
        before = np.where(n_kinds > 1, last - 1, last)
        # Runs of equal counts within a group: rows up to their start, and up to their end.
        starts = np.flatnonzero(
            np.r_[True, (np.diff(of_group) != 0) | (np.diff(ordered) != 0)][: len(order)]
        )
        run = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
        total = np.cumsum(ordered)
        of_earlier_groups = (np.cumsum(n_rows) - n_rows)[of_group]
        ends = np.append(starts[1:], len(order)) - 1
        rarer, as_rare = np.empty_like(counts), np.empty_like(counts)
        rarer[order] = (total - ordered)[starts][run] - of_earlier_groups
        as_rare[order] = total[ends][run] - of_earlier_groups
        code = code[order]
        return cls(
            n_rows,
            n_kinds,
            code[last],
            ordered[last],
            np.where(n_kinds > 1, code[before], -1),
            np.where(n_kinds > 1, ordered[before], 0),
            rarer,
            as_rare,
        )


class Said(NamedTuple):
    """What a relation says of the target's cells in n rows."""

    has_given: BoolArray  # whether the row has the values given
    # Log probability of a value at most as likely; 0 where no other row has the values given.
    log_p: FloatArray
    # Whether it expects one value, or has seen the cell's own, or has never seen the values given,
    # which may be as new as the cell's; and the log probability of others than the one expected.
    decides: BoolArray
    log_other: FloatArray  # 0 where the cell has one that the group has
    log_right: FloatArray  # of another value that is there by right
    expected: IntArray  # code most frequent in the other rows of the group; -1 where there are none
    n_expected: IntArray  # other rows of the group that have it
    n_rows: IntArray  # other rows of the group

    @property
    def agrees(self) -> BoolArray:
        """Whether most other rows of the group agree on a value."""
        most: BoolArray = self.n_expected >= np.maximum(AGREEING * self.n_rows, LEAST_AGREEING)
        return most


@dataclass(frozen=True, eq=False)
class Relation:
    """How many rows have each level of a column beside each of another."""

    given: Annotated[int, Meta(ge=0)]  # place of the column
    target: Annotated[int, Meta(ge=0)]
    n_codes: Annotated[int, Meta(ge=1)]  # of the target
    shrinkage: Annotated[float, Meta(gt=0, le=1e6)]  # m
    discount: Annotated[float, Meta(ge=0, lt=1)]  # d
    gain: Annotated[float, Meta(ge=0, le=1e3)]  # in nats a row, over the column's own distribution
    # Code given, the group, times the codes of the target, plus its code; increasing.
    pairs: Annotated[IntArray, "p", Meta(ge=0)]
    counts: Annotated[IntArray, "p", Meta(ge=1, le=LARGEST_COUNT)]

    def validate(self) -> None:
        """Refuse what no table leads to."""
        if not len(self.pairs) or self.given == self.target or (np.diff(self.pairs) <= 0).any():
            raise ValueError("its counts are not those of columns")

    @cached_property
    def _group(self) -> IntArray:
        return self.pairs // self.n_codes

    @cached_property
    def _sums(self) -> _Groups:
        return _Groups.of(self._group, self.pairs % self.n_codes, self.counts)

    @cached_property
    def isolated(self) -> float:
        """Probability that a value is there by right that only one row of its group has."""
        once, twice = self._n_others
        return float(min(ONCE_TO_TWICE * (twice + 0.5) / (once + 0.5), 1.0))

    @cached_property
    def has_exceptions(self) -> bool:
        """Whether many of the values that one row of a group has are there by right."""
        once, twice = self._n_others
        return ONCE_TO_TWICE * twice > MOST_BY_RIGHT * once

    @cached_property
    def _n_others(self) -> tuple[int, int]:
        """Values other than the first of a group that one of its rows has, and two."""
        is_first = self.pairs % self.n_codes == self._sums.first[self._group]
        others = (self._sums.n_rows[self._group] > 2) & ~is_first
        once, twice = (np.count_nonzero(others & (self.counts == n)) for n in (1, 2))
        return int(once), int(twice)

    def ask(
        self, columns: Sequence[LevelColumn], codes: Sequence[IntArray], own: BoolArray
    ) -> Said:
        """Ask what it says of rows with these codes in each column.

        Rows it was learned from (`own`, (n,)) are left out, each for itself.
        """
        sums, value = self._sums, codes[self.target]
        own = own & (value < self.n_codes)  # rows of levels that were dropped were not counted
        known = codes[self.given] < len(sums.n_rows)
        group = np.where(known, codes[self.given], 0)
        pair, counted = _find(self.pairs, group * self.n_codes + value)
        counted &= known & (value < self.n_codes)
        n_rows = np.where(known, sums.n_rows[group] - own, 0)
        n_same = np.where(counted, self.counts[pair] - own, 0)
        n_kinds = sums.n_kinds[group] - (own & (n_same == 0))
        as_likely = np.where(own, sums.rarer[pair] + n_same, sums.as_rare[pair])
        as_likely = np.where(n_same > 0, as_likely, 0)
        new = self.shrinkage + self.discount * n_kinds
        rarity = columns[self.target].rarity(value, own)
        p = np.minimum((as_likely + new * rarity) / (n_rows + self.shrinkage), 1.0)
        p = np.where((n_same == 0) & (sums.n_first[group] > 1), p * self.isolated, p)
        # Without the row itself another value may be the most frequent.
        is_first = sums.first[group] == value
        is_second = own & is_first & (sums.n_first[group] - 1 < sums.n_second[group])
        expected = np.where(is_second, sums.second[group], sums.first[group])
        n_expected = np.where(
            is_second, sums.n_second[group], sums.n_first[group] - (own & is_first)
        )
        # A value that no other row has is given, too: a new row with one is judged alike.
        has_given = codes[self.given] != columns[self.given].missing
        speaks = n_rows > 0
        other = (n_rows - n_expected + self.shrinkage) / (n_rows + self.shrinkage)
        is_other = speaks & (n_same == 0)
        is_clear = is_other & (n_expected >= LEAST_AGREEING) & (other < UNDECIDED)
        return Said(
            has_given,
            np.where(speaks, np.log(p), 0.0),
            has_given & (is_clear | ~is_other) & (speaks | (value != self.n_codes - 1)),
            np.log(np.where(is_clear, other, 1.0)),
            np.log(np.where(is_clear, other * self.isolated, 1.0)),
            np.where(speaks, expected, -1),
            np.where(speaks, n_expected, 0),
            n_rows,
        )


def find_relations(columns: Sequence[LevelColumn], codes: Sequence[IntArray]) -> Iterator[Relation]:
    """Find the columns that say most of each."""
    found: list[list[tuple[float, float, float, int]]] = [[] for _ in columns]
    n_all = len(columns)
    reach = n_all if n_all * (n_all - 1) // 2 <= MOST_TRIED else MOST_TRIED // n_all
    pairs_tried = (
        (place, other)
        for place in range(n_all)
        for other in range(place + 1, min(place + 1 + reach, n_all))
    )
    for a, b in pairs_tried:
        first, second, counts = joint_counts(
            codes[a], codes[b], columns[a].n_codes, columns[b].n_codes
        )
        for (g, given), (t, value) in (((a, first), (b, second)), ((b, second), (a, first))):
            told = gain_of(given, value, counts, columns[t], missing=columns[g].missing)
            if told is not None:
                found[t].append((*told, g))
    for t, tellings in enumerate(found):
        for gain, m, d, g in sorted(tellings, reverse=True)[:MOST_GIVEN]:
            n_given, n_codes = columns[g].missing, columns[t].n_codes
            group, value, counts = joint_counts(codes[g], codes[t], n_given, n_codes)
            yield Relation(g, t, n_codes, m, d, gain, group * n_codes + value, counts)


def gain_of(
    given: IntArray, value: IntArray, counts: IntArray, column: LevelColumn, *, missing: int
) -> tuple[float, float, float] | None:
    """How much rows given say of a column's cells, in nats a row, and m and d that say most.

    Of the likelihood of rows that are left out; from how many rows (p,) have each pair of values.
    None where that is not enough.
    """
    n_rows = np.bincount(given, counts) if len(given) else np.zeros(0)
    speaks = (given != missing) & (n_rows[given] > 1)
    given, value, counts = given[speaks], value[speaks], counts[speaks]
    n_cells, of_groups = int(column.counts.sum()), n_rows[given]
    own = float(counts @ column.log_q[value])
    least = max(LEAST_SHARE * column.nats * n_cells, LEAST_NATS)
    # No prior comes to more than the counts themselves do: most columns say nothing of each other.
    if float(counts @ np.log(counts / of_groups)) - own <= least:
        return None
    rest, others = of_groups - 1, counts - 1
    # Without the row its value is new to the group where no other row has it.
    n_kinds = np.bincount(given, minlength=len(n_rows))[given] - (others == 0)
    q = np.exp(column.log_q[value])

    def gain(m: float, d: float) -> tuple[float, float, float]:
        p = (np.maximum(others - d, 0.0) + (m + d * n_kinds) * q) / (rest + m)
        return (float(counts @ np.log(p)) - own) / n_cells, m, d

    _, best, _ = max(gain(m, 0.0) for m in SHRINKAGE)
    most = max(gain(best, d) for d in DISCOUNTS)
    return most if most[0] * n_cells > least else None


def joint_counts(
    a: IntArray, b: IntArray, n_a: int, n_b: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Which of so many values of two columns occur together, in order, and in how many rows."""
    keys = (a * n_b + b)[(a < n_a) & (b < n_b)]
    if n_a * n_b <= DENSE * len(keys):
        counts = np.bincount(keys)
        keys = np.flatnonzero(counts)
        counts = counts[keys]
    else:
        keys, counts = np.unique(keys, return_counts=True)
    return keys // n_b, keys % n_b, counts


def _find(ordered: IntArray, wanted: IntArray) -> tuple[IntArray, BoolArray]:
    """Place of each number among those in order (0 where it is none), and whether it is there."""
    n_possible = int(ordered[-1]) + 1 if len(ordered) else 0
    if n_possible <= DENSE * len(wanted):
        places = np.full(n_possible + 1, -1)
        places[ordered] = np.arange(len(ordered))
        place = places[np.clip(wanted, -1, n_possible)]
        return np.maximum(place, 0), place >= 0
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    found = ordered[place] == wanted
    return np.where(found, place, 0), found
