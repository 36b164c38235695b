"""The table of evidence: what every detector holds against cells, one line a cell.

A detector judges rows one at a time. How strong evidence is depends on no other row that is judged,
so that tables of evidence of the parts of a table add up to that of the whole. A p-value is
already multiplied by how many columns, pairs or rules the detector looked at in the row. Those of
far numbers and of new levels are meant to be uniform among rows without errors, or larger; those of
contradictions order cells, and come out too small where exceptions are there by right.
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
MAX_EVIDENCE = 100_000  # of more, the strongest evidence is kept
# Cells that are odd alike are one finding.
_ALIKE = ("column", "kind", "seen", "sentence", "suggestion", "expected")


def in_findings(cells: pl.DataFrame) -> pl.DataFrame:
    """Put cells that are odd alike together, a line for all, their rows in order.

    `cells` also have the line that each stands on, and the number of cells that it stands for.
    """
    rows, first = pl.col("row", "line").sort_by("row"), pl.first("log_p", "given", "others", "rule")
    return cells.group_by(_ALIKE, maintain_order=True).agg(rows, pl.sum("n_cells"), first)


def of_rows(findings: pl.DataFrame) -> pl.DataFrame:
    """Return what each row has against it, `log_p`: the strongest of its findings.

    Rows that follow each other in one finding are one fault, a sensor that stands still or a gap in
    what was recorded: it counts for the first of them alone.
    """
    each = findings.with_row_index("finding").explode("row")
    goes_on = (pl.col("row").diff() == 1).over("finding").fill_null(False)
    log_p = pl.when(goes_on).then(0.0).otherwise("log_p")
    return each.select("row", log_p=log_p).group_by("row", maintain_order=True).agg(pl.min("log_p"))
