"""The plan of a table's columns: what each becomes, for a reader to check and to override.

The rules, in the order they are tried on a column nobody declared anything about:

1. no value at all: *empty*; one value only: *constant*;
2. whole numbers that were handed out, not measured (`identifiers.py`): an *identifier*, kept out;
3. at least 90 % of the cells read as numbers: *numeric*; as dates: *datetime*. The rest of such a
   column is typing errors: they count as missing, and the encoder says how many and where;
4. yes/no in some spelling: *boolean*;
5. text of which half the cells hold a string seen at least 5 times: *categorical*;
6. other text: *text* where it runs to words; an *identifier* where it hardly ever repeats, is
   written in one shape, or is a code of one word, whose length and letters would say nothing but
   would weigh like five columns.

A number never becomes a category by itself: a code that looks like a number has to be declared.
Then comes what only the whole table shows: decimal commas used throughout, and columns that repeat
another.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from types import NoneType
from typing import Annotated, Any

import numpy as np
import polars as pl
from msgspec import Meta

from kpca_apps.errors import ConfigError, InputError, OptionError, flag_of
from kpca_apps.names import one_line, suggest
from kpca_apps.novelty.columns.identifiers import COUNTING, DISTINCT, has_one_shape, why_identifier
from kpca_apps.novelty.columns.kinds import KINDS
from kpca_apps.novelty.columns.running import runs_on
from kpca_apps.novelty.magnitudes import varies
from kpca_apps.system.arrays import FloatArray
from kpca_apps.tables.numbers import DECIMAL_MARKS, THOUSANDS_MARKS, unit_words
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import (
    Column,
    DateFormat,
    Levels,
    NumberFormat,
    ValueFormat,
)

UNUSED_ROLES = ("identifier", "constant", "duplicate", "empty", "excluded", "label", "id")

_MIN_ROWS = 3
_READS_AS = 0.9  # share of the cells that must read as numbers (dates) to make the column so
_MOSTLY = 0.5  # above this share, a note says that it is not numeric
_MANY_WORDS = 3.0  # words on average from which such a column is prose, not names
_ONE_WORD = 1.5  # words on average below which it holds codes
_TRUTH = ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"})
_LISTED = 5  # names quoted in one sentence
_LONGEST_WORD = 40  # of a unit


@dataclass(frozen=True)
class ColumnOptions:
    """What a user declares about columns, by name; it wins over every rule."""

    # Known labels: kept out of the model, used to evaluate it.
    label: str | None = None
    # Names the rows in the report; kept out of the model. By default an identifier that differs in
    # every row names them.
    id: str | None = None
    exclude: tuple[str, ...] = ()  # kept out of the model
    categorical: tuple[str, ...] = ()  # used as categories, whatever the rules would say
    numeric: tuple[str, ...] = ()  # used as numbers, likewise
    hide: tuple[str, ...] = ()  # used, but their values stay out of the report
    # Order of day and month where the cells of a column leave it open.
    dayfirst: bool | None = None
    by: tuple[str, ...] = ()  # rows of equal text in all of these are judged among themselves


BY = "rows are judged by its groups"  # why a column is taken as categories
UNKNOWN = "not in the reference"  # why a column of a table to score is left out


@dataclass(frozen=True)
class ColumnSpec:
    """What one column becomes."""

    name: str
    role: str  # see `ColumnProfile`
    why: str  # the rule that decided, as a clause
    n_missing: Annotated[int, Meta(ge=0)] = 0  # cells without a readable value
    n_distinct: Annotated[int, Meta(ge=0)] = 0  # values among the rest
    hidden: bool = False  # its values stay out of the report
    format: ValueFormat | None = None  # how its cells are written; None for text
    notes: tuple[str, ...] = ()  # sentences on choices a reader may want to make otherwise
    runs_on: bool = False  # whether its values rise or fall with the rows (`running.py`)

    def validate(self) -> None:
        """Refuse what no table leads to."""
        if not self.used and self.role not in UNUSED_ROLES:
            raise ValueError(f"no column is {self.role!r:.40}")
        if not isinstance(self.format, (self.used and KINDS[self.role].format) or NoneType):
            raise ValueError(f"a {self.role} column of another format")
        if self.runs_on and self.format is None:
            raise ValueError(f"a {self.role} column that runs on")
        if isinstance(self.format, NumberFormat):
            marks = self.format.decimal, self.format.thousands
            if marks[0] not in DECIMAL_MARKS or marks[1] not in ("", *THOUSANDS_MARKS):
                raise ValueError(f"no numbers are written with {marks!r:.40}")
            if len(self.format.word) > _LONGEST_WORD:
                raise ValueError(f"no unit is {self.format.word!r:.40}")

    @property
    def used(self) -> bool:
        """Whether the model sees the column."""
        return self.role in KINDS

    @property
    def has_levels(self) -> bool:
        """Whether the model sees its levels."""
        return self.used and KINDS[self.role].features is None

    @property
    def is_truth(self) -> bool:
        """Whether its levels are true and false."""
        return self.used and KINDS[self.role].is_truth

    def features(self, column: Column) -> FloatArray:
        """All features of its kind of each cell, (n, k), NaN where missing."""
        features = KINDS[self.role].features
        assert features is not None
        return features(column, self.format)

    def levels(self, column: Column) -> Levels:
        """Levels of the column; truth words in lower case, so that Yes and yes are one."""
        return column.levels.lower() if self.is_truth else column.levels


@dataclass(frozen=True)
class ColumnPlan:
    """What every column becomes, in the order of the table."""

    specs: tuple[ColumnSpec, ...]

    def validate(self) -> None:
        """Refuse two columns of one name."""
        if len({spec.name for spec in self.specs}) != len(self.specs):
            raise ValueError("two columns of one name")

    @property
    def used(self) -> tuple[ColumnSpec, ...]:
        """Columns the model sees."""
        return tuple(spec for spec in self.specs if spec.used)

    def to_dict(self) -> dict[str, Any]:
        """Return what a command prints of the plan as JSON."""
        columns = [asdict(spec) for spec in self.specs]
        for spec, column in zip(self.specs, columns, strict=True):
            if spec.format is not None:
                column["format"] = {"kind": KINDS[spec.role].noun, **column["format"]}
        return {"columns": columns}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Choices made about columns that a reader should know."""
        return tuple(note for spec in self.specs for note in spec.notes)


