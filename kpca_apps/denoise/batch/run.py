"""Denoise a batch of image files so that a stop at any moment loses nothing."""

from __future__ import annotations

import dataclasses
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from kpca_apps import __version__
from kpca_apps.denoise.batch.examine.comparing import BASELINES
from kpca_apps.denoise.batch.inputs import Planned, find_references, plan_outputs
from kpca_apps.denoise.batch.manifest import (
    MANIFEST,
    Manifest,
    batch_key,
    hash_file,
    partial_path,
    remove_partial,
    remove_result,
    sync_folder,
)
from kpca_apps.denoise.batch.one_image.elsewhere import (
    Returned,
    done_here,
    received,
    sent,
    work_on_sent,
)
from kpca_apps.denoise.batch.one_image.work import Denoise, Done, Run, Task, lost, work
from kpca_apps.denoise.progress import watching
from kpca_apps.denoise.result import DenoisingResult, ImageOutcome
from kpca_apps.errors import ConfigError, InputError, RefusedError
from kpca_apps.images.files import check_format
from kpca_apps.images.kinds import head_of
from kpca_apps.names import one_line
from kpca_apps.system.files.output import exchanged
from kpca_apps.system.workers import Executor, Workers

RAW_OUTS = ("tiff", "dng")
Progress = Callable[[int, int, ImageOutcome], None]
Within = Callable[[str, float], None]


def run_batch(
    inputs: Iterable[str | Path],
    out: str | Path,
    settings: Mapping[str, Any],
    *,
    denoise: Denoise,
    format: str = "same",
    raw_out: str = "tiff",
    jobs: int = 1,
    workers: Workers | None = None,
    force: bool = False,
    reference: str | Path | None = None,
    baselines: Sequence[str] = (),
    per_image: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Progress | None = None,
    within: Within | None = None,
    passed_over: str | Path | None = None,
) -> DenoisingResult:
    """Denoise files, folders and patterns into a folder, or go on with a batch that was stopped.

    Results mirror the tree of the inputs. Each appears whole or not at all; what an earlier run of
    the same settings finished is verified by its hash and not done again. An image that cannot be
    read is listed with the reason, and the others go on; so is one whose worker process the system
    ended, or that met a bug, whose traceback its outcome holds.

    Parameters
    ----------
    inputs : iterable of str or Path
    out : str or Path
        Output folder; made if its parent exists.
    settings : mapping
        All that `denoise` depends on, in what JSON can hold. Other settings give other results:
        what an earlier run made with them is replaced only with `force`.
    denoise : callable
        ``denoise(pixels, channel_axis=...)`` gives the denoised array, in the units of the image,
        and its `kpca_apps.denoise.denoiser.DenoiseInfo`. Pixels are (h, w) or (h, w, 3) as stored,
        without alpha. With more than one worker it must be something that can be pickled.
    format : {"same", "png", "tiff"}
        Format to write.
    raw_out : {"tiff", "dng"}
        What becomes of a camera's raw files: developed pictures, in the format to write, or DNG
        files of their mosaic.
    jobs : int
        Worker processes, at least 1; the files are the same for any number.
    workers : Workers, optional
        Instead of these, such as those of a Dask cluster, which are sent the images and send back
        the results: they need not see any folder.
    force : bool
        Replace files that stand in the way. Inputs are never replaced.
    reference : str or Path, optional
        Folder of clean images with the names of the inputs (another suffix will do), or one
        clean image for a single input: adds PSNR and SSIM.
    baselines : sequence of {"nl_means", "wavelet"}
        Also compare with these; needs `reference`.
    per_image : mapping, optional
        Settings of single images that are not those of all, by the name of the image;
        ``denoise.changed(own)`` is what denoises it then.
    progress : callable, optional
        Called as ``progress(n_done, n_all, outcome)`` after each image, in the order they finish.
    within : callable, optional
        Called as ``within(name, share)`` while an image is worked on, with the share of it that is
        done, from another thread.
    passed_over : str or Path, optional
        A folder around `out`, of which nothing is an input either.

    Returns
    -------
    DenoisingResult

    Raises
    ------
    ConfigError
        If options contradict each other.
    InputError
        If there is no image, or the output folder cannot be written to or is full; what is done
        by then is kept, and the same call goes on from there.
    RefusedError
        If files stand in the way, or another run is writing to the folder.
    """
    began = time.perf_counter()
    _check_options(format, raw_out, jobs, reference, baselines)
    planned, notes = plan_outputs(
        inputs, out, format=format, raw_out=raw_out, passed_over=passed_over
    )
    references, more = find_references(planned, reference)
    folder = make_folder(Path(out))
    run = Run(
        denoise=denoise,
        folder=folder,
        format=format,
        settings={**settings, **_format_of(format, raw_out), "version": __version__},
        board=partial_path(folder / MANIFEST, secrets.token_hex(4), 0),
        baselines=tuple(baselines),
        raw_out=raw_out,
    )
    outcomes: dict[str, ImageOutcome] = {}
    keys: dict[str, str] = {}
    with Manifest(folder) as manifest:
        remove_partial(folder)
        for image in planned:
            _require_place(image, folder)
        tasks = [
            Task(image, number, references.get(image.name), (per_image or {}).get(image.name, {}))
            for number, image in enumerate(planned, 1)
        ]
        tasks = [_seen(task, run.of(task.own), manifest, force) for task in tasks]
        try:
            with ExitStack() as stack:
                if within is not None:
                    names = [image.name for image in planned]
                    stack.enter_context(watching(run.board, names, within))
                if workers is None:
                    kind: Executor = "serial" if jobs == 1 or len(tasks) == 1 else "processes"
                    workers = Workers(kind, n_workers=min(jobs, len(tasks)))
                    stack.enter_context(workers)
                for done in _worked_on(tasks, run, workers):
                    outcome = _publish(done, folder, manifest, force)
                    outcomes[outcome.name] = outcome
                    if outcome.status == "ok":
                        keys[outcome.output] = done.key
                    if progress is not None:
                        progress(len(outcomes), len(tasks), outcome)
        finally:
            # The folder is locked: what is unfinished now belongs to workers that were stopped.
            remove_partial(folder)
            _remove_empty(planned, folder)
        manifest.settle(keys)
    return DenoisingResult(
        images=tuple(outcomes[image.name] for image in planned),
        settings=dict(settings),
        notes=(*notes, *more),
        seconds=time.perf_counter() - began,
    )


