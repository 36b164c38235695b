"""Planes with white Gaussian noise: grey ones as they are, colours through opponent planes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.colour import from_opponent, noise_in_opponent, to_opponent
from kpca_apps.denoise.local import denoise_planes
from kpca_apps.denoise.noise import estimate_noise
from kpca_apps.denoise.settings import Settings

__all__ = ["Denoised", "clean_planes", "denoise_white", "estimate_channels"]

# Times the strongest noise of an image: no plane of it is taken to have less.
FAINTEST = 0.02
NEGLIGIBLE = 1e-3  # of 255: far below what rounding does, and near that of float32


@dataclass(frozen=True)
class Denoised:
    """Denoised planes and the noise that was taken out.

    Attributes
    ----------
    planes : ndarray of shape (c, h, w), float32
    sigma : tuple of float
        Deviation of the noise in each channel, in the units of the planes given (for speckle:
        relative to the intensity; for Poisson: at 255).
    """

    planes: NDArray[np.float32]
    sigma: tuple[float, ...]


def estimate_channels(planes: NDArray[np.float32]) -> tuple[float, ...]:
    """Return the deviation of the noise in each plane of an image (c, h, w)."""
    return tuple(estimate_noise(plane).sigma for plane in planes)


def denoise_white(planes: NDArray[np.float32], sigma: float | None, settings: Settings) -> Denoised:
    """Denoise planes whose noise is white, Gaussian and independent between channels.

    Parameters
    ----------
    planes : ndarray of shape (1, h, w) or (3, h, w)
        Grey, or red, green and blue, on the scale 0..255.
    sigma : float or None
        Deviation of the noise in every channel; None estimates it for each.
    settings : Settings

    Returns
    -------
    Denoised
    """
    levels = estimate_channels(planes) if sigma is None else (float(sigma),) * len(planes)
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
