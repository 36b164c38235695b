from __future__ import annotations

import polars as pl
import pytest

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.compare import comparison as of_tables
from kpca_apps.novelty.compare.comparison import Labels, compare_table
from kpca_apps.novelty.redact import without_values
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table


def labelled(*values: object) -> Table:
    frame = pl.DataFrame({"class": list(values), "x": list(range(len(values)))}, strict=False)
    return table_from_frame(frame, "birds.csv")


def read_labels(table: Table, column: str, positive: str | None = None) -> Labels:
    """Read labels where no column is hidden."""
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
    assert labels.positive == positive
    assert labels.note is not None
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
def test_a_value_that_cannot_be_guessed_must_be_told(values: tuple[object, ...], what: str) -> None:
    table = labelled(*values)
    with pytest.raises(ConfigError, match=f'"class" holds {what} .*with --positive$'):
        read_labels(table, "class")
    told = str(values[0])
    assert read_labels(table, "class", told).positive == told


def test_rows_without_a_label_are_not_judged() -> None:
    labels = read_labels(labelled("a", None, "NA", "b", "a"), "class", "a")
    assert labels.known.tolist() == [True, False, False, True, True]
    assert labels.is_outlier.tolist() == [True, False, False, False, True]
    assert labels.note is None


def test_one_class_is_refused() -> None:
    with pytest.raises(InputError, match=r'birds.csv: label column "class" holds only .*"a"'):
        read_labels(labelled("a", "a", "a"), "class")
    with pytest.raises(InputError, match="no value at all"):
        read_labels(labelled("NA", "", "?"), "class")


def test_unknown_column_and_value_get_a_suggestion() -> None:
    options = ScreeningOptions(columns=ColumnOptions(label="clas"))
    with pytest.raises(ConfigError, match='Did you mean "class"'):
        compare_table(labelled("a", "b"), options)
    with pytest.raises(ConfigError, match=r'never says "yess".* Did you mean "yes"'):
        read_labels(labelled("yes", "no"), "class", "yess")
