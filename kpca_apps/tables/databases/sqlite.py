"""SQLite by Python's own module.

The ADBC driver takes half the time, but cannot be interrupted. It infers the type of a column from
the first rows, although in SQLite each cell has its own type.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from kpca_apps.system.limits import LONGEST_ROW
from kpca_apps.tables.databases.address import Address, TableName, sql_name
from kpca_apps.tables.databases.database import EXACT, Cell, Database, Selected, require_file

_ROWS = 1 << 13  # number of rows that are read at once
_DIGITS = "kpca_digits"  # name of an SQL function that returns the exact text of a number
# The type of a cell; "long" is an integer that a float may not represent exactly.
_KIND = (
    f"CASE WHEN typeof({{0}}) = 'integer' AND {{0}} NOT BETWEEN {1 - EXACT} AND {EXACT - 1} "
    "THEN 'long' ELSE typeof({0}) END"
)


class SQLite(Database):
    """A connection to a file of SQLite."""

    tables_query = (
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    )
    columns_query = "SELECT name FROM pragma_table_info(?, 'main') ORDER BY cid"
    key_query = "SELECT name FROM pragma_table_info(?, 'main') WHERE pk > 0 ORDER BY pk"

    def __init__(self, address: Address, *, reading: bool = True) -> None:
        path = require_file(address)
        if reading and Path(f"{path}-journal").exists():
            # Opening for writing rolls back the unfinished transaction of a killed program.
            with suppress(sqlite3.Error), closing(_connect(path, "rw")) as writer:
                writer.execute("PRAGMA schema_version").fetchone()
        self._connection = _connect(path, "ro" if reading else "rw")
        # SQLite's own conversion to text keeps only 15 digits of a float.
        self._connection.create_function(_DIGITS, 1, repr, deterministic=True)
        self._connection.execute("PRAGMA trusted_schema = OFF")
        if reading:
            # Refuse cells that are longer than a row may be, before they are loaded.
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_ROW)
            self._connection.execute("PRAGMA query_only = ON")
            self._connection.execute("BEGIN")

    def select(self, query: str) -> Selected:
        """Run a query as a subquery twice: for the types of the columns, then for their cells."""
        head = self._connection.execute(f"SELECT * FROM (\n{query}\n) LIMIT 0")
        # A subquery renames a repeated column s to s:1: take the names from the query itself.
        if any(":" in one[0] for one in head.description):
            head = self._connection.execute(query)
        names = tuple(str(one[0]) for one in head.description)
        aliases = [f"c{k}" for k in range(len(names))]
        begin = f"WITH q ({', '.join(aliases)}) AS (\n{query}\n) SELECT "
        kinds = ", ".join(f"group_concat(DISTINCT {_KIND.format(alias)})" for alias in aliases)
        (found,) = self._connection.execute(f"{begin}{kinds} FROM q").fetchall()
        chosen = [
            _cell(alias, {*str(kind or "null").split(",")} - {"null"})
            for alias, kind in zip(aliases, found, strict=True)
        ]
        cells = tuple(cell for cell, _ in chosen)
        schema = pa.schema([(f"c{k}", kind) for k, (_, kind) in enumerate(chosen)])
        parts = ", ".join(cell.expression for cell in cells)
        rows = self._connection.execute(f"{begin}{parts} FROM q")
        return Selected(names, cells, schema, _batches(rows, schema))

    def _create(self, table: TableName, rows: pa.RecordBatchReader) -> None:
        place = sql_name(table)
        columns = ", ".join(f"{sql_name(one.name)} {_type(one.type)}" for one in rows.schema)
        self._run(f"CREATE TABLE {place} ({columns})")
        marks = ", ".join("?" * len(rows.schema))
        for batch in rows:
            cells = ([_stored(cell) for cell in column.to_pylist()] for column in batch.columns)
            values = zip(*cells, strict=True)
            self._connection.executemany(f"INSERT INTO {place} VALUES ({marks})", values)

    def _of_table(self, query: str, table: TableName) -> Sequence[tuple[Any, ...]]:
        *schema, name = table
        return self._rows(query, name) if [*map(str.lower, schema)] in ([], ["main"]) else []


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?mode={mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)


def _cell(alias: str, kinds: set[str]) -> tuple[Cell, pa.DataType]:
    if not kinds:
        return Cell(alias), pa.null()
    if kinds <= {"integer", "long"}:
        return Cell(alias), pa.int64()
    if kinds <= {"integer", "long", "real"}:
        remark = "rounded" if "long" in kinds else ""
        return Cell(f"CAST({alias} AS REAL)", remark), pa.float64()
    if kinds == {"blob"}:
        return Cell(alias), pa.large_binary()
    if kinds == {"text"}:
        return Cell(alias), pa.large_utf8()
    as_text = f"WHEN 'blob' THEN lower(hex({alias})) WHEN 'real' THEN {_DIGITS}({alias})"
    return Cell(f"CASE typeof({alias}) {as_text} ELSE CAST({alias} AS TEXT) END"), pa.large_utf8()


def _batches(rows: sqlite3.Cursor, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while found := rows.fetchmany(_ROWS):
        columns = zip(*found, strict=True)
        arrays = [pa.array(cells, kind) for cells, kind in zip(columns, schema.types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return "INTEGER"
    return "REAL" if pa.types.is_floating(kind) else "TEXT"


def _stored(value: object) -> object:
    return value if value is None or isinstance(value, int | float | str | bytes) else str(value)
