"""Noise that is not white and Gaussian: made so, denoised, and brought back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from kpca_apps.denoise.impulse import detect_impulses, fill_from_neighbours
from kpca_apps.denoise.noise import estimate_noise
from kpca_apps.denoise.progress import part
from kpca_apps.denoise.settings import Settings
from kpca_apps.denoise.transforms import (
    anscombe,
    inverse_anscombe,
    lift_specks,
    log_of_speckle,
    speckle_from_log,
    speckle_log_moments,
)
from kpca_apps.denoise.white import Denoised, denoise_white, estimate_channels

__all__ = ["denoise_impulse", "denoise_poisson", "denoise_speckle"]

SCALE = 255.0
GAIN_ROUNDS = 4
TILE = 8
MANY_COUNTS = 10  # on average: there the Anscombe transform's noise is 1 for most pixels
# Deviations at which the image is denoised to guess what the impulses hid, coarse to fine.
GUESSES = (30.0, 15.0, 8.0)

Model = Callable[[NDArray[np.float32], float | None, Settings], Denoised]


def denoise_poisson(
    planes: NDArray[np.float32], sigma: float | None, settings: Settings
) -> Denoised:
    """Denoise planes whose noise has a variance in proportion to the intensity.

    Parameters
    ----------
    planes : ndarray of shape (c, h, w)
        0 is no light; white is about 255.
    sigma : float or None
        Deviation of the noise at 255. None finds the gain by which the Anscombe transform has
        noise of deviation 1, in each channel.
    settings : Settings
        Where a channel has no noise or no light, the others are denoised as grey images.

    Returns
    -------
    Denoised
    """
    if sigma is None:
        gains = np.array([_poisson_gain(plane) for plane in planes])
    else:
        gains = np.full(len(planes), sigma**2 / SCALE)
    levels = tuple(np.sqrt(gains * SCALE).tolist())
    if not _noisy(planes, levels).all():
        return _one_by_one(denoise_poisson, planes, levels, settings)
    roots = np.stack([anscombe(p / gain) for p, gain in zip(planes, gains, strict=True)])
    unit = SCALE / float(np.ptp(roots) or 1.0)
    cleaned = denoise_white((roots * unit).astype(np.float32), unit, settings).planes
    light = [inverse_anscombe(p / unit) * gain for p, gain in zip(cleaned, gains, strict=True)]
    # Light is not negative, unless a background was subtracted that was not the same everywhere.
    darkest = min(0.0, float(planes.min()))
    return Denoised(np.maximum(np.stack(light), darkest).astype(np.float32), levels)


def _noisy(planes: NDArray[np.float32], levels: tuple[float, ...]) -> NDArray[np.bool_]:
    """Return which channels have noise: not those without light, of which it is made."""
    return np.asarray((np.array(levels) > 0) & (planes.max(axis=(1, 2)) > 0))


def _one_by_one(
    model: Model, planes: NDArray[np.float32], levels: tuple[float, ...], settings: Settings
) -> Denoised:
    """Denoise the noisy channels as grey images, and leave the others as they are.

    Empty channels are common in fluorescence microscopy; mixed into opponent planes they would
    change the noise of those and receive what is left of it.
    """
    cleaned = planes.copy()
    noisy = np.flatnonzero(_noisy(planes, levels))
    for number, channel in enumerate(noisy):
        alone = slice(channel, channel + 1)
        with part(number, len(noisy)):
            cleaned[alone] = model(planes[alone], levels[channel], settings).planes
    return Denoised(cleaned, levels)


def _poisson_gain(plane: NDArray[np.float32]) -> float:
    """Return the intensity of one count, 0 where there is no noise.

    Where counts are few the Anscombe transform's noise is weaker than 1, and the quietest patches
    are the darkest: the ratio of variance to mean is taken. With many counts texture weighs more
    than that, and the gain is sought by which the transform has noise 1.
    """
    brightness = float(np.mean(np.maximum(plane, 0)))
    if brightness <= 0:
        return 0.0
    gain = _variance_to_mean(plane)
    if gain * MANY_COUNTS > brightness:
        return gain
    gain = estimate_noise(plane).sigma ** 2 / brightness
    for _ in range(GAIN_ROUNDS):
        if gain < np.finfo(np.float32).eps:
            return 0.0
        roots = anscombe(plane / gain)
        gain *= estimate_noise(roots, float(np.ptp(roots) or 1.0)).sigma ** 2
    return gain


def _variance_to_mean(plane: NDArray[np.float32]) -> float:
    """Return the median over tiles of their noise's variance, by mixed differences, to mean."""
    height, width = (side // TILE * TILE for side in np.subtract(plane.shape, 1))
    if not height or not width:
        return 0.0
    details = np.diff(np.diff(plane, axis=0), axis=1)[:height, :width] / 2.0
    tiled = (height // TILE, TILE, width // TILE, TILE)
    variance = np.square(details).reshape(tiled).mean(axis=(1, 3))
    mean = plane[:height, :width].reshape(tiled).mean(axis=(1, 3))
    light = mean > 0
    return float(np.median(variance[light] / mean[light])) if light.any() else 0.0


def denoise_speckle(
    planes: NDArray[np.float32], sigma: float | None, settings: Settings
) -> Denoised:
    """Denoise planes whose noise multiplies the intensity.

    Parameters
    ----------
    planes : ndarray of shape (c, h, w)
        0 is no light.
    sigma : float or None
        Deviation of the noise relative to the intensity; None estimates it in each channel.
    settings : Settings
        As for `denoise_poisson`.

    Returns
    -------
    Denoised
    """
    logs = np.stack([log_of_speckle(plane) for plane in planes])
    if sigma is None:
        scale = float(np.ptp(logs) or 1.0) / SCALE
        scaled = ((logs - logs.min()) / scale).astype(np.float32)
        deviations = tuple(level * scale for level in estimate_channels(scaled))
    else:
        deviations = (speckle_log_moments(sigma)[1],) * len(planes)
    relative = tuple(_relative_deviation(deviation) for deviation in deviations)
    if not _noisy(planes, relative).all():
        return _one_by_one(denoise_speckle, planes, relative, settings)
    lifted = np.stack([lift_specks(p, d) for p, d in zip(logs, deviations, strict=True)])
    darkest, unit = lifted.min(), SCALE / float(np.ptp(lifted) or 1.0)
    level = float(np.sqrt(np.mean(np.square(deviations)))) * unit
    scaled = ((lifted - darkest) * unit).astype(np.float32)
    cleaned = denoise_white(scaled, level, settings).planes / unit + darkest
    light = [speckle_from_log(p, s) for p, s in zip(cleaned, relative, strict=True)]
    return Denoised(np.stack(light).astype(np.float32), relative)


def _relative_deviation(log_deviation: float) -> float:
    """Return the relative deviation of speckle whose logarithm has the deviation given."""
    if log_deviation < 1e-6:
        return 0.0

    def excess(sigma: float) -> float:
        return speckle_log_moments(sigma)[1] - log_deviation

    # The logarithm's deviation is at least sigma, and grows with it.
    lowest = log_deviation / 100
    return float(brentq(excess, min(lowest, 0.01), max(log_deviation, 0.01), xtol=1e-9))


def denoise_impulse(
    planes: NDArray[np.float32], sigma: float | None, settings: Settings
) -> Denoised:
    """Denoise planes some of whose pixels were replaced by impulses.

    Impulses are detected and replaced by the median around; what they hid is then guessed better
    by denoising the image and keeping the result at those pixels only, with less and less noise
    assumed; last, the Gaussian noise beside the impulses is taken out.

    Parameters
    ----------
    planes : ndarray of shape (c, h, w)
    sigma : float or None
        Deviation of the Gaussian noise beside the impulses; None estimates it.
    settings : Settings

    Returns
    -------
    Denoised
    """
    bad = np.stack([detect_impulses(plane) for plane in planes])
    filled = np.stack([fill_from_neighbours(p, b) for p, b in zip(planes, bad, strict=True)])
    guesses = GUESSES if bad.any() else ()
    for number, guess in enumerate(guesses):
        with part(number, len(guesses) + 1):
            # Each pixel of one guess weighs on all around it in the next.
            whole = replace(settings, wanted=None)
            filled[bad] = denoise_white(filled, guess, whole).planes[bad]
    with part(len(guesses), len(guesses) + 1):
        return denoise_white(filled, sigma, settings)
