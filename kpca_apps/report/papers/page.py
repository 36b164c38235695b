"""The papers' experiments as one self-contained HTML page, and its figures as files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase

from markupsafe import Markup

from kpca_apps.papers.figures import Isolines, Pictures, Table
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

__all__ = ["claim_lines", "gallery_figures", "render_gallery", "table_view"]

THUMBNAIL = 72.0, 60.0
BROAD = 1.6  # width over height from which a figure is not put beside another on a small screen
# A number, a per cent, or what stands where there is none; two may be joined.
JOINED = re.compile(r" / | \u00b1 ")
NUMBER = re.compile(r"[-+\u00b1<]? ?[\d.,]*\d(e[-+]?\d+)?( ?%)?")
NONE = frozenset(("", "-", "\u2013", "n.a.", "none"))


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


@dataclass(frozen=True)
class ClaimLine:
    """One claim as a line of a table.

    Attributes
    ----------
    what, paper, ours, tolerance, mark, verdict : str
    origin : str
        Where the value to come near is from, and of which text; empty if read in the paper.
    why : str
        What of the condition or the reason is not told under the table.
    note : str
        Letters of the notes under the table that tell the rest; empty if there is none.
    """

    what: str
    paper: str
    origin: str
    ours: str
    tolerance: str
    mark: str
    verdict: str
    why: str
    note: str


@dataclass(frozen=True)
class TableView:
    """A table, and which of its columns hold numbers.

    Attributes
    ----------
    table : Table
    numeric : tuple of bool
        One for each column.
    """

    table: Table
    numeric: tuple[bool, ...]


def claim_lines(
    claims: tuple[Claim, ...],
) -> tuple[tuple[ClaimLine, ...], tuple[tuple[str, str], ...]]:
    """Lay out claims; what several have in common is told once.

    Parameters
    ----------
    claims : tuple of Claim

    Returns
    -------
    lines : tuple of ClaimLine
    notes : tuple of (str, str)
        Letter and text of what more than one claim has for a condition or reason.

    Examples
    --------
    >>> told = [Claim("a", 1.0, 1.0, 0.1, "reproduced with a condition", "smoothed")] * 2
    >>> lines, notes = claim_lines(tuple(told))
    >>> [line.note for line in lines], notes
    (['a', 'a'], (('a', 'smoothed'),))
    """
    often = [why for why, n in Counter(r for one in claims for r in one.reasons).items() if n > 1]
    letters = dict(zip(often, ascii_lowercase, strict=False))
    lines = tuple(
        ClaimLine(
            one.what,
            cell(one.paper, one.tolerance, known=True),
            "; ".join(_origin_of(one)),
            cell(one.ours, one.tolerance),
            tolerance(one),
            MARKS[one.verdict],
            one.verdict,
            "; ".join(why for why in one.reasons if why not in letters),
            ", ".join(letters[why] for why in one.reasons if why in letters),
        )
        for one in claims
    )
    return lines, tuple((letter, why) for why, letter in letters.items())


def _origin_of(claim: Claim) -> list[str]:
    """Return the words under the value to come near."""
    origin = "" if claim.origin == "the paper" else claim.origin
    return [words for words in (origin, claim.source) if words]


def table_view(table: Table) -> TableView:
    """Tell the columns of numbers, which stand on the right, from those of words.

    Parameters
    ----------
    table : Table

    Examples
    --------
    >>> table_view(Table("", ("a", "b"), (("PCA", "8.7 / 8.57"), ("Parzen", "n.a.")))).numeric
    (False, True)
    """
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.heads)
    return TableView(table, tuple(all(map(_is_number, column)) for column in columns))


def _is_number(text: str) -> bool:
    return all(part in NONE or NUMBER.fullmatch(part) for part in JOINED.split(text))
