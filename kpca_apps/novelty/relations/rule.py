"""The kinds of rules between columns, as plain data; dates are seconds since 1970 UTC.

The rules of a table come with the formats in which their columns were read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import msgspec
from msgspec import Meta

from kpca_apps.tables.values import DateFormat, NumberFormat, ValueFormat

Tolerance = Annotated[float, Meta(ge=0)]
Several = Annotated[tuple[str, ...], Meta(min_length=2)]


class Rule(msgspec.Struct, frozen=True, tag_field="kind", kw_only=True, forbid_unknown_fields=True):
    """A relation between columns in nearly all rows; rows with missing values do not break it."""

    columns: tuple[str, ...]  # in the order that the kind of rule defines


class Equal(Rule, tag="equal", frozen=True, kw_only=True):
    """Both columns hold the same number, or the same text."""

    columns: tuple[str, str]
    tolerance: Tolerance = 0.0  # largest difference due to rounding


class Order(Rule, tag="order", frozen=True, kw_only=True):
    """The first column is at most the second (start, end), or below it if `strict`."""

    columns: tuple[str, str]
    strict: bool = False


class Linear(Rule, tag="linear", frozen=True, kw_only=True):
    """The first column is `offset` plus the others times `coefficients`, within `tolerance`.

    For sums, differences and unit conversions: total = part + part; days from start to end, with
    the coefficients 1 / 86,400 and -1 / 86,400.
    """

    columns: Several
    coefficients: tuple[float, ...]  # coefficient of each column but the first
    offset: float = 0.0
    tolerance: Tolerance = 0.0


class Product(Rule, tag="product", frozen=True, kw_only=True):
    """The first column is `factor` times powers of the others.

    For products, ratios, powers: price x number, weight / height^2. If `per` is not 0, the last
    column p counts as 1 + per p: a discount (-1, or -0.01 in per cent) or a tax rate. The tolerance
    is `tolerance` plus `relative` times the product. Rows without a product (x / 0) do not break
    it.
    """

    columns: Several
    exponents: tuple[float, ...]  # exponent of each column but the first
    factor: float = 1.0
    per: float = 0.0
    tolerance: Tolerance = 0.0
    relative: Tolerance = 0.0


class Sorted(Rule, tag="sorted", frozen=True, kw_only=True):
    """The column never falls from row to row, or never rises if `falling`.

    Of two neighbours in the wrong order, the first breaks the rule if its neighbours are in order
    without it, else the second. Missing values are skipped.
    """

    columns: tuple[str]
    falling: bool = False


class Unique(Rule, tag="unique", frozen=True, kw_only=True):
    """No two rows have equal values in these columns; all rows that do break the rule."""

    columns: Annotated[tuple[str, ...], Meta(min_length=1)]


class Determines(Rule, tag="determines", frozen=True, kw_only=True):
    """Rows equal in all columns but the last are equal in the last (ZIP code, city).

    The rule applies to keys of two rows or more. Rows without the value of more than half of the
    rows of their key break it.
    """

    columns: Several


class EmptyUnless(Rule, tag="empty unless", frozen=True, kw_only=True):
    """The first column is empty unless the second is in `values` (any value, if none is given)."""

    columns: tuple[str, str]
    values: tuple[str, ...] = ()


class PositiveOnlyIf(Rule, tag="positive only if", frozen=True, kw_only=True):
    """The first column is positive only if one of the others is one of `values`.

    With `both`, it is positive then, too: a machine fails if and only if a cause of failure is 1.
    """

    columns: Several
    values: Annotated[tuple[str, ...], Meta(min_length=1)]
    both: bool = False


class Code(Rule, tag="code", frozen=True, kw_only=True):
    """The text has this form: A for a letter, 9 for a digit 0 to 9, other signs unchanged."""

    columns: tuple[str]
    form: str


class Within(Rule, tag="within", frozen=True, kw_only=True):
    """The number lies within bounds (a rate from 0 to 100)."""

    columns: tuple[str]
    low: float | None = None
    high: float | None = None


Formula = Equal | Linear | Product
WholeTable = Sorted | Unique | Determines
AnyRule = Formula | Order | WholeTable | EmptyUnless | PositiveOnlyIf | Code | Within
WHOLE_TABLE = (Sorted, Unique, Determines)
"""Kinds of rules that compare rows with each other."""


class HeldRule(msgspec.Struct, frozen=True):
    """A rule with its counts in a table."""

    rule: AnyRule
    n_rows: Annotated[int, Meta(ge=0)] = 0  # number of rows to which the rule applies
    n_broken: Annotated[int, Meta(ge=0)] = 0  # number of rows that break the rule
    # Numbers, from 1, of the first 1,000 rows that break the rule.
    broken: tuple[Annotated[int, Meta(ge=1)], ...] = ()


class RuleColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A column of a rule, with the format of its cells; text if it has no format."""

    name: str
    numbers: NumberFormat | None = None
    dates: DateFormat | None = None
    typed: bool = False  # True for Parquet, Excel and frames, not text

    @property
    def format(self) -> ValueFormat | None:
        """The format of the column's cells; None for text."""
        return self.numbers or self.dates

    @property
    def is_plain(self) -> bool:
        """Whether all programs read the column's cells alike: typed cells, ISO dates, 1234.5."""
        if self.typed:
            return True
        if self.dates is not None:
            return not (self.dates.decided_by or self.dates.short_years)
        if self.numbers is None:
            return True
        return (
            replace(self.numbers, ambiguous=False, clock=False, marks=(), tokens=())
            == NumberFormat()
        )


@dataclass(frozen=True)
class HeldRules:
    """The rules of a table with their counts."""

    table: str  # name of the table
    n_rows: int
    columns: tuple[RuleColumn, ...]  # columns that the rules name
    rules: tuple[HeldRule, ...]
    id: str | None = None  # column that identifies rows
    notes: tuple[str, ...] = ()  # notes for readers
    hidden: tuple[str, ...] = ()  # columns whose values are not shown

    @cached_property
    def by_name(self) -> dict[str, RuleColumn]:
        """The columns by their names."""
        return {column.name: column for column in self.columns}


def cites_values(rule: AnyRule) -> tuple[str, ...]:
    """Return the columns whose values a rule quotes or determines."""
    if isinstance(rule, EmptyUnless | PositiveOnlyIf):
        return rule.columns[1:]
    return rule.columns if isinstance(rule, Formula | Within | Code) else ()


def without_values(rules: HeldRules) -> HeldRules:
    """Remove rules that quote values of hidden columns, and note their number."""
    kept = tuple(
        held for held in rules.rules if {*cites_values(held.rule)}.isdisjoint(rules.hidden)
    )
    n = len(rules.rules) - len(kept)
    left_out = "1 rule is" if n == 1 else f"{n:,} rules are"
    note = f"{left_out} left out for quoting values of hidden columns."
    return replace(rules, rules=kept, notes=(*rules.notes, *[note] * (n > 0)))
