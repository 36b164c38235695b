"""The kinds of rule between columns: what each says of a row, as plain data.

A rule names its columns and what ties them; how it is found, checked and exported is said in the
other files of this room. Numbers are as the columns read them: dates in seconds since 1970 UTC.
"""

from __future__ import annotations

import msgspec


class Rule(msgspec.Struct, frozen=True, tag_field="kind", kw_only=True, forbid_unknown_fields=True):
    """What holds between columns in nearly all rows of a table; rows that lack a value are free."""

    columns: tuple[str, ...]  # in the order the kind says


class Equal(Rule, tag="equal", frozen=True, kw_only=True):
    """Both columns hold the same number, or the same text."""

    tolerance: float = 0.0  # largest difference that is rounding


class Order(Rule, tag="order", frozen=True, kw_only=True):
    """The first is at most the second (start, end), or below it where `strict`."""

    strict: bool = False


class Linear(Rule, tag="linear", frozen=True, kw_only=True):
    """The first is `offset` plus the others times their coefficients, within `tolerance`.

    Sums, differences, other units, a constant apart: total = part + part; days = (end - start) in
    days, whose coefficients are 1 / 86,400 and -1 / 86,400.
    """

    coefficients: tuple[float, ...]  # one for each column but the first
    offset: float = 0.0
    tolerance: float = 0.0


class Product(Rule, tag="product", frozen=True, kw_only=True):
    """The first is `factor` times the others to their exponents.

    Products, ratios and powers: price x number, weight / height^2. Where `per` is not 0, the last
    column p counts as 1 + per p: a discount (-1, or -0.01 of per cent) or a rate of tax. The first
    may differ from it by `tolerance` plus `relative` times its size. Rows in which it is no number
    (x / 0) are free.
    """

    exponents: tuple[float, ...]  # one for each column but the first
    factor: float = 1.0
    per: float = 0.0
    tolerance: float = 0.0
    relative: float = 0.0


class Sorted(Rule, tag="sorted", frozen=True, kw_only=True):
    """The column never falls from row to row, or never rises where `falling`.

    Of two neighbours in the wrong order, the first breaks it if the row before it and the second
    are in order, and else the second; rows without a value are passed over.
    """

    falling: bool = False


class Unique(Rule, tag="unique", frozen=True, kw_only=True):
    """No two rows have the same values in these columns; all that do break it."""


class Determines(Rule, tag="determines", frozen=True, kw_only=True):
    """Rows equal in all columns but the last are equal in the last (ZIP code, city).

    It says something of rows whose key is in two rows or more; those break it whose value is not
    that of more than half of these.
    """


class EmptyUnless(Rule, tag="empty unless", frozen=True, kw_only=True):
    """The first holds a value only where the second is one of `values`, or holds any if none."""

    values: tuple[str, ...] = ()


class PositiveOnlyIf(Rule, tag="positive only if", frozen=True, kw_only=True):
    """The first is above 0 only where one of the others is one of `values` (pregnancies, sex).

    With `both`, it is above 0 wherever one of them is, too: failed, and the causes of failures.
    """

    values: tuple[str, ...]
    both: bool = False


class Code(Rule, tag="code", frozen=True, kw_only=True):
    """The text has this form: A for a letter, 9 for a digit 0 to 9, other signs as they are."""

    form: str


class Within(Rule, tag="within", frozen=True, kw_only=True):
    """The number lies between bounds at which the column ends (a rate at 0 and 100)."""

    low: float | None = None
    high: float | None = None


AnyRule = (
    Equal
    | Order
    | Linear
    | Product
    | Sorted
    | Unique
    | Determines
    | EmptyUnless
    | PositiveOnlyIf
    | Code
    | Within
)


WHOLE_TABLE = (Sorted, Unique, Determines)
"""Kinds of rule that compare rows with each other."""


class HeldRule(msgspec.Struct, frozen=True):
    """A rule, and how it held in the table it was found in or checked on."""

    rule: AnyRule
    n_rows: int  # it says something of
    n_broken: int  # of these, that break it
    broken: tuple[int, ...] = ()  # the first 1,000 of them, from 1
