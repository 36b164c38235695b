"""Accepted rows equal those found by comparing every row with every accepted row."""

from collections.abc import Sequence
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.errors import InputError
from kpca_apps.novelty.accepted import Accepted, find_accepted
from kpca_apps.novelty.columns.plan import ColumnSpec, infer_plan
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table, parted
from kpca_apps.tables.values import DateFormat, NumberFormat
from kpca_apps.tables.write import as_written, neutralise

COMMA = ColumnSpec("x", "numeric", "", format=NumberFormat(","))
POINT = ColumnSpec("x", "numeric", "", format=NumberFormat())
DAY_FIRST = ColumnSpec("x", "datetime", "", format=DateFormat(day_first=True))
ISO = ColumnSpec("x", "datetime", "", format=DateFormat())
TEXT = ColumnSpec("x", "categorical", "")
TRUTH = ColumnSpec("x", "boolean", "")


def table(**columns: Sequence[object] | pl.Series) -> Table:
    return table_from_frame(pl.DataFrame(columns, strict=False), "table.csv")


def find(accept: Table, rows: Table, *specs: ColumnSpec, most: float = 1.0) -> Accepted:
    return find_accepted(accept, rows, specs, most=most)


def accepted(
    accept: Sequence[object], cells: Sequence[object] | pl.Series, spec: ColumnSpec
) -> str:
    """Return a string with an x for each accepted cell and a dot for each other cell.

    The last cell is never accepted, as the column `y` of its row matches no accepted row.
    """
    rows = table(x=cells, y=["accepted"] * (len(cells) - 1) + ["never"])
    matches = find(table(x=accept, y=["accepted"] * len(accept)), rows, spec)
    return "".join(".x"[int(flag)] for flag in matches.is_accepted)


@pytest.mark.parametrize(
    ("accept", "cells", "spec", "expected"),
    [
        (["1.0"], ["1", "1.000", " 1 ", "10", "1"], POINT, "xxx.."),
        (["1,5"], ["1,5", "1,50", "1.5", "15", "1,5"], COMMA, "xx..."),
        ([1.5], ["1,5", "1,50", "1.5", "15", "1,5"], COMMA, "xx..."),
        (["-"], ["", "NA", "?", "0", ""], POINT, "xxx.."),
        ([None], ["", "NA", "?", "0", ""], POINT, "xxx.."),
        (["12O"], ["12O", "120", "12o", "", "12O"], POINT, "x...."),
        (["03/04/2008"], ["3/4/2008", "2008-04-03", "2008-03-04", "", "x"], DAY_FIRST, "xx..."),
        # A spreadsheet with another locale saves dates and numbers like this.
        (["29.07.1997", "05.06.1997"], ["1997-07-29", "1997-05-06", "1997-06-05", ""], ISO, "x.x."),
        (["6/5/1997"], ["1997-06-05", "1997-05-06", "x"], ISO, "x.."),
        (["1.234,56"], ["1234.56", "1.23456", "123456"], POINT, "x.."),
        (["1,234.56"], ["1234,56", "1,23456", "123456"], COMMA, "x.."),
        ([datetime(2008, 4, 3)], ["3/4/2008", "2008-04-03", "", "2", "x"], DAY_FIRST, "xx..."),
        (["CH "], ["CH", " CH", "ch", "C", "CH"], TEXT, "xx..."),
        (["007"], ["007", "7", "7.0", "07", "007"], TEXT, "x...."),
        (["YES"], ["yes", "Yes", "no", "y", "yes"], TRUTH, "xx..."),
        (["*"], ["yes", "", "no", "*", "yes"], TEXT, "...x."),
        # Spreadsheets keep 15 digits of a number.
        (["0.3"], [0.1 + 0.2, 0.3, 0.3000000001, 0.0, 0.3], POINT, "xx..."),
        (["0.1"], pl.Series([0.1, 0.2, 0.1], dtype=pl.Float32), POINT, "x.."),
        ([1e40], pl.Series([0.1, 0.2, 0.1], dtype=pl.Float32), POINT, "..."),
        # Numbers and dates in columns that the plan ignores are compared as text.
        (["1.0"], [1.0, 2.0, 1.0], TEXT, "x.."),
        (["2020-01-05"], [date(2020, 1, 5), date(2020, 5, 1), date(2020, 1, 5)], TEXT, "x.."),
    ],
)
def test_cells_are_compared_as_their_column_is_read(
    accept: Sequence[object], cells: Sequence[object], spec: ColumnSpec, expected: str
) -> None:
    assert accepted(accept, cells, spec) == expected


WORDS = st.sampled_from(["a", "b", "c", ""])
DIGITS = st.sampled_from(["1", "1.0", "2", " 2", "", "?", "x"])


