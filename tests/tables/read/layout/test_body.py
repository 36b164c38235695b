"""Lines that are not data are left out and reported; labels are filled into empty cells."""

from pathlib import Path

import pytest
import xlsxwriter

from kpca_apps.errors import InputError
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.read.layout import body
from kpca_apps.tables.table import Table
from tests.quick import quick
from tests.tables.whole_and_parts import put, read_both_ways

REGIONS = ["North", "South", "East", "West"]
# SALES: regions, months, orders and revenues. STATION: hourly measurements of a weather station.
SALES = [[r, f"m{m}", str(80 + 7 * m + k), f"{3.5 * m + 11 * k + 40:.2f}"]
         for k, r in enumerate(REGIONS) for m in range(6)]  # fmt: skip
STATION = [[f"2025-05-01 {h:02}:00:00", f"{10 + h % 5}.5", str(60 + h % 7), "ab"[h % 2]]
           for h in range(24)]  # fmt: skip
NAMES = ["Region", "Month", "Orders", "Revenue"]

Cells = list[list[str]]


def as_text(rows: Cells, *, padded: bool = True, cut: str = ",") -> str:
    """Format rows as delimited text; without padding, a row ends with its last filled cell."""
    width, lines = max(map(len, rows)), []
    for row in rows:
        quoted = ('"' + c.replace('"', '""') + '"' if cut in c or '"' in c else c for c in row)
        cells = [*quoted, *[""] * (width - len(row))] if padded else [*quoted]
        lines.append(cut.join(cells))
    return "\n".join(lines) + "\n"


def as_sheet(path: Path, rows: Cells) -> Path:
    """Write rows as a sheet, with numbers as numbers."""
    with xlsxwriter.Workbook(path, {"strings_to_numbers": True}) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                if cell:
                    sheet.write(number, column, cell)
    return path


def path_of(folder: Path, rows: Cells) -> Path:
    """Write rows as a text file and return its path."""
    (folder / "t.csv").write_text(as_text(rows))
    return folder / "t.csv"


def cells_of(table: Table) -> Cells:
    return [["" if cell is None else str(cell) for cell in row] for row in table.frame.rows()]


def values_of(rows: Cells) -> list[list[object]]:
    """Convert numeric cells to floats: a sheet stores 40 where a text file has 40.00."""

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
    *notes_expected: str,
    sheet: bool = False,
    ways: int = 3,
) -> None:
    """Check that rows are read as `names`, `data` and `lines` in every format, with these notes."""
    tables = []
    for number, (padded, cut) in enumerate(((True, ","), (False, ","), (True, ";"))[:ways]):
        path = folder / f"t{number}.csv"
        path.write_text(as_text(rows, padded=padded, cut=cut))
        tables.append(read_both_ways(path, 7))
    for table in [*tables, *[read_table(as_sheet(folder / "t.xlsx", rows))] * sheet]:
        assert table.frame.columns == names and values_of(cells_of(table)) == values_of(data)
        assert table.lines is not None and table.lines.tolist() == lines
        note = " ".join(table.source.notes)
        for word in notes_expected:
            assert (word if table.source.format == "csv" else word.replace("line", "row")) in note
        assert notes_expected or "--layout" not in note


def untouched(folder: Path, rows: Cells, *, sheet: bool = False) -> None:
    """Check that a table is read unchanged."""
    check(folder, rows, rows[0], rows[1:], [*range(2, len(rows) + 1)], sheet=sheet, ways=1)


def test_the_file_of_a_logger_is_known_by_its_first_word(tmp_path: Path) -> None:
    names = ["TIMESTAMP", "AirTC", "RH", "Kind"]
    above = [["TOA5", "station7", "CR1000", "1234", "x", "Table1"], names]
    below = [["TS", "Deg C", "%", ""], ["", "Avg", "Smp", "Smp"]]
    path = put(tmp_path / "t.dat", as_text([*above, *below, *STATION], padded=False))
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
    note = "2 (questions), 3 (import ids)" if has_questions else "line 2 (import ids)"
    check(tmp_path, rows, names, STATION, lines, note)


def test_descriptions_below_the_names_are_left_out(tmp_path: Path) -> None:
    names = ["GEO_ID", "B01_001E", "B01_001M", "NAME"]
    described = ["Geography", "Estimate!!Total", "Margin of Error!!Total", "Area"]
    data = [[f"1400US{k}", f"{900 + 7 * k}", f"+/-{40 + k}", f"Tract {k}"] for k in range(24)]
    note = "line 2 (descriptions of the columns)"
    check(tmp_path, [names, described, *data], names, data, [*range(3, 27)], note)
    for words in (["x", "too low", "none", "y"], ["x", "not read", "not read", "y"]):
        untouched(tmp_path, [names, words, *data])
    people = [[f"{'Ann Bea Cy'.split()[k % 3]} Lee", *row[1:]] for k, row in enumerate(data)]
    untouched(tmp_path, [names, ["Al Fox", "not known", "refused to say", "none there"], *people])


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
    assert table.lines is not None and table.lines.tolist() == [*range(6, 15), *range(18, 33)]
    for note in ("lines 1-3 (title", "5, 15, 17, 33, 35 (5 drawn lines)", "16 (repeated header)"):
        assert note in table.source.notes[0]
    assert "34 (total)" in table.source.notes[0]


