"""Hidden files and folders for unfinished results, and removal of killed runs' leftovers.

The owner holds a lock (flock) on the file or folder itself, which the system releases when the
process ends. Whatever can be locked is therefore a leftover and may be removed; whatever cannot be
locked is kept, also on systems without such locks. The lock stays with a renamed folder.
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
    """A hidden file or folder beside a target, to be renamed to it or removed.

    Leftovers of killed runs are removed first. Whatever still is at `path` is removed with this
    object or at exit; `private` keeps other users out.
    """

    def __init__(self, target: Path, *, folder: bool = False, private: bool = False) -> None:
        remove_leftovers(target)
        while True:
            self.path = _hidden(target, "partial")
            if folder:
                self.path.mkdir(0o700 if private else 0o777)
            else:
                self.path.touch(0o600 if private else 0o666, exist_ok=False)
            # Until the file is locked, another run may remove it as a leftover: try again then.
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
    """Return a hidden path for a file or folder that is being replaced."""
    return _hidden(target, "old")


def remove_leftovers(target: Path) -> None:
    """Remove leftovers of killed runs beside a target.

    If the target is missing, the folder it was to replace is restored: the earlier run's results.
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
        """Return None: Windows has no such locks."""
        return None
else:
    import fcntl

    def lock(path: Path, *, wait: bool = False) -> int | None:
        """Lock a file or folder; return the descriptor with the lock, or None if it is locked."""
        # Do not follow links or block on named pipes.
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            os.close(number)
            return None
        return number


def _hidden(target: Path, role: str) -> Path:
    return target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.{role}")


def _prefix(target: Path) -> str:
    """Return the hidden prefix for a target; a hash distinguishes long, similar names."""
    whole = hashlib.sha256(target.name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f".{target.name[:_LONGEST_NAME]}.{whole}-"


def _end(path: Path, number: int | None, owner: int) -> None:
    """Remove a path and release its lock, except in a forked child."""
    if os.getpid() != owner:
        return
    remove(path)
    if number is not None:
        os.close(number)
