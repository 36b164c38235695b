"""Which kind of noise an image has, where that is not given: the rules, and what they look at.

The noise of a stack is that of a few of its pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from kpca_apps.denoise.estimate.place import place_map
from kpca_apps.denoise.image import SCALE, Picture, used_range
from kpca_apps.denoise.noise.gaussian import measure_white
from kpca_apps.denoise.noise.impulse import WITH_IMPULSES, has_impulses
from kpca_apps.denoise.noise.model import Model, Planes, Seen
from kpca_apps.denoise.options import NOISE_MODELS, Options
from kpca_apps.denoise.result import SHARED_BLUR, NoiseLaw
from kpca_apps.errors import InputError

# A model is the file of its name.
MODELS: dict[str, Model] = {
    name: import_module(f"kpca_apps.denoise.noise.{name}") for name in NOISE_MODELS
}

MEASURED_PAGES = 5  # of a stack
GOLDEN = (5**0.5 - 1) / 2
# Of twice the range that most of an image uses: estimated noise below is hardly seen, and the grain
# of clean photographs is as strong.
FAINT = 2.0 / 255.0
# Noise that follows a law is noise for sure: of that range it may be weaker.
FAINT_LAW = 0.7 / 255.0
# Single precision tells planes from black on apart up to here.
FARTHEST_BLACK = 1e6 * SCALE
# What is seen of white noise where neither level nor kind depend on it.
NOT_MEASURED = DenoiseInfo("gaussian", 0.0, (0.0,), False, False, 1.0, SCALE)
# Which impulses would be taken for.
WITHOUT_IMPULSES = ("gaussian", "camera")


def look(
    picture: Picture,
    options: Options,
    sigma: Any,
    known_laws: Sequence[NoiseLaw],
    *,
    is_whole: bool = True,
) -> Seen:
    """Return what is seen of a picture, which may be a part of one, and the kind of its noise.

    The laws are measured where neither they nor `sigma` are given, and white noise where level or
    kind depend on it: that takes longer than a draft of a small image.
    """
    planes, unit = picture.planes(), picture.unit
    pages = [picture.pages_of(planes)[:, page] for page in sampled_pages(picture.n_pages)]
    noise, white = options.noise, NOT_MEASURED
    may_be_camera = noise == "auto" and picture.n_pages == 1 and np.ndim(sigma) == 0
    by_white = sigma is None and (noise == "auto" or NOISE_MODELS[noise].by_white)
    if not known_laws and (by_white or may_be_camera):
        white = _pooled_white([measure_white(page) for page in pages])
    faintest = FAINT * min(SCALE, 2.0 * max(map(used_range, planes)))
    if noise == "auto":
        noise = "camera" if may_be_camera and white.correlated else "gaussian"
    impulses = options.noise != "impulse" and any(map(has_impulses, planes))
    laws: list[PageLaws] = []
    lights: Lights | None = None
    if known_laws:
        own = tuple(law.in_units(1 / unit, -picture.lowest * unit) for law in known_laws)
        laws, noise = [PageLaws(own)], "poisson"
        lights = _lights_of(laws)
    elif sigma is None and options.noise in ("auto", "poisson"):
        black = picture.lowest * unit
        laws = _measured_laws(pages, picture.step, white.established, black)
        lights = _light_found(laws, white.established)
    place = None
    may_differ = noise == "gaussian" and sigma is None and picture.n_pages == 1 and is_whole
    # What neighbours share is left to a law, for a map is of white noise.
    may_differ &= not lights or max(light.blur for light in lights) < SHARED_BLUR
    if may_differ and (lights or max(white.channel_sigma) > faintest):
        place = place_map(to_opponent(planes)[0])
        if place is not None:
            white, laws, lights = measure_white(planes / place), [], None
    # Of colours a camera's noise may be of other spectra than a blur leaves.
    wanted = noise == "gaussian" or len(planes) == 1
    if options.noise == "auto" and lights and wanted and not (impulses and _at_both_ends(planes)):
        noise = "poisson"
    # For a stack, and for noise that is known, there is no speckle.
    may_be_speckle = options.noise == "auto" and not known_laws and picture.axes.stack is None
    if noise == "poisson" and lights and may_be_speckle and _is_speckle(laws[0]):
        noise, laws, lights = "speckle", [], None
    # Noise of light counts from no light, which need not be the lowest value.
    black = picture.lowest * unit if NOISE_MODELS[noise].from_black else 0.0
    if abs(black) > FARTHEST_BLACK:
        raise InputError(
            "values that differ by less than a millionth of their size cannot show noise that "
            f"grows with brightness: use noise='gaussian', not {noise!r}."
        )
    impulses &= noise in WITHOUT_IMPULSES
    is_asked = options.noise == noise
    return Seen(
        noise, is_asked, impulses, planes, pages, white, laws, lights, black, faintest, place
    )


def sampled_pages(n_pages: int) -> list[int]:
    """Return the pages of a stack in which its noise is measured.

    They are spread by the golden ratio: pages that are dark or bright in turns are all met.

    >>> sampled_pages(100)
    [0, 23, 47, 61, 85]
    """
    spread = {int(n_pages * (place * GOLDEN % 1)) for place in range(MEASURED_PAGES)}
    return sorted(spread) if n_pages > MEASURED_PAGES else [*range(n_pages)]


def _pooled_white(pages: list[DenoiseInfo]) -> DenoiseInfo:
    """Return what was measured in an image, or what is typical of pages of a stack."""
    if len(pages) == 1:
        return pages[0]
    # Black pages, those of a shutter perhaps, have no noise for sure.
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
    """Return the laws of pages that have noise, and of which enough is to be seen.

    `step` is that of the values, of which no light is at -`black`. Where noise that is `white` is
    there for sure, a law that rises plainly is sure, too.
    """
    found = []
    for page in pages:
        measured_laws, odds = measure_laws(page, step, is_white=white, black=black)
        laws = tuple(law for law in measured_laws if law is not None)
        measured = [law for law in laws if not law.is_of_nothing]
        if not measured or len(laws) < len(page):
            continue
        sure = [law.established or (white and rises_far(law)) for law in measured]
        seen = all(sure) and any(_shows(law, p, step) for law, p in zip(laws, page, strict=True))
        found.append(PageLaws(laws, seen, any(map(rises_far, measured)), odds))
    return found


def _light_found(pages: list[PageLaws], white: bool) -> Lights | None:
    """Return the light that makes the noise, where most pages show it.

    Beside noise that is `white` for sure, texture is taken for a law: it must rise plainly.
    """
    found = [page for page in pages if page.seen and (page.rises_far or not white)]
    return _lights_of(found) if found and 2 * len(found) >= len(pages) else None


def _is_speckle(page: PageLaws) -> bool:
    """Whether the deviation of noise that neighbours do not share is a share of the brightness.

    What neighbours share is left to a law: the denoiser of speckle takes its noise for white.
    """
    return page.log_odds_speckle > PLAIN and not any(law.shared for law in page.laws)


def _lights_of(pages: list[PageLaws]) -> Lights:
    """Return the light that makes the noise of each channel, typical of pages."""
    return tuple(map(light_of, typical_page(pages)))


def _at_both_ends(planes: Planes) -> bool:
    """Whether many pixels are at the least and the largest value, as salt and pepper are.

    Single photons stand out as impulses do, but are at none.
    """
    ends = [[np.mean(plane == end) for end in (plane.min(), plane.max())] for plane in planes]
    return bool((np.min(ends, axis=1) > WITH_IMPULSES / 2).any())


def _shows(law: NoiseLaw, plane: NDArray[np.float32], step: float) -> bool:
    """Whether noise is strong enough to be seen in the range that a plane uses, and no rounding."""
    # What follows the law of counts is not of rounding.
    least = max(FAINT_LAW * used_range(plane), step / 2 if law.gain != step else 0.0)
    return bool(law.variance(float(plane.mean())) > least**2)


def typical_laws(pages: Sequence[PageLaws], picture: Picture) -> tuple[NoiseLaw, ...]:
    """Return the law of each channel, in the units of the image."""
    if not pages:
        return ()
    typical = typical_page([page for page in pages if page.seen] or pages)
    return tuple(law.in_units(picture.unit, picture.lowest) for law in typical)
