"""A file is written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kpca_apps.errors import InputError
from kpca_apps.files.names import one_line

__all__ = ["atomic_write"]


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
        If the folder is missing or cannot be written to.

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
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.partial")
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
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _reason(error: Exception) -> str:
    return one_line(getattr(error, "strerror", None) or str(error))
