"""The work of ``kpca denoise run``: plan, preview, batch and report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from kpca_apps.cli.commands import reproduce
from kpca_apps.cli.console import MOST_FAILURES, Console, image_progress, say_line
from kpca_apps.cli.denoise.options import METHOD, RunOptions, in_flags
from kpca_apps.cli.denoise.processors import count_samples, processors
from kpca_apps.cli.results import REPORT_FILE, Clock, made_for_use, near, print_result, write_result
from kpca_apps.cli.workers import quiet_workers
from kpca_apps.denoise.batch.denoisers import ExampleDenoiser, GroupDenoiser
from kpca_apps.denoise.batch.examine.measuring import with_same_noise
from kpca_apps.denoise.batch.inputs import Planned, named_reason, plan_outputs, real
from kpca_apps.denoise.batch.manifest import hash_file
from kpca_apps.denoise.batch.one_image.work import BUG
from kpca_apps.denoise.batch.pages import TREATED
from kpca_apps.denoise.batch.profile import read_profile
from kpca_apps.denoise.batch.results import make_folder
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.batch.trial import try_strengths
from kpca_apps.denoise.denoiser import doubt_level
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes.warming import KEPT_NOWHERE, is_kept, warm_up
from kpca_apps.denoise.result import DenoisingResult, ImageOutcome
from kpca_apps.errors import InputError, MemoryLimitError, RefusedError, StoppedError
from kpca_apps.images.files import read_image
from kpca_apps.names import one_line, safe_stem
from kpca_apps.report.denoising.text import (
    has_figures,
    headline,
    in_units,
    is_left,
    law_lines,
    left_note,
    noise_range,
    standing_sentences,
    trial_sentence,
    trial_title,
)
from kpca_apps.report.text import plural
from kpca_apps.system.files.output import ResultFolder
from kpca_apps.system.memory import share_heap
from kpca_apps.system.stores.addresses import AnyPath, located
from kpca_apps.system.stores.buckets import here
from kpca_apps.system.stores.output import output_folder
from kpca_apps.system.workers import Workers, on_dask

IMAGES, REPORT, PREVIEW = "images", "report", "preview"


@dataclass(frozen=True)
class Batch:
    """The images and options of a run."""

    context: typer.Context
    options: RunOptions
    console: Console
    inputs: tuple[str, ...]  # paths on the command line, except for the output folder
    planned: tuple[Planned, ...]
    baselines: tuple[str, ...]
    denoiser: GroupDenoiser | ExampleDenoiser
    per_image: Mapping[str, Mapping[str, Any]]  # options by name of image

    @property
    def out(self) -> AnyPath:
        """The folder of the run."""
        return located(self.options.out)

    @property
    def images(self) -> AnyPath:
        """The folder of the denoised images."""
        return self.out / IMAGES


def chosen_denoiser(context: typer.Context, options: RunOptions) -> GroupDenoiser | ExampleDenoiser:
    """Return the denoiser that the options describe; raise OptionError if they contradict."""
    sigma, data_range = options.level, options.data_range
    mask = None if options.mask is None else located(options.mask)
    options.refuse_contradictions({name for name in vars(options) if is_given(context, name)})
    if options.model is None:
        given: dict[str, Any] = {name: getattr(options, name) for name in ("noise", *METHOD)}
        # Check the options for stacks once, rather than for each image.
        with in_flags():
            Options(**given, pages=2 if options.stack else 1)
        return GroupDenoiser(
            Options(**given),
            sigma=sigma,
            data_range=data_range,
            stack=options.stack,
            mask=mask,
            mask_sha256=_hash_of_mask(mask),
            region=options.part,
            same=read_profile(options.profile) if options.profile else (),
            from_profile=options.profile is not None,
        )
    from kpca_apps.denoise.dictionary import DictionaryDenoiser

    model = DictionaryDenoiser.load(options.model)
    sha256 = hash_file(located(options.model)) or ""
    noise = "impulse" if options.noise == "impulse" else "gaussian"
    return ExampleDenoiser(model, sha256, noise=noise, sigma=sigma, data_range=data_range)


def _hash_of_mask(path: AnyPath | None) -> str:
    if path is None:
        return ""
    with here(path) as local:
        if local.is_dir():
            raise InputError("this is a folder; name one image.", path)
        if (found := hash_file(local)) is None:
            raise InputError("no such file; give the mask as an image file.", path)
        # Masks with one bit per pixel are read later, with less memory than `read_image` requires.
        with suppress(MemoryLimitError):
            read_image(local, str(path))
    return found


def plan_batch(context: typer.Context, inputs: Sequence[str], options: RunOptions) -> Batch:
    """Find the images and choose the denoiser of a run."""
    denoiser = chosen_denoiser(context, options)
    baselines: tuple[str, ...] = ()
    if options.compare:
        from kpca_apps.denoise.batch.examine.comparing import BASELINES

        baselines = tuple(BASELINES)
    out = located(options.out)
    # A shell's * also matches the output folder of an earlier run.
    inputs = tuple(path for path in inputs if real(located(path)) != real(out))
    if not inputs:
        raise RefusedError(
            "is the folder of the inputs, where results would later be read as inputs; choose "
            "another with --out",
            out,
        )
    planned, _ = plan_outputs(
        inputs, out / IMAGES, format=options.format, raw_out=options.raw_out, passed_over=out
    )
    console, per_image = Console(options.quiet), {}
    if options.per_image is not None:
        from kpca_apps.denoise.batch.per_image import read_per_image

        assert isinstance(denoiser, GroupDenoiser)
        per_image = read_per_image(options.per_image, [image.name for image in planned], denoiser)
    return Batch(context, options, console, inputs, planned, baselines, denoiser, per_image)


def print_plan(batch: Batch) -> None:
    """Print the output path of each input to stdout, and report inputs that cannot be read."""
    for one in batch.planned:
        if one.refused:
            say_line(f"failed: {one_line(one.name, 200)}: {one.refused}")
    places = {one.name: str(batch.images / one.output) for one in batch.planned if not one.refused}
    if batch.options.json:
        from kpca_apps.cli.denoise.documents import PLANNED_IMAGES

        listed = [{"name": name, "output": place} for name, place in places.items()]
        batch.console.data_json(PLANNED_IMAGES, {"images": listed})
    else:
        batch.console.data_lines([f"{name} -> {place}" for name, place in places.items()])


def run_whole(batch: Batch) -> int:
    """Denoise all images and write the report; return how many images failed."""
    options, clock, place = batch.options, Clock(), batch.out
    share_heap()
    with ExitStack() as stack:
        stack.enter_context(made_for_use(place))
        folder = output_folder(make_folder(place) / REPORT, force=True)
        folder.check()
        if isinstance(batch.images, Path) and batch.images.is_symlink():
            raise RefusedError(
                "is a link, so results would be written elsewhere; remove it, or choose another "
                "folder with --out",
                batch.images,
            )
        workers = None
        if on_dask(options.workers, options.scheduler):
            workers = stack.enter_context(
                quiet_workers(options.workers, options.jobs, options.scheduler)
            )
        # Count values in local files only, as counting would download objects of a store.
        samples = [
            count_samples(one.source) if isinstance(one.source, Path) else one.n_bytes
            for one in batch.planned
        ]
        jobs = processors(options.jobs, samples, stack=options.stack)
        # Remote workers compile the code for their own machines.
        if options.model is None and (options.scheduler is None or options.same_noise):
            jobs = warm(batch, jobs)
        if options.same_noise and isinstance(batch.denoiser, GroupDenoiser):
            with batch.console.stage("Measuring the noise of all images"):
                same = with_same_noise(batch.planned, batch.denoiser, jobs[0])
            batch = replace(batch, denoiser=same)
        clock.lap("starting")
        if workers is not None:
            jobs = workers.width, 1
        result = denoise_batch(batch, samples, jobs, workers)
        clock.lap("denoising")
        clock.details |= {"workers": jobs[0], "threads of a worker": jobs[1]}
        if isinstance(batch.denoiser, ExampleDenoiser) and options.model is not None:
            from kpca_apps.denoise.batch.dictionary import view_dictionary

            model, name = batch.denoiser.model, located(options.model).name
            result = replace(result, dictionary=view_dictionary(model, name, result.images))
        try:
            _write_report(result, folder, clock)
        except KeyboardInterrupt:
            raise StoppedError(
                "interrupted; the images are done and the report is not: run the same command "
                "again to write it"
            ) from None
        except InputError as error:
            raise InputError(
                f"{error} The images are done and kept: run the same command again to write the "
                "report."
            ) from error
    _say_outcome(batch, result)
    print_result(batch.console, folder.path, result, options.json)
    # Raise the first bug only after the other images and the report are written.
    for image in result.failed:
        if image.bug:
            bug = RuntimeError(image.reason.replace(f"{BUG}, ", "", 1))
            bug.add_note(image.bug)
            raise bug
    return result.n_failed


def _write_report(result: DenoisingResult, folder: ResultFolder, clock: Clock) -> None:
    from kpca_apps.report.denoising.page import denoising_pages

    figures: dict[str, bytes] = {}
    clock.details["seconds of images"] = {
        image.name: round(image.seconds, 3)
        for image in result.images
        if image.status == "ok" and not image.resumed
    }
    clock.details["resumed"] = result.n_resumed
    with folder as building:
        if has_figures(result):
            from kpca_apps.report.denoising.figures import denoising_figures

            figures = denoising_figures(result)
        write_result(building, result, denoising_pages(result), figures, clock)


def run_trial(batch: Batch) -> None:
    """Denoise a crop of the first image at three strengths, and write a page with the results."""
    first, out = batch.planned[0], batch.out
    if first.refused:
        raise InputError(named_reason(first.name, first.refused))
    if not is_given(batch.context, "out"):
        _try_strengths(batch, Path(f"kpca-preview-{safe_stem(Path(first.name).stem)}"))
        return
    with made_for_use(out):
        _try_strengths(batch, make_folder(out) / PREVIEW)


def _try_strengths(batch: Batch, place: AnyPath) -> None:
    from kpca_apps.report.denoising.page import render_trial

    console, options, first = batch.console, batch.options, batch.planned[0]
    clock, folder = Clock(), output_folder(place, force=True)
    folder.check()
    if len(batch.planned) > 1:
        console.say(f"A preview of {first.name}, the first of {len(batch.planned)} images.")
    denoiser = batch.denoiser.by_threads(sum(processors(options.jobs, [1])) - 1)
    with here(first.source) as source:
        image = read_image(source, label=first.name)
        warm(batch, (1, 1))
        clock.lap("starting")
        with console.stage("Trying three strengths"):
            assert isinstance(denoiser, GroupDenoiser)  # a dictionary has no strengths to try
            denoiser = denoiser.changed(batch.per_image.get(first.name, {}))
            result = try_strengths(image, denoiser)
    clock.lap("denoising")
    result = replace(
        result, command=reproduce(batch.context), versions=library_versions([result.noise])
    )
    with folder as building:
        write_result(building, result, [(REPORT_FILE, render_trial(result))], {}, clock)
    if result.established:
        for trial in result.trials:
            console.say(f"{trial_title(trial)}: removes {in_units(result, trial.residual_sd)}.")
        console.say(
            f"To use a strength for {first.name} alone, write the first of these lines and the "
            "one of your choice to a file, and give it with --per-image:"
        )
        header, *_ = result.trials[0].per_image.splitlines()
        lines = [trial.per_image.removeprefix(header).strip() for trial in result.trials]
        for line in () if options.quiet else (header, *lines):
            say_line(line)
    else:
        console.say("".join(trial_sentence(result)))
    print_result(console, folder.path, result, options.json)


def warm(batch: Batch, jobs: tuple[int, int]) -> tuple[int, int]:
    """Compile the inner loops; return the numbers of processes and threads.

    If compiled code cannot be cached, use one process, as each process would compile it again.
    """
    if is_kept():
        warm_up(lambda: batch.console.say("Compiling for this machine, once; some 15 seconds."))
        return jobs
    batch.console.say(f"Compiling; some 15 seconds. {KEPT_NOWHERE}")
    warm_up(lambda: None)
    return 1, jobs[0] * jobs[1]


def denoise_batch(
    batch: Batch, samples: Sequence[int], jobs: tuple[int, int], workers: Workers | None = None
) -> DenoisingResult:
    """Denoise a batch and show its progress.

    `samples` are the numbers of values in each image. `jobs` are the numbers of worker
    processes and of threads for each.
    """
    options = batch.options
    denoiser = batch.denoiser.by_threads(jobs[1])
    n_done = 0
    weights = {one.name: size for one, size in zip(batch.planned, samples, strict=True)}
    try:
        with image_progress(batch.console, weights) as (show, within):

            def progress(done: int, n_all: int, outcome: ImageOutcome) -> None:
                nonlocal n_done
                # Failed images do not count as done, as the next run tries them again.
                n_done += outcome.status == "ok"
                show(outcome)

            result = run_batch(
                batch.inputs,
                batch.images,
                denoiser.settings,
                denoise=denoiser,
                format=options.format,
                raw_out=options.raw_out,
                jobs=jobs[0],
                workers=workers,
                force=options.force,
                reference=options.reference,
                baselines=batch.baselines,
                per_image=batch.per_image,
                progress=progress,
                within=within,
                passed_over=options.out,
            )
    except KeyboardInterrupt:
        raise StoppedError(
            f"interrupted; run the same command again to resume: {n_done} of {len(batch.planned)} "
            "are done"
        ) from None
    notes = [*result.notes]
    if options.profile:
        name = one_line(options.profile)
        notes.append(f"the noise is taken from --profile {name}, not measured.")
    return replace(
        result,
        notes=(*notes, *_notes(denoiser.sigma, result)),
        settings=_settings(denoiser.settings, batch),
        command=reproduce(batch.context),
        versions=library_versions([image.noise for image in result.images]),
    )


def _settings(settings: Mapping[str, Any], batch: Batch) -> dict[str, Any]:
    options = batch.options
    listed = {**settings, "format": options.format, "compare": list(batch.baselines)}
    if options.raw_out != "tiff":
        listed["raw_out"] = options.raw_out
    if options.model is not None:
        listed |= {"model": located(options.model).name, "model_sha256": settings["model"]}
    for name in ("reference", "per_image"):
        if (given := getattr(options, name)) is not None:
            listed[name] = located(given).name
    return listed


def library_versions(noises: Iterable[str]) -> dict[str, str]:
    """Return the versions of libraries that affect denoised pixels."""
    from importlib.metadata import version

    names = ["kpca-apps", "numpy", "numba", "scipy", "scikit-image", "pillow"]
    names += ["rawpy"] if "raw" in noises else []
    return {name: version(name) for name in names}


def _notes(sigma: float | Sequence[float] | None, result: DenoisingResult) -> list[str]:
    """Return notes on an implausible noise level and on impulses."""
    notes = []
    for image in result.images:
        if image.status == "ok":
            dtype, data_range = np.dtype(image.dtype), image.data_range or 1.0
            # Warn of a level that was probably meant as a share of the data range.
            own = image.own_settings.get("sigma", sigma)
            if doubt := doubt_level(own, image.noise, dtype, data_range):
                notes.append(f"--{doubt}")
                break
    notes += left_note(result)
    if impulses := sum(image.impulses for image in result.images):
        notes.append(
            f"single pixels of {plural(impulses, 'image')} stand out, as in impulse noise (salt "
            "and pepper): try --noise impulse."
        )
    return notes


def _say_outcome(batch: Batch, result: DenoisingResult) -> None:
    console = batch.console
    console.say("".join(headline(result)))
    for sentence in standing_sentences(result):
        console.say("".join(sentence))
    changed = [image for image in result.images if image.status == "ok" and not is_left(image)]
    if result.mean_comparison is not None and changed:
        # The headline states the gain, so state the noise here.
        console.say(f"{noise_range(changed).capitalize()}.")
    n_camera = sum(
        image.noise == "camera" and "noise" not in image.own_settings for image in result.images
    )
    if n_camera and result.settings.get("noise") == "auto":
        which = "it" if len(result.images) == 1 else f"{n_camera} of {len(result.images)}"
        console.say(f"Neighbouring pixels share their noise in {which}: taken as camera noise.")
    for line in law_lines(result):
        console.say(line)
    if result.n_resumed:
        n_now = len(result.done) - result.n_resumed
        were = "1 was" if result.n_resumed == 1 else f"{result.n_resumed:,} were"
        now = f"{were} done by an earlier run and {n_now:,} by this one"
        console.say(f"Of these {now}." if n_now else "All of these were done by an earlier run.")
    own = [(one_line(image.name), note) for image in result.done for note in image.notes]
    defects = [f"{name}: {note}" for name, note in own if note.startswith(TREATED)]
    notes = [*result.notes, *defects]
    for note in notes[:MOST_FAILURES]:
        console.say(f"Note: {note}")
    if len(notes) > MOST_FAILURES:
        console.say("More notes are in the report.")
    if result.n_failed < len(result.images):
        console.say(f"The images are in {near(real(batch.images))}.")


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the user set an option, on the command line or in the config file."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
