"""How much memory a file may take, asked before it is taken."""

from __future__ import annotations

from kpca_apps.errors import MemoryLimitError
from kpca_apps.files.names import one_line
from kpca_apps.memory import available_bytes as available_memory

__all__ = ["available_memory", "require_memory", "require_table"]

# Raw bytes, decoded bytes, masks over them, and the frame live side by side while a file is read.
COPIES = 8
_NUMBER = 8
# Scores, p-values, ranks, lines and the like: what every row gets, however narrow the table.
_NUMBERS_PER_ROW = 8


def require_memory(label: str, n_bytes: int, copies: int = COPIES) -> None:
    """Refuse a file whose contents would not fit into memory.

    Parameters
    ----------
    label : str
        The file, as the user named it.
    n_bytes : int
        Its size, unpacked.
    copies : int
        How often these bytes are held at the same time.

    Raises
    ------
    MemoryLimitError
        If reading it would take more than is available.
    """
    budget = available_memory()
    if n_bytes * copies > budget:
        raise MemoryLimitError(
            f"{one_line(label, 200)}: reading it needs about {n_bytes * copies / 2**30:.1f} GB of "
            f"memory and {budget / 2**30:.1f} GB are available; split the file."
        )


def require_table(label: str, n_rows: int, n_columns: int) -> None:
    """Refuse a table whose numbers would not fit into memory, whatever few bytes it is packed in.

    Parameters
    ----------
    label : str
        The file, as the user named it.
    n_rows, n_columns : int
        Size of the table.

    Raises
    ------
    MemoryLimitError
        If working on a number a cell, and some for every row, would take more than is available.
    """
    require_memory(label, n_rows * (n_columns + _NUMBERS_PER_ROW) * _NUMBER)
