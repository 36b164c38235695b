"""Denoise images whose input or output is in an object store or on another machine.

A worker downloads an image from a store into a temporary folder and uploads the result itself, so
any machine with access to the store can be a worker. A result's record is uploaded before the
result, so an object whose hash is in no record is not a result of the batch.

A worker without access to the files receives the image's bytes and returns those of the result;
only the batch writes to the output folder. An image may be a folder of files.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kpca_apps.denoise.batch.manifest import hash_file, partial_path, record_file, sync_tree
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

OTHER = (
    "was made from another input or with other settings; replace it with --force, or choose "
    "another folder with --out."
)
APPEARED = "appeared in the output folder during the run; it was not replaced."
IMAGE, REFERENCE, RESULTS = "image", "reference", "results"  # names of folders on the worker
# Contents of an image's files by relative path; the path of a single file is empty.
Contents = Mapping[str, bytes]


def work_anywhere(task: Task, run: Run) -> Done:
    """Denoise one image like `work`, with files and results on disk or in a store."""
    places = (task.planned.source, task.reference, run.folder)
    if not any(isinstance(place, StorePath) for place in places):
        return work(task, run)
    name = task.planned.name
    try:
        with ExitStack() as stack:
            return _work_on_copies(task, run, stack)
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


def _work_on_copies(task: Task, run: Run, stack: ExitStack) -> Done:
    """Download the files, denoise them, and upload the result with its record."""
    label = one_line(task.planned.name, 200)
    if task.planned.refused:
        raise InputError(f"{label}: {task.planned.refused}")
    check_object(task.planned.source, label)
    source = stack.enter_context(here(task.planned.source))
    reference = task.reference and stack.enter_context(here(task.reference))
    near = replace(task, planned=task.planned._replace(source=source), reference=reference)
    if task.earlier is not None and hash_file(source) != task.earlier.source:
        near = _without_earlier(near, run)
    if isinstance(run.folder, Path):
        return work(near, run)
    results = stack.enter_context(closing(spool_folder())).path
    output = task.planned.output
    target = run.folder / output
    if near.earlier is not None:
        stored = stack.enter_context(here(target))
        if hash_file(stored) != near.earlier.sha256:
            near = _without_earlier(near, run)
        else:
            (results / output).parent.mkdir(parents=True, exist_ok=True)
            stored.rename(results / output)
    done = work(near, replace(run, folder=results))
    if done.partial is None:
        return done
    place = place_of(target)
    if not run.force and (place.kind() == "file" or head_of(target)):
        raise InputError(APPEARED, one_line(output))
    name, record = record_file(done.record())
    place_of(run.folder / name).write([record])
    if done.partial.is_file():
        place.upload(done.partial)
    else:
        names = [file.relative_to(done.partial).as_posix() for file in files_in(done.partial)]
        before = [one.name for one in place.items(recursive=True) if not one.is_folder]
        upload_folder(done.partial, names, place, before, MARKS)
    return replace(done, partial=None)


def _without_earlier(task: Task, run: Run) -> Task:
    """Return a task without its earlier result; refuse unless results may be replaced."""
    if not run.force:
        raise InputError(OTHER, one_line(task.planned.output))
    return replace(task, earlier=None)


@dataclass(frozen=True)
class SentTask:
    """An image to denoise, with the bytes of its files."""

    task: Task
    image: Contents
    reference: Contents
    result: Contents  # result of an earlier run

    def __str__(self) -> str:
        return self.task.planned.name


@dataclass(frozen=True)
class Returned:
    """A finished image, with the bytes of its result if it is new."""

    done: Done
    number: int  # number of the image in the run
    result: Contents


def sent(task: Task, run: Run) -> SentTask:
    """Read the files of a task; for a file that is now missing, the worker reports the error."""
    result = None if task.earlier is None else run.folder / task.planned.output
    return SentTask(task, *map(_contents, (task.planned.source, task.reference, result)))


def done_here(task: Task, run: Run) -> Returned | None:
    """Return the failure of an image that cannot be read or sent; None for other images."""
    given = (task.planned.source, *([] if task.reference is None else [task.reference]))
    needed = [path for path in given if isinstance(path, Path)]
    if task.planned.refused or not all(map(head_of, needed)):
        return Returned(work_anywhere(task, run), task.number, {})
    try:
        with suppress(FileNotFoundError):
            require_memory(
                sum(file.stat().st_size for one in needed for file in _files(one).values())
            )
    except MemoryLimitError as error:
        return Returned(failed(task.planned.name, str(error)), task.number, {})
    return None


def work_on_sent(sent: SentTask, run: Run) -> Returned:
    """Denoise an image from its bytes, in a temporary folder."""
    try:
        with closing(private_path("kpca-image", folder=True)) as held:
            return _work_in(held.path, sent, run)
    except (OSError, UnwritableError) as error:
        raise InputError(
            "a worker cannot write to its folder for temporary files: make room there, or set "
            "TMPDIR for it, then run the same command again to resume."
        ) from error


def _work_in(folder: Path, sent: SentTask, run: Run) -> Returned:
    task, planned, reference = sent.task, sent.task.planned, sent.task.reference
    # Leave files in a store to `work_anywhere`, which downloads and uploads them.
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
    """Write the returned result to a temporary file or folder beside its target."""
    if not returned.result or isinstance(run.folder, StorePath):
        return returned.done
    target = run.folder / returned.done.outcome.output
    partial = partial_path(target, secrets.token_hex(4), returned.number)
    with writing_to(target):
        _put(returned.result, partial)
        sync_tree(partial)
    return replace(returned.done, partial=partial)


def _contents(path: AnyPath | None) -> Contents:
    """Read a file, or all files below a folder except links; empty for None."""
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
