"""Odd cells of a table equal those of merged parts; few are listed, and all are counted."""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.errors import InputError
from kpca_apps.novelty.checks import odd_cells as cells_module
from kpca_apps.novelty.checks.cell_check import FoundValue, OddValue
from kpca_apps.novelty.checks.number_rules import NumberRule
from kpca_apps.novelty.checks.odd_cells import (
    CellFaults,
    CellRule,
    cell_rules,
    listed_cells,
    table_of_evidence,
)
from kpca_apps.novelty.columns.encoding import TableEncoder
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnOptions, ColumnPlan, ColumnSpec, infer_plan
from kpca_apps.novelty.result import MAX_ODD_CELLS_A_COLUMN, OddCell, clearest
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import Column

N = 600


def cells() -> dict[str, list[str]]:
    rng = np.random.default_rng(0)
    return {
        "height": [f"{value:.1f}" for value in rng.normal(170, 9, N)],
        "age": [f"{value:.0f}" for value in rng.uniform(18, 80, N)],
        "town": rng.choice(["Amsterdam", "Rotterdam", "Utrecht"], N).tolist(),
        "seen": [f"2023-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)],
    }


PLANTED = {
    ("height", 3): "1702.5",
    ("height", 7): "17O.5",
    ("height", 8): "16?",
    ("age", 11): "-44",
    ("age", 50): "-999",
    ("age", 51): "-999",
    ("age", 590): "-999",
    ("town", 20): "Amstrdam",
    ("town", 400): "utrecht",
    ("seen", 30): "2923-04-05",
    ("seen", 31): "2023-02-31",
}


def damaged() -> Table:
    columns = cells()
    for (name, row), text in PLANTED.items():
        columns[name][row] = text
    table = table_from_frame(pl.DataFrame(columns), "people.csv")
    return Table(table.frame, np.arange(N) + 2, table.source)


def found_in(table: Table, cuts: list[int], **roles: tuple[str, ...]) -> tuple[list[OddCell], int]:
    plan = infer_plan(table, ColumnOptions(**roles))
    encoder = TableEncoder.fit(table, plan, contaminated=True)
    rules = cell_rules(table, plan, table.frame.height)
    faults = faults_in(table, cuts, plan, rules)
    notations = [getattr(coder, "notation", Notation()) for coder in encoder.coders]
    columns = list(zip(plan.used, rules, notations, strict=True))
    evidence, n_cells = table_of_evidence(columns, faults, n_rows=table.frame.height)
    return list(listed_cells(evidence, in_lines=table.lines is not None)), n_cells


def faults_in(
    table: Table, cuts: list[int], plan: ColumnPlan, rules: Sequence[CellRule]
) -> CellFaults:
    """Combine the faults of the parts of a table."""
    parts = (table.take(np.arange(*pair)) for pair in pairwise(cuts))
    return reduce(
        add, [CellFaults.of(p, plan, rules, i) for p, i in zip(parts, cuts, strict=False)]
    )


def test_planted_cells_are_listed_with_line_and_suggestion() -> None:
    listed, n_cells = found_in(damaged(), [0, N])
    cells = {(c.column, c.row - 1): (c.kind, c.seen, c.suggestion, c.n_cells) for c in listed}
    assert cells == {
        ("height", 3): ("far above", "1702.5", "170.25", 1),
        ("height", 7): ("unreadable", "17O.5", "170.5", 1),
        ("height", 8): ("unreadable", "16?", "", 1),
        ("age", 11): ("sign", "-44", "44", 1),
        ("age", 50): ("placeholder", "-999", "", 3),
        ("town", 20): ("misspelt", "Amstrdam", "Amsterdam", 1),
        ("town", 400): ("misspelt", "utrecht", "Utrecht", 1),
        ("seen", 30): ("date", "2923-04-05", "2023-04-05", 1),
        ("seen", 31): ("unreadable", "2023-02-31", "", 1),
    }
    assert n_cells == len(PLANTED)
    assert all(cell.line == cell.row + 1 for cell in listed)
    code = next(cell for cell in listed if cell.kind == "placeholder")
    assert code.more_lines == (53, 592) and code.more_rows == (52, 591)


def test_a_suggested_number_keeps_all_its_digits() -> None:
    prices = [f"{1000 + 3.07 * k:.2f}" for k in range(N)]
    prices[40] = f"{100 * float(prices[40]):.2f}"
    listed, _ = found_in(table_from_frame(pl.DataFrame({"price": prices})), [0, N])
    assert [(cell.seen, cell.suggestion) for cell in listed] == [("112280.00", "1122.80")]


def test_a_suggestion_keeps_the_sign_and_the_currency() -> None:
    amounts = [f"EUR {value:.2f}" for value in np.random.default_rng(3).normal(0, 150, N)]
    for row, text in ((40, "JPY 14500"), (41, "EUR -22262.59"), (42, "EUR 14500")):
        amounts[row] = text
    listed, _ = found_in(table_from_frame(pl.DataFrame({"amount": amounts})), [0, N])
    meant = {cell.row - 1: cell.suggestion for cell in listed}
    assert meant.pop(40) == ""
    assert not any(text and ("-" in text) != (row == 41) for row, text in meant.items())
    rule = NumberRule.fit(np.random.default_rng(4).integers(-230, 500, 300) * 1e3, 1.0)
    assert rule.meant(-1_262_259.0) == -126_259.0


def test_a_table_without_odd_cells_lists_none() -> None:
    assert found_in(table_from_frame(pl.DataFrame(cells())), [0, N]) == ([], 0)


@pytest.mark.parametrize("token", ["n.b.", "below limit", "tbd"])
@pytest.mark.parametrize("rows", [[9, 300], [9, 50, 90, 300, 500]])
def test_a_text_that_stands_for_several_numbers_says_that_they_are_missing(
    token: str, rows: list[int]
) -> None:
    columns = cells()
    for row in rows:
        columns["height"][row], columns["age"][row] = token, "4O"
    listed, n_cells = found_in(table_from_frame(pl.DataFrame(columns)), [0, 200, N])
    # A letter typed for a digit is an error, however often it occurs.
    assert [(cell.column, cell.suggestion) for cell in listed] == [("age", "40")]
    assert n_cells == len(rows)


@pytest.mark.parametrize("rows", [[9], [9, 50, 90, 300]])
def test_several_parts_of_dates_say_that_the_rest_is_missing(rows: list[int]) -> None:
    days = [f"{1 + n % 28:02}/{1 + n % 12:02}/2024" for n in range(N)]
    days[7] = "31/02/2024"  # an invalid date, odd in any case
    for k, row in enumerate(rows):
        days[row] = ["2024", "XX/05/2024", "??/06/2024"][k % 3]
    listed, _ = found_in(table_from_frame(pl.DataFrame({"day": days, **cells()})), [0, N])
    assert [cell.seen for cell in listed] == ["31/02/2024", *["2024"] * (len(rows) == 1)]


@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.integers(1, N - 1), max_size=5), lined=st.booleans())
def test_parts_add_up_to_the_whole(cuts: list[int], lined: bool) -> None:
    table = damaged()
    table.frame[40, "town"], table.frame[41, "height"] = "", ""
    table = table if lined else Table(table.frame, None, table.source)
    # Also split the table between two unreadable cells of one column.
    cuts, plan = sorted({0, 8, N, *cuts}), infer_plan(table)
    assert found_in(table, cuts) == found_in(table, [0, N])
    rules = cell_rules(table, plan, N)
    parts, whole = (faults_in(table, at, plan, rules) for at in (cuts, [0, N]))
    assert (parts.used, parts.n_missing) == (whole.used, whole.n_missing)


