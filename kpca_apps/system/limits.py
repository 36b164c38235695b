"""What a file may take, asked before it is taken: memory, columns, bytes of a row."""

from __future__ import annotations

from kpca_apps.errors import InputError, MemoryLimitError
from kpca_apps.system.memory import available_bytes, claimed_addresses, most_addresses

available_memory = available_bytes
# Filling in what is missing takes, where rows are as many, four matrices of a number for each pair
# of columns, 20,000^2 * 8 bytes = 3.2 GB each: 12.8 GB, about what machines have. More columns are
# most often a table that is turned, or one cut at the wrong character.
MOST_COLUMNS = 20_000
# Cells of JSON lines without a value take memory and time (.6 GB, 10 s), no byte of a file. A
# million rows with 50 keys, of which each row has just one, stay below it.
MOST_EMPTY_CELLS = 1 << 26
LONGEST_ROW = 1 << 24  # bytes of text; a longer row is taken for a quote that is never closed

# Raw bytes, decoded bytes, masks over them, and the frame live side by side while a file is read.
COPIES = 8
_NUMBER = 8
# Scores, p-values, ranks, lines and the like: what every row gets, however narrow the table.
_NUMBERS_PER_ROW = 8


def require_memory(n_bytes: int, copies: int = COPIES) -> None:
    """Refuse a file of so many bytes, unpacked, held so often at the same time."""
    budget = available_memory()
    if n_bytes * copies > budget:
        raise MemoryLimitError(
            f"reading it needs about {n_bytes * copies / 2**30:.1f} GB of memory and "
            f"{budget / 2**30:.1f} GB are available; split the file."
        )


def require_addresses() -> None:
    """Refuse to begin where ``ulimit -v`` is so low that libraries would end this process."""
    if most_addresses() < claimed_addresses():
        raise MemoryLimitError(
            f"ulimit -v allows {most_addresses() / 1e9:.1f} GB of addresses, and "
            f"{claimed_addresses() / 1e9:.1f} GB are laid claim to, most of which hold nothing: "
            "allow more, or bound the memory of a container instead."
        )


def long_row(line: int) -> InputError:
    """Return the error for a row that does not end, by the line it starts on."""
    return InputError(
        f"the row on line {line} is longer than {LONGEST_ROW / 2**20:g} MB; shorten it, or look "
        "for a quote that is never closed."
    )


def require_columns(n_columns: int, line: int | None = None) -> None:
    """Refuse more columns than are worked with, or cells of the row on this line."""
    if n_columns > MOST_COLUMNS:
        place = "the table" if line is None else f"line {line}"
        raise InputError(
            f"{place} has {n_columns:,} columns, and no more than {MOST_COLUMNS:,} are "
            "read; write a file of those that matter, or, if its rows are what was measured, one "
            "with rows and columns exchanged."
        )


def require_table(n_rows: int, n_columns: int) -> None:
    """Refuse too many columns, or numbers for every cell and row that do not fit into memory."""
    require_columns(n_columns)
    require_memory(n_rows * (n_columns + _NUMBERS_PER_ROW) * _NUMBER)
