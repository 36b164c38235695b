"""One pass over an image: bands of references in any order, summed in the order of the image.

A strip is a piece of a larger image, worked on as if the rest were there: the same references, the
same bands, the same draws. So what its inner pixels get does not depend on where the image was
cut, nor on the number of threads, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kpca_apps.denoise.matching import RADIUS, origin_of, pad_guide
from kpca_apps.denoise.parameters import PassSettings
from kpca_apps.denoise.projection import project_band, survey_band
from kpca_apps.denoise.wiener import wiener_band

__all__ = ["Strip", "noise_excess", "patch_means", "project", "reach", "wiener"]

Planes = NDArray[np.float32]
Rows = NDArray[np.int64]
Band = Callable[[Rows, int, int], Planes]

GRID_ROWS_A_BAND = 6

SURVEYED = 1600
"""Groups looked at, about, to see whether the noise level given is too low."""

QUIET = 0.05
"""Share of groups that hold little but noise, in all but the busiest images."""

QUIET_RATIO = 0.905
"""Residual variance of those groups over the noise variance when that is right; patches that
look alike share some of their noise, so less than 1. Measured: .84 to .89 on noise alone, .85 to
.90 on photographs at sigma 15 to 50, .97 to .99 with sigma given 10 % too low."""

STEEPNESS = 2.5
"""Matching hides most of an excess: this is what brings 10 % in sigma back to 20 % in variance."""

MOST_EXCESS = 1.25
"""Noise variance over the variance given that is allowed for: sigma 12 % too low."""


@dataclass(frozen=True)
class Strip:
    """A piece of a larger image.

    Attributes
    ----------
    first, left : int
        Row and column of the whole image that are the first ones here.
    rows, columns : int
        How many there are here.
    whole : (int, int)
        Height and width of the whole image.
    n_jobs : int or None
        Threads.
    advance : callable
        Told the share of a pass that each band is.
    """

    first: int
    left: int
    rows: int
    columns: int
    whole: tuple[int, int]
    n_jobs: int | None = None
    advance: Callable[[float], None] = lambda share: None

    def window(self, settings: PassSettings) -> Planes:
        """Weights of the pixels of a patch: a Kaiser window, smaller in images that are."""
        tall, wide = (np.kaiser(min(settings.size, side), 2.0) for side in self.whole)
        return np.outer(tall, wide).astype(np.float32)

    def across(self, wide: int, stride: int) -> Rows:
        """Find the columns of the references of the whole image inside the strip."""
        grid = _grid(self.whole[1], wide, stride) - self.left
        return np.asarray(grid[(grid >= 0) & (grid + wide <= self.columns)])

    def bands(self, tall: int, stride: int) -> list[tuple[Rows, int, int]]:
        """Find the references of the whole image inside the strip, in the whole image's bands.

        Parameters
        ----------
        tall : int
            Height of a patch.
        stride : int
            Rows between references.

        Returns
        -------
        list of (rows, top, height)
            Rows of references in the strip, and the rows of the strip they can reach.
        """
        grid = _grid(self.whole[0], tall, stride)
        found = []
        for start in range(0, len(grid), GRID_ROWS_A_BAND):
            band = grid[start : start + GRID_ROWS_A_BAND] - self.first
            band = band[(band >= 0) & (band + tall <= self.rows)]
            if len(band):
                top = max(0, int(band[0]) - RADIUS)
                end = min(self.rows, int(band[-1]) + tall + RADIUS)
                found.append((band, top, end - top))
        return found


def reach(settings: PassSettings) -> int:
    """Pixels on either side that decide what one pass makes of one.

    The patches over a pixel belong to references up to a radius away, and those compare with
    patches a radius further on.
    """
    return 2 * RADIUS + settings.size


def patch_means(maps: Planes, shape: tuple[int, int]) -> Planes:
    """Means of a map over the patch at each position, by direct sums.

    Parameters
    ----------
    maps : (..., h, w) float32 array
        Any map.
    shape : (int, int)
        Height and width of a patch, (p, p').

    Returns
    -------
    (..., h - p + 1, w - p' + 1) float32 array
        The means.

    Examples
    --------
    >>> patch_means(np.array([[0, 2, 4]], np.float32), (1, 2))
    array([[1., 3.]], dtype=float32)
    """
    tall, wide = shape
    down, across = maps.shape[-2] - tall + 1, maps.shape[-1] - wide + 1
    columns = maps[..., :down, :].copy()
    for i in range(1, tall):
        columns += maps[..., i : i + down, :]
    means = columns[..., :across].copy()
    for j in range(1, wide):
        means += columns[..., j : j + across]
    means /= np.float32(tall * wide)
    return means


def noise_excess(plane: Planes, sigma: float, settings: PassSettings) -> float:
    """How far the noise of an image exceeds what it is said to be, at the least.

    Parameters
    ----------
    plane : (h, w) float32 array
        The noisy image.
    sigma : float > 0
        Standard deviation of its noise as given.
    settings : PassSettings
        Of the first projection.

    Returns
    -------
    float in [1, 1.25]
        Variance of the noise over sigma^2, as quiet groups show it: 1 where sigma is right or
        too high.
    """
    tall, wide = (min(settings.size, side) for side in plane.shape)
    step = max(settings.size, int(np.sqrt(plane.size / SURVEYED)))
    variance = np.float32(sigma**2)
    tie = np.float32(settings.tie * 2 * tall * wide) * variance
    ratios = survey_band(
        pad_guide(plane), plane, variance, tie, (tall, wide), settings.group,
        np.float32(MOST_EXCESS),
        _grid(plane.shape[0], tall, step), _grid(plane.shape[1], wide, step),
    )  # fmt: skip
    excess = 1.0 + STEEPNESS * (float(np.quantile(ratios, QUIET)) - QUIET_RATIO)
    return min(max(excess, 1.0), MOST_EXCESS)


def project(
    planes: Planes,
    guide: Planes,
    variance: Planes,
    left: Planes,
    settings: PassSettings,
    excess: float,
    strip: Strip,
) -> tuple[Planes, Planes]:
    """Run one projection pass.

    Parameters
    ----------
    planes : (c, h, w) float32 array
        What is projected.
    guide : (h, w) float32 array
        Image the patches are matched in.
    variance : (c, h, w) float32 array
        Variance of the noise in the planes.
    left : (h, w) float32 array
        Variance of the noise in the guide.
    settings : PassSettings
        Patch and group sizes.
    excess : float
        From `noise_excess`.
    strip : Strip
        Where the planes lie in the whole image.

    Returns
    -------
    estimate, leverage : (c, h, w) float32 arrays
        The estimate, and its variance over the variance of the noise.
    """
    window = strip.window(settings)
    tie = patch_means(left, window.shape) * np.float32(settings.tie * 2 * window.size)
    spread = patch_means(variance, window.shape)
    columns = strip.across(window.shape[1], settings.stride)
    padded = pad_guide(guide)

    def band(rows: Rows, top: int, height: int) -> Planes:
        return project_band(
            padded, planes, spread, tie, window, settings.group, np.float32(excess),
            rows, columns, origin_of(strip.first, strip.left), top, height,
        )  # fmt: skip

    return _run(band, planes, strip.bands(window.shape[0], settings.stride), strip)


def wiener(
    planes: Planes,
    pilot: Planes,
    guide: Planes,
    variance: Planes,
    settings: PassSettings,
    rbf: bool,
    strip: Strip,
) -> tuple[Planes, Planes]:
    """Run one Wiener pass.

    Parameters
    ----------
    pilot : (c, h, w) float32 array
        First estimate of the planes.
    variance : (c,) float32 array
        Variance of the noise in each plane.
    rbf : bool
        The RBF kernel instead of the linear one.
    planes, guide, settings, strip
        As for `project`.

    Returns
    -------
    estimate, leverage : (c, h, w) float32 arrays
        As `project`.
    """
    window = strip.window(settings)
    columns = strip.across(window.shape[1], settings.stride)
    padded = pad_guide(guide)

    def band(rows: Rows, top: int, height: int) -> Planes:
        return wiener_band(
            padded, pilot, planes, variance, window, settings.group, rbf,
            rows, columns, top, height,
        )  # fmt: skip

    return _run(band, planes, strip.bands(window.shape[0], settings.stride), strip)


def _grid(length: int, size: int, stride: int) -> Rows:
    """Corners of patches along one side, the last one always in."""
    corners = np.arange(0, length - size + 1, stride)
    if corners[-1] != length - size:
        corners = np.append(corners, length - size)
    return corners


def _run(
    band: Band, planes: Planes, bands: list[tuple[Rows, int, int]], strip: Strip
) -> tuple[Planes, Planes]:
    """Work through the bands and add them up in order; pixels no patch covers stay as they are."""
    sums = np.zeros((len(planes), 3, *planes.shape[1:]), np.float32)
    parallel = Parallel(n_jobs=strip.n_jobs, require="sharedmem", return_as="generator")
    parts = parallel(delayed(band)(*job) for job in bands)
    for (_, top, height), part in zip(bands, parts, strict=True):
        sums[:, :, top : top + height] += part
        strip.advance(1 / len(bands))
    totals, weights, leverages = sums[:, 0], sums[:, 1], sums[:, 2]
    bare = weights == 0
    weights[bare] = np.float32(1)
    totals /= weights
    leverages /= weights
    totals[bare] = planes[bare]
    leverages[bare] = np.float32(1)
    return totals.copy(), leverages.copy()
