"""White Gaussian noise, perhaps clipped at black and white, with a level for each channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from kpca_apps.denoise.colour import extreme_pixels, from_opponent, noise_in_opponent, to_opponent
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.law import rises_far, typical_page
from kpca_apps.denoise.estimate.level import PLENTY, estimate_noise
from kpca_apps.denoise.noise.camera import camera_probability, has_dark_tail
from kpca_apps.denoise.noise.clipping import Lookup, find_clipping
from kpca_apps.denoise.noise.model import Inspected, Levels, Measured, Planes, VarianceStabilisation
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes.planes import denoise_planes

# If the noise of both colour planes is below this share of the noise of luminance, the channels
# share noise, or JPEG smoothed it. Independent noise is as strong in colours as in luminance. The
# limit is low, as texture raises the level measured in luminance.
INDEPENDENT = 0.25
# All channels may share one noise if the noise level of luminance, (R + G + B) / sqrt(3), is higher
# than this (scale 0..255). Faint grain of level 2 in R, G and B has this level if shared.
ALL_ALIKE = 2.0 * 3**0.5
NOT_WHITE = 1.0  # noise level, of 255: if all channels are below, there is no white noise
# Minimum probability of camera noise. Measured on photographs not used to fit the constants: of 65
# clean ones (of BSDS500, and averages of shots of PolyU), 3 are above .5, and 1 is above .7. Of 40
# noisy ones, 35 are above .5, and 33 are above .7. In grey, of 100 clean ones (BSDS500, val), 1 is
# above .5; of 80 noisy ones of PolyU, 65 are above .5, and 66 are above .4.
PROBABLE = 0.5
# Minimum number of pixels in which noise shared by neighbours is sought, for a grey image and for a
# colour image. Fewer pixels may show a single texture.
FEWEST_SHARED = (192 * 192, 100 * 100)


def measure(image: Inspected) -> Measured:
    """Measure each channel's level; noise is certain unless too faint or perhaps texture."""
    levels = _before_clipping(image) or image.white.channel_sigma
    strongest = max(levels)
    is_white = image.white.established and (strongest == 0 or strongest > image.faintest)
    established = is_white or any(page.certain for page in image.laws)
    return Measured(levels, levels, established, interval=image.white.sigma_range or (0.0, 0.0))


def denoise(planes: Planes, level: float | Levels, options: Options) -> tuple[Planes, Levels]:
    """Denoise planes whose white noise may have been clipped at the ends of the range."""
    levels = level if isinstance(level, tuple) else (float(level),) * len(planes)
    clippings = [find_clipping(*one) or (None, None) for one in zip(planes, levels, strict=True)]
    forward, inverse = zip(*clippings, strict=True)

    def mapped(lookups: Sequence[Lookup | None], planes: Planes) -> Planes:
        for plane, look_up in zip(planes, lookups, strict=True):
            if look_up is not None:
                plane[...] = look_up(plane)
        return planes

    both = partial(mapped, forward), partial(mapped, inverse)
    transform = opponent_stabilisation(planes, levels, *both)
    return denoise_stabilised(planes, transform, options), levels


def opponent_stabilisation(
    given: Planes,
    levels: Sequence[float],
    forward: Callable[[Planes], Planes] = lambda planes: planes,
    inverse: Callable[[Planes], Planes] = lambda planes: planes,
) -> VarianceStabilisation:
    """Return the transform from channels, with white noise of `levels`, to opponent planes."""
    deviations = np.asarray(levels, np.float64)
    if len(deviations) == 1:
        return VarianceStabilisation(forward, inverse, deviations)
    values = forward(given.min(axis=(1, 2), keepdims=True))
    flat = np.ptp(given, axis=(1, 2)) == 0

    def to_planes(channels: Planes) -> Planes:
        return to_opponent(forward(channels), in_place=True)

    def to_channels(planes: Planes) -> Planes:
        channels = from_opponent(planes, in_place=True)
        # If a channel was constant, restore its value: noise of other channels has spread to it.
        channels[flat] = values[flat]
        return inverse(channels)

    return VarianceStabilisation(to_planes, to_channels, noise_in_opponent(deviations))


def _before_clipping(image: Inspected) -> Levels | None:
    """Return each channel's level of white noise, before clipping in the dark weakened it."""
    laws = [law for page in image.laws for law in page.laws]
    if not laws or not all(law.established and law.clipped and not rises_far(law) for law in laws):
        return None
    return tuple(law.variance(law.middle) ** 0.5 for law in typical_page(image.laws))


def measure_white(planes: Planes) -> DenoiseInfo:
    """Measure white noise in a grey plane, or in red, green and blue together.

    `sigma` is the level in grey or luminance, `channel_sigma` the level in each channel.
    """
    if len(planes) == 1:
        grey = estimate_noise(planes[0])
        is_shared = planes.size >= FEWEST_SHARED[0] and (
            has_dark_tail(planes)
            or (not grey.established and camera_probability(planes) > PROBABLE)
        )
        return replace(grey, correlated=is_shared)
    # Texture is similar in all channels and almost absent from channel differences; independent
    # white noise is not. So colours distinguish texture from noise where a grey image cannot.
    # Share the patches among channels and opponent planes: on 24 photographs of BSDS500/train with
    # noise of 3 to 25, steps of 4 to 7 pixels between patches give the same error and interval.
    few = PLENTY // (2 * len(planes))
    channels = tuple(estimate_noise(plane, enough=few).sigma for plane in planes)
    opponent = to_opponent(planes)
    extreme = extreme_pixels(planes)
    luma, *colours = (estimate_noise(plane, extreme=extreme, enough=few) for plane in opponent)
    luma = replace(luma, channel_sigma=channels)
    strongest = max(colour.sigma for colour in colours)
    if luma.established and luma.sigma > ALL_ALIKE and strongest < INDEPENDENT * luma.sigma:
        return replace(luma, correlated=True)
    # Clipped colours have lost noise, so the noise of luminance may well be stronger than theirs.
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
        # Below NOT_WHITE, JPEG may have removed white noise and left noise of low frequency.
        if max(luma.channel_sigma) > NOT_WHITE:
            return luma
    elif luma.established:
        return replace(luma, correlated=False)
    if not any(np.ptp(plane) for plane in opponent[1:]):
        return replace(luma, correlated=measure_white(planes[:1]).correlated)
    may_share = planes[0].size >= FEWEST_SHARED[1]
    return replace(luma, correlated=may_share and camera_probability(planes) > PROBABLE)


def denoise_gaussian(planes: Planes, levels: Levels, options: Options) -> Planes:
    """Denoise planes with independent white Gaussian noise; the planes may be overwritten."""
    return denoise_stabilised(planes, opponent_stabilisation(planes, levels), options)


def denoise_stabilised(
    planes: Planes, transform: VarianceStabilisation, options: Options
) -> Planes:
    """Denoise planes whose noise a transform makes white; the planes may be overwritten."""
    # Intermediate planes get no variables, so that each is freed once the next step has used it.
    return transform.inverse(denoise_planes(transform.forward(planes), transform.levels, options))
