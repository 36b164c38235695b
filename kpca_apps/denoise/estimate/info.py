"""The measured noise of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kpca_apps.denoise.result import NoiseLaw


class Defects(NamedTuple):
    """Numbers of sensor defects removed from an image (the maximum over channels)."""

    points: int = 0  # lone pixels
    columns: int = 0  # dead columns
    rows: int = 0  # dead rows
    column_offsets: int = 0  # columns whose offset from their neighbours was removed
    row_offsets: int = 0

    def __bool__(self) -> bool:
        return any(self)


NO_DEFECTS = Defects()


@dataclass(frozen=True)
class DenoiseInfo:
    """The measured noise of an image, and how it was removed.

    Attributes
    ----------
    noise : str
        The noise model used; never ``"auto"``.
    sigma : float
        Deviation of the noise removed, in the units of the image: the root of the mean variance
        over channels. For speckle, the deviation relative to the intensity; for Poisson, the
        deviation at the bright end. An estimate is near the lower end of its interval.
    channel_sigma : tuple of float
        The deviation of the noise removed from each channel, in the same units.
    estimated : bool
        Whether ``sigma`` was estimated from the image.
    correlated : bool
        Whether neighbouring pixels, or the channels, share their noise, as in photographs from a
        camera. White-noise denoising then leaves blotches, and ``noise="camera"`` is the better
        choice. Also False if not measured, because a level or a camera's noise was given.
    data_range : float
        The range of values assumed.
    sigma_range : tuple of float, or None
        Interval that contains the level of white noise with a probability of 90 % (of luminance,
        in a colour image), widened to include `sigma`; None if no level was estimated.
    established : bool
        False if the estimated level may be texture only, is that of a pattern, or is below 2 / 255
        of the range (of twice the brightest value in a dim image). ``"gaussian"`` and ``"auto"``
        then leave the image unchanged. True for a constant image, which certainly has no noise.
    pattern : bool
        Whether what was measured is a dither or a regular pattern, such as that of a screen.
    impulses : bool
        Whether single pixels stand out like impulses, although another kind of noise was chosen:
        ``noise="impulse"`` is then the better choice.
    defects : Defects
        Numbers of lone pixels, dead lines and stripes that were removed first.
    empty : float
        Share of the pixels that hold no data: not a number, outside a mask, or padding.
    dithered : bool
        Whether the result was dithered to integers, as rounding would change the mean of few
        counts of light.
    n_components : int or None
        For a dictionary: number of components projected on, at the noise level used.
    iterations, converged : float or None
        For a dictionary: mean number of fixed-point steps, and share of the pre-images that
        converged.
    clipped : bool
        Whether the estimate comes from clipped patches, for lack of others. Then it measures the
        noise that remains after clipping.
    place_range : tuple of float, or None
        Least and largest deviation of white noise that varies over the image; None if no variation
        is detected.
    laws : tuple of NoiseLaw
        For an estimated level: how the noise of each channel grows with brightness and whether
        neighbours share the noise, in the units of the image, even if not used. Empty if there is
        too little noise to measure, or if a level was given.

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
    data_range: float
    sigma_range: tuple[float, float] | None = None
    established: bool = True
    pattern: bool = False
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
