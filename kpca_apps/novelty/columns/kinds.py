"""The kinds of columns: how cells become numbers, and how numbers are written as cells.

`Notation` learns how most cells of a column are written; a format (`tables/values.py`) reads them
in any spelling.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import polars as pl
from msgspec import Meta

from kpca_apps.system.arrays import FloatArray
from kpca_apps.tables.values import (
    DAY,
    Column,
    DateFormat,
    Levels,
    NumberFormat,
    ValueFormat,
    date_text,
)

_ORDERS = ("ymd", "dmy", "mdy")
_MARKS = ("-", "/", ".")

_SIGN = r"(?:\p{Sc}|%|EUR|USD|GBP|CHF|JPY)"
_BEFORE = rf"^[(+-]?\s*({_SIGN}\s*)"
_AFTER = rf"\d[.,]?(\s*{_SIGN})\)?$"
# Patterns of clock times: an hour of one digit, seconds, and a.m. or p.m.
_SHORT_HOUR, _SECONDS, _HALF = r"^\d:", r":\d+:\d", r"(\s*[AaPp]\.?[Mm]\.?)$"
# Patterns of numeric dates: with the year first, as in 2024-05-31, or last, as in 31/5/24.
_YEAR_FIRST = r"^\d{4}([-/.])\d{1,2}[-/.]\d{1,2}"
_YEAR_LAST = r"^\d{1,2}([-/.])\d{1,2}[-/.]\d{2}"
_LONG_YEAR = r"^\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
_UNPADDED = r"^(?:\d[-/.]|\d{2}[-/.]\d[-/.]|\d{4}[-/.](?:\d[-/.]|\d{2}[-/.]\d(?:\D|$)))"
_DAY = 86400.0  # seconds
# A column of integers has at least this many cells, and at least this share of integers.
_MIN_WHOLE, _WHOLE = 20, 0.99
# A column has few values (`steps_of`) if it has, on average, at least _CELLS_A_STEP cells for each
# repeated value, and if at most _ONCE cells, or the share _ONCE_SHARE, have a value of their own.
_CELLS_A_STEP, _ONCE, _ONCE_SHARE = 20, 2, 0.005
MOST_DIGITS = 12  # numbers that agree in so many digits count as equal: later digits are rounding
ALL_DIGITS = 15  # number of digits that every float keeps


@dataclass(frozen=True)
class Notation:
    """How most cells of a column of numbers or dates are written."""

    before: str = ""  # unit before a number, with its space: "$"
    after: str = ""  # unit behind a number: " %"
    order: str = "ymd"  # order of the parts of a date: "ymd", "dmy" or "mdy"
    mark: str = "-"  # separator of the parts of a date
    padded: bool = True  # days and months have two digits
    short_year: bool = False  # years have two digits
    whole: bool = False  # nearly all numbers are integers, or no date has a time of day
    seconds: bool = True  # most clock times have seconds
    decimals: Annotated[int, Meta(ge=0, le=ALL_DIGITS)] = 0  # number of decimals of most numbers

    def validate(self) -> None:
        """Raise ValueError for a notation of dates that cannot be learned."""
        if self.order not in _ORDERS or self.mark not in _MARKS:
            raise ValueError(f"no dates are written {self.order!r:.20} and {self.mark!r:.20}")

    @classmethod
    def of(cls, column: Column, format: ValueFormat | None) -> Notation:
        """Learn the notation of a column; typed columns have the default notation."""
        if format is None:
            return cls()
        values = column.read(format).values
        steps = values[~np.isnan(values)] / (_DAY if isinstance(format, DateFormat) else 1.0)
        whole = len(steps) >= _MIN_WHOLE and np.mean(steps == np.round(steps)) > _WHOLE
        return replace(cls._of_texts(column, format), whole=bool(whole))

    @classmethod
    def _of_texts(cls, column: Column, format: ValueFormat) -> Notation:
        if column.cells.dtype != pl.String:
            return cls()
        levels = column.levels
        if isinstance(format, NumberFormat):
            if format.clock:
                padded = not levels.texts.str.contains(_SHORT_HOUR).any()
                seconds = 2 * _n_cells(levels, _SECONDS) > levels.counts.sum()
                return cls(after=_commonest(levels, _HALF), padded=padded, seconds=seconds)
            before, after = "", ""
            if format.word:
                after = _commonest(levels, rf"\d[.,]?(\s*{re.escape(format.word)})$")
            elif any(format.units):
                before, after = _commonest(levels, _BEFORE), _commonest(levels, _AFTER)
            # On few cells, `re` takes a quarter of the time of a query.
            found = map(re.compile(rf"\{format.decimal}(\d+)\D*$").search, levels.texts)
            lengths = [len(one[1]) if one else 0 for one in found]
            decimals = int(np.bincount(lengths, levels.counts).argmax())
            return cls(before, after, decimals=min(decimals, ALL_DIGITS))
        padded = not levels.texts.str.contains(_UNPADDED).any()
        n_year_last, n_cells = _n_cells(levels, _YEAR_LAST), levels.counts.sum()
        seconds = not format.has_time or 2 * _n_cells(levels, _SECONDS) > n_cells
        if 2 * n_year_last > n_cells and (mark := _commonest(levels, _YEAR_LAST)):
            order = "dmy" if format.day_first else "mdy"
            short = 2 * _n_cells(levels, _LONG_YEAR) < n_year_last
            return cls("", "", order, mark, padded, short, seconds=seconds)
        if 2 * _n_cells(levels, _YEAR_FIRST) > n_cells and (
            mark := _commonest(levels, _YEAR_FIRST)
        ):
            return cls(mark=mark, padded=padded, seconds=seconds)
        # Dates with month names get the default notation, which needs no language.
        return cls(seconds=seconds)

    def write(self, value: float, format: ValueFormat, beside: float | None = None) -> str:
        """Write a number, or seconds since 1970-01-01 UTC as a date, in the column's notation.

        Numbers have about four digits, or as many as it takes to differ from the number `beside`.
        """
        if isinstance(format, NumberFormat) and not format.clock:
            return self._number(value, self._digits(value, beside), format)
        return self.write_exactly(value, format)

    def write_exactly(self, value: float, format: ValueFormat) -> str:
        """Write a value in the column's notation: a number (all digits), a date or a clock time."""
        if isinstance(format, DateFormat):
            return self._date(value, format.has_time and not self.whole)
        if format.clock:
            return self._clock(value % DAY if format.day_start else value)
        size = abs(value)
        whole, point, part = f"{size:.{ALL_DIGITS}g}".partition(".")
        if "e" in whole + part:
            return self._number(value, whole + point + part, format)
        part = part.ljust(self.decimals, "0")
        return self._number(value, f"{whole}.{part}" if part else whole, format)

    def _date(self, value: float, has_time: bool) -> str:
        text = date_text(value, has_time)
        day, space, time = text.partition(" ")
        time = time if self.seconds else time[:5]
        parts = day.split("-")
        if len(parts) != 3 or not all(part.isdigit() for part in parts):
            return text  # the year is outside the calendar
        year, *rest = parts
        if not self.padded:
            rest = [str(int(part)) for part in rest]
        written = {"y": year[-2:] if self.short_year else year, "m": rest[0], "d": rest[1]}
        return self.mark.join(written[part] for part in self.order) + space + time

    def _number(self, value: float, digits: str, format: NumberFormat) -> str:
        if "e" not in digits:
            whole, _, part = digits.partition(".")
            if format.thousands:
                whole = f"{int(whole):,}".replace(",", format.thousands)
            digits = whole + (format.decimal + part if part else "")
        elif format.decimal == ",":
            digits = digits.replace(".", ",")
        minus = "-" if value < 0 and digits.strip("0.,") else ""
        return f"{minus}{self.before}{digits}{self.after}"

    def _digits(self, value: float, beside: float | None) -> str:
        """Write an absolute value with about four digits, or enough to differ from `beside`."""
        size = abs(round(value) if self.whole else value)
        digits = f"{size:.0f}" if 1000 <= size < 1e15 else f"{size:.4g}"
        gap = 0.0 if beside is None else abs(value - beside)
        if gap <= 10**-MOST_DIGITS * abs(value):
            return digits
        # Rounding may move an integer by at most its difference from `beside`, any other number by
        # at most a tenth of this difference.
        rounding = abs(float(digits) - abs(value)) * (1 if self.whole else 10)
        if rounding <= gap and math.copysign(float(digits), value) != beside:
            return digits
        places = max(0, 1 - math.floor(math.log10(gap)))
        if not 1e-4 <= abs(value) < 1e15:
            return f"{abs(value):.{MOST_DIGITS}g}"
        finer = f"{abs(value):.{places}f}"
        return finer.rstrip("0").rstrip(".") if places else finer

    def _clock(self, value: float) -> str:
        """Write seconds as a time of day or a duration, without seconds if most cells have none."""
        minutes, second = divmod(round(abs(value)), 60)
        if not self.seconds:
            minutes, second = round(abs(value) / 60), 0
        hour, minute = divmod(minutes, 60)
        after = self.after
        if after:
            # Replace only the first letter of "a.m." or "p.m.".
            is_upper, half = after.strip().isupper(), "p" if hour % 24 >= 12 else "a"
            after = re.sub("[AaPp]", half.upper() if is_upper else half, after, count=1)
            hour = hour % 12 or 12
        digits = f"{hour:02}:{minute:02}" if self.padded else f"{hour}:{minute:02}"
        minus = "-" if value < 0 else ""
        return f"{minus}{digits}{f':{second:02}' if self.seconds else ''}{after}"


