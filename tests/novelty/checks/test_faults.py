"""Faults counted in parts are those of the whole table, and are said in the same words."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.errors import InputError
from kpca_apps.novelty.checks.odd_cells import CellFaults
from kpca_apps.novelty.columns.encoding import TableEncoder
from kpca_apps.novelty.columns.plan import ColumnOptions, infer_plan
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table

CELLS = st.sampled_from(["1.5", "2.25", "x", "12O", "", "?", "3,5", "1e300", "7"])
CLEAN = table_from_frame(
    pl.DataFrame(
        {"a": [str(i + 0.5) for i in range(20)], "b": ["u", "v"] * 10, "c": ["x", ""] * 10}
    ),
    "t.csv",
)
PLAN = infer_plan(CLEAN, ColumnOptions(exclude=("c",)))
ENCODER = TableEncoder.fit(CLEAN, PLAN, contaminated=True)


def faults_of(table: Table, first_row: int = 0) -> CellFaults:
    return CellFaults.of(table, PLAN, [()] * len(PLAN.used), first_row)


def part_of(table: Table, start: int, stop: int) -> Table:
    lines = None if table.lines is None else table.lines[start:stop]
    return Table(table.frame[start:stop], lines, table.source)


@pytest.mark.release
@given(a=st.lists(CELLS, min_size=2, max_size=40), cut=st.integers(1, 39), lined=st.booleans())
def test_parts_add_up_to_the_whole(a: list[str], cut: int, lined: bool) -> None:
    frame = pl.DataFrame({"a": a, "b": ["u", "", *["v"] * (len(a) - 2)], "c": ["", *a[1:]]})
    lines = np.arange(len(a)) * 3 + 2 if lined else None
    table = Table(frame, lines, CLEAN.source)
    cuts = sorted({0, min(cut, len(a)), len(a) // 2, len(a)})
    faults = reduce(
        add,
        [faults_of(part_of(table, i, j), i) for i, j in pairwise(cuts)],
    )
    whole = faults_of(table)
    assert (faults.used[1:], faults.n_missing) == (whole.used[1:], whole.n_missing)
    # What keeps all cells from being read is known of a whole whose parts have the same reason.
    assert faults.used[0].why in ("", whole.used[0].why)
    assert next(map(vars, faults.used)) | {"why": whole.used[0].why} == vars(whole.used[0])
    matrices = [ENCODER.matrix(part_of(table, i, j)) for i, j in pairwise(cuts)]
    np.testing.assert_array_equal(np.vstack(matrices), ENCODER.matrix(table))


def test_a_column_of_which_most_cells_do_not_read_is_refused_for_the_whole_table() -> None:
    frame = pl.DataFrame({"a": ["x"] * 4 + ["1.5"] * 6, "b": ["u"] * 10, "c": ["u"] * 10})
    halves = [faults_of(Table(frame[i : i + 5], None, CLEAN.source), i) for i in (0, 5)]
    said = [*(halves[0] + halves[1]).sentences(PLAN, "t.csv", in_lines=False)]
    assert 'Column "a": 4 cells are no numbers and count as missing, first in row 1' in said[0]
    with pytest.raises(InputError, match=r't\.csv, row 1: column "a" holds numbers'):
        [*halves[0].sentences(PLAN, "t.csv", in_lines=False)]


def test_gaps_that_no_row_drawn_had_are_said() -> None:
    frame = pl.DataFrame({"a": ["", "1.5", "2.5"], "b": ["u"] * 3, "c": ["u"] * 3})
    faults = faults_of(Table(frame, None, CLEAN.source))
    (said, filled) = faults.sentences(PLAN, "t", in_lines=False, drawn=True)
    assert said.startswith('Column "a": 1 row lacks a value, which no row drawn to learn from did')
    assert filled.startswith("1 missing value was filled")
