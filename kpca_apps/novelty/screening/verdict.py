"""Scores, ranks and flags of the rows of a table by a model, and what the threshold means."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kpca_apps.engine.precision import evenly_drawn
from kpca_apps.errors import ConfigError, ModelFileError
from kpca_apps.novelty.columns.rows import TableRows
from kpca_apps.novelty.detector.threshold import (
    Rule,
    conformal_p_values,
    rate_threshold,
    smallest_rate,
)
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.result import ScoreMark, ScoreScale, ThresholdInfo
from kpca_apps.novelty.row_values import row_values
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.novelty.screening.options import ScreeningOptions, resolve_rule

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

NO_RATE = "no false-alarm rate is known without clean rows"
P_VALUES = "p-values say how rare each score is among normal rows"
# Ties are broken by distance among this many of the oddest rows; below, duplicates abound.
MAX_TIES = 1_000
# Where more rows than this are equal to the oddest, their place in the table must do.
MAX_MEASURED = 100_000
ROWS_A_BATCH = 1_024
# Training rows whose stored scores are compared with the detector's: the lowest, the highest and
# some others. Of 40 sound models, those of more columns than rows among them, 1.5 % of the rows at
# most scored a tenth of the spread above what was stored, and the order of the ends was right from
# 20 rows on.
COMPARED_ROWS, FEWEST_COMPARED = 64, 20
FAR_ABOVE, MOST_ABOVE = 0.25, 0.25


@dataclass(frozen=True)
class Piece:
    """Rows of a table that one model judges, where several do."""

    name: str  # of their group, to show; empty where the model is that of the whole table
    model: NoveltyModel
    positions: IntArray  # (k,), increasing
    threshold: float  # on the scale of its own model

    def places(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        """Which of some positions are of these rows, and where they are among the model's rows."""
        found = np.flatnonzero(np.isin(positions, self.positions))
        mine = positions[found]
        return found, np.searchsorted(self.positions, mine) if self.name else mine


@dataclass(frozen=True)
class Verdict:
    """A table scored and flagged by a model; arrays (n,) are as in `ScreeningResult`."""

    rows: TableRows
    in_training: bool  # whether they are the very rows the model was fitted on
    scores: FloatArray
    p_values: FloatArray | None
    rarities: FloatArray | None
    ranks: IntArray
    flagged: BoolArray
    threshold: ThresholdInfo
    scale: ScoreScale | None
    warnings: tuple[str, ...]
    pieces: tuple[Piece, ...] = ()  # by groups: together all rows


def is_fitted_on(model: NoveltyModel, rows: TableRows) -> bool:
    """Whether they are the very rows that a model was fitted on, and their scores are known."""
    has_scores = rows.source.n_rows == len(model.training_scores)
    return has_scores and rows.source.fingerprint == model.source.fingerprint