def quoted(name: str) -> str:
    """Put a column's name, which may be any text, into one line of a message."""
    return f'"{one_line(name, 60)}"'


def listed(names: Sequence[str]) -> str:
    """Quote the first of some names, and say how many more there are."""
    first = ", ".join(quoted(name) for name in names[:_LISTED])
    return first + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


OF_FILES = "names the file each row comes from; --categorical takes it into the model"


def infer_plan(
    table: Table, options: ColumnOptions | None = None, *, for_model: bool = True
) -> ColumnPlan:
    """Decide what each column becomes.

    ConfigError for options that do not fit; InputError for too few rows, or if no column is left
    for a model where the plan is for one.
    """
    options = options or ColumnOptions()
    where, columns = table.source.name, [table.column(name) for name in table.frame.columns]
    check_options(options, table.frame.columns, where)
    if table.frame.height < _MIN_ROWS:
        raise InputError(
            f"{where}: {table.frame.height} rows of data are too few to screen; "
            f"give a table with at least {_MIN_ROWS}."
        )
    specs = [_spec(column, options, where, prefer_comma=False) for column in columns]
    declared = {*options.numeric, *options.categorical, *options.by}
    if any(
        isinstance(spec.format, NumberFormat)
        and spec.format.decimal == ","
        and not spec.format.ambiguous
        for spec in specs
    ):
        # A column can only be read with a decimal comma: then so are doubtful ones.
        specs = [_spec(column, options, where, prefer_comma=True) for column in columns]
    specs = [
        replace(spec, role="excluded", why=OF_FILES, format=None, notes=())
        if spec.name == table.source.file_column and spec.used and spec.name not in declared
        else spec
        for spec in specs
    ]
    first: dict[object, str] = {}
    for place, (column, spec) in enumerate(zip(columns, specs, strict=True)):
        if spec.used:
            earlier = first.setdefault(_content(column, spec), spec.name)
            if earlier != spec.name and spec.name not in declared:
                why = f"the same values as column {quoted(earlier)}"
                specs[place] = replace(spec, role="duplicate", why=why, format=None, notes=())
    specs = [
        replace(spec, notes=(*spec.notes, *_shown_elsewhere(column, columns, options.hide)))
        for column, spec in zip(columns, specs, strict=True)
    ]
    plan = ColumnPlan(tuple(specs))
    if for_model and not plan.used:
        roles = ", ".join(f"{quoted(spec.name)} is {spec.role}" for spec in specs[:5])
        raise InputError(
            f"{where}: no column is left for the model ({roles}); "
            "exclude fewer columns, or declare some with --numeric or --categorical."
        )
    return plan


