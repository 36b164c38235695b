"""Columns that name rows, and columns that settle another: a key and what belongs to it.

That rows of one key have one value is a rule where the key is a name. A measurement settles others
too, as far as neighbouring values of it do; such columns are no keys.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kpca_apps.novelty.columns.plan import ColumnPlan, is_named_as_identifier, name_words
from kpca_apps.novelty.relations.checking import Cells, Checked, join_codes, settles
from kpca_apps.novelty.relations.finding.evidence import LEVEL, NEARLY, are_far_fewer, tail
from kpca_apps.novelty.relations.rule import Determines, Unique
from kpca_apps.system.arrays import IntArray
from kpca_apps.tables.values import DateFormat

NAMING = ("identifier", "id")
"""Roles of columns that name rows."""

_DAY = 86400.0  # seconds
_REPEATS = 0.5  # share of the rows whose key must be in several
_MOST_ALIKE = 4  # rows of a key that break a rule alike: more are no slips, but its second value
_MOST_KEYS = 0.5  # distinct keys, of the rows
_CODES = {"zip", "zipcode", "postcode", "postal", "code", "no", "nr", "num", "number", "key"}
_NEIGHBOURS = 0.5  # share of neighbouring numbers that may lead to the same value
_CHANGES = 5  # of the value, from one number to the next
_FEW_NUMBERS, _DENSE = 30, 0.3  # whole numbers that were handed out: of those in their range
_SPARE_VALUES = 0.5  # of the rows: those whose key is in no other
_SPARE = 0.005  # share of the rows
_ROWS = 4_000  # that a key is tried on: those of some of its values
_AGREE = 0.9  # share of the rows with another value than mostly that must agree
_MOST_COLUMNS = 40
_MIN_ROWS = 30


@dataclass(frozen=True)
class Levels:
    """The columns of a table by what is equal in them."""

    codes: Mapping[str, IntArray]  # (n,) of each, -1 where missing
    counts: Mapping[str, IntArray]  # rows of each value

    @classmethod
    def of(cls, cells: Cells, names: Sequence[str]) -> Levels:
        """Take the columns of more than one value."""
        codes = {name: cells.codes(name) for name in names}
        counts = {name: np.bincount(column[column >= 0]) for name, column in codes.items()}
        kept = [name for name in names if np.count_nonzero(counts[name]) > 1]
        return cls({name: codes[name] for name in kept}, {name: counts[name] for name in kept})

    def n_values(self, name: str) -> int:
        """Distinct values of a column."""
        return int(np.count_nonzero(self.counts[name]))

    def repeats(self, name: str) -> bool:
        """Whether most rows share their value with others."""
        counts = self.counts[name]
        often = counts[counts > 1].sum() >= _REPEATS * counts.sum()
        return bool(often and self.n_values(name) <= _MOST_KEYS * counts.sum())


def key_rules(cells: Cells, levels: Levels, rng: np.random.Generator) -> list[Determines | Unique]:
    """Find columns that settle others, and pairs that name rows, without what follows."""
    settled = _settled(cells, levels, rng)
    names = list(levels.codes)
    first = _first_of_same(settled, names)
    return [
        *(Determines(columns=pair) for pair in _reduced(settled, first)),
        *_unique_pairs(cells, levels, [name for name in names if first[name] == name]),
    ]


def _settled(
    cells: Cells, levels: Levels, rng: np.random.Generator
) -> dict[tuple[str, str], float]:
    """Find columns, each with one that it settles, and the share of the rows that break this."""
    keys = [name for name in levels.codes if levels.repeats(name) and may_be_key(cells, name)]
    keys = keys[:_MOST_COLUMNS]
    n_tried = len(keys) * len(levels.codes)
    found = {}
    for name in keys:
        rows = _rows_of_some(levels.codes[name], rng)
        key = levels.codes[name][rows]
        order = rng.permutation(len(rows))
        # Of too many values one key or another must have several.
        most = levels.n_values(name) + _SPARE_VALUES * len(cells)
        for other, codes in levels.codes.items():
            if other == name or levels.n_values(other) > most:
                continue
            value = codes[rows]
            seen = settles(key, value)
            if (
                seen.share >= NEARLY
                and _agrees_elsewhere(seen, value)
                and _are_slips(seen, key, value)
                and _more_than_chance(seen, settles(key, value[order]).share, n_tried)
                and (not cells.is_number(name) or _is_code(name, key, value, seen))
            ):
                found[name, other] = 1 - seen.share
    return found


def unique_columns(cells: Cells, plan: ColumnPlan) -> Iterator[Unique]:
    """Find columns that name rows."""
    for spec in plan.specs:
        if spec.role in NAMING and spec.name in cells.formats:
            codes = cells.codes(spec.name)
            n_known, n_values = int((codes >= 0).sum()), int(codes.max(initial=-1)) + 1
            if n_known >= _MIN_ROWS and n_values >= NEARLY * n_known:
                yield Unique(columns=(spec.name,))


def _unique_pairs(cells: Cells, levels: Levels, names: Sequence[str]) -> list[Unique]:
    """Find two columns, each of which repeats, that name rows together (country, year).

    Other columns that go with one of them (age with year) name rows too: those of fewest values are
    told.
    """
    found: list[tuple[int, Unique]] = []
    usable = [
        name
        for name in names
        if levels.repeats(name)
        and (isinstance(cells.formats[name], DateFormat) or may_be_key(cells, name))
    ]
    names = usable[:_MOST_COLUMNS]
    n, n_tried = len(cells), len(names) ** 2
    for pair in combinations(names, 2):
        n_values = levels.n_values(pair[0]) * levels.n_values(pair[1])
        n_known = min(int(levels.counts[name].sum()) for name in pair)
        # So few values must repeat.
        if n_values < NEARLY * n_known:
            continue
        alike = [float(np.sum((levels.counts[name] / n) ** 2)) for name in pair]
        # Rows equal in both to another, if the columns had nothing to do with each other.
        n_expected = n * (1 - np.exp(-n * alike[0] * alike[1]))
        if tail(0, n_expected) > LEVEL / n_tried:
            continue
        codes = join_codes([levels.codes[name] for name in pair])
        counts = np.bincount(codes[codes >= 0])
        n_repeated = int(counts[counts > 1].sum())
        few = n_repeated <= (1 - NEARLY) * counts.sum()
        if few and are_far_fewer(n_repeated, n_expected, LEVEL / n_tried):
            found.append((n_values, Unique(columns=pair)))
    return [min(found, key=lambda one: one[0])[1]] if found else []


def _agrees_elsewhere(seen: Checked, value: IntArray) -> bool:
    """Whether a rule holds also where the value is another than mostly."""
    usual = np.argmax(np.bincount(value[seen.applies]))
    telling = seen.applies & (value != usual)
    return bool(telling.any() and np.mean(seen.holds[telling]) >= _AGREE)


def _are_slips(seen: Checked, key: IntArray, value: IntArray) -> bool:
    """Whether no second value recurs in the rows of a key: two hospitals of one ZIP."""
    pairs = join_codes([key, value])[seen.broken]
    return not pairs.size or bool(np.bincount(pairs).max() <= _MOST_ALIKE)


def _more_than_chance(seen: Checked, by_chance: float, n_tried: int) -> bool:
    """Whether a rule holds in more rows than the share with a column shuffled."""
    n_expected = (1 - by_chance) * int(seen.applies.sum())
    return are_far_fewer(int(seen.broken.sum()), n_expected, LEVEL / n_tried)


def _rows_of_some(key: IntArray, rng: np.random.Generator) -> IntArray:
    """Take all rows of some values of a key, chosen at random, a few thousand in all."""
    n_values = int(key.max(initial=-1)) + 1
    rank = rng.permutation(n_values)
    by_rank = np.bincount(rank[key[key >= 0]], minlength=n_values)
    n_taken = max(2, int(np.searchsorted(np.cumsum(by_rank), _ROWS)) + 1)
    rows = np.flatnonzero(key >= 0)
    rows = rows[rank[key[rows]] < n_taken]
    return rows if len(rows) <= 2 * _ROWS else np.sort(rng.choice(rows, _ROWS, replace=False))


def may_be_key(cells: Cells, name: str) -> bool:
    """Whether a column may name something: days, and whole numbers that were handed out."""
    if not cells.is_number(name) or _is_named_code(name):
        return True
    values = np.unique(cells.values(name))
    values = values[~np.isnan(values)]
    if isinstance(cells.formats[name], DateFormat):
        values = values / _DAY
    dense = len(values) <= _FEW_NUMBERS or len(values) >= _DENSE * (1 + np.ptp(values))
    return bool(dense and (values == np.round(values)).all())


def _is_named_code(name: str) -> bool:
    return is_named_as_identifier(name) or not _CODES.isdisjoint(name_words(name))


def _is_code(name: str, key: IntArray, value: IntArray, seen: Checked) -> bool:
    """Whether numbers name something: values of neighbouring numbers mostly differ.

    Where they do not, numbers were handed out in the order of the values, if no row breaks the rule
    though these change often; of a measurement, values run into each other where they change.
    """
    if _is_named_code(name):
        return True
    known = (key >= 0) & (value >= 0)
    # Codes of numbers rise with them.
    pairs, counts = np.unique(np.column_stack([key, value])[known], axis=0, return_counts=True)
    most = np.lexsort((-counts, pairs[:, 0]))
    _, first = np.unique(pairs[most, 0], return_index=True)
    of_keys = pairs[most[first], 1]
    n_changes = np.count_nonzero(np.diff(of_keys))
    if n_changes >= (1 - _NEIGHBOURS) * (len(of_keys) - 1) > 0:
        return True
    return bool(n_changes >= _CHANGES and not seen.broken.any())


def _first_of_same(pairs: Container[tuple[str, str]], names: Sequence[str]) -> dict[str, str]:
    """Return for each column the first of those that settle it and are settled by it."""
    return {
        name: next(
            other
            for other in names
            if other == name or ((other, name) in pairs and (name, other) in pairs)
        )
        for name in names
    }


def _reduced(
    broken: Mapping[tuple[str, str], float], first: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Leave out what follows: of columns that settle each other, the first stands for all.

    `broken` is the share of the rows in which the first of two columns does not settle the second.
    """
    same = [p for p in broken if first[p[0]] == first[p[1]] and first[p[0]] in p]
    others = {
        (key, value): share
        for (key, value), share in broken.items()
        if first[key] == key and first[value] == value and key != value
    }
    return same + [
        (key, value)
        for (key, value), share in others.items()
        # A key that settles it better than the column between does is told all the same.
        if not any(
            (key, name) in others and others.get((name, value), 1.0) <= 2 * share + _SPARE
            for name in first
        )
    ]
