import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kpca_apps.tables.databases.address import sql_name
from tests.postgres import PASSWORD, Server

Make = Callable[..., str]
TYPES = {
    "sqlite": {pl.Int64: "INTEGER", pl.Float64: "REAL", pl.String: "TEXT"},
    "duckdb": {pl.Int64: "BIGINT", pl.Float64: "DOUBLE", pl.String: "VARCHAR"},
    "postgresql": {pl.Int64: "int8", pl.Float64: "float8", pl.String: "text"},
}


def definitions(frame: pl.DataFrame, kind: str, key: str | None) -> str:
    """Return the column definitions of a new table in a database's SQL."""
    return ", ".join(
        f"{sql_name(name)} {TYPES[kind][type(dtype)]}{' PRIMARY KEY' * (name == key)}"
        for name, dtype in frame.schema.items()
    )


@pytest.fixture
def make(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Make]:
    """Return a function that writes a frame to a database table and returns its address."""
    made: list[str] = []

    def make_table(frame: pl.DataFrame, name: str = "birds", key: str | None = None) -> str:
        made.append(name)
        create = f"CREATE TABLE {sql_name(name)} ({definitions(frame, kind, key)})"
        marks = ", ".join("?" * frame.width)
        if kind == "postgresql":
            server: Server = request.getfixturevalue("postgres")
            monkeypatch.setenv("PGPASSWORD", PASSWORD)
            server.run(f"DROP TABLE IF EXISTS {sql_name(name)}", create, **{name: frame.to_arrow()})
            return server.uri
        if kind == "sqlite":
            path = tmp_path / "shop.db"
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute(create)
                connection.executemany(
                    f"INSERT INTO {sql_name(name)} VALUES ({marks})", frame.rows()
                )
            return f"sqlite:///{path}"
        path = tmp_path / "shop.duckdb"
        with duckdb_of(path) as connection:
            connection.execute(create)
            connection.register("frame", frame.to_arrow())
            connection.execute(f"INSERT INTO {sql_name(name)} SELECT * FROM frame")
        return f"duckdb:///{path}"

    yield make_table
    if kind == "postgresql" and made:
        # Drop everything that the test created.
        server = request.getfixturevalue("postgres")
        server.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


def duckdb_of(path: Path) -> Any:
    duckdb = pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
    return closing(duckdb.connect(str(path)))
