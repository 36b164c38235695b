"""A table in, a ranked list with reasons and a threshold out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.names import one_line, suggest
from kpca_apps.files.tables import Table, read_table, table_from_frame
from kpca_apps.files.values import cell_text
from kpca_apps.novelty.comparison import evaluate_scores
from kpca_apps.novelty.flagging import flag_above, flag_by_choice, flag_by_rate
from kpca_apps.novelty.labels import read_labels
from kpca_apps.novelty.listing import explain_rows, list_rows, rank_rows, share_of_reasons
from kpca_apps.novelty.mapping import map_rows, score_grid
from kpca_apps.novelty.model import NoveltyModel, fit_model, library_versions
from kpca_apps.novelty.options import RULES, ScreeningOptions, resolve_rule
from kpca_apps.novelty.result import (
    Evaluation,
    RankedRow,
    ScreeningResult,
    ThresholdInfo,
)

__all__ = ["explain_row", "inherit_options", "score_table", "screen", "screen_table"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
# Any: a data frame of another library is known by its Arrow interface alone.
TableLike = Table | pl.DataFrame | str | Path | Any

# Rows a report lists whether or not they are explained.
MIN_LISTED = 100


@dataclass(frozen=True)
class _Judged:
    """A table scored by a model, before it is put into words."""

    matrix: FloatArray
    own: IntArray
    scores: FloatArray
    p_values: FloatArray | None
    ranks: IntArray
    flagged: BoolArray
    threshold: ThresholdInfo
    warnings: tuple[str, ...]


def screen_table(
    table: TableLike,
    *,
    reference: TableLike | None = None,
    options: ScreeningOptions | None = None,
    command: str = "",
) -> ScreeningResult:
    """Screen a table for outliers.

    Parameters
    ----------
    table : Table, DataFrame, str or Path
        The table, of at least 3 rows: as read, as a frame of polars (or of any library that
        offers the Arrow stream interface), or as the path of a file.
    reference : Table, DataFrame, str or Path, optional
        Rows known to be normal. Without it the table itself is learned from, outliers and all.
    options : ScreeningOptions, optional
        By default 1 % of the rows are flagged; with a reference, rows that fewer than 5 % of
        normal rows exceed.
    command : str
        What reproduces the result, for the report.

    Returns
    -------
    ScreeningResult

    Raises
    ------
    ConfigError
        If options contradict each other or the table, or ask for a rate without a reference.
    InputError
        If a table cannot be used.

    Examples
    --------
    >>> import polars as pl
    >>> sizes = [10.0 + i % 7 for i in range(40)]
    >>> frame = pl.DataFrame({"height": [*sizes, 10.0], "weight": [*sizes, 16.0]})
    >>> result = screen_table(frame)
    >>> result.ranked[0].row, result.n_flagged
    (41, 1)
    """
    clean = None if reference is None else _as_table(reference)
    return screen(_as_table(table), reference=clean, options=options, command=command)[0]


def _as_table(given: TableLike) -> Table:
    if isinstance(given, Table):
        return given
    if isinstance(given, str | Path):
        return read_table(given)
    if isinstance(given, pl.DataFrame):
        return table_from_frame(given)
    if hasattr(given, "__arrow_c_stream__"):
        return table_from_frame(pl.DataFrame(given))
    raise InputError(f"a table must be a path, a Table or a data frame, got {type(given).__name__}")


def screen(
    table: Table,
    *,
    reference: Table | None = None,
    options: ScreeningOptions | None = None,
    command: str = "",
) -> tuple[ScreeningResult, NoveltyModel]:
    """Screen a table as `screen_table` does, and hand out the model fitted on the way."""
    options = options or ScreeningOptions()
    if reference is not None:
        model = fit_model(reference, options, clean=True)
        result = score_table(model, table, options=options, fitted_on=reference, command=command)
        return result, model
    model = fit_model(table, options, clean=False)
    matrix = model.encoder.encode(table).matrix
    own = np.arange(len(matrix))
    scores = model.detector.novelty_scores_
    ranks = rank_rows(model, matrix, scores, own)
    flagged, threshold = flag_by_choice(model.rule, scores, ranks)
    judged = _Judged(matrix, own, scores, None, ranks, flagged, threshold, model.warnings)
    return _result(model, table, judged, options, table, command), model


def score_table(
    model: NoveltyModel,
    table: Table,
    *,
    options: ScreeningOptions | None = None,
    fitted_on: Table | None = None,
    command: str = "",
) -> ScreeningResult:
    """Judge the rows of a table by a fitted model, each independently of the others.

    Parameters
    ----------
    model : NoveltyModel
        The model.
    table : Table
        With at least the columns the model uses, in any order.
    options : ScreeningOptions, optional
        Rule, explain, label, id and hidden columns are taken from here; by default from the model.
    fitted_on : Table, optional
        The reference itself, where at hand: lets rivals be fitted if labels are given.
    command : str
        What reproduces the result, for the report.

    Returns
    -------
    ScreeningResult

    Raises
    ------
    ConfigError, InputError
        As `screen_table`; also if a column the model uses is missing.
    """
    options = options or inherit_options(model, table)
    _check_id(table, options)
    judged = _judge_new(model, table, options)
    return _result(model, table, judged, options, fitted_on, command)


def explain_row(
    model: NoveltyModel,
    table: Table,
    *,
    row: str | None = None,
    line: int | None = None,
    options: ScreeningOptions | None = None,
) -> tuple[RankedRow, ScreeningResult]:
    """Say which columns make one row of a table odd.

    Parameters
    ----------
    model : NoveltyModel
        The model.
    table : Table
        The table that holds the row.
    row : str, optional
        The row's text in the identifier column where there is one; else its number, 1 = first.
    line : int, optional
        The line of the file it starts on, instead.
    options : ScreeningOptions, optional
        As in `score_table`.

    Returns
    -------
    row : RankedRow
        The row with all its reasons and its rank in the table.
    result : ScreeningResult
        The table scored, without reasons for other rows.

    Raises
    ------
    InputError
        If no row, or more than one, is meant.
    """
    options = replace(options or inherit_options(model, table), explain=0)
    _check_id(table, options)
    position = _find_row(table, options.columns.id, row, line)
    judged = _judge_new(model, table, options)
    result = _result(model, table, judged, options, None, "")
    rows = np.array([position])
    reasons = explain_rows(model, table, judged.matrix, rows, judged.own)
    listed = list_rows(
        table,
        options.columns.id,
        frozenset(column.name for column in result.columns if column.hidden),
        judged.scores,
        judged.p_values,
        judged.flagged,
        rows,
        reasons,
    )
    return replace(listed[0], rank=int(judged.ranks[position])), result


def inherit_options(model: NoveltyModel, table: Table, **changes: Any) -> ScreeningOptions:
    """Take the options a model was fitted with for another table.

    Parameters
    ----------
    model : NoveltyModel
        The model.
    table : Table
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
    kept = {
        name: column if column in table.frame.columns else None
        for name, column in (("label", columns.label), ("id", columns.id))
    }
    named = {name: told.pop(name) for name in ("label", "id", "hide") if name in told}
    columns = replace(columns, **{**kept, **named})
    rules = dict.fromkeys(RULES) if any(name in told for name in RULES) else {}
    positive = model.options.positive if columns.label == model.options.columns.label else None
    inherited = {**rules, "positive": positive if columns.label else None, "columns": columns}
    return replace(model.options, **{**inherited, **told})


