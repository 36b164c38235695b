"""Data for a page's script: the options with which images may be denoised again."""

from __future__ import annotations

from typing import Any

from kpca_apps.denoise.result import STRONGER, WEAKER, DenoisingResult, ImageOutcome
from kpca_apps.report.denoising.text import is_left

MARKS_FORMAT = 1
# Columns of the table for ``--per-image``.
OPTIONS = ("strength", "luma", "chroma", "sigma", "noise", "quality")
FACTORS = ("strength", "luma", "chroma")
BEST = "high"


def can_redo(result: DenoisingResult) -> bool:
    """Whether single images may have their own options."""
    return result.dictionary is None and result.settings.get("mode") != "dictionary"


def redo_of(result: DenoisingResult) -> dict[str, Any]:
    """Return the possible and the used options of each image, by image number."""
    return {
        "options": OPTIONS,
        "offered": result.offered,
        "images": {number: _image(image, result) for number, image in enumerate(result.done, 1)},
    }


def redo_marks_of(result: DenoisingResult) -> dict[str, Any]:
    """Return the options that were set for single images."""
    marks = [{"file": image.name} | _own(image) for image in result.done if image.own_settings]
    return {"format": MARKS_FORMAT, "marks": marks}


def strength_of(image: ImageOutcome, result: DenoisingResult) -> float:
    """Return the strength with which an image was denoised; 0 if it was not changed."""
    if not can_redo(result) or is_left(image):
        return 0.0
    return _factors(image, result)["strength"]


def chroma_of(image: ImageOutcome, result: DenoisingResult) -> float:
    """Return the factor on the smoothing of colours; 0 if colours were not smoothed."""
    is_colour = _has_colours(image) and strength_of(image, result) > 0
    return _factors(image, result)["chroma"] if is_colour else 0.0


def _has_colours(image: ImageOutcome) -> bool:
    return image.noise == "raw" or (len(image.shape) == 3 and image.shape[2] >= 3)


def _own(image: ImageOutcome) -> dict[str, Any]:
    return {name: "auto" if one is None else one for name, one in image.own_settings.items()}


def _factors(image: ImageOutcome, result: DenoisingResult) -> dict[str, float]:
    settings = {**result.settings, **image.own_settings}
    return {name: float(settings.get(name, 1.0)) for name in FACTORS}


def _image(image: ImageOutcome, result: DenoisingResult) -> dict[str, Any]:
    is_raw = image.noise == "raw"
    has_colours = _has_colours(image)
    left_out = {"chroma"} if not has_colours else set()
    if is_raw:  # these do not apply, as the noise of raw files is known or measured
        left_out |= {"sigma", "noise"}
    found = {
        "file": image.name,
        "options": [name for name in OPTIONS if name not in left_out],
        "used": _factors(image, result),
        "presets": _presets(image, result, has_colours=has_colours),
    }
    return found | ({"own": _own(image)} if image.own_settings else {})


def _presets(
    image: ImageOutcome, result: DenoisingResult, *, has_colours: bool
) -> dict[str, dict[str, float | str]]:
    """Return the options that each button of an image sets."""
    if is_left(image):
        option, _, value = image.evidence.option.removeprefix("--").partition(" ")
        if option == "noise" and value in result.offered[option]:
            return {"denoise it": {option: value}}
        return {"denoise it": {option: float(value)}} if option == "sigma" else {}
    used = _factors(image, result)
    smoothing = ("luma", "chroma") if has_colours else ("luma",)
    presets: dict[str, dict[str, float | str]] = {
        "weaker": {"strength": round(WEAKER * used["strength"], 3)},
        "stronger": {name: round(STRONGER * used[name], 3) for name in smoothing},
    }
    if {**result.settings, **image.own_settings}.get("quality") != BEST:
        presets["high quality"] = {"quality": BEST}
    return presets
