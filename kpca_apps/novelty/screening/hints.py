"""What may have gone wrong with a row: units, decimal points, digits, signs, columns exchanged.

A cell is *repaired* as a person would who sees what the rest of the row suggests: by a factor
people slip by, a digit typed twice, and so on. What the rest suggests is the median over the 10 of
the model's rows nearest in the other columns. The rule for telling a repair: as it stands, the
value lies farther from that than any value of the model's own rows does, by half as much again;
repaired, it lies as near as most of theirs do, and no farther than a quarter of the way it came.
Where more than two repairs do as well, nothing is told: the evidence is not clear.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpca_apps.novelty.detector.attribution import GroupDistances, NeighbourRows, nearest_rows
from kpca_apps.novelty.table.columns import quoted
from kpca_apps.novelty.table.number_rules import NumberRule, Tail, without_double

__all__ = ["HintFinder", "NumberColumn", "missing_hint"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Rows whose own distances from what is expected of them are looked at, and fewest for any hint.
N_CALIBRATING, MIN_ROWS = 300, 50
# In standard deviations: a column far off counts as far off, and drowns no other.
FARTHEST = 3.0
# A value is off where fewer than so many of the calibrating rows are expected as far from what is
# expected of them, and farther than so many times nearly all of them are. It fits where so large
# a share of them does, and within this part of the way.
MAX_EXPECTED, FAR_SHARE, TIMES_FARTHEST = 0.5, 0.99, 1.5
FITTING_SHARE, PART_OF_WAY = 0.75, 0.25
# Less is asked of repairs that leave nothing to choose, an exchange or a sign, and of values that
# are odd by themselves.
CLEAR_FITTING_SHARE = 0.95
# Units lie close together: they are told where rows keep to a tenth of what is expected of them.
CLOSE_FOR_UNITS = 0.1
# Of a column, the share of the model's rows above 0 from which it is looked at in logarithms.
POSITIVE_SHARE = 0.99
MAX_ALTERNATIVES = 2
# Of a row that is off in more columns than these, no two alone were exchanged; to try each with
# every other would take the square of the columns.
MAX_OFF = 8
# Of columns with fewer different values, any repair is likely to hit one.
MIN_STEPS = 10
MIN_DIGITS = 3
# A cell of a column is hardly ever missing if fewer rows than these lack it.
RARELY_MISSING = 0.01

# What people slip by: a factor, and between which units.
UNITS = (
    (2.54, "inches and centimetres"),
    (1 / 0.45359237, "pounds and kilograms"),
    (1 / 0.3048, "feet and metres"),
    (1.609344, "miles and kilometres"),
    (3.6, "metres a second and kilometres an hour"),
    (60.0, "minutes and hours, or seconds and minutes"),
    (12.0, "months and years, or inches and feet"),
    (24.0, "hours and days"),
)
TENS = (10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers as hints see it.

    Attributes
    ----------
    name : str
        Its name.
    group : int
        Position among the groups of columns.
    column : int
        The matrix column that holds its value.
    """

    name: str
    group: int
    column: int


class _Repair(NamedTuple):
    value: float
    words: str


