"""What the commands of ``kpca denoise`` can be told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kpca_apps.cli.options import Options, files, panel, talk
from kpca_apps.denoise.options import NOISE_MODELS

if TYPE_CHECKING:
    NoiseName = str  # a checker of types cannot read choices from a table
else:
    NoiseName = Literal[("auto", *NOISE_MODELS)]
QualityName = Literal["fast", "balanced", "high"]
KernelName = Literal["auto", "linear", "rbf"]
ContentName = Literal["photo", "text"]
FormatName = Literal["same", "png", "tiff"]

_noise, _how, _examples = panel("Noise"), panel("How"), panel("Examples")


class RunOptions(Options):
    """What ``kpca denoise run`` can be told."""

    sigma: str = _noise(
        "Noise level: the standard deviation of the noise, in the units of the images (of 255 for "
        "8 bits, of 65535 for 16); for poisson where the image is brightest, for speckle "
        "relative to the intensity. auto: measured on each image.",
        "S",
        default="auto",
    )
    noise: NoiseName = _noise(
        "; ".join(
            f"{name} ({model.about})" if model.about else name
            for name, model in NOISE_MODELS.items()
        )
        + "; auto: camera where neighbouring pixels share their noise, else gaussian.",
        "KIND",
        default="auto",
    )
    data_range: float | None = _noise(
        "Largest value an image can take less the smallest, where the type of its values does not "
        "say it: floats, 12 bits kept in 16. Nothing is clipped to it: floats are never clipped, "
        "integers only at the range of their type.",
        "R",
    )
    quality: QualityName = _how(
        "fast, balanced or high: three, four or five passes. Balanced takes about 1.8 times as "
        "long as fast, for some .1 dB; high 1.6 times as long as balanced, for .02 dB.",
        "PRESET",
        default="balanced",
    )
    luma: float = _how(
        "Smoothing of the brightness: a factor of its noise level. 1.3 smooths more, .8 less, 0 "
        "leaves it alone.",
        "F",
        default=1.0,
    )
    chroma: float = _how("Smoothing of the colours, likewise.", "F", default=1.0)
    strength: float = _how(
        "From 0 (the image as it is) to 1 (denoised): .7 leaves some grain.", "0..1", default=1.0
    )
    content: ContentName = _how(
        "photo or text. text takes smaller patches, for scanned pages and line drawings.",
        "WHAT",
        default="photo",
    )
    kernel: KernelName = _how(
        "rbf: Mika's fixed-point pre-images on groups of similar patches; linear: the limit to "
        "which that comes as the kernel widens, and three times as fast. auto: rbf for text, "
        "where it is better by up to 1 dB, linear for photographs, where it is not.",
        "NAME",
        default="auto",
    )
    bandwidth: float | None = _how(
        "c of the RBF kernel exp(-|x - y|^2 / c), in mean squared distances between the patches "
        "of a group. By default 4, wider where the noise is strong.",
        "C",
    )
    stack: bool = _how(
        "The pages of a TIFF file are one volume or film, and are denoised together: the axes are "
        "those of its OME or ImageJ metadata, or else all its pages in their order. For gaussian "
        "and poisson noise.",
        default=False,
    )
    model: Path | None = _how(
        "Denoise with a dictionary made by kpca denoise fit, for images that resemble its "
        "examples; photographs are better off without.",
        "FILE",
    )
    out: Path = files(
        "Folder to write: images/ and report/ in it.", "DIR", default=Path("kpca-denoised")
    )
    format: FormatName = files(
        "same, png or tiff. JPEG is written at quality 95 with full chroma, which loses a little; "
        "png does not.",
        "KIND",
        default="same",
    )
    reference: Path | None = files(
        "Folder of clean images of the same names: adds PSNR and SSIM.", "DIR"
    )
    compare: bool = files(
        "Set scikit-image's non-local means and wavelet denoisers beside ours; needs --reference.",
        default=False,
    )
    force: bool = files("Replace files that stand in the way.", default=False)
    preview: bool = talk(
        "Denoise one crop of the first image at three strengths and stop, to choose by; the page "
        "is preview/report.html in --out, or without that kpca-preview-NAME/report.html here. The "
        "crop is as in the whole image, to the last bit; only camera and impulse noise take the "
        "time of the whole for it.",
        default=False,
    )
    jobs: int | None = talk(
        "Images worked on at once; all processors by default. Changes no pixel.", "N"
    )


class FitOptions(Options):
    """What ``kpca denoise fit`` can be told."""

    patch_size: int | None = _examples(
        "Learn from patches so wide. Without it whole images are learned, all of one size.", "N"
    )
    stride: int | None = _examples(
        "Distance of neighbouring patches when denoising; by default a quarter of their width.", "N"
    )
    max_examples: int = _examples(
        "Examples kept, drawn at random from more. Twice as many take eight times as long.",
        "N",
        default=2000,
    )
    seed: int = _examples("Seed of every random draw.", "N", default=0)
    sigma: float | None = _noise(
        "Noise level to be ready for, in the units of the images. By default several, and the one "
        "nearest to an image's noise is used.",
        "S",
    )
    examples_sigma: float = _noise(
        "Noise level of the examples themselves, where there are no clean ones.", "S", default=0.0
    )
    components: int | None = _how(
        "Components projected on. By default what denoises held-out examples best.", "Q"
    )
    bandwidth: float | None = _how(
        "c of the kernel exp(-|x - y|^2 / c), in squared units of the images; by default likewise.",
        "C",
    )
    force: bool = talk("Replace a file of that name.", default=False)
    jobs: int | None = talk("Threads; changes no number.", "N")
