"""White Gaussian noise, of a level of its own in each channel, perhaps cut off at black and white.

That of colours goes through opponent planes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kpca_apps.denoise.colour import (
    extreme_pixels,
    from_opponent,
    noise_in_opponent,
    to_opponent,
)
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.law import typical_page
from kpca_apps.denoise.estimate.level import estimate_noise
from kpca_apps.denoise.noise.camera import camera_probability
from kpca_apps.denoise.noise.clipping import find_clipping
from kpca_apps.denoise.noise.model import Levels, Measured, Planes, Seen
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
    is_seen = strongest > seen.faintest or any(page.seen for page in seen.laws)
    established = seen.white.established and (strongest == 0 or is_seen)
    return Measured(levels, levels, established, interval=seen.white.sigma_range or (0.0, 0.0))


def denoise(planes: Planes, level: float | Levels, options: Options) -> tuple[Planes, Levels]:
    """Denoise planes whose white noise may have been cut off at the ends of their range."""
    levels = level if isinstance(level, tuple) else (float(level),) * len(planes)
    clippings = [find_clipping(p, one) for p, one in zip(planes, levels, strict=True)]
    for plane, clipping in zip(planes, clippings, strict=True):
        if clipping is not None:
            plane[...] = clipping.stabilise(plane)
    cleaned = denoise_gaussian(planes, levels, options)
    for plane, clipping in zip(cleaned, clippings, strict=True):
        if clipping is not None:
            plane[...] = clipping.restore(plane)
    return cleaned, levels


def _before_clipping(seen: Seen) -> Levels | None:
    """Return the deviation in each channel of white noise, were it not cut off in the dark."""
    laws = [law for page in seen.laws for law in page.laws]
    if not laws or not all(law.established and law.clipped and not law.rises_far for law in laws):
        return None
    typical = typical_page(seen.laws)
    return tuple(float(np.sqrt(law.variance(law.brightness.mean()))) for law in typical)


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
    deviations = np.asarray(levels, np.float64)
    if len(planes) == 1:
        return denoise_planes(planes, deviations, options)
    flat, values = np.ptp(planes, axis=(1, 2)) == 0, planes[:, :1, :1].copy()
    opponent = to_opponent(planes, in_place=True)
    cleaned = denoise_planes(opponent, noise_in_opponent(deviations), options)
    cleaned = from_opponent(cleaned, in_place=True)
    # What noise is left in the others spreads to a channel of one value, an empty one perhaps.
    cleaned[flat] = values[flat]
    return cleaned
