"""Rules as SQL for DuckDB: a query for each rule selects the rows that break it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kpca_apps.names import one_line
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.exports.cells import Dialect, why_left_out
from kpca_apps.novelty.relations.exports.conditions import Language, broken
from kpca_apps.novelty.relations.rule import WHOLE_TABLE, HeldRules, RuleColumn
from kpca_apps.novelty.relations.sentences import sentence

_LINE = 1_000  # maximum number of characters in a comment
_EXACT_DIGITS = 15  # maximum number of digits that all databases read as the same double
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
    """Quote a name in standard SQL."""
    return '"' + name.replace('"', '""') + '"'


def standard_literal(text: str) -> str:
    """Quote a text in standard SQL."""
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
    both="\n  AND ",
    macro="kpca_",
)


def rules_as_sql(rules: HeldRules, table: str) -> str:
    """Write one query per rule, which selects the rows of a table that break this rule."""
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
            broken_rows = broken(held.rule, sql_language(rules.by_name, DUCKDB))
            clause = "QUALIFY" if isinstance(held.rule, WHOLE_TABLE) else "WHERE"
            queries += f"SELECT * FROM {standard_name(table)}\n{clause} {broken_rows};\n"
    return f"{head}{DUCKDB.macros(queries)}{queries}"


def sql_language(columns: Mapping[str, RuleColumn], dialect: Dialect) -> Language:
    """Return how conditions are written in an SQL dialect; window functions compare rows."""
    sql = _Sql(columns, dialect)
    return Language(
        columns=columns,
        number=sql.number,
        text=sql.text,
        constant=_constant,
        none_of=lambda name, values: (
            f"{sql.text(name)} NOT IN ({', '.join(map(dialect.literal, values))})"
        ),
        differ=lambda text, other: f"{text} <> {other}",
        other_form=lambda name, form: f"NOT ({dialect.has_form(sql.text(name), form)})",
        of_table=sql.of_table,
        known=" IS NOT NULL",
        missing=" IS NULL",
        absolute="ABS",
        power="POWER",
        both=dialect.both,
        either=" OR ",
        equal="=",
    )


@dataclass(frozen=True)
class _Sql:
    columns: Mapping[str, RuleColumn]
    dialect: Dialect

    def text(self, name: str) -> str:
        text = self.dialect.cell("text", self.dialect.name(name))
        if self.columns[name].typed and self.columns[name].numbers is not None:
            return self.dialect.replace(text, r"\A-?(0)\.0\z|\.0\z", r"\1")
        return text

    def number(self, name: str) -> str:
        column, cell, write = self.columns[name], self.dialect.name(name), self.dialect.cell
        if column.dates is not None:
            if column.typed:
                return write("seconds", cell)
            if column.is_plain:
                return write("date_of_text", cell)
            return write("seconds", f"TRY_CAST({cell} AS TIMESTAMP)")
        if column.numbers is None or column.typed:
            return write("number", cell)
        if column.numbers.clock:
            return write("clock_of_text", cell)
        return write("number_of_text", cell if column.is_plain else self._marked(cell, column))

    def _marked(self, cell: str, column: RuleColumn) -> str:
        """Convert the decimal mark of a text to a point, its thousands mark to CHR(31)."""
        assert column.numbers is not None
        text, literal = f"CAST({cell} AS {self.dialect.text})", self.dialect.literal
        marks = column.numbers.decimal + column.numbers.thousands
        plain = f"TRIM(REPLACE({text}, {literal(column.numbers.word)}, ''))"
        plain = f"TRANSLATE({plain}, {literal(marks)}, '.' || CHR(31))"
        is_text = f"UPPER(TYPEOF({cell})) = '{self.dialect.text}'"
        return f"CASE WHEN {is_text} THEN {plain} ELSE {text} END"

    def of_table(self, rule: kinds.WholeTable) -> list[str]:
        if isinstance(rule, kinds.Sorted):
            return [self._out_of_order(rule)]
        cells = [*map(self._key, rule.columns)]
        known, n_alike = [f"{cell} IS NOT NULL" for cell in cells], _count(cells)
        if isinstance(rule, kinds.Unique):
            return [*known, f"{n_alike} > 1"]
        n_key = _count(cells[:-1], cells[-1])
        return [*known, f"2 * {n_alike} <= {n_key}"]

    def _key(self, name: str) -> str:
        """Write a column for comparison between rows, without rounding integers."""
        column = self.columns[name]
        if column.format is None:
            return self.text(name)
        if column.typed and column.numbers is not None and not column.numbers.clock:
            return self.dialect.cell("number_as_it_is", self.dialect.name(name))
        return self.number(name)

    def _out_of_order(self, rule: kinds.Sorted) -> str:
        """Write the condition under which a row is out of order, as `Sorted` defines it."""
        beyond, short = ("<", ">") if rule.falling else (">", "<")
        value = self.number(rule.columns[0])
        above, second_above, below = (
            f"{of} IGNORE NULLS) OVER (ORDER BY rowid)"
            for of in (f"LAG({value}", f"LAG({value}, 2", f"LEAD({value}")
        )
        is_high = f"{value} {beyond} {below}\n  AND NOT COALESCE({above} {beyond} {below}, FALSE)"
        is_low = f"{value} {short} {above}\n  AND {second_above} {beyond} {value}"
        return f"({is_high})\n  OR ({is_low})"


def _constant(value: float) -> str:
    """Write a number that the database reads as the same double."""
    is_whole = value == int(value) and abs(value) < 2**53
    text = str(int(value)) if is_whole else repr(value)
    # Long decimals are read exactly only with an exponent.
    is_long = sum(map(str.isdigit, text)) > _EXACT_DIGITS
    text = f"{text}e0" if is_long and "e" not in text else text
    return f"({text})" if value < 0 else text


def _count(alike: Sequence[str], known: str = "*") -> str:
    """Write SQL that counts, for each row, rows equal in all of `alike` and not NULL in `known`."""
    return f"COUNT({known}) OVER (PARTITION BY {', '.join(alike)})"
