"""Denoise an image of any kind: `denoise_kpca`, `denoise_with_info`, `measure_noise`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Real
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kpca_apps.denoise.defects import remove_defects
from kpca_apps.denoise.estimate.info import NO_DEFECTS
from kpca_apps.denoise.estimate.info import DenoiseInfo as DenoiseInfo
from kpca_apps.denoise.image import Axes, Picture, checked_image, read_picture, value_range
from kpca_apps.denoise.masks import Mask, both, checked_mask
from kpca_apps.denoise.noise.choose import MODELS, inspect, is_pattern, typical_laws
from kpca_apps.denoise.noise.model import Measured
from kpca_apps.denoise.options import (
    NOISE_MODELS,
    Content,
    MethodName,
    Options,
    Quality,
    is_relative,
)
from kpca_apps.denoise.progress import share_of_work
from kpca_apps.denoise.regions import Region, window_around, window_of
from kpca_apps.denoise.result import NoiseLaw
from kpca_apps.errors import ConfigError, warn_caller
from kpca_apps.names import shown
from kpca_apps.options import is_number
from kpca_apps.system.blas import one_blas_thread

Parameters = ParamSpec("Parameters")
Denoised = TypeVar("Denoised")
Opened = tuple[NDArray[Any], Axes, Mask | None]
Noise = Literal["auto", "gaussian", "poisson", "speckle", "impulse", "camera"]

COLOURS = (1, 3, 4)  # numbers of channels of grey, RGB and RGBA images
SIGMA_A_CHANNEL = ("gaussian", "poisson")  # kinds of noise whose level may differ between channels
MOST_RELATIVE = 2.0  # largest noise level relative to the intensity


def denoise_with_info(
    image: NDArray[Any],
    *,
    sigma: float | Sequence[float] | None = None,
    data_range: float | None = None,
    channel_axis: int | None = None,
    stack_axis: int | None = None,
    mask: ArrayLike | None = None,
    region: Region | None = None,
    quality: Quality = "balanced",
    noise: Noise = "auto",
    method: MethodName = "rbf",
    bandwidth: float | None = None,
    content: Content = "photo",
    luma: float = 1.0,
    chroma: float = 1.0,
    strength: float = 1.0,
    n_jobs: int | None = None,
) -> tuple[NDArray[np.floating], DenoiseInfo]:
    """Denoise an image; return the denoised image, and a description of its noise.

    Parameters
    ----------
    image, sigma, data_range, channel_axis, stack_axis, mask, region
        As for `denoise_kpca`.
    quality, noise, method, bandwidth, content, luma, chroma, strength, n_jobs
        As for `denoise_kpca`.

    Returns
    -------
    denoised : ndarray
        As from `denoise_kpca`.
    info : DenoiseInfo
        The measured noise.

    Examples
    --------
    >>> denoised, info = denoise_with_info(np.zeros((8, 8), np.uint8), sigma=3, quality="fast")
    >>> info.noise, info.sigma, info.estimated, info.data_range
    ('gaussian', 3.0, False, 255.0)
    """
    options = Options(
        quality=quality,
        noise=noise,
        method=method,
        bandwidth=bandwidth,
        content=content,
        luma=luma,
        chroma=chroma,
        strength=strength,
        n_jobs=n_jobs,
    )
    # The caller's numpy error settings do not apply here.
    with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        opened = _opened(image, channel_axis, stack_axis, mask)
        found = _denoised(opened, options, Given(sigma, data_range, region))
    info = found[1]
    if doubt := doubt_level(sigma, info.noise, np.asarray(image).dtype, info.data_range):
        warn_caller(doubt)
    return found


def _called_as(
    other: Callable[Parameters, Any],
) -> Callable[[Callable[..., Denoised]], Callable[Parameters, Denoised]]:
    """Give a function the signature of another function."""

    def decorate(function: Callable[..., Denoised]) -> Callable[Parameters, Denoised]:
        own = signature(other).replace(return_annotation=signature(function).return_annotation)
        function.__signature__ = own  # type: ignore[attr-defined]
        return function

    return decorate


@_called_as(denoise_with_info)
def denoise_kpca(image: NDArray[Any], **options: Any) -> NDArray[np.floating]:
    """Denoise a grey or colour image by kernel PCA on groups of similar patches.

    Parameters
    ----------
    image : ndarray of shape (h, w), or with an axis of channels
        Any real dtype; not changed. 3 channels are red, green and blue, 4 have alpha; with other
        numbers of channels, each channel is denoised separately. With `stack_axis`, the image also
        has an axis of pages. Pixels that are NaN, masked in a masked array or fully transparent are
        not data, like pixels outside `mask` and padding (areas of one value at the border).
    sigma : float or sequence of float, optional
        Standard deviation of the noise in the units of the image, the same in every channel, or
        one for each channel except alpha (for ``"gaussian"`` and ``"poisson"`` noise). For
        ``"poisson"``, the deviation where the image is as bright as ``data_range``; for
        ``"speckle"``, relative to the intensity; for ``"impulse"``, that of the Gaussian noise in
        addition to the impulses. Default: estimated in each channel; if the estimate may be texture
        only, ``"gaussian"`` and ``"auto"`` return the image unchanged. 0 returns the image
        unchanged in the returned dtype (for ``"impulse"``, without the impulses).
    data_range : float, optional
        Difference between the largest and the smallest value the image can take. Default: that of
        an unsigned integer dtype of 8 or 16 bits; 1 for floats in [0, 1] that span at least a
        tenth of that range; else the largest value minus the smallest. Values are not clipped to
        this range.
    channel_axis : int, optional
        The axis of the channels; None for a grey image. An alpha channel is returned unchanged.
    stack_axis : int, optional
        The axis of the pages of a volume or film, which are denoised together with one noise level,
        for ``"gaussian"`` and ``"poisson"`` noise.
    mask : array-like of shape (h, w) or (pages, h, w), optional
        Non-zero where there are data. Other pixels are returned unchanged, and do not affect the
        result. Default: data everywhere.
    region : tuple of int, optional
        Column and row of a corner, width and height of the part to denoise. The noise is measured
        in this part; for ``"impulse"``, also in a margin. The rest is returned unchanged. Default:
        the whole image.
    quality : {"draft", "fast", "balanced", "high"}
        More passes at higher quality; a draft also uses smaller groups on coarser grids. Has no
        effect on a stack.
    noise : {"gaussian", "poisson", "speckle", "impulse", "camera", "auto"}
        The kind of noise. ``"camera"`` is for photographs whose noise is shared by neighbouring
        pixels, ``"poisson"`` for noise whose variance grows with brightness, such as photon noise,
        and ``"speckle"`` for noise that multiplies the brightness. ``"auto"`` chooses one of these
        if it detects such noise (in stacks ``"poisson"`` for speckle), else ``"gaussian"``. Except
        for ``"impulse"``, lone pixels, dead lines and stripes of the sensor are removed first.
    method : {"rbf", "linear", "mika"}
        ``"mika"`` is one pass of kernel PCA on each group of similar patches, with the kernel
        ``exp(-|x - y|^2 / c)``, truncation of components at the noise level, and fixed-point
        pre-images (Mika et al. 1998). ``"rbf"`` adds passes on the first estimate, one of them with
        a Tikhonov filter. ``"linear"`` is the limit of ``"rbf"`` for large c: principal components,
        and a Wiener filter. All methods are linear in groups whose patches differ little beyond
        their noise, as most groups of photographs.
    bandwidth : float, optional
        c of the RBF kernel, in squared distances between patches of noise alone. Default: 12 for
        noise of 5 to 10 % of the range, wider below and above.
    content : {"photo", "text"}
        ``"text"`` uses smaller patches, for text and drawings.
    luma, chroma : float
        Factors of the noise level assumed in luminance and in colour; above 1 smooths more.
    strength : float
        0 returns the image, 1 the denoised image, values between them a mixture.
    n_jobs : int, optional
        Number of threads; the result is the same for any number.

    Returns
    -------
    ndarray of the shape of ``image``
        In the image's units: float32 if float32 holds every value of the image's dtype (integers
        of 8 or 16 bits, floats of 16 or 32), else float64. Float images are never clipped; values
        of an integer image are clipped only to the range of its dtype. Negative values, as from
        background subtraction, stay negative.

    Raises
    ------
    kpca_apps.errors.InputError
        A ValueError: the image has infinite values or no data, its channel axis is unclear, its
        mask has another shape, or the region is not inside the image.
    kpca_apps.errors.ConfigError
        A ValueError: an option is out of its range.

    Warns
    -----
    UserWarning
        If ``sigma`` is less than one step of an integer dtype, and so may be a share of the range.
        If no noise was established, and the image is returned unchanged. If single pixels stand out
        like impulses, which ``noise="impulse"`` removes. `denoise_with_info` returns the last two
        as ``established`` and ``impulses`` instead.

    Notes
    -----
    Time grows with the number of pixels: about ten seconds a megapixel and channel at
    ``"balanced"`` on one core. If ``sigma`` is unknown and important,
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
    given = signature(denoise_kpca).bind(image, **options)
    given.apply_defaults()
    denoised, info = denoise_with_info(*given.args, **given.kwargs)
    # Callers do not get `info`, so warn of impulses and of unestablished noise here.
    sigma, strength = (given.arguments[name] for name in ("sigma", "strength"))
    denoises = strength > 0.0 and (sigma is None or np.any(sigma))
    if denoises and info.impulses:
        warn_caller(
            "Single pixels stand out, as in impulse noise (salt and pepper): "
            'noise="impulse" removes them.'
        )
    if denoises and not info.established:
        warn_caller(
            "No noise could be established, and the image is returned as it was: what was measured "
            "may be texture, or is too faint to be seen. If there is noise, give its sigma."
        )
    return denoised