def test_a_list_without_a_frame(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    body = "".join(f" {r[0]:7} | {r[2]:>6}\n" for r in SALES)
    path.write_text(f" Region  | Orders \n---------+--------\n{body}(24 rows)\n")
    table = read_table(path)
    assert table.frame.columns == ["Region", "Orders"]
    assert table.frame.rows() == [(r[0], r[2]) for r in SALES]
    assert "lines 2 (drawn line), 27 (footer)" in table.source.notes[0]


def test_how_digits_of_dates_are_written_is_a_unit_of_theirs(tmp_path: Path) -> None:
    names, units = ["TIMESTAMP", "AirTC", "RH"], ["YYYYMMDDHHMM", "deg C", "%"]
    data = [[f"2024030{1 + k // 24}{k % 24:02}00", *row[1:3]] for k, row in enumerate(STATION)]
    check(tmp_path, [names, units, *data], names, data, [*range(3, 27)], "line 2 (units)")


@pytest.mark.parametrize(
    "units", [["", "Deg C", "%", ""], ["", "[C]", "[%]", "-"], ["", "\u00b0F", "g/m3", ""]]
)
def test_units_below_the_header_are_left_out(units: list[str], tmp_path: Path) -> None:
    names = ["TIMESTAMP", "AirTC", "RH", "Kind"]
    rows, note = [names, units, *STATION], "line 2 (units)"
    check(tmp_path, rows, names, STATION, [*range(3, 27)], note, sheet=True)
    # A row of units is data if it has a unit for the dates, too, or if data rows stand above it.
    untouched(tmp_path, [names, ["m", *units[1:]], *STATION])
    untouched(tmp_path, [names, *STATION[:5], units, *STATION[5:]])


@pytest.mark.parametrize(
    "flags", [["", "(H)", "(L)", ""], ["", "%", "", ""], ["", "m", "s", ""], ["", "kg", "n.d.", ""]]
)
def test_flags_below_the_header_are_data(flags: list[str], tmp_path: Path) -> None:
    """Flags may look like units: a single "%", or letters such as "m" and "s"."""
    untouched(tmp_path, [["TIMESTAMP", "AirTC", "RH", "Kind"], flags, *STATION])


QUARTERS = [["", "2022", "", "2023", ""], ["Region", "Q1", "Q2", "Q1", "Q2"]]
QUARTER_NAMES = ["Region", "2022 Q1", "2022 Q2", "2023 Q1", "2023 Q2"]
SURVEY = [["Person", "Happy with", "", "Age", "More?"], ["", "Price", "Staff", "Reply", "Text"]]
SURVEY_NAMES = ["Person", "Happy with Price", "Happy with Staff", "Age Reply", "More? Text"]
ANSWERS = [[f"p{n}", str(1 + n % 5), str(n % 4), str(20 + n), "ab"[n % 2]] for n in range(12)]
SHOPS = [[f"Shop {n}", *(str(50 + 7 * n + k) for k in range(4))] for n in range(12)]


@pytest.mark.parametrize(
    ("head", "names", "data"),
    [
        (QUARTERS, QUARTER_NAMES, SHOPS),
        ([[c or "2022" * (k > 0) for k, c in enumerate(QUARTERS[0])], *QUARTERS[1:]], [], SHOPS),
        (SURVEY, SURVEY_NAMES, ANSWERS),
        ([["Region", "2022", "", "2023", ""], ["", *QUARTERS[1][1:]]], QUARTER_NAMES, SHOPS),
    ],
)
def test_two_header_rows_are_joined(
    head: Cells, names: list[str], data: Cells, tmp_path: Path
) -> None:
    names = names or ["Region", "2022 Q1", "2022 Q2", "2023 Q1", "2022 Q2"]
    if len({*names}) < 5:  # joined names would repeat, so none are joined
        assert read_table(as_sheet(tmp_path / "t.xlsx", [*head, *data])).frame.columns != names
        return
    lines = [*range(3, 3 + len(data))]
    note = "line 2 (second row of names, joined)"
    check(tmp_path, [*head, *data], names, data, lines, note, sheet=True)
    titled = [["Sales of shops"], ["", ""], *head, *data]
    lines = [*range(5, 5 + len(data))]
    check(tmp_path, titled, names, data, lines, "1-2 (title", sheet=True, ways=1)


@pytest.mark.parametrize("n", [2, 4])
def test_years_below_the_name_of_a_group_are_joined(n: int, tmp_path: Path) -> None:
    years = [str(2018 + k) for k in range(n)]
    head = [["Country", "Rate", *[""] * (n - 1)], ["", *years]]
    data = [[f"C{k}", *(f"{k + j}.5" for j in range(n))] for k in range(12)]
    names = ["Country", *(f"Rate {year}" for year in years)]
    note = "line 2 (second row of names, joined)"
    check(tmp_path, [*head, *data], names, data, [*range(3, 15)], note, sheet=True)
    # A row of years is data if its first cell is filled, or if the rows below hold years as well.
    born = [[row[0], *(str(1950 + 3 * k + j) for j in range(n))] for k, row in enumerate(data)]
    for rows in ([["", *years], *born], [["X", *years], *data]):
        path = path_of(tmp_path, [head[0], *rows])
        assert not any("Rate 2018" in name for name in read_table(path).frame.columns)


ANSWER_WORDS = [
    ("Response", "Open-Ended Response"),
    ("Antwort", "Offene Antwort"),
    ("R\u00e9ponse", "R\u00e9ponse ouverte"),
]


@pytest.mark.parametrize("words", ANSWER_WORDS)
@pytest.mark.parametrize("options", [[], ["Apple", "Pear", "None"], ["1", "2", "N/A"]])
def test_kinds_of_answers_below_questions_are_joined(
    words: tuple[str, str], options: list[str], tmp_path: Path
) -> None:
    """Most answers are text; the second row repeats a few words."""
    questions = ["Which?", "", ""][: len(options)]
    first = ["Respondent ID", "Start Date", *questions, "Age?", "Job?", "More?"]
    second = ["", "", *options, words[0], words[0], words[1]]
    data = [
        [
            *(str(900 + 7 * n), f"2024-03-{1 + n:02}"),
            *(word * (n % 2) for word in options),
            *(str(20 + n % 9), ["clerk", "boss"][n % 2], "fine" * (n % 3 == 0)),
        ]
        for n in range(20)
    ]
    names = [*first[:2], *(f"Which? {word}" for word in options)]
    names += [f"Age? {words[0]}", f"Job? {words[0]}", f"More? {words[1]}"]
    note = "line 2 (second row of names, joined)"
    check(tmp_path, [first, second, *data], names, data, [*range(3, 23)], note, sheet=True)
    # If the second row has an id, it holds the answers of a respondent, not names.
    first = [name or f"column_{k}" for k, name in enumerate(first)]
    untouched(tmp_path, [first, ["900", "2024-03-01", *[""] * len(options), *second[-3:]], *data])
    # A second row with a number ("3") holds answers, not names, even if its first cell is empty.
    kinds = [[f"{n}", "Request", f"{n % 4}"] for n in range(12)]
    untouched(tmp_path, [["id", "kind", "hours"], ["", words[0], "3"], *kinds])


@pytest.mark.parametrize("names", [["Shop", "Opened", "", ""], ["Shop", "", "", ""]])
def test_a_first_row_of_years_above_years_is_data(names: list[str], tmp_path: Path) -> None:
    data = [["", "2019", "2020", "2021"], ["Oslo", "1899", "2001", "2013"]]
    data += [["Bern", "2001", "1897", "2005"], ["Rom", "1999", "2003", "2022"]]
    given = [name or f"column_{k}" for k, name in enumerate(names, start=1)]
    check(tmp_path, [names, *data], given, data, [2, 3, 4, 5], ways=1)
    data[0][0] = "Paris"
    check(tmp_path, [names, *data], given, data, [2, 3, 4, 5], ways=1)
    # Below a title, years name columns, unless rows below contain years as well.
    path = tmp_path / "y.csv"
    for rows, n in ((data, 4), ([data[0], *([r[0], "3", "1", "4"] for r in data[1:])], 3)):
        path.write_text(as_text([["Shops of", "the town", "", ""], ["", "", "", ""], *rows]))
        assert read_table(path).frame.height >= n


def test_rows_below_sparse_or_repeated_names_are_data(tmp_path: Path) -> None:
    """Line 2 is data: a cell is no word, or columns that share a name have equal words."""
    for head in (["shop", "2022", "", "2023", ""], ["shop", "a", "a", "b", "b"]):
        for first in (
            ["x", "7", "8", "9", "6"],
            ["x", "n.d.", "n.d.", "n.d.", "n.d."],
            ["x", "low", "high", "low", "5"],
            ["x", "low", "low", "high", "high"],
            ["x", "?", "-", "na", "none"],
        ):
            path = put(tmp_path / "t.csv", as_text([head, first, *SHOPS]))
            assert cells_of(read_table(path)) == [first, *SHOPS]


@pytest.mark.parametrize("names", [range(2010, 2016), range(2015, 2009, -1), range(1, 13)])
@pytest.mark.parametrize("title", [[["Sales by region"]], [["Sales"], ["from", "to"], [""]]])
def test_years_and_months_name_columns_below_a_title(
    title: Cells, names: range, tmp_path: Path
) -> None:
    head = ["Region", *map(str, names)]
    data = [[f"R{n}", *(str(40 + n * k % 31) for k in names)] for n in range(20)]
    lines = [*range(len(title) + 2, len(title) + 22)]
    check(tmp_path, [*title, head, *data], head, data, lines, "title", sheet=True)


def test_rows_that_go_on_by_one_step_are_data(tmp_path: Path) -> None:
    years = [[name, "1990", "2000", "2010"] for name in ("ada", "bob", "cem")]
    path = tmp_path / "t.csv"
    for head in (["name"], ["name", "", "", "to"]):
        path.write_text(as_text([head, *years]))
        assert read_table(path).frame.height == 3


def test_a_first_line_wider_than_the_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        as_text([["EXTF", "700", "21", "Stapel", "13", "RE"], NAMES, *SALES], padded=False)
    )
    table = read_both_ways(path, 7)
    assert table.frame.columns == NAMES and cells_of(table) == SALES
    assert 'line 1 (title "EXTF")' in table.source.notes[0]
    # Names of all columns but the first, if numbers follow below, are not a title.
    path.write_text(as_text([NAMES[1:], *SALES], padded=False))
    with pytest.raises(InputError, match="line 2 has 4 cells where line 1 has 3"):
        read_table(path)


