"""Results of denoising a batch of images, with numbers, text and small encoded pictures.

Reports, JSON files and terminal summaries use only these. Fields with ``compare=False`` may differ
between runs that give the same images, and are left out of reproducible files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kpca_apps.denoise.options import NOISES, QUALITIES, STACK_NOISES, is_relative

# The weaker result has WEAKER times the strength, so that it keeps some grain. With a lower noise
# level instead, it would have blotches where noise looks like detail. The stronger result has
# STRONGER times the noise level.
WEAKER, STRONGER = 0.6, 1.3
BEATS = 5.0  # minimum log odds, against uniform noise, of noise that rises with brightness
SHARED_BLUR = 0.4  # blur in pixels above which neighbours share noise; less is barely visible


@dataclass(frozen=True)
class Preview:
    """A small encoded picture."""

    media_type: str  # "image/png" or "image/jpeg"
    data: bytes = field(repr=False)
    width: int
    height: int


@dataclass(frozen=True)
class Crop:
    """A piece of an image at full size, with the most detail or the least."""

    kind: str  # "detail" or "flat"
    left: int  # position of the left edge in the image as viewed
    top: int
    before: Preview
    after: Preview
    reference: Preview | None = None  # the same crop of the clean image


@dataclass(frozen=True)
class ImagePreviews:
    """Pictures of one image for a report, turned as its orientation tag says."""

    before: Preview  # area of at most 560 x 560 pixels, sides of at most 1100 pixels
    after: Preview
    thumb: Preview  # at most 120 pixels wide and high
    residual: Preview  # noisy minus denoised: 0 is grey, three deviations are black or white
    crops: tuple[Crop, ...]  # 128 pixels wide and high
    stretched: bool  # whether values were rescaled for display (16 bits and floats)


@dataclass(frozen=True)
class Quality:
    """Similarity to a clean image."""

    psnr: float  # in decibels; infinite for equal images
    ssim: float | None  # Wang et al. (2004), at most 1; None for images narrower than 11 pixels


@dataclass(frozen=True)
class Comparison:
    """Similarity to the clean image of the noisy image, the denoised image, and baselines."""

    noisy: Quality
    denoised: Quality
    baselines: Mapping[str, Quality] = field(default_factory=dict)


@dataclass(frozen=True)
class Residual:
    """The residual ("method noise"), which should look like noise."""

    sd: float  # standard deviation over all colours, in the units of the image
    edge_correlation: float  # correlation of neighbouring pixels where the image has most detail
    flat_correlation: float  # the same where the image has least detail
    structured: bool  # whether correlation at edges is so high that it shows removed detail
    # Mean residual where pixels are clipped: > 0 at black, < 0 at white; 0 if not significant.
    clipped_mean: float = 0.0


@dataclass(frozen=True)
class NoiseLaw:
    """The noise of one channel: its variance at brightness x is gain x + constant.

    At mean brightness, the true variance is within `interval` times that of the law in 90 % of
    simulated pictures with white noise, and in 70 % with noise that neighbours share. The interval
    also contains the variance at 90 % of the pixels that show only noise. `log_odds_flat` compares
    noise of equal strength with all laws of this blur, `log_odds_white` white noise with noise of
    this blur.
    """

    gain: float  # in the units of the measured image
    constant: float
    blur: float  # deviation in pixels of the blur that correlates neighbours; 0 for white noise
    interval: tuple[float, float]
    established: bool  # whether this is certainly noise, not texture
    clipped: bool  # whether noise is cut off at black or white
    rises: bool = field(init=False)  # whether the noise is clearly stronger in bright areas
    shared: bool = field(init=False)  # whether neighbouring pixels clearly share the noise
    log_odds_flat: float  # log odds of constant noise (gain 0) against all noise of this blur
    log_odds_white: float
    # Levels of brightness, ascending, and measured variance of the quietest patches at each level.
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
        """Mean of the levels of brightness at which noise was measured."""
        return sum(self.brightness) / len(self.brightness)

    @property
    def is_of_nothing(self) -> bool:
        """Whether this is the law of a channel with a single value."""
        return len(self.brightness) == 1

    def in_units(self, unit: float, lowest: float) -> NoiseLaw:
        """Return the law for values x / unit + lowest instead of x."""
        return replace(
            self,
            gain=self.gain / unit,
            constant=(self.constant / unit - self.gain * lowest) / unit,
            brightness=tuple(x / unit + lowest for x in self.brightness),
            variances=tuple(x / unit / unit for x in self.variances),
        )

    @property
    def deviations(self) -> tuple[float, float, float]:
        """Noise deviations at the lowest, the median and the highest level of brightness."""
        low, middle, high = (
            math.sqrt(self.variance(self.brightness[place]))
            for place in (0, len(self.brightness) // 2, -1)
        )
        return low, middle, high


@dataclass(frozen=True)
class Evidence:
    """Why a noise model was chosen for a page, if the noise was measured."""

    why: str = ""  # end of a sentence that says why the model was chosen, or the image not changed
    runner_up: str = ""  # the second most likely model, in words
    log_odds: float | None = None  # log odds of the runner-up against the chosen model
    option: str = ""  # option that denoises an image which was left unchanged
    sigma_range: tuple[float, float] | None = None  # as in `DenoiseInfo`
    laws: tuple[NoiseLaw, ...] = ()  # law of each channel, if measurable

    @property
    def is_sure(self) -> bool:
        """Whether there are laws, and all are established."""
        return bool(self.laws) and all(law.established for law in self.laws)

    @property
    def is_shared(self) -> bool:
        """Whether neighbouring pixels clearly share the noise."""
        return self.is_sure and any(law.shared for law in self.laws)

    @property
    def is_law(self) -> bool:
        """Whether there surely is noise that neighbours share or that rises with brightness."""
        return self.is_shared or (self.is_sure and any(law.rises for law in self.laws))


@dataclass(frozen=True)
class MeasuredFile:
    """The noise of an image file's first page, or the reason why it could not be measured.

    The level is in the units of the image; other fields are as in `DenoiseInfo`.
    """

    name: str
    reason: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    noise: str = ""
    sigma: float = 0.0
    channel_sigma: tuple[float, ...] = ()
    data_range: float = 0.0
    correlated: bool = False
    established: bool = True
    impulses: bool = False
    evidence: Evidence = field(default_factory=Evidence)


@dataclass(frozen=True)
class ImageOutcome:
    """Outcome of one image."""

    name: str  # path relative to the given folder, with "/" between folders
    status: str  # "ok" or "failed"
    reason: str = ""  # why the image failed, in one line
    output: str = ""  # the file written, relative to the output folder
    format: str = ""  # kind of the written file, such as "png"
    shape: tuple[int, ...] = ()  # (h, w) or (h, w, channels) of the first page
    dtype: str = ""
    n_pages: int = 0
    orientation: int = 1  # EXIF orientation, 1 (as stored) to 8
    noise: str = ""  # the noise model used
    # Noise level in the units of the first page: root mean square over pages of the same type.
    sigma: float | None = None
    page_sigmas: tuple[float, ...] = ()  # noise level of each page, in its own units
    page_ranges: tuple[float, ...] = ()  # range of values of each page
    estimated: bool = False  # whether the noise level was estimated
    correlated: bool = False  # whether neighbouring pixels share their noise
    data_range: float | None = None  # maximum data range over pages of the first page's pixel type
    used_range: float | None = None  # range of most values of the denoised first page
    established: bool = True  # whether noise was established; if not, the image is unchanged
    impulses: bool = False  # whether single pixels stand out although the model is not "impulse"
    evidence: Evidence = Evidence()  # evidence for the first unchanged page, or else the first page
    own_settings: Mapping[str, Any] = field(default_factory=dict)  # settings other than the batch's
    residual: Residual | None = None  # residual of the first page
    comparison: Comparison | None = None  # means over pages; None without a reference
    notes: tuple[str, ...] = ()  # sentences on how the output differs from the input
    previews: ImagePreviews | None = field(default=None, repr=False)  # previews of the first page
    seconds: float = field(default=0.0, compare=False)  # time of denoising
    resumed: bool = field(default=False, compare=False)  # whether an earlier run denoised it
    bug: str = field(default="", repr=False, compare=False)  # traceback of a bug in this program

    @property
    def is_relative(self) -> bool:
        """Whether the noise level is a share of the intensity."""
        return is_relative(self.noise)

    @property
    def own_range(self) -> float:
        """Range of values to compare images by; 12-bit values use 1/16 of a 16-bit type's range."""
        return self.used_range or self.data_range or 1.0


