"""Hive-partitioned folders are read as the table they were partitioned from."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from kpca_apps import screen_table
from kpca_apps.errors import ConfigError, InputError
from kpca_apps.novelty.explain import Line, explain_row
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.opening import open_table
from kpca_apps.tables.read.hive import frame_of_values
from kpca_apps.tables.table import Table

ROWS = pl.DataFrame(
    {
        "size": np.round(np.random.default_rng(7).normal(50, 9, 120), 2),
        "year": np.repeat([2023, 2024], 60),
        "zone": (["01"] * 30 + ["02"] * 30) * 2,
    }
)


def write_partitioned(frame: pl.DataFrame, folder: Path, *columns: str) -> None:
    """Write Hive partitions with pyarrow; their names sort in row order."""
    layout = ds.partitioning(frame.to_arrow().select(columns).schema, flavor="hive")
    ds.write_dataset(frame.to_arrow(), folder, format="parquet", partitioning=layout)


def frame_of(path: Path, in_memory: int = 10_000) -> pl.DataFrame:
    table = open_table(path, in_memory_rows=in_memory, part_rows=16)
    return pl.concat([part.frame for part in table.tables()])


@pytest.mark.parametrize("in_memory", [10, 10_000])
def test_folders_give_the_columns_they_are_named_after(in_memory: int, tmp_path: Path) -> None:
    write_partitioned(ROWS, tmp_path, "year", "zone")
    assert frame_of(tmp_path, in_memory).equals(ROWS)
    assert open_table(tmp_path).source.notes[1] == 'Named after folders: "year" and "zone".'


@pytest.mark.release
def test_scores_are_those_of_one_file_to_the_bit(tmp_path: Path) -> None:
    write_partitioned(ROWS, tmp_path / "folders", "year", "zone")
    ROWS.write_parquet(tmp_path / "flat.parquet")
    results = [screen_table(tmp_path / name) for name in ("folders", "flat.parquet")]
    assert np.array_equal(results[0].rows.scores, results[1].rows.scores)
    names = [[column.name for column in result.columns] for result in results]
    assert names == [ROWS.columns, ROWS.columns]


def test_values_are_of_the_type_that_all_have(tmp_path: Path) -> None:
    days = [date(2024, 1, 31), date(2024, 2, 29), None]
    names = ["a/b", "ä =%", None]
    codes = ["7", "07", "-7"]
    for number, (day, name, code) in enumerate(zip(days, names, codes, strict=True)):
        frame = pl.DataFrame({"x": [number]}).with_columns(
            pl.lit(day, pl.Date).alias("day"),
            pl.lit(name, pl.String).alias("name"),
            code=pl.lit(code),
        )
        write_partitioned(frame, tmp_path / str(number), "day", "name", "code")
        for path in (tmp_path / str(number)).rglob("*.parquet"):
            target = tmp_path / "all" / path.relative_to(tmp_path / str(number))
            target.parent.mkdir(parents=True)
            path.rename(target)
    found = frame_of(tmp_path / "all").sort("x")
    assert found.to_dict(as_series=False) == {
        "x": [0, 1, 2], "day": days, "name": names, "code": codes
    }  # fmt: skip


def test_digits_of_other_scripts_are_text() -> None:
    assert frame_of_values([{"year": "1\u0662"}]).rows() == [("1\u0662",)]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_that_are_named_one_by_one_keep_the_columns(suffix: str, tmp_path: Path) -> None:
    for values, rows in ROWS.group_by("year", "zone", maintain_order=True):
        folder = tmp_path.joinpath(*map("{}={}".format, ("year", "zone"), values))
        folder.mkdir(parents=True)
        rows = rows.drop("year", "zone")
        (rows.write_csv if suffix == ".csv" else rows.write_parquet)(folder / f"a{suffix}")
    expected = frame_of(tmp_path).select(ROWS.columns)
    for paths in (str(tmp_path / "*" / "zone=*" / "a.*"), sorted(tmp_path.rglob(f"a{suffix}"))):
        table = open_table(paths)
        assert isinstance(table, Table) and table.frame.columns == [*ROWS.columns, "file"]
        assert table.frame.drop("file").equals(expected)
        files = table.frame["file"].unique(maintain_order=True).to_list()
        assert files == [f"a{suffix} #{number}" for number in range(1, 5)]
    # Below "year=2024", all files share the year, so the year is no column.
    assert open_table(str(tmp_path / "year=2024" / "*" / "*")).columns == ("size", "zone", "file")
    (tmp_path / "site=1").mkdir()
    own = tmp_path / "year=2023" / "zone=01" / f"a{suffix}"
    own.rename(tmp_path / "site=1" / own.name)
    assert open_table(sorted(tmp_path.rglob(own.name))).columns == ("size", "file")


@pytest.mark.parametrize("name", ["run=2", "a%00b=1"])
def test_files_that_are_not_all_under_the_same_columns_get_none(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    for path in (paths := [tmp_path / "a.csv", tmp_path / name / "a.csv"]):
        path.write_text("size\n5\n")
    table = open_table(paths)
    assert table.columns == ("size", "file") and isinstance(table, Table)
    assert table.frame["file"].to_list() == ["a.csv", f"{name}/a.csv"]


def test_columns_that_are_in_the_files_as_well_are_theirs(tmp_path: Path) -> None:
    (tmp_path / "year=1").mkdir()
    ROWS.write_parquet(tmp_path / "year=1" / "a.parquet")
    assert frame_of(tmp_path).equals(ROWS)


def test_text_in_folders_has_the_columns_as_text(tmp_path: Path) -> None:
    for zone, text in (("01", "size\n5\n"), ("02", "size\n6\n7\n")):
        (tmp_path / f"zone={zone}").mkdir()
        (tmp_path / f"zone={zone}" / "a.csv").write_text(text)
    table = open_table(tmp_path)
    assert isinstance(table, Table)
    assert table.frame.rows() == [
        ("5", "01", "a.csv #1"), ("6", "02", "a.csv #2"), ("7", "02", "a.csv #2"),
    ]  # fmt: skip
    assert table.frame.columns == ["size", "zone", "file"]
    assert table.lines is not None and table.lines.tolist() == [2, 2, 3]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_one_folder_is_another_table_by_another_name_and_hides_it(
    suffix: str, tmp_path: Path
) -> None:
    sources = []
    for zone in ("Ulm", "Bonn"):
        folder = tmp_path / zone / "all" / f"zone={zone}"
        folder.mkdir(parents=True)
        rows = pl.DataFrame({"x": [1, 2]})
        write = rows.write_csv if suffix == ".csv" else rows.write_parquet
        write(folder / f"a{suffix}")
        table = open_table(tmp_path / zone / "all")
        assert isinstance(table, Table) and table.frame["zone"].to_list() == [zone] * 2
        shown = [table.source.name, *table.source.notes, *map(str, table.frame.drop("zone").rows())]
        assert not any(zone in text for text in shown)
        sources.append(table.source)
    assert sources[0].fingerprint != sources[1].fingerprint


def _beside(folder: Path) -> None:
    ROWS.write_parquet(folder / "year=2023" / "a.parquet")
    (folder / "year=2023" / "zone=1").mkdir()


def _unlike(folder: Path) -> None:
    ROWS.write_parquet(folder / "year=2023" / "a.parquet")
    (folder / "year=2024" / "zone=1").mkdir(parents=True)
    ROWS.write_parquet(folder / "year=2024" / "zone=1" / "a.parquet")


def _iceberg(folder: Path) -> None:
    (folder / "metadata").mkdir()
    (folder / "metadata" / "v1.metadata.json").touch()


def _twice(folder: Path) -> None:
    (folder / "year=2023" / "year=2023").symlink_to(folder)
    (folder / "year=2023" / "more").mkdir()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_beside, "zone=1: is a folder beside the tables of .*year=2023"),
        (_unlike, r"folders are named after other columns \(year, zone\) than those of year=2023"),
        (_twice, "more: is not named like the other folders"),
        (lambda folder: (folder / "a%00b=1").mkdir(), "its name holds characters"),
        (lambda folder: (folder / "zone=\udcff").mkdir(), "its name holds characters"),
        (_iceberg, "this is an Iceberg table; read it with pyiceberg"),
        (lambda folder: None, "this is a folder without"),
    ],
)
def test_folders_that_make_no_table_are_refused(
    make: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    (tmp_path / "year=2023").mkdir()
    make(tmp_path)
    with pytest.raises(InputError, match=message):
        open_table(tmp_path)


@pytest.mark.parametrize("option", [{"delimiter": ";"}, {"as_of": 3}, {"sheet": 1}])
def test_options_of_other_kinds_do_not_apply(option: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "year=2023").mkdir()
    ROWS.write_parquet(tmp_path / "year=2023" / "a.parquet")
    with pytest.raises(ConfigError, match="does not apply to Parquet"):
        open_table(tmp_path, **option)


def test_arrow_and_this_read_the_same(tmp_path: Path) -> None:
    write_partitioned(ROWS, tmp_path, "year")
    theirs = ds.dataset(tmp_path, partitioning="hive").to_table()
    assert isinstance(theirs, pa.Table)
    assert (
        pl.DataFrame(theirs)
        .select(ROWS.columns)
        .cast({"year": pl.Int64})
        .sort("size")
        .equals(frame_of(tmp_path).select(ROWS.columns).sort("size"))
    )


def test_files_of_one_name_are_distinguished_without_the_values_of_their_folders(
    tmp_path: Path,
) -> None:
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        ROWS.filter(pl.col("year") == year).write_csv(tmp_path / f"year={year}" / "x.csv")
    ROWS.write_csv(tmp_path / "year=2024" / "y.csv")
    table = open_table(str(tmp_path / "*" / "*.csv"))
    assert isinstance(table, Table)
    files = table.frame["file"].unique(maintain_order=True).to_list()
    assert files == ["x.csv #1", "x.csv #2", "y.csv"]
    assert "of one name are numbered" in table.source.notes[0]
    model, _ = fit_table(table, ScreeningOptions())
    each = r"3 rows start on line 3: rows 2 of x.csv #1, 62 of x.csv #2, 122 of y.csv; name one, as"
    with pytest.raises(InputError, match=each):
        explain_row(model, table, row=Line(3))
