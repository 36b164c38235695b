"""What the templates see: results turned into short, ready text, within fixed limits of size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import escape

from kpca_apps.novelty.result import (
    ColumnProfile,
    OddCell,
    RankedRow,
    Reason,
    RepeatedRows,
    ScreeningResult,
)
from kpca_apps.report.strips import Strip, strip_of
from kpca_apps.report.text import (
    count,
    cut,
    expected_text,
    is_missing,
    join,
    number,
    percent,
    reason_shares,
    scores_text,
)

__all__ = [
    "MAX_COLUMNS",
    "CellView",
    "ColumnView",
    "OddCellView",
    "ReasonView",
    "RepeatView",
    "RowView",
    "column_views",
    "odd_cell_views",
    "repeat_views",
    "row_views",
]

MAX_COLUMNS = 200  # rows of the column plan
MAX_CELL = 200  # characters of one cell
ROW_BUDGET = 2_500  # bytes of all cells of one row; with MAX_ROWS it bounds the page
MAX_REASONS = 3
MAX_HINTS = 2
MAX_HINT = 240  # characters of one hint


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
