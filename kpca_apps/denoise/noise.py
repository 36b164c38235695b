"""How strong the noise of an image is, how sure that is, and whether neighbours share it.

White noise is as strong at every frequency and in every patch. The texture of photographs falls
with frequency, by about the same ratio from one band to the next whatever is in the picture, and
is weak in some patches and strong in others. So the mean energy of band b in class j of patches is

    sigma^2 + a_j s_b,    log s_b falling by (.62, .5, .5, .7), give or take

with the amplitude a_j of each class and the slope and curvature of log s as unknowns that are
summed out. Where the spectra are flat, or quiet patches are as noisy as lively ones, the posterior
of sigma is narrow; where all is fine texture it is wide.

The noise of a camera, which neighbouring pixels share, is measured in `kpca_apps.denoise.camera`.

References
----------
X. Liu, M. Tanaka, M. Okutomi (2013), "Single-image noise level estimation for blind
denoising", IEEE Trans. Image Processing 22 (noise from patches of weak texture).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.fft import dct
from scipy.ndimage import maximum_filter, minimum_filter

if TYPE_CHECKING:
    from kpca_apps.denoise.law import NoiseLaw

WIDTH = 8  # of patches, and of their cosine transform
PIXELS = WIDTH * WIDTH
FEWEST_PATCHES = 256
MOST_PATCHES = 250_000
# Patches that are enough to estimate from.
PLENTY = 40_000
# Classes of patches, from the quietest to the liveliest, by the share of them that ends each.
CLASSES = (0.02, 0.06, 0.15, 0.35, 1.0)
# Quantiles of the posterior: of the level given, and the ends of the interval. Too high a level
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

# Bands of the 8 x 8 cosine transform, by the sum of its two frequency indices: first to last.
BANDS = ((4, 5), (6, 7), (8, 9), (10, 11), (12, 14))
COARSE = (1, 3)  # the same, of coarse structure

# The fall of texture's log energy from band to band: its mean over clean photographs, how the
# slope differs between photographs, and how the curvature does.
FALL = np.array([0.62, 0.5, 0.5, 0.7])
SLOPE_SD, CURVATURE_SD = 0.22, 0.1
# What is left of a texture's log spectrum beside slope and curvature.
TEXTURE_SD = 0.15
SLOPES, CURVATURES = (
    x.ravel() for x in np.meshgrid(np.linspace(-2.4, 2.4, 9), np.linspace(-1.8, 1.8, 5))
)
FALLS = (
    FALL
    + SLOPE_SD * SLOPES[:, None]
    + CURVATURE_SD * CURVATURES[:, None] * np.linspace(-1.5, 1.5, len(FALL))
)
# Spectra of texture (shapes, 5), 1 in the last band, and the logarithms of their priors.
TEXTURE_SHAPES = np.exp(
    np.c_[np.cumsum(FALLS[:, ::-1], axis=1)[:, ::-1], np.zeros(len(FALLS))]
).astype(np.float32)
SHAPE_LOG_PRIOR = -(SLOPES**2 + CURVATURES**2) / 2
# A mean of any number of pixels is believed to that (relative variance).
LEAST_VARIANCE = 0.02**2
# Noise levels tried, from the highest that the energies allow downwards, then around the likely
# ones, which are fewer the more of the pixels are believed; and amplitudes of texture, as
# deviations in the last band, in terms of the highest.
LEVELS, REACH = 40, 100.0
BELIEVED = (50, 2000, np.inf)
LIKELY = -8.0
AMPLITUDES = np.concatenate([[0.0], np.geomspace(0.002, 6.0, 30)]) ** 2

# The orthonormal cosine transform of patches (n, 64) is a product with this.
BASIS = dct(np.eye(WIDTH, dtype=np.float32), axis=0, norm="ortho")
COSINES = np.kron(BASIS, BASIS).T

_SUM = np.add.outer(np.arange(WIDTH), np.arange(WIDTH)).ravel()
MEMBERS = np.array([(first <= _SUM) & (last >= _SUM) for first, last in BANDS])
COARSE_BAND = (_SUM >= COARSE[0]) & (_SUM <= COARSE[1])
COEFFICIENTS = MEMBERS.sum(axis=1)


@dataclass(frozen=True)
class DenoiseInfo:
    """What was found out about an image on the way to denoising it.

    Attributes
    ----------
    noise : str
        The noise model used; never ``"auto"``.
    sigma : float
        Deviation of the noise removed, in the units of the image: the root of the mean variance
        over channels. For speckle it is relative to the intensity, for Poisson at the bright end.
        An estimate leans to the lower end of its interval.
    channel_sigma : tuple of float
        The same for each channel.
    estimated : bool
        Whether ``sigma`` was estimated from the image.
    correlated : bool
        Whether neighbouring pixels, or the channels, share their noise, as in photographs from a
        camera; white-noise denoising then leaves blotches, and ``noise="camera"`` is the better
        choice.
    whiteness : float
        Share of white noise, at least, in the upper frequencies of the quietest patches: near 1
        where there is no other, near 0 where pixels share theirs.
    data_range : float
        The range of values assumed.
    sigma_range : tuple of float, or None
        Interval that holds an estimated level of white noise with a probability of nine in ten
        (of luminance, in a colour image); None where there is none.
    established : bool
        False where an estimated level may all be texture, or is less than 2 of 255 parts of the
        range (of twice the brightest value in a dim image): ``"gaussian"`` and ``"auto"`` leave
        such an image as it is. True for a constant image, which has none for sure.
    impulses : bool
        Whether single pixels stand out as those that impulse noise replaced do, though the noise
        was not taken for impulses: ``noise="impulse"`` is then the better choice.
    n_components : int or None
        Of a dictionary: components projected on, at the noise level used.
    iterations, converged : float or None
        Of a dictionary: mean number of fixed-point steps, and share of the pre-images that
        converged.
    clipped : bool
        Whether the estimate rests on clipped patches, for want of others: of noise that was cut off
        in part it shows what is left.
    laws : tuple of NoiseLaw
        Of an estimated level: how the noise of each channel grows with brightness and whether
        neighbours share it, in the units of the image, whether used or not; empty where there is
        too little to see, or a level was given.
    """

    noise: str
    sigma: float
    channel_sigma: tuple[float, ...]
    estimated: bool
    correlated: bool
    whiteness: float
    data_range: float
    sigma_range: tuple[float, float] | None = None
    established: bool = True
    impulses: bool = False
    n_components: int | None = None
    iterations: float | None = None
    converged: float | None = None
    clipped: bool = False
    laws: tuple[NoiseLaw, ...] = ()


def estimate_noise(
    plane: NDArray[np.floating],
    data_range: float = 255.0,
    extreme: NDArray[np.bool_] | None = None,
) -> DenoiseInfo:
    """Estimate the white noise of a grey image from the upper frequencies of its patches.

    `extreme` (h, w) says where the image is at its darkest or brightest, by default where the plane
    is: a difference of channels has no value that shows it.
    """
    scale = 255.0 / data_range
    pixels = plane.astype(np.float32) * np.float32(scale)
    nothing = DenoiseInfo("gaussian", 0.0, (0.0,), True, False, 1.0, data_range, (0.0, 0.0))
    if not np.ptp(pixels):
        return nothing
    stride = max(1, int(np.sqrt(pixels.size / PLENTY)))
    patches, clipped = sample_patches(pixels, stride, extreme)
    if not len(patches):
        # Such an image establishes nothing.
        sigma = diagonal_deviation(pixels) / scale
        return replace(
            nothing,
            sigma=sigma,
            channel_sigma=(sigma,),
            sigma_range=(0.0, 2 * sigma),
            established=False,
            clipped=clipped,
        )
    # Sorted into classes by the energy of their coarse structure, of which their finer one is
    # independent if it is noise. Without their means, which would cost the others digits.
    energy = np.square((patches - patches.mean(axis=1, keepdims=True)) @ COSINES)
    bands = np.stack([energy[:, members].mean(axis=1) for members in MEMBERS], axis=1)
    order = np.argsort(energy[:, COARSE_BAND].sum(axis=1), kind="stable")
    ends = [max(1, round(share * len(order))) for share in CLASSES]
    classes = [order[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    sizes = np.array([max(1, len(members)) for members in classes], float)
    classes = [members if len(members) else order[:1] for members in classes]
    energies = np.array([bands[members].mean(axis=0, dtype=np.float64) for members in classes])
    energies += np.finfo(np.float32).eps ** 2 * float(np.square(patches).mean())
    levels, weights = noise_posterior(energies, sizes * min(stride, WIDTH) ** 2)
    below = np.cumsum(weights) - weights / 2
    low, sigma, high = np.interp([LOW, LEVEL, HIGH], below, levels)
    upper = energies @ COEFFICIENTS / COEFFICIENTS.sum()
    dominant = bool(low**2 >= DOMINANT * np.average(upper[:2], weights=sizes[:2]))
    whiteness = min(1.0, float(low**2 / upper[0]))
    evenness = float(upper[2] / upper[0])
    shared = whiteness < WHITE_ENOUGH and evenness < ALIKE and upper[0] > SHARED_LEVEL**2
    shared = shared and pixels.size >= FEWEST_SHARED
    return replace(
        nothing,
        sigma=float(sigma / scale),
        channel_sigma=(float(sigma / scale),),
        sigma_range=(float(low / scale), float(high / scale)),
        correlated=bool(shared) and not dominant,
        whiteness=whiteness,
        established=dominant,
        clipped=clipped,
    )


def sample_patches(
    pixels: NDArray[np.float32], stride: int = 2, extreme: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.float32], bool]:
    """Return patches (n, 64) on a grid of at least the stride, and whether some are clipped.

    Constant and clipped ones are left out while there are others, for they hide noise. Which pixels
    are `extreme` is as in `estimate_noise`.
    """
    if min(pixels.shape) < WIDTH:
        return np.empty((0, PIXELS), np.float32), False
    stride = max(stride, int(np.ceil(np.sqrt(pixels.size / MOST_PATCHES))))
    if extreme is None:
        extreme = (pixels == pixels.min()) | (pixels == pixels.max())
    # Pixels of a patch, anywhere, that has one value. A window of an even width reaches farther
    # back than forward; its pixels find it the other way.
    one_value = maximum_filter(pixels, WIDTH) == minimum_filter(pixels, WIDTH)
    areas = maximum_filter(one_value, WIDTH, origin=-1)
    patches, at_ends, constant = (
        sliding_window_view(plane, (WIDTH, WIDTH))[::stride, ::stride].reshape(-1, PIXELS)
        for plane in (pixels, extreme, areas)
    )
    varying = np.ptp(patches, axis=1) > 0
    clear = varying & ~constant.any(axis=1)
    if np.count_nonzero(clear) >= FEWEST_PATCHES:
        varying = clear  # A part of each of the others has no noise.
    # One pixel must hold the extreme value; two or more in a patch are a clipped area.
    unclipped = varying & (at_ends.sum(axis=1) < 2)
    if np.count_nonzero(unclipped) >= FEWEST_PATCHES:
        return patches[unclipped], False
    # Nearly all are clipped, as on a scanned page of black on white. What clipping left is
    # measured: of noise at white, half cut off, sqrt(1/2 - 1/(2 pi)) = 0.58 of its deviation.
    return patches[varying], True


def diagonal_deviation(pixels: NDArray[np.float32]) -> float:
    """Return the deviation of white noise from the median absolute diagonal difference.

    A plane one pixel wide has first differences only; a single pixel shows no noise at all.
    """
    if min(pixels.shape) > 1:
        details = np.diff(np.diff(pixels, axis=0), axis=1) / 2.0
    else:
        details = np.diff(pixels.ravel()) / np.sqrt(2.0)
    return float(np.median(np.abs(details)) / 0.67449) if details.size else 0.0


def noise_posterior(
    energies: NDArray[np.floating], pixels: NDArray[np.floating]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return noise levels (40,), ascending, and their posterior weights, which add up to 1.

    From the mean energy > 0 of each band in each class (classes, 5), and how many pixels each class
    stands for: overlapping patches share theirs. The prior is even in the logarithm.
    """
    # No level can be far above the energy of the quietest class.
    highest = np.log(1.5) + np.log(energies.max(axis=1).min()) / 2
    lowest, scale = highest - np.log(REACH), float(np.exp(highest))
    amplitudes = (scale**2 * AMPLITUDES).astype(np.float32)
    textures = [(shape[:, None] * amplitudes)[:, None] for shape in TEXTURE_SHAPES.T]
    for most in BELIEVED:
        grid = np.linspace(lowest, highest, LEVELS)
        noise = np.exp(2.0 * grid).astype(np.float32)[:, np.newaxis]
        # Of each band: the energy expected (shapes, levels, amplitudes), and the variance of its
        # logarithm that texture gives.
        means = [texture + noise for texture in textures]
        expected = [
            (np.log(mean), np.square(texture / mean) * np.float32(TEXTURE_SD**2))
            for texture, mean in zip(textures, means, strict=True)
        ]
        total = np.repeat(SHAPE_LOG_PRIOR[:, np.newaxis], LEVELS, axis=1)
        # Written into again and again: new arrays of this size would take most of the time.
        fit, misfit, variance = (np.empty_like(means[0]) for _ in range(3))
        for row, covered in zip(np.log(energies), np.minimum(pixels, most), strict=True):
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
        log_weights = summed - summed.max()
        likely = np.flatnonzero(log_weights > LIKELY)
        lowest, highest = grid[max(likely[0] - 1, 0)], grid[min(likely[-1] + 1, LEVELS - 1)]
    weights = np.exp(log_weights)
    return np.exp(grid), weights / weights.sum()