PLACES = [[str(k), "Ann", "Oslo; Norway", str(3 * k)] for k in range(20)]
PLACE_NAMES = ["id", "name", "place", "n"]


@pytest.mark.parametrize(
    "rows",
    [
        [PLACE_NAMES, ["0", "Doe, Jane", "Oslo; Norway", "0"], *PLACES[1:]],
        [["id", "na\nme", "place", "n"], *PLACES],
        [PLACE_NAMES, *([r[0], "Doe, J", r[2 - (n < 9)], r[3]] for n, r in enumerate(PLACES))],
        [["name", "tags", "kind"], *(["a, b" * (n % 3), "red|blue", f"k{n}"] for n in range(20))],
        [["name", "tags", "kind"], *(["a, b" * (n % 3), "red\tblue", f"k{n}"] for n in range(20))],
    ],
)
def test_quoted_commas_do_not_hide_what_cuts_the_rows(rows: Cells, tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", as_text(rows).replace("na\nme", '"na\nme"'))
    table = read_both_ways(path, 7)
    assert table.frame.columns == rows[0] and cells_of(table) == rows[1:]
    assert not table.source.notes


@pytest.mark.parametrize("end", [["Source: us"], []])
def test_semicolons_in_all_rows_below_a_title_or_above_a_foot(
    end: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    for above in ([], [["A list"], [""]]):
        for data in (PLACES, PLACES[: 20 if end else 6]):
            path.write_text(as_text([*above, PLACE_NAMES, *data, *[end] * bool(end)], padded=False))
            table = read_both_ways(path, 7)
            assert table.frame.columns == PLACE_NAMES and cells_of(table) == data
    # The titles and numbers contain commas, but the header does not.
    path.write_text("Sales, Q1\nOslo, 2024\nname;sum\n" + "a;1,5\n" * 8)
    assert read_table(path).frame.columns == ["name", "sum"]


def test_numbers_without_a_header_all_stay(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for first in (["2001", "2002", "2003"], ["2019", "2020", "2021"], ["1990", "1995", "2000"]):
        data = [first, ["2004", "2009", "2006"], first, ["2007", "2011", "2009"]]
        path.write_text(as_text(data))
        table = read_both_ways(path, 2)
        assert cells_of(table) == data and "--layout" not in " ".join(table.source.notes)


@pytest.mark.parametrize("names", [["name", "", ""], ["name", "job", "", "", ""]])
def test_a_sparse_header_above_text_names_the_columns(names: list[str], tmp_path: Path) -> None:
    people = [["Joe", "Smith", "Boss"], ["Ann", "Lee", "Clerk"], ["Bo", "Do", "Chef"]]
    data = [[*row, "x", "y"][: len(names)] for row in people]
    given = [name or f"column_{k}" for k, name in enumerate(names, start=1)]
    check(tmp_path, [names, *data], given, data, [2, 3, 4], ways=1)


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (["station", "", "temp", "rain"], ["Oslo", "N1", "NA", "NA"]),
        (["date", "price", "price", "ret"], ["foo", "NA", "none", "NaN"]),
        (["id", "x", "y", "comment", ""], ["A1", "NA", "NA", "late", "see file"]),
        (["id", "x", "y", "comment", ""], ["A1", "absent", "absent", "late", "see file"]),
        (["", "g", "lag", "lag"], ["a", "b", "NA", "NaN"]),
        (["", "g", "lag", "lag"], ["a", "b", "low", "high"]),
        (["name", "score", "", "points"], ["Ann", "absent", "ok", "withdrawn"]),
        (["shop", "2022", "", "2023", ""], ["x", "NA", "none", "NA", "none"]),
    ],
)
def test_a_blank_or_repeated_name_does_not_turn_data_into_names(
    names: list[str], first: list[str], tmp_path: Path
) -> None:
    texts = {0, *(1 for name in names if name in ("station", "g"))}
    data = [[f"S{n}" if k in texts else str(n * k) for k in range(len(names))] for n in range(9)]
    table = read_both_ways(path_of(tmp_path, [names, first, *data]), 7)
    assert cells_of(table) == [first, *data] and "--layout" not in " ".join(table.source.notes)
    assert not any(word in name for name in table.frame.columns for word in first[1:])


@pytest.mark.parametrize(
    "above",
    [
        [["Prices are net of VAT"]],
        [["Page 1 of 3"], ["Source: us"]],
        [[""], ["late, see 3 and 4"]],
        [[""]],
    ],
)
def test_units_below_remarks_and_blank_lines_are_left_out(above: Cells, tmp_path: Path) -> None:
    names = ["TIMESTAMP", "AirTC", "RH", "Kind"]
    rows = [names, *above, ["", "Deg C", "%", ""], *STATION]
    lines = [*range(3 + len(above), 27 + len(above))]
    check(tmp_path, rows, names, STATION, lines, f"{2 + len(above)} (units)", sheet=True)
    if above != [[""]]:
        check(tmp_path, rows, names, STATION, lines, "remark", sheet=True)
    # A row of units is read as data if a row of data precedes it.
    untouched(tmp_path, [names, STATION[0], *rows[-25:]])


@pytest.mark.parametrize("above", ["", "-", "n/a", "text", "any"])
@pytest.mark.parametrize("numbers", ["{}.5", "{}"])
def test_words_above_text_hide_no_units(above: str, numbers: str, tmp_path: Path) -> None:
    names = ["Mass", "Height", "Colour", "Remark", "Temp"]
    units = ["kg", "mm", above, "", "degC"]
    data = [
        [numbers.format(40 + n), str(n), ["red", "blue"][n % 2], "late" * (n % 3 == 0), f"{n}.1"]
        for n in range(12)
    ]
    note = "line 2 (units)"
    check(tmp_path, [names, units, *data], names, data, [*range(3, 15)], note, sheet=True)
    # The row of units is read as data if one of its texts ("red") occurs in the column below, or if
    # one of its cells is a number (7.5).
    untouched(tmp_path, [names, [*units[:2], "red", *units[3:]], *data])
    untouched(tmp_path, [names, [*units[:4], "7.5"], *data])
    # Most values of the first column are below a detection limit.
    for n, row in enumerate(data):
        row[0] = "<0.5" if n % 3 else row[0]
    check(tmp_path, [names, units, *data], names, data, [*range(3, 15)], note, ways=1)


def test_codes_above_whole_numbers_are_no_units(tmp_path: Path) -> None:
    untouched(tmp_path, [["code", "iso"], ["EUR", "min"], ["840", "2"], ["826", "3"]])
    untouched(tmp_path, [["team", "won"], ["A", "%"], ["1", "2"], ["2", "4"], ["3", "1"]])
    # Two units make a row of units if the column without a unit ("Zeit") has no empty cells.
    names, data = (
        ["Zeit", "Temp", "Druck"],
        [[f"{h}:00", str(20 + h), str(990 + h)] for h in range(9)],
    )
    for units in (["", "\u00b0C", "hPa"], ["", "EUR", "kg"]):
        check(tmp_path, [names, units, *data], names, data, [*range(3, 12)], "line 2 (units)")
    untouched(tmp_path, [names, ["", "%", "kg"], ["", "5", "6"], *data])
    data = [["0", "20.1"], ["60", "20.4"], ["120", "21.0"]]
    check(tmp_path, [["t", "T"], ["s", "degC"], *data], ["t", "T"], data, [3, 4, 5], "2 (units)")


def test_a_name_or_level_is_no_total(tmp_path: Path) -> None:
    sums = [["1", "10"], ["2", "20"], ["3", "30"]]
    for labels in (["Acme", "Bolt", "Total SA"], ["Acme", "Bolt", "Great Total"]):
        rows = [[label, *row] for label, row in zip(labels, sums, strict=True)]
        untouched(tmp_path, [["customer", "n", "v"], *rows])
    for labels in (["***", "*", "**"], ["****", "*****", "*"]):
        rows = [[label, *row] for label, row in zip(labels, sums, strict=True)]
        untouched(tmp_path, [["stars", "rooms", "beds"], *rows])
    # A customer called "Total SA" has the same cells filled as the subtotals.
    rows, _ = pivot("Subtotal")
    given = [*rows[:3], ["Total SA", "", "7", "9.50"], *rows[3:-1]]
    assert "unmatched" not in str(read_table(path_of(tmp_path, given)).source.notes)


def test_a_delimiter_that_ends_all_rows_but_the_header(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "a,b\n1,2,\n3,4,\n")
    table = read_both_ways(path, 1)
    assert table.frame.columns == ["a", "b", "column_3"]
    assert cells_of(table) == [["1", "2", ""], ["3", "4", ""]]
    assert "Column 3 has an empty name" in table.source.notes[0]
    path.write_text("a,b\n1,2,\n3,4,5\n")
    with pytest.raises(InputError, match="line 2 has 3 cells where line 1 has 2"):
        read_table(path)


def test_rows_that_repeat_a_row_of_data_are_data(tmp_path: Path) -> None:
    """If the first row may be data itself, its repeats are data."""
    for first in (["ada", "x", "n"], ["ada", "n.d.", "1"], ["ada", "2020-01-01", "x"]):
        others = [["bob", "y", "2"], ["cy", "z", "m"]] if first[2] != "1" else [["b", "4", "2"]] * 3
        untouched(tmp_path, [first, *others, first])


@pytest.mark.parametrize("first", [["ada", "", ""], ["ada", "", "", "", ""]])
def test_numbers_below_a_sparse_row_are_data(first: list[str], tmp_path: Path) -> None:
    last = [["bob", "1815", "1852"], ["cy", "1820", "1870"], ["dee", "1900", "1950"]]
    counts = [["bob", "1", "2", "3", "4"], ["cy", "4", "5", "6", "1"], ["dee", "7", "8", "9", "2"]]
    path = put(tmp_path / "t.csv", as_text([first, *(last if len(first) == 3 else counts)]))
    assert read_table(path).frame.height == 3


FOOTERS: list[Cells] = [
    [["Grand Total: 6,634"], ["Page -1 of 1"]],
    [["(c) 2025 The Office"]],
    [["Source: us"], ["Last Updated: 12/16/2024"]],
]


@pytest.mark.parametrize("is_text", [True, False])
@pytest.mark.parametrize(
    "foot", [*FOOTERS, [[""], ["Note"], ["Copyright us"], ["The end"]], [["Grand Total"]]]
)
def test_a_foot_is_left_out(foot: Cells, is_text: bool, tmp_path: Path) -> None:
    first = ("S{}" if is_text else "{}").format
    data = [[first(100 + n), *row[1:]] for n, row in enumerate(SALES)]
    note = f"{25 + len(foot)}"
    check(
        tmp_path,
        [NAMES, *data, *foot],
        NAMES,
        data,
        [*range(2, 26)],
        f"{note} (footer)",
        sheet=True,
    )


@pytest.mark.parametrize(
    "last",
    [
        ["Note: broken"],
        ["Total"],
        ["Dr Ann Lee"],
        ["-----"],
        ["Source: lab", "", "4"],
        ["", "Page 3"],
    ],
)
def test_other_words_below_a_table_are_data(last: list[str], tmp_path: Path) -> None:
    last = [*last, "", "", ""][:4]
    numbered = [[str(100 + n), *row[1:]] for n, row in enumerate(SALES)]
    untouched(tmp_path, [NAMES, *SALES, last], sheet=last[0] == "Total")
    # Below a first column of numbers, these two texts are footers.
    if last[0] not in ("Note: broken", "Dr Ann Lee"):
        untouched(tmp_path, [NAMES, *numbered, last])


def test_words_of_a_foot_are_data_where_rows_above_hold_no_more(tmp_path: Path) -> None:
    bare = [["Peru", "", "", ""]]
    for last in ("Source: lab", "Page 3", "Grand Total"):
        untouched(tmp_path, [NAMES, *SALES[:20], *bare, *SALES[20:], [last, "", "", ""]])
        untouched(tmp_path, [["word"], *([row[1]] for row in SALES), [last]])


def with_rows(data: Cells, *others: tuple[int, list[str]]) -> tuple[Cells, list[int]]:
    """Insert rows into the data; return all rows and the line numbers of the data."""
    rows, lines = [NAMES], []
    for number, row in enumerate([*data, []]):
        rows += [[*other, *[""] * (4 - len(other))] for place, other in others if place == number]
        rows += [row] * bool(row)
        lines += [len(rows)] * bool(row)
    return rows, lines


@pytest.mark.parametrize("blank", ["", " "])
def test_rows_of_separators_are_blank_lines(blank: str, tmp_path: Path) -> None:
    given = [NAMES, *SALES[:3], [blank] * 4, *SALES[3:], [blank] * 4, [blank] * 4]
    lines = [2, 3, 4, *range(6, 27)]
    check(tmp_path, given, NAMES, SALES, lines, "lines 5, 27-28 (3 blank lines)", ways=1)
    # A formula may evaluate to an empty text.
    with xlsxwriter.Workbook(tmp_path / "f.xlsx", {"strings_to_numbers": True}) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(given):
            for column, cell in enumerate(row):
                if cell.strip():
                    sheet.write(number, column, cell)
                else:
                    sheet.write_formula(number, column, '=""', None, blank)
    table = read_table(tmp_path / "f.xlsx")
    assert table.lines is not None and table.lines.tolist() == lines
    assert read_table(path_of(tmp_path, given), layout="off").frame.height == len(given) - 1
    # A row with a single cell is data, wherever it stands.
    untouched(tmp_path, [NAMES, *SALES[:3], ["", "", "", "4"], ["", "m1", "", ""], *SALES[3:]])


FIRSTS = {
    "names": lambda n: ["Ann", "Bob Lee", "Cem", "New Zealand"][n % 4] + " x" * (n // 4),
    "numbers": lambda n: str(100 + n),
    "dates": lambda n: f"{1 + n:02}.03.2024",
    "codes": lambda n: f"P{n:03}",
    "named dates": lambda n: f"{1 + n} mars 2024",
}


@pytest.mark.parametrize("kind", quick(FIRSTS, "names", "codes"))
@pytest.mark.parametrize(
    "remark",
    [
        "Document \u00e9dit\u00e9 le 12/03/2024",
        "Seite 1 von 3",
        "Page 1 of 3",
        "Strana 1 z 3",
        "Source: Eurostat",
        "Stand: 31.12.2023, 14:05",
    ],
)
def test_remarks_are_left_out_wherever_they_stand(kind: str, remark: str, tmp_path: Path) -> None:
    data = [[FIRSTS[kind](n), *row[1:]] for n, row in enumerate(SALES)]
    ways = (((24,), "26 (footer)"), ((8,), "10 (remark)"), ((8, 16), "10, 19 (2 remarks)"))
    for places, note in ways:
        rows, lines = with_rows(data, *((place, [remark]) for place in places))
        check(tmp_path, rows, NAMES, data, lines, note, sheet=kind == "codes", ways=1)


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("names", "Zo\u00eb van den Berg"), ("names", "Area 51"), ("names", "Total"),
        ("numbers", "124"), ("numbers", "12x"), ("numbers", "unknown"), ("dates", "25.03.2024"),
        ("dates", "2024-03-25"), ("dates", "n.d."), ("codes", "P024"), ("codes", "P1024"),
        ("codes", "Q-7"), ("codes", "P024b"), ("named dates", "25 avril 2024"),
        ("named dates", "2 fevrier"),
    ],
)  # fmt: skip
def test_a_row_with_its_first_cell_alone_may_be_data(kind: str, first: str, tmp_path: Path) -> None:
    data = [[FIRSTS[kind](n), *row[1:]] for n, row in enumerate(SALES)]
    for place in (0, 9, 24):
        rows, _ = with_rows(data, (place, [first]))
        untouched(tmp_path, rows)