def _check_id(table: Table, options: ScreeningOptions) -> None:
    column = options.columns.id
    if column is not None and column not in table.frame.columns:
        hint = suggest(column, table.frame.columns)
        raise ConfigError(f"{table.source.name}: no column {one_line(column)} for the id.{hint}")


def _judge_new(model: NoveltyModel, table: Table, options: ScreeningOptions) -> _Judged:
    """Score and flag rows the model has not seen."""
    rule = resolve_rule(options, clean=model.clean, default=model.rule)
    encoded = model.encoder.encode(table)
    own = np.full(len(encoded.matrix), -1)
    scores = -model.detector.score_samples(encoded.matrix)
    p_values = model.detector.p_values(encoded.matrix) if model.clean else None
    ranks = rank_rows(model, encoded.matrix, scores, own)
    warnings = tuple(f"In {model.source.name}, the reference: {text}" for text in model.warnings)
    warnings += encoded.warnings
    if rule.calibrated:
        flagged, threshold, too_few = flag_by_rate(
            rule,
            scores,
            model.detector.calibration_scores_,
            model.detector.calibration_ or "leave-one-out",
        )
        warnings += too_few
    elif rule == model.rule and not model.clean:
        flagged, threshold = flag_above(rule, scores, model.detector.threshold_)
    else:
        flagged, threshold = flag_by_choice(rule, scores, ranks)
    return _Judged(encoded.matrix, own, scores, p_values, ranks, flagged, threshold, warnings)


