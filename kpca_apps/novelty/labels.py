"""Known labels: which value means outlier, and which rows have it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.names import suggest
from kpca_apps.files.tables import Table
from kpca_apps.files.values import read_texts
from kpca_apps.novelty.specs import quoted

__all__ = ["Labels", "read_labels"]

# Words that mean "this row is an outlier" wherever they are a label, compared without case.
POSITIVE_WORDS = frozenset(
    {
        *("1", "1.0", "true", "t", "yes", "y", "outlier", "outliers", "anomaly", "anomalous"),
        *("abnormal", "novel", "novelty", "malignant", "fraud", "fraudulent", "attack", "defect"),
        *("defective", "faulty", "fault", "failure", "positive", "pos", "bad", "noise"),
    }
)


@dataclass(frozen=True)
class Labels:
    """The known labels of a table.

    Attributes
    ----------
    column : str
        The label column.
    positive : str
        Its value that means outlier.
    note : str
        A sentence on how that value was chosen; empty where it was told.
    is_outlier : (n,) bool array
        Rows with that value.
    known : (n,) bool array
        Rows whose label is not missing; only these are judged.
    """

    column: str
    positive: str
    note: str
    is_outlier: NDArray[np.bool_]
    known: NDArray[np.bool_]


def read_labels(table: Table, column: str, positive: str | None = None) -> Labels:
    """Read the label column of a table.

    Parameters
    ----------
    table : Table
        The table.
    column : str
        Its label column.
    positive : str, optional
        The value that means outlier. By itself: a word such as "outlier", "yes", "1" where
        exactly one value is such a word, else the rarest value.

    Returns
    -------
    Labels

    Raises
    ------
    ConfigError
        If the column or the value is not in the table.
    InputError
        If the labels hold fewer than two values.
    """
    if column not in table.frame.columns:
        hint = suggest(column, table.frame.columns)
        raise ConfigError(f"{table.source.name}: no column {quoted(column)} for the label.{hint}")
    texts = read_texts(table.frame[column])
    counts = texts.drop_nulls().value_counts(sort=True)
    values = {str(value): int(n) for value, n in counts.iter_rows()}
    if len(values) < 2:
        only = "no value at all" if not values else f"only the value {quoted(next(iter(values)))}"
        raise InputError(
            f"{table.source.name}: label column {quoted(column)} holds {only}: "
            "two are needed to judge a list; choose another label or leave it out"
        )
    value, note = _positive_value(table, column, values, positive)
    return Labels(
        column=column,
        positive=value,
        note=note,
        is_outlier=(texts == value).fill_null(False).to_numpy(),
        known=texts.is_not_null().to_numpy(),
    )


def _positive_value(
    table: Table, column: str, values: dict[str, int], positive: str | None
) -> tuple[str, str]:
    if positive is not None:
        if positive not in values:
            raise ConfigError(
                f"{table.source.name}: label column {quoted(column)} never says "
                f"{quoted(positive)}.{suggest(positive, list(values))}"
            )
        return positive, ""
    words = [value for value in values if value.lower() in POSITIVE_WORDS]
    # The rarest; of equally rare ones the last in alphabetical order ("b" of "a" and "b").
    rarest = min(sorted(values, reverse=True), key=values.__getitem__)
    value, why = (words[0], "it names one") if len(words) == 1 else (rarest, "it is the rarest")
    return value, (
        f"Label column {quoted(column)}: {quoted(value)} is taken to mean outlier, because {why}; "
        "another value can be named with --positive."
    )