@dataclass(frozen=True)
class ComponentView:
    """A leading component of a dictionary: pre-images two deviations below and above the mean."""

    number: int  # from 1
    share: float  # share of the variance in feature space
    below: Preview
    above: Preview


@dataclass(frozen=True)
class DictionaryView:
    """The dictionary of a batch, at the median noise level of its images."""

    name: str
    n_examples: int
    patch_size: int | None
    shape: tuple[int, ...]  # shape of an example
    n_components: int
    bandwidth: float  # c of exp(-|x - y|^2 / c), for values with range 1
    rule: str  # sentence on how bandwidth and number of components were chosen
    components: tuple[ComponentView, ...]


@dataclass(frozen=True)
class DenoisingResult:
    """Results of a batch."""

    images: tuple[ImageOutcome, ...]  # sorted by name
    settings: Mapping[str, Any] = field(default_factory=dict)  # settings as requested
    notes: tuple[str, ...] = ()  # sentences on the batch
    dictionary: DictionaryView | None = None  # used instead of the image's own patches, if given
    command: str = ""  # the command line that gives the same result
    versions: Mapping[str, str] = field(default_factory=dict)  # versions of the libraries used
    seconds: float = field(default=0.0, compare=False)  # time from start to end

    @property
    def done(self) -> tuple[ImageOutcome, ...]:
        """The images that were denoised or kept unchanged."""
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
        """Number of images that an earlier run denoised."""
        return sum(image.resumed for image in self.images)

    @property
    def offered(self) -> Mapping[str, tuple[str, ...]]:
        """Values that a single image's options may take, by option."""
        noises = STACK_NOISES if self.settings.get("stack") else NOISES
        return {"noise": noises, "quality": QUALITIES}

    @property
    def mean_comparison(self) -> Comparison | None:
        """Mean similarities over images with a reference, for methods that all of them have.

        The infinite PSNR of an image equal to its reference makes the mean infinite.
        """
        found = [image.comparison for image in self.images if image.comparison is not None]
        return mean_comparison(found) if found else None


