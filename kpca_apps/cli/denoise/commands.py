"""``kpca denoise``: run, fit, noise."""

from __future__ import annotations

from typing import Annotated

import typer

from kpca_apps.cli.denoise.options import FitOptions, RunOptions
from kpca_apps.cli.options import SOME_FAILED, command, group

app = group("denoise", "Denoise images, one or a folder of them.")


@command(app)
def run(
    context: typer.Context,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGES...",
            help="Images (PNG, TIFF, JPEG, camera raw and more), folders with their subfolders, "
            "quoted patterns, or addresses of a bucket (s3://bucket/folder).",
        ),
    ],
    options: RunOptions,
) -> int:
    """Denoise images into a folder, with a report.

    Results keep type, size, format, colour profile, orientation and transparency. Run the same
    command again to resume a batch that was interrupted.

    Raw files (extra "raw") are denoised before development and written as TIFF, or as DNG with
    --raw-out dng. FITS, DICOM and such need the extra "lab", HEIC "heic". Denoising takes about ten
    seconds a megapixel and channel on one processor.
    """
    from kpca_apps.cli.denoise.run import plan_batch, print_plan, run_trial, run_whole

    batch = plan_batch(context, inputs, options)
    if options.dry_run:
        print_plan(batch)
    elif options.preview:
        run_trial(batch)
    elif run_whole(batch):
        return SOME_FAILED
    return 0


@command(app)
def fit(
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGES...", help="Images to learn from, folders or quoted patterns."
        ),
    ],
    model: Annotated[
        str, typer.Option("--model", help="File to write; it holds the examples.", metavar="FILE")
    ],
    options: FitOptions,
) -> None:
    """Learn a dictionary of small images of one kind.

    It is learned from clean images and denoises others like them: digits, glyphs, aligned faces.
    For photographs in general kpca denoise run without a model is better by several decibels.

    The model file holds the examples: share it as you would share the images.
    """
    from kpca_apps.cli.denoise.fit import fit_dictionary

    fit_dictionary(images, model, options)


@command(app, only="data_range force json quiet config")
def noise(
    images: Annotated[
        list[str], typer.Argument(metavar="IMAGES...", help="Images, folders or quoted patterns.")
    ],
    options: RunOptions,
    save: Annotated[
        str | None,
        typer.Option(
            "--save",
            help="Save the typical noise of each kind of images (same camera and ISO by EXIF, "
            "else same size and type) to a file for kpca denoise run --profile.",
            metavar="FILE",
        ),
    ] = None,
) -> int:
    """Measure the noise of images, without denoising them.

    Prints the level in the units of the image, as kpca denoise run would use it. A level marked "?"
    may be texture: kpca denoise run would leave that image unchanged, and the option that removes
    it is named. The level of a raw file is that of the sensor, on a scale from 0 (no light) to
    65,535 (white).

    If the noise follows a law of brightness, a second table shows it. It has the variance at
    brightness x in the units of the image, its range in nine of ten such pictures, and whether
    neighbouring pixels share the noise.

    shared: neighbouring pixels or the colours share their noise, as in photographs saved by a
    camera; it is treated as --noise camera.

    impulses: single pixels stand out, as in salt-and-pepper noise; use --noise impulse.
    """
    from kpca_apps.cli.denoise.fit import print_noise

    return SOME_FAILED if print_noise(images, save, options) else 0
