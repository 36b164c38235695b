"""Patches of 8 x 8 pixels for measuring noise, their cosine transform, and texture spectra."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.fft import dct

Array = NDArray[np.float64]
Plane = NDArray[np.float32]

WIDTH = 8  # side of patches in pixels, and of their cosine transform
PIXELS = WIDTH * WIDTH
FEWEST_PATCHES, MOST_PATCHES = 256, 250_000
# About the numbers of patches transformed, and of likelihoods computed, at once, in the cache.
IN_CACHE, AT_ONCE = 1024, 32_768

# Bands of the 8 x 8 cosine transform: least and largest sum of the two frequency indices.
BANDS = ((4, 5), (6, 7), (8, 9), (10, 11), (12, 14))

# FALL is the mean fall of texture's log energy from each band to the next in clean photographs. To
# get the falls of a single photograph, add an offset (standard deviation SLOPE_SD) and a linear
# trend, whose slope per band has the standard deviation CURVATURE_SD.
FALL = np.array([0.62, 0.5, 0.5, 0.7])
SLOPE_SD, CURVATURE_SD = 0.22, 0.1
TEXTURE_SD = 0.15  # deviation of texture's log energy in a band from the spectrum that fits best

# The orthonormal cosine transform of patches (n, 64) is their product with COSINES.
BASIS = dct(np.eye(WIDTH, dtype=np.float32), axis=0, norm="ortho")
COSINES = np.kron(BASIS, BASIS).T

_FIRST, _SECOND = np.indices((WIDTH, WIDTH)).reshape(2, -1)
_SUM = _FIRST + _SECOND
MEMBERS = np.array([(first <= _SUM) & (last >= _SUM) for first, last in BANDS])
SIDES = [MEMBERS.any(axis=0) & side for side in (_FIRST > _SECOND, _FIRST < _SECOND)]
COEFFICIENTS = MEMBERS.sum(axis=1)
# Energies (n, 64) times MEANS are means over bands, coarse structure (1 to 3), and either side.
MEANS = np.array([*MEMBERS, (_SUM >= 1) & (_SUM <= 3), *SIDES], np.float32).T
MEANS /= MEANS.sum(axis=0)
N_COEFFICIENTS = int(COEFFICIENTS.sum())

# Relative variance of the energy between patches: EVEN for white noise, SCATTER^2 for texture.
# SCATTER_SD is the standard error of the logarithm of such a variance.
EVEN, SCATTER, SCATTER_SD = 2.0 / N_COEFFICIENTS, 0.8, 0.5


def texture_spectra(slopes: Array, curvatures: Array) -> tuple[Array, Array]:
    """Return spectra of texture (n, 5), 1 in the last band, and the logarithms of their priors.

    Each pair of a slope and a curvature, both in units of their deviation, gives one spectrum.
    """
    s, c = (x.ravel() for x in np.meshgrid(slopes, curvatures))
    bend = CURVATURE_SD * c[:, None] * np.linspace(-1.5, 1.5, len(FALL))
    falls = FALL + SLOPE_SD * s[:, None] + bend
    spectra = np.exp(np.c_[np.cumsum(falls[:, ::-1], axis=1)[:, ::-1], np.zeros(len(falls))])
    return spectra, -(s**2 + c**2) / 2


def class_likelihoods(
    energies: Array,
    pixels: Array,
    believed: float,
    noises: Array,
    amplitudes: Array,
    spectra: Array,
    scatter: Array | None = None,
) -> Array:
    """Return the log likelihood (n, spectra, levels) of n classes of patches at noise levels.

    Each class has mean energies in 5 bands over a number of pixels. `believed` is added to their
    relative variance; `scatter` is the relative variance of energy between patches, if known. Noise
    (levels, 5) plus texture (spectra, 5) times amplitudes, which are summed out, explains energies.
    """
    freedom = np.maximum(pixels[:, None] * COEFFICIENTS / PIXELS, 1.0)
    unsure = SCATTER_SD**2 + 2.0 / np.maximum(pixels / PIXELS, 1.0)
    # Single precision halves the time. The axes are bands, amplitudes, n, spectra and levels, as
    # sums along the first axis of an array are fast.
    both = np.array([np.log(energies), 2.0 / freedom + believed], np.float32)
    logs, variances = both.swapaxes(1, 2)[..., None, None]
    textures = spectra.T[:, None, None, :, None] * amplitudes[:, None, None, None]
    textures, levels = textures.astype(np.float32), noises.T[:, None, None, None].astype(np.float32)
    means = levels + textures
    shares = textures / means
    expected, unusual = np.log(means), np.square(shares * TEXTURE_SD)
    shares *= (COEFFICIENTS / N_COEFFICIENTS).astype(np.float32)[:, None, None, None, None]
    of_texture = np.log(EVEN + np.square(sum(shares) * SCATTER))
    found = np.empty((len(energies), *means.shape[3:]))
    for start in range(0, len(energies), few := max(1, AT_ONCE // means[0].size)):
        some, misfit, spread = slice(start, start + few), 0.0, 1.0  # sum and product over bands
        for band in range(len(BANDS)):
            variance = variances[band, some] + unusual[band]
            off = np.square(expected[band] - logs[band, some])
            off /= variance
            misfit, spread = off + misfit, variance * spread
        if scatter is not None:
            seen = np.log(np.maximum(scatter[some], 1e-6)), unsure[some]
            middle, variance = np.asarray(seen, np.float32)[..., None, None]
            misfit += (middle - of_texture) ** 2 / variance
        own = -0.5 * (misfit + np.log(spread))
        best = own.max(axis=0)
        found[some] = best + np.log(np.exp(own - best).mean(axis=0))
    return found


def patches_of(plane: NDArray[np.generic], stride: int) -> NDArray[np.generic]:
    """Return the patches (n, 64) on a grid."""
    windows = sliding_window_view(plane, (WIDTH, WIDTH))[::stride, ::stride]
    return windows.reshape(-1, PIXELS)


def counts_of(flags: NDArray[np.bool_], stride: int) -> NDArray[np.uint8]:
    """Return how many pixels are flagged in each patch on a grid."""
    counts = flags.astype(np.uint8)
    for _ in range(2):
        for step in (1, 2, 4):  # sums of 2, 4 and 8 pixels
            counts = counts[:-step] + counts[step:]
        counts = counts[::stride].T
    return counts.ravel()


def areas_of_one_value(pixels: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Mark the pixels of all patches that have a single value, and so no noise."""
    width = pixels.shape[1]
    wide = np.pad(pixels, (WIDTH // 2, WIDTH // 2 - 1), mode="symmetric")
    rows = _all_of(wide[:, 1:] == wide[:, :-1], WIDTH - 1, 1)
    columns = _all_of(wide[1:, :width] == wide[:-1, :width], WIDTH - 1, 0)
    noisy = ~(_all_of(rows, WIDTH, 0) & columns)
    noisy = np.pad(noisy, (WIDTH // 2 - 1, WIDTH // 2), mode="symmetric")
    return ~_all_of(_all_of(noisy, WIDTH, 0), WIDTH, 1)


def _all_of(flags: NDArray[np.bool_], count: int, axis: int) -> NDArray[np.bool_]:
    """Return whether `count` successive flags along an axis are all true, at each position."""
    flags, done = np.swapaxes(flags, 0, axis), 1
    while done < count:
        step = min(done, count - done)
        flags = flags[:-step] & flags[step:]
        done += step
    return np.swapaxes(flags, 0, axis)


def energies_of(plane: Plane, stride: int) -> tuple[Plane, Plane]:
    """Return brightness (n,) and energies (n, 8) by `MEANS` of the patches on a grid."""
    windows = sliding_window_view(plane, (WIDTH, WIDTH))[::stride, ::stride]
    height, width = windows.shape[:2]
    brightness = np.empty(height * width, np.float32)
    energies = np.empty((height * width, MEANS.shape[1]), np.float32)
    for start in range(0, height, rows := max(1, IN_CACHE // width)):
        patches = windows[start : start + rows].reshape(-1, PIXELS)
        some = slice(start * width, start * width + len(patches))
        first = patches[:, :1]
        coefficients = (patches - first) @ COSINES  # the difference reduces rounding errors
        brightness[some] = first[:, 0] + coefficients[:, 0] / WIDTH
        energies[some] = np.square(coefficients, out=coefficients) @ MEANS
    return brightness, energies


def sample_energies(
    pixels: NDArray[np.float32], stride: int, extreme: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.float32], bool]:
    """Return energies (n, 8) of patches at steps of `stride`, and whether some are clipped.

    Constant and clipped patches, which hide noise, are left out if there are enough others.
    `extreme` is described in `kpca_apps.denoise.estimate.level.estimate_noise`.
    """
    if min(pixels.shape) < WIDTH:
        return np.empty((0, MEANS.shape[1]), np.float32), False
    if extreme is None:
        extreme = (pixels == pixels.min()) | (pixels == pixels.max())
    energies = energies_of(pixels, stride)[1]
    varying = energies.any(axis=1)
    # One pixel always has the extreme value; two or more in a patch are a clipped area.
    unclipped = varying & (counts_of(extreme, stride) < 2)
    if np.count_nonzero(unclipped) >= FEWEST_PATCHES:
        return energies[unclipped], False
    # Nearly all patches are clipped, as on a scanned page, so measure the remaining noise. At
    # white, where half of the noise is clipped, its deviation falls to sqrt(1/2 - 1/(2 pi)) = 0.58.
    return energies[varying], True
