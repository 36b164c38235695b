"""What is no data in a file as people export it: recognised, left out, listed with its lines."""

from __future__ import annotations

from pathlib import Path

import pytest
import xlsxwriter

from kpca_apps.errors import InputError
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.table import Table
from tests.tables.whole_and_parts import read_both_ways

REGIONS = ["North", "South", "East", "West"]
# Region, month, orders, revenue; and measures of a station.
SALES = [[r, f"m{m}", str(80 + 7 * m + k), f"{3.5 * m + 11 * k + 40:.2f}"]
         for k, r in enumerate(REGIONS) for m in range(6)]  # fmt: skip
STATION = [[f"2025-05-01 {h:02}:00:00", f"{10 + h % 5}.5", str(60 + h % 7), "ab"[h % 2]]
           for h in range(24)]  # fmt: skip
NAMES = ["Region", "Month", "Orders", "Revenue"]

Cells = list[list[str]]


def as_text(rows: Cells, *, padded: bool = True, cut: str = ",") -> str:
    """Write rows as delimited text; unpadded ones end with their last cell that is filled."""
    width, lines = max(map(len, rows)), []
    for row in rows:
        cells = [f'"{cell}"' if cut in cell or '"' in cell else cell for cell in row]
        if padded:
            cells += [""] * (width - len(cells))
        lines.append(cut.join(cells))
    return "\n".join(lines) + "\n"


def as_sheet(path: Path, rows: Cells) -> Path:
    """Write rows as a sheet, numbers as numbers."""
    with xlsxwriter.Workbook(path, {"strings_to_numbers": True}) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                if cell:
                    sheet.write(number, column, cell)
    return path


def read_each_way(folder: Path, rows: Cells, in_sheet: bool) -> list[Table]:
    """Read rows padded, unpadded, cut by semicolons, and in a sheet, which takes a second."""
    tables = []
    for number, how in enumerate(({}, {"padded": False}, {"cut": ";"})):
        path = folder / f"t{number}.csv"
        path.write_text(as_text(rows, **how))  # type: ignore[arg-type]
        tables.append(read_table(path))
    return [*tables, *[read_table(as_sheet(folder / "t.xlsx", rows))] * in_sheet]


def cells_of(table: Table) -> Cells:
    """Cells of a table as text, numbers as in a sheet."""
    return [["" if c is None else str(c) for c in row] for row in table.frame.rows()]


def is_same(found: Cells, expected: Cells) -> bool:
    """Whether cells are the same texts or numbers."""

    def value(cell: str) -> object:
        try:
            return float(cell)
        except ValueError:
            return cell

    return [[value(c) for c in row] for row in found] == [[value(c) for c in r] for r in expected]


def check(
    folder: Path,
    rows: Cells,
    names: list[str],
    data: Cells,
    lines: list[int],
    *said: str,
    in_sheet: bool = False,
) -> None:
    """Check that rows are read as a table, whatever they are written as."""
    for table in read_each_way(folder, rows, in_sheet):
        assert table.frame.columns == names
        assert is_same(cells_of(table), data)
        assert table.lines is not None and table.lines.tolist() == lines
        for word in said:
            word = word if table.source.format == "csv" else word.replace("line", "row")
            assert word in " ".join(table.source.notes)
        assert table.source.notes or not said


TITLE = [["Sales of the year"], ["Printed 2025-03-13"], []]


@pytest.mark.parametrize(
    "names",
    [
        ["Country", "2019", "2020", "2021"],
        ["", "2019", "2020", "2021"],
        ["Country", "1990", "2000", "2014"],
        ["Country", "2021", "2020", "2019"],
        ["Country", "1", "2", "3"],
        ["Country", "31.01.2024", "29.02.2024", "31.03.2024"],
    ],
)
@pytest.mark.parametrize("title", [[], TITLE])
def test_years_months_and_dates_name_columns(
    names: list[str], title: Cells, tmp_path: Path
) -> None:
    data = [[f"c{n}", f"{n * 7 % 11}.5", str(n + 3), str(n * n)] for n in range(12)]
    first = len(title) + 2
    given = [names[0] or "column_1", *names[1:]]
    said = ["title (lines 1-3"] if title else []
    check(
        tmp_path,
        [*title, names, *data],
        given,
        data,
        list(range(first, first + 12)),
        *said,
        in_sheet=bool(title and names[1] == "2019"),
    )


