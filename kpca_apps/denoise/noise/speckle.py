"""Speckle: noise that multiplies the intensity, so that its logarithm is white.

References
----------
B. P. Durbin, J. S. Hardin, D. M. Hawkins, D. M. Rocke (2002), "A variance-stabilizing
transformation for gene-expression microarray data", Bioinformatics 18: the generalised logarithm.
H. Xie, L. E. Pierce, F. T. Ulaby (2002), "Statistical properties of logarithmically transformed
speckle", IEEE Trans. Geoscience and Remote Sensing 40, section II.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import rank_filter
from scipy.optimize import brentq
from scipy.special import polygamma

from kpca_apps.denoise.estimate.level import estimate_noise
from kpca_apps.denoise.image import SCALE
from kpca_apps.denoise.noise.dark import dark_light
from kpca_apps.denoise.noise.gaussian import denoise_gaussian
from kpca_apps.denoise.noise.model import (
    Inspected,
    Levels,
    Measured,
    Planes,
    channel_by_channel,
    noisy_channels,
)
from kpca_apps.denoise.options import Options

SPECK = 1.5  # largest depth of a pixel below its neighbours, in noise levels
AROUND = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
FAINTEST = 1e-6  # relative noise level below which there is no noise
DARKEST = 1e-3  # least value, as a share of the mean, of which to take the logarithm


def measure(image: Inspected) -> Measured:
    """Measure the noise level of each channel, relative to the intensity."""
    levels = []
    for logs in _logs(image.planes + np.float32(image.black))[1]:
        # Scale each channel by its own range: a channel without light has far lower logarithms.
        scale = float(np.ptp(logs) or 1.0) / SCALE
        scaled = ((logs - logs.min()) / scale).astype(np.float32)
        levels.append(_relative_deviation(estimate_noise(scaled).sigma * scale))
    return Measured(tuple(levels), tuple(levels), black=image.black)


def _logs(planes: Planes) -> tuple[list[float], NDArray[np.float64]]:
    """Return the intensities at which speckle equals dark noise, and the planes' logarithms."""
    darks = [dark_light(plane, 2) for plane in planes]
    return darks, np.stack([log_of_speckle(p, dark) for p, dark in zip(planes, darks, strict=True)])


def denoise(planes: Planes, level: float | Levels, options: Options) -> tuple[Planes, Levels]:
    """Denoise planes whose noise multiplies the intensity, which is counted from 0.

    `level` is the noise level of all channels, or of each. Negative values indicate other noise in
    the dark, which is measured.
    """
    darks, logs = _logs(planes)
    levels = level if isinstance(level, tuple) else (level,) * len(planes)
    relative = tuple(one if one >= FAINTEST else 0.0 for one in levels)
    deviations = tuple(speckle_log_moments(one)[1] for one in relative)
    if not noisy_channels(planes, relative).all():
        return channel_by_channel(denoise, planes, relative, relative, options)
    lifted = np.stack([lift_specks(p, d) for p, d in zip(logs, deviations, strict=True)])
    darkest, unit = lifted.min(), SCALE / float(np.ptp(lifted) or 1.0)
    usual = float(np.sqrt(np.mean(np.square(deviations)))) * unit
    scaled = ((lifted - darkest) * unit).astype(np.float32)
    cleaned = denoise_gaussian(scaled, (usual,) * len(planes), options) / unit + darkest
    light = [
        speckle_from_log(p, s, dark) for p, s, dark in zip(cleaned, relative, darks, strict=True)
    ]
    return np.stack(light).astype(np.float32), relative


def _relative_deviation(log_deviation: float) -> float:
    """Return the relative noise level of speckle whose logarithm has the given deviation."""
    if log_deviation < FAINTEST:
        return 0.0
    # The deviation of the logarithm is at least sigma, and grows with sigma.
    lowest, highest = min(log_deviation / 100, 0.01), max(log_deviation, 0.01)
    return float(
        brentq(lambda s: speckle_log_moments(s)[1] - log_deviation, lowest, highest, xtol=1e-9)
    )


def log_of_speckle(intensity: NDArray[np.floating], dark: float = 0.0) -> NDArray[np.float64]:
    """Return the logarithm of intensities, which makes multiplicative noise additive.

    With other noise in the dark, as strong as speckle at the intensity `dark`, this is the
    generalised logarithm, an odd function: negative values keep their sign.
    """
    values = np.asarray(intensity, np.float64)
    if dark > 0:
        return np.asarray(np.arcsinh(values / dark) + np.log(dark / 2))
    smallest = max(DARKEST * float(np.mean(np.abs(values))), float(np.finfo(np.float32).tiny))
    return np.asarray(np.log(np.maximum(values, smallest)))


def lift_specks(logs: NDArray[np.floating], deviation: float) -> NDArray[np.floating]:
    """Raise single pixels whose logarithm is far below that of all but one of their neighbours."""
    # If the factor of the noise was near 0, the logarithm is far too low, and looks like detail.
    # Pixels of a dark line stay, since two neighbours are as dark. Mirrored borders add pixels from
    # inside: with repeated borders, a pixel would be its own neighbour.
    others = rank_filter(logs, 1, footprint=AROUND, mode="mirror")
    return np.asarray(np.maximum(logs, others - SPECK * deviation))


def speckle_from_log(
    values: NDArray[np.floating], sigma: float, dark: float = 0.0
) -> NDArray[np.float64]:
    """Return intensities from denoised logarithms, without the bias of the logarithm."""
    logs, bias = np.asarray(values, np.float64), speckle_log_moments(sigma)[0]
    if dark > 0:
        # Near intensity 0, the transform becomes a straight line, so its bias tends to 0 (tanh).
        logs = logs - np.log(dark / 2)
        return np.asarray(dark * np.sinh(logs - bias * np.tanh(logs)))
    return np.asarray(np.exp(logs - bias))


def speckle_log_moments(sigma: float) -> tuple[float, float]:
    """Return the mean and the deviation of the logarithm of multiplicative noise."""
    # The noise factor has a gamma distribution, as averages of independent radar or ultrasound
    # exposures (looks). At small deviations, any other noise has about these moments, too.
    looks = 1.0 / max(sigma, FAINTEST / 10.0) ** 2
    mean = float(polygamma(0, looks)) - float(np.log(looks))
    return mean, float(np.sqrt(polygamma(1, looks)))
