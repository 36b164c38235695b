"""Shorten results to answers for AI assistants that call the server's tools."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any

from kpca_apps.names import one_line, quoted_cell
from kpca_apps.novelty.relations.rule import HeldRules
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

CELL, SENTENCE = 120, 600  # maximum numbers of characters of a cell, and of a sentence
REASONS, FEW = 3, 5  # maximum numbers of reasons of a row, and of items of other lists
MOST_RULES = 50
# Fields that contain names or cells rather than sentences.
CELLS = frozenset("column where seen expected suggestion together id group name changed".split())
# Fields that answers contain, by type; other types keep all fields.
FIELDS = {
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


def brief(value: Any, most: int = FEW, name: str = "") -> Any:
    """Shorten a value: cut texts as the field `name` requires, and lists to `most` items."""
    if isinstance(value, str):
        return one_line(value, CELL if name in CELLS else SENTENCE)
    if is_dataclass(value):
        own: type = type(value)
        known = next((FIELDS[kind] for kind in own.__mro__ if kind in FIELDS), "")
        names = known.split() if known else [one.name for one in fields(value)]
        pairs = [(field.rpartition(".")[2], attrgetter(field)(value)) for field in names]
        return {field: brief(item, most, field) for field, item in pairs}
    if isinstance(value, dict):
        return {brief(key, most, "name"): brief(item, most, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [brief(item, most, name) for item in value[:most]]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def screening(result: ScreeningResult, top: int) -> Answer:
    """Return the findings of a screening, with its oddest rows."""
    notes = (*result.source.notes, *result.run.warnings)
    more = len(notes) - FEW
    parts = (quoted_cell(p) if isinstance(p, Verbatim) else p for p in headline(result))
    return {
        **brief(result),
        "says": brief("".join(parts)),
        "ranked": [brief(one, REASONS) for one in result.ranked[:top]],
        "odd_cells": brief(result.findings.odd_cells, top),
        "hidden_columns": sorted(one_line(one, CELL) for one in result.hidden_columns),
        "notes": [*brief(notes), *[f"{more} more notes are in result.json."] * (more > 0)],
    }


def diff(result: ScreeningDiff, top: int) -> Answer:
    """Return the differences between two screenings."""
    lists = {name: getattr(result, name) for name in ("appeared", "removed")}
    return {
        **brief(result, MOST_RULES),
        "says": brief(diff_headline(result)),
        **{f"n_{name}": len(rows) for name, rows in lists.items()},
        **{name: [brief(row, REASONS) for row in rows[:top]] for name, rows in lists.items()},
        "notes": brief(result.run.warnings),
    }


def rules(found: HeldRules) -> Answer:
    """Return the rules of a table."""
    texts = brief([sentence(one, found.by_name) for one in found.rules], MOST_RULES)
    return _of_rules(found) | {"rules": texts, "notes": brief(found.notes)}


def _of_rules(rules: HeldRules) -> Answer:
    name = brief(rules.table, name="name")
    return {"table": name, "n_rows": rules.n_rows, "n_rules": len(rules.rules)}


def rule_check(checked: HeldRules, rows: Iterable[tuple[BrokenRow, ...]], top: int) -> Answer:
    """Return the rules that a table breaks, each with its first rows."""
    broken = [
        {
            "rule": brief(phrase(held.rule, checked.by_name, checked.hidden)),
            "says": brief(broken_in(held)),
            "columns": brief(held.rule.columns, MOST_RULES, "column"),
            "rows": [brief(row, MOST_RULES) for row in found[:top]],
        }
        for held, found in zip(checked.rules, rows, strict=True)
        if held.n_broken
    ]
    return {
        **_of_rules(checked),
        "n_broken_rules": len(broken),
        "broken": broken[:MOST_RULES],
        "notes": brief(checked.notes),
    }
