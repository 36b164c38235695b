"""What the system says against opening a file, or writing to its disk, in one line."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kpca_apps.errors import InputError, KpcaError
from kpca_apps.names import reason_of

# Errors of polars have the system's number in their text, the way Rust writes it.
_RUST_NUMBER = re.compile(r"\(os error ([0-9]{1,5})\)")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FAILING = (errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE)


@contextmanager
def opening(place: str | Path, advice: Callable[[], str] = str) -> Iterator[None]:
    """Turn what the system says against opening a file into one line; advice on a missing one."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"no such file.{advice()}", place) from None
    except IsADirectoryError:
        raise InputError("this is a folder; name a file in it.", place) from None
    except PermissionError:
        raise InputError("no permission to read it; change its mode.", place) from None
    except KpcaError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({reason_of(error)}).", place) from None


@contextmanager
def storage_named(place: str | Path) -> Iterator[None]:
    """Say of a place that its disk is full or failing, where that caused an error."""
    try:
        yield
    except Exception as error:
        if (failure := storage_error(error, place)) is not None:
            raise failure from error
        raise


def storage_error(error: BaseException | None, place: str | Path) -> InputError | None:
    """Return what to raise where a disk that is full or failing caused an error, else ``None``."""
    while isinstance(error, InputError):
        error = error.__cause__
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (found := _RUST_NUMBER.search(str(error))):
        number = int(found[1])
    if number in _FULL:
        return InputError("no space left on its disk; free some, or write to another place.", place)
    if number in _FAILING:
        why = os.strerror(number)
        return InputError(f"cannot be written ({why}); write to another place.", place)
    return None
