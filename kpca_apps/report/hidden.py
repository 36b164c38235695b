"""Keep hidden columns out of every view of a result."""

from __future__ import annotations

from dataclasses import replace

from kpca_apps.novelty.result import (
    ColumnProfile,
    OddCell,
    Pattern,
    RankedRow,
    Reason,
    RepeatedRows,
    ScreeningResult,
)

__all__ = ["without_hidden", "without_hidden_columns"]


def without_hidden(result: ScreeningResult) -> ScreeningResult:
    """Return the result with every value of a hidden column taken out.

    Parameters
    ----------
    result : ScreeningResult
        Result whose columns may be marked ``hidden``; only their names may be shown.

    Returns
    -------
    ScreeningResult
        The same result without their cells, distributions, identifiers and hints, and without
        their values in reasons, odd cells and repeated rows.
    """
    names = frozenset(column.name for column in result.columns if column.hidden)
    if not names:
        return result
    hide_id = any(column.hidden and column.role == "id" for column in result.columns)
    contours = result.contours
    if contours is not None and not names.isdisjoint((contours.x_name, contours.y_name)):
        contours = None
    return replace(
        result,
        ranked=tuple(_row(row, names, hide_id) for row in result.ranked),
        columns=without_hidden_columns(result.columns),
        patterns=tuple(_pattern(pattern, names) for pattern in result.patterns),
        contours=contours,
        odd_cells=tuple(_odd_cell(cell, names) for cell in result.odd_cells),
        duplicates=replace(
            result.duplicates,
            near=tuple(_repeated(group, names) for group in result.duplicates.near),
        ),
    )


def without_hidden_columns(columns: tuple[ColumnProfile, ...]) -> tuple[ColumnProfile, ...]:
    """Return the column profiles without the distributions of hidden columns."""
    return tuple(replace(c, distribution=None) if c.hidden else c for c in columns)


def _row(row: RankedRow, names: frozenset[str], hide_id: bool) -> RankedRow:
    return replace(
        row,
        id=None if hide_id else row.id,
        reasons=tuple(_reason(reason, names) for reason in row.reasons),
        hints=tuple(h for h in row.hints if not any(f'"{name}"' in h for name in names)),
        cells=tuple(cell for cell in row.cells if cell[0] not in names),
    )


def _repeated(group: RepeatedRows, names: frozenset[str]) -> RepeatedRows:
    def shown(cells: tuple[str, ...]) -> tuple[str, ...]:
        named = zip(group.columns, cells, strict=True)
        return tuple("(hidden)" if name in names else cell for name, cell in named)

    return replace(group, cells=tuple(map(shown, group.cells)))


def _pattern(pattern: Pattern, names: frozenset[str]) -> Pattern:
    told = {*pattern.columns, *(pattern.common or ())[:1]}
    return pattern if names.isdisjoint(told) else pattern.without_values()


def _reason(reason: Reason, names: frozenset[str]) -> Reason:
    if reason.column not in names:
        return reason
    return replace(reason, seen="hidden", expected="hidden", seen_value=None, expected_value=None)


def _odd_cell(cell: OddCell, names: frozenset[str]) -> OddCell:
    if cell.column not in names:
        return cell
    return replace(cell, seen="hidden", sentence="Its values are hidden.", suggestion="")
