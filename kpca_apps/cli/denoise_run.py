"""``kpca denoise run``: what is asked for, what it is asked of, the work and the last words."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kpca_apps.cli.console import Console
from kpca_apps.cli.denoise_options import check_jobs, check_range, parse_sigma
from kpca_apps.cli.progress import MOST_FAILURES, image_progress
from kpca_apps.cli.results import REPORT_FILE, Clock, print_result, write_result
from kpca_apps.cli.shared import near
from kpca_apps.errors import ConfigError, InputError, RefusedError, StoppedError
from kpca_apps.files.names import one_line, safe_stem
from kpca_apps.files.output import OutputFolder

if TYPE_CHECKING:
    from kpca_apps.denoise.batch.denoisers import ExampleDenoiser, GroupDenoiser
    from kpca_apps.denoise.batch.inputs import Planned
    from kpca_apps.denoise.result import DenoisingResult, ImageOutcome

__all__ = ["IMAGES", "Batch", "chosen_mode", "plan_batch", "print_plan", "run_trial", "run_whole"]

IMAGES, REPORT, PREVIEW = "images", "report", "preview"  # folders
_SETTINGS = ("quality", "kernel", "bandwidth", "content", "luma", "chroma", "strength")
# What a dictionary has no use for, and the kinds of noise it takes out.
_GROUPS_ONLY, _WITH_MODEL = (*_SETTINGS, "preview"), ("auto", "gaussian", "impulse")
# Bytes a worker takes: for itself, for the strip it works on, and in buffers of the image's size.
_BASE, _A_SAMPLE, _A_SAMPLE_OF_STRIP = 300_000_000, 30, 60
# Values denoised in the time a worker takes to start.
_START_UP = 100_000


@dataclass(frozen=True)
class Batch:
    """The images of a run and where their results go: `out`, with images and report in it.

    `inputs` are as given, without the output folder itself.
    """

    inputs: tuple[str, ...]
    planned: tuple[Planned, ...]
    out: Path
    rivals: tuple[str, ...]

    @property
    def images(self) -> Path:
        """The folder of the denoised images."""
        return self.out / IMAGES


def chosen_mode(
    context: typer.Context, n_jobs: int | None = None
) -> GroupDenoiser | ExampleDenoiser:
    """Turn the options of a command into a way to denoise, or refuse them by name."""
    params = context.params
    sigma, data_range = parse_sigma(params["sigma"]), params["data_range"]
    check_range(data_range)
    if params["model"] is None:
        from kpca_apps.denoise.batch.denoisers import GroupDenoiser
        from kpca_apps.denoise.options import Options

        chosen = {name: params[name] for name in ("noise", *_SETTINGS)}
        options = Options(**chosen, n_jobs=n_jobs)
        return GroupDenoiser(options, sigma=sigma, data_range=data_range)
    for name in _GROUPS_ONLY:
        if is_given(context, name):
            raise ConfigError(
                f"--{name} means nothing with --model: a dictionary has its own ways; leave one out"
            )
    if params["noise"] not in _WITH_MODEL:
        raise ConfigError(
            f"--noise {params['noise']} means nothing with --model: a dictionary takes out "
            "gaussian and impulse noise"
        )
    from kpca_apps.denoise.batch.denoisers import ExampleDenoiser
    from kpca_apps.denoise.batch.manifest import hash_file
    from kpca_apps.denoise.dictionary import DictionaryDenoiser

    model = DictionaryDenoiser.load(params["model"], n_jobs=n_jobs)
    sha256 = hash_file(params["model"]) or ""
    noise = "impulse" if params["noise"] == "impulse" else "gaussian"
    return ExampleDenoiser(model, sha256, noise=noise, sigma=sigma, data_range=data_range)


def plan_batch(params: Mapping[str, Any]) -> Batch:
    """List the images of a run, and refuse what cannot be, before any work."""
    from kpca_apps.denoise.batch.inputs import plan_outputs

    rivals: tuple[str, ...] = ()

    if params["compare"] and params["reference"] is None:
        raise ConfigError("--compare needs clean images; name their folder by --reference")
    if params["compare"]:
        from kpca_apps.denoise.batch.comparing import RIVALS

        rivals = tuple(RIVALS)
    check_jobs(params["jobs"])
    out = Path(params["out"])
    # A shell's * names the folder of an earlier run too.
    apart = os.path.realpath(out)
    inputs = [one for one in params["inputs"] if os.path.realpath(one) != apart]
    if not inputs:
        raise RefusedError(
            f"{one_line(str(out), 200)}: is the folder of the inputs itself, where results would "
            "be taken for inputs later; choose another with --out"
        )
    planned, _ = plan_outputs(inputs, out / IMAGES, format=params["format"], passed_over=out)
    return Batch(tuple(inputs), planned, out, rivals)


def print_plan(console: Console, batch: Batch, as_json: bool) -> None:
    """Print which file becomes which, as data."""
    if as_json:
        rows = [
            {"name": one.name, "output": str(batch.images / one.output)} for one in batch.planned
        ]
        console.data_json(rows)
        return
    console.data_lines([f"{one.name} -> {batch.images / one.output}" for one in batch.planned])


def run_whole(console: Console, context: typer.Context, batch: Batch, as_json: bool) -> int:
    """Denoise all images and write the report; return how many images failed."""
    clock = Clock()
    with _made(batch.out) as out:
        folder = OutputFolder(out / REPORT, force=True)
        folder.check()
        if batch.images.is_symlink():
            raise RefusedError(
                f"{one_line(str(batch.images), 200)}: is a link, which leads results elsewhere; "
                "remove it, or choose another folder with --out"
            )
        samples = [count_samples(one.source) for one in batch.planned]
        jobs = _processors(context.params["jobs"], samples)
        if context.params["model"] is None:
            jobs = warm(console, context, jobs)
        clock.lap("starting")
        result = denoise_batch(console, context, batch, samples, jobs)
        clock.lap("denoising")
        clock.told |= {"workers": jobs[0], "threads of a worker": jobs[1]}
        result = _with_dictionary(context, result)
        try:
            _write_report(result, folder, clock)
        except KeyboardInterrupt:
            raise StoppedError(
                "interrupted; the images are done and the report is not: run the same command "
                "again to write it"
            ) from None
        except InputError as error:
            raise InputError(
                f"{error} The images are done and kept: the same command goes on with the report."
            ) from error
    _say_outcome(console, batch, result)
    print_result(console, folder.path, result, as_json)
    _raise_bug(result)
    return result.n_failed


def _write_report(result: DenoisingResult, folder: OutputFolder, clock: Clock) -> None:
    """Write the report of a batch, its data and its figures, beside the folder of the images."""
    from kpca_apps.report.denoising.page import denoising_pages
    from kpca_apps.report.denoising.text import has_figures

    figures: dict[str, bytes] = {}
    clock.told["seconds of images"] = {
        image.name: round(image.seconds, 3)
        for image in result.images
        if image.status == "ok" and not image.resumed
    }
    clock.told["resumed"] = result.n_resumed
    with folder as building:
        if has_figures(result):
            from kpca_apps.report.denoising.figures import denoising_figures

            figures = denoising_figures(result)
        write_result(building, result, denoising_pages(result), figures, clock)


def _raise_bug(result: DenoisingResult) -> None:
    """Raise the first bug that was met, now that the other images and the report are written."""
    from kpca_apps.denoise.batch.work import BUG

    for image in result.failed:
        if image.bug:
            error = RuntimeError(image.reason.replace(f"{BUG}, ", "", 1))
            error.add_note(image.bug)
            raise error


@contextmanager
def _made(place: Path) -> Iterator[Path]:
    """Make the folder of a run; if nothing comes of it, it goes again."""
    from kpca_apps.denoise.batch.run import make_folder

    is_new = not os.path.lexists(place)
    out = make_folder(place)
    try:
        yield out
    finally:
        if is_new and not any(out.iterdir()):
            out.rmdir()


def run_trial(console: Console, context: typer.Context, batch: Batch, as_json: bool) -> None:
    """Denoise a crop of the first image at three strengths and write a page to choose by."""
    if is_given(context, "out"):
        with _made(batch.out) as out:
            _try_first(console, context, batch, out / PREVIEW, as_json)
    else:
        name = safe_stem(Path(batch.planned[0].name).stem)
        _try_first(console, context, batch, Path(f"kpca-preview-{name}"), as_json)


def _try_first(
    console: Console, context: typer.Context, batch: Batch, place: Path, as_json: bool
) -> None:
    from kpca_apps.cli.commands import reproduce
    from kpca_apps.denoise.batch.denoisers import GroupDenoiser
    from kpca_apps.denoise.batch.trial import try_strengths
    from kpca_apps.files.images.front_door import read_image
    from kpca_apps.report.denoising.page import render_trial
    from kpca_apps.report.denoising.text import in_units, trial_sentence, trial_title
    from kpca_apps.report.text import plain

    clock, first = Clock(), batch.planned[0]
    folder = OutputFolder(place, force=True)
    folder.check()
    if len(batch.planned) > 1:
        console.say(f"A preview of {first.name}, the first of {len(batch.planned)} images.")
    mode = chosen_mode(context, n_jobs=sum(_processors(context.params["jobs"], [1])) - 1)
    image = read_image(first.source, label=first.name)
    warm(console, context, (1, 1))
    clock.lap("starting")
    with console.stage("Trying three strengths"):
        if not isinstance(mode, GroupDenoiser):
            raise TypeError("a dictionary has no strengths to try")
        result = try_strengths(image, mode)
    clock.lap("denoising")
    result = replace(result, command=reproduce(context), versions=library_versions())
    with folder as building:
        write_result(building, result, [(REPORT_FILE, render_trial(result))], {}, clock)
    if result.established:
        for trial in result.trials:
            taken = in_units(result, trial.residual_sd)
            console.say(f"{trial_title(trial)}: takes out {taken}.")
    else:
        console.say(plain(trial_sentence(result)))
    print_result(console, folder.path, result, as_json)


def _processors(asked: int | None, samples: list[int]) -> tuple[int, int]:
    import joblib

    from kpca_apps.memory import available_bytes

    return share_processors(asked or joblib.cpu_count(), samples, available_bytes())


def warm(console: Console, context: typer.Context, jobs: tuple[int, int]) -> tuple[int, int]:
    """Compile the inner loops before there are workers that would all do it, and say so.

    Worker processes and threads for each come back. Where compiled code cannot be kept, every
    process would compile for itself: then one does all the work.
    """
    from kpca_apps.denoise.batch.denoisers import GroupDenoiser
    from kpca_apps.denoise.passes import KEPT_NOWHERE, is_kept, warm_up

    chosen = chosen_mode(context)
    is_linear = not isinstance(chosen, GroupDenoiser) or chosen.options.is_linear

    def announce() -> None:
        console.say("Compiling for this machine, once; about a minute.")

    if is_kept():
        warm_up(announce, is_linear=is_linear)
        return jobs
    console.say(f"Compiling; about a minute. {KEPT_NOWHERE}")
    warm_up(lambda: None, is_linear=is_linear)
    return 1, jobs[0] * jobs[1]


def count_samples(path: Path) -> int:
    """Return the number of values in an image file, by its header; else a guess by its size."""
    from PIL import Image

    if not path.is_file():
        # A pipe would never end; what it is, is said when its turn comes.
        return 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path) as image:
                pixels = image.width * image.height * getattr(image, "n_frames", 1)
                return pixels * min(len(image.getbands()), 3)
    except Exception:
        # Whatever is wrong with the file is said when its turn comes.
        return path.stat().st_size


def share_processors(jobs: int, samples: list[int], available: int) -> tuple[int, int]:
    """Return how many worker processes to take, and how many threads for each.

    `jobs` are processors to use, `samples` the values in each image, `available` bytes of memory.

    Examples
    --------
    >>> share_processors(8, [250_000] * 100, 64 * 10**9)
    (8, 1)
    >>> share_processors(8, [250_000] * 3, 64 * 10**9)
    (3, 2)
    >>> share_processors(8, [36_000_000] * 100, 8 * 10**9)
    (3, 2)
    >>> share_processors(8, [1_000] * 20, 64 * 10**9)
    (1, 8)
    """
    from kpca_apps.denoise.passes import STRIP_SAMPLES

    largest = max(samples, default=0)
    each = _BASE + _A_SAMPLE * largest + _A_SAMPLE_OF_STRIP * min(largest, STRIP_SAMPLES)
    worthwhile = 1 + sum(samples) // _START_UP
    workers = max(1, min(jobs, len(samples), worthwhile, available // each))
    return workers, max(1, jobs // workers)


def denoise_batch(
    console: Console,
    context: typer.Context,
    batch: Batch,
    samples: Sequence[int],
    jobs: tuple[int, int],
) -> DenoisingResult:
    """Denoise a batch, showing how far it is.

    `samples` are the values in each image, for the time that remains; `jobs` the worker processes,
    and the threads for each.
    """
    from kpca_apps.cli.commands import reproduce
    from kpca_apps.denoise.batch.run import run_batch

    mode, params = chosen_mode(context, n_jobs=jobs[1]), context.params
    n_done = 0
    weights = {one.name: size for one, size in zip(batch.planned, samples, strict=True)}
    try:
        with image_progress(console, weights) as (show, within):

            def progress(done: int, n_all: int, outcome: ImageOutcome) -> None:
                nonlocal n_done
                # Failures are tried again: they do not count as done by the next run either.
                n_done += outcome.status == "ok"
                show(outcome)

            result = run_batch(
                batch.inputs,
                batch.images,
                mode.settings,
                denoise=mode,
                format=params["format"],
                jobs=jobs[0],
                force=params["force"],
                reference=params["reference"],
                rivals=batch.rivals,
                progress=progress,
                within=within,
                passed_over=batch.out,
            )
    except KeyboardInterrupt:
        raise StoppedError(
            f"interrupted; run the same command again to go on: {n_done} of {len(batch.planned)} "
            "are done"
        ) from None
    return replace(
        result,
        notes=(*result.notes, *_unit_notes(mode.sigma, result), *_noise_notes(result)),
        settings=_settings(mode.settings, batch, params),
        command=reproduce(context),
        versions=library_versions(),
    )


def library_versions() -> dict[str, str]:
    """Return the versions that may change a pixel."""
    from importlib.metadata import version

    names = ("kpca-apps", "numpy", "numba", "scipy", "scikit-image", "pillow")
    return {name: version(name) for name in names}


def _unit_notes(sigma: float | None, result: DenoisingResult) -> tuple[str, ...]:
    """Say so once where a level was most likely meant as a share of the range of values."""
    import numpy as np

    from kpca_apps.denoise.denoiser import doubt_level

    for image in result.images:
        if image.status == "ok":
            dtype = np.dtype(image.dtype)
            if doubt := doubt_level(sigma, image.noise, dtype, image.data_range or 1.0):
                return (f"--{doubt}",)
    return ()


def _noise_notes(result: DenoisingResult) -> tuple[str, ...]:
    """Say once in how many images no noise was found, or the wrong kind of it taken out."""
    left = sum(not image.established for image in result.images)
    impulses = sum(image.impulses for image in result.images)
    notes = []
    if left:
        which = (
            "1 image was left as it was" if left == 1 else f"{left:,} images were left as they were"
        )
        notes.append(
            f"{which}: no noise could be established, for what was measured may be texture. Give "
            "the noise level by --sigma if there is noise, or denoise with a dictionary made from "
            "clean images of the kind (kpca denoise fit)."
        )
    if impulses:
        which = "1 image" if impulses == 1 else f"{impulses:,} images"
        notes.append(
            f"single pixels of {which} stand out as impulse noise (salt and pepper) makes them: "
            "try --noise impulse."
        )
    return tuple(notes)


def _with_dictionary(context: typer.Context, result: DenoisingResult) -> DenoisingResult:
    """Add what the dictionary is, if the batch was denoised with one."""
    model = context.params["model"]
    if model is None:
        return result
    from kpca_apps.denoise.batch.previews import view_dictionary
    from kpca_apps.denoise.dictionary import DictionaryDenoiser

    dictionary = DictionaryDenoiser.load(model)
    return replace(result, dictionary=view_dictionary(dictionary, model.name, result.images))


def _say_outcome(console: Console, batch: Batch, result: DenoisingResult) -> None:
    """Say in a few lines what became of a batch; failures were said as they happened."""
    from kpca_apps.report.denoising.text import headline, standing_sentences
    from kpca_apps.report.text import plain

    console.say(headline(result))
    for sentence in standing_sentences(result):
        console.say(plain(sentence))
    if result.mean_comparison is not None and (levels := _noise_range(result)):
        console.say(levels)
    n_camera = sum(image.noise == "camera" for image in result.images)
    if n_camera and result.settings.get("noise") == "auto":
        which = "it" if len(result.images) == 1 else f"{n_camera} of {len(result.images)}"
        console.say(f"Neighbouring pixels share their noise in {which}: taken as camera noise.")
    if result.n_resumed:
        were = "1 was" if result.n_resumed == 1 else f"{result.n_resumed:,} were"
        console.say(f"{were} done by an earlier run.")
    for note in result.notes[:MOST_FAILURES]:
        console.say(f"Note: {note}")
    if result.n_failed < len(result.images):
        console.say(f"The images are in {near(batch.images.resolve())}.")


def _noise_range(result: DenoisingResult) -> str:
    """Say how strong the noise taken out was, where the headline speaks of something else."""
    from kpca_apps.report.denoising.text import is_left

    shares = [
        100 * image.sigma / (1.0 if image.noise == "speckle" else image.data_range)
        for image in result.images
        if image.sigma is not None and image.data_range and not is_left(image)
    ]
    if not shares:
        return ""
    low, high = f"{min(shares):.3g}", f"{max(shares):.3g}"
    return f"The noise was {low if low == high else f'{low} to {high}'} % of the range of values."


def _settings(
    settings: Mapping[str, Any], batch: Batch, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings that the report shows."""
    shown = {**settings, "format": params["format"], "compare": list(batch.rivals)}
    if params["model"] is not None:
        shown |= {"model": params["model"].name, "model_sha256": settings["model"]}
    if params["reference"] is not None:
        shown["reference"] = params["reference"].name
    return shown


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line or in the config file."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
