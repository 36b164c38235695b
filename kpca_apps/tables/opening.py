"""From a path to a table: in memory where it is small, else in parts.

The format is decided by what the file holds, not by what it is called. Text stays text: what its
cells mean is decided later, a column at a time.
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
# Contents that are no table of ours, and what to call them.
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
    r"""Open a table of any size: text, JSON, Parquet, Arrow, Excel, of a database or a store.

    Parameters
    ----------
    path : str or Path, or a list of them
        The file; ``"-"`` is standard input. It may be packed with gzip, bzip2, xz or zstd, or be
        the one table in a zip archive. Or the URI of a database: ``"sqlite:///shop.db"``,
        ``"duckdb:///shop.duckdb"`` or ``"postgresql://ada@host/shop"``, with the table behind a
        ``#`` or by `query` or `table_name`. Several files of one kind with the same columns are one
        table: a list, a folder, or a pattern such as ``"data/*.csv"``, in the order of their names.
        All but a folder of Parquet files get a column ``file`` that says where a row comes from; of
        files of one name in such folders, with a number. Folders named ``column=value`` in it, or
        that files of a list or a pattern lie in, give a column more. An address in an object store,
        such as ``"s3://bucket/table.csv"`` (``gs://``, ``az://``), is read as a file or folder is.
    delimiter : str, optional
        One character, or its name (``"tab"``, ``"space"``). Sniffed by default.
    encoding : str, optional
        Of a text file. By default a byte-order mark decides, then UTF-8, then cp1252.
    sheet : str or int, optional
        Of a workbook: its name, or its number from 1. By default the first.
    skip_rows : int
        Lines above the header of a text, or rows of a sheet, to leave out. By default titles are
        found.
    bad_lines : {"refuse", "skip"}
        What to do with lines of a text that cannot be read or have other numbers of cells than the
        header. Those that are left out are listed among the notes of the source.
    layout : {"auto", "off"}, optional
        Of a text or a sheet: whether titles, units, repeated headers, totals and footers are left
        out, and labels that stand once a block filled down, as is the default; or the first row
        names the columns and all others are data. The notes of the source list what is left out or
        filled.
    as_of : str, int or datetime, optional
        Of a Delta table: the number of the version, or a time, of which the last before it is read;
        UTC, unless it has a zone. By default the latest.
    query : str, optional
        Of a database: the SELECT whose rows are read. It runs in a transaction that can only read.
    table_name : str, optional
        Of a database: the table that is read, by its name or as ``schema.name``.
    timeout : float, optional
        Of a database: seconds that reading may take; by default as long as it takes.
    in_memory_rows : int
        Up to so many rows, the table is read at once.
    part_rows : int, optional
        Rows of a part; by default a power of two that depends on the number of columns.

    Returns
    -------
    Table or PartedTable
        The cells, their lines, and how they were read; or, for more rows, the table in parts. All
        but Parquet is read from end to end here, so that no part of it is refused later.

    Raises
    ------
    ConfigError
        If `delimiter` or `encoding` cannot be used, or Excel lacks its extra.
    InputError
        If the file is missing, empty, undecodable, ragged, or not a table, or a temporary file it
        needs does not fit on its disk.
    MemoryLimitError
        If what must be in memory at once would not fit.

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
    r"""Read a table into memory, however many rows it has.

    Parameters
    ----------
    path : str or Path, or a list of them
        As for `open_table`.
    **reading
        How it is read: `delimiter` and the others of `open_table`, up to `timeout`.

    Returns
    -------
    Table
        The cells, their lines, and how they were read.

    Raises
    ------
    ConfigError, InputError, MemoryLimitError
        As for `open_table`; also if it would not fit into memory.

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
    """Name the files that are meant: one, a list of them, a pattern's, or those of a folder.

    A folder with Parquet files is left as it is.
    """
    if isinstance(path, str | Path):
        paths = [path]
    else:
        paths = list(path)
        if not paths:
            raise InputError("no file is named; name at least one.")
    found: list[str | Path] = []
    for one in paths:
        text = str(one)
        _refuse_lost_slashes(one)
        if scheme_of(one) in STORE_SCHEMES:
            found += expand_address(text)
        elif scheme_of(one) is not None:
            found.append(text)
        elif any(sign in text for sign in _PATTERN) and not os.path.lexists(text):
            start = Path(Path(text).anchor)
            pattern = str(Path(text).relative_to(start))
            try:
                matches = sorted(
                    match
                    for match in start.glob(pattern)
                    # As in a shell, a pattern does not mean hidden files.
                    if not (match.name.startswith(".") or match.is_dir())
                )
            except (ValueError, NotImplementedError, OSError) as error:
                raise InputError(f"{one_line(str(error))}.", text) from None
            if not matches:
                raise InputError("no file has such a name.", text)
            found += matches
        elif text != "-" and Path(one).is_dir():
            found += _folder(Path(one))
        else:
            found.append(one)
    seen: set[str] = set()
    for one in found:
        real = str(one) if scheme_of(one) is not None else os.path.realpath(one)
        if real in seen and len(found) > 1:
            raise InputError("is named twice; leave one out.", str(one))
        seen.add(real)
    return found


def _refuse_lost_slashes(given: str | Path) -> None:
    """Refuse what begins as the address of a database, but with fewer slashes."""
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
    """Name the tables that are meant, each by itself: of a Parquet folder all files."""
    found: list[str | Path] = []
    for one in expand(path):
        is_whole = str(one) == "-" or scheme_of(one) is not None or is_delta(Path(one))
        items: list[Path] = []
        if not is_whole and Path(one).is_dir():
            with suppress(InputError):  # what is wrong with it is said by who opens it
                items = unhidden(Path(one))
        files = [item for item in items if item.suffix.lower() in TABLE_SUFFIXES]
        found += [item for item in files if item.is_file()] or [one]
    return found


def _folder(folder: Path) -> list[str | Path]:
    """Name the files of a folder, or the folder itself if it is one table, or has no tables."""
    if folder.absolute().name == LOG:
        table = one_line(str(folder.parent if folder.name else folder.absolute().parent), 200)
        raise InputError(f"this is the log of a Delta table; name {table}", folder)
    try:
        items = unhidden(folder)
    except InputError:
        return [folder]  # what is wrong with it is said by who opens it
    if is_delta(folder) or any(item.suffix.lower() in PARQUET_SUFFIXES for item in items):
        return [folder]
    files: list[str | Path] = [item for item in items if item.suffix.lower() in TABLE_SUFFIXES]
    return files or [folder]


def _open(path: str | Path, options: ReadOptions) -> Table | PartedTable:
    """Open what one name stands for; what is wrong with it is told with its name."""
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
    """Open an object of a store, or what is a folder there, by way of a copy."""
    place = place_of(found.uri)
    kind = place.kind()
    if not kind:
        raise InputError(place.missing())
    if kind == "folder":
        return read_by(FOLDERS, Folder(StorePath(place.address), found.options))
    return read_by(FILES, copied_file(spool(place.chunks()), place.address, found.options))


def _refuse_scheme(found: Address) -> Table | PartedTable:
    """Refuse an address of another kind; another database is no misspelling of one that is read."""
    scheme = scheme_of(found.uri)
    known = [f"{name}://" for name in (*DATABASE_KINDS, *STORE_SCHEMES)]
    instead = suggest(f"{scheme}://", known)
    if scheme in _OTHER_DATABASES:
        instead = " Export it to CSV or Parquet, or pass an Arrow stream from Python."
    raise InputError(f"{scheme}:// cannot be read; supported are {in_prose(known)}.{instead}")


def _read_copies(folder: Folder) -> Table | PartedTable:
    """Read a folder of a store that is one table, by way of a copy."""
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
    """Read a folder of folders that are named after values of columns."""
    files = partitioned_files(Path(folder.path), TABLE_SUFFIXES)
    if any(path.suffix.lower() in PARQUET_SUFFIXES for path, _ in files):
        return read_by([PARQUET_FOLDER], folder)
    paths, values = zip(*files, strict=True)
    return open_several(paths, folder.options, _open, values)


def _read_text(file: InputFile) -> Table | PartedTable:
    """Read a file as text, of cp1252 where it is not UTF-8."""
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
        # In another encoding, other characters may cut the cells: to be known first.
        text.require_utf8()
        raise


# What each is read by: the first of a list that knows it. `_open` begins with an address, a folder
# or a file; what no other reader of files knows is text, and the last reads any text.
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
    Reader("text", "delimiter encoding skip_rows bad_lines", _read_text),
]
TEXTS: list[Reader[Text]] = [JSON, DELIMITED]
