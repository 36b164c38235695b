"""The papers' experiments as one self-contained HTML page, and its figures as files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from kpca_apps.papers.figures import Isolines, Pictures
from kpca_apps.papers.result import GalleryResult, Outcome, Reproduction
from kpca_apps.report.drawing import Drawing, to_png, to_svg
from kpca_apps.report.gallery_figures import draw
from kpca_apps.report.gallery_rows import Spot, rows_of
from kpca_apps.report.gallery_text import (
    MARKS,
    headline,
    left_out,
    most_of_the_rest,
    standing,
    work_of,
)
from kpca_apps.report.gallery_words import ClaimLine, TableView, claim_lines, table_view
from kpca_apps.report.page import make_page

__all__ = ["gallery_figures", "render_gallery"]

THUMBNAIL = 72.0, 60.0
BROAD = 1.6  # width over height from which a figure is not put beside another on a small screen


@dataclass(frozen=True)
class _Shown:
    """A figure as the page holds it; its caption tells what no earlier one of the section told."""

    spot: Spot
    drawing: Drawing
    svg: Markup
    caption: str

    @property
    def is_broad(self) -> bool:
        """Whether it is too flat to share a narrow row."""
        return self.spot.shape > BROAD


@dataclass(frozen=True)
class _Thumbnail:
    """A part of a figure to know it again by, shown a second time: it takes no bytes.

    Attributes
    ----------
    figure : str
        Id of what is drawn.
    window : tuple of float
        Left, top, width and height of the part, in points of the figure.
    place : tuple of float
        Where that stands in the thumbnail.
    """

    figure: str
    window: tuple[float, ...]
    place: tuple[float, ...]


@dataclass(frozen=True)
class _Section:
    """What the page shows of one experiment."""

    reproduction: Reproduction
    standing: str
    marks: tuple[str, ...]
    claims: tuple[ClaimLine, ...]
    notes: tuple[tuple[str, str], ...]
    tables: tuple[TableView, ...]
    rows: tuple[tuple[_Shown, ...], ...]
    last: _Shown | None
    thumbnail: _Thumbnail | None


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
        rest=most_of_the_rest(result),
        left_out=left_out(result),
        sections=sections,
        papers=_by_paper(sections),
        thumbnail_size=THUMBNAIL,
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
        for _, row in _drawn(one.name, one.outcome)
        for drawing in row
    }


def _drawn(name: str, outcome: Outcome) -> Iterator[tuple[tuple[Spot, ...], list[Drawing]]]:
    """Draw the figures of an experiment, row by row, each as wide as it will stand."""
    for row in rows_of(outcome.figures):
        yield (
            row,
            [
                draw(outcome.figures[at.place], f"{name}-{at.place + 1}", (at.width, at.height))
                for at in row
            ],
        )


def _section(one: Reproduction) -> _Section:
    told: set[str] = set()
    rows = [
        tuple(
            _Shown(at, drawing, _with_handle(drawing), _untold(drawing.caption, told))
            for at, drawing in zip(row, drawings, strict=True)
        )
        for row, drawings in _drawn(one.name, one.outcome)
    ]
    by_name = {shown.drawing.name: shown for row in rows for shown in row}
    # A narrow figure that would stand alone stands beside a table.
    last = next((row for row in rows if len(row) == 1 and not row[0].spot.is_full), None)
    if last is not None:
        rows.remove(last)
    lines, notes = claim_lines(one.outcome.claims)
    return _Section(
        one,
        standing(one),
        tuple(MARKS[claim.verdict] for claim in one.outcome.claims),
        lines,
        notes,
        tuple(map(table_view, one.outcome.tables)),
        tuple(rows),
        last and last[0],
        _thumbnail(one, by_name),
    )


def _untold(caption: str, told: set[str]) -> str:
    """Leave out sentences that were told before, and remember the others."""
    sentences = [part for part in re.split(r"(?<=\.) ", caption) if part not in told]
    told.update(sentences)
    return " ".join(sentences)


def _with_handle(drawing: Drawing) -> Markup:
    """Return a drawing as SVG with a name by which a thumbnail can show it again."""
    return Markup(str(to_svg(drawing)).replace("<g>", f'<g id="{drawing.name}-drawn">', 1))


def _thumbnail(one: Reproduction, by_name: dict[str, _Shown]) -> _Thumbnail | None:
    """Cut the first panel out of the figure that is most easily known again."""
    figures = one.outcome.figures
    if not figures:
        return None
    panels = [len(f.values) if isinstance(f, Isolines) else 0 for f in figures]
    pictures = [isinstance(figure, Pictures) for figure in figures]
    place = pictures.index(True) if any(pictures) else panels.index(max(panels))
    canvas = by_name[f"{one.name}-{place + 1}"].drawing.figure
    box = canvas.axes[0].get_position()
    across, down = (72.0 * float(side) for side in canvas.get_size_inches())
    width, height = box.width * across, box.height * down
    if any(pictures):
        width, height = min(width, height * THUMBNAIL[0] / THUMBNAIL[1]), height
    scale = min(THUMBNAIL[0] / width, THUMBNAIL[1] / height)
    size = width * scale, height * scale
    return _Thumbnail(
        f"{one.name}-{place + 1}-drawn",
        _rounded(box.x0 * across, (1.0 - box.y1) * down, width, height),
        _rounded((THUMBNAIL[0] - size[0]) / 2.0, (THUMBNAIL[1] - size[1]) / 2.0, *size),
    )


def _rounded(*values: float) -> tuple[float, ...]:
    return tuple(round(value, 1) for value in values)


def _by_paper(sections: list[_Section]) -> dict[str, list[_Section]]:
    """Gather the sections by the work they are of."""
    found: dict[str, list[_Section]] = {}
    for section in sections:
        found.setdefault(work_of(section.reproduction.paper)[0], []).append(section)
    return found
