"""The output folder of a batch, on disk or in an object store."""

from __future__ import annotations

import dataclasses
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from kpca_apps.denoise.batch.inputs import Planned
from kpca_apps.denoise.batch.manifest import (
    MANIFEST,
    RECORDS,
    Manifest,
    batch_key,
    hash_file,
    only_batch,
    partial_path,
    record_file,
    remove_partial,
    sync_folder,
    sync_tree,
)
from kpca_apps.denoise.batch.one_image.elsewhere import APPEARED, OTHER
from kpca_apps.denoise.batch.one_image.work import Done, Run, Task, writing_to
from kpca_apps.denoise.result import ImageOutcome
from kpca_apps.errors import InputError, RefusedError
from kpca_apps.images.kinds import head_of
from kpca_apps.images.laboratory.ome_zarr import MARKS
from kpca_apps.names import one_line
from kpca_apps.system.files.output import atomic_write, exchanged
from kpca_apps.system.files.temporary import remove
from kpca_apps.system.stores.addresses import AnyPath, StorePath
from kpca_apps.system.stores.buckets import CONCURRENT, Place, place_of
from kpca_apps.system.stores.output import only_run
from kpca_apps.system.workers import Workers

FOREIGN = (
    "exists in the output folder and is not a result of this batch; replace it with --force, or "
    "choose another folder with --out."
)
_IS_FOLDER = "is a folder in the output folder; choose another with --out."


@contextmanager
def results_in(folder: AnyPath) -> Iterator[FolderResults | StoreResults]:
    """Open the results of a folder, locked against other runs during the block."""
    if isinstance(folder, StorePath):
        place = place_of(folder)
        with only_run(place):
            yield StoreResults(place)
    else:
        with only_batch(folder):
            remove_partial(folder)
            yield FolderResults(folder)


def make_folder(out: AnyPath) -> AnyPath:
    """Create the folder of a run if missing; in a store, only check that it is writable."""
    if isinstance(out, StorePath):
        place = place_of(out)
        if place.kind() == "file":
            raise RefusedError("is an object; name a folder for the results.", place.address)
        place.require_writable()
        return out
    try:
        out.mkdir(exist_ok=True)
    except FileExistsError:
        what = "is a link that leads nowhere" if out.is_symlink() else "is a file"
        raise RefusedError(f"{what}; name a folder for the results.", out) from None
    except FileNotFoundError:
        raise InputError("its parent folder does not exist; make it first.", out) from None
    except OSError as error:
        raise InputError(
            f"cannot be made ({error.strerror}); choose another folder.", out
        ) from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise InputError("cannot be written to; choose another folder with --out.", out)
    return out.resolve()


