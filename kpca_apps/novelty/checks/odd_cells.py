"""Cells that are odd by themselves: the checks of a column, their cells collected part by part.

A check of cells is a function that learns what a column allows, in a file of its own and named in
`CHECKS`. How clear a cell is depends on no other row: one that was dropped for clearer or earlier
ones never comes back, and parts add up to what the whole would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpca_apps.novelty.checks.cell_check import CellCheck, OddValue
from kpca_apps.novelty.checks.number_rules import UNREADABLE, learn_numbers
from kpca_apps.novelty.checks.spelling import learn_spelling
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec
from kpca_apps.novelty.result import OddCell
from kpca_apps.system.arrays import BoolArray, IntArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

# What a column allows, by each check that learned something of it.
CellRule = tuple[CellCheck, ...]

# Each learns from a column of a table, or of rows drawn from one of `n_rows`, that the plan uses:
# learn(table, spec, plan, n_rows). None where it has nothing to say of such a column. Of a cell
# that several find odd, the first speaks.
CHECKS: tuple[Callable[[Table, ColumnSpec, ColumnPlan, int], CellCheck | None], ...] = (
    learn_numbers,
    learn_spelling,
)
# Of a column with more, and of a table, the clearest: nobody mends so many one by one.
MAX_CELLS, MAX_CELLS_OF_TABLE = 20_000, 100_000
MAX_OF_A_WORD, MAX_SHARE_OF_A_WORD = 5, 0.01


def cell_rules(table: Table, plan: ColumnPlan, n_rows: int) -> tuple[CellRule, ...]:
    """Learn what each used column allows, from a table of `n_rows` rows or from some drawn."""
    return tuple(
        tuple(rule for check in CHECKS if (rule := check(table, spec, plan, n_rows)) is not None)
        for spec in plan.used
    )


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


def odd_cells(
    columns: Sequence[tuple[ColumnSpec, CellRule, Notation, OddValues]],
    *,
    n_rows: int,
    in_lines: bool,
) -> tuple[tuple[OddCell, ...], int]:
    """Put the odd cells of a table of `n_rows` into words, clearest first; say how many were found.

    Of each column the model uses: what it is, allows, how it is written, and what was found. A word
    that stands for numbers again and again, "empty", is how the column says that one is missing.
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
    listed = []
    kept = _clearest((value for value, *_ in found), MAX_CELLS_OF_TABLE)
    for value, (_, spec, rule, notation) in zip(kept, found, strict=False):
        sentence, suggestion = rule[value.check].explain(value, spec, notation)
        (row, *more_rows), (line, *more_lines) = value.rows, value.places
        listed.append(
            OddCell(
                column=spec.name,
                kind=value.kind,
                seen=value.seen,
                sentence=sentence,
                suggestion=suggestion,
                row=row,
                line=line if in_lines else None,
                n_cells=value.n_cells,
                more_rows=tuple(more_rows),
                more_lines=tuple(more_lines) if in_lines else None,
            )
        )
    return tuple(listed), n_cells
