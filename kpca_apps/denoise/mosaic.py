"""Denoise raw mosaics of camera sensors, before colours are computed.

The noise of raw mosaics is independent between pixels. Its variance a x + b, of photons and
readout, grows linearly with the light x. Demosaicking, white balance and gamma, which correlate the
noise (`noise="camera"`), come later.

The generalised Anscombe transform makes the noise white, of deviation 1. Each 2 x 2 cell (red, two
greens, blue) becomes one pixel of four planes, whose principal components, luminance first, are
denoised like the planes of any image. Cells may begin at any of four pixels. The mean over several
such phases shows no trace of the grid. X-Trans mosaics have cells of 3 x 3 pixels.

The line a x + b is measured where a mosaic has least texture. In each class of brightness, the
patches with the weakest lower frequencies are chosen, and the variance of their upper frequencies
is measured; the line is the lower envelope of these variances.

References
----------
A. Foi, M. Trimeche, V. Katkovnik, K. Egiazarian (2008), "Practical Poissonian-Gaussian noise
modeling and fitting for single-image raw-data", IEEE Trans. Image Processing 17.
M. Makitalo, A. Foi (2013), "Optimal inversion of the generalized Anscombe transformation for
Poisson-Gaussian noise", IEEE Trans. Image Processing 22, eq. 10.
R. R. Coifman, D. L. Donoho (1995), "Translation-invariant de-noising", in Wavelets and Statistics
(the mean over phases).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares
from scipy.stats import poisson

from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.patches import COSINES, MOST_PATCHES, PIXELS, WIDTH, patches_of
from kpca_apps.denoise.image import SCALE
from kpca_apps.denoise.noise.poisson import anscombe, inverse_anscombe
from kpca_apps.denoise.options import LARGEST_RANGE, Options
from kpca_apps.denoise.passes.planes import denoise_planes
from kpca_apps.denoise.patterns import (
    checked_pattern,
    colour_at,
    measuring_planes,
    merged,
    period_of,
    phases_of,
    split,
)
from kpca_apps.denoise.progress import part
from kpca_apps.errors import ConfigError, InputError, warn_caller
from kpca_apps.names import shown
from kpca_apps.options import is_number
from kpca_apps.system.blas import one_blas_thread

# Number of phases (positions at which cells begin) to average over, for Bayer and X-Trans patterns.
PHASES = {"draft": (1, 1), "fast": (2, 2), "balanced": (2, 3), "high": (4, 5)}

# High frequencies both down and across, where texture is weakest, measure the noise; the other
# frequencies, except the mean, show texture.
FINEST = np.minimum(*np.indices((WIDTH, WIDTH))).ravel() >= WIDTH // 2
OTHERS = ~FINEST & (np.arange(PIXELS) > 0)
# Number of brightness classes in each plane; share and minimum number of quietest patches used in
# each class. These values and ABOVE gave the best deviations on mosaics made from photographs of
# BSDS500/train (100 to 1,600 photons at white), where too low deviations counted twice.
CLASSES, QUIET, FEWEST_QUIET = 16, 0.01, 16
# A line is fitted to log variances by least squares. But variances more than ABOVE deviations above
# the line have less weight (their distance counts, not its square): texture may have raised them.
ABOVE = 0.3
# Readout variance, in squared counts, above which noise is nearly Gaussian even without light.
MANY_ADDED = 400.0
QUADRATURE = 80  # number of quadrature nodes for the mean over readout noise
# Least photon variance at mean light, and least readout variance, relative to the noisiest colour.
LEAST = 1e-6

Mosaic = NDArray[np.float32]
Curves = NDArray[np.float64]  # (3, 2), a and b of the noise variance a x + b in red, green and blue


def denoise_mosaic(
    mosaic: NDArray[Any],
    *,
    pattern: str = "RGGB",
    black: float = 0.0,
    white: float | None = None,
    noise: ArrayLike | None = None,
    quality: str = "balanced",
    luma: float = 1.0,
    chroma: float = 1.0,
    strength: float = 1.0,
    n_jobs: int | None = None,
) -> NDArray[np.float32]:
    """Denoise the raw mosaic of a camera's sensor, before demosaicking.

    Parameters
    ----------
    mosaic : ndarray of shape (h, w)
        One colour a pixel, in proportion to light above `black`; not changed.
    pattern : {"RGGB", "BGGR", "GRBG", "GBRG"} or str
        Colours of the first two pixels of the first row, then of the second row. For an X-Trans
        sensor, 36 letters: the colours of the first six pixels of six rows.
    black : float
        The value without light.
    white : float, optional
        The value at which pixels saturate. Saturated pixels are returned unchanged. Default: no
        pixel saturates.
    noise : array-like of shape (2,) or (3, 2), optional
        a and b of the noise variance, ``a * (value - black) + b``, for all colours or for red,
        green and blue. Default: measured in the mosaic, the same for all colours.
    quality, luma, chroma, strength, n_jobs
        As for `kpca_apps.denoise_kpca`.

    Returns
    -------
    ndarray of shape (h, w), float32
        In the units of the mosaic, not clipped.

    Raises
    ------
    kpca_apps.errors.InputError
        A ValueError: the mosaic does not have two dimensions, or has NaN.
    kpca_apps.errors.ConfigError
        A ValueError: an option is out of its range.

    Warns
    -----
    UserWarning
        If the mosaic is returned unchanged, because too little of it is between black and white to
        measure its noise.

    Notes
    -----
    The generalised Anscombe transform of Makitalo and Foi, around kernel PCA on groups of similar
    patches; see the module's references.

    Examples
    --------
    >>> light = np.kron([[100.0, 300.0], [50.0, 200.0]], np.ones((32, 32)))
    >>> noisy = np.random.default_rng(0).poisson(light)
    >>> denoised = denoise_mosaic(noisy, quality="fast")
    >>> bool(np.std(denoised - light) < 0.3 * np.std(noisy - light))
    True
    """
    options = Options(quality=quality, luma=luma, chroma=chroma, strength=strength, n_jobs=n_jobs)
    mosaic = np.asarray(mosaic)
    checked_pattern(pattern)
    if mosaic.ndim != 2 or min(mosaic.shape) < period_of(pattern) or mosaic.dtype.kind not in "uif":
        raise InputError(
            f"mosaic has shape {mosaic.shape} and dtype {mosaic.dtype}; give real numbers of two "
            "dimensions, one colour a pixel"
        )
    for name, value in (("black", black), ("white", white)):
        if value is not None and not is_number(value, -LARGEST_RANGE, LARGEST_RANGE):
            raise ConfigError(
                f"{name} is {shown(value)}; give one number in the units of the mosaic"
            )
    if white is not None and white <= black:
        raise ConfigError(f"white is {white:g}, not above black, {black:g}")
    light = np.subtract(mosaic, black, dtype=np.float32)
    if not np.isfinite(light).all():
        row, column = np.argwhere(~np.isfinite(light))[0]
        raise InputError(
            f"mosaic holds {mosaic[row, column]} at row {row}, column {column}; replace such "
            "pixels first"
        )
    curves = None if noise is None else _checked(noise)
    # Compute the limit like the pixels, so that both agree to the last bit.
    limit = np.inf if white is None else float(np.subtract(white, black, dtype=np.float32))
    cleaned, info = clean_mosaic(light, pattern, limit, curves, options)
    if not info.established:
        warn_caller(
            "No noise could be measured, because the mosaic is too small, or too much of it is "
            "black or white, and it is returned as it is: give noise."
        )
    return np.asarray(light + np.float32(strength) * (cleaned - light) + np.float32(black))


def _checked(noise: ArrayLike) -> Curves:
    curves = np.full((3, 2), np.nan)
    with suppress(ValueError):  # rows of different lengths, or a wrong shape
        if (given := np.asarray(noise)).dtype.kind in "uif":
            curves = np.broadcast_to(given.astype(np.float64), (3, 2))
    if not ((curves >= 0) & (curves <= LARGEST_RANGE)).all():
        raise ConfigError(
            f"noise is {shown(noise)}; give a and b of the variance a * (value - black) + b, none "
            "below 0, or three such pairs for red, green and blue"
        )
    return curves


@one_blas_thread()
def clean_mosaic(
    light: Mosaic, pattern: str, white: float, curves: Curves | None, options: Options
) -> tuple[Mosaic, DenoiseInfo]:
    """Denoise a mosaic (h, w) whose black is 0; measure its noise unless `curves` are given.

    At `options.strength` 0, return the mosaic unchanged; callers apply other strengths. In the
    info, the level is the root of the mean variance; the data range ends at white.
    """
    info, curves = measure_mosaic(light, pattern, white, curves)
    if not curves.any() or options.strength == 0:
        return light.copy(), info
    options = replace(options, wanted=None)  # the window `wanted` fits the picture, not its planes
    # Lower limits keep the transform of each colour finite.
    typical = float(np.mean(np.maximum(light, 0))) or 1.0
    least = LEAST * float(np.max(curves @ [typical, 1]))
    gains, readouts = np.maximum(curves, [least / typical, least]).T
    n = period_of(pattern)
    colours = {place: "RGB".index(colour_at(pattern, *place)) for place in np.ndindex(n, n)}
    added = readouts / gains**2
    darkest = [float(anscombe(np.zeros(1), one)[0]) for one in added]
    stable = np.empty_like(light)
    for (y, x), c in colours.items():
        # Map black to 0 in all colours, so that their patches are comparable.
        stable[y::n, x::n] = anscombe(light[y::n, x::n] / gains[c], added[c]) - darkest[c]
    unit = SCALE / float(np.ptp(stable) or 1.0)
    stable *= np.float32(unit)
    total = np.zeros_like(stable)
    phases = phases_of(pattern)[: PHASES[options.quality][n > 2]]
    for number, phase in enumerate(phases):
        with part(number, len(phases)):
            total += _denoised_phase(stable, pattern, phase, unit, options)
    cleaned = np.empty_like(light)
    for (y, x), c in colours.items():
        roots = total[y::n, x::n] / np.float64(unit * len(phases)) + darkest[c]
        cleaned[y::n, x::n] = gains[c] * inverse_generalised_anscombe(roots, added[c])
    # Keep saturated pixels: their true light is unknown, and denoising would tint highlights.
    np.copyto(cleaned, light, where=light >= white)
    return cleaned, info


def inverse_generalised_anscombe(values: NDArray[np.floating], added: float) -> NDArray[np.float64]:
    """Return the mean count whose `anscombe` transform has the given mean (unbiased inverse)."""
    many = inverse_anscombe(values) - added
    if added > MANY_ADDED:
        return many
    readout, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE)
    most = 30 + 10 * float(np.sqrt(added))
    counts = np.arange(most + 10 * np.sqrt(most) + 20)
    of_count = anscombe(counts[:, np.newaxis] + np.sqrt(added) * readout, added) @ weights
    means = np.linspace(0, np.sqrt(most), 256) ** 2
    found = poisson.pmf(counts, means[:, np.newaxis]) @ of_count / weights.sum()
    few = np.interp(values, found, means)
    # Extrapolate linearly below the black level.
    few += np.minimum(values - found[0], 0) * (means[1] / (found[1] - found[0]))
    return np.where(values < found[-1], few, many)


def _denoised_phase(
    stable: Mosaic, pattern: str, phase: tuple[int, int], unit: float, options: Options
) -> Mosaic:
    """Denoise an evenly noisy mosaic as planes; `phase`: its first pixel's place in the pattern."""
    planes = split(stable, pattern, phase)
    # The first component holds what the colours share; an orthonormal map keeps noise white.
    centred = (planes - planes.mean(axis=(1, 2), keepdims=True)).reshape(len(planes), -1)
    mixing = np.linalg.eigh(centred @ centred.T)[1].T[::-1]
    del centred
    mixed = np.einsum("pq,qhw->phw", mixing, planes)
    del planes  # frees about 100 MB of a large mosaic
    cleaned = denoise_planes(mixed, np.full(len(mixing), unit), options)
    return merged(np.einsum("pq,phw->qhw", mixing, cleaned), stable.shape, pattern, phase)


