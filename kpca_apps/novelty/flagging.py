"""Which rows are flagged: a rule applied to scores, and a plain sentence on what it means."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError
from kpca_apps.novelty.options import Rule
from kpca_apps.novelty.result import ThresholdInfo
from kpca_apps.novelty.threshold import (
    benjamini_hochberg,
    conformal_p_values,
    rate_threshold,
    smallest_rate,
    top_count,
)

__all__ = ["flag_above", "flag_by_choice", "flag_by_rate"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

NO_RATE = "no false-alarm rate is known without clean rows"


def flag_by_choice(
    rule: Rule, scores: FloatArray, ranks: IntArray
) -> tuple[BoolArray, ThresholdInfo]:
    """Flag the top rows of a table by `share` or `count`; always at least one.

    By rank, not by score: rows far out may share one score, and none would exceed it.

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
    flagged = ranks <= count
    value = float(np.partition(scores, n - count - 1)[n - count - 1]) if n > count else -math.inf
    chosen = f"a share of {_percent(rule.setting)}" if rule.name == "share" else "a count"
    rows = "1 row" if count == 1 else f"{count:,} rows"
    statement = f"A choice: {chosen} flags the {rows} of {n:,} that score highest; {NO_RATE}."
    return flagged, ThresholdInfo(rule.name, rule.setting, value, None, 0, statement)


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
        meaning = f"About {_percent(rule.setting)} of new rows like the reference would be flagged"
    else:
        flagged, value = _discoveries(rule.setting, scores, calibration_scores)
        meaning = (
            f"A list of which at most {_percent(rule.setting)} are expected to be false alarms "
            "(Benjamini-Hochberg)"
        )
    how = (
        f"calibrated on {n_calibration:,} reference rows held back (guaranteed)"
        if calibration == "split"
        else f"calibrated on {n_calibration:,} reference rows, each left out (approximate)"
    )
    info = ThresholdInfo(
        rule.name, rule.setting, value, calibration, n_calibration, f"{meaning}; {how}."
    )
    return flagged, info, _too_few(rule, value, n_calibration, len(scores))


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


def _too_few(rule: Rule, value: float, n_calibration: int, n_rows: int) -> tuple[str, ...]:
    if math.isfinite(value):
        return ()
    smallest = smallest_rate(n_calibration)
    if rule.name == "alpha":
        return (
            f"{n_calibration:,} calibrating rows are too few for alpha {rule.setting:.3g}: nothing "
            f"can be flagged. The smallest alpha they allow is {smallest:.3g}.",
        )
    return (
        f"The smallest p-value that {n_calibration:,} calibrating rows allow is {smallest:.3g}: a "
        f"single row among {n_rows:,} can never be on a list with fdr {rule.setting:.3g}.",
    )
