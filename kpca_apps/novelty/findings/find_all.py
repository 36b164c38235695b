"""Turn the verdict on a table into findings: described rows, checks, figures and notes.

Findings are computed from all values, including hidden columns; `redact` removes hidden values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from kpca_apps.names import in_prose, listed
from kpca_apps.novelty.accepted import Accepted, row_keys
from kpca_apps.novelty.checks.drift import find_drift
from kpca_apps.novelty.checks.odd_cells import FILLED
from kpca_apps.novelty.compare.comparison import evaluate_scores, read_labels
from kpca_apps.novelty.findings.duplicates import find_duplicates
from kpca_apps.novelty.findings.listed_rows import MAX_CELLS, Lists, list_table
from kpca_apps.novelty.findings.patterns import find_patterns, kinds_of_evidence
from kpca_apps.novelty.findings.pictures import draw_rows
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.relations.revealed import revealed_notes
from kpca_apps.novelty.result import (
    AcceptedRows,
    CategoryProfile,
    ColumnProfile,
    DuplicateRows,
    Evaluation,
    Findings,
    NumericProfile,
    OddCell,
    RankedRow,
    RowLists,
    ScreeningResult,
    ScreeningRun,
    clearest,
)
from kpca_apps.novelty.screening.encoded import Encoded
from kpca_apps.novelty.screening.fit import IN_PARTS
from kpca_apps.novelty.screening.judge import Verdict
from kpca_apps.novelty.screening.model import NoveltyModel, ScreeningOptions, library_versions
from kpca_apps.novelty.screening.profiles import (
    NAMED_BY,
    TELLS_APART,
    column_profiles,
    id_notes,
    naming_column,
)
from kpca_apps.tables.values import Column

EXCLUDED = "are left out of the model, not of the results"
# Notes with these words fit most tables, so they give no reason to distrust the list of rows.
ROUTINE = (FILLED, NAMED_BY, TELLS_APART, IN_PARTS, EXCLUDED)
# Endings of a sentence that say how accepted rows were used.
LEARNED = "; the model learned them as normal"
LEARNED_OF_DRAWN = "; where it drew them, the model learned them as normal"
JOINED = "; they are part of the reference, to which rates refer"
SAME_TABLE = (
    "The model was fitted on this very table: its rows are scored as if each had been left out."
)
SAME_TABLE_P_VALUES = " A calibrating row counts itself in its p-value, which is at least {:.2g}."
SAME_TABLE_LARGE = (
    "The model was fitted on this very table, which had too many rows for their leave-one-out "
    "scores to be saved: rows are scored as new ones, and those the model was fitted on score "
    "slightly low."
)
SAME_TABLE_HARD = (
    "The model was fitted on this very table. --method hoffmann has no leave-one-out: the rows "
    "it was fitted on score too low, and their p-values are too high."
)


def find_all(
    verdict: Verdict, options: ScreeningOptions, training: Encoded | None
) -> ScreeningResult:
    """Describe and draw the findings of a scored table.

    `training` are the model's training rows, if at hand. Baselines are evaluated if there are
    labels.
    """
    model, rows, scored = verdict.model, verdict.rows, verdict.scored
    by_itself = training is rows
    evaluations, of_labels = tuple[Evaluation, ...](), tuple[Note, ...]()
    if (label := options.columns.label) is not None:
        labels = read_labels(rows.sample_table, label, options.positive)
        sampled = np.asarray(scored.scores[rows.sample_index])
        evaluations = (evaluate_scores(model, rows, labels, sampled, training),)
        of_labels = (labels.note,) if labels.note else ()
    id_column = naming_column(rows, options.columns.id)
    lists = list_table(verdict, options.explain, id_column)
    columns = _with_reason_shares(column_profiles(rows), lists.ranked[: lists.n_explained])
    is_new = not by_itself and not rows.are_training
    moved, of_drift = (
        find_drift(model.encoder, model.source.short_name, rows.sample_table, clean=model.clean)
        if is_new
        else ((), ())
    )
    kinds = kinds_of_evidence(verdict.evidence, rows.sample_table.frame.columns)
    others = [row for row in lists.ranked if row.row not in verdict.rank_by_score]
    patterns = *kinds, *find_patterns(others, columns, lists.table, rows.sample_table)
    duplicates = find_duplicates(rows)
    # Notes on hidden columns; those that the model already gave when fitted are left out below.
    of_hidden = revealed_notes(
        rows.sample_table, rows.encoder.plan, rows.encoder.relations.rules, options.seed
    )
    naming = () if rows.training.size else rows.encoder.naming
    notes = (
        *(note for note in of_hidden if note not in model.warnings),
        *of_drift,
        *_header_note(model, columns, {*dict(rows.source.renamed)}),
        *_notes(verdict, of_labels, by_itself=by_itself),
        *(() if rows.accepted is None else rows.accepted.notes),
        *id_notes(rows, options.columns.id, id_column),
        *_last_notes(verdict, lists, columns, options),
    )
    doubts = [note for note in notes if not any(words in note for words in ROUTINE)]
    return ScreeningResult(
        source=rows.source,
        reference=None if by_itself else model.source,
        columns=columns,
        rows=scored,
        threshold=verdict.threshold,
        ranked=lists.ranked,
        lists=RowLists(
            flagged=lists.listed,
            usual=lists.usual,
            accepted=_accepted_rows(model, rows, training),
            marks=() if rows.accepted is None else rows.accepted.marks,
            id_column=id_column,
            **_names_of_rows(rows, id_column, clearest(lists.odd_cells), duplicates),
        ),
        findings=Findings(
            odd_cells=lists.odd_cells,
            n_odd_cells=lists.n_odd_cells,
            rules=rows.encoder.relations.found(rows.sample_table, rows.sample_index, naming),
            patterns=patterns,
            duplicates=duplicates,
            moved=moved,
        ),
        pictures=draw_rows(verdict, lists, columns),
        run=ScreeningRun(
            settings=_settings(verdict, len(columns), lists),
            versions=library_versions(),
            warnings=(*doubts, *(note for note in notes if note not in doubts)),
            n_doubts=len(doubts),
            by=model.options.columns.by if model.groups else (),
        ),
        groups=verdict.groups,
        evaluations=evaluations,
    )


def _header_note(
    model: NoveltyModel, columns: Sequence[ColumnProfile], renamed: Collection[str]
) -> Iterator[str]:
    """Warn that column names look like values: the first row was probably read as a header."""
    numbers, n_levels, formats = list[float](), 0, model.encoder.plan.formats
    # Levels first, as looking them up is faster than parsing numbers.
    for one in sorted(columns, key=lambda one: isinstance(one.distribution, NumericProfile)):
        shown, format = one.distribution, formats.get(one.name)
        if one.name in renamed:
            continue
        if isinstance(shown, NumericProfile) and format is not None:
            value = float(Column(pl.Series([one.name])).read(format).values[0])
            if not shown.minimum <= value <= shown.maximum:
                return
            numbers.append(value)
        elif isinstance(shown, CategoryProfile):
            if one.name not in shown.levels:
                return
            n_levels += 1
    # Names that are evenly spaced numbers (2019, 2020, 2021) are years or indices, not values.
    counts_on = len(numbers) > 2 and np.ptp(np.diff(numbers)) == 0
    if numbers and len(numbers) + n_levels > 1 and not counts_on:
        yield (
            "The names of the columns read like their values: a file without a header loses its "
            "first row to them; write a header above it."
        )


def _names_of_rows(
    rows: Encoded, id_column: str | None, cells: Sequence[OddCell], repeats: DuplicateRows
) -> dict[str, dict[int, str]]:
    """Return ids, files and keys, by row number, of rows that hold odd cells or are repeats."""
    groups = (*repeats.equal, *repeats.near)
    named = sorted({cell.row for cell in cells} | {row for group in groups for row in group.rows})
    columns = (id_column, rows.source.file_column)
    if not named:
        return {}
    table = rows.take(np.array(named, dtype=np.int64) - 1)
    ids, files = (
        {}
        if name is None
        else {row: table.column[name].text(place) for place, row in enumerate(named)}
        for name in columns
    )
    keys = row_keys(table, rows.encoder.plan.hidden)
    return {"ids": ids, "files": files, "keys": dict(zip(named, keys, strict=True))}


def _settings(
    verdict: Verdict, n_columns: int, lists: Lists
) -> dict[str, str | float | int | bool | None]:
    model, threshold, rows = verdict.model, verdict.threshold, verdict.rows
    detector = model.detector
    missed, truncates = detector.landmark_miss, detector.parameters.truncates
    settings: dict[str, str | float | int | bool | None] = {
        "fitted on": "a clean reference" if model.clean else "a table that may hold outliers",
        "rule": threshold.rule,
        threshold.rule: threshold.setting,
        "calibration": threshold.calibration,
        "method": model.options.method,
        "kernel": detector.views.kernel.describe(),
        "components": detector.subspace.n_components if truncates else None,
        "ridge (absolute)": detector.ridge,
        "landmarks": len(detector.subspace.points),
        "landmarks miss": None if missed is None else f"{100 * missed:.3g} %",
        "rows fitted": model.source.n_rows,
        **({"rows learned from": model.n_training} if model.n_training < model.n_rows else {}),
        "seed": model.options.seed,
        "rows explained": lists.n_explained,
    }
    if model.groups:
        settings["by"] = ", ".join(model.options.columns.by)
        settings["models of groups"] = len(model.groups)
    if rows.size_of_parts is not None:
        settings["read"] = f"in parts of {rows.size_of_parts:,} rows"
        settings["rows drawn for columns and figures"] = len(rows.sample_index)
    if n_columns > MAX_CELLS:
        settings["cells of listed rows"] = (
            f"those of the first {MAX_CELLS} of {n_columns} columns, and of the reasons"
        )
    return settings


def _notes(verdict: Verdict, of_labels: Sequence[Note], *, by_itself: bool) -> Iterator[str]:
    model, rows = verdict.model, verdict.rows
    if rows.size_of_parts is not None and not by_itself:
        yield (
            f"The table has {rows.n_rows:,} rows {IN_PARTS}: the figures of its columns "
            f"come from {len(rows.sample_index):,} rows drawn; scores and ranks are those of all "
            "rows."
        )
    yield from verdict.warnings
    yield from of_labels
    if not by_itself and rows.source.fingerprint == model.source.fingerprint:
        soft = SAME_TABLE if rows.are_training else SAME_TABLE_LARGE
        if model.clean:
            smallest = 2 / (len(model.detector.calibration_scores) + 1)
            soft += SAME_TABLE_P_VALUES.format(smallest)
        yield SAME_TABLE_HARD if model.detector.parameters.truncates else soft


def _last_notes(
    verdict: Verdict, lists: Lists, columns: Sequence[ColumnProfile], options: ScreeningOptions
) -> Iterator[str]:
    """Note which rows and odd cells are not listed, and that an excluded column is not hidden."""
    n_all, n_listed = verdict.n_listed, len(lists.listed)
    n_cells, n_cells_listed = lists.n_odd_cells, sum(len(c.rows) for c in lists.odd_cells)
    if n_all != n_listed:
        yield (
            f"{n_all:,} rows are flagged or have an odd cell: only the {n_listed:,} oddest are in "
            "the list of flagged rows, with reasons; the scored table marks all."
        )
    if n_cells_listed != n_cells:
        yield (f"{n_cells:,} cells are odd: the {n_cells_listed:,} clearest are listed.")
    excluded = options.columns.exclude
    if shown := [one.name for one in columns if one.name in excluded and not one.hidden]:
        yield (
            f"Excluded columns {EXCLUDED}: values of {listed(shown)} are shown; --hide keeps them "
            "out."
        )


def _accepted_rows(
    model: NoveltyModel, rows: Encoded, training: Encoded | None
) -> AcceptedRows | None:
    if rows.accepted is None:
        return None
    n, name = rows.accepted.n_rows, rows.accepted.name
    if rows.accepted.is_wrong is not None:
        return AcceptedRows(name, n, _marked_sentence(rows.accepted, training is rows))
    statement = f"{name} accepts none of the rows."
    if n:
        learned = LEARNED_OF_DRAWN if model.n_training < model.n_rows else LEARNED
        made = learned if training is rows else "" if training is None else JOINED
        which = f"{n:,} rows are accepted"
        if n == 1:
            which, made = "1 row is accepted", made.replace("they are", "it is")
            made = made.replace("them", "it")
        statement = f"{which} in {name} and not listed{made}."
    return AcceptedRows(name, n, statement)


def _marked_sentence(accepted: Accepted, is_learned: bool) -> str:
    masks = (accepted.is_wrong, accepted.is_fine, accepted.is_known)
    n_wrong, n_fine, n_known = (0 if mask is None else int(mask.sum()) for mask in masks)
    clauses = [
        f"{n_fine:,} fine and {'learned as normal' if is_learned else 'not listed'}",
        f"{n_known:,} known and not listed",
        f"{n_wrong:,} wrong and first on the list",
    ]
    counts = n_fine, n_known, n_wrong
    found = [words for words, n in zip(clauses, counts, strict=True) if n]
    if not found:
        return f"{accepted.name} marks none of the rows."
    return f"Rows marked in {accepted.name}: {in_prose(found)}."


def _with_reason_shares(
    columns: Sequence[ColumnProfile], ranked: Sequence[RankedRow]
) -> tuple[ColumnProfile, ...]:
    """Set `reason_share`: how much each column contributes to the reasons of flagged rows."""
    totals: dict[str, float] = {}
    for reason in (reason for row in ranked if row.flagged for reason in row.reasons):
        totals[reason.column] = totals.get(reason.column, 0.0) + reason.share
    whole = sum(totals.values()) or 1.0
    return tuple(replace(c, reason_share=totals.get(c.name, 0.0) / whole) for c in columns)
