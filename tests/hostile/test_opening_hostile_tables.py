"""Whatever a file holds, reading it in parts gives what reading the whole gives, or refuses it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.errors import InputError
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.table import PartedTable
from tests.hostile.tables import BROKEN, SURVIVABLE


@pytest.mark.parametrize("name", SURVIVABLE)
def test_survivable_files_are_read_in_parts(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.csv"
    path.write_bytes(SURVIVABLE[name][0])
    whole = read_table(path)
    table = open_table(path, in_memory_rows=0, part_rows=1)
    assert isinstance(table, PartedTable)
    parts = [part.read() for part in table.parts]
    assert pl.concat([part.frame for part in parts]).equals(whole.frame)
    assert table.source == whole.source
    assert whole.lines is not None
    assert np.array_equal(np.concatenate([part.lines for part in parts]), whole.lines)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_before_any_part_is_read(name: str, tmp_path: Path) -> None:
    data, words = BROKEN[name]
    path = tmp_path / f"{name}.csv"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        open_table(path, in_memory_rows=0, part_rows=1)
    assert words in str(caught.value)
    assert f"{name}.csv" in str(caught.value)
    assert str(caught.value).isprintable()