def steps_of(values: FloatArray) -> FloatArray:
    """Return the sorted repeated values of a column (n,) of few values; none for other columns.

    >>> steps_of(np.array([1.0, 2.0, 5.0] * 20 + [33.0])).tolist()
    [1.0, 2.0, 5.0]
    """
    distinct, counts = np.unique(values, return_counts=True)
    often = distinct[counts > 1]
    n_once = len(distinct) - len(often)
    few = len(values) >= _CELLS_A_STEP * len(often)
    return often if few and n_once <= max(_ONCE, _ONCE_SHARE * len(values)) else often[:0]


def _n_cells(levels: Levels, pattern: str) -> int:
    return int(levels.counts[levels.texts.str.contains(pattern).to_numpy()].sum())


def _commonest(levels: Levels, pattern: str) -> str:
    """Return the text that a pattern captures most often; it may be empty."""
    texts, totals = levels.texts.str.extract(pattern).fill_null(""), Counter[str]()
    for text, count in zip(texts, levels.counts.tolist(), strict=True):
        totals[text] += count
    return min(totals, key=lambda text: (-totals[text], text))


@dataclass(frozen=True)
class ColumnKind:
    """A kind of column, such as numbers, dates or categories."""

    role: str  # name in plans, models, reports and JSON
    format: type[ValueFormat] | None = None  # format of cells; None for text
    noun: str = ""  # word for a readable cell in messages
    n_features: int = 0  # if 0, each level of the column gets an indicator (`LevelCoder`)
    # Function that computes the features (n, n_features) of n cells, NaN for missing. The first
    # feature is the value; a further feature is dropped if it is constant.
    features: Callable[[Column, ValueFormat | None], FloatArray] | None = None
    unit: float = 1.0  # factor from the first feature to the format's unit: 86,400 for days
    # Function that describes the features of a text in words; dropped features are NaN.
    describe: Callable[[FloatArray], str] | None = None
    # Whether levels are two words for true and false, in upper or lower case, neither of them rare.
    is_truth: bool = False


