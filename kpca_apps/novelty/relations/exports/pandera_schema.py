"""Rules as a schema of pandera: Python source that validates data frames of pandas.

The source stands alone: it reads cells of text by helpers of its own, and names of columns stand in
it as literals, so that no name can run anything. A row that lacks a value breaks no rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from kpca_apps.names import one_line
from kpca_apps.novelty.relations.exports.formulas import Language, broken
from kpca_apps.novelty.relations.rule import (
    AnyRule,
    Code,
    Determines,
    EmptyUnless,
    Equal,
    Linear,
    Order,
    PositiveOnlyIf,
    Product,
    Sorted,
    Unique,
    Within,
)
from kpca_apps.novelty.relations.rules import HeldRules, RuleColumn
from kpca_apps.novelty.relations.sentences import phrase, sentence
from kpca_apps.tables.values import MISSING_WORDS, NumberFormat

_LINE = 1_000  # characters of a comment
_HEAD = '''\
# Rules between the columns of {table}, for pandera (pip install "pandera[pandas]").
#
# schema.validate(frame, lazy=True) raises pandera.errors.SchemaErrors where a row breaks a rule;
# its failure_cases name the rule and the row.
import numpy as np
import pandas as pd
import pandera.pandas as pa

MISSING = {missing}


def texts(cells):
    """Return cells as stripped text, NA where they are missing."""
    written = cells.astype("string").str.strip()
    if pd.api.types.is_float_dtype(cells.dtype):
        written = written.str.removesuffix(".0")
    return written.mask(written.str.lower().isin(MISSING))


def numbers(cells, decimal=".", thousands="", unit=""):
    """Return cells as numbers, NaN where they are none."""
    if not pd.api.types.is_numeric_dtype(cells.dtype):
        cells = texts(cells)
        if unit:
            cells = cells.str.replace(unit, "", regex=True).str.strip()
        if thousands:
            cells = cells.str.replace(thousands, "", regex=False)
        cells = pd.to_numeric(cells.str.replace(decimal, ".", regex=False), errors="coerce")
    read = cells.astype("Float64").astype("float64")
    return read.where(read.abs() <= 1e100)


def dates(cells, dayfirst=False):
    """Return dates in seconds since 1970 UTC, NaN where they are none."""
    if not pd.api.types.is_datetime64_any_dtype(cells.dtype):
        cells = texts(cells)
    read = pd.to_datetime(cells, errors="coerce", utc=True, format="mixed", dayfirst=dayfirst)
    # Not Timestamp(0), whose nanoseconds reach from 1678 to 2262 only.
    return (read - pd.Timestamp("1970-01-01", tz="UTC")) / pd.Timedelta(seconds=1)


def clock(cells):
    """Return times of day in seconds, NaN where they are none."""
    written = texts(cells)
    written = written.where(written.str.count(":") > 1, written + ":00")
    return pd.to_timedelta(written, errors="coerce") / pd.Timedelta(seconds=1)


def form(cells):
    """Return texts with A for each letter and 9 for each digit 0 to 9."""
    signs = dict.fromkeys("0123456789", "9")
    written = texts(cells).map(
        lambda text: "".join("A" if x.isalpha() else signs.get(x, x) for x in text),
        na_action="ignore",
    )
    return written.astype("string")


def differ(cells, others):
    """Return whether neither is missing and they differ."""
    return (cells != others).fillna(False).astype(bool)


def keys(*columns):
    """Return a number for each row, equal where rows are equal; -1 where a cell is missing."""
    numbered = [pd.factorize(column)[0].astype("int64") for column in columns]
    known = np.all([codes >= 0 for codes in numbered], axis=0)
    row = np.unique(np.column_stack(numbered), axis=0, return_inverse=True)[1].reshape(-1)
    return np.where(known, row, -1)


def counts(row):
    """Return for each row how many have its number."""
    return np.bincount(row + 1)[row + 1]


def unique(*columns):
    """Return whether a row is the only one with its values."""
    row = keys(*columns)
    return pd.Series((row < 0) | (counts(row) == 1), index=columns[0].index)


def determines(*columns):
    """Return whether the last column has the value of more than half of the rows alike."""
    row = keys(*columns)
    key = np.where(row < 0, -1, keys(*columns[:-1]))
    return pd.Series((row < 0) | (2 * counts(row) > counts(key)), index=columns[0].index)


def in_order(cells):
    """Return whether a row does not stand before the one above it."""
    places = np.flatnonzero(cells.notna())
    known = cells.to_numpy()[places]
    before, after = np.append(-np.inf, known[:-1]), np.append(known[1:], np.inf)
    high = (known > after) & (before <= after)
    low = (known < before) & ~np.append(False, high[:-1])
    holds = np.full(len(cells), True)
    holds[places] = ~(high | low)
    return pd.Series(holds, index=cells.index)


schema = pa.DataFrameSchema(
    checks=[
'''
_CHECK = """\
        # {said}
        pa.Check(
            lambda df: {holds},
            name={name},
            error={name},
            ignore_na=False,
        ),
