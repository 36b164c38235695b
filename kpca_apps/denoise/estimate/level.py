"""Estimate the level of white noise in an image, and its uncertainty.

White noise is equally strong at every frequency and in every patch. The texture of photographs
falls with frequency, by about the same ratio between bands in any picture, and is weak in some
patches and strong in others. So the mean energy of band b in class j of patches is

    sigma^2 + a_j s_b,    log s_b falling by about (.62, .5, .5, .7)

with the amplitude a_j of each class and the slope and curvature of log s as unknowns that are
summed out. If the spectra are flat, or quiet patches are as noisy as lively ones, the posterior of
sigma is narrow; if all patches show fine texture, the posterior is wide.

`kpca_apps.denoise.noise.camera` measures noise that is correlated between neighbouring pixels.

References
----------
X. Liu, M. Tanaka, M. Okutomi (2013), "Single-image noise level estimation for blind
denoising", IEEE Trans. Image Processing 22 (noise from patches of weak texture).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.patches import (
    COEFFICIENTS,
    WIDTH,
    class_likelihoods,
    sample_energies,
    texture_spectra,
)

PLENTY = 40_000  # number of patches that suffices for an estimate
# Share of patches, sorted by coarse structure, at which each class ends.
CLASSES = (0.02, 0.06, 0.15, 0.35, 1.0)
# Quantiles of the posterior: the level returned, and the ends of the interval. The level is a low
# quantile, since denoising with too high a level removes texture.
LEVEL, LOW, HIGH = 0.1, 0.05, 0.95
# Noise is certain if its share of the energy of upper frequencies, in the two quietest classes,
# exceeds this limit. Clean photographs rarely have so large a share.
DOMINANT = 0.6

SPECTRA, SPECTRUM_LOG_PRIOR = texture_spectra(np.linspace(-2.4, 2.4, 9), np.linspace(-1.8, 1.8, 5))
LEAST_VARIANCE = 0.02**2  # minimum relative variance of a mean energy, even over many pixels
# Numbers of noise levels in the grids, and ratio of the highest to the lowest level in the first,
# which ends at the highest level possible. The next grids cover likely levels.
LEVELS, REACH = (20, 20, 40), 100.0
BELIEVED = (50, 2000, np.inf)
LIKELY = -8.0
AMPLITUDES = np.concatenate([[0.0], np.geomspace(0.002, 6.0, 30)]) ** 2


def estimate_noise(
    plane: NDArray[np.floating],
    data_range: float = 255.0,
    extreme: NDArray[np.bool_] | None = None,
    enough: int = PLENTY,
) -> DenoiseInfo:
    """Estimate the white noise of a grey image from the upper frequencies of its patches.

    `extreme` (h, w) marks the darkest and brightest pixels of the image, by default those of
    `plane`. A difference of channels has its extremes elsewhere.
    """
    scale = 255.0 / data_range
    pixels = plane.astype(np.float32) * np.float32(scale)
    if not np.ptp(pixels):
        return DenoiseInfo("gaussian", 0.0, (0.0,), True, False, data_range, (0.0, 0.0))
    stride = max(1, round(np.sqrt(pixels.size / enough)))
    seen, clipped = sample_energies(pixels, stride, extreme)
    if not len(seen):
        sigma = diagonal_deviation(pixels) / scale
        known, interval = ("gaussian", sigma, (sigma,)), (0.0, 2 * sigma)
        return DenoiseInfo(*known, True, False, data_range, interval, False, clipped=clipped)
    # Sort patches into classes by coarse structure, which does not depend on fine noise.
    bands, coarse = seen[:, : len(COEFFICIENTS)], seen[:, len(COEFFICIENTS)]
    order = np.argsort(coarse, kind="stable")
    ends = [max(1, round(share * len(order))) for share in CLASSES]
    classes = [order[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    sizes = np.array([max(1, len(members)) for members in classes], float)
    classes = [members if len(members) else order[:1] for members in classes]
    energies = np.array([bands[members].mean(axis=0, dtype=np.float64) for members in classes])
    energies += np.finfo(np.float32).eps ** 2 * float(np.square(pixels).mean())
    levels, weights = noise_posterior(energies, sizes * min(stride, WIDTH) ** 2)
    below = np.cumsum(weights) - weights / 2
    low, level, high = np.interp([LOW, LEVEL, HIGH], below, levels).tolist()
    upper = energies @ COEFFICIENTS / COEFFICIENTS.sum()
    dominant = bool(low**2 >= DOMINANT * np.average(upper[:2], weights=sizes[:2]))
    sigma, interval = level / scale, (low / scale, high / scale)
    known = "gaussian", sigma, (sigma,)
    return DenoiseInfo(*known, True, False, data_range, interval, dominant, clipped=clipped)


def diagonal_deviation(pixels: NDArray[np.float32]) -> float:
    """Return the deviation of white noise, estimated by the median absolute diagonal difference."""
    if min(pixels.shape) > 1:
        details = np.diff(np.diff(pixels, axis=0), axis=1) / 2.0
    else:
        details = np.diff(pixels.ravel()) / np.sqrt(2.0)
    return float(np.median(np.abs(details)) / 0.67449) if details.size else 0.0


def noise_posterior(
    energies: NDArray[np.float64], pixels: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return noise levels (40,), ascending, and their posterior weights, which sum to 1.

    `energies` (classes, 5) are the mean energies > 0 of each class in each band. `pixels` are the
    numbers of different pixels in each class, as patches overlap. The prior is flat in the log.
    """
    # The noise variance is not far above the energy of the quietest class.
    highest = np.log(1.5) + np.log(energies.max(axis=1).min()) / 2
    lowest, amplitudes = highest - np.log(REACH), np.exp(2.0 * highest) * AMPLITUDES
    for most, count in zip(BELIEVED, LEVELS, strict=True):
        grid = np.linspace(lowest, highest, count)
        noises = np.repeat(np.exp(2.0 * grid)[:, None], len(COEFFICIENTS), axis=1)
        seen = energies, np.minimum(pixels, most), LEAST_VARIANCE
        table = class_likelihoods(*seen, noises, amplitudes, SPECTRA).sum(axis=0)
        log_weights = logsumexp(table + SPECTRUM_LOG_PRIOR[:, None], axis=0)
        log_weights -= log_weights.max()
        likely = np.flatnonzero(log_weights > LIKELY)
        lowest, highest = grid[max(likely[0] - 1, 0)], grid[min(likely[-1] + 1, count - 1)]
    weights = np.exp(log_weights)
    return np.exp(grid), weights / weights.sum()
