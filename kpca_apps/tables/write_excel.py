"""Write rows as sheets of an Excel workbook, with coloured cells."""

from __future__ import annotations

import importlib.util
import io
import math
import re
from collections.abc import Collection, Iterable, Sequence
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

MAX_COLUMNS = 16_384  # maximum number of columns of a sheet
_MAX_DIGITS = 15  # maximum number of digits of a number; Excel replaces all further digits by zeros
# Numbers that a cell can represent as they are: no unit, leading zero or plus sign.
_PLAIN = re.compile(r"\s*-?(?!0[0-9])[0-9.,'\u2019\s]*[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?\s*")
_ZONED = re.compile(r":[0-9.,]+\s*(?:[AaPp]\.?[Mm]\.?)?\s*(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{0,2})$")
# Excel has a day 1900-02-29, so days before March 1900 would be off by one.
_FIRST_SECOND = datetime(1900, 3, 1, tzinfo=UTC).timestamp()
_LEAST, _LARGEST = 2.2251e-308, 9.99999999999999e307  # positive range of Excel, as specified
# Fixed time of creation, so that workbooks with equal cells have equal bytes.
_CREATED = datetime(2000, 1, 1)
_NARROWEST, _WIDEST, _MEASURED_ROWS = 6, 40, 1_000
_GENERAL, _DAY, _TIME = "General", "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"
# Colours with a contrast above 10:1 to dark text.
_ODD, _ADDED_HEAD, _HEAD = "#FFD08A", "#D9E2EC", "#EDEDED"
# Characters that XML forbids and that xlsxwriter does not escape.
_NO_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True)
class SheetColumn:
    """A column of a sheet."""

    name: str
    cells: Sequence[Cell]
    is_added: bool = False  # whether the column was added to those of the input
    note: str = ""  # comment on the header cell


@dataclass(frozen=True)
class Sheet:
    """A sheet of a workbook."""

    name: str
    columns: Sequence[SheetColumn]
    odd: Sequence[Collection[int]]  # positions of coloured columns, by row
    n_frozen: int  # number of columns at the left that do not scroll


def require_workbooks() -> None:
    """Raise ConfigError if the library that writes workbooks is not installed."""
    if importlib.util.find_spec("xlsxwriter") is None:
        raise ConfigError(
            "writing Excel needs an extra; install it with: "
            f"{install_extra('excel')}; or leave out --flagged xlsx"
        )


def require_columns(n_columns: int, label: str) -> None:
    """Raise ConfigError if there are more columns than a sheet can have."""
    if n_columns > MAX_COLUMNS:
        raise ConfigError(
            f"{one_line(label)}: its flagged rows have {n_columns:,} columns, and a sheet of Excel "
            f"has {MAX_COLUMNS:,}: leave out --flagged xlsx"
        )


def cells_of(column: Column, format: ValueFormat | None) -> list[Cell]:
    """Convert the cells of a column to numbers, dates or texts of a sheet.

    A text becomes a number or a date if `format` can read it without loss. Cells with units,
    leading zeros, offsets from UTC, or more than Excel's 15 digits stay texts.
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
    if value is None or math.isnan(value):
        return None
    least, largest = (0, 10**_MAX_DIGITS) if isinstance(value, int) else (_LEAST, _LARGEST)
    return value if value == 0 or least <= abs(value) <= largest else str(value)


def _moment(seconds: float) -> datetime | None:
    if not _FIRST_SECOND <= seconds <= LAST_SECOND:
        return None
    return datetime(1970, 1, 1) + timedelta(seconds=seconds)


def workbook_bytes(sheets: Sequence[Sheet]) -> tuple[bytes, int]:
    """Return the bytes of a workbook, and the number of cells whose text was shortened."""
    import xlsxwriter

    file, n_cut = io.BytesIO(), 0
    # The library's temporary files are in this folder, which the next run removes after a crash.
    folder = spool_folder()
    options = {"constant_memory": True, "tmpdir": str(folder.path)}
    with closing(folder), xlsxwriter.Workbook(file, options) as book:
        book.set_properties({"created": _CREATED})
        odd = {"bg_color": _ODD, "border": 1, "border_color": "#B26A00"}
        styles = {
            (pattern, is_odd): book.add_format({"num_format": pattern} | (odd if is_odd else {}))
            for pattern in (_GENERAL, _DAY, _TIME)
            for is_odd in (False, True)
            if is_odd or pattern != _GENERAL  # plain cells have none: empty styles take space
        }
        heads = {
            added: book.add_format(
                {"bold": True, "bg_color": _ADDED_HEAD if added else _HEAD, "bottom": 1}
            )
            for added in (True, False)
        }
        for one in sheets:
            n_cut += _write_sheet(book.add_worksheet(one.name), one, heads, styles)
    return file.getvalue(), n_cut


def _write_sheet(
    sheet: Any, content: Sheet, heads: dict[bool, Any], styles: dict[tuple[str, bool], Any]
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
            cell = column.cells[number - 1]
            pattern = patterns[place] if isinstance(cell, datetime) else _GENERAL
            style = styles.get((pattern, place in coloured))
            if isinstance(cell, str):
                text = _text(cell)
                n_cut += len(text) > MAX_CELL
                sheet.write_string(number, place, text[:MAX_CELL], style)
            else:
                sheet.write(number, place, cell, style)
    sheet.freeze_panes(1, content.n_frozen)
    sheet.autofilter(0, 0, len(content.odd), len(columns) - 1)
    sheet.ignore_errors({"number_stored_as_text": "A1:XFD1048576"})
    return n_cut


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)


def _date_pattern(cells: Iterable[Cell]) -> str:
    moments = (cell for cell in cells if isinstance(cell, datetime))
    timed = any((one.hour, one.minute, one.second) != (0, 0, 0) for one in moments)
    return _TIME if timed else _DAY


def _width(column: SheetColumn) -> int:
    of_date = len(_date_pattern(column.cells))
    longest = [len(column.name) + 3]  # 3 more characters for the filter's button
    for cell in column.cells[:_MEASURED_ROWS]:
        text = "" if cell is None else str(cell)
        longest.append(of_date if isinstance(cell, datetime) else len(text))
    return min(max(*longest, _NARROWEST) + 1, _WIDEST)
