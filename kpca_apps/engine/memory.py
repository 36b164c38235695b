"""How much memory a fit needs, how much there is, and a refusal before anything is allocated."""

from __future__ import annotations

import os
from pathlib import Path

from kpca_apps.errors import MemoryLimitError

__all__ = [
    "available_bytes",
    "default_budget",
    "exact_fit_bytes",
    "nystroem_fit_bytes",
    "require",
]

_ITEM = 8
"""Bytes of a float64."""

_CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def available_bytes() -> int:
    """Return the memory this process may still take: the machine's, or less in a container."""
    limits = [_machine_bytes()]
    for limit_file, usage_file in _CGROUP_FILES:
        limit, usage = _number_in(limit_file), _number_in(usage_file)
        if limit is not None and usage is not None:
            limits.append(max(limit - usage, 0))
    return min(limits)


def default_budget() -> int:
    """Return the bytes a fit may take unless told otherwise: a quarter of what is available."""
    return available_bytes() // 4


def exact_fit_bytes(n: int, n_vectors: int) -> int:
    """Return the bytes of an exact fit: the Gram matrix, and vectors twice.

    Parameters
    ----------
    n : int
        Rows.
    n_vectors : int
        Vectors of length n held at once: components, or the basis of an iteration.
    """
    return _ITEM * n * (n + 2 * n_vectors)


def nystroem_fit_bytes(n_landmarks: int, n_features: int, block: int = 4096) -> int:
    """Return the bytes of a Nystrom fit beyond its rows: six m x m matrices and one block."""
    return _ITEM * n_landmarks * (6 * n_landmarks + 3 * block + 2 * n_features)


def require(needed: int, budget: int | None, what: str, advice: str) -> None:
    """Refuse work whose memory exceeds the budget.

    Parameters
    ----------
    needed : int
        Estimated bytes.
    budget : int, optional
        Bytes allowed; `default_budget` if None.
    what : str
        What needs them, with its size, such as "The Gram matrix of n = 50000 rows".
    advice : str
        The option that helps, as an imperative.

    Raises
    ------
    MemoryLimitError

    Examples
    --------
    >>> require(2 * 10**9, 10**9, "The Gram matrix of n = 15000 rows", "use method='nystroem'")
    Traceback (most recent call last):
    ...
    kpca_apps.errors.MemoryLimitError: The Gram matrix of n = 15000 rows needs 2.0 GB,
    the budget is 1.0 GB: use method='nystroem', or raise memory_budget.
    """
    allowed = default_budget() if budget is None else budget
    if needed > allowed:
        raise MemoryLimitError(
            f"{what} needs {_text(needed)}, the budget is {_text(allowed)}: {advice}, "
            "or raise memory_budget."
        )


def _text(n_bytes: int) -> str:
    """Return a number of bytes as MB or GB."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.3g} MB"


def _machine_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        # A system that tells nothing: assume a small machine rather than none.
        return 4 * 1024**3


def _number_in(path: str) -> int | None:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
