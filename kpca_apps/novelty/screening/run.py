"""A table in, a ranked list with reasons and a threshold out; or one row; or the scored table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import listed, one_line, quoted, suggest
from kpca_apps.novelty.columns.encoded import (
    Accepted,
    AnyTable,
    Encoded,
    Execution,
    draw_sample,
    each_part,
    encode,
    find_groups,
)
from kpca_apps.novelty.columns.encoding import MovedDates, TableEncoder
from kpca_apps.novelty.columns.lookup import resolve_columns
from kpca_apps.novelty.columns.plan import UNKNOWN, ColumnOptions, ColumnSpec
from kpca_apps.novelty.columns.profiles import naming_column
from kpca_apps.novelty.findings import find_all
from kpca_apps.novelty.listed_rows import list_rows, suggestions_of
from kpca_apps.novelty.marks import Marks, find_marked, is_list_of_marks, marks_of
from kpca_apps.novelty.redact import Note, redact, without_values
from kpca_apps.novelty.result import RankedRow, ScreeningResult
from kpca_apps.novelty.screening.fit import fit_planned, plan_fit
from kpca_apps.novelty.screening.judge import is_own_table, judge
from kpca_apps.novelty.screening.model import RULES, NoveltyModel, ScreeningOptions
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.tables.table import Table, extended, require_formats
from kpca_apps.tables.values import Column, DateFormat, NumberFormat, ValueFormat
from kpca_apps.tables.write import as_written

# Rows of one id that a message lists.
MAX_PLACES = 20


def screen(
    table: AnyTable,
    *,
    reference: AnyTable | None = None,
    accept: Sequence[Table | Marks] = (),
    options: ScreeningOptions | None = None,
    execution: Execution | None = None,
) -> tuple[ScreeningResult, NoveltyModel]:
    """Screen a table for outliers; return what was found, and the model fitted on the way.

    See `kpca_apps.screen_table`; `accept` are rows that are fine and marks of rows.
    """
    options, execution = options or ScreeningOptions(), execution or Execution()
    columns = resolve_columns(options.columns, table, execution, reference=reference)
    options = replace(options, columns=columns)
    hidden, clean, accepted = columns.hide, reference is not None, None
    with without_values(hidden):
        learned = table if reference is None else reference
        planned = plan_fit(learned, options, clean, execution)
        if accept:
            # Cells are read as those of the table that is learned.
            specs = planned.plan.specs
            accepted = _judged_before(accept, table, specs, execution, most=MOST, hidden=hidden)
        if reference is None:
            model, rows = fit_planned(planned, execution, accepted)
            judged = rows
        else:
            # Rows of the reference itself are in it.
            is_other = table.source.fingerprint != reference.source.fingerprint
            if accepted is not None and accepted.is_fine.any() and is_other:
                formats = {spec.name: spec.format for spec in planned.plan.used}
                sample = draw_sample(table, options.seed, execution)
                require_formats(sample.table, formats, "the reference")
                learned = extended(reference, table, accepted.is_fine)
                planned = plan_fit(learned, options, clean, execution)
            model, rows = fit_planned(planned, execution)
            model = replace(model, options=_options_of_reference(options, table, reference))
            model, judged = rows_to_score(model, table, options, execution, accepted)
        verdict = judge(model, judged, options)
        result = find_all(model, verdict, options, rows)
    return redact(result, hidden), _for_dates(model, {})


def _options_of_reference(
    options: ScreeningOptions, table: AnyTable, reference: AnyTable
) -> ScreeningOptions:
    """Options of the fit to a reference: without the columns that only the table has."""
    extra, asked = {*table.columns} - {*reference.columns}, options.columns
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
    accept: Sequence[Table | Marks] = (),
    options: ScreeningOptions | None = None,
    execution: Execution | None = None,
) -> ScreeningResult:
    """Score and flag the rows of a table by a fitted model, each independently of the others.

    Rule, `explain`, label, id and hidden columns are those of the `options`, by default the
    model's.
    """
    options = options or inherit_options(model, table, execution)
    hidden = hidden_of(model, options)
    with without_values(hidden):
        model, rows = rows_to_score(model, table, options, execution, accept)
        verdict = judge(model, rows, options)
        return redact(find_all(model, verdict, options, None), hidden)


def inherit_options(
    model: NoveltyModel, table: AnyTable, execution: Execution | None = None, **changes: Any
) -> ScreeningOptions:
    """Options of a model for another table; a label or an id it does not have is dropped.

    `changes` are fields of `ScreeningOptions`, or ``label``, ``id`` and ``hide``; ``None`` changes
    nothing. A rule replaces the model's; what the model hides is hidden beside what `hide` names.
    """
    changed = {name: value for name, value in changes.items() if value is not None}
    base, columns, names = model.options, model.options.columns, table.columns
    label = changed.pop("label", columns.label if columns.label in names else None)
    id_column = changed.pop("id", columns.id if columns.id in names else None)
    # Columns that say how the model was fitted need not be in the table: those left out, say.
    of_rows = resolve_columns(
        ColumnOptions(label=label, id=id_column, hide=changed.pop("hide", ())),
        table,
        execution,
        also_hidden=sorted(hidden_of(model, base)),
    )
    if of_rows.label is None or of_rows.label != columns.label:
        base = replace(base, positive=None)
    if changed.keys() & set(RULES):
        changed = dict.fromkeys(RULES) | changed
    columns = replace(columns, label=of_rows.label, id=of_rows.id, hide=of_rows.hide)
    return replace(base, columns=columns, **changed)


def rows_to_score(
    model: NoveltyModel,
    table: AnyTable,
    options: ScreeningOptions,
    execution: Execution | None = None,
    accept: Sequence[Table | Marks] | Accepted | None = (),
) -> tuple[NoveltyModel, Encoded]:
    """Encode the rows of a table to score, and find those that are accepted.

    The model that is returned hides the columns that the options hide, and judges dates that have
    moved as those of this table.
    """
    label, id, hide = options.columns.label, options.columns.id, options.columns.hide
    if label in {spec.name for spec in model.encoder.plan.used}:
        raise ConfigError(
            f"label {quoted(str(label))} is a column the model itself uses: it cannot judge the "
            "model; fit one with that column excluded"
        )

    specs = model.encoder.plan.specs
    if accept is not None and not isinstance(accept, Accepted):
        hidden, work = hidden_of(model, options), execution or Execution()
        accept = _judged_before(accept, table, specs, work, hidden=hidden) if accept else None

    def with_hidden(spec: ColumnSpec) -> ColumnSpec:
        return replace(spec, hidden=spec.hidden or spec.name in hide)

    names = {spec.name for spec in specs}
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

    execution = execution or Execution()
    sample = draw_sample(table, model.options.seed, execution)
    groups = tuple(replace(group, encoder=hiding(group.encoder)) for group in model.groups)
    model = replace(model, encoder=hiding(model.encoder), groups=groups)
    model = _for_dates(model, model.encoder.moved_dates(sample.table))
    rows = encode(
        model.encoder,
        table,
        execution,
        sample=sample,
        n_jobs=options.jobs,
        accepted=accept,
        is_own=is_own_table(model, table.source),
    )
    found = find_groups(rows.table, model.options.columns.by, rows.execution)
    return model, replace(rows, groups=found)


def _for_dates(model: NoveltyModel, moved: Mapping[str, MovedDates]) -> NoveltyModel:
    """Return the model for a table of which these columns of dates have moved, and no others."""
    groups = (replace(of, encoder=of.encoder.laid_onto(moved)) for of in model.groups)
    return replace(model, encoder=model.encoder.laid_onto(moved), groups=tuple(groups))


def explain_row(
    model: NoveltyModel,
    table: AnyTable,
    *,
    row: str | None = None,
    line: int | None = None,
    by_hidden: bool = True,
    accept: Sequence[Table | Marks] = (),
    options: ScreeningOptions | None = None,
    execution: Execution | None = None,
) -> tuple[RankedRow, ScreeningResult]:
    """One row with its rank in the table and all its reasons, and the table scored without others.

    `row` is its text in the column that names the rows (`naming_column`), else its number from 1.
    With `by_hidden` false no hidden column is searched: whether it has a text tells what it reads.
    """
    options = replace(options or inherit_options(model, table, execution), explain=0)
    hidden = hidden_of(model, options)
    with without_values(hidden):
        model, rows = rows_to_score(model, table, options, execution, accept)
        id_column = naming_column(rows, options.columns.id)
        sought = id_column if by_hidden or id_column not in hidden else None
        position = np.array([_find_row(rows, sought, row, line)])
        verdict = judge(model, rows, options)
        result = find_all(model, verdict, options, None)
        suggestions = suggestions_of(model, verdict)
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
    taken, file_column = rows.take(first), rows.source.file_column
    lines = None if file_column is not None else taken.lines
    kind, places = ("row", first + 1) if lines is None else ("line", lines)
    more = f" and {len(found) - MAX_PLACES} more" if len(found) > MAX_PLACES else ""
    instead = f"name one, as with --{kind} {places[0]}"
    if lines is None and line is None:
        instead = "name the rows by another column with --id"
    which = f"{', '.join(map(str, places))}{more}; {instead}"
    if line is not None and file_column is not None:
        files = taken.column(file_column)
        named = [f"{row} of {one_line(files.text(k), 60)}" for k, row in enumerate(places)]
        with_files = f"{', '.join(named)}{more}; {instead}"
        many = f"{name}: {len(found)} rows start on line {line}: rows"
        raise InputError(Note(f"{many} {with_files}", f"{many} {which}", (file_column,)))
    many, which = f"{name}: {len(found)} rows are a", f": {kind}s {which}"
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


def _judged_before(
    accept: Sequence[Table | Marks],
    table: AnyTable,
    specs: Sequence[ColumnSpec],
    execution: Execution,
    *,
    most: float = 1.0,
    hidden: Collection[str] = (),
) -> Accepted:
    """Find the rows of a table that readers judged before, by their cells or by their keys."""
    found: Accepted | None = None
    for one in accept:
        if isinstance(one, Table) and is_list_of_marks(one):
            one = marks_of(one, one.source.name)
        if isinstance(one, Marks):
            of_one = find_marked(one, table, execution, hidden)
        else:
            of_one = find_accepted(one, table, specs, execution, most=most, hidden=hidden)
        found = of_one if found is None else found.joined(of_one)
    assert found is not None
    n_rows, n_left = len(found.is_accepted), int((~found.is_accepted).sum())
    if n_left < (1 - most) * n_rows or not n_left:
        raise InputError(
            f"{found.name}: {n_rows - n_left:,} of the {n_rows:,} rows of "
            f"{one_line(table.source.name, 60)} are fine or known: too many to judge the others by."
        )
    return found


# Rows that somebody judged fine, named by a table of their own: which rows of a table they are.
#
# Each row of that table accepts the rows that equal it in all columns both have: numbers as
# numbers, dates as dates, other cells as text; an empty cell equals a missing value. A row that is
# changed later in a column that is compared is another row, and no longer accepted.


# Codes of cells; what an accepted row says has one from 1 on, unless no cell can say it.
_NEVER, _OTHER, _MISSING = -2, -1, 0
# Numbers are equal to so many parts of them: files of spreadsheets keep 15 digits.
CLOSE = 1e-14
# A table of which more is accepted has no usual rows left to judge the others by.
MOST = 0.5
MAX_NAMED = 5
# Columns of our own in a list of flagged rows or a scored table.
OURS = frozenset(
    "rank row line reason_column seen expected share hint rarity p_value novelty_score flagged "
    "accepted".split()
)


@dataclass(frozen=True)
class _Cells:
    """What the accepted rows say in one column of a table."""

    name: str  # in the table
    format: ValueFormat | None  # how its cells are read; None for text
    in_lower: bool  # whether case says nothing
    is_single: bool  # whether the table holds numbers of 32 bits
    values: FloatArray  # (v,), increasing
    texts: pl.Series  # (t,)

    @property
    def n_codes(self) -> int:
        """Codes that cells may have, 0 for a missing one among them."""
        return 1 + len(self.values) + len(self.texts)

    def codes(self, column: Column) -> IntArray:
        """Return the code of what each cell says (n,), -1 where no accepted row says it."""
        if self.format is None:
            levels = column.levels.lower() if self.in_lower else column.levels
            return levels.each(self._of_texts(levels.texts), _MISSING)
        readings = column.read(self.format)
        codes = self._of_values(readings.values)
        codes[readings.missing] = _MISSING
        rest = np.flatnonzero(readings.unreadable)
        if rest.size:
            codes[rest] = self._of_texts(column.take(rest).texts)
        return codes

    def _of_values(self, values: FloatArray) -> IntArray:
        codes = np.full(len(values), _OTHER, dtype=np.int64)
        if len(self.values):
            values = _rounded(values, self.is_single)
            above = np.searchsorted(self.values, values).clip(max=len(self.values) - 1)
            for place in (above, (above - 1).clip(min=0)):
                known = self.values[place]
                equal = np.abs(values - known) <= CLOSE * np.abs(known)
                codes[equal] = 1 + place[equal]
        return codes

    def _of_texts(self, texts: pl.Series) -> IntArray:
        if not len(self.texts):
            return np.full(len(texts), _OTHER, dtype=np.int64)
        codes = range(1 + len(self.values), self.n_codes)
        found = texts.replace_strict(self.texts, pl.Series(codes), default=_OTHER)
        return found.cast(pl.Int64).to_numpy().copy()


def _matched(
    table: Table, columns: Sequence[_Cells], wanted: pl.DataFrame
) -> tuple[BoolArray, IntArray]:
    """Mark the accepted rows (n,) of a table, or of a part; count those of each wanted row (k,).

    `wanted` are the codes of accepted rows in the columns that both tables have.
    """
    codes = [of.codes(table.column(of.name)) for of in columns]
    rows = pl.DataFrame(dict(zip(wanted.columns, codes, strict=True))).with_row_index("row")
    found = rows.join(wanted.unique(), on=wanted.columns, how="semi")
    is_accepted = np.zeros(table.frame.height, dtype=bool)
    is_accepted[found["row"].to_numpy()] = True
    n_alike = found.group_by(wanted.columns).len()
    counts = wanted.join(n_alike, on=wanted.columns, how="left", maintain_order="left")["len"]
    return is_accepted, counts.fill_null(0).to_numpy()


def find_accepted(
    accept: Table,
    table: AnyTable,
    specs: Sequence[ColumnSpec],
    execution: Execution | None = None,
    *,
    most: float = 1.0,
    hidden: Collection[str] = (),
) -> Accepted:
    """Find the rows of a table that the rows of another one accept.

    `specs` say how columns are read. A `hidden` column that is empty in the accepted rows says
    nothing: that is how scored tables leave it out. InputError if more than the share `most` of the
    table is accepted, or all of it.
    """
    name, where = (one_line(one.source.name, 60) for one in (accept, table))
    written, ignored = _written(accept, table.columns)
    columns = {
        other: own
        for other, own in written.items()
        if other not in hidden or own.texts.null_count() < accept.frame.height
    }
    if not columns:
        raise InputError(
            f"{name}: none of its columns is one of {where}; accepted rows are named by cells of "
            f"its columns.{suggest(ignored[0], table.columns) if ignored else ''}"
        )
    head = next(table.tables())
    by_name = {spec.name: spec for spec in specs}
    cells, codes = zip(
        *(_coded(own, head.column(other), by_name.get(other)) for other, own in columns.items()),
        strict=True,
    )
    wanted = pl.DataFrame({str(place): column for place, column in enumerate(codes)})
    match = partial(_matched, columns=cells, wanted=wanted)
    counts = np.zeros(accept.frame.height, dtype=np.int64)
    marked = []
    work = execution or Execution()
    for is_accepted, of_part in each_part(table, "Looking for accepted rows", match, work):
        marked.append(is_accepted)
        counts += of_part
    is_accepted = np.concatenate(marked)
    n_accepted, n_rows = int(is_accepted.sum()), len(is_accepted)
    if n_accepted > most * n_rows or n_accepted == n_rows:
        raise InputError(
            f"{name}: accepts {n_accepted:,} of the {n_rows:,} rows of {where}, "
            f"{counts.max():,} of them by {_place(accept, int(counts.argmax()))}: too many to "
            "judge the others by; say more about the rows that are fine."
        )
    return Accepted(is_accepted, name, tuple(_notes(accept, where, counts, ignored, table)))


def _written(accept: Table, names: Sequence[str]) -> tuple[dict[str, Column], list[str]]:
    """Return the cells of accepted rows in each column of a table, and the other columns' names.

    They come without the apostrophes that were put before text. A column of the name of one of ours
    has been written with an ending.
    """
    columns = accept.frame.columns
    given = dict(zip(as_written(pl.Series(columns, dtype=pl.String)), columns, strict=True))
    shared, used = {}, set()
    for name in names:
        endings = ("_input_input", "_input") if name in OURS else ()
        written = [name + ending for ending in endings if name + ending not in names]
        own = next((one for one in [*written, name] if one in given), None)
        if own is not None:
            used.add(given[own])
            column = accept.column(given[own])
            is_text = column.cells.dtype == pl.String
            shared[name] = Column(as_written(column.cells)) if is_text else column
    return shared, [one for one in columns if one not in used and one not in OURS]


def _coded(own: Column, other: Column, spec: ColumnSpec | None) -> tuple[_Cells, IntArray]:
    """Return what accepted rows say in a column, and the code of what each says.

    `other` holds cells of the table, and tells how they are stored.
    """
    format = None if spec is None else spec.format
    kind = other.cells.dtype
    if format is None and kind.is_numeric():
        format = NumberFormat()
    elif format is None and kind in (pl.Date, pl.Datetime):
        format = DateFormat(has_time=kind == pl.Datetime)
    in_lower, is_single = spec is not None and spec.is_truth, kind == pl.Float32
    values, texts = np.empty(0), own.levels.lower().texts if in_lower else own.levels.texts
    # A spreadsheet saves dates and decimals as its locale does.
    own_format = None if format is None else own.written_as(format)[0]
    if format is not None:
        readings = own.read(own_format)
        values = np.unique(_rounded(readings.values[~np.isnan(readings.values)], is_single))
        far = np.diff(values, prepend=-np.inf) > CLOSE * np.abs(values)
        values = values[far]
        texts = own.texts.filter(pl.Series(readings.unreadable)).unique(maintain_order=True)
    cells = _Cells(other.name, format, in_lower, is_single, values, texts)
    codes = replace(cells, format=own_format).codes(own)
    codes[codes == _OTHER] = _NEVER
    return cells, codes


def _rounded(values: FloatArray, is_single: bool) -> FloatArray:
    """Return numbers as the table can hold them."""
    if not is_single:
        return values
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def _place(accept: Table, row: int | np.int64) -> str:
    return f"row {row + 1}" if accept.lines is None else f"line {accept.lines[row]}"


def _notes(
    accept: Table, where: str, counts: IntArray, ignored: Sequence[str], table: AnyTable
) -> list[str]:
    """Say which accepted rows are none of the table, and which columns say nothing of it."""
    name, notes = one_line(accept.source.name, 60), []
    idle = np.flatnonzero(counts == 0)
    if idle.size:
        places = [_place(accept, row) for row in idle[:MAX_NAMED]]
        more = f" and {len(idle) - MAX_NAMED:,} more" if len(idle) > MAX_NAMED else ""
        rows = "1 row is" if len(idle) == 1 else f"{len(idle):,} rows are"
        notes.append(
            f"{name}: {rows} none of {where} ({', '.join(places)}{more}); an accepted row whose "
            "cells have changed is another one, and listed again."
        )
    if ignored:
        noun, say = ("column", "says") if len(ignored) == 1 else ("columns", "say")
        hints = (suggest(one, table.columns) for one in ignored)
        notes.append(
            f"{name}: {noun} {listed(ignored)} {say} nothing, for {where} has no such column."
            f"{next(filter(None, hints), '')}"
        )
    return notes
