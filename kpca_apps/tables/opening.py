"""Open tables: in memory if they are small, else in parts.

A file's format is detected from its content, not its name. Cells of text files stay text; they are
interpreted later, a column at a time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Unpack

from kpca_apps.errors import InputError, about
from kpca_apps.names import TABLE_SUFFIXES, in_prose, one_line, suggest
from kpca_apps.system.files.spools import remove_spools, spool
from kpca_apps.system.files.texts import NotUtf8
from kpca_apps.system.memory import ROWS_IN_MEMORY
from kpca_apps.system.stores.addresses import STORE_SCHEMES, StorePath
from kpca_apps.system.stores.buckets import place_of
from kpca_apps.tables.databases.address import DATABASE_KINDS, scheme_of_file
from kpca_apps.tables.databases.reading import DATABASES
from kpca_apps.tables.input_file import InputFile, Reading, ReadOptions, copied_file, find_file
from kpca_apps.tables.read.arrow import ARROW
from kpca_apps.tables.read.delimited import DELIMITED
from kpca_apps.tables.read.delta import DELTA, LOG, is_delta
from kpca_apps.tables.read.excel import EXCEL
from kpca_apps.tables.read.hive import is_partitioned, partitioned_files, unhidden
from kpca_apps.tables.read.json import JSON
from kpca_apps.tables.read.parquet import PARQUET, PARQUET_FOLDER, PARQUET_SUFFIXES
from kpca_apps.tables.read.reader import ANY, Address, Folder, Reader, of_schemes, read_by
from kpca_apps.tables.read.remote import copied_folder, expand_address, named_after
from kpca_apps.tables.read.text import Text
from kpca_apps.tables.read.uri import refuse_password, scheme_of
from kpca_apps.tables.several import open_several
from kpca_apps.tables.table import PartedTable, Table

_PATTERN = "*?["
_FEW_SLASHES = re.compile(r"(sqlite|duckdb|postgres|postgresql):(/?[^/].*)", re.I | re.DOTALL)
_BINARY_SUFFIXES = (
    *PARQUET_SUFFIXES, ".xlsx", ".xls", ".xlsm", ".xlsb", ".arrow", ".feather", ".ipc",
)  # fmt: skip
# First bytes of files that are not tables.
_FOREIGN = {
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"FEA1": "a Feather file of the first version",
}
_OTHER_DATABASES = ("mysql", "mariadb", "mssql", "sqlserver", "oracle", "snowflake", "bigquery",
                    "clickhouse", "mongodb", "redshift", "trino", "databricks")  # fmt: skip


def open_table(
    path: str | Path | Sequence[str | Path],
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | int | None = None,
    skip_rows: int = 0,
    bad_lines: str = "refuse",
    layout: str | None = None,
    as_of: str | int | datetime | None = None,
    query: str | None = None,
    table_name: str | None = None,
    timeout: float | None = None,
    in_memory_rows: float = ROWS_IN_MEMORY,
    part_rows: int | None = None,
) -> Table | PartedTable:
    r"""Open a table of any size: text, JSON, Parquet, Arrow, Excel, or in a database or store.

    Parameters
    ----------
    path : str or Path, or a list of them
        A file, or ``"-"`` for standard input. The file may be compressed with gzip, bzip2, xz or
        zstd, or be a zip archive of one table. Or the URI of a database: ``"sqlite:///shop.db"``,
        ``"duckdb:///shop.duckdb"`` or ``"postgresql://ada@host/shop"``, with the table after a
        ``#``, or in `query` or `table_name`. A list, a folder, or a pattern such as
        ``"data/*.csv"`` gives several files, which are read as one table, sorted by name. They need
        the same format and columns. A column ``file`` names the file of each row, except in a
        folder of Parquet files. A folder named ``column=value`` adds that column. An address in an
        object store, such as ``"s3://bucket/table.csv"`` (``gs://``, ``az://``), is read like a
        file or folder.
    delimiter : str, optional
        One character, or its name (``"tab"``, ``"space"``). Detected by default.
    encoding : str, optional
        Encoding of a text file. Default: that of the byte-order mark, else UTF-8, else cp1252.
    sheet : str or int, optional
        Name of a workbook's sheet, or its number from 1. Default: the first.
    skip_rows : int
        Number of lines of a text, or rows of a sheet, to skip before the header. Titles need not be
        skipped: they are detected.
    bad_lines : {"refuse", "skip"}
        Whether to raise an error for lines of a text that cannot be parsed or have a wrong number
        of cells, or to skip these lines. The source's notes list skipped lines.
    layout : {"auto", "off"}, optional
        With "auto", the default, titles, units, repeated headers, totals and footers of a text or a
        sheet are left out, and a label given once per block is filled down. The source's notes list
        these changes. With "off", the first row names the columns and all other rows are data.
    as_of : str, int or datetime, optional
        Version of a Delta table: its number, or a time at which it was the latest version (in UTC
        if the time has no zone). Default: the latest version.
    query : str, optional
        SELECT statement whose rows are read from a database, in a read-only transaction.
    table_name : str, optional
        Table of a database to read: name or ``schema.name``.
    timeout : float, optional
        Time limit in seconds for reading from a database. Default: none.
    in_memory_rows : int
        Largest number of rows held in memory; a larger table is read in parts.
    part_rows : int, optional
        Number of rows in a part. Default: a power of two that depends on the number of columns.

    Returns
    -------
    Table or PartedTable
        Cells, line numbers and source of the table; in parts if it has more rows than
        `in_memory_rows`. Except for Parquet, all rows are read now, so that reading a part later
        cannot fail.

    Raises
    ------
    ConfigError
        If `delimiter` or `encoding` is invalid, or the extra for a format is not installed.
    InputError
        If the file is missing, empty, undecodable, ragged, or not a table, or the disk has no room
        for a temporary file.
    MemoryLimitError
        If the table needs more memory than there is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sizes.csv")
    ...     _ = path.write_text("name;size\nada;1,5\nbob;?\ncy;2\n")
    ...     table = open_table(path, in_memory_rows=2, part_rows=2)
    ...     [part.read().frame.rows() for part in table.parts]
    [[('ada', '1,5'), ('bob', '?')], [('cy', '2')]]
    """
    options = ReadOptions(**{name: value for name, value in locals().items() if name != "path"})
    remove_spools()
    paths = expand(path)
    return open_several(paths, options, _open) if len(paths) > 1 else _open(paths[0], options)


def read_table(path: str | Path | Sequence[str | Path], **reading: Unpack[Reading]) -> Table:
    r"""Read a table of any size into memory.

    Parameters
    ----------
    path : str or Path, or a list of them
        As for `open_table`.
    **reading
        Any of the options `delimiter` to `timeout` of `open_table`.

    Returns
    -------
    Table
        The cells, their lines and their source.

    Raises
    ------
    ConfigError, InputError, MemoryLimitError
        As for `open_table`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sizes.csv")
    ...     _ = path.write_text("name;size\nada;1,5\nbob;?\n")
    ...     table = read_table(path)
    >>> table.frame.rows(), table.source.delimiter
    ([('ada', '1,5'), ('bob', '?')], ';')
    """
    table = open_table(path, in_memory_rows=inf, **reading)
    assert isinstance(table, Table)
    return table


def expand(path: str | Path | Sequence[str | Path]) -> list[str | Path]:
    """Return the files of paths, patterns and folders; do not expand a folder of Parquet files."""
    if isinstance(path, str | Path):
        paths = [path]
    else:
        paths = list(path)
        if not paths:
            raise InputError("no file is named; name at least one.")
    found: list[str | Path] = []
    for given in paths:
        text = str(given)
        _refuse_lost_slashes(given)
        if scheme_of(given) in STORE_SCHEMES:
            found += expand_address(text)
        elif scheme_of(given) is not None:
            found.append(text)
        elif any(sign in text for sign in _PATTERN) and not os.path.lexists(text):
            start = Path(Path(text).anchor)
            pattern = str(Path(text).relative_to(start))
            try:
                matches = sorted(
                    match
                    for match in start.glob(pattern)
                    if not (match.name.startswith(".") or match.is_dir())
                )
            except (ValueError, NotImplementedError, OSError) as error:
                raise InputError(f"{one_line(str(error))}.", text) from None
            if not matches:
                raise InputError("no file has such a name.", text)
            found += matches
        elif text != "-" and Path(given).is_dir():
            found += _folder(Path(given))
        else:
            found.append(given)
    seen: set[str] = set()
    for file in found:
        real = str(file) if scheme_of(file) is not None else os.path.realpath(file)
        if real in seen and len(found) > 1:
            raise InputError("is named twice; leave one out.", str(file))
        seen.add(real)
    return found


def _refuse_lost_slashes(given: str | Path) -> None:
    found = None if isinstance(given, Path) else _FEW_SLASHES.fullmatch(given)
    if found is None or os.path.lexists(given):
        return
    scheme, rest = found[1].lower(), found[2]
    whole = f"{scheme}:///{rest}"
    if scheme.startswith("postgres"):
        whole = f"{scheme}://{rest.removeprefix('/')}"
    refuse_password(whole)
    raise InputError(
        f"the address of a database has more slashes; name it {one_line(whole, 200)}", given
    )


def expand_each(path: str | Path | Sequence[str | Path]) -> list[str | Path]:
    """Return the files of paths, patterns and folders, including each file of Parquet folders."""
    found: list[str | Path] = []
    for file in expand(path):
        is_whole = str(file) == "-" or scheme_of(file) is not None or is_delta(Path(file))
        items: list[Path] = []
        if not is_whole and Path(file).is_dir():
            with suppress(InputError):  # the error is reported when the table is opened
                items = unhidden(Path(file))
        files = [item for item in items if item.suffix.lower() in TABLE_SUFFIXES]
        found += [item for item in files if item.is_file()] or [file]
    return found


def _folder(folder: Path) -> list[str | Path]:
    """Return the files of a folder, or the folder if it is a single table or contains no table."""
    if folder.absolute().name == LOG:
        table = one_line(str(folder.parent if folder.name else folder.absolute().parent), 200)
        raise InputError(f"this is the log of a Delta table; name {table}", folder)
    try:
        items = unhidden(folder)
    except InputError:
        return [folder]  # the error is reported when the folder is opened
    if is_delta(folder) or any(item.suffix.lower() in PARQUET_SUFFIXES for item in items):
        return [folder]
    files: list[str | Path] = [item for item in items if item.suffix.lower() in TABLE_SUFFIXES]
    return files or [folder]


def _open(path: str | Path, options: ReadOptions) -> Table | PartedTable:
    if scheme_of(path) is not None:
        refuse_password(str(path))
        with about(str(path)):
            return read_by(ADDRESSES, Address(str(path), options))
    if str(path) != "-" and Path(path).is_dir():
        with about(path):
            return read_by(FOLDERS, Folder(Path(path), options))
    file = find_file(path, options)
    with about(file.label):
        return read_by(FILES, file)


def _read_object(found: Address) -> Table | PartedTable:
    place = place_of(found.uri)
    kind = place.kind()
    if not kind:
        raise InputError(place.missing())
    if kind == "folder":
        return read_by(FOLDERS, Folder(StorePath(place.address), found.options))
    return read_by(FILES, copied_file(spool(place.chunks()), place.address, found.options))


def _refuse_scheme(found: Address) -> Table | PartedTable:
    scheme = scheme_of(found.uri)
    known = [f"{name}://" for name in (*DATABASE_KINDS, *STORE_SCHEMES)]
    instead = suggest(f"{scheme}://", known)
    if scheme in _OTHER_DATABASES:
        instead = " Export it to CSV or Parquet, or pass an Arrow stream from Python."
    raise InputError(f"{scheme}:// cannot be read; supported are {in_prose(known)}.{instead}")


def _read_copies(folder: Folder) -> Table | PartedTable:
    address = str(folder.path)
    copy, path = copied_folder(place_of(address))
    with named_after(path, address):
        return read_by(FOLDERS, Folder(path, folder.options, copy))


def _refuse_iceberg(folder: Folder) -> Table | PartedTable:
    raise InputError(
        "this is an Iceberg table; read it with pyiceberg, and give screen_table what its "
        "scan().to_arrow_batch_reader() returns."
    )


def _read_partitioned(folder: Folder) -> Table | PartedTable:
    files = partitioned_files(Path(folder.path), TABLE_SUFFIXES)
    if any(path.suffix.lower() in PARQUET_SUFFIXES for path, _ in files):
        return read_by([PARQUET_FOLDER], folder)
    paths, values = zip(*files, strict=True)
    return open_several(paths, folder.options, _open, values)


def _read_text(file: InputFile) -> Table | PartedTable:
    """Read a text file; its encoding defaults to cp1252 if it is not UTF-8."""
    for beginning, what in _FOREIGN.items():
        if file.head.startswith(beginning):
            raise InputError(f"this is {what}, not a table; export it as CSV or Parquet.")
    if (scheme := scheme_of_file(file.head)) is not None and not file.is_packed:
        is_there = scheme_of(file.label) in STORE_SCHEMES
        name = one_line(file.name if is_there else file.label, 200)
        raise InputError(
            f"this is a database; {'copy it here, ' * is_there}name it {scheme}:///{name}, and one "
            "of its tables with --table."
        )
    if file.suffix in _BINARY_SUFFIXES and file.is_binary:
        raise InputError(f"the contents do not match the ending {file.suffix}; export it again.")
    try:
        return _read_characters(file)
    except NotUtf8 as error:
        if file.options.encoding is not None:
            raise
        note = (
            f"Read as cp1252 (Windows, western Europe): byte 0x{error.byte:02x} on line "
            f"{error.line} is not UTF-8."
        )
    options = replace(file.options, encoding="cp1252")
    return _read_characters(replace(file, options=options, notes=(note,)))


def _read_characters(file: InputFile) -> Table | PartedTable:
    text = Text(file)
    try:
        return read_by(TEXTS, text)
    except NotUtf8:
        raise
    except InputError:
        # Invalid UTF-8 may be the cause of this error, so report invalid UTF-8 first.
        text.require_utf8()
        raise


# Readers of addresses, folders, files and texts; the first that recognises an input reads it.
ADDRESSES: list[Reader[Address]] = [
    DATABASES,
    Reader("an object store", ANY, _read_object, of_schemes(*STORE_SCHEMES)),
    Reader("another address", ANY, _refuse_scheme),
]
FOLDERS: list[Reader[Folder]] = [
    DELTA,
    Reader("a folder", ANY, _read_copies, lambda one: isinstance(one.path, StorePath)),
    Reader(
        "an Iceberg table",
        ANY,
        _refuse_iceberg,
        lambda one: any(Path(one.path).glob("metadata/*.metadata.json")),
    ),
    Reader("a folder", ANY, _read_partitioned, lambda one: is_partitioned(Path(one.path))),
    PARQUET_FOLDER,
]
FILES: list[Reader[InputFile]] = [
    PARQUET,
    ARROW,
    EXCEL,
    Reader("text files", "delimiter encoding skip_rows bad_lines", _read_text),
]
TEXTS: list[Reader[Text]] = [JSON, DELIMITED]
