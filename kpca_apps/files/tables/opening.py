"""From a path to a table: in memory where it is small, else in parts.

The format is decided by what the file holds, not by what it is called. Text stays text: what its
cells mean is decided later, a column at a time.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import polars as pl

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.limits import require_memory, require_table
from kpca_apps.files.names import one_line
from kpca_apps.files.output import remove_spools, spool
from kpca_apps.files.tables.jsonlines import JSON_OBJECT, json_pieces
from kpca_apps.files.tables.parquet import (
    LONGEST_GROUP,
    PARQUET_SUFFIXES,
    ParquetFiles,
    folder_files,
)
from kpca_apps.files.tables.source import GZIP, InputFile, KnownFile, find_file
from kpca_apps.files.tables.table import (
    PartedTable,
    Rows,
    SourceInfo,
    Table,
    collect,
    part_size,
    parted_table,
    require_cells,
)
from kpca_apps.files.tables.text import DelimitedText, NotUtf8, decoded, encoding_of, with_newlines
from kpca_apps.memory import ROWS_IN_MEMORY
from kpca_apps.temporary import TemporaryPath

__all__ = ["open_table", "read_table"]

_JSON_SUFFIXES = (".jsonl", ".ndjson")
_EXCEL_SUFFIXES = (".xlsx", ".xls", ".xlsm")
_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0"
# Contents that are no table of ours, and what to call them.
_FOREIGN = (
    (_ZIP, "a zip archive"),
    (GZIP, "packed with gzip twice"),
    (b"BZh91AY&SY", "packed with bzip2"),
    (b"\xfd7zXZ", "packed with xz"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"SQLite format 3\0", "a database"),
    (b"ARROW1\0", "an Arrow file"),
)
_NAMED_DELIMITERS = {
    "comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|", "space": " ",
}  # fmt: skip


def open_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    in_memory_rows: float = ROWS_IN_MEMORY,
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
    cut = None if delimiter is None else _character(delimiter)
    remove_spools()
    if str(path) == "-" or not Path(path).is_dir():
        return _open(find_file(path), cut, encoding, in_memory_rows, part_rows)
    known, label = folder_files(Path(path)), one_line(str(path), 200)
    _refuse_text_options(cut, encoding, "parquet", label)
    noun = "file" if len(known) == 1 else "files, in the order of their names"
    notes = (f"Read from {len(known)} Parquet {noun}.",)
    n_bytes = sum(file.size for file in known)
    source = SourceInfo(Path(path).absolute().name, "", "", n_bytes, 0, 0, notes=notes)

    def hash_of_listing() -> str:
        lines = (f"{file.sha256()}  {Path(file.path).name}\n" for file in known)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    return _parquet(known, source, hash_of_listing, label, in_memory_rows, part_rows)


def read_table(
    path: str | Path, *, delimiter: str | None = None, encoding: str | None = None
) -> Table:
    r"""Read a table: delimited text, JSON lines, Parquet or Excel, packed with gzip or not.

    Parameters
    ----------
    path : str or Path
        The file; ``"-"`` reads standard input.
    delimiter : str, optional
        One character, or its name (``"tab"``, ``"space"``). Sniffed by default.
    encoding : str, optional
        Of a text file. By default a byte-order mark decides, then UTF-8, then cp1252.

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
    cut = None if delimiter is None else _character(delimiter)
    table = _open(find_file(path), cut, encoding)
    assert isinstance(table, Table)
    return table


def _character(delimiter: str) -> str:
    """Turn a delimiter as the user gives it into one character."""
    character = _NAMED_DELIMITERS.get(delimiter.lower(), delimiter)
    is_half = "\ud800" <= character[:1] <= "\udfff"
    if len(character) != 1 or character in '\0"\r\n' or character.isalnum() or is_half:
        raise ConfigError(
            f'The delimiter "{one_line(delimiter)}" is not one character that can cut cells; '
            'give one such as ";", or "tab".'
        )
    return character


