"""Render the papers' experiments as one self-contained HTML page and figure files."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from string import ascii_lowercase
from typing import Any

from kpca_apps.papers.figures import Table
from kpca_apps.papers.result import GalleryResult, Reproduction
from kpca_apps.report.drawing import Drawing, to_files
from kpca_apps.report.page import make_page
from kpca_apps.report.papers.figures import draw, is_wide
from kpca_apps.report.papers.text import (
    MARKS,
    cell,
    headline,
    left_out,
    standing,
    tolerance,
    work_of,
)

View = dict[str, Any]  # names and values that a template fills in
# A numeric cell contains a number, a percentage or a placeholder, or two of these.
JOINED = re.compile(r" / | \u00b1 ")
NUMBER = re.compile(r"[-+\u00b1<]? ?[\d.,]*\d(e[-+]?\d+)?( ?%)?")
NONE = frozenset(("", "-", "\u2013", "n.a.", "none"))


def render_gallery(result: GalleryResult) -> str:
    """Render experiments as a self-contained page."""
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
        left_out=left_out(result),
        sections=sections,
        papers=papers,
        result=result,
        versions=sorted(result.versions.items()),
        cell=cell,
        tolerance=tolerance,
        verdict_marks=MARKS,
    )


def gallery_figures(result: GalleryResult) -> dict[str, bytes]:
    """Draw all figures; return PNGs by file name without suffix, such as ``"clusters-1"``."""
    return to_files(*(_drawn(one) for one in result.reproductions))


def _drawn(one: Reproduction) -> list[Drawing]:
    return [draw(of, f"{one.name}-{place}") for place, of in enumerate(one.outcome.figures, 1)]


def _section(one: Reproduction) -> View:
    counts = Counter(claim.why for claim in one.outcome.claims if claim.why)
    often = [why for why, n in counts.items() if n > 1]
    return {
        "reproduction": one,
        "standing": standing(one),
        "marks": [MARKS[claim.verdict] for claim in one.outcome.claims],
        # The letter by which claims refer to a reason that several of them share.
        "letters": dict(zip(often, ascii_lowercase, strict=False)),
        "tables": [(table, numeric_columns(table)) for table in one.outcome.tables],
        "drawings": list(zip(_drawn(one), map(is_wide, one.outcome.figures), strict=True)),
    }


def numeric_columns(table: Table) -> list[bool]:
    """Return which columns of a table are numeric."""
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.heads)
    parted = [[part for text in column for part in JOINED.split(text)] for column in columns]
    return [all(part in NONE or NUMBER.fullmatch(part) for part in parts) for parts in parted]
