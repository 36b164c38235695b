"""Map the level of white noise over an image, if the level varies between tiles.

The quietest patches of a tile show noise and some texture, whose spectrum falls as in other
pictures; least squares over the bands separates the two. The level of a tile is predicted from
tiles around, from those of its row or column (noise in bands), from tiles of similar brightness,
and from a straight line over brightness. The likelihoods of these predictions are compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import zoom

from kpca_apps.denoise.estimate.patches import (
    COEFFICIENTS,
    WIDTH,
    counts_of,
    energies_of,
    texture_spectra,
)

Array = NDArray[np.float64]

TILES = 8  # number of tiles along a side
SMALLEST = 16 * TILES  # minimum side in pixels of an image whose noise level is mapped
MOST_AT_ENDS = 0.05  # no map is made with a larger share of extreme pixels: clipping weakens noise
PATCHES = 40_000
QUIETEST = 0.25  # share of a tile's patches in which noise is measured
# To predict a tile's level, other tiles are weighted by a Gaussian: of their distance, with the
# deviations AROUND (down and across, in tiles), or of their difference in brightness rank, with the
# deviation ALIKE (as a share of all ranks). The last two pairs weight tiles of one row or column.
AROUND, ALIKE = np.array([(1.0, 1.0), (0.3, np.inf), (np.inf, 0.3)]), 0.08
# A map is made if two numbers pass their limits. The log likelihood of the best prediction by place
# exceeds that of any other prediction by more than BEATS. The predicted log level rises by at least
# RANGE from the first to the ninth decile of tiles. On 60 photographs of BSDS500 (train, val), no
# map was made for constant noise or for noise that grows with brightness. Of maps for noise that
# varies over the image (deviations 4 to 25), 98 % were made.
BEATS, RANGE = 8.0, 0.42
LEAST_SHARE = 0.02  # minimum share of noise in quiet patches, and of the highest level in a tile
TEXTURE = texture_spectra(np.zeros(1), np.zeros(1))[0][0]


def place_map(plane: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """Return the noise level at each pixel, divided by the root mean square of all these levels.

    None if the noise is constant, depends on the brightness, or is clipped at many pixels.
    """
    at_ends = np.mean((plane == plane.min()) | (plane == plane.max()))
    if min(plane.shape) < SMALLEST or at_ends > MOST_AT_ENDS:
        return None
    levels, brightness, shares = _tile_levels(plane)
    logs, places = np.log(levels).ravel(), np.indices(levels.shape).reshape(2, -1)
    ranks = np.argsort(np.argsort(brightness.ravel())) / brightness.size
    near = np.tensordot(AROUND**-2, np.square(places[:, :, None] - places[:, None]), axes=1)
    alike = np.square((ranks[:, None] - ranks) / ALIKE)
    weights = shares.ravel() / shares.sum()
    predicted = [_predicted(logs, np.exp(-one / 2) * weights) for one in (*near, alike)]
    # Nearby tiles often have similar brightness, so they also predict noise that depends only on
    # brightness. A line over brightness, fitted to all tiles, predicts such noise better.
    predicted.append(_by_light(levels.ravel(), brightness.ravel(), weights))
    errors = np.square(logs - predicted) @ weights
    best = int(errors[: len(near)].argmin())
    is_likelier = len(logs) / 2 * np.log(errors[len(near) :].min() / errors[best]) > BEATS
    if not is_likelier or np.ptp(np.quantile(predicted[best], (0.1, 0.9))) < RANGE:
        return None
    kernel = np.exp(-near[best] / 2) * weights
    smooth = np.exp(kernel @ logs / kernel.sum(axis=1)).reshape(levels.shape)
    factors = np.divide(plane.shape, TILES)
    found = zoom(smooth, factors, order=1, mode="nearest", grid_mode=True)
    return np.asarray(found / np.sqrt(np.mean(np.square(found))), np.float32)


def _predicted(logs: Array, kernel: Array) -> Array:
    """Return the log level of each tile, predicted as a weighted mean of the other tiles."""
    np.fill_diagonal(kernel, 0.0)
    return np.asarray(kernel @ logs / (kernel.sum(axis=1) + np.finfo(np.float64).tiny))


def _by_light(levels: Array, brightness: Array, weights: Array) -> Array:
    """Return log levels, predicted by a straight line of squared levels over brightness."""
    design = np.stack([np.ones(len(levels)), brightness], axis=1)
    variance = expected = np.square(levels)
    for _ in range(4):  # errors are relative: divide by the variance that the last fit expects
        scale = np.sqrt(weights) / expected
        line = np.linalg.lstsq(design * scale[:, None], variance * scale)[0]
        expected = np.maximum(design @ line, LEAST_SHARE * variance.mean())
    return np.asarray(np.log(expected) / 2)


def _tile_levels(plane: NDArray[np.float32]) -> tuple[Array, Array, Array]:
    """Return level, brightness, and share of noise in the energy, for each tile."""
    stride = max(1, round(np.sqrt(plane.size / PATCHES)))
    height, width = ((side - WIDTH) // stride + 1 for side in plane.shape)
    ends = counts_of((plane == plane.min()) | (plane == plane.max()), stride)
    brightness, energies = energies_of(plane, stride)
    bands, coarse = energies[:, : len(COEFFICIENTS)], energies[:, len(COEFFICIENTS)]
    coarse[ends > 1] = np.inf
    numbers = np.arange(height * width).reshape(height, width)
    found = np.empty((3, TILES, TILES))
    for i, rows in enumerate(np.array_split(numbers, TILES)):
        for j, tile in enumerate(np.array_split(rows, TILES, axis=1)):
            members = tile.ravel()[np.argsort(coarse[tile.ravel()], kind="stable")]
            members = members[: max(1, round(QUIETEST * len(members)))]
            means = bands[members].mean(axis=0, dtype=np.float64) + np.finfo(np.float32).tiny
            design = np.stack([np.ones(len(means)), TEXTURE], axis=1) / means[:, None]
            noise, texture = np.linalg.lstsq(design, np.ones(len(means)))[0]
            if texture < 0:
                noise = np.average(means, weights=COEFFICIENTS)
            noise = max(noise, LEAST_SHARE * means[-1])
            share = np.clip(noise / means[0], LEAST_SHARE, 1.0)
            found[:, i, j] = np.sqrt(noise), brightness[members].mean(), share
    return np.maximum(found[0], LEAST_SHARE * found[0].max()), found[1], found[2]
