"""The law by which noise grows with brightness: found, and told from texture.

Counted light has noise whose variance is a straight line over brightness, a x + c: gain a, and c
what readout, an offset and a background make of it (Foi et al. 2008). Patches of like brightness
are taken together; those of them that are the quietest at low frequencies show at the upper ones
the noise of that brightness, for the two are independent if it is white.

Whether it is noise, and not fine texture, their own spread says: the mean of n squares of white
Gaussian noise of one variance differs from patch to patch by sqrt(2 / n) of itself, and texture by
several times that, being in some patches and not in others. Only where the quiet patches of several
levels of brightness differ as those of noise do, and the line fits them, is there a law.

References
----------
A. Foi, M. Trimeche, V. Katkovnik, K. Egiazarian (2008), "Practical Poissonian-Gaussian noise
modeling and fitting for single-image raw-data", IEEE Trans. Image Processing 17.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from kpca_apps.denoise.noise import COSINES, WIDTH, sample_patches

Array = NDArray[np.float64]

PATCHES = 60_000
# Levels of brightness: half of them hold equally many patches, half are spread over the range,
# closer in the dark. Each has so many quiet patches at the least, and else this share of all.
LEVELS, FEWEST_QUIET, QUIET = 12, 60, 0.15
HIGHEST = 0.9995  # quantile of brightness: beyond are single pixels

_SUM = np.add.outer(np.arange(WIDTH), np.arange(WIDTH)).ravel()
_LOWER, _UPPER = (_SUM >= 1) & (_SUM <= 3), _SUM >= 6
N_UPPER = int(_UPPER.sum())
# The spread of patches of white noise, about .22 for the 43 upper frequencies, and what a level of
# brightness may have at most: a few patches with structure among them, as at its edges.
SPREAD = float(np.sqrt(2.0 / N_UPPER))
MOST_SPREAD = 1.5 * SPREAD
# Of chi-squared of so many degrees of freedom, the median over the mean (Wilson, Hilferty 1931).
MEDIAN = (1.0 - 2.0 / (9.0 * N_UPPER)) ** 3
# So many levels must be of noise, and this share of those that are.
FEWEST_LEVELS, SHARE = 4, 0.4
# A level this far above the line, relative to it, has texture and counts for less.
FAR_ABOVE, ROUNDS = 0.3, 20
# Median relative distance of the levels from the line, at most.
MOST_OFF = 0.25
# The law of light alone is kept where a constant brings it less than this much nearer.
NEARER = 2.0
# Variance in the light over that in the dark from which noise counts as that of light: white noise
# whose ends are cut off looks as if it rose by up to 2.
RISING = 2.5
# Deviations of the noise that the levels span at the least.
SPAN = 2.0
# The constant is at most the variance of so much light, in terms of 255: for more, the noise is
# the same in the light.
FARTHEST = 100.0 * 255.0


@dataclass(frozen=True)
class NoiseLaw:
    """Variance of the noise at brightness x: gain x + constant, on the scale of the planes."""

    gain: float
    constant: float
    brightness: Array  # levels it was fitted on, ascending
    variances: Array  # what was measured there

    def variance(self, brightness: NDArray[np.floating]) -> Array:
        """Return the variance of the noise at some brightness."""
        return np.asarray(np.maximum(self.gain * brightness + self.constant, 0.0), np.float64)

    @property
    def rises(self) -> bool:
        """Whether there is clearly more noise in the light than in the dark.

        Of an even picture the levels of brightness are made by the noise, and say nothing.
        """
        dark, light = self.variance(self.brightness[[0, -1]])
        span = float(np.ptp(self.brightness))
        return bool(light > RISING * dark and span > SPAN * np.sqrt(self.variances.mean()))

    def of_light_alone(self) -> NoiseLaw:
        """Return the law without a constant, unless one is plainly there."""
        if self.brightness[0] <= 0:
            return self
        # The median, for texture adds to the noise of a few levels.
        alone = replace(self, gain=float(np.median(self.variances / self.brightness)), constant=0.0)
        return alone if alone._distance() < NEARER * self._distance() else self

    def _distance(self) -> float:
        """Return the root mean square of the relative distances of the levels from the line."""
        fitted = np.maximum(self.variance(self.brightness), 1e-12 * self.variances.max())
        return float(np.sqrt(np.mean(np.square(self.variances / fitted - 1.0))))

    def deviation(self, plane: NDArray[np.floating]) -> float:
        """Return the root of the mean variance over a plane."""
        return float(np.sqrt(self.variance(plane).mean()))


def noise_law(plane: NDArray[np.floating]) -> NoiseLaw | None:
    """Find the law of the noise of a plane (h, w); ``None`` where it cannot be told from texture.

    Noise must be white: noise that neighbours share has a spectrum of its own.
    """
    pixels = np.asarray(plane, np.float32)
    patches, _ = sample_patches(pixels, max(1, int(np.sqrt(pixels.size / PATCHES))))
    if len(patches) < FEWEST_QUIET / QUIET:
        return None
    coefficients = patches @ COSINES
    brightness = coefficients[:, 0] / WIDTH
    energy = np.square(coefficients, out=coefficients)
    upper, lower = energy[:, _UPPER].mean(axis=1), energy[:, _LOWER].sum(axis=1)
    order = np.argsort(brightness, kind="stable")
    found = []
    start = n_levels = 0
    for stop in _ends(brightness[order]):
        if QUIET * (stop - start) < FEWEST_QUIET:
            continue
        members = order[start:stop]
        start, n_levels = stop, n_levels + 1
        few = round(QUIET * len(members))
        quiet = members[np.argsort(lower[members], kind="stable")[:few]]
        mean = float(upper[quiet].mean())
        if mean > 0 and upper[quiet].std() <= MOST_SPREAD * mean:
            found.append((brightness[quiet].mean(), np.median(upper[quiet]) / MEDIAN, few))
    if len(found) < max(FEWEST_LEVELS, SHARE * n_levels):
        return None
    levels, variances, sizes = np.array(found, np.float64).T
    gain, constant = _line(levels, variances, sizes)
    law = NoiseLaw(gain, constant, levels, variances)
    off = np.abs(variances / np.maximum(law.variance(levels), 1e-12 * variances.max()) - 1.0)
    return law if np.median(off) <= MOST_OFF else None


def _ends(ascending: NDArray[np.floating]) -> NDArray[np.integer]:
    """Return where the levels of brightness end among patches sorted by it."""
    equally = np.quantile(ascending, np.linspace(0, 1, LEVELS + 1))
    low, high = equally[0], np.quantile(ascending, HIGHEST)
    spread = low + np.linspace(0, 1, LEVELS + 1) ** 2 * (high - low)
    ends = np.searchsorted(ascending, np.unique(np.concatenate([equally, spread])), side="right")
    return np.asarray(ends[1:])


def _line(levels: Array, variances: Array, sizes: Array) -> tuple[float, float]:
    """Fit gain and constant, neither falling nor negative in the dark, to relative errors."""
    design = np.stack([np.ones_like(levels), levels - levels.min()], axis=1)
    fitted = variances.copy()
    for _ in range(ROUNDS):
        floor = np.maximum(fitted, 1e-9 * variances.max())
        above = (variances - floor) / floor
        # Texture adds to the noise and never takes from it.
        weights = np.sqrt(sizes) / floor / np.where(above > 0, 1 + (above / FAR_ABOVE) ** 2, 1.0)
        (dark, gain), _ = nnls(design * weights[:, None], variances * weights)
        fitted = dark + gain * (levels - levels.min())
    return float(gain), float(dark - gain * levels.min())
