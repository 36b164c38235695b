"""The papers' experiments as one self-contained HTML page, and its figures as files."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from string import ascii_lowercase
from typing import Any, NamedTuple

from markupsafe import Markup

from kpca_apps.papers.figures import Contours, Pictures, Table
from kpca_apps.papers.result import Claim, GalleryResult, Outcome, Reproduction
from kpca_apps.report.drawing import Drawing, to_png, to_svg
from kpca_apps.report.page import make_page
from kpca_apps.report.papers.figures import Spot, draw, rows_of
from kpca_apps.report.papers.text import (
    MARKS,
    cell,
    headline,
    left_out,
    most_of_the_rest,
    standing,
    tolerance,
    work_of,
)

View = dict[str, Any]  # what the template sees of one thing
THUMBNAIL = 72.0, 60.0
BROAD = 1.6  # width over height from which a figure is not put beside another on a small screen
# A number, a per cent, or what stands where there is none; two may be joined.
JOINED = re.compile(r" / | \u00b1 ")
NUMBER = re.compile(r"[-+\u00b1<]? ?[\d.,]*\d(e[-+]?\d+)?( ?%)?")
NONE = frozenset(("", "-", "\u2013", "n.a.", "none"))


def render_gallery(result: GalleryResult) -> str:
    """Render experiments as a page that needs nothing beside itself."""
    sections = [_section(one) for one in result.reproductions]
    papers: dict[str, list[View]] = defaultdict(list)
    for section in sections:
        papers[work_of(section["reproduction"].paper)[0]].append(section)
    sentence = headline(result)
    return make_page(
        "gallery.html.j2",
        parts=("gallery.css",),
        title=sentence,
        sentence=sentence,
        rest=most_of_the_rest(result),
        left_out=left_out(result),
        sections=sections,
        papers=papers,
        thumbnail_size=THUMBNAIL,
        result=result,
        versions=sorted(result.versions.items()),
    )


def gallery_figures(result: GalleryResult) -> dict[str, bytes]:
    """Draw every figure as a file: name without suffix, such as ``"clusters-1"``, to PNG."""
    rows = (row for one in result.reproductions for row in _drawn(one.name, one.outcome))
    return {drawing.name: to_png(drawing) for row in rows for _, drawing in row}


def _drawn(name: str, outcome: Outcome) -> Iterator[list[tuple[Spot, Drawing]]]:
    """Draw the figures of an experiment, row by row, each as wide as it will stand."""
    for row in rows_of(outcome.figures):
        yield [
            (at, draw(outcome.figures[at.place], f"{name}-{at.place + 1}", (at.width, at.height)))
            for at in row
        ]


def _section(one: Reproduction) -> View:
    """Return what the page shows of one experiment."""
    sentences: set[str] = set()  # of captions so far
    rows = [
        [_figure(spot, drawing, sentences) for spot, drawing in row]
        for row in _drawn(one.name, one.outcome)
    ]
    drawings = {view["drawing"].name: view["drawing"] for row in rows for view in row}
    # A narrow figure that would stand alone stands beside a table.
    last = next((row for row in rows if len(row) == 1 and not row[0]["spot"].is_full), None)
    if last is not None:
        rows.remove(last)
    lines, notes = claim_lines(one.outcome.claims)
    return {
        "reproduction": one,
        "standing": standing(one),
        "marks": [MARKS[claim.verdict] for claim in one.outcome.claims],
        "claims": lines,
        "notes": notes,
        "tables": [(table, numeric_columns(table)) for table in one.outcome.tables],
        "rows": rows,
        "last": last and last[0],
        "thumbnail": _thumbnail(one, drawings),
    }


def _figure(spot: Spot, drawing: Drawing, sentences: set[str]) -> View:
    """Return a figure as the page holds it, with a name by which a thumbnail can show it again.

    Sentences of captions before are left out of its own; the others are added to them.
    """
    svg = str(to_svg(drawing)).replace("<g>", f'<g id="{drawing.name}-drawn">', 1)
    caption = [one for one in re.split(r"(?<=\.) ", drawing.caption) if one not in sentences]
    sentences.update(caption)
    return {
        "spot": spot,
        "drawing": drawing,
        "svg": Markup(svg),
        "caption": " ".join(caption),
        "is_broad": spot.shape > BROAD,
    }


def _thumbnail(one: Reproduction, drawings: dict[str, Drawing]) -> View | None:
    """Cut the first panel out of the figure that is most easily known again: it takes no bytes.

    The window is left, top, width and height of the part, in points of the figure; the place is
    where that stands in the thumbnail.
    """
    figures = one.outcome.figures
    if not figures:
        return None
    panels = [len(f.values) if isinstance(f, Contours) else 0 for f in figures]
    pictures = [isinstance(figure, Pictures) for figure in figures]
    place = pictures.index(True) if any(pictures) else panels.index(max(panels))
    canvas = drawings[f"{one.name}-{place + 1}"].figure
    box = canvas.axes[0].get_position()
    across, down = (72.0 * float(side) for side in canvas.get_size_inches())
    width, height = box.width * across, box.height * down
    if any(pictures):
        width, height = min(width, height * THUMBNAIL[0] / THUMBNAIL[1]), height
    scale = min(THUMBNAIL[0] / width, THUMBNAIL[1] / height)
    size = width * scale, height * scale
    place_of = (THUMBNAIL[0] - size[0]) / 2.0, (THUMBNAIL[1] - size[1]) / 2.0
    window = box.x0 * across, (1.0 - box.y1) * down, width, height
    return {
        "figure": f"{one.name}-{place + 1}-drawn",
        "window": [round(value, 1) for value in window],
        "place": [round(value, 1) for value in (*place_of, *size)],
    }


class ClaimLine(NamedTuple):
    """One claim as a line of a table."""

    what: str
    paper: str
    source: str
    ours: str
    tolerance: str
    mark: str
    verdict: str
    why: str  # of the condition or the reason, what no note under the table says
    note: str  # letter of the note there with the rest


def claim_lines(
    claims: tuple[Claim, ...],
) -> tuple[tuple[ClaimLine, ...], tuple[tuple[str, str], ...]]:
    """Lay out claims; what several have in common stands once.

    The notes are letter and text of what more than one claim has for a condition or reason.
    """
    often = [why for why, n in Counter(one.why for one in claims if one.why).items() if n > 1]
    letters = dict(zip(often, ascii_lowercase, strict=False))
    lines = tuple(
        ClaimLine(
            one.what,
            cell(one.paper, one.tolerance, known=True),
            one.source,
            cell(one.ours, one.tolerance),
            tolerance(one),
            MARKS[one.verdict],
            one.verdict,
            "" if one.why in letters else one.why,
            letters.get(one.why, ""),
        )
        for one in claims
    )
    return lines, tuple((letter, why) for why, letter in letters.items())


def numeric_columns(table: Table) -> list[bool]:
    """Tell the columns of numbers, which stand on the right, from those of words."""
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.heads)
    parted = [[part for text in column for part in JOINED.split(text)] for column in columns]
    return [all(part in NONE or NUMBER.fullmatch(part) for part in parts) for parts in parted]
