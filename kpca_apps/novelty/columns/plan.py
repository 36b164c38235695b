"""Infer the role of each column of a table, for the user to check and override.

Rules for a column without a declaration, in order:

1. no value: *empty*; a single value: *constant*;
2. integers that were assigned rather than measured (`why_identifier`): *identifier*, not used;
3. at least 90 % of the cells are numbers, apart from marks ("<5") and a few texts for missing
values: *numeric*; or dates, apart from a few words: *datetime*. Other cells of such a column are
typing errors, which count as missing and are reported;
4. yes and no in some spelling: *boolean*;
5. half of the cells hold a text that occurs at least 5 times: *categorical*;
6. other text: *text* if it has several words; *identifier* if it rarely repeats, has one shape, or
   is a code of one word, whose features would be five columns without meaning. If no other column
   is left, such a column is *text*.

Numbers never become categories by themselves: declare codes that look like numbers. The table,
or the rows drawn from a large one, then decides on decimal commas, the order of dates, and columns
that repeat another.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from string import ascii_lowercase
from types import NoneType
from typing import Annotated

import numpy as np
import polars as pl
from msgspec import Meta

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import in_prose, listed, one_line, quoted
from kpca_apps.novelty.columns.check_digits import SHORTEST, check_digits_of
from kpca_apps.novelty.columns.kinds import KINDS
from kpca_apps.novelty.magnitudes import rank_correlation, varies
from kpca_apps.novelty.redact import VALUES_HIDDEN, Note, visible_notes
from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import (
    DAY,
    EXACT,
    GUARD,
    MOST_TOKENS,
    PART_OF_DATE,
    READS_AS,
    STAMP,
    WITH_NUMBER,
    Column,
    DateFormat,
    Levels,
    NumberFormat,
    Readings,
    ValueFormat,
    most_of_a_slip,
    read_dates,
    unit_words,
)

UNUSED_ROLES = ("identifier", "constant", "duplicate", "empty", "excluded", "label", "id")

_MIN_ROWS = 3
_MOSTLY = 0.5  # a column of text with a larger share of numbers gets a note
_MANY_WORDS = 3.0  # minimum mean number of words in prose
_ONE_WORD = 1.5  # mean number of words below which texts are codes
_DATES = {
    *("date", "dates", "datum", "dato", "fecha", "dob", "birthdate"),
    *("datetime", "timestamp", "zeitstempel"),
}
_MOST_OTHERS = 0.4  # maximum share of words and partial dates in a column of dates
_MOST_DAYS = 130 * 366  # maximum range (days) of dates written as numbers: a long human life
_TRUTH = ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"})
_MOST_UNITS = 5  # if more distinct words follow the numbers of a column, the words are no units
_OF_ONE_CENTURY = 15 * 365.25 * 86_400  # range (s) above which two-digit years may mix centuries


@dataclass(frozen=True)
class ColumnOptions:
    """Declarations of the user about columns, which override every rule."""

    label: str | None = None  # column of known labels, used only to evaluate the model
    # Column that only identifies rows in the report; by default an identifier without repeats.
    id: str | None = None
    exclude: tuple[str, ...] = ()  # columns not used by the model
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()  # columns used, but without values in the report
    # Whether the day precedes the month if a column's cells leave that open.
    dayfirst: bool | None = None
    by: tuple[str, ...] = ()  # rows are judged within groups of equal texts in these columns


BY = "rows are judged by its groups"  # reason why a column is categorical
UNKNOWN = "not in the reference"  # reason why a column is not scored


@dataclass(frozen=True)
class ColumnSpec:
    """The role of a column, and how its cells are read."""

    name: str
    role: str  # see `ColumnProfile`
    why: str  # the rule that applied, as a clause
    n_missing: Annotated[int, Meta(ge=0)] = 0  # number of cells without a readable value
    n_distinct: Annotated[int, Meta(ge=0)] = 0  # number of distinct values
    hidden: bool = False  # whether the report omits its values
    format: ValueFormat | None = None  # format of its cells; None for text
    notes: tuple[str, ...] = ()  # notes on decisions that the user may override
    runs_on: bool = False  # whether its values rise or fall with the row number

    def validate(self) -> None:
        """Raise ValueError for an inconsistent specification."""
        if not self.used and self.role not in UNUSED_ROLES:
            raise ValueError(f"no column is {self.role!r:.40}")
        if not isinstance(self.format, (self.used and KINDS[self.role].format) or NoneType):
            raise ValueError(f"a {self.role} column of another format")
        if self.runs_on and self.format is None:
            raise ValueError(f"a {self.role} column that runs on")

    @property
    def used(self) -> bool:
        """Whether the model uses the column."""
        return self.role in KINDS

    @property
    def has_levels(self) -> bool:
        """Whether the model uses the column's levels."""
        return self.used and KINDS[self.role].features is None

    @property
    def is_truth(self) -> bool:
        """Whether the levels of the column are true and false."""
        return self.used and KINDS[self.role].is_truth

    def levels(self, column: Column) -> Levels:
        """Return the levels of a column; words for true and false in lower case."""
        return column.levels.lower() if self.is_truth else column.levels


