"""Planes of an image layer denoised: the part that is seen, or all of them, one after the other.

Nothing here knows of napari or Qt: a layer is its data, which may be a Dask array or the like.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.denoiser import clean_image
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.image import as_stored
from kpca_apps.denoise.options import Options, Window
from kpca_apps.denoise.progress import listening, part

LARGEST = 1024  # pixels a side of a part that is denoised to be looked at


class CancelledError(Exception):
    """Whoever asked for the work does not want it any more."""


@dataclass(frozen=True)
class Asked:
    """What is asked for of an image."""

    options: Options
    sigma: float | None = None  # None to have it measured
    stack: bool = False  # whether the planes along the axis before rows are one volume or film


def plane_at(data: Any, step: tuple[int, ...], *, rgb: bool) -> NDArray[Any]:
    """Return the plane (h, w) or (h, w, channels) at a step of the axes before its rows."""
    leading = data.ndim - (3 if rgb else 2)
    return np.asarray(data[tuple(step[:leading])])


def seen_window(corners: NDArray[np.integer], size: tuple[int, int]) -> Window:
    """Return the rows and columns between two corners (2, 2), no more than may be asked for.

    >>> seen_window(np.array([[-5, 0], [90, 4000]]), (80, 3000))
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
    plane: NDArray[Any], window: Window, asked: Asked, heard: Callable[[float], None]
) -> tuple[NDArray[Any], DenoiseInfo]:
    """Return a part of a plane as it is in the plane denoised as a whole, and the noise found.

    `heard` is called with the share that is done; what it raises ends the work.
    """
    options = replace(asked.options, wanted=window)
    with listening(heard):
        cleaned = clean_image(
            plane, options, sigma=asked.sigma, channel_axis=-1 if plane.ndim == 3 else None
        )
    (top, bottom), (left, right) = window
    whole = as_stored(cleaned.at(options.strength), plane.dtype)
    return whole[top:bottom, left:right], cleaned.info


def denoised(
    data: Any, asked: Asked, heard: Callable[[float], None], *, rgb: bool
) -> tuple[NDArray[Any], list[DenoiseInfo]]:
    """Return all planes denoised, in the type of the data, and the noise found in each.

    Those of a stack are denoised together. `heard` is as for `preview`.
    """
    own = (3 if rgb else 2) + asked.stack
    leading, result = data.shape[: data.ndim - own], np.empty(data.shape, data.dtype)
    places, infos = list(np.ndindex(*leading)), []
    with listening(heard):
        for number, place in enumerate(places):
            piece = np.asarray(data[place])
            with part(number, len(places)):
                cleaned = clean_image(
                    piece,
                    asked.options,
                    sigma=asked.sigma,
                    channel_axis=-1 if rgb else None,
                    stack_axis=0 if asked.stack else None,
                )
            result[place] = as_stored(cleaned.at(asked.options.strength), data.dtype)
            infos.append(cleaned.info)
            heard((number + 1) / len(places))
    return result, infos


def found(infos: list[DenoiseInfo]) -> str:
    """Say what noise was found, and what was done about it."""
    levels = [info.sigma for info in infos]
    kinds = " or ".join(sorted({info.noise for info in infos}))
    low, high = min(levels), max(levels)
    level = f"{low:.4g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.4g} to {high:.4g}"
    said = f"Noise: {kinds}, level {level}{' (measured)' if infos[0].estimated else ''}."
    n_left = sum(not info.established for info in infos)
    if n_left:
        which = "It" if len(infos) == 1 else f"{n_left} of {len(infos)} planes"
        said += (
            f" {which} may be texture and {'was' if n_left == 1 else 'were'} left as found: give "
            "the level if it is noise."
        )
    return said
