r"""A cell in SQL: its text, number or date as `tables.values` reads it, or NULL.

Comparisons with NULL are never true, so a row with a missing cell breaks no rule. Patterns are in
the common syntax of RE2 (DuckDB) and Java (Spark).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from kpca_apps.names import one_line
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.rule import AnyRule, RuleColumn
from kpca_apps.tables.values import DASHES, MISSING_WORDS, UNIT

_SPACE = r"[\t-\r\x{85}\p{Z}]"
_WORDS = "|".join(re.escape(word) for word in sorted(MISSING_WORDS) if word)
_MISSING = rf"(?i)\A{_SPACE}*(?:{_WORDS}){_SPACE}*\z|\A{_SPACE}+|{_SPACE}+\z"

# Patterns of a number in which white space is replaced by " ", dashes by "-" and units by "%". In
# columns with nonstandard marks, CHR(31) separates thousands.
_GROUP = r"\x{1F}"
_PLAIN = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_SEPARATED = (
    rf"(?:[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})+\.[0-9]*"
    rf"|[1-9][0-9]{{0,2}}(?:{_GROUP}[0-9]{{3}})+(?:\.[0-9]*)?)"
)
_SIGNED = rf"(?:[+-]|[+-]? *% *|% *[+-])?(?:{_PLAIN}(?:[eE][+-]?[0-9]+)?|{_SEPARATED})(?: *%)?"
# An amount in brackets is negative (`tables.values.BRACKETS`), with or without a unit.
_WITH_UNIT = rf"(?:{_PLAIN}(?:[eE][+]?[0-9]+)?|{_SEPARATED})"
_IN_BRACKETS = (
    r"(?:% *)?\( *(?:[0-9]+|[0-9]*\.[0-9]+|[1-9][0-9]{0,2}(?:,[0-9]{3})+\.[0-9]+"
    rf"| *% *{_WITH_UNIT}(?: *%)?|{_WITH_UNIT} *%) *\)(?: *%)?"
)
_NUMBER = rf"\A *(?:{_SIGNED}|{_IN_BRACKETS}) *\z"
_DATE = (
    r"\A(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])[-/.][0-9]{1,2}[-/.][0-9]{1,2}"
    r"(?:[T ](?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?Z?)?\z"
)
_CLOCK = r"\A[0-9]{1,3}:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?\z"
# Numbers that all programs write in the same way, except for the ".0" of integers.
_WRITTEN_ALIKE = re.compile(r"-?(0|0\.(?!0000)[0-9]*[1-9]|[1-9][0-9]{0,14}(\.[0-9]*[1-9])?)")


class Dialect:
    """The syntax of a database: DuckDB's, unless a subclass says otherwise."""

    text_type = "VARCHAR"
    macro = "kpca_"  # prefix of macros for cells; if empty, cells are written in full

    def name(self, name: str) -> str:
        """Quote the name of a column or table."""
        return '"' + name.replace('"', '""') + '"'

    def literal(self, text: str) -> str:
        """Quote a text."""
        return "'" + text.replace("'", "''") + "'"

    def replace(self, text: str, pattern: str, by: str) -> str:
        """Write a text with all matches of a pattern replaced."""
        return f"REGEXP_REPLACE({text}, {self.literal(pattern)}, {self.literal(by)}, 'g')"

    def whole(self, text: str, pattern: str) -> str:
        """Write the match of a pattern in a text; empty without a match."""
        return f"REGEXP_EXTRACT({text}, {self.literal(pattern)}, 0)"

    def seconds(self, date: str) -> str:
        """Convert a date or moment to seconds since 1970-01-01 UTC."""
        return f"CASE WHEN ISFINITE({date}) THEN EXTRACT(EPOCH FROM {date}) END"

    def has_form(self, text: str, form: str) -> str:
        """Test whether a text has the form of a code."""
        return f"{text} SIMILAR TO {self.literal(code_pattern(form))}"

    def cell(self, kind: str, cell: str) -> str:
        """Write an expression that reads a cell in one of the ways that `CELLS` lists."""
        return f"{self.macro}{kind}({cell})" if self.macro else CELLS[kind](self, cell)

    def macros(self, queries: str) -> str:
        """Write the macros that some queries call, in the order of their definition."""
        text = ""
        for kind, body in reversed(CELLS.items()):
            called = f"{self.macro}{kind}("
            if called in queries + text:
                macro = f"CREATE OR REPLACE TEMP MACRO {called}cell) AS"
                text = f"{macro}\n  {body(self, 'cell')};\n{text}"
        return text


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


