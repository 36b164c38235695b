"""Read one sheet of an Excel workbook.

On a damaged file, the compiled reader may allocate memory without limit, abort or hang, so it runs
in a separate process with limits of memory and time. The process gets a line of JSON and the bytes
of the file on standard input; it returns the sheet, or an error, as MessagePack.
"""

from __future__ import annotations

import io
import json
import logging
import multiprocessing.spawn
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from kpca_apps.errors import ConfigError, InputError, KpcaError, MemoryLimitError, require_library
from kpca_apps.names import one_line, unique_names
from kpca_apps.system.arrays import IntArray
from kpca_apps.system.finished import from_bytes, to_bytes
from kpca_apps.system.memory import available_bytes
from kpca_apps.tables.input_file import InputFile, ReadOptions, damage_refused
from kpca_apps.tables.read.layout.body import Body
from kpca_apps.tables.read.layout.header import (
    HEADER_SAMPLE,
    find_head,
    find_header,
    first_row,
    header_is_missing,
)
from kpca_apps.tables.read.reader import Reader, begins, table_of
from kpca_apps.tables.table import PartedTable, Rows, Table, as_arrow, as_polars, plain_types

if TYPE_CHECKING:
    import fastexcel

# Memory limit: TIMES the decompressed bytes, at least LEAST_BYTES. Time limit: LEAST_SECONDS, plus
# the decompressed bytes over BYTES_A_SECOND.
LEAST_BYTES, TIMES = 1 << 30, 24
LEAST_SECONDS, BYTES_A_SECOND = 60.0, 1e6
MAX_CELL = 32_767  # maximum number of characters of a cell in Excel
_OLE = b"\xd0\xcf\x11\xe0"
MOST_LISTED = 20  # maximum number of sheets that a message lists
# A first sheet of at most 30 rows is a cover if another sheet has 5 times as many rows.
MOST_OF_COVER, TIMES_COVER = 30, 5
LARGEST_WHOLE = 2.0**53  # larger floats are all whole numbers


@dataclass(frozen=True)
class ReadSheet:
    """One sheet of a workbook."""

    frame: pl.DataFrame
    rows: IntArray  # (n,), number of each row in the sheet
    notes: list[str]
    name: str
    renamed: dict[str, str]  # original names of renamed columns, see `unique_names`
    body: Body | None  # finds rows that are not data; None if all rows are data


def _read_file(file: InputFile) -> Table | PartedTable:
    """Read the chosen sheet; by default the first sheet, which must be a table."""
    options = file.options
    data = file.contents()
    require_library("fastexcel", "excel", "Excel")
    unpacked = len(data)
    if not data.startswith(_OLE):
        with damage_refused("Excel"), zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    sheet = _read_in_process(data, options, unpacked)
    pieces = iter([as_arrow(sheet.frame, sheet.rows)] if sheet.frame.height else [])
    if sheet.body is not None:
        pieces = sheet.body.rows(pieces)
    rows = Rows(pieces, sheet.frame.columns, sheet.notes, True, sheet.renamed)
    how = f"{file.source.reading} sheet {sheet.name}"
    return table_of(file, rows, sheet.body, format="excel", reading=how)


def _interpreter() -> str:
    """Return the path of a Python interpreter, also if another program embeds Python."""
    own = os.fsdecode(multiprocessing.spawn.get_executable() or "")
    if Path(own).name.lower().startswith(("python", "pypy")):
        return own
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if found is None:
        raise ConfigError(
            "a workbook is read in a process of its own, and no Python for it was found; name one "
            "by multiprocessing.set_executable()."
        )
    return found


def _read_in_process(data: bytes, options: ReadOptions, unpacked: int) -> ReadSheet:
    """Read a sheet in a separate process; `unpacked` is the number of decompressed bytes."""
    most = int(min(max(LEAST_BYTES, TIMES * unpacked), available_bytes()))
    seconds = LEAST_SECONDS + unpacked / BYTES_A_SECOND
    how = {name: getattr(options, name) for name in ("sheet", "skip_rows", "layout")}
    request = {"how": how, "bytes": most}
    # Import nothing from the current folder: -P excludes it, but an empty entry would add it.
    paths = os.pathsep.join(path for path in sys.path if path)
    one_thread = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            [_interpreter(), "-P", "-W", "ignore", "-m", "kpca_apps.tables.read.excel"],
            input=json.dumps(request).encode() + b"\n" + data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **one_thread, "PYTHONPATH": paths},
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"reading it takes more than {seconds:.0f} seconds; save the sheet as CSV or Parquet."
        ) from None
    if done.returncode:
        why = f"code {done.returncode}"
        if done.returncode < 0:
            why = signal.Signals(-done.returncode).name
        raise InputError(
            f"is damaged, or takes more than {most / 2**30:.1f} GB to read ({why}), as happens if "
            "a cell is far from all others; open it in a spreadsheet program, delete such cells "
            "and save it again, or save the sheet as CSV."
        )
    found: ReadSheet | tuple[str, str] = from_bytes(done.stdout, ReadSheet | tuple[str, str])
    if isinstance(found, tuple):
        kind, message = found
        raise (MemoryLimitError if kind == MemoryLimitError.__name__ else InputError)(message)
    return found


