"""From a path to a table: in memory where it is small, else in parts.

The format is decided by what the file holds, not by what it is called. Text stays text: what its
cells mean is decided later, a column at a time.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import one_line
from kpca_apps.system.limits import require_memory, require_table
from kpca_apps.system.memory import ROWS_IN_MEMORY
from kpca_apps.system.output import remove_spools, spool
from kpca_apps.system.temporary import TemporaryPath
from kpca_apps.tables.read.arrow import ARROW_FILE, ARROW_STREAM, arrow_rows
from kpca_apps.tables.read.jsonlines import JSON_LIST, JSON_OBJECT, json_lines, json_pieces
from kpca_apps.tables.read.jsonlist import JsonList, is_document
from kpca_apps.tables.read.parquet import (
    LONGEST_GROUP,
    PARQUET_SUFFIXES,
    ParquetFiles,
    damage_refused,
    folder_files,
)
from kpca_apps.tables.read.text import DelimitedText, NotUtf8, decoded, encoding_of, with_newlines
from kpca_apps.tables.several import combined, expand
from kpca_apps.tables.source import (
    InputFile,
    KnownFile,
    ReadOptions,
    find_file,
    member_of,
    packing_of,
)
from kpca_apps.tables.table import (
    PartedTable,
    Rows,
    SourceInfo,
    Table,
    collect,
    part_size,
    parted_table,
    require_cells,
)

__all__ = ["open_table", "read_table"]

_JSON_LINES = (".jsonl", ".ndjson")
_EXCEL_SUFFIXES = (".xlsx", ".xls", ".xlsm", ".xlsb")
_ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second without any file in it
_OLE = b"\xd0\xcf\x11\xe0"
MOST_OLE = 512 << 20  # bytes of an old workbook: a full sheet of numbers takes 18 a cell, 302 MB
# Contents that are no table of ours, and what to call them.
_FOREIGN = (
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"SQLite format 3\0", "a database"),
    (b"FEA1", "a Feather file of the first version"),
)
_MOST_LISTED = 20  # files of an archive named in a message
ALL_OPTIONS = "delimiter encoding sheet skip_rows bad_lines"
_NAMED_DELIMITERS = {
    "comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|", "space": " ",
}  # fmt: skip


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
    options = _options(delimiter, encoding, sheet, skip_rows, bad_lines)
    remove_spools()
    paths = expand(path)
    if len(paths) > 1:
        return _several(paths, options, in_memory_rows, part_rows)
    (path,) = paths
    if str(path) == "-" or not Path(path).is_dir():
        return _open(find_file(path), options, in_memory_rows, part_rows)
    known, label = folder_files(Path(path)), one_line(str(path), 200)
    options.refuse(ALL_OPTIONS, "Parquet", label)
    noun = "file" if len(known) == 1 else "files, in the order of their names"
    notes = (f"Read from {len(known)} Parquet {noun}.",)
    n_bytes = sum(file.size for file in known)
    source = SourceInfo(Path(path).absolute().name, "", "", n_bytes, 0, 0, notes=notes)

    def hash_of_listing() -> str:
        lines = (f"{file.sha256()}  {Path(file.path).name}\n" for file in known)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    return _parquet(known, source, hash_of_listing, label, in_memory_rows, part_rows)


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
    options = _options(delimiter, encoding, sheet, skip_rows, bad_lines)
    table = _open(find_file(path), options)
    assert isinstance(table, Table)
    return table


def _options(
    delimiter: str | None, encoding: str | None, sheet: str | int | None, skip: int, bad: str
) -> ReadOptions:
    cut = None if delimiter is None else _character(delimiter)
    return ReadOptions(cut, encoding, sheet, skip, bad)


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


def _several(
    paths: list[str | Path], options: ReadOptions, in_memory_rows: float, part_rows: int | None
) -> Table | PartedTable:
    """Open several files as one table; in memory as long as all of them are few rows."""
    tables: list[Table | PartedTable] = []
    left = in_memory_rows
    for path in paths:
        if str(path) == "-" or Path(path).is_dir():
            what = "standard input" if str(path) == "-" else one_line(str(path), 200)
            raise InputError(f"{what}: is no file, and cannot be one of several.")
        tables.append(_open(find_file(path), options, left, part_rows))
        left -= min(left, tables[-1].source.n_rows)
    rows, source = combined(tables, [str(path) for path in paths])
    label = one_line(source.name, 200)
    return collect(rows, source, label, lambda: source.sha256, in_memory_rows, part_rows)


def _open(
    file: InputFile,
    options: ReadOptions,
    in_memory_rows: float = inf,
    part_rows: int | None = None,
) -> Table | PartedTable:
    """Open a file by what it holds; the delimiter is one character."""
    head, known = file.head, file.file
    label, is_binary = known.label, b"\0" in head
    is_packed = bool(known.packing or known.member)
    notes = ((f"Read {one_line(known.member)} in the zip archive.",) * bool(known.member)) + (
        (f"Unpacked from {known.packing}.",) * bool(known.packing)
    )
    source = SourceInfo(file.name, "", "", known.size, 0, 0, notes=notes)
    # A header of text may start with these letters too.
    if head.startswith(b"PAR1") and (is_binary or file.tail == b"PAR1"):
        options.refuse(ALL_OPTIONS, "Parquet", label)
        copy = spool(known.chunks(), label) if is_packed else file.copy
        readable = KnownFile.at(copy.path, label) if copy else known
        return _parquet([readable], source, known.sha256, label, in_memory_rows, part_rows, copy)
    if head.startswith(ARROW_FILE) or (is_binary and head.startswith(ARROW_STREAM)):
        options.refuse(ALL_OPTIONS, "Arrow", label)
        copy = spool(known.chunks(), label) if is_packed else file.copy
        rows = arrow_rows(copy.path if copy else Path(known.path), label)
        source = replace(source, format="arrow")
        return collect(rows, source, label, known.sha256, in_memory_rows, part_rows)
    if head.startswith((*_ZIP, _OLE)):
        digest = hashlib.sha256()
        if head.startswith(_OLE) and known.size > MOST_OLE:
            raise InputError(
                f"{label}: of {known.size / 2**20:,.0f} MB, more than sheets of 65,536 rows "
                "and 256 columns take (.xls); save it as .xlsx, or the sheet as CSV."
            )
        # An archive is not held in memory, but one in another is, to look what it is.
        data = _whole(known, digest) if is_packed else b""
        if head.startswith(_OLE) or _is_workbook(io.BytesIO(data) if data else known.path, head):
            data = data or _whole(known, digest)
            from kpca_apps.tables.read.excel import read_excel

            options.refuse("delimiter encoding bad_lines", "Excel", label)
            sheet = read_excel(data, label, options.sheet, options.skip_rows)
            frame = sheet.frame
            piece = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            piece = piece.append_column("line", pa.array(sheet.rows))
            pieces = iter([piece] if frame.height else [])
            rows = Rows(pieces, frame.columns, sheet.notes, True)
            how = f"{options.reading} sheet {sheet.name}"
            source = replace(source, format="excel", reading=how)
            return collect(rows, source, label, digest.hexdigest, in_memory_rows, part_rows)
        if is_packed:
            raise InputError(f"{label}: this is a zip archive, packed again; unpack it first.")
        return _open(_only_member(file), options, in_memory_rows, part_rows)
    if twice := packing_of(head):
        raise InputError(f"{label}: this is packed with {twice} twice, not a table; unpack it.")
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise InputError(f"{label}: this is {what}, not a table; export it as CSV or Parquet.")
    if file.suffix in (*PARQUET_SUFFIXES, *_EXCEL_SUFFIXES, *_ARROW_SUFFIXES) and is_binary:
        raise InputError(
            f"{label}: the contents are not what {file.suffix} promises; export it again."
        )
    options.refuse("sheet", "text", label)

    # A text, in the encoding that is given, marked, or fits.
    codec, name, remark = encoding_of(head, options.encoding)
    source = replace(source, encoding=name, notes=notes + remark, reading=options.reading)
    try:
        try:
            return _text(file, source, codec, options, in_memory_rows, part_rows)
        except NotUtf8:
            raise
        except InputError:
            # In another encoding, other characters may cut the cells: to be known first.
            leave_out = options.bad_lines == "skip"
            if codec == "utf-8" and not (leave_out and options.encoding is not None):
                deque(decoded(known.chunks(), codec, label, zeros=leave_out), maxlen=0)
            raise
    except NotUtf8 as error:
        if options.encoding is not None:
            raise
        note = (
            f"Read as cp1252 (Windows, western Europe): byte 0x{error.byte:02x} on line "
            f"{error.line} is not UTF-8."
        )
    source = replace(source, encoding="cp1252", notes=(*notes, note))
    return _text(file, source, "cp1252", options, in_memory_rows, part_rows)


def _is_workbook(archive: str | io.BytesIO, head: bytes) -> bool:
    """Whether a zip archive is a workbook, by the names in it, or those of a damaged one."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return any(name.startswith("xl/workbook") for name in opened.namelist())
    except Exception:  # whatever the library raises on a damaged one
        return b"[Content_Types].xml" in head or b"xl/" in head


