"""``kpca denoise``: run, fit, noise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kpca_apps.cli.denoise.options import FitOptions, RunOptions
from kpca_apps.cli.options import command

SOME_FAILED = 5

app = typer.Typer(
    name="denoise",
    help="Take the noise out of images, one or a folder of them.",
    no_args_is_help=True,
)


@command(app)
def run(
    context: typer.Context,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGES",
            help="Images (PNG, TIFF, JPEG, raw files of cameras and more), folders with what is "
            "below them, quoted patterns.",
            show_default=False,
        ),
    ],
    options: RunOptions,
) -> None:
    """Denoise images into a folder of the same tree, with a report that shows before and after.

    Files keep their kind: type, size, format, colour profile, orientation tag, transparency. A
    batch that was stopped goes on where it was when the same command is run again.

    Raw files (CR2, NEF, ARW, DNG and more) are denoised before they are developed, and written as
    16-bit TIFF; they need the extra "raw".

    Half a minute for a megapixel and channel at --quality balanced on one processor.
    """
    from kpca_apps.cli.denoise.run import plan_batch, print_plan, run_trial, run_whole

    batch = plan_batch(context, inputs, options)
    if options.dry_run:
        print_plan(batch)
    elif options.preview:
        run_trial(batch)
    elif run_whole(batch):
        raise typer.Exit(SOME_FAILED)


@command(app)
def fit(
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="EXAMPLES",
            help="Images to learn from, folders of them, patterns.",
            show_default=False,
        ),
    ],
    model: Annotated[
        Path, typer.Option("--model", help="File to write; it holds the examples.", metavar="FILE")
    ],
    options: FitOptions,
) -> None:
    """Learn from clean images what they have in common, to denoise others that resemble them.

    A dictionary is good at images of one kind: digits, glyphs, aligned faces. For photographs at
    large kpca denoise run without a model is better by decibels.

    The model file holds the examples: share it as you would share the images.
    """
    from kpca_apps.cli.denoise.fit import fit_dictionary

    fit_dictionary(images, model, options)


@command(app, only="data_range json quiet config")
def noise(
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGES", help="Image files, folders, patterns.", show_default=False
        ),
    ],
    options: RunOptions,
) -> None:
    """Measure the noise of images, without denoising them.

    The level is in the units of the image, and what kpca denoise run takes out unless it is told
    another. Marked "?", it may be texture rather than noise: the image would be left as it is.

    Of a raw file it is that of the sensor, on a scale from 0 without light to 65,535 at white.

    shared: neighbouring pixels, or the colours, share their noise, as in photographs from a camera;
    kpca denoise run takes it as --noise camera.

    impulses: single pixels stand out as impulse noise (salt and pepper) makes them, for which there
    is kpca denoise run --noise impulse.
    """
    from kpca_apps.cli.denoise.fit import print_noise

    if print_noise(images, options):
        raise typer.Exit(SOME_FAILED)
