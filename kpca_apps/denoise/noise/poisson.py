"""Photon noise, perhaps correlated: variance grows linearly with brightness.

The Anscombe transform makes the noise white. Below 0 (after background subtraction), the transform
is extended as a straight line.

References
----------
F. J. Anscombe (1948), "The transformation of Poisson, binomial and negative-binomial data",
Biometrika 35, eq. 1.2; M. Makitalo, A. Foi (2011), "A closed-form approximation of the exact
unbiased inverse of the Anscombe variance-stabilizing transformation", IEEE Trans. Image Processing
20, eq. 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.estimate.law import Light, Lights, blurred_spectrum
from kpca_apps.denoise.estimate.level import estimate_noise
from kpca_apps.denoise.image import SCALE
from kpca_apps.denoise.noise.camera import whitened_denoising
from kpca_apps.denoise.noise.clipping import before_clipping
from kpca_apps.denoise.noise.dark import dark_light, tiled_noise
from kpca_apps.denoise.noise.gaussian import denoise_stabilised, opponent_stabilisation
from kpca_apps.denoise.noise.model import (
    Inspected,
    Levels,
    Measured,
    Planes,
    VarianceStabilisation,
    channel_by_channel,
    noisy_channels,
)
from kpca_apps.denoise.options import Options

GAIN_ROUNDS = 4  # rounds to find the gain for which the Anscombe transform has noise of deviation 1
# Below this brightness, the transform is a straight line. The unit is the deviation of the readout
# noise, which makes some values negative. In the dark, the transformed noise then has a deviation
# of 1 within 2 % (less if almost no photon was counted). The usual transform gives up to 1.13.
BEND = -0.5
MANY_COUNTS = 10  # mean count above which transformed noise has deviation 1 in nearly all pixels
LEAST_GAIN = 1e-30
WHOLLY = (1.0,) * 3  # each plane is divided by its noise spectrum to this power: 1 whitens fully
ANSCOMBE_OF_NOTHING = 2.0 * np.sqrt(0.375)  # Anscombe transform of a count that is always 0


def measure(image: Inspected) -> Measured:
    """Use gain and dark noise of `image.lights`; if it is empty, measure both."""
    if image.lights:
        levels = tuple(light.level for light in image.lights)
        return Measured(image.lights, levels)
    black = np.float32(image.black)
    lights = _typical_lights([tuple(map(_light_by_tiles, page + black)) for page in image.pages])
    return Measured(lights, tuple(light.level for light in lights), black=image.black)


def _typical_lights(pages: Sequence[Lights]) -> Lights:
    """Return each channel's median `Light` over pages with photon noise, or else over all pages."""
    terms = np.array([[(gain, gain * dark, blur) for gain, dark, blur in page] for page in pages])
    typical = []
    for own in terms.swapaxes(0, 1):
        gain, constant, blur = np.median(own[own[:, 0] > 0] if own[:, 0].any() else own, axis=0)
        typical.append(Light(float(gain), float(constant / gain) if gain else 0.0, float(blur)))
    return tuple(typical)


def denoise(
    planes: Planes, known: float | Levels | Lights, options: Options
) -> tuple[Planes, Levels]:
    """Denoise planes whose noise has a variance proportional to intensity plus a constant.

    If only a level is `known`, intensity is counted from 0. The constant is then measured if values
    are negative, because a background was subtracted or the readout added noise.
    """
    if isinstance(known, tuple) and isinstance(known[0], Light):
        lights = known
    else:
        at_most = np.broadcast_to(np.asarray(known, np.float64), len(planes))
        darks = [dark_light(plane, 1) for plane in planes]
        gains = [level**2 / (SCALE + dark) for level, dark in zip(at_most, darks, strict=True)]
        # A gain up to LEAST_GAIN counts as no noise, as single precision cannot divide by it.
        lights = tuple(
            Light(float(gain) if gain > LEAST_GAIN else 0.0, dark)
            for gain, dark in zip(gains, darks, strict=True)
        )
    levels = tuple(light.level for light in lights)
    brightest = [
        plane.max() + np.float32(light.dark) for plane, light in zip(planes, lights, strict=True)
    ]
    if not noisy_channels(np.array(brightest)[:, np.newaxis, np.newaxis], levels).all():
        alone = [(light,) for light in lights]
        return channel_by_channel(denoise, planes, alone, levels, options)
    transform, blur = stabilisation(planes, lights), max(light.blur for light in lights)
    if not blur:
        return denoise_stabilised(planes, transform, options), levels
    spectra = transform.levels[:, np.newaxis, np.newaxis] * np.sqrt(blurred_spectrum(blur))
    # Denoise the whole image, as the whitening filter combines all pixels.
    options = replace(options, wanted=None)
    cleaned = whitened_denoising(transform.forward(planes), spectra, options, WHOLLY, WHOLLY)
    found = transform.inverse(cleaned)
    return np.stack([before_clipping(*one) for one in zip(planes, found, strict=True)]), levels


