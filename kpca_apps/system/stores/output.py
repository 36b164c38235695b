"""Results of a run in an object store: built here, then uploaded, what marks them as whole last."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kpca_apps.errors import KpcaError, RefusedError
from kpca_apps.names import one_line
from kpca_apps.system.files.output import (
    LONGEST_MARKER,
    MARKER,
    TOOL,
    OutputFolder,
    ResultFolder,
    exists,
    files_named,
    foreign,
)
from kpca_apps.system.files.spools import spool_folder
from kpca_apps.system.files.temporary import TemporaryPath
from kpca_apps.system.stores.addresses import AnyPath, StorePath, located
from kpca_apps.system.stores.buckets import PROBE, Place, place_of
from kpca_apps.system.stores.running import RUNS, only_run

# Says, until the marker is there, what an upload has begun to write: the next may replace that.
_BEGUN = "run.json.partial"


def output_folder(path: str | AnyPath, *, force: bool = False) -> ResultFolder:
    """Return the folder of results of a path, or of an address such as ``s3://bucket/folder``."""
    place = located(path)
    if isinstance(place, StorePath):
        return BucketFolder(place, force=force)
    return OutputFolder(place, force=force)


class BucketFolder(ResultFolder):
    """Build a folder of results in a temporary one, then upload it.

    A store renames nothing: what an upload that was killed left has no ``run.json``, and the next
    run replaces it.
    """

    def __init__(self, path: StorePath, *, force: bool = False) -> None:
        self.force, self.place, self.path = force, place_of(path), path
        self._label = one_line(str(path), 200)

    def check(self) -> None:
        """Refuse a folder in which no object can be made either."""
        self._refuse()
        self.place.require_writable()

    @contextmanager
    def _building(self) -> Iterator[Path]:
        with only_run(self.place), super()._building() as building:
            yield building

    def _begun(self) -> TemporaryPath:
        self._refuse()
        return spool_folder()

    def _refuse(self) -> None:
        kind = self.place.kind()
        if kind == "file":
            raise RefusedError(f"{self._label}: is an object; name a folder for the results.")
        if kind:
            self._refuse_earlier(self._written())

    def _written(self) -> list[str]:
        """Name the objects that are there, but for those that say that a run goes on."""
        there = [one.name for one in self.place.items(recursive=True) if not one.is_folder]
        return [name for name in there if not name.startswith(f"{RUNS}/")]

    def _refuse_earlier(self, names: list[str]) -> None:
        marker = next((name for name in (MARKER, _BEGUN) if name in names), "")
        ours = files_named(self.place.inside(marker).head(LONGEST_MARKER)) if marker else []
        known = {*ours, MARKER, _BEGUN, PROBE}
        if other := next((name for name in names if name not in known), ""):
            raise RefusedError(foreign(self._label, other))
        if marker == MARKER and not self.force:
            raise RefusedError(exists(self._label))

    def _swap(self, building: Path) -> None:
        files = [item for item in building.rglob("*") if item.is_file()]
        names = sorted(item.relative_to(building).as_posix() for item in files)
        before = self._written() if self.place.kind() else []
        self._refuse_earlier(before)
        begun = json.dumps({"tool": TOOL, "files": sorted({*names, *before})})
        self.place.inside(_BEGUN).write([begun.encode()])
        upload_folder(building, names, self.place, {*before} - {_BEGUN}, (MARKER,))
        with suppress(KpcaError):
            self.place.inside(_BEGUN).remove()


def upload_folder(
    folder: Path,
    names: Collection[str],
    place: Place,
    before: Collection[str],
    marks: Collection[str],
) -> None:
    """Upload files of a folder by name in place of those before, what marks it as whole last.

    The earlier marks go first: from there on, what is there is not whole.
    """
    for name in marks:
        if name in before:
            place.inside(name).remove()
    for name in sorted({*names} - {*marks}):
        place.inside(name).upload(folder / name)
    for name in sorted({*before} - {*names, *marks}):
        place.inside(name).remove()
    for name in marks:
        if name in names:
            place.inside(name).upload(folder / name)
