"""Whatever a file holds, it is read as expected or refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpca_apps.errors import InputError, KpcaError, MemoryLimitError
from kpca_apps.files import limits, raw
from kpca_apps.files.tables import read_table
from tests.hostile.tables import BROKEN, CELLS, NAMES, SURVIVABLE, bomb, hostile_csv


@pytest.mark.parametrize("name", SURVIVABLE)
def test_survivable_files_are_read(name: str, tmp_path: Path) -> None:
    data, shape = SURVIVABLE[name]
    path = tmp_path / f"{name}.csv"
    path.write_bytes(data)
    table = read_table(path)
    assert table.frame.shape == shape
    assert (table.source.n_rows, table.source.n_columns) == shape
    assert table.lines is not None
    assert table.lines.shape == (shape[0],)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    data, words = BROKEN[name]
    path = tmp_path / f"{name}.csv"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_table(path)
    message = str(caught.value)
    assert words in message
    assert f"{name}.csv" in message
    assert "\n" not in message
    assert caught.value.exit_code == 3


def test_hostile_names_and_cells_pass_unharmed(tmp_path: Path) -> None:
    path = tmp_path / "hostile.csv"
    path.write_bytes(hostile_csv(24))
    frame = read_table(path).frame
    assert tuple(frame.columns) == (*NAMES, "cells")
    assert tuple(frame["cells"].unique(maintain_order=True)) == CELLS


def test_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(bomb(40_000_000))
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(limits, "available_memory", lambda: 20_000_000)
    monkeypatch.setattr(raw, "available_memory", lambda: 20_000_000)
    with pytest.raises(MemoryLimitError, match=r"bomb\.csv\.gz: unpacks to more than") as caught:
        read_table(path)
    assert caught.value.exit_code == 4


def test_message_about_a_hostile_file_name_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(KpcaError) as caught:
        read_table(tmp_path / "no\nsuch\x1b[31m\u202efile.csv")
    assert str(caught.value).isprintable()
