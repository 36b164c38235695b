r"""Rules as SQL: for each rule the condition that its broken rows meet.

What is written is standard SQL but for three things, which DuckDB has: `TRY_CAST` where cells of
text are read as numbers or dates, `rowid` for the order of rows, and ``\p{L}`` for a letter. A row
that lacks a value breaks no rule, as a comparison with NULL is never true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
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
from kpca_apps.novelty.relations.sentences import sentence
from kpca_apps.tables.values import MISSING_WORDS

_LINE = 1_000  # characters of a comment
# Larger numbers are no measurements, and NaN is none; to a database it is the largest number.
_LARGEST = "1e100"
_EXACT_DIGITS = 15  # of a decimal literal that any database reads as the same double
_HEAD = """\
-- Rules between the columns of {table}: each query selects the rows that break one.
-- Written for DuckDB. Where a cell is missing or cannot be read, a row breaks no rule.
"""
_NOT_PLAIN = """\
-- These columns are to be numbers or dates in the database, as the file writes them otherwise than
-- SQL does: {columns}.
"""


@dataclass(frozen=True)
class Dialect:
    """What databases write in ways of their own."""

    name: Callable[[str], str]  # quotes the name of a column or a table
    literal: Callable[[str], str]  # quotes a text
    double: str  # the type of floating-point numbers
    text: str  # the type of texts
    moment: Callable[[str], str]  # a column of dates or moments as one that has seconds
    seconds: Callable[[str], str]  # of a moment since 1970-01-01 UTC
    has_form: Callable[[str, str], str]  # whether a text has the form of a code
    both: str = " AND "  # between two conditions


def standard_name(name: str) -> str:
    """Quote a name as the standard has it."""
    return '"' + name.replace('"', '""') + '"'


def standard_literal(text: str) -> str:
    """Quote a text as the standard has it."""
    return "'" + text.replace("'", "''") + "'"


def code_pattern(form: str) -> str:
    r"""Return the regular expression of the form of a code.

    >>> print(code_pattern("AA-9999"))
    \p{L}{2}[-][0-9]{4}
    """
    parts = []
    for run in re.finditer(r"(.)\1*", form, re.DOTALL):
        sign, length = run[1], len(run[0])
        signs = {"A": r"\p{L}", "9": "[0-9]"}.get(sign) or _one_sign(sign)
        parts.append(signs + (f"{{{length}}}" if length > 1 else ""))
    return "".join(parts)


def _one_sign(sign: str) -> str:
    if sign in r"\^[]":
        return f"\\{sign}"
    return f"[{sign}]" if sign.isascii() else sign


STANDARD = Dialect(
    name=standard_name,
    literal=standard_literal,
    double="DOUBLE PRECISION",
    text="VARCHAR",
    moment=lambda cell: cell,
    seconds=lambda moment: f"EXTRACT(EPOCH FROM {moment})",
    has_form=lambda text, form: f"{text} SIMILAR TO {standard_literal(code_pattern(form))}",
    both="\n  AND ",
)


def rules_as_sql(rules: HeldRules, table: str) -> str:
    """Write a query for each rule that selects the rows that break it from a table."""
    parts = [_HEAD.format(table=one_line(rules.table))]
    if others := [column.name for column in rules.columns if not column.is_plain]:
        names = ", ".join(one_line(name) for name in others)
        parts.append(_NOT_PLAIN.format(columns=one_line(names, _LINE)))
    for held in rules.rules:
        said = one_line(sentence(held, rules.by_name), _LINE)
        if isinstance(held.rule, Sorted) and "rowid" in map(str.lower, rules.by_name):
            parts.append(f"\n-- {said}\n-- left out: a column is called rowid, as the order is\n")
            continue
        where = broken_rows(held.rule, rules.by_name, table)
        parts.append(f"\n-- {said}\nSELECT * FROM {standard_name(table)}\nWHERE {where};\n")
    return "".join(parts)


def broken_rows(rule: AnyRule, columns: Mapping[str, RuleColumn], table: str) -> str:
    """Write the condition that rows of a table meet if they break a rule, to follow WHERE."""
    writer = SqlWriter(columns, STANDARD)
    match rule:
        case Unique() | Determines():
            names = _aliases(rule.columns)
            query = writer.broken_keys(rule, names, standard_name(table))
            pairs = zip(names, map(writer.key, rule.columns), strict=True)
            found = "broken"
            while found in {name.lower() for name in rule.columns}:
                found += "_"
            same = [f"{found}.{name} = {key}" for name, key in pairs]
            return _lines("EXISTS (", [*_from("SELECT 1", query, found), *_where(same)])
        case Sorted():
            return _lines("rowid IN (", writer.broken_places(rule, standard_name(table)))
        case _:
            return writer.broken(rule)


def _aliases(columns: Sequence[str]) -> list[str]:
    """Name the columns of a query so that no column of the table has such a name."""
    prefix = "c"
    while any(name.lower().startswith(prefix) and name[-1:].isdigit() for name in columns):
        prefix += "c"
    return [f"{prefix}{k}" for k in range(1, len(columns) + 1)]


def _lines(opened: str, query: list[str]) -> str:
    return "\n".join([opened, *_indented(query), ")"])


@dataclass(frozen=True)
class SqlWriter:
    """Writes conditions on the columns of a table in a dialect."""

    columns: Mapping[str, RuleColumn]
    dialect: Dialect

    def broken(self, rule: AnyRule) -> str:
        """Write when a row breaks a rule that looks at one row at a time."""
        return self.dialect.both.join(self._conditions(rule))

    def _conditions(self, rule: AnyRule) -> list[str]:
        first, *others = rule.columns
        match rule:
            case Equal() if not all(self.columns[name].format for name in rule.columns):
                differ = f"{self.text(first)} <> {self.text(others[0])}"
                return [differ, *map(self.present, rule.columns)]
            case Equal() | Order() | Linear() | Product() | Within():
                return [broken(rule, self._language)]
            case EmptyUnless():
                other = [f"NOT ({self.present(others[0])})"]
                if rule.values:
                    other = self._is_none_of(others[0], rule.values)
                return [self.present(first), *other]
            case PositiveOnlyIf():
                above = broken(Within(columns=(first,), high=0.0), self._language)
                return [above, *self._is_none_of(others[0], rule.values)]
            case Code():
                has_form = self.dialect.has_form(self.text(first), rule.form)
                return [f"NOT ({has_form})", self.present(first)]
            case Unique() | Determines() | Sorted():
                raise TypeError("such a rule compares rows")
            case _:
                assert_never(rule)

    def broken_keys(self, rule: Unique | Determines, names: list[str], table: str) -> list[str]:
        """Write a query for the values of the columns in rows that break a rule, by new names."""
        listed = ", ".join(names)
        keys = (f"{self.key(of)} AS {name}" for of, name in zip(rule.columns, names, strict=True))
        cells = [
            f"SELECT {', '.join(keys)}",
            f"FROM {table}",
            *_where([*map(self.has_key, rule.columns)]),
        ]
        if isinstance(rule, Unique):
            repeated = f"GROUP BY {listed} HAVING COUNT(*) > 1"
            return [*_from(f"SELECT {listed}", cells, "cells"), repeated]
        n_of_key = f"SUM(COUNT(*)) OVER (PARTITION BY {', '.join(names[:-1])})"
        counts = f"SELECT {listed}, COUNT(*) AS n, {n_of_key} AS n_of_key"
        counted = [*_from(counts, cells, "cells"), f"GROUP BY {listed}"]
        return [*_from(f"SELECT {listed}", counted, "counted"), "WHERE 2 * n <= n_of_key"]

    def broken_places(self, rule: Sorted, table: str) -> list[str]:
        """Write a query for the rowid of rows that are not in order."""
        beyond, short = ("<", ">") if rule.falling else (">", "<")
        value = self.number(rule.columns[0])
        rows = [
            f"SELECT rowid AS place, {value} AS v,",
            f"  LAG({value}) OVER (ORDER BY rowid) AS above,",
            f"  LEAD({value}) OVER (ORDER BY rowid) AS below",
            f"FROM {table}",
            f"WHERE {self.has_key(rule.columns[0])}",
        ]
        # Without such a row, those above and below it are in order.
        is_high = f"v {beyond} below AND NOT COALESCE(above {beyond} below, FALSE)"
        high = _from(
            f"SELECT place, v, above, COALESCE({is_high}, FALSE) AS is_high", rows, "neighbours"
        )
        is_low = f"v {short} above AND NOT LAG(is_high, 1, FALSE) OVER (ORDER BY place)"
        judged = _from(f"SELECT place, is_high OR ({is_low}) AS is_broken", high, "ordered")
        return [*_from("SELECT place", judged, "judged"), "WHERE is_broken"]

    def value(self, name: str) -> str:
        """Write a column of numbers or dates as what is compared."""
        column, quoted = self.columns[name], self.dialect.name(name)
        if column.typed:
            return quoted
        cast = "TRY_CAST" if column.is_plain else "CAST"
        kind = self.dialect.double if column.dates is None else "TIMESTAMP"
        if column.numbers is not None and column.numbers.clock:
            kind = "TIME"
        return f"{cast}({quoted} AS {kind})"

    def number(self, name: str) -> str:
        """Write a column as a floating-point number; dates in seconds since 1970 UTC."""
        column, value = self.columns[name], self.value(name)
        if column.dates is not None:
            return self.dialect.seconds(self.dialect.moment(value) if column.typed else value)
        if column.numbers is not None and column.numbers.clock:
            return self.dialect.seconds(value)
        return f"CAST({value} AS {self.dialect.double})" if column.typed else value

    def text(self, name: str) -> str:
        """Write a column as stripped text."""
        return f"TRIM(CAST({self.dialect.name(name)} AS {self.dialect.text}))"

    def key(self, name: str) -> str:
        """Write a column as what rows are equal in."""
        return self.text(name) if self.columns[name].format is None else self.value(name)

    def has_key(self, name: str) -> str:
        """Write that a cell has what rows may be equal in."""
        if self.columns[name].format is None:
            return self.present(name)
        return self.known(name) or f"{self.value(name)} IS NOT NULL"

    def present(self, name: str) -> str:
        """Write that a cell holds anything; a word for missing is nothing."""
        column = self.columns[name]
        if column.typed and column.format is not None:
            return f"{self.dialect.name(name)} IS NOT NULL"
        words = ", ".join(map(self.dialect.literal, sorted(MISSING_WORDS)))
        return f"COALESCE(LOWER({self.text(name)}), '') NOT IN ({words})"

    def known(self, name: str) -> str:
        """Write that a number is one; "" for dates, which are NULL where they are not."""
        column = self.columns[name]
        is_number = column.numbers is not None and not column.numbers.clock
        return f"{self.value(name)} < {_LARGEST}" if is_number else ""

    def _is_none_of(self, name: str, values: Sequence[str]) -> list[str]:
        """Write that a cell holds something, but none of some values."""
        column, text, listed = self.columns[name], self.text(name), None
        if column.typed and column.numbers is not None and all(map(_is_number, values)):
            text, listed = self.value(name), ", ".join(values)
        listed = listed or ", ".join(map(self.dialect.literal, values))
        return [f"{text} NOT IN ({listed})", self.present(name)]

    @property
    def _language(self) -> Language:
        return Language(
            number=self.number,
            value=self.value,
            known=self.known,
            constant=_constant,
            absolute="ABS",
            power="POWER",
            both=self.dialect.both,
            either=" OR ",
        )


def _constant(value: float) -> str:
    """Write a number so that a database reads the same one."""
    text = str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
    # Without an exponent it is an exact decimal, of which long ones are not read exactly.
    is_long = sum(map(str.isdigit, text)) > _EXACT_DIGITS
    text = f"{text}e0" if is_long and "e" not in text else text
    return f"({text})" if value < 0 else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return re.fullmatch(r"[0-9.eE+-]+", text) is not None


def _from(select: str, query: list[str], name: str) -> list[str]:
    """Write a query on another, by lines."""
    return [f"{select} FROM (", *_indented(query), f") AS {name}"]


def _where(conditions: list[str]) -> list[str]:
    """Write conditions that all hold, by lines."""
    first, *others = conditions
    return [f"WHERE {first}", *(f"  AND {other}" for other in others)]


def _indented(lines: list[str]) -> list[str]:
    """Indent lines; a name with a line break in it stays as it is."""
    return [f"  {line}" for line in lines]