@dataclass(frozen=True)
class _Scale:
    """How far the model's own rows lie from what is expected of them, in one column."""

    logs: bool
    fitting: float
    clear_fitting: float
    farthest: float
    tail: Tail | None
    rule: NumberRule
    mostly_one: bool

    @classmethod
    def of(cls, logs: bool, distances: FloatArray, values: FloatArray) -> _Scale | None:
        """Learn from the distances (r,) of some rows; ``None`` where too few of them are known.

        `values` (n,) are all that is known of the column.
        """
        known = distances[np.isfinite(distances)]
        if len(known) < MIN_ROWS / 2:
            return None
        shares = [FITTING_SHARE, CLEAR_FITTING_SHARE, FAR_SHARE]
        fitting, clear, farthest = np.quantile(known, shares).tolist()
        tail, rule = Tail.fit(known), NumberRule.fit(values, 1.0)
        _, counts = np.unique(values, return_counts=True)
        mostly_one = 2 * int(counts.max()) >= len(values)
        return cls(logs, fitting, clear, farthest, tail, rule, mostly_one)

    def is_odd(self, value: float) -> bool:
        """Whether a value is odd whatever the rest of its row says."""
        return bool(self.rule.judge(np.array([value]))[0])

    def is_off(self, value: float, expected: float) -> bool:
        """Whether a value is odd by itself, or too far from what is expected to be ordinary."""
        if self.is_odd(value):
            return True
        distance = self.distance(value, expected)
        if distance <= TIMES_FARTHEST * self.farthest:
            return False
        if self.tail is None or not np.isfinite(distance):
            return True
        return bool(self.tail.expected(np.array([distance]))[0] < MAX_EXPECTED)

    def distance(self, value: float, expected: float) -> float:
        """How far a value is from what is expected."""
        return _distance(value, expected, logs=self.logs)


def _distance(value: float, expected: float, *, logs: bool) -> float:
    if not logs:
        return abs(value - expected)
    return abs(math.log(value) - math.log(expected)) if value > 0 and expected > 0 else math.inf


