"""Why one row of a table is odd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.novelty.result import RankedRow, ScreeningResult
from kpca_apps.novelty.screening.listing import explain_rows, hint_rows, list_rows
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.novelty.screening.options import ScreeningOptions
from kpca_apps.novelty.screening.scoring import adapted, inherit_options, judge
from kpca_apps.novelty.screening.screening import describe, scored_rows
from kpca_apps.novelty.table.columns import quoted
from kpca_apps.novelty.table.parted_rows import Execution
from kpca_apps.novelty.table.rows import AnyTable, RowQuery, TableRows, naming_column

__all__ = ["explain_row"]

# Rows of one id that a message lists.
MAX_PLACES = 20


def explain_row(
    model: NoveltyModel,
    table: AnyTable,
    *,
    row: str | None = None,
    line: int | None = None,
    options: ScreeningOptions | None = None,
    execution: Execution | None = None,
) -> tuple[RankedRow, ScreeningResult]:
    """Say which columns make one row of a table odd.

    Parameters
    ----------
    model : NoveltyModel
        The model.
    table : Table or PartedTable
        The table that holds the row.
    row : str, optional
        The row's text in the column that names the rows (see `naming_column`) where there is one
        and it is found there; else its number, 1 = first.
    line : int, optional
        The line of the file it starts on, instead.
    options : ScreeningOptions, optional
        As in `score_table`.
    execution : Execution, optional
        Who works on a table that is read in parts.

    Returns
    -------
    row : RankedRow
        The row with all its reasons and its rank in the table.
    result : ScreeningResult
        The table scored, without reasons for other rows.

    Raises
    ------
    InputError
        If no row, or more than one, is meant.
    """
    options = replace(options or inherit_options(model, table), explain=0)
    model = adapted(model, table, options)
    rows = scored_rows(model, table, options, execution)
    id_column = naming_column(rows, options.columns.id)
    position = np.array([_find_row(rows, id_column, row, line)])
    judged = judge(model, rows, options)
    result = describe(model, judged, options, None, "")
    found, matrix = rows.take(position), rows.encoded(position)
    reasons = explain_rows(model, found, matrix, judged.own(position))
    hints = hint_rows(model, rows, found, matrix, position)
    hidden = frozenset(column.name for column in result.columns if column.hidden)
    ranked = list_rows(found, position, id_column, hidden, judged, reasons, hints)
    return ranked[0], result


def _find_row(rows: TableRows, id_column: str | None, row: str | None, line: int | None) -> int:
    """Position of the one row that is meant."""
    name = rows.source.name
    if (row is None) == (line is None):
        raise ConfigError("say which row to explain: either its id or number, or its line")
    if line is not None:
        if rows.sample_table.lines is None:
            raise ConfigError(f"{name}: a {rows.source.format} file has no lines; give a row")
        found = rows.find(RowQuery(line=line))
        what = f"row that starts on line {line}"
    else:
        found, what = _named_rows(rows, id_column, str(row).strip())
    if len(found) == 1:
        return int(found[0])
    if len(found) == 0:
        raise InputError(f"{name}: no {what}")
    raise InputError(f"{name}: {len(found)} rows are a {what}: {_which(rows, found)}")


def _named_rows(rows: TableRows, id_column: str | None, row: str) -> tuple[NDArray[np.int64], str]:
    """Positions of the rows of that id, or else of that number; and what was looked for."""
    numbered = f"rows are numbered from 1 to {rows.n_rows}"
    what = f"row {quoted(row)}: {numbered}; or name the column of ids with --id"
    if id_column is not None:
        found = rows.find(RowQuery(column=id_column, text=row))
        what = f"row with {quoted(id_column)} {quoted(row)}"
        if len(found):
            return found, what
        what = f"{what}; {numbered}"
    number = int(row) if row.isdecimal() and len(row) < 19 else 0
    return np.array([number - 1] if 1 <= number <= rows.n_rows else [], dtype=np.int64), what


def _which(rows: TableRows, found: NDArray[np.int64]) -> str:
    """Say where rows of one id are, and how to name one of them."""
    lines = rows.take(found[:MAX_PLACES]).lines
    kind, places = ("row", found[:MAX_PLACES] + 1) if lines is None else ("line", lines)
    shown = ", ".join(map(str, places))
    more = f" and {len(found) - MAX_PLACES} more" if len(found) > MAX_PLACES else ""
    if lines is None:
        return f"{kind}s {shown}{more}; name the rows by another column with --id"
    return f"{kind}s {shown}{more}; name one, as with --line {places[0]}"
