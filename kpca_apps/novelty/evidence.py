"""The table of evidence: one line for each cell that a detector finds odd.

Detectors judge each row independently, so the evidence of the parts of a table adds up to that of
the whole. P-values are corrected for the number of columns, pairs or rules tested in a row. Among
rows without errors, p-values of far numbers and new levels are uniform, or larger. P-values of
contradictions only rank cells, and are too small where valid exceptions exist.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_type_hints

import polars as pl


class Evidence(NamedTuple):
    """A line of the table of evidence."""

    row: int  # row number from 0, in the table or the part that is judged
    column: str
    kind: str  # see `OddCell`
    log_p: float  # natural logarithm of the cell's p-value
    seen: str  # text of the cell
    suggestion: str  # suggested value; may be empty
    expected: str  # suggested value or allowed range, in words
    support: int  # number of rows from which the expected value was learned
    sentence: str  # why the cell is odd
    given: tuple[str, ...] = ()  # other columns that contradict the cell
    others: tuple[str, ...] = ()  # columns of `given` whose cells may be wrong instead of this one
    rule: str = ""  # broken rule, in plain English


_TYPES = {int: pl.Int64, float: pl.Float64, str: pl.String, tuple[str, ...]: pl.List(pl.String)}
SCHEMA: dict[str, Any] = {name: _TYPES[of] for name, of in get_type_hints(Evidence).items()}


def as_table(lines: list[Evidence]) -> pl.DataFrame:
    """Return lines of evidence as a table of `SCHEMA`.

    Examples
    --------
    >>> why = "Far from what weight says."
    >>> as_table([Evidence(6, "height", "contradicted", -9.2, "17", "", "about 170", 812, why)])[
    ...     "column", "expected"
    ... ].rows()
    [('height', 'about 170')]
    """
    return pl.DataFrame(lines, schema=SCHEMA, orient="row") if lines else NO_EVIDENCE


NO_EVIDENCE = pl.DataFrame(schema=SCHEMA)
MAX_EVIDENCE = 100_000  # maximum number of lines; the strongest are kept
# Cells that agree in these fields are one finding.
_ALIKE = ("column", "kind", "seen", "sentence", "suggestion", "expected")


def in_findings(cells: pl.DataFrame) -> pl.DataFrame:
    """Group equal odd cells into findings with sorted rows.

    `cells` are lines of evidence with two more columns: `line`, and the `n_cells` each stands for.
    """
    rows, first = pl.col("row", "line").sort_by("row"), pl.first("log_p", "given", "others", "rule")
    return cells.group_by(_ALIKE, maintain_order=True).agg(rows, pl.sum("n_cells"), first)


def strongest_by_row(findings: pl.DataFrame) -> pl.DataFrame:
    """Return the smallest `log_p` of each row.

    Consecutive rows of a finding are one fault, such as a stuck sensor; only the first counts.
    """
    cells = findings.with_row_index("finding").explode("row")
    continues = (pl.col("row").diff() == 1).over("finding").fill_null(False)
    log_p = pl.when(continues).then(0.0).otherwise("log_p")
    return (
        cells.select("row", log_p=log_p).group_by("row", maintain_order=True).agg(pl.min("log_p"))
    )
