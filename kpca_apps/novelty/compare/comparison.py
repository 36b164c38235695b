"""Compare our detector with baselines on labelled tables, in the settings of the literature.

References
----------
Hoffmann, Kernel PCA for novelty detection, Pattern Recognition 40, 2007, section 4 (the
comparison); Han et al., ADBench, NeurIPS Datasets and Benchmarks, 2022 (the two settings).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import quoted, suggest
from kpca_apps.novelty.columns.lookup import resolve_columns
from kpca_apps.novelty.columns.parts import AnyTable, Execution, Sample, draw_sample, in_parts
from kpca_apps.novelty.detector.hoffmann import NAME, StandardisedColumns
from kpca_apps.novelty.redact import Note, redact_comparison, without_values
from kpca_apps.novelty.result import ComparisonResult, Curves, Evaluation, RunInfo
from kpca_apps.novelty.screening.encoded import Encoded, encode
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import NoveltyModel, ScreeningOptions, library_versions
from kpca_apps.novelty.screening.profiles import column_profiles
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table

# Labels of outliers, in lower case.
POSITIVE_WORDS = frozenset(
    {
        *("1", "1.0", "true", "t", "yes", "y", "outlier", "outliers", "anomaly", "anomalous"),
        *("abnormal", "novel", "novelty", "malignant", "fraud", "fraudulent", "attack", "defect"),
        *("defective", "faulty", "fault", "failure", "positive", "pos", "bad", "noise"),
    }
)
MAX_GUESSED = 10  # maximum number of label values among which the outlier class is guessed


@dataclass(frozen=True)
class Labels:
    """The known labels of a table."""

    column: str  # the label column
    positive: str  # the value that outliers have in that column
    note: Note | None  # note on the choice of `positive`; None if the user chose it
    is_outlier: BoolArray  # (n,), rows with the value of outliers
    known: BoolArray  # (n,), rows with a label; others are not evaluated


def read_labels(table: Table, column: str, positive: str | None = None) -> Labels:
    """Read the label column of a table; `positive` is the value of outliers.

    ConfigError if that value is not in the column, or cannot be guessed; InputError if the column
    has fewer than two values.
    """
    levels = table.column[column].levels
    values = dict(levels.most_frequent())
    where, note = f"{table.source.name}: label column {quoted(column)}", None
    if len(values) < 2:
        bare = f"{where} holds {'only one value' if values else 'no value at all'}"
        text = f"{where} holds only the value {quoted(next(iter(values)))}" if values else bare
        rest = ": two are needed to judge a list; choose another label or leave it out"
        raise InputError(Note(text + rest, bare + rest, (column,)))
    if positive is None:
        positive, why = _guessed(values, where, column)
        start, rest = f"Label column {quoted(column)}:", "; --positive names another value."
        note = Note(
            f"{start} {quoted(positive)} is taken to mean outlier ({why}){rest}",
            f"{start} one value is taken to mean outlier ({why}){rest}",
            (column,),
        )
    elif positive not in values:
        instead = "give --positive a value of that column."
        near = suggest(positive, list(values))
        text = f"{where} does not contain {quoted(positive)}: {instead}{near}"
        raise ConfigError(Note(text, f"{where} does not contain that value: {instead}", (column,)))
    return Labels(
        column=column,
        positive=positive,
        note=note,
        is_outlier=levels.each((levels.texts == positive).to_numpy(), False),
        known=levels.codes >= 0,
    )


def _guessed(values: dict[str, int], where: str, column: str) -> tuple[str, str]:
    """Return the value that probably marks outliers, and the reason for this guess.

    The guess is the only word such as "outlier", "yes" or "1", else the rarest value. ConfigError
    for many values and for numbers.
    """
    try:
        measured = sorted(map(float, values)) != [0.0, 1.0]
    except ValueError:
        measured = False
    if measured or len(values) > MAX_GUESSED:
        many = len(values) > MAX_GUESSED
        what = f"{len(values):,} different values" if many else "numbers other than 0 and 1"
        examples = ", ".join(map(quoted, list(values)[:3])) + ", ..." * (len(values) > 3)
        rest = "name the one that means outlier with --positive"
        bare = f"{where} holds {what}: {rest}"
        raise ConfigError(Note(f"{where} holds {what} ({examples}): {rest}", bare, (column,)))
    words = [value for value in values if value.lower() in POSITIVE_WORDS]
    if len(words) == 1:
        value, why = words[0], "the word says so"
    else:
        # Of equally rare values, take the last in alphabetical order.
        value = min(sorted(values, reverse=True), key=values.__getitem__)
        why = "it is the rarest value"
    if 2 * values[value] > sum(values.values()):
        why += (
            f", though {values[value]:,} of {sum(values.values()):,} rows would be outliers: most "
            "likely another value is meant"
        )
    return value, why


OURS = {"blocks": "Kernel PCA by blocks", "hoffmann": NAME}
MIN_NORMAL = 6  # minimum number of normal rows, which are split into training and test halves
MAX_POINTS = 400  # maximum number of points of a curve


def compare_table(
    table: AnyTable, options: ScreeningOptions | None = None, *, execution: Execution | None = None
) -> ComparisonResult:
    """Compare our detector with the baselines on a labelled table, in two settings.

    Methods are fitted to all rows and evaluated on them; or fitted to a random half of the normal
    rows and evaluated on the others. Tables of more than 100,000 rows are sampled.
    """
    options = options or ScreeningOptions()
    if options.columns.label is None:
        raise ConfigError("a comparison needs known labels: name the label column")
    execution = execution or Execution()
    options = replace(options, columns=resolve_columns(options.columns, table, execution))
    hidden = options.columns.hide
    with without_values(hidden):
        return redact_comparison(_compared(table, options, execution), hidden)


def _compared(table: AnyTable, options: ScreeningOptions, execution: Execution) -> ComparisonResult:
    assert options.columns.label is not None
    whole = in_parts(table)
    table = draw_sample(whole, options.seed, execution).table
    labels = read_labels(table, options.columns.label, options.positive)
    plain = replace(options, share=None, count=None, alpha=None, fdr=None)
    start = time.perf_counter()
    model, rows = fit_table(table, replace(plain, calibration="auto"), clean=False)
    seconds = time.perf_counter() - start
    scores = model.training_scores
    evaluations = [evaluate_scores(model, rows, labels, scores, rows, seconds=seconds)]
    drawn = (
        f"The table has {whole.source.n_rows:,} rows; the methods were compared on "
        f"{table.n_rows:,} drawn from them."
    )
    warnings = [drawn] if table is not whole else []
    warnings += [*([labels.note] if labels.note else []), *model.warnings]
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
        columns=column_profiles(rows),
        run=RunInfo(
            settings={
                "label": labels.column,
                "positive": labels.positive,
                "method": options.method,
                "kernel": model.detector.views.kernel.describe(),
                "seed": options.seed,
            },
            versions=library_versions(),
            warnings=tuple(warnings),
        ),
    )


def evaluate_scores(
    model: NoveltyModel,
    rows: Encoded,
    labels: Labels,
    scores: FloatArray,
    training: Encoded | None,
    *,
    seconds: float = 0.0,
) -> Evaluation:
    """Evaluate our scores (s,) of a sample, and scores of the baselines, by its labels.

    Baselines are fitted on the training rows of the model; without `training` there are none.
    """
    known, sample = labels.known, rows.sample_index
    outlier = labels.is_outlier[known]
    name = OURS[model.options.method]
    methods = [curves_of(name, outlier, scores[known], ours=True, seconds=seconds)]
    if training is not None:
        # Imported here because importing takes long and most tables have no labels.
        from kpca_apps.novelty.compare.baselines import BASELINES

        rng = np.random.default_rng(model.options.seed)
        view = StandardisedColumns.of(training.sample, model.encoder.as_is, rng)
        fit = view.transform(training.sample)
        scored = fit if training is rows else view.transform(rows.sample)
        for baseline in (one for one in BASELINES if one.name != name):
            start = time.perf_counter()
            found, note = baseline.run(fit, scored, model.options.seed)
            took = time.perf_counter() - start
            methods.append(curves_of(baseline.name, outlier, found[known], seconds=took, note=note))
    judged = f"{len(sample):,} rows drawn from it are judged"
    if training is not rows:
        judged = "the table is judged" if rows.size_of_parts is None else judged
        setting = f"Fitted on {model.source.n_rows:,} rows of {model.source.name}; {judged}."
    else:
        if rows.size_of_parts is None:
            judged = "the same rows are judged"
        else:
            judged += ", which the other methods were fitted on"
        setting = f"Fitted on all rows of the table, outliers and all; {judged}."
    return Evaluation(
        label=labels.column,
        positive=labels.positive,
        n_positive=int(outlier.sum()),
        n_rows=int(known.sum()),
        setting=setting,
        methods=tuple(methods),
    )


def curves_of(
    name: str,
    is_outlier: BoolArray,
    scores: FloatArray,
    *,
    ours: bool = False,
    seconds: float = 0.0,
    note: str = "",
) -> Curves:
    """Compute ROC and precision-recall curves, thinned for drawing, and the areas under them."""
    # Imported here because importing takes long and most tables have no labels.
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_curve

    false_positive, true_positive, _ = roc_curve(is_outlier, scores)
    precision, recall, _ = precision_recall_curve(is_outlier, scores)
    fpr, tpr = _thinned(false_positive, true_positive)
    recalls, precisions = _thinned(recall[::-1], precision[::-1])
    return Curves(
        name=name,
        ours=ours,
        auroc=float(np.trapezoid(true_positive, false_positive)),
        auprc=float(average_precision_score(is_outlier, scores)),
        false_positive_rate=fpr,
        true_positive_rate=tpr,
        recall=recalls,
        precision=precisions,
        seconds=seconds,
        note=note,
    )


def _thinned(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return at most 400 points of a curve, evenly spaced along its length, with both ends."""
    if len(x) <= MAX_POINTS:
        return x, y
    length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    wanted = np.linspace(0.0, length[-1], MAX_POINTS)
    kept = np.unique(np.searchsorted(length, wanted).clip(max=len(x) - 1))
    kept[-1] = len(x) - 1
    return x[kept], y[kept]


def _on_normal_half(
    table: Table, labels: Labels, normal: IntArray, options: ScreeningOptions
) -> Evaluation:
    drawn = np.random.default_rng(options.seed).permutation(normal)
    fit_rows = np.sort(drawn[: len(drawn) // 2])
    others = np.setdiff1d(np.arange(table.n_rows), fit_rows)
    reference, rest = table.take(fit_rows), table.take(others)
    start = time.perf_counter()
    model, training = fit_table(reference, options, clean=True)
    rows = encode(model.encoder, Sample.of(rest), n_jobs=options.jobs)
    scores = rows.scores(model.detector)
    seconds = time.perf_counter() - start
    remaining = replace(labels, is_outlier=labels.is_outlier[others], known=labels.known[others])
    evaluation = evaluate_scores(model, rows, remaining, scores, training, seconds=seconds)
    setting = (
        f"Fitted on a drawn half of the normal rows ({len(fit_rows):,}); all other rows with a "
        "label are judged."
    )
    return replace(evaluation, setting=setting)
