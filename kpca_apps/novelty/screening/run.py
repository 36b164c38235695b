"""A table in, a ranked list with reasons and a threshold out; or one row; or the scored table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import one_line
from kpca_apps.novelty.checks.drift import ColumnSummary, moved_columns, run_on
from kpca_apps.novelty.checks.duplicates import find_duplicates
from kpca_apps.novelty.checks.faults import FILLED
from kpca_apps.novelty.checks.patterns import find_patterns, leading_group
from kpca_apps.novelty.checks.suggestions import Suggestions
from kpca_apps.novelty.columns.encoded import Encoded, encode
from kpca_apps.novelty.columns.encoding import TableEncoder
from kpca_apps.novelty.columns.execution import Execution
from kpca_apps.novelty.columns.parts import (
    AnyTable,
    column_names,
    draw_sample,
    each_part,
    in_parts,
    rows_of,
)
from kpca_apps.novelty.columns.plan import (
    UNKNOWN,
    ColumnOptions,
    ColumnPlan,
    ColumnSpec,
    check_options,
    infer_plan,
    listed,
    quoted,
)
from kpca_apps.novelty.columns.profiles import (
    NAMED_BY,
    TELLS_APART,
    column_profiles,
    id_note,
    naming_column,
    odd_cells_of,
)
from kpca_apps.novelty.compare.comparison import evaluate_scores
from kpca_apps.novelty.compare.labels import Labels, read_labels
from kpca_apps.novelty.redact import Note, redact, told, without_values
from kpca_apps.novelty.result import (
    ColumnProfile,
    DuplicateRows,
    MovedColumn,
    OddCell,
    RankedRow,
    ScreeningResult,
    clearest,
)
from kpca_apps.novelty.screening.accepted import MOST, FoundRows, find_accepted
from kpca_apps.novelty.screening.fit import IN_PARTS, fit_table
from kpca_apps.novelty.screening.flagged_rows import (
    bound_note,
    list_flagged,
    list_odd_cell_rows,
    odd_cells_note,
    reasons_between,
    write_flagged_rows,
    write_odd_cells,
)
from kpca_apps.novelty.screening.judge import Verdict, group_infos, judge, top_rows
from kpca_apps.novelty.screening.model import NoveltyModel, library_versions
from kpca_apps.novelty.screening.options import RULES, ScreeningOptions
from kpca_apps.novelty.screening.pictures import column_plane, map_rows, score_grid
from kpca_apps.novelty.screening.ranked_list import MAX_CELLS, list_rows, with_reason_shares
from kpca_apps.tables.frames import frame_without
from kpca_apps.tables.read.text import ONE_COLUMN
from kpca_apps.tables.scored import (
    PLAIN,
    Added,
    CsvStyle,
    open_scored,
    scored_bytes,
    scored_kind,
    scored_notes,
)
from kpca_apps.tables.several import extended
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import PartedTable, Table, TablePart
from kpca_apps.tables.values import NumberFormat

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Rows a report lists whether or not they are explained.
MIN_LISTED = 100
# Flagged rows that are explained in full however few were asked for: some seconds' work.
MAX_FLAGGED_EXPLAINED = 500
# Words of notes that are true of most tables: no reason to doubt the list.
ROUTINE = (FILLED, NAMED_BY, TELLS_APART, IN_PARTS)
# Rows of one id that a message lists.
MAX_PLACES = 20
# What became of accepted rows.
LEARNED = "; the model learned them as normal"
JOINED = "; they are part of the reference, which rates are about"
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


def screen(
    table: AnyTable,
    *,
    reference: AnyTable | None = None,
    accept: Table | None = None,
    options: ScreeningOptions | None = None,
    command: str = "",
    execution: Execution | None = None,
) -> tuple[ScreeningResult, NoveltyModel]:
    """Screen a table for outliers; return what was found, and the model fitted on the way.

    See `kpca_apps.screen_table`; `command` is what reproduces the result, for the report.
    """
    options, execution = options or ScreeningOptions(), execution or Execution()
    hidden, known = options.columns.hide, None
    with without_values(hidden):
        learned, of_fit = table, options
        if reference is not None:
            _check_names(table, options.columns)
            learned, of_fit = reference, _options_of_reference(options, table, reference)
        if accept is not None:
            # Cells are read as those of the table that is learned.
            sample = draw_sample(in_parts(learned), options.seed, execution)
            specs = infer_plan(sample.table, of_fit.columns).specs
            shown = of_fit.columns.hide
            known = find_accepted(accept, table, specs, execution, most=MOST, hidden=shown)
        is_accepted = None if known is None else known.is_accepted
        if reference is None:
            model, rows = fit_table(
                table, options, clean=False, is_accepted=is_accepted, execution=execution
            )
            judged, learned_words = rows, LEARNED
        else:
            # Rows of the reference itself are in it.
            is_other = table.source.fingerprint != reference.source.fingerprint
            if known is not None and known.n_rows and is_other:
                learned = extended(reference, table, known.is_accepted)
            model, rows = fit_table(learned, of_fit, clean=True, execution=execution)
            model, judged, _ = rows_to_score(model, table, options, execution, known)
            learned_words = JOINED
        verdict = judge(model, judged, options)
        result = _describe(model, verdict, options, rows, command, known, learned_words)
    return redact(result, hidden), model


def _options_of_reference(
    options: ScreeningOptions, table: AnyTable, reference: AnyTable
) -> ScreeningOptions:
    """Leave columns that only the table has out of the fit: labels, say."""
    extra, asked = {*column_names(table)} - {*column_names(reference)}, options.columns
    lists: dict[str, Any] = {
        name: tuple(one for one in getattr(asked, name) if one not in extra)
        for name in ("exclude", "categorical", "numeric", "hide")
    }
    label, id = (None if name in extra else name for name in (asked.label, asked.id))
    columns = replace(asked, label=label, id=id, **lists)
    return replace(options, columns=columns, positive=options.positive if label else None)


def hidden_of(model: NoveltyModel, options: ScreeningOptions) -> frozenset[str]:
    """Name the columns that are hidden, by a model or by what was asked of a table to score."""
    specs = model.encoder.plan.specs
    return frozenset((*options.columns.hide, *(spec.name for spec in specs if spec.hidden)))


def score(
    model: NoveltyModel,
    table: AnyTable,
    *,
    accept: Table | None = None,
    options: ScreeningOptions | None = None,
    command: str = "",
    execution: Execution | None = None,
) -> ScreeningResult:
    """Score and flag the rows of a table by a fitted model, each independently of the others.

    Rule, `explain`, label, id and hidden columns are those of the `options`, by default the
    model's.
    """
    options = options or inherit_options(model, table)
    hidden = hidden_of(model, options)
    with without_values(hidden):
        model, rows, known = rows_to_score(model, table, options, execution, accept)
        verdict = judge(model, rows, options)
        return redact(_describe(model, verdict, options, None, command, known), hidden)


def inherit_options(model: NoveltyModel, table: AnyTable, **changes: Any) -> ScreeningOptions:
    """Options of a model for another table; columns it does not have are dropped.

    `changes` are fields of `ScreeningOptions`, or ``label``, ``id`` and ``hide``; ``None`` changes
    nothing. A rule replaces the model's; to what the model hides, more is added.
    """
    changed = {name: value for name, value in changes.items() if value is not None}
    base, columns, names = model.options, model.options.columns, column_names(table)
    label = changed.pop("label", columns.label if columns.label in names else None)
    id_column = changed.pop("id", columns.id if columns.id in names else None)
    hide = (*(name for name in columns.hide if name in names), *changed.pop("hide", ()))
    if label is None or label != columns.label:
        base = replace(base, positive=None)
    if changed.keys() & set(RULES):
        changed = dict.fromkeys(RULES) | changed
    columns = replace(columns, label=label, id=id_column, hide=tuple(dict.fromkeys(hide)))
    return replace(base, columns=columns, **changed)


def rows_to_score(
    model: NoveltyModel,
    table: AnyTable,
    options: ScreeningOptions,
    execution: Execution | None = None,
    accept: Table | FoundRows | None = None,
) -> tuple[NoveltyModel, Encoded, FoundRows | None]:
    """Encode the rows of a table to score, and find those that are accepted.

    The model that is returned hides the columns that the options hide.
    """
    _check_names(table, options.columns)
    label, id, hide = options.columns.label, options.columns.id, options.columns.hide
    if label in {spec.name for spec in model.encoder.plan.used}:
        raise ConfigError(
            f"label {quoted(str(label))} is a column the model itself uses: it cannot judge the "
            "model; fit one with that column excluded"
        )

    known = accept if isinstance(accept, FoundRows) else None
    if isinstance(accept, Table):
        specs, hidden = model.encoder.plan.specs, hidden_of(model, options)
        known = find_accepted(accept, table, specs, execution, hidden=hidden)

    def with_hidden(spec: ColumnSpec) -> ColumnSpec:
        return replace(spec, hidden=spec.hidden or spec.name in hide)

    names = {spec.name for spec in model.encoder.plan.specs}
    # Columns that the model does not know are left out, but their cells are listed.
    unknown = [
        ColumnSpec(name, "id", "given as the identifier of rows")
        if name == id
        else ColumnSpec(name, "excluded", UNKNOWN)
        for name in dict.fromkeys([*hide, *filter(None, [id])])
        if name not in names
    ]

    def hiding(encoder: TableEncoder) -> TableEncoder:
        plan = replace(encoder.plan, specs=tuple(map(with_hidden, [*encoder.plan.specs, *unknown])))
        coders = tuple(replace(coder, spec=with_hidden(coder.spec)) for coder in encoder.coders)
        return replace(encoder, plan=plan, coders=coders)

    encoder = hiding(model.encoder)
    groups = tuple(replace(group, encoder=hiding(group.encoder)) for group in model.groups)
    rows = encode(
        encoder,
        in_parts(table),
        execution,
        seed=options.seed,
        n_jobs=options.jobs,
        is_accepted=None if known is None else known.is_accepted,
    )
    return replace(model, encoder=encoder, groups=groups), rows, known


def _check_names(table: AnyTable, columns: ColumnOptions) -> None:
    """Refuse a label, an id or hidden columns that a table to score does not have.

    The table fitted on may have had others: those that were excluded, say.
    """
    of_rows = ColumnOptions(label=columns.label, id=columns.id, hide=columns.hide)
    check_options(of_rows, column_names(table), table.source.name)


def explain_row(
    model: NoveltyModel,
    table: AnyTable,
    *,
    row: str | None = None,
    line: int | None = None,
    accept: Table | None = None,
    options: ScreeningOptions | None = None,
    execution: Execution | None = None,
) -> tuple[RankedRow, ScreeningResult]:
    """One row with its rank in the table and all its reasons, and the table scored without others.

    `row` is its text in the column that names the rows (`naming_column`), else its number from 1.
    """
    options = replace(options or inherit_options(model, table), explain=0)
    hidden = hidden_of(model, options)
    with without_values(hidden):
        model, rows, known = rows_to_score(model, table, options, execution, accept)
        id_column = naming_column(rows, options.columns.id)
        position = np.array([_find_row(rows, id_column, row, line)])
        verdict = judge(model, rows, options)
        result = _describe(model, verdict, options, None, "", known)
        suggestions = Suggestions(result.odd_cells, model.encoder.plan.specs)
        listed = list_rows(model, verdict, rows.take(position), position, 1, id_column, suggestions)
        result = replace(result, odd_cells=suggestions.cells)
    (found,) = redact(replace(result, ranked=listed), hidden).ranked
    return found, redact(result, hidden)


def _find_row(rows: Encoded, id_column: str | None, row: str | None, line: int | None) -> int:
    """Position of the one row that is meant."""
    name = rows.source.name
    if (row is None) == (line is None):
        raise ConfigError("say which row to explain: either its id or number, or its line")
    if line is not None:
        if rows.sample_table.lines is None:
            raise ConfigError(f"{name}: a {rows.source.format} file has no lines; give a row")
        found = _positions(rows, _is_on_line, line)
        what = bare = f"row that starts on line {line}"
    else:
        found, what, bare = _named_rows(rows, id_column, str(row).strip())
    columns = () if id_column is None else (id_column,)
    if len(found) == 1:
        return int(found[0])
    if len(found) == 0:
        raise InputError(Note(f"{name}: no {what}", f"{name}: no {bare}", columns))
    # Where the rows of one id are, and how to name one of them.
    first = found[:MAX_PLACES]
    # Of several files, each has such a line.
    lines = None if rows.source.file_column is not None else rows.take(first).lines
    kind, places = ("row", first + 1) if lines is None else ("line", lines)
    more = f" and {len(found) - MAX_PLACES} more" if len(found) > MAX_PLACES else ""
    instead = f"name one, as with --{kind} {places[0]}"
    if lines is None and line is None:
        instead = "name the rows by another column with --id"
    which = f": {kind}s {', '.join(map(str, places))}{more}; {instead}"
    many = f"{name}: {len(found)} rows are a"
    raise InputError(Note(f"{many} {what}{which}", f"{many} {bare}{which}", columns))


def _named_rows(
    rows: Encoded, id_column: str | None, row: str
) -> tuple[NDArray[np.int64], str, str]:
    """Positions of the rows of that id, or else of that number; what was sought; its bare words."""
    numbered = f"rows are numbered from 1 to {rows.n_rows}"
    what = f"row {quoted(row)}: {numbered}; or name the column of ids with --id"
    bare = what
    if id_column is not None:
        found = _positions(rows, _is_named, id_column, row)
        bare = f"row with that {quoted(id_column)}"
        what = f"row with {quoted(id_column)} {quoted(row)}"
        if len(found):
            return found, what, bare
        what, bare = f"{what}; {numbered}", f"{bare}; {numbered}"
    number = int(row) if row.isdecimal() and len(row) < 19 else 0
    found = np.array([number - 1] if 1 <= number <= rows.n_rows else [], dtype=np.int64)
    return found, what, bare


def _positions(rows: Encoded, is_meant: Callable[..., BoolArray], *what: object) -> IntArray:
    """Positions of the rows of a table that are meant, by what is true of each."""
    parts = each_part(rows.table, "Looking for rows", partial(is_meant, *what), rows.execution)
    return np.flatnonzero(np.concatenate(list(parts)))


def _is_on_line(line: int, table: Table) -> BoolArray:
    return np.zeros(table.frame.height, bool) if table.lines is None else table.lines == line


def _is_named(column_name: str, text: str, table: Table) -> BoolArray:
    """Whether rows are named so, but for space around it."""
    column = table.column(column_name)
    return np.array([column.text(row).strip() == text for row in range(len(column))], dtype=bool)


def _describe(
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
    n_explained, n_judged = 0, rows.n_rows - (0 if known is None else known.n_rows)
    if options.explain:
        n_flagged = min(int(verdict.flagged.sum()), MAX_FLAGGED_EXPLAINED)
        n_explained = min(max(options.explain, n_flagged), n_judged)
    top = top_rows(verdict.ranks, min(max(n_explained, MIN_LISTED), n_judged))
    table, columns = rows.take(top), column_profiles(rows)
    id_column = naming_column(rows, options.columns.id)
    odd_cells, n_odd_cells = odd_cells_of(rows)
    suggestions = Suggestions(odd_cells, model.encoder.plan.specs)
    ranked = list_rows(model, verdict, table, top, n_explained, id_column, suggestions)
    moved: tuple[MovedColumn, ...] = ()
    has_run_on: tuple[str, ...] = ()
    if fitted_on is not rows and not verdict.in_training:
        now = [
            ColumnSummary.of(rows.sample_table.column(spec.name), spec)
            for spec in model.encoder.plan.used
        ]
        moved = moved_columns(model.encoder.summaries, now)
        has_run_on = tuple(run_on(model.encoder.summaries, now)) if model.clean else ()
    flagged_rows = tuple(
        suggestions.row(one)
        for one in list_flagged(model, verdict, ranked, id_column, explain=options.explain > 0)
    )
    odd_cells = suggestions.cells
    evaluations = []
    if labels is not None:
        sampled = np.asarray(verdict.scores[rows.sample_index])
        evaluations.append(evaluate_scores(model, rows, labels, sampled, fitted_on))
    notes = (
        *_moved_note(model, moved),
        *has_run_on,
        *_notes(model, verdict, labels, is_fitted_on=fitted_on is rows),
        *_leading_note(model, verdict, ranked, table),
        *(() if known is None else known.notes),
        *filter(
            None,
            [
                id_note(rows, options.columns.id, id_column),
                bound_note(verdict, flagged_rows),
                odd_cells_note(odd_cells, n_odd_cells),
            ],
        ),
    )
    doubts = [note for note in notes if not any(words in note for words in ROUTINE)]
    columns, duplicates = with_reason_shares(columns, ranked), find_duplicates(rows)
    told_of = _told_rows(clearest(odd_cells), duplicates)
    hidden = hidden_of(model, options)
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
        patterns=find_patterns(ranked, columns, table, rows.sample_table),
        map=map_rows(model, verdict, top),
        contours=score_grid(model, verdict),
        evaluations=tuple(evaluations),
        warnings=told([*doubts, *(note for note in notes if note not in doubts)], hidden),
        n_doubts=len(doubts),
        settings=_settings(model, verdict, columns, n_explained),
        versions=library_versions(),
        command=command,
        odd_cells=odd_cells,
        n_odd_cells=n_odd_cells,
        odd_cell_rows=list_odd_cell_rows(verdict, odd_cells, id_column),
        rarities=verdict.rarities,
        scale=verdict.scale,
        duplicates=duplicates,
        moved=moved,
        flagged_rows=flagged_rows,
        id_column=id_column,
        plane=column_plane(verdict, columns, ranked, table, model.options.seed),
        groups=group_infos(model, verdict),
        row_ids=_texts_of(rows, id_column, told_of),
        row_files=_texts_of(rows, rows.source.file_column, told_of),
        accepted=None if known is None else known.described(learned),
        is_accepted=rows.is_accepted,
        by=model.options.columns.by if model.groups else (),
    )


def _told_rows(cells: Sequence[OddCell], repeats: DuplicateRows) -> list[int]:
    """Return the rows that are told among odd cells and repeated rows, from 1."""
    groups = (*repeats.equal, *repeats.near)
    return sorted({cell.row for cell in cells} | {row for group in groups for row in group.rows})


def _texts_of(rows: Encoded, name: str | None, told_of: Sequence[int]) -> dict[int, str]:
    """Return what a column, if there is one, says in some rows."""
    if name is None or not told_of:
        return {}
    column = rows.take(np.array(told_of, dtype=np.int64) - 1).column(name)
    return {row: column.text(place) for place, row in enumerate(told_of)}


def _leading_note(
    model: NoveltyModel, verdict: Verdict, ranked: Sequence[RankedRow], listed_rows: Table
) -> Iterator[str]:
    """Say that one group leads the list and goes on beyond it, and how to rank within it."""
    if model.clean or model.groups:
        return
    flagged = rows_of(listed_rows, np.flatnonzero([row.flagged for row in ranked]))
    names = [spec.name for spec in model.encoder.plan.used if not spec.hidden]
    found = leading_group(flagged, verdict.rows.sample_table, verdict.rows.n_rows, names)
    if found is not None:
        name, sentence = found
        yield f"{sentence} To judge its rows among themselves, group by {quoted(name)} (--by)."


def _moved_note(model: NoveltyModel, moved: Sequence[MovedColumn]) -> Iterator[str]:
    """Say that a table is unlike the one of the model, and what that does to the list."""
    if moved:
        what = "p-values and rates hold" if model.clean else "how rare a score is called holds"
        verb = "lies" if len(moved) == 1 else "lie"
        yield (
            f"{listed([one.column for one in moved])} {verb} otherwise than in "
            f"{one_line(model.source.name)}: {what} for rows like those; see which columns "
            "moved, and fit a new model if that is how the data are now."
        )


def _settings(
    model: NoveltyModel, verdict: Verdict, columns: Sequence[ColumnProfile], n_explained: int
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
        "rows explained": n_explained,
    }
    if model.groups:
        settings["by"] = ", ".join(model.options.columns.by)
        settings["models of groups"] = len(model.groups)
    if rows.size_of_parts is not None:
        settings["read"] = f"in parts of {rows.size_of_parts:,} rows"
        settings["rows drawn for columns and figures"] = len(rows.sample_index)
    if len(columns) > MAX_CELLS:
        settings["cells of listed rows"] = (
            f"those of the first {MAX_CELLS} of {len(columns)} columns, and of the reasons"
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


@dataclass(frozen=True)
class _ScoredPart:
    """A part of a table and what was found about its rows."""

    part: TablePart
    found: Added
    n_rows: int
    hidden: frozenset[str]  # columns that are left empty

    def __str__(self) -> str:
        return str(self.part)


def found_columns(result: ScreeningResult, rows: slice = slice(None)) -> Added:
    """Return what was found about every row, or some of them, by the names of the scored table.

    Numbers are arrays (n,). The first reason of each flagged row is in series of polars of as many
    rows, null elsewhere: ``reason_column``, ``seen`` and ``expected`` are text, in which several
    columns that are odd together are joined by ", "; ``share`` is a number (`FlaggedRow.share`).
    """
    numbers = {
        "rarity": result.rarities,
        "p_value": result.p_values,
        "novelty_score": result.scores,
        "flagged": result.is_flagged,
        "rank": result.ranks,
        **({} if result.is_accepted is None else {"accepted": result.is_accepted}),
    }
    here = {name: None if of is None else np.asarray(of[rows]) for name, of in numbers.items()}
    start, stop, _ = rows.indices(result.n_rows)
    return {**here, **reasons_between(result, start, stop)}


def write_tables(
    folder: Path,
    table: AnyTable,
    result: ScreeningResult,
    plan: ColumnPlan,
    *,
    format: str = "csv",
    keep_hidden: bool = False,
    execution: Execution | None = None,
) -> tuple[str, ...]:
    """Write the scored table, the flagged rows and the odd cells into a folder.

    `format` is that of the scored table; ``"same"`` is that of a Parquet file, and for all three
    the delimiter and decimal sign of a text file, as the `plan` of its columns has it. Return
    sentences on what had to be changed.
    """
    source, style, kind = result.source, PLAIN, format
    if format == "same":
        kind = "parquet" if source.format == "parquet" else "csv"
        style = _style_of(source, plan)
    notes = write_scored_table(
        table, result, folder / f"scored.{kind}", execution, keep_hidden=keep_hidden, style=style
    )
    flagged = folder / result.flagged_file
    notes += write_flagged_rows(table, result, plan, flagged, execution, style)
    if result.odd_cells_file != result.flagged_file:
        write_odd_cells(table, result, folder / result.odd_cells_file, execution, style)
    # Both may have renamed a column for the same reason.
    return tuple(dict.fromkeys(notes))


def _style_of(source: SourceInfo, plan: ColumnPlan) -> CsvStyle:
    """Return how a text file is written; of other files, and rare delimiters, the plain style."""
    cut = source.delimiter
    if cut is None or not cut.isascii() or cut == ONE_COLUMN:
        return PLAIN
    formats = [spec.format for spec in plan.specs]
    comma = any(isinstance(one, NumberFormat) and one.decimal == "," for one in formats)
    return CsvStyle(cut, "," if comma else ".")


def write_scored_table(
    table: AnyTable,
    result: ScreeningResult,
    path: Path,
    execution: Execution | None = None,
    *,
    keep_hidden: bool = False,
    style: CsvStyle = PLAIN,
) -> tuple[str, ...]:
    """Write a table with the rarity or p-value, score, flag, rank and first reason of each row.

    The cells of hidden columns are empty, unless they are to be kept. Return sentences on input
    columns that had to be renamed.
    """
    table, kind = in_parts(table), scored_kind(path)
    hidden = frozenset() if keep_hidden else result.hidden_columns
    with open_scored(path) as append:
        if isinstance(table, PartedTable):
            parts, work = _with_found(table, result, hidden), execution or Execution()
            for data in work.over("Writing rows", _bytes_of, parts, table.n_rows, kind, style):
                append(data)
        else:
            rows = _without(table, hidden)
            append(scored_bytes(rows, found_columns(result), kind, style=style))
    return scored_notes(column_names(table), found_columns(result, slice(0)))


def _with_found(
    table: PartedTable, result: ScreeningResult, hidden: frozenset[str]
) -> Iterator[_ScoredPart]:
    for part in table.parts:
        found = found_columns(result, slice(part.start, part.stop))
        yield _ScoredPart(part, found, part.stop - part.start, hidden)


def _bytes_of(task: _ScoredPart, kind: str, style: CsvStyle) -> bytes:
    rows = _without(task.part.read(), task.hidden)
    return scored_bytes(rows, task.found, kind, header=task.part.number == 0, style=style)


def _without(rows: Table, hidden: Collection[str]) -> Table:
    """Empty the cells of hidden columns."""
    return replace(rows, frame=frame_without(rows.frame, rows.frame.columns, hidden))
