"""Rules as SQL that selects the rows that break them: a script for DuckDB, checks for dqx.

dqx of Databricks Labs applies YAML to Spark frames (`DQEngine`): each check is a ``sql_expression``
in Spark's SQL. Spark has no order of rows and no times of day; comments name the rules left out for
that reason. Texts are quoted so that JSON and YAML read them alike, and no name can end its quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kpca_apps.names import one_line
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.exports.cells import Dialect, code_pattern, why_left_out
from kpca_apps.novelty.relations.exports.conditions import Language
from kpca_apps.novelty.relations.rule import WHOLE_TABLE, AnyRule, HeldRules, RuleColumn
from kpca_apps.novelty.relations.sentences import phrase, sentence

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
_DQX_HEAD = """\
# Rules between the columns of {table}, for dqx of Databricks Labs (checks: a list of dicts).
"""
_DQX_CHECK = """\
# {}
- name: {}
  criticality: warn
  check:
    function: sql_expression
    arguments:
      expression: {}
      negate: true
      msg: {}
"""


def rules_as_sql(rules: HeldRules, table: str) -> str:
    """Write one query per rule, which selects the rows of a table that break this rule."""
    head = _HEAD.format(table=one_line(rules.table))
    if others := [one.name for one in rules.columns if one.dates and not one.is_plain]:
        names = ", ".join(one_line(name) for name in others)
        head += _NOT_PLAIN.format(columns=one_line(names, _LINE))
    sql, queries = _Sql(rules.by_name), ""
    for held in rules.rules:
        queries += f"\n-- {one_line(sentence(held, rules.by_name), _LINE)}\n"
        why = why_left_out(held.rule, rules.by_name)
        if isinstance(held.rule, kinds.Sorted) and "rowid" in map(str.lower, rules.by_name):
            why = "as a column is called rowid, which is the order of rows"
        if why:
            queries += f"-- left out, {why}\n"
        else:
            clause = "QUALIFY" if isinstance(held.rule, WHOLE_TABLE) else "WHERE"
            queries += f"SELECT * FROM {sql.name(table)}\n{clause} {sql.broken(held.rule)};\n"
    return f"{head}{sql.macros(queries)}{queries}"


def rules_as_dqx(rules: HeldRules) -> str:
    """Write the checks of rules as YAML, each below a comment with the rule's sentence."""
    parts = [_DQX_HEAD.format(table=one_line(rules.table))]
    for held in rules.rules:
        comment = one_line(sentence(held, rules.by_name), _LINE)
        if why := _why_not_in_spark(held.rule, rules.by_name):
            parts.append(f"# {comment}: left out, {why}\n")
        else:
            expression = _Spark(rules.by_name).broken(held.rule)
            name = one_line(phrase(held.rule, rules.by_name), _LINE)
            texts = map(_quoted, (name, expression, f"breaks: {name}"))
            parts.append(_DQX_CHECK.format(comment, *texts))
    text = "".join(parts)
    return text if "\n- " in text else f"{text}[]\n"


def _why_not_in_spark(rule: AnyRule, columns: Mapping[str, RuleColumn]) -> str:
    if isinstance(rule, kinds.Sorted):
        return "as the rows of Spark have no order"
    numbers = [columns[name].numbers for name in rule.columns]
    if any(format is not None and format.clock for format in numbers):
        return "as Spark has no times of day"
    return why_left_out(rule, columns)


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    return sign if sign.isprintable() else f"\\U{ord(sign):08x}"


class _Sql(Dialect, Language):
    """Conditions in SQL; window functions compare rows."""

    known, missing, equal = " IS NOT NULL", " IS NULL", "="
    both, either = "\n  AND ", " OR "
    absolute, power = "ABS", "POWER"

    def text(self, name: str) -> str:
        text = self.cell("text", self.name(name))
        if self.columns[name].typed and self.columns[name].numbers is not None:
            return self.replace(text, r"\A-?(0)\.0\z|\.0\z", r"\1")
        return text

    def number(self, name: str) -> str:
        column, cell, write = self.columns[name], self.name(name), self.cell
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
        text, literal = f"CAST({cell} AS {self.text_type})", self.literal
        marks = column.numbers.decimal + column.numbers.thousands
        plain = f"TRIM(REPLACE({text}, {literal(column.numbers.word)}, ''))"
        plain = f"TRANSLATE({plain}, {literal(marks)}, '.' || CHR(31))"
        is_text = f"UPPER(TYPEOF({cell})) = '{self.text_type}'"
        return f"CASE WHEN {is_text} THEN {plain} ELSE {text} END"

    def constant(self, value: float) -> str:
        """Write a number that the database reads as the same double."""
        is_whole = value == int(value) and abs(value) < 2**53
        text = str(int(value)) if is_whole else repr(value)
        # Long decimals are read exactly only with an exponent.
        is_long = sum(map(str.isdigit, text)) > _EXACT_DIGITS
        text = f"{text}e0" if is_long and "e" not in text else text
        return f"({text})" if value < 0 else text

    def none_of(self, name: str, values: Sequence[str]) -> str:
        return f"{self.text(name)} NOT IN ({', '.join(map(self.literal, values))})"

    def differ(self, text: str, other: str) -> str:
        return f"{text} <> {other}"

    def other_form(self, name: str, form: str) -> str:
        return f"NOT ({self.has_form(self.text(name), form)})"

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
            return self.cell("number_as_it_is", self.name(name))
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


def _count(alike: Sequence[str], known: str = "*") -> str:
    """Write SQL that counts, for each row, rows equal in all of `alike` and not NULL in `known`."""
    return f"COUNT({known}) OVER (PARTITION BY {', '.join(alike)})"


class _Spark(_Sql):
    """The SQL of Spark, whose patterns are Java's."""

    text_type, macro, both = "STRING", "", " AND "

    def name(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def literal(self, text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def replace(self, text: str, pattern: str, by: str) -> str:
        groups = re.sub(r"\\([0-9])", r"$\1", by)  # Java writes the group \1 as $1
        return f"REGEXP_REPLACE({text}, {self.literal(pattern)}, {self.literal(groups)})"

    def seconds(self, date: str) -> str:
        return f"CAST(CAST({date} AS TIMESTAMP) AS DOUBLE)"  # DOUBLE needs a TIMESTAMP

    def has_form(self, text: str, form: str) -> str:
        return f"{text} RLIKE " + self.literal(rf"\A{code_pattern(form)}\z")