def _shown_elsewhere(
    column: Column, columns: Sequence[Column], hidden: Sequence[str]
) -> Iterator[str]:
    """Say that other columns show what a hidden one holds."""
    if column.name in hidden:
        others = [
            other.name
            for other in columns
            if other.name not in hidden and other.texts.equals(column.texts)
        ]
        if others:
            yield (
                f"Column {quoted(column.name)} is hidden, but {listed(others)} shows the same "
                "values: hide it too."
            )


def check_options(options: ColumnOptions, names: Sequence[str], where: str) -> None:
    """Refuse names the table does not have, and two uses of one column.

    It takes the names alone: they are known before any row of a large table is read.
    """
    uses = {
        "label": (options.label,) if options.label is not None else (),
        "id": (options.id,) if options.id is not None else (),
        "exclude": options.exclude,
        "categorical": options.categorical,
        "numeric": options.numeric,
        "by": options.by,
    }
    taken: dict[str, str] = {}
    for option, columns in (*uses.items(), ("hide", options.hide)):
        for name in columns:
            if name not in names:
                raise OptionError(
                    option,
                    f"names a column {quoted(name)} that the table does not "
                    f"have.{suggest(name, names)}",
                    where,
                )
            if option != "hide" and taken.setdefault(name, option) != option:
                raise ConfigError(
                    f"{where}: column {quoted(name)} is given to both {flag_of(taken[name])} and "
                    f"{flag_of(option)}; keep one of them."
                )


def _content(column: Column, spec: ColumnSpec) -> object:
    """Return what two columns share that hold the same values."""
    if spec.format is None:
        levels = column.levels
        return "text", levels.codes.tobytes(), tuple(levels.texts)
    # No minus zero.
    values = column.read(spec.format).values + 0.0
    return spec.role, hashlib.sha256(values.tobytes()).digest()


def _spec(column: Column, options: ColumnOptions, where: str, *, prefer_comma: bool) -> ColumnSpec:
    """Judge one column by itself: by what the user declared about it, else by the rules."""
    name = column.name
    uses = (
        ("label", "given as the label", (options.label,)),
        ("id", "given as the identifier of rows", (options.id,)),
        ("excluded", "excluded by the user", options.exclude),
        ("categorical", "declared categorical", options.categorical),
        ("categorical", BY, options.by),
    )
    role, why = next(((role, why) for role, why, names in uses if name in names), ("", ""))
    if role:
        counts = column.levels.counts
        spec = ColumnSpec(name, role, why, len(column) - int(counts.sum()), counts.size)
        if role == "categorical" and not spec.n_distinct:
            spec = replace(spec, role="empty", why="no value at all")
    elif name in options.numeric:
        format = column.number_format(prefer_comma)
        read = 0.0 if format is None else _share_read(column, format)
        if format is None or read <= _MOSTLY:
            raise ConfigError(
                f"{where}: column {quoted(name)} is declared numeric but {read:.0%} of its cells "
                "read as numbers; leave it out of --numeric, or declare it categorical."
            )
        spec = _valued(column, "numeric", format, "declared numeric", declared=True)
    else:
        spec = inferred_spec(column, options.dayfirst, prefer_comma)
    return replace(spec, hidden=name in options.hide)


def inferred_spec(column: Column, dayfirst: bool | None, prefer_comma: bool) -> ColumnSpec:
    """Judge a column nobody declared anything about by the rules at the head of this file."""
    name, cells = column.name, column.cells
    if cells.null_count() == cells.len():
        return ColumnSpec(name, "empty", "no value at all", cells.len())
    if cells.dtype in (pl.Date, pl.Datetime):
        timed = cells.dtype == pl.Datetime
        return _valued(column, "datetime", DateFormat(has_time=timed), "dates")
    if cells.dtype not in (pl.String, pl.Boolean):
        return _valued(column, "numeric", column.number_format() or NumberFormat(), "numbers")
    format = column.number_format(prefer_comma) if cells.dtype == pl.String else None
    if format is not None:
        read = _share_read(column, format)
        if read >= _READS_AS:
            return _valued(column, "numeric", format, "numbers")
        if read > _MOSTLY and not _mixed_units(column):
            note = (
                f"Column {quoted(name)}: {read:.0%} of the cells read as numbers, too few to take "
                "the others for typing errors, so it is used as text; --numeric overrides this."
            )
            return replace(_of_text(column), notes=(note,))
    if not len(column.levels.texts):
        return ColumnSpec(name, "empty", "no value at all", cells.len())
    dates = column.date_format(dayfirst)
    if dates is not None:
        # Impossible dates count here: they are errors in a column of dates, not another kind.
        shaped = column.n_like_dates(dates) / column.levels.counts.sum()
        if shaped >= _READS_AS and _share_read(column, dates) > _MOSTLY:
            return _valued(column, "datetime", dates, "dates")
    return replace(_of_text(column), notes=_mixed_units(column))


