"""The kinds of rule between columns: what each says of a row, as plain data.

A rule names its columns and what ties them; how it is found, checked and exported is said in the
other files of this room. Numbers are as the columns read them: dates in seconds since 1970 UTC.
"""

from __future__ import annotations

import msgspec


class Rule(msgspec.Struct, frozen=True, tag_field="kind", kw_only=True):
    """What holds between columns in nearly all rows of a table; rows that lack a value are free."""

    columns: tuple[str, ...]  # in the order the kind says


class Equal(Rule, tag="equal", frozen=True, kw_only=True):
    """Both columns hold the same number, or the same text."""

    tolerance: float = 0.0  # largest difference that is rounding


class Order(Rule, tag="order", frozen=True, kw_only=True):
    """The first is at most the second (start, end), or below it where `strict`."""

    strict: bool = False


class Sum(Rule, tag="sum", frozen=True, kw_only=True):
    """The first is the sum of the others (total, part, part): a difference is one rearranged."""

    tolerance: float = 0.0


class Product(Rule, tag="product", frozen=True, kw_only=True):
    """The first is the second times the third: a ratio is one rearranged."""

    tolerance: float = 0.0  # relative to the first


class Multiple(Rule, tag="multiple", frozen=True, kw_only=True):
    """The first is `factor` times the second, plus `offset`: other units, a constant apart."""

    factor: float = 1.0
    offset: float = 0.0
    tolerance: float = 0.0


class Power(Rule, tag="power", frozen=True, kw_only=True):
    """The first is `factor` times the second to the `exponent` (body mass, areas)."""

    factor: float
    exponent: float
    tolerance: float = 0.0  # relative to the first


class Sorted(Rule, tag="sorted", frozen=True, kw_only=True):
    """The column rises with the rows, or falls where `falling`."""

    falling: bool = False


class Unique(Rule, tag="unique", frozen=True, kw_only=True):
    """No two rows have the same values in these columns."""


class Determines(Rule, tag="determines", frozen=True, kw_only=True):
    """Rows equal in all columns but the last are equal in the last (ZIP code, city)."""


class EmptyUnless(Rule, tag="empty unless", frozen=True, kw_only=True):
    """The first holds a value only where the second is one of `values`."""

    values: tuple[str, ...]


class PositiveOnlyIf(Rule, tag="positive only if", frozen=True, kw_only=True):
    """The first is above 0 only where the second is one of `values` (pregnancies, sex)."""

    values: tuple[str, ...]


class Code(Rule, tag="code", frozen=True, kw_only=True):
    """The text has this form: A for a letter, 9 for a digit, other signs as they are."""

    form: str


class Within(Rule, tag="within", frozen=True, kw_only=True):
    """The number lies between bounds at which the column ends (a rate at 0 and 100)."""

    low: float | None = None
    high: float | None = None


AnyRule = (
    Equal
    | Order
    | Sum
    | Product
    | Multiple
    | Power
    | Sorted
    | Unique
    | Determines
    | EmptyUnless
    | PositiveOnlyIf
    | Code
    | Within
)


class HeldRule(msgspec.Struct, frozen=True):
    """A rule, and how it held in the table it was found in or checked on."""

    rule: AnyRule
    n_rows: int  # it says something of
    n_broken: int  # of these, that break it
    broken: tuple[int, ...] = ()  # the first 1,000 of them, from 1
