"""A crop of an image denoised at three strengths, to choose by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.denoiser import DenoiseInfo, measure_noise
from kpca_apps.denoise.modes import LocalMode
from kpca_apps.denoise.previews import make_previews, turned
from kpca_apps.denoise.result import Trial, TrialResult
from kpca_apps.denoise.settings import Settings
from kpca_apps.denoise.work import as_stored, colours_of
from kpca_apps.files.images_types import ImageFile

__all__ = ["strengths_of", "try_strengths"]

CROP, HALO = 384, 64
WEAKER, STRONGER = 0.6, 1.3
"""A weaker result keeps a share of the grain: with a lower noise level, noise would stand out in
blotches where it passes for detail. A stronger one takes the noise to be stronger than it is."""


def try_strengths(image: ImageFile, mode: LocalMode) -> TrialResult:
    """Denoise the most detailed piece of an image at three strengths.

    Parameters
    ----------
    image : ImageFile
        Of which the first page is tried, turned as it is viewed.
    mode : LocalMode
        How it would be denoised: the middle one of the three.

    Returns
    -------
    TrialResult
        Without command and versions. The piece is denoised with a margin around it, and white
        noise is measured on the whole image, so that it looks as it will in the whole; camera
        noise is measured on the piece and its margin.

    Raises
    ------
    InputError
        If the image cannot be denoised.
    """
    pixels = turned(colours_of(image.page(0)), image.metadata.orientation)
    look = _look(mode, pixels)
    settled = _settled(mode, look)
    white = mode.sigma is None and settled.options.noise == "gaussian"
    established = look.established or not white
    top, left = _most_detailed(pixels)
    piece = pixels[top : top + CROP, left : left + CROP]
    trials, shown, infos = [], [], []
    for strength, option, options in strengths_of(mode.options, colour=pixels.ndim == 3):
        after, info = _denoised(replace(settled, options=options), pixels, top, left)
        previews = make_previews(piece, after, icc=image.metadata.icc)
        sd = float(np.std(piece.astype(np.float64) - after))
        trials.append(Trial(strength, option, previews.after, previews.residual, sd))
        shown.append(previews.before)
        infos.append(info)
    return TrialResult(
        name=image.label,
        left=left,
        top=top,
        width=piece.shape[1],
        height=piece.shape[0],
        noise=infos[1].noise,
        sigma=infos[1].sigma if established else look.sigma,
        estimated=mode.sigma is None,
        correlated=look.correlated,
        data_range=look.data_range,
        before=shown[1],
        trials=tuple(trials),
        settings=mode.settings,
        established=established,
    )


def strengths_of(options: Settings, *, colour: bool) -> list[tuple[float, str, Settings]]:
    """Return three strengths around the one asked for.

    Parameters
    ----------
    options : Settings
    colour : bool
        Whether the image has colours to smooth.

    Returns
    -------
    list of (float, str, Settings)
        From weak to strong: a number to call it by, 1 for the one asked for, what to put on the
        command line, and the options themselves.

    Examples
    --------
    >>> [(number, option) for number, option, _ in strengths_of(Settings(), colour=True)]
    [(0.6, '--strength 0.6'), (1.0, '--strength 1'), (1.3, '--luma 1.3 --chroma 1.3')]
    """
    weaker = replace(options, strength=round(WEAKER * options.strength, 3))
    stronger = replace(
        options,
        luma=round(STRONGER * options.luma, 3),
        chroma=round(STRONGER * options.chroma, 3) if colour else options.chroma,
    )
    smoothing = f"--luma {stronger.luma:g}" + (f" --chroma {stronger.chroma:g}" if colour else "")
    return [
        (WEAKER, f"--strength {weaker.strength:g}", weaker),
        (1.0, f"--strength {options.strength:g}", options),
        (STRONGER, smoothing, stronger),
    ]


def _look(mode: LocalMode, pixels: NDArray[Any]) -> DenoiseInfo:
    axis = -1 if pixels.ndim == 3 else None
    return measure_noise(pixels, data_range=mode.data_range, channel_axis=axis)


def _settled(mode: LocalMode, look: DenoiseInfo) -> LocalMode:
    """Return the mode with all that the whole image decides."""
    options = mode.options
    if options.noise == "auto":
        options = replace(options, noise=look.noise)
    sigma = mode.sigma
    if sigma is None and options.noise == "gaussian":
        sigma = look.sigma if look.established else 0.0
    return LocalMode(options, sigma, look.data_range)


def _denoised(
    mode: LocalMode, pixels: NDArray[Any], top: int, left: int
) -> tuple[NDArray[Any], DenoiseInfo]:
    """Denoise a piece with a margin of what lies around it, and cut that off."""
    first, begin = max(0, top - HALO), max(0, left - HALO)
    around = pixels[first : top + CROP + HALO, begin : left + CROP + HALO]
    denoised, info = mode(around, channel_axis=-1 if pixels.ndim == 3 else None)
    inner = denoised[top - first : top - first + CROP, left - begin : left - begin + CROP]
    return as_stored(inner, pixels.dtype), info


def _most_detailed(pixels: NDArray[Any]) -> tuple[int, int]:
    """Return the corner of the piece with the steepest slopes; noise is everywhere alike."""
    grey = pixels.astype(np.float32)
    grey = grey.mean(axis=2) if grey.ndim == 3 else grey
    places = [(top, left) for top in _grid(grey.shape[0]) for left in _grid(grey.shape[1])]

    def slopes(place: tuple[int, int]) -> float:
        piece = grey[place[0] : place[0] + CROP, place[1] : place[1] + CROP]
        return float(sum(np.abs(np.diff(piece, axis=axis)).sum() for axis in (0, 1)))

    return max(places, key=slopes)


def _grid(length: int) -> list[int]:
    """Return where pieces may begin: half a piece apart, the last at the border."""
    last = max(0, length - CROP)
    return sorted({*range(0, last, CROP // 2), last})
