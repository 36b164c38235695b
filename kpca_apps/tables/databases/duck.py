"""DuckDB by its Python library, which returns Arrow batches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kpca_apps.errors import InputError, require_library
from kpca_apps.system.files.spools import spool_folder
from kpca_apps.tables.databases.address import Address, TableName, sql_name
from kpca_apps.tables.databases.database import Cell, Database, Selected, require_file, select_list

_ROWS = 1 << 16  # number of rows of a batch
_MEMORY = "400MB"  # memory limit; larger sorts use temporary files
_DATES = ("DATE", "TIMESTAMP")
# Types that are converted to text: integers over 64 bits, and types missing in Arrow or polars.
_WRITTEN = ("HUGEINT", "UHUGEINT", "BIGNUM", "VARINT", "UNION", "ENUM", "BIT", "TIME")
# A list or record that contains one of these types is converted to text as a whole.
_AS_TEXT = re.compile(r"\b(UNION|INTERVAL|DATE|TIME)")
_FAR = "(CASE WHEN isfinite({0}) OR {0} IS NULL THEN 0 ELSE 1 END)"
_OF_TABLE = (
    "database_name = current_database() AND lower(schema_name) = lower(coalesce(?, "
    "current_schema())) AND lower(table_name) = lower(?)"
)


class DuckDB(Database):
    """A connection to a file of DuckDB."""

    tables_query = (
        "SELECT nullif(table_schema, current_schema()), table_name "
        "FROM information_schema.tables WHERE table_catalog = current_database() "
        "ORDER BY 1 NULLS FIRST, 2"
    )
    columns_query = (
        f"SELECT column_name FROM duckdb_columns() WHERE {_OF_TABLE} ORDER BY column_index"
    )
    key_query = (
        "SELECT unnest(constraint_column_names) FROM duckdb_constraints() "
        f"WHERE {_OF_TABLE} AND constraint_type = 'PRIMARY KEY'"
    )

    def __init__(self, address: Address, *, reading: bool = True) -> None:
        require_library("duckdb", "duckdb", "DuckDB")
        import duckdb

        path = require_file(address)
        # DuckDB's default temporary folder is next to the database.
        self._folder = spool_folder()
        options: dict[str, Any] = {
            "temp_directory": str(self._folder.path),
            "memory_limit": _MEMORY,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        try:
            self._connection = duckdb.connect(str(path), read_only=reading, config=options)
            # A view in a file of unknown origin could otherwise read local files.
            self._connection.execute("SET enable_external_access = false")
            self._connection.execute("SET lock_configuration = true")
        except BaseException:
            self._folder.close()
            raise

    def select(self, query: str) -> Selected:
        """Run a query as a subquery."""
        found = self._relation(f"SELECT * FROM (\n{query}\n) AS q")
        # Take the names from the query itself, as a subquery numbers repeated names.
        names, kinds = tuple(self._relation(query).columns), [str(k).upper() for k in found.types]
        aliases = [f"c{k}" for k in range(len(names))]
        cells = tuple(_cell(*one) for one in zip(aliases, kinds, strict=True))
        parts = select_list(cells, aliases, _FAR)
        rows = self._relation(f"SELECT {parts} FROM (\n{query}\n) AS q ({', '.join(aliases)})")
        reader = rows.to_arrow_reader(_ROWS)
        return Selected(names, cells, reader.schema, iter(reader))

    def _begin(self) -> None:
        self._run("BEGIN TRANSACTION")

    def _create(self, table: TableName, rows: pa.RecordBatchReader) -> None:
        self._connection.register("kpca_rows", rows)
        self._run(f"CREATE TABLE {sql_name(table)} AS SELECT * FROM kpca_rows")

    def close(self) -> None:
        """Close the connection, and remove the temporary folder."""
        super().close()
        self._folder.close()

    def _relation(self, query: str) -> Any:
        if len(self._connection.extract_statements(query)) != 1:
            raise InputError("--query holds several statements; give one SELECT.")
        return self._connection.sql(query)

    def _of_table(self, query: str, table: TableName) -> Sequence[tuple[Any, ...]]:
        *schema, name = table
        return self._rows(query, schema[0] if schema else None, name)


def _cell(alias: str, kind: str) -> Cell:
    nested = kind.endswith("]") or kind.startswith(("STRUCT", "MAP"))
    if kind.startswith(_DATES) and not nested:
        return Cell(f"CASE WHEN isfinite({alias}) THEN {alias} END", "finite")
    if kind == "INTERVAL":
        return Cell(f"epoch({alias})", "seconds")
    if kind.startswith(_WRITTEN) or (nested and _AS_TEXT.search(kind)):
        return Cell(f"{alias}::VARCHAR")
    return Cell(alias)
