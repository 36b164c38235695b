"""Arrays in files of which a part is in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kpca_apps.system.files.windowed import WindowedArray


def test_what_is_written_is_read_and_no_more_than_that_is_in_memory(tmp_path: Path) -> None:
    shape = (2, 1, 3000, 5000)  # 120 MB
    array = WindowedArray(shape, np.float32, label="a page", folder=tmp_path)
    rows = np.arange(5000, dtype=np.float32)
    before = mapped()
    for top in range(0, 3000, 500):
        array[:, :, top : top + 500] = rows + top
    assert mapped() - before < 60_000_000
    np.testing.assert_array_equal(array[1, 0, 1499:1501, 7:9], [[1007, 1008], [1507, 1508]])
    part = array[:, :, :1, :1]
    part += 1  # a copy
    assert array[0, 0, 0, 0] == 0 and array.shape == shape
    assert not list(tmp_path.iterdir())


def mapped() -> int:
    """Bytes of files that lie in the memory of this process."""
    status = Path("/proc/self/status").read_text()
    return sum(
        int(status.partition(f"{kind}:")[2].split()[0]) << 10 for kind in ("RssFile", "RssShmem")
    )
