import codecs
import datetime
import gzip
import hashlib
import io
import math
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.system import limits
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.read.json import JsonLines, json_rows
from kpca_apps.tables.table import plain_types
from tests.tables.whole_and_parts import put

FRAME = pl.DataFrame(
    {
        "whole": [1, None],
        "real": [0.5, -2.25],
        "flag": [True, False],
        "day": [datetime.date(2024, 2, 29), None],
        "text": ["a", ""],
    }
)


def test_source_states_how_a_text_table_was_read(tmp_path: Path) -> None:
    data = gzip.compress("größe;name\n1,5;é\n".encode("cp1252"), mtime=0)
    source = read_table(put(tmp_path / "sizes.csv.gz", data)).source
    assert (source.name, source.format) == ("sizes.csv.gz", "csv")
    assert source.sha256 == hashlib.sha256(data).hexdigest() and source.n_bytes == len(data)
    assert (source.encoding, source.delimiter) == ("cp1252", ";")
    assert source.notes == (
        "Unpacked from gzip.",
        "Read as cp1252 (Windows, western Europe): byte 0xf6 on line 1 is not UTF-8.",
        "Cells are separated by the semicolon (detected).",
    )


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_parquet_keeps_types_whatever_the_file_is_called(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"table.{suffix}"
    with path.open("wb") as file:
        FRAME.write_parquet(file)
    table = read_table(path)
    assert table.frame.equals(FRAME) and table.frame.schema == FRAME.schema and table.lines is None
    assert table.source.format == "parquet"


def test_types_beyond_the_plain_ones_become_text_or_floats() -> None:
    frame = pl.DataFrame(
        {
            "category": pl.Series(["a", None], dtype=pl.Categorical),
            "decimal": pl.Series(["1.50", "2.25"]).cast(pl.Decimal(10, 2)),
            "list": [[1, 2], None],
            "struct": [{"x": 1}, {"x": None}],
            "bytes": [b"\x00\xff", None],
        }
    )
    table = table_from_frame(frame, "made")
    assert table.frame.rows() == [
        ("a", 1.5, "[1, 2]", '{"x": 1}', "00ff"),
        (None, 2.25, None, '{"x": null}', None),
    ]
    assert (table.source.name, table.source.format) == ("made", "frame")
    assert table.source.sha256 == table_from_frame(frame).source.sha256
    assert table.source.sha256 != table_from_frame(frame.reverse()).source.sha256


def test_durations_are_seconds_and_far_dates_are_text() -> None:
    stored = [2**31 - 1, 0, None]
    far = pl.Series([2**62, 10**15, None])
    frame = pl.DataFrame(
        {
            "ms": pl.Series([2**62, 1500, None]).cast(pl.Duration("ms")),
            "day": pl.Series(stored, dtype=pl.Int32).cast(pl.Date),
            "at": far.cast(pl.Datetime("us")),
            "zoned": far.cast(pl.Datetime("ms", "Europe/Berlin")),
            "near": pl.Series([1, 2, None]).cast(pl.Datetime("ns")),
            # Many programs write the first and the last date for "never" and "forever".
            "ends": [datetime.datetime.min, datetime.datetime.max, None],
            "end days": [datetime.date.min, datetime.date.max, None],
        }
    )
    plain = plain_types(frame)
    assert plain["ms"].to_list() == [2**62 / 1e3, 1.5, None]
    assert plain["day"].to_list() == ["2147483647 days after 1970-01-01", "1970-01-01", None]
    assert plain["at"].to_list() == [
        "4611686018427387904 us after 1970-01-01", "2001-09-09 01:46:40.000000", None,
    ]  # fmt: skip
    assert plain["zoned"].to_list()[1:] == ["1000000000000000 ms after 1970-01-01", None]
    for name in ("near", "ends", "end days"):
        assert plain[name].equals(frame[name])
    assert plain.write_csv().count("\n") == 4


@pytest.mark.parametrize("frame", [pl.DataFrame(), pl.DataFrame({"x": []})])
def test_frames_without_rows_or_columns_are_refused(frame: pl.DataFrame) -> None:
    with pytest.raises(InputError):
        table_from_frame(frame)


def test_json_records_are_not_kept_where_memory_has_no_room_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, passes = b'{"a": 1, "b": "x"}\n' * 20_000, []

    def chunks() -> list[bytes]:
        passes.append(data)
        return [data]

    found = []
    for available in (10**9, 10**5):
        monkeypatch.setattr(limits, "available_memory", lambda n=available: n)
        found.append(pa.concat_tables(json_rows(JsonLines(chunks), math.inf).pieces))
    assert found[0] == found[1]
    assert len(passes) == 3


@pytest.mark.parametrize("keep_rows", [0, 1])
def test_json_is_refused_by_its_line_from_some_depth_on(keep_rows: int) -> None:
    refused = []
    for depth in (*range(800, 1000), 10_000):
        line = b'{"a": ' + b"[" * depth + b"]" * depth + b"}"
        try:
            list(json_rows(JsonLines(lambda line=line: [line]), keep_rows).pieces)  # type: ignore[misc]
            refused.append(False)
        except InputError as error:
            assert "line 1 is nested too deeply" in str(error)
            refused.append(True)
    assert refused == sorted(refused) and refused[-1]


def test_json_lines_type_numbers_and_keep_the_rest_as_text(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    path.write_text(
        '{"n": 1, "f": 1, "b": true, "s": "007", "m": 1}\n\n'
        '{"n": null, "f": 2.5, "s": "", "m": "x", "d": {"k": [1]}, "big": 1' + "0" * 30 + "}\n",
        encoding="utf-8",
    )
    table = read_table(path)
    assert table.frame.rows(named=True) == [
        {"n": 1, "f": 1.0, "b": True, "s": "007", "m": "1", "d": None, "big": None},
        {
            "n": None,
            "f": 2.5,
            "b": None,
            "s": "",
            "m": "x",
            "d": '{"k": [1]}',
            "big": "1" + "0" * 30,
        },
    ]
    assert table.frame.schema["n"] == pl.Int64 and table.lines is not None
    assert table.lines.tolist() == [1, 3] and table.source.format == "jsonl"


def test_json_lines_are_known_by_their_content_unless_a_delimiter_is_given(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    path.write_text('{"a": 1}\n', encoding="utf-8")
    assert read_table(path).source.format == "jsonl"
    with pytest.raises(InputError, match="a header without rows"):
        read_table(path, delimiter=";")


class Piped:
    """Standard input as a pipe: bytes only."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("kind", ["csv", "gzip", "parquet", "jsonl"])
def test_standard_input_is_known_by_its_content(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    pl.DataFrame({"a": [1]}).write_parquet(buffer)
    data = {
        "csv": b"a;b\n1;2\n",
        "gzip": gzip.compress(b"a;b\n1;2\n"),
        "parquet": buffer.getvalue(),
        "jsonl": b'{"a": 1}\n',
    }[kind]
    monkeypatch.setattr(sys, "stdin", Piped(data))
    table = read_table("-")
    assert table.frame.height == 1 and table.source.name == "standard input"
    assert table.source.format == kind.replace("gzip", "csv")


@pytest.mark.parametrize(("given", "cells"), [("tab", 2), ("\\t", 2), ("\t", 2), ("#", 3)])
def test_given_delimiter_is_obeyed(given: str, cells: int, tmp_path: Path) -> None:
    path = put(tmp_path / "table.csv", b"a#\tb#c\nd#\te#f\n")
    assert read_table(path, delimiter=given).frame.width == cells


def test_given_delimiter_that_never_occurs_is_refused_where_another_cuts(tmp_path: Path) -> None:
    path = put(tmp_path / "table.csv", b"a\tb\nd\te\n")
    with pytest.raises(InputError, match=r"the semicolon given .* does not occur .* by the tab"):
        read_table(path, delimiter=";")
    path.write_bytes(b"a\tb\n" + b"1\t2\n" * 50)
    with pytest.raises(InputError, match=r"the semicolon given .* does not occur .* by the tab"):
        open_table(path, delimiter=";", in_memory_rows=0)
    path.write_bytes(b"a\n1\n2\n")
    assert read_table(path, delimiter=";").frame.shape == (2, 1)


@pytest.mark.parametrize("given", ["::", "", '"', "\n", "x", "1"])
def test_delimiter_that_cannot_cut_is_refused(given: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a character that can separate cells"):
        read_table(tmp_path / "table.csv", delimiter=given)


def test_given_encoding_is_obeyed(tmp_path: Path) -> None:
    path = put(tmp_path / "table.csv", "имя,b\nя,1\n".encode("cp1251"))
    table = read_table(path, encoding="cp1251")
    assert table.frame.columns == ["имя", "b"]
    assert (table.source.encoding, table.source.notes) == ("cp1251", ())


def test_unknown_encoding_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    path = put(tmp_path / "table.csv", b"a,b\n1,2\n")
    with pytest.raises(ConfigError, match=r'"uft8" is not known; .* Did you mean "utf_8"\?'):
        read_table(path, encoding="uft8")
    for encoding in ("mbcs", "MBCS", "oem", "uft8", "latni1"):
        try:
            codecs.lookup(encoding)
            continue  # this system has a codec of that name
        except LookupError:
            pass
        with pytest.raises(ConfigError) as error:
            read_table(path, encoding=encoding)
        for suggested in re.findall('Did you mean "(.*)"', str(error.value)):
            codecs.lookup(suggested)
    for encoding in ("hex", "zlib", "bz2"):  # these encodings map bytes to bytes, not to text
        with pytest.raises(ConfigError, match=f'"{encoding}"'):
            read_table(path, encoding=encoding)
    with pytest.raises(InputError, match="punycode"):
        read_table(path, encoding="punycode")


def test_a_byte_order_mark_is_no_part_of_a_name_where_utf_8_is_given(tmp_path: Path) -> None:
    path = put(tmp_path / "table.csv", codecs.BOM_UTF8 + b"name,size\nada,1\n")
    for encoding in (None, "utf-8", "UTF8"):
        assert read_table(path, encoding=encoding).frame.columns == ["name", "size"]


@pytest.mark.parametrize(("data", "message"), [(b"", "the file is empty"), (b"\0" * 9, "promises")])
@pytest.mark.parametrize("suffix", ["xlsx", "parquet", "arrow"])
def test_a_name_promises_nothing_of_a_text(
    suffix: str, data: bytes, message: str, tmp_path: Path
) -> None:
    path = put(tmp_path / f"table.{suffix}", data)
    with pytest.raises(InputError, match=message):
        read_table(path)
    path.write_bytes(b"a,b\n1,2\na,b\n")  # the last line repeats the header
    assert read_table(path, layout="off").frame.rows() == [("1", "2"), ("a", "b")]


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "penguins.csv").touch()
    with pytest.raises(InputError, match=r'no such file\. Did you mean "penguins\.csv"\?'):
        read_table(tmp_path / "pengiuns.csv")
    with pytest.raises(InputError, match=r"no such file\.$"):
        read_table(tmp_path / "penguin.html")
    with pytest.raises(InputError, match=r'The folder ".*nowhere" does not exist'):
        read_table(tmp_path / "nowhere" / "penguins.csv")


@pytest.mark.parametrize(
    ("typed", "right"),
    [
        ("sqlite:shop.db", "sqlite:///shop.db"),
        ("SQLite:/data/shop.db#a", "sqlite:////data/shop.db#a"),
        ("duckdb:shop.db", "duckdb:///shop.db"),
        ("postgres:db/shop", "postgres://db/shop"),
        ("postgresql:/db/shop", "postgresql://db/shop"),
    ],
)
def test_an_address_of_a_database_with_too_few_slashes_is_corrected(typed: str, right: str) -> None:
    with pytest.raises(InputError, match=f"more slashes; name it {right}$"):
        open_table(typed)
    with pytest.raises(ConfigError, match="holds a password") as refused:
        open_table("postgresql:ada:rosebud@db/shop")
    assert "rosebud" not in str(refused.value)


def test_the_log_of_a_delta_table_is_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "sales" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("{}\n")
    with pytest.raises(InputError, match=r"the log of a Delta table; name .*sales$"):
        open_table(log)
    monkeypatch.chdir(log)
    with pytest.raises(InputError, match=r"the log of a Delta table; name .*sales$"):
        open_table(".")


@pytest.mark.parametrize("seconds", [0, -5, float("nan")])
def test_reading_takes_some_time(seconds: float) -> None:
    with pytest.raises(ConfigError, match=r"--timeout must be (above 0|a number)"):
        open_table("sqlite:///shop.db", timeout=seconds)


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this is a folder"):
        read_table(tmp_path)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused(device: str) -> None:
    with pytest.raises(InputError, match="this is a device"):
        read_table(device)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    rows = b"a,b\n" + b"1,2\n" * 100_000
    slow = f"exec > {path}; sleep 0.6; printf 'a,b\\n'; sleep 0.1; yes 1,2 | head -n 100000"
    with subprocess.Popen(["sh", "-c", slow]):
        table = read_table(path)
    assert table.frame.shape == (100_000, 2)
    assert table.source.sha256 == hashlib.sha256(rows).hexdigest()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret.csv"
    path.touch(mode=0o000)
    with pytest.raises(InputError, match="no permission"):
        read_table(path)


def test_a_gzip_file_is_known_however_it_is_packed(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbfa,b\n1,2\n3,4\n"
    packed = gzip.compress(text, mtime=0)
    long_name = packed[:3] + b"\x08" + packed[4:10] + b"n" * 5000 + b"\0" + packed[10:]
    for data in (gzip.compress(text[:1]) + gzip.compress(text[1:]), long_name):
        (tmp_path / "a.csv.gz").write_bytes(data)
        frame = read_table(tmp_path / "a.csv.gz").frame
        assert frame.rows(named=True) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_a_mark_inside_the_text_stays_in_its_cell(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\n\xef\xbb\xbf1,2\n\xef\xbb\xbf3,4\n")
    assert read_table(tmp_path / "a.csv").frame["a"].to_list() == ["\ufeff1", "\ufeff3"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_without_a_writer_is_named_while_it_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, notes = tmp_path / "rows", list[str]()
    os.mkfifo(path)

    def write(_: object, text: str, note: str) -> None:
        """Write to the pipe once the message is logged."""
        notes.append(text % note)
        threading.Thread(target=path.write_text, args=("a,b\n1,2\n",)).start()

    monkeypatch.setattr("kpca_apps.tables.input_file._PATIENCE", 0.01)
    monkeypatch.setattr("logging.Logger.warning", write)
    assert read_table(path).frame.height == 1
    assert notes == [f"{path}: waiting for a program that writes to this pipe."]
