"""An image worked on where no file of the batch is seen: its bytes go there, the result's back.

The worker keeps them in its own folder for temporary files while it works; the batch alone writes
to the folder of the results.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kpca_apps.denoise.batch.manifest import partial_path
from kpca_apps.denoise.batch.work import Done, Run, Task, UnwritableError, work, writing_to
from kpca_apps.errors import InputError
from kpca_apps.system.temporary import private_path

IMAGE, REFERENCE, RESULTS = "image", "reference", "results"  # folders on the worker


@dataclass(frozen=True)
class SentTask:
    """One image to work on, and what its files hold, by their places below a folder."""

    task: Task
    contents: Mapping[str, bytes]

    def __str__(self) -> str:
        return self.task.planned.name


@dataclass(frozen=True)
class Returned:
    """An image that is done, and what its result holds, where that is new."""

    done: Done
    number: int  # of the image in the run
    content: bytes | None


def sent(task: Task, run: Run) -> SentTask:
    """Read what the work on an image takes; a file that is gone by now is missed there."""
    files = {f"{IMAGE}/{task.planned.source.name}": task.planned.source}
    if task.reference is not None:
        files[f"{REFERENCE}/{task.reference.name}"] = task.reference
    if task.earlier is not None:
        files[f"{RESULTS}/{task.planned.output}"] = run.folder / task.planned.output
    return SentTask(
        task, {name: file.read_bytes() for name, file in files.items() if file.is_file()}
    )


def done_here(task: Task, run: Run) -> Returned | None:
    """Say of an image that is no readable file why there is no result; None for others."""
    planned = task.planned
    files = [planned.source] if task.reference is None else [planned.source, task.reference]
    if not planned.refused and all(one.is_file() and os.access(one, os.R_OK) for one in files):
        return None
    return Returned(work(task, run), task.number, None)


def work_on_sent(sent: SentTask, run: Run) -> Returned:
    """Work on an image by what is sent of it, in a folder for temporary files."""
    try:
        held = private_path("kpca-image", folder=True)
        try:
            return _worked_on(sent, run, held.path)
        finally:
            held.close()
    except (OSError, UnwritableError) as error:
        raise InputError(
            "a worker cannot write to its folder for temporary files: make room there, or set "
            "TMPDIR for it, then run the same command again: what is done is kept."
        ) from error


def _worked_on(sent: SentTask, run: Run, folder: Path) -> Returned:
    task = sent.task
    for name, content in sent.contents.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    planned = replace(task.planned, source=folder / IMAGE / task.planned.source.name)
    reference = task.reference and folder / REFERENCE / task.reference.name
    here = replace(run, folder=folder / RESULTS)
    done = work(replace(task, planned=planned, reference=reference), here)
    made = None if done.partial is None else done.partial.read_bytes()
    return Returned(replace(done, partial=None), task.number, made)


def received(returned: Returned, run: Run) -> Done:
    """Store what a worker made in an unfinished file beside the result's place."""
    if returned.content is None:
        return returned.done
    target = run.folder / returned.done.outcome.output
    partial = partial_path(target, secrets.token_hex(4), returned.number)
    with writing_to(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("xb") as file:
            file.write(returned.content)
            file.flush()
            os.fsync(file.fileno())
    return replace(returned.done, partial=partial)
