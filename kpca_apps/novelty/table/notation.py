"""How the cells of a column are written, so that an expected value is written alike.

A format (`files/numbers.py`, `files/dates.py`) says how cells are *read*, in any spelling it
allows; a notation says how most of them look.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from kpca_apps.files.tables.dates import DateFormat, date_text
from kpca_apps.files.tables.numbers import NumberFormat
from kpca_apps.files.tables.values import Column, Levels, ValueFormat

__all__ = ["Notation"]

ORDERS = ("ymd", "dmy", "mdy")
MARKS = ("-", "/", ".")

_SIGN = r"(?:\p{Sc}|%|EUR|USD|GBP|CHF|JPY)"
_BEFORE = rf"^[(+-]?\s*({_SIGN}\s*)"
_AFTER = rf"\d[.,]?(\s*{_SIGN})\)?$"
# Digits parted by marks: the year first, or last after day and month in either order.
_YEAR_FIRST = r"^\d{4}([-/.])\d{1,2}[-/.]\d{1,2}"
_YEAR_LAST = r"^\d{1,2}([-/.])\d{1,2}[-/.]\d{2}"
_LONG_YEAR = r"^\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
_UNPADDED = r"^(?:\d[-/.]|\d{2}[-/.]\d[-/.]|\d{4}[-/.](?:\d[-/.]|\d{2}[-/.]\d(?:\D|$)))"


@dataclass(frozen=True)
class Notation:
    """How most cells of a column of numbers or dates are written.

    Attributes
    ----------
    before, after : str
        A number's sign of unit, with its space: ``"$"``, ``" %"``.
    order : str
        Parts of a date in their order, ``"ymd"``, ``"dmy"`` or ``"mdy"``.
    mark : str
        What parts them.
    padded : bool
        Whether days and months have two digits.
    short_year : bool
        Whether years have two digits.

    Examples
    --------
    >>> column = Column(pl.Series(["1.200,50 EUR", "80 EUR"]))
    >>> format = column.number_format()
    >>> Notation.of(column, format).number(-4321.0, format)
    '-4.321 EUR'
    """

    before: str = ""
    after: str = ""
    order: str = "ymd"
    mark: str = "-"
    padded: bool = True
    short_year: bool = False

    def validate(self) -> None:
        """Refuse what no column leads to."""
        if self.order not in ORDERS or self.mark not in MARKS:
            raise ValueError(f"no dates are written {self.order!r:.20} and {self.mark!r:.20}")

    @classmethod
    def of(cls, column: Column, format: ValueFormat | None) -> Notation:
        """Learn the notation of a column of that format; typed columns have the plain one."""
        if format is None or column.cells.dtype != pl.String:
            return cls()
        if isinstance(format, NumberFormat):
            if not any(format.units):
                return cls()
            return cls(_commonest(column.levels, _BEFORE), _commonest(column.levels, _AFTER))
        levels = column.levels
        unpadded = bool(levels.texts.str.contains(_UNPADDED).any())
        if mark := _commonest(levels, _YEAR_LAST, of_most=True):
            order = "dmy" if format.day_first else "mdy"
            short = 2 * _n_cells(levels, _LONG_YEAR) < _n_cells(levels, _YEAR_LAST)
            return cls("", "", order, mark, not unpadded, short)
        if mark := _commonest(levels, _YEAR_FIRST, of_most=True):
            return cls(mark=mark, padded=not unpadded)
        # Months by name: the plain notation says the same without a language.
        return cls()

    def number(self, value: float, format: NumberFormat) -> str:
        """Write a number with about four significant digits, as the column would."""
        digits = short_number(abs(value))
        if "e" not in digits:
            whole, _, part = digits.partition(".")
            if format.thousands:
                whole = f"{int(whole):,}".replace(",", format.thousands)
            digits = whole + (format.decimal + part if part else "")
        elif format.decimal == ",":
            digits = digits.replace(".", ",")
        minus = "-" if value < 0 and digits.strip("0.,") else ""
        return f"{minus}{self.before}{digits}{self.after}"

    def date(self, seconds: float, format: DateFormat) -> str:
        """Write seconds since 1970-01-01 UTC as the column would."""
        text = date_text(seconds, format.has_time)
        day, space, time = text.partition(" ")
        parts = day.split("-")
        if len(parts) != 3 or not all(part.isdigit() for part in parts):
            return text
        year, *rest = parts
        if not self.padded:
            rest = [str(int(part)) for part in rest]
        written = {"y": year[-2:] if self.short_year else year, "m": rest[0], "d": rest[1]}
        return self.mark.join(written[part] for part in self.order) + space + time


def short_number(value: float) -> str:
    """Write a number with about four significant digits.

    Examples
    --------
    >>> short_number(12345.6), short_number(0.123456)
    ('12346', '0.1235')
    """
    return f"{value:.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def _n_cells(levels: Levels, pattern: str) -> int:
    return int(levels.counts[levels.texts.str.contains(pattern).to_numpy()].sum())


def _commonest(levels: Levels, pattern: str, *, of_most: bool = False) -> str:
    """Return the text a pattern captures most often.

    Empty where most cells have none; with `of_most`, where the pattern is not in most cells.
    """
    if of_most and 2 * _n_cells(levels, pattern) <= levels.counts.sum():
        return ""
    found = levels.texts.str.extract(pattern).fill_null("").alias("found")
    counts = (
        pl.DataFrame({"found": found, "n": levels.counts}).group_by("found").agg(pl.col("n").sum())
    )
    return str(counts.sort(["n", "found"], descending=[True, False])["found"][0])
