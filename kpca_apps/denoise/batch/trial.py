"""A crop of an image denoised at three strengths, to choose by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.inputs import colours_of
from kpca_apps.denoise.batch.previews import make_previews, places_for, turned
from kpca_apps.denoise.batch.work import as_stored
from kpca_apps.denoise.options import Options, Window
from kpca_apps.denoise.result import Trial, TrialResult
from kpca_apps.files.images.types import ImageFile

__all__ = ["strengths_of", "try_strengths"]

CROP = 384
WEAKER, STRONGER = 0.6, 1.3
"""A weaker result keeps a share of the grain: with a lower noise level, noise would stand out in
blotches where it passes for detail. A stronger one takes the noise to be stronger than it is."""


def try_strengths(image: ImageFile, denoiser: GroupDenoiser) -> TrialResult:
    """Denoise the most detailed piece of an image, as it is viewed, at three strengths.

    The piece is cut from the image denoised as a whole, of which only what it depends on is worked
    out where the kind of noise allows it: under correlated noise it depends on all of it, and the
    trial takes twice as long as the image.
    """
    pixels, orientation = colours_of(image.page(0)), image.metadata.orientation
    upright = turned(pixels, orientation)
    top, left = _most_detailed(upright)
    cut = np.s_[top : top + CROP, left : left + CROP]
    piece, wanted = upright[cut], _stored_window(pixels.shape[:2], orientation, cut)
    axis = -1 if pixels.ndim == 3 else None
    trials, shown, infos = [], [], []
    cleaned, like = None, None
    for strength, option, options in strengths_of(denoiser.options, colour=axis is not None):
        # The weaker one is a mixture of the image and of the one asked for, denoised once for both.
        whole = replace(options, strength=denoiser.options.strength, wanted=wanted)
        if cleaned is None or whole != like:
            cleaned, like = replace(denoiser, options=whole).clean(pixels, channel_axis=axis), whole
        denoised = cleaned.at(options.strength)
        after = turned(as_stored(denoised, pixels.dtype), orientation)[cut]
        previews = make_previews(piece, after, icc=image.metadata.icc)
        sd = float(np.std(piece.astype(np.float64) - after))
        trials.append(Trial(strength, option, previews.after, previews.residual, sd))
        shown.append(previews.before)
        infos.append(cleaned.info)
    return TrialResult(
        name=image.label,
        left=left,
        top=top,
        width=piece.shape[1],
        height=piece.shape[0],
        noise=infos[1].noise,
        sigma=infos[1].sigma,
        estimated=denoiser.sigma is None,
        correlated=infos[1].correlated,
        data_range=infos[1].data_range,
        before=shown[1],
        trials=tuple(trials),
        settings=denoiser.settings,
        established=infos[1].established,
    )


def strengths_of(options: Options, *, colour: bool) -> list[tuple[float, str, Options]]:
    """Return three strengths around the one asked for.

    Examples
    --------
    >>> [(number, option) for number, option, _ in strengths_of(Options(), colour=True)]
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


def _stored_window(shape: tuple[int, ...], orientation: int, cut: tuple[slice, slice]) -> Window:
    """Return where a piece of the turned image lies in the image as it is stored."""
    chosen = np.zeros(shape, dtype=bool)
    turned(chosen, orientation)[cut] = True
    rows, columns = np.flatnonzero(chosen.any(axis=1)), np.flatnonzero(chosen.any(axis=0))
    return (int(rows[0]), int(rows[-1]) + 1), (int(columns[0]), int(columns[-1]) + 1)


def _most_detailed(pixels: NDArray[Any]) -> tuple[int, int]:
    """Return the corner of the piece with the steepest slopes; noise is everywhere alike."""
    grey = pixels.astype(np.float32)
    grey = grey.mean(axis=2) if grey.ndim == 3 else grey
    tops, lefts = (places_for(side, CROP) for side in grey.shape)
    places = [(top, left) for top in tops for left in lefts]

    def slopes(place: tuple[int, int]) -> float:
        piece = grey[place[0] : place[0] + CROP, place[1] : place[1] + CROP]
        return float(sum(np.abs(np.diff(piece, axis=axis)).sum() for axis in (0, 1)))

    return max(places, key=slopes)
