"""Fit a noise law to an image: variance by brightness, and correlation of adjacent pixels.

The variance of the noise at brightness x is gain x + constant, for photon noise and readout noise
(Foi et al. 2008), for readout noise alone (gain 0), or for photon noise alone. A camera's filter or
a resampling correlates neighbouring pixels like a Gaussian blur, of width 0 for white noise.

Patches of similar brightness form a level. Patches of a level that also have similar coarse
structure form a class. In class j, the mean energy of band b of the cosine transform is

    v_j n_b + a_j s_b,    v_j = gain x_j + constant,

with n the spectrum of the noise, s the spectrum of texture, which falls with frequency as in other
pictures (`kpca_apps.denoise.estimate.level`), and a_j >= 0 the amount of texture in the class. The
energy of noise over m coefficients has a relative deviation of sqrt(2 / m) between patches, that of
texture of about 1. So with share f of texture, the energies of a class have a relative variance of
2 / m + (f SCATTER)^2. Means and variances are compared with the observed ones, summing over
amplitudes and spectra of texture. The law and the blur with the largest likelihood are chosen.

References
----------
A. Foi, M. Trimeche, V. Katkovnik, K. Egiazarian (2008), "Practical Poissonian-Gaussian noise
modeling and fitting for single-image raw-data", IEEE Trans. Image Processing 17.
A. Foi (2009), "Clipped noisy images: heteroskedastic modeling and practical denoising", Signal
Processing 89, section 2: mean and variance of clipped noise.
C. Liu, R. Szeliski, S. B. Kang, C. L. Zitnick, W. T. Freeman (2008), "Automatic estimation and
removal of noise from a single image", IEEE Trans. PAMI 30: noise level functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp
from scipy.stats import norm

from kpca_apps.denoise.estimate.patches import (
    BASIS,
    COEFFICIENTS,
    EVEN,
    MEMBERS,
    N_COEFFICIENTS,
    WIDTH,
    areas_of_one_value,
    class_likelihoods,
    counts_of,
    energies_of,
    texture_spectra,
)
from kpca_apps.denoise.image import SCALE
from kpca_apps.denoise.result import NoiseLaw

Array = NDArray[np.float64]
PATCHES = 60_000
# Patches are sorted by brightness into levels. The borders between levels are LEVELS quantiles of
# the brightness, which alone would give a few bright patches no level of their own; and LEVELS / 2
# values between its minimum and its quantile HIGHEST, in small steps in the dark. A level has at
# least FEWEST patches. These are sorted from little to much coarse structure, and divided into
# classes at the shares CLASSES: the first 6 %, the next 9 %, and so on.
LEVELS, FEWEST, HIGHEST = 10, 60, 0.985
CLASSES, FEWEST_OF_CLASS = (0.06, 0.15, 0.35, 1.0), 10
FEWEST_CLASSES = 8
CUT = 0.002  # noise counts as clipped if a larger share of pixels is at an end of the range
# An image is drawn or dithered if a larger share than MOST_CUT of its pixels is at the ends of the
# range, and the square roots of the shares at both ends add up to more than MOST_ROOTS (pictures
# made from BSDS500/test: screens and line art from .99, noise up to .93).
MOST_CUT, MOST_ROOTS = 0.5, 0.96
FEWEST_PIXELS = 128 * 128  # A smaller image may consist of one texture.

# Deviations, in pixels, of the blur that correlates the noise of neighbouring pixels.
BLURS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85)
# The first search tries STEPS log variances in a range of DEPTH; the last search tries NEAR_STEPS
# values up to NEAR from the best law. AMPLITUDES are squared amplitudes of texture relative to the
# noise. DARK_SHARES are ratios of the noise variance at the darkest level to that at the brightest.
DEPTH, STEPS, NEAR, NEAR_STEPS = 9.2, 40, 1.0, 41
AMPLITUDES = np.concatenate([[0.0], np.geomspace(0.02, 20.0, 11)]) ** 2
DARK_SHARES = np.concatenate([[0.001], np.geomspace(0.004, 1.0, 15)])
SPECTRA, SPECTRUM_LOG_PRIOR = texture_spectra(np.linspace(-2.4, 2.4, 5), np.linspace(-1.5, 1.5, 3))
# Minimum relative variance assumed for the mean energy of a class: BELIEVED in the first search,
# BELIEVED_LAST in the last. A class with more energy than a law predicts lowers the law's log
# likelihood by at most OUTLIER; a class with less energy lowers it by at most MOST_BELOW.
BELIEVED, BELIEVED_LAST, OUTLIER, MOST_BELOW = 0.12**2, 0.05**2, 10.0, 60.0

# Noise is certain if it passes two tests. Each test looks at the quietest patches of all brightness
# levels; at least a quarter of the levels must pass it. Test 1: the variance of patches' energy,
# divided by that of white noise, is at most AS_NOISE. (If the noise has more blur than
# BLURS[HARDLY_BLURRED], `_Fit.refined` corrects this ratio for the blur, and the limit is
# MOST_UNEVEN; LEAST_ABOVE keeps a divisor positive.) Test 2: the |log ratio| of the energies along
# rows and columns is at most MOST_ORIENTED. The limits were chosen on BSDS500.
AS_NOISE, HARDLY_BLURRED, MOST_UNEVEN, MOST_ORIENTED, LEAST_ABOVE = 1.25**2, 1, 2.0, 0.2, 0.01
# Noise plainly rises with brightness if its variance in bright areas is this many times that in
# dark areas. Clipped white noise appears to rise by a factor of up to 2.
RISING = 2.5
# Log odds that prove rising noise (or speckle): white noise and texture reach 14 on 60 pictures.
PLAIN = 16.0
# Maximum of `dark` in the variance gain (x + dark) at brightness x: noise is then nearly constant.
FARTHEST_DARK = 100.0 * SCALE
LOW = 0.05  # probability that the level is below the interval, and that it is above
# Standard error of the fitted log variance, for white noise and for noise that neighbours share.
# Its square is added to the posterior variance. Measured on images of simulated detectors.
MISFIT = (0.2, 0.5)
_Ends = tuple[float | None, float | None]  # black and white level, if noise is clipped there
NOT_CUT: _Ends = (None, None)
TINY = 1e-9  # share of the mean energy of patches that is added to keep logarithms finite

# Mean, and logarithm of the remaining variance, of noise clipped from below (Foi 2009). AWAY is the
# distance of the brightness from the clipping end. The unit is the deviation of the noise.
AWAY = np.linspace(-8.0, 8.0, 2001)
CLIPPED_MEAN = norm.pdf(AWAY) + AWAY * norm.cdf(AWAY)
CLIPPED_LOG_VARIANCE = np.log(
    np.maximum((AWAY**2 + 1) * norm.cdf(AWAY) + AWAY * norm.pdf(AWAY) - CLIPPED_MEAN**2, 1e-30)
)


class Light(NamedTuple):
    """Photon noise, with variance gain (x + dark) at brightness x."""

    gain: float  # brightness of one count
    dark: float  # brightness whose photon noise equals the noise in the dark
    blur: float = 0.0  # deviation in pixels of the blur that correlates neighbouring pixels

    @property
    def level(self) -> float:
        """Noise level at the bright end."""
        return math.sqrt(max(self.gain * (SCALE + self.dark), 0.0))


Lights = tuple[Light, ...]


def light_of(law: NoiseLaw) -> Light:
    """Return the `Light` parameters of a law on the scale 0..255."""
    gain = max(law.gain, law.constant / FARTHEST_DARK)
    return Light(gain, law.constant / gain if gain > 0 else 0.0, law.blur)


def rises_far(law: NoiseLaw) -> bool:
    """Whether noise is plainly stronger in bright areas than in dark ones."""
    dark, _, light = law.deviations
    return law.rises and (light**2 > RISING * dark**2 or law.log_odds_flat < -PLAIN)


class PageLaws(NamedTuple):
    """The laws of the noise of one page."""

    laws: tuple[NoiseLaw, ...]  # law of each channel
    certain: bool = True  # whether noise is certain in all channels, and visible in at least one
    rises_far: bool = True  # whether the noise is plainly stronger in bright areas
    log_odds_speckle: float = -math.inf  # log odds that the deviation is proportional to brightness


def law_of_nothing(value: float) -> NoiseLaw:
    """Return the law of a channel with a single value, which has no noise."""
    return NoiseLaw(0.0, 0.0, 0.0, (1.0, 1.0), True, False, 0.0, 0.0, (value,), (0.0,))


def typical_law(laws: Sequence[NoiseLaw]) -> NoiseLaw:
    """Return the median of laws, with the evidence of the law nearest to the median."""
    terms = np.array([(law.gain, law.constant, law.blur) for law in laws])
    gain, constant, blur = np.median(terms, axis=0).tolist()
    nearest = laws[int(np.abs(terms[:, 0] - gain).argmin())]
    return replace(nearest, gain=gain, constant=constant, blur=blur)


def typical_page(pages: Sequence[PageLaws]) -> tuple[NoiseLaw, ...]:
    """Return each channel's typical law over the pages that show noise, or over all pages."""
    channels = zip(*(page.laws for page in pages), strict=True)
    return tuple(
        typical_law([law for law in own if law.gain or law.constant] or own) for own in channels
    )


