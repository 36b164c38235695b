"""What denoising gave as self-contained HTML pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from kpca_apps.denoise.result import DenoisingResult, ImageOutcome, TrialResult
from kpca_apps.report.denoising_text import (
    METHODS,
    dictionary_sentence,
    has_figures,
    headline_parts,
    in_units,
    is_left,
    noise_sentence,
    standing_sentences,
    trial_sentence,
    trial_title,
)
from kpca_apps.report.denoising_views import (
    ImageView,
    change_of,
    failure_views,
    image_views,
    likeness_rows,
    likeness_total,
    shown,
)
from kpca_apps.report.page import MAX_SENTENCE, make_page, setting_text
from kpca_apps.report.text import cut, join, number, plain

if TYPE_CHECKING:
    from kpca_apps.report.drawing import Drawing

__all__ = ["denoising_pages", "render_denoising", "render_trial"]

MAX_TOGETHER = 12  # images whose pictures stand in one page
MAX_BYTES = 4_500_000  # of the pictures in one page
MAX_FAILURES_ON_TOP = 8
MAX_FAILURES = 500
MAX_NOTES = 50
TILE = 72  # CSS pixels of a component's picture
MODES = {
    "local": "local, from similar patches within each image",
    "dictionary": "dictionary, from what clean examples have in common",
}
UNSET = {
    "sigma": "measured on each image",
    "data_range": "told by the type of the values",
    "bandwidth": "by the noise level",
}
KERNELS = (
    "rbf: Mika's fixed-point pre-images on groups of similar patches, for text if auto; linear: "
    "what they come to as the kernel widens, for photographs"
)
PARTS = ("denoising.css", "slider.js")


def render_denoising(result: DenoisingResult, *, images: str = "../images") -> dict[str, str]:
    """Render a batch as pages that need nothing beside themselves.

    Parameters
    ----------
    result : DenoisingResult
    images : str
        Address of the folder of denoised files, from the folder of the report.

    Returns
    -------
    dict of str to str
        File name in the folder of the report to HTML: ``"report.html"``, and for a large batch
        ``"details/0001.html"`` and so on, one an image.
    """
    return dict(denoising_pages(result, images=images))


def denoising_pages(
    result: DenoisingResult, *, images: str = "../images"
) -> Iterator[tuple[str, str]]:
    """Yield the pages of `render_denoising` one by one: together they may be large.

    Parameters
    ----------
    result : DenoisingResult
    images : str
        As for `render_denoising`.

    Yields
    ------
    name, html : str
    """
    apart = _is_large(result)
    views = image_views(result, images, apart=apart)
    yield "report.html", _overview(result, views, apart)
    if not apart:
        return
    inner = image_views(result, f"../{images}", apart=True)
    for view in inner:
        yield (
            view.page,
            make_page(
                "details.html.j2",
                parts=PARTS,
                title=view.name,
                view=view,
                n_all=len(inner),
                previous=inner[view.number - 2] if view.number > 1 else None,
                following=inner[view.number] if view.number < len(inner) else None,
            ),
        )


def render_trial(result: TrialResult) -> str:
    """Render strengths tried on a crop as a page that needs nothing beside itself.

    Parameters
    ----------
    result : TrialResult

    Returns
    -------
    str
        HTML.
    """
    sentence = trial_sentence(result)
    return make_page(
        "trial.html.j2",
        parts=PARTS,
        title=plain(sentence),
        sentence=sentence,
        result=result,
        noise=noise_sentence(result) if result.established else "",
        before=shown(result.before),
        trials=[
            {
                "trial": trial,
                "title": trial_title(trial),
                "after": shown(trial.after),
                "residual": shown(trial.residual),
                "taken": in_units(result, trial.residual_sd),
            }
            for trial in result.trials
        ],
        **_how(result),
    )


def _overview(result: DenoisingResult, views: list[ImageView], apart: bool) -> str:
    sentence = headline_parts(result)
    failures = failure_views(result)
    notes = [cut(text, MAX_SENTENCE) for text in result.notes[:MAX_NOTES]]
    return make_page(
        "denoising.html.j2",
        parts=PARTS,
        title=plain(sentence),
        sentence=sentence,
        standing=standing_sentences(result),
        failures=failures[:MAX_FAILURES_ON_TOP],
        more_failures=failures[MAX_FAILURES_ON_TOP:MAX_FAILURES],
        n_failed=len(failures),
        notes=notes,
        views=views,
        apart=apart,
        extremes=_extremes(result, views),
        likeness=likeness_rows(result, views),
        total=likeness_total(result),
        drawings=_drawings(result),
        dictionary=result.dictionary,
        dictionary_words=dictionary_sentence(result.dictionary) if result.dictionary else "",
        tiles=_tiles(result),
        **_how(result),
    )


def _is_large(result: DenoisingResult) -> bool:
    """Tell whether the pictures of a batch are too many for one page."""
    done = [image for image in result.images if image.previews is not None]
    return len(done) > MAX_TOGETHER or sum(map(_size, done)) > MAX_BYTES


def _size(image: ImageOutcome) -> int:
    """Return the bytes of an image's pictures."""
    previews = image.previews
    if previews is None:
        return 0
    pieces = [p for c in previews.crops for p in (c.before, c.after, c.reference) if p is not None]
    whole = [previews.before, previews.after, previews.residual]
    return sum(len(picture.data) for picture in (*whole, *pieces))


def _extremes(result: DenoisingResult, views: list[ImageView]) -> list[tuple[str, ImageView]]:
    """Return the image that was changed most and the one that was changed least, if at all."""
    done = [image for image in result.images if image.status == "ok"]
    changed = [
        (change_of(image), view)
        for image, view in zip(done, views, strict=True)
        if not is_left(image)
    ]
    if len(changed) < 2:
        return []
    most, least = max(changed, key=itemgetter(0)), min(changed, key=itemgetter(0))
    if most is least:
        return []
    return [("Changed most", most[1]), ("Changed least", least[1])]


def _tiles(result: DenoisingResult) -> list[dict[str, Any]]:
    """Return the components of a dictionary, ready to show."""
    components = result.dictionary.components if result.dictionary else ()
    return [
        {
            "number": component.number,
            "share": f"{number(100 * component.share, 2)} %",
            "below": shown(component.below, TILE),
            "above": shown(component.above, TILE),
        }
        for component in components
    ]


def _how(result: DenoisingResult | TrialResult) -> dict[str, Any]:
    """Gather what is folded away at the end."""
    return {
        "command": result.command,
        "settings": [(key, _setting(key, value)) for key, value in sorted(result.settings.items())],
        "versions": sorted(result.versions.items()),
    }


def _setting(key: str, value: object) -> str:
    """Write a setting in words where its value alone would be a riddle."""
    if key == "compare":
        names = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
        return join([METHODS.get(name, str(name)) for name in names]) or "with nothing"
    if value is None and key in UNSET:
        return UNSET[key]
    if key == "kernel":
        return f"{value} ({KERNELS})"
    return MODES.get(str(value), setting_text(value)) if key == "mode" else setting_text(value)


def _drawings(result: DenoisingResult) -> dict[str, Drawing]:
    """Draw figures only where there are some: what draws them takes most of a second to load."""
    if not has_figures(result):
        return {}
    from kpca_apps.report.denoising_figures import denoising_drawings

    return denoising_drawings(result)
