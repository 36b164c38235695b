"""How far numbers are from what the rest of their table expects, and how rare that is.

A predictor says of a row what number is expected, and how many times farther from it the row's
number is than such numbers usually are. These ratios are taken to have a Pareto tail, through two
of their quantiles: numbers that jump by their nature have a heavy one. Of the numbers beyond it,
few are named that would be there by chance (Benjamini and Hochberg 1995).

References
----------
Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, JRSS B 57, 1995.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.detector.surprise.tails import UpperTail
from kpca_apps.novelty.detector.threshold import discovery_limit
from kpca_apps.novelty.magnitudes import eight_digits
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table

FAR_SHARES = (0.9, 0.98)  # quantiles of ratios that their tail goes through
FALSE_DISCOVERIES = 0.05  # at most, of the numbers that all predictors name
# More numbers beyond their tail are a second group, and so are those that make the tail as heavy:
# normal ones have a Pareto exponent of 4.6, those of a Cauchy distribution 1.0, and where 6 % lie
# six times as far off as nine of ten others do, it is 0.9.
FEW, FEW_SHARE, LEAST_EXPONENT = 3, 0.005, 0.95
LEAST_SUPPORT, FAR = 4, 3.0  # rows that say what is expected, and ratio, of a number that is named
LOG_SMALLEST = float(np.log(1e-6))  # of a ratio


class Ratios(NamedTuple):
    """What a predictor says of the numbers of n rows."""

    ratio: FloatArray  # how many times farther from what is expected than usual; NaN: nothing said
    expected: FloatArray  # as the column reads numbers
    support: IntArray  # rows that say so


@dataclass(frozen=True, eq=False)
class Calibrated:
    """How rare the ratios of a predictor are."""

    tail: UpperTail  # of their logarithms
    limit: Annotated[float, Meta(ge=-1e3, le=0)]  # log of the share of those that are named

    @classmethod
    def fit(cls, of: Ratios, n_predictors: int) -> Calibrated:
        """Learn from the rows that the predictor, one of so many, was learned from."""
        logs = _logs(of.ratio[~np.isnan(of.ratio)])
        tail = UpperTail.fit(logs, shares=FAR_SHARES)
        n_looked = len(logs) * n_predictors
        return cls(tail, discovery_limit(-tail.steepness(logs), n_looked, FALSE_DISCOVERIES))

    def is_of_one_group(self, of: Ratios) -> bool:
        """Whether hardly any of the numbers learned from are as far off as a second group."""
        few = max(FEW, FEW_SHARE * len(of.ratio))
        return self.tail.slope >= LEAST_EXPONENT and int(self.named(of).sum()) <= few

    def surprise(self, of: Ratios) -> FloatArray:
        """Minus the logarithm of the share of ratios as large, (n,); 0 where nothing is said."""
        return np.where(np.isnan(of.ratio), 0.0, self.tail(_logs(of.ratio)))

    def named(self, of: Ratios) -> BoolArray:
        """Which numbers are farther off than few would be by chance, (n,)."""
        is_far: BoolArray = -self.tail.steepness(_logs(of.ratio)) <= self.limit
        return is_far & (of.ratio >= FAR) & (of.support >= LEAST_SUPPORT)


def _logs(ratio: FloatArray) -> FloatArray:
    """Logarithms of ratios, the smallest where they are NaN; what differs by rounding ties."""
    smallest = np.exp(LOG_SMALLEST)
    return eight_digits(np.log(np.fmax(ratio, smallest)))


def values_of(table: Table, spec: ColumnSpec) -> FloatArray:
    """Numbers of a column, or seconds since 1970 UTC, (n,); NaN where missing."""
    return table.column(spec.name).read(spec.format).values