@dataclass(frozen=True)
class Given:
    """What is known of an image, and the part of the image to denoise."""

    sigma: float | Sequence[float] | None = None
    data_range: float | None = None
    region: Region | None = None
    laws: Sequence[NoiseLaw] = ()  # noise law of each channel, in the image's units
    stripes: NDArray[np.float32] | None = None  # offset of each pixel of the planes; None: unknown


def _denoised(
    opened: Opened, options: Options, given: Given
) -> tuple[NDArray[np.floating], DenoiseInfo]:
    """Denoise an image of any number of channels, each separately unless they are colours."""
    planes, axes, data = opened
    if (count := len(planes)) in COLOURS:
        cleaned = _clean(read_picture(planes, axes, given.data_range, data), options, given)
        return cleaned.at(options.strength), cleaned.info
    sigma: Any = given.sigma
    levels = [sigma] * count if np.ndim(sigma) == 0 else [*sigma]
    if len(levels) != count:
        raise ConfigError(
            f"sigma has {len(levels)} levels and the image {count} channels: give one number, or "
            "one for each channel"
        )
    values = planes if data is None else planes[:, data]
    values = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    data_range = value_range(values if values.size else np.zeros(1), given.data_range)[0]
    parts = [
        _clean(
            read_picture(planes[k : k + 1], axes, data_range, data),
            options,
            replace(given, sigma=level),
        )
        for k, level in enumerate(levels)
    ]
    infos = [part.info for part in parts]
    # Speckle levels are relative to the intensity and cannot be averaged with absolute levels.
    strongest = max(infos, key=lambda info: (not is_relative(info.noise), info.sigma))
    alike = [one.sigma for one in infos if is_relative(one.noise) == is_relative(strongest.noise)]
    info = replace(
        strongest,
        sigma=float(np.sqrt(np.mean(np.square(alike)))),
        channel_sigma=tuple(info.sigma for info in infos),
        established=all(info.established for info in infos),
        impulses=any(info.impulses for info in infos),
    )
    restored = [part.picture.restored(part.planes, options.strength) for part in parts]
    return axes.back(np.concatenate(restored)), info


