"""Find the rows of a table to which a rule applies, and the rows in which the rule holds.

All kinds but those of `rule.WHOLE_TABLE` are checked row by row, so a table may come in parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from kpca_apps.novelty.columns.plan import ColumnPlan
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.rule import AnyRule, HeldRule, Rule
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import EXACT, Column, NumberFormat, ValueFormat

LISTED_ROWS = 1_000
_SPARSE = 8  # maximum ratio of possible codes to rows; beyond, codes are made consecutive
_LEFT_OUT = ("excluded", "label", "empty")


@dataclass(frozen=True)
class Cells:
    """The cells of a table in the formats in which rules read them."""

    table: Table
    formats: Mapping[str, ValueFormat | None]  # format by column; None for text
    replaced: Mapping[str, FloatArray] = field(default_factory=dict)  # new numbers (n,) by column
    shuffled: Mapping[str, IntArray] = field(default_factory=dict)  # row order by column

    @classmethod
    def of(cls, table: Table, plan: ColumnPlan) -> Cells:
        """Take formats from a plan; infer those of columns that the model does not use.

        Times of day begin at midnight, so that those of two columns can be compared.
        """
        written = [spec.format for spec in plan.specs]
        comma = any(isinstance(one, NumberFormat) and one.decimal == "," for one in written)
        formats = {
            spec.name: spec.format
            if spec.used or spec.role in _LEFT_OUT
            else _format(table.column[spec.name], comma)
            for spec in plan.specs
        }
        for name, one in formats.items():
            if isinstance(one, NumberFormat) and one.day_start:
                formats[name] = replace(one, day_start=0.0)
        return cls(table, formats)

    def __len__(self) -> int:
        return self.table.n_rows

    def take(self, names: Iterable[str]) -> Cells:
        """Return some of the columns."""
        return Cells(self.table, {name: self.formats[name] for name in names})

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers or dates."""
        return self.formats[name] is not None

    def values(self, name: str) -> FloatArray:
        """Return the numbers (n,) of a column, dates in seconds since 1970 UTC; NaN if missing."""
        if name in self.replaced:
            return self.replaced[name]
        values = self.table.column[name].read(self.formats[name]).values
        return values[self.shuffled[name]] if name in self.shuffled else values

    def texts(self, name: str) -> pl.Series:
        """Return the cells of a column as stripped text, null if missing."""
        texts = self.table.column[name].texts
        return texts.gather(self.shuffled[name]) if name in self.shuffled else texts

    def codes(self, name: str) -> IntArray:
        """Return codes (n,) from 0, equal for equal values of a column; -1 for missing values."""
        column = self.table.column[name]
        if self.is_number(name):
            readings = column.read(self.formats[name])
            known, rounded = ~np.isnan(readings.values), readings.rounded
            codes = np.full(len(known), -1, dtype=np.int64)
            codes[known] = np.unique(readings.values[known], return_inverse=True)[1]
            if rounded.any():
                codes[rounded] = len(codes) + column.levels.codes[rounded]
        else:
            codes = column.levels.codes.astype(np.int64)
        return codes[self.shuffled[name]] if name in self.shuffled else codes

    def present(self, name: str) -> BoolArray:
        """Return whether cells are not missing, (n,), even if they cannot be read."""
        return ~self.texts(name).is_null().to_numpy()


@dataclass(frozen=True)
class Checked:
    """The rows of a table to which a rule applies, and those in which it holds."""

    applies: BoolArray  # (n,)
    holds: BoolArray  # (n,), false where the rule does not apply

    @property
    def broken(self) -> BoolArray:
        """Rows that break the rule, (n,)."""
        return self.applies & ~self.holds

    @property
    def share(self) -> float:
        """Rows in which the rule holds, as a share of those to which it applies; 0 if none."""
        return float(self.holds.sum()) / max(int(self.applies.sum()), 1)

    def summary(self, rule: AnyRule) -> HeldRule:
        """Count the rows that a rule applies to and those that break it; list the first that do."""
        places = np.flatnonzero(self.broken)
        listed = (places[:LISTED_ROWS] + 1).tolist()
        return HeldRule(rule, int(self.applies.sum()), len(places), tuple(listed))


def check(rule: Rule, cells: Cells) -> Checked:
    """Check a rule on each row of a table that has its columns."""
    with np.errstate(all="ignore"):
        applies, holds = _check(rule, cells)
    return Checked(applies, applies & holds)


def code_forms(texts: pl.Series) -> pl.Series:
    """Replace each letter of texts by A and each digit by 9.

    >>> code_forms(pl.Series(["BX-1042", "é7", None])).to_list()
    ['AA-9999', 'A9', None]
    """
    return texts.str.replace_all(r"\pL", "A").str.replace_all("[0-9]", "9")


def half_a_day(format: ValueFormat | None, values: FloatArray) -> float:
    """Return twelve hours in the unit of a column of times of day (14:05, 1405); else 0."""
    if isinstance(format, NumberFormat) and format.clock:
        return 43_200.0
    known = values[~np.isnan(values)]
    is_time = (known >= 0) & (known <= 2400) & (known == np.floor(known)) & (known % 100 < 60)
    return 1200.0 if len(known) and is_time.all() and np.ptp(known) >= 1200 else 0.0


def join_codes(codes: Sequence[IntArray]) -> IntArray:
    """Return codes (n,), equal for rows equal in all given codes (n,); -1 if one is missing."""
    joined = codes[0]
    for more in codes[1:]:
        known = (joined >= 0) & (more >= 0)
        n_more = int(more.max(initial=0)) + 1
        size = (int(joined.max(initial=0)) + 1) * n_more
        joined = np.where(known, joined * n_more + more, -1)
        if size > _SPARSE * (len(joined) + 1):
            joined = np.unique(joined, return_inverse=True)[1] - (not known.all())
    return joined


