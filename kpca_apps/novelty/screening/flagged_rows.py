"""The rows to take away: those flagged, each with its first reason, and those with an odd cell.

They stand in a file of their own, and all cells that are odd by themselves in another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.novelty.columns.encoding import TableEncoder
from kpca_apps.novelty.columns.execution import Execution
from kpca_apps.novelty.columns.parts import AnyTable, rows_of, take_rows
from kpca_apps.novelty.columns.plan import ColumnPlan, quoted
from kpca_apps.novelty.detector.detector import Detector
from kpca_apps.novelty.result import (
    FlaggedRow,
    OddCell,
    RankedRow,
    Reason,
    ScreeningResult,
)
from kpca_apps.novelty.screening.judge import Verdict, top_rows
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.novelty.screening.ranked_list import explain_rows, judged_by
from kpca_apps.system.output import atomic_write
from kpca_apps.tables.read.workbook import (
    MAX_CELL,
    Sheet,
    SheetColumn,
    cells_of,
    workbook_bytes,
)
from kpca_apps.tables.scored import PLAIN, CsvStyle, csv_bytes, input_names, literal
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Flagged rows that are listed, each with its first reason: so many cells, whatever the width of
# the table, but at least and at most so many rows. A reason takes 1 ms a row of 13 columns and 8
# of 100.
MOST_CELLS, FEWEST_ROWS, MOST_ROWS = 400_000, 500, 20_000
# Rows explained together; reasons depend on it in their last bits, so it is no one's choice.
ROWS_A_BLOCK = 256
# A longer text stands in full in its own cell.
MAX_TEXT = 200
SHARE_DIGITS = 4
# Columns of that list beside those of the input.
N_ADDED = 8
# What the columns of a workbook mean, shown where the pointer rests on their names.
ABOUT = {
    "flagged": "FALSE where the row as a whole is usual and only the coloured cells are odd by "
    "themselves.",
    "reason_column": "The column that made the row odd, or several that are odd together: their "
    "cells are coloured.",
    "expected": "What the rows that are otherwise most like this one read there.",
    "share": "Of all that the score of the row drops when the values of its reasons are replaced "
    "by those expected: the part of this reason, 0 to 1.",
}


@dataclass(frozen=True)
class _Block:
    """Some rows to explain, as they stand and encoded."""

    table: Table
    matrix: FloatArray  # (b, d)
    own: IntArray  # (b,), positions among the training rows, or -1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.own)


class _Column(NamedTuple):
    """A column of the file of flagged rows."""

    name: str
    cells: Column
    source: str | None = None  # its name in the input, if it is of it


class _FirstReason(NamedTuple):
    """The fields of a `FlaggedRow` that say why."""

    columns: tuple[str, ...]
    seen: tuple[str, ...]
    expected: tuple[str, ...]
    share: float | None


def list_flagged(
    model: NoveltyModel,
    verdict: Verdict,
    ranked: Sequence[RankedRow],
    id_column: str | None,
    *,
    explain: bool,
) -> tuple[FlaggedRow, ...]:
    """List the oddest flagged rows; what `ranked` says of the first of them is not sought again."""
    rows = verdict.rows
    # A flagged row scores higher than any other: they are the first of the list.
    flagged = top_rows(verdict.ranks, min(int(verdict.flagged.sum()), _most_listed(verdict)))
    known = [row for row in ranked[: len(flagged)] if row.explained or not explain]
    found = [
        FlaggedRow(
            row.rank,
            row.row,
            row.line,
            row.id,
            *_first_reason(row.reasons),
            " ".join(row.hints),
        )
        for row in known
    ]
    others = flagged[len(known) :]
    if not len(others):
        return tuple(found)
    table = rows.take(others)
    reasons = _first_reasons(verdict, table, others) if explain else []
    ids = None if id_column is None else table.column(id_column)
    for place, position in enumerate(others.tolist()):
        found.append(
            FlaggedRow(
                int(verdict.ranks[position]),
                position + 1,
                None if table.lines is None else int(table.lines[place]),
                None if ids is None else ids.text(place),
                *(reasons[place] if explain else _first_reason(())),
            )
        )
    return tuple(found)


def _most_listed(verdict: Verdict) -> int:
    n_cells = max(len(verdict.rows.sample_table.frame.columns), 1)
    return min(max(MOST_CELLS // n_cells, FEWEST_ROWS), MOST_ROWS)


def list_odd_cell_rows(
    verdict: Verdict, cells: Sequence[OddCell], id_column: str | None
) -> tuple[FlaggedRow, ...]:
    """List the rows that are not flagged, but have a cell that is odd by itself, by rank."""
    of_row: dict[int, list[OddCell]] = {}
    for cell in cells:
        for row in (cell.row, *cell.more_rows):
            if not verdict.flagged[row - 1]:
                of_row.setdefault(row, []).append(cell)
    ranked = sorted(of_row, key=lambda row: int(verdict.ranks[row - 1]))[: _most_listed(verdict)]
    if not ranked:
        return ()
    table = verdict.rows.take(np.array(ranked, dtype=np.int64) - 1)
    ids = None if id_column is None else table.column(id_column)
    return tuple(
        FlaggedRow(
            int(verdict.ranks[row - 1]),
            row,
            None if table.lines is None else int(table.lines[place]),
            None if ids is None else ids.text(place),
            tuple(cell.column for cell in of_row[row]),
            tuple(_cut(cell.seen) for cell in of_row[row]),
            tuple(_cut(cell.suggestion) for cell in of_row[row]),
            hint=" ".join(f"{quoted(cell.column)}: {cell.sentence}" for cell in of_row[row]),
            flagged=False,
        )
        for place, row in enumerate(ranked)
    )


def bound_note(verdict: Verdict, listed: Sequence[FlaggedRow]) -> str:
    """Say that not all flagged rows are listed, or nothing."""
    n_flagged = int(verdict.flagged.sum())
    if n_flagged == len(listed):
        return ""
    return (
        f"{n_flagged:,} rows are flagged: the {len(listed):,} oddest stand in the list of flagged "
        "rows, and no other has a reason; the scored table marks all."
    )


def _first_reasons(verdict: Verdict, table: Table, positions: IntArray) -> list[_FirstReason]:
    """Explain rows of a table, a block at a time, by whoever works on the table."""
    reasons: dict[int, _FirstReason] = {}
    for part in judged_by(verdict, table, positions):
        own, whole = part.own, np.arange(len(part.own))
        blocks = [
            _Block(rows_of(part.table, whole[cut]), part.matrix[cut], own[cut])
            for cut in (slice(at, at + ROWS_A_BLOCK) for at in range(0, len(own), ROWS_A_BLOCK))
        ]
        model = part.model
        found = verdict.rows.over(
            "Finding reasons", _explain_block, blocks, len(own), model.encoder, model.detector
        )
        of_part = (reason for of_block in found for reason in of_block)
        reasons |= zip(part.places.tolist(), of_part, strict=True)
    return [reasons[place] for place in range(len(positions))]


def _explain_block(block: _Block, encoder: TableEncoder, detector: Detector) -> list[_FirstReason]:
    explained = explain_rows(encoder, detector, block.table, block.matrix, block.own)
    return [_first_reason(reasons) for reasons in explained]


def _first_reason(reasons: Sequence[Reason]) -> _FirstReason:
    """Take the first of some reasons, of one column or of several that are odd together."""
    if not reasons:
        return _FirstReason((), (), (), None)
    first = [one for one in reasons if one is reasons[0] or one.column in reasons[0].together]
    return _FirstReason(
        tuple(reason.column for reason in first),
        tuple(_cut(reason.seen) for reason in first),
        tuple(_cut(reason.expected) for reason in first),
        round(sum(reason.share for reason in first), SHARE_DIGITS),
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


def reason_columns(listed: Sequence[FlaggedRow]) -> dict[str, pl.Series]:
    """Return the first reasons of rows as columns; those of several columns are joined."""
    texts = {"reason_column": "columns", "seen": "seen", "expected": "expected"}
    joined = {
        name: [", ".join(getattr(one, field)) if one.columns else None for one in listed]
        for name, field in texts.items()
    }
    shares = pl.Series("share", [one.share for one in listed], pl.Float64)
    return {name: pl.Series(name, cells, pl.String) for name, cells in joined.items()} | {
        "share": shares
    }


def reasons_between(result: ScreeningResult, start: int, stop: int) -> dict[str, pl.Series]:
    """Return the first reasons of the rows from `start` to `stop` - 1, null where there is none."""
    listed = result.flagged_by_row
    first, last = (bisect_right(listed, place, key=lambda one: one.row) for place in (start, stop))
    places = [one.row - 1 - start for one in listed[first:last]]
    empty = pl.select(pl.repeat(None, stop - start, dtype=pl.String)).to_series()
    return {
        name: empty.cast(cells.dtype).scatter(places, cells).alias(name)
        for name, cells in reason_columns(listed[first:last]).items()
    }


def write_flagged_rows(
    table: AnyTable,
    result: ScreeningResult,
    plan: ColumnPlan,
    path: Path,
    execution: Execution | None = None,
    style: CsvStyle = PLAIN,
) -> tuple[str, ...]:
    """Write the flagged rows and those with an odd cell, oddest first, to a file to send on.

    Rank, line (or row), id and whether it is flagged are followed by the first reason or the odd
    cells, the hint and the cells of the row, those of hidden columns left out. A workbook has the
    odd cells in a second sheet. Return sentences on what had to be changed.
    """
    listed = (*result.flagged_rows, *result.odd_cell_rows)
    positions = np.array([one.row - 1 for one in listed], dtype=np.int64)
    rows = take_rows(table, positions, execution or Execution())
    shown = [name for name in rows.frame.columns if name not in result.hidden_columns]
    # The id leads, beside the place of the row, and is not repeated among its cells.
    shown.sort(key=lambda name: name != result.id_column)
    n_leading = int(result.id_column in shown)
    of_row = "row" if rows.lines is None else "line"
    added = {
        "rank": pl.Series([one.rank for one in listed], dtype=pl.Int64),
        of_row: pl.Series([getattr(one, of_row) for one in listed], dtype=pl.Int64),
        "flagged": pl.Series([one.flagged for one in listed], dtype=pl.Boolean),
        **reason_columns(listed),
        "hint": pl.Series([one.hint or None for one in listed], dtype=pl.String),
    }
    names, notes = input_names(shown, added)
    found = [_Column(name, Column(cells)) for name, cells in added.items()]
    given = [
        _Column(new, _as_it_stands(rows.column(old)), old)
        for new, old in zip(names, shown, strict=True)
    ]
    columns = [*found[:2], *given[:n_leading], *found[2:], *given[n_leading:]]
    if path.suffix == ".csv":
        frame = pl.DataFrame([column.cells.cells.alias(column.name) for column in columns])
        written, n_cut = csv_bytes(frame, style=style), 0
    else:
        formats = {spec.name: spec.format for spec in plan.specs}
        sheet = [
            SheetColumn(
                column.name,
                cells_of(column.cells, formats.get(column.source or "")),
                column.source is None,
                ABOUT.get(column.name, "") if column.source is None else "",
            )
            for column in columns
        ]
        places = {column.source: place for place, column in enumerate(columns)}
        odd = [{places[name] for name in one.columns if name in places} for one in listed]
        odd_sheet = [
            SheetColumn(name, cells.to_list())
            for name, cells in odd_cell_columns(table, result, execution).items()
        ]
        sheets = [
            Sheet("flagged", sheet, odd, 2 + n_leading),
            Sheet("odd cells", odd_sheet, [()] * len(odd_sheet[0].cells), 0),
        ]
        written, n_cut = workbook_bytes(sheets)
    with atomic_write(path) as file:
        file.write(written)
    if n_cut:
        notes += (
            f"{path.name} holds the first {MAX_CELL:,} characters of {n_cut:,} longer texts: a "
            "cell of Excel holds no more.",
        )
    return notes


def _as_it_stands(column: Column) -> Column:
    """Keep a lone ``*`` from meaning any value where the list comes back as accepted rows."""
    return Column(literal(column.cells)) if column.cells.dtype == pl.String else column


def odd_cell_columns(
    table: AnyTable, result: ScreeningResult, execution: Execution | None = None
) -> dict[str, pl.Series]:
    """Return the cells of `result.odd_cells`, one each, as the columns of a list of them.

    File, line, row, id, column, what it reads, what was probably meant and why it is odd: the
    clearest cells first, equal ones in the order of the table.
    """
    of_cell = [
        (cell, row, line)
        for cell in result.odd_cells
        for row, line in zip(
            (cell.row, *cell.more_rows), (cell.line, *_lines_of_more(cell)), strict=True
        )
    ]
    source, hidden = result.source, result.hidden_columns
    files: list[str | None] = [source.name] * len(of_cell)
    ids: list[str | None] = [None] * len(of_cell)
    if of_cell and (source.file_column is not None or result.id_column is not None):
        positions, back = np.unique([row - 1 for _, row, _ in of_cell], return_inverse=True)
        rows = take_rows(table, positions, execution or Execution())

        def texts(name: str) -> list[str | None]:
            if name in hidden:
                return [None] * len(of_cell)
            column = rows.column(name)
            return [column.text(place) for place in back.tolist()]

        if source.file_column is not None:
            files = texts(source.file_column)
        if result.id_column is not None:
            ids = texts(result.id_column)
    cells = [cell for cell, _, _ in of_cell]
    return {
        "file": pl.Series(files, dtype=pl.String),
        "line": pl.Series([line for *_, line in of_cell], dtype=pl.Int64),
        "row": pl.Series([row for _, row, _ in of_cell], dtype=pl.Int64),
        "id": pl.Series(ids, dtype=pl.String),
        "column": pl.Series([cell.column for cell in cells], dtype=pl.String),
        "reads": pl.Series([cell.seen for cell in cells], dtype=pl.String),
        "suggestion": pl.Series([cell.suggestion or None for cell in cells], dtype=pl.String),
        "why": pl.Series([cell.sentence for cell in cells], dtype=pl.String),
    }


def _lines_of_more(cell: OddCell) -> tuple[int | None, ...]:
    return (None,) * len(cell.more_rows) if cell.more_lines is None else cell.more_lines


def write_odd_cells(
    table: AnyTable,
    result: ScreeningResult,
    path: Path,
    execution: Execution | None = None,
    style: CsvStyle = PLAIN,
) -> None:
    """Write the cells that are odd by themselves to a CSV file, a line each."""
    columns = odd_cell_columns(table, result, execution)
    with atomic_write(path) as file:
        file.write(csv_bytes(pl.DataFrame(columns), style=style))


def odd_cells_note(cells: Sequence[OddCell], n_cells: int) -> str:
    """Say that not all of so many odd cells are listed, or nothing."""
    n_listed = sum(1 + len(cell.more_rows) for cell in cells)
    if n_listed == n_cells:
        return ""
    return f"{n_cells:,} cells are odd by themselves: the {n_listed:,} clearest are listed."
