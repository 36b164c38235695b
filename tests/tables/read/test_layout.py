"""What is no data in a file as people export it: left out, filled down, and said with its lines."""

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
        quoted = ('"' + c.replace('"', '""') + '"' if cut in c or '"' in c else c for c in row)
        cells = [*quoted, *[""] * (width - len(row))] if padded else [*quoted]
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


def cells_of(table: Table) -> Cells:
    return [["" if cell is None else str(cell) for cell in row] for row in table.frame.rows()]


def values_of(rows: Cells) -> list[list[object]]:
    """Cells as numbers where they are: a sheet knows 40 alone, a text 40.00 as well."""

    def value(cell: str) -> object:
        try:
            return float(cell)
        except ValueError:
            return cell

    return [[value(cell) for cell in row] for row in rows]


def check(
    folder: Path,
    rows: Cells,
    names: list[str],
    data: Cells,
    lines: list[int],
    *said: str,
    sheet: bool = False,
    ways: int = 3,
) -> None:
    """Check that rows are read as a table, however they are written; nothing is said else."""
    tables = []
    for number, (padded, cut) in enumerate(((True, ","), (False, ","), (True, ";"))[:ways]):
        path = folder / f"t{number}.csv"
        path.write_text(as_text(rows, padded=padded, cut=cut))
        tables.append(read_both_ways(path, 7))
    for table in [*tables, *[read_table(as_sheet(folder / "t.xlsx", rows))] * sheet]:
        assert table.frame.columns == names
        assert values_of(cells_of(table)) == values_of(data)
        assert table.lines is not None and table.lines.tolist() == lines
        found = " ".join(table.source.notes)
        for word in said:
            assert (word if table.source.format == "csv" else word.replace("line", "row")) in found
        assert said or "--layout" not in found


def untouched(folder: Path, rows: Cells, *, sheet: bool = False) -> None:
    """Check that a table is read as it is."""
    check(folder, rows, rows[0], rows[1:], [*range(2, len(rows) + 1)], sheet=sheet, ways=1)


def test_the_file_of_a_logger_is_known_by_its_first_word(tmp_path: Path) -> None:
    names = ["TIMESTAMP", "AirTC", "RH", "Kind"]
    above = [["TOA5", "station7", "CR1000", "1234", "x", "Table1"], names]
    below = [["TS", "Deg C", "%", ""], ["", "Avg", "Smp", "Smp"]]
    path = tmp_path / "t.dat"
    path.write_text(as_text([*above, *below, *STATION], padded=False))
    table = read_both_ways(path, 7)
    assert table.frame.columns == names and cells_of(table) == STATION
    assert table.lines is not None and table.lines.tolist() == list(range(5, 29))
    assert 'lines 1 (title "TOA5")' in table.source.notes[0]
    assert "3 (units), 4 (kinds of statistic)" in table.source.notes[0]


@pytest.mark.parametrize("has_questions", [True, False])
def test_questions_and_import_ids_of_a_survey(has_questions: bool, tmp_path: Path) -> None:
    names = ["StartDate", "Duration", "Q1", "Q2"]
    questions = [["Start Date", "Duration (in seconds)", "How old?", "Which, if any?"]]
    ids = [[f'{{"ImportId":"{name}","timeZone":"UTC"}}' for name in names]]
    rows = [names, *questions * has_questions, *ids, *STATION]
    lines = [*range(3 + has_questions, 27 + has_questions)]
    said = "2 (questions), 3 (import ids)" if has_questions else "line 2 (import ids)"
    check(tmp_path, rows, names, STATION, lines, said)


def test_repeated_headers_are_left_out(tmp_path: Path) -> None:
    rows = [NAMES, *SALES[:6], NAMES, *SALES[6:12], NAMES, *SALES[12:]]
    lines = [*range(2, 8), *range(9, 15), *range(16, 28)]
    check(tmp_path, rows, NAMES, SALES, lines, "lines 8, 15 (2 repeated headers)", sheet=True)


def test_a_list_framed_by_bars(tmp_path: Path) -> None:
    rule = "-" * 34
    body = [f"|{r[0]:>7}|{r[1]:8}|{r[2]:>6}|{r[3]:>9}|" for r in SALES]
    head = [rule, "| Region|Month   |Orders|  Revenue|", rule]
    end = [rule, "|* Summe        |      |  1234.56|", rule]
    path = tmp_path / "mb52.txt"
    path.write_bytes("\r\n".join(["A list", "", *head, *body[:9], *head, *body[9:], *end]).encode())
    table = read_both_ways(path, 7)
    assert table.frame.columns == NAMES and cells_of(table) == SALES
    assert table.lines is not None
    assert table.lines.tolist() == [*range(6, 15), *range(18, 33)]
    for said in ("lines 1-3 (title", "5, 15, 17, 33, 35 (5 drawn lines)", "16 (repeated header)"):
        assert said in table.source.notes[0]
    assert "34 (total)" in table.source.notes[0]


