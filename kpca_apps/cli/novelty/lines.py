"""Messages and tables of ``kpca novelty`` on a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kpca_apps.cli.console import Console, column_lines, wrapped
from kpca_apps.names import cut_apart, listed, one_line, quoted
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.detector.threshold import rate_statement
from kpca_apps.novelty.result import (
    Evaluation,
    FoundRule,
    MovedColumn,
    RankedRow,
    ScreeningDiff,
    ScreeningResult,
    clearest,
)
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.report.novelty.text import (
    AREAS,
    REST,
    file_of,
    headline,
    is_missing,
    scores_text,
    share_words,
    verdict,
)
from kpca_apps.report.text import plural

TOP = 5
MAX_WARNINGS = 5
MAX_PATTERNS = 8
IS_FLAGGED = {"flagged": "yes", "odd cell": "odd cell", "not flagged": "no"}
SHARES = "share: part of the drop of the score when values seen are replaced by those expected."
SENT = (
    "to-send holds a page and its figures: names of columns, what odd rows read in the columns "
    "that make them odd, and identifiers; rows are dots in figures. It has no whole row, no "
    "table and no model. Hide columns that no one else may read with --hide."
)


def say_findings(console: Console, result: ScreeningResult) -> None:
    """Print the findings of a screening, and notes on how its table was read."""
    console.say("".join(headline(result)))
    if result.lists.accepted is not None:
        console.say(result.lists.accepted.statement)
    # Print equal sentences once: patterns may differ only in hidden values.
    for sentence in dict.fromkeys(one.sentence for one in result.findings.patterns[:MAX_PATTERNS]):
        console.say(sentence)
    if len(result.findings.patterns) > MAX_PATTERNS:
        n_left = len(result.findings.patterns) - MAX_PATTERNS
        console.say(f"... and {plural(n_left, 'more kind')} in result.json.")
    console.lines(["", *summary_lines(result), ""])
    if result.findings.odd_cells:
        console.lines([*odd_cell_lines(result), ""])
    if result.groups:
        console.lines([*group_lines(result), ""])
    if result.findings.duplicates.statement:
        console.say(result.findings.duplicates.statement)
    # Print rules that compare rows, unless all rows that break them are listed above.
    listed_rows = {one.row for one in result.lists.flagged}
    between = [
        rule
        for rule in result.findings.rules
        if rule.compares_rows
        and 0 < rule.n_broken * len(result.findings.rules) < rule.n_rows
        and (rule.n_broken > len(rule.rows) or not listed_rows.issuperset(rule.rows))
    ]
    for rule in between[:MAX_PATTERNS]:
        holds = f"in {rule.n_rows - rule.n_broken:,} of {rule.n_rows:,} rows"
        console.say(f"Rule: {rule.rule} {holds}; not in {breaking_rows(rule, TOP)}.")
    if result.lists.flagged and result.run.flagged_file:
        rows = plural(len(result.lists.flagged), "row")
        console.say(
            f"{result.run.flagged_file} holds {rows}: send it to anyone who can correct the data."
        )
    if result.findings.moved:
        assert result.reference is not None
        console.lines(moved_lines(result.findings.moved, result.reference.name))
    info = result.threshold
    # Show enough digits to distinguish the threshold from the scores.
    _, limit = scores_text([row.score for row in result.oddest_of_each_kind[:TOP]], info.value)
    rarity = f", which {info.rarity.in_prose} usual rows would reach" if info.rarity else ""
    has_threshold = math.isfinite(info.value)
    console.say(f"Threshold {limit}{rarity}. " * has_threshold + info.statement)
    if result.rows.scale is not None:
        console.say(result.rows.scale.statement)
    for text in (*map(_labels_text, result.evaluations), *result.source.notes):
        console.say(text)
    say_warnings(console, result.run.warnings)


def breaking_rows(rule: FoundRule, most: int) -> str:
    """Describe the first rows that break a rule: ``lines 17, 402 and 5 more``."""
    noun, places = ("row", rule.rows) if rule.lines is None else ("line", rule.lines)
    named = ", ".join(f"{place:,}" for place in places[:most])
    left = rule.n_broken - len(places[:most])
    return f"{noun}{'s' * (rule.n_broken > 1)} {named}{f' and {left:,} more' * (left > 0)}"


def say_warnings(console: Console, warnings: tuple[str, ...]) -> None:
    """Print the first warnings and the number of others."""
    for warning in warnings[:MAX_WARNINGS]:
        console.say(f"Note: {warning}")
    if (more := len(warnings) - MAX_WARNINGS) > 0:
        console.say(f"... and {more} more note{'s' * (more > 1)} in the report.")


def summary_lines(result: ScreeningResult) -> list[str]:
    """Return a table of the oddest row for each kind of reason, each followed by its reason."""
    oddest = result.oddest_of_each_kind[:TOP]
    scores, _ = scores_text([row.score for row in oddest], result.threshold.value)
    files = [one_line(file_of(row, result.source.file_column), 24) for row in oddest]
    rows = []
    for row, score, file in zip(oddest, scores, files, strict=True):
        rarity = "" if row.p_value is None else f"{row.p_value:.3g}"
        if row.rarity is not None:
            rarity = row.rarity.words
        line, flagged = str(row.line or ""), IS_FLAGGED[result.standing(row)]
        place = (str(row.row), line, file, one_line(row.id or "", 12))
        rows.append((str(row.rank), flagged, *place, rarity, score))
    scale = result.rows.scale.name if result.rows.scale else ""
    head = ("rank", "flagged", "row", "line", "file", "id", scale, "score")
    top, *body = column_lines(_filled([head, *rows]))
    # If ranks are skipped, say why.
    is_top = [row.rank for row in oddest] == list(range(1, len(oddest) + 1))
    lines = [top] if is_top else ["The oddest row of each kind of reason:", top]
    for row, line in zip(oddest, body, strict=True):
        lines += [line, f"{'':6}{_first_reason(row)}", *_paragraphs(row.hints, indent=6)]
    return lines


def _filled(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    kept = [k for k in range(len(rows[0])) if any(row[k] for row in rows[1:])]
    return [tuple(row[k] for k in kept) for row in rows]


def odd_cell_lines(result: ScreeningResult) -> list[str]:
    """Return a table of the clearest odd cells, each followed by its explanation."""
    cells, n = clearest(result.findings.odd_cells)[:TOP], result.findings.n_odd_cells
    found = "1 cell is odd:" if n == 1 else f"{n:,} cells are odd:"
    in_lines = any(cell.line is not None for cell in cells)
    rows = [("line" if in_lines else "row", "file", "column", "reads", "suggested")]
    for cell in cells:
        more = f" (and {cell.n_cells - 1:,} more)" if cell.n_cells > 1 else ""
        where = str(cell.row if cell.line is None else cell.line)
        seen, suggested = cut_apart(cell.seen or "missing", cell.suggestion, 20)
        seen, file = f"{seen}{more}", result.lists.files.get(cell.row, "")
        rows.append((where, one_line(file, 20), one_line(cell.where, 24), seen, suggested))
    n_left = n - sum(cell.n_cells for cell in cells)
    where = result.run.odd_cells_file or "the report"
    left = [f"... and {n_left:,} more in {where}, each with why."] if n_left else []
    head, *body = column_lines(_filled(rows))
    # Skip explanations that rows above already show.
    hints = {hint for row in result.oddest_of_each_kind[:TOP] for hint in row.hints}
    lines = [found, head]
    for cell, line in zip(cells, body, strict=True):
        is_new = f"{quoted(cell.column)}: {cell.sentence}" not in hints
        lines += [line, *_paragraphs([cell.sentence] * is_new, indent=6)]
    return [*lines, *left]


def group_lines(result: ScreeningResult) -> list[str]:
    """Return a table of the groups with most flagged rows."""
    groups = sorted(result.groups, key=lambda group: -group.n_flagged)
    several = len({group.threshold for group in groups}) > 1
    rows = [("group", "rows", "flagged", *["threshold"] * several)]
    for group in groups[:TOP]:
        name = one_line(group.name, 36) if group.name else REST
        limit = scores_text([], group.threshold)[1]
        rows.append((name, f"{group.n_rows:,}", f"{group.n_flagged:,}", *[limit] * several))
    left = len(groups) - TOP
    more = f"... and {plural(left, 'more group')} in the report."
    return [*column_lines(rows), *[more] * (left > 0)]


def moved_lines(moved: Sequence[MovedColumn], against: str) -> list[str]:
    """Return a table of the columns whose distribution shifted most."""
    rows = [("column", "size", "now, and before")]
    for one in moved[:TOP]:
        rows.append((one_line(one.column, 24), f"{one.size:.2f}", one_line(one.words, 44)))
    n = len(moved)
    left = [f"... and {n - TOP:,} more in the report."] if n > TOP else []
    noun = "1 column is" if n == 1 else f"{n:,} columns are"
    title = f"{noun} distributed differently than in {one_line(against)}:"
    return [title, *column_lines(rows), *left, ""]


def diff_lines(diff: ScreeningDiff) -> list[str]:
    """List rows that only one of two runs lists, and columns whose distribution moved.

    If the tables have no row in common, compare kinds of odd rows.
    """
    lines = [""]
    if diff.is_apart:
        kinds = [("now", "before", "rows that are odd alike")]
        kinds += [
            (f"{now:,}", f"{before:,}", one_line(name, 56)) for name, before, now in diff.kinds
        ]
        lines += [*column_lines(kinds[: TOP + 1]), ""]
    for title, rows in (("New on the list:", diff.appeared), ("No longer on it:", diff.removed)):
        if rows:
            cells: list[tuple[str, ...]] = [("row", "rank before", "rank now")]
            reasons = [""]
            for row in rows[:TOP]:
                ranks = (str(rank or row.elsewhere) for rank in (row.before, row.now))
                cells.append((one_line(row.name, 40), *ranks))
                reasons.append(row.reason)
                if row.changed:
                    name, before, now = row.changed[0]
                    reasons[-1] = f"{quoted(name)} is {now or 'empty'}, was {before or 'empty'}"
            lines.append(title)
            for line, why in zip(column_lines(cells), reasons, strict=True):
                lines += [line, *_paragraphs([why], indent=6)]
            more = len(rows) - TOP
            lines += [f"... and {more:,} more in the report."] * (more > 0) + [""]
    if diff.moved:
        lines += moved_lines(diff.moved, diff.old.table)
    return lines


def _first_reason(row: RankedRow) -> str:
    if not row.reasons:
        return "as expected in every column" if row.explained else "(not explained)"
    reason, *others = row.reason_sets[0]
    room = max(20, 40 - min(len(reason.seen), len(reason.expected)))
    seen, expected = cut_apart(reason.seen, reason.expected, room)
    seen = "missing" if is_missing(reason.seen) else seen
    expected = "no value" if is_missing(reason.expected) else expected
    beside = f" (with {', '.join(one_line(other.column, 24) for other in others)})" * bool(others)
    group = f" for {one_line(row.group, 40)}" if row.group else ""
    return f"{one_line(reason.column, 24)}: {seen}, expected {expected}{beside}{group}"


def explanation_lines(row: RankedRow) -> list[str]:
    """Return a table of all reasons of one row, followed by hints."""
    if not row.reasons:
        return ["No column differs from what similar rows suggest.", *_paragraphs(row.hints)]
    rows: list[tuple[str, ...]] = [("share", "column", "seen", "expected")]
    for reasons in row.reason_sets:
        share = sum(reason.share for reason in reasons)
        first = f"{share:.0%}" if share >= 0.005 else share_words(share, row)
        for reason in reasons:
            beside = first if reason is reasons[0] else "together"
            texts = cut_apart(reason.seen, reason.expected, 28)
            rows.append((beside, one_line(reason.column, 28), *texts))
    return [*column_lines(rows), "", *_paragraphs([*row.hints, SHARES])]


def _paragraphs(texts: Sequence[str], indent: int = 0) -> list[str]:
    return [line for text in texts for line in wrapped(text, " " * indent)]


def plan_lines(specs: Sequence[ColumnSpec]) -> list[str]:
    """Return a table of the roles of columns."""
    head = ("column", "taken as", "missing", "distinct", "why")
    rows = [
        (one_line(s.name, 28), s.role, str(s.n_missing), str(s.n_distinct), one_line(s.why, 90))
        for s in specs
    ]
    return column_lines([head, *rows])


def _labels_text(evaluation: Evaluation) -> str:
    ours = next(curve for curve in evaluation.methods if curve.ours)
    areas = f"{AREAS['auroc']} {ours.auroc:.3f}, {AREAS['auprc']} {ours.auprc:.3f}."
    return (
        f"Against the labels, {evaluation.n_positive:,} of {evaluation.n_rows:,} rows with "
        f"{one_line(evaluation.label, 60)} {one_line(evaluation.positive, 60)}: "
        f"{verdict(evaluation) or areas}"
    )


def learned(model: NoveltyModel) -> str:
    """Describe the rows that a model was fitted on, and how it flags rows."""
    rule, detector = model.rule, model.detector
    n_rows = f"{model.n_rows:,}"
    if model.n_training != model.n_rows:
        n_rows = f"{model.n_training:,} of {n_rows}"
    what = (
        f"Fitted on {n_rows} rows and {len(model.encoder.plan.used)} columns of "
        f"{model.source.short_name}."
    )
    if model.groups:
        n_own = len(model.groups)
        own = "1 group has a model of its own"
        if n_own > 1:
            own = f"{n_own} groups have models of their own"
        n_rest = model.source.n_rows - sum(group.n_rows for group in model.groups)
        what += f" {own}; that of the table judges all others, {plural(n_rest, 'row')} of these."
    if rule.name != "alpha":
        return (
            f"{what} It flags by {rule.name} {rule.setting:g}; the threshold is set on each table "
            "scored."
        )
    statement = rate_statement(
        rule.setting,
        detector.flags_above,
        len(detector.calibration_scores),
        detector.calibration or "leave-one-out",
    )
    if not math.isfinite(detector.flags_above):
        return f"{what} {statement}"
    return f"{what} Threshold {scores_text([], detector.flags_above)[1]}. {statement}"


def held(model: NoveltyModel) -> str:
    """Describe which data of the table a model contains."""
    hidden = [spec.name for spec in model.encoder.plan.used if spec.hidden]
    noun = "column" if len(hidden) == 1 else "columns"
    among = f", with values of the hidden {noun} {listed(hidden)}" if hidden else ""
    return f"holds rows of {model.source.short_name}{among}: share it as you would share the data."


def place(row: RankedRow, result: ScreeningResult) -> str:
    """Describe a row in one line: its place, score and rank."""
    name = f" ({one_line(row.id, 60)})" if row.id else ""
    file = one_line(file_of(row, result.source.file_column), 60)
    line = f", line {row.line}" if row.line is not None else ""
    line += f" of {file}" if line and file else ""
    group = f", judged within {one_line(row.group, 60)}" if row.group else ""
    rarity = f"p-value {row.p_value:.3g}; " if row.p_value is not None else ""
    if row.rarity is not None:
        rarity = f"{row.rarity.in_prose} usual rows would score so high; "
    standing = result.standing(row)
    verdict = "listed for an odd cell" if standing == "odd cell" else standing
    near = result.rows.scores[abs(result.rows.ranks - row.rank) == 1].tolist()
    (score, *_), limit = scores_text([row.score, *near], result.threshold.value)
    limit = f"threshold {limit}" if math.isfinite(result.threshold.value) else "no threshold"
    return (
        f"Row {row.row}{name}{line}{group}: {rarity}novelty score {score} ({limit}), {verdict}, "
        f"rank {row.rank} of {result.n_rows}."
    )
