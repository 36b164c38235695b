"""Denoise a batch of image files, which can be stopped and resumed at any time."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from kpca_apps import __version__
from kpca_apps.denoise.batch.denoisers import Denoised, Denoiser, PageDenoiser
from kpca_apps.denoise.batch.examine.comparing import BASELINES
from kpca_apps.denoise.batch.inputs import find_references, plan_outputs
from kpca_apps.denoise.batch.manifest import MANIFEST, partial_path
from kpca_apps.denoise.batch.one_image.elsewhere import (
    Returned,
    done_here,
    received,
    sent,
    work_anywhere,
    work_on_sent,
)
from kpca_apps.denoise.batch.one_image.work import Done, Run, Task, failed, lost
from kpca_apps.denoise.batch.results import make_folder, results_in
from kpca_apps.denoise.progress import watching
from kpca_apps.denoise.result import DenoisingResult, ImageOutcome
from kpca_apps.errors import ConfigError
from kpca_apps.images.files import check_format
from kpca_apps.names import shown
from kpca_apps.options import MOST_JOBS, is_number
from kpca_apps.system.files.spools import spool_folder
from kpca_apps.system.stores.addresses import AnyPath, located
from kpca_apps.system.workers import Executor, Workers

RAW_OUTS = ("tiff", "dng")
Progress = Callable[[int, int, ImageOutcome], None]
Within = Callable[[str, float], None]


def run_batch(
    inputs: Iterable[str | AnyPath],
    out: str | AnyPath,
    settings: Mapping[str, Any],
    *,
    denoise: Denoiser | Callable[..., Denoised],
    format: str = "same",
    raw_out: str = "tiff",
    jobs: int = 1,
    workers: Workers | None = None,
    force: bool = False,
    reference: str | AnyPath | None = None,
    baselines: Sequence[str] = (),
    per_image: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Progress | None = None,
    within: Within | None = None,
    passed_over: str | AnyPath | None = None,
) -> DenoisingResult:
    """Denoise files, folders and patterns into a folder, or resume a stopped batch.

    Results mirror the input folders and are complete or absent. Results of an earlier run with the
    same settings are verified by their hash and kept. The batch continues past images that cannot
    be read, crash their worker process or trigger a bug, and gives the reason for each.

    Parameters
    ----------
    inputs : iterable of str or Path
        Files, folders, patterns, or addresses of a store such as ``s3://bucket/folder``.
    out : str or Path
        Output folder, created if its parent exists, or its address in a store.
    settings : mapping
        Everything on which `denoise` depends, as JSON values. Results of an earlier run with other
        settings are replaced only with `force`.
    denoise : callable
        ``denoise(pixels, channel_axis=...)`` returns the denoised array, in the image's units, and
        its `kpca_apps.denoise.denoiser.DenoiseInfo`. Pixels are (h, w) or (h, w, 3) as stored,
        without alpha. With more than one worker, `denoise` must be picklable.
    format : {"same", "png", "tiff"}
        Format of the results.
    raw_out : {"tiff", "dng"}
        Output for raw files: developed pictures in `format`, or DNG mosaics.
    jobs : int
        Number of worker processes, at least 1; results do not depend on it.
    workers : Workers, optional
        Used instead of processes, such as a Dask cluster. Workers receive the images and return
        the results, so they need no access to any folder.
    force : bool
        Whether to replace files at the targets that are no results of this batch. Inputs are never
        replaced.
    reference : str or Path, optional
        Folder of clean images with the names of the inputs (suffixes may differ), or the clean
        image of a single input: adds PSNR and SSIM.
    baselines : sequence of {"nl_means", "wavelet"}
        Methods to compare with; need `reference`.
    per_image : mapping, optional
        Settings of single images by name; such an image is denoised by ``denoise.changed(own)``.
    progress : callable, optional
        Called as ``progress(n_done, n_all, outcome)`` after each image, in the order they finish.
    within : callable, optional
        Called from another thread as ``within(name, share)`` with the progress of an image.
    passed_over : str or Path, optional
        A folder around `out` that is not searched for inputs.

    Returns
    -------
    DenoisingResult

    Raises
    ------
    ConfigError
        If options contradict each other.
    InputError
        If there is no image, or the output folder is full or not writable. Finished results are
        kept, and the same call resumes.
    RefusedError
        If other files are at the targets, or another run is writing to the folder.
    """
    began = time.perf_counter()
    _check_options(format, raw_out, jobs, reference, baselines)
    planned, notes = plan_outputs(
        inputs, out, format=format, raw_out=raw_out, passed_over=passed_over
    )
    placed = tuple(image for image in planned if image.output)
    references, more = find_references(placed, reference if placed else None)
    folder = make_folder(located(out))
    outcomes: dict[str, ImageOutcome] = {}
    keys: dict[str, str] = {}
    # Leave out the default, so that the keys (hashes of settings) of older results still match.
    raw = {"raw_out": raw_out} if raw_out != "tiff" else {}
    with ExitStack() as stack, results_in(folder) as results:
        run = Run(
            denoise=denoise if isinstance(denoise, Denoiser) else PageDenoiser(denoise),
            folder=folder,
            format=format,
            settings={**settings, "format": format, **raw, "version": __version__},
            # Put the progress file beside results on disk, else into a temporary folder.
            board=partial_path(folder / MANIFEST, secrets.token_hex(4), 0)
            if isinstance(folder, Path)
            else stack.enter_context(closing(spool_folder(folder=False))).path,
            baselines=tuple(baselines),
            raw_out=raw_out,
            force=force,
        )
        for image in placed:
            results.require_place(image)
        tasks = [
            Task(image, number, references.get(image.name), (per_image or {}).get(image.name, {}))
            for number, image in enumerate(placed, 1)
        ]
        tasks = [results.seen(task, run.of(task.own)) for task in tasks]
        with ExitStack() as working:
            working.callback(results.clear, placed)
            if within is not None:
                working.enter_context(watching(run.board, [image.name for image in placed], within))
            if workers is None:
                kind: Executor = "serial" if min(jobs, len(tasks)) <= 1 else "processes"
                workers = Workers(kind, n_workers=max(1, min(jobs, len(tasks))))
                working.enter_context(workers)
            refused = [failed(one.name, one.refused) for one in planned if not one.output]
            for done in chain(refused, _work(tasks, run, workers)):
                outcome = results.publish(done, run)
                outcomes[outcome.name] = outcome
                if outcome.status == "ok":
                    keys[outcome.output] = done.key
                if progress is not None:
                    progress(len(outcomes), len(planned), outcome)
        results.settle(keys)
    return DenoisingResult(
        images=tuple(outcomes[image.name] for image in planned),
        settings=dict(settings),
        notes=(*notes, *more),
        seconds=time.perf_counter() - began,
    )


def _work(tasks: Sequence[Task], run: Run, workers: Workers) -> Iterator[Done]:
    """Yield images as they finish, from local processes or from workers without file access."""
    if workers.executor != "dask":
        yield from workers.map_partitions(work_anywhere, tasks, run, ordered=False, lost=lost)
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


def _check_options(
    format: str, raw_out: str, jobs: int, reference: str | AnyPath | None, baselines: Sequence[str]
) -> None:
    check_format(format)
    if raw_out not in RAW_OUTS:
        raise ConfigError(f"raw_out is {raw_out!r}; give one of {', '.join(RAW_OUTS)}")
    if not is_number(jobs, 1, MOST_JOBS, whole=True):
        raise ConfigError(f"jobs is {shown(jobs)}; give a whole number from 1 to {MOST_JOBS:,}.")
    for name in baselines:
        if name not in BASELINES:
            raise ConfigError(f"{name!r} is not a baseline; give one of {', '.join(BASELINES)}.")
    if baselines and reference is None:
        raise ConfigError(
            "baselines are compared with clean images; name their folder with --reference."
        )
