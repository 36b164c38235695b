"""Cells become a spreadsheet's own types wherever that loses nothing."""

import importlib.util
import io
from datetime import UTC, date, datetime, timedelta

import openpyxl
import polars as pl
import pytest
from openpyxl.utils.escape import unescape

from kpca_apps.errors import ConfigError
from kpca_apps.tables.values import Column, DateFormat, NumberFormat, ValueFormat
from kpca_apps.tables.write_excel import (
    Cell,
    Sheet,
    SheetColumn,
    cells_of,
    require_columns,
    require_workbooks,
    workbook_bytes,
)

PLAIN, COMMA = NumberFormat(), NumberFormat(",", ".")


@pytest.mark.parametrize(
    ("texts", "format", "cells"),
    [
        (["1.50", "-2", "1e3", " 7 "], PLAIN, [1.5, -2, 1000, 7]),
        (["1.234,5", "0,5"], COMMA, [1234.5, 0.5]),
        # Signs, units, leading zeros and digits beyond Excel's precision stay text.
        (["007", "+49", "12 %", "$5", "4111111111111111"], PLAIN, None),
        (["", "NA", "x"], PLAIN, [None, "NA", "x"]),
        (["007", "=1+1", ""], None, ["007", "=1+1", None]),
        (["2024-02-29"], DateFormat(), [datetime(2024, 2, 29)]),
        (["03/04/2008"], DateFormat(day_first=True), [datetime(2008, 4, 3)]),
        (["2024-02-29 10:11:12"], DateFormat(has_time=True), [datetime(2024, 2, 29, 10, 11, 12)]),
        # An invalid date, a date before Excel's first day, and one with an offset.
        (["2023-02-29", "1899-01-01", "2024-02-29T10:11:12+02:00"], DateFormat(), None),
    ],
)
def test_text_becomes_numbers_and_dates_where_nothing_is_lost(
    texts: list[str], format: ValueFormat | None, cells: list[Cell] | None
) -> None:
    assert cells_of(Column(pl.Series("x", texts)), format) == (texts if cells is None else cells)


def test_typed_cells_are_what_they_are() -> None:
    def cells(values: list[object], **dtype: object) -> list[Cell]:
        return cells_of(Column(pl.Series("x", values, **dtype)), None)  # type: ignore[arg-type]

    assert cells([1, None, 10**17]) == [1, None, str(10**17)]
    assert cells([0.1, float("nan"), float("inf"), 1e300]) == [0.1, None, "inf", 1e300]
    # Excel cannot store numbers this large or this close to zero.
    assert cells([-1.7e308, 5e-324, 0.0]) == ["-1.7e+308", "5e-324", 0.0]
    assert cells([True, None]) == [True, None]
    assert cells([date(2024, 5, 6), None, date(1800, 1, 1), date(9999, 12, 31)]) == [
        datetime(2024, 5, 6), None, "1800-01-01", datetime(9999, 12, 31),
    ]  # fmt: skip
    assert cells([datetime(2024, 5, 6, 7, tzinfo=UTC)]) == [datetime(2024, 5, 6, 7)]
    assert cells([timedelta(seconds=90)]) == [str(pl.Series([timedelta(seconds=90)])[0])]


def test_a_workbook_holds_any_text_and_has_the_same_bytes_each_time() -> None:
    hostile = ["=1+1", "\x00\x1f", "\ufffe", "_x0041_", "http://a.b", "ü€", " ", "a\r\nb", "<&>"]
    columns = [SheetColumn("=x", hostile), SheetColumn("n", [*range(8), None])]
    sheets = [Sheet("one", columns, [{1}] * 9, 0), Sheet("two", columns[:1], [()] * 9, 0)]
    data, n_cut = workbook_bytes(sheets)
    assert (workbook_bytes(sheets)[0], n_cut) == (data, 0)
    book = openpyxl.load_workbook(io.BytesIO(data))
    assert book.sheetnames == ["one", "two"]
    first, second = zip(*((a, b) for a, b in book.active.iter_rows(min_row=2)), strict=True)
    kept = [unescape(cell.value) for cell in first]
    assert kept[0] == "=1+1"
    assert first[0].data_type in ("s", "inlineStr")
    assert kept[1] == hostile[1] and kept[2:4] == ["\ufffd", "_x0041_"]
    assert kept[4:7] == ["http://a.b", "ü€", " "] and kept[8] == "<&>"
    assert [cell.value for cell in second] == [*range(8), None]
    assert {cell.fill.fill_type for cell in second} == {"solid"}
    assert {cell.fill.fill_type for cell in first} == {None}


def test_too_many_columns_and_a_missing_library_are_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require_columns(16_384, "wide.csv")
    with pytest.raises(ConfigError, match=r"^wide.csv: its flagged rows have 16,385 columns"):
        require_columns(16_385, "wide.csv")
    require_workbooks()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'pip install "\.\[excel\]"'):
        require_workbooks()