def require_own_scores(model: NoveltyModel, rows: TableRows, positions: IntArray) -> None:
    """Refuse stored scores of training rows (n,), at the positions given, not of the detector.

    A row that was left out of the model scores no lower than by the whole model, up to what the
    landmarks miss, and in about the same order. So those whose stored scores are the lowest must
    not score high, nor those whose stored scores are the highest lowest of all.
    """
    if rows.size_of_parts is not None:
        return  # so many rows' scores are not stored: they come from the fit
    stored, few = model.training_scores, min(COMPARED_ROWS, len(model.training_scores) // 3)
    order = np.argsort(stored, kind="stable")
    drawn = evenly_drawn(len(stored), COMPARED_ROWS)
    some = np.unique(np.concatenate([order[:few], order[len(order) - few :], drawn]))
    found = rows.seen_by(model.encoder, positions[some]).map(model.detector.row_scores())
    spread = float(np.ptp(np.quantile(found, [0.1, 0.9])))
    is_low, is_high = np.isin(some, order[:few]), np.isin(some, order[len(order) - few :])
    too_low = found[is_low] > stored[some[is_low]] + FAR_ABOVE * spread
    is_inverted = few >= FEWEST_COMPARED and np.median(found[is_high]) < np.median(found[is_low])
    if too_low.mean() > MOST_ABOVE or is_inverted:
        raise ModelFileError(
            "the model holds other scores of the rows it was fitted on than its detector gives: "
            "its file was changed after it was saved; fit the model again"
        )


def score_rows(model: NoveltyModel, rows: TableRows, options: ScreeningOptions) -> Verdict:
    """Score, rank and flag the rows of a table; the one fitted on has leave-one-out scores.

    Rows are flagged by the rule of the options, or else that of the model. Those accepted are not,
    and rank after all others: what a rule says of a table, it says of the others.
    """
    rule = resolve_rule(options, clean=model.clean, default=model.rule)
    detector, calibration_scores = model.detector, model.detector.calibration_scores
    in_training = is_fitted_on(model, rows)
    if in_training:
        require_own_scores(model, rows, np.arange(rows.n_rows))
        scores, warnings = model.training_scores, model.warnings
    else:
        scores = rows.map(detector.row_scores())
        warnings = warnings_of_new(model, rows)
    ranks = _rank_rows(model, rows, scores, in_training=in_training)
    p_values = conformal_p_values(calibration_scores, scores) if model.clean else None
    # A threshold that was chosen on the table fitted on is kept for the tables after it.
    is_kept = rule == model.rule and not rule.calibrated and not model.clean and not in_training
    is_accepted = rows.is_accepted
    judged = np.s_[:] if is_accepted is None else ~is_accepted
    flagged_of_judged, threshold, too_few = flag(
        rule,
        scores[judged],
        calibration_scores if model.clean else None,
        detector.calibration,
        set_before=detector.flags_above if is_kept else None,
    )
    flagged = np.zeros(len(scores), dtype=bool)
    flagged[judged] = flagged_of_judged
    if is_accepted is not None:
        order = np.argsort(ranks)
        is_last = is_accepted[order]
        ranks[np.r_[order[~is_last], order[is_last]]] = np.arange(1, len(ranks) + 1)
    rarity, rarities = detector.rarity, None
    scale = p_value_scale(calibration_scores) if model.clean else None
    if rarity is not None:
        rarities, scale = rarity.share(scores), rarity.scale_of_scores
        (at_threshold,) = rarity.share(np.array([threshold.value])).tolist()
        threshold = replace(threshold, rarity=rarity.describe(at_threshold))
    return Verdict(
        rows=rows,
        in_training=in_training,
        scores=scores,
        p_values=p_values,
        rarities=rarities,
        ranks=ranks,
        flagged=flagged,
        threshold=threshold,
        scale=scale,
        warnings=(*warnings, *too_few),
    )


def warnings_of_new(model: NoveltyModel, rows: TableRows) -> tuple[str, ...]:
    """Return what is to be known of rows that a model was not fitted on."""
    where = f"In {model.source.name}, the reference: "
    of_model = (
        note.after(where) if isinstance(note, Note) else f"{where}{note}" for note in model.warnings
    )
    return (*of_model, *rows.warnings())


def _rank_rows(
    model: NoveltyModel, rows: TableRows, scores: FloatArray, *, in_training: bool
) -> IntArray:
    """Rank every row; those beyond the reach of a bounded kernel, which score the same, too."""
    neighbours = model.detector.reference
    place = max(0, len(scores) - MAX_TIES)
    oddest = np.partition(scores, place)[place]

    def distances(positions: IntArray) -> FloatArray:
        # To the rows of the model's core, not to its landmarks: training rows may be landmarks.
        found = np.zeros(len(positions))
        measured = np.flatnonzero(scores[positions] >= oddest)
        if not 0 < len(measured) <= MAX_MEASURED:
            return found
        matrix = rows.encoded(positions[measured])
        for start in range(0, len(measured), ROWS_A_BATCH):
            part = slice(start, start + ROWS_A_BATCH)
            standardised = model.detector.views.standardised(matrix[part])
            squares = cdist(standardised, neighbours.standardised, "sqeuclidean")
            if in_training:
                squares[positions[measured[part]][:, None] == neighbours.index] = np.inf
            found[measured[part]] = squares.min(axis=1)
        return found

    return novelty_ranks(scores, distances)


def novelty_ranks(scores: FloatArray, distances: Callable[[IntArray], FloatArray]) -> IntArray:
    """Rank of every row (n,), 1 = most novel, by score.

    Equal scores are ordered by `distances(rows)` to the rows of the model, then by place.
    """
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    equal = ordered[1:] == ordered[:-1]
    (slots,) = np.nonzero(np.append(equal, False) | np.insert(equal, 0, False))
    if slots.size:
        rows = np.sort(order[slots])
        order[slots] = rows[np.lexsort((rows, -distances(rows), -scores[rows]))]
    ranks = row_values(len(scores), np.int64)
    ranks[order] = np.arange(1, len(scores) + 1)
    return ranks


def top_rows(ranks: IntArray, count: int) -> IntArray:
    """Positions of the first rows of a list, in its order."""
    (rows,) = np.nonzero(ranks <= count)
    return np.asarray(rows[np.argsort(ranks[rows])], dtype=np.int64)


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
