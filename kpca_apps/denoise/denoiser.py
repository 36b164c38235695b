"""The door to denoising: any image in, a clean image out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.image import Picture, read_picture
from kpca_apps.denoise.models import MODELS, camera_levels, has_impulses, measure_white
from kpca_apps.denoise.noise import NoiseEstimate
from kpca_apps.denoise.passes import Options
from kpca_apps.errors import ConfigError

__all__ = [
    "Cleaned",
    "DenoiseInfo",
    "clean_image",
    "denoise_kpca",
    "denoise_with_info",
    "doubt_level",
    "measure_noise",
]

# Noise models that need to know which value means no light.
FROM_BLACK = ("poisson", "speckle")
MOST_SPECKLE = 2.0
# Of the range, or of twice the brightest value of a dim image: estimated noise below is hardly
# seen, and the grain of clean photographs is as strong.
FAINT = 2.0 / 255.0
# Share of the variance of an image above which what passes for a camera's noise is an even texture:
# of a photograph noise is the lesser part, even where few photons were counted.
MOST_OF_ALL = 0.5
# Which impulses would be taken for.
WITHOUT_IMPULSES = ("gaussian", "camera")


@dataclass(frozen=True)
class DenoiseInfo:
    """What was found out about an image on the way to denoising it.

    Attributes
    ----------
    noise : str
        The noise model used; never ``"auto"``.
    sigma : float
        Deviation of the noise taken out, in the units of the image: the root of the mean variance
        over channels. For speckle it is relative to the intensity, for Poisson at the bright end.
    channel_sigma : tuple of float
        The same for each channel.
    estimated : bool
        Whether ``sigma`` was estimated from the image.
    correlated : bool
        Whether neighbouring pixels, or the channels, share their noise, as in photographs from a
        camera; white-noise denoising then leaves blotches, and ``noise="camera"`` is the better
        choice.
    whiteness : float
        Share of white noise, at least, in the upper frequencies of the quietest patches.
    data_range : float
        The range of values assumed.
    sigma_range : tuple of float, or None
        Interval that holds an estimated level of white noise with a probability of nine in ten
        (of luminance, in a colour image); None where there is none.
    established : bool
        False where an estimated level may all be texture, or is less than 2 of 255 parts of the
        range (of twice the brightest value in a dim image): ``"gaussian"`` and ``"auto"`` leave
        such an image as it is.
    impulses : bool
        Whether single pixels stand out as those that impulse noise replaced do, though the noise
        was not taken for impulses: ``noise="impulse"`` is then the better choice.
    n_components : int or None
        Of a dictionary: components projected on, at the noise level used.
    iterations, converged : float or None
        Of a dictionary: mean number of fixed-point steps, and share of the pre-images that
        converged.
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


