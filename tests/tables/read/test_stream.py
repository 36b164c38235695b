"""Arrow streams: read once with bounded memory, the same for any batch sizes."""

import datetime as dt
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps import screen_table
from kpca_apps.errors import InputError
from kpca_apps.tables.frames import read_frame
from kpca_apps.tables.table import PartedTable

N_ROWS = 5000
ROWS = pa.table(
    {
        "number": np.arange(N_ROWS),
        "town": pa.array([None if k % 7 == 0 else f"t{k % 13}" for k in range(N_ROWS)]),
        "level": pa.array([f"l{k % 3}" for k in range(N_ROWS)]).dictionary_encode(),
        "day": pa.array([dt.date(2020, 1, 1 + k % 28) for k in range(N_ROWS)]),
    }
)


def parted(stream: object) -> PartedTable:
    table = read_frame(stream, in_memory_rows=100).table
    assert isinstance(table, PartedTable)
    return table


@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(st.integers(0, N_ROWS), max_size=5))
def test_a_stream_is_the_same_table_however_it_is_cut(cuts: list[int]) -> None:
    batches = [
        batch
        for start, stop in pairwise([0, *sorted(cuts), N_ROWS])
        for batch in ROWS.slice(start, stop - start).combine_chunks().to_batches()
    ]
    table = parted(pa.RecordBatchReader.from_batches(ROWS.schema, iter(batches)))
    assert table.source == parted(ROWS.to_reader(640)).source
    frame = pl.concat([part.read().frame for part in table.parts])
    assert frame.equals(read_frame(ROWS).table.frame)  # type: ignore[union-attr]


def test_a_relation_of_duckdb_is_a_table() -> None:
    relation = duckdb.connect().sql("select i, i * 0.5 as half, i % 5 as g from range(1000) t(i)")
    table = parted(relation)
    frame = pl.concat([part.read().frame for part in table.parts])
    assert frame["half"].to_list() == [i * 0.5 for i in range(1000)]
    assert (table.source.n_rows, table.source.format) == (1000, "frame")


class Stream:
    """Yields rows by Arrow's stream protocol only."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.to_reader(max_chunksize=64).__arrow_c_stream__(requested_schema)


def test_any_object_with_an_arrow_stream_is_a_table(tmp_path: Path) -> None:
    assert parted(Stream(ROWS)).source == parted(ROWS.to_reader()).source
    rows = ROWS.slice(0, 200)
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    expected = screen_table(tmp_path / "rows.parquet").rows.scores
    assert np.array_equal(screen_table(Stream(rows)).rows.scores, expected)


@pytest.mark.release
def test_a_table_of_iceberg_is_read_without_the_rows_that_were_deleted(tmp_path: Path) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog", reason="reading Iceberg needs pyiceberg")
    catalog = catalogs.load_catalog(
        "local", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}"
    )
    catalog.create_namespace("survey")
    table = catalog.create_table("survey.birds", schema=ROWS.drop(["level"]).schema)
    table.append(ROWS.drop(["level"]))
    table.delete("number >= 4000")
    opened = parted(table.scan().to_arrow_batch_reader())
    frame = pl.concat([part.read().frame for part in opened.parts])
    assert frame.equals(read_frame(ROWS.drop(["level"]).slice(0, 4000)).table.frame)  # type: ignore[union-attr]
    catalog.close()


def test_one_other_cell_is_another_source() -> None:
    other = ROWS.set_column(0, "number", pa.array([*range(N_ROWS - 1), 0]))
    assert parted(ROWS.to_reader()).source.sha256 != parted(other.to_reader()).source.sha256


@pytest.mark.parametrize("sent", [0, 3000])
def test_a_stream_that_breaks_off_is_reported_and_leaves_nothing(
    sent: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from ROWS.slice(0, sent).to_batches()
        raise OSError("the other end is shut")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, broken())
    with pytest.raises(InputError, match=r"broke off while it was read \(the other end is shut\)"):
        read_frame(reader, in_memory_rows=100)
    assert not [*tmp_path.iterdir()]
