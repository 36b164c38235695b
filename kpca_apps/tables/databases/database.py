"""What a database is here, and what all kinds have in common: cells, remarks, errors."""

from __future__ import annotations

import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kpca_apps.errors import InputError, KpcaError, opening
from kpca_apps.names import listed, one_line
from kpca_apps.system.limits import LONGEST_ROW
from kpca_apps.tables.databases.address import Address, TableName, scheme_of_file, sql_name
from kpca_apps.tables.input_file import HEAD

EXACT = 2**53  # floats hold all whole numbers below
_LIBRARIES = ("adbc_driver_manager", "duckdb", "_duckdb", "sqlite3", "pyarrow")
# What drivers put before the words of the database.
_BEFORE = re.compile(
    r"^([A-Z_]+: |\[\w+\] |Failed to \w+( query)?( '.*?')?: |could not begin COPY: |"
    r"Execution error \[\w+\]: |(ERROR|FATAL): +|(\w+ Error|Error): )+",
    re.DOTALL,
)
# Errors of single cells, which they show: in quotation marks, in parentheses, as numbers.
_OF_CELLS = ("ConversionException", "OutOfRangeException", "InvalidInputException")
_CELL = re.compile(
    r"""(?<!\w)["'(](?:.*["')](?=[\s.!,:;]|\Z)|.*)|(?<=\bvalue )-?\d\S*|0x[0-9a-fA-F]+""", re.DOTALL
)
# What libpq cannot parse of an address it quotes, and that may be a password.
_OF_ADDRESS = re.compile(
    r"(invalid integer value|percent-encoded (?:token|value):|parameter:|\bin URI\b.*:) "
    r'".*"(?= for connection option|\Z)'
)
_OF_PASSWORDS = ("no password supplied", "password authentication failed")


@dataclass(frozen=True)
class Cell:
    """How a column is selected: an expression, and what is to be remarked of it."""

    expression: str
    remark: str = ""  # "seconds": of intervals; "rounded": made floats; "finite": a date that is


@dataclass(frozen=True)
class Selected:
    """Rows on their way out of a database; there may be one column more than names.

    That counts the dates of a row that have no place in a calendar, and are missing.
    """

    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def require_file(address: Address) -> Path:
    """Return the file of a database, unless it is none of its kind.

    Opening a named pipe would wait for whoever writes to it.
    """
    path = Path(address.path)
    with opening(address.uri, path):
        if not (stat.S_ISREG(mode := path.stat().st_mode) or stat.S_ISDIR(mode)):
            raise InputError("this is a pipe or a device; name the file of a database.")
        with path.open("rb") as file:
            if scheme_of_file(file.read(HEAD)) != address.kind.lower():
                raise InputError(f"this file is not a {address.kind} database.")
    return path


