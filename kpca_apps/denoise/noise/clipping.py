"""Noise that was clipped or bent by a tone curve: stabilise it, and restore its mean.

For noise of deviation s at brightness x, clipped below and above, mean m(x) and deviation d(x) are
known (Foi 2009). At the dark end, clipping raises the mean by .4 s and weakens the noise. The
transform f with slope s / d at mean m makes the noise nearly as strong everywhere. The denoised
image is E f = F(x), and F^-1 maps it, without bias, to the original brightness. If s is unknown, it
follows from m and from the deviation d of the removed noise.

A camera saves the root y = x^(1/g) of the light x, clipped at black. As the root is concave, the
noise of y has a tail in the dark, and the mean of y is below the root of the mean light, by about
(g - 1) d^2 / (2 y). Scaling x scales y, so m / d determines both y / d and the skewness.

References
----------
A. Foi (2009), "Clipped noisy images: heteroskedastic modeling and practical denoising", Signal
Processing 89, sections 2 and 5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.stats import norm

from kpca_apps.denoise.estimate.law import CUT

Array = NDArray[np.float64]
Lookup = Callable[[NDArray[np.float32]], NDArray[np.float32]]

FEWEST = 20  # if no more than this many pixels are black (or white), noise is not clipped there
# Number of points near an end, width of their range (in noise levels), number of quadrature nodes.
KNOTS, FAR, NODES = 256, 12.0, 80
# Number of cells of the even grid, and number of pixels looked up at once, which stay in the cache.
CELLS, IN_CACHE = 1 << 14, 1 << 13
CLASSES = 64  # number of classes of similar brightness, in which the removed noise is measured
# Exponents g of tone curves: values in proportion to light, and photographs (the curve of sRGB).
LINEAR, ROOT = 1.0, 2.2
# Minimum skewness of removed noise that was bent, as a share of that of ROOT. Half of 24 crops of
# phones have at least .67, as some noise remains; noise that was not bent has at most .06. With a
# lower limit, dim JPEGs become too bright, as colours lost noise after they were clipped.
LIKE_ROOT = 0.4
# Light at the points of tables, in deviations of its noise before clipping, and its Gaussian noise.
LIGHT, NOISE = np.expm1(np.linspace(0.0, 6.0, 601)), np.linspace(-8.0, 8.0, 401)


def _ends_of(plane: NDArray[np.float32]) -> tuple[tuple[float, float], tuple[bool, bool]]:
    """Return least and largest value of a plane, and whether noise was clipped at each."""
    low, high = float(plane.min()), float(plane.max())
    enough = max(CUT * plane.size, FEWEST)
    is_cut = [bool(np.count_nonzero(plane == end) > enough) for end in (low, high)]
    return (low, high), (is_cut[0], is_cut[1])


def _lookup(knots: Array, values: Array, near: float) -> Lookup:
    """Return a function that interpolates on an even grid, 5 times as fast as `np.interp`."""
    # The grid covers the range `near` each end; between them, values are knots plus a constant.
    low, high = float(knots[0]), float(knots[-1])
    half = min(near, (high - low) / 2)
    grid = np.linspace(-half, half, CELLS + 1)
    grid += np.where(grid < 0, low + half, high - half)
    table = (np.interp(grid, knots, values) - grid).astype(np.float32)
    rises = np.diff(table, append=table[-1])

    def look_up(plane: NDArray[np.float32]) -> NDArray[np.float32]:
        found = np.clip(plane, low, high).ravel()
        for part in np.array_split(found, len(found) // IN_CACHE + 1):
            place = np.minimum(part - low, half) + (np.maximum(part - high, -half) + half)
            place = place / (2 * half) * CELLS
            below = place.astype(np.int32)
            part += table[below] + (place - below) * rises[below]
        return found.reshape(plane.shape)

    return look_up


def find_clipping(plane: NDArray[np.float32], sigma: float) -> tuple[Lookup, Lookup] | None:
    """Return the transform f and F^-1 for clipped noise of `sigma`; None without clipping."""
    (low, high), cut = _ends_of(plane)
    # Noise below the precision of the values changes no value, so none is clipped.
    near, digits = FAR * sigma, np.spacing(np.float32(max(-low, high, key=abs)))
    if not any(cut) or not low < high or sigma <= abs(digits):
        return None
    # If noise is not clipped at an end, put this end far beyond the image's own values.
    ends = low - (0 if cut[0] else near), high + (0 if cut[1] else near)
    # The points are dense near a clipped end; far from both ends the transform is a line.
    away = np.linspace(0.0, min(near, high - low), KNOTS)
    brightness = values = np.unique(np.concatenate([low + away, high - away]))
    mean, deviation = clipped_moments(brightness, sigma, ends)
    slope = sigma / np.interp(values, mean, deviation)
    even = low + cumulative_trapezoid(slope, values, initial=0.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    seen = np.clip(brightness[:, None] + sigma * nodes, *ends)
    inside = np.interp(seen, values, even)
    # At an end without clipping, continue the transform as a line beyond the image's values.
    inside += np.minimum(seen - low, 0) * slope[0] + np.maximum(seen - high, 0) * slope[-1]
    return _lookup(values, even, near), _lookup(inside @ weights / weights.sum(), brightness, near)


def before_clipping(
    given: NDArray[np.float32], mean: NDArray[np.float32], *, may_be_bent: bool = False
) -> NDArray[np.float32]:
    """Correct the denoised `mean` for the bias that clipping of the noise in `given` caused.

    Also correct the bias of the tone curve `ROOT` if noise may be bent, and has its skewness.
    """
    (low, high), (dark, light) = _ends_of(given)
    if not (dark or light or may_be_bent):
        return mean
    # Values of the plane separate the classes, so that no class is empty.
    edges = np.unique(np.quantile(mean, np.linspace(0, 1, CLASSES + 1), method="higher"))
    numbers = np.searchsorted(edges, mean.ravel())
    sizes = np.bincount(numbers)
    taken = given - mean
    seen = np.bincount(numbers, mean.ravel()) / sizes
    variance, third = (np.bincount(numbers, (taken**k).ravel()) / sizes for k in (2, 3))
    deviation = np.sqrt(variance) + np.finfo(np.float32).tiny
    ratio = (seen - (low if dark else min(low, 0.0))) / deviation
    linear, root = (np.interp(ratio, *_bent(exponent)[::2]) for exponent in (LINEAR, ROOT))
    bend, excess = root - linear, third / deviation**3 - linear
    is_bent = may_be_bent and bool((sizes * bend) @ (excess - LIKE_ROOT * bend) > 0)
    moved = np.zeros_like(seen)
    if dark or is_bent:
        moved += deviation * np.interp(ratio, *_bent(ROOT if is_bent else LINEAR)[:2])
    if light:
        moved -= deviation * np.interp((high - seen) / deviation, *_bent(LINEAR)[:2])
    if not moved.any():
        return mean
    return np.clip(mean + np.interp(mean, seen, moved), low, high).astype(np.float32)


@cache
def _bent(exponent: float) -> tuple[Array, Array, Array]:
    """Return mean, bias and skewness by light `LIGHT`; mean and bias divided by the deviation."""
    weights = norm.pdf(NOISE) / norm.pdf(NOISE).sum()
    values = np.maximum(LIGHT[:, np.newaxis] + NOISE, 0.0) ** (1 / exponent)
    mean = values @ weights
    second, third = ((values - mean[:, np.newaxis]) ** k @ weights for k in (2, 3))
    scale = np.sqrt(second)
    return mean / scale, (LIGHT ** (1 / exponent) - mean) / scale, third / scale**3


def clipped_moments(
    brightness: Array, sigma: float, ends: tuple[float, float]
) -> tuple[Array, Array]:
    """Return the mean and deviation of values with Gaussian noise, clipped at two ends."""
    low, high = ends
    a, b = (low - brightness) / sigma, (high - brightness) / sigma
    below, above = norm.cdf(a), norm.sf(b)
    inside, rise, fall = 1 - below - above, norm.pdf(a), norm.pdf(b)
    mean = low * below + high * above + brightness * inside + sigma * (rise - fall)
    square = low**2 * below + high**2 * above + (brightness**2 + sigma**2) * inside
    square += sigma * ((brightness + low) * rise - (brightness + high) * fall)
    return mean, np.sqrt(np.maximum(square - mean**2, 1e-12 * sigma**2))
