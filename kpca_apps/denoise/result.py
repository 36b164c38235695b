"""What denoising a batch of images gave: plain, frozen result objects.

They are all a report, a JSON file or a terminal summary may look at. They hold numbers, text and
small encoded pictures, never arrays of pixels, so that every view of a result is a pure function
of it. Fields left out of comparison (times, what was resumed) differ between runs that give the
same images; they have no place in a file that is to be the same for any number of workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Comparison",
    "ComponentView",
    "Crop",
    "DenoisingResult",
    "DictionaryView",
    "ImageOutcome",
    "ImagePreviews",
    "Preview",
    "Quality",
    "Residual",
    "Trial",
    "TrialResult",
    "mean_comparison",
]


@dataclass(frozen=True)
class Preview:
    """A small picture, encoded as ``"image/png"`` or ``"image/jpeg"``."""

    media_type: str
    data: bytes = field(repr=False)
    width: int
    height: int


@dataclass(frozen=True)
class Crop:
    """A piece of an image at its full size: before, after, and of the clean image if there is one.

    It is where the denoised image has most detail, or is flat; left and top as it is viewed.
    """

    kind: str
    left: int
    top: int
    before: Preview
    after: Preview
    reference: Preview | None = None


@dataclass(frozen=True)
class ImagePreviews:
    """Pictures of one image for a report, turned as its orientation tag says.

    The whole has at most as many pixels as 560 x 560, and is at most 1100 wide and high; the thumb
    120; crops 128. The residual is noisy minus denoised on middle grey, black and white at three
    deviations. Values of 16 bits and floats are stretched for showing.
    """

    before: Preview
    after: Preview
    thumb: Preview
    residual: Preview
    crops: tuple[Crop, ...]
    stretched: bool


@dataclass(frozen=True)
class Quality:
    """Likeness to a clean image: PSNR in decibels, infinite for equal images, and SSIM.

    Structural similarity (Wang et al. 2004) is at most 1, and None for images below 11 pixels.
    """

    psnr: float
    ssim: float | None


@dataclass(frozen=True)
class Comparison:
    """Likeness to the clean image before and after, and of what baselines make of it, by name."""

    noisy: Quality
    denoised: Quality
    rivals: Mapping[str, Quality] = field(default_factory=dict)


@dataclass(frozen=True)
class Residual:
    """What was taken out of the image ("method noise"): it should look like noise.

    Its deviation in the units of the image, over all colours; the correlation of neighbouring
    pixels where the image has most detail, and least; and whether the first exceeds the second by
    so much that detail must have been taken out too.
    """

    sd: float
    edge_correlation: float
    flat_correlation: float
    structured: bool


@dataclass(frozen=True)
class ImageOutcome:
    """What became of one image.

    Attributes
    ----------
    name : str
        The input, relative to the folder given, with ``/`` between folders.
    status : {"ok", "failed"}
    reason : str
        Why it failed, in one line; empty if it did not.
    output : str
        The file written, relative to the output folder; empty if none was.
    format : str
        Of the output: ``"png"``, ``"tiff"`` or ``"jpeg"``; empty if it failed.
    shape : tuple of int
        Of the first page: (h, w) or (h, w, channels).
    dtype : str
    n_pages : int
    orientation : int
        How the image is turned for viewing, 1 (not at all) to 8.
    noise : str
        The noise model used.
    sigma : float or None
        Noise level used, in the units of the first page: root of the mean square over the pages
        of its type.
    page_sigmas, page_ranges : tuple of float
        Level and range of values of each page, in its own units.
    estimated, correlated : bool
        Whether the level was estimated; whether neighbouring pixels share their noise.
    data_range : float or None
        Range of values assumed, the widest of those pages.
    established : bool
        Whether there is noise for sure; where not, the image was left as it was.
    impulses : bool
        Whether single pixels stand out, though the noise was not taken for impulses.
    residual : Residual or None
        Of the first page.
    comparison : Comparison or None
        Means over pages; None without a reference.
    notes : tuple of str
        Whole sentences on what is other than in the input.
    previews : ImagePreviews or None
        Of the first page.
    seconds : float
        Time taken by denoising. Not compared.
    resumed : bool
        Whether an earlier run had denoised it. Not compared.
    bug : str
        Where a bug of this program ended the work on it, as a traceback; else empty. Not compared.
    """

    name: str
    status: str
    reason: str = ""
    output: str = ""
    format: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    n_pages: int = 0
    orientation: int = 1
    noise: str = ""
    sigma: float | None = None
    page_sigmas: tuple[float, ...] = ()
    page_ranges: tuple[float, ...] = ()
    estimated: bool = False
    correlated: bool = False
    data_range: float | None = None
    established: bool = True
    impulses: bool = False
    residual: Residual | None = None
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()
    previews: ImagePreviews | None = field(default=None, repr=False)
    seconds: float = field(default=0.0, compare=False)
    resumed: bool = field(default=False, compare=False)
    bug: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True)
class ComponentView:
    """A leading component of a dictionary: pre-images two deviations to either side of the mean.

    Its number from 1, and its share of the variance in feature space.
    """

    number: int
    share: float
    below: Preview
    above: Preview


@dataclass(frozen=True)
class DictionaryView:
    """The dictionary a batch was denoised with, at the noise level met.

    The shape is that of an example; `bandwidth` is c of exp(-|x - y|^2 / c) where the range is 1;
    `rule` says in a whole sentence how it and the number of components were chosen.
    """

    name: str
    n_examples: int
    patch_size: int | None
    shape: tuple[int, ...]
    n_components: int
    bandwidth: float
    rule: str
    components: tuple[ComponentView, ...]


@dataclass(frozen=True)
class DenoisingResult:
    """What became of a batch.

    Attributes
    ----------
    images : tuple of ImageOutcome
        In the order of their names.
    settings : mapping of str to object
        What was asked for.
    notes : tuple of str
        Whole sentences on the batch.
    dictionary : DictionaryView or None
        What was used instead of the image's own patches.
    command : str
        The command line that gives the same result.
    versions : mapping of str to str
        Of this package and those it stands on.
    seconds : float
        From start to end. Not compared.
    """

    images: tuple[ImageOutcome, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    dictionary: DictionaryView | None = None
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = field(default=0.0, compare=False)

    @property
    def failed(self) -> tuple[ImageOutcome, ...]:
        """The images that could not be denoised."""
        return tuple(image for image in self.images if image.status == "failed")

    @property
    def n_failed(self) -> int:
        """Number of images that could not be denoised."""
        return len(self.failed)

    @property
    def n_resumed(self) -> int:
        """Number of images an earlier run had denoised."""
        return sum(image.resumed for image in self.images)

    @property
    def mean_comparison(self) -> Comparison | None:
        """Means over the images with a reference, each method over the same images.

        Infinite ratios, of images equal to their reference, make an infinite mean.
        """
        found = [image.comparison for image in self.images if image.comparison is not None]
        return mean_comparison(found) if found else None


@dataclass(frozen=True)
class Trial:
    """One strength tried on a crop, and the option that gives it, such as ``--strength 0.5``.

    The deviation of what was taken out is in the units of the image.
    """

    strength: float
    option: str
    after: Preview
    residual: Preview
    residual_sd: float


@dataclass(frozen=True)
class TrialResult:
    """A crop of one image denoised at several strengths, from weak to strong, to choose by.

    The crop's place is in the image as it is viewed; `command` denoises the whole with the middle
    trial; the rest is as in `ImageOutcome`.
    """

    name: str
    left: int
    top: int
    width: int
    height: int
    noise: str
    sigma: float
    estimated: bool
    correlated: bool
    data_range: float
    before: Preview
    trials: tuple[Trial, ...]
    command: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    established: bool = True


def mean_comparison(found: Sequence[Comparison]) -> Comparison:
    """Return the means over comparisons, of the baselines that all of them have."""
    rivals = [name for name in found[0].rivals if all(name in one.rivals for one in found)]
    return Comparison(
        noisy=_mean_quality([one.noisy for one in found]),
        denoised=_mean_quality([one.denoised for one in found]),
        rivals={name: _mean_quality([one.rivals[name] for one in found]) for name in rivals},
    )


def _mean_quality(values: Sequence[Quality]) -> Quality:
    """Return the mean of likenesses; of SSIM over those that have one."""
    ssims = [value.ssim for value in values if value.ssim is not None]
    return Quality(
        psnr=sum(value.psnr for value in values) / len(values),
        ssim=sum(ssims) / len(ssims) if ssims else None,
    )
