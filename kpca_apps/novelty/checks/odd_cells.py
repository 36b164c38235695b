"""What is wrong with cells: odd by themselves, or no values; collected part by part.

A check of cells is a function that learns what a column allows, in a file of its own and named in
`CHECKS`. How clear a cell is depends on no other row: one that was dropped for clearer or earlier
ones never comes back, and parts add up to what the whole would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from kpca_apps.errors import InputError
from kpca_apps.names import listed, quoted
from kpca_apps.novelty.checks.cell_check import CellCheck, OddValue
from kpca_apps.novelty.checks.check_digits import learn_codes
from kpca_apps.novelty.checks.number_rules import UNREADABLE, KnownNumbers, learn_numbers
from kpca_apps.novelty.checks.spelling import learn_spelling
from kpca_apps.novelty.checks.stuck import learn_stuck
from kpca_apps.novelty.columns.kinds import KINDS, Notation
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.relations.finding.keys import NAMING
from kpca_apps.novelty.relations.relations import Contradiction
from kpca_apps.novelty.result import CONTRADICTED, OddCell
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import MAX_OF_A_WORD, MAX_SHARE_OF_A_WORD, Column

# What a column allows, by each check that learned something of it.
CellRule = tuple[CellCheck, ...]

# Each learns from a column of a table, or of rows drawn from one of `n_rows`, that the plan uses:
# learn(table, spec, plan, n_rows, known), where a reference may be `known`. None where it has
# nothing to say of such a column. Of a cell that several find odd, the first speaks.
Learn = Callable[[Table, ColumnSpec, ColumnPlan, int, KnownNumbers | None], CellCheck | None]
CHECKS: tuple[Learn, ...] = (learn_numbers, learn_stuck, learn_spelling)
# Of a column with more, and of a table, the clearest: nobody mends so many one by one.
MAX_CELLS, MAX_CELLS_OF_TABLE = 20_000, 100_000


def cell_rules(
    table: Table,
    plan: ColumnPlan,
    n_rows: int,
    known: Mapping[str, KnownNumbers] = MappingProxyType({}),
) -> tuple[CellRule, ...]:
    """Learn what each checked column allows, from a table of `n_rows` rows or from some drawn.

    Of columns of numbers it may be `known` what those of a reference allow. Codes are nothing else.
    """
    rules = []
    for spec in checked(plan, table):
        given = table, spec, plan, n_rows, known.get(spec.name)
        codes = learn_codes(*given)
        learned = (codes,) if codes else (check(*given) for check in CHECKS)
        rules.append(tuple(rule for rule in learned if rule is not None))
    return tuple(rules)


def checked(plan: ColumnPlan, table: Table) -> tuple[ColumnSpec, ...]:
    """Return the columns whose cells are looked at: those the model uses, then identifiers."""
    naming = (of for of in plan.specs if of.role in NAMING and of.name in table.columns)
    return (*plan.used, *naming)


@dataclass(frozen=True)
class OddValues:
    """Odd values of a column, or of a part of it: those of the clearest 20,000 cells."""

    values: tuple[OddValue, ...] = ()
    n_cells: int = 0

    @classmethod
    def of(
        cls,
        column: Column,
        spec: ColumnSpec,
        rule: CellRule,
        rows: IntArray,
        places: IntArray,
        is_accepted: BoolArray | None = None,
    ) -> OddValues:
        """Look through a part of a column, whose cells stand in some rows (from 1) and lines.

        Cells of accepted rows, and those that an earlier check found, are passed over.
        """
        values = []
        passed_over = np.zeros(len(rows), dtype=bool) if is_accepted is None else is_accepted
        for number, check in enumerate(rule):
            found_odd = [*check.find(column, spec)]
            for found in found_odd:
                cells = found.cells[~passed_over[found.cells]]
                if cells.size:
                    at = tuple(rows[cells].tolist()), tuple(places[cells].tolist())
                    values.append(OddValue(number, *found[:3], found.value, cells.size, *at))
            if found_odd:
                passed_over = passed_over.copy()
                passed_over[np.concatenate([found.cells for found in found_odd])] = True
        return cls._merged(values)

    def __add__(self, other: OddValues) -> OddValues:
        """Put together the values of both parts, of which `other` comes later in the table."""
        both = self._merged((*self.values, *other.values))
        return replace(both, n_cells=self.n_cells + other.n_cells)

    @classmethod
    def _merged(cls, values: Iterable[OddValue]) -> OddValues:
        """Put equal values, given in the order of the table, together; keep the clearest."""
        found: dict[tuple[int, str, str], list[OddValue]] = {}
        for value in values:
            found.setdefault((value.check, value.kind, value.seen), []).append(value)
        merged = [
            replace(
                alike[0],
                n_cells=sum(one.n_cells for one in alike),
                rows=tuple(row for one in alike for row in one.rows),
                places=tuple(place for one in alike for place in one.places),
            )
            for alike in found.values()
        ]
        # By the value alone, not by where it stands: that would differ from part to part.
        merged.sort(key=lambda value: (-value.clearness, value.kind, value.seen))
        return cls(_clearest(merged, MAX_CELLS), sum(value.n_cells for value in merged))


def _clearest(values: Iterable[OddValue], most: int) -> tuple[OddValue, ...]:
    """Keep so many places of values, which come in their order."""
    kept: list[OddValue] = []
    for value in values:
        if most <= 0:
            break
        kept.append(replace(value, rows=value.rows[:most], places=value.places[:most]))
        most -= len(kept[-1].rows)
    return tuple(kept)


class Contradicted(NamedTuple):
    """A cell that the others of its row contradict."""

    row: int  # from 1
    place: int  # line of the file (or the same)
    cell: Contradiction


def odd_cells(
    columns: Sequence[tuple[ColumnSpec, CellRule, Notation, OddValues]],
    *,
    n_rows: int,
    in_lines: bool,
    contradicted: Iterable[Contradicted] = (),
) -> tuple[tuple[OddCell, ...], int]:
    """Put the odd cells of a table of `n_rows` into words, clearest first; say how many were found.

    Of each column that is checked: what it is, allows, how it is written, and what was found. A
    word that stands for numbers again and again, "empty", says that one is missing.
    """
    few = max(MAX_OF_A_WORD, MAX_SHARE_OF_A_WORD * n_rows)
    found, n_cells = [], 0
    for spec, rule, notation, values in columns:
        n_cells += values.n_cells
        for value in values.values:
            if value.kind == UNREADABLE and value.n_cells > few and value.seen.isalpha():
                n_cells -= value.n_cells
            else:
                found.append((value, spec, rule, notation))
    found.sort(key=lambda entry: (-entry[0].clearness, entry[0].rows[0]))
    listed: list[tuple[float, OddCell]] = []
    kept = _clearest((value for value, *_ in found), MAX_CELLS_OF_TABLE)
    contradicted = sorted(contradicted, key=lambda one: -one.cell.clearness)
    against = {(one.cell.column, one.row): one.cell for one in reversed(contradicted)}
    formulas = {
        (one.cell.column, one.row): one.cell
        for one in reversed(contradicted)
        if one.cell.suggestion
    }
    for value, (_, spec, rule, notation) in zip(kept, found, strict=False):
        explained = rule[value.check].explain(value, spec, notation)
        speaking = against if spec.has_levels else formulas
        beside = [speaking.get((spec.name, row)) for row in value.rows]
        listed += _of_value(value, spec, explained, beside, in_lines=in_lines)
    # Of a cell that is odd by itself, its column says what is wrong.
    known = {(one.column, row) for _, one in listed for row in one.rows}
    alike: dict[tuple[str, ...], list[Contradicted]] = {}
    said: set[tuple[str, int]] = set()
    # Of what speaks against a cell, what gives the value that was meant is told.
    for one in sorted(contradicted, key=lambda one: not one.cell.suggestion):
        cell = one.cell
        of_row = {(name, one.row) for name in (cell.column, *cell.given)}
        if known.isdisjoint(of_row) and (cell.column, one.row) not in said:
            said.add((cell.column, one.row))
            key = cell.column, cell.seen, cell.sentence, cell.expected
            alike.setdefault(key, []).append(one)
    for cells in alike.values():
        row, *more_rows = (one.row for one in cells)
        line, *more_lines = (one.place for one in cells)
        cell = cells[0].cell
        n_cells += len(cells)
        odd = OddCell(
            column=cell.column,
            kind=CONTRADICTED,
            seen=cell.seen,
            sentence=cell.sentence,
            suggestion=cell.suggestion,
            row=row,
            line=line if in_lines else None,
            n_cells=len(cells),
            more_rows=tuple(more_rows),
            more_lines=tuple(more_lines) if in_lines else None,
            given=cell.given,
            expected=cell.expected,
            others=cell.others,
        )
        listed.append((against[cell.column, row].clearness, odd))
    listed.sort(key=lambda entry: (-entry[0], entry[1].row))
    n_so_far = np.cumsum([odd.n_cells for _, odd in listed])
    n_listed = max(int(np.searchsorted(n_so_far, MAX_CELLS_OF_TABLE, side="right")), 1)
    return tuple(odd for _, odd in listed[:n_listed]), n_cells


def _of_value(
    value: OddValue,
    spec: ColumnSpec,
    explained: tuple[str, str],
    beside: list[Contradiction | None],
    *,
    in_lines: bool,
) -> Iterator[tuple[float, OddCell]]:
    """Put the cells that hold an odd value into words, with how clear they are.

    `explained` is what the column says of the value, `beside` what the others of each row do. What
    a formula gives for a row was meant there, rather than what would be usual in the column. Of
    levels the letters say more; what the others say is kept of the first cell.
    """
    sentence, suggestion = explained
    alike: dict[tuple[float, str, str, tuple[str, ...]], list[int]] = {}
    for place, one in enumerate(beside[:1] * len(beside) if spec.has_levels else beside):
        said = value.clearness, sentence, suggestion, one.given if one else ()
        if one is not None and not spec.has_levels:
            clearness = max(value.clearness, one.clearness)
            said = clearness, f"{sentence} {one.sentence}", one.suggestion, one.given
        alike.setdefault(said, []).append(place)
    n_unlisted = value.n_cells - len(value.rows)
    for (clearness, sentence, suggestion, given), places in alike.items():
        row, *more_rows = (value.rows[place] for place in places)
        line, *more_lines = (value.places[place] for place in places)
        odd = OddCell(
            column=spec.name,
            kind=value.kind,
            seen=value.seen,
            sentence=sentence,
            suggestion=suggestion,
            row=row,
            line=line if in_lines else None,
            n_cells=len(places) + n_unlisted,
            more_rows=tuple(more_rows),
            more_lines=tuple(more_lines) if in_lines else None,
            given=given,
        )
        yield clearness, odd
        n_unlisted = 0


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

    @classmethod
    def of(cls, column: Column, spec: ColumnSpec, places: IntArray) -> ColumnFaults:
        """Count the faults of a column read as `spec` says, whose cells stand at lines or rows."""
        readings = column.read(spec.format)
        n_missing, rows = int(readings.missing.sum()), np.flatnonzero(readings.unreadable)
        if not rows.size:
            return cls(len(column), n_missing, 0)
        first = int(places[rows[0]]), column.text(int(rows[0]))
        return cls(len(column), n_missing, rows.size, *first)

    def __add__(self, other: ColumnFaults) -> ColumnFaults:
        """Faults of both parts, of which `other` comes later in the table."""
        return ColumnFaults(
            self.n_cells + other.n_cells,
            self.n_missing + other.n_missing,
            self.n_unreadable + other.n_unreadable,
            self.first_place or other.first_place,
            self.first if self.n_unreadable else other.first,
        )


@dataclass(frozen=True)
class CellFaults:
    """Cells of a table, or of a part of it, that are no values, and those that are odd."""

    used: tuple[ColumnFaults, ...]  # of the columns the model uses, in the order of its plan
    n_missing: tuple[int, ...]  # cells without a value of all columns, in the table's order
    odd: tuple[OddValues, ...]  # of the columns that are checked
    contradicted: tuple[Contradicted, ...]  # by other cells of their rows: the clearest 100,000
    n_contradicted: int

    @classmethod
    def of(
        cls,
        table: Table,
        plan: ColumnPlan,
        rules: Sequence[CellRule],
        first_row: int = 0,
        is_accepted: BoolArray | None = None,
        judged: Sequence[Contradiction] = (),
    ) -> CellFaults:
        """Look through a table, or a part of it from `first_row` on, by rules of `cell_rules`.

        Cells that were `judged` by the others of their rows are kept beside. No cell of a row that
        is accepted (n,) is odd.
        """
        rows = np.arange(first_row + 1, first_row + table.frame.height + 1)
        places = rows if table.lines is None else table.lines
        # Of several files, each has such a line.
        named = places if table.source.file_column is None else rows
        used, odd = [], []
        for spec in plan.used:
            used.append(ColumnFaults.of(table.column(spec.name), spec, named))
        for spec, rule in zip(checked(plan, table), rules, strict=True):
            column = table.column(spec.name)
            odd.append(OddValues.of(column, spec, rule, rows, places, is_accepted))
        formats = {spec.name: spec.format for spec in plan.specs}
        n_missing = []
        for name in table.frame.columns:
            readings = table.column(name).read(formats.get(name))
            n_missing.append(int((readings.missing | readings.unreadable).sum()))
        contradicted = tuple(
            Contradicted(int(rows[one.row]), int(places[one.row]), one)
            for one in judged
            if is_accepted is None or not is_accepted[one.row]
        )
        return cls(tuple(used), tuple(n_missing), tuple(odd), contradicted, len(contradicted))

    def __add__(self, other: CellFaults) -> CellFaults:
        """Faults of both parts, of which `other` comes later in the table."""
        used = tuple(a + b for a, b in zip(self.used, other.used, strict=True))
        n_missing = tuple(a + b for a, b in zip(self.n_missing, other.n_missing, strict=True))
        odd = tuple(a + b for a, b in zip(self.odd, other.odd, strict=True))
        both = (*self.contradicted, *other.contradicted)
        if len(both) > MAX_CELLS_OF_TABLE:
            both = tuple(sorted(both, key=lambda one: -one.cell.clearness)[:MAX_CELLS_OF_TABLE])
        n_contradicted = self.n_contradicted + other.n_contradicted
        return CellFaults(used, n_missing, odd, both, n_contradicted)

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
    first = f" ({quoted(faults.first)})"
    if 2 * n > faults.n_cells - faults.n_missing:
        unread = "1 cell does not read so" if n == 1 else f"{n} cells do not read so"
        which = (
            f"{name}, {word} {faults.first_place}: column {quoted(spec.name)} holds "
            f"{noun}s in the reference, but {unread}, first this one"
        )
        rest = "; correct them, or fit a model without the column."
        raise InputError(Note(f"{which}{first}{rest}", f"{which}{rest}", (spec.name,)))
    what = f"1 cell is no {noun}" if n == 1 else f"{n} cells are no {noun}s"
    counts = "counts" if n == 1 else "count"
    where = f"{'on' if word == 'line' else 'in'} {word} {faults.first_place}"
    where = where if n == 1 else f"first {where}"
    which = f"Column {quoted(spec.name)}: {what} and {counts} as missing, {where}"
    return Note(f"{which}{first}.", f"{which}.", (spec.name,))
