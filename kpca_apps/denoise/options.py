"""Options of denoising and their choices, in a module that is quick to import."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from kpca_apps.errors import ConfigError, ParameterError
from kpca_apps.names import shown
from kpca_apps.options import check_jobs, is_number

Window = tuple[tuple[int, int], tuple[int, int]]


class NoiseModel(NamedTuple):
    """Properties of a kind of noise that are needed before its module is imported."""

    about: str = ""  # description in the help of --noise
    from_black: bool = False  # whether its variance depends on light above black
    relative: bool = False  # whether its level is a share of the intensity
    beside: bool = False  # whether a given level is that of white noise in addition to this noise
    by_white: bool = False  # whether measuring it needs `Inspected.white`


# For each name, the module `kpca_apps/denoise/noise/<name>.py` measures and removes the noise.
NOISE_MODELS = {
    "gaussian": NoiseModel("equally strong everywhere", by_white=True),
    "poisson": NoiseModel(
        "counted light, which is noisier where it is brighter", from_black=True, by_white=True
    ),
    "speckle": NoiseModel("in proportion to the brightness", from_black=True, relative=True),
    "impulse": NoiseModel("salt and pepper", beside=True),
    "camera": NoiseModel(
        "photographs as a camera saves them, whose noise neighbouring pixels share"
    ),
}
NOISES = (*NOISE_MODELS, "auto")


def is_relative(noise: str) -> bool:
    """Return whether the level of a kind of noise is a share of the intensity."""
    return noise in NOISE_MODELS and NOISE_MODELS[noise].relative


STACK_NOISES = ("auto", "gaussian", "poisson")
Quality = Literal["draft", "fast", "balanced", "high"]
MethodName = Literal["rbf", "linear", "mika"]
Content = Literal["photo", "text"]
QUALITIES, METHODS, CONTENTS = map(get_args, (Quality, MethodName, Content))

LEAST_BANDWIDTH = 0.1  # if lower, kernel values between noise patches are < e^-10: lost in rounding
# Maximum of `luma` and `chroma`: far lower values flatten any image, far higher ones overflow.
LARGEST_FACTOR = 1000.0
LEAST_RANGE, LARGEST_RANGE = 1e-30, 1e30  # limits of a data range, for single precision


@dataclass(frozen=True)
class Options:
    """Options that do not depend on the image, explained in `kpca_apps.denoise_kpca`."""

    noise: str = "auto"
    quality: str = "balanced"
    method: str = "rbf"
    bandwidth: float | None = None
    content: str = "photo"
    luma: float = 1.0
    chroma: float = 1.0
    strength: float = 1.0
    n_jobs: int | None = None  # number of threads, as in joblib
    # Part of the result to compute, bit for bit as in the whole result; the rest is then undefined.
    # None: all.
    wanted: Window | None = None
    pages: int = 1  # number of pages of a stack, one below the other in the planes
    shared: bool = False  # whether neighbouring pixels share the noise, so that it is not white

    def __post_init__(self) -> None:
        offers = {"noise": NOISES, "quality": QUALITIES, "method": METHODS, "content": CONTENTS}
        for name, offered in offers.items():
            value = getattr(self, name)
            if value not in offered:
                raise ParameterError(name, f"is {shown(value)}; give one of {', '.join(offered)}")
        if self.bandwidth is not None and self.method == "linear":
            raise ParameterError("bandwidth", "has no effect with method linear; leave one out")
        factor = f"a factor from 0 to {LARGEST_FACTOR:g}, best near 1"
        wide = f"a finite number of {LEAST_BANDWIDTH:g} or more: below, no two patches are similar"
        for name, low, high, what in (
            ("bandwidth", LEAST_BANDWIDTH, math.inf, wide),
            ("luma", 0.0, LARGEST_FACTOR, factor),
            ("chroma", 0.0, LARGEST_FACTOR, factor),
            ("strength", 0.0, 1.0, "a number from 0 to 1"),
        ):
            value = getattr(self, name)
            if value is None and name == "bandwidth":
                continue
            if not is_number(value, low, high):
                raise ParameterError(name, f"is {shown(value)}; give {what}")
            # Compiled code accepts no integers beyond 64 bits and no Fraction objects.
            object.__setattr__(self, name, float(value))
        check_jobs("n_jobs", self.n_jobs)
        if self.pages > 1 and self.noise not in STACK_NOISES:
            raise ParameterError(
                "noise",
                f"is {self.noise!r}, but a stack is only denoised for {', '.join(STACK_NOISES)} "
                "noise; denoise its pages one by one",
            )
        if self.pages > 1 and (self.method == "mika" or self.content == "text"):
            raise ConfigError("a stack is denoised by method rbf or linear, with content photo")
