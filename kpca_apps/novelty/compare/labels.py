"""Known labels: which value means outlier, and which rows have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.names import suggest
from kpca_apps.files.tables.table import Table
from kpca_apps.novelty.table.columns import quoted

__all__ = ["Labels", "read_labels"]

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
        exactly one value is such a word, else the rarest value. It must be told where there are
        more than 10 values, or numbers other than a 0 and a 1.

    Returns
    -------
    Labels

    Raises
    ------
    ConfigError
        If the column or the value is not in the table, or the value must be told.
    InputError
        If the labels hold fewer than two values.
    """
    if column not in table.frame.columns:
        hint = suggest(column, table.frame.columns)
        raise ConfigError(f"{table.source.name}: no column {quoted(column)} for the label.{hint}")
    levels = table.column(column).levels
    values = dict(levels.most_frequent())
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
        is_outlier=levels.each((levels.texts == value).to_numpy(), False),
        known=levels.codes >= 0,
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
    _check_guessable(table, column, values)
    words = [value for value in values if value.lower() in POSITIVE_WORDS]
    # The rarest; of equally rare ones the last in alphabetical order ("b" of "a" and "b").
    rarest = min(sorted(values, reverse=True), key=values.__getitem__)
    why = "the word says so" if len(words) == 1 else "it is the rarest value"
    value = words[0] if len(words) == 1 else rarest
    if 2 * values[value] > sum(values.values()):
        why += (
            f", though {values[value]:,} of {sum(values.values()):,} rows would be outliers: most "
            "likely another value is meant"
        )
    return value, (
        f"Label column {quoted(column)}: {quoted(value)} is taken to mean outlier ({why}); "
        "--positive names another value."
    )


def _check_guessable(table: Table, column: str, values: Mapping[str, int]) -> None:
    """Refuse to guess which of many values, or of measured numbers, means outlier."""
    numbers = [number for value in values if (number := _number(value)) is not None]
    if len(values) > MAX_GUESSED:
        what = f"{len(values):,} different values"
    elif len(numbers) == len(values) and sorted(numbers) != [0.0, 1.0]:
        what = "numbers other than 0 and 1"
    else:
        return
    examples = ", ".join(map(quoted, list(values)[:3]))
    raise ConfigError(
        f"{table.source.name}: label column {quoted(column)} holds {what} ({examples}"
        f"{', ...' if len(values) > 3 else ''}): name the one that means outlier with --positive"
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
