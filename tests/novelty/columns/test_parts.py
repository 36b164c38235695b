"""Some rows of a table in parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.errors import InputError
from kpca_apps.novelty.columns.encoded import Execution, some_rows, take_rows
from kpca_apps.tables.opening import open_table
from kpca_apps.tables.table import PartedTable


def test_an_error_of_some_rows_names_those_that_were_read_once(tmp_path: Path) -> None:
    path = tmp_path / "y.parquet"
    pl.DataFrame({"a": range(400)}).write_parquet(path, row_group_size=64)
    table = open_table(path, in_memory_rows=100, part_rows=64)
    assert isinstance(table, PartedTable)
    some = some_rows(some_rows(table, np.array([1, 300, 301])), np.array([1, 2]))
    assert isinstance(some, PartedTable)
    assert [str(part) for part in some.parts] == ["rows 257 to 320 of y.parquet"]
    path.unlink()
    with pytest.raises(InputError, match=r"^Rows 257 to 320: [^:]*y\.parquet: ") as caught:
        take_rows(table, np.array([300]), Execution())
    assert str(caught.value).count("ows ") == 1
