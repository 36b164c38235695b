"""Measure noise in the dark, as the amount of light that would make that noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from kpca_apps.denoise.noise.model import Planes

TILE = 8
ROUNDS = 4  # number of fits, each weighted by the previous fit
# Number of brightness classes of tiles; share of pixels that may stay below 0 after the result of
# `dark_light` is added; maximum of this result, as a multiple of the largest absolute value.
DARK_CLASSES, LOWEST, FARTHEST = 8, 0.001, 100.0


def dark_light(plane: Planes, power: int) -> float:
    """Return the light whose noise, with variance ~ light^power, equals the noise in the dark."""
    if plane.min() >= 0:
        return 0.0
    # Return at least the light that, added to the pixels, leaves only the share LOWEST below 0.
    least = max(-float(np.quantile(plane, LOWEST)), 0.0)
    variance, mean = tiled_noise(plane)
    if len(mean) < DARK_CLASSES:
        return least
    classes = np.array_split(np.argsort(mean, kind="stable"), DARK_CLASSES)
    found = np.array([np.median(variance[m]) for m in classes])
    unit, fitted = float(np.abs(plane).max()), found
    light = np.array([((np.maximum(mean[m], 0.0) / unit) ** power).mean() for m in classes])
    for _ in range(ROUNDS):
        # Divide by the variance, as errors grow with it; texture in bright areas then counts less.
        weights = 1.0 / np.maximum(fitted, 1e-6 * found.max() + np.finfo(np.float64).tiny)
        design = np.stack([np.ones(DARK_CLASSES), light], axis=1)
        scaled = design * weights[:, np.newaxis]
        (constant, slope), misfit = nnls(scaled, found * weights)
        fitted = constant + slope * light
    # Reduce the slope by its standard error. This raises `dark`, a power of constant / slope. Too
    # large a `dark` does little harm, but too small a `dark` makes outliers of dark values.
    covariance = np.linalg.pinv(scaled.T @ scaled) * misfit**2 / (DARK_CLASSES - 2)
    flatter = max(slope - float(np.sqrt(covariance[1, 1])), 0.0)
    constant += (slope - flatter) * float(np.average(light, weights=weights**2))
    dark = FARTHEST
    if constant < flatter * dark**power:
        dark = (constant / flatter) ** (1.0 / power)
    return float(max(unit * dark, least))


def tiled_noise(plane: Planes) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return each tile's noise variance, from mixed differences, and each tile's mean."""
    height, width = (side // TILE * TILE for side in np.subtract(plane.shape, 1))
    tiled = (height // TILE, TILE, width // TILE, TILE)
    details = np.diff(np.diff(plane, axis=0), axis=1)[:height, :width] / 2.0
    variance = np.square(details).reshape(tiled).mean(axis=(1, 3)).ravel()
    return variance, plane[:height, :width].reshape(tiled).mean(axis=(1, 3)).ravel()
