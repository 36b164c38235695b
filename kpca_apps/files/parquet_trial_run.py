"""What the process does that reads Parquet files on trial; it may well be its end."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import polars as pl
import polars.selectors as cs

__all__ = ["main", "read_to_the_end"]


def main() -> None:
    """Read the files named on standard input, and tell which one is next, or what was wrong.

    Standard output gets a line of JSON for each file: its number before it is read, and what its
    reader says if it cannot be.
    """
    told = json.load(sys.stdin)
    _bound_memory(told["memory"])
    for number, (path, by_column) in enumerate(told["files"]):
        _tell(number)
        try:
            read_to_the_end(path, by_column=by_column)
        except (Exception, pl.exceptions.PanicException) as error:
            _tell(str(error))
            return


def read_to_the_end(path: str, *, by_column: bool) -> None:
    """Decode every cell of a Parquet file.

    Parameters
    ----------
    path : str
        The file.
    by_column : bool
        Whether its groups of rows are too long to hold all columns of one.

    Raises
    ------
    ValueError
        If it has not the rows that its footer promises.
    """
    scan = pl.scan_parquet([path], glob=False)
    promised = scan.select(pl.len()).collect().item()
    width = len(scan.collect_schema())
    step = 1 if by_column else max(width, 1)
    for first in range(0, width, step):
        # By number: names may be any text.
        nulls = [
            cs.by_index(k).as_expr().null_count().alias(str(k)) for k in range(first, first + step)
        ]
        rows = scan.select(pl.len().alias("rows"), *nulls).collect(engine="streaming")["rows"]
        if rows.item() != promised:
            raise ValueError(f"it promises {promised} rows and has {rows.item()}")


def _bound_memory(n_bytes: int) -> None:
    """Let this process fail before the machine has no memory left, where the system can do that."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + n_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _tell(what: int | str) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()
