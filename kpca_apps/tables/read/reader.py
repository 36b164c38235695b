"""What a reader of tables is: how it knows what it reads, and what it makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from kpca_apps.tables.input_file import InputFile
from kpca_apps.tables.read.body import Body
from kpca_apps.tables.read.text import Text
from kpca_apps.tables.table import PartedTable, Rows, Table, collect

T = TypeVar("T", InputFile, Text)


@dataclass(frozen=True)
class Reader(Generic[T]):
    """A reader of one format: of files, known by their first bytes, or of texts."""

    kind: str  # names the format in messages
    options: str  # of `ReadOptions`, those that apply
    read: Callable[[T], Table | PartedTable]
    beginnings: tuple[bytes, ...] = ()
    knows: Callable[[T], bool] | None = None  # of texts; None knows any


def table_of(
    file: InputFile | Text, rows: Rows, body: Body | None = None, **how: Any
) -> Table | PartedTable:
    """Take in the rows of a file; its `SourceInfo` says `how` they were read."""
    options, source = file.options, replace(file.source, **how)
    table = collect(rows, source, lambda: file.sha256, options.in_memory_rows, options.part_rows)
    return table if body is None else body.settled(table, options.in_memory_rows)
