"""PostgreSQL by ADBC, which returns Arrow batches; queries run in a read-only transaction."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa

from kpca_apps.errors import InputError, require_library
from kpca_apps.tables.databases.address import Address, TableName, sql_name
from kpca_apps.tables.databases.database import Cell, Database, Selected, select_list

_PATIENCE = 15  # default of connect_timeout, in seconds
_PLAIN = frozenset(("int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "name"))
_DATES = frozenset(("date", "timestamp", "timestamptz"))
# The driver stores dates as 64-bit microseconds, whose range ends in the year 294247.
_FINITE = "isfinite({0}) AND {0} < '294000-01-01'"
_FAR = f"(CASE WHEN {_FINITE} OR {{0}} IS NULL THEN 0 ELSE 1 END)"


class PostgreSQL(Database):
    """A connection to a PostgreSQL server."""

    in_stored_order = False  # an updated row moves to another position in its table
    tables_query = """
SELECT CASE WHEN NOT pg_table_is_visible(c.oid) THEN n.nspname::text END, c.relname::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname !~ '^(pg_|information_schema$)'
  AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1 NULLS FIRST, 2"""
    columns_query = """
SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.oid = to_regclass({0}) AND c.relpersistence <> 't' AND a.attnum > 0
  AND NOT a.attisdropped ORDER BY a.attnum"""
    key_query = """
SELECT a.attname::text FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = to_regclass({0}) AND i.indisprimary
ORDER BY array_position(i.indkey::int2[], a.attnum)"""

    def __init__(self, address: Address, *, reading: bool = True) -> None:
        require_library("adbc_driver_postgresql", "db", "PostgreSQL")
        from adbc_driver_postgresql import dbapi

        # The driver begins a transaction before the first statement.
        self._connection = dbapi.connect(_with_patience(address.uri))
        self._cursor: Any = None
        settings = ["SET LOCAL client_encoding = 'UTF8'"]
        if reading:
            settings.insert(0, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        if address.query is None:
            # Synchronized or parallel scans may change the order of rows.
            settings.append("SET LOCAL synchronize_seqscans = off")
            settings.append("SET LOCAL max_parallel_workers_per_gather = 0")
        for setting in settings:
            self._run(setting)

    def select(self, query: str) -> Selected:
        """Run a query as a subquery, which fails unless it is a single SELECT."""
        with closing(self._connection.cursor()) as cursor:
            found = cursor.adbc_execute_schema(f"SELECT * FROM (\n{query}\n) AS q")
        if not len(found):
            raise InputError("the query has no columns; there is nothing to screen.")
        aliases = [f"c{k}" for k in range(len(found))]
        kinds = [(field.metadata or {}).get(b"POSTGRESQL:type", b"").decode() for field in found]
        cells = tuple(_cell(*one) for one in zip(aliases, kinds, strict=True))
        parts = select_list(cells, aliases, _FAR)
        self._cursor = self._connection.cursor()
        self._cursor.execute(f"SELECT {parts} FROM (\n{query}\n) AS q ({', '.join(aliases)})")
        reader = self._cursor.fetch_record_batch()
        return Selected(tuple(found.names), cells, reader.schema, iter(reader))

    def _begin(self) -> None:
        """Do nothing, as the driver has already begun a transaction."""

    def _create(self, table: TableName, rows: pa.RecordBatchReader) -> None:
        *schema, name = table
        with closing(self._connection.cursor()) as cursor:
            place = {"db_schema_name": schema[0]} if schema else {}
            cursor.adbc_ingest(name, rows, mode="create", **place)

    def commit(self) -> None:
        """Commit the transaction."""
        self._connection.commit()

    def cancel(self) -> None:
        """Interrupt the running query, also on the server."""
        self._connection.adbc_cancel()

    def close(self) -> None:
        """Close the connection, which rolls back an open transaction."""
        if self._cursor is not None:
            self._cursor.close()
        super().close()

    def _run(self, statement: str) -> None:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(statement)

    def _rows(self, query: str, *_parameters: Any) -> Sequence[tuple[Any, ...]]:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def _of_table(self, query: str, table: TableName) -> Sequence[tuple[Any, ...]]:
        name = sql_name(table).replace("\\", "\\\\").replace("'", "''")
        return self._rows(query.format(f"E'{name}'"))


def _with_patience(uri: str) -> str:
    try:
        options = parse_qsl(urlsplit(uri).query)
    except ValueError:  # the error's message may contain the password
        raise InputError("the host name has an invalid character; correct the address") from None
    if "PGCONNECT_TIMEOUT" in os.environ or any(
        name in ("connect_timeout", "service") for name, _ in options
    ):
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}connect_timeout={_PATIENCE}"


def _cell(alias: str, kind: str) -> Cell:
    if kind in _PLAIN or kind == "bytea":
        return Cell(alias)
    if kind in _DATES:
        return Cell(f"CASE WHEN {_FINITE.format(alias)} THEN {alias} END", "finite")
    if kind in ("numeric", "money"):
        return Cell(f"{alias}::numeric::float8", "rounded")
    if kind == "interval":
        return Cell(f"extract(epoch FROM {alias})::float8", "seconds")
    if kind == "oid":
        return Cell(f"{alias}::int8")
    if kind.startswith("_"):
        return Cell(f"to_json({alias})::text")
    return Cell(f"{alias}::text")
