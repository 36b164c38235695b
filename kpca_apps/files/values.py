"""From the cells of a column to values: numbers, dates, or text, with what is missing set apart.

Cells of text files come as they stand in the file; columns of typed files (Parquet, Excel) come as
numbers, dates or Booleans. Both end in the same `Readings`, so a model fitted on one kind of file
scores the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.files.dates import DateFormat, date_text, read_dates
from kpca_apps.files.numbers import NumberFormat, read_numbers

__all__ = [
    "MISSING_WORDS",
    "Readings",
    "ValueFormat",
    "cell_text",
    "read_texts",
    "read_values",
    "why_unreadable",
]

ValueFormat = NumberFormat | DateFormat

# Words that stand for "no value" in any language of software, compared stripped and without case.
# A column in which one of them is a real level ("none" for no garage) loses nothing: there it is
# text, and missing text is a level of its own. "0", "-1" and "999" are never guessed at.
MISSING_WORDS = frozenset(
    {"", "na", "n/a", "#n/a", "n.a.", "nan", "null", "nil", "none", "missing", "?", "-", "--", "."}
)
_LARGEST = 1e100


@dataclass(frozen=True)
class Readings:
    """What the cells of a column say.

    Attributes
    ----------
    values : (n,) array
        Numbers, or seconds since 1970-01-01 UTC; NaN where there is none.
    missing : (n,) bool array
        Cells that are empty or hold a word for missing.
    unreadable : (n,) bool array
        Cells that hold something else which cannot be read as a value, or whose size exceeds
        1e100 (infinity too): no measurement, and its square would leave the range of floats.
    """

    values: NDArray[np.float64]
    missing: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]


def read_texts(cells: pl.Series) -> pl.Series:
    """Cells as stripped text, null where missing.

    Parameters
    ----------
    cells : Series
        Text, or any typed column whose values have a text (numbers, Booleans, dates, categories).

    Returns
    -------
    Series of String

    Examples
    --------
    >>> read_texts(pl.Series([" a ", "N/A", None, "b"])).to_list()
    ['a', None, None, 'b']
    """
    text = pl.lit(cells)
    if cells.dtype.is_float():
        # A level stored as 3.0 is the level "3" of a text file, whatever the other cells hold.
        number = text.fill_nan(None)
        whole = number.cast(pl.Int64, strict=False)
        is_whole = (whole.cast(cells.dtype) == number).fill_null(False)
        text = pl.when(is_whole).then(whole.cast(pl.String)).otherwise(number.cast(pl.String))
    text = text.cast(pl.String).str.strip_chars()
    word = text.str.to_lowercase().is_in(list(MISSING_WORDS))
    # In one query: most of the time of a narrow column is that of asking.
    return pl.select(pl.when(~word).then(text).alias(cells.name)).to_series()


def read_values(cells: pl.Series, format: ValueFormat) -> Readings:
    """Read a column by its format, whatever the type it comes in.

    Parameters
    ----------
    cells : Series
        Text, numbers, Booleans, dates, or times of day and durations (read as seconds).
    format : NumberFormat or DateFormat
        The column's format, inferred earlier, perhaps on another table.

    Returns
    -------
    Readings

    Examples
    --------
    >>> readings = read_values(pl.Series(["1,5", "?", "x"]), NumberFormat(decimal=","))
    >>> readings.values.tolist(), readings.unreadable.tolist()
    ([1.5, nan, nan], [False, False, True])
    """
    is_date = isinstance(format, DateFormat)
    if cells.dtype == pl.Duration:
        cells = cells.dt.total_microseconds() / 1e6
    elif cells.dtype == pl.Time:
        cells = cells.cast(pl.Int64) / 1e9
    if cells.dtype.is_temporal():
        values = _epoch_seconds(cells) if is_date else np.full(cells.len(), np.nan)
        missing = cells.is_null().to_numpy()
    elif cells.dtype.is_numeric() or cells.dtype == pl.Boolean:
        # Null becomes NaN on the way.
        floats = cells.cast(pl.Float64).to_numpy()
        missing = np.isnan(floats)
        values = np.full(cells.len(), np.nan) if is_date else floats
    else:
        text = read_texts(cells)
        missing = text.is_null().to_numpy()
        if isinstance(format, DateFormat):
            values, _ = read_dates(text, format)
        else:
            values = read_numbers(text, format).fill_null(np.nan).to_numpy()
    values = np.where(np.abs(values) <= _LARGEST, values, np.nan)
    return Readings(values, missing, ~missing & np.isnan(values))


def why_unreadable(cells: pl.Series, format: ValueFormat) -> str:
    """Say what keeps cells from being read, where one thing keeps them all.

    Parameters
    ----------
    cells : Series
        Cells that `read_values` calls unreadable.
    format : NumberFormat or DateFormat
        The format they were read by.

    Returns
    -------
    str
        Words to append to a message; empty where there is nothing to say but the cells themselves.

    Examples
    --------
    >>> why_unreadable(pl.Series(["1,288", "0,5"]), NumberFormat())
    'written with a comma where the decimal mark is a point'
    >>> why_unreadable(pl.Series(["1e300"]), NumberFormat())
    'larger than 1e100'
    """
    if isinstance(format, DateFormat) or not (cells.dtype.is_numeric() or cells.dtype == pl.String):
        return ""
    text = read_texts(cells)
    if cells.dtype.is_numeric() or read_numbers(text, format).is_not_null().all():
        return "larger than 1e100"
    marks = {".": "point", ",": "comma"}
    other = "," if format.decimal == "." else "."
    if read_numbers(text, NumberFormat(other, format.decimal)).is_not_null().all():
        mark, expected = marks[other], marks[format.decimal]
        return f"written with a {mark} where the decimal mark is a {expected}"
    return ""


def cell_text(cells: pl.Series, row: int) -> str:
    """Write one cell as it stands in the table; ``""`` for null.

    Examples
    --------
    >>> cell_text(pl.Series([0.1, None]), 0), cell_text(pl.Series([0.1, None]), 1)
    ('0.1', '')
    """
    value = cells[row]
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if cells.dtype in (pl.Date, pl.Datetime):
        return date_text(float(_epoch_seconds(cells.slice(row, 1))[0]))
    return str(value)


def _epoch_seconds(cells: pl.Series) -> NDArray[np.float64]:
    """Seconds since 1970-01-01 UTC of dates and date-times, NaN for null."""
    micros = cells.cast(pl.Datetime("us")) if cells.dtype == pl.Date else cells
    return micros.dt.epoch("us").cast(pl.Float64).fill_null(np.nan).to_numpy() / 1e6