def denoise_kpca(
    image: NDArray[Any],
    *,
    sigma: float | None = None,
    data_range: float | None = None,
    channel_axis: int | None = None,
    quality: str = "balanced",
    noise: str = "auto",
    kernel: str = "auto",
    bandwidth: float | None = None,
    content: str = "photo",
    luma: float = 1.0,
    chroma: float = 1.0,
    strength: float = 1.0,
    n_jobs: int | None = None,
) -> NDArray[np.floating]:
    """Denoise a grey or colour image by kernel PCA on groups of similar patches.

    Parameters
    ----------
    image : ndarray of shape (h, w), or with an axis of 1, 3 (RGB) or 4 (RGBA) channels
        Any real dtype; not changed.
    sigma : float, optional
        Standard deviation of the noise in the units of the image, the same in every channel. For
        ``noise="poisson"`` the deviation where the image is as bright as ``data_range``; for
        ``"speckle"`` relative to the intensity; for ``"impulse"`` that of the Gaussian noise
        beside the impulses. Default: estimated from the image, in each channel; where all that is
        measured may be texture, ``"gaussian"`` and ``"auto"`` return the image as it is. 0 returns
        the image, to the last bit that the dtype returned holds (for ``"impulse"``, without the
        impulses).
    data_range : float, optional
        Difference between the largest and the smallest value the image can take. Default: that of
        an integer dtype of 8 or 16 bits; 1 for floats that all lie in [0, 1]; else the largest
        value minus the smallest.
    channel_axis : int, optional
        The axis of the channels; None for a grey image. An alpha channel is returned as it is.
    quality : {"fast", "balanced", "high"}
        Fewer or more passes.
    noise : {"gaussian", "poisson", "speckle", "impulse", "camera", "auto"}
        The kind of noise. ``"camera"`` is for photographs whose noise is shared by neighbouring
        pixels; ``"auto"`` chooses it where the noise is found to be so, else ``"gaussian"``.
    kernel : {"auto", "linear", "rbf"}
        ``"rbf"`` is Mika's method on each group of similar patches, exp(-|x - y|^2 / c) and a
        fixed-point pre-image; ``"linear"`` is its limit as c grows. ``"auto"`` is what measures
        best: ``"rbf"`` for text, ``"linear"`` for photographs.
    bandwidth : float, optional
        c of the RBF kernel in mean squared distances between the patches of a group. Default: 4 for
        noise of up to a tenth of the range, wider above.
    content : {"photo", "text"}
        ``"text"`` uses smaller patches, for text and drawings.
    luma, chroma : float
        Factors of the noise level assumed in luminance and in colour; above 1 smooths more.
    strength : float
        0 returns the image, 1 the denoised image, between them a mixture.
    n_jobs : int, optional
        Workers; the result is the same for any number.

    Returns
    -------
    ndarray of the shape of ``image``
        In the image's units: float32 where that holds every value of the image's dtype (integers
        of 8 or 16 bits, floats of 16 or 32), else float64.

    Raises
    ------
    kpca_apps.errors.InputError
        A ValueError: the image has NaN, two channels, or an unclear channel axis.
    kpca_apps.errors.ConfigError
        A ValueError: an option is out of its range.

    Warns
    -----
    UserWarning
        ``sigma`` is less than one step of an integer dtype, as a share of the range would be;
        no noise could be established, and the image is returned as it is; or single pixels stand
        out as impulse noise makes them, which ``noise="impulse"`` takes out. `denoise_with_info`
        returns the latter two instead, as ``established`` and ``impulses``.

    Notes
    -----
    Time grows with the number of pixels: about half a minute a megapixel and channel at
    ``"balanced"`` on one core. Where ``sigma`` is unknown and matters,
    `skimage.restoration.calibrate_denoiser` can choose it.

    References
    ----------
    S. Mika et al. (1998), "Kernel PCA and de-noising in feature spaces", NIPS 11.
    P. Herbreteau, C. Kervrann (2022), "Towards a unified view of unsupervised non-local methods
    for image denoising: the NL-Ridge approach", ICIP.

    Examples
    --------
    >>> clean = np.kron([[0.2, 0.8], [0.6, 0.4]], np.ones((16, 16)))
    >>> noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> denoised = denoise_kpca(noisy, sigma=0.1, data_range=1)
    >>> bool(np.std(denoised - clean) < 0.03)
    True
    """
    denoised, info = denoise_with_info(
        image,
        sigma=sigma,
        data_range=data_range,
        channel_axis=channel_axis,
        quality=quality,
        noise=noise,
        kernel=kernel,
        bandwidth=bandwidth,
        content=content,
        luma=luma,
        chroma=chroma,
        strength=strength,
        n_jobs=n_jobs,
    )
    # Who asks for the image alone learns it nowhere else.
    asked = strength > 0.0 and sigma != 0
    if asked and info.impulses:
        warnings.warn(
            "Single pixels stand out as impulse noise (salt and pepper) makes them: "
            'noise="impulse" takes them out.',
            stacklevel=2,
        )
    if asked and not info.established:
        warnings.warn(
            "No noise could be established, and the image is returned as it was: what was measured "
            "may be texture, or is too faint to be seen. If there is noise, give its sigma.",
            stacklevel=2,
        )
    return denoised


def denoise_with_info(
    image: NDArray[Any],
    *,
    sigma: float | None = None,
    data_range: float | None = None,
    channel_axis: int | None = None,
    **options: Any,
) -> tuple[NDArray[np.floating], DenoiseInfo]:
    """Denoise an image and say what noise was taken out.

    Parameters
    ----------
    image, sigma, data_range, channel_axis
        As for `denoise_kpca`.
    **options
        The other options of `denoise_kpca`.

    Returns
    -------
    denoised : ndarray
        As from `denoise_kpca`.
    info : DenoiseInfo

    Examples
    --------
    >>> denoised, info = denoise_with_info(np.zeros((8, 8), np.uint8), sigma=3, quality="fast")
    >>> info.noise, info.sigma, info.estimated, info.data_range
    ('gaussian', 3.0, False, 255.0)
    """
    chosen = Options(**options)
    cleaned = clean_image(
        image, chosen, sigma=sigma, data_range=data_range, channel_axis=channel_axis
    )
    return cleaned.at(chosen.strength), cleaned.info


@dataclass(frozen=True)
class Cleaned:
    """An image and its planes denoised, to be had at any strength."""

    picture: Picture
    planes: NDArray[np.float32]
    info: DenoiseInfo

    def at(self, strength: float) -> NDArray[np.floating]:
        """Return the image at a strength from 0, as given, to 1, denoised."""
        cleaned = self.planes
        if strength < 1.0:
            given = self.picture.planes
            cleaned = given + np.float32(strength) * (cleaned - given)
        return self.picture.restored(cleaned)


