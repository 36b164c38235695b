"""Rows -> a new table of a database: whole, or not there at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import polars as pl
import pyarrow as pa

from kpca_apps.errors import OptionError, RefusedError, about
from kpca_apps.names import one_line
from kpca_apps.tables.databases.address import (
    Address,
    TableName,
    database_address,
    is_database,
    table_name,
)
from kpca_apps.tables.databases.database import Database
from kpca_apps.tables.databases.reading import connected
from kpca_apps.tables.databases.waiting import Waiting
from kpca_apps.tables.table import as_arrow

# By these a table of scores is known, which may be replaced.
OF_SCORES = ("row", "novelty_score", "flagged", "rank")
_TRIED = pa.schema([("row", pa.int64())])


def check_new_table(uri: str, table: str, *, force: bool) -> None:
    """Refuse a table that may not be made or replaced, before any work."""
    address, name = _target(uri, table)
    with about(address.uri), connected(address, None, reading=False) as (database, waiting):
        is_there = _refuse(name, database, waiting, force)
        # It is made and not kept: who may not write is told so now.
        reader = pa.RecordBatchReader.from_batches(_TRIED, [])
        waiting(partial(database.write, name, reader, replace=is_there))


def write_rows(uri: str, table: str, rows: Iterator[pl.DataFrame], *, force: bool) -> None:
    """Write rows into a new table, in one transaction; with `force` scores are replaced."""
    address, name = _target(uri, table)
    first = as_arrow(next(rows))

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.to_batches()
        for more in rows:
            yield from as_arrow(more).cast(first.schema).to_batches()

    with about(address.uri), connected(address, None, reading=False) as (database, waiting):
        is_there = _refuse(name, database, waiting, force)
        reader = pa.RecordBatchReader.from_batches(first.schema, batches())
        waiting(partial(database.write, name, reader, replace=is_there))
        # A call of its own: where this is interrupted, one before may still go on to its end.
        waiting(database.commit)


def _target(uri: str, table: str) -> tuple[Address, TableName]:
    """Return a database, and the table that is to be made in it."""
    if not is_database(uri):
        raise OptionError(
            "write_to", "names a table of the database that is read; this is a file: leave it out."
        )
    try:
        name = table_name(table)
    except OptionError as error:
        raise OptionError("write_to", error.sentence) from None
    return replace(database_address(uri), table=None), name


def _refuse(name: TableName, database: Database, waiting: Waiting, force: bool) -> bool:
    """Refuse a table that is there; tell whether one is that may be replaced."""
    columns = waiting(partial(database.columns, name))
    if not columns:
        return False
    shown = f'the table "{one_line(".".join(name))}"'
    if not set(OF_SCORES) <= set(columns):
        raise RefusedError(
            f"{shown} holds something other than the scores of an earlier run; name another."
        )
    if not force:
        raise RefusedError(f"{shown} is there already; replace it with --force, or name another.")
    return True
