"""Text in parts gives the rows and lines of the whole file, wherever it is split."""

import csv
import gzip
import io
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.errors import InputError
from kpca_apps.tables import input_file
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.read import delimited
from kpca_apps.tables.table import Table
from tests.tables.whole_and_parts import in_parts, put, read_both_ways

CELL = st.text(st.sampled_from('ab1",;\n\té'), max_size=5)
LENIENT = st.sampled_from(["1", "2,5", 'x"', "é", "", '"a\n"', '""', '"b;"', "a b"])


@settings(max_examples=50)
@given(
    rows=st.lists(st.lists(CELL, min_size=2, max_size=2), min_size=1, max_size=12),
    delimiter=st.sampled_from(",;\t"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    end=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(1, 5),
    chunk=st.sampled_from([1, 2, 7, 1000]),
)
def test_written_cells_come_back_in_parts(
    rows: list[list[str]], delimiter: str, encoding: str, end: str, size: int, chunk: int
) -> None:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end)
    writer.writerow(["x", "y"])
    writer.writerows(rows)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(input_file, "CHUNK", chunk)
        path = Path(folder, "t.csv")
        path.write_bytes(buffer.getvalue().encode(encoding))
        whole = read_both_ways(path, size, delimiter=delimiter, layout="off")
        assert [list(row) for row in whole.frame.rows()] == rows


@given(
    rows=st.lists(st.lists(LENIENT, min_size=2, max_size=2), min_size=2, max_size=12),
    delimiter=st.sampled_from(["; ", ";", "\t", " "]),
    end=st.sampled_from(["\n", "\n\n", "\r\n", "\r"]),
    size=st.integers(1, 5),
    chunk=st.sampled_from([1, 3, 20, 1000]),
)
def test_loosely_written_text_is_read_in_parts_as_it_is_whole(
    rows: list[list[str]], delimiter: str, end: str, size: int, chunk: int
) -> None:
    text = end.join(delimiter.join(row) for row in rows)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(input_file, "CHUNK", chunk)
        # Use a search limit so short that unpaired quotes reach the row-by-row search.
        patch.setattr(delimited, "_WAIT", 10)
        path = Path(folder, "t.csv")
        path.write_bytes(text.encode("utf-8"))
        try:
            read_table(path)
        except InputError:
            return
        read_both_ways(path, size)


def test_files_of_few_rows_are_read_at_once(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", b"a,b\n" + b"\n" * 9 + b'1,"2\n\n\n\n\n\n"\n')
    table = open_table(path, in_memory_rows=5)
    assert isinstance(table, Table) and table.frame.rows() == [("1", "2\n\n\n\n\n\n")]


@pytest.mark.parametrize("packed", [True, False])
def test_streams_are_kept_in_a_private_folder_while_they_are_used(
    packed: bool, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"a;b\n1;2\n3;4\n5;6\n"
    data = gzip.compress(text, mtime=0) if packed else text

    class Piped:
        buffer = io.BytesIO(data)

    monkeypatch.setattr(sys, "stdin", Piped())
    table = in_parts("-")
    (kept,) = temporary.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o700
    assert [part.read().frame.height for part in table.parts] == [2, 1]
    assert table.source.n_bytes == len(data) and table.source.name == "standard input"
    del table
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("data", [b"a,b\n1\n", "a,b\n1\n".encode("utf-16"), b"a,b\n\xe9\n"])
def test_no_temporary_file_outlives_an_error(data: bytes, temporary: Path, tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv.gz", gzip.compress(data))
    with pytest.raises(InputError, match="line 2"):
        open_table(path, in_memory_rows=0)
    assert list(temporary.iterdir()) == []


def test_a_late_encoding_error_is_reported_by_line_and_byte(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", b"a,b\n" + b"1,2\n" * 50 + b"\x81,3\n")
    with pytest.raises(InputError, match=r"line 52, byte 205 \(0x81\) is not cp1252 text"):
        in_parts(path)
    with pytest.raises(InputError, match=r"line 52, byte 205 \(0x81\) is not utf-8 text"):
        open_table(path, encoding="utf-8", in_memory_rows=0)


def test_a_file_that_grows_while_it_is_read_is_not_followed(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", b"a,b\n" + b"1,2\n" * 100)
    with pytest.MonkeyPatch.context() as patch, path.open("ab") as writer:
        patch.setattr(input_file, "CHUNK", 16)
        taken = 0
        with pytest.raises(InputError, match=r"t\.csv: the file was changed"):
            for chunk in input_file.KnownFile.at(path, "t.csv").chunks():
                taken += len(chunk)
                writer.write(b"1,2\n" * 10)
                writer.flush()
    assert taken == 404


def test_a_name_of_several_lines_is_printed_in_one(tmp_path: Path) -> None:
    path = put(tmp_path / "a\nb.csv", b"a,b\n1,2\n3,4\n")
    table = in_parts(path)  # the parts read what it holds open
    part = table.parts[0]
    assert str(part) == "rows 1 to 2 of a\\nb.csv"
    lost = replace(part, stop=3)
    with pytest.raises(InputError, match=r"^a\\nb\.csv: rows 1 to 3 are no longer there"):
        lost.read()


@pytest.mark.parametrize("change", ["removed", "rewritten"])
def test_a_table_that_is_open_stays_what_it_was(change: str, tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", b"a,b\n1,2\n3,4\n5,6\n")
    table = in_parts(path)
    path.unlink() if change == "removed" else path.write_bytes(b"a,b\n1,2\n")
    assert table.parts[1].read().frame.rows() == [("5", "6")]


@pytest.mark.parametrize("damage", ["removed", "cut"])
def test_a_lost_copy_is_reported_by_its_rows(damage: str, temporary: Path, tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", b"a,b\n1,2\n3,4\n5,6\n")
    table = in_parts(path)
    (kept,) = temporary.glob("*/*")
    kept.unlink() if damage == "removed" else kept.write_bytes(kept.read_bytes()[:100])
    with pytest.raises(InputError, match=r"^Rows 3 to 3"):
        table.parts[1].read()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no list of open files")
def test_rows_that_find_no_room_leave_no_file_open(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "t.csv", b"a,b\n" + b"1,2\n" * 50)
    free = iter([1 << 40])
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=next(free, 0)))
    with pytest.raises(InputError, match="no room") as caught:
        in_parts(path)
    # The caught error still keeps alive everything that it references.
    links = [str(item.readlink()) for item in Path("/proc/self/fd").iterdir() if item.is_symlink()]
    assert not [link for link in links if link.startswith(str(temporary))]
    assert list(temporary.iterdir()) == []
    assert caught.value.exit_code == 3


@pytest.mark.skipif(os.name != "posix", reason="names of bytes")
def test_the_folder_for_temporary_files_need_not_be_utf8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path / "a") + b"\xff"))
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    path = put(tmp_path / "t.csv", b"a,b\n1,2\n3,4\n")
    read_both_ways(path)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_second_byte_order_mark_is_no_part_of_a_name(
    name: str, codec: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    text = "a,b\n1,2\n" if name == "t.csv" else '{"a": 1, "b": 2}\n'
    path.write_bytes(f"\ufeff{text}".encode(codec))
    assert read_table(path).frame.columns == ["a", "b"]
