"""Results of a run as folders and files that appear completely or not at all.

Unfinished results have a hidden name (see `temporary`) until they are complete, and are then
renamed. The next run with the same target removes leftovers of a killed run.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any

import msgspec

from kpca_apps.errors import InputError, RefusedError, storage_named
from kpca_apps.names import one_line, reason_of
from kpca_apps.system.files.temporary import (
    TemporaryPath,
    lock,
    remove,
    remove_leftovers,
    retired_path,
)
from kpca_apps.system.stores.addresses import AnyPath, StorePath, located

MARKER = "run.json"
TOOL = "kpca"
LONGEST_MARKER = 1 << 20


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a temporary file for writing and reading; rename it to ``path`` when it is complete."""
    target = Path(path)
    label = one_line(str(target), 200)
    if target.is_dir():
        raise InputError(f"{label}: this is a folder; name a file to write.")
    try:
        # Do not use tempfile: its files are private, but results need the default permissions.
        temporary = TemporaryPath(target)
    except (OSError, ValueError) as error:
        raise InputError(f"{label}: cannot be written ({reason_of(error)}).") from None
    with closing(temporary), storage_named(label):
        with temporary.path.open("r+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        try:
            temporary.path.replace(target)
        except OSError as error:
            raise InputError(f"{label}: cannot be replaced ({reason_of(error)}).") from None


def require_parent(path: str | Path) -> None:
    """Raise InputError if the folder of a file does not exist or is in an object store."""
    target = located(path)
    if isinstance(target, StorePath):
        raise InputError(
            "this file is only written to a disk; name a path, then upload it.", str(target)
        )
    if not target.parent.is_dir():
        raise InputError("its folder does not exist; make it first.", target)


def require_replaceable(
    path: str | Path, what: str, is_ours: Callable[[Path], bool], *, force: bool, option: str = ""
) -> None:
    """Refuse an existing path, but for a file of our own with `force`; links are never replaced."""
    try:
        require_parent(path)
        is_file = stat.S_ISREG(Path(path).lstat().st_mode) and is_ours(Path(path))
    except FileNotFoundError:
        return
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be written ({reason_of(error)}).", path) from None
    other = f"choose another file{option and f' with {option}'}."
    if not is_file:
        raise RefusedError(f"exists and is not {what}, so it is never replaced; {other}", path)
    if not force:
        raise RefusedError(f"exists already; replace it with --force, or {other}", path)


class ResultFolder(ABC):
    """Build a folder of results elsewhere, then move it to its target.

    If the run writes a JSON object to ``run.json``, the tool's name and the list of files are added
    to it. A folder is replaced only with ``force``, and only if it contains nothing else than
    earlier results.
    """

    path: AnyPath
    _label: str

    @abstractmethod
    def check(self) -> None:
        """Raise, before work starts, if the target may not be written or replaced."""

    @abstractmethod
    def _begun(self) -> TemporaryPath:
        """Make and return a temporary folder; raise if the target cannot be made or replaced."""

    @abstractmethod
    def _swap(self, building: Path) -> None:
        """Move the built folder to the target."""

    def __enter__(self) -> Path:
        self._run = self._building()
        return self._run.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        return self._run.__exit__(*error)

    @contextmanager
    def _building(self) -> Iterator[Path]:
        with closing(self._begun()) as temporary, storage_named(self._label):
            yield temporary.path
            _sign(temporary.path)
            self._swap(temporary.path)


class OutputFolder(ResultFolder):
    """Build a folder of results next to its target, then rename it."""

    path: Path

    def __init__(self, path: str | Path, *, force: bool = False) -> None:
        self._label = one_line(str(path), 200)
        self.force, folder = force, Path(path)
        try:
            if folder.name in ("", ".."):
                self.path = folder.resolve()
            else:
                # Do not resolve the last part of the path, so that a link is detected.
                self.path = folder.parent.resolve() / folder.name
                with suppress(FileNotFoundError, NotADirectoryError):
                    self.path.lstat()
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(
                f"{self._label}: is not a usable folder name ({reason_of(error)}); choose another."
            ) from None

    def check(self) -> None:
        """Raise, before work starts, if the folder may not be made or replaced."""
        self._begun().close()

    def _begun(self) -> TemporaryPath:
        remove_leftovers(self.path)
        self._refuse()
        try:
            return TemporaryPath(self.path, folder=True)
        except OSError as error:
            raise InputError(
                f"{self._label}: cannot be made ({error.strerror}); choose another folder."
            ) from None

    def _refuse(self) -> None:
        label = self._label
        if not self.path.parent.is_dir():
            raise InputError(
                f'{label}: the folder "{one_line(str(Path(label).parent))}" does not exist; make '
                "it first."
            )
        if self.path.is_symlink():
            raise RefusedError(f"{label}: is a link, which is never replaced; name a folder.")
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise RefusedError(f"{label}: is a file; name a folder for the results.")
        if other := _foreign(self.path):
            raise RefusedError(foreign(label, other))
        if not self.force:
            raise RefusedError(exists(label))

    def _swap(self, building: Path) -> None:
        self._refuse()
        retired, temporary = retired_path(self.path), None
        try:
            # Without force, do not replace even a folder that was made after the check.
            if self.force and self.path.exists():
                if exchanged(building, self.path):
                    return
                # If this run is killed between the renames, the next run restores the results.
                with suppress(BlockingIOError):
                    temporary = lock(self.path)
                self.path.rename(retired)
            try:
                building.rename(self.path)
            except BaseException:
                if retired.exists():
                    retired.rename(self.path)
                raise
        except OSError as error:
            self._refuse()
            raise InputError(
                f"{self._label}: cannot be replaced ({error.strerror}); choose another folder."
            ) from None
        finally:
            if temporary is not None:
                os.close(temporary)
        shutil.rmtree(retired, ignore_errors=True)


def exchanged(first: Path, other: Path) -> bool:
    """Exchange the names of two folders atomically; return False if the system has no such call."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    here, exchange = -100, 2  # the constants AT_FDCWD and RENAME_EXCHANGE of Linux
    done: int = rename(here, os.fsencode(first), here, os.fsencode(other), exchange)
    return done == 0


def _sign(folder: Path) -> None:
    for item in [*folder.rglob(".*")]:  # hidden files left by cluster workers that were given up
        remove(item)
    marker = folder / MARKER
    facts: dict[str, Any] = {"tool": TOOL}
    if marker.exists():
        facts |= json.loads(marker.read_text(encoding="utf-8"))
    facts["files"] = sorted(item for item in _items(folder) if not (folder / item).is_dir())
    marker.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8", newline="\n")


class _Facts(msgspec.Struct):
    tool: str
    files: list[str]


def _foreign(folder: Path) -> str:
    """Return the name of a foreign item in a folder, not written by a run; '' if there is none."""
    try:
        written = _files_written(folder)
        return next((item for item in _items(folder) if item not in written), "")
    except OSError as error:
        return str(error.filename or folder)


def _files_written(folder: Path) -> set[str]:
    """Return the files listed in ``run.json``, and their folders; empty without ``run.json``."""
    marker = folder / MARKER
    if marker.is_symlink() or not marker.is_file() or marker.stat().st_size > LONGEST_MARKER:
        return set()
    files = files_named(marker.read_bytes())
    parents = [part.as_posix() for name in files for part in PurePosixPath(name).parents]
    # Runs write no links, so a link is never a result, whatever its name.
    links = {name for name in (*files, *parents) if (folder / name).is_symlink()}
    return {MARKER, *files, *parents} - links


def files_named(marker: bytes) -> list[str]:
    """Return the files listed in a run's marker; empty if it is damaged or of another tool."""
    try:
        # msgspec.json rejects NaN, which a run may have written.
        facts = msgspec.convert(json.loads(marker), _Facts)
    except (ValueError, RecursionError):
        return []
    return facts.files if facts.tool == TOOL else []


def foreign(label: str, name: str) -> str:
    """Return the message for a folder that contains other things than the results of a run."""
    return (
        f'{label}: exists and holds something other than an earlier run, "{one_line(name)}"; '
        "choose another folder with --out."
    )


def exists(label: str) -> str:
    """Return the message for a folder that contains the results of an earlier run."""
    return f"{label}: exists already; replace it with --force, or choose another folder with --out."


def _items(folder: Path) -> Iterator[str]:
    """Yield relative paths of all files and folders below a folder, without following links."""

    def fail(error: OSError) -> None:
        raise error

    for root, folders, files in os.walk(folder, onerror=fail):
        for name in sorted((*folders, *files)):
            yield Path(root, name).relative_to(folder).as_posix()
