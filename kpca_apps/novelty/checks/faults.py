"""What is wrong with the cells of a table, collected part by part and put into words once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kpca_apps.errors import InputError
from kpca_apps.novelty.checks.odd_cells import CellRule, OddValues
from kpca_apps.novelty.columns.kinds import KINDS
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec, listed, quoted
from kpca_apps.novelty.redact import Note
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

# Of every table with gaps: nothing that a reader must know before believing the list.
FILLED = "filled with what the other columns suggest"


@dataclass(frozen=True)
class ColumnFaults:
    """Cells of one column, or of a part of it, that are no values."""

    n_cells: int
    n_missing: int  # empty, or say so
    n_unreadable: int  # hold something else
    first_place: int = 0  # line of the file, or row from 1, of the first unreadable cell; 0: none
    first: str = ""  # that cell as it stands in the table
    why: str = ""  # what keeps all of them from being read, where it is one thing

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec, places: IntArray) -> ColumnFaults:
        """Count the faults of a column read as `spec` says, whose cells stand at lines or rows."""
        readings = column.read(spec.format)
        n_missing, rows = int(readings.missing.sum()), np.flatnonzero(readings.unreadable)
        if not rows.size:
            return cls(len(column), n_missing, 0)
        why = "" if spec.format is None else column.take(rows).why_unreadable(spec.format)
        first = int(places[rows[0]]), column.text(int(rows[0]))
        return cls(len(column), n_missing, rows.size, *first, why)

    def __add__(self, other: ColumnFaults) -> ColumnFaults:
        """Faults of both parts, of which `other` comes later in the table."""
        both = self.n_unreadable and other.n_unreadable
        return ColumnFaults(
            self.n_cells + other.n_cells,
            self.n_missing + other.n_missing,
            self.n_unreadable + other.n_unreadable,
            self.first_place or other.first_place,
            self.first if self.n_unreadable else other.first,
            (self.why if self.why == other.why else "") if both else self.why or other.why,
        )


@dataclass(frozen=True)
class CellFaults:
    """Cells of a table, or of a part of it, that are no values, and those that are odd."""

    used: tuple[ColumnFaults, ...]  # of the columns the model uses, in the order of its plan
    n_missing: tuple[int, ...]  # cells without a value of all columns, in the table's order
    odd: tuple[OddValues, ...]  # of the columns the model uses

    @classmethod
    def of(
        cls,
        table: Table,
        plan: ColumnPlan,
        rules: Sequence[CellRule],
        first_row: int = 0,
        is_accepted: BoolArray | None = None,
    ) -> CellFaults:
        """Look through a table, or a part of it from `first_row` on, by rules of `cell_rules`.

        No cell of a row that is accepted (n,) is odd.
        """
        rows = np.arange(first_row + 1, first_row + table.frame.height + 1)
        places = rows if table.lines is None else table.lines
        # Of several files, each has such a line.
        named = places if table.source.file_column is None else rows
        used, odd = [], []
        for spec, rule in zip(plan.used, rules, strict=True):
            column = table.column(spec.name)
            used.append(ColumnFaults.of(column, spec, named))
            odd.append(OddValues.of(column, spec, rule, rows, places, is_accepted))
        formats = {spec.name: spec.format for spec in plan.specs}
        n_missing = []
        for name in table.frame.columns:
            readings = table.column(name).read(formats.get(name))
            n_missing.append(int((readings.missing | readings.unreadable).sum()))
        return cls(tuple(used), tuple(n_missing), tuple(odd))

    def __add__(self, other: CellFaults) -> CellFaults:
        """Faults of both parts, of which `other` comes later in the table."""
        used = tuple(a + b for a, b in zip(self.used, other.used, strict=True))
        n_missing = tuple(a + b for a, b in zip(self.n_missing, other.n_missing, strict=True))
        odd = tuple(a + b for a, b in zip(self.odd, other.odd, strict=True))
        return CellFaults(used, n_missing, odd)

    def sentences(
        self, plan: ColumnPlan, name: str, *, in_lines: bool, drawn: bool = False
    ) -> Iterator[str]:
        """Say what was done to the cells of the table `name`, `drawn` from to learn its columns.

        InputError if most cells of a column cannot be read.
        """
        filled, n_filled = [], 0
        for spec, column in zip(plan.used, self.used, strict=True):
            if column.n_unreadable:
                yield _unreadable_note(name, spec, column, "line" if in_lines else "row")
            n_gaps = column.n_missing + column.n_unreadable
            if n_gaps and not spec.n_missing:
                rows = "1 row lacks" if n_gaps == 1 else f"{n_gaps} rows lack"
                what = (
                    "which no row drawn to learn from did; that a value is missing counts for "
                    "nothing in their scores."
                    if drawn
                    else "which no row of the reference did; false alarms may be more frequent "
                    "than stated."
                )
                yield f"Column {quoted(spec.name)}: {rows} a value, {what}"
            if n_gaps and not spec.has_levels:
                filled.append(spec.name)
                n_filled += n_gaps
        if filled:
            cells = "1 missing value was" if n_filled == 1 else f"{n_filled:,} missing values were"
            yield f"{cells} {FILLED}, in {listed(filled)}."


def _unreadable_note(name: str, spec: ColumnSpec, faults: ColumnFaults, word: str) -> Note:
    """Name the cells that do not read as values; refuse a column made mostly of them."""
    n, noun = faults.n_unreadable, KINDS[spec.role].noun
    # What is no number does not look like one; what is no date may.
    noun = noun if noun == "number" else f"possible {noun}"
    first, why = f" ({quoted(faults.first)})", f", {faults.why}" if faults.why else ""
    if 2 * n > faults.n_cells - faults.n_missing:
        unread = "1 cell does not read so" if n == 1 else f"{n} cells do not read so"
        which = (
            f"{name}, {word} {faults.first_place}: column {quoted(spec.name)} holds "
            f"{noun}s in the reference, but {unread}, first this one"
        )
        rest = f"{why}; correct them, or fit a model without the column."
        raise InputError(Note(f"{which}{first}{rest}", f"{which}{rest}", (spec.name,)))
    what = f"1 cell is no {noun}" if n == 1 else f"{n} cells are no {noun}s"
    counts = "counts" if n == 1 else "count"
    where = f"{'on' if word == 'line' else 'in'} {word} {faults.first_place}"
    where = where if n == 1 else f"first {where}"
    which = f"Column {quoted(spec.name)}: {what} and {counts} as missing, {where}"
    return Note(f"{which}{first}{why}.", f"{which}{why}.", (spec.name,))
