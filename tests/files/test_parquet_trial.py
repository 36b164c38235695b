"""Parquet on trial in another process: its end is not the end of this one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest

from kpca_apps.errors import InputError
from kpca_apps.files import parquet_trial
from kpca_apps.files.known import KnownFile
from kpca_apps.files.opening import open_table
from kpca_apps.files.parquet_trial import require_readable
from kpca_apps.files.parquet_trial_run import read_to_the_end

FRAME = pl.DataFrame({"^.*$": range(100), "*": [str(k) for k in range(100)], "rows": [[1]] * 100})


def written(path: Path, *, damaged: bool = False) -> KnownFile:
    FRAME.write_parquet(path, compression="uncompressed")
    if damaged:
        data = bytearray(path.read_bytes())
        data[4:60] = b"\xff" * 56
        path.write_bytes(data)
    return KnownFile.at(path, path.name)


def test_sound_files_pass(tmp_path: Path) -> None:
    require_readable([written(tmp_path / "a.parquet"), written(tmp_path / "b.parquet")])


def test_the_file_that_cannot_be_read_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "a.parquet")
    written(tmp_path / "b.parquet", damaged=True)
    with pytest.raises(InputError, match=r"b\.parquet: not a readable Parquet file \(.*\); export"):
        open_table(tmp_path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("by_column", [True, False])
def test_columns_are_read_together_or_one_by_one(by_column: bool, tmp_path: Path) -> None:
    read_to_the_end(written(tmp_path / "a.parquet").path, by_column=by_column)
    with pytest.raises(pl.exceptions.PolarsError):
        read_to_the_end(written(tmp_path / "b.parquet", damaged=True).path, by_column=by_column)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("import os; os.abort()", "code -6"),
        ("raise SystemExit(3)", "code 3"),
        (
            "import os; os.write(2, b'memory allocation of 9 bytes failed\\nstack'); os.abort()",
            r"memory allocation of 9 bytes failed\)",
        ),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="codes of signals")
def test_a_process_that_ends_early_is_told_by_its_file(
    end: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [written(tmp_path / f"{name}.parquet") for name in "abc"]
    monkeypatch.setattr(parquet_trial, "_START", f"print(0); print(1, flush=True); {end}")
    with pytest.raises(InputError, match=rf"^b\.parquet: not a readable Parquet .*{words}"):
        require_readable(files)


@pytest.mark.parametrize("start", ["raise SystemExit(3)", "print(0)"])
def test_a_process_that_could_not_begin_says_nothing_of_the_files(
    start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_trial, "_START", start)
    require_readable([written(tmp_path / "a.parquet", damaged=True)])


def test_what_is_told_survives_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    code = f"import sys; open({str(asked)!r}, 'wb').write(sys.stdin.buffer.read())"
    monkeypatch.setattr(parquet_trial, "_START", code)
    file = written(tmp_path / 'a\n"b.parquet')
    require_readable([file])
    assert json.loads(asked.read_bytes())["files"] == [[file.path, False]]