@dataclass(frozen=True)
class _Classes:
    """Classes of patches of similar brightness and coarse structure."""

    brightness: Array  # (n,)
    energies: Array  # (n, 5): mean energy in each band
    scatter: Array  # (n,): relative variance of the energy between patches
    pixels: Array  # (n,): number of pixels that the patches of the class cover
    quietest: NDArray[np.bool_]  # (n,): whether the class is the quietest of its brightness level
    oriented: Array  # (n,): |log ratio| of energies along rows and columns; 0 unless quietest

    def without_rounding(self, step: float) -> _Classes:
        """Return classes whose energies lack the variance of rounding to multiples of `step`."""
        energies = np.maximum(self.energies - step**2 / 12, 0.05 * self.energies)
        return replace(self, energies=energies)

    def are_counts(self, step: float, black: float) -> bool:
        """Whether values are counts: variance is nowhere below the mean, and mostly equals it."""
        light = (self.brightness[self.quietest] + black) * step
        seen = self.energies[self.quietest] @ COEFFICIENTS / N_COEFFICIENTS
        if not light.min() > 0:
            return False
        off = np.log(seen / light) / (norm.isf(LOW) * MISFIT[0])
        return bool(off.min() >= -1 and np.median(off) <= 1)


def blurred_spectrum(blur: float) -> Array:
    """Return the energy (8, 8), by frequency, of white noise blurred and scaled to variance 1.

    >>> bool(np.allclose(blurred_spectrum(0.0), 1.0))
    True
    """
    reach = np.arange(-12, 13)
    weights = np.exp(-(reach**2) / (2 * blur**2)) if blur > 0 else (reach == 0).astype(float)
    shared = np.correlate(weights, weights, "full")[2 * 12 :]
    lags = np.abs(np.subtract.outer(np.arange(WIDTH), np.arange(WIDTH)))
    along = np.diag(BASIS @ (shared[lags] / shared[0]) @ BASIS.T)
    return np.asarray(np.outer(along, along))


