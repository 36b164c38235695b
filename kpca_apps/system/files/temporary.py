"""Hidden files and folders for what is not finished, and the end of what killed runs left of them.

Whoever makes one holds a lock (flock) on the very file or folder, which the system takes back when
that process ends, however it ends. So what can be locked has no writer any more and may go; what
cannot be locked is left alone, as is everything where the system knows no such locks. No lock file
is needed, and the lock stays with a folder when it is renamed.
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

    What killed runs left beside the target is removed first. What still lies at `path` is removed
    when nothing refers to this object or the program ends; `private` keeps other users out.
    """

    def __init__(self, target: Path, *, folder: bool = False, private: bool = False) -> None:
        remove_leftovers(target)
        while True:
            self.path = _hidden(target, "partial")
            if folder:
                self.path.mkdir(0o700 if private else 0o777)
            else:
                self.path.touch(0o600 if private else 0o666, exist_ok=False)
            # Before it is locked another run may take it for a leftover, while it is still empty.
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
        """Remove it, unless it was renamed, and release the lock."""
        self._end()


def private_path(kind: str, *, folder: bool = False) -> TemporaryPath:
    """Make a file or folder for temporary things of a kind, which only this user can look into."""
    return TemporaryPath(Path(tempfile.gettempdir(), kind), folder=folder, private=True)


def retired_path(target: Path) -> Path:
    """Name a hidden place for what gives way to a new file or folder and is then removed."""
    return _hidden(target, "old")


def remove_leftovers(target: Path) -> None:
    """Remove what killed runs left beside a target.

    What was about to give way is put back where the target is missing: it is all there is of an
    earlier run.
    """
    shape = re.compile(rf"{re.escape(_prefix(target))}[0-9a-f]{{16}}\.(partial|old)")
    with suppress(OSError):
        for item in list(target.parent.iterdir()):
            if found := shape.fullmatch(item.name):
                with suppress(OSError):
                    number = lock(item)
                    if number is None:
                        continue
                    if found[1] == "old" and not (target.exists() or target.is_symlink()):
                        item.rename(target)
                    _end(item, number, os.getpid())


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it, if that can be."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


if sys.platform == "win32":

    def lock(path: Path, *, wait: bool = False) -> int | None:
        """Return nothing: the system has no such locks."""
        return None
else:
    import fcntl

    def lock(path: Path, *, wait: bool = False) -> int | None:
        """Lock a file or folder; return what to close to release it, None where that cannot be."""
        # No link is followed, and no named pipe waited for.
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
    """Begin a name as the target's does; a hash distinguishes long names that begin alike."""
    whole = hashlib.sha256(target.name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f".{target.name[:_LONGEST_NAME]}.{whole}-"


def _end(path: Path, number: int | None, owner: int) -> None:
    """Remove what lies there and release its lock, but in no process that was forked from it."""
    if os.getpid() != owner:
        return
    remove(path)
    if number is not None:
        os.close(number)
