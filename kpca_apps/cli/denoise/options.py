"""Options of ``kpca denoise``."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

from kpca_apps.denoise.options import (
    LARGEST_RANGE,
    LEAST_RANGE,
    NOISE_MODELS,
    STACK_NOISES,
    Content,
    MethodName,
    Quality,
)
from kpca_apps.denoise.options import Options as Method
from kpca_apps.denoise.regions import Region, checked_region
from kpca_apps.errors import OptionError, ParameterError
from kpca_apps.names import one_line, shown
from kpca_apps.options import LARGEST_SEED, MOST_JOBS, Options, files, general, is_number, panel

if TYPE_CHECKING:
    NoiseName = str  # a checker of types cannot read choices from a table
else:
    NoiseName = Literal[("auto", *NOISE_MODELS)]
FormatName = Literal["same", "png", "tiff"]
ImageWorkers = Literal["processes", "dask"]
RawOut = Literal["tiff", "dng"]
METHOD = ("quality", "method", "bandwidth", "content", "luma", "chroma", "strength")
# Beside those, what a dictionary does not take.
WITHOUT_MODEL = ("preview", "stack", "same_noise", "profile", "per_image", "mask", "region")

_noise, _method, _examples = panel("Noise"), panel("Method"), panel("Examples")


@contextmanager
def in_flags() -> Iterator[None]:
    """Spell a parameter of a method that is refused as the commands do."""
    try:
        yield
    except ParameterError as error:
        raise OptionError(error.field, error.sentence) from None


class Checked(Options):
    """Numbers are refused where they make no sense, before any work."""

    def __post_init__(self) -> None:
        data_range, jobs, seed = (getattr(self, n, None) for n in ("data_range", "jobs", "seed"))
        for name, value, low, high, what in (
            ("data_range", data_range, LEAST_RANGE, LARGEST_RANGE, "finite number above 0"),
            ("jobs", jobs, 1, MOST_JOBS, f"number from 1 to {MOST_JOBS}"),
            ("seed", seed, 0, LARGEST_SEED, f"whole number from 0 to {LARGEST_SEED}"),
        ):
            if value is not None and not is_number(value, low, high):
                raise OptionError(name, f"is {shown(value)}; give a {what}")


class RunOptions(Checked):
    """Options of ``kpca denoise run``."""

    sigma: str = _noise(
        "Standard deviation of the noise, in the units of the image (of 255 in 8 bits, of 65535 in "
        "16); for poisson where the image is brightest, for speckle relative to the intensity. "
        "auto measures it on each image.",
        "S",
        default="auto",
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
        default=Method.noise,
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
    profile: str | None = _noise(
        "Take the noise of images of each kind from a file that kpca denoise noise --save wrote. "
        "Images of other kinds are not denoised, and listed.",
        "FILE",
    )
    quality: Quality = _method(
        "draft, fast, balanced or high: fast takes 2 to 3 times as long as draft and gains about "
        "0.1 dB, balanced 1.8 times as long as fast for 0.1 dB, high 1.6 times as long for 0.02.",
        "PRESET",
        default=Method.quality,
    )
    luma: float = _method(
        "Multiply the noise level of the brightness by this: 1.3 smooths more, 0.8 less, 0 not at "
        "all.",
        "F",
        default=Method.luma,
    )
    chroma: float = _method(
        "Multiply the noise level of the colours by this.", "F", default=Method.chroma
    )
    strength: float = _method(
        "Blend of the image (0) and the denoised image (1): 0.7 leaves some grain.",
        "0..1",
        default=Method.strength,
    )
    content: Content = _method(
        "photo, or text for scanned pages and line drawings (smaller patches).",
        "KIND",
        default=Method.content,
    )
    method: MethodName = _method(
        "mika: kernel PCA of groups of similar patches and fixed-point pre-images, once, as in "
        "1998; principal components where the patches of a group differ little beyond their noise. "
        "rbf: the same in several passes, with a Tikhonov filter. linear: principal components "
        "everywhere; text and drawings lose 1 to 2 dB.",
        "NAME",
        default=Method.method,
    )
    bandwidth: float | None = _method(
        "c of the RBF kernel exp(-|x - y|^2 / c), in squared distances between patches of noise "
        "alone. Default: 12, wider where the noise is faint or strong.",
        "C",
    )
    per_image: str | None = _method(
        "Table of images with options of their own: column file, as --dry-run lists it, and any of "
        "strength, luma, chroma, sigma, noise and quality; an empty cell is as for the others. "
        "--preview prints lines for it, and marks in a report make it.",
        "FILE",
    )
    stack: bool = _method(
        "Denoise the pages of a file together, as one volume or film. The axes are taken from its "
        "metadata (OME or ImageJ in TIFF); without them all pages are one stack, in their order. "
        "For gaussian and poisson noise.",
        default=False,
    )
    mask: str | None = _method(
        "Image of the same size that says where there are data: anything but 0 (one page for all "
        "pages, or as many). Other pixels are neither used nor changed (of JPEG, which is encoded "
        "anew, nearly: --format png keeps them). Pixels that are not a number, or wholly "
        "transparent, never are.",
        "FILE",
    )
    region: str | None = _method(
        "Denoise this part of each image alone, and measure the noise in it: column and row of its "
        "first pixel, from 0, width and height, in pixels as they are stored. The rest stays as it "
        "is; of JPEG, which is encoded anew, nearly: --format png keeps it.",
        "X,Y,W,H",
    )
    model: str | None = _method(
        "Denoise with a dictionary that kpca denoise fit made from similar images. Photographs are "
        "better off without.",
        "FILE",
    )
    out: str = files(
        "Folder to write, here or in a bucket (s3://bucket/folder): images/ and report/ in it.",
        "DIR",
        default="kpca-denoised",
    )
    format: FormatName = files(
        "same, png or tiff. JPEG is written at quality 95 with full chroma, which loses a little; "
        "png and tiff lose nothing.",
        "KIND",
        default="same",
    )
    raw_out: RawOut = files(
        "What becomes of a camera's raw files: tiff, developed by LibRaw, or dng, their mosaic "
        "without noise, to be developed like the original.",
        "KIND",
        default="tiff",
    )
    reference: str | None = files(
        "Folder of clean images of the same names: adds PSNR and SSIM to the report.", "DIR"
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
    )
    jobs: int | None = general(
        "Images denoised at once. Default: all processors. Results do not depend on it.", "N"
    )
    workers: ImageWorkers | None = general(
        "Executor: processes, or dask for a local cluster. Results do not depend on it.", "KIND"
    )
    scheduler: str | None = general(
        "Address of a Dask scheduler, such as tcp://10.0.0.1:8786. Images are sent to its workers, "
        "and results back: they share no folder.",
        "ADDRESS",
    )

    @property
    def level(self) -> float | None:
        """The noise level, of 0 or more, as a number; None for ``auto``."""
        if self.sigma.strip().lower() == "auto":
            return None
        with suppress(ValueError):
            if 0.0 <= (sigma := float(self.sigma)) < math.inf:
                return sigma
        what = one_line(self.sigma, 40)
        raise OptionError("sigma", f"is '{what}'; give a number of 0 or more, or auto")

    @property
    def part(self) -> Region | None:
        """The region, as numbers; None for all of an image."""
        if self.region is None:
            return None
        try:
            return checked_region([int(number) for number in self.region.split(",")])
        except ValueError:
            what = one_line(self.region, 40)
            raise OptionError(
                "region",
                f"is '{what}'; give four whole numbers, X,Y,W,H: column and row of its first "
                "pixel, from 0, width and height",
            ) from None

    def refuse_contradictions(self, given: Collection[str]) -> None:
        """Refuse options that exclude each other; those `given` may have their default value."""
        if self.compare and self.reference is None:
            raise OptionError("compare", "needs clean images; name their folder by --reference")
        for is_asked, others, rest in (
            (self.model, (*METHOD, *WITHOUT_MODEL), "--model"),
            (
                self.same_noise,
                ("stack", "preview", "sigma", "noise"),
                "--same-noise, which measures the noise of whole batches",
            ),
            (
                self.profile,
                ("same_noise", "preview", "sigma", "noise"),
                "--profile, which has the noise",
            ),
        ):
            for name in others:
                if is_asked and name in given:
                    raise OptionError(name, f"cannot be used with {rest}; leave one of them out")
        if self.model is not None:
            if self.noise not in ("auto", "gaussian", "impulse"):
                raise OptionError(
                    "noise",
                    f"{self.noise} cannot be used with --model: a dictionary removes gaussian and "
                    "impulse noise",
                )
            return
        if self.stack and self.noise not in STACK_NOISES:
            raise OptionError(
                "noise",
                f"{self.noise} cannot be used with --stack, which is for "
                f"{' and '.join(STACK_NOISES[1:])} noise; leave one out",
            )
        if self.region is not None and self.preview:
            raise OptionError("preview", "chooses a part itself; leave out --region, or this")
        if self.stack and self.preview:
            raise OptionError(
                "preview",
                "shows one image denoised on its own, and --stack denoises pages together; leave "
                "one out",
            )


class FitOptions(Checked):
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
