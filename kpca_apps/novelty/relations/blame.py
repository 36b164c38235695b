"""Which cell of a broken rule is wrong, and its corrected value.

Each column of the rule is assumed wrong in turn. In a formula, the corrected value follows from the
other columns, rounded as the column is, and the formula must then hold. The other values and the
corrected one must be usual in their columns. The column that fits best is wrong; if others fit
nearly as well, any of them may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.relations.checking import Cells, check, expected
from kpca_apps.novelty.relations.rule import AnyRule, Equal, Formula, Linear, Product
from kpca_apps.system.arrays import BoolArray, FloatArray
from kpca_apps.tables.values import DateFormat, NumberFormat, ValueFormat

ENDS = (0.05, 0.5, 0.95)  # quantiles of a column
# Misfit: how unusual a column's value stays if it is corrected by the rule. Blame a column only if
# this is at most FENCE (Tukey's fence over the normal 95 % quantile), or TWICE the rule's smallest.
FENCE, TWICE = 2.698 / 1.645, 2.0
# Up to MOST_DECIMALS decimals are tried, until they suffice for the share NEARLY of the numbers.
MOST_DECIMALS, NEARLY = 6, 0.97
ROUNDING = 1e-9  # relative rounding error
DAY = 86400.0
LARGEST = 1e300


@dataclass(frozen=True)
class UsualValues:
    """Quantiles `ENDS` and notation of a column's numbers in training; dates in seconds."""

    name: str
    low: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
    middle: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
    high: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
    decimals: Annotated[int, Meta(ge=-1, le=MOST_DECIMALS)]  # what 97 % of numbers need; -1: over 6
    notation: Notation

    @classmethod
    def learn(cls, cells: Cells) -> tuple[UsualValues, ...]:
        """Learn the quantiles and the notation of each column of numbers or dates."""
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
                notation = Notation.of(cells.table.column[name], cells.formats[name])
                found.append(cls(name, low, middle, high, next(decimals, -1), notation))
        return tuple(found)

    def write(self, value: float, format: ValueFormat) -> str:
        """Write a corrected number or date in the column's notation."""
        if isinstance(format, NumberFormat):
            is_rounded = self.decimals >= 0
            value = round(value, self.decimals) if is_rounded else float(f"{value:.10g}")
        return self.notation.write_exactly(value, format)

    def distance(self, values: FloatArray) -> FloatArray:
        """Return distances (r,) from the median, divided by the 5 % or 95 % quantile's distance."""
        units = np.where(values > self.middle, self.high - self.middle, self.middle - self.low)
        far = np.abs(values - self.middle)
        with np.errstate(all="ignore"):
            return np.where(far > 0, far / units, 0.0)


@dataclass(frozen=True)
class Supposed:
    """Consequences of assuming one column wrong in r rows that break a rule."""

    corrected: FloatArray | None  # (r,), the column's value by the rule; None if not computable
    misfit: FloatArray  # (r,), largest `UsualValues.distance` after correction; inf: impossible


def suppose(rule: AnyRule, cells: Cells, usual: Mapping[str, UsualValues]) -> dict[str, Supposed]:
    """Assume in turn that each column of a rule is wrong; all rows of `cells` break the rule."""
    supposed, none = {}, np.zeros(len(cells))
    far = {
        name: usual[name].distance(cells.values(name)) if name in usual else none
        for name in rule.columns
    }
    for name in rule.columns:
        others = (far[other] for other in rule.columns if other != name)
        misfit, corrected = np.max([none, *others], axis=0), None
        if name in usual and isinstance(rule, Formula):
            with np.errstate(all="ignore"):
                corrected = _solve(rule, rule.columns.index(name), cells)
            rounded = corrected
            if isinstance(format := cells.formats[name], DateFormat):
                step = 1.0 if format.has_time else DAY
                rounded = np.round(corrected / step) * step
            elif usual[name].decimals >= 0:
                rounded = np.round(corrected, usual[name].decimals)
            holds = holds_with(rule, cells, name, rounded)
            corrected = np.where(holds, rounded, corrected)
            misfit = np.maximum(misfit, np.where(holds, usual[name].distance(corrected), np.inf))
        supposed[name] = Supposed(corrected, misfit)
    return supposed


def holds_with(rule: AnyRule, cells: Cells, name: str, numbers: FloatArray) -> BoolArray:
    """Return in which of r rows a rule holds once `numbers` (r,) replace those of a column."""
    return check(rule, replace(cells, replaced={name: numbers})).holds


def fitting(supposed: Mapping[str, Supposed], place: int) -> list[str]:
    """Return the columns that may be wrong in the row at `place`, the most likely first."""
    misfit = {name: float(of.misfit[place]) for name, of in supposed.items()}
    worst = max(FENCE, TWICE * min(misfit.values()))
    return sorted((name for name in misfit if misfit[name] <= worst), key=misfit.__getitem__)


def _solve(rule: Formula, place: int, cells: Cells) -> FloatArray:
    if isinstance(rule, Equal):
        return cells.values(rule.columns[1 - place])
    if place == 0:
        return expected(rule, cells)
    read, is_linear = cells.values(rule.columns[0]), isinstance(rule, Linear)
    is_rate = isinstance(rule, Product) and bool(rule.per) and place == len(rule.columns) - 1
    # Compute the rest of the formula, with this term at 0 or this factor at 1.
    neutral = np.zeros(len(cells)) if is_linear or is_rate else np.ones(len(cells))
    rest = expected(rule, replace(cells, replaced={rule.columns[place]: neutral}))
    if isinstance(rule, Linear):
        return (read - rest) / rule.coefficients[place - 1]
    factor = (read / rest) ** (1.0 / rule.exponents[place - 1])
    return (factor - 1.0) / rule.per if is_rate else factor
