"""How much memory there is: what every refusal of work that is too large rests on."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["ROWS_IN_MEMORY", "available_bytes"]

ROWS_IN_MEMORY = 100_000
"""Rows of a table that are held in memory: all of a table with no more, a sample of others."""

_MEMINFO = "/proc/meminfo"

# Control groups of version 2, then 1: the limit of a container, and what it uses of it.
_CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)

_SMALL_MACHINE = 4 << 30
"""Bytes assumed where the system tells nothing."""


def available_bytes() -> int:
    """Return the memory this process may still take.

    Returns
    -------
    int
        Bytes: what the machine has available, or less where a container bounds it.
    """
    bounds = [_machine_bytes()]
    for limit_file, usage_file in _CGROUP_FILES:
        limit, usage = _number_in(limit_file), _number_in(usage_file)
        if limit is not None and usage is not None:
            bounds.append(max(limit - usage, 0))
    return min(bounds)


def _machine_bytes() -> int:
    for line in _text_of(_MEMINFO).splitlines():
        name, _, value = line.partition(":")
        kilobytes = value.removesuffix("kB").strip()
        if name == "MemAvailable" and kilobytes.isdigit():
            return int(kilobytes) * 1024
    try:
        # All there is, not what is free of it: half is a guess on the safe side.
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return _SMALL_MACHINE


def _number_in(path: str) -> int | None:
    text = _text_of(path).strip()
    return int(text) if text.isdigit() else None


def _text_of(path: str) -> str:
    """Return what a file of the system says, nothing where it does not exist."""
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
