"""One column's cells to matrix columns and back: values (numbers, dates, text) and levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.files.tables.dates import DateFormat
from kpca_apps.files.tables.numbers import NumberFormat
from kpca_apps.files.tables.values import Column, Levels
from kpca_apps.novelty.magnitudes import varies
from kpca_apps.novelty.table.notation import Notation
from kpca_apps.novelty.table.roles import least_level_count
from kpca_apps.novelty.table.specs import LEVEL_ROLES, ColumnSpec

__all__ = ["MISSING", "OTHER", "LevelCoder", "ValueCoder", "spec_levels"]

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
    def fit(cls, column: Column, spec: ColumnSpec, gaps_tell: bool) -> ValueCoder:
        """Choose the features that vary in the column."""
        values = _values(column, spec)
        seen = values[~np.isnan(values[:, 0])]
        # Times of day are taken from days since 1970, and are as exact as those.
        is_date = isinstance(spec.format, DateFormat)
        size = float(np.abs(seen[:, 0]).max(initial=0.0)) if is_date else None
        kept = tuple(j for j in range(values.shape[1]) if j == 0 or varies(seen[:, j], size))
        gap = gaps_tell and len(seen) < len(values)
        return cls(spec, kept, gap, Notation.of(column, spec.format))

    @property
    def n_values(self) -> int:
        """Matrix columns that hold values, before the one for gaps."""
        return len(self.features)

    @property
    def width(self) -> int:
        """Matrix columns in all."""
        return self.n_values + self.gap

    def encode(self, column: Column) -> FloatArray:
        """Turn cells into (n, width) numbers; values are NaN where missing."""
        values = _values(column, self.spec)[:, list(self.features)]
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

    def seen(self, column: Column, row: int) -> tuple[str, float | str | None]:
        """Write the value of one row as it stands in the table, and as a number to draw."""
        text, readings = column.text(row), column.read(self.spec.format)
        if readings.missing[row]:
            return MISSING, None
        if readings.unreadable[row]:
            kind = "date" if isinstance(self.spec.format, DateFormat) else "number"
            return f"{text} (not a {kind})", None
        return text, None if self.spec.format is None else float(readings.values[row])

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
    def fit(cls, column: Column, spec: ColumnSpec) -> LevelCoder:
        """Choose the levels: not rare (for Booleans: any), and the 50 most frequent at most."""
        of = spec_levels(column, spec)
        n_cells = int(of.counts.sum())
        least = 1 if spec.role == "boolean" else least_level_count(n_cells)
        kept = {level: count for level, count in of.most_frequent(_MAX_LEVELS) if count >= least}
        n_named, n_missing = sum(kept.values()), len(column) - n_cells
        counts = np.array([*kept.values(), n_cells - n_named, n_missing], dtype=float)
        diversity = max(1 - float(((counts / counts.sum()) ** 2).sum()), 1e-3)
        scale = float(np.sqrt(np.sqrt(2 / diversity) / 2))
        levels = tuple(kept)
        return cls(spec, levels, n_missing > 0, scale, _spellings(column, spec, levels))

    @property
    def n_values(self) -> int:
        """Matrix columns that hold values to standardise: none."""
        return 0

    @property
    def width(self) -> int:
        """Matrix columns in all."""
        return len(self.levels) + 1 + self.has_missing

    def encode(self, column: Column) -> FloatArray:
        """Turn cells into (n, width) indicators."""
        place = {level: j for j, level in enumerate(self.levels)}
        of, other = spec_levels(column, self.spec), len(self.levels)
        places = np.array([place.get(text, other) for text in of.texts], dtype=np.int64)
        matrix = np.zeros((len(column), self.width))
        columns = of.each(places, other + self.has_missing)
        matrix[np.arange(len(column)), columns] = self.scale
        return matrix

    def describe(self, values: FloatArray) -> tuple[str, float | str | None]:
        """Write an expected level as text, and as a name to draw."""
        j = int(np.argmax(values))
        if j < len(self.levels):
            return self.spellings[j], self.levels[j]
        return (OTHER if j == len(self.levels) else MISSING), None

    def seen(self, column: Column, row: int) -> tuple[str, float | str | None]:
        """Name the level of one row, also one the reference never had."""
        of = spec_levels(column, self.spec)
        code = int(of.codes[row])
        return (MISSING, None) if code < 0 else (column.text(row), of.texts[code])


def spec_levels(column: Column, spec: ColumnSpec) -> Levels:
    """Levels of a column; truth words in lower case, so that Yes and yes are one."""
    return column.levels.lower() if spec.role == "boolean" else column.levels


def _spellings(column: Column, spec: ColumnSpec, levels: tuple[str, ...]) -> tuple[str, ...]:
    """Most frequent way to write each level."""
    if spec.role != "boolean":
        return levels
    texts = [text for text, _ in column.levels.most_frequent()]
    return tuple(next(text for text in texts if text.lower() == level) for level in levels)


def _values(column: Column, spec: ColumnSpec) -> FloatArray:
    """All features of a column of values, NaN where missing."""
    if spec.format is None:
        return _text_features(column.texts)
    values = column.read(spec.format).values
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
