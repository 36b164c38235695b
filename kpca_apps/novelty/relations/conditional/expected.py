"""How far numbers are from their expected values, and how rare such distances are.

A predictor gives each row an expected number and a ratio: the distance from that number divided by
the usual distance. The ratios have a Pareto tail through two of their quantiles. Numbers are called
wrong up to the p-value that keeps the false discovery rate (Benjamini and Hochberg 1995).

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

FAR_SHARES = (0.9, 0.98)  # the tail of `Ratios.ratio` is fitted through these two quantiles
FALSE_DISCOVERIES = 0.05  # maximum rate of false discoveries among numbers called wrong
# Rows follow one relation if at most max(FEW, FEW_SHARE * n) of n numbers are called wrong, and if
# the Pareto exponent of the ratios is at least LEAST_EXPONENT. This exponent is 4.6 for normal and
# 1.0 for Cauchy residuals, and 0.9 if 6 % of them are six times the 0.9 quantile of the others.
FEW, FEW_SHARE, LEAST_EXPONENT = 3, 0.005, 0.95
LEAST_SUPPORT, FAR = 4, 3.0  # minimum `Ratios.support`, and minimum ratio, of a number called wrong
SMALLEST = 1e-6  # smaller ratios are raised to this before taking logarithms


class Ratios(NamedTuple):
    """Distances of the numbers of n rows from their expected values."""

    ratio: FloatArray  # distance over the usual distance; NaN if no number is expected
    expected: FloatArray  # expected number, in the unit of the column
    support: IntArray  # number of rows that determine the expected value


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Tail of a predictor's ratios (distance over usual distance), which gives p-values."""

    tail: UpperTail  # tail of the log ratios
    limit: Annotated[float, Meta(ge=-1e3, le=0)]  # log p-value up to which numbers are called wrong

    @classmethod
    def fit(cls, of: Ratios, n_predictors: int) -> Calibrated:
        """Fit the tail of the training rows' ratios, for one of `n_predictors` predictors."""
        logs = _logs(of.ratio[~np.isnan(of.ratio)])
        tail = UpperTail.fit(logs, shares=FAR_SHARES)
        n_looked = len(logs) * n_predictors
        return cls(tail, discovery_limit(-tail.steepness(logs), n_looked, FALSE_DISCOVERIES))

    def is_of_one_group(self, of: Ratios) -> bool:
        """Whether rows follow one relation: few numbers are `named`, and large ratios are rare."""
        few = max(FEW, FEW_SHARE * len(of.ratio))
        return self.tail.slope >= LEAST_EXPONENT and int(self.named(of).sum()) <= few

    def surprise(self, of: Ratios) -> FloatArray:
        """Return -log of the share of ratios as large as each, (n,); 0 if no number is expected."""
        return np.where(np.isnan(of.ratio), 0.0, self.tail(_logs(of.ratio)))

    def named(self, of: Ratios) -> BoolArray:
        """Return which numbers are called wrong, (n,)."""
        is_far: BoolArray = -self.tail.steepness(_logs(of.ratio)) <= self.limit
        return is_far & (of.ratio >= FAR) & (of.support >= LEAST_SUPPORT)


def _logs(ratio: FloatArray) -> FloatArray:
    return eight_digits(np.log(np.fmax(ratio, SMALLEST)))


def values_of(table: Table, spec: ColumnSpec) -> FloatArray:
    """Return numbers (n,) of a column, dates in seconds since 1970 UTC; NaN if missing."""
    return table.column[spec.name].read(spec.format).values
