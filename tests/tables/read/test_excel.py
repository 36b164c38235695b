import datetime
import importlib.util
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.tables.opening import read_table
from tests.tables.whole_and_parts import put, read_both_ways


def workbook(*rows: tuple[Any, ...], sheets: tuple[str, ...] = ()) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for sheet in sheets:
        book.create_sheet(sheet)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def sheets(path: Path, **rows_of: list[list[Any]]) -> Path:
    """Write a workbook of several sheets; a name that ends in "_hidden" makes the sheet hidden."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in rows_of.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        if name.endswith("_hidden"):
            sheet.sheet_state = "hidden"
    book.save(path)
    return path


DATA: list[list[Any]] = [
    ["id", "size", "day"],
    *([1000 + k, k / 2, datetime.datetime(2024, 1, 1 + k % 28)] for k in range(60)),
]
COVER: list[list[Any]] = [
    ["Sales of 2024"],
    [None],
    ["Prepared by:", "Anna"],
    ["Date:", datetime.date(2024, 1, 1)],
    ["Contents"],
    [1, "Data"],
]


def test_excel_reads_the_first_sheet_and_reports_it(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    path.write_bytes(
        workbook(
            ("a", "b", "a", None), (1, "x", 2.5, True), (2, None, "mixed", None), sheets=("z",)
        )
    )
    table = read_table(path)
    assert table.frame.columns == ["a", "b", "a_2", "column_4"]
    assert table.frame.rows() == [(1, "x", "2.5", True), (2, None, "mixed", None)]
    assert table.lines is not None and table.lines.tolist() == [2, 3]
    assert table.source.notes[0] == 'Read sheet "Sheet" of 2; --sheet reads another: "z".'
    assert len(table.source.notes) == 3


def test_excel_sheet_may_start_anywhere(tmp_path: Path) -> None:
    path = put(tmp_path / "table.xlsx", workbook((), (), (None, "a", "b"), (None, 1, 2)))
    assert read_table(path).frame.rows() == [(1.0, 2.0)]


@pytest.mark.parametrize("rows", [(), (("a", "b"),)])
def test_excel_without_rows_is_refused(rows: tuple[Any, ...], tmp_path: Path) -> None:
    path = put(tmp_path / "table.xlsx", workbook(*rows))
    with pytest.raises(
        InputError, match=r'table\.xlsx: (no rows were read|the sheet "Sheet" is empty);'
    ):
        read_table(path)


def test_excel_without_its_extra_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "table.xlsx", workbook(("a",), (1,)))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'pip install "\.\[excel\]"'):
        read_table(path)


def test_numbers_that_are_all_whole_are_integers_and_dates_stay_dates(tmp_path: Path) -> None:
    rows = [[1.0, 1.0, 0.5, 1e20, True, "001"], [2.0, None, 1.0, 1.0, False, "2"]]
    header: list[Any] = ["id", "gap", "half", "huge", "flag", "code"]
    frame = read_table(sheets(tmp_path / "t.xlsx", s=[header, *rows])).frame
    kinds = [pl.Int64, pl.Int64, pl.Float64, pl.Float64, pl.Boolean, pl.String]
    assert list(frame.schema.values()) == kinds and frame.rows() == [tuple(row) for row in rows]
    day = read_table(sheets(tmp_path / "d.xlsx", s=DATA)).frame["day"]
    assert day.to_list() == [row[2] for row in DATA[1:]]


@pytest.mark.parametrize("sheet", ["data", 2, "2"])
def test_a_sheet_is_taken_by_its_name_or_number(sheet: str | int, tmp_path: Path) -> None:
    path = sheets(tmp_path / "t.xlsx", cover=COVER, data=DATA, more=DATA[:9])
    table = read_table(path, sheet=sheet)
    assert table.frame.height == 60 and table.frame["id"][0] == 1000
    assert table.source.notes == (
        'Read sheet "data" of 3; --sheet reads another: "cover", "more".',
    )


def test_a_sheet_called_by_a_number_is_found_by_its_name_first(tmp_path: Path) -> None:
    path = sheets(tmp_path / "t.xlsx", **{"2": DATA[:9], "1": DATA})
    assert read_table(path, sheet="1").frame.height == 60
    assert read_table(path, sheet=1).frame.height == 8


@pytest.mark.parametrize("sheet", ["Data", "0", 0, 3, -1, "1.0", "9" * 5000, "\u202e"])
def test_an_unknown_sheet_is_refused_with_those_there_are(sheet: Any, tmp_path: Path) -> None:
    path = sheets(tmp_path / "t.xlsx", data=DATA, more=DATA)
    with pytest.raises(InputError, match=r'has no sheet .*; it has "data", "more"\.') as caught:
        read_table(path, sheet=sheet)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "first",
    [[], [["Sales of 2024"]], COVER, [[f"remark {k}"] for k in range(4)], DATA[:1]],
    ids=["empty", "a title", "a cover", "remarks", "a header alone"],
)
def test_a_first_sheet_that_is_no_table_beside_one_is_refused_with_a_list(
    first: list[list[Any]], tmp_path: Path
) -> None:
    path = sheets(tmp_path / "t.xlsx", first=first, data=DATA, old_hidden=DATA[:3])
    with pytest.raises(InputError) as caught:
        read_table(path)
    message = str(caught.value)
    assert '"data" (61 x 3 cells), "old_hidden" (3 x 3 cells, hidden)' in message
    assert "--sheet" in message and message.isprintable()
    # A sheet chosen by name is read, however small, or reported as empty.
    if len(first) > 1:
        assert read_table(path, sheet="first").frame.height
    else:
        with pytest.raises(InputError, match="nothing to screen"):
            read_table(path, sheet=1)


@pytest.mark.parametrize("other", [[], COVER, DATA[:3]])
def test_a_table_beside_smaller_sheets_is_read(other: list[list[Any]], tmp_path: Path) -> None:
    assert read_table(sheets(tmp_path / "t.xlsx", data=DATA, other=other)).frame.height == 60


def test_a_small_table_alone_is_read(tmp_path: Path) -> None:
    assert read_table(sheets(tmp_path / "t.xlsx", data=DATA[:3])).frame.height == 2
    assert read_table(sheets(tmp_path / "u.xlsx", data=DATA[:3], old_hidden=DATA)).frame.height == 2


def test_hidden_sheets_are_read_only_by_name(tmp_path: Path) -> None:
    path = sheets(tmp_path / "t.xlsx", old_hidden=DATA[:40], data=DATA)
    assert read_table(path).frame.height == 60
    assert read_table(path, sheet="old_hidden").frame.height == 39


@pytest.mark.parametrize("left", [0, 2])
def test_titles_above_a_header_are_left_out_and_rows_keep_their_numbers(
    left: int, tmp_path: Path
) -> None:
    # The title starts further to the left than the table.
    rows = [["Sales"], [None], *([None] * left + row for row in DATA)]
    table = read_table(sheets(tmp_path / "t.xlsx", s=rows))
    assert table.frame.columns == DATA[0] and table.frame.rows() == [tuple(row) for row in DATA[1:]]
    assert table.lines is not None and table.lines.tolist() == list(range(4, 64))
    assert table.source.notes == (
        'Left out as not data: rows 1-2 (title "Sales"); --layout off reads them as data.',
    )


def test_rows_are_skipped_as_requested(tmp_path: Path) -> None:
    path = sheets(tmp_path / "t.xlsx", s=[["x", "y", "z"], *DATA])
    assert read_table(path).frame.columns == ["x", "y", "z"]
    table = read_table(path, skip_rows=1)
    assert table.frame.columns == DATA[0] and table.lines is not None and table.lines[0] == 3
    with pytest.raises(InputError, match='"s" is empty below row 99; there is nothing'):
        read_table(path, skip_rows=99)


def test_blank_rows_and_empty_columns_are_none(tmp_path: Path) -> None:
    rows: list[list[Any]] = [[*row, None, "", "  "] for row in DATA]
    rows[3:3] = [[None], ["  "] * 6]
    table = read_table(sheets(tmp_path / "t.xlsx", s=[*rows, [None], [" "]]))
    assert table.frame.columns == DATA[0] and table.frame.rows() == [tuple(row) for row in DATA[1:]]
    assert table.lines is not None and table.lines.tolist() == [2, 3, *range(6, 64)]
    assert table.source.notes == ()


def test_an_empty_column_with_a_name_is_kept(tmp_path: Path) -> None:
    frame = read_table(sheets(tmp_path / "t.xlsx", s=[["a", "b"], [1], [2]])).frame
    assert frame.columns == ["a", "b"] and frame["b"].null_count() == 2


def test_cells_with_errors_are_missing_and_reported(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["title"], [], *DATA):
        book.active.append(row)
    for cell, error in (("B5", "#DIV/0!"), ("A9", "#N/A")):
        book.active[cell] = error
        book.active[cell].data_type = "e"
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx")
    assert table.frame["size"].to_list() == [0.0, None, *(row[1] for row in DATA[3:])]
    assert table.frame["id"].null_count() == 1 and table.frame["id"].dtype == pl.Int64
    assert table.source.notes[-1].startswith("2 cells hold an error of a formula")
    assert 'the first on row 9 in column "id"' in table.source.notes[-1]


def test_a_sheet_is_the_same_in_parts_and_whole(tmp_path: Path) -> None:
    path = sheets(tmp_path / "t.xlsx", s=[["title"], [None], *DATA[:20], [None], *DATA[20:]])
    assert read_both_ways(path, 16).frame.height == 60


def test_a_sheet_of_a_chart_is_no_table(tmp_path: Path) -> None:
    path = sheets(tmp_path / "t.xlsx", data=DATA)
    book = openpyxl.load_workbook(path)
    book.create_chartsheet("chart", 0)
    book.save(path)
    with pytest.raises(InputError, match='"chart" \\(empty\\), "data" \\(61 x 3 cells\\)'):
        read_table(path)
    assert read_table(path, sheet="data").frame.height == 60


@pytest.mark.parametrize(
    "option", [{"delimiter": ","}, {"encoding": "cp1252"}, {"bad_lines": "skip"}]
)
def test_options_of_text_do_not_apply(option: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Excel"):
        read_table(sheets(tmp_path / "t.xlsx", data=DATA), **option)


def test_a_program_that_embeds_python_is_not_started_for_a_workbook(tmp_path: Path) -> None:
    path = sheets(tmp_path / "t.xlsx", data=DATA)
    script = """
import sys
sys.executable = "/bin/false"
from kpca_apps import read_table
print(read_table(sys.argv[1]).frame.shape)
"""
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    assert done.stdout == "(60, 3)\n", done.stderr
