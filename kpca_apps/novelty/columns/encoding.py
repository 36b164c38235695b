"""Encode columns of a table as a matrix of finite numbers, and write such numbers as cells.

The detector standardises values (numbers, dates, features of text). Indicators of levels and of
missing cells are already scaled; `TableEncoder.as_is` lists them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, ClassVar, NamedTuple, Self

import numpy as np
from msgspec import Meta

from kpca_apps.names import MISSING
from kpca_apps.novelty.columns.imputation import ConditionalMeanImputer
from kpca_apps.novelty.columns.kinds import KINDS, Notation, steps_of
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec, least_level_count
from kpca_apps.novelty.magnitudes import varies
from kpca_apps.system.arrays import FloatArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column, DateFormat, NumberFormat

# Words for an expected level that is too rare for an indicator of its own.
RARER = "a rarer value"
_MAX_LEVELS = 50
_LARGEST_STEP = 1e300
_LARGEST_SCALE = 1e3  # limit for `LevelCoder.scale` in a saved model; `fit` gives less than 5


@dataclass(frozen=True)
class ValueCoder:
    """Encoder of numbers, dates or free text as one or more values per row.

    In a reference, a column that rises or falls with the row number (`runs_on`) keeps its periodic
    features only, or becomes a column of zeros if it has none.
    """

    spec: ColumnSpec
    features: tuple[int, ...]  # which of the k columns that `_features` returns are used
    gap: bool  # whether the last matrix column is a missing indicator (0 or 1)
    notation: Notation
    repeats: bool = False  # whether only the features of time of day and weekday are used
    # All values of the column if it has few distinct numbers; else empty.
    steps: tuple[Annotated[float, Meta(ge=-_LARGEST_STEP, le=_LARGEST_STEP)], ...] = ()

    def validate(self) -> None:
        """Raise ValueError for features that the kind of column does not have."""
        n_possible = KINDS[self.spec.role].n_features if self.spec.used else 0
        sound = [*self.features] == sorted({*self.features} & {*range(n_possible)})
        sound &= (0 in self.features) != self.repeats
        if not sound or self.repeats > self.spec.runs_on:
            raise ValueError(f"a {self.spec.role} column has no features {self.features!r:.60}")

    @classmethod
    def fit(cls, column: Column, spec: ColumnSpec, gaps_tell: bool) -> ValueCoder:
        """Choose the features that vary."""
        is_date, notation = isinstance(spec.format, DateFormat), Notation.of(column, spec.format)
        of_repeats = spec.runs_on and not gaps_tell
        if of_repeats and not is_date:
            return cls(spec, (), False, notation, True)
        values = _features(column, spec)
        seen, size = values[~np.isnan(values[:, 0])], None
        if is_date:
            # Times of day come from days since 1970: the more days, the larger the rounding errors.
            seconds = column.read(spec.format).ordered
            size = float(np.abs(seconds).max(initial=0.0)) / _DAY
        kept = varies(seen, size)
        if of_repeats:
            kept &= np.ptp(seconds) / _DAY >= SEEN_TWICE * np.array(_PERIODS)
        else:
            kept[0] = True
        gap = gaps_tell and len(seen) < len(values)
        steps = steps_of(seen[:, 0]) if isinstance(spec.format, NumberFormat) else seen[:0, 0]
        features = tuple(np.flatnonzero(kept).tolist())
        return cls(spec, features, gap, notation, of_repeats, tuple(steps.tolist()))

    @property
    def width(self) -> int:
        """Number of matrix columns."""
        return max(len(self.features) + self.gap, 1)

    def encode(self, column: Column) -> FloatArray:
        """Encode cells as (n, width) numbers, NaN for missing values."""
        if not self.features:
            return np.zeros((len(column), 1))
        values = _features(column, self.spec)[:, list(self.features)]
        if not self.gap:
            return values
        return np.column_stack([values, np.isnan(values[:, 0])])

    def describe(
        self, values: FloatArray, seen: float | str | None = None
    ) -> tuple[str, float | str | None]:
        """Write an expected value as a cell; return its text and, for drawing, the number.

        The text has enough digits to differ from the text of `seen`, if the numbers differ.
        """
        if self.gap and values[-1] > 0.5:
            return MISSING, None
        kind, format = KINDS[self.spec.role], self.spec.format
        features = np.full(kind.n_features, np.nan)
        features[list(self.features)] = values[: len(self.features)]
        if self.repeats:
            return _day_and_time(features), None
        if format is not None:
            value = float(values[0]) * kind.unit
            beside = seen if isinstance(seen, float) else None
            if self.steps:
                # Of two equally near values, choose the one that differs from the cell.
                value = min(self.steps, key=lambda step: (abs(step - value), step == beside))
            return self.notation.write(value, format, beside), value
        return kind.describe(features) if kind.describe else "", None


@dataclass(frozen=True)
class MovedDates(ValueCoder):
    """Encoder of dates that shifts those of a later or earlier table onto the training range.

    A date outside that range is no evidence against its row; unusual differences between dates
    are. Periodic features are not shifted. Model files do not contain this encoder.
    """

    days: float = 0.0  # number of days added to each date
    own: tuple[float, float] = (0.0, 0.0)  # range of the table's dates, in days since 1970
    known: tuple[float, float] = (0.0, 0.0)  # dates are clipped to this range of training dates

    @classmethod
    def of(
        cls, coder: ValueCoder, then: ColumnSummary, now: ColumnSummary, others: Iterable[float]
    ) -> MovedDates | None:
        """Find the shift; ``None`` unless most dates lie outside the training range.

        To keep differences between columns, the shift of another column (`others`, in days) is
        taken if it fits, else the smallest number of whole weeks, to keep weekdays.
        """
        if not (then.is_date and then.quantiles and now.quantiles) or coder.repeats:
            return None
        dates = np.array(now.quantiles) / _DAY
        (low, high), (first, last) = known, own = [
            (of.span[0] / _DAY, of.span[1] / _DAY) for of in (then, now)
        ]
        if not _mostly_beyond(dates, known):
            return None
        is_later = dates[len(dates) // 2] > high
        weeks = np.floor((high - last) / 7) if is_later else np.ceil((low - first) / 7)
        fitting = (days for days in others if not _mostly_beyond(dates + days, known))
        parts = {field.name: getattr(coder, field.name) for field in fields(ValueCoder)}
        return cls(**parts, days=next(fitting, 7.0 * float(weeks)), own=own, known=known)

    def encode(self, column: Column) -> FloatArray:
        """Encode cells as (n, width) numbers with shifted dates."""
        matrix = super().encode(column)
        dates = matrix[:, 0]
        is_usual = (dates >= self.own[0]) & (dates <= self.own[1])
        moved = dates + self.days
        matrix[:, 0] = np.where(is_usual, moved.clip(*self.known), moved)
        return matrix

    def describe(
        self, values: FloatArray, seen: float | str | None = None
    ) -> tuple[str, float | str | None]:
        """Return the expected date, as text and number, without the days that `encode` added."""
        values = values.copy()
        values[0] -= self.days
        return super().describe(values, seen)


def _mostly_beyond(dates: FloatArray, known: tuple[float, float]) -> bool:
    return bool(2 * np.count_nonzero((dates < known[0]) | (dates > known[1])) > len(dates))


def _features(column: Column, spec: ColumnSpec) -> FloatArray:
    """Return all features of the cells (n, k), NaN for missing."""
    features = KINDS[spec.role].features
    assert features is not None
    return features(column, spec.format)


@dataclass(frozen=True)
class LevelCoder:
    """Encoder of categories with one indicator per level, of which each row sets one.

    The squared distance of different levels is d2 = sqrt(2/g), g = 1 - sum p^2, so that columns of
    balanced levels and columns with a dominant level weigh alike. Standardised indicators would
    let rare levels dominate.
    """

    spec: ColumnSpec
    # Levels in the order of their indicators. Indicators of "other" and (if used) "missing" follow.
    levels: tuple[str, ...]
    has_missing: bool  # whether missing is a level; otherwise a missing cell is "other"
    # Value of an indicator that is set: levels then differ by 2 scale^2 in squared distance.
    scale: Annotated[float, Meta(gt=0, le=_LARGEST_SCALE)]
    spellings: tuple[str, ...]  # most frequent spelling of each level; `levels` may be lower case

    features: ClassVar[tuple[int, ...]] = ()  # none to be standardised

    def validate(self) -> None:
        """Raise ValueError for inconsistent levels."""
        n_levels, n_spellings = len(self.levels), len(self.spellings)
        if n_spellings != n_levels or len({*self.levels}) != n_levels:
            raise ValueError(f"{n_spellings} spellings of {n_levels} levels")
        if not self.spec.has_levels:
            raise ValueError(f"a {self.spec.role} column of levels")

    @classmethod
    def fit(cls, column: Column, spec: ColumnSpec) -> LevelCoder:
        """Choose up to 50 levels that are not rare; Boolean levels may be rare."""
        of = spec.levels(column)
        n_cells = int(of.counts.sum())
        least = 1 if spec.is_truth else least_level_count(n_cells)
        kept = {level: count for level, count in of.most_frequent(_MAX_LEVELS) if count >= least}
        n_named, n_missing = sum(kept.values()), len(column) - n_cells
        counts = np.array([*kept.values(), n_cells - n_named, n_missing], dtype=float)
        diversity = max(1 - float(((counts / counts.sum()) ** 2).sum()), 1e-3)
        scale = float(np.sqrt(np.sqrt(2 / diversity) / 2))
        levels = spellings = tuple(kept)
        if spec.is_truth:
            texts = [text for text, _ in column.levels.most_frequent()]
            spellings = tuple(next(t for t in texts if t.lower() == level) for level in levels)
        return cls(spec, levels, n_missing > 0, scale, spellings)

    @property
    def width(self) -> int:
        """Number of matrix columns."""
        return len(self.levels) + 1 + self.has_missing

    def encode(self, column: Column) -> FloatArray:
        """Encode cells as (n, width) indicators."""
        place = {level: j for j, level in enumerate(self.levels)}
        of, other = self.spec.levels(column), len(self.levels)
        places = np.array([place.get(text, other) for text in of.texts], dtype=np.int64)
        matrix = np.zeros((len(column), self.width))
        columns = of.each(places, other + self.has_missing)
        matrix[np.arange(len(column)), columns] = self.scale
        return matrix

    def describe(
        self, values: FloatArray, seen: float | str | None = None
    ) -> tuple[str, float | str | None]:
        """Return the expected level as it is spelt in cells, and the level itself, for drawings."""
        j = int(np.argmax(values))
        if j < len(self.levels):
            return self.spellings[j], self.levels[j]
        return (RARER if j == len(self.levels) else MISSING), None


class ColumnGroup(NamedTuple):
    """The matrix columns of a column of the table."""

    name: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class TableEncoder:
    """Encoder of a table, also applied to later tables."""

    plan: ColumnPlan
    coders: tuple[ValueCoder | LevelCoder, ...]  # encoders of the used columns, in the plan's order
    imputer: ConditionalMeanImputer
    summaries: tuple[ColumnSummary, ...]  # summaries of the used columns of the training table

    def validate(self) -> None:
        """Raise ValueError for inconsistent parts."""
        if tuple(coder.spec for coder in self.coders) != self.plan.used:
            raise ValueError("its coders are not those of its plan")
        if len(self.imputer.mean) != sum(len(coder.features) for coder in self.coders):
            raise ValueError("its moments are not those of its columns")
        if [summary.name for summary in self.summaries] != [spec.name for spec in self.plan.used]:
            raise ValueError("its summaries are not those of its columns")

    @classmethod
    def fit(cls, table: Table, plan: ColumnPlan, *, contaminated: bool) -> TableEncoder:
        """Learn levels, features and the imputation of missing values.

        Missing indicators are used only if the table may contain outliers (`contaminated`).
        """
        coders: list[ValueCoder | LevelCoder] = []
        blocks = [np.empty((table.n_rows, 0))]
        columns = [(table.column[spec.name], spec) for spec in plan.used]
        for column, spec in columns:
            if spec.has_levels:
                coders.append(LevelCoder.fit(column, spec))
            else:
                coder = ValueCoder.fit(column, spec, gaps_tell=contaminated)
                coders.append(coder)
                blocks.append(coder.encode(column)[:, : len(coder.features)])
        summaries = tuple(ColumnSummary.of(column, spec) for column, spec in columns)
        imputer = ConditionalMeanImputer.fit(np.hstack(blocks))
        return cls(plan, tuple(coders), imputer, summaries)

    def moved_dates(self, table: Table) -> dict[str, MovedDates]:
        """Find the columns in which over half of the dates lie outside the training range."""
        found = dict[str, MovedDates]()
        for coder, then in zip(self.coders, self.summaries, strict=True):
            if isinstance(coder, ValueCoder) and then.is_date and then.name in table.columns:
                now = ColumnSummary.of(table.column[then.name], coder.spec)
                others = [of.days for of in found.values()]
                if (moved := MovedDates.of(coder, then, now, others)) is not None:
                    found[then.name] = moved
        return found

    def with_moved_dates(self, moved: Mapping[str, MovedDates]) -> Self:
        """Return an encoder that shifts the dates of the columns in `moved` only."""

        def shifted(coder: ValueCoder | LevelCoder) -> ValueCoder | LevelCoder:
            if not isinstance(coder, ValueCoder) or coder.repeats:
                return coder
            parts = {field.name: getattr(coder, field.name) for field in fields(ValueCoder)}
            of = moved.get(coder.spec.name)
            return ValueCoder(**parts) if of is None else replace(of, **parts)

        return replace(self, coders=tuple(map(shifted, self.coders)))

    @cached_property
    def groups(self) -> tuple[ColumnGroup, ...]:
        """Matrix columns of each used column, in order."""
        groups, start = [], 0
        for coder in self.coders:
            columns = tuple(range(start, start + coder.width))
            groups.append(ColumnGroup(coder.spec.name, columns))
            start += coder.width
        return tuple(groups)

    @cached_property
    def as_is(self) -> tuple[int, ...]:
        """Matrix columns that are already scaled: indicators of levels and missing cells."""
        return tuple(
            column
            for coder, group in zip(self.coders, self.groups, strict=True)
            for column in group.columns[len(coder.features) :]
        )

    def state_columns(self, but: Collection[str]) -> Iterator[int]:
        """Yield matrix columns that show whether two rows have equal cells; skip those of `but`.

        These are the values of numbers and dates, and all indicators except those of pooled levels.
        """
        for coder, group in zip(self.coders, self.groups, strict=True):
            if coder.spec.name in but:
                continue
            if isinstance(coder, LevelCoder):
                yield from (j for j in group.columns if j - group.columns[0] != len(coder.levels))
                continue
            if coder.spec.format is not None and coder.features and not coder.repeats:
                yield group.columns[0]
            if coder.gap:
                yield group.columns[-1]

    def matrix(self, table: Table) -> FloatArray:
        """Encode rows of a table as finite numbers (n, d), independently of each other."""
        matrix = np.hstack([coder.encode(table.column[coder.spec.name]) for coder in self.coders])
        if np.isnan(matrix).any():
            values = np.delete(np.arange(matrix.shape[1]), self.as_is)
            matrix[:, values] = self.imputer.fill(matrix[:, values])
        return matrix

    def seen(self, table: Table, row: int, group: int) -> tuple[str, float | str | None]:
        """Return the text of a cell in a row (from 0), and its value to draw."""
        spec = self.coders[group].spec
        column = table.column[spec.name]
        text, readings = column.text(row), column.read(spec.format)
        if readings.missing[row]:
            return MISSING, None
        if readings.unreadable[row]:
            return f"{text} (not a {KINDS[spec.role].noun})", None
        if spec.has_levels:  # the encoder may not know the level
            levels = spec.levels(column)
            return text, levels.texts[int(levels.codes[row])]
        return text, None if spec.format is None else float(readings.values[row])


# In a column of dates that rise or fall with the row number, a late date is no evidence; its
# weekday or time of day may be.

_DAY = 86400.0  # seconds
_PERIODS = (np.inf, 1.0, 1.0, 7.0, 7.0)  # period of each feature of a date, in days
# A periodic feature of dates is used only if the table spans at least this many periods.
SEEN_TWICE = 1.5
_WEEKDAYS = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")


def _day_and_time(features: FloatArray) -> str:
    """Write a date's features (5,) as weekday and time of day; dropped features are NaN."""
    hour, weekday = (np.arctan2(features[1::2], features[2::2]) / (2 * np.pi)) % 1.0
    words = [] if np.isnan(weekday) else [_WEEKDAYS[round(weekday * 7) % 7]]
    if not np.isnan(hour):
        minutes = round(hour * 1440) % 1440
        words.append(f"about {minutes // 60:02d}:{minutes % 60:02d}")
    return ", ".join(words)