def _worked_on(tasks: Sequence[Task], run: Run, workers: Workers) -> Iterator[Done]:
    """Yield the images as they are done, by processes here or by workers who see no files."""
    if workers.executor != "dask":
        yield from workers.map_partitions(work, tasks, run, ordered=False, lost=lost)
        return
    found = workers.map_partitions(
        work_on_sent,
        tasks,
        run,
        ordered=False,
        lost=lambda task: Returned(lost(task), task.number, {}),
        known=partial(done_here, run=run),
        carried=partial(sent, run=run),
        always_carried=True,
    )
    for returned in found:
        yield received(returned, run)


def _format_of(format: str, raw_out: str) -> dict[str, str]:
    """Return what files are written as, in settings: only what is not as ever."""
    return {"format": format} | ({"raw_out": raw_out} if raw_out != "tiff" else {})


def _check_options(
    format: str, raw_out: str, jobs: int, reference: str | Path | None, baselines: Sequence[str]
) -> None:
    check_format(format)
    if raw_out not in RAW_OUTS:
        raise ConfigError(f"raw_out is {raw_out!r}; give one of {', '.join(RAW_OUTS)}")
    if jobs < 1:
        raise ConfigError(f"jobs is {jobs}; give 1 or more.")
    for name in baselines:
        if name not in BASELINES:
            raise ConfigError(f"{name!r} is no baseline; give one of {', '.join(BASELINES)}.")
    if baselines and reference is None:
        raise ConfigError(
            "baselines are compared with clean images; name their folder by --reference."
        )


