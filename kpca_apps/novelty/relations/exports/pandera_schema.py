"""Rules as a schema of pandera: Python source that validates data frames of pandas.

The source needs no other file: helpers (`pandera_helpers.txt`) read cells as this package does. All
names are literals, so none can run code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

from kpca_apps.names import one_line
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.exports.cells import why_left_out
from kpca_apps.novelty.relations.exports.conditions import Language
from kpca_apps.novelty.relations.rule import WHOLE_TABLE, HeldRules
from kpca_apps.novelty.relations.sentences import phrase, sentence
from kpca_apps.tables.values import (
    BRACKETS,
    CLOCK_SHAPE,
    DASHES,
    DATE_NUMBER,
    DATE_SHAPES,
    LAST_SERIAL,
    MISSING_WORDS,
    MONTHS,
    PIVOT,
    SERIAL_1970,
    SPACES,
    UNIT,
    NumberFormat,
    number_pattern,
    replacements,
    thousands_mark,
    unit_ending,
)

_LINE = 1_000  # maximum number of characters in a comment
_PLAIN = number_pattern(".", "")
# White space of Unicode, as in polars; Python would strip four more characters.
_WHITE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_SIGNS = {
    chr(int(code, 16)): sign
    for signs, sign in ((DASHES, "-"), (SPACES, " "), (r"\x{2019}", "'"))
    for code in re.findall(r"\{(\w+)\}", signs)
}
# Constants for the functions of the exported file, as in `tables.values`; "$" is any currency.
_CONSTANTS = {
    "MISSING": sorted(MISSING_WORDS),
    "SPACES": _WHITE,
    "SIGNS": _SIGNS,
    "UNIT": UNIT.replace(r"\p{Sc}", r"\$"),
    "BRACKETS": BRACKETS.replace(r"\p{Sc}", r"\$"),
    "NUMBER": _PLAIN,
    "CLOCK": CLOCK_SHAPE,
    "MONTHS": MONTHS,
    "DATES": DATE_SHAPES,
    "DATE_NUMBER": DATE_NUMBER,
    "LAST_SERIAL": LAST_SERIAL,
    "SERIAL_1970": SERIAL_1970,
    "PIVOT": PIVOT,
}
_HEAD = """\
# Rules between the columns of {table}, for pandera (pip install "pandera[pandas]").
#
# schema.validate(frame, lazy=True) raises pandera.errors.SchemaErrors where a row breaks a rule;
# its failure_cases name the rule and, unless labels of the index repeat, the row.
import datetime as dt
import re
import unicodedata

import numpy as np
import pandas as pd
import pandera.pandas as pa

"""
_CHECK = """\
        # {comment}
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
    constants = "".join(f"{name} = {value!a}\n" for name, value in _CONSTANTS.items())
    helpers = files(__package__).joinpath("pandera_helpers.txt").read_text("utf-8")
    parts = [_HEAD.format(table=one_line(rules.table)), constants, "\n\n", helpers]
    for held in rules.rules:
        comment = one_line(sentence(held, rules.by_name), _LINE)
        if why := why_left_out(held.rule, rules.by_name, has_texts=True):
            parts.append(f"        # {comment}: left out, {why}\n")
            continue
        name = ascii(phrase(held.rule, rules.by_name))
        condition = _Python(rules.by_name).broken(held.rule)
        is_whole = isinstance(held.rule, WHOLE_TABLE)
        holds = condition.removeprefix("~") if is_whole else f"~({condition})"
        parts.append(_CHECK.format(comment=comment, name=name, holds=holds))
    return "".join([*parts, _TAIL])


class _Python(Language):
    """Conditions in the exported Python file, for a table ``df``."""

    known, missing, equal = ".notna()", ".isna()", "=="
    both, either = " & ", " | "
    absolute, power = "np.abs", "np.power"

    def number(self, name: str) -> str:
        column, cells = self.columns[name], _cells(name)
        if column.dates is not None:
            day = ", dayfirst=True" * column.dates.day_first
            dots = ", dots=False" * (not column.dates.dots_day_first)
            return f"dates({cells}{day}{dots})"
        if column.numbers is not None and column.numbers.clock:
            return f"clock({cells})"
        return f"numbers({', '.join([cells, *_marks(column.numbers)])})"

    def text(self, name: str) -> str:
        return f"texts({_cells(name)})"

    def constant(self, value: float) -> str:
        return repr(value)

    def none_of(self, name: str, values: Sequence[str]) -> str:
        cells = self.text(name)
        return f"{cells}.notna() & ~{cells}.isin([{', '.join(map(ascii, values))}])"

    def differ(self, text: str, other: str) -> str:
        return f"differ({text}, {other})"

    def other_form(self, name: str, form: str) -> str:
        return f"differ(form({_cells(name)}), {form!a})"

    def of_table(self, rule: kinds.WholeTable) -> list[str]:
        if isinstance(rule, kinds.Sorted):
            return [f"~in_order({'-' * rule.falling}{self.number(rule.columns[0])})"]
        function = "unique" if isinstance(rule, kinds.Unique) else "determines"
        keys = [
            (self.number if self.columns[name].format else self.text)(name) for name in rule.columns
        ]
        return [f"~{function}({', '.join(keys)})"]


def _cells(name: str) -> str:
    return f"df[{name!a}]"


def _marks(format: NumberFormat | None) -> list[str]:
    """Write arguments of `numbers` for a number format; none for Python's own notation."""
    if format is None:
        return []
    beside = [
        (one.replace("$", r"\Z") if one.endswith("$") else one, by.replace("$", "\\"))
        for one, by in (
            *replacements(format.marks),
            *[(unit_ending(format.word), "$1")] * bool(format.word),
        )
    ]
    marks: dict[str, object] = {
        "shape": number_pattern(format.decimal, format.thousands),
        "decimal": format.decimal,
        "thousands": thousands_mark(format),
        "beside": tuple(beside),
    }
    plain = {"shape": _PLAIN, "decimal": ".", "thousands": ",", "beside": ()}
    return [f"{key}={x!a}" for key, x in marks.items() if x != plain[key]]
