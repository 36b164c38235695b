"""Parquet of a few bytes that stand for gigabytes is refused before it takes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.quick import quick

# Refuses the file, then tells the memory it took, in MB.
READ = """
import sys
from kpca_apps.errors import KpcaError
from kpca_apps.tables.read import parquet as plain
from kpca_apps.tables.opening import open_table
plain._MOST_TEXT = 1 << 27
try:
    table = open_table(sys.argv[1])
    for part in getattr(table, "parts", ()):
        part.read()
except KpcaError as error:
    assert "than the 0.125 GB that are read" in str(error) or "of memory and" in str(error), error
    status = open("/proc/self/status").read()
    print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


def text_of_a_dictionary() -> tuple[pa.Array, int, dict[str, object]]:
    words = pa.array(["x" * 1_000_000, "y" * 1_000_000])
    numbers = pa.array([0, 1] * 5000, pa.int32())
    return pa.DictionaryArray.from_arrays(numbers, words), 1, {}


def text_of_shared_beginnings() -> tuple[pa.Array, int, dict[str, object]]:
    encoding = {"column_encoding": {"a": "DELTA_BYTE_ARRAY"}, "use_dictionary": False}
    return pa.array(["x" * 1_000_000] * 50), 5, encoding


def texts_in_lists() -> tuple[pa.Array, int, dict[str, object]]:
    cells = pa.array(["x" * 1_000_000] * 50)
    return pa.ListArray.from_arrays(pa.array(range(0, 51, 5), pa.int32()), cells), 5, {}


def texts_in_structures() -> tuple[pa.Array, int, dict[str, object]]:
    return pa.StructArray.from_arrays([pa.array(["x" * 1_000_000] * 50)], ["q"]), 5, {}


def bytes_of_one_length() -> tuple[pa.Array, int, dict[str, object]]:
    return pa.array([b"x" * 1_000_000] * 50, pa.binary(1_000_000)), 5, {}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by the kernel of Linux")
@pytest.mark.parametrize(
    "make",
    quick(
        [
            text_of_a_dictionary,
            text_of_shared_beginnings,
            texts_in_lists,
            texts_in_structures,
            bytes_of_one_length,
        ],
        text_of_a_dictionary,
        texts_in_structures,
        bytes_of_one_length,
    ),
)
def test_what_expands_is_refused_in_little_memory(make: object, tmp_path: Path) -> None:
    column, times, options = make()  # type: ignore[operator]
    path = tmp_path / "t.parquet"
    batch = pa.record_batch({"a": column})
    with pq.ParquetWriter(path, batch.schema, compression="zstd", **options) as writer:
        for _ in range(times):
            writer.write_batch(batch, row_group_size=10**9)
    assert path.stat().st_size < 100_000
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert int(done.stdout) < 1000  # MB, what any small file may take
