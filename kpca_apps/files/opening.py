"""Open a table of any size: in memory where it is small, else in parts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from kpca_apps.errors import InputError
from kpca_apps.files.formats import (
    HEAD,
    binary_format,
    checked_delimiter,
    refuse_text_options,
)
from kpca_apps.files.known import KnownFile
from kpca_apps.files.names import one_line
from kpca_apps.files.opening_text import has_many_lines, parted_text
from kpca_apps.files.output import remove_spools
from kpca_apps.files.parquet_groups import LONGEST_GROUP, group_rows, regrouped
from kpca_apps.files.parts import IN_MEMORY_ROWS, PartedTable, part_size, parted, parted_table
from kpca_apps.files.parts_parquet import ParquetFiles, folder_files, open_parquet
from kpca_apps.files.source import SourceInfo
from kpca_apps.files.stored import StoredFile, store
from kpca_apps.files.tables import Table, table_from_raw
from kpca_apps.temporary import TemporaryPath

__all__ = ["open_table"]


@dataclass(frozen=True)
class _Limits:
    """Rows up to which a table is read into memory, and rows of a part."""

    in_memory: int
    part: int | None


def open_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    in_memory_rows: int = IN_MEMORY_ROWS,
    part_rows: int | None = None,
) -> Table | PartedTable:
    r"""Open a table of any size.

    Parameters
    ----------
    path : str or Path
        The file; ``"-"`` is standard input. A folder of Parquet files with the same columns is one
        table, its files in the order of their names.
    delimiter, encoding : str, optional
        As for `read_table`.
    in_memory_rows : int
        Up to so many rows, the table is read at once.
    part_rows : int, optional
        Rows of a part; by default a power of two that depends on the number of columns.

    Returns
    -------
    Table or PartedTable
        What `read_table` returns; or, for more rows, the table in parts. Text is checked from end
        to end here, so that no part of it is refused later.

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
    cutter = checked_delimiter(delimiter)
    limits = _Limits(in_memory_rows, part_rows)
    remove_spools()
    if str(path) != "-" and Path(path).is_dir():
        return _open_folder(Path(path), limits, cutter, encoding)
    stored = store(path)
    head, tail = stored.head(HEAD), stored.tail(4)
    kind = binary_format(head, tail, stored.label, stored.suffix, is_workbook=True)
    found: PartedTable | None = None
    if kind == "parquet":
        refuse_text_options(kind, stored.label, cutter, encoding)
        found = _parted_parquet(stored, limits)
    elif kind is None and has_many_lines(stored.file, limits.in_memory, encoding):
        found = parted_text(stored, limits.in_memory, limits.part, cutter, encoding)
    if found is not None:
        return found
    table = table_from_raw(stored.raw(), cutter, encoding)
    if table.frame.height <= in_memory_rows:
        return table
    return parted(table, part_rows=part_rows)


def _open_folder(
    path: Path, limits: _Limits, delimiter: str | None, encoding: str | None
) -> Table | PartedTable:
    """Take the Parquet files of a folder for one table."""
    known = folder_files(path)
    refuse_text_options("parquet", one_line(str(path), 200), delimiter, encoding)
    files = open_parquet(known)
    if not files.n_rows:
        raise InputError(f"{one_line(str(path), 200)}: its files have no rows; name another.")
    listing = hashlib.sha256()
    for file in known:
        listing.update(f"{_sha256(file)}  {Path(file.path).name}\n".encode())
    noun = "file" if len(known) == 1 else "files, in the order of their names"
    source = SourceInfo(
        name=path.absolute().name,
        format="parquet",
        sha256=listing.hexdigest(),
        n_bytes=sum(file.size for file in known),
        n_rows=files.n_rows,
        n_columns=len(files.columns),
        notes=(f"Read from {len(known)} Parquet {noun}.",),
    )
    table = _parquet_table(files, source, limits)
    return table if files.n_rows > limits.in_memory else table.rows(range(files.n_rows))


def _parted_parquet(stored: StoredFile, limits: _Limits) -> PartedTable | None:
    files = open_parquet([stored.file])
    if files.n_rows <= limits.in_memory:
        return None
    source = SourceInfo(
        name=stored.name,
        format="parquet",
        sha256=stored.sha256 or _sha256(stored.file),
        n_bytes=stored.n_bytes,
        n_rows=files.n_rows,
        n_columns=len(files.columns),
        notes=stored.notes,
    )
    return _parquet_table(files, source, limits, stored.spools)


def _parquet_table(
    files: ParquetFiles, source: SourceInfo, limits: _Limits, spools: tuple[TemporaryPath, ...] = ()
) -> PartedTable:
    size = limits.part or part_size(source.n_columns)
    known: list[KnownFile] = []
    for file in files.files:
        if group_rows(file) > LONGEST_GROUP:
            file, copy = regrouped(file, size)
            spools = (*spools, copy)
        known.append(file)
    rows = tuple(replace(files, files=tuple(known)).parts(size))
    return parted_table(source, files.columns, rows, size, spools)


def _sha256(file: KnownFile) -> str:
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    return digest.hexdigest()
