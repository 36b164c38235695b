"""Evidence of rows that share values with one: what nearly all of them hold instead."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from kpca_apps.names import in_prose, quoted, quoted_cell
from kpca_apps.novelty.evidence import Evidence
from kpca_apps.novelty.result import CONTRADICTED

# Of fewer rows that agree on another value, it is open which of them is right.
FEWEST_TO_MEND = 5


class RowsAlike(NamedTuple):
    """What the rows say that share values with that of a cell."""

    shared: tuple[tuple[str, str], ...]  # columns, and what both read there
    n_agreeing: int  # others that have the value expected,
    n_rows: int  # others that share the values


def contradicted(
    row: int, column: str, seen: str, expected: str, log_p: float, alike: RowsAlike
) -> Evidence:
    """Say what the rows like that of a cell hold instead.

    Nothing is expected where they have no value, or differ.
    """
    given, n, others = _shared(alike), alike.n_agreeing, alike.n_rows
    says = f"{n:,} of the {others:,} other rows with {given}"
    if expected:
        says += f" read {quoted_cell(expected)}."
    elif 2 * n > others:
        says += " have no value there."
    else:
        says = f"Very few of the {others:,} other rows with {given} read so."
    return Evidence(
        row=row,
        column=column,
        kind=CONTRADICTED,
        log_p=log_p,
        seen=seen,
        suggestion=expected if n >= FEWEST_TO_MEND else "",
        expected=expected,
        support=others,
        sentence=says,
        given=tuple(name for name, _ in alike.shared),
    )


def _shared(alike: RowsAlike) -> str:
    """Name the values that rows share, once for the columns that share them."""
    names = defaultdict[str, list[str]](list)
    for name, text in alike.shared:
        names[text].append(quoted(name))
    return " and ".join(f"{in_prose(of)} {quoted_cell(text)}" for text, of in names.items())
