"""Results of novelty detection as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import escape
from numpy.typing import NDArray

from kpca_apps.novelty.result import (
    CategoryProfile,
    ColumnProfile,
    ComparisonResult,
    NumericProfile,
    OddCell,
    RankedRow,
    Reason,
    RepeatedRows,
    ScreeningResult,
)
from kpca_apps.report.novelty.figures import evaluation_drawings, screening_drawings
from kpca_apps.report.novelty.text import (
    MAX_ROWS,
    PRECISION,
    ROC,
    expected_text,
    headline,
    is_missing,
    reason_shares,
    scores_text,
    standing,
    verdict,
    without_hidden,
    without_hidden_columns,
)
from kpca_apps.report.page import MAX_SENTENCE, make_page, setting_text
from kpca_apps.report.text import count, cut, join, number, percent, plain

__all__ = ["WIDTH", "render_comparison", "render_screening", "strip_of"]

N_CARDS = 5
N_ODD_CELLS = 5  # of those odd by themselves, outside the fold
MAX_PATTERNS = 5
N_WARNINGS_ON_TOP = 2
MAX_NOTES = 50  # warnings listed in full
MAX_COLUMNS = 200  # rows of the column plan
MAX_CELL = 200  # characters of one cell
ROW_BUDGET = 2_500  # bytes of all cells of one row; with MAX_ROWS it bounds the page
MAX_REASONS = 3
MAX_HINTS = 2
MAX_HINT = 240  # characters of one hint
WIDTH = 200.0  # of the drawing, in its own units
HEIGHT = 30.0
BASE = 27.0  # where bands and bars stand
MARGIN = 8.0  # room for half a mark at either end
MAX_STRETCH = 1.0  # how many widths of the band the axis may grow to reach a value


def render_screening(result: ScreeningResult) -> str:
    """Render a screening as a page that needs nothing beside itself.

    Parameters
    ----------
    result : ScreeningResult
        Result of a screening; values of hidden columns do not reach the page.

    Returns
    -------
    str
        HTML, under 1 MB however many rows, the same bytes for the same result.
    """
    shown = without_hidden(result)
    rows = row_views(shown, shown.ranked[:MAX_ROWS])
    sentence = headline(shown)
    return make_page(
        "screening.html.j2",
        result=shown,
        title=plain(sentence),
        sentence=sentence,
        cards=row_views(shown, shown.oddest_of_each_kind[:N_CARDS]),
        patterns=[cut(pattern.sentence, MAX_SENTENCE) for pattern in shown.patterns[:MAX_PATTERNS]],
        n_patterns=len(shown.patterns),
        rows=rows,
        n_more_rows=len(shown.scores) - len(rows),
        odd_cells=odd_cell_views(shown.odd_cells),
        n_shown_cells=N_ODD_CELLS,
        cells_in_lines=any(cell.line is not None for cell in shown.odd_cells),
        repeats=repeat_views(shown),
        drawings=screening_drawings(shown),
        sources=[("Table", shown.source)]
        + ([("Reference", shown.reference)] if shown.reference else []),
        **_shared(shown),
    )


def render_comparison(result: ComparisonResult) -> str:
    """Render a comparison with rivals as a page that needs nothing beside itself.

    Parameters
    ----------
    result : ComparisonResult
        Methods judged against known labels.

    Returns
    -------
    str
        HTML, the same bytes for the same result.
    """
    return make_page(
        "comparison.html.j2",
        result=result,
        title=standing(result.evaluations, ROC) or "There is no rival to compare with.",
        by_precision=standing(result.evaluations, PRECISION),
        sources=[("Table", result.source)],
        **_shared(result),
    )


def _shared(result: ScreeningResult | ComparisonResult) -> dict[str, Any]:
    """Gather what both kinds of page show."""
    warnings = [cut(text, MAX_SENTENCE) for text in result.warnings]
    columns = without_hidden_columns(result.columns)
    return {
        "warnings": warnings[:MAX_NOTES],
        "top_warnings": warnings[:N_WARNINGS_ON_TOP],
        "n_warnings": len(warnings),
        "columns": column_views(columns),
        "n_more_columns": max(len(columns) - MAX_COLUMNS, 0),
        "evaluations": [
            {
                "evaluation": evaluation,
                "verdict": verdict(evaluation),
                "drawings": drawings,
                "methods": sorted(evaluation.methods, key=lambda curve: (-curve.auroc, curve.name)),
            }
            for evaluation, drawings in zip(
                result.evaluations, evaluation_drawings(result.evaluations), strict=True
            )
        ],
        "settings": [(key, setting_text(value)) for key, value in sorted(result.settings.items())],
        "versions": sorted(result.versions.items()),
    }


@dataclass(frozen=True)
class ReasonView:
    """One reason, ready to show; `seen` and `expected` are empty for hidden columns."""

    column: str
    share: str
    seen: str
    expected: str
    about: str
    hidden: bool
    strip: Strip | None


@dataclass(frozen=True)
class CellView:
    """One cell of a row of the input."""

    column: str
    text: str


@dataclass(frozen=True)
class RepeatView:
    """One group of repeated rows, ready to show; `cells` hold what a row reads in a column."""

    kind: str
    rows: str
    lines: str
    columns: str
    cells: str


@dataclass(frozen=True)
class RowView:
    """One ranked row, ready to show; `rarity` is its p-value, or "1 in N"."""

    rank: int
    id: str
    row: int
    line: int | None
    score: str
    threshold: str
    score_value: float
    rarity: str
    rarity_value: float | None
    flagged: bool
    reasons: tuple[ReasonView, ...]
    hints: tuple[str, ...]
    note: str
    cells: tuple[CellView, ...]
    n_more_cells: int


@dataclass(frozen=True)
class ColumnView:
    """One line of the column plan."""

    name: str
    role: str
    why: str
    used: bool
    hidden: bool
    n_missing: int
    n_distinct: int
    share: float
    share_text: str


@dataclass(frozen=True)
class OddCellView:
    """One cell that is odd by itself; `more` says where else the same stands."""

    place: int
    more: str
    column: str
    kind: str
    seen: str
    sentence: str
    suggestion: str


def odd_cell_views(cells: tuple[OddCell, ...]) -> list[OddCellView]:
    """Return the cells that are odd by themselves, ready to show."""
    return [
        OddCellView(
            place=cell.row if cell.line is None else cell.line,
            more=_more_places(cell),
            column=cut(cell.column, MAX_CELL),
            kind=cell.kind,
            seen=cut(cell.seen),
            sentence=cut(cell.sentence, MAX_HINT),
            suggestion=cut(cell.suggestion),
        )
        for cell in cells
    ]


def _more_places(cell: OddCell) -> str:
    """Say where else in the column the same stands."""
    if cell.n_cells == 1:
        return ""
    places = [count(place) for place in cell.more_places]
    n_left = cell.n_cells - 1 - len(places)
    return join([*places, f"{count(n_left)} more"] if n_left else places)


def row_views(result: ScreeningResult, rows: Sequence[RankedRow]) -> list[RowView]:
    """Return some ranked rows, ready to show; their scores differ where they do."""
    profiles = {column.name: column for column in result.columns}
    scores, threshold = scores_text([row.score for row in rows], result.threshold.value)
    return [_row(row, score, threshold, profiles) for row, score in zip(rows, scores, strict=True)]


def repeat_views(result: ScreeningResult) -> list[RepeatView]:
    """Return the groups of rows that repeat others, ready to show, equal ones first."""
    found = result.duplicates
    return [
        *(_repeat(group, "equal") for group in found.equal),
        *(_repeat(group, "nearly equal") for group in found.near),
    ]


def _repeat(group: RepeatedRows, kind: str) -> RepeatView:
    more = group.n_rows - len(group.rows)
    ending = f" and {count(more)} more" if more else ""
    texts = [" / ".join(texts) for texts in zip(*group.cells, strict=True)]
    return RepeatView(
        kind=kind,
        rows=", ".join(map(count, group.rows)) + ending,
        lines="" if group.lines is None else ", ".join(map(count, group.lines)) + ending,
        columns=cut(", ".join(group.columns), MAX_CELL),
        cells=cut("; ".join(texts), MAX_CELL),
    )


def column_views(columns: tuple[ColumnProfile, ...]) -> list[ColumnView]:
    """Return the first columns of the plan, ready to show."""
    return [
        ColumnView(
            name=cut(column.name, MAX_CELL),
            role=column.role,
            why=cut(column.why, MAX_CELL),
            used=column.used,
            hidden=column.hidden,
            n_missing=column.n_missing,
            n_distinct=column.n_distinct,
            share=column.reason_share,
            share_text=percent(column.reason_share) if column.used else "",
        )
        for column in columns[:MAX_COLUMNS]
    ]


def _row(row: RankedRow, score: str, threshold: str, profiles: dict[str, ColumnProfile]) -> RowView:
    cells = _affordable(row.cells)
    return RowView(
        rank=row.rank,
        id=cut(row.id or "", MAX_CELL),
        row=row.row,
        line=row.line,
        score=score,
        threshold=threshold,
        score_value=row.score,
        rarity=_rarity(row),
        rarity_value=row.p_value if row.rarity is None else row.rarity.share,
        flagged=row.flagged,
        reasons=tuple(
            _reason(reason, share, profiles.get(reason.column))
            for reason, share in reason_shares(row)[:MAX_REASONS]
        ),
        hints=tuple(cut(hint, MAX_HINT) for hint in row.hints[:MAX_HINTS]),
        note=_note(row),
        cells=cells,
        n_more_cells=len(row.cells) - len(cells),
    )


def _reason(reason: Reason, share: str, profile: ColumnProfile | None) -> ReasonView:
    about, expected = expected_text(reason)
    return ReasonView(
        column=cut(reason.column, MAX_CELL),
        share=share,
        seen="missing" if is_missing(reason.seen) else cut(reason.seen),
        expected="no value" if is_missing(reason.expected) else expected,
        about=about,
        hidden=profile is not None and profile.hidden,
        strip=strip_of(reason, profile),
    )


def _rarity(row: RankedRow) -> str:
    if row.rarity is not None:
        return row.rarity.words
    return "" if row.p_value is None else number(row.p_value, keep_zeros=True)


def _note(row: RankedRow) -> str:
    """Say why a row shows no reasons."""
    if row.reasons:
        return ""
    if row.explained:
        return "Every column reads what the rows most like it do."
    return "Reasons were not worked out this far down."


def _affordable(cells: tuple[tuple[str, str], ...]) -> tuple[CellView, ...]:
    """Keep the leading cells whose text fits the budget of a row."""
    kept: list[CellView] = []
    spent = 0
    for name, text in cells:
        cell = CellView(cut(name, MAX_CELL), cut(text, MAX_CELL))
        spent += len(str(escape(cell.column) + escape(cell.text)).encode()) + 60
        if spent > ROW_BUDGET:
            break
        kept.append(cell)
    return tuple(kept)


@dataclass(frozen=True)
class Mark:
    """A value on a strip: its place, and -1 or 1 where it lies beyond that end, else 0."""

    x: float
    y: float
    beyond: int = 0


@dataclass(frozen=True)
class Bar:
    """A bar of a category strip: left edge, top, width and height."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Strip:
    """Geometry of one strip: a band (SVG path) or bars, and up to two marks."""

    band: str
    bars: tuple[Bar, ...]
    seen: Mark | None
    expected: Mark | None


