"""Parquet and Excel -> typed columns."""

from __future__ import annotations

import functools
import importlib.util
import io
import json
import logging
import re
import zipfile
import zlib
from collections.abc import Collection
from typing import Any

import polars as pl
import polars.selectors as cs

from kpca_apps.errors import ConfigError, InputError, KpcaError, MemoryLimitError
from kpca_apps.files.limits import require_memory, require_table
from kpca_apps.files.names import one_line, unique_names
from kpca_apps.files.sniffing import header_is_missing

__all__ = [
    "DAMAGE",
    "collected",
    "column_named",
    "damaged",
    "far_dates",
    "plain_types",
    "read_excel",
    "read_parquet",
]

# A dictionary of two long texts makes gigabytes of them, and every cell is looked at many times.
_MOST_TEXT = 1 << 30
# A row or cell of a sheet, most often with its place beside it, or a place that stands elsewhere:
# <c r="XFD1048576"> and <c s="1" r="XFD1048576">.
_AT = rb"""r\s*=\s*["']([A-Za-z]*)([0-9]*)["']"""
_CELL = re.compile(rb"<(?:[^\s<>/:]+:)?(row|c)(?=[\s/>])(?:\s+%b)?|\b%b" % (_AT, _AT))
_SHEET, _CHUNK = b"sheetData", 1 << 20
# Far more than any sheet has, and than the reader counts to.
_MOST_LETTERS, _MOST_DIGITS = 8, 18
# Bytes of a value in a list, as text.
_LEAF = 8
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
# 0001-01-02 to 9999-12-31, a day short of the calendar's ends for the sake of time zones.
_FIRST_SECOND, _LAST_SECOND = -62_135_510_400, 253_402_214_400
DAMAGE = (Exception, pl.exceptions.PanicException)
"""What damaged files make the readers raise: errors of many kinds, and panics, which are no
Exceptions."""


def read_parquet(data: bytes, label: str) -> pl.DataFrame:
    """Read a Parquet file.

    Parameters
    ----------
    data : bytes
        The file.
    label : str
        Its name for messages.

    Returns
    -------
    DataFrame
        Its columns, types as `plain_types` leaves them.

    Raises
    ------
    InputError
        If it is damaged.
    MemoryLimitError
        If it would unpack to more than memory holds.
    """
    try:
        scan = pl.scan_parquet(io.BytesIO(data))
        width = len(scan.collect_schema())
        height = int(scan.select(pl.len()).collect().item())
    except DAMAGE as error:
        raise damaged(label, "Parquet", error) from None
    # A few bytes can stand for a billion equal cells, or for a long text in every row, so the
    # size of all cells is asked before they are made.
    require_table(label, height, width)
    return collected(scan, label)


def collected(scan: pl.LazyFrame, label: str, *, as_text: Collection[str] = ()) -> pl.DataFrame:
    """Read the rows of a Parquet file, or some of them, asking for their memory on the way.

    Parameters
    ----------
    scan : LazyFrame
        The rows.
    label : str
        The file's name for messages.
    as_text : collection of str
        As for `plain_types`.

    Returns
    -------
    DataFrame
        Their columns, types as `plain_types` leaves them.

    Raises
    ------
    InputError
        If the file is damaged.
    MemoryLimitError
        If its texts, or nested values, would unpack to more than memory holds.
    """
    try:
        _require_texts(scan, label)
        frame = scan.collect(engine="streaming")
        _require_nested(frame, label)
        return plain_types(frame, as_text=as_text)
    except MemoryLimitError:
        raise
    except DAMAGE as error:
        raise damaged(label, "Parquet", error) from None


