"""All that is found in a table from its verdict: rows in words, checks, figures and notes.

Everything is found from all values, whoever may see them; `redact` takes out what is hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from typing import TYPE_CHECKING

import numpy as np

from kpca_apps.names import one_line
from kpca_apps.novelty.checks.drift import moved_columns, run_on
from kpca_apps.novelty.checks.duplicates import find_duplicates
from kpca_apps.novelty.checks.odd_cells import FILLED
from kpca_apps.novelty.checks.patterns import find_patterns, leading_group
from kpca_apps.novelty.columns.encoded import Encoded, rows_of
from kpca_apps.novelty.columns.encoding import ColumnSummary
from kpca_apps.novelty.columns.plan import listed, quoted
from kpca_apps.novelty.columns.profiles import (
    NAMED_BY,
    TELLS_APART,
    column_profiles,
    id_note,
    naming_column,
    odd_cells_of,
)
from kpca_apps.novelty.compare.comparison import Labels, evaluate_scores, read_labels
from kpca_apps.novelty.listed_rows import (
    MAX_CELLS,
    Suggestions,
    list_flagged,
    list_odd_cell_rows,
    list_rows,
)
from kpca_apps.novelty.pictures import column_plane, map_rows, score_grid
from kpca_apps.novelty.result import (
    ColumnProfile,
    DuplicateRows,
    FlaggedRow,
    MovedColumn,
    OddCell,
    RankedRow,
    ScreeningResult,
    clearest,
)
from kpca_apps.novelty.screening.fit import IN_PARTS
from kpca_apps.novelty.screening.judge import Verdict, group_infos, top_rows
from kpca_apps.novelty.screening.model import NoveltyModel, ScreeningOptions, library_versions
from kpca_apps.system.arrays import IntArray
from kpca_apps.tables.table import Table

if TYPE_CHECKING:
    from kpca_apps.novelty.screening.run import FoundRows

# Rows a report lists whether or not they are explained.
MIN_LISTED = 100
# Flagged rows that are explained in full however few were asked for: some seconds' work.
MAX_FLAGGED_EXPLAINED = 500
# Words of notes that are true of most tables: no reason to doubt the list.
ROUTINE = (FILLED, NAMED_BY, TELLS_APART, IN_PARTS)
SAME_TABLE = (
    "The table is the very one the model was fitted on: its rows are scored as if each had been "
    "left out."
)
SAME_TABLE_P_VALUES = (
    " A row that calibrates counts itself in its p-value, which is {:.2g} at least."
)
SAME_TABLE_LARGE = (
    "The table is the very one the model was fitted on, which had too many rows for their "
    "leave-one-out scores to be saved: rows are scored as new ones, and those the model was "
    "fitted on score slightly low."
)
SAME_TABLE_HARD = (
    "The table is the very one the model was fitted on. Truncation (--components) has no "
    "leave-one-out: the rows it was fitted on score too low, and their p-values are too high."
)


@dataclass(frozen=True)
class _Lists:
    """The first rows of a table in words, and its odd cells, whose suggestions agree with them."""

    table: Table  # the ranked rows, as they stand
    positions: IntArray  # theirs in the table
    id_column: str | None  # that names them
    n_explained: int
    ranked: tuple[RankedRow, ...]
    flagged: tuple[FlaggedRow, ...]
    odd_cells: tuple[OddCell, ...]
    n_odd_cells: int  # listed or not


def find_all(
    model: NoveltyModel,
    verdict: Verdict,
    options: ScreeningOptions,
    fitted_on: Encoded | None,
    command: str,
    known: FoundRows | None = None,
    learned: str = "",
) -> ScreeningResult:
    """Put a scored table into words and pictures.

    `fitted_on` are the rows the model was fitted on, where at hand: with labels, baselines are,
    too. Rows `known` to be fine are not listed; `learned` says what the model made of them.
    """
    rows, labels = verdict.rows, None
    if options.columns.label is not None:
        labels = read_labels(rows.sample_table, options.columns.label, options.positive)
    n_judged = rows.n_rows - (0 if known is None else known.n_rows)
    found = _list_rows(model, verdict, options, n_judged)
    ranked, odd_cells, id_column = found.ranked, found.odd_cells, found.id_column
    columns = _with_reason_shares(column_profiles(rows), ranked)
    is_new = fitted_on is not rows and not verdict.in_training
    moved, drift_notes = _drift(model, rows) if is_new else ((), ())
    evaluations = []
    if labels is not None:
        sampled = np.asarray(verdict.scores[rows.sample_index])
        evaluations.append(evaluate_scores(model, rows, labels, sampled, fitted_on))
    notes = (
        *drift_notes,
        *_notes(model, verdict, labels, is_fitted_on=fitted_on is rows),
        *_leading_note(model, verdict, found),
        *(() if known is None else known.notes),
        *filter(None, [id_note(rows, options.columns.id, id_column)]),
        *_bound_notes(verdict, found),
    )
    doubts = [note for note in notes if not any(words in note for words in ROUTINE)]
    duplicates = find_duplicates(rows)
    row_ids, row_files = _names_of_rows(rows, id_column, clearest(odd_cells), duplicates)
    return ScreeningResult(
        source=rows.source,
        reference=None if fitted_on is rows else model.source,
        scores=verdict.scores,
        p_values=verdict.p_values,
        is_flagged=verdict.flagged,
        ranks=verdict.ranks,
        threshold=verdict.threshold,
        ranked=ranked,
        columns=columns,
        patterns=find_patterns(ranked, columns, found.table, rows.sample_table),
        map=map_rows(model, verdict, found.positions),
        contours=score_grid(model, verdict),
        evaluations=tuple(evaluations),
        warnings=(*doubts, *(note for note in notes if note not in doubts)),
        n_doubts=len(doubts),
        settings=_settings(model, verdict, len(columns), found),
        versions=library_versions(),
        command=command,
        odd_cells=odd_cells,
        n_odd_cells=found.n_odd_cells,
        odd_cell_rows=list_odd_cell_rows(verdict, odd_cells, id_column),
        rarities=verdict.rarities,
        scale=verdict.scale,
        duplicates=duplicates,
        moved=moved,
        flagged_rows=found.flagged,
        id_column=id_column,
        plane=column_plane(verdict, columns, ranked, found.table, model.options.seed),
        groups=group_infos(model, verdict),
        row_ids=row_ids,
        row_files=row_files,
        accepted=None if known is None else known.described(learned),
        is_accepted=rows.is_accepted,
        by=model.options.columns.by if model.groups else (),
    )


def _list_rows(
    model: NoveltyModel, verdict: Verdict, options: ScreeningOptions, n_judged: int
) -> _Lists:
    """Put the first of the `n_judged` rows into words: all flagged ones, or as many as asked."""
    rows, n_explained = verdict.rows, 0
    if options.explain:
        n_flagged = min(int(verdict.flagged.sum()), MAX_FLAGGED_EXPLAINED)
        n_explained = min(max(options.explain, n_flagged), n_judged)
    top = top_rows(verdict.ranks, min(max(n_explained, MIN_LISTED), n_judged))
    table, id_column = rows.take(top), naming_column(rows, options.columns.id)
    odd_cells, n_odd_cells = odd_cells_of(rows)
    suggestions = Suggestions(odd_cells, model.encoder.plan.specs)
    ranked = list_rows(model, verdict, table, top, n_explained, id_column, suggestions)
    flagged = list_flagged(verdict, ranked, id_column, explain=options.explain > 0)
    mended = tuple(suggestions.row(one) for one in flagged)
    cells = suggestions.cells
    return _Lists(table, top, id_column, n_explained, ranked, mended, cells, n_odd_cells)


def _drift(model: NoveltyModel, rows: Encoded) -> tuple[tuple[MovedColumn, ...], tuple[str, ...]]:
    """Compare columns with those of the model's table, and say what moved, or has run on."""
    before, table = model.encoder.summaries, rows.sample_table
    now = [ColumnSummary.of(table.column(spec.name), spec) for spec in model.encoder.plan.used]
    moved, notes = moved_columns(before, now), []
    if moved:
        what = "p-values and rates hold" if model.clean else "how rare a score is called holds"
        verb = "lies" if len(moved) == 1 else "lie"
        notes.append(
            f"{listed([one.column for one in moved])} {verb} otherwise than in "
            f"{one_line(model.source.name)}: {what} for rows like those; see which columns "
            "moved, and fit a new model if that is how the data are now."
        )
    return moved, (*notes, *(run_on(before, now) if model.clean else ()))


