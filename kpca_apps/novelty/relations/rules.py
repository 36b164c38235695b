"""The rules of a table, with the formats in which their columns were read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import polars as pl

from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.checking import Cells
from kpca_apps.novelty.relations.rule import AnyRule, HeldRule
from kpca_apps.tables.values import DateFormat, NumberFormat, ValueFormat


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


def cites_values(rule: AnyRule) -> tuple[str, ...]:
    """Return the columns whose values a rule quotes or determines."""
    if isinstance(rule, kinds.EmptyUnless | kinds.PositiveOnlyIf):
        return rule.columns[1:]
    return rule.columns if isinstance(rule, kinds.Formula | kinds.Within | kinds.Code) else ()


def without_values(rules: HeldRules) -> HeldRules:
    """Remove rules that quote values of hidden columns, and note their number."""
    kept = tuple(
        held for held in rules.rules if {*cites_values(held.rule)}.isdisjoint(rules.hidden)
    )
    n = len(rules.rules) - len(kept)
    left_out = "1 rule is" if n == 1 else f"{n:,} rules are"
    note = f"{left_out} left out for quoting values of hidden columns."
    return replace(rules, rules=kept, notes=(*rules.notes, *[note] * (n > 0)))
