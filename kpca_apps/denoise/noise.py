"""How strong the noise of an image is, how sure that is, and whether neighbours share it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.fft import dct
from scipy.ndimage import maximum_filter, minimum_filter

from kpca_apps.denoise.noise_posterior import COEFFICIENTS, WIDTH, band_energies, noise_posterior

__all__ = [
    "ALIKE",
    "WHITE_ENOUGH",
    "WIDTH",
    "NoiseEstimate",
    "cosine_transform",
    "estimate_noise",
    "sample_patches",
]

PIXELS = WIDTH * WIDTH
FEWEST_PATCHES = 256
MOST_PATCHES = 250_000
# Patches that are enough to estimate from.
PLENTY = 40_000
# Classes of patches, from the quietest to the liveliest, by the share of them that ends each.
CLASSES = (0.02, 0.06, 0.15, 0.35, 1.0)
# Quantiles of the posterior: of the level told, and the ends of the interval. Too high a level
# wipes out texture, and the little noise of a clean photograph counts as noise: hence so low.
LEVEL, LOW, HIGH = 0.1, 0.05, 0.95
# Noise that is as strong as this share of the upper frequencies in the two quietest classes, at
# least, is there: half as strong again as any structure beside it, which in clean photographs it
# hardly ever is.
DOMINANT = 0.6
# Noise that neighbours share has the falling spectrum of texture; but it is everywhere alike. So
# many times the energy of the quietest patches have those of the third class at most.
ALIKE = 1.25
WHITE_ENOUGH = 0.15
SHARED_LEVEL = 2.0  # of 255: clean photographs have as strong a grain
FEWEST_SHARED = 192 * 192  # pixels: all of a smaller image may be one texture


@dataclass(frozen=True)
class NoiseEstimate:
    """The noise of one plane.

    Attributes
    ----------
    sigma : float
        Standard deviation of the noise in the units of the image, leaning to the lower end of the
        interval.
    low, high : float
        Ends of the interval that holds it with a probability of nine in ten.
    established : bool
        Whether there is white noise for sure: it is stronger than the structure beside it in the
        quietest patches. True for a constant image, which has none for sure.
    whiteness : float
        Share of white noise, at least, in the upper frequencies of the quietest patches: near 1
        where there is no other; near 0 where pixels share theirs, as after demosaicking or JPEG.
    correlated : bool
        True where there is noise that is not white, as strong in lively patches as in quiet ones.
    evenness : float
        Energy of the third class of patches over that of the quietest, near 1 for noise.
    quiet : float
        Deviation of the quietest patches at the lowest of the frequencies looked at.
    clipped : bool
        Whether clipped patches are among those it rests on, for want of others: of noise that was
        cut off in part it shows what is left.
    """

    sigma: float
    low: float
    high: float
    established: bool
    whiteness: float
    correlated: bool
    evenness: float
    quiet: float
    clipped: bool


def estimate_noise(
    plane: NDArray[np.floating],
    data_range: float = 255.0,
    extreme: NDArray[np.bool_] | None = None,
) -> NoiseEstimate:
    """Estimate the noise of a grey image from the upper frequencies of its patches.

    Patches of 8 x 8 pixels are sorted into five classes by the energy of their coarse structure,
    of which their finer one is independent if it is noise. The mean energies of five bands of
    frequencies in each class then tell noise from texture: see
    `kpca_apps.denoise.noise_posterior`.

    Parameters
    ----------
    plane : ndarray of shape (h, w)
        One channel, finite.
    data_range : float
        Difference between the largest and the smallest value the image can take, > 0.
    extreme : ndarray of shape (h, w), optional
        Where the image sits at its darkest or brightest value: by default where the plane does. A
        difference of channels has no value that tells.

    Returns
    -------
    NoiseEstimate
        With levels in the units of ``plane``.

    Notes
    -----
    Patches in which the image sits at its darkest or brightest value are left out, since clipping
    hides noise, and so are constant ones, as of a border or a mask, while there are others. Where
    nearly all are clipped (a scanned page of black on white), what clipping left is measured: of
    noise at white, half of it cut off, sqrt(1/2 - 1/(2 pi)) = 0.58 of its deviation. Images without
    a patch fall back on the median absolute diagonal difference, and establish nothing.

    References
    ----------
    X. Liu, M. Tanaka, M. Okutomi (2013), "Single-image noise level estimation for blind
    denoising", IEEE Trans. Image Processing 22 (noise from patches of weak texture).
    N. N. Ponomarenko et al. (2007), "An automatic approach to lossy compression of AVIRIS images",
    IGARSS (upper frequencies where the lower ones are weak).

    Examples
    --------
    >>> ramp = np.add.outer(np.arange(96.0), np.arange(96.0))
    >>> noisy = ramp + 12 * np.random.default_rng(0).standard_normal(ramp.shape)
    >>> estimate = estimate_noise(noisy)
    >>> 11.4 < estimate.sigma < 12.6, estimate.established, estimate.correlated
    (True, True, False)
    """
    scale = 255.0 / data_range
    pixels = plane.astype(np.float32) * np.float32(scale)
    if not np.ptp(pixels):
        return NoiseEstimate(0.0, 0.0, 0.0, True, 1.0, False, 1.0, 0.0, False)
    stride = max(1, int(np.sqrt(pixels.size / PLENTY)))
    patches, clipped = sample_patches(pixels, stride, extreme)
    if not len(patches):
        sigma = _diagonal_deviation(pixels) / scale
        return NoiseEstimate(sigma, 0.0, 2 * sigma, False, 1.0, False, 1.0, 0.0, clipped)
    energies, sizes = _classes(patches)
    levels, weights = noise_posterior(energies, sizes * min(stride, WIDTH) ** 2)
    below = np.cumsum(weights) - weights / 2
    low, sigma, high = np.interp([LOW, LEVEL, HIGH], below, levels)
    upper = energies @ COEFFICIENTS / COEFFICIENTS.sum()
    dominant = bool(low**2 >= DOMINANT * np.average(upper[:2], weights=sizes[:2]))
    whiteness = min(1.0, float(low**2 / upper[0]))
    evenness = float(upper[2] / upper[0])
    shared = whiteness < WHITE_ENOUGH and evenness < ALIKE and upper[0] > SHARED_LEVEL**2
    shared = shared and pixels.size >= FEWEST_SHARED
    return NoiseEstimate(
        sigma=float(sigma / scale),
        low=float(low / scale),
        high=float(high / scale),
        established=dominant,
        whiteness=whiteness,
        correlated=bool(shared) and not dominant,
        evenness=evenness,
        quiet=float(np.sqrt(energies[0, 0]) / scale),
        clipped=clipped,
    )


def sample_patches(
    pixels: NDArray[np.float32], stride: int = 2, extreme: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.float32], bool]:
    """Return patches (n, 64) on a grid of at least the stride, and whether some are clipped.

    Constant ones are left out; where 256 others are left, those that touch a constant area, too,
    for a part of each has no noise; and clipped ones. Which pixels are `extreme` is as in
    `estimate_noise`.
    """
    if min(pixels.shape) < WIDTH:
        return np.empty((0, PIXELS), np.float32), False
    stride = max(stride, int(np.ceil(np.sqrt(pixels.size / MOST_PATCHES))))
    if extreme is None:
        extreme = (pixels == pixels.min()) | (pixels == pixels.max())
    patches, at_ends, constant = (
        sliding_window_view(plane, (WIDTH, WIDTH))[::stride, ::stride].reshape(-1, PIXELS)
        for plane in (pixels, extreme, _constant_areas(pixels))
    )
    varying = np.ptp(patches, axis=1) > 0
    clear = varying & ~constant.any(axis=1)
    if np.count_nonzero(clear) >= FEWEST_PATCHES:
        varying = clear
    # One pixel must hold the extreme value; two or more in a patch are a clipped area.
    unclipped = varying & (at_ends.sum(axis=1) < 2)
    if np.count_nonzero(unclipped) >= FEWEST_PATCHES:
        return patches[unclipped], False
    return patches[varying], True


def _constant_areas(pixels: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return the pixels of patches (8 x 8, anywhere) that have one value."""
    one_value = maximum_filter(pixels, WIDTH) == minimum_filter(pixels, WIDTH)
    # A window of an even width reaches farther back than forward; its pixels find it the other way.
    found: NDArray[np.bool_] = maximum_filter(one_value, WIDTH, origin=-1)
    return found