@dataclass(frozen=True)
class HintFinder:
    """Tells what may have gone wrong with rows.

    Attributes
    ----------
    compared : GroupDistances
        Ordinary rows, to find those nearest to a row among.
    columns : tuple of NumberColumn
        Where to look for hints.
    scales : tuple of _Scale
        One a column.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=300)
    >>> rows = np.exp(0.1 * size[:, None] + 0.01 * rng.normal(size=(300, 3))) * [100, 60, 30]
    >>> standardised = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    >>> stored = NeighbourRows(rows, standardised, np.array([], dtype=int), np.arange(300))
    >>> columns = [NumberColumn(name, j, j) for j, name in enumerate(["height", "arm", "hand"])]
    >>> finder = HintFinder.fit(stored, [np.array([j]) for j in range(3)], columns)
    >>> wrong = rows[0] * [2.54, 1, 1]
    >>> finder.hints(wrong, (wrong - rows.mean(axis=0)) / rows.std(axis=0), own=0)
    ('"height" fits if divided by 2.54 (inches and centimetres?).',)
    """

    compared: GroupDistances
    columns: tuple[NumberColumn, ...]
    scales: tuple[_Scale, ...]

    @classmethod
    def fit(
        cls,
        neighbours: NeighbourRows,
        groups: Sequence[IntArray],
        columns: Sequence[NumberColumn],
    ) -> HintFinder:
        """Learn how far ordinary rows lie from what is expected of them."""
        n_rows, compared = len(neighbours.rows), GroupDistances(neighbours, groups, FARTHEST)
        columns = [c for c in columns if len(np.unique(neighbours.rows[:, c.column])) >= MIN_STEPS]
        if n_rows < MIN_ROWS or len(groups) < 2 or not columns:
            return cls(compared, (), ())
        picked = np.unique(np.linspace(0, n_rows - 1, N_CALIBRATING).astype(np.int64))
        logs = [np.mean(neighbours.rows[:, c.column] > 0) >= POSITIVE_SHARE for c in columns]
        found = np.full((len(picked), len(columns)), np.nan)
        for place, row in enumerate(picked):
            distances = _Distances(compared, neighbours.standardised[row])
            for j, column in enumerate(columns):
                expected = distances.expected(column, (column.group,), int(neighbours.index[row]))
                value = float(neighbours.rows[row, column.column])
                found[place, j] = _distance(value, expected, logs=bool(logs[j]))
        scales = [
            _Scale.of(bool(logs[j]), found[:, j], neighbours.rows[:, column.column])
            for j, column in enumerate(columns)
        ]
        kept = [(c, scale) for c, scale in zip(columns, scales, strict=True) if scale is not None]
        return cls(compared, tuple(c for c, _ in kept), tuple(scale for _, scale in kept))

    def hints(self, row: FloatArray, standardised: FloatArray, own: int) -> tuple[str, ...]:
        """Say what may have gone wrong with a row.

        Parameters
        ----------
        row, standardised : (d,) array
            The row encoded, and scaled for distances.
        own : int
            Its position among the training rows, -1 for a new one.

        Returns
        -------
        tuple of str
            A sentence each.
        """
        if not self.columns:
            return ()
        distances = _Distances(self.compared, standardised)
        off = [
            (j, expected)
            for j, column in enumerate(self.columns)
            if self._is_off(j, row, expected := distances.expected(column, (column.group,), own))
        ]
        found: list[str] = []
        exchanged: set[int] = set()
        for j, _ in off if len(off) <= MAX_OFF else ():
            partner = None if j in exchanged else self._exchanged_with(j, row, distances, own)
            if partner is not None:
                exchanged |= {j, partner}
                a, b = sorted((j, partner))
                names = f"{quoted(self.columns[a].name)} and {quoted(self.columns[b].name)}"
                found.append(f"{names} fit if exchanged.")
        for j, expected in off:
            if j not in exchanged:
                found += self._repaired(j, float(row[self.columns[j].column]), expected)
        return tuple(found)

    def _is_off(self, j: int, row: FloatArray, expected: float) -> bool:
        return self.scales[j].is_off(float(row[self.columns[j].column]), expected)

    def _repaired(self, j: int, value: float, expected: float) -> list[str]:
        """Say which repairs of one cell make it fit, if these are few."""
        scale, name = self.scales[j], quoted(self.columns[j].name)
        fitting: dict[float, tuple[float, str]] = {}
        units = scale.logs and scale.fitting <= CLOSE_FOR_UNITS
        sign = scale.rule.sign
        turned = value < 0 or (sign is not None and sign.sign * value < 0)
        signs = [_Repair(-value, "its sign is turned")] if turned else []
        for repair in (*signs, *_repairs(value), *(_units(value) if units else ())):
            distance = scale.distance(repair.value, expected)
            way = abs(value - repair.value)
            if scale.logs:
                way = scale.distance(value, repair.value)
            clear = repair.value == -value or scale.is_odd(value)
            fits = scale.clear_fitting if clear else scale.fitting
            if distance <= min(fits, PART_OF_WAY * way):
                fitting.setdefault(float(f"{repair.value:.6g}"), (distance, repair.words))
        if not 0 < len(fitting) <= MAX_ALTERNATIVES:
            return []
        words = [words for _, words in sorted(fitting.values())]
        return [f"{name} fits if {', or '.join(words)}."]

    def _exchanged_with(
        self, j: int, row: FloatArray, distances: _Distances, own: int
    ) -> int | None:
        """Return the column whose value fits here while this one's fits there."""
        column = self.columns[j]
        value = float(row[column.column])
        best: tuple[float, int] | None = None
        for k, other in enumerate(self.columns):
            theirs = float(row[other.column])
            if k == j or theirs == value:
                continue
            # Of two columns that are 0 nearly everywhere, either value fits in either.
            if self.scales[j].mostly_one and self.scales[k].mostly_one:
                continue
            left_out = (column.group, other.group)
            # Exchanged values must be possible at all before neighbours are looked for.
            if not (self._usual(k, value) and self._usual(j, theirs)):
                continue
            ratios = []
            for at, before, after in ((j, value, theirs), (k, theirs, value)):
                expected = distances.expected(self.columns[at], left_out, own)
                scale = self.scales[at]
                near = scale.distance(after, expected)
                fits = scale.clear_fitting
                if near > min(fits, PART_OF_WAY * scale.distance(before, expected)):
                    break
                ratios.append(near / fits if fits > 0 else 0.0)
            if len(ratios) == 2 and (best is None or max(ratios) < best[0]):
                best = max(ratios), k
        return None if best is None else best[1]

    def _usual(self, j: int, value: float) -> bool:
        """Whether a value lies within those of the model's rows."""
        low, high = self._ranges
        column = self.columns[j].column
        return bool(low[column] <= value <= high[column])

    @cached_property
    def _ranges(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value of each column of the model's rows."""
        rows = self.compared.neighbours.rows
        return rows.min(axis=0), rows.max(axis=0)


class _Distances:
    """Squared distances of one row from the model's rows, by group of columns and in all."""

    def __init__(self, compared: GroupDistances, standardised: FloatArray) -> None:
        self.neighbours, self.parts = compared.neighbours, compared.squares(standardised)
        self.total = self.parts.sum(axis=0)

    def expected(self, column: NumberColumn, left_out: tuple[int, ...], own: int) -> float:
        """Return what the rows nearest in the groups that are not left out suggest."""
        others = self.total - self.parts[list(left_out)].sum(axis=0)
        others[self.neighbours.index == own] = np.inf
        (nearest,) = nearest_rows(others[None])
        # Several times faster than a median of few numbers.
        values, k = np.sort(self.neighbours.rows[nearest, column.column]), len(nearest)
        return float(values[(k - 1) // 2] + values[k // 2]) / 2


def _repairs(value: float) -> Iterator[_Repair]:
    """Return what may have been meant by a value, in the order of how often it is."""
    for factor in TENS:
        yield _Repair(value / factor, f"divided by {factor:.0f}")
        yield _Repair(value * factor, f"multiplied by {factor:.0f}")
    for digits, words in _retyped(value):
        yield _Repair(float(digits) * (-1 if value < 0 else 1), f"read as {digits} ({words}?)")
    if value == round(value) and 1000 <= value < 3000:
        for century in (value - 100, value + 100):
            yield _Repair(century, f"read as {century:.0f} (another century?)")


def _units(value: float) -> Iterator[_Repair]:
    """Return a value in the units it may have been meant in."""
    for factor, units in UNITS:
        shown = f"{factor:.4g}"
        yield _Repair(value / factor, f"divided by {shown} ({units}?)")
        yield _Repair(value * factor, f"multiplied by {shown} ({units}?)")
    for celsius in ((value - 32) / 1.8, 1.8 * value + 32):
        yield _Repair(celsius, f"read as {celsius:.4g} (Fahrenheit and Celsius?)")


def _retyped(value: float) -> Iterator[tuple[str, str]]:
    """Return a number with a digit typed once less, or two exchanged."""
    text = repr(abs(value)).removesuffix(".0")
    if "e" in text or sum(letter.isdigit() for letter in text) < MIN_DIGITS:
        return
    for shorter in without_double(value):
        yield shorter, "a digit typed twice"
    for i, (a, b) in enumerate(pairwise(text)):
        if a != b and a.isdigit() and b.isdigit() and (b != "0" or i > 0):
            yield text[:i] + b + a + text[i + 2 :], "two digits exchanged"


def missing_hint(missing: Sequence[tuple[str, float]]) -> str:
    """Say that several cells are missing that hardly ever are; empty where they are not.

    Parameters
    ----------
    missing : sequence of (str, float)
        The columns whose cells are missing in a row, and the share of rows that lack each.

    Examples
    --------
    >>> missing_hint([("age", 0.001), ("fare", 0.0), ("cabin", 0.7)])
    '"age" and "fare" are missing, each of which fewer than 1 in 100 rows lack.'
    """
    rare = [quoted(name) for name, share in missing if share < RARELY_MISSING]
    if len(rare) < 2:
        return ""
    names = f"{', '.join(rare[:-1])} and {rare[-1]}"
    return f"{names} are missing, each of which fewer than 1 in 100 rows lack."
