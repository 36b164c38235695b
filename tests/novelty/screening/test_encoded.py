"""Encoded rows in a file: any process reads what was written, and no file remains."""

import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.errors import InputError
from kpca_apps.novelty.columns.parts import Execution, some_rows, take_rows
from kpca_apps.system.files.windowed import SharedArray
from kpca_apps.system.workers import Workers
from kpca_apps.tables.opening import open_table
from kpca_apps.tables.table import PartedTable
from tests.quick import quick
from tests.system.parts import RowPart, row_parts

Usage = namedtuple("Usage", "total used free")


def write_part(part: RowPart, file: SharedArray) -> int:
    rows = np.arange(part.start, part.stop)
    file[part.start : part.stop] = np.column_stack([rows, np.sqrt(rows)])
    return len(rows)


@pytest.mark.parametrize("executor", quick(["serial", "threads", "processes"], "serial", "threads"))
def test_parts_written_by_anyone_are_read_in_any_blocks(
    executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = SharedArray((1_000, 2), "it")
    with Workers(executor, n_workers=2) as workers:  # type: ignore[arg-type]
        assert sum(workers.map_partitions(write_part, row_parts(1_000, 96), file)) == 1_000
    for start, stop in ((0, 1_000), (5, 5), (90, 300), (999, 1_000)):
        rows = np.arange(start, stop)
        np.testing.assert_array_equal(file[start:stop], np.column_stack([rows, np.sqrt(rows)]))
    some = np.array([700, 3, 999, 3, 0])
    np.testing.assert_array_equal(file[some], np.column_stack([some, np.sqrt(some)]))
    assert any(tmp_path.iterdir())
    del file
    assert not any(tmp_path.iterdir())


def test_a_disk_without_room_is_reported_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(10**9, 10**9, 0))
    with pytest.raises(InputError, match="1,000,000 rows"):
        SharedArray((1_000_000, 30), "A table of 1,000,000 rows")
    assert not any(tmp_path.iterdir())


def test_rows_that_no_longer_exist_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = SharedArray((10, 2), "it")
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"")
    with pytest.raises(InputError, match="the encoded rows are no longer there"):
        file[:5]
    with pytest.raises(InputError, match="the encoded rows are no longer there"):
        file[[3]]
    path.unlink()
    with pytest.raises(InputError):
        file[:5]


def test_an_error_of_some_rows_names_those_that_were_read_once(tmp_path: Path) -> None:
    path = tmp_path / "y.parquet"
    pl.DataFrame({"a": range(400)}).write_parquet(path, row_group_size=64)
    table = open_table(path, in_memory_rows=100, part_rows=64)
    assert isinstance(table, PartedTable)
    some = some_rows(some_rows(table, np.array([1, 300, 301])), np.array([1, 2]))
    assert isinstance(some, PartedTable)
    assert [str(part) for part in some.parts] == ["rows 257 to 320 of y.parquet"]
    path.unlink()
    with pytest.raises(InputError, match=r"^Rows 257 to 320: [^:]*y\.parquet: ") as caught:
        take_rows(table, np.array([300]), Execution())
    assert str(caught.value).count("ows ") == 1
