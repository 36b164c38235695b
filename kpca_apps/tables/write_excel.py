"""Rows as the sheets of an Excel workbook, in which some cells are coloured."""

from __future__ import annotations

import importlib.util
import io
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from kpca_apps.errors import ConfigError, install_extra
from kpca_apps.names import one_line
from kpca_apps.system.files.spools import spool_folder
from kpca_apps.tables.read.excel import MAX_CELL
from kpca_apps.tables.values import LAST_SECOND, Column, DateFormat, ValueFormat

Cell = str | int | float | bool | datetime | None

# What a sheet of Excel holds; rows are far fewer here.
MAX_COLUMNS = 16_384
# Excel counts with 15 digits: longer numbers, such as those of cards, would end in zeros.
_MAX_DIGITS = 15
# Numbers that read the same once they are numbers: no unit, no leading zero or plus sign.
_PLAIN = re.compile(r"\s*-?(?!0[0-9])[0-9.,'\u2019\s]*[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?\s*")
_ZONED = re.compile(r":[0-9.,]+\s*(?:[AaPp]\.?[Mm]\.?)?\s*(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{0,2})$")
# Excel takes 1900 for a leap year: days before this one would be off by one.
_FIRST_SECOND = datetime(1900, 3, 1, tzinfo=UTC).timestamp()
# Its numbers are none larger, nor nearer to zero ("Excel specifications and limits").
_LEAST, _LARGEST = 2.2251e-308, 9.99999999999999e307
# The same bytes for the same cells.
_CREATED = datetime(2000, 1, 1)
_NARROWEST, _WIDEST, _MEASURED_ROWS = 6, 40, 1_000
# Dark text on each of these has a contrast of more than 10 to 1.
_ODD, _ADDED_HEAD, _HEAD = "#FFD08A", "#D9E2EC", "#EDEDED"
# What XML has no way to write, and what would be taken for the way it is written in a workbook.
_NO_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True)
class SheetColumn:
    """A column of a sheet."""

    name: str
    cells: Sequence[Cell]
    is_added: bool = False  # no column of the input
    note: str = ""  # shown when the pointer rests on its name


@dataclass(frozen=True)
class Sheet:
    """A sheet of a workbook."""

    name: str
    columns: Sequence[SheetColumn]
    odd: Sequence[Collection[int]]  # positions of the columns coloured in each row
    n_frozen: int  # columns that stay in sight, as the header does


def require_workbooks() -> None:
    """Refuse to write a workbook without the library for it."""
    if importlib.util.find_spec("xlsxwriter") is None:
        raise ConfigError(
            "writing Excel needs an extra; install it with: "
            f"{install_extra('excel')}; or leave out --flagged xlsx"
        )


def require_columns(n_columns: int, label: str) -> None:
    """Refuse to write more columns than a sheet has."""
    if n_columns > MAX_COLUMNS:
        raise ConfigError(
            f"{one_line(label)}: its flagged rows have {n_columns:,} columns, and a sheet of Excel "
            f"has {MAX_COLUMNS:,}: leave out --flagged xlsx"
        )


def cells_of(column: Column, format: ValueFormat | None) -> list[Cell]:
    """Turn the cells of a column into what a sheet holds: numbers and dates, else text.

    Text becomes a number or a date where `format` reads it and nothing of it is lost: units,
    leading zeros, offsets from UTC, and digits beyond the 15 of Excel keep a cell text.
    """
    cells, stored = column.cells, column.cells.to_list()
    if cells.dtype == pl.Boolean:
        return list(stored)
    if cells.dtype in (pl.Date, pl.Datetime):
        seconds = column.read(DateFormat()).values.tolist()
        return [_moment(one) or column.text(row) or None for row, one in enumerate(seconds)]
    if cells.dtype.is_integer() or cells.dtype.is_float():
        return [_number(value) for value in stored]
    if cells.dtype != pl.String:
        return [column.text(row) or None for row in range(len(column))]
    if format is None:
        return [text or None for text in stored]
    values, read = column.read(format).values.tolist(), []
    for text, value in zip(stored, values, strict=True):
        cell: Cell = text or None
        if text and not math.isnan(value):
            if isinstance(format, DateFormat):
                cell = text if _ZONED.search(text) else _moment(value) or text
            elif _PLAIN.fullmatch(text) and sum(map(str.isdecimal, text)) <= _MAX_DIGITS:
                cell = value
        read.append(cell)
    return read


