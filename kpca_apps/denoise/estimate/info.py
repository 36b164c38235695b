"""What was found out about the noise of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kpca_apps.denoise.result import NoiseLaw


class Defects(NamedTuple):
    """What of a sensor's defects was taken out of an image: the most of any channel."""

    points: int = 0  # lone pixels
    columns: int = 0  # dead ones
    rows: int = 0

    def __bool__(self) -> bool:
        """Whether there are any."""
        return any(self)


NO_DEFECTS = Defects()


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
        choice. False, too, where it was not looked at, for a level or a camera's noise was asked
        for.
    whiteness : float
        Share of white noise, at least, in the upper frequencies of the quietest patches: near 1
        where there is no other, near 0 where pixels share theirs; 1 where it was not looked at.
    data_range : float
        The range of values assumed.
    sigma_range : tuple of float, or None
        Interval that holds an estimated level of white noise with a probability of nine in ten
        (of luminance, in a colour image), widened to hold `sigma`; None where there is none.
    established : bool
        False where an estimated level may all be texture, or is less than 2 of 255 parts of the
        range (of twice the brightest value in a dim image): ``"gaussian"`` and ``"auto"`` leave
        such an image as it is. True for a constant image, which has none for sure.
    impulses : bool
        Whether single pixels stand out as those that impulse noise replaced do, though the noise
        was not taken for impulses: ``noise="impulse"`` is then the better choice.
    defects : Defects
        Lone pixels and dead lines that were taken out before all else.
    empty : float
        Share of the pixels that hold no data: not a number, outside a mask, or padding.
    dithered : bool
        Whether the integers of a file could not hold what was denoised, of few counts of light:
        rounded, its mean would be another.
    n_components : int or None
        Of a dictionary: components projected on, at the noise level used.
    iterations, converged : float or None
        Of a dictionary: mean number of fixed-point steps, and share of the pre-images that
        converged.
    clipped : bool
        Whether the estimate rests on clipped patches, for want of others: of noise that was cut off
        in part it shows what is left.
    place_range : tuple of float, or None
        Least and largest deviation of white noise that differs from place to place; None where it
        does not, as far as can be told.
    laws : tuple of NoiseLaw
        Of an estimated level: how the noise of each channel grows with brightness and whether
        neighbours share it, in the units of the image, whether used or not; empty where there is
        too little to see, or a level was given.

    Examples
    --------
    >>> import numpy as np
    >>> from kpca_apps import measure_noise
    >>> noisy = 100 + 5 * np.random.default_rng(0).standard_normal((64, 64))
    >>> info = measure_noise(noisy, data_range=255)
    >>> info.estimated, info.impulses
    (True, False)
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
    defects: Defects = NO_DEFECTS
    empty: float = 0.0
    dithered: bool = False
    n_components: int | None = None
    iterations: float | None = None
    converged: float | None = None
    clipped: bool = False
    place_range: tuple[float, float] | None = None
    laws: tuple[NoiseLaw, ...] = ()
