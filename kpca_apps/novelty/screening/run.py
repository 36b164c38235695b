"""A table in, a ranked list with reasons and a threshold out; or one row; or the scored table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
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
)
from kpca_apps.novelty.columns.plan import (
    UNKNOWN,
    ColumnOptions,
    ColumnSpec,
    check_options,
    infer_plan,
    quoted,
)
from kpca_apps.novelty.columns.profiles import naming_column
from kpca_apps.novelty.findings import find_all
from kpca_apps.novelty.listed_rows import list_rows
from kpca_apps.novelty.redact import Note, redact, without_values
from kpca_apps.novelty.result import RankedRow, ScreeningResult
from kpca_apps.novelty.screening.accepted import MOST, FoundRows, find_accepted
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.judge import judge
from kpca_apps.novelty.screening.model import NoveltyModel
from kpca_apps.novelty.screening.options import RULES, ScreeningOptions
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.tables.table import Table, extended

# Rows of one id that a message lists.
MAX_PLACES = 20
# What became of accepted rows.
LEARNED = "; the model learned them as normal"
JOINED = "; they are part of the reference, which rates are about"


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
        result = find_all(model, verdict, options, rows, command, known, learned_words)
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
        return redact(find_all(model, verdict, options, None, command, known), hidden)


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
        result = find_all(model, verdict, options, None, "", known)
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
        found = _positions(rows, None, "", line)
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
        found = _positions(rows, id_column, row)
        bare = f"row with that {quoted(id_column)}"
        what = f"row with {quoted(id_column)} {quoted(row)}"
        if len(found):
            return found, what, bare
        what, bare = f"{what}; {numbered}", f"{bare}; {numbered}"
    number = int(row) if row.isdecimal() and len(row) < 19 else 0
    found = np.array([number - 1] if 1 <= number <= rows.n_rows else [], dtype=np.int64)
    return found, what, bare


def _positions(rows: Encoded, column: str | None, text: str, line: int | None = None) -> IntArray:
    """Positions of the rows that start on a line, or that a column names so."""
    is_meant = partial(_is_meant, column=column, text=text, line=line)
    parts = each_part(rows.table, "Looking for rows", is_meant, rows.execution)
    return np.flatnonzero(np.concatenate(list(parts)))


def _is_meant(table: Table, column: str | None, text: str, line: int | None) -> BoolArray:
    if column is None:
        return np.zeros(table.frame.height, bool) if table.lines is None else table.lines == line
    cells = table.column(column)
    return np.array([cells.text(row).strip() == text for row in range(len(cells))], dtype=bool)
