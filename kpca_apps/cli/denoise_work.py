"""The work of ``kpca denoise run``, from the folder it writes to to its last words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kpca_apps.cli.clock import REPORT_FILE, Clock
from kpca_apps.cli.console import Console
from kpca_apps.cli.denoise_progress import MOST_FAILURES, count_samples, share_processors
from kpca_apps.cli.denoise_runs import PREVIEW_FOLDER, REPORT_FOLDER, write_denoising, write_trial
from kpca_apps.cli.denoise_steps import Batch, chosen_mode, denoise_batch, is_given, warm
from kpca_apps.cli.shared import near
from kpca_apps.errors import InputError, RefusedError, StoppedError
from kpca_apps.files.names import one_line, safe_stem
from kpca_apps.files.output import OutputFolder

if TYPE_CHECKING:
    from kpca_apps.denoise.result import DenoisingResult

__all__ = ["run_trial", "run_whole"]


def run_whole(console: Console, context: typer.Context, batch: Batch, as_json: bool) -> int:
    """Denoise all images and write the report.

    Returns
    -------
    int
        How many images failed.
    """
    clock = Clock()
    with _made(batch.out) as out:
        folder = OutputFolder(out / REPORT_FOLDER, force=True)
        folder.check()
        _refuse_link(batch.images)
        samples = [count_samples(one.source) for one in batch.planned]
        jobs = _processors(context.params["jobs"], samples)
        if context.params["model"] is None:
            jobs = warm(console, jobs)
        clock.lap("starting")
        result = denoise_batch(console, context, batch, samples, jobs)
        clock.lap("denoising")
        clock.told |= {"workers": jobs[0], "threads of a worker": jobs[1]}
        result = _with_dictionary(context, result)
        try:
            write_denoising(result, folder, clock)
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
    _print_outcome(console, folder, result, as_json)
    _raise_bug(result)
    return result.n_failed


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


def _refuse_link(images: Path) -> None:
    """See that the results stay in the folder that was named for them."""
    if images.is_symlink():
        raise RefusedError(
            f"{one_line(str(images), 200)}: is a link, which leads results elsewhere; remove it, "
            "or choose another folder with --out"
        )


def run_trial(console: Console, context: typer.Context, batch: Batch, as_json: bool) -> None:
    """Denoise a crop of the first image at three strengths and write a page to choose by."""
    if is_given(context, "out"):
        with _made(batch.out) as out:
            _try_first(console, context, batch, out / PREVIEW_FOLDER, as_json)
    else:
        name = safe_stem(Path(batch.planned[0].name).stem)
        _try_first(console, context, batch, Path(f"kpca-preview-{name}"), as_json)


def _try_first(
    console: Console, context: typer.Context, batch: Batch, place: Path, as_json: bool
) -> None:
    from kpca_apps.cli.commands import reproduce_denoising
    from kpca_apps.cli.denoise_steps import library_versions
    from kpca_apps.denoise.batch.denoisers import GroupDenoiser
    from kpca_apps.denoise.batch.trial import try_strengths
    from kpca_apps.files.images import read_image
    from kpca_apps.report.denoising_text import in_units, trial_sentence, trial_title
    from kpca_apps.report.result_json import result_to_json
    from kpca_apps.report.text import plain

    clock, first = Clock(), batch.planned[0]
    folder = OutputFolder(place, force=True)
    folder.check()
    if len(batch.planned) > 1:
        console.say(f"A preview of {first.name}, the first of {len(batch.planned)} images.")
    mode = chosen_mode(context, n_jobs=sum(_processors(context.params["jobs"], [1])) - 1)
    image = read_image(first.source, label=first.name)
    warm(console, (1, 1))
    clock.lap("starting")
    with console.stage("Trying three strengths"):
        if not isinstance(mode, GroupDenoiser):
            raise TypeError("a dictionary has no strengths to try")
        result = try_strengths(image, mode)
    clock.lap("denoising")
    result = replace(result, command=reproduce_denoising(context), versions=library_versions())
    write_trial(result, folder, clock)
    if result.established:
        for trial in result.trials:
            taken = in_units(result, trial.residual_sd)
            console.say(f"{trial_title(trial)}: takes out {taken}.")
    else:
        console.say(plain(trial_sentence(result)))
    if as_json:
        console.data(result_to_json(result))
    else:
        console.data_path(near(folder.path) / REPORT_FILE)


def _processors(asked: int | None, samples: list[int]) -> tuple[int, int]:
    import joblib

    from kpca_apps.memory import available_bytes

    return share_processors(asked or joblib.cpu_count(), samples, available_bytes())


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
    from kpca_apps.report.denoising_text import headline, standing_sentences
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
    from kpca_apps.report.denoising_text import is_left

    shares = [
        100 * image.sigma / (1.0 if image.noise == "speckle" else image.data_range)
        for image in result.images
        if image.sigma is not None and image.data_range and not is_left(image)
    ]
    if not shares:
        return ""
    low, high = f"{min(shares):.3g}", f"{max(shares):.3g}"
    return f"The noise was {low if low == high else f'{low} to {high}'} % of the range of values."


def _print_outcome(
    console: Console, folder: OutputFolder, result: DenoisingResult, as_json: bool
) -> None:
    """Print the result as JSON, or the path of the report as the last line."""
    from kpca_apps.report.result_json import result_to_json

    if as_json:
        console.data(result_to_json(result))
    else:
        console.data_path(near(folder.path) / REPORT_FILE)
