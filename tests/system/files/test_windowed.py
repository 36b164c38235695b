"""Arrays with one number per row, stored in temporary files."""

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from kpca_apps.system.files.windowed import release_pages, row_values

N_ROWS = 1_000_000  # 8 MB


def mapped_kilobytes() -> int:
    """Return the resident memory of mapped files, in kilobytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return sum(int(status[name].split()[0]) for name in ("RssFile", "RssShmem"))


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_memory_is_let_go_and_values_stay() -> None:
    values = row_values(N_ROWS, np.float64)
    values[:] = np.arange(N_ROWS)
    before = mapped_kilobytes()
    release_pages(values, None, np.zeros(3))
    assert mapped_kilobytes() < before - 7_000
    assert_array_equal(values, np.arange(N_ROWS))


@pytest.mark.parametrize(
    "copied", [np.ndarray.copy, copy.deepcopy, lambda values: pickle.loads(pickle.dumps(values))]
)
def test_copies_of_mapped_arrays_have_nothing_to_let_go(
    copied: Callable[[NDArray[Any]], NDArray[Any]],
) -> None:
    values = row_values(100_001, np.float64)
    values[:] = 1.0
    again = copied(values)
    release_pages(again)
    assert (again == 1.0).all()
