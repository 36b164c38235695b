"""What the spectra of an image's patches say of its noise: a posterior of the noise level.

White noise is as strong at every frequency and in every patch. The texture of photographs falls
with frequency, by about the same ratio from one band to the next whatever is in the picture, and
is weak in some patches and strong in others. So the mean energy of band b in class j of patches is

    sigma^2 + a_j s_b,    log s_b falling by (.62, .5, .5, .7), give or take

with the amplitude a_j of each class and the slope and curvature of log s as unknowns that are
summed out. Where the spectra are flat, or quiet patches are as noisy as lively ones, the posterior
is narrow; where all is fine texture it is wide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["BANDS", "COEFFICIENTS", "band_energies", "noise_posterior"]

WIDTH = 8
# Bands of the 8 x 8 cosine transform, by the sum of its two frequency indices: first to last.
BANDS = ((4, 5), (6, 7), (8, 9), (10, 11), (12, 14))
COARSE = (1, 3)

# The fall of texture's log energy from band to band: its mean over clean photographs, how the
# slope differs between photographs, and how the curvature does.
FALL = np.array([0.62, 0.5, 0.5, 0.7])
SLOPE_SD, CURVATURE_SD = 0.22, 0.1
# What is left of a texture's log spectrum beside slope and curvature.
TEXTURE_SD = 0.15
SLOPES, CURVATURES = np.linspace(-2.4, 2.4, 9), np.linspace(-1.8, 1.8, 5)
# A mean of any number of pixels is believed to that (relative variance).
LEAST_VARIANCE = 0.02**2
# Noise levels tried, from the highest that the energies allow downwards, then around the likely
# ones, which are fewer the more of the pixels are believed; and amplitudes of texture, as
# deviations in the last band, in terms of the highest.
LEVELS, REACH = 40, 100.0
BELIEVED = (50, 2000, np.inf)
LIKELY = -8.0
AMPLITUDES = np.concatenate([[0.0], np.geomspace(0.002, 6.0, 30)]) ** 2

_ORDER = np.add.outer(np.arange(WIDTH), np.arange(WIDTH)).ravel()
_MEMBERS = np.array([(first <= _ORDER) & (last >= _ORDER) for first, last in BANDS])
COEFFICIENTS = _MEMBERS.sum(axis=1)


def band_energies(
    coefficients: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the energy of patches in coarse structure (n,) and its mean in each band (n, 5).

    Parameters
    ----------
    coefficients : ndarray of shape (n, 64)
        Of the orthonormal 8 x 8 cosine transform.
    """
    energy = np.square(coefficients)
    coarse = (_ORDER >= COARSE[0]) & (_ORDER <= COARSE[1])
    means = [energy[:, members].mean(axis=1) for members in _MEMBERS]
    return energy[:, coarse].sum(axis=1), np.stack(means, axis=1)


def noise_posterior(
    energies: NDArray[np.floating], pixels: NDArray[np.floating]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return noise levels and how likely each is.

    Parameters
    ----------
    energies : ndarray of shape (classes, 5)
        Mean energy of each band in each class of patches, > 0.
    pixels : ndarray of shape (classes,)
        How many pixels the patches of each class stand for: overlapping patches share theirs.

    Returns
    -------
    levels, weights : ndarray of shape (40,)
        Deviations of the noise, ascending, and their posterior weights, which add up to 1. The
        prior is even in the logarithm: what is not known leans to little noise.

    Examples
    --------
    >>> flat = np.full((2, 5), 9.0)
    >>> levels, weights = noise_posterior(flat, np.array([1e4, 1e5]))
    >>> bool(abs(levels @ weights - 3) < 0.1)
    True
    >>> texture = 9.0 * np.exp([[2.3, 1.7, 1.2, 0.7, 0.0]])
    >>> levels, weights = noise_posterior(texture, np.array([1e4]))
    >>> bool(levels @ weights < 1.5)
    True
    """
    # No level can be far above the energy of the quietest class.
    highest = np.log(1.5) + np.log(energies.max(axis=1).min()) / 2
    lowest, scale = highest - np.log(REACH), float(np.exp(highest))
    for most in BELIEVED:
        grid = np.linspace(lowest, highest, LEVELS)
        log_weights = _log_posterior(energies, np.minimum(pixels, most), grid, scale)
        likely = np.flatnonzero(log_weights > LIKELY)
        lowest, highest = grid[max(likely[0] - 1, 0)], grid[min(likely[-1] + 1, LEVELS - 1)]
    weights = np.exp(log_weights)
    return np.exp(grid), weights / weights.sum()


def _log_posterior(
    energies: NDArray[np.floating],
    pixels: NDArray[np.floating],
    log_levels: NDArray[np.float64],
    scale: float,
) -> NDArray[np.float64]:
    """Return the logarithm of the posterior at each level, 0 at the likeliest."""
    shapes, prior = _texture_shapes()
    noise = np.exp(2.0 * log_levels).astype(np.float32)[:, np.newaxis]
    amplitudes = (scale**2 * AMPLITUDES).astype(np.float32)
    expected = [_expected(shape, amplitudes, noise) for shape in shapes.T]
    total = np.repeat(prior[:, np.newaxis], len(log_levels), axis=1)
    # Written into again and again: new arrays of this size would take most of the time.
    fit, misfit, variance = (np.empty_like(expected[0][0]) for _ in range(3))
    for row, covered in zip(np.log(energies), pixels, strict=True):
        freedom = np.maximum(covered * COEFFICIENTS / WIDTH**2, 1.0)
        fit.fill(0)
        for (log_mean, spread), seen, free in zip(expected, row, freedom, strict=True):
            # Of a mean of squares, and of what a real spectrum differs by from slope and curve.
            np.add(spread, np.float32(2.0 / free + LEAST_VARIANCE), out=variance)
            np.square(np.subtract(log_mean, np.float32(seen), out=misfit), out=misfit)
            misfit /= variance
            misfit += np.log(variance, out=variance)
            fit -= misfit
        best = fit.max()
        fit -= best
        fit /= 2
        total += np.log(np.exp(fit, out=fit).mean(axis=2) + 1e-30) + best / 2
    summed = np.log(np.exp(total - total.max()).sum(axis=0) + 1e-300)
    return np.asarray(summed - summed.max(), np.float64)


def _expected(
    shape: NDArray[np.float32], amplitudes: NDArray[np.float32], noise: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the log energy of a band (s, levels, amplitudes), and the variance texture gives."""
    texture = (shape[:, np.newaxis] * amplitudes)[:, np.newaxis]
    mean = texture + noise
    spread = np.square(texture / mean) * np.float32(TEXTURE_SD**2)
    return np.log(mean), spread


def _texture_shapes() -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return spectra of texture (s, 5), 1 in the last band, and the logarithms of their priors."""
    slopes, curvatures = (x.ravel() for x in np.meshgrid(SLOPES, CURVATURES))
    bend = np.linspace(-1.5, 1.5, len(FALL))
    falls = FALL + SLOPE_SD * slopes[:, None] + CURVATURE_SD * curvatures[:, None] * bend
    rise = np.cumsum(falls[:, ::-1], axis=1)[:, ::-1]
    spectra = np.exp(np.concatenate([rise, np.zeros((len(rise), 1))], axis=1))
    return spectra.astype(np.float32), -(slopes**2 + curvatures**2) / 2
