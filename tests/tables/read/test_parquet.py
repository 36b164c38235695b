"""Parquet in parts: a file or a folder, with the same column types in every part."""

import datetime
import hashlib
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kpca_apps.errors import ConfigError, InputError, MemoryLimitError, UnreachableError
from kpca_apps.system import limits
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.read import parquet
from kpca_apps.tables.table import PartedTable, Table, plain_types
from tests.tables.whole_and_parts import in_parts, read_both_ways

FRAME = pl.DataFrame({"x": range(10), "t": [f"row {k}" for k in range(10)]})


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_copy_of_another_time_is_the_same_file_and_one_of_other_bytes_is_not(
    tmp_path: Path, is_folder: bool
) -> None:
    path = tmp_path / "t.parquet"
    FRAME.write_parquet(path)
    table = in_parts(tmp_path if is_folder else path, 4)
    os.utime(path, (0, 0))
    assert pl.concat([part.read().frame for part in table.parts]).equals(FRAME)
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    with pytest.raises(UnreachableError, match=r"t\.parquet: the file was changed"):
        table.parts[0].read()


@pytest.mark.parametrize("size", [1, 3, 4, 7, 100])
def test_a_folder_is_one_table_in_the_order_of_names(size: int, tmp_path: Path) -> None:
    for name, start, stop in [("b", 3, 9), ("a", 0, 3), ("c", 9, 9), ("d", 9, 10)]:
        FRAME[start:stop].write_parquet(tmp_path / f"{name}.parquet")
    for name in (".hidden.parquet", "_metadata.parquet"):
        FRAME.write_parquet(tmp_path / name)
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "notes.txt").touch()
    table = in_parts(tmp_path, size)
    assert pl.concat([part.read().frame for part in table.parts]).equals(FRAME)
    assert [part.stop - part.start for part in table.parts[:-1]] == [size] * (len(table.parts) - 1)
    assert (table.source.n_rows, table.source.format) == (10, "parquet")
    assert table.source.notes == ("Read from 4 Parquet files, in the order of their names.",)
    whole = open_table(tmp_path)
    assert isinstance(whole, Table) and whole.frame.equals(FRAME) and whole.source == table.source


def test_the_hash_of_a_folder_is_that_of_its_listing(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    FRAME.write_parquet(tmp_path / "b.parquet", compression="uncompressed")
    listing = "".join(
        f"{hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()}  {name}\n"
        for name in ("a.parquet", "b.parquet")
    )
    found = in_parts(tmp_path, 4).source
    assert found.sha256 == hashlib.sha256(listing.encode()).hexdigest()
    assert found.n_bytes == sum(item.stat().st_size for item in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (FRAME.drop("t"), 'b.parquet: has no column "t"'),
        (FRAME.with_columns(y=1), 'b.parquet: its column "y" is not in'),
        (FRAME.cast({"x": pl.Int32}), 'b.parquet: its column "x" is Int32, and is Int64 in'),
        (FRAME.select("t", "x"), 'b.parquet: its column "t" stands elsewhere'),
    ],
)
def test_files_with_other_columns_are_named(
    other: pl.DataFrame, words: str, tmp_path: Path
) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    other.write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError) as caught:
        in_parts(tmp_path, 4)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("b.parquet", lambda path: path.symlink_to("b.parquet")),
        ("b.parquet", lambda path: path.symlink_to("nowhere")),
        ("b.parquet", Path.mkdir),
        ("year=2024", Path.mkdir),
        pytest.param(
            "b.parquet", os.mkfifo, marks=pytest.mark.skipif(os.name != "posix", reason="pipes")
        ),
    ],
)
def test_rows_that_would_be_left_out_are_reported(
    name: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    make(tmp_path / name)
    with pytest.raises(InputError, match=rf"{name}: is (not )?a "):
        in_parts(tmp_path, 4)


def test_types_with_hostile_names_are_reported_in_one_line(tmp_path: Path) -> None:
    for name, field in [("a", "x"), ("b", "y\n" * 100)]:
        pl.DataFrame({"s": [{field: 1}]}).write_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(InputError) as caught:
        in_parts(tmp_path, 4)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 600


def test_folders_without_rows_and_options_of_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder without Parquet files or other tables"):
        in_parts(tmp_path, 4)
    FRAME[:0].write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError):
        in_parts(tmp_path, 4)
    with pytest.raises(ConfigError, match="Parquet"):
        open_table(tmp_path, delimiter=",")