def clean_image(
    image: NDArray[Any],
    options: Options,
    *,
    sigma: float | None = None,
    data_range: float | None = None,
    channel_axis: int | None = None,
) -> Cleaned:
    """Denoise an image whose strength may be chosen afterwards; nothing is done for one of 0."""
    picture = read_picture(image, data_range=data_range, channel_axis=channel_axis)
    white, noise = measure_white(picture.planes), options.noise
    if noise == "auto":
        noise = "camera" if white.correlated else "gaussian"
    level = _scaled_sigma(sigma, noise, picture)
    if doubt := doubt_level(sigma, noise, picture.colours.dtype, picture.data_range):
        warnings.warn(doubt, stacklevel=4)
    known: Any = level
    measured, established = white.channels, True
    if level is None and (noise == "gaussian" or (noise == "camera" and options.noise == "auto")):
        measured, established = _measured_levels(noise, white, picture)
        # White noise was measured above: the model need not do so again.
        known = measured if noise == "gaussian" else None
    idle = (level == 0.0 and noise != "impulse") or options.strength == 0.0
    if not established:
        cleaned, levels = picture.planes, measured
    elif idle:
        cleaned, levels = picture.planes, (level or 0.0,) * len(picture.planes)
    else:
        # Poisson and speckle count from no light, which need not be the lowest value.
        black = np.float32(picture.lowest * picture.unit if noise in FROM_BLACK else 0.0)
        planes = picture.planes + black if black else picture.planes
        cleaned, levels = MODELS[noise](planes, known, options)
        cleaned = cleaned - black if black else cleaned
    return Cleaned(
        picture, cleaned, _info(noise, levels, white, level is None, established, picture)
    )


def doubt_level(sigma: float | None, noise: str, dtype: np.dtype[Any], data_range: float) -> str:
    """Say so where a level was most likely meant as a share of the range of values."""
    if sigma is None or not 0.0 < sigma < 1.0 or dtype.kind not in "ui" or noise == "speckle":
        return ""
    return (
        f"sigma {sigma:g} is less than one step of {dtype}, and takes out next to nothing: if a "
        f"share of the range was meant, give {sigma * data_range:g}."
    )


def measure_noise(
    image: NDArray[Any], *, data_range: float | None = None, channel_axis: int | None = None
) -> DenoiseInfo:
    """Estimate the noise of an image in each channel, without denoising it.

    Parameters
    ----------
    image, data_range, channel_axis
        As for `denoise_kpca`.

    Returns
    -------
    DenoiseInfo
        With ``noise="camera"`` where the noise is correlated, else ``"gaussian"``, and the level
        that denoising with ``noise="auto"`` takes out.

    Examples
    --------
    >>> noisy = 100 + 5 * np.random.default_rng(0).standard_normal((64, 64))
    >>> 4.5 < measure_noise(noisy, data_range=255).sigma < 5.5
    True
    """
    picture = read_picture(image, data_range=data_range, channel_axis=channel_axis)
    white = measure_white(picture.planes)
    noise = "camera" if white.correlated else "gaussian"
    levels, established = _measured_levels(noise, white, picture)
    return _info(noise, levels, white, True, established, picture)


def _measured_levels(
    noise: str, white: NoiseEstimate, picture: Picture
) -> tuple[tuple[float, ...], bool]:
    """Return the level in each channel, and whether there is noise for sure, worth taking out."""
    if noise == "camera":
        levels = camera_levels(picture.planes)
        variance = float(picture.planes.var(axis=(1, 2)).mean())
        return levels, float(np.mean(np.square(levels))) <= MOST_OF_ALL * variance
    lowest = picture.lowest * picture.unit
    brightest = max(abs(lowest), float(picture.planes.max()) + lowest)
    faint = FAINT * min(255.0, 2.0 * brightest)
    strongest = max(white.channels)
    return white.channels, white.established and (strongest == 0 or strongest > faint)


def _scaled_sigma(sigma: float | None, noise: str, picture: Picture) -> float | None:
    """Return the level given, checked, on the scale of the planes (speckle: as it is)."""
    if sigma is None:
        return None
    given: Any = sigma
    if not isinstance(given, Real):
        raise ConfigError(f"sigma is {sigma!r}; give one number, or None to have it estimated")
    if not (np.isfinite(sigma) and sigma >= 0):
        raise ConfigError(f"sigma is {sigma}; give a finite number of 0 or more")
    if noise == "speckle":
        if sigma > MOST_SPECKLE:
            raise ConfigError(
                f"sigma is {sigma:g}, but for speckle it is relative to the intensity: "
                f"give at most {MOST_SPECKLE:g}"
            )
        return float(sigma)
    if sigma > picture.data_range:
        raise ConfigError(
            f"sigma is {sigma:g}, above the data range of {picture.data_range:g}: "
            "give sigma in the units of the image, or its data_range"
        )
    return float(sigma) * picture.unit


def _info(
    noise: str,
    levels: tuple[float, ...],
    white: NoiseEstimate,
    estimated: bool,
    established: bool,
    picture: Picture,
) -> DenoiseInfo:
    """Return what was found out, in the units of the image, from levels on the scale 0..255."""
    unit = picture.unit
    channels = levels if noise == "speckle" else tuple(level / unit for level in levels)
    interval = (white.low / unit, white.high / unit) if estimated and noise == "gaussian" else None
    return DenoiseInfo(
        noise=noise,
        sigma=float(np.sqrt(np.mean(np.square(channels)))),
        channel_sigma=channels,
        estimated=estimated,
        correlated=white.correlated,
        whiteness=white.whiteness,
        data_range=picture.data_range,
        sigma_range=interval,
        established=established,
        impulses=noise in WITHOUT_IMPULSES and any(map(has_impulses, picture.planes)),
    )