@pytest.mark.parametrize("kind", FIRSTS)
def test_columns_that_are_mostly_empty_make_no_remarks(kind: str, tmp_path: Path) -> None:
    """Rows with text in the first column only are data if few rows have more cells."""
    data = [[FIRSTS[kind](n), "x" * (n % 9 == 4), "", ""] for n in range(24)]
    untouched(tmp_path, [NAMES, *data])
    notes = ["late, see 3 and 4", "Seen 2 of 3", "a b", "at 10:15 and 11:20"]
    untouched(tmp_path, [NAMES, *([notes[n % 4], *row[1:]] for n, row in enumerate(data))])
    untouched(tmp_path, [["id", "note"], *([row[0], row[1]] for row in data)])


def test_what_every_eighth_row_is_like_is_no_remark(tmp_path: Path) -> None:
    data = [[FIRSTS["codes"](n), *row[1:]] for n, row in enumerate(SALES)]
    items = ("Gift card (blue)", "Wrapping in paper", "Shipping by post")
    rows = [[item, "", "", ""] for item in items]
    untouched(tmp_path, [NAMES, *data[:8], rows[0], *data[8:16], rows[1], *data[16:], rows[2]])


def test_what_repeats_below_codes_is_a_level(tmp_path: Path) -> None:
    data = [[f"P{n:03}", *SALES[n % 24][1:]] for n in range(100)]
    rows, lines = with_rows(data, *((place, ["Gift card"]) for place in (10, 30, 50, 70)))
    untouched(tmp_path, rows)
    # Up to three rows with text in the first cell only are remarks, as are lines with too few
    # cells.
    rows, lines = with_rows(data, *((place, ["Gift card"]) for place in (10, 30, 50)))
    check(tmp_path, rows, NAMES, data, lines, "12, 33, 54 (3 remarks)", ways=1)
    # Page footers contain numbers of their own.
    marks = ((10 * page, [f"Strana {page} z 9"]) for page in range(1, 10))
    rows, lines = with_rows(data, *marks)
    check(tmp_path, rows, NAMES, data, lines, "(9 remarks)", ways=1)
    short = [r for n, row in enumerate(data) for r in (*[["In kEUR"]] * (n % 20 == 9), row)]
    path = put(tmp_path / "short.csv", as_text([NAMES, *short], padded=False))
    assert cells_of(read_table(path)) == data


