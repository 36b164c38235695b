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

from kpca_apps.denoise.noise.law import Lights, NoiseLaw, PageLaws
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.progress import part

Planes = NDArray[np.float32]
Levels = tuple[float, ...]

# Share of the variance of an image above which what passes for a camera's noise is an even texture:
# of a photograph noise is the lesser part, even where few photons were counted.
MOST_OF_ALL = 0.5


@dataclass(frozen=True)
class DenoiseInfo:
    """What was found out about an image on the way to denoising it.

    Attributes
    ----------
    noise : str
        The noise model used; never ``"auto"``.
    sigma : float
        Deviation of the noise removed, in the units of the image: the root of the mean variance
        over channels. For speckle it is relative to the intensity, for Poisson at the bright end.
        An estimate leans to the lower end of its interval.
    channel_sigma : tuple of float
        The same for each channel.
    estimated : bool
        Whether ``sigma`` was estimated from the image.
    correlated : bool
        Whether neighbouring pixels, or the channels, share their noise, as in photographs from a
        camera; white-noise denoising then leaves blotches, and ``noise="camera"`` is the better
        choice.
    whiteness : float
        Share of white noise, at least, in the upper frequencies of the quietest patches: near 1
        where there is no other, near 0 where pixels share theirs.
    data_range : float
        The range of values assumed.
    sigma_range : tuple of float, or None
        Interval that holds an estimated level of white noise with a probability of nine in ten
        (of luminance, in a colour image); None where there is none.
    established : bool
        False where an estimated level may all be texture, or is less than 2 of 255 parts of the
        range (of twice the brightest value in a dim image): ``"gaussian"`` and ``"auto"`` leave
        such an image as it is. True for a constant image, which has none for sure.
    impulses : bool
        Whether single pixels stand out as those that impulse noise replaced do, though the noise
        was not taken for impulses: ``noise="impulse"`` is then the better choice.
    n_components : int or None
        Of a dictionary: components projected on, at the noise level used.
    iterations, converged : float or None
        Of a dictionary: mean number of fixed-point steps, and share of the pre-images that
        converged.
    clipped : bool
        Whether the estimate rests on clipped patches, for want of others: of noise that was cut off
        in part it shows what is left.
    laws : tuple of NoiseLaw
        Of an estimated level: how the noise of each channel grows with brightness and whether
        neighbours share it, in the units of the image, whether used or not; empty where there is
        too little to see, or a level was given.
    """

    noise: str
    sigma: float
    channel_sigma: tuple[float, ...]
    estimated: bool
    correlated: bool
    whiteness: float
    data_range: float
    sigma_range: tuple[float, float] | None = None
    established: bool = True
    impulses: bool = False
    n_components: int | None = None
    iterations: float | None = None
    converged: float | None = None
    clipped: bool = False
    laws: tuple[NoiseLaw, ...] = ()


@dataclass(frozen=True)
class Seen:
    """What was seen of an image before its noise was measured by a model."""

    planes: Planes
    pages: Sequence[Planes]  # those of them in which noise is measured
    white: DenoiseInfo  # white noise, on the scale of the planes
    laws: Sequence[PageLaws]
    lights: Lights | None  # that make the noise, if a law says so
    black: float  # added to planes, makes 0 of what is no light
    faintest: float  # deviation below which noise is not seen
    is_asked: bool  # whether this kind of noise was asked for


class Measured(NamedTuple):
    """The noise of an image, as its model takes it out."""

    known: Any  # what `denoise` takes
    levels: Levels  # deviation in each channel; for speckle relative, for Poisson at 255
    established: bool = True
    black: float = 0.0  # added to planes that are denoised


class Model(Protocol):
    """A kind of noise; a file of this room is one."""

    def measure(self, seen: Seen) -> Measured:
        """Return the noise of an image whose level is not given."""

    def denoise(self, planes: Planes, known: Any, options: Options) -> tuple[Planes, Levels]:
        """Return planes denoised, and the level in each channel, from a level or what is known."""


def measured_in_denoising(seen: Seen) -> Measured:
    """Leave it to `denoise` to measure its noise."""
    return Measured(None, (0.0,) * len(seen.planes), black=seen.black)


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