def _names_of_rows(
    rows: Encoded, id_column: str | None, cells: Sequence[OddCell], repeats: DuplicateRows
) -> tuple[dict[int, str], dict[int, str]]:
    """Return ids and files of the rows that are named among odd cells and repeated rows, from 1."""
    groups = (*repeats.equal, *repeats.near)
    named = sorted({cell.row for cell in cells} | {row for group in groups for row in group.rows})
    columns = (id_column, rows.source.file_column)
    if not named or columns == (None, None):
        return {}, {}
    table = rows.take(np.array(named, dtype=np.int64) - 1)
    ids, files = (
        {}
        if name is None
        else {row: table.column(name).text(place) for place, row in enumerate(named)}
        for name in columns
    )
    return ids, files


def _leading_note(model: NoveltyModel, verdict: Verdict, lists: _Lists) -> Iterator[str]:
    """Say that one group leads the list and goes on beyond it, and how to rank within it."""
    if model.clean or model.groups:
        return
    flagged = rows_of(lists.table, np.flatnonzero([row.flagged for row in lists.ranked]))
    names = [spec.name for spec in model.encoder.plan.used if not spec.hidden]
    found = leading_group(flagged, verdict.rows.sample_table, verdict.rows.n_rows, names)
    if found is not None:
        name, sentence = found
        yield f"{sentence} To judge its rows among themselves, group by {quoted(name)} (--by)."


