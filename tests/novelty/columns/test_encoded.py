"""Encoded rows in a file: what was written is read, by whoever, and nothing stays."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from kpca_apps.errors import InputError
from kpca_apps.novelty.columns.encoded import EncodedFile
from kpca_apps.system.workers import Workers
from tests.quick import quick
from tests.system.parts import RowPart, row_parts

Usage = namedtuple("Usage", "total used free")


def write_part(part: RowPart, file: EncodedFile) -> int:
    rows = np.arange(part.start, part.stop)
    file.write(part.start, np.column_stack([rows, np.sqrt(rows)]))
    return len(rows)


@pytest.mark.parametrize("executor", quick(["serial", "threads", "processes"], "serial", "threads"))
def test_parts_written_by_anyone_are_read_in_any_blocks(
    executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = EncodedFile(1_000, 2)
    with Workers(executor, n_workers=2) as workers:  # type: ignore[arg-type]
        assert sum(workers.map_partitions(write_part, row_parts(1_000, 96), file)) == 1_000
    for start, stop in ((0, 1_000), (5, 5), (90, 300), (999, 1_000)):
        rows = np.arange(start, stop)
        np.testing.assert_array_equal(
            file.rows(start, stop), np.column_stack([rows, np.sqrt(rows)])
        )
    assert any(tmp_path.iterdir())
    del file
    assert not any(tmp_path.iterdir())


def test_a_disk_without_room_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(10**9, 10**9, 0))
    with pytest.raises(InputError, match="1,000,000 rows"):
        EncodedFile(1_000_000, 30)
    assert not any(tmp_path.iterdir())


def test_rows_that_are_gone_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = EncodedFile(10, 2)
    (path,) = tmp_path.glob("*/rows") or tmp_path.glob(".*/rows")
    path.write_bytes(b"")
    with pytest.raises(InputError, match="the encoded rows are no longer there"):
        file.rows(0, 5)
    path.unlink()
    with pytest.raises(InputError):
        file.rows(0, 5)
