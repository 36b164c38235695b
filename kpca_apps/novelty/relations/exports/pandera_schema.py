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
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.exports.cells import why_left_out
from kpca_apps.novelty.relations.exports.formulas import Language, broken
from kpca_apps.novelty.relations.rule import AnyRule
from kpca_apps.novelty.relations.rules import HeldRules, RuleColumn
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

_LINE = 1_000  # characters of a comment
_PLAIN = number_pattern(".", "")
# White space of Unicode. Python strips four more characters, of which polars knows nothing.
_WHITE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_SIGNS = {
    chr(int(code, 16)): sign
    for signs, sign in ((DASHES, "-"), (SPACES, " "), (r"\x{2019}", "'"))
    for code in re.findall(r"\{(\w+)\}", signs)
}
# How cells are read, as `tables.values` has it; a currency is a dollar in these patterns.
_CONSTANTS = {
    "missing": ascii(sorted(MISSING_WORDS)),
    "spaces": ascii(_WHITE),
    "signs": ascii(_SIGNS),
    "unit": ascii(UNIT.replace(r"\p{Sc}", r"\$")),
    "brackets": ascii(BRACKETS.replace(r"\p{Sc}", r"\$")),
    "number": ascii(_PLAIN),
    "clock": ascii(CLOCK_SHAPE),
    "months": ascii(MONTHS),
    "dates": ascii(DATE_SHAPES),
    "date_number": ascii(DATE_NUMBER),
}
_HEAD = r'''# Rules between the columns of {table}, for pandera (pip install "pandera[pandas]").
#
# schema.validate(frame, lazy=True) raises pandera.errors.SchemaErrors where a row breaks a rule;
# its failure_cases name the rule and, unless labels of the index repeat, the row.
import datetime as dt
import re
import unicodedata

import numpy as np
import pandas as pd
import pandera.pandas as pa

MISSING = {missing}
SPACES = {spaces}
SIGNS = {signs}
UNIT = {unit}
BRACKETS = {brackets}
NUMBER = {number}
CLOCK = {clock}
MONTHS = {months}
DATES = {dates}
DATE_NUMBER = {date_number}


def texts(cells):
    """Return cells as stripped text, NA where they are missing."""
    is_float = pd.api.types.is_float_dtype(cells.dtype)
    written = (cells + 0.0 if is_float else cells).astype("string").str.strip(SPACES)
    if is_float:
        written = written.str.removesuffix(".0")
    elif pd.api.types.infer_dtype(cells, skipna=True) == "boolean":
        written = written.str.lower()
    return written.mask(written.str.lower().isin(MISSING))


def read(cells, value, *marks):
    """Return texts as numbers, NaN where they are none."""
    found = texts(cells).map(lambda text: value(text, *marks), na_action="ignore")
    return found.astype("Float64").astype("float64")


def number(text, shape, decimal, thousands, beside):
    """Return a number without what stands beside it."""
    plain = "".join("$" if unicodedata.category(x) == "Sc" else SIGNS.get(x, x) for x in text)
    for pattern, by in beside:
        plain = re.sub(pattern, by, plain, count=1)
    plain = re.sub(BRACKETS, r"-\1", plain)
    plain = re.sub(rf"^([+-]?)\s*{{UNIT}}\s*([+-]?)", r"\1\2", plain)
    plain = re.sub(rf"\s*{{UNIT}}\Z", "", plain)
    if not re.fullmatch(shape, plain, re.ASCII):
        return np.nan
    return float(plain.replace(thousands, "").replace(decimal, "."))


def numbers(cells, shape=NUMBER, decimal=".", thousands=",", beside=()):
    """Return cells as numbers, NaN where they are none."""
    if pd.api.types.is_numeric_dtype(cells.dtype):
        found = cells.astype("Float64").astype("float64")
    else:
        found = read(cells, number, shape, decimal, thousands, beside)
    return found.where(found.abs() <= 1e100)


def hours(hour, half):
    """Return the hours of a time, of a half of the day if one is named; NaN for 13 pm."""
    if not half:
        return int(hour)
    return int(hour) % 12 + 12 * (half.lower()[0] == "p") if 1 <= int(hour) <= 12 else np.nan


def date(text, dayfirst, dots):
    """Return a date in seconds since 1970 UTC."""
    if re.fullmatch(DATE_NUMBER, text):
        if float(text) <= {last_serial}:
            return 86400 * (float(text) - {serial_1970})
        text = f"{{text[:4]}}-{{text[4:6]}}-{{text[6:]}}"
    found = next(filter(None, (re.fullmatch(shape, text) for shape in DATES)), None)
    if not found:
        return np.nan
    part = found.groupdict(default="")
    year, month, day = part["year"], part.get("month"), part.get("day")
    if "name" in part:
        name = part["name"].lower()
        month = next(i for i, starts in enumerate(MONTHS, start=1) if re.match(starts, name))
    elif "first" in part:
        order = 1 if dayfirst or dots and part["mark"] == "." else -1
        day, month = (part["first"], part["second_part"])[::order]
    century = 0 if len(year) == 4 else 1900 if int(year) >= {pivot} else 2000
    hour, minute = hours(part["hour"] or 0, part["half"]), int(part["minute"] or 0)
    second = float(part["second"].replace(",", ".") or 0)
    zone = [*re.findall("[0-9]{{2}}", part["zone"]), 0, 0]
    ahead = (3600 * int(zone[0]) + 60 * int(zone[1])) * (-1 if "-" in part["zone"] else 1)
    try:
        days = (dt.date(century + int(year), int(month), int(day)) - dt.date(1970, 1, 1)).days
    except ValueError:
        return np.nan
    seconds = 86400 * days + 3600 * hour + 60 * minute + second - ahead
    return seconds if hour < 24 and minute < 60 and second < 60 else np.nan


def dates(cells, dayfirst=False, dots=True):
    """Return dates in seconds since 1970 UTC, NaN where they are none; with dots, day first."""
    if not pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return read(cells, date, dayfirst, dots)
    # Not Timestamp(0), whose nanoseconds reach from 1678 to 2262 only.
    since = pd.to_datetime(cells, utc=True) - pd.Timestamp("1970-01-01", tz="UTC")
    return since / pd.Timedelta(seconds=1)


def time(text):
    """Return a time of day, or a duration, in seconds."""
    found = re.fullmatch(CLOCK, text)
    if not found:
        return np.nan
    hour, minute, second, half = found.groups(default="")
    return 3600 * hours(hour, half) + 60 * int(minute) + float(second.replace(",", ".") or 0)


def clock(cells):
    """Return times of day in seconds, NaN where they are none."""
    return read(cells, time)


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


def counts(*columns):
    """Return for each row how many have its values, 0 where one is missing."""
    frame = pd.concat(columns, axis=1, ignore_index=True)
    return frame.groupby([*frame])[0].transform("size").fillna(0).astype("int64")


def unique(*columns):
    """Return whether a row is the only one with its values."""
    return counts(*columns) <= 1


def determines(*columns):
    """Return whether the last column has the value of more than half of the rows alike."""
    keys = [column.where(columns[-1].notna()) for column in columns[:-1]]
    n_alike = counts(*columns)
    return (n_alike == 0) | (2 * n_alike > counts(*keys))


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
    parts = [
        _HEAD.format(
            table=one_line(rules.table),
            pivot=PIVOT,
            last_serial=LAST_SERIAL,
            serial_1970=SERIAL_1970,
            **_CONSTANTS,
        )
    ]
    for held in rules.rules:
        said = one_line(sentence(held, rules.by_name), _LINE)
        if why := why_left_out(held.rule, rules.by_name, has_texts=True):
            parts.append(f"        # {said}: left out, {why}\n")
            continue
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
            case kinds.Unique():
                return f"unique({', '.join(map(self.key, rule.columns))})"
            case kinds.Determines():
                return f"determines({', '.join(map(self.key, rule.columns))})"
            case kinds.Sorted():
                return f"in_order({'-' * rule.falling}{self.number(rule.columns[0])})"
            case kinds.Equal() if not all(self.columns[name].format for name in rule.columns):
                first, second = map(self.text, rule.columns)
                return f"~differ({first}, {second})"
            case kinds.Equal() | kinds.Order() | kinds.Linear() | kinds.Product() | kinds.Within():
                return f"~({broken(rule, self._language)})"
            case kinds.EmptyUnless():
                first, second = map(self.text, rule.columns)
                other = f"{second}.isna()"
                if rule.values:
                    other = self._is_none_of(rule.columns[1], rule.values)
                return f"~({first}.notna() & {other})"
            case kinds.PositiveOnlyIf():
                first, *others = rule.columns
                above = f"({self.number(first)} > 0)"
                none = " & ".join(self._is_none_of(name, rule.values) for name in others)
                if not rule.both:
                    return f"~({above} & {none})"
                known = [
                    f"{self.number(first)}.notna()",
                    *(f"{self.text(n)}.notna()" for n in others),
                ]
                return f"~({' & '.join(known)} & ({above} == ({none})))"
            case kinds.Code():
                return f"~differ(form({_cells(rule.columns[0])}), {rule.form!a})"
            case _:
                assert_never(rule)

    def number(self, name: str) -> str:
        """Write a column as numbers; dates in seconds since 1970 UTC."""
        column, cells = self.columns[name], _cells(name)
        if column.dates is not None:
            day = ", dayfirst=True" * column.dates.day_first
            dots = ", dots=False" * (not column.dates.dots_day_first)
            return f"dates({cells}{day}{dots})"
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
        """Write that a cell holds something, but none of some values."""
        text, listed = self.text(name), ", ".join(map(ascii, values))
        return f"{text}.notna() & ~{text}.isin([{listed}])"

    @property
    def _language(self) -> Language:
        return Language(
            number=self.number,
            constant=repr,
            absolute="np.abs",
            power="np.power",
            both=" & ",
            either=" | ",
        )


def _cells(name: str) -> str:
    return f"df[{name!a}]"


def _marks(format: NumberFormat | None) -> list[str]:
    """Write how numbers stand in text, where not as Python writes them."""
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