def test_a_list_without_a_frame(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    body = "".join(f" {r[0]:7} | {r[2]:>6}\n" for r in SALES)
    path.write_text(f" Region  | Orders \n---------+--------\n{body}(24 rows)\n")
    table = read_table(path)
    assert table.frame.columns == ["Region", "Orders"]
    assert table.frame.rows() == [(r[0], r[2]) for r in SALES]
    assert "lines 2 (drawn line), 27 (footer)" in table.source.notes[0]


@pytest.mark.parametrize(
    "units", [["TS", "Deg C", "%", ""], ["", "[C]", "[%]", ""], ["", "(H)", "(L)", ""]]
)
def test_a_row_of_words_below_the_header_is_data(units: list[str], tmp_path: Path) -> None:
    """Units are no more than words, as flags are."""
    untouched(tmp_path, [["TIMESTAMP", "AirTC", "RH", "Kind"], units, *STATION], sheet=not units[0])


def test_rows_that_repeat_a_row_of_data_are_data(tmp_path: Path) -> None:
    """Where the first row may be data itself, its repeats are, too."""
    for first in (["ada", "x", "n"], ["ada", "n.d.", "1"], ["ada", "2020-01-01", "x"]):
        others = [["bob", "y", "2"], ["cy", "z", "m"]] if first[2] != "1" else [["b", "4", "2"]] * 3
        untouched(tmp_path, [first, *others, first])


@pytest.mark.parametrize("first", [["ada", "", ""], ["ada", "", "", "", ""]])
def test_numbers_below_a_sparse_row_are_data(first: list[str], tmp_path: Path) -> None:
    last = [["bob", "1815", "1852"], ["cy", "1820", "1870"], ["dee", "1900", "1950"]]
    counts = [["bob", "1", "2", "3", "4"], ["cy", "4", "5", "6", "1"], ["dee", "7", "8", "9", "2"]]
    path = tmp_path / "t.csv"
    path.write_text(as_text([first, *(last if len(first) == 3 else counts)]))
    assert read_table(path).frame.height == 3


FOOTS: list[Cells] = [
    [["Grand Total: 6,634"], ["Page -1 of 1"]],
    [["(c) 2025 The Office"]],
    [["Source: us"], ["Last Updated: 12/16/2024"]],
]


@pytest.mark.parametrize("foot", FOOTS)
def test_a_foot_below_numbers_is_left_out(foot: Cells, tmp_path: Path) -> None:
    data, said = [[str(100 + n), *row[1:]] for n, row in enumerate(SALES)], f"{25 + len(foot)}"
    check(
        tmp_path,
        [NAMES, *data, *foot],
        NAMES,
        data,
        [*range(2, 26)],
        f"{said} (footer)",
        sheet=True,
    )


@pytest.mark.parametrize(
    "last", [["Source: lab"], ["Page 3"], ["Note: broken"], ["Total"], ["Dr Ann Lee"], ["-----"]]
)
def test_words_below_words_are_data(last: list[str], tmp_path: Path) -> None:
    """A first column of names or remarks may hold any words."""
    untouched(tmp_path, [NAMES, *SALES, [*last, "", "", ""]], sheet=True)
    numbered = [[str(100 + n), *row[1:]] for n, row in enumerate(SALES)]
    if last[0] in ("Dr Ann Lee", "Total", "-----"):
        untouched(tmp_path, [NAMES, *numbered, [*last, "", "", ""]])


def pivot(word: str = "Total {}", text: str = "") -> tuple[Cells, list[int]]:
    """Return a pivot table with its totals, and the lines of its data."""
    rows, lines = [NAMES], []
    for k, region in enumerate(REGIONS):
        block = SALES[6 * k : 6 * k + 6]
        for number, row in enumerate(block):
            rows.append([region if number == 0 else "", *row[1:]])
            lines.append(len(rows))
        sums = sum(int(r[2]) for r in block), sum(float(r[3]) for r in block)
        rows.append([word.format(region), text, str(sums[0]), f"{sums[1]:.2f}"])
    sums = sum(int(r[2]) for r in SALES), sum(float(r[3]) for r in SALES)
    return [*rows, ["Grand Total", text, str(sums[0]), f"{sums[1]:.2f}"]], lines


@pytest.mark.parametrize("word", ["Total {}", "{} Total", "Subtotal", "Summe {}", "Gesamt"])
def test_totals_are_left_out_and_labels_filled_down(word: str, tmp_path: Path) -> None:
    rows, lines = pivot(word)
    totals = "lines 8, 15, 22, 29, 30 (5 totals)"
    labels = 'in "Region", into 20 empty cells'
    sheet = word == "Total {}"
    check(tmp_path, rows, NAMES, SALES, lines, totals, labels, sheet=sheet)
    # Numbers with decimal commas; rounded totals; a wrong cell that is in its total.
    path = tmp_path / "c.csv"
    for old, new in ((".", ","), ("", ""), (".50", ".5")):
        path.write_text(as_text([[c.replace(old, new) for c in row] for row in rows], cut=";"))
        assert read_both_ways(path, 7).frame.height == 24


GROSS = ["9999999", "-99", "x?#", "1e9"]


@pytest.mark.parametrize("place", [0, 1, 22, 23])
@pytest.mark.parametrize("cell", GROSS)
def test_a_first_or_last_row_with_a_gross_error_stays(
    cell: str, place: int, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    for column in range(4):
        data = [[*row] for row in STATION]
        data[place][column] = cell
        path.write_text(as_text([["TIMESTAMP", "AirTC", "RH", "Kind"], *data]))
        table = read_table(path)
        assert cells_of(table) == data and not table.source.notes


@pytest.mark.parametrize(
    "first",
    [
        ["2025-05-01 00:00:00", "<LOD", "<LOD", "a"],  # censored
        ["2025-05-01 00:00:00", "n.d.", "n.d.", "a"],  # has a time
        ["", "n.d.", "n.d.", "a"],
        ["", "error", "", ""],
        ["bad", "bad", "bad", "bad"],
        ["x", "NA", "n/a", "-"],
        ["", "(H)", "[c]", "a"],  # flags, beside a level of the last column
        ["+++", "+++", "---", "+++"],
    ],
)
def test_a_row_with_words_for_numbers_is_data(first: list[str], tmp_path: Path) -> None:
    named = ["TIMESTAMP", "AirTC", "RH", "Kind"]
    for names in (named, ["TIMESTAMP", "", "RH", "Kind"], ["a", "a", "RH", "Kind"]):
        path = tmp_path / "t.csv"
        for rows in ([first, *STATION], [*STATION, first], [*STATION[:5], first, *STATION[5:]]):
            path.write_text(as_text([names, *rows]))
            assert cells_of(read_table(path)) == rows


@pytest.mark.parametrize(
    "row",
    [
        ["Peru", "", "", ""],  # a name like others
        ["Total", "m1", "10", "30.00"],  # an oil company
        ["Total", "", "10", "30.00"],  # not the sum
        ["Total", "", "", "30.00"],
        ["Sum 41", "", "9", ""],
        ["Total Wine & More", "m1", "2430", "1682.00"],  # the sums, by chance
        ["Total", "", "2430", "1"],  # one of two by chance
        ["Page", "m1", "1", "2"],
    ],
)
def test_rows_that_only_look_like_a_foot_or_total_are_data(row: list[str], tmp_path: Path) -> None:
    for place in (0, 1, 2, 9, 24):
        untouched(
            tmp_path,
            [NAMES, *SALES[:place], row, *SALES[place:]],
            sheet=place == 0 and row[0] == "Total",
        )


def test_a_total_in_the_middle_alone_is_data(tmp_path: Path) -> None:
    """A customer may be called so, and may happen to buy as much as all before."""
    rows = [["Ann", "1", "2"], ["Bob", "2", "2"], ["Total", "3", "4"], ["Cem", "4", "7"]]
    untouched(tmp_path, [["Name", "Orders", "Items"], *rows])
    untouched(tmp_path, [["Name", "Orders"], *(row[:2] for row in rows)])
    # Which of the two is a total, is open.
    untouched(tmp_path, [["Name", "Orders", "Items"], *rows, ["Grand total", "10", "15"]])


def test_negative_totals_and_numbers_that_cancel(tmp_path: Path) -> None:
    rows = [[f"a{n}", str(-n - 1), f"{n * 0.1 - 9:.1f}"] for n in range(8)]
    sums = [str(sum(int(r[1]) for r in rows)), f"{sum(float(r[2]) for r in rows):.1f}"]
    names = ["Account", "Debit", "Balance"]
    end = [["Total", *sums]]
    lines = [*range(2, 10)]
    check(tmp_path, [names, *rows, *end], names, rows, lines, "line 10 (total)", sheet=True)
    # Nothing adds up to nothing.
    rows = [[f"a{n}", "0", "0"] for n in range(8)]
    untouched(tmp_path, [names, *rows, ["Total", "0", "0"]])


def test_tables_of_all_kinds_stay_as_they_are(tmp_path: Path) -> None:
    people = [["ada", "london", "x"], ["bob", "paris", "y"], ["cy", "rome", "x"]]
    tables: list[Cells] = [
        [["name", "city", "kind"], *people],  # text alone, three rows
        [["name", "size", "kind"], ["ada", "1", "x"], ["bob", "2", "y"], ["cy", "400", "x"]],
        [["name", "city", "kind"], ["Total", "Total", "Total"], *people],
        [["size"], *([str(n)] for n in range(9))],  # one column
        [["word"], ["Total"], ["page 1"], ["Total"]],
        [["note", "m", "size"], ["odd", "m0", "1"], *(["", f"m{n % 7}", str(n)] for n in range(9)),
         ["late", "m4", "2"], *(["", f"m{n % 7}", str(n)] for n in range(9))],  # no blocks
        [["note", "day", "size"], *(["x" * (n == 3), f"d{n}", str(n)] for n in range(9))],
        [["unit", "size", "kind"], ["kg", "4", "x"], ["m", "5", "y"], ["s", "6", "x"]],
        [["sign", "a", "b"], ["+++", "1", "2"], ["---", "3", "4"], ["+", "5", "6"]],
        [["id", "Total", "Sum"], *([str(n), str(n), str(2 * n)] for n in range(9))],
        [["year", "a", "b"], *([str(2010 + n), str(n), "x"] for n in range(9))],
        [["a", "b"], ["b", "a"], ["a", "c"]],
        [["name", "m", "n"], ["ada", "4", ""], ["", "", ""], ["bob", "", ""], *people[:1],
         ["", "", ""], ["cy", "", ""]],  # sparse everywhere
        [["a", "b", "c"], ["a", "b", "d"], ["a", "e", "c"]],
    ]  # fmt: skip
    for rows in tables:
        untouched(tmp_path, rows)
    sizes = ["", "142.24", "144.78"]
    body = [["x", "1", "2"], *([["", "3", "4"]] * 4)]
    check(tmp_path, [sizes, *body], ["column_1", *sizes[1:]], body, [*range(2, 7)])
    for names, given in (
        (["a", "", "c"], ["a", "column_2", "c"]),
        (["a", "a", "c"], ["a", "a_2", "c"]),
        (["", "b", "c"], ["column_1", "b", "c"]),
    ):
        for body in (people, [["ada", "1", ""], ["bob", "2", "3"], ["cy", "3", "4"]]):
            check(tmp_path, [names, *body], given, body, [2, 3, 4], sheet=names[1] == "")


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for end in ("North,m", "North", "\nNorth,m1,3", "Page 1 of 1\nNorth,m1,3", "Total,5"):
        path.write_text(as_text([NAMES, *SALES]) + end)
        with pytest.raises(InputError, match=r"line 2\d has \d cells? where line 1 has 4"):
            read_table(path)
    # A foot ends the table: rows of its width below are none.
    path.write_text(as_text([NAMES, *SALES]) + "Source: us\n" + as_text(SALES))
    with pytest.raises(InputError, match="line 26 has 1 cell where line 1 has 4"):
        read_table(path)
    table = read_table(path, bad_lines="skip")
    assert table.frame.height == 48 and "line 26 has 1 cell" in table.source.notes[0]


def test_one_option_turns_recognition_off(tmp_path: Path) -> None:
    rows, _ = pivot()
    given = [["A title"], NAMES, *rows[1:9], NAMES, *rows[9:]]
    path = tmp_path / "t.csv"
    path.write_text(as_text(given))
    for file in (path, as_sheet(tmp_path / "t.xlsx", given)):
        table = read_table(file, layout="off")
        assert table.frame.height == len(given) - 1 and table.frame.columns[0] == "A title"
        found = read_table(file)
        assert found.frame.height == 24 and table.source.fingerprint != found.source.fingerprint
    # Lines above the header, given by hand, are no title; what lies below it is found.
    assert cells_of(read_table(path, skip_rows=1)) == SALES
    assert read_table(path, skip_rows=1, layout="off").frame.height == len(given) - 2
    parted = open_table(path, layout="off", in_memory_rows=5, part_rows=5)
    assert parted.source.n_rows == len(given) - 1