@settings(max_examples=4, deadline=None)
@given(cut=st.integers(1, N - 1), most=st.integers(1, 60))
def test_only_the_clearest_of_many_odd_cells_are_kept(cut: int, most: int) -> None:
    columns = cells()
    for row in range(0, 300, 6):
        columns["age"][row] = f"{row % 90}?"
    columns["height"][1] = "1702.5"
    table = table_from_frame(pl.DataFrame(columns))
    everything, _ = found_in(table, [0, N])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_module, "MAX_CELLS", most)
        listed, n_cells = found_in(table, [0, cut, N])
        assert (listed, n_cells) == found_in(table, [0, N])
    assert n_cells == 51
    ages, all_ages = (
        [(cell.seen, row) for cell in some if cell.column == "age" for row in rows_of(cell)]
        for some in (listed, everything)
    )
    # Equally clear cells are sorted by their values.
    assert sorted(ages) == sorted(all_ages)[:most]
    assert any(cell.seen == "1702.5" for cell in listed)
    assert sum(cell.column == "age" for cell in clearest(everything)) == MAX_ODD_CELLS_A_COLUMN


def rows_of(cell: OddCell) -> tuple[int, ...]:
    return (cell.row, *cell.more_rows)


def test_a_slip_in_a_column_with_a_unit_is_reported_in_its_unit() -> None:
    rng = np.random.default_rng(0)
    minutes = [f"{value} min" for value in rng.integers(80, 140, N)]
    times = [f"{value // 60}:{value % 60:02}" for value in rng.integers(480, 1080, N)]
    minutes[4], minutes[9], times[5], times[6] = "1090 min", "2 h", "noon", "0:00"
    for place in range(20, 40):
        minutes[place] = "unknown"
    table = table_from_frame(pl.DataFrame({"runtime": minutes, "start": times}), "films.csv")
    listed, n_cells = found_in(table, [0, 90, N])
    cells = {(c.column, c.row - 1): (c.kind, c.seen, c.suggestion) for c in listed}
    assert cells == {
        ("runtime", 4): ("far above", "1090 min", "109 min"),
        ("runtime", 9): ("unreadable", "2 h", ""),
        ("start", 5): ("unreadable", "noon", ""),
        ("start", 6): ("zero", "0:00", ""),
    }
    assert n_cells == 4