def test_names_that_look_like_patterns_are_names(tmp_path: Path) -> None:
    frame = FRAME.rename({"x": "^.*"}).with_columns(
        pl.Series("*", [b"a"] * 10), pl.Series("^x", [datetime.date(2024, 1, 1)] * 10)
    )
    frame.write_parquet(tmp_path / "t.parquet")
    expected = frame.with_columns(pl.Series("*", ["61"] * 10))
    assert read_both_ways(tmp_path / "t.parquet").frame.equals(expected)
    FRAME.rename({"x": "^.*$"}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="rename it, for example without"):
        in_parts(tmp_path / "t.parquet", 16)


def test_columns_of_one_name_are_refused_by_that_name(tmp_path: Path) -> None:
    rows = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["x", "x"])
    pq.write_table(rows, tmp_path / "twice.parquet")
    with pytest.raises(InputError, match='2 columns are called "x"; give each its own name'):
        open_table(tmp_path / "twice.parquet")


def test_types_of_a_part_are_those_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame(
        {
            "far": pl.Series([1, 2, 3, 2**31 - 1, None], dtype=pl.Int32).cast(pl.Date),
            "near": pl.Series([1, 2, 3, 4, None], dtype=pl.Int32).cast(pl.Date),
            "kind": pl.Series(["a", "b", "a", None, "c"], dtype=pl.Categorical),
            "sum": pl.Series(["1.5", "2.5", "1", "2", "3"]).cast(pl.Decimal(10, 2)),
            "list": [[1], None, [], [2, 3], [4]],
        }
    ).write_parquet(path)
    assert read_both_ways(path).frame.schema["far"] == pl.String


def test_damage_in_one_file_is_reported_by_the_rows_it_costs(tmp_path: Path) -> None:
    for name in "ab":
        FRAME.write_parquet(tmp_path / f"{name}.parquet", compression="uncompressed")
    damaged = tmp_path / "b.parquet"
    data = bytearray(damaged.read_bytes())
    data[4:60] = b"\xff" * 56
    damaged.write_bytes(data)
    table = in_parts(tmp_path, 10)
    assert table.parts[0].read().frame.equals(FRAME)
    with pytest.raises(InputError, match=r"^Rows 11 to 20: .*b\.parquet: not a readable Parquet"):
        table.parts[1].read()


def test_a_cut_file_is_refused_on_opening(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    FRAME.write_parquet(path)
    path.write_bytes(path.read_bytes()[:-9] + b"PAR1")
    with pytest.raises(InputError, match=r"t\.parquet: not a readable Parquet file"):
        in_parts(path, 4)


def test_long_texts_are_requested_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    texts = ["x" * 100_000, "y"] * 1000 + ["z"] * 2000
    pl.DataFrame({"a": range(4000), "t": texts}).write_parquet(path)
    table = in_parts(path, 2000)
    monkeypatch.setattr(limits, "available_memory", lambda: 400_000_000)
    assert table.parts[1].read().frame.height == 2000
    with pytest.raises(MemoryLimitError, match=r"^Rows 1 to 2,000"):
        table.parts[0].read()


@pytest.mark.parametrize(
    "values",
    [
        [["x" * 1_000] * 40] * 100,
        [[["x" * 1_000] * 8] * 5, None, [], [[]]] * 25,
        [{"a": "x" * 40_000, "b": [1]}] * 100,
        [[b"x" * 1_000] * 40] * 100,
        [[0] * 5_000] * 100,
    ],
)
def test_lists_of_much_are_refused_before_they_are_written_out(
    values: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"x": range(100), "l": values}).write_parquet(path)
    monkeypatch.setattr(limits, "available_memory", lambda: 5_000_000)
    with pytest.raises(MemoryLimitError, match=r"t\.parquet"):
        read_table(path)
    with pytest.raises(MemoryLimitError, match=r"^Rows 1 to 100"):
        in_parts(path, 100).parts[0].read()


def test_types_polars_would_panic_at_are_read_or_refused_in_silence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.parquet"
    wide, far = pa.decimal256(60, 2), pa.timestamp("us", "Nowhere/City")
    numbers = pa.array([Decimal("1.5"), Decimal(10) ** 50], wide)
    pq.write_table(pa.table({"n": numbers, "t": pa.array([0, 1], far)}), path)
    frame = read_table(path).frame
    assert frame["n"].to_list() == [1.5, 1e50] and frame["t"].dtype == pl.Datetime("us", "UTC")
    for kind, value in ((wide, Decimal("1.5")), (far, 0)):
        pq.write_table(pa.table({"l": pa.array([[value]], pa.list_(kind))}), path)
        with pytest.raises(InputError, match=r"t\.parquet: .* inside other values is not read"):
            read_table(path)
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(os.name != "posix", reason="names of bytes")
def test_a_path_need_not_be_utf8(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path / "a") + b"\xff.parquet"))
    FRAME.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.parquet").rename(path)
    assert read_both_ways(path).frame.equals(FRAME)


