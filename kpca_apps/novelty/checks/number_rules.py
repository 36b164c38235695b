"""When a number (or date) is odd whatever the rest of its row says: what its column allows.

It is far outside where the tail of the column's own values would put one as far out into fewer than
1 of 100 such tables, and where nothing lies half as near. A lost sign is a number whose size is
ordinary and whose sign is not. A code for missing values stands in several cells and far from the
rest: beyond its tail where it is one of the numbers people use for that, 999 or -1, and several
times the width of the column away where it is any other.

The tail is a generalised Pareto one (Pickands 1975) of the largest tenth of the values: exponential
at the lightest, so that a column with a bound is given room beyond it. The largest tenth of these
in turn count only as values beyond a point, whatever their size: what may be wrong does not say
what is ordinary. Of all tails that the rest makes nearly as likely as the best one, the heaviest
is believed, so that prices and rain are given the room that their own values ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ODDITIES = ("", "far above", "far below", "zero", "sign", "placeholder")
_ABOVE, _BELOW, _ZERO, _SIGN, _CODE = range(1, 6)

# What people write for "no value" in columns of numbers: nines, eights or sevens throughout, or -1.
CODES = frozenset(
    sign * float(digit * length)
    for sign, shortest in ((1, 2), (-1, 1))
    for digit in "789"
    for length in range(shortest, 8)
) | {-1.0}
MAX_CODES = 3
# Any other number is a code where it repeats, in few of the cells, and lies so many times as far
# from the rest as that is wide. 0 is none: it may say "none".
MIN_REPEATS, MAX_REPEATS, CODE_WIDTHS = 3, 0.05, 3.0
# More cells than these beyond its limit are the column's own, of whatever kind they are.
MAX_FAR_CELLS, MAX_FAR_SHARE = 3, 0.005
# One cell in a thousand may have lost its sign.
MAX_TURNED_CELLS, MAX_TURNED_SHARE = 2, 0.001
MIN_CELLS = 50
# Of a count, 0 is the next step down from 1 or 2, and nothing odd.
SMALLEST_COUNT = 5
# Where a column has a few values only, far is twice its width beyond those seen more than once.
MIN_FEW, WIDTHS = 100, 2.0
MAX_CLEARNESS = 12.0

# A tenth of the values, but never more than half of those above the median: below that it is no
# tail. Of small tables as many as 60, if there are: fewer leave the tail's weight wide open.
TAIL_SHARE, USUAL_TAIL, MAX_TAIL = 0.1, 60, 1_000
MIN_TAIL, MIN_STEPS = 15, 5
# Of the tail itself, the share of the largest whose size is not looked at.
CENSORED_SHARE, MIN_CENSORED = 0.1, 3
# Twice the drop of the log-likelihood is chi-squared: 2 leaves out what 95 % would.
LIKELIHOOD_DROP = 2.0
SHAPES = np.concatenate([[1e-6], np.linspace(0.05, 2.0, 40)])
# Scales in units of the median exceedance, which lies between .5 and 1 for these shapes; the
# bounds leave room for samples.
SCALES = np.geomspace(0.2, 8.0, 40)
BINS = 64
# A value beyond the tail is expected this often in tables like this one.
MAX_EXPECTED = 0.01
# And it stands apart: half as far again from the ordinary as the farthest that does not.
GAP = 1.5
NEAREST, FARTHEST = 1e-3, 1e60  # in units of the median exceedance
HALVINGS = 30


@dataclass(frozen=True)
class Tail:
    """The upper tail of some values."""

    start: float  # where it begins
    unit: float  # median of what its values exceed that by
    n_expected: float  # values beyond `start` in the whole table
    shapes: FloatArray  # (g,), of the generalised Pareto tails that the values allow
    scales: FloatArray  # (g,), theirs
    ordinary: float = np.nan  # the farthest value that belongs to the tail
    limit: float = np.inf  # values beyond do not

    @classmethod
    def fit(cls, values: FloatArray, times: float = 1.0) -> Tail | None:
        """Fit the upper tail of finite values (n,), ``None`` where they or their steps are too few.

        The whole table has so many `times` as many values.
        """
        ordered = np.sort(values)
        n = len(ordered)
        median = ordered[n // 2] if n else 0.0
        n_upper = n - int(np.searchsorted(ordered, median, side="right"))
        count = int(min(max(TAIL_SHARE * n, USUAL_TAIL), n_upper / 2, MAX_TAIL))
        if count < MIN_TAIL:
            return None
        start = float(ordered[n - count - 1])
        above = ordered[ordered > start]
        # A tail of a few steps, each many times, says nothing of where the next would be.
        if len(above) < MIN_TAIL or len(np.unique(above)) < MIN_STEPS:
            return None
        excess = above - start
        unit = float(np.median(excess))
        if not np.isfinite(excess[-1]) or unit <= 0:
            return None
        tail = cls(start, unit, len(above) * times, *_likely(excess / unit))
        # Halved in logarithms: the answer may be any number of units away.
        near, far = np.log(NEAREST), np.log(FARTHEST)
        for _ in range(HALVINGS):
            middle = (near + far) / 2
            beyond = tail.expected(np.array([start + np.exp(middle) * unit]))[0] < MAX_EXPECTED
            near, far = (near, middle) if beyond else (middle, far)
        expected_none = start + float(np.exp(far)) * unit
        ordinary, limit = start, expected_none
        for value in above.tolist():
            if value > limit:
                break
            ordinary, limit = value, max(expected_none, start + GAP * (value - start))
        return replace(tail, ordinary=ordinary, limit=limit)

    def expected(self, values: FloatArray) -> FloatArray:
        """Return how many values as far out such a table would have at most, shape (n,)."""
        excess = np.maximum((values - self.start) / self.unit, 0.0)[:, None]
        survival = (1.0 + self.shapes * excess / self.scales) ** (-1.0 / self.shapes)
        expected: FloatArray = self.n_expected * survival.max(axis=1)
        return expected


def _likely(excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Shapes and scales, (g,) each, of the tails that increasing exceedances allow."""
    n_censored = max(MIN_CENSORED, int(CENSORED_SHARE * len(excess)))
    seen, point = excess[:-n_censored], excess[-n_censored - 1]
    bins = np.array_split(seen, min(BINS, len(seen)))
    middle = np.array([part.mean() for part in bins])
    weight = np.array([len(part) for part in bins], dtype=np.float64)
    shape, scale = np.meshgrid(SHAPES, SCALES, indexing="ij")
    shape, scale = shape.ravel(), scale.ravel()
    logs = np.log1p(shape[:, None] * middle / scale[:, None]) @ weight
    likelihood = -len(seen) * np.log(scale) - (1 + 1 / shape) * logs
    likelihood -= n_censored / shape * np.log1p(shape * point / scale)
    allowed = likelihood >= likelihood.max() - LIKELIHOOD_DROP
    return shape[allowed], scale[allowed]