def strip_of(reason: Reason, profile: ColumnProfile | None) -> Strip | None:
    """Lay out the strip of one reason.

    Parameters
    ----------
    reason : Reason
        The value seen and the value expected.
    profile : ColumnProfile or None
        The column, with its distribution.

    Returns
    -------
    Strip or None
        ``None`` where there is nothing to draw: free text, hidden or missing values.
    """
    distribution = None if profile is None else profile.distribution
    if distribution is None or (reason.seen_value is None and reason.expected_value is None):
        return None
    if isinstance(distribution, NumericProfile):
        return _numeric_strip(reason, distribution)
    return _category_strip(reason, distribution)


def _numeric_strip(reason: Reason, profile: NumericProfile) -> Strip | None:
    values = [
        float(v) if isinstance(v, float | int) and np.isfinite(v) else None
        for v in (reason.seen_value, reason.expected_value)
    ]
    edges = np.asarray(profile.edges, dtype=np.float64)
    if len(edges) < 2 or not np.isfinite(edges).all() or values == [None, None]:
        return None
    low, high = float(edges[0]), float(edges[-1])
    if high <= low:  # a column of one value still needs a width to be drawn on
        low, high = low - 0.5, high + 0.5
    reach = MAX_STRETCH * (high - low)
    near = [v for v in values if v is not None and low - reach <= v <= high + reach]
    left, right = min([low, *near]), max([high, *near])
    scale = (WIDTH - 2 * MARGIN) / (right - left)

    def mark(value: float | None, y: float) -> Mark | None:
        if value is None:
            return None
        x = MARGIN + (min(max(value, left), right) - left) * scale
        return Mark(round(x, 1), y, int(value > right) - int(value < left))

    places = MARGIN + (np.clip(edges, low, high) - left) * scale
    return Strip(_band(places, profile.counts), (), mark(values[0], 19.0), mark(values[1], 19.0))


