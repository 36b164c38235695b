"""Tables in: whatever format, one frame, and a record of how it was read.

The format is decided by what the file holds, not by what it is called. Text stays text: what its
cells mean is decided later, a column at a time.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.files.binary import plain_types, read_excel, read_parquet
from kpca_apps.files.decoding import decode
from kpca_apps.files.delimited import read_delimited
from kpca_apps.files.formats import (
    HEAD,
    binary_format,
    checked_delimiter,
    is_json_lines,
    refuse_documents,
    refuse_text_options,
)
from kpca_apps.files.jsonlines import read_json_lines
from kpca_apps.files.limits import require_table
from kpca_apps.files.names import one_line
from kpca_apps.files.raw import RawFile, read_raw
from kpca_apps.files.source import SourceInfo
from kpca_apps.files.values import Column

__all__ = ["Table", "read_table", "table_from_frame", "table_from_raw"]


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

    def column(self, name: str) -> Column:
        """Return the cells of a column, which are read once however many ask."""
        return self._columns.setdefault(name, Column(self.frame[name]))

    @cached_property
    def _columns(self) -> dict[str, Column]:
        return {}


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
    cutter = checked_delimiter(delimiter)
    return table_from_raw(read_raw(path, encoding), cutter, encoding)


def table_from_raw(raw: RawFile, delimiter: str | None, encoding: str | None) -> Table:
    """Make a table of the bytes of a file.

    Parameters
    ----------
    raw : RawFile
        The bytes.
    delimiter : str or None
        One character; ``None`` to look for it.
    encoding : str or None
        Of a text file; ``None`` to look for it.

    Returns
    -------
    Table
        As `read_table` returns it, with its errors.
    """
    data, label, suffix = raw.data, raw.label, raw.suffix
    # The first bytes of a workbook are those of any zip archive; its parts have telling names.
    kind = binary_format(data[:HEAD], data[-4:], label, suffix, is_workbook=b"xl/" in data)
    if kind is None:
        return _read_text(raw, delimiter, encoding)
    refuse_text_options(kind, raw.label, delimiter, encoding)
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
    refuse_documents(text, raw.label, raw.suffix)
    if is_json_lines(text, raw.suffix, delimiter):
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
