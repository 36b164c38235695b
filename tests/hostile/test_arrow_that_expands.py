"""Arrow of a few bytes that stand for gigabytes is refused before it takes them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.quick import quick

# Refuses the file where 4 GB are free, then tells the memory it took, in MB.
READ = """
import sys
from kpca_apps.errors import KpcaError
from kpca_apps.system import limits
from kpca_apps.tables.opening import open_table
limits.available_memory = lambda: 4 << 30
try:
    open_table(sys.argv[1])
except KpcaError as error:
    assert "of memory and" in str(error) or "that are read" in str(error), error
    status = open("/proc/self/status").read()
    print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


def zeros() -> pa.Array:
    return pa.array(np.zeros(300_000_000))


def text_of_a_dictionary() -> pa.Array:
    words = pa.array(["x" * 1_000_000, "y" * 1_000_000])
    return pa.DictionaryArray.from_arrays(pa.array([0, 1] * 5000, pa.int32()), words)


def views_of_one_text() -> pa.Array:
    text = b"x" * 1_000_000
    view = np.array([len(text), int.from_bytes(text[:4], "little"), 0, 0], np.int32)
    views = pa.py_buffer(np.tile(view, 50_000))
    return pa.Array.from_buffers(pa.string_view(), 50_000, [None, views, pa.py_buffer(text)])


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by the kernel of Linux")
@pytest.mark.parametrize("make", [zeros, text_of_a_dictionary, views_of_one_text])
@pytest.mark.parametrize("write", quick([pa.ipc.new_file, pa.ipc.new_stream], pa.ipc.new_stream))
def test_what_expands_is_refused_in_little_memory(
    write: Callable[..., pa.RecordBatchStreamWriter], make: Callable[[], pa.Array], tmp_path: Path
) -> None:
    path, batch = tmp_path / "t.arrow", pa.record_batch({"a": make()})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with write(path, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    assert path.stat().st_size < 100_000
    del batch
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert int(done.stdout) < 500  # MB, what any small file may take
