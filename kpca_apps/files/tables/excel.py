"""Excel and its kin -> a frame of one sheet."""

from __future__ import annotations

import functools
import importlib.util
import io
import logging
import re
import zipfile
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError, MemoryLimitError
from kpca_apps.files.limits import require_memory, require_table
from kpca_apps.files.names import one_line, unique_names
from kpca_apps.files.tables.header import HEADER_SAMPLE, find_header, header_is_missing
from kpca_apps.files.tables.parquet import damage_refused, plain_types

if TYPE_CHECKING:
    import fastexcel

__all__ = ["read_excel"]

IntArray = NDArray[np.int64]
MOST_LISTED = 20  # sheets named in a message
LARGEST_WHOLE = 2.0**53  # beyond, floats are whole whatever was meant

# A row or cell of a sheet, most often with its place beside it, or a place that stands elsewhere:
# <c r="XFD1048576"> and <c s="1" r="XFD1048576">.
_AT = rb"""r\s*=\s*["']([A-Za-z]*)([0-9]*)["']"""
_CELL = re.compile(rb"<(?:[^\s<>/:]+:)?(row|c)(?=[\s/>])(?:\s+%b)?|\b%b" % (_AT, _AT))
_SHEET, _CHUNK = b"sheetData", 1 << 20
# Far more than any sheet has, and than the reader counts to.
_MOST_LETTERS, _MOST_DIGITS = 8, 18


def read_excel(
    data: bytes, label: str, sheet: str | int | None = None, skip_rows: int = 0
) -> tuple[pl.DataFrame, IntArray, list[str]]:
    """Read one sheet of a workbook; return its rows, their numbers in the sheet, and notes.

    That is the sheet of a name, or of a number from 1; or the first, if it is a table.
    """
    if importlib.util.find_spec("fastexcel") is None:
        raise ConfigError(
            f"{label}: reading Excel needs an extra; install it with: "
            'pip install "kpca-apps[excel]"'
        )
    import fastexcel

    _bound_workbook(data, label)
    # Its remarks are kept off standard error, unless the caller has set up logging.
    if not (logger := logging.getLogger("fastexcel")).handlers:
        logger.addHandler(logging.NullHandler())
    with damage_refused(label, "Excel"):
        workbook = fastexcel.read_excel(data)
        names = workbook.sheet_names
        place = _sheet_place(names, sheet, label)
        # From the first row on, empty or not, so that rows are counted as the program shows them.
        top = workbook.load_sheet(
            place, header_row=None, skip_rows=0, n_rows=HEADER_SAMPLE + skip_rows, dtypes="string"
        )
        rows = top.to_polars().fill_null("").rows()[skip_rows:] if top.width else []
        filled = [number for number, row in enumerate(rows) if any(cell.strip() for cell in row)]
        if len(filled) < 2 and sheet is None and len(names) > 1:
            raise InputError(
                f'{label}: its first sheet, "{one_line(names[0])}", is no table; name another with '
                f"--sheet: {_listed(workbook)}."
            )
        found = None if skip_rows else find_header(rows)
        first = filled[0] if filled else 0
        above = skip_rows + (first if found is None else found)
        body = workbook.load_sheet(
            place, header_row=above, schema_sample_rows=None, skip_whitespace_tail_rows=True
        )
        frame = body.to_polars()
    header = [*rows[above - skip_rows]] if rows else []
    header += [""] * (frame.width - len(header))
    columns, notes = unique_names(header[: frame.width])
    frame.columns = columns
    if header_is_missing(header):
        notes.append(
            "The first row of the sheet holds numbers only and names the columns: if it is data, "
            "add a header row."
        )
    if found is not None:
        said = next(cell for cell in rows[first] if cell.strip())
        notes.append(
            f'Rows 1 to {above} of the sheet stand above the header and are left out ("'
            f'{one_line(said.strip(), 60)}"); --skip-rows sets how many.'
        )
    if len(names) > 1:
        others = ", ".join(f'"{one_line(name, 40)}"' for name in names if name != names[place])
        note = f'Read sheet "{one_line(names[place])}" of {len(names)}; --sheet reads another'
        notes.insert(0, f"{note}: {one_line(others, 200)}.")
    frame = plain_types(frame).with_columns(map(_whole, plain_types(frame).iter_columns()))
    return frame, np.arange(frame.height) + above + 2, notes


