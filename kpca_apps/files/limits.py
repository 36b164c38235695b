"""How much memory a file may take, asked before it is taken."""

from __future__ import annotations

from kpca_apps.errors import MemoryLimitError
from kpca_apps.files.names import one_line
from kpca_apps.memory import available_bytes as available_memory

__all__ = ["available_memory", "require_memory"]

# Raw bytes, decoded bytes, masks over them, and the frame live side by side while a file is read.
COPIES = 8


def require_memory(label: str, n_bytes: int) -> None:
    """Refuse a file whose contents would not fit into memory.

    Parameters
    ----------
    label : str
        The file, as the user named it.
    n_bytes : int
        Its size, unpacked.

    Raises
    ------
    MemoryLimitError
        If reading it would take more than is available.
    """
    budget = available_memory()
    if n_bytes * COPIES > budget:
        raise MemoryLimitError(
            f"{one_line(label)}: reading it needs about {n_bytes * COPIES / 2**30:.1f} GB of "
            f"memory and {budget / 2**30:.1f} GB are available; split the file."
        )
