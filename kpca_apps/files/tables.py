"""Tables in: whatever format, one frame, and a record of how it was read.

The format is decided by what the file holds, not by what it is called. Text stays text: what its
cells mean is decided later, a column at a time.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.binary import plain_types, read_excel, read_parquet
from kpca_apps.files.decoding import decode
from kpca_apps.files.delimited import read_delimited
from kpca_apps.files.jsonlines import looks_like_json_lines, read_json_lines
from kpca_apps.files.limits import require_table
from kpca_apps.files.names import one_line
from kpca_apps.files.raw import RawFile, read_raw
from kpca_apps.files.source import SourceInfo

__all__ = ["Table", "read_table", "table_from_frame"]

_JSON_SUFFIXES = (".jsonl", ".ndjson")
_EXCEL_SUFFIXES = (".xlsx", ".xls", ".xlsm")
_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0"
# Contents that are no table of ours, and what to call them.
_FOREIGN = (
    (_ZIP, "a zip archive"),
    (b"\x1f\x8b", "packed with gzip twice"),
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


@dataclass(frozen=True)
class Table:
    """A table as read.

    Attributes
    ----------
    frame : DataFrame
        Delimited text: string columns, cells exactly as in the file (an empty cell is ``""``).
        JSON lines: numbers and booleans typed, the rest strings, absent values null. Parquet and
        Excel: typed as stored.
    lines : (n,) int array or None
        1-based line of the file where each row starts; ``None`` for binary formats.
    source : SourceInfo
        Where it came from, and how it was read.
    """

    frame: pl.DataFrame
    lines: NDArray[np.int64] | None
    source: SourceInfo


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
    cutter = _checked_delimiter(delimiter)
    raw = read_raw(path)
    kind = _binary_format(raw)
    if kind is None:
        return _read_text(raw, cutter, encoding)
    if cutter is not None or encoding is not None:
        raise ConfigError(f"{raw.label}: a delimiter or encoding does not apply to {kind}.")
    if kind == "parquet":
        return _table(raw, "parquet", read_parquet(raw.data, raw.label))
    frame, notes = read_excel(raw.data, raw.label)
    return _table(raw, "excel", frame, notes=notes)


def table_from_frame(frame: pl.DataFrame, name: str = "table") -> Table:
    """Take a polars frame for a table, for those who work in Python.

    Parameters
    ----------
    frame : DataFrame
        The rows; copied only where a type has to change.
    name : str
        What reports call it.

    Returns
    -------
    Table
        Its source carries the SHA-256 of the frame written as CSV.

    Raises
    ------
    InputError
        If it has no rows or no columns.

    Examples
    --------
    >>> table_from_frame(pl.DataFrame({"x": [1.0, 2.0]})).source.n_rows
    2
    """
    plain = plain_types(frame)
    data = plain.write_csv().encode("utf-8")
    raw = RawFile(one_line(name), name, "", data, hashlib.sha256(data).hexdigest(), len(data))
    return _table(raw, "frame", plain)


def _read_text(raw: RawFile, delimiter: str | None, encoding: str | None) -> Table:
    text, name, notes = decode(raw.data, raw.label, encoding)
    if not text.strip():
        raise InputError(f"{raw.label}: the file is empty; it needs a header and rows.")
    _refuse_documents(text, raw)
    if raw.suffix in _JSON_SUFFIXES or (delimiter is None and looks_like_json_lines(text)):
        frame, lines, more = read_json_lines(text, raw.label)
        return _table(raw, "jsonl", frame, lines, encoding=name, notes=(*notes, *more))
    cut = read_delimited(text, raw.label, delimiter)
    return _table(
        raw, "csv", cut.frame, cut.lines,
        encoding=name, delimiter=cut.delimiter, notes=(*notes, *cut.notes),
    )  # fmt: skip


def _table(
    raw: RawFile,
    kind: str,
    frame: pl.DataFrame,
    lines: NDArray[np.int64] | None = None,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    notes: tuple[str, ...] = (),
) -> Table:
    if frame.width == 0 or frame.height == 0:
        what = "columns" if frame.width == 0 else "rows"
        raise InputError(f"{raw.label}: the table has no {what}; there is nothing to screen.")
    require_table(raw.label, frame.height, frame.width)
    source = SourceInfo(
        name=raw.name,
        format=kind,
        sha256=raw.sha256,
        n_bytes=raw.n_bytes,
        n_rows=frame.height,
        n_columns=frame.width,
        encoding=encoding,
        delimiter=delimiter,
        notes=(*raw.notes, *notes),
    )
    return Table(frame, lines, source)


def _checked_delimiter(delimiter: str | None) -> str | None:
    if delimiter is None:
        return None
    character = _NAMED_DELIMITERS.get(delimiter.lower(), delimiter)
    if len(character) != 1 or character in '"\r\n' or character.isalnum():
        raise ConfigError(
            f'The delimiter "{one_line(delimiter)}" is not one character that can cut cells; '
            'give one such as ";", or "tab".'
        )
    return character


def _binary_format(raw: RawFile) -> str | None:
    """Name the binary format by its first bytes; ``None`` means text."""
    is_binary = b"\0" in raw.data[:4096]
    # A header of text may start with these letters too.
    if raw.data.startswith(b"PAR1") and (is_binary or raw.data.endswith(b"PAR1")):
        return "parquet"
    # The first bytes of a workbook are those of any zip archive; its parts have telling names.
    if raw.data.startswith(_OLE) or (raw.data.startswith(_ZIP) and b"xl/" in raw.data):
        return "excel"
    for magic, what in _FOREIGN:
        if raw.data.startswith(magic):
            raise InputError(
                f"{raw.label}: this is {what}, not a table; export it as CSV or Parquet."
            )
    if raw.suffix in (".parquet", ".pq", *_EXCEL_SUFFIXES) and is_binary:
        raise InputError(
            f"{raw.label}: the contents are not what {raw.suffix} promises; export it again."
        )
    return None


def _refuse_documents(text: bytes, raw: RawFile) -> None:
    head = text[:1024].lstrip().lower()
    if head.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise InputError(f"{raw.label}: this is a web or XML page; export the table as CSV.")
    if raw.suffix == ".json" and head.startswith(b"["):
        raise InputError(
            f"{raw.label}: this is one JSON array; write one object a line (JSON lines)."
        )
