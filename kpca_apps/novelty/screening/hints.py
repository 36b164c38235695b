"""What may have gone wrong with a row: units, decimal points, digits, signs, columns exchanged.

A cell is *repaired* as a person would who sees what the rest of the row suggests: by a factor
people slip by, a digit typed twice, and so on. What the rest suggests is the median over the 10 of
the model's rows nearest in the other columns. A repair is told where the value as it stands lies
farther from that than any value of the model's own rows does, by half as much again, and repaired
as near as most of theirs do, and no farther than a quarter of the way it came. Where more than two
repairs do as well, nothing is told: the evidence is not clear.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpca_apps.files.tables.numbers import NumberFormat
from kpca_apps.files.tables.table import Table
from kpca_apps.novelty.detector.attribution import GroupDistances, NeighbourRows, nearest_rows
from kpca_apps.novelty.detector.row_source import SAMPLE_ROWS
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.novelty.table.cell_rules import NumberRule, without_double
from kpca_apps.novelty.table.column_tails import Tail
from kpca_apps.novelty.table.specs import quoted
from kpca_apps.novelty.table.table_rows import TableRows

__all__ = ["HintFinder", "NumberColumn", "hint_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Of more columns of numbers no slips are sought: what the others suggest of each would take
# minutes, and chance would fit some factor in every row.
MAX_COLUMNS = 300
# Rows of a table that hints are found by; of these, rows whose own distances from what is expected
# of them are looked at, and fewest for any hint.
MAX_COMPARED, N_CALIBRATING, MIN_ROWS = 2_500, 300, 50
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


def hint_rows(
    model: NoveltyModel, rows: TableRows, table: Table, matrix: FloatArray, positions: IntArray
) -> list[tuple[str, ...]]:
    """Say what may have gone wrong with some rows, those at `positions` (r,), a sentence each.

    `matrix` (r, d) are these rows encoded, and the first of `table`, as they stand. What is
    ordinary is learned from all `rows` of their table, or from a clean reference of the model.
    """
    encoder, views = model.encoder, model.detector.views_
    if model.clean:
        neighbours, own = model.detector.neighbours_, np.full(len(matrix), -1)
    else:
        drawn = np.unique(np.linspace(0, len(rows.sample) - 1, MAX_COMPARED).astype(np.int64))
        ordinary, as_is = rows.sample[drawn], np.array(encoder.as_is, dtype=np.int64)
        scaled = views.standardised(ordinary)
        neighbours, own = (
            NeighbourRows(ordinary, scaled, as_is, rows.sample_index[drawn]),
            positions,
        )
    columns = [
        NumberColumn(group.name, place, group.columns[0])
        for place, (coder, group) in enumerate(zip(encoder.coders, encoder.groups, strict=True))
        if isinstance(coder.spec.format, NumberFormat) and not coder.spec.hidden
    ]
    groups = [np.array(group.columns) for group in encoder.groups]
    finder = HintFinder(neighbours, groups, columns if len(columns) <= MAX_COLUMNS else [])
    found = [
        finder.hints(row, scaled, int(position))
        for row, scaled, position in zip(matrix, views.standardised(matrix), own, strict=True)
    ]
    # Several cells are missing that hardly ever are.
    missing: list[list[str]] = [[] for _ in range(table.frame.height)]
    n_learned = min(model.source.n_rows, SAMPLE_ROWS)
    for spec in encoder.plan.used:
        if not spec.hidden and spec.n_missing / n_learned < RARELY_MISSING:
            for row in np.flatnonzero(table.column(spec.name).read(spec.format).missing):
                missing[row].append(quoted(spec.name))
    for place, names in enumerate(missing[: len(found)]):
        if len(names) > 1:
            which = f"{', '.join(names[:-1])} and {names[-1]}"
            found[place] += (f"{which} are missing, each of which fewer than 1 in 100 rows lack.",)
    return found


class NumberColumn(NamedTuple):
    """A column of numbers: its group among the groups of columns, its column of the matrix."""

    name: str
    group: int
    column: int


@dataclass(frozen=True, eq=False)
class _Scale:
    """How far the model's own rows lie from what is expected of them, in one column."""

    column: NumberColumn
    low: float  # smallest value of these rows
    high: float
    logs: bool  # whether distances are taken between logarithms
    fitting: float  # a distance that is common
    clear_fitting: float
    farthest: float  # a distance that nearly none exceeds
    tail: Tail | None
    rule: NumberRule
    mostly_one: bool  # whether most values are the same

    def is_odd(self, value: float) -> bool:
        """Whether a value is odd whatever the rest of its row says."""
        return bool(self.rule.judge(np.array([value]))[0])

    def is_off(self, value: float, expected: float) -> bool:
        """Whether a value is odd by itself, or too far from what is expected to be ordinary."""
        if self.is_odd(value):
            return True
        distance = _distance(value, expected, self.logs)
        if distance <= TIMES_FARTHEST * self.farthest:
            return False
        if self.tail is None or not np.isfinite(distance):
            return True
        return bool(self.tail.expected(np.array([distance]))[0] < MAX_EXPECTED)


