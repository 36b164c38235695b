"""Find numbers and dates that are odd for their column, whatever the rest of the row.

- Far above or below: an isolated value beyond the tail of the other values, so far out that fewer
than 1 of 100 such columns would have one.
- Sign: a number of ordinary size with the unusual sign.
- Code for a missing value: a number such as 999 or -1 in several cells, beyond the tail of the
others. A single -99 or -999 is enough.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import polars as pl
from msgspec import Meta

from kpca_apps.names import quoted
from kpca_apps.novelty.checks.cell_check import FoundValue, OddValue
from kpca_apps.novelty.checks.tails import EXPONENTIAL, SHAPES, Tail
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import MARKS, Column, DateFormat, NumberFormat, ValueFormat

ODDITIES = ("", "far above", "far below", "zero", "sign", "placeholder", "unreadable")
_ABOVE, _BELOW, _ZERO, _SIGN, _CODE, _UNREADABLE = range(1, 7)
UNREADABLE = ODDITIES[_UNREADABLE]
BEYOND = ("far above", "far below", "date")  # kinds of values beyond a limit
# Clearness (decimal digits of rarity) of some kinds; for other kinds, it depends on the distance.
CLEARNESS = {"placeholder": 8.0, UNREADABLE: 6.0, "sign": 4.0, "zero": 4.0}
WITHOUT_TAIL = 2.0  # clearness if no tail is fitted, below that of all fitted tails
_LIMIT = "|".join(pattern for pattern, _ in MARKS["a comparison sign"])
# Letters typed instead of similar digits.
_LETTERS = "OoQDlI|SsBZz"
LOOKALIKES = str.maketrans(_LETTERS, "000011155822")
LIKE_NUMBER = f"^[{_LETTERS}.,+-]+$"

# Common codes for missing numbers: repeated nines, eights or sevens, and -1.
CODES = frozenset(
    sign * float(digit * length)
    for sign, shortest in ((1, 2), (-1, 1))
    for digit in "789"
    for length in range(shortest, 8)
) | {-1.0}
# Codes such as -99 nearly always stand for missing values; -9, 99 or 777 are often real numbers.
SURE_CODES = frozenset(code for code in CODES if code <= -10)
MAX_CODES = 3
# A code in SURE_CODES lies below other numbers by more than this many times their range.
CODE_WIDTHS = 3.0
# Maximum number and maximum share of the cells beyond a limit; `most_beyond` combines the two.
MAX_FAR_CELLS, MAX_FAR_SHARE = 3, 0.005
# Maximum number of cells that may have lost their sign, or maximum share if that is more.
MAX_TURNED_CELLS, MAX_TURNED_SHARE = 2, 0.001
MIN_CELLS, MIN_BESIDE_SURE = 50, 10
SMALLEST_COUNT = 5  # in a column of counts, 0 is ordinary if the smallest count is below this
# In a column of few distinct values and at least MIN_FEW cells, consider the values that occur more
# than once. A number is odd if it exceeds all of them by more than WIDTHS times their range.
MIN_FEW, WIDTHS = 100, 2.0
# Minimum gap between the logarithms of ordinary and odd values: half a decimal place.
SLIP = 0.5 * math.log(10.0)
MAX_CLEARNESS = 12.0
LARGEST = 1e300
NO_UNIT = re.compile(r"[eE][+-]?\d+|[\d\s.,'()+-]")  # characters of a number without a unit


def learn_numbers(
    table: Table, spec: ColumnSpec, n_rows: int, known: KnownNumbers | None = None
) -> NumberRule | None:
    """Learn which numbers or dates a column allows; `known` adds what a reference table shows."""
    if spec.format is None or spec.has_levels:
        return None
    column = table.column[spec.name]
    rule = NumberRule.of(column, spec.format, n_rows / len(table.frame))
    return rule if known is None else known.completed(rule, column.read(spec.format).ordered)


@dataclass(frozen=True)
class Side:
    """The upper or lower end of a column's values; values beyond its limit are odd."""

    turn: int  # 1: upper end; -1: lower end, where values are compared with opposite signs
    logs: bool  # whether logarithms of positive values are compared
    ordinary: float  # farthest ordinary value, transformed by `turned`
    limit: float  # largest value that is not odd, transformed by `turned`
    tail: Tail | None  # None if the column has few distinct values
    of_reference: bool = False  # whether this side was learned from a reference

    @classmethod
    def fit(cls, values: FloatArray, turn: int, logs: bool, times: float) -> Side | None:
        """Find the upper or lower end of a column's values (n,); ``None`` if no limit is clear."""
        turned = turn * (np.log(values) if logs else values)
        # Logarithms of a Pareto tail have an exponential tail; values near 0 follow no such law.
        shapes = EXPONENTIAL if logs and turn > 0 else SHAPES
        tail = Tail.fit(turned, times, shapes, SLIP if logs else 0.0)
        if tail is not None:
            side = cls(turn, logs, tail.ordinary, tail.limit, tail)
        elif logs or len(values) < MIN_FEW:
            return None
        else:
            distinct, counts = np.unique(turned, return_counts=True)
            often = distinct[counts > 1]
            if len(often) < 2 or len(distinct) - len(often) > MAX_FAR_CELLS:
                return None
            width = float(often[-1] - often[0])
            side = cls(turn, logs, float(often[-1]), float(often[-1]) + WIDTHS * width, None)
        n_far = int((turned > side.limit).sum())
        return side if np.isfinite(side.limit) and n_far <= most_beyond(len(values)) else None

    def turned(self, values: FloatArray) -> FloatArray:
        """Transform values (n,) to the scale of `ordinary` and `limit`."""
        if not self.logs:
            return self.turn * values
        positive = values > 0
        return np.where(positive, self.turn * np.log(np.where(positive, values, 1.0)), np.nan)

    def clearness(self, value: float) -> float:
        """Return -log10 of the number of values expected at least as far out as `value`."""
        if self.tail is None:
            return WITHOUT_TAIL
        expected = float(self.tail.expected(self.turned(np.array([value])))[0])
        return float(min(MAX_CLEARNESS, -np.log10(max(expected, 1e-300))))

    def original(self, turned: float) -> float:
        """Convert a result of the method `turned` back to the number that it stands for."""
        value = self.turn * turned
        return float(np.exp(value)) if self.logs else value