@dataclass(frozen=True)
class Cleaned:
    """An image and its denoised planes, which can be mixed at any strength."""

    picture: Picture
    planes: NDArray[np.float32]
    info: DenoiseInfo

    def at(self, strength: float) -> NDArray[np.floating]:
        """Return the image at a strength from 0 (unchanged to the last bit) to 1 (denoised)."""
        return self.picture.axes.back(self.picture.restored(self.planes, strength))


def clean_image(
    image: NDArray[Any],
    options: Options,
    given: Given = Given(),
    *,
    channel_axis: int | None = None,
    stack_axis: int | None = None,
    mask: ArrayLike | None = None,
) -> Cleaned:
    """Denoise an image fully; later, the result can be mixed with the original at any strength.

    If the strength in `options` is 0, only measure the noise.
    """
    planes, axes, data = _opened(image, channel_axis, stack_axis, mask)
    return _clean(read_picture(planes, axes, given.data_range, data), options, given)


def _opened(
    image: NDArray[Any], channel_axis: int | None, stack_axis: int | None, mask: ArrayLike | None
) -> Opened:
    """Return the planes of an image, its axes, and its mask (pages, h, w) if it has one."""
    hidden = np.ma.getmaskarray(image) if isinstance(image, np.ma.MaskedArray) else None
    image = checked_image(image)
    axes = Axes.of(image.shape, channel_axis, stack_axis)
    planes = axes.first(image)
    data = None if mask is None else checked_mask(mask, planes.shape[1:])
    if hidden is not None:
        data = both(data, np.asarray(~axes.first(hidden).any(axis=0)))
    return planes, axes, data


