"""Which column of a broken rule holds the wrong value, and what would mend it.

Supposing one wrong cell, each column of the rule is tried in turn. Of a formula its value would be
what follows from the others, rounded as the column is, and the formula has to hold then. The
others, and that value, must be what their columns usually hold. To blame is the column for which
this is so far better than for any other; where it is so for several, it is open which of them is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.relations.checking import Cells, check, expected
from kpca_apps.novelty.relations.rule import AnyRule, Equal, Linear, Product
from kpca_apps.system.arrays import BoolArray, FloatArray
from kpca_apps.tables.values import DateFormat, NumberFormat, ValueFormat

# Nine of ten values of a column lie between its ends. Values are unusual so many times farther from
# the median than the end on their side: Tukey's fences, of a normal distribution. A column is not
# to blame if supposing so leaves some value as unusual, and twice as far out as the best does.
ENDS = (0.05, 0.5, 0.95)
FENCE, TWICE = 2.698 / 1.645, 2.0
# Decimals are those of nearly all numbers of a column, as rules hold in nearly all rows.
MOST_DECIMALS, NEARLY = 6, 0.97
ROUNDING = 1e-9  # of a number, which is no decimal
DAY = 86400.0
LARGEST = 1e300


@dataclass(frozen=True)
class UsualValues:
    """What the numbers of a column usually are, of the rows learned from; dates in seconds."""

    name: str
    low: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
    middle: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
    high: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
    decimals: Annotated[int, Meta(ge=-1, le=MOST_DECIMALS)]  # nearly all have; -1: more
    notation: Notation  # how they are written

    @classmethod
    def learn(cls, cells: Cells) -> tuple[UsualValues, ...]:
        """Learn what the columns of numbers and dates usually hold."""
        found = []
        for name in filter(cells.is_number, cells.formats):
            values = cells.values(name)
            values = values[np.abs(values) <= LARGEST]
            if len(values):
                low, middle, high = np.quantile(values, ENDS).tolist()
                decimals = (
                    k
                    for k in range(MOST_DECIMALS + 1)
                    if np.isclose(np.round(values, k), values, rtol=ROUNDING, atol=0).mean()
                    >= NEARLY
                )
                notation = Notation.of(cells.table.column(name), cells.formats[name])
                found.append(cls(name, low, middle, high, next(decimals, -1), notation))
        return tuple(found)

    def write(self, value: float, format: ValueFormat) -> str:
        """Write a number that follows from others, or a date, as the column would."""
        if isinstance(format, NumberFormat):
            is_rounded = self.decimals >= 0
            value = round(value, self.decimals) if is_rounded else float(f"{value:.10g}")
        return self.notation.write_exactly(value, format)

    def distance(self, values: FloatArray) -> FloatArray:
        """How many times farther from the median numbers (r,) are than the end on their side."""
        units = np.where(values > self.middle, self.high - self.middle, self.middle - self.low)
        far = np.abs(values - self.middle)
        with np.errstate(all="ignore"):
            return np.where(far > 0, far / units, 0.0)


@dataclass(frozen=True)
class _Mended(Cells):
    """Cells of which those of one column are replaced by other numbers."""

    name: str
    mended: FloatArray

    def values(self, name: str) -> FloatArray:
        """Numbers of a column."""
        return self.mended if name == self.name else super().values(name)


@dataclass(frozen=True)
class Supposed:
    """What follows if the values of one column are wrong in r rows that break a rule."""

    mended: FloatArray | None  # (r,), what it should hold; None where that is no single number
    misfit: FloatArray  # (r,), how unusual that is or another value of the rule; inf: impossible


def suppose(rule: AnyRule, cells: Cells, usual: Mapping[str, UsualValues]) -> dict[str, Supposed]:
    """Suppose each column of a rule to be wrong in rows that all break it."""
    supposed = {}
    far = {
        name: usual[name].distance(cells.values(name)) if name in usual else np.zeros(len(cells))
        for name in rule.columns
    }
    for name in rule.columns:
        others = [far[other] for other in rule.columns if other != name]
        misfit = np.max([*others, np.zeros(len(cells))], axis=0)
        mended = None
        if name in usual and isinstance(rule, Equal | Linear | Product):
            with np.errstate(all="ignore"):
                mended = _mend(rule, rule.columns.index(name), cells)
            rounded = mended
            if isinstance(format := cells.formats[name], DateFormat):
                step = 1.0 if format.has_time else DAY
                rounded = np.round(mended / step) * step
            elif usual[name].decimals >= 0:
                rounded = np.round(mended, usual[name].decimals)
            holds = kept(rule, cells, name, rounded)
            mended = np.where(holds, rounded, mended)
            misfit = np.maximum(misfit, np.where(holds, usual[name].distance(mended), np.inf))
        supposed[name] = Supposed(mended, misfit)
    return supposed


def kept(rule: AnyRule, cells: Cells, name: str, mended: FloatArray) -> BoolArray:
    """In which rows a rule holds once a column has other numbers (r,)."""
    return check(rule, _Mended(cells.table, cells.formats, name, mended)).holds


def fitting(supposed: Mapping[str, Supposed], place: int) -> list[str]:
    """Return the columns that may be wrong in one of the rows, the likeliest first."""
    misfit = {name: float(of.misfit[place]) for name, of in supposed.items()}
    worst = max(FENCE, TWICE * min(misfit.values()))
    return sorted((name for name in misfit if misfit[name] <= worst), key=misfit.__getitem__)


def _mend(rule: Equal | Linear | Product, place: int, cells: Cells) -> FloatArray:
    """Solve a formula for one of its columns, (r,)."""
    if isinstance(rule, Equal):
        return cells.values(rule.columns[1 - place])
    if place == 0:
        return expected(rule, cells)
    name, read = rule.columns[place], cells.values(rule.columns[0])
    if isinstance(rule, Linear):
        rest = expected(rule, _Mended(cells.table, cells.formats, name, np.zeros(len(cells))))
        return (read - rest) / rule.coefficients[place - 1]
    # Of a rate p, which counts as 1 + per p, the factor of the others is that at 0.
    is_rate = bool(rule.per) and place == len(rule.columns) - 1
    at = np.zeros(len(cells)) if is_rate else np.ones(len(cells))
    rest = expected(rule, _Mended(cells.table, cells.formats, name, at))
    factor = (read / rest) ** (1.0 / rule.exponents[place - 1])
    return (factor - 1.0) / rule.per if is_rate else factor
