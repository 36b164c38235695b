"""Choose the kind of an image's noise, unless the user did; of stacks, inspect a few pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from scipy.ndimage import uniform_filter

from kpca_apps.denoise.colour import to_opponent
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.law import (
    PLAIN,
    Lights,
    PageLaws,
    light_of,
    measure_laws,
    rises_far,
    typical_page,
)
from kpca_apps.denoise.estimate.patches import areas_of_one_value
from kpca_apps.denoise.estimate.place import place_map
from kpca_apps.denoise.image import SCALE, Picture, used_range
from kpca_apps.denoise.noise.camera import DRAFT, removes_pattern
from kpca_apps.denoise.noise.gaussian import measure_white
from kpca_apps.denoise.noise.impulse import WITH_IMPULSES, has_impulses
from kpca_apps.denoise.noise.model import Inspected, Measured, Model, Planes
from kpca_apps.denoise.options import NOISE_MODELS, Options
from kpca_apps.denoise.passes.scales import halve
from kpca_apps.denoise.result import SHARED_BLUR, NoiseLaw
from kpca_apps.errors import InputError

MODELS: dict[str, Model] = {
    name: import_module(f"kpca_apps.denoise.noise.{name}") for name in NOISE_MODELS
}

MEASURED_PAGES = 5  # number of pages of a stack in which noise is measured
GOLDEN = (5**0.5 - 1) / 2
# Estimated noise up to this level is barely visible, and may be grain of a clean photograph. The
# level is a share of the smaller of two numbers: the whole range, and twice the range between the
# quantiles TYPICAL, which leave out the stars of a field.
FAINT, TYPICAL = 2.0 / 255.0, (0.1, 0.9)
# Noise is invisible up to this level, which is a share of the range of most values. This limit is
# for noise that follows a fitted law, and so cannot be texture.
FAINT_LAW = 0.7 / 255.0
FARTHEST_BLACK = 1e6 * SCALE  # largest black level at which single precision distinguishes values
# Stands for white noise that is not measured, as neither noise level nor kind depends on it.
NOT_MEASURED = DenoiseInfo("gaussian", 0.0, (0.0,), False, False, SCALE)
# If single pixels stand out from these kinds of noise, the pixels are impulses.
WITHOUT_IMPULSES = ("gaussian", "camera")
# The spacing of values is that of the most frequent ones, which the share COMMON of COUNTED pixels
# have: the others may be edges between areas of two values. In noise, means of 2 x 2 pixels have a
# quarter of the variance of pixels. In a tenth of the windows of a dither (twice WINDOW), they have
# less than CANCELLED times that. Areas of one value are over FLAT of a posterized picture. Chosen
# on BSDS500/test in 2 to 8 levels (500 dithers: 97 % below .6; noise of .2 to .5 steps: from .64).
COMMON, COUNTED, CANCELLED, WINDOW, FLAT = 0.9, 65_536, 0.6, 8, 0.15


def inspect(
    picture: Picture,
    options: Options,
    sigma: Any,
    known_laws: Sequence[NoiseLaw],
    *,
    is_whole: bool = True,
) -> Inspected:
    """Inspect a picture, or a part of one, and choose the kind of its noise.

    Laws are measured unless they or `sigma` are given. White noise is measured only if the level or
    the kind depends on it, as measuring takes longer than a draft of a small image.
    """
    planes, unit = picture.planes(), picture.unit
    pages = [picture.pages_of(planes)[:, page] for page in sampled_pages(picture.n_pages)]
    noise, white = options.noise, NOT_MEASURED
    may_be_camera = noise == "auto" and picture.n_pages == 1 and np.ndim(sigma) == 0
    by_white = sigma is None and (noise == "auto" or NOISE_MODELS[noise].by_white)
    if not known_laws and (by_white or may_be_camera):
        white = _pooled_white([measure_white(page) for page in pages])
    faintest = FAINT * min(SCALE, 2.0 * max(used_range(plane, TYPICAL) for plane in planes))
    if noise == "auto":
        noise = "camera" if may_be_camera and white.correlated else "gaussian"
    impulses = options.noise != "impulse" and any(map(has_impulses, planes))
    laws: list[PageLaws] = []
    lights: Lights | None = None
    if known_laws:
        own = tuple(law.in_units(1 / unit, -picture.lowest * unit) for law in known_laws)
        laws, noise = [PageLaws(own)], "poisson"
        lights = tuple(map(light_of, own))
    elif sigma is None and options.noise in ("auto", "poisson"):
        black = picture.lowest * unit
        laws = _measured_laws(pages, picture.step, white.established, black)
        lights = _light_found(laws, white.established)
    place = None
    may_differ = noise == "gaussian" and sigma is None and picture.n_pages == 1 and is_whole
    # Correlated noise is left to a noise law, since a map of levels describes white noise.
    may_differ &= not lights or max(light.blur for light in lights) < SHARED_BLUR
    if may_differ and (lights or max(white.channel_sigma) > faintest):
        place = place_map(to_opponent(planes)[0])
        # Dividing by a map of waves or texture would not leave noise that is surely white.
        even = None if place is None else measure_white(planes / place)
        if even is not None and even.established and not even.correlated:
            white, laws, lights = even, [], None
        else:
            place = None
    # For colours, keep "camera": it measures the noise spectrum; "poisson" only assumes a blur.
    wanted = noise == "gaussian" or len(planes) == 1
    if options.noise == "auto" and lights and wanted and not (impulses and _at_both_ends(planes)):
        noise = "poisson"
    # Only white noise of a single page, without known laws, is tested for speckle.
    may_be_speckle = options.noise == "auto" and not known_laws and picture.axes.stack is None
    if noise == "poisson" and lights and may_be_speckle and laws[0].log_odds_speckle > PLAIN:
        if not any(law.shared for law in laws[0].laws):
            noise, laws, lights = "speckle", [], None
    # The variance of photon noise depends on light counted from black, not from the lowest value.
    black = picture.lowest * unit if NOISE_MODELS[noise].from_black else 0.0
    if abs(black) > FARTHEST_BLACK:
        raise InputError(
            "values that differ by less than a millionth of their size cannot show noise that "
            f"grows with brightness: use noise='gaussian', not {noise!r}."
        )
    impulses &= noise in WITHOUT_IMPULSES
    return Inspected(noise, impulses, planes, pages, white, laws, lights, black, faintest, place)


def is_pattern(image: Inspected, noise: Measured) -> bool:
    """Whether what was measured as noise is a dither or a regular pattern, as of a screen."""
    planes, model, level = image.pages[0], MODELS[image.noise], max(noise.levels)
    may_have_steps = not NOISE_MODELS[image.noise].relative and FAINT * SCALE < level
    if may_have_steps and all(_is_drawn(plane, level) for plane in planes):
        return True
    even, black = planes if image.place is None else planes / image.place, np.float32(noise.black)
    return removes_pattern(even, lambda x: model.denoise(x + black, noise.known, DRAFT)[0] - black)


def _is_drawn(plane: Planes, level: float) -> bool:
    """Whether a plane has few values, in areas of one value or mixed more evenly than by noise."""
    values, counts = np.unique(plane[:: -(-plane.size // COUNTED)], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    n_common = np.searchsorted(np.cumsum(counts[order]), COMMON * counts.sum()) + 1
    gaps = np.diff(np.sort(values[order[:n_common]]))
    if not gaps.size or gaps.min() < level:
        return False
    even = plane[: len(plane) // 2 * 2, : plane.shape[1] // 2 * 2]
    halves = even, halve(even)
    fine, coarse = (np.square(np.diff(np.diff(one, axis=0), axis=1)) for one in halves)
    fine, coarse = (uniform_filter(one, WINDOW) for one in (halve(fine), 4 * coarse))
    cancelled = (coarse < CANCELLED * fine).mean() > (fine > 0).mean() / 10
    return bool(cancelled or areas_of_one_value(plane).mean() > FLAT)


def sampled_pages(n_pages: int) -> list[int]:
    """Return the indices of the pages of a stack in which noise is measured.

    Spacing by the golden ratio includes both kinds of pages if dark and bright pages alternate.

    >>> sampled_pages(100)
    [0, 23, 47, 61, 85]
    """
    spread = {int(n_pages * (place * GOLDEN % 1)) for place in range(MEASURED_PAGES)}
    return sorted(spread) if n_pages > MEASURED_PAGES else [*range(n_pages)]


def _pooled_white(pages: list[DenoiseInfo]) -> DenoiseInfo:
    """Return the white noise of the only page, or typical white noise of several pages."""
    if len(pages) == 1:
        return pages[0]
    # Leave out pages without any noise, such as black pages, unless no page has noise.
    noisy = [page for page in pages if max(page.channel_sigma) > 0] or pages
    found = [page for page in noisy if page.established]
    middle = sorted(found or noisy, key=lambda page: page.sigma)[(len(found or noisy) - 1) // 2]
    levels = np.array([page.channel_sigma for page in found or noisy])
    channels = [float(np.median(one[one > 0])) if (one > 0).any() else 0.0 for one in levels.T]
    return replace(
        middle,
        channel_sigma=tuple(channels),
        established=2 * len(found) >= len(noisy),
        correlated=2 * sum(page.correlated for page in noisy) > len(noisy),
    )


def _measured_laws(pages: list[Planes], step: float, white: bool, black: float) -> list[PageLaws]:
    """Return the noise laws of the pages; leave out pages whose noise cannot be measured.

    `step` is the spacing of values, `white` whether noise is surely white; -`black` is no light.
    """
    found = []
    for page in pages:
        measured_laws, odds = measure_laws(page, step, is_white=white, black=black)
        laws = tuple(law for law in measured_laws if law is not None)
        measured = [law for law in laws if not law.is_of_nothing]
        if not measured or len(laws) < len(page):
            continue
        certain = all(law.established for law in measured)
        # Noise must be visible, and stronger than rounding. If the gain is one step, values are
        # counts, whose noise is not rounding even below half a step.
        certain &= any(
            law.variance(float(plane.mean()))
            > max(FAINT_LAW * used_range(plane), step / 2 if law.gain != step else 0.0) ** 2
            for law, plane in zip(laws, page, strict=True)
        )
        found.append(PageLaws(laws, certain, any(map(rises_far, measured)), odds))
    return found


def _light_found(pages: list[PageLaws], white: bool) -> Lights | None:
    """Return the noise's typical `Light` parameters if most pages certainly have photon noise."""
    found = [page for page in pages if page.certain and (page.rises_far or not white)]
    is_typical = bool(found) and 2 * len(found) >= len(pages)
    return tuple(map(light_of, typical_page(found))) if is_typical else None


def _at_both_ends(planes: Planes) -> bool:
    """Whether many pixels have the least and the largest value, as with salt and pepper.

    Single photons stand out like impulses, but do not have the extreme values.
    """
    ends = [[np.mean(plane == end) for end in (plane.min(), plane.max())] for plane in planes]
    return bool((np.min(ends, axis=1) > WITH_IMPULSES / 2).any())


def typical_laws(pages: Sequence[PageLaws], picture: Picture) -> tuple[NoiseLaw, ...]:
    """Return the typical law of each channel, in the units of the image."""
    if not pages:
        return ()
    typical = typical_page([page for page in pages if page.certain] or pages)
    return tuple(law.in_units(picture.unit, picture.lowest) for law in typical)