def _number(value: float | None) -> Cell:
    """Return a number as a cell: text where Excel has no such number."""
    if value is None or math.isnan(value):
        return None
    least, largest = (0, 10**_MAX_DIGITS) if isinstance(value, int) else (_LEAST, _LARGEST)
    return value if value == 0 or least <= abs(value) <= largest else str(value)


def _moment(seconds: float) -> datetime | None:
    """Return the date of seconds since 1970-01-01 UTC; ``None`` outside the calendar of Excel."""
    if not _FIRST_SECOND <= seconds <= LAST_SECOND:
        return None
    return datetime(1970, 1, 1) + timedelta(seconds=seconds)


def workbook_bytes(sheets: Sequence[Sheet]) -> tuple[bytes, int]:
    """Write a workbook, and count the cells whose text had to be cut to what one may hold."""
    import xlsxwriter

    file, n_cut = io.BytesIO(), 0
    # It writes cells into files, and one killed leaves them: in a folder that the next run removes.
    folder = spool_folder()
    options = {"constant_memory": True, "tmpdir": str(folder.path)}
    with closing(folder), xlsxwriter.Workbook(file, options) as book:
        book.set_properties({"created": _CREATED})
        looks: dict[tuple[str, bool], xlsxwriter.format.Format] = {}

        def look(pattern: str, coloured: bool) -> xlsxwriter.format.Format:
            if (pattern, coloured) not in looks:
                colour = {"bg_color": _ODD, "border": 1, "border_color": "#B26A00"}
                of_number = {"num_format": pattern} if pattern else {}
                looks[pattern, coloured] = book.add_format(of_number | (colour if coloured else {}))
            return looks[pattern, coloured]

        heads = {
            added: book.add_format(
                {"bold": True, "bg_color": _ADDED_HEAD if added else _HEAD, "bottom": 1}
            )
            for added in (True, False)
        }
        for one in sheets:
            n_cut += _write_sheet(book.add_worksheet(one.name), one, heads, look)
    return file.getvalue(), n_cut


def _write_sheet(
    sheet: Any, content: Sheet, heads: dict[bool, Any], look: Callable[[str, bool], Any]
) -> int:
    columns, n_cut = content.columns, 0
    for place, column in enumerate(columns):
        sheet.set_column(place, place, _width(column))
    for place, column in enumerate(columns):
        sheet.write_string(0, place, _text(column.name)[:MAX_CELL], heads[column.is_added])
        if column.note:
            sheet.write_comment(0, place, column.note, {"x_scale": 2})
    patterns = [_date_pattern(column.cells) for column in columns]
    for number, coloured in enumerate(content.odd, 1):
        for place, column in enumerate(columns):
            cell, is_odd = column.cells[number - 1], place in coloured
            pattern = patterns[place] if isinstance(cell, datetime) else ""
            style = look(pattern, is_odd) if pattern or is_odd else None
            if cell is None:
                sheet.write_blank(number, place, None, style)
            elif isinstance(cell, bool):
                sheet.write_boolean(number, place, cell, style)
            elif isinstance(cell, datetime):
                sheet.write_datetime(number, place, cell, style)
            elif isinstance(cell, str):
                text = _text(cell)
                n_cut += len(text) > MAX_CELL
                sheet.write_string(number, place, text[:MAX_CELL], style)
            else:
                sheet.write_number(number, place, cell, style)
    sheet.freeze_panes(1, content.n_frozen)
    sheet.autofilter(0, 0, len(content.odd), len(columns) - 1)
    # Identifiers are meant to be text.
    sheet.ignore_errors({"number_stored_as_text": "A1:XFD1048576"})
    return n_cut


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)


def _date_pattern(cells: Iterable[Cell]) -> str:
    """Return how Excel is to show the dates of a column: with the time where one has any."""
    moments = (cell for cell in cells if isinstance(cell, datetime))
    timed = any((one.hour, one.minute, one.second) != (0, 0, 0) for one in moments)
    return "yyyy-mm-dd hh:mm:ss" if timed else "yyyy-mm-dd"


def _width(column: SheetColumn) -> int:
    """Return a width in characters that shows most cells in full."""
    of_date = len(_date_pattern(column.cells))
    longest = [len(column.name) + 3]  # and the button of the filter
    for cell in column.cells[:_MEASURED_ROWS]:
        text = "" if cell is None else str(cell)
        longest.append(of_date if isinstance(cell, datetime) else len(text))
    return min(max(*longest, _NARROWEST) + 1, _WIDEST)
