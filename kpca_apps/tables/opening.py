"""From a path to a table: in memory where it is small, else in parts.

The format is decided by what the file holds, not by what it is called. Text stays text: what its
cells mean is decided later, a column at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kpca_apps.errors import InputError
from kpca_apps.names import one_line
from kpca_apps.system.memory import ROWS_IN_MEMORY
from kpca_apps.system.spools import remove_spools
from kpca_apps.tables.input_file import InputFile, find_file, only_member, packing_of
from kpca_apps.tables.read import registry
from kpca_apps.tables.read.excel import is_workbook
from kpca_apps.tables.read.parquet import PARQUET_SUFFIXES, read_folder
from kpca_apps.tables.read.text import NotUtf8, Text
from kpca_apps.tables.read_options import ReadOptions
from kpca_apps.tables.several import combined, expand
from kpca_apps.tables.table import PartedTable, Table, collect

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second without any file in it
_BINARY_SUFFIXES = (
    *PARQUET_SUFFIXES, ".xlsx", ".xls", ".xlsm", ".xlsb", ".arrow", ".feather", ".ipc",
)  # fmt: skip
# Contents that are no table of ours, and what to call them.
_FOREIGN = {
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"SQLite format 3\0": "a database",
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
    in_memory_rows: float = ROWS_IN_MEMORY,
    part_rows: int | None = None,
) -> Table | PartedTable:
    r"""Open a table of any size.

    Parameters
    ----------
    path : str or Path, or a list of them
        The file; ``"-"`` is standard input. Several files of one kind with the same columns are one
        table: a list, a folder, or a pattern such as ``"data/*.csv"``, in the order of their names.
        All but a folder of Parquet files get a column ``file`` that says where a row comes from.
    delimiter, encoding, sheet, skip_rows, bad_lines
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
        delimiter, encoding, sheet, skip_rows, bad_lines, in_memory_rows, part_rows
    )
    remove_spools()
    paths = expand(path)
    if len(paths) > 1:
        return _open_several(paths, options)
    (path,) = paths
    if str(path) != "-" and Path(path).is_dir():
        return read_folder(Path(path), options)
    return _open(find_file(path, options))


def read_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | int | None = None,
    skip_rows: int = 0,
    bad_lines: str = "refuse",
) -> Table:
    r"""Read a table: delimited text, JSON, Parquet, Arrow or Excel, packed or not.

    Parameters
    ----------
    path : str or Path
        The file; ``"-"`` reads standard input. It may be packed with gzip, bzip2, xz or zstd, or be
        the one table in a zip archive.
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
    options = ReadOptions(delimiter, encoding, sheet, skip_rows, bad_lines)
    table = _open(find_file(path, options))
    assert isinstance(table, Table)
    return table


def _open_several(paths: list[str | Path], options: ReadOptions) -> Table | PartedTable:
    """Open several files as one table; in memory as long as all of them are few rows."""
    tables: list[Table | PartedTable] = []
    left = options.in_memory_rows
    for path in paths:
        if str(path) == "-" or Path(path).is_dir():
            what = "standard input" if str(path) == "-" else one_line(str(path), 200)
            raise InputError(f"{what}: is no file, and cannot be one of several.")
        tables.append(_open(find_file(path, replace(options, in_memory_rows=left))))
        left -= min(left, tables[-1].source.n_rows)
    rows, source = combined(tables, [str(path) for path in paths])
    label = one_line(source.name, 200)
    return collect(
        rows, source, label, lambda: source.sha256, options.in_memory_rows, options.part_rows
    )


def _open(file: InputFile) -> Table | PartedTable:
    """Read a file with the reader that knows it, or the one table of a zip archive."""
    if file.head.startswith(_ZIP) and not is_workbook(file):
        return _open(only_member(file))
    # A header of text may start with the same letters, but not end with them as well.
    is_text = not file.is_binary and file.tail != file.head[:4]
    for reader in registry.FILE_READERS:
        if file.head.startswith(reader.beginnings) and not is_text:
            file.options.refuse_others(reader.options, reader.kind, file.label)
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
    label = file.label
    if twice := packing_of(file.head):
        raise InputError(f"{label}: this is packed with {twice} twice, not a table; unpack it.")
    for beginning, what in _FOREIGN.items():
        if file.head.startswith(beginning):
            raise InputError(f"{label}: this is {what}, not a table; export it as CSV or Parquet.")
    if file.suffix in _BINARY_SUFFIXES and file.is_binary:
        raise InputError(
            f"{label}: the contents are not what {file.suffix} promises; export it again."
        )
    file.options.refuse_others("delimiter encoding skip_rows bad_lines", "text", label)
    text = Text(file)
    try:
        reader = next(one for one in registry.TEXT_READERS if one.knows is None or one.knows(text))
        file.options.refuse_others(reader.options, reader.kind, file.label)
        return reader.read(text)
    except NotUtf8:
        raise
    except InputError:
        # In another encoding, other characters may cut the cells: to be known first.
        text.require_utf8()
        raise
