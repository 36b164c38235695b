"""The options of ``kpca denoise``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kpca_apps.cli.shared import FILES, TALK, option
from kpca_apps.denoise.options import NOISE_MODELS
from kpca_apps.errors import ConfigError
from kpca_apps.files.names import one_line

__all__ = ["check_jobs", "check_range", "parse_sigma"]

MOST_JOBS = 1000


if TYPE_CHECKING:
    NoiseName = str  # a checker of types cannot read choices from a table
else:
    NoiseName = Literal[("auto", *NOISE_MODELS)]
QualityName = Literal["fast", "balanced", "high"]
KernelName = Literal["auto", "linear", "rbf"]
ContentName = Literal["photo", "text"]
FormatName = Literal["same", "png", "tiff"]

_NOISE = "Noise"
_HOW = "How"
_EXAMPLES = "Examples"

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="IMAGES",
        help="Images (PNG, TIFF, JPEG and more), folders with what is below them, quoted patterns.",
        show_default=False,
    ),
]
Examples = Annotated[
    list[str],
    typer.Argument(
        metavar="EXAMPLES", help="Images to learn from, folders of them, patterns.",
        show_default=False,
    ),
]  # fmt: skip
Sigma = Annotated[
    str,
    option(
        "--sigma",
        help="Noise level: the standard deviation of the noise, in the units of the images (of 255 "
        "for 8 bits, of 65535 for 16); for poisson where the image is brightest, for speckle "
        "relative to the intensity. auto: measured on each image.",
        panel=_NOISE,
        metavar="S",
    ),
]
Noise = Annotated[
    NoiseName,
    option(
        "--noise",
        help="; ".join(
            f"{name} ({model.about})" if model.about else name
            for name, model in NOISE_MODELS.items()
        )
        + "; auto: camera where neighbouring pixels share their noise, else gaussian.",
        panel=_NOISE,
        metavar="KIND",
    ),
]
DataRange = Annotated[
    float | None,
    option(
        "--data-range",
        help="Largest value an image can take less the smallest, where the type of its values "
        "does not say it: floats, 12 bits kept in 16.",
        panel=_NOISE,
        metavar="R",
    ),
]
Quality = Annotated[
    QualityName,
    option(
        "--quality",
        help="fast, balanced or high: three, four or five passes. Balanced takes about 1.8 times "
        "as long as fast, for some .1 dB; high 1.6 times as long as balanced, for .02 dB.",
        panel=_HOW,
        metavar="PRESET",
    ),
]
Kernel = Annotated[
    KernelName,
    option(
        "--kernel",
        help="rbf: Mika's fixed-point pre-images on groups of similar patches; linear: the limit "
        "to which that comes as the kernel widens, and three times as fast. auto: rbf for text, "
        "where it is better by up to 1 dB, linear for photographs, where it is not.",
        panel=_HOW,
        metavar="NAME",
    ),
]
GroupBandwidth = Annotated[
    float | None,
    option(
        "--bandwidth",
        help="c of the RBF kernel exp(-|x - y|^2 / c), in mean squared distances between the "
        "patches of a group. By default 4, wider where the noise is strong.",
        panel=_HOW,
        metavar="C",
    ),
]
Content = Annotated[
    ContentName,
    option(
        "--content",
        help="photo or text. text takes smaller patches, for scanned pages and line drawings.",
        panel=_HOW,
        metavar="WHAT",
    ),
]
Luma = Annotated[
    float,
    option(
        "--luma",
        help="Smoothing of the brightness: a factor of its noise level. 1.3 smooths more, .8 less, "
        "0 leaves it alone.",
        panel=_HOW,
        metavar="F",
    ),
]
Chroma = Annotated[
    float,
    option(
        "--chroma",
        help="Smoothing of the colours, likewise.",
        panel=_HOW,
        metavar="F",
    ),
]
Strength = Annotated[
    float,
    option(
        "--strength",
        help="From 0 (the image as it is) to 1 (denoised): .7 leaves some grain.",
        panel=_HOW,
        metavar="0..1",
    ),
]
Model = Annotated[
    Path | None,
    option(
        "--model",
        help="Denoise with a dictionary made by kpca denoise fit, for images that resemble its "
        "examples; photographs are better off without.",
        panel=_HOW,
        metavar="FILE",
    ),
]
Reference = Annotated[
    Path | None,
    option(
        "--reference",
        help="Folder of clean images of the same names: adds PSNR and SSIM.",
        panel=FILES,
        metavar="DIR",
    ),
]
Compare = Annotated[
    bool,
    option(
        "--compare",
        help="Set scikit-image's non-local means and wavelet denoisers beside ours; needs "
        "--reference.",
        panel=FILES,
    ),
]
Format = Annotated[
    FormatName,
    option(
        "--format",
        help="same, png or tiff. JPEG is written at quality 95 with full chroma, which loses a "
        "little; png does not.",
        panel=FILES,
        metavar="KIND",
    ),
]
Out = Annotated[
    Path,
    option(
        "--out",
        help="Folder to write: images/ and report/ in it.",
        panel=FILES,
        metavar="DIR",
    ),
]
Force = Annotated[bool, option("--force", help="Replace files that stand in the way.", panel=FILES)]
Preview = Annotated[
    bool,
    option(
        "--preview",
        help="Denoise one crop of the first image at three strengths and stop, to choose by; the "
        "page is preview/report.html in --out, or without that kpca-preview-NAME/report.html here.",
        panel=TALK,
    ),
]
Jobs = Annotated[
    int | None,
    option(
        "--jobs",
        help="Images worked on at once; all processors by default. Changes no pixel.",
        panel=TALK,
        metavar="N",
    ),
]
Json = Annotated[bool, option("--json", help="Print the result as JSON on stdout.", panel=TALK)]
DryRun = Annotated[bool, option("--dry-run", help="Print what would be done and stop.", panel=TALK)]


NewModel = Annotated[
    Path, typer.Option("--model", help="File to write; it holds the examples.", metavar="FILE")
]
PatchSize = Annotated[
    int | None,
    option(
        "--patch-size",
        help="Learn from patches so wide. Without it whole images are learned, all of one size.",
        panel=_EXAMPLES,
        metavar="N",
    ),
]
Stride = Annotated[
    int | None,
    option(
        "--stride",
        help="Distance of neighbouring patches when denoising; by default a quarter of their "
        "width.",
        panel=_EXAMPLES,
        metavar="N",
    ),
]
MaxExamples = Annotated[
    int,
    option(
        "--max-examples",
        help="Examples kept, drawn at random from more. Twice as many take eight times as long.",
        panel=_EXAMPLES,
        metavar="N",
    ),
]
Seed = Annotated[
    int, option("--seed", help="Seed of every random draw.", panel=_EXAMPLES, metavar="N")
]
Components = Annotated[
    int | None,
    option(
        "--components",
        help="Components projected on. By default what denoises held-out examples best.",
        panel=_HOW,
        metavar="Q",
    ),
]
Bandwidth = Annotated[
    float | None,
    option(
        "--bandwidth",
        help="c of the kernel exp(-|x - y|^2 / c), in squared units of the images; by "
        "default likewise.",
        panel=_HOW,
        metavar="C",
    ),
]
FitSigma = Annotated[
    float | None,
    option(
        "--sigma",
        help="Noise level to be ready for, in the units of the images. By default several, and "
        "the one nearest to an image's noise is used.",
        panel=_NOISE,
        metavar="S",
    ),
]
ExamplesSigma = Annotated[
    float,
    option(
        "--examples-sigma",
        help="Noise level of the examples themselves, where there are no clean ones.",
        panel=_NOISE,
        metavar="S",
    ),
]
Threads = Annotated[
    int | None, option("--jobs", help="Threads; changes no number.", panel=TALK, metavar="N")
]
ForceModel = Annotated[bool, option("--force", help="Replace a file of that name.", panel=TALK)]


def parse_sigma(text: str) -> float | None:
    """Read a noise level of 0 or more as it was typed; None for ``auto``.

    Examples
    --------
    >>> parse_sigma("12.5"), parse_sigma("auto")
    (12.5, None)
    """
    if text.strip().lower() == "auto":
        return None
    try:
        sigma = float(text)
    except ValueError:
        sigma = float("nan")
    if not 0.0 <= sigma < float("inf"):
        raise ConfigError(f"--sigma is '{one_line(text, 40)}'; give a number of 0 or more, or auto")
    return sigma


def check_range(data_range: float | None) -> None:
    """Refuse a data range that cannot be computed with."""
    from kpca_apps.denoise.image import LARGEST_RANGE, LEAST_RANGE

    if data_range is not None and not LEAST_RANGE <= data_range <= LARGEST_RANGE:
        raise ConfigError(f"--data-range is {data_range:g}; give a finite number above 0")


def check_jobs(jobs: int | None) -> None:
    """Refuse a number of workers or threads that cannot be."""
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise ConfigError(f"--jobs is {jobs:.6g}; give a number from 1 to {MOST_JOBS}")
