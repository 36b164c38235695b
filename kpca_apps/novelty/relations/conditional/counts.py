"""Probability of a column's value given another column's, from counts of pairs of levels.

Let n_gv be the number of rows with values g and v, n_g the number with g, t_g the number of
different v among these n_g rows, and q the distribution of the column alone. Without the row
itself, the probability is that of a Pitman-Yor process (Teh 2006, equation 1):

    P(v | g) = (max(n_gv - d, 0) + (m + d t_g) q(v)) / (n_g + m)

With d = 0 this is the conditional mean embedding with delta kernels and ridge m (Song et al. 2009).
m and d maximise the leave-one-out likelihood. A column is a predictor if it beats q's likelihood.

The p-value of a cell is the probability of values at most as likely. In the process itself, there
are at most about four values that occur once in their group (the n_g rows) for each that occurs
twice (d = 1/2). If there are more, the excess is errors.

References
----------
L. Song, J. Huang, A. Smola, K. Fukumizu, Hilbert space embeddings of conditional distributions,
ICML 2009. Y. W. Teh, A hierarchical Bayesian language model based on Pitman-Yor processes, ACL
2006.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan, nan
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl
from msgspec import Meta

from kpca_apps.names import in_prose, quoted, quoted_cell
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.evidence import Evidence
from kpca_apps.novelty.result import CONTRADICTED
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, Levels

SHRINKAGE = (2.0**-5, 2.0**-3, 0.5, 2.0, 8.0, 32.0, 128.0, 512.0)  # candidates for m (ridge)
DISCOUNTS = (0.0, 0.25, 0.5, 0.75)  # candidates for d (discount)
# Minimum gain of a predictor: as a share of the target's entropy, and in nats over all rows.
LEAST_SHARE, LEAST_NATS = 0.1, 20.0
MOST_GIVEN = 6  # maximum number of predictors of a column
MOST_TRIED = 50_000  # maximum number of pairs of columns; in wide tables, pair nearby columns only
# In a group of rows, the number of correct values that occur once is assumed to be at most this
# many times the number of values that occur twice.
ONCE_TO_TWICE = 4.0
# A relation has exceptions (rare but correct values) if, among the values that occur only once in
# their group, more than this share is correct.
MOST_BY_RIGHT = 0.1
AGREEING = 0.75  # minimum share of similar rows that must agree on another value
# A value is expected if at least this many similar rows have it, and if the probability of all
# other values is below UNDECIDED.
LEAST_AGREEING, UNDECIDED = 5, 0.1
NOT_KNOWN = {"unknown", "not known", "unk", "nk", "not stated", "not available", "tbd"}
NEW = 0.5  # pseudo-count of an unseen value
DENSE = 8  # pairs are counted in a dense array if there are at most so many possible pairs per row
LARGEST_COUNT = 2**53
FEWEST_TO_SUGGEST = 5  # if fewer rows agree on a value, it is not suggested: it may be wrong itself


class LevelCells(NamedTuple):
    """The cells of a column."""

    codes: IntArray  # (n,), codes of `LevelColumn`
    levels: Levels  # levels of this table, numbered independently of `codes`

    def text(self, row: int) -> str:
        """Return a cell, empty if it is missing."""
        code = int(self.levels.codes[row])
        return str(self.levels.texts[code]) if code >= 0 else ""


@dataclass(frozen=True, eq=False)
class LevelColumn:
    """Levels of a column with their counts; two more codes are for missing and unseen values."""

    name: str
    spec: ColumnSpec
    texts: tuple[str, ...]  # levels; a number or date in its most frequent spelling
    # Number of cells of each level; the last number is that of missing cells.
    counts: Annotated[IntArray, "k", Meta(ge=0, le=LARGEST_COUNT)]

    def validate(self) -> None:
        """Refuse counts that do not match the levels."""
        if len(self.counts) != len(self.texts) + 1 or len({*self.texts}) != len(self.texts):
            raise ValueError(f"{len(self.counts)} counts of {len(self.texts)} levels")
        if (self.counts[:-1] < 1).any():
            raise ValueError("a level that no row has")

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec) -> LevelColumn:
        """Count the levels of a column; words such as "unknown" count as missing."""
        levels = spec.levels(column)
        totals, spellings = dict[float | str, int](), dict[float | str, tuple[int, str]]()
        given = zip(_keys(levels, spec), levels.counts.tolist(), levels.texts, strict=True)
        for key, count, text in given:
            if text.lower() not in NOT_KNOWN:
                totals[key] = totals.get(key, 0) + count
                if count > spellings.get(key, (0, ""))[0]:
                    spellings[key] = count, text
        counts = np.array([*totals.values(), len(column) - sum(totals.values())], dtype=np.int64)
        return cls(column.name, spec, tuple(text for _, text in spellings.values()), counts)

    def without(self, codes: IntArray) -> LevelColumn:
        """Return the column without some levels, given by code, as if they were unseen."""
        kept = np.delete(np.arange(len(self.counts)), codes)
        texts = tuple(self.texts[place] for place in kept[:-1])
        return replace(self, texts=texts, counts=self.counts[kept])

    @property
    def missing(self) -> int:
        """Code of missing cells."""
        return len(self.texts)

    @property
    def n_codes(self) -> int:
        """Number of codes: one for each level, and one for missing cells."""
        return len(self.counts)

    def cells(self, table: Table) -> LevelCells:
        """Encode the cells of a table; all are missing if the table lacks the column."""
        if self.name not in table.columns:
            n_rows, none = table.n_rows, pl.Series([], dtype=pl.String)
            codes = np.full(n_rows, self.missing, dtype=np.int64)
            return LevelCells(codes, Levels(none, np.full(n_rows, -1, dtype=np.int32)))
        levels = table.column[self.name].levels
        codes = np.full(len(levels.cells), self.n_codes, dtype=np.int64)
        for at, key in enumerate(_keys(levels, self.spec)):
            if key in self._places:
                codes[at] = self._places[key]
            elif isinstance(key, str) and key.lower() in NOT_KNOWN:
                codes[at] = self.missing
        return LevelCells(levels.each(codes, self.missing), levels)

    def text(self, code: int) -> str:
        """Return the level of a code, empty for missing cells."""
        return self.texts[code] if code < self.missing else ""

    @cached_property
    def _places(self) -> dict[float | str, int]:
        every = np.arange(len(self.texts), dtype=np.int32)
        levels = Levels(pl.Series(self.texts, dtype=pl.String), every)
        return {key: place for place, key in enumerate(_keys(levels, self.spec))}

    @cached_property
    def _by_count(self) -> tuple[IntArray, IntArray]:
        ordered = np.sort(self.counts)
        return ordered, np.append(0, np.cumsum(ordered))

    def rarity(self, codes: IntArray, own: BoolArray) -> FloatArray:
        """Return, for each cell, the share of cells with an equally frequent or rarer value, (n,).

        A cell outside the counts (not `own`, (n,)) is counted once here.
        """
        ordered, n_cells = self._by_count
        times = np.append(self.counts, 0)[codes] + ~own
        at_most = n_cells[np.searchsorted(ordered, np.maximum(times, 1), side="right")] + ~own
        shares: FloatArray = (at_most + 1.0) / (n_cells[-1] + ~own + 1.0)
        return shares

    def log_p_new(self, codes: IntArray, own: BoolArray) -> FloatArray:
        """Return the log probability of a new value for cells with new values, else 0, (n,).

        The value of a training row (`own`, (n,)) is new if no other row has it.
        """
        own, cells = own & (codes < self.missing), self.counts[:-1]
        is_new = (np.append(self.counts, 0)[codes] == own) & (codes != self.missing)
        p_new = (np.count_nonzero(cells == 1) - own + 1.0) / (cells.sum() - own + 1.0)
        return np.log(np.where(is_new, p_new, 1.0))

    @cached_property
    def log_q(self) -> FloatArray:
        """Log probability (codes,) of each code, by its count in the column without one cell."""
        n_cells = int(self.counts.sum()) - 1
        shares = (np.maximum(self.counts - 1, 0) + NEW) / (n_cells + NEW * (self.n_codes + 1))
        return np.log(shares)

    @cached_property
    def nats(self) -> float:
        """Entropy of a cell by the distribution of the column alone, in nats."""
        return -float(self.counts @ self.log_q) / max(int(self.counts.sum()), 1)


def _keys(levels: Levels, spec: ColumnSpec) -> list[float | str]:
    """Return each level as the number that its text states, or as its text if it states none."""
    values = [nan] if spec.format is None else levels.column.read(spec.format).values.tolist()
    if not any(map(isnan, values)):
        return values
    texts = map(str.lower, levels.texts) if spec.is_truth else levels.texts
    if spec.format is None:
        return [*texts]
    pairs = zip(texts, values, strict=True)
    return [text if isnan(value) else value for text, value in pairs]


class _Groups(NamedTuple):
    """Counts of target values in g groups; a group is the rows with one predicting value."""

    n_rows: IntArray  # (g,), number of rows
    n_kinds: IntArray  # (g,), number of different values
    first: IntArray  # (g,), code of the most frequent value; on ties the lowest code
    n_first: IntArray  # (g,), number of rows with the most frequent value
    second: IntArray  # (g,), code of the second most frequent value; -1 if there is none
    n_second: IntArray  # (g,), number of rows with the second value
    # For p pairs of a group and a value:
    rarer: IntArray  # (p,), number of the group's rows with a less frequent value
    as_rare: IntArray  # (p,), number of the group's rows with an equally or less frequent value

    @classmethod
    def of(cls, group: IntArray, code: IntArray, counts: IntArray) -> _Groups:
        order = np.lexsort((-code, counts, group))
        of_group, ordered = group[order], counts[order]
        n_kinds = np.bincount(group)
        n_rows = np.bincount(group, counts).astype(np.int64)
        last = np.cumsum(n_kinds) - 1
        before = np.where(n_kinds > 1, last - 1, last)
        # Find runs of equal counts in a group; count the rows before each run and up to its end.
        changes = (np.diff(of_group) != 0) | (np.diff(ordered) != 0)
        starts = np.flatnonzero(np.r_[True, changes][: len(order)])
        ends = np.append(starts[1:], len(order)) - 1
        run = np.repeat(np.arange(len(starts)), ends - starts + 1)
        total = np.cumsum(ordered)
        of_earlier_groups = (np.cumsum(n_rows) - n_rows)[of_group]
        rarer, as_rare = np.empty_like(counts), np.empty_like(counts)
        rarer[order] = (total - ordered)[starts][run] - of_earlier_groups
        as_rare[order] = total[ends][run] - of_earlier_groups
        code, several = code[order], n_kinds > 1
        second = np.where(several, code[before], -1), np.where(several, ordered[before], 0)
        return cls(n_rows, n_kinds, code[last], ordered[last], *second, rarer, as_rare)


class Judgement(NamedTuple):
    """Judgement of the target's cells in n rows by a relation."""

    has_given: BoolArray  # whether the row's predicting cell is filled
    log_p: FloatArray  # log p of values at most as likely as the cell's; 0 without other rows
    # Whether the relation counts in the averages of `log_other` and `log_right` over all relations.
    # It does if another value is expected, if another row of the group (the rows with the same
    # predicting value) has the cell's value, or if the group has no other row.
    decides: BoolArray
    log_other: FloatArray  # log probability of values other than expected; 0 if none is expected
    log_right: FloatArray  # log probability of correct values other than expected (0 as above)
    expected: IntArray  # most frequent code in the group's other rows; -1 without other rows
    n_expected: IntArray  # number of the group's other rows with that code
    n_rows: IntArray  # number of the group's other rows

    @property
    def agrees(self) -> BoolArray:
        """Whether most of the group's other rows agree on a value."""
        most: BoolArray = self.n_expected >= np.maximum(AGREEING * self.n_rows, LEAST_AGREEING)
        return most


