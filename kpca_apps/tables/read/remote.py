"""Tables in an object store, copied to disk, so that all passes read the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kpca_apps.errors import InputError, KpcaError
from kpca_apps.names import TABLE_SUFFIXES
from kpca_apps.system.files.spools import copy_folder
from kpca_apps.system.files.temporary import TemporaryPath
from kpca_apps.system.stores.addresses import StorePath
from kpca_apps.system.stores.buckets import Place, download, matching, nothing_there, place_of
from kpca_apps.tables.read.delta import is_delta
from kpca_apps.tables.read.hive import HIDDEN, is_partition
from kpca_apps.tables.read.parquet import PARQUET_SUFFIXES


def expand_address(address: str) -> list[str]:
    """Return the addresses of an object, of a pattern's matches, or of a folder's tables.

    A folder that is one table stays one address.
    """
    place = place_of(address)
    kind = place.kind()
    if not kind:
        start, found = matching(place, HIDDEN)
        if not found:
            raise InputError(nothing_there(start, place), place.address)
        return [start.inside(one.name).address for one in found]
    if kind == "file" or is_delta(StorePath(place.address)):
        return [place.address]
    items = place.copyable(HIDDEN)
    tables = [one.name for one in items if not one.is_folder and _is_table(one.name)]
    if not tables or any(name.lower().endswith(PARQUET_SUFFIXES) for name in tables):
        return [place.address]
    return [place.inside(name).address for name in tables]


def copied_folder(place: Place) -> tuple[TemporaryPath, Path]:
    """Copy a folder's tables and partitions; return the temporary folder and the copy in it."""
    items = place.copyable(HIDDEN)
    if any(one.is_folder and is_partition(one.name) for one in items):
        items = place.copyable(HIDDEN, recursive=True)
    held = copy_folder()
    folder = held.path / place.name
    try:
        download(place, [one for one in items if one.is_folder or _is_table(one.name)], folder)
    except BaseException:
        held.close()
        raise
    return held, folder


@contextmanager
def named_after(folder: Path, address: str) -> Iterator[None]:
    """In error messages, replace the path of a copy by the address of the original."""
    try:
        yield
    except KpcaError as error:
        error.args = tuple(str(part).replace(str(folder), address) for part in error.args)
        raise


def _is_table(name: str) -> bool:
    return name.lower().endswith(TABLE_SUFFIXES)