@one_blas_thread()
def measure_mosaic(
    light: Mosaic, pattern: str, white: float, curves: Curves | None = None
) -> tuple[DenoiseInfo, Curves]:
    """Return a mosaic's noise, and a and b of the variance a x + b (measured if not given)."""
    checked_pattern(pattern)
    n, counts = period_of(pattern), [pattern.count(letter) for letter in "RGB"]
    estimated = curves is None
    established = True
    if curves is None:
        measured = _measured_curve(light, pattern, white)
        established = measured is not None
        curves = np.tile(np.zeros(2) if measured is None else measured, (3, 1))
    variances = []
    for letter, (a, b) in zip("RGB", curves, strict=True):
        own = [light[y::n, x::n] for y, x in np.ndindex(n, n) if pattern[n * y + x] == letter]
        variances.append(b + a * float(np.mean([np.maximum(plane, 0).mean() for plane in own])))
    levels = tuple(float(np.sqrt(variance)) for variance in variances)
    info = DenoiseInfo(
        noise="raw",
        sigma=float(np.sqrt(np.average(variances, weights=counts))),
        channel_sigma=levels,
        estimated=estimated,
        correlated=False,
        data_range=white if np.isfinite(white) else float(np.ptp(light)) or 1.0,
        established=established,
    )
    return info, curves


