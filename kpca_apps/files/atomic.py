"""A file is written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kpca_apps.errors import InputError
from kpca_apps.files.leftovers import remove_leftovers, unfinished_path
from kpca_apps.files.names import one_line

__all__ = ["atomic_write", "storage_error"]

_RUST_NUMBER = re.compile(r"\(os error ([0-9]{1,5})\)")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FAILING = (errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE)


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only when complete.

    The bytes go to a temporary file in the same folder, which is flushed to disk and renamed on
    success, and removed on any error, an interrupt included.

    Parameters
    ----------
    path : str or Path
        The file to write; replaced if it exists.

    Yields
    ------
    binary file
        Where to write.

    Raises
    ------
    InputError
        If the folder is missing or cannot be written to, or the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "note.txt")
    ...     with atomic_write(target) as file:
    ...         _ = file.write(b"whole")
    ...     target.read_bytes()
    b'whole'
    """
    target = Path(path)
    label = one_line(str(target), 200)
    if target.is_dir():
        raise InputError(f"{label}: this is a folder; name a file to write.")
    remove_leftovers(target)
    temporary = unfinished_path(target)
    try:
        # Not tempfile: its files are private, and these should get the permissions of any other.
        file = temporary.open("xb")
    except (OSError, ValueError) as error:
        raise InputError(f"{label}: cannot be written ({_reason(error)}).") from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        try:
            temporary.replace(target)
        except OSError as error:
            raise InputError(f"{label}: cannot be replaced ({_reason(error)}).") from None
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if (failure := storage_error(error, label)) is not None:
            raise failure from error
        raise


def storage_error(error: BaseException | None, label: str) -> InputError | None:
    """Tell whether a disk that is full or failing was the cause of an error.

    Parameters
    ----------
    error : BaseException or None
        What was raised while writing.
    label : str
        What was to be written, as the user named it.

    Returns
    -------
    InputError or None
        What to raise instead; ``None`` where the cause was another.

    Examples
    --------
    >>> str(storage_error(OSError(errno.ENOSPC, "No space left on device"), "runs/first"))
    'runs/first: no space left on its disk; free some, or write to another place.'
    """
    while isinstance(error, InputError):
        error = error.__cause__
    number = _system_number(error)
    if error is None or number not in (*_FULL, *_FAILING):
        return None
    if number in _FULL:
        return InputError(
            f"{label}: no space left on its disk; free some, or write to another place."
        )
    return InputError(
        f"{label}: cannot be written ({os.strerror(number)}); write to another place."
    )


def _system_number(error: BaseException | None) -> int:
    """Return the number the system gave an error; 0 where it had no part in it.

    Errors of polars have it in their text, the way Rust writes it.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = _RUST_NUMBER.search(str(error))
    return int(found[1]) if found else 0


def _reason(error: Exception) -> str:
    return one_line(getattr(error, "strerror", None) or str(error))
