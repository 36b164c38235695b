"""Temporary files of tables and images, in the system's temporary folder."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import chain
from pathlib import Path

from kpca_apps.errors import InputError, storage_error, storage_named
from kpca_apps.names import one_line
from kpca_apps.system.files.temporary import TemporaryPath, private_path, remove_leftovers
from kpca_apps.system.stores.addresses import AnyPath, StorePath

_SPOOL = "kpca-rows"
# Folder for copies of tables that workers on other machines read, local or in a store. None stands
# for the local temporary folder.
COPIES_IN: ContextVar[AnyPath | None] = ContextVar("copies_in", default=None)
# Disk space, in bytes, left free for other programs.
_RESERVE = 1 << 28


def spool(chunks: Iterable[bytes]) -> TemporaryPath:
    """Write bytes to a private temporary file, and return the file."""
    temporary = spool_folder(folder=False)
    try:
        write_spool(temporary.path, chunks)
    except BaseException:
        temporary.close()
        raise
    return temporary


def write_spool(path: Path, chunks: Iterable[bytes]) -> None:
    """Write bytes to a file in the temporary folder; raise InputError before its disk is full."""
    folder = path.parent
    rest = iter(chunks)
    first = next(rest, b"")  # read before making the file: an unreadable source leaves no file
    with storage_named(folder), path.open("wb") as file:
        for chunk in chain((first,), rest):
            require_disk(folder, len(chunk))
            file.write(chunk)


def require_disk(folder: Path, n_bytes: int, label: str = "", *, written: int = 0) -> None:
    """Raise InputError if a disk has no room for a number of bytes.

    For a copy of unknown length, as many bytes as were `written` so far must stay free, too.
    """
    with writable():
        free = shutil.disk_usage(folder).free
    if n_bytes + max(_RESERVE, written) > free:
        what, less = "what is kept while it is worked on", "free some"
        if written > _RESERVE:
            what = f"more than the {written / 2**30:.2g} GB that were read"
            less = "read less (LIMIT in --query), free some"
        raise InputError(
            f'"{one_line(str(folder), 200)}" has no room for {what}: {free / 2**30:.2g} GB are '
            f"free; {less}, or set TMPDIR to a folder elsewhere.",
            label,
        )


def remove_spools() -> None:
    """Remove leftovers of killed runs from the temporary folder."""
    with suppress(InputError):
        remove_leftovers(temporary_folder() / _SPOOL)


def spool_folder(*, folder: bool = True) -> TemporaryPath:
    """Return a private temporary folder or, without `folder`, a file."""
    with writable():
        return private_path(_SPOOL, folder=folder)


def copy_folder() -> TemporaryPath:
    """Return a temporary folder for a table's copy, in `COPIES_IN` if that is a local folder."""
    place = COPIES_IN.get()
    if place is None or isinstance(place, StorePath):
        return spool_folder()
    try:
        return TemporaryPath(place / _SPOOL, folder=True)
    except OSError as error:
        raise storage_error(error, place) or InputError(
            f"no file can be made there ({error.strerror}); name another folder by --work-dir.",
            place,
        ) from None


def temporary_folder() -> Path:
    """Return the system's folder for temporary files; raise InputError if there is none."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        raise InputError(
            "no folder for temporary files can be written to; set TMPDIR to one that can.",
            "What is kept while a table is worked on has no place",
        ) from None


@contextmanager
def writable() -> Iterator[None]:
    """Raise the error for a temporary folder that cannot be written, or for full memory."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise MemoryError(error.strerror) from None
        folder = temporary_folder()
        raise storage_error(error, folder) or InputError(
            f"no temporary file can be made there ({error.strerror}); set TMPDIR to another "
            "folder.",
            folder,
        ) from None
