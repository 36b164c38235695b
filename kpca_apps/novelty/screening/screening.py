"""A table in, a ranked list with reasons and a threshold out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kpca_apps.errors import InputError
from kpca_apps.files.tables.opening import open_table, table_from_frame
from kpca_apps.files.tables.table import PartedTable, Table
from kpca_apps.novelty.compare.comparison import evaluate_scores
from kpca_apps.novelty.compare.labels import Labels, read_labels
from kpca_apps.novelty.result import (
    ColumnProfile,
    Evaluation,
    ScreeningResult,
    ThresholdInfo,
)
from kpca_apps.novelty.screening.listing import (
    MAX_CELLS,
    explain_rows,
    hint_rows,
    list_rows,
    share_of_reasons,
)
from kpca_apps.novelty.screening.mapping import map_rows, score_grid
from kpca_apps.novelty.screening.model import NoveltyModel, fit_table, library_versions
from kpca_apps.novelty.screening.options import ScreeningOptions
from kpca_apps.novelty.screening.patterns import find_patterns
from kpca_apps.novelty.screening.ranking import top_rows
from kpca_apps.novelty.screening.scoring import Judged, adapted, check_names, inherit_options, judge
from kpca_apps.novelty.table.duplicates import find_duplicates
from kpca_apps.novelty.table.parted_rows import Execution, in_parts, table_rows
from kpca_apps.novelty.table.rows import (
    AnyTable,
    TableRows,
    column_names,
    id_note,
    naming_column,
    rows_of,
)

__all__ = ["describe", "score_table", "scored_rows", "screen", "screen_table"]

# Any: a data frame of another library is known by its Arrow interface alone.
TableLike = Table | PartedTable | pl.DataFrame | str | Path | Any

# Rows a report lists whether or not they are explained.
MIN_LISTED = 100
# Flagged rows that are explained however few were asked for: some seconds' work.
MAX_FLAGGED_EXPLAINED = 500
KNOWN_TABLE = (
    "The table is the very one the model was fitted on: its rows are scored as if each had been "
    "left out."
)
KNOWN_P_VALUES = " A row that calibrates counts itself in its p-value, which is {:.2g} at least."
KNOWN_TABLE_LARGE = (
    "The table is the very one the model was fitted on, which had too many rows for their "
    "leave-one-out scores to be saved: rows are scored as new ones, and those the model was "
    "fitted on score slightly low."
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
    execution: Execution | None = None,
) -> ScreeningResult:
    """Screen a table for outliers.

    Parameters
    ----------
    table : Table, PartedTable, DataFrame, str or Path
        The table, of at least 3 rows: as read, as a frame of polars (or of any library that
        offers the Arrow stream interface), or as the path of a file, or of a folder of Parquet
        files. Of more than 100,000 rows, it is read in parts.
    reference : Table, PartedTable, DataFrame, str or Path, optional
        Rows known to be normal. Without it the table itself is learned from, outliers and all.
    options : ScreeningOptions, optional
        By default 1 % of the rows are flagged; with a reference, rows that fewer than 5 % of
        normal rows exceed.
    command : str
        What reproduces the result, for the report.
    execution : Execution, optional
        Who works on a table that is read in parts.

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
    given = _as_table(table)
    return screen(given, reference=clean, options=options, command=command, execution=execution)[0]


def _as_table(given: TableLike) -> AnyTable:
    if isinstance(given, Table | PartedTable):
        return given
    if isinstance(given, str | Path):
        return open_table(given)
    if isinstance(given, pl.DataFrame):
        return table_from_frame(given)
    if hasattr(given, "__arrow_c_stream__"):
        return table_from_frame(pl.DataFrame(given))
    raise InputError(f"a table must be a path, a Table or a data frame, got {type(given).__name__}")


