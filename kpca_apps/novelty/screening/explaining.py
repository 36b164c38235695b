"""Why one row of a table is odd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.novelty.result import RankedRow, ScreeningResult
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.novelty.screening.options import ScreeningOptions
from kpca_apps.novelty.screening.ranked_list import list_rows
from kpca_apps.novelty.screening.run import describe, inherit_options, rows_to_score
from kpca_apps.novelty.screening.verdict import score_rows
from kpca_apps.novelty.table.naming import naming_column
from kpca_apps.novelty.table.parted_rows import Execution
from kpca_apps.novelty.table.specs import quoted
from kpca_apps.novelty.table.table_rows import AnyTable, RowQuery, TableRows

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
    """One row with its rank in the table and all its reasons, and the table scored without others.

    It is named by its `row`, the text in the column that names the rows (see `naming_column`)
    where there is one and it is found there, else its number, 1 = first; or by the `line` of the
    file it starts on.
    """
    options = replace(options or inherit_options(model, table), explain=0)
    model, rows = rows_to_score(model, table, options, execution)
    id_column = naming_column(rows, options.columns.id)
    position = np.array([_find_row(rows, id_column, row, line)])
    verdict = score_rows(model, rows, options)
    result = describe(model, verdict, options, None, "")
    (listed,) = list_rows(model, verdict, rows.take(position), position, 1, id_column)
    return listed, result


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
    # Where the rows of one id are, and how to name one of them.
    first = found[:MAX_PLACES]
    lines = rows.take(first).lines
    kind, places = ("row", first + 1) if lines is None else ("line", lines)
    more = f" and {len(found) - MAX_PLACES} more" if len(found) > MAX_PLACES else ""
    instead = f"name one, as with --line {places[0]}"
    if lines is None:
        instead = "name the rows by another column with --id"
    raise InputError(
        f"{name}: {len(found)} rows are a {what}: {kind}s {', '.join(map(str, places))}{more}; "
        f"{instead}"
    )


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