@dataclass(frozen=True, eq=False)
class Relation:
    """Number of rows with each pair of levels of two columns."""

    given: Annotated[int, Meta(ge=0)]  # index of the predicting column
    target: Annotated[int, Meta(ge=0)]
    n_codes: Annotated[int, Meta(ge=1)]  # number of codes of the target
    shrinkage: Annotated[float, Meta(gt=0, le=1e6)]  # m
    discount: Annotated[float, Meta(ge=0, lt=1)]  # d
    gain: Annotated[float, Meta(ge=0, le=1e3)]  # gain in the target's log likelihood, nats per row
    pairs: Annotated[IntArray, "p", Meta(ge=0)]  # given code * n_codes + target code; increasing
    counts: Annotated[IntArray, "p", Meta(ge=1, le=LARGEST_COUNT)]

    def validate(self) -> None:
        """Refuse missing pairs, pairs out of order, and a column that predicts itself."""
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
        """Probability that a value that occurs once in its group is correct."""
        once, twice = self._n_others
        return float(min(ONCE_TO_TWICE * (twice + 0.5) / (once + 0.5), 1.0))

    @cached_property
    def has_exceptions(self) -> bool:
        """Whether many values that occur once in their group are correct."""
        once, twice = self._n_others
        return ONCE_TO_TWICE * twice > MOST_BY_RIGHT * once

    @cached_property
    def _n_others(self) -> tuple[int, int]:
        """Number of values that occur once, and twice, in a group, the commonest value excluded."""
        is_first = self.pairs % self.n_codes == self._sums.first[self._group]
        others = (self._sums.n_rows[self._group] > 2) & ~is_first
        once, twice = (np.count_nonzero(others & (self.counts == n)) for n in (1, 2))
        return int(once), int(twice)

    def judge(
        self, columns: Sequence[LevelColumn], codes: Sequence[IntArray], own: BoolArray
    ) -> Judgement:
        """Judge rows by their codes; a training row (`own`, (n,)) is not compared with itself."""
        sums, value = self._sums, codes[self.target]
        own = own & (value < self.n_codes)  # rows with removed levels were not counted
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
        # Without the row itself, another value may be the most frequent.
        is_first = sums.first[group] == value
        is_second = own & is_first & (sums.n_first[group] - 1 < sums.n_second[group])
        expected = np.where(is_second, sums.second[group], sums.first[group])
        n_first = sums.n_first[group] - (own & is_first)
        n_expected = np.where(is_second, sums.n_second[group], n_first)
        has_given = codes[self.given] != columns[self.given].missing
        has_rows = n_rows > 0
        other = (n_rows - n_expected + self.shrinkage) / (n_rows + self.shrinkage)
        is_other = has_rows & (n_same == 0)
        is_clear = is_other & (n_expected >= LEAST_AGREEING) & (other < UNDECIDED)
        return Judgement(
            has_given,
            np.where(has_rows, np.log(p), 0.0),
            has_given & (is_clear | ~is_other) & (has_rows | (value != self.n_codes - 1)),
            np.log(np.where(is_clear, other, 1.0)),
            np.log(np.where(is_clear, other * self.isolated, 1.0)),
            np.where(has_rows, expected, -1),
            np.where(has_rows, n_expected, 0),
            n_rows,
        )


