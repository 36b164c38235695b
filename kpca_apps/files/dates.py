"""Cells that hold dates and times: ISO 8601, day/month/year in either order, month names.

What a single cell cannot tell (is 03/04/2008 in March or in April?) is decided for the whole column
from the cells with a part above 12. Impossible dates (31 February) stay unread, never moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["DateFormat", "date_text", "infer_date_format", "read_dates"]

FloatArray = NDArray[np.float64]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<name>(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))\.?"
)
_WEEKDAY = r"(?:(?i:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
_TIME = (
    r"(?:(?:T|,?\s+)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?"
)
_YEAR = r"(?P<year>\d{4}|\d{2})"
# Shapes a cell may have. "first" and "second" are day and month in an order yet to be decided.
_SHAPES = (
    rf"^(?P<year>\d{{4}})[-/.](?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}}){_TIME}$",
    rf"^(?P<first>\d{{1,2}})(?P<mark>[-/.])(?P<second_part>\d{{1,2}})[-/.]{_YEAR}{_TIME}$",
    rf"^{_WEEKDAY}(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?[-/\s]*{_MONTH}[-/,\s]*{_YEAR}{_TIME}$",
    rf"^{_WEEKDAY}{_MONTH}[-/\s]*(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?[-/\s]+{_YEAR}{_TIME}$",
)
_PIVOT = 69  # two-digit years 69-99 are 1969-1999, 00-68 are 2000-2068 (POSIX)


@dataclass(frozen=True)
class DateFormat:
    """How the dates of one column are written.

    Attributes
    ----------
    day_first : bool
        Whether 03/04/2008 is the 3rd of April.
    decided_by : str
        ``"cells"`` (some part above 12), ``"option"`` or ``"default"``; ``""`` where the order
        never mattered.
    has_time : bool
        Whether any cell carries a time of day.
    short_years : bool
        Whether any year has two digits.
    """

    day_first: bool = False
    decided_by: str = ""
    has_time: bool = False
    short_years: bool = False

    def describe(self) -> str:
        """Name what had to be decided, for a report; ``""`` where nothing had.

        Examples
        --------
        >>> DateFormat(day_first=True, decided_by="cells").describe()
        'day before month'
        """
        parts = (
            []
            if not self.decided_by
            else ["day before month" if self.day_first else "month before day"]
        )
        if self.short_years:
            parts.append("two-digit years")
        return ", ".join(parts)


def infer_date_format(cells: pl.Series, day_first: bool | None = None) -> DateFormat | None:
    """Infer how dates are written.

    Parameters
    ----------
    cells : Series of String
        Stripped cells, null where missing.
    day_first : bool or None
        The order to take where the cells leave it open; ``None``: day first if the parts are
        separated by dots (nobody writes the month first so), else month first.

    Returns
    -------
    DateFormat or None
        ``None`` where no cell has the shape of a date.

    Examples
    --------
    >>> infer_date_format(pl.Series(["03/04/2008", "25/12/2008"])).day_first
    True
    """
    parts = _parts(cells.drop_nulls().unique(maintain_order=True))
    if not np.isfinite(parts["year"]).any():
        return None
    timed = bool(np.isfinite(parts["hour"]).any())
    short = bool((parts["short"] > 0).any())
    first, second = parts["first"], parts["second_part"]
    if not np.isfinite(first).any():
        return DateFormat(has_time=timed, short_years=short)
    n_day_first, n_month_first = int((first > 12).sum()), int((second > 12).sum())
    if n_day_first != n_month_first:
        return DateFormat(n_day_first > n_month_first, "cells", timed, short)
    if day_first is not None:
        return DateFormat(day_first, "option", timed, short)
    return DateFormat(bool(np.nanmax(parts["dots"]) > 0), "default", timed, short)


def read_dates(cells: pl.Series, format: DateFormat) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Read cells as seconds since 1970-01-01 UTC.

    Parameters
    ----------
    cells : Series of String
        Stripped cells, null where missing.
    format : DateFormat
        The column's format.

    Returns
    -------
    seconds : (n,) array
        NaN where a cell is missing, has no shape of a date, or names a day that does not exist.
        A time without an offset counts as UTC.
    shaped : (n,) bool array
        Cells with the shape of a date, possible or not.

    Examples
    --------
    >>> seconds, shaped = read_dates(pl.Series(["1970-01-02", "1970-02-31", "soon"]), DateFormat())
    >>> seconds.tolist(), shaped.tolist()
    ([86400.0, nan, nan], [True, True, False])
    """
    distinct = cells.unique(maintain_order=True)
    parts = _parts(distinct)
    if format.day_first:
        day, month = parts["first"], parts["second_part"]
    else:
        month, day = parts["first"], parts["second_part"]
    ordered = np.isfinite(parts["first"])
    seconds = _seconds(
        parts, np.where(ordered, month, parts["month"]), np.where(ordered, day, parts["day"])
    )
    table = pl.DataFrame({"cell": distinct, "at": seconds, "shaped": np.isfinite(parts["year"])})
    joined = (
        cells.alias("cell")
        .to_frame()
        .join(table, on="cell", how="left", nulls_equal=True, maintain_order="left")
    )
    return joined["at"].to_numpy(), joined["shaped"].to_numpy()


