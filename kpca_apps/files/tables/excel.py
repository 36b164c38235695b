"""Excel -> a frame of the first sheet."""

from __future__ import annotations

import functools
import importlib.util
import io
import logging
import re
import zipfile
from collections.abc import Iterator
from itertools import chain

import polars as pl

from kpca_apps.errors import ConfigError, MemoryLimitError
from kpca_apps.files.limits import require_memory, require_table
from kpca_apps.files.names import one_line, unique_names
from kpca_apps.files.tables.parquet import damage_refused, plain_types
from kpca_apps.files.tables.text import header_is_missing

__all__ = ["read_excel"]

# A row or cell of a sheet, most often with its place beside it, or a place that stands elsewhere:
# <c r="XFD1048576"> and <c s="1" r="XFD1048576">.
_AT = rb"""r\s*=\s*["']([A-Za-z]*)([0-9]*)["']"""
_CELL = re.compile(rb"<(?:[^\s<>/:]+:)?(row|c)(?=[\s/>])(?:\s+%b)?|\b%b" % (_AT, _AT))
_SHEET, _CHUNK = b"sheetData", 1 << 20
# Far more than any sheet has, and than the reader counts to.
_MOST_LETTERS, _MOST_DIGITS = 8, 18


def read_excel(data: bytes, label: str) -> tuple[pl.DataFrame, list[str]]:
    """Read the first sheet of a workbook, ``.xlsx`` or ``.xls``; return the notes on it too."""
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
        sheets = workbook.sheet_names
        sheet = workbook.load_sheet(0, header_row=None, n_rows=1, dtypes="string")
        header = list(sheet.to_polars().fill_null("").row(0)) if sheet.width else []
        body = workbook.load_sheet(0, schema_sample_rows=None, skip_whitespace_tail_rows=True)
        frame = body.to_polars()
    header += [""] * (frame.width - len(header))
    names, notes = unique_names(header[: frame.width])
    frame.columns = names
    if header_is_missing(header):
        notes.append(
            "The first row of the sheet holds numbers only and names the columns: if it is data, "
            "add a header row."
        )
    if len(sheets) > 1:
        notes = [f'Read sheet "{one_line(sheets[0])}", the first of {len(sheets)}.', *notes]
    return plain_types(frame), notes


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
