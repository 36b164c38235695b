"""Pairs of columns: equal ones, or one never below the other (start and end).

Columns on different scales are in order by chance. An order is a rule if names or dates show that
both columns belong together, or if their differences pile up on one side of 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np

from kpca_apps.novelty.columns.plan import name_words
from kpca_apps.novelty.magnitudes import rank_correlation
from kpca_apps.novelty.relations.checking import Cells, check, half_a_day
from kpca_apps.novelty.relations.finding.arithmetic import Numbers, is_fine, rounding
from kpca_apps.novelty.relations.finding.evidence import NEARLY, holds_elsewhere
from kpca_apps.novelty.relations.rule import Equal, Order
from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.tables.values import DateFormat, NumberFormat

# Groups of words in rising order: if two names differ only in two words of a group, the column with
# the earlier word is the lower one.
_RISING = [
    words.split()
    for words in """
    minimum mean maximum|minimum average maximum|min mean max|min median max|min avg max
    min average max|mean worst|lowest highest|lower upper|low high|lo hi|smallest largest
    start end|start stop|started ended|started finished|begin end|first last|from to
    diastolic systolic|dia sys|dbp sbp|net gross|q1 median q3|q25 q50 q75|p5 p50 p95|p10 p50 p90
    used total
    """.strip()
    .replace("\n", "|")
    .split("|")
]
_CLEARLY = 0.99  # minimum share of rows with low <= high, if names show no order (`_RISING`)
_FEW_VALUES = 5  # number of distinct values below which all rows must be in order
_NEAR = 0.2  # maximum difference that counts as near 0, relative to the median difference
# Minimum share of differences near 0, and (for coarsely rounded values) of differences equal to 0.
_SHARE_NEAR, _SHARE_EQUAL = 0.03, 0.1
_FEWEST_NEAR = 10  # minimum number of differences near 0
_ACROSS = 0.1  # maximum ratio of negative to positive differences near 0
_TOGETHER, _SIGMAS = 0.3, 4.0  # minimum rank correlation, as such and in standard errors
_MIN_ROWS = 20
_STEP = 8  # in one of so many rows, pairs of columns are tried first
_TELLING = 20  # for equal columns: minimum number of rows with another value than the commonest


def orders(numbers: Numbers, cells: Cells) -> tuple[list[Order], list[Order]]:
    """Find pairs of columns with low <= high: a list suggested by names, and one only by values.

    Only the pairs of the second list need a permutation test.
    """
    values = numbers.values
    by_name, by_values = [], []
    formats = [cells.formats[name] for name in numbers.names]
    half_days = [half_a_day(*one) for one in zip(formats, values.T, strict=True)]
    for i, j in nearly_all(values, lambda difference, i, j: -difference):
        low, high = numbers.names[i], numbers.names[j]
        if not _one_kind(cells, low, high):
            continue
        difference = values[:, j] - values[:, i]
        difference = difference[~np.isnan(difference)]
        # If midnight lies between two times of day, the later time is the smaller number.
        half = min(half_days[i], half_days[j])
        if half and (difference < -half).any():
            continue
        rule = Order(columns=(low, high))
        if is_rising(low, high) and _go_together(values[:, [i, j]]):
            by_name.append(rule)
        elif is_rising(low, high) or isinstance(cells.formats[low], DateFormat):
            by_values.append(rule)
        elif np.mean(difference >= 0) >= _CLEARLY and _piles_up(values[:, [i, j]]):
            few = min(numbers.n_distinct[i], numbers.n_distinct[j]) < _FEW_VALUES
            if not few or (difference >= 0).all():
                by_values.append(rule)
    return by_name, by_values


def nearly_all(
    values: FloatArray, excess: Callable[[FloatArray, int, IntArray], FloatArray]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of columns (i, j) of `values` whose `excess` is at most 0 in nearly all rows.

    `excess` gets the differences of columns j from column i, (n, len(j)), with i and j.
    """
    some, few, every = values[::_STEP], (1 - NEARLY) * len(values) + 1, np.arange(values.shape[1])
    for i in every.tolist():
        # Most pairs exceed 0 too often in some of the rows already.
        tried = excess(some - some[:, [i]], i, every)
        others = np.flatnonzero(((tried > 0).sum(axis=0) <= few) & (every != i))
        tried = excess(values[:, others] - values[:, [i]], i, others)
        n_known = (~np.isnan(tried)).sum(axis=0)
        nearly = (tried <= 0).sum(axis=0) >= np.maximum(NEARLY * n_known, 1)
        yield from ((i, j) for j in others[nearly].tolist())


def is_rising(low: str, high: str) -> bool:
    """Whether two names show that one column is at most the other.

    >>> is_rising("start_date", "endDate"), is_rising("tmin", "tmax"), is_rising("max", "min")
    (True, True, False)
    """
    words, others = _words(low), _words(high)
    pairs = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    for rising in _RISING:
        for first, second in combinations(rising, 2):
            if pairs == [(first, second)] and len(words) == len(others):
                return True
            # The two words may be parts of longer words, as min and max are in tmin and tmax.
            in_one = low != high and low.lower().replace(first, second) == high.lower()
            if in_one and len(first) >= 3:
                return True
    return False