def _number(column: Column, format: ValueFormat | None) -> FloatArray:
    return column.read(format).values[:, None]


def _date_features(column: Column, format: ValueFormat | None) -> FloatArray:
    """Return days since 1970, and sine and cosine of the time of day and of the weekday."""
    seconds = column.read(format).values
    days = seconds / _DAY
    hour = 2 * np.pi * (seconds % _DAY) / _DAY  # equal times of day give equal bits
    weekday = 2 * np.pi * (np.floor(days) % 7) / 7
    return np.column_stack([days, np.sin(hour), np.cos(hour), np.sin(weekday), np.cos(weekday)])


def _text_features(column: Column, format: ValueFormat | None) -> FloatArray:
    """Return length, number of words, and shares of digits, capitals and punctuation."""
    length = column.texts.str.len_chars().cast(pl.Float64)
    features = [length, column.texts.str.count_matches(r"\S+").cast(pl.Float64)]
    for letters in (r"\d", r"\p{Lu}", r"[\p{P}\p{S}]"):
        features.append(column.texts.str.count_matches(letters).cast(pl.Float64) / length)
    return np.column_stack([feature.fill_null(np.nan).to_numpy() for feature in features])


def _describe_text(features: FloatArray) -> str:
    length, n_words = f"about {features[0]:.0f} characters", f"{features[1]:.0f}"
    if np.isnan(features[1]):
        return length
    return f"{length}, {n_words} {'word' if n_words == '1' else 'words'}"


KINDS = {
    kind.role: kind
    for kind in (
        ColumnKind("numeric", NumberFormat, "number", 1, _number),
        ColumnKind("datetime", DateFormat, "date", 5, _date_features, unit=_DAY),
        ColumnKind("text", n_features=5, features=_text_features, describe=_describe_text),
        ColumnKind("categorical"),
        ColumnKind("boolean", is_truth=True),
    )
}
