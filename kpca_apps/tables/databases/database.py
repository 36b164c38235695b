"""The interface of databases, and code that all of them share: cells, notes, errors."""

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

EXACT = 2**53  # all smaller whole numbers are exact as floats
_LIBRARIES = ("adbc_driver_manager", "duckdb", "_duckdb", "sqlite3", "pyarrow")
# Prefixes that drivers put before the message of a database.
_BEFORE = re.compile(
    r"^([A-Z_]+: |\[\w+\] |Failed to \w+( query)?( '.*?')?: |could not begin COPY: |"
    r"Execution error \[\w+\]: |(ERROR|FATAL): +|(\w+ Error|Error): )+",
    re.DOTALL,
)
# Classes of errors whose messages may contain cells: quoted, in parentheses, or as numbers.
_OF_CELLS = ("ConversionException", "OutOfRangeException", "InvalidInputException")
_CELL = re.compile(
    r"""(?<!\w)["'(](?:.*["')](?=[\s.!,:;]|\Z)|.*)|(?<=\bvalue )-?\d\S*|0x[0-9a-fA-F]+""", re.DOTALL
)
# Messages of libpq that quote a part of the address, which may be a password.
_OF_ADDRESS = re.compile(
    r"(invalid integer value|percent-encoded (?:token|value):|parameter:|\bin URI\b.*:) "
    r'".*"(?= for connection option|\Z)'
)
_OF_PASSWORDS = ("no password supplied", "password authentication failed")


@dataclass(frozen=True)
class Cell:
    """The SQL expression that selects a column, and a remark on the column's conversion."""

    expression: str
    # "seconds": intervals become seconds. "rounded": decimal numbers become floats, which may round
    # them. "finite": dates that are infinite or outside the calendar become NULL.
    remark: str = ""


@dataclass(frozen=True)
class Selected:
    """Rows selected from a database.

    If there are dates, a last, unnamed column counts each row's dates outside the calendar.
    """

    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def require_file(address: Address) -> Path:
    """Return the file of a database; raise InputError if it is not a database of that kind."""
    path = Path(address.path)
    with opening(address.uri, path):
        if not (stat.S_ISREG(mode := path.stat().st_mode) or stat.S_ISDIR(mode)):
            raise InputError("this is a pipe or a device; name the file of a database.")
        with path.open("rb") as file:
            if scheme_of_file(file.read(HEAD)) != address.kind.lower():
                raise InputError(f"this file is not a {address.kind} database.")
    return path


class Database(ABC):
    """A connection to a database: reads see one snapshot; changes need `write` and `commit`."""

    in_stored_order = True  # whether the rows of a table always come in the same order
    tables_query: str  # SQL that selects readable tables: the name, or schema (or NULL) and name
    columns_query: str  # SQL that selects a table's columns; no rows if temporary or missing
    key_query: str  # SQL that selects the primary key columns of a table
    _connection: Any

    def tables(self) -> Sequence[TableName]:
        """Return the readable tables."""
        rows = self._rows(self.tables_query)
        return [tuple(part for part in row if part is not None) for row in rows]

    def columns(self, table: TableName) -> Sequence[str]:
        """Return the columns of a table; none if the table is missing or temporary."""
        return [str(name) for (name,) in self._of_table(self.columns_query, table)]

    def key(self, table: TableName) -> Sequence[str]:
        """Return the primary key columns of a table; none if it has no primary key."""
        return [str(name) for (name,) in self._of_table(self.key_query, table)]

    @abstractmethod
    def select(self, query: str) -> Selected:
        """Run a query that only reads."""

    def write(self, table: TableName, rows: pa.RecordBatchReader, *, replace: bool) -> None:
        """Write rows into a new table; other connections see it after `commit`."""
        self._begin()
        if replace:
            self._run(f"DROP TABLE IF EXISTS {sql_name(table)}")
        self._create(table, rows)

    def commit(self) -> None:
        """Commit the transaction."""
        self._connection.execute("COMMIT")

    def cancel(self) -> None:
        """Interrupt the running query; may be called from another thread."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the connection; uncommitted changes are lost."""
        self._connection.close()

    def _run(self, statement: str) -> None:
        self._connection.execute(statement)

    def _rows(self, query: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        rows: Sequence[tuple[Any, ...]] = self._connection.execute(query, parameters).fetchall()
        return rows

    @abstractmethod
    def _of_table(self, query: str, table: TableName) -> Sequence[tuple[Any, ...]]:
        """Run a query that has the schema and name of a table as parameters."""

    def _begin(self) -> None:
        self._run("BEGIN IMMEDIATE")

    @abstractmethod
    def _create(self, table: TableName, rows: pa.RecordBatchReader) -> None:
        """Create a table, and insert the rows."""


def select_list(cells: Sequence[Cell], aliases: Sequence[str], count: str) -> str:
    """Return a SELECT list: the cells, and a sum with one term, `count`, for each date column."""
    parts = [cell.expression for cell in cells]
    pairs = zip(cells, aliases, strict=True)
    dates = [count.format(alias) for cell, alias in pairs if cell.remark == "finite"]
    return ", ".join([*parts, *([" + ".join(dates)] if dates else [])])


def checked(
    selected: Selected, batches: Iterable[pa.RecordBatch], notes: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield batches without the column that counts dates outside the calendar, then add notes."""
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
    intervals = [name for name, cell in zip(names, cells, strict=True) if cell.remark == "seconds"]
    if intervals:
        how = "Intervals read as seconds, a year as 365.25 days and a month as 30"
        notes.append(f"{how}: {listed(intervals)}.")
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
    """Return the schema without the unnamed last column (see `Selected`); names may repeat."""
    types = selected.schema.types[: len(selected.names)]
    return pa.schema([pa.field(*one) for one in zip(selected.names, types, strict=True)])


@contextmanager
def errors_in_one_line(kind: str) -> Iterator[None]:
    """Convert errors of a database, or of its library, to an InputError of one line."""
    try:
        yield
    except KpcaError:
        raise
    except Exception as error:
        library = type(error).__module__.split(".")[0]
        if library not in _LIBRARIES and not isinstance(error, OSError | UnicodeDecodeError):
            raise
        text = str(error)
        # SQLSTATE class 22 means a data exception; errors while rows are fetched have no SQLSTATE.
        of_class = str(getattr(error, "sqlstate", None) or "").startswith("22")
        if of_class or type(error).__name__ in _OF_CELLS or "[PGRES_" in text:
            # The message quotes a cell, which may be of a hidden column.
            text = _CELL.sub("(a cell)", _BEFORE.sub("", text.strip()))
        raise InputError(_sentence(kind, text)) from None


def _sentence(kind: str, text: str) -> str:
    if text.startswith("Could not decode to UTF-8"):
        return f"{kind} holds text that is not UTF-8; cast it to a blob in --query."
    if text == "string or blob too big":
        return (
            f"{kind} returns a cell of more than {LONGEST_ROW / 2**20:g} MB; select only the "
            "columns you need in --query, or shorten the cell there with substr()."
        )
    line = _BEFORE.sub("", text.strip()).split("\n", 1)[0].strip().rstrip(".;:!")
    line = one_line(_OF_ADDRESS.sub(r'\1 "..."', line), 200)
    if any(words in text for words in _OF_PASSWORDS):
        line += "; give the password in PGPASSWORD, ~/.pgpass or pg_service.conf"
    elif "Connection refused" in text:
        line += "; start the database server, or correct the address"
    return f"{kind} says: {line}."
