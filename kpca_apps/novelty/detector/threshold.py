"""The rule that flags rows: a threshold, above which rows are flagged and no others.

It is calibrated on rows known to be normal, or plainly called a choice. A quantile of in-sample
scores is never a rate: a nominal 5 % then flags 29 % of new normal rows on average. Leave-one-out
scores calibrate instead (approximate), or rows held back (split conformal, guaranteed for
exchangeable rows: Vovk, Gammerman & Shafer, Algorithmic Learning in a Random World, 2005).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.novelty.magnitudes import eight_digits
from kpca_apps.novelty.row_values import blocks_of, row_values
from kpca_apps.system.arrays import FloatArray


@dataclass(frozen=True)
class Rule:
    """What decides which rows are flagged."""

    name: str  # "share", "count", "alpha" or "fdr"
    setting: float

    @property
    def calibrated(self) -> bool:
        """Whether it is a rate that clean rows calibrate, not a choice."""
        return self.name in ("alpha", "fdr")

    def count(self, n_rows: int) -> int:
        """Rows of a table that a choice asks for."""
        return int(self.setting) if self.name == "count" else top_count(n_rows, self.setting)

    def threshold(self, scores: FloatArray, calibration_scores: FloatArray | None = None) -> float:
        """Threshold for scores (n,) of a table: the rows above it are flagged, and no others.

        A rate needs the scores of clean rows; where these are too few, it is infinite.
        """
        if not self.calibrated:
            return choice_threshold(scores, self.count(len(scores)))
        assert calibration_scores is not None
        if self.name == "alpha":
            return rate_threshold(calibration_scores, self.setting)
        listed = benjamini_hochberg(conformal_p_values(calibration_scores, scores), self.setting)
        if listed.all():
            return float(np.nextafter(scores.min(), -math.inf))
        # P-values fall as scores rise: the list is that of the highest scores.
        highest = float(scores[~listed].max())
        # Of an empty list, what a single row would need to be one by itself, or more.
        alone = rate_threshold(calibration_scores, self.setting / len(scores))
        return highest if listed.any() else max(alone, highest)


def smallest_rate(n_calibration: int) -> float:
    """Smallest false-alarm rate that `n_calibration` rows can calibrate, 1 / (n + 1)."""
    return 1.0 / (n_calibration + 1)


def rate_threshold(calibration_scores: FloatArray, alpha: float) -> float:
    """Threshold that a normal row exceeds with probability at most `alpha`, in (0, 1).

    It is the ceil((n + 1)(1 - alpha))-th smallest of n scores of normal rows that the model has
    not adapted to, or infinity where that exceeds n (Vovk et al. 2005, proposition 2.3).
    """
    n = len(calibration_scores)
    # The tiny subtraction keeps (n + 1)(1 - alpha) = 95.00000000000001 from counting as 96.
    order = math.ceil((n + 1) * (1.0 - alpha) - 1e-9)
    if order > n:
        return math.inf
    return float(np.partition(calibration_scores, order - 1)[order - 1])


def conformal_p_values(calibration_scores: FloatArray, scores: FloatArray) -> FloatArray:
    """Share of normal rows expected to score at least as high, (1 + #{s_i >= s}) / (n + 1).

    Bates, Candes, Lei, Romano & Sesia, Testing for outliers with conformal p-values, Annals of
    Statistics 51(1), 2023, equation 2. Of very many rows they are mapped from a temporary file.

    >>> conformal_p_values(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 9.0]))
    array([1.  , 0.75, 0.25])
    """
    n, ordered = len(calibration_scores), np.sort(calibration_scores)
    p_values: FloatArray = row_values(len(scores), np.float64)
    for block in blocks_of(len(scores)):
        below = np.searchsorted(ordered, scores[block], side="left")
        p_values[block] = (1.0 + n - below) / (n + 1.0)
    return p_values


def benjamini_hochberg(p_values: FloatArray, rate: float) -> NDArray[np.bool_]:
    """Rows of a list whose expected share of false discoveries is at most `rate`, in (0, 1).

    Benjamini & Hochberg, Journal of the Royal Statistical Society B 57, 1995, equation 1.
    """
    found, counts = np.unique(p_values, return_counts=True)
    passing = np.flatnonzero(found <= rate * np.cumsum(counts) / len(p_values))
    cut = found[passing[-1]] if passing.size else -1.0
    return p_values <= cut


def choice_threshold(scores: FloatArray, count: int) -> float:
    """Threshold that the `count` highest scores exceed, and with them all that tie with the last.

    It is the highest score that is not flagged. Scores tie where they agree to eight digits: rows
    that are alike but for rounding, or beyond the reach of a bounded kernel, are flagged together.
    Where that would be all rows, those that tie stand out from none: only scores above theirs do.
    """
    place = len(scores) - count
    last = eight_digits(np.partition(scores, place)[place])
    highest = tied = -math.inf
    for block in blocks_of(len(scores)):
        part = scores[block]
        digits = eight_digits(part)
        highest = max(highest, float(part[digits < last].max(initial=-math.inf)))
        tied = max(tied, float(part[digits == last].max(initial=-math.inf)))
    return highest if math.isfinite(highest) else tied


def top_count(n_rows: int, share: float) -> int:
    """Rows that a share of a table stands for: at least one, at most all but one."""
    return max(1, min(round(share * n_rows), n_rows - 1))