def _measured_curve(light: Mosaic, pattern: str, white: float) -> NDArray[np.float64] | None:
    """Return a and b of the noise variance a x + b at light x; None if not measurable."""
    if not np.ptp(light):
        return np.zeros(2)
    red, (green, other), blue = measuring_planes(light, pattern)
    darkest = light.min()
    bad = [(plane >= white) | (plane == darkest) for plane in (red, green, other, blue)]
    # Planes to measure, guides for brightness and texture, and clipped pixels to exclude.
    measured = (
        (red, red, bad[0]),
        ((green - other) / np.float32(np.sqrt(2)), (green + other) / 2, bad[1] | bad[2]),
        (blue, blue, bad[3]),
    )
    points = [point for planes in measured for point in _points(*planes)]
    if not points:
        return None
    brightness, variance, spread = np.array(points).T
    if not variance.any():
        return np.zeros(2)
    variance = np.maximum(variance, np.finfo(np.float32).eps * variance.max())
    logs, mean = np.log(variance), float(np.median(brightness)) or 1.0

    def misfit(line: NDArray[np.float64]) -> Any:
        excess = logs - np.log(np.exp(line[0]) * brightness + np.exp(line[1]))
        excess /= spread
        above = ABOVE * np.sqrt(2 * (np.sqrt(1 + (excess / ABOVE) ** 2) - 1))
        return np.where(excess > 0, above, excess)

    starts = [
        np.log([np.median(variance) * s / mean, np.median(variance) * (1 - s)])
        for s in (0.1, 0.5, 0.9)
    ]
    fits = [least_squares(misfit, start) for start in starts]
    return np.asarray(np.exp(min(fits, key=lambda fit: float(fit.cost)).x))