_NOISE = np.array([
    [blurred_spectrum(blur).ravel()[members].mean() for members in MEMBERS] for blur in BLURS
])  # fmt: skip


def measure_laws(
    planes: NDArray[np.floating], step: float = 0.0, *, is_white: bool = False, black: float = 0.0
) -> tuple[list[NoiseLaw | None], float]:
    """Fit the noise law of each plane (c, h, w); None if there are too few patches.

    Also return the log odds of noise whose deviation is proportional to the brightness.

    `step` is the distance between integers, which are counts (with white noise of variance equal to
    the mean) or rounded values (rounding adds white noise). `black` is added to values so that 0 is
    no light. All planes are fitted with the same blur, almost 0 if the noise is known to be white.
    """
    few = PATCHES // len(planes)
    found = [_classes(np.asarray(plane, np.float32), few) for plane in planes]
    known = [one for one in found if one]
    counted = step > 0 and bool(known) and all(one.are_counts(step, black) for one in known)
    rounded = 0.0 if counted else step
    found = [classes and classes.without_rounding(rounded) for classes in found]
    blurs = range(HARDLY_BLURRED + 1 if is_white else len(BLURS))
    fits = [[_Fit(one, blur) for blur in blurs] if one else [] for one in found]
    evidence = np.sum([[fit.evidence for fit in own] for own in fits if own], axis=0)
    blur = int(np.argmax(evidence))
    counted &= blur <= HARDLY_BLURRED  # The noise of counts is independent between pixels.
    laws: list[NoiseLaw | None] = []
    log_odds_speckle = 0.0
    for plane, classes, own in zip(planes, found, fits, strict=True):
        ends = float(plane.min()), float(plane.max())
        if classes is None:
            laws.append(None if np.ptp(plane) else law_of_nothing(ends[0]))
            continue
        fit = own[blur]
        shares = [np.count_nonzero(plane == end) / plane.size for end in ends]
        low, high = (e if share > CUT else None for e, share in zip(ends, shares, strict=True))
        if sum(shares) > MOST_CUT and np.sqrt(shares).sum() > MOST_ROOTS:
            laws.append(None)
            continue
        for cut in dict.fromkeys(((low, None), (None, high), (low, high))):
            if cut != NOT_CUT:
                fit = max(fit, _Fit(classes, blur, cut, fit.table), key=lambda one: one.evidence)
        law = fit.refined(rounded, float(evidence[0] - evidence[blur]))
        if counted:
            law = replace(law, gain=step, constant=step * black, blur=0.0)
        laws.append(law)
        log_odds_speckle += fit.log_odds_speckle(black)
    return laws, log_odds_speckle


