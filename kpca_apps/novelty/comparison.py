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
from kpca_apps.files.tables import Table
from kpca_apps.novelty.evaluation import judge
from kpca_apps.novelty.labels import Labels, read_labels
from kpca_apps.novelty.model import NoveltyModel, fit_model, library_versions
from kpca_apps.novelty.options import ScreeningOptions
from kpca_apps.novelty.result import ComparisonResult, Curves, Evaluation
from kpca_apps.novelty.rivals import judge_rivals, standardise

__all__ = ["OURS", "compare_table", "evaluate_scores"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

OURS = "Kernel PCA"
# Fewer normal rows cannot be halved into rows to learn from and rows to judge.
MIN_NORMAL = 6


def compare_table(
    table: Table, options: ScreeningOptions | None = None, *, command: str = ""
) -> ComparisonResult:
    """Compare our detector with its rivals on a table with known labels.

    Parameters
    ----------
    table : Table
        The table.
    options : ScreeningOptions
        ``options.columns.label`` names its label column.
    command : str
        What reproduces the result, for the report.

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
    labels = read_labels(table, options.columns.label, options.positive)
    plain = replace(options, share=None, count=None, alpha=None, fdr=None)
    start = time.perf_counter()
    model = fit_model(table, replace(plain, calibration="auto"), clean=False)
    seconds = time.perf_counter() - start
    scores = model.detector.novelty_scores_
    evaluations = [evaluate_scores(model, table, labels, scores, table, seconds=seconds)]
    warnings = [*filter(None, [labels.note]), *model.warnings]
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
        columns=model.encoder.profiles(table),
        warnings=tuple(warnings),
        settings={
            "label": labels.column,
            "positive": labels.positive,
            "kernel": model.detector.subspace_.kernel.describe(),
            "components": options.n_components,
            "seed": options.seed,
        },
        versions=library_versions(),
        command=command,
    )


def evaluate_scores(
    model: NoveltyModel,
    table: Table,
    labels: Labels,
    scores: FloatArray,
    fitted_on: Table | None,
    *,
    seconds: float = 0.0,
) -> Evaluation:
    """Judge our scores against labels, beside rivals fitted on the same rows.

    Parameters
    ----------
    model : NoveltyModel
        The model that gave the scores.
    table : Table
        The table scored.
    labels : Labels
        Its labels.
    scores : (n,) array
        Our scores.
    fitted_on : Table or None
        What the model was fitted on: `table` itself, a reference, or ``None`` where it is not at
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
        fit = model.encoder.encode(fitted_on).matrix
        scored = fit if fitted_on is table else model.encoder.encode(table).matrix
        fit, scored = standardise(fit, scored, model.encoder.as_is)
        rivals = judge_rivals(fit, scored, outlier, known, model.options.seed)
    return Evaluation(
        label=labels.column,
        positive=labels.positive,
        n_positive=int((outlier & known).sum()),
        n_rows=int(known.sum()),
        setting=_setting(table, fitted_on, model),
        methods=(ours, *rivals),
    )


def _setting(table: Table, fitted_on: Table | None, model: NoveltyModel) -> str:
    if fitted_on is table:
        return "Fitted on all rows of the table, outliers and all; the same rows are judged."
    return f"Fitted on {model.source.n_rows:,} rows of {model.source.name}; the table is judged."


def _on_normal_half(
    table: Table, labels: Labels, normal: IntArray, options: ScreeningOptions
) -> Evaluation:
    """Fit on a drawn half of the normal rows, judge all other rows."""
    drawn = np.random.default_rng(options.seed).permutation(normal)
    fit_rows = np.sort(drawn[: len(drawn) // 2])
    others = np.setdiff1d(np.arange(table.frame.height), fit_rows)
    reference, rest = _take(table, fit_rows), _take(table, others)
    start = time.perf_counter()
    model = fit_model(reference, options, clean=True)
    scores = -model.detector.score_samples(model.encoder.encode(rest).matrix)
    seconds = time.perf_counter() - start
    remaining = replace(labels, is_outlier=labels.is_outlier[others], known=labels.known[others])
    evaluation = evaluate_scores(model, rest, remaining, scores, reference, seconds=seconds)
    setting = (
        f"Fitted on a drawn half of the normal rows ({len(fit_rows):,}); all other rows with a "
        "label are judged."
    )
    return replace(evaluation, setting=setting)


def _take(table: Table, rows: IntArray) -> Table:
    """Cut some rows out of a table."""
    return Table(
        frame=table.frame[rows],
        lines=None if table.lines is None else table.lines[rows],
        source=replace(table.source, n_rows=len(rows)),
    )
