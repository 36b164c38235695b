"""The readers of tables, and which of them reads a file: a new one is a file, and a line here."""

from __future__ import annotations

from kpca_apps.errors import InputError
from kpca_apps.tables.input_file import InputFile, only_member, packing_of
from kpca_apps.tables.read.arrow import ARROW
from kpca_apps.tables.read.delimited import DELIMITED
from kpca_apps.tables.read.excel import EXCEL, is_workbook
from kpca_apps.tables.read.json import JSON
from kpca_apps.tables.read.parquet import PARQUET, PARQUET_SUFFIXES
from kpca_apps.tables.read.reader import Reader
from kpca_apps.tables.read.text import NotUtf8, Text
from kpca_apps.tables.table import PartedTable, Table

__all__ = ["FILE_READERS", "TEXT_READERS", "read"]

# The first that knows a file reads it; what none knows is text, and the last reads any text.
FILE_READERS: list[Reader[InputFile]] = [PARQUET, ARROW, EXCEL]
TEXT_READERS: list[Reader[Text]] = [JSON, DELIMITED]

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second without any file in it
_BINARY_SUFFIXES = (
    *PARQUET_SUFFIXES, ".xlsx", ".xls", ".xlsm", ".xlsb", ".arrow", ".feather", ".ipc",
)  # fmt: skip
# Contents that are no table of ours, and what to call them.
_FOREIGN = (
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"SQLite format 3\0", "a database"),
    (b"FEA1", "a Feather file of the first version"),
)


def read(file: InputFile) -> Table | PartedTable:
    """Read a file with the reader that knows it, or the one table of a zip archive."""
    if file.head.startswith(_ZIP) and not is_workbook(file):
        return read(only_member(file))
    for reader in FILE_READERS:
        if reader.knows(file):
            file.options.refuse(reader.refused, reader.kind, file.label)
            return reader.read(file)
    _refuse_foreign(file)
    file.options.refuse("sheet", "text", file.label)
    text = Text(file)
    try:
        text_reader = next(reader for reader in TEXT_READERS if reader.knows(text))
        file.options.refuse(text_reader.refused, text_reader.kind, file.label)
        return text_reader.read(text)
    except NotUtf8:
        raise
    except InputError:
        # In another encoding, other characters may cut the cells: to be known first.
        text.require_utf8()
        raise


def _refuse_foreign(file: InputFile) -> None:
    """Refuse what is known to be no table, nor text."""
    label = file.label
    if twice := packing_of(file.head):
        raise InputError(f"{label}: this is packed with {twice} twice, not a table; unpack it.")
    for magic, what in _FOREIGN:
        if file.head.startswith(magic):
            raise InputError(f"{label}: this is {what}, not a table; export it as CSV or Parquet.")
    if file.suffix in _BINARY_SUFFIXES and file.is_binary:
        raise InputError(
            f"{label}: the contents are not what {file.suffix} promises; export it again."
        )
