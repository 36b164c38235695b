"""Readers of tables: each recognises its inputs, and reads them."""

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

ANY = " ".join(READING)  # for readers that accept every option, or pass inputs on to others


@dataclass(frozen=True)
class Address:
    """An input with a URI, such as a table of a database."""

    uri: str
    options: ReadOptions


@dataclass(frozen=True)
class Folder:
    """A folder that is one table, on disk or in a store."""

    path: AnyPath
    options: ReadOptions
    copy: TemporaryPath | None = None  # local copy, if the folder is in a store


T = TypeVar("T", Address, Folder, InputFile, Text)


@dataclass(frozen=True)
class Reader(Generic[T]):
    """A reader of inputs of one kind."""

    kind: str  # name of the kind, for messages
    options: str  # names of the fields of `ReadOptions` that apply
    read: Callable[[T], Table | PartedTable]
    knows: Callable[[T], bool] = lambda found: True


def read_by(readers: Sequence[Reader[T]], found: T) -> Table | PartedTable:
    """Read an input with the first reader that recognises it."""
    reader = next(one for one in readers if one.knows(found))
    found.options.refuse_others(reader.options, reader.kind)
    return reader.read(found)


def of_schemes(*schemes: str) -> Callable[[Address], bool]:
    """Return a function that tests whether an address has one of these schemes."""
    return lambda found: scheme_of(found.uri) in schemes


def begins(*marks: bytes) -> Callable[[InputFile], bool]:
    """Return a function that tests whether a binary file begins with one of these byte strings."""
    # A text may begin with the same letters, but rarely ends with them, too.
    return lambda file: (
        file.head.startswith(marks) and (file.is_binary or file.tail == file.head[:4])
    )


def table_of(
    file: InputFile | Text, rows: Rows, body: Body | None = None, **how: Any
) -> Table | PartedTable:
    """Collect the rows of a file as a table; `how` sets fields of the table's `SourceInfo`."""
    options, source = file.options, replace(file.source, **how)
    table = collect(rows, source, lambda: file.sha256, options.in_memory_rows, options.part_rows)
    return table if body is None else body.finish(table, options.in_memory_rows)
