"""Find the rules of a table in a sample of its rows, and check them on all rows.

Of columns with equal values, only the first is used. Rules between columns must pass a permutation
test (`evidence.py`), and rules that follow from others are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

import numpy as np
import polars as pl

from kpca_apps.novelty.columns.plan import ColumnPlan
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.checking import Cells, check
from kpca_apps.novelty.relations.finding import arithmetic, conditions, keys, orders, single
from kpca_apps.novelty.relations.finding.arithmetic import Numbers
from kpca_apps.novelty.relations.finding.evidence import NEARLY, beyond_chance
from kpca_apps.novelty.relations.rule import AnyRule, HeldRule, Rule, RuleColumn
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import DateFormat, NumberFormat

SAMPLE_ROWS = 2_000
_MIN_ROWS = 20  # minimum number of rows to which a rule applies
_LEFT_OUT = ("excluded", "label", "empty", "constant")
_INDEPENDENT = 1e-4  # in Gaussian elimination, coefficients below this share of the largest are 0

_Kind = TypeVar("_Kind", bound=Rule)


def find_rules(table: Table, plan: ColumnPlan, *, seed: int = 0) -> tuple[HeldRule, ...]:
    """Find rules that hold in nearly all rows; ignore label, excluded, empty, constant columns."""
    kept = [spec.name for spec in plan.specs if spec.role not in _LEFT_OUT]
    cells = Cells.of(table, plan).take(kept)
    if len(cells) < _MIN_ROWS:
        return ()
    with np.errstate(all="ignore"):
        found = _candidates(cells, plan, np.random.default_rng(seed))
    counted = (check(rule, cells).summary(rule) for rule in found)
    return tuple(
        held
        for held in counted
        if held.n_rows >= _MIN_ROWS and held.n_broken <= (1 - NEARLY) * held.n_rows
    )


def columns_of(rules: tuple[HeldRule, ...], cells: Cells) -> tuple[RuleColumn, ...]:
    """Return the columns of rules, in the order of the table."""
    named = {name for held in rules for name in held.rule.columns}
    dtypes = cells.table.frame.schema
    formats = {name: cells.formats[name] for name in dtypes if name in named}
    return tuple(
        RuleColumn(
            name,
            numbers=format if isinstance(format, NumberFormat) else None,
            dates=format if isinstance(format, DateFormat) else None,
            typed=dtypes[name] != pl.String,
        )
        for name, format in formats.items()
    )


@dataclass(frozen=True)
class _Sample:
    cells: Cells
    rng: np.random.Generator

    def proven(self, rules: Iterable[_Kind], n_tried: float) -> list[_Kind]:
        return [rule for rule in rules if beyond_chance(rule, self.cells, n_tried, self.rng)]

    def best(self, rules: Iterable[tuple[_Kind, float]], n_tried: float) -> list[_Kind]:
        """For each first column, keep the proven rule with the highest share of filled cells."""
        best: dict[str, tuple[float, _Kind]] = {}
        for rule, share in rules:
            if share > best.get(rule.columns[0], (0.0, rule))[0] and self.proven([rule], n_tried):
                best[rule.columns[0]] = share, rule
        return [rule for _, rule in best.values()]


def _candidates(cells: Cells, plan: ColumnPlan, rng: np.random.Generator) -> list[AnyRule]:
    """Find rules in a sample of the rows."""
    table, n = cells.table, len(cells)
    if n > SAMPLE_ROWS:
        rows = np.sort(rng.choice(n, SAMPLE_ROWS, replace=False))
        table = replace(table, frame=table.frame[rows], lines=None)
    sample = _Sample(replace(cells, table=table), rng)
    n_pairs = len(cells.formats) ** 2
    numbers = Numbers.of(sample.cells, [n for n in cells.formats if cells.is_number(n)])
    equal = sample.proven(orders.equal_columns(numbers, sample.cells), n_pairs)
    # From here on, use only the first of equal columns.
    repeated = {rule.columns[1] for rule in equal}
    names = [name for name in cells.formats if name not in repeated]
    cells, numbers = cells.take(names), numbers.without(repeated)
    sample = replace(sample, cells=sample.cells.take(names))
    flags = [*conditions.flags_only_if(cells)]
    of_flags = {frozenset(rule.columns) for rule in flags}
    naming = {spec.name for spec in plan.specs if spec.role in keys.NAMING}
    found = _equations(numbers, sample, naming)
    equations = [rule for rule in found if frozenset(rule.columns) not in of_flags]
    settled = keys.key_rules(cells, rng)
    in_equation = {frozenset(rule.columns) for rule in equations}
    by_name, by_values = orders.orders(numbers, sample.cells)
    ordered = [*by_name, *sample.proven(by_values, len(numbers.names) ** 2)]
    ordered = [rule for rule in ordered if frozenset(rule.columns) not in of_flags]
    return [
        *equal,
        *equations,
        *orders.neighbours([rule for rule in ordered if not _follows(rule, equations, cells)]),
        *(rule for rule in settled if frozenset(rule.columns) not in in_equation),
        *sample.best(conditions.empty_unless(sample.cells), n_pairs),
        *flags,
        *keys.unique_columns(cells, plan),
        *single.sorted_columns(cells, plan),
        *single.codes(sample.cells),
        *single.bounds(cells),
    ]


def _equations(
    numbers: Numbers, sample: _Sample, naming: set[str]
) -> list[kinds.Linear | kinds.Product]:
    """Find formulas of numbers and of times between dates.

    No line is fitted to columns that identify rows (`naming`), as any two rising columns fit one.
    """
    cells, rng = sample.cells, sample.rng
    dates = {n for n in numbers.names if isinstance(cells.formats[n], DateFormat)}
    measured = numbers.without(dates)
    n_tried = len(numbers.names) ** 4
    linear = [
        *arithmetic.sums(measured, cells, rng),
        *arithmetic.lines(measured.without(naming), cells, rng),
        *arithmetic.durations(cells, measured, rng),
    ]
    # Leave flags (0 or 1) out of products: a factor of 1 changes nothing.
    columns = zip(measured.names, measured.values.T, strict=True)
    flags = {name for name, of in columns if np.isin(of[~np.isnan(of)], (0, 1)).all()}
    scales = measured.without(flags)
    products = [*arithmetic.products(scales, cells, rng), *arithmetic.rated(scales, cells, rng)]
    spans = dict(zip(numbers.names, numbers.spans.tolist(), strict=True))
    proven = sample.proven(linear, n_tried), sample.proven(products, n_tried)
    return _independent(*proven, spans)


def _independent(
    linear: Sequence[kinds.Linear], products: Sequence[kinds.Product], spans: Mapping[str, float]
) -> list[kinds.Linear | kinds.Product]:
    """Remove equations that follow from others; prefer plain sums and few columns.

    `spans` of the columns make coefficients of different units comparable.
    """
    sums, logs, proportional = _Equations(), _Equations(), _Equations()
    kept: list[kinds.Linear | kinds.Product] = []

    def plainness(rule: kinds.Linear) -> tuple[bool, bool, int, float]:
        n_columns = len(rule.columns)
        return n_columns == 2, rule.offset != 0, n_columns, rule.tolerance

    for rule in sorted(linear, key=plainness):
        terms = zip(rule.columns, (1.0, *(-k for k in rule.coefficients)), strict=True)
        equation = {name: k * (spans[name] or 1.0) for name, k in terms}
        if sums.add(equation):
            kept.append(rule)
            if not rule.offset:
                proportional.add(equation)
    # Find columns that linear rules together make proportional: gross = net + tax, tax = .2 net.
    for first, second in combinations(sorted({name for rule in kept for name in rule.columns}), 2):
        if proportional.ties(first, second):
            logs.add({first: 1.0, second: -1.0})
    # Of two products of the same columns, keep the one with a rate (`per`), such as a tax rate.
    rated = {frozenset(rule.columns) for rule in products if rule.per}
    products = [rule for rule in products if rule.per or frozenset(rule.columns) not in rated]
    totals = [{*rule.columns} for rule in kept]
    for product in sorted(products, key=lambda rule: (len(rule.columns), rule.relative)):
        total, *parts = product.columns
        names = [*product.columns]
        if product.per:
            names[-1] = f"1 + {product.per:g} {names[-1]}"
        powers = (1.0, *(-e for e in product.exponents))
        # If gross = net + tax and tax = net * rate, gross = net * (1 + rate) follows.
        follows = product.per and any(total in of and not of.isdisjoint(parts) for of in totals)
        if logs.add(dict(zip(names, powers, strict=True))) and not follows:
            kept.append(product)
    return kept


class _Equations:
    """Linearly independent equations between columns."""

    def __init__(self) -> None:
        self._known: list[tuple[str, dict[str, float]]] = []  # (eliminated column, equation)

    def add(self, equation: Mapping[str, float]) -> bool:
        rest = self._rest(equation)
        if rest:
            self._known.append((max(rest, key=lambda name: abs(rest[name])), rest))
        return bool(rest)

    def ties(self, first: str, second: str) -> bool:
        """Whether two columns are multiples of each other."""
        one, other = self._rest({first: 1.0}), self._rest({second: 1.0})
        if not one or one.keys() != other.keys():
            return False
        ratios = np.array([one[name] / other[name] for name in one])
        return bool(np.ptp(ratios) <= _INDEPENDENT * np.abs(ratios).max())

    def _rest(self, equation: Mapping[str, float]) -> dict[str, float]:
        """Eliminate known columns from an equation (Gauss)."""
        rest = dict(equation)
        least = _INDEPENDENT * max(map(abs, rest.values()))
        for given, known in self._known:
            if given in rest:
                times = rest.pop(given) / known[given]
                for name in known.keys() - {given}:
                    rest[name] = rest.get(name, 0.0) - times * known[name]
        return {name: value for name, value in rest.items() if abs(value) > least}


def _follows(
    rule: kinds.Order, equations: Sequence[kinds.Linear | kinds.Product], cells: Cells
) -> bool:
    """Whether a <= b merely says that c >= 0 in an equation a + c = b, so is no rule by itself.

    For dates, the equation must have no other column: no rule says that a number of days is >= 0.
    """
    columns, is_time = {*rule.columns}, isinstance(cells.formats[rule.columns[0]], DateFormat)
    return any(
        columns == {*of.columns} if is_time else columns.issubset(of.columns) for of in equations
    )
