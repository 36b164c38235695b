"""Cells are converted to the same values from any storage type."""

from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

from kpca_apps.tables.values import Column, DateFormat, NumberFormat


@pytest.mark.parametrize(
    "word", ["", "  ", "NA", "n/a", "#N/A", "NULL", "None", "NaN", "?", "-", "--", ".", "Missing"]
)
def test_words_for_missing_are_no_values(word: str) -> None:
    cells = pl.Series(["1", word])
    readings = Column(cells).read(NumberFormat())
    assert readings.missing.tolist() == [False, True] and not readings.unreadable.any()
    assert Column(cells).texts.to_list() == ["1", None]


@pytest.mark.parametrize("word", ["0", "no", "unknown", "-1", "x"])
def test_other_words_are_kept(word: str) -> None:
    assert Column(pl.Series([f" {word} "])).texts.to_list() == [word]


def test_typed_and_written_numbers_read_alike() -> None:
    typed = Column(pl.Series([1.5, None, float("nan"), float("inf"), 1e200])).read(NumberFormat())
    text = Column(pl.Series(["1.5", "", "NaN", "inf", "1e200"])).read(NumberFormat())
    for item, other in ((typed.values, text.values), (typed.missing, text.missing)):
        np.testing.assert_array_equal(item, other)
    assert typed.unreadable.tolist() == text.unreadable.tolist() == [False] * 3 + [True] * 2


def test_typed_and_written_dates_read_alike() -> None:
    typed = Column(pl.Series([datetime(2008, 3, 15, 12, 30), None])).read(DateFormat())
    text = Column(pl.Series(["2008-03-15 12:30", ""])).read(DateFormat())
    np.testing.assert_array_equal(typed.values, text.values)
    assert Column(pl.Series([date(1970, 1, 3)])).read(DateFormat()).values.tolist() == [2 * 86400.0]


def test_a_number_is_no_date_and_a_date_no_number() -> None:
    assert Column(pl.Series([1.0, 2.0])).read(DateFormat()).unreadable.all()
    assert Column(pl.Series([date(2008, 1, 1)])).read(NumberFormat()).unreadable.all()


def test_a_level_stored_as_a_float_is_the_level_of_a_text_file() -> None:
    assert Column(pl.Series([3.0, None, float("nan")])).texts.to_list() == ["3", None, None]
    # The text must not depend on other cells, as a table may be read in parts.
    assert Column(pl.Series([3.5, 1.0, 1e300])).texts.to_list() == ["3.5", "1", "1e+300"]


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
    assert Column(cells).text(0) == text


CELLS = [
    *(
        "1.5", " 2 ", "1e3", "-.5", "+7.", "NA", "", " - ", "1,234", "1.234,5", "(3)", "$4",
        "5 %", "x",
    ),
    *("\u22126", "1 000", "inf", "1e999", "1e101", "2020-02-30", "1O", "\u0661\u0662", "2'000"),
]  # fmt: skip


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("thousands", ["", ",", ".", " ", "'"])
def test_a_column_reads_each_cell_as_if_it_stood_alone(decimal: str, thousands: str) -> None:
    if thousands == decimal:
        return
    format = NumberFormat(decimal, thousands)
    whole = Column(pl.Series(CELLS)).read(format)
    alone = [Column(pl.Series([cell])).read(format) for cell in CELLS]
    np.testing.assert_array_equal(whole.values, [cell.values[0] for cell in alone])
    np.testing.assert_array_equal(whole.missing, [cell.missing[0] for cell in alone])
    np.testing.assert_array_equal(whole.unreadable, [cell.unreadable[0] for cell in alone])


@pytest.mark.parametrize("n_different", [3, 2_000])
def test_levels_give_every_cell_its_text(n_different: int) -> None:
    cells = pl.Series(
        [[f" level {row % n_different} ", None, "n/a"][row % 5 % 3] for row in range(4_000)]
    )
    column = Column(cells)
    levels = column.levels
    assert levels.texts.n_unique() == len(levels.texts) == levels.counts.size
    assert levels.each(levels.texts.to_numpy(), None).tolist() == column.texts.to_list()
    assert dict(levels.most_frequent()) == dict(
        column.texts.drop_nulls().value_counts().iter_rows()
    )


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Int16])
def test_levels_of_numbers_are_those_of_their_texts(dtype: type[pl.DataType]) -> None:
    numbers = [3, None, -0.0, 1, 0, 3, -7] + [1.5, np.nan, np.inf, 1e300] * (dtype == pl.Float64)
    column = Column(pl.Series("x", numbers * 200, strict=False).cast(dtype))
    levels, texts = column.levels, column.texts
    assert levels.texts.to_list() == texts.unique(maintain_order=True).drop_nulls().to_list()
    assert levels.each(levels.texts.to_numpy(), None).tolist() == texts.to_list()


def test_levels_without_case_are_one() -> None:
    levels = Column(pl.Series(["Yes", "no", "yes ", None])).levels.lower()
    assert (levels.texts.to_list(), levels.codes.tolist()) == (["yes", "no"], [0, 1, 0, -1])
