"""Screen a database table and Parquet files of the same rows; compare time, memory, scores.

Run ``python -m tests.benchmarks.databases`` for ten million rows of 20 columns, generated in a
temporary folder and written to SQLite, DuckDB and a temporary PostgreSQL server; ``--rows`` sets
another number, ``--only sqlite`` selects one database. A database without library or server here is
skipped. Memory is that of the command, without the server.
"""

import argparse
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from kpca_apps.tables.databases.address import sql_name
from tests.benchmarks.large_tables import LABEL, make_table
from tests.benchmarks.processes import run_kpca
from tests.postgres import PASSWORD, running_server

ROWS = 1 << 16  # rows per insert


@contextmanager
def sqlite(folder: Path, data: Path) -> Iterator[str]:
    """Write the table to an SQLite file."""
    schema = pq.read_schema(next(iter(files(data))))
    with closing(sqlite3.connect(folder / "rows.db")) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        names = ", ".join(map(sql_name, schema.names))
        connection.execute(f"CREATE TABLE rows ({names})")
        marks = ", ".join("?" * len(schema))
        for path in files(data):
            for batch in pq.ParquetFile(path).iter_batches(ROWS):
                rows = pl.DataFrame(batch).rows()
                connection.executemany(f"INSERT INTO rows VALUES ({marks})", rows)
        connection.commit()
    yield f"sqlite:///{folder}/rows.db"


@contextmanager
def duckdb(folder: Path, data: Path) -> Iterator[str]:
    """Write the table to a DuckDB file."""
    library = pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
    with closing(library.connect(str(folder / "rows.duckdb"))) as connection:
        names = ", ".join(f"'{path}'" for path in files(data))
        connection.execute(f"CREATE TABLE rows AS SELECT * FROM read_parquet([{names}])")
    yield f"duckdb:///{folder}/rows.duckdb"


@contextmanager
def postgresql(folder: Path, data: Path) -> Iterator[str]:
    """Write the table to a temporary PostgreSQL server."""
    os.environ["PGPASSWORD"] = PASSWORD
    with running_server() as server:
        for path in files(data):
            server.ingest("rows", pq.read_table(path))
        yield server.uri


KINDS: dict[str, Callable[[Path, Path], object]] = {
    "sqlite": sqlite,
    "duckdb": duckdb,
    "postgresql": postgresql,
}


def files(data: Path) -> list[Path]:
    return sorted(data.glob("*.parquet"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--only", choices=KINDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = make_table(folder / "table", arguments.rows, arguments.columns)
        print(f"{arguments.rows:,} rows; {os.cpu_count()} cores", flush=True)
        expected = screened(folder, "parquet", str(data))
        for kind in [arguments.only] if arguments.only else KINDS:
            try:
                with KINDS[kind](folder, data) as uri:  # type: ignore[attr-defined]
                    found = screened(folder, kind, uri, "--table", "rows")
            except pytest.skip.Exception as reason:
                print(f"{kind} is skipped: {reason}")
                continue
            print(f"    same scores as Parquet: {np.array_equal(found, expected)}", flush=True)


def screened(folder: Path, kind: str, *table: str) -> np.ndarray:
    """Screen a table, print time and memory, and return the scores."""
    out = folder / f"out-{kind}"
    words = ("--label", LABEL, "--format", "parquet", "--out", out)
    taken = run_kpca("novelty", "screen", *table, *words)
    print(
        f"{kind:11} {taken.seconds:7.1f} s, {taken.cpu_seconds:7.1f} s of CPU, "
        f"{taken.peak_bytes / 2**20:7.0f} MiB",
        flush=True,
    )
    return pl.read_parquet(out / "scored.parquet", columns=["novelty_score"])[:, 0].to_numpy()


if __name__ == "__main__":
    main()
