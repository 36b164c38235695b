"""Data for the script of a report: rows, odd cells and marks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from kpca_apps.novelty.result import MARKS_FORMAT, OddCell, RankedRow, ScreeningResult, UsualRow
from kpca_apps.report.novelty.text import expected_text, is_missing
from kpca_apps.report.text import cut, in_prose

MAX_CELL = 200  # maximum number of characters of a cell
MAJOR = 0.1  # minimum share of a row's score for a reason to be major
MAX_WHOLE = 300  # maximum number of rows that can be opened to show all cells
# Largest sizes in bytes: cells of one row, cells of all rows, and ranked rows.
ROW_BUDGET, CELLS_BUDGET, BUDGET = 2_500, 250_000, 1_230_000
SIDES = {"above": " too high", "below": " too low", "": ""}


def marks_of(result: ScreeningResult) -> dict[str, Any]:
    """Return the marks of rows, and the names of visible columns, from which row keys are made."""
    marks = []
    for one in result.lists.marks:
        mark = {"key": one.key, "mark": one.mark, "row": one.row}
        optional = {"line": one.line, "id": one.id, "note": one.note}
        marks.append(mark | {name: value for name, value in optional.items() if value})
    columns = [column.name for column in result.columns if not column.hidden]
    return {"format": MARKS_FORMAT, "columns": columns, "marks": marks}


# Fields of a row; an empty field is 0.
FIELDS = (
    "row", "line", "id", "key", "kind", "why", "major", "cells", "expected", "odd", "near", "seen",
    "group", "more",
)  # fmt: skip


def by_field(rows: Iterable[dict[str, Any]]) -> dict[str, list[Any]]:
    """Transpose rows to a dict with a list for each field."""
    values = [values_of(row) for row in rows]
    return dict(zip(FIELDS, map(list, zip(*values, strict=True)), strict=True)) if values else {}


def values_of(row: dict[str, Any]) -> list[Any]:
    """Return the values of a row, in the order of `FIELDS`."""
    return [row.get(name, 0) for name in FIELDS]


def work_of(
    result: ScreeningResult, listed: Sequence[RankedRow], cells: Sequence[OddCell]
) -> dict[str, Any]:
    """Return data on the listed rows and on the shown odd `cells`.

    Columns and kinds of reason are numbers; the common prefix of all keys is stored once.
    """
    # Number the names from 0; a new name gets the next number.
    place: dict[str, int] = defaultdict(
        lambda: len(place), {column.name: number for number, column in enumerate(result.columns)}
    )
    kinds: dict[str, int] = defaultdict(lambda: len(kinds))
    odd: dict[int, list[OddCell]] = {}
    for cell in result.findings.odd_cells:
        for row in (cell.row, *cell.more_rows):
            odd.setdefault(row, []).append(cell)
    usual = {row.row: row for row in result.lists.usual}
    prefix = listed[0].key[: _n_shared(one.key for one in listed)] if listed else ""
    # Find the leading column names that all these rows share: the page stores them only once.
    whole = [one.cells for one in listed[:MAX_WHOLE] if one.cells]
    whole += [one.cells for one in result.lists.usual]
    names = [[name for name, _ in cells] for cells in whole]
    compared = names[0][: _n_shared(names)] if names else []
    rows, beside, left = dict[int, Any](), dict[int, Any](), CELLS_BUDGET
    for number, one in enumerate(listed):
        shown, spent, near = list[tuple[str, str]](), 0, list[UsualRow]()
        if number < MAX_WHOLE and left > 0:
            shown, spent = _affordable(one.cells[: len(compared)])
            near = [usual[row] for row in one.nearest]
        for other in near:
            if other.row not in beside:
                cells_of, more = _affordable(other.cells[: len(compared)])
                beside[other.row] = _place(other) | {"cells": [text for _, text in cells_of]}
                spent += more
        left -= spent
        reasons = one.reasons[: None if number < MAX_WHOLE else 1]
        meant = {cell.column: cut(cell.suggestion, MAX_CELL) for cell in odd.get(one.row, ())}
        is_shown = {name for name, _ in shown}
        found = {
            "why": [place[reason.column] for reason in reasons],
            "major": sum(reason.share >= MAJOR for reason in reasons),
            "cells": [text for _, text in shown],
            "expected": {
                place[r.column]: "no value" if is_missing(r.expected) else "".join(expected_text(r))
                for r in reasons
            },
            "odd": {place[name]: text for name, text in meant.items()},
            "near": [other.row for other in near],
            # Actual values in columns whose cells are not among the row's stored `cells`.
            "seen": {
                place[r.column]: "" if is_missing(r.seen) else cut(r.seen, MAX_CELL)
                for r in reasons
                if r.column not in is_shown
            },
            "group": cut(one.group, 60),
            "more": int(number < MAX_WHOLE and len(shown) < len(one.cells)),
        }
        rows[one.row] = _place(one) | {
            "key": one.key.removeprefix(prefix),
            "kind": kinds[_kind(one)],
            **{name: value for name, value in found.items() if value},
        }
    return {
        "columns": [cut(name, MAX_CELL) for name in place],
        "kinds": list(kinds),
        "keys": prefix,
        "compared": [place[name] for name in compared],
        "rows": rows,
        "usual": beside,
        "cells": [_cell(cell, result) for cell in cells],
    }


def _n_shared(all_of: Iterable[Sequence[str]]) -> int:
    return sum(1 for _ in takewhile(lambda of: len({*of}) == 1, zip(*all_of, strict=False)))


def _place(one: RankedRow | UsualRow) -> dict[str, Any]:
    found: dict[str, Any] = {"row": one.row}
    if one.line is not None:
        found["line"] = one.line
    if one.id:
        found["id"] = cut(one.id, MAX_CELL)
    return found


def _kind(row: RankedRow) -> str:
    sides = [f"{cut(column, 60)}{SIDES[side]}" for column, side in row.kind_of_reason]
    return in_prose(sides) if sides else "no reason was sought or found"


def _cell(cell: OddCell, result: ScreeningResult) -> dict[str, Any]:
    found: dict[str, Any] = {
        "row": cell.row,
        "fix": [cut(text, MAX_CELL) for text in (cell.column, cell.seen, cell.suggestion)],
    }
    # An odd cell that several rows share gets no key: it is marked in the list of rows instead.
    key = result.lists.keys.get(cell.row)
    if key and not cell.more_rows:
        found["key"] = key
    if cell.line is not None:
        found["line"] = cell.line
    if name := result.lists.ids.get(cell.row):
        found["id"] = cut(name, MAX_CELL)
    return found


def _affordable(cells: Sequence[tuple[str, str]]) -> tuple[list[tuple[str, str]], int]:
    """Return the first cells whose texts fit into the budget of a row, and their size."""
    kept: list[tuple[str, str]] = []
    spent = 0
    for name, whole in cells:
        text = cut(whole, MAX_CELL)
        size = len(text.encode()) + 8
        if spent + size > ROW_BUDGET:
            break
        spent += size
        kept.append((name, text))
    return kept, spent
