"""The fast parser of delimited text agrees with the standard library's csv reader."""

import csv
import io
import tempfile
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.tables.input_file import ReadOptions, find_file
from kpca_apps.tables.opening import read_table
from kpca_apps.tables.read.delimited import DelimitedText
from kpca_apps.tables.read.layout.header import header_is_missing
from kpca_apps.tables.read.layout.lines import ONE_COLUMN, sniff_delimiter
from kpca_apps.tables.read.text import Text
from kpca_apps.tables.values import is_number_like

CELL = st.text(st.sampled_from("ab 1\",;\n\r\té'="), max_size=6)


@dataclass(frozen=True)
class CutText:
    """The parsed text: cells, line numbers and notes."""

    frame: pl.DataFrame
    lines: NDArray[np.int64]
    notes: tuple[str, ...]


def read_delimited(text: bytes, name: str, delimiter: str | None = None) -> CutText:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(text)
        table = read_table(path, delimiter=delimiter, layout="off")
    assert table.lines is not None
    return CutText(table.frame, table.lines, table.source.notes)


def tables(width: int) -> st.SearchStrategy[list[list[str]]]:
    return st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=6)


@given(
    rows=tables(3),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    end=st.sampled_from(["\n", "\r\n"]),
)
@example(rows=[["", "", ""]], quoting=csv.QUOTE_MINIMAL, end="\r\n")
@example(rows=[['"', '""', ',"'], ["\n", "\r\n", ""]], quoting=csv.QUOTE_ALL, end="\n")
def test_written_cells_come_back(rows: list[list[str]], quoting: int, end: str) -> None:
    # The csv writer leaves "\r" unquoted, which then looks like a line end.
    assume(quoting != csv.QUOTE_MINIMAL or not any("\r" in cell for row in rows for cell in row))
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, quoting=quoting, lineterminator=end)
    writer.writerow(["x", "y", "z"])
    lines = []
    for row in rows:
        lines.append(1 + buffer.getvalue().count("\n"))
        writer.writerow(row)
    cut = read_delimited(buffer.getvalue().encode("utf-8"), "t.csv", ",")
    assert [list(row) for row in cut.frame.rows()] == rows
    assert cut.lines.tolist() == lines


@given(st.lists(st.text(st.sampled_from('a1",\n'), max_size=8), min_size=1, max_size=8))
def test_any_text_is_cut_as_the_standard_library_does_or_refused(pieces: list[str]) -> None:
    text = "x,y\n" + "\n".join(pieces)
    try:
        cut = read_delimited(text.encode("utf-8"), "t.csv", ",")
    except InputError as error:
        assert "t.csv: " in str(error)
        return
    expected = [row for row in csv.reader(io.StringIO(text, newline="\n"), strict=True) if row]
    assert [list(row) for row in cut.frame.rows()] == expected[1:]


def test_lines_are_those_of_the_file() -> None:
    text = b'\na,b\n\n1,"x\ny\n\nz"\n   \n2,w\r\n\r\n3,"v"'
    assert read_delimited(text, "t.csv").lines.tolist() == [4, 9, 11]


def test_lines_are_the_same_the_slow_way() -> None:
    text = b'\na,b\n\n1,"x\ny\n\nz"\n   \n2,5" w\r\n\r\n3,"v"'
    cut = read_delimited(text, "t.csv")
    assert cut.lines.tolist() == [4, 9, 11]
    assert cut.frame.rows() == [("1", "x\ny\n\nz"), ("2", '5" w'), ("3", "v")]


def test_many_rows_agree_with_a_plain_split() -> None:
    rng = np.random.default_rng(0)
    rows = [[repr(value) for value in row] for row in rng.normal(size=(5000, 4)).tolist()]
    text = "\n".join(";".join(row) for row in [list("abcd"), *rows])
    cut = read_delimited(text.encode("utf-8"), "t.csv")
    assert [list(row) for row in cut.frame.rows()] == rows
    assert cut.lines.tolist() == list(range(2, 5002))


def test_numbers_in_place_of_names_are_data_and_reported() -> None:
    cut = read_delimited(b"1.5,NA\n2,3\n", "t.csv")
    assert cut.frame.rows() == [("1.5", "NA"), ("2", "3")] and cut.lines.tolist() == [1, 2]
    assert cut.notes == ("Line 1 holds numbers only: the columns are named column_1, ...",)


