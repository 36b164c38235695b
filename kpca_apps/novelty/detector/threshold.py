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

from kpca_apps.errors import OptionError
from kpca_apps.novelty.magnitudes import eight_digits
from kpca_apps.novelty.result import ScoreMark, ScoreScale, TailShare, ThresholdInfo
from kpca_apps.system.arrays import BoolArray, FloatArray
from kpca_apps.system.files.windowed import ROWS_A_BLOCK, blocks, row_values, rows_where

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
        if self.name == "share":
            return top_count(n_rows, self.setting)
        if self.setting >= n_rows:
            every = f"{self.setting:g} would flag every one of the {n_rows} rows: choose fewer"
            raise OptionError("count", every)
        return int(self.setting)

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
    for block in blocks(len(scores)):
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
    for block in blocks(len(scores), max(ROWS_A_BLOCK, 2 * count)):
        top = np.concatenate([top, scores[block]])
        top = np.partition(top, -min(count, len(top)))[-count:]
    last = eight_digits(top.min(keepdims=True))
    highest = tied = -math.inf
    for block in blocks(len(scores)):
        part = scores[block]
        digits = eight_digits(part)
        highest = max(highest, float(part[digits < last].max(initial=-math.inf)))
        tied = max(tied, float(part[digits == last].max(initial=-math.inf)))
    return highest if math.isfinite(highest) else tied


def top_count(n_rows: int, share: float) -> int:
    """Return the number of rows in a share of a table: at least one, at most all but one."""
    return max(1, min(round(share * n_rows), n_rows - 1))


NO_RATE = "no false-alarm rate is known without clean rows"
P_VALUES = "p-values say how rare each score is among normal rows"


def flag(
    rule: Rule,
    scores: FloatArray,
    calibration_scores: FloatArray | None = None,
    calibration: str | None = None,
    *,
    set_before: float | None = None,
    listed: BoolArray | bool = False,
) -> tuple[BoolArray, ThresholdInfo, tuple[str, ...]]:
    """Flag rows by a rule; also return a plain sentence on its meaning, and warnings.

    `calibration_scores` are those of clean rows, if any, and `calibration` is how they were
    obtained. A threshold `set_before`, such as one chosen on another table, is used unchanged. Rows
    `listed` (n,) for one of their cells are also flagged.
    """
    n, setting = len(scores), rule.setting
    value = rule.threshold(scores, calibration_scores) if set_before is None else set_before
    is_above = rows_where(scores, lambda part: part > value)
    n_flagged, n_calibration = len(is_above), 0
    flagged = np.zeros(n, dtype=bool) | listed
    flagged[is_above] = True
    warnings: tuple[str, ...] = ()
    if rule.calibrated:
        assert calibration_scores is not None and calibration is not None
        n_calibration = len(calibration_scores)
        if rule.name == "alpha":
            statement = rate_statement(setting, value, n_calibration, calibration)
        else:
            by_cell = int(flagged.sum()) - n_flagged
            how = _calibrated_on(n_calibration, calibration)
            statement = _list_statement(rule, n_flagged, by_cell, value, n, n_calibration, how)
        if math.isinf(value):
            # The smallest number n of clean rows with 1 / (n + 1) <= alpha.
            enough = math.ceil(1.0 / setting - 1e-9) - 1
            instead = f"give at least {enough:,}, or a larger --alpha."
            if rule.name == "fdr":
                instead = "give more of them, a larger --fdr, or a false-alarm rate (--alpha)."
            few = f"{n_calibration:,} reference rows are too few for {rule.name} {setting:.3g}"
            warnings = (f"{few}: {instead}",)
    elif set_before is not None:
        statement = (
            f"The threshold was set by {rule.name} {setting:.3g} on the table the model was fitted "
            f"on; {NO_RATE}."
        )
    else:
        statement = _choice_statement(rule, n_flagged, n)
        statement += f"; {NO_RATE if calibration_scores is None else P_VALUES}."
    used = calibration if rule.calibrated else None
    info = ThresholdInfo(rule.name, setting, value, used, n_calibration, statement)
    return flagged, info, warnings


def _choice_statement(rule: Rule, n_flagged: int, n: int) -> str:
    """State which rows a choice (share or count) flags, and whether ties add or remove rows."""
    count = rule.count(n)
    chosen = f"The share of {_percent(rule.setting)}" if rule.name == "share" else "The count"
    rows = f"{count:,} row{'s' if count > 1 else ''}"
    if n_flagged < count:
        rest = "all score alike: none is flagged"
        if n_flagged:
            only = f"only the other {n_flagged:,} {'is' if n_flagged == 1 else 'are'} flagged"
            rest = f"{n - n_flagged:,} of them score alike: {only}"
        return f"{chosen} asks for {rows} of {n:,}, but {rest}"
    verb = "scores" if count == 1 else "score"
    statement = f"{chosen} flags the {rows} of {n:,} that {verb} highest"
    if n_flagged == count:
        return statement
    more = n_flagged - count
    return f"{statement}, and {more:,} more that score{'s' if more == 1 else ''} like the last"


def rate_statement(alpha: float, threshold: float, n_calibration: int, calibration: str) -> str:
    """State what a false-alarm rate means, or that too few clean rows calibrate it."""
    if math.isinf(threshold):
        return (
            f"Nothing can be flagged at {_percent(alpha)}: {n_calibration:,} reference rows allow "
            f"{100 * smallest_rate(n_calibration):.2g} % at best."
        )
    how = _calibrated_on(n_calibration, calibration)
    return f"About {_percent(alpha)} of new rows like the reference would be flagged; {how}."


def _list_statement(
    rule: Rule, n_above: int, by_cell: int, value: float, n: int, n_calibration: int, how: str
) -> str:
    """State what a false discovery rate means for a list, or why the list is empty."""
    rate = rule.setting
    if n_above or by_cell:
        if by_cell:
            rest = f"and {rows_are(by_cell)} listed for one cell, by the tail of its column"
            how = f"{rows_are(n_above)} listed by score, {how}; {rest}"
        return (
            f"A list of which at most {_percent(rate)} are expected to be false alarms "
            f"(Benjamini-Hochberg); {how}."
        )
    if math.isfinite(value):
        return (
            f"The list is empty: no p-value of the {n:,} rows is small enough for a false "
            f"discovery rate of {_percent(rate)} (Benjamini-Hochberg); {how}."
        )
    smallest = smallest_rate(n_calibration)
    needed = math.ceil(smallest * n / rule.of_scores - 1e-9)
    why = f"which is above the {_percent(rule.of_scores)} that scores have of it"
    if needed <= n:
        why = f"and among {n:,} rows it takes {needed:,} that have it"
    return (
        f"No list can be given at a false discovery rate of {_percent(rate)} from "
        f"{n_calibration:,} reference rows: the smallest p-value they allow is {smallest:.2g}, "
        f"{why}."
    )


def _calibrated_on(n_calibration: int, calibration: str) -> str:
    if calibration == "split":
        return f"calibrated on {n_calibration:,} reference rows held back (guaranteed)"
    return f"calibrated on {n_calibration:,} reference rows, each left out (approximate)"


def rows_are(count: int) -> str:
    """Write a number of rows with its verb, as "2 rows are"."""
    return "1 row is" if count == 1 else f"{count:,} rows are"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


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
