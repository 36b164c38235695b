"""``kpca denoise``: run, fit, noise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kpca_apps.cli import denoise_options as o
from kpca_apps.cli import denoise_run as s
from kpca_apps.cli.console import Console
from kpca_apps.cli.shared import Config, Quiet, command_of

__all__ = ["app"]

SOME_FAILED = 5

app = typer.Typer(
    name="denoise",
    help="Take the noise out of images, one or a folder of them.",
    no_args_is_help=True,
)
_command = command_of(app)


@_command
def run(
    context: typer.Context,
    inputs: o.Inputs,
    sigma: o.Sigma = "auto",
    noise: o.Noise = "auto",
    data_range: o.DataRange = None,
    quality: o.Quality = "balanced",
    luma: o.Luma = 1.0,
    chroma: o.Chroma = 1.0,
    strength: o.Strength = 1.0,
    content: o.Content = "photo",
    kernel: o.Kernel = "auto",
    bandwidth: o.GroupBandwidth = None,
    model: o.Model = None,
    out: o.Out = Path("kpca-denoised"),
    format: o.Format = "same",
    reference: o.Reference = None,
    compare: o.Compare = False,
    force: o.Force = False,
    preview: o.Preview = False,
    jobs: o.Jobs = None,
    json: o.Json = False,
    quiet: Quiet = False,
    dry_run: o.DryRun = False,
    config: Config = None,
) -> None:
    """Denoise images into a folder of the same tree, with a report that shows before and after.

    Files keep their kind: type, size, format, colour profile, orientation tag, transparency. A
    batch that was stopped goes on where it was when the same command is run again.

    Half a minute for a megapixel and channel at --quality balanced on one processor.
    """
    console = Console(quiet)
    s.chosen_mode(context)
    batch = s.plan_batch(context.params)
    if dry_run:
        s.print_plan(console, batch, json)
        return
    if preview:
        s.run_trial(console, context, batch, json)
    elif s.run_whole(console, context, batch, json):
        raise typer.Exit(SOME_FAILED)


@_command
def fit(
    context: typer.Context,
    images: o.Examples,
    model: o.NewModel,
    patch_size: o.PatchSize = None,
    stride: o.Stride = None,
    max_examples: o.MaxExamples = 2000,
    seed: o.Seed = 0,
    sigma: o.FitSigma = None,
    examples_sigma: o.ExamplesSigma = 0.0,
    components: o.Components = None,
    bandwidth: o.Bandwidth = None,
    force: o.ForceModel = False,
    jobs: o.Threads = None,
    json: o.Json = False,
    quiet: Quiet = False,
    dry_run: o.DryRun = False,
    config: Config = None,
) -> None:
    """Learn from clean images what they have in common, to denoise others that resemble them.

    A dictionary is good at images of one kind: digits, glyphs, aligned faces. For photographs at
    large kpca denoise run without a model is better by decibels.

    The model file holds the examples: share it as you would share the images.
    """
    from kpca_apps.cli.denoise_fit import fit_dictionary

    fit_dictionary(Console(quiet), context.params)


@_command
def noise(
    context: typer.Context,
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGES", help="Image files, folders, patterns.", show_default=False
        ),
    ],
    data_range: o.DataRange = None,
    json: o.Json = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Measure the noise of images, without denoising them.

    The level is in the units of the image, and what kpca denoise run takes out unless it is told
    another. Marked "?", it may be texture rather than noise: the image would be left as it is.

    shared: neighbouring pixels, or the colours, share their noise, as in photographs from a camera;
    kpca denoise run takes it as --noise camera.

    impulses: single pixels stand out as impulse noise (salt and pepper) makes them, for which there
    is kpca denoise run --noise impulse.
    """
    from kpca_apps.cli.denoise_fit import print_noise

    if print_noise(Console(quiet), images, data_range, json):
        raise typer.Exit(SOME_FAILED)