def _text(dialect: Dialect, cell: str) -> str:
    written = f"CAST({cell} AS {dialect.text_type})"
    return f"NULLIF({dialect.replace(written, _MISSING, '')}, '')"


def _number(dialect: Dialect, cell: str) -> str:
    # Databases sort NaN above all numbers, so NaN becomes NULL, too.
    number = f"CAST({cell} AS DOUBLE)"
    return f"CASE WHEN {number} BETWEEN -1e100 AND 1e100 THEN {number} END"


def _number_of_text(dialect: Dialect, cell: str) -> str:
    text = f"CAST({cell} AS {dialect.text_type})"
    for pattern, by in ((_SPACE, " "), (DASHES, "-"), (UNIT, "%")):
        text = dialect.replace(text, pattern, by)
    bare = dialect.replace(dialect.whole(text, _NUMBER), f"[ %,){_GROUP}]", "")
    bare = dialect.replace(bare, "[(]", "-")
    return dialect.cell("number", f"TRY_CAST({bare} AS DOUBLE)")


def _date_of_text(dialect: Dialect, cell: str) -> str:
    written = dialect.whole(dialect.cell("text", cell), _DATE)
    written = dialect.replace(written, r"\A([0-9]+)[-/.]([0-9]+)[-/.]", r"\1-\2-")
    return dialect.cell("seconds", f"TRY_CAST({written} AS TIMESTAMP)")


# Ways to write a cell, in an order in which each uses earlier ones only.
CELLS: dict[str, Callable[[Dialect, str], str]] = {
    "text": _text,  # stripped, NULL if missing
    "number": _number,  # NULL unless finite
    # like "number", without rounding large integers to floats
    "number_as_it_is": lambda dialect, cell: (
        f"CASE WHEN {dialect.cell('number', cell)} IS NOT NULL THEN {cell} END"
    ),
    "number_of_text": _number_of_text,
    "seconds": lambda dialect, cell: dialect.seconds(cell),
    "date_of_text": _date_of_text,
    "clock_of_text": lambda dialect, cell: (
        "EXTRACT(EPOCH FROM "
        f"TRY_CAST({dialect.whole(dialect.cell('text', cell), _CLOCK)} AS INTERVAL))"
    ),
}


def why_left_out(
    rule: AnyRule, columns: Mapping[str, RuleColumn], *, has_texts: bool = False
) -> str:
    """Return why another program may miss rows that break a rule; empty if it finds them all.

    The program may write numbers and dates differently as text, unless it `has_texts`: the cells of
    text files, unchanged.
    """
    for name in rule.columns:
        numbers, dates = columns[name].numbers, columns[name].dates
        if numbers is not None and numbers.marks and not has_texts:
            return f"as the marks beside the numbers of {one_line(name, 40)} are not read there"
        if dates is not None and dates.digits:
            return f"as dates written {dates.digits}, of {one_line(name, 40)}, are not read there"
    for name in _compared_as_text(rule, columns):
        column = columns[name]
        if column.format is None or (not column.typed and (has_texts or column.is_plain)):
            continue
        values: Sequence[str] = getattr(rule, "values", ())
        is_number = column.typed and column.numbers is not None and not column.numbers.clock
        if not (is_number and values and all(map(_WRITTEN_ALIKE.fullmatch, values))):
            return f"as the text of {one_line(name, 40)} may be another there"
    return ""


def _compared_as_text(rule: AnyRule, columns: Mapping[str, RuleColumn]) -> Sequence[str]:
    match rule:
        case kinds.Code():
            return rule.columns
        case kinds.Equal() if not all(columns[name].format for name in rule.columns):
            return rule.columns
        case kinds.EmptyUnless() | kinds.PositiveOnlyIf() if rule.values:
            return rule.columns[1:]
    return ()
