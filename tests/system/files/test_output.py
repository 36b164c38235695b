"""Output folders and files are complete or absent; only a run's own output is replaced."""

from __future__ import annotations

import errno
import json
import math
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kpca_apps.errors import InputError, RefusedError
from kpca_apps.system.files import output
from kpca_apps.system.files.output import MARKER, OutputFolder, atomic_write
from kpca_apps.system.files.temporary import TemporaryPath, retired_path


def make_run(path: Path, text: str) -> None:
    with OutputFolder(path, force=True) as building:
        (building / MARKER).write_text(json.dumps({"text": text}), encoding="utf-8")
        (building / "figures").mkdir()
        (building / "figures" / "scree.png").write_bytes(b"png")


def text_of(path: Path) -> str:
    return str(json.loads((path / MARKER).read_text(encoding="utf-8"))["text"])


def test_folder_appears_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with OutputFolder(path) as building:
        (building / MARKER).write_text('{"seconds": 1}', encoding="utf-8")
        (building / "figures").mkdir()
        (building / "figures" / "scree.png").touch()
        assert not path.exists()
    assert json.loads((path / MARKER).read_text(encoding="utf-8")) == {
        "tool": "kpca",
        "seconds": 1,
        "files": ["figures/scree.png", "run.json"],
    }
    assert list(tmp_path.iterdir()) == [path]