@pytest.mark.release
@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(st.tuples(WORDS, DIGITS, WORDS), min_size=1, max_size=12),
    accept=st.lists(st.tuples(WORDS, DIGITS, WORDS), min_size=1, max_size=6),
    size=st.integers(1, 4),
)
def test_a_row_is_accepted_if_some_row_equals_it(
    rows: list[tuple[str, str, str]], accept: list[tuple[str, str, str]], size: int
) -> None:
    def reads(cell: str, column: int) -> object:
        text = cell.strip()
        if text in ("", "?"):
            return None
        return float(text) if column == 1 and text in ("1", "1.0", "2") else text

    def equal(row: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
        pairs = enumerate(zip(row, other, strict=True))
        return all(reads(cell, j) == reads(own, j) for j, (cell, own) in pairs)

    columns = ["a", "x", "c"]
    whole, other = (
        table_from_frame(pl.DataFrame(lines, schema=columns, orient="row"), "t")
        for lines in ([*rows, ("never", "9", "never")], accept)
    )
    matches = find(other, whole, POINT)
    expected = [any(equal(row, other) for other in accept) for row in rows]
    assert matches.is_accepted.tolist() == [*expected, False]
    idle = sum(not any(equal(row, other) for row in rows) for other in accept)
    assert (f"{idle} rows match no row" in " ".join(matches.notes)) == (idle > 1)
    assert (f"{idle} row matches no row" in " ".join(matches.notes)) == (idle == 1)
    in_parts = find_accepted(other, parted(whole, part_rows=size), [POINT])
    assert in_parts.is_accepted.tolist() == matches.is_accepted.tolist()
    assert in_parts.notes == matches.notes


def test_columns_that_only_one_table_has_say_nothing() -> None:
    rows = table(country=["CH", "DE", "CH", "FR"], price=["1", "2", "3", "4"])
    accept = table(country=["CH"], rank=["1"], reason_column=["price"], curency=["CHF"])
    matches = find(accept, rows)
    assert matches.is_accepted.tolist() == [True, False, True, False]
    (note,) = matches.notes
    assert '"curency"' in note and "rank" not in note


def test_a_column_that_gave_way_to_one_of_ours_is_known() -> None:
    rows = table(rank=["a", "b", "c"], share=["1", "1", "1"])
    matches = find(table(rank=["1"], rank_input=["b"], share_input=["1"], share=[".9"]), rows)
    assert matches.is_accepted.tolist() == [False, True, False]
    # Without `rank_input`, `rank` is the input column itself.
    assert find(table(rank=["c"]), rows).is_accepted.tolist() == [False, False, True]


def test_escaped_formulas_match_the_original_cells() -> None:
    texts = pl.Series(["=1+1", "-5", "@x", "'quoted", "plain", "", None, "+49 30", "-x"])
    assert as_written(neutralise(texts)).to_list() == texts.to_list()
    rows = table(x=["=1+1", "=1+2", "1"])
    assert find(table(x=["'=1+1"]), rows).is_accepted.tolist() == [True, False, False]


def test_accepted_rows_missing_from_the_table_are_reported() -> None:
    rows = table(x=["1", "2", "3"])
    lines = np.array([2, 3, 5])
    accept = Table(pl.DataFrame({"x": ["1", "7", "8"]}), lines, rows.source)
    (note,) = find(accept, rows, POINT).notes
    assert "2 rows match no row of table.csv (line 3, line 5)" in note and "listed again" in note


@pytest.mark.parametrize(
    ("accept", "most", "message"),
    [
        (table(z=["1"]), 1.0, "none of its columns is one of table.csv"),
        (table(colour=["1"], z=["2"]), 1.0, "none of its columns.*Did you mean"),
        (table(x=["1"], y=["a"]), 0.4, "accepts 2 of the 4 rows of table.csv, 2 of them by row 1"),
        (table(y=["b", "a"]), 1.0, "accepts 4 of the 4 rows of table.csv, 3 of them by row 2"),
    ],
)
def test_a_list_that_accepts_nearly_all_rows_is_refused(
    accept: Table, most: float, message: str
) -> None:
    rows = table(x=["1", "1", "2", "3"], y=["a", "a", "a", "b"], color=["", "", "", ""])
    with pytest.raises(InputError, match=message) as refused:
        find(accept, rows, POINT, most=most)
    assert "\n" not in str(refused.value)


def test_the_plan_of_a_table_reads_what_is_accepted() -> None:
    """Accepted rows are found whether their cells are typed or text, in typed and text tables."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "x": rng.normal(size=60),
            "day": pl.date_range(date(2020, 1, 1), date(2020, 2, 29), eager=True),
            "kind": rng.choice(["a", "b"], 60),
            "yes": rng.random(60) < 0.5,
        }
    )
    typed = table_from_frame(frame, "typed")
    as_text = frame.with_columns(pl.all().cast(pl.String))
    for rows in (typed, table_from_frame(as_text, "text")):
        for some in (frame, as_text):
            matches = find(table_from_frame(some[[3, 17]], "accept"), rows, *infer_plan(rows).specs)
            assert np.flatnonzero(matches.is_accepted).tolist() == [3, 17]