def read_excel(data: bytes, label: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read the first sheet of an Excel workbook.

    Parameters
    ----------
    data : bytes
        The workbook, ``.xlsx`` or ``.xls``.
    label : str
        Its name for messages.

    Returns
    -------
    frame : DataFrame
        The cells below the header row.
    notes : tuple of str
        Which sheet was read, where there are several; names that had to be changed.

    Raises
    ------
    ConfigError
        If the library that reads Excel is not installed.
    InputError
        If the workbook is damaged or its first sheet holds no table.
    """
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
    return plain_types(frame), tuple(notes)


def plain_types(frame: pl.DataFrame, *, as_text: Collection[str] = ()) -> pl.DataFrame:
    """Reduce the types of columns to those the toolkit speaks.

    Booleans, integers up to 64 bits, floats, dates, times and strings stay. Categories become
    strings, decimals and wider integers floats, durations seconds, bytes hex text, nested values
    JSON text. Dates become text where one of them lies outside the years 1 to 9999.

    Parameters
    ----------
    frame : DataFrame
        Any table.
    as_text : collection of str
        Columns of dates that become text in any case: those of a part, where one in another part
        of the table lies outside.

    Returns
    -------
    DataFrame
        The same rows and names.

    Examples
    --------
    >>> plain_types(pl.DataFrame({"x": [[1, 2]]})).row(0)
    ('[1, 2]',)
    """
    return frame.with_columns(
        [_plain(column, column.name in as_text) for column in frame.iter_columns()]
    )


def far_dates(scan: pl.LazyFrame, label: str) -> frozenset[str]:
    """Name the columns of dates in which one lies outside the years 1 to 9999.

    Parameters
    ----------
    scan : LazyFrame
        The whole table, read in batches.
    label : str
        The file's name for messages.

    Returns
    -------
    frozenset of str
        What `plain_types` turns into text, for each part of the table alike.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    try:
        schema = scan.collect_schema()
        named = [
            _is_named(column_named(name), dtype).all().alias(name)
            for name, dtype in schema.items()
            if dtype in (pl.Date, pl.Datetime)
        ]
        found = scan.select(named).collect(engine="streaming").row(0, named=True) if named else {}
    except DAMAGE as error:
        raise damaged(label, "Parquet", error) from None
    return frozenset(name for name, all_named in found.items() if not all_named)


def _require_texts(scan: pl.LazyFrame, label: str) -> None:
    """Refuse rows whose texts would not fit into memory, before they are made.

    Parameters
    ----------
    scan : LazyFrame
        The rows.
    label : str
        The file's name for messages.

    Raises
    ------
    MemoryLimitError
        If they would unpack to more than is available, or than anyone screens.
    """
    _require_text(_text_bytes(scan), label)


def _require_nested(frame: pl.DataFrame, label: str) -> None:
    """Refuse lists and structures whose JSON texts would not fit into memory.

    Parameters
    ----------
    frame : DataFrame
        The rows; lists of equal values or texts take little in it.
    label : str
        The file's name for messages.

    Raises
    ------
    MemoryLimitError
        If they would unpack to more than is available, or than anyone screens.
    """
    nested = [column for column in frame.iter_columns() if column.dtype.is_nested()]
    _require_text(sum(_leaf_bytes(column) for column in nested), label)


def column_named(name: str) -> pl.Expr:
    """Name a column literally: ``pl.col("^x.*$")`` would be a pattern, ``pl.col("*")`` all of them.

    Examples
    --------
    >>> pl.DataFrame({"*": [1], "x": [2]}).select(column_named("*")).columns
    ['*']
    """
    return cs.by_name(name).as_expr()


def damaged(label: str, kind: str, error: BaseException) -> InputError:
    """Return the error for a file that its reader could not read."""
    reason = one_line(str(error).strip().split("\n", 1)[0], 120)
    return InputError(f"{label}: not a readable {kind} file ({reason}); export it again.")


def _plain(column: pl.Series, as_text: bool) -> pl.Series:
    dtype = column.dtype
    if dtype in (pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    if dtype.is_decimal() or dtype == pl.Int128:
        return column.cast(pl.Float64)
    if dtype == pl.Binary:
        return column.bin.encode("hex")
    if isinstance(dtype, pl.Duration):
        return column.to_physical() / _PER_SECOND[dtype.time_unit]
    if dtype in (pl.Date, pl.Datetime):
        return _dates(column, as_text)
    if dtype.is_nested() or dtype == pl.Object:
        texts = [None if value is None else _json(value) for value in column.to_list()]
        return pl.Series(column.name, texts, dtype=pl.String)
    return column


def _dates(column: pl.Series, as_text: bool) -> pl.Series:
    """Write dates that no calendar holds, and all beside them, as text; others stay as they are.

    Stored as a number, a date may lie a million years off, where neither Python nor polars can
    name its day.
    """
    dtype = column.dtype
    named = pl.select(_is_named(pl.lit(column), dtype)).to_series()
    if named.all() and not as_text:
        return column
    unit = dtype.time_unit if isinstance(dtype, pl.Datetime) else "days"
    stored = column.to_physical()
    texts = column.set(~named, None).cast(pl.String)
    numbers = stored.cast(pl.String) + f" {unit} after 1970-01-01"
    return texts.zip_with(named | stored.is_null(), numbers)


def _is_named(dates: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Whether the calendar has a name for the day of each date."""
    per_second = _PER_SECOND[dtype.time_unit] if isinstance(dtype, pl.Datetime) else 1 / 86400
    return (dates.to_physical() / per_second).is_between(_FIRST_SECOND, _LAST_SECOND)


def _text_bytes(scan: pl.LazyFrame) -> int:
    """Bytes of all text cells, each counted in full however often a file repeats it."""
    schema = scan.collect_schema()
    sizes = [
        *(column_named(name).str.len_bytes() for name in schema if schema[name] == pl.String),
        *(column_named(name).bin.size() for name in schema if schema[name] == pl.Binary),
    ]
    if not sizes:
        return 0
    totals = scan.select([size.cast(pl.Int64).sum() for size in sizes]).collect(engine="streaming")
    return int(sum(totals.row(0)))


def _leaf_bytes(column: pl.Series) -> int:
    """Bytes of all values of a column, however deep they lie, as texts."""
    dtype = column.dtype
    if isinstance(dtype, pl.Struct):
        return sum(_leaf_bytes(field) for field in column.struct.unnest().iter_columns())
    if isinstance(dtype, pl.List | pl.Array):
        return _leaf_bytes(column.explode())
    if dtype == pl.String:
        return len(column) * _LEAF + int(column.str.len_bytes().cast(pl.Int64).sum())
    if dtype == pl.Binary:
        return len(column) * _LEAF + int(column.bin.size().cast(pl.Int64).sum())
    return len(column) * _LEAF


def _require_text(n_bytes: int, label: str) -> None:
    require_memory(label, n_bytes)
    if n_bytes > _MOST_TEXT:
        raise MemoryLimitError(
            f"{label}: its text cells unpack to {n_bytes / 2**30:.1f} GB, more than the "
            f"{_MOST_TEXT / 2**30:g} GB that are read; drop columns of long texts, or split "
            "the file."
        )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


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
