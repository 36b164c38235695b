"""What names the rows of a table to a reader: the column asked for, or one that can."""

from __future__ import annotations

import polars as pl

from kpca_apps.novelty.table.identifiers import is_named_as_identifier
from kpca_apps.novelty.table.specs import quoted
from kpca_apps.novelty.table.table_rows import TableRows

__all__ = ["id_note", "naming_column"]


def naming_column(rows: TableRows, told: str | None) -> str | None:
    """Find the column that names the rows.

    Parameters
    ----------
    rows : TableRows
        The rows; of a table in parts, those drawn are looked at.
    told : str or None
        The column the user named, which wins.

    Returns
    -------
    str or None
        An identifier that differs in every row: of several the first whose name says what it is,
        else the first. None that repeats the row number, which is shown anyway, and none that is
        hidden.
    """
    if told is not None:
        return told
    names = [
        spec.name
        for spec in rows.encoder.plan.specs
        if spec.role == "identifier" and not spec.hidden and _names_rows(rows, spec.name)
    ]
    return next(filter(is_named_as_identifier, names), names[0] if names else None)


def _names_rows(rows: TableRows, name: str) -> bool:
    """Whether a column differs in every row, and says more than its number."""
    if name not in rows.columns:
        return False
    texts = rows.sample_table.column(name).texts
    if texts.null_count() or texts.n_unique() < texts.len():
        return False
    counted = texts.str.to_integer(strict=False)
    positions = rows.sample_index
    return all((counted != pl.Series(positions + first)).fill_null(True).any() for first in (0, 1))


def id_note(rows: TableRows, told: str | None, found: str | None) -> str:
    """Say which column names the rows where none was asked for, or that ids repeat.

    Parameters
    ----------
    rows : TableRows
        The rows; of a table in parts, those drawn are looked at.
    told : str or None
        The column the user named.
    found : str or None
        What `naming_column` found.

    Returns
    -------
    str
        Empty where there is nothing to say.
    """
    of_those = "" if rows.size_of_parts is None else " drawn"
    if found is None:
        return ""
    if told is None:
        return (
            f"Rows are named by {quoted(found)}, which differs in every row{of_those}; --id names "
            "another column."
        )
    table = rows.sample_table
    n_rows, n_ids = table.frame.height, len(table.column(told).levels.texts)
    if n_ids == n_rows:
        return ""
    place = "row number" if table.lines is None else "line"
    return (
        f"{quoted(told)} names {n_ids:,} different rows of {n_rows:,}{of_those}: the {place} tells "
        "rows of one id apart."
    )