def test_a_table_of_more_cells_than_memory_is_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pl.select(x=pl.repeat(1.0, 1_000_000)).write_parquet(path)
    monkeypatch.setattr(limits, "available_memory", lambda: 10_000_000)
    with pytest.raises(MemoryLimitError):
        read_table(path)
    table = open_table(path)
    assert isinstance(table, PartedTable)
    assert table.parts[-1].read().frame.height == 1_000_000 % 65536


def test_long_groups_are_cut_into_a_copy_that_goes_with_the_table(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_LONGEST_GROUP", 50)
    path = tmp_path / "t.parquet"
    frame = pl.DataFrame(
        {
            "^.*": range(100),
            "t": pl.Series([f"kind {k % 5}" for k in range(100)], dtype=pl.Categorical),
            "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=k) for k in range(100)],
            "list": [[1.5] * (k % 3) for k in range(100)],
        }
    )
    frame.write_parquet(path, row_group_size=60)
    table = in_parts(path, 16)
    assert len(list(temporary.iterdir())) == 1
    path.unlink()
    parts = pl.concat([part.read().frame for part in table.parts])
    assert parts.equals(frame.with_columns(pl.col("t").cast(pl.String), list=parts["list"]))
    assert parts["list"][2] == "[1.5, 1.5]"
    del table
    assert list(temporary.iterdir()) == []


def test_damage_found_while_copying_is_reported_and_nothing_left(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_LONGEST_GROUP", 5)
    path = tmp_path / "t.parquet"
    FRAME.write_parquet(path, compression="uncompressed")
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"t\.parquet"):
        in_parts(path, 4)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        {"row_group_size": 70},
        {"use_dictionary": False, "column_encoding": {"t": "DELTA_BYTE_ARRAY"}},
        {"use_dictionary": False, "column_encoding": {"t": "DELTA_LENGTH_BYTE_ARRAY"}},
        {"data_page_version": "2.0", "dictionary_pagesize_limit": 100, "compression": "zstd"},
    ],
)
def test_other_writers_are_read_as_polars_does(options: dict[str, Any], tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "t": [None if k % 7 == 0 else f"row {k}" for k in range(300)],
            "a.b": [f"kind {k % 5}" for k in range(300)],
            "list": [[f"{k % 5}"] * (k % 3) for k in range(300)],
            "struct": [{"a": k, "b": None if k % 2 else f"c {k % 9}"} for k in range(300)],
            "at": [datetime.datetime(2024, 1, 1, 0, k % 60, 0, k) for k in range(300)],
        }
    )
    path = tmp_path / "t.parquet"
    pq.write_table(frame.to_arrow(), path, **options)
    expected = plain_types(pl.read_parquet(path))
    assert read_both_ways(path, 64).frame.equals(expected)


@pytest.mark.parametrize("kind", ["text", "list", "struct"])
def test_text_that_is_no_utf8_is_refused(kind: str, tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 1, 3], dtype=np.int32))
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xb7b")])
    column = {
        "text": texts,
        "list": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), texts),
        "struct": pa.StructArray.from_arrays([texts], ["q"]),
    }[kind]
    pq.write_table(pa.table({"a": column}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="UTF8"):
        read_table(tmp_path / "t.parquet")


def test_dictionaries_of_other_types_are_read(tmp_path: Path) -> None:
    numbers = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([2.5, 7.0]))
    codes = pa.DictionaryArray.from_arrays(pa.array([1, 1, 0]), pa.array([b"a", b"b"]))
    pq.write_table(pa.table({"n": numbers, "c": codes}), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").frame.rows() == [
        (2.5, "62"), (7.0, "62"), (None, "61"),
    ]  # fmt: skip


def test_dates_of_old_writers_are_not_wrapped_into_other_centuries(tmp_path: Path) -> None:
    days = [datetime.datetime(9999, 12, 30), datetime.datetime(1, 1, 3), None]
    table = pa.table({"t": pa.array(days, pa.timestamp("us")), "x": [1, 2, 3]})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert read_both_ways(tmp_path / "a.parquet").frame["t"].to_list() == days


def test_types_made_of_others_and_offsets_for_time_zones_are_read(tmp_path: Path) -> None:
    times = pa.array([datetime.datetime(2020, 1, 1)], pa.timestamp("us", "+05:30"))
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8()))
    pq.write_table(pa.table({"": pa.array([7]), "t": times, "f": flags}), tmp_path / "a.parquet")
    frame = read_table(tmp_path / "a.parquet").frame
    assert frame.columns == ["", "t", "f"] and frame["t"].dt.epoch("s").to_list() == [1577836800]
    assert frame["f"].to_list() == [1] and frame["f"].dtype == pl.Int8
