"""Several files as one table: a list, a folder, a pattern; rows keep their file and line."""

import bz2
import gzip
import hashlib
import lzma
import sys
from pathlib import Path

import polars as pl
import pytest

from kpca_apps.errors import InputError
from kpca_apps.novelty.redact import redact_source
from kpca_apps.tables.opening import expand, open_table, read_table
from kpca_apps.tables.table import PartedTable, Table

CUT_GZIP = gzip.compress(b"id,v\n1,2\n", mtime=0)[:-9]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a folder of three differently formatted files with one, two and three rows."""
    home = tmp_path / "data"
    home.mkdir()
    (home / "a.csv").write_text("id,v\na1,1\n")
    (home / "b.csv").write_text("v;id\n1;b1\n\n2;b2\n")
    (home / "c.csv.gz").write_bytes(gzip.compress(b"Sizes of May\n\nid,v\nc1,1\nc2,2\nc3,3\n"))
    return home


ROWS = [
    ("a1", "1", "a.csv"),
    ("b1", "1", "b.csv"),
    ("b2", "2", "b.csv"),
    *((f"c{n}", f"{n}", "c.csv.gz") for n in (1, 2, 3)),
]
LINES = [2, 2, 4, 2, 3, 4]


def whole(table: Table | PartedTable) -> tuple[list[tuple[object, ...]], list[int]]:
    tables = [p.read() for p in table.parts] if isinstance(table, PartedTable) else [table]
    rows = [row for table in tables for row in table.frame.rows()]
    return rows, [int(n) for table in tables if table.lines is not None for n in table.lines]


@pytest.mark.parametrize("rows", [1e9, 4, 0])
def test_columns_go_by_name_and_rows_by_file_and_line(folder: Path, rows: float) -> None:
    (folder / "c.csv.gz").write_bytes(gzip.compress(b"id,v\nc1,1\nc2,2\nc3,3\n"))
    table = open_table(folder, in_memory_rows=rows, part_rows=2)
    assert isinstance(table, PartedTable) == (rows < 6) and whole(table) == (ROWS, LINES)
    assert table.source.name == "data (3 files)" and table.source.file_column == "file"
    assert table.source.n_rows == 6 and table.source.format == "csv"
    listing = "".join(
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in ("a.csv", "b.csv", "c.csv.gz")
    )
    assert table.source.sha256 == hashlib.sha256(listing.encode()).hexdigest()
    assert table.source.notes == (
        'Read from 3 files, named in the column "file".',
        "b.csv: Cells are separated by the semicolon (detected).",
        "c.csv.gz: Unpacked from gzip.",
    )


def test_a_list_a_folder_and_a_pattern_are_one_table(folder: Path) -> None:
    (folder / ".hidden.csv").write_text("not,this\n")
    (folder / "sub").mkdir()
    named = [folder / name for name in ("a.csv", "b.csv", "c.csv.gz")]
    assert expand(folder) == expand(str(folder / "*.csv*")) == expand(named) == named
    assert expand([folder / "b.csv", str(folder / "a*")]) == [folder / "b.csv", folder / "a.csv"]
    assert expand(str(folder.parent / "**" / "a.csv")) == [folder / "a.csv"]
    tables = [open_table(place) for place in (folder, str(folder / "*.csv*"), named)]
    assert len({table.source.sha256 for table in tables}) == 1


def test_no_table_of_a_folder_is_lost_for_its_suffix(tmp_path: Path) -> None:
    for name in ("a.csv", "b.dat", "c.TXT"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    assert len(whole(open_table(tmp_path))[0]) == 3


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "sizes[1].csv"
    path.write_text("a,b\n1,2\n")
    assert expand(path) == [path] and "file" not in read_table(path).frame.columns


def test_names_of_files_do_not_take_those_of_columns(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"file,file_,line\n1,2,{name}\n")
    table = open_table(tmp_path)
    assert table.source.file_column == "file__"
    assert whole(table)[0] == [("1", "2", "a", "a.csv"), ("1", "2", "b", "b.csv")]


def test_files_of_the_same_name_are_distinguished_by_their_folders(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.csv").write_text(f"v,w\n1,{name}\n")
    rows, _ = whole(open_table(str(tmp_path / "*" / "t.csv")))
    assert [row[-1] for row in rows] == [str(Path("a", "t.csv")), str(Path("b", "t.csv"))]


def test_identical_files_are_reported(tmp_path: Path) -> None:
    for name in ("a", "b", "copy of a"):
        (tmp_path / f"{name}.csv").write_text(f"v,w\n1,{name[-1]}\n")
    assert [note for note in open_table(tmp_path).source.notes if "same bytes" in note] == [
        "copy of a.csv holds the same bytes as a.csv. Its rows are counted twice; leave one out if "
        "it is a copy."
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("b.csv", b"id,w\n1,2\n", r'b\.csv: has no column "v", which .*a\.csv has'),
        ("b.csv", b"id,v,w\n1,2,3\n", r'b\.csv: its column "w" is not in .*a\.csv'),
        ("b.csv", b"", r"b\.csv: the file is empty"),
        ("b.csv", b"id,v\n", r"b\.csv: line 1 is a header without rows"),
        ("b.csv", b"id,v\n1,2\n1\n", r"b\.csv: line 3 has 1 cell"),
        ("b.csv", b"id,v\n1,\0\n", r"b\.csv: line 2, byte 8"),
        ("b.jsonl", b'{"id": "1", "v": "2"}\n', r"b\.jsonl: is jsonl and .*a\.csv is csv"),
        ("b.csv.gz", CUT_GZIP, r"b\.csv\.gz: the gzip data are damaged"),
    ],
)
@pytest.mark.parametrize("rows", [1e9, 0])
def test_the_file_that_does_not_fit_is_named(
    tmp_path: Path, name: str, text: bytes, message: str, rows: float
) -> None:
    (tmp_path / "a.csv").write_text("id,v\n1,2\n")
    (tmp_path / name).write_bytes(text)
    with pytest.raises(InputError, match=message) as caught:
        open_table(tmp_path, in_memory_rows=rows)
    assert "\n" not in str(caught.value)


def test_inputs_without_files_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("same.csv").symlink_to("data/a.csv")
    for given, message in [
        ([], "no file is named"),
        (["data/a.csv", "data/../data/a.csv"], "is named twice"),
        (["data/a.csv", "same.csv"], "same.csv: is named twice"),
        (["data", "data/a.csv"], "is named twice"),
        (["data/*.csv", "data/*.csv"], "is named twice"),
        ("data/*.tsv", "no file has such a name"),
        ("nowhere/*.csv", "no file has such a name"),
        *([("data/**.csv", "data/")] if sys.version_info < (3, 13) else []),  # 3.13: as *
        ("data/*\0.csv", "no file has such a name"),
        (["data/a.csv", "-"], "standard input: is not a file"),
        (["data/a.csv", "data/z.csv"], "data/z.csv"),
    ]:
        with pytest.raises(InputError, match=message) as caught:
            open_table(given)
        assert "\n" not in str(caught.value)


def test_types_that_differ_from_file_to_file_meet(tmp_path: Path) -> None:
    pl.DataFrame({"n": [1], "m": [1], "e": [None]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"n": [2.5], "m": ["x"], "e": ["y"]}).write_parquet(tmp_path / "b.parquet")
    rows, lines = whole(open_table(str(tmp_path / "*.parquet")))
    assert rows == [(1.0, "1", None, "a.parquet"), (2.5, "x", "y", "b.parquet")] and not lines


@pytest.mark.release
@pytest.mark.parametrize(
    ("suffix", "name", "pack"),
    [(".bz2", "bzip2", bz2.compress), (".xz", "xz", lzma.compress), (".gz", "gzip", gzip.compress)],
)
@pytest.mark.parametrize("n_bytes", [1 << 20, (1 << 20) + 1, 1 << 21])
def test_packed_texts_are_read_to_their_end(
    tmp_path: Path, suffix: str, name: str, pack: object, n_bytes: int
) -> None:
    """No text is lost if a decompressed chunk ends where the text ends or within a character."""
    assert callable(pack)
    text = b"v,w\n" + b"\xc3\xa91,2\n" * (n_bytes // 6 - 2)
    text += b"1," + b"3" * (n_bytes - len(text) - 3) + b"\n"
    packed = tmp_path / f"t.csv{suffix}"
    packed.write_bytes(pack(text[:600_004]) + pack(text[600_004:]))  # two gzip members
    table = read_table(packed)
    assert table.frame.height == n_bytes // 6 - 1 and table.frame["v"].n_unique() == 2
    assert table.source.notes == (f"Unpacked from {name}.",)
    packed.write_bytes(pack(text)[:-20])
    with pytest.raises(InputError, match=f"the {name} data are damaged or cut short"):
        read_table(packed)
    packed.write_bytes(pack(pack(text)))
    with pytest.raises(InputError, match=f"packed with {name} twice"):
        read_table(packed)


def test_a_text_may_begin_as_packed_files_do(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("BZh,b\n1,2\n")
    assert read_table(path).frame.columns == ["BZh", "b"]


def test_long_integers_stay_what_they_are_beside_shorter_ones(tmp_path: Path) -> None:
    small = pl.DataFrame({"id": pl.Series([1, 2], dtype=pl.Int32)})
    large = pl.DataFrame({"id": [9_007_199_254_740_993, 9_007_199_254_740_992]})
    small.write_ipc(tmp_path / "a.arrow")
    large.write_ipc(tmp_path / "b.arrow")
    table = open_table(tmp_path)
    assert table.frame["id"].to_list() == [1, 2, *large["id"].to_list()]  # type: ignore[union-attr]
    pl.DataFrame({"id": pl.Series([2**64 - 1], dtype=pl.UInt64)}).write_ipc(tmp_path / "c.arrow")
    texts = ["1", "2", "9007199254740993", "9007199254740992", str(2**64 - 1)]
    assert open_table(tmp_path).frame["id"].to_list() == texts  # type: ignore[union-attr]


def test_what_is_true_of_several_files_is_reported_once(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.csv").write_text(f"id;v\na{number};1\nb{number};2\n")
    texts = open_table(tmp_path).source.notes
    assert texts[1:] == ("All 6 files: Cells are separated by the semicolon (detected).",)
    (tmp_path / "5.csv").write_text("id,v\na,1\n")
    texts = open_table(tmp_path).source.notes
    assert texts[1:] == ("0.csv and 4 more: Cells are separated by the semicolon (detected).",)


def test_lines_left_out_of_several_files_are_listed_behind_the_names_of_theirs(
    tmp_path: Path,
) -> None:
    for name in ("a", "b"):
        rows = "".join(f"{name}{k},{k}\n" + ",\n" * (k % 2) for k in range(20))
        (tmp_path / f"{name}.csv").write_text(f"name,x\n{rows}", encoding="utf-8")
    ((kind, lines),) = read_table(tmp_path / "a.csv").source.left_out
    found = open_table([tmp_path / "a.csv", tmp_path / "b.csv"]).source
    assert "5 more in result.json" in found.notes[1] and len(lines) == 10
    assert found.left_out == ((f"a.csv: {kind}", lines), (f"b.csv: {kind}", lines))
    # If the file column is hidden, so are the file names.
    assert redact_source(found, {"file"}).left_out == ()


def test_names_that_polars_takes_for_patterns_are_names(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"{number}.csv").write_text(f"*,^.*$,a\n{number},x,2\n3,y,4\n")
    frame = open_table(tmp_path).frame  # type: ignore[union-attr]
    assert frame.columns == ["*", "^.*$_", "a", "file"]
    assert frame["*"].to_list() == ["0", "3", "1", "3"]
    pl.DataFrame({"^(a|b)$": [1, 2]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"pattern of names: rename it"):
        open_table(tmp_path / "t.parquet")


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode elsewhere")
def test_a_name_of_a_file_that_is_no_text_is_one_as_any_other(tmp_path: Path) -> None:
    for name in ("a.csv", "b\udcff.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    frame = open_table(tmp_path).frame  # type: ignore[union-attr]
    assert frame["file"].to_list() == ["a.csv", r"b\udcff.csv"]


def test_each_file_is_read_by_its_own_formats(tmp_path: Path) -> None:
    numbers = [1234.56, 12.5, 1064.31, 987.0]
    comma = ["1.234,56 EUR", "12,5", "1.064,31-", "n/a"]
    american, german = ["12/25/2024", "12/24/2024"] * 2, ["25/12/2024", "01/12/2024"] * 2
    for name, amount, day in (
        ("a", ["7", "8", "", "9"], ["03/12/2024"] * 4),
        ("b", [*map(str, numbers)], american),
        ("c", comma, german),
    ):
        pl.DataFrame(
            {"amount": amount * 3, "day": day * 3, "same": ["1,5", "x", "", "2"] * 3}
        ).write_csv(tmp_path / f"{name}.csv", separator=";")
    table = open_table(tmp_path)
    assert isinstance(table, Table)
    amount, day, same = (table.frame[name].to_list() for name in ("amount", "day", "same"))
    assert amount[:4] == ["7", "8", "", "9"] and [*map(float, amount[12:16])] == numbers
    assert amount[24:28] == ["1234.56 EUR", "12.5", "1064.31-", "n/a"]
    assert day[12:14] == american[:2] and day[24:26] == ["2024-12-25", "2024-12-01"]
    assert same == ["1,5", "x", "", "2"] * 9
    notes = [note for note in table.source.notes if "own format" in note]
    assert [note.split(";")[0] for note in notes] == [
        'Column "amount": c.csv has decimal commas and b.csv decimal points',
        'Column "day": c.csv has day before month and b.csv month before day',
    ]
    table = open_table(tmp_path, in_memory_rows=2, part_rows=5)
    assert pl.concat([part.frame for part in table.tables()])["amount"].to_list() == amount


def test_a_file_with_ambiguous_dates_is_reported(tmp_path: Path) -> None:
    days = {
        "1": [f"01/{day}/2024" for day in range(11, 28)],
        "2": [f"{day}/02/2024" for day in range(11, 28)],
        "3": [f"{day:02}/03/2024" for day in range(5, 14)],  # only the last date shows the order
        "4": [f"{day:02}/04/2024" for day in range(5, 13)],
    }
    for name, cells in days.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["day", *cells]))
    texts = [note for note in open_table(tmp_path).source.notes if "it is read so" in note]
    texts += [note for note in open_table(tmp_path).source.notes if "the rest is read so" in note]
    assert [note[:30] for note in texts] == [
        '4.csv: Column "day": no cell s',
        '3.csv: Column "day": 1 cell ca',
    ]