def _mixed_units(column: Column) -> tuple[str, ...]:
    """Say that numbers of a column have words of different units behind them."""
    words = unit_words(column.levels.texts, column.levels.counts)
    lower = [word for word in words if word != word.upper()]  # others may be codes: 1A, 2B
    if not 1 < len(lower) == len(words) <= _LISTED:
        return ()
    if sum(words.values()) < _READS_AS * column.levels.counts.sum():
        return ()
    return (
        f"Column {quoted(column.name)}: numbers with different units ({listed(lower)}) are not "
        "converted into each other, and used as text; written in one unit they are compared.",
    )


def least_level_count(n_cells: int) -> int:
    """Return how often a level must be seen in `n_cells` cells not to be pooled with rare ones.

    It is 5, or one cell in 20 where that is less, but never fewer than 2.

    >>> least_level_count(10_000), least_level_count(60), least_level_count(4)
    (5, 3, 2)
    """
    return min(5, max(2, -(-n_cells // 20)))


def _share_read(column: Column, format: ValueFormat) -> float:
    """Share of the cells that are not missing which can be read."""
    readings = column.read(format)
    return 1 - float(readings.unreadable.sum()) / max(float((~readings.missing).sum()), 1.0)


def _valued(
    column: Column, role: str, format: ValueFormat, why: str, declared: bool = False
) -> ColumnSpec:
    """Spec of a column of numbers or dates, with what its values themselves rule out."""
    name, values = column.name, column.read(format).ordered
    distinct = np.unique(values)
    if described := format.describe():
        why = f"{why} ({described})"
    spec = ColumnSpec(name, role, why, len(column) - values.size, distinct.size)
    if values.size == 0:
        return replace(spec, role="empty", why="no value at all")
    if not varies(distinct):
        return replace(spec, role="constant", why="one value only")
    if isinstance(format, NumberFormat) and not declared:
        if reason := why_identifier(column, values, format):
            # A note says so, for a mistake would take a measure out of the model.
            note = (
                f"Column {quoted(name)} is left out of the model as an identifier ({reason}); "
                f"--numeric {shlex.quote(one_line(name))} keeps it in."
            )
            why, notes = f"{reason}; --numeric keeps it", () if reason == COUNTING else (note,)
            return replace(spec, role="identifier", why=why, notes=notes)
    in_order = column.read(format).values
    running = runs_on(in_order[~np.isnan(in_order)], is_date=isinstance(format, DateFormat))
    why = f"{why}, in the order of the rows" if running else why
    return replace(spec, format=format, why=why, notes=_format_notes(name, format), runs_on=running)


def _of_text(column: Column) -> ColumnSpec:
    """Spec of a column of text."""
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


def _format_notes(name: str, format: ValueFormat) -> tuple[str, ...]:
    """Sentences on what had to be decided about a format without evidence."""
    if isinstance(format, DateFormat):
        if format.decided_by not in ("default", "option"):
            return ()
        order = "day before month" if format.day_first else "month before day"
        asked = "as asked" if format.decided_by == "option" else "--dayfirst decides otherwise"
        if format.day_first and format.decided_by == "default":
            asked = "as dates with dots are written"
        return (f"Column {quoted(name)}: no date tells day from month; read as {order} ({asked}).",)
    notes = []
    if format.ambiguous:
        other = "decimal comma" if format.thousands == "," else "decimal mark"
        notes.append(
            f'Column {quoted(name)}: "{format.thousands}" is read as a separator of thousands; '
            f"nothing in the column rules out a {other}."
        )
    if len(format.units) > 1:
        units = ", ".join(unit or "none" for unit in format.units)
        notes.append(
            f"Column {quoted(name)}: cells carry different units ({units}); "
            "the signs are taken off and the numbers compared as they stand."
        )
    return tuple(notes)
