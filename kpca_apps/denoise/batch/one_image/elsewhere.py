"""An image worked on where no file of the batch is seen: its bytes go there, the result's back.

The worker keeps them in its own folder for temporary files while it works; the batch alone writes
to the folder of the results. An image may be a folder of files. What lies in a store is not sent:
the worker itself reads and writes there.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kpca_apps.denoise.batch.manifest import partial_path, sync_tree
from kpca_apps.denoise.batch.one_image.in_store import work_anywhere
from kpca_apps.denoise.batch.one_image.work import (
    Done,
    Run,
    Task,
    UnwritableError,
    failed,
    writing_to,
)
from kpca_apps.errors import InputError, MemoryLimitError
from kpca_apps.images.files import files_in
from kpca_apps.images.kinds import head_of
from kpca_apps.system.files.temporary import private_path
from kpca_apps.system.limits import require_memory
from kpca_apps.system.stores.addresses import AnyPath, StorePath

IMAGE, REFERENCE, RESULTS = "image", "reference", "results"  # folders on the worker
# What the files of an image hold, by their places in its folder; of one file, by no name.
Contents = Mapping[str, bytes]


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
            "TMPDIR for it, then run the same command again: what is done is kept."
        ) from error


def _worked_on(sent: SentTask, run: Run, folder: Path) -> Returned:
    task, planned, reference = sent.task, sent.task.planned, sent.task.reference
    # What lies in a store is fetched from there, and what goes there is sent there.
    if isinstance(planned.source, Path):
        source = folder / IMAGE / planned.source.name
        planned = replace(planned, source=source)
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
