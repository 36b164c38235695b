"""The door to denoising: any image in, a clean image out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.camera import measure_camera
from kpca_apps.denoise.colour import noise_in_opponent, to_opponent
from kpca_apps.denoise.law import NoiseLaw, measure_laws
from kpca_apps.denoise.models import (
    MODELS,
    SCALE,
    WITH_IMPULSES,
    Levels,
    Light,
    Lights,
    Planes,
    has_impulses,
    light_of,
    measure_poisson,
    measure_white,
)
from kpca_apps.denoise.noise import DenoiseInfo
from kpca_apps.denoise.options import (
    LARGEST_RANGE,
    LEAST_RANGE,
    NOISE_MODELS,
    Content,
    KernelName,
    Options,
    Quality,
)
from kpca_apps.errors import ConfigError, InputError, warn_caller

__all__ = [
    "Cleaned",
    "DenoiseInfo",
    "clean_image",
    "denoise_kpca",
    "denoise_with_info",
    "doubt_level",
    "measure_noise",
]

Noise = Literal["auto", "gaussian", "poisson", "speckle", "impulse", "camera"]

COLOURS = (1, 3, 4)  # channels that are grey, or red, green and blue, with alpha perhaps
SIGMA_A_CHANNEL = ("gaussian", "poisson")  # noise whose level may differ between channels
MEASURED_PAGES = 5  # of a stack
GOLDEN = (5**0.5 - 1) / 2
# Pixels of the blur from which neighbours share their noise: less is hardly told from none.
SHARED_BLUR = 0.4
MOST_RELATIVE = 2.0  # noise level, in terms of the intensity
# Of the range, or of twice the brightest value of a dim image: estimated noise below is hardly
# seen, and the grain of clean photographs is as strong.
FAINT = 2.0 / 255.0
# Noise that follows a law is noise for sure: of the range that an image uses, between these
# quantiles, it may be weaker.
FAINT_LAW, USED = 0.7 / 255.0, (0.001, 0.999)
# Variance in the light over that in the dark from which it rises plainly: white noise whose ends
# are cut off looks as if it rose by up to 2.
RISING = 2.5
# Or log odds: of white noise and texture they are up to 14, measured on 60 pictures.
PLAIN = 16.0
# The variance of colours' noise by its law, at most, in terms of what their differences show.
CONFIRMED = 1.5
# Share of the variance of an image above which what passes for a camera's noise is an even texture:
# of a photograph noise is the lesser part, even where few photons were counted.
MOST_OF_ALL = 0.5
# Which impulses would be taken for.
WITHOUT_IMPULSES = ("gaussian", "camera")

MOST_BEYOND = 1e6  # data ranges an image may span: single precision would over- or underflow
NARROW = 2  # bytes: unsigned integers no wider fill the range of their dtype
# Of [0, 1]: floats that span less of it are in other units, such as the metres of a microscope.
LEAST_OF_UNIT = 0.1


def denoise_kpca(
    image: NDArray[Any],
    *,
    sigma: float | Sequence[float] | None = None,
    data_range: float | None = None,
    channel_axis: int | None = None,
    stack_axis: int | None = None,
    quality: Quality = "balanced",
    noise: Noise = "auto",
    kernel: KernelName = "auto",
    bandwidth: float | None = None,
    content: Content = "photo",
    luma: float = 1.0,
    chroma: float = 1.0,
    strength: float = 1.0,
    n_jobs: int | None = None,
) -> NDArray[np.floating]:
    """Denoise a grey or colour image by kernel PCA on groups of similar patches.

    Parameters
    ----------
    image : ndarray of shape (h, w), or with an axis of channels
        Any real dtype; not changed. 3 channels are red, green and blue, 4 have alpha; of any other
        number each is denoised on its own. With `stack_axis` it has an axis of pages, too.
    sigma : float or sequence of float, optional
        Standard deviation of the noise in the units of the image, the same in every channel, or
        one for each channel but alpha (for ``"gaussian"`` and ``"poisson"`` noise). For
        ``noise="poisson"`` the deviation where the image is as bright as ``data_range``; for
        ``"speckle"`` relative to the intensity; for ``"impulse"`` that of the Gaussian noise
        beside the impulses. Default: estimated from the image, in each channel; where all that is
        measured may be texture, ``"gaussian"`` and ``"auto"`` return the image as it is. 0 returns
        the image, to the last bit that the dtype returned holds (for ``"impulse"``, without the
        impulses).
    data_range : float, optional
        Difference between the largest and the smallest value the image can take. Default: that of
        an unsigned integer dtype of 8 or 16 bits; 1 for floats that lie in [0, 1] and span a tenth
        of it at least; else the largest value minus the smallest. A scale only: nothing is clipped
        to it.
    channel_axis : int, optional
        The axis of the channels; None for a grey image. An alpha channel is returned as it is.
    stack_axis : int, optional
        The axis of the pages of a volume or film, which are denoised together, for
        ``"gaussian"`` and ``"poisson"`` noise; one level of noise holds for all.
    quality : {"fast", "balanced", "high"}
        Fewer or more passes; a stack has the same at each.
    noise : {"gaussian", "poisson", "speckle", "impulse", "camera", "auto"}
        The kind of noise. ``"camera"`` is for photographs whose noise is shared by neighbouring
        pixels, ``"poisson"`` for noise whose variance grows with brightness, as that of counted
        light; ``"auto"`` chooses either where the noise is found to be so, else ``"gaussian"``.
    kernel : {"auto", "linear", "rbf"}
        ``"rbf"`` is Mika's method on each group of similar patches, ``exp(-|x - y|^2 / c)`` and a
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
        of 8 or 16 bits, floats of 16 or 32), else float64. Floats are never clipped, not at 0 or 1
        and not at `data_range`; values of an integer image only at the range of its dtype. What a
        subtracted background made negative stays so.

    Raises
    ------
    kpca_apps.errors.InputError
        A ValueError: the image has NaN, or an unclear channel axis.
    kpca_apps.errors.ConfigError
        A ValueError: an option is out of its range.

    Warns
    -----
    UserWarning
        ``sigma`` is less than one step of an integer dtype, as a share of the range would be;
        no noise could be established, and the image is returned as it is; or single pixels stand
        out as impulse noise makes them, which ``noise="impulse"`` removes. `denoise_with_info`
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
    options = Options(
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
    with _own_floats():
        denoised, info = _denoised(image, options, sigma, data_range, channel_axis, stack_axis)
    # Who asks for the image alone learns it nowhere else.
    asked = strength > 0.0 and (sigma is None or np.any(sigma))
    if asked and info.impulses:
        warn_caller(
            "Single pixels stand out as impulse noise (salt and pepper) makes them: "
            'noise="impulse" takes them out.'
        )
    if asked and not info.established:
        warn_caller(
            "No noise could be established, and the image is returned as it was: what was measured "
            "may be texture, or is too faint to be seen. If there is noise, give its sigma."
        )
    return denoised


def denoise_with_info(
    image: NDArray[Any],
    *,
    sigma: float | Sequence[float] | None = None,
    data_range: float | None = None,
    channel_axis: int | None = None,
    stack_axis: int | None = None,
    quality: Quality = "balanced",
    noise: Noise = "auto",
    kernel: KernelName = "auto",
    bandwidth: float | None = None,
    content: Content = "photo",
    luma: float = 1.0,
    chroma: float = 1.0,
    strength: float = 1.0,
    n_jobs: int | None = None,
) -> tuple[NDArray[np.floating], DenoiseInfo]:
    """Denoise an image and say what noise was removed.

    Parameters
    ----------
    image, sigma, data_range, channel_axis, stack_axis
        As for `denoise_kpca`.
    quality, noise, kernel, bandwidth, content, luma, chroma, strength, n_jobs
        As for `denoise_kpca`.

    Returns
    -------
    denoised : ndarray
        As from `denoise_kpca`.
    info : DenoiseInfo
        What was found out on the way.

    Examples
    --------
    >>> denoised, info = denoise_with_info(np.zeros((8, 8), np.uint8), sigma=3, quality="fast")
    >>> info.noise, info.sigma, info.estimated, info.data_range
    ('gaussian', 3.0, False, 255.0)
    """
    options = Options(
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
    with _own_floats():
        return _denoised(image, options, sigma, data_range, channel_axis, stack_axis)


def _own_floats() -> np.errstate:
    """Leave what the caller wants to be told of floats out of range to the caller's own sums."""
    return np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")


def _denoised(
    image: NDArray[Any],
    options: Options,
    sigma: float | Sequence[float] | None,
    data_range: float | None,
    channel_axis: int | None,
    stack_axis: int | None,
) -> tuple[NDArray[np.floating], DenoiseInfo]:
    """Denoise an image of any number of channels, each on its own if they are no colours."""
    axes = {"data_range": data_range, "stack_axis": stack_axis}
    count = _channel_count(image, channel_axis, stack_axis)
    if count in COLOURS:
        cleaned = clean_image(image, options, sigma=sigma, channel_axis=channel_axis, **axes)  # type: ignore[arg-type]
        return cleaned.at(options.strength), cleaned.info
    levels = [sigma] * count if np.ndim(sigma) == 0 else [*sigma]  # type: ignore[arg-type,misc]
    if len(levels) != count:
        raise ConfigError(
            f"sigma has {len(levels)} levels and the image {count} channels: give one number, or "
            "one for each channel"
        )
    if stack_axis is not None:
        # As it is counted without the channels.
        below = channel_axis % image.ndim < stack_axis % image.ndim  # type: ignore[operator]
        axes["stack_axis"] = stack_axis % image.ndim - below
    axes["data_range"] = value_range(np.asarray(image), data_range)[0]
    parts = [
        clean_image(np.take(image, number, channel_axis), options, sigma=level, **axes)  # type: ignore[arg-type]
        for number, level in enumerate(levels)
    ]
    infos = [part.info for part in parts]
    sigmas = tuple(info.sigma for info in infos)
    info = replace(
        max(infos, key=lambda info: info.sigma),
        sigma=float(np.sqrt(np.mean(np.square(sigmas)))),
        channel_sigma=sigmas,
        established=all(info.established for info in infos),
        impulses=any(info.impulses for info in infos),
    )
    return np.stack([part.at(options.strength) for part in parts], axis=channel_axis), info  # type: ignore[arg-type]


def _channel_count(image: NDArray[Any], channel_axis: int | None, stack_axis: int | None) -> int:
    """Return the number of channels, 1 without; what is wrong with the axes is said later."""
    expected = 3 + (stack_axis is not None)
    # What is no whole number is refused where axes are checked.
    given: Any = channel_axis
    is_axis = isinstance(given, Integral) and not isinstance(given, bool)
    if not is_axis or np.ndim(image) != expected:
        return 1
    return np.shape(image)[int(given)] if -expected <= given < expected else 1


@dataclass(frozen=True)
class Picture:
    """What of an image is denoised, and what it takes to put the result back."""

    colours: NDArray[Any]  # (c, h, w), one grey plane, or red, green and blue
    alpha: NDArray[Any] | None  # (h, w), left as it is
    channel_axis: int | None
    data_range: float  # in the units of the image, as `lowest`
    lowest: float
    unit: float  # how much of the scale 0..255 one unit of the image is
    stack_axis: int | None = None  # of the pages, which lie one below the other in the planes
    n_pages: int = 1

    def planes(self) -> NDArray[np.float32]:
        """Return the colours on the scale 0..255: (values - lowest) * unit."""
        return np.stack([self.plane(channel) for channel in self.colours])

    def plane(self, channel: NDArray[Any]) -> NDArray[np.float32]:
        """Return one of the colours on that scale."""
        scaled = np.empty(channel.shape, np.float32)
        difference = channel - np.float64(self.lowest)
        return np.multiply(difference, self.unit, out=scaled, casting="unsafe")


def read_picture(
    image: NDArray[Any],
    *,
    data_range: float | None = None,
    channel_axis: int | None = None,
    stack_axis: int | None = None,
) -> Picture:
    """Check an image and return its planes; the arguments are those of `denoise_kpca`."""
    if isinstance(image, np.ma.MaskedArray):
        raise InputError(
            "image is a masked array, and masked pixels cannot be left out: fill them first"
        )
    image = np.asarray(image)
    if image.dtype.kind not in "buif":
        raise InputError(f"image has dtype {image.dtype}; give real numbers (integer or float)")
    if image.size == 0:
        raise InputError(f"image of shape {image.shape} has no pixels")
    n_pages = 1
    if stack_axis is not None:
        image, stack_axis, channel_axis = _pages_below(image, stack_axis, channel_axis)
        n_pages, channel_axis_below = len(image), None if channel_axis is None else -1
        image = image.reshape(-1, *image.shape[2:])
    channels, axis = _channels_first(
        image, channel_axis if stack_axis is None else channel_axis_below
    )
    height = channels.shape[1] // n_pages
    for number, plane in enumerate(channels if channels.dtype.kind == "f" else ()):
        # A finite sum means finite terms, unless huge terms overflowed; only then look at each.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(plane.sum()) or np.isfinite(plane).all():
                continue
        row, column = np.argwhere(~np.isfinite(plane))[0]
        where = f", channel {number}" if len(channels) > 1 else ""
        where += f", page {row // height}" if n_pages > 1 else ""
        raise InputError(
            f"image holds {plane[row, column]} at row {row % height}, column {column}{where}; "
            "replace such pixels first"
        )
    colours, alpha = (channels[:3], channels[3]) if len(channels) == 4 else (channels, None)
    low, high = float(colours.min()), float(colours.max())
    if data_range is not None:
        given: Any = data_range
        if not isinstance(given, Real):
            raise ConfigError(f"data_range is {data_range!r}; give one number, or None")
        if not LEAST_RANGE <= data_range <= LARGEST_RANGE:
            raise ConfigError(
                f"data_range is {data_range:g}; "
                f"give a number from {LEAST_RANGE:g} to {LARGEST_RANGE:g}"
            )
        if max(high - low, abs(low), abs(high)) > MOST_BEYOND * data_range:
            raise InputError(
                f"image holds values from {low:g} to {high:g}, far beyond the data range of "
                f"{data_range:g}: give the data range in the units of the image"
            )
    span, lowest = value_range(colours, data_range)
    # Planes, previews and most results are of single precision, and must not overflow either.
    if not span * SCALE < float(np.finfo(np.float32).max):
        raise InputError(f"image spans {low:g} to {high:g}, too wide to compute with; rescale it")
    axis = axis if stack_axis is None else channel_axis
    return Picture(colours, alpha, axis, span, lowest, SCALE / span, stack_axis, n_pages)


def _pages_below(
    image: NDArray[Any], stack_axis: int, channel_axis: int | None
) -> tuple[NDArray[Any], int, int | None]:
    """Return pages first and channels last, and both axes as numbers from 0."""
    expected = 3 + (channel_axis is not None)
    if image.ndim != expected:
        raise InputError(
            f"image has shape {image.shape}: with stack_axis={stack_axis} and "
            f"channel_axis={channel_axis} it has {expected} dimensions"
        )
    axes: dict[str, Any] = {"stack_axis": stack_axis, "channel_axis": channel_axis}
    found: dict[str, int] = {}
    for name, axis in axes.items():
        if axis is None:
            continue
        if isinstance(axis, bool) or not isinstance(axis, Integral):
            raise ConfigError(f"{name} is {axis!r}; give a whole number, or None")
        if not -expected <= int(axis) < expected:
            raise ConfigError(f"{name} is {axis}; give {-expected} to {expected - 1}")
        found[name] = int(axis) % expected
    if len(set(found.values())) < len(found):
        raise ConfigError(f"stack_axis and channel_axis are both {stack_axis}")
    stack, channel = found["stack_axis"], found.get("channel_axis")
    if channel is None:
        return np.moveaxis(image, stack, 0), stack, None
    return np.moveaxis(image, (stack, channel), (0, -1)), stack, channel


def dtype_range(dtype: np.dtype[Any]) -> float | None:
    """Return the range of values a dtype stands for: unsigned of 8 or 16 bits and booleans.

    None for floats, signed and wider integers, whose values seldom fill what they can hold.
    """
    if dtype.kind == "b":
        return 1.0
    if dtype.kind == "u" and dtype.itemsize <= NARROW:
        return float(np.iinfo(dtype).max)
    return None


def value_range(pixels: NDArray[Any], data_range: float | None = None) -> tuple[float, float]:
    """Return the range of values of an image, and the value that is black: the one rule there is.

    It is said in `denoise_kpca`; 1 where all values are equal.
    """
    by_dtype = dtype_range(pixels.dtype)
    if by_dtype is not None:
        return float(data_range or by_dtype), 0.0
    low, high = float(pixels.min()), float(pixels.max())
    if pixels.dtype.kind == "f" and low >= 0.0 and high <= 1.0 and high - low >= LEAST_OF_UNIT:
        return float(data_range or 1.0), 0.0
    return float(data_range or (high - low) or 1.0), low


def _channels_first(
    image: NDArray[Any], channel_axis: int | None
) -> tuple[NDArray[Any], int | None]:
    """Return a view of shape (c, h, w), and the axis the channels came from."""
    if channel_axis is None:
        if image.ndim == 2:
            return image[np.newaxis], None
        raise InputError(
            f"image has shape {image.shape} and channel_axis is None, so it is not clear which "
            "axis holds the channels: give channel_axis (-1 for height x width x channels), or "
            "one image of two dimensions at a time"
        )
    if image.ndim != 3:
        raise InputError(
            f"image has shape {image.shape} and channel_axis={channel_axis}: an image with "
            "channels has three dimensions; leave channel_axis out for a grey image"
        )
    given: Any = channel_axis
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise ConfigError(f"channel_axis is {channel_axis!r}; give a whole number, or None")
    if not -3 <= channel_axis < 3:
        raise ConfigError(f"channel_axis is {channel_axis}; for three dimensions give -3 to 2")
    channels = np.moveaxis(image, channel_axis, 0)
    if len(channels) not in (1, 3, 4):
        raise InputError(
            f"image has {len(channels)} channels along axis {channel_axis}; give 1 (grey), 3 (RGB) "
            "or 4 (RGB and alpha), or denoise each channel as a grey image"
        )
    return channels, channel_axis


@dataclass(frozen=True)
class Cleaned:
    """An image and its planes denoised, to be had at any strength."""

    picture: Picture
    planes: NDArray[np.float32]
    info: DenoiseInfo

    def at(self, strength: float) -> NDArray[np.floating]:
        """Return the image at a strength from 0, as given to the last bit, to 1, denoised.

        Integer images stay within their dtype's range; float images are not clipped.
        """
        picture, planes = self.picture, self.planes
        dtype = picture.colours.dtype
        channels = len(planes) + (picture.alpha is not None)
        # No wider than float64, which what is computed has no digits for.
        kind = np.float32 if np.result_type(dtype, np.float32) == np.float32 else np.float64
        out = np.empty((channels, *planes.shape[1:]), kind)
        for channel, clean, value in zip(out, planes, picture.colours, strict=False):
            before, plane = picture.plane(value), clean
            if strength < 1.0:
                plane = before + np.float32(strength) * (clean - before)
            np.multiply(plane, 1.0 / picture.unit, out=channel)
            channel += picture.lowest
            if dtype.kind in "ui":
                np.clip(channel, np.iinfo(dtype).min, np.iinfo(dtype).max, out=channel)
            np.copyto(channel, value, where=plane == before, casting="unsafe")
        if picture.alpha is not None:
            out[-1] = picture.alpha
        axis, stack = picture.channel_axis, picture.stack_axis
        if stack is not None:
            pages = out.reshape(channels, picture.n_pages, -1, out.shape[-1])
            if axis is None:
                return np.ascontiguousarray(np.moveaxis(pages[0], 0, stack))
            return np.ascontiguousarray(np.moveaxis(pages, (1, 0), (stack, axis)))
        if axis is None:
            return np.asarray(out[0])
        return np.ascontiguousarray(np.moveaxis(out, 0, axis))


def clean_image(
    image: NDArray[Any],
    options: Options,
    *,
    sigma: float | Sequence[float] | None = None,
    data_range: float | None = None,
    channel_axis: int | None = None,
    stack_axis: int | None = None,
    known_laws: Sequence[NoiseLaw] = (),
) -> Cleaned:
    """Denoise an image whose strength may be chosen afterwards; nothing is done for one of 0.

    `known_laws` are those of its channels, in its units, if found in other pages or images.
    """
    picture = read_picture(
        image, data_range=data_range, channel_axis=channel_axis, stack_axis=stack_axis
    )
    options = replace(options, pages=picture.n_pages)
    first, *others = picture.colours
    if others and _is_one_level(sigma) and all(np.array_equal(first, one) for one in others):
        # Grey saved as red, green and blue: all three have the same noise.
        level = sigma[0] if np.ndim(sigma) else sigma  # type: ignore[arg-type,index]
        grey = replace(picture, colours=picture.colours[:1])
        cleaned = _clean_picture(grey, options, level, known_laws[:1])
        info = cleaned.info
        info = replace(info, channel_sigma=3 * info.channel_sigma, laws=3 * info.laws)
        return Cleaned(picture, np.repeat(cleaned.planes, 3, axis=0), info)
    return _clean_picture(picture, options, sigma, known_laws)


def _is_one_level(sigma: float | Sequence[float] | None) -> bool:
    """Whether a level, if one is given, is the same for red, green and blue."""
    if isinstance(sigma, list | tuple | np.ndarray) and np.ndim(sigma) == 1:
        return len(sigma) == 3 and bool(sigma[0] == sigma[1] == sigma[2])
    return True


def _clean_picture(
    picture: Picture,
    options: Options,
    sigma: float | Sequence[float] | None,
    known_laws: Sequence[NoiseLaw],
) -> Cleaned:
    """Denoise a picture: find its noise, if need be, and take it out."""
    planes, unit = picture.planes(), picture.unit
    pages = [planes[:, rows] for rows in _measured_pages(planes.shape[1], options.pages)]
    white, noise = _pooled_white([measure_white(page) for page in pages]), options.noise
    if noise == "auto":
        by_camera = white.correlated and options.pages == 1 and np.ndim(sigma) == 0  # type: ignore[arg-type]
        noise = "camera" if by_camera else "gaussian"
    impulses = options.noise != "impulse" and any(map(has_impulses, planes))
    laws: list[PageLaws] = []
    lights: Lights | None = None
    if known_laws:
        own = tuple(law.in_units(1 / unit, -picture.lowest * unit) for law in known_laws)
        laws, noise = [PageLaws(own)], "poisson"
        lights = _lights_of(laws)
    elif sigma is None and options.noise in ("auto", "poisson"):
        laws = _measured_laws(pages, picture, white.established)
        # Who says that light is counted has it measured from black on.
        lights = _light_found(laws, white.established) if options.noise == "auto" else None
    # Of colours a camera's noise may be of other spectra than a blur leaves.
    wanted = noise == "gaussian" or len(planes) == 1
    if options.noise == "auto" and lights and wanted and not (impulses and _at_both_ends(planes)):
        noise = "poisson"
    model = NOISE_MODELS[noise]
    level = None if sigma is None else _scaled_sigma(sigma, noise, picture)
    if doubt := doubt_level(sigma, noise, picture.colours.dtype, picture.data_range):
        warn_caller(doubt)
    # Noise of light counts from no light, which need not be the lowest value.
    black = np.float32(picture.lowest * unit if model.from_black else 0.0)
    # What is measured here the model need not measure again.
    known: Any = level
    levels = level if isinstance(level, tuple) else (level or 0.0,) * len(planes)
    established = True
    if level is None and noise == "gaussian":
        known = levels = _before_clipping(laws) or white.channel_sigma
        strongest = max(levels)
        seen = _is_seen(strongest, picture) or any(page.seen for page in laws)
        established = white.established and (strongest == 0 or seen)
    elif level is None and noise == "poisson":
        # A law says by itself what is no light.
        black = np.float32(0.0) if lights else black
        known = lights or _typical_lights([measure_poisson(page + black) for page in pages])
        levels = tuple(light.level for light in known)
    elif level is None and noise == "camera":
        known = measure_camera(planes)
        levels, variance = known.levels, float(planes.var(axis=(1, 2)).mean())
        chosen = options.noise == "camera"
        established = chosen or float(np.mean(np.square(levels))) <= MOST_OF_ALL * variance
    impulses &= noise in WITHOUT_IMPULSES
    cleaned, idle = planes, level is not None and not np.any(level) and noise != "impulse"
    if established and not idle and options.strength > 0.0:
        cleaned, levels = MODELS[noise](planes + black if black else planes, known, options)
        cleaned = cleaned - black if black else cleaned
    channels = levels if model.relative else tuple(level / unit for level in levels)
    low, high = white.sigma_range or (0.0, 0.0)
    info = replace(
        white,
        noise=noise,
        sigma=float(np.sqrt(np.mean(np.square(channels)))),
        channel_sigma=channels,
        estimated=level is None,
        data_range=picture.data_range,
        sigma_range=(low / unit, high / unit) if level is None and noise == "gaussian" else None,
        established=established,
        impulses=impulses,
        laws=_typical_laws(laws, picture),
    )
    return Cleaned(picture, cleaned, info)


def _measured_pages(rows: int, n_pages: int) -> list[slice]:
    """Return the rows of the pages in which the noise of a stack is measured, all of it if few."""
    height = rows // n_pages
    return [slice(page * height, (page + 1) * height) for page in sampled_pages(n_pages)]


def sampled_pages(n_pages: int) -> list[int]:
    """Return the pages of a stack in which its noise is measured.

    They are spread by the golden ratio: pages that are dark or bright in turns are all met.

    >>> sampled_pages(100)
    [0, 23, 47, 61, 85]
    """
    spread = {int(n_pages * (place * GOLDEN % 1)) for place in range(MEASURED_PAGES)}
    return sorted(spread) if n_pages > MEASURED_PAGES else [*range(n_pages)]


def _typical(levels: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the median (c,) over pages (n, c) of levels, of those that show noise if any do."""
    return np.array([np.median(one[one > 0]) if (one > 0).any() else 0.0 for one in levels.T])


def _pooled_white(pages: list[DenoiseInfo]) -> DenoiseInfo:
    """Return what was measured in an image, or what is typical of pages of a stack."""
    if len(pages) == 1:
        return pages[0]
    # Black pages, those of a shutter perhaps, have no noise for sure.
    noisy = [page for page in pages if max(page.channel_sigma) > 0] or pages
    found = [page for page in noisy if page.established]
    middle = sorted(found or noisy, key=lambda page: page.sigma)[(len(found or noisy) - 1) // 2]
    channels = _typical(np.array([page.channel_sigma for page in found or noisy]))
    return replace(
        middle,
        channel_sigma=tuple(channels.tolist()),
        established=2 * len(found) >= len(noisy),
        correlated=2 * sum(page.correlated for page in noisy) > len(noisy),
    )


def doubt_level(
    sigma: float | Sequence[float] | None, noise: str, dtype: np.dtype[Any], data_range: float
) -> str:
    """Say so where a level was most likely meant as a share of the range of values."""
    if not isinstance(sigma, int | float) or dtype.kind not in "ui" or noise == "speckle":
        return ""
    if not 0.0 < sigma < 1.0:
        return ""
    return (
        f"sigma {sigma:g} is less than one step of {dtype}, and removes next to nothing: if a "
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
        With ``noise="camera"`` where the noise is correlated, ``"poisson"`` where it grows with
        brightness, else ``"gaussian"``, and the level that denoising with ``noise="auto"`` removes.

    Examples
    --------
    >>> noisy = 100 + 5 * np.random.default_rng(0).standard_normal((64, 64))
    >>> 4.5 < measure_noise(noisy, data_range=255).sigma < 5.5
    True
    """
    options = Options(strength=0.0)
    return clean_image(image, options, data_range=data_range, channel_axis=channel_axis).info


class PageLaws(NamedTuple):
    """The laws of the noise of one page."""

    laws: tuple[NoiseLaw, ...]  # of each channel
    seen: bool = True  # there is noise for sure, in all channels, and it is not too faint
    rises_far: bool = True  # it is plainly stronger in the light


def _measured_laws(pages: list[Planes], picture: Picture, white: bool) -> list[PageLaws]:
    """Return the laws of pages that have noise, and of which enough is to be seen.

    Where noise that is `white` is there for sure, a law that rises plainly is sure, too.
    """
    step = picture.unit if picture.colours.dtype.kind in "ui" else 0.0
    found = []
    for page in pages:
        noisy = np.ptp(page, axis=(1, 2)) > 0
        found_laws = measure_laws(page[noisy], step, is_white=white)
        measured = [law for law in found_laws if law is not None]
        if not noisy.any() or len(measured) < np.count_nonzero(noisy):
            continue
        each = iter(measured)
        laws = tuple(
            next(each) if one else NoiseLaw.of_nothing(float(plane[0, 0]))
            for one, plane in zip(noisy, page, strict=True)
        )
        sure = [law.established or (white and _rises_far(law)) for law in measured]
        seen = all(sure) and any(_shows(law, p, step) for law, p in zip(laws, page, strict=True))
        seen &= len(page) == 1 or _colours_confirm(laws, page)
        rises, shared = any(law.rises for law in laws), measured[0].blur >= SHARED_BLUR
        variances = [law.variance(float(p.mean())) for law, p in zip(laws, page, strict=True)]
        # An even texture looks like noise that neighbours share, but is all there is.
        all_of_it = MOST_OF_ALL * float(page.var(axis=(1, 2)).mean())
        seen &= rises or not shared or float(np.mean(variances)) <= all_of_it
        found.append(PageLaws(laws, seen, any(map(_rises_far, measured))))
    return found


def _light_found(pages: list[PageLaws], white: bool) -> Lights | None:
    """Return the light that makes the noise, where most pages show it.

    Beside noise that is `white` for sure, texture is taken for a law: it must rise plainly.
    """
    found = [page for page in pages if page.seen and (page.rises_far or not white)]
    return _lights_of(found) if found and 2 * len(found) >= len(pages) else None


def _lights_of(pages: list[PageLaws]) -> Lights:
    """Return the light that makes the noise of each channel, typical of pages."""
    return tuple(map(light_of, _typical_page(pages)))


def _typical_page(pages: list[PageLaws]) -> tuple[NoiseLaw, ...]:
    """Return the law of each channel, typical of pages, with what is seen in the middle one."""
    typical = []
    for own in zip(*(page.laws for page in pages), strict=True):
        # Of the pages that show the channel, if any do.
        found = [law for law in own if law.gain or law.constant] or own
        terms = np.median([(law.gain, law.constant, law.blur) for law in found], axis=0).tolist()
        middle = found[len(found) // 2]
        typical.append(replace(middle, gain=terms[0], constant=terms[1], blur=terms[2]))
    return tuple(typical)


def _before_clipping(pages: list[PageLaws]) -> Levels | None:
    """Return the deviation in each channel of white noise, were it not cut off in the dark."""
    laws = [law for page in pages for law in page.laws]
    if not laws or not all(law.established and law.clipped and not _rises_far(law) for law in laws):
        return None
    typical = _typical_page(pages)
    return tuple(float(np.sqrt(law.variance(law.brightness.mean()))) for law in typical)


def _rises_far(law: NoiseLaw) -> bool:
    """Whether noise is plainly stronger in the light than in the dark."""
    dark, light = law.variance(law.brightness[[0, -1]])
    return bool(law.rises and (light > RISING * dark or law.log_odds_flat < -PLAIN))


def _at_both_ends(planes: Planes) -> bool:
    """Whether many pixels are at the least and the largest value, as salt and pepper are.

    Single photons stand out as impulses do, but are at none.
    """
    ends = [[np.mean(plane == end) for end in (plane.min(), plane.max())] for plane in planes]
    return bool((np.min(ends, axis=1) > WITH_IMPULSES / 2).any())


def _colours_confirm(laws: tuple[NoiseLaw, ...], page: Planes) -> bool:
    """Whether differences of colours vary as much as the laws of their noise say.

    Texture, and noise that is the same in all channels, is hardly in them.
    """
    variances = np.array([float(law.variance(p.mean())) for law, p in zip(laws, page, strict=True)])
    # Of mixed differences a blur, whose neighbours correlate so, leaves so much.
    blur = max(law.blur for law in laws)
    left = (1.0 - np.exp(-1.0 / (4.0 * blur**2))) ** 2 if blur else 1.0
    expected = np.square(noise_in_opponent(np.sqrt(variances)))[1:] * left
    details = np.diff(np.diff(to_opponent(page)[1:], axis=1), axis=2) / 2.0
    return bool((expected <= CONFIRMED * np.square(details).mean(axis=(1, 2))).all())


def _shows(law: NoiseLaw, plane: NDArray[np.float32], step: float) -> bool:
    """Whether noise is strong enough to be seen in the range that a plane uses, and no rounding."""
    low, high = np.quantile(plane, USED)
    least = max(FAINT_LAW * float(high - low), step / 2)
    return bool(law.variance(float(plane.mean())) > least**2)


def _typical_laws(pages: list[PageLaws], picture: Picture) -> tuple[NoiseLaw, ...]:
    """Return the law of each channel, in the units of the image."""
    if not pages:
        return ()
    typical = _typical_page([page for page in pages if page.seen] or pages)
    return tuple(law.in_units(picture.unit, picture.lowest) for law in typical)


def _typical_lights(pages: list[Lights]) -> Lights:
    """Return gain and dark of each channel, typical of pages measured without a law."""
    terms = np.array([[(gain, gain * dark, blur) for gain, dark, blur in page] for page in pages])
    typical = []
    for own in terms.swapaxes(0, 1):
        gain, constant, blur = np.median(own[own[:, 0] > 0] if own[:, 0].any() else own, axis=0)
        typical.append(Light(float(gain), float(constant / gain) if gain else 0.0, float(blur)))
    return tuple(typical)


def _is_seen(deviation: float, picture: Picture) -> bool:
    """Whether noise on the scale of the planes is strong enough to be seen."""
    lowest = picture.lowest * picture.unit
    brightest = max(abs(lowest), float(picture.colours.max()) * picture.unit)
    return deviation > FAINT * min(255.0, 2.0 * brightest)


def _scaled_sigma(sigma: Any, noise: str, picture: Picture) -> float | tuple[float, ...]:
    """Return the level given, checked, on the scale of the planes; a relative one as it is."""
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
        raise ConfigError(f"sigma is {sigma!r}; give one number, or None to have it estimated")
    given, relative = float(sigma), NOISE_MODELS[noise].relative
    if not (np.isfinite(given) and given >= 0):
        raise ConfigError(f"sigma is {sigma}; give a finite number of 0 or more")
    if relative and given > MOST_RELATIVE:
        raise ConfigError(
            f"sigma is {sigma:g}, but for speckle it is relative to the intensity: "
            f"give at most {MOST_RELATIVE:g}"
        )
    if not relative and given > picture.data_range:
        raise ConfigError(
            f"sigma is {sigma:g}, above the data range of {picture.data_range:g}: "
            "give sigma in the units of the image, or its data_range"
        )
    return given if relative else given * picture.unit