@dataclass(frozen=True)
class Trial:
    """A crop denoised at one strength."""

    strength: float
    option: str  # command line option, such as "--strength 0.5"
    after: Preview
    residual: Preview
    residual_sd: float  # deviation of the residual, in the image's units
    per_image: str = ""  # lines of a --per-image table that give this image this strength


@dataclass(frozen=True)
class TrialResult:
    """A crop of one image denoised at several strengths; other fields are as in `ImageOutcome`."""

    name: str
    left: int  # position of the crop's left edge in the image as viewed
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
    command: str = ""  # command that denoises the whole image like the middle trial
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    established: bool = True
    evidence: Evidence = Evidence()

    @property
    def is_relative(self) -> bool:
        """Whether the noise level is a share of the intensity."""
        return is_relative(self.noise)


def mean_comparison(found: Sequence[Comparison]) -> Comparison:
    """Return means over comparisons, for the baselines that all comparisons have."""
    baselines = [name for name in found[0].baselines if all(name in one.baselines for one in found)]
    return Comparison(
        noisy=_mean_quality([one.noisy for one in found]),
        denoised=_mean_quality([one.denoised for one in found]),
        baselines={
            name: _mean_quality([one.baselines[name] for one in found]) for name in baselines
        },
    )


def _mean_quality(values: Sequence[Quality]) -> Quality:
    ssims = [value.ssim for value in values if value.ssim is not None]
    return Quality(
        psnr=sum(value.psnr for value in values) / len(values),
        ssim=sum(ssims) / len(ssims) if ssims else None,
    )