def test_years_alone_name_columns_unless_the_cells_are_years_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("2019,2020,2021\n" + "1.5,2,3\n" * 9)
    assert read_table(path).frame.columns == ["2019", "2020", "2021"]
    path.write_text("2019,2020,2021\n" + "1999,2001,2010\n" * 9)
    table = read_table(path)
    assert table.frame.columns == ["column_1", "column_2", "column_3"]
    assert table.frame.height == 10


@pytest.mark.parametrize(
    ("below", "said"),
    [
        ([["TS", "Deg C", "%", ""]], ["units (line 3)"]),
        ([["", "[C]", "[%]", ""]], ["units (line 3)"]),
        ([["", "Deg C", "%", ""], ["", "Avg", "Smp", ""]], ["units (line 3)", "header (line 4)"]),
        ([["When?", "How warm was it?", "How damp?", "Who?"]], ["more of the header (line 3)"]),
    ],
)
def test_a_wide_first_line_units_and_questions(
    below: Cells, said: list[str], tmp_path: Path
) -> None:
    names = ["TIMESTAMP", "AirTC", "RH", "Kind"]
    rows = [["TOA5", "station7", "CR1000", "1234", "x", "Table1"], names, *below, *STATION]
    path = tmp_path / "t.dat"
    path.write_text(as_text(rows, padded=False))
    table = read_both_ways(path, 7)
    assert table.frame.columns == names and cells_of(table) == STATION
    assert table.lines is not None and table.lines[0] == 3 + len(below)
    for word in ['title (line 1, "TOA5, station7', *said]:
        assert word in table.source.notes[0]
    check(
        tmp_path, [names, *below, *STATION], names, STATION,
        [2 + len(below) + n for n in range(24)], said[0].replace("3", "2"),
        in_sheet=len(below) == 2,
    )  # fmt: skip


@pytest.mark.parametrize(
    "first",
    [
        ["2025-05-01 00:00:00", "<LOD", "<LOD", "a"],  # censored
        ["2025-05-01 00:00:00", "n.d.", "n.d.", "a"],  # has a time
        ["", "n.d.", "n.d.", "a"],  # a level of the last column
        ["", "error", "", ""],  # over one measure of three
        ["x", "NA", "n/a", "-"],
    ],
)
def test_a_first_row_with_words_for_numbers_is_data(first: list[str], tmp_path: Path) -> None:
    names = ["TIMESTAMP", "AirTC", "RH", "Kind"]
    check(tmp_path, [names, first, *STATION], names, [first, *STATION], list(range(2, 27)))


def test_names_in_two_rows_are_joined(tmp_path: Path) -> None:
    data = [[f"c{n}", *(str(n * k + 3) for k in range(1, 5))] for n in range(12)]
    lines = list(range(3, 15))
    quarters = ["Country", "2023 Q1", "2023 Q2", "2024 Q1", "2024 Q2"]
    for above, below in [
        (["Country", "2023", "", "2024", ""], ["", "Q1", "Q2", "Q1", "Q2"]),
        (["", "2023", "", "2024", ""], ["Country", "Q1", "Q2", "Q1", "Q2"]),
        (["Country", "2023", "2023", "2024", "2024"], ["", "Q1", "Q2", "Q1", "Q2"]),
    ]:
        check(
            tmp_path,
            [above, below, *data],
            quarters,
            data,
            lines,
            "header, joined (line 2)",
            in_sheet=not above[0],
        )
    # Answers to a question hold no numbers, and their own names.
    above = ["Respondent ID", "Which do you use?", "", "", "Age"]
    below = ["", "Web", "App", "API", ""]
    data = [
        [str(100 + n), *("x" * (n % k == 0) for k in (2, 3, 4)), str(n + 20)] for n in range(12)
    ]
    names = ["Respondent ID", *(f"Which do you use? {n}" for n in ("Web", "App", "API")), "Age"]
    check(tmp_path, [above, below, *data], names, data, lines, "header, joined (line 2)")


@pytest.mark.parametrize("above", [[["Report_B", "3/13/2025"]], [["Sales"], ["Made by", "Ann"]]])
def test_a_title_in_cells_is_not_joined(above: Cells, tmp_path: Path) -> None:
    rows = [*([*row, "", ""] for row in above), NAMES, *SALES]
    path = tmp_path / "t.csv"
    path.write_text(as_text(rows))
    table = read_table(path)
    assert table.frame.columns == NAMES and cells_of(table) == SALES


