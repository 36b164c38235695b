"""What a reader of tables is: how it knows what it reads, and what it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from kpca_apps.options import READING
from kpca_apps.system.files.temporary import TemporaryPath
from kpca_apps.system.stores.addresses import AnyPath
from kpca_apps.tables.input_file import InputFile, ReadOptions
from kpca_apps.tables.read.layout.body import Body
from kpca_apps.tables.read.text import Text
from kpca_apps.tables.read.uri import scheme_of
from kpca_apps.tables.table import PartedTable, Rows, Table, collect

ANY = " ".join(READING)  # of options: all apply, or who reads next decides


@dataclass(frozen=True)
class Address:
    """What is named by a URI, such as a table of a database."""

    uri: str
    options: ReadOptions


@dataclass(frozen=True)
class Folder:
    """A folder that is one table, here or in a store."""

    path: AnyPath
    options: ReadOptions
    copy: TemporaryPath | None = None  # that it lies in, if it was copied from a store


T = TypeVar("T", Address, Folder, InputFile, Text)


@dataclass(frozen=True)
class Reader(Generic[T]):
    """A reader of one kind of thing."""

    kind: str  # names it in messages
    options: str  # of `ReadOptions`, those that apply
    read: Callable[[T], Table | PartedTable]
    knows: Callable[[T], bool] = lambda found: True


def read_by(readers: Sequence[Reader[T]], found: T) -> Table | PartedTable:
    """Read by the first reader that knows what was found."""
    reader = next(one for one in readers if one.knows(found))
    found.options.refuse_others(reader.options, reader.kind)
    return reader.read(found)


def of_schemes(*schemes: str) -> Callable[[Address], bool]:
    """Return what knows an address by its scheme."""
    return lambda found: scheme_of(found.uri) in schemes


def begins(*marks: bytes) -> Callable[[InputFile], bool]:
    """Return what knows a file that is no text by its first bytes."""
    # A header of text may start with the same letters, but not end with them as well.
    return lambda file: (
        file.head.startswith(marks) and (file.is_binary or file.tail == file.head[:4])
    )


def table_of(
    file: InputFile | Text, rows: Rows, body: Body | None = None, **how: Any
) -> Table | PartedTable:
    """Take in the rows of a file; its `SourceInfo` says `how` they were read."""
    options, source = file.options, replace(file.source, **how)
    table = collect(rows, source, lambda: file.sha256, options.in_memory_rows, options.part_rows)
    return table if body is None else body.settled(table, options.in_memory_rows)