def _clean(picture: Picture, options: Options, given: Given) -> Cleaned:
    """Denoise a picture, or only a region of it."""
    options = replace(options, pages=picture.n_pages)
    if given.region is None:
        return _clean_all(picture, picture, options, given)
    wanted = window_of(given.region, picture.size)
    around, inside = window_around(wanted, picture.size)
    piece = picture.cut(around)
    cleaned = _clean_all(piece, piece.cut(inside), options, given)
    planes = picture.planes()
    target, found = picture.pages_of(planes), piece.pages_of(cleaned.planes)
    (top, bottom), (left, right) = wanted
    (above, below), (before, behind) = inside
    target[..., top:bottom, left:right] = found[..., above:below, before:behind]
    return Cleaned(picture, planes, cleaned.info)


def _clean_all(picture: Picture, measured: Picture, options: Options, given: Given) -> Cleaned:
    """Denoise a picture by the noise of its part `measured`; if R = G = B, denoise it as grey."""
    first, *others = picture.colours
    sigma: Any = given.sigma
    is_list = isinstance(sigma, list | tuple | np.ndarray) and np.ndim(sigma) == 1
    is_one_level = not is_list or (len(sigma) == 3 and sigma[0] == sigma[1] == sigma[2])
    # Use one BLAS thread, as the order of sums may change last bits and so the chosen noise law.
    with one_blas_thread():
        if others and is_one_level and all(np.array_equal(first, one) for one in others):
            given = replace(given, sigma=sigma[0] if is_list else sigma, laws=given.laws[:1])
            planes, info = _clean_picture(picture.grey(), measured.grey(), options, given)
            info = replace(info, channel_sigma=3 * info.channel_sigma, laws=3 * info.laws)
            return Cleaned(picture, np.repeat(planes, 3, axis=0), info)
        return Cleaned(picture, *_clean_picture(picture, measured, options, given))


def _clean_picture(
    picture: Picture, measured: Picture, options: Options, known: Given
) -> tuple[NDArray[np.float32], DenoiseInfo]:
    """Denoise the planes of a picture; measure the noise first unless its level is given."""
    given, unit, is_part = picture, picture.unit, measured is not picture
    defects, sigma = NO_DEFECTS, known.sigma
    if known.stripes is not None:
        planes = picture.planes() - known.stripes[: len(picture.colours)] * np.float32(unit)
        picture = measured = replace(picture, corrected=planes)
    # Impulse noise consists of lone pixels, which its own model removes.
    if options.noise != "impulse" and picture.n_pages == 1:
        picture = replace(picture, corrected=picture.planes())
        measured = replace(measured, corrected=measured.planes()) if is_part else picture
        defects = remove_defects(measured.planes(), picture.step, striped=known.stripes is None)
        if is_part:
            remove_defects(picture.planes(), picture.step, striped=any(defects[3:]))
    # Denoising for a measurement does not count as progress.
    with share_of_work(0.0, 0.0):
        inspected = inspect(measured, options, sigma, known.laws, is_whole=measured is picture)
        noise = MODELS[inspected.noise].measure(inspected) if sigma is None else None
        pattern = options.noise == "auto" and noise is not None and is_pattern(inspected, noise)
    name, idle = inspected.noise, pattern
    planes = picture.planes() if is_part else inspected.planes
    is_relative = NOISE_MODELS[name].relative
    if noise is None:
        level = _scaled_sigma(sigma, name, picture)
        levels = level if isinstance(level, tuple) else (level,) * len(planes)
        noise = Measured(level, levels, black=inspected.black)
        idle = not any(levels) and not NOISE_MODELS[name].beside
    levels = noise.levels
    if not noise.established or idle or options.strength == 0.0:
        cleaned = given.planes()
        defects = defects if noise.established and not idle else NO_DEFECTS
    else:
        black = np.float32(noise.black)
        if picture.data is not None:
            planes = picture.continued()
        place = np.float32(1.0) if inspected.place is None else inspected.place
        # If the noise level varies over the image, set `shared`, which skips the second pass. That
        # pass would restore noise wherever the measured level is too low.
        options = replace(options, shared=inspected.place is not None)
        # Reuse the memory of the planes, which are not needed any more.
        planes += black
        planes /= place
        cleaned, levels = MODELS[name].denoise(planes, noise.known, options)
        cleaned *= place
        cleaned -= black
    channels = levels if is_relative else tuple(level / unit for level in levels)
    found = float(np.sqrt(np.mean(np.square(channels))))
    place_range = None
    if inspected.place is not None:
        place_range = found * float(inspected.place.min()), found * float(inspected.place.max())
    # The interval was measured for unclipped noise in luminance: widen it if `found` is outside.
    likely = [one / unit for one in noise.interval or ()]
    info = replace(
        inspected.white,
        noise=name,
        sigma=found,
        channel_sigma=channels,
        estimated=sigma is None,
        data_range=picture.data_range,
        sigma_range=(min(*likely, found), max(*likely, found)) if likely else None,
        established=noise.established and not pattern,
        pattern=pattern,
        impulses=inspected.impulses and not pattern,
        defects=defects,
        empty=0.0 if picture.data is None else 1.0 - float(picture.data.mean()),
        place_range=place_range,
        laws=typical_laws(inspected.laws, picture),
    )
    return cleaned, info


