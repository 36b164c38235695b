"""The papers' experiments as one self-contained HTML page, and its figures as files."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from kpca_apps.papers.result import GalleryResult, Outcome, Reproduction
from kpca_apps.report.drawing import Drawing, to_png
from kpca_apps.report.gallery_figures import WIDE, draw
from kpca_apps.report.gallery_text import MARKS, cell, headline, standing, tolerance
from kpca_apps.report.page import make_page

__all__ = ["gallery_figures", "render_gallery"]


@dataclass(frozen=True)
class _Section:
    """What the page shows of one experiment."""

    reproduction: Reproduction
    standing: str
    marks: tuple[str, ...]
    claims: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[Drawing, ...], ...]
    last: Drawing | None


def render_gallery(result: GalleryResult) -> str:
    """Render experiments as a page that needs nothing beside itself.

    Parameters
    ----------
    result : GalleryResult

    Returns
    -------
    str
        HTML, the same bytes for the same result.
    """
    sections = [_section(one) for one in result.reproductions]
    sentence = headline(result)
    return make_page(
        "gallery.html.j2",
        parts=("gallery.css",),
        title=sentence,
        sentence=sentence,
        sections=sections,
        is_wide=_is_wide,
        papers=_by_paper(sections),
        result=result,
        versions=sorted(result.versions.items()),
    )


def gallery_figures(result: GalleryResult) -> dict[str, bytes]:
    """Draw every figure as a file.

    Parameters
    ----------
    result : GalleryResult

    Returns
    -------
    dict of str to bytes
        File name without suffix, such as ``"clusters-1"``, to PNG, twice screen size.
    """
    return {
        drawing.name: to_png(drawing)
        for one in result.reproductions
        for drawing in _drawings(one.name, one.outcome)
    }


def _drawings(name: str, outcome: Outcome) -> list[Drawing]:
    return [draw(figure, f"{name}-{place}") for place, figure in enumerate(outcome.figures, 1)]


def _section(one: Reproduction) -> _Section:
    drawings = _drawings(one.name, one.outcome)
    rows = [tuple(row) for _, row in groupby(drawings, key=_is_wide)]
    # A narrow figure that would stand alone stands beside the claims.
    last = rows.pop()[0] if rows and len(rows[-1]) == 1 and not _is_wide(rows[-1][0]) else None
    return _Section(
        one,
        standing(one),
        tuple(MARKS[claim.verdict] for claim in one.outcome.claims),
        tuple(
            (
                claim.what,
                cell(claim.paper, claim.tolerance),
                cell(claim.ours, claim.tolerance),
                tolerance(claim),
                MARKS[claim.verdict],
                claim.verdict,
                claim.why,
            )
            for claim in one.outcome.claims
        ),
        tuple(rows),
        last,
    )


def _is_wide(drawing: Drawing) -> bool:
    return drawing.figure.get_figwidth() >= WIDE


def _by_paper(sections: list[_Section]) -> dict[str, list[_Section]]:
    """Gather the sections by the work they are of: figures and tables stand after its year."""
    found: dict[str, list[_Section]] = {}
    for section in sections:
        work, bracket, _ = section.reproduction.paper.partition(")")
        found.setdefault(work + bracket if bracket else work.partition(",")[0], []).append(section)
    return found
