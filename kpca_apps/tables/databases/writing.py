"""Write rows to a new table of a database, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

import polars as pl
import pyarrow as pa

from kpca_apps.errors import InputError, OptionError, RefusedError, about
from kpca_apps.names import one_line
from kpca_apps.tables.databases.address import (
    Address,
    TableName,
    database_address,
    is_database,
    sql_name,
    table_name,
)
from kpca_apps.tables.databases.database import Database
from kpca_apps.tables.databases.reading import Waiting, connected
from kpca_apps.tables.table import as_arrow

# A table that has these columns contains scores and may be replaced.
OF_SCORES = ("row", "novelty_score", "flagged", "rank")
_TRIED = pa.schema([("row", pa.int64())])


def check_new_table(uri: str, table: str, *, force: bool) -> None:
    """Raise an error, before any work, if a table cannot be created or replaced."""
    address, name = _target(uri, table)
    with about(address.uri), connected(address, None, reading=False) as (database, waiting):
        # Write an empty table, and roll it back.
        _write(name, pa.RecordBatchReader.from_batches(_TRIED, []), database, waiting, force)


def write_rows(uri: str, table: str, rows: Iterator[pl.DataFrame], *, force: bool) -> int:
    """Write rows into a new table; with `force`, replace a table of earlier scores.

    Returns the number of rows, counted by a second connection.
    """
    address, name = _target(uri, table)
    first, n_rows = as_arrow(next(rows)), 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal n_rows
        for part in chain([first], (as_arrow(more).cast(first.schema) for more in rows)):
            n_rows += part.num_rows
            yield from part.to_batches()

    with about(address.uri):
        with connected(address, None, reading=False) as (database, waiting):
            reader = pa.RecordBatchReader.from_batches(first.schema, batches())
            _write(name, reader, database, waiting, force)
            # Commit in a separate call: an interrupted write may still complete in its thread.
            waiting(database.commit)
        with connected(address, None) as (database, waiting):
            count = f"SELECT count(*) AS n FROM {sql_name(name)}"
            counted = waiting(partial(database.select, count))
            n_found = int(waiting(partial(next, counted.batches)).column(0)[0].as_py())
        if n_found != n_rows:
            raise InputError(
                f"{_shown(name)} has {n_found:,} of {n_rows:,} rows after they were written; "
                "write to another table."
            )
    return n_found


def _write(
    name: TableName, rows: pa.RecordBatchReader, database: Database, waiting: Waiting, force: bool
) -> None:
    """Write rows into a new or replaced table; raise RefusedError if it would be temporary."""
    is_there = _refuse(name, database, waiting, force)
    waiting(partial(database.write, name, rows, replace=is_there))
    if not waiting(partial(database.columns, name)):
        raise RefusedError(
            f"{_shown(name)} would be a temporary table, deleted at the end of the connection; "
            "name a table of another schema."
        )


def _target(uri: str, table: str) -> tuple[Address, TableName]:
    if not is_database(uri):
        raise OptionError(
            "write_to", "is only for a table that is read from a database: leave it out."
        )
    try:
        name = table_name(table)
    except OptionError as error:
        raise OptionError("write_to", error.sentence) from None
    return replace(database_address(uri), table=None), name


def _refuse(name: TableName, database: Database, waiting: Waiting, force: bool) -> bool:
    columns = waiting(partial(database.columns, name))
    if not columns:
        return False
    shown = _shown(name)
    if not set(OF_SCORES) <= set(columns):
        raise RefusedError(
            f"{shown} exists and holds no scores of an earlier run, so it is never replaced; name "
            "another with --write-to."
        )
    if not force:
        raise RefusedError(f"{shown} exists already; replace it with --force, or name another.")
    return True


def _shown(name: TableName) -> str:
    return f'the table "{one_line(".".join(name))}"'
