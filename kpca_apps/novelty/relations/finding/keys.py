"""Columns that identify rows, and keys that determine another column."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from kpca_apps.novelty.columns.plan import ColumnPlan, is_named_as_identifier, name_words
from kpca_apps.novelty.relations.checking import Cells, Checked, join_codes, settles
from kpca_apps.novelty.relations.finding.evidence import (
    LEVEL,
    NEARLY,
    are_far_fewer,
    holds_elsewhere,
    tail,
)
from kpca_apps.novelty.relations.rule import Determines, Unique
from kpca_apps.system.arrays import IntArray
from kpca_apps.tables.values import DateFormat

NAMING = ("identifier", "id")
"""Roles of columns that identify rows."""

_DAY = 86400.0  # seconds
_REPEATS = 0.5  # minimum share of rows whose value recurs, in a column that may be a key
_MOST_ALIKE = 4  # a wrong value in more than this many rows of the same key is no typing error
_MOST_KEYS = 0.5  # maximum number of distinct keys, as a share of the rows
_CODES = {"zip", "zipcode", "postcode", "postal", "code", "no", "nr", "num", "number", "key"}
# Integers may be a key if at most 30 are distinct, or if they fill at least .3 of their range.
_FEW_NUMBERS, _DENSE = 30, 0.3
_SPARE_VALUES = 0.5  # maximum of (distinct values of a column - distinct keys) / rows
_SPARE = 0.005  # a share of exceptions is far above a share s if it exceeds 2 s + _SPARE
_ROWS = 4_000  # keys are tried on about this many rows: all rows of some randomly drawn keys
_MOST_COLUMNS = 40
_MIN_ROWS = 30


@dataclass(frozen=True)
class _Levels:
    codes: IntArray  # (n,), -1 if missing
    counts: IntArray  # number of rows of each value, by code

    @cached_property
    def n_values(self) -> int:
        return int(np.count_nonzero(self.counts))

    @cached_property
    def repeats(self) -> bool:
        """Whether most rows share their value with other rows, and distinct values are few."""
        often = self.counts[self.counts > 1].sum() >= _REPEATS * self.counts.sum()
        return bool(often and self.n_values <= _MOST_KEYS * self.counts.sum())


def key_rules(cells: Cells, rng: np.random.Generator) -> list[Determines | Unique]:
    """Find keys that determine other columns, and pairs of columns that identify rows."""
    codes = {name: cells.codes(name) for name in cells.formats}
    levels = {name: _Levels(of, np.bincount(of[of >= 0])) for name, of in codes.items()}
    levels = {name: of for name, of in levels.items() if of.n_values > 1}
    settled = _settled(cells, levels, rng)
    first = _first_of_same(settled, [*levels])
    return [
        *(Determines(columns=pair) for pair in _reduced(settled, first)),
        *_unique_pairs(cells, {name: of for name, of in levels.items() if first[name] == name}),
    ]


def _settled(
    cells: Cells, levels: Mapping[str, _Levels], rng: np.random.Generator
) -> dict[tuple[str, str], float]:
    """Find pairs of a key and a column that it determines, with the share of exceptions."""
    keys = [name for name, of in levels.items() if of.repeats and may_be_key(cells, name)]
    keys = keys[:_MOST_COLUMNS]
    n_tried = len(keys) * len(levels)
    found = {}
    for name in keys:
        rows = _rows_of_some(levels[name].codes, rng)
        key = levels[name].codes[rows]
        order = rng.permutation(len(rows))
        # A column with more values than this cannot be determined by the key.
        most = levels[name].n_values + _SPARE_VALUES * len(cells)
        for other, of in levels.items():
            if other == name or of.n_values > most:
                continue
            value = of.codes[rows]
            seen = settles(key, value)
            if (
                seen.share < NEARLY
                or not holds_elsewhere(seen, [value])
                or not _are_slips(seen, key, value)
            ):
                continue
            n_expected = (1 - settles(key, value[order]).share) * int(seen.applies.sum())
            if are_far_fewer(int(seen.broken.sum()), n_expected, LEVEL / n_tried):
                found[name, other] = 1 - seen.share
    return found


def unique_columns(cells: Cells, plan: ColumnPlan) -> Iterator[Unique]:
    """Find columns that identify rows."""
    for spec in plan.specs:
        if spec.role in NAMING and spec.name in cells.formats:
            codes = cells.codes(spec.name)
            n_known, n_values = int((codes >= 0).sum()), int(codes.max(initial=-1)) + 1
            if n_known >= _MIN_ROWS and n_values >= NEARLY * n_known:
                yield Unique(columns=(spec.name,))


def _unique_pairs(cells: Cells, levels: Mapping[str, _Levels]) -> list[Unique]:
    """Find two columns that identify rows together, not alone: the pair with fewest values."""
    found: list[tuple[int, Unique]] = []
    usable = [
        name
        for name, of in levels.items()
        if of.repeats and (isinstance(cells.formats[name], DateFormat) or may_be_key(cells, name))
    ]
    names = usable[:_MOST_COLUMNS]
    n, n_tried = len(cells), len(names) ** 2
    for pair in combinations(names, 2):
        both = levels[pair[0]], levels[pair[1]]
        n_values = both[0].n_values * both[1].n_values
        if n_values < NEARLY * min(of.counts.sum() for of in both):
            continue
        alike = [float(np.sum((of.counts / n) ** 2)) for of in both]
        # Number of rows expected to equal another row in both columns if these are independent.
        n_expected = n * (1 - np.exp(-n * alike[0] * alike[1]))
        if tail(0, n_expected) > LEVEL / n_tried:
            continue
        codes = join_codes([of.codes for of in both])
        counts = np.bincount(codes[codes >= 0])
        n_repeated = int(counts[counts > 1].sum())
        few = n_repeated <= (1 - NEARLY) * counts.sum()
        if few and are_far_fewer(n_repeated, n_expected, LEVEL / n_tried):
            found.append((n_values, Unique(columns=pair)))
    return [min(found, key=lambda one: one[0])[1]] if found else []


def _are_slips(seen: Checked, key: IntArray, value: IntArray) -> bool:
    """Whether every deviating value occurs in few rows of its key, as typing errors do."""
    pairs = join_codes([key, value])[seen.broken]
    return not pairs.size or bool(np.bincount(pairs).max() <= _MOST_ALIKE)


def _rows_of_some(key: IntArray, rng: np.random.Generator) -> IntArray:
    """Return all rows of some random values of a key, a few thousand in all."""
    n_values = int(key.max(initial=-1)) + 1
    rank = rng.permutation(n_values)
    by_rank = np.bincount(rank[key[key >= 0]], minlength=n_values)
    n_taken = max(2, int(np.searchsorted(np.cumsum(by_rank), _ROWS)) + 1)
    rows = np.flatnonzero(key >= 0)
    rows = rows[rank[key[rows]] < n_taken]
    return rows if len(rows) <= 2 * _ROWS else np.sort(rng.choice(rows, _ROWS, replace=False))


def may_be_key(cells: Cells, name: str) -> bool:
    """Whether a column may be a key: text, days, or integers without many gaps."""
    is_named = is_named_as_identifier(name) or not _CODES.isdisjoint(name_words(name))
    if is_named or not cells.is_number(name):
        return True
    values = np.unique(cells.values(name))
    values = values[~np.isnan(values)]
    if isinstance(cells.formats[name], DateFormat):
        values = values / _DAY
    dense = len(values) <= _FEW_NUMBERS or len(values) >= _DENSE * (1 + np.ptp(values))
    return bool(dense and (values == np.round(values)).all())


def _first_of_same(pairs: Container[tuple[str, str]], names: Sequence[str]) -> dict[str, str]:
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
    """Remove pairs that follow from others, and all but the first of equivalent columns.

    `broken` maps each pair of a key and a column to its share of exceptions.
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
        # Omit (key, value) if the key determines a name that determines the value, unless the pair
        # (name, value) has far more exceptions than (key, value).
        if not any(
            (key, name) in others and others.get((name, value), 1.0) <= 2 * share + _SPARE
            for name in first
        )
    ]
