"""The rule that flags rows by a threshold for their scores, and how rare a score is.

The threshold is calibrated on rows known to be normal; without such rows, the user chooses how many
rows to flag. A quantile of in-sample scores would give no rate: a nominal 5 % flags 29 % of new
normal rows on average. Instead, leave-one-out scores calibrate it (approximately), or rows held
back (split conformal, guaranteed for exchangeable rows: Vovk, Gammerman & Shafer 2005).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from msgspec import Meta

from kpca_apps.novelty.magnitudes import eight_digits
from kpca_apps.novelty.result import ScoreMark, ScoreScale, TailShare
from kpca_apps.system.arrays import FloatArray
from kpca_apps.system.files.windowed import ROWS_A_BLOCK, blocks_of, row_values

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


def p_value_scale(calibration_scores: FloatArray) -> ScoreScale:
    """Return the scale of p-values, with the scores at round p-values."""
    n = len(calibration_scores)
    rates = [0.1**power for power in range(1, 7)]
    marks = [(rate_threshold(calibration_scores, rate), f"{rate:.1g}") for rate in rates]
    return ScoreScale(
        name="p-value",
        statement=(
            "p-value: the share of rows like the reference that would score so high; "
            f"{n:,} of them show no share below {smallest_rate(n):.2g}."
        ),
        marks=tuple(ScoreMark(score, words) for score, words in marks if math.isfinite(score)),
    )


def conformal_p_values(calibration_scores: FloatArray, scores: FloatArray) -> FloatArray:
    """Share of normal rows expected to score at least as high, (1 + #{s_i >= s}) / (n + 1).

    Bates, Candes, Lei, Romano & Sesia, Testing for outliers with conformal p-values, Annals of
    Statistics 51(1), 2023, equation 2. For very many rows the result is memory-mapped.

    >>> conformal_p_values(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 9.0]))
    array([1.  , 0.75, 0.25])
    """
    n, ordered = len(calibration_scores), np.sort(calibration_scores)
    p_values: FloatArray = row_values(len(scores), np.float64)
    for block in blocks_of(scores, p_values):
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
    top = np.empty(0)
    for block in blocks_of(scores, size=max(ROWS_A_BLOCK, 2 * count)):
        top = np.concatenate([top, scores[block]])
        top = np.partition(top, -min(count, len(top)))[-count:]
    last = eight_digits(top.min(keepdims=True))
    highest = tied = -math.inf
    for block in blocks_of(scores):
        part = scores[block]
        digits = eight_digits(part)
        highest = max(highest, float(part[digits < last].max(initial=-math.inf)))
        tied = max(tied, float(part[digits == last].max(initial=-math.inf)))
    return highest if math.isfinite(highest) else tied


def top_count(n_rows: int, share: float) -> int:
    """Return the number of rows in a share of a table: at least one, at most all but one."""
    return max(1, min(round(share * n_rows), n_rows - 1))


MAX_KNOTS = 256  # half are the highest scores, half are quantiles of all scores
COMMON = 0.1  # larger shares are written as "23 in 100"


@dataclass(frozen=True, eq=False)
class Rarity:
    """Distribution of the scores of the training rows, if no clean rows calibrate them.

    Shares of rows are counted, never extrapolated: a score above all rows is only known to be rarer
    than each of them.
    """

    n_rows: Annotated[int, Meta(ge=2)]
    knots: Annotated[FloatArray, "k"]  # some of the scores, increasing
    counts: Annotated[FloatArray, "k"]  # number of rows that score at least a knot, decreasing

    def validate(self) -> None:
        """Raise ValueError for arrays that no fit gives."""
        sound = (
            len(self.knots) >= 1
            and (np.diff(self.knots) > 0).all()
            and (np.diff(self.counts) <= 0).all()
            and self.n_rows >= self.counts[0]
            and self.counts[-1] >= 1
        )
        if not sound:
            raise ValueError("counts out of order")

    @classmethod
    def fit(cls, scores: FloatArray) -> Self:
        """Learn from finite scores (n,), n >= 2, of rows that the model has not seen."""
        ordered = np.sort(np.asarray(scores, dtype=np.float64))
        n, half = len(ordered), MAX_KNOTS // 2
        quantiles = np.linspace(0, n - 1, half).round().astype(np.int64)
        places = np.union1d(quantiles, np.arange(max(n - half, 0), n))
        knots = np.unique(ordered[places])
        return cls(n, knots, (n - np.searchsorted(ordered, knots)).astype(np.float64))

    @classmethod
    def pooled(cls, parts: Sequence[tuple[Self, float]]) -> Self:
        """Join the distributions of groups, each with the number of rows it represents."""
        if len(parts) == 1:
            return parts[0][0]
        knots = np.unique(np.concatenate([part.knots for part, _ in parts]))
        # Each count includes the new row itself, which must count only once.
        above = np.sum([n * (part.count(knots) - 1.0) / part.n_rows for part, n in parts], axis=0)
        return cls(round(sum(n for _, n in parts)), knots, 1.0 + above)

    def count(self, scores: FloatArray) -> FloatArray:
        """Return the number of rows that score at least as high as each row, itself included."""
        return np.interp(scores, self.knots, self.counts, right=1.0)

    def share(self, scores: FloatArray) -> FloatArray:
        """Return the share of rows that would score at least as high as each row, (r,)."""
        # The expected share above the i-th largest of n values is i / (n + 1).
        return self.count(scores) / (self.n_rows + 1.0)

    def describe(self, share: float) -> TailShare:
        """Write a share as "1 in N", or "< 1 in n" for a score above all n rows."""
        if share >= COMMON:
            return TailShare(share, f"{min(round(100 * share), 99)} in 100")
        n = round(1.0 / share)
        if n > self.n_rows:
            return TailShare(share, f"< 1 in {self.n_rows:,}")
        return TailShare(share, f"1 in {round(n, 1 - math.floor(math.log10(n))):,}")

    @property
    def scale_of_scores(self) -> ScoreScale:
        """The scale of rarities, with the scores that 1 in 10, 1 in 100 ... rows reach."""
        n, shares = self.n_rows, self.share(self.knots)
        powers = range(1, math.floor(math.log10(n)) + 1)
        marks = [
            ScoreMark(float(np.interp(-(0.1**power), -shares, self.knots)), f"1 in {10**power:,}")
            for power in powers
        ]
        return ScoreScale(
            name="how rare",
            statement=(
                f"How rare: the share of the {n:,} rows that the model was learned from that score "
                f'at least as high; "< 1 in {n:,}" is higher than all of them.'
            ),
            marks=tuple(marks),
        )