def _result(
    model: NoveltyModel,
    table: Table,
    judged: _Judged,
    options: ScreeningOptions,
    fitted_on: Table | None,
    command: str,
) -> ScreeningResult:
    """Put a scored table into words and pictures."""
    order = np.argsort(judged.ranks)
    n_listed = min(len(order), max(options.explain, MIN_LISTED))
    reasons = explain_rows(model, table, judged.matrix, order[: options.explain], judged.own)
    columns = tuple(
        replace(column, hidden=column.hidden or column.name in options.columns.hide)
        for column in model.encoder.profiles(table)
    )
    ranked = list_rows(
        table,
        options.columns.id,
        frozenset(column.name for column in columns if column.hidden),
        judged.scores,
        judged.p_values,
        judged.flagged,
        order[:n_listed],
        reasons,
    )
    in_training = fitted_on is table
    return ScreeningResult(
        source=table.source,
        reference=None if in_training else model.source,
        scores=judged.scores,
        p_values=judged.p_values,
        flagged=judged.flagged,
        ranks=judged.ranks,
        threshold=judged.threshold,
        ranked=ranked,
        columns=share_of_reasons(columns, ranked),
        map=map_rows(model, judged.matrix, judged.ranks, judged.flagged, n_listed),
        contours=score_grid(model, judged.matrix, judged.flagged),
        evaluations=_evaluations(model, table, judged.scores, options, fitted_on),
        warnings=(*judged.warnings, *_same_table(table, model, in_training)),
        settings=describe_settings(model, judged.threshold, options),
        versions=library_versions(),
        command=command,
    )


def _evaluations(
    model: NoveltyModel,
    table: Table,
    scores: FloatArray,
    options: ScreeningOptions,
    fitted_on: Table | None,
) -> tuple[Evaluation, ...]:
    """Judge the scores where labels are given."""
    column = options.columns.label
    if column is None:
        return ()
    if column in {spec.name for spec in model.encoder.plan.used}:
        raise ConfigError(
            f"label {one_line(column)} is a column the model itself uses: it cannot judge the "
            "model; fit one with that column excluded"
        )
    labels = read_labels(table, column, options.positive)
    return (evaluate_scores(model, table, labels, scores, fitted_on),)


def _same_table(table: Table, model: NoveltyModel, in_training: bool) -> tuple[str, ...]:
    if in_training or table.source.sha256 != model.source.sha256:
        return ()
    return (
        "The table is the very one the model was fitted on: its rows score lower than new rows "
        "would, and the threshold does not hold for them.",
    )


def _find_row(table: Table, id_column: str | None, row: str | None, line: int | None) -> int:
    """Position of the one row that is meant."""
    name, n_rows = table.source.name, table.frame.height
    if (row is None) == (line is None):
        raise ConfigError("say which row to explain: either row or line")
    if line is not None:
        if table.lines is None:
            raise ConfigError(f"{name}: a {table.source.format} file has no lines; give a row")
        found = np.flatnonzero(table.lines == line)
        what = f"row that starts on line {line}"
    elif id_column is not None:
        ids = [cell_text(table.frame[id_column], i).strip() for i in range(n_rows)]
        found = np.flatnonzero(np.array(ids) == str(row).strip())
        what = f"row with {one_line(id_column)} {one_line(str(row))}"
    else:
        number = int(row) if row is not None and row.strip().isdecimal() else 0
        found = np.array([number - 1] if 1 <= number <= n_rows else [], dtype=np.int64)
        what = f"row {one_line(str(row))}: rows are numbered from 1 to {n_rows}"
    if len(found) == 1:
        return int(found[0])
    if len(found) == 0:
        raise InputError(f"{name}: no {what}")
    places = (table.lines[found] if table.lines is not None else found + 1)[:5]
    kind = "line" if table.lines is not None else "row"
    raise InputError(
        f"{name}: {len(found)} rows are a {what} ({kind}s {', '.join(map(str, places))}, ...): "
        f"say which by {kind}"
    )


def describe_settings(
    model: NoveltyModel, threshold: ThresholdInfo, options: ScreeningOptions
) -> dict[str, str | float | int | bool | None]:
    """Every resolved parameter that the numbers depend on."""
    detector = model.detector
    return {
        "fitted on": "a clean reference" if model.clean else "a table that may hold outliers",
        "rule": threshold.rule,
        threshold.rule: threshold.setting,
        "calibration": threshold.calibration,
        "kernel": detector.subspace_.kernel.describe(),
        "components": model.options.n_components,
        "ridge (absolute)": detector.ridge_,
        "landmarks": len(detector.subspace_.points),
        "rows fitted": model.source.n_rows,
        "seed": model.options.seed,
        "rows explained": options.explain,
    }
