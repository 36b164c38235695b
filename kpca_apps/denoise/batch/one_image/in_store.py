"""An image worked on whose file lies in an object store, or whose result goes there.

Who works on it copies the image into a folder for temporary files, and uploads the result itself:
so it may work on any machine that reaches the store. What the record is to hold of the result is an
object of its own, and uploaded first. So a result in the store is known by its hash, or not ours.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from kpca_apps.denoise.batch.manifest import hash_file
from kpca_apps.denoise.batch.one_image.work import Done, Run, Task, UnwritableError, failed, work
from kpca_apps.errors import InputError, KpcaError
from kpca_apps.images.files import check_object, files_in
from kpca_apps.images.kinds import head_of
from kpca_apps.images.laboratory.ome_zarr import MARKS
from kpca_apps.names import one_line
from kpca_apps.system.files.spools import spool_folder
from kpca_apps.system.stores.addresses import StorePath
from kpca_apps.system.stores.buckets import here, place_of
from kpca_apps.system.stores.output import upload_folder

RECORDS = ".kpca-records"  # folder of what is done, until the batch comes to its end
OTHER = (
    "was made from another input or with other settings; replace it with --force, or choose "
    "another folder with --out."
)
APPEARED = "appeared in the output folder meanwhile; it is kept."


def work_anywhere(task: Task, run: Run) -> Done:
    """Work on one image as `work` does, wherever it lies and its result goes."""
    places = (task.planned.source, task.reference, run.folder)
    if not any(isinstance(place, StorePath) for place in places):
        return work(task, run)
    name = task.planned.name
    try:
        with ExitStack() as stack:
            try:
                return _by_copies(task, run, stack)
            except UnwritableError:
                if isinstance(run.folder, Path):
                    raise
                raise InputError(
                    "the folder for temporary files cannot be written to, or is full; make room "
                    "there, or set TMPDIR to another."
                ) from None
    except UnwritableError:
        raise
    except KpcaError as error:
        return failed(name, str(error))


def _by_copies(task: Task, run: Run, stack: ExitStack) -> Done:
    label = one_line(task.planned.name, 200)
    if task.planned.refused:
        raise InputError(f"{label}: {task.planned.refused}")
    check_object(task.planned.source, label)
    source = stack.enter_context(here(task.planned.source))
    reference = task.reference and stack.enter_context(here(task.reference))
    near = replace(task, planned=replace(task.planned, source=source), reference=reference)
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
