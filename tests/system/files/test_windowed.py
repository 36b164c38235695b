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

from kpca_apps.system.files import windowed
from kpca_apps.system.files.windowed import SharedArray, row_values

N_ROWS = 1_000_000  # 8 MB


def mapped_kilobytes() -> int:
    """Return the resident memory of mapped files, in kilobytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return sum(int(status[name].split()[0]) for name in ("RssFile", "RssShmem"))


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_memory_is_let_go_and_values_stay() -> None:
    values, expected = row_values(N_ROWS, np.float64), np.arange(N_ROWS)
    places, before = np.random.default_rng(0).permutation(N_ROWS)[::2], mapped_kilobytes()
    values[:] = expected
    values[places] = expected[places] = -places
    rows = places[:1000].reshape(2, -1)
    for key in (places, rows, slice(9, -9), slice(None, None, 7), expected < 0, 3):
        assert_array_equal(values[key], expected[key])
        assert mapped_kilobytes() < before + 1_000
    assert np.shares_memory(values[...], values) and (values == expected).all()
    assert [type(of) for of in (values.max(), -values)] == [np.float64, np.ndarray]


@pytest.mark.parametrize(
    "copied", [np.ndarray.copy, copy.deepcopy, lambda values: pickle.loads(pickle.dumps(values))]
)
def test_copies_of_mapped_arrays_are_in_memory(
    copied: Callable[[NDArray[Any]], NDArray[Any]],
) -> None:
    values = row_values(100_001, np.float64)
    values[:] = 1.0
    again = copied(values)
    again[3:5][:] = 2.0  # a view, as of other arrays
    assert again.sum() == 100_003 and (values == 1.0).all()


def test_results_of_mapped_arrays_are_plain_and_positions_have_any_shape() -> None:
    values, plain = row_values(100_001, np.float64), np.arange(100_001.0)
    values += plain
    for key in (np.array(3), np.array([[1, 2], [-1, 4]])):
        assert_array_equal(values[key], plain[key])
    for result in (values.max(), np.median(values), (values > 3).sum()):
        assert isinstance(result, np.generic)
    assert type(values + 1) is np.ndarray


def test_mapped_arrays_are_iterated_without_an_access_of_the_file_for_each_item(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = row_values(100_001, np.float64)
    monkeypatch.setattr(windowed, "drop_pages", pytest.fail)
    assert sum(values) == 0


def test_rows_of_a_shared_array_are_read_in_any_number_and_order() -> None:
    shared, rows = SharedArray((5, 2), "A table"), np.arange(10.0).reshape(5, 2)
    shared[0:5] = rows
    for chosen in ([], [4, 0, 4], slice(1, 3), slice(3, 1), slice(0, 0)):
        places = chosen if isinstance(chosen, slice) else np.array(chosen, dtype=np.int64)
        assert_array_equal(shared[places], rows[places])