def test_what_late_workers_left_is_not_published(tmp_path: Path) -> None:
    for _ in range(2):
        with OutputFolder(tmp_path / "run", force=True) as building:
            for name in (".scored.csv.partial", "scored.parquet"):
                (building / name).mkdir()
                (building / name / ".part-000001.parquet.late").touch()
            (building / "scored.parquet" / "part-000001.parquet").touch()
    assert {item.name for item in (tmp_path / "run").rglob("*")} == {
        *("scored.parquet", "part-000001.parquet", MARKER)
    }
    marker = json.loads((tmp_path / "run" / MARKER).read_text(encoding="utf-8"))
    assert marker["files"] == ["scored.parquet/part-000001.parquet"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("earlier", [True, False])
def test_an_error_keeps_the_earlier_run(
    tmp_path: Path, error: type[BaseException], earlier: bool
) -> None:
    path = tmp_path / "run"
    if earlier:
        make_run(path, "first")
    with pytest.raises(error), OutputFolder(path, force=True) as building:
        (building / MARKER).write_text("half", encoding="utf-8")
        raise error
    assert list(tmp_path.iterdir()) == ([path] if earlier else [])
    if earlier:
        assert text_of(path) == "first"


def test_an_earlier_run_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "run"
    make_run(path, "first")
    with pytest.raises(RefusedError, match=r"exists already; replace it with --force") as caught:
        OutputFolder(path).check()
    assert caught.value.exit_code == 4
    make_run(path, "second")
    assert text_of(path) == "second"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("force", [True, False])
def test_a_foreign_folder_is_never_replaced(tmp_path: Path, force: bool) -> None:
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with (
        pytest.raises(RefusedError, match=r'something other than an earlier run, "thesis\.tex"'),
        OutputFolder(tmp_path, force=force),
    ):
        pass
    assert (tmp_path / "thesis.tex").read_text(encoding="utf-8") == "years of work"


@pytest.mark.parametrize(
    "marker",
    ['{"name": "package"}', "[]", '{"tool": "kpca"', '{"tool": "kpca", "files": 1}', "[" * 99_999],
)
def test_a_foreign_marker_protects_its_folder_too(tmp_path: Path, marker: str) -> None:
    (tmp_path / "thesis.tex").touch()
    (tmp_path / MARKER).write_text(marker, encoding="utf-8")
    with pytest.raises(RefusedError):
        OutputFolder(tmp_path, force=True).check()


@pytest.mark.parametrize("added", ["notes.txt", "figures/mine.png", "more/notes.txt", "empty/"])
def test_a_file_added_to_an_earlier_run_is_never_removed(tmp_path: Path, added: str) -> None:
    path = tmp_path / "run"
    make_run(path, "first")
    item = path / added
    if added.endswith("/"):
        item.mkdir()
    else:
        item.parent.mkdir(exist_ok=True)
        item.touch()
    with pytest.raises(RefusedError, match=f'"{added.split("/")[0]}'):
        make_run(path, "second")
    assert item.exists()
    assert text_of(path) == "first"


@pytest.mark.parametrize("nested", [True, False])
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, nested: bool) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        pytest.raises(InputError, match="run: no space left"),
        OutputFolder(f"{tmp_path}/run") as b,
    ):
        if nested:
            with atomic_write(b / "model") as file:
                file.write(b"half")
                raise full
        raise full
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_a_killed_run_are_removed_by_the_next(tmp_path: Path) -> None:
    killed = (
        "import os, signal; from kpca_apps.system.files.output import OutputFolder\n"
        f"with OutputFolder({str(tmp_path / 'run')!r}) as b:\n"
        "    (b / 'half').touch()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == -9
    [left] = tmp_path.iterdir()
    assert left.name.startswith(".run.")
    alive = TemporaryPath(tmp_path / "run", folder=True)
    other = tmp_path / ".run.mine.partial"
    other.touch()
    make_run(tmp_path / "run", "first")
    assert {item.name for item in tmp_path.iterdir()} == {"run", alive.path.name, other.name}


def replace_and_die(path: Path, step: int) -> bool:
    """Replace a run in a process killed before the given disk step; False if it finished."""
    child = os.fork()
    if not child:
        left = [step]

        def count(event: str, arguments: tuple[object, ...]) -> None:
            if event.startswith(("os.", "shutil.", "open", "ctypes.")):
                left[0] -= 1
                if not left[0]:
                    os._exit(9)

        sys.addaudithook(count)
        make_run(path, "second")
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.release
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be killed anywhere")
@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_kill_at_any_step_leaves_a_complete_run(
    tmp_path: Path, in_one_step: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    if not in_one_step:
        monkeypatch.setattr(output, "exchanged", lambda one, other: False)
    elif not trades_names(tmp_path):
        pytest.skip("this disk cannot exchange two folders")
    step, texts = 1, []
    make_run(path, "first")
    while replace_and_die(path, step):
        if in_one_step:
            assert text_of(path) in ("first", "second")
        OutputFolder(path, force=True).check()
        assert [item.name for item in tmp_path.iterdir()] == ["run"]
        assert (path / "figures" / "scree.png").read_bytes() == b"png"
        texts.append(text_of(path))
        make_run(path, "first")
        step += 1
    assert step > 10
    # Killed before some step, the old text remains; killed later, the new text is in place.
    assert texts == sorted(texts)
    assert text_of(path) == "second"


def trades_names(folder: Path) -> bool:
    for name in ("one", "other"):
        (folder / name).mkdir()
    (folder / "one" / "it").touch()
    done = output.exchanged(folder / "one", folder / "other")
    assert (folder / ("other" if done else "one") / "it").exists()
    for name in ("one", "other"):
        shutil.rmtree(folder / name)
    return done


def test_an_earlier_run_moved_aside_is_restored_without_force(tmp_path: Path) -> None:
    make_run(tmp_path / "run", "first")
    (tmp_path / "run").rename(retired_path(tmp_path / "run"))
    with pytest.raises(RefusedError):
        OutputFolder(tmp_path / "run").check()
    assert text_of(tmp_path / "run") == "first"
    assert list(tmp_path.iterdir()) == [tmp_path / "run"]


LONG_NAME = "Experiment_2026-11-22_plate03_well_A01_rep1_field0"


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize(("killed", "other"), [("0", "1"), ("1", "0")])
def test_leftovers_are_never_taken_by_a_run_with_a_similar_name(
    tmp_path: Path, killed: str, other: str, force: bool
) -> None:
    first, second = tmp_path / (LONG_NAME + killed), tmp_path / (LONG_NAME + other)
    make_run(first, "killed")
    # A kill between the renames: the earlier run is moved away, the new one not yet in place.
    first.rename(retired_path(first))
    retired_path(first).with_suffix(".partial").mkdir()
    before = sorted(tmp_path.iterdir())
    with OutputFolder(second, force=force) as building:
        (building / MARKER).write_text('{"text": "other"}', encoding="utf-8")
    assert sorted(tmp_path.iterdir()) == sorted([*before, second])
    with OutputFolder(second, force=True) as building:
        (building / MARKER).write_text('{"text": "again"}', encoding="utf-8")
    assert sorted(tmp_path.iterdir()) == sorted([*before, second])
    with pytest.raises(RefusedError):
        OutputFolder(first).check()
    assert text_of(first) == "killed"
    assert text_of(second) == "again"
    assert sorted(tmp_path.iterdir()) == sorted([first, second])


def test_a_link_is_never_followed(tmp_path: Path) -> None:
    make_run(tmp_path / "elsewhere", "kept")
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RefusedError, match="is a link"):
        OutputFolder(tmp_path / "run", force=True).check()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "scree.png").touch()
    shutil.rmtree(tmp_path / "elsewhere" / "figures")
    (tmp_path / "elsewhere" / "figures").symlink_to(tmp_path / "outside")
    with pytest.raises(RefusedError, match='"figures"'):
        make_run(tmp_path / "elsewhere", "replaced")
    assert (tmp_path / "outside" / "scree.png").exists()


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(RefusedError, match="is a file"):
        OutputFolder(tmp_path / "run", force=True).check()


