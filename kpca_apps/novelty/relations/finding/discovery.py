"""The rules of a table: sought in a sample of its rows, and verified on all of them.

Each file of this room finds some kinds of rule. Here they are put in order: columns that are equal
are taken once, rules between columns must hold by more than chance (`evidence.py`), and what
follows from other rules is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

import numpy as np

from kpca_apps.novelty.columns.plan import ColumnPlan
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.checking import Cells, check
from kpca_apps.novelty.relations.finding import (
    arithmetic,
    conditions,
    equality,
    keys,
    orders,
    single,
)
from kpca_apps.novelty.relations.finding.arithmetic import Numbers
from kpca_apps.novelty.relations.finding.evidence import NEARLY, beyond_chance
from kpca_apps.novelty.relations.rule import AnyRule, HeldRule, Rule
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import DateFormat

SAMPLE_ROWS = 2_000
_MIN_ROWS = 20  # that a rule says something of
_LEFT_OUT = ("excluded", "label", "empty", "constant")
_INDEPENDENT = 1e-4  # part of an equation that does not follow from others

_Kind = TypeVar("_Kind", bound=Rule)


def find_rules(table: Table, plan: ColumnPlan, *, seed: int = 0) -> tuple[HeldRule, ...]:
    """Find what holds between the columns of a table in nearly all of its rows.

    Columns that the user left out are left out, and so are labels.
    """
    kept = [spec.name for spec in plan.specs if spec.role not in _LEFT_OUT]
    cells = Cells.of(table, plan).take(kept)
    if len(cells) < _MIN_ROWS:
        return ()
    # What leaves the range of floats agrees with nothing.
    with np.errstate(all="ignore"):
        found = _candidates(cells, plan, np.random.default_rng(seed))
    counted = (check(rule, cells).summary(rule) for rule in found)
    return tuple(
        held
        for held in counted
        if held.n_rows >= _MIN_ROWS and held.n_broken <= (1 - NEARLY) * held.n_rows
    )


@dataclass(frozen=True)
class _Sample:
    """Some rows of a table, in which rules are sought."""

    cells: Cells
    rng: np.random.Generator

    def proven(self, rules: Iterable[_Kind], n_tried: float) -> list[_Kind]:
        """Keep the rules that hold by more than chance."""
        return [rule for rule in rules if beyond_chance(rule, self.cells, n_tried, self.rng)]

    def best(self, rules: Iterable[tuple[_Kind, float]], n_tried: float) -> list[_Kind]:
        """Of the rules of a first column, keep the one whose rows hold most values."""
        best: dict[str, tuple[float, _Kind]] = {}
        for rule, share in rules:
            if share > best.get(rule.columns[0], (0.0, rule))[0] and self.proven([rule], n_tried):
                best[rule.columns[0]] = share, rule
        return [rule for _, rule in best.values()]


def _candidates(cells: Cells, plan: ColumnPlan, rng: np.random.Generator) -> list[AnyRule]:
    """Find the rules that a sample of the rows shows."""
    table, n = cells.table, len(cells)
    if n > SAMPLE_ROWS:
        rows = np.sort(rng.choice(n, SAMPLE_ROWS, replace=False))
        table = replace(table, frame=table.frame[rows], lines=None)
    sample = _Sample(replace(cells, table=table), rng)
    n_pairs = len(cells.formats) ** 2
    numbers = Numbers.of(sample.cells, [n for n in cells.formats if cells.is_number(n)])
    equal = sample.proven(equality.equal_columns(numbers, sample.cells), n_pairs)
    # From here on, columns that are equal are one.
    repeated = {rule.columns[1] for rule in equal}
    names = [name for name in cells.formats if name not in repeated]
    cells, numbers = cells.take(names), numbers.without(repeated)
    sample = replace(sample, cells=sample.cells.take(names))
    flags = [*conditions.flags_only_if(cells)]
    of_flags = {frozenset(rule.columns) for rule in flags}
    naming = {spec.name for spec in plan.specs if spec.role in keys.NAMING}
    found = _equations(numbers, sample, naming)
    equations = [rule for rule in found if frozenset(rule.columns) not in of_flags]
    settled = keys.key_rules(cells, keys.Levels.of(cells, names), rng)
    # Two columns that are tied need no second rule.
    in_equation = {frozenset(rule.columns) for rule in equations}
    # Orders that follow neither from others nor from what is said of the same columns.
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
    """Find what numbers, and the times between dates, can be computed from.

    Numbers `naming` the rows go with all that rises with these.
    """
    cells, rng = sample.cells, sample.rng
    dates = {n for n in numbers.names if isinstance(cells.formats[n], DateFormat)}
    measured = numbers.without(dates)
    n_tried = len(numbers.names) ** 4
    linear = [
        *arithmetic.sums(measured, cells, rng),
        *arithmetic.lines(measured.without(naming), cells, rng),
        *arithmetic.durations(cells, measured, rng),
        *arithmetic.apart(cells, numbers),
    ]
    products = [
        *arithmetic.products(measured, cells, rng),
        *arithmetic.rated(measured, cells, rng),
    ]
    spans = dict(zip(numbers.names, numbers.spans.tolist(), strict=True))
    proven = sample.proven(linear, n_tried), sample.proven(products, n_tried)
    return _independent(*proven, spans)


def _independent(
    linear: Sequence[kinds.Linear], products: Sequence[kinds.Product], spans: Mapping[str, float]
) -> list[kinds.Linear | kinds.Product]:
    """Leave out equations that follow from others: plain sums stay, then what has fewer columns.

    `spans` are those of the columns, which make coefficients of different units comparable.
    """
    sums, logs = _Equations(), _Equations()
    kept: list[kinds.Linear | kinds.Product] = []

    def plainness(rule: kinds.Linear) -> tuple[bool, bool, int, float]:
        n_columns = len(rule.columns)
        return n_columns == 2, rule.offset != 0, n_columns, rule.tolerance

    def equation(rule: kinds.Linear) -> dict[str, float]:
        terms = zip(rule.columns, (1.0, *(-k for k in rule.coefficients)), strict=True)
        return {name: k * (spans[name] or 1.0) for name, k in terms}

    kept += [rule for rule in sorted(linear, key=plainness) if sums.add(equation(rule))]
    # Columns that these make multiples of one another: gross, net and tax.
    whole = _Equations()
    for one in kept:
        if isinstance(one, kinds.Linear) and not one.offset:
            whole.add(equation(one))
    names = {name for rule in kept for name in rule.columns}
    for first, second in combinations(sorted(names), 2):
        if whole.ties(first, second):
            logs.add({first: 1.0, second: -1.0})
    # Of a discount that is the same wherever it is given, powers say the same in fewer rows.
    rated = {frozenset(rule.columns) for rule in products if rule.per}
    products = [rule for rule in products if rule.per or frozenset(rule.columns) not in rated]
    for product in sorted(products, key=lambda rule: (len(rule.columns), rule.relative)):
        powers = (1.0, *(-e for e in product.exponents))
        names_of = [*product.columns]
        if product.per:
            names_of[-1] = f"1 + {product.per:g} {names_of[-1]}"
        # Gross is net and tax, which is net times the rate: it says no more.
        total, *parts = product.columns
        follows = bool(product.per) and any(
            isinstance(one, kinds.Linear)
            and total in one.columns
            and not {*parts}.isdisjoint(one.columns)
            for one in kept
        )
        if logs.add(dict(zip(names_of, powers, strict=True))) and not follows:
            kept.append(product)
    return kept


class _Equations:
    """Linear equations between columns, none of which follows from the others."""

    def __init__(self) -> None:
        self._known: list[tuple[str, dict[str, float]]] = []  # each with the column it gives

    def add(self, equation: Mapping[str, float]) -> bool:
        """Take in the coefficients of an equation, unless it follows from those here."""
        rest = self._rest(equation)
        if rest:
            self._known.append((max(rest, key=lambda name: abs(rest[name])), rest))
        return bool(rest)

    def ties(self, first: str, second: str) -> bool:
        """Whether each of two columns is a multiple of the other."""
        one, other = self._rest({first: 1.0}), self._rest({second: 1.0})
        if not one or one.keys() != other.keys():
            return False
        ratios = np.array([one[name] / other[name] for name in one])
        return bool(np.ptp(ratios) <= _INDEPENDENT * np.abs(ratios).max())

    def _rest(self, equation: Mapping[str, float]) -> dict[str, float]:
        """Put in what is given by the equations here."""
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
    """Whether an order says no more than the size of another column in an equation of both.

    Of a sum, that the other parts are not below 0. Times are told all the same, unless they are a
    constant apart: that the days between them are not below 0 is no rule of its own.
    """
    is_time = isinstance(cells.formats[rule.columns[0]], DateFormat)
    return any(
        {*rule.columns} == {*equation.columns}
        if is_time
        else {*rule.columns} <= {*equation.columns}
        for equation in equations
    )
