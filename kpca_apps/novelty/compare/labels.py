"""Known labels: which value means outlier, and which rows have it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.names import suggest
from kpca_apps.files.tables.table import Table
from kpca_apps.novelty.table.columns import quoted

# Words that mean "this row is an outlier" wherever they are a label, compared without case.
POSITIVE_WORDS = frozenset(
    {
        *("1", "1.0", "true", "t", "yes", "y", "outlier", "outliers", "anomaly", "anomalous"),
        *("abnormal", "novel", "novelty", "malignant", "fraud", "fraudulent", "attack", "defect"),
        *("defective", "faulty", "fault", "failure", "positive", "pos", "bad", "noise"),
    }
)
# More values than this are hardly classes, of which the rarest could be guessed to mean outlier.
MAX_GUESSED = 10


@dataclass(frozen=True)
class Labels:
    """The known labels of a table."""

    column: str  # the label column
    positive: str  # its value that means outlier
    note: str  # a sentence on how that value was chosen; empty where it was given
    is_outlier: NDArray[np.bool_]  # (n,), rows with that value
    known: NDArray[np.bool_]  # (n,), rows whose label is not missing; only these are judged


def read_labels(table: Table, column: str, positive: str | None = None) -> Labels:
    """Read the label column of a table, of which one value means outlier.

    ConfigError if the value is not in the table, or must be given; InputError if the labels hold
    fewer than two values. That the table has the column is checked with all options.
    """
    levels = table.column(column).levels
    values = dict(levels.most_frequent())
    where, note = f"{table.source.name}: label column {quoted(column)}", ""
    if len(values) < 2:
        only = "no value at all" if not values else f"only the value {quoted(next(iter(values)))}"
        raise InputError(
            f"{where} holds {only}: two are needed to judge a list; choose another label or leave "
            "it out"
        )
    if positive is None:
        positive, why = _guessed(values, where)
        note = (
            f"Label column {quoted(column)}: {quoted(positive)} is taken to mean outlier ({why}); "
            "--positive names another value."
        )
    elif positive not in values:
        hint = suggest(positive, list(values))
        raise ConfigError(f"{where} never says {quoted(positive)}.{hint}")
    return Labels(
        column=column,
        positive=positive,
        note=note,
        is_outlier=levels.each((levels.texts == positive).to_numpy(), False),
        known=levels.codes >= 0,
    )


def _guessed(values: dict[str, int], where: str) -> tuple[str, str]:
    """Which of some values (with their counts) means outlier, and why.

    The one word such as "outlier", "yes", "1", else the rarest; none of many values or of numbers.
    """
    try:
        measured = sorted(map(float, values)) != [0.0, 1.0]
    except ValueError:
        measured = False
    if measured or len(values) > MAX_GUESSED:
        many = len(values) > MAX_GUESSED
        what = f"{len(values):,} different values" if many else "numbers other than 0 and 1"
        examples = ", ".join(map(quoted, list(values)[:3])) + ", ..." * (len(values) > 3)
        raise ConfigError(
            f"{where} holds {what} ({examples}): name the one that means outlier with --positive"
        )
    words = [value for value in values if value.lower() in POSITIVE_WORDS]
    if len(words) == 1:
        value, why = words[0], "the word says so"
    else:
        # The rarest; of equally rare ones the last in alphabetical order ("b" of "a" and "b").
        value = min(sorted(values, reverse=True), key=values.__getitem__)
        why = "it is the rarest value"
    if 2 * values[value] > sum(values.values()):
        why += (
            f", though {values[value]:,} of {sum(values.values()):,} rows would be outliers: most "
            "likely another value is meant"
        )
    return value, why
