"""Denoise a batch of image files so that a stop at any moment loses nothing."""

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
    """Denoise files, folders and patterns into a folder, or go on with a batch that was stopped.

    Results mirror the tree of the inputs. Each appears whole or not at all; what an earlier run of
    the same settings finished is verified by its hash and not done again. An image that cannot be
    read is listed with the reason, and the others go on; so is one whose worker process the system
    ended, or that met a bug, whose traceback its outcome holds.

    Parameters
    ----------
    inputs : iterable of str or Path
        Or addresses of a store, such as ``s3://bucket/folder``.
    out : str or Path
        Output folder, made if its parent exists; or the address of one in a store.
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
    placed = tuple(image for image in planned if image.output)
    references, more = find_references(placed, reference if placed else None)
    folder = make_folder(located(out))
    outcomes: dict[str, ImageOutcome] = {}
    keys: dict[str, str] = {}
    raw = {"raw_out": raw_out} if raw_out != "tiff" else {}  # in settings only what is not as ever
    with ExitStack() as stack, results_in(folder) as results:
        run = Run(
            denoise=denoise if isinstance(denoise, Denoiser) else PageDenoiser(denoise),
            folder=folder,
            format=format,
            settings={**settings, "format": format, **raw, "version": __version__},
            board=_board(folder, stack),
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
                names = [image.name for image in placed]
                working.enter_context(watching(run.board, names, within))
            if workers is None:
                kind: Executor = "serial" if min(jobs, len(tasks)) <= 1 else "processes"
                workers = Workers(kind, n_workers=max(1, min(jobs, len(tasks))))
                working.enter_context(workers)
            nameless = [failed(one.name, one.refused) for one in planned if not one.output]
            for done in chain(nameless, _worked_on(tasks, run, workers)):
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


def _worked_on(tasks: Sequence[Task], run: Run, workers: Workers) -> Iterator[Done]:
    """Yield the images as they are done, by processes here or by workers who see no files."""
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


def _board(folder: AnyPath, stack: ExitStack) -> Path:
    """Name the file in which workers tell how far each image is, beside the results if on disk."""
    if isinstance(folder, Path):
        return partial_path(folder / MANIFEST, secrets.token_hex(4), 0)
    return stack.enter_context(closing(spool_folder(folder=False))).path


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