def find_relations(columns: Sequence[LevelColumn], codes: Sequence[IntArray]) -> Iterator[Relation]:
    """Find the best predictors of each column."""
    found: list[list[tuple[float, float, float, int]]] = [[] for _ in columns]
    n_all = len(columns)
    reach = n_all if n_all * (n_all - 1) // 2 <= MOST_TRIED else MOST_TRIED // n_all
    for a in range(n_all):
        for b in range(a + 1, min(a + 1 + reach, n_all)):
            n_codes = columns[a].n_codes, columns[b].n_codes
            first, second, counts = joint_counts(codes[a], codes[b], *n_codes)
            for (g, given), (t, value) in (((a, first), (b, second)), ((b, second), (a, first))):
                best = gain_of(given, value, counts, columns[t], missing=columns[g].missing)
                if best is not None:
                    found[t].append((*best, g))
    for t, predictors in enumerate(found):
        for gain, m, d, g in sorted(predictors, reverse=True)[:MOST_GIVEN]:
            n_given, n_codes_t = columns[g].missing, columns[t].n_codes
            group, value, counts = joint_counts(codes[g], codes[t], n_given, n_codes_t)
            yield Relation(g, t, n_codes_t, m, d, gain, group * n_codes_t + value, counts)


def gain_of(
    given: IntArray, value: IntArray, counts: IntArray, column: LevelColumn, *, missing: int
) -> tuple[float, float, float] | None:
    """Return a predictor's gain (nats per row), shrinkage and discount; None for a small gain.

    The gain is in leave-one-out likelihood; `counts` (p,) are numbers of rows by pair of values.
    """
    n_rows = np.bincount(given, counts) if len(given) else np.zeros(0)
    kept = (given != missing) & (n_rows[given] > 1)
    given, value, counts = given[kept], value[kept], counts[kept]
    n_cells, of_groups = int(column.counts.sum()), n_rows[given]
    own = float(counts @ column.log_q[value])
    least = max(LEAST_SHARE * column.nats * n_cells, LEAST_NATS)
    # Test the in-sample likelihood first, an upper bound of the leave-one-out likelihood.
    if float(counts @ np.log(counts / of_groups)) - own <= least:
        return None
    rest, others = of_groups - 1, counts - 1
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
    """Return the pairs of codes below n_a and n_b that occur, sorted, and their numbers of rows."""
    keys = (a * n_b + b)[(a < n_a) & (b < n_b)]
    if n_a * n_b <= DENSE * len(keys):
        counts = np.bincount(keys)
        keys = np.flatnonzero(counts)
        counts = counts[keys]
    else:
        keys, counts = np.unique(keys, return_counts=True)
    return keys // n_b, keys % n_b, counts