def neighbours(rules: Sequence[Order]) -> list[Order]:
    """Remove orders that follow from two others: a <= c from a <= b and b <= c."""
    pairs = {rule.columns for rule in rules}
    names = {name for pair in pairs for name in pair}
    return [
        rule
        for rule in rules
        if not any(
            (rule.columns[0], name) in pairs and (name, rule.columns[1]) in pairs
            for name in names - {*rule.columns}
        )
    ]


def _words(name: str) -> list[str]:
    """Return the words of a name; digits stay part of a word, as in q25."""
    return name_words(name) if not re.search(r"\d", name) else re.findall(r"[^\W_]+", name.lower())


def _one_kind(cells: Cells, first: str, second: str) -> bool:
    """Whether two columns are both dates, or numbers of one unit."""
    one, other = cells.formats[first], cells.formats[second]
    if isinstance(one, NumberFormat) and isinstance(other, NumberFormat):
        return (one.word, one.clock) == (other.word, other.clock)
    return type(one) is type(other)


def _piles_up(both: FloatArray) -> bool:
    """Whether differences of two columns (m, 2) are often 0 or just above, but rarely below."""
    both = both[~np.isnan(both).any(axis=1)]
    units = [rounding(column) for column in both.T]
    both = both[(both != 0).any(axis=1)]
    difference = both[:, 1] - both[:, 0]
    usual = float(np.median(difference[difference > 0])) if (difference > 0).any() else 0.0
    if not usual or units[0] != units[1]:
        return False
    near = max(_NEAR * usual, units[0])
    coarse = units[0] >= _NEAR * usual
    above = np.mean(difference == 0 if coarse else (difference >= 0) & (difference <= near))
    below = np.mean((difference < 0) & (difference >= -near))
    least = max(_SHARE_EQUAL if coarse else _SHARE_NEAR, _FEWEST_NEAR / len(both))
    if above < least or below > _ACROSS * above or not _go_together(both):
        return False
    if (both < 0).any():
        return True
    # Small values have small differences, so relative differences must be near 0 often, too.
    relative = difference / both.max(axis=1)
    usual = float(np.median(relative[relative > 0]))
    return bool(np.mean((relative >= 0) & (relative <= _NEAR * usual)) >= _SHARE_NEAR)


def _go_together(both: FloatArray) -> bool:
    both = both[~np.isnan(both).any(axis=1)]
    if len(both) < _MIN_ROWS or np.ptp(both, axis=0).min() == 0:
        return False
    together = rank_correlation(both[:, 0], both[:, 1])
    return bool(together >= max(_TOGETHER, _SIGMAS / np.sqrt(len(both))))


def equal_columns(numbers: Numbers, cells: Cells) -> list[Equal]:
    """Find columns with the same numbers, up to the coarser column's rounding, or the same texts.

    Of several equal columns, each is paired with the first.
    """
    place = {name: i for i, name in enumerate(numbers.names)}
    texts = [name for name in cells.formats if not cells.is_number(name)]
    first: dict[str, str] = {}
    found = []
    for one, other in [*_equal_numbers(numbers), *_equal_texts(texts, cells)]:
        if one in first or other in first:
            continue
        tolerances = [0.0]
        if one in place:
            i, j = place[one], place[other]
            half = float(max(numbers.units[i], numbers.units[j])) / 2
            tolerances += [half] if is_fine(half, 0.0, numbers.spans[i]) else []
        rules = (Equal(columns=(one, other), tolerance=tolerance) for tolerance in tolerances)
        if (rule := next((rule for rule in rules if _says_enough(rule, cells)), None)) is not None:
            first[other] = one
            found.append(rule)
    return found


def _equal_numbers(numbers: Numbers) -> Iterator[tuple[str, str]]:
    def excess(difference: FloatArray, i: int, others: IntArray) -> FloatArray:
        half: FloatArray = np.maximum(numbers.units[others], numbers.units[i]) / 2
        return np.abs(difference) - half

    pairs = ((i, j) for i, j in nearly_all(numbers.values, excess) if i < j)
    return ((numbers.names[i], numbers.names[j]) for i, j in pairs)


def _equal_texts(names: Sequence[str], cells: Cells) -> Iterator[tuple[str, str]]:
    """Yield pairs of columns whose texts have equal hashes in nearly all rows."""
    hashes = np.zeros((len(names), len(cells)), dtype=np.uint64)
    for place, name in enumerate(names):
        texts = cells.texts(name)
        hashes[place] = (texts.hash().to_numpy() | 1) * texts.is_not_null().to_numpy()  # 0: missing
    for place, one in enumerate(names):
        both = (hashes[place] != 0) & (hashes[place + 1 :] != 0)
        n_both = both.sum(axis=1)
        n_apart = (both & (hashes[place] != hashes[place + 1 :])).sum(axis=1)
        alike = (n_both > 0) & (n_apart <= (1 - NEARLY) * n_both + 1)
        yield from ((one, names[place + 1 + j]) for j in np.flatnonzero(alike).tolist())


def _says_enough(rule: Equal, cells: Cells) -> bool:
    seen = check(rule, cells)
    return seen.share >= NEARLY and holds_elsewhere(seen, map(cells.codes, rule.columns), _TELLING)
