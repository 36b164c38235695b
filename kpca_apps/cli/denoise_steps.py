"""Steps of ``kpca denoise run``: what is asked for, what it is asked of, and the work."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kpca_apps.cli.console import Console
from kpca_apps.cli.denoise_options import check_jobs, check_range, parse_sigma
from kpca_apps.errors import ConfigError, RefusedError, StoppedError
from kpca_apps.files.names import one_line

if TYPE_CHECKING:
    from kpca_apps.denoise.batch.denoisers import ExampleDenoiser, GroupDenoiser
    from kpca_apps.denoise.batch.inputs import Planned
    from kpca_apps.denoise.result import DenoisingResult, ImageOutcome

__all__ = [
    "Batch",
    "chosen_mode",
    "denoise_batch",
    "is_given",
    "library_versions",
    "plan_batch",
    "print_plan",
    "warm",
]

IMAGES = "images"
# What a dictionary has no use for, and the kinds of noise it takes out.
_SETTINGS = ("quality", "kernel", "bandwidth", "content", "luma", "chroma", "strength")
_WITH_MODEL = ("auto", "gaussian", "impulse")


@dataclass(frozen=True)
class Batch:
    """The images of a run and where their results go.

    Attributes
    ----------
    inputs : tuple of str
        As given, without the output folder itself.
    planned : tuple of Planned
    out : Path
        The folder of the run, with the images and the report in it.
    format : str
    force : bool
    reference : Path or None
    rivals : tuple of str
    """

    inputs: tuple[str, ...]
    planned: tuple[Planned, ...]
    out: Path
    format: str
    force: bool
    reference: Path | None
    rivals: tuple[str, ...]

    @property
    def images(self) -> Path:
        """The folder of the denoised images."""
        return self.out / IMAGES


def chosen_mode(
    context: typer.Context, n_jobs: int | None = None
) -> GroupDenoiser | ExampleDenoiser:
    """Turn the options of a command into a way to denoise, or refuse them by name.

    Raises
    ------
    ConfigError
        If an option is out of its range, or means nothing with ``--model``.
    """
    params = {name: _plain(value) for name, value in context.params.items()}
    sigma, data_range = parse_sigma(params["sigma"]), params["data_range"]
    check_range(data_range)
    if params["model"] is None:
        from kpca_apps.denoise.batch.denoisers import GroupDenoiser
        from kpca_apps.denoise.passes import Options

        told = {name: params[name] for name in ("noise", *_SETTINGS)}
        return GroupDenoiser(Options(**told, n_jobs=n_jobs), sigma=sigma, data_range=data_range)
    for name in (*_SETTINGS, "preview"):
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
    """List the images of a run, and refuse what cannot be, before any work.

    Raises
    ------
    InputError
        If there is no image.
    ConfigError
        If options contradict each other.
    RefusedError
        If a result would take an input's place.
    """
    from kpca_apps.denoise.batch.inputs import plan_outputs

    if params["compare"] and params["reference"] is None:
        raise ConfigError("--compare needs clean images; name their folder by --reference")
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
    kind = str(_plain(params["format"]))
    planned, _ = plan_outputs(inputs, out / IMAGES, format=kind, passed_over=out)
    return Batch(
        inputs=tuple(inputs),
        planned=planned,
        out=out,
        format=kind,
        force=params["force"],
        reference=params["reference"],
        rivals=_rivals() if params["compare"] else (),
    )


def print_plan(console: Console, batch: Batch, as_json: bool) -> None:
    """Print which file becomes which, as data."""
    if as_json:
        rows = [
            {"name": one.name, "output": str(batch.images / one.output)} for one in batch.planned
        ]
        console.data_json(rows)
        return
    console.data_lines([f"{one.name} -> {batch.images / one.output}" for one in batch.planned])


def warm(console: Console, jobs: tuple[int, int]) -> tuple[int, int]:
    """Compile the inner loops before there are workers that would all do it, and say so.

    Returns
    -------
    tuple of int
        Worker processes and threads for each. Where compiled code cannot be kept, every process
        would compile for itself: then one does all the work.
    """
    from kpca_apps.denoise.passes import KEPT_NOWHERE, is_kept, warm_up

    if is_kept():
        warm_up(lambda: console.say("Compiling for this machine, once; about a minute."))
        return jobs
    console.say(f"Compiling; about a minute. {KEPT_NOWHERE}")
    warm_up(lambda: None)
    return 1, jobs[0] * jobs[1]


def denoise_batch(
    console: Console,
    context: typer.Context,
    batch: Batch,
    samples: Sequence[int],
    jobs: tuple[int, int],
) -> DenoisingResult:
    """Denoise a batch, showing how far it is.

    Parameters
    ----------
    console : Console
    context : typer.Context
        Of the command.
    batch : Batch
    samples : sequence of int
        Values in each image, for the time that remains.
    jobs : (int, int)
        Worker processes, and threads for each.

    Raises
    ------
    StoppedError
        If it is interrupted.
    """
    from kpca_apps.cli.commands import reproduce_denoising
    from kpca_apps.cli.denoise_progress import showing_progress
    from kpca_apps.denoise.batch.run import run_batch

    mode = chosen_mode(context, n_jobs=jobs[1])
    n_done = 0
    weights = {one.name: size for one, size in zip(batch.planned, samples, strict=True)}
    try:
        with showing_progress(console, weights) as (show, within):

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
                format=batch.format,
                jobs=jobs[0],
                force=batch.force,
                reference=batch.reference,
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
        notes=(
            *result.notes,
            *_unit_notes(mode.sigma, result),
            *_noise_notes(result),
        ),
        settings=_told(mode.settings, batch, context.params["model"]),
        command=reproduce_denoising(context),
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


def _told(settings: Mapping[str, Any], batch: Batch, model: Path | None) -> dict[str, Any]:
    told = {**settings, "format": batch.format, "compare": list(batch.rivals)}
    if model is not None:
        told |= {"model": model.name, "model_sha256": settings["model"]}
    if batch.reference is not None:
        told["reference"] = batch.reference.name
    return told


def _rivals() -> tuple[str, ...]:
    from kpca_apps.denoise.batch.comparing import RIVALS

    return tuple(RIVALS)


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line or in the config file."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value