def stabilisation(planes: Planes, lights: Lights) -> VarianceStabilisation:
    """Return the transform that makes noise of these parameters equally strong everywhere."""

    def roots(planes: Planes) -> NDArray[np.float64]:
        return np.stack(
            [
                anscombe((plane + np.float32(dark)) / gain)
                for plane, (gain, dark, _) in zip(planes, lights, strict=True)
            ]
        )

    low, high = (roots(end(planes, axis=(1, 2), keepdims=True)) for end in (np.min, np.max))
    unit = SCALE / (float(high.max() - low.min()) or 1.0)

    def forward(planes: Planes) -> Planes:
        return (roots(planes) * unit).astype(np.float32)

    def inverse(planes: Planes) -> Planes:
        light = [
            inverse_anscombe(plane / unit) * gain - dark
            for plane, (gain, dark, _) in zip(planes, lights, strict=True)
        ]
        return np.stack(light).astype(np.float32)

    return opponent_stabilisation(planes, (unit,) * len(lights), forward, inverse)


def _light_by_tiles(plane: Planes) -> Light:
    """Measure noise of variance gain (x + dark). If no value x is negative, dark is 0."""
    dark = dark_light(plane, 1)
    return Light(_poisson_gain(plane + np.float32(dark)), dark)


def _poisson_gain(plane: Planes) -> float:
    """Return the intensity of one count, or 0 if there is no noise."""
    brightness = float(np.mean(np.maximum(plane, 0)))
    if brightness <= 0:
        return 0.0
    # With few counts, the transformed noise has a deviation below 1, and the quietest patches are
    # the darkest. Use the median ratio, over tiles, of variance (from mixed differences) to mean.
    variance, mean = tiled_noise(plane)
    light = mean > 0
    gain = float(np.median(variance[light] / mean[light])) if light.any() else 0.0
    if gain * MANY_COUNTS > brightness:
        return gain
    # With many counts, find the gain at which transformed noise has deviation 1. Texture affects
    # this gain less than it affects the median ratio.
    gain = estimate_noise(plane).sigma ** 2 / brightness
    for _ in range(GAIN_ROUNDS):
        if gain < np.finfo(np.float32).eps:
            return 0.0
        roots = anscombe(plane / gain)
        gain *= estimate_noise(roots, float(np.ptp(roots) or 1.0)).sigma ** 2
    return gain


def anscombe(counts: NDArray[np.floating], readout: float = 0.0) -> NDArray[np.float64]:
    """Return the Anscombe transform of Poisson counts, whose noise has deviation about 1.

    With Gaussian noise of the variance `readout`, use the generalised Anscombe transform. In the
    dark and below 0, the transform is extended as its tangent.
    """
    values = np.asarray(counts, np.float64)
    lowest, constant = BEND * np.sqrt(readout), readout + 0.375
    kept = np.maximum(values, lowest)
    line = (values - kept) / np.sqrt(lowest + constant)
    return np.asarray(2.0 * np.sqrt(kept + constant) + line)


def inverse_anscombe(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the mean count whose Anscombe transform has the given mean.

    This is the closed form of the exact unbiased inverse, extended as a line below 2 sqrt(3/8).
    """
    given = np.asarray(values, np.float64)
    v = np.maximum(given, ANSCOMBE_OF_NOTHING)
    root = np.sqrt(1.5)
    counts = v**2 / 4 + root / (4 * v) - 11 / (8 * v**2) + 5 * root / (8 * v**3) - 0.125
    below = np.minimum(given - ANSCOMBE_OF_NOTHING, 0.0) * np.sqrt(0.375)
    return np.asarray(np.maximum(counts, 0.0) + below)