def _only_member(file: InputFile) -> InputFile:
    """Look at the one table of a zip archive."""
    label = file.file.label
    if b"mimetypeapplication/vnd.oasis.opendocument" in file.head:
        raise InputError(f"{label}: OpenDocument is not read; save it as .xlsx or CSV.")
    with damage_refused(label, "zip"), zipfile.ZipFile(file.file.path) as archive:
        entries = [
            entry
            for entry in archive.infolist()
            if not entry.is_dir()
            and not any(
                part.startswith((".", "__MACOSX")) and part not in (".", "..")
                for part in entry.filename.split("/")
            )
        ]
    if len(entries) != 1:
        listed = ", ".join(one_line(entry.filename, 40) for entry in entries[:_MOST_LISTED])
        listed += ", ..." * (len(entries) > _MOST_LISTED)
        raise InputError(
            f"{label}: a zip archive is read if it holds one table, and this one holds "
            f"{len(entries):,} files{f' ({listed})' * bool(entries)}; unpack it, and name a file, "
            "or the folder."
        )
    (entry,) = entries
    if entry.flag_bits & 1:
        raise InputError(
            f"{label}: {one_line(entry.filename)} in it is encrypted; unpack it first."
        )
    return member_of(file, entry.filename)


def _whole(file: KnownFile, digest: Any) -> bytes:
    """Return all a file holds, for formats that cannot be read in a stream."""
    require_memory(file.label, file.size)
    held = bytearray()
    for chunk in file.chunks(digest):
        held += chunk
        require_memory(file.label, len(held))
    return bytes(held)


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
    options: ReadOptions,
    in_memory_rows: float,
    part_rows: int | None,
) -> Table | PartedTable:
    """Read JSON or delimited text."""
    known, digest, leave_out = file.file, hashlib.sha256(), options.bad_lines == "skip"
    # Which lines are no text is told by their bytes, where an encoding leaves the lines whole.
    is_raw = leave_out and options.encoding is not None and codec == "utf-8"

    def text_of(digest: Any = None) -> Iterator[bytes]:
        chunks = known.chunks(digest)
        return chunks if is_raw else decoded(chunks, codec, known.label, zeros=leave_out)

    head, chunks = with_newlines(text_of(digest), options.skip_rows)
    start = head[:1024].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise InputError(f"{known.label}: this is a web or XML page; export the table as CSV.")
    delimiter = options.delimiter
    is_lines = file.suffix in _JSON_LINES
    # A text may begin with a bracket too.
    is_list = JSON_LIST.match(head) or (file.suffix == ".json" and head.lstrip().startswith(b"["))
    if is_lines or (delimiter is None and (is_list or JSON_OBJECT.match(head))):
        is_list = not is_lines and (is_list or is_document(with_newlines(text_of())[1]))
        first = iter([chunks])

        def all_chunks() -> Iterator[bytes]:
            return next(first, None) or with_newlines(text_of())[1]

        listed = JsonList(all_chunks(), known.label) if is_list else None
        is_list = listed is not None and not listed.is_record  # one object is a line of its own
        other = "bad_lines" if is_list else ""
        options.refuse(f"delimiter skip_rows {other}", "JSON", known.label)
        unit = listed.unit if listed else "line"
        rows = Rows(iter(()), [], [*listed.notes] if listed else [], unit == "line")
        pieces = json_pieces(
            listed.records if listed else lambda keys: json_lines(all_chunks(), known.label, keys),
            known.label,
            in_memory_rows,
            rows.names,
            rows.notes,
            unit=unit,
            leave_out=leave_out,
        )
        rows = replace(rows, pieces=pieces)
        source = replace(source, format="json" if is_list else "jsonl")
    else:
        text = DelimitedText(
            head,
            chunks,
            known.label,
            delimiter=delimiter,
            skip_rows=options.skip_rows,
            leave_out=leave_out,
        )
        rows = Rows(text.pieces(), text.names, text.notes, True)
        source = replace(source, format="csv", delimiter=text.delimiter)
    return collect(rows, source, known.label, digest.hexdigest, in_memory_rows, part_rows)
