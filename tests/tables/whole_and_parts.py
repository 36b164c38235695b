from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.table import PartedTable, Table


def put(path: Path, content: str | bytes) -> Path:
    """Write a file and return its path."""
    path.write_text(content) if isinstance(content, str) else path.write_bytes(content)
    return path


def in_parts(path: Path | str, size: int = 2, **options: Any) -> PartedTable:
    """Open a file in parts of so many rows."""
    table = open_table(path, in_memory_rows=0, part_rows=size, **options)
    assert isinstance(table, PartedTable)
    return table


def read_both_ways(path: Path, size: int = 2, **options: Any) -> Table:
    """Read a file whole and in parts, check that both agree, and return the whole table."""
    whole, table = read_table(path, **options), in_parts(path, size, **options)
    parts = [part.read() for part in table.parts]
    assert table.columns == whole.columns and table.source == whole.source
    assert pl.concat([part.frame for part in parts]).equals(whole.frame)
    assert all(part.frame.schema == whole.frame.schema for part in parts)
    lines = [part.lines for part in parts if part.lines is not None]
    assert len(lines) == (0 if whole.lines is None else len(parts))
    assert whole.lines is None or np.array_equal(np.concatenate(lines), whole.lines)
    return whole
