"""Columns of which one is never below another: start and end, minimum and maximum, part and whole.

Of two columns on different scales one is always below the other, and of two that rise together
nearly always. An order is told where names or dates say that both belong together, or where the
difference of two columns on one scale piles up on one side of 0 and nothing lies on the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from kpca_apps.novelty.columns.plan import name_words
from kpca_apps.novelty.magnitudes import rank_correlation
from kpca_apps.novelty.relations.checking import Cells, half_a_day
from kpca_apps.novelty.relations.finding.arithmetic import Numbers, rounding
from kpca_apps.novelty.relations.finding.evidence import NEARLY
from kpca_apps.novelty.relations.rule import Order
from kpca_apps.system.arrays import FloatArray
from kpca_apps.tables.values import DateFormat, NumberFormat

# Of two names that differ in these alone, the first is the lower, or comes earlier.
_RISING = (
    ("minimum", "mean", "maximum"),
    ("minimum", "average", "maximum"),
    ("min", "mean", "max"),
    ("min", "median", "max"),
    ("min", "avg", "max"),
    ("min", "average", "max"),
    ("mean", "worst"),
    ("lowest", "highest"),
    ("lower", "upper"),
    ("low", "high"),
    ("lo", "hi"),
    ("smallest", "largest"),
    ("start", "end"),
    ("start", "stop"),
    ("started", "ended"),
    ("started", "finished"),
    ("begin", "end"),
    ("first", "last"),
    ("from", "to"),
    ("diastolic", "systolic"),
    ("dia", "sys"),
    ("dbp", "sbp"),
    ("net", "gross"),
    ("q1", "median", "q3"),
    ("q25", "q50", "q75"),
    ("p5", "p50", "p95"),
    ("p10", "p50", "p90"),
    ("used", "total"),
)
_CLEARLY = 0.99  # share of the rows in which numbers without such names must be in order
_FEW_VALUES = 5  # distinct ones: of so few, all must be
_NEAR = 0.2  # of the usual difference
_SHARE_NEAR, _SHARE_EQUAL = 0.03, 0.1  # of the rows that lie so near, on a fine and a coarse scale
_FEWEST_NEAR = 10
_ACROSS = 0.1  # of these, at most as many lie as near on the other side
_TOGETHER, _SIGMAS = 0.3, 4.0  # rank correlation of columns that belong together
_MIN_ROWS = 20


def orders(numbers: Numbers, cells: Cells) -> tuple[list[Order], list[Order]]:
    """Find columns that are at most another: those whose names say so, and those that show it.

    Those with the names rise together, so that they belong to each other; that one is below the
    other shuffling may leave so.
    """
    values = numbers.values
    by_name, by_values = [], []
    formats = [cells.formats[name] for name in numbers.names]
    half_days = [half_a_day(*one) for one in zip(formats, values.T, strict=True)]
    for i, j in _mostly_below(values):
        low, high = numbers.names[i], numbers.names[j]
        if not _one_kind(cells, low, high):
            continue
        difference = values[:, j] - values[:, i]
        difference = difference[~np.isnan(difference)]
        # Of times of day the later one is less where midnight lies between.
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


def _mostly_below(values: FloatArray) -> Iterator[tuple[int, int]]:
    """Find columns (m, k) that are at most another in nearly all rows."""
    for i in range(values.shape[1]):
        differences = values - values[:, [i]]
        n_known = (~np.isnan(differences)).sum(axis=0)
        nearly = (differences >= 0).sum(axis=0) >= np.maximum(NEARLY * n_known, 1)
        yield from ((i, j) for j in np.flatnonzero(nearly).tolist() if j != i)


def is_rising(low: str, high: str) -> bool:
    """Whether two names say that one column is at most the other.

    >>> is_rising("start_date", "endDate"), is_rising("tmin", "tmax"), is_rising("max", "min")
    (True, True, False)
    """
    return any(
        _differ_in(low, high, first, second)
        for words in _RISING
        for place, first in enumerate(words)
        for second in words[place + 1 :]
    )


def neighbours(rules: Sequence[Order]) -> list[Order]:
    """Leave out orders that follow from two others: of a <= b <= c, that of a and c."""
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


def _differ_in(low: str, high: str, first: str, second: str) -> bool:
    words, others = _words(low), _words(high)
    if len(words) == len(others):
        differing = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
        if differing == [(first, second)]:
            return True
    # Written in one word: tmin, tmax.
    return len(first) >= 3 and low != high and low.lower().replace(first, second) == high.lower()


def _words(name: str) -> list[str]:
    """Return the words of a name with the numbers behind them (q25)."""
    return name_words(name) if not re.search(r"\d", name) else re.findall(r"[^\W_]+", name.lower())


def _one_kind(cells: Cells, first: str, second: str) -> bool:
    """Whether two columns are both dates, or numbers of one unit."""
    one, other = cells.formats[first], cells.formats[second]
    if isinstance(one, NumberFormat) and isinstance(other, NumberFormat):
        return (one.word, one.clock) == (other.word, other.clock)
    return type(one) is type(other)


def _piles_up(both: FloatArray) -> bool:
    """Whether the differences of two columns on one scale (m, 2) begin at 0 all at once."""
    both = both[~np.isnan(both).any(axis=1)]
    units = [rounding(column) for column in both.T]
    # That nothing is nothing in both columns says nothing of their scales.
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
    if above < least or below > _ACROSS * above:
        return False
    if not _go_together(both):
        return False
    if (both < 0).any():
        return True
    # Of sizes from small to large, differences of small ones are small without being near 0.
    relative = difference / both.max(axis=1)
    usual = float(np.median(relative[relative > 0]))
    return bool(np.mean((relative >= 0) & (relative <= _NEAR * usual)) >= _SHARE_NEAR)


def _go_together(both: FloatArray) -> bool:
    """Whether two columns (m, 2) rise together."""
    both = both[~np.isnan(both).any(axis=1)]
    if len(both) < _MIN_ROWS or np.ptp(both, axis=0).min() == 0:
        return False
    together = rank_correlation(both[:, 0], both[:, 1])
    return bool(together >= max(_TOGETHER, _SIGMAS / np.sqrt(len(both))))
