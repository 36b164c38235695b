"""Evidence against a cell from the other rows that share values with its row."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from kpca_apps.names import in_prose, quoted, quoted_cell
from kpca_apps.novelty.evidence import Evidence
from kpca_apps.novelty.result import CONTRADICTED

FEWEST_TO_SUGGEST = 5  # least number of agreeing rows; with fewer, their value may be wrong instead


class RowsAlike(NamedTuple):
    """The other rows that share some values with a row."""

    shared: tuple[tuple[str, str], ...]  # pairs of a column and the value shared in it
    n_agreeing: int  # number of other rows with the expected value
    n_rows: int  # number of other rows that share the values


def contradicted(
    row: int, column: str, seen: str, expected: str, log_p: float, alike: RowsAlike
) -> Evidence:
    """Return evidence against a cell; `expected` is empty if similar rows are empty or disagree."""
    names = defaultdict[str, list[str]](list)
    for name, text in alike.shared:
        names[text].append(quoted(name))
    given = " and ".join(f"{in_prose(of)} {quoted_cell(text)}" for text, of in names.items())
    n, others = alike.n_agreeing, alike.n_rows
    sentence = f"{n:,} of the {others:,} other rows with {given}"
    if expected:
        sentence += f" read {quoted_cell(expected)}."
    elif 2 * n > others:
        sentence += " have no value there."
    else:
        sentence = f"Very few of the {others:,} other rows with {given} read so."
    suggestion = expected if n >= FEWEST_TO_SUGGEST else ""
    columns = tuple(name for name, _ in alike.shared)
    return Evidence(
        row, column, CONTRADICTED, log_p, seen, suggestion, expected, others, sentence, columns
    )
