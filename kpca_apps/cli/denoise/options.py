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
from kpca_apps.names import one_line
from kpca_apps.options import LARGEST_SEED, MOST_JOBS, Options, check_limits, files, general, panel

if TYPE_CHECKING:
    NoiseName = str  # type checkers cannot evaluate the list of choices
else:
    NoiseName = Literal[("auto", *NOISE_MODELS)]
FormatName = Literal["same", "png", "tiff"]
ImageWorkers = Literal["processes", "dask"]
RawOut = Literal["tiff", "dng"]
METHOD = ("quality", "method", "bandwidth", "content", "luma", "chroma", "strength")
# Options that do not apply to a dictionary model, in addition to those in METHOD.
WITHOUT_MODEL = ("preview", "stack", "same_noise", "profile", "per_image", "mask", "region")

_noise, _method, _examples = panel("Noise"), panel("Method"), panel("Examples")


@contextmanager
def in_flags() -> Iterator[None]:
    """Convert errors about parameters to errors about options."""
    try:
        yield
    except ParameterError as error:
        raise OptionError(error.field, error.sentence) from None


class Checked(Options):
    """Options whose numbers are checked before any work."""

    def __post_init__(self) -> None:
        check_limits(self, type(self))


class RunOptions(Checked):
    """Options of ``kpca denoise run``."""

    sigma: str = _noise(
        "Noise level: auto measures it on each image. As a number: the standard deviation in the "
        "units of the image (of 255 in 8 bits, of 65535 in 16); for poisson where the image is "
        "brightest, for speckle relative to the brightness.",
        "S",
        default="auto",
    )
    noise: NoiseName = _noise(
        "auto, "
        + ", ".join(f"{name} ({model.about})" for name, model in NOISE_MODELS.items())
        + ". auto chooses poisson, with the measured law, if the noise clearly grows with "
        "brightness or is shared by neighbours; camera for photographs as a camera saves "
        "them; else gaussian. It leaves an image unchanged if the noise may be texture.",
        "KIND",
        default=Method.noise,
    )
    data_range: float | None = _noise(
        "Largest possible value minus the smallest, if the type of the values does not define "
        "it: floats, or 12 bits stored in 16. Results are not clipped to it: floats are never "
        "clipped, integers only to the range of their type.",
        "R",
        within=(LEAST_RANGE, LARGEST_RANGE),
    )
    same_noise: bool = _noise(
        "Use one noise level for all images of one kind (same camera and ISO by EXIF, else same "
        "size and type): the median of the levels measured on those where noise is certain.",
        default=False,
    )
    profile: str | None = _noise(
        "File written by kpca denoise noise --save: use its noise level for each kind of images. "
        "Images of other kinds are listed and not denoised.",
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
        "rbf: kernel PCA of groups of similar patches and fixed-point pre-images, in several "
        "passes with a Tikhonov filter; principal components where the patches of a group differ "
        "by little more than noise. mika: the same in one pass without the filter, as in 1998. "
        "linear: principal components everywhere; text and drawings lose 1 to 2 dB.",
        "NAME",
        default=Method.method,
    )
    bandwidth: float | None = _method(
        "c of the RBF kernel exp(-|x - y|^2 / c), in units of the squared distance between "
        "patches of pure noise. Default: 12, wider for faint or strong noise.",
        "C",
    )
    per_image: str | None = _method(
        "CSV table of options for single images: a column file, with names as --dry-run lists "
        "them, and any of strength, luma, chroma, sigma, noise and quality. An empty cell means "
        "the option of the command. --preview prints lines for it; a report with marks writes one.",
        "FILE",
    )
    stack: bool = _method(
        "Denoise the pages of a file together, as one volume or film. The axes are read from its "
        "metadata (OME or ImageJ in TIFF); without metadata all pages are one stack, in their "
        "order. For gaussian and poisson noise.",
        default=False,
    )
    mask: str | None = _method(
        "Image of the same size, 0 where pixels are to be left out: they are neither used nor "
        "changed. It has one page for all pages, or as many pages. JPEG is encoded again, which "
        "changes all pixels slightly; --format png does not. Pixels that are not a number or fully "
        "transparent are always left out.",
        "FILE",
    )
    region: str | None = _method(
        "Denoise this part of each image alone, and measure the noise there: column and row of "
        "its first pixel, counted from 0, width and height, in pixels as stored. The rest stays "
        "as it is, but JPEG is encoded again, which changes it slightly; --format png keeps it.",
        "X,Y,W,H",
    )
    model: str | None = _method(
        "Denoise with a dictionary that kpca denoise fit learned from similar images. For "
        "photographs, leave it out.",
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
        "Format for a camera's raw files: tiff, developed by LibRaw, or dng, the denoised "
        "mosaic, to develop like the original.",
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
    force: bool = files("Overwrite existing files.", default=False)
    preview: bool = general(
        "Denoise one crop of the first image at three strengths and stop. The page is "
        "preview/report.html in --out, or kpca-preview-NAME/report.html here. The crop equals "
        "that part of the whole denoised image; with camera and impulse noise it takes as long "
        "as the whole image.",
        default=False,
    )
    jobs: int | None = general(
        "Images denoised at once. Default: all processors. Results do not depend on it.",
        "N",
        within=(1, MOST_JOBS),
    )
    workers: ImageWorkers | None = general(
        "Executor: processes (default), or dask for a local cluster. Results are the same.", "KIND"
    )
    scheduler: str | None = general(
        "Address of a Dask scheduler, such as tcp://10.0.0.1:8786. Images are sent to its "
        "workers, and results are sent back; no shared folder is needed.",
        "ADDRESS",
    )

    @property
    def level(self) -> float | None:
        """The noise level, 0 or more; None for ``auto``."""
        if self.sigma.strip().lower() == "auto":
            return None
        with suppress(ValueError):
            if 0.0 <= (sigma := float(self.sigma)) < math.inf:
                return sigma
        what = one_line(self.sigma, 40)
        raise OptionError("sigma", f"is '{what}'; give a number of 0 or more, or auto")

    @property
    def part(self) -> Region | None:
        """The region as numbers; None for the whole image."""
        if self.region is None:
            return None
        try:
            return checked_region([int(number) for number in self.region.split(",")])
        except ValueError:
            what = one_line(self.region, 40)
            raise OptionError(
                "region",
                f"is '{what}'; give X,Y,W,H in whole pixels: its first column and row, "
                "counted from 0, then width and height of 1 or more",
            ) from None

    def refuse_contradictions(self, given: Collection[str]) -> None:
        """Raise OptionError for options that exclude each other."""
        if self.compare and self.reference is None:
            raise OptionError("compare", "needs clean images; name their folder with --reference")
        for is_set, others, rest in (
            (self.model, (*METHOD, *WITHOUT_MODEL), "--model"),
            (
                self.same_noise,
                ("stack", "preview", "sigma", "noise"),
                "--same-noise, which measures the noise of whole batches",
            ),
            (
                self.profile,
                ("same_noise", "preview", "sigma", "noise"),
                "--profile, which sets the noise",
            ),
        ):
            for name in others:
                if is_set and name in given:
                    raise OptionError(name, f"cannot be used with {rest}; leave one of them out")
        if self.model is not None:
            if self.noise not in ("auto", "gaussian", "impulse"):
                raise OptionError(
                    "noise",
                    f"{self.noise} cannot be used with --model; give gaussian or impulse, or leave "
                    "it out",
                )
            return
        if self.stack and self.noise not in STACK_NOISES:
            raise OptionError(
                "noise",
                f"{self.noise} cannot be used with --stack, which is for "
                f"{' and '.join(STACK_NOISES[1:])} noise; leave one out",
            )
        if self.region is not None and self.preview:
            raise OptionError("preview", "chooses its own part; leave out --region or --preview")
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
        "Largest number of examples, drawn at random. Twice as many take eight times as long.",
        "N",
        default=2000,
    )
    seed: int = _examples("Seed of all random draws.", "N", default=0, within=(0, LARGEST_SEED))
    sigma: float | None = _noise(
        "Noise level to learn for, in the units of the images. Default: several; the one nearest "
        "to the noise of an image is used.",
        "S",
    )
    examples_sigma: float = _noise(
        "Noise level of the examples themselves, if no clean ones exist.", "S", default=0.0
    )
    components: int | None = _method(
        "Number of kernel components. Default: the value that denoises held-out examples best.", "Q"
    )
    bandwidth: float | None = _method(
        "c of the kernel exp(-|x - y|^2 / c), in squared units of the images. Default: the value "
        "that denoises held-out examples best.",
        "C",
    )
    force: bool = general("Overwrite the model file.", default=False)
    jobs: int | None = general(
        "Number of threads. Default: one. Results do not depend on it.", "N", within=(1, MOST_JOBS)
    )