N_QUANTILES = 65  # with this many quantiles, the error of a Kolmogorov-Smirnov distance is 1 / 65
MOST_LEVELS = 50  # maximum number of levels of a category that a `ColumnSummary` counts


@dataclass(frozen=True)
class ColumnSummary:
    """The distribution of the cells of a column."""

    name: str
    n_cells: Annotated[int, Meta(ge=0)]
    n_missing: Annotated[int, Meta(ge=0)]
    quantiles: tuple[float, ...] = ()  # evenly spaced quantiles of numbers, or of dates in seconds
    levels: tuple[str, ...] = ()  # the most frequent levels of a category
    counts: tuple[int, ...] = ()  # number of cells of each level
    is_date: bool = False
    runs_on: bool = False  # whether values rise or fall with the row number

    def validate(self) -> None:
        """Raise ValueError for an inconsistent summary."""
        steps = np.diff(self.quantiles)
        if len(self.levels) != len(self.counts) or (steps.size and not (steps >= 0).all()):
            raise ValueError(f"a summary of {self.name!r:.40} that contradicts itself")
        if self.n_missing + sum(self.counts) > self.n_cells or min(self.counts, default=0) < 0:
            raise ValueError(f"a summary of {self.name!r:.40} with more cells than there are")

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec) -> ColumnSummary:
        """Summarise a column."""
        n_cells, is_date = len(column), isinstance(spec.format, DateFormat)
        if spec.format is not None:
            values = column.read(spec.format).ordered
            n_missing = n_cells - len(values)
            if len(values) > N_QUANTILES:
                steps = np.linspace(0.0, 1.0, N_QUANTILES)
                values = np.quantile(values, steps, method="inverted_cdf")
            quantiles = tuple(values.tolist())
            return cls(spec.name, n_cells, n_missing, quantiles, (), (), is_date, spec.runs_on)
        levels = spec.levels(column)
        n_missing = n_cells - int(levels.counts.sum())
        # Columns of free text are compared by their share of missing cells only.
        found = levels.most_frequent(MOST_LEVELS) if spec.has_levels else []
        names, counts = tuple(name for name, _ in found), tuple(int(count) for _, count in found)
        return cls(spec.name, n_cells, n_missing, levels=names, counts=counts)

    @cached_property
    def span(self) -> tuple[float, float]:
        """Range of the values within Tukey's fences; there must be values."""
        values = np.array(self.quantiles)
        low, high = np.quantile(values, [0.25, 0.75], method="inverted_cdf")
        reach = 1.5 * (high - low)
        inside = values[(values >= low - reach) & (values <= high + reach)]
        return float(inside[0]), float(inside[-1])

    def is_far(self, value: float) -> bool:
        """Return whether a number or its log is outside the range by more than its width."""
        if not self.quantiles:
            return False
        low, high = self.quantiles[0], self.quantiles[-1]
        is_tiny = not self.is_date and 0 < value * high < low * low and low > 0
        return is_tiny or max(low - value, value - high) > high - low

    @property
    def n_values(self) -> int:
        """Number of cells with a value."""
        return self.n_cells - self.n_missing
