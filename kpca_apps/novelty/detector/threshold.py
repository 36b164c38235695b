"""The rule that flags rows: the threshold above which scores are flagged.

The threshold is calibrated on rows known to be normal; without such rows, the user chooses how many
rows to flag. A quantile of in-sample scores would give no rate: a nominal 5 % flags 29 % of new
normal rows on average. Instead, leave-one-out scores calibrate it (approximately), or rows held
back (split conformal, guaranteed for exchangeable rows: Vovk, Gammerman & Shafer 2005).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kpca_apps.novelty.magnitudes import eight_digits
from kpca_apps.novelty.row_values import blocks_of, row_values
from kpca_apps.system.arrays import FloatArray

# Part of a false discovery rate for rows listed because of single cells; the rest is for rows
# listed by score. A small part, chosen by hand, is enough because such cells lie far out. The union
# of both lists has at most the sum of their rates.
BY_CELLS = 0.02


@dataclass(frozen=True)
class Rule:
    """A rule that decides which rows are flagged."""

    name: str  # "share", "count", "alpha" or "fdr"
    setting: float

    @property
    def calibrated(self) -> bool:
        """Whether the rule is a rate calibrated on clean rows, and no share or count of rows."""
        return self.name in ("alpha", "fdr")

    @property
    def of_scores(self) -> float:
        """The rule's false discovery rate, without the small part reserved for single cells."""
        return (1.0 - BY_CELLS) * self.setting

    def count(self, n_rows: int) -> int:
        """Return the number of rows of a table that a user's share or count flags."""
        return int(self.setting) if self.name == "count" else top_count(n_rows, self.setting)

    def threshold(self, scores: FloatArray, calibration_scores: FloatArray | None = None) -> float:
        """Return the threshold for scores (n,) of a table; rows above it are flagged.

        A false discovery rate also lists rows for single cells. A rate needs the scores of clean
        rows; if these are too few, the threshold is infinite.
        """
        if not self.calibrated:
            return choice_threshold(scores, self.count(len(scores)))
        assert calibration_scores is not None
        if self.name == "alpha":
            return rate_threshold(calibration_scores, self.setting)
        rate = self.rate(conformal_p_values(calibration_scores, scores))
        return rate_threshold(calibration_scores, rate)

    def rate(self, p_values: FloatArray) -> float:
        """False-alarm rate at which rows are flagged; with fdr, it depends on p-values (n,)."""
        if self.name == "alpha":
            return self.setting
        return math.exp(discovery_limit(np.log(p_values), len(p_values), self.of_scores))


def smallest_rate(n_calibration: int) -> float:
    """Smallest false-alarm rate that `n_calibration` rows can calibrate, 1 / (n + 1)."""
    return 1.0 / (n_calibration + 1)


def rate_threshold(calibration_scores: FloatArray, alpha: float) -> float:
    """Return the threshold that a normal row exceeds with probability at most `alpha`, in (0, 1).

    The threshold is the ceil((n + 1)(1 - alpha))-th smallest of n scores of normal rows that the
    model has not adapted to, or infinity if that exceeds n (Vovk et al. 2005, proposition 2.3).
    """
    n = len(calibration_scores)
    # The tiny term keeps (n + 1)(1 - alpha) = 95.00000000000001 from being rounded up to 96.
    order = math.ceil((n + 1) * (1.0 - alpha) - 1e-9)
    if order > n:
        return math.inf
    return float(np.partition(calibration_scores, order - 1)[order - 1])


def conformal_p_values(calibration_scores: FloatArray, scores: FloatArray) -> FloatArray:
    """Share of normal rows expected to score at least as high, (1 + #{s_i >= s}) / (n + 1).

    Bates, Candes, Lei, Romano & Sesia, Testing for outliers with conformal p-values, Annals of
    Statistics 51(1), 2023, equation 2. For very many rows the result is memory-mapped.

    >>> conformal_p_values(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 9.0]))
    array([1.  , 0.75, 0.25])
    """
    n, ordered = len(calibration_scores), np.sort(calibration_scores)
    p_values: FloatArray = row_values(len(scores), np.float64)
    for block in blocks_of(len(scores)):
        below = np.searchsorted(ordered, scores[block], side="left")
        p_values[block] = (1.0 + n - below) / (n + 1.0)
    return p_values


def discovery_limit(log_p: FloatArray, n_looked: int, rate: float) -> float:
    """Return the largest log p-value that keeps false discoveries below the share `rate`.

    If nothing is discovered, return the log p-value that a single discovery would need. Benjamini &
    Hochberg, Journal of the Royal Statistical Society B 57, 1995, equation 1.
    """
    ordered = np.sort(log_p)
    allowed = np.log(rate * np.arange(1, len(ordered) + 2) / max(n_looked, 1))
    below = np.flatnonzero(ordered <= allowed[:-1])
    return float(min(allowed[below[-1] if len(below) else 0], 0.0))


def choice_threshold(scores: FloatArray, count: int) -> float:
    """Return the threshold for flagging the `count` highest scores and those tied with them.

    The threshold is the highest score that is not flagged. Scores that agree to eight digits tie:
    rows that differ by rounding only, or are beyond the reach of a bounded kernel, are flagged
    together. If all rows would be flagged, only those above the tie are.
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
    """Return the number of rows in a share of a table: at least one, at most all but one."""
    return max(1, min(round(share * n_rows), n_rows - 1))
