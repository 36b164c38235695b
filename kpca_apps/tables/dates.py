"""How the dates of a column are written, and what they are.

03/04/2008 is in March or in April as the cells with a part above 12 tell. Impossible dates (31
February) stay unread, never moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.system.arrays import FloatArray

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<name>(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))\.?"
)
_WEEKDAY = r"(?:(?i:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
_TIME = (
    r"(?:(?:T|,?\s+)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2}(?:[.,][0-9]+)?))?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<zone>Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_DAY, _YEAR = r"(?P<day>[0-9]{1,2})", r"(?P<year>[0-9]{4}|[0-9]{2})"
# Shapes a cell may have. "first" and "second_part" are day and month in an order yet to be decided.
_SHAPES = (
    rf"^(?P<year>[0-9]{{4}})[-/.](?P<month>[0-9]{{1,2}})[-/.]{_DAY}{_TIME}$",
    rf"^(?P<first>[0-9]{{1,2}})(?P<mark>[-/.])(?P<second_part>[0-9]{{1,2}})[-/.]{_YEAR}{_TIME}$",
    rf"^{_WEEKDAY}{_DAY}(?:st|nd|rd|th|\.)?[-/\s]*{_MONTH}[-/,\s]*{_YEAR}{_TIME}$",
    rf"^{_WEEKDAY}{_MONTH}[-/\s]*{_DAY}(?:st|nd|rd|th)?,?[-/\s]+{_YEAR}{_TIME}$",
)
_PARTS = (
    *("year", "short", "month", "day", "first", "second_part", "dots"),
    *("hour", "minute", "second", "half", "offset"),
)
# What a library reads many times faster than the shapes above.
_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?Z?)?$"
_PIVOT = 69  # two-digit years 69-99 are 1969-1999, 00-68 are 2000-2068 (POSIX)


@dataclass(frozen=True)
class DateFormat:
    """How the dates of one column are written."""

    day_first: bool = False  # 03/04/2008 is the 3rd of April
    decided_by: str = ""  # "cells" (some part above 12), "option", "default"; "": it never mattered
    has_time: bool = False  # of day, in some cell
    short_years: bool = False  # some year has two digits

    def describe(self) -> str:
        """Name what had to be decided, for a report; ``""`` where nothing had."""
        order = "day before month" if self.day_first else "month before day"
        parts = [order] if self.decided_by else []
        return ", ".join([*parts, "two-digit years"] if self.short_years else parts)


def infer_date_format(texts: pl.Series, day_first: bool | None = None) -> DateFormat | None:
    """Infer how dates are written in stripped cells; ``None`` where none has the shape of a date.

    Where the cells leave it open and nobody says whether the day is first, it is so if dots
    separate the parts: nobody writes the month first so.
    """
    distinct = texts.drop_nulls().unique(maintain_order=True)
    is_iso = np.isfinite(_iso_seconds(distinct))
    parts = _parts(distinct.filter(~is_iso))
    if not is_iso.any() and not np.isfinite(parts["year"]).any():
        return None
    timed = np.isfinite(parts["hour"]).any() or distinct.filter(is_iso).str.contains(":").any()
    rest = bool(timed), bool((parts["short"] > 0).any())
    first, second = parts["first"], parts["second_part"]
    if not np.isfinite(first).any():
        return DateFormat(False, "", *rest)
    n_day_first, n_month_first = int((first > 12).sum()), int((second > 12).sum())
    if n_day_first != n_month_first:
        return DateFormat(n_day_first > n_month_first, "cells", *rest)
    if day_first is not None:
        return DateFormat(day_first, "option", *rest)
    return DateFormat(bool(np.nanmax(parts["dots"]) > 0), "default", *rest)


def read_dates(texts: pl.Series, format: DateFormat) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Read stripped cells as seconds since 1970-01-01 UTC, and tell which have the shape of a date.

    NaN where there is none, or one of a day that does not exist. A time without an offset is UTC.
    """
    seconds = _iso_seconds(texts)
    shaped = np.isfinite(seconds)
    rest = np.flatnonzero(~shaped)
    if rest.size:
        parts = _parts(texts.gather(rest))
        shaped[rest], seconds[rest] = np.isfinite(parts["year"]), _seconds(parts, format.day_first)
    return seconds, shaped


