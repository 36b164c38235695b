"""Hidden temporary files are kept while their process lives, and removed afterwards."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kpca_apps.system.files.temporary import TemporaryPath, lock, remove_leftovers, retired_path

HOLDING = """
import sys, time
from pathlib import Path
from kpca_apps.system.files.temporary import TemporaryPath
held = TemporaryPath(Path(sys.argv[1]), folder=sys.argv[2] == "folder")
print(held.path, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_files_of_a_live_run_are_kept(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "run"
    command = [sys.executable, "-c", HOLDING, target, kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        held = Path(other.stdout.readline().strip())
        mine = TemporaryPath(target)
        remove_leftovers(target)
        assert held.exists()
        assert mine.path.exists()
        other.send_signal(signal.SIGKILL)
    remove_leftovers(target)
    assert list(tmp_path.iterdir()) == [mine.path]
    mine.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_removed_before_its_lock_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, touch = tmp_path / "file", Path.touch

    def clear_at_once(self: Path, *arguments: object, **options: object) -> None:
        touch(self)
        monkeypatch.setattr(Path, "touch", touch)
        remove_leftovers(target)
        assert not self.exists()

    monkeypatch.setattr(Path, "touch", clear_at_once)
    held = TemporaryPath(target)
    remove_leftovers(target)
    assert held.path.exists()


def test_links_and_pipes_are_not_leftovers(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    target = tmp_path / "run"
    link, pipe = retired_path(target), retired_path(target).with_suffix(".partial")
    link.symlink_to(tmp_path / "mine")
    os.mkfifo(pipe)
    remove_leftovers(target)  # opening the pipe would wait forever for a writer
    assert link.is_symlink()
    assert (tmp_path / "mine").exists()


def test_a_forked_process_removes_nothing_of_its_parent(tmp_path: Path) -> None:
    held = TemporaryPath(tmp_path / "run", folder=True)
    child = os.fork()
    if not child:
        held.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert held.path.exists()


def test_a_file_on_a_network_drive_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def flock_of_nfs(number: int, how: int) -> None:
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "an exclusive lock needs a file opened for writing")
        flock(number, how)

    monkeypatch.setattr(fcntl, "flock", flock_of_nfs)
    (tmp_path / "file").touch()
    assert lock(tmp_path / "file") is not None
    with pytest.raises(BlockingIOError):
        lock(tmp_path / "file")
