"""Row groups: their length read from the footer, and long ones cut."""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.errors import InputError
from kpca_apps.files import opening
from kpca_apps.files.known import KnownFile
from kpca_apps.files.opening import open_table
from kpca_apps.files.parquet_groups import group_rows, regrouped
from kpca_apps.files.parts import PartedTable
from kpca_apps.files.tables import read_table

pytestmark = pytest.mark.usefixtures("no_trial")

FRAME = pl.DataFrame(
    {
        "x": range(100),
        "flag": [k % 3 == 0 for k in range(100)],
        "t": pl.Series([f"kind {k % 5}" for k in range(100)], dtype=pl.Categorical),
        "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=k) for k in range(100)],
        "list": [[1.5] * (k % 3) for k in range(100)],
        "struct": [{"a": k, "b": None if k % 2 else "c"} for k in range(100)],
    }
)


def written(path: Path, size: int) -> KnownFile:
    FRAME.write_parquet(path, row_group_size=size)
    return KnownFile.at(path, path.name)


@pytest.mark.parametrize("size", [1, 7, 64, 100])
def test_the_length_of_groups_is_as_written(size: int, tmp_path: Path) -> None:
    assert group_rows(written(tmp_path / "t.parquet", size)) == size


@given(position=st.integers(0), byte=st.integers(0, 255))
def test_a_footer_that_lies_ends_the_search(position: int, byte: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.parquet")
        written(path, 50)
        data = bytearray(path.read_bytes())
        length = int.from_bytes(data[-8:-4], "little") + 8
        data[-length + position % length] = byte
        path.write_bytes(data)
        assert isinstance(group_rows(KnownFile.at(path, "t.parquet")), int)


def test_long_groups_are_cut_into_a_copy_that_goes_with_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(opening, "LONGEST_GROUP", 50)
    path = tmp_path / "t.parquet"
    file = written(path, 60)
    copy, held = regrouped(file, 8)
    assert group_rows(copy) == 8
    held.close()
    table = open_table(path, in_memory_rows=0, part_rows=16)
    assert isinstance(table, PartedTable)
    assert len(list(temporary.iterdir())) == 1
    whole = read_table(path)
    assert pl.concat([part.read().frame for part in table.parts]).equals(whole.frame)
    assert table.source == whole.source
    del table
    assert list(temporary.iterdir()) == []


def test_patterns_in_names_and_folders_are_taken_literally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "[a]*"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path = tmp_path / "t.parquet"
    frame = pl.DataFrame({"^.*$": range(50), "*": range(50), "x": range(50)})
    frame.write_parquet(path)
    copy, _held = regrouped(KnownFile.at(path, "t.parquet"), 8)
    assert pl.read_parquet(copy.path, glob=False).equals(frame)


def test_damage_found_while_copying_is_told_and_nothing_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path = tmp_path / "t.parquet"
    FRAME.write_parquet(path, compression="uncompressed")
    data = bytearray(path.read_bytes())
    data[4:40] = b"\xff" * 36
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"t\.parquet: not a readable Parquet file"):
        regrouped(KnownFile.at(path, "t.parquet"), 8)
    assert list(temporary.iterdir()) == []