@dataclass(frozen=True)
class ColumnPlan:
    """The specifications of all columns, in the order of the table."""

    specs: tuple[ColumnSpec, ...]

    def validate(self) -> None:
        """Raise ValueError for two columns of one name."""
        if len({spec.name for spec in self.specs}) != len(self.specs):
            raise ValueError("two columns of one name")

    @property
    def used(self) -> tuple[ColumnSpec, ...]:
        """Columns that the model uses."""
        return tuple(spec for spec in self.specs if spec.used)

    @property
    def hidden(self) -> frozenset[str]:
        """Names of the hidden columns."""
        return frozenset(spec.name for spec in self.specs if spec.hidden)

    @property
    def formats(self) -> dict[str, ValueFormat | None]:
        """Format of each column by name."""
        return {spec.name: spec.format for spec in self.specs}

    @property
    def shown(self) -> tuple[ColumnSpec, ...]:
        """Specifications without notes, reasons and formats that cite hidden values."""
        hidden = self.hidden
        specs = (replace(spec, notes=visible_notes(spec.notes, hidden)) for spec in self.specs)
        return tuple(
            replace(spec, why=VALUES_HIDDEN, format=None) if spec.hidden else spec for spec in specs
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Notes on all columns."""
        return tuple(note for spec in self.specs for note in spec.notes)


OF_FILES = "names the file each row comes from; --categorical takes it into the model"
OF_KEYS = "the primary key of the table"
ALONE = "text, and no other column is left"


def infer_plan(
    table: Table, options: ColumnOptions | None = None, *, for_model: bool = True
) -> ColumnPlan:
    """Infer the role of each column; names in the options must have been resolved.

    ConfigError for a wrong declaration; InputError for too few rows, or if no column is left and
    the plan is for a model.
    """
    options = options or ColumnOptions()
    where, columns = table.source.name, [table.column[name] for name in table.columns]
    if table.n_rows < _MIN_ROWS:
        n = table.n_rows
        are = "row of data is" if n == 1 else "rows of data are"
        raise InputError(
            f"{where}: {n} {are} too few to screen; give a table with at least {_MIN_ROWS}."
        )
    judged = partial(_spec, options=options, where=where, key=table.source.key_column)
    specs = [judged(column, prefer_comma=False, known=()) for column in columns]
    declared = {*options.numeric, *options.categorical, *options.by}
    # If one column needs decimal commas, read ambiguous columns with decimal commas, too.
    prefer_comma = any(
        isinstance(spec.format, NumberFormat)
        and spec.format.decimal == ","
        and not spec.format.ambiguous
        for spec in specs
    )
    known = _shared_marks(columns, specs)
    if prefer_comma or known:
        specs = [judged(column, prefer_comma=prefer_comma, known=known) for column in columns]
    orders = {
        spec.format.day_first
        for spec in specs
        if isinstance(spec.format, DateFormat) and spec.format.decided_by == "cells"
    }
    if len(orders) == 1:
        specs = [
            _in_order(column, spec, *orders) for column, spec in zip(columns, specs, strict=True)
        ]
    specs = [
        replace(spec, role="excluded", why=OF_FILES, format=None, notes=())
        if spec.name == table.source.file_column and spec.used and spec.name not in declared
        else spec
        for spec in specs
    ]
    first: dict[object, str] = {}
    for place, (column, spec) in enumerate(zip(columns, specs, strict=True)):
        if spec.used:
            earlier = first.setdefault(column.content(spec.format), spec.name)
            if earlier != spec.name and spec.name not in declared:
                why = f"the same values as column {quoted(earlier)}"
                specs[place] = replace(spec, role="duplicate", why=why, format=None, notes=())
    if for_model and not any(spec.used for spec in specs):
        # Use identifiers with letters or signs as text: their form can be checked.
        n_formed = [(column.texts.str.contains(r"[^\d\s-]|\d-").sum() or 0) for column in columns]
        specs = [
            replace(spec, role="text", why=ALONE)
            if spec.role == "identifier" and 2 * n > table.n_rows
            else spec
            for n, spec in zip(n_formed, specs, strict=True)
        ]
    plan = ColumnPlan(tuple(specs))
    if for_model and not plan.used:
        roles = ", ".join(f"{quoted(spec.name)} is {spec.role}" for spec in specs[:5])
        raise InputError(
            f"{where}: no column is left for the model ({roles}); "
            "exclude fewer columns, or declare some with --numeric or --categorical."
        )
    return plan


def _shared_marks(columns: list[Column], specs: list[ColumnSpec]) -> tuple[str, ...]:
    """Return the marks ("<5") and the texts for missing values of all columns of numbers.

    A text that is rare in each column may be frequent over all columns.
    """
    marks, slips = dict[str, None](), Counter[str]()
    for column, spec in zip(columns, specs, strict=True):
        if isinstance(spec.format, NumberFormat) and column.cells.dtype == pl.String:
            marks |= dict.fromkeys((*spec.format.marks, *spec.format.tokens))
            if (unread := column.read(spec.format).unreadable).any():
                slips.update(column.cells.filter(pl.Series(unread)).str.strip_chars())
    least = most_of_a_slip(max(map(len, columns)))
    texts = [text for text, n in slips.items() if n > least and not re.search(WITH_NUMBER, text)]
    return (*marks, *texts)


def _in_order(column: Column, spec: ColumnSpec, day_first: bool) -> ColumnSpec:
    """Read ambiguous dates with day and month ordered as in the table's other dates."""
    format = spec.format
    if not isinstance(format, DateFormat) or format.decided_by != "default":
        return spec
    format = replace(format, day_first=day_first, decided_by="table")
    judged = _valued(column, column.read(format), spec.role, format, "dates")
    return replace(judged, hidden=spec.hidden)


def _spec(
    column: Column,
    *,
    options: ColumnOptions,
    where: str,
    key: str | None,
    prefer_comma: bool,
    known: tuple[str, ...],
) -> ColumnSpec:
    """Specify a column by the user's declaration, or else by the rules."""
    name = column.name
    uses = (
        ("label", "given as the label", (options.label,)),
        ("id", "given as the identifier of rows", (options.id,)),
        ("excluded", "excluded by the user", options.exclude),
        ("categorical", "declared categorical", options.categorical),
        ("categorical", BY, options.by),
        ("identifier", OF_KEYS, () if key is None or key in options.numeric else (key,)),
    )
    role, why = next(((role, why) for role, why, names in uses if name in names), ("", ""))
    if role:
        counts = column.levels.counts
        spec = ColumnSpec(name, role, why, len(column) - int(counts.sum()), counts.size)
        if role == "categorical" and not spec.n_distinct:
            spec = replace(spec, role="empty", why="no value at all")
    elif name in options.numeric:
        format, readings, read = _as_numbers(column, prefer_comma, (*known, "a minus behind"))
        if format is None or read <= _MOSTLY:
            raise ConfigError(
                f"{where}: column {quoted(name)} is declared numeric but {read:.0%} of its cells "
                "read as numbers; leave it out of --numeric, or declare it categorical."
            )
        spec = _valued(column, readings, "numeric", format, "declared numeric", declared=True)
    else:
        spec = inferred_spec(column, options.dayfirst, prefer_comma, known)
    return replace(spec, hidden=name in options.hide)


def inferred_spec(
    column: Column, dayfirst: bool | None, prefer_comma: bool, known: tuple[str, ...] = ()
) -> ColumnSpec:
    """Infer the spec of a column that has no declaration, by the rules in the module docstring."""
    name, cells = column.name, column.cells
    if cells.null_count() == cells.len():
        return ColumnSpec(name, "empty", "no value at all", cells.len())
    notes: tuple[str, ...] = ()
    is_date = cells.dtype in (pl.Date, pl.Datetime)
    if not is_date and cells.dtype != pl.Boolean:
        format, readings, read = _as_numbers(
            column, prefer_comma and cells.dtype == pl.String, known
        )
        if _names_dates(name):
            written = column.date_format(dayfirst) or DateFormat()
            for found in filter(None, (written, column.digit_dates(dayfirst))):
                of_dates = column.read(found)
                days = of_dates.ordered / DAY
                is_near = days.size and days[-1] - days[0] <= _MOST_DAYS
                are_days = found.digits == STAMP or (days % 1 == 0).all()
                if of_dates.share_read >= READS_AS and is_near and are_days:
                    return _valued(column, of_dates, "datetime", found, "dates")
        if cells.dtype != pl.String or (format is not None and read >= READS_AS):
            spec = _valued(column, readings, "numeric", format or NumberFormat(), "numbers")
            if _names_dates(name):
                note = f"Column {quoted(name)} is named as dates, but its numbers are not dates."
                spec = replace(spec, notes=(*spec.notes, note))
            return spec
        notes = _mixed_units(column) or _mixed_marks(column, format, readings)
        if format is not None and read > _MOSTLY and not notes:
            notes = (_note_of_text(column, read, "number"),)
    if not is_date and not len(column.levels.texts):
        return ColumnSpec(name, "empty", "no value at all", cells.len())
    if (dates := column.date_format(dayfirst)) is not None:
        readings = column.read(dates)
        if readings.share_read > _MOSTLY:
            if is_date or _are_dates(column, dates):
                return _valued(column, readings, "datetime", dates, "dates")
            notes = (_note_of_text(column, readings.share_read, "date"),)
    return replace(_of_text(column), notes=notes)


def _names_dates(name: str) -> bool:
    """Return whether a name denotes dates, unlike "sales to date" or "date price"."""
    *before, last = name_words(name) or [""]
    is_last = (last in _DATES and "to" not in before) or [*before[-1:], last] == ["date", "time"]
    return is_last or before[:2] == ["date", "of"]


def _note_of_text(column: Column, read: float, noun: str) -> str:
    name = column.name
    overrides = "; --numeric overrides this" if noun == "number" else ""
    return (
        f"Column {quoted(name)}: {read:.0%} of the cells read as {noun}s, too few to treat the "
        f"others as typing errors, so it is taken as {_of_text(column).role}{overrides}."
    )


def _mixed_marks(
    column: Column, format: NumberFormat | None, readings: Readings
) -> tuple[str, ...]:
    if format is None:
        return ()
    rows = 1 + np.flatnonzero(column.reads_otherwise(format))
    known = int((~readings.missing).sum())
    if int(readings.unreadable.sum()) - len(rows) > (1 - READS_AS) * known:
        return ()
    first = ", ".join(map(str, rows[:3].tolist()))
    return (
        f"Column {quoted(column.name)}: {len(rows):,} of {known:,} numbers are written with "
        f"{format.swapped.order} (first in row {first}), the others with {format.order}, "
        "so it is taken as text; write all alike.",
    )


def _are_dates(column: Column, dates: DateFormat) -> bool:
    """Return whether cells are dates, except a few words or partial dates ("XX/05/2024")."""
    texts, counts = column.levels.texts, column.levels.counts
    # Impossible dates (2024-02-30) count as dates, too.
    is_other = ~read_dates(texts, dates)[1]
    if counts[is_other].sum() > _MOST_OTHERS * counts.sum():
        return False
    if counts[is_other].sum() <= (1 - READS_AS) * counts.sum():
        return True
    others = texts.filter(pl.Series(is_other))
    return len(others.filter(~others.str.contains(PART_OF_DATE))) <= MOST_TOKENS


def _as_numbers(
    column: Column, prefer_comma: bool, known: tuple[str, ...]
) -> tuple[NumberFormat | None, Readings, float]:
    """Read a column as numbers; return format, readings and the share of numbers."""
    format = column.number_format(prefer_comma, known)
    readings = column.read(format)
    return format, readings, 0.0 if format is None else readings.share_read


def _mixed_units(column: Column) -> tuple[str, ...]:
    words = unit_words(column.levels.texts, column.levels.counts)
    lower = [word for word in words if word != word.upper()]  # capitals may be codes: 1A, 2B
    if not 1 < len(lower) == len(words) <= _MOST_UNITS:
        return ()
    # The letters a, b, c behind numbers are school classes or houses (7a, 7b), not units.
    if sorted(words) == [*ascii_lowercase[: len(words)]]:
        return ()
    if sum(words.values()) < READS_AS * column.levels.counts.sum():
        return ()
    start = f"Column {quoted(column.name)}: numbers with different units"
    rest = "are not converted into each other, and used as text; write one unit to compare them."
    return (Note(f"{start} ({listed(lower)}) {rest}", f"{start} {rest}", (column.name,)),)


def least_level_count(n_cells: int) -> int:
    """Return the minimum count of a level that gets an indicator: 5 % of the cells, but 2 to 5.

    >>> least_level_count(10_000), least_level_count(60), least_level_count(4)
    (5, 3, 2)
    """
    return min(5, max(2, -(-n_cells // 20)))


def _valued(
    column: Column,
    readings: Readings,
    role: str,
    format: ValueFormat,
    why: str,
    declared: bool = False,
) -> ColumnSpec:
    """Specify a column read as numbers or dates; it may be constant, empty or an identifier."""
    name, values = column.name, readings.ordered
    distinct, n_distinct = np.unique(values), column.n_distinct(format)
    if described := format.describe():
        why = f"{why} ({described})"
    spec = ColumnSpec(name, role, why, len(column) - values.size, n_distinct)
    if values.size == 0:
        return replace(spec, role="empty", why="no value at all")
    marked = _marked_notes(column, format)
    if isinstance(format, NumberFormat) and not declared:
        if reason := why_identifier(column, values, format):
            # The note lets the user override a wrong decision.
            note = f"Column {quoted(name)} is left out of the model as an identifier ({reason})"
            if varies(distinct):
                note += f"; --numeric {shlex.quote(one_line(name))} keeps it in"
                reason += "; --numeric keeps it"
            notes = marked if reason.startswith(COUNTING) else (*marked, f"{note}.")
            return replace(spec, role="identifier", why=reason, notes=notes)
    if not varies(distinct):
        why = "one value only" if n_distinct == 1 else "values that differ by rounding only"
        return replace(spec, role="constant", why=why)
    in_order = readings.values[~np.isnan(readings.values)]
    running = runs_on(in_order, is_date=isinstance(format, DateFormat))
    why = f"{why}, in the order of the rows" if running else why
    notes = marked + _format_notes(name, format, in_order)
    if lost := _lost(distinct.size, n_distinct):
        notes = (*notes, f"Column {quoted(name)}: whole numbers are rounded; {lost}.")
    may_be_codes = column.cells.dtype == pl.String and np.median(values % 1) == 0
    if role == "numeric" and may_be_codes and not declared and _is_padded(column.texts):
        padded = (
            f"Column {quoted(name)} is taken as numbers, though {PADDED} to one width, as codes "
            f"are; --categorical {shlex.quote(one_line(name))} compares them as categories."
        )
        return replace(spec, format=format, why=why, notes=(*notes, padded), runs_on=running)
    return replace(spec, format=format, why=why, notes=notes, runs_on=running)


def _of_text(column: Column) -> ColumnSpec:
    levels, counts = column.levels, column.levels.counts
    n_cells, n_distinct = int(counts.sum()), counts.size
    spec = ColumnSpec(column.name, "categorical", "", len(column) - n_cells, n_distinct)
    if n_distinct == 1 and not spec.n_missing:
        return replace(spec, role="constant", why="one value only")
    lower = set(levels.texts.str.to_lowercase()) if n_distinct <= 6 else set()
    if len(lower) == 2 and any(lower <= pair for pair in _TRUTH):
        return replace(spec, role="boolean", why="two words for true and false")
    if counts[counts >= least_level_count(n_cells)].sum() >= n_cells / 2:
        strings = "string" if n_distinct == 1 else "strings"
        return replace(spec, why=f"{n_distinct} distinct {strings} in {n_cells} cells")
    words = float(levels.texts.str.count_matches(r"\S+").to_numpy() @ counts) / n_cells
    differ = n_distinct > DISTINCT * n_cells
    if differ and words >= _ONE_WORD and has_one_shape(levels.texts, counts):
        return replace(spec, role="identifier", why=f"{n_distinct} distinct codes of one shape")
    if words >= _MANY_WORDS:
        return replace(spec, role="text", why=f"free text, {words:.0f} words on average")
    if differ or words < _ONE_WORD:
        why = f"{n_distinct} distinct {'strings' if differ else 'codes'} in {n_cells} cells"
        return replace(spec, role="identifier", why=why)
    return replace(spec, role="text", why=f"{n_distinct} distinct strings, too many for categories")


def _marked_notes(column: Column, format: ValueFormat) -> tuple[str, ...]:
    """Return a note on cells that hold marks ("<5"), texts for missing values, or unread texts."""
    dtype = column.cells.dtype
    if dtype != pl.String and (dtype.is_temporal() or isinstance(format, NumberFormat)):
        return ()
    tokens = format.tokens if isinstance(format, NumberFormat) else ()
    beside, unread = column.beside(format)
    shown, hidden = [], []
    for name, n in (beside | unread).items():
        cells = f"{n:,} {'cell' if n == 1 else 'cells'} with "
        what = " (missing)" if name in tokens else " (not read)" if name in unread else ""
        shown.append(f"{cells}{quoted(name) if what else name}{what}")
        hidden.append(f"{cells}{'a text' if what else name}{what}")
    if not shown:
        return ()
    note, bare = (f"Column {quoted(column.name)}: {in_prose(part)}." for part in (shown, hidden))
    return (Note(note, bare, (column.name,)),)


def _format_notes(name: str, format: ValueFormat, values: FloatArray) -> tuple[str, ...]:
    if isinstance(format, DateFormat):
        years = f"Column {quoted(name)}: years of two digits are read as 1969 to 2068."
        notes = [years] if format.short_years and np.ptp(values) > _OF_ONE_CENTURY else []
        if format.decided_by in ("default", "option", "table"):
            reasons = {"option": "as requested", "table": "as in the other columns"}
            dots = "as dates with dots are written"
            open_order = dots if format.day_first else "--dayfirst decides otherwise"
            why = reasons.get(format.decided_by, open_order)
            ambiguous = f"no date tells day from month; read as {format.order} ({why})"
            notes.append(f"Column {quoted(name)}: {ambiguous}.")
        return tuple(notes)
    notes = []
    if format.ambiguous:
        read = (format.thousands, "separator of thousands"), (format.decimal, "decimal mark")
        (mark, job), (_, other) = read if format.thousands else read[::-1]
        notes.append(
            f'Column {quoted(name)}: "{mark}" is read as a {job}; no cell of the column rules out '
            f"a {other}."
        )
    if len(format.units) > 1:
        units = ", ".join(unit or "none" for unit in format.units)
        start = f"Column {quoted(name)}: cells carry different units"
        rest = "; the units are removed and the numbers compared without conversion."
        notes.append(Note(f"{start} ({units}){rest}", f"{start}{rest}", (name,)))
    return tuple(notes)


# Columns that identify rows instead of measuring something. Distinct values alone are no proof: the
# populations of sixty towns differ, too. Values were assigned, not measured, if one of these holds:
# 1. they are integers in steps of 1;
# 2. they are written as codes: zero-padded to one width, with more digits than a measurement, or
#    with valid check digits;
# 3. the name denotes an identifier (``PID``, ``customer id``);
# 4. they repeat more rarely than values drawn at random. In a sample of a smooth distribution, a
#    pair of values is about as likely to be equal as to differ by +1 step, or by -1 step. So half
#    the number of pairs that differ by one step (or by two, three or four steps) estimates the
#    number of equal pairs. If it is at least ten times the true number, repeats were avoided.
# Times and ranks rarely repeat but describe their row: rule 4 does not apply to them.


DISTINCT = 0.95
"""Minimum share of distinct values in an identifier: a few rows may be duplicates."""
COUNTING = "whole numbers in steps of 1"
"""The only certain reason, so the only one without a note."""
PADDED = "written with leading zeros"

_NEARLY = 0.95  # minimum share of cells, or of steps between values, that must follow a rule
_MIN_NUMBERS = 10  # minimum number of integers; fewer are consecutive by chance
_STEPS = 4  # maximum difference, in steps, of two values that count as near in `_why_chance`
_FEWER = 10.0  # minimum ratio of expected to observed repeats in an identifier
_LONG = 16  # minimum number of digits of a code: measurements have fewer, and floats keep only 15
_NAMES = {"id", "ids", "uid", "pid", "uuid", "guid", "ident", "identifier", "idno"}
_MEASURES = {
    *("year", "yr", "month", "week", "date", "day", "hour", "minute", "second"),
    *("time", "timestamp", "rank"),
}


def why_identifier(column: Column, values: FloatArray, format: NumberFormat) -> str:
    """Return why a column of numbers is an identifier, as a clause; empty if it may be a measure.

    `values` (n,) are the column's numbers without missing ones.
    """
    if format.thousands or any(format.units) or format.word or format.clock:
        return ""
    distinct = np.unique(values)
    if reason := _why_long(column, distinct, format):
        return reason
    # Numbers of fewer than SHORTEST digits are not tested for check digits.
    is_long = np.median(np.abs(distinct)) >= 10.0 ** (SHORTEST - 1) if distinct.size else False
    if is_long and (scheme := check_digits_of(column.levels.texts)):
        return f"codes whose check digits ({scheme}) hold"
    if values.size < _MIN_NUMBERS or (values != np.round(values)).any():
        return ""
    if distinct.size <= DISTINCT * values.size or np.abs(values).max() >= EXACT:
        return ""
    if np.mean(np.diff(distinct) == 1) >= _NEARLY:
        return COUNTING
    if distinct[0] < 0:
        return ""
    which = "all" if distinct.size == values.size else "nearly all"
    if _is_padded(column.texts):
        return f"whole numbers that {which} differ, {PADDED}"
    if is_named_as_identifier(column.name):
        return f"whole numbers that {which} differ, named as an identifier"
    return "" if _MEASURES & {*name_words(column.name)} else _why_chance(values, distinct)


def is_named_as_identifier(name: str) -> bool:
    """Return whether the last word of a name denotes identifiers.

    >>> [is_named_as_identifier(name) for name in ("PID", "customerId", "paid", "id of ring")]
    [True, True, False, False]
    """
    return not _NAMES.isdisjoint(name_words(name)[-1:])


def has_one_shape(texts: pl.Series, counts: IntArray) -> bool:
    """Return whether nearly all texts contain digits and have punctuation in the same places.

    `counts` (k,) are the numbers of cells with each text (k,).

    >>> has_one_shape(pl.Series(["DE89 3704 0044", "FR76 3000 6000"]), np.ones(2, int))
    True
    >>> has_one_shape(pl.Series(["2 old men", "1 girl"]), np.ones(2, int))
    False
    """
    shapes = texts.str.replace_all(r"[\pL\pN]", "x").filter(texts.str.contains(r"\d"))
    cells = counts[texts.str.contains(r"\d").to_numpy()]
    _, shape = np.unique(shapes.hash(seed=0).to_numpy(), return_inverse=True)
    return bool(np.bincount(shape, cells).max(initial=0) >= _NEARLY * counts.sum())


def _why_long(column: Column, distinct: FloatArray, format: NumberFormat) -> str:
    """Return why integers too long for floats are taken as identifiers; empty if they are not.

    `distinct` (k,) are the values as floats; columns of floats are never such codes.
    """
    if column.cells.dtype.is_float() or not np.abs(distinct).max(initial=0) >= 10 ** (_LONG - 1):
        return ""
    texts, n_distinct = column.texts.drop_nulls(), column.n_distinct(format)
    n_long = texts.str.contains(rf"^-?[1-9]\d{{{_LONG - 1},}}$").sum()
    is_measure = _MEASURES & {*name_words(column.name)} and varies(distinct)
    if n_distinct == 1 or is_measure or n_long < _NEARLY * texts.len():
        return ""
    lost = _lost(distinct.size, n_distinct)
    return f"whole numbers of {_LONG} digits or more{lost and f'; {lost}'}"


def _lost(n_floats: int, n_distinct: int) -> str:
    """State how many distinct integers remain distinct as floats; empty if all do."""
    if n_floats == n_distinct:
        return ""
    return f"as floats, {n_distinct:,} different ones become {n_floats:,}"


def _is_padded(texts: pl.Series) -> bool:
    """Return whether integers are zero-padded to one width.

    >>> [_is_padded(pl.Series(cells)) for cells in (["007", "123"], ["7", "007"], ["107", "123"])]
    [True, False, False]
    """
    texts = texts.drop_nulls().str.replace(*GUARD)
    if not texts.str.contains(r"^0\d").any():
        return False
    widths = texts.filter(texts.str.contains(r"^\d+$")).str.len_chars().value_counts(name="count")
    return bool((widths["count"].max() or 0) >= _NEARLY * texts.len())  # type: ignore[operator]


def _why_chance(values: FloatArray, distinct: FloatArray) -> str:
    """Return why integers identify rows (random ones would repeat more), or an empty text."""
    steps = np.diff(distinct).astype(np.int64)
    unit = float(np.gcd.reduce(steps))
    ordered = np.sort(values - distinct[0]) / unit
    after_equal = np.searchsorted(ordered, ordered, side="right")
    after_near = np.searchsorted(ordered, ordered + _STEPS, side="right")
    repeats = int((after_equal - np.arange(1, ordered.size + 1)).sum())
    expected = float((after_near - after_equal).sum()) / (2 * _STEPS)
    if expected < _FEWER * (repeats + 1):
        return ""
    seen = "all differ" if not repeats else f"repeat {repeats:,} times"
    return f"whole numbers that {seen}, where chance gives {expected:,.0f} repeats"


def name_words(name: str) -> list[str]:
    """Return the words of a name in lower case; ``orderNo`` gives two."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return [word.lower() for word in re.findall(r"[^\W\d_]+", apart)]


MIN_VALUES = 30
# Minimum rank correlation of dates with the row number; a few percent of them may be wrong or late.
IN_ORDER = 0.95
# A counter has even steps: their interquartile range is at most EVENLY times their median. For
# sorted random numbers, this range is about 1.58 times the median, as their steps are exponential.
EVENLY, FORWARD = 0.7, 0.98


def runs_on(values: FloatArray, *, is_date: bool) -> bool:
    """Return whether values (n,) rise or fall with the row number."""
    if len(values) < MIN_VALUES or len(np.unique(values)) < MIN_VALUES // 2:
        return False
    order = rank_correlation(values, np.arange(len(values)))
    if abs(order) < IN_ORDER or is_date:
        return abs(order) >= IN_ORDER
    steps = np.diff(values) * np.sign(order)
    q25, median, q75 = np.quantile(steps, [0.25, 0.5, 0.75])
    return bool(np.mean(steps > 0) >= FORWARD and q75 - q25 <= EVENLY * median)
