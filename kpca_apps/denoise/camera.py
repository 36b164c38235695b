"""Noise from a camera: shared by neighbouring pixels, so taken out coarse to fine.

Demosaicking and JPEG make noise smooth: much of it hides in low frequencies, which patches of a
few pixels cannot tell from the image, and white-noise denoising leaves it as blotches. On a scale
reduced by two the same noise is whiter and as wide as a pixel. So the coarse image is denoised
first, its low frequencies replace those of the fine one, and what is left there is fine noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, dctn, idctn

from kpca_apps.denoise.colour import OPPONENT, from_opponent, to_opponent
from kpca_apps.denoise.noise import WIDTH, sample_patches
from kpca_apps.denoise.settings import Settings
from kpca_apps.denoise.white import Denoised, clean_planes

__all__ = ["band_deviation", "denoise_camera"]

LEVELS = 3
SMALLEST = 32  # pixels a side of the coarsest image
# Noise assumed at each level, fine to coarse, as a multiple of that measured: the spectrum of a
# band is uneven and must be covered at its strongest, and it falls from level to level.
FACTORS = (1.7, 1.1, 0.8)
FADING = 0.85  # most that is left of luminance noise from one level to the next
AXES = (-2, -1)
BRIGHTNESS_BINS = 8
UPPER_SHARE = 0.75  # of all frequencies, those a half-size image does not hold
QUIET, FEWEST_QUIET = 0.02, 25  # share and number of the patches of one brightness taken as flat


def denoise_camera(
    planes: NDArray[np.float32], sigma: float | None, settings: Settings
) -> Denoised:
    """Denoise planes whose noise is correlated, coarse to fine.

    Parameters
    ----------
    planes : ndarray of shape (1, h, w) or (3, h, w)
        Grey, or red, green and blue, on the scale 0..255.
    sigma : float or None
        Deviation of the noise, all frequencies together. The share of each is measured in any
        case; None takes the measured total as well.
    settings : Settings

    Returns
    -------
    Denoised

    References
    ----------
    M. Lebrun, M. Colom, J.-M. Morel (2015), "The noise clinic: a blind image denoising algorithm",
    IPOL 5 (coarse to fine, noise measured at each scale).
    N. Pierazzo, J.-M. Morel, G. Facciolo (2017), "Multi-scale DCT denoising", IPOL 7, section 3
    (scales by truncated cosine transforms, so that white noise stays white).
    """
    if len(planes) == 1:
        cleaned, measured = _coarse_to_fine(planes, sigma, settings)
        return Denoised(cleaned, tuple(measured.tolist()))
    cleaned, measured = _coarse_to_fine(to_opponent(planes), sigma, settings)
    levels = np.sqrt(np.square(OPPONENT).T @ np.square(measured))
    return Denoised(from_opponent(cleaned), tuple(levels.tolist()))


def _coarse_to_fine(
    planes: NDArray[np.float32], sigma: float | None, settings: Settings
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return the planes denoised and the deviation of the noise taken out of each."""
    pyramid = [planes]
    while len(pyramid) < LEVELS and min(pyramid[-1].shape[1:]) >= 2 * SMALLEST:
        pyramid.append(_halved(pyramid[-1]))
    bands = _plausible([[band_deviation(plane) for plane in level] for level in pyramid])
    totals = _total_deviation(bands)
    if sigma is not None:
        bands *= sigma / np.sqrt(np.mean(np.square(totals)))
        totals = _total_deviation(bands)
    cleaned = pyramid[-1]
    for level in range(len(pyramid) - 1, -1, -1):
        noisy = pyramid[level]
        if level < len(pyramid) - 1:
            noisy = _with_low_frequencies(noisy, cleaned - pyramid[level + 1])
        cleaned = clean_planes(noisy, tuple((FACTORS[level] * bands[level]).tolist()), settings)
    return cleaned, totals