def date_text(seconds: float, has_time: bool = True) -> str:
    """Write seconds since 1970-01-01 as an ISO 8601 date, with the time where it says something."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=round(seconds))
    except OverflowError:
        return f"{seconds / 86400:.6g} days after 1970-01-01"
    if not has_time or (moment.hour, moment.minute, moment.second) == (0, 0, 0):
        return moment.date().isoformat()
    return moment.replace(tzinfo=None).isoformat(sep=" ")


def _iso_seconds(texts: pl.Series) -> FloatArray:
    """Seconds of plain ISO 8601 dates and times; NaN for all else, impossible dates too."""
    iso = pl.select(pl.when(texts.str.contains(_ISO)).then(texts)).to_series()
    days = iso.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    seconds = days.cast(pl.Int32).cast(pl.Float64).fill_null(np.nan).to_numpy() * 86400
    if iso.str.contains(":", literal=True).any():
        for start, unit in ((11, 3600), (14, 60), (17, 1)):
            part = iso.str.slice(start, 2).cast(pl.Float64, strict=False).fill_null(0)
            seconds = seconds + part.to_numpy() * unit
    # No year 0, which the library would take.
    return np.where(seconds >= -62135596800, seconds, np.nan)


def _parts(texts: pl.Series) -> dict[str, FloatArray]:
    """Parts of each cell as numbers, NaN where absent.

    "dots" tells whether dots separate them, "short" whether the year has two digits.
    """
    parts = {name: np.full(texts.len(), np.nan) for name in _PARTS}
    left = np.flatnonzero(texts.is_not_null().to_numpy())
    for shape in _SHAPES:
        hit = texts.gather(left).str.contains(shape).to_numpy()
        if hit.any():
            rows, left = left[hit], left[~hit]
            groups = texts.gather(rows).str.extract_groups(shape).struct.unnest()
            for name in groups.columns:
                for part, values in _as_numbers(name, groups[name]).items():
                    parts[part][rows] = values.to_numpy()
    return parts


def _as_numbers(name: str, text: pl.Series) -> dict[str, pl.Series]:
    """Turn a captured group into numbers under the names of `_PARTS`."""
    if name == "name":
        order = {month: float(i) for i, month in enumerate(_MONTHS, start=1)}
        lower = text.str.slice(0, 3).str.to_lowercase()
        return {"month": lower.replace_strict(order, return_dtype=pl.Float64)}
    if name == "year":
        year, short = text.cast(pl.Float64), (text.str.len_chars() == 2).cast(pl.Float64)
        century = 1900 + 100 * (year < _PIVOT).cast(pl.Float64)
        return {"year": year + short * century, "short": short}
    if name == "mark":
        return {"dots": (text == ".").cast(pl.Float64)}
    if name == "half":
        return {"half": text.str.to_lowercase().str.starts_with("p").cast(pl.Float64)}
    if name == "zone":
        written = text.str.extract_groups(r"^([+-])([0-9]{2}):?([0-9]{2})?$").struct.unnest()
        sign, hours, minutes = written.iter_columns()
        size = hours.cast(pl.Float64) * 3600 + minutes.cast(pl.Float64).fill_null(0) * 60
        return {"offset": (size * (1 - 2 * (sign == "-").cast(pl.Float64))).fill_null(0)}
    return {name: text.str.replace(",", ".", literal=True).cast(pl.Float64)}


def _seconds(parts: dict[str, FloatArray], day_first: bool) -> FloatArray:
    """Seconds since 1970-01-01 UTC, NaN for what is no date or no possible one."""
    year, half = parts["year"], parts["half"]
    pair = (parts["second_part"], parts["first"])
    ordered = np.isfinite(parts["first"])
    month = np.where(ordered, pair[0] if day_first else pair[1], parts["month"])
    day = np.where(ordered, pair[1] if day_first else pair[0], parts["day"])
    on_clock = np.isnan(half) | ((parts["hour"] >= 1) & (parts["hour"] <= 12))
    hour = np.where(np.isnan(half), parts["hour"], parts["hour"] % 12 + 12 * half)
    hour, minute, second, offset = map(
        np.nan_to_num, (hour, parts["minute"], parts["second"], parts["offset"])
    )
    possible = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(possible, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    start, end = months.astype("datetime64[D]"), (months + 1).astype("datetime64[D]")
    possible &= day <= (end - start).astype(np.int64)
    possible &= on_clock & (hour < 24) & (minute < 60) & (second < 60)
    days = start.astype(np.int64) + day - 1
    seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset
    return np.where(possible, seconds, np.nan)
