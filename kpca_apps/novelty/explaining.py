"""Why one row of a table is odd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.tables import Table
from kpca_apps.files.values import cell_text
from kpca_apps.novelty.listing import explain_rows, list_rows
from kpca_apps.novelty.model import NoveltyModel
from kpca_apps.novelty.options import ScreeningOptions
from kpca_apps.novelty.result import RankedRow, ScreeningResult
from kpca_apps.novelty.scoring import adapted, inherit_options, judge
from kpca_apps.novelty.screening import describe
from kpca_apps.novelty.specs import quoted

__all__ = ["explain_row"]

# Rows of one id that a message lists.
MAX_PLACES = 20


def explain_row(
    model: NoveltyModel,
    table: Table,
    *,
    row: str | None = None,
    line: int | None = None,
    options: ScreeningOptions | None = None,
) -> tuple[RankedRow, ScreeningResult]:
    """Say which columns make one row of a table odd.

    Parameters
    ----------
    model : NoveltyModel
        The model.
    table : Table
        The table that holds the row.
    row : str, optional
        The row's text in the identifier column where there is one and it is found there; else
        its number, 1 = first.
    line : int, optional
        The line of the file it starts on, instead.
    options : ScreeningOptions, optional
        As in `score_table`.

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
    position = _find_row(table, options.columns.id, row, line)
    judged = judge(model, table, options)
    result = describe(model, table, judged, options, None, "")
    rows = np.array([position])
    reasons = explain_rows(model, table, judged.matrix, rows, judged.own)
    listed = list_rows(
        table,
        options.columns.id,
        frozenset(column.name for column in result.columns if column.hidden),
        judged.scores,
        judged.p_values,
        judged.flagged,
        rows,
        reasons,
    )
    return replace(listed[0], rank=int(judged.ranks[position])), result


def _find_row(table: Table, id_column: str | None, row: str | None, line: int | None) -> int:
    """Position of the one row that is meant."""
    name = table.source.name
    if (row is None) == (line is None):
        raise ConfigError("say which row to explain: either its id or number, or its line")
    if line is not None:
        if table.lines is None:
            raise ConfigError(f"{name}: a {table.source.format} file has no lines; give a row")
        found = np.flatnonzero(table.lines == line)
        what = f"row that starts on line {line}"
    else:
        found, what = _named_rows(table, id_column, str(row).strip())
    if len(found) == 1:
        return int(found[0])
    if len(found) == 0:
        raise InputError(f"{name}: no {what}")
    raise InputError(f"{name}: {len(found)} rows are a {what}: {_which(table, found)}")


def _named_rows(table: Table, id_column: str | None, row: str) -> tuple[NDArray[np.int64], str]:
    """Positions of the rows of that id, or else of that number; and what was looked for."""
    n_rows = table.frame.height
    numbered = f"rows are numbered from 1 to {n_rows}"
    what = f"row {quoted(row)}: {numbered}"
    if id_column is not None:
        ids = [cell_text(table.frame[id_column], i).strip() for i in range(n_rows)]
        found = np.flatnonzero(np.array(ids) == row)
        what = f"row with {quoted(id_column)} {quoted(row)}"
        if len(found):
            return found, what
        what = f"{what}; {numbered}"
    number = int(row) if row.isdecimal() and len(row) < 19 else 0
    return np.array([number - 1] if 1 <= number <= n_rows else [], dtype=np.int64), what


def _which(table: Table, found: NDArray[np.int64]) -> str:
    """Say where rows of one id are, and how to name one of them."""
    kind, places = ("row", found + 1) if table.lines is None else ("line", table.lines[found])
    shown = ", ".join(map(str, places[:MAX_PLACES]))
    more = f" and {len(places) - MAX_PLACES} more" if len(places) > MAX_PLACES else ""
    if table.lines is None:
        return f"{kind}s {shown}{more}; leave --id out and name one by its number"
    return f"{kind}s {shown}{more}; name one, as with --line {places[0]}"
