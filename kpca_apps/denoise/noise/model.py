"""The interface of a kind of noise: what it is given, and what it returns.

A model is a file of this room. `measure` returns the strength of its noise, given an inspected
image. `denoise` removes it from planes (c, h, w) on the scale 0..255, grey or red, green and blue:
it makes the noise white and Gaussian, calls `kpca_apps.denoise.noise.gaussian.denoise_gaussian` or
`kpca_apps.denoise.passes.planes.denoise_planes`, and transforms back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.law import Lights, PageLaws
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.progress import part

Planes = NDArray[np.float32]
Levels = tuple[float, ...]


@dataclass(frozen=True)
class Inspected:
    """An inspected image, whose noise a model is to measure."""

    noise: str  # the kind of noise
    is_given: bool  # whether the user chose the kind
    impulses: bool  # whether single pixels stand out, which the kind does not handle
    planes: Planes
    pages: Sequence[Planes]  # pages in which noise is measured
    white: DenoiseInfo  # white noise, on the scale of the planes, if the kind needs it
    laws: Sequence[PageLaws]
    lights: Lights | None  # parameters of the light that makes the noise, if it follows a law
    black: float  # added to the planes so that darkness (no light) is 0
    faintest: float  # deviation below which noise is invisible
    # Deviation at each pixel over its root mean square, if it varies over the image.
    place: NDArray[np.float32] | None = None


class Measured(NamedTuple):
    """The measured noise of an image, as its model removes it."""

    known: Any  # argument `known` of `denoise`
    levels: Levels  # deviation in each channel; for speckle relative, for Poisson at 255
    established: bool = True
    black: float = 0.0  # added to planes before denoising
    interval: tuple[float, float] | None = None  # interval of an estimated level, if known


class VarianceStabilisation(NamedTuple):
    """A pixel-wise transform of planes that makes their noise white, and its inverse."""

    forward: Callable[[Planes], Planes]  # may overwrite its argument, as may the inverse
    inverse: Callable[[Planes], Planes]
    levels: NDArray[np.float64]  # deviations of the noise in the transformed planes


class Model(Protocol):
    """A kind of noise; each module that `NOISE_MODELS` names is one."""

    def measure(self, image: Inspected) -> Measured:
        """Return the noise of an image whose level is not given."""

    def denoise(self, planes: Planes, known: Any, options: Options) -> tuple[Planes, Levels]:
        """Return denoised planes, and the level in each channel, as given or measured."""


def noisy_channels(planes: Planes, levels: Levels) -> NDArray[np.bool_]:
    """Return which channels have noise; channels without light have none."""
    return np.asarray((np.array(levels) > 0) & (planes.max(axis=(1, 2)) > 0))


def channel_by_channel(
    denoise: Callable[[Planes, Any, Options], tuple[Planes, Levels]],
    planes: Planes,
    known: Sequence[Any],
    levels: Levels,
    options: Options,
) -> tuple[Planes, Levels]:
    """Denoise the noisy channels as grey images, and leave the others unchanged.

    Empty channels, common in fluorescence microscopy, would change the noise of opponent planes.
    """
    cleaned = planes.copy()
    noisy = np.flatnonzero(noisy_channels(planes, levels))
    for number, channel in enumerate(noisy.tolist()):
        alone = slice(channel, channel + 1)
        with part(number, len(noisy)):
            cleaned[alone] = denoise(planes[alone], known[channel], options)[0]
    return cleaned, levels
