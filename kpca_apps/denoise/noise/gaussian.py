"""White Gaussian noise with a level for each channel, perhaps clipped at black and white.

Colours are denoised as opponent planes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from kpca_apps.denoise.colour import extreme_pixels, from_opponent, noise_in_opponent, to_opponent
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.law import rises_far, typical_page
from kpca_apps.denoise.estimate.level import estimate_noise
from kpca_apps.denoise.noise.camera import camera_probability
from kpca_apps.denoise.noise.clipping import find_clipping
from kpca_apps.denoise.noise.model import Inspected, Levels, Measured, Planes, VarianceStabilisation
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes.planes import denoise_planes

# If noise is independent between channels, at least one colour plane is as noisy as luminance. If
# all colour planes are far below, the noise was smoothed (JPEG halves the resolution of colours) or
# is the same in all channels. This limit is low, as texture raises the level of luminance.
INDEPENDENT = 0.25
# Noise that is the same in three channels is stronger in luminance by the root of 3. Clean
# photographs have a grain of 2 of 255.
ALL_ALIKE = 2.0 * 3**0.5
NOT_WHITE = 1.0  # level, of 255: below it in all channels, there is no white noise
# Least probability of camera noise. Of photographs that the constants were not fitted to, 3 of 65
# clean ones (BSDS500, means of PolyU) and 35 of 40 noisy ones are above; above .7, 1 and 33.
PROBABLE = 0.5
FEWEST_SHARED = 100 * 100  # least number of pixels: all of a smaller image may be one texture


def measure(image: Inspected) -> Measured:
    """Measure the level in each channel; it is not established if too faint or like texture."""
    levels = _before_clipping(image) or image.white.channel_sigma
    strongest = max(levels)
    is_white = image.white.established and (strongest == 0 or strongest > image.faintest)
    established = is_white or any(page.certain for page in image.laws)
    return Measured(levels, levels, established, interval=image.white.sigma_range or (0.0, 0.0))


def denoise(planes: Planes, level: float | Levels, options: Options) -> tuple[Planes, Levels]:
    """Denoise planes whose white noise may have been clipped at the ends of their range."""
    levels = level if isinstance(level, tuple) else (float(level),) * len(planes)
    clippings = [find_clipping(*one) for one in zip(planes, levels, strict=True)]

    def forward(planes: Planes) -> Planes:
        for plane, clipping in zip(planes, clippings, strict=True):
            if clipping is not None:
                plane[...] = clipping.stabilise(plane)
        return planes

    def inverse(planes: Planes) -> Planes:
        for plane, clipping in zip(planes, clippings, strict=True):
            if clipping is not None:
                plane[...] = clipping.restore(plane)
        return planes

    transform = opponent_stabilisation(planes, levels, forward, inverse)
    return denoise_stabilised(planes, transform, options), levels


def opponent_stabilisation(
    given: Planes,
    levels: Sequence[float],
    forward: Callable[[Planes], Planes] = lambda planes: planes,
    inverse: Callable[[Planes], Planes] = lambda planes: planes,
) -> VarianceStabilisation:
    """Return a transform that makes noise white in each channel, then forms opponent planes.

    The levels are those after `forward`.
    """
    deviations = np.asarray(levels, np.float64)
    if len(deviations) == 1:
        return VarianceStabilisation(forward, inverse, deviations)
    values = forward(given.min(axis=(1, 2), keepdims=True))
    flat = np.ptp(given, axis=(1, 2)) == 0

    def to_planes(channels: Planes) -> Planes:
        return to_opponent(forward(channels), in_place=True)

    def to_channels(planes: Planes) -> Planes:
        channels = from_opponent(planes, in_place=True)
        # A channel of one value, perhaps empty, would receive noise that remains in the others.
        channels[flat] = values[flat]
        return inverse(channels)

    return VarianceStabilisation(to_planes, to_channels, noise_in_opponent(deviations))


def _before_clipping(image: Inspected) -> Levels | None:
    """Return the deviation of white noise in each channel before clipping in the dark."""
    laws = [law for page in image.laws for law in page.laws]
    if not laws or not all(law.established and law.clipped and not rises_far(law) for law in laws):
        return None
    typical = typical_page(image.laws)
    return tuple(law.variance(law.middle) ** 0.5 for law in typical)


def measure_white(planes: Planes) -> DenoiseInfo:
    """Measure white noise in grey planes, or in red, green and blue together.

    The level is that of the grey plane or the luminance, `channel_sigma` that in each channel.
    """
    if len(planes) == 1:
        return estimate_noise(planes[0])
    # Texture is much the same in all channels and almost absent from their differences, unlike
    # independent white noise: colours distinguish the two where grey cannot.
    channels = tuple(estimate_noise(plane).sigma for plane in planes)
    opponent = to_opponent(planes)
    extreme = extreme_pixels(planes)
    luma, *colours = (estimate_noise(plane, extreme=extreme) for plane in opponent)
    luma = replace(luma, channel_sigma=channels)
    strongest = max(colour.sigma for colour in colours)
    if luma.established and luma.sigma > ALL_ALIKE and strongest < INDEPENDENT * luma.sigma:
        return replace(luma, correlated=True)
    # Clipping removes some noise of the colours, so they do not limit the noise of luminance.
    if luma.established and any(colour.clipped for colour in colours):
        return replace(luma, correlated=False)
    if any(c.established and c.sigma > 0 for c in colours) and min(channels) > 0:
        implied = noise_in_opponent(np.asarray(channels))[1:]
        found = np.sqrt(sum(colour.sigma**2 for colour in colours))
        share = min(1.0, float(found / max(np.sqrt(np.sum(np.square(implied))), found)))
        low, high = luma.sigma_range or (0.0, 0.0)
        luma = replace(
            luma,
            sigma=share * luma.sigma,
            sigma_range=(share * low, share * high),
            established=True,
            correlated=False,
            channel_sigma=tuple(share * sigma for sigma in channels),
        )
        # Colours without white noise, as JPEG leaves them, may still have noise of low frequency.
        if max(luma.channel_sigma) > NOT_WHITE:
            return luma
    elif luma.established:
        return replace(luma, correlated=False)
    if planes[0].size < FEWEST_SHARED or not any(np.ptp(plane) for plane in opponent[1:]):
        return luma
    return replace(luma, correlated=camera_probability(planes) > PROBABLE)


def denoise_gaussian(planes: Planes, levels: Levels, options: Options) -> Planes:
    """Denoise planes whose noise is white, Gaussian and independent between channels.

    The planes may be overwritten, since those of a large image take much of the memory.
    """
    return denoise_stabilised(planes, opponent_stabilisation(planes, levels), options)


def denoise_stabilised(
    planes: Planes, transform: VarianceStabilisation, options: Options
) -> Planes:
    """Denoise planes whose noise a transform makes white; they may be overwritten."""
    # Planes are not assigned to a name, so that they are freed as soon as they are used.
    return transform.inverse(denoise_planes(transform.forward(planes), transform.levels, options))
