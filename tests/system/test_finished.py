"""Finished parts are restored unchanged or not at all, and their files are removed."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.novelty.checks.odd_cells import ODD, CellFaults, ColumnFaults
from kpca_apps.novelty.evidence import Evidence, as_table
from kpca_apps.novelty.screening.encoded import _EncodedPart
from kpca_apps.system import finished
from kpca_apps.system.finished import FinishedParts, FinishedPass, work_folder
from kpca_apps.system.stores import buckets


def of_numbers(parts: FinishedParts, key: str = "key") -> FinishedPass[np.ndarray]:
    return FinishedPass(parts, key, np.ndarray)


def test_results_are_looked_up_by_all_their_inputs(tmp_path: Path) -> None:
    with work_folder(tmp_path, on_dask=True) as parts:
        assert parts is not None
        scores = np.array([0.1, np.nan, -0.0])
        of_numbers(parts).put(0, 3, scores)
        again = FinishedParts(parts.folder)
        found = of_numbers(again).get(0, 3)
        assert found.tobytes() == scores.tobytes() and found.flags.writeable
        assert of_numbers(again).get(3, 6) is None and of_numbers(again, "other").get(0, 3) is None
    assert list(tmp_path.iterdir()) == []


def test_files_of_another_run_and_those_of_one_that_failed_stay(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), work_folder(tmp_path, on_dask=True) as stopped:
        of_numbers(stopped, "stopped").put(0, 1, np.zeros(1))
        raise KeyboardInterrupt
    with work_folder(tmp_path, on_dask=True) as parts:
        of_numbers(parts).put(0, 1, np.zeros(1))
    assert len(list((tmp_path / "kpca-finished").iterdir())) == 1


def test_old_files_are_used_by_the_resumed_run_and_removed_at_its_end(tmp_path: Path) -> None:
    """The old files are of a run killed long ago, or just before the clock was set forward."""
    parts = FinishedParts(tmp_path / "kpca-finished")
    for key in ("resumed", "long ago", "of late"):
        of_numbers(parts, key).put(0, 1, np.zeros(1))
    late = parts._path("of late 0 1")
    (parts.folder / f".{late.name[:40]}.{'0' * 16}-{'1' * 16}.partial").touch()
    of_others = parts.folder / "notes.txt"
    of_others.touch()
    for path in {*parts.folder.iterdir()} - {late}:
        os.utime(path, (0, time.time() - 40 * 86400))
    with work_folder(tmp_path, on_dask=True) as later:
        assert later is not None and of_numbers(later, "resumed").get(0, 1) is not None
    assert {*parts.folder.iterdir()} == {late, of_others}


def in_a_bucket(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use a folder as a bucket; unlike in a bucket, objects need existing parent folders."""
    (folder / "work" / "kpca-finished").mkdir(parents=True)
    monkeypatch.setattr(
        buckets, "_s3", lambda *_: SubTreeFileSystem(str(folder), LocalFileSystem())
    )
    return "s3://work"


def test_in_a_bucket_old_objects_are_removed_and_none_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = in_a_bucket(tmp_path, monkeypatch)
    ours = {f"kpca-finished/{'a' * 64}.msgpack", f"kpca-rows-{'b' * 16}/{'c' * 16}.arrow"}
    of_others = {
        "kpca-finished/notes.txt", "kpca-finished-2025/scored.csv", "kpca-rows-archive/rows.csv",
        f"kpca-rows-archive/{'c' * 16}.arrow", f"kpca-rows-{'b' * 16}/rows.csv",
    }  # fmt: skip
    for name in ours | of_others:
        path = tmp_path / "work" / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (0, time.time() - 40 * 86400))
    with work_folder(address, on_dask=True):
        pass
    left = {path for path in (tmp_path / "work").rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path / "work").as_posix() for path in left} == of_others


def test_two_runs_that_share_objects_both_come_to_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = in_a_bucket(tmp_path, monkeypatch)
    with work_folder(address, on_dask=True) as stopped:
        of_numbers(stopped).put(0, 1, np.ones(1))
        with work_folder(address, on_dask=True) as other:
            assert of_numbers(other).get(0, 1) == 1.0
        assert of_numbers(stopped).get(0, 1) is None
    assert not [path for path in (tmp_path / "work").rglob("*") if path.is_file()]


