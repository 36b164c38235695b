"""What the script of a page works with: whole rows, usual rows beside them, odd cells and marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kpca_apps.novelty.result import (
    MARKS_FORMAT,
    OddCell,
    RankedRow,
    Reason,
    ScreeningResult,
    UsualRow,
)
from kpca_apps.report.novelty.text import expected_text, is_missing
from kpca_apps.report.text import cut, in_prose, plural

MAX_CELL = 200  # characters of one cell
# Bytes of the cells of one row, and of all rows together: with the words of 2,000 ranked rows the
# page keeps below 1.5 MB.
ROW_BUDGET, BUDGET = 2_500, 450_000
SIDES = {"above": " too high", "below": " too low", "": ""}


def marks_of(result: ScreeningResult) -> dict[str, Any]:
    """Return the marks of a page, and the names of the columns that its keys are of."""
    marks = []
    for one in result.marks:
        mark = {"key": one.key, "mark": one.mark, "row": one.row}
        optional = {"line": one.line, "id": one.id, "note": one.note}
        marks.append(mark | {name: value for name, value in optional.items() if value})
    columns = [column.name for column in result.columns if not column.hidden]
    return {"format": MARKS_FORMAT, "columns": columns, "marks": marks}


def work_of(
    result: ScreeningResult, listed: Sequence[RankedRow], cells: Sequence[OddCell]
) -> dict[str, Any]:
    """Return what is known of the rows that are listed, and of the odd `cells` that are shown."""
    names = [column.name for column in result.columns]
    place = {name: number for number, name in enumerate(names)}
    odd: dict[int, list[OddCell]] = {}
    for cell in result.odd_cells:
        for row in (cell.row, *cell.more_rows):
            odd.setdefault(row, []).append(cell)
    usual = {row.row: row for row in result.usual_rows}
    kinds, rows, beside, left = dict[str, int](), dict[str, Any](), dict[str, Any](), BUDGET
    for one in listed:
        near = [usual[row] for row in one.nearest]
        budget = min(ROW_BUDGET, max(left, 0))
        shown, spent = _affordable(one.cells, budget)
        for other in near:
            if str(other.row) not in beside:
                compared = _usual(other, place, budget)
                beside[str(other.row)] = compared
                spent += sum(len(text) + 5 for text in compared["cells"].values())
        left -= spent
        kind = _kind(one)
        n_more = len(one.cells) - len(shown)
        rows[str(one.row)] = _place(one) | {
            "key": one.key,
            "kind": kinds.setdefault(kind, len(kinds)),
            "why": [place[reason.column] for reason in one.reasons],
            "shown": [place[name] for name, _ in shown],
            "cells": [text for _, text in shown],
            "expected": {
                place[reason.column]: _expected(reason)
                for reason in one.reasons
                if reason.expected_value is not None or reason.expected
            },
            "odd": sorted({place[cell.column] for cell in odd.get(one.row, ())}),
            "near": [other.row for other in near],
            "fixes": [*_fixes(odd.get(one.row, ()), one.reasons)],
            **({"group": cut(one.group, 60)} if one.group else {}),
            **({"left": f"{plural(n_more, 'more column')} in the scored table."} if n_more else {}),
        }
    return {
        "columns": [cut(name, MAX_CELL) for name in names],
        "kinds": list(kinds),
        "rows": rows,
        "usual": beside,
        "cells": [_cell(cell, result) for cell in cells],
    }


def _place(one: RankedRow | UsualRow) -> dict[str, Any]:
    found: dict[str, Any] = {"row": one.row}
    if one.line is not None:
        found["line"] = one.line
    if one.id:
        found["id"] = cut(one.id, MAX_CELL)
    return found


def _kind(row: RankedRow) -> str:
    """Name the kind of reason of a row."""
    sides = [f"{cut(column, 60)}{SIDES[side]}" for column, side in row.kind_of_reason]
    return in_prose(sides) if sides else "no reason was sought or found"


def _expected(reason: Reason) -> str:
    if is_missing(reason.expected):
        return "no value"
    return "".join(expected_text(reason))


def _fixes(cells: Iterable[OddCell], reasons: Iterable[Reason]) -> Iterator[tuple[str, str, str]]:
    """List what a wrong row may need: column, what it reads, what was probably meant."""
    told = set()
    for cell in cells:
        told.add(cell.column)
        yield cut(cell.column, MAX_CELL), cut(cell.seen, MAX_CELL), cut(cell.suggestion, MAX_CELL)
    for reason in reasons:
        if reason.column not in told:
            seen = "" if is_missing(reason.seen) else cut(reason.seen, MAX_CELL)
            yield cut(reason.column, MAX_CELL), seen, _expected(reason)


def _usual(row: UsualRow, place: dict[str, int], budget: int) -> dict[str, Any]:
    cells, _ = _affordable(row.cells, budget)
    return _place(row) | {"cells": {place[name]: text for name, text in cells}}


def _cell(cell: OddCell, result: ScreeningResult) -> dict[str, Any]:
    found: dict[str, Any] = {
        "row": cell.row,
        "fix": [cut(text, MAX_CELL) for text in (cell.column, cell.seen, cell.suggestion)],
    }
    # Rows of several cells that read alike are marked each by itself, where they are listed.
    key = result.row_keys.get(cell.row)
    if key and not cell.more_rows:
        found["key"] = key
    if cell.line is not None:
        found["line"] = cell.line
    if name := result.row_ids.get(cell.row):
        found["id"] = cut(name, MAX_CELL)
    return found


def _affordable(cells: Sequence[tuple[str, str]], budget: int) -> tuple[list[tuple[str, str]], int]:
    """Keep the leading cells whose texts fit a budget, and say what they take of it."""
    kept: list[tuple[str, str]] = []
    spent = 0
    for name, whole in cells:
        text = cut(whole, MAX_CELL)
        spent += len(text.encode()) + 8
        if spent > budget:
            break
        kept.append((name, text))
    return kept, spent