def _distance(value: float, expected: float, logs: bool) -> float:
    if not logs:
        return abs(value - expected)
    return abs(math.log(value) - math.log(expected)) if value > 0 and expected > 0 else math.inf


class HintFinder:
    """Tells what may have gone wrong with rows, by ordinary rows that it is made of.

    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=300)
    >>> rows = np.exp(0.1 * size[:, None] + 0.01 * rng.normal(size=(300, 3))) * [100, 60, 30]
    >>> standardised = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    >>> stored = NeighbourRows(rows, standardised, np.array([], dtype=int), np.arange(300))
    >>> columns = [NumberColumn(name, j, j) for j, name in enumerate(["height", "arm", "hand"])]
    >>> finder = HintFinder(stored, [np.array([j]) for j in range(3)], columns)
    >>> wrong = rows[0] * [2.54, 1, 1]
    >>> finder.hints(wrong, (wrong - rows.mean(axis=0)) / rows.std(axis=0), own=0)
    ('"height" fits if divided by 2.54 (inches and centimetres?).',)
    """

    def __init__(
        self, neighbours: NeighbourRows, groups: Sequence[IntArray], columns: Sequence[NumberColumn]
    ) -> None:
        self.compared = GroupDistances(neighbours, groups, FARTHEST)
        self.scales: list[_Scale] = []
        values = {c: neighbours.rows[:, c.column] for c in columns}
        columns = [c for c in columns if len(np.unique(values[c])) >= MIN_STEPS]
        n_rows = len(neighbours.rows)
        if n_rows < MIN_ROWS or len(groups) < 2 or not columns:
            return
        picked = np.unique(np.linspace(0, n_rows - 1, N_CALIBRATING).astype(np.int64))
        logs = {c: bool(np.mean(values[c] > 0) >= POSITIVE_SHARE) for c in columns}
        found = np.empty((len(columns), len(picked)))
        for place, row in enumerate(picked):
            around = _Surroundings(self.compared, neighbours.standardised[row])
            for j, c in enumerate(columns):
                expected = around.expected(c, (c.group,), int(neighbours.index[row]))
                found[j, place] = _distance(float(values[c][row]), expected, logs[c])
        for c, distances in zip(columns, found, strict=True):
            finite = distances[np.isfinite(distances)]
            if len(finite) < MIN_ROWS / 2:
                continue
            shares = [FITTING_SHARE, CLEAR_FITTING_SHARE, FAR_SHARE]
            fitting, clear_fitting, farthest = np.quantile(finite, shares).tolist()
            _, counts = np.unique(values[c], return_counts=True)
            scale = _Scale(
                column=c,
                low=float(values[c].min()),
                high=float(values[c].max()),
                logs=logs[c],
                fitting=fitting,
                clear_fitting=clear_fitting,
                farthest=farthest,
                tail=Tail.fit(finite),
                rule=NumberRule.fit(values[c], 1.0),
                mostly_one=2 * int(counts.max()) >= n_rows,
            )
            self.scales.append(scale)

    def hints(self, row: FloatArray, standardised: FloatArray, own: int) -> tuple[str, ...]:
        """Say what may have gone wrong with a row, a sentence each.

        The row (d,) is given encoded, and scaled for distances; `own` is its position among the
        training rows, -1 for a new one.
        """
        if not self.scales:
            return ()
        around = _Surroundings(self.compared, standardised)
        off: list[tuple[_Scale, float, float]] = []
        for scale in self.scales:
            value = float(row[scale.column.column])
            expected = around.expected(scale.column, (scale.column.group,), own)
            if scale.is_off(value, expected):
                off.append((scale, value, expected))
        found: list[str] = []
        exchanged: list[_Scale] = []
        for scale, _, _ in off if len(off) <= MAX_OFF else ():
            partner = None
            if scale not in exchanged:
                partner = self._exchanged_with(scale, row, around, own)
            if partner is not None:
                exchanged += [scale, partner]
                pair = [one.column.name for one in self.scales if one in (scale, partner)]
                found.append(f"{' and '.join(map(quoted, pair))} fit if exchanged.")
        for scale, value, expected in off:
            if scale not in exchanged:
                found += _repaired(scale, value, expected)
        return tuple(found)

    def _exchanged_with(
        self, scale: _Scale, row: FloatArray, around: _Surroundings, own: int
    ) -> _Scale | None:
        """Return the column whose value fits here while this one's fits there."""
        value = float(row[scale.column.column])
        best: tuple[float, _Scale] | None = None
        for other in self.scales:
            theirs = float(row[other.column.column])
            if (
                other is scale
                or theirs == value
                # Of two columns that are 0 nearly everywhere, either value fits in either.
                or (scale.mostly_one and other.mostly_one)
                # Exchanged values must be possible at all before neighbours are looked for.
                or not other.low <= value <= other.high
                or not scale.low <= theirs <= scale.high
            ):
                continue
            ratios = []
            for at, before, after in ((scale, value, theirs), (other, theirs, value)):
                expected = around.expected(at.column, (scale.column.group, other.column.group), own)
                near, fits = _distance(after, expected, at.logs), at.clear_fitting
                if near > min(fits, PART_OF_WAY * _distance(before, expected, at.logs)):
                    break
                ratios.append(near / fits if fits > 0 else 0.0)
            if len(ratios) == 2 and (best is None or max(ratios) < best[0]):
                best = max(ratios), other
        return None if best is None else best[1]


