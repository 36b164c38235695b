"""Limits on memory, columns and row length of input files, checked before reading."""

from __future__ import annotations

from kpca_apps.errors import InputError, MemoryLimitError
from kpca_apps.system.memory import available_bytes, claimed_addresses, most_addresses

available_memory = available_bytes
# Imputation needs four square matrices with a row per column of the table: 20,000^2 * 8 bytes = 3.2
# GB each, 12.8 GB in all, a common memory size. A table with more columns is usually transposed, or
# split at the wrong delimiter.
MOST_COLUMNS = 20_000
# Maximum number of empty cells in JSON lines. Such cells take no bytes in the file, but memory and
# time (measured: .6 GB, 10 s). A million rows with one value each, under one of 50 keys, are fine.
MOST_EMPTY_CELLS = 1 << 26
LONGEST_ROW = 1 << 24  # bytes; a longer row of text is reported as an unclosed quote

# Memory needed to read a file, as a multiple of the file's size: the bytes, the decoded text, masks
# and the data frame exist at the same time, some in several copies.
COPIES = 8
_NUMBER = 8  # bytes
_NUMBERS_PER_ROW = 8  # numbers stored for each row, such as score, p-value, rank and line


def require_memory(n_bytes: int, copies: int = COPIES) -> None:
    """Raise MemoryLimitError if ``copies * n_bytes`` exceeds the available memory."""
    budget = available_memory()
    if n_bytes * copies > budget:
        raise MemoryLimitError(
            f"reading it needs about {n_bytes * copies / 2**30:.1f} GB of memory and "
            f"{budget / 2**30:.1f} GB are available; split the file."
        )


def require_addresses() -> None:
    """Raise MemoryLimitError if ``ulimit -v`` is so low that libraries would crash."""
    if most_addresses() < claimed_addresses():
        raise MemoryLimitError(
            f"ulimit -v allows {most_addresses() / 1e9:.1f} GB of virtual memory, and "
            f"{claimed_addresses() / 1e9:.1f} GB are reserved, mostly unused: raise the limit, or "
            "limit the memory of a container instead."
        )


def long_row(line: int) -> InputError:
    """Return the error for a row that does not end, with the line it starts on."""
    return InputError(
        f"the row on line {line} is longer than {LONGEST_ROW / 2**20:g} MB; shorten it, or look "
        "for a quote that is never closed."
    )


def require_columns(n_columns: int, line: int | None = None) -> None:
    """Raise InputError if the table, or the row on a given line, has too many columns."""
    if n_columns > MOST_COLUMNS:
        place = "the table" if line is None else f"line {line}"
        raise InputError(
            f"{place} has {n_columns:,} columns, and no more than {MOST_COLUMNS:,} are "
            "read; write a file of those that matter, or, if its rows are what was measured, one "
            "with rows and columns exchanged."
        )


def require_table(n_rows: int, n_columns: int) -> None:
    """Raise an error for too many columns, or if the cells and scores exceed the memory."""
    require_columns(n_columns)
    require_memory(n_rows * (n_columns + _NUMBERS_PER_ROW) * _NUMBER)
