"""Render results of novelty detection as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup, escape

from kpca_apps.novelty.result import (
    N_KINDS,
    REVEALED,
    ColumnProfile,
    ComparisonResult,
    GroupInfo,
    OddCell,
    Pattern,
    RankedRow,
    Reason,
    RepeatedRows,
    ScreenedTables,
    ScreeningDiff,
    ScreeningResult,
    clearest,
)
from kpca_apps.report.drawing import Drawing
from kpca_apps.report.novelty.figures import ScreeningDrawings, evaluation_drawings
from kpca_apps.report.novelty.strips import strip_of
from kpca_apps.report.novelty.text import (
    MAX_LISTED,
    MAX_ROWS,
    REST,
    diff_headline,
    expected_text,
    file_of,
    headline,
    index_headline,
    is_missing,
    method_sentence,
    reason_shares,
    row_name,
    scores_text,
    standing,
    verdict,
)
from kpca_apps.report.novelty.work import BUDGET, by_field, marks_of, values_of, work_of
from kpca_apps.report.page import MAX_SENTENCE, block, make_page, make_part, setting_text
from kpca_apps.report.text import count, cut, in_prose, number, plural

MAX_ALIKE = 3  # maximum number of similar rows named for a row
N_PLACES = 4  # maximum number of other rows named for an odd cell
N_ODD_CELLS = 5  # number of odd cells shown at first
MAX_RULES = 50
MAX_PATTERNS = 8
N_WARNINGS_ON_TOP = 2
MAX_NOTES = 50  # maximum number of warnings listed
MAX_COLUMNS = 200  # maximum number of rows in the table of columns
MAX_GROUPS = 101  # maximum number of groups listed
MAX_GROUP = 60  # maximum number of characters of a group's name
MAX_CELL = 200  # maximum number of characters of a cell
MAX_REASONS, MAX_FULL = 3, 300  # maximum numbers: reasons of a row, rows with several reasons
TAGS, TAGS_OF_REASON = 270, 120  # bytes that markup and numbers add to a row and to a reason
MAX_HINTS = 2
MAX_HINT = 240  # maximum number of characters of a hint


def render_screening(
    result: ScreeningResult, drawn: ScreeningDrawings | None = None, *, is_to_send: bool = False
) -> str:
    """Render a screening as a self-contained page of at most about 1.5 MB.

    A page to send is for people who must not get the rows. It contains only the cells it shows, and
    no keys of the rows, so its rows cannot be marked or opened.
    """
    if is_to_send:
        # Drop notes that say how the values of a hidden column follow from columns that are shown.
        run = result.run
        warnings = tuple(note for note in run.warnings if REVEALED not in note)
        n_doubts = sum(REVEALED not in note for note in run.warnings[: run.n_doubts])
        # A page that is sent has no files next to it, so it must not name a file.
        run = replace(run, warnings=warnings, n_doubts=n_doubts, next_steps=(), flagged_file="")
        result = replace(result, run=run)
    drawn = drawn or ScreeningDrawings.of(result)
    first = _first_screen(result)
    listed = result.ranked[:MAX_LISTED]
    work = work_of(result, listed, clearest(result.findings.odd_cells))
    rows = _rows(result, listed)
    rows = rows[: _n_affordable(rows, work)]
    work["rows"] = by_field(work["rows"][row["row"]] for row in rows)
    return make_page(
        "screening.html.j2",
        parts=("marks.js", "work.js", "marks.css", "work.css"),
        layout="page.html.j2",
        is_to_send=is_to_send,
        work=None if is_to_send else block(work),
        marks=None if is_to_send else block(marks_of(result)),
        title="".join(headline(result)),
        rows=rows,
        n_more_rows=result.n_judged - len(rows),
        repeats=_repeats(result),
        groups=[_group(group) for group in result.groups[:MAX_GROUPS]],
        n_more_groups=len(result.groups[MAX_GROUPS:]),
        max_moved=MAX_COLUMNS,
        plane=drawn.plane,
        figure_folds=drawn.folds,
        sources=[("Table", result.source)]
        + ([("Reference", result.reference)] if result.reference else []),
        top_warnings=_top_warnings(result),
        **_shared(result, drawn.evaluations),
        **first,
    )


def _n_affordable(rows: Sequence[Mapping[str, Any]], work: Mapping[str, Any]) -> int:
    left = BUDGET - len(block(work["usual"]).encode())
    for place, row in enumerate(rows):
        # Count markup and texts, with quotes and brackets escaped.
        texts = [str(escape(text)) for text in (row["id"], row["file"], *row["hints"])]
        texts += [
            str(escape(v)) for r in row["reasons"] for v in (r["column"], r["seen"], r["expected"])
        ]
        left -= TAGS + TAGS_OF_REASON * len(row["reasons"]) + sum(len(t.encode()) for t in texts)
        left -= len(block(values_of(work["rows"][row["row"]])).encode())
        if left < 0:
            return place
    return len(rows)


def render_in_notebook(result: ScreeningResult) -> str:
    """Render the start of a report for a notebook, without script or figures."""
    top, first = _top_warnings(result), _first_screen(result)
    return make_part(
        "screening.html.j2",
        layout="notebook.html.j2",
        is_to_send=False,
        top_warnings=top,
        n_warnings=len(top),
        n_more_warnings=len(result.run.warnings) - len(top),
        **first,
    )


def render_comparison(result: ComparisonResult) -> str:
    """Render a comparison with baselines as a self-contained page."""
    return make_page(
        "comparison.html.j2",
        result=result,
        title=standing(result.evaluations, "auroc") or "There is no baseline to compare with.",
        by_precision=standing(result.evaluations, "auprc"),
        sources=[("Table", result.source)],
        top_warnings=[cut(text, MAX_SENTENCE) for text in result.run.warnings[:N_WARNINGS_ON_TOP]],
        **_shared(result, evaluation_drawings(result.evaluations)),
    )


def render_index(result: ScreenedTables) -> str:
    """Render the index of several screenings, with links to their reports."""
    return make_page(
        "index.html.j2",
        parts=("index.css",),
        title=index_headline(result),
        rows=result.tables,
        is_rare=any(table.rarity for table in result.tables),
        has_before=any(table.before or table.not_compared for table in result.tables),
        failures=[
            cut(f"{one.name} could not be screened: {one.error}", MAX_SENTENCE)
            for one in result.failed[:N_WARNINGS_ON_TOP]
        ],
        n_failed=len(result.failed),
        sources=[],
        **_made_by(result),
    )


def render_diff(result: ScreeningDiff) -> str:
    """Render the differences between two screenings as a self-contained page."""
    return make_page(
        "diff.html.j2",
        result=result,
        title=diff_headline(result),
        lists=[
            ("New on the list", "listed now, and not before", result.appeared),
            ("No longer on the list", "listed before, and not now", result.removed),
            ("Still on the list", "listed in both", result.stayed),
        ],
        max_rows=MAX_ROWS,
        max_moved=MAX_COLUMNS,
        sources=[],
        **_made_by(result),
    )


def _made_by(
    result: ScreeningResult | ComparisonResult | ScreenedTables | ScreeningDiff,
) -> dict[str, Any]:
    run = result.run
    return {
        "command": run.command,
        "settings": [(key, setting_text(value)) for key, value in sorted(run.settings.items())],
        "versions": sorted(run.versions.items()),
    }


def _first_screen(result: ScreeningResult) -> dict[str, Any]:
    """Return the data that the page of a screening shows at first."""
    findings, kinds = result.findings, result.kinds_of_reason[:N_KINDS]
    pattern_of = {row: pattern for pattern in reversed(findings.patterns) for row in pattern.rows}
    cards = _rows(result, [rows[0] for rows in kinds])
    for card, rows in zip(cards, kinds, strict=True):
        card |= _alike(rows, pattern_of.get(rows[0].row), result.source.file_column)
    return {
        "result": result,
        "sentence": headline(result),
        "left_out": cut(result.source.left_out_text(), MAX_SENTENCE),
        "cards": cards,
        "n_left": result.n_listed - sum(len(of) for of in kinds if of[0].rank <= result.n_listed),
        "patterns": [cut(one.sentence, MAX_SENTENCE) for one in findings.patterns[:MAX_PATTERNS]],
        "n_patterns": len(findings.patterns),
        "odd_cells": [_odd_cell(cell, result) for cell in clearest(findings.odd_cells)],
        "n_shown_cells": N_ODD_CELLS,
        "rules": sorted(findings.rules, key=lambda one: -one.n_broken)[:MAX_RULES],
        "cells_in_lines": any(cell.line is not None for cell in findings.odd_cells),
    }


def _alike(
    rows: Sequence[RankedRow], pattern: Pattern | None, file_column: str | None
) -> dict[str, Any]:
    """Return the number, pattern and names of similar rows."""
    # Drop the number of rows, which the card shows above the sentence.
    sentence = "" if pattern is None else pattern.sentence.split(": ", 1)[-1]
    others = [
        Markup("<bdi>{}</bdi>").format("".join(row_name(row, file_column)))
        for row in rows[1 : 1 + MAX_ALIKE]
    ]
    return {
        "n_alike": len(rows),
        "alike": " ".join(str(row.row) for row in rows[:MAX_LISTED]),
        "pattern": cut(sentence, MAX_SENTENCE),
        "others": Markup(", ").join(others),
        "n_more_alike": max(len(rows) - 1 - MAX_ALIKE, 0),
    }


def _top_warnings(result: ScreeningResult) -> list[str]:
    n_shown = min(result.run.n_doubts, N_WARNINGS_ON_TOP)
    return [cut(text, MAX_SENTENCE) for text in result.run.warnings[:n_shown]]


def _shared(
    result: ScreeningResult | ComparisonResult, drawings: Sequence[list[Drawing]]
) -> dict[str, Any]:
    warnings = [cut(text, MAX_SENTENCE) for text in result.run.warnings]
    columns = sorted(result.columns, key=lambda one: -one.reason_share)
    return {
        "warnings": warnings[:MAX_NOTES],
        "n_warnings": len(warnings),
        "columns": columns[:MAX_COLUMNS],
        "n_more_columns": max(len(columns) - MAX_COLUMNS, 0),
        "evaluations": [
            {
                "evaluation": evaluation,
                "verdict": verdict(evaluation),
                "drawings": figures,
                "methods": sorted(evaluation.methods, key=lambda curve: (-curve.auroc, curve.name)),
            }
            for evaluation, figures in zip(result.evaluations, drawings, strict=True)
        ],
        **_made_by(result),
        "method": method_sentence(result.run.settings),
    }


def _odd_cell(cell: OddCell, result: ScreeningResult) -> dict[str, Any]:
    others = cell.more_rows if cell.more_lines is None else cell.more_lines
    places = [count(place) for place in others[:N_PLACES]]
    if n_left := cell.n_cells - 1 - len(places):
        places.append(f"{count(n_left)} more")
    what = ("row" if cell.line is None else "line") + "s" * (len(others) > 1)
    more = f"Also on {what} {in_prose(places)}." * bool(places)
    if places and result.lists.files:  # with several files, each position would need its file
        more = f"Also in {plural(cell.n_cells - 1, 'other cell')}."
    return vars(cell) | {
        "where": cell.where,
        "id": cut(result.lists.ids.get(cell.row, ""), MAX_CELL),
        "file": cut(result.lists.files.get(cell.row, ""), MAX_CELL),
        "place": cell.row if cell.line is None else cell.line,
        "more": more,
    }


def _repeats(result: ScreeningResult) -> list[dict[str, str]]:
    repeats, found = [], result.findings.duplicates
    kinds = {"equal": found.equal, "nearly equal": found.near}
    for kind, group in ((kind, group) for kind, groups in kinds.items() for group in groups):
        more = group.n_rows - len(group.rows)
        ending = f" and {count(more)} more" if more else ""
        names = [cut(result.lists.ids[row], 40) for row in group.rows if row in result.lists.ids]
        texts = [" / ".join(texts) for texts in zip(*group.cells, strict=True)]
        repeats.append(
            {
                "kind": kind,
                "names": cut(", ".join(names) + ending * bool(names), MAX_CELL),
                "rows": ", ".join(map(count, group.rows)) + ending,
                "lines": _lines(group, result.lists.files) + ending if group.lines else "",
                "columns": cut(", ".join(group.columns), MAX_CELL),
                "cells": cut("; ".join(texts), MAX_CELL),
            }
        )
    return repeats


def _lines(group: RepeatedRows, files: Mapping[int, str]) -> str:
    return ", ".join(
        f"{cut(files[row], 40)} {count(line)}" if row in files else count(line)
        for row, line in zip(group.rows, group.lines or (), strict=True)
    )


def _group(group: GroupInfo) -> dict[str, Any]:
    return vars(group) | {
        "name": cut(group.name or REST, MAX_CELL),
        "threshold": scores_text([], group.threshold)[1],
        "judge": "a model of its own" if group.name else "the model of the whole table",
    }


def _rows(result: ScreeningResult, rows: Sequence[RankedRow]) -> list[dict[str, Any]]:
    """Return ranked rows for the template."""
    profiles = {column.name: column for column in result.columns}
    scores, threshold = scores_text([row.score for row in rows], result.threshold.value)
    files = [cut(file_of(row, result.source.file_column), MAX_CELL) for row in rows]
    return [
        _row(row, score, threshold, profiles, is_full=place < MAX_FULL)
        | {"file": file, "standing": result.standing(row)}
        for place, (row, score, file) in enumerate(zip(rows, scores, files, strict=True))
    ]


def _row(
    row: RankedRow, score: str, threshold: str, profiles: dict[str, ColumnProfile], *, is_full: bool
) -> dict[str, Any]:
    note = "" if row.reasons else "Reasons were computed for the first rows only (--explain)."
    if row.explained and not row.reasons:
        note = "No column differs from what similar rows suggest."
    p_value = "" if row.p_value is None else number(row.p_value, keep_zeros=True)
    return vars(row) | {
        "id": cut(row.id or "", MAX_CELL),
        "group": cut(row.group, MAX_GROUP),
        "score": score,
        "threshold": threshold,
        "rarity": p_value if row.rarity is None else row.rarity.words,
        "rarity_value": row.p_value if row.rarity is None else row.rarity.share,
        "reasons": [
            _reason(reason, share, profiles.get(reason.column))
            for reason, share in reason_shares(row)[: MAX_REASONS if is_full else 1]
        ],
        "hints": [cut(hint, MAX_HINT) for hint in row.hints[: MAX_HINTS if is_full else 0]],
        "note": note,
    }


def _reason(reason: Reason, share: str, profile: ColumnProfile | None) -> dict[str, Any]:
    about, expected = expected_text(reason)
    return {
        "column": cut(reason.column, MAX_CELL),
        "share": share,
        "seen": "missing" if is_missing(reason.seen) else cut(reason.seen),
        "expected": "no value" if is_missing(reason.expected) else expected,
        "about": about,
        "hidden": profile is not None and profile.hidden,
        "strip": strip_of(reason, profile),
    }
