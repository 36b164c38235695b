"""Render the results of denoising as self-contained HTML pages."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from kpca_apps.denoise.result import (
    Comparison,
    Crop,
    DenoisingResult,
    ImageOutcome,
    ImagePreviews,
    Preview,
    TrialResult,
)
from kpca_apps.report.denoising.redo import can_redo, chroma_of, redo_marks_of, redo_of, strength_of
from kpca_apps.report.denoising.text import (
    decibels,
    dictionary_sentence,
    has_figures,
    headline,
    in_units,
    is_left,
    law_name,
    level_text,
    likeness_sentence,
    looks_like,
    method_name,
    method_sentence,
    noise_sentence,
    own_sentence,
    reason_text,
    residual_sentence,
    standing_sentences,
    trial_sentence,
    trial_title,
    typical_level,
)
from kpca_apps.report.page import MAX_SENTENCE, block, make_page, setting_text
from kpca_apps.report.text import count, cut, in_prose, percent, plural

if TYPE_CHECKING:
    from kpca_apps.report.drawing import Drawing

MAX_TOGETHER = 12  # maximum number of images shown in one page
MAX_BYTES = 4_500_000  # bytes of the pictures in one page
MAX_FAILURES_ON_TOP = 8
MAX_FAILURES = 500
MAX_NOTES = 50
MODES = {
    "local": "local, from similar patches within each image",
    "dictionary": "dictionary, from what clean examples have in common",
}
UNSET = {
    "sigma": "measured on each image",
    "data_range": "given by the type of the values",
    "bandwidth": "by the noise level",
}
PARTS = ("marks.js", "viewer.js", "redo.js", "marks.css", "denoising.css")
View = dict[str, Any]  # what a page's template shows of one image
MAX_NAME = 200
MAX_IMAGE_NOTES = 20
SMALL, THUMB = 256, 80  # widths of a crop and of a thumbnail, in CSS pixels
MAX_ZOOM = 16
TITLES = {"detail": "Most detail, enlarged", "flat": "Least detail, enlarged"}
MIN_FOR_WORDS, MIN_HEIGHT = 200, 90


def denoising_pages(result: DenoisingResult) -> Iterator[tuple[str, str]]:
    """Yield the name and content of each page of a batch.

    The pages are ``"report.html"`` and, for a large batch, ``"details/0001.html"`` and so on, a
    page for each image. Pages link to the denoised files in the folder ``images`` next to theirs.
    """
    has_details = len(result.done) > MAX_TOGETHER or sum(map(_n_bytes, result.done)) > MAX_BYTES
    drawings: dict[str, Drawing] = {}
    if has_figures(result):
        # Import here, as loading matplotlib takes most of a second.
        from kpca_apps.report.denoising.figures import denoising_drawings

        drawings = denoising_drawings(result)
    views = _views(result, "../images", has_details, drawings)
    yield "report.html", _overview(result, views, has_details, drawings)
    if not has_details:
        return
    views = _views(result, "../../images", has_details, drawings)
    for place, view in enumerate(views):
        following = views[place + 1] if place + 1 < len(views) else None
        page = make_page(
            "details.html.j2",
            parts=PARTS,
            title=view["name"],
            view=view,
            n_all=len(views),
            can_redo=can_redo(result),
            previous=views[place - 1] if place else None,
            following=following,
        )
        yield view["page"], page


def render_trial(result: TrialResult) -> str:
    """Render a page of a crop denoised at several strengths."""
    sentence = trial_sentence(result)
    return make_page(
        "trial.html.j2",
        parts=PARTS,
        title="".join(sentence),
        sentence=sentence,
        result=result,
        noise=noise_sentence(result) if result.established else "",
        enlarged=enlarged,
        trial_title=trial_title,
        in_units=in_units,
        **_how(result),
    )


def _overview(
    result: DenoisingResult, views: list[View], has_details: bool, drawings: Mapping[str, Drawing]
) -> str:
    sentence = headline(result)
    failures = [(cut(image.name, MAX_NAME), reason_text(image)) for image in result.failed]
    notes = [cut(text, MAX_SENTENCE) for text in result.notes[:MAX_NOTES]]
    dictionary = result.dictionary
    return make_page(
        "denoising.html.j2",
        parts=PARTS,
        title="".join(sentence),
        sentence=sentence,
        standing=standing_sentences(result),
        failures=failures[:MAX_FAILURES_ON_TOP],
        more_failures=failures[MAX_FAILURES_ON_TOP:MAX_FAILURES],
        n_failed=len(failures),
        notes=notes,
        views=views,
        has_details=has_details,
        extremes=_extremes(views),
        likeness=[view for view in views if view["cells"]],
        with_laws=[view for view in views if view["law"]] if has_details else [],
        total=_cells(result.mean_comparison),
        drawings=drawings,
        dictionary=dictionary,
        dictionary_words=dictionary_sentence(dictionary) if dictionary else "",
        enlarged=enlarged,
        redo=block(redo_of(result)) if views and can_redo(result) else "",
        marks=block(redo_marks_of(result)),
        **_how(result),
    )


def _n_bytes(image: ImageOutcome) -> int:
    previews = image.previews
    if previews is None:
        return 0
    pieces = [p for c in previews.crops for p in (c.before, c.after, c.reference) if p is not None]
    whole = [previews.before, previews.after, previews.residual]
    return sum(len(picture.data) for picture in (*whole, *pieces))


def _extremes(views: list[View]) -> list[tuple[str, View]]:
    changed = [view for view in views if not is_left(view["image"])]
    if len(changed) < 2:
        return []
    most, least = (pick(changed, key=itemgetter("taken_value")) for pick in (max, min))
    return [] if most is least else [("Changed most", most), ("Changed least", least)]


def _how(result: DenoisingResult | TrialResult) -> dict[str, Any]:
    return {
        "command": result.command,
        "method": method_sentence(result.settings),
        "settings": [(key, _setting(key, value)) for key, value in sorted(result.settings.items())],
        "versions": sorted(result.versions.items()),
    }


def _setting(key: str, value: object) -> str:
    """Describe a setting in words if its value alone is unclear."""
    if key == "compare":
        names = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
        return in_prose([method_name(str(name)) for name in names]) or "with nothing"
    if value is None and key in UNSET:
        return UNSET[key]
    return MODES.get(str(value), setting_text(value)) if key == "mode" else setting_text(value)


class Picture(NamedTuple):
    """A picture and its displayed width; `zoomed` if its pixels are enlarged."""

    picture: Preview
    width: int
    zoomed: bool

    @property
    def height(self) -> int:
        """Displayed height."""
        return max(1, round(self.width * self.picture.height / self.picture.width))

    @property
    def form(self) -> str:
        """Layout of words on the picture: ``"narrow"``, ``"short"`` or ``"wide"``."""
        if self.width < MIN_FOR_WORDS:
            return "narrow"
        return "short" if self.width > 4 * self.height or self.height < MIN_HEIGHT else "wide"


def enlarged(picture: Preview, least: int = 560) -> Picture:
    """Enlarge a picture 1 to `MAX_ZOOM` times (an integer), to sides of at most `least` pixels.

    >>> [enlarged(Preview("image/png", b"", side, side)).width for side in (8, 200, 500)]
    [128, 400, 500]
    """
    zoom = max(1, min(least // max(picture.width, picture.height), MAX_ZOOM))
    return Picture(picture, zoom * picture.width, zoom > 1)


def _thumb(picture: Preview) -> Picture:
    side = max(picture.width, picture.height)
    if side <= THUMB:
        return enlarged(picture, THUMB)
    return Picture(picture, max(1, round(picture.width * THUMB / side)), zoomed=False)


def _views(
    result: DenoisingResult, images: str, has_details: bool, drawings: Mapping[str, Drawing]
) -> list[View]:
    """Return the denoised images for the template."""
    return [
        _image(image, images, result.dictionary is None)
        | {
            "number": number,
            "page": f"details/{number:04d}.html" if has_details else f"#image-{number}",
            "law": drawings.get(law_name(number)),
            "strength": strength_of(image, result),
            "chroma": chroma_of(image, result),
        }
        for number, image in enumerate(result.done, 1)
    ]


def _image(image: ImageOutcome, images: str, has_strength: bool) -> View:
    residual = image.residual
    address = quote(os.fsencode(image.output), safe="/")
    scale = 1.0 if image.is_relative else image.own_range
    doubt = "" if image.established else " ?"
    looks = "left as it was" if is_left(image) else looks_like(image)
    seen = max(image.previews.before.width, image.previews.before.height) if image.previews else 0
    most = max(image.shape[:2]) if len(image.shape) > 1 else 0
    return {
        "image": image,
        "name": cut(image.name, MAX_NAME),
        "size": _facts(image),
        "file": f"{images}/{address}" if image.output else "",
        "level": "" if image.sigma is None else level_text(image) + doubt,
        "level_value": typical_level(image) / scale,
        "taken": "" if residual is None else in_units(image, residual.sd),
        "taken_value": 0.0 if residual is None else residual.sd / image.own_range,
        "looks": f"{looks}; impulses" if image.impulses else looks,
        "sentences": _sentences(image, has_strength),
        "notes": [cut(note, 400) for note in image.notes[:MAX_IMAGE_NOTES]],
        "cells": _cells(image.comparison),
        "share": percent(seen / most) if 0 < seen < most else "",
        **_pictures(image.previews),
    }


def _pictures(previews: ImagePreviews | None) -> View:
    if previews is None:
        return dict.fromkeys(("before", "after", "residual", "thumb", "crops", "glance"))
    sizes = {(p.width, p.height) for p in (previews.after, *(c.after for c in previews.crops))}
    crops = [_crop(crop, TITLES.get(crop.kind, crop.kind)) for crop in previews.crops]
    if len(sizes) == 1:
        crops = [_crop(crop, "Beside the clean image") for crop in previews.crops if crop.reference]
    glance = [_crop(replace(crop, reference=None), "A piece") for crop in previews.crops[:1]]
    return {
        "before": enlarged(previews.before),
        "after": enlarged(previews.after),
        "residual": enlarged(previews.residual),
        "thumb": _thumb(previews.thumb),
        "crops": crops,
        "glance": glance[0] if glance else None,  # before and after, for the top of the page
    }


def _sentences(image: ImageOutcome, has_strength: bool) -> list[str]:
    sentences = [noise_sentence(image), residual_sentence(image, has_strength=has_strength)]
    if image.comparison is not None:
        sentences.insert(0, likeness_sentence(image.comparison))
    sentences.append(own_sentence(image))
    if image.n_pages > 1:
        sentences.append(
            f"The pictures are of the first of {count(image.n_pages)} pages; the noise level is "
            "the mean over those of its type, any likeness over all."
        )
    if image.previews is not None and image.previews.stretched:
        sentences.append("Values were stretched to be shown, alike before and after.")
    return [text for text in sentences if text]


def _facts(image: ImageOutcome) -> str:
    height, width = image.shape[:2] if len(image.shape) > 1 else (0, 0)
    channels = image.shape[2] if len(image.shape) == 3 else 1
    kind = {1: "grey", 2: "grey with alpha", 3: "colour", 4: "colour with alpha"}
    depth = {"uint8": "8 bit", "uint16": "16 bit", "float32": "float"}
    parts = [
        f"{count(width)} x {count(height)}",
        kind.get(channels, f"{channels} channels"),
        depth.get(image.dtype, image.dtype),
        image.format.upper(),
    ]
    if image.n_pages > 1:
        parts.append(plural(image.n_pages, "page"))
    return ", ".join(part for part in parts if part)


def _crop(crop: Crop, title: str) -> View:
    pieces = {"before": crop.before, "after": crop.after, "clean": crop.reference}
    views = [(label, enlarged(piece, SMALL)) for label, piece in pieces.items() if piece]
    return {"title": title, "pieces": views}


def _cells(comparison: Comparison | None) -> list[tuple[str, str, str, float, bool]]:
    """Return the name, PSNR, SSIM and sort key of each method, and whether it is the best."""
    if comparison is None:
        return []
    ours = {"noisy": comparison.noisy, "denoised": comparison.denoised}
    methods = {**ours, **comparison.baselines}
    best = max(quality.psnr for quality in methods.values())
    return [
        (
            method_name(name),
            decibels(quality.psnr),
            "" if quality.ssim is None else f"{quality.ssim:.3f}",  # tiny images have no SSIM
            quality.psnr if math.isfinite(quality.psnr) else 999.0,
            quality.psnr == best,
        )
        for name, quality in methods.items()
    ]
