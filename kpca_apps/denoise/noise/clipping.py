"""White noise that was cut off at the ends of the range: made even, and its mean brought back.

Of noise of deviation s at brightness x, cut off below and above, mean m(x) and deviation d(x) are
known (Foi 2009). In the dark the mean is too bright, by .4 s at the end, and the noise weaker than
given. The transform f with slope s / d at mean m makes it nearly as strong everywhere; the image
denoised is E f = F(x), and F^-1 brings it back, without bias, to the brightness there was.

References
----------
A. Foi (2009), "Clipped noisy images: heteroskedastic modeling and practical denoising", Signal
Processing 89, sections 2 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.stats import norm

from kpca_apps.denoise.estimate.law import CUT

Array = NDArray[np.float64]

FEWEST = 20  # pixels at an end of the range, where noise was cut off
# Of brightness near an end; how far that is, and an open end, in deviations; of quadrature.
KNOTS, FAR, NODES = 256, 12.0, 80


@dataclass(frozen=True)
class Clipping:
    """The transform of one channel, as tables, and the way back."""

    values: Array
    even: Array  # f of the values
    brightness: Array
    expected: Array  # F of the brightness

    def stabilise(self, plane: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a plane whose noise is as strong everywhere."""
        return np.interp(plane, self.values, self.even).astype(np.float32)

    def restore(self, plane: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the brightness of a plane that was denoised."""
        return np.interp(plane, self.expected, self.brightness).astype(np.float32)


def find_clipping(plane: NDArray[np.float32], sigma: float) -> Clipping | None:
    """Return the transform where noise of a deviation was cut off; None where it was not."""
    low, high = float(plane.min()), float(plane.max())
    enough = max(CUT * plane.size, FEWEST)
    cut = [np.count_nonzero(plane == end) > enough for end in (low, high)]
    if not any(cut) or sigma <= 0 or not low < high:
        return None
    # An open end is far beyond all brightness, which the image's own values bound.
    ends = low - (0 if cut[0] else FAR * sigma), high + (0 if cut[1] else FAR * sigma)
    # Close where noise is cut off; far from both ends the transform is a line.
    near = np.linspace(0.0, min(FAR * sigma, high - low), KNOTS)
    brightness = values = np.unique(np.concatenate([low + near, high - near]))
    mean, deviation = clipped_moments(brightness, sigma, ends)
    slope = sigma / np.interp(values, mean, deviation)
    even = low + cumulative_trapezoid(slope, values, initial=0.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    seen = np.clip(brightness[:, None] + sigma * nodes, *ends)
    inside = np.interp(seen, values, even)
    # Beyond the values of the image, where an end is open, the transform is a line.
    inside += np.minimum(seen - low, 0) * slope[0] + np.maximum(seen - high, 0) * slope[-1]
    return Clipping(values, even, brightness, inside @ weights / weights.sum())


def clipped_moments(
    brightness: Array, sigma: float, ends: tuple[float, float]
) -> tuple[Array, Array]:
    """Return mean and deviation of values with Gaussian noise, cut off at two ends."""
    low, high = ends
    a, b = (low - brightness) / sigma, (high - brightness) / sigma
    below, above = norm.cdf(a), norm.sf(b)
    inside, rise, fall = 1 - below - above, norm.pdf(a), norm.pdf(b)
    mean = low * below + high * above + brightness * inside + sigma * (rise - fall)
    square = low**2 * below + high**2 * above + (brightness**2 + sigma**2) * inside
    square += sigma * ((brightness + low) * rise - (brightness + high) * fall)
    return mean, np.sqrt(np.maximum(square - mean**2, 1e-12 * sigma**2))
