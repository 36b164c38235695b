"""Which rows are flagged: a rule applied to scores, and a plain sentence on what it means.

Whatever the rule, rows that score above its threshold are flagged and no others.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError
from kpca_apps.novelty.detector.threshold import (
    benjamini_hochberg,
    choice_threshold,
    conformal_p_values,
    rate_threshold,
    smallest_rate,
    top_count,
)
from kpca_apps.novelty.result import ScoreMark, ScoreScale, ThresholdInfo
from kpca_apps.novelty.screening.options import Rule

__all__ = ["flag_above", "flag_by_choice", "flag_by_rate", "p_value_scale", "rate_statement"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

NO_RATE = "no false-alarm rate is known without clean rows"
P_VALUES = "p-values say how rare each score is among normal rows"


def flag_by_choice(
    rule: Rule, scores: FloatArray, *, clean: bool = False
) -> tuple[BoolArray, ThresholdInfo]:
    """Flag the top rows of a table by `share` or `count`, and the rows that tie with the last.

    Parameters
    ----------
    rule : Rule
        ``share`` or ``count``.
    scores : (n,) array
        Of the rows to judge.
    clean : bool
        Whether a clean reference gives the rows p-values.

    Raises
    ------
    ConfigError
        If `count` asks for every row of the table.
    """
    n = len(scores)
    if rule.name == "count" and rule.setting >= n:
        raise ConfigError(
            f"count {rule.setting:g} would flag every one of the {n} rows: choose fewer"
        )
    count = int(rule.setting) if rule.name == "count" else top_count(n, rule.setting)
    value = choice_threshold(scores, count)
    flagged = scores > value
    statement = _choice_statement(rule, count, int(flagged.sum()), n)
    statement += f"; {P_VALUES if clean else NO_RATE}."
    return flagged, ThresholdInfo(rule.name, rule.setting, value, None, 0, statement)


def _choice_statement(rule: Rule, count: int, n_flagged: int, n: int) -> str:
    """Say which rows a choice flags, and where ties make them more or fewer."""
    chosen = f"a share of {_percent(rule.setting)}" if rule.name == "share" else "a count"
    those = "1 row" if count == 1 else f"{count:,} rows"
    if n_flagged < count:
        left = "all score alike: none is flagged"
        if n_flagged:
            only = f"only the other {n_flagged:,} {'is' if n_flagged == 1 else 'are'} flagged"
            left = f"{n - n_flagged:,} of them score alike: {only}"
        return f"A choice: {chosen} asks for {those} of {n:,}, but {left}"
    statement = (
        f"A choice: {chosen} flags the {those} of {n:,} that {'scores' if count == 1 else 'score'} "
        "highest"
    )
    if n_flagged == count:
        return statement
    more = n_flagged - count
    return f"{statement}, and {more:,} more that score{'s' if more == 1 else ''} like the last"


def flag_above(rule: Rule, scores: FloatArray, threshold: float) -> tuple[BoolArray, ThresholdInfo]:
    """Flag rows above a threshold that was chosen on the table the model was fitted on."""
    statement = (
        f"A choice: the threshold that {rule.name} {rule.setting:.3g} set on the table the model "
        f"was fitted on; {NO_RATE}."
    )
    return scores > threshold, ThresholdInfo(rule.name, rule.setting, threshold, None, 0, statement)


def flag_by_rate(
    rule: Rule, scores: FloatArray, calibration_scores: FloatArray, calibration: str
) -> tuple[BoolArray, ThresholdInfo, tuple[str, ...]]:
    """Flag rows by a rate that clean rows calibrate.

    Where no row can be flagged, the statement says why.

    Parameters
    ----------
    rule : Rule
        ``alpha`` or ``fdr``.
    scores : (n,) array
        Scores of the rows to judge.
    calibration_scores : (c,) array
        Scores of clean rows.
    calibration : str
        ``leave-one-out`` or ``split``.

    Returns
    -------
    flagged : (n,) bool array
    threshold : ThresholdInfo
    warnings : tuple of str
        Said where the clean rows are too few for the rate.
    """
    n_calibration = len(calibration_scores)
    if rule.name == "alpha":
        value = rate_threshold(calibration_scores, rule.setting)
        flagged = scores > value
        statement = rate_statement(rule.setting, value, n_calibration, calibration)
    else:
        flagged, value = _discoveries(rule.setting, scores, calibration_scores)
        listed = int(flagged.sum())
        statement = _list_statement(rule.setting, listed, value, len(scores), n_calibration)
        if math.isfinite(value):
            statement += f"; {_calibrated(n_calibration, calibration)}."
    info = ThresholdInfo(rule.name, rule.setting, value, calibration, n_calibration, statement)
    return flagged, info, _way_out(rule, value, n_calibration)


def rate_statement(alpha: float, threshold: float, n_calibration: int, calibration: str) -> str:
    """Say what a false-alarm rate means, or that the clean rows are too few for it.

    Parameters
    ----------
    alpha : float
        The rate.
    threshold : float
        What it came to; infinite where the clean rows are too few.
    n_calibration : int
        Clean rows that calibrate it.
    calibration : str
        ``leave-one-out`` or ``split``.

    Examples
    --------
    >>> rate_statement(0.001, math.inf, 300, "leave-one-out")
    'Nothing can be flagged at 0.1 %: 300 reference rows allow 0.33 % at best.'
    """
    if math.isinf(threshold):
        return (
            f"Nothing can be flagged at {_percent(alpha)}: {n_calibration:,} reference rows allow "
            f"{100 * smallest_rate(n_calibration):.2g} % at best."
        )
    how = _calibrated(n_calibration, calibration)
    return f"About {_percent(alpha)} of new rows like the reference would be flagged; {how}."


def p_value_scale(calibration_scores: FloatArray) -> ScoreScale:
    """Say what p-values mean, and which scores have round ones.

    Parameters
    ----------
    calibration_scores : (c,) array
        Scores of clean rows.

    Examples
    --------
    >>> scale = p_value_scale(np.arange(1.0, 100.0))
    >>> scale.statement
    'p-value: the share of rows like the reference that would score so high; 99 of them show no
    share below 0.01.'
    >>> [(mark.score, mark.words) for mark in scale.marks]
    [(90.0, '0.1'), (99.0, '0.01')]
    """
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


def _list_statement(
    rate: float, n_listed: int, value: float, n_rows: int, n_calibration: int
) -> str:
    """Say what a false discovery rate means for a list, or why the list is empty."""
    if n_listed:
        return (
            f"A list of which at most {_percent(rate)} are expected to be false alarms "
            "(Benjamini-Hochberg)"
        )
    if math.isfinite(value):
        return (
            f"The list is empty: no p-value of the {n_rows:,} rows is small enough for a false "
            f"discovery rate of {_percent(rate)} (Benjamini-Hochberg)"
        )
    smallest = smallest_rate(n_calibration)
    needed = math.ceil(smallest * n_rows / rate - 1e-9)
    why = "which is above the rate itself"
    if needed <= n_rows:
        why = f"and among {n_rows:,} rows it takes {needed:,} that have it"
    return (
        f"No list can be given at a false discovery rate of {_percent(rate)} from "
        f"{n_calibration:,} reference rows: the smallest p-value they allow is {smallest:.2g}, "
        f"{why}."
    )


def _calibrated(n_calibration: int, calibration: str) -> str:
    if calibration == "split":
        return f"calibrated on {n_calibration:,} reference rows held back (guaranteed)"
    return f"calibrated on {n_calibration:,} reference rows, each left out (approximate)"


def _discoveries(
    rate: float, scores: FloatArray, calibration_scores: FloatArray
) -> tuple[BoolArray, float]:
    """Benjamini-Hochberg list, and the score that its rows exceed and no other row does."""
    flagged = benjamini_hochberg(conformal_p_values(calibration_scores, scores), rate)
    if not flagged.any():
        # What a single row would need to be a list by itself.
        alone = rate_threshold(calibration_scores, rate / len(scores))
        return flagged, max(alone, float(scores.max()))
    if flagged.all():
        return flagged, float(np.nextafter(scores.min(), -math.inf))
    return flagged, float(scores[~flagged].max())


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _way_out(rule: Rule, value: float, n_calibration: int) -> tuple[str, ...]:
    """Say what to do where the clean rows are too few to flag anything."""
    if math.isfinite(value):
        return ()
    few = f"{n_calibration:,} reference rows are too few for {rule.name} {rule.setting:.3g}"
    if rule.name == "alpha":
        # The smallest n with 1 / (n + 1) <= alpha.
        enough = math.ceil(1.0 / rule.setting - 1e-9) - 1
        return (f"{few}: give at least {enough:,}, or a larger --alpha.",)
    return (f"{few}: give more of them, a larger --fdr, or a false-alarm rate (--alpha).",)
