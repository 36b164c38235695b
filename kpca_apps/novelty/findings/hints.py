"""Suggest what is wrong with a row: a mistyped number, several gaps, a row of totals.

Errors considered are units, decimal points, digits, signs and exchanged columns. A *repair* undoes
a common error: dividing by a factor, removing a digit that was typed twice, and so on. The expected
value is the median over 10 rows of the model, those nearest in the other columns. A repair fits if
the value is far from its expected value, but the repaired value is near and possible in the column.
Repairs are suggested if at most two fit. Exchanged columns are tried first. Units are tried only in
columns whose names or units say what they measure: elsewhere some unit would fit by chance.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from kpca_apps.names import in_prose, listed, quoted
from kpca_apps.novelty.checks.number_rules import (
    MAX_CLEARNESS,
    NumberRule,
    deduplicate_digit,
    most_beyond,
)
from kpca_apps.novelty.checks.tails import EXPONENTIAL, SHAPES, Tail
from kpca_apps.novelty.columns.kinds import steps_of
from kpca_apps.novelty.columns.plan import name_words
from kpca_apps.novelty.detector.neighbours import NeighbourRows, Surroundings
from kpca_apps.novelty.screening.encoded import Encoded
from kpca_apps.novelty.screening.model import AnyModel
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import NumberFormat

# Number of the model's rows whose distances to expected values are measured; minimum number of rows
# for any hint.
N_CALIBRATING, MIN_ROWS = 300, 50
FARTHEST = 3.0  # cap on the distance of two rows in one column, in standard deviations
# A value that is not odd by itself is deviant if its distance from the expected value exceeds
# TIMES_FARTHEST times the FAR_SHARE quantile of such distances in the calibrating rows, and if
# fewer than MAX_EXPECTED of these rows would be as far by chance.
MAX_EXPECTED, FAR_SHARE, TIMES_FARTHEST = 0.5, 0.99, 1.5
# A repaired value fits if its distance from the expected value is at most the FITTING_SHARE
# quantile of such distances, and at most PART_OF_WAY times the change that the repair makes. If two
# values are exchanged, it is at most PART_OF_WAY times the distance of the cell's original value.
FITTING_SHARE, PART_OF_WAY = 0.75, 0.25
# This higher share replaces FITTING_SHARE for an exchange of two values, a changed sign, and for
# values that are odd by themselves or farther off than all other values of their column.
CLEAR_FITTING_SHARE = 0.95
# Units are tried only if three of four values are within about 10 % of their expected values.
CLOSE_FOR_UNITS = 0.1
# Compare a column in logarithms if POSITIVE_SHARE of its values are above 0, unless the logarithms
# reach TIMES_LONGER times as far below their median as above it, as temperatures near 0 do. This
# ratio is 1 for log-normal columns, 1.6 for normal columns with a mean of 4 standard deviations.
POSITIVE_SHARE, TIMES_LONGER = 0.99, 1.4
MAX_ALTERNATIVES = 2
# Maximum number of deviant columns between which exchanges are tried, as the number of pairs is
# quadratic. If most columns, and more than FEW_DEVIANT, deviate, no single cell is wrong: the row
# has another size than its neighbours.
MAX_DEVIANT, FEW_DEVIANT = 8, 2
# With fewer distinct values in the column, any repair is likely to hit one of them.
MIN_STEPS = 10
MIN_DIGITS = 3
AS_WRITTEN = 1e-3  # relative rounding of a number with four digits

# Units that are often confused: factor, both units, quantity measured.
UNITS = (
    (2.54, "inches and centimetres", "length"),
    (1 / 0.3048, "feet and metres", "length"),
    (1 / 0.45359237, "pounds and kilograms", "mass"),
    (1.609344, "miles and kilometres", "distance speed"),
    (3.6, "metres a second and kilometres an hour", "speed"),
    (60.0, "minutes and hours, or seconds and minutes", "time"),
    (12.0, "months and years", "time"),
    (24.0, "hours and days", "time"),
)
# Words in a column's name or unit that imply what it measures. Words here of at least LONG_WORD
# letters also match longer words that begin with them.
OF_UNITS = {
    "length": "length height width depth diam radius thick altitude elev size inch in feet foot ft "
    "metre meter mm cm m",
    "distance": "dist mile km kilomet",
    "mass": "weight mass kilo pound kg lb lbs",
    "speed": "speed velocity wind mph kmh kph",
    "time": "time duration hour minute second month year week days age min sec hr yr h s",
    "temperature": "temp celsius fahrenheit degree c f",
}
LONG_WORD = 4


class _Column:
    """A column of numbers, with quantiles of the distances of its values from expected ones."""

    fitting: float  # FITTING_SHARE quantile of the distances
    clear_fitting: float  # CLEAR_FITTING_SHARE quantile of the distances
    farthest: float  # FAR_SHARE quantile of the distances
    tail: Tail | None  # tail of the distances
    n_values: int  # number of rows with a finite distance
    widest: float  # second largest |value - expected value|, without logarithms even if `in_logs`

    def __init__(
        self, name: str, group: int, place: int, values: FloatArray, unit: str = ""
    ) -> None:
        self.name, self.group, self.place = name, group, place  # place: index of the matrix column
        self.quantities = _quantities(name, unit)
        self.low, self.high = float(values.min()), float(values.max())
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
        # Use the logarithms of mostly positive values if they have no long lower tail.
        self.in_logs = np.mean(values > 0) >= POSITIVE_SHARE and (
            0 < low and math.log(middle / low) <= TIMES_LONGER * math.log(high / middle)
        )
        self.rule = NumberRule.fit(values, 1.0)
        counts = np.unique(values, return_counts=True)[1]
        self.mostly_one = 2 * int(counts.max()) >= len(values)
        self.steps = steps_of(values)

    def learn(self, values: FloatArray, expected: FloatArray, times: float) -> bool:
        """Learn the distances of `values` from `expected`; return False if too few are finite.

        The whole table has `times` as many rows.
        """
        pairs = zip(values.tolist(), expected.tolist(), strict=True)
        distances = np.array([self.distance(*pair) for pair in pairs])
        finite = distances[np.isfinite(distances)]
        if len(finite) < MIN_ROWS / 2:
            return False
        self.n_values = len(finite)
        shares = [FITTING_SHARE, CLEAR_FITTING_SHARE]
        self.fitting, self.clear_fitting = np.quantile(finite, shares).tolist()
        # Leave out the largest distance, which may belong to a row to be judged.
        self.farthest = float(np.quantile(np.sort(finite)[:-1], FAR_SHARE))
        # If distances have a Pareto tail, their logarithms have an exponential tail.
        self.tail = Tail.fit(finite, times, EXPONENTIAL if self.in_logs else SHAPES)
        self.widest = float(np.sort(np.abs(values - expected))[-2])
        return True

    def distance(self, value: float, expected: float) -> float:
        if not self.in_logs:
            return abs(value - expected)
        return abs(math.log(value) - math.log(expected)) if min(value, expected) > 0 else math.inf

    def holds(self, value: float) -> bool:
        """Whether a value is one of `steps`, or else in range (whole, in a column of integers)."""
        if self.steps.size:
            return bool(np.isclose(self.steps, value, rtol=1e-9, atol=0.0).any())
        return self.low <= value <= self.high and (not self.rule.whole or value == round(value))

    def is_odd(self, value: float) -> bool:
        return bool(self.rule.judge(np.array([value]))[0])

    def is_alone(self, value: float, expected: float) -> bool:
        """Whether no other value of the column is as far from its expected value.

        The difference must also be the widest: near 0, logarithms exaggerate small differences.
        """
        is_wide = abs(value - expected) > self.widest
        return (
            is_wide and self.tail is not None and self.distance(value, expected) > self.tail.limit
        )

    def share_beyond(self, value: float, expected: float) -> float:
        """Return the share of the column's values at least this far from their expected values."""
        if self.tail is None:
            return 1.0
        distance = np.array([self.distance(value, expected)])
        n_expected: float = max(float(self.tail.expected(distance)[0]), 0.1**MAX_CLEARNESS)
        return n_expected / (self.tail.times * self.n_values)

    def times_usual(self, value: float, expected: float) -> float:
        distance = self.distance(value, expected)
        return distance / self.clear_fitting if self.clear_fitting > 0 else distance

    def is_deviant(self, value: float, expected: float) -> bool:
        """Whether a value is odd by itself, or too far from the expected one to be ordinary."""
        if self.is_odd(value):
            return True
        distance = self.distance(value, expected)
        if distance <= TIMES_FARTHEST * self.farthest:
            return False
        if self.tail is None or not np.isfinite(distance):
            return True
        expected_so_far = self.tail.expected(np.array([distance]))[0]
        return bool(expected_so_far < MAX_EXPECTED * self.tail.times)


