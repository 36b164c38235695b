"""Why one row of a table is odd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

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
        The row's text in the identifier column where there is one; else its number, 1 = first.
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
    name, n_rows = table.source.name, table.frame.height
    if (row is None) == (line is None):
        raise ConfigError("say which row to explain: either its id or number, or its line")
    if line is not None:
        if table.lines is None:
            raise ConfigError(f"{name}: a {table.source.format} file has no lines; give a row")
        found = np.flatnonzero(table.lines == line)
        what = f"row that starts on line {line}"
    elif id_column is not None:
        ids = [cell_text(table.frame[id_column], i).strip() for i in range(n_rows)]
        found = np.flatnonzero(np.array(ids) == str(row).strip())
        what = f"row with {quoted(id_column)} {quoted(str(row))}"
    else:
        number = int(row) if row is not None and row.strip().isdecimal() else 0
        found = np.array([number - 1] if 1 <= number <= n_rows else [], dtype=np.int64)
        what = f"row {quoted(str(row))}: rows are numbered from 1 to {n_rows}"
    if len(found) == 1:
        return int(found[0])
    if len(found) == 0:
        raise InputError(f"{name}: no {what}")
    places = (table.lines[found] if table.lines is not None else found + 1)[:5]
    kind = "line" if table.lines is not None else "row"
    raise InputError(
        f"{name}: {len(found)} rows are a {what} ({kind}s {', '.join(map(str, places))}, ...): "
        f"say which by {kind}"
    )