def cosine_transform(patches: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the orthonormal 8 x 8 cosine transform of patches (n, 64)."""
    basis = dct(np.eye(WIDTH, dtype=np.float32), axis=0, norm="ortho")
    return np.asarray(patches @ np.kron(basis, basis).T)


def _classes(patches: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean energies (5, 5) of bands in classes of patches, and the classes' sizes."""
    # Without their means, which would cost the other coefficients digits.
    coarse, bands = band_energies(cosine_transform(patches - patches.mean(axis=1, keepdims=True)))
    order = np.argsort(coarse, kind="stable")
    ends = [max(1, round(share * len(order))) for share in CLASSES]
    members = [order[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    means = [bands[m if len(m) else order[:1]].mean(axis=0, dtype=np.float64) for m in members]
    energies = np.array(means)
    smallest = np.finfo(np.float32).eps ** 2 * float(np.square(patches).mean())
    return energies + smallest, np.array([max(1, len(m)) for m in members], float)


def _diagonal_deviation(pixels: NDArray[np.float32]) -> float:
    """Return the deviation of white noise from the median absolute diagonal difference.

    A plane one pixel wide has first differences only; a single pixel shows no noise at all.
    """
    if min(pixels.shape) > 1:
        details = np.diff(np.diff(pixels, axis=0), axis=1) / 2.0
    else:
        details = np.diff(pixels.ravel()) / np.sqrt(2.0)
    return float(np.median(np.abs(details)) / 0.67449) if details.size else 0.0
