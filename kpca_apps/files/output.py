"""The folder a run leaves behind: complete, or as it was before."""

from __future__ import annotations

import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from kpca_apps.errors import InputError, RefusedError
from kpca_apps.files.names import one_line

__all__ = ["MARKER", "OutputFolder"]

MARKER = "run.json"


class OutputFolder:
    """Build a folder of results beside its final place, then swap it in.

    Parameters
    ----------
    path : str or Path
        The folder to make. Its parent must exist.
    force : bool
        Replace the folder if it is empty or holds an earlier run (a file ``run.json``). Anything
        else is never replaced.

    Attributes
    ----------
    path : Path
        The final folder.

    Raises
    ------
    RefusedError
        On entering, if the folder exists and may not be replaced.
    InputError
        If the name cannot be used; on entering, if the parent is missing or cannot be written to.

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
        self.check()
        building = self._sibling("partial")
        try:
            # Not tempfile: its folders are private, and this one should be as any other.
            building.mkdir()
        except OSError as error:
            raise InputError(
                f"{self._label}: cannot be made ({error.strerror}); choose another folder."
            ) from None
        self._building = building
        return building

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
                self._swap(building)
        finally:
            if building.exists():
                shutil.rmtree(building, ignore_errors=True)

    def check(self) -> None:
        """Refuse a folder that may not be made or replaced; a run asks before it starts work.

        Raises
        ------
        RefusedError
            If it exists and may not be replaced.
        InputError
            If its parent does not exist.
        """
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
        if not self._replaceable():
            raise RefusedError(
                f"{self._label}: exists and holds something other than an earlier run; "
                "choose another folder with --out."
            )
        if not self.force:
            raise RefusedError(
                f"{self._label}: exists already; replace it with --force, or choose another "
                "folder with --out."
            )

    def _replaceable(self) -> bool:
        try:
            marker = self.path / MARKER
            holds_run = marker.is_file() and not marker.is_symlink()
            return holds_run or not any(self.path.iterdir())
        except OSError:
            return False

    def _swap(self, building: Path) -> None:
        self.check()
        retired = self._sibling("old")
        try:
            if self.path.exists():
                self.path.rename(retired)
            try:
                building.rename(self.path)
            except BaseException:
                if retired.exists():
                    retired.rename(self.path)
                raise
        except OSError as error:
            raise InputError(
                f"{self._label}: cannot be replaced ({error.strerror}); choose another folder."
            ) from None
        shutil.rmtree(retired, ignore_errors=True)

    def _sibling(self, role: str) -> Path:
        return self.path.with_name(f".{self.path.name[:40]}.{secrets.token_hex(4)}.{role}")

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
