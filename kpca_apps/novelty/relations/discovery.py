"""The rules of a table: sought in a sample of its rows, and verified on all of them.

Each file of this room finds some kinds of rule. Here they are put in order: columns that are equal
are taken once, rules between columns must hold by more than chance (`evidence.py`), and what
follows from other rules is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from kpca_apps.novelty.columns.plan import ColumnPlan
from kpca_apps.novelty.relations import arithmetic, conditions, keys, orders, single
from kpca_apps.novelty.relations.checking import Cells, check
from kpca_apps.novelty.relations.evidence import NEARLY, beyond_chance
from kpca_apps.novelty.relations.rule import (
    AnyRule,
    Equal,
    HeldRule,
    Linear,
    Order,
    Product,
    Rule,
)
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import DateFormat, NumberFormat

SAMPLE_ROWS = 2_000
_MIN_ROWS = 20
_MIN_SAID = 20  # rows a rule must say something of
_INDEPENDENT = 1e-3  # part of an equation that does not follow from others

_Kind = TypeVar("_Kind", bound=Rule)


def find_rules(table: Table, plan: ColumnPlan, *, seed: int = 0) -> tuple[HeldRule, ...]:
    """Find what holds between the columns of a table in nearly all of its rows.

    Columns that the user left out are left out, and so are labels.
    """
    rng = np.random.default_rng(seed)
    cells = Cells.of(table, plan)
    kept = {
        spec.name: cells.formats[spec.name]
        for spec in plan.specs
        if spec.role not in ("excluded", "label", "empty", "constant")
    }
    cells = Cells(table, kept)
    if len(cells) < _MIN_ROWS:
        return ()
    return tuple(
        held
        for held in (check(rule, cells).summary(rule) for rule in _candidates(cells, plan, rng))
        if held.n_rows >= _MIN_SAID and held.n_broken <= (1 - NEARLY) * held.n_rows
    )


def _candidates(cells: Cells, plan: ColumnPlan, rng: np.random.Generator) -> list[AnyRule]:
    """Find the rules that a sample of the rows shows."""
    sample = _sampled(cells, rng)
    n_columns = len(cells.formats)

    def proven(rules: Iterable[_Kind], n_tried: int) -> list[_Kind]:
        return [rule for rule in rules if beyond_chance(rule, sample, n_tried, rng)]

    def where(rules: Iterable[tuple[_Kind, float]]) -> list[tuple[_Kind, float]]:
        return [(rule, share) for rule, share in rules if proven([rule], n_columns**2)]

    valued = arithmetic.Numbers.of(sample, [n for n in cells.formats if cells.is_number(n)])
    equal: list[Equal] = proven(
        [*arithmetic.equal_numbers(valued, sample), *keys.equal_texts(sample)], n_columns**2
    )
    # From here on, columns that are equal are one.
    repeated = {rule.columns[1] for rule in equal}
    names = [name for name in cells.formats if name not in repeated]
    cells, sample = cells.take(names), sample.take(names)
    valued = valued.take([i for i, name in enumerate(valued.names) if name in names])
    measured = valued.take([i for i, name in enumerate(valued.names) if _measured(cells, name)])
    linear = proven(
        [
            *arithmetic.sums(measured, sample, rng),
            *arithmetic.lines(measured, sample, rng),
            *arithmetic.durations(sample, measured, rng),
        ],
        n_columns**3,
    )
    products = proven(
        [
            *arithmetic.powers(measured, sample, rng),
            *arithmetic.products(measured, sample, rng),
        ],
        n_columns**3,
    )
    linear, products = _independent(linear, products)
    ordered = proven(orders.orders(valued, sample), n_columns**2)
    ordered = orders.neighbours(
        [rule for rule in ordered if not _follows(rule, [*linear, *products], sample)]
    )
    levels = keys.Levels.of(cells, names)
    return [
        *equal,
        *linear,
        *products,
        *orders.neighbours(ordered),
        *keys.key_rules(cells, levels, rng),
        *_best(where(conditions.empty_unless(sample))),
        *_best(where(conditions.positive_only_if(sample))),
        *keys.unique_columns(cells, plan),
        *single.sorted_columns(cells),
        *single.codes(cells),
        *single.bounds(cells),
    ]


def _sampled(cells: Cells, rng: np.random.Generator) -> Cells:
    """Take some rows, in their order."""
    n = len(cells)
    if n <= SAMPLE_ROWS:
        return cells
    rows = np.sort(rng.choice(n, SAMPLE_ROWS, replace=False))
    return replace(cells, table=replace(cells.table, frame=cells.table.frame[rows], lines=None))


def _measured(cells: Cells, name: str) -> bool:
    return isinstance(cells.formats[name], NumberFormat)


def _best(rules: Iterable[tuple[_Kind, float]]) -> list[_Kind]:
    """Of rules of one first column, keep the one whose rows hold most values."""
    best: dict[str, tuple[float, _Kind]] = {}
    for rule, share in rules:
        if share > best.get(rule.columns[0], (0.0, rule))[0]:
            best[rule.columns[0]] = share, rule
    return [rule for _, rule in best.values()]


def _independent(
    linear: Sequence[Linear], products: Sequence[Product]
) -> tuple[list[Linear], list[Product]]:
    """Leave out equations that follow from others: plain sums stay, then what has fewer columns."""
    plain = sorted(
        linear,
        key=lambda rule: (
            len(rule.columns) == 2,
            rule.offset != 0,
            len(rule.columns),
            rule.tolerance,
        ),
    )
    kept_linear = []
    system = _Equations()
    for rule in plain:
        if system.add(rule.columns, (1.0, *(-k for k in rule.coefficients))):
            kept_linear.append(rule)
    system = _Equations()
    for rule in kept_linear:
        if len(rule.columns) == 2 and not rule.offset and rule.coefficients[0] > 0:
            system.add(rule.columns, (1.0, -1.0))
    kept = []
    for product in sorted(products, key=lambda rule: (len(rule.columns), rule.relative)):
        if system.add(product.columns, (1.0, *(-e for e in product.exponents))):
            kept.append(product)
    return kept_linear, kept


class _Equations:
    """Linear equations between columns, none of which follows from the others."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._rows: list[dict[int, float]] = []

    def add(self, columns: Sequence[str], coefficients: Sequence[float]) -> bool:
        """Take in an equation, unless it follows from those here."""
        row = {
            self._places.setdefault(name, len(self._places)): value
            for name, value in zip(columns, coefficients, strict=True)
        }
        size = max(map(abs, row.values()))
        for pivot_row in self._rows:
            pivot = next(iter(pivot_row))
            if pivot in row:
                times = row[pivot] / pivot_row[pivot]
                for place, value in pivot_row.items():
                    row[place] = row.get(place, 0.0) - times * value
                row.pop(pivot)
        row = {place: v for place, v in row.items() if abs(v) > _INDEPENDENT * size}
        if not row:
            return False
        pivot = max(row, key=lambda place: abs(row[place]))
        self._rows.append({pivot: row.pop(pivot), **row})
        return True


def _follows(rule: Order, equations: Sequence[Linear | Product], cells: Cells) -> bool:
    """Whether an order says no more than the size of another column in an equation of both.

    Of a sum, that the other parts are not below 0. Times are told all the same: that the days
    between them are not below 0 is no rule of its own.
    """
    return not isinstance(cells.formats[rule.columns[0]], DateFormat) and any(
        set(rule.columns) <= {*equation.columns} for equation in equations
    )
