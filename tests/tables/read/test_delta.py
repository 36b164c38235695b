"""A version of a Delta table is read without the rows that were deleted before it."""

import base64
import json
import os
import struct
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kpca_apps.errors import ConfigError, InputError, OptionError
from kpca_apps.tables.opening import expand_each, open_table
from kpca_apps.tables.table import Table

pytestmark = pytest.mark.release
deltalake = pytest.importorskip("deltalake", reason="reading Delta needs the extra lake")

ROWS = pl.DataFrame({"number": range(40), "town": ["Ulm", "Bonn"] * 20})


def write(folder: Path, frame: pl.DataFrame = ROWS, **how: Any) -> None:
    deltalake.write_deltalake(folder, frame.to_arrow(), mode="append", **how)


def opened(folder: Path, **how: Any) -> Table:
    table = open_table(folder, **how)
    assert isinstance(table, Table)
    return table


def delete_by_vector(folder: Path, places: list[int]) -> None:
    """Delete rows of the only file as Spark does, by a deletion vector in the log.

    The vector is the protocol's Z85 encoding of a magic number and a 64-bit Roaring bitmap with one
    array.
    """
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(places) - 1, 16)
    bitmap += struct.pack(f"<{len(places)}H", *places)
    data = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    padded = data + bytes(-len(data) % 4)
    b85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    inline = base64.b85encode(padded).translate(bytes.maketrans(b85, z85)).decode()
    first = folder / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    (add,) = [action["add"] for action in actions if "add" in action]
    features = ["deletionVectors"]
    later = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
                      "readerFeatures": features, "writerFeatures": features}},
        {"remove": {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}},
        {"add": {**add, "deletionVector": {"storageType": "i", "pathOrInlineDv": inline,
                                           "sizeInBytes": len(data), "cardinality": len(places)}}},
    ]  # fmt: skip
    (folder / "_delta_log" / f"{1:020}.json").write_text("\n".join(map(json.dumps, later)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path)
    (path,) = tmp_path.glob("*.parquet")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match=r"\.parquet: is missing or not a file"):
        open_table(tmp_path)


def test_deleted_rows_are_not_read_and_the_version_is_named(tmp_path: Path) -> None:
    write(tmp_path)
    deltalake.DeltaTable(tmp_path).delete("number >= 30")
    table = opened(tmp_path)
    assert table.frame.equals(ROWS[:30])
    assert (table.source.format, table.source.version) == ("delta", "1")
    assert "Version 1 of the Delta table." in table.source.notes
    # Reading the files alone would restore the deleted rows.
    assert len([*tmp_path.glob("*.parquet")]) == 2
    assert expand_each(tmp_path) == [tmp_path]

    before = opened(tmp_path, as_of=0)
    assert before.frame.equals(ROWS) and before.source.version == "0"
    assert before.source.fingerprint != table.source.fingerprint


def test_rows_deleted_by_a_vector_are_not_read(tmp_path: Path) -> None:
    write(tmp_path)
    deleted = [0, 7, 39]
    delete_by_vector(tmp_path, deleted)
    table = opened(tmp_path)
    assert table.frame.equals(ROWS.filter(~pl.col("number").is_in(deleted)))
    assert table.source.version == "1"
    assert opened(tmp_path, as_of="0").frame.equals(ROWS)


def test_rows_have_the_same_places_each_time(tmp_path: Path) -> None:
    for start in range(0, 40, 4):
        write(tmp_path, ROWS[start : start + 4], partition_by=["town"])
    first = open_table(tmp_path, in_memory_rows=10, part_rows=16)
    again = open_table(tmp_path, in_memory_rows=10, part_rows=16)
    frames = [pl.concat([part.read().frame for part in result.parts]) for result in (first, again)]  # type: ignore[union-attr]
    assert frames[0].equals(frames[1])
    assert first.source == again.source
    assert frames[0].sort("number").equals(ROWS)


def test_a_time_is_that_of_the_last_version_before_it(tmp_path: Path) -> None:
    write(tmp_path)
    after = datetime.now().astimezone() + timedelta(seconds=1)
    (tmp_path / "_delta_log" / f"{0:020}.json").touch()
    assert opened(tmp_path, as_of=after).source.version == "0"
    assert opened(tmp_path, as_of=after.isoformat()).source.version == "0"
    with pytest.raises(InputError, match="there was no version yet at that time; the first is of"):
        open_table(tmp_path, as_of="2001-01-01")


@pytest.mark.parametrize(
    ("as_of", "error", "message"),
    [
        (9, InputError, "there is no version 9 yet; the latest is 0"),
        (-1, OptionError, "must be a version, such as 7, or a time"),
        ("yesterday", OptionError, "must be a version, such as 7, or a time"),
    ],
)
def test_a_missing_version_is_reported(
    as_of: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    write(tmp_path)
    with pytest.raises(error, match=message):
        open_table(tmp_path, as_of=as_of)


def test_only_delta_tables_have_versions(tmp_path: Path) -> None:
    ROWS.write_parquet(tmp_path / "rows.parquet")
    for path in (tmp_path, tmp_path / "rows.parquet"):
        with pytest.raises(OptionError, match="--as-of does not apply to Parquet"):
            open_table(path, as_of=1)


def test_a_damaged_table_is_reported_in_one_line(tmp_path: Path) -> None:
    write(tmp_path)
    next(tmp_path.glob("*.parquet")).write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="not a readable Parquet file") as caught:
        open_table(tmp_path)
    assert "\n" not in str(caught.value)
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(InputError, match="its log is empty"):
        open_table(tmp_path)


def test_a_footer_of_impossible_size_does_not_end_the_process(tmp_path: Path) -> None:
    write(tmp_path)
    (file,) = tmp_path.glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        open_table(tmp_path)


@pytest.mark.parametrize("path", ["../{}", "%2e%2e/{}", "/tmp/{}", "file:///tmp/{}", "s3://b/{}"])
def test_a_log_that_names_files_elsewhere_is_refused(path: str, tmp_path: Path) -> None:
    write(tmp_path / "lake")
    ROWS.write_parquet(tmp_path / "private.parquet")
    log = tmp_path / "lake" / "_delta_log" / f"{0:020}.json"
    (file,) = (tmp_path / "lake").glob("*.parquet")
    log.write_text(log.read_text().replace(file.name, path.format("private.parquet")))
    with pytest.raises(InputError, match="its log names a file outside the table"):
        open_table(tmp_path / "lake")


def test_a_value_that_looks_like_an_address_is_none(tmp_path: Path) -> None:
    rows = ROWS.with_columns(site=pl.lit("https://a.example/../b"))
    write(tmp_path, rows, partition_by=["site"])
    assert opened(tmp_path).frame.select(rows.columns).equals(rows)


def test_a_missing_library_is_reported_with_the_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ConfigError, match=r'pip install "\.\[lake\]"'):
        open_table(tmp_path)
