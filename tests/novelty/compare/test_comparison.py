import numpy as np
import polars as pl
import pytest
from sklearn.metrics import auc, average_precision_score, roc_auc_score

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.compare import comparison as of_tables
from kpca_apps.novelty.compare.baselines import BASELINES
from kpca_apps.novelty.compare.comparison import MAX_POINTS, OURS, Labels, compare_table, curves_of
from kpca_apps.novelty.detector.hoffmann import StandardisedColumns
from kpca_apps.novelty.redact import without_values
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table
from tests.novelty.tables import correlated

OPTIONS = ScreeningOptions(columns=ColumnOptions(label="kind", id="name"), positive="odd")


def test_two_settings_with_ours_first_and_every_baseline() -> None:
    result = compare_table(correlated(120, odd=12), OPTIONS)
    everything, half = result.evaluations
    for evaluation in result.evaluations:
        assert [m.name for m in evaluation.methods] == [
            OURS["blocks"],
            *(b.name for b in BASELINES),
        ]
        assert evaluation.n_positive == 12
    assert (everything.n_rows, half.n_rows) == (120, 120 - 54)
    assert "half of the normal rows (54)" in half.setting


def test_ours_is_judged_by_the_scores_of_a_screening() -> None:
    table = correlated(120, odd=12)
    screened = screen(table, options=OPTIONS)[0]
    outlier = np.arange(120) >= 108
    compared = compare_table(table, OPTIONS).evaluations[0].methods[0]
    assert compared.auroc == pytest.approx(roc_auc_score(outlier, screened.rows.scores))


def test_only_rows_with_a_label_are_judged() -> None:
    without, outlier = np.arange(120) % 5 == 0, np.arange(120) >= 108
    kind = pl.when(pl.Series(without)).then(pl.lit("NA")).otherwise("kind").alias("kind")
    table = table_from_frame(correlated(120, odd=12).frame.with_columns(kind))
    first, _ = compare_table(table, OPTIONS).evaluations
    known = ~without
    assert (first.n_rows, first.n_positive) == (known.sum(), (known & outlier).sum())
    model, rows = fit_table(table, OPTIONS, clean=False)
    rng = np.random.default_rng(0)
    fit = StandardisedColumns.of(rows.sample, model.encoder.as_is, rng).transform(rows.sample)
    for baseline, curves in zip(BASELINES, first.methods[1:], strict=True):
        scores = baseline.scores(fit, fit, 0)
        assert curves.auroc == pytest.approx(roc_auc_score(outlier[known], scores[known]))


@pytest.mark.release
def test_the_same_seed_gives_the_same_areas() -> None:
    table = correlated(80, odd=8)
    areas = [
        [(m.auroc, m.auprc) for e in compare_table(table, OPTIONS).evaluations for m in e.methods]
        for _ in range(2)
    ]
    assert areas[0] == areas[1]


def test_too_few_normal_rows_leave_one_setting_and_say_so() -> None:
    result = compare_table(correlated(12, odd=8), OPTIONS)
    assert len(result.evaluations) == 1 and "4 normal rows are too few" in result.run.warnings[-1]


def test_a_label_is_needed() -> None:
    with pytest.raises(ConfigError, match="name the label column"):
        compare_table(correlated(20))


def test_areas_are_those_of_all_rows_and_curves_are_thin_but_whole() -> None:
    rng = np.random.default_rng(0)
    outlier = rng.random(5000) < 0.1
    scores = rng.normal(size=5000) + outlier
    curves = curves_of("any", outlier, scores)
    assert curves.auroc == pytest.approx(roc_auc_score(outlier, scores), abs=1e-12)
    assert curves.auprc == pytest.approx(average_precision_score(outlier, scores), abs=1e-12)
    for x, y in (
        (curves.false_positive_rate, curves.true_positive_rate),
        (curves.recall, curves.precision),
    ):
        assert len(x) == len(y) <= MAX_POINTS
        assert (np.diff(x) >= 0).all()
        assert (x[0], x[-1]) == (0.0, 1.0)
    thinned = auc(curves.false_positive_rate, curves.true_positive_rate)
    assert thinned == pytest.approx(curves.auroc, abs=0.005)


def labelled(*values: object) -> Table:
    frame = pl.DataFrame({"class": list(values), "x": list(range(len(values)))}, strict=False)
    return table_from_frame(frame, "birds.csv")


def read_labels(table: Table, column: str, positive: str | None = None) -> Labels:
    """Read labels with no column hidden."""
    with without_values(()):
        return of_tables.read_labels(table, column, positive)


@pytest.mark.parametrize(
    ("values", "positive", "why"),
    [
        (("no", "yes", "yes", "no"), "yes", "the word says so"),
        ((0, 1, 0, 1), "1", "the word says so"),
        ((True, True, False), "true", "2 of 3 rows would be outliers: most likely another"),
        (("benign", "Malignant", "Malignant"), "Malignant", "the word says so, though 2 of 3"),
        (("a", "a", "b"), "b", "it is the rarest"),
        (("a", "a", "b", "b", "c"), "c", "it is the rarest"),
        (("a", "b"), "b", "it is the rarest"),
    ],
)
def test_the_value_that_means_outlier(values: tuple[object, ...], positive: str, why: str) -> None:
    labels = read_labels(labelled(*values), "class")
    assert labels.positive == positive and labels.note is not None
    assert why in labels.note
    texts = [str(value).lower() for value in values]
    assert labels.is_outlier.tolist() == [text == positive.lower() for text in texts]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ((1, 2, 1, 1), "numbers other than 0 and 1"),
        ((-1, 1, 1, 1), "numbers other than 0 and 1"),
        ((0.5, 2.25, 7.0), "numbers other than 0 and 1"),
        (tuple("abcdefghijk"), "11 different values"),
    ],
)
def test_a_value_that_cannot_be_guessed_must_be_given(
    values: tuple[object, ...], what: str
) -> None:
    table = labelled(*values)
    with pytest.raises(ConfigError, match=f'"class" holds {what} .*with --positive$'):
        read_labels(table, "class")
    label = str(values[0])
    assert read_labels(table, "class", label).positive == label


def test_one_class_is_refused() -> None:
    with pytest.raises(InputError, match=r'birds.csv: label column "class" holds only .*"a"'):
        read_labels(labelled("a", "a", "a"), "class")
    with pytest.raises(InputError, match="no value at all"):
        read_labels(labelled("NA", "", "?"), "class")


def test_an_unknown_value_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r'does not contain "yess".* Did you mean "yes"'):
        read_labels(labelled("yes", "no"), "class", "yess")
