"""Known labels: which value means outlier, and which rows have it."""

from __future__ import annotations

from dataclasses import dataclass

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import suggest
from kpca_apps.novelty.columns.plan import quoted
from kpca_apps.novelty.redact import Note
from kpca_apps.system.arrays import BoolArray
from kpca_apps.tables.table import Table

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
    note: Note | None  # on how that value was chosen; None where it was given
    is_outlier: BoolArray  # (n,), rows with that value
    known: BoolArray  # (n,), rows whose label is not missing; only these are judged


def read_labels(table: Table, column: str, positive: str | None = None) -> Labels:
    """Read the label column of a table, of which one value means outlier.

    ConfigError if the value is not in the table, or must be given; InputError if the labels hold
    fewer than two values. That the table has the column is checked with all options.
    """
    levels = table.column(column).levels
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
        text = f"{where} never says {quoted(positive)}.{suggest(positive, list(values))}"
        raise ConfigError(Note(text, f"{where} never says that.", (column,)))
    return Labels(
        column=column,
        positive=positive,
        note=note,
        is_outlier=levels.each((levels.texts == positive).to_numpy(), False),
        known=levels.codes >= 0,
    )


def _guessed(values: dict[str, int], where: str, column: str) -> tuple[str, str]:
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
        rest = "name the one that means outlier with --positive"
        bare = f"{where} holds {what}: {rest}"
        raise ConfigError(Note(f"{where} holds {what} ({examples}): {rest}", bare, (column,)))
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