@dataclass(frozen=True)
class SignRule:
    """The sign of nearly all numbers of a column, apart from 0."""

    sign: int  # 1 or -1
    smallest: float  # smallest absolute value at which a number of the other sign is odd
    largest: float  # largest absolute value at which such a number is odd

    @classmethod
    def fit(cls, values: FloatArray) -> SignRule | None:
        """Find the sign of a column's values (n,); ``None`` if both signs are common."""
        few = max(MAX_TURNED_CELLS, MAX_TURNED_SHARE * len(values))
        for sign in (1, -1):
            turned = sign * values
            kept = turned[turned >= 0]
            sizes = kept[kept > 0]
            if len(values) - len(kept) > few or len(kept) < MIN_CELLS or len(sizes) < MIN_CELLS / 5:
                continue
            nearest, middle = float(kept.min()), float(np.median(kept))
            low, high = np.quantile(sizes, [0.1, 0.999])
            # Numbers of the unusual sign may be correct near 0; far from 0, their sign is wrong.
            gap = 0.5 * (middle - nearest) - nearest
            return cls(sign, max(float(low), gap), float(high))
        return None


@dataclass(frozen=True)
class NumberRule:
    """What numbers (or dates, in seconds) a column allows."""

    sides: tuple[Side, ...]
    sign: SignRule | None
    codes: tuple[float, ...]  # codes for missing values in the column
    middle: tuple[float, float]  # quantiles .01 and .99; suggested values lie between them
    whole: bool  # whether nearly all values are integers
    zero: bool  # whether the values are positive and far from 0, so that 0 is odd
    is_date: bool

    @classmethod
    def of(cls, column: Column, format: ValueFormat, times: float) -> NumberRule:
        """Learn the rule from a column, or return the rule learned from it before."""
        if (key := (cls, format, times)) not in column.learned:
            values, is_date = column.read(format).ordered, isinstance(format, DateFormat)
            column.learned[key] = cls.fit(values, times, is_date=is_date)
        rule: NumberRule = column.learned[key]
        return rule

    @classmethod
    def fit(cls, values: FloatArray, times: float, *, is_date: bool = False) -> NumberRule:
        """Learn the rule from the values (n,) of a column, without missing ones.

        `times` is the number of rows of the table over n. Dates have neither sign nor codes.
        """
        values = np.sort(values)
        codes: tuple[float, ...] = ()
        if not is_date:
            values, codes = _without_codes(values, times)
        if not len(values):
            return cls((), None, codes, (0.0, 0.0), False, False, is_date)
        low, high = np.quantile(values, [0.01, 0.99]).tolist()
        sign = None if is_date else SignRule.fit(values)
        sides = [Side.fit(values, turn, False, times) for turn in (1, -1)]
        positive = values[values > 0]
        if not is_date and len(positive) and np.mean(values >= 0) > 0.99:
            sides.append(Side.fit(positive, 1, True, times))
            if len(positive) > 0.99 * len(values):
                sides.append(Side.fit(positive, -1, True, times))
        whole = bool(np.mean(values == np.round(values)) > 0.99)
        zero = not is_date and _zero_is_far(values, whole)
        found = tuple(side for side in sides if side)
        return cls(found, sign, codes, (low, high), whole, zero, is_date)

    def judge(self, values: FloatArray) -> IntArray:
        """Return the index in `ODDITIES` of each value (n,); 0 for ordinary ones and NaN."""
        kinds = np.zeros(len(values), dtype=np.int64)
        for side in self.sides:
            kinds[side.turned(values) > side.limit] = _ABOVE if side.turn > 0 else _BELOW
        if self.zero:
            kinds[values == 0] = _ZERO
        if self.sign is not None:
            size = -self.sign.sign * values  # positive if the sign is unusual
            kinds[(size >= self.sign.smallest) & (size <= self.sign.largest)] = _SIGN
        if self.codes:
            kinds[np.isin(values, self.codes)] = _CODE
        return kinds

    def side_beyond(self, value: float) -> Side:
        """Return the side of highest `clearness` among those whose limit the value exceeds."""
        one = np.array([value])
        beyond = [side for side in self.sides if side.turned(one)[0] > side.limit]
        return max(beyond, key=lambda side: side.clearness(value))

    def find(self, column: Column, spec: ColumnSpec) -> Iterator[FoundValue]:
        """Yield each odd or unreadable value of a column once."""
        readings = column.read(spec.format)
        kinds = self.judge(readings.values)
        kinds[readings.unreadable] = _UNREADABLE
        odd = np.flatnonzero(kinds)
        cells, is_text = column.cells, column.cells.dtype == pl.String
        found: dict[tuple[str, str], list[int]] = {}
        for place in odd.tolist():
            seen = cells[place].strip() if is_text else column.text(place)
            if kinds[place] == _BELOW and seen.startswith(("<", "\u2264")):
                continue  # "<5": below a limit of detection
            if kinds[place] == _CODE and re.search(_LIMIT, seen):
                continue  # ">999" in several cells: a limit, not a code
            found.setdefault((ODDITIES[kinds[place]], seen), []).append(place)
        for (kind, seen), places in found.items():
            value = float(readings.values[places[0]])
            clearness = CLEARNESS.get(kind) or self.side_beyond(value).clearness(value)
            if self.is_date and kind != UNREADABLE:
                kind = "date"
            yield FoundValue(kind, seen, clearness, np.array(places), value)

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        """Explain why a number or a date is odd, and suggest a value."""
        format = spec.format
        assert format is not None
        positive = self.sign is not None and self.sign.sign > 0
        if value.kind == UNREADABLE:
            return _unread(format), self._readable(value.seen, format)
        if value.kind == "sign":
            others = "0 or more" if positive else "0 or less"
            return (
                f"The column's other numbers are {others}, and this one without its sign is usual.",
                value.seen.strip("-\u2012\u2013\u2212() ") if positive else f"-{value.seen}",
            )
        if value.kind == "placeholder":
            low, high = self.middle
            where = "far above all others" if value.value > high else "far below all others"
            if value.value < 0 <= low:
                where = "below 0, as no other number"
            cells = "1 cell" if value.n_cells == 1 else f"{value.n_cells:,} cells"
            return f"In {cells}, {where}: a code for a missing value?", ""
        if value.kind == "zero":
            return "The column's other numbers are all far from 0: a missing value?", ""
        side = self.side_beyond(value.value)
        upper = ("after", "latest") if self.is_date else ("above", "largest")
        lower = ("before", "earliest") if self.is_date else ("below", "smallest")
        where, end = upper if side.turn > 0 else lower
        reach = notation.write(side.original(side.ordinary), format)
        others = "numbers of the reference" if side.of_reference else "rest of the column"
        sentence = f"Far {where} the {others}, whose {end} is {reach}."
        meant = self.meant(value.value)
        # Suggest nothing for clock times, nor for an amount in another currency.
        foreign = {*NO_UNIT.sub("", value.seen)} - {*notation.before, *notation.after}
        if meant is None or (isinstance(format, NumberFormat) and (format.clock or foreign)):
            return sentence, ""
        return sentence, notation.write_exactly(meant, format)

    def _readable(self, seen: str, format: ValueFormat) -> str:
        """Return the only respelling of a text that reads as a usual number, or an empty text."""
        if not isinstance(format, NumberFormat):
            return ""
        spaced, swapped = "".join(seen.split()), seen.translate(str.maketrans(".,", ",."))
        tried = [seen.translate(LOOKALIKES), spaced, spaced.translate(LOOKALIKES), swapped]
        values = Column(pl.Series(tried)).read(format).values
        low, high = self.middle
        usual = {value: text for text, value in zip(tried, values, strict=True)}
        usual = {value: text for value, text in usual.items() if low <= value <= high}
        return usual.popitem()[1] if len(usual) == 1 else ""

    def meant(self, value: float) -> float | None:
        """Return the value probably meant by a number or date out of range; ``None`` if unclear.

        Candidates for a year are the same year of other centuries, then years with one digit
        changed. For other numbers, the decimal point is shifted or a repeated digit removed.
        Candidates must be usual in the column. If none or several are usual, return ``None``.
        """
        low, high = self.middle
        if self.is_date:
            tried = [_in_years(value, _centuries), _in_years(value, _other_digits)]
        elif self.whole and low >= 1000 and high < 10_000 and high < 2 * low:
            tried = [_centuries(value), _other_digits(value)]
        else:
            tens = {value * power for power in (0.001, 0.01, 0.1, 10.0, 100.0, 1000.0)}
            tried = [tens | {math.copysign(float(one), value) for one in deduplicate_digit(value)}]
        for candidates in tried:
            usual = {float(f"{c:.15g}") for c in candidates if low <= c <= high} - {value}
            if self.whole:
                usual = {c for c in usual if c == round(c)}
            if usual:
                return usual.pop() if len(usual) == 1 else None
        return None


