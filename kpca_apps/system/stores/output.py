"""Results of a run in an object store: built locally, then uploaded with ``run.json`` last.

Stores have no locks, so a run writes an object into the folder and rewrites it periodically. The
object of a killed run is recognised by its age on the store's clock, and removed by the next run.
"""

from __future__ import annotations

import json
import secrets
import threading
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

RUNS = ".kpca-runs"  # folder of objects that mark active runs
# A run rewrites its mark every `_ANEW` s; after `_DEAD` s without that, it counts as killed.
_ANEW, _DEAD = 15.0, 60.0
# This object lists the files of an unfinished upload, so that the next run may replace them.
_BEGUN = "run.json.partial"


def output_folder(path: str | AnyPath, *, force: bool = False) -> ResultFolder:
    """Return the folder of results for a local path or an address in a store."""
    place = located(path)
    if isinstance(place, StorePath):
        return BucketFolder(place, force=force)
    return OutputFolder(place, force=force)


class BucketFolder(ResultFolder):
    """Build a folder of results locally, then upload it.

    A killed upload leaves a folder without ``run.json``, which the next run replaces.
    """

    def __init__(self, path: StorePath, *, force: bool = False) -> None:
        self.force, self.place, self.path = force, place_of(path), path
        self._label = one_line(str(path), 200)

    def check(self) -> None:
        """Raise if the folder may not be replaced, or if no object can be written to it."""
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
        there = [item.name for item in self.place.items(recursive=True) if not item.is_folder]
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
    """Upload the named files of a folder, replacing earlier ones, with marker files last.

    Earlier marker files are removed first, as the content is incomplete from then on.
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


@contextmanager
def only_run(place: Place) -> Iterator[None]:
    """Raise RefusedError if another run writes to a folder; mark this run active meanwhile.

    If two runs start at the same moment, both may be refused, but never do both continue.
    """
    own = place.inside(f"{RUNS}/{secrets.token_hex(8)}")
    ended = threading.Event()

    def write_anew() -> None:
        while not ended.wait(_ANEW):
            with suppress(KpcaError):
                own.write([])

    own.write([])
    try:
        runs = {item.name: item.modified for item in place.inside(RUNS).items()}
        now = runs.pop(own.name, 0.0)
        if any(now - written < _DEAD for written in runs.values()):
            raise RefusedError(
                "another run is writing to this folder, or was killed a moment ago; wait a "
                "minute, or choose another folder.",
                place.address,
            )
    except BaseException:
        own.remove()
        raise
    keeper = threading.Thread(target=write_anew, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()
        with suppress(KpcaError):
            place.inside(RUNS).remove_folder()
