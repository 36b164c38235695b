"""One pass over a whole image: bands of references in any order, summed in the image's order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kpca_apps.denoise.matching import RADIUS, pad_guide
from kpca_apps.denoise.parameters import PassSettings
from kpca_apps.denoise.passes import project_band, wiener_band

__all__ = ["Strip", "patch_means", "project", "wiener"]

Planes = NDArray[np.float32]

GRID_ROWS_A_BAND = 6


class Strip:
    """Rows of a larger image, with the larger image's grid of references.

    Parameters
    ----------
    first : int
        Row of the whole image that is row 0 here.
    rows : int
        Rows here.
    whole : (int, int)
        Height and width of the whole image.
    n_jobs : int or None
        Threads; the result does not depend on it.
    """

    def __init__(
        self, first: int, rows: int, whole: tuple[int, int], n_jobs: int | None = None
    ) -> None:
        self.first = first
        self.rows = rows
        self.whole = whole
        self.n_jobs = n_jobs

    def window(self, settings: PassSettings) -> Planes:
        """Weights of the pixels of a patch: a Kaiser window, smaller in images that are."""
        sides = (min(settings.size, side) for side in self.whole)
        tall, wide = (np.kaiser(side, 2.0) for side in sides)
        return np.outer(tall, wide).astype(np.float32)

    def bands(self, height: int, stride: int) -> list[NDArray[np.int64]]:
        """Rows of references inside this strip, cut into bands as in the whole image."""
        grid = _grid(self.whole[0], height, stride)
        bands = [grid[i : i + GRID_ROWS_A_BAND] for i in range(0, len(grid), GRID_ROWS_A_BAND)]
        inside = [
            band[(band >= self.first) & (band + height <= self.first + self.rows)] - self.first
            for band in bands
        ]
        return [band for band in inside if len(band)]


def _grid(length: int, size: int, stride: int) -> NDArray[np.int64]:
    """Corners of patches, the last one always in."""
    corners = np.arange(0, length - size + 1, stride)
    if corners[-1] != length - size:
        corners = np.append(corners, length - size)
    return corners


def patch_means(maps: Planes, shape: tuple[int, int]) -> Planes:
    """Means of a map over the patch at each position, by direct sums.

    Parameters
    ----------
    maps : (..., h, w) float32 array
        Any map.
    shape : (int, int)
        Size of a patch, (p, p').

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
    down = maps.shape[-2] - tall + 1
    across = maps.shape[-1] - wide + 1
    columns = sum(maps[..., i : i + down, :] for i in range(tall))
    total: Planes = sum(columns[..., j : j + across] for j in range(wide))  # type: ignore[index]
    total /= np.float32(tall * wide)
    return total


def project(
    planes: Planes,
    guide: Planes,
    variance: Planes,
    left: Planes,
    settings: PassSettings,
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
    strip : Strip
        Where the planes lie in the whole image.

    Returns
    -------
    estimate, leverage : (c, h, w) float32 arrays
        The estimate, and its variance over the variance of the noise.
    """
    window = strip.window(settings)
    tie = _ties(left, window, settings)
    spread = patch_means(variance, window.shape)
    padded = pad_guide(guide)

    def band(rows: NDArray[np.int64], top: int, height: int) -> Planes:
        columns = _grid(planes.shape[2], window.shape[1], settings.stride)
        done: Planes = project_band(
            padded, planes, spread, tie, window, settings.group,
            rows, columns, strip.first, top, height,
        )  # fmt: skip
        return done

    return _run(band, planes, window.shape[0], settings, strip)


def wiener(
    planes: Planes,
    pilot: Planes,
    guide: Planes,
    variance: NDArray[np.float32],
    settings: PassSettings,
    strip: Strip,
) -> tuple[Planes, Planes]:
    """Run one Wiener pass; parameters as for `project`, and a pilot estimate of the planes."""
    window = strip.window(settings)
    tie = _ties(np.zeros_like(guide), window, settings)
    padded = pad_guide(guide)

    def band(rows: NDArray[np.int64], top: int, height: int) -> Planes:
        columns = _grid(planes.shape[2], window.shape[1], settings.stride)
        done: Planes = wiener_band(
            padded, pilot, planes, variance, tie, window, settings.group,
            rows, columns, strip.first, top, height,
        )  # fmt: skip
        return done

    return _run(band, planes, window.shape[0], settings, strip)


def _ties(left: Planes, window: Planes, settings: PassSettings) -> Planes:
    """Squared distance up to which noise alone explains a candidate."""
    return patch_means(left, window.shape) * np.float32(settings.tie * 2 * window.size)


def _run(
    band: Callable[[NDArray[np.int64], int, int], Planes],
    planes: Planes,
    tall: int,
    settings: PassSettings,
    strip: Strip,
) -> tuple[Planes, Planes]:
    """Work through the bands, on any number of threads, and add them up in order."""
    sums = np.zeros((planes.shape[0], 3, *planes.shape[1:]), np.float32)
    jobs = []
    for rows in strip.bands(tall, settings.stride):
        top = max(0, int(rows[0]) - RADIUS)
        end = min(planes.shape[1], int(rows[-1]) + tall + RADIUS)
        jobs.append((rows, top, end - top))
    parallel = Parallel(n_jobs=strip.n_jobs, prefer="threads", return_as="generator")
    for (_, top, height), part in zip(
        jobs, parallel(delayed(band)(*job) for job in jobs), strict=True
    ):
        sums[:, :, top : top + height] += part
    with np.errstate(invalid="ignore"):
        return sums[:, 0] / sums[:, 1], sums[:, 2] / sums[:, 1]