def _serve(source: IO[bytes], target: IO[bytes]) -> None:
    request = json.loads(source.readline())
    _bound_memory(request["bytes"])
    try:
        answer = to_bytes(_read(source.read(), **request["how"]))
    except KpcaError as error:
        answer = to_bytes((type(error).__name__, str(error)))
    target.write(answer)
    target.flush()


def _bound_memory(n_bytes: int) -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        reserved = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        most = reserved * resource.getpagesize() + n_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _read(data: bytes, sheet: str | int | None, skip_rows: int, layout: str | None) -> ReadSheet:
    import fastexcel

    # Keep the libraries' log messages off standard error.
    for name in ("fastexcel", "calamine"):
        if not (logger := logging.getLogger(name)).handlers:
            logger.addHandler(logging.NullHandler())
    with damage_refused("Excel"):
        workbook = fastexcel.read_excel(data)
        names = workbook.sheet_names
        place = _sheet_place(workbook, sheet)
        # Load from the first row, even if empty, so that row numbers are those shown in Excel.
        top = workbook.load_sheet(
            place, header_row=None, skip_rows=0, n_rows=HEADER_SAMPLE + skip_rows, dtypes="string"
        )
        texts = top.to_polars().fill_null("").rows()[skip_rows:] if top.width else []
        rows = [[*map(str.strip, row)] for row in texts]
        filled = [number for number, row in enumerate(rows) if any(row)]
        if sheet is None and len(names) > 1:
            _refuse_small(workbook, place, [rows[number] for number in filled])
        if not filled:
            where = f" below row {skip_rows}" if skip_rows else ""
            raise InputError(
                f'the sheet "{one_line(names[place])}" is empty{where}; there is nothing to screen.'
            )
        # A title may be left of its table, so ignore columns that are empty in the lower half.
        lower = [rows[number] for number in filled[len(filled) // 2 :]]
        is_used = [*map(any, zip(*lower, strict=True))]
        bare = [[*compress(row, is_used)] for row in rows]
        named = None if skip_rows else find_header(bare)
        named = first_row(bare).place if named is None else named
        head = first_row(rows) if layout == "off" else find_head(rows, named)
        # Load only the rows below names and units: words above numbers would turn them into text.
        found, above = head.place, skip_rows + max(head.place, *head.below, 0)
        # Do not use `header_row`, which drops empty columns and shifts others.
        body = workbook.load_sheet(
            place,
            header_row=None,
            skip_rows=above + 1,
            schema_sample_rows=None,
            whitespace_as_null=True,
        )
        batch, errors = body.to_arrow_with_errors()
        frame, header = as_polars(pa.Table.from_batches([batch])), head.names or rows[found]
        # Leave out columns that have neither a name nor a cell, such as margins.
        is_column = [
            bool(cell) or column.null_count() < len(column)
            for cell, column in zip(header, frame.iter_columns(), strict=True)
        ]
    frame = frame[[*compress(frame.columns, is_column)]]
    frame.columns, notes, renamed = unique_names(compress(header, is_column))
    if header_is_missing([*compress(header, is_column)]):
        notes.append(
            "The first row of the sheet holds numbers only and names the columns: if it is data, "
            "add a header row."
        )
    if len(names) > 1:
        others = ", ".join(f'"{one_line(name, 40)}"' for name in names if name != names[place])
        note = f'Read sheet "{one_line(names[place])}" of {len(names)}; --sheet reads another'
        notes.insert(0, f"{note}: {one_line(others, 200)}.")
    faults = [error for error in errors.errors if "Error(" in error.detail] if errors else []
    if faults:
        row, column = faults[0].position
        what = f"{len(faults):,} cells hold" if len(faults) > 1 else "1 cell holds"
        notes.append(
            f"{what} an error of a formula instead of a value, the first on row {row + 1:,} in "
            f'column "{one_line(header[column])}": read as missing.'
        )
    frame = plain_types(frame)
    frame = frame.with_columns(map(_whole, frame.iter_columns()))
    is_row = np.zeros(frame.height, bool)
    for cells in frame.iter_columns():
        is_row |= cells.is_not_null().to_numpy()
    numbers = np.flatnonzero(is_row) + above + 2
    _refuse_long_cells(frame)
    of_sheet = None
    if layout != "off":
        of_sheet = Body()
        of_sheet.begin(head, rows, range(skip_rows + 1, skip_rows + 1 + len(rows)), is_column)
    return ReadSheet(frame.filter(is_row), numbers, notes, names[place], renamed, of_sheet)


def _refuse_long_cells(frame: pl.DataFrame) -> None:
    texts = frame.select(pl.selectors.string().str.len_chars().max().fill_null(0))
    for name, longest in zip(texts.columns, texts.rows()[0] if texts.width else (), strict=True):
        length = max(longest, len(name))
        if length > MAX_CELL:
            raise InputError(
                f'column "{one_line(name)}" has a cell of {length:,} characters, more than a '
                "spreadsheet program writes; save the sheet as CSV or Parquet."
            )


def _sheet_place(workbook: fastexcel.ExcelReader, sheet: str | int | None) -> int:
    names = workbook.sheet_names
    if sheet is None:
        shown = (k for k in range(len(names)) if _outline(workbook, k).visible == "visible")
        return next(shown, 0)
    if sheet in names:
        return names.index(str(sheet))
    number = int(sheet) if str(sheet).isdecimal() and len(str(sheet)) < 6 else 0
    if 1 <= number <= len(names):
        return number - 1
    listed = ", ".join(f'"{one_line(name, 40)}"' for name in names)
    raise InputError(f'has no sheet "{one_line(str(sheet), 40)}"; it has {one_line(listed, 300)}.')


def _outline(workbook: fastexcel.ExcelReader, place: int) -> fastexcel.ExcelSheet:
    return workbook.load_sheet(place, header_row=None, skip_rows=0, n_rows=0, dtypes="string")


def _refuse_small(workbook: fastexcel.ExcelReader, place: int, rows: list[list[str]]) -> None:
    """Raise InputError if the first sheet is not a table, or is much smaller than another sheet."""
    width = sum(map(any, zip(*rows, strict=True)))
    if len(rows) >= 2 and width >= 2 and len(rows) > MOST_OF_COVER:
        return
    others = [_outline(workbook, k) for k in range(len(workbook.sheet_names)) if k != place]
    shown = [sheet for sheet in others if sheet.visible == "visible" and sheet.width]
    if (
        len(rows) < 2
        or (width < 2 and any(s.width > 1 and s.total_height >= len(rows) for s in shown))
        or (
            len(rows) <= MOST_OF_COVER
            and any(s.total_height >= TIMES_COVER * len(rows) for s in shown)
        )
    ):
        listed = []
        for number, name in enumerate(workbook.sheet_names[:MOST_LISTED]):
            sheet = _outline(workbook, number)
            size = f"{sheet.total_height:,} x {sheet.width:,} cells" if sheet.width else "empty"
            hidden = "" if sheet.visible == "visible" else ", hidden"
            listed.append(f'"{one_line(name, 40)}" ({size}{hidden})')
        more = len(workbook.sheet_names) - MOST_LISTED
        raise InputError(
            f'its first sheet, "{one_line(workbook.sheet_names[place])}", is not a table, or '
            "much smaller than others; choose one with --sheet: "
            + ", ".join(listed)
            + (f" and {more:,} more." if more > 0 else ".")
        )


def _whole(column: pl.Series) -> pl.Series:
    """Convert floats to integers if all are whole; workbooks store all numbers as floats."""
    if not column.dtype.is_float():
        return column
    known = column.drop_nulls()
    is_whole = known.len() and ((known == known.round()) & (known.abs() < LARGEST_WHOLE)).all()
    return column.cast(pl.Int64) if is_whole else column


# Zip archives that are not workbooks have been unpacked before.
EXCEL = Reader("Excel", "sheet skip_rows", _read_file, begins(b"PK\x03\x04", b"PK\x05\x06", _OLE))


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
