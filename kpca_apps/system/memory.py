"""How much memory there is: what every refusal of work that is too large rests on."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

# Rows of a table that are held in memory: all of a table with no more, a sample of others.
ROWS_IN_MEMORY = 100_000

_MEMINFO = "/proc/meminfo"

# Control groups of version 2, then 1: the limit of a container, and what it uses of it.
_CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)

_SMALL_MACHINE = 4 << 30  # bytes assumed where the system says nothing


def available_bytes() -> int:
    """Return the bytes this process may still take: the machine's, or a container's if fewer."""
    if found := re.search(r"^MemAvailable: *([0-9]+)", _text_of(_MEMINFO), re.MULTILINE):
        bounds = [int(found[1]) * 1024]
    else:
        try:
            # All there is, not what is free of it: half is a guess on the safe side.
            bounds = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2]
        except (AttributeError, ValueError, OSError):
            bounds = [_SMALL_MACHINE]
    for files in _CGROUP_FILES:
        limit, usage = (_text_of(path).strip() for path in files)
        if limit.isdigit() and usage.isdigit():
            bounds.append(max(int(limit) - int(usage), 0))
    return min(bounds)


def give_back() -> None:
    """Give the system the memory back that glibc and Arrow keep although nothing lies in it."""
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):  # other C libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)


def _text_of(path: str) -> str:
    """Return what a file of the system says, nothing where it does not exist."""
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
