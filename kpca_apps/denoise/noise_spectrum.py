"""How strong noise is at each frequency and brightness, where neighbouring pixels share it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct

from kpca_apps.denoise.noise import WIDTH, estimate_noise, sample_patches

__all__ = ["COLOUR_GROWTH", "LUMINANCE_GROWTH", "noise_by_brightness", "noise_spectrum"]

BRIGHTNESS_BINS = 8
# Share and number of the patches of one brightness taken as flat.
QUIET, FEWEST_QUIET = 0.03, 40
FEWEST_PATCHES = 256
# Most by which a class of brightness counts as noisier than the quietest quarter of them: texture
# fills the patches of some classes, while gamma leaves the noise of photons nearly even.
UNEVENNESS = 1.6
FLOOR = 1e-6  # of 255 squared: keeps a ratio of powers finite where there is no noise
# Most by which the deviation can exceed that at the first frequency index not listed, one limit
# after the other. Texture is found at low frequencies nearly everywhere and in some photographs
# at all but the highest, while demosaicking passes low frequencies almost evenly and halves those
# in the middle at most. Colour has little texture, but JPEG halves its resolution: its noise is a
# matter of low frequencies.
LUMINANCE_GROWTH = ((np.inf, np.inf, np.inf, np.inf, 2.0, 1.4), (1.5, 1.4, 1.3, 1.15))
COLOUR_GROWTH = ((2.0, 1.5),)

ORDER = np.maximum.outer(np.arange(WIDTH), np.arange(WIDTH))
UPPER = (ORDER >= WIDTH // 2).ravel()
MIDDLE = ((ORDER >= 2) & (ORDER < WIDTH // 2)).ravel()
LOWER = ((ORDER > 0) & (ORDER < 2)).ravel()
# Coefficients to measure, each in the patches in which others are weakest: those had no part in
# the choice, so that it does not make the noise look weaker.
MEASURED_WHERE_QUIET = ((UPPER, LOWER | MIDDLE), (MIDDLE, LOWER), (LOWER, MIDDLE))


def noise_spectrum(
    plane: NDArray[np.float32], growth: tuple[tuple[float, ...], ...] = LUMINANCE_GROWTH
) -> NDArray[np.float64]:
    """Measure the deviation of the noise in each coefficient of the 8 x 8 cosine transform.

    Patches are sorted by brightness into eight classes. In each class the flattest patches show
    the noise: upper frequencies are measured where the lower ones are weakest, lower ones where
    those in the middle are. The level is the root of the mean power over the classes, those that
    stand out held back, since texture may fill them; the shape is the median over the classes.

    Parameters
    ----------
    plane : ndarray of shape (h, w)
        On the scale 0..255.
    growth : tuple of tuples of float
        Most by which the deviation at frequency index 0, 1, ... can exceed that at the first
        index not listed, one limit after the other; what is above must be texture.

    Returns
    -------
    ndarray of shape (8, 8)
        In the units of the plane; the root of the mean square is the deviation of the noise.
        All alike where the plane is too small to tell.

    References
    ----------
    N. N. Ponomarenko et al. (2007), "An automatic approach to lossy compression of AVIRIS images",
    IGARSS; M. Colom, A. Buades (2013), "Analysis and extension of the Ponomarenko et al. method",
    IPOL 3 (noise from the quietest patches of like brightness).
    M. Lebrun, M. Colom, J.-M. Morel (2015), "The noise clinic: a blind image denoising algorithm",
    IPOL 5 (noise as a function of frequency).

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((128, 128)).astype(np.float32)
    >>> spectrum = noise_spectrum(100 + 5 * noise)
    >>> bool(4.5 < np.sqrt(np.mean(spectrum**2)) < 5.5), bool(spectrum.min() > 4)
    (True, True)
    """
    patches, _ = sample_patches(plane)
    if len(patches) < FEWEST_PATCHES:
        return np.full((WIDTH, WIDTH), estimate_noise(plane).sigma)
    _, powers = _classes(patches)
    levels = powers[:, UPPER].mean(axis=1)
    shape = np.median(powers / (levels + FLOOR)[:, np.newaxis], axis=0)
    deviations = np.sqrt(_held_back(levels).mean() * shape).reshape(WIDTH, WIDTH)
    deviations[0, 0] = (deviations[0, 1] + deviations[1, 0]) / 2
    deviations = _smoothed(deviations)
    for limits in growth:
        deviations = _without_texture(deviations, limits)
    return deviations


def noise_by_brightness(
    plane: NDArray[np.float32],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Measure the noise at eight levels of brightness.

    Parameters
    ----------
    plane : ndarray of shape (h, w)
        On the scale 0..255.

    Returns
    -------
    brightness : ndarray of shape (8,) or (1,)
        Ascending means of as many patches each; one where the plane is too small to tell.
    deviation : ndarray of the same shape
        Of the noise at upper frequencies, no more than 1.6 times that of the quietest quarter.

    Examples
    --------
    >>> ramp = np.tile(np.linspace(20, 200, 256, dtype=np.float32), (256, 1))
    >>> noise = np.random.default_rng(0).standard_normal(ramp.shape).astype(np.float32)
    >>> brightness, deviation = noise_by_brightness(ramp + (10 - ramp / 40) * noise)
    >>> bool(np.all(np.abs(deviation - (10 - brightness / 40)) < 1))
    True
    """
    patches, _ = sample_patches(plane)
    if len(patches) < FEWEST_PATCHES:
        return np.array([float(plane.mean())]), np.array([estimate_noise(plane).sigma])
    brightness, powers = _classes(patches)
    return brightness, np.sqrt(_held_back(powers[:, UPPER].mean(axis=1)))