def expected(rule: kinds.Linear | kinds.Product, cells: Cells) -> FloatArray:
    """Return the values that a rule expects in its first column, (n,); NaN if it does not apply."""
    others = [cells.values(name) for name in rule.columns[1:]]
    if isinstance(rule, kinds.Linear):
        terms = zip(rule.coefficients, others, strict=True)
        return rule.offset + sum((k * values for k, values in terms), np.zeros(len(cells)))
    if rule.per:
        others[-1] = 1.0 + rule.per * others[-1]
    due = np.full(len(cells), rule.factor)
    for exponent, values in zip(rule.exponents, others, strict=True):
        due = due * values**exponent
    return np.where(np.isfinite(due), due, np.nan)


def _check(rule: Rule, cells: Cells) -> tuple[BoolArray, BoolArray]:
    """Return the rows to which a rule applies, and in which of them the rule holds."""
    first, last = rule.columns[0], rule.columns[-1]
    match rule:
        case kinds.Equal():
            return _equal(rule, cells)
        case kinds.Order():
            low, high = cells.values(first), cells.values(last)
            known = ~np.isnan(low) & ~np.isnan(high)
            return known, low < high if rule.strict else low <= high
        case kinds.Linear():
            return _close(cells.values(first), expected(rule, cells), rule.tolerance)
        case kinds.Product():
            due = expected(rule, cells)
            tolerance = rule.tolerance + rule.relative * np.abs(due)
            return _close(cells.values(first), due, tolerance)
        case kinds.Sorted():
            return _in_order(cells.values(first), falling=rule.falling)
        case kinds.Unique():
            codes = join_codes([cells.codes(name) for name in rule.columns])
            return codes >= 0, _counts(codes) == 1
        case kinds.Determines():
            *keys, value = (cells.codes(name) for name in rule.columns)
            checked = settles(join_codes(keys), value)
            return checked.applies, checked.holds
        case kinds.EmptyUnless():
            is_other = ~cells.present(last)
            if rule.values:
                is_other = ~is_other & ~_one_of(cells.texts(last), rule.values)
            return is_other, ~cells.present(first)
        case kinds.PositiveOnlyIf():
            values, others = cells.values(first), rule.columns[1:]
            known = ~np.isnan(values) & np.all([cells.present(name) for name in others], axis=0)
            meant = np.any([_one_of(cells.texts(name), rule.values) for name in others], axis=0)
            return known & (rule.both | ~meant), (values > 0) == meant
        case kinds.Code():
            same = code_forms(cells.texts(first)) == rule.form
            return ~same.is_null().to_numpy(), same.fill_null(False).to_numpy()
        case kinds.Within():
            values = cells.values(first)
            lowest = -np.inf if rule.low is None else rule.low
            highest = np.inf if rule.high is None else rule.high
            return ~np.isnan(values), (values >= lowest) & (values <= highest)
    raise TypeError(f"no kind of rule: {rule!r}")


def _equal(rule: kinds.Equal, cells: Cells) -> tuple[BoolArray, BoolArray]:
    first, second = rule.columns
    if not (cells.is_number(first) and cells.is_number(second)):
        equal = cells.texts(first) == cells.texts(second)
        return ~equal.is_null().to_numpy(), equal.fill_null(False).to_numpy()
    values = cells.values(first)
    applies, holds = _close(values, cells.values(second), rule.tolerance)
    # Large integers, which floats round, are compared as text.
    if not rule.tolerance and (rounded := np.abs(values) >= EXACT).any():
        equal = cells.texts(first) == cells.texts(second)
        holds &= ~rounded | equal.fill_null(False).to_numpy()
    return applies, holds


def _in_order(values: FloatArray, *, falling: bool) -> tuple[BoolArray, BoolArray]:
    applies = ~np.isnan(values)
    known = -values[applies] if falling else values[applies]
    before = np.concatenate([[-np.inf], known[:-1]])
    after = np.concatenate([known[1:], [np.inf]])
    # A row is too high if it exceeds the next row, while the previous row does not exceed the next.
    high = (known > after) & (before <= after)
    low = (known < before) & ~np.concatenate([[False], high[:-1]])
    holds = np.zeros(len(values), dtype=np.bool_)
    holds[applies] = ~(high | low)
    return applies, holds


def settles(key: IntArray, value: IntArray) -> Checked:
    """Check that a row's value is that of over half of the rows with its key; skip unique keys."""
    known = (key >= 0) & (value >= 0)
    of_key = _counts(np.where(known, key, -1))
    applies = known & (of_key > 1)
    return Checked(applies, applies & (2 * _counts(join_codes([key, value])) > of_key))


def _close(
    values: FloatArray, due: FloatArray, tolerance: FloatArray | float
) -> tuple[BoolArray, BoolArray]:
    difference = np.abs(values - due)
    return ~np.isnan(difference), difference <= tolerance


def _counts(codes: IntArray) -> IntArray:
    """Return, for each row, the number of rows with its code; 0 for code -1."""
    counts = np.bincount(codes + 1)
    counts[0] = 0
    return counts[codes + 1]


def _one_of(texts: pl.Series, values: tuple[str, ...]) -> BoolArray:
    return texts.is_in(list(values)).fill_null(False).to_numpy()


def _format(column: Column, prefer_comma: bool) -> ValueFormat | None:
    format = column.inferred_format(prefer_comma)
    return None if format is None or column.read(format).rounded.any() else format
