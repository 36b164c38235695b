"""Cells that are odd by themselves, collected part by part in bounded memory and put into words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.files.tables.dates import DateFormat
from kpca_apps.files.tables.numbers import NumberFormat
from kpca_apps.files.tables.values import Column, ValueFormat
from kpca_apps.novelty.result import OddCell
from kpca_apps.novelty.table.cell_rules import KINDS, NumberRule
from kpca_apps.novelty.table.coders import spec_levels
from kpca_apps.novelty.table.notation import Notation
from kpca_apps.novelty.table.specs import ColumnSpec, quoted
from kpca_apps.novelty.table.spelling import SpellingRule, folded

__all__ = ["MAX_LISTED", "OddValue", "OddValues", "odd_cells"]

IntArray = NDArray[np.int64]
Rule = NumberRule | SpellingRule | None

MAX_LISTED = 50
# Of one column: one bad column does not fill the list.
MAX_A_COLUMN = 10
MAX_PLACES = 5
UNREADABLE, MISSPELT = "unreadable", "misspelt"
CLEARNESS = {UNREADABLE: 6.0}
# Letters typed for the digits they look like.
LOOKALIKES = str.maketrans("OoQDlI|SsBZz", "000011155822")


@dataclass(frozen=True)
class OddValue:
    """A value of a column that is odd by itself, and where it stands.

    Attributes
    ----------
    kind : str
        See `OddCell`.
    seen : str
        As it stands in the table.
    value : float
        As a number; NaN where it is none.
    clearness : float
        How clear it is, in decimal digits; it depends on the value and its column alone.
    n_cells : int
        Cells that hold it.
    rows, places : tuple of int
        The first five: positions in the table from 1, and lines of the file (or the same).
    """

    kind: str
    seen: str
    value: float
    clearness: float
    n_cells: int
    rows: tuple[int, ...]
    places: tuple[int, ...]

    def __add__(self, other: OddValue) -> OddValue:
        """Put together the same value of both parts, of which `other` comes later in the table."""
        return replace(
            self,
            n_cells=self.n_cells + other.n_cells,
            rows=(*self.rows, *other.rows)[:MAX_PLACES],
            places=(*self.places, *other.places)[:MAX_PLACES],
        )


@dataclass(frozen=True)
class OddValues:
    """Odd values of one column, or of a part of it: the ten clearest, and how many cells in all.

    A value that was dropped for ten clearer ones never comes back, for how clear it is depends on
    no other row: parts add up to what the whole would give.

    Examples
    --------
    >>> one = OddValues.of([OddValue("sign", "-3", -3.0, 4.0, 1, (7,), (8,))])
    >>> (one + one).values[0].n_cells, (one + one).n_cells
    (2, 2)
    """

    values: tuple[OddValue, ...] = ()
    n_cells: int = 0

    @classmethod
    def of(cls, values: Iterable[OddValue]) -> OddValues:
        """Keep the clearest of some values, no two alike."""
        found = list(values)
        return cls(_clearest(found), sum(value.n_cells for value in found))

    def __add__(self, other: OddValues) -> OddValues:
        """Put together the values of both parts, of which `other` comes later in the table."""
        both = {(value.kind, value.seen): value for value in self.values}
        for value in other.values:
            key = (value.kind, value.seen)
            both[key] = both[key] + value if key in both else value
        return OddValues(_clearest(both.values()), self.n_cells + other.n_cells)

    @classmethod
    def found(
        cls,
        column: Column,
        spec: ColumnSpec,
        rule: Rule,
        first_row: int,
        places: IntArray,
    ) -> OddValues:
        """Look through the cells of a column, or of a part of it.

        Parameters
        ----------
        column : Column
            They.
        spec : ColumnSpec
            What they are read as.
        rule : NumberRule, SpellingRule or None
            What the column allows.
        first_row : int
            Position of the first cell in the whole table, from 0.
        places : (n,) int array
            Line or row of each.
        """
        if isinstance(rule, SpellingRule):
            return cls.of(_misspelt(column, spec, rule, first_row, places))
        readings = column.read(spec.format)
        kinds = np.zeros(len(column), dtype=np.int64)
        if isinstance(rule, NumberRule):
            kinds = rule.judge(readings.values)
        kinds[readings.unreadable] = len(KINDS)
        odd = np.flatnonzero(kinds)
        found: dict[tuple[str, str], OddValue] = {}
        for row, seen in zip(odd.tolist(), _as_written(column.take(odd)), strict=True):
            kind, value = (*KINDS, UNREADABLE)[kinds[row]], float(readings.values[row])
            one = OddValue(kind, seen, value, 0.0, 1, (first_row + row + 1,), (int(places[row]),))
            key = (kind, seen)
            found[key] = found[key] + one if key in found else one
        return cls.of(replace(v, clearness=_clearness(v, rule)) for v in found.values())


def _clearness(value: OddValue, rule: Rule) -> float:
    if isinstance(rule, NumberRule) and value.kind != UNREADABLE:
        return rule.clearness(value.kind, value.value)
    return CLEARNESS[UNREADABLE]


def _clearest(values: Iterable[OddValue]) -> tuple[OddValue, ...]:
    # By the value alone, not by where it stands: that would differ from part to part.
    ordered = sorted(values, key=lambda value: (-value.clearness, value.kind, value.seen))
    return tuple(ordered[:MAX_A_COLUMN])


def _as_written(column: Column) -> list[str]:
    """Write cells as text."""
    if column.cells.dtype == pl.String:
        return [text.strip() for text in column.cells]
    return [column.text(row) for row in range(len(column))]


def _misspelt(
    column: Column, spec: ColumnSpec, rule: SpellingRule, first_row: int, places: IntArray
) -> list[OddValue]:
    """Levels of a column that are common ones mistyped."""
    levels = spec_levels(column, spec)
    found = []
    for code, seen in enumerate(levels.texts):
        meant = rule.meant(seen)
        if meant is not None:
            rows = np.flatnonzero(levels.codes == code)
            first = rows[:MAX_PLACES]
            at = tuple((first_row + first + 1).tolist()), tuple(places[first].tolist())
            clear = 3.0 + float(np.log10(rule.counts[meant]))
            found.append(OddValue(MISSPELT, seen, np.nan, clear, len(rows), *at))
    return found


def odd_cells(
    columns: Sequence[tuple[ColumnSpec, Rule, Notation | None, OddValues]], *, in_lines: bool
) -> tuple[tuple[OddCell, ...], int]:
    """Put the clearest odd cells of a table into words.

    Parameters
    ----------
    columns : sequence of (ColumnSpec, rule, Notation or None, OddValues)
        Of the columns the model uses: what each is, allows, how it is written, and what was found.
    in_lines : bool
        Whether places are lines of a file.

    Returns
    -------
    cells : tuple of OddCell
        At most 50, clearest first.
    n_cells : int
        How many cells were found in all.
    """
    found = [
        (value, spec, rule, notation)
        for spec, rule, notation, values in columns
        for value in values.values
    ]
    found.sort(key=lambda entry: (-entry[0].clearness, entry[0].rows[0]))
    listed = tuple(_in_words(*entry, in_lines=in_lines) for entry in found[:MAX_LISTED])
    return listed, sum(values.n_cells for *_, values in columns)


def _in_words(
    value: OddValue, spec: ColumnSpec, rule: Rule, notation: Notation | None, *, in_lines: bool
) -> OddCell:
    format = spec.format
    if value.kind == UNREADABLE:
        sentence = "Not a possible date." if isinstance(format, DateFormat) else "Not a number."
        suggestion = _readable(value.seen, format, rule)
    elif isinstance(rule, SpellingRule):
        suggestion = rule.meant(value.seen) or ""
        times = rule.counts[suggestion]
        how = "Written like" if folded(value.seen) == folded(suggestion) else "One slip from"
        sentence = f"{how} {quoted(suggestion)}, which is in {times:,} cells."
    else:
        assert isinstance(rule, NumberRule) and notation is not None and format is not None
        sentence = _of_number(value, rule, format, notation)
        meant = rule.meant(value.value) if value.kind in ("far above", "far below") else None
        if value.kind == "sign":
            suggestion = value.seen[1:] if rule.sign and rule.sign.sign > 0 else f"-{value.seen}"
        elif meant is None:
            suggestion = ""
        else:
            whole = meant == round(meant) and isinstance(format, NumberFormat)
            suggestion = f"{meant:.0f}" if whole else _written(meant, format, notation)
    shown = (value.seen, sentence, suggestion)
    if spec.hidden:
        shown = ("(hidden)", "The values of the column are hidden.", "")
    return OddCell(
        column=spec.name,
        kind="date" if isinstance(format, DateFormat) and value.kind in KINDS else value.kind,
        seen=shown[0],
        sentence=shown[1],
        suggestion=shown[2],
        row=value.rows[0],
        line=value.places[0] if in_lines else None,
        n_cells=value.n_cells,
        more_places=value.places[1:],
    )


def _of_number(value: OddValue, rule: NumberRule, format: ValueFormat, notation: Notation) -> str:
    """Say what is odd about a number or a date."""
    if value.kind == "sign":
        assert rule.sign is not None
        others = "0 or more" if rule.sign.sign > 0 else "0 or less"
        return f"The column's other numbers are {others}, and this one without its sign is usual."
    if value.kind == "placeholder":
        where = "below 0, as no other number" if value.value < 0 else "far above all others"
        return f"In {value.n_cells:,} cells, {where}: a code for a missing value?"
    if value.kind == "zero":
        return "The column's other numbers are all far from 0: a missing value?"
    side = rule.side_beyond(value.value)
    reach = _written(side.reach, format, notation)
    if isinstance(format, DateFormat):
        when, end = ("after", "latest") if side.turn > 0 else ("before", "earliest")
        return f"Far {when} the rest of the column, whose {end} is {reach}."
    where, end = ("above", "largest") if side.turn > 0 else ("below", "smallest")
    return f"Far {where} the rest of the column, whose {end} is {reach}."


def _written(value: float, format: ValueFormat, notation: Notation) -> str:
    if isinstance(format, DateFormat):
        return notation.date(value, format)
    return notation.number(value, format)


def _readable(seen: str, format: ValueFormat | None, rule: Rule) -> str:
    """Return what would read as a usual number with letters for the digits they look like."""
    if not isinstance(format, NumberFormat) or not isinstance(rule, NumberRule):
        return ""
    spaced, swapped = "".join(seen.split()), seen.translate(str.maketrans(".,", ",."))
    tried = [seen.translate(LOOKALIKES), spaced, spaced.translate(LOOKALIKES), swapped]
    values = Column(pl.Series(tried)).read(format).values
    low, high = rule.middle
    usual = [text for text, value in zip(tried, values, strict=True) if low <= value <= high]
    return usual[0] if usual else ""
