"""Explain one row of a table, found by its id, number or line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NewType

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import one_line, quoted
from kpca_apps.novelty.accepted import Marks, find_reviewed
from kpca_apps.novelty.columns.parts import AnyTable, Execution, draw_sample, each_part
from kpca_apps.novelty.findings.find_all import find_all
from kpca_apps.novelty.findings.listed_rows import list_rows, put_into_words
from kpca_apps.novelty.redact import Note, redact, without_values
from kpca_apps.novelty.result import RankedRow, ScreeningResult
from kpca_apps.novelty.run import hidden_of, inherit_options, rows_to_score
from kpca_apps.novelty.screening.encoded import Encoded
from kpca_apps.novelty.screening.judge import judge
from kpca_apps.novelty.screening.model import NoveltyModel, ScreeningOptions
from kpca_apps.novelty.screening.profiles import naming_column
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.tables.table import Table

MAX_PLACES = 20  # maximum number of rows of one id that a message lists
Line = NewType("Line", int)  # number of the file's line on which a row starts, not of the row


def explain_row(
    model: NoveltyModel,
    table: AnyTable,
    row: str | Line,
    *,
    by_hidden: bool = True,
    accept: Sequence[Table | Marks] = (),
    options: ScreeningOptions | None = None,
    execution: Execution | None = None,
) -> tuple[RankedRow, ScreeningResult]:
    """Return a row with its rank and all its reasons, and the result for the whole table.

    `row` is the row's text in the column that identifies rows (`naming_column`), its number from 1,
    or the line of the file on which it starts. Unless `by_hidden`, hidden columns are not searched:
    a match would reveal a value.
    """
    execution = execution or Execution()
    options = replace(options or inherit_options(model, table, execution), explain=0)
    hidden, specs = hidden_of(model, options), model.encoder.plan.specs
    with without_values(hidden):
        accepted = find_reviewed(accept, table, specs, execution, hidden=hidden)
        sample = draw_sample(table, model.options.seed, execution)
        model, rows = rows_to_score(model, sample, options, execution, accepted)
        id_column = naming_column(rows, options.columns.id)
        sought = id_column if by_hidden or id_column not in hidden else None
        position = np.array([_find_row(rows, sought, row)])
        verdict = judge(model, rows, options)
        result = find_all(verdict, options, None)
        table_of_row = rows.take(position)
        words = put_into_words(verdict, table_of_row, position, 1)
        listed = list_rows(verdict, table_of_row, position, 1, id_column, words)
        result = replace(result, findings=replace(result.findings, odd_cells=words.cells))
    (found,) = redact(replace(result, ranked=listed), hidden).ranked
    return found, redact(result, hidden)


def _find_row(rows: Encoded, id_column: str | None, row: str | Line) -> int:
    """Return the position of the requested row; InputError if there is none or several."""
    name, line = rows.source.name, row if isinstance(row, int) else None
    if line is not None:
        if rows.sample_table.lines is None:
            raise ConfigError(f"{name}: a {rows.source.format} file has no lines; give a row")
        found = _positions(rows, None, "", line)
        what = bare = f"starts on line {line}; give another line, or --row from 1 to {rows.n_rows}"
    else:
        found, what, bare = _named_rows(rows, id_column, str(row).strip())
    columns = () if id_column is None else (id_column,)
    if len(found) == 1:
        return int(found[0])
    if len(found) == 0:
        raise InputError(Note(f"{name}: no row {what}", f"{name}: no row {bare}", columns))
    # Tell where the rows are, and how to name a single row.
    first = found[:MAX_PLACES]
    # In a table of several files, a line number is ambiguous.
    taken, file_column = rows.take(first), rows.source.file_column
    lines = None if file_column is not None else taken.lines
    kind, places = ("row", first + 1) if lines is None else ("line", lines)
    more = f" and {len(found) - MAX_PLACES} more" if len(found) > MAX_PLACES else ""
    instead = f"name one, as with --{kind} {places[0]}"
    if lines is None and line is None:
        instead = "name the rows by another column with --id"
    which = f"{', '.join(map(str, places))}{more}; {instead}"
    if line is not None and file_column is not None:
        files = taken.column[file_column]
        named = [f"{row} of {one_line(files.text(k), 60)}" for k, row in enumerate(places)]
        with_files = f"{', '.join(named)}{more}; {instead}"
        many = f"{name}: {len(found)} rows start on line {line}: rows"
        raise InputError(Note(f"{many} {with_files}", f"{many} {which}", (file_column,)))
    many, which = f"{name}: {len(found)} rows", f": {kind}s {which}"
    raise InputError(Note(f"{many} {what}{which}", f"{many} {bare}{which}", columns))


def _named_rows(
    rows: Encoded, id_column: str | None, row: str
) -> tuple[NDArray[np.int64], str, str]:
    """Find rows by id or number; describe the search in words, with and without the id."""
    numbered = f"row numbers go from 1 to {rows.n_rows}"
    what = bare = f"{quoted(row)}: {numbered}; or name the column of ids with --id"
    if id_column is not None:
        found = _positions(rows, id_column, row)
        bare = f"with that {quoted(id_column)}"
        what = f"with {quoted(id_column)} = {quoted(row)}"
        if len(found):
            return found, what, bare
        what, bare = f"{what}, and {numbered}", f"{bare}, and {numbered}"
    number = int(row) if row.isdecimal() and len(row) < 19 else 0
    found = np.array([number - 1] if 1 <= number <= rows.n_rows else [], dtype=np.int64)
    return found, what, bare


def _positions(rows: Encoded, column: str | None, text: str, line: int | None = None) -> IntArray:
    """Return the indices of rows that start on a line, or hold a text in a column."""
    is_meant = partial(_is_meant, column=column, text=text, line=line)
    parts = each_part(rows.table, "Looking for rows", is_meant, rows.execution)
    return np.flatnonzero(np.concatenate(list(parts)))


def _is_meant(table: Table, column: str | None, text: str, line: int | None) -> BoolArray:
    if column is None:
        return np.zeros(table.n_rows, bool) if table.lines is None else table.lines == line
    cells = table.column[column]
    return np.array([cells.text(row).strip() == text for row in range(len(cells))], dtype=bool)
