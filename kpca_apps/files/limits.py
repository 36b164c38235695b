"""How much memory a file may take, asked before it is taken."""

from __future__ import annotations

import os
from pathlib import Path

from kpca_apps.errors import MemoryLimitError
from kpca_apps.files.names import one_line

__all__ = ["available_memory", "require_memory"]

_FALLBACK = 4 << 30
# Raw bytes, decoded bytes, masks over them, and the frame live side by side while a file is read.
COPIES = 8


def available_memory() -> int:
    """Estimate the memory this process may still take.

    Returns
    -------
    int
        Bytes: what the system calls available, or less where a control group bounds it.
    """
    bounds = [bound for bound in (_system_bound(), _group_bound()) if bound is not None]
    return min(bounds, default=_FALLBACK)


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


def _system_bound() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _group_bound() -> int | None:
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        return max(0, limit - int((group / "memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):
        return None
