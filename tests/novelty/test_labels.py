from __future__ import annotations

import polars as pl
import pytest

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.tables import Table, table_from_frame
from kpca_apps.novelty.labels import read_labels


def labelled(*values: object) -> Table:
    frame = pl.DataFrame({"class": list(values), "x": list(range(len(values)))}, strict=False)
    return table_from_frame(frame, "birds.csv")


@pytest.mark.parametrize(
    ("values", "positive", "why"),
    [
        (("no", "yes", "yes"), "yes", "it names one"),
        ((0, 1, 1, 1), "1", "it names one"),
        ((True, True, False), "true", "it names one"),
        (("benign", "Malignant", "Malignant"), "Malignant", "it names one"),
        (("a", "a", "b"), "b", "it is the rarest"),
        (("a", "a", "b", "b", "c"), "c", "it is the rarest"),
        (("a", "b"), "b", "it is the rarest"),
    ],
)
def test_the_value_that_means_outlier(values: tuple[object, ...], positive: str, why: str) -> None:
    labels = read_labels(labelled(*values), "class")
    assert labels.positive == positive
    assert why in labels.note
    texts = [str(value).lower() for value in values]
    assert labels.is_outlier.tolist() == [text == positive.lower() for text in texts]


def test_rows_without_a_label_are_not_judged() -> None:
    labels = read_labels(labelled("a", None, "NA", "b", "a"), "class", "a")
    assert labels.known.tolist() == [True, False, False, True, True]
    assert labels.is_outlier.tolist() == [True, False, False, False, True]
    assert labels.note == ""


def test_one_class_is_refused() -> None:
    with pytest.raises(InputError, match=r'birds.csv: label column "class" holds only .*"a"'):
        read_labels(labelled("a", "a", "a"), "class")
    with pytest.raises(InputError, match="no value at all"):
        read_labels(labelled("NA", "", "?"), "class")


def test_unknown_column_and_value_get_a_suggestion() -> None:
    with pytest.raises(ConfigError, match='Did you mean "class"'):
        read_labels(labelled("a", "b"), "clas")
    with pytest.raises(ConfigError, match=r'never says "yess".* Did you mean "yes"'):
        read_labels(labelled("yes", "no"), "class", "yess")
