"""How much memory there is: what every refusal of work that is too large rests on."""

from __future__ import annotations

import math
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import resource
if TYPE_CHECKING:
    from mmap import mmap

# Rows of a table that are held in memory: all of a table with no more, a sample of others.
ROWS_IN_MEMORY = 100_000

_MEMINFO = "/proc/meminfo"

# Control groups (version 2) and the file that names this process's group.
_OWN_CGROUP = "/proc/self/cgroup"
_CGROUPS = "/sys/fs/cgroup"
_USED_ADDRESSES = "/proc/self/statm"

_SMALL_MACHINE = 4 << 30  # bytes assumed where the system says nothing


def available_bytes() -> int:
    """Return the bytes this process may still take.

    The machine's, or fewer where a container, a batch system or ``ulimit -v`` allows fewer.
    """
    if found := re.search(r"^MemAvailable: *([0-9]+)", _text_of(_MEMINFO), re.MULTILINE):
        bounds = [int(found[1]) * 1024]
    else:
        try:
            # All there is, not what is free of it: half is a guess on the safe side.
            bounds = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2]
        except (AttributeError, ValueError, OSError):
            bounds = [_SMALL_MACHINE]
    found = re.search("^0::/(.*)", _text_of(_OWN_CGROUP), re.MULTILINE)
    own = Path(_CGROUPS, found[1] if found else "")
    # Control groups, from its own to the outermost, the only one that a container may see.
    for folder in (one for one in (own, *own.parents) if one.is_relative_to(_CGROUPS)):
        limit, usage = (_text_of(folder / f"memory.{name}").strip() for name in ("max", "current"))
        if limit.isdigit() and usage.isdigit():
            bounds.append(max(int(limit) - int(usage), 0))
    return int(min(*bounds, _left_of_addresses()))


def _left_of_addresses() -> float:
    """Return the bytes of addresses that ``ulimit -v`` leaves to this process."""
    if math.isinf(most := most_addresses()):
        return most
    n_pages = _text_of(_USED_ADDRESSES).partition(" ")[0]
    used = int(n_pages) * resource.getpagesize() if n_pages.isdigit() else 0
    return max(most - used, 0)


def most_addresses() -> float:
    """Return the bytes of addresses that ``ulimit -v`` allows this process."""
    if sys.platform == "win32":
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if limit == resource.RLIM_INFINITY else limit


def claimed_addresses() -> int:
    """Return the bytes of addresses that libraries lay claim to, most of which hold nothing.

    Code takes most of it; the rest are stacks and reserves of the threads that BLAS, numba, Arrow
    and polars start for each core. To screen a table of 160 rows took 2.96e9 on two cores, and
    3.75e9, 4.54e9 and 6.11e9 where they were told of 8, 16 and 32.
    """
    return int(3e9 + 1e8 * n_cores())


def n_cores() -> int:
    """Return the cores that this process may use, of which the machine may have more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def give_back() -> None:
    """Give the system the memory back that glibc and Arrow keep although nothing lies in it."""
    import ctypes  # not above: the command's help is to come without it

    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):  # other C libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)


def drop_pages(mapped: mmap) -> None:
    """Drop what lies in memory of a shared mapping of a file: what is read again comes back."""
    # Pages that are locked cannot be dropped, and some systems drop none.
    with suppress(ImportError, AttributeError, OSError):
        from mmap import MADV_DONTNEED

        mapped.madvise(MADV_DONTNEED)


def _text_of(path: str | Path) -> str:
    """Return what a file of the system says, nothing where it does not exist."""
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