def test_a_bucket_that_fails_at_the_end_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(place: buckets.Place) -> None:
        raise InputError("is overloaded")

    address = in_a_bucket(tmp_path, monkeypatch)
    with pytest.raises(KeyboardInterrupt), work_folder(address, on_dask=True):
        monkeypatch.setattr(buckets.Place, "remove_folder", fails)
        raise KeyboardInterrupt
    with work_folder(address, on_dask=True) as parts:
        of_numbers(parts).put(0, 1, np.ones(1))
    assert not [path for path in (tmp_path / "work").rglob("*") if path.is_file()]


def test_a_folder_that_another_run_removes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, other = (FinishedParts(tmp_path / "kpca-finished") for _ in range(2))
    write, removed = finished.atomic_write, list[bool]()

    def after_the_other(path: Path) -> object:
        if not removed:
            other.remove()
            removed.append(not parts.folder.exists())
        return write(path)

    monkeypatch.setattr(finished, "atomic_write", after_the_other)
    of_numbers(parts).put(0, 1, np.ones(1))
    assert removed == [True]
    assert of_numbers(parts).get(0, 1) == 1.0


@given(cut=st.integers(0, 600), flipped=st.integers(0, 600))
def test_a_damaged_file_is_ignored(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flipped: int
) -> None:
    parts = FinishedParts(tmp_path_factory.mktemp("finished"))
    numbers = of_numbers(parts)
    numbers.put(0, 8, np.arange(8.0))
    (file,) = parts.folder.iterdir()
    content = bytearray(file.read_bytes())
    content[flipped % len(content)] ^= 1
    file.write_bytes(content[: max(len(content) - cut, 0)])
    found = numbers.get(0, 8)
    assert found is None or found.tobytes() == np.arange(8.0).tobytes()


def test_findings_on_cells_are_restored_unchanged(tmp_path: Path) -> None:
    value = (0, 0, "far above", "9é", 3.5, np.nan, 2, [1, 7], [2, 8])
    odd = pl.DataFrame([value], schema=ODD, orient="row")
    says = "ZIP says Roma."
    cell = Evidence(1, "city", "contradicted", -4.6, "Rom", "Roma", "Roma", 9, says, ("zip",))
    used = ColumnFaults(9, 1, 1, 4, "?")
    contradicted = as_table([cell]).with_columns(line=2)
    faults = CellFaults((used,), (1, 0), odd, 2, contradicted)
    part = _EncodedPart(np.zeros((2, 3)), faults, np.arange(2, dtype=np.uint64), np.ones(2))
    kept = FinishedPass(FinishedParts(tmp_path / "parts"), "key", _EncodedPart)
    kept.put(0, 2, part)
    again = kept.get(0, 2)
    assert again is not None
    assert repr(again.faults) == repr(faults)  # NaN is not equal to itself
    assert_frame_equal(again.faults.contradicted, contradicted)
    np.testing.assert_array_equal(again.hashes, part.hashes)
    np.testing.assert_array_equal(again.surprise, part.surprise)


def test_a_work_folder_is_for_clusters_and_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--work-dir is for Dask workers only"):
        work_folder(tmp_path, on_dask=False).__enter__()
    with pytest.raises(InputError, match=r"missing: no such folder; make it where all workers"):
        work_folder(tmp_path / "missing", on_dask=True).__enter__()
    with work_folder(None, on_dask=False) as none:
        assert none is None


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "kpca-finished", tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    for is_link in (False, True):
        if is_link:
            folder.rmdir()
            folder.symlink_to(elsewhere)
        else:
            folder.mkdir()
            folder.chmod(0o777)
        with pytest.raises(InputError, match="others may write there"):
            work_folder(tmp_path, on_dask=True).__enter__()


def test_files_without_arrays_are_ignored(tmp_path: Path) -> None:
    parts = FinishedParts(tmp_path / "kpca-finished")
    of_numbers(parts).put(0, 1, np.zeros(1))
    for content in (b"", b"PK\x03\x04 of a zip", b"\x93\xa3<f8\x91\x02\xc4\x01x"):
        parts._path("key 0 1").write_bytes(hashlib.sha256(content).digest() + content)
        assert of_numbers(parts).get(0, 1) is None
