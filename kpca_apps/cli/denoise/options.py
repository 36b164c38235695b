"""Options of ``kpca denoise``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kpca_apps.cli.options import Options, files, general, panel
from kpca_apps.denoise.options import NOISE_MODELS

if TYPE_CHECKING:
    NoiseName = str  # a checker of types cannot read choices from a table
else:
    NoiseName = Literal[("auto", *NOISE_MODELS)]
QualityName = Literal["fast", "balanced", "high"]
KernelName = Literal["auto", "linear", "rbf"]
ContentName = Literal["photo", "text"]
FormatName = Literal["same", "png", "tiff"]

_noise, _method, _examples = panel("Noise"), panel("Method"), panel("Examples")


class RunOptions(Options):
    """Options of ``kpca denoise run``."""

    sigma: str = _noise(
        "Standard deviation of the noise, in the units of the image (of 255 in 8 bits, of 65535 in "
        "16); for poisson where the image is brightest, for speckle relative to the intensity. "
        "auto measures it on each image.",
        "S",
        default="auto",
        common=True,
    )
    noise: NoiseName = _noise(
        "auto, "
        + ", ".join(
            f"{name} ({model.about})" if model.about else name
            for name, model in NOISE_MODELS.items()
        )
        + ". auto takes poisson where noise for sure grows with brightness or is shared by "
        "neighbours, with the law measured; camera for photographs as a camera saves them; else "
        "gaussian. It leaves alone what may be texture.",
        "KIND",
        default="auto",
        common=True,
    )
    data_range: float | None = _noise(
        "Largest possible value minus the smallest, where the type of the values does not say it: "
        "floats, 12 bits stored in 16. It clips nothing: floats are never clipped, integers only "
        "at the range of their type.",
        "R",
    )
    same_noise: bool = _noise(
        "Take the noise of all images of one kind (camera and ISO, where EXIF says so, else size "
        "and type) for the same: measured on each, the median of those in which it is there for "
        "sure.",
        default=False,
    )
    quality: QualityName = _method(
        "fast, balanced or high: three, four or five passes. balanced takes about 1.8 times as "
        "long as fast and gains about 0.1 dB; high takes 1.6 times as long as balanced and gains "
        "0.02 dB.",
        "PRESET",
        default="balanced",
        common=True,
    )
    luma: float = _method(
        "Multiply the noise level of the brightness by this: 1.3 smooths more, 0.8 less, 0 not at "
        "all.",
        "F",
        default=1.0,
    )
    chroma: float = _method("Multiply the noise level of the colours by this.", "F", default=1.0)
    strength: float = _method(
        "Blend of the image (0) and the denoised image (1): 0.7 leaves some grain.",
        "0..1",
        default=1.0,
        common=True,
    )
    content: ContentName = _method(
        "photo, or text for scanned pages and line drawings (smaller patches).",
        "KIND",
        default="photo",
        common=True,
    )
    kernel: KernelName = _method(
        "rbf: Mika's fixed-point pre-images on groups of similar patches. linear: the limit of a "
        "wide kernel, three times as fast. auto: rbf for text, where it is up to 1 dB better, and "
        "linear for photographs, where it is not.",
        "NAME",
        default="auto",
    )
    bandwidth: float | None = _method(
        "c of the RBF kernel exp(-|x - y|^2 / c), in mean squared distances between the patches "
        "of a group. Default: 4, wider where the noise is strong.",
        "C",
    )
    per_image: Path | None = _method(
        "Table of images with options of their own: column file, as --dry-run lists it, and any of "
        "strength, luma, chroma, sigma and noise; an empty cell is as for the others. --preview "
        "prints lines for it.",
        "FILE",
    )
    stack: bool = _method(
        "Denoise the pages of a TIFF file together, as one volume or film. The axes are taken from "
        "OME or ImageJ metadata; without them all pages are one stack, in their order. For "
        "gaussian and poisson noise.",
        default=False,
        common=True,
    )
    model: Path | None = _method(
        "Denoise with a dictionary that kpca denoise fit made from similar images. Photographs are "
        "better off without.",
        "FILE",
    )
    out: Path = files(
        "Folder to write: images/ and report/ in it.",
        "DIR",
        default=Path("kpca-denoised"),
        common=True,
    )
    format: FormatName = files(
        "same, png or tiff. JPEG is written at quality 95 with full chroma, which loses a little; "
        "png and tiff lose nothing.",
        "KIND",
        default="same",
    )
    reference: Path | None = files(
        "Folder of clean images of the same names: adds PSNR and SSIM to the report.",
        "DIR",
        common=True,
    )
    compare: bool = files(
        "Add scikit-image's non-local means and wavelet denoising to the report as baselines; "
        "needs --reference.",
        default=False,
    )
    force: bool = files("Overwrite files that stand in the way.", default=False)
    preview: bool = general(
        "Denoise one crop of the first image at three strengths and stop. The page is "
        "preview/report.html in --out, or kpca-preview-NAME/report.html here. The crop equals that "
        "of the whole denoised image; camera and impulse noise take the time of the whole for it.",
        default=False,
        common=True,
    )
    jobs: int | None = general(
        "Images denoised at once. Default: all processors. Results do not depend on it.",
        "N",
        common=True,
    )


class FitOptions(Options):
    """Options of ``kpca denoise fit``."""

    patch_size: int | None = _examples(
        "Learn from patches of N x N pixels. Default: from whole images, all of one size.", "N"
    )
    stride: int | None = _examples(
        "Distance between neighbouring patches when denoising. Default: a quarter of their width.",
        "N",
    )
    max_examples: int = _examples(
        "Examples kept, drawn at random from more. Twice as many take eight times as long.",
        "N",
        default=2000,
    )
    seed: int = _examples("Seed of all random draws.", "N", default=0)
    sigma: float | None = _noise(
        "Noise level to learn for, in the units of the images. Default: several, of which the "
        "nearest to an image's noise is used.",
        "S",
    )
    examples_sigma: float = _noise(
        "Noise level of the examples themselves, if no clean ones exist.", "S", default=0.0
    )
    components: int | None = _method(
        "Number of kernel components. Default: what denoises held-out examples best.", "Q"
    )
    bandwidth: float | None = _method(
        "c of the kernel exp(-|x - y|^2 / c), in squared units of the images. Default: what "
        "denoises held-out examples best.",
        "C",
    )
    force: bool = general("Overwrite the model file.", default=False)
    jobs: int | None = general("Number of threads. Results do not depend on it.", "N")
