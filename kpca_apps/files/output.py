"""The folder a run leaves behind: complete, or as it was before."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any

from kpca_apps.errors import InputError, RefusedError
from kpca_apps.files.atomic import storage_error
from kpca_apps.files.leftovers import remove_leftovers, unfinished_path
from kpca_apps.files.names import one_line

__all__ = ["MARKER", "OutputFolder"]

MARKER = "run.json"
_TOOL = "kpca"
_LONGEST_MARKER = 1 << 20


class OutputFolder:
    """Build a folder of results beside its final place, then swap it in.

    Its file ``run.json``, a JSON object if the run writes one, is completed with the name of the
    tool and the list of the files written, so that a folder is known for what it is.

    Parameters
    ----------
    path : str or Path
        The folder to make. Its parent must exist.
    force : bool
        Replace the folder if it is empty or holds an earlier run, which its ``run.json`` tells,
        and nothing else. Anything else is never replaced.

    Attributes
    ----------
    path : Path
        The final folder.

    Raises
    ------
    RefusedError
        On entering, if the folder exists and may not be replaced.
    InputError
        If the name cannot be used; on entering, if the parent is missing or cannot be written to;
        on leaving, if the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with OutputFolder(Path(parent, "run")) as building:
    ...         _ = (building / "run.json").write_text("{}")
    ...     sorted(item.name for item in Path(parent).iterdir())
    ['run']
    """

    def __init__(self, path: str | Path, *, force: bool = False) -> None:
        given = Path(path)
        self._label = one_line(str(path), 200)
        self.path = self._locate(given)
        self.force = force
        self._building: Path | None = None

    def __enter__(self) -> Path:
        """Check that the folder may be made, and open a temporary one to build in.

        Returns
        -------
        Path
            The temporary folder; it takes its final name when the block ends without error.
        """
        remove_leftovers(self.path)
        self._refuse()
        self._building = self._begun()
        return self._building

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Swap the finished folder in, or remove what was begun."""
        building, self._building = self._building, None
        if building is None:
            return
        try:
            if kind is None:
                _sign(building)
                self._swap(building)
        except OSError as failed:
            raise storage_error(failed, self._label) or failed from None
        finally:
            if building.exists():
                shutil.rmtree(building, ignore_errors=True)
        if (failure := storage_error(error, self._label)) is not None:
            raise failure from error

    def check(self) -> None:
        """Refuse a folder that may not be made or replaced; a run asks before it starts work.

        Raises
        ------
        RefusedError
            If it exists and may not be replaced.
        InputError
            If its parent does not exist or cannot be written to.
        """
        remove_leftovers(self.path)
        self._refuse()
        self._begun().rmdir()

    def _begun(self) -> Path:
        """Make the temporary folder, or say why none can be made."""
        building = unfinished_path(self.path)
        try:
            # Not tempfile: its folders are private, and this one should be as any other.
            building.mkdir()
        except OSError as error:
            raise InputError(
                f"{self._label}: cannot be made ({error.strerror}); choose another folder."
            ) from None
        return building

    def _refuse(self) -> None:
        if not self.path.parent.is_dir():
            raise InputError(
                f'{self._label}: the folder "{one_line(str(Path(self._label).parent))}" does not '
                "exist; make it first."
            )
        if self.path.is_symlink():
            raise RefusedError(f"{self._label}: is a link, which is never replaced; name a folder.")
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise RefusedError(f"{self._label}: is a file; name a folder for the results.")
        if foreign := self._foreign():
            raise RefusedError(
                f"{self._label}: exists and holds something other than an earlier run, "
                f'"{one_line(foreign)}"; choose another folder with --out.'
            )
        if not self.force:
            raise RefusedError(
                f"{self._label}: exists already; replace it with --force, or choose another "
                "folder with --out."
            )

    def _foreign(self) -> str:
        """Name something in the folder that no run wrote; empty if there is nothing."""
        try:
            written = _files_written(self.path)
            return next((item for item in _items(self.path) if item not in written), "")
        except OSError as error:
            return str(error.filename or self.path)

    def _swap(self, building: Path) -> None:
        self._refuse()
        retired = unfinished_path(self.path, "old")
        try:
            # Without force nothing gives way, not even what came after the question.
            if self.force and self.path.exists():
                if _exchanged(building, self.path):
                    return
                # Killed here, it leaves the earlier run to be put back by the next.
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
        shutil.rmtree(retired, ignore_errors=True)

    def _locate(self, given: Path) -> Path:
        """Resolve the parent, never the folder itself: a link there must be seen as one."""
        try:
            if given.name in ("", ".."):
                return given.resolve()
            path = given.parent.resolve() / given.name
            with suppress(FileNotFoundError, NotADirectoryError):
                path.lstat()
        except (OSError, ValueError, RuntimeError) as error:
            reason = one_line(getattr(error, "strerror", None) or str(error))
            raise InputError(
                f"{self._label}: is not a usable folder name ({reason}); choose another."
            ) from None
        return path


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders trade names in one step, where the system can: neither is ever missing."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    done: int = rename(here, os.fsencode(one), here, os.fsencode(other), exchange)
    return done == 0


def _sign(folder: Path) -> None:
    """Complete what the run tells of itself with its tool and its files."""
    marker = folder / MARKER
    facts: dict[str, Any] = {"tool": _TOOL}
    if marker.exists():
        facts |= json.loads(marker.read_text(encoding="utf-8"))
    facts["files"] = sorted(item for item in _items(folder) if not (folder / item).is_dir())
    marker.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8", newline="\n")


def _files_written(folder: Path) -> frozenset[str]:
    """Paths of what a run says it wrote, its folders and the marker too; none without a marker."""
    marker = folder / MARKER
    if marker.is_symlink() or not marker.is_file() or marker.stat().st_size > _LONGEST_MARKER:
        return frozenset()
    try:
        facts = json.loads(marker.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return frozenset()
    if not isinstance(facts, dict) or facts.get("tool") != _TOOL:
        return frozenset()
    files = facts.get("files")
    listed = [name for name in files if isinstance(name, str)] if isinstance(files, list) else []
    parents = [part.as_posix() for name in listed for part in PurePosixPath(name).parents]
    # A link is never ours, whatever it is called.
    links = {name for name in (*listed, *parents) if (folder / name).is_symlink()}
    return frozenset({MARKER, *listed, *parents} - links)


def _items(folder: Path) -> Iterator[str]:
    """Paths of all files and folders in a folder, relative to it, in order; no link is followed."""

    def fail(error: OSError) -> None:
        raise error

    for root, folders, files in os.walk(folder, onerror=fail):
        for name in sorted((*folders, *files)):
            yield Path(root, name).relative_to(folder).as_posix()