class _Fit:
    """The likelihoods of all noise laws (gain, constant) at one blur of the noise."""

    def __init__(
        self, classes: _Classes, blur: int, ends: _Ends = NOT_CUT, table: Array | None = None
    ) -> None:
        self.classes, self.blur, self.ends = classes, blur, ends
        self.low = float(classes.brightness.min())
        self.span = float(np.ptp(classes.brightness)) or 1.0
        self.place = (classes.brightness - self.low) / self.span
        noise = _NOISE[blur]
        # The grid of noise levels ends at `top`: noise is no stronger than about the weakest band.
        top = np.log(1.6 * np.max((classes.energies / noise).min(axis=1)))
        grid = np.linspace(top - DEPTH, top, STEPS)
        # Other `ends` leave the table as it is.
        if table is None:
            table = _likelihoods(classes, np.ones(len(self.place)), noise, grid, BELIEVED)
        self.table, self.grid = table, grid
        lights, place = np.exp(grid), self.place[:, None]
        variances = [lights * (dark + (1 - dark) * place) for dark in DARK_SHARES]
        laws = self._summed(table, grid, self._cut_off(np.concatenate(variances, axis=1)))
        laws = laws.reshape(len(DARK_SHARES), STEPS)
        self.evidence = float(logsumexp(laws))
        self.flat = float(logsumexp(laws[-1])) - self.evidence
        share, level = np.unravel_index(int(laws.argmax()), laws.shape)
        self.light = float(np.exp(grid[level]))
        self.dark = float(DARK_SHARES[share]) * self.light

    def log_odds_speckle(self, black: float) -> float:
        """Return the log odds that the deviation is proportional to the light (brightness + black).

        A priori, speckle is as likely as all laws together.
        """
        # Keep the light above 0, to avoid dividing by 0 and taking the logarithm of 0.
        light = np.maximum(self.classes.brightness + black, DARK_SHARES[0] * SCALE)
        variances = np.square(light / light.max())[:, None] * np.exp(self.grid)
        found = self._summed(self.table, self.grid, self._cut_off(variances))
        return float(logsumexp(found)) + math.log(len(DARK_SHARES)) - self.evidence

    def _cut_off(self, variances: Array) -> Array:
        """Return the log variances (n, laws) of noise that is clipped at black or white."""
        logs = np.log(variances)
        for end in self.ends:
            if end is not None:
                away = np.abs(self.classes.brightness[:, None] - end) / np.sqrt(variances)
                logs += np.interp(away, CLIPPED_MEAN, CLIPPED_LOG_VARIANCE)
        return np.asarray(logs)

    def _summed(self, table: Array, grid: Array, logs: Array) -> Array:
        """Return log likelihoods (laws,), averaged over spectra, for log variances (n, laws)."""
        place = np.clip((logs.T - grid[0]) / (grid[1] - grid[0]), 0, len(grid) - 1.001)
        below = place.astype(np.int32)
        shares = np.stack([1 - (place - below), place - below], axis=-1)
        # Interpolate between rows of the table, one for each class and level.
        below += len(grid) * np.arange(len(table), dtype=np.int32)
        rows = np.stack([below, below + 1], axis=-1)
        ends = rows[0].size * np.arange(len(rows) + 1)
        weights = csr_array((shares.ravel(), rows.ravel(), ends), (len(rows), table[:, 0].size))
        total = weights @ table.swapaxes(1, 2).reshape(-1, table.shape[1])
        return np.asarray(logsumexp(total + SPECTRUM_LOG_PRIOR, axis=1))

    def refined(self, step: float, log_odds_white: float) -> NoiseLaw:
        """Return the law, refined on a finer grid around the best law."""
        classes, noise = self.classes, _NOISE[self.blur]
        expected = self.dark + (self.light - self.dark) * self.place
        grid = np.linspace(-NEAR, NEAR, NEAR_STEPS)
        near = np.linspace(-0.8, 0.8, 17)
        table = _likelihoods(classes, expected, noise, grid, BELIEVED_LAST)
        darks, lights = (x.ravel() for x in np.meshgrid(near, near, indexing="ij"))
        darks, lights = self.dark * np.exp(darks), self.light * np.exp(lights)
        kept = darks <= lights
        darks, lights = darks[kept], lights[kept]
        laws = darks + (lights - darks) * self.place[:, None]
        posterior = self._summed(table, grid, self._cut_off(laws) - np.log(expected[:, None]))
        weights = np.exp(posterior - logsumexp(posterior))
        dark, light = (float(np.exp(weights @ np.log(x))) for x in (darks, lights))
        middle = np.average(self.place, weights=classes.pixels)
        levels = np.log(darks + (lights - darks) * middle)
        unsure = weights @ np.square(levels - weights @ levels)
        unsure += MISFIT[self.blur > HARDLY_BLURRED] ** 2
        quiet = classes.quietest
        found = classes.energies[quiet] @ COEFFICIENTS / (noise @ COEFFICIENTS)
        law = dark + (light - dark) * self.place
        energies, scatter = classes.energies[quiet], classes.scatter[quiet] / EVEN
        uneven, most = scatter, AS_NOISE
        if self.blur > HARDLY_BLURRED:
            above = 1.0 - (energies[:, -1:] / energies) @ COEFFICIENTS / N_COEFFICIENTS
            uneven, most = (scatter - 1.0) / np.maximum(above, LEAST_ABOVE) ** 2, MOST_UNEVEN
        oriented = np.quantile(classes.oriented[quiet], 0.25)
        # At brightness levels where energies scatter no more than in white noise, patches show only
        # noise. Widen the law's interval to contain the measured variance of 90 % of their pixels.
        misfit = np.abs(self._cut_off(law[:, None])[quiet, 0] - np.log(found))
        weights = np.where(scatter <= AS_NOISE, classes.pixels[quiet], 0.0)
        order = np.argsort(misfit)
        shares = np.cumsum(weights[order])
        unfit = misfit[order][np.searchsorted(shares, (1 - 2 * LOW) * shares[-1])]
        either_way = float(np.exp(max(norm.isf(LOW) * np.sqrt(unsure), unfit)))
        gain, rounding = (light - dark) / self.span, step**2 / 12
        return NoiseLaw(
            gain=gain,
            constant=dark - gain * self.low + rounding,
            blur=BLURS[self.blur],
            interval=(1.0 / either_way, either_way),
            established=bool(np.quantile(uneven, 0.25) <= most and oriented <= MOST_ORIENTED),
            clipped=self.ends != NOT_CUT,
            log_odds_flat=self.flat,
            log_odds_white=log_odds_white,
            brightness=tuple(classes.brightness[quiet].tolist()),
            variances=tuple((found + rounding).tolist()),
        )


