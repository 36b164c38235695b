"""Hidden files and folders for unfinished results, and removal of those left by killed runs.

The owner holds a lock (flock) on the file or folder itself, which the system releases when the
process ends. So a file that can be locked is a leftover and may be removed. A file that cannot be
locked is left, also on systems without such locks. A renamed folder keeps its lock.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import sys
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

_LONGEST_NAME = 40


class TemporaryPath:
    """A hidden file or folder next to a target, to be renamed to the target or removed.

    Leftovers of killed runs are removed first. If `path` still exists when this object is deleted
    or the process ends, it is removed. `private` denies access to other users.
    """

    def __init__(self, target: Path, *, folder: bool = False, private: bool = False) -> None:
        remove_leftovers(target)
        while True:
            self.path = _hidden(target, "partial")
            if folder:
                self.path.mkdir(0o700 if private else 0o777)
            else:
                self.path.touch(0o600 if private else 0o666, exist_ok=False)
            # Until this process has the lock, another run may remove the file: then try again.
            with suppress(FileNotFoundError):
                number = lock(self.path, wait=True)
                if number is None:
                    break
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(number), self.path.stat()):
                        break
                os.close(number)
        self._end = weakref.finalize(self, _end, self.path, number, os.getpid())

    def close(self) -> None:
        """Remove the file or folder, unless it was renamed, and release the lock."""
        self._end()


def private_path(kind: str, *, folder: bool = False) -> TemporaryPath:
    """Return a private temporary file or folder for a kind of content."""
    return TemporaryPath(Path(tempfile.gettempdir(), kind), folder=folder, private=True)


def retired_path(target: Path) -> Path:
    """Return the hidden path to which a file or folder is moved while it is replaced."""
    return _hidden(target, "old")


def remove_leftovers(target: Path) -> None:
    """Remove leftovers of killed runs next to a target.

    If the target is missing, restore the earlier results that the killed run was replacing.
    """
    shape = re.compile(rf"{re.escape(_prefix(target))}[0-9a-f]{{16}}\.(partial|old)")
    with suppress(OSError):
        for item in list(target.parent.iterdir()):
            if match := shape.fullmatch(item.name):
                with suppress(OSError):
                    number = lock(item)
                    if number is None:
                        continue
                    if match[1] == "old" and not (target.exists() or target.is_symlink()):
                        item.rename(target)
                    _end(item, number, os.getpid())


def remove(path: Path) -> None:
    """Remove a file or a folder with its content; ignore errors."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


if sys.platform == "win32":

    def lock(path: Path, *, wait: bool = False) -> int | None:
        """Return None, as Windows has no such locks."""
        return None
else:
    import fcntl

    def lock(path: Path, *, wait: bool = False) -> int | None:
        """Lock a file or folder, and return the locked descriptor; None without such locks.

        Raises BlockingIOError if another process has the lock, unless this one waits for it.
        """
        # Do not follow a link or wait for a named pipe. NFS locks only files opened for writing.
        access = os.O_RDONLY if path.is_dir() else os.O_RDWR
        number = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            os.close(number)
            if isinstance(error, BlockingIOError):
                raise
            return None
        return number


def _hidden(target: Path, role: str) -> Path:
    return target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.{role}")


def _prefix(target: Path) -> str:
    whole = hashlib.sha256(target.name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f".{target.name[:_LONGEST_NAME]}.{whole}-"


def _end(path: Path, number: int | None, owner: int) -> None:
    """Remove a path and release its lock, except in a forked child."""
    if os.getpid() != owner:
        return
    remove(path)
    if number is not None:
        os.close(number)