@pytest.mark.parametrize("name", ["nowhere/run", "a\0b", "x" * 300])
def test_an_uncreatable_folder_gives_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught, OutputFolder(f"{tmp_path}/{name}"):
        pass
    assert str(caught.value).isprintable()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_made_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(RefusedError), OutputFolder(path):
        path.mkdir()
        (path / "other").touch()
    assert [item.name for item in path.iterdir()] == ["other"]
    assert list(tmp_path.iterdir()) == [path]


def test_without_force_the_first_of_two_concurrent_runs_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    rename = Path.rename

    def other_first(self: Path, target: Path) -> Path:
        """Let the other process finish between the check and the move."""
        monkeypatch.setattr(Path, "rename", rename)
        make_run(path, "first")
        return self.rename(target)

    with pytest.raises(RefusedError), OutputFolder(path) as building:
        (building / MARKER).write_text('{"text": "second"}', encoding="utf-8")
        monkeypatch.setattr(Path, "rename", other_first)
    assert text_of(path) == "first"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a place without folders")
def test_an_unwritable_folder_is_reported_by_the_check() -> None:
    with pytest.raises(InputError, match=r"^/proc/run: cannot be made \("):
        OutputFolder("/proc/run").check()


def test_the_folder_above_may_be_named_by_dots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    assert OutputFolder("../run").path == tmp_path / "run"
    assert OutputFolder(".").path == tmp_path / "inside"
    assert OutputFolder("..").path == tmp_path


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, ValueError])
def test_an_error_keeps_the_earlier_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(b"before")
    with pytest.raises(error), atomic_write(path) as file:
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_larger_than_the_system_allows_is_one_line(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with (
            pytest.raises(InputError, match=r"file\.txt: cannot be written \(File too large\)"),
            atomic_write(tmp_path / "file.txt") as file,
        ):
            file.write(bytes(1_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    with atomic_write(tmp_path / "file.txt") as file:
        file.write(b"x")
    assert (tmp_path / "file.txt").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("name", ["nowhere/file.txt", ".", "a\0b"])
def test_an_unwritable_file_gives_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught, atomic_write(f"{tmp_path}/{name}"):
        pass
    assert str(caught.value).isprintable()
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_wrote_no_number_is_replaced_by_force(tmp_path: Path) -> None:
    for value in (math.nan, 1.0):
        with OutputFolder(tmp_path / "run", force=True) as building:
            (building / "run.json").write_text(json.dumps({"threshold": value}))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["threshold"] == 1.0
