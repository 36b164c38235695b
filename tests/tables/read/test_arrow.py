import gzip
import io
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kpca_apps.errors import ConfigError, InputError, MemoryLimitError
from kpca_apps.tables.opening import read_table
from tests.quick import quick
from tests.tables.whole_and_parts import read_both_ways

TABLE = pa.table(
    {
        "kind": pa.array(["a", None, "a"]).dictionary_encode(),
        "at": pa.array([1, 2, None], pa.timestamp("ns", "Europe/Berlin")),
        "price": pa.array([1, None, 3], pa.decimal128(8, 2)),
        "text": ["\u00e9", None, ""],
        "list": [[1], [2, None], None],
        "flag": [True, None, False],
        "n": pa.array([1, 2, None], pa.uint16()),
        "view": pa.array(["x" * 20, None, "y"], pa.string_view()),
        "views": pa.array([["x" * 20, None], None, []], pa.list_(pa.string_view())),
    }
)


def encoded(make: Any, table: pa.Table, compression: str | None = None) -> bytes:
    buffer = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with make(buffer, table.schema, options=options) as writer:
        writer.write_table(table)
    return buffer.getvalue()


as_file, as_stream = partial(encoded, pa.ipc.new_file), partial(encoded, pa.ipc.new_stream)


@pytest.mark.parametrize("name", ["table.arrow", "table.csv"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("write", [as_file, as_stream])
def test_values_are_those_of_the_same_table_as_parquet(
    write: Any, compression: str | None, name: str, tmp_path: Path
) -> None:
    views = {"view": pa.string(), "views": pa.list_(pa.string())}
    fields = [field.with_type(views.get(field.name, field.type)) for field in TABLE.schema]
    pq.write_table(TABLE.cast(pa.schema(fields)), tmp_path / "table.parquet")
    (tmp_path / name).write_bytes(write(TABLE, compression))
    table = read_table(tmp_path / name)
    assert table.frame.equals(read_table(tmp_path / "table.parquet").frame)
    assert table.source.format == "arrow" and table.lines is None


def test_feather_of_pandas_and_files_of_polars_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["u", "v"]), "b": pd.array([1, None], "Int64")})
    frame.to_feather(tmp_path / "t.feather")
    assert read_table(tmp_path / "t.feather").frame.rows() == [("u", 1), ("v", None)]
    polars = pl.DataFrame({"a": ["u", "v" * 50], "c": pl.Series(["x", "y"], dtype=pl.Categorical)})
    for compression in ("uncompressed", "zstd"):
        polars.write_ipc(tmp_path / "t.arrow", compression=compression)  # type: ignore[arg-type]
        assert read_table(tmp_path / "t.arrow").frame.rows() == polars.rows()
    polars.write_ipc_stream(tmp_path / "t.arrows")
    assert read_table(tmp_path / "t.arrows").frame.rows() == polars.rows()


@pytest.mark.parametrize("write", [as_file, as_stream])
def test_a_file_is_the_same_in_parts_and_whole(write: Any, tmp_path: Path) -> None:
    # A date beyond the calendar in one batch turns the whole column into text.
    far = pa.table({"n": range(1000), "day": pa.array([0] * 900 + [4 * 10**6] * 100, pa.date32())})
    data = write(pa.Table.from_batches(far.to_batches(max_chunksize=64)))
    (tmp_path / "t.arrow").write_bytes(data)
    (tmp_path / "t.arrow.gz").write_bytes(gzip.compress(data))
    for name in ("t.arrow", "t.arrow.gz"):
        assert read_both_ways(tmp_path / name, 256).frame["day"].dtype == pl.String


def test_times_from_24_hours_on_are_read(tmp_path: Path) -> None:
    # Build the times from raw buffers: pyarrow accepts none from 24 hours on, other programs do.
    counts = pa.array([3_600_000_000 * hour + 40_000 for hour in range(26)] + [None], pa.int64())
    times = pa.Array.from_buffers(pa.time64("us"), 27, counts.buffers())
    table = pa.table({"t": times, "none": pa.nulls(27, pa.time32("s"))})
    (tmp_path / "t.arrow").write_bytes(as_file(table))
    pq.write_table(table, tmp_path / "t.parquet")
    for name in ("t.arrow", "t.parquet"):
        frame = read_both_ways(tmp_path / name, 16).frame
        assert frame["t"].to_list() == [*(f"{hour:02}:00:00.04" for hour in range(26)), None]
        assert frame.schema == {"t": pl.String, "none": pl.String}


def test_dictionaries_that_change_from_batch_to_batch_are_read(tmp_path: Path) -> None:
    table = pa.concat_tables(
        pa.table({"a": pa.array(words).dictionary_encode()}) for words in (["x"], ["y", "x"])
    )
    (tmp_path / "t.arrows").write_bytes(as_stream(table))
    assert read_table(tmp_path / "t.arrows").frame["a"].to_list() == ["x", "y", "x"]


def test_names_that_are_empty_or_repeated_are_made_distinct(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["a", "", "a"])
    (tmp_path / "t.arrow").write_bytes(as_file(table))
    assert read_table(tmp_path / "t.arrow").frame.columns == ["a", "column_2", "a_2"]


@pytest.mark.parametrize("write", [as_file, as_stream])
@pytest.mark.parametrize("compression", quick([None, "zstd"], None))
def test_damaged_files_are_refused_in_one_line(
    write: Any, compression: str | None, tmp_path: Path
) -> None:
    data = write(TABLE, compression)
    path = tmp_path / "t.arrow"
    n_refused = 0
    for place in range(8, len(data), 7):
        for damaged in (data[:place], data[:place] + b"\xff" * 4 + data[place + 4 :]):
            path.write_bytes(damaged)
            try:
                read_table(path)
            except (InputError, MemoryLimitError) as error:
                assert str(error).startswith(f"{path}: ") and str(error).isprintable()
                n_refused += 1
    assert n_refused > len(data) // 7


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (as_file(TABLE.slice(0, 0)), "no rows were read"),
        (b"FEA1" + bytes(60) + b"FEA1", "a Feather file of the first version"),
        (as_file(TABLE)[:-6], "not a readable Arrow file"),
        (as_file(pa.table({"a": pa.RunEndEncodedArray.from_arrays([3], [1])})), "run-end encoded"),
    ],
)
def test_what_is_no_table_is_refused(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "t.arrow").write_bytes(data)
    with pytest.raises(InputError, match=words):
        read_table(tmp_path / "t.arrow")


@pytest.mark.parametrize("option", [{"sheet": 1}, {"delimiter": ","}, {"skip_rows": 1}])
def test_options_of_other_formats_do_not_apply(option: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "t.arrow").write_bytes(as_file(TABLE))
    with pytest.raises(ConfigError, match="Arrow"):
        read_table(tmp_path / "t.arrow", **option)