def make_folder(out: Path) -> Path:
    """Make the folder of a run if it is not there, and return its place."""
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


def _require_place(image: Planned, folder: Path) -> None:
    """Refuse an output folder in which something stands in the way of folders of results."""
    if not Path(os.path.realpath((folder / image.output).parent)).is_relative_to(folder):
        raise RefusedError(
            f"{one_line(image.output)}: a link in the output folder leads out of it; remove the "
            "link, or choose another folder with --out."
        )
    for parent in PurePosixPath(image.output).parents:
        if os.path.lexists(folder / parent) and not (folder / parent).is_dir():
            raise RefusedError(
                f"{one_line(str(parent))}: is a file in the output folder where a folder of "
                "results would stand; choose another with --out."
            )


def _seen(task: Task, run: Run, manifest: Manifest, force: bool) -> Task:
    """See whether an image is done already, and refuse to overwrite what is not its result."""
    image = task.planned
    output, target = image.output, run.folder / image.output
    if not os.path.lexists(target):
        return task
    ours: list[dict[str, Any]] = []
    if not target.is_symlink() and (target.is_file() or head_of(target)):
        stands = hash_file(target)
        ours = [r for r in manifest.records(output) if r.get("sha256") == stands]
        key = batch_key(hash_file(image.source) or "", output, run.settings)
        for record in (one for one in ours if one.get("key") == key):
            # A damaged record counts for nothing.
            with suppress(KeyError, ValueError, OverflowError):
                return dataclasses.replace(task, earlier=msgspec.convert(record, Done))
    if target.is_dir() and not head_of(target):
        raise RefusedError(
            f"{one_line(output)}: is a folder in the output folder; choose another with --out."
        )
    if not force:
        what = (
            "was made from another input or with other settings"
            if ours
            else "exists in the output folder and is no result of this batch"
        )
        raise RefusedError(
            f"{one_line(output)}: {what}; replace it with --force, or choose another folder "
            "with --out."
        )
    return task


def _publish(done: Done, folder: Path, manifest: Manifest, force: bool) -> ImageOutcome:
    """Record an image that is done, then give its file the name."""
    outcome = done.outcome
    if done.partial is None:
        return outcome
    target = folder / outcome.output
    if os.path.lexists(target) and not force:
        remove_result(done.partial)
        reason = f"{one_line(outcome.output)}: appeared in the output folder meanwhile; it is kept."
        return ImageOutcome(outcome.name, "failed", reason=reason)
    record = dataclasses.asdict(done)
    # What is computed from the files or asked for is not recorded, nor times.
    for name in ("previews", "residual", "own_settings", "resumed", "seconds", "bug"):
        del record["outcome"][name]
    del record["partial"]
    manifest.add({"output": outcome.output, **record})
    try:
        _put(done.partial, target)
    except OSError as error:
        raise InputError(
            f"{one_line(str(target), 200)}: cannot be written ({error.strerror}); choose another "
            "folder with --out."
        ) from None
    sync_folder(target.parent)
    return outcome


def _put(partial: Path, target: Path) -> None:
    """Give a result its name; a folder that has it is removed thereafter."""
    if partial.is_dir() and target.is_dir():
        if exchanged(partial, target):
            remove_result(partial)
            return
        aside = partial_path(target, secrets.token_hex(4), 0)
        target.replace(aside)
        partial.replace(target)
        remove_result(aside)
    else:
        partial.replace(target)


def _remove_empty(planned: Iterable[Planned], folder: Path) -> None:
    """Remove folders that were made for results that failed."""
    parents = {parent for image in planned for parent in PurePosixPath(image.output).parents}
    for parent in sorted(parents - {PurePosixPath()}, key=lambda one: -len(one.parts)):
        with suppress(OSError):
            (folder / parent).rmdir()
