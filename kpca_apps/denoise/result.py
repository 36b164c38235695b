"""What denoising a batch of images gave: plain, frozen result objects.

They are all a report, a JSON file or a terminal summary may look at. They hold numbers, text and
small encoded pictures, never arrays of pixels, so that every view of a result is a pure function
of it. Fields left out of comparison (times, what was resumed) differ between runs that give the
same images; they have no place in a file that is to be the same for any number of workers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kpca_apps.denoise.options import NOISES, QUALITIES, STACK_NOISES, is_relative

# A weaker result keeps a share of the grain: with a lower noise level, noise would stand out in
# blotches where it passes for detail. A stronger one takes the noise to be stronger than it is.
WEAKER, STRONGER = 0.6, 1.3
# Likelihood (its logarithm) by which a law that rises must beat noise as strong everywhere.
BEATS = 5.0
# Pixels of the blur from which neighbours share their noise: less can hardly be seen.
SHARED_BLUR = 0.4


@dataclass(frozen=True)
class Preview:
    """A small picture, encoded."""

    media_type: str  # "image/png" or "image/jpeg"
    data: bytes = field(repr=False)
    width: int
    height: int


@dataclass(frozen=True)
class Crop:
    """A piece of an image at its full size, where the result has most detail, or is flat."""

    kind: str  # "detail" or "flat"
    left: int  # as it is viewed
    top: int
    before: Preview
    after: Preview
    reference: Preview | None = None  # of the clean image


@dataclass(frozen=True)
class ImagePreviews:
    """Pictures of one image for a report, turned as its orientation tag says."""

    before: Preview  # of at most 560 x 560 pixels, and at most 1100 wide and high
    after: Preview
    thumb: Preview  # at most 120 wide and high
    residual: Preview  # noisy minus denoised on middle grey, black and white at three deviations
    crops: tuple[Crop, ...]  # 128 wide and high
    stretched: bool  # for showing, as values of 16 bits and floats are


@dataclass(frozen=True)
class Quality:
    """Likeness to a clean image."""

    psnr: float  # in decibels; infinite for equal images
    ssim: float | None  # Wang et al. (2004), at most 1; None for images below 11 pixels


@dataclass(frozen=True)
class Comparison:
    """Likeness to the clean image before and after, and of what baselines make of it, by name."""

    noisy: Quality
    denoised: Quality
    baselines: Mapping[str, Quality] = field(default_factory=dict)


@dataclass(frozen=True)
class Residual:
    """What was removed of the image ("method noise"): it should look like noise."""

    sd: float  # over all colours, in the units of the image
    edge_correlation: float  # of neighbouring pixels where the image has most detail
    flat_correlation: float  # and least
    structured: bool  # the first exceeds the second so much that detail must have been removed
    # Mean where pixels are cut off at black (above 0) or white (below 0); 0 if it does not show.
    clipped_mean: float = 0.0


@dataclass(frozen=True)
class NoiseLaw:
    """The noise of one channel: its variance at brightness x is gain x + constant.

    The variance at mean brightness is between the factors of `interval` of what the law says, in
    nine of ten simulated pictures with white noise, in seven of ten where neighbours share it; and
    so it is at the brightness of nine in ten pixels that show nothing but noise. Log odds are
    against all laws with this blur, of white noise against noise with it.
    """

    gain: float  # in the units of what was measured
    constant: float
    blur: float  # deviation, in pixels, by which neighbours share the noise; 0 for white noise
    interval: tuple[float, float]
    established: bool  # whether it is noise for sure, and not texture
    clipped: bool  # whether noise is cut off at black or white
    rises: bool = field(init=False)  # clearly stronger in the light than in the dark
    shared: bool = field(init=False)  # by neighbouring pixels, clearly
    log_odds_flat: float  # of noise as strong everywhere (a gain of 0)
    log_odds_white: float
    # What was seen: variance of the quietest patches of each level of brightness, ascending.
    brightness: tuple[float, ...] = field(repr=False)
    variances: tuple[float, ...] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rises", self.log_odds_flat < -BEATS)
        object.__setattr__(self, "shared", self.blur >= SHARED_BLUR)

    def variance(self, brightness: float) -> float:
        """Return the variance of the noise at some brightness."""
        return max(self.gain * brightness + self.constant, 0.0)

    @property
    def middle(self) -> float:
        """Mean of the levels of brightness in which noise was seen."""
        return sum(self.brightness) / len(self.brightness)

    @property
    def is_of_nothing(self) -> bool:
        """Whether it is that of a channel of one value."""
        return len(self.brightness) == 1

    def in_units(self, unit: float, lowest: float) -> NoiseLaw:
        """Return the law of an image whose values are x / unit + lowest."""
        return replace(
            self,
            gain=self.gain / unit,
            constant=(self.constant / unit - self.gain * lowest) / unit,
            brightness=tuple(x / unit + lowest for x in self.brightness),
            variances=tuple(x / unit / unit for x in self.variances),
        )

    @property
    def deviations(self) -> tuple[float, float, float]:
        """Deviation of the noise where the image is darkest, in the middle, where it is brightest.

        The middle has as many levels of brightness below as above.
        """
        low, middle, high = (
            math.sqrt(self.variance(self.brightness[place]))
            for place in (0, len(self.brightness) // 2, -1)
        )
        return low, middle, high


@dataclass(frozen=True)
class Evidence:
    """Why the noise of an image, if measured, was taken as it was; of the page it is about."""

    why: str = ""  # "it ...", of a model chosen; "may be ...", of an image left as it was
    runner_up: str = ""  # the next likely model, in words
    log_odds: float | None = None  # of the runner-up against the model chosen
    option: str = ""  # denoises an image all the same that was left as it was
    sigma_range: tuple[float, float] | None = None  # as in `DenoiseInfo`
    laws: tuple[NoiseLaw, ...] = ()  # of each channel, where enough was seen

    @property
    def is_sure(self) -> bool:
        """Whether there are laws, and all are of noise for sure."""
        return bool(self.laws) and all(law.established for law in self.laws)

    @property
    def is_shared(self) -> bool:
        """Whether neighbouring pixels clearly share the noise."""
        return self.is_sure and any(law.shared for law in self.laws)

    @property
    def is_law(self) -> bool:
        """Whether the noise is there for sure, and not white and everywhere the same."""
        return self.is_shared or (self.is_sure and any(law.rises for law in self.laws))


@dataclass(frozen=True)
class ImageOutcome:
    """What became of one image."""

    name: str  # relative to the folder given, with "/" between folders
    status: str  # "ok" or "failed"
    reason: str = ""  # why it failed, in one line
    output: str = ""  # the file written, relative to the output folder
    format: str = ""  # "png", "tiff", "jpeg" or as the input
    shape: tuple[int, ...] = ()  # of the first page: (h, w) or (h, w, channels)
    dtype: str = ""
    n_pages: int = 0
    orientation: int = 1  # how the image is turned for viewing, 1 (not at all) to 8
    noise: str = ""  # the noise model used
    # In the units of the first page: root of the mean square over the pages of its type.
    sigma: float | None = None
    page_sigmas: tuple[float, ...] = ()  # level of each page, in its own units
    page_ranges: tuple[float, ...] = ()  # range of values of each page
    estimated: bool = False  # the level was estimated
    correlated: bool = False  # neighbouring pixels share their noise
    data_range: float | None = None  # the widest assumed on pages of the first one's type
    used_range: float | None = None  # of the values of the first page, denoised, but for a few
    established: bool = True  # there is noise for sure; else the image was left as it was
    impulses: bool = False  # single pixels stand out, but the noise was not taken for impulses
    evidence: Evidence = Evidence()  # of the first page that was left as it was, or else the first
    own_settings: Mapping[str, Any] = field(default_factory=dict)  # other than those of the batch
    residual: Residual | None = None  # of the first page
    comparison: Comparison | None = None  # means over pages; None without a reference
    notes: tuple[str, ...] = ()  # whole sentences on what is other than in the input
    previews: ImagePreviews | None = field(default=None, repr=False)  # of the first page
    seconds: float = field(default=0.0, compare=False)  # taken by denoising
    resumed: bool = field(default=False, compare=False)  # an earlier run had denoised it
    bug: str = field(default="", repr=False, compare=False)  # traceback of a bug of this program

    @property
    def is_relative(self) -> bool:
        """Whether the level of the noise is a share of the intensity."""
        return is_relative(self.noise)

    @property
    def own_range(self) -> float:
        """Range that images are ranked by: of its values, not of their type.

        An image of 12 bits in 16 uses a sixteenth of that.
        """
        return self.used_range or self.data_range or 1.0


@dataclass(frozen=True)
class ComponentView:
    """A leading component of a dictionary: pre-images two deviations to either side of the mean."""

    number: int  # from 1
    share: float  # of the variance in feature space
    below: Preview
    above: Preview


@dataclass(frozen=True)
class DictionaryView:
    """The dictionary a batch was denoised with, at the noise level met."""

    name: str
    n_examples: int
    patch_size: int | None
    shape: tuple[int, ...]  # of an example
    n_components: int
    bandwidth: float  # c of exp(-|x - y|^2 / c) where the range of values is 1
    rule: str  # how it and the number of components were chosen, in a whole sentence
    components: tuple[ComponentView, ...]


@dataclass(frozen=True)
class DenoisingResult:
    """What became of a batch."""

    images: tuple[ImageOutcome, ...]  # in the order of their names
    settings: Mapping[str, Any] = field(default_factory=dict)  # what was asked for
    notes: tuple[str, ...] = ()  # whole sentences on the batch
    dictionary: DictionaryView | None = None  # used instead of the image's own patches
    command: str = ""  # the command line that gives the same result
    versions: Mapping[str, str] = field(default_factory=dict)  # of what may change a pixel
    seconds: float = field(default=0.0, compare=False)  # from start to end

    @property
    def done(self) -> tuple[ImageOutcome, ...]:
        """The images that were denoised, or left as they were."""
        return tuple(image for image in self.images if image.status == "ok")

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
    def offered(self) -> Mapping[str, tuple[str, ...]]:
        """Words that may be asked for an image alone, by the option that takes them."""
        noises = STACK_NOISES if self.settings.get("stack") else NOISES
        return {"noise": noises, "quality": QUALITIES}

    @property
    def mean_comparison(self) -> Comparison | None:
        """Means over the images with a reference, each method over the same images.

        Infinite ratios, of images equal to their reference, make an infinite mean.
        """
        found = [image.comparison for image in self.images if image.comparison is not None]
        return mean_comparison(found) if found else None


@dataclass(frozen=True)
class Trial:
    """One strength tried on a crop."""

    strength: float
    option: str  # that gives it, such as "--strength 0.5"
    after: Preview
    residual: Preview
    residual_sd: float  # of what was removed, in the units of the image
    per_image: str = ""  # the lines of a table for --per-image that give it this image alone


@dataclass(frozen=True)
class TrialResult:
    """A crop of one image denoised at several strengths, to choose by.

    What is not described is as in `ImageOutcome`.
    """

    name: str
    left: int  # of the crop in the image as it is viewed
    top: int
    width: int
    height: int
    noise: str
    sigma: float
    estimated: bool
    correlated: bool
    data_range: float
    before: Preview
    trials: tuple[Trial, ...]  # from weak to strong
    command: str = ""  # denoises the whole with the middle trial
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    established: bool = True

    @property
    def is_relative(self) -> bool:
        """Whether the level of the noise is a share of the intensity."""
        return is_relative(self.noise)

    evidence: Evidence = Evidence()


def mean_comparison(found: Sequence[Comparison]) -> Comparison:
    """Return the means over comparisons, of the baselines that all of them have."""
    baselines = [name for name in found[0].baselines if all(name in one.baselines for one in found)]
    return Comparison(
        noisy=_mean_quality([one.noisy for one in found]),
        denoised=_mean_quality([one.denoised for one in found]),
        baselines={
            name: _mean_quality([one.baselines[name] for one in found]) for name in baselines
        },
    )


def _mean_quality(values: Sequence[Quality]) -> Quality:
    """Return the mean of likenesses; of SSIM over those that have one."""
    ssims = [value.ssim for value in values if value.ssim is not None]
    return Quality(
        psnr=sum(value.psnr for value in values) / len(values),
        ssim=sum(ssims) / len(ssims) if ssims else None,
    )
