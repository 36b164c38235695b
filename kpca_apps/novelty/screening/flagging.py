"""Rows flagged by a rule, and what the rule and its threshold mean, in sentences."""

from __future__ import annotations

import math

from kpca_apps.errors import ConfigError
from kpca_apps.novelty.detector.threshold import Rule, rate_threshold, smallest_rate
from kpca_apps.novelty.result import ScoreMark, ScoreScale, ThresholdInfo
from kpca_apps.system.arrays import BoolArray, FloatArray

NO_RATE = "no false-alarm rate is known without clean rows"
P_VALUES = "p-values say how rare each score is among normal rows"


def flag(
    rule: Rule,
    scores: FloatArray,
    calibration_scores: FloatArray | None = None,
    calibration: str | None = None,
    *,
    set_before: float | None = None,
) -> tuple[BoolArray, ThresholdInfo, tuple[str, ...]]:
    """Flag rows by a rule, with a plain sentence on what it means and warnings.

    `calibration_scores` are those of clean rows, where there are any, and `calibration` says how
    they were obtained. A threshold `set_before`, such as one chosen on another table, is taken as
    it is.
    """
    n, setting = len(scores), rule.setting
    if rule.name == "count" and set_before is None and setting >= n:
        raise ConfigError(f"count {setting:g} would flag every one of the {n} rows: choose fewer")
    value = set_before
    if value is None:
        value = rule.threshold(scores, calibration_scores)
    flagged = scores > value
    n_flagged, n_calibration = int(flagged.sum()), 0
    warnings: tuple[str, ...] = ()
    if rule.calibrated:
        assert calibration_scores is not None and calibration is not None
        n_calibration = len(calibration_scores)
        if rule.name == "alpha":
            statement = rate_statement(setting, value, n_calibration, calibration)
        else:
            statement = _list_statement(setting, n_flagged, value, n, n_calibration, calibration)
        if math.isinf(value):
            # The smallest n with 1 / (n + 1) <= alpha.
            enough = math.ceil(1.0 / setting - 1e-9) - 1
            instead = f"give at least {enough:,}, or a larger --alpha."
            if rule.name == "fdr":
                instead = "give more of them, a larger --fdr, or a false-alarm rate (--alpha)."
            few = f"{n_calibration:,} reference rows are too few for {rule.name} {setting:.3g}"
            warnings = (f"{few}: {instead}",)
    elif set_before is not None:
        statement = (
            f"A choice: the threshold that {rule.name} {setting:.3g} set on the table the model "
            f"was fitted on; {NO_RATE}."
        )
    else:
        statement = _choice_statement(rule, n_flagged, n)
        statement += f"; {NO_RATE if calibration_scores is None else P_VALUES}."
    used = calibration if rule.calibrated else None
    info = ThresholdInfo(rule.name, setting, value, used, n_calibration, statement)
    return flagged, info, warnings


def _choice_statement(rule: Rule, n_flagged: int, n: int) -> str:
    """Say which rows a choice flags, and where ties make them more or fewer."""
    count = rule.count(n)
    chosen = f"a share of {_percent(rule.setting)}" if rule.name == "share" else "a count"
    rows = f"{count:,} row{'s' if count > 1 else ''}"
    if n_flagged < count:
        rest = "all score alike: none is flagged"
        if n_flagged:
            only = f"only the other {n_flagged:,} {'is' if n_flagged == 1 else 'are'} flagged"
            rest = f"{n - n_flagged:,} of them score alike: {only}"
        return f"A choice: {chosen} asks for {rows} of {n:,}, but {rest}"
    verb = "scores" if count == 1 else "score"
    statement = f"A choice: {chosen} flags the {rows} of {n:,} that {verb} highest"
    if n_flagged == count:
        return statement
    more = n_flagged - count
    return f"{statement}, and {more:,} more that score{'s' if more == 1 else ''} like the last"


def rate_statement(alpha: float, threshold: float, n_calibration: int, calibration: str) -> str:
    """Say what a false-alarm rate means, or that the clean rows are too few for it."""
    if math.isinf(threshold):
        return (
            f"Nothing can be flagged at {_percent(alpha)}: {n_calibration:,} reference rows allow "
            f"{100 * smallest_rate(n_calibration):.2g} % at best."
        )
    how = _calibrated_on(n_calibration, calibration)
    return f"About {_percent(alpha)} of new rows like the reference would be flagged; {how}."


def _list_statement(
    rate: float, n_listed: int, value: float, n: int, n_calibration: int, calibration: str
) -> str:
    """Say what a false discovery rate means for a list, or why the list is empty."""
    how = _calibrated_on(n_calibration, calibration)
    if n_listed:
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
    needed = math.ceil(smallest * n / rate - 1e-9)
    why = "which is above the rate itself"
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


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def p_value_scale(calibration_scores: FloatArray) -> ScoreScale:
    """Say what p-values mean, and which scores have round ones."""
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
