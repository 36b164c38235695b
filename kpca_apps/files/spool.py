"""Temporary files for what cannot be read twice as it is: streams, packed or foreign text."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from kpca_apps.errors import InputError
from kpca_apps.files.atomic import storage_error
from kpca_apps.files.leftovers import remove_leftovers, unfinished_path
from kpca_apps.files.names import one_line

__all__ = [
    "Spool",
    "remove_spools",
    "require_disk",
    "spool",
    "spool_folder",
    "temporary_folder",
    "unusable",
]

_NAME = "kpca-rows"
# Left to whatever else writes to the same disk.
_RESERVE = 1 << 28


class Spool:
    """A temporary file or folder, removed when nothing refers to this, or when the program ends.

    Parameters
    ----------
    path : Path
        The file or folder.

    Attributes
    ----------
    path : Path
        The same.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._remove = weakref.finalize(self, _removed, path)

    def close(self) -> None:
        """Remove it now."""
        self._remove()


def spool(chunks: Iterable[bytes], label: str) -> Spool:
    """Write bytes to a temporary file that only this user can read.

    Parameters
    ----------
    chunks : iterable of bytes
        What to write.
    label : str
        Where it comes from, for messages.

    Returns
    -------
    Spool
        The file.

    Raises
    ------
    InputError
        If the disk has no room for it.

    Examples
    --------
    >>> held = spool([b"a,b", b"1,2"], "t.csv")
    >>> held.path.read_bytes()
    b'a,b1,2'
    >>> held.close()
    >>> held.path.exists()
    False
    """
    held = Spool(_new_path())
    try:
        number = os.open(held.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise unusable(error) from None
    try:
        with os.fdopen(number, "wb") as file:
            for chunk in chunks:
                require_disk(held.path.parent, len(chunk), label)
                file.write(chunk)
    except BaseException as error:
        held.close()
        if (failure := storage_error(error, one_line(str(held.path.parent), 200))) is not None:
            raise failure from error
        raise
    return held


def spool_folder() -> Spool:
    """Make a temporary folder that only this user can look into.

    Raises
    ------
    InputError
        If none can be made.

    Examples
    --------
    >>> held = spool_folder()
    >>> held.path.is_dir()
    True
    >>> held.close()
    """
    path = _new_path()
    try:
        path.mkdir(mode=0o700)
    except OSError as error:
        raise unusable(error) from None
    return Spool(path)


def require_disk(folder: Path, n_bytes: int, label: str) -> None:
    """Refuse to write what a disk has no room for.

    Parameters
    ----------
    folder : Path
        Where it would go.
    n_bytes : int
        Its size.
    label : str
        What it is for, as the user named it.

    Raises
    ------
    InputError
        Naming the folder and what is free.
    """
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise unusable(error) from None
    if n_bytes + _RESERVE > free:
        raise InputError(
            f'{label}: "{one_line(str(folder), 200)}" has no room for what is kept while it is '
            f"worked on: {free / 2**30:.2g} GB are free; free some, or set TMPDIR to a folder "
            "elsewhere."
        )


def temporary_folder() -> Path:
    """Return the folder temporary files go to.

    Raises
    ------
    InputError
        If there is none that can be written to.
    """
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        raise InputError(
            "What is kept while a table is worked on has no place: no folder for temporary files "
            "can be written to; set TMPDIR to one that can."
        ) from None


def remove_spools() -> None:
    """Remove what processes that were killed left of theirs, however large; every reading asks."""
    with suppress(InputError):
        remove_leftovers(temporary_folder() / _NAME)


def _new_path() -> Path:
    return unfinished_path(temporary_folder() / _NAME)


def unusable(error: OSError) -> InputError:
    """Return the error for a folder in which no temporary file can be made."""
    folder = one_line(str(temporary_folder()), 200)
    return storage_error(error, folder) or InputError(
        f"{folder}: no temporary file can be made there ({error.strerror}); set TMPDIR to another "
        "folder."
    )


def _removed(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