def test_names_that_look_like_values_are_mentioned() -> None:
    cut = read_delimited(b"5.1,3.5,setosa\n4.9,3.0,setosa\n", "t.csv")
    assert cut.frame.columns == ["5.1", "3.5", "setosa"]
    assert cut.notes == (
        'The names on line 1 look like values ("5.1"): if they are data, add a header line.',
    )


def test_pandas_default_names_are_names() -> None:
    assert read_delimited(b"0,1,2\n5,6,7\n", "t.csv").frame.columns == ["0", "1", "2"]
    assert read_delimited(b",0\n0,6\n", "t.csv").frame.columns == ["column_1", "0"]


def test_delimiter_of_more_than_one_byte() -> None:
    assert read_delimited("a§b\n1§2\n".encode(), "t.csv", "§").frame.rows() == [("1", "2")]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2", ","),
        ("a;b\n1,5;2,5", ";"),
        ("1,5;2,5\n2,5;3,5", ";"),
        ("a\tb\n1,2\t3", "\t"),
        ("a|b\n1|2", "|"),
        ('"a;b",c\n"d;e",f', ","),
        ('a,b\n"x\n;y",2', ","),
        ("a,b;c\n1,2\n3,4\n5,6", ","),
        ("a;b\n1;2\n3\n4;5\n6;7", ";"),
        (" 1.0  2.0\n3.0 4.0", " "),
        ("day time\n2024-01-01 12:00\n2024-01-02 13:00", ONE_COLUMN),
        ("x\n1,5\n2,75", ONE_COLUMN),
        ("remark\nyes, well\nno", ONE_COLUMN),
        ("x\n1\n2", ONE_COLUMN),
        ("", ONE_COLUMN),
    ],
)
def test_sniffed_delimiter(text: str, delimiter: str) -> None:
    assert sniff_delimiter(text.encode("utf-8")) == delimiter


def test_sniffing_looks_at_whole_rows_of_a_long_file() -> None:
    row = ";".join(["0,25"] * 50) + "\n"
    assert sniff_delimiter((row * 20_000).encode("utf-8")) == ";"


@pytest.mark.parametrize("cell", ["1", "-1.5", "+3,2", "1e-3", "1 234,5", "1'000", ".5", " 7 % "])
def test_numbers_in_many_notations(cell: str) -> None:
    assert is_number_like(cell)
    assert header_is_missing([cell, "?"])


@pytest.mark.parametrize("cell", ["", "-", "a1", "1a", "2024-01-01", "12:30", "NA"])
def test_what_is_no_number(cell: str) -> None:
    assert not is_number_like(cell)
    assert not header_is_missing([cell])


def text_file(data: list[bytes], folder: Path) -> Text:
    path = folder / "t.csv"
    path.write_bytes(b"".join(data))
    return Text(find_file(path, ReadOptions()))


def test_text_is_cut_in_little_more_memory_than_a_chunk_of_it(tmp_path: Path) -> None:
    chunk = (b"1.2345678," * 9 + b"9.8765432\n") * 10_000
    text = text_file([chunk] * 16, tmp_path)
    tracemalloc.start()
    n_rows = sum(piece.num_rows for piece in DelimitedText(text).pieces())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_rows == 160_000
    # The parser may hold one-byte masks per byte and a few integers per row, but no integer per
    # byte.
    assert peak < 6 * len(chunk)


def test_lines_of_nothing_take_no_memory(tmp_path: Path) -> None:
    chunk = b"\n" * (1 << 20)
    text = text_file([b"a,b\n", *[chunk] * 20, b"1,2\n"], tmp_path)
    tracemalloc.start()
    (piece,) = DelimitedText(text).pieces()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert piece.to_pylist() == [{"a": "1", "b": "2", "line": 20 * len(chunk) + 2}]
    assert peak < 40 * len(chunk)  # an integer per line of the file would take 160 times the chunk


def test_a_line_of_spaces_cut_by_spaces_is_blank(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a b\n1 2\n ")
    assert read_table(path, delimiter="space").frame.rows() == [("1", "2")]
    path.write_bytes(b" ")
    with pytest.raises(InputError, match="the file is empty"):
        read_table(path, delimiter="space")
