"""Scores, ranks and flags of a table by a model, and what a model is told about a new table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError
from kpca_apps.files.tables.table import SourceInfo
from kpca_apps.novelty.detector.rarity import Rarity
from kpca_apps.novelty.detector.threshold import conformal_p_values
from kpca_apps.novelty.result import ScoreScale, TailShare, ThresholdInfo
from kpca_apps.novelty.screening.flagging import (
    flag_above,
    flag_by_choice,
    flag_by_rate,
    p_value_scale,
)
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.novelty.screening.options import RULES, ScreeningOptions, resolve_rule
from kpca_apps.novelty.screening.ranking import rank_rows
from kpca_apps.novelty.table.columns import ColumnOptions, ColumnSpec, check_options, quoted
from kpca_apps.novelty.table.rows import AnyTable, TableRows, column_names

__all__ = ["Judged", "adapted", "check_names", "inherit_options", "judge", "knows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Judged:
    """A table scored and flagged by a model, before it is put into words.

    Attributes
    ----------
    rows : TableRows
        Its rows.
    known : bool
        Whether it is the very table the model was fitted on.
    scores, p_values, rarities, ranks, flagged : (n,) array
        As in `ScreeningResult`.
    threshold : ThresholdInfo
        What flagged.
    rarity : Rarity or None
        What `rarities` come from.
    scale : ScoreScale or None
        As in `ScreeningResult`.
    warnings : tuple of str
        What a reader must know.
    """

    rows: TableRows
    known: bool
    scores: FloatArray
    p_values: FloatArray | None
    rarities: FloatArray | None
    ranks: IntArray
    flagged: BoolArray
    threshold: ThresholdInfo
    rarity: Rarity | None
    scale: ScoreScale | None
    warnings: tuple[str, ...]

    def rarity_of(self, position: int) -> TailShare | None:
        """Say how rare the score of one row is."""
        if self.rarity is None or self.rarities is None:
            return None
        return self.rarity.describe(float(self.rarities[position]))

    def own(self, positions: IntArray) -> IntArray:
        """Positions of some rows among the training rows, -1 for new ones."""
        return positions if self.known else np.full(len(positions), -1)


def judge(model: NoveltyModel, rows: TableRows, options: ScreeningOptions) -> Judged:
    """Score, rank and flag the rows of a table.

    Each is judged independently of the others. The very table the model was fitted on is
    recognised: its rows are scored as if each had been left out.

    Parameters
    ----------
    model : NoveltyModel
        The model.
    rows : TableRows
        The table.
    options : ScreeningOptions
        Which rule, if not the model's.

    Returns
    -------
    Judged
    """
    rule = resolve_rule(options, clean=model.clean, default=model.rule)
    detector, known = model.detector, knows(model, rows.source)
    if known:
        scores, warnings = model.training_scores, model.warnings
    else:
        scores = rows.map(detector.row_scores())
        warnings = (*(_of_reference(model, text) for text in model.warnings), *rows.warnings())
    ranks = rank_rows(model, rows, scores, known=known)
    p_values = conformal_p_values(detector.calibration_scores_, scores) if model.clean else None
    if rule.calibrated:
        flagged, threshold, too_few = flag_by_rate(
            rule, scores, detector.calibration_scores_, detector.calibration_ or "leave-one-out"
        )
        warnings += too_few
    elif rule == model.rule and not model.clean and not known:
        flagged, threshold = flag_above(rule, scores, detector.threshold_)
    else:
        flagged, threshold = flag_by_choice(rule, scores, clean=model.clean)
    rarity, rarities = detector.rarity_, None
    if rarity is not None:
        rarities = rarity.share(scores)
        (at_threshold,) = rarity.share(np.array([threshold.value])).tolist()
        threshold = replace(threshold, rarity=rarity.describe(at_threshold))
    scale = p_value_scale(detector.calibration_scores_) if model.clean else None
    if rarity is not None:
        scale = rarity.scale_of_scores
    return Judged(
        rows=rows,
        known=known,
        scores=scores,
        p_values=p_values,
        rarities=rarities,
        ranks=ranks,
        flagged=flagged,
        threshold=threshold,
        rarity=rarity,
        scale=scale,
        warnings=warnings,
    )


def knows(model: NoveltyModel, source: SourceInfo) -> bool:
    """Whether a table is the very one a model was fitted on, whose scores it holds."""
    same_bytes = source.sha256 == model.source.sha256
    return same_bytes and source.n_rows == len(model.training_scores)


def _of_reference(model: NoveltyModel, warning: str) -> str:
    return f"In {model.source.name}, the reference: {warning}"


def inherit_options(model: NoveltyModel, table: AnyTable, **changes: Any) -> ScreeningOptions:
    """Take the options a model was fitted with for another table.

    Parameters
    ----------
    model : NoveltyModel
        The model.
    table : Table or PartedTable
        The table to score; a label or id column it does not have is forgotten.
    **changes
        Fields of `ScreeningOptions`, or ``label``, ``id`` and ``hide``, that are told anew;
        ``None`` is not. A rule replaces the model's.

    Returns
    -------
    ScreeningOptions
    """
    told = {name: value for name, value in changes.items() if value is not None}
    columns = model.options.columns
    kept: dict[str, Any] = {
        name: column if column in column_names(table) else None
        for name, column in (("label", columns.label), ("id", columns.id))
    }
    kept |= {name: told.pop(name) for name in ("label", "id", "hide") if name in told}
    columns = replace(columns, **kept)
    inherited: dict[str, Any] = {"columns": columns}
    if columns.label is None or columns.label != model.options.columns.label:
        inherited["positive"] = None
    if told.keys() & set(RULES):
        inherited |= dict.fromkeys(RULES)
    return replace(model.options, **(inherited | told))


def adapted(model: NoveltyModel, table: AnyTable, options: ScreeningOptions) -> NoveltyModel:
    """Fit what a model says about a table to what was asked: names checked, columns hidden.

    Raises
    ------
    ConfigError
        If an option names a column the table does not have, or labels that the model learned from.
    """
    check_names(table, options)
    label = options.columns.label
    if label in {spec.name for spec in model.encoder.plan.used}:
        raise ConfigError(
            f"label {quoted(str(label))} is a column the model itself uses: it cannot judge the "
            "model; fit one with that column excluded"
        )
    return _hiding(model, options.columns.hide)


def check_names(table: AnyTable, options: ScreeningOptions) -> None:
    """Refuse options that name columns which a table to score does not have.

    What the model was fitted on may have had others: those it excluded, say.
    """
    told = options.columns
    of_rows = ColumnOptions(label=told.label, id=told.id, hide=told.hide)
    check_options(of_rows, column_names(table), table.source.name)


def _hiding(model: NoveltyModel, names: tuple[str, ...]) -> NoveltyModel:
    """Keep the values of more columns out of what is said about a table."""

    def hidden(spec: ColumnSpec) -> ColumnSpec:
        return replace(spec, hidden=spec.hidden or spec.name in names)

    encoder = model.encoder
    plan = replace(encoder.plan, specs=tuple(map(hidden, encoder.plan.specs)))
    coders = tuple(replace(coder, spec=hidden(coder.spec)) for coder in encoder.coders)
    return replace(model, encoder=replace(encoder, plan=plan, coders=coders))
