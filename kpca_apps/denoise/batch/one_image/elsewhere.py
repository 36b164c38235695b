"""An image worked on whose file lies in a store or on another machine, or whose result goes there.

Who works on an image of a store copies it into a folder for temporary files, and uploads the result
itself: so it may work on any machine that reaches the store. What the record is to hold of the
result is an object of its own, and uploaded first. So a result in the store is known by its hash,
or not ours.

Where no file of the batch is seen, an image's bytes are sent, and the result's back: the worker
keeps them in its own folder for temporary files while it works, and the batch alone writes to the
folder of the results. An image may be a folder of files.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kpca_apps.denoise.batch.manifest import hash_file, partial_path, sync_tree
from kpca_apps.denoise.batch.one_image.work import (
    Done,
    Run,
    Task,
    UnwritableError,
    failed,
    work,
    writing_to,
)
from kpca_apps.errors import InputError, KpcaError, MemoryLimitError
from kpca_apps.images.files import check_object, files_in
from kpca_apps.images.kinds import head_of
from kpca_apps.images.laboratory.ome_zarr import MARKS
from kpca_apps.names import one_line
from kpca_apps.system.files.spools import spool_folder
from kpca_apps.system.files.temporary import private_path
from kpca_apps.system.limits import require_memory
from kpca_apps.system.stores.addresses import AnyPath, StorePath
from kpca_apps.system.stores.buckets import here, place_of
from kpca_apps.system.stores.output import upload_folder

RECORDS = ".kpca-records"  # folder of what is done, until the batch comes to its end
OTHER = (
    "was made from another input or with other settings; replace it with --force, or choose "
    "another folder with --out."
)
APPEARED = "appeared in the output folder during the run; it was not replaced."
IMAGE, REFERENCE, RESULTS = "image", "reference", "results"  # folders on the worker
# What the files of an image hold, by their places in its folder; of one file, by no name.
Contents = Mapping[str, bytes]


def work_anywhere(task: Task, run: Run) -> Done:
    """Work on one image as `work` does, wherever it lies and its result goes."""
    places = (task.planned.source, task.reference, run.folder)
    if not any(isinstance(place, StorePath) for place in places):
        return work(task, run)
    name = task.planned.name
    try:
        with ExitStack() as stack:
            return _by_copies(task, run, stack)
    except UnwritableError:
        if isinstance(run.folder, Path):
            raise
        return failed(
            name,
            "the folder for temporary files cannot be written to, or is full; make room there, or "
            "set TMPDIR to another.",
        )
    except KpcaError as error:
        return failed(name, str(error))


def _by_copies(task: Task, run: Run, stack: ExitStack) -> Done:
    label = one_line(task.planned.name, 200)
    if task.planned.refused:
        raise InputError(f"{label}: {task.planned.refused}")
    check_object(task.planned.source, label)
    source = stack.enter_context(here(task.planned.source))
    reference = task.reference and stack.enter_context(here(task.reference))
    near = replace(task, planned=task.planned._replace(source=source), reference=reference)
    if task.earlier is not None and hash_file(source) != task.earlier.source:
        near = _again(near, run)
    if isinstance(run.folder, Path):
        return work(near, run)
    results = stack.enter_context(closing(spool_folder())).path
    output = task.planned.output
    target = run.folder / output
    if near.earlier is not None:
        stored = stack.enter_context(here(target))
        if hash_file(stored) != near.earlier.sha256:
            near = _again(near, run)
        else:
            (results / output).parent.mkdir(parents=True, exist_ok=True)
            stored.rename(results / output)
    done = work(near, replace(run, folder=results))
    if done.partial is None:
        return done
    if not run.force and is_whole(target):
        raise InputError(APPEARED, one_line(output))
    _upload(done, done.partial, run.folder, target)
    return replace(done, partial=None)


def _again(task: Task, run: Run) -> Task:
    """Return an image to be denoised again, if what stands in the place may be replaced."""
    if not run.force:
        raise InputError(OTHER, one_line(task.planned.output))
    return replace(task, earlier=None)


def is_whole(path: StorePath) -> bool:
    """Whether an object is there, or a folder that is an image."""
    return place_of(path).kind() == "file" or bool(head_of(path))


def _upload(done: Done, partial: Path, folder: StorePath, path: StorePath) -> None:
    """Upload what the record is to hold of a result, then the result."""
    record = json.dumps(done.record(), sort_keys=True).encode()
    number = hashlib.sha256(record).hexdigest()
    place_of(folder / RECORDS / f"{number}.json").write([record])
    target = place_of(path)
    if partial.is_file():
        target.upload(partial)
        return
    names = [file.relative_to(partial).as_posix() for file in files_in(partial)]
    before = [one.name for one in target.items(recursive=True) if not one.is_folder]
    upload_folder(partial, names, target, before, MARKS)


@dataclass(frozen=True)
class SentTask:
    """One image to work on, and what it takes."""

    task: Task
    image: Contents
    reference: Contents
    result: Contents  # of an earlier run

    def __str__(self) -> str:
        return self.task.planned.name


@dataclass(frozen=True)
class Returned:
    """An image that is done, and its result, unless there is no new one."""

    done: Done
    number: int  # of the image in the run
    result: Contents


def sent(task: Task, run: Run) -> SentTask:
    """Read what the work on an image takes; a file that is gone by now is missed there."""
    stands = None if task.earlier is None else run.folder / task.planned.output
    return SentTask(
        task, *(_contents(path) for path in (task.planned.source, task.reference, stands))
    )


def done_here(task: Task, run: Run) -> Returned | None:
    """Say of an image that cannot be read or sent why there is no result; None for others."""
    given = (task.planned.source, *([] if task.reference is None else [task.reference]))
    needed = [path for path in given if isinstance(path, Path)]
    if task.planned.refused or not all(map(head_of, needed)):
        return Returned(work_anywhere(task, run), task.number, {})
    try:
        # What is gone by now is missed by its worker.
        with suppress(FileNotFoundError):
            require_memory(
                sum(file.stat().st_size for one in needed for file in _files(one).values())
            )
    except MemoryLimitError as error:
        return Returned(failed(task.planned.name, str(error)), task.number, {})
    return None


def work_on_sent(sent: SentTask, run: Run) -> Returned:
    """Work on an image by what is sent of it, in a folder for temporary files."""
    try:
        with closing(private_path("kpca-image", folder=True)) as held:
            return _worked_on(sent, run, held.path)
    except (OSError, UnwritableError) as error:
        raise InputError(
            "a worker cannot write to its folder for temporary files: make room there, or set "
            "TMPDIR for it, then run the same command again to resume."
        ) from error


def _worked_on(sent: SentTask, run: Run, folder: Path) -> Returned:
    task, planned, reference = sent.task, sent.task.planned, sent.task.reference
    # What lies in a store is fetched from there, and what goes there is sent there.
    if isinstance(planned.source, Path):
        source = folder / IMAGE / planned.source.name
        planned = planned._replace(source=source)
        _put(sent.image, source)
    if isinstance(reference, Path):
        reference = folder / REFERENCE / reference.name
        _put(sent.reference, reference)
    if isinstance(run.folder, Path):
        _put(sent.result, folder / RESULTS / planned.output)
        run = replace(run, folder=folder / RESULTS)
    done = work_anywhere(replace(task, planned=planned, reference=reference), run)
    return Returned(replace(done, partial=None), task.number, _contents(done.partial))


def received(returned: Returned, run: Run) -> Done:
    """Store what a worker made in an unfinished file or folder beside the result's place."""
    if not returned.result or isinstance(run.folder, StorePath):
        return returned.done
    target = run.folder / returned.done.outcome.output
    partial = partial_path(target, secrets.token_hex(4), returned.number)
    with writing_to(target):
        _put(returned.result, partial)
        if partial.is_dir():
            sync_tree(partial)
        else:
            with partial.open("rb") as file:
                os.fsync(file.fileno())
    return replace(returned.done, partial=partial)


def _contents(path: AnyPath | None) -> Contents:
    """Read a file, or all files below a folder but links; of what is not there nothing."""
    if path is None:
        return {}
    return {name: file.read_bytes() for name, file in _files(path).items()}


def _files(path: AnyPath) -> dict[str, Path]:
    if isinstance(path, StorePath):
        return {}
    if path.is_file():
        return {"": path}
    return {file.relative_to(path).as_posix(): file for file in files_in(path)}


def _put(contents: Contents, path: Path) -> None:
    for name, content in contents.items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
