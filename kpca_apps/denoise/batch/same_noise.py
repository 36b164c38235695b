"""One noise for all images of a batch that are of one kind: measured on each, and pooled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kpca_apps.denoise.batch.denoisers import GroupDenoiser, SameNoise
from kpca_apps.denoise.batch.inputs import Planned, colours_of
from kpca_apps.denoise.batch.work import kind_of
from kpca_apps.denoise.noise.law import NoiseLaw
from kpca_apps.denoise.noise.model import DenoiseInfo
from kpca_apps.errors import KpcaError
from kpca_apps.images.front_door import read_image
from kpca_apps.system.workers import Workers


@dataclass(frozen=True)
class Measured:
    """The noise of one image."""

    kind: str
    info: DenoiseInfo


def with_same_noise(
    planned: Iterable[Planned], denoiser: GroupDenoiser, jobs: int
) -> GroupDenoiser:
    """Return a denoiser that takes the noise of images of one kind for the same."""
    unchanged = replace(denoiser, options=replace(denoiser.options, strength=0.0))
    sources = [one.source for one in planned if not one.refused]
    with Workers("serial" if jobs == 1 else "processes", n_workers=jobs) as workers:
        found = list(workers.map_partitions(measure, sources, unchanged))
    return replace(denoiser, same=pooled([one for one in found if one is not None]))


def measure(source: Path, denoiser: GroupDenoiser) -> Measured | None:
    """Measure the noise of a file's first page; None where it cannot be read, or is raw."""
    try:
        image = read_image(source, label=source.name)
        if image.mosaic is not None:
            return None
        pixels = colours_of(image.page(0))
        info = denoiser.clean(pixels, -1 if pixels.ndim == 3 else None).info
    except KpcaError:
        return None  # The batch says why.
    return Measured(kind_of(image), info)


def pooled(found: Iterable[Measured]) -> tuple[SameNoise, ...]:
    """Return the noise of each kind: that of most images in which it is there for sure.

    Gain and constant of a law, or levels of white noise, are medians over those. Noise of a camera
    differs with what the camera did to each image, and is not pooled.
    """
    kinds: dict[str, list[DenoiseInfo]] = defaultdict(list)
    for one in found:
        if one.info.established and one.info.sigma:
            kinds[one.kind].append(one.info)
    same = []
    for kind, infos in sorted(kinds.items()):
        noise = Counter(info.noise for info in infos).most_common(1)[0][0]
        alike = [info for info in infos if info.noise == noise]
        if noise == "gaussian":
            levels = np.median([info.channel_sigma for info in alike], axis=0)
            same.append(SameNoise(kind, sigma=tuple(levels.tolist())))
        laws = [info.laws for info in alike if len(info.laws) == len(info.channel_sigma)]
        if noise == "poisson" and laws:
            same.append(SameNoise(kind, laws=tuple(map(typical_law, zip(*laws, strict=True)))))
    return tuple(same)


def typical_law(laws: Sequence[NoiseLaw]) -> NoiseLaw:
    """Return the median of laws, with what was seen where it is nearest to that."""
    terms = np.array([(law.gain, law.constant, law.blur) for law in laws])
    gain, constant, blur = np.median(terms, axis=0).tolist()
    nearest = laws[int(np.abs(terms[:, 0] - gain).argmin())]
    return replace(nearest, gain=gain, constant=constant, blur=blur)