@pytest.mark.parametrize(("first", "is_remark"), [("1 of 30", True), ("12 of 30", False)])
def test_numbers_below_words_are_of_the_first_pages(
    first: str, is_remark: bool, tmp_path: Path
) -> None:
    data = [["Lobby Hall Bar Attic".split()[n % 4], *row[1:]] for n, row in enumerate(SALES)]
    rows, lines = with_rows(data, (8, [f"Room {first}"]))
    if is_remark:
        check(tmp_path, rows, NAMES, data, lines, "line 10 (remark)", ways=1)
    else:
        untouched(tmp_path, rows)


@pytest.mark.parametrize("kind", quick(FIRSTS, "numbers", "named dates"))
@pytest.mark.parametrize(
    "remark",
    ["Page 1 of 3", "Seite 2 von 3", "Subtotal", "Zwischensumme", "Source: us", "Total: 40, 3"],
)
def test_remarks_with_too_few_cells_are_left_out(kind: str, remark: str, tmp_path: Path) -> None:
    """Remarks are left out wherever they stand, with or without separators behind them."""
    data = [[FIRSTS[kind](n), *row[1:]] for n, row in enumerate(SALES)]
    path = tmp_path / "t.csv"
    for places, what in (((0,), "remark"), ((9, 17), "2 remarks"), ((24,), "footer")):
        rows = [NAMES]
        for n, row in enumerate([*data, []]):
            rows += [[remark]] * (n in places) + [row] * bool(row)
        path.write_text(as_text(rows, padded=False))
        table = read_both_ways(path, 7)
        assert cells_of(table) == data and f"({what})" in table.source.notes[0]
        assert table.lines is not None
        assert all(rows[line - 1] == data[n] for n, line in enumerate(table.lines))


