"""Planes with white Gaussian noise: grey ones as they are, colours through opponent planes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.colour import from_opponent, noise_in_opponent, to_opponent
from kpca_apps.denoise.local import denoise_planes
from kpca_apps.denoise.noise import (
    ALIKE,
    WHITE_ENOUGH,
    NoiseEstimate,
    estimate_noise,
)
from kpca_apps.denoise.settings import Settings

__all__ = [
    "Denoised",
    "WhiteNoise",
    "clean_planes",
    "denoise_white",
    "estimate_channels",
    "measure_white",
]

# Times the strongest noise of an image: no plane of it is taken to have less.
FAINTEST = 0.02
NEGLIGIBLE = 1e-3  # of 255: far below what rounding does, and near that of float32
# Noise that channels do not share is in one of the colour planes at least as strong as in
# luminance, whatever its level in each; far below, it has been smoothed (JPEG halves the resolution
# of colours) or is the same in all channels. Texture makes luminance look noisier: hence so low.
INDEPENDENT = 0.25
# Noise that is the same in three channels is stronger in luminance by the root of 3. Clean
# photographs have a grain of 2 of 255.
ALL_ALIKE = 2.0 * 3**0.5
# A camera's noise is in the colours too, where there is little texture: so strong in their quietest
# patches, of 255 and of luminance there, while luminance, or the colours, are not much livelier
# elsewhere.
COLOUR_NOISE, COLOUR_SHARE, NEARLY_ALIKE = 2.4, 0.17, 1.7
FEWEST_SHARED = 100 * 100  # pixels: all of a smaller image may be one texture


@dataclass(frozen=True)
class Denoised:
    """Denoised planes and the noise that was taken out.

    Attributes
    ----------
    planes : ndarray of shape (c, h, w), float32
    sigma : tuple of float
        Deviation of the noise in each channel, in the units of the planes given (for speckle:
        relative to the intensity; for Poisson: at 255).
    established : bool
        False where planes were left as they are, since all that was measured may be texture.
    """

    planes: NDArray[np.float32]
    sigma: tuple[float, ...]
    established: bool = True


@dataclass(frozen=True)
class WhiteNoise:
    """The noise of an image, if it is white.

    Attributes
    ----------
    look : NoiseEstimate
        Of the grey plane or the luminance; what is established and correlated is so of the image.
    channels : tuple of float
        Deviation in each channel.
    """

    look: NoiseEstimate
    channels: tuple[float, ...]


def estimate_channels(planes: NDArray[np.float32]) -> tuple[float, ...]:
    """Return the deviation of the noise in each plane of an image (c, h, w)."""
    return tuple(estimate_noise(plane).sigma for plane in planes)


def measure_white(planes: NDArray[np.float32]) -> WhiteNoise:
    """Measure white noise in grey planes, or in red, green and blue together.

    Texture is much the same in all channels and hardly there in their differences, where white
    noise of each channel on its own is: the colours tell the two apart where grey cannot.

    Parameters
    ----------
    planes : ndarray of shape (1, h, w) or (3, h, w)
        On the scale 0..255.

    Returns
    -------
    WhiteNoise
    """
    if len(planes) == 1:
        grey = estimate_noise(planes[0])
        return WhiteNoise(grey, (grey.sigma,))
    channels = estimate_channels(planes)
    opponent = to_opponent(planes)
    ends = planes.min(axis=(1, 2), keepdims=True), planes.max(axis=(1, 2), keepdims=True)
    extreme = ((planes == ends[0]) | (planes == ends[1])).any(axis=0)
    look, *colours = (estimate_noise(plane, extreme=extreme) for plane in opponent)
    strongest = max(colour.sigma for colour in colours)
    if look.established and look.sigma > ALL_ALIKE and strongest < INDEPENDENT * look.sigma:
        return WhiteNoise(replace(look, correlated=True), channels)
    # Clipping takes some of the noise of the colours: then they say nothing of luminance's.
    if look.established and any(colour.clipped for colour in colours):
        return WhiteNoise(replace(look, correlated=False), channels)
    if any(c.established and c.sigma > 0 for c in colours) and min(channels) > 0:
        implied = noise_in_opponent(np.asarray(channels))[1:]
        found = np.sqrt(sum(colour.sigma**2 for colour in colours))
        share = min(1.0, float(found / max(np.sqrt(np.sum(np.square(implied))), found)))
        lower = replace(
            look,
            sigma=share * look.sigma,
            low=share * look.low,
            high=share * look.high,
            established=True,
            correlated=False,
        )
        return WhiteNoise(lower, tuple(share * sigma for sigma in channels))
    if look.established:
        return WhiteNoise(replace(look, correlated=False), channels)
    least = max(COLOUR_NOISE, COLOUR_SHARE * look.quiet)
    noisy = [colour for colour in colours if colour.quiet > least]
    alike = look.evenness < NEARLY_ALIKE or any(colour.evenness < ALIKE for colour in noisy)
    shared = bool(noisy) and alike and look.whiteness < WHITE_ENOUGH
    shared = shared and opponent[0].size >= FEWEST_SHARED
    return WhiteNoise(replace(look, correlated=shared or look.correlated), channels)


def denoise_white(
    planes: NDArray[np.float32], sigma: float | tuple[float, ...] | None, settings: Settings
) -> Denoised:
    """Denoise planes whose noise is white, Gaussian and independent between channels.

    Parameters
    ----------
    planes : ndarray of shape (1, h, w) or (3, h, w)
        Grey, or red, green and blue, on the scale 0..255.
    sigma : float, tuple of float or None
        Deviation of the noise in every channel, or in each; None estimates it for each, and leaves
        planes as they are where no noise is established.
    settings : Settings

    Returns
    -------
    Denoised
    """
    levels = sigma if isinstance(sigma, tuple) else (float(sigma or 0.0),) * len(planes)
    if sigma is None:
        noise = measure_white(planes)
        levels = noise.channels
        if not noise.look.established:
            return Denoised(planes.copy(), levels, established=False)
    if len(planes) == 1:
        return Denoised(clean_planes(planes, levels, settings), levels)
    opponent = noise_in_opponent(np.asarray(levels))
    cleaned = from_opponent(clean_planes(to_opponent(planes), tuple(opponent.tolist()), settings))
    # What noise is left in the others spreads to a channel of one value, an empty one perhaps.
    flat = np.ptp(planes, axis=(1, 2)) == 0
    cleaned[flat] = planes[flat]
    return Denoised(cleaned, levels)


def clean_planes(
    planes: NDArray[np.float32],
    sigma: tuple[float, ...],
    settings: Settings,
    scales: bool = True,
) -> NDArray[np.float32]:
    """Return grey or opponent planes without their noise.

    Parameters
    ----------
    planes : ndarray of shape (1, h, w) or (3, h, w)
        Grey, or luminance and two colour planes.
    sigma : tuple of float
        Deviation of the noise in each, before the factors ``luma`` and ``chroma``.
    settings : Settings
    scales : bool
        As for `kpca_apps.denoise.local.denoise_planes`.

    Returns
    -------
    ndarray of the same shape
        Colour planes use the groups found in the luminance, which shows edges with less noise.
    """
    factors = np.array([settings.luma, settings.chroma, settings.chroma])[: len(planes)]
    levels = np.asarray(sigma) * factors
    levels[levels < NEGLIGIBLE] = 0.0
    if not levels.any():
        return planes.copy()
    cleaned = denoise_planes(
        planes,
        np.maximum(levels, FAINTEST * levels.max()),
        quality=settings.quality,
        kernel=settings.kernel,
        content=settings.content,
        n_jobs=settings.n_jobs,
        scales=scales,
        wanted=settings.wanted,
    )
    cleaned[levels == 0] = planes[levels == 0]
    return cleaned
