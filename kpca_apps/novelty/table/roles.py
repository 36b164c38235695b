"""The role of one column, judged by its own cells.

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
"""

from __future__ import annotations

import shlex
from dataclasses import replace

import numpy as np
import polars as pl

from kpca_apps.errors import ConfigError
from kpca_apps.files.names import one_line
from kpca_apps.files.tables.dates import DateFormat
from kpca_apps.files.tables.numbers import NumberFormat
from kpca_apps.files.tables.values import Column, ValueFormat
from kpca_apps.novelty.magnitudes import varies
from kpca_apps.novelty.table.identifiers import COUNTING, DISTINCT, has_one_shape, why_identifier
from kpca_apps.novelty.table.specs import ColumnOptions, ColumnSpec, quoted

__all__ = ["declared_spec", "inferred_spec", "least_level_count"]

_READS_AS = 0.9  # share of the cells that must read as numbers (dates) to make the column so
_MOSTLY = 0.5  # above this share, not being numeric is said
_MANY_WORDS = 3.0  # words on average from which such a column is prose, not names
_ONE_WORD = 1.5  # words on average below which it holds codes
_TRUTH = ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"})


def declared_spec(
    column: Column, options: ColumnOptions, where: str, prefer_comma: bool
) -> ColumnSpec | None:
    """Judge a column the user declared something about; ``None`` for others.

    Parameters
    ----------
    column : Column
        The column.
    options : ColumnOptions
        What the user declared.
    where : str
        Name of the table, for messages.
    prefer_comma : bool
        See `infer_number_format`.

    Returns
    -------
    ColumnSpec or None

    Raises
    ------
    ConfigError
        If the column is declared numeric and holds hardly any numbers.
    """
    name = column.name
    if name == options.label:
        return _counted(ColumnSpec(name, "label", "given as the label"), column)
    if name == options.id:
        return _counted(ColumnSpec(name, "id", "given as the identifier of rows"), column)
    if name in options.exclude:
        return _counted(ColumnSpec(name, "excluded", "excluded by the user"), column)
    if name in options.categorical:
        spec = _counted(ColumnSpec(name, "categorical", "declared categorical"), column)
        return spec if spec.n_distinct else replace(spec, role="empty", why="no value at all")
    if name not in options.numeric:
        return None
    format = column.number_format(prefer_comma)
    read = 0.0 if format is None else _share_read(column, format)
    if format is None or read <= _MOSTLY:
        raise ConfigError(
            f"{where}: column {quoted(name)} is declared numeric but {read:.0%} of its cells read "
            "as numbers; leave it out of --numeric, or declare it categorical."
        )
    return _valued(column, "numeric", format, "declared numeric", declared=True)


def inferred_spec(column: Column, dayfirst: bool | None, prefer_comma: bool) -> ColumnSpec:
    """Judge a column by the rules at the head of this file.

    Parameters
    ----------
    column : Column
        The column.
    dayfirst : bool or None
        See `infer_date_format`.
    prefer_comma : bool
        See `infer_number_format`.

    Returns
    -------
    ColumnSpec

    Examples
    --------
    >>> days = pl.Series("when", ["2008-01-05", "2009-07-30"])
    >>> inferred_spec(Column(days), None, False).role
    'datetime'
    """
    name = column.name
    cells = column.cells
    if cells.null_count() == cells.len():
        return ColumnSpec(name, "empty", "no value at all", cells.len())
    if cells.dtype in (pl.Date, pl.Datetime):
        timed = cells.dtype == pl.Datetime
        return _valued(column, "datetime", DateFormat(has_time=timed), "dates")
    if cells.dtype not in (pl.String, pl.Boolean):
        return _valued(column, "numeric", NumberFormat(), "numbers")
    format = column.number_format(prefer_comma) if cells.dtype == pl.String else None
    if format is not None:
        read = _share_read(column, format)
        if read >= _READS_AS:
            return _valued(column, "numeric", format, "numbers")
        if read > _MOSTLY:
            note = (
                f"Column {quoted(name)}: {read:.0%} of the cells read as numbers, too few to take "
                "the others for typing errors, so it is used as text; --numeric overrides this."
            )
            return replace(_levels(column), notes=(note,))
    if not len(column.levels.texts):
        return ColumnSpec(name, "empty", "no value at all", cells.len())
    dates = column.date_format(dayfirst)
    if dates is not None:
        # Impossible dates count here: they are errors in a column of dates, not another kind.
        shaped = column.n_like_dates(dates) / column.levels.counts.sum()
        if shaped >= _READS_AS and _share_read(column, dates) > _MOSTLY:
            return _valued(column, "datetime", dates, "dates")
    return _levels(column)


def least_level_count(n_cells: int) -> int:
    """Return how often a level must be seen not to be pooled with other rare ones.

    Parameters
    ----------
    n_cells : int
        Cells with a value.

    Returns
    -------
    int
        5, or one cell in 20 where that is less, but never fewer than 2.

    Examples
    --------
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
    readings = column.read(format)
    values = readings.ordered
    distinct = np.unique(values)
    if described := format.describe():
        why = f"{why} ({described})"
    counted = ColumnSpec(column.name, role, why, len(column) - values.size, distinct.size)
    if values.size == 0:
        return replace(counted, role="empty", why="no value at all")
    if not varies(distinct):
        return replace(counted, role="constant", why="one value only")
    if isinstance(format, NumberFormat) and not declared:
        if reason := why_identifier(column, values, format):
            return _identifier(counted, reason)
    return replace(counted, format=format, notes=_format_notes(column.name, format))


def _levels(column: Column) -> ColumnSpec:
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
        kind = "strings" if differ else "codes"
        return replace(
            spec, role="identifier", why=f"{n_distinct} distinct {kind} in {n_cells} cells"
        )
    return replace(spec, role="text", why=f"{n_distinct} distinct strings, too many for categories")


def _counted(spec: ColumnSpec, column: Column) -> ColumnSpec:
    """Fill in the counts of a column that is not read as values."""
    counts = column.levels.counts
    return replace(spec, n_missing=len(column) - int(counts.sum()), n_distinct=counts.size)


def _identifier(spec: ColumnSpec, reason: str) -> ColumnSpec:
    """Spec of a column of numbers that names rows.

    It is said, for a mistake would take a measure out of the model.
    """
    spec = replace(spec, role="identifier", why=f"{reason}; --numeric keeps it")
    if reason == COUNTING:
        return spec
    note = (
        f"Column {quoted(spec.name)} is left out of the model as an identifier ({reason}); "
        f"--numeric {shlex.quote(one_line(spec.name))} keeps it in."
    )
    return replace(spec, notes=(note,))


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