_Bounded = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]


@dataclass(frozen=True)
class KnownNumbers:
    """What a reference shows about a column of numbers."""

    # Upper end: (1, largest ordinary value, limit); lower end: (-1, smallest ordinary value, limit)
    ends: tuple[tuple[Literal[1, -1], _Bounded, _Bounded], ...]
    sign: SignRule | None
    middle: tuple[_Bounded, _Bounded]
    whole: bool

    @classmethod
    def learn(cls, table: Table, spec: ColumnSpec) -> KnownNumbers | None:
        """Learn from a column of numbers; ``None`` if they rise or fall with the row number."""
        if not isinstance(spec.format, NumberFormat) or spec.has_levels or spec.runs_on:
            return None
        rule = NumberRule.of(table.column[spec.name], spec.format, 1.0)
        ends: list[tuple[Literal[1, -1], float, float]] = []
        turns: tuple[Literal[1], Literal[-1]] = (1, -1)
        for turn in turns:
            sides = [side for side in rule.sides if side.turn == turn]
            if sides:
                nearest = min(sides, key=lambda side: side.turn * side.original(side.limit))
                reach, end = map(nearest.original, (nearest.ordinary, nearest.limit))
                ends.append((turn, reach, end))
        return cls(tuple(ends), rule.sign, rule.middle, rule.whole)

    def completed(self, rule: NumberRule, values: FloatArray) -> NumberRule:
        """Add the reference's limits to a column's rule, on each side where it has none.

        `values` (n,) are the column's. A limit that many cells exceed is not added: the column has
        drifted. A column of few cells also takes the reference's sign, range and whether numbers
        are integers.
        """
        few, sides = most_beyond(len(values)), [*rule.sides]
        for turn, reach, end in self.ends:
            side = Side(turn, False, turn * reach, turn * end, None, of_reference=True)
            n_far = int((turn * values > side.limit).sum())
            if n_far <= few and not any(own.turn == turn for own in rule.sides):
                sides.append(side)
        rule = replace(rule, sides=tuple(sides))
        if len(values) >= MIN_CELLS:
            return rule
        sign = self.sign
        if sign is not None and int((sign.sign * values < 0).sum()) > MAX_TURNED_CELLS:
            sign = None
        return replace(rule, sign=rule.sign or sign, middle=self.middle, whole=self.whole)


