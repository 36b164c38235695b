"""The script for large tables plants outliers and writes the same table in every format."""

import runpy
import sys
from pathlib import Path

import polars as pl
import pytest
from scipy.spatial import KDTree
from scipy.stats import ks_2samp


def made(datasets: Path, patch: pytest.MonkeyPatch, *arguments: str) -> None:
    patch.setattr(sys, "argv", ["make_large_table.py", *arguments])
    runpy.run_path(str(datasets / "make_large_table.py"), run_name="__main__")


def test_both_formats_hold_the_same_table(
    datasets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(datasets, monkeypatch, "3000", str(tmp_path / "parts"), "--columns", "4")
    made(
        datasets, monkeypatch,
        "3000", str(tmp_path / "t.csv"), "--columns", "4", "--format", "csv",
    )  # fmt: skip
    stored = pl.read_parquet(tmp_path / "parts")
    assert stored.columns == ["x1", "x2", "x3", "x4", "planted"]
    assert stored.equals(pl.read_csv(tmp_path / "t.csv", schema=stored.schema))


def test_blocks_follow_each_other_whatever_the_number_of_rows(datasets: Path) -> None:
    script = runpy.run_path(str(datasets / "make_large_table.py"))
    n_rows = script["BLOCK_ROWS"] + 5
    first, second = script["blocks"](n_rows, 2, 0.01)
    assert (first.height, second.height) == (script["BLOCK_ROWS"], 5)
    assert first.head(5)["x1"].to_list() != second["x1"].to_list()
    assert abs(first["planted"].mean() - 0.01) < 0.001


def test_planted_rows_are_common_by_column_and_rare_together(datasets: Path) -> None:
    (table,) = runpy.run_path(str(datasets / "make_large_table.py"))["blocks"](4000, 20, 0.1)
    planted = table.filter(pl.col("planted") == 1).drop("planted").to_numpy()
    ordinary = table.filter(pl.col("planted") == 0).drop("planted").to_numpy()
    rest, held = ordinary[:2000], ordinary[2000:]
    for column in range(20):
        assert ks_2samp(planted[:, column], rest[:, column]).pvalue > 1e-4
    tree = KDTree(rest)
    far, near = tree.query(planted)[0], tree.query(held)[0]
    assert sorted(far)[len(far) // 20] > sorted(near)[len(near) // 2]
