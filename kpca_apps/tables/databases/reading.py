"""A table of a database, or the rows of a query -> a table, from one state of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from kpca_apps.errors import InputError, OptionError
from kpca_apps.names import in_prose, one_line, suggest
from kpca_apps.tables.databases.address import (
    DATABASE_KINDS,
    Address,
    TableName,
    database_address,
    sql_name,
    typed,
)
from kpca_apps.tables.databases.database import Database, checked, named_schema, told
from kpca_apps.tables.databases.waiting import Waiting
from kpca_apps.tables.input_file import ReadOptions
from kpca_apps.tables.read.arrow import read_batches
from kpca_apps.tables.read.uri import UriReader
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import PartedTable, Table

_LISTED = 20  # tables that a message names
_STORED = (
    "The table has no primary key: its rows come as the server stores them, and may come in "
    "another order once some are changed."
)
_UNORDERED = (
    "The query has no ORDER BY: its rows may come in another order another time, and row numbers, "
    "ties and samples with them."
)


@contextmanager
def connected(
    address: Address, seconds: float | None, *, reading: bool = True
) -> Iterator[tuple[Database, Waiting]]:
    """Connect to a database; what it, or its library, says against that becomes one line."""
    waiting = Waiting(seconds)
    with told(address.kind):
        database = waiting(partial(_opener(address.kind), address, reading=reading))
        waiting.cancel = database.cancel
        try:
            yield database, waiting
        finally:
            if not waiting.is_stuck:
                database.close()


def _opener(kind: str) -> Callable[..., Database]:
    """Return what connects to a database of a kind: none is loaded before it is needed."""
    if kind == "SQLite":
        from kpca_apps.tables.databases.sqlite import SQLite

        return SQLite
    if kind == "DuckDB":
        from kpca_apps.tables.databases.duck import DuckDB

        return DuckDB
    from kpca_apps.tables.databases.postgresql import PostgreSQL

    return PostgreSQL


def _read(uri: str, options: ReadOptions) -> Table | PartedTable:
    """Read a table, or the rows of a query; the transaction ends once all are here."""
    address = database_address(uri, options.table_name, options.query)
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
    """Return the table that is meant where none is named: the only one."""
    tables = waiting(database.tables)
    if len(tables) != 1:
        among = _listed(tables) if tables else "none that you may read"
        raise OptionError(
            "table_name", f"or --query has to say what is read; the tables are: {among}."
        )
    return tables[0]


def require_table(table: TableName, database: Database, waiting: Waiting) -> None:
    """Refuse a table that is not there."""
    if not waiting(partial(database.columns, table)):
        name, tables = ".".join(table), waiting(database.tables)
        near = suggest(name, [*map(typed, tables)]) or f" The tables are: {_listed(tables)}."
        raise InputError(f'there is no table "{one_line(name)}".{near if tables else ""}')


def _listed(names: Sequence[TableName]) -> str:
    shown = [one_line(typed(name), 60) for name in names[:_LISTED]]
    return in_prose(shown) if len(names) <= _LISTED else f"{', '.join(shown)}, ..."


DATABASES = UriReader(tuple(DATABASE_KINDS), "databases", "query table_name timeout", _read)
