"""The flagged rows to take away: each with its first reason, and in a file of their own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.files.output import atomic_write
from kpca_apps.files.tables.scored import csv_bytes, input_names
from kpca_apps.files.tables.table import Table
from kpca_apps.files.tables.values import Column
from kpca_apps.files.tables.workbook import MAX_CELL, SheetColumn, cells_of, workbook_bytes
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.detector.state import DetectorState
from kpca_apps.novelty.result import FlaggedRow, RankedRow, Reason, ScreeningResult
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.novelty.screening.ranked_list import explain_rows, judged_by
from kpca_apps.novelty.screening.verdict import Verdict, top_rows
from kpca_apps.novelty.table.columns import ColumnPlan
from kpca_apps.novelty.table.encoding import TableEncoder
from kpca_apps.novelty.table.parted_rows import Execution, take_rows
from kpca_apps.novelty.table.rows import AnyTable, rows_of

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
# Spreadsheets take a file for UTF-8 only if it begins with this mark; libraries skip it.
MARK = b"\xef\xbb\xbf"
# Columns of that list beside those of the input.
N_ADDED = 7
# What the columns of a workbook mean, shown where the pointer rests on their names.
ABOUT = {
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
    n_cells = max(len(rows.sample_table.frame.columns), 1)
    most = min(max(MOST_CELLS // n_cells, FEWEST_ROWS), MOST_ROWS)
    # A flagged row scores higher than any other: they are the first of the list.
    flagged = top_rows(verdict.ranks, min(int(verdict.flagged.sum()), most))
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
    reasons = _first_reasons(model, verdict, table, others) if explain else []
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


def bound_note(verdict: Verdict, listed: Sequence[FlaggedRow]) -> str:
    """Say that not all flagged rows are listed, or nothing."""
    n_flagged = int(verdict.flagged.sum())
    if n_flagged == len(listed):
        return ""
    return (
        f"{n_flagged:,} rows are flagged: the {len(listed):,} oddest stand in the list of flagged "
        "rows, and no other has a reason; the scored table marks all."
    )


def _first_reasons(
    model: NoveltyModel, verdict: Verdict, table: Table, positions: IntArray
) -> list[_FirstReason]:
    """Explain rows of a table, a block at a time, by whoever works on the table."""
    reasons: dict[int, _FirstReason] = {}
    for part in judged_by(model, verdict, table, positions):
        own, whole = part.own, np.arange(len(part.own))
        blocks = [
            _Block(rows_of(part.table, whole[cut]), part.matrix[cut], own[cut])
            for cut in (slice(at, at + ROWS_A_BLOCK) for at in range(0, len(own), ROWS_A_BLOCK))
        ]
        # Without the scores of all its training rows, which may be sent far.
        detector = DetectorState.of(part.model.detector).restored()
        found = verdict.rows.over(
            "Finding reasons", _explain_block, blocks, len(own), part.model.encoder, detector
        )
        of_part = (reason for of_block in found for reason in of_block)
        reasons |= zip(part.places.tolist(), of_part, strict=True)
    return [reasons[place] for place in range(len(positions))]


def _explain_block(
    block: _Block, encoder: TableEncoder, detector: KernelPCANovelty
) -> list[_FirstReason]:
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
) -> tuple[str, ...]:
    """Write the rows of `result.flagged_rows`, oddest first, to a CSV or Excel file to send on.

    Rank, line (or row) and id are followed by the first reason, the hint and the cells of the row,
    those of hidden columns left out. Return sentences on what had to be changed.
    """
    listed = result.flagged_rows
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
        **reason_columns(listed),
        "hint": pl.Series([one.hint or None for one in listed], dtype=pl.String),
    }
    names, notes = input_names(shown, added)
    found = [_Column(name, Column(cells)) for name, cells in added.items()]
    given = [_Column(new, rows.column(old), old) for new, old in zip(names, shown, strict=True)]
    columns = [*found[:2], *given[:n_leading], *found[2:], *given[n_leading:]]
    if path.suffix == ".csv":
        frame = pl.DataFrame([column.cells.cells.alias(column.name) for column in columns])
        written, n_cut = MARK + csv_bytes(frame), 0
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
        written, n_cut = workbook_bytes(sheet, odd, 2 + n_leading)
    with atomic_write(path) as file:
        file.write(written)
    if n_cut:
        notes += (
            f"{path.name} holds the first {MAX_CELL:,} characters of {n_cut:,} longer texts: a "
            "cell of Excel holds no more.",
        )
    return notes