@dataclass(frozen=True)
class Side:
    """One end of a column: where values that are none of its own begin."""

    turn: int  # 1: the upper end; -1: the lower one, where values have their signs turned
    logs: bool  # of the logarithms of values, all above 0
    ordinary: float  # the farthest value of the column's own
    limit: float  # beyond this there are none
    tail: Tail | None  # what says so; None where the column has a few values only

    @classmethod
    def fit(cls, values: FloatArray, turn: int, logs: bool, times: float) -> Side | None:
        """Find the end of a column (n,); ``None`` where it has no clear one."""
        turned = turn * (np.log(values) if logs else values)
        tail = Tail.fit(turned, times)
        if tail is not None:
            side = cls(turn, logs, tail.ordinary, tail.limit, tail)
        else:
            distinct, counts = np.unique(turned, return_counts=True)
            often = distinct[counts > 1]
            n_once = len(distinct) - len(often)
            if logs or len(values) < MIN_FEW or len(often) < 2 or n_once > MAX_FAR_CELLS:
                return None
            width = float(often[-1] - often[0])
            side = cls(turn, logs, float(often[-1]), float(often[-1]) + WIDTHS * width, None)
        n_far = int((turned > side.limit).sum())
        few = max(MAX_FAR_CELLS, MAX_FAR_SHARE * len(values))
        return side if np.isfinite(side.limit) and n_far <= few else None

    def turned(self, values: FloatArray) -> FloatArray:
        """Return values (n,) as they are compared with `ordinary` and `limit`."""
        if not self.logs:
            return self.turn * values
        positive = values > 0
        return np.where(positive, self.turn * np.log(np.where(positive, values, 1.0)), np.nan)

    def clearness(self, value: float) -> float:
        """Say how clearly a value lies beyond: decimal digits of how rarely one would."""
        if self.tail is None:
            return 2.0
        expected = float(self.tail.expected(self.turned(np.array([value])))[0])
        return float(min(MAX_CLEARNESS, -np.log10(max(expected, 1e-300))))

    @property
    def reach(self) -> float:
        """The farthest value of the column's own, as it stands."""
        turned = self.turn * self.ordinary
        return float(np.exp(turned)) if self.logs else turned