def _open(
    file: InputFile,
    delimiter: str | None,
    encoding: str | None,
    in_memory_rows: float = inf,
    part_rows: int | None = None,
) -> Table | PartedTable:
    """Open a file by what it holds; the delimiter is one character."""
    head, known = file.head, file.file
    label, is_binary = known.label, b"\0" in head
    notes = ("Unpacked from gzip.",) if known.is_packed else ()
    source = SourceInfo(file.name, "", "", known.size, 0, 0, notes=notes)
    # A header of text may start with these letters too.
    if head.startswith(b"PAR1") and (is_binary or file.tail == b"PAR1"):
        _refuse_text_options(delimiter, encoding, "parquet", label)
        copy = spool(known.chunks(), label) if known.is_packed else file.copy
        readable = KnownFile.at(copy.path, label) if copy else known
        return _parquet([readable], source, known.sha256, label, in_memory_rows, part_rows, copy)
    if head.startswith((_ZIP, _OLE)):
        digest = hashlib.sha256()
        data = _whole(known, digest)
        # A workbook begins as any zip archive does; its parts have telling names.
        if head.startswith(_OLE) or b"xl/" in data:
            from kpca_apps.files.tables.excel import read_excel

            _refuse_text_options(delimiter, encoding, "excel", label)
            frame, remarks = read_excel(data, label)
            pieces = [frame.to_arrow(compat_level=pl.CompatLevel.oldest())]
            rows = Rows(iter(pieces if frame.height else []), frame.columns, remarks, False)
            source = replace(source, format="excel")
            return collect(rows, source, label, digest.hexdigest, in_memory_rows, part_rows)
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise InputError(f"{label}: this is {what}, not a table; export it as CSV or Parquet.")
    if file.suffix in (*PARQUET_SUFFIXES, *_EXCEL_SUFFIXES) and is_binary:
        raise InputError(
            f"{label}: the contents are not what {file.suffix} promises; export it again."
        )

    # A text, in the encoding that is given, marked, or fits.
    codec, name, remark = encoding_of(head, encoding)
    source = replace(source, encoding=name, notes=notes + remark)
    try:
        try:
            return _text(file, source, codec, delimiter, in_memory_rows, part_rows)
        except NotUtf8:
            raise
        except InputError:
            # In another encoding, other characters may cut the cells: to be known first.
            if codec == "utf-8":
                deque(decoded(known.chunks(), codec, label), maxlen=0)
            raise
    except NotUtf8 as error:
        if encoding is not None:
            raise
        note = (
            f"Read as cp1252 (Windows, western Europe): byte 0x{error.byte:02x} on line "
            f"{error.line} is not UTF-8."
        )
    source = replace(source, encoding="cp1252", notes=(*notes, note))
    return _text(file, source, "cp1252", delimiter, in_memory_rows, part_rows)


def _whole(file: KnownFile, digest: Any) -> bytes:
    """Return all a file holds, for formats that cannot be read in a stream."""
    require_memory(file.label, file.size)
    held = bytearray()
    for chunk in file.chunks(digest):
        held += chunk
        require_memory(file.label, len(held))
    return bytes(held)


def _refuse_text_options(
    delimiter: str | None, encoding: str | None, kind: str, label: str
) -> None:
    if delimiter is not None or encoding is not None:
        raise ConfigError(f"{label}: a delimiter or encoding does not apply to {kind}.")


def _parquet(
    known: list[KnownFile],
    source: SourceInfo,
    sha256: Callable[[], str],
    label: str,
    in_memory_rows: float,
    part_rows: int | None,
    copy: TemporaryPath | None = None,
) -> Table | PartedTable:
    """Read Parquet files, or their rows in parts: of a copy where their groups are long."""
    files = ParquetFiles.at(known)
    n_rows, n_columns = sum(files.heights), len(files.columns)
    require_cells(n_rows, n_columns, label)
    source = replace(source, format="parquet", sha256=sha256(), n_rows=n_rows, n_columns=n_columns)
    if n_rows <= in_memory_rows:
        require_table(label, n_rows, n_columns)
        return Table(next(files.parts(n_rows))()[0], None, source)
    size = part_rows or part_size(n_columns)
    if files.longest_group <= LONGEST_GROUP:
        return parted_table(source, files.columns, files.parts(size), size, copy)
    rows = Rows(files.pieces(), list(files.columns), [], False)
    return collect(rows, source, label, lambda: source.sha256, 0, size)


def _text(
    file: InputFile,
    source: SourceInfo,
    codec: str,
    delimiter: str | None,
    in_memory_rows: float,
    part_rows: int | None,
) -> Table | PartedTable:
    """Read JSON lines or delimited text."""
    known, digest = file.file, hashlib.sha256()
    head, chunks = with_newlines(decoded(known.chunks(digest), codec, known.label))
    start = head[:1024].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise InputError(f"{known.label}: this is a web or XML page; export the table as CSV.")
    if file.suffix == ".json" and start.startswith(b"["):
        raise InputError(
            f"{known.label}: this is one JSON array; write one object a line (JSON lines)."
        )
    is_json = delimiter is None and JSON_OBJECT.match(head)
    if is_json or file.suffix in _JSON_SUFFIXES:
        first = iter([chunks])

        def all_chunks() -> Iterator[bytes]:
            return (
                next(first, None) or with_newlines(decoded(known.chunks(), codec, known.label))[1]
            )

        rows = Rows(iter(()), [], [], True)
        pieces = json_pieces(all_chunks, known.label, in_memory_rows, rows.names, rows.notes)
        rows, source = replace(rows, pieces=pieces), replace(source, format="jsonl")
    else:
        text = DelimitedText(head, chunks, delimiter, known.label)
        rows = Rows(text.pieces(), text.names, text.notes, True)
        source = replace(source, format="csv", delimiter=text.delimiter)
    return collect(rows, source, known.label, digest.hexdigest, in_memory_rows, part_rows)
