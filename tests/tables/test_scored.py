"""The scored table has the input columns, then results; spreadsheets run none of its cells."""

import csv
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.table import PartedTable, Table
from kpca_apps.tables.write import (
    Written,
    folder_of_parts,
    input_names,
    neutralise,
    scored_kind,
    scored_part,
    write_part,
    write_scored,
)
from tests.hostile.tables import CELLS, NAMES, hostile_csv

FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
EXTRA = {
    "novelty_score": np.array([0.1, 1e-300, 1 / 3]),
    "p_value": None,
    "flagged": np.array([True, False, False]),
    "rank": np.array([1, 3, 2]),
}


def write_whole(table: Table, extra: dict[str, np.ndarray | None], path: Path) -> tuple[str, ...]:
    write_scored(path, [scored_part(table, extra, scored_kind(path))])
    return input_names(table.frame.columns, extra)[1]


def read_back(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, strict=True))


def test_csv_holds_input_then_findings(tmp_path: Path) -> None:
    table = table_from_frame(pl.DataFrame({"x": ["1,50", "", "a\r\nb"], "y": [0.1, None, 2.0]}))
    assert write_whole(table, EXTRA, tmp_path / "scored.csv") == ()
    header, *rows = read_back(tmp_path / "scored.csv")
    assert header == ["x", "y", "novelty_score", "p_value", "flagged", "rank"]
    assert rows[0] == ["1,50", "0.1", "0.1", "", "true", "1"] and rows[1][:2] == ["", ""]
    assert rows[2] == ["a\r\nb", "2.0", repr(1 / 3), "", "false", "2"]


def test_parquet_holds_everything_as_it_is(tmp_path: Path) -> None:
    table = table_from_frame(pl.DataFrame({"=x": ["=1+1", "", None]}))
    write_whole(table, EXTRA, tmp_path / "scored.parquet")
    frame = pl.read_parquet(tmp_path / "scored.parquet")
    assert frame["=x"].to_list() == ["=1+1", "", None]
    assert frame["novelty_score"].to_list() == EXTRA["novelty_score"].tolist()
    assert frame["p_value"].null_count() == 3 and frame.columns == ["=x", *EXTRA]


@given(st.lists(st.floats(allow_nan=True), min_size=1, max_size=20))
def test_numbers_come_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, values: list[float]
) -> None:
    path = tmp_path_factory.mktemp("scored") / "scored.csv"
    table = table_from_frame(pl.DataFrame({"x": ["a"] * len(values)}))
    write_whole(table, {"score": np.array(values)}, path)
    for text, value in zip([row[1] for row in read_back(path)[1:]], values, strict=True):
        assert text == "" if np.isnan(value) else float(text) == value


def test_hostile_names_and_cells_are_made_safe_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "hostile.csv"
    path.write_bytes(hostile_csv(12))
    notes = write_whole(read_table(path), {"novelty_score": np.zeros(12)}, tmp_path / "scored.csv")
    header, *rows = read_back(tmp_path / "scored.csv")
    assert not any(name.startswith(FORMULA_STARTS) for name in header)
    restored = [name.removeprefix("'") for name in header[:-2]]
    given = [name.strip() for name in NAMES]
    assert restored == [{"novelty_score": "novelty_score_input"}.get(n, n) for n in given]
    assert len(notes) == 1
    cells = [row[-2] for row in rows]
    assert not any(cell.startswith(FORMULA_STARTS) for cell in cells)
    for cell, original in zip(cells, CELLS, strict=True):
        assert cell in (original, "'" + original)


@pytest.mark.parametrize(
    "cell",
    [
        "-5", "+3.2", "-1,5", "-1e3", "-.5", "-1.234,56", "-12 %", "-$5.00", "-5 €", "-",
        "+49 170", "a",
    ],
)  # fmt: skip
def test_numbers_and_plain_text_are_left_alone(cell: str) -> None:
    assert neutralise(pl.Series([cell])).to_list() == [cell]


@pytest.mark.parametrize(
    "cell",
    # Some readers drop a second byte-order mark and other invisible characters.
    [
        "\ufeff=1", "\u200b\x00@A1", "=1", "-1+1", "+A1", "@A1", "\t=1", "\r=1", "\n=1", "-1\n=2",
        "--1", "-1e", "-e1", "=", "@",
    ],
)  # fmt: skip
def test_formulas_get_an_apostrophe(cell: str) -> None:
    assert neutralise(pl.Series([cell])).to_list() == ["'" + cell]


@given(st.text(st.sampled_from("=+-@\t\r\n1.,e$% A"), max_size=6))
def test_what_is_left_alone_holds_no_operator(cell: str) -> None:
    (safe,) = neutralise(pl.Series([cell], dtype=pl.String)).to_list()
    if safe.startswith(FORMULA_STARTS):
        assert not set(safe[1:].lower().replace("e+", "e").replace("e-", "e")) & set("=+-@\t\r\na")


def test_missing_cells_stay_missing() -> None:
    assert neutralise(pl.Series([None, ""], dtype=pl.String)).to_list() == [None, ""]