@dataclass(frozen=True)
class SignRule:
    """A column of which nearly all numbers have one sign, or are 0."""

    sign: int  # 1 where they are at least 0, -1 where they are at most 0
    smallest: float  # sizes that are ordinary in it
    largest: float

    @classmethod
    def fit(cls, values: FloatArray) -> SignRule | None:
        """Find which sign a column has (n,); ``None`` where it has both."""
        few = max(MAX_TURNED_CELLS, MAX_TURNED_SHARE * len(values))
        for sign in (1, -1):
            turned = sign * values
            kept = turned[turned >= 0]
            sizes = kept[kept > 0]
            if len(values) - len(kept) > few or len(kept) < MIN_CELLS or len(sizes) < MIN_CELLS / 5:
                continue
            nearest, middle = float(kept.min()), float(np.median(kept))
            low, high = np.quantile(sizes, [0.1, 0.999])
            # A few degrees below 0 go on where the others end: a turned sign leaves a gap.
            gap = 0.5 * (middle - nearest) - nearest
            return cls(sign, max(float(low), gap), float(high))
        return None


@dataclass(frozen=True)
class NumberRule:
    """What the numbers (or dates, in seconds) of a column allow."""

    sides: tuple[Side, ...]  # its ends
    sign: SignRule | None  # its sign, where it has one
    codes: tuple[float, ...]  # codes for missing values that stand in it
    middle: tuple[float, float]  # 98 % of its values: what was probably meant lies there
    whole: bool  # nearly all values are whole
    zero: bool  # 0 is far from its values, all above 0 but for a few that are 0
    is_date: bool

    @classmethod
    def fit(cls, values: FloatArray, times: float, *, is_date: bool = False) -> NumberRule:
        """Learn the rule from the values (n,) of a column without gaps, in any order.

        The whole table has so many `times` as many. Dates have neither sign nor codes.
        """
        codes: tuple[float, ...] = ()
        if not is_date:
            values, codes = _without_codes(values, times)
        if not len(values):
            return cls((), None, codes, (0.0, 0.0), False, False, is_date)
        low, high = np.quantile(values, [0.01, 0.99]).tolist()
        sign = None if is_date else SignRule.fit(values)
        sides = [Side.fit(values, turn, False, times) for turn in (1, -1)]
        if sign is not None and sign.sign > 0:
            positive = values[values > 0]
            if len(positive) > 0.99 * len(values):
                sides.append(Side.fit(positive, -1, True, times))
        whole = bool(np.mean(values == np.round(values)) > 0.99)
        zero = not is_date and _zero_is_far(values, whole)
        found = tuple(side for side in sides if side)
        return cls(found, sign, codes, (low, high), whole, zero, is_date)

    def judge(self, values: FloatArray) -> IntArray:
        """Return for each value (n,) its place in `ODDITIES`; 0 for ordinary ones and NaN."""
        kinds = np.zeros(len(values), dtype=np.int64)
        for side in self.sides:
            kinds[side.turned(values) > side.limit] = _ABOVE if side.turn > 0 else _BELOW
        if self.zero:
            kinds[values == 0] = _ZERO
        if self.sign is not None:
            size = -self.sign.sign * values  # of a number of the other sign
            kinds[(size >= self.sign.smallest) & (size <= self.sign.largest)] = _SIGN
        if self.codes:
            kinds[np.isin(values, self.codes)] = _CODE
        return kinds

    def side_beyond(self, value: float) -> Side:
        """Return the end a value lies beyond, the one that says so most clearly."""
        one = np.array([value])
        beyond = [side for side in self.sides if side.turned(one)[0] > side.limit]
        return max(beyond, key=lambda side: side.clearness(value))

    def clearness(self, kind: str, value: float) -> float:
        """Say how clear an oddity is, in decimal digits."""
        if kind == "placeholder":
            return 8.0
        return 4.0 if kind in ("sign", "zero") else self.side_beyond(value).clearness(value)

    def meant(self, value: float) -> float | None:
        """Return what was probably meant by a number far outside; ``None`` where it is open.

        A year is sought a century away, then one wrong digit away, other numbers some places of the
        decimal point or a digit typed twice away; only if one alone is usual in the column, and
        whole where the column is.
        """
        low, high = self.middle
        if self.is_date:
            tried = [_in_years(value, _centuries), _in_years(value, _other_digits)]
        elif self.whole and low >= 1000 and high < 10_000 and high < 2 * low:
            tried = [_centuries(value), _other_digits(value)]
        else:
            tens = {value * power for power in (0.001, 0.01, 0.1, 10.0, 100.0, 1000.0)}
            tried = [tens | set(map(float, without_double(value)))]
        for candidates in tried:
            usual = {float(f"{c:.12g}") for c in candidates if low <= c <= high} - {value}
            if self.whole:
                usual = {c for c in usual if c == round(c)}
            if usual:
                return usual.pop() if len(usual) == 1 else None
        return None


