"""Where the results of a batch go: a folder on disk, or one in an object store.

Both say what is there already and is a result of this batch, give a result that is done its name,
and keep the record.
"""

from __future__ import annotations

import dataclasses
import json
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
    Manifest,
    Records,
    batch_key,
    hash_file,
    partial_path,
    records_in,
    remove_partial,
    settled,
    sync_folder,
)
from kpca_apps.denoise.batch.one_image.elsewhere import APPEARED, OTHER, RECORDS
from kpca_apps.denoise.batch.one_image.work import Done, Run, Task
from kpca_apps.denoise.result import ImageOutcome
from kpca_apps.errors import InputError, RefusedError
from kpca_apps.images.kinds import head_of
from kpca_apps.images.laboratory.ome_zarr import MARKS
from kpca_apps.names import one_line
from kpca_apps.system.files.output import exchanged
from kpca_apps.system.files.temporary import remove
from kpca_apps.system.stores.addresses import AnyPath, StorePath
from kpca_apps.system.stores.buckets import ASKED, Place, place_of
from kpca_apps.system.stores.output import only_run
from kpca_apps.system.workers import Workers

FOREIGN = (
    "exists in the output folder and is not a result of this batch; replace it with --force, or "
    "choose another folder with --out."
)


@contextmanager
def results_in(folder: AnyPath) -> Iterator[FolderResults | StoreResults]:
    """Give the results of a folder, into which no other run writes while the block runs."""
    if isinstance(folder, StorePath):
        place = place_of(folder)
        with only_run(place):
            yield StoreResults(place)
    else:
        with Manifest(folder) as manifest:
            remove_partial(folder)
            yield FolderResults(folder, manifest)


def make_folder(out: AnyPath) -> AnyPath:
    """Make the folder of a run if it is not there, and return its place.

    One in a store needs no making, but may be closed to writing.
    """
    if isinstance(out, StorePath):
        place = place_of(out)
        if place.kind() == "file":
            label = one_line(place.address, 200)
            raise RefusedError(f"{label}: is an object; name a folder for the results.")
        place.require_writable()
        return out
    label = one_line(str(out), 200)
    try:
        out.mkdir(exist_ok=True)
    except FileExistsError:
        what = "is a link that leads nowhere" if out.is_symlink() else "is a file"
        raise RefusedError(f"{label}: {what}; name a folder for the results.") from None
    except FileNotFoundError:
        raise InputError(f"{label}: its parent folder does not exist; make it first.") from None
    except OSError as error:
        raise InputError(
            f"{label}: cannot be made ({error.strerror}); choose another folder."
        ) from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise InputError(f"{label}: cannot be written to; choose another folder with --out.")
    return out.resolve()