class FullStop:
    """A custom check: levels of a column must not end with a full stop."""

    def find(self, column: Column, spec: ColumnSpec) -> Iterator[FoundValue]:
        for code, text in enumerate(column.levels.texts):
            if text.endswith("."):
                yield FoundValue(
                    "full stop", text, 9.0, np.flatnonzero(column.levels.codes == code)
                )

    def explain(self, value: OddValue, spec: ColumnSpec, notation: Notation) -> tuple[str, str]:
        return "Ends with a full stop.", value.seen.removesuffix(".")


def learn_full_stops(table: Table, spec: ColumnSpec) -> FullStop | None:
    return FullStop() if spec.has_levels else None


@pytest.mark.parametrize("cuts", [[0, N], [0, 21, N]])
def test_a_check_is_a_function_and_a_line(monkeypatch: pytest.MonkeyPatch, cuts: list[int]) -> None:
    columns = cells() | {"town": ["Utrecht."] * 2 + ["Utrecht"] * (N - 2)}
    columns["town"][30] = "Utrecht."
    columns["height"][3] = "1702.5"
    monkeypatch.setattr(cells_module, "CHECKS", (*cells_module.CHECKS, learn_full_stops))
    listed, n_cells = found_in(table_from_frame(pl.DataFrame(columns)), cuts)
    assert n_cells == 4
    far, full_stop = sorted(listed, key=lambda cell: cell.kind)
    assert (far.kind, far.row) == ("far above", 4)
    assert (full_stop.suggestion, full_stop.more_rows) == ("Utrecht", (2, 31))


def test_a_cell_that_two_checks_find_is_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = cells() | {"town": ["Utrecht."] + ["Utrecht"] * (N - 1)}
    monkeypatch.setattr(cells_module, "CHECKS", (learn_full_stops, learn_full_stops))
    listed, n_cells = found_in(table_from_frame(pl.DataFrame(columns)), [0, N])
    assert (len(listed), n_cells) == (1, 1)


CLEAN = table_from_frame(
    pl.DataFrame(
        {"a": [str(i + 0.5) for i in range(20)], "b": ["u", "v"] * 10, "c": ["x", ""] * 10}
    ),
    "t.csv",
)
PLAN = infer_plan(CLEAN, ColumnOptions(exclude=("c",)))


def faults_of(table: Table, first_row: int = 0) -> CellFaults:
    return CellFaults.of(table, PLAN, [()] * len(PLAN.used), first_row)


def test_a_column_of_which_most_cells_do_not_read_is_refused_for_the_whole_table() -> None:
    frame = pl.DataFrame({"a": ["x"] * 4 + ["1.5"] * 6, "b": ["u"] * 10, "c": ["u"] * 10})
    halves = [faults_of(Table(frame[i : i + 5], None, CLEAN.source), i) for i in (0, 5)]
    notes = [*(halves[0] + halves[1]).sentences(PLAN, "t.csv", in_lines=False)]
    assert 'Column "a": 4 cells are not numbers and count as missing, first in row 1' in notes[0]
    with pytest.raises(InputError, match=r't\.csv, row 1: column "a" holds numbers'):
        [*halves[0].sentences(PLAN, "t.csv", in_lines=False)]


def test_a_bad_cell_of_a_single_row_is_noted_as_in_a_large_table() -> None:
    one = faults_of(Table(pl.DataFrame({"a": ["x"], "b": ["u"], "c": ["u"]}), None, CLEAN.source))
    note, *_ = one.sentences(PLAN, "t.csv", in_lines=False)
    assert note == 'Column "a": 1 cell is not a number and counts as missing, in row 1.'


def test_gaps_that_no_row_drawn_had_are_stated() -> None:
    frame = pl.DataFrame({"a": ["", "1.5", "2.5"], "b": ["u"] * 3, "c": ["u"] * 3})
    faults = faults_of(Table(frame, None, CLEAN.source))
    (gap, filled) = faults.sentences(PLAN, "t", in_lines=False, drawn=True)
    assert gap.startswith('Column "a": 1 row lacks a value, which no training row did')
    assert filled.startswith("1 missing value was filled")
