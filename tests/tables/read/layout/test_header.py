"""The header row is found below titles, and ordinary tables are unchanged."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kpca_apps.errors import InputError
from kpca_apps.tables.opening import read_table
from kpca_apps.tables.read.layout.header import find_header
from tests.tables.whole_and_parts import put, read_both_ways

BODY = [[str(n), str(2 * n), "xyz"[n % 3]] for n in range(20)]
NAME = st.text(st.sampled_from("abcdefg hé_"), min_size=1, max_size=8).filter(str.strip)
CELL = st.one_of(NAME, st.just(""), st.integers().map(str), st.floats(allow_nan=False).map(str))
TITLES = st.lists(
    st.sampled_from(
        [[], ["Report of May"], ["Exported", ""], ["", ""], ["# a, b and c"], ["% made by hand"]]
    ),
    min_size=1,
    max_size=6,
)


def as_csv(rows: list[list[str]], delimiter: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


@st.composite
def ordinary(draw: st.DrawFn) -> list[list[str]]:
    """Draw a header with a name for each column, and rows of the same width."""
    width = draw(st.integers(1, 6))
    header = draw(st.lists(NAME, min_size=width, max_size=width))
    rows = st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=0, max_size=30)
    return [header, *draw(rows)]


@given(ordinary())
def test_the_header_of_an_ordinary_table_is_its_first_row(rows: list[list[str]]) -> None:
    assert find_header(rows) is None


@given(ordinary(), st.data())
def test_ragged_rows_do_not_make_a_title_of_a_header(
    rows: list[list[str]], data: st.DataObject
) -> None:
    """A row with too many or too few cells is an error to report, not a sign of a title."""
    if len(rows) > 1:
        place = data.draw(st.integers(1, len(rows) - 1))
        rows[place] = rows[place] + ["more"] if data.draw(st.booleans()) else rows[place][:-1]
    assert find_header(rows) is None


@given(st.lists(st.lists(CELL, max_size=5), max_size=20))
def test_what_is_found_has_names_and_rows_below_it(rows: list[list[str]]) -> None:
    place = find_header(rows)
    if place is not None:
        assert place > 0
        assert any(cell.strip() for cell in rows[place])
        assert any(len(row) == len(rows[place]) for row in rows[place + 1 :])


@given(TITLES, st.sampled_from(",;\t|"))
@settings(max_examples=60)
def test_a_title_is_left_out_and_lines_stay_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, titles: list[list[str]], delimiter: str
) -> None:
    # Skip titles whose first row has only empty cells: such a row is taken as the header, and wider
    # rows below it are then refused.
    assume(any(next((row for row in titles if row), ["x"])))
    path = tmp_path_factory.mktemp("titles") / "t.csv"
    path.write_text(as_csv([*titles, ["id", "size", "kind"], *BODY], delimiter))
    table = read_table(path)
    assert table.frame.columns == ["id", "size", "kind"]
    assert table.frame.rows() == [tuple(row) for row in BODY] and table.lines is not None
    assert table.lines.tolist() == [len(titles) + 2 + n for n in range(20)]
    # Skipping the titles by hand gives the same table.
    again = read_table(path, skip_rows=len(titles))
    assert again.frame.equals(table.frame) and again.lines is not None
    assert again.lines.tolist() == table.lines.tolist()


@pytest.mark.parametrize(
    ("above", "note"),
    [
        ("Sizes, of May\n\n", 'lines 1-2 (title "Sizes")'),
        ('"Sizes\nof May",,\n', 'lines 1-2 (title "Sizes of May")'),
        ("Sizes\r\n", 'line 1 (title "Sizes")'),
    ],
)
def test_a_title_is_reported(tmp_path: Path, above: str, note: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(above + as_csv([["id", "size", "kind", "what"], *([*r, "a"] for r in BODY)]))
    assert read_table(path).source.notes[0].startswith(f"Left out as not data: {note}")


def test_a_title_stands_below_excels_own_line_too(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "sep=;\nSizes, of May\n\na;b\n1;2\n3;4\n")
    for skip_rows in (0, 3):
        table = read_table(path, skip_rows=skip_rows)
        assert table.frame.columns == ["a", "b"]
        assert table.lines is not None and table.lines.tolist() == [5, 6]
    assert "lines 1-3 (title" in read_table(path).source.notes[0]


def test_a_title_is_found_above_rows_too_long_for_the_sample(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    long = "x" * 40_000
    path.write_text(as_csv([["Sizes"], ["id", "what"], *([str(n), long] for n in range(12))]))
    assert read_table(path).frame.columns == ["id", "what"]


def test_a_header_below_a_title_is_found_in_parts(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", as_csv([["Sizes"], [], ["id", "size", "kind"], *BODY]))
    table = read_both_ways(path, 8)
    assert table.lines is not None and table.lines.tolist() == list(range(4, 24))


def test_many_and_long_lines_are_left_out(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", ("x" * 300 + "\n") * 9_000 + "a,b\n1,2\n")
    table = read_table(path, skip_rows=9_000)
    assert table.frame.rows() == [("1", "2")]
    assert table.lines is not None and table.lines.tolist() == [9_002]
    with pytest.raises(InputError, match="has no header after 9,500 skipped lines"):
        read_table(path, skip_rows=9_500)


def test_an_unclear_title_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """A title of two lines stands directly above numbers, without a line of column names."""
    path = put(tmp_path / "t.csv", "Sizes\nof May\n" + as_csv([["4", "2", "3"]] * 40))
    with pytest.raises(InputError, match=r"line 3 has 3 .*its 2 lines out with --skip-rows 2"):
        read_table(path)
    assert read_table(path, skip_rows=2).frame.shape == (40, 3)
