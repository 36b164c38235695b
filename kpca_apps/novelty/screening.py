"""A table in, a ranked list with reasons and a threshold out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.tables import Table, read_table, table_from_frame
from kpca_apps.novelty.comparison import evaluate_scores
from kpca_apps.novelty.labels import Labels, read_labels
from kpca_apps.novelty.listing import MAX_CELLS, explain_rows, list_rows, share_of_reasons
from kpca_apps.novelty.mapping import map_rows, score_grid
from kpca_apps.novelty.model import NoveltyModel, fit_model, library_versions
from kpca_apps.novelty.naming import id_note
from kpca_apps.novelty.options import ScreeningOptions
from kpca_apps.novelty.result import (
    ColumnProfile,
    Evaluation,
    ScreeningResult,
    ThresholdInfo,
)
from kpca_apps.novelty.scoring import Judged, adapted, inherit_options, judge, knows
from kpca_apps.novelty.specs import quoted

__all__ = ["describe", "score_table", "screen", "screen_table"]

# Any: a data frame of another library is known by its Arrow interface alone.
TableLike = Table | pl.DataFrame | str | Path | Any

# Rows a report lists whether or not they are explained.
MIN_LISTED = 100
KNOWN_TABLE = (
    "The table is the very one the model was fitted on: its rows are scored as if each had been "
    "left out."
)
KNOWN_TABLE_HARD = (
    "The table is the very one the model was fitted on. A hard cut (--components) has no "
    "leave-one-out: the rows it was fitted on score too low, and their p-values are too high."
)


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
        model = fit_model(reference, _for_reference(options, reference, table), clean=True)
        result = score_table(model, table, options=options, fitted_on=reference, command=command)
        return result, model
    model = fit_model(table, options, clean=False)
    judged = judge(model, table, options)
    return describe(model, table, judged, options, table, command), model


def _for_reference(options: ScreeningOptions, reference: Table, table: Table) -> ScreeningOptions:
    """Forget columns that only the table has: labels, say, which a clean reference lacks."""
    extra = set(table.frame.columns) - set(reference.frame.columns)
    told = options.columns
    columns = replace(
        told,
        label=None if told.label in extra else told.label,
        id=None if told.id in extra else told.id,
        exclude=tuple(name for name in told.exclude if name not in extra),
        categorical=tuple(name for name in told.categorical if name not in extra),
        numeric=tuple(name for name in told.numeric if name not in extra),
        hide=tuple(name for name in told.hide if name not in extra),
    )
    return replace(options, columns=columns, positive=options.positive if columns.label else None)


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
    model = adapted(model, table, options)
    judged = judge(model, table, options)
    return describe(model, table, judged, options, fitted_on, command)


def describe(
    model: NoveltyModel,
    table: Table,
    judged: Judged,
    options: ScreeningOptions,
    fitted_on: Table | None,
    command: str,
) -> ScreeningResult:
    """Put a scored table into words and pictures."""
    labels = _read_labels(model, table, options)
    order = np.argsort(judged.ranks)
    n_listed = min(len(order), max(options.explain, MIN_LISTED))
    reasons = explain_rows(model, table, judged.matrix, order[: options.explain], judged.own)
    columns = model.encoder.profiles(table)
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
    known = KNOWN_TABLE if model.options.n_components is None else KNOWN_TABLE_HARD
    same = known if knows(model, table) and not in_training else ""
    notes = (
        *judged.warnings,
        labels.note if labels else "",
        same,
        id_note(table, columns, options.columns.id),
    )
    evaluations: tuple[Evaluation, ...] = ()
    if labels is not None:
        evaluations = (evaluate_scores(model, table, labels, judged.scores, fitted_on),)
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
        evaluations=evaluations,
        warnings=tuple(filter(None, notes)),
        settings=describe_settings(model, judged.threshold, options) | _cells_left_out(columns),
        versions=library_versions(),
        command=command,
    )


def _read_labels(model: NoveltyModel, table: Table, options: ScreeningOptions) -> Labels | None:
    """Read the known labels, where a column of them is named."""
    column = options.columns.label
    if column is None:
        return None
    if column in {spec.name for spec in model.encoder.plan.used}:
        raise ConfigError(
            f"label {quoted(column)} is a column the model itself uses: it cannot judge the "
            "model; fit one with that column excluded"
        )
    return read_labels(table, column, options.positive)


def _cells_left_out(columns: Sequence[ColumnProfile]) -> dict[str, str]:
    """Say which cells the listed rows carry, where these are not all."""
    n_shown = sum(not column.hidden for column in columns)
    if n_shown <= MAX_CELLS:
        return {}
    said = f"those of the first {MAX_CELLS} of {n_shown} columns, and of the reasons"
    return {"cells of listed rows": said}


def describe_settings(
    model: NoveltyModel, threshold: ThresholdInfo, options: ScreeningOptions
) -> dict[str, str | float | int | bool | None]:
    """Every resolved parameter that the numbers depend on."""
    detector, missed = model.detector, model.detector.landmark_miss_
    return {
        "fitted on": "a clean reference" if model.clean else "a table that may hold outliers",
        "rule": threshold.rule,
        threshold.rule: threshold.setting,
        "calibration": threshold.calibration,
        "kernel": detector.subspace_.kernel.describe(),
        "components": model.options.n_components,
        "ridge (absolute)": detector.ridge_,
        "landmarks": len(detector.subspace_.points),
        "landmarks miss": None if missed is None else f"{100 * missed:.3g} %",
        "rows fitted": model.source.n_rows,
        "seed": model.options.seed,
        "rows explained": options.explain,
    }
