"""What is known of the noise of an image, and what a model of a kind of noise is.

A model is a file of this room: `measure` says how strong its noise is, from what was seen of the
image, and `denoise` takes it out of planes (c, h, w) on the scale 0..255, grey or red, green and
blue. It makes its noise white and Gaussian, has `kpca_apps.denoise.noise.gaussian.denoise_gaussian`
or `kpca_apps.denoise.passes.planes.denoise_planes` take that out, and transforms back.
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
class Seen:
    """What was seen of an image before its noise was measured by a model."""

    noise: str  # the kind of it
    is_asked: bool  # whether it was asked for
    impulses: bool  # whether single pixels stand out, which the kind is not meant for
    planes: Planes
    pages: Sequence[Planes]  # those of them in which noise is measured
    white: DenoiseInfo  # white noise, on the scale of the planes, where the kind wants to know
    laws: Sequence[PageLaws]
    lights: Lights | None  # that make the noise, if a law says so
    black: float  # added to planes, makes 0 of what is no light
    faintest: float  # deviation below which noise is not seen
    # Deviation at each pixel over its root mean square, where it differs from place to place.
    place: NDArray[np.float32] | None = None


class Measured(NamedTuple):
    """The noise of an image, as its model takes it out."""

    known: Any  # what `denoise` takes
    levels: Levels  # deviation in each channel; for speckle relative, for Poisson at 255
    established: bool = True
    black: float = 0.0  # added to planes that are denoised
    interval: tuple[float, float] | None = None  # of an estimated level, if one is known


class VarianceStabilisation(NamedTuple):
    """A transform of planes, pixel by pixel, by which their noise is white, and its inverse."""

    forward: Callable[[Planes], Planes]  # may overwrite what it is given, as may the inverse
    inverse: Callable[[Planes], Planes]
    levels: NDArray[np.float64]  # of the noise of those planes


class Model(Protocol):
    """A kind of noise; a file of this room is one."""

    def measure(self, seen: Seen) -> Measured:
        """Return the noise of an image whose level is not given."""

    def denoise(self, planes: Planes, known: Any, options: Options) -> tuple[Planes, Levels]:
        """Return planes denoised, and the level in each channel, from a level or what is known."""


def noisy_channels(planes: Planes, levels: Levels) -> NDArray[np.bool_]:
    """Return which channels have noise: not those without light, of which it is made."""
    return np.asarray((np.array(levels) > 0) & (planes.max(axis=(1, 2)) > 0))


def channel_by_channel(
    denoise: Callable[[Planes, Any, Options], tuple[Planes, Levels]],
    planes: Planes,
    known: Sequence[Any],
    levels: Levels,
    options: Options,
) -> tuple[Planes, Levels]:
    """Denoise the noisy channels as grey images, and leave the others as they are.

    Empty channels, common in fluorescence microscopy, would change the noise of opponent planes.
    """
    cleaned = planes.copy()
    noisy = np.flatnonzero(noisy_channels(planes, levels))
    for number, channel in enumerate(noisy.tolist()):
        alone = slice(channel, channel + 1)
        with part(number, len(noisy)):
            cleaned[alone] = denoise(planes[alone], known[channel], options)[0]
    return cleaned, levels