def test_names_that_clash_are_renamed_and_noted(tmp_path: Path) -> None:
    frame = pl.DataFrame({"rank": ["a"], "rank_input": ["b"], "=x": ["c"], "'=x": ["d"]})
    path = tmp_path / "scored.csv"
    notes = write_whole(table_from_frame(frame), {"rank": np.array([1])}, path)
    assert read_back(path) == [
        ["rank_input_input", "rank_input", "'=x", "'=x_2", "rank"],
        ["a", "b", "c", "d", "1"],
    ]
    assert notes == (
        'The input column "rank" is written as "rank_input_input": its name is that of a column '
        "added here.",
    )


def test_other_suffixes_and_places_are_refused(tmp_path: Path) -> None:
    table = table_from_frame(pl.DataFrame({"x": [1]}))
    with pytest.raises(ConfigError, match=r'written as "\.csv" or "\.parquet"'):
        write_whole(table, {}, tmp_path / "scored.xlsx")
    with pytest.raises(InputError):
        write_whole(table, {}, tmp_path / "nowhere" / "scored.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_larger_than_the_system_allows_is_one_line(tmp_path: Path, suffix: str) -> None:
    table = table_from_frame(pl.DataFrame({"x": np.random.default_rng(0).normal(size=50_000)}))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(InputError, match="File too large"):
            write_whole(table, {}, tmp_path / f"scored.{suffix}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


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

    def parts() -> Iterator[Written]:
        for part in table.parts:
            of_part = {
                name: None if values is None else values[part.start : part.stop]
                for name, values in extra.items()
            }
            first = part.number == 0
            yield scored_part(part.read(), of_part, scored_kind(path), header=first)

    write_scored(path, parts())
    return extra


@pytest.mark.parametrize("size", [7, 60])
def test_csv_in_parts_has_the_bytes_of_the_whole(size: int, source: Path, tmp_path: Path) -> None:
    extra = written_in_parts(source, tmp_path / "parts.csv", size)
    write_whole(read_table(source), extra, tmp_path / "whole.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.parametrize("size", [7, 60])
def test_parquet_in_parts_has_the_rows_of_the_whole(
    size: int, source: Path, tmp_path: Path
) -> None:
    extra = written_in_parts(source, tmp_path / "parts.parquet", size)
    write_whole(read_table(source), extra, tmp_path / "whole.parquet")
    parts, whole = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("parts", "whole"))
    assert parts.equals(whole) and parts.schema == whole.schema
    assert {item.name for item in tmp_path.iterdir()} == {
        "hostile.csv", "parts.parquet", "whole.parquet",
    }  # fmt: skip


@pytest.mark.parametrize("size", [3, 7, 9, 27, N_ROWS])
def test_groups_of_parquet_are_cut_at_the_same_rows_for_any_parts(
    size: int, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row groups are the same for parts that are smaller or larger than a row group."""
    group = 9
    monkeypatch.setattr("kpca_apps.tables.write._GROUP_ROWS", group)
    written_in_parts(source, tmp_path / "parts.parquet", size)
    groups = pq.read_metadata(tmp_path / "parts.parquet")
    sizes = [groups.row_group(number).num_rows for number in range(groups.num_row_groups)]
    assert sizes == [group] * (N_ROWS // group) + [N_ROWS % group] * (N_ROWS % group > 0)
    assert pl.read_parquet(tmp_path / "parts.parquet")["cells"].equals(
        read_table(source).frame["cells"]
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_parts_that_workers_wrote_and_parts_that_they_sent_make_the_same_table(
    suffix: str, tmp_path: Path
) -> None:
    table = table_from_frame(pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "s": ["=a", "b", None, "d"]}))
    path, whole = tmp_path / f"scored.{suffix}", tmp_path / f"whole.{suffix}"
    pieces = [table.take(np.arange(start, start + 1)) for start in range(4)]
    rows = [
        scored_part(of, {"row": np.array([k])}, suffix, header=k == 0)
        for k, of in enumerate(pieces)
    ]
    write_whole(table, {"row": np.arange(4)}, whole)
    with folder_of_parts(path) as folder:
        before = os.umask(0o077)  # of a worker that runs as another user
        try:
            seen = [write_part(rows[k], folder, k) for k in (2, 3)]
        finally:
            os.umask(before)
        assert [file.name for file in seen] == [f"part-00000{k}.{suffix}" for k in (2, 3)]
        assert {(of.stat().st_mode ^ folder.stat().st_mode) & 0o444 for of in seen} == {0}
        if folder == path:
            seen += [write_part(rows[k], folder, k) for k in (0, 1)]
        else:
            write_scored(path, [*rows[:2], *seen])
    assert {item.name for item in tmp_path.iterdir()} == {path.name, whole.name}
    if suffix == "csv":
        assert path.read_bytes() == whole.read_bytes()
        return
    assert {item.name for item in path.iterdir()} == {f"part-00000{k}.parquet" for k in range(4)}
    assert pl.read_parquet(path).equals(pl.read_parquet(whole))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_nothing_is_left_of_a_file_that_was_not_finished(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"scored.{suffix}"
    path.write_bytes(b"as it was")
    rows = table_from_frame(pl.DataFrame({"x": [1.0, 2.0, 3.0]}))

    def parts() -> Iterator[Written]:
        yield scored_part(rows, EXTRA, suffix)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_scored(path, parts())
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"as it was"


def test_formats_are_known_by_their_suffix() -> None:
    assert scored_kind("a/b.PQ") == "parquet"
    with pytest.raises(ConfigError):
        scored_kind("scored.txt")