def _without_codes(values: FloatArray, times: float) -> tuple[FloatArray, tuple[float, ...]]:
    """Take codes for missing values out, if without them nothing else comes near."""
    codes: list[float] = []
    for _ in range(MAX_CODES):
        for turn in (1, -1):
            if len(values) < MIN_CELLS:
                break
            code = _farthest_repeated(values, turn)
            if code is None:
                continue
            rest = values[values != code]
            n_cells = len(values) - len(rest)
            if len(rest) < MIN_CELLS:
                continue
            side = Side.fit(rest, turn, False, times)
            outside = side is not None and turn * code > side.limit
            if code in CODES:
                is_code = outside or (code < 0 and bool((rest >= 0).all()))
            else:
                is_code = outside and side is not None and _is_repeated_code(code, rest, side)
                is_code = is_code and MIN_REPEATS <= n_cells <= MAX_REPEATS * len(values)
            if is_code:
                values = rest
                codes.append(code)
    return values, tuple(codes)


def _farthest_repeated(values: FloatArray, turn: int) -> float | None:
    """Return the farthest value in several cells to one side, if next to none lies beyond it."""
    farthest = np.sort(turn * values)[::-1]
    # One value that is wrong by itself does not hide a code nearer to the rest.
    for i in range(MAX_FAR_CELLS + 1):
        if farthest[i] == farthest[i + 1]:
            return turn * float(farthest[i])
    return None


def _is_repeated_code(code: float, rest: FloatArray, side: Side) -> bool:
    """Whether a repeated value is farther from the rest than a cap or a second group would be."""
    # Of a column of a few steps, the next step is no code; of any, 0 may say "none".
    if side.tail is None or code == 0:
        return False
    other_end = float(np.quantile(side.turn * rest, 0.01))
    width = side.ordinary - other_end
    return side.turn * code > side.ordinary + CODE_WIDTHS * width


def _zero_is_far(values: FloatArray, whole: bool) -> bool:
    """Whether 0 lies as far below the smallest value as that below the middle one."""
    rest = values[values != 0]
    few = max(MAX_FAR_CELLS, MAX_FAR_SHARE * len(values))
    if len(rest) < MIN_CELLS or len(values) - len(rest) > few:
        return False
    # A few numbers below 0 have lost their sign; they do not make a 0 ordinary.
    above = rest[rest > 0]
    if len(rest) - len(above) > max(MAX_TURNED_CELLS, MAX_TURNED_SHARE * len(rest)):
        return False
    smallest, middle = float(above.min()), float(np.median(above))
    return 2 * smallest >= middle and (not whole or smallest >= SMALLEST_COUNT)


def without_double(value: float) -> list[str]:
    """Return the size of a number as it reads with a digit that stands twice typed once.

    >>> without_double(-1155.0)
    ['155', '115']
    """
    text = repr(abs(value)).removesuffix(".0")
    shorter = [text[:i] + text[i + 1 :] for i in range(len(text) - 1) if text[i] == text[i + 1]]
    return [] if "e" in text else list(dict.fromkeys(shorter))


def _centuries(year: float) -> set[float]:
    return {year - 100, year + 100}


def _other_digits(year: float) -> set[float]:
    """Return years of the same digits but for one, or for the order of two."""
    if year != round(year) or not 1000 <= year < 10_000:
        return set()
    text = f"{year:.0f}"
    replaced = {text[:i] + digit + text[i + 1 :] for i in range(4) for digit in "0123456789"}
    exchanged = {text[:i] + text[i + 1] + text[i] + text[i + 2 :] for i in range(3)}
    return {float(number) for number in replaced | exchanged}


def _in_years(seconds: float, others: Callable[[float], set[float]]) -> set[float]:
    """Return the same day of other years, in seconds."""
    start = datetime(1970, 1, 1)
    try:
        moment = start + timedelta(seconds=seconds)
    except OverflowError:
        return set()
    found = set()
    for year in others(float(moment.year)):
        # Not every year has the day: the 29th of February, or a year beyond 9999.
        with suppress(ValueError):
            found.add((moment.replace(year=int(year)) - start).total_seconds())
    return found
