r"""What a cell is in SQL: its text, number or date as `tables.values` reads it, and else NULL.

A comparison with NULL is never true, so conditions on such cells need no guards: a row that lacks
a value breaks no rule. Patterns are in the syntax that RE2 (DuckDB) and Java (Spark) share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kpca_apps.names import one_line
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.rule import AnyRule
from kpca_apps.novelty.relations.rules import RuleColumn
from kpca_apps.tables.values import DASHES, MISSING_WORDS, UNIT

_SPACE = r"[\t-\r\x{85}\p{Z}]"
_WORDS = "|".join(re.escape(word) for word in sorted(MISSING_WORDS) if word)
_MISSING = rf"(?i)\A{_SPACE}*(?:{_WORDS}){_SPACE}*\z|\A{_SPACE}+|{_SPACE}+\z"

# A number in a text whose white space is " ", whose dashes are "-" and whose unit is "%".
# A column of numbers with marks of its own has CHR(31) between thousands, and a decimal point.
_GROUP = r"\x{1F}"
_PLAIN = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_SEPARATED = (
    rf"(?:[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})+\.[0-9]*"
    rf"|[1-9][0-9]{{0,2}}(?:{_GROUP}[0-9]{{3}})+(?:\.[0-9]*)?)"
)
_SIGNED = rf"(?:[+-]|[+-]? *% *|% *[+-])?(?:{_PLAIN}(?:[eE][+-]?[0-9]+)?|{_SEPARATED})(?: *%)?"
# An amount in brackets is below 0 (`tables.values.BRACKETS`), however it is written with a unit.
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
# A number that all programs write alike, but for the ".0" of a whole one.
_WRITTEN_ALIKE = re.compile(r"-?(0|0\.(?!0000)[0-9]*[1-9]|[1-9][0-9]{0,14}(\.[0-9]*[1-9])?)")


@dataclass(frozen=True)
class Dialect:
    """What databases write in ways of their own."""

    name: Callable[[str], str]  # quotes the name of a column or a table
    literal: Callable[[str], str]  # quotes a text
    text: str  # the type of texts
    replaced: Callable[[str, str, str], str]  # all parts of a text that match a quoted pattern
    seconds: Callable[[str], str]  # of a date or a moment since 1970-01-01 UTC
    has_form: Callable[[str, str], str]  # whether a text has the form of a code
    macro: str = ""  # the names of macros for cells begin with it; without any they are written out
    both: str = " AND "  # between two conditions

    def cell(self, kind: str, cell: str) -> str:
        """Write a cell as one of `CELLS`."""
        return f"{self.macro}{kind}({cell})" if self.macro else CELLS[kind](self, cell)

    def macros(self, queries: str) -> str:
        """Write the macros that some queries call, each before those that call it."""
        text = ""
        for kind, body in reversed(CELLS.items()):
            called = f"{self.macro}{kind}("
            if called in queries + text:
                macro = f"CREATE OR REPLACE TEMP MACRO {called}cell) AS"
                text = f"{macro}\n  {body(self, 'cell')};\n{text}"
        return text

    def replace(self, text: str, pattern: str, by: str) -> str:
        """Write a text with all that matches a pattern replaced."""
        return self.replaced(text, self.literal(pattern), self.literal(by))

    def whole(self, text: str, pattern: str) -> str:
        """Write a text that matches a pattern as it is, another one as an empty text."""
        return f"REGEXP_EXTRACT({text}, {self.literal(pattern)}, 0)"


def _text(dialect: Dialect, cell: str) -> str:
    written = f"CAST({cell} AS {dialect.text})"
    return f"NULLIF({dialect.replace(written, _MISSING, '')}, '')"


def _number(dialect: Dialect, cell: str) -> str:
    # Larger ones are no measurements. To a database NaN is the largest number.
    number = f"CAST({cell} AS DOUBLE)"
    return f"CASE WHEN {number} BETWEEN -1e100 AND 1e100 THEN {number} END"


def _number_as_it_is(dialect: Dialect, cell: str) -> str:
    return f"CASE WHEN {dialect.cell('number', cell)} IS NOT NULL THEN {cell} END"


def _number_of_text(dialect: Dialect, cell: str) -> str:
    text = f"CAST({cell} AS {dialect.text})"
    for pattern, by in ((_SPACE, " "), (DASHES, "-"), (UNIT, "%")):
        text = dialect.replace(text, pattern, by)
    bare = dialect.replace(dialect.whole(text, _NUMBER), f"[ %,){_GROUP}]", "")
    # A bracket is a minus, too: (5.00).
    bare = dialect.replace(bare, "[(]", "-")
    return dialect.cell("number", f"TRY_CAST({bare} AS DOUBLE)")


def _date_of_text(dialect: Dialect, cell: str) -> str:
    written = dialect.whole(dialect.cell("text", cell), _DATE)
    written = dialect.replace(written, r"\A([0-9]+)[-/.]([0-9]+)[-/.]", r"\1-\2-")
    return dialect.cell("seconds", f"TRY_CAST({written} AS TIMESTAMP)")


def _clock_of_text(dialect: Dialect, cell: str) -> str:
    written = dialect.whole(dialect.cell("text", cell), _CLOCK)
    return f"EXTRACT(EPOCH FROM TRY_CAST({written} AS INTERVAL))"


# What is written of a cell, those first that the others use.
CELLS: dict[str, Callable[[Dialect, str], str]] = {
    "text": _text,  # without white space around it, NULL where it is missing
    "number": _number,  # of a number; NULL where it is not finite
    "number_as_it_is": _number_as_it_is,  # not as a float, which rounds large whole numbers
    "number_of_text": _number_of_text,
    "seconds": lambda dialect, cell: dialect.seconds(cell),
    "date_of_text": _date_of_text,  # in seconds since 1970 UTC, as are those of dates
    "clock_of_text": _clock_of_text,  # a time of day in seconds
}


@dataclass(frozen=True)
class SqlCells:
    """Writes the columns of a table as what rules compare."""

    columns: Mapping[str, RuleColumn]
    dialect: Dialect

    def text(self, name: str) -> str:
        """Write a column as stripped text."""
        text = self.dialect.cell("text", self.dialect.name(name))
        if self.columns[name].typed and self.columns[name].numbers is not None:
            return self.dialect.replace(text, r"\A-?(0)\.0\z|\.0\z", r"\1")
        return text

    def number(self, name: str) -> str:
        """Write a column as a floating-point number; dates in seconds since 1970 UTC."""
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
        """Write the marks of numbers in a text as those of all; the database may hold numbers."""
        assert column.numbers is not None
        text, literal = f"CAST({cell} AS {self.dialect.text})", self.dialect.literal
        marks = column.numbers.decimal + column.numbers.thousands
        plain = f"TRIM(REPLACE({text}, {literal(column.numbers.word)}, ''))"
        plain = f"TRANSLATE({plain}, {literal(marks)}, '.' || CHR(31))"
        is_text = f"UPPER(TYPEOF({cell})) = '{self.dialect.text}'"
        return f"CASE WHEN {is_text} THEN {plain} ELSE {text} END"

    def key(self, name: str) -> str:
        """Write a column as what rows are equal in: whole numbers as they are, not rounded."""
        column = self.columns[name]
        if column.format is None:
            return self.text(name)
        if column.typed and column.numbers is not None and not column.numbers.clock:
            return self.dialect.cell("number_as_it_is", self.dialect.name(name))
        return self.number(name)


def why_left_out(
    rule: AnyRule, columns: Mapping[str, RuleColumn], *, has_texts: bool = False
) -> str:
    """Say why another program may not find the rows that break a rule; "" where it does.

    Numbers and dates may be written as text in another way there. Where it `has_texts`, cells of
    text files are texts there as well.
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
