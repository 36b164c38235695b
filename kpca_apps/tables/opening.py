"""From a path to a table: in memory where it is small, else in parts.

The format is decided by what the file holds, not by what it is called. Text stays text: what its
cells mean is decided later, a column at a time.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import polars as pl
import pyarrow as pa

from kpca_apps.errors import InputError, UnlikeFilesError, about
from kpca_apps.names import TABLE_SUFFIXES, one_line
from kpca_apps.options import READING
from kpca_apps.system.files.spools import remove_spools, spool
from kpca_apps.system.files.temporary import TemporaryPath
from kpca_apps.system.files.texts import NotUtf8
from kpca_apps.system.memory import ROWS_IN_MEMORY
from kpca_apps.system.stores.addresses import STORE_SCHEMES, StorePath
from kpca_apps.system.stores.buckets import place_of
from kpca_apps.tables.databases.address import scheme_of_file
from kpca_apps.tables.databases.reading import DATABASES
from kpca_apps.tables.input_file import InputFile, ReadOptions, copied_file, find_file
from kpca_apps.tables.read.arrow import ARROW
from kpca_apps.tables.read.delimited import DELIMITED
from kpca_apps.tables.read.delta import LOG, is_delta, read_delta
from kpca_apps.tables.read.excel import EXCEL
from kpca_apps.tables.read.hive import (
    beside,
    folder_values,
    frame_of_values,
    is_partitioned,
    partitioned_files,
    unhidden,
)
from kpca_apps.tables.read.json import JSON
from kpca_apps.tables.read.parquet import PARQUET, PARQUET_SUFFIXES, read_folder
from kpca_apps.tables.read.reader import Reader
from kpca_apps.tables.read.remote import copied_folder, expand_address, holds_delta, named_after
from kpca_apps.tables.read.text import Text
from kpca_apps.tables.read.uri import UriReader, open_uri, refuse_password, scheme_of
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import (
    PartedTable,
    Rows,
    Table,
    as_arrow,
    collect,
    common_types,
    require_same_columns,
    typed_columns,
    unlike_formats,
)

# The first that knows a file reads it; what none knows is text, and the last reads any text.
FILE_READERS: list[Reader[InputFile]] = [PARQUET, ARROW, EXCEL]
TEXT_READERS: list[Reader[Text]] = [JSON, DELIMITED]
_PATTERN = "*?["
_FEW_SLASHES = re.compile(r"(sqlite|duckdb|postgres|postgresql):(/?[^/].*)", re.I | re.DOTALL)
_MOST_NOTES = 20
_BINARY_SUFFIXES = (
    *PARQUET_SUFFIXES, ".xlsx", ".xls", ".xlsm", ".xlsb", ".arrow", ".feather", ".ipc",
)  # fmt: skip
# Contents that are no table of ours, and what to call them.
_FOREIGN = {
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"FEA1": "a Feather file of the first version",
}


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
    r"""Open a table of any size.

    Parameters
    ----------
    path : str or Path, or a list of them
        The file; ``"-"`` is standard input; or the URI of a database. Several files of one kind
        with the same columns are one table: a list, a folder, or a pattern such as
        ``"data/*.csv"``, in the order of their names. All but a folder of Parquet files get a
        column ``file`` that says where a row comes from; of files of one name in such folders, with
        a number. Folders named ``column=value`` in it, or
        that files of a list or a pattern lie in, give a column more. An address in an object store,
        such as ``"s3://bucket/table.csv"`` (``gs://``, ``az://``), is read as a file or folder is.
    delimiter, encoding, sheet, skip_rows, bad_lines, layout, as_of, query, table_name, timeout
        As for `read_table`.
    in_memory_rows : int
        Up to so many rows, the table is read at once.
    part_rows : int, optional
        Rows of a part; by default a power of two that depends on the number of columns.

    Returns
    -------
    Table or PartedTable
        What `read_table` returns; or, for more rows, the table in parts. All but Parquet is read
        from end to end here, so that no part of it is refused later.

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
    options = ReadOptions(
        delimiter,
        encoding,
        sheet,
        skip_rows,
        bad_lines,
        layout,
        as_of,
        query,
        table_name,
        timeout,
        in_memory_rows,
        part_rows,
    )
    remove_spools()
    paths = expand(path)
    if len(paths) > 1:
        return _open_several(paths, options)
    (path,) = paths
    if str(path) == "-" or scheme_of(path) is not None or not Path(path).is_dir():
        return _open_file(path, options)
    return _open_folder(Path(path), options)


def read_table(
    path: str | Path,
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
) -> Table:
    r"""Read a table: delimited text, JSON, Parquet, Arrow or Excel, packed or not.

    Parameters
    ----------
    path : str or Path
        The file; ``"-"`` reads standard input. It may be packed with gzip, bzip2, xz or zstd, or be
        the one table in a zip archive. Or the URI of a database: ``"sqlite:///shop.db"``,
        ``"duckdb:///shop.duckdb"`` or ``"postgresql://ada@host/shop"``, with the table behind a
        ``#`` or by `query` or `table_name`.
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
        out, and labels that stand once a block filled down, as is the
        default; or the first row names the columns and all others are data. The notes of the source
        list what is left out or filled.
    as_of : str, int or datetime, optional
        Of a Delta table: the number of the version, or a time, of which the last before it is read;
        UTC, unless it has a zone. By default the latest.
    query : str, optional
        Of a database: the SELECT whose rows are read. It runs in a transaction that can only read.
    table_name : str, optional
        Of a database: the table that is read, by its name or as ``schema.name``.
    timeout : float, optional
        Of a database: seconds that reading may take; by default as long as it takes.

    Returns
    -------
    Table
        The cells, their lines, and how they were read.

    Raises
    ------
    ConfigError
        If `delimiter` or `encoding` cannot be used, or Excel lacks its extra.
    InputError
        If the file is missing, empty, undecodable, ragged, or not a table.
    MemoryLimitError
        If it would not fit into memory.

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
    options = ReadOptions(
        delimiter, encoding, sheet, skip_rows, bad_lines, layout, as_of, query, table_name, timeout
    )
    table = _open_file(path, options)
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
        files = [] if is_whole or not Path(one).is_dir() else _tables_in(Path(one))
        found += files or [one]
    return found


def _tables_in(folder: Path) -> list[Path]:
    """Name the files of a folder that are tables, by what they are called; none if it is closed."""
    try:
        items = unhidden(folder)
    except InputError:
        return []
    return [item for item in items if item.suffix.lower() in TABLE_SUFFIXES and item.is_file()]


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


def _open_several(
    paths: Sequence[str | Path],
    options: ReadOptions,
    values: Sequence[Mapping[str, str | None]] | None = None,
) -> Table | PartedTable:
    """Open several files as one table; in memory as long as all of them are few rows.

    The `values` that the folders of each file are named after become columns.
    """
    tables: list[Table | PartedTable] = []
    left = options.in_memory_rows
    for path in paths:
        is_elsewhere = scheme_of(path) not in (None, *STORE_SCHEMES)
        if str(path) == "-" or is_elsewhere or Path(path).is_dir():
            what = "standard input" if str(path) == "-" else path
            raise InputError("is no file, and cannot be one of several.", what)
        tables.append(_open_file(path, replace(options, in_memory_rows=left)))
        left -= min(left, tables[-1].source.n_rows)
    if values is None:
        values = folder_values([Path(path).absolute() for path in paths])
    rows, source = _combined(tables, [str(path) for path in paths], values)
    with about(source.name):
        return collect(
            rows, source, lambda: source.sha256, options.in_memory_rows, options.part_rows
        )


def _combined(
    tables: Sequence[Table | PartedTable],
    labels: Sequence[str],
    values: Sequence[Mapping[str, str | None]],
) -> tuple[Rows, SourceInfo]:
    """Put tables together, as rows still to be taken in; all need the columns of the first."""
    first = tables[0]
    names, model = list(first.columns), one_line(labels[0], 200)
    for table, label in zip(tables, labels, strict=True):
        if table.source.format != first.source.format:
            raise UnlikeFilesError(
                f"is {table.source.format} and {model} is {first.source.format}; the files of "
                "one table are of one kind.",
                label,
            )
        with about(label):
            require_same_columns(table.columns, names, model, "the files of one table")
    paths = [Path(label).absolute() for label in labels]
    # Without the folders whose values are those of columns, which may be hidden.
    above = [path.parents[len(values[0]) if values else 0] for path in paths]
    shared = Path(os.path.commonpath(above))
    shown = [
        str((folder / path.name).relative_to(shared))
        for folder, path in zip(above, paths, strict=True)
    ]
    n_of, so_far = Counter(shown), Counter[str]()
    for place, name in enumerate(shown):
        if n_of[name] > 1:
            so_far[name] += 1
            shown[place] = f"{name} #{so_far[name]}"
    named = list(zip(shown, tables, strict=True))
    heads = [next(table.tables()) for table in tables]
    types = common_types([head.frame.schema for head in heads], names)
    formats, of_formats = unlike_formats(dict(zip(shown, heads, strict=True)))
    has_lines = heads[0].lines is not None
    of_files = pl.DataFrame()
    if values and has_lines:
        of_files = pl.DataFrame([{name: v or "" for name, v in one.items()} for one in values])
    elif values:
        of_files = frame_of_values(values)
    # Some writers keep these columns in the files as well.
    of_files = pl.DataFrame([one for one in of_files.iter_columns() if one.name not in names])
    file_column = "file"
    while file_column in (*names, *of_files.columns):
        file_column += "_"
    of_rows = pl.Series(file_column, [one_line(name, 200) for name in shown], pl.String)
    of_files = pl.DataFrame([*of_files.iter_columns(), of_rows])

    def pieces() -> Iterator[pa.Table]:
        for number, (label, table) in enumerate(named):
            for part in table.tables():
                alike = [part.column(name).in_format(*of) for name, of in formats[label].items()]
                frame = typed_columns(part.frame.with_columns(alike), types)
                frame = beside(frame, of_files.slice(number, 1))
                yield as_arrow(frame, part.lines if has_lines else None)

    listing = "".join(
        f"{table.source.sha256}  {path.relative_to(shared)}\n"
        for path, table in zip(paths, tables, strict=True)
    )
    files_of: dict[str, list[str]] = {}
    for name, table in named:
        for note in table.source.notes:
            files_of.setdefault(note, []).append(name)
    notes = [f"{_which(files, len(tables))}: {note}" for note, files in files_of.items()]
    notes += of_formats
    first_with: dict[str, str] = {}
    for name, table in named:
        other = first_with.setdefault(table.source.fingerprint, name)
        if other != name and not values:
            same = f"{one_line(name, 60)} holds the same bytes as {one_line(other, 60)}."
            notes.append(f"{same} Its rows are counted twice; leave one out if it is a copy.")
    order = "; those of one name are numbered in the order of their folders" if so_far else ""
    more = len(notes) - _MOST_NOTES
    if more > 0:
        notes[_MOST_NOTES:] = [f"{more} more such remarks on how the files were read."]
    source = SourceInfo(
        f"{shared.name or 'files'} ({len(tables)} files)",
        first.source.format,
        hashlib.sha256(os.fsencode(listing)).hexdigest(),
        sum(table.source.n_bytes for table in tables),
        0,
        0,
        first.source.encoding,
        first.source.delimiter,
        (f'Read from {len(tables)} files, named in the column "{file_column}"{order}.', *notes),
        file_column,
        hashlib.sha256("".join(t.source.fingerprint for t in tables).encode()).hexdigest(),
        renamed=tuple(dict.fromkeys(pair for t in tables for pair in t.source.renamed)),
    )
    return Rows(pieces(), [*names, *of_files.columns], [], has_lines), source


def _which(files: Sequence[str], n_files: int) -> str:
    """Name the files that something is said of, or say how many they are."""
    first = one_line(files[0], 60)
    if len(files) == 1:
        return first
    return f"All {n_files} files" if len(files) == n_files else f"{first} and {len(files) - 1} more"


def _open_folder(
    folder: Path, options: ReadOptions, copy: TemporaryPath | None = None
) -> Table | PartedTable:
    """Open a folder that is one table, which may be a temporary copy."""
    with about(folder):
        if is_delta(folder):
            return read_delta(folder, options)
        if any((folder / "metadata").glob("*.metadata.json")):
            raise InputError(
                "this is an Iceberg table; read it with pyiceberg, and give screen_table what its "
                "scan().to_arrow_batch_reader() returns."
            )
        if is_partitioned(folder):
            files = partitioned_files(folder, TABLE_SUFFIXES)
            if not any(path.suffix.lower() in PARQUET_SUFFIXES for path, _ in files):
                paths, values = zip(*files, strict=True)
                return _open_several(paths, options, values)
        return read_folder(folder, options, copy)


def _open_address(address: str, options: ReadOptions) -> Table | PartedTable:
    """Open an object of a store, or what is a folder there, by way of a copy."""
    place = place_of(address)
    kind = place.kind()
    if not kind:
        raise InputError(place.missing())
    if kind == "file":
        return _read(copied_file(spool(place.chunks()), place.address, options))
    if holds_delta(place):
        return read_delta(StorePath(place.address), options)
    copy, folder = copied_folder(place)
    with named_after(folder, place.address):
        return _open_folder(folder, options, copy)


def _open_file(path: str | Path, options: ReadOptions) -> Table | PartedTable:
    """Read a file; what is wrong with it is told with its name."""
    if scheme_of(path) is not None:
        return open_uri(str(path), URI_READERS, options)
    file = find_file(path, options)
    with about(file.label):
        return _read(file)


def _read(file: InputFile) -> Table | PartedTable:
    """Read a file with the reader that knows it."""
    # A header of text may start with the same letters, but not end with them as well.
    is_text = not file.is_binary and file.tail != file.head[:4]
    for reader in FILE_READERS:
        if file.head.startswith(reader.beginnings) and not is_text:
            file.options.refuse_others(reader.options, reader.kind)
            return reader.read(file)
    try:
        return _read_text(file)
    except NotUtf8 as error:
        if file.options.encoding is not None:
            raise
        note = (
            f"Read as cp1252 (Windows, western Europe): byte 0x{error.byte:02x} on line "
            f"{error.line} is not UTF-8."
        )
    options = replace(file.options, encoding="cp1252")
    return _read_text(replace(file, options=options, notes=(note,)))


def _read_text(file: InputFile) -> Table | PartedTable:
    """Read a file as text, unless it is known to be none."""
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
        raise InputError(f"the contents are not what {file.suffix} promises; export it again.")
    file.options.refuse_others("delimiter encoding skip_rows bad_lines", "text")
    text = Text(file)
    try:
        reader = next(one for one in TEXT_READERS if one.knows is None or one.knows(text))
        file.options.refuse_others(reader.options, reader.kind)
        return reader.read(text)
    except NotUtf8:
        raise
    except InputError:
        # In another encoding, other characters may cut the cells: to be known first.
        text.require_utf8()
        raise


# What is named by a URI is known by its scheme.
URI_READERS = (
    DATABASES,
    UriReader(STORE_SCHEMES, "an object store", " ".join(READING), _open_address),
)
