"""Sums, unit conversions, products and ratios between columns of numbers and dates.

A relation must hold within rounding, as columns that are merely correlated scatter more. All groups
of columns are tried at once on a few dozen rows. Those that agree in half of these rows are fitted
and checked on the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from kpca_apps.novelty.relations.checking import Cells, check
from kpca_apps.novelty.relations.finding.evidence import FEWER, NEARLY
from kpca_apps.novelty.relations.rule import Linear, Product
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.values import DateFormat, NumberFormat

_DAY = 86400.0  # seconds
_TIME_UNITS = (1.0, 60.0, 3600.0, _DAY, 7 * _DAY, 365.25 * _DAY / 12, 365.25 * _DAY)
_MOST_DECIMALS = 9
_ROUNDED = 0.98  # a column's number of decimals suffices for at least this share of its values
_PRECISE = 1e-9  # relative rounding error of sums of floats
_PAIRS = 32  # number of pairs of rows from which slopes are computed
_ROWS = 24  # number of rows on which sums and products are first tried
_FEW_ROWS = 6  # minimum number of these rows (or pairs of rows) to which a candidate applies
_AGREE = 0.5  # minimum share of these rows that agree on the sum or slope
_SLOPE = 0.03  # maximum relative difference of slopes that agree
_FEWEST_VALUES = 5  # minimum number of distinct values for a slope other than 1 and -1
_FINE = 20.0  # minimum range of the middle 95 % of a column, in units of the tolerance
_COARSE = 0.03  # relative rounding error above which a value does not count in products
_MOST_COUNTED = 20.0  # integers with a median up to this are counts, which are exact
_MOST_RELATIVE = 0.02  # maximum relative tolerance of a product
_EXPONENTS: tuple[tuple[int, ...], ...] = tuple(
    exponents
    for exponents in ((p, q, r) for p in (1, 2) for q in (-2, -1, 1, 2) for r in (-2, -1, 1, 2))
    if sorted(map(abs, exponents)) in ([1, 1, 1], [1, 1, 2])
)
# Maximum number of columns tried in sums, in products, as dates or times, and with tax rates.
_MOST_SUMMED, _MOST_MULTIPLIED, _MOST_TIMES, _MOST_RATED = 100, 60, 12, 24
_MOST_OF_FOUR = 40  # with more columns, neither sums of four nor totals of adjacent ones are tried
_MOST_CANDIDATES = 300
_PER = (-1.0, -0.01, 1.0, 0.01)  # factors of discount and tax rates, as fractions and in per cent
_DIGITS = range(1, 11)
_MANY = 0.005  # at most this share of rows may be errors; if more exceed a tolerance, widen it
_NO_WORSE = 0.002  # constants may be shortened if the share of broken rows grows by at most this
_CHUNK = 1 << 20  # number of values compared at once

_Tolerance = TypeVar("_Tolerance")
_Made = TypeVar("_Made", Linear, Product)


@dataclass(frozen=True)
class Numbers:
    """The columns of numbers of a sample of rows."""

    names: tuple[str, ...]
    values: FloatArray  # (m, k), NaN if missing
    units: FloatArray  # (k,), unit of rounding of each column
    precise: FloatArray  # (k,), rounding error of floats in each column
    spans: FloatArray  # (k,), range of the middle 95 % of each column
    n_distinct: IntArray  # (k,), number of distinct values

    @classmethod
    def of(cls, cells: Cells, names: Sequence[str]) -> Numbers:
        """Take the columns of a table that hold more than one distinct number."""
        values = {name: cells.values(name) for name in names}
        present = {name: column[~np.isnan(column)] for name, column in values.items()}
        varying = {name: x for name, x in present.items() if len(x) and np.ptp(x) > 0}
        columns = [values[name] for name in varying]
        ends = [np.quantile(x, [0.025, 0.975]) for x in varying.values()]
        return cls(
            names=tuple(varying),
            values=np.column_stack(columns) if columns else np.empty((len(cells), 0)),
            units=np.array([rounding(x) for x in varying.values()]),
            precise=_PRECISE * np.array([np.quantile(np.abs(x), 0.99) for x in varying.values()]),
            spans=np.diff(np.array(ends).reshape(-1, 2))[:, 0],
            n_distinct=np.array([len(np.unique(x)) for x in varying.values()], dtype=np.int64),
        )

    def without(self, names: Container[str]) -> Numbers:
        """Return the columns except those in `names`."""
        return self.take([i for i, name in enumerate(self.names) if name not in names])

    def take(self, keep: Sequence[int]) -> Numbers:
        """Return the columns with indices `keep`."""
        places, names = np.array(keep, dtype=np.int64), tuple(self.names[i] for i in keep)
        units, precise, spans = (of[places] for of in (self.units, self.precise, self.spans))
        n_distinct = self.n_distinct[places]
        return Numbers(names, self.values[:, places], units, precise, spans, n_distinct)

    def first(self, most: int) -> Numbers:
        """Return the first `most` columns."""
        return self.take(range(min(len(self.names), most)))


def rounding(values: FloatArray) -> float:
    """Return the unit to which numbers are rounded: .01 for cents, 0 without rounding.

    >>> rounding(np.array([0.25, 1.5, 3.0])), rounding(np.array([86400.0, 259200.0]))
    (0.01, 1.0)
    """
    for decimals in range(_MOST_DECIMALS + 1):
        rest = np.abs(values - np.round(values, decimals))
        if np.mean(rest <= 1e-12 * np.maximum(np.abs(values), 1.0)) >= _ROUNDED:
            return float(10.0**-decimals)
    return 0.0


def lines(numbers: Numbers, cells: Cells, rng: np.random.Generator) -> Iterator[Linear]:
    """Find columns that equal another column in other units, or up to a constant."""
    best: dict[tuple[int, int], list[tuple[int, float, Linear]]] = {}
    for j, i, slope in _slopes(numbers.values, numbers.units, rng):
        few = min(numbers.n_distinct[i], numbers.n_distinct[j]) < _FEWEST_VALUES
        rule = _line(numbers, i, j, slope, cells)
        if rule is None or (few and abs(rule.coefficients[0]) != 1) or _only_near(rule, cells):
            continue
        coarse = rule.tolerance / numbers.spans[i] if numbers.spans[i] else 0.0
        length = len(f"{rule.coefficients[0]:.10g}{rule.offset:.10g}")
        best.setdefault((min(i, j), max(i, j)), []).append((length, coarse, rule))
    for found in best.values():
        yield min(found, key=lambda one: one[:2])[2]


def _only_near(rule: Linear | Product, cells: Cells) -> bool:
    """Whether twice the tolerance would satisfy most of the rows that break a rule.

    If so, the rule is only approximate, like the month from the day of the year.
    """
    n_broken = int(check(rule, cells).broken.sum())
    wider = replace(rule, tolerance=2 * rule.tolerance)
    if isinstance(wider, Product):
        wider = replace(wider, relative=2 * wider.relative)
    return n_broken > 1 and 2 * int(check(wider, cells).broken.sum()) < n_broken


def sums(numbers: Numbers, cells: Cells, rng: np.random.Generator) -> Iterator[Linear]:
    """Find sums and differences of columns, totals of adjacent columns, and constant sums."""
    numbers = numbers.first(_MOST_SUMMED)
    says = np.isfinite(numbers.values) & (numbers.values != 0)
    values = numbers.values[_fullest_rows(says, rng)].T
    sizes, units = np.nan_to_num(np.abs(values)), numbers.units

    def allowed(groups: IntArray) -> FloatArray:
        largest = sizes[groups.T].max(axis=0)
        off = 0.55 * units[groups].max(axis=1)[:, None] + _PRECISE * largest
        return np.where(largest > 0, off, np.nan)  # rows of zeros prove nothing

    for groups, signs in _summed(len(numbers.names)):
        size = len(signs)
        # Solve for the column that is the sum of the others, or else for the last, often a total.
        lone = [place for place, sign in enumerate(signs) if signs.count(sign) == 1]
        first = lone[0] if (size > 3 and lone) or len(lone) == 1 else size - 1
        others = [place for place in range(size) if place != first]
        turned = [-float(signs[place] * signs[first]) for place in others]
        for group in _steady(values, groups, signs, allowed):
            rule = _sum(numbers, cells, [group[place] for place in (first, *others)], turned)
            if rule is not None and bool(rule.offset) == (abs(sum(signs)) == size):
                yield rule


def _summed(k: int) -> Iterator[tuple[IntArray, tuple[int, ...]]]:
    """Yield groups of columns with signs: 3 or 4 columns, or adjacent columns and a total."""
    for size in (3, 4) if k <= _MOST_OF_FOUR else (3,):
        groups = _groups(k, size)
        yield from ((groups, (1, *rest)) for rest in product((1, -1), repeat=size - 1))
    for n in range(4, k if k <= _MOST_OF_FOUR else 0):
        runs = (range(start, start + n) for start in range(k - n + 1))
        totals = [[*run, i] for run in runs for i in range(k) if i not in run]
        yield np.array(totals), (*[1] * n, -1)


def products(numbers: Numbers, cells: Cells, rng: np.random.Generator) -> Iterator[Product]:
    """Find columns that are products or ratios of two other columns or their squares."""
    numbers = numbers.first(_MOST_MULTIPLIED)
    groups = _groups(len(numbers.names), 3)
    tried = [(groups, exponents) for exponents in _EXPONENTS]
    for logs, group, exponents in _powers(numbers, tried, rng):
        found = []
        for place, first in enumerate(group):
            if abs(exponents[place]) == 1:
                columns = [first, *(i for i in group if i != first)]
                powers = np.delete(exponents, place) / -exponents[place]
                rule = _product(numbers, cells, logs, columns, powers.tolist())
                if rule is not None and (rule.factor == 1 or not _only_near(rule, cells)):
                    is_product = powers.min() > 0 and rule.factor == 1
                    order = (rule.relative > 2 * _PRECISE, not is_product, -first)
                    found.append((order, rule))
        if found:  # of these equivalent rules, keep one: preferably exact, and a product
            yield min(found, key=lambda one: one[0])[1]


def _powers(
    numbers: Numbers, tried: Sequence[tuple[IntArray, tuple[int, ...]]], rng: np.random.Generator
) -> Iterator[tuple[FloatArray, list[int], tuple[int, ...]]]:
    """Find groups of columns whose product of powers is constant in many rows.

    `tried` holds groups with their exponents. Yield the logarithms of the columns, too.
    """
    logs, errors = _logs(numbers)
    rows = _fullest_rows(errors < _COARSE, rng)
    logs_of_rows, errors = logs[rows].T, errors[rows].T

    def allowed(groups: IntArray, exponents: tuple[int, ...]) -> FloatArray:
        sizes = np.abs(np.array(exponents, np.float64))
        moved = np.einsum("e,ger->gr", sizes, errors[groups])
        return np.where(moved > _COARSE, np.nan, 2 * moved)  # too coarse roundings prove nothing

    for groups, exponents in tried:
        found = _steady(logs_of_rows, groups, exponents, partial(allowed, exponents=exponents))
        yield from ((logs, group, exponents) for group in found)


def rated(numbers: Numbers, cells: Cells, rng: np.random.Generator) -> Iterator[Product]:
    """Find products with a factor 1 + or - a rate: price x number x (1 - discount)."""
    numbers = numbers.first(_MOST_RATED)
    for rate, name in enumerate(numbers.names):
        for per in _PER:
            turned = 1.0 + per * numbers.values[:, rate]
            known = turned[np.isfinite(turned)]
            low, high = np.quantile(known, [0.025, 0.975])
            # If almost all rates are 0, `products` finds the product without the rate.
            if not (0.0 < low and high <= 2.0 and np.mean(known != 1) > 1 - NEARLY):
                continue
            others = numbers.without({name})
            both = Numbers(
                (*others.names, name),
                np.column_stack([others.values, turned]),
                np.append(others.units, 0.0),  # rates are exact, as counts are
                np.append(others.precise, _PRECISE),
                np.append(others.spans, abs(per) * numbers.spans[rate]),
                np.append(others.n_distinct, numbers.n_distinct[rate]),
            )
            yield from _rated(both, cells, per, rng)


def _rated(
    numbers: Numbers, cells: Cells, per: float, rng: np.random.Generator
) -> Iterator[Product]:
    last, tried = len(numbers.names) - 1, []
    for size in (2, 3):
        groups = _groups(last, size)
        groups = np.column_stack([groups, np.full(len(groups), last)])
        signs = 2 * np.eye(size, size + 1, dtype=np.int64) - 1  # each column in turn is the total
        tried += [(groups, tuple(row)) for row in signs.tolist()]
    for logs, group, exponents in _powers(numbers, tried, rng):
        total = group[exponents.index(1)]
        columns, powers = [total, *(i for i in group if i != total)], [1.0] * (len(group) - 1)
        rule = _product(numbers, cells, logs, columns, powers, per=per)
        if rule is None or rule.factor != 1:
            continue
        if check(replace(rule, per=0.0), cells).share < NEARLY:
            yield rule


def _steady(
    values: FloatArray,
    groups: IntArray,
    factors: tuple[int, ...],
    allowed: Callable[[IntArray], FloatArray],
) -> Iterator[list[int]]:
    """Find groups of the k columns of `values` (k, r) with equal weighted sums in many rows.

    `allowed` returns the tolerances (g, r) of groups; NaN in rows that do not count.
    """
    step, n_found = _CHUNK // (len(factors) * _ROWS), 0
    for some in (groups[start : start + step] for start in range(0, len(groups), step)):
        total = np.einsum("e,ger->gr", np.array(factors, np.float64), values[some])
        off = allowed(some)
        total[np.isnan(off)] = np.nan
        agrees = (np.abs(total - _medians(total)[:, None]) <= off).sum(axis=1)
        n = np.isfinite(total).sum(axis=1)
        for place in np.flatnonzero((agrees >= _AGREE * n) & (n >= _FEW_ROWS)):
            n_found += 1
            if n_found > _MOST_CANDIDATES:
                return
            yield some[place].tolist()


def durations(cells: Cells, numbers: Numbers, rng: np.random.Generator) -> Iterator[Linear]:
    """Find columns of numbers that are the time between two dates, or two times of day.

    Yield the best of several pairs of dates, as ages at two close dates are alike.
    """
    dates, clocks = [], []
    for name, format in cells.formats.items():
        if isinstance(format, DateFormat):
            dates.append(name)
        elif isinstance(format, NumberFormat) and format.clock:
            clocks.append(name)
    best: dict[int, tuple[float, Linear]] = {}
    for times in (dates[:_MOST_TIMES], clocks[:_MOST_TIMES]):
        for start, end in combinations(times, 2):
            between = cells.values(end) - cells.values(start)
            known = between[~np.isnan(between)]
            if not len(known) or np.ptp(known) == 0:
                continue
            both = np.column_stack([between, numbers.values])
            units = np.concatenate([[rounding(known)], numbers.units])
            for _, i, slope in _slopes(both, units, rng, only=0):
                if numbers.names[i - 1] in (start, end):
                    continue
                rule = _duration(numbers, i - 1, (end, start), between, slope, cells)
                if rule is not None:
                    share = check(rule, cells).share
                    if share > best.get(i, (0.0, rule))[0]:
                        best[i] = share, rule
    yield from (rule for _, rule in best.values())


def _slopes(
    values: FloatArray, units: FloatArray, rng: np.random.Generator, only: int | None = None
) -> Iterator[tuple[int, int, float]]:
    """Yield (j, i, slope) where column i of `values` (m, k) has a constant slope over column j.

    Slopes are measured between rows with small and rows with large values of column j.
    """
    for j in range(values.shape[1]) if only is None else (only,):
        known = np.flatnonzero(~np.isnan(values[:, j]))
        ordered = known[np.argsort(values[known, j], kind="stable")]
        low = ordered[: -(-len(ordered) // 3)]
        high = ordered[values[ordered, j] > values[low, j].max(initial=-np.inf)]
        if not len(low) or not len(high):
            continue
        ends = values[rng.choice(high, _PAIRS)] - values[rng.choice(low, _PAIRS)]
        slopes = ends / ends[:, [j]]
        usual = _medians(slopes.T)
        off = np.abs(ends - usual * ends[:, [j]])
        agrees = (off <= _SLOPE * np.abs(usual * ends[:, [j]]) + units).sum(axis=0)
        enough = np.isfinite(slopes).sum(axis=0)
        for i in np.flatnonzero((agrees >= _AGREE * enough) & (enough >= _FEW_ROWS)).tolist():
            if i != j and usual[i] != 0:
                yield j, i, float(usual[i])


def _medians(values: FloatArray) -> FloatArray:
    """Return the lower median of each row of values (t, r); NaN for rows without a number."""
    ordered = np.sort(values, axis=1)
    n = np.isfinite(values).sum(axis=1)
    return np.take_along_axis(ordered, np.maximum(n - 1, 0)[:, None] // 2, axis=1)[:, 0]


def _fullest_rows(says: BoolArray, rng: np.random.Generator) -> IntArray:
    """Return the `_ROWS` rows with most entries marked in `says` (m, k), ties broken at random."""
    order = rng.permutation(len(says))
    return order[np.argsort(-says[order].sum(axis=1), kind="stable")[:_ROWS]]


def _groups(k: int, size: int) -> IntArray:
    """Return all combinations of `size` out of k columns, (g, size)."""
    return np.array(list(combinations(range(k), size)), dtype=np.int64).reshape(-1, size)


def _logs(numbers: Numbers) -> tuple[FloatArray, FloatArray]:
    """Return logarithms of positive numbers (m, k), and their rounding errors."""
    positive = np.where(numbers.values > 0, numbers.values, np.nan)
    is_count = (numbers.units == 1) & (_medians(positive.T) <= _MOST_COUNTED)
    units = np.where(is_count, 0.0, numbers.units)
    return np.log(positive), units / 2 / positive + _PRECISE


def _line(numbers: Numbers, i: int, j: int, slope: float, cells: Cells) -> Linear | None:
    a, b = numbers.values[:, i], numbers.values[:, j]
    known = np.isfinite(a) & np.isfinite(b)
    precise = numbers.precise[i] + abs(slope) * numbers.precise[j]
    half = numbers.units[i] / 2
    tolerances = (precise, half + precise, half + abs(slope) * numbers.units[j] / 2 + precise)

    def make(digits: int, tolerance: float) -> Linear:
        k = _short(slope, digits)
        c = _short(float(np.median(a[known] - k * b[known])), digits)
        columns = numbers.names[i], numbers.names[j]
        c = 0.0 if abs(c) <= tolerance else c
        return Linear(columns=columns, coefficients=(k,), offset=c, tolerance=tolerance)

    return _simplest(make, _fine(tolerances, precise, numbers.spans[i]), cells)


def _duration(
    numbers: Numbers, i: int, ends: tuple[str, str], between: FloatArray, slope: float, cells: Cells
) -> Linear | None:
    """Fit column i by the time `between` two dates, converted from seconds, plus a constant."""
    unit = min(_TIME_UNITS, key=lambda seconds: abs(abs(slope) * seconds - 1))
    if abs(abs(slope) * unit - 1) > _SLOPE:
        return None
    k = float(np.sign(slope)) / unit
    rest = numbers.values[:, i] - k * between
    half = numbers.units[i] / 2
    # Ages count completed years or months: on average, half a unit less than the exact time.
    step = float(half) or 1.0
    offset = float(np.round(np.median(rest[np.isfinite(rest)]) / step)) * step
    precise = numbers.precise[i]
    columns = (numbers.names[i], *(ends if k > 0 else ends[::-1]))
    rule = Linear(columns=columns, coefficients=(abs(k), -abs(k)), offset=offset)
    tolerances = (precise, half + precise, 1.05 * half + precise)
    fine = _fine(tolerances, precise, numbers.spans[i])
    return _simplest(lambda digits, allowed: replace(rule, tolerance=allowed), fine, cells)


def _sum(
    numbers: Numbers, cells: Cells, columns: Sequence[int], signs: Sequence[float]
) -> Linear | None:
    """Fit the first column as a signed sum of the others, plus a constant if all signs are -1."""
    first, *others = columns
    rest = numbers.values[:, first] - numbers.values[:, others] @ np.array(signs)
    rest = rest[np.isfinite(rest)]
    is_constant = all(sign < 0 for sign in signs) and len(rest)
    offset = float(np.median(rest)) if is_constant else 0.0
    precise = float(numbers.precise[columns].sum())
    unit, units = float(numbers.units[columns].max()), float(numbers.units[columns].sum())
    tolerances = [precise, unit / 2 + precise, unit + precise, units / 2 + precise]
    names = tuple(numbers.names[i] for i in columns)
    rule = Linear(columns=names, coefficients=tuple(signs))

    def make(digits: int, tolerance: float) -> Linear:
        return replace(rule, offset=_short(offset, digits), tolerance=tolerance)

    return _simplest(make, _fine(tolerances, precise, numbers.spans[first]), cells)


def _product(
    numbers: Numbers,
    cells: Cells,
    logs: FloatArray,
    columns: Sequence[int],
    exponents: Sequence[float],
    *,
    per: float = 0.0,
) -> Product | None:
    """Fit the first column as a constant times powers of the others."""
    first, *others = columns
    rest = logs[:, first] - logs[:, others] @ np.array(exponents)
    rest = rest[np.isfinite(rest)]
    if not len(rest):
        return None
    factor = float(np.exp(np.median(rest)))
    positive = np.where(numbers.values > 0, numbers.values, np.nan)[:, others]
    moved = (np.abs(np.array(exponents)) * numbers.units[others] / 2 / positive).sum(axis=1)
    moved = moved[np.isfinite(moved)]
    relative = float(np.quantile(moved, _ROUNDED)) if len(moved) else np.inf
    half = float(numbers.units[first] / 2 + numbers.precise[first])
    tolerances = [(0.0, _PRECISE), (half, _PRECISE)]
    if relative <= _MOST_RELATIVE:
        tolerances.append((half, relative + _PRECISE))
    span = numbers.spans[first]
    tolerances = [t for t in tolerances if is_fine(t[0], numbers.precise[first], span)]

    names = tuple(numbers.names[i] for i in columns)
    rule = Product(columns=names, exponents=tuple(exponents), per=per)

    def make(digits: int, tolerance: tuple[float, float]) -> Product:
        allowed, share = tolerance
        return replace(rule, factor=_short(factor, digits), tolerance=allowed, relative=share)

    return _simplest(make, tolerances, cells)


def is_fine(tolerance: float, precise: float, span: float) -> bool:
    """Whether a tolerance is the rounding error of floats, or small beside the span of a column."""
    return tolerance <= precise or tolerance * _FINE <= span


def _fine(tolerances: Sequence[float], precise: float, span: float) -> list[float]:
    return [float(t) for t in tolerances if is_fine(t, precise, span)]


def _short(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _simplest(
    make: Callable[[int, _Tolerance], _Made], tolerances: Sequence[_Tolerance], cells: Cells
) -> _Made | None:
    """Make a rule with the smallest tolerance at which it holds, and the shortest constants.

    A larger tolerance is used only if far fewer rows then break the rule, as rounding explains.
    """
    found, broken = None, 1.0 - NEARLY
    for tolerance in tolerances:
        made = [make(digits, tolerance) for digits in _DIGITS]
        shares = [check(rule, cells).share for rule in made]
        left = 1.0 - max(shares)
        if left <= broken if found is None else broken > _MANY and left * FEWER < broken:
            good = max(shares) - _NO_WORSE
            found = next(rule for rule, share in zip(made, shares, strict=True) if share >= good)
            broken = left
    return found
