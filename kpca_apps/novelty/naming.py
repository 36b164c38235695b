"""What names the rows of a table to a reader: one sentence where that is in doubt."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kpca_apps.files.names import one_line
from kpca_apps.files.tables import Table
from kpca_apps.files.values import read_texts
from kpca_apps.novelty.result import ColumnProfile
from kpca_apps.novelty.specs import quoted

__all__ = ["id_note"]


def id_note(
    table: Table, columns: Sequence[ColumnProfile], id_column: str | None, *, drawn: bool = False
) -> str:
    """Say that ids repeat, or which column would name the rows where none was given.

    Parameters
    ----------
    table : Table
        The table, or rows drawn from it.
    columns : sequence of ColumnProfile
        What its columns became.
    id_column : str or None
        The column that names its rows.
    drawn : bool
        Whether it is rows drawn from a larger table.

    Returns
    -------
    str
        Empty where there is nothing to say.

    Examples
    --------
    >>> import polars as pl
    >>> from kpca_apps.files.tables import table_from_frame
    >>> id_note(table_from_frame(pl.DataFrame({"ring": ["a", "b", "a"]})), (), "ring")
    '"ring" names 2 different rows of 3: the row number tells rows of one id apart.'
    """
    n_rows, of_those = table.frame.height, " drawn" if drawn else ""
    if id_column is not None:
        n_ids = read_texts(table.frame[id_column]).drop_nulls().n_unique()
        if n_ids == n_rows:
            return ""
        place = "row number" if table.lines is None else "line"
        return (
            f"{quoted(id_column)} names {n_ids:,} different rows of {n_rows:,}{of_those}: the "
            f"{place} tells rows of one id apart."
        )
    naming = [c.name for c in columns if c.role == "identifier" and c.n_distinct == n_rows]
    if len(naming) != 1:
        return ""
    return (
        f"Column {quoted(naming[0])} differs in every row{of_those} and is no part of the model: "
        f"name the rows with --id {shlex.quote(one_line(naming[0]))}."
    )
