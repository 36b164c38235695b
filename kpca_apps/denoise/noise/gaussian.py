"""White Gaussian noise, of a level of its own in each channel, perhaps cut off at black and white.

That of colours goes through opponent planes.
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
from kpca_apps.denoise.noise.model import Levels, Measured, Planes, Seen, VarianceStabilisation
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes.planes import denoise_planes

# Noise that channels do not share is in one of the colour planes at least as strong as in
# luminance, whatever its level in each; far below, it has been smoothed (JPEG halves the resolution
# of colours) or is the same in all channels. Texture makes luminance look noisier: hence so low.
INDEPENDENT = 0.25
# Noise that is the same in three channels is stronger in luminance by the root of 3. Clean
# photographs have a grain of 2 of 255.
ALL_ALIKE = 2.0 * 3**0.5
NOT_WHITE = 1.0  # of 255: white noise below, in all channels, is none
# As likely as not. Above are 3 of 65 clean photographs (BSDS500, means of PolyU) and 35 of 40 noisy
# ones, of those that the constants were not fitted to; at .7, 1 and 33.
PROBABLE = 0.5
FEWEST_SHARED = 100 * 100  # pixels: all of a smaller image may be one texture


def measure(seen: Seen) -> Measured:
    """Measure the level in each channel; too faint or too like texture, it is not established."""
    levels = _before_clipping(seen) or seen.white.channel_sigma
    strongest = max(levels)
    is_white = seen.white.established and (strongest == 0 or strongest > seen.faintest)
    established = is_white or any(page.seen for page in seen.laws)
    return Measured(levels, levels, established, interval=seen.white.sigma_range or (0.0, 0.0))


def denoise(planes: Planes, level: float | Levels, options: Options) -> tuple[Planes, Levels]:
    """Denoise planes whose white noise may have been cut off at the ends of their range."""
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
    """Return a transform that makes noise white in each channel, with opponent planes after it.

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
        # What noise is left in the others spreads to a channel of one value, an empty one perhaps.
        channels[flat] = values[flat]
        return inverse(channels)

    return VarianceStabilisation(to_planes, to_channels, noise_in_opponent(deviations))


def _before_clipping(seen: Seen) -> Levels | None:
    """Return the deviation in each channel of white noise, were it not cut off in the dark."""
    laws = [law for page in seen.laws for law in page.laws]
    if not laws or not all(law.established and law.clipped and not rises_far(law) for law in laws):
        return None
    typical = typical_page(seen.laws)
    return tuple(law.variance(law.middle) ** 0.5 for law in typical)


def measure_white(planes: Planes) -> DenoiseInfo:
    """Measure white noise in grey planes, or in red, green and blue together.

    The level is that of the grey plane or the luminance, `channel_sigma` that in each channel.
    """
    if len(planes) == 1:
        return estimate_noise(planes[0])
    # Texture is much the same in all channels and hardly there in their differences, where white
    # noise of each channel on its own is: the colours distinguish the two where grey cannot.
    channels = tuple(estimate_noise(plane).sigma for plane in planes)
    opponent = to_opponent(planes)
    extreme = extreme_pixels(planes)
    look, *colours = (estimate_noise(plane, extreme=extreme) for plane in opponent)
    look = replace(look, channel_sigma=channels)
    strongest = max(colour.sigma for colour in colours)
    if look.established and look.sigma > ALL_ALIKE and strongest < INDEPENDENT * look.sigma:
        return replace(look, correlated=True)
    # Clipping takes some of the noise of the colours: then they say nothing of luminance's.
    if look.established and any(colour.clipped for colour in colours):
        return replace(look, correlated=False)
    if any(c.established and c.sigma > 0 for c in colours) and min(channels) > 0:
        implied = noise_in_opponent(np.asarray(channels))[1:]
        found = np.sqrt(sum(colour.sigma**2 for colour in colours))
        share = min(1.0, float(found / max(np.sqrt(np.sum(np.square(implied))), found)))
        low, high = look.sigma_range or (0.0, 0.0)
        look = replace(
            look,
            sigma=share * look.sigma,
            sigma_range=(share * low, share * high),
            established=True,
            correlated=False,
            channel_sigma=tuple(share * sigma for sigma in channels),
        )
        # Colours without white noise, as JPEG leaves them, may still have some of low frequency.
        if max(look.channel_sigma) > NOT_WHITE:
            return look
    elif look.established:
        return replace(look, correlated=False)
    if planes[0].size < FEWEST_SHARED or not any(np.ptp(plane) for plane in opponent[1:]):
        return look
    return replace(look, correlated=camera_probability(planes) > PROBABLE)


def denoise_gaussian(planes: Planes, levels: Levels, options: Options) -> Planes:
    """Denoise planes whose noise is white, Gaussian and independent between channels.

    They may be overwritten, for of a large image they take much of the memory.
    """
    return denoise_stabilised(planes, opponent_stabilisation(planes, levels), options)


def denoise_stabilised(
    planes: Planes, transform: VarianceStabilisation, options: Options
) -> Planes:
    """Denoise planes whose noise a transform makes white; they may be overwritten."""
    # No name for what lies between: it is freed as soon as it is used.
    return transform.inverse(denoise_planes(transform.forward(planes), transform.levels, options))
