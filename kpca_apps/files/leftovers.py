"""Unfinished files and folders, named so that the next run can tell whose they are.

What is written goes to a hidden sibling first. A process that is killed leaves it behind; its name
says which process on which machine made it, so a later one may remove it once that one is dead.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

__all__ = ["remove_leftovers", "unfinished_path"]

_LONGEST_NAME = 40


def unfinished_path(target: Path, role: str = "partial") -> Path:
    """Name a hidden sibling of a file or folder, to be built and renamed, or removed.

    Parameters
    ----------
    target : Path
        The final place.
    role : str
        ``"partial"`` for what is not finished, ``"old"`` for what is about to be removed.

    Returns
    -------
    Path
        A name in the same folder that nothing else has.

    Examples
    --------
    >>> unfinished_path(Path("runs", "first")).name.startswith(".first.")
    True
    """
    process = os.getpid()
    owner = f"{_machine()}-{process}-{_start(process)}"
    return target.with_name(f"{_prefix(target)}{owner}-{secrets.token_hex(4)}.{role}")


def remove_leftovers(target: Path) -> None:
    """Remove what processes now dead left beside a target when they were killed.

    An ``old`` one is put back where the target is missing: it is all there is of an earlier run.

    Parameters
    ----------
    target : Path
        The final place of what they were writing.
    """
    shape = re.compile(
        rf"{re.escape(_prefix(target))}{_machine()}-([0-9]{{1,9}})-([0-9]{{1,20}})-[0-9a-f]{{8}}"
        r"\.(partial|old)"
    )
    with suppress(OSError):
        for item in list(target.parent.iterdir()):
            found = shape.fullmatch(item.name)
            if not found or _is_alive(int(found[1]), found[2]):
                continue
            if found[3] == "old" and not (target.exists() or target.is_symlink()):
                item.rename(target)
            else:
                _remove(item)


def _prefix(target: Path) -> str:
    """Begin a name as the target's does; a hash tells apart long names that begin alike."""
    whole = hashlib.sha256(target.name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f".{target.name[:_LONGEST_NAME]}.{whole}-"


def _machine() -> str:
    """Tell apart machines, and containers, that share a folder: their process numbers differ."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    except OSError:
        space = ""
    return hashlib.sha256(f"{platform.node()} {space}".encode()).hexdigest()[:6]


def _start(process: int) -> str:
    """When a process began, which a later one of its number did not; "0" where none can tell."""
    try:
        # The name before it, in brackets, may hold anything.
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return told.rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "0"


def _is_alive(process: int, start: str) -> bool:
    if os.name != "posix":
        # Elsewhere the question would end the process.
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return _start(process) in (start, "0")


def _remove(item: Path) -> None:
    with suppress(OSError):
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item, ignore_errors=True)
        else:
            item.unlink()