def _classes(pixels: NDArray[np.float32], enough: int) -> _Classes | None:
    """Sort about `enough` patches into levels of brightness and classes of coarse structure."""
    if pixels.size < FEWEST_PIXELS or min(pixels.shape) < WIDTH:
        return None
    stride = max(1, round(np.sqrt(pixels.size / enough)))
    # Constant areas have lost their noise.
    varying = counts_of(areas_of_one_value(pixels), stride) == 0
    if np.count_nonzero(varying) < FEWEST:
        return None
    brightness, bands = (one[varying] for one in energies_of(pixels, stride))
    n_bands = len(COEFFICIENTS)
    tiny = TINY * float(bands[:, :n_bands].mean(dtype=np.float64)) + np.finfo(np.float64).tiny
    order = np.argsort(brightness, kind="stable")
    start, found = 0, []
    for stop in _ends(brightness[order]):
        if stop - start < FEWEST:
            continue
        level, start = order[start:stop], stop
        level = level[np.argsort(bands[level, n_bands], kind="stable")]
        ends = [max(1, round(share * len(level))) for share in CLASSES]
        quietest = True
        for first, last in zip([0, *ends], ends, strict=False):
            if last - first < FEWEST_OF_CLASS:
                continue
            members = level[first:last]
            seen = bands[members]
            means = seen.mean(axis=0, dtype=np.float64)
            # Weight the bands as if all had the same energy, whatever the spectrum of the noise.
            weights = COEFFICIENTS / np.maximum(means[:n_bands], tiny) / N_COEFFICIENTS
            own = seen[:, :n_bands] @ weights
            lean = np.ptp(np.log(means[n_bands + 1 :] + tiny)) if quietest else 0.0
            row = brightness[members].mean(), own.var(), last - first, quietest
            found.append((*row, *means[:n_bands], lean))
            quietest = False
    if len(found) < FEWEST_CLASSES:
        return None
    table = np.array(found, np.float64)
    pixels_of = table[:, 2] * min(stride, WIDTH) ** 2
    levels, scatter, _, quietest = table[:, :4].T
    return _Classes(levels, table[:, 4:-1] + tiny, scatter, pixels_of, quietest > 0, table[:, -1])


