"""Find columns in which every row is the same curve, multiplied by the size of the row.

For sales by month or readings by station, log x_ij = size_i + curve_j + residual, a two-way fit
(Tukey 1977, chapter 11). Medians estimate size and curve, so a wrong cell, whatever its factor,
affects its own residual alone.

Columns follow the curve only if it gives their cells, given the row's other cells, a higher log
density than three baselines: a regression, the column alone, and additive sizes. All are densities
of the values themselves, whatever the scale of the residuals. The sum of differences over rows is
tested as in Vuong.

References
----------
J. W. Tukey, Exploratory data analysis, Addison-Wesley 1977.
O. Vasicek, A test for normality based on sample entropy, Journal of the Royal Statistical Society
B 38, 1976, equation 4.
Q. H. Vuong, Likelihood ratio tests for model selection and non-nested hypotheses, Econometrica 57,
1989, equation 5.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from scipy.special import ndtri

from kpca_apps.engine.subspace import SQUARABLE
from kpca_apps.novelty.detector.views import IQR_OF_NORMAL
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray

# The median of three other columns withstands one wrong cell, the median of two does not.
FEWEST_COLUMNS = 4
POSITIVE = 0.95  # minimum share of a column's values that are above 0 and so have a logarithm
LEVEL = 0.05  # significance level of the one-sided tests
LEAST_SCATTER = 0.02  # minimum scatter assumed of a column, as a share of its standard deviation


@dataclass(frozen=True, eq=False)
class CommonCurve:
    """The columns that follow a common curve, possibly none, and the curve."""

    place: Annotated[IntArray, "k", Meta(ge=0)]  # indices among a row's v numbers, increasing
    curve: Annotated[FloatArray, "k 1", SQUARABLE]  # median logarithm of each column
    # Robust standard deviations of the residuals, large enough that ratios can be squared.
    unit: Annotated[FloatArray, "k 1", Meta(ge=1e-100)]

    @classmethod
    def fit(cls, X: FloatArray, seen: BoolArray, density: FloatArray) -> CommonCurve:
        """Find the columns of X (v, n) whose `seen` cells are predicted best by a common curve.

        `density` is the log density of each cell by a regression on the other columns.
        """
        seen = seen & (X > 0)
        logs, least = _logs(X), np.zeros((2, len(X), 1))
        for j in np.flatnonzero(seen.any(axis=1)):
            least[:, j, 0] = [LEAST_SCATTER * _deviation(of[j, seen[j]]) for of in (logs, X)]
        place = np.flatnonzero((np.mean(X > 0, axis=1) >= POSITIVE) & (least[0, :, 0] > 0))
        alone = np.zeros(X.shape)
        alone[place] = log_density(logs[place], seen[place], least[0, place])
        alone[place] -= np.where(seen[place], logs[place], 0.0)
        while len(place) >= FEWEST_COLUMNS:
            of, x, t, (least_log, least_plain) = seen[place], X[place], logs[place], least[:, place]
            residual, slope = _residual(t), np.where(of, t, 0.0)
            # Log densities of the three baselines: regression, column alone, additive two-way fit.
            others = np.stack(
                [
                    np.where(of, density[place], 0.0),
                    alone[place],
                    log_density(_residual(x), of, least_plain),
                ]
            )
            best = others[others.sum(axis=2).argmax(axis=0), np.arange(len(place))]
            own = log_density(residual, of, least_log) - slope
            gain = own - best
            z = np.array([_vuong(line[cells]) for line, cells in zip(gain, of, strict=True)])
            # Bonferroni: divide the level by the number of columns, or chance rejects some.
            worse = z < ndtri(LEVEL / len(place))
            if not worse.any():
                rival = others[others.sum(axis=(1, 2)).argmax()]
                if _vuong((own - rival).sum(axis=0)) < -ndtri(LEVEL):
                    break
                unit = [_deviation(r[cells]) for r, cells in zip(residual, of, strict=True)]
                curve = np.nanmedian(t, axis=1, keepdims=True)
                return cls(place, curve, np.array(unit)[:, None] + least_log)
            # Drop the worst half of the `worse` columns; judge the rest again without them.
            place = place[~(worse & (z <= np.median(z[worse])))]
        return cls(place[:0], np.empty((0, 1)), np.empty((0, 1)))

    def replace(self, errors: FloatArray, X: FloatArray, *, fitted: bool = False) -> None:
        """Put residuals from the curve into `errors` (v, n), where the numbers X (v, n) are > 0.

        Residuals of `fitted` rows are computed as if the row had been left out.
        """
        if len(self.place):
            found = _residual(_logs(X[self.place]), None if fitted else self.curve) / self.unit
            errors[self.place] = np.where(np.isnan(found), errors[self.place], found)


def log_density(values: FloatArray, seen: BoolArray, least: FloatArray) -> FloatArray:
    """Return the log density of each `seen` value within its column (v, n); 0 for other values.

    The density follows from the distance between the values sqrt(n) ranks above and below; the
    scatter of a column is at least `least` (v, 1).
    """
    out = np.zeros(values.shape)
    for j, cells in enumerate(seen):
        of = values[j, cells]
        order, ranks = np.argsort(of, kind="stable"), np.arange(len(of))
        step = round(np.sqrt(len(of)))
        low, high = np.maximum(ranks - step, 0), np.minimum(ranks + step, len(of) - 1)
        share = np.maximum(high - low, 1) / max(len(of), 1)
        width = of[order[high]] - of[order[low]] + least[j] * share
        found = np.empty(len(of))
        found[order] = np.log(share / width)
        out[j, cells] = found
    return out


def _logs(X: FloatArray) -> FloatArray:
    """Logarithms of numbers; NaN if undefined."""
    return np.log(X, out=np.full(X.shape, np.nan), where=X > 0)


def _residual(values: FloatArray, curve: FloatArray | None = None) -> FloatArray:
    """Subtract a curve, and the size of each row, from values (k, n) of k columns and n rows.

    By default, the curve is each column's median over the other rows. A row's size is the median
    of what is left in its other cells; without other cells, it is 0.
    """
    left = values - (median_of_others(values.T).T if curve is None else curve)
    left -= np.nan_to_num(median_of_others(left))
    return left


def median_of_others(values: FloatArray) -> FloatArray:
    """Return, for each value (k, n), the median of the other k - 1 in its column; k >= 2.

    Other values that are NaN are left out; the median of none is NaN.

    >>> median_of_others(np.array([[1.0], [2.0], [9.0], [4.0], [np.nan]])).ravel()[:4]
    array([4., 4., 2., 2.])
    """
    ordered = np.sort(values, axis=0)
    n_others = np.maximum(np.isfinite(values).sum(axis=0) - 1, 0)
    middle = np.zeros(values.shape)
    for place in (np.maximum(n_others - 1, 0) // 2, n_others // 2):
        own, after = np.take_along_axis(ordered, np.stack([place, place + 1]), axis=0)
        middle += np.where(values <= own, after, own)
    middle /= 2.0
    return middle


def _deviation(values: FloatArray) -> float:
    low, high = np.quantile(values, (0.25, 0.75))
    return float(high - low) / IQR_OF_NORMAL


def _vuong(gain: FloatArray) -> float:
    """Return Vuong's statistic of n log density differences: N(0, 1) if both models fit alike."""
    scatter = gain.std()
    return float(gain.mean() / scatter * np.sqrt(len(gain))) if scatter > 0 else 0.0