def _find(ordered: IntArray, wanted: IntArray) -> tuple[IntArray, BoolArray]:
    """Return the index of each number in `ordered` (0 if absent), and whether it was found."""
    n_possible = int(ordered[-1]) + 1 if len(ordered) else 0
    if n_possible <= DENSE * len(wanted):
        places = np.full(n_possible + 1, -1)
        places[ordered] = np.arange(len(ordered))
        place = places[np.clip(wanted, -1, n_possible)]
        return np.maximum(place, 0), place >= 0
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    found = ordered[place] == wanted
    return np.where(found, place, 0), found


class RowsAlike(NamedTuple):
    """The other rows that share some values with a row."""

    shared: tuple[tuple[str, str], ...]  # pairs of a column and the value shared in it
    n_agreeing: int  # number of other rows with the expected value
    n_rows: int  # number of other rows that share the values


def contradicted(
    row: int, column: str, seen: str, expected: str, log_p: float, alike: RowsAlike
) -> Evidence:
    """Return evidence against a cell; `expected` is empty if similar rows are empty or disagree."""
    names = defaultdict[str, list[str]](list)
    for name, text in alike.shared:
        names[text].append(quoted(name))
    given = " and ".join(f"{in_prose(of)} {quoted_cell(text)}" for text, of in names.items())
    n, others = alike.n_agreeing, alike.n_rows
    sentence = f"{n:,} of the {others:,} other rows with {given}"
    if expected:
        sentence += f" read {quoted_cell(expected)}."
    elif 2 * n > others:
        sentence += " have no value there."
    else:
        sentence = f"Very few of the {others:,} other rows with {given} read so."
    suggestion = expected if n >= FEWEST_TO_SUGGEST else ""
    columns = tuple(name for name, _ in alike.shared)
    return Evidence(
        row, column, CONTRADICTED, log_p, seen, suggestion, expected, others, sentence, columns
    )
