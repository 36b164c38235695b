"""Whatever a file holds, it is read as expected or refused in one line."""

from __future__ import annotations

from pathlib import Path

import polars as pl
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


@pytest.mark.parametrize(
    "data",
    [b"a,b\n" + b",\n" * 500_000, b"a,b\n1,2\n" + b"\n" * 999_999, b"," * 999_999 + b"\n1"],
    ids=["empty_cells", "empty_lines", "empty_names"],
)
@pytest.mark.parametrize("quote", [b"", b'1"x,2\n'], ids=["regular", "stray_quote"])
def test_many_cells_in_few_bytes_are_refused_before_they_are_cut(
    data: bytes, quote: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cells.csv"
    path.write_bytes(data + quote)
    # Ten times the file would do for text, and not for positions and objects.
    monkeypatch.setattr(limits, "available_memory", lambda: 10 * len(data))
    with pytest.raises(MemoryLimitError, match="split the file"):
        read_table(path)


def test_a_long_text_in_every_row_is_refused_however_small_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "texts.parquet"
    pl.DataFrame({"a": range(2000), "t": ["x" * 100_000, "y"] * 1000}).write_parquet(path)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(limits, "available_memory", lambda: 400_000_000)
    with pytest.raises(MemoryLimitError, match=r"needs about 0\.7 GB"):
        read_table(path)


def test_more_text_than_anyone_screens_is_refused_on_any_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "texts.parquet"
    pl.DataFrame({"a": range(12_000), "t": ["x" * 100_000] * 12_000}).write_parquet(path)
    monkeypatch.setattr(limits, "available_memory", lambda: 10**12)
    with pytest.raises(MemoryLimitError, match=r"text cells unpack to 1\.1 GB"):
        read_table(path)


def test_a_narrow_table_of_very_many_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    pl.select(x=pl.repeat(0, 1_000_000, dtype=pl.Int8)).write_parquet(path)
    # 64 bytes a cell would do for the cells, and not for what each row gets.
    monkeypatch.setattr(limits, "available_memory", lambda: 100_000_000)
    with pytest.raises(MemoryLimitError, match="split the file"):
        read_table(path)


@pytest.mark.parametrize("file", ["number_and_spaces", "spaces_between_numbers", "names_alike"])
def test_nothing_takes_time_that_grows_with_the_square_of_a_cell(file: str, tmp_path: Path) -> None:
    # Each took minutes, so a test that hangs here has found one of them again.
    n = 120_000
    data = {
        "number_and_spaces": b"1" + b" " * n + b"x,b\n1,2\n",
        "spaces_between_numbers": b"a b\n1 2\n3" + b" " * n + b"4\n",
        "names_alike": b",".join([b"x"] * 20_000) + b"\n" + b",".join([b"1"] * 20_000),
    }[file]
    path = tmp_path / "table.csv"
    path.write_bytes(data)
    table = read_table(path)
    assert table.frame.width in (2, 20_000)
    assert len(table.source.notes) < 30


def test_message_about_a_hostile_file_name_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(KpcaError) as caught:
        read_table(tmp_path / "no\nsuch\x1b[31m\u202efile.csv")
    assert str(caught.value).isprintable()