def _unread(format: ValueFormat) -> str:
    if isinstance(format, DateFormat):
        return "Not a possible date."
    if format.clock:
        return "Not a clock time."
    return f"Not a number with {quoted(format.word)} behind it." if format.word else "Not a number."


def _without_codes(values: FloatArray, times: float) -> tuple[FloatArray, tuple[float, ...]]:
    """Return the values without the codes for missing values, and the codes."""
    codes: list[float] = []
    for _ in range(MAX_CODES):
        for turn in (1, -1):
            code = _farthest_repeated(values, turn)
            if code is None or code not in CODES:
                continue
            rest = values[values != code]
            n_cells, is_sure = len(values) - len(rest), code in SURE_CODES
            if len(rest) < (MIN_BESIDE_SURE if is_sure else MIN_CELLS):
                continue
            side = Side.fit(rest, turn, False, times)
            outside = side is not None and turn * code > side.limit
            if is_sure:
                lost_sign = n_cells == 1 and 0 <= rest.min() <= -code <= rest.max()
                # Whether no other value is negative, or the code lies far below all other values.
                smallest = float(rest.min())
                below = smallest >= 0 or code < smallest - CODE_WIDTHS * float(np.ptp(rest))
                is_code = not lost_sign and (outside or below)
            else:
                is_code = outside or (code < 0 and bool((rest >= 0).all()))
            if is_code:
                values = rest
                codes.append(code)
    return values, tuple(codes)


