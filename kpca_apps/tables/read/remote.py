"""Tables in an object store: found by address, and copied once to disk.

Whatever is read, is read from the copy: every kind of file, in any number of passes, as it was at
one time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

from kpca_apps.errors import InputError, KpcaError
from kpca_apps.names import TABLE_SUFFIXES
from kpca_apps.system.files.spools import copy_folder, write_spool
from kpca_apps.system.files.temporary import TemporaryPath
from kpca_apps.system.stores.buckets import Item, Place, place_of
from kpca_apps.tables.read.delta import LOG
from kpca_apps.tables.read.hive import is_partition
from kpca_apps.tables.read.parquet import PARQUET_SUFFIXES

_PATTERN = re.compile(r"[*?[]")


def expand_address(address: str) -> list[str]:
    """Name the objects that are meant: one, those of a pattern, or the tables of a folder.

    A folder that is one table by itself is left as it is.
    """
    place = place_of(address)
    kind = place.kind()
    if not kind and _PATTERN.search(place.path):
        return _matches(place)
    if not kind:
        raise InputError("there is no such object (404).", place.address)
    if kind == "file" or holds_delta(place):
        return [place.address]
    items = _visible(place)
    tables = [one.name for one in items if not one.is_folder and _is_table(one.name)]
    if not tables or any(name.lower().endswith(PARQUET_SUFFIXES) for name in tables):
        return [place.address]
    return [place.inside(name).address for name in tables]


def holds_delta(place: Place) -> bool:
    """Whether a folder is a Delta table."""
    return place.inside(LOG).kind() == "folder"


def copied_folder(place: Place) -> tuple[TemporaryPath, Path]:
    """Copy the tables of a folder, with those of folders named after values; return it in both."""
    items = _visible(place)
    if any(one.is_folder and is_partition(one.name) for one in items):
        items = _visible(place, recursive=True)
    held = copy_folder()
    folder = held.path / (place.path.rpartition("/")[2])
    try:
        folder.mkdir()
        for one in items:
            target = folder / one.name
            try:
                (target if one.is_folder else target.parent).mkdir(parents=True, exist_ok=True)
                if not one.is_folder and _is_table(one.name):
                    write_spool(target, place.inside(one.name).chunks())
            except (OSError, ValueError) as error:
                if isinstance(error, KpcaError):
                    raise
                raise InputError(
                    "has a name that no file here can have; copy it to another.",
                    place.inside(one.name).address,
                ) from None
    except BaseException:
        held.close()
        raise
    return held, folder


@contextmanager
def named_after(folder: Path, address: str) -> Iterator[None]:
    """Put the address of a folder into messages that name its copy."""
    try:
        yield
    except KpcaError as error:
        error.args = tuple(str(part).replace(str(folder), address) for part in error.args)
        raise


def _matches(place: Place) -> list[str]:
    parts = place.path.split("/")
    n_fixed = next(k for k, part in enumerate(parts) if _PATTERN.search(part))
    fixed, wanted = "/".join(parts[:n_fixed]), parts[n_fixed:]
    end = len(place.address) - len("/".join(wanted)) - 1
    start = Place(place.address[:end], fixed, place.system)
    found = [
        start.inside(one.name).address
        for one in _visible(start, recursive=len(wanted) > 1)
        if not one.is_folder and _fits(one.name.split("/"), wanted)
    ]
    if not found:
        raise InputError("no object has such a name.", place.address)
    return found


def _fits(parts: list[str], wanted: list[str]) -> bool:
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _visible(place: Place, *, recursive: bool = False) -> list[Item]:
    """Return what is in a folder, but for what is hidden, with a dot or underscore, and in that.

    A name is refused that as a path on disk would lead out of the folder that it is copied to.
    """
    found = []
    for one in place.items(recursive=recursive):
        parts = one.name.split("/")
        if any(part.startswith((".", "_")) for part in parts):
            continue
        on_disk = Path(one.name)
        if "" in parts or on_disk.anchor or ".." in on_disk.parts:
            raise InputError(
                "has an empty part in its name, or another that no folder here can have; copy it "
                "to another name.",
                f"{place.address}/{one.name}",
            )
        found.append(one)
    return found


def _is_table(name: str) -> bool:
    return name.lower().endswith(TABLE_SUFFIXES)
