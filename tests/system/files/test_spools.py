"""Spooled data in the temporary folder has room, is private, and is removed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kpca_apps.errors import InputError
from kpca_apps.system.files.spools import spool, spool_folder
from kpca_apps.system.files.windowed import spilled
from kpca_apps.tables.opening import open_table


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_])
def test_a_zero_array_has_no_visible_file(dtype: type, temporary: Path) -> None:
    array = spilled((1000,), dtype)
    assert array.dtype == dtype and array.shape == (1000,) and not array.any()
    array[::7] = 1
    assert array.sum() == 143
    if os.name == "posix":
        assert list(temporary.iterdir()) == []


def test_a_full_disk_is_reported_before_writing(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1 << 28))
    with pytest.raises(InputError, match=r"A table of 1,000 rows: .* 0\.25 GB are free; free some"):
        spilled((1000,))
    with pytest.raises(InputError, match=r"has no room"):
        spool([b"a"])
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space cannot be reserved here")
@pytest.mark.parametrize(
    ("number", "expected", "words"),
    [(28, InputError, "no space left on its disk"), (12, MemoryError, "Cannot allocate memory")],
)
def test_a_disk_or_memory_that_is_full_is_an_error_and_no_crash(
    number: int, expected: type, words: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(expected, match=words):
        spilled((1000,))


def test_a_missing_temporary_folder_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a\nb"))
    for make in (lambda: spilled((10,)), lambda: spool([b"a"]), spool_folder):
        with pytest.raises(InputError, match=r"a\\nb: no temporary file can be made .* TMPDIR"):
            make()
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    with pytest.raises(InputError, match=r"no folder for temporary files .* TMPDIR"):
        spilled((10,))


def test_a_copy_that_is_interrupted_is_removed(temporary: Path) -> None:
    def chunks():  # type: ignore[no-untyped-def]
        yield b"a"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spool(chunks())
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("is_folder", [False, True])
def test_leftovers_of_a_killed_read_are_removed_by_the_next(
    is_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = "spool_folder()" if is_folder else "spool([b'1'] * 9)"
    killed = (
        "import os, signal; from kpca_apps.system.files.spools import spool, spool_folder\n"
        f"held = {made}\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    folder = tmp_path / "temporary"
    folder.mkdir()
    table = tmp_path / "t.csv"
    table.write_bytes(b"a,b\n1,2\n")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    alive = spool([b"1"])
    done = subprocess.run(
        [sys.executable, "-c", killed], env={**os.environ, "TMPDIR": str(folder)}, check=False
    )
    assert done.returncode == -9
    assert len(list(folder.iterdir())) == 2
    open_table(table)
    assert list(folder.iterdir()) == [alive.path]


def test_written_data_are_read_back_with_bounded_memory(tmp_path: Path) -> None:
    shape = (2, 1, 3000, 5000)  # 120 MB
    array = spilled(shape, np.float32, label="a page", folder=tmp_path)
    rows = np.arange(5000, dtype=np.float32)
    before = mapped()
    for top in range(0, 3000, 500):
        array[:, :, top : top + 500] = rows + top
    assert mapped() - before < 60_000_000
    np.testing.assert_array_equal(array[1, 0, 1499:1501, 7:9], [[1007, 1008], [1507, 1508]])
    assert not list(tmp_path.iterdir())


def mapped() -> int:
    """Return how many bytes of mapped files are in this process's memory."""
    status = Path("/proc/self/status").read_text()
    return sum(
        int(status.partition(f"{kind}:")[2].split()[0]) << 10 for kind in ("RssFile", "RssShmem")
    )