def band_deviation(plane: NDArray[np.float32]) -> float:
    """Return the deviation of the noise in the upper band of a plane's frequencies.

    Flat patches are those with the least energy in the lower quarter of the 8 x 8 cosine
    transform among those of like brightness; the mean square of their other coefficients,
    which had no part in the choice, is the variance. The median over brightness is taken.

    Parameters
    ----------
    plane : ndarray of shape (h, w)

    Returns
    -------
    float
        In the units of the plane: the deviation of white noise that is as strong in that band.

    References
    ----------
    N. N. Ponomarenko et al. (2007), "An automatic approach to lossy compression of AVIRIS images",
    IGARSS; M. Colom, A. Buades (2013), IPOL 3.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((128, 128)).astype(np.float32)
    >>> 4.5 < band_deviation(100 + 5 * noise) < 5.5
    True
    """
    basis = dct(np.eye(WIDTH, dtype=np.float32), axis=0, norm="ortho")
    coefficients = sample_patches(plane) @ np.kron(basis, basis).T
    if not len(coefficients):
        return float(plane.std())
    order = np.arange(WIDTH)
    lower = (np.maximum.outer(order, order) < WIDTH // 2).ravel()
    upper_energy = np.square(coefficients[:, ~lower]).mean(axis=1)
    lower[0] = False
    lower_energy = np.square(coefficients[:, lower]).sum(axis=1)
    by_brightness = np.argsort(coefficients[:, 0], kind="stable")
    variances = []
    for members in np.array_split(by_brightness, BRIGHTNESS_BINS):
        if len(members):
            few = max(FEWEST_QUIET, round(QUIET * len(members)))
            quiet = members[np.argsort(lower_energy[members], kind="stable")[:few]]
            variances.append(upper_energy[quiet].mean())
    return float(np.sqrt(np.median(variances)))


def _plausible(measured: list[list[float]]) -> NDArray[np.float64]:
    """Return the deviations (levels, c) with what must be texture of the image cut off.

    On a coarse level texture is everywhere, while averaging pixels makes noise weaker, however
    much they share of it. JPEG may have taken the finest colour noise away and left its blocks:
    there the finest level counts as no better than the next, which is the strongest.
    """
    bands = np.array(measured)
    for level in range(1, len(bands)):
        bands[level, 0] = min(bands[level, 0], FADING * bands[level - 1, 0])
        if level == 1:
            bands[0, 1:] = np.maximum(bands[0, 1:], bands[1, 1:])
        bands[level, 1:] = np.minimum(bands[level, 1:], bands[level - 1, 1:])
    return bands


def _total_deviation(bands: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the deviation over all frequencies (c,) from that of each level's band (levels, c)."""
    variance = np.square(bands[-1])
    for band in bands[-2::-1]:
        variance = UPPER_SHARE * np.square(band) + variance
    return np.asarray(np.sqrt(variance))


def _halved(planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the planes (c, h, w) at half the size: the same brightness, half the white noise.

    The lower half of the cosine transform is kept, so that white noise stays white.
    """
    height, width = ((side + 1) // 2 for side in planes.shape[1:])
    spectrum = dctn(planes, axes=AXES, norm="ortho")[:, :height, :width]
    halved = idctn(spectrum, axes=AXES, norm="ortho")
    return np.asarray(halved * _shrinkage(planes.shape, halved.shape), np.float32)


def _with_low_frequencies(
    planes: NDArray[np.float32], change: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the planes with a change made to their half-size version added to them.

    The change fades towards the highest frequencies the half-size version has, lest a sharp cut
    rings.
    """
    spectrum = dctn(change / _shrinkage(planes.shape, change.shape), axes=AXES, norm="ortho")
    height, width = change.shape[1:]
    spectrum *= _fade(height)[:, np.newaxis] * _fade(width)
    wide = np.zeros_like(planes)
    wide[:, :height, :width] = spectrum
    return np.asarray(planes + idctn(wide, axes=AXES, norm="ortho"), np.float32)


def _shrinkage(fine: tuple[int, ...], coarse: tuple[int, ...]) -> np.float32:
    return np.float32(np.sqrt(coarse[1] * coarse[2] / (fine[1] * fine[2])))


def _fade(length: int) -> NDArray[np.float32]:
    """Return 1 over the lower half of the frequencies, falling to 0 at the last."""
    return np.minimum(2.0 - 2.0 * np.arange(length) / length, 1.0).astype(np.float32)