def test_of_too_many_short_lines_the_first_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "_MOST_REMARKS", 3)
    path = put(tmp_path / "t.csv", as_text([NAMES, *SALES, *[["short"]] * 5, *SALES], padded=False))
    with pytest.raises(InputError, match=f"line {len(SALES) + 2} has 1 cell"):
        read_table(path)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize(
    "legend", ["P : preliminary", "(r) Revised", "c = confidential", "[x] none"]
)
def test_what_a_letter_stands_for_ends_a_table(legend: str, padded: bool, tmp_path: Path) -> None:
    data = [[f"{1990 + n}", *row[1:]] for n, row in enumerate(SALES)]
    path = put(tmp_path / "t.csv", as_text([NAMES, *data, [legend]], padded=padded))
    table = read_both_ways(path, 7)
    assert cells_of(table) == data and "(footer)" in table.source.notes[0]
    # If the first column holds words, not years, the legend may be one of them.
    untouched(tmp_path, [NAMES, *SALES, [legend, *[""] * (len(NAMES) - 1)]])


@pytest.mark.parametrize("width", [3, 4, 5])
def test_totals_with_too_few_cells_are_left_out(width: int, tmp_path: Path) -> None:
    """A correct total in only the first columns is left out; a wrong total raises an error."""
    data = [[f"P{n:03}", *(f"{7 * n % 11 + k}" for k in range(1, width))] for n in range(24)]
    names, path = ["Part", "A", "B", "C", "D"][:width], tmp_path / "t.csv"
    for n, word in zip(range(2, width), ("Total", "Endsaldo", "Closing balance"), strict=False):
        total = [word, *(str(sum(int(row[k]) for row in data)) for k in range(1, n))]
        path.write_text(as_text([names, *data, total], padded=False))
        table = read_both_ways(path, 7)
        assert cells_of(table) == data and "line 26 (total)" in table.source.notes[0]
        path.write_text(as_text([names, *data, [*total[:-1], "1"]], padded=False))
        with pytest.raises(InputError, match=f"line 26 has {n} cells where line 1 has {width}"):
            read_table(path)


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("names", ["Ann"]), ("names", ["Rome"]), ("names", ["Zo\u00eb van den Berg"]),
        ("names", ["Total"]), ("numbers", ["124"]), ("numbers", ["unknown"]),
        ("dates", ["25.03.2024"]), ("codes", ["P024"]), ("codes", ["P024", "m1"]),
        ("codes", ["", "m1"]), ("codes", ["Page 1 of 3", "m1", "40"]),
        ("named dates", ["25 avril 2024"]),
    ],
)  # fmt: skip
def test_rows_with_too_few_cells_are_errors(kind: str, row: list[str], tmp_path: Path) -> None:
    data = [[FIRSTS[kind](n), *row[1:]] for n, row in enumerate(SALES)]
    path = tmp_path / "t.csv"
    for place in (0, 9, 24):
        path.write_text(as_text([NAMES, *data[:place], row, *data[place:]], padded=False))
        cells = "cell" if len(row) == 1 else "cells"
        wrong = f"line {place + 2} has {len(row)} {cells} where line 1 has 4"
        with pytest.raises(InputError, match=wrong):
            read_table(path)
        remarked = [NAMES, *data[:place], row, ["Page 1 of 3"], *data[place:], ["Source: us"]]
        path.write_text(as_text(remarked, padded=False))
        for result in (
            read_table(path, bad_lines="skip"),
            open_table(path, bad_lines="skip", in_memory_rows=5, part_rows=5),
        ):
            frames = [table.frame for table in result.tables()]
            assert [list(r) for frame in frames for r in frame.rows()] == data
            left_out, bad, *_ = result.source.notes
            foot = "27-28 (footer)" if place == 24 else f"{place + 3} (remark), 28 (footer)"
            assert foot in left_out
            assert bad == f"1 bad line was left out: {wrong}."
            assert result.source.n_rows == 24


