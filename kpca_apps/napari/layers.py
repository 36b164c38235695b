"""Denoise planes of an image layer, without napari or Qt; data may be a Dask array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.denoiser import Given, clean_image
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.image import as_stored
from kpca_apps.denoise.options import Options, Window
from kpca_apps.denoise.progress import listening, part

LARGEST = 1024  # longest side of a preview, in pixels


class CancelledError(Exception):
    """The user cancelled the work."""


@dataclass(frozen=True)
class DenoiseRequest:
    """Denoising options for an image layer."""

    options: Options
    sigma: float | None = None  # noise level, or None to estimate it
    stack: bool = False  # whether planes along the axis before the rows are a volume or film


def plane_at(data: Any, step: tuple[int, ...], *, rgb: bool) -> NDArray[Any]:
    """Return the plane (h, w) or (h, w, channels) whose index on the leading axes is `step`."""
    leading = data.ndim - (3 if rgb else 2)
    return np.asarray(data[tuple(step[:leading])])


def visible_window(corners: NDArray[np.integer], size: tuple[int, int]) -> Window:
    """Return the rows and columns between two corners (2, 2), at most LARGEST of each.

    >>> visible_window(np.array([[-5, 0], [90, 4000]]), (80, 3000))
    ((0, 80), (988, 2012))
    """
    window = []
    for low, high, side in zip(corners[0], corners[1], size, strict=True):
        begin, end = max(0, int(low)), min(side, int(high))
        begin, end = (begin, end) if begin < end else (0, side)
        if end - begin > LARGEST:
            begin = (begin + end - LARGEST) // 2
            end = begin + LARGEST
        window.append((begin, end))
    return window[0], window[1]


def preview(
    plane: NDArray[Any], window: Window, request: DenoiseRequest, report: Callable[[float], None]
) -> tuple[NDArray[Any], DenoiseInfo]:
    """Return the part of the denoised plane inside `window`, and the noise estimate.

    `report` is called with the share of work done, and may raise an exception to end the work.
    """
    options = replace(request.options, wanted=window)
    with listening(report):
        given, axis = Given(request.sigma), -1 if plane.ndim == 3 else None
        cleaned = clean_image(plane, options, given, channel_axis=axis)
    (top, bottom), (left, right) = window
    whole = as_stored(cleaned.at(options.strength), plane.dtype)
    return whole[top:bottom, left:right], cleaned.info


def denoise_planes(
    data: Any, request: DenoiseRequest, report: Callable[[float], None], *, rgb: bool
) -> tuple[NDArray[Any], list[DenoiseInfo]]:
    """Denoise all planes; return them in the type of `data`, with noise estimates."""
    n_own = (3 if rgb else 2) + request.stack
    leading, result = data.shape[: data.ndim - n_own], np.empty(data.shape, data.dtype)
    places, infos = list(np.ndindex(*leading)), []
    with listening(report):
        for number, place in enumerate(places):
            piece = np.asarray(data[place])
            with part(number, len(places)):
                cleaned = clean_image(
                    piece,
                    request.options,
                    Given(request.sigma),
                    channel_axis=-1 if rgb else None,
                    stack_axis=0 if request.stack else None,
                )
            result[place] = as_stored(cleaned.at(request.options.strength), data.dtype)
            infos.append(cleaned.info)
            report((number + 1) / len(places))
    return result, infos


def describe_noise(infos: list[DenoiseInfo]) -> str:
    """Return a sentence on the measured noise, and on planes left unchanged."""
    levels = [info.sigma for info in infos]
    kinds = " or ".join(sorted({info.noise for info in infos}))
    low, high = min(levels), max(levels)
    level = f"{low:.4g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.4g} to {high:.4g}"
    sentence = f"Noise: {kinds}, level {level}{' (measured)' if infos[0].estimated else ''}."
    n_left = sum(not info.established for info in infos)
    if n_left:
        which = "It" if len(infos) == 1 else f"{n_left} of {len(infos)} planes"
        sentence += (
            f" {which} may be texture and {'was' if n_left == 1 else 'were'} left unchanged: give "
            "the level if it is noise."
        )
    return sentence