class FolderResults:
    """The results in a folder on disk, locked against a second run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._path = folder, folder / MANIFEST
        # Oldest first: another machine may have denoised an image again, to other bits.
        files = [*filter(Path.is_file, (folder / RECORDS).glob("*.json"))]
        files.sort(key=os.path.getmtime)
        self._manifest = Manifest(self._path.read_bytes(), map(Path.read_bytes, files), self._path)

    def require_place(self, image: Planned) -> None:
        """Raise an error if a link leads a result outside the folder, or a file is in its way."""
        place = Path(os.path.realpath((self.folder / image.output).parent))
        if not place.is_relative_to(self.folder):
            raise RefusedError(
                f"{one_line(image.output)}: a link in the output folder points outside it; remove "
                "the link, or choose another folder with --out."
            )
        for parent in PurePosixPath(image.output).parents:
            if os.path.lexists(self.folder / parent) and not (self.folder / parent).is_dir():
                raise RefusedError(
                    f"{one_line(str(parent))}: is a file in the output folder, but the results "
                    "need a folder of that name; choose another with --out."
                )

    def seen(self, task: Task, run: Run) -> Task:
        """Return the task with its earlier result, if any; refuse to overwrite other files."""
        image = task.planned
        output, target = image.output, self.folder / image.output
        if not os.path.lexists(target):
            return task
        ours: list[dict[str, Any]] = []
        if not target.is_symlink() and (target.is_file() or head_of(target)):
            sha256 = hash_file(target)
            ours = [r for r in self._manifest.records(output) if r.get("sha256") == sha256]
            # The worker downloads an image from a store and compares its hash with the record.
            source = hash_file(image.source) or "" if isinstance(image.source, Path) else None
            if earlier := _earlier(ours, output, run, source):
                return dataclasses.replace(task, earlier=earlier)
        if target.is_dir() and not head_of(target):
            raise RefusedError(_IS_FOLDER, output)
        if not run.force:
            raise RefusedError(OTHER if ours else FOREIGN, output)
        return task

    def publish(self, done: Done, run: Run) -> ImageOutcome:
        """Record a finished image, then rename its file."""
        outcome = done.outcome
        if done.partial is None:
            return outcome
        target = self.folder / outcome.output
        if os.path.lexists(target) and not run.force:
            remove(done.partial)
            reason = f"{one_line(outcome.output)}: {APPEARED}"
            return ImageOutcome(outcome.name, "failed", reason=reason)
        name, record = record_file(done.record())
        with writing_to((place := self.folder / name).parent):
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(record)
            sync_tree(place)
        for folder in (place.parent, self.folder):
            sync_folder(folder)
        self._manifest.add(done.record())
        try:
            _put(done.partial, target)
        except OSError as error:
            why = f"cannot be written ({error.strerror}); choose another folder with --out."
            raise InputError(why, target) from None
        sync_folder(target.parent)
        return outcome

    def clear(self, planned: Iterable[Planned]) -> None:
        """Remove temporary files, and remove folders that are empty because their images failed."""
        # The folder is locked, so all temporary files belong to stopped workers.
        remove_partial(self.folder)
        parents = {parent for image in planned for parent in PurePosixPath(image.output).parents}
        for parent in sorted(parents - {PurePosixPath()}, key=lambda one: -len(one.parts)):
            with suppress(OSError):
                (self.folder / parent).rmdir()

    def settle(self, keys: Mapping[str, str]) -> None:
        """Join the records of a finished batch; `keys` are the keys of its results."""
        if (content := self._manifest.joined(keys)) != self._path.read_bytes():
            with atomic_write(self._path) as file:
                file.write(content)
        # A second run may start now: free the name of the folder before removing its files.
        aside = partial_path(self.folder / RECORDS, secrets.token_hex(4), 0)
        with suppress(FileNotFoundError):
            (self.folder / RECORDS).rename(aside)
        remove(aside)


class StoreResults:
    """The results in a folder of a store, where objects cannot be renamed.

    Workers upload each result after its record.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        there = [one for one in self._place.items(recursive=True) if not one.is_folder]
        self._there = {one.name for one in there}
        self._folders = {parent for name in self._there for parent in PurePosixPath(name).parents}
        there.sort(key=lambda one: one.modified)
        single = [one.name for one in there if one.name.startswith(f"{RECORDS}/")]
        place = self._place.inside(MANIFEST)
        joined = b"".join(place.chunks()) if MANIFEST in self._there else b""
        with Workers("threads", n_workers=CONCURRENT) as workers:
            records = workers.map_partitions(self._read, single)
            self._manifest = Manifest(joined, records, place.address)

    def _read(self, name: str) -> bytes:
        with suppress(InputError):
            return b"".join(self._place.inside(name).chunks())
        return b""

    def require_place(self, image: Planned) -> None:
        """Raise an error if an object has the name of a folder of results."""
        for parent in PurePosixPath(image.output).parents:
            if str(parent) in self._there:
                raise RefusedError(
                    f"{one_line(str(parent))}: is an object in the output folder where a folder of "
                    "results would stand; choose another with --out."
                )

    def seen(self, task: Task, run: Run) -> Task:
        """Return the task with its earlier result, if any; refuse to overwrite other objects.

        Workers compare the hashes, as downloading all results here would be slow.
        """
        output = task.planned.output
        is_folder = PurePosixPath(output) in self._folders
        if output not in self._there and not is_folder:
            return task
        known = self._manifest.records(output)
        if is_folder and not any(f"{output}/{name}" in self._there for name in MARKS):
            if known:
                return task  # a stopped upload left an incomplete folder, to be written again
            raise RefusedError(_IS_FOLDER, output)
        if earlier := _earlier(known, output, run):
            return dataclasses.replace(task, earlier=earlier)
        if not run.force:
            raise RefusedError(OTHER if known else FOREIGN, output)
        return task

    def publish(self, done: Done, _run: Run) -> ImageOutcome:
        """Add a finished image to the records."""
        if done.sha256:
            self._manifest.add(done.record())
        return done.outcome

    def clear(self, planned: Iterable[Planned]) -> None:
        """Do nothing, as a store has neither temporary files nor empty folders."""

    def settle(self, keys: Mapping[str, str]) -> None:
        """Join the records of a finished batch; `keys` are the keys of its results."""
        self._place.inside(MANIFEST).write([self._manifest.joined(keys)])
        self._place.inside(RECORDS).remove_folder()


def _earlier(
    records: list[dict[str, Any]], output: str, run: Run, source: str | None = None
) -> Done | None:
    """Return the last record with these settings and, if known, this hash of the input."""
    for record in reversed(records):
        made_from = str(record.get("source")) if source is None else source
        if record.get("key") == batch_key(made_from, output, run.settings):
            with suppress(KeyError, ValueError, OverflowError):
                return msgspec.convert(record, Done)
    return None


def _put(partial: Path, target: Path) -> None:
    """Rename a result to its target, and remove the folder that it replaces."""
    if partial.is_dir() and target.is_dir():
        if exchanged(partial, target):
            remove(partial)
            return
        aside = partial_path(target, secrets.token_hex(4), 0)
        target.replace(aside)
        partial.replace(target)
        remove(aside)
    else:
        partial.replace(target)