def _classes(patches: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return brightness (8,) and noise power (8, 64) of patches (n, 64) of like brightness."""
    basis = dct(np.eye(WIDTH, dtype=np.float32), axis=0, norm="ortho")
    coefficients = patches @ np.kron(basis, basis).T
    total = coefficients[:, 0].copy()
    classes = np.array_split(np.argsort(total, kind="stable"), BRIGHTNESS_BINS)
    energy = np.square(coefficients, out=coefficients)
    powers = np.array([_power_where_quiet(energy[members]) for members in classes])
    return np.array([total[members].mean() / WIDTH for members in classes]), powers


def _held_back(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the powers of neighbouring classes with those that stand out held back."""
    padded = np.concatenate([levels[2:3], levels, levels[-3:-2]])
    smooth = np.median([padded[:-2], padded[1:-1], padded[2:]], axis=0)
    return np.asarray(np.minimum(smooth, UNEVENNESS**2 * np.quantile(smooth, 0.25)))


def _power_where_quiet(energy: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the mean energy of each coefficient over the patches in which others are weak."""
    power = np.zeros(WIDTH * WIDTH)
    few = max(FEWEST_QUIET, round(QUIET * len(energy)))
    for measured, guide in MEASURED_WHERE_QUIET:
        flattest = np.argsort(energy[:, guide].sum(axis=1), kind="stable")[:few]
        power[measured] = energy[flattest][:, measured].mean(axis=0)
    return power


def _smoothed(deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the root of the mean power of each 3 x 3 coefficients: few patches were measured."""
    power = np.pad(np.square(deviations), 1, mode="edge")
    shifts = [power[i : i + WIDTH, j : j + WIDTH] for i in range(3) for j in range(3)]
    return np.asarray(np.sqrt(np.mean(shifts, axis=0)))


def _without_texture(
    deviations: NDArray[np.float64], growth: tuple[float, ...]
) -> NDArray[np.float64]:
    """Return the deviations with low frequencies held near those at the first index not listed."""
    edge = len(growth)
    # Above 0, for a limit without end times nothing is no number.
    reference = max(
        (deviations[edge, :2].sum() + deviations[:2, edge].sum()) / 4, np.finfo(np.float64).tiny
    )
    limits = np.full(WIDTH, np.inf)
    limits[:edge] = np.multiply(growth, reference)
    return np.asarray(np.minimum(deviations, limits[ORDER]))