def test_repeated_headers_and_rules_are_left_out(tmp_path: Path) -> None:
    rows = [NAMES, *SALES[:6], NAMES, *SALES[6:12], NAMES, *SALES[12:]]
    lines = [*range(2, 8), *range(9, 15), *range(16, 28)]
    check(tmp_path, rows, NAMES, SALES, lines, "repeated headers (lines 8, 15)", in_sheet=True)
    path = tmp_path / "t.csv"
    path.write_text(as_text(rows))
    table = read_both_ways(path, 7)
    assert cells_of(table) == SALES and table.lines is not None and table.lines.tolist() == lines
    # Rows below the header are repeated with it.
    head = [NAMES, ["", "", "pcs", "EUR"]]
    path.write_text(as_text([*head, *SALES[:9], *head, *SALES[9:]]))
    assert cells_of(read_table(path)) == SALES


def test_a_list_framed_by_bars(tmp_path: Path) -> None:
    rule = "-" * 34
    body = [f"|{r[0]:>7}|{r[1]:8}|{r[2]:>6}|{r[3]:>9}|" for r in SALES]
    head = [rule, "| Region|Month   |Orders|  Revenue|", rule]
    end = [rule, "|* Summe|        |      | 1.234,56|", rule]
    path = tmp_path / "mb52.txt"
    path.write_bytes("\r\n".join(["A list", "", *head, *body[:9], *head, *body[9:], *end]).encode())
    table = read_both_ways(path, 7)
    assert table.frame.columns == NAMES
    assert [[cell.strip() for cell in row] for row in cells_of(table)] == SALES
    assert table.lines is not None
    assert table.lines.tolist() == [*range(6, 15), *range(18, 33)]
    (note, _) = table.source.notes
    for said in ("title (lines 1-3", "rules (lines 5, ", "headers (line 16)", "foot (line 34)"):
        assert said in note


FEET: list[Cells] = [
    [["Grand Total: 6,634"], ["Page -1 of 1"]],
    [["Page 1 of 1"]],
    [["(c) 2025 The Office"]],
    [[], ["Data from database: Indicators"], ["Last Updated: 12/16/2024"]],
    [[], ["Made by the office"], ["Ask Ann"]],
]


@pytest.mark.parametrize("foot", FEET)
def test_a_foot_is_left_out(foot: Cells, tmp_path: Path) -> None:
    last = 25 + len(foot)
    check(
        tmp_path,
        [NAMES, *SALES, *foot],
        NAMES,
        SALES,
        list(range(2, 26)),
        f"{last}",
        in_sheet=len(foot) == 3,
    )
    path = tmp_path / "t.csv"
    for padded in (True, False):
        path.write_text(as_text([NAMES, *SALES, *foot], padded=padded))
        table = read_both_ways(path, 7)
        assert cells_of(table) == SALES and f"{last})" in table.source.notes[0]


@pytest.mark.parametrize(
    "last",
    [
        [["Peru", "", "", ""]],  # a name like others
        [["Total", "m1", "10", "30.00"]],  # an oil company
        [["Total", "", "10", "30.00"]],  # not the sum
        [["Sum 41", "", "9", ""]],
        [["North", "m9", "", ""], ["South", "", "", ""]],
    ],
)
def test_rows_that_only_look_like_a_foot_or_total_are_data(last: Cells, tmp_path: Path) -> None:
    data = [*SALES, *last]
    check(tmp_path, [NAMES, *data], NAMES, data, list(range(2, 26 + len(last))))
    data = [*SALES[:9], *last, *SALES[9:]]
    check(tmp_path, [NAMES, *data], NAMES, data, list(range(2, 26 + len(last))))


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for end in ("North,m", "North", "\nNorth,m1,3", "Page 1 of 1\nNorth,m1,3"):
        path.write_text(as_text([NAMES, *SALES]) + end)
        with pytest.raises(InputError, match=r"line 2\d has \d cells? where line 1 has 4"):
            read_table(path)
    # A foot ends the table: rows of its width below are none.
    path.write_text(as_text([NAMES, *SALES]) + "Source: us\n" + as_text(SALES))
    with pytest.raises(InputError, match="line 26 has 1 cell where line 1 has 4"):
        read_table(path)
    path.write_text(as_text([NAMES, *SALES]) + "Page 1 of 2\n" + as_text(SALES))
    assert read_table(path).frame.height == 48


