import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.table import PartedTable, part_size, parted

FRAME = pl.DataFrame({"x": np.arange(25.0), "t": [f"row {k}" for k in range(25)]})


@pytest.mark.parametrize("n_columns", [1, 20, 32, 33, 500, 10**6])
def test_a_part_has_a_power_of_two_of_rows_and_about_two_million_cells(n_columns: int) -> None:
    size = part_size(n_columns)
    assert size & (size - 1) == 0
    assert 4096 <= size <= 65536
    assert size == 65536 or size == 4096 or 2**20 < size * n_columns <= 2**21


@given(st.integers(1, 30))
def test_parts_of_a_table_in_memory_are_its_rows_in_order(size: int) -> None:
    table = parted(table_from_frame(FRAME), part_rows=size)
    parts = [part.read() for part in table.parts]
    assert pl.concat([part.frame for part in parts]).equals(FRAME)
    assert all(part.source == table.source for part in parts)


def test_a_part_is_read_without_the_others(tmp_path: Path) -> None:
    for number in range(3):
        FRAME.write_parquet(tmp_path / f"{number}.parquet")
    table = open_table(tmp_path, in_memory_rows=0, part_rows=25)
    assert isinstance(table, PartedTable)
    (tmp_path / "1.parquet").unlink()
    assert [table.parts[k].read().frame["x"][0] for k in (2, 0)] == [0.0, 0.0]


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_parts_can_be_sent_and_read_the_same_elsewhere(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{kind}"
    {"csv": FRAME.write_csv, "parquet": FRAME.write_parquet, "jsonl": FRAME.write_ndjson}[kind](
        path
    )
    table = open_table(path, in_memory_rows=10, part_rows=10)
    assert isinstance(table, PartedTable) and table.source == read_table(path).source
    assert [(part.number, part.start, part.stop) for part in table.parts] == [
        (0, 0, 10), (1, 10, 20), (2, 20, 25),
    ]  # fmt: skip
    sent = [pickle.loads(pickle.dumps(part)) for part in table.parts]
    assert pl.concat([part.read().frame for part in sent]).equals(read_table(path).frame)
    assert str(sent[2]) == f"rows 21 to 25 of t.{kind}"