def _farthest_repeated(values: FloatArray, turn: int) -> float | None:
    """Return the farthest of the sorted values that is repeated or in `SURE_CODES`."""
    # A few values that occur once may lie beyond the repeated value.
    for value, following in pairwise(values[::-turn][: MAX_FAR_CELLS + 2].tolist()):
        if value == following or value in SURE_CODES:
            return float(value)
    return None


def most_beyond(n: int) -> float:
    """Return how many of n cells may lie beyond a limit."""
    return max(min(MAX_FAR_CELLS, 1 + n // MIN_CELLS), MAX_FAR_SHARE * n)


def _zero_is_far(values: FloatArray, whole: bool) -> bool:
    """Return whether the smallest value above 0 is at least as near to the median as to 0."""
    rest = values[values != 0]
    if len(rest) < MIN_CELLS or len(values) - len(rest) > most_beyond(len(values)):
        return False
    # In a column with more than a few negative numbers, 0 is ordinary.
    above = rest[rest > 0]
    if len(rest) - len(above) > max(MAX_TURNED_CELLS, MAX_TURNED_SHARE * len(rest)):
        return False
    smallest, middle = float(above.min()), float(np.median(above))
    return 2 * smallest >= middle and (not whole or smallest >= SMALLEST_COUNT)


def deduplicate_digit(value: float) -> list[str]:
    """Return absolute values with one repeated digit removed, as texts.

    >>> deduplicate_digit(-1155.0)
    ['155', '115']
    """
    text = repr(abs(value)).removesuffix(".0")
    shorter = [text[:i] + text[i + 1 :] for i in range(len(text) - 1) if text[i] == text[i + 1]]
    return [] if "e" in text else list(dict.fromkeys(shorter))


def _centuries(year: float) -> set[float]:
    return {year - 100, year + 100}


def _other_digits(year: float) -> set[float]:
    """Return years with one digit replaced or two adjacent digits exchanged."""
    if year != round(year) or not 1000 <= year < 10_000:
        return set()
    text = f"{year:.0f}"
    replaced = {text[:i] + digit + text[i + 1 :] for i in range(4) for digit in "0123456789"}
    exchanged = {text[:i] + text[i + 1] + text[i] + text[i + 2 :] for i in range(3)}
    return {float(number) for number in replaced | exchanged}


def _in_years(seconds: float, others: Callable[[float], set[float]]) -> set[float]:
    start = datetime(1970, 1, 1)
    try:
        moment = start + timedelta(seconds=seconds)
    except OverflowError:
        return set()
    found = set()
    for year in others(float(moment.year)):
        # Not every year has a 29th of February.
        with suppress(ValueError):
            found.add((moment.replace(year=int(year)) - start).total_seconds())
    return found