def test_the_rest_of_a_text_without_quotes_is_no_remark(tmp_path: Path) -> None:
    """The second line of a text without quotes is an error, not a remark that may be left out."""
    data = [[f"P{n:03}", str(n), "arrived in time"] for n in range(24)]
    path = tmp_path / "t.csv"
    path.write_text(as_text([NAMES[:3], *data[:9], ["left at the door"], *data[9:]], padded=False))
    with pytest.raises(InputError, match="line 11 has 1 cell where line 1 has 3"):
        read_table(path)


def test_rows_too_short_for_total_and_blank_line(tmp_path: Path) -> None:
    """Programs often omit empty cells at the end of a row."""
    names = ["Region", "Orders", "Revenue", "By", "Note"]
    data = [[row[0], row[2], row[3], "me", "x"] for row in SALES]
    sums = [str(sum(int(row[1]) for row in data)), f"{sum(float(row[2]) for row in data):.2f}"]
    path = tmp_path / "t.csv"
    end = f"Total,{sums[0]},{sums[1]}\n"
    blank = as_text([names, *data]).replace("\n", "\n,,\n", 1)
    path.write_text(f"{blank},{end}")
    with pytest.raises(InputError, match="line 27 has 4 cells"):
        read_table(path)
    wide = [[*row, "", ""] for row in [names, *data]]
    wide[0][5:] = ["u", "v"]
    path.write_text(as_text(wide).replace("\n", "\n,,\n", 1) + end)
    table = read_both_ways(path, 7)
    assert cells_of(table) == wide[1:]
    assert "lines 2 (blank line), 27 (total)" in table.source.notes[0]


def test_subtotals_of_a_drawn_list_have_a_star(tmp_path: Path) -> None:
    rule = "-" * 30
    body = [f"| {row[0]} | {row[2]} | {row[3]} |" for row in SALES]
    star = [rule, "|* Summe {} | 1234.56 |", rule]
    rows = [rule, "| Region | Orders | Revenue |", rule, *body[:12], *star, *body[12:], *star]
    path = put(tmp_path / "list.txt", "\n".join(rows) + "\n")
    table = read_both_ways(path, 7)
    assert cells_of(table) == [[row[0], row[2], row[3]] for row in SALES]
    assert "17, 32 (2 totals)" in table.source.notes[0]


def test_runs_of_blank_lines_are_reported_and_stored_as_runs(tmp_path: Path) -> None:
    blank = [[""] * 4]
    given = [NAMES, *SALES[:10], *blank * 3, *SALES[10:15], *blank, *SALES[15:], *blank * 90_000]
    lines = [*range(2, 12), *range(15, 20), *range(21, 30)]
    note = "lines 12-14, 20, 30-90029 (90,004 blank lines)"
    check(tmp_path, given, NAMES, SALES, lines, note, ways=1)
    found = read_table(tmp_path / "t0.csv").source.left_out
    assert found == (("blank line", ((12, 14), (20, 20), (30, 90_029))),)


def test_all_lines_left_out_are_listed(tmp_path: Path) -> None:
    rows, lines = with_rows(SALES, *((place, [f"Page {place} of 24"]) for place in range(2, 22)))
    check(tmp_path, rows, NAMES, SALES, lines, "lines 4, 6, 8, 10, 12 and 15 more", ways=1)
    found = read_table(tmp_path / "t0.csv").source.left_out
    assert found == (("remark", tuple((n, n) for n in range(4, 44, 2))),)


def pivot(word: str = "Total {}", text: str = "") -> tuple[Cells, list[int]]:
    """Return a pivot table with its totals, and the line numbers of its data."""
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
    totals = "lines 8, 15, 22, 29-30 (5 totals)"
    labels = 'in "Region", into 20 empty cells'
    sheet = word == "Total {}"
    check(tmp_path, rows, NAMES, SALES, lines, totals, labels, sheet=sheet)
    # The file is separated by semicolons. Its numbers have decimal commas at first, then decimal
    # points, then points and one digit fewer (43.5 in place of 43.50).
    path = tmp_path / "c.csv"
    for old, new in ((".", ","), ("", ""), (".50", ".5")):
        path.write_text(as_text([[c.replace(old, new) for c in row] for row in rows], cut=";"))
        assert read_both_ways(path, 7).frame.height == 24


@pytest.mark.parametrize("line", [8, 22])
def test_a_total_that_does_not_add_up_is_left_out_beside_others(line: int, tmp_path: Path) -> None:
    rows, lines = pivot()
    rows[line - 1][2] = "9999"
    expected = f"line{'s' * (line > 8)} ", f"{line} (unmatched total)", "(4 totals)"
    check(tmp_path, rows, NAMES, SALES, lines, *expected[1:])
    # With a text in the second column, too, all five lines with totals are data: like any other
    # row, each may belong to a customer whose name contains "Total".
    rows, lines = pivot(text="m9")
    rows[line - 1][2] = "9999"
    table = read_table(path_of(tmp_path, rows))
    assert table.frame.height == 29 and "unmatched" not in str(table.source.notes)


