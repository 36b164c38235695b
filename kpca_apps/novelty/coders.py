"""One column's cells to matrix columns and back: values (numbers, dates, text) and levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.files.dates import DateFormat
from kpca_apps.files.numbers import NumberFormat
from kpca_apps.files.values import Readings, cell_text, read_texts, read_values
from kpca_apps.novelty.magnitudes import varies
from kpca_apps.novelty.notation import Notation
from kpca_apps.novelty.roles import least_level_count
from kpca_apps.novelty.specs import LEVEL_ROLES, ColumnSpec

__all__ = ["MISSING", "OTHER", "LevelCoder", "ValueCoder", "read_column"]

FloatArray = NDArray[np.float64]

MISSING = "(missing)"
OTHER = "(other)"
_MAX_LEVELS = 50
_LARGEST_SCALE = 1e3  # far beyond what `fit` computes: (2 / 1e-3)^(1/4) / sqrt(2)
_N_FEATURES = 5  # of a date, or of a text
_DAY = 86400.0


@dataclass(frozen=True)
class ValueCoder:
    """A column of numbers, dates or free text as one or more values a row.

    Attributes
    ----------
    spec : ColumnSpec
        The column.
    features : tuple of int
        Which of its possible features are kept: the first, and those that vary.
    gap : bool
        Whether one more matrix column tells missing cells (0 or 1).
    notation : Notation
        How its cells are written.
    """

    spec: ColumnSpec
    features: tuple[int, ...]
    gap: bool
    notation: Notation

    def validate(self) -> None:
        """Refuse features that the column has not."""
        n_possible = 1 if isinstance(self.spec.format, NumberFormat) else _N_FEATURES
        kept = self.features
        if kept[:1] != (0,) or list(kept) != sorted({*kept} & set(range(n_possible))):
            raise ValueError(f"a {self.spec.role} column has no features {kept!r:.60}")
        if self.spec.role in LEVEL_ROLES:
            raise ValueError(f"a {self.spec.role} column of values")

    @classmethod
    def fit(cls, cells: pl.Series, spec: ColumnSpec, gaps_tell: bool) -> ValueCoder:
        """Choose the features that vary in the column."""
        values = _values(cells, spec)
        seen = values[~np.isnan(values[:, 0])]
        # Times of day are taken from days since 1970, and are as exact as those.
        is_date = isinstance(spec.format, DateFormat)
        size = float(np.abs(seen[:, 0]).max(initial=0.0)) if is_date else None
        kept = tuple(j for j in range(values.shape[1]) if j == 0 or varies(seen[:, j], size))
        gap = gaps_tell and len(seen) < len(values)
        return cls(spec, kept, gap, Notation.of(cells, spec.format))

    @property
    def n_values(self) -> int:
        """Matrix columns that hold values, before the one for gaps."""
        return len(self.features)

    @property
    def width(self) -> int:
        """Matrix columns in all."""
        return self.n_values + self.gap

    def encode(self, cells: pl.Series) -> FloatArray:
        """Turn cells into (n, width) numbers; values are NaN where missing."""
        values = _values(cells, self.spec)[:, list(self.features)]
        if not self.gap:
            return values
        return np.column_stack([values, np.isnan(values[:, 0])])

    def describe(self, values: FloatArray) -> tuple[str, float | str | None]:
        """Write an expected value as text, as the column would, and as a number to draw."""
        if self.gap and values[-1] > 0.5:
            return MISSING, None
        format = self.spec.format
        if isinstance(format, DateFormat):
            seconds = float(values[0]) * _DAY
            return self.notation.date(seconds, format), seconds
        if format is None:
            return self._describe_text(values), None
        return self.notation.number(float(values[0]), format), float(values[0])

    def seen(self, cells: pl.Series, row: int) -> tuple[str, float | str | None]:
        """Write the value of one row as it stands in the table, and as a number to draw."""
        cell, text = cells.slice(row, 1), cell_text(cells, row)
        if self.spec.format is None:
            return (MISSING, None) if read_texts(cell)[0] is None else (text, None)
        readings = read_values(cell, self.spec.format)
        if readings.missing[0]:
            return MISSING, None
        if readings.unreadable[0]:
            kind = "date" if isinstance(self.spec.format, DateFormat) else "number"
            return f"{text} (not a {kind})", None
        return text, float(readings.values[0])

    def _describe_text(self, values: FloatArray) -> str:
        parts = [f"about {values[0]:.0f} characters"]
        if 1 in self.features:
            n_words = f"{values[self.features.index(1)]:.0f}"
            parts.append("1 word" if n_words == "1" else f"{n_words} words")
        return ", ".join(parts)


@dataclass(frozen=True)
class LevelCoder:
    """A column of categories as one indicator a level; exactly one is set in each row.

    Two rows of different levels lie at squared distance d2 = sqrt(2/g), g = 1 - sum p^2, so that a
    column of many balanced levels and one of a dominant level weigh alike, and no rare level
    dominates as it does with standardised indicators.

    Attributes
    ----------
    spec : ColumnSpec
        The column.
    levels : tuple of str
        Levels with an indicator of their own; then come "other" and, if `has_missing`, "missing".
    has_missing : bool
        Whether missing is a level. Otherwise a missing cell counts as "other".
    scale : float
        What a set indicator holds: sqrt(d2 / 2).
    spellings : tuple of str
        How each level is written most often: levels of a Boolean column are in lower case.
    """

    spec: ColumnSpec
    levels: tuple[str, ...]
    has_missing: bool
    scale: Annotated[float, Meta(gt=0, le=_LARGEST_SCALE)]
    spellings: tuple[str, ...]

    def validate(self) -> None:
        """Refuse levels that no column has."""
        n_levels, n_spellings = len(self.levels), len(self.spellings)
        if n_spellings != n_levels or len({*self.levels}) != n_levels:
            raise ValueError(f"{n_spellings} spellings of {n_levels} levels")
        if self.spec.role not in LEVEL_ROLES:
            raise ValueError(f"a {self.spec.role} column of levels")

    @classmethod
    def fit(cls, cells: pl.Series, spec: ColumnSpec) -> LevelCoder:
        """Choose the levels: not rare (for Booleans: any), and the 50 most frequent at most."""
        texts = _level_texts(cells, spec)
        table = texts.drop_nulls().alias("level").value_counts()
        table = table.sort(["count", "level"], descending=[True, False])
        least = 1 if spec.role == "boolean" else least_level_count(len(texts.drop_nulls()))
        kept = table.filter(pl.col("count") >= least).head(_MAX_LEVELS)
        named, n_missing = kept["count"].to_list(), texts.null_count()
        counts = np.array([*named, len(texts) - sum(named) - n_missing, n_missing], dtype=float)
        diversity = max(1 - float(((counts / counts.sum()) ** 2).sum()), 1e-3)
        scale = float(np.sqrt(np.sqrt(2 / diversity) / 2))
        levels = tuple(kept["level"])
        return cls(spec, levels, n_missing > 0, scale, _spellings(cells, spec, levels))

    @property
    def n_values(self) -> int:
        """Matrix columns that hold values to standardise: none."""
        return 0

    @property
    def width(self) -> int:
        """Matrix columns in all."""
        return len(self.levels) + 1 + self.has_missing

    def encode(self, cells: pl.Series) -> FloatArray:
        """Turn cells into (n, width) indicators."""
        position = {level: j for j, level in enumerate(self.levels)}
        other = len(self.levels)
        texts = _level_texts(cells, self.spec)
        found = texts.replace_strict(position, default=other, return_dtype=pl.Int64)
        codes = found.to_numpy(writable=True)
        codes[texts.is_null().to_numpy()] = other + self.has_missing
        matrix = np.zeros((cells.len(), self.width))
        matrix[np.arange(cells.len()), codes] = self.scale
        return matrix

    def describe(self, values: FloatArray) -> tuple[str, float | str | None]:
        """Write an expected level as text, and as a name to draw."""
        j = int(np.argmax(values))
        if j < len(self.levels):
            return self.spellings[j], self.levels[j]
        return (OTHER if j == len(self.levels) else MISSING), None

    def seen(self, cells: pl.Series, row: int) -> tuple[str, float | str | None]:
        """Name the level of one row, also one the reference never had."""
        text = _level_texts(cells.slice(row, 1), self.spec)[0]
        return (MISSING, None) if text is None else (cell_text(cells, row), text)


def read_column(cells: pl.Series, spec: ColumnSpec) -> Readings:
    """Tell missing and unreadable cells of a column, whatever its role."""
    if spec.format is not None:
        return read_values(cells, spec.format)
    missing = read_texts(cells).is_null().to_numpy()
    return Readings(np.full(cells.len(), np.nan), missing, np.zeros(cells.len(), dtype=np.bool_))


def _level_texts(cells: pl.Series, spec: ColumnSpec) -> pl.Series:
    """Levels as text; truth words in lower case, so that Yes and yes are one."""
    texts = read_texts(cells)
    return texts.str.to_lowercase() if spec.role == "boolean" else texts


def _spellings(cells: pl.Series, spec: ColumnSpec, levels: tuple[str, ...]) -> tuple[str, ...]:
    """Most frequent way to write each level."""
    if spec.role != "boolean":
        return levels
    counts = read_texts(cells).drop_nulls().alias("text").value_counts()
    counts = counts.sort(["count", "text"], descending=[True, False])
    texts = counts["text"].to_list()
    return tuple(next(text for text in texts if text.lower() == level) for level in levels)


def _values(cells: pl.Series, spec: ColumnSpec) -> FloatArray:
    """All features of a column of values, NaN where missing."""
    if spec.format is None:
        return _text_features(read_texts(cells))
    values = read_values(cells, spec.format).values
    return _date_features(values) if isinstance(spec.format, DateFormat) else values[:, None]


def _date_features(seconds: FloatArray) -> FloatArray:
    """Days since 1970, then sine and cosine of the time of day and of the day of the week."""
    days = seconds / _DAY
    hour = 2 * np.pi * (seconds % _DAY) / _DAY  # the same to the bit at the same time of any day
    weekday = 2 * np.pi * (np.floor(days) % 7) / 7
    return np.column_stack([days, np.sin(hour), np.cos(hour), np.sin(weekday), np.cos(weekday)])


def _text_features(texts: pl.Series) -> FloatArray:
    """Length, words, and shares of digits, upper case and punctuation among the characters."""
    length = texts.str.len_chars().cast(pl.Float64)
    features = [length, texts.str.count_matches(r"\S+").cast(pl.Float64)]
    for kind in (r"\d", r"\p{Lu}", r"[\p{P}\p{S}]"):
        features.append(texts.str.count_matches(kind).cast(pl.Float64) / length)
    return np.column_stack([feature.fill_null(np.nan).to_numpy() for feature in features])
