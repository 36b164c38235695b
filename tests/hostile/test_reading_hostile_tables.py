"""Any table file is read as expected or refused in one line."""

import gzip
import json
import random
import sqlite3
import tracemalloc
import zipfile
from contextlib import closing
from functools import partial
from pathlib import Path

import openpyxl
import polars as pl
import pytest

from kpca_apps.errors import InputError, KpcaError, MemoryLimitError
from kpca_apps.system import limits
from kpca_apps.tables import input_file
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.read import delimited
from kpca_apps.tables.read import json as json_reader
from tests.hostile.tables import BROKEN, CELLS, NAMES, SURVIVABLE, bomb, hostile_csv
from tests.tables.whole_and_parts import put, read_both_ways


@pytest.mark.parametrize("name", SURVIVABLE)
def test_survivable_files_are_read(name: str, tmp_path: Path) -> None:
    data, shape = SURVIVABLE[name]
    table = read_both_ways(put(tmp_path / f"{name}.csv", data), 1)
    assert table.frame.shape == shape
    assert (table.source.n_rows, table.source.n_columns) == shape
    assert table.lines is not None and table.lines.shape == (shape[0],)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    data, words = BROKEN[name]
    path = put(tmp_path / f"{name}.csv", data)
    for open_it in (read_table, partial(open_table, in_memory_rows=0, part_rows=1)):
        with pytest.raises(InputError) as caught:
            open_it(path)
        message = str(caught.value)
        assert words in message and f"{name}.csv" in message and message.isprintable()
        assert caught.value.exit_code == 3


def test_hostile_names_and_cells_pass_unharmed(tmp_path: Path) -> None:
    frame = read_table(put(tmp_path / "hostile.csv", hostile_csv(24))).frame
    assert tuple(frame.columns) == (*(name.strip() for name in NAMES), "cells")
    assert tuple(frame["cells"].unique(maintain_order=True)) == CELLS


def test_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "bomb.csv.gz", bomb(40_000_000))
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(limits, "available_memory", lambda: 20_000_000)
    with pytest.raises(MemoryLimitError, match=r"bomb\.csv\.gz: unpacks to more than") as caught:
        read_table(path)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("quote", [b"", b'1"x,2\n'], ids=["regular", "stray_quote"])
