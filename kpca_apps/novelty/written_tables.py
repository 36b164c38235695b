"""Write the scored table, the flagged rows and the odd cells.

The file of flagged rows includes rows with an odd cell. Odd cells have their own file or sheet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.novelty.columns.parts import AnyTable, Execution, in_parts, joined_rows, take_rows
from kpca_apps.novelty.columns.plan import ColumnPlan
from kpca_apps.novelty.result import FlaggedRow, RarityOf, ScreeningResult
from kpca_apps.system.files.output import atomic_write
from kpca_apps.tables.frames import frame_without
from kpca_apps.tables.read.excel import MAX_CELL
from kpca_apps.tables.read.layout.lines import ONE_COLUMN
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import PartedTable, Table, TablePart
from kpca_apps.tables.values import Column, NumberFormat
from kpca_apps.tables.write import (
    PLAIN,
    Added,
    CsvStyle,
    Written,
    csv_bytes,
    folder_of_parts,
    input_names,
    scored_kind,
    scored_part,
    write_part,
    write_scored,
)
from kpca_apps.tables.write_excel import Sheet, SheetColumn, cells_of, workbook_bytes

N_ADDED = 8  # number of columns added to the list of flagged rows
# Comments on the header cells of a workbook.
ABOUT = {
    "flagged": "FALSE where the row as a whole is usual and only the coloured cells are odd by "
    "themselves.",
    "reason_column": "The column that made the row odd, or several that are odd together: their "
    "cells are coloured.",
    "expected": "What the rows that are otherwise most like this one read there.",
    "share": "Of all that the score of the row drops when the values of its reasons are replaced "
    "by those expected: the part of this reason, 0 to 1.",
}


def write_tables(
    folder: Path,
    table: AnyTable,
    result: ScreeningResult,
    plan: ColumnPlan,
    *,
    format: str = "csv",
    keep_hidden: bool = False,
    execution: Execution | None = None,
) -> tuple[str, ...]:
    """Write the scored table, the flagged rows and the odd cells into a folder; return notes.

    `format` is the format of the scored table; ``"same"`` keeps Parquet, and the delimiter and
    decimal mark of text for all three files.
    """
    source, style, kind = result.source, PLAIN, format
    if format == "same":
        kind = "parquet" if source.format == "parquet" else "csv"
        style = _style_of(source, plan)
    scored, flagged = folder / f"scored.{kind}", folder / result.run.flagged_file
    rows = _write_scored(table, result, scored, execution, keep_hidden, style)
    _, notes = input_names(table.columns, found_columns(result, slice(0)))
    notes += _write_listed(rows, table, result, plan, flagged, execution, style)
    if result.run.odd_cells_file != result.run.flagged_file:
        columns = odd_cell_columns(table, result, execution)
        with atomic_write(folder / result.run.odd_cells_file) as file:
            file.write(csv_bytes(pl.DataFrame(columns), style=style))
    # Drop repeated notes: both files may rename a column for the same reason.
    return tuple(dict.fromkeys(notes))


def _style_of(source: SourceInfo, plan: ColumnPlan) -> CsvStyle:
    """Return the style of the input if it is text with a common delimiter, else the default."""
    cut = source.delimiter
    if cut is None or not cut.isascii() or cut == ONE_COLUMN:
        return PLAIN
    formats = [spec.format for spec in plan.specs]
    comma = any(isinstance(own, NumberFormat) and own.decimal == "," for own in formats)
    return CsvStyle(cut, "," if comma else ".")


@dataclass(frozen=True)
class _ScoredPart:
    part: TablePart
    n_rows: int
    numbers: dict[str, NDArray[Any] | None]  # numeric columns of `found_columns`, without rarity
    listed: tuple[FlaggedRow, ...]  # the part's flagged rows, by row number; the task returns them
    hidden: frozenset[str]  # columns whose cells are left empty

    def __str__(self) -> str:
        return str(self.part)


def _write_scored(
    table: AnyTable,
    result: ScreeningResult,
    path: Path,
    execution: Execution | None,
    keep_hidden: bool,
    style: CsvStyle,
) -> Table:
    """Write the scored table; return the listed rows in order."""
    table, kind = in_parts(table), scored_kind(path)
    hidden = frozenset() if keep_hidden else result.hidden_columns
    listed = np.array([row.row - 1 for row in result.lists.flagged], dtype=np.int64)
    if not isinstance(table, PartedTable):
        rows = _without(table, hidden)
        write_scored(path, [scored_part(rows, found_columns(result), kind, style=style)])
        return table.take(listed)
    tasks, work = _scored_parts(table, result, hidden), execution or Execution()
    pieces: list[Table] = []

    def parts(folder: Path | None) -> Iterator[Written]:
        shared = kind, style, folder, result.rows.rarity_of
        done = work.over("Writing rows", _written, tasks, table.n_rows, *shared)
        for number, (data, rows) in enumerate(done):
            pieces.append(rows)
            if folder is not None and kind == "parquet" and not isinstance(data, Path):
                data = write_part(data, folder, number)
            yield data

    is_on_dask = work.workers.executor == "dask"
    with folder_of_parts(path.absolute()) if is_on_dask else nullcontext() as folder:
        if folder is not None and kind == "parquet":
            deque(parts(folder), maxlen=0)
        else:
            write_scored(path, parts(folder))
    return joined_rows(pieces, np.argsort(np.argsort(listed)), table.source)


def _scored_parts(
    table: PartedTable, result: ScreeningResult, hidden: frozenset[str]
) -> Iterator[_ScoredPart]:
    listed = sorted(result.lists.flagged, key=lambda row: row.row)
    ends = np.searchsorted(
        [row.row for row in listed], [part.stop for part in table.parts], "right"
    )
    for part, first, last in zip(table.parts, [0, *ends], ends, strict=False):
        numbers = _score_columns(result, slice(part.start, part.stop))
        yield _ScoredPart(part, part.stop - part.start, numbers, tuple(listed[first:last]), hidden)


def _written(
    task: _ScoredPart, kind: str, style: CsvStyle, folder: Path | None, rarity_of: RarityOf | None
) -> tuple[Written, Table]:
    table = task.part.read()
    rows, header = _without(table, task.hidden), task.part.number == 0
    found = _added_columns(task.numbers, task.listed, task.part.start, rarity_of)
    written = scored_part(rows, found, kind, header=header, style=style)
    # A worker that does not see the folder, or may not write there, sends the rows.
    with suppress(OSError):
        if folder is not None:
            written = write_part(written, folder, task.part.number)
    places = np.array([row.row - 1 - task.part.start for row in task.listed], dtype=np.int64)
    return written, table.take(places)


def _without(rows: Table, hidden: frozenset[str]) -> Table:
    return replace(rows, frame=frame_without(rows.frame, rows.frame.columns, hidden))


def scores_of_rows(table: AnyTable, result: ScreeningResult) -> Iterator[pl.DataFrame]:
    """Yield row number, names, scores and reasons of all rows, in parts.

    A row's names are its cells in a database's primary key and in the column that identifies rows.
    """
    named = [*table.source.key_columns, *filter(None, [result.lists.id_column])]
    shown = [name for name in dict.fromkeys(named) if name not in result.hidden_columns]
    start = 0
    for part in in_parts(table).tables():
        stop = start + part.n_rows
        found = found_columns(result, slice(start, stop))
        added: dict[str, Any] = {"row": np.arange(start + 1, stop + 1)}
        added |= {name: values for name, values in found.items() if values is not None}
        own = part.frame.select(shown).rename(_names_beside(shown, added))
        others = pl.DataFrame(added)
        frames = (others.select("row"), own, others.drop("row"))
        # A frame without columns also has no rows.
        yield pl.concat([frame for frame in frames if frame.width], how="horizontal")
        start = stop


def _names_beside(shown: Sequence[str], added: Iterable[str]) -> dict[str, str]:
    """Map each input column to a name that no added column has, ignoring case.

    >>> _names_beside(["Rank", "bird"], ["row", "rank"])
    {'Rank': 'Rank_input', 'bird': 'bird'}
    """
    taken, names = {name.casefold() for name in added}, dict[str, str]()
    for name in shown:
        final = name
        while final.casefold() in taken:
            final += "_input"
        taken.add(final.casefold())
        names[name] = final
    return names


def found_columns(result: ScreeningResult, rows: slice = slice(None)) -> Added:
    """Return the columns that a scored table adds, for all rows or a slice.

    Numbers are arrays (n,). Series of polars (n,) hold the first reason of each flagged row, null
    elsewhere: texts ``reason_column``, ``seen`` and ``expected``, in which ", " joins columns that
    are odd together, and the number ``share`` (`FlaggedRow.share`).
    """
    start, stop, _ = rows.indices(result.n_rows)
    listed = [one for one in result.lists.flagged if start < one.row <= stop]
    return _added_columns(_score_columns(result, rows), listed, start, result.rows.rarity_of)


def _score_columns(result: ScreeningResult, rows: slice) -> dict[str, NDArray[Any] | None]:
    numbers = {
        "p_value": result.rows.p_values,
        "novelty_score": result.rows.scores,
        "flagged": result.rows.is_flagged,
        "rank": result.rows.ranks,
        **({} if result.rows.is_accepted is None else {"accepted": result.rows.is_accepted}),
    }
    return {name: None if x is None else np.asarray(x[rows]) for name, x in numbers.items()}


def _added_columns(
    numbers: dict[str, NDArray[Any] | None],
    listed: Sequence[FlaggedRow],
    start: int,
    rarity_of: RarityOf | None,
) -> Added:
    """Return the columns added to the rows from `start` on; `listed` are some of these rows."""
    scores, places = numbers["novelty_score"], [one.row - 1 - start for one in listed]
    assert scores is not None
    empty = pl.select(pl.repeat(None, len(scores), dtype=pl.String)).to_series()
    reasons = {
        name: empty.cast(cells.dtype).scatter(places, cells).alias(name)
        for name, cells in _reason_columns(listed).items()
    }
    return {"rarity": rarity_of and rarity_of(scores), **numbers, **reasons}


def _reason_columns(listed: Sequence[FlaggedRow]) -> dict[str, pl.Series]:
    texts = {"reason_column": "columns", "seen": "seen", "expected": "expected"}
    joined = {
        name: pl.Series(
            name,
            [", ".join(getattr(row, field)) if row.columns else None for row in listed],
            pl.String,
        )
        for name, field in texts.items()
    }
    return joined | {"share": pl.Series("share", [row.share for row in listed], pl.Float64)}


def _write_listed(
    rows: Table,
    table: AnyTable,
    result: ScreeningResult,
    plan: ColumnPlan,
    path: Path,
    execution: Execution | None,
    style: CsvStyle,
) -> tuple[str, ...]:
    """Write the listed rows of a table (`rows`): flagged rows, and rows with an odd cell."""
    listed = result.lists.flagged
    shown = [name for name in rows.frame.columns if name not in result.hidden_columns]
    # The id column comes first among the table's own columns; rank and row are put before it.
    shown.sort(key=lambda name: name != result.lists.id_column)
    n_leading = 2 + (result.lists.id_column in shown)
    of_row = "row" if rows.lines is None else "line"
    added = {
        "rank": pl.Series([row.rank for row in listed], dtype=pl.Int64),
        of_row: pl.Series([getattr(row, of_row) for row in listed], dtype=pl.Int64),
        "flagged": pl.Series([row.flagged for row in listed], dtype=pl.Boolean),
        **_reason_columns(listed),
        "hint": pl.Series([row.hint or None for row in listed], dtype=pl.String),
    }
    names, notes = input_names(shown, added)
    # Pairs of a column and its name in the input, which is empty for added columns.
    found = [(Column(cells.alias(name)), "") for name, cells in added.items()]
    own = [(Column(rows.frame[old].alias(new)), old) for new, old in zip(names, shown, strict=True)]
    columns = [*found[:2], *own[: n_leading - 2], *found[2:], *own[n_leading - 2 :]]
    if path.suffix == ".csv":
        frame = pl.DataFrame([column.cells for column, _ in columns])
        written, n_cut = csv_bytes(frame, style=style), 0
    else:
        odd_cells = odd_cell_columns(table, result, execution)
        written, n_cut = _workbook(columns, listed, plan, odd_cells, n_leading)
    with atomic_write(path) as file:
        file.write(written)
    if n_cut:
        notes += (
            f"{path.name} holds the first {MAX_CELL:,} characters of {n_cut:,} longer texts: a "
            "cell of Excel holds no more.",
        )
    return notes


def _workbook(
    columns: Sequence[tuple[Column, str]],
    listed: Sequence[FlaggedRow],
    plan: ColumnPlan,
    odd_cells: Mapping[str, pl.Series],
    n_frozen: int,
) -> tuple[bytes, int]:
    """Write flagged rows and odd cells as two sheets; also return the number of shortened texts.

    `columns` pairs the columns of the first sheet with their names in the input, if any.
    """
    formats = plan.formats
    sheet = [
        SheetColumn(
            column.name,
            cells_of(column, formats.get(source)),
            is_added=not source,
            note="" if source else ABOUT.get(column.name, ""),
        )
        for column, source in columns
    ]
    places = {source: place for place, (_, source) in enumerate(columns)}
    odd = [{places[name] for name in row.columns if name in places} for row in listed]
    second = [SheetColumn(name, cells.to_list()) for name, cells in odd_cells.items()]
    return workbook_bytes(
        [
            Sheet("flagged", sheet, odd, n_frozen),
            Sheet("odd cells", second, [()] * len(second[0].cells), 0),
        ]
    )


def odd_cell_columns(
    table: AnyTable, result: ScreeningResult, execution: Execution | None = None
) -> dict[str, pl.Series]:
    """Return the columns of the list of odd cells, one cell per row, clearest first.

    The columns are file, line, row, id, column, reads (the text of the cell), suggestion and why.
    """
    cells = [cell for cell in result.findings.odd_cells for _ in cell.rows]
    rows = [row for cell in result.findings.odd_cells for row in cell.rows]
    lines: list[int | None] = []
    for cell in result.findings.odd_cells:
        lines += (cell.line, *(cell.more_lines or (None,) * len(cell.more_rows)))
    source, hidden = result.source, result.hidden_columns
    texts: dict[str | None, list[str | None]] = {}
    named = [name for name in (source.file_column, result.lists.id_column) if name is not None]
    if cells and named:
        positions, back = np.unique(np.array(rows) - 1, return_inverse=True)
        taken = take_rows(table, positions, execution or Execution())
        for name in set(named) - hidden:
            column = taken.column[name]
            texts[name] = [column.text(place) for place in back.tolist()]
    none: list[str | None] = [None] * len(cells)
    files = none if source.file_column else [source.name] * len(cells)
    return {
        "file": pl.Series(texts.get(source.file_column, files), dtype=pl.String),
        "line": pl.Series(lines, dtype=pl.Int64),
        "row": pl.Series(rows, dtype=pl.Int64),
        "id": pl.Series(texts.get(result.lists.id_column, none), dtype=pl.String),
        "column": pl.Series([cell.column for cell in cells], dtype=pl.String),
        "reads": pl.Series([cell.seen for cell in cells], dtype=pl.String),
        "suggestion": pl.Series([cell.suggestion or None for cell in cells], dtype=pl.String),
        "why": pl.Series([cell.sentence for cell in cells], dtype=pl.String),
    }