def pivot(word: str = "Total {}") -> tuple[Cells, list[int]]:
    """Return a pivot table with its totals, and the lines of its data."""
    rows, lines = [NAMES], []
    for k, region in enumerate(REGIONS):
        block = SALES[6 * k : 6 * k + 6]
        for number, row in enumerate(block):
            rows.append([region if number == 0 else "", *row[1:]])
            lines.append(len(rows))
        sums = sum(int(r[2]) for r in block), sum(float(r[3]) for r in block)
        rows.append([word.format(region), "", str(sums[0]), f"{sums[1]:.2f}"])
    sums = sum(int(r[2]) for r in SALES), sum(float(r[3]) for r in SALES)
    return [*rows, ["Grand Total", "", str(sums[0]), f"{sums[1]:.2f}"]], lines


@pytest.mark.parametrize("word", ["Total {}", "{} Total", "Subtotal", "Summe {}", "Gesamt"])
def test_totals_are_left_out_and_labels_filled_down(word: str, tmp_path: Path) -> None:
    rows, lines = pivot(word)
    said = "totals (lines 8, 15, 22, 29-30)"
    check(
        tmp_path,
        rows,
        NAMES,
        SALES,
        lines,
        said,
        'Column "Region" names only the first row',
        in_sheet=word == "Total {}",
    )
    path = tmp_path / "t.csv"
    path.write_text(as_text(rows))
    table = read_both_ways(path, 7)
    assert cells_of(table) == SALES and table.lines is not None and table.lines.tolist() == lines
    # Totals without numbers, and numbers with decimal commas.
    blank = [row if row[1] or row is rows[0] else [row[0], "", "", ""] for row in rows]
    check(tmp_path, blank, NAMES, SALES, lines, said)
    path.write_text(as_text([[c.replace(".", ",") for c in row] for row in rows], cut=";"))
    assert read_table(path).frame.height == 24


def test_sparse_labels_that_open_no_blocks_stay(tmp_path: Path) -> None:
    names = ["Note", "Month", "Orders"]
    rows = [["odd" if n == 0 else "late" * (n == 9), f"m{n % 7}", str(n)] for n in range(24)]
    check(tmp_path, [names, *rows], names, rows, list(range(2, 26)))


def test_one_option_turns_recognition_off(tmp_path: Path) -> None:
    rows, _ = pivot()
    units = ["", "", "pcs", "EUR"]
    given = [["A title"], NAMES, units, *rows[1:9], NAMES, *rows[9:], ["Page 1 of 1"]]
    path = tmp_path / "t.csv"
    path.write_text(as_text(given))
    for file in (path, as_sheet(tmp_path / "t.xlsx", given)):
        table = read_table(file, layout="as-is")
        assert table.frame.height == len(given) - 1 and table.frame.columns[0] == "A title"
        found = read_table(file)
        assert found.frame.height == 24 and table.source.fingerprint != found.source.fingerprint
    # Lines above the header, given by hand, are no title; what lies below it is found.
    assert cells_of(read_table(path, skip_rows=1)) == SALES
    assert read_table(path, skip_rows=1, layout="as-is").frame.height == len(given) - 2
    parted = open_table(path, layout="as-is", in_memory_rows=5, part_rows=5)
    assert parted.source.n_rows == len(given) - 1


def test_advice_on_a_header_is_what_works(tmp_path: Path) -> None:
    """No number of lines is advised where most rows have another width."""
    path = tmp_path / "t.csv"
    path.write_text(as_text([NAMES, ["North", "m1", "3", "4", "5"], *SALES], padded=False))
    with pytest.raises(InputError, match="line 2 has 5 cells") as caught:
        read_table(path)
    assert "--skip-rows" not in str(caught.value)
    assert read_table(path, bad_lines="skip").frame.height == 24
    path.write_text("a;b\n" + as_text(SALES))
    with pytest.raises(InputError, match="line 2 has 1 cell") as caught:
        read_table(path, delimiter=";")
    assert "--bad-lines" not in str(caught.value)