def _settings(
    model: NoveltyModel, verdict: Verdict, n_columns: int, lists: _Lists
) -> dict[str, str | float | int | bool | None]:
    """Every resolved parameter that the result depends on."""
    detector, threshold, rows = model.detector, verdict.threshold, verdict.rows
    missed, score = detector.landmark_miss, "kernel PCA error"
    settings: dict[str, str | float | int | bool | None] = {
        "fitted on": "a clean reference" if model.clean else "a table that may hold outliers",
        "rule": threshold.rule,
        threshold.rule: threshold.setting,
        "calibration": threshold.calibration,
        "score": score if detector.combined is None else f"{score} and cells",
        "kernel": detector.views.kernel.describe(),
        "components": model.options.n_components,
        "ridge (absolute)": detector.ridge,
        "landmarks": len(detector.subspace.points),
        "landmarks miss": None if missed is None else f"{100 * missed:.3g} %",
        "rows fitted": model.source.n_rows,
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


def _notes(
    model: NoveltyModel, verdict: Verdict, labels: Labels | None, *, is_fitted_on: bool
) -> Iterator[str]:
    """Say what a reader must know of the rows, which may be those the model was fitted on."""
    rows = verdict.rows
    if rows.size_of_parts is not None and not is_fitted_on:
        yield (
            f"The table has {rows.n_rows:,} rows {IN_PARTS}: the figures of its columns "
            f"come from {len(rows.sample_index):,} rows drawn; scores and ranks are those of all "
            "rows."
        )
    yield from verdict.warnings
    if labels and labels.note:
        yield labels.note
    if not is_fitted_on and rows.source.fingerprint == model.source.fingerprint:
        soft = SAME_TABLE if verdict.in_training else SAME_TABLE_LARGE
        if model.clean:
            smallest = 2 / (len(model.detector.calibration_scores) + 1)
            soft += SAME_TABLE_P_VALUES.format(smallest)
        yield soft if model.options.n_components is None else SAME_TABLE_HARD


def _bound_notes(verdict: Verdict, lists: _Lists) -> Iterator[str]:
    """Say that not all flagged rows, or not all of so many odd cells, are listed."""
    n_flagged, n_listed = int(verdict.flagged.sum()), len(lists.flagged)
    n_cells, n_cells_listed = lists.n_odd_cells, sum(1 + len(c.more_rows) for c in lists.odd_cells)
    if n_flagged != n_listed:
        yield (
            f"{n_flagged:,} rows are flagged: the {n_listed:,} oddest stand in the list of flagged "
            "rows, and no other has a reason; the scored table marks all."
        )
    if n_cells_listed != n_cells:
        yield (
            f"{n_cells:,} cells are odd by themselves: the {n_cells_listed:,} clearest are listed."
        )


def _with_reason_shares(
    columns: Sequence[ColumnProfile], ranked: Sequence[RankedRow]
) -> tuple[ColumnProfile, ...]:
    """Fill in each column's share of the reasons of the flagged rows that are explained."""
    totals: dict[str, float] = {}
    for reason in (reason for row in ranked if row.flagged for reason in row.reasons):
        totals[reason.column] = totals.get(reason.column, 0.0) + reason.share
    whole = sum(totals.values()) or 1.0
    return tuple(replace(c, reason_share=totals.get(c.name, 0.0) / whole) for c in columns)
