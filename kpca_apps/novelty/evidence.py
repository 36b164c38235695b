"""The table of evidence: what every detector holds against cells, one line a cell.

A detector judges rows one at a time. How strong evidence is depends on no other row that is judged,
so that tables of evidence of the parts of a table add up to that of the whole. A p-value is
calibrated: among rows without errors it is uniform, or larger. It is already multiplied by how many
columns, pairs or rules the detector looked at in the row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, get_type_hints

import polars as pl


class Evidence(NamedTuple):
    """A line of the table of evidence: what is held against one cell."""

    row: int  # from 0, in the table or in the part of it that is judged
    column: str  # whose cell is odd
    kind: str  # see `OddCell`
    log_p: float  # natural logarithm of its p-value
    seen: str  # the cell as it stands in the table
    suggestion: str  # the value that was probably meant; empty where that is open
    expected: str  # the same, or what would be allowed, in words
    support: int  # rows that say so
    sentence: str  # why the cell is odd
    given: tuple[str, ...] = ()  # the other columns that contradict it
    others: tuple[str, ...] = ()  # of these, any that may be the wrong one instead
    rule: str = ""  # that it breaks, in plain English


_TYPES = {int: pl.Int64, float: pl.Float64, str: pl.String, tuple[str, ...]: pl.List(pl.String)}
SCHEMA: dict[str, Any] = {name: _TYPES[of] for name, of in get_type_hints(Evidence).items()}


def as_table(lines: Iterable[Evidence]) -> pl.DataFrame:
    """Return lines of evidence as a table of `SCHEMA`.

    Examples
    --------
    >>> why = "Far from what weight says."
    >>> as_table([Evidence(6, "height", "contradicted", -9.2, "17", "", "about 170", 812, why)])[
    ...     "column", "expected"
    ... ].rows()
    [('height', 'about 170')]
    """
    return pl.DataFrame([*lines], schema=SCHEMA, orient="row")


NO_EVIDENCE = as_table(())
