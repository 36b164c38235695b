"""Rules as SQL: for each rule the condition that its broken rows meet.

Written for DuckDB, whose `rowid` is the order of rows. What a cell is stands in `cells`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from kpca_apps.names import one_line
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.exports.cells import Dialect, SqlCells, why_left_out
from kpca_apps.novelty.relations.exports.formulas import Language, broken
from kpca_apps.novelty.relations.rule import WHOLE_TABLE, AnyRule
from kpca_apps.novelty.relations.rules import HeldRules
from kpca_apps.novelty.relations.sentences import sentence

_LINE = 1_000  # characters of a comment
_EXACT_DIGITS = 15  # of a decimal literal that any database reads as the same double
_HEAD = """\
-- Rules between the columns of {table}: each query selects the rows that break one.
-- Written for DuckDB; the macros read cells. Where one is missing or cannot be read, a row breaks
-- no rule. Dates in texts are read where the year comes first, times as 14:05 or 14:05:30.
"""
_NOT_PLAIN = """\
-- These columns are to be dates in the database, as the file writes them otherwise than SQL does:
-- {columns}.
"""


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
        itself = rf"\{sign}" if sign in r"\^[]" else f"[{sign}]" if sign.isascii() else sign
        signs = {"A": r"\p{L}", "9": "[0-9]"}.get(sign, itself)
        parts.append(signs + (f"{{{length}}}" if length > 1 else ""))
    return "".join(parts)


DUCKDB = Dialect(
    name=standard_name,
    literal=standard_literal,
    text="VARCHAR",
    replaced=lambda text, pattern, by: f"REGEXP_REPLACE({text}, {pattern}, {by}, 'g')",
    seconds=lambda date: f"CASE WHEN ISFINITE({date}) THEN EXTRACT(EPOCH FROM {date}) END",
    has_form=lambda text, form: f"{text} SIMILAR TO {standard_literal(code_pattern(form))}",
    macro="kpca_",
    both="\n  AND ",
)


def rules_as_sql(rules: HeldRules, table: str) -> str:
    """Write a query for each rule that selects the rows that break it from a table."""
    head = _HEAD.format(table=one_line(rules.table))
    if others := [one.name for one in rules.columns if one.dates and not one.is_plain]:
        names = ", ".join(one_line(name) for name in others)
        head += _NOT_PLAIN.format(columns=one_line(names, _LINE))
    queries = ""
    for held in rules.rules:
        queries += f"\n-- {one_line(sentence(held, rules.by_name), _LINE)}\n"
        why = why_left_out(held.rule, rules.by_name)
        if isinstance(held.rule, kinds.Sorted) and "rowid" in map(str.lower, rules.by_name):
            why = "as a column is called rowid, which is the order of rows"
        if why:
            queries += f"-- left out, {why}\n"
        else:
            broken_rows = SqlWriter(SqlCells(rules.by_name, DUCKDB)).broken(held.rule)
            clause = "QUALIFY" if isinstance(held.rule, WHOLE_TABLE) else "WHERE"
            queries += f"SELECT * FROM {standard_name(table)}\n{clause} {broken_rows};\n"
    return f"{head}{DUCKDB.macros(queries)}{queries}"


@dataclass(frozen=True)
class SqlWriter:
    """Writes conditions on the cells of a table."""

    cells: SqlCells

    def broken(self, rule: AnyRule) -> str:
        """Write when a row breaks a rule; rows are compared by windows."""
        return self.cells.dialect.both.join(self._conditions(rule))

    def _conditions(self, rule: AnyRule) -> list[str]:
        first, *others = rule.columns
        text, columns = self.cells.text, self.cells.columns
        match rule:
            case kinds.Equal() if not all(columns[name].format for name in rule.columns):
                return [f"{text(first)} <> {text(others[0])}"]
            case kinds.Equal() | kinds.Order() | kinds.Linear() | kinds.Product() | kinds.Within():
                return [broken(rule, self._language)]
            case kinds.EmptyUnless():
                other = f"{text(others[0])} IS NULL"
                if rule.values:
                    other = self._is_none_of(others[0], rule.values)
                return [f"{text(first)} IS NOT NULL", other]
            case kinds.PositiveOnlyIf():
                above = broken(kinds.Within(columns=(first,), high=0.0), self._language)
                none = [self._is_none_of(name, rule.values) for name in others]
                if not rule.both:
                    return [above, *none]
                known = [f"{text(name)} IS NOT NULL" for name in others]
                return [*known, f"({above}) <> NOT ({' AND '.join(none)})"]
            case kinds.Code():
                return [f"NOT ({self.cells.dialect.has_form(text(first), rule.form)})"]
            case kinds.Unique() | kinds.Determines():
                return self._repeated(rule)
            case kinds.Sorted():
                return [self._out_of_order(rule)]
            case _:
                assert_never(rule)

    def _repeated(self, rule: kinds.Unique | kinds.Determines) -> list[str]:
        cells = [*map(self.cells.key, rule.columns)]
        known, alike = [f"{cell} IS NOT NULL" for cell in cells], _count("*", cells)
        if isinstance(rule, kinds.Unique):
            return [*known, f"{alike} > 1"]
        return [*known, f"2 * {alike} <= {_count(cells[-1], cells[:-1])}"]

    def _out_of_order(self, rule: kinds.Sorted) -> str:
        """Write that a row is not in order; without it, those above and below it are."""
        beyond, short = ("<", ">") if rule.falling else (">", "<")
        value = self.cells.number(rule.columns[0])
        above, second_above, below = (
            f"{of} IGNORE NULLS) OVER (ORDER BY rowid)"
            for of in (f"LAG({value}", f"LAG({value}, 2", f"LEAD({value}")
        )
        is_high = f"{value} {beyond} {below}\n  AND NOT COALESCE({above} {beyond} {below}, FALSE)"
        is_low = f"{value} {short} {above}\n  AND {second_above} {beyond} {value}"
        return f"({is_high})\n  OR ({is_low})"

    def _is_none_of(self, name: str, values: Sequence[str]) -> str:
        """Write that a cell holds something, but none of some values."""
        listed = ", ".join(map(self.cells.dialect.literal, values))
        return f"{self.cells.text(name)} NOT IN ({listed})"

    @property
    def _language(self) -> Language:
        return Language(
            number=self.cells.number,
            constant=_constant,
            absolute="ABS",
            power="POWER",
            both=self.cells.dialect.both,
            either=" OR ",
        )


def _constant(value: float) -> str:
    """Write a number so that a database reads the same one."""
    text = str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
    # Without an exponent it is an exact decimal, of which long ones are not read exactly.
    is_long = sum(map(str.isdigit, text)) > _EXACT_DIGITS
    text = f"{text}e0" if is_long and "e" not in text else text
    return f"({text})" if value < 0 else text


def _count(what: str, alike: Sequence[str]) -> str:
    """Count in rows that are equal in some cells."""
    return f"COUNT({what}) OVER (PARTITION BY {', '.join(alike)})"
