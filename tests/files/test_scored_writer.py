"""Scored tables in parts: the file a whole table gives, or none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.errors import ConfigError
from kpca_apps.files.scored import scored_bytes, write_scored
from kpca_apps.files.scored_writer import ScoredWriter, check_scored_path
from kpca_apps.files.tables.opening import open_table, read_table
from kpca_apps.files.tables.table import PartedTable
from tests.hostile.tables import hostile_csv

N_ROWS = 60


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "hostile.csv"
    path.write_bytes(hostile_csv(N_ROWS))
    return path


def written_in_parts(source: Path, path: Path, size: int) -> dict[str, np.ndarray | None]:
    scores = np.random.default_rng(0).lognormal(sigma=9, size=N_ROWS)
    extra = {"novelty_score": scores, "p_value": None, "flagged": scores > 1}
    table = open_table(source, in_memory_rows=0, part_rows=size)
    assert isinstance(table, PartedTable)
    with ScoredWriter(path) as writer:
        for part in table.parts:
            of_part = {
                name: None if values is None else values[part.start : part.stop]
                for name, values in extra.items()
            }
            data = scored_bytes(part.read(), of_part, writer.kind, header=part.number == 0)
            writer.append(data)
    return extra


@pytest.mark.parametrize("size", [7, 60])
def test_csv_in_parts_has_the_bytes_of_the_whole(size: int, source: Path, tmp_path: Path) -> None:
    extra = written_in_parts(source, tmp_path / "parts.csv", size)
    write_scored(read_table(source), extra, tmp_path / "whole.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.parametrize("size", [7, 60])
def test_parquet_in_parts_has_the_rows_of_the_whole(
    size: int, source: Path, tmp_path: Path
) -> None:
    extra = written_in_parts(source, tmp_path / "parts.parquet", size)
    write_scored(read_table(source), extra, tmp_path / "whole.parquet")
    parts, whole = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("parts", "whole"))
    assert parts.equals(whole)
    assert parts.schema == whole.schema
    assert {item.name for item in tmp_path.iterdir()} == {
        "hostile.csv", "parts.parquet", "whole.parquet",
    }  # fmt: skip


def test_parquet_in_parts_has_the_same_bytes_each_time(source: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        written_in_parts(source, tmp_path / f"{name}.parquet", 7)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_nothing_is_left_of_a_file_that_was_not_finished(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"scored.{suffix}"
    path.write_bytes(b"as it was")
    with pytest.raises(KeyboardInterrupt), ScoredWriter(path) as writer:
        writer.append(b"x\n1\n")
        raise KeyboardInterrupt
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"as it was"


def test_formats_are_known_by_their_suffix() -> None:
    assert check_scored_path("a/b.PQ") == "parquet"
    with pytest.raises(ConfigError, match=r'is written as "\.csv" or "\.parquet"'):
        ScoredWriter("scored.txt")