def test_many_cells_in_few_bytes_are_refused(
    quote: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"a,b\n" + b"1,\n" * 500_000
    path = put(tmp_path / "cells.csv", data + quote)
    # Ten times the file's size suffices for its text, but not for offsets and objects.
    monkeypatch.setattr(limits, "available_memory", lambda: 10 * len(data))
    with pytest.raises(MemoryLimitError):
        read_table(path)


@pytest.mark.parametrize("quote", [b"", b'1"x,2\n'], ids=["regular", "stray_quote"])
def test_many_lines_of_nothing_take_no_memory(
    quote: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "lines.csv", b"a,b\n1,2\n" + b"\n" * 999_999 + quote)
    monkeypatch.setattr(limits, "available_memory", lambda: 10_000)
    assert read_table(path).frame.height == (2 if quote else 1)


@pytest.fixture(params=[0, 100], ids=["in_parts", "whole"])
def few_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Lower the limits; return the number of rows that are read at once."""
    monkeypatch.setattr(limits, "MOST_COLUMNS", 50)
    monkeypatch.setattr(limits, "LONGEST_ROW", 1000)
    monkeypatch.setattr(input_file, "CHUNK", 256)
    monkeypatch.setattr(delimited, "_WAIT", 512)
    rows: int = request.param
    return rows


WIDE = b",".join(b"x%d" % k for k in range(51)) + b"\n" + b",".join([b"1"] * 51) + b"\n"
REFUSED: dict[str, tuple[bytes, str]] = {
    "columns": (WIDE, "line 1 has 51 columns"),
    "columns_below_a_blank_line": (b"\n" + WIDE, "line 2 has 51 columns"),
    "columns_with_a_stray_quote": (b'1"' + WIDE, "line 1 has 51 columns"),
    "columns_with_quoted_names": (b'"a,b",' + WIDE, "line 1 has 52 columns"),
    "equal_names": (b"x," * 50 + b"x\n" + b"1," * 50 + b"1\n", "line 1 has 51 columns"),
    "commas": (b"a,b\n1,2\n" + b"," * 1200 + b"\n3,4\n", "row on line 3 is longer"),
    "long_cell": (b"a,b\n1,2\n3," + b"x" * 1200 + b"\n5,6\n", "row on line 3 is longer"),
    "long_quoted_cell": (b'a,b\n1,2\n3,"' + b"x" * 1200 + b'"\n', "row on line 3 is longer"),
    "open_quote": (b'a,b\n1,2\n3,"' + b"x" * 3000, "row on line 3 is longer"),
    "keys": (b"".join(b'{"k%d": 1}\n' % k for k in range(60)), "line 51 has 51 columns"),
    "keys_of_one_line": (
        b'{"a": 1}\n{' + b", ".join(b'"k%d": 1' % k for k in range(60)) + b"}\n",
        "line 2 has 61 columns",
    ),
    "long_record": (b'{"a": 1}\n{"a": "' + b"x" * 1200 + b'"}\n', "row on line 2 is longer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_beyond_the_limits_are_refused_by_line(
    name: str, few_bytes: int, tmp_path: Path
) -> None:
    data, words = REFUSED[name]
    path = put(tmp_path / "table.csv", data)
    with pytest.raises(InputError, match=words):
        open_table(path, in_memory_rows=few_bytes)
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(data))
    with pytest.raises(InputError, match=words):
        open_table(path.with_suffix(".csv.gz"), in_memory_rows=few_bytes)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_files_within_the_limits_are_read(
    end: bytes, encoding: str, few_bytes: int, tmp_path: Path
) -> None:
    header = ",".join(f"x{k}" for k in range(50))
    rows = [",".join(["1"] * 49 + ['"' + "a,\n" * 100 + '"']) for _ in range(20)]
    text = "\n".join([header, *rows]).replace("\n", end.decode())
    path = put(tmp_path / "table.csv", text.encode(encoding))
    assert open_table(path, in_memory_rows=few_bytes).source.n_columns == 50


def test_an_encoding_with_another_end_of_lines_is_read(few_bytes: int, tmp_path: Path) -> None:
    path = put(tmp_path / "table.csv", ("a,b\n" + "1,2\n" * 500).encode("cp037"))
    assert b"\n" not in path.read_bytes()
    assert read_table(path, encoding="cp037").frame.shape == (500, 2)
    assert open_table(path, encoding="cp037", in_memory_rows=few_bytes).source.n_rows == 500


def test_columns_of_a_typed_file_are_bounded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_COLUMNS", 3)
    path = tmp_path / "table.parquet"
    pl.DataFrame({f"x{k}": [1] for k in range(4)}).write_parquet(path)
    with pytest.raises(InputError, match="the table has 4 columns, and no more than 3") as caught:
        open_table(path)
    assert "write a file of those that matter" in str(caught.value)
    with pytest.raises(InputError, match="4 columns"):
        read_table(path)


def write_workbook(path: Path) -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for row in (("a", "b"), *((k, k * k) for k in range(200))):
        sheet.append(row)
    workbook.save(path)


def write_sheet(path: Path, rows: bytes) -> None:
    """Write a workbook with one sheet of these rows."""
    write_workbook(path)
    name = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    sheet = parts[name]
    before, after = sheet.split(b"<sheetData>")[0], sheet.split(b"</sheetData>")[1]
    parts[name] = before + b"<sheetData>" + rows + b"</sheetData>" + after
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, data in parts.items():
            archive.writestr(part, data)


HEADER = b'<row r="1"><c r="A1"><v>1</v></c><c r="B1"><v>2</v></c></row>'


@pytest.mark.parametrize(
    "place", ["xfd1048576", "ZZ10000000", "ZZZZZZZ2", "Z" * 40 + "2", "B" + "9" * 40]
)
def test_a_cell_that_no_sheet_has_room_for_ends_in_one_line(place: str, tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    write_sheet(path, HEADER + b'<row><c r="%b"><v>1</v></c></row>' % place.encode())
    with pytest.raises(
        KpcaError, match=r"table\.xlsx: .*(columns|is far from|not a readable Excel)"
    ):
        read_table(path)


OFFICE = b"http://schemas.openxmlformats.org/%b/2006/%b"


def shared(path: Path, strings: bytes, count: int = 1) -> None:
    """Write a workbook whose cells refer to a list of shared strings, with a claimed count."""
    row = b'<row r="%d"><c r="A%d" t="s"><v>0</v></c><c r="B%d"><v>2</v></c></row>'
    write_sheet(path, HEADER + b"".join(row % (k, k, k) for k in range(2, 8)))
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    name, texts = "xl/sharedStrings.xml", b'<sst xmlns="%b" count="1" uniqueCount="%d">%b</sst>'
    parts[name] = texts % (OFFICE % (b"spreadsheetml", b"main"), count, strings)
    relations, end = "xl/_rels/workbook.xml.rels", b"</Relationships>"
    if b"sharedStrings" not in parts[relations]:
        kind = OFFICE % (b"officeDocument", b"relationships/sharedStrings")
        link = b'<Relationship Id="rS" Type="%b" Target="sharedStrings.xml"/>' % kind
        parts[relations] = parts[relations].replace(end, link + end)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, data in parts.items():
            archive.writestr(part, data)


def test_a_count_of_texts_that_no_memory_holds_ends_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    shared(path, b"<si><t>a</t></si>", 9_999_999_999_962)
    try:
        table = read_table(path)  # fastexcel before 0.20.2 ignores the count
    except InputError as refused:
        assert "table.xlsx: is damaged, or takes more than" in str(refused)
    else:
        assert table.frame.rows() == [("a", 2)] * 6


@pytest.mark.parametrize("stored", ["TABLE", "VIEW"])
@pytest.mark.parametrize("cell", ["hex(zeroblob({}))", "zeroblob({})"])
def test_a_cell_of_a_database_that_fills_the_memory_is_refused(
    stored: str, cell: str, tmp_path: Path
) -> None:
    n_bytes = 20_000_000 if stored == "TABLE" else 499_000_000
    with closing(sqlite3.connect(tmp_path / "a.db")) as made, made:
        made.execute(f"CREATE {stored} t AS SELECT 1 AS x, {cell.format(n_bytes)} AS a")
    with pytest.raises(InputError, match=r"SQLite returns a cell of more than 16 MB"):
        read_table(f"sqlite:///{tmp_path / 'a.db'}")


@pytest.mark.parametrize("length", [40_000, 2_000_000])
def test_a_cell_longer_than_any_program_writes_is_refused(length: int, tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    shared(path, b"<si><t>%b</t></si>" % (b"x" * length))
    with pytest.raises(InputError, match=r"a cell of (40,000|2,000,000) characters"):
        read_table(path)


def test_an_old_workbook_of_noise_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "table.xls"
    noise = random.Random(0)
    for size in (600, 5_000, 100_000):
        path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + noise.randbytes(size))
        with pytest.raises(InputError) as refused:
            read_table(path)
        assert len(str(refused.value).splitlines()) == 1


def test_nothing_is_imported_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "polars.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    write_workbook(tmp_path / "table.xlsx")
    assert read_table("table.xlsx").frame.shape == (200, 2)


def test_memory_grows_with_what_is_held_and_not_with_rows_times_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "keys.jsonl", b"".join(b'{"k%d": 1}\n' % k for k in range(3000)))
    monkeypatch.setattr(limits, "MOST_COLUMNS", 2999)
    monkeypatch.setattr(input_file, "CHUNK", 1 << 16)
    tracemalloc.start()
    with pytest.raises(InputError, match="line 3000"):
        read_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000**2


def test_rows_with_a_key_each_of_their_own_are_refused_on_any_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "keys.jsonl", b"".join(b'{"k%d": 1}\n' % k for k in range(9000)))
    monkeypatch.setattr(limits, "available_memory", lambda: 1 << 40)
    # 8,193 rows with different keys make 8193 * 8192 empty cells, just above the limit of 2^26.
    with pytest.raises(InputError, match=r"line 8193: 8,193 rows of 8,193 different keys .* split"):
        read_table(path)


def test_cells_with_values_are_no_empty_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_reader, "MOST_EMPTY_CELLS", 3 * 49)
    path = tmp_path / "rows.jsonl"
    full = json.dumps({f"k{k}": k for k in range(50)}) + "\n"
    path.write_text(200 * full + 3 * '{"k0": 1}\n', encoding="utf-8")
    assert read_table(path).frame.shape == (203, 50)
    path.write_text(200 * full + 4 * '{"k0": 1}\n', encoding="utf-8")
    with pytest.raises(InputError, match="line 204"):
        read_table(path)


def test_a_long_text_in_every_row_is_refused_however_small_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "texts.parquet"
    pl.DataFrame({"a": range(2000), "t": ["x" * 100_000, "y"] * 1000}).write_parquet(path)
    assert path.stat().st_size < 1_000_000
    monkeypatch.setattr(limits, "available_memory", lambda: 400_000_000)
    with pytest.raises(MemoryLimitError, match=r"0\.7 GB"):
        read_table(path)


@pytest.mark.release
def test_more_text_than_anyone_screens_is_refused_on_any_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "texts.parquet"
    pl.select(a=pl.int_range(12_000), t=pl.repeat("x" * 100_000, 12_000)).write_parquet(path)
    monkeypatch.setattr(limits, "available_memory", lambda: 10**12)
    with pytest.raises(MemoryLimitError, match=r"text cells unpack to 1\.1 GB"):
        read_table(path)


def test_a_narrow_table_of_very_many_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    pl.select(x=pl.repeat(0, 1_000_000, dtype=pl.Int8)).write_parquet(path)
    # 64 bytes a cell suffice for the cells, but not for each row's overhead.
    monkeypatch.setattr(limits, "available_memory", lambda: 100_000_000)
    with pytest.raises(MemoryLimitError):
        read_table(path)


@pytest.mark.parametrize("file", ["number_and_spaces", "spaces_between_numbers", "names_alike"])
def test_nothing_takes_time_that_grows_with_the_square_of_a_cell(file: str, tmp_path: Path) -> None:
    # Each file once took minutes, so a hang here is a regression.
    n = 120_000
    data = {
        "number_and_spaces": b"1" + b" " * n + b"x,b\n1,2\n",
        "spaces_between_numbers": b"a b\n1 2\n3" + b" " * n + b"4\n",
        "names_alike": b",".join([b"x"] * 20_000) + b"\n" + b",".join([b"1"] * 20_000),
    }[file]
    table = read_table(put(tmp_path / "table.csv", data))
    assert table.frame.width in (2, 20_000) and len(table.source.notes) < 30


def test_message_about_a_hostile_file_name_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(KpcaError) as caught:
        read_table(tmp_path / "no\nsuch\x1b[31m\u202efile.csv")
    assert str(caught.value).isprintable()
