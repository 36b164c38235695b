"""From the cells of a column to values: numbers, dates, or text, and which are missing.

Cells of text files come as they stand in the file; columns of typed files (Parquet, Excel) come as
numbers, dates or Booleans. Both end in the same `Readings`, so a model fitted on one kind of file
scores the other. A `Column` reads its cells once, however many ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.dates import DateFormat, date_text, infer_date_format, read_dates
from kpca_apps.tables.numbers import NumberFormat, finite, infer_number_format, read_numbers

__all__ = [
    "MISSING_WORDS",
    "Column",
    "DateFormat",
    "Levels",
    "NumberFormat",
    "Readings",
    "ValueFormat",
    "date_text",
]


# Words that stand for "no value" in any language of software, compared stripped and without case.
# A column in which one of them is a real level ("none" for no garage) loses nothing: there it is
# text, and missing text is a level of its own. "0", "-1" and "999" are never guessed at.
MISSING_WORDS = frozenset(
    {"", "na", "n/a", "#n/a", "n.a.", "nan", "null", "nil", "none", "missing", "?", "-", "--", "."}
)
_LARGEST = 1e100
# Texts of which these many differ hardly repeat: each is looked at by itself.
_FIRST_CELLS, _DIFFERENT = 1_000, 500

ValueFormat = NumberFormat | DateFormat


@dataclass(frozen=True)
class Readings:
    """What the cells of a column say."""

    values: FloatArray  # (n,), numbers or seconds since 1970-01-01 UTC; NaN where there is none
    missing: BoolArray  # (n,), empty or a word for missing
    # (n,), something else that is no value, or larger than 1e100 (infinity too): no measurement,
    # and its square would leave the range of floats.
    unreadable: BoolArray

    @property
    def ordered(self) -> FloatArray:
        """The values without gaps, increasing; not kept, which would double the memory."""
        return np.sort(self.values[~np.isnan(self.values)])


@dataclass(frozen=True)
class Levels:
    """The distinct texts of a column."""

    texts: pl.Series  # (k,), stripped, in the order they first occur; words for missing are none
    codes: NDArray[np.int32]  # (n,), place of each cell's text, -1 where it is missing

    @cached_property
    def counts(self) -> IntArray:
        """Cells of each text."""
        return np.bincount(self.codes + 1, minlength=len(self.texts) + 1)[1:]

    def each(self, of_texts: NDArray[Any], of_missing: object) -> NDArray[Any]:
        """Return for every cell what belongs to its text (k,), or to a missing cell."""
        return np.append(of_texts, np.array([of_missing], of_texts.dtype))[self.codes]

    def most_frequent(self, count: int | None = None) -> list[tuple[str, int]]:
        """Return the most frequent texts and their cells; of equals, in alphabetical order."""
        pairs = zip(self.texts, self.counts.tolist(), strict=True)
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:count]

    def lower(self) -> Levels:
        """Return the levels in lower case."""
        return _levels(self.texts.str.to_lowercase(), self.codes)


class Column:
    """The cells of one column of a table, read when first asked for and kept.

    Text, numbers, Booleans, dates, times of day and durations (read as seconds), categories.
    """

    def __init__(self, cells: pl.Series) -> None:
        self.cells, self.name = cells, cells.name
        self._read: dict[object, Readings] = {}

    def __len__(self) -> int:
        return self.cells.len()

    @cached_property
    def texts(self) -> pl.Series:
        """Cells as stripped text, null where missing."""
        return _stripped(_written(self.cells)).alias(self.name)

    @cached_property
    def levels(self) -> Levels:
        """Their distinct texts."""
        cells = _written(self.cells)
        if cells.head(_FIRST_CELLS).n_unique() > _DIFFERENT:
            return _levels(self.texts)
        written = _levels(cells)
        return _levels(_stripped(written.texts), written.codes)

    def number_format(self, prefer_comma: bool = False) -> NumberFormat | None:
        """Infer how numbers are written (see `infer_number_format`); typed ones have no format."""
        if _typed(self.cells) is not None:
            format = NumberFormat(clock=self.cells.dtype == pl.Time)
            return format if self.cells.null_count() < len(self) else None
        if not prefer_comma and not len(self._plain[2]):
            return None if self._plain[1].all() else NumberFormat()
        return infer_number_format(self.levels.texts, prefer_comma, self.levels.counts)

    def date_format(self, day_first: bool | None = None) -> DateFormat | None:
        """Infer how dates are written (see `infer_date_format`)."""
        if self.cells.dtype.is_temporal():
            return DateFormat(has_time=self.cells.dtype != pl.Date)
        return infer_date_format(self.levels.texts, day_first)

    def n_like_dates(self, format: DateFormat) -> int:
        """Count the cells with the shape of a date, possible or not."""
        return int(self.levels.counts[read_dates(self.levels.texts, format)[1]].sum())

    def read(self, format: ValueFormat | None) -> Readings:
        """Read the cells by a format, inferred here or on another table; ``None`` for text."""
        key: object = None
        if isinstance(format, DateFormat):
            key = format.day_first
        elif format is not None:
            key = (format.decimal, format.thousands, format.word, format.clock)
        if key in self._read:
            return self._read[key]
        if (typed := _typed(self.cells)) is not None:
            values, is_date = typed
            missing = np.isnan(values)
            if format is None or is_date != isinstance(format, DateFormat):
                values = np.full(len(values), np.nan)
        elif isinstance(format, DateFormat):
            levels = self.levels
            values, missing = (
                levels.each(read_dates(levels.texts, format)[0], np.nan),
                levels.codes < 0,
            )
        elif format is not None and format.decimal == "." and not format.clock:
            values, missing, places, texts = self._plain
            if len(places):
                values = values.copy()
                values[places] = read_numbers(texts, format)
        else:
            missing = self.texts.is_null().to_numpy()
            values = np.full(len(missing), np.nan)
            if format is not None:
                values = read_numbers(self.texts, format)
        large = np.abs(values) > _LARGEST
        if large.any():
            values = np.where(large, np.nan, values)
        unreadable = np.isnan(values) & ~missing & (key is not None)
        self._read[key] = Readings(values, missing, unreadable)
        return self._read[key]

    def text(self, row: int) -> str:
        """Write one cell as it stands in the table; ``""`` for null."""
        value = self.cells[row]
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.cells.dtype in (pl.Date, pl.Datetime):
            return date_text(float(_epoch_seconds(self.cells.slice(row, 1))[0]))
        return str(value)

    def take(self, rows: IntArray) -> Column:
        """Return some of the cells."""
        return Column(self.cells.gather(rows))

    def why_unreadable(self, format: ValueFormat) -> str:
        """Say what keeps cells that are all unreadable from being read, where it is one thing."""
        is_number = self.cells.dtype.is_numeric()
        if isinstance(format, DateFormat) or not (is_number or self.cells.dtype == pl.String):
            return ""
        if is_number or not np.isnan(read_numbers(self.texts, format)).any():
            return "larger than 1e100"
        marks = {".": "point", ",": "comma"}
        other = "," if format.decimal == "." else "."
        if not np.isnan(read_numbers(self.texts, NumberFormat(other, format.decimal))).any():
            mark, expected = marks[other], marks[format.decimal]
            return f"written with a {mark} where the decimal mark is a {expected}"
        return ""

    @cached_property
    def _plain(self) -> tuple[FloatArray, BoolArray, IntArray, pl.Series]:
        """Numbers as a computer writes them, missing cells, and places and texts of all others.

        Most columns hold nothing else: their cells need no stripping and no look for words.
        """
        cells = _written(self.cells)
        values = finite(cells)
        missing = np.zeros(len(values), dtype=np.bool_)
        rest = np.flatnonzero(np.isnan(values))
        if not len(rest):
            return values, missing, rest, pl.Series([], dtype=pl.String)
        texts, values = _stripped(cells.gather(rest)), values.copy()
        missing[rest], values[rest] = texts.is_null().to_numpy(), finite(texts)
        other = ~missing[rest] & np.isnan(values[rest])
        return values, missing, rest[other], texts.filter(other)


def _typed(cells: pl.Series) -> tuple[FloatArray, bool] | None:
    """Values of typed cells, NaN for null, and whether they are dates; ``None`` for text."""
    if cells.dtype in (pl.Date, pl.Datetime):
        return _epoch_seconds(cells), True
    if cells.dtype == pl.Duration:
        return (cells.dt.total_microseconds() / 1e6).to_numpy(), False
    if cells.dtype == pl.Time:
        return (cells.cast(pl.Int64) / 1e9).to_numpy(), False
    if cells.dtype.is_numeric() or cells.dtype == pl.Boolean:
        return cells.cast(pl.Float64).to_numpy(), False
    return None


def _written(cells: pl.Series) -> pl.Series:
    """Cells as text; a level stored as 3.0 is the level "3" of a text file."""
    if not cells.dtype.is_float():
        return cells if cells.dtype == pl.String else cells.cast(pl.String)
    number = cells.fill_nan(None)
    whole = number.cast(pl.Int64, strict=False)
    is_whole = (whole.cast(cells.dtype) == number).fill_null(False)
    either = pl.when(is_whole).then(whole.cast(pl.String)).otherwise(number.cast(pl.String))
    return pl.select(either).to_series()


def _stripped(cells: pl.Series) -> pl.Series:
    text = pl.lit(cells).str.strip_chars()
    word = text.str.to_lowercase().is_in(list(MISSING_WORDS))
    # In one query: most of the time of a narrow column is that of asking.
    return pl.select(pl.when(~word).then(text).alias(cells.name)).to_series()


def _levels(cells: pl.Series, codes: NDArray[np.int32] | None = None) -> Levels:
    """Levels of texts that may be missing or equal, or of cells with these `codes` among them."""
    texts = cells.unique(maintain_order=True).drop_nulls()
    of_cells = cells.cast(pl.Enum(texts)).to_physical().cast(pl.Int32).fill_null(-1)
    places = of_cells.to_numpy()
    return Levels(texts, places if codes is None else np.append(places, np.int32(-1))[codes])


def _epoch_seconds(cells: pl.Series) -> FloatArray:
    """Seconds since 1970-01-01 UTC of dates and date-times, NaN for null."""
    micros = cells.cast(pl.Datetime("us")) if cells.dtype == pl.Date else cells
    return micros.dt.epoch("us").cast(pl.Float64).fill_null(np.nan).to_numpy() / 1e6