def _band(places: NDArray[np.float64], counts: NDArray[np.float64]) -> str:
    """Outline of the histogram; square roots keep thin tails visible."""
    heights = np.sqrt(np.maximum(np.asarray(counts, dtype=np.float64), 0))
    heights = heights / max(float(heights.max(initial=0.0)), 1.0) * (BASE - 5.0)
    steps = "".join(
        f"V{BASE - height:.1f}H{place:.1f}"
        for height, place in zip(heights, places[1:], strict=True)
    )
    return f"M{places[0]:.1f} {BASE:.1f}{steps}V{BASE:.1f}Z"


def _category_strip(reason: Reason, profile: CategoryProfile) -> Strip | None:
    levels = list(profile.levels)
    counts = [*profile.counts, profile.n_other]
    known = {level: place for place, level in enumerate(levels)}
    places = [
        None if value is None else known.get(str(value), len(levels))
        for value in (reason.seen_value, reason.expected_value)
    ]
    n_slots = len(levels) + int(profile.n_other > 0 or len(levels) in places)
    if n_slots == 0:
        return None
    slot = min((WIDTH - 2 * MARGIN) / n_slots, 40.0)
    tallest = max(*counts, 1)
    bars = tuple(
        Bar(
            round(MARGIN + (place + 0.1) * slot, 1),
            round(BASE - n / tallest * 15.0, 1),
            round(0.8 * slot, 1),
            round(n / tallest * 15.0, 1),
        )
        for place, n in enumerate(counts[:n_slots])
    )

    # Two marks over the same bar stand side by side.
    shift = 5.0 if places[0] == places[1] else 0.0

    def mark(place: int | None, shift: float) -> Mark | None:
        if place is None:
            return None
        x = round(MARGIN + (place + 0.5) * slot + shift, 1)
        return Mark(x, round(bars[place].y - 6.0, 1))

    return Strip("", bars, mark(places[0], shift), mark(places[1], -shift))