def _sheet_place(names: list[str], sheet: str | int | None, label: str) -> int:
    """Return the place of the sheet that is meant."""
    if sheet is None or sheet in names:
        return 0 if sheet is None else names.index(str(sheet))
    number = int(sheet) if str(sheet).isdecimal() and len(str(sheet)) < 6 else 0
    if 1 <= number <= len(names):
        return number - 1
    listed = ", ".join(f'"{one_line(name, 40)}"' for name in names)
    raise InputError(
        f'{label}: has no sheet "{one_line(str(sheet), 40)}"; it has {one_line(listed, 300)}.'
    )


def _listed(workbook: fastexcel.ExcelReader) -> str:
    """List the sheets of a workbook, each with its size."""
    listed = []
    for place, name in enumerate(workbook.sheet_names[:MOST_LISTED]):
        sheet = workbook.load_sheet(place, header_row=None, dtypes="string")
        size = f"{sheet.total_height:,} rows of {sheet.width:,}" if sheet.width else "empty"
        listed.append(f'"{one_line(name, 40)}" ({size})')
    more = len(workbook.sheet_names) - MOST_LISTED
    return ", ".join(listed) + (f" and {more:,} more" if more > 0 else "")


def _whole(column: pl.Series) -> pl.Series:
    """Make integers of numbers that are all whole: a workbook knows floats alone."""
    if not column.dtype.is_float():
        return column
    known = column.drop_nulls()
    is_whole = known.len() and ((known == known.round()) & (known.abs() < LARGEST_WHOLE)).all()
    return column.cast(pl.Int64) if is_whole else column


def _bound_workbook(data: bytes, label: str) -> None:
    """Refuse a workbook that unpacks to more than it declares, or spreads a few cells too far."""
    if not data.startswith(b"PK"):
        return
    with damage_refused(label, "Excel"), zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        require_memory(label, sum(entry.file_size for entry in entries))
        for entry in entries:
            _bound_entry(archive, entry, label)


def _bound_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, label: str) -> None:
    declared = entry.file_size
    # Otherwise it is read as far as it declares, and not found to go on.
    entry.file_size, entry.CRC = declared + 1, None  # type: ignore[assignment]  # unchecked

    def chunks() -> Iterator[bytes]:
        left = declared
        with archive.open(entry) as file:
            while chunk := file.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise ValueError(f"{one_line(entry.filename)} holds more than it declares")
                yield chunk

    rows, columns = _reach(chunks())
    try:
        # The reader makes a cell of every place up to the last.
        require_table(label, rows, columns)
    except MemoryLimitError:
        raise MemoryLimitError(
            f"{label}: {one_line(entry.filename)} reaches to row {rows:,} and column {columns:,}, "
            "and its cells do not fit into memory; delete what stands far off."
        ) from None


def _reach(chunks: Iterator[bytes]) -> tuple[int, int]:
    """Return the last row and column of a sheet; 0 and 0 for what is none, whatever its name."""
    rows = columns = row = column = 0
    is_sheet, tail = False, b""
    for chunk in chain(chunks, [b""]):
        data = tail + chunk
        is_sheet = is_sheet or _SHEET in data
        if not is_sheet:
            tail = data[-len(_SHEET) :]
            continue
        # No tag is cut in two.
        end = max(data.rfind(b"<"), 0) if chunk else len(data)
        tail = data[end:]
        if len(tail) > _CHUNK:
            raise ValueError(f"a cell of more than {_CHUNK / 2**20:g} MB")
        if not (found := _CELL.findall(data[:end])):
            continue
        tags, names, numbers, *_ = zip(*found, strict=True)
        if all(tags) and all(numbers):
            # Every one says where it stands, so their order does not matter.
            rows = row = max(rows, *map(_number, set(numbers)))
            columns = max(columns, *map(_letters, set(names)))
            column = _letters(names[-1])
            continue
        for tag, name, number, other_name, other_number in found:
            if tag == b"row":
                row, column = row + 1, 0
            elif tag:
                column += 1
            # What does not say where it stands follows the one before.
            row = max(row, _number(number or other_number))
            column = max(column, _letters(name or other_name))
            rows, columns = max(rows, row), max(columns, column)
    return rows, columns


def _number(digits: bytes) -> int:
    return int(digits.lstrip(b"0")[:_MOST_DIGITS] or b"0")


def _letters(name: bytes) -> int:
    """Turn the letters of a column into its number: A is 1, AA 27; 0 for none."""
    letters = name[:_MOST_LETTERS].upper()
    return functools.reduce(lambda number, letter: 26 * number + letter - 64, letters, 0)
