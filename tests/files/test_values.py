"""Cells to values, whatever type a file stores them in."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

import numpy as np
import polars as pl
import pytest

from kpca_apps.files.dates import DateFormat
from kpca_apps.files.numbers import NumberFormat
from kpca_apps.files.values import (
    cell_text,
    read_texts,
    read_values,
    why_unreadable,
)


@pytest.mark.parametrize(
    "word", ["", "  ", "NA", "n/a", "#N/A", "NULL", "None", "NaN", "?", "-", "--", ".", "Missing"]
)
def test_words_for_missing_are_no_values(word: str) -> None:
    cells = pl.Series(["1", word])
    readings = read_values(cells, NumberFormat())
    assert readings.missing.tolist() == [False, True]
    assert not readings.unreadable.any()
    assert read_texts(cells).to_list() == ["1", None]


@pytest.mark.parametrize("word", ["0", "no", "unknown", "-1", "x"])
def test_other_words_are_kept(word: str) -> None:
    assert read_texts(pl.Series([f" {word} "])).to_list() == [word]


def test_typed_and_written_numbers_read_alike() -> None:
    typed = read_values(pl.Series([1.5, None, float("nan"), float("inf"), 1e200]), NumberFormat())
    text = read_values(pl.Series(["1.5", "", "NaN", "inf", "1e200"]), NumberFormat())
    for one, other in ((typed.values, text.values), (typed.missing, text.missing)):
        np.testing.assert_array_equal(one, other)
    assert typed.unreadable.tolist() == text.unreadable.tolist() == [False] * 3 + [True] * 2


def test_typed_and_written_dates_read_alike() -> None:
    moments = [datetime(2008, 3, 15, 12, 30), None]
    typed = read_values(pl.Series(moments), DateFormat())
    text = read_values(pl.Series(["2008-03-15 12:30", ""]), DateFormat())
    np.testing.assert_array_equal(typed.values, text.values)
    days = read_values(pl.Series([date(1970, 1, 3)]), DateFormat())
    assert days.values.tolist() == [2 * 86400.0]


def test_times_of_day_and_durations_are_seconds() -> None:
    assert read_values(pl.Series([time(1, 0, 1)]), NumberFormat()).values.tolist() == [3601.0]
    assert read_values(pl.Series([timedelta(hours=2)]), NumberFormat()).values.tolist() == [7200.0]


def test_a_number_is_no_date_and_a_date_no_number() -> None:
    assert read_values(pl.Series([1.0, 2.0]), DateFormat()).unreadable.all()
    assert read_values(pl.Series([date(2008, 1, 1)]), NumberFormat()).unreadable.all()


def test_a_level_stored_as_a_float_is_the_level_of_a_text_file() -> None:
    assert read_texts(pl.Series([3.0, None, float("nan")])).to_list() == ["3", None, None]
    # Whatever the other cells hold: a table may be read in parts.
    assert read_texts(pl.Series([3.5, 1.0, 1e300])).to_list() == ["3.5", "1", "1e+300"]


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (pl.Series([" 1,5 "]), " 1,5 "),
        (pl.Series([True]), "true"),
        (pl.Series([date(2008, 3, 15)]), "2008-03-15"),
        (pl.Series([None], dtype=pl.Float64), ""),
    ],
)
def test_cell_text_is_what_stands_in_the_table(cells: pl.Series, text: str) -> None:
    assert cell_text(cells, 0) == text


@pytest.mark.parametrize(
    ("cells", "format", "why"),
    [
        (
            ["1,288", "0,5"],
            NumberFormat(),
            "written with a comma where the decimal mark is a point",
        ),
        (["1.5"], NumberFormat(","), "written with a point where the decimal mark is a comma"),
        (["1.234,5"], NumberFormat(), "written with a comma where the decimal mark is a point"),
        (["1e300", "-2e101"], NumberFormat(), "larger than 1e100"),
        ([1e300], NumberFormat(","), "larger than 1e100"),
        (["1,5", "x"], NumberFormat(), ""),
        (["x"], NumberFormat(), ""),
        (["31.2.2020"], DateFormat(), ""),
        ([date(2008, 1, 1)], NumberFormat(), ""),
    ],
)
def test_one_reason_for_all_unreadable_cells_is_named(
    cells: list[object], format: NumberFormat | DateFormat, why: str
) -> None:
    column = pl.Series(cells)
    assert read_values(column, format).unreadable.all()
    assert why_unreadable(column, format) == why