"""
_TAIL = """\
    ],
)
"""


def rules_as_pandera(rules: HeldRules) -> str:
    """Write Python source whose `schema` is a ``pandera.pandas.DataFrameSchema``."""
    missing = ascii(sorted(MISSING_WORDS))
    parts = [_HEAD.format(table=one_line(rules.table), missing=missing)]
    for held in rules.rules:
        said = one_line(sentence(held, rules.by_name), _LINE)
        name = ascii(phrase(held.rule, rules.by_name))
        holds = _Writer(rules.by_name).holds(held.rule)
        parts.append(_CHECK.format(said=said, name=name, holds=holds))
    return "".join([*parts, _TAIL])


@dataclass(frozen=True)
class _Writer:
    """Writes conditions on a data frame called ``df``."""

    columns: Mapping[str, RuleColumn]

    def holds(self, rule: AnyRule) -> str:
        """Write which rows do not break a rule."""
        match rule:
            case Unique():
                return f"unique({', '.join(map(self.key, rule.columns))})"
            case Determines():
                return f"determines({', '.join(map(self.key, rule.columns))})"
            case Sorted():
                return f"in_order({'-' * rule.falling}{self.number(rule.columns[0])})"
            case Equal() if not all(self.columns[name].format for name in rule.columns):
                first, second = map(self.text, rule.columns)
                return f"~differ({first}, {second})"
            case Equal() | Order() | Linear() | Product() | Within():
                return f"~({broken(rule, self._language)})"
            case EmptyUnless():
                first, second = map(self.text, rule.columns)
                other = f"{second}.isna()"
                if rule.values:
                    other = self._is_none_of(rule.columns[1], rule.values)
                return f"~({first}.notna() & {other})"
            case PositiveOnlyIf():
                above = f"({self.number(rule.columns[0])} > 0)"
                return f"~({above} & {self._is_none_of(rule.columns[1], rule.values)})"
            case Code():
                return f"~differ(form({_cells(rule.columns[0])}), {rule.form!a})"
            case _:
                assert_never(rule)

    def number(self, name: str) -> str:
        """Write a column as numbers; dates in seconds since 1970 UTC."""
        column, cells = self.columns[name], _cells(name)
        if column.dates is not None:
            return f"dates({cells}{', dayfirst=True' * column.dates.day_first})"
        if column.numbers is not None and column.numbers.clock:
            return f"clock({cells})"
        return f"numbers({', '.join([cells, *_marks(column.numbers)])})"

    def text(self, name: str) -> str:
        """Write a column as stripped text."""
        return f"texts({_cells(name)})"

    def key(self, name: str) -> str:
        """Write a column as what rows are equal in."""
        return self.text(name) if self.columns[name].format is None else self.number(name)

    def _is_none_of(self, name: str, values: tuple[str, ...]) -> str:
        text = self.text(name)
        return f"{text}.notna() & ~{text}.isin({_list(values)})"

    @property
    def _language(self) -> Language:
        return Language(
            number=self.number,
            value=self.number,
            known=lambda name: "",
            constant=repr,
            absolute="np.abs",
            power="np.power",
            both=" & ",
            either=" | ",
        )


def _cells(name: str) -> str:
    return f"df[{name!a}]"


def _list(values: tuple[str, ...]) -> str:
    return f"[{', '.join(map(ascii, values))}]"


def _marks(format: NumberFormat | None) -> list[str]:
    """Write how numbers stand in text, where not as Python writes them."""
    if format is None:
        return []
    units = [re.escape(unit) for unit in (*format.units, format.word) if unit]
    marks = {"decimal": format.decimal, "thousands": format.thousands, "unit": "|".join(units)}
    plain = {"decimal": "."}
    return [f"{key}={x!a}" for key, x in marks.items() if x != plain.get(key, "")]