def doubt_level(
    sigma: float | Sequence[float] | None, noise: str, dtype: np.dtype[Any], data_range: float
) -> str:
    """Return a warning if a level was probably meant as a share of the data range."""
    if not isinstance(sigma, int | float) or dtype.kind not in "ui" or is_relative(noise):
        return ""
    if not 0.0 < sigma < 1.0:
        return ""
    return (
        f"sigma {sigma:g} is less than one step of {dtype}, and removes almost nothing: if you "
        f"meant a share of the range, give {sigma * data_range:g}."
    )


def measure_noise(
    image: NDArray[Any],
    *,
    data_range: float | None = None,
    channel_axis: int | None = None,
    mask: ArrayLike | None = None,
) -> DenoiseInfo:
    """Estimate the noise of an image in each channel, without denoising it.

    Parameters
    ----------
    image, data_range, channel_axis, mask
        As for `denoise_kpca`.

    Returns
    -------
    DenoiseInfo
        The level that ``noise="auto"`` removes. The noise is ``"camera"`` if it is correlated,
        ``"poisson"`` if its variance grows with brightness, ``"speckle"`` if its deviation is a
        share of the brightness, else ``"gaussian"``.

    Examples
    --------
    >>> noisy = 100 + 5 * np.random.default_rng(0).standard_normal((64, 64))
    >>> 4.5 < measure_noise(noisy, data_range=255).sigma < 5.5
    True
    """
    options, given = Options(strength=0.0), Given(data_range=data_range)
    return clean_image(image, options, given, channel_axis=channel_axis, mask=mask).info


def _scaled_sigma(sigma: Any, noise: str, picture: Picture) -> float | tuple[float, ...]:
    """Return the checked level on the scale of the planes; leave a relative level unchanged."""
    if isinstance(sigma, list | tuple | np.ndarray) and np.ndim(sigma) == 1:
        if noise not in SIGMA_A_CHANNEL:
            raise ConfigError(
                f"sigma is one a channel, which is for {' and '.join(SIGMA_A_CHANNEL)} noise; "
                f"give one number for {noise} noise"
            )
        if len(sigma) != len(picture.colours):
            raise ConfigError(
                f"sigma has {len(sigma)} levels and the image {len(picture.colours)} channels: "
                "give one number, or one for each channel but alpha"
            )
        return tuple(float(_scaled_sigma(one, noise, picture)) for one in sigma)  # type: ignore[arg-type]
    if isinstance(sigma, bool) or not isinstance(sigma, Real):
        raise ConfigError(f"sigma is {shown(sigma)}; give one number, or None to have it estimated")
    if not is_number(sigma, 0.0):
        raise ConfigError(f"sigma is {shown(sigma)}; give a finite number of 0 or more")
    given, relative = float(sigma), is_relative(noise)
    if relative and given > MOST_RELATIVE:
        raise ConfigError(
            f"sigma is {sigma:g}, but for {noise} it is relative to the intensity: "
            f"give at most {MOST_RELATIVE:g}"
        )
    if not relative and given > picture.data_range:
        raise ConfigError(
            f"sigma is {sigma:g}, above the data range of {picture.data_range:g}: "
            "give sigma in the units of the image, or its data_range"
        )
    return given if relative else given * picture.unit