def _points(
    plane: Mosaic, guide: Mosaic, bad: NDArray[np.bool_]
) -> list[tuple[float, float, float]]:
    """Sort patches by brightness; return each class's light, noise variance, relative error."""
    if min(plane.shape) < WIDTH:
        return []
    stride = max(2, int(np.ceil(np.sqrt(plane.size / MOST_PATCHES))))
    good = ~patches_of(bad, stride).any(axis=1)
    patches, guides = patches_of(plane, stride)[good], patches_of(guide, stride)[good]
    n_classes = min(CLASSES, len(patches) // FEWEST_QUIET)
    if not n_classes:
        return []
    brightness = guides.mean(axis=1)
    texture = np.square(guides @ COSINES)[:, OTHERS].sum(axis=1)
    points = []
    for members in np.array_split(np.argsort(brightness, kind="stable"), n_classes):
        few = max(FEWEST_QUIET, round(QUIET * len(members)))
        flat = members[np.argsort(texture[members], kind="stable")[:few]]
        power = np.square(patches[flat] @ COSINES[:, FINEST]).mean(dtype=np.float64)
        spread = np.sqrt(2 / (few * np.count_nonzero(FINEST)))
        points.append((max(float(brightness[flat].mean()), 0.0), float(power), float(spread)))
    return points
