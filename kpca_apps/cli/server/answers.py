"""What assistants are told: some fields of each result, the first of lists, texts cut to a line."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any

from kpca_apps.names import one_line, quoted_cell
from kpca_apps.novelty.relations.rules import HeldRules
from kpca_apps.novelty.relations.sentences import broken_in, phrase, sentence
from kpca_apps.novelty.relations.table_rules import BrokenRow
from kpca_apps.novelty.result import (
    AcceptedRows,
    DuplicateRows,
    ListedRow,
    OddCell,
    Pattern,
    RankedRow,
    Reason,
    ScoreScale,
    ScreeningDiff,
    ScreeningResult,
)
from kpca_apps.report.novelty.text import diff_headline, headline
from kpca_apps.report.text import Verbatim

CELL, SENTENCE = 120, 600  # characters
REASONS, FEW = 3, 5  # of a row; of what is told beside the rows
MOST_RULES = 50
# Fields that hold names and cells, and not sentences.
CELLS = frozenset("column where seen expected suggestion together id group name changed".split())
# What is told of each type, by the last name; of any other all its fields.
TOLD = {
    AcceptedRows: "n_rows statement",
    DuplicateRows: "statement",
    ListedRow: "name before now elsewhere reason changed",
    OddCell: "row line where seen suggestion sentence n_cells",
    Pattern: "sentence",
    RankedRow: "rank row line id score rarity p_value flagged group reasons hints",
    Reason: "column seen expected share together",
    ScoreScale: "statement",
    ScreeningDiff: "matched_by added_columns removed_columns settings_changed moved",
    ScreeningResult: "n_rows n_flagged threshold rows.scale lists.accepted findings.n_odd_cells "
    "findings.patterns findings.duplicates findings.moved",
}

Answer = dict[str, Any]


def told(value: Any, most: int = FEW, name: str = "") -> Any:
    """Return what assistants are told of a field of this name: the first `most` of lists."""
    if isinstance(value, str):
        return one_line(value, CELL if name in CELLS else SENTENCE)
    if is_dataclass(value):
        own: type = type(value)
        known = next((TOLD[kind] for kind in own.__mro__ if kind in TOLD), "")
        names = known.split() if known else [one.name for one in fields(value)]
        pairs = [(one.rpartition(".")[2], attrgetter(one)(value)) for one in names]
        return {name: told(one, most, name) for name, one in pairs}
    if isinstance(value, dict):
        return {told(key, most, "name"): told(one, most, key) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [told(one, most, name) for one in value[:most]]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def screening(result: ScreeningResult, top: int) -> Answer:
    """Tell what a screening found, with its oddest rows."""
    notes = (*result.source.notes, *result.run.warnings)
    more = len(notes) - FEW
    parts = (quoted_cell(p) if isinstance(p, Verbatim) else p for p in headline(result))
    return {
        **told(result),
        "says": told("".join(parts)),
        "ranked": [told(one, REASONS) for one in result.ranked[:top]],
        "odd_cells": told(result.findings.odd_cells, top),
        "hidden_columns": sorted(one_line(one, CELL) for one in result.hidden_columns),
        "notes": [*told(notes), *[f"{more} more notes are in result.json."] * (more > 0)],
    }


def diff(result: ScreeningDiff, top: int) -> Answer:
    """Tell what is otherwise in the second of two screenings."""
    lists = {name: getattr(result, name) for name in ("appeared", "gone")}
    return {
        **told(result, MOST_RULES),
        "says": told(diff_headline(result)),
        **{f"n_{name}": len(rows) for name, rows in lists.items()},
        **{name: [told(row, REASONS) for row in rows[:top]] for name, rows in lists.items()},
        "notes": told(result.run.warnings),
    }


def rules(found: HeldRules) -> Answer:
    """Tell the rules of a table."""
    told_rules = told([sentence(one, found.by_name) for one in found.rules], MOST_RULES)
    return _of_rules(found) | {"rules": told_rules, "notes": told(found.notes)}


def _of_rules(rules: HeldRules) -> Answer:
    name = told(rules.table, name="name")
    return {"table": name, "n_rows": rules.n_rows, "n_rules": len(rules.rules)}


def rule_check(checked: HeldRules, rows: Iterable[tuple[BrokenRow, ...]], top: int) -> Answer:
    """Tell which rules a table breaks, each with its first rows."""
    broken = [
        {
            "rule": told(phrase(held.rule, checked.by_name, checked.hidden)),
            "says": told(broken_in(held)),
            "columns": told(held.rule.columns, MOST_RULES, "column"),
            "rows": [told(row, MOST_RULES) for row in found[:top]],
        }
        for held, found in zip(checked.rules, rows, strict=True)
        if held.n_broken
    ]
    return {
        **_of_rules(checked),
        "n_broken_rules": len(broken),
        "broken": broken[:MOST_RULES],
        "notes": told(checked.notes),
    }
