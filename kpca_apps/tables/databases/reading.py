"""Read a table of a database, or the rows of a query, in one transaction."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TypeVar

from kpca_apps.errors import InputError, OptionError
from kpca_apps.names import in_prose, one_line, suggest
from kpca_apps.system.interrupts import heard_while
from kpca_apps.tables.databases.address import (
    DATABASE_KINDS,
    Address,
    TableName,
    database_address,
    sql_name,
    typed,
)
from kpca_apps.tables.databases.database import Database, checked, errors_in_one_line, named_schema
from kpca_apps.tables.read.arrow import read_batches
from kpca_apps.tables.read.reader import Address as Uri
from kpca_apps.tables.read.reader import Reader, of_schemes
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import PartedTable, Table

T = TypeVar("T")
_PATIENCE = 5.0  # seconds to wait for the end of a cancelled query
_LISTED = 20  # maximum number of tables that a message lists
_MODULES = {"SQLite": "sqlite", "DuckDB": "duck", "PostgreSQL": "postgresql"}
_STORED = (
    "The table has no primary key: its rows are read in the order in which the server stores "
    "them, which may change when rows are updated."
)
_UNORDERED = (
    "The query has no ORDER BY: the order of its rows may differ next time, and with it row "
    "numbers, ties and samples."
)


@dataclass
class Waiting:
    """Run calls of a database in threads, one after another, until a deadline."""

    seconds: float | None  # time limit for all calls together
    cancel: Callable[[], None] | None = None  # interrupts the running call
    is_stuck: bool = False  # whether a cancelled call is still running
    _began: float = field(default_factory=time.monotonic)

    def __call__(self, function: Callable[[], T]) -> T:
        """Call a function; cancel the call at an interrupt or at the time limit."""
        return heard_while(function, self._look, self._give_up)

    def _look(self) -> None:
        if self.seconds is not None and time.monotonic() > self._began + self.seconds:
            raise InputError(
                f"reading took longer than the {self.seconds:g} s of --timeout, and was "
                "cancelled; allow more, or read less."
            )

    def _give_up(self, call: Future[T]) -> None:
        if self.cancel is not None:
            # Cancelling opens another connection to the server, which may hang, too.
            cancelling = threading.Thread(target=self.cancel, daemon=True)
            cancelling.start()
            cancelling.join(_PATIENCE)
        self.is_stuck = not wait((call,), _PATIENCE if self.cancel is not None else 0).done


@contextmanager
def connected(
    address: Address, seconds: float | None, *, reading: bool = True
) -> Iterator[tuple[Database, Waiting]]:
    """Connect to a database; convert errors to an InputError of one line."""
    waiting = Waiting(seconds)
    with errors_in_one_line(address.kind):
        module = import_module(f"kpca_apps.tables.databases.{_MODULES[address.kind]}")
        opener: Callable[..., Database] = getattr(module, address.kind)
        database = waiting(partial(opener, address, reading=reading))
        waiting.cancel = database.cancel
        try:
            yield database, waiting
        finally:
            if not waiting.is_stuck:
                database.close()


def _read(found: Uri) -> Table | PartedTable:
    options = found.options
    address = database_address(found.uri, options.table_name, options.query)
    with connected(address, options.timeout) as (database, waiting):
        key: Sequence[str] = ()
        notes, query, name = list[str](), address.query, address.name
        if query is None:
            table = address.table or _only_table(database, waiting)
            name = ".".join(table)
            require_table(table, database, waiting)
            key = waiting(partial(database.key, table))
            query = f"SELECT * FROM {sql_name(table)}"
            if key and not database.in_stored_order:
                query += f" ORDER BY {', '.join(map(sql_name, key))}"
            elif not database.in_stored_order:
                notes.append(_STORED)
        elif not address.is_ordered:
            notes.append(_UNORDERED)
        selected = waiting(partial(database.select, query))
        batches = iter(lambda: waiting(partial(next, selected.batches, None)), None)
        source = SourceInfo(name, address.kind.lower(), "", 0, 0, 0, key_columns=tuple(key))
        rows = checked(selected, batches, notes)
        return read_batches(named_schema(selected), rows, source, options, notes)


def _only_table(database: Database, waiting: Waiting) -> TableName:
    tables = waiting(database.tables)
    if len(tables) != 1:
        among = _listed(tables) if tables else "none that you may read"
        raise OptionError(
            "table_name", f"or --query must name what to read; the tables are: {among}."
        )
    return tables[0]


def require_table(table: TableName, database: Database, waiting: Waiting) -> None:
    """Raise InputError if a table does not exist."""
    if not waiting(partial(database.columns, table)):
        name, tables = ".".join(table), waiting(database.tables)
        near = suggest(name, [*map(typed, tables)]) or f" The tables are: {_listed(tables)}."
        raise InputError(f'there is no table "{one_line(name)}".{near if tables else ""}')


def _listed(names: Sequence[TableName]) -> str:
    shown = [one_line(typed(name), 60) for name in names[:_LISTED]]
    return in_prose(shown) if len(names) <= _LISTED else f"{', '.join(shown)}, ..."


DATABASES = Reader("databases", "query table_name timeout", _read, of_schemes(*DATABASE_KINDS))
