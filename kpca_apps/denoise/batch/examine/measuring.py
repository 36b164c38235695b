"""Measure the noise of an image file, or the common noise of all images of a kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.examine.evidence import evidence_of, kept_law
from kpca_apps.denoise.batch.inputs import Planned, named_reason
from kpca_apps.denoise.batch.pages import data_of, kind_of, read_mask
from kpca_apps.denoise.batch.profile import KindNoise
from kpca_apps.denoise.denoiser import measure_noise
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.law import typical_law
from kpca_apps.denoise.image import colours_of
from kpca_apps.denoise.masks import both
from kpca_apps.denoise.mosaic import measure_mosaic
from kpca_apps.denoise.result import MeasuredFile
from kpca_apps.errors import KpcaError
from kpca_apps.images.files import check_object, read_image
from kpca_apps.system.stores.addresses import AnyPath
from kpca_apps.system.stores.buckets import here
from kpca_apps.system.workers import Workers


@dataclass(frozen=True)
class KnownNoise:
    """Kind and noise of an image, for a profile."""

    kind: str
    info: DenoiseInfo
    curves: NDArray[np.float64] | None = None  # a and b of a raw file's noise variance a x + b


def measure_file(
    path: AnyPath, name: str, *, data_range: float | None = None
) -> tuple[MeasuredFile, KnownNoise | None]:
    """Return the noise of an image file for display, and for a profile."""
    curves = None
    try:
        check_object(path, name)
        with here(path) as copy:
            image = read_image(copy, label=name)
            if image.mosaic is not None:
                # Measure in sensor counts, where noise is independent between pixels.
                raw = image.mosaic()
                info, curves = measure_mosaic(raw.light, raw.pattern, raw.white, raw.noise)
            else:
                pixels = image.page(0)
                colours, data = colours_of(pixels), data_of(pixels)
                axis = -1 if colours.ndim == 3 else None
                info = measure_noise(colours, data_range=data_range, channel_axis=axis, mask=data)
    except KpcaError as error:
        return MeasuredFile(name, reason=named_reason(name, str(error))), None
    shown = MeasuredFile(
        name,
        shape=image.pages[0].shape,
        dtype=str(image.pages[0].dtype),
        noise=info.noise,
        sigma=info.sigma,
        channel_sigma=info.channel_sigma,
        data_range=info.data_range,
        correlated=info.correlated,
        established=info.established,
        impulses=info.impulses,
        evidence=evidence_of(info),
    )
    return shown, KnownNoise(kind_of(image), info, curves)


def with_same_noise(
    planned: Iterable[Planned], denoiser: GroupDenoiser, jobs: int
) -> GroupDenoiser:
    """Return a denoiser that uses the same noise for all images of a kind."""
    unchanged = replace(denoiser, options=replace(denoiser.options, strength=0.0))
    sources = [one.source for one in planned if not one.refused]
    with Workers("serial" if jobs == 1 else "processes", n_workers=jobs) as workers:
        found = list(workers.map_partitions(measure, sources, unchanged))
    return replace(denoiser, same=pooled(one for one in found if one is not None))


def measure(source: AnyPath, denoiser: GroupDenoiser) -> KnownNoise | None:
    """Return kind and noise of a file's first page; None if it is raw or cannot be read."""
    try:
        with here(source) as path:
            image = read_image(path, label=source.name)
            if image.mosaic is not None:
                return None
            pixels = image.page(0)
        data = both(data_of(pixels), read_mask(denoiser.mask, image)[0])
        return KnownNoise(kind_of(image), denoiser.clean(colours_of(pixels), mask=data).info)
    except KpcaError:
        return None  # the batch reports the reason


def pooled(found: Iterable[KnownNoise]) -> tuple[KindNoise, ...]:
    """Return the typical noise of each kind of image, by the commonest noise model of the kind.

    Gain and constant of a law, levels of white noise, and curves of raw files are medians over the
    images with this model. Noise of a camera depends on its processing of each image, and is not
    pooled; neither is speckle.
    """
    kinds: dict[str, list[KnownNoise]] = defaultdict(list)
    for one in found:
        if one.info.established and one.info.sigma:
            kinds[one.kind].append(one)
    same = []
    for kind, known in sorted(kinds.items()):
        noise = Counter(one.info.noise for one in known).most_common(1)[0][0]
        alike = [one.info for one in known if one.info.noise == noise]
        curves = [one.curves for one in known if one.curves is not None]
        if noise == "gaussian":
            levels = np.median([info.channel_sigma for info in alike], axis=0)
            same.append(KindNoise(kind, len(alike), sigma=tuple(levels.tolist())))
        laws = [info.laws for info in alike if len(info.laws) == len(info.channel_sigma)]
        if noise == "poisson" and laws:
            typical = tuple(kept_law(typical_law(own)) for own in zip(*laws, strict=True))
            same.append(KindNoise(kind, len(laws), laws=typical))
        if noise == "raw" and curves:
            own = [(a, b) for a, b in np.median(curves, axis=0).tolist()]
            same.append(KindNoise(kind, len(curves), curves=tuple(own)))
    return tuple(same)
