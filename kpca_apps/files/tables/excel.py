"""Excel -> a frame of the first sheet."""

from __future__ import annotations

import functools
import importlib.util
import io
import logging
import re
import zipfile
import zlib
from typing import Any

import polars as pl

from kpca_apps.errors import ConfigError, KpcaError, MemoryLimitError
from kpca_apps.files.limits import require_memory, require_table
from kpca_apps.files.names import one_line, unique_names
from kpca_apps.files.tables.plain import DAMAGE, damaged, plain_types
from kpca_apps.files.tables.sniffing import header_is_missing

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
    _hush("fastexcel")
    try:
        workbook = fastexcel.read_excel(data)
        sheets = workbook.sheet_names
        sheet = workbook.load_sheet(0, header_row=None, n_rows=1, dtypes="string")
        header = [_text(value) for value in sheet.to_polars().row(0)] if sheet.width else []
        body = workbook.load_sheet(0, schema_sample_rows=None, skip_whitespace_tail_rows=True)
        frame = body.to_polars()
    except DAMAGE as error:
        raise damaged(label, "Excel", error) from None
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


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _hush(library: str) -> None:
    """Keep a library's remarks off standard error, unless the caller has set up logging."""
    logger = logging.getLogger(library)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def _bound_workbook(data: bytes, label: str) -> None:
    """Refuse a workbook that unpacks to more than it declares, or spreads a few cells too far."""
    if not data.startswith(b"PK"):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            require_memory(label, sum(entry.file_size for entry in entries))
            for entry in entries:
                _bound_entry(archive, entry, label)
    except (
        zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError
    ) as error:  # fmt: skip
        if isinstance(error, KpcaError):
            raise
        raise damaged(label, "Excel", error) from None


def _bound_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, label: str) -> None:
    declared = entry.file_size
    # Otherwise it is read as far as it declares, and not found to go on.
    entry.file_size, entry.CRC = declared + 1, None  # type: ignore[assignment]
    left, reach = declared, _Reach()
    with archive.open(entry) as file:
        while chunk := file.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                raise ValueError(f"{one_line(entry.filename)} holds more than it declares")
            reach.add(chunk)
    rows, columns = reach.ended()
    try:
        # The reader makes a cell of every place up to the last.
        require_table(label, rows, columns)
    except MemoryLimitError:
        raise MemoryLimitError(
            f"{label}: {one_line(entry.filename)} reaches to row {rows:,} and column {columns:,}, "
            "and its cells do not fit into memory; delete what stands far off."
        ) from None


class _Reach:
    """The last row and column of a sheet; 0 and 0 for what is none, whatever it is called."""

    def __init__(self) -> None:
        self._rows = self._columns = 0
        self._row = self._column = 0
        self._is_sheet = False
        self._tail = b""

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        data = self._tail + chunk
        self._is_sheet = self._is_sheet or _SHEET in data
        if not self._is_sheet:
            self._tail = data[-len(_SHEET) :]
            return
        # No tag is cut in two.
        end = max(data.rfind(b"<"), 0)
        self._tail = data[end:]
        if len(self._tail) > _CHUNK:
            raise ValueError(f"a cell of more than {_CHUNK / 2**20:g} MB")
        self._find(data[:end])

    def ended(self) -> tuple[int, int]:
        """Return the last row and column."""
        if self._is_sheet:
            self._find(self._tail)
        return self._rows, self._columns

    def _find(self, data: bytes) -> None:
        found = _CELL.findall(data)
        if not found:
            return
        tags, names, rows, *_ = zip(*found, strict=True)
        if all(tags) and all(rows):
            # Every one says where it stands, so their order does not matter.
            self._rows = self._row = max(self._rows, *map(_number, set(rows)))
            self._columns = max(self._columns, *map(_letters, set(names)))
            self._column = _letters(names[-1])
            return
        for tag, name, row, other_name, other_row in found:
            if tag == b"row":
                self._row, self._column = self._row + 1, 0
            elif tag:
                self._column += 1
            # What does not say where it stands follows the one before.
            self._row = max(self._row, _number(row or other_row))
            self._column = max(self._column, _letters(name or other_name))
            self._rows, self._columns = max(self._rows, self._row), max(self._columns, self._column)


def _number(digits: bytes) -> int:
    return int(digits.lstrip(b"0")[:_MOST_DIGITS] or b"0")


def _letters(name: bytes) -> int:
    """Turn the letters of a column into its number: A is 1, AA 27; 0 for none."""
    letters = name[:_MOST_LETTERS].upper()
    return functools.reduce(lambda number, letter: 26 * number + letter - 64, letters, 0)