def date_text(seconds: float, has_time: bool = True) -> str:
    """Write seconds since 1970-01-01 as an ISO 8601 date, with the time where it says something.

    Examples
    --------
    >>> date_text(86400.0), date_text(86400.0 + 3661)
    ('1970-01-02', '1970-01-02 01:01:01')
    """
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=round(seconds))
    except OverflowError:
        return f"{seconds / 86400:.6g} days after 1970-01-01"
    if not has_time or (moment.hour, moment.minute, moment.second) == (0, 0, 0):
        return moment.date().isoformat()
    return moment.replace(tzinfo=None).isoformat(sep=" ")


def _parts(cells: pl.Series) -> dict[str, FloatArray]:
    """Parts of each cell as numbers, NaN where absent.

    "dots" tells whether dots separate them, "short" whether the year has two digits.
    """
    names = (
        *("year", "short", "month", "day", "first", "second_part", "dots"),
        *("hour", "minute", "second", "half", "offset"),
    )
    parts = {name: np.full(cells.len(), np.nan) for name in names}
    open_cells = np.flatnonzero(cells.is_not_null().to_numpy())
    for shape in _SHAPES:
        left = cells.gather(open_cells)
        hit = left.str.contains(shape).to_numpy()
        if not hit.any():
            continue
        rows, open_cells = open_cells[hit], open_cells[~hit]
        groups = cells.gather(rows).str.extract_groups(shape).struct.unnest()
        for name, values in _as_numbers(groups).items():
            parts[name][rows] = values
    return parts


def _as_numbers(groups: pl.DataFrame) -> dict[str, FloatArray]:
    """Turn captured groups into numbers under the names of `_parts`."""
    numbers: dict[str, FloatArray] = {}
    for name in groups.columns:
        text = groups[name]
        if name == "name":
            order = {month: float(i) for i, month in enumerate(_MONTHS, start=1)}
            lower = text.str.slice(0, 3).str.to_lowercase()
            numbers["month"] = lower.replace_strict(order, return_dtype=pl.Float64).to_numpy()
        elif name == "year":
            year = text.cast(pl.Float64).to_numpy()
            short = (text.str.len_chars() == 2).to_numpy()
            century = np.where(year < _PIVOT, 2000, 1900)
            numbers["year"] = np.where(short, year + century, year)
            numbers["short"] = short.astype(np.float64)
        elif name == "mark":
            numbers["dots"] = (text == ".").cast(pl.Float64).to_numpy()
        elif name == "half":
            afternoon = text.str.to_lowercase().str.starts_with("p")
            numbers["half"] = afternoon.cast(pl.Float64).to_numpy()
        elif name == "zone":
            numbers["offset"] = _offset_seconds(text)
        else:
            plain = text.str.replace(",", ".", literal=True)
            numbers[name] = plain.cast(pl.Float64).to_numpy()
    return numbers


def _offset_seconds(zone: pl.Series) -> FloatArray:
    """Offset from UTC in seconds, 0 where none is written."""
    parts = zone.str.extract_groups(r"^([+-])(\d{2}):?(\d{2})?$").struct.unnest()
    sign, hours, minutes = parts.iter_columns()
    size = hours.cast(pl.Float64) * 3600 + minutes.cast(pl.Float64).fill_null(0) * 60
    return (
        (size * pl.select(pl.when(sign == "-").then(-1).otherwise(1)).to_series())
        .fill_null(0)
        .to_numpy()
    )


def _seconds(parts: dict[str, FloatArray], month: FloatArray, day: FloatArray) -> FloatArray:
    """Seconds since 1970-01-01 UTC, NaN for what is no date or no possible one."""
    year = parts["year"]
    hour, half = parts["hour"], parts["half"]
    on_clock = np.isnan(half) | ((hour >= 1) & (hour <= 12))
    hour = np.where(np.isnan(half), hour, hour % 12 + 12 * half)
    hour, minute, second, offset = (
        np.nan_to_num(part) for part in (hour, parts["minute"], parts["second"], parts["offset"])
    )
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    possible = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    at = np.where(possible, month, 1).astype(np.int64)
    lengths = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    possible &= day <= lengths[at - 1] + ((at == 2) & leap)
    possible &= on_clock & (hour < 24) & (minute < 60) & (second < 60)
    # Years that start in March put the leap day last, so days before a month are a formula.
    shifted = np.where(at <= 2, year - 1, year)
    since_march = np.floor((153 * ((at + 9) % 12) + 2) / 5)
    leaps = np.floor(shifted / 4) - np.floor(shifted / 100) + np.floor(shifted / 400)
    days = 365 * shifted + leaps + since_march + day - 1 - 719468
    seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset
    return np.where(possible, seconds, np.nan)
