"""Kinds of noise: each made white and Gaussian, denoised, and brought back.

White noise of colours goes through opponent planes. Poisson and multiplicative noise get a
variance-stabilising transform and its inverse, impulses are replaced first, and noise from a camera
is whitened. `denoise_NAME` is the model of the kind NAME in `kpca_apps.denoise.options`: it takes
planes (c, h, w) on the scale 0..255, grey or red, green and blue, the level of their noise or None,
and `Options`, and returns the planes denoised and the level in each channel (for speckle relative
to the intensity; for Poisson at 255).

References
----------
F. J. Anscombe (1948), "The transformation of Poisson, binomial and negative-binomial data",
Biometrika 35, eq. 1.2; M. Makitalo, A. Foi (2011), "A closed-form approximation of the exact
unbiased inverse of the Anscombe variance-stabilizing transformation", IEEE Trans. Image Processing
20, eq. 10.
B. P. Durbin, J. S. Hardin, D. M. Hawkins, D. M. Rocke (2002), "A variance-stabilizing
transformation for gene-expression microarray data", Bioinformatics 18: the generalised logarithm.
H. Xie, L. E. Pierce, F. T. Ulaby (2002), "Statistical properties of logarithmically transformed
speckle", IEEE Trans. Geoscience and Remote Sensing 40, section II.
R. Garnett, T. Huegerich, C. Chui, W. He (2005), "A universal noise removal algorithm with an
impulse detector", IEEE Trans. Image Processing 14, eq. 3: rank-ordered absolute differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.ndimage import rank_filter, uniform_filter
from scipy.optimize import brentq, nnls
from scipy.special import polygamma

from kpca_apps.denoise.camera import camera_probability, denoise_camera, whitened_denoising
from kpca_apps.denoise.clipping import find_clipping
from kpca_apps.denoise.colour import (
    extreme_pixels,
    from_opponent,
    noise_in_opponent,
    to_opponent,
)
from kpca_apps.denoise.law import NoiseLaw, blurred_spectrum, measure_laws
from kpca_apps.denoise.noise import DenoiseInfo, diagonal_deviation, estimate_noise
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.progress import part
from kpca_apps.denoise.stack import denoise_planes_or_pages

Planes = NDArray[np.float32]
Levels = tuple[float, ...]
Model = Callable[[Planes, Any, Options], tuple[Planes, Levels]]

SCALE = 255.0  # of the planes


class Light(NamedTuple):
    """Noise of counted light: its variance at brightness x is gain (x + dark)."""

    gain: float  # brightness of one count
    dark: float  # brightness that makes the noise there is in the dark
    blur: float = 0.0  # by which neighbours share it, in pixels

    @property
    def level(self) -> float:
        """Deviation of the noise at the bright end."""
        return math.sqrt(max(self.gain * (SCALE + self.dark), 0.0))


Lights = tuple[Light, ...]

# Noise that channels do not share is in one of the colour planes at least as strong as in
# luminance, whatever its level in each; far below, it has been smoothed (JPEG halves the resolution
# of colours) or is the same in all channels. Texture makes luminance look noisier: hence so low.
INDEPENDENT = 0.25
# Noise that is the same in three channels is stronger in luminance by the root of 3. Clean
# photographs have a grain of 2 of 255.
ALL_ALIKE = 2.0 * 3**0.5
NOT_WHITE = 1.0  # of 255: white noise below, in all channels, is none
# As likely as not. Above are 3 of 65 clean photographs (BSDS500, means of PolyU) and 35 of 40 noisy
# ones, of those that the constants were not fitted to; at .7, 1 and 33.
PROBABLE = 0.5
FEWEST_SHARED = 100 * 100  # pixels: all of a smaller image may be one texture

# Poisson: the gain by which the Anscombe transform has noise 1 is found in so many rounds.
GAIN_ROUNDS = 4
TILE = 8
# The dark of a law is at most so much light, in terms of 255: for more, the noise is the same
# everywhere.
FARTHEST_DARK = 100.0 * SCALE
# Classes of tiles by brightness that noise in the dark is measured in, and the share of pixels that
# may be farther below 0 than that noise explains. It counts for at most so many times the range:
# for more, the noise is the same in the light.
DARK_CLASSES, LOWEST, FARTHEST = 8, 0.001, 100.0
MANY_COUNTS = 10  # on average: there the Anscombe transform's noise is 1 for most pixels
# Deviations at which the image is denoised to guess what the impulses hid, coarse to fine.
GUESSES = (30.0, 15.0, 8.0)

# Mean of the Anscombe transform of a Poisson count of mean 0.
ANSCOMBE_OF_NOTHING = 2.0 * np.sqrt(0.375)
SPECK = 1.5  # deviations below the neighbours: above 1 no mean is off by a percent
AROUND = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
DARKEST = 1e-3  # times the mean: keeps the logarithm of a dark pixel finite

REACHES = (1, 2, 3, 5, 8)  # half widths of the windows tried, smallest first
FEWEST_GOOD = 3
CHUNK = 50_000
# An extreme pixel this far from its good neighbours (of 255) is an impulse, not a highlight.
STANDS_OUT = 12.0
# Share of impulses at the extremes above which no others are looked for.
SALT_AND_PEPPER = 0.005
CROWD, CROWDED = 5, 0.59  # width of a window, and the share of 15 of its 25 pixels
# Mean difference, of 255, from the 2 neighbours most alike beyond which a pixel is alone.
LONELY = 20.0
LONELY_IN_NOISE = 1.2  # the same in deviations of the Gaussian noise beside
# To say that there are impulses takes more: extreme pixels that differ by so much from those
# around, of 255 and of the deviation of the noise beside; pixels alone in being different; and a
# share of such pixels that neither edges nor highlights nor texture make.
FAR_EXTREME, FAR_ALONE, WITH_IMPULSES = (25.0, 5.0), (60.0, 6.0), 0.005


def measure_white(planes: Planes) -> DenoiseInfo:
    """Measure white noise in grey planes, or in red, green and blue together.

    The level is that of the grey plane or the luminance, `channel_sigma` that in each channel.
    """
    if len(planes) == 1:
        return estimate_noise(planes[0])
    # Texture is much the same in all channels and hardly there in their differences, where white
    # noise of each channel on its own is: the colours distinguish the two where grey cannot.
    channels = tuple(estimate_noise(plane).sigma for plane in planes)
    opponent = to_opponent(planes)
    extreme = extreme_pixels(planes)
    look, *colours = (estimate_noise(plane, extreme=extreme) for plane in opponent)
    look = replace(look, channel_sigma=channels)
    strongest = max(colour.sigma for colour in colours)
    if look.established and look.sigma > ALL_ALIKE and strongest < INDEPENDENT * look.sigma:
        return replace(look, correlated=True)
    # Clipping takes some of the noise of the colours: then they say nothing of luminance's.
    if look.established and any(colour.clipped for colour in colours):
        return replace(look, correlated=False)
    if any(c.established and c.sigma > 0 for c in colours) and min(channels) > 0:
        implied = noise_in_opponent(np.asarray(channels))[1:]
        found = np.sqrt(sum(colour.sigma**2 for colour in colours))
        share = min(1.0, float(found / max(np.sqrt(np.sum(np.square(implied))), found)))
        low, high = look.sigma_range or (0.0, 0.0)
        look = replace(
            look,
            sigma=share * look.sigma,
            sigma_range=(share * low, share * high),
            established=True,
            correlated=False,
            channel_sigma=tuple(share * sigma for sigma in channels),
        )
        # Colours without white noise, as JPEG leaves them, may still have some of low frequency.
        if max(look.channel_sigma) > NOT_WHITE:
            return look
    elif look.established:
        return replace(look, correlated=False)
    if planes[0].size < FEWEST_SHARED or not any(np.ptp(plane) for plane in opponent[1:]):
        return look
    return replace(look, correlated=camera_probability(planes) > PROBABLE)


def denoise_gaussian(
    planes: Planes, sigma: float | Levels | None, options: Options
) -> tuple[Planes, Levels]:
    """Denoise planes whose noise is white, Gaussian and independent between channels.

    Planes in which no noise is established are left as they are; others may be overwritten, for
    of a large image they take much of the memory.
    """
    levels = sigma if isinstance(sigma, tuple) else (float(sigma or 0.0),) * len(planes)
    if sigma is None:
        noise = measure_white(planes)
        levels = noise.channel_sigma
        if not noise.established:
            return planes.copy(), levels
    deviations = np.asarray(levels)
    if len(planes) == 1:
        return denoise_planes_or_pages(planes, deviations, options), levels
    flat, values = np.ptp(planes, axis=(1, 2)) == 0, planes[:, :1, :1].copy()
    opponent, deviations = to_opponent(planes, in_place=True), noise_in_opponent(deviations)
    cleaned = denoise_planes_or_pages(opponent, deviations, options)
    cleaned = from_opponent(cleaned, in_place=True)
    # What noise is left in the others spreads to a channel of one value, an empty one perhaps.
    cleaned[flat] = values[flat]
    return cleaned, levels


def denoise_white(
    planes: Planes, sigma: float | Levels | None, options: Options
) -> tuple[Planes, Levels]:
    """Denoise planes whose white noise may have been cut off at the ends of their range."""
    if sigma is None:
        return denoise_gaussian(planes, sigma, options)
    levels = sigma if isinstance(sigma, tuple) else (float(sigma),) * len(planes)
    clippings = [find_clipping(p, level) for p, level in zip(planes, levels, strict=True)]
    for plane, clipping in zip(planes, clippings, strict=True):
        if clipping is not None:
            plane[...] = clipping.stabilise(plane)
    cleaned, _ = denoise_gaussian(planes, levels, options)
    for plane, clipping in zip(cleaned, clippings, strict=True):
        if clipping is not None:
            plane[...] = clipping.restore(plane)
    return cleaned, levels


def measure_poisson(planes: Planes) -> Lights:
    """Measure noise whose variance is in proportion to intensity plus a constant.

    By the law of its brightness where one is found, with a constant if one is plainly there; else
    0 is no light, and there is a constant only where values are negative.
    """
    return tuple(
        _light_of_told(law, plane)
        if law and law.established and law.rises
        else _light_by_tiles(plane)
        for plane, law in zip(planes, measure_laws(planes), strict=True)
    )


def _light_of_told(law: NoiseLaw, plane: Planes) -> Light:
    """Return the light of a law, without a constant where what is seen can do without."""
    mean, ends = float(plane.mean()), law.brightness[[0, -1]]
    gain = float(law.variance(mean)) / mean if mean > 0 and ends[0] > 0 else 0.0
    off = np.abs(np.log(np.maximum(law.variance(ends), 1e-30) / (gain * ends))) if gain else np.inf
    return Light(gain, 0.0, law.blur) if np.max(off) < np.log(law.interval[1]) else light_of(law)


def light_of(law: NoiseLaw) -> Light:
    """Return the light that makes the noise of a law."""
    gain = max(law.gain, law.constant / FARTHEST_DARK)
    return Light(gain, law.constant / gain if gain > 0 else 0.0, law.blur)


def _light_by_tiles(plane: Planes) -> Light:
    dark = _dark_light(plane, 1)
    return Light(_poisson_gain(plane + np.float32(dark)), dark)


def denoise_poisson(
    planes: Planes, known: float | Levels | Lights, options: Options
) -> tuple[Planes, Levels]:
    """Denoise planes whose noise has a variance in proportion to intensity plus a constant.

    Of noise known by its level, 0 is no light; where values are negative, a background was
    subtracted or a readout added noise of its own, and the constant is measured.
    """
    if isinstance(known, tuple) and isinstance(known[0], Light):
        lights = known
    else:
        at_most = np.broadcast_to(np.asarray(known, np.float64), len(planes))
        darks = [_dark_light(plane, 1) for plane in planes]
        lights = tuple(
            Light(float(level) ** 2 / (SCALE + dark), dark)
            for level, dark in zip(at_most, darks, strict=True)
        )
    gains, darks = [light.gain for light in lights], [light.dark for light in lights]
    levels = tuple(light.level for light in lights)
    counted = np.stack(
        [plane + np.float32(dark) for plane, dark in zip(planes, darks, strict=True)]
    )
    if not _noisy(counted, levels).all():
        alone = [(light,) for light in lights]
        return _one_by_one(denoise_poisson, planes, alone, levels, options)
    roots = np.stack([anscombe(p / gain) for p, gain in zip(counted, gains, strict=True)])
    unit = SCALE / float(np.ptp(roots) or 1.0)
    blur = max(light.blur for light in lights)
    cleaned = _denoise_shared((roots * unit).astype(np.float32), unit, blur, options)
    light = [
        inverse_anscombe(p / unit) * gain - dark
        for p, gain, dark in zip(cleaned, gains, darks, strict=True)
    ]
    return np.stack(light).astype(np.float32), levels


def _denoise_shared(planes: Planes, sigma: float, blur: float, options: Options) -> Planes:
    """Denoise planes whose noise, of one deviation in all, a blur has neighbours share."""
    if blur <= 0:
        return denoise_gaussian(planes, sigma, options)[0]
    mixed = to_opponent(planes) if len(planes) == 3 else planes
    spectrum = sigma * np.sqrt(blurred_spectrum(blur))
    whole = replace(options, wanted=None)  # The filter reaches over the whole image.
    cleaned = whitened_denoising(
        mixed, np.stack([spectrum] * len(planes)), whole, (1.0,) * 3, (1.0,) * 3
    )
    return from_opponent(cleaned) if len(planes) == 3 else cleaned


def _dark_light(plane: Planes, power: int) -> float:
    """Return how much light would make the noise that a plane has in the dark; 0 without negatives.

    The variance of the noise is in proportion to that `power` of the intensity, plus a constant.
    """
    if plane.min() >= 0:
        return 0.0
    # Of counts less a background, hardly one is below minus that.
    least = max(-float(np.quantile(plane, LOWEST)), 0.0)
    variance, mean = _tiled_noise(plane)
    if len(mean) < DARK_CLASSES:
        return least
    classes = np.array_split(np.argsort(mean, kind="stable"), DARK_CLASSES)
    found = np.array([np.median(variance[m]) for m in classes])
    unit, fitted = float(np.abs(plane).max()), found
    light = np.array([((np.maximum(mean[m], 0.0) / unit) ** power).mean() for m in classes])
    for _ in range(GAIN_ROUNDS):
        # Errors are in proportion to the variance; texture, which is in the light, weighs little.
        weights = 1.0 / np.maximum(fitted, 1e-6 * found.max() + np.finfo(np.float64).tiny)
        design = np.stack([np.ones(DARK_CLASSES), light], axis=1)
        scaled = design * weights[:, np.newaxis]
        (constant, slope), misfit = nnls(scaled, found * weights)
        fitted = constant + slope * light
    # By an error less steep: too little light in the dark makes outliers of what is below minus
    # that, too much costs next to nothing.
    covariance = np.linalg.pinv(scaled.T @ scaled) * misfit**2 / (DARK_CLASSES - 2)
    flatter = max(slope - float(np.sqrt(covariance[1, 1])), 0.0)
    constant += (slope - flatter) * float(np.average(light, weights=weights**2))
    dark = FARTHEST
    if constant < flatter * dark**power:
        dark = (constant / flatter) ** (1.0 / power)
    return float(max(unit * dark, least))


def _tiled_noise(plane: Planes) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return the variance of the noise in each tile, by mixed differences, and the mean there."""
    height, width = (side // TILE * TILE for side in np.subtract(plane.shape, 1))
    tiled = (height // TILE, TILE, width // TILE, TILE)
    details = np.diff(np.diff(plane, axis=0), axis=1)[:height, :width] / 2.0
    variance = np.square(details).reshape(tiled).mean(axis=(1, 3)).ravel()
    return variance, plane[:height, :width].reshape(tiled).mean(axis=(1, 3)).ravel()


def _noisy(planes: Planes, levels: Levels) -> NDArray[np.bool_]:
    """Return which channels have noise: not those without light, of which it is made."""
    return np.asarray((np.array(levels) > 0) & (planes.max(axis=(1, 2)) > 0))


def _one_by_one(
    model: Model, planes: Planes, known: Sequence[Any], levels: Levels, options: Options
) -> tuple[Planes, Levels]:
    """Denoise the noisy channels as grey images, and leave the others as they are.

    Empty channels, common in fluorescence microscopy, would change the noise of opponent planes.
    """
    cleaned = planes.copy()
    noisy = np.flatnonzero(_noisy(planes, levels))
    for number, channel in enumerate(noisy.tolist()):
        alone = slice(channel, channel + 1)
        with part(number, len(noisy)):
            cleaned[alone] = model(planes[alone], known[channel], options)[0]
    return cleaned, levels


def _poisson_gain(plane: Planes) -> float:
    """Return the intensity of one count, 0 where there is no noise."""
    brightness = float(np.mean(np.maximum(plane, 0)))
    if brightness <= 0:
        return 0.0
    # Where counts are few the Anscombe transform's noise is weaker than 1, and the quietest patches
    # are the darkest: the ratio of variance, by mixed differences, to mean, the median over tiles.
    variance, mean = _tiled_noise(plane)
    light = mean > 0
    gain = float(np.median(variance[light] / mean[light])) if light.any() else 0.0
    if gain * MANY_COUNTS > brightness:
        return gain
    # Texture weighs more than that: the gain by which the transform has noise 1.
    gain = estimate_noise(plane).sigma ** 2 / brightness
    for _ in range(GAIN_ROUNDS):
        if gain < np.finfo(np.float32).eps:
            return 0.0
        roots = anscombe(plane / gain)
        gain *= estimate_noise(roots, float(np.ptp(roots) or 1.0)).sigma ** 2
    return gain


def denoise_speckle(planes: Planes, sigma: float | None, options: Options) -> tuple[Planes, Levels]:
    """Denoise planes, 0 being no light, whose noise multiplies the intensity.

    Where values are negative there is other noise in the dark beside it, which is measured.
    """
    darks = [_dark_light(plane, 2) for plane in planes]
    logs = np.stack([log_of_speckle(p, dark) for p, dark in zip(planes, darks, strict=True)])
    if sigma is None:
        scale = float(np.ptp(logs) or 1.0) / SCALE
        scaled = ((logs - logs.min()) / scale).astype(np.float32)
        deviations = tuple(estimate_noise(plane).sigma * scale for plane in scaled)
    else:
        deviations = (speckle_log_moments(sigma)[1],) * len(planes)
    relative = tuple(_relative_deviation(deviation) for deviation in deviations)
    if not _noisy(planes, relative).all():
        return _one_by_one(denoise_speckle, planes, relative, relative, options)
    lifted = np.stack([lift_specks(p, d) for p, d in zip(logs, deviations, strict=True)])
    darkest, unit = lifted.min(), SCALE / float(np.ptp(lifted) or 1.0)
    level = float(np.sqrt(np.mean(np.square(deviations)))) * unit
    scaled = ((lifted - darkest) * unit).astype(np.float32)
    cleaned = denoise_gaussian(scaled, level, options)[0] / unit + darkest
    light = [
        speckle_from_log(p, s, dark) for p, s, dark in zip(cleaned, relative, darks, strict=True)
    ]
    return np.stack(light).astype(np.float32), relative


def _relative_deviation(log_deviation: float) -> float:
    """Return the relative deviation of speckle whose logarithm has the deviation given."""
    if log_deviation < 1e-6:
        return 0.0
    # The logarithm's deviation is at least sigma, and grows with it.
    lowest, highest = min(log_deviation / 100, 0.01), max(log_deviation, 0.01)
    return float(
        brentq(lambda s: speckle_log_moments(s)[1] - log_deviation, lowest, highest, xtol=1e-9)
    )


def anscombe(counts: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the Anscombe transform of Poisson counts: noise of deviation about 1.

    Below 0, where a background was subtracted, it goes on as the line that touches it at 0.
    """
    values = np.asarray(counts, np.float64)
    roots = 2.0 * np.sqrt(np.maximum(values, 0.0) + 0.375)
    return np.asarray(roots + np.minimum(values, 0.0) / np.sqrt(0.375))


def inverse_anscombe(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the mean count whose Anscombe transform has the given mean.

    The closed form of the exact unbiased inverse; below 2 sqrt(3/8), the value of mean 0, the line.
    """
    given = np.asarray(values, np.float64)
    v = np.maximum(given, ANSCOMBE_OF_NOTHING)
    root = np.sqrt(1.5)
    counts = v**2 / 4 + root / (4 * v) - 11 / (8 * v**2) + 5 * root / (8 * v**3) - 0.125
    below = np.minimum(given - ANSCOMBE_OF_NOTHING, 0.0) * np.sqrt(0.375)
    return np.asarray(np.maximum(counts, 0.0) + below)


def log_of_speckle(intensity: NDArray[np.floating], dark: float = 0.0) -> NDArray[np.float64]:
    """Return the logarithm, by which multiplicative noise becomes additive, finite in the dark.

    With noise of its own in the dark, as strong as that of the intensity `dark`, it is the
    generalised logarithm, which is odd: negative values stay apart.
    """
    values = np.asarray(intensity, np.float64)
    if dark > 0:
        return np.asarray(np.arcsinh(values / dark) + np.log(dark / 2))
    smallest = max(DARKEST * float(np.mean(np.abs(values))), float(np.finfo(np.float32).tiny))
    return np.asarray(np.log(np.maximum(values, smallest)))


def lift_specks(logs: NDArray[np.floating], deviation: float) -> NDArray[np.floating]:
    """Raise single pixels whose logarithm is far below that of all but one of their neighbours."""
    # Where the noise's factor was near 0 its logarithm is many deviations off, and would pass for
    # detail. A dark line stays: its pixels have two neighbours as dark.
    # At a border, pixels beyond it mirror those within: a repeated pixel would be its own
    # neighbour.
    others = rank_filter(logs, 1, footprint=AROUND, mode="mirror")
    return np.asarray(np.maximum(logs, others - SPECK * deviation))


def speckle_from_log(
    values: NDArray[np.floating], sigma: float, dark: float = 0.0
) -> NDArray[np.float64]:
    """Return intensities from denoised logarithms, without the bias of the logarithm."""
    logs, bias = np.asarray(values, np.float64), speckle_log_moments(sigma)[0]
    if dark > 0:
        # The bias is half the variance times the curvature, which falls to 0 with the intensity.
        logs = logs - np.log(dark / 2)
        return np.asarray(dark * np.sinh(logs - bias * np.tanh(logs)))
    return np.asarray(np.exp(logs - bias))


def speckle_log_moments(sigma: float) -> tuple[float, float]:
    """Return mean and deviation of the logarithm of multiplicative noise."""
    # Gamma with mean 1: an average of looks in radar or ultrasound intensity. For small deviations
    # any noise has about these moments.
    looks = 1.0 / sigma**2
    mean = float(polygamma(0, looks)) - float(np.log(looks))
    return mean, float(np.sqrt(polygamma(1, looks)))


def denoise_impulse(planes: Planes, sigma: float | None, options: Options) -> tuple[Planes, Levels]:
    """Denoise planes some of whose pixels were replaced by impulses."""
    bad = np.stack([detect_impulses(plane) for plane in planes])
    filled = np.stack([fill_from_neighbours(p, b) for p, b in zip(planes, bad, strict=True)])
    # What they hid is guessed better than by the median around by denoising the image and keeping
    # the result there only, with less and less noise assumed; last, the Gaussian noise beside.
    guesses = GUESSES if bad.any() else ()
    for number, guess in enumerate(guesses):
        with part(number, len(guesses) + 1):
            # Each pixel of one guess weighs on all around it in the next.
            whole = replace(options, wanted=None)
            filled[bad] = denoise_gaussian(filled.copy(), guess, whole)[0][bad]
    with part(len(guesses), len(guesses) + 1):
        return denoise_gaussian(filled, sigma, options)


def detect_impulses(plane: Planes) -> NDArray[np.bool_]:
    """Return which pixels carry an impulse instead of the image."""
    # Extreme ones, unless most around are so too (a highlight, a shadow) or the median of the
    # others is close.
    extreme, alone = _stray(plane)
    filled = fill_from_neighbours(plane, extreme)
    impulses = extreme & (np.abs(plane - filled) > STANDS_OUT)
    # Hardly any: then they may have any value, and differ even from the 2 most similar of their
    # neighbours, which pixels of a thin line do not.
    if np.count_nonzero(impulses) <= SALT_AND_PEPPER * plane.size and min(plane.shape) >= 3:
        impulses |= alone > max(LONELY, LONELY_IN_NOISE * diagonal_deviation(plane))
    return np.asarray(impulses)


def has_impulses(plane: Planes) -> bool:
    """Whether single pixels that stand out are too many, and stand out too far, for other noise."""
    if min(plane.shape) < 3:
        return False
    extreme, alone = _stray(plane)
    # Where impulses are many, hardly a difference of pixels is without one.
    filled = fill_from_neighbours(plane, extreme | (alone > FAR_ALONE[0]))
    deviation = diagonal_deviation(filled)
    least, far = np.maximum(*np.multiply([FAR_EXTREME, FAR_ALONE], [1, deviation]).T)
    # Pixels of a thin stroke or a highlight are extreme together.
    single = extreme & (np.abs(plane - filled) > least) & (alone > least)
    return bool(np.count_nonzero(single | (alone > far)) > WITH_IMPULSES * plane.size)


def _stray(plane: Planes) -> tuple[NDArray[np.bool_], Planes]:
    """Return which pixels are extreme, most of those around not being so, and how far each is off.

    That is the mean difference from the two most alike of the 8 neighbours.
    """
    extreme = np.zeros(plane.shape, dtype=bool)
    for value in (plane.min(), plane.max()):
        equal = plane == value
        share = uniform_filter(equal.astype(np.float32), CROWD, mode="nearest")
        extreme |= equal & ~(share > CROWDED)
    height, width = plane.shape
    around = np.pad(plane, 1, mode="reflect")
    closest = second = np.full(plane.shape, np.inf, np.float32)
    for i, j in ((i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)):
        difference = np.abs(around[i : i + height, j : j + width] - plane)
        second = np.minimum(second, np.maximum(closest, difference))
        closest = np.minimum(closest, difference)
    return extreme, np.asarray((closest + second) / 2)


def fill_from_neighbours(plane: Planes, bad: NDArray[np.bool_]) -> Planes:
    """Return the plane with bad pixels replaced by the median of the good ones around.

    The window grows until it holds 3 of them; a pixel without so many within 8 keeps its value.
    """
    filled = plane.copy()
    rows, columns = np.nonzero(bad)
    for reach in REACHES:
        # Infinity marks what must not be counted and sorts to the end.
        usable = np.pad(np.where(bad, np.float32(np.inf), plane), reach, constant_values=np.inf)
        side = 2 * reach + 1
        windows = sliding_window_view(usable, (side, side))
        done = np.zeros(len(rows), dtype=bool)
        for start in range(0, len(rows), CHUNK):
            some = slice(start, start + CHUNK)
            ordered = np.sort(windows[rows[some], columns[some]].reshape(-1, side * side), axis=1)
            good = np.count_nonzero(np.isfinite(ordered), axis=1)
            each, last = np.arange(len(ordered)), np.maximum(good - 1, 0)
            median = (ordered[each, last // 2] + ordered[each, (last + 1) // 2]) / 2
            here = done[some] = good >= FEWEST_GOOD
            filled[rows[some][here], columns[some][here]] = median[here]
        rows, columns = rows[~done], columns[~done]
    return filled


MODELS: dict[str, Model] = {
    "gaussian": denoise_white,
    "poisson": denoise_poisson,
    "speckle": denoise_speckle,
    "impulse": denoise_impulse,
    "camera": denoise_camera,
}