class Database(ABC):
    """A connection that sees one state of a database; only `write` and `commit` change it."""

    in_stored_order = True  # whether rows of a table come as they are stored, time and again
    tables_query: str  # names the tables that can be read, perhaps each behind its schema
    # Of a table, see `_of_table`: its columns, of which one that is temporary or not there has
    # none, and those of its primary key.
    columns_query: str
    key_query: str
    _connection: Any

    def tables(self) -> Sequence[TableName]:
        """Name the tables that can be read."""
        return [
            tuple(part for part in row if part is not None) for row in self._rows(self.tables_query)
        ]

    def columns(self, table: TableName) -> Sequence[str]:
        """Name the columns of a table; none if there is no such table, or it is temporary."""
        return [str(name) for (name,) in self._of_table(self.columns_query, table)]

    def key(self, table: TableName) -> Sequence[str]:
        """Name the columns of a table's primary key, if it has one."""
        return [str(name) for (name,) in self._of_table(self.key_query, table)]

    @abstractmethod
    def select(self, query: str) -> Selected:
        """Run a query that only reads."""

    def write(self, table: TableName, rows: pa.RecordBatchReader, *, replace: bool) -> None:
        """Write rows into a new table, which is there once `commit` has run."""
        self._begin()
        if replace:
            self._run(f"DROP TABLE IF EXISTS {sql_name(table)}")
        self._create(table, rows)

    def commit(self) -> None:
        """Keep what was written."""
        self._connection.execute("COMMIT")

    def cancel(self) -> None:
        """End what is going on; called from another thread."""
        self._connection.interrupt()

    def close(self) -> None:
        """End the connection; what is not committed is gone."""
        self._connection.close()

    def _run(self, statement: str) -> None:
        self._connection.execute(statement)

    def _rows(self, query: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        rows: Sequence[tuple[Any, ...]]
        rows = self._connection.execute(query, parameters).fetchall()
        return rows

    @abstractmethod
    def _of_table(self, query: str, table: TableName) -> Sequence[tuple[Any, ...]]:
        """Run a query that is about a table."""

    def _begin(self) -> None:
        self._run("BEGIN IMMEDIATE")

    @abstractmethod
    def _create(self, table: TableName, rows: pa.RecordBatchReader) -> None:
        """Make a table of rows."""


def select_list(cells: Sequence[Cell], aliases: Sequence[str], count: str) -> str:
    """Write what is selected, with `count`, an SQL expression of an alias, summed over dates."""
    parts = [cell.expression for cell in cells]
    dates = [
        count.format(alias)
        for cell, alias in zip(cells, aliases, strict=True)
        if cell.remark == "finite"
    ]
    return ", ".join([*parts, *([" + ".join(dates)] if dates else [])])


def checked(
    selected: Selected, batches: Iterable[pa.RecordBatch], notes: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield batches of the columns that have names; notes tell at last what was changed."""
    names, cells = selected.names, selected.cells
    n_far, is_rounded = 0, [False] * len(cells)
    rounded = [k for k, cell in enumerate(cells) if cell.remark == "rounded"]
    for batch in batches:
        columns = batch.columns
        if len(columns) > len(names):
            n_far += int(columns.pop().to_numpy(zero_copy_only=False).sum())
        for k in rounded:
            values = columns[k].to_numpy(zero_copy_only=False)
            is_rounded[k] |= bool((np.isfinite(values) & (abs(values) >= EXACT)).any())
        yield pa.RecordBatch.from_arrays(columns, schema=named_schema(selected))
    told = [name for name, cell in zip(names, cells, strict=True) if cell.remark == "seconds"]
    if told:
        notes.append(
            f"Intervals read as seconds, a year as 365.25 days and a month as 30: {listed(told)}."
        )
    if n_far:
        notes.append(
            f"{n_far:,} dates that are infinite or outside the calendar are read as missing."
        )
    if long := [name for name, is_long in zip(names, is_rounded, strict=True) if is_long]:
        notes.append(
            f"Whole numbers from {EXACT:,} on are rounded: {listed(long)}. If they are "
            "identifiers, cast them to text in --query."
        )


def named_schema(selected: Selected) -> pa.Schema:
    """Return the types of the columns that have names; names may be there twice."""
    types = selected.schema.types[: len(selected.names)]
    return pa.schema([pa.field(*one) for one in zip(selected.names, types, strict=True)])


@contextmanager
def told(kind: str) -> Iterator[None]:
    """Turn what a library or a database says into one line."""
    try:
        yield
    except KpcaError:
        raise
    except Exception as error:
        library = type(error).__module__.split(".")[0]
        if library not in _LIBRARIES and not isinstance(error, OSError | UnicodeDecodeError):
            raise
        text = str(error)
        # PostgreSQL's class 22, which it does not tell once rows are on their way.
        of_class = str(getattr(error, "sqlstate", None) or "").startswith("22")
        if of_class or type(error).__name__ in _OF_CELLS or "[PGRES_" in text:
            # It shows a cell, which may be of a column that is to be hidden.
            text = _CELL.sub("(a cell)", _BEFORE.sub("", text.strip()))
        raise InputError(_sentence(kind, text)) from None


def _sentence(kind: str, text: str) -> str:
    """Say in one line what a database says, and what to do about a password."""
    if text.startswith("Could not decode to UTF-8"):
        # What follows is a cell.
        return f"{kind} holds text that is not UTF-8; cast it to a blob in --query."
    if text == "string or blob too big":
        return (
            f"{kind} returns a cell of more than {LONGEST_ROW / 2**20:g} MB; select only the "
            "columns you need in --query, or shorten the cell there with substr()."
        )
    line = _BEFORE.sub("", text.strip()).split("\n", 1)[0].strip().rstrip(".;:!")
    line = one_line(_OF_ADDRESS.sub(r'\1 "..."', line), 200)
    if any(words in text for words in _OF_PASSWORDS):
        line += "; give the password by PGPASSWORD, a .pgpass file or a service"
    return f"{kind} says: {line}."
