"""Small Arrow and Parquet files that expand to gigabytes are refused before they use the memory."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.quick import quick

# Reads a file under lowered limits; once refused, prints the peak memory in MB.
READ = """
import sys
from kpca_apps.errors import KpcaError
from kpca_apps.system import limits
from kpca_apps.tables.opening import open_table
from kpca_apps.tables.read import parquet
if sys.argv[1].endswith("arrow"):
    limits.available_memory = lambda: 4 << 30
else:
    parquet._MOST_TEXT = 1 << 27
try:
    for part in getattr(open_table(sys.argv[1]), "parts", ()):
        part.read()
except KpcaError as error:
    assert "of memory and" in str(error) or "that are read" in str(error), error
    status = open("/proc/self/status").read()
    print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""
LONG = "x" * 1_000_000


def zeros() -> pa.Array:
    return pa.array(np.zeros(300_000_000))


def dictionary() -> pa.Array:
    words = pa.array([LONG, "y" * 1_000_000])
    return pa.DictionaryArray.from_arrays(pa.array([0, 1] * 5000, pa.int32()), words)


def views() -> pa.Array:
    text = LONG.encode()
    view = np.array([len(text), int.from_bytes(text[:4], "little"), 0, 0], np.int32)
    buffers = [None, pa.py_buffer(np.tile(view, 50_000)), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string_view(), 50_000, buffers)


def texts() -> pa.Array:
    return pa.array([LONG] * 50)


def lists() -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(0, 51, 5), pa.int32()), texts())


def structures() -> pa.Array:
    return pa.StructArray.from_arrays([texts()], ["q"])


def bytes_of_one_length() -> pa.Array:
    return pa.array([LONG.encode()] * 50, pa.binary(len(LONG)))


def arrow(path: Path, column: pa.Array, write: Callable[..., Any]) -> None:
    batch = pa.record_batch({"a": column})
    with write(path, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)


def parquet(path: Path, column: pa.Array, encoding: dict[str, Any]) -> None:
    """Write the cells five times, or a dictionary column once."""
    batch = pa.record_batch({"a": column})
    with pq.ParquetWriter(path, batch.schema, compression="zstd", **encoding) as writer:
        for _ in range(1 if pa.types.is_dictionary(column.type) else 5):
            writer.write_batch(batch, row_group_size=10**9)


SHARED = {"column_encoding": {"a": "DELTA_BYTE_ARRAY"}, "use_dictionary": False}
EXPANDING = [
    *((arrow, make, pa.ipc.new_stream, 500) for make in (zeros, dictionary, views)),
    *((parquet, make, {}, 1000) for make in (dictionary, structures, bytes_of_one_length)),
]
AT_LENGTH = [
    *((arrow, make, pa.ipc.new_file, 500) for make in (zeros, dictionary, views)),
    (parquet, texts, SHARED, 1000),
    (parquet, lists, {}, 1000),
]


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
@pytest.mark.parametrize(
    ("write", "make", "how", "most"), quick([*EXPANDING, *AT_LENGTH], *EXPANDING)
)
def test_expanding_files_are_refused_in_little_memory(
    write: Callable[..., None], make: Callable[[], pa.Array], how: Any, most: int, tmp_path: Path
) -> None:
    path = tmp_path / f"t.{write.__name__}"
    write(path, make(), how)
    assert path.stat().st_size < 100_000
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert int(done.stdout) < most  # MB, enough for any small file
