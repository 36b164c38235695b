"""Denoise a piece of an image at three strengths, to help users choose."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.batch.denoisers import CleanedMosaic, GroupDenoiser
from kpca_apps.denoise.batch.examine.evidence import evidence_of
from kpca_apps.denoise.batch.examine.previews import detail_of, make_previews, places_for, turned
from kpca_apps.denoise.batch.pages import data_of, grey_of, read_mask, without_holes
from kpca_apps.denoise.denoiser import Cleaned
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.image import as_stored, colours_of
from kpca_apps.denoise.masks import both
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import STRONGER, WEAKER, Preview, Trial, TrialResult
from kpca_apps.errors import about
from kpca_apps.images.types import ImageFile

CROP = 384  # width and height of the piece in pixels


def try_strengths(image: ImageFile, denoiser: GroupDenoiser) -> TrialResult:
    """Denoise the most detailed piece of an image, turned for viewing, at three strengths.

    The piece is bit for bit that of the whole denoised image. Only pixels that affect the piece
    are denoised; for camera noise, impulses and raw files these are all pixels.
    """
    page, orientation = image.page(0), image.metadata.orientation
    pixels, data = colours_of(page), both(data_of(page), read_mask(denoiser.mask, image)[0])
    upright = turned(pixels, orientation)
    top, left = _most_detailed(*without_holes(upright))
    cut = np.s_[top : top + CROP, left : left + CROP]
    piece, chosen = upright[cut], np.zeros(pixels.shape[:2], dtype=bool)
    turned(chosen, orientation)[cut] = True
    rows, columns = np.flatnonzero(chosen.any(axis=1)), np.flatnonzero(chosen.any(axis=0))
    # Rows and columns of the piece in the image as stored.
    wanted = (int(rows[0]), int(rows[-1]) + 1), (int(columns[0]), int(columns[-1]) + 1)
    axis = -1 if pixels.ndim == 3 else None
    mosaic = None if image.mosaic is None else image.mosaic()
    found: list[tuple[Trial, Preview, DenoiseInfo]] = []
    cleaned: Cleaned | CleanedMosaic | None = None
    like = None
    for strength, option, options in strengths_of(denoiser.options, colour=axis is not None):
        # The weaker and the middle result differ only in strength, so denoise once for both.
        whole = replace(options, strength=denoiser.options.strength, wanted=wanted)
        if cleaned is None or whole != like:
            own, like = replace(denoiser, options=whole), whole
            with about(image.label):
                if mosaic is None:
                    cleaned = own.clean(pixels, mask=data)
                else:
                    cleaned = own.clean_mosaic(mosaic)
        after = turned(as_stored(cleaned.at(options.strength), pixels.dtype), orientation)[cut]
        shown, after = without_holes(piece, after)
        previews = make_previews(shown, after, icc=image.metadata.icc)
        sd = float(np.std(shown.astype(np.float64) - after))
        lines = per_image_lines(image.label, options)
        trial = Trial(strength, option, previews.after, previews.residual, sd, lines)
        found.append((trial, previews.before, cleaned.info))
    _, before, info = found[1]
    return TrialResult(
        name=image.label,
        left=left,
        top=top,
        width=piece.shape[1],
        height=piece.shape[0],
        noise=info.noise,
        sigma=info.sigma,
        estimated=denoiser.sigma is None,
        correlated=info.correlated,
        data_range=info.data_range,
        before=before,
        trials=tuple(trial for trial, *_ in found),
        settings=denoiser.settings,
        established=info.established,
        evidence=evidence_of(info, denoiser.options.noise),
    )


def strengths_of(options: Options, *, colour: bool) -> list[tuple[float, str, Options]]:
    """Return three strengths around the requested one, each with its command line option."""
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


def per_image_lines(name: str, options: Options) -> str:
    """Return the header and the row of a ``--per-image`` table that set these options."""
    values = {one: f"{getattr(options, one):g}" for one in ("strength", "luma", "chroma")}
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([["file", *values], [name, *values.values()]])
    return lines.getvalue()


def _most_detailed(pixels: NDArray[Any]) -> tuple[int, int]:
    """Return the corner of the piece with most detail."""
    grey = grey_of(pixels)
    tops, lefts = (places_for(side, CROP) for side in grey.shape)
    corners = product(tops, lefts)
    return max(corners, key=lambda at: detail_of(grey[at[0] : at[0] + CROP, at[1] : at[1] + CROP]))
