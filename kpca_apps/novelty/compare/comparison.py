"""Our detector beside its rivals on a labelled table, in the two settings of the literature.

References
----------
Hoffmann, Kernel PCA for novelty detection, Pattern Recognition 40, 2007, section 4 (the
comparison); Han et al., ADBench, NeurIPS Datasets and Benchmarks, 2022 (the two settings).
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError
from kpca_apps.files.tables.table import Table
from kpca_apps.novelty.compare.evaluation import judge
from kpca_apps.novelty.compare.labels import Labels, read_labels
from kpca_apps.novelty.result import ComparisonResult, Curves, Evaluation
from kpca_apps.novelty.screening.model import NoveltyModel, fit_table, library_versions
from kpca_apps.novelty.screening.options import ScreeningOptions
from kpca_apps.novelty.table.columns import check_options
from kpca_apps.novelty.table.parted_rows import Execution, draw_sample, in_parts, table_rows
from kpca_apps.novelty.table.rows import AnyTable, TableRows, column_names, rows_of

__all__ = ["OURS", "compare_table", "evaluate_scores"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

OURS = "Kernel PCA"
# Fewer normal rows cannot be halved into rows to learn from and rows to judge.
MIN_NORMAL = 6


def compare_table(
    table: AnyTable,
    options: ScreeningOptions | None = None,
    *,
    command: str = "",
    execution: Execution | None = None,
) -> ComparisonResult:
    """Compare our detector with its rivals on a table with known labels.

    Parameters
    ----------
    table : Table or PartedTable
        The table; of more than 100,000 rows, so many are drawn with the seed and compared on.
    options : ScreeningOptions
        ``options.columns.label`` names its label column.
    command : str
        What reproduces the result, for the report.
    execution : Execution, optional
        Who reads a table in parts.

    Returns
    -------
    ComparisonResult
        Two settings: all methods fitted on all rows and judged on them; all methods fitted on a
        drawn half of the normal rows and judged on all others.

    Raises
    ------
    ConfigError
        If no label is named, or options contradict each other.
    InputError
        If the table cannot be used, or its label has one value only.
    """
    options = options or ScreeningOptions()
    if options.columns.label is None:
        raise ConfigError("a comparison needs known labels: name the label column")
    check_options(options.columns, column_names(table), table.source.name)
    whole = in_parts(table)
    table = draw_sample(whole, options.seed, execution or Execution()).table
    labels = read_labels(table, options.columns.label, options.positive)
    plain = replace(options, share=None, count=None, alpha=None, fdr=None)
    start = time.perf_counter()
    model, rows = fit_table(table, replace(plain, calibration="auto"), clean=False)
    seconds = time.perf_counter() - start
    scores = model.detector.novelty_scores_
    evaluations = [evaluate_scores(model, rows, labels, scores, rows, seconds=seconds)]
    warnings = [*filter(None, [_of_draw(whole, table), labels.note]), *model.warnings]
    normal = np.flatnonzero(labels.known & ~labels.is_outlier)
    if len(normal) >= MIN_NORMAL:
        evaluations.append(_on_normal_half(table, labels, normal, plain))
    else:
        warnings.append(
            f"{len(normal)} normal rows are too few to learn from half of them: only one setting "
            "was compared."
        )
    return ComparisonResult(
        source=table.source,
        evaluations=tuple(evaluations),
        columns=rows.profiles(),
        warnings=tuple(warnings),
        settings={
            "label": labels.column,
            "positive": labels.positive,
            "kernel": model.detector.views_.kernel.describe(),
            "components": options.n_components,
            "seed": options.seed,
        },
        versions=library_versions(),
        command=command,
    )


def _of_draw(whole: AnyTable, table: Table) -> str:
    """Say that only some rows of a large table were compared on."""
    if table is whole:
        return ""
    return (
        f"The table has {whole.source.n_rows:,} rows; the methods were compared on "
        f"{table.frame.height:,} drawn from them."
    )


def evaluate_scores(
    model: NoveltyModel,
    rows: TableRows,
    labels: Labels,
    scores: FloatArray,
    fitted_on: TableRows | None,
    *,
    seconds: float = 0.0,
) -> Evaluation:
    """Judge our scores against labels, beside rivals fitted on the same rows.

    Parameters
    ----------
    model : NoveltyModel
        The model that gave the scores.
    rows : TableRows
        The table scored; of more than 100,000 rows, the sample is judged.
    labels : Labels
        Of the rows of its sample.
    scores : (s,) array
        Our scores of these.
    fitted_on : TableRows or None
        What the model was fitted on: `rows` itself, a reference, or ``None`` where it is not at
        hand; then there are no rivals.
    seconds : float
        Our fit and score.

    Returns
    -------
    Evaluation
    """
    known, outlier = labels.known, labels.is_outlier
    ours = judge(OURS, outlier[known], scores[known], ours=True, seconds=seconds)
    rivals: tuple[Curves, ...] = ()
    if fitted_on is not None:
        # Most tables have no labels, and these take long to import.
        from kpca_apps.novelty.compare.baselines import judge_rivals, standardise

        fit = fitted_on.sample
        scored = fit if fitted_on is rows else rows.sample
        fit, scored = standardise(fit, scored, model.encoder.as_is)
        rivals = judge_rivals(fit, scored, outlier, known, model.options.seed)
    return Evaluation(
        label=labels.column,
        positive=labels.positive,
        n_positive=int((outlier & known).sum()),
        n_rows=int(known.sum()),
        setting=_setting(rows, fitted_on, model),
        methods=(ours, *rivals),
    )


def _setting(rows: TableRows, fitted_on: TableRows | None, model: NoveltyModel) -> str:
    drawn = f"{len(rows.sample_index):,} rows drawn from it are judged"
    if fitted_on is rows:
        judged = "the same rows are judged" if rows.size_of_parts is None else drawn
        others = "" if rows.size_of_parts is None else ", which the other methods were fitted on"
        return f"Fitted on all rows of the table, outliers and all; {judged}{others}."
    judged = "the table is judged" if rows.size_of_parts is None else drawn
    return f"Fitted on {model.source.n_rows:,} rows of {model.source.name}; {judged}."


def _on_normal_half(
    table: Table, labels: Labels, normal: IntArray, options: ScreeningOptions
) -> Evaluation:
    """Fit on a drawn half of the normal rows, judge all other rows."""
    drawn = np.random.default_rng(options.seed).permutation(normal)
    fit_rows = np.sort(drawn[: len(drawn) // 2])
    others = np.setdiff1d(np.arange(table.frame.height), fit_rows)
    reference, rest = rows_of(table, fit_rows), rows_of(table, others)
    start = time.perf_counter()
    model, fitted_on = fit_table(reference, options, clean=True)
    rows = table_rows(model.encoder, rest, n_jobs=options.jobs)
    scores = rows.map(model.detector.row_scores())
    seconds = time.perf_counter() - start
    remaining = replace(labels, is_outlier=labels.is_outlier[others], known=labels.known[others])
    evaluation = evaluate_scores(model, rows, remaining, scores, fitted_on, seconds=seconds)
    setting = (
        f"Fitted on a drawn half of the normal rows ({len(fit_rows):,}); all other rows with a "
        "label are judged."
    )
    return replace(evaluation, setting=setting)