GROSS = ["9999999", "-99", "x?#", "1e9"]


@pytest.mark.parametrize("place", quick([0, 1, 22, 23], 0, 23))
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
        ["", "(H)", "[c]", "a"],  # two flags, and a value of Kind ("a")
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
        ["Peru", "", "", ""],  # a region without numbers, not a footer
        ["Total", "m1", "10", "30.00"],  # may be a row of the oil company "Total"
        ["Total", "", "10", "30.00"],  # not the sum
        ["Total", "", "", "30.00"],
        ["Sum 41", "", "9", ""],
        ["Total Wine & More", "m1", "2430", "1682.00"],  # matches the sums by chance
        ["Total", "", "2430", "1"],  # matches one of the two sums by chance
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
    """A customer may be named "Total" and happen to buy as much as all customers above."""
    rows = [["Ann", "1", "2"], ["Bob", "2", "2"], ["Total", "3", "4"], ["Cem", "4", "7"]]
    untouched(tmp_path, [["Name", "Orders", "Items"], *rows])
    untouched(tmp_path, [["Name", "Orders"], *(row[:2] for row in rows)])
    # "Grand total" is the sum of all four rows, so the row "Total" is a customer and not a sum.
    untouched(tmp_path, [["Name", "Orders", "Items"], *rows, ["Grand total", "10", "15"]])


@pytest.mark.parametrize("names", [["Account", "Amount"], ["Account", "Kind", "Amount", "Rate"]])
def test_a_total_of_one_column_is_left_out(names: list[str], tmp_path: Path) -> None:
    wide, lines = len(names) > 2, [*range(2, 14)]
    amounts = [f"{n * n * 1.25 + 3:.2f}" for n in range(12)]
    rows = [
        [f"a{n}", *["xy"[n % 2]] * wide, one, *[f"{n % 5}"] * wide] for n, one in enumerate(amounts)
    ]
    total = f"{sum(map(float, amounts)):.2f}"
    for label in ("Total", "Grand total:", "Summe", "Totale"):
        end = [label, *[""] * wide, total, *[""] * wide]
        check(tmp_path, [names, *rows, end], names, rows, lines, "line 14 (total)", sheet=True)
    for label, number in (("Total SA", total), ("Total", "99.00"), ("a12", total)):
        untouched(tmp_path, [names, *rows, [label, *[""] * wide, number, *[""] * wide]])


def test_negative_totals_and_numbers_that_cancel(tmp_path: Path) -> None:
    rows = [[f"a{n}", str(-n - 1), f"{n * 0.1 - 9:.1f}"] for n in range(8)]
    sums = [str(sum(int(r[1]) for r in rows)), f"{sum(float(r[2]) for r in rows):.1f}"]
    names = ["Account", "Debit", "Balance"]
    end = [["Total", *sums]]
    lines = [*range(2, 10)]
    check(tmp_path, [names, *rows, *end], names, rows, lines, "line 10 (total)", sheet=True)
    # If all numbers are 0, correct sums are no evidence that the last row is a total.
    rows = [[f"a{n}", "0", "0"] for n in range(8)]
    untouched(tmp_path, [names, *rows, ["Total", "0", "0"]])


def test_tables_of_all_kinds_stay_as_they_are(tmp_path: Path) -> None:
    people = [["ada", "london", "x"], ["bob", "paris", "y"], ["cy", "rome", "x"]]
    tables: list[Cells] = [
        [["name", "city", "kind"], *people],  # three rows of text only
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
        [["name", "m", "n"], ["ada", "4", ""], ["bob", "", ""], *people[:1], ["cy", "", ""]],
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
    # If rows of data follow "Source: us", it is no sign of a file cut short but a remark.
    path.write_text(as_text([NAMES, *SALES]) + "Source: us\n" + as_text(SALES))
    table = read_table(path)
    assert table.frame.height == 48 and "line 26 (remark)" in table.source.notes[0]


def test_an_end_of_line_inside_a_cell_is_no_blank_line_above_a_foot(tmp_path: Path) -> None:
    rows = [NAMES, *SALES, ["North", "m6\nand m7", "9", "8.50"], ["North", "m8"], ["Source: us"]]
    path = put(tmp_path / "t.csv", as_text(rows).replace("m6\nand m7", '"m6\nand m7"'))
    table = read_both_ways(path, 7)
    assert cells_of(table)[-1] == ["North", "m8", "", ""]
    assert "line 29 (footer)" in table.source.notes[0]


def test_one_option_turns_recognition_off(tmp_path: Path) -> None:
    rows, _ = pivot()
    given = [["A title"], NAMES, *rows[1:9], NAMES, *rows[9:]]
    path = put(tmp_path / "t.csv", as_text(given))
    for file in (path, as_sheet(tmp_path / "t.xlsx", given)):
        table = read_table(file, layout="off")
        assert table.frame.height == len(given) - 1 and table.frame.columns[0] == "A title"
        opened = read_table(file)
        assert opened.frame.height == 24 and table.source.fingerprint != opened.source.fingerprint
    # Lines skipped by hand are not a title; the layout below them is still detected.
    assert cells_of(read_table(path, skip_rows=1)) == SALES
    assert read_table(path, skip_rows=1, layout="off").frame.height == len(given) - 2
    parted = open_table(path, layout="off", in_memory_rows=5, part_rows=5)
    assert parted.source.n_rows == len(given) - 1


@pytest.mark.parametrize("label", ["*", "**", "Total", "Summe:"])
def test_a_total_that_ends_a_table_may_have_a_star_alone(label: str, tmp_path: Path) -> None:
    rows = [f"K{k % 7},{k}.50,{2 * k}.25" for k in range(1, 31)]
    text = "\n".join(["Konto,Betrag,Steuer", *rows, f"{label},480.00,937.50"])
    (tmp_path / "list.csv").write_text(text, encoding="utf-8")
    table = read_table(tmp_path / "list.csv")
    assert table.source.n_rows == 30
    assert [kind for kind, _ in table.source.left_out] == ["total"]