class AloneCell(NamedTuple):
    """A number that is farther from its expected value than any other in its column."""

    meant: float | None
    p_value: float  # probability that a correct row has a number as far off in any column


class Hints(NamedTuple):
    """What may be wrong with a row."""

    sentences: tuple[str, ...] = ()
    alone: Mapping[str, AloneCell] = MappingProxyType({})  # by column name


class HintFinder:
    """Finds likely errors in rows by comparing them with ordinary rows.

    `groups` are the matrix columns of each table column. `names` maps the indices of columns of
    numbers to their names; `units` maps some of these names to units. The table has `n_rows`.
    """

    def __init__(
        self,
        neighbours: NeighbourRows,
        groups: Sequence[IntArray],
        names: Mapping[int, str],
        units: Mapping[str, str] = MappingProxyType({}),
        n_rows: int = 0,
    ) -> None:
        self.neighbours, self.groups = neighbours, groups
        self.columns: list[_Column] = []
        n_stored = len(neighbours.rows)
        if n_stored < MIN_ROWS or len(groups) < 2:
            return
        columns = []
        for group, name in names.items():
            place = int(groups[group][0])
            values = neighbours.rows[~_is_gap(neighbours.rows, groups[group]), place]
            if len(np.unique(values)) >= MIN_STEPS:
                columns.append(_Column(name, group, place, values, units.get(name, "")))
        if not columns:
            return
        picked = np.unique(np.linspace(0, n_stored - 1, N_CALIBRATING).astype(np.int64))
        rows, own = neighbours.standardised[picked], neighbours.index[picked]
        expected = self._expected(columns, rows, own)
        for j, column in enumerate(columns):
            values = neighbours.rows[picked, column.place]
            if column.learn(values, expected[:, j], max(n_rows, n_stored) / len(picked)):
                self.columns.append(column)

    @cached_property
    def _around(self) -> Surroundings:
        return Surroundings(self.neighbours, self.groups, FARTHEST)

    def _expected(self, columns: Sequence[_Column], rows: FloatArray, own: IntArray) -> FloatArray:
        sets = np.array([[column.group] for column in columns], dtype=np.int64).reshape(-1, 1)
        return self._middle(columns, rows, own, np.tile(sets, (len(rows), 1, 1)))

    def _middle(
        self, columns: Sequence[_Column], rows: FloatArray, own: IntArray, sets: IntArray
    ) -> FloatArray:
        """Return medians of column j over rows nearest to row i without groups `sets[i, j]`."""
        nearest = self._around.near(rows, own, sets).nearest
        places = np.array([column.place for column in columns], dtype=np.int64)
        # Sorting is several times as fast as np.median for few numbers.
        values = np.sort(self.neighbours.rows[nearest, places[:, None]], axis=2)
        k = values.shape[2]
        return (values[:, :, (k - 1) // 2] + values[:, :, k // 2]) / 2

    def hints(
        self,
        rows: FloatArray,
        standardised: FloatArray,
        own: IntArray,
        meant: Sequence[Mapping[str, float]],
    ) -> list[Hints]:
        """Suggest what may be wrong with each of `rows` (r, d); `standardised` holds them scaled.

        `own` are their positions among the training rows, -1 for new ones. If a value was already
        suggested for a cell (`meant`), only repairs that lead to this value are suggested.
        """
        if not self.columns:
            return [Hints()] * len(rows)
        expected = self._expected(self.columns, standardised, own)
        each = zip(rows, standardised, own.tolist(), expected, meant, strict=True)
        hints = [self._hints(*one) for one in each]
        # A column in which several rows are far off has drifted or has a long tail: drop its cells.
        n_alone, few = Counter(name for of in hints for name in of.alone), most_beyond(len(rows))
        return [
            of._replace(alone={name: of.alone[name] for name in of.alone if n_alone[name] <= few})
            for of in hints
        ]

    def _hints(
        self,
        row: FloatArray,
        standardised: FloatArray,
        own: int,
        each: FloatArray,
        meant: Mapping[str, float],
    ) -> Hints:
        """Suggest what may be wrong with a row; `each` are expected values of `self.columns`."""
        deviant: list[tuple[_Column, float, float]] = []
        times: list[float] = []
        for column, expected in zip(self.columns, each.tolist(), strict=True):
            value = float(row[column.place])
            if _is_gap(row[None], self.groups[column.group])[0]:
                continue
            times.append(column.times_usual(value, expected))
            if column.is_deviant(value, expected):
                deviant.append((column, value, expected))
        found: list[str] = []
        exchanged: list[_Column] = []
        for column, _, _ in deviant if len(deviant) <= MAX_DEVIANT else ():
            if column in exchanged or column.name in meant:
                continue
            partner = self._exchanged_with(column, row, standardised, own)
            if partner is not None:
                exchanged += [column, partner]
                pair = [quoted(one.name) for one in self.columns if one in (column, partner)]
                found.append(f"{' and '.join(pair)} fit if exchanged.")
        alone: dict[str, AloneCell] = {}
        next_to_most = max(sorted(times)[:-1], default=0.0)
        is_other = len(deviant) > max(FEW_DEVIANT, len(self.columns) / 2)
        for column, value, expected in () if is_other else deviant:
            if column not in exchanged:
                repairs = _repaired(column, value, expected, meant.get(column.name))
                if repairs:
                    words = ", or ".join(repairs.values())
                    found.append(f"{quoted(column.name)} fits if {words}.")
                # If another number of the row is nearly as far off, no single cell is wrong.
                apart = column.times_usual(value, expected) > TIMES_FARTHEST * next_to_most
                if apart and column.is_alone(value, expected):
                    meant_here = next(iter(repairs)) if len(repairs) == 1 else None
                    p_value = len(self.columns) * column.share_beyond(value, expected)
                    alone[column.name] = AloneCell(meant_here, min(p_value, 1.0))
        return Hints(tuple(found), alone)

    def _exchanged_with(
        self, column: _Column, row: FloatArray, standardised: FloatArray, own: int
    ) -> _Column | None:
        """Return the column with which `column` must exchange values for both to fit, or None."""
        value = float(row[column.place])
        best: tuple[float, _Column] | None = None
        for other in self.columns:
            theirs = float(row[other.place])
            # Skip two columns that mostly hold one value, such as 0: the value of either would fit
            # the other. Skip impossible values before the slower search for neighbours.
            is_possible = other.holds(value) and column.holds(theirs)
            both_mostly_one = column.mostly_one and other.mostly_one
            if other is column or theirs == value or both_mostly_one or not is_possible:
                continue
            ratios = []
            for at, before, after in ((column, value, theirs), (other, theirs, value)):
                expected = self._expect(at, other if at is column else column, standardised, own)
                near, fits = at.distance(after, expected), at.clear_fitting
                if near > min(fits, PART_OF_WAY * at.distance(before, expected)):
                    break
                ratios.append(near / fits if fits > 0 else 0.0)
            if len(ratios) == 2 and (best is None or max(ratios) < best[0]):
                best = max(ratios), other
        return None if best is None else best[1]

    def _expect(self, column: _Column, other: _Column, standardised: FloatArray, own: int) -> float:
        """Predict a column from the rows nearest in all columns except it and `other`."""
        groups = np.array([[sorted((column.group, other.group))]])
        return float(self._middle([column], standardised[None], np.array([own]), groups)[0, 0])


def _is_gap(rows: FloatArray, columns: IntArray) -> BoolArray:
    """Mark the rows (r, d) in which a number was missing: an indicator in `columns[1:]` is set."""
    marked: BoolArray = (rows[:, columns[1:]] != 0.0).any(axis=1)
    return marked


def _repaired(
    column: _Column, value: float, expected: float, meant: float | None = None
) -> dict[float, str]:
    """Describe the few repairs that make a cell fit; with `meant`, only those that yield it."""
    fitting: dict[float, tuple[float, str]] = {}
    sign = column.rule.sign
    repairs = [*_repairs(value)]
    if value < 0 or (sign is not None and sign.sign * value < 0):
        repairs.insert(0, (-value, "its sign is turned"))
    repairs = [(repaired, words) for repaired, words in repairs if column.holds(repaired)]
    if column.in_logs and column.fitting <= CLOSE_FOR_UNITS:
        # A number converted to another unit need not be an integer.
        other = _in_other_units(value, column.quantities)
        repairs += [one for one in other if column.low <= one[0] <= column.high]
    if meant is not None:
        repairs = [one for one in repairs if math.isclose(one[0], meant, rel_tol=AS_WRITTEN)]
    is_clear = column.is_odd(value) or column.is_alone(value, expected)
    near = column.clear_fitting if is_clear else column.fitting
    # If 0 fits, so does any repair to a small value.
    small_fits = column.distance(0.0, expected) <= near
    for repaired, words in repairs:
        distance = column.distance(repaired, expected)
        fits = column.clear_fitting if repaired == -value else near
        if small_fits and abs(repaired) < PART_OF_WAY * abs(value):
            continue
        if distance <= min(fits, PART_OF_WAY * column.distance(value, repaired)):
            fitting.setdefault(float(f"{repaired:.6g}"), (distance, words))
    if len(fitting) > MAX_ALTERNATIVES:
        return {}
    nearest = sorted(fitting.items(), key=lambda one: one[1])
    return {repaired: words for repaired, (_, words) in nearest}


def _repairs(value: float) -> Iterator[tuple[float, str]]:
    """Yield candidate values, the most common error first, each with the repair in words."""
    for factor in (10.0, 100.0, 1000.0):
        yield value / factor, f"divided by {factor:.0f}"
        yield value * factor, f"multiplied by {factor:.0f}"
    text = repr(abs(value)).removesuffix(".0")
    if "e" not in text and sum(letter.isdigit() for letter in text) >= MIN_DIGITS:
        retyped = [(shorter, "a digit typed twice") for shorter in deduplicate_digit(value)]
        for i, (a, b) in enumerate(pairwise(text)):
            if a != b and a.isdigit() and b.isdigit() and (b != "0" or i > 0):
                retyped.append((text[:i] + b + a + text[i + 2 :], "two digits exchanged"))
        for digits, words in retyped:
            minus = "-" if value < 0 else ""
            yield float(minus + digits), f"read as {minus}{digits} ({words}?)"
    if value == round(value) and 1000 <= value < 3000:
        for century in (value - 100, value + 100):
            yield century, f"read as {century:.0f} (another century?)"


def _in_other_units(value: float, quantities: frozenset[str]) -> Iterator[tuple[float, str]]:
    """Yield the value converted between units that are often confused, with the repair in words."""
    for factor, units, of in UNITS:
        if not quantities.isdisjoint(of.split()):
            yield value / factor, f"divided by {factor:.4g} ({units}?)"
            yield value * factor, f"multiplied by {factor:.4g} ({units}?)"
    if "temperature" in quantities:
        for celsius in ((value - 32) / 1.8, 1.8 * value + 32):
            yield celsius, f"read as {celsius:.4g} (Fahrenheit and Celsius?)"


def _quantities(name: str, unit: str) -> frozenset[str]:
    """Return the quantities (length, mass, ...) that the words of a column's name or unit imply."""
    words_of_name = [*name_words(name), unit.lower()]
    return frozenset(
        of
        for of, words in OF_UNITS.items()
        if any(
            one == word or (len(word) >= LONG_WORD and one.startswith(word))
            for one in words_of_name
            for word in words.split()
        )
    )


# Maximum number of numeric columns: more would take minutes, and some repair would fit by chance.
MAX_COLUMNS = 300
MAX_COMPARED = 2_500  # maximum number of a table's rows with which a row is compared
RARELY_MISSING = 0.01  # cells of a column are rarely missing if a smaller share of rows lacks one
SUM_ROUNDING = 1e-4  # relative difference allowed between a total and the sum of rounded values


def hint_rows(
    model: AnyModel,
    rows: Encoded,
    table: Table,
    matrix: FloatArray,
    positions: IntArray,
    meant: Sequence[Mapping[str, float]],
) -> list[Hints]:
    """Describe what may be wrong with the rows at `positions` (r,), a sentence each.

    `table` holds these rows as written, `matrix` (r, d) encoded; `rows` are all of their table.
    `meant` (r,) are the numbers suggested for cells that are odd by themselves.
    """
    # Compare with the clean reference if there is one, else with the table.
    encoder, views = model.encoder, model.detector.views
    neighbours, own = model.detector.reference, np.full(len(matrix), -1)
    derived = model.detector.derived if model.clean else {}
    if not model.clean:
        drawn = np.unique(np.linspace(0, len(rows.sample) - 1, MAX_COMPARED).astype(np.int64))
        raw, index, own = rows.sample[drawn], rows.sample_index[drawn], positions
        neighbours = NeighbourRows(raw, views.standardised(raw), neighbours.as_is, index)
    names, units = {}, {}
    for place, coder in enumerate(encoder.coders):
        format, name = coder.spec.format, coder.spec.name
        if isinstance(format, NumberFormat) and not format.clock:
            names[place], units[name] = name, format.word
    groups = [np.array(group.columns) for group in encoder.groups]
    names = names if len(names) <= MAX_COLUMNS else {}
    cached = derived.get("hints")
    if cached is None or cached[0] != rows.n_rows:
        finder = HintFinder(neighbours, groups, names, units, rows.n_rows)
        cached = derived["hints"] = rows.n_rows, finder
    found = cached[1].hints(matrix, views.standardised(matrix), own, meant)
    lacking, adding = defaultdict[int, list[str]](list), defaultdict[int, list[str]](list)
    for spec in model.encoder.plan.used:
        values, missing = (of := table.column[spec.name].read(spec.format)).values, of.missing
        if spec.n_missing / model.encoder.summaries[0].n_cells < RARELY_MISSING:
            for row in np.flatnonzero(missing).tolist():
                lacking[row].append(spec.name)
        # Compare numbers with the sum of all others in the column, if the table is in memory.
        is_summed = isinstance(spec.format, NumberFormat) and not spec.format.clock
        if is_summed and rows.size_of_parts is None:
            whole = float(np.nansum(rows.sample_table.column[spec.name].read(spec.format).values))
            is_sum = np.abs(whole - 2 * values) <= SUM_ROUNDING * np.abs(values)
            for row in np.flatnonzero(is_sum & (values != 0)).tolist():
                adding[row].append(spec.name)
    for row, several in lacking.items():
        if len(several) > 1:
            which = in_prose([quoted(name) for name in several])
            says = f"{which} are missing; fewer than 1 in 100 rows lack any one of them."
            found[row] = found[row]._replace(sentences=(*found[row].sentences, says))
    for row, several in adding.items():
        if len(several) > 1:  # in one column, a cell may be the sum of the others by chance
            says = f"{listed(several)} hold the sums of all other rows: a row of totals?"
            found[row] = Hints((says,))
    return found