def screen(
    table: AnyTable,
    *,
    reference: AnyTable | None = None,
    options: ScreeningOptions | None = None,
    command: str = "",
    execution: Execution | None = None,
) -> tuple[ScreeningResult, NoveltyModel]:
    """Screen a table as `screen_table` does, and hand out the model fitted on the way."""
    options, execution = options or ScreeningOptions(), execution or Execution()
    if reference is None:
        model, rows = fit_table(table, options, clean=False, execution=execution)
        judged = judge(model, rows, options)
        return describe(model, judged, options, rows, command), model
    check_names(table, options)
    told = _for_reference(options, reference, table)
    model, rows = fit_table(reference, told, clean=True, execution=execution)
    result = score_table(
        model, table, options=options, fitted_on=rows, command=command, execution=execution
    )
    return result, model


def _for_reference(
    options: ScreeningOptions, reference: AnyTable, table: AnyTable
) -> ScreeningOptions:
    """Forget columns that only the table has: labels, say, which a clean reference lacks."""
    extra = {*column_names(table)} - {*column_names(reference)}
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
    table: AnyTable,
    *,
    options: ScreeningOptions | None = None,
    fitted_on: TableRows | None = None,
    command: str = "",
    execution: Execution | None = None,
) -> ScreeningResult:
    """Judge the rows of a table by a fitted model, each independently of the others.

    Parameters
    ----------
    model : NoveltyModel
        The model.
    table : Table or PartedTable
        With at least the columns the model uses, in any order.
    options : ScreeningOptions, optional
        Rule, explain, label, id and hidden columns are taken from here; by default from the model.
    fitted_on : TableRows, optional
        The rows of the reference itself, where at hand: lets rivals be fitted if labels are given.
    command : str
        What reproduces the result, for the report.
    execution : Execution, optional
        Who works on a table that is read in parts.

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
    judged = judge(model, scored_rows(model, table, options, execution), options)
    return describe(model, judged, options, fitted_on, command)


def scored_rows(
    model: NoveltyModel,
    table: AnyTable,
    options: ScreeningOptions,
    execution: Execution | None = None,
) -> TableRows:
    """Look at the rows of a table to score through the encoder of a model."""
    return table_rows(
        model.encoder,
        in_parts(table),
        seed=options.seed,
        n_jobs=options.jobs,
        execution=execution or Execution(),
    )


def describe(
    model: NoveltyModel,
    judged: Judged,
    options: ScreeningOptions,
    fitted_on: TableRows | None,
    command: str,
) -> ScreeningResult:
    """Put a scored table into words and pictures.

    Parameters
    ----------
    model : NoveltyModel
        What scored it.
    judged : Judged
        Its rows, and what was found of them.
    options : ScreeningOptions
        Rows to explain, label and id column.
    fitted_on : TableRows or None
        The rows the model was fitted on, where they are at hand.
    command : str
        What reproduces the result.
    """
    rows = judged.rows
    labels = _read_labels(rows, options)
    n_explained = _n_explained(judged, options)
    listed = top_rows(judged.ranks, max(n_explained, MIN_LISTED))
    n_explained = min(n_explained, len(listed))
    table, matrix = rows.take(listed), rows.encoded(listed)
    reasons = explain_rows(model, table, matrix[:n_explained], judged.own(listed)[:n_explained])
    explained = rows_of(table, np.arange(n_explained))
    hints = hint_rows(model, rows, explained, matrix[:n_explained], listed[:n_explained])
    columns = rows.profiles()
    hidden = frozenset(column.name for column in columns if column.hidden)
    odd_cells, n_odd_cells = rows.odd_cells()
    id_column = naming_column(rows, options.columns.id)
    ranked = list_rows(table, listed, id_column, hidden, judged, reasons, hints)
    evaluations: tuple[Evaluation, ...] = ()
    if labels is not None:
        judged_scores = np.asarray(judged.scores[rows.sample_index])
        evaluations = (evaluate_scores(model, rows, labels, judged_scores, fitted_on),)
    return ScreeningResult(
        source=rows.source,
        reference=None if fitted_on is rows else model.source,
        scores=judged.scores,
        p_values=judged.p_values,
        flagged=judged.flagged,
        ranks=judged.ranks,
        threshold=judged.threshold,
        ranked=ranked,
        columns=share_of_reasons(columns, ranked),
        patterns=find_patterns(ranked, columns, table, rows.sample_table),
        map=map_rows(model, judged, listed),
        contours=score_grid(model, judged),
        evaluations=evaluations,
        warnings=_notes(model, judged, options, labels, id_column, in_training=fitted_on is rows),
        settings=describe_settings(model, judged.threshold)
        | {"rows explained": n_explained}
        | _reading_in_parts(rows)
        | _cells_left_out(columns),
        versions=library_versions(),
        command=command,
        odd_cells=odd_cells,
        n_odd_cells=n_odd_cells,
        rarities=judged.rarities,
        scale=judged.scale,
        duplicates=find_duplicates(rows),
    )


def _n_explained(judged: Judged, options: ScreeningOptions) -> int:
    """Rows from the top of the list that get reasons; none at all where none were asked for."""
    if not options.explain:
        return 0
    n_flagged = min(int(judged.flagged.sum()), MAX_FLAGGED_EXPLAINED)
    return max(options.explain, n_flagged)


def _notes(
    model: NoveltyModel,
    judged: Judged,
    options: ScreeningOptions,
    labels: Labels | None,
    id_column: str | None,
    *,
    in_training: bool,
) -> tuple[str, ...]:
    """Gather what a reader must know."""
    rows = judged.rows
    same = ""
    if not in_training and rows.source.sha256 == model.source.sha256:
        soft = KNOWN_TABLE if judged.known else KNOWN_TABLE_LARGE
        if model.clean:
            soft += KNOWN_P_VALUES.format(2 / (len(model.detector.calibration_scores_) + 1))
        same = soft if model.options.n_components is None else KNOWN_TABLE_HARD
    in_parts = rows.size_of_parts is not None
    notes = (
        _of_figures(rows) if in_parts and not in_training else "",
        *judged.warnings,
        labels.note if labels else "",
        same,
        id_note(rows, options.columns.id, id_column),
    )
    return tuple(filter(None, notes))


def _of_figures(rows: TableRows) -> str:
    """Say what rests on a sample where a large table was scored by a model of another."""
    return (
        f"The table has {rows.n_rows:,} rows and is read in parts: the figures of its columns come "
        f"from {len(rows.sample_index):,} rows drawn; scores and ranks are those of all rows."
    )


def _reading_in_parts(rows: TableRows) -> dict[str, str | int]:
    """Say how a table too large for memory was read."""
    if rows.size_of_parts is None:
        return {}
    return {
        "read": f"in parts of {rows.size_of_parts:,} rows",
        "rows drawn for columns and figures": len(rows.sample_index),
    }


def _read_labels(rows: TableRows, options: ScreeningOptions) -> Labels | None:
    """Read the known labels, where a column of them is named; of the sample for a large table."""
    column = options.columns.label
    if column is None:
        return None
    return read_labels(rows.sample_table, column, options.positive)


def _cells_left_out(columns: Sequence[ColumnProfile]) -> dict[str, str]:
    """Say which cells the listed rows carry, where these are not all."""
    n_shown = sum(not column.hidden for column in columns)
    if n_shown <= MAX_CELLS:
        return {}
    said = f"those of the first {MAX_CELLS} of {n_shown} columns, and of the reasons"
    return {"cells of listed rows": said}


def describe_settings(
    model: NoveltyModel, threshold: ThresholdInfo
) -> dict[str, str | float | int | bool | None]:
    """Every resolved parameter that the numbers depend on."""
    detector, missed = model.detector, model.detector.landmark_miss_
    return {
        "fitted on": "a clean reference" if model.clean else "a table that may hold outliers",
        "rule": threshold.rule,
        threshold.rule: threshold.setting,
        "calibration": threshold.calibration,
        "score": "kernel PCA error" if detector.combined_ is None else "kernel PCA error and cells",
        "kernel": detector.views_.kernel.describe(),
        "components": model.options.n_components,
        "ridge (absolute)": detector.ridge_,
        "landmarks": len(detector.subspace_.points),
        "landmarks miss": None if missed is None else f"{100 * missed:.3g} %",
        "rows fitted": model.source.n_rows,
        "seed": model.options.seed,
    }