def _ends(ascending: NDArray[np.floating]) -> NDArray[np.integer]:
    """Return where levels of brightness end among patches sorted by brightness."""
    equally = np.quantile(ascending, np.linspace(0, 1, LEVELS + 1))
    low, high = equally[0], np.quantile(ascending, HIGHEST)
    spread = low + np.linspace(0, 1, LEVELS // 2 + 1) ** 2 * (high - low)
    ends = np.searchsorted(ascending, np.unique(np.concatenate([equally, spread])), side="right")
    return np.asarray(ends[1:])


def _likelihoods(
    classes: _Classes, expected: Array, noise: Array, grid: Array, believed: float
) -> Array:
    """Return log likelihoods (n, spectra, levels) at variances exp(`grid`) times `expected`."""
    energies, noises = classes.energies / expected[:, None], np.exp(grid)[:, None] * noise
    amplitudes = float(np.exp(grid[-1]) * noise.mean()) * AMPLITUDES
    explained = noises, amplitudes, SPECTRA
    table = class_likelihoods(energies, classes.pixels, believed, *explained, classes.scatter)
    # Excess energy may be unusual texture, so it costs less than a lack of energy.
    best, levels = table.max(axis=2, keepdims=True), np.arange(len(grid))
    above = levels > table.argmax(axis=2, keepdims=True)
    return np.asarray(np.logaddexp(table, best - np.where(above, MOST_BELOW, OUTLIER)))