class FolderResults:
    """The results in a folder on disk, which is locked against a second run."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self._manifest = folder, manifest

    def require_place(self, image: Planned) -> None:
        """Refuse an output folder in which something stands in the way of folders of results."""
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
        """See whether an image is done already, and refuse to overwrite what is not its result."""
        image = task.planned
        output, target = image.output, self.folder / image.output
        if not os.path.lexists(target):
            return task
        ours: list[dict[str, Any]] = []
        if not target.is_symlink() and (target.is_file() or head_of(target)):
            stands = hash_file(target)
            ours = [r for r in self._manifest.records(output) if r.get("sha256") == stands]
            # Who works on an image of a store fetches it, and compares it with the record.
            is_here = isinstance(image.source, Path)
            source = hash_file(image.source) or "" if is_here else None
            if earlier := _earlier(ours, output, run, source):
                return dataclasses.replace(task, earlier=earlier)
        if target.is_dir() and not head_of(target):
            raise RefusedError(
                f"{one_line(output)}: is a folder in the output folder; choose another with --out."
            )
        if not run.force:
            raise RefusedError(f"{one_line(output)}: {OTHER if ours else FOREIGN}")
        return task

    def publish(self, done: Done, run: Run) -> ImageOutcome:
        """Record an image that is done, then give its file the name."""
        outcome = done.outcome
        if done.partial is None:
            return outcome
        target = self.folder / outcome.output
        if os.path.lexists(target) and not run.force:
            remove(done.partial)
            reason = f"{one_line(outcome.output)}: {APPEARED}"
            return ImageOutcome(outcome.name, "failed", reason=reason)
        self._manifest.add(done.record())
        try:
            _put(done.partial, target)
        except OSError as error:
            raise InputError(
                f"{one_line(str(target), 200)}: cannot be written ({error.strerror}); choose "
                "another folder with --out."
            ) from None
        sync_folder(target.parent)
        return outcome

    def clear(self, planned: Iterable[Planned]) -> None:
        """Remove what is unfinished, and folders that were made for results that failed."""
        # The folder is locked: what is unfinished now belongs to workers that were stopped.
        remove_partial(self.folder)
        parents = {parent for image in planned for parent in PurePosixPath(image.output).parents}
        for parent in sorted(parents - {PurePosixPath()}, key=lambda one: -len(one.parts)):
            with suppress(OSError):
                (self.folder / parent).rmdir()

    def settle(self, keys: Mapping[str, str]) -> None:
        """Put the record of a batch that came to its end in order; keys are of what was made."""
        self._manifest.settle(keys)


class StoreResults:
    """The results in a folder of a store, where nothing is renamed.

    A result is uploaded by who made it, after an object for the record.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        there = [one for one in self._place.items(recursive=True) if not one.is_folder]
        self._there = {one.name for one in there}
        self._folders = {parent for name in self._there for parent in PurePosixPath(name).parents}
        self._records: Records = {}
        if MANIFEST in self._there:
            place = self._place.inside(MANIFEST)
            label = one_line(place.address, 200)
            self._records = records_in(b"".join(place.chunks()), label)
        kept = [name for name in sorted(self._there) if name.startswith(f"{RECORDS}/")]
        with Workers("threads", n_workers=ASKED) as workers:
            for record in workers.map_partitions(self._read, kept):
                if record:
                    self._records.setdefault(str(record["output"]), []).append(record)

    def _read(self, name: str) -> dict[str, Any]:
        """Read what is kept of a result; nothing of what is damaged."""
        with suppress(ValueError, RecursionError):
            record = json.loads(b"".join(self._place.inside(name).chunks()))
            if isinstance(record, dict) and "output" in record:
                return record
        return {}

    def require_place(self, image: Planned) -> None:
        """Refuse an output folder in which an object stands where a folder would."""
        for parent in PurePosixPath(image.output).parents:
            if str(parent) in self._there:
                raise RefusedError(
                    f"{one_line(str(parent))}: is an object in the output folder where a folder of "
                    "results would stand; choose another with --out."
                )

    def seen(self, task: Task, run: Run) -> Task:
        """See whether an image seems to be done, and refuse to overwrite what is not its result.

        Who works on it compares the hashes: to fetch all results here would take long.
        """
        output = task.planned.output
        is_folder = PurePosixPath(output) in self._folders
        if output not in self._there and not is_folder:
            return task
        known = self._records.get(output, [])
        if is_folder and not any(f"{output}/{name}" in self._there for name in MARKS):
            if known:
                return task  # an upload was killed
            raise RefusedError(
                f"{one_line(output)}: is a folder in the output folder; choose another with --out."
            )
        if earlier := _earlier(known, output, run):
            return dataclasses.replace(task, earlier=earlier)
        if not run.force:
            raise RefusedError(f"{one_line(output)}: {OTHER if known else FOREIGN}")
        return task

    def publish(self, done: Done, _run: Run) -> ImageOutcome:
        """Take note of an image that is done."""
        if done.sha256:
            record: dict[str, Any] = json.loads(json.dumps(done.record()))
            self._records.setdefault(done.outcome.output, []).append(record)
        return done.outcome

    def clear(self, planned: Iterable[Planned]) -> None:
        """Nothing is unfinished here, and no folder is empty."""

    def settle(self, keys: Mapping[str, str]) -> None:
        """Write the record of a batch that came to its end; keys are of what was made."""
        self._place.inside(MANIFEST).write([settled(self._records, keys)])
        self._place.inside(RECORDS).remove_folder()


def _earlier(
    records: list[dict[str, Any]], output: str, run: Run, source: str | None = None
) -> Done | None:
    """Return the last record of a result of these settings, of an image with this hash if known."""
    for record in reversed(records):
        made_from = str(record.get("source")) if source is None else source
        if record.get("key") == batch_key(made_from, output, run.settings):
            # A damaged record counts for nothing.
            with suppress(KeyError, ValueError, OverflowError):
                return msgspec.convert(record, Done)
    return None


def _put(partial: Path, target: Path) -> None:
    """Give a result its name; a folder that has it is removed thereafter."""
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
