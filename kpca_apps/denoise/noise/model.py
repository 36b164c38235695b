"""The interface of a kind of noise.

A model is a module of this package. `measure` returns the strength of the noise in an inspected
image. `denoise` removes the noise from planes (c, h, w) on the scale 0..255, grey or red, green and
blue: transform the noise to white Gaussian noise, call `noise.gaussian.denoise_gaussian` or
`passes.planes.denoise_planes`, and transform back.
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
    """An inspected image, whose noise a model measures next."""

    noise: str  # the kind of noise
    impulses: bool  # whether the image has impulses, which the kind of noise does not model
    planes: Planes
    pages: Sequence[Planes]  # the pages in which noise is measured
    white: DenoiseInfo  # white noise, on the scale of the planes; NOT_MEASURED if not needed
    laws: Sequence[PageLaws]
    lights: Lights | None  # parameters of photon noise in each channel, if the noise follows a law
    black: float  # value added to the planes so that darkness (no light) is 0
    faintest: float  # noise level below which the noise is invisible
    # Ratio of the noise level at each pixel to its root mean square, if the level varies.
    place: NDArray[np.float32] | None = None


class Measured(NamedTuple):
    """The measured noise of an image, in the form that the model's `denoise` takes."""

    known: Any  # argument `known` of `denoise`
    # noise level in each channel: relative for speckle, at brightness 255 for Poisson
    levels: Levels
    established: bool = True
    black: float = 0.0  # value added to the planes before denoising
    interval: tuple[float, float] | None = None  # interval of the estimated level, if known


class VarianceStabilisation(NamedTuple):
    """A pixel-wise transform of planes that makes their noise white, and its inverse."""

    forward: Callable[[Planes], Planes]  # may overwrite the planes, as may the inverse
    inverse: Callable[[Planes], Planes]
    levels: NDArray[np.float64]  # noise level of each transformed plane


class Model(Protocol):
    """A kind of noise, implemented by each module that `NOISE_MODELS` names."""

    def measure(self, image: Inspected) -> Measured:
        """Return the noise of an image whose noise level is not given."""

    def denoise(self, planes: Planes, known: Any, options: Options) -> tuple[Planes, Levels]:
        """Return denoised planes, and the noise level in each channel, given or measured."""


def noisy_channels(planes: Planes, levels: Levels) -> NDArray[np.bool_]:
    """Return which channels have noise; a channel without light has none."""
    return np.asarray((np.array(levels) > 0) & (planes.max(axis=(1, 2)) > 0))


def channel_by_channel(
    denoise: Callable[[Planes, Any, Options], tuple[Planes, Levels]],
    planes: Planes,
    known: Sequence[Any],
    levels: Levels,
    options: Options,
) -> tuple[Planes, Levels]:
    """Denoise only channels with noise, each as a grey image: opponent planes mix channels."""
    cleaned = planes.copy()
    noisy = np.flatnonzero(noisy_channels(planes, levels))
    for number, channel in enumerate(noisy.tolist()):
        alone = slice(channel, channel + 1)
        with part(number, len(noisy)):
            cleaned[alone] = denoise(planes[alone], known[channel], options)[0]
    return cleaned, levels