class _Surroundings:
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


def _repaired(scale: _Scale, value: float, expected: float) -> list[str]:
    """Say which repairs of one cell make it fit, if these are few."""
    fitting: dict[float, tuple[float, str]] = {}
    sign = scale.rule.sign
    repairs = [*_repairs(value)]
    if value < 0 or (sign is not None and sign.sign * value < 0):
        repairs.insert(0, (-value, "its sign is turned"))
    if scale.logs and scale.fitting <= CLOSE_FOR_UNITS:
        repairs += _in_other_units(value)
    for repaired, words in repairs:
        distance = _distance(repaired, expected, scale.logs)
        is_clear = repaired == -value or scale.is_odd(value)
        fits = scale.clear_fitting if is_clear else scale.fitting
        if distance <= min(fits, PART_OF_WAY * _distance(value, repaired, scale.logs)):
            fitting.setdefault(float(f"{repaired:.6g}"), (distance, words))
    if not 0 < len(fitting) <= MAX_ALTERNATIVES:
        return []
    said = ", or ".join(words for _, words in sorted(fitting.values()))
    return [f"{quoted(scale.column.name)} fits if {said}."]


def _repairs(value: float) -> Iterator[tuple[float, str]]:
    """Yield what may have been meant by a value, most often meant first, and the repair."""
    for factor in (10.0, 100.0, 1000.0):
        yield value / factor, f"divided by {factor:.0f}"
        yield value * factor, f"multiplied by {factor:.0f}"
    text = repr(abs(value)).removesuffix(".0")
    if "e" not in text and sum(letter.isdigit() for letter in text) >= MIN_DIGITS:
        retyped = [(shorter, "a digit typed twice") for shorter in without_double(value)]
        for i, (a, b) in enumerate(pairwise(text)):
            if a != b and a.isdigit() and b.isdigit() and (b != "0" or i > 0):
                retyped.append((text[:i] + b + a + text[i + 2 :], "two digits exchanged"))
        for digits, words in retyped:
            yield math.copysign(float(digits), value), f"read as {digits} ({words}?)"
    if value == round(value) and 1000 <= value < 3000:
        for century in (value - 100, value + 100):
            yield century, f"read as {century:.0f} (another century?)"


def _in_other_units(value: float) -> Iterator[tuple[float, str]]:
    """Yield a value in the units it may have been meant in, and the repair."""
    for factor, units in UNITS:
        yield value / factor, f"divided by {factor:.4g} ({units}?)"
        yield value * factor, f"multiplied by {factor:.4g} ({units}?)"
    for celsius in ((value - 32) / 1.8, 1.8 * value + 32):
        yield celsius, f"read as {celsius:.4g} (Fahrenheit and Celsius?)"
