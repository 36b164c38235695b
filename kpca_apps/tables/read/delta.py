"""Read a version of a Delta table, without deleted rows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from kpca_apps.errors import ConfigError, InputError, KpcaError, about, install_extra
from kpca_apps.names import one_line
from kpca_apps.system.interrupts import heard_while
from kpca_apps.system.stores.addresses import AnyPath, StorePath
from kpca_apps.system.stores.buckets import CONNECT, REQUEST, TRIES, endpoint, place_of, reason
from kpca_apps.tables.read.arrow import read_batches
from kpca_apps.tables.read.parquet import refuse_damaged
from kpca_apps.tables.read.reader import Folder, Reader
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import PartedTable, Table, as_arrow, as_polars

LOG = "_delta_log"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def is_delta(folder: AnyPath) -> bool:
    """Whether a folder is a Delta table, whose Parquet files may contain deleted rows."""
    if isinstance(folder, StorePath):
        return place_of(folder / LOG).kind() == "folder"
    return (folder / LOG).is_dir()


def _read(folder: Folder) -> Table | PartedTable:
    """Read the version ``as_of``, by default the latest; rows come in the order of the log."""
    place = folder.path
    try:
        from deltalake import DeltaTable, QueryBuilder
    except ImportError:
        raise ConfigError(
            "this is a Delta table, and reading one needs an extra; install it with: "
            f"{install_extra('lake')}",
            place,
        ) from None
    options = folder.options
    with _errors_in_one_line(place):
        # A relative path could be mistaken for an address.
        uri = str(place.absolute() if isinstance(place, Path) else place)
        table = DeltaTable(uri, storage_options=_storage(place))
        if isinstance(options.as_of, int | datetime):
            _load_version(table, options.as_of)
        paths = pa.table(table.get_add_actions())["path"].to_pylist()
        _refuse_outside(paths)
        _refuse_damaged(place, paths)
        # With several partitions, rows would be read in parallel and come in any order.
        query = QueryBuilder().register("delta", table)
        query.execute("set datafusion.execution.target_partitions = 1")
        found = query.execute("select * from delta")
        stream = pa.RecordBatchReader.from_stream(found)
    version = str(table.version())
    source = SourceInfo(
        str(place).rpartition("/")[2],
        "delta",
        "",
        0,
        0,
        0,
        notes=(f"Version {version} of the Delta table.",),
        version=version,
    )
    schema = _without_views(stream.schema.empty_table()).schema
    return read_batches(schema, _batches(stream, place), source, options)


def _load_version(table: Any, as_of: int | datetime) -> None:
    latest = table.version()
    if isinstance(as_of, int) and as_of > latest:
        raise InputError(f"there is no version {as_of} yet; the latest is {latest}.")
    table.load_as_version(as_of)
    if isinstance(as_of, datetime):
        # For a time before the first version, the library would load the first version.
        written = table.history(1)[0].get("timestamp") if table.version() == 0 else None
        if written is not None and as_of.timestamp() * 1000 < written:
            first = datetime.fromtimestamp(written / 1000, UTC).isoformat(timespec="seconds")
            raise InputError(f"there was no version yet at that time; the first is of {first}.")


def _refuse_outside(paths: list[str]) -> None:
    """Raise InputError if the log names a file outside the table, which may be a private file."""
    for path in paths:
        parts = [unquote(part) for part in re.split(r"[/\\]", path)]
        if not parts[0] or ".." in parts or _SCHEME.match(path):
            raise InputError(
                f'its log names a file outside the table, "{one_line(path, 100)}", as that of a '
                "shallow clone does; make a deep clone."
            )


def _refuse_damaged(place: AnyPath, paths: list[str]) -> None:
    """Raise InputError if a file of the version is damaged, as the library may crash on it."""
    there = place_of(place) if isinstance(place, StorePath) else None
    for path in paths:
        name = unquote(path)
        with about(f"{place}/{name}"):
            if there is None:
                if not Path(place / name).is_file():
                    raise InputError("is missing or not a file, so the table lacks its rows.")
                with pa.OSFile(os.fsencode(place / name)) as file:
                    refuse_damaged(file)
            else:
                with there.inside(name).opened() as file:
                    refuse_damaged(file)


def _storage(place: AnyPath) -> dict[str, str] | None:
    if isinstance(place, Path):
        return None
    options = {
        "connect_timeout": f"{CONNECT:g}s",
        "timeout": f"{REQUEST:g}s",
        "max_retries": f"{TRIES}",
        "retry_timeout": f"{REQUEST * TRIES:g}s",
    }
    if url := endpoint():
        options |= {"aws_endpoint_url": url, "aws_allow_http": str(url.startswith("http:")).lower()}
    return options


def _batches(stream: pa.RecordBatchReader, place: AnyPath) -> Iterator[pa.RecordBatch]:
    with _errors_in_one_line(place):
        while (batch := heard_while(lambda: next(stream, None))) is not None:
            yield from _without_views(pa.Table.from_batches([batch])).to_batches()


def _without_views(rows: pa.Table) -> pa.Table:
    """Replace views of texts by copies, as a view keeps the texts of all rows in memory."""
    return as_arrow(as_polars(rows))


@contextmanager
def _errors_in_one_line(place: AnyPath) -> Iterator[None]:
    try:
        yield
    except KpcaError:
        raise
    except Exception as error:
        text = " ".join(_COLOUR.sub("", str(error)).split())
        if "No files in log segment" in text:
            why = "its log is empty; it is not a Delta table, or it is damaged."
        elif isinstance(place, StorePath):
            why = reason(text, str(place))
        else:
            why = f"the Delta table cannot be read ({one_line(text, 160)})."
        raise InputError(why, place) from None


DELTA: Reader[Folder] = Reader("a Delta table", "as_of", _read, lambda one: is_delta(one.path))
