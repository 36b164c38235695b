"""What assistants are told of results: the first of all lists, each text cut to a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kpca_apps.names import one_line, quoted_cell
from kpca_apps.novelty.relations.rules import HeldRules
from kpca_apps.novelty.relations.sentences import broken_in, phrase, sentence
from kpca_apps.novelty.relations.table_rules import BrokenRow
from kpca_apps.novelty.result import (
    ListedRow,
    MovedColumn,
    RankedRow,
    ScreeningDiff,
    ScreeningResult,
)
from kpca_apps.report.novelty.text import diff_headline, headline
from kpca_apps.report.text import Verbatim

CELL, SENTENCE = 120, 600  # characters
REASONS, FEW = 3, 5  # of a row; of what is told beside the rows
MOST_RULES = 50

Answer = dict[str, Any]


def screening(result: ScreeningResult, top: int) -> Answer:
    """Tell what a screening found, with its oddest rows."""
    every = (*result.source.notes, *result.warnings)
    notes, more = [_said(note) for note in every[:FEW]], len(every) - FEW
    return {
        "says": _said("".join(map(_quoted_part, headline(result)))),
        "n_rows": result.n_rows,
        "n_flagged": result.n_flagged,
        "threshold": _said(result.threshold.statement),
        "how_rare": _said(result.scale.statement) if result.scale else None,
        "accepted": _said(result.accepted.statement) if result.accepted else None,
        "rows": [row(one) for one in result.ranked[:top]],
        "n_odd_cells": result.n_odd_cells,
        "odd_cells": [
            {
                "row": cell.row,
                "line": cell.line,
                "column": _cell(cell.where),
                "reads": _cell(cell.seen),
                "probably_meant": _cell(cell.suggestion),
                "why": _said(cell.sentence),
                "n_cells": cell.n_cells,
            }
            for cell in result.odd_cells[:top]
        ],
        "patterns": [_said(pattern.sentence) for pattern in result.patterns[:FEW]],
        "repeated_rows": _said(result.duplicates.statement),
        "moved_columns": _moved(result.moved),
        "hidden_columns": sorted(map(_cell, result.hidden_columns)),
        "notes": [*notes, *[f"{more} more notes are in result.json."] * (more > 0)],
    }


def row(one: RankedRow, reasons: int = REASONS) -> Answer:
    """Tell of one row where it stands and why it is odd."""
    return {
        "rank": one.rank,
        "row": one.row,
        "line": one.line,
        "id": None if one.id is None else _cell(one.id),
        "score": one.score,
        "how_rare": one.rarity.words if one.rarity else None,
        "p_value": one.p_value,
        "flagged": one.flagged,
        "group": _cell(one.group),
        "reasons": [
            {
                "column": _cell(reason.column),
                "reads": _cell(reason.seen),
                "expected": _cell(reason.expected),
                "share": reason.share,
                "together_with": [_cell(name) for name in reason.together if name != reason.column],
            }
            for reason in one.reasons[:reasons]
        ],
        "hints": [_said(hint) for hint in one.hints[:FEW]],
    }


def diff(result: ScreeningDiff, top: int) -> Answer:
    """Tell what is otherwise in the second of two screenings."""
    return {
        "says": _said(diff_headline(result)),
        "matched_by": _said(result.matched_by),
        "n_new_on_the_list": len(result.appeared),
        "new_on_the_list": _listed(result.appeared, top),
        "n_gone_from_it": len(result.gone),
        "gone_from_it": _listed(result.gone, top),
        "n_on_both": len(result.stayed),
        "moved_columns": _moved(result.moved),
        "added_columns": [_cell(name) for name in result.added_columns[:MOST_RULES]],
        "removed_columns": [_cell(name) for name in result.removed_columns[:MOST_RULES]],
        "settings_changed": [
            [_cell(text) for text in changed] for changed in result.settings_changed[:MOST_RULES]
        ],
        "notes": [_said(warning) for warning in result.warnings[:FEW]],
    }


def rules(found: HeldRules) -> Answer:
    """Tell the rules of a table."""
    return {
        "table": _cell(found.table),
        "n_rows": found.n_rows,
        "n_rules": len(found.rules),
        "rules": [_said(sentence(one, found.by_name)) for one in found.rules[:MOST_RULES]],
        "notes": [_said(note) for note in found.notes[:FEW]],
    }


def rule_check(checked: HeldRules, rows: tuple[tuple[BrokenRow, ...], ...], top: int) -> Answer:
    """Tell which rules a table breaks, each with its first rows."""
    broken = [
        {
            "rule": _said(phrase(held.rule, checked.by_name, checked.hidden)),
            "says": _said(broken_in(held)),
            "rows": [
                {
                    "row": one.row,
                    "line": one.line,
                    "id": _cell(one.id),
                    "cells": {
                        _cell(name): _cell(text)
                        for name, text in zip(held.rule.columns, one.cells, strict=True)
                    },
                }
                for one in found[:top]
            ],
        }
        for held, found in zip(checked.rules, rows, strict=True)
        if held.n_broken
    ]
    return {
        "table": _cell(checked.table),
        "n_rows": checked.n_rows,
        "n_rules": len(checked.rules),
        "n_broken_rules": len(broken),
        "broken": broken[:MOST_RULES],
        "notes": [_said(note) for note in checked.notes[:FEW]],
    }


def _listed(rows: Sequence[ListedRow], top: int) -> list[Answer]:
    return [
        {
            "name": _cell(one.name),
            "rank_before": one.before,
            "rank_now": one.now,
            "elsewhere": "" if None not in (one.before, one.now) else one.elsewhere,
            "reason": _said(one.reason),
            "changed": [
                {"column": _cell(name), "before": _cell(before), "now": _cell(now)}
                for name, before, now in one.changed[:REASONS]
            ],
        }
        for one in rows[:top]
    ]


def _moved(moved: Sequence[MovedColumn]) -> list[Answer]:
    return [
        {
            "column": _cell(one.column),
            "what": one.what,
            "size": one.size,
            "now_and_before": _said(one.words),
        }
        for one in moved[:FEW]
    ]


def _cell(text: str) -> str:
    return one_line(text, CELL)


def _quoted_part(part: str) -> str:
    """Quote what a sentence has from the table."""
    return quoted_cell(part) if isinstance(part, Verbatim) else part


def _said(text: str) -> str:
    return one_line(text, SENTENCE)


def finite(value: Any) -> Any:
    """Return an answer in which numbers that are not finite are None."""
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
